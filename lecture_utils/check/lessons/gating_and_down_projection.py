"""The exercises of lesson 4."""

import torch
import torch.nn.functional as F

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import gating_and_down_projection as mistakes
from ..properties import Property, tokens_apart


def _pick(z: float, up: float) -> tuple:
    """One token of two features, one candidate: `z` is read from feature 1, the candidate from feature 2."""
    read = torch.eye(2)
    return torch.tensor([[z, up]]), read[:1], read[1:], torch.ones(2, 1)


def _tokens(z: list, up: list, features: float = 1.0) -> tuple:
    """Two tokens of four features, which are their `z` and their candidates, two of each.

    With `features` small the tokens are small, and the weights are large in its place.
    """
    x, read = torch.tensor([a + b for a, b in zip(z, up, strict=True)]), torch.eye(4) / features
    down = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]])
    return features * x, read[:2], read[2:], down


def _swiglu_cases(draw: Draw) -> list[Case]:
    """The smallest numbers first; then inputs on which two mistakes made together show one by one."""
    token = torch.tensor([[[2.0, -1.0], [-1.0, 2.0]]])
    gate = torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    up = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    down = torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])
    symmetric = torch.tensor([[1.0, 2.0], [2.0, -1.0]])
    ones, some, others = [[1.0, 1.0]] * 2, [[3.0, -2.0], [0.5, -1.5]], [[2.0, -0.5], [-1.5, 1.25]]
    # SiLU(-12) is so small that it takes a large candidate to be seen beside another product.
    first, alone = torch.tensor([[1.0, 0.0]]), torch.eye(2)
    shut = first, torch.tensor([[-12.0, 0.0], [1.0, 0.0]]), torch.tensor([[1000.0, 0.0], [0.1, 0.0]]), alone
    open_ = first, torch.tensor([[12.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.25, 0.0], [3.0, 0.0]]), alone
    B, S, H, D = draw.sizes(4)
    n = draw.size(2, 6)

    def weights(features, width):
        return draw.normal(width, features), draw.normal(width, features), draw.normal(features, width)

    def dtype(to, x, *weights):
        return tuple(t.to(to) for t in (x, *weights))

    x, gate_up_down = draw.normal(B, S, H), weights(H, D)
    return [
        Case(_pick(2.0, -1.0), gradients=True),
        Case(_pick(-1.0, 3.0), "z below 0"),
        Case((token[0], gate[:2], up[1:], down[:, 1:]), "H = D"),
        Case((token, gate, up, down), "[B, S, H]"),
        Case((token[0, 0], gate, up, down), "one token alone"),
        Case(_tokens(ones, some)),  # z is 1: sigmoid and SiLU agree
        Case(_tokens(others, ones)),  # candidates of 1
        Case(_tokens([[30.0, 40.0], [60.0, 50.0]], some)),  # SiLU, GELU, ReLU and no curve agree
        Case(_tokens(others, others)),  # z and candidates are equal
        Case(_tokens(others, some, features=1e-5), "tiny features"),  # x itself is too small to be seen
        Case((torch.tensor([[1.0, 0.5], [-1.0, 1.0]]), symmetric, symmetric.flip(0, 1), -symmetric)),
        Case((x, *gate_up_down), gradients=True),
        Case((draw.normal(2, B, S, H), *gate_up_down), "three axes before the features"),
        Case((draw.normal(n, n, n), *weights(n, n)), "all sizes equal", gradients=True),
        Case((draw.normal(H, S).T, *(w.T for w in weights(D, H))), "transposed views"),
        Case(dtype(torch.float64, draw.normal(B, S, H), *weights(H, D)), "float64"),
        Case(dtype(torch.float16, *shut), "fp16"),
        Case(dtype(torch.float16, *open_), "fp16"),
        Case(dtype(torch.bfloat16, draw.normal(B, S, H), *weights(H, D)), "bf16", tolerance=0.06),
    ]


