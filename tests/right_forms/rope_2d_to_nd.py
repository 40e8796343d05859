"""Right answers to the exercises of lesson 6, in every form that people write, and pairs of mistakes."""

import math

import torch
from torch import nn

from lecture_utils import llama

# rotate_2d


def _by_matrix(x, angle):
    c, s = torch.cos(angle), torch.sin(angle)
    matrix = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    return (matrix @ x.unsqueeze(-1)).squeeze(-1)


def _by_einsum(x, angle):
    c, s = angle.cos(), angle.sin()
    return torch.einsum("...ij,...j->...i", torch.stack((c, -s, s, c), -1).unflatten(-1, (2, 2)), x)


def _by_complex(x, angle):
    z = torch.complex(x[..., 0], x[..., 1]) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(z)


def _filled(x, angle):
    out = torch.empty_like(x)
    out[..., 0] = x[..., 0] * angle.cos() - x[..., 1] * angle.sin()
    out[..., 1] = x[..., 0] * angle.sin() + x[..., 1] * angle.cos()
    return out


def _by_addition(x, angle):
    quarter = torch.stack((-x[..., 1], x[..., 0]), dim=-1)
    return x * angle.cos()[..., None] + quarter * angle.sin()[..., None]


def _cat_of_columns(x, angle):
    a, b = x.split(1, dim=-1)
    c, s = angle.cos().unsqueeze(-1), angle.sin().unsqueeze(-1)
    return torch.cat((a * c - b * s, a * s + b * c), -1)


def _float64_2d(x, angle):
    return _by_matrix(x.double(), angle.double()).to(x.dtype)


# inv_freq


def _inverse(head_dim, base):
    return 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim))


def _by_exp(head_dim, base):
    return torch.exp(torch.arange(0, head_dim, 2, dtype=torch.float32) * (-math.log(base) / head_dim))


