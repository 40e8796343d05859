"""Mistakes in SiLU, in its slope, and in the answers of lesson 5."""

import math

import torch
import torch.nn.functional as F

from ..mistake import Catalogue

SILU = Catalogue()
SILU_GRAD = Catalogue()
SILU_SUM = Catalogue()
RESIDUAL_GRADIENT = Catalogue()
REPAIR_SIGMOID = Catalogue()


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _rounded_once(f):
    """f in at least fp32, and back to the dtype of x."""
    return lambda x: f(_wide(x)).to(x.dtype)


def _both(catalogue, id, f):
    """Two ways more: f rounded once, and f as it stands, in the dtype of x."""
    catalogue.also(id)(_rounded_once(f))
    catalogue.also(id)(f)


# silu: another function.


@SILU.add(
    "switch-alone",
    "It gives back the switch σ(x) alone: nothing that comes out is above 1, or negative.",
    "What should come out for a large x: 1, or x?",
    "SiLU is a number times its switch. Where is the number in your last line?",
    "Multiply the sigmoid by x.",
)
@_rounded_once
def _(x):
    return torch.sigmoid(x)


_both(SILU, "switch-alone", lambda x: 1 / (1 + torch.exp(-x)))


@SILU.add(
    "switch-turned-around",
    "The switch is turned around: it is open on the left and closed on the right.",
    "For a large positive x, should the switch be open or closed?",
    "Look at the sign in front of x inside exp, or inside the sigmoid.",
    "σ(x) is 1 / (1 + exp(−x)), with a minus; torch.sigmoid takes x itself.",
)
@_rounded_once
def _(x):
    return x * torch.sigmoid(-x)


SILU.also("switch-turned-around")(lambda x: x * torch.sigmoid(-x))
_both(SILU, "switch-turned-around", lambda x: x / (1 + torch.exp(x)))
_both(SILU, "switch-turned-around", lambda x: x * (1 - torch.sigmoid(x)))


@SILU.add(
    "argument-negated",
    "It gives silu(−x): the curve is turned around, left for right.",
    "What should come out for a large positive x?",
    "Look for every −x in your code. Which of them does the formula have?",
    "Only exp takes −x: the number in front is x, and torch.sigmoid takes x.",
)
@_rounded_once
def _(x):
    return F.silu(-x)


SILU.also("argument-negated")(lambda x: -x * torch.sigmoid(-x))


@SILU.add(
    "output-negated",
    "The curve is upside down: it gives −x · σ(x).",
    "Which sign should come out for a large positive x?",
    "Look for every minus in your code. Which of them does the formula have?",
    "x · σ(x), with no minus in front: a minus belongs inside exp, and nowhere else.",
)
@_rounded_once
def _(x):
    return -F.silu(x)


SILU.also("output-negated")(lambda x: -x * torch.sigmoid(x))


@SILU.add(
    "sign-lost",
    "The sign of x is lost in front of the switch: it gives |x| · σ(x).",
    "Which sign should come out for −1?",
    "The switch is never negative. Where does the minus of silu(−1) come from?",
    "Multiply the switch by x itself, without abs.",
)
@_rounded_once
def _(x):
    return x.abs() * torch.sigmoid(x)


@SILU.add(
    "e-rounded",
    "The base of the exponential is a rounded e.",
    "How many digits of e does your function know?",
    "Look for a number like 2.718 in your code.",
    "torch.exp(-x), or math.e with all its digits; torch.sigmoid needs neither.",
)
def _(x):
    return x / (1 + 2.718**-x)


for _e in (2.7183, 2.71828, 2.72, 2.7):
    SILU.also("e-rounded")(lambda x, e=_e: x / (1 + e**-x))


@SILU.add(
    "minus-for-plus",
    "The denominator is 1 − exp(−x), with a minus: it is 0 at x = 0.",
    "How large is your denominator at x = 0, and how open should the switch be there?",
    "At 0 the switch is ½. Which denominator gives that?",
    "1 + exp(−x), with a plus.",
)
@_rounded_once
def _(x):
    return x / (1 - torch.exp(-x))


SILU.also("minus-for-plus")(lambda x: x / (1 - torch.exp(-x)))


@SILU.add(
    "brackets-lost",
    "It computes x / 1 + exp(−x): without brackets only the 1 is the denominator.",
    "What does Python do first in `a / b + c`?",
    "At 0 your function gives 1. Which part of the line does that come from?",
    "Set brackets around the whole denominator: (1 + exp(−x)).",
)
@_rounded_once
def _(x):
    return x / 1 + torch.exp(-x)


SILU.also("brackets-lost")(lambda x: x / 1 + torch.exp(-x))


@SILU.add(
    "one-forgotten",
    "The 1 in the denominator is missing: the switch is exp(x), and has no upper end.",
    "How large can your switch become?",
    "A switch ends at 1. What keeps 1/(…) below 1 when exp(−x) is nearly 0?",
    "The denominator is 1 + exp(−x).",
)
@_rounded_once
def _(x):
    return x / torch.exp(-x)


_both(SILU, "one-forgotten", lambda x: x * torch.exp(x))


@SILU.add(
    "x-twice",
    "x is multiplied in twice: it gives x² · σ(x).",
    "How often does x stand in front of the switch?",
    "At 2 SiLU is below 2. What is yours?",
    "One x, one switch: x · σ(x). If you call F.silu, it has its x already.",
)
@_rounded_once
def _(x):
    return x * x * torch.sigmoid(x)


SILU.also("x-twice")(lambda x: x * F.silu(x))


@SILU.add(
    "switch-added",
    "The switch is added to x, not multiplied.",
    "What does a closed switch leave of x?",
    "With the switch at 0 nothing may pass. Is that so for your last line?",
    "x · σ(x): a product.",
)
@_rounded_once
def _(x):
    return x + torch.sigmoid(x)


SILU.also("switch-added")(lambda x: x + torch.sigmoid(x))


@SILU.add(
    "switch-sees-square",
    "The switch is σ(x²): it never closes, because x² is never negative.",
    "A number times its own switch: which x does the switch see?",
    "Compare your switch at −2 and at 2.",
    "The sigmoid is taken of x, then comes the product.",
)
@_rounded_once
def _(x):
    return x * torch.sigmoid(x * x)


@SILU.add(
    "applied-twice",
    "SiLU is applied twice: its output goes through it again.",
    "How many switches does one number pass?",
    "Look at what you give to the sigmoid, or to F.silu: is that still x?",
    "Compute x · σ(x) once and return it.",
)
@_rounded_once
def _(x):
    return F.silu(F.silu(x))


@SILU.also("applied-twice")
def _(x):
    return F.silu(F.silu(x))


@SILU.add(
    "sigmoid-of-silu",
    "The switch sees x · σ(x), not x.",
    "A number times its own switch: which x does the switch see?",
    "Did you overwrite x before you used it a second time?",
    "Both factors are made from the same x: x · σ(x).",
)
@_rounded_once
def _(x):
    return x * torch.sigmoid(F.silu(x))


@SILU.add(
    "tanh-for-switch",
    "The switch is tanh(x): it goes from −1 to 1, so on the left it turns the sign around.",
    "Between which two numbers does a switch move?",
    "tanh(x) = 2σ(2x) − 1. What is it far on the left?",
    "Use the sigmoid in place of tanh.",
)
@_rounded_once
def _(x):
    return x * torch.tanh(x)


