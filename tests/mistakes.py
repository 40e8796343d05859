"""Wrong implementations that run: what people really write. Each must fail its proof.

RMSNorm: f(x, weight, eps). SwiGLU: f(x, gate_weight, up_weight, down_weight). RoPE: f(q, k, positions),
for base 1e4, half-split layout.
"""

import torch
import torch.nn.functional as F

from lecture_utils.llama import apply_rope_interleaved, cos_sin, inv_freq, rotate_half


def _normalize(x, mean_square, weight, eps):
    return weight * (x.float() * torch.rsqrt(mean_square + eps)).to(x.dtype)


def _mean_square(x, axis=-1):
    return x.float().square().mean(axis, keepdim=True)


def _mean_subtracted(x, weight, eps):
    centred = x - x.mean(-1, keepdim=True)
    return _normalize(centred, _mean_square(centred), weight, eps)


def _eps_outside(x, weight, eps):
    return weight * (x.float() / (_mean_square(x).sqrt() + eps)).to(x.dtype)


def _weight_before_cast(x, weight, eps):
    return (weight.float() * x.float() * torch.rsqrt(_mean_square(x) + eps)).to(x.dtype)


RMS_NORM = {
    "mean-subtracted": _mean_subtracted,
    "eps-outside-root": _eps_outside,
    "eps-1e-5": lambda x, w, eps: _normalize(x, _mean_square(x), w, 1e-5),
    "eps-1e-8": lambda x, w, eps: _normalize(x, _mean_square(x), w, 1e-8),
    "eps-missing": lambda x, w, eps: _normalize(x, _mean_square(x), w, 0),
    "over-sequence-too": lambda x, w, eps: _normalize(x, _mean_square(x, (-2, -1)), w, eps),
    "over-sequence-only": lambda x, w, eps: _normalize(x, _mean_square(x, -2), w, eps),
    "weight-forgotten": lambda x, w, eps: _normalize(x, _mean_square(x), 1 + 0 * w, eps),
    "one-plus-weight": lambda x, w, eps: _normalize(x, _mean_square(x), 1 + w, eps),
    "no-upcast": lambda x, w, eps: w * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)),
    "weight-before-cast": _weight_before_cast,
    "left-in-fp32": lambda x, w, eps: w.float() * (x.float() * torch.rsqrt(_mean_square(x) + eps)),
    "root-forgotten": lambda x, w, eps: w * (x.float() / (_mean_square(x) + eps)).to(x.dtype),
    "sum-for-mean": lambda x, w, eps: _normalize(x, x.float().square().sum(-1, keepdim=True), w, eps),
    "detached": lambda x, w, eps: _normalize(x, _mean_square(x).detach(), w, eps),
}


def _glu(gate_activation, up_activation=lambda u: u):
    def swiglu(x, gate, up, down):
        return (gate_activation(x @ gate.T) * up_activation(x @ up.T)) @ down.T

    return swiglu


def _identity(x):
    return x


SWIGLU = {
    "silu-on-up": _glu(_identity, F.silu),
    "sigmoid": _glu(torch.sigmoid),
    "gelu": _glu(F.gelu),
    "relu": _glu(F.relu),
    "no-activation": _glu(_identity),
    "silu-on-both": _glu(F.silu, F.silu),
    "added": lambda x, gate, up, down: (F.silu(x @ gate.T) + x @ up.T) @ down.T,
    "silu-after": lambda x, gate, up, down: F.silu((x @ gate.T) * (x @ up.T)) @ down.T,
    "residual-inside": lambda x, gate, up, down: x + (F.silu(x @ gate.T) * (x @ up.T)) @ down.T,
    "up-forgotten": lambda x, gate, up, down: F.silu(x @ gate.T) @ down.T + 0 * up.sum(),
}


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
