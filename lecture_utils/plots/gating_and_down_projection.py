"""Lesson 04: what a gate does to its candidate, and how well a family of gated networks learns."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from . import style


def gate_bars(
    axes: Axes, candidates: Tensor, gates: Tensor, title: str, ylim: tuple[float, float] = (-2, 8)
) -> None:
    """Candidate, gate and product side by side, for each of the D candidates of one token, both [D]."""
    rows = (
        ("candidate", candidates, style.UP),
        ("gate", gates, style.GATE),
        ("product", gates * candidates, style.OUTPUT),
    )
    axes.axhline(0, color="#555555", linewidth=0.9)
    for offset, (name, values, color) in zip((-0.27, 0, 0.27), rows, strict=True):
        places = [number + offset for number in range(len(values))]
        axes.bar(places, values, width=0.24, color=color, label=name)
        for place, value in zip(places, values.tolist(), strict=True):
            text = style.number(value, ".1f").removesuffix(".0")
            # Two negatives have a positive product: there is room on the right of the gate's number.
            aside = 7 if name == "gate" and value < 0 and candidates[round(place)] < 0 else 0
            axes.annotate(text, (place, value), (aside, 2 if value >= 0 else -2), textcoords="offset points",
                          ha="center", va="bottom" if value >= 0 else "top", fontsize=11)  # fmt: skip
    axes.legend(loc="upper left", ncols=3, handlelength=1, columnspacing=1, borderpad=0)
    axes.set(title=title, ylabel="value", ylim=ylim)
    axes.set_xticks(range(len(candidates)), [f"candidate {n + 1}" for n in range(len(candidates))])
    axes.grid(axis="x", visible=False)


def silu_band(axes: Axes) -> None:
    """SiLU, and the band from 0 to 1 that it leaves on both sides; the sigmoid stays inside."""
    z = torch.linspace(-6, 4, 201)
    axes.axhspan(0, 1, color="#EEEEEE", zorder=0)
    axes.plot(z, torch.sigmoid(z), color=style.POSITION, linewidth=1.6)
    axes.plot(z, F.silu(z), color=style.GATE)
    axes.text(-5.9, 0.5, "0 to 1", color="#555555", va="center")
    style.label_line(axes, 2.45, 2.6, "SiLU", style.GATE, ha="right")
    style.label_line(axes, 3.9, 0.72, "sigmoid", style.POSITION, ha="right", va="top")
    axes.annotate("below 0", (-1.28, -0.28), (-3.4, -0.75), color=style.GATE,
                  arrowprops={"arrowstyle": "-", "color": style.GATE})  # fmt: skip
    axes.annotate("above 1", (1.28, 1), (-0.6, 1.7), color=style.GATE,
                  arrowprops={"arrowstyle": "-", "color": style.GATE})  # fmt: skip
    axes.set(title="SiLU leaves the band from 0 to 1 on both sides", xlim=(-6, 4), ylim=(-1, 4))
    axes.set(xlabel="z, what the gate projection gives", ylabel="gate")


def family_errors(axes: Sequence[Axes], errors: dict[str, dict[str, Tensor]]) -> None:
    """Held-out errors by task and network: a dot for each run; 1 is the error of the mean."""
    # Networks are told apart by their row; the colour says plain, another gate, or Llama's gate.
    colors = {"plain ReLU": style.INPUT, "SwiGLU": style.OUTPUT}
    for panel, (task, row) in zip(axes, errors.items(), strict=True):
        for place, (name, values) in enumerate(row.items()):
            color = colors.get(name, style.GATE)
            panel.scatter(values, [place] * len(values), s=30, color=color, alpha=0.6)
        panel.axvline(1, color=style.REFERENCE, linestyle="--", linewidth=1.2)
        panel.text(1.02, len(row) - 0.55, "mean", va="bottom", fontsize=10)
        panel.set(title=task, xlabel="held-out error", xlim=(-0.05, 1.3))
        panel.set_yticks(range(len(row)), list(row))
        panel.set_ylim(len(row) - 0.5, -0.5)
    style.headline(axes[0].figure, "After 200 steps, which network is best depends on the task")


def contours(axes: Axes, outputs: Tensor, title: str) -> None:
    """Lines of equal output over two features from -2.5 to 2.5, and the outputs of [1, 1] and its double.

    Args:
        outputs: [251, 251], feature 1 changes slowest.
    """
    ticks, levels = torch.linspace(-2.5, 2.5, 251), (-4, -2, -1, 0, 1, 2, 4)
    axes.contour(ticks, ticks, outputs.T, levels, colors=style.OUTPUT,
                 linestyles=["--" if level < 0 else "-" for level in levels],
                 linewidths=[1 if level == 0 else 1.8 for level in levels])  # fmt: skip
    for value in (1, 2):
        place = 125 + 50 * value
        axes.plot(value, value, "o", color=style.INPUT)
        axes.annotate(f"{outputs[place, place].item():.0f}", (value, value), (-6, -5), color=style.INPUT,
                      textcoords="offset points", ha="right", va="top", fontweight="bold")  # fmt: skip
    axes.set(title=title, xlabel="feature 1", aspect="equal", xticks=range(-2, 3), yticks=range(-2, 3))
    axes.grid(visible=False)


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    gate_bars(
        left, torch.tensor([2.0, -1.0, 3.0]), torch.tensor([0.0, 0.5, 2.0]), "A gate closes or amplifies"
    )
    left.set_xticks(range(3), [])
    left.set_xlabel("three candidates of a token")
    silu_band(right)
    right.set_title("SiLU leaves 0 to 1")
    right.set_xlabel("gate projection")


def _two_tokens(figure: Figure) -> None:
    """Two tokens at the three units of the lesson."""
    tokens = torch.tensor([[2.0, -1.0], [-1.0, 2.0]])
    gates = F.silu(F.linear(tokens, torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])))
    candidates = F.linear(tokens, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]))
    titles = ("Token [2, −1]: gate 1 is 0", "Token [−1, 2]: gate 1 is 2.9")
    for row, (axes, title) in enumerate(zip(figure.subplots(1, 2, sharey=True), titles, strict=True)):
        gate_bars(axes, candidates[row], gates[row], title, ylim=(-4.5, 8))
        axes.set_xticks(range(3), ["unit 1", "unit 2", "unit 3"])
        if row:
            axes.get_legend().remove()
            axes.set_ylabel("")


def _products(figure: Figure) -> None:
    """Four ReLU units, and two SwiGLU units, which multiply the two features."""
    ticks = torch.linspace(-2.5, 2.5, 251)
    points = torch.cartesian_prod(ticks, ticks)
    signs = torch.tensor([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    corners = F.relu(points @ signs.T) @ torch.tensor([0.5, 0.5, -0.5, -0.5])
    first, second = points.T
    product = F.silu(first) * second - F.silu(-first) * second
    left, right = figure.subplots(1, 2, sharey=True)
    contours(left, corners.reshape(251, 251), "4 ReLU units: corners")
    contours(right, product.reshape(251, 251), "2 SwiGLU units: a product")
    left.set_ylabel("feature 2")
    for x, y, word in ((-1.75, -0.5, "above 0"), (1.75, -0.5, "below 0")):
        left.text(x, y, word, color=style.OUTPUT, ha="center", va="center")


IMAGES = {
    "04_gating_and_down_projection": _cover,
    "04_corner_or_product": _products,
    "04_two_tokens": _two_tokens,
}
