"""Comparing what a function did with what is right, and with what each known mistake does."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from .mistake import Mistake
from .run import Outcome, call, differentiable

# Largest |got − expected| / (|expected| + RMS of expected). Wide enough for any order of the sums;
# inputs are chosen so that a mistake is far beyond it. float64: a function may work in fp32 inside.
TOLERANCES = {
    torch.float64: 1e-5,
    torch.float32: 1e-4,
    torch.bfloat16: 3 * torch.finfo(torch.bfloat16).eps,
    torch.float16: 3 * torch.finfo(torch.float16).eps,
}
_GRADIENT_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Case:
    """One call of the student's function.

    `label` says what is special about it ("in fp16"), "" if nothing is. `gradients`: compare these as
    well, of all floating-point arguments (only the first must have one), or of those in these places.
    `tolerance` replaces that of TOLERANCES. `note`: other numbers are no mistake here, and told by this.
    """

    arguments: tuple
    label: str = ""
    gradients: bool | tuple[int, ...] = False
    tolerance: float | None = None
    note: str = ""

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The places of the arguments whose gradients are compared."""
        if not self.gradients:
            return ()
        places = range(len(self.arguments)) if self.gradients is True else self.gradients
        return tuple(i for i in places if differentiable(self.arguments[i]))


@dataclass(frozen=True)
class Seen:
    """What a call gave: a tuple of outputs, or None if it raised; and gradients if they were asked for."""

    values: tuple | None
    gradients: tuple[Tensor | None, ...] | None = None

    @cached_property
    def sums(self) -> list[tuple[float, float] | None]:
        """Of each output: the sum of its numbers, and by how much it may move for each unit of tolerance."""
        return [_sum(value) if isinstance(value, Tensor) else None for value in self.values or ()]


def _sum(value: Tensor) -> tuple[float, float] | None:
    if value.device.type == "meta":
        return None
    numbers = value.detach().double().flatten()
    rms = numbers.norm().item() / max(len(numbers), 1) ** 0.5
    return (
        (numbers.sum().item(), numbers.abs().sum().item() + len(numbers) * rms)
        if math.isfinite(rms)
        else None
    )


@dataclass(frozen=True)
class Problem:
    """The first thing that is wrong with an outcome: `kind` is an id, `sentence` says what."""

    kind: str
    sentence: str


def seen(outcome: Outcome, n_outputs: int) -> Seen:
    """The outputs as a tuple of `n_outputs`, whatever the function returned."""
    if outcome.error is not None:
        return Seen(None)
    returned = outcome.returned
    many = n_outputs > 1 and isinstance(returned, tuple | list)
    values = tuple(returned) if many else (returned,)
    return Seen(tuple(v if plain(v) else Odd(v) for v in values), outcome.gradients)


class Odd:
    """Stands for a tensor that is no plain array of numbers: sparse, quantized, nested, 8 bits wide."""

    def __init__(self, tensor: Tensor) -> None:
        self.kind = f"{str(tensor.layout)[6:]}, {str(tensor.dtype)[6:]}"


def plain(value) -> bool:
    """Whether a value is anything but an odd tensor."""
    if not isinstance(value, Tensor):
        return True
    usual = value.dtype.itemsize > 1 or value.dtype in (torch.bool, torch.uint8, torch.int8)
    return (
        type(value) in (Tensor, nn.Parameter)
        and value.layout == torch.strided
        and usual
        and not value.is_quantized
    )


def observe(function: Callable, case: Case, n_outputs: int, *, trusted: bool = True) -> Seen:
    """What a function of ours (the solution, a mistake) gives for a case; of a student's, if not trusted."""
    return seen(call(function, case.arguments, gradients=case.differentiated, trusted=trusted), n_outputs)


def same(a: Seen, b: Seen, case: Case) -> bool:
    """Whether two calls did the same, up to rounding: both raised, or equal outputs and gradients."""
    if a.values is None or b.values is None:
        return a.values is b.values
    if len(a.values) != len(b.values) or _far_apart(a, b, case.tolerance):
        return False
    if not all(_same_value(x, y, case.tolerance) for x, y in zip(a.values, b.values, strict=True)):
        return False
    if a.gradients is None or b.gradients is None:
        return True
    return all(_same_gradient(x, y) for x, y in zip(a.gradients, b.gradients, strict=True))


