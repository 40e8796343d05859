"""The exercises of lesson 5."""

import torch

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import silu_curves as mistakes
from ..properties import Property

_ONE_STEP = 1e-4  # less than one step of a 16-bit number: it has to be rounded once
_DOUBLE = 1e-12  # nothing was rounded to fp32 on the way


def _random_cases(draw: Draw, gradients: bool) -> list[Case]:
    """No axes, one and several; a transposed view; float64."""
    B, S, H = draw.sizes(3)
    return [
        Case((draw.uniform(0.5, 3.0),), "a tensor without axes"),
        Case((3 * draw.normal(H),), "one axis"),
        Case((3 * draw.normal(H, S).T,), "a transposed view"),
        Case((3 * draw.normal(S, H).double(),), "float64"),
        Case((3 * draw.normal(B, S, H),), "[B, S, H]", gradients=gradients),
    ]


def _silu_cases(draw: Draw) -> list[Case]:
    """The smallest numbers first; far left, far right and each dtype have an input of their own."""
    in_bf16 = torch.tensor([-1.25, -2.25, 2.75]).bfloat16()  # rounding twice shows in each
    return [
        Case((torch.tensor([1.0, -1.0]),), "1 and -1", gradients=True),
        Case((torch.tensor([0.0, 3.0]),)),
        Case((torch.tensor([-4.0, -0.5]),)),
        Case((torch.tensor([-16.0]),), "far left"),
        Case((torch.tensor([-30.0]),)),
        Case((torch.tensor([-12.0]).half(),), "-12 in fp16", gradients=True, tolerance=_ONE_STEP),
        Case((in_bf16,), "three numbers in bf16", tolerance=_ONE_STEP),
        Case((torch.tensor([1.0, -1.0]).double(),), "float64", tolerance=_DOUBLE),
        Case((torch.tensor([1.0, -200.0]),), "-200", gradients=True),
        Case((torch.tensor([1.0, -1000.0]),), "-1000", gradients=True),
        Case((torch.tensor([1.0, 1000.0]),), "1000", gradients=True),
        Case((torch.tensor([1000.0, -100.0]),), "both signs", gradients=True),
        Case((torch.tensor([-1000.0, 100.0]),), "both signs", gradients=True),
        *_random_cases(draw, gradients=True),
    ]


def _entries_apart(draw: Draw) -> Property:
    x = draw.normal(2, 3)

    def holds(f):
        together, alone = f(x), torch.stack([f(row) for row in x.flatten()[:, None]]).reshape(2, 3)
        if torch.allclose(together, alone, rtol=1e-3, atol=1e-5):
            return None
        return "A number among others gives something else than the same number alone."

    return Property("entries-mixed", "Which of your lines looks at more than one number at a time?", holds)


def _at(f, value: float) -> float:
    return f(torch.tensor([value])).item()


def _unless(right: bool, evidence: str) -> str | None:
    return None if right else evidence


def _silu_properties(draw: Draw) -> list[Property]:
    def keeps_zero(f):
        here = _at(f, 0.0)
        return _unless(abs(here) < 1e-6, f"At 0 it gives {here:.4g}, not 0.")

    def reaches_the_line(f):
        here = _at(f, 20.0)
        return _unless(abs(here - 20) < 1e-3, f"At 20 it gives {here:.4g}: nearly 20 is right.")

    def fades_on_the_left(f):
        here = _at(f, -20.0)
        return _unless(abs(here) < 1e-3, f"At −20 it gives {here:.4g}: nearly 0 is right.")

    def has_beta_1(f):
        switch = torch.tensor(_at(f, 1.0), dtype=torch.float64)
        beta = torch.logit(switch).item()
        others = [abs(_at(f, x) - x * torch.sigmoid(torch.tensor(beta * x)).item()) for x in (-2.0, 0.5, 3.0)]
        same = 0 < switch < 1 and max(others) < 1e-3 and abs(beta - 1) > 1e-3
        return _unless(not same, f"It is x · σ(βx), with β = {beta:.4g} in place of 1.")

    def falls_behind_as_it_dips(f):
        fits = all(abs(_at(f, x) - _at(f, -x) - x) < 1e-3 for x in (1.0, 2.0))
        return _unless(fits, "Its value at x minus its value at −x is not x.")

    return [
        _entries_apart(draw),
        Property("another-beta", "Which number goes into your switch when x is 1?", has_beta_1),
        Property("not-0-at-0", "By what is 0 multiplied?", keeps_zero),
        Property("not-x-on-the-right", "What does the switch of 20 let pass?", reaches_the_line),
        Property("not-0-on-the-left", "What does the switch of −20 let pass?", fades_on_the_left),
        Property("switches-not-1", "What do the switches of 1 and −1 sum to?", falls_behind_as_it_dips),
    ]


