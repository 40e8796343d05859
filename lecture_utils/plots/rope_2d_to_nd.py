"""Lesson 06: positions as angles, clock hands of many speeds, and what happens past the trained length."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle, Wedge
from torch import Tensor

from lecture_utils.llama import apply_rope, cos_sin, inv_freq

from . import style

# Pairs, bases and rules of one picture, told apart: here the colours have no other meaning.
_SERIES = (style.POSITION, style.INPUT, style.OUTPUT, style.GATE, style.WEIGHT)


def _arrow(axes: Axes, x: float, y: float, color: str, width: float = 2.2, head: float = 12) -> None:
    arrow = FancyArrowPatch(
        (0, 0), (x, y), arrowstyle="-|>", mutation_scale=head, color=color, linewidth=width,
        shrinkA=0, shrinkB=0, joinstyle="miter", zorder=3,
    )  # fmt: skip
    axes.add_patch(arrow)


def face(axes: Axes, y: float = 0) -> None:
    """An empty clock face of radius 1 around (0, y), without ticks, frame and grid."""
    axes.add_patch(Circle((0, y), 1, fill=False, edgecolor="#999999", linewidth=1.2))
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)


def turned_vectors(axes: Axes, vector: Tensor, step: float, count: int = 4) -> None:
    """One vector [2] at positions 0 … count − 1, turned by `step` radians per position."""
    length = vector.norm().item()
    start = math.atan2(vector[1], vector[0])
    axes.add_patch(Circle((0, 0), length, fill=False, edgecolor="#BBBBBB", linestyle="--", linewidth=1.2))
    for position in range(count):
        angle = start + position * step
        x, y = length * math.cos(angle), length * math.sin(angle)
        _arrow(axes, x, y, style.OUTPUT if position else style.INPUT)
        axes.text(1.22 * x, 1.22 * y, f"{position}", ha="center", va="center", fontweight="bold",
                  color=style.OUTPUT if position else style.INPUT)  # fmt: skip
    limit = 1.45 * length
    axes.set(aspect="equal", xlim=(-limit, limit), ylim=(-limit, limit))
    axes.set(title=f"Step {step:.3g} radians ({math.degrees(step):.0f}°): the length stays")
    axes.set(xlabel="feature 1", ylabel="feature 2")


def score_map(axes: Axes, scores: Tensor) -> None:
    """Scores [M, N] of a query at position m (row) with a key at n (column), written in as whole numbers."""
    limit = scores.abs().max().item()
    image = axes.imshow(scores, cmap="PuOr", vmin=-limit, vmax=limit)
    for (row, column), value in zip(
        torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist(),
        scores.flatten().tolist(),
        strict=True,
    ):
        dark = abs(value) > 0.65 * limit
        axes.text(column, row, style.number(value, ".0f"), ha="center", va="center", fontsize=12,
                  color="white" if dark else "black")  # fmt: skip
    axes.figure.colorbar(image, ax=axes, label="score", shrink=0.8)
    axes.set(title="Equal along every diagonal", xlabel="position n of the key")
    axes.set_ylabel("position m of the query")
    axes.set(xticks=range(scores.shape[1]), yticks=range(scores.shape[0]))
    axes.grid(visible=False)


def clocks(figure: Figure) -> None:
    """A row of clock faces for each pair, a column for each position; the hand has turned position · θ."""
    positions = (0, 1, 2, 10, 100, 1000)
    faces = figure.subplots(4, len(positions))
    for pair, (row, theta) in enumerate(zip(faces, inv_freq(8).tolist(), strict=True)):
        for axes, position in zip(row, positions, strict=True):
            angle = position * theta
            face(axes)
            way = min(math.degrees(angle), 360)
            axes.add_patch(Wedge((0, 0), 1, 0, way, facecolor=style.POSITION, alpha=0.15, linewidth=0))
            axes.plot([0, 1], [0, 0], color="#BBBBBB", linewidth=1.2)
            _arrow(axes, math.cos(angle), math.sin(angle), style.POSITION)
            axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
            if pair == 0:
                axes.set_title(f"{position}", loc="center", fontweight="normal")
        label = f"pair {pair}\nθ = {theta:.1g}"
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=6)
    style.headline(figure, "Fast hands tell neighbours apart, slow hands tell far from near")
    figure.supxlabel("position of the token (above each column): each hand has turned position × θ radians",
                     fontsize=11)  # fmt: skip


def layouts(axes: Axes, head_dim: int = 8) -> None:
    """Which features form a pair: half-split above, interleaved below."""
    half = head_dim // 2
    rows = (
        (1.45, "half-split\n(Hugging Face)", [(i, i + half) for i in range(half)]),
        (0.0, "interleaved\n(Meta, the paper)", [(2 * i, 2 * i + 1) for i in range(half)]),
    )
    for bottom, name, pairs in rows:
        for number, pair in enumerate(pairs):
            color = _SERIES[number % len(_SERIES)]
            for feature in pair:
                box = Rectangle((feature, bottom), 0.9, 0.55, facecolor=color, alpha=0.25, edgecolor=color)
                axes.add_patch(box)
                axes.text(feature + 0.45, bottom + 0.27, f"{feature}", ha="center", va="center")
            start, end = (feature + 0.45 for feature in pair)
            bend = FancyArrowPatch((start, bottom + 0.6), (end, bottom + 0.6), arrowstyle="-", color=color,
                                   connectionstyle=f"arc3,rad={-0.16 if end - start > 1 else -0.5}",
                                   linewidth=2, shrinkA=0, shrinkB=0)  # fmt: skip
            axes.add_patch(bend)
        axes.text(-0.3, bottom + 0.27, name, ha="right", va="center")
    axes.set(xlim=(-2.9, head_dim), ylim=(-0.1, 2.65), aspect="equal", xticks=[], yticks=[])
    axes.set(title=f"Which features form a pair: two conventions (d = {head_dim})")
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)


def pair_waves(
    axes: Axes,
    pairs: tuple[int, ...] = (0, 4, 8, 12),
    head_dim: int = 32,
    base: float = 10000.0,
    longest: int = 128,
) -> None:
    """What single pairs add to the score, cos(distance · θ), for distances 0 … longest."""
    frequencies = inv_freq(head_dim, base)
    distance = torch.linspace(0, longest, 1200)
    for row, pair in enumerate(pairs):
        color = _SERIES[row % len(_SERIES)]
        wave = (distance * frequencies[pair]).cos() - 2.6 * row
        axes.plot(distance, wave, color=color)
        turns = longest * frequencies[pair].item() / (2 * math.pi)
        style.label_line(axes, 1.015 * longest, wave[-1].item(), f"pair {pair}: {turns:.2g} turns", color,
                         va="center")  # fmt: skip
    centers = [-2.6 * row for row in range(len(pairs))]
    axes.set_yticks([center + side for center in centers for side in (1, -1)], ["1", "−1"] * len(pairs))
    axes.set(title=f"Fast pairs repeat, slow pairs hardly move (d = {head_dim}, base {base:g})")
    axes.set(xlabel="distance between query and key, in tokens", ylabel="added to the score")
    axes.set(xlim=(0, longest), ylim=(centers[-1] - 1.25, 1.25))


def frequency_ratios(axes: Axes, ratios: dict[str, Tensor]) -> None:
    """Frequency after a rule as a share of the plain one, by pair: {rule: [d/2]}."""
    markers = ("o", "s", "^", "D")
    for number, (rule, ratio) in enumerate(ratios.items()):
        color = _SERIES[number % len(_SERIES)]
        axes.plot(ratio, color=color, marker=markers[number % len(markers)], markersize=4, linewidth=1.6)
        spot = len(ratio) // 4
        style.label_line(axes, spot, ratio[spot].item() + 0.04, rule, color)
    axes.set(title="Linear slows all pairs alike, the others the slow ones most", ylim=(0, 1.15))
    axes.set(xlabel="pair (0 is the fastest)", ylabel="θ by the rule / plain θ")


def extrapolation(axes: Axes, scores: Tensor, target: Tensor, trained: int, stretch: int = 1) -> None:
    """Scores and target over the distance [S]; green: distances whose angles were trained."""
    seen = min(trained * stretch, len(scores))
    axes.axvspan(0, seen, color=style.POSITION, alpha=0.1, linewidth=0)
    axes.plot(scores, color=style.OUTPUT)
    axes.plot(target, color=style.REFERENCE, linestyle="--", linewidth=1.4)
    low, high = min(-4.0, scores.min().item()), max(3.2, scores.max().item() + 1)
    note = "trained" if stretch == 1 else "all angles trained"
    style.label_line(axes, seen / 2, high - 0.25, note, style.POSITION, ha="center", va="top")
    if stretch == 1:
        lost = (scores - target).abs().argmax().item()
        style.label_line(axes, lost + 25, scores[lost].item(), "score", style.OUTPUT, va="center")
        axes.text(scores[seen:].argmax().item() + seen, -0.15, "target", ha="center", va="top")
        axes.set(title=f"Past distance {trained} the score is lost", ylabel="score")
    else:
        apart = len(scores) // 8
        style.label_line(axes, apart, scores[apart].item() + 0.15, "score", style.OUTPUT)
        axes.text(apart, -0.15, "target", ha="center", va="top")
        axes.set(title=f"Divided by {stretch}: calm, and another target")
    axes.set(xlabel="distance, in tokens", xlim=(0, len(scores)), ylim=(low, high))


def turns_and_scores(figure: Figure) -> None:
    """The query [2, 1] turned a quarter per position; its scores with the key [1, 1] turned likewise."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    query, key, step = torch.tensor([2.0, 1.0]), torch.tensor([1.0, 1.0]), math.pi / 2
    turned_vectors(left, query, step)
    left.set(title="Query at positions 0 to 3", xticks=range(-2, 3), yticks=range(-2, 3))
    cos, sin = cos_sin(torch.arange(5), torch.tensor([step]))  # [S, d=2]
    queries, keys = apply_rope(query.expand(1, 1, 5, 2), key.expand(1, 1, 5, 2), cos, sin)
    score_map(right, queries[0, 0] @ keys[0, 0].T)