def _far_apart(a: Seen, b: Seen, tolerance: float | None) -> bool:
    """Whether the sums alone already tell two outputs apart: most mistakes are ruled out by that, sooner."""
    for x, y, value in zip(a.sums, b.sums, b.values, strict=True):
        if x and y and abs(x[0] - y[0]) > 1.001 * _tolerance(value, tolerance) * y[1]:
            return True
    return False


def _tolerance(expected: Tensor, tolerance: float | None) -> float:
    return TOLERANCES.get(expected.dtype, 0.0) if tolerance is None else tolerance


def _same_gradient(x: Tensor | None, y: Tensor | None) -> bool:
    if x is None or y is None:  # no gradient moves as much as a gradient of 0
        return (x is None or not x.any()) and (y is None or not y.any())
    return close(x, y, _GRADIENT_TOLERANCE)


def _same_value(got, expected, tolerance: float | None) -> bool:
    if isinstance(got, Tensor) and isinstance(expected, Tensor):
        alike = (got.shape, got.dtype, got.device) == (expected.shape, expected.dtype, expected.device)
        return alike and close(got, expected, tolerance)
    return type(got) is type(expected) and _same_object(got, expected)


def _same_object(got, expected) -> bool:
    if isinstance(expected, float):
        return math.isclose(got, expected, rel_tol=1e-6)
    try:
        return bool(got == expected)
    except (RuntimeError, ValueError):  # arrays, and lists of tensors: no single answer
        return False


def close(got: Tensor, expected: Tensor, tolerance: float | None = None) -> bool:
    """Whether every error is within the tolerance; None stands for that of the dtype."""
    tolerance = _tolerance(expected, tolerance)
    if got.device != expected.device:
        return False
    if torch.equal(got, expected):
        return True
    got, expected = got.detach().double(), expected.detach().double()
    rms = expected.norm().item() / max(expected.numel(), 1) ** 0.5
    if math.isfinite(rms):  # the quick way to the same answer
        return torch.allclose(got, expected, rtol=tolerance, atol=tolerance * rms)
    return bool((error(got, expected) <= tolerance).all())


def error(got: Tensor, expected: Tensor) -> Tensor:
    """|got − expected| / (|expected| + RMS of expected), entry by entry; 0 where both are not finite."""
    if got.device != expected.device or got.device.type == "meta":
        return torch.full(expected.shape, torch.inf)
    got, expected = got.detach().double(), expected.detach().double()
    finite = expected.isfinite()
    rms = expected[finite].square().mean().sqrt() if finite.any() else torch.tensor(0.0)
    rms = rms.nan_to_num(posinf=0.0)  # numbers so large that their squares are infinite say nothing of others
    apart = ((got - expected).abs() / (expected.abs() + rms)).nan_to_num(nan=torch.inf)
    apart = torch.where(got == expected, 0.0, apart)
    return torch.where(
        finite | (got == expected), apart, torch.where(got.isnan() & expected.isnan(), 0.0, torch.inf)
    )


def problem(outcome: Outcome, right: Seen, case: Case, names: tuple[str, ...]) -> Problem | None:
    """What is wrong with an outcome, in the order in which a teacher would look; None if nothing is.

    Args:
        right: what the solution gives for the case.
        names: of the outputs.
    """
    if outcome.timed_out:
        where = f" It was in {outcome.error.where}" if outcome.error.where else ""
        return Problem("too-slow", f"It was still running after a few seconds, and was stopped.{where}")
    if outcome.error is not None:
        where = f"\nin {outcome.error.where}" if outcome.error.where else ""
        return Problem("raises", f"It raised {outcome.error}{where}")
    if len(names) > 1:
        count = f"a tuple of {len(names)}: {', '.join(names)}"
        if not isinstance(outcome.returned, tuple | list):
            return Problem("wrong-type", f"{_what(outcome.returned)} came back; expected {count}.")
        if len(outcome.returned) != len(names):
            return Problem("wrong-type", f"{len(outcome.returned)} values came back; expected {count}.")
    values = seen(outcome, len(names)).values
    triples = [
        (f"{n}: " if len(names) > 1 else "", *pair)
        for n, *pair in zip(names, values, right.values, strict=True)
    ]
    # What is still missing first: `grad_x, ...` is half an answer.
    for look in (_type_problem, _value_problem):
        for it, got, expected in triples:
            if found := look(it, got, expected, case):
                return found
    return _gradient_problem(outcome, right, case)


