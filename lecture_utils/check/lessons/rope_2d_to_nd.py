"""The exercises of lesson 6."""

import math

import torch

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case, close
from ..mistakes import rope_2d_to_nd as mistakes
from ..properties import Property, tokens_apart

_ODD = math.atan2(3, 4)  # cosine 0.8, sine 0.6
_COARSE = 0.02  # bf16 angles pass, so that the far positions show them


# rotate_2d


def _rotate_2d_cases(draw: Draw) -> list[Case]:
    """The smallest numbers first; then no axis, one and several before the last, all sizes equal, a view."""
    n, m = draw.sizes(2, 3, 7)
    upright = torch.tensor([[2.0, 1.0], [5.0, 0.0], [0.0, 3.0]])
    return [
        Case((torch.tensor([2.0, 1.0]), torch.tensor(_ODD)), "one vector alone"),
        Case((upright[:2], torch.tensor([_ODD, 0.0]))),
        Case((upright, torch.tensor([0.0, _ODD, -_ODD]))),
        Case(
            (torch.tensor([[2.0, 1.0], [3.0, 2.0]]), torch.tensor([0.5, 1.5])), "two vectors of two features"
        ),
        Case((draw.normal(2, 2, 2), draw.uniform(-3, 3, 2, 2)), "all sizes 2"),
        Case((draw.normal(n, m, 2), draw.uniform(-3, 3, n, m)), "[n, m, 2]", gradients=True),
        Case((draw.normal(n, 3, m, 2), draw.uniform(-9, 9, n, 3, m)), "three axes of vectors"),
        Case((draw.normal(1, m, 1, 2), draw.uniform(-3, 3, 1, m, 1)), "axes of size 1"),
        Case((torch.tensor([[0.0, 0.0], [2.0, 1.0]]), torch.tensor([_ODD, _ODD])), "a vector of zeros", True),
        Case((draw.normal(2, m).T, draw.uniform(-3, 3, m)), "a transposed view"),
        Case((draw.normal(m, 2).double(), draw.uniform(-3, 3, m).double()), "float64"),
    ]


def _rotate_2d_properties(draw: Draw) -> list[Property]:
    x, angle, more = draw.normal(3, 2), draw.uniform(0.5, 1, 3), draw.uniform(0.5, 1, 3)
    x[0] = torch.tensor([2.0, 1.0])

    def stays_at_0(f):
        return None if close(f(x, 0 * angle), x) else "At angle zero the vectors do not stay where they are."

    def keeps_length(f):
        before, after = x.norm(dim=-1), f(x, angle).norm(dim=-1)
        if close(after, before):
            return None
        return f"[2, 1], turned by {angle[0]:.4g} radians, has length {after[0]:.4g} and had {before[0]:.4g}."

    def turns_add_up(f):
        if close(f(f(x, angle), more), f(x, angle + more)):
            return None
        return "Turning by one angle and then by another is not the same as turning by their sum."

    def is_linear(f):
        return (
            None
            if close(f(3 * x, angle), 3 * f(x, angle))
            else "Three times the vector is not turned to three times."
        )

    return [
        Property(
            "moves-at-0", "What are the cosine and the sine of 0, and what should they multiply?", stays_at_0
        ),
        Property(
            "length-changed",
            "Which of the four entries of the rotation matrix differs from yours?",
            keeps_length,
        ),
        Property(
            "turns-do-not-add-up", "What besides cosine, sine and the two features comes in?", turns_add_up
        ),
        Property("not-linear", "What is done to x that is not a product with a number?", is_linear),
    ]


@exercise(
    cases=_rotate_2d_cases, mistakes=mistakes.ROTATE_2D, properties=_rotate_2d_properties,
    hints=(
        "The vector [a, b] is turned by φ. What are its two new features, and which sine has a minus?",
        "Try a quarter turn of [2, 1] by hand. Then: which axis of the result has size 2, and does it exist "
        "before you put the rows together?",
        "Take first = x[..., 0], second = x[..., 1], angle.cos() and angle.sin(). The rows are "
        "first·cos − second·sin and first·sin + second·cos; torch.stack puts them on a new last axis.",
    ),
)  # fmt: skip
def rotate_2d(x, angle):
    first, second = x[..., 0], x[..., 1]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1)


# inv_freq


