"""Lesson 09: the block as a drawing, the gradient through many of them, and how both orders train."""

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lecture_utils.llama import DecoderLayer, LlamaConfig, RMSNorm, cos_sin, inv_freq

from . import style

PRE, POST = style.INPUT, style.OUTPUT  # the stream as it is, and the stream after a norm
ATTENTION, NETWORK = style.POSITION, style.UP
BATCH, LENGTH, VOCABULARY = 2, 6, 64

_CONFIG = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=64,
    num_attention_heads=4,
    num_key_value_heads=2,
)


def layers(count: int, weights: float = 1.0) -> list[DecoderLayer]:
    """Decoder layers of width 32; each matrix multiplies the size of what it reads by about `weights`."""
    made, generator = [DecoderLayer(_CONFIG) for _ in range(count)], torch.Generator().manual_seed(1)
    for layer in made:
        for matrix in layer.parameters():
            if matrix.dim() == 2:  # not the weights of the norms, which stay 1
                std = weights * matrix.shape[1] ** -0.5
                matrix.data = std * torch.randn(matrix.shape, generator=generator)
    return made


ORDERS = ("pre-norm", "post-norm")


def through(depths: list[int], parts: str = "both", weights: float = 1.0) -> dict[str, dict]:
    """Models of several depths (rising) at initialisation: what a gradient and the stream become.

    All are the beginning of the deepest one, in each of the ORDERS; they stand side by side in one batch, and
    each leaves it at its depth.

    Args:
        parts: what a layer has: "both" halves, or one of them, "attention" or "network".
        weights: as in `layers`.

    Returns:
        By order and depth, for the stream before the first layer and behind each layer: the norm of the
        gradient of the loss, as a share of that behind the last; and the size (RMS).
    """
    generator = torch.Generator().manual_seed(3)
    embedding = torch.randn(VOCABULARY, 32, generator=generator)
    head = torch.randn(VOCABULARY, 32, generator=generator) * 32**-0.5
    ids = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
    cos, sin = cos_sin(torch.arange(LENGTH), inv_freq(_CONFIG.head_dim))
    start = embedding[ids[:, :-1]].repeat(len(depths), 1, 1)
    now = [start.clone().requires_grad_() for _ in ORDERS]
    streams, loss, left = [[x] for x in now], 0.0, list(depths)
    for number, layer in enumerate(layers(depths[-1], weights), start=1):
        layer.requires_grad_(False)
        if parts != "network":
            now = _half(now, layer.input_layernorm, lambda t, layer=layer: layer.self_attn(t, cos, sin))
        if parts != "attention":
            now = _half(now, layer.post_attention_layernorm, layer.mlp)
        for kept, x in zip(streams, now, strict=True):
            kept.append(x)
        if number == left[0]:
            for x in now:
                out = RMSNorm(32)(x[:BATCH])  # the norm at the end of a Llama
                loss = loss + F.cross_entropy((out @ head.T).flatten(0, 1), ids[:, 1:].flatten())
            now, left = [x[BATCH:] for x in now], left[1:]
    arrived = torch.autograd.grad(loss, [x for kept in streams for x in kept])
    count = depths[-1] + 1
    return {
        order: _by_depth(depths, kept, arrived[i * count : (i + 1) * count])
        for i, (order, kept) in enumerate(zip(ORDERS, streams, strict=True))
    }


def _half(now: list[torch.Tensor], norm, part) -> list[torch.Tensor]:
    """One half of a layer in each of the ORDERS, with one call of the sub-layer."""
    pre, post = now
    wrote_pre, wrote_post = part(torch.cat((norm(pre), post))).chunk(2)
    return [pre + wrote_pre, norm(post + wrote_post)]


