"""The exercises of lesson 1."""

import torch

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import normalization_intuition as mistakes
from ..properties import Property, tokens_apart

_FAR_FROM_0 = (
    "On [30001, 30003] yours loses its digits: the mean of the squares and the square of the mean are almost "
    "equal there. Subtracting the mean before squaring keeps them."
)
_WIDE = 8192  # n and n − 1 are the same to four digits: what else is wrong shows alone


def _samples(draw: Draw, *shape: int) -> torch.Tensor:
    """Samples along the last axis, none with a mean near 0 or a spread near 0 or 1."""
    z = draw.normal(*shape)
    z = z - z.mean(-1, keepdim=True)
    z = z / z.square().mean(-1, keepdim=True).sqrt()
    return draw.uniform(1.5, 3.0, *shape[:-1], 1) * z + draw.weight(*shape[:-1], 1) * 1.5


def _score_cases(draw: Draw) -> list[Case]:
    """One sample of two numbers for the formula, two samples for the axes, then one thing at a time."""
    A, B, S = draw.sizes(3, 2, 5)
    n = draw.size(6, 9)
    same = draw.size(4, 6)
    return [
        Case((torch.tensor([3.0, 7.0]),), "one sample"),
        Case((torch.tensor([[3.0, 7.0], [-10.0, -30.0]]),), "two samples"),
        Case((torch.tensor([[1.0, 1.0, 1.0, 1.0, 6.0]]),), "a runaway"),
        Case((torch.tensor([[0.003, 0.007]]),), "a small unit"),
        Case((torch.tensor([[3.0, 5.0, 3.0, 5.0]]),), "a spread of 1"),
        Case((torch.tensor([[-3.0, -1.0, 1.0, 3.0]]),), "a mean of 0"),
        Case((torch.tensor([[30001.0, 30003.0]]),), note=_FAR_FROM_0),
        Case((torch.tensor([[[3.0, 7.0], [-10.0, -30.0]], [[1.0, 3.0], [0.0, 5.0]]]),), "[B, S, n]"),
        Case((_samples(draw, B, S, n),), "[B, S, n]", gradients=True),
        Case((_samples(draw, same, same, same),), "as many samples as numbers"),
        Case((_samples(draw, A, B, S, n),), "several axes in front"),
        Case((_samples(draw, S + 4, n).T.contiguous().T,), "a transposed view"),
        Case((_samples(draw, _WIDE),), "a long sample"),
        Case((100 * _samples(draw, 2, n).double(),), "float64"),
    ]


def _score_properties(draw: Draw) -> list[Property]:
    x = _samples(draw, 3, 5)

    def ignores_shift(f):
        if torch.allclose(f(x + 20), f(x), rtol=1e-2, atol=1e-3):
            return None
        return "Adding 20 to every number of a sample changes the output: it should not."

    def ignores_unit(f):
        if torch.allclose(f(1000 * x), f(x), rtol=1e-2, atol=1e-3):
            return None
        return "In another unit (every number times 1000) the output is another: it should be the same."

    def has_mean_0(f):
        mean = f(x).mean(-1)[0].item()
        return None if abs(mean) < 1e-3 else f"The scores of a sample have the mean {mean:.4g}, not 0."

    def has_variance_1(f):
        variance = f(x).var(-1, correction=0)[0].item()
        if abs(variance - 1) < 1e-3:
            return None
        return f"The scores of a sample have the variance {variance:.4g}, not 1."

    return [
        tokens_apart((x,), what="sample"),
        Property("sees-shift", "From where is a distance measured, so that a shift is lost?", ignores_shift),
        Property("sees-unit", "What must a distance be divided by to lose its unit?", ignores_unit),
        Property("mean-not-0", "What is left of a mean that is subtracted from every number?", has_mean_0),
        Property("variance-not-1", "What is the typical distance of a number from the mean?", has_variance_1),
    ]


_SCORE_HINTS = (
    "After a mean over the last axis, what must the shape be so that each sample gets its own mean "
    "subtracted?",
    "`standard_score` does it for one sample alone. What has to change in each of its means? And if you use "
    "`var` or `std`: by what do they divide, unless you say otherwise?",
    "x.mean(-1, keepdim=True) is subtracted from x. What is left is divided by x.std(-1, correction=0, …), "
    "which also has to keep its axis.",
)


