"""Right answers to the exercises of lesson 4, in every form that people write, and pairs of mistakes."""

import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lecture_utils import llama


def _functional(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(F.linear(x, gate_weight)) * F.linear(x, up_weight), down_weight)


class _Module(nn.Module):
    def forward(self, x, gate_weight, up_weight, down_weight):
        ffn = llama.SwiGLU(x.shape[-1], gate_weight.shape[0])
        names = ["gate_proj.weight", "up_proj.weight", "down_proj.weight"]
        weights = dict(zip(names, (gate_weight, up_weight, down_weight), strict=True))
        return torch.func.functional_call(ffn, weights, (x,))


def _fresh_modules(x, gate_weight, up_weight, down_weight):
    D, H = gate_weight.shape
    gate, up, down = (nn.Linear(a, b, bias=False) for a, b in [(H, D), (H, D), (D, H)])
    for layer, weight in [(gate, gate_weight), (up, up_weight), (down, down_weight)]:
        layer.weight = nn.Parameter(weight)
    return down(nn.SiLU()(gate(x)) * up(x))


def _matmul(x, gate_weight, up_weight, down_weight):
    z = x @ gate_weight.T
    return (z * torch.sigmoid(z) * (x @ up_weight.t())) @ down_weight.mT


def _einsum(x, gate_weight, up_weight, down_weight):
    z = torch.einsum("...h,dh->...d", x, gate_weight)
    up = torch.einsum("...h,dh->...d", x, up_weight)
    return torch.einsum("...d,hd->...h", F.silu(z) * up, down_weight)


def _chunked(x, gate_weight, up_weight, down_weight):
    rows = x.reshape(-1, x.shape[-1])
    done = [_functional(row, gate_weight, up_weight, down_weight) for row in rows.split(2)]
    return torch.cat(done).reshape(x.shape)


def _candidate_by_candidate(x, gate_weight, up_weight, down_weight):
    delta = torch.zeros_like(x)
    for d in range(gate_weight.shape[0]):
        z = (x * gate_weight[d]).sum(-1, keepdim=True)
        candidate = (x * up_weight[d]).sum(-1, keepdim=True)
        delta = delta + F.silu(z) * candidate * down_weight[:, d]
    return delta


def _token_by_token(x, gate_weight, up_weight, down_weight):
    if x.dim() > 1:
        return torch.stack([_token_by_token(row, gate_weight, up_weight, down_weight) for row in x])
    return down_weight @ (F.silu(gate_weight @ x) * (up_weight @ x))


def _in_place(x, gate_weight, up_weight, down_weight):
    gate = F.linear(x, gate_weight)
    gate = F.silu(gate, inplace=True)
    return F.linear(gate.mul(F.linear(x, up_weight)), down_weight)


def _fused(x, gate_weight, up_weight, down_weight):
    z, up = F.linear(x, torch.cat((gate_weight, up_weight))).chunk(2, dim=-1)
    return F.linear(torch.mul(F.silu(z), up), down_weight)


def _double(x, gate_weight, up_weight, down_weight):
    wide = [t.double() for t in (x, gate_weight, up_weight, down_weight)]
    return _functional(*wide).to(x.dtype)


def _glu(x, gate_weight, up_weight, down_weight):
    z = F.linear(x, gate_weight)
    both = torch.cat((z * F.linear(x, up_weight), z), -1)
    return F.linear(F.glu(both, -1), down_weight)


def _fused_by_slices(x, gate_up_weight, down_weight):
    D = down_weight.shape[1]
    both = x @ gate_up_weight.T
    return (F.silu(both[..., :D]) * both[..., D:]) @ down_weight.T


def _fused_by_split(x, gate_up_weight, down_weight):
    gate, up = torch.split(F.linear(x, gate_up_weight), gate_up_weight.shape[0] // 2, dim=-1)
    return F.linear(up * F.silu(gate), down_weight)


def _fused_other_name(x, gate_up_weight, down_weight):
    up, gate = F.linear(x, gate_up_weight).chunk(2, dim=-1)
    return F.linear(F.silu(up) * gate, down_weight)


def _fused_by_tensor_split(x, gate_up_weight, down_weight):
    gate, up = F.linear(x, gate_up_weight).tensor_split(2, dim=-1)
    return F.linear(F.silu(gate) * up, down_weight)


def _fused_by_views(x, gate_up_weight, down_weight):
    gate, up = F.linear(x, gate_up_weight).unflatten(-1, (2, -1)).unbind(-2)
    return F.linear(F.silu(gate) * up, down_weight)


def _fused_by_weights(x, gate_up_weight, down_weight):
    gate_weight, up_weight = gate_up_weight.chunk(2)
    return _functional(x, gate_weight, up_weight, down_weight)


def _ceil(hidden_size, multiple_of, multiplier=1.0):
    return math.ceil(int(multiplier * int(8 * hidden_size / 3)) / multiple_of) * multiple_of


def _meta(dim, multiple_of, ffn_dim_multiplier=None):
    hidden_dim = 4 * dim
    hidden_dim = int(2 * hidden_dim / 3)
    if ffn_dim_multiplier is not None:
        hidden_dim = int(ffn_dim_multiplier * hidden_dim)
    return multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)


