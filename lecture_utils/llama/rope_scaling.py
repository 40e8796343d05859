"""The frequencies of RoPE, and the rules that stretch them for texts longer than those of training."""

import math

import torch
from torch import Tensor

from . import expect
from .config import LlamaConfig


def inv_freq(head_dim: int, base: float = 10000.0, device: torch.device | None = None) -> Tensor:
    r"""Radians that each pair turns per position: $\theta_i = \mathrm{base}^{-2i/d}$.

    Args:
        head_dim: d, even.
        base: `rope_theta` of the config (1e4 in Llama 2, 5e5 in Llama 3).

    Returns:
        [d/2] in fp32, from 1 (a turn in 6.28 positions) downwards.

    Source: Su et al., "RoFormer", 2021, section 3.3.
    """
    expect.positive_int("head_dim", head_dim, even=True)
    expect.above_zero("base", base)
    exponents = torch.arange(0, head_dim, 2, device=device).float() / head_dim
    return 1.0 / (base**exponents)


def linear_scaling(inv_freq: Tensor, factor: float) -> Tensor:
    """Position interpolation: every pair `factor` times slower, [d/2] → [d/2].

    Source: Chen et al., "Extending Context Window of LLMs via Positional Interpolation", 2023.
    """
    expect.floating("inv_freq", inv_freq)
    expect.above_zero("factor", factor)
    return inv_freq / factor


def dynamic_scaling(
    head_dim: int, base: float, factor: float, seq_len: Tensor | int, max_position_embeddings: int
) -> Tensor:
    """Dynamic NTK: a larger base once the text is longer than the model was made for, [d/2].

    Args:
        head_dim: d, even and above 2.
        base: `rope_theta`.
        factor: growth of the base per trained length.
        seq_len: tokens of the text at hand (a number, or a tensor of one integer, whose device the
            result is on); up to `max_position_embeddings` nothing changes.
        max_position_embeddings: longest text of training, in tokens.

    Source: Peng et al., "YaRN", 2023, section 3.3; the formula with a factor is Hugging Face's.
    """
    expect.positive_int("head_dim", head_dim, even=True)
    expect.above_zero("base", base)
    expect.above_zero("factor", factor)
    expect.positive_int("max_position_embeddings", max_position_embeddings)
    if head_dim == 2:
        raise ValueError("head_dim must be above 2: with one pair there is no slower one to stretch")
    if not isinstance(seq_len, Tensor):
        expect.positive_int("seq_len", seq_len)
    elif seq_len.numel() != 1 or seq_len.is_floating_point():
        raise ValueError(f"seq_len must be one integer; its shape is {list(seq_len.shape)}, {seq_len.dtype}")
    # The base is computed as a tensor in fp32, as Hugging Face does: at position 30000 it shows.
    longest = torch.as_tensor(seq_len).clamp(min=max_position_embeddings)
    growth = factor * longest / max_position_embeddings - (factor - 1)
    exponents = torch.arange(0, head_dim, 2, device=longest.device).float() / head_dim
    return 1.0 / (base * growth ** (head_dim / (head_dim - 2))) ** exponents


def llama3_scaling(
    inv_freq: Tensor,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: int,
) -> Tensor:
    """Llama 3.1's rule: fast pairs stay, slow pairs become `factor` times slower, a blend between, [d/2].

    Args:
        inv_freq: [d/2].
        factor: 8 in Llama 3.1, 32 in Llama 3.2.
        low_freq_factor: pairs that turn fewer times than this over the original length are slowed.
        high_freq_factor: pairs that turn more often than this are kept.
        original_max_position_embeddings: length of training before the stretch, in tokens.

    Source: `apply_scaling` in Meta's `llama_models/llama3/model.py`.
    """
    expect.floating("inv_freq", inv_freq)
    expect.above_zero("factor", factor)
    expect.positive_int("original_max_position_embeddings", original_max_position_embeddings)
    if not high_freq_factor > low_freq_factor > 0:
        raise ValueError(
            "high_freq_factor must be above low_freq_factor, and both above 0, "
            f"not {high_freq_factor!r} and {low_freq_factor!r}"
        )
    turns = original_max_position_embeddings / (2 * math.pi / inv_freq)  # in this order: HF's bits
    keep = ((turns - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0, 1)
    return (1 - keep) * inv_freq / factor + keep * inv_freq


def rope_frequencies(config: LlamaConfig, positions: Tensor) -> Tensor:
    """The frequencies that a model uses, [d/2], on the device of `positions`.

    Args:
        config: `rope_scaling` names the rule.
        positions: [S] or [B, S], integers; only the dynamic rule looks at their values.

    Raises:
        ValueError: an unknown rule, or a rule without its numbers.
    """
    expect.integers("positions", positions)
    device = positions.device
    scaling = dict(config.rope_scaling or {"rope_type": "default"})
    rule = scaling.pop("rope_type", None)
    plain = inv_freq(config.head_dim, config.rope_theta, device)
    try:
        if rule == "default":
            return plain
        if rule == "linear":
            return linear_scaling(plain, scaling["factor"])
        if rule == "dynamic":
            return dynamic_scaling(
                config.head_dim,
                config.rope_theta,
                scaling["factor"],
                positions.max() + 1,
                config.max_position_embeddings,
            )
        if rule == "llama3":
            return llama3_scaling(
                plain,
                scaling["factor"],
                scaling["low_freq_factor"],
                scaling["high_freq_factor"],
                scaling["original_max_position_embeddings"],
            )
    except KeyError as missing:
        raise ValueError(f"rope_scaling of type {rule!r} lacks {missing.args[0]!r}") from None
    raise ValueError(f"unknown rope_type {rule!r}: default, linear, dynamic and llama3 are known")