@exercise(cases=_score_cases, mistakes=mistakes.STANDARDIZE, hints=_SCORE_HINTS, properties=_score_properties)
def standardize(x):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / (x - mean).square().mean(-1, keepdim=True).sqrt()


def _norm_cases(draw: Draw) -> list[Case]:
    """[3, 11] has mean 7 and variance 16. The formula first, then axes, eps, weight and bias, each alone."""
    one, ones, zeros = torch.tensor([[3.0, 11.0]]), torch.ones(2), torch.zeros(2)
    weight, bias = torch.tensor([2.0, 3.0]), torch.tensor([2.0, 10.0])
    A, B, S = draw.sizes(3, 2, 5)
    H, n = draw.size(6, 9), draw.size(4, 6)

    def affine(features):
        return draw.weight(features), 2 * draw.weight(features)

    return [
        Case((one, ones, zeros, 1e-5)),
        Case((torch.tensor([[[3.0, 11.0], [4.0, 6.0]]]), ones, zeros, 1e-5), "two tokens [B, S, H]"),
        Case((torch.tensor([[1.0, 1.0, 1.0, 1.0, 6.0]]), torch.ones(5), torch.zeros(5), 1e-5)),
        Case((one, ones, zeros, 9.0), "a large eps"),
        Case((torch.tensor([[4.0, 4.0]]), ones, zeros, 1e-5), "a constant token"),
        Case((torch.tensor([[3.0, 5.0, 3.0, 5.0]]), torch.ones(4), torch.zeros(4), 1e-5), "a spread of 1"),
        Case((torch.tensor([[-3.0, -1.0, 1.0, 3.0]]), torch.ones(4), torch.zeros(4), 1e-5), "a mean of 0"),
        Case((one, weight, zeros, 1e-5)),
        Case((one, ones, bias, 1e-5)),
        Case((one, weight, bias, 9.0)),
        Case((one[0], ones, zeros, 1e-5), "one token alone"),
        Case((torch.tensor([[0.001, 0.003]]), ones, zeros, 3e-6), "a tiny token"),
        Case((torch.tensor([[30001.0, 30003.0]]), ones, zeros, 1e-5), note=_FAR_FROM_0),
        Case((torch.tensor([[[3.0, 11.0], [4.0, 6.0]], [[30.0, -30.0], [1.0, 2.0]]]), ones, zeros, 1e-5)),
        Case((_samples(draw, B, S, H), *affine(H), 0.3), "[B, S, H]", gradients=True),
        Case((_samples(draw, n, n, n), *affine(n), 0.5), "as many texts as tokens as features"),
        Case((_samples(draw, 2, A, B, S, H), torch.ones(H), torch.zeros(H), 1e-5), "several axes in front"),
        Case((_samples(draw, A, B, S, H), *affine(H), 0.1), "several axes in front"),
        Case((_samples(draw, S + 4, H).T.contiguous().T, *affine(H), 0.1), "a transposed view"),
        Case((_samples(draw, 1, _WIDE), torch.ones(_WIDE), torch.zeros(_WIDE), 3.0), "a wide token"),
        Case((100 * _samples(draw, 2, H).double(), *(p.double() for p in affine(H)), 1e-5), "float64"),
    ]  # fmt: skip


