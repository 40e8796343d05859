"""Lesson 11: which character the tiny model may choose next, and what it writes when it goes on so."""

import re

import numpy as np
import torch
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from lecture_utils import tiny
from lecture_utils.llama import KVCache, next_token_probabilities
from lecture_utils.plots import style
from lecture_utils.plots import whole_llama as plots
from lecture_utils.tiny.make import prose

from .explorer import Explorer, slider, stops


class NextToken(Explorer):
    """The likeliest next characters after a text, and which of them temperature, top k and top p leave.

    Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020, section 3.
    """

    size = (7.5, 4.0)
    texts = ("The q", "A function is n", "A list of ", "This is the ")
    best = 12

    def __init__(self) -> None:
        with torch.inference_mode():
            self.logits = {text: tiny.model()(tiny.encode(text))[0, -1] for text in self.texts}
        every = len(tiny.CHARACTERS)
        super().__init__(
            text=stops("text", self.texts, self.texts[2]),
            temperature=slider("temperature", 0.0, 2.0, 1.0, step=0.05),
            top_k=stops("top k", (1, 2, 3, 5, 8, 12, every), every),
            top_p=slider("top p", 0.05, 1.0, 1.0, step=0.05),
        )

    def draw(self, axes):
        places = np.arange(self.best)
        # All bars of a kind are one artist: quicker to draw than a rectangle each.
        self.before = PolyCollection([], facecolor=style.WRONG, alpha=0.55)
        self.after = PolyCollection([], facecolor=style.OUTPUT)
        for bars in (self.before, self.after):
            axes.add_collection(bars, autolim=False)
        (self.sum,) = axes.plot(places, places, color=style.INPUT, drawstyle="steps-mid", linewidth=1.4)
        (self.limit,) = axes.plot([-0.6, self.best - 0.4], [1, 1], color=style.MUTED, linestyle=":")
        self.names = [
            axes.text(x, -0.035, "", ha="center", va="top", fontsize=13, family="DejaVu Sans Mono")
            for x in places
        ]
        self.headline = axes.text(
            0, 1.13, "", transform=axes.transAxes, fontsize=12, fontweight="bold", va="bottom"
        )
        axes.set(xlim=(-0.6, self.best - 0.4), ylim=(0, 1.03), ylabel="probability", xticks=[])
        axes.set_xlabel("next character, the likeliest first", labelpad=24)
        for x, text, color in (
            (0.0, "after temperature", style.MUTED),
            (0.265, "may be chosen", style.OUTPUT),
            (0.485, "running sum", style.INPUT),
        ):
            style.label_line(axes, x, 1.04, text, color, transform=axes.transAxes)
        self.limit_name = axes.text(self.best - 0.55, 1, "", color=style.MUTED, ha="right", va="top")
        self.limit_name.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 1, "pad": 0.5})
        return [self.before, self.after, self.sum, self.limit, *self.names, self.headline, self.limit_name]

    def update(self, text, temperature, top_k, top_p):
        logits = self.logits[text]
        order = logits.argsort(descending=True)
        own, warm, short, kept = (
            next_token_probabilities(logits, *options)[order]
            for options in ((1.0,), (temperature,), (temperature, top_k), (temperature, top_k, top_p))
        )
        sums = short.cumsum(0).clamp(max=1)
        for bars, values, width in ((self.before, warm, 0.84), (self.after, kept, 0.5)):
            bars.set_verts(self.rectangles(values[: self.best].numpy(), width))
        names = [tiny.CHARACTERS[i] for i in order[: self.best].tolist()]
        for label, name, value in zip(self.names, names, kept[: self.best].tolist(), strict=True):
            label.set_text(plots.shown(name))
            label.set_color(style.OUTPUT if value > 0 else style.WRONG)
        self.sum.set_ydata(sums[: self.best].numpy())
        self.limit.set_ydata([top_p] * 2)
        self.limit_name.set_text(f"top p {top_p:.2f}" if top_p < 1 else "")
        self.limit_name.set_y(top_p - 0.015 if top_p > 0.12 else top_p + 0.075)
        self.headline.set_text(f"“{text}” goes on with …")
        return self.caption(*map(plots.shown, names[:2]), temperature, top_k, top_p, own, warm, short, kept)

    @staticmethod
    def rectangles(heights: np.ndarray, width: float) -> np.ndarray:
        """Corners of bars at 0, 1, …: [bars, 4, 2]."""
        x = np.arange(len(heights))[:, None] + width / 2 * np.array([-1, -1, 1, 1])
        y = heights[:, None] * np.array([0, 1, 1, 0])
        return np.stack((x, y), -1)

    def caption(
        self,
        first: str,
        second: str,
        temperature: float,
        top_k: int,
        top_p: float,
        own: Tensor,
        warm: Tensor,
        short: Tensor,
        kept: Tensor,
    ) -> str:
        every = len(own)
        if temperature == 0:
            return (
                f"Temperature 0: “{first}” for certain, although the model gave it {own[0]:.0%}. Nothing is "
                "left for top k or top p to drop."
            )
        # Near temperature 0 most are 0 in fp32 already: top k and top p have not dropped those.
        alive, few, left = (int((p > 0).sum()) for p in (warm, short, kept))
        if left == alive:
            if temperature == 1:
                return (
                    f"As the model says it: “{first}” {own[0]:.0%}, the next two {own[1:3].sum():.0%} "
                    f"together; any of the {every} characters may come, the unlikely ones too."
                )
            how = "sharper" if temperature < 1 else "flatter"
            lead, now = ((p[0] / p[1]).item() for p in (own, warm))
            many = f"{now:.3g}" if now < 1000 else "over 1000"
            return (
                f"Temperature {temperature:g}, {how}: “{first}” goes from {own[0]:.0%} to {warm[0]:.0%}. It "
                f"was {lead:.3g} times as likely as “{second}” and is {many} times: to the power "
                f"1/{temperature:g}."
            )
        cuts = [f"top k keeps {few}"] if few < alive else []
        if left < few or not cuts:
            cuts.append(f"top p keeps {left}{' of these' if cuts else ''}")
        heat = "" if temperature == 1 else f"at temperature {temperature:g} "
        words = heat + " and ".join(cuts)
        words = words[0].upper() + words[1:]
        had = 1 - warm[kept == 0].sum().item()
        much = f"{had:.1%}" if had > 0.99 else f"{had:.0%}"
        if left == 1:
            return f"{words}: “{first}”, which had {much}, and now comes for certain."
        old, new = f"{warm[0]:.0%}", f"{kept[0]:.0%}"
        rise = f"stays at {new}" if old == new else f"rises from {old} to {new}"
        return (
            f"{words}. Together they had {much}, now they have all: “{first}” {rise}. The other "
            f"{every - left} can no longer come."
        )


