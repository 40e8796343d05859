"""Where the learner stands, in a small file beside the notebooks. The course works without it."""

import contextlib
import html
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .verdict import COLOURS, MARKS, QUIET, Shown

FILE = ".progress.json"
PLACE = "LLAMA_COURSE_PROGRESS"  # an environment variable that names another file
_memory: dict[str, dict] = {}  # what this kernel has seen, also where nothing can be written


def _path() -> Path:
    return Path(os.environ.get(PLACE) or Path.cwd() / FILE)


def load(path: Path | None = None) -> dict[str, dict]:
    """State and mistake of each exercise that was attempted; empty if there is no readable file."""
    return _read(path) or {}


def _read(path: Path | None = None) -> dict[str, dict] | None:
    try:
        entries = json.loads((path or _path()).read_text(encoding="utf-8"))["exercises"].items()
        known = {name: e for name, e in entries if isinstance(e, dict) and e.get("state") in MARKS}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {name: {"state": e["state"], "mistake": _word(e.get("mistake"))} for name, e in known.items()}


def _word(mistake) -> str | None:
    return mistake if isinstance(mistake, str) else None


def save(name: str, state: str, mistake: str | None) -> None:
    """Enter a verdict. What was right once stays right; nothing attempted is nothing to enter."""
    known = {**load(), **_memory}
    if state == "not attempted" or known.get(name, {}).get("state") == "right":
        return
    _memory[name] = known[name] = {"state": state, "mistake": mistake if state == "not yet" else None}
    with contextlib.suppress(OSError):  # a read-only folder: the memory of this kernel has to do
        path = _path()
        if path.exists() and _read(path) is None:
            os.replace(path, path.with_suffix(".unreadable"))
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump({"exercises": known}, file, indent=1)
        os.replace(file.name, path)


@dataclass(repr=False)
class Progress(Shown):
    """The state of every exercise, lesson by lesson."""

    lessons: list[tuple[str, list[tuple[str, str, str | None]]]]  # title, (exercise, state, mistake)
    saved: bool

    def __str__(self) -> str:
        width = max(len(title) for title, _ in self.lessons)
        lines = []
        for title, exercises in self.lessons:
            marks = "  ".join(f"{MARKS[state]} {name}" for name, state, _ in exercises)
            lines.append(f"{title:{width}}  {self._count(exercises)}  {marks}")
        return "\n".join([*lines, *self._footer()])

    def _html(self) -> str:
        cell = '<td style="text-align:left;white-space:nowrap">'
        rows = [
            f"<tr>{cell}{html.escape(title)}</td>{cell}{self._count(exercises)}</td>"
            f'<td style="text-align:left">{" &nbsp; ".join(map(self._mark, exercises))}</td></tr>'
            for title, exercises in self.lessons
        ]
        footer = "".join(f'<div style="{QUIET}">{html.escape(line)}</div>' for line in self._footer())
        return f"<table>{''.join(rows)}</table>{footer}"

    @staticmethod
    def _mark(exercise: tuple[str, str, str | None]) -> str:
        name, state, mistake = exercise
        why = f" <i>({html.escape(mistake)})</i>" if mistake else ""
        mark = f'<span style="color:{COLOURS[state]}">{MARKS[state]}</span>'
        return f'<span style="white-space:nowrap">{mark} {html.escape(name)}{why}</span>'

    @staticmethod
    def _count(exercises) -> str:
        return f"{sum(state == 'right' for _, state, _ in exercises)} of {len(exercises)}"

    def _footer(self) -> list[str]:
        legend = "   ".join(f"{mark} {state}" for state, mark in MARKS.items())
        return [legend] if self.saved else [legend, "This could not be saved: the folder is read-only."]


def progress() -> Progress:
    """Where you stand in every lesson: what is right, what is not yet, what is still to come."""
    from .exercise import EXERCISES
    from .lessons import TITLES

    written = load()
    known = {**written, **_memory}
    lessons = []
    for lesson, title in TITLES.items():
        states = [
            (
                e.name,
                known.get(e.name, {}).get("state", "not attempted"),
                known.get(e.name, {}).get("mistake"),
            )
            for e in EXERCISES.values()
            if e.lesson == lesson
        ]
        lessons.append((title, states))
    return Progress(lessons, saved=all(written.get(name) == entry for name, entry in _memory.items()))
