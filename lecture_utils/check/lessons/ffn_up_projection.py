"""The exercises of lesson 3."""

import torch
import torch.nn.functional as F

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import ffn_up_projection as mistakes
from ..properties import Property, tokens_apart

_BF16 = 0.06  # in bf16 the sums may be rounded after every term


def _up_cases(draw: Draw) -> list[Case]:
    """Small weights first: symmetric ones, then square ones, where a lost transpose raises nothing."""
    square = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    rows = torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    three = torch.tensor([[2.0, 1.0], [0.0, 3.0], [-1.0, -2.0]])
    A, B, S, H, D = draw.sizes(5)
    n = draw.size(3, 6)
    return [
        Case((torch.tensor([2.0, -1.0]), torch.eye(2)), "one token alone"),
        Case((torch.tensor([2.0, -1.0]), torch.diag(torch.tensor([3.0, 5.0])))),
        Case((torch.tensor([2.0, 1.0]), square)),
        Case((three[:2], square), "as many tokens as features as detectors"),
        Case((three, square)),
        Case((three[None], rows), "a batch of one text"),
        Case((draw.normal(B, S, H), draw.weight(D, H)), "[B, S, H]", gradients=True),
        Case((draw.normal(n, n, n), draw.weight(n, n)), "all sizes equal"),
        Case((draw.normal(A, B, S, H), draw.weight(D, H)), "four axes"),
        Case((draw.normal(B, H, S).transpose(1, 2), draw.weight(H, D).T), "a transposed view"),
        Case((draw.normal(B, S, H).double(), draw.weight(D, H).double()), "float64"),
        Case((draw.normal(B, S, H).bfloat16(), draw.weight(D, H).bfloat16()), "bf16", tolerance=_BF16),
    ]  # fmt: skip


def _up_properties(draw: Draw) -> list[Property]:
    x, other, weight = draw.normal(2, 3, 4), draw.normal(2, 3, 4), draw.weight(5, 4)

    def rows_apart(f):
        changed = weight.clone()
        changed[-1] = changed[-1] * 3 + 1
        if torch.allclose(f(x, weight)[..., :-1], f(x, changed)[..., :-1], atol=1e-4):
            return None
        return "Another last row of `weight` changed the answers of other rows."

    def square_alike(f):
        square = torch.cat([weight[:2], weight[:2]])
        if torch.allclose(f(x, square)[..., :2], f(x, weight)[..., :2], atol=1e-4):
            return None
        return "The same row of `weight` answers otherwise when weight has as many rows as columns."

    def nothing_from_nothing(f):
        zero = torch.zeros_like(x)
        return None if not f(zero, weight).any() else "A token of zeros gets answers that are not 0."

    def doubles(f):
        if torch.allclose(f(2 * x, weight), 2 * f(x, weight), atol=1e-3):
            return None
        return "Twice the token does not give twice the answers."

    def adds(f):
        if torch.allclose(f(x + other, weight), f(x, weight) + f(other, weight), atol=1e-3):
            return None
        return "The answers to a sum of two tokens are not the sums of their answers."

    return [
        tokens_apart((x, weight)),
        Property("square-differs", "What does yours do with a weight of two equal sizes?", square_alike),
        Property("rows-mixed", "How many rows of weight has one answer to do with?", rows_apart),
        Property(
            "something-from-nothing",
            "Which step of yours makes of zeros something else?",
            nothing_from_nothing,
        ),
        Property("not-doubled", "What is done to the products besides adding them up?", doubles),
        Property("not-additive", "What is done to the products besides adding them up?", adds),
    ]


@exercise(
    cases=_up_cases, mistakes=mistakes.UP_PROJECT, properties=_up_properties,
    hints=(
        "Which axis of `weight` has as many entries as the last axis of `x`?",
        "In `a @ b`, the last axis of `a` meets the last but one of `b`. Axes before these stay in place.",
        "x stands on the left. weight [D, H] has to become [H, D]: that is weight.T.",
    ),
)  # fmt: skip
def up_project(x, weight):
    return x @ weight.T