class Page(Artist):
    """Pixels as they are, [height, width, 3], their lower left corner at (x, y): quicker than an image."""

    def __init__(self, x: float, y: float) -> None:
        super().__init__()
        self.corner, self.pixels = (round(x), round(y)), None

    def set_data(self, pixels: np.ndarray) -> None:
        """Other pixels from now on."""
        solid = np.full((*pixels.shape[:2], 1), 255, np.uint8)
        self.pixels = np.concatenate((pixels, solid), -1)[::-1]  # a renderer wants the lowest row first

    def draw(self, renderer) -> None:
        """Copy them into the picture."""
        context = renderer.new_gc()
        renderer.draw_image(context, *self.corner, self.pixels)
        context.restore()


class Writing(Explorer):
    """What the tiny model writes, the same dice each time; coloured where it was surprised by itself."""

    size = (7.5, 2.4)
    columns, rows, length = 60, 4, 200
    cell = (56, 20)  # pixels of a letter, height and width
    start = "The value of "
    temperatures = (0.0, 0.5, 0.8, 1.0, 1.3, 2.0)
    shares = (0.5, 0.8, 0.95, 1.0)
    dice = (1, 2, 3)
    pale = LinearSegmentedColormap.from_list("surprise", ["#FFFFFF", "#F7C9A8", "#E8894F"])

    def __init__(self) -> None:
        self.words = set(re.findall(r"[A-Za-z]+", prose()))
        self.ids, self.own = self.write()
        super().__init__(
            temperature=stops("temperature", self.temperatures, 1.0),
            top_p=stops("top p", self.shares, 1.0),
            dice=stops("throw of the dice", self.dice, 1),
        )

    @torch.inference_mode()
    def write(self) -> tuple[Tensor, Tensor]:
        """Ids [temperatures, shares, dice, length], and how likely the model itself found each."""
        model = tiny.model()
        T, P, R = len(self.temperatures), len(self.shares), len(self.dice)
        throws = torch.rand(self.length, R, generator=torch.Generator().manual_seed(4))
        new = tiny.encode(self.start).expand(T * P * R, -1)
        past = KVCache(model.config, len(new), new.shape[1] + self.length)
        heat = torch.tensor(self.temperatures[1:])[:, None, None, None]
        ids, own = [], []
        for throw in throws:
            logits = model(new, cache=past, logits_to_keep=1)[:, -1].reshape(T, P, R, -1)
            greedy = next_token_probabilities(logits[:1], 0)
            others = [
                next_token_probabilities(logits[1:, p : p + 1] / heat, 1.0, None, share)
                for p, share in enumerate(self.shares)
            ]
            chances = torch.cat((greedy, torch.cat(others, 1)))
            # The first id at which the running sum passes the throw: chosen with its probability.
            chosen = (chances.cumsum(-1) > 0.99999 * throw[:, None]).int().argmax(-1)
            ids.append(chosen)
            own.append(logits.softmax(-1).gather(-1, chosen[..., None])[..., 0])
            new = chosen.reshape(-1, 1)
        return torch.stack(ids, -1), torch.stack(own, -1)

    def draw(self, axes):
        axes.set_axis_off()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_position((0.015, 0, 0.97, 1))
        axes.text(
            0, 0.97, "Dark: what the model itself found unlikely", va="top", fontsize=12, fontweight="bold"
        )
        self.ink = self.letters()
        self.page = Page(0.015 * axes.figure.bbox.width, 0.24 * axes.figure.bbox.height)
        axes.figure.add_artist(self.page)
        for x, value, text in ((0.0, 0.0, "likely"), (0.16, 1.0, "1 in 10"), (0.33, 2.0, "1 in 100 or less")):
            look = {"facecolor": self.pale(value / 2), "edgecolor": "#CCCCCC", "linewidth": 0.8}
            axes.add_patch(Rectangle((x + 0.001, 0.03), 0.04, 0.1, **look))
            axes.text(x + 0.05, 0.075, text, color=style.MUTED, va="center")
        style.label_line(axes, 1, 0.075, "blue: given", style.INPUT, ha="right", va="center")
        return [self.page]

    def letters(self) -> dict[str, np.ndarray]:
        """How much ink each character has, 0 to 1, pixel by pixel, [height, width]."""
        height, width = self.cell
        characters = [plots.shown(character) for character in tiny.CHARACTERS if character != " "]
        dpi = self.figure.dpi
        sheet = Figure(figsize=(width * len(characters) / dpi, height / dpi), dpi=dpi, layout="none")
        canvas = FigureCanvasAgg(sheet)
        points = width / dpi * 72 / 0.602  # a letter of this font is 0.602 of its size wide
        for i, character in enumerate(characters):
            place = ((i + 0.5) / len(characters), 0.38)
            sheet.text(*place, character, ha="center", fontsize=points, family="DejaVu Sans Mono")
        canvas.draw()
        ink = 1 - np.asarray(canvas.buffer_rgba())[..., :1] / 255.0
        split = dict(zip(characters, np.split(ink, len(characters), axis=1), strict=True))
        return split | {" ": np.zeros((height, width, 1))}

    def update(self, temperature, top_p, dice):
        place = self.temperatures.index(temperature), self.shares.index(top_p), self.dice.index(dice)
        written, own = tiny.decode(self.ids[place]), self.own[place].numpy()
        shade = 255 * self.pale(np.minimum(-np.log10(np.maximum(own, 1e-3)), 2) / 2)[:, :3]
        blue = 255 * np.array(to_rgb(style.INPUT))
        page = np.full((self.rows, self.columns, *self.cell, 3), 255, np.uint8)
        text = self.start + written
        for i, (character, where) in enumerate(zip(text, self.places(text), strict=True)):
            if where is None:
                continue
            given = i < len(self.start)
            paper, color = (255.0, blue) if given else (shade[i - len(self.start)], 0.0)
            ink = self.ink[plots.shown(character) if character != " " else " "]
            page[where] = paper + ink * (color - paper)
        self.page.set_data(page.swapaxes(1, 2).reshape(-1, self.columns * self.cell[1], 3))
        return self.caption(temperature, top_p, written, own)

    def places(self, text: str) -> list[tuple[int, int] | None]:
        """Row and column of each character: rows are broken at spaces (None: one there is not seen)."""
        places, row, column = [], 0, 0
        for word in re.findall(r"\S*\s?", text):
            if column + len(word.rstrip()) > self.columns and row < self.rows - 1:
                row, column = row + 1, 0
            for character in word:
                if column == self.columns and row < self.rows - 1 and not character.isspace():
                    row, column = row + 1, 0
                places.append((row, column) if column < self.columns else None)
                column += 1
        return places

    def caption(self, temperature: float, top_p: float, written: str, own: np.ndarray) -> str:
        words = re.findall(r"[A-Za-z]+", written.rpartition(" ")[0])
        real = sum(word in self.words for word in words)
        count = f"All {real}" if real == len(words) else f"{real} of {len(words)}"
        count += " words occur in its training text"
        if temperature == 0:
            again = max((n for n in (80, 40, 20) if self.twice(written, n)), default=0)
            loop = f"; {again} characters in a row come twice" if again else ""
            return f"Temperature 0: the likeliest each time; dice and top p change nothing. {count}{loop}."
        unlikely = int((own < 0.1).sum())
        chosen = f"{unlikely} of its {len(own)} choices had less than 10%"
        drop = f", top p {top_p:g}" if top_p < 1 else ", nothing dropped"
        return f"Temperature {temperature:g}{drop}: {count[0].lower()}{count[1:]}, and {chosen}."

    @staticmethod
    def twice(text: str, size: int) -> bool:
        """Whether a piece of this size comes again."""
        return any(text.find(text[i : i + size], i + 1) > 0 for i in range(len(text) - size))
