"""Explorers of lesson 07: four heads that look at a sentence, and the mask of a text that goes on."""

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from lecture_utils.llama import causal_mask
from lecture_utils.plots import attention_and_gqa as plots
from lecture_utils.plots import style

from .explorer import Explorer, counted, listed, slider, stops, toggle

WORDS = plots.WORDS
QUESTIONS = ("a noun?", "an adjective?", "the one before?", "the first?")


class Heads(Explorer):
    """Four query heads over seven words: sharing keys, dividing scores, and looking ahead."""

    size = (7.5, 3.2)
    panels = {"ncols": 4, "sharey": True}

    def __init__(self) -> None:
        self.q, self.k = plots.sentence()
        super().__init__(
            word=stops("word that looks", WORDS, "cat"),
            kept=stops("key/value heads K", (1, 2, 4), 4),
            divisor=stops("scores divided by", ("1", "√d = 4", "d = 16"), "√d = 4"),
            causal=toggle("causal mask", True),
        )

    def draw(self, *panels):
        self.images, self.rows, self.reads = [], [], []
        for head, axes in enumerate(panels):
            self.images.append(plots.attention_map(axes, torch.zeros(7, 7), WORDS, numbers=False))
            row = Rectangle((-0.5, 0), 7, 1, fill=False, color=style.REFERENCE, linewidth=1.8, clip_on=False)
            self.rows.append(axes.add_patch(row))
            axes.set_title(f"head {head}:\n{QUESTIONS[head]}", fontsize=11)
            self.reads.append(
                axes.text(
                    0.5,
                    -0.39,
                    "",
                    color=plots.KEY,
                    fontweight="bold",
                    fontsize=10.5,
                    ha="center",
                    va="top",
                    transform=axes.transAxes,
                )
            )
        return [*self.images, *self.rows, *self.reads]

    def weights(self, kept: int, divisor: str, causal: bool) -> torch.Tensor:
        """[N, S, S], with not-a-number where the mask hides."""
        keys = self.k.unflatten(1, (kept, -1)).mean(2)  # heads that will share are averaged
        by = {"1": 1, "√d = 4": 4, "d = 16": 16}[divisor]
        mask = causal_mask(7, 7, torch.bool) if causal else torch.ones(7, 7, dtype=torch.bool)
        # `attention` divides by √d = 4.
        return plots.weights(self.q * 4 / by, keys, mask)[0].masked_fill(~mask, torch.nan)

    def update(self, word, kept, divisor, causal):
        seen = self.weights(kept, divisor, causal)
        row = WORDS.index(word)
        for head, (image, frame, reads) in enumerate(zip(self.images, self.rows, self.reads, strict=True)):
            image.set_data(np.ma.masked_invalid(seen[head].numpy()))
            frame.set_y(row - 0.5)
            reads.set_text(f"key head {head * kept // 4}")
        return self.caption(seen[:, row], word, kept, divisor, causal)

    def caption(self, seen, word: str, kept: int, divisor: str, causal: bool) -> str:
        if causal and word == WORDS[0]:
            return (
                f"“{word}” is the first word: behind the mask it sees only itself, so every head takes "
                "100% of it, whatever is asked."
            )
        takes = [self.takes(row) for row in seen]
        looks = f"“{word}”: " + ", ".join(f"head {head} {what}" for head, what in enumerate(takes))
        if divisor == "1" and kept == 1:
            why = "A quarter by the average, four times by no division: as with K = 4 and √d."
        elif divisor == "1":
            why = "Undivided, the best key takes all."
        elif divisor != "√d = 4":
            why = "Divided by d, every question is faint."
        elif kept == 1:
            why = "All read one average of four sets of keys: scores are a quarter as high."
        elif kept == 2:
            why = "Two heads read one average of their keys: scores are half as high."
        elif not causal:
            why = "No mask: later words count too."
        else:
            why = "Every head has keys of its own."
        return f"{looks}. {why}"

    @staticmethod
    def takes(row) -> str:
        """Where most of the weight is, in few words."""
        visible = row[~row.isnan()]
        best = visible.max()
        at = [WORDS[i] for i in (row > best - 1e-4).nonzero().flatten().tolist()]
        if len(at) == len(visible) > 1:
            return f"all {len(at)} alike"
        return (
            f"{best:.0%} “{at[0]}”"
            if len(at) == 1
            else f"{best:.0%} each {listed(f'“{word}”' for word in at)}"
        )


LONGEST = 10  # tokens, half of them new
# No cell; hidden; may look; and the same two for rows of the past.
CELLS = ListedColormap(["white", plots.HIDDEN, plots.QUERY, "#F3F3F3", "#8CBFDE"])


