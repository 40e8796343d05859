"""Lesson 02: the weight; both norms in the plane; a constant that one of them feels; another eps."""

import math

import numpy as np
import torch
from matplotlib.patches import Circle, Ellipse
from torch import Tensor

from lecture_utils.llama import LayerNorm, RMSNorm
from lecture_utils.plots import rmsnorm_by_hand as plots
from lecture_utils.plots import style

from .explorer import Explorer, log_slider, slider, toggle

MARK = {"color": style.REFERENCE, "fillstyle": "none", "markersize": 9, "markeredgewidth": 1.6}


def short(number: float, digits: int = 2) -> str:
    """As it is said, and as code has it: 0.0032, 1.3e-5."""
    return f"{number:.{digits}g}".replace("e-0", "e-")


class Weight(Explorer):
    """Tokens of two features, divided by their RMS, then multiplied by a weight, which is moved."""

    size = (7.5, 4.1)
    panels = {"ncols": 2}

    def __init__(self) -> None:
        self.points = plots.cloud()
        # Marked: the token nearest to the diagonal, where a weight turns most.
        self.marked = (self.points[:, 0].abs() - self.points[:, 1].abs()).abs().argmin().item()
        super().__init__(
            first=slider("weight of feature 1", -2.0, 2.0, 1.6, step=0.1),
            second=slider("weight of feature 2", -2.0, 2.0, 0.6, step=0.1),
        )

    def draw(self, left, right):
        plots.circle(left, self.points)
        left.set_title("Divided by its RMS")
        self.divided = RMSNorm(2)(self.points).detach()
        left.plot(*self.divided[self.marked, :, None].numpy(), "o", **MARK)
        right.plot(*self.divided.T.numpy(), "o", color=style.OUTPUT, fillstyle="none", markersize=4.7)
        right.add_patch(Circle((0, 0), 2**0.5, fill=False, color="#CCCCCC"))
        self.ellipse = Ellipse((0, 0), 1, 1, fill=False, color=style.REFERENCE, linestyle="--", linewidth=1.2)
        right.add_patch(self.ellipse)
        (self.moves,) = right.plot([], [], color="#CCCCCC", linewidth=0.9)
        (self.weighted,) = right.plot([], [], "o", color=style.OUTPUT, markersize=4.7)
        (self.mark,) = right.plot([], [], "o", **MARK)
        right.set(aspect="equal", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
        right.set(title="Then times the weight", xlabel="feature 1")
        style.label_line(right, -3, 2.75, "before ○", style.OUTPUT)
        style.label_line(right, -3, 2.3, "after ●", style.OUTPUT)
        return [self.ellipse, self.moves, self.weighted, self.mark]

    def update(self, first, second):
        weighted = self.divided * torch.tensor([first, second])
        self.ellipse.set(width=8**0.5 * abs(first), height=8**0.5 * abs(second))
        # One line for all: not-a-number lifts the pen.
        moves = torch.stack((self.divided, weighted, weighted * torch.nan), 1)
        self.moves.set_data(*moves.reshape(-1, 2).T.numpy())
        self.weighted.set_data(*weighted.T.numpy())
        self.mark.set_data(*weighted[self.marked, :, None].numpy())
        return self.caption(weighted, first, second)

    def caption(self, weighted: Tensor, first: float, second: float) -> str:
        weight = f"Weight ({style.number(first)}, {style.number(second)})"
        if first == second == 0:
            return f"{weight}: nothing is left of any token."
        if first == second == 1:
            return f"{weight}, as before training: every token keeps its direction, and RMS 1."
        if first == second:
            facing = "keeps its direction" if first > 0 else "points the opposite way"
            return (
                f"{weight}: every token {facing}, because both features change alike. A circle of RMS "
                f"{abs(first):g}."
            )
        if first == 0 or second == 0:
            gone, kept = (1, 2) if first == 0 else (2, 1)
            return (
                f"{weight}: feature {gone} is gone. Tokens differ only in feature {kept}: they lie on a line."
            )
        if first == -second:
            mirrored = 1 if first < 0 else 2
            return f"{weight}: a circle of RMS {abs(first):g}, but mirrored: feature {mirrored} changes sign."
        sizes = weighted.square().mean(-1).sqrt()
        turn = torch.cosine_similarity(weighted[self.marked], self.divided[self.marked], dim=0)
        turned = f"so the marked token turns by {math.degrees(math.acos(turn)):.0f}°"
        size = f"Tokens leave with RMS {sizes.min():.2f} to {sizes.max():.2f}, no longer 1."
        if first < 0 or second < 0:
            return f"{weight}: a negative weight changes the sign of its feature, {turned}. {size}"
        (less, small), (more, large) = sorted(((1, first), (2, second)), key=lambda pair: pair[1])
        return f"{weight}: feature {more} gains on feature {less}, {large / small:.1f} to 1, {turned}. {size}"


class Plane(Explorer):
    """Tokens of two features before and after RMSNorm and LayerNorm, as they are moved and shrunk.

    RMSNorm: Zhang and Sennrich, 2019, equation 4. LayerNorm: Ba, Kiros and Hinton, 2016, section 3.
    """

    size = (7.5, 3.5)
    panels = {"ncols": 3, "width_ratios": (0.66, 1, 1)}

    def __init__(self) -> None:
        # A seed that leaves no token so near the diagonal that LayerNorm's eps would show at once.
        self.cloud = torch.randn(24, 2, generator=torch.Generator().manual_seed(94))
        # Marked: the token whose features differ least. Of all, it is the first that eps makes smaller.
        self.marked = self.cloud.diff().abs().argmin().item()
        self.norms = RMSNorm(2), LayerNorm(2)
        super().__init__(
            shift=slider("added to both features", -4.0, 4.0, 0.0, step=0.1),
            scale=log_slider("then multiplied by", -4, 0.5, 1, step=0.05),
            eps=log_slider("eps", -7, -1, 1e-5, step=0.25),
        )

    def draw(self, lens, *planes):
        lens.axhline(0, color="#CCCCCC", linewidth=0.8)
        lens.axvline(0, color="#CCCCCC", linewidth=0.8)
        (self.zoomed,) = lens.plot([], [], "o", color=style.INPUT, markersize=3.5)
        (self.zoomed_mark,) = lens.plot([], [], "o", **MARK)
        self.root_eps = Circle((0, 0), 1, fill=False, color=style.MUTED, linestyle=":", linewidth=1.6)
        lens.add_patch(self.root_eps)
        below = {"transform": lens.transAxes, "ha": "center", "va": "top", "linespacing": 1.3}
        self.width = lens.text(0.5, -0.06, "", **below)
        self.ring = lens.text(0.5, -0.21, "dotted: √eps", color=style.MUTED, **below)
        lens.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=[], yticks=[])
        lens.set_title("Before, zoomed", color=style.INPUT)
        lens.spines[:].set_visible(True)
        self.rays, self.befores, self.afters, self.marks = [], [], [], []
        colors = {"RMSNorm": style.OUTPUT, "LayerNorm": plots.LAYER_NORM}
        for axes, (name, color) in zip(planes, colors.items(), strict=True):
            circle = {"fill": False, "color": style.REFERENCE, "linestyle": "--", "linewidth": 1.2}
            axes.add_patch(Circle((0, 0), 2**0.5, **circle))
            self.rays += axes.plot([], [], color="#CCCCCC", linewidth=0.9)
            self.befores += axes.plot([], [], "o", color=style.INPUT, markersize=4)
            self.afters += axes.plot([], [], "o", color=color, markersize=5)
            self.marks += axes.plot([], [], "o", **MARK)
            axes.set(aspect="equal", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), title=name, xlabel="feature 1")
            axes.set(xticks=range(-2, 3), yticks=range(-2, 3))
            style.label_line(axes, 1.3, 2.65, "before", style.INPUT, ha="right")
            style.label_line(axes, 2.5, 2.65, "after", color, ha="right")
        planes[0].set_ylabel("feature 2")
        planes[1].set_yticklabels([])
        zoomed = [self.root_eps, self.ring, self.zoomed, self.zoomed_mark, self.width]
        return [*zoomed, *self.rays, *self.befores, *self.afters, *self.marks]

    def update(self, shift, scale, eps):
        before = scale * (self.cloud + shift)
        reach = before.abs().max().item()
        radius = (2 * eps) ** 0.5 / reach  # two features with RMS √eps
        self.zoomed.set_data(*(before / reach).T.numpy())
        self.zoomed_mark.set_data(*(before / reach)[self.marked, :, None].numpy())
        self.root_eps.set_radius(radius)
        for artist in (self.root_eps, self.ring):
            artist.set_visible(0.08 < radius < 1.6)  # else a speck, or outside of the frame
        self.width.set_text(f"{short(2.3 * reach)} wide")
        outputs = []
        for norm, rays, befores, afters, mark in zip(
            self.norms, self.rays, self.befores, self.afters, self.marks, strict=True
        ):
            norm.eps = eps
            after = norm(before).detach()
            # One line for all rays: not-a-number lifts the pen.
            rays.set_data(*torch.stack((before, after, after * torch.nan), 1).reshape(-1, 2).T.numpy())
            befores.set_data(*before.T.numpy())
            afters.set_data(*after.T.numpy())
            mark.set_data(*torch.stack((before, after))[:, self.marked].T.numpy())
            outputs.append(after)
        outside = (before.abs() > 2.5).any(-1).sum().item()
        beyond = f" (Blue dots outside: {outside}.)" if outside else ""
        return self.caption(before, *outputs, shift, eps) + beyond

    def caption(self, before: Tensor, after: Tensor, centred: Tensor, shift: float, eps: float) -> str:
        sizes, left, left_centred = (t.square().mean(-1).sqrt() for t in (before, after, centred))
        root = f"√eps = {short(eps**0.5)}"
        if left.max() < 0.2:
            return (
                f"All is far below {root}, so both norms divide by hardly more than that: RMSNorm leaves the "
                f"cloud itself, {eps**-0.5:,.1f} times as large, LayerNorm its differences. No circle."
            )
        if left_centred[self.marked] < 0.98:
            size, one, one_centred = (t[self.marked].item() for t in (sizes, left, left_centred))
            spread = before[self.marked].std(correction=0).item()
            return (
                f"The marked token's RMS, {short(size)}, is {against(one)} {root}: RMSNorm leaves "
                f"RMS {one:.2f}. LayerNorm subtracts the mean first: {short(spread)}, {against(one_centred)} "
                f"√eps, so {one_centred:.2f} is left."
            )
        if shift == 0:
            return (
                f"Tokens of RMS {short(sizes.min())} to {short(sizes.max())}, well above {root}, land on the "
                "circle, each in its own direction. LayerNorm keeps only which feature is larger: two points."
            )
        corner, sign = ("(1, 1)", 1) if shift > 0 else ("(−1, −1)", -1)
        cosines = [sign * t.sum(-1) / t.norm(dim=-1) / 2**0.5 for t in (before, self.cloud)]
        near, without = ((cosine > 0.75**0.5).sum().item() for cosine in cosines)
        added = style.number(shift)
        count = f"With {added} added, {near} of {len(before)} tokens point within 30° of {corner}"
        if near == without:
            return (
                f"{count}, as many as without, because {added} is little beside the tokens themselves. "
                "LayerNorm subtracts it."
            )
        return (
            f"{count}; without, {without} did. The more is added, the less a token's features differ beside "
            "it. LayerNorm subtracts it."
        )