@exercise(
    cases=_silu_cases, mistakes=mistakes.SILU, properties=_silu_properties,
    hints=(
        "A number times its own switch: which x does the switch see, and in which dtype does each step work?",
        "Step 1 of Build takes two measures so that 16 bits do no harm, and both help here. Which step of "
        "yours comes first, and which comes last?",
        "z = x.to(torch.promote_types(x.dtype, torch.float32)) is the first line; z times torch.sigmoid(z) "
        "is the value, which still has to be turned back into x.dtype.",
    ),
)  # fmt: skip
def silu(x):
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    return (z * torch.sigmoid(z)).to(x.dtype)


_SUBTRACTED = (
    "At 1e8 your slope is not 1: it adds and subtracts the same large number there. "
    "σ · (1 + x · (1 − σ)) does not."
)


def _grad_cases(draw: Draw) -> list[Case]:
    in_bf16 = torch.tensor([0.3125, -0.25, 2.25, 3.5]).bfloat16()
    return [
        Case((torch.tensor([0.0, 1.0]),)),
        Case((torch.tensor([2.4, -2.4]),)),
        Case((torch.tensor([-4.0, 0.5]),)),
        Case((torch.tensor([-16.0]),), "far left"),
        Case((torch.tensor([-30.0]),)),
        Case((torch.tensor([-12.0]).half(),), "-12 in fp16", tolerance=_ONE_STEP),
        Case((in_bf16,), "four numbers in bf16", tolerance=_ONE_STEP),
        Case((torch.tensor([-0.125, 0.15625]).half(),), "two numbers in fp16", tolerance=_ONE_STEP),
        Case((torch.tensor([1.0, -1.0]).double(),), "float64", tolerance=_DOUBLE),
        Case((torch.tensor([1.0, -200.0]),), "far from 0"),
        Case((torch.tensor([1.0, 200.0]),), "far from 0"),
        Case((torch.tensor([1.0, -1000.0]),)),
        Case((torch.tensor([1.0, 1000.0]),)),
        Case((torch.tensor([1.0, 1e8]),), note=_SUBTRACTED),
        *_random_cases(draw, gradients=False),
    ]


def _grad_properties(draw: Draw) -> list[Property]:
    def half_at_zero(f):
        here = _at(f, 0.0)
        return _unless(abs(here - 0.5) < 1e-4, f"At 0 it gives {here:.4g}, not ½.")

    def far_away(f):
        right, left = _at(f, 20.0), _at(f, -20.0)
        good = abs(right - 1) < 1e-3 and abs(left) < 1e-3
        curve = "far right the curve is the line x, far left it is flat"
        return _unless(good, f"At 20 it gives {right:.4g}, and at −20 {left:.4g}: {curve}.")

    def sum_to_1(f):
        together = _at(f, 2.0) + _at(f, -2.0)
        return _unless(abs(together - 1) < 1e-3, f"Its slopes at 2 and −2 sum to {together:.4g}, not to 1.")

    def climbs_as_the_curve(f):
        rise = silu.solution_function(torch.tensor([1.99, 2.01], dtype=torch.float64)).diff().item() / 0.02
        here = _at(f, 2.0)
        rises = f"From 1.99 to 2.01 SiLU rises by {rise:.4g} per unit; yours says {here:.4g} at 2."
        return _unless(abs(here - rise) < 1e-3, rises)

    return [
        _entries_apart(draw),
        Property(
            "not-half-at-0", "How open is the switch at 0? What is the second term there?", half_at_zero
        ),
        Property("wrong-far-away", "What does SiLU look like far from 0?", far_away),
        Property("not-summing-to-1", "silu(x) − silu(−x) is x. What does that say of the slopes?", sum_to_1),
        Property("not-the-rise", "Which two terms does the product rule give?", climbs_as_the_curve),
    ]


