"""Lesson 05: six activations and their slopes, the dip of SiLU, Swish, dead units and depth."""

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray
from torch import Tensor

from lecture_utils.llama import gelu, leaky_relu, relu, sigmoid, silu, silu_grad, swish, tanh

from . import style

# The palette has no colour for a slope: green, which no curve of this lesson needs.
SLOPE = style.POSITION
# Four families in one picture: here colours tell curves apart and keep the palette's meaning only
# for SiLU, the one of Llama.
CURVES = {
    "SiLU": style.OUTPUT,
    "ReLU": style.INPUT,
    "leaky ReLU": style.UP,
    "tanh": style.WEIGHT,
    "sigmoid": style.GATE,
}


def bottom() -> tuple[float, float]:
    """Place and value of the bottom of SiLU: where its slope, σ(x)(1 + x(1 − σ(x))), is nearest 0."""
    x = torch.linspace(-2, -1, 100_001, dtype=torch.float64)
    place = x[silu_grad(x).abs().argmin()]
    return place.item(), silu(place).item()


def zero_lines(*panels: Axes) -> None:
    """Where x is 0 and where the value is 0."""
    for axes in panels:
        axes.axhline(0, color="#AAAAAA", linewidth=0.8, zorder=0)
        axes.axvline(0, color="#AAAAAA", linewidth=0.8, zorder=0)


def curve_and_slope(axes: Axes, title: str, x: Tensor, y: Tensor, slope: Tensor) -> None:
    """One activation: its values `y` and its slopes at `x`, all [n]."""
    zero_lines(axes)
    axes.plot(x, y, color=style.OUTPUT)
    axes.plot(x, slope, color=SLOPE, linewidth=1.6, linestyle=(0, (4, 1.5)))
    axes.set(title=title, xlim=(-5, 5), ylim=(-1.25, 2.25), xticks=(-4, -2, 0, 2, 4), yticks=(-1, 0, 1, 2))


def name_axes(grid: ndarray) -> None:
    """Axis names on the edges of a grid of `curve_and_slope`, and which line is which."""
    for axes in grid[-1]:
        axes.set_xlabel("x")
    for axes in grid[:, 0]:
        axes.set_ylabel("value, slope")
    style.label_line(grid[0, 0], -4.8, 1.75, "value", style.OUTPUT)
    style.label_line(grid[0, 0], -4.8, 1.3, "slope (dashed)", SLOPE)


def dip(axes: Axes, x_min: float, y_min: float) -> None:
    """SiLU and its slope, with the bottom that the notebook found."""
    x = torch.linspace(-8, 4, 481)
    axes.axhline(0, color="#AAAAAA", linewidth=0.8, zorder=0)
    axes.plot(x, silu(x), color=style.OUTPUT)
    axes.plot(x, silu_grad(x), color=SLOPE, linewidth=1.6, linestyle=(0, (4, 1.5)))
    axes.plot([x_min, x_min], [y_min, 0], color=style.REFERENCE, linewidth=1, linestyle=":")
    axes.plot([x_min], [y_min], "o", color=style.OUTPUT, markersize=7)
    axes.plot([x_min], [0], "o", color=SLOPE, markersize=5)
    name = f"({style.number(x_min, '.3f')}, {style.number(y_min, '.3f')})"
    axes.text(x_min, y_min - 0.06, name, ha="center", va="top")
    axes.plot([0], [0.5], "o", color=SLOPE, markersize=5)
    style.label_line(axes, -0.2, 0.56, "slope: ½ at 0", SLOPE, ha="right")
    top = x[silu_grad(x).argmax()]
    axes.plot([top], [silu_grad(top)], "o", color=SLOPE, markersize=5)
    style.label_line(axes, top + 0.1, silu_grad(top) - 0.06, f"{silu_grad(top):.2f}", SLOPE, va="top")
    style.label_line(axes, -3.6, -0.17, "SiLU", style.OUTPUT, ha="right", va="top")
    axes.set(title="SiLU falls, turns, and climbs back towards 0")
    axes.set(xlabel="x", ylabel="value, slope", xlim=(-8, 4), ylim=(-0.55, 1.35))