SILU.also("tanh-for-switch")(lambda x: x * torch.tanh(x))


@SILU.add(
    "switch-twice-as-steep",
    "The switch is σ(2x), twice as steep: that is Swish with β = 2.",
    "Which number goes into your switch when x is 1?",
    "Compare your switch at 1 with the one printed in The idea. Where is the right one as open as yours?",
    "The sigmoid is taken of x itself. Written with tanh it is ½ (1 + tanh(x / 2)), with a half inside.",
)
@_rounded_once
def _(x):
    return x * torch.sigmoid(2 * x)


_both(SILU, "switch-twice-as-steep", lambda x: x * 0.5 * (1 + torch.tanh(x)))


@SILU.add(
    "gelu",
    "This is GELU: its switch is Φ(x), not the sigmoid.",
    "How deep is the dip of your curve, and which curve in the picture dips that far?",
    "GELU and SiLU differ in their switch. Which of the two did you write?",
    "Replace Φ (erf, or F.gelu) by the sigmoid.",
)
@_rounded_once
def _(x):
    return F.gelu(x)


_both(SILU, "gelu", lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))))


@SILU.add(
    "gelu-approximated",
    "This is GELU in one of its approximations: with tanh, or as x · σ(1.702x).",
    "How deep is the dip of your curve, and which curve in the picture dips that far?",
    "Look for the constants 1.702, 0.044715 or √(2/π). SiLU has none.",
    "The switch is the sigmoid of x itself, with no factor.",
)
@_rounded_once
def _(x):
    return F.gelu(x, approximate="tanh")


_both(SILU, "gelu-approximated", lambda x: x * torch.sigmoid(1.702 * x))


@SILU.add(
    "relu",
    "This is ReLU: it is 0 on the whole left side.",
    "What should come out for −1?",
    "silu(−1) is −0.2689. Which factor stands beside −1 there?",
    "Multiply x by its sigmoid, on both sides.",
)
def _(x):
    return torch.relu(x)


@SILU.add(
    "cut-off-below-0",
    "Left of 0 everything is cut off: the dip is lost.",
    "What should come out for −1?",
    "SiLU has no sides: one formula holds left and right of 0.",
    "x · σ(x) everywhere, without where, relu or clamp.",
)
@_rounded_once
def _(x):
    return torch.where(x > 0, x * torch.sigmoid(x), 0)


_both(SILU, "cut-off-below-0", lambda x: torch.relu(F.silu(x)))
_both(SILU, "cut-off-below-0", lambda x: torch.relu(x) * torch.sigmoid(x))


@SILU.add(
    "switch-sees-size",
    "The switch sees |x|: it never closes, and lets −1000 pass as it lets 1000 pass.",
    "A number times its own switch: which x does the switch see?",
    "Compare your switch at −2 and at 2. What should the two sum to?",
    "exp(−|x|) needs a second form for the left side, small / (1 + small); torch.sigmoid(x) needs neither.",
)
@_rounded_once
def _(x):
    return x / (1 + torch.exp(-x.abs()))


SILU.also("switch-sees-size")(lambda x: x / (1 + torch.exp(-x.abs())))
_both(SILU, "switch-sees-size", lambda x: x * torch.sigmoid(x.abs()))


@SILU.add(
    "leaky-relu",
    "This is leaky ReLU: two straight lines with a corner at 0.",
    "What should come out for 1: is it 1?",
    "SiLU has no corner: one formula holds on both sides.",
    "Multiply x by its sigmoid, on both sides.",
)
@_rounded_once
def _(x):
    return torch.where(x > 0, x, 0.01 * x)


@SILU.add(
    "softplus",
    "This is softplus, log(1 + exp(x)): it is never negative.",
    "What should come out for −1, and at 0?",
    "The slope of softplus is the sigmoid. Which of the two goes into SiLU?",
    "x times the sigmoid: no logarithm.",
)
@_rounded_once
def _(x):
    return F.softplus(x)


@SILU.also("softplus")
def _(x):
    return torch.log(1 + torch.exp(x))


@SILU.add(
    "mish",
    "This is Mish, x · tanh(softplus(x)): another curve with a dip.",
    "Which switch does the formula of SiLU have?",
    "Find SiLU in the table of the six curves. What stands beside x in its formula?",
    "x times torch.sigmoid(x).",
)
@_rounded_once
def _(x):
    return F.mish(x)


@SILU.add(
    "elu",
    "This is ELU: on the left it comes close to −1.",
    "What should come out far on the left?",
    "The names sound alike. Look at the table of the six curves again.",
    "x times torch.sigmoid(x).",
)
@_rounded_once
def _(x):
    return F.elu(x)


@SILU.add(
    "hard-swish",
    "This is the hard Swish: its switch is made of straight lines, and is closed below −3.",
    "Is your switch exactly 0 somewhere?",
    "A sigmoid comes as close to 0 and 1 as you like, and reaches neither.",
    "x times torch.sigmoid(x).",
)
@_rounded_once
def _(x):
    return F.hardswish(x)


@SILU.also("hard-swish")
@_rounded_once
def _(x):
    return x * F.hardsigmoid(x)


@SILU.add(
    "softmax-for-sigmoid",
    "It takes a softmax: the numbers share one switch between them.",
    "If one number grows, may the switch of another one close?",
    "An activation looks at each entry on its own. Which function has no axis to choose?",
    "torch.sigmoid in place of softmax.",
)
@_rounded_once
def _(x):
    return x * torch.softmax(x, -1)


SILU.also("softmax-for-sigmoid")(lambda x: x * torch.softmax(x, 0))


@SILU.add(
    "one-number-only",
    "It works for one number at a time: a tensor with more of them raises.",
    "Which of your lines needs a single number?",
    "`if`, math.exp and .item() want a single number. Which functions of torch look at each entry?",
    "torch.where(condition, a, b) in place of `if`, and torch.exp in place of math.exp.",
    on="1 and -1",
)
@_rounded_once
def _(x):
    return x / (1 + torch.exp(-x)) if x >= 0 else x * torch.exp(x) / (1 + torch.exp(x))


SILU.also("one-number-only")(
    lambda x: x / (1 + torch.exp(-x)) if x >= 0 else x * torch.exp(x) / (1 + torch.exp(x))
)
SILU.also("one-number-only")(
    lambda x: x * (1 / (1 + torch.exp(-x)) if x >= 0 else torch.exp(x) / (1 + torch.exp(x)))
)
_both(SILU, "one-number-only", lambda x: x * torch.sigmoid(x) if x != 0 else x)
_both(SILU, "one-number-only", lambda x: x / (1 + math.exp(-x.item())))
_both(SILU, "one-number-only", lambda x: x * (1 / (1 + math.exp(-x))))
_both(SILU, "one-number-only", lambda x: torch.as_tensor(x.item() / (1 + math.exp(-x))).to(x))


# silu: the right function, with less care.


@SILU.add(
    "exp-in-16-bits",
    "exp(−x) is taken in the dtype of x: in fp16 it is infinite at −12, and the value is lost.",
    "What becomes of exp(12) in fp16?",
    "fp16 ends at 65504. In which dtype does each step work, and does an exp see a large positive number?",
    "Go up to at least fp32 first, and use torch.sigmoid there: it never takes exp of a large positive "
    "number.",
    on="-12 in fp16",
)
def _(x):
    return x / (1 + torch.exp(-x))


