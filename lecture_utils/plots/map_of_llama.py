"""Lesson 00: the map of a Llama, where its parameters live, who sees whom, and what a token costs."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from lecture_utils.llama import PRESETS, Llama, LlamaConfig, flops_per_token

from . import style

# One colour for each part, in every picture of this lesson.
COLORS = {
    "embedding": style.INPUT,
    "attention": style.POSITION,
    "feed_forward": style.GATE,
    "norms": style.WEIGHT,
    "lm_head": style.OUTPUT,
}
NAMES = {"feed_forward": "feed-forward", "lm_head": "head"}


def short(number: float) -> str:
    """A large number as it is said: 135M, 1.24B, 406B, 3.2T."""
    for letter, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if number >= 0.9995 * size:
            return f"{number / size:#.3g}".rstrip(".") + letter
    return f"{number:g}"


def _box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str, color: str, bold: int = 1
) -> None:
    """A box with its lower left corner at (x, y); the first `bold` lines of its text are the name."""
    look = {"boxstyle": "round,pad=0,rounding_size=0.18", "linewidth": 1.6}
    axes.add_patch(FancyBboxPatch((x, y), width, height, facecolor=f"{color}22", edgecolor=color, **look))
    lines = text.split("\n")
    for i, line in enumerate(lines):
        weight = "bold" if i < bold else "normal"
        at = y + height / 2 + 0.44 * ((len(lines) - 1) / 2 - i)
        axes.text(x + width / 2, at, line, ha="center", va="center", fontweight=weight)


def _arrow(axes: Axes, start: tuple, end: tuple, color: str = style.INPUT) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.8,
                                              "shrinkA": 0, "shrinkB": 0})  # fmt: skip


def llama_map(axes: Axes, layers: int = 16) -> None:
    """The stack of a Llama from ids to logits, one layer of it opened, with shapes and lessons."""
    blue = {"color": style.INPUT, "ha": "center", "va": "center", "fontweight": "bold"}
    y, h = 5.5, 1.15
    axes.text(0.65, y + 0.78, "ids", **blue)
    axes.text(0.65, y + 0.36, "[B, S]", **blue)
    places = [
        (1.75, 3.0, "embed_tokens\nlesson 0", COLORS["embedding"]),
        (5.2, 1.75, "layer 0\nlesson 9", style.MUTED),
        (7.85, 1.75, f"layer {layers - 1}\nlesson 9", style.MUTED),
        (10.05, 1.6, "norm\nlesson 2", COLORS["norms"]),
        (12.1, 1.75, "lm_head\nlesson 11", COLORS["lm_head"]),
    ]
    end = 1.3
    for x, width, text, color in places:
        if text.startswith(f"layer {layers - 1}"):
            axes.text((end + x) / 2, y + h / 2, "…", **blue)
        else:
            _arrow(axes, (end, y + h / 2), (x, y + h / 2))
        _box(axes, x, y, width, h, text, color)
        end = x + width
    _arrow(axes, (end, y + h / 2), (end + 0.4, y + h / 2))
    axes.text(14.95, y + 0.78, "logits", **blue)
    axes.text(14.95, y + 0.36, "[B, S, V]", **blue)
    # One layer, opened.
    for x, corner in ((5.2, 0.15), (6.95, 15.55)):
        axes.plot([x, corner], [y, 4.55], color="#BBBBBB", linewidth=1)
    axes.add_patch(Rectangle((0.15, 0.1), 15.4, 4.45, facecolor="none", edgecolor="#BBBBBB"))
    stream, top, bottom = 3.55, 2.35, 0.5
    halves = [
        (0.75, "tokens exchange", [
            (3.1, "input_layernorm\nlesson 2", "norms", 1),
            (2.3, "self_attn\nq, k, v, o\nlessons 6–8", "attention", 1)]),
        (7.8, "each token alone", [
            (3.0, "post_attention_\nlayernorm\nlesson 2", "norms", 2),
            (2.75, "mlp\ngate, up, down\nlessons 3–5", "feed_forward", 1)]),
    ]  # fmt: skip
    start = 0.4
    for leaves, what, boxes in halves:
        x = leaves + 0.4
        axes.plot([leaves, leaves], [stream, (top + bottom) / 2], color=style.INPUT, linewidth=1.8)
        for i, (width, text, part, bold) in enumerate(boxes):
            _arrow(axes, (x - 0.4, (top + bottom) / 2), (x, (top + bottom) / 2))
            _box(axes, x, bottom, width, top - bottom, text, COLORS[part], bold)
            x += width + (0.4 if i == 0 else 0)
        plus = x + 0.45
        axes.plot([x, plus], [(top + bottom) / 2] * 2, color=style.INPUT, linewidth=1.8)
        _arrow(axes, (plus, (top + bottom) / 2), (plus, stream - 0.24))
        axes.plot([start, plus - 0.24], [stream, stream], color=style.INPUT, linewidth=3)
        ring = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": style.INPUT}
        axes.text(plus, stream, "+", fontsize=13, bbox=ring, **blue)
        axes.text((leaves + plus) / 2, (stream + top) / 2, what, ha="center", va="center")
        start = plus + 0.24
    _arrow(axes, (start, stream), (15.3, stream))
    axes.text(0.45, 4.13, "one layer: the residual stream, [B, S, H], and what two halves add to it",
              color=style.INPUT, fontweight="bold", va="center")  # fmt: skip
    axes.set(xlim=(-0.05, 15.75), ylim=(0, 6.8))
    axes.axis("off")


def shares(axes: Axes, configs: dict[str, LlamaConfig], size: int = 10) -> None:
    """Parameters by part as shares of the whole, a bar for each model; percents in letters of `size`."""
    of_feed_forward = []
    for row, config in enumerate(configs.values()):
        left, total = 0.0, config.num_parameters
        for part, count in config.parameter_counts().items():
            share = 100 * count / total
            axes.barh(
                row, share, left=left, color=COLORS[part], height=0.72, edgecolor="white", linewidth=0.8
            )
            if share > 4:
                ink = "#222222" if part == "feed_forward" else "white"
                look = {"ha": "center", "va": "center", "fontsize": size, "fontweight": "bold"}
                axes.text(left + share / 2, row, f"{share:.0f}%", color=ink, **look)
            left += share
            if part == "feed_forward":
                of_feed_forward.append(share)
    for x, part in ((0, "embedding"), (20, "attention"), (53, "feed_forward"), (100, "lm_head")):
        label, side = NAMES.get(part, part), "right" if part == "lm_head" else "left"
        style.label_line(axes, x, -0.5, label, COLORS[part], ha=side, va="bottom")
    totals = [f"{name}:  {short(config.num_parameters)}" for name, config in configs.items()]
    axes.set_yticks(range(len(totals)), totals)
    axes.set(xlim=(0, 100), ylim=(len(configs) - 0.5, -1.15), xlabel="share of parameters (%)")
    low, high = min(of_feed_forward), max(of_feed_forward)
    axes.set_title(f"Feed-forward networks hold {low:.0f}% to {high:.0f}% of every one")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)


def changes(axes: Axes, moved: Tensor, words: list[str], title: str, color: str) -> None:
    """Which predictions move when one word is changed: `moved` [changed word, position], true or false."""
    n = len(words)
    for word in range(n):
        for position in range(n):
            if moved[word, position]:
                axes.plot(position, word, "s", color=color, markersize=11)
            else:
                axes.plot(position, word, ".", color="#CCCCCC", markersize=4)
    axes.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6), aspect="equal", title=title)
    axes.set_xticks(range(n), words, rotation=60)
    axes.set_yticks(range(n), words)
    axes.set(xlabel="scores after this word", ylabel="word that is changed")
    axes.grid(visible=False)


def cost(axes: Axes, configs: dict[str, LlamaConfig], contexts: list[int]) -> None:
    """FLOPs for one token, divided by the parameters, over the context."""
    colors = (style.INPUT, style.POSITION, style.GATE, style.OUTPUT)
    for (name, config), color in zip(configs.items(), colors, strict=False):
        ratios = [sum(flops_per_token(config, c).values()) / config.num_parameters for c in contexts]
        axes.plot(contexts, ratios, color=color)
        style.label_line(
            axes, contexts[-1] * 1.15, ratios[-1], f"{name}: {ratios[-1]:.1f}", color, va="center"
        )
    axes.axhline(2, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    axes.text(contexts[0] * 1.15, 1.42, "dashed: 2 for each parameter", color=style.REFERENCE, va="center")
    axes.set(xscale="log", yscale="log", ylim=(1.2, 100), xlim=(contexts[0], contexts[-1]))
    axes.set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
    ticks = [c for c in (1, 16, 256, 4096, 65536) if contexts[0] <= c <= contexts[-1]]
    axes.set_xticks(ticks, [f"{c:,}" for c in ticks])
    axes.minorticks_off()
    axes.set(title="Two operations for each parameter, until the context is long")
    axes.set(xlabel="context (tokens, log scale)", ylabel="FLOPs per token\n/ parameters (log)")


def _cover(figure: Figure) -> None:
    llama_map(figure.subplots())


def _moved(ids: Tensor, both_ways: bool) -> Tensor:
    """[changed word, position]: whether the scores there depend on a word, in a Llama of random weights."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = Llama(LlamaConfig(int(ids.max()) + 1, 32, 48, 2, 4, 2)).double()

        def scores(ids: Tensor) -> Tensor:
            hidden_states, S = model.model.embed_tokens(ids), ids.shape[1]
            cos, sin = model.rotary(torch.arange(S), hidden_states.dtype)
            mask = torch.ones(S, S, dtype=torch.bool) if both_ways else None
            for layer in model.model.layers:
                hidden_states = layer(hidden_states, cos, sin, mask)
            return model.lm_head(model.model.norm(hidden_states))

        before, rows = scores(ids), []
        for i in range(ids.shape[1]):
            other = ids.clone()
            other[0, i] = (ids[0, i] + 1) % model.config.vocab_size
            rows.append((scores(other) - before)[0].abs().amax(-1) > 1e-9)
        return torch.stack(rows)


def _two_readers(figure: Figure) -> None:
    words = ["this", "is", "the", "cat", "that", "killed", "the", "rat"]
    known = sorted(set(words))
    ids = torch.tensor([[known.index(word) for word in words]])
    with_mask, without = figure.subplots(1, 2)
    changes(with_mask, _moved(ids, False), words, "Decoder: nothing before it", style.OUTPUT)
    changes(without, _moved(ids, True), words, "Encoder: everywhere", style.WRONG)
    without.set_ylabel("")
    without.set_yticks(range(len(words)), [""] * len(words))


def _shares(figure: Figure) -> None:
    names = ["SmolLM2-135M", "Llama-3.2-1B", "Llama-2-7B", "Llama-3-8B", "Llama-3-70B", "Llama-3.1-405B"]
    shares(figure.subplots(), {name: PRESETS[name] for name in names}, size=11)


IMAGES = {"00_map_of_llama": _cover, "00_shares": _shares, "00_two_readers": _two_readers}
