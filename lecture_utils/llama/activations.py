"""Activation functions by their formulas, SiLU first: the one that Llama's gate uses.

Those with an exponential work in fp32 (float64 for a float64 input) and round once, to the dtype of
their input, as PyTorch's fused kernels do. The layers use `torch.nn.functional.silu`: equal up to a
rounding, in one pass over memory.
"""

import math

import torch
from torch import Tensor

from . import expect


def sigmoid(x: Tensor) -> Tensor:
    r"""$\sigma(x) = 1 / (1 + e^{-x})$, any shape, between 0 and 1.

    The two branches are one function; `exp` only ever sees a number below 0, and cannot overflow.
    """
    expect.floating("x", x)
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    small = torch.exp(torch.where(z >= 0, -z, z))  # not -|z|: its slope at 0 would be 0
    return torch.where(z >= 0, 1 / (1 + small), small / (1 + small)).to(x.dtype)


def tanh(x: Tensor) -> Tensor:
    r"""$\tanh(x) = 2\sigma(2x) - 1$, any shape, between −1 and 1."""
    expect.floating("x", x)
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    small = torch.expm1(torch.where(z >= 0, -2 * z, 2 * z))  # expm1 keeps the digits near 0
    return (torch.where(z >= 0, -small, small) / (2 + small)).to(x.dtype)


def relu(x: Tensor) -> Tensor:
    r"""$\max(x, 0)$, any shape."""
    expect.floating("x", x)
    return torch.where(x > 0, x, 0)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    r"""$x$ where $x > 0$, `negative_slope` times $x$ elsewhere, any shape."""
    expect.floating("x", x)
    return torch.where(x > 0, x, negative_slope * x)


def gelu(x: Tensor) -> Tensor:
    r"""$x \cdot \Phi(x)$, any shape, with $\Phi$ the share of a standard normal that lies below $x$.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016, section 2.
    """
    expect.floating("x", x)
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    return (0.5 * z * torch.erfc(-z / math.sqrt(2))).to(x.dtype)


def swish(x: Tensor, beta: float = 1.0) -> Tensor:
    r"""$x \cdot \sigma(\beta x)$, any shape: $x/2$ at $\beta = 0$, ReLU as $\beta \to \infty$.

    Source: Ramachandran, Zoph, Le, "Searching for Activation Functions", 2017, section 4.
    """
    expect.floating("x", x)
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    return (z * torch.sigmoid(beta * z)).to(x.dtype)


def silu(x: Tensor) -> Tensor:
    r"""$x \cdot \sigma(x)$, any shape: Swish with $\beta = 1$.

    Not a probability: its minimum is −0.27846, at x = −1.27846, and it has no maximum.

    Source: Elfwing, Uchibe, Doya, "Sigmoid-Weighted Linear Units", 2017, section 2.
    """
    expect.floating("x", x)
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    return (z * torch.sigmoid(z)).to(x.dtype)


def silu_grad(x: Tensor) -> Tensor:
    r"""The slope of SiLU, $\sigma(x)\,(1 + x\,(1 - \sigma(x)))$, any shape: 0.5 at 0."""
    expect.floating("x", x)
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    s = torch.sigmoid(z)
    return (s * (1 + z * (1 - s))).to(x.dtype)
