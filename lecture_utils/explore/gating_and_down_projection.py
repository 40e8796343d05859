"""Lesson 04: gate and candidate of one token; the width of a gated network for any H; other gates."""

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor

from lecture_utils.llama import PRESETS, gelu, intermediate_size, relu, sigmoid, silu
from lecture_utils.plots import style

from .explorer import Explorer, choice, listed, slider, stops

CURVES = {"SiLU": silu, "sigmoid": sigmoid, "ReLU": relu, "z itself": lambda z: z}


class Gate(Explorer):
    """One token at three units of a gated network: its features and the curve set gates and products.

    Left, candidate, gate and product of each unit; dashed is what the product would be if it grew with
    the token, as the candidate does; an arrow marks a bar that goes on. Right, where the z of each unit
    lies on the curve (hollow: before the token was multiplied).

    Args:
        gate_weight: [D, 2], makes the z of a token.
        up_weight: [D, 2], makes its candidates. Both are those of the lesson, unless you give your own.

    Source: Shazeer, "GLU Variants Improve Transformer", 2020, section 2.
    """

    size = (7.5, 4.2)
    panels = {"ncols": 2, "width_ratios": (1.9, 1)}
    heights = (-6.5, 26)  # of the bars
    reach = (-8.5, 6.5)  # of z

    def __init__(
        self,
        gate_weight: Tensor | tuple = ((1.0, 2.0), (0.0, 1.0), (1.0, 0.0)),
        up_weight: Tensor | tuple = ((1.0, 0.0), (0.0, 1.0), (1.0, -1.0)),
    ) -> None:
        self.gate_weight, self.up_weight = torch.as_tensor(gate_weight), torch.as_tensor(up_weight)
        super().__init__(
            feature_1=slider("feature 1", -3, 3, 2.0, step=0.5),
            feature_2=slider("feature 2", -3, 3, -1.0, step=0.5),
            factor=slider("the token times", 0.5, 2, 1.0, step=0.5),
            curve=choice("curve", CURVES, "SiLU"),
        )

    def draw(self, units, curve):
        numbers = range(len(self.gate_weight))
        units.axhline(0, color=style.MUTED, linewidth=0.9)
        # As thick lines: three artists to move, not nine bars.
        self.bars = [
            units.vlines([], 0, [], color=color, linewidth=72 / len(numbers))
            for color in (style.UP, style.GATE, style.OUTPUT)
        ]
        self.grown = units.bar([unit + 0.28 for unit in numbers], [0] * len(numbers), width=0.23, fill=False,
                               edgecolor=style.REFERENCE, linestyle="--", linewidth=1.2).patches  # fmt: skip
        self.cut = [units.plot([], [], mark, color="white", markersize=8)[0] for mark in "v^"]
        units.set(ylim=self.heights, xlim=(-0.5, len(numbers) - 0.5), ylabel="value")
        units.set_title("Each unit: candidate × gate = product")
        units.set_xticks(numbers, [f"unit {unit + 1}\n\n\n" for unit in numbers])  # above a table
        units.tick_params(axis="x", length=0)
        units.grid(axis="x", visible=False)
        below = {"va": "top", "linespacing": 1.2, "transform": units.get_xaxis_transform()}
        self.table = [units.text(unit, -0.09, "", ha="center", fontsize=10, **below) for unit in numbers]
        for line, (word, color) in enumerate(
            (("candidate", style.UP), ("× gate", style.GATE), ("= product", style.OUTPUT))
        ):
            units.text(-0.52, -0.09, "\n" * line + word, color=color, ha="right", fontsize=10,
                       fontweight="bold", **below)  # fmt: skip

        left, right = self.reach
        self.z = torch.linspace(left, right, 301)
        curve.axhspan(0, 1, color="#EEEEEE")
        curve.text(left + 0.3, 0.5, "0 to 1", color=style.MUTED, fontsize=10, va="center")
        (self.line,) = curve.plot(self.z.numpy(), self.z.numpy(), color=style.GATE)
        self.drops = curve.vlines([], 0, [], color=style.MUTED, linewidth=0.9)
        (self.before,) = curve.plot([], [], "o", color=style.GATE, markerfacecolor="white", markersize=7)
        (self.dots,) = curve.plot([], [], "o", color=style.GATE, markersize=8)
        # The number of each unit has a row of its own, so that two that meet can both be read.
        self.rows = [-2.3 - 0.8 * unit for unit in numbers]
        (self.cards,) = curve.plot([], [], "s", color="white", markersize=10)
        self.numbers = [
            curve.plot([], [], color=style.GATE, marker=f"${unit + 1}$", markersize=8)[0] for unit in numbers
        ]
        self.beyond = [curve.plot([], [], mark, color=style.GATE, markersize=5)[0] for mark in "<>"]
        curve.set(xlim=self.reach, ylim=(self.rows[-1] - 0.5, right), xlabel="z", ylabel="gate")
        curve.set(title="The z of each unit", yticks=range(0, 7, 2))
        dots = [self.before, self.dots, self.cards, *self.numbers, *self.beyond]
        return [*self.bars, *self.grown, *self.cut, *self.table, self.line, self.drops, *dots]

    def update(self, feature_1, feature_2, factor, curve):
        gate_of, token = CURVES[curve], torch.tensor([feature_1, feature_2])
        z_before = F.linear(token, self.gate_weight)
        before = gate_of(z_before) * F.linear(token, self.up_weight)
        z, candidates = F.linear(factor * token, self.gate_weight), F.linear(factor * token, self.up_weight)
        gates = gate_of(z)
        products = gates * candidates

        parts, shifts = (candidates, gates, products), (-0.28, 0, 0.28)
        for bars, shift, values in zip(self.bars, shifts, parts, strict=True):
            places = [unit + shift for unit in range(len(z))]
            bars.set_segments(_upright(places, [0] * len(z), values.tolist()))
        for bar, value in zip(self.grown, (factor * before).tolist(), strict=True):
            bar.set_height(value)
            bar.set_visible(factor != 1 and value != 0)
        rows = torch.stack(parts, 1).tolist()
        for text, row in zip(self.table, rows, strict=True):
            text.set_text("\n".join(map(_written, row)))
        low, high = self.heights
        cut = [
            [unit + shift for unit, row in enumerate(rows) for shift, value in zip(shifts, row, strict=True)
             if (value < low, value > high)[end]]
            for end in (0, 1)
        ]  # fmt: skip
        for arrows, places, edge in zip(self.cut, cut, (low + 1, high - 1), strict=True):
            arrows.set_data(places, [edge] * len(places))

        self.line.set_ydata(gate_of(self.z).numpy())
        self.before.set_data(z_before.numpy(), gate_of(z_before).numpy())
        self.before.set_visible(factor != 1)
        self.dots.set_data(z.numpy(), gates.numpy())
        self.drops.set_segments(_upright(z.tolist(), self.rows, gates.tolist()))
        # A number whose dot is outside stays in the frame, with an arrow to where the dot is.
        left, right = self.reach
        below, above = z < left, z > right
        at = torch.where(below, left + 1.1, torch.where(above, right - 1.1, z)).tolist()
        self.cards.set_data(at, self.rows)
        for number, x, y in zip(self.numbers, at, self.rows, strict=True):
            number.set_data([x], [y])
        for arrows, x, out in zip(self.beyond, (left + 0.4, right - 0.4), (below, above), strict=True):
            ys = [y for y, outside in zip(self.rows, out.tolist(), strict=True) if outside]
            arrows.set_data([x] * len(ys), ys)

        if not token.any():
            return "The token is all zeros, so each candidate, each z and each product is 0."
        count = len(cut[0]) + len(cut[1])
        plural = count > 1
        ends = f" {count} bar{'s are' if plural else ' is'} cut off (arrow{'s' * plural})." if count else ""
        says = ""
        if factor != 1:
            times = f"times {factor:g}"
            says = f"Token, z (hollow: before) and candidates are {times}; dashed: products {times}. "
        if factor == 1 or gates.abs().max() < 0.05:
            return says + _gates_in_words(z.tolist(), gates.tolist(), candidates.tolist(), curve) + ends
        if curve in ("ReLU", "z itself"):
            which = {
                "ReLU": "An open gate is z: a product is 0, or",
                "z itself": "The gate is z, so each product is",
            }
            return f"{says}{which[curve]} times {factor:g} × {factor:g} = {factor**2:g}.{ends}"
        pairs = zip(before.tolist(), products.tolist(), strict=True)
        changes = ", ".join(f"{_written(a)} → {_written(b)}" for a, b in pairs)
        return f"{says}Gates move along the curve, so each product has its own factor: {changes}.{ends}"