def _minus(hidden_size, multiple_of, multiplier=1.0):
    return -(-int(8 * hidden_size // 3 * multiplier) // multiple_of) * multiple_of


def _remainder(hidden_size, multiple_of, multiplier=1.0):
    size = math.floor(multiplier * math.floor(8 / 3 * hidden_size))
    return size + -size % multiple_of


def _if(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * int(hidden_size * 8 / 3))
    if size % multiple_of:
        size += multiple_of - size % multiple_of
    return size


def _loop(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * int(Fraction(8, 3) * hidden_size))
    width = multiple_of
    while width < size:
        width += multiple_of
    return width


def _tensor(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * torch.tensor(8 * hidden_size).div(3, rounding_mode="floor").item())
    return int(torch.tensor(size, dtype=torch.float64).div(multiple_of).ceil().item()) * multiple_of


def _numpy(hidden_size, multiple_of, multiplier=1.0):
    size = np.floor(multiplier * np.floor(8 * hidden_size / 3))
    return int(np.ceil(size / multiple_of)) * multiple_of


def _mask_for_powers_of_2(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * int(8 * hidden_size / 3))
    if multiple_of & (multiple_of - 1) == 0:
        return (size + multiple_of - 1) & -multiple_of
    return math.ceil(size / multiple_of) * multiple_of


def _divmod(hidden_size, multiple_of, multiplier=1.0):
    whole, rest = divmod((8 * hidden_size // 3) * multiplier // 1, multiple_of)
    return int(whole + (rest > 0)) * multiple_of


FORMS = {
    "swiglu": {
        "functional": _functional,
        "module": _Module(),
        "modules made inside": _fresh_modules,
        "matmul": _matmul,
        "einsum": _einsum,
        "chunked": _chunked,
        "candidate by candidate": _candidate_by_candidate,
        "token by token": _token_by_token,
        "in place on its own numbers": _in_place,
        "fused": _fused,
        "float64 inside": _double,
        "glu": _glu,
        "compiled": torch.compile(_functional, backend="eager"),
    },
    "intermediate_size": {
        "ceil": _ceil,
        "as Meta writes it": _meta,
        "minus": _minus,
        "remainder": _remainder,
        "if": _if,
        "loop": _loop,
        "tensor": _tensor,
        "divmod": _divmod,
        "numpy": _numpy,
        "a mask where it is right": _mask_for_powers_of_2,
    },
    "repair_fused_swiglu": {
        "slices": _fused_by_slices,
        "split": _fused_by_split,
        "the other name": _fused_other_name,
        "tensor_split": _fused_by_tensor_split,
        "views": _fused_by_views,
        "weights": _fused_by_weights,
    },
}


def _pair(curve=F.silu, exchanged=False, join=torch.mul, project=F.linear, residual=False, shape=None):
    """SwiGLU with some things wrong."""

    def swiglu(x, gate_weight, up_weight, down_weight):
        z, up = project(x, gate_weight), project(x, up_weight)
        z, up = (up, z) if exchanged else (z, up)
        delta = F.linear(join(curve(z), up), down_weight)
        delta = x + delta if residual else delta
        return shape(delta) if shape else delta

    return swiglu


_SWIGLU = {
    "sigmoid-for-silu": {"curve": torch.sigmoid},
    "gelu-for-silu": {"curve": F.gelu},
    "relu-for-silu": {"curve": F.relu},
    "gate-and-up-exchanged": {"exchanged": True},
    "branches-added": {"join": torch.add},
    "gate-and-up-not-transposed": {"project": torch.matmul},
    "residual-added": {"residual": True},
    "axes-of-one-dropped": {"shape": torch.squeeze},
    "batch-flattened": {"shape": lambda delta: delta.reshape(-1, delta.shape[-1])},
}


def _width_pair(numerator=8, denominator=3, first=int, second=int, use=True, up=True, offset=-1, kind=int):
    """The rule with some things wrong."""

    def intermediate_size(hidden_size, multiple_of, multiplier=1.0):
        size = second((multiplier if use else 1) * first(numerator * hidden_size / denominator))
        return kind(multiple_of * ((size + multiple_of + offset) // multiple_of) if up else size)

    return intermediate_size


_WIDTH = {
    "starts-from-4h": {"numerator": 4, "denominator": 1},
    "rounded-not-cut": {"first": round},
    "second-cut-rounded": {"second": round},
    "multiplier-ignored": {"use": False},
    "not-rounded-up": {"up": False},
    "one-multiple-too-many": {"offset": 0},
    "float-returned": {"kind": float},
}
_NOT_TOGETHER = (
    {"sigmoid-for-silu", "gelu-for-silu"}, {"sigmoid-for-silu", "relu-for-silu"},
    {"gelu-for-silu", "relu-for-silu"}, {"axes-of-one-dropped", "batch-flattened"},
    {"starts-from-4h", "rounded-not-cut"},
    {"multiplier-ignored", "second-cut-rounded"}, {"not-rounded-up", "one-multiple-too-many"},
)  # fmt: skip


def _pairs(make, one):
    return {
        (a, b): make(**one[a], **one[b]) for a in one for b in one if a < b and {a, b} not in _NOT_TOGETHER
    }


PAIRS = {"swiglu": _pairs(_pair, _SWIGLU), "intermediate_size": _pairs(_width_pair, _WIDTH)}