def _swiglu_properties(draw: Draw) -> list[Property]:
    x, gate, up, down = draw.normal(2, 3, 4), draw.normal(5, 4), draw.normal(5, 4), draw.normal(4, 5)

    def alike(a, b):
        return torch.allclose(a, b, rtol=1e-3, atol=1e-4)

    def nothing_from_closed_gates(f):
        if f(x, 0 * gate, up, down).abs().max() < 1e-6:
            return None
        return "With a gate_weight of zeros every gate is 0, and still something comes back."

    def linear_in_down(f):
        if alike(f(x, gate, up, 2 * down), 2 * f(x, gate, up, down)):
            return None
        return "Twice the down_weight does not give twice the output."

    def linear_in_up(f):
        if alike(f(x, gate, 2 * up, down), 2 * f(x, gate, up, down)):
            return None
        return "Twice the up_weight does not give twice the output: a candidate should be a plain projection."

    def bent_in_gate(f):
        if not alike(f(x, 2 * gate, up, down), 2 * f(x, gate, up, down)):
            return None
        return "Twice the gate_weight gives exactly twice the output: nothing bends z."

    def gate_of_2(f):
        gate = f(*_pick(2.0, 1.0))[0, 0].item()
        return (
            None
            if abs(gate - 1.7616) < 1e-3
            else f"For z = 2 and candidate 1 it gives {gate:.4g}; SiLU(2) is 1.762."
        )

    def gate_of_minus_1(f):
        gate = f(*_pick(-1.0, 1.0))[0, 0].item()
        return (
            None
            if abs(gate + 0.2689) < 1e-3
            else f"For z = -1 and candidate 1 it gives {gate:.4g}; SiLU(-1) is -0.2689."
        )

    return [
        tokens_apart((x, gate, up, down)),
        Property(
            "gates-open", "What should be left of a candidate when its gate is 0?", nothing_from_closed_gates
        ),
        Property("not-linear-in-down", "What comes after your down-projection?", linear_in_down),
        Property("not-linear-in-up", "How does a candidate get from x to the product?", linear_in_up),
        Property("nothing-bends", "Where is SiLU?", bent_in_gate),
        Property("gate-of-2", "Which curve makes your gate, and of which number?", gate_of_2),
        Property("gate-of-minus-1", "What does your gate do below 0?", gate_of_minus_1),
    ]


_SWIGLU_HINTS = (
    "Two projections of the same token: what happens to each of them before they meet, and how do they meet?",
    "The four steps of Build, in their order. Which matrix makes the candidates, which one z, and around "
    "which "
    "of the two does SiLU go?",
    "gate = F.silu(F.linear(x, gate_weight)) is step 2. The last line is F.linear(gate * up, down_weight).",
)


@exercise(
    cases=_swiglu_cases, mistakes=mistakes.SWIGLU, hints=_SWIGLU_HINTS, properties=_swiglu_properties
)  # fmt: skip
def swiglu(x, gate_weight, up_weight, down_weight):
    gate = F.silu(F.linear(x, gate_weight))
    up = F.linear(x, up_weight)
    return F.linear(gate * up, down_weight)


def _width_cases(draw: Draw) -> list[Case]:
    """From H = 300, where 8H/3 is 800, to published models."""
    small = [
        Case((300, 50, 1.0), "a multiple already"),
        Case((300, 70, 1.0)),
        Case((300, 30, 1.0)),
        Case((300, 1, 1.0)),
        Case((30, 1000, 1.0)),
        Case((50, 700, 1.25)),
        Case((300, 1, 1.25)),
        Case((300, 150, 1.25)),
        Case((300, 1, 2.5)),
        Case((100, 1, 1.0), "decimals to cut off"),
        Case((200, 1, 1.0), "decimals to cut off"),
        Case((200, 1, 1.1), "decimals to cut off"),
        Case((100, 1, 1.5), "decimals to cut off"),
        Case((100, 1, 1.1), "decimals to cut off"),
        Case((1, 1, 1.3), "decimals to cut off"),
        Case((16384, 1, 1.0), "decimals to cut off"),
    ]
    models = [(4096, 256, 1.0), (3072, 256, 1.0), (4096, 1024, 1.3), (8192, 4096, 1.3), (16384, 4096, 1.2)]
    drawn = [
        (draw.size(1, 400), draw.size(2, 60), draw.size(100, 300) / 100),
        (draw.size(400, 9000), 2 ** draw.size(3, 9), draw.size(100, 200) / 100),
        (draw.size(400, 9000), 2 ** draw.size(3, 9), 1.0),
    ]
    return small + [Case(m, "published models") for m in models] + [Case(d) for d in drawn]


def _width_properties(draw: Draw) -> list[Property]:
    H, multiple_of = draw.size(100, 2000), 2 ** draw.size(4, 7)

    def is_multiple(f):
        width = f(H, multiple_of, 1.0)
        if width % multiple_of == 0:
            return None
        return f"For H = {H} the width is {width}: not a multiple of {multiple_of}."

    def not_below(f):
        size, width = 8 * H // 3, f(H, multiple_of, 1.0)
        return None if width >= size else f"For H = {H} the width {width} is below 8H/3, which is {size}."

    def not_far_above(f):
        size, width = 8 * H // 3, f(H, multiple_of, 1.0)
        if width < size + multiple_of:
            return None
        return f"For H = {H}, 8H/3 is {size}, and the width {width}: {multiple_of} or more above it."

    def stays(f):
        size, width = 8 * multiple_of, f(3 * multiple_of, multiple_of, 1.0)
        if width == size:
            return None
        return (
            f"For H = {3 * multiple_of}, 8H/3 is {size}, a multiple of {multiple_of}, and it becomes {width}."
        )

    return [
        Property("not-a-multiple", "Which step makes a multiple of multiple_of?", is_multiple),
        Property("below", "In which direction is the width rounded?", not_below),
        Property("too-far-above", "What is the size before you round it up?", not_far_above),
        Property("multiple-moved", "What do you add to a size that needs no rounding?", stays),
    ]


