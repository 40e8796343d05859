"""Lesson 02: both norms in the plane; a constant that one of them feels; another eps than in training."""

import math

import numpy as np
import torch
from torch import Tensor

from lecture_utils.llama import LayerNorm, RMSNorm
from lecture_utils.plots import style

from .explorer import Explorer, log_slider, slider, toggle

FAINT = "#666666"


def short(number: float, digits: int = 2) -> str:
    """As it is said: 0.0032, 1.3e-5."""
    return f"{number:.{digits}g}".replace("e-0", "e-")


class Plane(Explorer):
    """Tokens of two features before and after RMSNorm and LayerNorm, as they are moved and shrunk.

    RMSNorm: Zhang and Sennrich, 2019, equation 4. LayerNorm: Ba, Kiros and Hinton, 2016, section 3.
    """

    size = (7.5, 3.5)
    panels = {"ncols": 3, "width_ratios": (0.66, 1, 1)}

    def __init__(self) -> None:
        # A seed that leaves no token so near the diagonal that LayerNorm's eps would show at once.
        self.cloud = torch.randn(24, 2, generator=torch.Generator().manual_seed(94))
        self.norms = RMSNorm(2), LayerNorm(2)
        super().__init__(
            shift=slider("added to both features", -4.0, 4.0, 0.0, step=0.1),
            scale=log_slider("then multiplied by", -4, 0.5, 1, step=0.05),
            eps=log_slider("eps", -7, -1, 1e-5, step=0.25),
        )

    def draw(self, lens, *planes):
        turn = np.linspace(0, 2 * np.pi, 200)
        self.circle = np.array((np.cos(turn), np.sin(turn)))
        lens.axhline(0, color="#CCCCCC", linewidth=0.8)
        lens.axvline(0, color="#CCCCCC", linewidth=0.8)
        (self.zoomed,) = lens.plot([], [], "o", color=style.INPUT, markersize=3.5)
        (self.root_eps,) = lens.plot([], [], color=FAINT, linestyle=":", linewidth=1.6)
        below = {"transform": lens.transAxes, "ha": "center", "va": "top", "linespacing": 1.3}
        self.width = lens.text(0.5, -0.06, "", **below)
        lens.text(0.5, -0.21, "dotted ring:\nRMS √eps", color=FAINT, **below)
        lens.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=[], yticks=[])
        lens.set_title("Before, zoomed", color=style.INPUT)
        lens.spines[:].set_visible(True)
        self.rays, self.befores, self.afters = [], [], []
        for axes, name in zip(planes, ("RMSNorm", "LayerNorm"), strict=True):
            axes.plot(*(2**0.5 * self.circle), color=style.REFERENCE, linestyle="--", linewidth=1.2)
            self.rays += axes.plot([], [], color="#CCCCCC", linewidth=0.9)
            self.befores += axes.plot([], [], "o", color=style.INPUT, markersize=4)
            self.afters += axes.plot([], [], "o", color=style.OUTPUT, markersize=5)
            axes.set(aspect="equal", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), title=name, xlabel="feature 1")
            axes.set(xticks=range(-2, 3), yticks=range(-2, 3))
            style.label_line(axes, 1.3, 2.65, "before", style.INPUT, ha="right")
            style.label_line(axes, 2.5, 2.65, "after", style.OUTPUT, ha="right")
        planes[0].set_ylabel("feature 2")
        planes[1].set_yticklabels([])
        return [self.root_eps, self.zoomed, self.width, *self.rays, *self.befores, *self.afters]

    def update(self, shift, scale, eps):
        before = scale * (self.cloud + shift)
        reach = before.abs().max().item()
        radius = (2 * eps) ** 0.5  # two features with RMS √eps
        self.zoomed.set_data(*(before / reach).T.numpy())
        self.root_eps.set_data(*(radius / reach * self.circle))
        self.width.set_text(f"square: {short(2.3 * reach)} wide")
        outputs = []
        for norm, rays, befores, afters in zip(self.norms, self.rays, self.befores, self.afters, strict=True):
            norm.eps = eps
            after = norm(before).detach()
            # One line for all rays: not-a-number lifts the pen.
            rays.set_data(*torch.stack((before, after, after * torch.nan), 1).reshape(-1, 2).T.numpy())
            befores.set_data(*before.T.numpy())
            afters.set_data(*after.T.numpy())
            outputs.append(after)
        outside = (before.abs() > 2.5).any(-1).sum().item()
        beyond = f" (Blue dots outside the frame: {outside}.)" if outside else ""
        return self.caption(before, *outputs, shift, eps) + beyond

    def caption(self, before: Tensor, after: Tensor, centred: Tensor, shift: float, eps: float) -> str:
        size, left, left_centred = (t.square().mean(-1).sqrt() for t in (before, after, centred))
        root = f"√eps = {short(eps**0.5)}"
        if left.max() < 0.2:
            return (
                f"All tokens are well below {root}, so RMSNorm divides each by nearly the same number, √eps. "
                f"What comes out is the cloud itself, {eps**-0.5:,.0f} times as large: no circle."
            )
        if left.median() < 0.98:
            small = "small" if left.median() < 0.5 else "not large"
            return (
                f"A token of RMS {short(size.median())} leaves RMSNorm with RMS {left.median():.2f}, not 1, "
                f"because it is {small} against {root}. The smaller a token, the deeper it sinks."
            )
        if left.min() < 0.98:
            return (
                f"The smallest tokens leave the circle first: RMS {short(size.min())} before, "
                f"{left.min():.2f} after RMSNorm, because {root} now counts beside it."
            )
        if left_centred.min() < 0.9:
            spread = (before - before.mean(-1, keepdim=True)).square().mean(-1).sqrt()
            return (
                "LayerNorm's tokens leave their points first: without its mean, one has RMS "
                f"{short(spread.min())}, not large against {root}. With its mean, it is: RMSNorm's stay."
            )
        if shift == 0:
            return (
                f"Tokens of RMS {short(size.min())} to {short(size.max())}, well above {root}, land on the "
                "circle, each in its own direction. LayerNorm keeps only which feature is larger: two points."
            )
        corner, sign = ("(1, 1)", 1) if shift > 0 else ("(−1, −1)", -1)
        cosines = [sign * t.sum(-1) / t.norm(dim=-1) / 2**0.5 for t in (before, self.cloud)]
        near, without = ((cosine > 0.75**0.5).sum().item() for cosine in cosines)
        count = f"Within 30° of {corner}: {near} of {len(before)} tokens"
        if near == without:
            return (
                f"{count}, as many as with nothing added, because {abs(shift):g} is little beside the tokens "
                "themselves. LayerNorm subtracts it."
            )
        return (
            f"{count}, and {without} with nothing added. What both features share draws them there. "
            "LayerNorm subtracts it."
        )


