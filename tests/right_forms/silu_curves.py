"""Right answers to the exercises of lesson 5, in every form that people write, and pairs of mistakes."""

from itertools import combinations

import torch
import torch.nn.functional as F
from torch import nn

from lecture_utils import llama


def _sigmoid(x):
    small = torch.exp(torch.where(x >= 0, -x, x))
    return torch.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _widened(f):
    """f in at least fp32, and back."""
    return lambda x: f(x.to(torch.promote_types(x.dtype, torch.float32))).to(x.dtype)


def _twice_promoted(x):
    dtype = torch.promote_types(x.dtype, torch.float32)
    return (x.to(dtype) * torch.sigmoid(x.to(dtype))).type(x.dtype)


def _with_if(x):
    if x.dtype in (torch.float16, torch.bfloat16):
        return _with_if(x.float()).to(x.dtype)
    return x * torch.sigmoid(x)


def _in_place(x):
    y = torch.sigmoid(x.double())
    y *= x
    return y.to(x.dtype)


def _by_sides(x):
    """Each side by its own formula, through masks."""
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    y = torch.empty_like(z)
    right = z >= 0
    y[right] = z[right] / (1 + torch.exp(-z[right]))
    small = torch.exp(z[~right])
    y[~right] = z[~right] * small / (1 + small)
    return y.to(x.dtype)


def _clamped(x):
    """exp sees no number that it cannot take: beyond −80 the value is 0 up to rounding."""
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    return (z / (1 + torch.exp(-z.clamp(min=-80)))).to(x.dtype)


def _number_by_number(x):
    done = [F.silu(number) for number in x.reshape(-1)]
    return torch.stack(done).reshape(x.shape)


def _by_log(x):
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    return (z * torch.exp(F.logsigmoid(z))).to(x.dtype)


def _two_terms(z):
    s = torch.sigmoid(z)
    return s + z * s * (1 - s)


def _from_the_value(z):
    s, y = torch.sigmoid(z), F.silu(z)
    return y + s * (1 - y)


def _autograd(x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(F.silu(x).sum(), x)[0]


def _backward(x):
    leaf = x.detach().clone().to(torch.promote_types(x.dtype, torch.float32)).requires_grad_()
    (leaf * torch.sigmoid(leaf)).sum().backward()
    return leaf.grad.to(x.dtype)


def _vjp(z):
    return torch.func.vjp(F.silu, z)[1](torch.ones_like(z))[0]


def _both_switches(z):
    """1 − σ(z) is σ(−z), without a subtraction."""
    return torch.sigmoid(z) * (1 + z * torch.sigmoid(-z))


def _masked(x):
    y = torch.empty_like(x)
    right = x >= 0
    y[right] = 1 / (1 + torch.exp(-x[right]))
    small = torch.exp(x[~right])
    y[~right] = small / (1 + small)
    return y


def _where_twice(x):
    """Each branch gets an argument of its own, harmless where the other is chosen."""
    left, right = torch.where(x >= 0, 0, x), torch.where(x >= 0, x, 0)
    return torch.where(x >= 0, 1 / (1 + torch.exp(-right)), torch.exp(left) / (1 + torch.exp(left)))


FORMS = {
    "silu": {
        "functional": F.silu,
        "module": nn.SiLU(),
        "the package's": llama.silu,
        "sigmoid by hand": _widened(lambda z: z * _sigmoid(z)),
        "promoted twice": _twice_promoted,
        "if on the dtype": _with_if,
        "in place on its own copy, in float64": _in_place,
        "by sides": _by_sides,
        "exp clamped": _clamped,
        "number by number": _number_by_number,
        "logsigmoid": _by_log,
        "compiled": torch.compile(_twice_promoted, backend="eager"),
    },
    "silu_grad": {
        "two terms": _widened(_two_terms),
        "from the value": _widened(_from_the_value),
        "two switches": _widened(_both_switches),
        "sigmoid by hand": _widened(lambda z: _sigmoid(z) * (1 + z * (1 - _sigmoid(z)))),
        "float64 inside": lambda x: _two_terms(x.double()).to(x.dtype),
        "autograd": _autograd,
        "backward": _backward,
        "vjp": _widened(_vjp),
        "compiled": torch.compile(_widened(_two_terms), backend="eager"),
    },
    "repair_sigmoid": {
        "library": torch.sigmoid,
        "masks": _masked,
        "two wheres": _where_twice,
        "clamped far out": lambda x: 1 / (1 + torch.exp(-x.clamp(-80, 80))),
        "exp of logsigmoid": lambda x: torch.exp(F.logsigmoid(x)),
        "in place on its own copy": lambda x: x.clone().sigmoid_(),
        "compiled": torch.compile(_where_twice, backend="eager"),
    },
}


def _up(x, dtype):
    if dtype == "own":
        return x
    return x.float() if dtype == "fp32" else x.to(torch.promote_types(x.dtype, torch.float32))


def _silu_pair(sign=1, factor="x", switch="sigmoid", dtype="once", cut=False):
    """SiLU with some things wrong."""

    def silu(x):
        z = _up(x, dtype)
        seen = sign * (z.detach() if cut else z)
        open_ = 1 / (1 + torch.exp(-seen)) if switch == "exp" else getattr(torch, switch)(seen)
        y = {"x": z * open_, "none": open_, "twice": z * z * open_, "added": z + open_}[factor]
        return y if dtype == "stays" else y.to(x.dtype)

    return silu


_SILU_ONE = {
    "switch-turned-around": {"sign": -1},
    "switch-twice-as-steep": {"sign": 2},
    "switch-alone": {"factor": "none"},
    "x-twice": {"factor": "twice"},
    "switch-added": {"factor": "added"},
    "tanh-for-switch": {"switch": "tanh"},
    "slope-nan": {"switch": "exp"},
    "rounded-twice": {"dtype": "own"},
    "through-fp32": {"dtype": "fp32"},
    "left-in-fp32": {"dtype": "stays"},
    "switch-detached": {"cut": True},
}


def _grad_pair(first=True, sign=1, number=True, factor="s(1-s)", dtype="once"):
    """The slope of SiLU with some things wrong."""

    def silu_grad(x):
        z = _up(x, dtype)
        s = torch.sigmoid(z)
        slope = {"s(1-s)": s * (1 - s), "1-s": 1 - s, "s": s, "ss": s * s, "tanh": 1 - s * s}[factor]
        y = (s if first else 0) + sign * (z if number else 1) * slope
        return y if dtype == "stays" else y.to(x.dtype)

    return silu_grad


_GRAD_ONE = {
    "first-term-missing": {"first": False},
    "wrong-sign": {"sign": -1},
    "x-missing": {"number": False},
    "switch-missing": {"factor": "1-s"},
    "closed-part-missing": {"factor": "s"},
    "switch-squared": {"factor": "ss"},
    "tanh-slope": {"factor": "tanh"},
    "rounded-at-each-step": {"dtype": "own"},
    "through-fp32": {"dtype": "fp32"},
    "left-in-fp32": {"dtype": "stays"},
}


def _pairs(make, one):
    """Every two mistakes that are made in different places."""
    return {
        (a, b): make(**one[a], **one[b]) for a, b in combinations(one, 2) if not one[a].keys() & one[b].keys()
    }


PAIRS = {"silu": _pairs(_silu_pair, _SILU_ONE), "silu_grad": _pairs(_grad_pair, _GRAD_ONE)}