def _upright(xs, low, high):
    """A line from low to high at each x."""
    return [[(x, a), (x, b)] for x, a, b in zip(xs, low, high, strict=True)]


def _gates_in_words(z: list[float], gates: list[float], candidates: list[float], curve: str) -> str:
    """Which gate is the most open, which are negative, which are nearly shut."""
    if max(map(abs, gates)) < 0.05:
        if curve == "ReLU":
            return "Every gate is shut: no z is above 0. Nothing passes, however large the candidates."
        where = "0 or far below" if max(z) >= 0 else "far below 0"
        return f"Every gate is nearly shut: each z is {where}. Little passes, however large the candidates."
    largest = max(gates)
    open_ = [unit for unit, gate in enumerate(gates) if gate == largest]
    says = []
    if largest >= 0.05 and len(open_) > 1:
        end = "above 1, so they enlarge their candidates" if largest > 1 else f"{largest:.0%} passes"
        says = [f"{_units(open_)} are the most open, {_written(largest)} each: {end}."]
    elif largest >= 0.05:
        (unit,) = open_
        if candidates[unit] == 0:
            end = ", but its candidate is 0"
        elif largest > 1:
            end = f", above 1, so it enlarges candidate {unit + 1}"
        else:
            end = f", so {largest:.0%} of candidate {unit + 1} passes"
        says = [
            f"Gate {unit + 1} is the most open: z = {_written(z[unit])} makes it {_written(largest)}{end}."
        ]
    negative = [unit for unit, gate in enumerate(gates) if gate <= -0.05]
    shut = [unit for unit, gate in enumerate(gates) if abs(gate) < 0.05]
    if len(negative) == 1:
        size = gates[negative[0]]
        enlarges = " and enlarges it" if size < -1 else ""
        says.append(
            f"{_units(negative)} is negative, {_written(size)}: it turns its candidate over{enlarges}."
        )
    elif negative:
        strongest = min(negative, key=lambda unit: gates[unit] * (candidates[unit] != 0))
        own = ""
        if gates[strongest] < -1:
            own = f"; gate {strongest + 1} also enlarges its own, {_written(-gates[strongest])} times"
        says.append(f"{_units(negative)} are negative: they turn their candidates over{own}.")
    if shut:
        nearly = "nearly " if any(gates[unit] for unit in shut) else ""
        says.append(f"{_units(shut)} {'are' if len(shut) > 1 else 'is'} {nearly}shut.")
    if curve == "sigmoid":
        says.append("A sigmoid is never below 0 nor above 1.")
    elif not negative and not shut:
        says.append("No gate is shut, and none is negative.")
    return " ".join(says)


