"""Every part of the course with what it is held against: the rows of `make parity`."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from .. import llama
from ..llama import LlamaConfig
from . import formula, reference
from .compare import DTYPES, assert_matches
from .run import Part
from .table import ParityTable


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
        return assert_matches(self.ours if ours is None else ours, self.theirs, *self.inputs, **options)


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


class _Attention(llama.Attention):
    """Ours with the arguments of `reference.LlamaAttention`."""

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor, allowed: Tensor) -> Tensor:
        return super().forward(hidden_states, cos, sin, allowed.bool())


class _DecoderLayer(llama.DecoderLayer):
    """Ours with the arguments of `reference.LlamaDecoderLayer`."""

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor, allowed: Tensor) -> Tensor:
        return super().forward(hidden_states, cos, sin, allowed.bool())


class _Logits(llama.Llama):
    """Ours with the arguments of `reference.LlamaLogits`."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask=attention_mask) * attention_mask[..., None]


_ROPE = LlamaConfig(hidden_size=256, num_attention_heads=4, max_position_embeddings=64, rope_theta=500000.0)
_OTHER = replace(_ROPE, head_dim=48, rope_theta=10000.0)  # head_dim is not hidden_size / heads
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_LLAMA3_OTHER = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.5,
    "high_freq_factor": 5.0,
    "original_max_position_embeddings": 4096,
}

