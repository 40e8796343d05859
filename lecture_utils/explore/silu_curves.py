"""Lesson 05: Swish between a line and ReLU; what many layers make of a slope; three ways to write SiLU."""

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from lecture_utils.llama import gelu, leaky_relu, relu, sigmoid, silu, silu_grad, swish, tanh
from lecture_utils.plots import style
from lecture_utils.plots.silu_curves import SLOPE, bottom, zero_lines

from .explorer import Explorer, choice, slider, stops, toggle

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
        self.place, self.value = bottom()
        fine = torch.linspace(0, RIGHT, 5001, dtype=torch.float64)
        self.steepest = silu_grad(fine).max().item()
        self.steepest_at = fine[silu_grad(fine).argmax()].item()
        negative = [-beta for beta in reversed(POSITIVE) if beta <= 10]
        super().__init__(
            beta=stops("β", (*negative, 0, *POSITIVE), 1),
            zoom=toggle("zoom |β| times"),
        )

    def draw(self, curve, slope):
        zero_lines(curve, slope)
        ends = [LEFT, RIGHT]
        behind = {"color": style.REFERENCE, "linestyle": (0, (2, 1)), "linewidth": 5, "alpha": 0.3}
        curve.plot([LEFT, 0, RIGHT], [0, 0, RIGHT], **behind)
        style.label_line(curve, 2.5, 3.1, "ReLU (dashed)", style.MUTED, ha="right", va="center")
        ray = self.value / self.place
        curve.plot(ends, [ray * x for x in ends], color=style.MUTED, linewidth=1, linestyle=":")
        curve.text(4.85, -2.6, "dotted: through 0\nand SiLU's dip", color=style.MUTED, ha="right")
        curve.set(xlim=(LEFT, RIGHT), ylim=(-2.8, 4), aspect="equal")
        # One name for both states, since a name that moves would have to be drawn at every move.
        curve.set(xlabel="x (zoomed: |β| · x)", ylabel="swish(x, β)\n(zoomed: |β| · swish(x, β))")
        curve.set(xticks=range(-4, 5, 2), yticks=range(-2, 5, 2))
        (self.curve,) = curve.plot([], [], color=style.OUTPUT)
        (self.gaps,) = curve.plot([], [], color=style.REFERENCE, linewidth=1.3)
        (self.dip,) = curve.plot([], [], "o", color=style.OUTPUT, markersize=7)
        self.label = curve.text(0, 0, "", color=style.OUTPUT, fontweight="bold")
        self.title = curve.set_title("β")

        slope.plot([LEFT, 0, 0, RIGHT], [0, 0, 1, 1], **behind)
        # The slopes at x and −x sum to 1.
        for name, extreme, shift in (("highest", self.steepest, 0.02), ("lowest", 1 - self.steepest, -0.03)):
            slope.axhline(extreme, color=style.MUTED, linewidth=1, linestyle=":")
            text, side = f"SiLU's {name}: {style.number(extreme, '.2f')}", "bottom" if shift > 0 else "top"
            slope.text(-4.8, extreme + shift, text, color=style.MUTED, va=side)
        slope.set(xlim=(LEFT, RIGHT), ylim=(-0.35, 1.35), xlabel="x (zoomed: |β| · x)", ylabel="slope")
        slope.set(title="Its slope", xticks=range(-4, 5, 2), yticks=(0, 0.5, 1))
        slope.set_box_aspect(1)  # as high as the picture beside it
        (self.slope,) = slope.plot([], [], color=SLOPE)
        (self.flat,) = slope.plot([], [], "o", color=SLOPE, markersize=6)
        return [self.curve, self.gaps, self.dip, self.label, self.title, self.slope, self.flat]

    def update(self, beta, zoom):
        times = abs(beta) if zoom and beta else 1  # a straight line is the same at every zoom
        self.curve.set_data(self.x.numpy(), (times * swish(self.x / times, beta)).numpy())
        self.slope.set_data(self.x.numpy(), silu_grad(beta * self.x / times).numpy())
        # At β = 0 there is no dip: what marks it stays outside the frame.
        dip = (self.place / beta, self.value / beta) if beta else (2 * LEFT, 0)
        x, y = (times * number for number in dip)
        self.dip.set_data([x], [y])
        self.flat.set_data([x], [0])
        # On the other side ReLU is ahead by as much, since silu(x) − silu(−x) = x.
        self.gaps.set_data([x, x, math.nan, -x, -x], [y, 0, math.nan, y - x, -x])
        self.gaps.set_visible(beta > 0)
        # The curve has the sign of x, so two quarters of the picture are always free for words.
        where, size = f"at x = {style.number(dip[0], '.3g')}", f"{abs(dip[1]):.3g}"
        if beta > 0:
            self.label.set(text=f"dip: {size} deep", position=(-0.3, 0.3), ha="right", va="bottom")
        else:
            self.label.set(text=f"hump: {size} high", position=(0.3, -0.3), ha="left", va="top")
        inside = LEFT <= x <= RIGHT
        self.label.set_visible(inside)
        kind, words = (self.zoomed if zoom else self.words)(beta, where, size, inside)
        self.title.set_text(f"β = {style.number(beta)}: {kind}")
        return f"β = {style.number(beta)}{words}"

    def zoomed(self, beta, where, size, _):
        """The same as `words`, when lengths are taken times |β|."""
        if beta == 0:
            return "a straight line", (
                " is a straight line, and stays one at every zoom: the only member of the family that is "
                "not SiLU at another scale."
            )
        if beta == 1:
            return (
                "SiLU, zoomed",
                " is SiLU, so the zoom is 1 and changes nothing yet. Leave it on and move β.",
            )
        kind, side = ("SiLU", "above") if beta > 0 else ("SiLU, turned by 180°", "below")
        return f"{kind}, zoomed", (
            f", every length taken times {abs(beta):g}: {kind}, as at every β {side} 0. So β only sets the "
            f"scale: before the zoom the {'dip' if beta > 0 else 'hump'} is "
            f"{size} {'deep' if beta > 0 else 'high'}, {where}."
        )

    def words(self, beta, where, size, inside):
        """What the curve is called, and the sentences that begin with β = …"""
        if beta < 0:
            return "SiLU, turned by 180°" if beta == -1 else "turned by 180°", (
                f" is the curve of {-beta:g}, turned by 180°: the switch closes on the right. The dip is now "
                f"a hump, {size} high {where}{'' if inside else ' (outside)'}; on both sides the gap to ReLU "
                "grows without end."
            )
        if beta == 0:
            return "a straight line", (
                ": the switch is stuck at ½, so this is the straight line x/2, with slope ½ everywhere. "
                "No bend, so no dip; and the gap to ReLU grows without end."
            )
        if not inside:
            return "almost a line", (
                ": around 0 the switch hardly moves from ½, so the curve hardly bends. Its dip is left of "
                f"the picture, {where}: {size} deep, and that is its largest gap to ReLU."
            )
        if beta == 1:
            return "SiLU", (
                f" is SiLU. Its dip, {size} deep {where}, is also its largest gap to ReLU; right of 0 it "
                "falls behind ReLU by as much."
            )
        if beta >= 10:
            return "almost ReLU", (
                f": the switch is almost a step, so this is ReLU but for a gap of {size} at most, {where} "
                "(zoom in to see it). The slope still climbs smoothly, only faster."
            )
        scale = f"{1 / beta:.3g} times as large" if beta < 1 else f"{beta:g} times smaller"
        top = self.steepest_at / beta
        return "SiLU, " + ("larger" if beta < 1 else "smaller"), (
            f" is SiLU drawn {scale}: the dip is {size} deep, {where}, and that is its largest gap to ReLU. "
            f"The slope still reaches {self.steepest:.2f}, at x = {top:.3g}"
            f"{'' if top <= RIGHT else ' (outside)'}."
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
        # Five digits, as the lesson found it: the slope there is 0 but for a millionth.
        self.bottom = round(bottom()[0], 5)
        places = sorted([*(tenths / 10 for tenths in range(10 * LEFT, 10 * RIGHT + 1)), self.bottom])
        super().__init__(
            name=choice("curve", CURVES, "SiLU"),
            x=stops("x", places, 1.0),
            layers=slider("layers", 1, self.most, 16),
        )

    def draw(self, curve, rest, slope, corner):
        corner.remove()
        rest.set_subplotspec(rest.get_gridspec()[:, 1])  # one high panel in place of two
        curve.figure.get_layout_engine().set(w_pad=0.08)
        zero_lines(curve, slope)
        curve.set(xlim=(LEFT, RIGHT), ylim=(-1.4, 5.2), ylabel="value", yticks=(0, 2, 4))
        curve.set_xticks(range(-4, 5, 2), [])
        (self.tangent,) = curve.plot([], [], color=SLOPE, linewidth=1.8)
        (self.curve,) = curve.plot([], [], color=style.OUTPUT)
        (self.point,) = curve.plot([], [], "o", color=style.OUTPUT, markersize=8, clip_on=False)
        curve.set_title("The curve")
        style.label_line(curve, -4.7, 4.7, "tangent: as steep as\nthe curve at the point", SLOPE, va="top")

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
        beside = {"transform": rest.transAxes, "ha": "right", "va": "top", "color": style.MUTED}
        rest.text(0.98, 0.97, "▼: below the picture", **beside)
        (self.rest,) = rest.plot([], [], color=SLOPE, marker=".", markersize=5, linewidth=1.2)
        (self.after,) = rest.plot([], [], "o", color=SLOPE, markersize=9)
        self.rest_title = rest.set_title("gradient")
        return [
            *(self.tangent, self.curve, self.point),
            *(self.slope, self.here, self.slope_title),
            *(self.rest, self.after, self.rest_title),
        ]

    def update(self, name, x, layers):
        at = torch.tensor(x, dtype=torch.float64)
        value, slope = CURVES[name](at).item(), slope_of(CURVES[name], at).item()
        if name == "SiLU" and x == self.bottom:
            slope = 0
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
        self.slope_title.set_text(f"Slope: {number}")
        fate, words = self.words(name, x, slope, slopes, layers)
        self.rest_title.set_text(f"Gradient {fate}")
        return f"At x = {style.number(x)} the slope of {name} is {number}{words}"

    def words(self, name, x, slope, slopes, layers):
        """What becomes of the gradient, and the rest of a sentence that began with the slope."""
        after = "After 1 such layer" if layers == 1 else f"After {layers} such layers"
        left = slope**layers
        if slope == 0:
            place = "and nowhere else" if name == "SiLU" else "as at every x up to 0"
            first = "" if layers == 1 else ", as after the first"
            return "stops", f", {place}. {after} nothing of a gradient is left{first}."
        if slope == 1:
            return "passes whole", (
                f". {after} a gradient of 1 is still {left:g}, and it would be after any number of them."
            )
        if 1 < slope < 1.001:
            return "barely grows", f", a hair above 1. {after} a gradient of 1 is {left:.4f}."
        if slope > 1:
            count = math.floor(math.log(1000) / math.log(slope)) + 1
            return "grows", (
                f", above 1: the curve catches up with the line y = x. {after} a gradient of 1 is "
                f"{left:.2f}; it would be above 1000 after {count}."
            )
        if slope < 0:
            why = ": the curve falls, so each layer turns the gradient's sign"
        elif name == "leaky ReLU":
            why = ": little, but nowhere 0"
        elif name in ("sigmoid", "tanh") and slope < 0.05:
            why = ": the curve saturates, almost flat"
        elif name == "sigmoid":
            why = ", its highest" if x == 0 else f", and nowhere above {slopes.max():.2g}"
        else:
            why = ", below 1"
        count = math.floor(math.log(1e-3) / math.log(abs(slope))) + 1
        if layers == count:
            fall = f",{' in size' if slope < 0 else ''} for the first time below 1/1000"
        else:
            size, first = "its size" if slope < 0 else "it", "the first" if count == 1 else count
            fall = f"; {size} {'is' if layers < count else 'was'} below 1/1000 after {first}"
        return "shrinks", f"{why}. {after} a gradient of 1 is {part(left)}{fall}."


class Forms(Explorer):
    """Three ways to write SiLU, in 16 and in 32 bits: what each gives at x, and where its slope is NaN.

    The first two are computed in the chosen format throughout; the third is the course's `silu`.
    """

    size = (7.5, 2.3)
    panels = {"ncols": 2, "width_ratios": (2, 1)}
    forms = {
        "x / (1 + exp(−x))": lambda x: x / (1 + torch.exp(-x)),
        "x · exp(x) / (1 + exp(x))": lambda x: x * (torch.exp(x) / (1 + torch.exp(x))),
        "ours: x · σ(x)": silu,
    }
    formats = {"fp16": torch.float16, "fp32": torch.float32}
    reach = 120

    def __init__(self) -> None:
        self.x = torch.arange(-self.reach, self.reach + 1)
        self.results = {
            name: [(f(x).tolist(), slope_of(f, x).tolist()) for f in self.forms.values()]
            for name, x in ((name, self.x.to(dtype)) for name, dtype in self.formats.items())
        }
        super().__init__(
            dtype=choice("computed in", self.formats, "fp32"),
            x=slider("x", -self.reach, self.reach, 50),
        )

    def draw(self, axes, table):
        rows = range(len(self.forms))
        for row in rows:
            axes.plot([-self.reach, self.reach], [row, row], color=style.WRONG, linestyle=":")
        axes.set(xlim=(-self.reach - 3, self.reach + 3), ylim=(2.5, -0.7), xlabel="x")
        axes.set_yticks(rows, self.forms)
        axes.grid(axis="y", visible=False)
        axes.set_title("A slope, or NaN (dotted)")
        self.bars = [axes.plot([], [], color=SLOPE, linewidth=7, solid_capstyle="butt")[0] for _ in rows]
        (self.here,) = axes.plot([], [], color=style.MUTED, linewidth=1)
        (self.right,) = axes.plot([], [], "o", color=style.REFERENCE, markersize=7)
        (self.broken,) = axes.plot([], [], "x", color=style.REFERENCE, markersize=8, markeredgewidth=2)
        table.set(ylim=axes.get_ylim())
        table.set_axis_off()
        columns = {0.48: "value", 1: "slope"}
        for at, name in columns.items():
            table.text(at, -0.7, name, color=style.MUTED, ha="right", va="bottom")
        beside = {"ha": "right", "va": "center"}
        self.numbers = [table.text(at, row, "", **beside) for row in rows for at in columns]
        return [*self.bars, self.here, self.right, self.broken, *self.numbers]

    def update(self, dtype, x):
        results = self.results[dtype]
        for row, (bar, (_, slopes)) in enumerate(zip(self.bars, results, strict=True)):
            bar.set_data(self.x.numpy(), [math.nan if math.isnan(slope) else row for slope in slopes])
        here = [(values[x + self.reach], slopes[x + self.reach]) for values, slopes in results]
        for text, number in zip(self.numbers, itertools.chain(*here), strict=True):
            text.set_text("NaN" if math.isnan(number) else style.number(number, ".3g"))
        broken = [row for row, pair in enumerate(here) if math.isnan(pair[1])]
        right = [row for row in range(len(here)) if row not in broken]
        self.here.set_data([x, x], [-0.5, 2.5])
        self.right.set_data([x] * len(right), right)
        self.broken.set_data([x] * len(broken), broken)

        largest = torch.finfo(self.formats[dtype]).max
        end = f"{largest:,.0f}" if largest < 1e6 else f"{largest:.2g}"
        exp, other = f"exp({abs(x)})", f"exp({style.number(-abs(x))})"
        if broken:
            how = (
                f"{style.number(x)} divided by it is 0, and the slope of the first form infinity times 0: NaN"
                if x < 0
                else "the second form divides infinity by infinity: NaN"
            )
            return (
                f"{exp} is beyond {dtype}, which ends at {end}: infinite. So {how}. "
                f"The other two need only {other}, almost 0."
            )
        first, ours = here[0][1], here[-1][1]
        if abs(first - ours) > 0.1 * abs(ours):
            return (
                f"{exp} still fits into {dtype}. But the slope of the first form has a factor, "
                f"−x / (1 + exp(−x))², that is too small for it: a number, and a wrong one."
            )
        return f"{exp} is {math.exp(abs(x)):.3g}, and {dtype} ends at {end}: so all three are right here."


def slope_of(f, x: Tensor) -> Tensor:
    """The slope of f at each entry of x, by autograd, as in the lesson."""
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


def steep(slope: float) -> str:
    """A slope to three decimals; more if it is almost, but not, 0 or 1."""
    if slope in (0, 1):
        return f"{slope:g}"
    if abs(slope) < 1e-4 or abs(slope - 1) < 1e-3:
        return style.number(slope, ".6f")
    return style.number(slope, ".3g" if abs(slope) < 0.1 else ".3f")


def part(number: float) -> str:
    """A number between −1 and 1 for the eye: as a decimal, or one part of many."""
    if abs(number) >= 1e-3:
        return style.number(number, ".3g")
    if abs(number) < 1e-9:
        return "within a billionth of 0"
    parts = 1 / abs(number)
    about = "" if math.isclose(parts, round(parts), rel_tol=1e-12) else "about "  # 1/4 ** 5 is 1/1024
    if parts > 1e4:
        whole, about = f"{float(f'{parts:.3g}'):,.0f}", "about "
    else:
        whole = f"{parts:.0f}"
    return f"{about}{'−' if number < 0 else ''}1/{whole}"