def _weights(draw: Draw, D: int, H: int, dtype=torch.float32):
    return draw.normal(D, H, dtype=dtype), draw.normal(H, D, dtype=dtype)


def _collapse_cases(draw: Draw) -> list[Case]:
    """Sizes 1 show which sizes the result has; square weights show the order and the transposes."""
    tensor = torch.tensor
    small, wide, H, D = *draw.sizes(2, 2, 4), *draw.sizes(2, 5, 9)
    n = draw.size(3, 6)
    up, down = _weights(draw, H, D)
    return [
        Case((tensor([[1.0, 2.0], [0.0, 1.0]]), tensor([[1.0, 2.0], [3.0, 0.0]])), "H = D = 2"),
        Case((tensor([[1.0, -2.0], [-3.0, 2.0]]), tensor([[1.0, 1.0], [2.0, 0.0]])), "H = D = 2"),
        Case((tensor([[1.0, 3.0]]), tensor([[2.0], [-5.0]])), "one hidden unit"),
        Case((tensor([[1.0], [2.0], [-3.0]]), tensor([[2.0, 5.0, 1.0]])), "one feature"),
        Case((tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]),
              tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, -1.0, 0.0]])), "the weights of step 2"),
        Case(_weights(draw, D, small), "D larger than H", gradients=True),
        Case(_weights(draw, wide, H), "D smaller than H"),
        Case(_weights(draw, n, n), "H = D"),
        Case((up.T, down.T), "transposed views"),
        Case(_weights(draw, D, H, torch.float64), "float64"),
        Case(_weights(draw, D, H, torch.bfloat16), "bf16", tolerance=_BF16),
    ]  # fmt: skip


def _collapse_properties(draw: Draw) -> list[Property]:
    up, down = _weights(draw, 5, 3)

    def units_add_up(f):
        apart = f(up[:2], down[:, :2]) + f(up[2:], down[:, 2:])
        if torch.allclose(apart, f(up, down), atol=1e-3):
            return None
        return "The matrix of all hidden units is not the sum of the matrices of each."

    def turns_sign(f):
        result = f(up, down)
        if torch.allclose(f(-up, down), -result, atol=1e-3) and torch.allclose(
            f(up, -down), -result, atol=1e-3
        ):
            return None
        return "Turning the sign of one of the weights does not turn the sign of the result."

    def doubles(f):
        if torch.allclose(f(up, 2 * down), 2 * f(up, down), atol=1e-3):
            return None
        return "Twice down_weight does not give twice the result."

    return [
        Property("not-odd", "Which step of yours loses a sign?", turns_sign),
        Property("not-doubled", "How often is each weight a factor of the result?", doubles),
        Property("units-not-added", "Over which axis are the products added up?", units_add_up),
    ]


@exercise(
    cases=_collapse_cases, mistakes=mistakes.COLLAPSE, properties=_collapse_properties,
    hints=(
        "Which shape does the result have, and in which order do [D, H] and [H, D] give it?",
        "x @ result.T must equal what `two_layers` gives. Which part of `two_layers` is result.T then, and "
        "what is the transpose of a product?",
        "result.T is up_weight.T @ down_weight.T. A transpose turns the order of a product around: "
        "(A B)ᵀ = Bᵀ Aᵀ. Here A is up_weight.T and B is down_weight.T.",
    ),
)  # fmt: skip
def collapse(up_weight, down_weight):
    return down_weight @ up_weight


def _network(draw: Draw, D: int, H: int) -> tuple:
    """Weights and biases, all of them large enough to matter."""
    return draw.normal(D, H), draw.weight(D), draw.normal(H, D), draw.weight(H)


def _away_from_the_bend(draw: Draw, shape: tuple, D: int, centred: bool = False) -> tuple:
    """Tokens and a network, redrawn until no unit is so near 0 that rounding decides about its slope."""
    while True:
        x, network = draw.normal(*shape), _network(draw, D, shape[-1])
        tokens = x - x.mean(-1, keepdim=True) if centred else x
        if (tokens @ network[0].T + network[1]).abs().min() > 1e-3:
            return (x, *network)


