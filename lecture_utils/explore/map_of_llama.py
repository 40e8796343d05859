"""Lesson 00: what a Llama of any size holds and costs; and a tiny one that writes, word by word."""

import functools
import itertools
import json

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.artist import Artist
from matplotlib.transforms import Bbox
from torch import Tensor

from lecture_utils.llama import PRESETS, Llama, LlamaConfig, flops_per_token, kv_cache_bytes
from lecture_utils.plots import map_of_llama as plots
from lecture_utils.plots import style
from lecture_utils.plots.map_of_llama import short

from .explorer import Explorer, choice, counted, pasted, slider, stops

BY_SIZE = sorted(PRESETS, key=lambda name: PRESETS[name].num_parameters)
CODE_LLAMA = {
    "model_type": "llama",
    "vocab_size": 32000,
    "hidden_size": 8192,
    "intermediate_size": 22016,
    "num_hidden_layers": 48,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
}
NEEDED = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


def read(text: str) -> LlamaConfig:
    """The config in a pasted `config.json`; a ValueError says in a few words what is wrong with it."""
    try:
        values = json.loads(text)
        config = LlamaConfig.from_dict(values)
    except json.JSONDecodeError as error:
        raise ValueError("this is not JSON: paste the whole file, from { to }") from error
    except (TypeError, ValueError) as error:
        raise ValueError(str(error)[:90]) from error
    missing = [name for name in NEEDED if values.get(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return config


class Together(Artist):
    """Artists that move only when `key` changes: drawn once for each key, and copied at the other moves."""

    def __init__(self, artists: list[Artist]) -> None:
        super().__init__()
        self.artists, self.key, self._copied = artists, None, None

    def set_animated(self, b: bool) -> None:
        super().set_animated(b)
        for artist in self.artists:
            artist.set_animated(b)

    def draw(self, renderer) -> None:
        if self._copied is None or self._copied[0] != self.key:
            for artist in self.artists:
                artist.draw(renderer)
            box = Bbox.union([artist.get_window_extent(renderer) for artist in self.artists])
            self._copied = self.key, renderer.copy_from_bbox(box.padded(4))
        else:
            renderer.restore_region(self._copied[1])


class Map(Explorer):
    """Parameters, arithmetic for one token, and memory of a Llama: a published one, or a pasted config."""

    size = (7.5, 4.2)
    panels = {"nrows": 2, "ncols": 2, "height_ratios": (2.5, 1)}
    rows = ("embedding", "attention", "scores", "feed_forward", "norms", "lm_head")
    labels = ("embedding", "attention: matrices", "attention: scores", "feed-forward", "norms", "head")
    memory = 1e-5, 1e6  # GiB

    def __init__(self) -> None:
        super().__init__(
            preset=stops("model", BY_SIZE, "Llama-3.2-1B"),
            context=stops("context", [2**i for i in range(0, 18)], 1024, unit="tokens"),
            texts=stops("texts at once", [4**i for i in range(5)], 1),
            pasted=pasted("or a config.json", json.dumps(CODE_LLAMA)),
        )

    def draw(self, parameters, flops, memory, spare):
        spare.remove()
        memory.set_subplotspec(memory.get_subplotspec().get_gridspec()[1, :])
        self.name = self.figure.suptitle("", x=0.01, ha="left", fontsize=12, fontweight="bold")
        self.bars, self.texts = [], []
        # Rows without a number of their own say so once; the others are written at every move.
        for axes, title, still in (
            (parameters, "Parameters", {"scores": "none"}),
            (flops, "FLOPs for one token", {"embedding": "none: a lookup", "norms": "left out: small"}),
        ):
            moving = [row for row in self.rows if row not in still]
            places = [self.rows.index(row) for row in moving]
            shades = [plots.COLORS.get(row, style.POSITION) for row in moving]
            bars = axes.barh(places, [0] * len(places), color=shades, height=0.7)
            self.bars.append(dict(zip(moving, bars, strict=True)))
            self.texts.append({row: axes.text(0, self.rows.index(row), "", va="center") for row in moving})
            for row, text in still.items():
                axes.text(2, self.rows.index(row), text, va="center", color=style.MUTED, fontsize=10)
            axes.set(title=title, xlim=(0, 150), ylim=(5.6, -0.6), xlabel="share (%)")
            axes.set_xticks([0, 25, 50, 75, 100])
            axes.grid(axis="y", visible=False)
        parameters.set_yticks(range(6), self.labels)
        flops.set_yticks(range(6), [""] * 6)
        self.points = [
            memory.plot([], [], "o", color=c, markersize=8)[0] for c in (style.WEIGHT, style.POSITION)
        ]
        self.stems = [memory.plot([], [], color=p.get_color(), linewidth=3)[0] for p in self.points]
        card = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        self.bytes = [memory.text(1, row, "", va="center", fontsize=10, bbox=card) for row in range(2)]
        memory.axvline(80 * 1e9 / 2**30, color=style.REFERENCE, linestyle="--", linewidth=1.2)
        memory.text(95, -0.62, "80 GB: one large GPU", fontsize=10, va="center")
        memory.set(
            xscale="log", xlim=self.memory, ylim=(1.6, -0.95), xlabel="GiB in bf16, 2 bytes a number (log)"
        )
        memory.set_yticks([0, 1], ["weights", "KV cache"])
        memory.grid(axis="y", visible=False)
        (held, per_token), (written, per_token_written) = self.bars, self.texts
        self.of_the_model = Together([self.name, *held.values(), *written.values()])
        moving = [*per_token.values(), *per_token_written.values(), *self.stems, *self.points, *self.bytes]
        return [self.of_the_model, *moving]

    def update(self, preset, context, texts, pasted):
        name, config, wrong = preset, PRESETS[preset], ""
        if pasted.strip():
            try:
                name, config = "pasted", read(pasted)
            except ValueError as error:
                wrong = f"Not read: {error}. Still {preset}. "
        counts, flops = config.parameter_counts(), flops_per_token(config, context)
        for bars, labels, values in zip(self.bars, self.texts, (counts, flops), strict=True):
            total = sum(values.values())
            for row, bar in bars.items():
                share = 100 * values[row] / total
                bar.set_width(share)
                percent = f"{share:.0f}%" if share >= 0.5 else "<1%"
                number = f", {short(values[row])}" if values is counts else ""
                text = percent + number if values[row] else "none: tied"  # only a head can have none
                labels[row].set(x=share + 2, text=text)
        cache = kv_cache_bytes(
            config.num_hidden_layers, config.num_key_value_heads, config.head_dim, texts, context, 2
        )
        weights = 2 * config.num_parameters
        for row, (point, stem, label, size) in enumerate(
            zip(self.points, self.stems, self.bytes, (weights, cache), strict=True)
        ):
            x = float(np.clip(size / 2**30, *self.memory))
            point.set_data([x], [row])
            stem.set_data([self.memory[0], x], [row, row])
            label.set_x(x * 1.7)
            label.set_text(style.memory(size))
        self.name.set_text(f"{name}: {config.num_parameters:,} parameters")
        self.of_the_model.key = name, config
        return (wrong or self.whose(name)) + self.caption(
            config, flops, context, texts, weights, cache, wrong
        )

    def whose(self, name: str) -> str:
        return "The pasted config, not the slider's model. " if name == "pasted" else ""

    def caption(self, config, flops, context, texts, weights, cache, wrong) -> str:
        total = sum(flops.values())
        ratio = f"{total / config.num_parameters:.2f} FLOPs per parameter"
        tokens = counted(context, "token")
        if wrong:
            return f"{short(config.num_parameters)} parameters, {ratio}."
        if cache > weights:
            many = f"{texts} texts" if texts > 1 else "one text"
            times = f"{cache / weights:,.{1 if cache < 10 * weights else 0}f} times the memory of the weights"
            return f"The cache of {many} of {tokens} takes {times}. {ratio}."
        looking = flops["scores"] / total
        if looking > 0.5:
            return (
                f"At {tokens} most of the arithmetic is looking back: the scores have no parameters, and "
                f"take {looking:.0%} of it. {ratio}."
            )
        if looking > 0.1:
            return f"Looking back at {tokens} takes {looking:.0%} of the arithmetic: {ratio}."
        head = flops["lm_head"] / total
        if config.tie_word_embeddings:
            return (
                f"The tied head has no numbers of its own, and takes {head:.0%} of the arithmetic. "
                f"At {tokens}: {ratio}."
            )
        return (
            f"The embedding is a lookup, without arithmetic; the head, as large, takes {head:.0%} of it. "
            f"At {tokens}: {ratio}."
        )


# A Llama of 16,000 parameters that has read four lines: the model that the notebook trains.

LINES = [
    "this is the house that jack built .",
    "this is the malt that lay in the house that jack built .",
    "this is the rat that ate the malt that lay in the house that jack built .",
    "this is the cat that killed the rat that ate the malt that lay in the house that jack built .",
]
WORDS = list(dict.fromkeys(" ".join(LINES).split()))  # a word's id is its place
FOLLOWERS = {
    word: {b for line in LINES for a, b in itertools.pairwise([*line.split(), "."]) if a == word}
    for word in WORDS
}


def encode(text: str) -> Tensor:
    """Words as ids, [1, S]."""
    return torch.tensor([[WORDS.index(word) for word in text.split()]])


@functools.cache
def writer() -> Llama:
    """The tiny Llama of the notebook, trained in the same steps."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        model = Llama(tiny())
        longest = max(len(line.split()) for line in LINES)
        texts = torch.cat([encode(line + " ." * (longest - len(line.split()))) for line in LINES])
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(80):
            logits = model(texts[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def tiny() -> LlamaConfig:
    """A Llama in all its parts, small enough to train in a second."""
    return LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )


class NextWord(Explorer):
    """What the tiny Llama expects after each word of a text, while the fourth word is changed.

    Args:
        model: the one that the notebook trained; None: one trained here, in the same steps.
    """

    size = (7.5, 3.8)
    fourth = ("house", "malt", "rat", "cat")

    def __init__(self, model: Llama | None = None) -> None:
        model = writer() if model is None else model
        with torch.no_grad():
            self.chances = {}
            for line, word in zip(LINES, self.fourth, strict=True):
                ids = encode(line)[:, :8]  # as many words as the shortest line has
                self.chances[word] = model(ids)[0].softmax(-1).numpy()  # [8, V]
        super().__init__(
            position=slider("read the scores after word", 1, 8, 3),
            fourth=choice("fourth word", self.fourth, "cat"),
        )

    def draw(self, axes):
        self.bars = axes.barh(range(len(WORDS)), [0] * len(WORDS), color=style.OUTPUT, height=0.7)
        self.labels = [axes.text(0, i, "", va="center", fontsize=10) for i in range(len(WORDS))]
        axes.set_yticks(range(len(WORDS)), WORDS)
        axes.set(xlim=(0, 1.08), ylim=(len(WORDS) - 0.4, -2.6), xlabel="probability of the next word")
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        axes.set_title("The scores after a word look back, never ahead")
        axes.grid(axis="y", visible=False)
        axes.text(-0.012, -1.65, "text", ha="right", va="center", fontsize=10)
        self.words = [
            axes.text(0.06 + 0.135 * i, -1.65, "", ha="center", va="center", fontsize=11) for i in range(8)
        ]
        self.seen = axes.plot([], [], color=style.INPUT, linewidth=3, solid_capstyle="butt")[0]
        return [*self.bars, *self.labels, *self.words, self.seen]

    def update(self, position, fourth):
        text = LINES[self.fourth.index(fourth)].split()[:8]
        for i, (artist, word) in enumerate(zip(self.words, text, strict=True)):
            read = i < position
            artist.set(text=word, color=style.INPUT if read else style.WRONG)
        self.seen.set_data([0.0, 0.115 + 0.135 * (position - 1)], [-0.85, -0.85])
        chances = self.chances[fourth][position - 1]
        for bar, label, chance in zip(self.bars, self.labels, chances, strict=True):
            bar.set_width(chance)
            label.set(x=chance + 0.01, text=f"{chance:.0%}" if chance >= 0.005 else "")
        return self.caption(text[:position], chances, fourth)

    def caption(self, read: list[str], chances: np.ndarray, fourth: str) -> str:
        order = chances.argsort()[::-1]
        best = "the full stop" if WORDS[order[0]] == "." else WORDS[order[0]]
        after, sure = f"After “{' '.join(read)}”", f"it expects {best}, {chances[order[0]]:.0%}"
        if len(read) < 4:
            later = f"The fourth word, {fourth}, is in the text too: no bar here depends on it."
            if chances[order[0]] < 0.6:
                sure = "it is open: " + ", ".join(
                    f"{WORDS[i]} {chances[i]:.0%}" for i in order if chances[i] > 0.05
                )
            return f"{after} {sure}. {later}"
        if len(read) == 4:
            return f"{after} {sure}. From this word on the bars may depend on “{fourth}”."
        n = len(FOLLOWERS[read[-1]])
        if n > 1:
            return (
                f"{after} {sure}. In the rhyme {n} words can follow “{read[-1]}”: it must look further back."
            )
        return f"{after} {sure}. In the rhyme nothing else follows “{read[-1]}”: here the last word would do."
