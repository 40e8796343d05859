"""The exercises of lesson 9."""

import torch
from torch import Tensor, nn

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import decoder_block as mistakes
from ..properties import Property


def _named(name: str, function):
    """A sub-layer or norm for the head: a function that the verdict shows by its formula."""
    function.__name__ = name
    return function


_same = _named("t → t", lambda t: 1 * t)
_zero = _named("t → 0", lambda t: 0 * t)
_ten = _named("t → 10·t", lambda t: 10 * t)
_hundred = _named("t → 100·t", lambda t: 100 * t)
_less_1 = _named("t → t − 1", lambda t: t - 1)
_less_2 = _named("t → t − 2", lambda t: t - 2)
_half = _named("t → t / 2", lambda t: t / 2)
_five = _named("t → 5", lambda t: 0 * t + 5)
_square = _named("t → t²", lambda t: t * t)


class _Part(nn.Module):
    """A sub-layer or norm without weights (so that it works on any device), shown by one word."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.strength = strength

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_').lower()} ({self.strength:.2f})"


class _Mixing(_Part):
    """Each token gets the mean of itself and all before it, features moved by one."""

    def forward(self, t: Tensor) -> Tensor:
        counts = torch.ones_like(t).cumsum(-2)
        return self.strength * (t.cumsum(-2) / counts).roll(1, -1)


class _Gated(_Part):
    """Each token alone, not linear."""

    def forward(self, t: Tensor) -> Tensor:
        return self.strength * t.sigmoid() * t.flip(-1)


class _Norm(_Part):
    """RMSNorm with a weight that grows with the feature, which no part above undoes."""

    def forward(self, t: Tensor) -> Tensor:
        weight = self.strength * torch.ones_like(t).cumsum(-1) / t.shape[-1]
        return weight * t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-5)


def _parts(draw: Draw) -> tuple[nn.Module, ...]:
    """Attention, mlp and two norms, no two of one strength."""
    a, m, n = (float(draw.uniform(low, low + 0.5)) for low in (1.5, 2.5, 0.8))
    return _Mixing(a), _Gated(m), _Norm(n), _Norm(1.9 * n)


def _cases(draw: Draw) -> list[Case]:
    """Each digit says where it comes from; then the norms; then parts that are not linear."""
    token, two = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    B, S, H = draw.sizes(3)
    n = draw.size(3, 6)
    return [
        Case((token, _ten, _hundred, _same, _same)),
        Case((token, _zero, _zero, _less_1, _less_2), "both sub-layers return 0"),
        Case((two, _ten, _zero, _less_1, _less_2), "mlp returns 0"),
        Case((two, _zero, _hundred, _less_1, _less_2), "attention returns 0"),
        Case((two, _ten, _hundred, _less_1, _less_2)),
        Case((two, _ten, _hundred, _same, _same)),
        Case((two, _five, _square, _same, _same)),
        Case((two, _square, _five, _less_1, _less_2)),
        Case((two, _five, _square, _less_1, _less_2)),
        Case((draw.normal(B, S, H), *_parts(draw)), "[B, S, H]", gradients=True),
        Case((draw.normal(n, n, n), *_parts(draw)), "all sizes equal"),
        Case((30 * draw.normal(B, S, H), *_parts(draw)), "a large stream"),
        Case((0.1 * draw.normal(B, S, H), *_parts(draw)), "a small stream"),
        Case((draw.normal(B, H, S).transpose(1, 2), *_parts(draw)), "a transposed view"),
        Case((draw.normal(B, S, H).double(), *_parts(draw)), "float64"),
        Case((draw.normal(B, S, H).bfloat16(), *_parts(draw)), "bf16"),
        Case((draw.normal(1, 1, H).half(), *_parts(draw)), "fp16"),
    ]


class _Listening:
    """A part that keeps what it was given."""

    def __init__(self, part) -> None:
        self.part, self.heard = part, []

    def __call__(self, t: Tensor) -> Tensor:
        self.heard.append(t.detach().clone())
        return self.part(t)


def _near(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4)


_NAMES = ("attention", "mlp", "norm_1", "norm_2")


def _times(n: int) -> str:
    return "twice" if n == 2 else f"{n} times"


def _calls(draw: Draw) -> Property:
    x, parts = draw.normal(2, 3, 4), _parts(draw)

    def once_each(f):
        listening = [_Listening(part) for part in parts]
        f(x, *listening)
        counts = {name: len(part.heard) for name, part in zip(_NAMES, listening, strict=True)}
        for name, count in sorted(counts.items(), key=lambda pair: pair[1]):
            if count == 0:
                return f"{name} is never called: each of the four has one thing to do."
            if count > 1:
                return f"{name} is called {_times(count)}: each of the four has one thing to do."
        return None

    return Property("calls", "Normalize, transform, add: twice. Which part does what, and when?", once_each)


def _layer_properties(draw: Draw) -> list[Property]:
    x, (attention, mlp, norm_1, norm_2) = draw.normal(2, 3, 4), _parts(draw)

    def is_identity(f):
        if _near(f(x, _zero, _zero, norm_1, norm_2), x):
            return None
        return "With two sub-layers that return 0 the tokens do not come back as they were."

    def attention_is_added(f):
        if _near(f(x, attention, _zero, norm_1, norm_2), x + attention(norm_1(x))):
            return None
        return "With an mlp that returns 0, what comes back is not x + attention(norm_1(x))."

    def mlp_is_added(f):
        if _near(f(x, _zero, mlp, norm_1, norm_2), x + mlp(norm_2(x))):
            return None
        return "With an attention that returns 0, what comes back is not x + mlp(norm_2(x))."

    def attention_reads(f):
        listening = _Listening(attention)
        f(x, listening, mlp, norm_1, norm_2)
        good = _near(listening.heard[0], norm_1(x))
        return None if good else "Attention is given something else than norm_1(x)."

    def mlp_reads(f):
        listening = _Listening(mlp)
        f(x, attention, listening, norm_1, norm_2)
        good = _near(listening.heard[0], norm_2(x + attention(norm_1(x))))
        return None if good else "mlp is given something else than the normalized sum."

    return [
        Property("not-the-identity", "What travels on when nothing is added to it?", is_identity),
        _calls(draw),
        Property("attention-reads", "What does attention read, and what is it added to?", attention_reads),
        Property("attention-not-added", "To what is attention's output added?", attention_is_added),
        Property("mlp-reads", "What has been added to the stream when mlp reads it?", mlp_reads),
        Property("mlp-not-added", "To what is mlp's output added?", mlp_is_added),
    ]


_HINTS = (
    "Save, normalize, transform, add. Which of these four do you have for attention, and which for mlp?",
    "Draw the stream as a line from left to right. What stands on the line, and what on the two branches?",
    "h = x + attention(norm_1(x)). The second half has the same form, with h in the place of x, and mlp and "
    "norm_2.",
)


@exercise(cases=_cases, mistakes=mistakes.DECODER_LAYER, hints=_HINTS, properties=_layer_properties)
def decoder_layer(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + mlp(norm_2(h))


zeroed_layer = Answer(
    "zeroed_layer",
    lesson=__name__,
    right={"pre_norm": [2.0, 4.0, 4.0, 8.0], "post_norm": [0.4, 0.8, 0.8, 1.6]},
    mistakes=mistakes.ZEROED_LAYER,
    hints=(
        "Put 0 in the place of both sub-layers. What is left of each formula?",
        "In one of them nothing but sums is left. In the other a norm is left: what is the RMS of the token?",
        "Pre-norm: x + 0 + 0. Post-norm: norm_2(norm_1(x)), and the squares of x average to 25.",
    ),
    because="Pre-norm: x + 0 + 0 is x, whatever the norms do. Post-norm: the token is divided by its RMS, 5; "
    "then its RMS is 1, and the second norm finds nothing to do.",
)


def _post_cases(draw: Draw) -> list[Case]:
    """A norm that halves what it is given: a sum inside it and a sum outside come to different numbers."""
    token = torch.tensor([[2.0, 4.0]])
    first, *others = _cases(draw)
    return [
        first,
        Case((token, _ten, _zero, _half, _same), "mlp returns 0"),
        Case((token, _zero, _ten, _same, _half), "attention returns 0"),
        *others,
    ]


def _post_properties(draw: Draw) -> list[Property]:
    x, (attention, mlp, norm_1, norm_2) = draw.normal(2, 3, 4), _parts(draw)

    def leaves_normalized(f):
        last = _Listening(norm_2)
        out = f(x, attention, mlp, norm_1, last)
        good = last.heard and _near(out, norm_2(last.heard[-1]))
        return None if good else "The last thing that happens is not norm_2."

    def attention_reads(f):
        listening = _Listening(attention)
        f(x, listening, mlp, norm_1, norm_2)
        return None if _near(listening.heard[0], x) else "Attention is given something else than x."

    return [
        _calls(draw),
        Property("not-normalized-last", "LN(x + F(x)): which operation is the last?", leaves_normalized),
        Property("attention-reads", "LN(x + F(x)): what does F read?", attention_reads),
    ]


@exercise(
    cases=_post_cases,
    mistakes=mistakes.POST_NORM_LAYER,
    hints=(
        "LN(x + F(x)): in which order do sub-layer, sum and norm come?",
        "Take your decoder_layer, and move each norm to the other end of its half.",
        "h = norm_1(x + attention(x)). The second half has the same form.",
    ),
    properties=_post_properties,
)
def post_norm_layer(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + mlp(h))


def _residual_after_norm(x, attention, mlp, norm_1, norm_2):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + mlp(x)


@exercise(
    cases=_cases,
    mistakes=mistakes.REPAIR_DECODER_LAYER,
    hints=(
        "With sub-layers that return 0, what comes back? What should?",
        "Which lines write over the stream with its norm, and who needs the stream afterwards?",
        "Give the normalized tokens a name of their own, or none: x = x + attention(norm_1(x)).",
    ),
    properties=_layer_properties,
    given=_residual_after_norm,
)
def repair_decoder_layer(x, attention, mlp, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + mlp(norm_2(x))
