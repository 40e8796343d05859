"""Lesson 01: what an outlier does, why scale matters to descent, and which cells share a mean."""

import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
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


def outlier_curves(axes: Axes, n: int = 200, furthest: float = 50.0) -> None:
    """Spread that the others keep after either scaling, while one of `n` values moves away."""
    sample = torch.randn(n, generator=torch.Generator().manual_seed(0)).sort().values
    positions = torch.linspace(sample[-1].item(), furthest, 200)
    samples = torch.cat((sample[:-1].expand(200, -1), positions[:, None]), 1)  # [200, n], the last moves
    minimum, maximum = samples.amin(1, keepdim=True), samples.amax(1, keepdim=True)
    min_max = (samples - minimum) / (maximum - minimum)
    standard = (samples - samples.mean(1, keepdim=True)) / samples.std(1, correction=0, keepdim=True)
    ends = {}
    for scaled, color, name in ((min_max, style.UP, "min-max"), (standard, style.OUTPUT, "standard score")):
        spread = scaled[:, :-1].std(1, correction=0)
        kept = 100 * spread / spread[0]
        ends[name] = kept[-1].item()
        axes.plot(positions, kept, color=color)
        if name == "standard score" and positions[0] < n**0.5 < furthest:
            at = (positions - n**0.5).abs().argmin()
            axes.plot(positions[at], kept[at], "o", color=color, markersize=9)
            axes.annotate("√n", (positions[at], kept[at]), (7, 6), textcoords="offset points", color=color)
    above, below = sorted(ends, key=ends.get, reverse=True)
    apart = max(0.0, 8 - (ends[above] - ends[below])) / 2  # labels of curves that end together
    for name, shift in ((above, apart), (below, -apart)):
        color = style.UP if name == "min-max" else style.OUTPUT
        style.label_line(axes, furthest + 1, ends[name] + shift, name, color, va="center")
    kept = " or ".join(f"{ends[name]:.0f}% ({name})" for name in ("min-max", "standard score"))
    axes.set_title(
        f"One value of {n:,}, at {furthest:.0f} standard deviations of the others,\nleaves them {kept}"
    )
    axes.set(xlabel="distance of that value (standard deviations of the others)", ylim=(0, 108))
    axes.set_xlim(0, furthest * 1.32)
    axes.set_xticks(range(0, int(furthest) + 1, 10))
    axes.set_ylabel(f"spread left to the other {n - 1:,}\n(% of where it began)")


def descent(
    axes: Axes,
    features: Tensor,
    target: Tensor,
    path: Tensor,
    best: Tensor,
    title: str,
    window: tuple[float, float] = (-0.9, 4.6),
) -> None:
    """Contours of the loss of two weights, and the steps [T, 2] of gradient descent over them."""
    ticks = torch.linspace(*window, 160)
    across, up = torch.meshgrid(ticks, ticks, indexing="xy")
    weights = torch.stack((across.flatten(), up.flatten()))  # [2, points]
    loss = (features @ weights - target[:, None]).square().mean(0).div(2).view(across.shape)
    lowest = (features @ best - target).square().mean() / 2
    gap = (loss - lowest).clamp(min=1e-9).sqrt()  # the root: contours at equal distances
    levels = torch.linspace(0, gap.max().item(), 11)[1:]
    axes.contour(across, up, gap, levels=levels, colors="#B5C7D6", linewidths=1)
    axes.plot(*best, "*", color=style.REFERENCE, markersize=11)
    axes.plot(*path.T, color=style.OUTPUT, linewidth=1.4, marker="o", markersize=4)
    axes.plot(*path[0], "o", color=style.INPUT, markersize=7)
    axes.annotate("start", path[0], (-6, -14), textcoords="offset points", color=style.INPUT,
                  fontweight="bold", ha="center")  # fmt: skip
    axes.annotate("best", best, (8, -14), textcoords="offset points", fontweight="bold")
    if len(path) <= 5:
        for step, (place, side) in enumerate(zip(path[1:], [(5, 4), (-6, 6)] * 2, strict=False), 1):
            axes.annotate(f"step {step}", place, side, textcoords="offset points", color=style.OUTPUT,
                          fontweight="bold", ha="left" if side[0] > 0 else "right")  # fmt: skip
    axes.set(title=title, xlabel="weight of feature 1", ylabel="weight of feature 2")
    axes.set(aspect="equal", xlim=window, ylim=window)
    axes.label_outer()
    axes.grid(False)


