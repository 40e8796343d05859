"""`assert_matches`: two implementations, the same weights, the same hostile inputs, one table."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .run import (
    NOT_CONTIGUOUS,
    ONE_OF_BATCH,
    Difference,
    Part,
    Results,
    cases,
    hostile_weights,
    name_of,
    prepared,
    run_formula,
    run_ours,
    run_theirs,
    strided,
)
from .table import ParityTable, Row
from .tolerances import TOLERANCES

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class ParityError(AssertionError):
    """The two differ. `table` holds the rows, as far as there are any."""

    def __init__(self, message: str, table: ParityTable) -> None:
        super().__init__(message)
        self.table = table


def assert_matches(
    ours: Part,
    theirs: Part,
    *inputs: Tensor,
    formula: Callable | None = None,
    kind: str = "elementwise",
    dtypes: Sequence[torch.dtype] = DTYPES,
    magnitudes: Sequence[float] = (1.0, 1e-3, 30.0),
    title: str | None = None,
    seed: int = 0,
) -> ParityTable:
    """Compare outputs, and gradients of every input and every parameter; raise if any differ.

    Both get the same hostile weights, drawn here (matrices scaled up, norm weights around 1 and −1,
    biases not 0), since a module as it is initialised hides most mistakes. Every floating-point
    input is used at several magnitudes, as zeros, as a view that is not contiguous, and as a batch
    of one (if all inputs have the same first axis). Ours is called with other data in between, in
    training and in eval mode, with and without gradients: it may keep nothing, and may write into
    nothing. Modules are copied and stay as they are.

    Choose small sizes (tens of features, at most 200 tokens): some sixty calls are made for each
    device, and in 16 bits PyTorch's sums over more tokens are too far off to compare with.

    Args:
        ours, theirs: modules with the same parameter names, or functions; both take `*inputs` and
            return a tensor or a tuple of tensors.
        inputs: example tensors of any shape. Floating-point ones are cast and differentiated;
            integer ones (positions, ids) are passed as they are.
        formula: the part in float64, `formula(parameters, *inputs)`: says which of the two is off.
        kind: a row of `tolerances.TOLERANCES`: "exact", "elementwise", "saturating" or "matmul".
        dtypes: compared one by one, on the CPU and on a GPU where there is one.
        magnitudes: factors for the floating-point inputs; a failure reports the first that shows it.
        title: heads the table; the names of the two by default.
        seed: of the weights and of the gradients that are sent back.

    Returns:
        The table of errors, a row for each device and dtype.

    Raises:
        ParityError (an AssertionError): parameters, shapes, dtypes, values or gradients differ, or ours
            raises or has a side effect; says where and by how much.
        ValueError: nothing would be proved: no inputs or outputs, or the reference raises or overflows.
        TypeError: an input is not a tensor, or a part cannot be called.
    """
    ours, theirs = (_expect_part(*named) for named in (("ours", ours), ("theirs", theirs)))
    title = title or _title(ours, theirs)
    _check_arguments(inputs, kind, dtypes, magnitudes)
    try:
        weights = hostile_weights(ours, theirs, seed)
    except Difference as difference:
        raise ParityError(f"{title}: {difference}", ParityTable(title, [])) from None
    table, failures = ParityTable(title, []), []
    with _full_precision():
        for device in _devices():
            for dtype in dtypes:
                row = Row.empty(device, dtype, TOLERANCES[kind, dtype])
                table.rows.append(row)
                our_copy = prepared(ours, weights, device, dtype)  # one for all cases: it may keep nothing
                for label, case in cases(inputs, magnitudes):
                    where = f"on {device} in {row.dtype}, {label}"
                    back = strided if label == NOT_CONTIGUOUS else None
                    arguments = (case, device, dtype, seed, back)
                    try:
                        expected = _expected(prepared(theirs, weights, device, dtype), arguments)
                    except ValueError as nothing_proved:
                        if label == ONE_OF_BATCH:
                            continue  # the first axis was no batch
                        raise ValueError(f"{title}: {nothing_proved} ({where})") from nothing_proved
                    truth = run_formula(formula, weights, case, dtype, seed) if formula else {}
                    failure = _compare(our_copy, arguments, expected, truth, row)
                    if failure:
                        row.passed = False
                        failures.append(f"{failure} ({where})")
    if failures:
        raise ParityError(f"{title}: {failures[0]}\n\n{table}", table)
    return table


def _expect_part(name: str, part: Part) -> Part:
    if isinstance(part, type) or not callable(part):
        kind = (
            f"the class {part.__name__}: make an instance" if isinstance(part, type) else type(part).__name__
        )
        raise TypeError(f"{name} must be a module or a function, not {kind}")
    return getattr(part, "_orig_mod", part)  # what torch.compile was given


def _check_arguments(inputs, kind, dtypes, magnitudes) -> None:
    if not inputs:
        raise ValueError("assert_matches needs at least one input tensor")
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"input {i} must be a tensor, not {type(x).__name__}")
    kinds = dict.fromkeys(known for known, _ in TOLERANCES)
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}, not {kind!r}")
    if not isinstance(dtypes, list | tuple) or not dtypes or any(dtype not in DTYPES for dtype in dtypes):
        raise ValueError(f"dtypes must be a list of some of {', '.join(map(str, DTYPES))}, not {dtypes}")
    if not isinstance(magnitudes, list | tuple) or not magnitudes:
        raise ValueError(f"magnitudes must be a list of numbers, not {magnitudes!r}")


def _expected(theirs, arguments) -> Results:
    """What the reference gives; raises ValueError where that proves nothing."""
    try:
        expected = run_theirs(theirs, *arguments)
    except Exception as error:
        raise ValueError(f"the reference raised {_one_line(error)}: nothing is proved") from error
    if not any(t.numel() for name, t in expected.items() if not name.startswith("gradient")):
        raise ValueError("the reference gives no number: nothing is proved")
    if not all(t.isfinite().all() for t in expected.values() if t is not None):
        raise ValueError("the reference is not finite: nothing is proved; choose other inputs or magnitudes")
    return expected


def _compare(ours, arguments, expected: Results, truth: Results, row: Row) -> str | None:
    """Enter one case into `row`; a sentence on the first failure, or None."""
    failure = None
    for training in (True, False) if isinstance(ours, nn.Module) else (True,):
        mode = "" if training else " in eval mode"
        try:
            if not training:
                ours.eval()
            got = run_ours(ours, *arguments)
            if got.keys() != expected.keys():
                raise Difference(f"ours gives {_outputs(got)}, expected {_outputs(expected)}")
        except Exception as error:
            row.value_error = float("inf")
            sentence = str(error) if isinstance(error, Difference) else f"ours raised {_one_line(error)}"
            return failure or sentence + mode
        finally:
            if isinstance(ours, nn.Module):
                ours.train()
        for name, theirs_here in expected.items():
            ours_here, true = got[name], truth.get(name)
            is_gradient = name.startswith("gradient")
            limit = row.gradient_tolerance if is_gradient else row.value_tolerance
            problem = _problem(ours_here, theirs_here, true, limit)
            if problem and not failure:
                failure = f"{name}{mode} {problem}"
            row.add(
                is_gradient=is_gradient and theirs_here is not None,
                error=_error(ours_here, theirs_here),
                steps=None if is_gradient else _steps(ours_here, theirs_here),
                ours_off=None if true is None else _error(ours_here, true),
                theirs_off=None if true is None else _error(theirs_here, true),
            )
    return failure


def _devices() -> list[str]:
    found = ["cpu"]
    if torch.cuda.is_available():
        found.append("cuda")
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


@contextmanager
def _full_precision() -> Iterator[None]:
    """fp32 products in fp32: TF32 would make them differ by 1e-3 on a GPU."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def _title(ours: Part, theirs: Part) -> str:
    whose = ""
    if name_of(ours) == name_of(theirs):
        module = getattr(theirs, "__module__", None) or type(theirs).__module__
        whose = f"{module.split('.')[0]}'s "
    return f"{name_of(ours)} against {whose}{name_of(theirs)}"


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def _outputs(results: Results) -> str:
    names = [name for name in results if name.startswith("output") and not name.endswith("gradients")]
    return "one tensor" if names == ["output"] else f"a tuple of {len(names)}"


