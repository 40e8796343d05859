"""Wrong implementations that run: what people really write. Each must fail its proof.

RMSNorm: f(x, weight, eps). SwiGLU: f(x, gate_weight, up_weight, down_weight). RoPE: f(q, k, positions),
for base 1e4, half-split layout. They are the catalogues of the checkers, and for RoPE what is wrong before
`apply_rope`: in the angles.
"""

import torch

from lecture_utils import check
from lecture_utils.llama import apply_rope, cos_sin, inv_freq

# Left out is what is right on every input of the proofs: eps 1e-6, and texts in batches.
RMS_NORM = {m.id: m.functions[0] for m in check.rms_norm.mistakes if m.id != "eps-1e-6"}
SWIGLU = {m.id: m.functions[0] for m in check.swiglu.mistakes if m.id != "three-axes-only"}


def _angles(positions, d, base=10000.0):
    return cos_sin(positions, inv_freq(d, base))


def _turned_wrongly(function):
    def rope(q, k, positions):
        return function(q, k, *(t.to(q.dtype) for t in _angles(positions, q.shape[-1])))

    return rope


def _turn(q, k, cos, sin):
    return apply_rope(q, k, cos.to(q.dtype), sin.to(q.dtype))


def _bf16_angles(q, k, positions):
    angles = positions[..., None].bfloat16() * inv_freq(q.shape[-1]).bfloat16()
    angles = torch.cat((angles, angles), -1).float()
    return _turn(q, k, angles.cos(), angles.sin())


ROPE = {m.id: _turned_wrongly(m.functions[0]) for m in check.apply_rope.mistakes} | {
    "base-5e5": lambda q, k, p: _turn(q, k, *_angles(p, q.shape[-1], 5e5)),
    "bf16-angles": _bf16_angles,
    "positions-ignored": lambda q, k, p: _turn(
        q, k, *_angles(torch.arange(q.shape[-2]).expand(p.shape), q.shape[-1])
    ),
    "positions-from-1": lambda q, k, p: _turn(q, k, *_angles(p + 1, q.shape[-1])),
    "exponent-i-over-d": lambda q, k, p: _turn(q, k, *cos_sin(p, inv_freq(q.shape[-1]).sqrt())),
}
