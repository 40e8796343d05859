"""Lesson 07: who looks at whom, why scores are divided by √d, and heads that share keys and values."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from lecture_utils.llama import PRESETS, attention, causal_mask

from . import style

QUERY, KEY = style.INPUT, style.POSITION
HIDDEN = "#E4E4E4"  # what the mask hides
SHADES = LinearSegmentedColormap.from_list("weights", ["#FFFFFF", style.INPUT]).with_extremes(bad=HIDDEN)

WORDS = ("my", "hungry", "cat", "chased", "the", "grey", "mouse")


def sentence() -> tuple[Tensor, Tensor]:
    """Queries and keys of four heads for `WORDS`, made by hand: both [1, N=4, S=7, d=16].

    Head 0 looks for nouns, head 1 for adjectives, head 2 for the token before, head 3 for the first one.
    Each has labels of its own in features of its own. What is asked for and found scores 16.
    """
    nouns, adjectives, first, places = 0, 1, 2, 3  # features; the last one is where 7 of them begin
    q, k = torch.zeros(2, 4, len(WORDS), 16)
    for word in ("hungry", "chased", "grey"):  # whose? who?
        q[0, WORDS.index(word), nouns] = 4
    for word in ("cat", "mouse"):  # of what kind?
        q[1, WORDS.index(word), adjectives] = 4
        k[0, WORDS.index(word), nouns] = 4
    for word in ("hungry", "grey"):
        k[1, WORDS.index(word), adjectives] = 4
    for i in range(len(WORDS)):
        q[2, i, places + max(i - 1, 0)] = 4
        k[2, i, places + i] = 4
    q[3, :, first] = 4
    k[3, 0, first] = 4
    return q[None], k[None]


def weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """What each query takes from each key, [1, N, S, T]: `attention` with values that name the key.

    T ≤ d: value t is 1 in feature t and 0 elsewhere.
    """
    names = torch.eye(k.shape[-2], k.shape[-1]).expand(*k.shape[:2], -1, -1)
    return attention(q, k, names, mask)[..., : k.shape[-2]]


def attention_map(axes: Axes, seen: Tensor, words: Sequence[str], numbers: bool = True) -> AxesImage:
    """Weights [S, T] of a query (row) for a key (column); not-a-number is what the mask hides."""
    image = axes.imshow(seen.numpy(), cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    if numbers:
        for row, column in torch.cartesian_prod(*map(torch.arange, seen.shape)).tolist():
            value = seen[row, column].item()
            if value == value:  # not hidden
                axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=11,
                          color="white" if value > 0.55 else "black")  # fmt: skip
    axes.set_yticks(range(len(words)), words)
    axes.set_xticks(range(len(words)), words, rotation=90)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return image


def sharing(axes: Axes, query_heads: int, key_heads: int) -> None:
    """Lines from query heads (above) to the key/value head that each reads (below)."""
    share = query_heads // key_heads
    for head in range(query_heads):
        read = (head // share + 0.5) * share - 0.5
        axes.plot([head, read], [1, 0], color=style.MUTED, linewidth=1.3, zorder=1)
    axes.plot(range(query_heads), [1] * query_heads, "s", color=QUERY, markersize=9)
    middles = [(head + 0.5) * share - 0.5 for head in range(key_heads)]
    axes.plot(middles, [0] * key_heads, "s", color=KEY, markersize=9)
    axes.set(xlim=(-0.6, query_heads - 0.4), ylim=(-0.35, 1.35), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def root_of_d(left: Axes, right: Axes) -> None:
    """Dot products of random queries and keys: their spread by d, and what it does to the softmax."""
    generator = torch.Generator().manual_seed(0)
    sizes = [2**i for i in range(1, 10)]
    spreads, raw, divided = [], [], []
    for d in sizes:
        q, k = (torch.randn(1000, n, d, generator=generator) for n in (1, 16))
        scores = (q @ k.mT).squeeze(1)  # [1000, 16]
        spreads.append(scores.std().item())
        raw.append(scores.softmax(-1).amax(-1).mean().item())
        divided.append((scores / d**0.5).softmax(-1).amax(-1).mean().item())
    left.plot(sizes, [d**0.5 for d in sizes], color=style.REFERENCE, linestyle="--", linewidth=1.2)
    left.plot(sizes, spreads, "o", color=style.WRONG)
    left.plot(sizes, [spread / d**0.5 for spread, d in zip(spreads, sizes, strict=True)], color=style.OUTPUT)
    style.label_line(left, 3, 9, "q · k", style.MUTED)
    left.text(60, 3.6, "dashed: √d", color=style.REFERENCE)
    style.label_line(left, 540, 1.15, "q · k / √d", style.OUTPUT, ha="right")
    left.set(xscale="log", yscale="log", xlabel="head size d (log scale)", ylabel="standard deviation")
    left.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    left.set(ylim=(0.8, 30), title="Dot products grow with √d")
    right.plot(sizes, raw, color=style.WRONG, linestyle=":")
    right.plot(sizes, divided, color=style.OUTPUT)
    right.axhline(1 / 16, color=style.MUTED, linewidth=1)
    style.label_line(right, 540, 0.72, "softmax of q · k", style.MUTED, ha="right")
    style.label_line(right, 540, 0.33, "of q · k / √d", style.OUTPUT, ha="right")
    right.text(2, 0.08, "all 16 alike: 1/16", color=style.MUTED)
    right.set(xscale="log", ylim=(0, 1.05), xlabel="head size d (log scale)")
    right.set(ylabel="largest of 16 weights (mean)", title="Undivided, one key takes all")
    for axes in (left, right):
        axes.set_xticks([2, 8, 32, 128, 512], ["2", "8", "32", "128", "512"])
        axes.minorticks_off()


def eager_and_fused(left: Axes, right: Axes, lengths: list[int], measured: dict[str, dict]) -> None:
    """{"eager": {"memory": [MB, …], "time": [s, …]}, "fused": …}, one number for each length."""
    eager, fused = measured["eager"], measured["fused"]
    ratios = [slow / fast for slow, fast in zip(eager["time"], fused["time"], strict=True)]
    for axes, lines in (
        (left, (("eager", style.MUTED, eager["memory"]), ("fused", style.OUTPUT, fused["memory"]))),
        (right, (("eager", style.MUTED, ratios), ("fused", style.OUTPUT, [1] * len(lengths)))),
    ):
        for name, color, values in lines:
            axes.plot(lengths, values, "o-", color=color)
            axes.annotate(name, (lengths[-1], values[-1]), (7, 0), textcoords="offset points", va="center",
                          color=color, fontweight="bold", annotation_clip=False)  # fmt: skip
        axes.set(xscale="log", xlim=(lengths[0] * 0.8, lengths[-1] * 2.3), xlabel="tokens S (log scale)")
        axes.set_xticks(lengths, [f"{S:,}" for S in lengths])
    left.set(yscale="log", title="Memory: S² against S", ylabel="largest tensor (MB, log scale)")
    right.set(
        title="Time, eager against fused", ylabel="times as long as fused", ylim=(0, 1.15 * max(*ratios, 2))
    )
    for axes in (left, right):
        axes.minorticks_off()


def cache_shares(axes: Axes, shares: dict[str, float]) -> None:
    """How much smaller the cache is than with K = N, in percent, by the label of a group of models."""
    rows = list(shares)
    axes.axvspan(50, 70, color="#EEEEEE", zorder=0)
    axes.text(60, len(rows) - 0.42, "“50–70%”", color=style.MUTED, ha="center", va="center", fontsize=11)
    for row, name in enumerate(rows):
        axes.plot([0, shares[name]], [row, row], color=KEY, linewidth=5, solid_capstyle="butt")
        axes.text(shares[name] + 1.5, row, f"{shares[name]:.4g}%", color=KEY, va="center", fontweight="bold")
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlim=(0, 115), ylim=(len(rows) - 0.1, -0.6), xticks=range(0, 101, 25))
    axes.set(title="The saving is 1 − K/N: the model decides", xlabel="KV cache smaller than with K = N (%)")
    axes.grid(axis="y", visible=False)


def preset_shares() -> dict[str, float]:
    """The saving of every preset in percent, those with the same N and K as one row, least first."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, config in PRESETS.items():
        heads = config.num_attention_heads, config.num_key_value_heads
        groups.setdefault((1, 1) if heads[0] == heads[1] else heads, []).append(name)
    shares = {}
    for (n, k), names in sorted(groups.items(), key=lambda group: -group[0][1] / group[0][0]):
        shares[f"{short(names)}\n{'K = N' if n == k else f'N {n}, K {k}'}"] = 100 * (1 - k / n)
    return shares