@exercise(
    cases=_width_cases, mistakes=mistakes.INTERMEDIATE_SIZE, properties=_width_properties,
    hints=(
        "The formula has three pairs of brackets. In which order are they worked out, and in which direction "
        "does each of them go?",
        "int(…) cuts decimals off; `//` divides and rounds down. What could you add before dividing, so that "
        "rounding down becomes rounding up, and a multiple stays what it is?",
        "size = int(multiplier * int(8 * hidden_size / 3)), and (size + multiple_of - 1) // multiple_of is "
        "how many multiples there are.",
    ),
)  # fmt: skip
def intermediate_size(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * int(8 * hidden_size / 3))
    return multiple_of * ((size + multiple_of - 1) // multiple_of)


doubled_token = Answer(
    "doubled_token",
    lesson=__name__,
    right={"bilinear": 4.0, "swiglu_at_1": 4.82, "swiglu_at_minus_1": 1.77},
    mistakes=mistakes.DOUBLED_TOKEN,
    hints=(
        "Which numbers are multiplied in each of the two units, and which of them double?",
        "SiLU(z) is z times σ(z). When z doubles, what becomes of each of its two factors?",
        "The candidate gives a factor of 2, z another 2, the sigmoid σ(2z) / σ(z): both are in the table "
        "under Who sets the gates?.",
    ),
    because="z and the candidate double: 2 · 2 is the bilinear unit. In SwiGLU the sigmoid changes too: "
    "4 · σ(2) / σ(1) = 4 · 0.8808 / 0.7311, and 4 · σ(−2) / σ(−1) = 4 · 0.1192 / 0.2689. "
    "The candidate does not matter.",
    tolerance=1e-3,  # two decimals, as the exercise asks
)

multipliers = Answer(
    "multipliers",
    lesson=__name__,
    right={"smallest": 1.29, "largest": 1.31, "how_many": 3},
    mistakes=mistakes.MULTIPLIERS,
    hints=(
        "Which sizes are rounded up to 14336, and how many multipliers lead to one of them?",
        "Let the computer try every multiplier from 1.00 to 2.00 in steps of 0.01.",
        "[m / 100 for m in range(100, 201) if intermediate_size(4096, 256, m / 100) == …]",
    ),
    because="1.29, 1.30 and 1.31 give the same width, so the multiplier cannot be read off a config.",
    tolerance=1e-5,  # 1.3125 is not 1.31
)

sigmoid_twin = Answer(
    "sigmoid_twin",
    lesson=__name__,
    right={"z": 1.0},
    mistakes=mistakes.SIGMOID_TWIN,
    hints=(
        "By which factor do SiLU and the sigmoid differ?",
        "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
        "Look for a row of the table under Who sets the gates? where both columns agree.",
    ),
    because="SiLU(z) is z times the sigmoid, and a factor of 1 changes nothing. With all weights and "
    "features 1, z is H: a test with H = 3 can tell the two apart, and one with H = 1 cannot.",
)


def _fused_cases(draw: Draw) -> list[Case]:
    fused = []
    for case in _swiglu_cases(draw):
        x, gate, up, down = case.arguments
        fused.append(Case((x, torch.cat((gate, up)), down), case.label, case.gradients, case.tolerance))
    return fused


def _fused_properties(draw: Draw) -> list[Property]:
    """Those of swiglu, asked of the fused function."""

    def adapted(holds):
        def holds_fused(f):
            evidence = holds(lambda x, gate, up, down: f(x, torch.cat((gate, up)), down))
            for half in ("gate", "up"):
                evidence = evidence and evidence.replace(f"{half}_weight", f"{half} half of the matrix")
            return evidence

        return holds_fused

    return [Property(p.id, p.question, adapted(p.holds)) for p in _swiglu_properties(draw)]


@exercise(
    cases=_fused_cases, mistakes=mistakes.FUSED_SWIGLU, properties=_fused_properties,
    given=mistakes.FUSED_SWIGLU["gate-and-up-exchanged"].functions[0],
    hints=(
        "The product has 2D numbers for each token. Which half of them belongs to the gate?",
        "torch.cat((gate_weight, up_weight)) puts one above the other. Whose rows come first?",
        "The gate's half comes first, and SiLU belongs around the gate's half: in the line of chunk, gate "
        "comes first.",
    ),
)  # fmt: skip
def repair_fused_swiglu(x, gate_up_weight, down_weight):
    gate, up = F.linear(x, gate_up_weight).chunk(2, dim=-1)  # two tensors, each [..., D]
    return F.linear(F.silu(gate) * up, down_weight)