def against(left: float) -> str:
    """How a size stands to √eps if the norm leaves this RMS."""
    if left < 0.6:  # under three quarters of √eps
        return "below" if left > 0.2 else "far below"
    return "near" if left < 0.8 else "above" if left < 0.98 else "well above"


class Shift(Explorer):
    """A constant is added to a token of four features: RMSNorm feels it, LayerNorm does not."""

    size = (7.5, 3.5)
    panels = {"ncols": 3, "width_ratios": (0.9, 0.9, 1.6)}

    def __init__(self) -> None:
        self.norms = RMSNorm(4), LayerNorm(4)
        self.constants = torch.linspace(-5, 5, 201)
        super().__init__(
            constant=slider("added to every feature", -5.0, 5.0, 1.0, step=0.25),
            first=slider("feature 1 of the token", -3, 3, 1),
            second=slider("feature 2 of the token", -3, 3, -2),
            whole=toggle("for every constant"),
        )

    def draw(self, before, after, curves):
        features = np.arange(1, 5)
        self.bars = before.bar(features, [0] * 4, color=style.INPUT)
        (self.mean,) = before.plot([0.3, 4.7], [0, 0], color=style.MUTED, linestyle=":")
        before.text(2.5, 8.9, "dotted: mean", color=style.MUTED, fontsize=10, ha="center")
        before.set(ylim=(-8.4, 10), yticks=range(-8, 9, 4), title="Token before")
        self.pairs, self.lines, self.dots = [], [], []
        for name, color, aside in (("RMSNorm", style.OUTPUT, -0.2), ("LayerNorm", plots.LAYER_NORM, 0.2)):
            self.pairs.append(after.bar(features + aside, [0] * 4, 0.4, color=color))
            self.lines += curves.plot(self.constants.numpy(), [0] * len(self.constants), color=color)
            self.dots += curves.plot([], [], "o", color=color, markersize=9 - 10 * aside)
            style.label_line(curves, 12.5 * aside, 2.3, name, color, ha="center")
        for axes in (before, after):
            axes.axhline(0, color=style.MUTED, linewidth=0.8)
            axes.set(xticks=features, xlabel="feature")
            axes.grid(axis="x", visible=False)
        after.set(ylim=(-2.4, 2.75), yticks=range(-2, 3), title="Token after")
        curves.set(ylim=(-2.4, 2.75), yticks=range(-2, 3), xlim=(-5.3, 5.3), title="Feature 1 after")
        curves.set(xlabel="constant added to every feature")
        return [*self.bars, self.mean, *self.pairs[0], *self.pairs[1], *self.lines, *self.dots]

    def update(self, constant, first, second, whole):
        token = torch.tensor([first, second, 0.0, 3.0])
        moved = token + constant
        for bar, value in zip(self.bars, moved.tolist(), strict=True):
            bar.set_height(value)
        self.mean.set_ydata([moved.mean().item()] * 2)
        afters = []
        for norm, pair, line, dot in zip(self.norms, self.pairs, self.lines, self.dots, strict=True):
            after = norm(moved).detach()
            for bar, value in zip(pair, after.tolist(), strict=True):
                bar.set_height(value)
            line.set_ydata(norm(token + self.constants[:, None])[:, 0].detach().numpy())
            line.set_visible(whole)
            dot.set_data([constant], [after[0].item()])
            afters.append(after)
        return self.caption(moved, *afters, whole)

    def caption(self, moved: Tensor, after: Tensor, centred: Tensor, whole: bool) -> str:
        numbers = "[" + ", ".join(style.number(value) for value in moved.tolist()) + "]"
        mean, spread, rms = moved.mean(), moved.std(correction=0), moved.square().mean().sqrt()
        one, one_centred = (style.number(t[0].item(), ".2f") for t in (after, centred))
        if mean == 0:
            meet = ", and the curves meet" if whole else ""
            return (
                f"The mean of {numbers} is 0: LayerNorm has nothing to subtract, and its standard deviation "
                f"is the RMS. Feature 1 becomes {one} in both{meet}."
            )
        if whole:
            why = "far out the constant is most of every feature, so the curve nears −1 and 1"
            if after[0].abs() > 1.005:
                side = "1" if after[0] > 0 else "−1"
                why = (
                    f"beyond {side}, as it is further from 0 than the RMS; far out, the constant outweighs it"
                )
            return (
                f"RMSNorm makes {one} of feature 1: {why}. LayerNorm makes {one_centred} everywhere: the "
                "constant goes with the mean."
            )
        if mean.abs() > 2 * spread:
            low, high = (style.number(t.item(), ".2f") for t in (after.min(), after.max()))
            return (
                f"The mean of {numbers}, {style.number(mean)}, is large against the differences: RMSNorm "
                f"puts all features between {low} and {high}. LayerNorm subtracts the mean; feature 1 "
                f"becomes {one_centred}."
            )
        return (
            f"RMSNorm divides {numbers} by its RMS, {rms:.2f}: feature 1 becomes {one}. LayerNorm first "
            f"subtracts the mean, {style.number(mean)}, then divides by the standard deviation, "
            f"{spread:.2f}: {one_centred}."
        )