def _norm_properties(draw: Draw) -> list[Property]:
    x, ones, zeros = _samples(draw, 2, 3, 6), torch.ones(6), torch.zeros(6)
    weight, bias = draw.weight(6), 2 * draw.weight(6)

    def ignores_shift(f):
        if torch.allclose(f(x + 20, ones, zeros, 1e-9), f(x, ones, zeros, 1e-9), rtol=1e-2, atol=1e-3):
            return None
        return "Adding 20 to every feature of a token changes the output: it should not."

    def ignores_scale(f):
        if torch.allclose(f(8 * x, ones, zeros, 1e-9), f(x, ones, zeros, 1e-9), rtol=1e-2, atol=1e-3):
            return None
        return "Eight times the token does not give the same output: it should, but for eps."

    def has_mean_0(f):
        mean = f(x, ones, zeros, 1e-9).mean(-1).flatten()[0].item()
        if abs(mean) < 1e-3:
            return None
        return f"With weight 1 and bias 0 a token has the mean {mean:.4g}, not 0."

    def has_variance_1(f):
        variance = f(x, ones, zeros, 1e-9).var(-1, correction=0).flatten()[0].item()
        if abs(variance - 1) < 1e-3:
            return None
        return f"With weight 1 and bias 0 a token has the variance {variance:.4g}, not 1."

    def constant_gives_bias(f):
        got = f(torch.full((1, 6), 4.0), weight, bias, 1e-5)
        if torch.allclose(got[0], bias, atol=1e-4):
            return None
        return "A constant token does not come out as the bias."

    def weight_is_a_factor(f):
        base = f(x, zeros, bias, 0.1)
        once, twice = (f(x, k * weight, bias, 0.1) - base for k in (1, 2))
        if torch.allclose(twice, 2 * once, rtol=1e-3, atol=1e-4) and once.abs().max() > 1e-4:
            return None
        return "Twice the weight does not move the output twice as far from the bias."

    def bias_is_added(f):
        gap = f(x, weight, bias, 0.1) - f(x, weight, zeros, 0.1)
        if torch.allclose(gap, bias.expand_as(gap), atol=1e-4):
            return None
        return "A larger bias should make its feature larger by as much, in every token: it does not."

    return [
        tokens_apart((x, ones, zeros, 1e-5)),
        Property("sees-shift", "From where is a distance measured, so that a shift is lost?", ignores_shift),
        Property(
            "sees-scale", "What should a token be divided by, so that its spread is lost?", ignores_scale
        ),
        Property("mean-not-0", "What is left of a mean that is subtracted from every feature?", has_mean_0),
        Property("variance-not-1", "How far from its mean is a feature of your output?", has_variance_1),
        Property("bias-not-added", "What is done to bias on its way into the output?", bias_is_added),
        Property("constant-token", "What is left of a constant token without its mean?", constant_gives_bias),
        Property("weight-no-factor", "By what is each normalized feature multiplied?", weight_is_a_factor),
    ]


_NORM_HINTS = (
    "Under *LayerNorm, step by step*, which lines come before the weight? Which of their "
    "numbers are now arguments?",
    "Put the formula beside your standardize. What is new under the root, and what is new after the "
    "division?",
    "(x - mean) * torch.rsqrt(variance + eps), with mean and variance over the last axis and that axis kept. "
    "What comes out is multiplied by weight, and then bias is added.",
)


