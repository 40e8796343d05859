"""Explorers of lesson 09: what each sub-layer adds to one token; the gradient through many layers."""

import functools

import numpy as np
import torch
from torch import Tensor

from lecture_utils.llama import DecoderLayer, LlamaConfig, cos_sin, inv_freq
from lecture_utils.plots import decoder_block as plots
from lecture_utils.plots import style

from .explorer import Explorer, choice, slider, stops

BOTH, ATTENTION, NETWORK, NOTHING = "both", "attention only", "mlp only", "nothing"


def times(value: float) -> str:
    """A ratio in prose: 1.2, 46, 6,500, 1,200,000."""
    if value < 10:
        return f"{value:.2g}"
    digits = len(f"{value:.0f}") - 2
    return f"{round(value, -digits):,.0f}"


class Stream(Explorer):
    """One token of two features on its way through five layers: what each sub-layer adds to it, as arrows."""

    size = (7.5, 4.1)
    panels = {"ncols": 2, "width_ratios": (1.15, 1)}
    most = 5

    def __init__(self, seed: int = 158) -> None:
        generator = torch.Generator().manual_seed(seed)
        config = LlamaConfig(hidden_size=2, intermediate_size=6, num_attention_heads=1)
        self.layers = [DecoderLayer(config).requires_grad_(False) for _ in range(self.most)]
        for layer in self.layers:
            for matrix in (p for p in layer.parameters() if p.dim() == 2):
                matrix.copy_(torch.randn(matrix.shape, generator=generator))
        self.text = torch.randn(1, 3, 2, generator=generator)
        self.text[0, -1] = torch.tensor([2.0, 1.0])
        self.angles = cos_sin(torch.arange(3), inv_freq(2))
        self.walk = functools.lru_cache(maxsize=1024)(self._walk)
        super().__init__(
            order=choice("order", plots.ORDERS, "pre-norm"),
            writes=choice("who writes", [BOTH, ATTENTION, NETWORK, NOTHING], BOTH),
            depth=slider("layers", 1, self.most, 2),
            scale=slider("the token, times", 0.1, 2.0, 1.0, step=0.1),
        )

    def _walk(self, order: str, writes: str, scale: float) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Of the last token, for each half: before it, after the sum, after the half; [2] each."""
        x, path = scale * self.text, []
        silent = {BOTH: (1, 1), ATTENTION: (1, 0), NETWORK: (0, 1), NOTHING: (0, 0)}[writes]
        for layer in self.layers:
            for (norm, part), speaks in zip(
                (
                    (layer.input_layernorm, lambda t, layer=layer: layer.self_attn(t, *self.angles)),
                    (layer.post_attention_layernorm, layer.mlp),
                ),
                silent,
                strict=True,
            ):
                total = x + speaks * part(norm(x) if order == "pre-norm" else x)
                after = total if order == "pre-norm" else norm(total)
                path.append((x[0, -1], total[0, -1], after[0, -1]))
                x = after
        return path

    def draw(self, plane, sizes):
        angle = np.linspace(0, 2 * np.pi, 200)
        plane.plot(2**0.5 * np.cos(angle), 2**0.5 * np.sin(angle), "--", color=style.REFERENCE, linewidth=1)
        plane.set(aspect="equal", xlim=(-3.6, 6.4), ylim=(-3.6, 6.4), xlabel="feature 1", ylabel="feature 2")
        plane.set_title("One token: the arrows add up")
        plane.text(-3.3, 5.7, "dashed: RMS 1", color=style.REFERENCE, fontsize=10)
        style.label_line(plane, -3.3, -2.6, "token", style.INPUT)
        style.label_line(plane, -3.3, -3.35, "norm", style.WEIGHT)
        style.label_line(plane, 6.1, -2.6, "attention", plots.ATTENTION, ha="right")
        style.label_line(plane, 6.1, -3.35, "mlp", plots.NETWORK, ha="right")
        self.token = self.arrows(plane, style.INPUT, 1)
        self.wrote = [self.arrows(plane, color, self.most) for color in (plots.ATTENTION, plots.NETWORK)]
        (self.pulled,) = plane.plot([], [], ":", color=style.WEIGHT, linewidth=1.8)
        (self.end,) = plane.plot([], [], "o", color=style.OUTPUT, markersize=8)
        sizes.axhline(1, linestyle="--", color=style.REFERENCE, linewidth=1)
        (self.size_line,) = sizes.plot([], [], "o-", color=style.INPUT, markersize=4)
        (self.written,) = sizes.plot([], [], "s", color=style.MUTED, markersize=5)
        sizes.set(xlim=(-0.3, self.most + 0.3), ylim=(0.03, 30), yscale="log", xlabel="layers passed")
        sizes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
        sizes.set(title="How large", ylabel="RMS (log scale)")
        style.label_line(sizes, 0, 17, "token", style.INPUT)
        style.label_line(sizes, self.most, 17, "written ■", style.MUTED, ha="right")
        return [self.pulled, self.token, *self.wrote, self.end, self.size_line, self.written]

    @staticmethod
    def arrows(axes, color: str, count: int):
        """That many arrows of one colour, to be set."""
        none = np.zeros(count)
        look = {"width": 0.009, "headwidth": 4, "headlength": 5, "headaxislength": 5, "minlength": 0}
        units = {"angles": "xy", "scale_units": "xy", "scale": 1}
        return axes.quiver(none, none, none, none, color=color, **look, **units)

    @staticmethod
    def point(arrows, starts: list, ends: list) -> None:
        """Set arrows; those that are left over are hidden."""
        hidden = [[np.nan, np.nan]] * (len(arrows.get_offsets()) - len(starts))
        starts, ends = np.array([*starts, *hidden], float), np.array([*ends, *hidden], float)
        arrows.set_offsets(np.nan_to_num(starts))
        arrows.set_UVC(*(ends - starts).T)

    def update(self, order, writes, depth, scale):
        path = self.walk(order, writes, round(scale, 6))[: 2 * depth]
        self.point(self.token, [[0, 0]], [path[0][0].tolist()])
        for arrows, halves in zip(self.wrote, (path[::2], path[1::2]), strict=True):
            spoken = [half for half in halves if (half[1] - half[0]).norm() > 1e-3]
            self.point(arrows, [half[0].tolist() for half in spoken], [half[1].tolist() for half in spoken])
        pulled = []
        for half in path if order == "post-norm" else ():
            pulled += [half[1].tolist(), half[2].tolist(), [np.nan, np.nan]]
        self.pulled.set_data(*(np.array(pulled).T if pulled else ([], [])))
        self.end.set_data(*([v] for v in path[-1][2].tolist()))
        sizes = [self.rms(half[0]) for half in path] + [self.rms(path[-1][2])]
        written = [self.rms(half[1] - half[0]) for half in path]
        places = np.arange(len(path) + 1) / 2
        self.size_line.set_data(places, sizes)
        self.written.set_data(places[1:] - 0.25, [w if w > 1e-3 else np.nan for w in written])
        return self.caption(order, writes, depth, path, sizes, written)

    @staticmethod
    def rms(vector: Tensor) -> float:
        return vector.square().mean().sqrt().item()

    def caption(self, order, writes, depth, path, sizes, written) -> str:
        layers = "1 layer" if depth == 1 else f"{depth} layers"
        if writes == NOTHING and order == "pre-norm":
            return (
                f"Nothing is written: after {layers} the token is where it was, RMS {sizes[-1]:.2f}. "
                "Pre-norm with nothing to say is the identity."
            )
        if writes == NOTHING:
            return (
                f"Nothing is written, and still the first norm moves the token from RMS {sizes[0]:.2f} to "
                f"{sizes[-1]:.2f}: post-norm with nothing to say is not the identity ({layers})."
            )
        loud = [f"{w:.2f}" for w in sorted(written) if w > 1e-3]
        span = loud[0] if loud[0] == loud[-1] else f"{loud[0]} to {loud[-1]}"
        if order == "pre-norm":
            return (
                f"What is written (RMS {span}) does not grow with the token: each reader has a norm. "
                f"In {layers} RMS {sizes[0]:.2f} became {sizes[-1]:.2f}, and all of what came in is still in "
                "the sum."
            )
        shrunk = [self.rms(after) / self.rms(total) for _, total, after in path]
        return (
            "After every sum a norm pulls the token back to RMS 1: that it came with "
            f"{sizes[0]:.2f} is gone. After {layers} what came in is one term, of RMS "
            f"{sizes[0] * np.prod(shrunk):.2g}."
        )


class Depth(Explorer):
    """A gradient on its way back through many layers, and the stream on its way forward, in both orders.

    Untrained models of width 32, RMSNorm, grouped-query attention and SwiGLU. After Xiong et al., 2020,
    section 3.
    """

    size = (7.5, 3.8)
    panels = {"ncols": 2, "width_ratios": (1.25, 1)}
    depths = (2, 6, 12, 24, 48, 80)
    sizes = (0.5, 1.0, 1.25)

    def __init__(self) -> None:
        names = {BOTH: "both", ATTENTION: "attention", NETWORK: "network"}
        self.found = {  # about a second, so that no move has to wait
            (parts, weights): plots.through(list(self.depths), name, weights)
            for parts, name in names.items()
            for weights in self.sizes
        }
        super().__init__(
            depth=stops("depth", self.depths, 6, unit="layers"),
            weights=stops("size of the weights", self.sizes, 1.0),
            parts=choice("a layer has", names, BOTH),
        )

    def draw(self, back, forward):
        back.axhline(1, color=style.REFERENCE, linestyle="--", linewidth=1)
        forward.axhline(1, color=style.REFERENCE, linestyle="--", linewidth=1)
        self.back = [back.plot([], [], ".-", color=c, markersize=5)[0] for c in (plots.PRE, plots.POST)]
        self.forward = [forward.plot([], [], ".-", color=c, markersize=5)[0] for c in (plots.PRE, plots.POST)]
        for axes, low, high in ((back, 2e-4, 5e9), (forward, 0.5, 100)):
            axes.set(xlim=(-0.03, 1.03), ylim=(low, high), yscale="log")
            axes.set_xticks([0, 0.5, 1], ["first", "middle", "last"])
            axes.set_xlabel("layer")
        back.set_yticks([1e-3, 1, 1e3, 1e6, 1e9])
        back.set(title="Gradient, as a share of the last", ylabel="share (log scale)")
        forward.set_yticks([1, 10, 100], ["1", "10", "100"])
        forward.set(title="Size of the stream", ylabel="RMS (log scale)")
        style.label_line(back, 1.0, 6e8, "post-norm", plots.POST, ha="right")
        style.label_line(back, 1.0, 4e7, "pre-norm", plots.PRE, ha="right")
        return [*self.back, *self.forward]

    def update(self, depth, weights, parts):
        found = self.found[parts, weights]
        for order, back, forward in zip(plots.ORDERS, self.back, self.forward, strict=True):
            gradients, sizes = found[order][depth]
            back.set_data(np.linspace(0, 1, depth), gradients[1:])
            forward.set_data(np.linspace(0, 1, depth), sizes[1:])
        return self.caption(depth, found)

    def caption(self, depth: int, found: dict) -> str:
        (pre, sizes), (post, _) = (found[order][depth] for order in plots.ORDERS)
        factor = (post[1] / post[-1]) ** (1 / (depth - 1))
        gentle = f"Pre-norm: {times(pre[1])} times the last; its stream has RMS {sizes[-1]:.1f}."
        if max(post[1], 1 / post[1], pre[1]) < 2:
            return (
                f"{depth} layers: in both orders the first layer's gradient is near the last one's "
                f"(post-norm {post[1]:.2f} times it, pre-norm {pre[1]:.2f}). No trouble here."
            )
        kind = "explodes" if post[1] > 100 else "grows" if post[1] > 1 else "fades"
        share = times(post[1]) if post[1] > 1 else f"{post[1]:.2g}"
        return (
            f"{depth} layers: on its way back through post-norm the gradient {kind}, to {share} times the "
            f"last, a factor of {factor:.2f} a layer. {gentle}"
        )