def _units(units: list[int]) -> str:
    return f"Gate{'s' * (len(units) > 1)} {listed(unit + 1 for unit in units)}"


def _written(number: float) -> str:
    """With two decimals, one from 10 on, none that are 0."""
    if 0 < abs(number) < 0.005:
        return "≈0"
    return style.number(number, ".2f" if abs(number) < 9.995 else ".1f").rstrip("0").rstrip(".")


class Widths(Explorer):
    """The width D that Llama's rule gives for any H, step by step, and what it costs in parameters.

    Above, D / H for every H (in steps too fine to see), with the published models. Below, the parameters
    of the gated network after each step of the rule, against those of a plain network of width 4H.

    Source: `FeedForward.__init__` in Meta's `llama/model.py`; Shazeer, 2020, for the equal budget.
    """

    size = (7.5, 4.2)
    panels = {"nrows": 2, "height_ratios": (2.3, 1)}
    top = 4.6  # of D / H

    def __init__(self) -> None:
        small = (64, 128, 192, 256, 320, 384, 512, 576, 768)
        large = (1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 12288, 16384)
        super().__init__(
            hidden_size=stops("hidden size H", small + large, 4096),
            multiple_of=stops("multiple_of", (1, 32, 64, 256, 1024, 4096), 256),
            multiplier=stops("multiplier", (1.0, 1.1, 1.2, 1.3, 1.4, 1.5), 1.0),
        )

    def draw(self, width, budget):
        self.models = {}
        for name, config in PRESETS.items():
            self.models.setdefault((config.hidden_size, config.intermediate_size), []).append(name)
        for ratio in (8 / 3, 4):
            width.axhline(ratio, color=style.REFERENCE, linestyle="--", linewidth=1.2)
        # The names stand below 8/3, where the rule does not come, in the order of the circles above them.
        for size, row, name in (
            (576, 0, "SmolLM2"), (2048, 0, "3.2-1B"), (2048, 1, "TinyLlama"), (3072, 2, "3.2-3B"),
            (4096, 0, "3-8B"), (4096, 1, "2-7B"), (5120, 2, "2-13B"), (8192, 0, "70B"), (16384, 0, "405B"),
        ):  # fmt: skip
            top = max(d / h for h, d in self.models if h == size)
            width.plot([size, size], [2.46 - 0.26 * row, top], color="#BBBBBB", linewidth=0.9, zorder=0)
            width.text(size, 2.36 - 0.26 * row, name, ha="center", va="center", fontsize=10)
        circles = {"marker": "o", "markersize": 7, "color": style.REFERENCE, "linestyle": "none"}
        # Steps of at most H/256: where the rule jumps, D / H is right to a pixel.
        octaves = (range(h, 2 * h, max(1, h // 256)) for h in (2**n for n in range(6, 14)))
        self.sizes = [*itertools.chain(*octaves), 16384]
        (self.rule,) = width.plot(self.sizes, [0] * len(self.sizes), color=style.OUTPUT, linewidth=1.6)
        (self.others,) = width.plot([], [], **circles, markerfacecolor="white")
        (self.given,) = width.plot([], [], **circles)
        (self.here,) = width.plot([], [], "o", color=style.OUTPUT, markersize=12, markerfacecolor="none")
        (self.above,) = width.plot([], [], "^", color=style.OUTPUT, markersize=9)
        width.set(xscale="log", xlim=(58, 18500), ylim=(1.68, self.top))
        width.set(title="The width D that the rule gives, as a multiple of H")
        width.set(xlabel="hidden size H")
        what = {
            self.here: "your H (▲: farther up)",
            self.others: "published (upper name: upper circle)",
            self.given: "published, and the rule gives its D",
        }
        width.legend(what, what.values(), loc="lower left", borderpad=0, labelspacing=0.3, handletextpad=0.2)
        width.set_xticks([2**n for n in range(6, 15)], [f"{2**n:,}" for n in range(6, 15)])
        width.minorticks_off()
        width.set_yticks([8 / 3, 3, 3.5, 4], ["equal budget: 8/3", "3", "3.5", "plain: 4"])

        colors = [style.INPUT] + [style.OUTPUT] * 3
        self.bars = budget.barh(range(4), [100, 0, 0, 0], color=colors, height=0.64).patches
        (self.tip,) = budget.plot([], [], ">", color=style.OUTPUT, markersize=12)  # of a bar that goes on
        self.numbers = [budget.text(210, row, "", va="center", fontsize=10) for row in range(4)]
        budget.axvline(100, color=style.REFERENCE, linestyle="--", linewidth=1.2)
        budget.set_yticks(range(4), ["plain: 4H", "gated: 8/3 · H", "× multiplier", "rounded up"])
        budget.set(xlim=(0, 240), ylim=(3.5, -0.5))
        budget.set(title="Parameters, in percent of the plain network's")
        budget.text(210, -0.8, "width D", fontsize=12, fontweight="bold")
        budget.set_xticks([0, 50, 100, 150, 200])
        budget.spines["bottom"].set_bounds(0, 200)
        budget.grid(axis="y", visible=False)
        lines = [self.rule, self.others, self.given, self.here, self.above]
        return [*lines, *self.bars[1:], self.tip, *self.numbers]

    def update(self, hidden_size, multiple_of, multiplier):
        rule = {h: intermediate_size(h, multiple_of, multiplier) for h in self.sizes}
        self.rule.set_ydata([width / h for h, width in rule.items()])
        for circles, given in ((self.given, True), (self.others, False)):
            shown = [(h, width) for h, width in self.models if (rule[h] == width) is given]
            circles.set_data([h for h, _ in shown], [width / h for h, width in shown])
        width = rule[hidden_size]
        self.here.set_data([hidden_size], [width / hidden_size])
        self.above.set_data([hidden_size], [self.top - 0.1])
        self.above.set_visible(width / hidden_size > self.top)

        third, times = intermediate_size(hidden_size, 1), intermediate_size(hidden_size, 1, multiplier)
        for bar, size in zip(self.bars[1:], (third, times, width), strict=True):
            bar.set_width(min(300 * size / (8 * hidden_size), 200))
        # Only rounding up can more than double the parameters.
        self.tip.set_data([201], [3])
        self.tip.set_visible(300 * width > 200 * 8 * hidden_size)
        for text, size in zip(self.numbers, (4 * hidden_size, third, times, width), strict=True):
            text.set_text(f"{size:,}")
        steps = self._steps(hidden_size, multiple_of, multiplier, third, times, width)
        return f"{steps} {_budget(hidden_size, multiplier, times, width)}"

    def _steps(self, hidden_size, multiple_of, multiplier, third, times, width):
        says = f"8/3 · {hidden_size:,} {'is cut to' if 8 * hidden_size % 3 else 'is'} {third:,}"
        if multiplier != 1:
            cut = "is" if round(multiplier * third, 6) == times else "cut to"
            says += f", times {multiplier:g} {cut} {times:,}"
        if multiple_of != 1:
            says += f", up to a multiple of {multiple_of:,}"
        if names := self.models.get((hidden_size, width)):
            return f"{says}: D = {width:,}, as in {names[0]}."
        ratio = round(width / hidden_size, 2)
        sign = "=" if ratio * hidden_size == width else "≈"
        outside = ", off the picture" if ratio > self.top else ""
        return f"{says}: D = {width:,} {sign} {ratio:g} H{outside}."


def _budget(hidden_size: int, multiplier: float, times: int, width: int) -> str:
    """What three matrices of this width cost, against the two of a plain network of width 4H."""
    gated, plain = 3 * hidden_size * width, 8 * hidden_size**2
    unit, word = next((u, w) for u, w in ((10**9, " billion"), (10**6, " million"), (1, "")) if plain >= u)
    counts = f"{_count(gated / unit)} against {_count(plain / unit)}{word} parameters"
    more = gated / plain - 1
    if abs(more) < 0.02:
        apart = f" within 2% ({_percent(abs(more))} {'more' if more > 0 else 'less'})"
        within = apart if abs(more) >= 0.0005 else ""
        return f"The budget is kept{within}: {counts}."
    if multiplier == 1:
        why = ", as H is small for this multiple_of" if more > 0.2 else ""
        return f"Rounding up adds {_percent(more)}{why}: {counts}."
    if width == times:
        return f"The multiplier adds {_percent(more)}: {counts}."
    if width / times > multiplier:
        return f"Rounding up makes most of the {_percent(more)} extra: {counts}."
    return f"Multiplier and rounding add {_percent(more)}: {counts}."


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.0995 else f"{share:,.0%}"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


class Family(Explorer):
    """Four members of the family of gated networks: the product of one candidate, by the z of its gate.

    A dot is the product at your z; on the right the four as numbers.

    Source: Shazeer, "GLU Variants Improve Transformer", 2020, section 2.
    """

    height = 4.4  # of the axis, up and down

    def __init__(self) -> None:
        super().__init__(
            z=slider("z", -4, 2, 1.0, step=0.25), candidate=slider("candidate", -2, 2, 2.0, step=0.5)
        )

    def draw(self, axes):
        axes.axhline(0, color=style.MUTED, linewidth=0.9, zorder=1)
        self.z = torch.linspace(-4, 2, 121)
        (self.at,) = axes.plot([], [], color=style.MUTED, linewidth=0.9)
        # Four curves of one kind: colours only tell them apart; Llama's has the colour of our layer.
        self.gates = {"bilinear": CURVES["z itself"], "ReGLU": relu, "GEGLU": gelu, "SwiGLU": silu}
        colors = style.INPUT, style.POSITION, style.WEIGHT, style.OUTPUT
        self.curves, self.numbers = [], []
        axes.text(1.03, 0.83, "product", transform=axes.transAxes)
        for row, (name, color) in enumerate(zip(self.gates, colors, strict=True)):
            wide = {"linewidth": 6, "alpha": 0.45} if name == "bilinear" else {}  # seen under the others
            self.curves += axes.plot(self.z, self.z, color=color, **wide)
            height = 0.72 - 0.11 * row
            axes.text(1.03, height, name, color=color, fontweight="bold", transform=axes.transAxes)
            self.numbers.append(axes.text(1.27, height, "", ha="right", transform=axes.transAxes))
        self.dots = axes.scatter([0] * 4, [0] * 4, s=42, color=colors, zorder=3)
        axes.set(title="Gate × candidate, for four kinds of gate", xlim=(-4.15, 2.15))
        axes.set(ylim=(-self.height, self.height), xlabel="z, what the gate projection gives")
        axes.set(ylabel="product")
        return [self.at, *self.curves, self.dots, *self.numbers]

    def update(self, z, candidate):
        for curve, gate in zip(self.curves, self.gates.values(), strict=True):
            curve.set_ydata((candidate * gate(self.z)).numpy())
        gates = [gate(torch.tensor(z)).item() for gate in self.gates.values()]
        products = [candidate * gate for gate in gates]
        for text, product in zip(self.numbers, products, strict=True):
            text.set_text(_written(product))
        self.dots.set_offsets([(z, product) for product in products])
        self.at.set_data([z, z], [-self.height, self.height])

        line, _, gelu_says, silu_says = map(_written, products)
        if candidate == 0:
            return (
                f"The candidate is 0, so every product is 0, whatever the gate: z = {_written(z)} or another."
            )
        turned = ", turned over" if candidate < 0 else ""
        says = f"Each curve is its gate times {_written(candidate)}{turned}."
        if z == 0:
            return f"{says} At z = 0 every gate is 0, and so is every product."
        if z > 0:
            return (
                f"{says} At z = {_written(z)}, bilinear and ReGLU give z times candidate, {line}; GEGLU gives"
                f" {gates[2] / z:.0%} of that and SwiGLU {gates[3] / z:.0%}."
            )
        outside = " (off the picture)" if abs(products[0]) > self.height else ""
        return (
            f"{says} At z = {_written(z)}, bilinear gives z times candidate, {line}{outside}, and ReGLU 0."
            f" GEGLU ({gelu_says}) and SwiGLU ({silu_says}) leave 0 only a little, and come back to it."
        )