def _inv_freq_cases(draw: Draw) -> list[Case]:
    """Numbers for the head: roots of 10000, 8000 and 4096; then sizes and bases of real models."""
    return [
        Case((4, 10000.0)),
        Case((4, 100.0), "another base"),
        Case((6, 8000.0)),
        Case((8, 10000.0)),
        Case((2, 10000.0), "a single pair"),
        Case((2 * draw.size(5, 30), float(draw.size(20, 900))), "any size"),
        Case((4, 2.25), "a base that is no whole number"),
        Case((64, 10000.0)),
        Case((128, 500000.0), "Llama-3"),
    ]


def _inv_freq_properties(draw: Draw) -> list[Property]:
    def begins_with_1(f):
        first = f(4, 10000.0)[0].item()
        return None if abs(first - 1) < 1e-4 else "The first step is not one, and base to the power zero is."

    def has_one_ratio(f):
        steps = f(6, 8000.0).double()
        ratios = steps[1:] / steps[:-1]
        if close(ratios, ratios[:1].expand_as(ratios)):
            return None
        listed = " and then ".join(f"{r:.3g}" for r in ratios.tolist())
        return f"From step to step the ratio changes: for d = 6 and base 8000 it is {listed}."

    def slows_down(f):
        steps = f(8, 10000.0)
        return None if (steps[1:] < steps[:-1]).all() else "A later pair is not slower than the one before."

    return [
        Property("first-step-not-1", "What is the exponent of the first pair?", begins_with_1),
        Property("no-one-ratio", "Do the exponents go up in equal steps?", has_one_ratio),
        Property("not-slower", "Which sign has the exponent?", slows_down),
    ]


def inv_freq(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2) / head_dim)


exercise(
    cases=_inv_freq_cases, mistakes=mistakes.INV_FREQ, properties=_inv_freq_properties,
    hints=(
        "For d = 6, which values does i take, and which exponents belong to them?",
        "`torch.arange` counts from a start to an end, by a step. Which three numbers give all values of 2i? "
        "A number to the power of a tensor is a tensor.",
        "base ** (-exponents), with exponents = torch.arange(0, head_dim, 2) / head_dim.",
    ),
)(inv_freq)  # fmt: skip


# cos_sin


def _cos_sin_cases(draw: Draw) -> list[Case]:
    """Three tokens from 0 on, to show shapes; then what tells which positions are read; far ones; random."""
    steps = torch.tensor([1.0, 0.01])
    S, half = draw.sizes(2, 3, 7)
    n = draw.size(3, 6)
    some = draw.integers(0, 99, S)
    return [
        Case((torch.tensor([0, 1, 2]), steps), "three tokens, two steps", tolerance=_COARSE),
        Case((torch.tensor([5, 2]), steps), "positions in no order", tolerance=_COARSE),
        Case((torch.tensor([5, 6, 7]), torch.tensor([1.0])), "a continued text", tolerance=_COARSE),
        Case((torch.tensor([5]), steps), tolerance=_COARSE),
        Case((torch.tensor([0]), torch.tensor([1.0])), "position 0"),
        Case(
            (torch.tensor([0, 1, 2, 3]), torch.tensor([1.0, 0.25])),
            "a text from its start",
            tolerance=_COARSE,
        ),
        Case((torch.tensor([256, 257]), torch.tensor([1.0])), "far from the start"),
        Case((torch.tensor([2049, 70001]), torch.tensor([1.0])), "very far from the start", tolerance=0.02),
        Case((torch.tensor([5, 9, 2, 6]), torch.tensor([1.0, 0.3, 0.02]))),
        Case((some, draw.uniform(0.05, 1, half)), "any size"),
        Case((draw.integers(0, 99, n), draw.uniform(0.05, 1, n)), "as many tokens as steps"),
        Case((torch.arange(20, 20 + 2 * S)[::2], draw.uniform(0.05, 1, half)), "every second token"),
        Case((some.int(), draw.uniform(0.05, 1, half)), "int32"),
    ]