def short(names: list[str]) -> str:
    """Llama-2 7B, 13B for Llama-2-7B and Llama-2-13B."""
    families: dict[str, list[str]] = {}
    for name in names:
        family, _, size = name.rpartition("-")
        families.setdefault(family, []).append(size)
    return " · ".join(f"{family} {', '.join(sizes)}" for family, sizes in families.items())


def _cover(figure: Figure) -> None:
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    q, k = sentence()
    mask = causal_mask(len(WORDS), len(WORDS), torch.bool)
    seen = weights(q, k, mask)[0, 1].masked_fill(~mask, torch.nan)
    axes = left.subplots()
    attention_map(axes, seen, WORDS)
    axes.set(title="Who looks at whom, never ahead", ylabel="this token looks …")
    axes.set_xlabel("… at this one (weights in %)")
    panels = right.subplots(3, 1)
    for panel, (name, heads) in zip(panels, (("MHA", 8), ("GQA", 2), ("MQA", 1)), strict=True):
        sharing(panel, 8, heads)
        panel.set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold")
    panels[0].set_title("Query heads share keys")
    panels[0].text(7.7, 1, "query\nheads", color=QUERY, fontweight="bold", va="center", fontsize=11)
    panels[0].text(7.7, 0, "key/value\nheads", color=KEY, fontweight="bold", va="center", fontsize=11)


def _root_of_d(figure: Figure) -> None:
    root_of_d(*figure.subplots(1, 2))


def _cache_shares(figure: Figure) -> None:
    cache_shares(figure.subplots(), preset_shares())


def _two_masks(figure: Figure) -> None:
    """The three tokens of the notebook, without a mask and with it."""
    q = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 0.0]])[None, None]
    k = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0]])[None, None]
    allowed = causal_mask(3, 3, torch.bool)
    # Values of 2 features cannot name 3 keys, so the weights are computed in the open.
    scores = (q @ k.mT)[0, 0] / 2**0.5
    figure.set_figheight(2.0)
    left, right = figure.subplots(1, 2)
    for axes, mask, title in (
        (left, torch.ones_like(allowed), "No mask: all see all"),
        (right, allowed, "Nobody looks ahead"),
    ):
        seen = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        attention_map(axes, seen.masked_fill(~mask, torch.nan), ("not", "like", "films"))
        axes.tick_params(axis="x", rotation=0)
        axes.set(title=title, xlabel="looked at (weights in %)", aspect="auto")
    left.set_ylabel("who looks")


IMAGES = {
    "07_attention_and_gqa": _cover,
    "07_cache_shares": _cache_shares,
    "07_root_of_d": _root_of_d,
    "07_two_masks": _two_masks,
}
