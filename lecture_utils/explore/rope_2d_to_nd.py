"""Lesson 06: all hands of a small head; positions that merge; the score and the distance; one hand."""

import math
from itertools import zip_longest

import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Wedge

from lecture_utils.llama import PRESETS, apply_rope, cos_sin, inv_freq
from lecture_utils.plots import style
from lecture_utils.plots.rope_2d_to_nd import face

from .explorer import Explorer, choice, listed, slider, stops

BASES = (100, 1000, 10_000, 100_000, 500_000)
TURN = 2 * math.pi
AT_0 = "At position 0 every hand points to the right: a turn by 0 radians changes nothing."


def _fill(wedge: Wedge, start: float, way: float) -> None:
    """Shade the way of a hand from an angle on, in radians; a turn or more is the whole disc."""
    whole = way >= TURN
    wedge.set_theta1(0 if whole else math.degrees(start))
    wedge.set_theta2(360 if whole else math.degrees(start + way))


def _short(count: float) -> str:
    """Three digits, or all of a large number."""
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def _named(hands: list[int]) -> str:
    """[1, 2, 3] as "hands 1, 2 and 3"."""
    return f"hand{'s' if hands[1:] else ''} {listed(hands)}"


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
            back=stops("look back", (1, 10, 44, 100), 1, unit="tokens"),
            base=stops("base", BASES, 10_000),
        )

    def draw(self, *faces):
        self.ways, self.earlier, self.now, self.counts = [], [], [], []
        for hand, axes in enumerate(faces):
            face(axes)
            way = Wedge((0, 0), 1, 0, 0, facecolor=style.POSITION, alpha=0.15, linewidth=0)
            self.ways.append(axes.add_patch(way))
            self.earlier += axes.plot([], [], color=style.MUTED, linewidth=2)
            self.now += axes.plot([], [], color=style.POSITION, linewidth=3)
            self.counts.append(axes.text(0, -2.0, "", ha="center", va="baseline", linespacing=1.5))
            axes.set(xlim=(-1.2, 1.2), ylim=(-2.1, 1.1))
            axes.set_title(f"hand {hand}", loc="center", fontsize=11)
        faces[0].text(-1.3, 0.2, "now", color=style.POSITION, fontweight="bold", ha="right")
        faces[0].text(-1.3, -0.4, "before", color=style.MUTED, fontweight="bold", ha="right")
        faces[0].text(-1.3, -2.0, "tokens a turn\nturns since 0", ha="right", linespacing=1.5)
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
            return AT_0
        says = f"Between positions {before} and {position}, "
        if back > position:
            says = f"The text starts at 0: between it and position {position}, "
        if not still:
            says += f"every hand differs visibly ({self.visible}° or more)."
        elif not moved:
            says += "no hand differs visibly."
        else:
            verb = "differ" if moved[1:] else "differs"
            says += f"{_named(moved)} {verb} visibly ({self.visible}° or more), {_named(still)} hardly."
        if not new:
            return f"{says} All have come round at least once, so none alone can name the position."
        if len(new) == 4:
            return f"{says} No hand has come round yet: no angle came twice."
        have, theirs = ("have", "theirs") if new[1:] else ("has", "its own")
        return (
            f"{says} {_named(new).capitalize()} {have} not come round yet: no angle of {theirs} came twice."
        )