def _ffn_cases(draw: Draw, centred: bool = False) -> list[Case]:
    """One thing at a time, the rest being 0 or the identity; then everything at once."""
    tensor, eye, none = torch.tensor, torch.eye(2), torch.zeros(2)
    A, B, S, H, D = draw.sizes(5, 3)
    n = draw.size(3, 5)
    up, down = tensor([[1.0, 2.0], [0.0, 1.0]]), tensor([[1.0, -2.0], [3.0, 1.0]])
    lesson = up, tensor([-3.0, 1.0]), down, tensor([1.0, -2.0])
    three = tensor([[[2.0, 1.0], [1.0, 0.0], [0.0, -2.0]]])
    view = draw.normal(B, H, S).transpose(1, 2)
    network = _network(draw, D, H)
    return [
        Case((tensor([[1.0, -1.0]]), eye, none, eye, none), "identity weights, no biases"),
        Case((tensor([[20.0, -20.0]]), eye, none, eye, none), "a large answer"),
        Case((tensor([[2.0, 1.0]]), up, none, eye, none)),
        Case((tensor([[1.0, -2.0]]), eye, none, tensor([[-3.0, 1.0], [2.0, -1.0]]), none)),
        Case((tensor([[2.0, -1.0]]), eye, tensor([-3.0, 3.0]), eye, none)),
        Case((tensor([[3.0, -1.0]]), eye, none, eye, tensor([-5.0, 3.0]))),
        Case((tensor([[2.0, 1.0]]), up, none, down, none), "no biases"),
        Case((tensor([[2.0, 1.0], [3.0, 1.0]]), up, none, down, none), "as many tokens as features"),
        Case((tensor([[1.0, -1.0]]), up, tensor([-50.0, -60.0]), down, tensor([-5.0, 3.0])), "no unit on"),
        Case((three[0], *lesson), "two units on, one on, none on"),
        Case((three[0, 0], *lesson), "one token alone"),
        Case((three, *lesson), "a batch of one text"),
        Case(_away_from_the_bend(draw, (B, S, H), D), "[B, S, H]", gradients=True),
        Case((draw.normal(n, n, n), *_network(draw, n, n)), "all sizes equal"),
        Case((draw.normal(A, 2, S, H), *network), "four axes"),
        Case((view, *network), "a transposed view"),
        Case((draw.normal(B, S, H).double(), *(w.double() for w in _network(draw, D, H))), "float64"),
        Case((draw.normal(B, S, H).bfloat16(), *(w.bfloat16() for w in network)), "bf16", tolerance=_BF16),
    ]  # fmt: skip


def _ffn_properties(draw: Draw) -> list[Property]:
    x, other = draw.normal(2, 3, 4), draw.normal(2, 3, 4)
    up, up_bias, down, down_bias = _network(draw, 6, 4)
    no_up, no_down = torch.zeros(6), torch.zeros(4)

    def silent(f):
        out = f(x, up, torch.full((6,), -100.0), down, down_bias)
        if torch.allclose(out, down_bias.expand_as(out), atol=1e-3):
            return None
        return "With up_bias -100 every unit should be off, and down_bias come out; something else does."

    def bends(f):
        both = f(x + other, up, no_up, down, no_down)
        if not torch.allclose(
            both, f(x, up, no_up, down, no_down) + f(other, up, no_up, down, no_down), atol=1e-3
        ):
            return None
        return "Without biases, f(a + b) is f(a) + f(b): nothing bends."

    def doubles(f):
        if torch.allclose(f(2 * x, up, no_up, down, no_down), 2 * f(x, up, no_up, down, no_down), atol=1e-3):
            return None
        return "Without biases, twice the token does not give twice the output: with ReLU it would."

    def passes_positive_tokens(f):
        eye = torch.eye(4)
        if torch.allclose(f(x.abs(), eye, no_down, eye, no_down), x.abs(), atol=1e-3):
            return None
        return (
            "With identity weights and no biases, a token of positive features should come out as it went in."
        )

    def linear_at_the_end(f):
        if torch.allclose(
            f(x, up, up_bias, -down, -down_bias), -f(x, up, up_bias, down, down_bias), atol=1e-3
        ):
            return None
        return "Turning the signs of down_weight and down_bias does not turn the sign of the output."

    return [
        tokens_apart((x, up, up_bias, down, down_bias)),
        Property("nothing-bends", "Where is max(…, 0) in your code?", bends),
        Property("not-passed", "What is done to an answer that is positive?", passes_positive_tokens),
        Property("not-silent", "What is left of a unit that is off, and what is added after that?", silent),
        Property("end-not-linear", "What happens in your code after the second matrix?", linear_at_the_end),
        Property("not-doubled", "Which function do you use between the two layers?", doubles),
    ]