class Eps(Explorer):
    """What RMSNorm leaves of a token's RMS, in a model trained with eps 1e-5 and run with another."""

    size = (7.5, 3.6)
    trained = 1e-5  # Llama 2 and 3

    def __init__(self) -> None:
        self.sizes = torch.logspace(-7, 1, 241)
        super().__init__(
            eps=log_slider("eps that it runs with", -7, -3, 1e-6, step=0.1),
            size=log_slider("RMS of the token", -6, 0, 1e-3, step=0.1),
            outside=toggle("eps outside the root"),
        )

    def draw(self, axes):
        axes.plot(
            self.sizes.numpy(), self.after(self.sizes, self.trained), color=style.REFERENCE, linestyle="--"
        )
        axes.plot(self.trained**0.5, -0.015, "^", color=style.REFERENCE)
        (self.curve,) = axes.plot(self.sizes.numpy(), self.sizes.numpy(), color=style.OUTPUT)
        (self.against,) = axes.plot([], [], "^", color=style.OUTPUT)  # what the RMS is held against
        (self.gap,) = axes.plot([], [], color=style.MUTED, linestyle=":", linewidth=1.6)
        (self.meant,) = axes.plot([], [], "o", color=style.REFERENCE, markersize=8)
        (self.dot,) = axes.plot([], [], "o", color=style.OUTPUT, markersize=9)
        right = {"ha": "right", "fontweight": "bold"}
        axes.text(9, 0.05, f"trained: eps {short(self.trained)}", color=style.REFERENCE, **right)
        self.name = axes.text(9, 0.18, "", color=style.OUTPUT, **right)
        axes.text(9, 0.31, "▲ √eps; if outside, eps", color=style.MUTED, ha="right", fontsize=10)
        axes.set(xscale="log", xlim=(1e-7, 10), ylim=(-0.04, 1.06))
        axes.set_title("A token [r, −r]: the smaller it is, the more eps takes")
        axes.set(xlabel="r, its RMS before (log scale)", ylabel="its RMS after")
        return [self.curve, self.against, self.name, self.gap, self.meant, self.dot]

    def after(self, sizes: Tensor, eps: float, outside: bool = False) -> np.ndarray:
        """RMS after the norm of tokens [r, −r], for each r in `sizes`."""
        if outside:
            return (sizes / (sizes + eps)).numpy()
        return RMSNorm(2, eps)(sizes[:, None] * torch.tensor([1.0, -1.0]))[:, 0].detach().numpy()

    def update(self, eps, size, outside):
        token = torch.tensor([size])
        (meant,), (now,) = self.after(token, self.trained), self.after(token, eps, outside)
        self.curve.set_ydata(self.after(self.sizes, eps, outside))
        self.against.set_data([eps if outside else eps**0.5], [-0.015])
        self.name.set_text(f"runs: eps {short(eps)}{', outside' if outside else ''}")
        self.gap.set_data([size] * 2, [meant, now])
        self.meant.set_data([size], [meant])
        self.dot.set_data([size], [now])
        return self.caption(size, eps, outside, float(meant), float(now))

    def caption(self, size: float, eps: float, outside: bool, meant: float, now: float) -> str:
        token = f"[{short(size)}, −{short(size)}]"
        leaves = f"{token} leaves with RMS {short(now, 4)}"
        if math.isclose(eps, self.trained, rel_tol=1e-3) and not outside:
            return f"The eps of the training: {leaves}, as it did then, and so does every token."
        leaves += f", in training with {short(meant, 4)}"
        if abs(now / meant - 1) < 0.01:
            if not outside:
                why = f"Beside its mean of squares, {short(size**2)}, the two eps hardly differ."
            elif meant < 0.98:
                why = "The curves happen to cross."
            else:
                why = (
                    f"Its RMS is large against eps, as its mean of squares was against {short(self.trained)}."
                )
            return f"{leaves}: nobody would notice. {why}"
        if outside:
            return (
                f"{leaves}. Outside the root, eps is added to the RMS itself: half is left at RMS "
                f"{short(eps)}, not near √eps = {short(eps**0.5)}."
            )
        if max(now, meant) < 0.1:
            ratio, limit = now / meant, (self.trained / eps) ** 0.5
            return (
                f"{leaves}: {short(ratio, 3)} times that, though both are near 0. Under the root is almost "
                f"only eps, so the ratio nears √({short(self.trained)} / {short(eps)}) = {short(limit, 3)}."
            )
        return (
            f"{leaves}. Its mean of squares is {short(size**2)}: to add {short(eps)} to it is not the same "
            f"as to add {short(self.trained)}."
        )