@SILU.also("exp-in-16-bits")
def _(x):
    return x * (1 / (1 + torch.exp(-x)))


@SILU.add(
    "slope-nan",
    "Every value is right, but far on the left the slope is NaN.",
    "exp of which number is infinite in fp32? What does autograd multiply there?",
    "Infinity times 0 is NaN. So exp must not see a large positive number. How does Build see to that?",
    "torch.sigmoid is stable. By hand: the exp of torch.where(z >= 0, -z, z), used in both branches.",
)
@_rounded_once
def _(x):
    return x / (1 + torch.exp(-x))


@SILU.also("slope-nan")
@_rounded_once
def _(x):
    return x * (1 / (1 + torch.exp(-x)))


@SILU.also("slope-nan")
def _(x):
    return (x.double() / (1 + torch.exp(-x.double()))).to(x.dtype)


@SILU.also("slope-nan")
def _(x):
    return (x.double() * (1 / (1 + torch.exp(-x.double())))).to(x.dtype)


@SILU.add(
    "rounded-twice",
    "In 16 bits it rounds more than once: after the switch, and again after the product.",
    "How often does a 16-bit result get rounded in your function?",
    "In bf16, sigmoid and product each round what they return. Which dtype would keep the digits in between?",
    "z = x.to(torch.promote_types(x.dtype, torch.float32)) first, and .to(x.dtype) last.",
    on="three numbers in bf16",
)
def _(x):
    return x * torch.sigmoid(x)


@SILU.also("rounded-twice")
def _(x):
    small = torch.exp(torch.where(x >= 0, -x, x))
    return x * torch.where(x >= 0, 1 / (1 + small), small / (1 + small))


@SILU.also("rounded-twice")
def _(x):
    small = torch.exp(-x.abs())
    return torch.where(x >= 0, x / (1 + small), x * small / (1 + small))


@SILU.also("rounded-twice")
def _(x):
    return x * torch.exp(F.logsigmoid(x))


@SILU.also("rounded-twice")
def _(x):
    return torch.stack([row * torch.sigmoid(row) for row in x])  # and raises without axes


@SILU.add(
    "where-on-both-branches",
    "The values are right; the slope is NaN far from 0, since torch.where computes both branches.",
    "torch.where computes both of its branches. What is exp in the one that is not chosen?",
    "On the way back the other branch gets the gradient 0, and 0 times infinity is NaN.",
    "Make the argument of exp harmless first: small = exp(where(z >= 0, -z, z)), for both branches.",
    on="-200",
)
@_rounded_once
def _(x):
    return x * torch.where(x >= 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))


SILU.also("where-on-both-branches")(
    lambda x: x * torch.where(x >= 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))
)
_both(
    SILU, "where-on-both-branches",
    lambda x: torch.where(x >= 0, x / (1 + torch.exp(-x)), x * torch.exp(x) / (1 + torch.exp(x))),
)  # fmt: skip


@SILU.add(
    "one-branch-for-all",
    "One branch is chosen for the whole tensor: large numbers of both signs have to share it.",
    "How many decisions does your function make for a tensor of two numbers?",
    "mean, sum, all and any make one number of many. Which form does each entry need?",
    "torch.where decides entry by entry; torch.sigmoid needs no decision.",
    on="both signs",
)
@_rounded_once
def _(x):
    return x / (1 + torch.exp(-x)) if x.mean() >= 0 else x * torch.exp(x) / (1 + torch.exp(x))


def _one_branch(decide):
    return lambda x: x * (1 / (1 + torch.exp(-x)) if decide(x) else torch.exp(x) / (1 + torch.exp(x)))


for _decide in (
    lambda x: x.mean() >= 0,
    lambda x: (x >= 0).all(),
    lambda x: x.flatten()[0] >= 0,
):
    _both(SILU, "one-branch-for-all", _one_branch(_decide))


@SILU.add(
    "clamped",
    "Something is clamped: beyond the limit the numbers are those of the limit, not those of x.",
    "What should come out at −30 and at 1000?",
    "The clamp keeps exp finite, and takes digits or x itself with it. Does torch.sigmoid need one?",
    "No clamp: torch.sigmoid(z) is stable for every z. By hand, exp sees where(z >= 0, -z, z).",
)
@_rounded_once
def _(x):
    x = x.clamp(-20, 20)
    return x / (1 + torch.exp(-x))


for _limit in (5, 10, 15, 20, 30, 50, 60, 80, 88, 100):
    _both(SILU, "clamped", lambda x, a=_limit: F.silu(x.clamp(-a, a)))
    SILU.also("clamped")(_rounded_once(lambda x, a=_limit: x.clamp(-a, a) / (1 + torch.exp(-x.clamp(-a, a)))))
for _limit in (5, 10, 15, 20):
    SILU.also("clamped")(_rounded_once(lambda x, a=_limit: F.silu(x.clamp(min=-a))))
    SILU.also("clamped")(_rounded_once(lambda x, a=_limit: x * torch.sigmoid(x.clamp(-a, a))))
    SILU.also("clamped")(_rounded_once(lambda x, a=_limit: x * torch.sigmoid(x.clamp(min=-a))))


@SILU.add(
    "exp-over-exp",
    "exp(x) stands above and below: far on the right infinity is divided by infinity.",
    "What are the numerator and the denominator of your switch at 1000?",
    "Infinity divided by infinity is NaN. Your form is good where x is negative.",
    "For x ≥ 0 use 1 / (1 + exp(−x)), or let torch.sigmoid choose.",
    on="1000",
)
@_rounded_once
def _(x):
    return x * torch.exp(x) / (1 + torch.exp(x))


SILU.also("exp-over-exp")(lambda x: x * torch.exp(x) / (1 + torch.exp(x)))
_both(SILU, "exp-over-exp", lambda x: x * (torch.exp(x) / (1 + torch.exp(x))))
_both(SILU, "exp-over-exp", lambda x: x * torch.exp(x) * (1 / (1 + torch.exp(x))))


@SILU.add(
    "digits-lost",
    "Far on the left the switch is the difference of two numbers that are almost equal: what is left is "
    "rounding.",
    "At −16, which two numbers does your function subtract, and how many digits do they share?",
    "In fp32, 1 − σ(16) is only two of the steps between numbers just below 1, and 1 + tanh(−8) is four.",
    "Compute σ(x) directly, not as 1 − σ(−x) or from a tanh.",
    on="far left",
)
@_rounded_once
def _(x):
    return x * (1 - torch.sigmoid(-x))


SILU.also("digits-lost")(lambda x: x * (1 - torch.sigmoid(-x)))
_both(SILU, "digits-lost", lambda x: 0.5 * x * (1 + torch.tanh(0.5 * x)))
_both(SILU, "digits-lost", lambda x: x - x * torch.sigmoid(-x))
_both(SILU, "digits-lost", lambda x: x - x / (1 + torch.exp(x)))


@SILU.add(
    "left-in-fp32",
    "The output stays in fp32, whatever came in.",
    "Which dtype does the next layer expect?",
    "The way up to fp32 needs a way back. What was the dtype of x?",
    ".to(x.dtype) around the product.",
)
def _(x):
    return _wide(x) * torch.sigmoid(_wide(x))


@SILU.also("left-in-fp32")
def _(x):
    return x.float() * torch.sigmoid(x.float())


@SILU.also("left-in-fp32")
def _(x):
    return x * torch.sigmoid(x.float())


