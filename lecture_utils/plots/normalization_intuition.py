"""Lesson 01: what an outlier does, which cells share a mean, and what that does to tokens and errors."""

import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.text import Annotation, Text
from torch import Tensor

from . import style

# In this lesson a colour is a norm. LayerNorm, which the student builds, has the colour of "our output";
# the norm along the positions has that of positions; purple, free here, is BatchNorm. Sky is min-max.
BATCH, SEQUENCE, LAYER = style.GATE, style.POSITION, style.OUTPUT
NORMS = {"BatchNorm": BATCH, "over the sequence": SEQUENCE, "LayerNorm": LAYER}


def number_lines(axes: Axes, rows: dict[str, Tensor]) -> None:
    """Values as dots, a row for each sample {name: values [n]}; the last value of each is the outlier."""
    for row, values in enumerate(rows.values()):
        axes.plot([values.min(), values.max()], [row, row], color="#CCCCCC", linewidth=1.2, zorder=1)
        axes.scatter(values[:-1], [row] * (len(values) - 1), s=60, color=style.INPUT, alpha=0.75, zorder=2)
        axes.scatter(
            values[-1:], [row], s=60, facecolor="white", edgecolor=style.INPUT, linewidth=2, zorder=2
        )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, labelcolor=style.INPUT)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.06)


def _shade(color: str, light: float) -> tuple[float, ...]:
    """`color` mixed with white (light > 0) or black (light < 0)."""
    return tuple(c + (1 - c) * light if light > 0 else c * (1 + light) for c in to_rgb(color))


def corner(b: float, s: float, h: float) -> tuple[float, float]:
    """A point of the cube on paper, seen from a corner: H to the right, B to the back, S down."""
    return 0.866 * (h - b), -0.5 * (h + b) - s


def faces(sizes: tuple[int, int, int], first: tuple[int, int, int]):
    """The faces that one sees of a cube of cells [B, S, H]: (corners on paper, cell, lightness) for each.

    What lies in front of the cell `first` is cut away: texts before its own, tokens before it, features
    after it. So (0, 0, H - 1) cuts nothing.
    """
    n_texts, n_tokens, _ = sizes
    text, token, feature = first
    front = n_texts - text  # text 0 is in front, `front` counts from the back
    for b in range(front):  # the top, from the back to the front
        for h in range(feature + 1):
            edge = (b, h), (b, h + 1), (b + 1, h + 1), (b + 1, h)
            yield [corner(b, token, h) for b, h in edge], (n_texts - 1 - b, token, h), 0.3
    for s in range(token, n_tokens):
        for h in range(feature + 1):  # on the left, the text in front
            edge = (s, h), (s, h + 1), (s + 1, h + 1), (s + 1, h)
            yield [corner(front, s, h) for s, h in edge], (text, s, h), 0.0
        for b in range(front):  # on the right, the last feature
            edge = (b, s), (b + 1, s), (b + 1, s + 1), (b, s + 1)
            yield [corner(b, s, feature + 1) for b, s in edge], (n_texts - 1 - b, s, feature), -0.22


def paint(color: str | None, light: float) -> tuple[float, ...]:
    """The fill of a face; without a colour, that of a cell which is not chosen."""
    return _shade(color, light) if color else _shade("#DDE3E8", light * 0.8 - 0.03)


def cube_axes(axes: Axes) -> dict[str, tuple[Annotation, Text]]:
    """The arrows B, S, H along a cube [3, 4, 5], each with its name."""
    ends = {
        "B": (corner(3, -0.1, -0.45), corner(0, -0.1, -0.45), (-0.45, 0.5)),
        "S": (corner(3.25, 0, -0.25), corner(3.25, 4, -0.25), (-0.5, 0)),
        "H": (corner(-0.45, -0.1, 0), corner(-0.45, -0.1, 5), (0.45, 0.5)),
    }
    arrows = {}
    for name, (start, end, (dx, dy)) in ends.items():
        look = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
        arrow = axes.annotate("", end, start, arrowprops=look)
        middle = (start[0] + end[0]) / 2 + dx, (start[1] + end[1]) / 2 + dy
        arrows[name] = arrow, axes.text(*middle, name, ha="center", va="center")
    return arrows


