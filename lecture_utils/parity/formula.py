"""The parts as formulas in float64: the third opinion when ours and theirs differ.

Each takes `(parameters, *inputs)`, with the parameters by name, and is written from the definition,
not from either implementation.
"""

import math

import torch
from torch import Tensor

Parameters = dict[str, Tensor]


def layer_norm(parameters: Parameters, x: Tensor, eps: float = 1e-5) -> Tensor:
    """(x − mean) / sqrt(var + eps) · weight + bias."""
    variance = (x**2).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2
    standard = (x - x.mean(-1, keepdim=True)) / (variance + eps).sqrt()
    return standard * parameters["weight"] + parameters["bias"]


def rms_norm(parameters: Parameters, x: Tensor, eps: float = 1e-6) -> Tensor:
    """weight · x / sqrt(mean of squares + eps)."""
    return parameters["weight"] * x / ((x**2).sum(-1, keepdim=True) / x.shape[-1] + eps).sqrt()


def feed_forward(parameters: Parameters, x: Tensor) -> Tensor:
    """down(max(up(x), 0))."""
    return _linear(parameters, "down_proj", _linear(parameters, "up_proj", x).clamp(min=0))


def swiglu(parameters: Parameters, x: Tensor) -> Tensor:
    """down(gate / (1 + exp(−gate)) · up)."""
    gate = _linear(parameters, "gate_proj", x)
    return _linear(parameters, "down_proj", silu({}, gate) * _linear(parameters, "up_proj", x))


def _linear(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    y = torch.einsum("...i,oi->...o", x, parameters[f"{name}.weight"])
    return y + parameters.get(f"{name}.bias", 0.0)


def sigmoid(parameters: Parameters, x: Tensor) -> Tensor:
    """1 / (1 + exp(−x))."""
    return 1 / (1 + torch.exp(-x))


def tanh(parameters: Parameters, x: Tensor) -> Tensor:
    """(1 − exp(−2x)) / (1 + exp(−2x))."""
    return -torch.expm1(-2 * x) / (1 + torch.exp(-2 * x))


def relu(parameters: Parameters, x: Tensor) -> Tensor:
    """x if x > 0, else 0."""
    return torch.where(x > 0, x, 0.0)


def leaky_relu(parameters: Parameters, x: Tensor) -> Tensor:
    """x if x > 0, else x / 100."""
    return torch.where(x > 0, x, x / 100)


def gelu(parameters: Parameters, x: Tensor) -> Tensor:
    """x · Φ(x)."""
    return x * torch.erfc(-x / math.sqrt(2)) / 2


def silu(parameters: Parameters, x: Tensor) -> Tensor:
    """x / (1 + exp(−x))."""
    return x / (1 + torch.exp(-x))


def rotate_half(parameters: Parameters, x: Tensor) -> Tensor:
    """[a, b] → [−b, a]."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def apply_rope(
    parameters: Parameters, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor]:
    """Feature i and i + d/2 as the real and imaginary part of a number, times cos + i·sin."""
    half = q.shape[-1] // 2
    first, second = cos[..., None, :, :half], cos[..., None, :, half:]
    sin_first, sin_second = sin[..., None, :, :half], sin[..., None, :, half:]

    def turn(x: Tensor) -> Tensor:
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * first - b * sin_first, b * second + a * sin_second), -1)

    return turn(q), turn(k)
