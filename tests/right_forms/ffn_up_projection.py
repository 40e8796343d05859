"""Right answers to the exercises of lesson 3, in every form that people write, and pairs of mistakes."""

import torch
import torch.nn.functional as F
from torch import nn

from lecture_utils.llama import FeedForward


def _up_module(x, weight):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = nn.Parameter(weight)
    return layer(x)


class _Up(nn.Module):
    def forward(self, x, weight):
        return F.linear(x, weight)


def _up_flat(x, weight):
    flat = x.reshape(-1, x.shape[-1])
    return torch.mm(weight, flat.t()).t().reshape(*x.shape[:-1], weight.shape[0])


def _up_chunked(x, weight):
    return torch.cat([x @ rows.T for rows in weight.split(2)], dim=-1)


def _up_loops(x, weight):
    if x.dim() > 1:
        return torch.stack([_up_loops(each, weight) for each in x])
    return torch.stack([sum(w * v for w, v in zip(row, x, strict=True)) for row in weight])


def _up_filled(x, weight):
    out = torch.empty(*x.shape[:-1], weight.shape[0], dtype=x.dtype)
    for d in range(weight.shape[0]):
        out[..., d] = (x * weight[d]).sum(dim=-1)
    return out


def _collapse_by_unit_tokens(up_weight, down_weight):
    units = torch.eye(up_weight.shape[1], dtype=up_weight.dtype)
    return (units @ up_weight.T @ down_weight.T).T


def _collapse_unit_by_unit(up_weight, down_weight):
    total = torch.zeros(down_weight.shape[0], up_weight.shape[1], dtype=up_weight.dtype)
    for d in range(up_weight.shape[0]):
        total += torch.outer(down_weight[:, d], up_weight[d])
    return total


def _collapse_in_loops(up_weight, down_weight):
    (D, H), result = up_weight.shape, torch.zeros_like(up_weight[0].outer(up_weight[0]))
    for k in range(H):
        for h in range(H):
            for d in range(D):
                result[k, h] += down_weight[k, d] * up_weight[d, h]
    return result


def _collapse_columns(up_weight, down_weight):
    return torch.stack([down_weight @ column for column in up_weight.T], dim=1)


def _functional(x, up_weight, up_bias, down_weight, down_bias):
    return F.linear(F.relu(F.linear(x, up_weight, up_bias)), down_weight, down_bias)


class _Module(nn.Module):
    def forward(self, x, *parameters):
        up_weight = parameters[0]
        names = ["up_proj.weight", "up_proj.bias", "down_proj.weight", "down_proj.bias"]
        network = FeedForward(*reversed(up_weight.shape))
        return torch.func.functional_call(network, dict(zip(names, parameters, strict=True)), (x,))


def _layers(x, up_weight, up_bias, down_weight, down_bias):
    D, H = up_weight.shape
    network = nn.Sequential(nn.Linear(H, D), nn.ReLU(), nn.Linear(D, H))
    parameters = network.parameters()
    for parameter, given in zip(parameters, (up_weight, up_bias, down_weight, down_bias), strict=True):
        parameter.data = given
    return network(x)


def _einsum(x, up_weight, up_bias, down_weight, down_bias):
    hidden = torch.einsum("...h,dh->...d", x, up_weight) + up_bias
    return torch.einsum("...d,hd->...h", hidden.clamp(min=0), down_weight) + down_bias


def _in_place(x, up_weight, up_bias, down_weight, down_bias):
    hidden = x @ up_weight.T
    hidden += up_bias
    hidden[hidden < 0] = 0
    out = hidden @ down_weight.T
    out += down_bias
    return out


def _unit_by_unit(x, up_weight, up_bias, down_weight, down_bias):
    out = down_bias.expand(x.shape)
    for d in range(len(up_bias)):
        answer = (x * up_weight[d]).sum(-1, keepdim=True) + up_bias[d]
        out = out + torch.relu(answer) * down_weight[:, d]
    return out


