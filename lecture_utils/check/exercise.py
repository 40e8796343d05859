"""An exercise and its checker: right, not yet (and what went wrong, by name), or not attempted."""

import ast
import copy
import functools
import inspect
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from . import properties as props
from . import record
from .common import BY_KIND, BY_MESSAGE, GRADIENT_CUT, INPUT_CHANGED, RANDOM
from .draw import Draw
from .judge import Case, Problem, Seen, close, error, fitting, observe, plain, problem, seen, showing
from .mistake import Catalogue, Mistake
from .run import Outcome, Raised, TimeUp, call, differentiable, fixed, made_on_the_cpu, undisturbed
from .show import at_worst, dtype_name, show
from .verdict import Source, Text, Verdict

EXERCISES: dict[str, "Exercise"] = {}  # by name, in the order of the lessons

_SIGNATURE = "signature"
_NUMBERS = ("values", "not-finite")  # kinds of problems
_TIME_FOR_ALL = 10.0  # seconds for all inputs together


class Exercise:
    """A function to write. Call it with the student's function: `check.rms_norm(rms_norm)`.

    Made by the decorator `exercise`, from the solution.

    Attributes:
        name: of the exercise, and of the function that the student writes.
        lesson: the stem of the lesson without its number.
        arguments: names of the function's arguments.
        mistakes: the catalogue.
    """

    def __init__(
        self,
        solution: Callable,
        *,
        lesson: str,
        cases: Callable[[Draw], list[Case]],
        mistakes: Catalogue,
        hints: tuple[str, str, str],
        properties: Callable[[Draw], list[props.Property]] | None = None,
        outputs: tuple[str, ...] = ("output",),
        given: Callable | None = None,  # the wrong function that is to be repaired, as in the notebook
    ) -> None:
        self.name, self.lesson = solution.__name__, lesson.rsplit(".", 1)[-1]
        self.arguments = tuple(inspect.signature(solution).parameters)
        self.mistakes, self.solution_function = mistakes, solution
        self._cases, self._hints, self._properties = cases, hints, properties
        self._outputs, self._given = outputs, given
        self._hints_given: Counter = Counter()  # by function and mistake
        self._ladder, self._key = hints, None  # of the last verdict; before one, of the exercise
        if self.name in EXERCISES:
            raise ValueError(f"two exercises are named {self.name}")
        EXERCISES[self.name] = self

    def __call__(self, function: Callable, *, seed: int = 0) -> Verdict:
        """Check a function; never raises for what it does.

        Args:
            function: what the student wrote, in any form that can be called.
            seed: of the random inputs and their sizes; the first few inputs are always the same.
        """
        function = _unwrapped(function)
        with undisturbed():
            try:
                verdict = self._judge(function, seed)
            except Exception as error:  # something came back that nobody thought of
                what = f"The checker cannot read what came back ({Raised(error, '')})."
                verdict = self._verdict("unreadable", f"{what}\nDoes it return plain tensors or numbers?")
        return self._entered(verdict, function)

    def _entered(self, verdict: Verdict, function=None) -> Verdict:
        """The verdict, entered into the record; but a suspect of the lesson says nothing of the learner."""
        if not str(getattr(function, "__name__", "")).startswith("suspect"):
            record.save(self.name, verdict.state, verdict.mistake or (verdict.failed or (None,))[0])
        return verdict

    def hint(self) -> Text:
        """The next hint: on the last mistake that was named, or on the exercise. The third nearly tells."""
        rung, hint = self._next_hint()
        return Text(f"{self.name} · hint {rung} of {len(self._ladder)}", hint)

    def _next_hint(self) -> tuple[int, str]:
        self._hints_given[self._key] += 1
        rung = min(self._hints_given[self._key], len(self._ladder))
        return rung, self._ladder[rung - 1]

    def solution(self) -> Source:
        """The source of one right answer."""
        lines = inspect.getsource(self.solution_function)
        node = ast.parse(textwrap.dedent(lines)).body[0]
        code = "\n".join(textwrap.dedent(lines).splitlines()[node.lineno - 1 :])
        return Source(f"{self.name} · one solution", code)

    def __repr__(self) -> str:
        return f"check.{self.name}({self.name}) checks {self.name}({', '.join(self.arguments)})"

    # The judgement, step by step.

    def _judge(self, function, seed: int) -> Verdict:
        unusable = self._unusable(function)
        if unusable is not None:  # a verdict "not yet" is false
            return unusable
        cases, right = self._expected(seed)
        end = time.monotonic() + _TIME_FOR_ALL
        outcomes = [call(function, cases[0].arguments, gradients=cases[0].differentiated)]
        if _nothing(outcomes[0]) or (self._given and _same_code(function, self._given)):
            return self._not_attempted(function, as_given=not _nothing(outcomes[0]))
        for case in cases[1:]:
            if outcomes[-1].timed_out:
                break
            if time.monotonic() > end:
                outcomes[-1].error = Raised(TimeUp(), "")
                break
            outcomes.append(call(function, case.arguments, gradients=case.differentiated))
        cases, right = cases[: len(outcomes)], right[: len(outcomes)]
        mine = [seen(outcome, len(self._outputs)) for outcome in outcomes]
        problems = [
            problem(outcome, true, case, self._outputs)
            for outcome, true, case in zip(outcomes, right, cases, strict=True)
        ]
        notes = [c.note for p, c in zip(problems, cases, strict=True) if p and c.note and p.kind in _NUMBERS]
        problems = [
            None if c.note and p and p.kind in _NUMBERS else p for p, c in zip(problems, cases, strict=True)
        ]
        changed = next((i for i, outcome in enumerate(outcomes) if outcome.changed), None)
        if not any(problems) and changed is None:
            elsewhere = self._on_a_gpu(function, cases[-1])
            if elsewhere is not None:
                return elsewhere
            return self._right(function, cases, right, mine, outcomes, notes)
        return self._not_yet(function, seed, cases, right, mine, outcomes, problems, changed)

    def _on_a_gpu(self, function, case: Case) -> Verdict | None:
        """A verdict on what is right on the CPU and not on the GPU, where there is one."""
        if not torch.cuda.is_available():
            return None
        case = replace(case, arguments=tuple(_on_the_gpu(a) for a in case.arguments))
        right = observe(self.solution_function, case, len(self._outputs))
        found = problem(
            call(function, case.arguments, gradients=case.differentiated), right, case, self._outputs
        )
        if found is None or (case.note and found.kind in _NUMBERS):
            return None
        return self._verdict("on-the-gpu", f"On the CPU it is right. On the GPU: {found.sentence}")

    def _unusable(self, function) -> Verdict | None:
        """A verdict on something that cannot be called with the arguments of the exercise."""
        call_it = f"{self.name}({', '.join(self.arguments)})"
        if function is None or function is ...:
            return self._not_attempted(function)
        if isinstance(function, type) or not callable(function):
            kind = "a class" if isinstance(function, type) else f"{type(function).__name__}"
            sentence = (
                f"This is {kind}, not a function: give the function itself, check.{self.name}({self.name})."
            )
            return self._verdict(_SIGNATURE, sentence)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return None  # a built-in function without a signature: it will show when it is called
        try:
            signature.bind(*self.arguments)
        except TypeError:
            return self._verdict(_SIGNATURE, f"It is called as {call_it}; yours takes {signature}.")
        names = [p.name for p in signature.parameters.values()][: len(self.arguments)]
        if set(names) == set(self.arguments) and tuple(names) != self.arguments:
            return self._verdict(
                _SIGNATURE, f"The order of the arguments is {call_it}; yours has {', '.join(names)}."
            )
        return None

    @functools.lru_cache(maxsize=4)  # noqa: B019 -- exercises live as long as the program
    def _expected(self, seed: int) -> tuple[list[Case], list[Seen]]:
        cases = self._cases(Draw(seed))
        return cases, [observe(self.solution_function, case, len(self._outputs)) for case in cases]

    @functools.lru_cache(maxsize=4)  # noqa: B019
    def _mistaken(self, seed: int) -> dict[Mistake, list[list[Seen]]]:
        cases, _ = self._expected(seed)
        n = len(self._outputs)
        return {m: [[observe(f, case, n) for case in cases] for f in m.functions] for m in self.mistakes}

    def _not_attempted(self, function, as_given: bool = False) -> Verdict:
        if as_given:
            sentence = "As it was given. When you have repaired it, run this cell again."
        elif _has_lines(function):
            sentence = "Nothing came back: your function has lines, and no `return` was reached."
        else:
            sentence = "When you have written it, run this cell again."
        more = f"check.{self.name}.hint() gives a hint, check.{self.name}.solution() shows a solution."
        return Verdict(self.name, "not attempted", sentence, next_step=more)

    def _right(self, function, cases, right, mine, outcomes, notes) -> Verdict:
        worst = max(
            (
                error(a, b).max().item()
                for case, x, y in zip(cases, mine, right, strict=True)
                if not case.note
                for a, b in zip(x.values, y.values, strict=True)
                if isinstance(b, Tensor) and b.numel() and b.dtype == torch.float32
            ),
            default=0.0,
        )
        dtypes = dict.fromkeys(a.dtype for c in cases for a in c.arguments if differentiable(a))
        listed = f" in {', '.join(map(dtype_name, dtypes))}" if dtypes else ""
        finding = f"{len(cases)} inputs{listed}: all as expected"
        finding += ", values and gradients" if any(c.gradients for c in cases) else ""
        finding += f"; largest error in fp32 {worst:.1e}." if dtypes else "."
        return Verdict(
            self.name, "right", finding, notes=notes + self._notes(function, cases, right, mine, outcomes)
        )

    def _notes(self, function, cases, right, mine, outcomes) -> list[str]:
        notes = []
        for accepted in (m for m in self.mistakes if m.accepted):
            for way in accepted.functions:
                theirs = [observe(way, case, len(self._outputs)) for case in cases]
                if _same_rounding(mine, theirs) and not _same_rounding(mine, right):
                    notes.append(accepted.name)
                    break
        notes += self._missing_gradients(cases, right, mine)
        if any(o.in_place for o in outcomes):
            notes.append(
                "The values are right; but a line writes into a tensor that autograd needs for the gradient, "
                "so this form could not be trained."
            )
        notes += self._device_note(function, cases)
        notes += _asides(outcomes)
        return notes

    def _missing_gradients(self, cases, right, mine) -> list[str]:
        missing = {}
        for case, true, one in zip(cases, right, mine, strict=True):
            if true.gradients and one.gradients:
                pairs = zip(case.differentiated, one.gradients, true.gradients, strict=True)
                missing |= {i: None for i, got, expected in pairs if got is None and expected is not None}
        return [
            f"No gradient reaches `{self.arguments[i]}`: in training it would never change." for i in missing
        ]

    def _device_note(self, function, cases) -> list[str]:
        where = made_on_the_cpu(function, cases[0].arguments)
        return [f"On a GPU it would fail: it makes a tensor on the CPU ({where})."] if where else []

    def _not_yet(self, function, seed, cases, right, mine, outcomes, problems, changed) -> Verdict:
        n, mistakes = len(self._outputs), self._mistaken(seed)
        wrong = {m: w for m, w in mistakes.items() if not m.accepted}
        first = next((i for i, p in enumerate(problems) if p), changed)
        known = fitting(mine, cases, wrong) if any(problems) else None
        if changed is not None and not any(problems):
            name = self.arguments[outcomes[changed].changed[0]]
            return self._verdict(
                INPUT_CHANGED.id, f"{INPUT_CHANGED.name} (`{name}` is not what it was.)", INPUT_CHANGED,
                facts=self._facts(cases[changed], None, None), notes=_asides(outcomes),
            )  # fmt: skip
        found: Problem = problems[first]
        facts = self._facts(cases[first], outcomes[first], right[first], found)
        notes = _asides(outcomes)
        if changed is not None:
            name = self.arguments[outcomes[changed].changed[0]]
            notes = [f"It also writes into its input `{name}`.", *notes]
        if known:
            # Numbers tell more than an error: show them, if there is an input on which it runs.
            runs = [i for i, p in enumerate(problems) if p and p.kind != "raises"]
            best = [i for i, p in enumerate(problems) if p and known.on and cases[i].label == known.on]
            best.sort(key=lambda i: problems[i].kind == "raises")
            if best or (runs and found.kind == "raises"):
                first = (best or runs)[0]
                found = problems[first]
                facts = self._facts(cases[first], outcomes[first], right[first], found)
            return self._verdict(
                known.id, _with_problem(known.name, found), known, facts=facts, notes=notes, function=function
            )
        if found.kind == "gradient-cut":
            return self._verdict(
                GRADIENT_CUT.id, GRADIENT_CUT.name, GRADIENT_CUT, facts=facts, notes=notes, function=function
            )  # fmt: skip
        if found.kind in (*_NUMBERS, "shape") and props.is_random(function, cases[first], n):
            return self._verdict(RANDOM.id, RANDOM.name, RANDOM, facts=facts, notes=notes, function=function)
        # Of a few guessed numbers a pattern says nothing.
        simple = None if isinstance(self, Answer) else props.pattern(mine, right)
        partly = None if simple and simple.whole else showing(mine, right, cases, wrong)
        if partly:
            known, at = partly
            notes = ["Repair this first: on other inputs something else differs too.", *notes]
            facts = self._facts(cases[at], outcomes[at], right[at], problems[at])
            finding = _with_problem(known.name, problems[at])
            return self._verdict(known.id, finding, known, facts=facts, notes=notes, function=function)
        return self._unknown(function, seed, cases, simple, found, facts, notes)

    def _unknown(self, function, seed, cases, simple, found: Problem, facts, notes) -> Verdict:
        """No known mistake fits: say which properties fail, and what pattern the numbers have."""
        n, findings = len(self._outputs), []
        if found.kind in (*_NUMBERS, "gradient"):
            probe = next((c for c in reversed(cases) if c.gradients), cases[0])
            if self._properties:
                findings += props.failing(self._properties(Draw(seed)), function, n)
            findings += props.unused_arguments(self.arguments, self.solution_function, function, probe, n)
            findings += [simple] if simple else []
        failed = ([] if found.kind == "values" else [found.kind]) + [f.id for f in findings]
        sentences = [] if found.kind == "values" and findings else [_capital(found.sentence)]
        sentences += [f.sentence for f in findings[:2]]
        hints = (*self._by_kind(found), self._hints[2])[:3]
        if found.kind == "wrong-type" and len(self._outputs) > 1:
            hints = (*hints[:2], f"return {', '.join(self._outputs)}")
        if findings:
            hints = (findings[0].question, *self._hints[1:])
        if any(c.isdigit() for f in findings[:2] for c in f.sentence) and not simple:
            notes = ["(That was measured on another input than the one above.)", *notes]
        stand_in = Mistake("", "", hints, ())
        return self._verdict(None, "\n".join(sentences), stand_in, failed=tuple(failed or ["values"]),
                             facts=facts, notes=notes, function=function)  # fmt: skip

    def _by_kind(self, found: Problem) -> tuple[str, ...]:
        """Questions that fit a problem which is no matter of numbers."""
        if found.kind == "raises":
            message = found.sentence.splitlines()[0]  # without the student's line
            known = next((hints for words, hints in BY_MESSAGE.items() if words in message), None)
            if known:
                return known
        return BY_KIND.get(found.kind, self._hints[:2])

    def _verdict(
        self, id, finding, mistake: Mistake | None = None, *, failed=(), facts=(), notes=(), function=None
    ):
        """A verdict "not yet". The hint is stronger each time that a function makes the same mistake."""
        if mistake is None:
            return Verdict(self.name, "not yet", finding, failed=(id,), facts=list(facts))
        self._ladder, self._key = mistake.hints, (str(getattr(function, "__name__", "")), id or failed)
        rung, hint = self._next_hint()
        last = rung == len(mistake.hints)
        more = "solution() shows a solution." if last else "hint() says more."
        return Verdict(
            self.name, "not yet", finding, mistake=id, failed=tuple(failed), facts=list(facts),
            hint=hint, next_step=f"check.{self.name}.{more}", notes=list(notes),
        )  # fmt: skip

    def _facts(self, case: Case, outcome: Outcome | None, right: Seen | None, found: Problem | None = None):
        """The smallest input that shows it, what came back and what was expected."""
        facts = [(name, show(a)) for name, a in zip(self.arguments, case.arguments, strict=True)]
        if found and found.kind == "gradient":
            pairs = zip(case.differentiated, outcome.gradients, right.gradients, strict=True)
            compared = [(f"gradient of {self.arguments[i]}: ", g, e) for i, g, e in pairs if g is not None]
            sent = " and ".join(show(fixed(v)) for v in right.values if differentiable(v))
            facts.append(("gradient that arrives", sent))
        elif found and found.kind in _NUMBERS:
            prefixes = [f"{name}: " if len(self._outputs) > 1 else "" for name in self._outputs]
            compared = list(
                zip(prefixes, seen(outcome, len(self._outputs)).values, right.values, strict=True)
            )
        else:
            return facts
        for prefix, got, expected in compared:
            if not isinstance(expected, Tensor) or not close(got, expected, case.tolerance):
                return [
                    *facts,
                    (f"{prefix}got", at_worst(got, expected, True)),
                    ("expected", at_worst(got, expected, False)),
                ]
        return facts


