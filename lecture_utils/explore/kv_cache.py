"""Lesson 08: what a step computes and reads; what a cache weighs; a cache in blocks."""

import numpy as np
import torch
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.patches import Rectangle

from lecture_utils.llama import PRESETS, PagedKVCache, kv_cache_bytes
from lecture_utils.plots import kv_cache as plots
from lecture_utils.plots import style

from .explorer import Explorer, choice, counted, slider, stops, toggle


class Decoding(Explorer):
    """A text is written: which tokens a step computes, and which it reads from a cache."""

    size = (7.5, 3.7)
    panels = {"ncols": 2, "width_ratios": (1.45, 1)}
    most, longest = 12, 6  # steps, tokens of the prompt

    def __init__(self) -> None:
        super().__init__(
            step=slider("step", 1, self.most, 6),
            prompt=slider("prompt (tokens)", 1, self.longest, 4),
            cached=toggle("with a cache"),
        )

    def draw(self, grid, counts):
        columns = self.longest + self.most - 1
        self.image = plots.work(grid, np.zeros((self.most, columns), int))
        between = plots.grid_lines(grid, columns, self.most)
        grid.set_xticks(range(0, columns, 2))
        grid.set_title("What goes through the model")
        self.frame = Rectangle(
            (-0.5, 0), 1, 1, fill=False, color=style.REFERENCE, linewidth=1.8, clip_on=False
        )
        grid.add_patch(self.frame)
        words = {"ha": "right", "va": "center", "fontweight": "bold"}
        first = grid.text(columns - 0.7, 0, "computed for the first time", color=style.OUTPUT, **words)
        self.again = grid.text(columns - 0.7, 1, "computed again", color=style.MUTED, **words)
        self.read = grid.text(columns - 0.7, 1, "read from the cache", color=plots.READ, **words)
        self.lines, self.dots = [], []
        for color in (style.MUTED, style.OUTPUT):
            self.lines += counts.plot([], [], color=color)
            self.dots += counts.plot([], [], "o", color=color, markersize=8)
        style.label_line(counts, 0.7, 132, "without a cache", style.MUTED)
        style.label_line(counts, 0.7, 118, "with a cache", style.OUTPUT)
        counts.set(xlim=(0.4, self.most + 0.6), ylim=(0, 145), xlabel="step")
        counts.set_xticks(range(2, self.most + 1, 2))
        counts.set_title("Tokens computed so far")
        return [self.image, between, self.frame, first, self.again, self.read, *self.lines, *self.dots]

    def update(self, step, prompt, cached):
        rows, columns = self.image.get_array().shape
        self.image.set_data(plots.work_grid(prompt, step, cached, columns, rows))
        counts = plots.fed(prompt, step)
        old, new = counts[-1]
        self.frame.set_bounds(-0.5, step - 1.5, old + new, 1)
        self.again.set_visible(not cached)
        self.read.set_visible(cached)
        totals = [np.cumsum([old + new for old, new in counts]), np.cumsum([new for _, new in counts])]
        for line, dot, total, chosen in zip(self.lines, self.dots, totals, (not cached, cached), strict=True):
            line.set_data(np.arange(1, step + 1), total)
            dot.set_data([step], [total[-1]])
            dot.set_visible(chosen or step == 1)
        return self.caption(step, old, new, cached, *(int(total[-1]) for total in totals))

    def caption(self, step, old, new, cached, without, with_one):
        if step == 1:
            way = "With a cache too" if cached else "Without a cache"
            return (
                f"{way}, step 1 computes the whole prompt, {counted(new, 'token')}, and chooses token {new}. "
                f"{'From now on keys and values are kept.' if cached else 'Nothing is kept.'}"
            )
        if not cached:
            before = "1 was" if old == 1 else f"{old} were"
            return (
                f"Step {step} puts {old + new} tokens through the model. One is new, {before} "
                f"computed before. So far that makes {without}; with a cache, {with_one}."
            )
        return (
            f"Step {step} computes one token, and reads the keys and values of {counted(old, 'token')} in "
            f"every layer. So far {with_one} computed; without a cache {without}, "
            f"{without / with_one:.1f} times as many."
        )