def _type_problem(it: str, got, expected, case: Case) -> Problem | None:
    if isinstance(expected, Tensor) and not isinstance(got, Tensor):
        return Problem("wrong-type", f"{it}{_what(got)} came back; expected a tensor.")
    if not isinstance(expected, Tensor) and type(got) is not type(expected):
        return Problem("wrong-type", f"{it}{_what(got)} came back; expected {_a(type(expected).__name__)}.")
    return None


def _value_problem(it: str, got, expected, case: Case) -> Problem | None:
    if not isinstance(expected, Tensor):
        return None if _same_object(got, expected) else Problem("values", f"{it}another value than expected.")
    if got.shape != expected.shape:
        return Problem("shape", f"{it}the shape is {list(got.shape)}; expected {list(expected.shape)}.")
    if got.device != expected.device:
        return Problem("device", f"{it}the tensor is on {got.device}; expected on {expected.device}.")
    if got.dtype != expected.dtype:
        return Problem("dtype", f"{it}the dtype is {str(got.dtype)[6:]}; expected {str(expected.dtype)[6:]}.")
    if not got.isfinite().all() and expected.isfinite().all():
        return Problem(
            "not-finite",
            f"{it}there is {'a NaN, not a number' if got.isnan().any() else 'an infinite number'}.",
        )
    if not close(got, expected, case.tolerance):
        return Problem("values", f"{it}other numbers than expected.")
    return None


def _gradient_problem(outcome: Outcome, right: Seen, case: Case) -> Problem | None:
    if right.gradients is None or outcome.gradients is None:
        return None
    # The first argument is what flows through the network: cut off, nothing below can learn. A weight
    # without a gradient is only noted: it may have been wrapped into a module of its own.
    needed = case.gradients if isinstance(case.gradients, tuple) else case.differentiated[:1]
    pairs = zip(case.differentiated, outcome.gradients, right.gradients, strict=True)
    for place, got, expected in pairs:
        if got is None and expected is not None and place in needed:
            return Problem("gradient-cut", "The values are right, but no gradient comes back through it.")
        if got is not None and expected is not None and not close(got, expected, _GRADIENT_TOLERANCE):
            return Problem("gradient", "The values are right, the gradients are not.")
    return None


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _what(value) -> str:
    kind = type(value)
    if value is None or value is ...:
        return "Nothing" if value is None else "`...`"
    if isinstance(value, Tensor):
        return "One tensor"
    if isinstance(value, Odd):
        return f"A tensor of a special kind ({value.kind})"
    name = "numpy array" if kind.__module__ == "numpy" and kind.__name__ == "ndarray" else kind.__name__
    return _a(name).capitalize() if name.islower() else f"A {name}"


def fitting(
    all_seen: list[Seen], cases: list[Case], mistakes: dict[Mistake, list[list[Seen]]]
) -> Mistake | None:
    """The mistake that gives the same as was seen in every case."""
    for mistake, ways in mistakes.items():
        for way in ways:
            if all(same(a, b, case) for a, b, case in zip(all_seen, way, cases, strict=True)):
                return mistake
    return None


def showing(
    all_seen: list[Seen], right: list[Seen], cases: list[Case], mistakes: dict[Mistake, list[list[Seen]]]
) -> tuple[Mistake, int] | None:
    """A mistake that shows in part: in some cases it alone gives what was seen. With the first of them.

    One case with few numbers is not enough: that could be a coincidence.
    """
    found: dict[Mistake, list[int]] = {}
    for i, (mine, true, case) in enumerate(zip(all_seen, right, cases, strict=True)):
        if not _tells(mine) or same(mine, true, case):
            continue
        explaining = [m for m, ways in mistakes.items() if any(same(mine, way[i], case) for way in ways)]
        if len(explaining) == 1:
            found.setdefault(explaining[0], []).append(i)
    most = max(found, key=lambda mistake: len(found[mistake]), default=None)
    if most is None or sum(_count(right[i]) for i in found[most]) < 4:
        return None
    return most, found[most][0]


def _count(one: Seen) -> int:
    return (
        sum(v.numel() for v in one.values if isinstance(v, Tensor)) or 2
    )  # a width tells more than one number of many


def _tells(one: Seen) -> bool:
    """Whether equal outputs would say something: finite numbers, not all of them 0."""
    if one.values is None:
        return False
    tensors = [v for v in one.values if isinstance(v, Tensor)]
    if any(t.device.type == "meta" for t in tensors):
        return False
    return not tensors or (all(t.isfinite().all() for t in tensors) and any(t.any() for t in tensors))