def _freq_loop(head_dim, base):
    return torch.tensor([base ** (-2 * i / head_dim) for i in range(head_dim // 2)])


def _freq_numpy(head_dim, base):
    import numpy

    return torch.from_numpy(base ** (-numpy.arange(0, head_dim, 2) / head_dim)).float()


def _freq_product(head_dim, base):
    steps = torch.full((head_dim // 2,), base ** (-2 / head_dim), dtype=torch.float64)
    steps[0] = 1
    return steps.cumprod(0).float()


# cos_sin


def _broadcast(positions, inv_freq):
    angles = positions[:, None] * inv_freq[None, :]
    return [torch.cos(angles).repeat(1, 2), torch.sin(angles).repeat(1, 2)]


def _steps_doubled_first(positions, inv_freq):
    angles = positions.unsqueeze(-1).float() * torch.cat([inv_freq, inv_freq])
    return angles.cos(), angles.sin()


def _angles_einsum(positions, inv_freq):
    angles = torch.einsum("s,f->sf", positions.to(inv_freq.dtype), inv_freq)
    emb = torch.cat((angles, angles), dim=-1)
    return emb.cos(), emb.sin()


def _from_a_table(positions, inv_freq):
    table = torch.arange(int(positions.max()) + 1).float()[:, None] @ inv_freq[None]
    table = torch.cat((table, table), -1)
    return table.cos()[positions.long()], table.sin()[positions.long()]


def _angles_in_loops(positions, inv_freq):
    rows = [[p * f for f in inv_freq.tolist() * 2] for p in positions.tolist()]
    return (
        torch.tensor([[math.cos(a) for a in row] for row in rows]),
        torch.tensor([[math.sin(a) for a in row] for row in rows]),
    )


def _angles_complex(positions, inv_freq):
    angles = torch.outer(positions.float(), inv_freq)
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turns.real, turns.real), -1), torch.cat((turns.imag, turns.imag), -1)


def _angles_float64(positions, inv_freq):
    angles = torch.outer(positions.double(), inv_freq.double()).tile(2)
    return angles.cos().float(), angles.sin().float()


def _modulo_a_turn(positions, inv_freq):
    angles = torch.outer(positions.double(), inv_freq.double()).remainder(2 * math.pi).repeat(1, 2)
    return angles.cos().float(), angles.sin().float()


class _Rotary(nn.Module):
    def forward(self, positions, inv_freq):
        return llama.cos_sin(positions, inv_freq)


# rotate_half


def _by_slices(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def _rolled(x):
    half = x.shape[-1] // 2
    sign = torch.ones(2 * half, dtype=x.dtype)
    sign[:half] = -1
    return x.roll(half, -1) * sign


def _unflattened(x):
    pairs = x.unflatten(-1, (2, -1))
    return torch.stack((-pairs[..., 1, :], pairs[..., 0, :]), -2).flatten(-2)


def _half_in_place(x):
    y, half = x.clone(), x.shape[-1] // 2
    y[..., :half] = -x[..., half:]
    y[..., half:] = x[..., :half]
    return y


def _half_matrix(x):
    half = x.shape[-1] // 2
    eye, zero = torch.eye(half, dtype=x.dtype), torch.zeros(half, half, dtype=x.dtype)
    return x @ torch.cat((torch.cat((zero, eye), 1), torch.cat((-eye, zero), 1)))


def _half_complex(x):
    a, b = x.double().chunk(2, -1)
    turned = torch.complex(a, b) * 1j
    return torch.cat((turned.real, turned.imag), -1).to(x.dtype)


# apply_rope


def _hugging_face(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return (q * cos) + (_by_slices(q) * sin), (k * cos) + (_by_slices(k) * sin)


def _indexed(q, k, cos, sin):
    return [x * cos[:, None] + _by_slices(x) * sin[:, None] for x in (q, k)]


def _two_halves(q, k, cos, sin):
    half = q.shape[-1] // 2
    c, s = cos[:, None, :, :half], sin[:, None, :, :half]

    def turned(x):
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * c - b * s, b * c + a * s), dim=-1)

    return turned(q), turned(k)


def _head_by_head(q, k, cos, sin):
    return tuple(
        torch.stack([x[:, n] * cos + _by_slices(x[:, n]) * sin for n in range(x.shape[1])], dim=1)
        for x in (q, k)
    )


def _text_by_text(q, k, cos, sin):
    def turned(x):
        rows = [xb * cb + _by_slices(xb) * sb for xb, cb, sb in zip(x, cos, sin, strict=True)]
        return torch.stack(rows)

    return turned(q), turned(k)


def _rope_transposed(q, k, cos, sin):
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    q, k = q * cos + _by_slices(q) * sin, k * cos + _by_slices(k) * sin
    return q.transpose(1, 2), k.transpose(1, 2)


def _rope_complex(q, k, cos, sin):
    half = q.shape[-1] // 2
    turn = torch.complex(cos.double(), sin.double())[:, None, :, :half]

    def turned(x):
        z = torch.complex(x[..., :half].double(), x[..., half:].double()) * turn
        return torch.cat((z.real, z.imag), -1).to(x.dtype)

    return turned(q), turned(k)


def _rope_fp32(q, k, cos, sin):
    q32, k32 = _hugging_face(q.float(), k.float(), cos.float(), sin.float())
    return q32.to(q.dtype), k32.to(k.dtype)


def _rope_in_place(q, k, cos, sin):
    out = []
    for x in (q, k):
        y = x.clone()
        y *= cos.unsqueeze(1)
        y += _by_slices(x) * sin.unsqueeze(1)
        out.append(y)
    return tuple(out)


def _heads_together(q, k, cos, sin):
    both = torch.cat((q, k), dim=1)
    both = both * cos[:, None] + _by_slices(both) * sin[:, None]
    return both.split((q.shape[1], k.shape[1]), dim=1)


def _partner_of_product(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + _by_slices(q * sin), k * cos + _by_slices(k * sin)


def _rope_einsum(q, k, cos, sin):
    return tuple(
        torch.einsum("bnsd,bsd->bnsd", x, cos) + torch.einsum("bnsd,bsd->bnsd", _by_slices(x), sin)
        for x in (q, k)
    )


class _Rope(nn.Module):
    def forward(self, q, k, cos, sin):
        return llama.apply_rope(q, k, cos, sin)


# interleaved_to_half


def _permuted_as_hugging_face(w, n_heads):
    dim1, dim2 = w.shape
    return w.reshape(n_heads, dim1 // n_heads // 2, 2, dim2).transpose(1, 2).reshape(dim1, dim2)


def _rows_by_index(weight, n_heads):
    d = weight.shape[0] // n_heads
    order = [n * d + j for n in range(n_heads) for j in [*range(0, d, 2), *range(1, d, 2)]]
    return weight[order]


def _rows_by_head(weight, n_heads):
    return torch.cat([torch.cat((head[0::2], head[1::2])) for head in weight.chunk(n_heads)])


def _rows_by_slices(weight, n_heads):
    heads = weight.reshape(n_heads, -1, weight.shape[1])
    return torch.cat((heads[:, ::2], heads[:, 1::2]), dim=1).reshape(weight.shape)


def _rows_in_loops(weight, n_heads):
    out, d = torch.zeros_like(weight), len(weight) // n_heads
    for n in range(n_heads):
        for i in range(d // 2):
            out[n * d + i] = weight[n * d + 2 * i]
            out[n * d + d // 2 + i] = weight[n * d + 2 * i + 1]
    return out


def _rows_by_sorting(weight, n_heads):
    d = len(weight) // n_heads
    place = torch.arange(len(weight))
    key = (place // d) * d + (place % 2) * (d // 2) + (place % d) // 2
    return weight[key.argsort()]


# unfinished_pairs


def _pairs_loop(head_dim, base, length):
    return sum(1 for i in range(head_dim // 2) if 2 * math.pi * base ** (2 * i / head_dim) > length)


def _pairs_angles(head_dim, base, length):
    return int((length * _inverse(head_dim, base) < 2 * math.pi).sum())


def _pairs_masked(head_dim, base, length):
    turns = length * llama.inv_freq(head_dim, base) / (2 * math.pi)
    return len(turns[turns < 1])


FORMS = {
    "rotate_2d": {
        "matrix": _by_matrix,
        "einsum": _by_einsum,
        "complex": _by_complex,
        "filled": _filled,
        "x cos + quarter turn sin": _by_addition,
        "cat of columns": _cat_of_columns,
        "float64 inside": _float64_2d,
        "package": llama.rotate_2d,
        "compiled": torch.compile(_by_matrix, backend="eager"),
    },
    "inv_freq": {
        "inverse": _inverse,
        "exp": _by_exp,
        "loop": _freq_loop,
        "numpy": _freq_numpy,
        "product": _freq_product,
        "package": llama.inv_freq,
        "compiled": torch.compile(_inverse, backend="eager"),
    },
    "cos_sin": {
        "broadcast, a list": _broadcast,
        "steps doubled first": _steps_doubled_first,
        "einsum": _angles_einsum,
        "from a table": _from_a_table,
        "loops": _angles_in_loops,
        "complex": _angles_complex,
        "float64 inside": _angles_float64,
        "modulo a turn": _modulo_a_turn,
        "module": _Rotary(),
        "compiled": torch.compile(_angles_einsum, backend="eager"),
    },
    "rotate_half": {
        "slices": _by_slices,
        "rolled": _rolled,
        "unflattened": _unflattened,
        "in place on its own copy": _half_in_place,
        "matrix": _half_matrix,
        "complex": _half_complex,
        "package": llama.rotate_half,
        "compiled": torch.compile(_by_slices, backend="eager"),
    },
    "apply_rope": {
        "Hugging Face": _hugging_face,
        "indexed, a list": _indexed,
        "two halves": _two_halves,
        "head by head": _head_by_head,
        "text by text": _text_by_text,
        "transposed and back": _rope_transposed,
        "complex": _rope_complex,
        "fp32 inside": _rope_fp32,
        "in place on its own copy": _rope_in_place,
        "queries and keys together": _heads_together,
        "partner of the product": _partner_of_product,
        "einsum": _rope_einsum,
        "module": _Rope(),
        "compiled": torch.compile(_hugging_face, backend="eager"),
    },
    "interleaved_to_half": {
        "as in Hugging Face": _permuted_as_hugging_face,
        "index": _rows_by_index,
        "head by head": _rows_by_head,
        "slices": _rows_by_slices,
        "loops": _rows_in_loops,
        "sorted": _rows_by_sorting,
        "package": llama.interleaved_to_half,
    },
    "unfinished_pairs": {"loop": _pairs_loop, "angles": _pairs_angles, "masked": _pairs_masked},
    "repair_cos_sin": {"broadcast": _broadcast, "einsum": _angles_einsum, "loops": _angles_in_loops},
}


def _pair(sign=1, axis=1, first=slice(None), token=slice(None), swap=False, key=True, minus=True,
          layout="half", exchange=False, twice=False, wide=False):  # fmt: skip
    """apply_rope with some things wrong."""

    def partner(x):
        a, b = (x[..., ::2], x[..., 1::2]) if layout == "evens" else x.chunk(2, dim=-1)
        return torch.cat((-b if minus else b, a), dim=-1)

    def apply_rope(q, k, cos, sin):
        if layout == "mixed":
            cos, sin = (t[..., : t.shape[-1] // 2].repeat_interleave(2, -1) for t in (cos, sin))
        cos, sin = (t[first, token].unsqueeze(axis) if axis else t[first, token] for t in (cos, sin))
        cos, sin = (sin, cos) if swap else (cos, sin)
        if wide:
            q, k = (t.float() if t.dtype.itemsize == 2 else t for t in (q, k))
        for _ in range(1 + twice):
            q = q * cos + sign * partner(q) * sin
            k = k * cos + sign * partner(k) * sin if key else k * 1
        return (k, q) if exchange else (q, k)

    return apply_rope


_ONE = {
    "other-way": {"sign": -1},
    "along-heads": {"axis": 2},
    "no-room-for-heads": {"axis": 0},
    "first-text-for-all": {"first": slice(1)},
    "first-token-for-all": {"token": slice(1)},
    "cos-sin-exchanged": {"swap": True},
    "key-not-turned": {"key": False},
    "half-not-negated": {"minus": False},
    "mixed-layouts": {"layout": "mixed"},
    "evens-and-odds": {"layout": "evens"},
    "exchanged": {"exchange": True},
    "turned-twice": {"twice": True},
    "left-in-fp32": {"wide": True},
}
_SAME_PLACE = ({"along-heads", "no-room-for-heads"}, {"mixed-layouts", "evens-and-odds"})


def _pair_cos_sin(count=None, add=0, double="cat", unit=1.0, swap=False, sign=1, half=False):
    """cos_sin with some things wrong."""

    def cos_sin(positions, inv_freq):
        if count == "ignored":
            positions = torch.arange(len(positions))
        elif count == "continued":
            positions = positions[0] + torch.arange(len(positions))
        elif count == "sorted":
            positions = positions.sort()[0]
        angles = torch.outer((positions + add).float(), inv_freq) * unit * sign
        angles = angles.bfloat16().float() if half else angles
        if double == "interleaved":
            angles = angles.repeat_interleave(2, -1)
        elif double == "cat":
            angles = torch.cat((angles, angles), -1)
        return (angles.sin(), angles.cos()) if swap else (angles.cos(), angles.sin())

    return cos_sin


_ONE_COS_SIN = {
    "positions-ignored": {"count": "ignored"},
    "positions-continued": {"count": "continued"},
    "positions-sorted": {"count": "sorted"},
    "positions-from-1": {"add": 1},
    "interleaved-doubling": {"double": "interleaved"},
    "not-doubled": {"double": "not"},
    "degrees": {"unit": math.pi / 180},
    "full-turns": {"unit": 2 * math.pi},
    "exchanged": {"swap": True},
    "sine-negative": {"sign": -1},
    "bf16-angles": {"half": True},
}


def _pairs(make, one, same_place=()):
    return {
        (a, b): make(**one[a], **one[b])
        for a in one
        for b in one
        if a < b and not one[a].keys() & one[b].keys() and {a, b} not in same_place
    }


PAIRS = {
    "apply_rope": _pairs(_pair, _ONE, _SAME_PLACE),
    "cos_sin": _pairs(_pair_cos_sin, _ONE_COS_SIN),
}
