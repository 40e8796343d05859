"""Lesson 06: all hands of a small head; positions that merge; the score and the distance; one hand."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle, Wedge

from lecture_utils.llama import apply_rope, cos_sin, inv_freq
from lecture_utils.plots import style

from .explorer import Explorer, choice, slider, stops

BASES = (100, 1000, 10_000, 100_000, 500_000)
TURN = 2 * math.pi


def _face(axes: Axes, y: float = 0) -> None:
    """An empty clock face of radius 1 around (0, y), without ticks, frame and grid."""
    angle = torch.linspace(0, TURN, 121)
    axes.plot(angle.cos().numpy(), (y + angle.sin()).numpy(), color="#999999", linewidth=1.2)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)


def _fill(wedge: Wedge, start: float, way: float) -> None:
    """Shade the way of a hand from an angle on, in radians; a turn or more is the whole disc."""
    wedge.set_theta1(math.degrees(start))
    wedge.set_theta2(math.degrees(start + min(way, TURN)))


def _short(count: float) -> str:
    """Three digits, or all of a large number."""
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def _signed(number: float, digits: int = 2) -> str:
    """Rounded, without "−0.00"."""
    return f"{round(number, digits) + 0.0:.{digits}f}".replace("-", "−")


def _named(numbers: list[int]) -> str:
    """[1, 2, 3] as "hands 1, 2 and 3"."""
    *some, last = numbers
    return f"hands {', '.join(map(str, some))} and {last}" if some else f"hand {last}"


class Hands(Explorer):
    """The four pairs of a head with 8 features, as clock hands: which of them tell two positions apart.

    The steps are those of Su et al., "RoFormer", 2021, section 3.3: θ = base^(−2i/d).
    """

    size = (7.5, 3.0)
    panels = {"ncols": 4}
    visible = 5  # degrees: less is hardly seen on these faces

    def __init__(self) -> None:
        super().__init__(
            position=slider("position", 0, 1000, 10),
            back=stops("look back", (1, 10, 100), 1, unit="tokens"),
            base=stops("base", BASES, 10_000),
        )

    def draw(self, *faces):
        self.ways, self.earlier, self.now, self.counts = [], [], [], []
        for hand, face in enumerate(faces):
            _face(face)
            way = Wedge((0, 0), 1, 0, 0, facecolor=style.POSITION, alpha=0.15, linewidth=0)
            self.ways.append(face.add_patch(way))
            self.earlier += face.plot([], [], color="#A6A6A6", linewidth=2)
            self.now += face.plot([], [], color=style.POSITION, linewidth=3)
            self.counts.append(face.text(0, -2.0, "", ha="center", va="baseline", linespacing=1.5))
            face.set(xlim=(-1.2, 1.2), ylim=(-2.1, 1.1))
            face.set_title(f"hand {hand}", loc="center", fontsize=11)
        faces[0].text(-1.3, 0.2, "now", color=style.POSITION, fontweight="bold", ha="right")
        faces[0].text(-1.3, -0.4, "before", color="#777777", fontweight="bold", ha="right")
        faces[0].text(-1.3, -2.0, "tokens a turn\nturns so far", ha="right", linespacing=1.5)
        style.headline(faces[0].figure, "Fast hands tell neighbours apart, slow hands tell far from near")
        return [*self.ways, *self.earlier, *self.now, *self.counts]

    def update(self, position, back, base):
        before = max(0, position - back)
        moved, still, new = [], [], []
        for hand, theta in enumerate(inv_freq(8, base).tolist()):
            start, end = before * theta, position * theta
            _fill(self.ways[hand], start, end - start)
            self.earlier[hand].set_data([0, math.cos(start)], [0, math.sin(start)])
            self.now[hand].set_data([0, math.cos(end)], [0, math.sin(end)])
            self.counts[hand].set_text(f"{_short(TURN / theta)}\n{end / TURN:.2f}")
            apart = abs((end - start + math.pi) % TURN - math.pi)  # whole turns are not seen
            (moved if math.degrees(apart) >= self.visible else still).append(hand)
            if end < TURN:
                new.append(hand)
        if position == 0:
            return "At position 0 every hand points to the right: a turn by 0 radians changes nothing."
        says = f"Between positions {before} and {position}, "
        if not still:
            says += f"every hand differs visibly ({self.visible}° or more)."
        elif not moved:
            says += "no hand differs visibly."
        else:
            verb = "differ" if moved[1:] else "differs"
            says += f"{_named(moved)} {verb} visibly ({self.visible}° or more), {_named(still)} hardly."
        if not new:
            return f"{says} All have come round at least once, so none alone can name the position."
        have, their = ("have", "their") if new[1:] else ("has", "its")
        return (
            f"{says} {_named(new).capitalize()} {have} not come round yet: {their} angles are all new so far."
        )


class Merge(Explorer):
    """Sixteen neighbouring positions, where a dtype keeps them, and what that does to the cosine of a pair.

    As a careless `cos_sin` would have it: positions, steps and their products are all kept in the dtype.
    The pairs are those of Llama-3-8B (128 features, base 500000).
    """

    size = (7.5, 4.0)
    panels = {"nrows": 2, "sharex": True}

    def __init__(self) -> None:
        self.steps = inv_freq(128, 500_000.0)
        super().__init__(
            first=stops("first position", (0, 56, 120, 248, 504, 1000, 2040, 4088, 8184), 248),
            dtype=choice("kept in", ("bfloat16", "float16", "float32"), "bfloat16"),
            pair=slider("pair", 0, 63, 0),
        )

    def draw(self, row, wave):
        spots = range(16)
        row.plot(spots, [1] * 16, "o", color=style.POSITION, markersize=7)
        self.whole = [row.text(x, 1.2, "", ha="center", va="bottom", fontsize=10) for x in spots[::4]]
        self.ways = row.add_collection(LineCollection([], color="#AAAAAA", linewidth=1.6))
        (self.landed,) = row.plot([], [], "o", color=style.OUTPUT, markersize=9)
        # Only numbers on which another position lands are written below: nine at most.
        self.kept = [row.text(0, -0.22, "", ha="center", va="top", fontsize=10) for _ in range(9)]
        row.set(ylim=(-0.75, 1.65), yticks=[0, 1], yticklabels=["kept as", "position"])
        row.set_title("Where neighbouring positions land")
        row.spines[:].set_visible(False)
        row.tick_params(length=0, labelbottom=False)
        row.grid(visible=False)
        (self.exact,) = wave.plot(spots, [0] * 16, "o--", color=style.REFERENCE, linewidth=1.2,
                                  markersize=10, markerfacecolor="none")  # fmt: skip
        (self.rounded,) = wave.plot(spots, [0] * 16, "o", color=style.OUTPUT, markersize=6)
        wave.set(xlim=(-0.7, 16.7), ylim=(-1.25, 1.25), xticks=[], yticks=[-1, 0, 1], ylabel="cosine")
        wave.set_title("The cosine of the pair: exact (rings) and as kept (dots)")
        return [self.ways, self.landed, *self.whole, *self.kept, self.exact, self.rounded]

    def update(self, first, dtype, pair):
        kind, theta = getattr(torch, dtype), self.steps[pair]
        positions = torch.arange(first, first + 16)
        kept = positions.to(kind)
        exact, angles = positions.double() * theta.double(), (kept * theta.to(kind)).double()
        landing = kept.long().tolist()
        pairs = list(zip(positions.tolist(), landing, strict=True))
        self.ways.set_segments([[(a - first, 0.9), (b - first, 0.1)] for a, b in pairs])
        self.landed.set_data([b - first for b in landing], [0] * 16)
        for label, position in zip(self.whole, positions[::4].tolist(), strict=True):
            label.set_text(f"{position}")
        moved = sorted({b for a, b in pairs if a != b})
        for label, place in zip(self.kept, moved + [None] * 9, strict=False):
            label.set_text("" if place is None else f"{place}")
            label.set_x(0 if place is None else place - first)
        self.exact.set_ydata(exact.cos().numpy())
        self.rounded.set_ydata(angles.cos().numpy())

        off = (angles - exact).abs().max().item()
        cosine = (angles.cos() - exact.cos()).abs().max().item()
        finest = torch.finfo(kind).eps
        if moved:
            power = 2 ** int(math.log2(positions[-1]))  # from here on, gaps of one size
            left = len(set(landing))
            says = (
                f"From {power} on {dtype} keeps multiples of {finest * power:.0f} only: 16 positions become "
                f"{left if left > 1 else 'one'}."
            )
        else:
            says = f"Up to {2 / finest:,.0f} {dtype} keeps every whole number"
            if pair == 0:
                return f"{says}, and the step of pair 0, 1 radian: all its angles are exact."
            says += f", but it rounds the step of pair {pair} and the angle."
        if cosine < 0.01:
            slow = f"pair {pair} is so slow that its cosines" if moved else f"the cosines of pair {pair}"
            return f"{says} Yet {slow} are off by less than 0.01."
        return (
            f"{says} The angle of pair {pair} is off by up to {off:.2f} radians ({off / TURN:.2f} turns), "
            f"its cosine by up to {cosine:.2f}."
        )


class Distance(Explorer):
    """The score of a query and a key at every distance, and three of their pairs as two clock hands each.

    Every pair of the two vectors has length 1. So a pair adds the cosine of the angle between its two hands
    to the score, and the score divided by the number of pairs lies between −1 and 1.

    Args:
        seed: of a random direction for each pair of the query and of the key. Without one, all are `[1, 0]`.
    """

    size = (7.5, 4.0)
    panels = {"ncols": 2, "width_ratios": (1, 2.4)}
    longest = 128
    rows = (0, -2.4, -4.8)

    def __init__(self, seed: int | None = None) -> None:
        self.random = seed is not None
        angles = torch.zeros(2, 64)
        if self.random:
            angles = TURN * torch.rand(2, 64, generator=torch.Generator().manual_seed(seed))
        self.directions = torch.stack((angles.cos(), angles.sin()), dim=1)  # [2, member, pair]
        super().__init__(
            distance=slider("distance", 0, self.longest, 5, unit="tokens"),
            shift=slider("shift of both positions", 0, 1000, 0, unit="tokens"),
            base=stops("base", BASES, 10_000),
            head_dim=stops("head size d", (2, 4, 8, 16, 32, 64, 128), 64),
        )

    def draw(self, faces, curve):
        self.ways, self.key_hands, self.query_hands, self.added = [], [], [], []
        for y in self.rows:
            _face(faces, y)
            way = Wedge((0, y), 1, 0, 0, facecolor=style.OUTPUT, alpha=0.18, linewidth=0)
            self.ways.append(faces.add_patch(way))
            self.query_hands += faces.plot([], [], color=style.INPUT, linewidth=3)
            self.key_hands += faces.plot([], [], color=style.POSITION, linewidth=3)
            faces.text(1.4, y, "pair\nadds", va="center", linespacing=1.5)
            self.added.append(faces.text(4.1, y, "", va="center", ha="right", linespacing=1.5))
        faces.text(-1, 2.3, "query at", color=style.INPUT, fontweight="bold")
        faces.text(-1, 1.5, "key at", color=style.POSITION, fontweight="bold")
        self.query = faces.text(2.1, 2.3, "", color=style.INPUT, fontweight="bold")
        self.key = faces.text(2.1, 1.5, "", color=style.POSITION, fontweight="bold")
        faces.set(xlim=(-1.1, 4.4), ylim=(-5.9, 2.8))
        self.distances = torch.arange(self.longest + 1)
        (self.line,) = curve.plot(self.distances.numpy(), [0] * 129, color=style.OUTPUT, linewidth=1.4)
        (self.dot,) = curve.plot([], [], "o", color=style.OUTPUT, markersize=10)
        curve.axhline(0, color="#555555", linewidth=0.8)
        who = "random directions" if self.random else "all pairs [1, 0]"
        curve.set_title(f"Score by distance, {who}")
        curve.set(xlabel="distance between query and key (tokens)", ylabel="score per pair")
        curve.set(xlim=(-2, self.longest + 2), ylim=(-1.1, 1.1), yticks=[-1, -0.5, 0, 0.5, 1])
        hands = [*self.ways, *self.query_hands, *self.key_hands, *self.added]
        return [*hands, self.query, self.key, self.line, self.dot]

    def update(self, distance, shift, base, head_dim):
        pairs, theta = head_dim // 2, inv_freq(head_dim, base)
        query, key = self.directions[:, :, :pairs].flatten(1)  # [d] each, half-split
        # The key stands at `shift`, and a query at every distance after it.
        queries, keys = apply_rope(
            query.expand(1, 1, len(self.distances), -1),
            key.expand(1, 1, len(self.distances), -1),
            *cos_sin(self.distances + shift, theta),
        )
        queries, key = queries[0, 0], keys[0, 0, 0]  # [S, d], [d]
        scores = queries @ key / pairs
        score = scores[distance].item()
        self.line.set_ydata(scores.numpy())
        self.dot.set_data([distance], [score])
        self.query.set_text(f"{distance + shift}")
        self.key.set_text(f"{shift}")
        query, key = (turned.unflatten(0, (2, pairs)) for turned in (queries[distance], key))
        added = (query * key).sum(0)  # [d/2]
        shown = sorted({0, pairs // 2, pairs - 1})
        for row, y in enumerate(self.rows):
            used = row < len(shown)
            for artist in (self.ways[row], self.key_hands[row], self.query_hands[row]):
                artist.set_visible(used)
            if not used:
                self.added[row].set_text("–\n–")
                continue
            pair = shown[row]
            (a, b), (c, d) = key[:, pair].tolist(), query[:, pair].tolist()
            start, end = math.atan2(b, a), math.atan2(d, c)
            _fill(self.ways[row], start, (end - start) % TURN)
            self.key_hands[row].set_data([0, 0.6 * a], [y, y + 0.6 * b])
            self.query_hands[row].set_data([0, c], [y, y + d])
            self.added[row].set_text(f"{pair}\n{_signed(added[pair].item())}")

        score = _signed(score)
        if shift:
            return (
                f"At {distance + shift} and {shift} the score is {score} per pair, as at {distance} and 0: "
                "both hands of a pair turn on by the same angle, so the angle between them stays."
            )
        says = f"Distance {distance}: {score} per pair."
        if pairs == 1:
            return f"{says} One pair comes round every {TURN:.3g} tokens: it cannot say how far the key is."
        if self.random:
            return (
                f"{says} Each pair starts at an angle of its own, so distance brings some together and "
                "others apart: no reason for near to be more."
            )
        if distance == 0:
            return f"{says} At one and the same position both hands of every pair coincide: each adds 1."
        far = distance * theta >= TURN / 4
        if not far.any():
            return f"{says} No pair turns by a quarter over it: all {pairs} of them still agree."
        fast, slow = (_signed(added[which].sum().item(), 1) for which in (far, ~far))
        s = "s" if far.sum() == 1 else ""
        says += f" {far.sum()} of {pairs} pairs turn{s} by a quarter or more and add{s} {fast} in all"
        return f"{says}." if far.all() else f"{says}; the slower rest adds {slow}."


class Hand(Explorer):
    """One pair of a head with 64 features as a clock hand, and how many tokens a turn of each pair takes.

    The steps are those of Su et al., "RoFormer", 2021, section 3.3: θ = base^(−2i/d).
    """

    size = (7.5, 3.8)
    panels = {"ncols": 2, "width_ratios": (1, 1.5)}

    def __init__(self) -> None:
        # Every whole number at first, then 16 to each factor of ten.
        positions = sorted({*range(20), *(round(10 ** (exponent / 16)) for exponent in range(63)), 8192})
        super().__init__(
            position=stops("position", positions, 100),
            pair=slider("pair", 0, 31, 8),
            base=stops("base", BASES, 10_000),
        )

    def draw(self, face, speeds):
        _face(face)
        self.way = face.add_patch(Wedge((0, 0), 1, 0, 0, facecolor=style.POSITION, alpha=0.15, linewidth=0))
        face.plot([0, 1], [0, 0], color=style.INPUT)
        fading = [k / 14 for k in range(1, 13)]
        self.trail = face.scatter([0] * 12, [0] * 12, s=30, color=style.POSITION, alpha=fading, linewidths=0)
        (self.hand,) = face.plot([], [], color=style.OUTPUT, linewidth=3)
        face.set(xlim=(-1.2, 1.2), ylim=(-1.9, 1.15), title="The hand of the pair")
        face.text(0, -1.35, "dots: the 12 positions before", ha="center", va="center", fontsize=10)
        self.turned = face.text(0, -1.7, "", ha="center", va="center", color=style.OUTPUT, fontweight="bold")
        self.below = speeds.add_patch(
            Rectangle((-1, 0.5), 33, 1, facecolor=style.POSITION, alpha=0.12, linewidth=0)
        )
        (self.turns,) = speeds.plot(range(32), [1] * 32, "o", color=style.POSITION, markersize=4)
        (self.dot,) = speeds.plot([], [], "o", color=style.OUTPUT, markersize=10)
        style.label_line(speeds, 31.5, 0.9, "green: has come round", style.POSITION, ha="right")
        speeds.set(yscale="log", xlim=(-1, 32), ylim=(0.5, 6e6), title="Tokens that a full turn takes")
        speeds.set(xlabel="pair", ylabel="tokens a turn")
        speeds.set_yticks([1, 10, 100, 1000, 10_000, 100_000, 1_000_000], minor=False)
        speeds.yaxis.set_major_formatter("{x:,.0f}")
        speeds.minorticks_off()
        return [self.way, self.trail, self.hand, self.turned, self.below, self.turns, self.dot]

    def update(self, position, pair, base):
        thetas = inv_freq(64, base)
        theta = thetas[pair].item()
        angle, turn = position * theta, TURN / theta
        _fill(self.way, 0, angle)
        self.hand.set_data([0, math.cos(angle)], [0, math.sin(angle)])
        past = theta * torch.arange(position - 12, position).clamp(min=0)
        self.trail.set_offsets(torch.stack((past.cos(), past.sin()), dim=1).numpy())
        self.below.set_height(max(position - 0.5, 0))
        self.turns.set_ydata((TURN / thetas).numpy())
        self.dot.set_data([pair], [turn])
        self.turned.set_text(f"{angle / TURN:.2f} turns")
        if position == 0:
            return "At position 0 every hand points to the right: a turn by 0 radians changes nothing."
        says = f"{position} × {theta:.3g} = {_short(angle)} radians."
        if pair == 0:
            says += " Pair 0 turns by 1 radian a token with every base."
        else:
            says += f" A turn takes {_short(turn)} tokens"
            dozen = math.degrees(12 * theta)
            if angle >= TURN:
                says += f", so pair {pair} has come past here before."
            elif dozen < 5:
                says += f": here 12 neighbours lie within {dozen:.1g}° and look alike."
            else:
                says += f", so every angle of pair {pair} is new so far."
        done = (TURN / thetas <= position).sum()
        return f"{says} {done} of 32 pairs {'has' if done == 1 else 'have'} come round."