def two_layouts(figure: Figure) -> None:
    """`layouts` of a head with 8 features on a figure of its own."""
    figure.set_figheight(2.2)
    layouts(figure.subplots())


def past_the_trained_length(figure: Figure) -> None:
    """A key fitted to exp(-distance / 16) below distance 128, read up to 512; and positions divided by 4."""
    figure.set_figheight(2.2)
    left, right = figure.subplots(1, 2, sharey=True)
    distance, trained = torch.arange(512.0, dtype=torch.float64), 128
    target = torch.exp(-distance / 16)

    def queries(positions: Tensor) -> Tensor:
        """[1, …, 1, 0, …, 0] turned to `positions` [S]: [S, d=32]."""
        angles = positions[:, None] * inv_freq(32).double()
        return torch.cat((angles.cos(), angles.sin()), dim=-1)

    table = queries(distance[:trained])
    penalty = 1e-4 * torch.eye(32, dtype=torch.float64)
    key = torch.linalg.solve(table.T @ table + penalty, table.T @ target[:trained])
    extrapolation(left, queries(distance) @ key, target, trained)
    extrapolation(right, queries(distance / 4) @ key, target, trained, stretch=4)
    left.set_title("Past distance 128 the score is lost")
    right.set_title("Divided by 4: another target")


IMAGES = {
    "06_rope_2d_to_nd": clocks,
    "06_past_the_trained_length": past_the_trained_length,
    "06_turns_and_scores": turns_and_scores,
    "06_two_layouts": two_layouts,
}
