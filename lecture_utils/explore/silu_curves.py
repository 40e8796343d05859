"""Lesson 05: Swish between a line and ReLU; one slope of a curve, and what many layers make of it."""

import math

import numpy as np
import torch
from torch import Tensor

from lecture_utils.llama import gelu, leaky_relu, relu, sigmoid, silu, silu_grad, swish, tanh
from lecture_utils.plots import style
from lecture_utils.plots.silu_curves import SLOPE

from .explorer import Explorer, choice, slider, stops

CURVES = {
    "sigmoid": sigmoid,
    "tanh": tanh,
    "ReLU": relu,
    "leaky ReLU": leaky_relu,
    "GELU": gelu,
    "SiLU": silu,
}
POSITIVE = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20, 50, 100)
LEFT, RIGHT = -5, 5
GREY = "#666666"


def minus(number: float, digits: str = ".3g") -> str:
    """A number as prose writes it."""
    return f"{number:{digits}}".replace("-", "−")


def zero_lines(*panels) -> None:
    for axes in panels:
        axes.axhline(0, color="#AAAAAA", linewidth=0.8, zorder=0)
        axes.axvline(0, color="#AAAAAA", linewidth=0.8, zorder=0)


class Swish(Explorer):
    """Swish, x · σ(βx), and its slope: β turns a straight line into SiLU and SiLU into ReLU.

    Source: Ramachandran, Zoph, Le, "Searching for Activation Functions", 2017, section 4. The rest
    follows from swish(x, β) = silu(βx) / β.
    """

    size = (7.5, 3.5)
    panels = {"ncols": 2, "width_ratios": (10 / 6.8, 1)}

    def __init__(self) -> None:
        # Closer together around 0, where a large β bends within a few hundredths.
        self.x = RIGHT * torch.linspace(-1, 1, 401, dtype=torch.float64) ** 3
        fine = torch.linspace(-2, -1, 100_001, dtype=torch.float64)
        lowest = silu(fine).argmin()
        self.place, self.value = fine[lowest].item(), silu(fine)[lowest].item()
        self.steepest = silu_grad(self.x).max().item()
        negative = [-beta for beta in reversed(POSITIVE) if beta <= 10]
        super().__init__(beta=stops("β", (*negative, 0, *POSITIVE), 1))

    def draw(self, curve, slope):
        zero_lines(curve, slope)
        ends = [LEFT, RIGHT]
        behind = {"color": style.REFERENCE, "linestyle": (0, (2, 1)), "linewidth": 5, "alpha": 0.3}
        curve.plot([LEFT, 0, RIGHT], [0, 0, RIGHT], **behind)
        style.label_line(curve, 2.5, 3.1, "ReLU (dashed)", "#555555", ha="right", va="center")
        ray = self.value / self.place
        curve.plot(ends, [ray * x for x in ends], color=GREY, linewidth=1, linestyle=":")
        curve.text(4.85, -2.6, "dips and humps lie\non the dotted line", color=GREY, ha="right")
        curve.set(xlim=(LEFT, RIGHT), ylim=(-2.8, 4), xlabel="x", ylabel="swish(x, β)", aspect="equal")
        curve.set(xticks=range(-4, 5, 2), yticks=range(-2, 5, 2))
        (self.curve,) = curve.plot([], [], color=style.OUTPUT)
        (self.gaps,) = curve.plot([], [], color=style.REFERENCE, linewidth=1.3)
        (self.dip,) = curve.plot([], [], "o", color=style.OUTPUT, markersize=7)
        self.label = curve.text(0, 0, "", color=style.OUTPUT, fontweight="bold")
        self.title = curve.set_title("β")

        lowest = silu_grad(self.x).min().item()
        slope.plot([LEFT, 0, 0, RIGHT], [0, 0, 1, 1], **behind)
        for name, extreme, side in (("highest", self.steepest, "bottom"), ("lowest", lowest, "top")):
            slope.axhline(extreme, color=GREY, linewidth=1, linestyle=":")
            at = extreme + (0.02 if side == "bottom" else -0.03)
            slope.text(-4.8, at, f"{name}: {minus(extreme, '.2f')}", color=GREY, va=side)
        slope.set(xlim=(LEFT, RIGHT), ylim=(-0.35, 1.35), xlabel="x", ylabel="slope")
        slope.set(title="Its slope: SiLU's, at βx", xticks=range(-4, 5, 2), yticks=(0, 0.5, 1))
        slope.set_box_aspect(1)  # as high as the picture beside it
        (self.slope,) = slope.plot([], [], color=SLOPE)
        (self.flat,) = slope.plot([], [], "o", color=SLOPE, markersize=6)
        return [self.curve, self.gaps, self.dip, self.label, self.title, self.slope, self.flat]

    def update(self, beta):
        self.curve.set_data(self.x.numpy(), swish(self.x, beta).numpy())
        self.slope.set_data(self.x.numpy(), silu_grad(beta * self.x).numpy())
        # At β = 0 there is no dip: what marks it stays outside the frame.
        x, y = (self.place / beta, self.value / beta) if beta else (2 * LEFT, 0)
        inside = LEFT <= x <= RIGHT
        self.dip.set_data([x], [y])
        self.flat.set_data([x], [0])
        # On the other side ReLU is ahead by as much, since silu(x) − silu(−x) = x.
        self.gaps.set_data([x, x, math.nan, -x, -x], [y, 0, math.nan, y - x, -x])
        self.gaps.set_visible(beta > 0)
        # The curve has the sign of x, so two quarters of the picture are always free for words.
        where, size = f"at x = {minus(x)}", f"{abs(y):.3g}"
        if beta > 0:
            self.label.set(text=f"dip: {size} deep", position=(-0.3, 0.3), ha="right", va="bottom")
        else:
            self.label.set(text=f"hump: {size} high", position=(0.3, -0.3), ha="left", va="top")
        self.label.set_visible(inside)
        kind, words = self.words(beta, where, size, inside)
        self.title.set_text(f"β = {minus(beta, 'g')}: {kind}")
        return f"β = {minus(beta, 'g')}{words}"

    def words(self, beta, where, size, inside):
        """What the curve is called, and the sentences that begin with β = …"""
        if beta < 0:
            return "SiLU, turned by 180°" if beta == -1 else "turned by 180°", (
                f" is the curve of {-beta:g}, turned by 180°: the switch closes on the right. The dip is now "
                f"a hump, {size} high {where}{'' if inside else ' (outside)'}, and negative numbers pass."
            )
        if beta == 0:
            return "a straight line", (
                ": the switch is stuck at ½, so this is the straight line x/2, with slope ½ everywhere. "
                "No bend, so no dip; and the gap to ReLU grows without end."
            )
        if not inside:
            return "almost a line", (
                ": around 0 the switch hardly moves from ½, so the curve hardly bends. Its dip is left of "
                f"the picture, {where}: {size} deep, and that is the largest gap to ReLU."
            )
        if beta == 1:
            return "SiLU", (
                f" is SiLU. Its dip, {size} deep {where}, is also its largest gap to ReLU; right of 0 it "
                "falls behind ReLU by as much."
            )
        if beta >= 10:
            return "almost ReLU", (
                f": the switch is almost a step, so this is ReLU but for a gap of {size} at most, {where}. "
                "The slope still climbs smoothly, only faster."
            )
        scale = f"{1 / beta:.3g} times as large" if beta < 1 else f"{beta:g} times smaller"
        return "SiLU, " + ("larger" if beta < 1 else "smaller"), (
            f" is SiLU drawn {scale}: the dip is {size} deep, {where}; the gap to ReLU is nowhere larger. "
            f"The slope still reaches {self.steepest:.2f}, {'further from' if beta < 1 else 'nearer to'} 0."
        )


