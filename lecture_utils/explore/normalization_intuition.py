"""Lesson 01: descent on raw and standardized features, which cells share a mean, and one far value."""

import math

import numpy as np
import torch
from matplotlib.collections import PolyCollection

from lecture_utils.llama import PRESETS, LayerNorm
from lecture_utils.plots import normalization_intuition as plots
from lecture_utils.plots import style

from .explorer import Explorer, choice, slider, stops


class Descent(Explorer):
    """Gradient descent on raw and on standardized features, while one example of 100 walks away.

    The data and the loss, half the mean squared error, are those of the lesson. Ellipses are lines of equal
    loss, at the same losses on both sides: their axes are the eigenvectors of the second derivatives
    `features.T @ features / n`, as long as 1 / √curvature. Each side's learning rate is the same share of
    its own limit, 2 / steepest curvature; along a direction of curvature c a step leaves 1 − rate · c.
    """

    size = (7.5, 3.4)
    panels = {"ncols": 3, "width_ratios": (0.4, 1, 1)}
    frame = -2.2, 7.2  # of both weights: up to the limit, no path leaves it

    def __init__(self) -> None:
        random = torch.Generator().manual_seed(0)
        raw = torch.randn(100, 2, generator=random) * torch.tensor([1.0, 5.0])  # [examples, features]
        raw = raw - raw.mean(0)
        target = raw @ torch.tensor([3.0, 0.6]) + torch.randn(100, generator=random)
        self.raw, self.target = raw.double().numpy(), (target - target.mean()).double().numpy()
        self.unit = self.raw.std(0)
        # The one that walks is the one nearest to the middle; its target stays as it is.
        self.walker = np.square(self.raw / self.unit).sum(1).argmin()
        best = np.linalg.lstsq(self.raw, self.target)[0]
        self.error = np.delete(np.square(self.raw @ best - self.target), self.walker).mean()
        super().__init__(
            first=slider("move feature 1", 0, 20, 0, unit="st. dev."),
            second=slider("move feature 2", 0, 20, 0, unit="st. dev."),
            share=slider("learning rate", 10, 110, 80, step=5, unit="% of limit"),
            steps=slider("steps", 0, 60, 10),
        )

    def draw(self, data, *panels):
        data.plot(*self.raw.T, "o", color=style.INPUT, markersize=2.5, alpha=0.5)
        (self.outlier,) = data.plot([], [], "o", color="white", markeredgecolor=style.INPUT)
        self.outlier.set(markersize=7, markeredgewidth=2)
        data.set(aspect="equal", xlim=(-13, 26), ylim=(-17, 111), xticks=(0, 20), yticks=range(0, 101, 20))
        data.set(xlabel="feature 1", ylabel="feature 2")
        data.set_title("One of 100\nwalks away", fontsize=10.5)
        self.sides = []
        for axes, name in zip(panels, ("Raw", "Standardized"), strict=True):
            (rings,) = axes.plot([], [], color="#B5C7D6", linewidth=1)
            (path,) = axes.plot([], [], color=style.OUTPUT, linewidth=1.3, marker="o", markersize=3)
            (start,) = axes.plot(0, 0, "o", color=style.INPUT, markersize=7)
            (star,) = axes.plot([], [], "*", color=style.REFERENCE, markersize=11)
            words = {"textcoords": "offset points", "fontweight": "bold", "annotation_clip": False}
            begin = axes.annotate("start", (0, 0), (-6, -3), ha="right", color=style.INPUT, **words)
            best = axes.annotate("best", (0, 0), (4, 9), ha="right", **words)
            title = axes.set_title(f"{name}:\ncondition number", fontsize=10.5)
            # Only the number moves: every letter that is drawn anew costs a tenth of a millisecond.
            number = axes.annotate("", (1, 0), (5, 1.5), xycoords=title, fontsize=10.5, va="bottom", **words)
            axes.set(aspect="equal", xlim=self.frame, ylim=self.frame, xlabel="weight 1")
            axes.set(xticks=range(-2, 8), yticks=range(-2, 8))
            axes.grid(False)
            self.sides.append((rings, path, start, star, best, number, begin))
        panels[0].set_ylabel("weight 2")
        return [self.outlier, *(artist for side in self.sides for artist in side)]

    def update(self, first, second, share, steps):
        features = self.raw.copy()
        features[self.walker] += self.unit * (first, second)
        self.outlier.set_data(*features[self.walker, :, None])
        features -= features.mean(0)
        sizes = features.std(0)
        conditions = []
        for x, side in zip((features, features / sizes), self.sides, strict=True):
            rings, path, _, star, label, number, _ = side
            second_derivatives, pull = x.T @ x / len(x), x.T @ self.target / len(x)
            curvatures, directions = np.linalg.eigh(second_derivatives)
            best = np.linalg.solve(second_derivatives, pull)
            weights = [np.zeros(2)]
            low, high = self.frame
            # Out of the frame a path ends: its jumps to and fro would fill the panel.
            while len(weights) <= steps and low < weights[-1].min() <= weights[-1].max() < high:
                gradient = second_derivatives @ weights[-1] - pull
                weights.append(weights[-1] - share / 100 * 2 / curvatures[1] * gradient)
            rings.set_data(self.rings(best, curvatures, directions))
            path.set_data(np.transpose(weights))
            star.set_data(best[:, None])
            label.xy = best
            conditions.append(curvatures[1] / curvatures[0])
            number.set_text(style.number(conditions[-1], ".1f"))
        # The best weights predict the same on both sides.
        error = np.delete(np.square(x @ best - self.target), self.walker).mean()
        left = self.left(share / 100, steps, *conditions)
        if share < 100 and max(first, second) >= 4:
            return left + self.shape(first > second, sizes[1] / sizes[0], conditions[1], error)
        return left + self.pace(share / 100, *conditions)

    def left(self, share, steps, *conditions):
        """What the steps leave of the distance to the best weights, along the axes of the ellipses."""
        steep, raw, standardized = (
            "under 1%" if rest < 0.01 else style.number(rest, ".0%" if rest < 10 else ",.0f")
            for rest in (abs(1 - 2 * share / condition) ** steps for condition in (1, *conditions))
        )
        times = "" if steep.endswith("%") else " times"
        return (
            f"Way left after {steps} step{'s' * (steps != 1)}: in the steep direction {steep}{times}, "
            f"in the flat one {raw} raw, {standardized} standardized. "
        )

    def pace(self, share, *conditions):
        """Which direction is the slow one; at the best rate, 2 / (steepest + flattest), both are."""
        if share > 1:
            return "Above the limit, each steep step lands further out than the last: paths end at the frame."
        if share == 1:
            return "At the limit, each step in the steep one lands as far off, on the other side."
        past = np.array([share - condition / (condition + 1) for condition in conditions])
        words = np.where(past > 0, "jumps too far in the steep one", "waits for the flat one")
        raw, standardized = np.where(abs(past) < 0.025, "is near its best rate", words)
        if raw == standardized:
            return "On both sides the flat one is slow."
        return f"Raw {raw}, standardized {standardized}."

    def shape(self, sideways, ratio, condition, error):
        """What the far example does to the two valleys, and its price."""
        large = f"{style.number(ratio, '.1f')} times as large now"
        if condition > 3:
            words = "Far in both, it ties the features together; scaling each cannot undo that."
        elif condition > 1.6:
            words = "Out in both, it begins to tie the features together: standardized narrows."
        elif sideways:
            words = f"Feature 2 is only {large}: raw gets rounder, by luck."
        else:
            words = f"Feature 2 is {large}: raw narrows, standardized stays round."
        error, before = (style.number(value, ".1f") for value in (error, self.error))
        return f"{words} The other 99 pay: mean squared error {error}, not {before}."

    def rings(self, best, curvatures, directions):
        """Ellipses of equal loss, [2, points]; the third one goes through the start."""
        angles = np.linspace(0, 2 * math.pi, 100)
        circle = np.stack((np.cos(angles), np.sin(angles))) / np.sqrt(curvatures)[:, None]
        circle = directions @ np.append(circle, [[np.nan], [np.nan]], 1)  # nan lifts the pen
        size = np.sqrt(curvatures @ np.square(directions.T @ best))
        return (best[:, None, None] + circle[:, None] * size * np.arange(1, 13)[:, None] / 3).reshape(2, -1)