def swish_family(axes: Axes) -> None:
    """Swish for five β, each dip marked: from the line x/2 to ReLU."""
    place, value = bottom()  # of Swish: both divided by β
    betas = (0.0, 0.5, 1.0, 2.0, 10.0)
    x = torch.linspace(-5, 5, 2001)
    axes.axhline(0, color="#AAAAAA", linewidth=0.8, zorder=0)
    # Wide and behind the curves, so that a large β, which covers it, can still be seen.
    axes.plot(
        x, x.clamp(min=0), color=style.REFERENCE, linestyle=(0, (2, 1)), linewidth=5, alpha=0.3, zorder=1
    )
    style.label_line(axes, 1.9, 2.25, "ReLU (dashed)", "#555555", ha="right", va="bottom")
    for i, beta in enumerate(betas):
        # β is a scale, so the blues are one too, from light to dark; β = 1 is SiLU, in its own colour.
        share = i / (len(betas) - 1)
        color = style.OUTPUT if beta == 1 else (0.5 - 0.5 * share, 0.66 - 0.46 * share, 0.86 - 0.4 * share)
        axes.plot(x, swish(x, beta), color=color, linewidth=3 if beta == 1 else 2)
        if beta == 0:
            style.label_line(axes, -2.9, -1.35, "β = 0", color, ha="right", va="center")
            continue
        # A label above the dip, the larger β the higher, and a thin line down to the dip.
        at, height = place / beta, 0.45 * i - 0.1
        axes.plot([at, at], [value / beta, height], color=color, linewidth=0.9, linestyle=":")
        axes.plot([at], [value / beta], "o", color=color, markersize=5)
        name = f"β = {beta:g}" + (" (SiLU)" if beta == 1 else "")
        style.label_line(axes, at, height, name, color, ha="right", va="bottom")
    axes.set(title="Swish: from x/2 to ReLU", xlabel="x", ylabel="swish(x, β)", xlim=(-5, 5), ylim=(-1.8, 3))


def dead_units(axes: Axes, runs: dict[str, list[list[int]]], units: int, learning_rate: float) -> None:
    """Dead units over the steps, a line for each seed: {curve: [[count at step 0, 1, …], …]}."""
    for name, seeds in runs.items():
        for counts in seeds:
            axes.plot(range(1, len(counts) + 1), counts, color=CURVES[name], linewidth=1.5, alpha=0.85)
    most = {name: max(counts[-1] for counts in seeds) for name, seeds in runs.items()}
    alive = [name for name in runs if most[name] == 0]
    steps = len(next(iter(runs.values()))[0])
    for name in runs:
        if most[name]:
            style.label_line(axes, 1.15, most[name] + 2, f"{name}, {len(runs[name])} seeds", CURVES[name])
    if alive:
        text = ", ".join(alive) + ": 0"
        style.label_line(axes, 0.95 * steps, 0.02 * units, text, "#333333", ha="right", va="bottom")
    worst = max(most.values())
    finding = f"up to {worst} units die, and stay dead" if worst else "none dies"
    axes.set(title=f"Learning rate {learning_rate:g}: {finding}")
    axes.set(xscale="log", xlim=(1, steps), ylim=(-0.03 * units, units))
    axes.set(xlabel="training step (log scale)", ylabel=f"dead units, of {units}")


def depth(axes: Axes, norms: dict[str, list[float]], depths: Sequence[int], title: str) -> None:
    """Gradient norm at the first layer against the number of layers: {curve: [norm for each depth]}.

    The title is completed with the curves whose gradient shrinks by a million or more.
    """
    gone = [name for name, values in norms.items() if values[-1] < 1e-6 * values[0]]
    finding = {0: "none vanishes", 1: f"{gone[0] if gone else ''} vanishes", len(norms): "all of them vanish"}
    axes.set_title(f"{title}: " + finding.get(len(gone), ", ".join(gone) + " vanish"))
    everything = [math.log10(value) for values in norms.values() for value in values]
    low, high = min(everything) - 1, max(everything) + 1
    at = math.inf
    for name in sorted(norms, key=lambda name: norms[name][-1], reverse=True):
        axes.plot(depths, norms[name], color=CURVES[name], marker="o", markersize=4)
        at = min(math.log10(norms[name][-1]), at - (high - low) / 14)  # labels do not overlap
        label = {"color": CURVES[name], "fontweight": "bold", "va": "center", "clip_on": False}
        axes.text(depths[-1] + 1.3, 10**at, name, **label)
    axes.set(yscale="log", xlim=(0, depths[-1] + 0.8), ylim=(10**low, 10**high), xlabel="layers")
    step = max(1, round((high - low) / 6))
    axes.set_yticks([10.0**k for k in range(-step * 40, step * 40, step) if low <= k <= high])
    axes.minorticks_off()


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    dip(left, *bottom())
    left.set_title("SiLU dips below 0, and turns")
    swish_family(right)


