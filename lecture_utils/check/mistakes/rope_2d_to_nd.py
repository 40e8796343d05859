"""Mistakes in turning vectors of the plane, and in RoPE from its steps to its two layouts."""

import math

import torch

from ..mistake import Catalogue

ROTATE_2D = Catalogue()
INV_FREQ = Catalogue()
COS_SIN = Catalogue()
ROTATE_HALF = Catalogue()
APPLY_ROPE = Catalogue()
INTERLEAVED_TO_HALF = Catalogue()
ONE_SPEED = Catalogue()
UNFINISHED_PAIRS = Catalogue()


# rotate_2d(x, angle): x [..., 2], angle [...]


def _rows(x, angle, signs=(1, -1, 1, 1), dim=-1):
    """Both rows of the rotation matrix, with these signs: cos, sin; sin, cos."""
    a, b, c, s = x[..., 0], x[..., 1], angle.cos(), angle.sin()
    first = signs[0] * a * c + signs[1] * b * s
    return torch.stack((first, signs[2] * a * s + signs[3] * b * c), dim=dim)


@ROTATE_2D.add(
    "other-way",
    "It turns to the right: the other way round.",
    "Turn [2, 1] a quarter to the left by hand: [-1, 2]. Which of the two numbers got the minus?",
    "The matrix has one minus, on one of its two sines. In which row does it stand?",
    "The minus stands in the first row: first·cos − second·sin, and first·sin + second·cos.",
)
def _(x, angle):
    return _rows(x, -angle)


@ROTATE_2D.also("other-way")
def _(x, angle):
    c, s = angle.cos(), angle.sin()
    matrix = torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
    return (x.unsqueeze(-2) @ matrix).squeeze(-2)


@ROTATE_2D.add(
    "no-minus",
    "Both sines have a plus: this is not a turn, and lengths change.",
    "How long is your result, and how long was the vector?",
    "Compare the signs of your two lines with those in the rotation matrix: there are four entries.",
    "One sine has a minus, that of the first row: first·cos − second·sin.",
)
def _(x, angle):
    return _rows(x, angle, (1, 1, 1, 1))


@ROTATE_2D.add(
    "minus-twice",
    "Both sines have a minus: this is not a turn, and lengths change.",
    "How long is your result, and how long was the vector?",
    "Compare the signs of your two lines with those in the rotation matrix: there are four entries.",
    "The second row has no minus: first·sin + second·cos.",
)
def _(x, angle):
    return _rows(x, angle, (1, -1, -1, 1))


@ROTATE_2D.add(
    "mirrored",
    "The second feature has the wrong sign: the vector is turned and mirrored.",
    "At angle 0 nothing may move. What does your second line give there?",
    "Put cos = 1 and sin = 0 into your second line.",
    "The second row has no minus: first·sin + second·cos.",
)
def _(x, angle):
    return _rows(x, angle, (1, -1, -1, -1))


@ROTATE_2D.add(
    "second-cosine-negative",
    "The minus in the second row stands on the cosine: at angle 0 the second feature changes its sign.",
    "At angle 0 nothing may move. What does your second line give there?",
    "Put cos = 1 and sin = 0 into your second line.",
    "The second row has no minus: first·sin + second·cos.",
)
def _(x, angle):
    return _rows(x, angle, (1, -1, 1, -1))


@ROTATE_2D.add(
    "cos-sin-exchanged",
    "Cosine and sine are exchanged: angle 0 turns by a quarter.",
    "At angle 0 nothing may move. Which of cos 0 and sin 0 is 1?",
    "On the diagonal of the rotation matrix stands the function that is 1 at angle 0.",
    "The first row is first·cos − second·sin, the second first·sin + second·cos.",
)
def _(x, angle):
    a, b, c, s = x[..., 0], x[..., 1], angle.cos(), angle.sin()
    return torch.stack((a * s - b * c, a * c + b * s), dim=-1)


@ROTATE_2D.add(
    "rows-exchanged",
    "The two rows come back in the wrong order.",
    "At angle 0 nothing may move. What becomes of [2, 1]?",
    "Which of your two lines is the new first feature?",
    "Stack the line with the minus first.",
)
def _(x, angle):
    return _rows(x, angle).flip(-1)


@ROTATE_2D.add(
    "updated-too-early",
    "The second row is computed from the first feature as it is after the turn.",
    "When you compute the second row, which number does the name of the first feature stand for?",
    "Both rows need the old first and the old second feature. Is one of them overwritten in between?",
    "Compute both rows from x, then stack them; give the results new names.",
)
def _(x, angle):
    a, b, c, s = x[..., 0], x[..., 1], angle.cos(), angle.sin()
    a = a * c - b * s
    return torch.stack((a, a * s + b * c), dim=-1)


@ROTATE_2D.add(
    "degrees",
    "It takes the angle for degrees.",
    "How much is a quarter turn in the unit of this lesson?",
    "Which unit do torch.cos and torch.sin want, and in which unit does `angle` come in?",
    "Give `angle` to cos and sin as it is.",
)
def _(x, angle):
    return _rows(x, torch.deg2rad(angle))


@ROTATE_2D.add(
    "one-angle-for-all",
    "It turns every vector by the first angle.",
    "How many angles come in, and how many of them do you use?",
    "`angle` has the shape of x without its last axis: one angle for each vector.",
    "angle.cos() as a whole meets x[..., 0] as a whole, entry by entry.",
)
def _(x, angle):
    return _rows(x, angle.flatten()[0])


@ROTATE_2D.add(
    "stacked-first",
    "The two rows are stacked on the first axis, not on the last one.",
    "Where is the axis of size 2 in x, and where is it in your result?",
    "torch.stack makes a new axis. Which one does it make if you do not say?",
    "torch.stack((…, …), dim=-1).",
)
def _(x, angle):
    return _rows(x, angle, dim=0)


@ROTATE_2D.add(
    "concatenated",
    "The two rows are joined along an axis that was there before, with `cat`.",
    "What is the shape of one row, and what should the shape of both together be?",
    "`cat` makes an axis longer. Which function makes a new one?",
    "torch.stack((…, …), dim=-1).",
)
def _(x, angle):
    a, b, c, s = x[..., 0], x[..., 1], angle.cos(), angle.sin()
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1)


@ROTATE_2D.add(
    "first-axis",
    "It takes the two features from the first axis: right for a single vector only.",
    "What is x[0] when x holds three vectors?",
    "Which index takes the first feature of every vector, however many axes stand before it?",
    "x[..., 0] and x[..., 1].",
)
def _(x, angle):
    a, b, c, s = x[0], x[1], angle.cos(), angle.sin()
    return torch.stack((a * c - b * s, a * s + b * c), dim=-1)


@ROTATE_2D.add(
    "two-axes-only",
    "It works for x of two axes only.",
    "x may be one vector, or have several axes before the last. What does x[:, 0] take then?",
    "Which index takes the first feature of every vector, however many axes stand before it?",
    "x[..., 0] and x[..., 1].",
)
def _(x, angle):
    a, b, c, s = x[:, 0], x[:, 1], angle.cos(), angle.sin()
    return torch.stack((a * c - b * s, a * s + b * c), dim=-1)


@ROTATE_2D.add(
    "first-row-only",
    "Only the first row comes back.",
    "How many features does a turned vector have?",
    "The rotation matrix has two rows, and each gives one feature.",
    "The second row is first·sin + second·cos; torch.stack puts both side by side.",
)
def _(x, angle):
    return _rows(x, angle)[..., 0]


@ROTATE_2D.add(
    "one-number-at-a-time",
    "It works for one vector with one angle only.",
    "How many angles come in with three vectors?",
    "`math.cos`, `float` and `torch.tensor([[…]])` take one number each. What does the same for a tensor?",
    "A tensor has .cos() and .sin(): angle.cos() holds the cosine of every angle.",
)
def _(x, angle):
    c, s = math.cos(angle), math.sin(angle)
    return torch.stack((x[..., 0] * c - x[..., 1] * s, x[..., 0] * s + x[..., 1] * c), dim=-1)


@ROTATE_2D.add(
    "angles-unsqueezed",
    "The angles have an axis too many: every vector is turned by every angle.",
    "Which shape has x[..., 0], and which one have your cosines?",
    "Once the last axis of x is taken away, is an axis of size 1 needed?",
    "angle.cos() and x[..., 0] have the same shape: multiply them as they are.",
)
def _(x, angle):
    return _rows(x, angle[..., None])


@ROTATE_2D.add(
    "matrix-axes-first",
    "The two axes of the matrices stand first, and `@` multiplies the last two.",
    "Which shape have your matrices when there are three angles?",
    "`torch.stack` puts its new axis first if you do not say. Where does `@` look for rows and columns?",
    "Stack with dim=-1 and then dim=-2: the matrices are [..., 2, 2]. Or do without: write out the two rows.",
)
def _(x, angle):
    c, s = angle.cos(), angle.sin()
    matrix = torch.stack((torch.stack((c, -s)), torch.stack((s, c))))
    return (matrix @ x.unsqueeze(-1)).squeeze(-1)


@ROTATE_2D.add(
    "minus-on-cosine",
    "The only minus stands on a cosine: the vector is mirrored, not turned.",
    "At angle 0 nothing may move. What does your second line give there?",
    "In the rotation matrix, does the minus stand on the diagonal?",
    "The minus belongs to the sine of the first row: first·cos − second·sin.",
)
def _(x, angle):
    return _rows(x, angle, (1, 1, 1, -1))


@ROTATE_2D.add(
    "second-row-like-the-first",
    "In the second row, too, the first feature has the cosine and the second the sine.",
    "At angle 0 nothing may move. What does your second line give there?",
    "Compare the two rows of the rotation matrix: on which side does the cosine stand in each?",
    "The second row is first·sin + second·cos.",
)
def _(x, angle):
    a, b, c, s = x[..., 0], x[..., 1], angle.cos(), angle.sin()
    return torch.stack((a * c - b * s, a * c + b * s), dim=-1)


@ROTATE_2D.add(
    "features-exchanged",
    "It takes the second feature for the first, and the first for the second.",
    "At angle 0 nothing may move. What becomes of [2, 1]?",
    "Which of your names stands for the first feature of x, and which for the second?",
    "first = x[..., 0], second = x[..., 1].",
)
def _(x, angle):
    return _rows(x.flip(-1), angle)


