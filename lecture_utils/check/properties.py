"""What still can be said when no known mistake fits: properties that fail, and patterns in the numbers."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .judge import Case, Seen, error, observe, same
from .run import call


@dataclass(frozen=True)
class Property:
    """Something that the right answer has.

    `holds(f)` calls the student's function through `f`, and returns None, or a sentence: the evidence
    that it does not hold. `question` leads to the cause.
    """

    id: str
    question: str
    holds: Callable[[Callable], str | None]


@dataclass(frozen=True)
class Finding:
    """A property that fails, or a pattern that was seen: `id`, what was seen, and a question."""

    id: str
    sentence: str
    question: str
    whole: bool = False  # it explains every number in every input: no known mistake can say more


def failing(properties: list[Property], function: Callable, n_outputs: int) -> list[Finding]:
    """The properties that do not hold, in their order. One that cannot be tried is left out."""

    def f(*arguments):
        outcome = call(function, arguments)
        if outcome.error is not None:
            raise outcome.error
        return outcome.returned if n_outputs == 1 else tuple(outcome.returned)

    found = []
    for each in properties:
        try:
            evidence = each.holds(f)
        except Exception:
            continue  # it raises on this input, or returns something else: other lines say so
        if evidence:
            found.append(Finding(each.id, evidence, each.question))
    return found


def tokens_apart(arguments: tuple, axis: int = -2, what: str = "token") -> Property:
    """Scaling the last token of the first argument may not move another one."""

    def holds(f) -> str | None:
        x, *rest = arguments
        louder = x.clone()
        louder.select(axis, -1).mul_(10)
        before, after = (_first(f(t, *rest)).movedim(axis, 0)[:-1] for t in (x, louder))
        moved = error(after, before) > 1e-4
        return f"Making one {what} ten times as large changed another {what}." if moved.any() else None

    return Property(
        f"{what}s-mixed", f"Over which axes do you average or add? Which of them holds the {what}s?", holds
    )


def unused_arguments(
    names: tuple[str, ...], solution: Callable, function: Callable, case: Case, n_outputs: int
) -> list[Finding]:
    """Arguments that make no difference to the function, although they should."""
    found = []
    base, expected = observe(function, case, n_outputs, trusted=False), observe(solution, case, n_outputs)
    if base.values is None:
        return found
    for i, (name, argument) in enumerate(zip(names, case.arguments, strict=True)):
        for changed in _others(argument):
            other = Case((*case.arguments[:i], changed, *case.arguments[i + 1 :]), tolerance=case.tolerance)
            right = observe(solution, other, n_outputs)
            mine = observe(function, other, n_outputs, trusted=False)
            if right.values is None or mine.values is None:
                continue
            if not same(right, expected, case) and same(mine, base, case):
                sentence = f"Another `{name}` makes no difference to what comes back."
                found.append(Finding(f"{name}-unused", sentence, f"Where should `{name}` come in?"))
                break
    return found


def _others(argument) -> list:
    """Other values of the same kind, by which to see whether an argument is used."""
    if isinstance(argument, Tensor):
        if argument.is_floating_point():
            # No multiple and no shift of it: there are functions that ignore these.
            wave = torch.arange(1, argument.numel() + 1, device=argument.device).reshape(argument.shape)
            return [argument * (1.5 + wave.cos()).to(argument) + (2 * wave).sin().to(argument)]
        return [argument * 3 + 1]
    if isinstance(argument, float):
        return [3 * argument + 0.5]
    return [2 * argument, argument // 2] if isinstance(argument, int) else []


def is_random(function: Callable, case: Case, n_outputs: int) -> bool:
    """Whether two calls with the same arguments give different things."""
    first, second = (observe(function, case, n_outputs, trusted=False) for _ in range(2))
    return not same(first, second, case)


def pattern(mine: list[Seen], right: list[Seen]) -> Finding | None:
    """One simple relation between what came back and what was expected, if it holds in every wrong case."""
    # first_compared: whether the first wrong input, the one that is shown, is among the pairs
    pairs, first_compared = [], None
    for a, b in zip(mine, right, strict=True):
        if a.values is None or len(a.values) != len(b.values):
            return None
        for x, y in zip(a.values, b.values, strict=True):
            if not isinstance(x, Tensor) or not isinstance(y, Tensor):
                return None
            if x.shape != y.shape or x.device != y.device or x.is_complex():
                return None
            if not _far(x, y):
                continue
            compared = y.numel() > 1 and y.dtype in (torch.float32, torch.float64)
            first_compared = compared if first_compared is None else first_compared
            if compared:
                pairs.append((x.detach().double(), y.detach().double()))
    if not pairs:
        return None
    for recognise in (*_SIMPLE, _reordered, *([_partly] if first_compared else [])):
        findings = [recognise(x, y) for x, y in pairs]
        if all(findings) and len({f.id for f in findings}) == 1:
            # One factor for all inputs, or only "some factor": its size is then a matter of the input.
            one = len({f.sentence for f in findings}) == 1 and len(findings) > 1 and recognise in _SIMPLE
            return replace(findings[0], whole=one) if one else _loosely(findings[0])
    return None


def _loosely(finding: Finding) -> Finding:
    loose = {
        "scaled": "For each input, every number is off by the same factor; the factor depends on the input.",
        "shifted": "For each input, every number is off by the same amount; the amount depends on the input.",
        "constant": "For each input, all numbers that came back are the same.",
    }
    return replace(finding, sentence=loose.get(finding.id, finding.sentence))


def _far(x: Tensor, y: Tensor) -> bool:
    return bool((error(x, y) > 1e-4).any())


def _first(returned) -> Tensor:
    return returned[0] if isinstance(returned, tuple) else returned


def _constant(x: Tensor, y: Tensor) -> Finding | None:
    if x.isfinite().all() and (x == x.flatten()[0]).all() and not (y == y.flatten()[0]).all():
        value = f"{x.flatten()[0].item():.4g}"
        return Finding("constant", f"Every number that came back is {value}.", "Which line lost the input?")
    return None


def _scaled(x: Tensor, y: Tensor) -> Finding | None:
    far_from_0 = y.abs() > 1e-6
    ratio = x[far_from_0] / y[far_from_0]
    if not ratio.numel() or not torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-3):
        return None
    factor = ratio[0].item()
    if abs(factor - 1) < 1e-3:
        return None  # only the numbers near 0 differ
    if abs(factor + 1) < 1e-3:
        return Finding(
            "sign", "Every number has the wrong sign, and the right size.", "Where does a minus belong?"
        )
    if not x.any():
        return Finding("constant", "Every number that came back is 0.", "Which factor is 0?")
    sentence = f"Every number is {factor:.4g} times what it should be."
    return Finding("scaled", sentence, "What is multiplied or divided once too often, or not at all?")


def _shifted(x: Tensor, y: Tensor) -> Finding | None:
    gap = x - y
    if torch.allclose(gap, gap.flatten()[0].expand_as(gap), rtol=1e-3, atol=1e-6):
        sentence = f"Every number is off by the same amount, {gap.flatten()[0].item():.4g}."
        return Finding("shifted", sentence, "What is added that should not be, or not added?")
    return None


_SIMPLE = (_constant, _scaled, _shifted)


def _reordered(x: Tensor, y: Tensor) -> Finding | None:
    if x.numel() < 3 or not torch.allclose(
        x.flatten().sort()[0], y.flatten().sort()[0], rtol=1e-4, atol=1e-6
    ):
        return None
    question = "Which step puts them into an order: a transpose, a reshape, a stack, a cat?"
    return Finding("reordered", "The numbers are the right ones, in another order.", question)


def _partly(x: Tensor, y: Tensor) -> Finding | None:
    """Right on some entries of one axis, wrong on others: say which."""
    wrong = error(x, y) > 1e-4
    for axis in range(y.dim()):
        others = tuple(a for a in range(y.dim()) if a != axis)
        by_entry = wrong.any(dim=others) if others else wrong
        n = len(by_entry)
        if n < 2 or by_entry.all():
            continue
        right = [i for i in range(n) if not by_entry[i]]
        name = "the last axis" if axis == y.dim() - 1 else f"axis {axis}"
        listed = ", ".join(map(str, right[:6])) + (" …" if len(right) > 6 else "")
        entries = f"entry {listed} of {n} is" if len(right) == 1 else f"entries {listed} of {n} are"
        sentence = f"Along {name}, {entries} right, and the others are not."
        return Finding("partly-right", sentence, "What is different about the entries that are wrong?")
    return None
