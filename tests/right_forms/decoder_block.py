"""Right answers to the exercises of lesson 9, in every form that people write, and pairs of mistakes."""

import torch
from torch import nn


def _saved(x, attention, mlp, norm_1, norm_2):
    residual = x
    x = norm_1(x)
    x = attention(x)
    x = residual + x
    residual = x
    x = norm_2(x)
    x = mlp(x)
    return residual + x


def _loop(x, attention, mlp, norm_1, norm_2):
    for norm, part in ((norm_1, attention), (norm_2, mlp)):
        x = x + part(norm(x))
    return x


def _torch_add(x, attention, mlp, norm_1, norm_2):
    h = torch.add(x, attention(norm_1(x)))
    return torch.add(h, mlp(norm_2(h)))


def _other_side(x, attention, mlp, norm_1, norm_2):
    x = attention(norm_1(x)) + x
    return mlp(norm_2(x)) + x


def _in_place_on_a_copy(x, attention, mlp, norm_1, norm_2):
    stream = x.clone()
    stream = stream + attention(norm_1(stream))
    stream += mlp(norm_2(stream))
    return stream


def _as_a_sum(x, attention, mlp, norm_1, norm_2):
    wrote_1 = attention(norm_1(x))
    wrote_2 = mlp(norm_2(x + wrote_1))
    return x + wrote_1 + wrote_2


def _half(stream, norm, part):
    return stream + part(norm(stream))


def _two_halves(x, attention, mlp, norm_1, norm_2):
    return _half(_half(x, norm_1, attention), norm_2, mlp)


class _Module(nn.Module):
    def forward(self, x, attention, mlp, norm_1, norm_2):
        h = x + attention(norm_1(x))
        return h + mlp(norm_2(h))


def _stacked(x, attention, mlp, norm_1, norm_2):
    h = torch.stack((x, attention(norm_1(x)))).sum(0)
    return torch.stack((h, mlp(norm_2(h)))).sum(0)


def _post_saved(x, attention, mlp, norm_1, norm_2):
    residual = x
    x = norm_1(attention(x) + residual)
    residual = x
    return norm_2(mlp(x) + residual)


def _post_loop(x, attention, mlp, norm_1, norm_2):
    for norm, part in ((norm_1, attention), (norm_2, mlp)):
        x = norm(x + part(x))
    return x


def _post_step_by_step(x, attention, mlp, norm_1, norm_2):
    a = attention(x)
    h = norm_1(torch.add(a, x))
    m = mlp(h)
    return norm_2(torch.add(h, m))


def _post_half(stream, norm, part):
    return norm(stream + part(stream))


def _post_two_halves(x, attention, mlp, norm_1, norm_2):
    return _post_half(_post_half(x, norm_1, attention), norm_2, mlp)


_LAYERS = {
    "saved": _saved,
    "loop": _loop,
    "torch.add": _torch_add,
    "other side": _other_side,
    "in place on its own copy": _in_place_on_a_copy,
    "as a sum": _as_a_sum,
    "two halves": _two_halves,
    "module": _Module(),
    "stacked": _stacked,
    "compiled": torch.compile(_loop, backend="eager"),
}

FORMS = {
    "decoder_layer": _LAYERS,
    "repair_decoder_layer": _LAYERS,
    "post_norm_layer": {
        "saved": _post_saved,
        "loop": _post_loop,
        "step by step": _post_step_by_step,
        "two halves": _post_two_halves,
    },
}


def _pair(first="x", second="h", read_1="norm_1", read_2="norm_2", from_="h"):
    """A decoder layer with some things wrong: what the two sums start from, and what the sub-layers read."""

    def decoder_layer(x, attention, mlp, norm_1, norm_2):
        norms = {"norm_1": norm_1, "norm_2": norm_2, "none": lambda t: t}
        n = norms[read_1](x)
        a = attention(n)
        h = {"x": x + a, "none": a, "norm": n + a}[first]
        n = norms[read_2]({"h": h, "x": x, "a": a}[from_])
        start = {"h": h, "none": 0, "norm": n, "x": x, "twice": x + h}[second]
        return start + mlp(n)

    return decoder_layer


_ONE = {
    "first-residual-missing": {"first": "none"},
    "first-residual-after-norm": {"first": "norm"},
    "second-residual-missing": {"second": "none"},
    "second-residual-after-norm": {"second": "norm"},
    "second-residual-from-x": {"second": "x"},
    "x-added-twice": {"second": "twice"},
    "norm-1-for-both": {"read_2": "norm_1"},
    "norm-2-for-both": {"read_1": "norm_2"},
    "attention-reads-raw": {"read_1": "none"},
    "mlp-reads-raw": {"read_2": "none"},
    "mlp-reads-x": {"from_": "x"},
    "mlp-reads-attention": {"from_": "a"},
}


def _apart(a, b):
    """Whether two mistakes are in two places, and together not a third one of the catalogue."""
    known = [
        {"first-residual-missing", "second-residual-missing"},
        {"first-residual-after-norm", "second-residual-after-norm"},
        {"norm-1-for-both", "norm-2-for-both"},
        {"attention-reads-raw", "mlp-reads-raw"},
        {"norm-1-for-both", "mlp-reads-x"},
        {"first-residual-missing", "mlp-reads-attention"},  # h is attention's output: nothing new
        {"first-residual-after-norm", "attention-reads-raw"},  # without a norm there is nothing before it
        {"second-residual-after-norm", "mlp-reads-raw"},
        {"first-residual-missing", "second-residual-from-x"},
        {"second-residual-after-norm", "mlp-reads-x"},
        {"second-residual-after-norm", "mlp-reads-attention"},
        {"first-residual-missing", "x-added-twice"},
        {"mlp-reads-x", "second-residual-from-x"},
        {"mlp-reads-attention", "second-residual-missing"},
    ]
    return a < b and not _ONE[a].keys() & _ONE[b].keys() and {a, b} not in known


def _post_pair(start_1="x", start_2="h", norm_a=1, norm_b=2):
    """A post-norm layer with some things wrong."""

    def post_norm_layer(x, attention, mlp, norm_1, norm_2):
        norms = [lambda t: t, norm_1, norm_2]
        a = attention(x)
        h = norms[norm_a](x + a if start_1 == "x" else a)
        return norms[norm_b]({"h": h, "none": 0, "x": x}[start_2] + mlp(h))

    return post_norm_layer


_POST = {
    "first-residual-missing": {"start_1": "none"},
    "second-residual-missing": {"start_2": "none"},
    "second-residual-from-x": {"start_2": "x"},
    "first-norm-missing": {"norm_a": 0},
    "second-norm-missing": {"norm_b": 0},
    "norm-2-for-both": {"norm_a": 2},
    "norm-1-for-both": {"norm_b": 1},
}
_POST_KNOWN = [
    {"first-residual-missing", "second-residual-missing"},
    {"first-norm-missing", "second-norm-missing"},
    {"norm-2-for-both", "norm-1-for-both"},
    {"first-norm-missing", "norm-1-for-both"},
]

PAIRS = {
    "decoder_layer": {(a, b): _pair(**_ONE[a], **_ONE[b]) for a in _ONE for b in _ONE if _apart(a, b)},
    "post_norm_layer": {
        (a, b): _post_pair(**_POST[a], **_POST[b])
        for a in _POST
        for b in _POST
        if a < b and not _POST[a].keys() & _POST[b].keys() and {a, b} not in _POST_KNOWN
    },
}
