"""Wrong implementations that run: what people really write. Each must fail its proof.

RMSNorm: f(x, weight, eps). SwiGLU: f(x, gate_weight, up_weight, down_weight). RoPE: f(q, k, positions),
for base 1e4, half-split layout. The first two are the catalogues of the checkers.
"""

import torch

from lecture_utils import check
from lecture_utils.llama import apply_rope_interleaved, cos_sin, inv_freq, rotate_half

# Left out is what is right on every input of the proofs: eps 1e-6, and texts in batches.
RMS_NORM = {m.id: m.functions[0] for m in check.rms_norm.mistakes if m.id != "eps-1e-6"}
SWIGLU = {m.id: m.functions[0] for m in check.swiglu.mistakes if m.id != "three-axes-only"}


def _turn(q, k, cos, sin):
    cos, sin = cos[..., None, :, :].to(q.dtype), sin[..., None, :, :].to(q.dtype)
    return tuple(x * cos + rotate_half(x) * sin for x in (q, k))


def _angles(positions, d, base=10000.0):
    return cos_sin(positions, inv_freq(d, base))


def _interleaved(q, k, positions):
    frequencies = inv_freq(q.shape[-1])
    return tuple(
        torch.stack([apply_rope_interleaved(r, p, frequencies) for r, p in zip(x, positions, strict=True)])
        for x in (q, k)
    )


def _mixed(q, k, positions):
    angles = (positions[..., None].float() * inv_freq(q.shape[-1])).repeat_interleave(2, -1)
    return _turn(q, k, angles.cos(), angles.sin())


def _other_way(q, k, positions):
    cos, sin = _angles(positions, q.shape[-1])
    return _turn(q, k, cos, -sin)


def _along_heads(q, k, positions):
    # Meant for [B, S, heads, d]: position counts along the axis that holds the heads here.
    def turn(x):
        cos, sin = _angles(torch.arange(x.shape[1]), x.shape[-1])
        cos, sin = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
        return x * cos + rotate_half(x) * sin

    return turn(q), turn(k)


def _bf16_angles(q, k, positions):
    angles = positions[..., None].bfloat16() * inv_freq(q.shape[-1]).bfloat16()
    angles = torch.cat((angles, angles), -1).float()
    return _turn(q, k, angles.cos(), angles.sin())


def _half_not_negated(q, k, positions):
    cos, sin = (t[..., None, :, :].to(q.dtype) for t in _angles(positions, q.shape[-1]))
    return tuple(x * cos + rotate_half(x).abs() * sin for x in (q, k))


ROPE = {
    "interleaved": _interleaved,
    "mixed-layouts": _mixed,
    "other-way": _other_way,
    "along-heads": _along_heads,
    "base-5e5": lambda q, k, p: _turn(q, k, *_angles(p, q.shape[-1], 5e5)),
    "bf16-angles": _bf16_angles,
    "positions-ignored": lambda q, k, p: _turn(q, k, *_angles(torch.arange(q.shape[-2]), q.shape[-1])),
    "positions-from-1": lambda q, k, p: _turn(q, k, *_angles(p + 1, q.shape[-1])),
    "key-not-turned": lambda q, k, p: (_turn(q, k, *_angles(p, q.shape[-1]))[0], k * 1),
    "not-turned": lambda q, k, p: (q * 1, k * 1),
    "exponent-i-over-d": lambda q, k, p: _turn(q, k, *cos_sin(p, inv_freq(q.shape[-1]).sqrt())),
    "half-not-negated": _half_not_negated,
}
