"""Rotary position embedding (RoPE): queries and keys are turned by an angle that grows with position.

A head of d features is d/2 pairs; pair i turns by `position · base^(-2i/d)`. Which features make a
pair is a convention, and there are two:

- *half-split*: feature i with feature i + d/2. Hugging Face's Llama, and this package's.
- *interleaved*: feature 2i with feature 2i + 1. Meta's original code, and the paper.

They are one model with the rows of `W_q` and `W_k` in another order: see `interleaved_to_half`.

Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, section 3.
"""

import torch
from torch import Tensor, nn

from . import expect
from .config import LlamaConfig
from .rope_scaling import rope_frequencies


def cos_sin(positions: Tensor, inv_freq: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle, each twice, for the half-split layout.

    Args:
        positions: [S] or [B, S], integers.
        inv_freq: [d/2], radians per position.

    Returns:
        cos, sin: [S, d] or [B, S, d] in fp32: bf16 could not tell position 256 from 257.
    """
    expect.integers("positions", positions)
    expect.floating("inv_freq", inv_freq)
    expect.same_device("positions", positions, "inv_freq", inv_freq)
    angles = positions[..., None].float() * inv_freq.float()
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate_half(x: Tensor) -> Tensor:
    """A quarter turn of every half-split pair: halves `[a, b]` of the last axis become `[-b, a]`."""
    expect.even_features("x", x)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Turn queries and keys by their positions (half-split layout).

    Args:
        q: [B, N, S, d]. k: [B, K, S, d].
        cos, sin: [S, d] or [B, S, d] from `cos_sin`, cast to the dtype of q and k.

    Returns:
        q, k: turned, same shapes.

    Raises:
        TypeError: not floating-point tensors.
        ValueError: another number of features or tokens, another batch, or another dtype. Without
            this check a wrong axis would broadcast, and a wrong dtype would turn the output into fp32.
    """
    expect.turns(q, k, cos, sin)
    cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)  # the same for every head
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class RotaryEmbedding(nn.Module):
    """Positions in, `cos` and `sin` out: once per forward pass, shared by all layers.

    It keeps no tensor: a buffer of frequencies would be rounded by `model.to(torch.bfloat16)`.

    Args:
        config: `head_dim`, `rope_theta`, `rope_scaling` and `max_position_embeddings` are used.

    Same job as `LlamaRotaryEmbedding`, from the positions of this call alone. (With the dynamic rule
    Hugging Face's keeps the stretch of a longer text before, until one within the trained length comes.)
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        expect.instance("config", config, LlamaConfig)
        self.config = config

    def forward(self, positions: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """`positions` [S] or [B, S] in; cos and sin out, [S, d] or [B, S, d], rounded to `dtype` last."""
        expect.floating_dtype("dtype", dtype)
        cos, sin = cos_sin(positions, rope_frequencies(self.config, positions))
        return cos.to(dtype), sin.to(dtype)


def rotate_2d(x: Tensor, angle: Tensor | float) -> Tensor:
    """Turn vectors of the plane counter-clockwise.

    Args:
        x: [..., 2].
        angle: radians, one number or a tensor of shape [...].
    """
    expect.features("x", x, 2)
    angle = torch.as_tensor(angle, dtype=x.dtype, device=x.device)
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((x[..., 0] * cos - x[..., 1] * sin, x[..., 0] * sin + x[..., 1] * cos), dim=-1)


def rotation_matrix(position: int, inv_freq: Tensor) -> Tensor:
    """The paper's matrix R of one position, [d, d]: 2×2 rotations on the diagonal (interleaved layout)."""
    expect.floating("inv_freq", inv_freq)
    angles = position * inv_freq.float()
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2)
    return torch.block_diag(*blocks)


def apply_rope_interleaved(x: Tensor, positions: Tensor, inv_freq: Tensor) -> Tensor:
    """Turn pairs (2i, 2i + 1) of x [..., S, d] by `positions` [S], pair by pair."""
    expect.floating("inv_freq", inv_freq)
    expect.features("x", x, 2 * inv_freq.shape[-1])
    expect.integers("positions", positions)
    angles = positions[..., None].float() * inv_freq.float()
    pairs = x.float().unflatten(-1, (-1, 2))
    return rotate_2d(pairs, angles).flatten(-2).to(x.dtype)


def apply_rope_complex(x: Tensor, positions: Tensor, inv_freq: Tensor) -> Tensor:
    """The same turn as `apply_rope_interleaved`, each pair read as one complex number times e^{iθ}."""
    expect.floating("inv_freq", inv_freq)
    expect.features("x", x, 2 * inv_freq.shape[-1])
    expect.integers("positions", positions)
    angles = positions[..., None].float() * inv_freq.float()
    turns = torch.polar(torch.ones_like(angles), angles)
    numbers = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(numbers * turns).flatten(-2).to(x.dtype)


def interleaved_to_half(weight: Tensor, n_heads: int) -> Tensor:
    """Reorder the rows of Meta's `W_q` or `W_k` so that the half-split code gives the same scores.

    Args:
        weight: [n_heads · d, H], or a bias [n_heads · d]; in every head rows 2i, 2i + 1 are a pair.
        n_heads: N for `W_q`, K for `W_k`.

    Returns:
        The same shape; in every head rows i, i + d/2 are a pair.
    """
    expect.head_rows("weight", weight, n_heads)
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def half_to_interleaved(weight: Tensor, n_heads: int) -> Tensor:
    """The way back from `interleaved_to_half`, same arguments."""
    expect.head_rows("weight", weight, n_heads)
    return weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
