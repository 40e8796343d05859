"""The table of a proof: a row for each device and dtype."""

import html
from dataclasses import asdict, dataclass

import torch

from .tolerances import Tolerance


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

    @classmethod
    def empty(cls, device: str, dtype: torch.dtype, tolerance: Tolerance) -> "Row":
        """The row before its first case."""
        return cls(device, str(dtype).removeprefix("torch."), tolerance.values, tolerance.gradients)

    def add(self, is_gradient: bool, error: float, steps: int | None, ours_off, theirs_off) -> None:
        """Enter the errors of one tensor: the largest stay."""
        if is_gradient:
            self.gradient_error = max(self.gradient_error or 0.0, error)
        else:
            self.value_error = max(self.value_error, error)
        for name, value in (("steps", steps), ("ours_off", ours_off), ("theirs_off", theirs_off)):
            if value is not None:
                setattr(self, name, max(getattr(self, name) or 0, value))


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
