"""Lesson 03: what a width can fit, bend by bend; two layers that are one matrix until ReLU bends them."""

import math
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from torch import Tensor
from torch.func import functional_call

from lecture_utils.llama import FeedForward
from lecture_utils.plots import style

from .explorer import Explorer, listed, slider, stops, toggle


@contextmanager
def _one_thread():
    """On a busy machine, threads that share tensors as small as these wait for each other, up to seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Width(Explorer):
    """A small FFN learns one wave: width, start and training decide how many units bend, and where.

    The networks are those of the lesson's `train`: `FeedForward(1, D)`, 100 inputs, Adam, 400 steps.
    """

    size = (7.5, 4.2)
    panels = {"ncols": 2, "width_ratios": (1.75, 1)}
    widths = (1, 2, 3, 4, 6, 8, 16, 32, 64)
    starts = 5
    trained = 400  # steps
    every = 5  # steps from one stored state to the next
    height = 2.0  # of the picture, up and down from 0

    def __init__(self) -> None:
        self.inputs = torch.linspace(-math.pi, math.pi, 100)
        self.wave = self.inputs.sin()
        self.answer_0 = self.wave.square().mean().sqrt().item()
        self._train()
        with torch.device("meta"):  # no weights, so no random state is touched: each call brings its own
            self.network = FeedForward(1, 1)
        super().__init__(
            width=stops("width D", self.widths, 4),
            start=slider("start (seed)", 0, self.starts - 1, 1),
            step=slider("training steps", 0, self.trained, 0, step=self.every),
        )

    @_one_thread()
    def _train(self) -> None:
        """Every width from every start, all at once."""
        nets = [(width, seed) for width in self.widths for seed in range(self.starts)]
        # The units of all networks stand in one row; each network adds up its own.
        self.ends = torch.tensor([width for width, _ in nets]).cumsum(0).tolist()
        own = torch.block_diag(*(torch.ones(width) for width, _ in nets))  # [nets, units]
        parameters = [torch.cat(each) for each in zip(*(_initial(*net) for net in nets), strict=True)]
        # Adam written out: the first `torch.optim.Adam` of a process costs a second of imports.
        means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        states, errors = [], []
        for step in range(self.trained + 1):
            up, up_bias, down, down_bias = [p.requires_grad_() for p in parameters]
            hidden = F.relu(up[:, None] * self.inputs + up_bias[:, None])  # [units, points]
            outputs = (own * down) @ hidden + down_bias[:, None]  # [nets, points]
            losses = (outputs - self.wave).square().mean(-1)
            gradients = torch.autograd.grad(losses.sum(), parameters)
            if step % self.every == 0:
                states.append([p.detach().clone() for p in parameters])
                errors.append(losses.detach().sqrt())
            with torch.no_grad():
                for p, g, m, s in zip(parameters, gradients, means, squares, strict=True):
                    m.lerp_(g, 0.1)
                    s.lerp_(g.square(), 0.001)
                    root = (s / (1 - 0.999 ** (step + 1))).sqrt()
                    p -= 0.02 * m / (1 - 0.9 ** (step + 1)) / (root + 1e-8)
        self.states = [torch.stack(each) for each in zip(*states, strict=True)]  # [stored, units or nets]
        self.errors = torch.stack(errors)  # [stored, nets]
        up, up_bias, *_ = self.states
        left, right = up_bias - math.pi * up > 0, up_bias + math.pi * up > 0
        self.bent = left != right  # on at one end of the picture and not at the other
        self.silent = ~(left | right)  # [stored, units]
        # Silent from here to the last step.
        self.dead = self.silent.flip(0).cummin(0).values.flip(0)

    def draw(self, fit: Axes, all_of_them: Axes):
        self.hinges = LineCollection([], colors=style.UP, linewidths=1.2, alpha=0.8)
        fit.add_collection(self.hinges)
        fit.plot(self.inputs.numpy(), self.wave.numpy(), color=style.REFERENCE, linestyle="--", linewidth=1.2)
        (self.curve,) = fit.plot([], [], color=style.OUTPUT, linewidth=3.2)
        (self.bends,) = fit.plot([], [], "o", color=style.UP, markeredgecolor="white")
        (self.bias,) = fit.plot([-math.pi, math.pi], [0, 0], color=style.WEIGHT, linewidth=1.2)
        fit.set_title("One wave from straight pieces", pad=22)
        _key(fit, {0: ("target", style.REFERENCE), 0.17: ("network", style.OUTPUT),
                   0.38: ("units and their bends", style.UP), 0.86: ("bias", style.WEIGHT)})  # fmt: skip
        fit.set(
            xlabel="input",
            ylabel="output",
            xlim=(-math.pi, math.pi),
            ylim=(-self.height, self.height),
            yticks=range(-2, 3),
        )

        # Evenly spaced widths, and the starts of each side by side: equal errors can be told apart.
        ticks = range(len(self.widths))
        apart = torch.linspace(-0.26, 0.26, self.starts)
        self.places = (torch.tensor(ticks)[:, None] + apart).flatten().numpy()  # [nets]
        all_of_them.axhline(self.answer_0, color=style.WRONG, linestyle=":")
        all_of_them.text(-0.4, 0.0024, "dotted: always\nanswering 0", color=style.MUTED, fontsize=10)
        (self.dots,) = all_of_them.plot(self.places, self.errors[-1].numpy(), "o", color=style.OUTPUT,
                                        alpha=0.4, markersize=5, markeredgewidth=0)  # fmt: skip
        (self.here,) = all_of_them.plot(
            [1], [1], "o", color=style.OUTPUT, markeredgecolor="black", markersize=9
        )
        all_of_them.set_title("All widths and starts", pad=22)
        _key(all_of_them, {0: (f"each width: starts 0 to {self.starts - 1}", style.OUTPUT)})
        all_of_them.set(yscale="log", xlim=(-0.7, len(ticks) - 0.3), ylim=(0.002, 2.5))
        all_of_them.set(xlabel="width D", ylabel="RMS error (log scale)")
        all_of_them.set_xticks(ticks, [str(width) for width in self.widths])
        all_of_them.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3, 1], ["0.003", "0.01", "0.03", "0.1", "0.3", "1"])
        all_of_them.minorticks_off()
        return [self.hinges, self.bias, self.curve, self.bends, self.dots, self.here]

    @_one_thread()
    def update(self, width, start, step):
        stored, net = step // self.every, self.widths.index(width) * self.starts + start
        units = slice(self.ends[net] - width, self.ends[net])
        up, up_bias, down = (each[stored, units] for each in self.states[:3])
        down_bias = self.states[3][stored, net : net + 1]
        edge = torch.full((width,), math.pi)
        bends = (-up_bias / up).clamp(-edge, edge)
        x = torch.stack([-edge, bends, edge], -1)  # [D, 3]: a unit is straight from one to the next
        y = down[:, None] * F.relu(up[:, None] * x + up_bias[:, None])
        self.hinges.set_segments(torch.stack([x, y], -1).numpy())
        inside = bends[self.bent[stored, units]].sort().values
        corners = torch.cat([-edge[:1], inside, edge[:1]])
        parameters = {
            "up_proj.weight": up[:, None],
            "up_proj.bias": up_bias,
            "down_proj.weight": down[None],
            "down_proj.bias": down_bias,
        }
        outputs = functional_call(self.network, parameters, corners[:, None])[:, 0]
        self.curve.set_data(corners.numpy(), outputs.numpy())
        self.bends.set_data(inside.numpy(), outputs[1:-1].numpy())
        self.bends.set(markersize=7 if width <= 16 else 3, markeredgewidth=width <= 16)
        self.bias.set_ydata([down_bias.item()] * 2)
        self.dots.set_ydata(self.errors[stored].numpy())
        self.here.set_data(self.places[net : net + 1], self.errors[stored, net : net + 1].numpy())
        highest = max(each.abs().max() for each in (outputs, y, down_bias))
        return (
            f"D = {width}, start {start}: error {style.number(self.errors[stored, net], '.3f')}"
            f" {f'after {step} steps' if step else 'untrained'}. {self._outcome(stored, net, units, inside)}"
            f"{' Lines leave the frame.' if highest > self.height else ''}"
        )

    def _outcome(self, stored: int, net: int, units: slice, inside: Tensor) -> str:
        """What the units do inside the picture, and what that makes of the wave."""
        width, bent = units.stop - units.start, len(inside)
        silent, dead = (int(each[stored, units].sum()) for each in (self.silent, self.dead))
        if silent == width:
            who = {1: "The unit is", 2: "Both units are"}.get(width, f"All {width} units are")
            if dead == width:
                return f"{who} silent over the whole picture: slope 0, nothing for training to go by."
            back = f"{width - dead} will wake again"
            return f"{who} silent over the whole picture. Adam also goes by earlier steps: {back}."
        if not bent:
            return "No unit bends inside the picture, so the output is one straight line."
        on = width - bent - silent  # over the whole picture
        places = 1 + int((inside.diff() > 0.1).sum())  # closer dots look like one
        says = "Its unit bends" if width == 1 else f"{bent} of {width} units bend{'s' * (bent == 1)}"
        says += " inside the picture"
        if places < bent and width <= 16:
            says += f", at {places} place{'s' * (places > 1)}"
        rest = [f"{n} {word}" for n, word in ((on, "on"), (silent, "silent")) if n]
        says += f"; {listed(rest)} throughout. " if rest else ". "
        errors = self.errors[:, net]
        now, before, last = errors[stored], errors[max(0, stored - 10)], errors[-1]
        if stored == 0:
            return f"{says}Chance has put {'it' if bent == 1 else 'them'} there."
        if places == 1:
            return says + "That makes two straight pieces; a wave needs three."
        if bent + on == 2:
            return says + "Two units have two slopes to give; a wave needs three."
        if now > 0.1 and (now < 0.97 * before or last < 0.97 * now):
            return says + "Training still moves them."
        if now > 0.1:
            return says + "Well placed, they could draw the wave; but training has come to rest."
        if now > 0.01:
            return says + "The straight pieces follow the wave."
        return says + "The pieces are so short that they look like a curve."


class Collapse(Explorer):
    """Two layers 4 → D → 4 as one matrix, and a straight line of tokens sent through them, until ReLU."""

    size = (7.5, 3.9)
    panels = {"ncols": 2, "width_ratios": (1, 1.6)}
    # Any would do. With these, no dot hides another, and some units switch outside the picture.
    seeds = (7289, 4746, 3621, 8929, 6854)

    def __init__(self) -> None:
        self.places = torch.linspace(-3, 3, 121, dtype=torch.float64)
        self.draws = []  # of up [8, H=4], down [4, 8], and the line: where place 0 is, and one step on
        for seed in self.seeds:
            generator = torch.Generator().manual_seed(seed)
            own = {"generator": generator, "dtype": torch.float64}
            self.draws.append([torch.randn(shape, **own) for shape in ((8, 4), (4, 8), (2, 4))])
        super().__init__(
            width=slider("width D", 1, 8, 2),
            draw=slider("draw of the weights", 1, len(self.seeds), 1),
            relu=toggle("ReLU between"),
        )

    def draw(self, sizes: Axes, line: Axes):
        columns = range(1, 5)
        look = {"color": style.WEIGHT, "edgecolor": style.WEIGHT, "linewidth": 1.5, "width": 0.6}
        self.bars = sizes.bar(columns, [1] * 4, **look)
        self.numbers = [sizes.text(column, 0, "", ha="center") for column in columns]
        self.title = sizes.set_title("", pad=22)
        _key(sizes, {0: ("W_down · W_up", style.WEIGHT)})
        sizes.set(xlabel="singular value, largest first", ylabel="size", ylim=(0, 3), xticks=columns)
        sizes.grid(axis="x", visible=False)
        (self.curve,) = line.plot([], [], color=style.OUTPUT, linewidth=3.2)
        (self.best,) = line.plot([], [], color=style.REFERENCE, linestyle="--", linewidth=1.2)
        (self.bends,) = line.plot([], [], "o", color=style.UP, markeredgecolor="white", markersize=7)
        line.set_title("A straight line of tokens, sent through", pad=22)
        _key(line, {0: ("two layers", style.OUTPUT), 0.29: ("best single matrix", style.REFERENCE)})
        look = {"color": style.UP, "fontweight": "bold", "fontsize": 10}
        self.word = line.text(0.76, 1.025, "bends", transform=line.transAxes, **look)
        line.set(xlabel="place on the line (steps)", ylabel="first output feature")
        line.set(xlim=(-3, 3), ylim=(-2.5, 2.5))
        return [*self.bars, *self.numbers, self.title, self.curve, self.best, self.bends, self.word]

    @_one_thread()
    def update(self, width, draw, relu):
        up, down, (token, stride) = self.draws[draw - 1]
        up, down = up[:width] / 4**0.5, down[:, :width] / width**0.5  # [D, H], [H, D]: spread 1 / √inputs
        values, rank = torch.linalg.svdvals(down @ up), int(torch.linalg.matrix_rank(down @ up))
        for k, (bar, number, value) in enumerate(zip(self.bars, self.numbers, values.tolist(), strict=True)):
            bar.set_height(value)
            bar.set_facecolor("none" if relu else style.WEIGHT)
            number.set(y=value + 0.05, text=style.number(value, ".2f") if k < rank else "0")
        self.title.set_text("Not one matrix" if relu else f"Rank {rank}")

        def two_layers(places):
            tokens = token + places[:, None] * stride  # [points, H]
            hidden = tokens @ up.T
            return tokens, (F.relu(hidden) if relu else hidden) @ down.T

        tokens, outputs = two_layers(self.places)
        matrix = torch.linalg.lstsq(tokens, outputs, driver="gelsd").solution  # x @ matrix
        feature, best = outputs[:, 0], (tokens @ matrix)[:, 0]
        self.curve.set_data(self.places.numpy(), feature.numpy())
        self.best.set_data(self.places.numpy(), best.numpy())
        bends = -(up @ token) / (up @ stride)  # where a unit is 0
        self.bends.set_data(bends.numpy(), two_layers(bends)[1][:, 0].numpy())
        self.bends.set_visible(relu)
        self.word.set_visible(relu)
        missed = ((feature - best).square().sum() / (feature - feature.mean()).square().sum()).item()
        says = f"Draw {draw}, D = {width}"
        if relu:
            here = int((bends.abs() < 3).sum())
            who = "the unit" if width == 1 else f"{here} of {width} units"
            share = style.number(missed, ".0%")
            return (
                f"{says}, with ReLU: the line bends where {who} switch{'es' * (here == 1)}. The best single"
                f" matrix keeps it straight, and misses {share} of this feature's variance along it."
            )
        if rank == 1:
            says += ": everything passes through 1 number, so only 1 of the 4 singular values is not 0."
        elif rank < 4:
            says += f": everything passes through {width} numbers, so the rank is {rank} instead of 4."
        elif width == 4:
            says += ": rank 4, the most there can be."
        else:
            says += f": {width} numbers in the middle, yet the rank stays 4."
        return f"{says} One matrix, and so the line stays straight."


def _initial(width: int, seed: int) -> list[Tensor]:
    """The parameters of `FeedForward(1, width)` after `torch.manual_seed(seed)`, each of one axis."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [p.detach().flatten() for p in FeedForward(1, width).parameters()]


def _key(axes: Axes, words: dict[float, tuple[str, str]]) -> None:
    """Words in the colours of what they name, in a line between title and axes: {place: (word, color)}."""
    for x, (word, color) in words.items():
        style.label_line(axes, x, 1.025, word, color, transform=axes.transAxes, fontsize=10)