class Answer(Exercise):
    """A prediction to write down. Call it with the answers: `check.constant_token([1, 1], [0, 0])`.

    The verdict does not show what was expected: the student is to find it by running something.
    """

    def __init__(self, name: str, *, lesson: str, right: dict[str, object], mistakes: Catalogue,
                 hints: tuple[str, str, str], because: str, tolerance: float = 0.005) -> None:  # fmt: skip
        values = tuple(_as_answer(v) for v in right.values())

        def solution():
            return values if len(values) > 1 else values[0]

        solution.__name__ = name
        super().__init__(
            solution, lesson=lesson, cases=lambda draw: [Case((), tolerance=tolerance)], mistakes=mistakes,
            hints=hints,
            outputs=tuple(right),
        )  # fmt: skip
        self._because, self._right_answers, self._values = because, right, values

    def __call__(self, *answers, seed: int = 0) -> Verdict:
        """Check one answer for each of the names. `...` stands for one that is not there yet."""
        if not answers or any(a is ... or a is None for a in answers):
            return self._not_attempted(None)
        if len(answers) != len(self._outputs):
            sentence = (
                f"{len(answers)} answers came; it is called as check.{self.name}({', '.join(self._outputs)})."
            )
            return self._entered(self._verdict(_SIGNATURE, sentence))
        values = tuple(_as_answer(a) for a in answers)
        for name, given, value, right in zip(self._outputs, answers, values, self._values, strict=True):
            if type(value) is not type(right):
                wanted = "a word in quotes is" if isinstance(right, str) else _numbers_of(right)
                return self._entered(
                    self._verdict("wrong-type", f"{name}: {wanted} asked for, not {_short(given)}.")
                )
            if isinstance(right, Tensor) and value.numel() != right.numel():
                sentence = f"{name}: {_numbers_of(right)} asked for, and {value.numel()} came."
                return self._entered(self._verdict("shape", sentence))
        shaped = [
            v.reshape(r.shape) if isinstance(r, Tensor) else v
            for v, r in zip(values, self._values, strict=True)
        ]
        values = tuple(shaped)
        verdict = super().__call__(lambda: values if len(values) > 1 else values[0], seed=seed)
        verdict.facts = [
            (n, show(v.float() if isinstance(v, Tensor) else v))
            for n, v in zip(self._outputs, values, strict=True)
        ]
        if verdict.passed:
            verdict.finding, verdict.notes = self._because, []
        elif verdict.failed == ("values",):
            verdict.finding = "Not this yet."
        return verdict

    def solution(self) -> Source:
        """The right answers, and why."""
        answers = "\n".join(f"{name}: {value}" for name, value in self._right_answers.items())
        return Source(f"{self.name} · the answer", f"{answers}\n{self._because}")

    def _not_attempted(self, function) -> Verdict:
        more = f"check.{self.name}.hint() gives a hint, check.{self.name}.solution() the answer."
        return Verdict(self.name, "not attempted", "Put your answer in place of the dots.", next_step=more)

    def __repr__(self) -> str:
        return f"check.{self.name}({', '.join(self._outputs)}) checks a prediction"


