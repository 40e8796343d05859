"""One colour, one meaning: the palette (Okabe and Ito, safe for colour-blind readers), and the style file."""

from pathlib import Path

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INPUT = "#0072B2"  # blue: input, residual stream
OUTPUT = "#D55E00"  # vermilion: after our layer
WEIGHT = "#E69F00"  # orange: learned weight
GATE = "#CC79A7"  # purple: gate
UP = "#56B4E9"  # sky: up-projection, candidate
POSITION = "#009E73"  # green: key, position, angle
REFERENCE = "#000000"  # black, dashed: Hugging Face, or the exact formula
WRONG = "#999999"  # grey, dotted: a mistake
MUTED = "#666666"  # words and lines that are not data

FILE = Path(__file__).with_name("course.mplstyle")


def use() -> None:
    """Give every figure that is made from now on the look of the course."""
    matplotlib.style.use(FILE)


def label_line(axes: Axes, x: float, y: float, text: str, color: str, **options) -> None:
    """Write a label beside a line, in its colour: read faster than a legend."""
    axes.text(x, y, text, color=color, fontweight="bold", **options)


def number(value: float, form: str = "g") -> str:
    """A number in prose: its minus is a minus sign, and zero has none."""
    return f"{value:z{form}}".replace("-", "−")


def memory(size: float) -> str:
    """Bytes as they are said: 512 KiB, 1.5 GiB, 2,048 GiB."""
    unit, size = next(
        (unit, size / one)
        for unit, one in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
        if size >= 0.9995 * one or unit == "KiB"
    )
    return f"{size:,.0f} {unit}" if size >= 99.95 else f"{size:.3g} {unit}"


def headline(figure: Figure, text: str) -> None:
    """Write one finding over a row of panels, in the style of a title."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, fontweight="bold")