class Merge(Explorer):
    """Sixteen neighbouring positions, where a dtype keeps them, and what that does to the cosine of a pair.

    As a careless `cos_sin` would have it: positions, steps and their products are all kept in the dtype.
    The pairs are those of Llama-3-8B. The cosines themselves are not rounded.
    """

    size = (7.5, 4.0)
    panels = {"nrows": 2, "sharex": True}
    dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

    def __init__(self) -> None:
        config = PRESETS["Llama-3-8B"]
        self.steps = inv_freq(config.head_dim, config.rope_theta)
        super().__init__(
            first=stops("first position", (0, 56, 120, 248, 504, 1000, 2040, 4088, 8184), 248),
            dtype=choice("kept in", self.dtypes, "bf16"),
            pair=slider("pair", 0, len(self.steps) - 1, 0),
        )

    def draw(self, row, wave):
        spots = range(16)
        row.plot(spots, [1] * 16, "o", color=style.POSITION, markersize=7)
        self.whole = [row.text(x, 1.2, "", ha="center", va="bottom", fontsize=10) for x in spots[::4]]
        self.ways = row.add_collection(LineCollection([], color="#AAAAAA", linewidth=1.6))
        (self.landed,) = row.plot([], [], "o", color=style.OUTPUT, markersize=9)
        # Only numbers on which another position lands are written below: five at most.
        self.kept = [row.text(0, -0.22, "", ha="center", va="top", fontsize=10) for _ in range(5)]
        row.set(ylim=(-0.75, 1.65), yticks=[0, 1], yticklabels=["kept as", "position"])
        row.set_title("Where neighbouring positions land")
        row.spines[:].set_visible(False)
        row.tick_params(length=0, labelbottom=False)
        row.grid(visible=False)
        (self.exact,) = wave.plot(spots, [0] * 16, "o--", color=style.REFERENCE, linewidth=1.2,
                                  markersize=10, markerfacecolor="none")  # fmt: skip
        (self.rounded,) = wave.plot(spots, [0] * 16, "o", color=style.OUTPUT, markersize=6)
        wave.set(xlim=(-0.7, 16.7), ylim=(-1.25, 1.25), xticks=[], yticks=[-1, 0, 1], ylabel="cosine")
        wave.set_title("The cosine of the pair: exact (rings), of the kept angle (dots)")
        return [self.ways, self.landed, *self.whole, *self.kept, self.exact, self.rounded]

    def update(self, first, dtype, pair):
        kind, theta = self.dtypes[dtype], self.steps[pair]
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
        for label, place in zip_longest(self.kept, moved):
            label.set_text("" if place is None else f"{place}")
            label.set_x(0 if place is None else place - first)
        self.exact.set_ydata(exact.cos().numpy())
        self.rounded.set_ydata(angles.cos().numpy())

        lost = (kept.double() - positions).abs().max().item() * theta.item()
        rounded = (angles - kept.double() * theta.double()).abs().max().item()
        off = (angles - exact).abs().max().item()
        cosine = (angles.cos() - exact.cos()).abs().max().item()
        finest = torch.finfo(kind).eps
        if moved:
            power = 2 ** int(math.log2(positions[-1]))  # gaps of one size from here to its double
            gap, left = round(finest * power), len(set(landing))
            says = f"Here {dtype} keeps multiples of {gap} only"
            if first < power:
                below = f"multiples of {gap // 2}" if gap > 2 else "all whole numbers"
                says = f"Below {power} {dtype} keeps {below}, above only multiples of {gap}"
            says += f": 16 positions become {left if left > 1 else 'one'}."
        else:
            says = f"Up to {2 / finest:,.0f} {dtype} keeps every whole number"
            if pair == 0:
                return f"{says}, and the step of pair 0, 1 radian: all its angles are exact."
            says += f", but it rounds the step of pair {pair} and the angle."
        if cosine < 0.01:
            slow = f"pair {pair} is so slow that its cosines" if moved else f"the cosines of pair {pair}"
            return f"{says} Yet {slow} are off by less than 0.01."
        says += f" Angles of pair {pair} are off by up to {off:.2f} radians"
        if moved:
            causes = f"lost positions: up to {lost:.2f}, rounded step and product: up to {rounded:.2f}"
            says += f" ({causes if rounded > 0.005 else 'all by lost positions'})"
        return f"{says}, cosines by up to {cosine:.2f}."


