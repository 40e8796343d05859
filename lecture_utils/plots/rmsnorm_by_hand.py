"""Lesson 02: RMSNorm as geometry, beside LayerNorm, and what it costs."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lecture_utils.llama import LayerNorm, RMSNorm

from . import style

LAYER_NORM = style.POSITION  # no positions in this lesson, so green is free


def circle(axes: Axes, points: Tensor) -> None:
    """Tokens of two features before and after RMSNorm: `points` [S, 2]."""
    outputs = RMSNorm(2)(points).detach()
    turn = torch.linspace(0, 2 * torch.pi, 200)
    ring = 2**0.5 * torch.stack((turn.cos(), turn.sin()))
    axes.plot(*ring, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    for before, after in zip(points, outputs, strict=True):
        axes.plot(*zip(before, after, strict=True), color="#CCCCCC", linewidth=0.9, zorder=1)
    axes.scatter(*points.T, s=22, color=style.INPUT, zorder=2)
    axes.scatter(*outputs.T, s=22, color=style.OUTPUT, zorder=3)
    axes.set(aspect="equal", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), xlabel="feature 1", ylabel="feature 2")
    style.label_line(axes, -3, 2.75, "before", style.INPUT)
    style.label_line(axes, -3, 2.3, "after", style.OUTPUT)


def shift(axes: Axes, token: Tensor) -> None:
    """First feature of a token [H] after each norm, while the same number is added to all features."""
    offsets = torch.linspace(-6, 6, 601)
    width = token.shape[0]
    ends = []
    for norm, color, name in (
        (RMSNorm(width), style.OUTPUT, "RMSNorm"),
        (LayerNorm(width), LAYER_NORM, "LayerNorm"),
    ):
        first = norm(token + offsets[:, None])[:, 0].detach()
        axes.plot(offsets, first, color=color)
        ends.append((first[-1].item(), name, color))
    # No feature of a normalized token is beyond √H.
    limit = 1.08 * width**0.5
    (low, *low_label), (high, *high_label) = sorted(ends)
    for y, (name, color), va in (
        (low - 0.04 * limit, low_label, "top"),
        (high + 0.04 * limit, high_label, "bottom"),
    ):
        axes.text(6, y, name, color=color, fontweight="bold", ha="right", va=va)
    axes.set(title="Feature 1 after the norm, as a constant is added", ylim=(-limit, limit))
    axes.set(xlabel="constant added to every feature", ylabel="feature 1 after the norm")


def time_ratios(axes: Axes, ratios: dict[str, dict[str, float]]) -> None:
    """Time of RMSNorm as a share of LayerNorm's: {shape: {"by hand": …, "torch.nn": …}}."""
    rows = list(ratios)
    axes.axvline(1, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    axes.axvline(0.6, color=style.WRONG, linestyle=":")
    for how, color, lift in (("by hand", style.OUTPUT, -0.12), ("torch.nn", style.INPUT, 0.12)):
        for row, shape in enumerate(rows):
            value = ratios[shape][how]
            axes.plot([1, value], [row + lift] * 2, color=color, linewidth=4, solid_capstyle="round")
            axes.text(value * (0.97 if value < 1 else 1.03), row + lift, f"{how} {value:.2f}",
                      color=color, va="center", ha="right" if value < 1 else "left",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    axes.text(0.6, len(rows) - 0.45, "“40% less” ", ha="right", color=style.MUTED, fontsize=10)
    axes.text(1, len(rows) - 0.45, " as fast as LayerNorm", color=style.REFERENCE, fontsize=10)
    every = [value for ratio in ratios.values() for value in ratio.values()]
    axes.set(xscale="log", xlim=(min(*every, 0.5) / 3, max(*every, 1.5) * 3), ylim=(len(rows) - 0.3, -0.5))
    axes.set_yticks(range(len(rows)), rows)
    ticks = [t for t in (0.1, 0.25, 0.5, 1, 2, 4, 10, 25) if axes.get_xlim()[0] < t < axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set(title="Faster or slower: the code and the shape decide", ylabel="[B, S, H]")
    axes.set_xlabel("time of RMSNorm / time of LayerNorm (log scale)")
    axes.grid(axis="y", visible=False)


def cloud() -> Tensor:
    """Tokens of two features, the same each time, [24, 2]."""
    return torch.randn(24, 2, generator=torch.Generator().manual_seed(2)).clamp(-2.5, 2.5)


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
    circle(left, cloud())
    left.set_title("RMSNorm keeps the direction")
    shift(right, torch.tensor([1.0, -2.0, 0.5, 3.0]))
    right.set_title("A constant moves RMSNorm only")


IMAGES = {"02_rmsnorm_by_hand": _cover}