class Slopes(Explorer):
    """A point on one of six curves, its slope, and what is left of a gradient after many such slopes.

    The layers are alike and in a row, each with this slope and no weights, so n of them multiply a
    gradient by slope**n. The slope is autograd's.
    """

    size = (7.5, 4.1)
    panels = {"nrows": 2, "ncols": 2, "width_ratios": (1.3, 1), "height_ratios": (1.5, 1)}
    most = 40  # layers in the picture
    lowest = 1e-5  # gradient in the picture

    def __init__(self) -> None:
        self.x = torch.linspace(LEFT, RIGHT, 401, dtype=torch.float64)
        self.drawn = {name: (f(self.x).numpy(), slope_of(f, self.x).numpy()) for name, f in CURVES.items()}
        self.passed = np.arange(self.most + 1)
        super().__init__(
            name=choice("curve", CURVES, "SiLU"),
            x=slider("x", LEFT, RIGHT, 1.0, step=0.1),
            layers=slider("layers", 1, self.most, 16),
        )

    def draw(self, curve, rest, slope, corner):
        corner.remove()
        rest.set_subplotspec(rest.get_gridspec()[:, 1])  # one high panel in place of two
        self.figure.get_layout_engine().set(w_pad=0.08)
        zero_lines(curve, slope)
        curve.set(xlim=(LEFT, RIGHT), ylim=(-1.4, 5.2), ylabel="value", yticks=(0, 2, 4))
        curve.set_xticks(range(-4, 5, 2), [])
        (self.tangent,) = curve.plot([], [], color=SLOPE, linewidth=1.8)
        (self.curve,) = curve.plot([], [], color=style.OUTPUT)
        (self.point,) = curve.plot([], [], "o", color=style.OUTPUT, markersize=8, clip_on=False)
        self.curve_title = curve.set_title("curve")

        slope.set(xlim=(LEFT, RIGHT), ylim=(-0.35, 1.35), xlabel="x", ylabel="slope", yticks=(0, 0.5, 1))
        slope.set_xticks(range(-4, 5, 2))
        (self.slope,) = slope.plot([], [], color=SLOPE, linestyle=(0, (4, 1.5)), linewidth=1.6)
        (self.here,) = slope.plot([], [], "o", color=SLOPE, markersize=8, clip_on=False)
        self.slope_title = slope.set_title("slope")

        rest.axhline(1, color="#AAAAAA", linewidth=0.8, zorder=0)
        rest.axhline(1e-3, color=style.REFERENCE, linewidth=1, linestyle="--", zorder=1)
        rest.set(yscale="log", xlim=(0, self.most + 1), ylim=(self.lowest, 1e3))
        rest.set(xlabel="layers passed", ylabel="size of the gradient (log scale)")
        rest.set_yticks([1e-3, 1, 1e3], ["1/1000", "1", "1000"])
        rest.minorticks_off()
        (self.rest,) = rest.plot([], [], color=SLOPE, marker=".", markersize=5, linewidth=1.2)
        (self.after,) = rest.plot([], [], "o", color=SLOPE, markersize=9)
        self.rest_title = rest.set_title("gradient")
        return [
            *(self.tangent, self.curve, self.point, self.curve_title),
            *(self.slope, self.here, self.slope_title),
            *(self.rest, self.after, self.rest_title),
        ]

    def update(self, name, x, layers):
        x = round(x, 1) + 0.0  # a slider's 0 can be 1e-17, where the slope of ReLU is 1
        at = torch.tensor(x, dtype=torch.float64)
        value, slope = CURVES[name](at).item(), slope_of(CURVES[name], at).item()
        values, slopes = self.drawn[name]
        self.curve.set_data(self.x.numpy(), values)
        self.slope.set_data(self.x.numpy(), slopes)
        self.point.set_data([x], [value])
        self.here.set_data([x], [slope])
        self.tangent.set_data([x - 3, x + 3], [value - 3 * slope, value + 3 * slope])
        # A logarithm has no place for 0: far below the frame, as whatever leaves it.
        size = np.maximum(abs(slope) ** self.passed.astype(float), 1e-30)
        self.rest.set_data(self.passed, size)
        inside = size[layers] >= self.lowest
        self.after.set_data([layers], [size[layers] if inside else 1.5 * self.lowest])
        self.after.set_marker("o" if inside else "v")

        number = steep(slope)
        self.curve_title.set_text(name)
        self.slope_title.set_text(f"Slope: {number}")
        fate, words = self.words(name, x, slope, slopes, layers)
        self.rest_title.set_text(f"Gradient {fate}")
        return f"At x = {minus(x, '.1f')} the slope of {name} is {number}{words}"

    def words(self, name, x, slope, slopes, layers):
        """What becomes of the gradient, and the rest of a sentence that began with the slope."""
        after = "After 1 such layer" if layers == 1 else f"After {layers} such layers"
        size = abs(slope) ** layers
        if slope == 0:
            return "stops", (
                f". {after} nothing of a gradient is left{'' if layers == 1 else ', as after the first'}. "
                "A unit that stands here for every example is dead."
            )
        if slope == 1:
            return "passes whole", (
                f". {after} a gradient of 1 is still {size:g}, and it would be after any number of them."
            )
        if slope > 1:
            count = math.floor(math.log(1000) / math.log(slope)) + 1
            return "grows", (
                f", above 1: the curve catches up with the line y = x. {after} a gradient of 1 is "
                f"{size:.2f}; it is above 1000 after {count:,}."
            )
        if slope < 0:
            why = ": left of the bottom the gradient's sign turns, too"
        elif name == "leaky ReLU":
            why = ": little, but not 0, so no unit can die"
        elif name in ("sigmoid", "tanh") and slope < 0.05:
            why = ": the curve saturates, almost flat"
        elif name == "sigmoid":
            why = ", its highest" if x == 0 else f", and nowhere above {slopes.max():.2g}"
        else:
            why = ", below 1"
        count = math.floor(math.log(1e-3) / math.log(abs(slope))) + 1
        return "shrinks", (
            f"{why}. {after} a gradient of 1 is {part(size)}; it is below 1/1000 after "
            + ("the first." if count == 1 else f"{count:,}.")
        )


def slope_of(f, x: Tensor) -> Tensor:
    """The slope of f at each entry of x, by autograd, as in the lesson."""
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


def steep(slope: float) -> str:
    """A slope to three decimals; more if it is almost, but not, 0 or 1."""
    if slope in (0, 1):
        return f"{slope:g}"
    if abs(slope) < 1e-4 or abs(slope - 1) < 1e-3:
        return minus(slope, ".6f")
    return minus(slope, ".3g" if abs(slope) < 0.1 else ".3f")


def part(size: float) -> str:
    """A number below 1 for the eye: as a decimal, or one part of many."""
    if size >= 1e-3:
        return f"{size:.3g}"
    return f"about 1/{float(f'{1 / size:.2g}'):,.0f}" if size > 1e-9 else "under a billionth"
