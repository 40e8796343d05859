"""Mistakes in the standard score, in LayerNorm, and in BatchNorm over real tokens."""

import math

import torch
from torch.nn import functional as F

from ..mistake import Catalogue

STANDARDIZE = Catalogue()
LAYER_NORM = Catalogue()
LARGEST_SCORE = Catalogue()
MASKED_BATCH_NORM = Catalogue()


def _mean(x, axis=-1):
    return x.mean(axis, keepdim=True)


def _std(x, axis=-1):
    return x.std(axis, correction=0, keepdim=True)


def _var(x, axis=-1):
    return _mean((x - _mean(x, axis)).square(), axis)  # var() warns of an empty x


# The standard score.


@STANDARDIZE.add(
    "divided-by-n-minus-1",
    "It divides the squared distances by n − 1: every score comes out too small.",
    "The distances of 3 and 7 from their mean are −2 and 2. What do their squares average to?",
    "Look at what PyTorch's `var` and `std` divide by, unless you say otherwise.",
    "`correction=0` in var or std divides by n; so does a plain mean of the squares.",
)
def _(x):
    return (x - _mean(x)) / x.std(-1, keepdim=True)


@STANDARDIZE.also("divided-by-n-minus-1")
def _(x):
    return (x - _mean(x)) / ((x - _mean(x)).square().sum(-1, keepdim=True) / (x.shape[-1] - 1)).sqrt()


@STANDARDIZE.also("divided-by-n-minus-1")  # its axes are lost, too: that shows when this is mended
def _(x):
    return (x - x.mean(-1)) / x.std(-1)


@STANDARDIZE.also("divided-by-n-minus-1")
def _(x):
    return (x - _mean(x)) / x.std(-1)


@STANDARDIZE.add(
    "over-everything",
    "It takes one mean and one spread over all samples together.",
    "There are two samples here. How many means should there be?",
    "`mean()` without an axis runs over everything. Which axis holds the numbers of one sample?",
    "The mean runs over the last axis only and keeps it: x.mean(-1, keepdim=True). The spread does the same.",
)
def _(x):
    return (x - x.mean()) / x.std(correction=0)


@STANDARDIZE.add(
    "one-mean-for-all",
    "It subtracts one mean, that of all samples together; the spread is each sample's own.",
    "Where does the mean that you subtract come from: this sample, or all of them?",
    "Compare the axes of your mean with those of your spread.",
    "The mean needs the axis too: x.mean(-1, keepdim=True).",
)
def _(x):
    return (x - x.mean()) / _std(x)


@STANDARDIZE.also("one-mean-for-all")
def _(x):
    return (x - x.mean()) / (x - x.mean()).square().mean(-1, keepdim=True).sqrt()


@STANDARDIZE.add(
    "one-spread-for-all",
    "It divides every sample by one spread, that of all samples together.",
    "Two samples in different units: may they share a spread?",
    "Compare the axes of your spread with those of your mean.",
    "The spread needs the axis too: its mean of squares runs over -1, with keepdim=True.",
)
def _(x):
    return (x - _mean(x)) / x.std(correction=0)


@STANDARDIZE.also("one-spread-for-all")
def _(x):
    return (x - _mean(x)) / (x - _mean(x)).square().mean().sqrt()


@STANDARDIZE.add(
    "over-samples",
    "It averages over the samples, each place by itself: the wrong axis.",
    "Which axis holds the numbers of one sample?",
    "For x [2, 5] your mean should have the shape [2, 1]. What is its shape now?",
    "Count from the right: the numbers of a sample lie along axis -1.",
)
def _(x):
    return (x - _mean(x, 0)) / _std(x, 0)


@STANDARDIZE.also("over-samples")
def _(x):
    return (x - x.mean(0)) / x.std(0, correction=0)


@STANDARDIZE.also("over-samples")
def _(x):
    return (x - _mean(x, -2)) / _std(x, -2)


@STANDARDIZE.also("over-samples")
def _(x):
    axes = tuple(range(x.dim() - 1)) or -1
    return (x - _mean(x, axes)) / _std(x, axes)


@STANDARDIZE.add(
    "axis-1",
    "It averages over axis 1: right for an x with two axes, and for no other.",
    "Which axis of x is the last one, if x has one axis, or three?",
    "The exercise has x [..., n]: any axes may stand in front. Try your function on a single sample.",
    "An axis can be counted from the right: -1 is the last, however many there are.",
)
def _(x):
    return (x - _mean(x, 1)) / _std(x, 1)


@STANDARDIZE.add(
    "over-two-axes",
    "It averages over the last two axes: the samples share one mean.",
    "How many means should there be for two samples?",
    "Look at the shape of your mean for x [2, 3, 5]. Which samples does one of its numbers belong to?",
    "The mean runs over the last axis alone, -1: its shape is [2, 3, 1].",
)
def _(x):
    axes = (-2, -1) if x.dim() > 1 else -1
    return (x - _mean(x, axes)) / _std(x, axes)


@STANDARDIZE.also("over-two-axes")
def _(x):
    return (x - _mean(x, (-2, -1))) / _std(x, (-2, -1))


@STANDARDIZE.add(
    "keepdim-lost",
    "Mean and spread lost their axis: those of sample j meet number j of every sample.",
    "What are the shapes of your mean and your spread, and how do they stretch over x?",
    "Shapes are lined up from the right: the two means [2] meet the two numbers of each sample.",
    "Each of the two has to keep the axis that it ran over, with size 1: keepdim=True, in both places.",
)
def _(x):
    return (x - x.mean(-1)) / x.std(-1, correction=0)


@STANDARDIZE.also("keepdim-lost")
def _(x):
    mean = x.mean(-1)
    return (x - mean) / (x - mean).square().mean(-1).sqrt()


@STANDARDIZE.add(
    "mean-lost-axis",
    "The mean lost its axis: that of sample j is subtracted from number j of every sample.",
    "What is the shape of your mean, and how does it stretch over x?",
    "Shapes are lined up from the right: the two means [2] meet the two numbers of each sample.",
    "The mean has to keep the axis that it ran over, with size 1, as your spread does: keepdim=True.",
)
def _(x):
    return (x - x.mean(-1)) / _std(x)


@STANDARDIZE.also("mean-lost-axis")
def _(x):
    mean = x.mean(-1)
    return (x - mean) / _mean((x - mean).square()).sqrt()


@STANDARDIZE.add(
    "spread-lost-axis",
    "The spread lost its axis: that of sample j divides number j of every sample.",
    "What is the shape of what you divide by, and how does it stretch over x?",
    "Shapes are lined up from the right: the two spreads [2] meet the two numbers of each sample.",
    "The spread has to keep the axis that it ran over, with size 1, as your mean does: keepdim=True.",
)
def _(x):
    return (x - _mean(x)) / x.std(-1, correction=0)