class CacheSize(Explorer):
    """GiB of a cache and of the weights, by context, for the published models."""

    size = (7.5, 3.9)
    bytes_of = {"fp32": 4, "bf16": 2, "fp8": 1}
    cards = (24, 80)

    def __init__(self) -> None:
        self.contexts = 2 ** np.arange(9, 18)
        super().__init__(
            model=stops("model", PRESETS, "Llama-3.2-1B"),
            context=stops("context (tokens)", self.contexts.tolist(), 2048),
            batch=stops("texts side by side", [2**n for n in range(9)], 1),
            dtype=choice("numbers in", self.bytes_of, "bf16"),
        )

    def draw(self, axes):
        for card in self.cards:
            axes.axhline(card, color=style.MUTED, linestyle="--", linewidth=1)
            axes.text(1.5e5, card, f" {card} GiB card", color=style.MUTED, fontsize=10, va="center")
        (self.made_for,) = axes.plot([], [], color="#CCCCCC", linewidth=1.4)
        self.made = axes.text(0, 0, "", color=style.MUTED, fontsize=10, va="bottom")
        (self.weights,) = axes.plot([], [], color=style.WEIGHT)
        (self.cache,) = axes.plot([], [], color=plots.READ)
        (self.both,) = axes.plot([], [], color=style.REFERENCE, linewidth=1.2)
        (self.dot,) = axes.plot([], [], "o", color=plots.READ, markersize=9)
        (self.sum,) = axes.plot([], [], "o", color=style.REFERENCE, markersize=6)
        for x, name, color in ((560, "cache", plots.READ), (1100, "weights", style.WEIGHT),
                               (2560, "both together", style.REFERENCE)):  # fmt: skip
            style.label_line(axes, x, 1.2e5, name, color, va="top")
        axes.set(xscale="log", yscale="log", xlim=(500, 1.45e5), ylim=(0.002, 2e5))
        axes.set_xticks(self.contexts, [f"{n:,}" if n < 1024 else f"{n // 1024}k" for n in self.contexts])
        ticks = [0.01, 0.1, 1, 10, 100, 1000, 10000]
        axes.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel="context (tokens, log scale)", ylabel="GiB (log scale)")
        axes.set_title("The weights stay; the cache grows with every token of every text")
        return [self.made_for, self.made, self.weights, self.cache, self.both, self.dot, self.sum]

    def update(self, model, context, batch, dtype):
        config, width = PRESETS[model], self.bytes_of[dtype]

        def size(tokens: int) -> int:
            return kv_cache_bytes(config.num_hidden_layers, config.num_key_value_heads, config.head_dim,
                                  batch, tokens, width)  # fmt: skip

        sizes = np.array([size(tokens) for tokens in self.contexts.tolist()]) / plots.GIB
        weights, limit = config.num_parameters * width, config.max_position_embeddings
        self.cache.set_data(self.contexts, sizes)
        self.weights.set_data(self.contexts[[0, -1]], [weights / plots.GIB] * 2)
        self.both.set_data(self.contexts, sizes + weights / plots.GIB)
        self.dot.set_data([context], [size(context) / plots.GIB])
        self.sum.set_data([context], [(size(context) + weights) / plots.GIB])
        self.made_for.set_data([limit, limit], [0.002, 2e4])
        self.made.set_position((limit * 0.97, 0.0025))
        self.made.set_ha("right")
        self.made.set_text(f"made for {limit:,} tokens")
        texts = f"{counted(batch, 'text')} of {context:,} tokens"
        return self.caption(texts, size(context), size(1), weights, context > limit, limit)

    def caption(self, texts, cache, per_token, weights, beyond, limit):
        said = f"{texts}: {style.memory(cache)} of cache, {style.memory(weights)} of weights."
        if beyond:
            return f"{said} But this model was made for no more than {limit:,} tokens."
        both, largest = cache + weights, max(self.cards)
        if weights > largest * plots.GIB:
            return f"{said} The weights alone are more than a card of {largest} GiB holds."
        card = next((card for card in self.cards if card * plots.GIB >= both), None)
        if card is None:
            fits = int((largest * plots.GIB - weights) // per_token)
            return (
                f"{said} Too much for {largest} GiB: beside the weights there is room for {fits:,} tokens of "
                "each text."
            )
        if cache > weights:
            return (
                f"{said} The cache is {cache / weights:.1f} times as large as the model; together they fit "
                f"into {card} GiB."
            )
        return (
            f"{said} Together {style.memory(both)}: they fit into {card} GiB. The cache is "
            f"{cache / weights:.1%} of the weights."
        )


class Pages(Explorer):
    """Four texts in one memory of 256 slots: a piece for each, or blocks that are taken as they grow."""

    size = (7.5, 3.8)
    panels = {"ncols": 2, "width_ratios": (1.75, 1)}
    prompts, most, slots, row = (3, 9, 20, 33), 31, 256, 32
    colors = (style.INPUT, style.GATE, style.WEIGHT, style.POSITION)

    def __init__(self) -> None:
        self.sizes = (1, 2, 4, 8, 16, 32, 64)
        self.tables = {size: self.run(size) for size in self.sizes}
        super().__init__(
            written=slider("tokens written", 0, self.most, 8),
            block=stops("block (slots)", self.sizes, 16),
            paged=toggle("in blocks", True),
        )

    def run(self, block_size: int) -> list[list[list[int]]]:
        """The block table of each text, after 0, 1, 2 … written tokens."""
        mask = torch.arange(max(self.prompts)) >= max(self.prompts) - torch.tensor(self.prompts)[:, None]
        cache = PagedKVCache(plots.SMALLEST, 4, self.slots // block_size, block_size, mask)
        tables = []
        for new in [max(self.prompts)] + [1] * self.most:
            cache.update(0, *torch.zeros(2, 4, 1, new, 2))
            cache.advance(new)
            tables.append([list(blocks) for blocks in cache.blocks])
        return tables

    def draw(self, memory, table):
        shades = [np.array(to_rgb(color)) for color in self.colors]
        palette = ["white", *shades, *(0.25 * shade + 0.75 for shade in shades)]
        rows = self.slots // self.row
        self.image = memory.imshow(np.zeros((rows, self.row)), cmap=ListedColormap(palette), vmin=0, vmax=8,
                                   aspect="auto", interpolation="nearest",
                                   extent=(0, self.row, rows, 0))  # fmt: skip
        (self.borders,) = memory.plot([], [], color=style.MUTED, linewidth=0.7)
        memory.set(xlim=(0, self.row), ylim=(rows, 0), xticks=range(0, self.row + 1, 8))
        memory.set_yticks(np.arange(rows) + 0.5, [f"{self.row * r}" for r in range(rows)])
        memory.tick_params(axis="y", length=0)
        memory.grid(visible=False)
        memory.spines[:].set_visible(True)
        memory.set(xlabel="slots: full colour holds a token, pale is empty", ylabel="first slot of the row")
        memory.set_title("Memory for 256 tokens")
        table.set(xlim=(0, 1), ylim=(1, 0))
        table.axis("off")
        self.heading = table.set_title("")
        self.lines = []
        for text, (name, color) in enumerate(zip("ABCD", self.colors, strict=True)):
            style.label_line(table, 0, 0.06 + 0.255 * text, f"text {name}", color)
            self.lines.append(table.text(0, 0.075 + 0.255 * text, "", va="top", linespacing=1.25))
        return [self.image, self.borders, self.heading, *self.lines]

    def update(self, written, block, paged):
        lengths = [prompt + written for prompt in self.prompts]
        size = block if paged else self.slots // 4
        tables = self.tables[size][written] if paged else [[1], [2], [3], [4]]
        owner = np.zeros(self.slots, int)
        for text, (blocks, length) in enumerate(zip(tables, lengths, strict=True)):
            for number, at in enumerate(blocks):
                start = (at - 1) * size
                full = min(size, length - number * size)
                owner[start : start + size] = text + 5
                owner[start : start + full] = text + 1
        self.image.set_data(owner.reshape(-1, self.row))
        self.borders.set_data(*self.edges(size))
        self.heading.set_text("Block table" if paged else "One piece each")
        for line, blocks, length in zip(self.lines, tables, lengths, strict=True):
            line.set_text(f"{length} tokens\n{self.listed(blocks) if paged else f'{size} slots'}")
        return self.caption(sum(lengths), sum(map(len, tables)), size, paged)

    def edges(self, size: int) -> tuple[list[float], list[float]]:
        """Lines between blocks, as one line that is lifted at not-a-number."""
        rows, gap = self.slots // self.row, float("nan")
        across = range(0, rows + 1, max(1, size // self.row))
        down = range(size, self.row, size)
        x = [part for _ in across for part in (0, self.row, gap)] + [p for d in down for p in (d, d, gap)]
        y = [part for at in across for part in (at, at, gap)] + [p for _ in down for p in (0, rows, gap)]
        return x, y

    def listed(self, blocks: list[int]) -> str:
        shown = " ".join(map(str, blocks))
        shown = shown if len(shown) <= 20 else f"{' '.join(map(str, blocks[:4]))} … {blocks[-1]}"
        return f"block{'' if len(blocks) == 1 else 's'} {shown}"

    def caption(self, held, blocks, size, paged):
        taken = blocks * size
        empty, free = taken - held, self.slots - taken
        if not paged:
            return (
                f"Each text took {size} slots at once, in case it grows that long. {held} of {taken} hold a "
                f"token, {empty / taken:.0%} of the memory is empty, and no fifth text fits."
            )
        said = f"{held} tokens in {counted(blocks, 'block')} of {counted(size, 'slot')}: "
        if free == 0:
            return (
                f"{said}{empty / taken:.0%} empty, nothing free. Blocks as long as a whole text save nothing."
            )
        if size == 1:
            return (
                f"{said}not one is empty, and {free} are free for other texts. The price is a table as long "
                "as the texts."
            )
        where = f"{empty / taken:.0%} of what is taken is empty, in the last block of each text"
        return (
            f"{said}{where if empty else 'none is empty'}. {free} of {self.slots} slots are free for others."
        )
