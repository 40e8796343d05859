"""Lesson 11: the way from ids to the bars of the next token, and how many of the bars may be chosen."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lecture_utils import tiny
from lecture_utils.llama import next_token_probabilities

from . import style

VISIBLE = {" ": "␣", "\n": "↵"}
PROMPT = "A list of "


def shown(character: str) -> str:
    """A character as it is drawn: space and new line are seen."""
    return VISIBLE.get(character, character)


def way(axes: Axes, layers: int, sizes: dict[str, str]) -> None:
    """From ids to logits, upwards: `sizes` says what stands beside ids, hidden_states, logits."""
    axes.set(xlim=(0, 10), ylim=(0, 10.4))
    axes.set_axis_off()
    parts = [
        (1.35, "embed_tokens", style.WEIGHT),
        (3.65, f"{layers} × layer", style.OUTPUT),
        (5.95, "norm", style.OUTPUT),
        (8.25, "lm_head", style.WEIGHT),
    ]
    for y, name, color in parts:
        for lift in (0.3, 0.15) if "×" in name else ():
            axes.add_patch(_box(2.0 + lift, y + lift, color, alpha=0.35))
        axes.add_patch(_box(2.0, y, color))
        axes.text(4.45, y + 0.48, name, ha="center", va="center", color="white", fontweight="bold")
    for low, high in ((0.55, 1.35), (2.3, 3.65), (4.9, 5.95), (6.9, 8.25), (9.2, 9.95)):
        arrow = {"arrowstyle": "-|>", "color": style.INPUT, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (4.45, high), (4.45, low), arrowprops=arrow)
    axes.text(4.45, 0.0, sizes["ids"], ha="center", color=style.INPUT, fontweight="bold")
    axes.text(4.9, 2.95, sizes["hidden_states"], va="center", color=style.INPUT)
    axes.text(4.9, 9.62, sizes["logits"], va="center", color=style.INPUT)
    axes.plot(
        [2.0, 0.9, 0.9, 2.0], [1.83, 1.83, 8.73, 8.73], color=style.WEIGHT, linestyle="--", linewidth=1.6
    )
    axes.text(0.62, 5.28, "tied: one tensor", rotation=90, ha="center", va="center", color=style.MUTED)


def _box(x: float, y: float, color: str, alpha: float = 1.0) -> FancyBboxPatch:
    return FancyBboxPatch((x, y), 4.9, 0.95, "round,pad=0,rounding_size=0.25",
                          facecolor=color, edgecolor="white", alpha=alpha)  # fmt: skip


def next_bars(axes: Axes, characters: Sequence[str], probabilities: Sequence[float], best: int = 8) -> None:
    """The likeliest characters, the first on top: `probabilities` [V] of all `characters`."""
    probabilities = np.asarray(probabilities)
    order = np.argsort(-probabilities, kind="stable")[:best]
    axes.barh(range(len(order)), probabilities[order], color=style.OUTPUT, height=0.72)
    for row, i in enumerate(order):
        text = f"{probabilities[i]:.1%}" if probabilities[i] >= 0.001 else "under 0.1%"
        axes.text(probabilities[i] + 0.012, row, text, va="center", color=style.OUTPUT)
    axes.set_yticks(range(len(order)), [shown(characters[i]) for i in order])
    axes.set(ylim=(best - 0.4, -0.6), xlim=(0, 1.18 * probabilities.max() + 0.08), xlabel="probability")
    axes.grid(axis="y", visible=False)


def temperatures(axes: Sequence[Axes], rows: dict[str, Sequence[float]], labels: Sequence[str]) -> None:
    """The same few ids at several temperatures, a panel each: {title: probabilities}."""
    for panel, (title, probabilities) in zip(axes, rows.items(), strict=True):
        panel.bar(range(len(labels)), probabilities, color=style.OUTPUT, width=0.66)
        for x, value in enumerate(probabilities):
            panel.text(x, value + 0.02, f"{value:.2f}", ha="center", color=style.OUTPUT)
        panel.set(ylim=(0, 1.12), title=title, xlabel="id")
        panel.set_xticks(range(len(labels)), labels)
        panel.grid(axis="x", visible=False)
    axes[0].set_ylabel("probability")


def cuts(axes: Sequence[Axes], panels: dict[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """What a cut leaves of a few ids, a panel each: {title: (probabilities before it, after it)}."""
    for panel, (title, (before, after)) in zip(axes, panels.items(), strict=True):
        places = range(len(before))
        panel.bar(places, before, color=style.WRONG, alpha=0.55, width=0.84)
        panel.bar(places, after, color=style.OUTPUT, width=0.5)
        for x, now in enumerate(after):
            text, color = (f"{100 * now:.0f}", style.OUTPUT) if now > 0 else ("0", style.MUTED)
            panel.text(x, max(now, before[x]) + 0.03, text, ha="center", color=color, fontsize=11)
        panel.set(xlim=(-0.6, len(before) - 0.4), ylim=(0, 0.92), title=title, xlabel="id", yticks=[])
        panel.set_xticks(places, [f"{x}" for x in places])
        panel.tick_params(axis="x", length=0)
        panel.grid(visible=False)
    axes[0].set_ylabel("probability, %")


def kept_along(axes: Axes, text: str, counts: Sequence[int]) -> None:
    """How many characters were kept where each character of `text` was to be chosen: `counts` [S]."""
    counts = np.asarray(counts)
    starts = np.array([i > 0 and text[i - 1] == " " for i in range(len(text))])
    colors = np.where(starts, style.OUTPUT, style.INPUT)
    axes.bar(range(len(text)), counts, color=colors, width=0.72)
    axes.set_xticks(range(len(text)), [shown(character) for character in text])
    axes.tick_params(axis="x", length=0)
    axes.set(xlim=(-0.8, len(text) - 0.2), ylim=(0, 1.12 * counts.max()), ylabel="characters kept")
    axes.set_yticks(range(0, int(counts.max()) + 2, 5))
    axes.set_xlabel("the character that came")
    axes.set_title("Top p keeps many where a word begins, few inside it")
    axes.grid(axis="x", visible=False)
    high = {"transform": axes.transAxes, "va": "top", "ha": "right"}
    style.label_line(axes, 0.995, 0.99, "first of a word", style.OUTPUT, **high)
    style.label_line(axes, 0.995, 0.88, "any other", style.INPUT, **high)


def tied_shares(axes: Axes, shares: dict[str, float], tied: Sequence[str]) -> None:
    """The embedding as a share of all parameters with an untied head, by preset; `tied` do share it."""
    for row, (name, share) in enumerate(shares.items()):
        color = style.WEIGHT if name in tied else style.WRONG
        axes.barh(row, 100 * share, color=color, height=0.68)
        axes.text(100 * share + 0.4, row, f"{share:.1%}", va="center", color=style.MUTED)
    axes.set_yticks(range(len(shares)), list(shares))
    axes.set(ylim=(len(shares) - 0.4, -0.6), xlim=(0, 1.15 * 100 * max(shares.values())))
    axes.set_xlabel("parameters saved by tying (% of the untied model)")
    axes.set_title("Small models save much by a tied head, large ones little")
    axes.grid(axis="y", visible=False)
    low = {"transform": axes.transAxes, "ha": "right"}
    style.label_line(axes, 0.98, 0.18, "tied", style.WEIGHT, **low)
    style.label_line(axes, 0.98, 0.08, "not tied: would save", style.MUTED, **low)


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    model = tiny.model()
    logits = model(tiny.encode(PROMPT))[0, -1].detach()
    config = model.config
    way(left, config.num_hidden_layers, {
        "ids": f"ids [1, {len(PROMPT)}]",
        "hidden_states": f"[1, {len(PROMPT)}, {config.hidden_size}]",
        "logits": f"logits [1, {len(PROMPT)}, {config.vocab_size}]",
    })  # fmt: skip
    left.set_title("Ids in, logits out")
    next_bars(right, tiny.CHARACTERS, next_token_probabilities(logits).numpy(), best=7)
    right.set_title(f"“{PROMPT}” goes on with …")
    right.set_ylabel("next character")


def _cut_off(figure: Figure) -> None:
    figure.set_size_inches(7.5, 1.85)
    scores = torch.tensor([3.0, 2.0, 1.0, 0.0])
    panels = {}
    for title, temperature, k, p in (
        ("no cut", 1.0, None, None),
        ("top k 2", 1.0, 2, None),
        ("top p 0.9", 1.0, None, 0.9),
        ("same, temp. 2", 2.0, None, 0.9),
    ):
        before = next_token_probabilities(scores, temperature)
        panels[title] = before.tolist(), next_token_probabilities(scores, temperature, k, p).tolist()
    cuts(figure.subplots(1, 4, sharey=True), panels)


def _kept_along(figure: Figure) -> None:
    figure.set_size_inches(7.5, 2.55)
    axes = figure.subplots()
    sentence = "A list holds objects of any type, and a name is bound to it.\n"
    with torch.inference_mode():
        logits = tiny.model()(tiny.encode(sentence))[0, :-1]
    kept = (next_token_probabilities(logits, top_p=0.9) > 0).sum(-1)
    kept_along(axes, sentence[1:], kept.tolist())
    axes.set_title("")
    for label in axes.get_xticklabels():
        label.set_family("DejaVu Sans Mono")


IMAGES = {
    "11_whole_llama": _cover,
    "11_cut_off": _cut_off,
    "11_kept_along": _kept_along,
}
