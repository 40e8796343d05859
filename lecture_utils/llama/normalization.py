"""Normalization of each token by its own statistics: LayerNorm, and the one that Llama uses, RMSNorm."""

import torch
from torch import Tensor, nn

from . import expect


class LayerNorm(nn.Module):
    r"""Shift each token to mean 0 and scale it to variance 1, then apply a learned scale and shift.

    $$y = \mathrm{weight} \cdot \frac{x - \bar{x}}{\sqrt{\mathrm{var}(x) + \epsilon}} + \mathrm{bias}$$

    Statistics run over the features of one token, in fp32: no token sees another.

    Args:
        hidden_size: H, features of one token.
        eps: added to the variance, inside the root.

    Source: Ba, Kiros, Hinton, "Layer Normalization", 2016, section 3. Same numbers as `torch.nn.LayerNorm`.
    """

    def __init__(self, hidden_size: int, eps: float = 1e-5) -> None:
        super().__init__()
        expect.positive_int("hidden_size", hidden_size)
        expect.above_zero("eps", eps)
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))
        self.eps = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        """`hidden_states` [..., H] in, the same shape and dtype out.

        Raises:
            TypeError: not a floating-point tensor.
            ValueError: the last axis is not H.
        """
        expect.features("hidden_states", hidden_states, self.weight.shape[0])
        x = hidden_states.to(torch.float32)
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).square().mean(-1, keepdim=True)
        standard = (x - mean) * torch.rsqrt(variance + self.eps)
        return (standard * self.weight + self.bias).to(hidden_states.dtype)


class RMSNorm(nn.Module):
    r"""Divide each token by its root mean square, then apply a learned scale.

    $$y = \mathrm{weight} \cdot \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}$$

    The division is done in fp32 and cast back *before* the weight is applied: this order of casts
    is that of `LlamaRMSNorm`, and makes the two equal to the last bit in bf16 and fp16 as well.

    Args:
        hidden_size: H, features of one token.
        eps: added to the mean of squares, inside the root (Llama 1: 1e-6; Llama 2 and 3: 1e-5).

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019, equation 4.
    """

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        expect.positive_int("hidden_size", hidden_size)
        expect.above_zero("eps", eps)
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        """`hidden_states` [..., H] in, the same shape out, in the dtype of input and weight.

        (fp32, if only one of the two is in 16 bits, as with `LlamaRMSNorm`.)

        Raises:
            TypeError: not a floating-point tensor.
            ValueError: the last axis is not H.
        """
        expect.features("hidden_states", hidden_states, self.weight.shape[0])
        x = hidden_states.to(torch.float32)
        mean_square = x.square().mean(-1, keepdim=True)
        x = x * torch.rsqrt(mean_square + self.eps)
        return self.weight * x.to(hidden_states.dtype)