def _cos_sin_properties(draw: Draw) -> list[Property]:
    positions, steps = torch.tensor([3, 0, 7]), torch.tensor([1.0, 0.3])

    def no_turn_at_0(f):
        cos, sin = (t[1] for t in f(positions, steps))
        if close(cos, torch.ones(4)) and close(sin, torch.zeros(4)):
            return None
        return "At position zero not all cosines are one, or not all sines are zero."

    def squares_add_up_to_1(f):
        cos, sin = f(positions, steps)
        total = cos.square() + sin.square()
        return (
            None
            if close(total, torch.ones_like(total))
            else "The squares of cos and sin do not add up to one."
        )

    def halves_are_equal(f):
        cos, _ = f(positions, steps)
        if close(cos[:, :2], cos[:, 2:]):
            return None
        return "The second half of the cosines is not equal to the first."

    def rows_belong_to_tokens(f):
        together, alone = f(positions, steps)[0], f(positions[2:], steps)[0]
        if close(together[2:], alone):
            return None
        return "A token's cosines depend on which tokens stand beside it."

    return [
        Property("tokens-mixed", "Which positions does row s of your table use?", rows_belong_to_tokens),
        Property("turns-at-0", "What is the angle at position 0?", no_turn_at_0),
        Property("not-one-angle", "Are cosine and sine those of the same angle?", squares_add_up_to_1),
        Property(
            "halves-differ", "In which order do features i and i + d/2 get their angles?", halves_are_equal
        ),
    ]


_COS_SIN_HINTS = (
    "Write down the angles of positions 0, 1, 2 for the steps 1 and 0.01. How many rows and columns is that?",
    "Every position times every step is a table, [S, d/2]: a column of positions times a row of steps. Which "
    "of its axes has to become twice as long?",
    "angles = torch.outer(positions.float(), inv_freq), then torch.cat((angles, angles), dim=-1); of that "
    "angles.cos() and angles.sin().",
)


@exercise(
    cases=_cos_sin_cases, mistakes=mistakes.COS_SIN, properties=_cos_sin_properties, hints=_COS_SIN_HINTS,
    outputs=("cos", "sin"),
)  # fmt: skip
def cos_sin(positions, inv_freq):
    angles = torch.outer(positions.float(), inv_freq)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


# rotate_half


def _rotate_half_cases(draw: Draw) -> list[Case]:
    """Four features, two, six; tokens; an even number on every axis; all sizes equal; views and dtypes."""
    B, N, S, half = draw.sizes(4, 2, 6)
    n = 2 * draw.size(1, 2)
    return [
        Case((torch.tensor([1.0, 2.0, 3.0, 4.0]),), "one token alone"),
        Case((torch.tensor([2.0, 1.0]),), "a single pair"),
        Case((torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),), "three pairs"),
        Case((torch.tensor([[1.0, 2.0], [3.0, 4.0]]),), "two tokens"),
        Case((torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]),), "two tokens"),
        Case((draw.normal(2, 4, 2, 6),), "an even number of everything"),
        Case((draw.normal(B, N, S, 2 * half),), "[B, N, S, d]", gradients=True),
        Case((draw.normal(n, n, n, n),), "all sizes equal"),
        Case((draw.normal(2 * half, S).T,), "a transposed view"),
        Case((draw.normal(S, 2 * half).double(),), "float64"),
        Case((draw.normal(S, 2 * half).bfloat16(),), "bf16"),
    ]


def _rotate_half_properties(draw: Draw) -> list[Property]:
    x = draw.normal(3, 6)

    def twice_is_minus(f):
        return (
            None if close(f(f(x)), -x) else "Twice in a row is half a turn, -x; yours gives something else."
        )

    def keeps_norm(f):
        if close(f(x).norm(dim=-1), x.norm(dim=-1)):
            return None
        one = torch.arange(1.0, 5)
        return f"[1, 2, 3, 4] has norm {one.norm():.4g}, its partners have {f(one).norm():.4g}."

    def at_right_angles(f):
        cosine = torch.cosine_similarity(f(x), x, dim=-1).abs().max()
        return (
            None if cosine < 1e-3 else "The partners are not at right angles to x, as after a quarter turn."
        )

    return [
        tokens_apart((x,)),
        Property(
            "twice-not-minus",
            "Where do the numbers go in the first call, and where in the second?",
            twice_is_minus,
        ),
        Property("norm-changed", "Does every number come back once, with or without a minus?", keeps_norm),
        Property("not-a-quarter-turn", "Which of the two partners gets a minus?", at_right_angles),
    ]


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


exercise(
    cases=_rotate_half_cases, mistakes=mistakes.ROTATE_HALF, properties=_rotate_half_properties,
    hints=(
        "Where do 3 and 4 of [1, 2, 3, 4] go, and which numbers change their sign?",
        "Look up `chunk` and `cat`. Which axis do they work on if you do not say? In which order do the "
        "halves come back, and which one with a minus?",
        "a, b = x.chunk(2, dim=-1) are the halves. Then torch.cat of -b and a, on the last axis.",
    ),
)(rotate_half)  # fmt: skip


