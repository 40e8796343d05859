"""Lesson 03: detectors as directions, what a width can fit, rank, and where the parameters are."""

from collections.abc import Callable, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

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
    text = f"[{style.number(row[0])}, {style.number(row[1])}]"
    return text if answer is None else f"row {text}: {style.number(answer)}"


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
    axes.text(32, 4e-11, "rounding: counts as 0", color=style.MUTED, va="top", ha="right")
    axes.set(ylim=(1e-16, 1e4))
    axes.set(yscale="log", title="The up-projection adds columns, not directions; ReLU adds directions")
    axes.set(xlabel="singular value, largest first", ylabel="size (log scale)")


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


# The weights and the token of steps 1 and 2.
_UP = torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])  # [D=4, H=2]
_DOWN = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, -1.0, 0.0]])  # [H=2, D=4]
_TOKEN = torch.tensor([2.0, 1.0])


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    detectors(left, _UP, _TOKEN)
    left.set(title="Up: each row asks a question", xlim=(-2.1, 3.1), xticks=range(-2, 4), yticks=(-1, 0, 1))
    regions(right, same_sign(), "ReLU makes corners")
    right.set_ylabel("feature 2")


def _folded(figure: Figure) -> None:
    """Tokens in a grid, and three on a line, sent through two layers: without ReLU and with it."""
    ticks, along = torch.linspace(-2, 2, 9), torch.linspace(-2, 2, 161)
    grid = [torch.stack((tick.expand(161), along), -1) for tick in ticks]
    grid += [line.flip(-1) for line in grid]
    place = torch.linspace(-1, 2, 121)
    line = torch.stack((place, place - 1), -1)  # [121, 2], from b through c to a
    marks = torch.tensor([[2.0, 1.0], [-1.0, -2.0], [0.0, -1.0]])  # a, b, c
    panels = (
        ("Tokens", style.INPUT, lambda x: x, {"a": (-8, 6), "b": (10, -2), "c": (-16, 4)}),
        ("Two layers: straight", style.OUTPUT, lambda x: x @ _UP.T @ _DOWN.T,
         {"a": (2, 8), "b": (3, 7), "c": (3, 7)}),
        ("With ReLU: bent", style.OUTPUT, lambda x: (x @ _UP.T).relu() @ _DOWN.T,
         {"a": (2, 8), "b = c": (-46, -4)}),
    )  # fmt: skip
    for axes, (title, color, send, words) in zip(figure.subplots(1, 3), panels, strict=True):
        for each in grid:
            axes.plot(*send(each).T.numpy(), color=color, linewidth=0.9, alpha=0.45)
        axes.plot(*send(line).T.numpy(), color=color, linewidth=3.2)
        places = send(marks)
        axes.plot(*places.T.numpy(), "o", color=color, markeredgecolor="white", markersize=9, zorder=4)
        for (word, shift), spot in zip(words.items(), places.tolist(), strict=False):  # c may be at b
            axes.annotate(word, spot, shift, textcoords="offset points", color="#222222", fontsize=13,
                          fontweight="bold", zorder=5)  # fmt: skip
        limit, axis = (2.3, "feature") if title == "Tokens" else (9.2, "output")
        axes.set(title=title, xlabel=f"{axis} 1", ylabel=f"{axis} 2")
        axes.set(xlim=(-limit, limit), ylim=(-2.3, 2.5), yticks=range(-2, 3))
        axes.set_xticks(range(-2, 3) if limit < 9 else (-8, -4, 0, 4, 8))
        axes.grid(visible=False)


def _three_units(figure: Figure) -> None:
    """A wave by hand, H = 1 and D = 3: the three answers, what ReLU keeps, and the weighted sum of that."""
    up_bias, down = torch.tensor([2.0, 1.0, -1.0]), torch.tensor([-1.0, 2.0, -2.0])
    x = torch.linspace(-2, 2, 201)
    answers = x[:, None] + up_bias  # [201, D=3]
    first, second, third = figure.subplots(1, 3)
    words = (("x + 2", "× −1"), ("x + 1", "× 2"), ("x − 1", "× −2"))
    for k, (name, factor) in enumerate(words):
        bias = up_bias[k].item()
        first.plot(x, answers[:, k], color=style.UP)
        style.label_line(first, 2.15, 2 + bias, name, "#333333", va="center")
        second.plot(x, answers[:, k].relu(), color=style.UP)
        style.label_line(second, 2.15, 2 + bias, factor, style.WEIGHT, va="center")
    third.plot(x, (x * torch.pi / 2).sin(), color=style.REFERENCE, linestyle="--", linewidth=1.2)
    third.plot(x, answers.relu() @ down, color=style.OUTPUT, linewidth=3.2)
    bends = -up_bias
    for axes, height in ((second, bends * 0), (third, (bends[:, None] + up_bias).relu() @ down)):
        axes.plot(bends, height, "o", color=style.UP, markeredgecolor="white", markersize=9, zorder=4)
    style.label_line(third, -1.85, 0.55, "dashed:\nsine", style.REFERENCE, va="bottom")
    titles = ("Up: three lines", "ReLU: cut off at 0", "Down: weighted sum")
    for axes, title in zip((first, second, third), titles, strict=True):
        axes.set(title=title, xlabel="input x", xlim=(-2.2, 2.2), xticks=range(-2, 3))
    for axes in (first, second):
        axes.set(xlim=(-2.2, 3.9), ylim=(-3.3, 4.5), yticks=range(-3, 5))
    third.set(ylim=(-1.3, 1.3), yticks=(-1, 0, 1))


IMAGES = {
    "03_ffn_up_projection": _cover,
    "03_folded_plane": _folded,
    "03_three_units": _three_units,
}