@SILU.add(
    "brackets-end-early",
    "Only the switch goes back to the dtype of x: the product is still in fp32.",
    "Where do your brackets end?",
    "`.to(…)` turns what stands right before it. Is that the product, or one of its factors?",
    "(z * torch.sigmoid(z)).to(x.dtype): brackets around the product.",
)
def _(x):
    return _wide(x) * torch.sigmoid(_wide(x)).to(x.dtype)


@SILU.also("brackets-end-early")
def _(x):
    return x.float() * torch.sigmoid(x.float()).to(x.dtype)


@SILU.add(
    "through-fp32",
    "A float64 input goes through fp32, and loses half of its digits.",
    "Does float64 stay float64 on the way?",
    "`.float()` is a step up for 16 bits, and a step down for 64. Which dtype should a float64 input work "
    "in?",
    "torch.promote_types(x.dtype, torch.float32) in place of a fixed torch.float32.",
)
def _(x):
    return (x.float() * torch.sigmoid(x.float())).to(x.dtype)


@SILU.also("through-fp32")
def _(x):
    return (x * torch.sigmoid(x.float())).to(x.dtype)


@SILU.add(
    "through-float16",
    "It works in 16 bits inside, whatever came in.",
    "Which is the narrowest dtype on the way?",
    "Look for .half(), .bfloat16() or torch.float16 in your code.",
    "Work in torch.promote_types(x.dtype, torch.float32).",
)
def _(x):
    return F.silu(x.half()).to(x.dtype)


@SILU.also("through-float16")
def _(x):
    return F.silu(x.bfloat16()).to(x.dtype)


@SILU.add(
    "switch-detached",
    "The values are right, but the switch is cut from the gradient: autograd takes it for a constant.",
    "The slope of a product has two terms. Which one is lost?",
    "Look for detach, no_grad, .data or .item() around the switch.",
    "Let autograd see every step from x to the output, the sigmoid too.",
)
@_rounded_once
def _(x):
    return x * torch.sigmoid(x.detach())


@SILU.also("switch-detached")
def _(x):
    return x * torch.sigmoid(x.detach())


@SILU.add(
    "number-detached",
    "The values are right, but the factor x is cut from the gradient: only the switch has one.",
    "The slope of a product has two terms. Which one is lost?",
    "Look for detach, no_grad, .data or .item() around the factor x.",
    "Let autograd see both factors.",
)
@_rounded_once
def _(x):
    return x.detach() * torch.sigmoid(x)


# silu_grad


def _slope(f):
    """The slope by autograd, as people write it."""

    def grad(x):
        x = x.detach().clone().requires_grad_()
        return torch.autograd.grad(f(x).sum(), x)[0]

    return grad