# Every rule, and every number of a rule with two values, so that a constant in its place shows.
ROPE_CONFIGS: dict[str, LlamaConfig] = {
    "default": _ROPE,
    "default, other numbers": _OTHER,
    "linear": replace(_ROPE, rope_scaling={"rope_type": "linear", "factor": 4.0}),
    "linear, other numbers": replace(_OTHER, rope_scaling={"rope_type": "linear", "factor": 2.5}),
    "dynamic": replace(_ROPE, rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
    "dynamic, other numbers": replace(
        _OTHER, rope_scaling={"rope_type": "dynamic", "factor": 3.0}, max_position_embeddings=128
    ),
    "llama3": replace(_ROPE, rope_scaling=_LLAMA3, max_position_embeddings=131072),
    "llama3, other numbers": replace(_OTHER, rope_scaling=_LLAMA3_OTHER, max_position_embeddings=131072),
}


def proofs() -> list[Proof]:
    """All comparisons, in lesson order."""
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    tokens = randn(3, 5, 96)  # [B, S, H], no two sizes equal
    small = {"magnitudes": (1.0, 0.1, 4.0)}  # a product of two projections: fp16 ends at 65504
    mlp_config = LlamaConfig(hidden_size=96, intermediate_size=160, num_attention_heads=4)
    biased_config = LlamaConfig(hidden_size=96, intermediate_size=160, num_attention_heads=4, mlp_bias=True)
    # No row of positions counts from 0 to S − 1, and no two rows are alike.
    positions = torch.tensor([[0, 1, 2, 7, 63, 500, 30], [3, 4, 5, 6, 100, 131071, 8]])
    short = torch.tensor([[0, 1, 2, 7, 62, 50, 30], [3, 4, 5, 6, 10, 61, 8]])

    rows = [
        Proof("01", "LayerNorm", llama.LayerNorm(96), nn.LayerNorm(96), (tokens,),
              {"formula": formula.layer_norm}),
        # x − mean loses digits here, in both; mean(x²) − mean(x)² would lose far more.
        Proof("01", "LayerNorm, tokens far from 0", llama.LayerNorm(96), nn.LayerNorm(96), (tokens + 30,),
              {"kind": "matmul", "dtypes": [torch.float32], "magnitudes": (1.0,)}),
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
        Proof("04", "SwiGLU, large gates", llama.SwiGLU(96, 160),
              reference.LlamaMLP(reference.llama_config(mlp_config)), (tokens,),
              {"kind": "matmul", "dtypes": [torch.float32], "magnitudes": (100.0,)}),
        Proof("04", "SwiGLU with bias", llama.SwiGLU(96, 160, bias=True),
              reference.LlamaMLP(reference.llama_config(biased_config)), (tokens,),
              {"kind": "matmul", "formula": formula.swiglu, **small}),
    ]  # fmt: skip
    # A step of decoding has one token a text, and a layer may be given a text without a batch.
    for proof in [
        row for row in rows if row.name in ("LayerNorm", "RMSNorm, eps 1e-06", "FeedForward", "SwiGLU")
    ]:
        rows.append(replace(proof, name=f"{proof.name}, one token", inputs=(tokens[:, :1],)))
        rows.append(replace(proof, name=f"{proof.name}, no batch", inputs=(tokens[0],)))
    for name in ("sigmoid", "tanh", "relu", "leaky_relu", "gelu", "silu"):
        saturating = name in ("sigmoid", "tanh")
        part = (getattr(llama, name), reference.ACT2FN[name], (tokens,))
        options = {"kind": "saturating" if saturating else "elementwise", "formula": getattr(formula, name)}
        rows.append(Proof("05", name, *part, {**options, "magnitudes": (1.0, 1e-3, 8.0)}))
        # Far out, where a plain exp overflows. In 16 bits PyTorch's own slope of the two is off there.
        options |= {"magnitudes": (100.0,), "dtypes": [torch.float32] if saturating else DTYPES}
        rows.append(Proof("05", f"{name}, large inputs", *part, options))
    for name, config in ROPE_CONFIGS.items():
        theirs = reference.LlamaRotaryEmbedding(reference.llama_config(config))
        # The longest position is in the last row of one, and in the first row of the other.
        for text, places in (("", positions), (", short text", short.flip(0))):
            rows.append(
                Proof("06", f"RotaryEmbedding, {name}{text}", _rotary(config), theirs,
                      (randn(2, 7, 1), places), {"kind": "exact"})
            )  # fmt: skip
    cos, sin = llama.cos_sin(positions, llama.inv_freq(24))
    q, k = randn(2, 6, 7, 24), randn(2, 3, 7, 24)  # N ≠ K ≠ S
    rows += [
        Proof("06", "rotate_half", llama.rotate_half, reference.rotate_half, (q,),
              {"kind": "exact", "formula": formula.rotate_half}),
        Proof("06", "apply_rope", llama.apply_rope, reference.apply_rotary_pos_emb, (q, k, cos, sin),
              {"kind": "exact", "formula": formula.apply_rope, "magnitudes": (1.0, 0.1, 30.0)}),
    ]  # fmt: skip
    for name in ("default", "llama3"):
        rope, theirs = _rope(ROPE_CONFIGS[name]), reference.LlamaRope(ROPE_CONFIGS[name])
        q, k = randn(2, 6, 7, 64), randn(2, 3, 7, 64)
        for text, inputs in (
            ("", (q, k, positions)),
            (", one token", (q[:, :, :1], k[:, :, :1], positions[:, 4:5])),
        ):
            name_here = f"RoPE from positions, {name}{text}"
            rows.append(Proof("06", name_here, rope, theirs, inputs, {"kind": "exact"}))
    return rows + _whole_parts(randn)


# head_dim is not hidden_size / heads; grouped, multi-query and multi-head attention.
_ATTENTION = LlamaConfig(
    vocab_size=50,
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=16,
)
ATTENTION_CONFIGS: dict[str, LlamaConfig] = {
    "grouped": _ATTENTION,
    "multi-query": replace(_ATTENTION, num_key_value_heads=1),
    "multi-head, biases": replace(_ATTENTION, num_key_value_heads=6, attention_bias=True, mlp_bias=True),
}


def _whole_parts(randn: Callable[..., Tensor]) -> list[Proof]:
    """Attention, decoder layer and model, eager and sdpa, with and without padding."""
    rows = []
    for name, config in ATTENTION_CONFIGS.items():
        for implementation in ("eager", "sdpa"):
            theirs = reference.llama_config(config, implementation)
            label = f"{name}, {implementation}"
            for text, padding in (("", 0), (", padded", 3)):
                x = randn(2, 7, config.hidden_size)
                real = torch.ones(2, 7, dtype=torch.long)
                real[0, :padding] = 0
                allowed = llama.causal_mask(7, 7, torch.bool) & real[:, None, None].bool()
                allowed |= torch.eye(7, dtype=torch.bool)  # padding sees itself, so that no row is empty
                cos, sin = llama.cos_sin(torch.arange(7) + 5, llama.inv_freq(config.head_dim))
                inputs = (x, cos.expand(2, -1, -1), sin.expand(2, -1, -1), allowed.long())
                options = {"kind": "matmul", "magnitudes": (1.0, 0.1)}
                # At a token of zeros RMSNorm's slope is 1/√eps: with biases, gradients leave fp16.
                finite = {"dtypes": DTYPES[:2]} if config.mlp_bias else {}
                rows += [
                    Proof("07", f"Attention, {label}{text}", _Attention(config, 0, implementation),
                          reference.LlamaAttention(theirs, 0), inputs, options),
                    Proof("09", f"DecoderLayer, {label}{text}", _DecoderLayer(config, 0, implementation),
                          reference.LlamaDecoderLayer(theirs, 0), inputs, options | finite),
                ]  # fmt: skip
                # Another order of adding up, in 16 bits, through three layers: not to be compared there.
                repeated = reference.SDPA_REPEATS_HEADS and implementation == "sdpa" and not padding
                if repeated and config.num_key_value_heads < config.num_attention_heads:
                    options = options | {"dtypes": DTYPES[:1]}
                ids = torch.randint(50, (2, 7), generator=torch.Generator().manual_seed(padding))
                for tied in (False, True) if name == "grouped" else (False,):
                    tied_config = replace(config, tie_word_embeddings=tied)
                    hf = reference.LlamaLogits(reference.llama_config(tied_config, implementation))
                    rows.append(
                        Proof("11", f"Llama, {label}{text}{', tied' if tied else ''}",
                              _Logits(tied_config, implementation), hf, (ids, real), options)
                    )  # fmt: skip
    return rows