def _six(figure: Figure) -> None:
    """The six curves of the lesson with their slopes, and what is to be seen of each slope."""
    curves = {
        "sigmoid: at most ¼": sigmoid,
        "tanh: at most 1": tanh,
        "ReLU: 0 or 1": relu,
        "leaky ReLU: 0.01 or 1": leaky_relu,
        "GELU: up to 1.13": gelu,
        "SiLU: up to 1.10": silu,
    }
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    x = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    for axes, (title, f) in zip(panels.flat, curves.items(), strict=True):
        points = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(f(points).sum(), points)
        if f in (relu, leaky_relu):  # a jump, not a steep line
            slope[500] = math.nan
        curve_and_slope(axes, title, x, f(x), slope)
    name_axes(panels)


def two_sides(curve: Axes, slope: Axes) -> None:
    """silu(x) − silu(−x) = x: as far below 0 on the left as below y = x on the right; and the slopes."""
    place, value = bottom()
    x = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    zero_lines(curve, slope)
    stroke = {"color": style.REFERENCE, "linewidth": 2.5, "solid_capstyle": "butt"}
    curve.plot([0, 5], [0, 5], color=style.MUTED, linewidth=1.4, linestyle="--")
    curve.plot(x, silu(x), color=style.OUTPUT)
    gap = style.number(-value, ".3f")
    for at, low, high in ((place, value, 0), (-place, -place + value, -place)):
        curve.plot([at, at], [low, high], **stroke)
    curve.text(place, value - 0.1, f"{gap} below 0", ha="center", va="top")
    curve.text(-place + 0.3, -place + value - 0.25, f"{gap} below\nthe line", va="top")
    style.label_line(curve, 2.0, 2.35, "the line y = x", style.MUTED, ha="right", va="bottom")
    style.label_line(curve, -4.6, 0.15, "SiLU", style.OUTPUT, va="bottom")
    curve.set(title="As far below on both sides", xlabel="x", ylabel="silu(x)")
    curve.set(xlim=(-5, 5), ylim=(-1.2, 4), xticks=range(-4, 5, 2), yticks=range(-1, 5))

    slopes = silu_grad(x)
    top = x[slopes.argmax()].item()
    slope.axhline(1, color=style.MUTED, linewidth=1.4, linestyle="--")
    slope.plot(x, slopes, color=SLOPE, linewidth=1.6, linestyle=(0, (4, 1.5)))
    ends = {"color": SLOPE, "markersize": 7, "clip_on": False}
    for at, shift, side in ((-top, -0.07, "top"), (0.0, 0.0, "center"), (top, 0.06, "bottom")):
        height = silu_grad(torch.tensor(at, dtype=torch.float64)).item()
        slope.plot([at], [height], "o", **ends)
        name = f"{style.number(height, '.2f')} at {style.number(at, '.1f')}" if at else "½ at 0"
        where = {"ha": "left" if at == 0 else "center", "va": side}
        style.label_line(slope, at + (0.35 if at == 0 else 0), height + shift, name, SLOPE, **where)
    style.label_line(slope, -4.8, 1.03, "slope of the line", style.MUTED, va="bottom")
    slope.set(title="Slopes at x and −x sum to 1", xlabel="x", ylabel="slope")
    slope.set(xlim=(-5, 5), ylim=(-0.35, 1.35), xticks=range(-4, 5, 2), yticks=(0, 0.5, 1))


def _two_sides(figure: Figure) -> None:
    two_sides(*figure.subplots(1, 2))


IMAGES = {"05_silu_curves": _cover, "05_six_curves": _six, "05_two_sides": _two_sides}