def exercise(**options) -> Callable[[Callable], Exercise]:
    """A decorator: the function is the solution, and becomes the checker. Options as in `Exercise`."""

    def make(solution: Callable) -> Exercise:
        return Exercise(solution, lesson=solution.__module__, **options)

    return make


def _on_the_gpu(argument):
    """A tensor or a module there; a module is moved in place, so a copy of it."""
    if isinstance(argument, nn.Module):
        return copy.deepcopy(argument).cuda()
    return argument.cuda() if isinstance(argument, Tensor) else argument


def _same_rounding(a: list[Seen], b: list[Seen]) -> bool:
    """Whether all outputs in 16 bits are the same bits."""
    pairs = [(x, y) for m, n in zip(a, b, strict=True) for x, y in zip(m.values, n.values, strict=True)]
    return all(torch.equal(x, y) for x, y in pairs if x.dtype in (torch.bfloat16, torch.float16))


def _unwrapped(function):
    """What torch.compile was given: compiling for each of the small inputs would take minutes."""
    try:
        original = getattr(function, "_torchdynamo_orig_callable", None)
        if original is not None and getattr(function, "__wrapped__", original) is original:
            return original
        return getattr(function, "_orig_mod", function)
    except Exception:  # an object that minds being asked
        return function


def _nothing(outcome: Outcome) -> bool:
    if outcome.error is not None:  # raised by the student's own line, not by torch
        own = not outcome.error.text or outcome.error.where.partition(": ")[2].startswith("raise")
        return isinstance(outcome.error.error, NotImplementedError) and own
    returned = outcome.returned
    if isinstance(returned, tuple | list) and returned:
        return all(r is ... or r is None for r in returned)
    return returned is None or returned is ...


