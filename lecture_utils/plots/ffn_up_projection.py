"""Lesson 03: detectors as directions, what a width can fit, rank, and where the parameters are."""

from collections.abc import Callable, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor, nn

from lecture_utils.llama import PRESETS, FeedForward

from . import style

_OUTPUT_MAP = LinearSegmentedColormap.from_list("output", ["#FFFFFF", style.OUTPUT])


def detectors(axes: Axes, weight: Tensor, token: Tensor) -> None:
    """Rows of `weight` [D, 2] as arrows, perpendiculars from `token` [2], and their product at the foot."""
    feet = weight * (weight @ token / weight.square().sum(-1))[:, None]  # [D, 2]
    for row, foot, answer in zip(weight, feet, weight @ token, strict=True):
        axes.plot(*zip(-4 * row, 4 * row, strict=True), color="#E2E2E2", linewidth=1, zorder=1)
        axes.plot(*zip(token, foot, strict=True), color="#888888", linewidth=1, linestyle=":", zorder=2)
        axes.plot(*foot, "o", color=style.UP, markersize=8, zorder=4)
        _arrow(axes, row, style.WEIGHT)
        x, y = torch.nn.functional.normalize(foot - token, dim=0).tolist()  # away from the token
        style.label_line(axes, foot[0] + 0.13 * x, foot[1] + 0.13 * y, _name(row, answer), "#333333",
                         ha="left" if x > 0.3 else "right" if x < -0.3 else "center",
                         va="bottom" if y > 0.3 else "top" if y < -0.3 else "center")  # fmt: skip
    _arrow(axes, token, style.INPUT)
    side = 1 if token[0] >= 0 else -1
    place = "left" if side > 0 else "right"
    label = "token\n" + _name(token)
    style.label_line(axes, token[0] + 0.1 * side, token[1], label, style.INPUT, va="center", ha=place)
    seen = torch.cat((feet, weight, token[None], torch.zeros(1, 2)))
    (left, bottom), (right, top) = seen.amin(0).tolist(), seen.amax(0).tolist()
    axes.set(title="How far does the token go along each row?", xlabel="feature 1", ylabel="feature 2")
    axes.set(aspect="equal", xlim=(left - 1.6, right + 1.1), ylim=(bottom - 0.3, top + 0.4))
    axes.grid(visible=False)


def _name(row: Tensor, answer: Tensor | None = None) -> str:
    text = f"[{row[0]:g}, {row[1]:g}]"
    text = text if answer is None else f"row {text}: {answer:g}"
    return text.replace("-", "−")


def _arrow(axes: Axes, tip: Tensor, color: str) -> None:
    look = {"arrowstyle": "-|>", "color": color, "lw": 2.2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=tip.tolist(), xytext=(0, 0), arrowprops=look, zorder=3)


def singular_values(axes: Axes, tables: dict[str, Tensor]) -> None:
    """Singular values, largest first, of "tokens", "up" and "relu": tables [S, features]."""
    looks = {"tokens": (style.INPUT, "o"), "up": (style.UP, "s"), "relu": (style.OUTPUT, "D")}
    names = {"tokens": "tokens", "up": "after the up-projection", "relu": "after ReLU"}
    for name, table in tables.items():
        values = torch.linalg.svdvals(table)
        color, marker = looks[name]
        size = 8 if name == "tokens" else 5
        axes.plot(range(1, len(values) + 1), values.clamp(min=1e-16), color=color, marker=marker,
                  markersize=size, linewidth=1.2)  # fmt: skip
        n, last = len(values), values[-1].item()
        if name == "tokens":
            style.label_line(axes, n - 1, last * 0.2, names[name], color, ha="right", va="top")
        else:
            lift = 6 if name == "up" else 0.25
            style.label_line(axes, n, max(last, 1e-16) * lift, names[name], color, ha="right",
                             va="bottom" if name == "up" else "top")  # fmt: skip
    axes.axhspan(1e-17, 1e-10, color="#F1F1F1", zorder=0)
    axes.text(32, 4e-11, "rounding: counts as 0", color="#555555", va="top", ha="right")
    axes.set(ylim=(1e-16, 1e4))
    axes.set(yscale="log", title="The up-projection adds columns, not directions; ReLU adds directions")
    axes.set(xlabel="singular value, largest first", ylabel="size (log scale)")


def curves(row: Sequence[Axes], networks: dict[int, nn.Module], x: Tensor, y: Tensor) -> None:
    """What networks of several widths made of the curve `y` over `x`, both [points, 1], and their bends."""
    for axes, (width, network) in zip(row, networks.items(), strict=True):
        with torch.no_grad():
            fitted = network(x)
            bends = -network.up_proj.bias / network.up_proj.weight[:, 0]
        bends = bends[(bends > x.min()) & (bends < x.max())]
        error = (fitted - y).square().mean().sqrt().item()
        axes.plot(x[:, 0], fitted[:, 0], color=style.OUTPUT, linewidth=3)
        axes.plot(x[:, 0], y[:, 0], color=style.REFERENCE, linestyle="--", linewidth=1.2, zorder=3)
        axes.plot(bends, [-1.5] * len(bends), "|", color=style.UP, markersize=11, markeredgewidth=1.6)
        digits = 3 if error < 0.01 else 2
        axes.set(title=f"D = {width}: error {error:.{digits}f}", xlabel="input", ylim=(-1.7, 1.4))
    row[0].set_ylabel("output")
    row[0].text(0, 1.16, "target", color=style.REFERENCE)
    style.label_line(row[0], -3.1, 0.3, "network", style.OUTPUT)
    row[0].text(3.1, -1.5, "bends", color="#333333", va="center", ha="right")
    for axes in row[1:]:
        axes.tick_params(labelleft=False)