def strengthen(arrow: Annotation, name: Text, color: str | None) -> None:
    """An axis that is averaged is bold and has the colour of the norm; any other is thin and grey."""
    tint = color or "#777777"
    arrow.arrow_patch.set(color=tint, linewidth=2.4 if color else 1.0)
    name.set(color=tint, fontweight="bold" if color else "normal")


def cube(axes: Axes, shared: tuple[slice, slice, slice], color: str, title: str, below: str) -> None:
    """A tensor [B=3, S=4, H=5] as cells; those at `shared` (what one mean is taken over) are coloured."""
    chosen = torch.zeros(3, 4, 5, dtype=torch.bool)
    chosen[shared] = True
    for corners, cell, light in faces((3, 4, 5), (0, 0, 4)):
        fill = paint(color if chosen[cell] else None, light)
        axes.add_patch(Polygon(corners, facecolor=fill, edgecolor="white", linewidth=1.3, joinstyle="round"))
    for part, arrow in zip(shared, cube_axes(axes).values(), strict=True):
        strengthen(*arrow, color if part == slice(None) else None)
    axes.set_title(title, color=color, loc="center", pad=2)
    axes.text(0.866, -8.45, below, ha="center", va="top", linespacing=1.35)
    axes.set(aspect="equal", xlim=(-3.9, 5.5), ylim=(-10.6, 1.2))
    axes.axis("off")


def cubes(figure: Figure) -> None:
    """Three norms, three ways to share a mean."""
    every, last, first = slice(None), slice(-1, None), slice(0, 1)
    axes = figure.subplots(1, 3)
    cube(axes[0], (every, every, last), BATCH, "BatchNorm",
         "for each feature,\na mean over B·S = 12 cells:\n[1, 1, H]")  # fmt: skip
    cube(axes[1], (first, every, last), SEQUENCE, "over the sequence",
         "for each text and feature,\na mean over S = 4 cells:\n[B, 1, H]")  # fmt: skip
    cube(axes[2], (first, first, every), LAYER, "LayerNorm, RMSNorm",
         "for each token,\na mean over H = 5 cells:\n[B, S, 1]")  # fmt: skip


def moved(figure: Figure, changes: dict[str, Tensor]) -> None:
    """How far each token [B, S] of the output moved, for each norm, when one token of the input changed."""
    for axes, (name, change) in zip(figure.subplots(1, len(changes)), changes.items(), strict=True):
        n_texts, n_tokens = change.shape
        for text in range(n_texts):
            for token in range(n_tokens):
                value = change[text, token].item()
                fill = _shade(NORMS[name], 0.35) if value > 1e-6 else "#EEF1F4"
                corners = [(token + dx, text + dy) for dx, dy in ((0, 0), (1, 0), (1, 1), (0, 1))]
                axes.add_patch(Polygon(corners, facecolor=fill, edgecolor="white", linewidth=2))
                number = style.number(value, ".1f")
                axes.text(token + 0.5, text + 0.5, number, ha="center", va="center", fontsize=11)
        ring = [(n_tokens - 1, 0), (n_tokens, 0), (n_tokens, 1), (n_tokens - 1, 1)]
        axes.add_patch(Polygon(ring, fill=False, edgecolor=style.REFERENCE, linewidth=2, zorder=3))
        axes.set_title(name, color=NORMS[name])
        axes.set(aspect="equal", xlim=(-0.05, n_tokens + 0.05), ylim=(n_texts + 0.05, -0.05), xlabel="token")
        axes.set_xticks([t + 0.5 for t in range(n_tokens)], [str(t) for t in range(n_tokens)])
        axes.set_yticks([t + 0.5 for t in range(n_texts)], [f"text {t}" for t in range(n_texts)])
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.grid(False)
    figure.get_layout_engine().set(wspace=0.08)
    style.headline(figure, "Change the framed token: only LayerNorm keeps it to itself")