class Cube(Explorer):
    """A tensor [B=3, S=4, H=5] and its means: choose the axes of one mean, and walk from cell to cell.

    What lies in front of the cells that share the mean is cut away, so that one can look in.
    """

    size = (7.5, 3.7)
    panels = {"ncols": 2}
    sizes = 3, 4, 5
    # By the axes that are averaged: the norm, its colour, and what has a mean of its own.
    groups = {
        "none": ("", style.MUTED, "cell"),
        "H": ("LayerNorm", plots.LAYER, "token of each text"),
        "S": ("Over the sequence", plots.SEQUENCE, "feature of each text"),
        "S, H": ("", style.MUTED, "text"),
        "B": ("", style.MUTED, "feature of each place in a text"),
        "B, H": ("", style.MUTED, "place in a text"),
        "B, S": ("BatchNorm", plots.BATCH, "feature"),
        "B, S, H": ("", style.MUTED, ""),
    }

    def __init__(self) -> None:
        texts, tokens, features = (size - 1 for size in self.sizes)
        super().__init__(
            over=choice("mean over", self.groups, "B, S"),
            text=slider("cell: text", 0, texts, 0),
            token=slider("cell: token", 0, tokens, 0),
            feature=slider("cell: feature", 0, features, features),
        )

    def draw(self, left, right):
        left.plot(*self.box(self.sizes), color="#CCCCCC", linewidth=1)
        (self.means_box,) = right.plot([], [], color="#CCCCCC", linewidth=1)
        self.arrows = plots.cube_axes(left)
        self.blocks, self.dots = [], []
        for axes, title in ((left, "The tensor [3, 4, 5]"), (right, "Its means")):
            block = PolyCollection([], edgecolors="white", linewidths=1.3)
            self.blocks.append(axes.add_collection(block, autolim=False))
            self.dots += axes.plot([], [], "o", markersize=7)
            axes.set_title(title, loc="center")
            axes.set(aspect="equal", xlim=(-4.2, 5.6), ylim=(-9.3, 1))
            axes.axis("off")
        self.below = [
            axes.text(0.866, -8.4, "", ha="center", va="top", fontweight="bold") for axes in (left, right)
        ]
        arrows = [artist for pair in self.arrows.values() for artist in pair]
        return [self.means_box, *self.blocks, *self.dots, *arrows, *self.below]

    def update(self, over, text, token, feature):
        name, color, each = self.groups[over]
        averaged = np.array([axis in over for axis in "BSH"])
        marked = np.array((text, token, feature))
        shape, place = np.where(averaged, 1, self.sizes), np.where(averaged, 0, marked)
        self.show(0, self.sizes, np.where(averaged, self.uncut(self.sizes), marked), marked, averaged, color)
        # Along an axis that is averaged a block is one cell thick: every mean is seen.
        self.show(1, shape, self.uncut(shape) if averaged.any() else place, place, False, color)
        self.means_box.set_data(self.box(shape))
        for along, pair in zip(averaged, self.arrows.values(), strict=True):
            plots.strengthen(*pair, color if along else None)
        for below, words in zip(self.below, (name, str(shape.tolist())), strict=True):
            below.set(text=words, color=color)
        return self.words(name, each, averaged, marked, shape)

    def uncut(self, sizes):
        """The cell that has nothing in front of it."""
        return np.array((0, 0, sizes[2] - 1))

    def show(self, panel, sizes, first, marked, averaged, color):
        """The block from cell `first` on, coloured where only the `averaged` axes differ from `marked`."""
        corners, cells, lights = map(np.array, zip(*plots.faces(sizes, first), strict=True))
        corners = corners + self.shift(sizes)
        chosen = ((cells == marked) | averaged).all(1)
        fills = np.empty((len(cells), 3))
        for light in set(lights):
            fills[lights == light] = plots.paint(None, light)
            fills[chosen & (lights == light)] = plots.paint(color, light)
        self.blocks[panel].set_verts(corners)
        self.blocks[panel].set_facecolor(fills)
        text, token, feature = marked + 0.5
        inside = np.array(plots.corner(sizes[0] - text, token, feature))
        faces = [*corners[(cells == marked).all(1)].mean(1), inside]
        self.dots[panel].set_data(faces[0][:, None])
        seen = len(faces) > 1  # if not, a ring: the cell is inside the block
        self.dots[panel].set_markerfacecolor("white" if seen else "none")
        self.dots[panel].set_markeredgecolor("black" if seen else "white")

    def words(self, name, each, averaged, marked, shape):
        cell, means = "x[{}, {}, {}]".format(*marked), shape.prod()
        if not averaged.any():
            return (
                f"No axis: {cell} is its own mean. Minus its mean it is 0, and so is every other cell: "
                f"nothing would be left. {means} means, shape {shape.tolist()}."
            )
        text, token, feature = (
            f"{axis} {i}" for axis, i in zip(("text", "token", "feature"), marked, strict=True)
        )
        shared = np.where(averaged, ("every text", "every token", "all features"), (text, token, feature))
        others = math.prod(self.sizes) // means - 1
        # Of the cells that share the mean, those of the marked token are as many as its features do.
        own = (self.sizes[2] if averaged[2] else 1) - 1
        foreign = "none" if own == others else "all" if own == 0 else others - own
        count = f"{means} means, one for each {each}" if each else "One mean for everything"
        return (
            f"{name}{': ' * bool(name)}{cell} shares its mean with {others} other cells, {foreign} of other "
            f"tokens: {' of '.join(shared[::-1])}. {count}: shape {shape.tolist()}."
        )

    def box(self, sizes):
        """The walls behind the block: the outline and the three edges of the furthest corner, [2, points]."""
        ends = ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 1, 0), (1, 0, 0),
                (0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 1, 0), (1, 1, 0))  # fmt: skip
        return (np.array([plots.corner(*np.multiply(end, sizes)) for end in ends]) + self.shift(sizes)).T

    def shift(self, sizes):
        """From a box in its corner to one whose middle is that of the tensor."""
        return np.subtract(*(plots.corner(*np.divide(size, 2)) for size in (self.sizes, sizes)))


