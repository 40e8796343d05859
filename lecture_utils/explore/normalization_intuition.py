"""Lesson 01: descent on raw and standardized features, which cells share a mean, and one far value."""

import math

import numpy as np
import torch
from matplotlib.collections import PolyCollection

from lecture_utils.llama import PRESETS, LayerNorm
from lecture_utils.plots import normalization_intuition as plots
from lecture_utils.plots import style

from .explorer import Explorer, slider, stops, toggle


class Descent(Explorer):
    """Gradient descent on raw and on standardized features, while one example of 100 walks away.

    The data are those of the lesson. Ellipses are lines of equal loss, at the same losses on both sides:
    their axes are the eigenvectors of the second derivatives `features.T @ features / n`, as long as
    1 / √curvature. Each side's learning rate is the same share of its own limit, 2 / steepest curvature.
    """

    size = (7.5, 3.2)
    panels = {"ncols": 3}

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
            first=slider("outlier's feature 1", 0, 20, 0, unit="standard deviations"),
            second=slider("outlier's feature 2", 0, 20, 0, unit="standard deviations"),
            share=slider("learning rate", 10, 110, 80, step=5, unit="% of each side's limit"),
            steps=slider("steps", 0, 60, 10),
        )

    def draw(self, data, *panels):
        data.plot(*(self.raw / self.unit).T, "o", color=style.INPUT, markersize=3, alpha=0.5)
        (self.outlier,) = data.plot([], [], "o", color="white", markeredgecolor=style.INPUT)
        self.outlier.set(markersize=8, markeredgewidth=2)
        data.set(aspect="equal", xlim=(-4, 22), ylim=(-4, 22), xticks=(0, 10, 20), yticks=(0, 10, 20))
        data.set(xlabel="feature 1 (st. dev.)", ylabel="feature 2 (st. dev.)")
        data.set_title("Data: one example\nof 100 walks away", fontsize=10.5)
        self.sides = []
        for axes, name in zip(panels, ("Raw", "Standardized"), strict=True):
            (rings,) = axes.plot([], [], color="#B5C7D6", linewidth=1)
            (path,) = axes.plot([], [], color=style.OUTPUT, linewidth=1.3, marker="o", markersize=3)
            (star,) = axes.plot([], [], "*", color=style.REFERENCE, markersize=11)
            (start,) = axes.plot(0, 0, "o", color=style.INPUT, markersize=7)
            words = {"textcoords": "offset points", "fontweight": "bold", "annotation_clip": False}
            begin = axes.annotate("start", (0, 0), (5, -16), ha="right", color=style.INPUT, **words)
            best = axes.annotate("best", (0, 0), (7, -14), **words)
            title = axes.set_title(f"{name}:\ncondition number", fontsize=10.5)
            # Only the number moves: every letter that is drawn anew costs a tenth of a millisecond.
            number = axes.annotate("", (1, 0), (5, 1.5), xycoords=title, fontsize=10.5, va="bottom", **words)
            axes.set(aspect="equal", xlim=(-1.9, 5.6), ylim=(-1.9, 5.6), xlabel="weight 1")
            axes.set(xticks=range(-1, 6), yticks=range(-1, 6))
            axes.grid(False)
            self.sides.append((rings, path, star, best, number, start, begin))
        panels[0].set_ylabel("weight 2")
        return [self.outlier, *(artist for side in self.sides for artist in side)]

    def update(self, first, second, share, steps):
        features = self.raw.copy()
        features[self.walker] += self.unit * (first, second)
        self.outlier.set_data(*(features[self.walker] / self.unit)[:, None])
        features -= features.mean(0)
        sizes = features.std(0)
        conditions, left = [], []
        for x, side in zip((features, features / sizes), self.sides, strict=True):
            rings, path, star, label, number, *_ = side
            second_derivatives, pull = x.T @ x / len(x), x.T @ self.target / len(x)
            curvatures, directions = np.linalg.eigh(second_derivatives)
            best = np.linalg.solve(second_derivatives, pull)
            weights = [np.zeros(2)]
            for _ in range(steps):
                gradient = second_derivatives @ weights[-1] - pull
                weights.append(weights[-1] - share / 100 * 2 / curvatures[1] * gradient)
            rings.set_data(self.rings(best, curvatures, directions))
            path.set_data(np.transpose(weights))
            star.set_data(best[:, None])
            label.xy = best
            conditions.append(curvatures[1] / curvatures[0])
            number.set_text(f"{conditions[-1]:.1f}")
            left.append(np.linalg.norm(weights[-1] - best) / np.linalg.norm(best))
        # The best weights predict the same on both sides.
        error = np.delete(np.square(x @ best - self.target), self.walker).mean()
        raw, standardized = ("under 1%" if rest < 0.01 else f"{100 * rest:,.0f}%" for rest in left)
        start = f"Way left after {steps} step{'s' * (steps != 1)}: raw {raw}, standardized {standardized}. "
        return start + self.reason(first, second, share, sizes[1] / sizes[0], error)

    def reason(self, first, second, share, ratio, error):
        if share > 100:
            return "Above the limit, every step in the steepest direction lands further out than the last."
        if share == 100:
            return "At the limit, each step in the steepest direction lands as far off, on the other side."
        if max(first, second) < 4:
            if share > 50:
                return f"Feature 2 is {ratio:.1f} times as large: raw, it limits the rate; feature 1 waits."
            return "Up to half the limit no step jumps across the valley; the flat direction waits longer."
        moved = f" The star moves: there the other 99 have squared error {error:.1f}, not {self.error:.1f}."
        if min(first, second) >= 4:
            return "Far in both, the outlier ties the features together: scaling each cannot undo it." + moved
        if first > second:
            return f"Feature 2 is only {ratio:.1f} times as large now: raw gets rounder, by luck." + moved
        return f"Feature 2 is {ratio:.1f} times as large now: raw narrows, standardized stays round." + moved

    def rings(self, best, curvatures, directions):
        """Ellipses of equal loss, [2, points]; the third one goes through the start."""
        angles = np.linspace(0, 2 * math.pi, 100)
        circle = np.stack((np.cos(angles), np.sin(angles))) / np.sqrt(curvatures)[:, None]
        circle = directions @ np.append(circle, [[np.nan], [np.nan]], 1)  # nan lifts the pen
        size = np.sqrt(curvatures @ np.square(directions.T @ best))
        return (best[:, None, None] + circle[:, None] * size * np.arange(1, 13)[:, None] / 3).reshape(2, -1)


