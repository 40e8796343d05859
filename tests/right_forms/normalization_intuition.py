"""Right answers to the exercises of lesson 1, in every form that people write, and pairs of mistakes."""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from lecture_utils import llama


def _std_mean(x):
    std, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / std


def _mean_of_squares(x):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt((x * x).mean(-1, keepdim=True) - mean * mean)


def _unsqueezed(x):
    return (x - x.mean(-1)[..., None]) / x.var(-1, unbiased=False).sqrt().unsqueeze(-1)


def _row_by_row(x):
    if x.dim() > 1:
        return torch.stack([_row_by_row(row) for row in x])
    mean = sum(x) / len(x)
    return (x - mean) / (sum((v - mean) ** 2 for v in x) / len(x)) ** 0.5


def _flattened(x):
    rows = x.reshape(-1, x.shape[-1]).T
    return ((rows - rows.mean(0)) / rows.std(0, correction=0)).T.reshape(x.shape)


def _in_place_score(x):
    y = x.clone()
    y -= y.mean(-1, keepdim=True)
    return y / y.norm(dim=-1, keepdim=True) * x.shape[-1] ** 0.5


def _corrected(x):
    n = x.shape[-1]
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * (n / (n - 1)) ** 0.5


class _Score(nn.Module):
    def forward(self, x):
        wide = x.double()
        return ((wide - wide.mean(-1, keepdim=True)) / wide.std(-1, False, keepdim=True)).to(x.dtype)


_SCORES = {
    "std_mean": _std_mean,
    "mean of squares": _mean_of_squares,
    "unsqueezed": _unsqueezed,
    "number by number": _row_by_row,
    "flattened and turned": _flattened,
    "in place on its own copy": _in_place_score,
    "corrected by hand": _corrected,
    "a module, float64 inside": _Score(),
    "layer_norm with eps 0": lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0),
    "compiled": torch.compile(_std_mean, backend="eager"),
}


def _functional(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


class _Module(nn.Module):
    def forward(self, x, weight, bias, eps):
        norm = llama.LayerNorm(x.shape[-1], eps).to(x)
        return torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x,))


def _fresh_module(x, weight, bias, eps):
    norm = nn.LayerNorm(x.shape[-1], eps)
    norm.weight, norm.bias = nn.Parameter(weight), nn.Parameter(bias)
    return norm(x)


def _einsum(x, weight, bias, eps):
    H = x.shape[-1]
    centred = x - torch.einsum("...h->...", x)[..., None] / H
    variance = torch.einsum("...h,...h->...", centred, centred)[..., None] / H
    return torch.einsum("...h,h->...h", centred * torch.rsqrt(variance + eps), weight) + bias


def _chunked(x, weight, bias, eps):
    rows = x.reshape(-1, x.shape[-1])
    done = [_functional(row, weight, bias, eps) for row in rows.split(2)]
    return torch.cat(done).reshape(x.shape)


def _loops(x, weight, bias, eps):
    if x.dim() > 1:
        return torch.stack([_loops(row, weight, bias, eps) for row in x])
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    features = zip(x, weight, bias, strict=True)
    return torch.stack([(v - mean) / (variance + eps) ** 0.5 * w + b for v, w, b in features])


def _var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (variance + eps).rsqrt(), weight)


def _in_place(x, weight, bias, eps):
    y = x.clone()
    y -= y.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    y *= weight
    y += bias
    return y


def _double(x, weight, bias, eps):
    wide = x.double()
    wide = wide - wide.mean(-1, keepdim=True)
    return (wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias).to(x.dtype)


