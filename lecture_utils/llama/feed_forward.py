"""The feed-forward network: the part of a layer that works on each token alone."""

import torch.nn.functional as F
from torch import Tensor, nn

from . import expect


class FeedForward(nn.Module):
    r"""The plain two-layer network of the 2017 Transformer: up, ReLU, down.

    $$y = W_\mathrm{down}\,\max(W_\mathrm{up}\,x + b_\mathrm{up},\, 0) + b_\mathrm{down}$$

    Args:
        hidden_size: H, features of one token, in and out.
        intermediate_size: D, features between the two layers (4H in the paper).
        bias: whether the two layers have one.

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.3.
    """

    def __init__(self, hidden_size: int, intermediate_size: int, bias: bool = True) -> None:
        super().__init__()
        expect.positive_int("hidden_size", hidden_size)
        expect.positive_int("intermediate_size", intermediate_size)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """`hidden_states` [..., H] in, the same shape out.

        Raises:
            TypeError: not a floating-point tensor.
            ValueError: the last axis is not H.
        """
        expect.features("hidden_states", hidden_states, self.up_proj.in_features)
        return self.down_proj(F.relu(self.up_proj(hidden_states)))


class SwiGLU(nn.Module):
    r"""Llama's feed-forward network: candidates, each scaled by a gate that the token itself sets.

    $$y = W_\mathrm{down}\,\bigl(\mathrm{SiLU}(W_\mathrm{gate}\,x) \odot W_\mathrm{up}\,x\bigr)$$

    Args:
        hidden_size: H, features of one token, in and out.
        intermediate_size: D, number of candidates; see `intermediate_size` for Llama's choice.
        bias: whether the three layers have one (Llama's have none).

    Source: Shazeer, "GLU Variants Improve Transformer", 2020, equation 6. Same job as `LlamaMLP`.
    """

    def __init__(self, hidden_size: int, intermediate_size: int, bias: bool = False) -> None:
        super().__init__()
        expect.positive_int("hidden_size", hidden_size)
        expect.positive_int("intermediate_size", intermediate_size)
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """`hidden_states` [..., H] in, the same shape out.

        Raises:
            TypeError: not a floating-point tensor.
            ValueError: the last axis is not H.
        """
        expect.features("hidden_states", hidden_states, self.gate_proj.in_features)
        gate = F.silu(self.gate_proj(hidden_states))
        return self.down_proj(gate * self.up_proj(hidden_states))


def intermediate_size(hidden_size: int, multiple_of: int, multiplier: float = 1.0) -> int:
    """D for a given H: 8H/3, times `multiplier`, rounded up to a multiple of `multiple_of`.

    With D = 8H/3 the three matrices of SwiGLU have as many parameters as the two of a plain network
    with D = 4H. Both products are cut to integers before the rounding up, as in Meta's code.

    Args:
        hidden_size: H.
        multiple_of: D is a multiple of this (256 in Llama 2 7B; 1024 and 4096 in Llama 3).
        multiplier: Meta's `ffn_dim_multiplier` (1.3 in Llama 3 8B and 70B).

    Raises:
        ValueError: a size is not a positive integer, or the multiplier not above 0.

    Source: `FeedForward.__init__` in Meta's `llama/model.py`.
    """
    expect.positive_int("hidden_size", hidden_size)
    expect.positive_int("multiple_of", multiple_of)
    expect.above_zero("multiplier", multiplier)
    size = int(multiplier * int(8 * hidden_size / 3))
    expect.positive_int("hidden_size · 8/3 · multiplier, cut to an integer,", size)
    return multiple_of * ((size + multiple_of - 1) // multiple_of)