class Outlier(Explorer):
    """One far value among many, after min-max and after the standard score, and the spread of the others.

    The others have mean 0, standard deviation 1 and the even steps of a normal distribution (its quantiles).
    100% is the spread that they have when they are scaled without the far value: there the grey bars reach
    from the smallest of them to the largest.
    """

    size = (7.5, 4.4)
    panels = {"nrows": 3, "height_ratios": (0.5, 0.5, 2)}
    names = ("min-max", style.UP), ("standard score", style.OUTPUT)
    end = 11  # of the standard scores in the picture

    def __init__(self) -> None:
        features = PRESETS["Llama-3.2-1B"].hidden_size
        counts = (5, 20, 50, 100, 200, 500, 1000, features)
        self.distances = torch.arange(2.0, 51)
        self.scaled = {n: self.scale(n) for n in counts}
        super().__init__(
            distance=slider("far value at", 2, 50, 8, unit="st. dev."),
            n=stops("how many values", counts, 200),
        )

    def scale(self, n):
        """After each scaling the values [distances, n], and what is left to the others; their largest."""
        others = torch.special.ndtri((torch.arange(n - 1) + 0.5) / (n - 1))
        others = others / others.std(correction=0)
        values = torch.cat((others.expand(len(self.distances), -1), self.distances[:, None]), 1)
        low, high = values.amin(1, keepdim=True), values.amax(1, keepdim=True)
        alone = 1 / (others[-1] - others[0]), 1.0
        with torch.no_grad():
            both = (values - low) / (high - low), LayerNorm(n)(values)
        left = [scaled[:, :-1].std(1, correction=0) / one for scaled, one in zip(both, alone, strict=True)]
        return (
            [scaled.numpy() for scaled in both],
            [100 * spread.numpy() for spread in left],
            others[-1].item(),
        )

    def draw(self, *panels):
        *strips, curve = panels
        self.others, self.far, self.lines, self.now, self.labels = [], [], [], [], []
        strips[0].axvspan(0, 1, color="#E6E6E6", linewidth=0)
        self.alone = strips[1].axvspan(-1, 1, color="#E6E6E6", linewidth=0)
        # Where curves meet, a dot inside a larger one: both are seen.
        for axes, (name, color), dot in zip(strips, self.names, (12, 7), strict=True):
            self.others += axes.plot([], [], "o", color=color, markeredgewidth=0)
            self.far += axes.plot([], [], "o", color="white", markeredgecolor=color, markersize=8)
            self.far[-1].set_markeredgewidth(2)
            axes.set(ylim=(-1, 1), yticks=[0])
            axes.tick_params(axis="y", length=0, labelcolor=color, labelsize=11)
            axes.grid(axis="y", visible=False)
            axes.spines["left"].set_visible(False)
            self.lines += curve.plot(self.distances.numpy(), self.distances.numpy(), color=color)
            self.now += curve.plot([], [], "o", color=color, markersize=dot)
            self.labels.append(curve.text(51.5, 0, name, color=color, fontweight="bold", va="center"))
        strips[0].set(xlim=(-0.05, 1.05), yticklabels=["min-max\n(no unit)"])
        title = "After scaling. Hollow: the far value; grey bar: the others without it"
        strips[0].set_title(title, fontsize=11)
        strips[1].set(xlim=(-4, self.end + 0.8), yticklabels=["standard score\n(standard dev.)"])
        self.beyond = strips[1].text(self.end, 0, "", color=style.OUTPUT, ha="right", va="center")
        (self.root,) = curve.plot([0, 0], [0, 0], color=style.MUTED, linestyle="--", linewidth=1.2)
        self.root_label = curve.text(0, 5, "√n", color=style.MUTED, va="center")
        curve.set(xlim=(0, 66), ylim=(0, 108), xticks=range(0, 51, 10), yticks=range(0, 101, 25))
        curve.set(xlabel="distance of the far value (standard deviations of the others)")
        curve.set_title("What it leaves to the others", fontsize=11)
        curve.set_ylabel("their spread (% of\nthat without it)")
        strip_artists = [self.alone, *self.others, *self.far, self.beyond]
        return [*strip_artists, self.root, self.root_label, *self.lines, *self.now, *self.labels]

    def update(self, distance, n):
        both, left, largest = self.scaled[n]
        here = distance - 2
        few = n <= 50
        height = np.zeros(n - 1) if few else 0.8 * (np.arange(n - 1) * 0.618 % 1 - 0.5)
        for values, spread, others, far, line, now in zip(
            both, left, self.others, self.far, self.lines, self.now, strict=True
        ):
            others.set_data(values[here, :-1], height)
            others.set(markersize=8 if few else 4, alpha=0.6 if few else 0.35)
            far.set_data([values[here, -1]], [0])
            line.set_ydata(spread)
            now.set_data([distance], spread[here : here + 1])
        self.alone.set_x(-largest)
        self.alone.set_width(2 * largest)
        score = both[1][here, -1]
        beyond = score > self.end
        self.beyond.set_text(f"at {style.number(score, '.0f')}" if beyond else "")
        self.far[1].set_marker(">" if beyond else "o")
        if beyond:
            self.far[1].set_xdata([self.end + 0.4])
        root = math.sqrt(n)
        self.root.set_data([root, root], [0, np.interp(root, self.distances.numpy(), left[1])])
        self.root_label.set_x(root + 0.6)
        apart = max(0.0, 11 - (left[1][-1] - left[0][-1])) / 2  # labels of curves that end together
        self.labels[0].set_y(max(5, left[0][-1] - apart))
        self.labels[1].set_y(max(16, left[1][-1] + apart))
        return self.words(distance, n, largest, *(spread[here] for spread in left))

    def words(self, distance, n, largest, min_max, standard):
        grown = (100 / standard) ** 2  # the variance of all, in that of the others
        far, root, grown = (style.number(x, ".1f") for x in (largest, math.sqrt(n), grown))
        min_max, standard = f"{style.number(min_max, '.0f')}%", f"{style.number(standard, '.0f')}%"
        if distance < largest:
            return (
                f"At {distance} the value is not far: the largest of the others is at {far}. "
                f"Both leave nearly all of their spread: min-max {min_max}, the standard score {standard}."
            )
        ends = f"Min-max, which sees only the two ends, leaves {min_max}."
        if n >= 50 and abs(distance - math.sqrt(n)) < 0.5 + 0.02 * n**0.5:
            return (
                f"At about √{n} = {root} the far value adds as much variance as all the others "
                f"together: the variance doubles, and they keep {standard} of their spread. {ends}"
            )
        order = "less" if distance**2 < n else "more"
        return (
            f"{distance}² = {distance**2:,} is {order} than n = {n:,}: the variance becomes "
            f"{grown} times that of the others, and they keep {standard} of their spread. {ends}"
        )