def _shade(color: str, light: float) -> tuple[float, ...]:
    """`color` mixed with white (light > 0) or black (light < 0)."""
    return tuple(c + (1 - c) * light if light > 0 else c * (1 + light) for c in to_rgb(color))


def cube(axes: Axes, shared: tuple[slice, slice, slice], color: str, title: str, below: str) -> None:
    """A tensor [B=3, S=4, H=5] as cells; those at `shared` (what one mean is taken over) are coloured.

    Seen from a corner: the features H run to the right, the texts B to the back, the tokens S down.
    """
    sizes = n_texts, n_tokens, n_features = 3, 4, 5
    chosen = torch.zeros(sizes, dtype=torch.bool)
    chosen[shared] = True
    averaged = [part == slice(None) for part in shared]  # B, S, H
    chosen = chosen.flip(0)  # text 0 in front

    def at(b: float, s: float, h: float) -> tuple[float, float]:
        return 0.866 * (h - b), -0.5 * (h + b) - s

    def face(corners, is_chosen: bool, light: float) -> None:
        fill = _shade(color, light) if is_chosen else _shade("#DDE3E8", light * 0.8 - 0.03)
        axes.add_patch(Polygon(corners, facecolor=fill, edgecolor="white", linewidth=1.3, joinstyle="round"))

    for b in range(n_texts):  # the top: token 0 of every text, from the back to the front
        for h in range(n_features):
            corners = [at(b, 0, h), at(b, 0, h + 1), at(b + 1, 0, h + 1), at(b + 1, 0, h)]
            face(corners, bool(chosen[b, 0, h]), 0.3)
    for s in range(n_tokens):
        for h in range(n_features):  # on the left: the text in front
            corners = [at(3, s, h), at(3, s, h + 1), at(3, s + 1, h + 1), at(3, s + 1, h)]
            face(corners, bool(chosen[-1, s, h]), 0.0)
        for b in range(n_texts):  # on the right: the last feature
            corners = [at(b, s, 5), at(b + 1, s, 5), at(b + 1, s + 1, 5), at(b, s + 1, 5)]
            face(corners, bool(chosen[b, s, -1]), -0.22)

    def arrow(start, end, name: str, dx: float, dy: float, strong: bool) -> None:
        tint, width = (color, 2.4) if strong else ("#777777", 1.0)
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": tint, "shrinkA": 0,
                                                  "shrinkB": 0, "linewidth": width})  # fmt: skip
        middle = (start[0] + end[0]) / 2 + dx, (start[1] + end[1]) / 2 + dy
        axes.text(*middle, name, color=tint, ha="center", va="center", fontsize=11 if strong else 10,
                  fontweight="bold" if strong else "normal")  # fmt: skip

    arrow(at(3, -0.1, -0.45), at(0, -0.1, -0.45), "B", -0.45, 0.5, averaged[0])
    arrow(at(3.25, 0, -0.25), at(3.25, 4, -0.25), "S", -0.5, 0, averaged[1])
    arrow(at(-0.45, -0.1, 0), at(-0.45, -0.1, 5), "H", 0.45, 0.5, averaged[2])
    axes.set_title(title, color=color, loc="center", pad=2)
    axes.text(0.866, -8.45, below, ha="center", va="top", fontsize=10.5, linespacing=1.35)
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
                axes.text(token + 0.5, text + 0.5, f"{value:.1f}", ha="center", va="center", fontsize=11)
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
        axes.text((train + test) / 2, row - 0.12, f"gap {test - train:.1f}", ha="center", va="bottom")
        axes.text(test + 0.7, row, f"{steps} steps", va="center", color="#333333")
        if row == 0:
            style.label_line(axes, train, -0.22, "training", style.INPUT, ha="center", va="bottom")
            style.label_line(axes, test, -0.22, "test", style.OUTPUT, ha="center", va="bottom")
    axes.set_yticks(range(len(results)), list(results))
    furthest = max(test for _, _, test in results.values())
    axes.set(xlim=(0, furthest * 1.25), ylim=(len(results) - 0.5, -0.75), xlabel="mean squared error")
    axes.set_title("Scaling saves steps, weight decay narrows the gap")
    axes.grid(axis="y", visible=False)


IMAGES = {"01_normalization_intuition": cubes}