def _by_depth(depths: list[int], streams: list, gradients: tuple) -> dict:
    found = {}
    for place, depth in enumerate(depths):
        norms, sizes = [], []
        for stream, gradient in zip(streams[: depth + 1], gradients[: depth + 1], strict=True):
            gone = BATCH * len(depths) - len(gradient)  # texts that have left before
            mine = slice(BATCH * place - gone, BATCH * (place + 1) - gone)
            norms.append(gradient[mine].norm().item())
            sizes.append(stream[mine].detach().square().mean().sqrt().item())
        found[depth] = np.array(norms) / max(norms[-1], 1e-30), np.array(sizes)
    return found


def gradients(axes: Axes, curves: dict[str, list[float]], title: str) -> None:
    """Gradient norm of every layer: {"pre-norm": [L], "post-norm": [L]}."""
    every = [value for values in curves.values() for value in values]
    axes.set(yscale="log", title=title, xlabel="layer", ylim=(min(every) / 10, max(every) * 6))
    for name, color in (("pre-norm", PRE), ("post-norm", POST)):
        values = curves[name]
        axes.plot(range(1, len(values) + 1), values, color=color)
        above = name == "post-norm"
        place = len(values) // (3 if above else 2)
        axes.text(place, values[place] * (3 if above else 0.4), name, color=color, fontweight="bold",
                  va="bottom" if above else "top")  # fmt: skip
    axes.set_ylabel("gradient norm (log scale)")


def losses(axes: Axes, curves: dict[str, list[float]], chance: float, title: str) -> None:
    """Loss of both orders, step by step, and that of guessing."""
    axes.axhline(chance, color=style.REFERENCE, linestyle="--", linewidth=1.2)
    steps = len(curves["pre-norm"])
    axes.text(steps, chance * 1.02, "guessing", ha="right", va="bottom", color=style.REFERENCE)
    for name, color in (("post-norm", POST), ("pre-norm", PRE)):
        smooth = np.convolve(curves[name], np.ones(5) / 5, mode="valid")
        axes.plot(np.arange(5, steps + 1), smooth, color=color)
        place, below = len(smooth) // 2, name == "pre-norm"
        y, ha = (0.9 * smooth[place], "right") if below else (smooth[place] - 0.07, "left")
        axes.text(place + 4, y, name, color=color, fontweight="bold", va="top", ha=ha)
    axes.set(title=title, xlabel="step of training", ylabel="loss (mean of 5 steps)", ylim=(0, 1.2 * chance))


NAMES = "norm_1", "attention", "norm_2", "mlp"