class Cube(Explorer):
    """A tensor [B=3, S=4, H=5] and its means: tick the axes of one mean, and walk from cell to cell.

    What lies in front of the cells that share the mean is cut away, so that one can look in.
    """

    size = (7.5, 3.7)
    panels = {"ncols": 2}
    sizes = 3, 4, 5
    # By the axes that are averaged, (B, S, H): the norm, its colour, and what has a mean of its own.
    groups = {
        (False, False, False): ("", "#555555", "cell"),
        (False, False, True): ("LayerNorm, RMSNorm", plots.LAYER, "token of each text"),
        (False, True, False): ("Over the sequence", plots.SEQUENCE, "feature of each text"),
        (False, True, True): ("", "#555555", "text"),
        (True, False, False): ("", "#555555", "feature of each place in a text"),
        (True, False, True): ("", "#555555", "place in a text"),
        (True, True, False): ("BatchNorm", plots.BATCH, "feature"),
        (True, True, True): ("", "#555555", ""),
    }

    def __init__(self) -> None:
        super().__init__(
            texts=toggle("mean over B (texts)", True),
            tokens=toggle("mean over S (tokens)", True),
            features=toggle("mean over H (features)", False),
            cell=slider("marked cell", 0, math.prod(self.sizes) - 1, 4),
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

    def update(self, texts, tokens, features, cell):
        averaged = np.array((texts, tokens, features))
        name, color, each = self.groups[texts, tokens, features]
        marked = np.array(np.unravel_index(cell, self.sizes))
        shape, place = np.where(averaged, 1, self.sizes), np.where(averaged, 0, marked)
        self.show(0, self.sizes, np.where(averaged, (0, 0, 4), marked), marked, averaged, color)
        self.show(1, shape, place, place, False, color)
        self.means_box.set_data(self.box(shape))
        for over, pair in zip(averaged, self.arrows.values(), strict=True):
            plots.strengthen(*pair, color if over else None)
        for text, words in zip(self.below, (name, str(shape.tolist())), strict=True):
            text.set(text=words, color=color)
        return self.words(name, each, averaged, marked, shape)

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
        count = f"{means} means, one for each {each}" if each else "One mean for everything"
        return (
            f"{name}{': ' * bool(name)}{cell} shares its mean with {others} other cells: "
            f"{' of '.join(shared[::-1])}. {count}: shape {shape.tolist()}."
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
    100% is the spread that they have when they are scaled without the far value.
    """

    size = (7.5, 4.4)
    panels = {"nrows": 3, "height_ratios": (0.5, 0.5, 2)}
    names = ("min-max", style.UP), ("standard score", style.OUTPUT)
    end = 11  # of the standard scores in the picture

    def __init__(self) -> None:
        features = PRESETS["Llama-3.2-1B"].hidden_size
        counts = (5, 10, 20, 50, 100, 200, 500, 1000, features)
        self.distances = torch.arange(2.0, 51)
        self.scaled = {n: self.scale(n) for n in counts}
        super().__init__(
            distance=slider("distance of the far value", 2, 50, 8, unit="standard deviations of the others"),
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
        for axes, (name, color) in zip(strips, self.names, strict=True):
            self.others += axes.plot([], [], "o", color=color, markeredgewidth=0)
            self.far += axes.plot([], [], "o", color="white", markeredgecolor=color, markersize=8)
            self.far[-1].set_markeredgewidth(2)
            axes.set(ylim=(-1, 1), yticks=[0])
            axes.tick_params(axis="y", length=0, labelcolor=color, labelsize=11)
            axes.grid(axis="y", visible=False)
            axes.spines["left"].set_visible(False)
            self.lines += curve.plot(self.distances.numpy(), self.distances.numpy(), color=color)
            self.now += curve.plot([], [], "o", color=color, markersize=9)
            self.labels.append(curve.text(51.5, 0, name, color=color, fontweight="bold", va="center"))
        strips[0].set(xlim=(-0.05, 1.05), yticklabels=["min-max\n(no unit)"])
        strips[0].set_title("All values after scaling; the far one is hollow")
        strips[1].set(xlim=(-4, self.end + 0.8), yticklabels=["standard score\n(standard dev.)"])
        self.beyond = strips[1].text(self.end + 0.6, 0, "", color=style.OUTPUT, ha="right", va="center")
        (self.root,) = curve.plot([0, 0], [0, 0], color="#777777", linestyle="--", linewidth=1.2)
        self.root_label = curve.text(0, 5, "√n", color="#555555", va="center")
        curve.set(xlim=(0, 66), ylim=(0, 108), xticks=range(0, 51, 10), yticks=range(0, 101, 25))
        curve.set(xlabel="distance of the far value (standard deviations of the others)")
        curve.set(title="What it leaves to the others", ylabel="spread left (%)")
        strip_artists = [*self.others, *self.far, self.beyond]
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
        score = both[1][here, -1]
        self.beyond.set_text(f"at {score:.0f} →" if score > self.end else "")
        root = math.sqrt(n)
        self.root.set_data([root, root], [0, np.interp(root, self.distances.numpy(), left[1])])
        self.root_label.set_x(root + 0.6)
        apart = max(0.0, 11 - (left[1][-1] - left[0][-1])) / 2  # labels of curves that end together
        self.labels[0].set_y(max(5, left[0][-1] - apart))
        self.labels[1].set_y(max(16, left[1][-1] + apart))
        return self.words(distance, n, largest, *(spread[here] for spread in left))

    def words(self, distance, n, largest, min_max, standard):
        if distance < largest:
            return (
                f"At {distance} the value is not far: the largest of the others is at {largest:.1f}. "
                f"Both scalings leave them nearly all of their spread ({min_max:.0f}% and {standard:.0f}%)."
            )
        ends = f"Min-max, which sees only the two ends, leaves {min_max:.0f}%."
        if n >= 50 and abs(distance - math.sqrt(n)) < 0.5 + 0.02 * n**0.5:
            return (
                f"At about √{n} = {math.sqrt(n):.1f} the far value adds as much variance as all the others "
                f"together: the variance doubles, and they keep {standard:.0f}% of their spread. {ends}"
            )
        order = "less" if distance**2 < n else "more"
        return (
            f"{distance}² = {distance**2:,} is {order} than n = {n:,}: the variance becomes "
            f"{(100 / standard) ** 2:,.1f} times that of the others, and they keep {standard:.0f}% of their "
            f"spread. {ends}"
        )