class Shift(Explorer):
    """A constant is added to a token of four features: RMSNorm feels it, LayerNorm does not."""

    size = (7.5, 3.5)
    panels = {"ncols": 3, "width_ratios": (0.8, 0.9, 1.7)}

    def __init__(self) -> None:
        self.norms = RMSNorm(4), LayerNorm(4)
        self.constants = torch.linspace(-6, 6, 241)
        super().__init__(
            constant=slider("added to every feature", -6.0, 6.0, 1.0, step=0.25),
            first=slider("feature 1 of the token", -4, 4, 1),
            second=slider("feature 2 of the token", -4, 4, -2),
        )

    def draw(self, before, after, curves):
        features = np.arange(1, 5)
        self.bars = before.bar(features, [0] * 4, color=style.INPUT)
        (self.mean,) = before.plot([0.3, 4.7], [0, 0], color=FAINT, linestyle=":")
        before.text(2.5, 11.3, "dotted: mean", color=FAINT, fontsize=10, ha="center")
        before.set(ylim=(-12.6, 13.6), yticks=range(-10, 11, 5), title="Token before")
        self.pairs, self.lines, self.dots = [], [], []
        for name, color, aside in (("RMSNorm", style.OUTPUT, -0.2), ("LayerNorm", style.POSITION, 0.2)):
            self.pairs.append(after.bar(features + aside, [0] * 4, 0.4, color=color))
            self.lines += curves.plot(self.constants.numpy(), [0] * len(self.constants), color=color)
            self.dots += curves.plot([], [], "o", color=color, markersize=9 - 10 * aside)
            style.label_line(curves, 15 * aside, 2.3, name, color, ha="center")
        for axes in (before, after):
            axes.axhline(0, color="#555555", linewidth=0.8)
            axes.set(xticks=features, xlabel="feature")
            axes.grid(axis="x", visible=False)
        after.set(ylim=(-2.6, 2.8), yticks=range(-2, 3), title="Token after")
        (self.balance,) = curves.plot([], [], color=FAINT, linestyle=":", linewidth=1.6)
        self.balanced = curves.text(0, -2.5, "mean 0", color=FAINT, fontsize=10, ha="center")
        curves.set(ylim=(-2.6, 2.8), yticks=range(-2, 3), xlim=(-6.4, 6.4), title="Feature 1 after")
        curves.set(xlabel="constant added to every feature")
        bars = [*self.bars, self.mean, *self.pairs[0], *self.pairs[1]]
        return [*bars, self.balance, self.balanced, *self.lines, *self.dots]

    def update(self, constant, first, second):
        token = torch.tensor([first, second, 0.0, 3.0])
        moved, mean = token + constant, token.mean().item()
        for bar, value in zip(self.bars, moved.tolist(), strict=True):
            bar.set_height(value)
        self.mean.set_ydata([mean + constant] * 2)
        self.balance.set_data([-mean] * 2, [-2.1, 2.1])
        self.balanced.set_x(-mean)
        afters = []
        for norm, pair, line, dot in zip(self.norms, self.pairs, self.lines, self.dots, strict=True):
            after = norm(moved).detach()
            for bar, value in zip(pair, after.tolist(), strict=True):
                bar.set_height(value)
            line.set_ydata(norm(token + self.constants[:, None])[:, 0].detach().numpy())
            dot.set_data([constant], [after[0].item()])
            afters.append(after)
        return self.caption(moved, *afters).replace("-", "−")

    def caption(self, moved: Tensor, after: Tensor, centred: Tensor) -> str:
        numbers = "[" + ", ".join(f"{value:g}" for value in moved.tolist()) + "]"
        mean, rms = moved.mean().item(), moved.square().mean().sqrt().item()
        # Adding 0.0 makes a zero of −0.0.
        one, one_centred = (round(t[0].item(), 2) + 0.0 for t in (after, centred))
        if mean == 0:
            return (
                f"The mean of {numbers} is 0: LayerNorm has nothing to subtract, and its standard deviation "
                f"is the RMS. The norms agree: feature 1 becomes {one:.2f} in both."
            )
        if (after.abs() - 1).abs().max() < 0.45:
            return (
                f"The mean of {numbers}, {mean:g}, is large against the differences: RMSNorm puts all "
                f"features between {after.min():.2f} and {after.max():.2f}. LayerNorm subtracts the mean: "
                "its output stays."
            )
        return (
            f"RMSNorm divides {numbers} by its RMS, {rms:.2f}: feature 1 becomes {one:.2f}. LayerNorm "
            f"subtracts the mean first, {mean:g}, and the constant with it: {one_centred:.2f}, whatever is "
            "added."
        )


