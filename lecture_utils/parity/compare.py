"""`assert_matches`: two implementations, the same weights, the same hostile inputs, one table."""

import copy
import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from .tolerances import TOLERANCES

Part = nn.Module | Callable[..., Tensor | tuple[Tensor, ...]]

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass
class Row:
    """One comparison: the largest errors over all inputs, on one device in one dtype."""

    device: str
    dtype: str
    value_tolerance: float
    gradient_tolerance: float
    value_error: float = 0.0
    steps: int | None = None  # largest distance in representable numbers, in bf16 and fp16
    gradient_error: float | None = None  # None: nothing here has a gradient
    ours_off: float | None = None  # largest error of ours, and of theirs, against float64
    theirs_off: float | None = None
    passed: bool = True


@dataclass
class ParityTable:
    """What was compared and how far apart the two were. Renders in a notebook and in a terminal."""

    title: str
    rows: list[Row]

    @property
    def passed(self) -> bool:
        """Whether every row is within its tolerance (and there is a row)."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    @property
    def note(self) -> str:
        """A sentence on devices that were not there: absent is not passed."""
        seen = {row.device for row in self.rows}
        if seen & {"cuda", "mps"}:
            return ""
        return "No GPU here: compared on the CPU only; the rows of a GPU are absent, not passed."

    def as_dicts(self) -> list[dict]:
        """The rows as plain values, for JSON."""
        return [{"part": self.title, **asdict(row)} for row in self.rows]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        with_truth = any(row.ours_off is not None for row in self.rows)
        head = ["device", "dtype", "values", "allowed", "steps", "gradients", "allowed"]
        head += ["ours v float64", "theirs v float64"] * with_truth + ["verdict"]
        lines = []
        for row in self.rows:
            cells = [row.device, row.dtype, _short(row.value_error), _short(row.value_tolerance)]
            cells.append("–" if row.steps is None else str(row.steps))
            allowed = None if row.gradient_error is None else row.gradient_tolerance
            cells += [_short(row.gradient_error), _short(allowed)]
            if with_truth:
                cells += [_short(row.ours_off), _short(row.theirs_off)]
            lines.append([*cells, "equal" if row.passed else "DIFFERENT"])
        return head, lines

    @property
    def text(self) -> str:
        """Title and rows in aligned columns."""
        head, lines = self._cells()
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]

        def line(cells: list[str]) -> str:
            return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()

        return "\n".join([self.title, *map(line, [head, *lines])])

    def __str__(self) -> str:
        return f"{self.text}\n{self.note}".rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, lines = self._cells()

        def line(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        return (
            f"<p><b>{html.escape(self.title)}</b></p><table>{line(head, 'th')}"
            + "".join(line(cells, "td") for cells in lines)
            + f"</table><p><small>{html.escape(self.note)}</small></p>"
        )


def _short(error: float | None) -> str:
    return "–" if error is None else "0" if error == 0 else f"{error:.1e}"


# Results of one run, on the CPU: outputs by name, and under "gradient of …" what flowed back.
Results = dict[str, Tensor | None]


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

    Both get the same hostile weights, drawn here (matrices scaled up, norm weights around 1, biases
    not 0), since a module as it is initialised hides most mistakes. Every floating-point input is
    used at several magnitudes, as zeros, and as a view that is not contiguous. `ours` and `theirs`
    themselves stay as they are.

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
        AssertionError: parameters, shapes, dtypes, values or gradients differ; says where and by how much.
        ValueError: the reference itself overflows on these inputs, so nothing would be proved.
    """
    title = title or _title(ours, theirs)
    if not inputs:
        raise ValueError("assert_matches needs at least one input tensor")
    kinds = dict.fromkeys(known for known, _ in TOLERANCES)
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}, not {kind!r}")
    weights = _hostile_weights(ours, theirs, seed)
    table, failures = ParityTable(title, []), []
    with _full_precision():
        for device in _devices():
            for dtype in dtypes:
                row, failure = _compare(
                    ours, theirs, formula, weights, inputs, device, dtype, kind, magnitudes, seed
                )
                table.rows.append(row)
                failures += [failure] if failure else []
    if failures:
        raise AssertionError(f"{title}: {failures[0]}\n\n{table}")
    return table