class Distance(Explorer):
    """The score of a query and a key at every distance, what each of their pairs adds, and three as clocks.

    Every pair of the two vectors has length 1. So a pair adds the cosine of the angle between its two hands
    to the score, and the score divided by the number of pairs lies between −1 and 1.

    Args:
        directions: of the pairs at first: "all [1, 0]", or "drawn 1" to "drawn 6" (at random).
    """

    size = (7.5, 4.0)
    panels = {"ncols": 3, "width_ratios": (0.8, 1.2, 2.6)}
    longest = 128
    rows = (0, -2.9, -5.8)

    def __init__(self, directions: str = "all [1, 0]") -> None:
        angles = {"all [1, 0]": torch.zeros(2, 64)}
        for seed in range(1, 7):
            angles[f"drawn {seed}"] = TURN * torch.rand(2, 64, generator=torch.Generator().manual_seed(seed))
        # [2, member, pair] each
        self.drawn = {name: torch.stack((a.cos(), a.sin()), dim=1) for name, a in angles.items()}
        super().__init__(
            distance=slider("distance", 0, self.longest, 5, unit="tokens"),
            shift=slider("shift of both", 0, 1000, 0, unit="tokens"),
            base=stops("base", BASES, 10_000),
            head_dim=stops("head size d", (2, 4, 8, 16, 32, 64, 128), 64),
            directions=stops("directions", self.drawn, directions),
        )

    def draw(self, faces, pairs, curve):
        self.key_hands, self.query_hands = [], []
        for y, name in zip(self.rows, ("fastest pair", "middle pair", "slowest pair"), strict=True):
            face(faces, y)
            self.query_hands += faces.plot([], [], color=style.INPUT, linewidth=3)
            self.key_hands += faces.plot([], [], color=style.POSITION, linewidth=3)
            faces.text(0, y - 1.15, name, ha="center", va="top", fontsize=10)
        for y, name, color in ((2.2, "query at", style.INPUT), (1.4, "key at", style.POSITION)):
            faces.text(0.45, y, name, color=color, fontweight="bold", ha="right")
        self.query = faces.text(0.7, 2.2, "", color=style.INPUT, fontweight="bold")
        self.key = faces.text(0.7, 1.4, "", color=style.POSITION, fontweight="bold")
        faces.set(xlim=(-1.6, 1.6), ylim=(-7.8, 2.9))
        # Drawn between the whole tokens too, so that no peak is cut off.
        self.quarters = torch.arange(4 * self.longest + 1)
        (self.added,) = pairs.plot([], [], "o", color=style.OUTPUT, markersize=4)
        pairs.set(title="Each pair adds", xlim=(-0.1, 1.1), xticks=[0, 1], xticklabels=["fastest", "slowest"])
        pairs.set(xlabel="pair", ylabel="added to the score")
        self.level = pairs.axhline(0, color=style.OUTPUT, linewidth=1.4)
        distances = (self.quarters / 4).numpy()
        (self.line,) = curve.plot(distances, 0 * distances, color=style.OUTPUT, linewidth=1.4)
        (self.dot,) = curve.plot([], [], "o", color=style.OUTPUT, markersize=10)
        curve.set(title="Their mean, by distance", xlim=(-4, self.longest + 4))
        curve.set(xlabel="distance between query and key (tokens)")
        for axes in (pairs, curve):
            axes.set(ylim=(-1.1, 1.1), yticks=[-1, -0.5, 0, 0.5, 1])
            axes.axhline(0, color=style.MUTED, linewidth=0.8)
        curve.tick_params(labelleft=False)
        hands = [*self.query_hands, *self.key_hands]
        return [*hands, self.query, self.key, self.added, self.level, self.line, self.dot]

    def update(self, distance, shift, base, head_dim, directions):
        pairs, theta = head_dim // 2, inv_freq(head_dim, base)
        query, key = self.drawn[directions][:, :, :pairs].flatten(1)  # [d] each, half-split
        # The key stands at `shift`, and a query at every distance after it: quarters of positions and steps.
        queries, keys = apply_rope(
            query.expand(1, 1, len(self.quarters), -1),
            key.expand(1, 1, len(self.quarters), -1),
            *cos_sin(self.quarters + 4 * shift, theta / 4),
        )
        queries, key = queries[0, 0], keys[0, 0, 0]  # [S, d], [d]
        scores = queries @ key / pairs
        query, key = (turned.unflatten(0, (2, pairs)) for turned in (queries[4 * distance], key))
        added = (query * key).sum(0)  # [d/2]
        mean = added.mean().item()
        self.line.set_ydata(scores.numpy())
        self.dot.set_data([distance], [mean])
        self.level.set_ydata([mean, mean])
        self.added.set_data(torch.linspace(0, 1, pairs).numpy(), added.numpy())
        self.query.set_text(f"{distance + shift}")
        self.key.set_text(f"{shift}")
        for row, pair in enumerate((0, pairs // 2, pairs - 1)):
            (a, b), (c, d), y = key[:, pair].tolist(), query[:, pair].tolist(), self.rows[row]
            self.key_hands[row].set_data([0, 0.6 * a], [y, y + 0.6 * b])
            self.query_hands[row].set_data([0, c], [y, y + d])

        says = f"Distance {distance}: {style.number(mean, '.2f')} per pair"
        if shift:
            says += f", at {distance + shift} and {shift} as at {distance} and 0: both hands turn on alike"
        if pairs == 1:
            return f"{says}. One pair comes round every {TURN:.3g} tokens: it cannot say how far the key is."
        if directions != "all [1, 0]":
            return (
                f"{says}. Each pair starts at an angle of its own, so distance brings some together and "
                f"others apart: the score is highest at distance {scores[::4].argmax()}."
            )
        if distance == 0:
            return f"{says}. At one and the same position both hands of every pair coincide: each adds 1."
        far = distance * theta >= TURN / 4
        if not far.any():
            return f"{says}. No pair turns by a quarter over it: all {pairs} of them still agree."
        fast, slow = (style.number(added[which].sum().item(), ".1f") for which in (far, ~far))
        s = "s" if far.sum() == 1 else ""
        says += f". {far.sum()} of {pairs} pairs turn{s} by a quarter or more and add{s} {fast} in all"
        return f"{says}." if far.all() else f"{says}; the slower rest adds {slow}."


class Hand(Explorer):
    """One pair of a head with 64 features as a clock hand, and how many tokens a turn of each pair takes.

    The steps are those of Su et al., "RoFormer", 2021, section 3.3: θ = base^(−2i/d).
    """

    size = (7.5, 3.8)
    panels = {"ncols": 2, "width_ratios": (1, 1.5)}

    def __init__(self) -> None:
        # Every whole number at first, then 16 to each factor of ten.
        positions = sorted(
            {*range(20), *(round(10 ** (exponent / 16)) for exponent in range(63)), 62, 63, 8192}
        )
        super().__init__(
            position=stops("position", positions, 100),
            pair=slider("pair", 0, 31, 8),
            base=stops("base", BASES, 10_000),
        )

    def draw(self, clock, speeds):
        face(clock)
        self.way = clock.add_patch(Wedge((0, 0), 1, 0, 0, facecolor=style.POSITION, alpha=0.15, linewidth=0))
        clock.plot([0, 1], [0, 0], color=style.MUTED, linewidth=1.2)
        fading = [k / 14 for k in range(12, 0, -1)]
        self.trail = clock.scatter([0] * 12, [0] * 12, s=30, color=style.POSITION, alpha=fading, linewidths=0)
        (self.hand,) = clock.plot([], [], color=style.POSITION, linewidth=3)
        clock.set(xlim=(-1.2, 1.2), ylim=(-1.95, 1.15), title="The hand of the pair")
        key = "grey: position 0\ndots: up to 12 before"
        clock.text(0, -1.4, key, ha="center", va="center", fontsize=10, linespacing=1.4)
        self.turned = clock.text(
            0, -1.8, "", ha="center", va="center", color=style.POSITION, fontweight="bold"
        )
        self.here = speeds.axhline(1, color=style.POSITION, linewidth=1.4)
        self.name = speeds.text(32.4, 1, "position", color=style.POSITION, fontweight="bold", va="center")
        (self.slow,) = speeds.plot([], [], "o", color=style.POSITION, markersize=5, markerfacecolor="white")
        (self.fast,) = speeds.plot([], [], "o", color=style.POSITION, markersize=5)
        (self.dot,) = speeds.plot([], [], "o", color=style.POSITION, markersize=11)
        speeds.text(-0.3, 2e6, "hollow: has not come round yet", color=style.POSITION, fontweight="bold")
        speeds.set(yscale="log", xlim=(-1, 32), ylim=(0.5, 6e6), title="Tokens that a full turn takes")
        speeds.set(xlabel="pair", ylabel="tokens a turn")
        speeds.set_yticks([1, 10, 100, 1000, 10_000, 100_000, 1_000_000], minor=False)
        speeds.yaxis.set_major_formatter("{x:,.0f}")
        speeds.minorticks_off()
        marks = [self.here, self.name, self.slow, self.fast, self.dot]
        return [self.way, self.trail, self.hand, self.turned, *marks]

    def update(self, position, pair, base):
        thetas = inv_freq(64, base)
        theta = thetas[pair].item()
        angle, turn, turns = position * theta, TURN / theta, TURN / thetas
        _fill(self.way, 0, angle)
        self.hand.set_data([0, math.cos(angle)], [0, math.sin(angle)])
        before = range(position)[:-13:-1]  # the last one first
        past = theta * torch.tensor(before)
        self.trail.set_offsets(torch.stack((past.cos(), past.sin()), dim=1).numpy())
        for artist in (self.trail, self.here, self.name):
            artist.set_visible(position > 0)
        self.here.set_ydata([position, position])
        self.name.set_y(max(position, 1))
        done = turns <= position
        for dots, which in ((self.fast, done), (self.slow, ~done)):
            dots.set_data(which.nonzero().flatten().numpy(), turns[which].numpy())
        self.dot.set_data([pair], [turn])
        self.dot.set_markerfacecolor(style.POSITION if done[pair] else "white")
        self.turned.set_text(f"{angle / TURN:,.2f} turns")
        if position == 0:
            return AT_0
        says = f"{position:,} × {theta:.3g} = {_short(angle)} radian{'' if angle == 1 else 's'}."
        if pair == 0:
            says += " Pair 0 turns by 1 radian a token with every base."
        else:
            says += f" A turn takes {_short(turn)} tokens"
            near = math.degrees(len(before) * theta)
            if done[pair]:
                says += f", so pair {pair} has come past here before."
            elif near < 5:
                lie = f"the {len(before)} positions before lie" if before[1:] else "the position before lies"
                says += f": here {lie} within {near:.1g}° and cannot be told apart."
            else:
                says += f", so no angle of pair {pair} came twice."
        if done.all():
            return f"{says} All 32 pairs have come round."
        if not done.any():
            return f"{says} No pair has come round yet."
        never = (~done).sum()
        return f"{says} {never} of 32 pairs {'has' if never == 1 else 'have'} not come round yet."