@STANDARDIZE.add(
    "root-forgotten",
    "It divides by the variance, without a root.",
    "If x is in metres, in which unit is the variance?",
    "A score has no unit. Which of the two, variance or standard deviation, has the unit of x?",
    "The root of the variance is still missing: .sqrt(), or std in place of var.",
)
def _(x):
    return (x - _mean(x)) / _var(x)


@STANDARDIZE.also("root-forgotten")
def _(x):
    return (x - _mean(x)) / x.var(-1, keepdim=True)


@STANDARDIZE.add(
    "root-twice",
    "The root is taken twice: it divides by the root of the standard deviation.",
    "How many roots lie between the squared distances and what you divide by?",
    "In another unit, with every number 100 times as large, by which factor does your denominator grow?",
    "The standard deviation is a root already: divide by std itself, or by the root of var.",
)
def _(x):
    return (x - _mean(x)) / _std(x).sqrt()


@STANDARDIZE.also("root-twice")
def _(x):
    return (x - _mean(x)) / x.std(-1, keepdim=True).sqrt()


@STANDARDIZE.add(
    "divided-by-root-of-mean",
    "It divides by the root of the mean: no variance is taken.",
    "Of which number do you take the root, and what is it for [-10, -30]?",
    "Two questions were asked of a sample: where is its middle, and how far do the numbers lie from it? "
    "Which of the two answers do you divide by?",
    "Under the root belongs the variance: the mean of (x - mean).square().",
)
def _(x):
    return (x - _mean(x)) / _mean(x).sqrt()


@STANDARDIZE.add(
    "divided-by-mean",
    "It divides by the mean, not by a spread.",
    "What would come out for a sample whose mean is 0?",
    "Two questions were asked of a sample: where is its middle, and how far do the numbers lie from it? "
    "Which of the two answers do you divide by?",
    "Divide by the standard deviation: the root of the mean of (x - mean).square().",
)
def _(x):
    return (x - _mean(x)) / _mean(x)


@STANDARDIZE.add(
    "mean-and-spread-exchanged",
    "Mean and spread are exchanged: it subtracts the spread and divides by the mean.",
    "Print what you subtract for [3, 7]. Does it lie in the middle of the two?",
    "If both came from one call, such as torch.std_mean: in which order does it return them?",
    "std, mean = torch.std_mean(…): the mean comes second. Subtract it, and divide by std.",
)
def _(x):
    return (x - _std(x)) / _mean(x)


@STANDARDIZE.also("mean-and-spread-exchanged")
def _(x):
    return (x - x.std(-1, keepdim=True)) / _mean(x)


@STANDARDIZE.add(
    "multiplied-by-spread",
    "It multiplies by the standard deviation in place of dividing.",
    "Should a sample that is spread wider have larger scores?",
    "A score says how many standard deviations a number lies from the mean. Which operation counts that?",
    "Divide the distance from the mean by the standard deviation.",
)
def _(x):
    return (x - _mean(x)) * _std(x)


@STANDARDIZE.add(
    "mean-not-subtracted",
    "The mean is not subtracted: it divides x itself.",
    "What should the score of a number be that lies in the middle of its sample?",
    "A score counts from the middle of the sample. From where does yours count?",
    "x - mean is what is divided by the standard deviation.",
)
def _(x):
    return x / _std(x)


@STANDARDIZE.add(
    "not-divided",
    "It subtracts the mean and stops there: the scores still have the unit of x.",
    "Kilometres or metres: should the scores be the same?",
    "How far do the numbers typically lie from the mean? Measure the distances with that.",
    "Divide x - mean by the standard deviation.",
)
def _(x):
    return x - _mean(x)


@STANDARDIZE.add(
    "brackets-missing",
    "Brackets are missing: only the mean is divided, and x is not.",
    "Which is done first in a - b / c?",
    "What should be divided by the standard deviation: the mean, or the distance from it?",
    "Brackets around x - mean.",
)
def _(x):
    return x - _mean(x) / _std(x)


@STANDARDIZE.add(
    "divided-first",
    "It divides x first, and then subtracts the mean of the undivided x.",
    "In which order do the formula's two steps come?",
    "After the division the numbers have no unit; the mean that you subtract still has one.",
    "Subtract the mean first, and divide the difference.",
)
def _(x):
    return x / _std(x) - _mean(x)


@STANDARDIZE.add(
    "wrong-sign",
    "It subtracts x from the mean: every score has the wrong sign.",
    "Should the largest number have the largest score?",
    "A number above the mean has a positive score. Look at which of the two is subtracted.",
    "x - mean, not mean - x.",
)
def _(x):
    return (_mean(x) - x) / _std(x)


@STANDARDIZE.add(
    "min-max",
    "This is min-max scaling: the smallest becomes 0, the largest 1.",
    "What decides your scale: all numbers, or two of them?",
    "The lesson has two ways to a common scale. Which one is asked for?",
    "The standard score subtracts the mean and divides by the standard deviation.",
)
def _(x):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (x - low) / (high - low)


@STANDARDIZE.add(
    "divided-by-range",
    "It divides by the range, the largest number minus the smallest.",
    "How many of the numbers should have a say in the spread?",
    "The range is set by two numbers. Which measure of spread in the formula averages over all of them?",
    "Divide by the root of the mean of the squared distances from the mean.",
)
def _(x):
    return (x - _mean(x)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True))


@STANDARDIZE.add(
    "absolute-distances",
    "It averages the absolute distances, not their squares.",
    "What is done with the distances from the mean before they are averaged?",
    "The variance is a mean of squares. Where is a square in your function?",
    "Square the distances, average, then take the root.",
)
def _(x):
    return (x - _mean(x)) / (x - _mean(x)).abs().mean(-1, keepdim=True)


@STANDARDIZE.add(
    "squares-not-centred",
    "The mean of squares is that of x itself: the mean was not subtracted before squaring.",
    "Distances from where are squared: from 0, or from the mean?",
    "For [3, 7] the squares of the distances from the mean are 4 and 4. What do you average?",
    "Subtract the mean first, and square what is left.",
)
def _(x):
    return (x - _mean(x)) / _mean(x.square()).sqrt()


@STANDARDIZE.add(
    "divided-by-rms",
    "It divides x by its root mean square: no mean is subtracted anywhere.",
    "Does your output change when 20 is added to every number? Should it?",
    "Look at both places where the formula subtracts the mean: in the numerator, and in the variance.",
    "Begin with x - mean, and use that in the place of x from then on.",
)
def _(x):
    return x / _mean(x.square()).sqrt()


@STANDARDIZE.add(
    "sum-for-mean",
    "It adds up the squared distances and does not average them.",
    "A sample twice as long, with the same spread: should its scores be smaller?",
    "The variance is a mean. By what do you divide the sum of the squares?",
    "mean(-1, keepdim=True) in place of sum or norm.",
)
def _(x):
    return (x - _mean(x)) / (x - _mean(x)).norm(dim=-1, keepdim=True)