def _compare(ours, theirs, formula, weights, inputs, device, dtype, kind, magnitudes, seed):
    """One row of the table, and the sentence on its first failure (or None)."""
    allowed = TOLERANCES[kind, dtype]
    row = Row(device, str(dtype).removeprefix("torch."), allowed.values, allowed.gradients)
    failure = None
    for label, case in _cases(inputs, magnitudes):
        where = f"on {device} in {row.dtype}, {label}"
        got = _run(ours, weights, case, device, dtype, seed)
        expected = _run(theirs, weights, case, device, dtype, seed)
        truth = _run_formula(formula, weights, case, dtype, seed) if formula else {}
        if not all(t.isfinite().all() for t in expected.values() if t is not None):
            raise ValueError(f"the reference is not finite {where}: choose smaller magnitudes")
        if got.keys() != expected.keys():
            raise AssertionError(f"{len(got)} results {where}, expected {len(expected)}")
        for name, theirs_here in expected.items():
            ours_here, true = got[name], truth.get(name)
            is_gradient = name.startswith("gradient")
            limit = allowed.gradients if is_gradient else allowed.values
            problem = _problem(ours_here, theirs_here, true, limit)
            if problem:
                row.passed = False
                failure = failure or f"{name} {problem} {where}"
            error = _error(ours_here, theirs_here)
            if not is_gradient:
                row.value_error = max(row.value_error, error)
                if dtype != torch.float32:
                    row.steps = max(row.steps or 0, _steps(ours_here, theirs_here))
            elif theirs_here is not None:
                row.gradient_error = max(row.gradient_error or 0.0, error)
            if true is not None:
                row.ours_off = max(row.ours_off or 0.0, _error(ours_here, true))
                row.theirs_off = max(row.theirs_off or 0.0, _error(theirs_here, true))
    return row, failure


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


def _name(part: Part) -> str:
    return type(part).__name__ if isinstance(part, nn.Module) else getattr(part, "__name__", "function")


def _title(ours: Part, theirs: Part) -> str:
    whose = ""
    if _name(ours) == _name(theirs):
        module = (type(theirs) if isinstance(theirs, nn.Module) else theirs).__module__
        whose = f"{module.split('.')[0]}'s "
    return f"{_name(ours)} against {whose}{_name(theirs)}"


def _parameters(part: Part) -> dict[str, nn.Parameter]:
    return dict(part.named_parameters()) if isinstance(part, nn.Module) else {}


def _hostile_weights(ours: Part, theirs: Part, seed: int) -> dict[str, Tensor]:
    """Weights by name, fp32 on the CPU, for both; raises if the two do not have the same ones."""
    shapes = {name: tuple(p.shape) for name, p in _parameters(theirs).items()}
    our_shapes = {name: tuple(p.shape) for name, p in _parameters(ours).items()}
    if shapes != our_shapes:
        names = sorted(n for n in shapes.keys() | our_shapes.keys() if shapes.get(n) != our_shapes.get(n))
        differences = [
            f"{n} is {our_shapes.get(n, 'absent')}, expected {shapes.get(n, 'absent')}" for n in names
        ]
        raise AssertionError(f"parameters of {_name(ours)}: {'; '.join(differences)}")
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        if name.endswith("bias"):
            weights[name] = 0.5 * noise
        elif len(shape) == 1:
            weights[name] = 1 + 0.3 * noise
        else:
            weights[name] = noise * 2 / shape[-1] ** 0.5
    return weights


