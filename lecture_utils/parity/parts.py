"""Every part of the course with what it is held against: the rows of `make parity`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .. import llama
from ..llama import LlamaConfig
from . import formula, reference
from .compare import ParityTable, Part, assert_matches


@dataclass
class Proof:
    """One comparison, ready to run."""

    lesson: str
    name: str
    ours: Part
    theirs: Part
    inputs: tuple[Tensor, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, ours: Part | None = None, **options: Any) -> ParityTable:
        """The table; `ours` and `options` replace what is held against the reference."""
        options = {"title": f"{self.lesson} · {self.name}", **self.options, **options}
        return assert_matches(ours or self.ours, self.theirs, *self.inputs, **options)


def _named_sequential(hidden_size: int, intermediate_size: int) -> nn.Module:
    """`torch.nn`'s two layers under the names of ours."""
    network = nn.Sequential()
    network.add_module("up_proj", nn.Linear(hidden_size, intermediate_size))
    network.add_module("relu", nn.ReLU())
    network.add_module("down_proj", nn.Linear(intermediate_size, hidden_size))
    return network


def _rotary(config: LlamaConfig) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Our rotary embedding with Hugging Face's arguments: a tensor for its dtype, positions [B, S]."""
    rotary = llama.RotaryEmbedding(config)
    return lambda x, positions: rotary(positions, x.dtype)


def _rope(config: LlamaConfig) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Our two steps as one, with the arguments of `reference.LlamaRope`."""
    rotary = llama.RotaryEmbedding(config)
    return lambda q, k, positions: llama.apply_rope(q, k, *rotary(positions, q.dtype))


ROPE_SCALINGS: dict[str, dict[str, Any] | None] = {
    "default": None,
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


def rope_config(scaling: str) -> LlamaConfig:
    """A config with head_dim 64 and one rule of `ROPE_SCALINGS`, made for 64 positions (llama3: 131072)."""
    return LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        max_position_embeddings=131072 if scaling == "llama3" else 64,
        rope_theta=500000.0,
        rope_scaling=ROPE_SCALINGS[scaling],
    )


def proofs() -> list[Proof]:
    """All comparisons, in lesson order."""
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    tokens = randn(3, 5, 96)  # [B, S, H], no two sizes equal
    small = {"magnitudes": (1.0, 0.1, 4.0)}  # a product of two projections: fp16 ends at 65504
    mlp_config = LlamaConfig(hidden_size=96, intermediate_size=160, num_attention_heads=4)
    biased_config = LlamaConfig(hidden_size=96, intermediate_size=160, num_attention_heads=4, mlp_bias=True)
    positions = torch.tensor([[0, 1, 2, 7, 63, 500, 30], [3, 4, 5, 6, 100, 131071, 8]])

    rows = [
        Proof("01", "LayerNorm", llama.LayerNorm(96), nn.LayerNorm(96), (tokens,),
              {"formula": formula.layer_norm}),
    ]  # fmt: skip
    for eps in (1e-6, 1e-5):
        rows.append(
            Proof(
                "02",
                f"RMSNorm, eps {eps:g}",
                llama.RMSNorm(96, eps),
                reference.LlamaRMSNorm(96, eps),
                (tokens,),
                {
                    "kind": "exact",
                    "formula": lambda p, x, eps=eps: formula.rms_norm(p, x, eps),
                    "magnitudes": (1.0, 1e-3, 300.0),  # 300² overflows fp16 without the upcast
                },
            )
        )
    rows += [
        Proof("03", "FeedForward", llama.FeedForward(96, 160), _named_sequential(96, 160), (tokens,),
              {"kind": "matmul", "formula": formula.feed_forward, **small}),
        Proof("03", "up_proj", llama.SwiGLU(96, 160).up_proj,
              reference.LlamaMLP(reference.llama_config(mlp_config)).up_proj, (tokens,),
              {"kind": "matmul"}),
        Proof("04", "SwiGLU", llama.SwiGLU(96, 160),
              reference.LlamaMLP(reference.llama_config(mlp_config)), (tokens,),
              {"kind": "matmul", "formula": formula.swiglu, **small}),
        Proof("04", "SwiGLU with bias", llama.SwiGLU(96, 160, bias=True),
              reference.LlamaMLP(reference.llama_config(biased_config)), (tokens,),
              {"kind": "matmul", "formula": formula.swiglu, **small}),
    ]  # fmt: skip
    for name in ("sigmoid", "tanh", "relu", "leaky_relu", "gelu", "silu"):
        rows.append(
            Proof("05", name, getattr(llama, name), reference.ACT2FN[name], (tokens,),
                  {"formula": getattr(formula, name), "magnitudes": (1.0, 1e-3, 8.0),
                   "kind": "saturating" if name in ("sigmoid", "tanh") else "elementwise"})
        )  # fmt: skip
    for scaling in ROPE_SCALINGS:
        config = rope_config(scaling)
        rows.append(
            Proof("06", f"RotaryEmbedding, {scaling}", _rotary(config),
                  reference.LlamaRotaryEmbedding(reference.llama_config(config)),
                  (randn(2, 7, 1), positions), {"kind": "exact"})
        )  # fmt: skip
    cos, sin = llama.cos_sin(positions, llama.inv_freq(24))
    q, k = randn(2, 6, 7, 24), randn(2, 3, 7, 24)  # N ≠ K ≠ S
    rows += [
        Proof("06", "rotate_half", llama.rotate_half, reference.rotate_half, (q,),
              {"kind": "exact", "formula": formula.rotate_half}),
        Proof("06", "apply_rope", llama.apply_rope, reference.apply_rotary_pos_emb, (q, k, cos, sin),
              {"kind": "exact", "formula": formula.apply_rope, "magnitudes": (1.0, 0.1, 30.0)}),
    ]  # fmt: skip
    for scaling in ("default", "llama3"):
        config = rope_config(scaling)
        rows.append(
            Proof(
                "06",
                f"RoPE from positions, {scaling}",
                _rope(config),
                reference.LlamaRope(config),
                (randn(2, 6, 7, 64), randn(2, 3, 7, 64), positions),
                {"kind": "exact"},
            )
        )
    return rows