@exercise(cases=_norm_cases, mistakes=mistakes.LAYER_NORM, hints=_NORM_HINTS, properties=_norm_properties)
def layer_norm(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * weight + bias


largest_score = Answer(
    "largest_score",
    lesson=__name__,
    right={"score": 3.0},
    mistakes=mistakes.LARGEST_SCORE,
    hints=(
        "Next to one very far number the other nine hardly differ. By which numbers could you replace them?",
        "Let the runaway be t and the rest 0. What is the mean of these ten, and how far is t from it?",
        "The mean is t / 10 and the distance 0.9 t. Nine squares of 0.1 t and one of 0.9 t average to "
        "0.09 t².",
    ),
    tolerance=0.002,  # √8 and 9 / √10 are two mistakes
    because="In the end only the runaway counts: n numbers, one of them t, the rest 0. The mean is t / n, "
    "and the score of t is √(n − 1): 2 for five, 3 for ten.",
)


def _box(draw: Draw, lengths: list[int], S: int, H: int, left: bool = False):
    """Texts padded to S, with numbers that are not 0 in the padding too, and which of the tokens are real."""
    x = 5 * draw.normal(len(lengths), S, H) + 7
    real = torch.zeros(len(lengths), S, dtype=torch.bool)
    for i, length in enumerate(lengths):
        real[i, S - length :] = True
        if not left:
            real[i] = real[i].flip(0)
    x[real] = _samples(draw, H, sum(lengths)).T
    return x, real


def _masked_cases(draw: Draw) -> list[Case]:
    """At least two real tokens. With padding, S and H differ: `x * real` then raises, however it goes on."""
    two = torch.tensor([[[3.0, 11.0], [11.0, 3.0]]])
    B, S, H = draw.sizes(3, 3, 7)
    n = draw.size(4, 6)
    lengths = [1, S, *(draw.size(1, S) for _ in range(B - 2))]
    wide = [2, S - 1, *(draw.size(1, S) for _ in range(B - 2))]
    texts = torch.tensor([[[3.0, 8.0, 1.0], [0.0, 0.0, 0.0]], [[11.0, 2.0, 5.0], [0.0, 0.0, 0.0]]])
    middle = torch.tensor([[[5.0, 1.0], [1.0, 3.0], [70.0, 90.0], [9.0, 5.0]]])
    constant = torch.tensor([[[4.0, 3.0], [4.0, 11.0]]])
    return [
        Case((two, torch.ones(1, 2).bool(), 1e-5), "no padding"),
        Case((torch.cat([two, torch.zeros(1, 1, 2)], 1), torch.tensor([[True, True, False]]), 1e-5)),
        Case((texts, torch.tensor([[True, False], [True, False]]), 1e-5), "two texts"),
        Case((two, torch.ones(1, 2).bool(), 9.0), "a large eps"),
        Case((constant, torch.ones(1, 2).bool(), 1e-5), "a constant feature"),
        Case((two / 1000, torch.ones(1, 2).bool(), 1e-5), "tiny tokens"),
        Case(
            (middle, torch.tensor([[True, True, False, True]]), 1e-5), "padding in the middle, not of zeros"
        ),
        Case((*_box(draw, lengths, S, H), 0.3), "[B, S, H]", gradients=True),
        Case((*_box(draw, [n - 1, *[n] * (n - 1)], n, n + 2), 0.1), "as many texts as tokens"),
        Case((*_box(draw, wide, S, H, left=True), 0.5), "padding on the left"),
    ]


def _masked_properties(draw: Draw) -> list[Property]:
    x, real = _box(draw, [4, 2, 3], 4, 5)

    def ignores_padding(f):
        other = torch.where(real[..., None], x, 3 * x + 50)
        if torch.allclose(f(x, real, 0.1), f(other, real, 0.1), rtol=1e-3, atol=1e-4):
            return None
        return "Other numbers in the padding change the output of the real tokens."

    def features_apart(f):
        other = x.clone()
        other[..., -1] *= 10
        if torch.allclose(f(x, real, 0.1)[..., :-1], f(other, real, 0.1)[..., :-1], rtol=1e-3, atol=1e-4):
            return None
        return "Making one feature ten times as large changed another feature."

    def texts_together(f):
        other = x.clone()
        other[-1] += 1 + torch.arange(4.0)[:, None]
        if (f(x, real, 0.1)[:4] - f(other, real, 0.1)[:4]).abs().max() > 1e-4:
            return None
        return "Changing one text leaves the others as they are: in BatchNorm the texts share their means."

    def has_mean_0(f):
        mean = f(x, real, 1e-9).mean(0)[0].item()
        return None if abs(mean) < 1e-3 else f"A feature has the mean {mean:.4g} over the real tokens, not 0."

    return [
        Property("sees-padding", "Which tokens are in your mean and in your variance?", ignores_padding),
        Property("features-mixed", "How many means should there be, and over which axis?", features_apart),
        Property("texts-apart", "Which tokens does BatchNorm average over?", texts_together),
        Property("mean-not-0", "Of which tokens is the mean that you subtract?", has_mean_0),
    ]


@exercise(
    cases=_masked_cases, mistakes=mistakes.MASKED_BATCH_NORM, properties=_masked_properties,
    hints=(
        "Which tokens may have a say in the mean of a feature?",
        "Print the shape of x[real], which the exercise names. What does each of its axes count, and which "
        "of them does BatchNorm average over?",
        "x[real] has the real tokens alone, one row for each. With rows = x[real], of shape [n_real, H], the "
        "mean is rows.mean(0), one number for each feature. The rest is the formula of normalize.",
    ),
)  # fmt: skip
def masked_batch_norm(x, real, eps):
    rows = x[real]
    mean = rows.mean(0)
    variance = (rows - mean).square().mean(0)
    return (rows - mean) / (variance + eps).sqrt()


@exercise(
    cases=_score_cases, mistakes=mistakes.STANDARDIZE, properties=_score_properties,
    given=mistakes.STANDARDIZE["keepdim-lost"].functions[0],
    hints=(
        "Take the first row alone. Which number should be subtracted from all four, and what is subtracted?",
        "Give it 3 samples of 4 numbers, and read what PyTorch says about the two shapes.",
        "Mean and spread are [4] and should be [4, 1]: keepdim=True, in both places.",
    ),
)  # fmt: skip
def repair_standardize(x):
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