class Mask(Explorer):
    """The mask of new tokens is the last rows of the mask of the whole text."""

    size = (7.5, 4.0)
    panels = {"ncols": 2}

    def __init__(self) -> None:
        super().__init__(
            new=slider("new tokens (queries)", 1, LONGEST // 2, 3),
            old=slider("tokens before them", 0, LONGEST // 2, 4),
            window=stops("sees back (tokens)", (1, 2, 3, 4, 5, "all"), "all"),
            top_left=toggle("aligned top left (wrong)"),
        )

    def draw(self, whole, mask):
        self.fields, self.frames = [], []
        edges = np.arange(LONGEST + 1) - 0.5
        moving = []
        for axes in (whole, mask):
            cells = axes.pcolormesh(
                edges, edges, np.zeros((LONGEST, LONGEST)), cmap=CELLS, vmin=0, vmax=4, edgecolors="white"
            )
            cells.set_linewidth(1.5)
            self.fields.append(cells)
            frame = Rectangle(
                (-0.5, 0), 1, 1, fill=False, color=style.REFERENCE, linewidth=1.8, clip_on=False
            )
            self.frames.append(axes.add_patch(frame))
            moving += [cells, frame]
            axes.set(aspect="equal", xlim=(-0.5, LONGEST - 0.5), ylim=(LONGEST - 0.5, -0.5))
            axes.set(xticks=range(LONGEST), yticks=range(LONGEST), xlabel="token looked at (key)")
            axes.grid(visible=False)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
        (self.crosses,) = mask.plot([], [], "x", color=style.REFERENCE, markersize=7, markeredgewidth=1.8)
        whole.set(title="All at once (blue: may look)")
        mask.set(title="The mask of the new tokens")
        for axes in (whole, mask):
            axes.set_ylabel("token that looks (query)")
        return [*moving, self.crosses]

    def update(self, new, old, window, top_left):
        length = old + new
        back = length if window == "all" else window
        every = window_of(causal_mask(length, length, torch.bool), 0, back)
        right = window_of(causal_mask(new, length, torch.bool), old, back)
        shown = window_of(torch.ones(new, length, dtype=torch.bool).tril(), 0, back) if top_left else right
        past = torch.arange(length) < old
        self.fields[0].set_array(field(every.numpy(), past.numpy()))
        # At the height of its tokens, so that the eye can compare.
        self.fields[1].set_array(field(shown.numpy(), np.zeros(new, dtype=bool), first=old))
        for frame in self.frames:
            frame.set(y=old - 0.5, width=length, height=new)
        wrong = (shown != right).nonzero().T.numpy()
        self.crosses.set_data(wrong[1], wrong[0] + old)
        return self.caption(new, old, back, shown, right, top_left)

    def caption(self, new, old, back, shown, right, top_left) -> str:
        length, wrong = old + new, int((shown != right).sum())
        if top_left and not wrong:
            return (
                f"No token before, so the mask is square, {new} × {new}: both alignments are the same here."
            )
        if top_left:
            sees = shown[-1].nonzero().flatten().tolist()
            last = f"only token {sees[0]}" if len(sees) == 1 else span(sees[0], sees[-1])
            return (
                f"Aligned top left, {wrong} of {new * length} cells are wrong (×): the last query is token "
                f"{length - 1}, and sees {last}, as if it were token {new - 1}."
            )
        rows = f"{counted(new, 'query', 'queries')} on {counted(length, 'key')}"
        if back < length:
            first = max(length - back, 0)
            sees = "only itself" if first == length - 1 else span(first, length - 1)
            return (
                f"{rows}, each sees at most {counted(back, 'token')}, itself among them: the last one sees "
                f"{sees}, and forgets {counted(first, 'token')}."
            )
        if new == 1:
            return (
                f"One new token, {counted(old, 'token')} before it: it is token {old}, the last, and sees "
                "everything. One row, nothing hidden."
            )
        if not old:
            return f"{rows}: no token before them, so the mask is the whole triangle."
        return (
            f"{rows}: the mask is the last {new} rows of the triangle. The first query is token {old}, not "
            f"token 0, and sees {span(0, old)}."
        )


def window_of(allowed: torch.Tensor, old: int, back: int) -> torch.Tensor:
    """`allowed` without what is further back than `back` tokens; row 0 is token `old`."""
    return allowed & ~torch.ones_like(allowed).tril(old - back)


def field(allowed: np.ndarray, past: np.ndarray, first: int = 0) -> np.ndarray:
    """Cells [10, 10] by their place in `CELLS`; row 0 of `allowed` is drawn at the height of `first`."""
    cells = np.zeros((LONGEST, LONGEST))
    cells[first : first + len(allowed), : allowed.shape[1]] = np.where(allowed, 2, 1) + 2 * past[:, None]
    return cells


def span(first: int, last: int) -> str:
    """Tokens 3 to 5, or tokens 4 and 5."""
    return f"tokens {first} {'and' if last == first + 1 else 'to'} {last}"
