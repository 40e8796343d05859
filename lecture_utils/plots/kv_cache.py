"""Lesson 08: what a step computes and what it reads, and what a cache weighs."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from lecture_utils.llama import PRESETS, KVCache, LlamaConfig, causal_mask, kv_cache_bytes

from . import style

GIB = 2**30
READ, READ_PALE = style.POSITION, "#A9DCCB"  # green: keys
NOTHING, FIRST, AGAIN, FROM_CACHE = range(4)
WORK = ListedColormap(["white", style.OUTPUT, "#C4C4C4", READ_PALE])
SMALLEST = LlamaConfig(hidden_size=2, num_hidden_layers=1, num_attention_heads=1)


def fed(prompt: int, steps: int) -> list[tuple[int, int]]:
    """For each step: tokens that are in the cache before it, and tokens that are fed."""
    cache, counts = KVCache(SMALLEST, 1, prompt + steps), []
    for new in [prompt] + [1] * (steps - 1):
        counts.append((cache.length, new))
        cache.advance(new)
    return counts


def work_grid(prompt: int, steps: int, cached: bool, columns: int, rows: int) -> np.ndarray:
    """What becomes of each token (column) in each step (row), as codes of `WORK`; [rows, columns]."""
    grid = np.full((rows, columns), NOTHING)
    for row, (old, new) in enumerate(fed(prompt, steps)):
        grid[row, :old] = FROM_CACHE if cached else AGAIN
        grid[row, old : old + new] = FIRST
    return grid


def work(axes: Axes, grid: np.ndarray) -> AxesImage:
    """Steps downwards, tokens to the right; returns the image, which can be moved."""
    rows = len(grid)
    image = axes.imshow(grid, cmap=WORK, vmin=0, vmax=3, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.set_yticks(range(1, rows, 2), range(2, rows + 1, 2))
    axes.set(xlabel="token (position)", ylabel="step")
    return image


def grid_lines(axes: Axes, columns: int, rows: int) -> Line2D:
    """White lines between the cells, above an image: one line, lifted at not-a-number."""
    gap = float("nan")
    down, across = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    x = [part for at in down for part in (at, at, gap)] + [-0.5, columns - 0.5, gap] * (rows + 1)
    y = [-0.5, rows - 0.5, gap] * (columns + 1) + [part for at in across for part in (at, at, gap)]
    (line,) = axes.plot(x, y, color="white", linewidth=1.2)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    return line


def time_ratios(axes: Axes, lengths: Sequence[int], ratios: Sequence[float]) -> None:
    """How many times as long decoding takes without a cache, by number of new tokens."""
    axes.axhline(1, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    axes.plot(lengths, ratios, "o-", color=style.OUTPUT)
    for n, ratio in zip(lengths, ratios, strict=True):
        axes.annotate(f"{ratio:.1f}", (n, ratio), xytext=(0, 8), textcoords="offset points", ha="center",
                      color=style.OUTPUT, fontweight="bold")  # fmt: skip
    axes.text(
        lengths[-1], 1, "as long as with a cache ", ha="right", va="top", color=style.REFERENCE, fontsize=10
    )
    axes.set(xscale="log", ylim=(0, 1.25 * max(ratios)), title="The longer the text, the more a cache saves")
    axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
    axes.minorticks_off()
    axes.set(xlabel="new tokens (log scale)", ylabel="time without a cache / with one")


def spreading(axes: Axes, shares: dict[str, float]) -> None:
    """Share of numbers that differ between cached and whole, at places of a model in order."""
    names = list(shares)
    axes.barh(range(len(names)), list(shares.values()), color=style.OUTPUT, height=0.6)
    for row, share in enumerate(shares.values()):
        axes.text(share + 0.01, row, f"{share:.0%}", va="center", color=style.OUTPUT, fontweight="bold")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 1.08), ylim=(len(names) - 0.4, -0.6))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    axes.set(xlabel="bf16 numbers that differ, cached against read at once")
    axes.set_title("A few other roundings spread from layer to layer")
    axes.grid(axis="y", visible=False)


def cache_bars(axes: Axes, names: Sequence[str], tokens: int) -> None:
    """GiB of cache of one text of so many tokens, in bf16."""
    for row, name in enumerate(names):
        config = PRESETS[name]
        heads = config.num_key_value_heads
        size = kv_cache_bytes(config.num_hidden_layers, heads, config.head_dim, 1, tokens, 2) / GIB
        axes.barh(row, size, color=READ, height=0.6)
        axes.text(size + 0.05, row, f"{size:.2f}", va="center", color=READ, fontweight="bold")
    axes.set_yticks(range(len(names)), [f"{name}\nK = {PRESETS[name].num_key_value_heads}" for name in names])
    axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 4.1))
    axes.set_xlabel(f"GiB, {tokens:,} tokens, bf16")
    axes.grid(axis="y", visible=False)


def _cover(figure: Figure) -> None:
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for axes, cached in ((left, False), (middle, True)):
        work(axes, work_grid(3, 9, cached, 11, 9))
        grid_lines(axes, 11, 9)
        axes.set_xticks(range(0, 11, 5))
    left.set_title("No cache: all again")
    left.text(10.3, 0.2, "computed\nagain", color=style.MUTED, fontweight="bold", ha="right", va="center")
    middle.set_title("Cache: one a step")
    middle.set(ylabel="", yticks=[])
    middle.text(10.3, 0, "computed", color=style.OUTPUT, fontweight="bold", ha="right", va="center")
    middle.text(10.3, 1, "read", color=READ, fontweight="bold", ha="right", va="center")
    cache_bars(right, ["Llama-2-7B", "Llama-2-13B", "Llama-3-8B", "Llama-3-70B", "Llama-3.1-405B"], 4096)
    right.set_title("What a cache weighs")


def cut_mask(axes: Axes, left: float, old: int, new: int) -> None:
    """Who may look at whom when `new` tokens come to `old` in a cache: a square for each query and key."""
    allowed = causal_mask(new, old + new, torch.bool).tolist()
    for query, row in enumerate(allowed):
        for key, may in enumerate(row):
            color = "white" if not may else READ_PALE if key < old else style.OUTPUT
            edge = "#C4C4C4" if not may else "white"
            corner = (left + key + 0.04, old + query + 0.04)
            axes.add_patch(Rectangle(corner, 0.92, 0.92, facecolor=color, edgecolor=edge))


def _pieces(figure: Figure) -> None:
    figure.set_size_inches(7.5, 2.4)
    axes = figure.subplots()
    words = {"ha": "center", "va": "center", "linespacing": 1.35, "fontsize": 11}
    cut_mask(axes, 0, 0, 7)
    axes.text(3.5, -0.9, "7 tokens at once", fontweight="bold", **words)
    for left, old, new, at, said in (
        (9, 0, 4, (11, 5.5), "call 1: 4 tokens,\nan empty cache"),
        (14.5, 4, 2, (17.5, 2.5), "call 2: 2 tokens,\n4 in the cache"),
        (22.5, 6, 1, (26, 4.5), "call 3: 1 token,\n6 in the cache"),
    ):
        cut_mask(axes, left, old, new)
        axes.text(*at, said, **words)
    axes.text(19.25, -0.9, "the same 7, in three calls", fontweight="bold", **words)
    axes.text(-0.5, 3.5, "who looks", rotation=90, color=style.MUTED, **words)
    for x, said, color, weight in (
        (3.5, "who is looked at", style.MUTED, "normal"),
        (11, "made in this call", style.OUTPUT, "bold"),
        (18.6, "read from the cache", READ, "bold"),
        (26, "not allowed", style.MUTED, "bold"),
    ):
        axes.text(x, 7.9, said, color=color, fontweight=weight, ha="center", va="baseline", fontsize=11)
    axes.set(xlim=(-1.2, 29.8), ylim=(8.3, -1.7), aspect="equal")
    axes.axis("off")


IMAGES = {"08_kv_cache": _cover, "08_pieces": _pieces}