def _second_moment(x, weight, bias, eps):
    mean, square = x.mean(-1, keepdim=True), x.square().mean(-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(square - mean**2 + eps) + bias


def _masked_sums(x, real, eps):
    mask = real[..., None].to(x)
    mean = (x * mask).sum((0, 1)) / mask.sum()
    variance = ((x - mean).square() * mask).sum((0, 1)) / mask.sum()
    return ((x - mean) * torch.rsqrt(variance + eps))[real]


def _masked_module(x, real, eps):
    return nn.BatchNorm1d(x.shape[-1], eps=eps, affine=False)(x[real])


def _masked_flat(x, real, eps):
    rows = x.flatten(0, 1)[real.flatten()]
    variance, mean = torch.var_mean(rows, 0, correction=0)
    return (rows - mean) / (variance + eps).sqrt()


def _masked_list(x, real, eps):
    rows = torch.stack([x[b, s] for b in range(x.shape[0]) for s in range(x.shape[1]) if real[b, s]])
    columns = [(c - c.mean()) / (c.var(correction=0) + eps).sqrt() for c in rows.unbind(-1)]
    return torch.stack(columns, -1)


def _masked_as_layer_norm(x, real, eps):
    rows = x[real].T
    return F.layer_norm(rows, rows.shape[-1:], eps=eps).T


FORMS = {
    "standardize": _SCORES,
    "layer_norm": {
        "functional": _functional,
        "module": _Module(),
        "module made inside": _fresh_module,
        "einsum": _einsum,
        "chunked": _chunked,
        "number by number": _loops,
        "var_mean": _var_mean,
        "in place on its own copy": _in_place,
        "float64 inside": _double,
        "second moment": _second_moment,
        "compiled": torch.compile(_functional, backend="eager"),
    },
    "masked_batch_norm": {
        "sums with a mask": _masked_sums,
        "BatchNorm1d": _masked_module,
        "flattened": _masked_flat,
        "token by token": _masked_list,
        "as a layer norm of the transpose": _masked_as_layer_norm,
    },
    "repair_standardize": _SCORES,
}


def _score(axes=(-1,), correction=0, centre=True, root=True, eps=0.0, sign=1):
    """The standard score with some things wrong."""

    def standardize(x):
        over = axes if x.dim() > 1 else -1
        variance = x.var(over, correction=correction, keepdim=True) + eps
        centred = x - x.mean(over, keepdim=True) if centre else x
        return sign * centred / (variance.sqrt() if root else variance)

    return standardize


def _norm(
    axes=(-1,), correction=0, centre=True, root=True, outside=False, add=0.0, weigh=True, order=True, sign=1
):  # fmt: skip
    """LayerNorm with some things wrong."""

    def layer_norm(x, weight, bias, eps):
        over = axes if x.dim() > 1 else -1
        variance = x.var(over, correction=correction, keepdim=True)
        power = 0.5 if root else 1
        scale = variance**power + eps if outside else (variance + eps) ** power
        normal = (x - x.mean(over, keepdim=True) if centre else x) / scale
        weight = weight + add if weigh else torch.ones_like(weight)
        return normal * weight + sign * bias if order else (normal + sign * bias) * weight

    return layer_norm


_SCORE_SLIPS = {
    "over-samples": {"axes": (-2,)},
    "over-two-axes": {"axes": (-2, -1)},
    "divided-by-n-minus-1": {"correction": 1},
    "mean-not-subtracted": {"centre": False},
    "root-forgotten": {"root": False},
    "eps-added": {"eps": 1e-5},
    "wrong-sign": {"sign": -1},
}
_NORM_SLIPS = {
    "over-sequence-only": {"axes": (-2,)},
    "over-sequence-too": {"axes": (-2, -1)},
    "divided-by-n-minus-1": {"correction": 1},
    "mean-not-subtracted": {"centre": False},
    "root-forgotten": {"root": False},
    "eps-outside-root": {"outside": True},
    "one-plus-weight": {"add": 1.0},
    "weight-forgotten": {"weigh": False},
    "bias-before-weight": {"order": False},
    "bias-subtracted": {"sign": -1},
}
_ONE_MISTAKE = (  # together they are one mistake, or none
    {"over-samples", "over-two-axes"},
    {"over-sequence-only", "over-sequence-too"},
    {"one-plus-weight", "weight-forgotten"},
    {"weight-forgotten", "bias-before-weight"},
    {"root-forgotten", "eps-outside-root"},
)


def _pairs(make, slips):
    return {
        (a, b): make(**slips[a], **slips[b])
        for a, b in itertools.combinations(slips, 2)
        if {a, b} not in _ONE_MISTAKE
    }


PAIRS = {"standardize": _pairs(_score, _SCORE_SLIPS), "layer_norm": _pairs(_norm, _NORM_SLIPS)}