_FFN_HINTS = (
    "How many numbers does a token have after the first layer, and what becomes of the negative ones before "
    "the second?",
    "Your up_project is the beginning of the first layer. What follows it in the formula, step by step, and "
    "which function of the lesson is max(…, 0)?",
    "hidden = F.relu(x @ up_weight.T + up_bias) is [..., D]. The second layer is the same without ReLU, with "
    "down_weight and down_bias, and hidden in place of x.",
)


@exercise(cases=_ffn_cases, mistakes=mistakes.FEED_FORWARD, hints=_FFN_HINTS, properties=_ffn_properties)
def feed_forward(x, up_weight, up_bias, down_weight, down_bias):
    hidden = F.relu(x @ up_weight.T + up_bias)
    return hidden @ down_weight.T + down_bias


narrow_rank = Answer(
    "narrow_rank",
    lesson=__name__,
    right={"rank": 3},
    mistakes=mistakes.NARROW_RANK,
    hints=(
        "In *Wider, but is it more?*, four columns had rank 2. What was it that the rank could not exceed?",
        "The rank is the smallest number of columns from which all columns can be mixed. From what is every "
        "output mixed?",
        "torch.linalg.matrix_rank(torch.randn(8, 3) @ torch.randn(3, 8)) computes it.",
    ),
    because="Everything passes through 3 numbers, so all 8 columns are mixed from 3. A narrow middle loses "
    "information for good, a wide one gains none.",
)


def _biased_cases(draw: Draw) -> list[Case]:
    tensor, eye, none = torch.tensor, torch.eye(2), torch.zeros(2)
    square, other = tensor([[1.0, -2.0], [0.0, 1.0]]), tensor([[1.0, 2.0], [3.0, 0.0]])
    small, wide, H, D = *draw.sizes(2, 2, 4), *draw.sizes(2, 5, 9)
    n = draw.size(3, 6)
    up, down = _weights(draw, H, D)
    return [
        Case((eye, tensor([1.0, -2.0]), eye, tensor([10.0, 20.0])), "identity weights"),
        Case((square, none, other, none), "no biases"),
        Case((eye, tensor([1.0, -2.0]), other, tensor([10.0, 20.0]))),
        Case((square, tensor([1.0, -2.0]), other, tensor([10.0, 20.0]))),
        Case((tensor([[1.0, 3.0]]), tensor([-4.0]), tensor([[2.0], [-5.0]]), tensor([1.0, 2.0])), "one unit"),
        Case(_network(draw, D, small), "D larger than H", gradients=True),
        Case(_network(draw, wide, H), "D smaller than H"),
        Case(_network(draw, n, n), "H = D"),
        Case((up.T, draw.weight(D), down.T, draw.weight(H)), "transposed views"),
        Case(tuple(w.double() for w in _network(draw, D, H)), "float64"),
    ]  # fmt: skip


def _biased_properties(draw: Draw) -> list[Property]:
    up, up_bias, down, down_bias = _network(draw, 5, 3)

    def zero_token(f):
        if torch.allclose(f(up, up_bias, down, down_bias)[1], down @ up_bias + down_bias, atol=1e-3):
            return None
        return "A token of zeros does not come out of your layer as it comes out of the two."

    def matrix_alone(f):
        if torch.allclose(
            f(up, up_bias, down, down_bias)[0], f(up, 3 * up_bias, down, 3 * down_bias)[0], atol=1e-3
        ):
            return None
        return "Other biases change the matrix."

    return [
        Property("matrix-has-biases", "Which of the four arguments belong in the matrix?", matrix_alone),
        Property("zero-token", "What do the two layers make of a token of zeros, step by step?", zero_token),
    ]


