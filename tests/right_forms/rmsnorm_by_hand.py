"""Right answers to the exercises of lesson 2, in every form that people write, and pairs of mistakes."""

import torch
import torch.nn.functional as F
from torch import nn

from lecture_utils import llama


def _functional(x, weight, eps):
    return weight * F.rms_norm(x.float(), (x.shape[-1],), None, eps).to(x.dtype)


class _Module(nn.Module):
    def forward(self, x, weight, eps):
        norm = llama.RMSNorm(x.shape[-1], eps)
        return torch.func.functional_call(norm, {"weight": weight}, (x,))


def _fresh_module(x, weight, eps):
    norm = llama.RMSNorm(x.shape[-1], eps)
    norm.weight = nn.Parameter(weight)
    return norm(x)


def _einsum(x, weight, eps):
    wide = x.float()
    mean_square = torch.einsum("...h,...h->...", wide, wide)[..., None] / x.shape[-1]
    return torch.einsum("...h,h->...h", (wide / torch.sqrt(mean_square + eps)).to(x.dtype), weight)


def _chunked(x, weight, eps):
    rows = x.reshape(-1, x.shape[-1])
    done = [_functional(row, weight, eps) for row in rows.split(2)]
    return torch.cat(done).reshape(x.shape)


def _one_by_one(x, weight, eps):
    if x.dim() > 1:
        return torch.stack([_one_by_one(row, weight, eps) for row in x])
    wide = x.to(torch.float32)
    mean_square = sum(v * v for v in wide) / len(wide)
    return weight * (wide / (mean_square + eps) ** 0.5).to(x.dtype)


def _in_place(x, weight, eps):
    y = x.float().clone()
    y *= torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return y.to(x.dtype).mul_(weight)


def _norm(x, weight, eps):
    wide = x.float()
    return weight * (wide / (wide.norm(dim=-1, keepdim=True).square() / x.shape[-1] + eps).sqrt()).to(x.dtype)


def _double(x, weight, eps):
    wide = x.double()
    return weight * (wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()).to(x.dtype)


def _autograd(x, weight, eps, grad_output):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y = weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return torch.autograd.grad(y, (x, weight), grad_output)


def _grad_as_projection(x, weight, eps, grad_output):
    H = x.shape[-1]
    r = 1 / (x.pow(2).sum(-1, keepdim=True) / H + eps).sqrt()
    y, g = x * r, grad_output * weight
    grad_x = r * (g - y * (g * y).sum(-1, keepdim=True) / H)
    return [grad_x, torch.einsum("bsh,bsh->h", grad_output, y)]


def _grad_in_loops(x, weight, eps, grad_output):
    grad_x, grad_weight = torch.zeros_like(x), torch.zeros_like(weight)
    for b in range(x.shape[0]):
        for s in range(x.shape[1]):
            t, g = x[b, s], grad_output[b, s]
            r = (t.square().mean() + eps) ** -0.5
            grad_x[b, s] = r * weight * g - r**3 * t * (weight * g * t).mean()
            grad_weight += g * t * r
    return grad_x, grad_weight


def _grad_functional(x, weight, eps, grad_output):
    def forward(x, weight):
        return F.rms_norm(x, (x.shape[-1],), weight, eps)

    return torch.func.vjp(forward, x, weight)[1](grad_output)


FORMS = {
    "rms_norm": {
        "functional": _functional,
        "module": _Module(),
        "module made inside": _fresh_module,
        "einsum": _einsum,
        "chunked": _chunked,
        "number by number": _one_by_one,
        "in place on its own copy": _in_place,
        "norm": _norm,
        "float64 inside": _double,
        "compiled": torch.compile(_functional, backend="eager"),
    },
    "rms_norm_grad": {
        "autograd": _autograd,
        "projection": _grad_as_projection,
        "loops": _grad_in_loops,
        "vjp": _grad_functional,
    },
    "one_plus_rms_norm": {"functional": lambda x, weight, eps: _functional(x, 1 + weight, eps)},
    "repair_rms_norm": {"functional": _functional},
}


def _pair(centre=False, outside=False, axes=(-1,), add=0.0, root=True, use_weight=True):
    """RMSNorm with some things wrong."""

    def rms_norm(x, weight, eps):
        wide = x.float()
        wide = wide - wide.mean(-1, keepdim=True) if centre else wide
        mean_square = wide.square().mean(axes if x.dim() > 1 else -1, keepdim=True)
        power = 0.5 if root else 1
        scale = mean_square**power + eps if outside else (mean_square + eps) ** power
        weight = add + weight if use_weight else torch.ones_like(weight)
        return weight * (wide / scale).to(x.dtype)

    return rms_norm


_ONE = {
    "mean-subtracted": {"centre": True},
    "eps-outside-root": {"outside": True},
    "over-sequence-too": {"axes": (-2, -1)},
    "over-sequence-only": {"axes": (-2,)},
    "one-plus-weight": {"add": 1.0},
    "weight-forgotten": {"use_weight": False},
    "root-forgotten": {"root": False},
}
_SAME_PLACE = ({"over-sequence-too", "over-sequence-only"}, {"one-plus-weight", "weight-forgotten"},
               {"eps-outside-root", "root-forgotten"})  # fmt: skip

PAIRS = {
    "rms_norm": {
        (a, b): _pair(**_ONE[a], **_ONE[b]) for a in _ONE for b in _ONE if a < b and {a, b} not in _SAME_PLACE
    },
}