@SILU_GRAD.add(
    "second-term-missing",
    "It gives σ(x) alone: that holds the switch constant.",
    "Changing x moves the product in two ways. Which one is missing?",
    "Keep the number and change the switch: what is the slope of σ?",
    "Add x · σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    return torch.sigmoid(x)


_both(SILU_GRAD, "second-term-missing", lambda x: 1 / (1 + torch.exp(-x)))


@SILU_GRAD.add(
    "first-term-missing",
    "It gives x · σ(x) · (1 − σ(x)) alone: that holds the number constant.",
    "Changing x moves the product in two ways. Which one is missing?",
    "At 0 the slope is ½. What does your function give there?",
    "Add σ(x): keep the switch and change the number.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return x * s * (1 - s)


SILU_GRAD.also("first-term-missing")(lambda x: x * torch.sigmoid(x) * (1 - torch.sigmoid(x)))


@SILU_GRAD.add(
    "sigmoid-slope",
    "This is the slope of the sigmoid, σ(x) · (1 − σ(x)), not that of SiLU.",
    "Which function did you differentiate, the switch or the product?",
    "Far on the right SiLU runs along the line x. Which slope does a line x have, and which does yours?",
    "The product rule for x · σ(x): σ(x) + x · σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    return torch.sigmoid(x) * (1 - torch.sigmoid(x))


SILU_GRAD.also("sigmoid-slope")(lambda x: torch.sigmoid(x) * (1 - torch.sigmoid(x)))
_both(SILU_GRAD, "sigmoid-slope", _slope(torch.sigmoid))


@SILU_GRAD.add(
    "wrong-sign",
    "The second term is subtracted, not added.",
    "When x grows, does the switch open or close?",
    "The slope of σ is positive everywhere. With which sign does the product rule join its two terms?",
    "σ(x) + x · σ(x) · (1 − σ(x)), with a plus.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s * (1 - x * (1 - s))


SILU_GRAD.also("wrong-sign")(lambda x: torch.sigmoid(x) - x * torch.sigmoid(x) * (1 - torch.sigmoid(x)))


@SILU_GRAD.add(
    "sigmoid-slope-sign",
    "The slope of the switch is taken as σ(x) · (1 + σ(x)): a sign is wrong in it.",
    "How large is your slope of the switch at 0, and does it fade where the switch is open?",
    "The sigmoid's slope is ¼ at 0. What does your second factor give there?",
    "σ′(x) = σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s + x * s * (1 + s)


SILU_GRAD.also("sigmoid-slope-sign")(lambda x: torch.sigmoid(x) * (1 + x * (1 + torch.sigmoid(x))))


@SILU_GRAD.add(
    "x-missing",
    "The second term has no x: it is σ(x) · (1 − σ(x)) alone.",
    "Keep the number and change the switch. By which number is the change multiplied?",
    "At 0 the second term should vanish. Does yours?",
    "The second term is x · σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s + s * (1 - s)


SILU_GRAD.also("x-missing")(lambda x: torch.sigmoid(x) * (1 + (1 - torch.sigmoid(x))))


@SILU_GRAD.add(
    "switch-missing",
    "The second term is x · (1 − σ(x)), without the switch itself: brackets, or a factor, are lost.",
    "What is the slope of the sigmoid, and how many factors does it have?",
    "Far on the left the slope fades to 0. Does your second term?",
    "In s * (1 + z * (1 - s)) the first s multiplies both terms.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s + x * (1 - s)


SILU_GRAD.also("switch-missing")(lambda x: torch.sigmoid(x) + x * (1 - torch.sigmoid(x)))


@SILU_GRAD.add(
    "brackets-moved",
    "It computes σ(x) · (1 + x) · (1 − σ(x)): the first term is multiplied by 1 − σ(x) as well.",
    "At 0 the slope is ½. Which of your factors makes it smaller there?",
    "Two terms, and 1 − σ(x) belongs to one of them. To which do your brackets give it?",
    "s * (1 + z * (1 - s)): the bracket around 1 + … closes last.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + x) * (1 - s)


SILU_GRAD.also("brackets-moved")(lambda x: torch.sigmoid(x) * (1 + x) * (1 - torch.sigmoid(x)))


@SILU_GRAD.add(
    "brackets-lost",
    "Brackets are lost: in x · 1 − σ(x) Python multiplies x by 1, and then subtracts σ(x).",
    "What does Python do first in `a * b - c`?",
    "In the formula of the lesson a whole difference is a factor. Is it one in your line?",
    "z * (1 - s), with brackets around 1 - s.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + x * 1 - s)


SILU_GRAD.also("brackets-lost")(lambda x: torch.sigmoid(x) * (1 + x - torch.sigmoid(x)))


@SILU_GRAD.add(
    "silu-for-switch",
    "silu(x) stands where the switch σ(x) should, in every place.",
    "How open is the switch at 0, and how open is yours?",
    "The formula of the slope is made of σ(x) and x. Where does silu come in?",
    "s = torch.sigmoid(z), not F.silu(z).",
)
@_rounded_once
def _(x):
    s = F.silu(x)
    return s * (1 + x * (1 - s))


SILU_GRAD.also("silu-for-switch")(lambda x: F.silu(x) * (1 + x * (1 - F.silu(x))))
_both(SILU_GRAD, "silu-for-switch", lambda x: F.silu(x) + x * F.silu(x) * (1 - F.silu(x)))


@SILU_GRAD.add(
    "switch-for-number",
    "σ(x) stands where x should: the second term is σ(x) · σ(x) · (1 − σ(x)).",
    "The second term is 0 at x = 0. Is yours?",
    "Is the x of your last line still the one that came in?",
    "Give the switch a name of its own, s = torch.sigmoid(z), and keep z.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + s * (1 - s))


@SILU_GRAD.also("switch-for-number")
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + s * (1 - s))


@SILU_GRAD.add(
    "switch-sees-size",
    "The switch sees |x|: it never closes on the left.",
    "What should the switches of −2 and 2 sum to?",
    "exp(−|x|) is right for one side only. What is the switch on the other?",
    "s = torch.sigmoid(z). By hand: small / (1 + small) where z is negative.",
)
@_rounded_once
def _(x):
    s = 1 / (1 + torch.exp(-x.abs()))
    return s * (1 + x * (1 - s))


@SILU_GRAD.add(
    "slope-clamped",
    "The slope is clamped: SiLU's is above 1 far enough to the right, and below 0 far enough to the left.",
    "What did your prediction say about the largest slope, and what did the computation say?",
    "SiLU falls on its way down into the dip. Which sign does its slope have there?",
    "No clamp and no relu around the formula.",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return (s * (1 + x * (1 - s))).clamp(0, 1)


@SILU_GRAD.also("slope-clamped")
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return (s * (1 + x * (1 - s))).clamp(min=0)


@SILU_GRAD.also("slope-clamped")
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return (s * (1 + x * (1 - s))).clamp(max=1)


def _slope_of(x, s):
    return s * (1 + x * (1 - s))


@SILU_GRAD.add(
    "clamped",
    "x is clamped: beyond the limit the slope is that at the limit.",
    "How large should the slope be at −30?",
    "The clamp keeps exp finite, and takes x with it. Does torch.sigmoid need one?",
    "No clamp: torch.sigmoid(z) is stable for every z.",
)
@_rounded_once
def _(x):
    x = x.clamp(min=-10)
    u = torch.exp(-x)
    return (1 + u + x * u) / (1 + u) ** 2


for _limit in (5, 10, 15, 20):
    for _high in (_limit, None):
        SILU_GRAD.also("clamped")(
            _rounded_once(
                lambda x, a=_limit, b=_high: _slope_of(x.clamp(-a, b), torch.sigmoid(x.clamp(-a, b)))
            )
        )
        SILU_GRAD.also("clamped")(
            _rounded_once(lambda x, a=_limit, b=_high: _slope_of(x, torch.sigmoid(x.clamp(-a, b))))
        )


@SILU_GRAD.add(
    "digits-lost",
    "Far on the left the result is the difference of two numbers that are almost equal: what is left is "
    "rounding.",
    "At −16, which two numbers does your function subtract, and how many digits do they share?",
    "fp32 has seven digits. How many of them are left after 1 − 0.9999999?",
    "s = torch.sigmoid(z) and s * (1 + z * (1 - s)), the same on both sides.",
)
@_rounded_once
def _(x):
    right = _slope_of(x.abs(), torch.sigmoid(x.abs()))
    return torch.where(x >= 0, right, 1 - right)


_both(SILU_GRAD, "digits-lost", lambda x: _slope_of(x, 1 - torch.sigmoid(-x)))
_both(SILU_GRAD, "digits-lost", lambda x: _slope_of(x, 0.5 * (1 + torch.tanh(0.5 * x))))
_both(SILU_GRAD, "digits-lost", lambda x: 1 - _slope_of(-x, torch.sigmoid(-x)))


@SILU_GRAD.add(
    "closed-part-missing",
    "The slope of the switch has lost its factor 1 − σ(x): the second term is x · σ(x).",
    "How fast does the switch still move when it is nearly open?",
    "Far on the right the second term should vanish. Does yours?",
    "σ′(x) = σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + x)


SILU_GRAD.also("closed-part-missing")(lambda x: torch.sigmoid(x) + x * torch.sigmoid(x))


@SILU_GRAD.add(
    "switch-squared",
    "The slope of the switch is taken as σ(x)²: 1 − σ(x) was replaced by σ(x).",
    "How fast does the switch still move when it is nearly open?",
    "Far on the right the second term should vanish. Does yours?",
    "σ′(x) = σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + x * s)


@SILU_GRAD.add(
    "tanh-slope",
    "The slope of the switch is taken as 1 − σ(x)²: that is the rule for tanh.",
    "Which rule gives the slope of a sigmoid, and which that of a tanh?",
    "The sigmoid's slope is ¼ at 0. What does your second factor give there?",
    "σ′(x) = σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    s = torch.sigmoid(x)
    return s + x * (1 - s * s)


@SILU_GRAD.add(
    "rule-applied-to-silu",
    "It applies the sigmoid's rule, y · (1 − y), to SiLU itself.",
    "For which function is the slope y · (1 − y)?",
    "The rule belongs to the sigmoid. SiLU is a product that contains it.",
    "The product rule for x · σ(x): σ(x) + x · σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    y = F.silu(x)
    return y * (1 - y)


@SILU_GRAD.add(
    "value-for-slope",
    "It gives back the value of SiLU, not its slope.",
    "At 0 the value is 0. What is the slope there?",
    "Draw the curve at 0: how steep is it?",
    "The product rule for x · σ(x) has two terms: σ(x) and x · σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    return F.silu(x)


SILU_GRAD.also("value-for-slope")(lambda x: x * torch.sigmoid(x))


@SILU_GRAD.add(
    "relu-slope",
    "This is the slope of ReLU: 0 on the left, 1 on the right.",
    "Is the curve flat everywhere left of 0?",
    "SiLU follows ReLU smoothly. Its slope changes everywhere.",
    "The product rule for x · σ(x): σ(x) + x · σ(x) · (1 − σ(x)).",
)
def _(x):
    return (x > 0).to(x.dtype)


@SILU_GRAD.also("relu-slope")
def _(x):
    return (x >= 0).to(x.dtype)


@SILU_GRAD.add(
    "gelu-slope",
    "This is the slope of GELU, not that of SiLU.",
    "Which switch did you differentiate?",
    "GELU and SiLU differ in their switch. Look for gelu, erf or 1.702.",
    "The product rule for x · σ(x): σ(x) + x · σ(x) · (1 − σ(x)).",
)
@_rounded_once
def _(x):
    return _slope(F.gelu)(x)


@SILU_GRAD.also("gelu-slope")
@_rounded_once
def _(x):
    return _slope(lambda z: z * torch.sigmoid(1.702 * z))(x)


@SILU_GRAD.add(
    "mean-for-sum",
    "Every slope is divided by the number of entries: autograd saw a mean, not a sum.",
    "If x has twice as many entries, do your slopes become half as large?",
    "Each output depends on its own input alone. What do you send back through each of them?",
    "The gradient of f(x).sum() is the list of slopes; that of f(x).mean() is not.",
)
@_rounded_once
def _(x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(F.silu(x).mean(), x)[0]


@SILU_GRAD.also("mean-for-sum")
def _(x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(F.silu(x).mean(), x)[0]


@SILU_GRAD.add(
    "finite-difference",
    "It measures the slope with a small step: most of the digits go in the subtraction.",
    "Two values that are almost equal are subtracted. How many digits are left?",
    "A smaller step makes the difference smaller, and its rounding larger. Which way to the slope needs no "
    "step?",
    "Use the formula: σ(x) + x · σ(x) · (1 − σ(x)).",
)
def _(x):
    return ((F.silu(x.double() + 1e-3) - F.silu(x.double())) / 1e-3).to(x.dtype)


def _one_sided(h):
    return lambda x: (F.silu(x + h) - F.silu(x)) / h


def _two_sided(h):
    return lambda x: (F.silu(x + h) - F.silu(x - h)) / (2 * h)


for _step in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
    SILU_GRAD.also("finite-difference")(_rounded_once(_one_sided(_step)))
    SILU_GRAD.also("finite-difference")(_rounded_once(_two_sided(_step)))


@SILU_GRAD.add(
    "exp-in-16-bits",
    "exp(−x) is taken in the dtype of x: in fp16 it is infinite at −12, and the slope there is lost.",
    "What becomes of exp(12) in fp16?",
    "fp16 ends at 65504. In which dtype does each step work?",
    "Go up to at least fp32 first, and use torch.sigmoid there.",
)
def _(x):
    s = 1 / (1 + torch.exp(-x))
    return s * (1 + x * (1 - s))


@SILU_GRAD.also("exp-in-16-bits")
def _(x):
    s = 1 / (1 + torch.exp(-x))
    return s + x * s * (1 - s)


@SILU_GRAD.add(
    "infinity-over-infinity",
    "An exp grows without end: far from 0 infinity meets infinity, or 0, and NaN comes back.",
    "Does an exp see a large positive number?",
    "exp(100) is infinite in fp32. What stands above and below your fraction there?",
    "Write the slope with s = torch.sigmoid(z) alone: s * (1 + z * (1 - s)).",
    on="far from 0",
)
@_rounded_once
def _(x):
    u = torch.exp(-x)
    return (1 + u + x * u) / (1 + u) ** 2


def _slope_from_exps(x):
    u = torch.exp(-x)
    return 1 / (1 + u) + x * u / (1 + u) ** 2


def _slope_from_growing_exp(x):
    u = torch.exp(x)
    return u * (1 + x + u) / (1 + u) ** 2


SILU_GRAD.also("infinity-over-infinity")(
    lambda x: (1 + torch.exp(-x) + x * torch.exp(-x)) / (1 + torch.exp(-x)) ** 2
)
_both(SILU_GRAD, "infinity-over-infinity", _slope_from_exps)
_both(SILU_GRAD, "infinity-over-infinity", _slope_from_growing_exp)
_both(SILU_GRAD, "infinity-over-infinity", lambda x: _slope_of(x, torch.exp(x) / (1 + torch.exp(x))))
_both(SILU_GRAD, "infinity-over-infinity", _slope(lambda z: z / (1 + torch.exp(-z))))


@SILU_GRAD.add(
    "rounded-at-each-step",
    "In 16 bits it rounds at each step.",
    "How often does a 16-bit result get rounded in your function?",
    "Sigmoid, difference, product and sum each round what they return. Which dtype would keep the digits in "
    "between?",
    "z = x.to(torch.promote_types(x.dtype, torch.float32)) first, and .to(x.dtype) last.",
    on="four numbers in bf16",
)
def _(x):
    s = torch.sigmoid(x)
    return s * (1 + x * (1 - s))


@SILU_GRAD.also("rounded-at-each-step")
def _(x):
    s = torch.sigmoid(x)
    return s + x * s * (1 - s)


@SILU_GRAD.also("rounded-at-each-step")
def _(x):
    s = torch.sigmoid(x)
    return s + x * (s * (1 - s))


@SILU_GRAD.also("rounded-at-each-step")
def _(x):
    s = torch.sigmoid(x)
    return x * s + s * (1 - x * s)


@SILU_GRAD.also("rounded-at-each-step")
def _(x):
    return _slope(lambda z: z * torch.sigmoid(z))(x)


@SILU_GRAD.also("rounded-at-each-step")
def _(x):
    z, s = _wide(x), _wide(torch.sigmoid(x))
    return (s * (1 + z * (1 - s))).to(x.dtype)


@SILU_GRAD.add(
    "left-in-fp32",
    "The output stays in fp32, whatever came in.",
    "What was the dtype of x, and what is that of your result?",
    "The way up to fp32 needs a way back. After which of your steps should it come?",
    ".to(x.dtype) around the whole formula.",
)
def _(x):
    z, s = _wide(x), torch.sigmoid(_wide(x))
    return s * (1 + z * (1 - s))


@SILU_GRAD.also("left-in-fp32")
def _(x):
    z, s = x.float(), torch.sigmoid(x.float())
    return s * (1 + z * (1 - s))


@SILU_GRAD.add(
    "brackets-end-early",
    "Only the second factor goes back to the dtype of x: the product is still in fp32.",
    "Where do your brackets end?",
    "`.to(…)` turns what stands right before it. Is that the whole product, or one of its factors?",
    "(s * (1 + z * (1 - s))).to(x.dtype): brackets around the product.",
)
def _(x):
    z, s = _wide(x), torch.sigmoid(_wide(x))
    return s * (1 + z * (1 - s)).to(x.dtype)


@SILU_GRAD.also("brackets-end-early")
def _(x):
    z, s = _wide(x), torch.sigmoid(_wide(x))
    return s + (z * s * (1 - s)).to(x.dtype)


@SILU_GRAD.add(
    "through-fp32",
    "A float64 input goes through fp32, and loses half of its digits.",
    "Does float64 stay float64 on the way?",
    "`.float()` is a step up for 16 bits, and a step down for 64. Which dtype should a float64 input work "
    "in?",
    "torch.promote_types(x.dtype, torch.float32) in place of a fixed torch.float32.",
)
def _(x):
    z, s = x.float(), torch.sigmoid(x.float())
    return (s * (1 + z * (1 - s))).to(x.dtype)


@SILU_GRAD.also("through-fp32")
def _(x):
    s = torch.sigmoid(x.float())
    return (s * (1 + x * (1 - s))).to(x.dtype)


# repair_sigmoid


def where_on_both_branches(x):
    """As it is given: its slope is NaN far from 0."""
    return torch.where(x >= 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))


_MORE_SMALL = "small = torch.exp(torch.where(x >= 0, -x, x)), and then both branches, written with small."

REPAIR_SIGMOID.add(
    "slope-still-nan",
    "The values are right, as they were before. The slope is still NaN far from 0.",
    "What does your change repair: a value, or what the way back meets? Which of the two was wrong?",
    "Both branches are computed, and both get a gradient: the one that was not chosen gets 0. What is 0 "
    "times the slope of its exp? nan_to_num or another condition comes too late for that.",
    _MORE_SMALL,
    on="-200",
)(where_on_both_branches)


@REPAIR_SIGMOID.also("slope-still-nan")
def _(x):
    return torch.nan_to_num(where_on_both_branches(x))


@REPAIR_SIGMOID.also("slope-still-nan")
def _(x):
    return torch.where(x > -50, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))


@REPAIR_SIGMOID.also("slope-still-nan")
def _(x):
    return torch.where(x >= 0, 1 / (1 + torch.exp(-x)), 1 - 1 / (1 + torch.exp(x)))


@REPAIR_SIGMOID.also("slope-still-nan")
def _(x):
    return where_on_both_branches(x.double()).to(x.dtype)  # later, but the same


@REPAIR_SIGMOID.add(
    "nan-on-both-sides",
    "At 200 the value itself is NaN, and at −200 the slope: the form that overflows takes part.",
    "At 200, which of your lines computes exp(200), and what becomes of what it gives?",
    "A condition that is turned around chooses the form that overflows. A mask multiplies it by 0: what is "
    "0 times NaN?",
    _MORE_SMALL,
    on="200",
)
def _(x):
    return torch.where(x < 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))


@REPAIR_SIGMOID.also("nan-on-both-sides")
def _(x):
    right, left = 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x))
    return (x >= 0) * right + (x < 0) * left


@REPAIR_SIGMOID.add(
    "branch-detached",
    "One branch is cut from the gradient: where it is chosen, the slope is 0.",
    "Which slope should the sigmoid have at 1 and at −1?",
    "detach takes a whole branch out of the way back, also where it is the one that counts.",
    _MORE_SMALL,
)
def _(x):
    return torch.where(x >= 0, 1 / (1 + torch.exp(-x)), (torch.exp(x) / (1 + torch.exp(x))).detach())


@REPAIR_SIGMOID.also("branch-detached")
def _(x):
    return torch.where(x >= 0, (1 / (1 + torch.exp(-x))).detach(), torch.exp(x) / (1 + torch.exp(x)))


@REPAIR_SIGMOID.add(
    "corner-at-0",
    "The values are right, and far from 0 the slope too. But −|x| has a corner: at 0 the slope is 0, not ¼.",
    "Which slope does autograd take for |x| at 0?",
    "Autograd differentiates the code, not the formula. Compare −|x| with another way to write the same "
    "number.",
    "torch.where(x >= 0, -x, x) has the values of −|x|, and at 0 the slope of one of its sides.",
)
def _(x):
    small = torch.exp(-x.abs())
    return torch.where(x >= 0, 1 / (1 + small), small / (1 + small))


@REPAIR_SIGMOID.add(
    "nan-on-the-left",
    "At −200 the form 1 / (1 + exp(−x)) still takes exp(200): infinite, and the slope is NaN as before.",
    "What is exp(−x) at −200, and what does autograd multiply it by, chosen or not?",
    "The other form is harmless there. How can exp see no large number on either side?",
    _MORE_SMALL,
    on="-200",
)
def _(x):
    return 1 / (1 + torch.exp(-x))


@REPAIR_SIGMOID.also("nan-on-the-left")
def _(x):
    small = torch.exp(torch.where(x >= 0, -x, x))
    return torch.where(x >= 0, 1 / (1 + torch.exp(-x)), small / (1 + small))


@REPAIR_SIGMOID.add(
    "nan-on-the-right",
    "At 200 the form exp(x) / (1 + exp(x)) takes exp(200): infinite, and NaN comes back.",
    "What is exp(x) / (1 + exp(x)) at 200 in fp32, and what does autograd multiply it by, chosen or not?",
    "The other form is harmless there. How can exp see no large number on either side?",
    _MORE_SMALL,
    on="200",
)
def _(x):
    return torch.exp(x) / (1 + torch.exp(x))


@REPAIR_SIGMOID.also("nan-on-the-right")
def _(x):
    small = torch.exp(torch.where(x >= 0, -x, x))
    return torch.where(x >= 0, 1 / (1 + small), torch.exp(x) / (1 + torch.exp(x)))


@REPAIR_SIGMOID.add(
    "clamped",
    "x is clamped to a short interval: beyond it the curve is flat, above 0 and below 1.",
    "What does your function give at −30, and what is exp(−30)?",
    "The NaN is gone, but so are the values beyond the limits. From where on is exp infinite in fp32?",
    "Do not clamp x: let exp see where(x >= 0, -x, x), which is never above 0.",
)
def _(x):
    x = x.clamp(-10, 10)
    return 1 / (1 + torch.exp(-x))


for _limit in (5, 10, 15, 20, 25):
    REPAIR_SIGMOID.also("clamped")(lambda x, a=_limit: 1 / (1 + torch.exp(-x.clamp(min=-a))))
    REPAIR_SIGMOID.also("clamped")(lambda x, a=_limit: 1 / (1 + torch.exp(-x.clamp(-a, a))))
    REPAIR_SIGMOID.also("clamped")(lambda x, a=_limit: where_on_both_branches(x.clamp(-a, a)))


@REPAIR_SIGMOID.add(
    "branches-exchanged",
    "It falls from 1 to 0: the two branches are exchanged, or the sign in exp is.",
    "Should a switch be open or closed for a large positive x?",
    "Take a large positive x. Is what exp gives there small or large, and what does your form make of it?",
    "1 / (1 + small) where x >= 0, small / (1 + small) elsewhere.",
)
def _(x):
    return torch.sigmoid(-x)


@REPAIR_SIGMOID.also("branches-exchanged")
def _(x):
    grown = torch.exp(torch.where(x >= 0, x, -x))
    return torch.where(x >= 0, 1 / (1 + grown), grown / (1 + grown))


@REPAIR_SIGMOID.add(
    "half-on-one-side",
    "One side gives ½ everywhere: exp sees the harmless number there, not x.",
    "What does exp see at −1, and what at 1?",
    "What exp sees has to be harmless, and still has to tell −1 from −2 and 1 from 2. Does yours?",
    _MORE_SMALL,
)
def _(x):
    z = torch.where(x >= 0, x, 0)
    return torch.where(x >= 0, 1 / (1 + torch.exp(-z)), torch.exp(z) / (1 + torch.exp(z)))


REPAIR_SIGMOID.also("half-on-one-side")(lambda x: where_on_both_branches(x.clamp(min=0)))
REPAIR_SIGMOID.also("half-on-one-side")(lambda x: where_on_both_branches(x.clamp(max=0)))
REPAIR_SIGMOID.also("half-on-one-side")(lambda x: where_on_both_branches(torch.where(x >= 0, 0, x)))


@REPAIR_SIGMOID.add(
    "digits-lost",
    "Far on the left the result is the difference of two numbers that are almost equal: 0 is left of it.",
    "At −30, which two numbers does your function subtract or add, and how many digits do they share?",
    "fp32 has seven digits. Which of the two forms needs no difference where x is negative?",
    "small / (1 + small), with small = exp(x) where x is negative.",
)
def _(x):
    return 0.5 * (1 + torch.tanh(x / 2))


@REPAIR_SIGMOID.also("digits-lost")
def _(x):
    small = torch.exp(torch.where(x >= 0, -x, x))
    return torch.where(x >= 0, 1 / (1 + small), 1 - 1 / (1 + small))


REPAIR_SIGMOID.also("digits-lost")(lambda x: 1 - torch.sigmoid(-x))


@REPAIR_SIGMOID.add(
    "left-as-right",
    "Both sides use 1 / (1 + small): a negative number gets the switch of its mirror image.",
    "What should the switches of −1 and 1 sum to?",
    "On the left your exp sees x. What does 1 / (1 + exp(x)) give at −1?",
    "On the left: small / (1 + small), where small is what your exp gives.",
)
def _(x):
    return 1 / (1 + torch.exp(torch.where(x >= 0, -x, x)))


@REPAIR_SIGMOID.also("left-as-right")
def _(x):
    return 1 / (1 + torch.exp(-x.abs()))


@REPAIR_SIGMOID.add(
    "silu-for-sigmoid",
    "This is SiLU, the number times its switch; here the switch alone is asked for.",
    "Between which two numbers does a sigmoid move?",
    "Compare with what the given function returns at 1.",
    "Return the switch, without the factor x.",
)
def _(x):
    return F.silu(x)


# The answers


def _three(at_1, at_10, *words):
    """Ways to be wrong in the two numbers, with either word."""
    return [lambda w=word: (torch.tensor(at_1).double(), torch.tensor(at_10).double(), w) for word in words]


def _sum_mistake(id, name, question, pointer, nearly, *numbers, words=("no", "yes")):
    first, *more = [way for at_1, at_10 in numbers for way in _three(at_1, at_10, *words)]
    SILU_SUM.add(id, name, question, pointer, nearly)(first)
    for way in more:
        SILU_SUM.also(id)(way)


_sum_mistake(
    "taken-for-odd",
    "It is not 0: SiLU on the left is not minus SiLU on the right.",
    "What is silu(−1), and what is silu(1)?",
    "Both are printed in The idea. Are they equal in size?",
    "0.7311 − 0.2689.",
    (0.0, 0.0),
)
_sum_mistake(
    "difference-for-sum",
    "That is silu(x) − silu(−x), the difference, which is x.",
    "Which sign does silu(−1) have, and does the sum make it smaller or larger?",
    "silu(1) and silu(−1) are printed in The idea. Did you add the second, or subtract it?",
    "0.7311 + (−0.2689), and at 10 almost all of 10.",
    (1.0, 10.0),
)
_sum_mistake(
    "switches-summed",
    "That is the sum of the two switches: each is still to be multiplied by its number.",
    "What do the two switches get multiplied by?",
    "Write silu(−x) by its formula. Which number stands in front of its switch?",
    "x · (σ(x) − σ(−x)).",
    (1.0, 1.0),
)
_sum_mistake(
    "x-forgotten",
    "That is the difference of the two switches, without the factor x.",
    "Why does your answer look right at 1, and how large is silu(10)?",
    "At 1 a factor x does not show.",
    "x · (2σ(x) − 1): at 10 the bracket is almost 1.",
    (0.46212, 0.9999092), (0.46212, 1.0),
)  # fmt: skip
_sum_mistake(
    "taken-for-even",
    "That is 2 · silu(x): on the left SiLU is not the mirror image of its right side.",
    "Is silu(−1) the same as silu(1)?",
    "Both are printed in The idea. One is negative.",
    "0.7311 + (−0.2689).",
    (1.46212, 19.99909), (1.46212, 20.0),
)  # fmt: skip
_sum_mistake(
    "left-side-forgotten",
    "That is silu(x) alone: the left side is small, and at −1 it is not 0.",
    "What is silu(−1)?",
    "ReLU is 0 on the left. SiLU dips.",
    "0.7311 + (−0.2689).",
    (0.73106, 9.99955),
)  # fmt: skip
_sum_mistake(
    "never-negative",
    "The two numbers are right. But the sum cannot be negative.",
    "SiLU dips on the left. Which is larger in size, the dip at −x or the value at x?",
    "Write the sum as a product, with σ(x) alone. Which sign does each factor have when x is negative?",
    "The sum is x · (2σ(x) − 1). Both factors have the sign of x, so their product is never negative.",
    (0.46212, 9.99909),
    words=("yes",),
)

_sum_mistake(
    "another-word",
    "The two numbers are right. The last answer is one of two words.",
    'Is your word "yes" or "no"?',
    "The question is whether there is an x at which the sum is below 0.",
    "Write the sum as x · (2σ(x) − 1). Both factors have the sign of x.",
    (0.46212, 9.99909),
    words=("never", "nope", "not", "none", "n", "false", "always", "sometimes", "y", "true"),
)


def _counts(*pair):
    return lambda: tuple(torch.tensor(n).double() for n in pair)


@RESIDUAL_GRADIENT.add(
    "without-residual",
    "These are the counts without the residual stream: the picture as it was.",
    "Did the loop use your new line when `measured` was computed?",
    "A changed cell has no effect until it runs. Which cells does `measured` depend on?",
    "h = h + f(z) in the loop. Run the cell of `first_layer_gradient`, then the one that fills `measured`, "
    "and count.",
)
def _():
    return _counts(5, 0)()


@RESIDUAL_GRADIENT.add(
    "added-before-the-curve",
    "That is what f(h + z) gives: the addition is inside the curve, so the way back still goes through its "
    "slope.",
    "Is there a way from the output to the first layer that meets no curve?",
    "The stream goes around the curve: what is added to h?",
    "h = h + f(z).",
)
def _():
    return _counts(2, 0)()


@RESIDUAL_GRADIENT.add(
    "matrix-on-the-way-around",
    "That is what z + f(z) gives: the way around the curve still goes through every matrix.",
    "What does the layer get as its input: h, or z?",
    "z is h times the matrix already. Which of the two is the stream?",
    "h = h + f(z).",
)
def _():
    return _counts(1, 2)()


@RESIDUAL_GRADIENT.add(
    "curve-left-out",
    "That is what h + z gives: four times the same line, since no curve is left.",
    "Where is f in your loop?",
    "All four curves end at the same number with each gain. What would make them alike?",
    "h = h + f(z).",
)
def _():
    return _counts(0, 4)()


@RESIDUAL_GRADIENT.add(
    "none-exploded",
    "No gradient vanishes: right. But each gain has a panel of its own, and in one of them lines explode.",
    "Which gain lets the stream grow faster?",
    "Look at the right ends in the panel of gain √2, and mind its axis.",
    "Two of the four curves grow in proportion to their input: with gain √2 they pass a million.",
)
def _():
    return _counts(0, 0)()


@RESIDUAL_GRADIENT.add(
    "one-too-few-exploded",
    "No gradient vanishes: right. But more than one has exploded.",
    "A million is 1e6 on the log scale. Which lines of the two panels end above it?",
    "Print measured[label, name][-1, 0] for each label and name, and compare with 1e6.",
    "Two of the four curves grow in proportion to their input: with gain √2 they pass a million.",
)
def _():
    return _counts(0, 1)()


@RESIDUAL_GRADIENT.add(
    "too-many-exploded",
    "No gradient vanishes: right. But not so many have exploded: some have only grown.",
    "A million is 1e6 on the log scale. Do all the lines that you counted end above it?",
    "Print measured[label, name][-1, 0] for each label and name, and compare with 1e6.",
    "A curve that is bounded adds a bounded number to the stream. Only the other curves pass a million, and "
    "only with gain √2.",
)
def _():
    return _counts(0, 3)()


@RESIDUAL_GRADIENT.also("too-many-exploded")
def _():
    return _counts(0, 8)()