def padding(axes: Axes, lengths: list[int], spread: dict[str, list[float]]) -> None:
    """Standard deviation of the real tokens after each norm, against the length that texts are padded to."""
    for name, values in spread.items():
        axes.plot(lengths, values, color=NORMS[name], marker="o")
        style.label_line(axes, lengths[-1], values[-1] + 0.1, name, NORMS[name], ha="right", va="bottom")
    axes.set(title="Padding changes what BatchNorm does to the real tokens", ylim=(0, 2.6))
    axes.set(xlabel="length that all texts are padded to (tokens)")
    axes.set_ylabel("standard deviation of\nreal tokens after")
    axes.set_xticks(lengths)


def gaps(axes: Axes, results: dict[str, tuple[int, float, float]]) -> None:
    """Training and test error of each run {name: (steps, train, test)}, and the gap between them."""
    for row, (steps, train, test) in enumerate(results.values()):
        axes.plot([train, test], [row, row], color="#CCCCCC", linewidth=3, zorder=1)
        axes.plot(train, row, "o", color=style.INPUT, markersize=9)
        axes.plot(test, row, "o", color=style.OUTPUT, markersize=9)
        gap = f"gap {style.number(test - train, '.1f')}"
        axes.text((train + test) / 2, row - 0.12, gap, ha="center", va="bottom")
        axes.text(test + 0.7, row, f"{steps} steps", va="center", color="#333333")
        if row == 0:
            style.label_line(axes, train, -0.22, "training", style.INPUT, ha="center", va="bottom")
            style.label_line(axes, test, -0.22, "test", style.OUTPUT, ha="center", va="bottom")
    axes.set_yticks(range(len(results)), list(results))
    furthest = max(test for _, _, test in results.values())
    axes.set(xlim=(0, furthest * 1.25), ylim=(len(results) - 0.5, -0.75), xlabel="mean squared error")
    axes.set_title("Scaling saves steps, weight decay narrows the gap")
    axes.grid(axis="y", visible=False)


def _two_tokens(figure: Figure) -> None:
    """Two tokens of five features in three rows: as they are, less their mean, divided by their spread."""
    axes = figure.subplots()
    first = torch.tensor([2.0, 4.0, 5.0, 6.0, 8.0])  # [n=5]: mean 5, standard deviation 2
    for x, name, filled in ((first, "token A", True), (first / 2 + 10, "token B", False)):
        distance = x - x.mean()
        rows = torch.stack((x, distance, distance / x.std(correction=0)))  # [3, n]
        axes.plot(rows, range(3), color="#CCCCCC", linewidth=1.2, zorder=1)
        for row, values in enumerate(rows):
            color = style.OUTPUT if row == 2 else style.INPUT
            dots = axes.scatter(values, [row] * len(x), s=45 if filled else 120, color=color, zorder=3)
            if not filled:
                dots.set(facecolor="white", linewidth=1.8, zorder=2)
        above = f"{name}: mean {x.mean():g}, st. dev. {x.std(correction=0):g}"
        style.label_line(axes, x.mean().item(), -0.24, above, style.INPUT, ha="center", va="bottom")
    style.label_line(axes, 4, 1, "− mean: both around 0", style.INPUT, va="center")
    style.label_line(axes, 2.4, 2, "÷ st. dev.: no difference is left", style.OUTPUT, va="center")
    axes.set(xlim=(-3.6, 16.6), ylim=(2.35, -0.6), xlabel="value")
    axes.set_xticks(range(-2, 17, 2), [style.number(x) for x in range(-2, 17, 2)])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _reach(figure: Figure) -> None:
    """`moved` for a text of which the last token changes, with the lesson's numbers."""
    figure.set_figheight(2.4)
    before = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(1))  # [B, S, H]
    after = before.clone()
    after[0, -1, :4] += 10
    changes = {}
    for axis, name in zip(((0, 1), (1,), (2,)), NORMS, strict=True):
        old, new = (
            (x - x.mean(axis, keepdim=True)) / (x.var(axis, correction=0, keepdim=True) + 1e-5).sqrt()
            for x in (before, after)
        )
        changes[name] = (new - old).abs().amax(-1)  # [B, S]
    moved(figure, changes)


IMAGES = {
    "01_normalization_intuition": cubes,
    "01_reach": _reach,
    "01_two_tokens": _two_tokens,
}