@exercise(
    cases=_biased_cases, mistakes=mistakes.COLLAPSE_WITH_BIAS, properties=_biased_properties,
    hints=(
        "What comes out of the two layers for a token of zeros?",
        "The matrix is that of your collapse. The second layer works on everything that the first one hands "
        "it, the first bias included.",
        "Multiply out down_weight (up_weight x + up_bias) + down_bias: what stands beside x is the matrix, "
        "and the rest is the bias.",
    ),
    outputs=("matrix", "bias"),
)  # fmt: skip
def collapse_with_bias(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight @ up_bias + down_bias


def _centred_cases(draw: Draw) -> list[Case]:
    tensor, eye, none = torch.tensor, torch.eye(2), torch.zeros(2)
    B, S, H, D = draw.sizes(4, 3)
    n = draw.size(3, 5)
    square, down = tensor([[1.0, 2.0], [0.0, 1.0]]), tensor([[1.0, -2.0], [3.0, 1.0]])
    two = tensor([[1.0, 7.0], [8.0, 2.0]])
    both = draw.normal(B, S, H)
    return [
        Case((two, eye, none, eye, none), "identity weights, no biases"),
        Case((two[:1], eye, none, eye, none), "one token"),
        Case((two[None], eye, none, eye, none), "a batch of one text"),
        Case((10 * two, eye, none, eye, none), "large tokens"),
        Case((two, square, none, eye, none)),
        Case((two, eye, none, down, none)),
        Case((two, eye, tensor([4.0, -2.5]), eye, none)),
        Case((two, eye, none, eye, tensor([-5.0, 3.0]))),
        Case(_away_from_the_bend(draw, (S, H), D, centred=True), "[S, H]", gradients=True),
        Case((draw.normal(n, n), *_network(draw, n, n)), "all sizes equal"),
        Case((both + 5, *_network(draw, D, H)), "[B, S, H]"),
        Case((draw.normal(H, S).T, *_network(draw, D, H)), "a transposed view"),
        Case((both.double(), *(w.double() for w in _network(draw, D, H))), "float64"),
    ]


def _centred_properties(draw: Draw) -> list[Property]:
    x, network = draw.normal(3, 4), _network(draw, 6, 4)

    def ignores_shift(f):
        if torch.allclose(f(x, *network), f(x + 5, *network), atol=1e-3):
            return None
        return "Adding 5 to every feature of every token changes the output: the mean is not all taken off."

    def has_mean_0(f):
        eye, none = torch.eye(4), torch.zeros(4)
        centred = f(x, eye, none, eye, none) - f(-x, eye, none, eye, none)  # ReLU of c, minus ReLU of −c
        if centred.mean(-1).abs().max() < 1e-3:
            return None
        return "What goes through ReLU with identity weights and no biases does not have mean 0."

    return [
        tokens_apart((x, *network)),
        Property("mean-not-0", "What is the mean of a token as it meets the first matrix?", has_mean_0),
        Property("sees-shift", "What is the mean of a token as it meets the first matrix?", ignores_shift),
    ]


@exercise(
    cases=_centred_cases, mistakes=mistakes.CENTRED, properties=_centred_properties,
    hints=(
        "In which line do numbers of different tokens meet?",
        "Replace one token and see which outputs move: only its own should. Which axis holds the features of "
        "one token?",
        "Each token needs a mean of its own: over the features, the last axis, and with keepdim=True. It is "
        "subtracted before the first matrix.",
    ),
    given=mistakes.centred_over_tokens,
)  # fmt: skip
def repair_centred_feed_forward(x, up_weight, up_bias, down_weight, down_bias):
    centred = x - x.mean(-1, keepdim=True)
    hidden = F.relu(centred @ up_weight.T + up_bias)
    return hidden @ down_weight.T + down_bias