@exercise(
    cases=_grad_cases, mistakes=mistakes.SILU_GRAD, properties=_grad_properties,
    hints=(
        "SiLU is a product, so its slope has two terms. Which, and in which dtype does each step work?",
        "One term changes the number, the other changes the switch: see The slope by hand. The dtype is "
        "that of Step 1 of Build.",
        "With z in at least fp32 and s = torch.sigmoid(z), the slope is s * (1 + z * (1 - s)); it still has "
        "to be turned back into x.dtype.",
    ),
)  # fmt: skip
def silu_grad(x):
    z = x.to(torch.promote_types(x.dtype, torch.float32))
    s = torch.sigmoid(z)
    return (s * (1 + z * (1 - s))).to(x.dtype)


silu_sum = Answer(
    "silu_sum",
    lesson=__name__,
    right={"sum_at_1": 0.46212, "sum_at_10": 9.99909, "can_be_negative": "no"},
    mistakes=mistakes.SILU_SUM,
    hints=(
        "silu(x) is x · σ(x). What is silu(−x), written with σ(x)?",
        "The switches of x and −x sum to 1. Write both terms with the same switch: what do they share?",
        "σ(−x) = 1 − σ(x), so the sum is x · (2σ(x) − 1). Which sign do the two factors have? At 1, σ is "
        "0.7311; at 10 it is nearly 1.",
    ),
    because="silu(x) + silu(−x) = x · σ(x) − x · (1 − σ(x)) = x · (2σ(x) − 1) = x · tanh(x/2). Both factors "
    "have the sign of x, so the sum is never negative; it is 0 only at 0, and tends to |x|.",
)

residual_gradient = Answer(
    "residual_gradient",
    lesson=__name__,
    right={"vanished": 0, "exploded": 2},
    mistakes=mistakes.RESIDUAL_GRADIENT,
    hints=(
        "A sum has two ways back. By what is the gradient multiplied on the way that goes around the curve?",
        "`measured[label, name][-1, 0]` is the gradient behind 30 layers. Count over both gains and all "
        "four curves.",
        "h = h + f(z), then the cells of `measured` again. Nothing is left below 0.001, and only curves "
        "that grow with their input, at the larger gain, pass a million.",
    ),
    because="The way around the curve multiplies by 1, so no gradient vanishes. With gain √2 those of ReLU "
    "and SiLU explode: each layer adds to the stream in proportion to its size, so the stream grows by a "
    "factor per layer, and the gradient with it. A Llama normalizes the input of each layer (lessons 1 and "
    "2), so what a layer adds no longer grows with the stream.",
)


_LIMITED = "At −85 your value is not that of the formula: a limit (a clamp) shows. It is as good as 0."


def _sigmoid_cases(draw: Draw) -> list[Case]:
    return [
        Case((torch.tensor([1.0, -1.0]),), gradients=True),
        Case((torch.tensor([0.0, 2.0]),), gradients=True),
        Case((torch.tensor([-30.0]),)),
        Case((torch.tensor([1.0, -200.0]),), "-200", gradients=True),
        Case((torch.tensor([1.0, 200.0]),), "200", gradients=True),
        Case((torch.tensor([1.0, -1000.0]),), gradients=True),
        Case((torch.tensor([-85.0]),), note=_LIMITED),
        *_random_cases(draw, gradients=True),
    ]


@exercise(
    cases=_sigmoid_cases, mistakes=mistakes.REPAIR_SIGMOID, given=mistakes.where_on_both_branches,
    hints=(
        "At −200, does one of your lines compute exp(200), whether or not what it gives is used?",
        "On the way back a part that was not used gets the gradient 0, and 0 times infinity is NaN. So what "
        "may exp see, at every x?",
        "Make the argument of exp harmless before the branches: torch.where(x >= 0, -x, x) is never above "
        "0. Both branches can use its exp.",
    ),
)  # fmt: skip
def repair_sigmoid(x):
    small = torch.exp(torch.where(x >= 0, -x, x))
    return torch.where(x >= 0, 1 / (1 + small), small / (1 + small))