class Eps(Explorer):
    """What RMSNorm leaves of a token's RMS, in a model trained with eps 1e-5 and run with another."""

    size = (7.5, 3.6)
    trained = 1e-5  # Llama 2 and 3

    def __init__(self) -> None:
        self.sizes = torch.logspace(-7, 1, 400)
        super().__init__(
            eps=log_slider("eps that it runs with", -8, -3, 1e-6, step=0.1),
            size=log_slider("RMS of the token", -6, 0, 1e-3, step=0.1),
            outside=toggle("eps outside the root"),
        )

    def draw(self, axes):
        axes.plot(
            self.sizes.numpy(), self.after(self.sizes, self.trained), color=style.REFERENCE, linestyle="--"
        )
        (self.curve,) = axes.plot(self.sizes.numpy(), self.sizes.numpy(), color=style.OUTPUT)
        (self.gap,) = axes.plot([], [], color=FAINT, linestyle=":", linewidth=1.6)
        (self.meant,) = axes.plot([], [], "o", color=style.REFERENCE, markersize=8)
        (self.dot,) = axes.plot([], [], "o", color=style.OUTPUT, markersize=9)
        right = {"ha": "right", "fontweight": "bold"}
        axes.text(9, 0.05, "trained: eps 1e-5", color=style.REFERENCE, **right)
        self.name = axes.text(9, 0.18, "", color=style.OUTPUT, **right)
        axes.set(xscale="log", xlim=(1e-7, 10), ylim=(-0.04, 1.06))
        axes.set_title("A token [r, −r]: with another eps, small tokens come out wrong")
        axes.set(xlabel="r, its RMS before (log scale)", ylabel="its RMS after")
        return [self.curve, self.name, self.gap, self.meant, self.dot]

    def after(self, sizes: Tensor, eps: float, outside: bool = False) -> np.ndarray:
        """RMS after the norm of tokens [r, −r], for each r in `sizes`."""
        if outside:
            return (sizes / (sizes + eps)).numpy()
        return RMSNorm(2, eps)(sizes[:, None] * torch.tensor([1.0, -1.0]))[:, 0].detach().numpy()

    def update(self, eps, size, outside):
        token = torch.tensor([size])
        (meant,), (now,) = self.after(token, self.trained), self.after(token, eps, outside)
        self.curve.set_ydata(self.after(self.sizes, eps, outside))
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
            why = f"Its mean of squares, {short(size**2)}, is large against either eps."
            return f"{leaves}: nobody would notice. {why if meant > 0.98 else 'The curves happen to cross.'}"
        if outside:
            return (
                f"{leaves}. Outside the root, eps is added to the RMS, not to its square: the curve bends "
                f"near RMS {short(eps)}, not near √eps = {short(eps**0.5)}."
            )
        return (
            f"{leaves}. Its mean of squares is {short(size**2)}: to add {short(eps)} to it is not the same "
            f"as to add {short(self.trained)}."
        )