def _problem(ours: Tensor | None, theirs: Tensor | None, truth: Tensor | None, limit: float) -> str | None:
    """A sentence on how `ours` differs from `theirs`, or None."""
    if ours is None or theirs is None:
        missing = "ours" if ours is None else "theirs"
        return None if ours is theirs else f"is missing in {missing}: no gradient flows there"
    if ours.shape != theirs.shape:
        return f"has shape {list(ours.shape)}, expected {list(theirs.shape)}"
    if ours.dtype != theirs.dtype:
        return f"has dtype {ours.dtype}, expected {theirs.dtype}"
    try:
        rms = theirs.double().square().mean().sqrt().item() if theirs.numel() else 0.0
        torch.testing.assert_close(ours, theirs, rtol=limit, atol=limit * rms)
    except AssertionError:
        at = int((ours.double() - theirs.double()).abs().nan_to_num(torch.inf).argmax())
        index = [int(i) for i in torch.unravel_index(torch.tensor(at), ours.shape)]
        got, expected = ours.flatten()[at].item(), theirs.flatten()[at].item()
        digits = 6 if f"{got:.6g}" != f"{expected:.6g}" else 9
        sentence = f"at {index} is {got:.{digits}g}, expected {expected:.{digits}g}"
        if truth is not None:
            true = truth.flatten()[at].item()
            culprit = "ours" if abs(got - true) >= abs(expected - true) else "theirs"
            sentence += f"; float64 says {true:.{digits}g}: {culprit} is further off"
        return sentence if limit else f"{sentence}; the kind 'exact' allows no difference"
    return None


def _error(ours: Tensor | None, theirs: Tensor | None) -> float:
    """Largest |ours − theirs| / (|theirs| + RMS of theirs); infinite if they cannot be compared."""
    if ours is None or theirs is None:
        return 0.0 if ours is theirs else float("inf")
    if ours.shape != theirs.shape:
        return float("inf")
    return _differences(ours, theirs).max().item() if ours.numel() else 0.0


def _differences(ours: Tensor, theirs: Tensor) -> Tensor:
    """|ours − theirs| / (|theirs| + RMS of theirs), entry by entry; infinite where ours is not finite."""
    ours, theirs = ours.double(), theirs.double()
    scale = theirs.abs() + theirs.square().mean().sqrt()
    return torch.where(ours == theirs, 0.0, (ours - theirs).abs() / scale).nan_to_num(torch.inf)


def _steps(ours: Tensor, theirs: Tensor) -> int | None:
    """Largest distance in representable numbers of a 16-bit dtype; None if there is no such thing.

    Entries closer than 1e-6 of the typical one do not count: near zero, where terms have cancelled,
    a rounding in fp32 is many steps wide.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype or not ours.numel():
        return None
    if ours.dtype not in (torch.bfloat16, torch.float16):
        return None
    close = _differences(ours, theirs) <= 1e-6

    def rank(x: Tensor) -> Tensor:
        bits = x.contiguous().view(torch.int16).int()
        return torch.where(bits < 0, -(bits & 0x7FFF), bits)

    return int((rank(ours) - rank(theirs)).abs().masked_fill(close, 0).max())