# apply_rope


def _angles(draw: Draw, B: int, S: int, half: int) -> torch.Tensor:
    """Angles of S tokens of B texts, each pair twice, [B, S, d]; no two texts or tokens alike."""
    return draw.uniform(0.3, 2.8, B, S, half).repeat(1, 1, 2)


def _rope_cases(draw: Draw) -> list[Case]:
    """One pair; two pairs; then turns that hide all but one kind of mistake; then random ones."""
    B, S, half, m, K = draw.sizes(5, 2, 6)
    n = 2 * draw.size(1, 2)
    q, k = torch.tensor([[[[2.0, 1.0]]]]), torch.tensor([[[[1.0, 0.0]]]])
    four, at_1 = torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]]), torch.tensor([[[1.0, 0.01, 1.0, 0.01]]])
    tokens = torch.tensor([[[1.0, 1.0], [-1.0, -1.0]]])  # token 0 stays, token 1 makes half a turn
    odd = torch.tensor([[[1.0, 1.0], [0.8, 0.8]]]), torch.tensor([[[0.0, 0.0], [0.6, 0.6]]])
    odd_texts = tuple(t.transpose(0, 1) for t in odd)
    texts = tokens.transpose(0, 1)  # [2, 1, 2]: text 0 stays, text 1 makes half a turn
    x = torch.tensor([2.0, 1.0])
    two_q, two_k = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.tensor([[1.0, 0.0], [1.0, 2.0]])

    def with_angles(q, k, angles, label="", gradients=False):
        return Case((q, k, angles.cos().to(q.dtype), angles.sin().to(q.dtype)), label, gradients)

    def drawn(*sizes):
        return draw.normal(*sizes[:2], *sizes[3:]), draw.normal(sizes[0], *sizes[2:])

    some = _angles(draw, B, S, half)
    return [
        Case((q, k, torch.full((1, 1, 2), 0.8), torch.full((1, 1, 2), 0.6))),
        Case((q, k, torch.full((1, 1, 2), -1.0), torch.zeros(1, 1, 2)), "half a turn"),
        with_angles(four, torch.tensor([[[[5.0, 1.0, 0.0, 3.0]]]]), at_1, "[1, 2, 3, 4] at position 1"),
        Case((k, k, torch.full((1, 1, 2), math.sqrt(0.5)), torch.full((1, 1, 2), math.sqrt(0.5)))),
        Case((x.repeat(1, 2, 2, 1), k.repeat(1, 2, 2, 1), tokens, 0 * tokens), "two heads of two tokens"),
        Case((x.repeat(2, 2, 1, 1), k.repeat(2, 2, 1, 1), texts, 0 * texts), "two texts of two heads"),
        Case((two_q[None, None], two_k[None, None], *odd), "two tokens"),
        Case((two_q[:, None, None], two_k[:, None, None], *odd_texts), "two texts"),
        Case((x.repeat(1, 2, 1, 1), k, tokens[:, 1:], 0 * tokens[:, 1:]), "fewer key heads"),
        with_angles(*drawn(B, m * K, K, S, 2 * half), some, "[B, N, S, d]", (0, 1)),
        with_angles(*drawn(B, K, K, S, 2 * half), some, "as many key heads as query heads"),
        with_angles(*drawn(n, n, n, n, n), _angles(draw, n, n, n // 2), "all sizes equal"),
        with_angles(draw.normal(B, S, m, 2 * half).transpose(1, 2), draw.normal(B, 1, 2 * half, S).mT, some,
                    "transposed views"),
        with_angles(*(t.double() for t in drawn(B, 2 * K, K, S, 2 * half)), some.double(), "float64"),
        with_angles(*(t.half() for t in drawn(B, 2 * K, K, S, 2 * half)), some, "fp16"),
        with_angles(*(t.bfloat16() for t in drawn(B, 2 * K, K, S, 2 * half)), some, "bf16"),
    ]  # fmt: skip


def _rope_properties(draw: Draw) -> list[Property]:
    q, k = draw.normal(2, 4, 3, 6), draw.normal(2, 2, 3, 6)
    steps = torch.tensor([1.0, 0.3, 0.02]).repeat(2)
    places = torch.tensor([[0, 1, 5], [3, 7, 4]])

    def turned(f, q, k, shift=0):
        angles = (places + shift)[..., None] * steps
        return f(q, k, angles.cos(), angles.sin())

    def position_0(f):
        moved = [
            n
            for n, a, b in zip("qk", turned(f, q, k), (q, k), strict=True)
            if not close(a[0, :, 0], b[0, :, 0])
        ]
        return (
            f"At position zero {' and '.join(moved)} should stay as they were, and did not."
            if moved
            else None
        )

    def keeps_norms(f):
        for name, before, after in zip("qk", (q, k), turned(f, q, k), strict=True):
            if not close(before.norm(dim=-1), after.norm(dim=-1)):
                return f"The norm of a vector of {name} changes: a turn keeps it."
        return None

    def relative_only(f):
        key = k.repeat_interleave(2, dim=1)
        (q1, k1), (q2, k2) = turned(f, q, key), turned(f, q, key, shift=9)
        if close(q1 @ k1.mT, q2 @ k2.mT):
            return None
        return "When the whole text moves on by nine positions, the scores change."

    def heads_alike(f):
        one = q[:, :1].repeat(1, 4, 1, 1)
        out = turned(f, one, k)[0]
        return None if close(out, out[:, :1].expand_as(out)) else "Four equal heads do not come back equal."

    def queries_apart(f):
        key = k.repeat_interleave(2, dim=1)
        q1, k1 = turned(f, q, key)
        if close(k1, turned(f, 2 * q, key)[1]) and close(q1, turned(f, q, 2 * key)[0]):
            return None
        return "The turned keys depend on the queries, or the other way round."

    angles = places[..., None] * steps
    return [
        tokens_apart((q, k, angles.cos(), angles.sin())),
        Property("heads-differ", "Which axis of cos meets the heads of q?", heads_alike),
        Property("queries-and-keys-mixed", "Which names occur in the line for k?", queries_apart),
        Property("moves-at-0", "What does each of your lines give where cos is 1 and sin is 0?", position_0),
        Property(
            "norm-changed",
            "Do both features of a pair get the same angle, and is there one minus?",
            keeps_norms,
        ),
        Property(
            "not-relative", "Are q and k turned by the same angle, and in the same direction?", relative_only
        ),
    ]


@exercise(
    cases=_rope_cases, mistakes=mistakes.APPLY_ROPE, properties=_rope_properties, outputs=("q", "k"),
    hints=(
        "`cos` is [B, S, d] and meets q, [B, N, S, d]. Which axis of q does `cos` not have?",
        "Write the two shapes below each other, aligned at the right. Where should `unsqueeze` put an axis, "
        "so that equal letters meet? Then the same line for q and for k.",
        "cos.unsqueeze(1) is [B, 1, S, d]; the same for sin. Then q * cos + rotate_half(q) * sin, and so "
        "for k.",
    ),
)  # fmt: skip
def apply_rope(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)  # [B, 1, S, d]
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


# interleaved_to_half


def _rows_cases(draw: Draw) -> list[Case]:
    """Rows that hold their own number; one head, several, heads of four and of six; a square; dtypes."""
    N, half, H = draw.sizes(3, 3, 7)
    rows = torch.arange(36.0)[:, None]
    return [
        Case((rows[:6], 1), "one head"),
        Case((rows[:8], 1), "one head of eight"),
        Case((rows[:8], 2), "two heads of four"),
        Case((rows[:12], 2), "two heads of six"),
        Case((rows[:12], 3), "three heads of four"),
        Case((rows[:12], 6), "six heads of two"),
        Case((torch.tensor([[0.0, 1.0], [2.0, 3.0]]), 1), "a single pair"),
        Case((torch.arange(16.0).reshape(4, 4), 1), "a square"),
        Case((draw.normal(N * 2 * half, H), N), "any size"),
        Case((draw.normal(24, 24), 3), "a square"),
        Case((draw.normal(H, N * 2 * half).T, N), "a transposed view"),
        Case((draw.normal(N * 2 * half, H).double(), N), "float64"),
        Case((draw.normal(N * 2 * half, H).bfloat16(), N), "bf16"),
    ]


def _rows_properties(draw: Draw) -> list[Property]:
    rows = torch.arange(24.0)[:, None].repeat(1, 5)

    def same_rows(f):
        out = f(rows, 2)[:, 0].tolist()
        if set(range(24)) <= {int(v) for v in out}:
            return None
        return "Some rows do not come back, and others come back more than once."

    def heads_apart(f):
        out = f(rows, 2)[:12, 0]
        return None if (out < 12).all() else "Rows of the second head came into the first."

    def rows_whole(f):
        numbers = torch.arange(120.0).reshape(24, 5)
        together = (f(numbers, 2)[:, None] == numbers).all(-1).any(-1)
        return (
            None if together.all() else "Not every row comes back as a whole, with its numbers as they were."
        )

    return [
        Property("rows-torn", "Which axis do you reorder, and do numbers change on the way?", rows_whole),
        Property("rows-lost", "Which of your indices occurs twice?", same_rows),
        Property(
            "heads-mixed",
            "Which rows belong to the first head, and where do the rows of the second go?",
            heads_apart,
        ),
    ]


@exercise(
    cases=_rows_cases, mistakes=mistakes.INTERLEAVED_TO_HALF, properties=_rows_properties,
    hints=(
        "Write down the rows of one head, 0 to 5, and below them the order that you want. What do the first "
        "three have in common?",
        "`unflatten` makes several axes of one. Axis 0 holds heads, in each head pairs, in each pair two "
        "members. Which two of these have to change places before you flatten?",
        "unflatten(0, (n_heads, -1, 2)), then transpose pairs and members, axes 1 and 2, then flatten(0, 2).",
    ),
)  # fmt: skip
def interleaved_to_half(weight, n_heads):
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


# More exercises

one_speed = Answer(
    "one_speed",
    lesson=__name__,
    right={"position": 44},
    mistakes=mistakes.ONE_SPEED,
    hints=(
        "All pairs turn together, one radian per position. When is a hand back where it began?",
        "A full turn takes 6.28 positions. Which multiple of that is closest to a whole number, up to 50?",
        "Compute the cosines of the positions torch.arange(1, 51), and look which of these positions has the "
        "largest.",
    ),
    because="Seven turns are 43.98 radians. With one speed for all pairs, a token 44 places away looks "
    "almost as if it stood here.",
)


def _pairs_cases(draw: Draw) -> list[Case]:
    """Real models, and a length that lies well between the turns of two neighbouring pairs."""
    head_dim, base = 2 * draw.size(8, 24), float(draw.size(2000, 9000))
    pair = draw.size(head_dim // 4, head_dim // 2 - 3)
    between = round(2 * math.pi * base ** ((2 * pair + 1) / head_dim))
    return [
        Case((4, 10000.0, 100)),
        Case((4, 10000.0, 1000)),
        Case((8, 16.0, 15), "small numbers"),
        Case((128, 10000.0, 4096), "Llama-2-7B"),
        Case((128, 500000.0, 8192), "Llama-3-8B"),
        Case((128, 10000.0, 8192), "Llama-3-8B with base 10000"),
        Case((head_dim, base, between), "any size"),
    ]


def unfinished_pairs(head_dim, base, length):
    positions_per_turn = 2 * math.pi / inv_freq(head_dim, base)  # [d/2]
    return (positions_per_turn > length).sum().item()
    # Llama-3-8B: 29 of 64 with its base 500000, 14 with base 10000. A larger base has slower hands,
    # which tell far positions apart, and leaves more pairs that never see their whole circle.


exercise(
    cases=_pairs_cases, mistakes=mistakes.UNFINISHED_PAIRS,
    hints=(
        "How many positions does a pair of step θ need for a full turn, and with what do you compare that?",
        "The first cell of Measure has both lines: positions per turn, and how many are above the "
        "trained length.",
        "2 * math.pi / inv_freq(head_dim, base) is [d/2]; count its entries above length; .item() makes "
        "an int.",
    ),
)(unfinished_pairs)  # fmt: skip


@exercise(
    cases=_cos_sin_cases, mistakes=mistakes.COS_SIN, properties=_cos_sin_properties, outputs=("cos", "sin"),
    hints=(
        "The first of tokens 5, 6, 7 should have cosine cos 5. Which number did it get?",
        "Where does the function look at the values of `positions`, and where only at how many there are?",
        "positions[:, None] * inv_freq.",
    ),
    given=mistakes.COS_SIN["positions-ignored"].functions[0],
)  # fmt: skip
def repair_cos_sin(positions, inv_freq):
    angles = positions[:, None] * inv_freq
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()