def _cases(inputs: Sequence[Tensor], magnitudes: Sequence[float]) -> Iterator[tuple[str, list[Tensor]]]:
    for magnitude in magnitudes:
        yield f"inputs × {magnitude:g}", [x * magnitude if x.is_floating_point() else x for x in inputs]
    yield "inputs all 0", [x * 0 if x.is_floating_point() else x for x in inputs]
    yield "inputs not contiguous", [_strided(x) for x in inputs]


def _strided(x: Tensor) -> Tensor:
    """The same values as a view whose memory runs the other way round."""
    return x.permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim())))


def _run(part: Part, weights, inputs, device: str, dtype: torch.dtype, seed: int) -> Results:
    """Outputs and gradients of a copy of `part` with these weights and inputs."""
    if isinstance(part, nn.Module):
        # Only parameters are cast: `.to(dtype)` would round the buffer `inv_freq` of a Llama as well.
        part = copy.deepcopy(part).to(device)
        for name, parameter in part.named_parameters():
            parameter.data = weights[name].to(device, dtype)
    leaves = [
        x.to(device, dtype).detach().requires_grad_() if x.is_floating_point() else x.to(device)
        for x in inputs
    ]
    return _differentiate(part(*leaves), leaves, _parameters(part), seed)


def _run_formula(formula, weights, inputs, dtype: torch.dtype, seed: int) -> Results:
    """The same from the formula in float64, for weights and inputs that were rounded to `dtype`."""

    def exact(x: Tensor) -> Tensor:
        return x.to(dtype).double().detach().requires_grad_() if x.is_floating_point() else x

    parameters = {name: exact(w) for name, w in weights.items()}
    leaves = [exact(x) for x in inputs]
    return _differentiate(formula(parameters, *leaves), leaves, parameters, seed, rounded_to=dtype)


def _differentiate(outputs, leaves, parameters, seed: int, rounded_to: torch.dtype | None = None) -> Results:
    outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
    for output in outputs:
        if not isinstance(output, Tensor):
            raise AssertionError(f"an output is a {type(output).__name__}, not a tensor")
    names = ["output"] if len(outputs) == 1 else [f"output {i}" for i in range(len(outputs))]
    results: Results = {n: o.detach().cpu() for n, o in zip(names, outputs, strict=True)}

    sources = {f"gradient of input {i}": x for i, x in enumerate(leaves) if x.is_floating_point()}
    sources |= {f"gradient of {name}": p for name, p in parameters.items()}
    differentiable = [o for o in outputs if o.requires_grad]
    if not sources or not differentiable:
        return results | dict.fromkeys(sources)
    generator = torch.Generator().manual_seed(seed + 1)
    sent_back = []
    for output in differentiable:
        noise = torch.randn(output.shape, generator=generator)
        noise = noise.to(rounded_to or output.dtype)  # the formula is sent what the part is sent
        sent_back.append(noise.to(output.device, output.dtype))
    gradients = torch.autograd.grad(differentiable, list(sources.values()), sent_back, allow_unused=True)
    return results | {n: None if g is None else g.cpu() for n, g in zip(sources, gradients, strict=True)}


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
        sentence = f"at {index} is {got:.6g}, expected {expected:.6g}"
        if truth is not None:
            true = truth.flatten()[at].item()
            culprit = "ours" if abs(got - true) >= abs(expected - true) else "theirs"
            sentence += f" (float64 says {true:.6g}: {culprit} is further off)"
        return sentence
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


def _steps(ours: Tensor, theirs: Tensor) -> int:
    """Largest distance in representable numbers of a 16-bit dtype; −1 if they cannot be compared.

    Entries closer than 1e-6 of the typical one do not count: near zero, where terms have cancelled,
    a rounding in fp32 is many steps wide.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype or not ours.numel():
        return -1
    close = _differences(ours, theirs) <= 1e-6

    def rank(x: Tensor) -> Tensor:
        bits = x.contiguous().view(torch.int16).int()
        return torch.where(bits < 0, -(bits & 0x7FFF), bits)

    return int((rank(ours) - rank(theirs)).abs().masked_fill(close, 0).max())