def _token_by_token(x, up_weight, up_bias, down_weight, down_bias):
    if x.dim() > 1:
        return torch.stack([_token_by_token(each, up_weight, up_bias, down_weight, down_bias) for each in x])
    return down_weight @ F.relu(up_weight @ x + up_bias) + down_bias


def _masked(x, up_weight, up_bias, down_weight, down_bias):
    hidden = torch.addmm(up_bias, x.reshape(-1, x.shape[-1]), up_weight.t())
    hidden = hidden * (hidden > 0)
    return torch.addmm(down_bias, hidden, down_weight.t()).reshape(x.shape)


def _bias_as_a_weight(x, up_weight, up_bias, down_weight, down_bias):
    with_one = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
    hidden = with_one @ torch.cat([up_weight, up_bias[:, None]], dim=1).T
    return torch.where(hidden > 0, hidden, 0) @ down_weight.T + down_bias


def _double(x, *parameters):
    return _functional(x.double(), *(p.double() for p in parameters)).to(x.dtype)


def _biased_by_probing(up_weight, up_bias, down_weight, down_bias):
    def both(x):
        return F.linear(F.linear(x, up_weight, up_bias), down_weight, down_bias)

    H = up_weight.shape[1]
    bias = both(torch.zeros(H, dtype=up_weight.dtype))
    return [(both(torch.eye(H, dtype=up_weight.dtype)) - bias).T, bias]


def _biased_as_one_product(up_weight, up_bias, down_weight, down_bias):
    both = down_weight @ torch.cat([up_weight, up_bias[:, None]], dim=1)
    return both[:, :-1], both[:, -1] + down_bias


def _centred_subtracted_in_place(x, *parameters):
    x = x.clone()
    x -= x.mean(dim=-1, keepdim=True)
    return _functional(x, *parameters)


def _centred_by_a_matrix(x, *parameters):
    H = x.shape[-1]
    return _functional(x @ (torch.eye(H) - 1 / H).to(x), *parameters)


FORMS = {
    "up_project": {
        "functional": F.linear,
        "module": _Up(),
        "module made inside": _up_module,
        "einsum": lambda x, weight: torch.einsum("dh,...h->...d", weight, x),
        "tensordot": lambda x, weight: torch.tensordot(x, weight, dims=([-1], [1])),
        "flattened and back": _up_flat,
        "chunks of rows": _up_chunked,
        "number by number": _up_loops,
        "filled column by column": _up_filled,
        "a column for each token": lambda x, weight: (weight @ x.unsqueeze(-1)).squeeze(-1),
        "products added up": lambda x, weight: (x.unsqueeze(-2) * weight).sum(-1),
        "compiled": torch.compile(F.linear, backend="eager"),
    },
    "collapse": {
        "unit tokens": _collapse_by_unit_tokens,
        "unit by unit": _collapse_unit_by_unit,
        "column by column": _collapse_columns,
        "three loops": _collapse_in_loops,
        "transposed back": lambda up_weight, down_weight: (up_weight.T @ down_weight.T).T,
        "einsum": lambda up_weight, down_weight: torch.einsum("kd,dh->kh", down_weight, up_weight),
        "linear": lambda up_weight, down_weight: F.linear(down_weight, up_weight.T),
        "chained": lambda up_weight, down_weight: torch.linalg.multi_dot([down_weight, up_weight]),
        "compiled": torch.compile(_collapse_by_unit_tokens, backend="eager"),
    },
    "feed_forward": {
        "functional": _functional,
        "module": _Module(),
        "layers made inside": _layers,
        "einsum": _einsum,
        "in place on its own": _in_place,
        "unit by unit": _unit_by_unit,
        "token by token": _token_by_token,
        "masked": _masked,
        "bias as a weight": _bias_as_a_weight,
        "float64 inside": _double,
        "maximum": lambda x, a, b, c, d: torch.maximum(x @ a.mT + b, torch.tensor(0.0).to(x)) @ c.mT + d,
        "max with a tensor": lambda x, a, b, c, d: F.linear(
            torch.max(F.linear(x, a, b), torch.zeros_like(b)), c, d
        ),
        "compiled": torch.compile(_functional, backend="eager"),
    },
    "collapse_with_bias": {
        "probed with tokens, a list": _biased_by_probing,
        "one product": _biased_as_one_product,
        "linear": lambda a, b, c, d: (F.linear(c, a.T), F.linear(b, c, d)),
        "row bias": lambda a, b, c, d: ((a.T @ c.T).T, b @ c.T + d),
    },
    "repair_centred_feed_forward": {
        "functional": lambda x, *rest: _functional(x - x.mean(-1, keepdim=True), *rest),
        "in place on its own copy": _centred_subtracted_in_place,
        "sum over H": lambda x, *rest: _einsum(x - x.sum(-1)[..., None] / x.shape[-1], *rest),
        "by a matrix": _centred_by_a_matrix,
    },
}  # fmt: skip