@STANDARDIZE.add(
    "divided-by-len",
    "It divides a sum by len(x): that is the size of the first axis, not of the last.",
    "How many numbers are in one sample here, and what is len(x)?",
    "len counts the entries of the first axis. Which axis holds the numbers of a sample?",
    "x.shape[-1] in place of len(x); or a mean over -1 in place of the sum.",
)
def _(x):
    return (x - _mean(x)) / ((x - _mean(x)).square().sum(-1, keepdim=True) / len(x)).sqrt()


@STANDARDIZE.also("divided-by-len")
def _(x):
    centred = x - x.sum(-1, keepdim=True) / len(x)
    return centred / (centred.square().sum(-1, keepdim=True) / len(x)).sqrt()


@STANDARDIZE.add(
    "axes-flattened",
    "The axes in front are flattened into one, and not put back.",
    "What is the shape of your result for x [2, 3, 5], and for x [5]?",
    "Look for reshape, view or flatten. Which line gives the result its old axes again?",
    "End with .reshape(x.shape), with the x that came in. Or do without: -1 is the last axis, whatever "
    "stands in front.",
)
def _(x):
    rows = x.reshape(-1, x.shape[-1])
    return (rows - _mean(rows)) / _std(rows)


@STANDARDIZE.also("axes-flattened")
def _(x):
    rows = x.view(-1, x.shape[-1])
    return (rows - _mean(rows)) / _std(rows)


@STANDARDIZE.add(
    "median-for-mean",
    "It subtracts the median, not the mean.",
    "Which middle does the formula ask for?",
    "The scores of a sample should have the mean 0. What is the mean of yours?",
    "x.mean(-1, keepdim=True) in place of the median.",
)
def _(x):
    return (x - x.median(-1, keepdim=True).values) / _std(x)


@STANDARDIZE.add(
    "eps-added",
    "It adds a small number to the denominator: in a small unit the scores come out too small.",
    "Kilometres or metres: are your scores the same?",
    "The exercise says that no sample is constant. What is the denominator of the formula?",
    "The root of the variance alone: nothing is added to it here. LayerNorm will need an eps.",
)
def _(x):
    return (x - _mean(x)) / (_var(x) + 1e-5).sqrt()


@STANDARDIZE.also("eps-added")
def _(x):
    return (x - _mean(x)) / (_var(x) + 1e-6).sqrt()


@STANDARDIZE.also("eps-added")
def _(x):
    return (x - _mean(x)) / (_var(x) + 1e-8).sqrt()


@STANDARDIZE.also("eps-added")
def _(x):
    return (x - _mean(x)) / (_std(x) + 1e-5)


@STANDARDIZE.also("eps-added")
def _(x):
    return (x - _mean(x)) / (_std(x) + 1e-6)


@STANDARDIZE.also("eps-added")
def _(x):
    return F.layer_norm(x, x.shape[-1:])


# LayerNorm.


def _centred(x, axis=-1):
    return x - _mean(x, axis)


def _normal(x, eps, axis=-1):
    """The formula over some axis, without weight and bias."""
    return _centred(x, axis) / (_var(x, axis) + eps).sqrt()


_EPS_FIXED = (
    "Where does the number under your root come from?",
    "The caller may give an eps of 9. Look for a number of your own, or for an eps that is not passed on.",
    "The function has an argument eps: add that one to the variance, or pass it on.",
)