def _same_code(function, given: Callable) -> bool:
    """Whether two functions are the same but for names, docstrings, comments and blank lines."""
    codes = []
    for f in (function, given):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(f))).body[0].body
        except (OSError, TypeError, SyntaxError, IndexError, AttributeError):
            return function is given  # its source is not to be had
        is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        codes.append(ast.dump(ast.Module(body[1:] if is_text else body, [])))
    return codes[0] == codes[1]


def _has_lines(function) -> bool:
    """Whether a function has more than a docstring, `...`, `pass` and `raise`."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return False
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(
        not isinstance(line, ast.Pass | ast.Raise | ast.Return)
        and not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )


def _asides(outcomes: list[Outcome]) -> list[str]:
    """What the function printed, and what PyTorch warned of, in one line each."""
    notes = []
    printed = next((o.printed.strip() for o in outcomes if o.printed.strip()), "")
    if printed:
        lines = printed.splitlines()
        shown = " / ".join(lines[:3]) + (" …" if len(lines) > 3 else "")
        when = ", on the first input" if outcomes[0].printed.strip() else ""
        notes.append(f"It printed{when}: {shown[:300]}")
    warned = next((o.warned[0] for o in outcomes if o.warned), "")
    warned = warned.split(" (Triggered")[0]
    return [*notes, *([f"PyTorch warned: {warned[:200]}"] if warned else [])]


def _short(value) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return f"a {type(value).__name__}"


def _as_answer(value):
    """Numbers and lists of numbers as float64 tensors; words as they are."""
    if isinstance(value, str):
        return value.strip().lower()
    try:
        numbers = torch.as_tensor(value).detach()
        odd = not plain(numbers) or numbers.is_complex() or numbers.dtype == torch.bool
        return value if odd or numbers.device.type == "meta" else numbers.double().cpu()
    except Exception:  # no number, whatever it is
        return value


def _with_problem(name: str, found: Problem) -> str:
    """What the function does; and what came back, if that is not seen in the numbers below."""
    return name if found.kind in ("values", "gradient") else f"{name}\n{_capital(found.sentence)}"


def _numbers_of(right: Tensor) -> str:
    return "one number is" if right.numel() == 1 else f"{right.numel()} numbers are"


def _capital(sentence: str) -> str:
    """With a capital, unless it begins with the name of an output."""
    return (
        sentence
        if ": " in sentence.split(";")[0].split(" ")[0] + " "
        else sentence[:1].upper() + sentence[1:]
    )