def block(axes: Axes) -> None:
    """The layer as a drawing: the stream is a straight line, and two branches read it and add to it."""
    axes.set(xlim=(0, 10), ylim=(-0.1, 3.2), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    arrow = {"arrowstyle": "-|>", "mutation_scale": 14, "shrinkA": 0, "shrinkB": 0, "zorder": 2}
    axes.add_patch(FancyArrowPatch((0.05, 2.5), (9.95, 2.5), color=style.INPUT, linewidth=4, **arrow))
    for half, (left, plus, color) in enumerate(((1.15, 4.1, ATTENTION), (6.2, 9.1, NETWORK))):
        norm, part = NAMES[2 * half : 2 * half + 2]
        line = {"linewidth": 1.8, "solid_capstyle": "butt", "zorder": 1}
        axes.plot([left, left, plus - 1.15], [2.5, 0.4, 0.4], color=style.MUTED, **line)
        axes.plot([plus - 1.15, plus], [0.4, 0.4], color=color, **line)
        axes.add_patch(FancyArrowPatch((plus, 0.38), (plus, 2.32), color=color, linewidth=1.8, **arrow))
        _box(axes, left, 1.4, 1.9, norm, style.WEIGHT)
        _box(axes, plus - 1.15, 0.4, 0.6 + 0.16 * len(part), part, color)
        axes.plot([plus], [2.5], "o", markersize=19, color="white", markeredgecolor=style.INPUT,
                  markeredgewidth=2, zorder=4)  # fmt: skip
        axes.plot([plus], [2.5], "+", markersize=11, color=style.INPUT, markeredgewidth=2, zorder=5)
    for x, name in ((0.05, "x"), (4.5, "h"), (9.5, "y")):
        axes.text(
            x, 2.68, name, color=style.INPUT, fontweight="bold", va="bottom", style="italic", fontsize=13
        )


def _box(axes: Axes, x: float, y: float, width: float, text: str, color: str, height: float = 0.62) -> None:
    corner = x - width / 2, y - height / 2
    look = {"boxstyle": "round,pad=0,rounding_size=0.1", "facecolor": "white", "linewidth": 2, "zorder": 3}
    axes.add_patch(FancyBboxPatch(corner, width, height, edgecolor=color, **look))
    axes.text(x, y, text, ha="center", va="center", zorder=4, fontsize=11)


def _cover(figure: Figure) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    block(left)
    left.set_title("Normalize, transform, add: twice")
    found = through([80])
    gradients(right, {order: found[order][80][0][1:] for order in ORDERS}, "80 layers: order matters")
    right.set_ylabel("gradient / the last layer's (log)")


def two_orders(axes: tuple[Axes, Axes]) -> None:
    """A token [1, 7] in both orders: attention writes [7, 1], mlp [1, -1]; post-norm pulls each sum back."""
    norm = RMSNorm(2).requires_grad_(False)
    token, wrote = torch.tensor([1.0, 7.0]), (torch.tensor([7.0, 1.0]), torch.tensor([1.0, -1.0]))
    angle = np.linspace(0, 2 * np.pi, 200)
    titles = ("Pre-norm: the token stays a term", "Post-norm: pulled back, twice")
    for panel, order, title in zip(axes, ORDERS, titles, strict=True):
        panel.set(aspect="equal", xlim=(-1.9, 11), ylim=(-1.9, 9.4), title=title)
        panel.set(xlabel="feature 1", ylabel="feature 2", xticks=range(0, 11, 2), yticks=range(0, 9, 2))
        panel.plot(2**0.5 * np.cos(angle), 2**0.5 * np.sin(angle), "--", color=style.REFERENCE, linewidth=1)
        _arrow(panel, (0, 0), token, style.INPUT)
        style.label_line(panel, 0.0, 5.4, "token", style.INPUT, ha="right", rotation=82, va="center")
        x = token
        for written, color in zip(wrote, (ATTENTION, NETWORK), strict=True):
            total = x + written
            _arrow(panel, x, total, color)
            x = total
            if order == "post-norm":
                x = norm(total)
                _arrow(panel, total, x, style.WEIGHT, linestyle=(0, (2, 1.4)), mutation_scale=10)
        panel.plot(*x, "o", color=style.OUTPUT, markersize=9, zorder=5)
        style.label_line(panel, 4.3, 8.0, "attention writes", ATTENTION, ha="center", va="bottom")
    pre, post = axes
    pre.text(1.6, -0.75, "RMS 1", color=style.REFERENCE, va="center")
    style.label_line(pre, 8.2, 6.85, "mlp writes", NETWORK, ha="right", va="center")
    style.label_line(pre, 9.2, 6.5, "[9, 7]", style.OUTPUT, va="top", ha="center")
    style.label_line(post, 5.2, 4.2, "norm", style.WEIGHT, va="top")
    style.label_line(post, 2.2, 0.9, "mlp writes", NETWORK, va="center")
    style.label_line(post, 1.6, -0.75, "[1.41, 0]", style.OUTPUT, va="center")


def _arrow(axes: Axes, start, end, color: str, **look) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 14, "shrinkA": 0, "shrinkB": 0, "linewidth": 2.4} | look
    axes.add_patch(FancyArrowPatch(tuple(start), tuple(end), color=color, zorder=3, **look))


def _layer(figure: Figure) -> None:
    figure.set_size_inches(7.5, 2.4)
    block(figure.subplots())


def _two_orders(figure: Figure) -> None:
    two_orders(tuple(figure.subplots(1, 2)))


IMAGES = {"09_decoder_block": _cover, "09_layer": _layer, "09_two_orders": _two_orders}