@LAYER_NORM.add(
    "divided-by-n-minus-1",
    "The squared distances are divided by n − 1: every output is too small, most in a narrow token.",
    "The distances of 3 and 11 from their mean are −4 and 4. What do their squares average to?",
    "LayerNorm has all the numbers that it normalizes. Look at what `var` divides by, unless you say "
    "otherwise.",
    "`correction=0` in var, std or var_mean divides by n; so does a plain mean of the squares.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (x.var(-1, keepdim=True) + eps).sqrt() * weight + bias


@LAYER_NORM.also("divided-by-n-minus-1")
def _(x, weight, bias, eps):
    return _centred(x) / (x.std(-1, keepdim=True) + eps) * weight + bias


@LAYER_NORM.also("divided-by-n-minus-1")  # its axes are lost, too: that shows when this is mended
def _(x, weight, bias, eps):
    return (x - x.mean(-1)) / (x.var(-1) + eps).sqrt() * weight + bias


@LAYER_NORM.also("divided-by-n-minus-1")
def _(x, weight, bias, eps):
    return _centred(x) / (x.var(-1) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "eps-outside-root",
    "`eps` is added after the root.",
    "What is done first: is the root taken of a sum, or is something added to a root?",
    "With variance 16 and eps 9 the denominator should be √25. What is yours?",
    "The root is of (variance + eps), both inside the brackets.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (_std(x) + eps) * weight + bias


@LAYER_NORM.also("eps-outside-root")
def _(x, weight, bias, eps):
    return _centred(x) * (1 / _std(x) + eps) * weight + bias


@LAYER_NORM.add(
    "eps-missing",
    "`eps` is not used: a large one does not make the output smaller.",
    "What is the denominator for the variance 16 and an eps of 9? And for the token [4, 4], without eps?",
    "Something small has to keep the denominator away from 0. Which argument have you not used?",
    "Add eps to the variance, before the root.",
)
def _(x, weight, bias, eps):
    return _normal(x, 0.0) * weight + bias


@LAYER_NORM.also("eps-missing")
def _(x, weight, bias, eps):
    return _normal(x, 0.0).nan_to_num() * weight + bias


@LAYER_NORM.also("eps-missing")  # here and below weight or bias is missing, too: named when this is mended
def _(x, weight, bias, eps):
    return _normal(x, 0.0)


@LAYER_NORM.also("eps-missing")
def _(x, weight, bias, eps):
    return _normal(x, 0.0) * weight


@LAYER_NORM.also("eps-missing")
def _(x, weight, bias, eps):
    return _normal(x, 0.0) + bias


@LAYER_NORM.add(
    "eps-1e-5",
    "`eps` is fixed at 0.00001, whatever the caller gives.",
    *_EPS_FIXED,
)
def _(x, weight, bias, eps):
    return _normal(x, 1e-5) * weight + bias


@LAYER_NORM.also("eps-1e-5")
def _(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:])


@LAYER_NORM.also("eps-1e-5")
def _(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight)


@LAYER_NORM.also(
    "eps-1e-5"
)  # an nn.LayerNorm made inside, its parameters set: no gradient comes back to them
def _(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight.detach(), bias.detach())


@LAYER_NORM.add("eps-1e-6", "`eps` is fixed at 0.000001, whatever the caller gives.", *_EPS_FIXED)
def _(x, weight, bias, eps):
    return _normal(x, 1e-6) * weight + bias


@LAYER_NORM.add("eps-1e-8", "`eps` is fixed at 0.00000001, whatever the caller gives.", *_EPS_FIXED)
def _(x, weight, bias, eps):
    return _normal(x, 1e-8) * weight + bias


@LAYER_NORM.add(
    "eps-squared",
    "`eps` is squared before it is added.",
    "Which number is squared in the formula, and which is not?",
    "With variance 16 and eps 9 the denominator should be √25. What is yours?",
    "variance + eps: eps is added as it is.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps**2) * weight + bias


@LAYER_NORM.add(
    "eps-subtracted",
    "`eps` is subtracted, not added: a constant token has the root of a negative number.",
    "With which sign does eps keep the denominator away from 0?",
    "Look at the number under your root for the token [4, 4].",
    "variance + eps.",
)
def _(x, weight, bias, eps):
    return _normal(x, -eps) * weight + bias


@LAYER_NORM.add(
    "eps-added-to-x",
    "`eps` is added to the normalized token, and the denominator does without it.",
    "Which number has to be kept away from 0?",
    "For the token [4, 4] the denominator is 0. Look at what it is made of.",
    "eps belongs in the denominator: (variance + eps), and the root of that.",
)
def _(x, weight, bias, eps):
    return (_normal(x, 0.0) + eps) * weight + bias


@LAYER_NORM.also("eps-added-to-x")
def _(x, weight, bias, eps):
    return (_centred(x) + eps) / _std(x) * weight + bias


@LAYER_NORM.add(
    "std-under-root",
    "The root is taken twice: the standard deviation stands under a root, where the variance belongs.",
    "How many roots lie between the squared distances and your denominator?",
    "The standard deviation is a root already. With variance 16 and eps 9 the denominator should be √25.",
    "Under the root: variance + eps, with the variance itself.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (_std(x) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "root-forgotten",
    "It divides by the variance, without a root.",
    "If every feature doubles, by which factor does the variance grow?",
    "A token with twice the spread has to come out the same. Which power of the variance has the size of x?",
    "torch.rsqrt is 1 over the square root; a plain division needs .sqrt() first.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (_var(x) + eps) * weight + bias


@LAYER_NORM.add(
    "multiplied-by-root",
    "In effect it multiplies by the root in place of dividing.",
    "Should a token that is spread wider come out wider?",
    "rsqrt is one over the root, sqrt the root itself. Which is yours, and do you multiply or divide by it?",
    "(x - mean) * torch.rsqrt(…), or (x - mean) / torch.sqrt(…).",
)
def _(x, weight, bias, eps):
    return _centred(x) * (_var(x) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "not-divided",
    "It subtracts the mean and does not divide: the spread of the token stays.",
    "What is the variance of your output, with weight 1 and bias 0?",
    "Two steps make a standard score. One is the mean. Which is the other?",
    "(x - mean) is divided by the root of (variance + eps).",
)
def _(x, weight, bias, eps):
    return _centred(x) * weight + bias


@LAYER_NORM.add(
    "mean-not-subtracted",
    "The mean is not subtracted: it divides x itself.",
    "What is the mean of your output, with weight 1 and bias 0?",
    "Look at the numerator of the formula.",
    "(x - mean) is what is divided by the root.",
)
def _(x, weight, bias, eps):
    return x / (_var(x) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "rms-norm",
    "No mean is subtracted anywhere: this is RMSNorm, the norm of lesson 2, with a bias.",
    "Does your output change when 20 is added to every feature? Should it?",
    "Look at both places where the formula subtracts the mean: in the numerator, and in the variance.",
    "Begin with x - mean, and use that in the place of x from then on.",
)
def _(x, weight, bias, eps):
    return x / (_mean(x.square()) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "squares-not-centred",
    "The mean of squares is that of x itself: the mean was not subtracted before squaring.",
    "Distances from where are squared in a variance: from 0, or from the mean?",
    "The variance of [3, 11] is 16. Print yours.",
    "(x - mean).square().mean(-1, keepdim=True).",
)
def _(x, weight, bias, eps):
    return _centred(x) / (_mean(x.square()) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "absolute-distances",
    "It averages the absolute distances from the mean, not their squares.",
    "What is done with the distances from the mean before they are averaged?",
    "The variance is a mean of squares. Where is a square in your function?",
    "Square the distances, average, add eps, take the root.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (_mean(_centred(x).abs()) + eps) * weight + bias


@LAYER_NORM.also("absolute-distances")
def _(x, weight, bias, eps):
    return _centred(x) / (_mean(_centred(x).abs()).square() + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "sum-for-mean",
    "It adds up the squared distances and does not average them.",
    "The variance of [3, 11] is 16. What is yours?",
    "A wider token has more squares. By what do you divide their sum?",
    "mean(-1, keepdim=True) in place of sum or norm.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (_centred(x).square().sum(-1, keepdim=True) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "divided-by-len",
    "It divides a sum by len(x): that is the size of the first axis, not of the last.",
    "How many features does a token have here, and what is len(x)?",
    "len counts the entries of the first axis. Which axis holds the features of a token?",
    "x.shape[-1] in place of len(x); or a mean over -1 in place of the sum.",
)
def _(x, weight, bias, eps):
    centred = x - x.sum(-1, keepdim=True) / len(x)
    return centred / (centred.square().sum(-1, keepdim=True) / len(x) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "mean-and-variance-exchanged",
    "Mean and variance are exchanged: it subtracts the variance and divides by the root of the mean.",
    "Print what you subtract for [3, 11]. Does it lie in the middle of the two?",
    "If both came from one call, such as torch.var_mean: in which order does it return them?",
    "variance, mean = torch.var_mean(…): the mean comes second. Subtract it, and take the root of the other.",
)
def _(x, weight, bias, eps):
    return (x - _var(x)) / (_mean(x) + eps).sqrt() * weight + bias


@LAYER_NORM.also("mean-and-variance-exchanged")
def _(x, weight, bias, eps):
    return (x - x.var(-1, keepdim=True)) / (_mean(x) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "axes-flattened",
    "The axes in front are flattened into one, and not put back.",
    "What is the shape of your result for x [2, 3, 5], and for x [5]?",
    "Look for reshape, view or flatten. Which line gives the result its old axes again?",
    "End with .reshape(x.shape), with the x that came in. Or do without: -1 is the last axis, whatever "
    "stands in front.",
)
def _(x, weight, bias, eps):
    return _normal(x.reshape(-1, x.shape[-1]), eps) * weight + bias


@LAYER_NORM.also("axes-flattened")
def _(x, weight, bias, eps):
    return _normal(x.view(-1, x.shape[-1]), eps) * weight + bias


@LAYER_NORM.add(
    "brackets-missing",
    "Brackets are missing: only the mean is divided by the root, and x is not.",
    "Which is done first in a - b / c, or in a - b * c?",
    "What should be divided by the root: the mean, or the distance from it?",
    "Brackets around x - mean.",
)
def _(x, weight, bias, eps):
    return (x - _mean(x) / (_var(x) + eps).sqrt()) * weight + bias


@LAYER_NORM.also("brackets-missing")
def _(x, weight, bias, eps):
    return x - _mean(x) / (_var(x) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "wrong-sign",
    "It subtracts x from the mean: every normalized feature has the wrong sign.",
    "Should the largest feature of a token still be the largest after the norm?",
    "A feature above the mean stays above it. Look at which of the two is subtracted.",
    "x - mean, not mean - x.",
)
def _(x, weight, bias, eps):
    return -_normal(x, eps) * weight + bias


@LAYER_NORM.add(
    "over-everything",
    "It averages over all numbers there are: one mean for the whole batch.",
    "If one token gets louder, may the others become quieter?",
    "`mean()` without an axis runs over everything. Which axis holds the features of one token?",
    "Mean and variance run over the last axis only and keep it: [B, S, 1].",
)
def _(x, weight, bias, eps):
    return (x - x.mean()) / (x.var(correction=0) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "one-mean-for-all",
    "It subtracts one mean, that of all tokens together.",
    "Where does the mean that you subtract come from: this token, or all of them?",
    "Compare the axes of your mean with those of your variance.",
    "The mean needs the axis too: x.mean(-1, keepdim=True).",
)
def _(x, weight, bias, eps):
    return (x - x.mean()) / (_var(x) + eps).sqrt() * weight + bias


@LAYER_NORM.also("one-mean-for-all")
def _(x, weight, bias, eps):
    centred = x - x.mean()
    return centred / (_mean(centred.square()) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "one-variance-for-all",
    "It divides every token by one spread, that of all tokens together.",
    "If one token gets louder, may the others become quieter?",
    "Compare the axes of your variance with those of your mean.",
    "The variance needs the axis too: its mean runs over -1, with keepdim=True.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (x.var(correction=0) + eps).sqrt() * weight + bias


@LAYER_NORM.also("one-variance-for-all")
def _(x, weight, bias, eps):
    return _centred(x) / (_centred(x).square().mean() + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "over-sequence-too",
    "It averages over the tokens as well: one mean for a whole text.",
    "If one token gets louder, may the others become quieter?",
    "Look at the shape of your mean for x [B, S, H]: how many numbers should there be for each token?",
    "One number for each token: mean and variance run over the last axis only, [B, S, 1].",
)
def _(x, weight, bias, eps):
    return _normal(x, eps, (-2, -1) if x.dim() > 1 else -1) * weight + bias


@LAYER_NORM.also("over-sequence-too")
def _(x, weight, bias, eps):
    return _normal(x, eps, (-2, -1)) * weight + bias


@LAYER_NORM.also("over-sequence-too")
def _(x, weight, bias, eps):
    return _normal(x, eps, (1, 2)) * weight + bias


@LAYER_NORM.add(
    "over-sequence-only",
    "It averages each feature over the tokens of its text: the future reaches the past.",
    "Which axis holds the features of one token?",
    "For x [B, S, H] your mean should be [B, S, 1]. What is its shape now?",
    "Count the axis from the right: the features are the last one, -1.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps, -2) * weight + bias


@LAYER_NORM.add(
    "axis-1",
    "It averages over axis 1: right for an x with two axes, and for no other.",
    "Which axis of x is the last one, if x has one axis, or three?",
    "The exercise has x [..., H]: any axes may stand in front. Try your function on a single token.",
    "An axis can be counted from the right: -1 is the last, however many there are.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps, 1) * weight + bias


@LAYER_NORM.add(
    "axis-2",
    "It averages over axis 2: right for an x with three axes, and for no other.",
    "Which axis of x is the last one, if x has one axis, or two?",
    "The exercise has x [..., H]: any axes may stand in front, or none. Try your function on a single token.",
    "An axis can be counted from the right: -1 is the last, however many there are.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps, 2) * weight + bias


@LAYER_NORM.add(
    "over-batch",
    "It averages over the first axis: right for a single token only.",
    "What is on the first axis of x [B, S, H]?",
    "Axis 0 is that of the features only when there is no other. Which index is right for any number of "
    "axes?",
    "Count the axis from the right: the features are the last one, -1.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps, 0) * weight + bias


@LAYER_NORM.add(
    "batch-norm",
    "This is BatchNorm: it averages each feature over all tokens of all texts.",
    "In the pictures of the cubes, which cells share a mean in LayerNorm?",
    "For x [B, S, H] the means of LayerNorm are [B, S, 1]. What is the shape of yours?",
    "Mean and variance run over the features, the last axis.",
)
def _(x, weight, bias, eps):
    rows = x.reshape(-1, x.shape[-1])
    return _normal(rows, eps, 0).reshape(x.shape) * weight + bias


@LAYER_NORM.also("batch-norm")
def _(x, weight, bias, eps):
    return _normal(x, eps, (0, 1)) * weight + bias


@LAYER_NORM.add(
    "keepdim-lost",
    "Mean and variance lost their axis: those of token j meet feature j of every token.",
    "What are the shapes of your mean and your variance, and how do they stretch over x?",
    "Shapes are lined up from the right: [B, S] meets the last two axes of [B, S, H].",
    "Each of the two has to keep the axis that it ran over, with size 1: keepdim=True, in both places.",
)
def _(x, weight, bias, eps):
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * weight + bias


@LAYER_NORM.also("keepdim-lost")
def _(x, weight, bias, eps):
    mean = x.mean(-1)
    return (x - mean) / ((x - mean).square().mean(-1) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "mean-lost-axis",
    "The mean lost its axis: that of token j is subtracted from feature j of every token.",
    "What is the shape of your mean, and how does it stretch over x?",
    "Shapes are lined up from the right: [B, S] meets the last two axes of [B, S, H].",
    "The mean has to keep the axis that it ran over, with size 1, as your variance does: keepdim=True.",
)
def _(x, weight, bias, eps):
    return (x - x.mean(-1)) / (_var(x) + eps).sqrt() * weight + bias


@LAYER_NORM.also("mean-lost-axis")
def _(x, weight, bias, eps):
    mean = x.mean(-1)
    return (x - mean) / (_mean((x - mean).square()) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "variance-lost-axis",
    "The variance lost its axis: feature j of every token is divided by the root of that of token j.",
    "What is the shape of what you divide by, and how does it stretch over x?",
    "Shapes are lined up from the right: [B, S] meets the last two axes of [B, S, H].",
    "The variance has to keep the axis that it ran over, with size 1, as your mean does: keepdim=True.",
)
def _(x, weight, bias, eps):
    return _centred(x) / (x.var(-1, correction=0) + eps).sqrt() * weight + bias


@LAYER_NORM.add(
    "weight-forgotten",
    "The weight is not applied.",
    "The layer learns two numbers for each feature. Where do they come in?",
    "Compare the last line of your function with the formula: one of the two learned numbers has no "
    "place yet.",
    "Multiply the normalized x by weight, before bias is added.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) + bias + 0 * weight


@LAYER_NORM.add(
    "bias-forgotten",
    "The bias is not added.",
    "The layer learns two numbers for each feature. Where do they come in?",
    "Compare the last line of your function with the formula: one of the two learned numbers has no "
    "place yet.",
    "Add bias at the very end.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) * weight + 0 * bias


@LAYER_NORM.add(
    "weight-and-bias-forgotten",
    "Neither weight nor bias is used: the token is normalized, and nothing more.",
    "The layer learns two numbers for each feature. Where do they come in?",
    "Compare the end of your function with the end of the formula.",
    "Multiply the normalized x by weight, and then add bias.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) + 0 * weight + 0 * bias


@LAYER_NORM.add(
    "weight-and-bias-exchanged",
    "Weight and bias are exchanged: it multiplies by bias and adds weight.",
    "Which of the two starts at 1, and which at 0?",
    "A fresh layer should leave the normalized token as it is: the weight is then 1, the bias 0.",
    "Multiply by weight, add bias.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) * bias + weight


@LAYER_NORM.add(
    "bias-before-weight",
    "The bias is added before the weight multiplies: the bias is multiplied too.",
    "Which of the two comes first, the factor or the addition?",
    "A constant token should come out as the bias itself. What does your function make of [4, 4]?",
    "normalized * weight, and then + bias. No brackets around normalized + bias.",
)
def _(x, weight, bias, eps):
    return (_normal(x, eps) + bias) * weight


@LAYER_NORM.add(
    "bias-divided",
    "The bias is divided by the root too: it is added before the division.",
    "Without its mean, nothing is left of the token [4, 4]. What should come out of it?",
    "Follow the order of the steps: mean, root, weight, bias. Where does your division end?",
    "The bias comes last, outside of every bracket.",
)
def _(x, weight, bias, eps):
    return (_centred(x) * weight + bias) / (_var(x) + eps).sqrt()


@LAYER_NORM.also("bias-divided")
def _(x, weight, bias, eps):
    return (_centred(x) + bias) / (_var(x) + eps).sqrt() * weight


@LAYER_NORM.add(
    "bias-subtracted",
    "The bias is subtracted, not added.",
    "What should a constant token become, if the bias is 10?",
    "Look at the last sign of the formula.",
    "normalized * weight + bias.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) * weight - bias


@LAYER_NORM.add(
    "weight-added",
    "The weight is added, not multiplied.",
    "What should come out where weight is 0 and bias is 0?",
    "Look at what stands between the fraction and weight in the formula.",
    "Multiply the normalized x by weight; only bias is added.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) + weight + bias


@LAYER_NORM.add(
    "weight-divides",
    "It divides by the weight.",
    "What should come out where weight is 2: twice as much, or half?",
    "Twice the weight, twice the distance from the bias.",
    "Multiply the normalized x by weight.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) / weight + bias


@LAYER_NORM.add(
    "one-plus-weight",
    "It multiplies by (1 + weight).",
    "By which number is a feature multiplied when its weight is 1?",
    "A new layer starts with weight 1 and leaves the normalized token as it is. What does yours make of it?",
    "weight times the normalized x, nothing added to weight.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) * (1 + weight) + bias


@LAYER_NORM.add(
    "weight-twice",
    "The weight is applied twice.",
    "How many of your lines contain weight?",
    "The formula has weight in one place. Where are the two places in your code?",
    "Normalize without weight; multiply by it once, before bias is added.",
)
def _(x, weight, bias, eps):
    return _normal(x, eps) * weight * weight + bias


@LAYER_NORM.add(
    "weight-before-norm",
    "The weight is applied before the statistics: mean and variance are those of weight · x.",
    "Of which numbers should mean and variance be?",
    "Find the first line that uses weight. Does it come before mean and variance, or after?",
    "Normalize x first; multiply by weight and add bias at the end.",
)
def _(x, weight, bias, eps):
    return _normal(x * weight, eps) + bias


@LAYER_NORM.also("weight-before-norm")
def _(x, weight, bias, eps):
    return _normal(x * weight + bias, eps)


# Where the score of one runaway among ten ends.


@LARGEST_SCORE.add(
    "as-for-five",
    "2 is where it ends among five numbers. Ten are another case.",
    "With more numbers that stay behind, does the runaway carry more or less of the variance?",
    "Try `standard_score` on five numbers and on six, one of them 8000.",
    "Let the runaway be t and the nine others 0, and take mean and variance on paper.",
)
def _():
    return torch.tensor(2.0, dtype=torch.float64)


@LARGEST_SCORE.add(
    "root-of-n",
    "√10 is close. The runaway pulls the mean towards itself, though.",
    "Let the runaway be t and the other nine 0. How far is t from the mean of the ten?",
    "Is 0 the mean of the ten? What it really is changes the distance, and the variance as well.",
    "The mean is t / 10, so the distance is 0.9 t; the variance is 0.09 t².",
)
def _():
    return torch.tensor(math.sqrt(10), dtype=torch.float64)


@LARGEST_SCORE.add(
    "root-2-times-as-far",
    "That is √2 times the score among five: it does not grow quite like √n.",
    "By this rule 8000 would have the score 2 · √(2/5), 1.26, in [0, 8000]. Which score does it have?",
    "Try `standard_score` on two, five and six numbers, one of them 8000, and square the three scores.",
    "Let the runaway be t and the nine others 0: the mean is 0.1 t, the variance 0.09 t².",
)
def _():
    return torch.tensor(math.sqrt(8), dtype=torch.float64)


@LARGEST_SCORE.add(
    "divided-by-n-minus-1",
    "This is what comes out with PyTorch's own std, which divides by n − 1.",
    "By what does the standard score of this lesson divide?",
    "Compare `std()` with `standard_score` of the lesson.",
    "Divide the squared distances by ten, not by nine.",
)
def _():
    return torch.tensor(9 / math.sqrt(10), dtype=torch.float64)


@LARGEST_SCORE.add(
    "root-forgotten",
    "That counts in variances: a score counts in standard deviations.",
    "In which unit is a variance, if the numbers are in metres?",
    "Among five numbers your way would give 4, and the runaway there has the score 2.",
    "The distance 0.9 t is divided by the root of the variance, 0.09 t².",
)
def _():
    return torch.tensor(9.0, dtype=torch.float64)


@LARGEST_SCORE.add(
    "twice-as-many-twice-as-far",
    "Twice as many numbers do not double the score.",
    "Which score does 8000 have in [0, 8000]? Is it twice that in [0, 0, 0, 8000]?",
    "Try `standard_score` on two, four and five numbers, one of them 8000. How does the score grow?",
    "Let the runaway be t and the nine others 0: the mean is 0.1 t, the variance 0.09 t².",
)
def _():
    return torch.tensor(4.0, dtype=torch.float64)


@LARGEST_SCORE.add(
    "min-max",
    "1 is where min-max puts the largest number, whatever it is.",
    "Among five numbers the score of 8000 was 2. Which of the two ways to a common scale gave that?",
    "By what does the standard score divide?",
    "Let the runaway be t and the nine others 0: divide its distance from the mean by the spread.",
)
def _():
    return torch.tensor(1.0, dtype=torch.float64)


@LARGEST_SCORE.add(
    "without-end",
    "It does not grow without end: the runaway is in the spread that it is divided by.",
    "What happens to the standard deviation when the runaway goes ten times as far?",
    "80 and 8000 had the same score among five. Distance and spread grow together.",
    "Let the runaway be t and the nine others 0. In distance over spread, t cancels.",
)
def _():
    return torch.tensor(math.inf, dtype=torch.float64)


@LARGEST_SCORE.also("without-end")
def _():
    return torch.tensor(8000.0, dtype=torch.float64)


# BatchNorm over the real tokens.


def _rows_normal(rows, eps, axis=0):
    return (rows - _mean(rows, axis)) / (_var(rows, axis) + eps).sqrt()


@MASKED_BATCH_NORM.add(
    "padding-counted",
    "Mean and variance count the padding: the real tokens are only picked afterwards.",
    "Which tokens have a say in your mean?",
    "Look at the order: are the statistics taken before the real tokens are picked, or after?",
    "Pick first: x[real] are the real tokens, and the statistics are those of these rows.",
)
def _(x, real, eps):
    return _normal(x, eps, (0, 1))[real]


@MASKED_BATCH_NORM.also("padding-counted")
def _(x, real, eps):
    centred = x - x.sum((0, 1)) / real.sum()
    return (centred / (centred.square().sum((0, 1)) / real.sum() + eps).sqrt())[real]


@MASKED_BATCH_NORM.add(
    "padding-as-zeros",
    "The padding is set to zero, and still counted: zeros are numbers too.",
    "By how many tokens do you divide your sum?",
    "A zero adds nothing to a sum. Is it counted when you divide that sum?",
    "Divide by the number of real tokens, real.sum(), or take the statistics of x[real].",
)
def _(x, real, eps):
    return _normal(x * real[..., None], eps, (0, 1))[real]


@MASKED_BATCH_NORM.add(
    "padding-in-mean",
    "The mean counts the padding; the variance is that of the real tokens.",
    "Which tokens does your mean average over, and which your variance?",
    "Two statistics, one set of tokens: compare the two lines.",
    "Take x[real] first, and both mean and variance of that.",
)
def _(x, real, eps):
    rows = x[real]
    return (rows - x.mean((0, 1))) / (rows.var(0, correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.also("padding-in-mean")
def _(x, real, eps):
    rows = x[real]
    return (rows - x.sum((0, 1)) / real.sum()) / (rows.var(0, correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.also("padding-in-mean")
def _(x, real, eps):
    centred = x[real] - x.sum((0, 1)) / real.sum()
    return centred / (centred.square().mean(0) + eps).sqrt()


@MASKED_BATCH_NORM.also("padding-in-mean")
def _(x, real, eps):
    centred = x[real] - x.mean((0, 1))
    return centred / (centred.square().mean(0) + eps).sqrt()


@MASKED_BATCH_NORM.also("padding-in-mean")
def _(x, real, eps):
    rows = x[real]
    return (rows - (x * real[..., None]).mean((0, 1))) / (rows.var(0, correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.also("padding-in-mean")
def _(x, real, eps):
    centred = x[real] - (x * real[..., None]).mean((0, 1))
    return centred / (centred.square().mean(0) + eps).sqrt()


@MASKED_BATCH_NORM.add(
    "padding-in-variance",
    "The variance counts the padding; the mean is that of the real tokens.",
    "Which tokens does your variance average over, and which your mean?",
    "Two statistics, one set of tokens: compare the two lines.",
    "Take x[real] first, and both mean and variance of that.",
)
def _(x, real, eps):
    rows = x[real]
    return (rows - rows.mean(0)) / (x.var((0, 1), correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.also("padding-in-variance")
def _(x, real, eps):
    rows = x[real]
    return (rows - rows.mean(0)) / ((x - rows.mean(0)).square().mean((0, 1)) + eps).sqrt()


def _counting(sum_of, zeroed):
    """The right mean; the sum of squares counts the padding, as it is or set to zero."""

    def masked_batch_norm(x, real, eps):
        rows = x[real]
        squares = ((x * real[..., None] if zeroed else x) - rows.mean(0)).square()
        return (rows - rows.mean(0)) / (sum_of(squares, real) + eps).sqrt()

    return masked_batch_norm


for _zeroed in (False, True):
    MASKED_BATCH_NORM.also("padding-in-variance")(
        _counting(lambda q, real: q.sum((0, 1)) / real.sum(), _zeroed)
    )
MASKED_BATCH_NORM.also("padding-in-variance")(_counting(lambda q, real: q.mean((0, 1)), True))


@MASKED_BATCH_NORM.also("padding-in-variance")
def _(x, real, eps):
    rows = x[real]
    return (rows - rows.mean(0)) / ((x * real[..., None]).var((0, 1), correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.add(
    "mask-lacks-axis",
    "`real` [B, S] is lined up with the last axes of x, and these are [S, H].",
    "Shapes are lined up from the right. Which axis of x does the last axis of `real` meet?",
    "`real` has one entry for each token, x has H numbers for each: one axis more, on the right.",
    "real[..., None] is [B, S, 1], and stretches over the features. x[real] needs no stretching.",
)
def _(x, real, eps):
    zeroed = x * real
    return _rows_normal(zeroed[real], eps)


@MASKED_BATCH_NORM.add(
    "first-rows",
    "It takes the first n_real rows of the box: padding comes along, and real tokens stay behind.",
    "Where in the box are the real tokens of the second text?",
    "Follow the rows of two texts with one real token each. Which rows come back?",
    "x[real] picks the tokens at which `real` is True, wherever they are.",
)
def _(x, real, eps):
    return _rows_normal(x.flatten(0, 1)[: real.sum()], eps)


@MASKED_BATCH_NORM.also("first-rows")
def _(x, real, eps):
    rows = x[real]
    box = (x - rows.mean(0)) / (rows.var(0, correction=0) + eps).sqrt()
    return box.flatten(0, 1)[: real.sum()]


@MASKED_BATCH_NORM.add(
    "padding-for-real",
    "It keeps the padding and leaves out the real tokens.",
    "What does True in `real` say?",
    "Print `real` and count: how many rows should come back?",
    "x[real], without ~.",
)
def _(x, real, eps):
    return _rows_normal(x[~real], eps)


@MASKED_BATCH_NORM.add(
    "layer-norm",
    "This is LayerNorm: each token by itself, over its features.",
    "In the pictures of the cubes, which cells share a mean in BatchNorm?",
    "The real tokens are rows, [n_real, H]. How many means should there be: one for each row, or for "
    "each feature?",
    "The mean runs over the rows, axis 0.",
)
def _(x, real, eps):
    return _rows_normal(x[real], eps, -1)


@MASKED_BATCH_NORM.add(
    "over-everything",
    "It takes one mean over all features of all tokens.",
    "How many means does BatchNorm have?",
    "`mean()` without an axis runs over everything. Which axis of the rows counts the tokens?",
    "One mean for each feature: the mean runs over axis 0 of x[real].",
)
def _(x, real, eps):
    rows = x[real]
    return (rows - rows.mean()) / (rows.var(correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.add(
    "each-text-alone",
    "Each text has its own means: this is the norm over the sequence.",
    "Which tokens share a mean in BatchNorm?",
    "In the first cube the coloured cells run through all texts.",
    "x[real] has the real tokens of all texts; one mean over its rows.",
)
def _(x, real, eps):
    return torch.cat([_rows_normal(text[here], eps) for text, here in zip(x, real, strict=True)])


@MASKED_BATCH_NORM.also("each-text-alone")
def _(x, real, eps):
    return _normal(x, eps, 1)[real]


@MASKED_BATCH_NORM.add(
    "each-place-alone",
    "Each place in the box has its own means, over the texts.",
    "Which tokens share a mean in BatchNorm?",
    "In the first cube the coloured cells run through all texts and all tokens of each.",
    "x[real] has the real tokens of all texts; one mean over its rows.",
)
def _(x, real, eps):
    return _normal(x, eps, 0)[real]


@MASKED_BATCH_NORM.add(
    "not-divided",
    "It subtracts the mean and does not divide: the spread of each feature stays.",
    "What is the variance of a feature of your output?",
    "Two steps make a standard score. One is the mean. Which is the other?",
    "rows - mean is divided by the root of (variance + eps).",
)
def _(x, real, eps):
    return x[real] - x[real].mean(0)


@MASKED_BATCH_NORM.add(
    "mean-not-subtracted",
    "The mean is not subtracted: it divides x itself.",
    "What is the mean of a feature of your output?",
    "Look at the numerator of the formula.",
    "rows - mean is what is divided by the root.",
)
def _(x, real, eps):
    return x[real] / (_var(x[real], 0) + eps).sqrt()


@MASKED_BATCH_NORM.add(
    "divided-by-n-minus-1",
    "The squared distances are divided by n − 1.",
    "The distances of 3 and 11 from their mean are −4 and 4. What do their squares average to?",
    "Look at what `var` and `std` divide by, unless you say otherwise.",
    "`correction=0`, or a plain mean of the squares.",
)
def _(x, real, eps):
    rows = x[real]
    variance = (rows - rows.mean(0)).square().sum(0) / (len(rows) - 1)  # var() warns of a single row
    return (rows - rows.mean(0)) / (variance + eps).sqrt()


@MASKED_BATCH_NORM.add(
    "eps-outside-root",
    "`eps` is added after the root.",
    "Is the root taken of a sum, or is something added to a root?",
    "With variance 16 and eps 9 the denominator should be √25. What is yours?",
    "The root is of (variance + eps), both inside the brackets.",
)
def _(x, real, eps):
    rows = x[real]
    return (rows - rows.mean(0)) / (rows.std(0, correction=0) + eps)


@MASKED_BATCH_NORM.add(
    "eps-missing",
    "`eps` is not used: a large one does not make the output smaller.",
    "What is the denominator for the variance 16 and an eps of 9?",
    "Something small has to keep the denominator away from 0. Which argument have you not used?",
    "Add eps to the variance, before the root.",
)
def _(x, real, eps):
    return _rows_normal(x[real], 0.0)


@MASKED_BATCH_NORM.add(
    "eps-1e-5",
    "`eps` is fixed at 0.00001, whatever the caller gives.",
    "Where does the number under your root come from?",
    "`normalize` and torch's BatchNorm1d have an eps of their own, unless you pass yours on.",
    "Pass eps on: it is the argument of your function that is added to the variance.",
)
def _(x, real, eps):
    return _rows_normal(x[real], 1e-5)


@MASKED_BATCH_NORM.add(
    "root-forgotten",
    "It divides by the variance, without a root.",
    "If every feature doubles, by which factor does the variance grow?",
    "Which power of the variance has the size of x?",
    "A plain division needs .sqrt() first.",
)
def _(x, real, eps):
    rows = x[real]
    return (rows - rows.mean(0)) / (rows.var(0, correction=0) + eps)


@MASKED_BATCH_NORM.add(
    "box-returned",
    "The whole box [B, S, H] comes back, the padding with it.",
    "How many rows should come back?",
    "Compare the shape of what you return with [n_real, H].",
    "Indexing with the mask, [real], gives the real tokens as rows.",
)
def _(x, real, eps):
    rows = x[real]
    return (x - rows.mean(0)) / (rows.var(0, correction=0) + eps).sqrt()


@MASKED_BATCH_NORM.also("box-returned")
def _(x, real, eps):
    box = torch.zeros_like(x)
    box[real] = _rows_normal(x[real], eps)
    return box


@MASKED_BATCH_NORM.also("box-returned")
def _(x, real, eps):
    rows = x[real]
    return (x - rows.mean(0)) / (rows.var(0, correction=0) + eps).sqrt() * real[..., None]


@MASKED_BATCH_NORM.also("box-returned")
def _(x, real, eps):
    return _normal(x, eps, (0, 1))


@STANDARDIZE.add(
    "statistics-detached",
    "The values are right, but mean and spread are cut from the gradient.",
    "Does a change of one number move the mean and the spread as well?",
    "Look for detach, no_grad, .data or .item() around mean and spread.",
    "Let autograd see every step from x to the output, the mean and the spread too.",
)
def _(x):
    return (x - _mean(x).detach()) / _std(x).detach()


@STANDARDIZE.also("statistics-detached")
def _(x):
    return (x - _mean(x)) / _std(x).detach()


@LAYER_NORM.add(
    "statistics-detached",
    "The values are right, but mean and variance are cut from the gradient.",
    "Does a change of one feature move the mean and the variance as well?",
    "Look for detach, no_grad, .data or .item() around mean and variance.",
    "Let autograd see every step from x to the output, the mean and the variance too.",
)
def _(x, weight, bias, eps):
    mean = _mean(x).detach()
    variance = (x - mean).square().mean(-1, keepdim=True).detach()
    return (x - mean) * torch.rsqrt(variance + eps) * weight + bias


@LAYER_NORM.also("statistics-detached")
def _(x, weight, bias, eps):
    variance = (x - _mean(x)).square().mean(-1, keepdim=True).detach()
    return (x - _mean(x)) * torch.rsqrt(variance + eps) * weight + bias


@LAYER_NORM.add(
    "eps-as-floor",
    "`eps` is a floor for the variance: it is used only where the variance is smaller.",
    "For the variance 16 and eps 9: which number should be under the root?",
    "clamp and maximum choose one of two numbers. What does the formula do with the two?",
    "Add eps to the variance, before the root.",
)
def _(x, weight, bias, eps):
    variance = (x - _mean(x)).square().mean(-1, keepdim=True)
    return (x - _mean(x)) / variance.clamp_min(eps).sqrt() * weight + bias
