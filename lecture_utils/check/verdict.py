"""What a checker answers: an object with plain text for a terminal and HTML for a notebook."""

import html
from dataclasses import dataclass, field

MARKS = {"not attempted": "○", "not yet": "✗", "right": "✓"}
# Okabe–Ito, as in the plots; the mark and the words say the same, so that no one needs the colour.
COLOURS = {"not attempted": "#999999", "not yet": "#D55E00", "right": "#009E73"}
_CARD = (
    "border-left:4px solid {colour};padding:0.4em 0.9em;margin:0.3em 0;max-width:46em;line-height:1.45;"
    "background:var(--jp-layout-color1,transparent);color:var(--jp-content-font-color1,inherit)"
)
QUIET = "color:var(--jp-content-font-color2,#666666)"
_CODE = "font-family:var(--jp-code-font-family,monospace);font-size:0.92em;white-space:pre-wrap"


class Shown:
    """Something a notebook shows as HTML and a terminal as plain text."""

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._html()}

    def __repr__(self) -> str:
        return str(self)


@dataclass(repr=False)
class Verdict(Shown):
    """The answer of a checker.

    `passed`: is it right? (`bool(verdict)` is the same.) `attempted`: was there anything to check?
    `mistake`: the id of the known mistake that it makes, such as "mean-subtracted", or None.
    `failed`: ids of the properties that do not hold, in the order in which a teacher would ask.
    `message`: the plain text, as `print` shows it.
    """

    exercise: str
    state: str  # a key of MARKS
    finding: str  # one or two sentences: what was seen
    mistake: str | None = None
    failed: tuple[str, ...] = ()
    facts: list[tuple[str, str]] = field(default_factory=list)  # the smallest input, got, expected
    hint: str = ""
    next_step: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.state == "right"

    @property
    def attempted(self) -> bool:
        return self.state != "not attempted"

    @property
    def message(self) -> str:
        return str(self)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def _headline(self) -> str:
        return " · ".join([self.exercise, self.state, *([self.mistake] if self.mistake else [])])

    def __str__(self) -> str:
        width = max((len(name) for name, _ in self.facts), default=0)
        lines = [f"{MARKS[self.state]} {self._headline}", self.finding]
        for name, value in self.facts:
            lines.append(f"  {name:{width}}  " + value.replace("\n", "\n" + " " * (width + 4)))
        lines += [f"? {self.hint}"] if self.hint else []
        lines += [f"  {self.next_step}"] if self.next_step else []
        lines += [f"· {note}" for note in self.notes]
        return "\n".join(line for line in lines if line)

    def _html(self) -> str:
        colour, text = COLOURS[self.state], html.escape
        parts = [
            f'<div style="{_CARD.format(colour=colour)}">',
            f'<b><span style="color:{colour}">{MARKS[self.state]}</span> {text(self._headline)}</b>',
            *(f'<div style="{_CODE if line.startswith("in line") else ""}">{text(line)}</div>'
              for line in self.finding.splitlines()),
        ]  # fmt: skip
        if self.facts:
            rows = "".join(
                f'<tr><td style="text-align:left;vertical-align:top;{QUIET}">{text(name)}</td>'
                f'<td style="text-align:left;{_CODE}">{text(value)}</td></tr>'
                for name, value in self.facts
            )
            parts.append(f'<table style="margin:0.4em 0">{rows}</table>')
        parts += [f"<div><i>{text(self.hint)}</i></div>"] if self.hint else []
        parts += [
            f'<div style="{QUIET}">{text(line)}</div>' for line in [self.next_step, *self.notes] if line
        ]
        return "".join(parts) + "</div>"


@dataclass(repr=False)
class Text(Shown):
    """A hint: a heading and a sentence."""

    heading: str
    text: str

    def __str__(self) -> str:
        return f"{self.heading}\n{self.text}"

    def _html(self) -> str:
        return (
            f'<div style="{_CARD.format(colour="#E69F00")}"><b>{html.escape(self.heading)}</b>'
            f"<div>{html.escape(self.text)}</div></div>"
        )


@dataclass(repr=False)
class Source(Text):
    """A solution: a heading and code."""

    def _html(self) -> str:
        return (
            f'<div style="{_CARD.format(colour="#009E73")}"><b>{html.escape(self.heading)}</b>'
            f'<pre style="margin:0.4em 0;{_CODE};background:transparent">{html.escape(self.text)}</pre></div>'
        )