@ROTATE_2D.add(
    "sine-from-cosine",
    "The sine is made from the cosine, and its sign is lost.",
    "What is the sine of a negative angle?",
    "A root is never negative. Is a sine?",
    "angle.sin().",
)
def _(x, angle):
    a, b, c = x[..., 0], x[..., 1], angle.cos()
    s = (1 - c.square()).clamp(min=0).sqrt()
    return torch.stack((a * c - b * s, a * s + b * c), dim=-1)


# inv_freq(head_dim, base)


def _exponents(head_dim):
    return torch.arange(0, head_dim, 2).float() / head_dim


@INV_FREQ.add(
    "not-inverted",
    "The exponent lacks its minus: every pair is faster than the one before.",
    "Which pair should turn fastest, the first or the last?",
    "For d = 4 and base 10000 the second step is a hundredth. What did you get?",
    "base ** (-exponents), or 1 / base ** exponents.",
)
def _(head_dim, base):
    return base ** _exponents(head_dim)


@INV_FREQ.add(
    "exponent-i-over-d",
    "The exponent is -i/d, half of what it should be.",
    "For d = 4 the exponents are 0 and -1/2. Which ones do you have?",
    "The formula has -2i/d. Where is the 2?",
    "torch.arange(0, head_dim, 2) counts 2i; divide it by head_dim.",
)
def _(head_dim, base):
    return base ** (-torch.arange(head_dim // 2) / head_dim)


@INV_FREQ.add(
    "exponent-twice",
    "The exponent is -4i/d, twice what it should be.",
    "For d = 4 the exponents are 0 and -1/2. Which ones do you have?",
    "2i divided by d, or i divided by d/2: have you taken one part of each?",
    "torch.arange(0, head_dim, 2) / head_dim.",
)
def _(head_dim, base):
    return base ** (-2 * _exponents(head_dim))


@INV_FREQ.add(
    "reaches-base",
    "The last step is 1/base: the exponents run from 0 to -1 with both ends.",
    "For d = 4 the last exponent is -1/2. Which one do you have?",
    "Does the exponent of the formula ever reach -1? Where do yours end? (`linspace` includes its end.)",
    "The largest i is d/2 - 1, so the last exponent is -(d - 2)/d.",
)
def _(head_dim, base):
    return base ** (-torch.linspace(0, 1, head_dim // 2))


@INV_FREQ.also("reaches-base")
def _(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2) / (head_dim - 2))


@INV_FREQ.add(
    "counts-from-1",
    "It counts the pairs from 1: the first step is not 1.",
    "How many radians per position does the first pair turn, by the formula?",
    "i runs from 0 to d/2 - 1. Where does yours begin?",
    "torch.arange(0, head_dim, 2) begins at 0.",
)
def _(head_dim, base):
    return base ** (-torch.arange(2, head_dim + 1, 2) / head_dim)


@INV_FREQ.add(
    "one-per-feature",
    "It has one step for each feature, not one for each pair.",
    "How many numbers came back for d = 4, and how many pairs are there?",
    "By how much does 2i grow from one pair to the next, and by how much do your numbers grow?",
    "torch.arange(0, head_dim, 2) has d/2 entries.",
)
def _(head_dim, base):
    return base ** (-torch.arange(head_dim) / head_dim)


@INV_FREQ.also("one-per-feature")
def _(head_dim, base):
    return base ** (-2 * torch.arange(head_dim) / head_dim)


@INV_FREQ.also("one-per-feature")
def _(head_dim, base):
    return base ** (-torch.arange(head_dim).float())


@INV_FREQ.add(
    "doubled",
    "Every step is there twice. That comes later, in `cos_sin`.",
    "How many numbers came back for d = 4, and how many pairs are there?",
    "The result is [head_dim / 2]: one number for each pair.",
    "Return the d/2 steps once: without cat, repeat or repeat_interleave.",
)
def _(head_dim, base):
    return (base ** -_exponents(head_dim)).repeat(2)


@INV_FREQ.also("doubled")
def _(head_dim, base):
    return (base ** -_exponents(head_dim)).repeat_interleave(2)


@INV_FREQ.add(
    "too-few-pairs",
    "It stops half way: a quarter of d, not a half.",
    "How many numbers came back for d = 4, and how many pairs are there?",
    "What is the largest 2i, if i runs up to d/2 - 1? Where do your numbers end?",
    "torch.arange(0, head_dim, 2): the end is head_dim, the step is 2.",
)
def _(head_dim, base):
    return base ** (-torch.arange(0, head_dim // 2, 2) / head_dim)


@INV_FREQ.add(
    "base-10000",
    "`base` is fixed at 10000, whatever the caller gives.",
    "Llama-2 has base 10000 and Llama-3 another. Where does yours come from?",
    "Look for the number 10000 in your code.",
    "The function has an argument `base`: raise that one to the exponents.",
)
def _(head_dim, base):
    return 10000.0 ** -_exponents(head_dim)


@INV_FREQ.add(
    "base-500000",
    "`base` is fixed at 500000, whatever the caller gives.",
    "Llama-3 has base 500000 and Llama-2 another. Where does yours come from?",
    "Look for the number 500000 in your code.",
    "The function has an argument `base`: raise that one to the exponents.",
)
def _(head_dim, base):
    return 500000.0 ** -_exponents(head_dim)


@INV_FREQ.add(
    "head-dim-128",
    "The exponents are divided by 128, whatever `head_dim` is.",
    "Which of your numbers belongs to one model only?",
    "Look for the number 128 in your code.",
    "Divide by the argument `head_dim`.",
)
def _(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2) / 128)


@INV_FREQ.add(
    "e-for-base",
    "It raises e to the exponents: `base` is not used.",
    "Which number does torch.exp raise to a power?",
    "Every step of the formula is a power of `base`. Does `base` occur in your code?",
    "base ** (-exponents); with exp it would be torch.exp(-exponents * math.log(base)).",
)
def _(head_dim, base):
    return torch.exp(-_exponents(head_dim))


@INV_FREQ.add(
    "multiplied-not-raised",
    "`base` is multiplied by the exponents, not raised to them: the first step is infinite.",
    "What is base to the power 0, and what is base times 0?",
    "Look at the operator between base and the exponents.",
    "`**` raises to a power: base ** (-exponents).",
)
def _(head_dim, base):
    return 1 / (base * _exponents(head_dim))


@INV_FREQ.add(
    "whole-number-division",
    "The exponents are rounded down to whole numbers.",
    "What are your exponents for d = 4?",
    "`//` rounds down: 2 // 4 is 0, and -2 // 4 is -1.",
    "Divide with a single `/`.",
)
def _(head_dim, base):
    return base ** -(torch.arange(0, head_dim, 2) // head_dim).float()


@INV_FREQ.also("whole-number-division")
def _(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2) // head_dim).float()


@INV_FREQ.add(
    "not-divided-by-d",
    "The exponents are not divided by d: all pairs but the first hardly move.",
    "For d = 4 the exponents are 0 and -1/2. Which ones do you have?",
    "The formula has a d. Does your exponent?",
    "torch.arange(0, head_dim, 2) / head_dim.",
)
def _(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2).float())


@INV_FREQ.add(
    "slowest-first",
    "The steps come in reversed order, the slowest first.",
    "Which pair should turn one radian per position?",
    "i = 0 gives exponent 0. At which end of your result is it?",
    "Count upwards, torch.arange(0, head_dim, 2), and leave the result in that order.",
)
def _(head_dim, base):
    return (base ** -_exponents(head_dim)).flip(0)


@INV_FREQ.add(
    "full-turns",
    "A factor 2π comes in, and the steps are radians already.",
    "How many radians per position does the first pair turn, by the formula?",
    "base to the power 0 is 1. What else comes into your first step?",
    "Leave 2π out: base ** (-exponents) is the whole formula.",
)
def _(head_dim, base):
    return 2 * math.pi * base ** -_exponents(head_dim)


@INV_FREQ.also("full-turns")
def _(head_dim, base):
    return base ** -_exponents(head_dim) / (2 * math.pi)


@INV_FREQ.add(
    "left-in-float64",
    "The numbers are right, and come back in float64.",
    "Which line makes the numbers wider than fp32?",
    "NumPy and Python compute in float64. What does torch make of a float64 array?",
    "Add .float() to what you return, or count with torch.arange.",
)
def _(head_dim, base):
    return base ** -_exponents(head_dim).double()


@INV_FREQ.add(
    "brackets-missing",
    "`base` is raised to 2i, and the result is divided by d: the first step is 1/d.",
    "What is base to the power 0, and what is your first step?",
    "Without brackets, which comes first: the power or the division?",
    "Put the whole exponent into brackets: base ** (-torch.arange(0, head_dim, 2) / head_dim).",
)
def _(head_dim, base):
    return base ** -torch.arange(0, head_dim, 2).float() / head_dim


@INV_FREQ.add(
    "minus-before-base",
    "The minus stands before `base`, not in the exponent: the steps are negative and grow.",
    "Can a step be negative, and should the last one be the largest?",
    "Python raises to a power first and then applies the minus. Where does the formula have its minus?",
    "base ** (-exponents).",
)
def _(head_dim, base):
    return -(base ** _exponents(head_dim))


@INV_FREQ.add(
    "positions-per-turn",
    "It gives the positions that a full turn takes, not the radians per position.",
    "Which pair should have the largest number, the fastest or the slowest?",
    "Write the formula beside your line. What does your line have that the formula does not?",
    "The formula has no 2π, and a minus in the exponent: base ** (-exponents) is all of it.",
)
def _(head_dim, base):
    return 2 * math.pi * base ** _exponents(head_dim)


@INV_FREQ.add(
    "exponent-i-over-2",
    "The exponent is -i/2: right for d = 4 only.",
    "What is the second exponent for d = 6, by the formula?",
    "The exponents 0 and -1/2 belong to d = 4. Where does another d come into your code?",
    "torch.arange(0, head_dim, 2) / head_dim.",
)
def _(head_dim, base):
    return base ** (-torch.arange(head_dim // 2) / 2)


@INV_FREQ.add(
    "a-tenth-each",
    "Each step is a tenth of the one before: right for d = 8 and base 10000 only.",
    "Each hand of the clocks above is ten times slower than the one before. For which d and which base?",
    "Where do `head_dim` and `base` come into your steps?",
    "base ** (-exponents), with exponents = torch.arange(0, head_dim, 2) / head_dim.",
)
def _(head_dim, base):
    return 0.1 ** torch.arange(head_dim // 2)


# cos_sin(positions, inv_freq): [S], [d/2] -> [S, d] twice


def _doubled(angles):
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def _at(positions, inv_freq):
    return torch.outer(positions.float(), inv_freq)


@COS_SIN.add(
    "positions-ignored",
    "It counts the tokens from 0 and does not look at `positions`.",
    "A text is continued with tokens 5, 6 and 7. Which positions does your function give them?",
    "Where does your function use the values of `positions`, and where only how many there are?",
    "Multiply `positions` themselves by inv_freq, not an arange.",
    on="a continued text",
)
def _(positions, inv_freq):
    angles = torch.arange(len(positions))[:, None] * inv_freq
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "positions-continued",
    "It takes one of the positions and counts on from there.",
    "Is the second position always one more than the first?",
    "Positions may come in any order. Which of them does your function read?",
    "Multiply `positions` themselves by inv_freq, not positions[0] + arange.",
)
def _(positions, inv_freq):
    return _doubled(_at(positions[0] + torch.arange(len(positions)), inv_freq))


@COS_SIN.also("positions-continued")
def _(positions, inv_freq):
    return _doubled(_at(positions.min() + torch.arange(len(positions)), inv_freq))


@COS_SIN.add(
    "begins-at-5",
    "It begins at 5, whatever the positions are.",
    "A text begins at position 0. Which positions does your function give its tokens?",
    "Look for a 5 in your code. Where does your function use the values of `positions`?",
    "Multiply `positions` themselves by inv_freq, not an arange.",
    on="position 0",
)
def _(positions, inv_freq):
    return _doubled(_at(torch.arange(5, 5 + len(positions)), inv_freq))


@COS_SIN.add(
    "counted-through",
    "It counts from one of the positions up to another: it is right only where none is left out "
    "and all are in order.",
    "Positions [5, 9, 2, 6]: how many rows should come back, and how many does your arange have?",
    "Positions may come in any order. Does a list that counts up by one hold them?",
    "Multiply `positions` themselves by inv_freq, not an arange.",
)
def _(positions, inv_freq):
    return _doubled(_at(torch.arange(int(positions[0]), int(positions[-1]) + 1), inv_freq))


@COS_SIN.also("counted-through")
def _(positions, inv_freq):
    return _doubled(_at(torch.arange(int(positions.min()), int(positions.max()) + 1), inv_freq))


@COS_SIN.add(
    "restarted",
    "It subtracts the first position: every text begins at 0.",
    "A text is continued with tokens 5, 6 and 7. By which angle should the first of them turn?",
    "Which line subtracts something from the positions, and what for?",
    "Multiply `positions` by inv_freq as they are.",
)
def _(positions, inv_freq):
    return _doubled(_at(positions - positions[0], inv_freq))


@COS_SIN.add(
    "positions-from-1",
    "It counts positions from 1: position 0 turns as well.",
    "What should the cosine be at position 0?",
    "Which line adds something to the positions, and what for?",
    "Multiply `positions` by inv_freq as they are.",
    on="position 0",
)
def _(positions, inv_freq):
    return _doubled(_at(positions + 1, inv_freq))


@COS_SIN.add(
    "positions-sorted",
    "It sorts the positions: the tokens get each other's angles.",
    "Positions [5, 9, 2]: which angle belongs to the second token?",
    "Row s of the result belongs to token s, in the order in which they came.",
    "Use `positions` in their own order.",
)
def _(positions, inv_freq):
    return _doubled(_at(positions.sort()[0], inv_freq))


@COS_SIN.add(
    "whole-table",
    "It returns every position from 0 on, not those that were asked for.",
    "How many rows came back, and how many positions were given?",
    "A table of all positions is one way. Which of its rows belong to these tokens?",
    "Index the table with `positions`, or make the angles from `positions` alone.",
)
def _(positions, inv_freq):
    return _doubled(_at(torch.arange(int(positions.max()) + 1), inv_freq))


@COS_SIN.also("whole-table")
def _(positions, inv_freq):
    return _doubled(_at(torch.arange(int(positions[-1]) + 1), inv_freq))


@COS_SIN.add(
    "interleaved-doubling",
    "Each angle is doubled beside itself, which is right for interleaved pairs.",
    "In the half-split layout, which features turn by the same angle?",
    "At position 5 the angles are [5, 0.05, 5, 0.05]. In which order are yours?",
    "torch.cat((angles, angles), dim=-1) in place of repeat_interleave.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq).repeat_interleave(2, dim=-1)
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "mirrored-doubling",
    "The second copy of the angles is in reversed order.",
    "In the half-split layout, which feature is the partner of feature 0?",
    "At position 5 the angles are [5, 0.05, 5, 0.05]. In which order are yours?",
    "torch.cat((angles, angles), dim=-1), both copies alike.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    angles = torch.cat((angles, angles.flip(-1)), dim=-1)
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "not-doubled",
    "There is one angle for each pair, and not one for each feature.",
    "How many features does a head have, and how many columns came back?",
    "Both features of a pair turn by the same angle. Is it there for both?",
    "torch.cat((angles, angles), dim=-1) before cos and sin.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "doubled-along-tokens",
    "The angles are written twice below each other: twice as many tokens, half as many features.",
    "Which axis of your result is too long, and which too short?",
    "The angles are [S, d/2]. Which of the two axes should grow?",
    "torch.cat((angles, angles), dim=-1): the last axis.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq).repeat(2, 1)
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "axes-exchanged",
    "The table lies on its side: a row for each step, a column for each token.",
    "Which of the two arguments should be the rows of your table?",
    "The result is [S, d]. What is the shape of your angles?",
    "torch.outer(positions, inv_freq): the positions come first.",
)
def _(positions, inv_freq):
    return _doubled(torch.outer(inv_freq, positions.float()))


@COS_SIN.add(
    "no-table",
    "Positions and steps are multiplied entry by entry, not each with each.",
    "How many angles are there for three positions and two steps?",
    "`*` lines up the last axes. What would make the positions a column?",
    "positions[:, None] * inv_freq, or torch.outer.",
)
def _(positions, inv_freq):
    return _doubled(positions.float() * inv_freq)


@COS_SIN.add(
    "neither-table-nor-doubled",
    "Positions and steps are multiplied entry by entry, not each with each; and no angle is there twice.",
    "How many angles are there for three positions and two steps?",
    "Every token has an angle for every pair. Which shape has a table of them?",
    "First the table: positions[:, None] * inv_freq, or torch.outer. Then look at its width.",
)
def _(positions, inv_freq):
    angles = positions.float() * inv_freq
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "stacked",
    "The two copies of the angles are stacked on a new axis: the result has one axis too many.",
    "How many axes should the result have, and how many came back?",
    "`stack` makes a new axis. Which function makes an axis longer?",
    "torch.cat((angles, angles), dim=-1).",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    angles = torch.stack((angles, angles))
    return angles.cos(), angles.sin()


@COS_SIN.also("stacked")
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    angles = torch.stack((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


@COS_SIN.also("stacked")
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    angles = torch.stack((angles, angles), dim=1)
    return angles.cos(), angles.sin()


@COS_SIN.add(
    "cosine-beside-sine",
    "Cosines and sines stand side by side in one result.",
    "What should the whole first row of `cos` be at position 0?",
    "Both features of a pair have the same angle: is it a cosine in both halves?",
    "torch.cat((angles, angles), dim=-1) first, then the cosine of all of it, and the sine of all of it.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    return torch.cat((angles.cos(), angles.sin()), -1), torch.cat((angles.sin(), angles.cos()), -1)


@COS_SIN.also("cosine-beside-sine")
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    both = torch.cat((angles.cos(), angles.sin()), -1)
    return both, both


@COS_SIN.add(
    "sine-half-negated",
    "Half of the sines have a minus. That comes later, with the partners.",
    "Both features of a pair turn by the same angle. Are their sines alike?",
    "Does the minus of a turn belong to the angles, or to the partners?",
    "Both halves of `sin` are the same: torch.cat((angles, angles), dim=-1), then its sine.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    return torch.cat((angles, angles), -1).cos(), torch.cat((-angles, angles), -1).sin()


@COS_SIN.also("sine-half-negated")
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    return torch.cat((angles, angles), -1).cos(), torch.cat((angles, -angles), -1).sin()


@COS_SIN.add(
    "sine-from-cosine",
    "The sine is made from the cosine, and its sign is lost.",
    "What is the sine of an angle between half a turn and a full one?",
    "A root is never negative. Is a sine?",
    "angles.sin().",
)
def _(positions, inv_freq):
    cos, _ = _doubled(_at(positions, inv_freq))
    return cos, (1 - cos.square()).clamp(min=0).sqrt()


@COS_SIN.add(
    "steps-rounded",
    "The steps are rounded down to whole numbers: slow pairs stand still.",
    "What becomes of a step of 0.01 in your code?",
    "`positions` are whole numbers. Which line gives the steps their dtype?",
    "Bring the positions to the dtype of the steps, not the other way round: positions.float().",
)
def _(positions, inv_freq):
    return _doubled(positions[:, None] * inv_freq.to(positions.dtype))


@COS_SIN.add(
    "one-number-at-a-time",
    "It works for a single angle only.",
    "How many angles are there for three positions and two steps?",
    "`math.cos` takes one number at a time. What does the same for a tensor?",
    "A tensor has .cos() and .sin(): angles.cos() holds the cosine of every angle.",
)
def _(positions, inv_freq):
    angles = _at(positions, inv_freq)
    cos, sin = math.cos(angles), math.sin(angles)
    return torch.full((1, 2), cos), torch.full((1, 2), sin)


@COS_SIN.add(
    "exchanged",
    "Cosine and sine come back in the wrong order.",
    "What should the first of the two be at position 0?",
    "The name of the function has the order.",
    "return angles.cos(), angles.sin()",
    on="position 0",
)
def _(positions, inv_freq):
    cos, sin = _doubled(_at(positions, inv_freq))
    return sin, cos


@COS_SIN.add(
    "cosine-twice",
    "The cosine comes back twice.",
    "What should the second of the two be at position 0?",
    "Look at your last line.",
    "return angles.cos(), angles.sin()",
    on="position 0",
)
def _(positions, inv_freq):
    cos, _ = _doubled(_at(positions, inv_freq))
    return cos, cos


@COS_SIN.add(
    "sine-negative",
    "The sine has the wrong sign: the turn goes to the right.",
    "Is a small positive angle's sine positive or negative?",
    "Something puts a minus on the angles, or on the sine. Which line is it?",
    "The angles are positions times inv_freq, with no minus.",
)
def _(positions, inv_freq):
    return _doubled(-_at(positions, inv_freq))


@COS_SIN.add(
    "degrees",
    "It takes the angles for degrees.",
    "inv_freq holds the step of every pair. In which unit?",
    "Which unit do torch.cos and torch.sin want, and which one does position times step have?",
    "Give the angles to cos and sin as they are.",
)
def _(positions, inv_freq):
    return _doubled(torch.deg2rad(_at(positions, inv_freq)))


@COS_SIN.add(
    "full-turns",
    "It has a factor 2π: the steps are taken for full turns.",
    "inv_freq holds the step of every pair. In which unit?",
    "A pair of step 1 turns one radian per position. By how much does yours turn?",
    "The angles are positions times inv_freq, and nothing else.",
)
def _(positions, inv_freq):
    return _doubled(2 * math.pi * _at(positions, inv_freq))


@COS_SIN.add(
    "divided",
    "The positions are divided by inv_freq, not multiplied.",
    "Which pair should turn more slowly, the one with step 1 or the one with step 0.01?",
    "inv_freq is the inverse already: radians per position.",
    "positions times inv_freq.",
)
def _(positions, inv_freq):
    return _doubled(_at(positions, 1 / inv_freq))


@COS_SIN.add(
    "added",
    "Positions and steps are added, not multiplied.",
    "After five positions, how often has a pair taken its step?",
    "Five steps of 0.01 are 0.05. What do you get at position 5?",
    "The angle is positions times inv_freq.",
)
def _(positions, inv_freq):
    return _doubled(positions.float()[:, None] + inv_freq)


@COS_SIN.add(
    "cosine-of-the-step",
    "It takes the cosine of the step first and multiplies by the position afterwards.",
    "Can a cosine be larger than 1?",
    "Of which number should the cosine be: of the step, or of the whole angle?",
    "First angles = positions times inv_freq, then angles.cos().",
)
def _(positions, inv_freq):
    steps = inv_freq.repeat(2)
    return torch.outer(positions.float(), steps.cos()), torch.outer(positions.float(), steps.sin())


@COS_SIN.add(
    "steps-ignored",
    "It makes its own steps from base 10000 and does not look at `inv_freq`.",
    "Llama-3 has another base. How would your function learn of it?",
    "Look for 10000 in your code, or for a call of the function inv_freq.",
    "The steps come in as the argument `inv_freq`: multiply by that.",
)
def _(positions, inv_freq):
    half = len(inv_freq)
    return _doubled(_at(positions, 10000.0 ** (-torch.arange(half) / half)))


@COS_SIN.add(
    "bf16-angles",
    "The angles are computed in 16 bits: far positions fall together.",
    "Up to which position can a number of 16 bits tell neighbours apart?",
    "Which line rounds the positions or the steps to bf16 or fp16?",
    "positions.float()[:, None] * inv_freq, in fp32; cast the finished cosines, if at all.",
)
def _(positions, inv_freq):
    return tuple(t.float() for t in _doubled(_at(positions, inv_freq).bfloat16()))


@COS_SIN.also("bf16-angles")
def _(positions, inv_freq):
    return _doubled((positions.bfloat16()[:, None] * inv_freq.bfloat16()).float())


@COS_SIN.also("bf16-angles")
def _(positions, inv_freq):
    return _doubled(_at(positions.bfloat16(), inv_freq))


@COS_SIN.also("bf16-angles")
def _(positions, inv_freq):
    return _doubled((positions.half()[:, None] * inv_freq.half()).float())


@COS_SIN.also("bf16-angles")
def _(positions, inv_freq):
    return _doubled(positions.bfloat16()[:, None] * inv_freq.bfloat16())


@COS_SIN.also("bf16-angles")
def _(positions, inv_freq):
    return _doubled(_at(positions, inv_freq).bfloat16())


# rotate_half(x): [..., d]


def _halves(x):
    return x.chunk(2, dim=-1)


@ROTATE_HALF.add(
    "other-way",
    "The minus is on the other half: this turns to the right.",
    "The partners of [1, 2, 3, 4] are [-3, -4, 1, 2]. Which two numbers have the minus?",
    "`a` is the first half, `b` the second. Which of the two gets a minus when it moves?",
    "The second half, with a minus, comes first: (-b, a).",
)
def _(x):
    a, b = _halves(x)
    return torch.cat((b, -a), dim=-1)


@ROTATE_HALF.add(
    "no-minus",
    "The halves are exchanged, and nothing is negated.",
    "Turn [2, 1] a quarter to the left. How many of its numbers change their sign?",
    "The partners of [1, 2, 3, 4] are [-3, -4, 1, 2]. Which half of the result has the minus?",
    "Put a minus on the half that comes first: (-b, a).",
)
def _(x):
    a, b = _halves(x)
    return torch.cat((b, a), dim=-1)


@ROTATE_HALF.also("no-minus")
def _(x):
    return x.roll(x.shape[-1] // 2, dims=-1)


@ROTATE_HALF.add(
    "minus-twice",
    "Both halves have a minus.",
    "Turn [2, 1] a quarter to the left. How many of its numbers change their sign?",
    "The partners of [1, 2, 3, 4] are [-3, -4, 1, 2]. Which half of the result has no minus?",
    "Only the half that comes first has a minus: (-b, a).",
)
def _(x):
    a, b = _halves(x)
    return torch.cat((-b, -a), dim=-1)


@ROTATE_HALF.add(
    "halves-in-place",
    "The halves stay where they are, and one of them gets a minus.",
    "Which feature is the partner of a made of?",
    "The partners of [1, 2, 3, 4] are [-3, -4, 1, 2]. Where do 3 and 4 stand, and where in your result?",
    "The second half comes first: (-b, a).",
)
def _(x):
    a, b = _halves(x)
    return torch.cat((-a, b), dim=-1)


@ROTATE_HALF.also("halves-in-place")
def _(x):
    a, b = _halves(x)
    return torch.cat((a, -b), dim=-1)


@ROTATE_HALF.add(
    "interleaved",
    "It exchanges neighbours: right for interleaved pairs, and ours are half-split.",
    "In [1, 2, 3, 4], which feature forms a pair with the 1?",
    "Half-split: feature i of the first half goes with feature i of the second half.",
    "Cut the last axis in the middle: x.chunk(2, dim=-1) gives [1, 2] and [3, 4].",
)
def _(x):
    pairs = x.unflatten(-1, (-1, 2))
    return torch.stack((-pairs[..., 1], pairs[..., 0]), dim=-1).flatten(-2)


@ROTATE_HALF.add(
    "evens-and-odds",
    "The halves that it exchanges are the even and the odd features.",
    "In [1, 2, 3, 4], which two numbers are the first half?",
    "x[..., ::2] takes every second feature. Does that cut the axis in the middle?",
    "Cut the last axis in the middle: x.chunk(2, dim=-1).",
)
def _(x):
    return torch.cat((-x[..., 1::2], x[..., ::2]), dim=-1)


@ROTATE_HALF.add(
    "woven-together",
    "The right numbers come back woven into each other: one from each half in turn.",
    "In which order do the partners of [1, 2, 3, 4] come?",
    "`stack` and `flatten` on the last axis take one from each half in turn. Which function puts one half "
    "after the other?",
    "torch.cat((-b, a), dim=-1).",
)
def _(x):
    a, b = _halves(x)
    return torch.stack((-b, a), dim=-1).flatten(-2)


@ROTATE_HALF.add(
    "stacked",
    "The two halves are stacked on a new axis: the result has one axis too many.",
    "Which shape came in, and which one came back?",
    "`stack` makes a new axis. Which function makes an axis longer?",
    "torch.cat((-b, a), dim=-1).",
)
def _(x):
    a, b = _halves(x)
    return torch.stack((-b, a), dim=-1)


@ROTATE_HALF.also("stacked")
def _(x):
    a, b = _halves(x)
    return torch.stack((-b, a), dim=-2)


@ROTATE_HALF.also("stacked")
def _(x):
    a, b = _halves(x)
    return torch.stack((-b, a))


@ROTATE_HALF.add(
    "reversed",
    "Each half comes back in reversed order.",
    "The partners of [1, 2, 3, 4] are [-3, -4, 1, 2]. In which order are yours?",
    "Something flips the axis. Do 3 and 4 have to change places?",
    "Exchange the halves, and leave the order inside them.",
)
def _(x):
    a, b = (half.flip(-1) for half in _halves(x))
    return torch.cat((-b, a), dim=-1)


@ROTATE_HALF.add(
    "other-axis",
    "It cuts another axis than the last: tokens, heads or texts change places.",
    "Which axis holds the features?",
    "Which axis do `chunk`, `cat` and `x[:h]` work on if you do not say?",
    "dim=-1, in chunk and in cat; or slices of the last axis, x[..., :h] and x[..., h:].",
)
def _(x):
    a, b = x[: x.shape[0] // 2], x[x.shape[0] // 2 :]
    return torch.cat((-b, a))


@ROTATE_HALF.also("other-axis")
def _(x):
    a, b = x.chunk(2)
    return torch.cat((-b, a))


@ROTATE_HALF.also("other-axis")
def _(x):
    a, b = x.chunk(2, dim=-2)
    return torch.cat((-b, a), dim=-2)


@ROTATE_HALF.add(
    "joined-on-another-axis",
    "The features are cut in two, and the halves are joined on another axis.",
    "Which shape came in, and which one came back?",
    "Which axis do you cut, and which axis does your `cat` make longer?",
    "torch.cat((-b, a), dim=-1).",
)
def _(x):
    a, b = _halves(x)
    return torch.cat((-b, a))


@ROTATE_HALF.also("joined-on-another-axis")
def _(x):
    a, b = _halves(x)
    return torch.cat((-b, a), dim=-2)


@ROTATE_HALF.add(
    "half-is-2",
    "It cuts after the second feature, whatever d is.",
    "Where is the middle of six features?",
    "Look for a 2 in your slices, or in `split`. Is it a number of parts or a number of features?",
    "x.shape[-1] // 2 is the middle; chunk finds it by itself.",
)
def _(x):
    return torch.cat((-x[..., 2:], x[..., :2]), dim=-1)


@ROTATE_HALF.also("half-is-2")
def _(x):
    a, b, *_ = x.split(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


@ROTATE_HALF.also("half-is-2")
def _(x):
    parts = x.split(2, dim=-1)
    return torch.cat((-parts[1], parts[0]), dim=-1)


@ROTATE_HALF.add(
    "half-of-the-rows",
    "It cuts the features at half the number of rows, not in their middle.",
    "How many features has a token, and where is the middle of them?",
    "`len(x)` and `x.shape[0]` are the size of the first axis. Which axis do you cut?",
    "half = x.shape[-1] // 2.",
)
def _(x):
    half = len(x) // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


@ROTATE_HALF.add(
    "two-axes-only",
    "It works for x of two axes only.",
    "x may be one token, or have several axes before the last. What does axis 1 hold then?",
    "How do you reach the last axis, however many axes stand before it?",
    "x[..., :half] and x[..., half:]; or dim=-1, in chunk and in cat.",
)
def _(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[:, half:], x[:, :half]), dim=-1)


@ROTATE_HALF.also("two-axes-only")
def _(x):
    a, b = x.chunk(2, dim=1)
    return torch.cat((-b, a), dim=1)


@ROTATE_HALF.also("two-axes-only")
def _(x):
    a, b = x.chunk(2, dim=1)
    return torch.cat((-b, a), dim=-1)


@ROTATE_HALF.add(
    "first-half-only",
    "Only the first half of the partners comes back.",
    "How many features came in, and how many came back?",
    "Every feature has a partner: those of the first half, and those of the second.",
    "torch.cat((-b, a), dim=-1): both.",
)
def _(x):
    return -_halves(x)[1]


@ROTATE_HALF.add(
    "updated-too-early",
    "One half is overwritten before the other half has been made from it.",
    "When your second line reads its half, what stands there by then?",
    "A slice is a view: it changes when the tensor does, even under a name of its own.",
    "Write into a new tensor, or do without writing: torch.cat((-b, a), dim=-1).",
)
def _(x):
    b = _halves(x)[1]
    return torch.cat((-b, -b), dim=-1)


@ROTATE_HALF.also("updated-too-early")
def _(x):
    a = _halves(x)[0]
    return torch.cat((-a, a), dim=-1)


@ROTATE_HALF.add(
    "second-half-kept",
    "Only the first half is new; the second is that of x.",
    "What are the partners of 3 and 4 in [1, 2, 3, 4]?",
    "How many of the two halves does your function fill?",
    "The partner of b is a: the second half of the result is the first half of x.",
)
def _(x):
    b = _halves(x)[1]
    return torch.cat((-b, b), dim=-1)


@ROTATE_HALF.add(
    "half-a-turn",
    "Every feature gets a minus, and none changes its place.",
    "The partners of [1, 2, 3, 4] are [-3, -4, 1, 2]. Which numbers moved?",
    "The name speaks of the halves, not of half a turn. Where does each number of a pair go?",
    "The second half, with a minus, comes first: (-b, a).",
)
def _(x):
    return -x


@ROTATE_HALF.add(
    "left-in-fp32",
    "It fills a new tensor, and that is in fp32 whatever comes in.",
    "Which dtype came in, and which one came back?",
    "Which dtype does a tensor have that you make by its shape alone?",
    "torch.empty_like(x) has the dtype of x; or do without a new tensor: torch.cat.",
)
def _(x):
    a, b = _halves(x)
    return torch.cat((-b, a), dim=-1).float()


# apply_rope(q, k, cos, sin): q [B, N, S, d], k [B, K, S, d], cos and sin [B, S, d]


def _partner(x):
    a, b = _halves(x)
    return torch.cat((-b, a), dim=-1)


def _neighbour(x):
    pairs = x.unflatten(-1, (-1, 2))
    return torch.stack((-pairs[..., 1], pairs[..., 0]), dim=-1).flatten(-2)


def _turned(x, cos, sin):
    """The right turn, cos and sin with room for the heads."""
    return x * cos + _partner(x) * sin


def _for_pairs(angle_function):
    return angle_function[..., : angle_function.shape[-1] // 2].repeat_interleave(2, dim=-1)


def _both(turn, axis=1):
    """A function of q, k, cos and sin from one of x, cos and sin; heads get an axis at `axis`."""

    def apply_rope(q, k, cos, sin):
        cos, sin = cos.unsqueeze(axis), sin.unsqueeze(axis)
        return turn(q, cos, sin), turn(k, cos, sin)

    return apply_rope


APPLY_ROPE.add(
    "other-way",
    "It turns to the right: the other way round.",
    "When [2, 1] turns a little to the left, does its second number grow or shrink?",
    "There is one minus in a turn. Is it in rotate_half already?",
    "x * cos + rotate_half(x) * sin: a plus between the two.",
)(_both(lambda x, cos, sin: x * cos - _partner(x) * sin))

APPLY_ROPE.add(
    "along-heads",
    "It turns along the heads: every head gets the angle of the token with its number.",
    "Token 0 of every head stands at position 0. Did it stay where it was?",
    "Write [B, N, S, d] and the shape of your cos below each other, aligned at the right. What meets N?",
    "cos needs an axis of size 1 where q has its heads: cos.unsqueeze(1), [B, 1, S, d].",
)(_both(_turned, axis=2))

APPLY_ROPE.add(
    "axis-at-the-end",
    "The new axis of cos and sin stands last: the heads meet tokens, and the tokens meet features.",
    "What is the shape of your cos, and which shape should it have when it meets q?",
    "Write [B, N, S, d] and the shape of your cos below each other, aligned at the right. What meets d?",
    "cos needs an axis of size 1 where q has its heads: cos.unsqueeze(1), [B, 1, S, d].",
)(_both(_turned, axis=-1))


@APPLY_ROPE.add(
    "axis-for-one-only",
    "Only one of cos and sin has an axis for the heads.",
    "What are the shapes of your cos and of your sin?",
    "Compare the two lines that make room for the heads, or count them.",
    "cos.unsqueeze(1) and sin.unsqueeze(1): both are [B, 1, S, d].",
)
def _(q, k, cos, sin):
    cos = cos.unsqueeze(1)
    return _turned(q, cos, sin), _turned(k, cos, sin)


@APPLY_ROPE.also("axis-for-one-only")
def _(q, k, cos, sin):
    sin = sin.unsqueeze(1)
    return _turned(q, cos, sin), _turned(k, cos, sin)


def _reshaped(x, cos, sin):
    B, N, S, d = x.shape
    return _turned(x.reshape(B, S, N, d), cos, sin).reshape(x.shape)


APPLY_ROPE.add(
    "reshaped-not-transposed",
    "It makes [B, S, N, d] by a reshape: that cuts heads and tokens anew, and does not exchange them.",
    "Which numbers stand in row 1 of a [2, 3] tensor, and which after a reshape to [3, 2]?",
    "`reshape` keeps the numbers in their order. What exchanges two axes? And is it needed here?",
    "Leave q as [B, N, S, d] and give cos an axis: cos.unsqueeze(1).",
)(_both(_reshaped, axis=2))


@APPLY_ROPE.add(
    "no-room-for-heads",
    "cos and sin have no axis for the heads: every head gets the angles of the text with its number.",
    "What is the shape of cos, and which axis of q does its first axis meet?",
    "Write [B, N, S, d] and [B, S, d] below each other, aligned at the right. What meets N?",
    "cos.unsqueeze(1) is [B, 1, S, d].",
)
def _(q, k, cos, sin):
    return _turned(q, cos, sin), _turned(k, cos, sin)


APPLY_ROPE.add(
    "interleaved-partner",
    "The partners are neighbours, the angles are those of half-split pairs: no longer a rotation.",
    "Which feature is the partner of feature 0, and do the two share an angle?",
    "The angles behind cos and sin are [1, 0.01, 1, 0.01]. Which two features share one of them?",
    "Use rotate_half, which exchanges the halves.",
)(_both(lambda x, cos, sin: x * cos + _neighbour(x) * sin))

APPLY_ROPE.add(
    "mixed-layouts",
    "The angles are in order for neighbours, the partners are those of half-split: no longer a rotation.",
    "Do the two features of a pair get the same angle?",
    "The angles behind cos and sin come in as [1, 0.01, 1, 0.01]. In which order do you use them?",
    "Use cos and sin as they come: no repeat_interleave.",
)(_both(lambda x, cos, sin: x * _for_pairs(cos) + _partner(x) * _for_pairs(sin)))

APPLY_ROPE.add(
    "interleaved",
    "It turns neighbouring features: the interleaved layout. Ours is half-split.",
    "[1, 2, 3, 4] at position 1: which feature is turned together with the 1?",
    "Half-split turns [1, 3] by one angle and [2, 4] by the other.",
    "cos and sin as they come, and rotate_half for the partners.",
)(_both(lambda x, cos, sin: x * _for_pairs(cos) + _neighbour(x) * _for_pairs(sin)))

APPLY_ROPE.add(
    "evens-and-odds",
    "The partners are taken from the even and the odd features.",
    "[1, 2, 3, 4]: which feature is the partner of the 1?",
    "Look into your rotate_half: where does it cut the last axis?",
    "The halves are x.chunk(2, dim=-1).",
)(_both(lambda x, cos, sin: x * cos + torch.cat((-x[..., 1::2], x[..., ::2]), dim=-1) * sin))


def _partner_along(dim):
    def partner(x):
        a, b = x.chunk(2, dim=dim)
        return torch.cat((-b, a), dim=dim)

    return partner


def _partner_of_rows(x):
    half = len(x) // 2
    return torch.cat((-x[half:], x[:half]))


def _partner_of_slices(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[half:], x[:half]))


def _partner_joined(x):
    a, b = _halves(x)
    return torch.cat((-b, a))


APPLY_ROPE.add(
    "partner-from-another-axis",
    "The halves are cut along another axis than that of the features: texts, heads or tokens.",
    "Which number is the partner of the first feature of each vector, and where does yours come from?",
    "Look into your rotate_half: which axis do `chunk`, `cat` and `x[:h]` work on if you do not say?",
    "dim=-1, in chunk and in cat of rotate_half; check.rotate_half says when it is right.",
    on="two texts",
)(_both(lambda x, cos, sin: x * cos + _partner_along(0)(x) * sin))

for _make in (_partner_along(1), _partner_along(2), _partner_of_rows, _partner_of_slices):
    APPLY_ROPE.also("partner-from-another-axis")(
        _both(lambda x, cos, sin, make=_make: x * cos + make(x) * sin)
    )

APPLY_ROPE.add(
    "halves-joined-on-another-axis",
    "The features are cut in two, and the partners are joined on another axis.",
    "What is the shape of rotate_half(q), and what is that of q?",
    "Look into your rotate_half: which axis does `cat` work on if you do not say?",
    "torch.cat((-b, a), dim=-1) in rotate_half; check.rotate_half says when it is right.",
)(_both(lambda x, cos, sin: x * cos + _partner_joined(x) * sin))


@APPLY_ROPE.add(
    "not-turned",
    "Queries and keys come back as they came.",
    "What should half a turn make of a vector?",
    "Compare what you return with what came in. Are the turned vectors what you return?",
    "return q * cos + rotate_half(q) * sin, and the same for k.",
)
def _(q, k, cos, sin):
    return q * 1, k * 1


def _own_angles(base):
    def apply_rope(q, k, cos, sin):
        steps = base ** (-torch.arange(0, q.shape[-1], 2) / q.shape[-1])
        angles = torch.outer(torch.arange(q.shape[-2]).float(), steps).repeat(1, 2)
        cos, sin = angles.cos().to(q.dtype), angles.sin().to(q.dtype)
        return _turned(q, cos, sin), _turned(k, cos, sin)

    return apply_rope


APPLY_ROPE.add(
    "angles-made-anew",
    "It makes its own cosines and sines and does not look at those that come in.",
    "A text is continued at position 5. How would your function learn of it?",
    "Where does your function use the values of the arguments `cos` and `sin`?",
    "Use the arguments: cos.unsqueeze(1), sin.unsqueeze(1).",
)(_own_angles(10000.0))
APPLY_ROPE.also("angles-made-anew")(_own_angles(500000.0))


@APPLY_ROPE.add(
    "key-not-turned",
    "Only the queries are turned.",
    "Two tokens move by 100 positions, and their score should stay. Which of the two vectors has to turn?",
    "Compare what you return for k with the k that came in.",
    "The same line for k as for q, with the same cos and sin.",
)
def _(q, k, cos, sin):
    return _turned(q, cos.unsqueeze(1), sin.unsqueeze(1)), k * 1


@APPLY_ROPE.add(
    "query-not-turned",
    "Only the keys are turned.",
    "Two tokens move by 100 positions, and their score should stay. Which of the two vectors has to turn?",
    "Compare what you return for q with the q that came in.",
    "The same line for q as for k, with the same cos and sin.",
)
def _(q, k, cos, sin):
    return q * 1, _turned(k, cos.unsqueeze(1), sin.unsqueeze(1))


@APPLY_ROPE.add(
    "key-other-way",
    "Queries turn to the left, keys to the right: a score depends on the sum of the two positions.",
    "A query and a key stand at the same position. Should turning both change the angle between them?",
    "Compare the signs of your two lines.",
    "Both lines are alike: x * cos + rotate_half(x) * sin.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return _turned(q, cos, sin), _turned(k, cos, -sin)


@APPLY_ROPE.add(
    "exchanged",
    "Queries and keys come back in the wrong order.",
    "Which of the two has N heads?",
    "In which order do q and k come in, and in which order do you return them?",
    "return the turned q first, then the turned k.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return _turned(k, cos, sin), _turned(q, cos, sin)


@APPLY_ROPE.add(
    "query-twice",
    "The turned queries come back twice.",
    "Where in your second line is k?",
    "Look at what you return second. Which name is it, and what was it made from?",
    "k * cos + rotate_half(k) * sin.",
)
def _(q, k, cos, sin):
    q = _turned(q, cos.unsqueeze(1), sin.unsqueeze(1))
    return q, q


@APPLY_ROPE.add(
    "partner-of-query",
    "The keys get the partners of the queries.",
    "Whose partners stand in your second line?",
    "Go through the names in your line for k. Which of them belong to k, and which to q?",
    "k * cos + rotate_half(k) * sin.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return _turned(q, cos, sin), k * cos + _partner(q) * sin


@APPLY_ROPE.add(
    "query-for-key",
    "In the turned keys, q stands in place of k beside the cosine.",
    "Which vector does the cosine multiply in your second line?",
    "Go through the names in your line for k. Which of them belong to k, and which to q?",
    "k * cos + rotate_half(k) * sin.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return _turned(q, cos, sin), q * cos + _partner(k) * sin


@APPLY_ROPE.add(
    "partner-of-key",
    "The queries get the partners of the keys.",
    "Whose partners stand in your first line?",
    "Go through the names in your line for q. Which of them belong to q, and which to k?",
    "q * cos + rotate_half(q) * sin.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + _partner(k) * sin, _turned(k, cos, sin)


@APPLY_ROPE.add(
    "query-scaled",
    "The queries are divided by √d as well. That belongs to the scores, later.",
    "How long is a turned query, and how long was it before?",
    "A turn keeps the norm. What in your line for q does not?",
    "q * cos + rotate_half(q) * sin, and nothing else.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return _turned(q, cos, sin) / math.sqrt(q.shape[-1]), _turned(k, cos, sin)


@APPLY_ROPE.add(
    "query-heads-left",
    "Only as many query heads as there are key heads are turned.",
    "How many heads has q, and how many has k?",
    "Look at the range of your loop, or at your slice of the heads. How far does it go?",
    "q has q.shape[1] heads, k has k.shape[1]; with cos.unsqueeze(1) no loop is needed.",
)
def _(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat((_turned(q[:, : k.shape[1]], cos, sin), q[:, k.shape[1] :]), dim=1), _turned(k, cos, sin)


APPLY_ROPE.add(
    "cos-sin-exchanged",
    "Cosine and sine are exchanged: position 0 turns by a quarter.",
    "At position 0 nothing may move. Which of cos 0 and sin 0 is 1?",
    "Which of the two multiplies a feature itself, and which one its partner?",
    "x * cos + rotate_half(x) * sin.",
)(_both(lambda x, cos, sin: x * sin + _partner(x) * cos))

APPLY_ROPE.add(
    "half-not-negated",
    "The partners have no minus: this is not a turn, and norms change.",
    "How long is your turned vector, and how long was it before?",
    "Look into your rotate_half: what are the partners of [1, 2, 3, 4]?",
    "The partner of a is -b: torch.cat((-b, a), dim=-1).",
)(_both(lambda x, cos, sin: x * cos + torch.cat(_halves(x)[::-1], dim=-1) * sin))

APPLY_ROPE.add(
    "no-partner",
    "Every feature is multiplied by its own sine as well, and never meets its partner.",
    "A turn mixes two features. Which two do you mix?",
    "In the lesson's two formulas of a turn, what does the sine multiply? And in your line?",
    "x * cos + rotate_half(x) * sin.",
)(_both(lambda x, cos, sin: x * cos + x * sin))

APPLY_ROPE.add(
    "cosine-only",
    "Only the cosine is applied: features shrink, and nothing turns.",
    "How long is your turned vector, and how long was it before?",
    "`sin` comes in as an argument. Where is it used?",
    "Add rotate_half(x) * sin.",
)(_both(lambda x, cos, sin: x * cos))

APPLY_ROPE.add(
    "brackets",
    "The sine multiplies the whole sum, not the partner alone.",
    "At position 0 the sine is 0. What is left of your result there?",
    "Which of the two terms does the sine belong to? Look at your brackets.",
    "(x * cos) + (rotate_half(x) * sin).",
)(_both(lambda x, cos, sin: (x * cos + _partner(x)) * sin))

APPLY_ROPE.add(
    "updated-too-early",
    "The partners are taken from what is already multiplied by the cosine.",
    "When you call rotate_half, what has become of x?",
    "A line such as `q = q * cos` changes what the next line sees.",
    "Both terms come from the old x: write them in one line.",
)(_both(lambda x, cos, sin: _turned(x * cos, 1, sin)))


def _first_half_early(x, cos, sin):
    a, b = _halves(_turned(x, cos, sin))[0], _halves(x)[1]
    cos, sin = _halves(cos)[0], _halves(sin)[0]
    return torch.cat((a, b * cos + a * sin), dim=-1)


APPLY_ROPE.add(
    "first-half-overwritten",
    "The second half is computed from the first half as it is after the turn.",
    "When you compute the second half, what does the name of the first one stand for?",
    "Both halves need the old first and the old second half. Is one of them overwritten in between?",
    "Give the turned halves new names, and join these.",
)(_both(_first_half_early))

APPLY_ROPE.add(
    "turned-twice",
    "It turns by twice the angle.",
    "How often is the turn applied to q on its way through your function?",
    "At position 1 the first pair should move by one radian. By how much did it move?",
    "Apply the line once.",
)(_both(lambda x, cos, sin: _turned(_turned(x, cos, sin), cos, sin)))

APPLY_ROPE.add(
    "second-half-left",
    "Only the first half of the features is turned.",
    "Does a turn change both members of a pair, or one?",
    "The first half holds all `a`, the second all `b`. Compare your second half with that of x.",
    "b becomes b·cos + a·sin: x * cos + rotate_half(x) * sin does both halves at once.",
)(_both(lambda x, cos, sin: torch.cat((_halves(_turned(x, cos, sin))[0], _halves(x)[1]), dim=-1)))


@APPLY_ROPE.add(
    "first-text-for-all",
    "Every text gets the positions of the first one.",
    "Do all texts of a batch stand at the same positions?",
    "cos is [B, S, d]. Where did its first axis go?",
    "Keep the axis of the texts, and make one of size 1 after it: cos.unsqueeze(1).",
)
def _(q, k, cos, sin):
    return _both(_turned)(q, k, cos[:1], sin[:1])


@APPLY_ROPE.add(
    "first-token-for-all",
    "Every token gets the position of the first one.",
    "Where do the second token's angles come in?",
    "cos is [B, S, d]. Where did its axis of tokens go?",
    "Keep all of cos, and make an axis of size 1 for the heads: cos.unsqueeze(1).",
)
def _(q, k, cos, sin):
    return _both(_turned)(q, k, cos[:, :1], sin[:, :1])


@APPLY_ROPE.add(
    "tokens-before-heads",
    "It exchanges heads and tokens, and does not change them back.",
    "What is the shape of q when it comes in, and when it comes back?",
    "A transpose on the way in needs another one on the way out. Is any needed here?",
    "Leave q as [B, N, S, d] and give cos an axis: cos.unsqueeze(1).",
)
def _(q, k, cos, sin):
    return tuple(t.transpose(1, 2) for t in _both(_turned)(q, k, cos, sin))


@APPLY_ROPE.add(
    "keys-repeated",
    "The keys come back once for every query head.",
    "How many key heads came in, and how many came back?",
    "Fewer key heads than query heads is no problem here: each is turned by itself.",
    "Turn k as it is, [B, K, S, d].",
)
def _(q, k, cos, sin):
    q, k = _both(_turned)(q, k, cos, sin)
    return q, k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)


@APPLY_ROPE.add(
    "left-in-fp32",
    "The output stays in fp32 when q and k are in 16 bits.",
    "Which dtype came in, and which one came back?",
    "A product of fp32 and bf16 is fp32. Which line makes something fp32?",
    "Multiply in the dtype of q, or cast the result back: .to(q.dtype).",
)
def _(q, k, cos, sin):
    q, k = (t.float() if t.dtype.itemsize == 2 else t for t in (q, k))
    return _both(_turned)(q, k, cos, sin)


# interleaved_to_half(weight, n_heads): [n_heads · d, H]


def _reordered(weight, n_heads):
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2)


@INTERLEAVED_TO_HALF.add(
    "not-reordered",
    "The rows come back in the order in which they came.",
    "Which row stands second in your result, and which should?",
    "Which of your lines moves a row? A reshape there and a reshape back does not.",
    "In every head the rows ::2, then the rows 1::2; with axes (n_heads, -1, 2) that is .transpose(1, 2).",
)
def _(weight, n_heads):
    return weight * 1


@INTERLEAVED_TO_HALF.add(
    "way-back",
    "It goes the other way: from half-split to interleaved.",
    "Which two rows are a pair in the weight that comes in: neighbours, or rows half a head apart?",
    "The last axis runs fastest. As the rows come in, is that the member or the pair?",
    "unflatten into (n_heads, -1, 2), in this order: pairs, then their two members.",
)
def _(weight, n_heads):
    return weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "heads-ignored",
    "It reorders all rows as if they were one head: rows move from head to head.",
    "Of which head are the first rows of your result?",
    "Two heads of four: rows 0 to 3 are the first head, and have to stay in it.",
    "Split off the heads first, by weight.chunk(n_heads) or unflatten(0, (n_heads, -1)); then reorder inside "
    "each of them.",
)
def _(weight, n_heads):
    return torch.cat((weight[::2], weight[1::2]))


@INTERLEAVED_TO_HALF.add(
    "odds-first",
    "In every head the odd rows come first.",
    "Row 0 is the first member of the first pair. Where does it belong?",
    "For d = 6 the order is 0, 2, 4, 1, 3, 5. What is yours?",
    "First all first members, then all second members.",
)
def _(weight, n_heads):
    return _reordered(weight, n_heads).flip(1).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "second-half-reversed",
    "The second half of every head is in reversed order.",
    "Rows i and i + d/2 are to be a pair. Which row stands half a head after row 0 of your result?",
    "For d = 6 the order is 0, 2, 4, 1, 3, 5. What is yours?",
    "First the rows ::2 of a head, then its rows 1::2, both upwards.",
)
def _(weight, n_heads):
    first, second = _reordered(weight, n_heads).unbind(1)
    return torch.stack((first, second.flip(1)), dim=1).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "rows-negated",
    "The odd rows come first, and with a minus: that is rotate_half, a turn and not an order.",
    "Should any number of the weight change?",
    "Reordering moves rows and leaves what stands in them. Which of your lines changes a number?",
    "First the rows ::2 of a head, then its rows 1::2, with no minus.",
)
def _(weight, n_heads):
    first, second = _reordered(weight, n_heads).unbind(1)
    return torch.stack((-second, first), dim=1).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "heads-exchanged-with-pairs",
    "The axis of the heads changes places with that of the pairs.",
    "With one head only, what does your transpose change?",
    "Axes 0, 1, 2 are heads, pairs, members. Which two have to change places?",
    "Pairs and members: .transpose(1, 2).",
)
def _(weight, n_heads):
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(0, 1).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "heads-exchanged-with-members",
    "The axis of the heads changes places with that of the members.",
    "Of which head are the first rows of your result?",
    "Axes 0, 1, 2 are heads, pairs, members. Which two have to change places?",
    "Pairs and members: .transpose(1, 2).",
)
def _(weight, n_heads):
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(0, 2).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "heads-run-fastest",
    "It takes the rows for all heads of feature 0, then all heads of feature 1.",
    "Which rows belong to the first head?",
    "Feature j of head n is row n·d + j: a head is one block of rows.",
    "The heads are the first of the three axes: unflatten(0, (n_heads, -1, 2)).",
)
def _(weight, n_heads):
    return weight.unflatten(0, (-1, 2, n_heads)).transpose(0, 1).flatten(0, 2)


@INTERLEAVED_TO_HALF.also("heads-run-fastest")
def _(weight, n_heads):
    return weight.unflatten(0, (-1, 2, n_heads)).permute(2, 1, 0, 3).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "heads-after-pairs",
    "It splits the rows with the pairs before the heads: [pairs, heads, members].",
    "Which three axes do you make of the rows, and which of them should run slowest?",
    "The first axis of a split runs slowest: its entry 0 is a block of rows, from row 0 on. A head is such a "
    "block.",
    "weight.unflatten(0, (n_heads, -1, 2)): heads, pairs, members.",
    on="two heads of six",
)
def _(weight, n_heads):
    return weight.unflatten(0, (-1, n_heads, 2)).transpose(1, 2).flatten(0, 2)


@INTERLEAVED_TO_HALF.also("heads-after-pairs")
def _(weight, n_heads):
    return weight.unflatten(0, (-1, n_heads, 2)).permute(1, 2, 0, 3).flatten(0, 2)


@INTERLEAVED_TO_HALF.also("heads-after-pairs")
def _(weight, n_heads):
    return weight.unflatten(0, (-1, n_heads, 2)).transpose(0, 2).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "head-size-halved",
    "It takes half of a head for a head.",
    "How many rows does one head have, if there are n_heads heads?",
    "d is a number of rows, d/2 a number of pairs. Which of the two do you cut by?",
    "d = len(weight) // n_heads.",
)
def _(weight, n_heads):
    blocks = weight.split(len(weight) // n_heads // 2)
    return torch.cat([torch.cat((block[::2], block[1::2])) for block in blocks])


@INTERLEAVED_TO_HALF.add(
    "head-size-from-columns",
    "It takes the number of columns for n_heads · d: right for a square weight only.",
    "weight is [n_heads · d, H]. Which of the two sizes does d come from?",
    "`weight.shape[1]` is H, the number of features of a token.",
    "d = weight.shape[0] // n_heads.",
)
def _(weight, n_heads):
    d = weight.shape[1] // n_heads
    order = [n * d + i for n in range(n_heads) for i in [*range(0, d, 2), *range(1, d, 2)]]
    return weight[order]


@INTERLEAVED_TO_HALF.add(
    "offset-forgotten",
    "Every head gets the rows of the first one.",
    "Which rows belong to the second head?",
    "Feature j of head n is row n·d + j. Where is n in your indices?",
    "Add n·d to the order of head n; or index inside unflatten(0, (n_heads, -1)).",
)
def _(weight, n_heads):
    return _reordered(weight, n_heads).flatten(1, 2)[:1].repeat(n_heads, 1, 1).flatten(0, 1)


@INTERLEAVED_TO_HALF.add(
    "first-head-only",
    "Only the first head is reordered.",
    "What happened to the rows of the second head?",
    "All heads have pairs, and all have to be put in the new order.",
    "The same order inside every head: unflatten(0, (n_heads, -1, 2)).",
)
def _(weight, n_heads):
    first = _reordered(weight, n_heads).flatten(1, 2)[0]
    return torch.cat((first, weight[len(first) :]))


@INTERLEAVED_TO_HALF.add(
    "first-head-returned",
    "Only the first head comes back.",
    "How many rows came in, and how many came back?",
    "Your order has the rows of one head. How many heads are there?",
    "Head n has the rows n·d to (n + 1)·d: use the order in each of weight.chunk(n_heads), then cat.",
)
def _(weight, n_heads):
    return _reordered(weight, n_heads).flatten(1, 2)[0]


@INTERLEAVED_TO_HALF.add(
    "updated-too-early",
    "Rows are overwritten before they have been read.",
    "When your second row is read, what stands in its place by then?",
    "A line such as `out = weight` gives the same tensor a second name. Where do you write, and where do "
    "you read?",
    "Write into a new tensor: out = torch.empty_like(weight), or out = weight.clone().",
)
def _(weight, n_heads):
    out = weight.clone()
    for head in out.chunk(n_heads):
        for i in range(len(head) // 2):
            head[i] = head[2 * i]
            head[len(head) // 2 + i] = head[2 * i + 1]
    return out


@INTERLEAVED_TO_HALF.also("updated-too-early")
def _(weight, n_heads):
    out = weight.clone()
    for head in out.chunk(n_heads):
        head[: len(head) // 2] = head[::2].clone()
        head[len(head) // 2 :] = head[1::2].clone()
    return out


@INTERLEAVED_TO_HALF.also("updated-too-early")
def _(weight, n_heads):
    out = weight.clone()
    for head in out.chunk(n_heads):
        head[: len(head) // 2] = head[::2]
        head[len(head) // 2 :] = head[1::2]
    return out


@INTERLEAVED_TO_HALF.also("updated-too-early")
def _(weight, n_heads):
    out = weight.clone()
    for head in out.chunk(n_heads):
        for j, row in enumerate([*range(0, len(head), 2), *range(1, len(head), 2)]):
            head[j] = head[row]
    return out


@INTERLEAVED_TO_HALF.add(
    "order-hard-coded",
    "The order 0, 2, 4, 1, 3, 5 is written into the code: right for a head of six only.",
    "What is the order for d = 4, and for d = 8?",
    "Look for a list of numbers in your code.",
    "d = len(weight) // n_heads, and the order is [*range(0, d, 2), *range(1, d, 2)].",
)
def _(weight, n_heads):
    return weight[[0, 2, 4, 1, 3, 5]]


@INTERLEAVED_TO_HALF.also("order-hard-coded")
def _(weight, n_heads):
    return weight.unflatten(0, (n_heads, -1))[:, [0, 2, 4, 1, 3, 5]].flatten(0, 1)


@INTERLEAVED_TO_HALF.also("order-hard-coded")
def _(weight, n_heads):
    d, order = len(weight) // n_heads, torch.tensor([0, 2, 4, 1, 3, 5])
    return torch.cat([weight[n * d + order] for n in range(n_heads)])


@INTERLEAVED_TO_HALF.also("order-hard-coded")
def _(weight, n_heads):
    order = torch.tensor([0, 2, 4, 1, 3, 5])
    return torch.cat([weight[6 * n + order] for n in range(n_heads)])


@INTERLEAVED_TO_HALF.add(
    "heads-of-six",
    "It takes every head for one of six rows.",
    "How many rows does one head have, if there are n_heads heads?",
    "Look for a 6 or a 3 in your code.",
    "d is the number of rows divided by n_heads; -1 in unflatten finds it.",
)
def _(weight, n_heads):
    return weight.unflatten(0, (-1, 3, 2)).transpose(1, 2).flatten(0, 2)


@INTERLEAVED_TO_HALF.add(
    "columns-reordered",
    "It reorders the columns, and the features of a query are the rows.",
    "Which axis of W_q [n_heads·d, H] makes the features of a query?",
    "A column belongs to a feature of the token that comes in. Which axis did you work on?",
    "Axis 0: weight.unflatten(0, (n_heads, -1, 2)).",
)
def _(weight, n_heads):
    return weight.unflatten(1, (n_heads, -1, 2)).transpose(2, 3).flatten(1)


@INTERLEAVED_TO_HALF.add(
    "not-joined",
    "The rows are in the right order and still lie on several axes.",
    "Which shape came in, and which one came back?",
    "What unflatten has taken apart has to be put together again.",
    ".flatten(0, 2) joins the first three axes.",
)
def _(weight, n_heads):
    return _reordered(weight, n_heads)


@INTERLEAVED_TO_HALF.also("not-joined")
def _(weight, n_heads):
    return _reordered(weight, n_heads).flatten(1, 2)


@INTERLEAVED_TO_HALF.also("not-joined")
def _(weight, n_heads):
    return _reordered(weight, n_heads).flatten(0, 1)


@INTERLEAVED_TO_HALF.add(
    "left-in-fp32",
    "It fills a new tensor, and that is in fp32 whatever comes in.",
    "Which dtype came in, and which one came back?",
    "Which dtype does a tensor have that you make by its shape alone?",
    "torch.empty_like(weight) has the dtype of weight.",
)
def _(weight, n_heads):
    return _reordered(weight, n_heads).flatten(0, 2).float()


# one_speed: an answer, the position


def _answer(position):
    return lambda: torch.tensor(position).double()


ONE_SPEED.add(
    "another-turn",
    "That one is close to a number of full turns. There is one that is closer.",
    "A turn is 6.28 radians. After how many turns is the total closest to a whole number?",
    "Write down 6.28, 12.57, 18.85, … up to 50, and look at what follows the point.",
    "Of the multiples of 2π up to 50, the seventh is closest to a whole number.",
)(_answer(6))

for _position in (13, 19, 25, 31, 38, 50):
    ONE_SPEED.also("another-turn")(_answer(_position))

ONE_SPEED.add(
    "index-for-position",
    "That one is a whole radian away from a number of full turns. It may be an index, and not a position.",
    "Does the cosine of your answer come near 1?",
    "If you took it from argmax: which position has index 0 in torch.arange(1, 51)?",
    "Look up the position that stands at that index.",
)(_answer(43))

ONE_SPEED.add(
    "half-turns",
    "Position 22 has made three and a half turns: it points the other way.",
    "Three turns are 18.85 radians. How much of a turn is left of 22, and where does the hand point?",
    "22 / 7 is close to π, not to 2π. Which multiple of π is a number of full turns?",
    "Twice as far is a number of full turns.",
)(_answer(22))

ONE_SPEED.add(
    "nearest",
    "Position 1 is one radian away. Some positions come round almost to where they began.",
    "Where does a hand stand after a full turn?",
    "All pairs have one speed here, and a full turn takes 6.28 positions.",
    "Look for a whole number that is close to a multiple of 2π.",
)(_answer(1))


# unfinished_pairs(head_dim, base, length): how many pairs make no full turn


def _steps(head_dim, base):
    return base ** -_exponents(head_dim).double()


@UNFINISHED_PAIRS.add(
    "finished",
    "It counts the pairs that do make a full turn.",
    "Which pairs do not come round within `length`: the fast ones or the slow ones?",
    "A slow pair needs many positions for a turn. Are those more than `length`, or fewer?",
    "Count where the positions per turn are greater than `length`.",
)
def _(head_dim, base, length):
    return int((2 * math.pi / _steps(head_dim, base) <= length).sum())


@UNFINISHED_PAIRS.add(
    "always-0",
    "0 comes back, whatever comes in.",
    "Is a slow pair's θ large or small, and is its turn long or short?",
    "For head_dim 4 and base 10000 print what you hold against `length`. Is any of it above 100?",
    "A full turn is 2π radians, and θ is radians per position: it takes 2π / θ positions, not 2π · θ.",
)
def _(head_dim, base, length):
    return int((2 * math.pi * _steps(head_dim, base) > length).sum())


@UNFINISHED_PAIRS.add(
    "always-all",
    "Every pair is counted, whatever comes in.",
    "Is a fast pair's θ large or small, and is its turn long or short?",
    "For head_dim 4 and base 10000 print what you hold against `length`. Is any of it above 100?",
    "A full turn is 2π radians, and θ is radians per position: it takes 2π / θ positions, not 2π · θ.",
)
def _(head_dim, base, length):
    return int((2 * math.pi * _steps(head_dim, base) < length).sum())


@UNFINISHED_PAIRS.add(
    "one-radian",
    "It asks for one radian, and not for a full turn.",
    "How many radians is a full turn?",
    "1 / θ positions make one radian. How many make a full turn?",
    "A full turn takes 2π / θ positions.",
)
def _(head_dim, base, length):
    return int((1 / _steps(head_dim, base) > length).sum())


@UNFINISHED_PAIRS.add(
    "half-a-turn",
    "It asks for half a turn.",
    "How many radians is a full turn?",
    "π radians lead to the opposite side. How many lead back to where the hand began?",
    "A full turn takes 2π / θ positions.",
)
def _(head_dim, base, length):
    return int((math.pi / _steps(head_dim, base) > length).sum())


@UNFINISHED_PAIRS.add(
    "degrees",
    "It takes the steps for degrees.",
    "In which unit are the steps that inv_freq gives?",
    "A full turn is 360 degrees, and in radians?",
    "A full turn takes 2π / θ positions.",
)
def _(head_dim, base, length):
    return int((360 / _steps(head_dim, base) > length).sum())


@UNFINISHED_PAIRS.add(
    "base-500000",
    "`base` is fixed at 500000, the one of Llama-3.",
    "What should change when the base does?",
    "Look for 500000, or for config.rope_theta, in your code.",
    "Give the argument `base` to inv_freq.",
)
def _(head_dim, base, length):
    return int((2 * math.pi / _steps(head_dim, 500000.0) > length).sum())


@UNFINISHED_PAIRS.add(
    "base-10000",
    "`base` is fixed at 10000, the one of Llama-2.",
    "What should change when the base does?",
    "Look for 10000 in your code, or for a call of inv_freq without a base.",
    "Give the argument `base` to inv_freq.",
)
def _(head_dim, base, length):
    return int((2 * math.pi / _steps(head_dim, 10000.0) > length).sum())


@UNFINISHED_PAIRS.add(
    "length-8192",
    "`length` is fixed at 8192, the one of Llama-3.",
    "What should change when a model was trained on shorter texts?",
    "Look for 8192, or for config.max_position_embeddings, in your code.",
    "Compare with the argument `length`.",
)
def _(head_dim, base, length):
    return int((2 * math.pi / _steps(head_dim, base) > 8192).sum())


@UNFINISHED_PAIRS.add(
    "features-counted",
    "It counts features: twice as many as pairs.",
    "How many pairs has a head of d features?",
    "inv_freq has one entry for each pair. Where does yours double?",
    "Count the entries of inv_freq(head_dim, base), each once.",
)
def _(head_dim, base, length):
    return 2 * int((2 * math.pi / _steps(head_dim, base) > length).sum())


@UNFINISHED_PAIRS.add(
    "share",
    "It gives the share of such pairs, not their number.",
    "Should the answer for d = 128 be a whole number?",
    "A mean of True and False is a share. Which method counts instead?",
    "Use sum in place of mean.",
)
def _(head_dim, base, length):
    return (2 * math.pi / _steps(head_dim, base) > length).double().mean().item()