def regions(axes: Axes, network: Callable[[Tensor], Tensor], title: str) -> None:
    """Where a network [points, 2] → [points, 2] says yes (its second output is the larger one)."""
    ticks = torch.linspace(-1, 1, 201)
    grid = torch.cartesian_prod(ticks, ticks)  # feature 1 changes slowest
    with torch.no_grad():
        out = network(grid)
    yes = (out[:, 1] > out[:, 0]).float().reshape(201, 201).T
    axes.imshow(yes, extent=(-1, 1, -1, 1), origin="lower", cmap=_OUTPUT_MAP, vmin=0, vmax=1.4)
    axes.axhline(0, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    axes.axvline(0, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    for spot, word, color in (((0.68, 0.68), "yes", "#FFFFFF"), ((-0.68, 0.68), "no", "#333333")):
        if (yes[tuple(round(100 * (1 + v)) for v in spot[::-1])] > 0.5) == (word == "yes"):
            style.label_line(axes, *spot, word, color, ha="center", va="center")
    axes.set(title=title, xlabel="feature 1", aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    axes.grid(visible=False)


def errors_by_width(axes: Axes, errors: dict[int, list[float]], answer_0: float) -> None:
    """Error of every seed, and the median, for several widths: {width: [error of each seed]}.

    `answer_0` is the error of always answering 0.
    """
    axes.axhline(answer_0, color=style.WRONG, linestyle=":")
    axes.text(max(errors), answer_0 * 1.06, "always answering 0", color="#555555", ha="right", va="bottom")
    widths = list(errors)
    medians = [torch.tensor(errors[width]).median().item() for width in widths]
    for width in widths:
        axes.plot(
            [width] * len(errors[width]), errors[width], "o", color=style.OUTPUT, alpha=0.45, markersize=7
        )
    axes.plot(widths, medians, color=style.OUTPUT)
    style.label_line(axes, widths[-2] * 1.3, medians[-2], "median", style.OUTPUT)
    style.label_line(axes, 0.04, 0.06, "one dot, one seed", style.OUTPUT, transform=axes.transAxes)
    axes.set(xscale="log", yscale="log", title="Few units: the start decides. Many: the width does")
    axes.set(xlabel="width D (log scale)", ylabel="RMS error (log scale)")
    axes.set_xticks(widths, [str(width) for width in widths])
    axes.set_ylim(top=1.5 * max(answer_0, *(max(each) for each in errors.values())))
    low, high = axes.get_ylim()
    ticks = [t for t in (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1) if low < t < high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()


def shares(axes: Axes, names: Sequence[str]) -> None:
    """Where the parameters of some presets are, as shares of the total."""
    # Colours here name parts of a model: this lesson's part has the colour of "our layer".
    parts = (("feed_forward", style.OUTPUT, "FFN"), ("attention", style.POSITION, "attention"),
             ("embedding", style.INPUT, "embedding, head"))  # fmt: skip
    for line, name in enumerate(names):
        counts = PRESETS[name].parameter_counts()
        counts["embedding"] += counts["lm_head"]
        total, start = PRESETS[name].num_parameters, 0.0
        for part, color, _ in parts:
            share = 100 * counts[part] / total
            axes.barh(line, share, left=start, color=color, height=0.66, edgecolor="white")
            if share > 6:
                axes.text(start + share / 2, line, f"{share:.0f}", color="white", ha="center", va="center",
                          fontweight="bold")  # fmt: skip
            start += share
    for place, (_, color, label) in zip((0, 62, 100), parts, strict=True):
        style.label_line(
            axes, place, -0.62, label, color, ha=("left", "center", "right")[(place > 0) + (place > 99)]
        )
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 100), ylim=(len(names) - 0.5, -1.05), xlabel="share of all parameters, %")
    axes.set_title("In each of these models, most parameters are in the FFN")
    axes.grid(axis="y", visible=False)


def same_sign() -> FeedForward:
    """Detectors of sum and difference, both signs each: yes where the two features agree in sign."""
    network = FeedForward(2, 4, bias=False)
    network.up_proj.weight.data = torch.tensor([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    network.down_proj.weight.data = torch.tensor([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    return network


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    detectors(left, torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([2.0, 1.0]))
    left.set_title("Up: each row asks a question")
    regions(right, same_sign(), "ReLU makes corners")
    right.set_ylabel("feature 2")


IMAGES = {"03_ffn_up_projection": _cover}