def _up_pair(transpose=True, relu=False, mean=False, normal=False, narrow=False, shape=True):
    """The up-projection with some things wrong."""

    def up_project(x, weight):
        if narrow:
            x, weight = x.float(), weight.float()
        weight = F.normalize(weight, dim=-1) if normal else weight
        answers = x @ (weight.T if transpose else weight)
        answers = answers / x.shape[-1] if mean else answers
        answers = F.relu(answers) if relu else answers
        return answers if shape else answers.reshape(-1, answers.shape[-1])

    return up_project


_UP_ONE = {
    "transpose-forgotten": {"transpose": False},
    "relu-too-early": {"relu": True},
    "mean-for-sum": {"mean": True},
    "rows-normalized": {"normal": True},
    "left-in-fp32": {"narrow": True},
    "axes-flattened": {"shape": False},
}


def _pair(up=True, down=True, before=lambda x: x, activation=F.relu, end=lambda y: y, residual=False,
          up_sign=1, down_sign=1, late_bias=False):  # fmt: skip
    """The network with some things wrong."""

    def feed_forward(x, up_weight, up_bias, down_weight, down_bias):
        start = before(x)
        hidden = start @ (up_weight.T if up else up_weight)
        hidden = activation(hidden) + up_bias if late_bias else activation(hidden + up_sign * up_bias)
        out = end(hidden @ (down_weight.T if down else down_weight) + down_sign * down_bias)
        return x + out if residual else out

    return feed_forward


_ONE = {
    "relu-missing": {"activation": lambda hidden: hidden},
    "gelu-for-relu": {"activation": F.gelu},
    "sigmoid-for-relu": {"activation": torch.sigmoid},
    "relu-twice": {"end": F.relu},
    "relu-before-bias": {"late_bias": True},
    "up-bias-missing": {"up_sign": 0},
    "up-bias-subtracted": {"up_sign": -1},
    "down-bias-missing": {"down_sign": 0},
    "up-transpose-forgotten": {"up": False},
    "down-transpose-forgotten": {"down": False},
    "residual-added": {"residual": True},
    "normalized-inside": {"before": lambda x: F.rms_norm(x, (x.shape[-1],))},
}
_SAME_PLACE = (
    {"relu-missing", "gelu-for-relu"}, {"relu-missing", "sigmoid-for-relu"},
    {"gelu-for-relu", "sigmoid-for-relu"},
    {"relu-missing", "relu-before-bias"}, {"relu-before-bias", "up-bias-missing"},
    {"relu-before-bias", "up-bias-subtracted"}, {"up-bias-missing", "up-bias-subtracted"},
    {"relu-missing", "relu-twice"},  # together these are relu-at-end
    {"relu-missing", "up-bias-missing"},  # collapsed
    {"up-bias-missing", "down-bias-missing"},  # biases-missing
    {"up-transpose-forgotten", "down-transpose-forgotten"},  # transposes-forgotten
)  # fmt: skip

PAIRS = {
    "up_project": {(a, b): _up_pair(**_UP_ONE[a], **_UP_ONE[b]) for a in _UP_ONE for b in _UP_ONE if a < b},
    "feed_forward": {
        (a, b): _pair(**_ONE[a], **_ONE[b]) for a in _ONE for b in _ONE if a < b and {a, b} not in _SAME_PLACE
    },
}
