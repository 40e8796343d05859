"""Mistakes in RMSNorm and in its gradient."""

import torch

from ..mistake import Catalogue

RMS_NORM = Catalogue()
RMS_NORM_GRAD = Catalogue()
ONE_PLUS_RMS_NORM = Catalogue()
REPAIR_RMS_NORM = Catalogue()
CONSTANT_TOKEN = Catalogue()


def _mean_square(x, axis=-1):
    return x.float().square().mean(axis, keepdim=True)


def _scaled(x, mean_square, weight, eps):
    """The rest of RMSNorm, right, after some mean of squares."""
    return weight * (x.float() * torch.rsqrt(mean_square + eps)).to(x.dtype)


@RMS_NORM.add(
    "mean-subtracted",
    "It subtracts the mean of the token first: adding 1 to every feature does not change its output.",
    "Which of the two norms of lesson 1 ignores a shift?",
    "RMSNorm divides by the root mean square of x itself. Does your x still have its mean?",
    "The statistic is x.square().mean(-1, keepdim=True): no x - x.mean() before it, and none after it.",
)
def _(x, weight, eps):
    centred = x.float() - x.float().mean(-1, keepdim=True)
    return weight * (centred * torch.rsqrt(_mean_square(centred) + eps)).to(x.dtype)


@RMS_NORM.also("mean-subtracted")
def _(x, weight, eps):
    centred = x.float() - x.float().mean(-1, keepdim=True)
    return _scaled(centred.to(x.dtype), _mean_square(x), weight, eps)


@RMS_NORM.add(
    "divided-by-std",
    "It divides x by its standard deviation: the mean is taken off inside the statistic.",
    "Is the variance of [5, 5] what you want to divide [5, 5] by?",
    "Variance measures the distance from the mean; the mean of squares the distance from 0.",
    "In place of var or std: the mean over the last axis of x.square().",
)
def _(x, weight, eps):
    return _scaled(x, x.float().var(-1, correction=0, keepdim=True), weight, eps)


@RMS_NORM.also("divided-by-std")
def _(x, weight, eps):
    return _scaled(x, x.float().var(-1, keepdim=True), weight, eps)


@RMS_NORM.add(
    "eps-outside-root",
    "`eps` is added after the root: a tiny token comes out too large.",
    "What is added first: do you take the root of a sum, or add to a root?",
    "Compare the size of eps with the mean of squares of [0.001, -0.001], and with its root. To which of "
    "them is it "
    "added in the formula?",
    "The root is of (mean_square + eps), both inside the brackets.",
)
def _(x, weight, eps):
    return weight * (x.float() / (_mean_square(x).sqrt() + eps)).to(x.dtype)


@RMS_NORM.also("eps-outside-root")
def _(x, weight, eps):
    return weight * (x.float() * (torch.rsqrt(_mean_square(x)) + eps)).to(x.dtype)


@RMS_NORM.add(
    "eps-squared",
    "`eps` is squared before it is added.",
    "Whose squares belong under the root?",
    "Compare what stands under the root in the formula and in your code. What is done to eps in each?",
    "Square x, take its mean, and then add eps as it is.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, eps**2)


@RMS_NORM.add(
    "eps-1e-5",
    "`eps` is fixed at 0.00001, whatever the caller gives.",
    "Llama 1 and Llama 3 do not use the same eps. Where does yours come from?",
    "Look for a number like 1e-5 in your code.",
    "The function has an argument eps: add that one under the root.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, 1e-5)


@RMS_NORM.add(
    "eps-1e-6",
    "`eps` is fixed at 0.000001, whatever the caller gives.",
    "Llama 1 and Llama 3 do not use the same eps. Where does yours come from?",
    "Look for a number like 1e-6 in your code.",
    "The function has an argument eps: add that one under the root.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, 1e-6)


@RMS_NORM.add(
    "eps-1e-8",
    "`eps` is fixed at 0.00000001, whatever the caller gives.",
    "Llama 1 and Llama 3 do not use the same eps. Where does yours come from?",
    "Look for a number like 1e-8 in your code.",
    "The function has an argument eps: add that one under the root.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, 1e-8)


@RMS_NORM.add(
    "eps-missing",
    "`eps` is not used: a tiny token comes out at full size, and a token of zeros gives 0 / 0.",
    "What keeps a tiny token small, and what does your function do with a token of zeros?",
    "Something small has to keep the denominator away from 0. Which argument have you not used?",
    "Add eps to the mean of squares, before the root.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, 0.0)


@RMS_NORM.add(
    "eps-subtracted",
    "`eps` is subtracted, not added: a tiny token has a root of a negative number.",
    "With which sign does eps keep the denominator away from 0?",
    "Look at the number under your root for a token of zeros.",
    "mean_square + eps.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, -eps)


@RMS_NORM.add(
    "over-sequence-too",
    "It averages over the tokens as well: one number for a whole text.",
    "If one token gets louder, may the others become quieter?",
    "Look at the shape of your mean of squares for x [B, S, H]: how many numbers should there be for each "
    "token?",
    "One number per token: the mean runs over the last axis only, [B, S, 1].",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x, (-2, -1) if x.dim() > 1 else -1), weight, eps)


@RMS_NORM.also("over-sequence-too")
def _(x, weight, eps):
    return _scaled(x, _mean_square(x, (-2, -1)), weight, eps)


@RMS_NORM.add(
    "over-everything",
    "It averages over all numbers there are: one number for the whole batch.",
    "If one token gets louder, may the others become quieter?",
    "`mean()` without an axis runs over everything. Which axis holds the features of one token?",
    "The mean runs over the last axis only and keeps it: [B, S, 1].",
)
def _(x, weight, eps):
    return _scaled(x, x.float().square().mean(), weight, eps)


@RMS_NORM.add(
    "over-sequence-only",
    "It averages each feature over the tokens: the mean runs over the wrong axis.",
    "Which axis holds the features of one token?",
    "For x [B, S, H] your mean of squares should be [B, S, 1]. What is its shape now?",
    "Count the axis from the right: the features are the last one, -1.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x, -2), weight, eps)


@RMS_NORM.also("over-sequence-only")
def _(x, weight, eps):
    return _scaled(x, _mean_square(x, 1), weight, eps)


@RMS_NORM.add(
    "over-batch",
    "It averages over the first axis: right for a single token only.",
    "What is on the first axis of x [B, S, H]?",
    "Axis 0 is that of the features only when there is no other. Which index is right for any number of "
    "axes?",
    "Count the axis from the right: the features are the last one, -1.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x, 0), weight, eps)


@RMS_NORM.add(
    "keepdim-lost",
    "The mean lost its axis: the numbers of the tokens line up with the features.",
    "What is the shape of your mean of squares, and how does it stretch over x?",
    "Shapes are lined up from the right: [B, S] meets the last two axes of [B, S, H].",
    "The mean has to keep the axis that it runs over, with size 1: keepdim=True.",
)
def _(x, weight, eps):
    mean_square = x.float().square().mean(-1)
    return weight * (x.float() * torch.rsqrt(mean_square + eps)).to(x.dtype)


@RMS_NORM.add(
    "weight-forgotten",
    "The weight is not applied.",
    "What does the layer learn, and where does it come in?",
    "Compare the end of your function with the formula: which argument has no place yet?",
    "Multiply what you return by weight: one factor for each feature.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), torch.ones_like(weight), eps) + 0 * weight


@RMS_NORM.add(
    "one-plus-weight",
    "It multiplies by (1 + weight), as another family of models does.",
    "What does your function give where weight is 1?",
    "In Llama the weight starts at 1, and the output then has RMS 1. What is the RMS of yours?",
    "weight times the normalized x, nothing added to weight.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), 1 + weight, eps)


@RMS_NORM.add(
    "weight-added",
    "The weight is added, not multiplied.",
    "What should come out where weight is 0?",
    "Look at what stands between the fraction and weight in the formula.",
    "Multiply the normalized x by weight.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), torch.ones_like(weight), eps) + weight


@RMS_NORM.add(
    "weight-divides",
    "It divides by the weight.",
    "What should come out where weight is 2?",
    "Twice the weight, twice the output.",
    "Multiply the normalized x by weight.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), 1 / weight, eps)


@RMS_NORM.add(
    "weight-before-norm",
    "The weight is applied before the statistic: the mean of squares is that of weight · x.",
    "Of which numbers should the squares be?",
    "Find the first line that uses weight. Does it come before the mean of squares, or after?",
    "Normalize x first; multiply by weight at the end.",
)
def _(x, weight, eps):
    wide = x.float() * weight.float()
    return (wide * torch.rsqrt(_mean_square(wide) + eps)).to(x.dtype)


@RMS_NORM.add(
    "weight-twice",
    "The weight is applied twice.",
    "How many lines of yours contain weight?",
    "The formula has weight in one place. Where are the two places in your code?",
    "Normalize without weight; multiply by it once, in the last line.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight * weight, eps)


@RMS_NORM.add(
    "root-forgotten",
    "It divides by the mean of squares, without a root.",
    "If every feature doubles, by which factor does the mean of squares grow?",
    "A token of doubled length has to come out the same. Which power of the mean of squares has the size of "
    "x?",
    "torch.rsqrt is 1 over the square root; a plain division needs .sqrt() first.",
)
def _(x, weight, eps):
    return weight * (x.float() / (_mean_square(x) + eps)).to(x.dtype)


@RMS_NORM.add(
    "multiplied-by-root",
    "It multiplies by the root in place of dividing.",
    "Should a longer token come out longer?",
    "rsqrt is one over the root, sqrt is the root itself. Which of the two do you multiply by?",
    "x * torch.rsqrt(…), or x / torch.sqrt(…).",
)
def _(x, weight, eps):
    return weight * (x.float() * torch.sqrt(_mean_square(x) + eps)).to(x.dtype)


@RMS_NORM.add(
    "sum-for-mean",
    "It adds the squares up and does not average: the output has length 1, not RMS 1.",
    "How long is your output for [3, 4]: what are its squares on average?",
    "What does the M of RMS stand for? By what do you divide the sum of the squares?",
    "mean(-1, keepdim=True) in place of sum or norm.",
)
def _(x, weight, eps):
    return _scaled(x, x.float().square().sum(-1, keepdim=True), weight, eps)


@RMS_NORM.also("sum-for-mean")
def _(x, weight, eps):
    return weight * (x.float() / (x.float().norm(dim=-1, keepdim=True) + eps)).to(x.dtype)


@RMS_NORM.add(
    "divided-by-n-minus-1",
    "The squares are averaged over H − 1 numbers.",
    "How many squares do you add up, and by how many do you divide?",
    "H − 1 belongs to an estimate of a variance. There is nothing to estimate here.",
    "Divide by H: the mean of all squares.",
)
def _(x, weight, eps):
    return _scaled(x, x.float().square().sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1), weight, eps)


@RMS_NORM.add(
    "absolute-values",
    "It averages absolute values, not squares.",
    "Which of the three letters of RMS is missing?",
    "Read R, M, S from right to left: they are three steps. Which of them is different in yours?",
    "Square, then mean, then root.",
)
def _(x, weight, eps):
    return weight * (x.float() / (x.float().abs().mean(-1, keepdim=True) + eps)).to(x.dtype)


@RMS_NORM.also("absolute-values")
def _(x, weight, eps):
    return _scaled(x, x.float().abs().mean(-1, keepdim=True).square(), weight, eps)


@RMS_NORM.add(
    "square-of-mean",
    "It squares the mean in place of averaging the squares.",
    "For [3, -3]: which is larger, the mean of the squares or the square of the mean?",
    "Plus and minus cancel in a mean. What has to happen before it?",
    "First square every feature, then take the mean.",
)
def _(x, weight, eps):
    return _scaled(x, x.float().mean(-1, keepdim=True).square(), weight, eps)


@RMS_NORM.add(
    "largest-for-mean",
    "It divides by the largest feature.",
    "How many of the features should have a say in the size of a token?",
    "RMS is a mean over all features.",
    "Square, then mean over the last axis, then root.",
)
def _(x, weight, eps):
    return weight * (x.float() / (x.float().abs().amax(-1, keepdim=True) + eps)).to(x.dtype)


@RMS_NORM.add(
    "no-upcast",
    "It squares in 16 bits: in fp16 300² is infinite, and (1e-4)² is 0.",
    "In which dtype do you take the square?",
    "fp16 ends at 65504. What did the lesson do with x before its first step?",
    "Begin with x.float(), and go back with .to(x.dtype) before the weight.",
)
def _(x, weight, eps):
    return weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps))


@RMS_NORM.also("no-upcast")
def _(x, weight, eps):
    return weight * x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


@RMS_NORM.also("no-upcast")
def _(x, weight, eps):
    mean_square = x.square().mean(-1, keepdim=True).float()
    return weight * (x.float() * torch.rsqrt(mean_square + eps)).to(x.dtype)


@RMS_NORM.also("no-upcast")
def _(x, weight, eps):
    mean_square = x.square().float().mean(-1, keepdim=True)
    return weight * (x.float() * torch.rsqrt(mean_square + eps)).to(x.dtype)


@RMS_NORM.add(
    "fp16-only",
    "It goes to fp32 for fp16 only: in bf16 every step rounds to two or three digits.",
    "Which dtypes have 16 bits?",
    "bf16 does not overflow at 300, but what does each step do to the digits?",
    "Begin with x.float() whatever the dtype of x is: for fp32 it costs nothing.",
)
def _(x, weight, eps):
    wide = x.float() if x.dtype == torch.float16 else x
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


@RMS_NORM.add(
    "root-in-16-bits",
    "The root is rounded to 16 bits before it meets x, and the product is rounded again.",
    "How often is a result of yours rounded to 16 bits before the weight?",
    "Where does .to(x.dtype) stand: around the root, or around the product?",
    "x in fp32 times the root in fp32, and then .to(x.dtype) once.",
)
def _(x, weight, eps):
    return weight * (x * torch.rsqrt(_mean_square(x) + eps).to(x.dtype))


@RMS_NORM.also("root-in-16-bits")
def _(x, weight, eps):
    return weight * (x / torch.sqrt(_mean_square(x) + eps).to(x.dtype))


@RMS_NORM.add(
    "eps-of-torch",
    "PyTorch's own norm is called without `eps`, and takes one of its own.",
    "Which eps does F.rms_norm use, if you do not give one?",
    "Look at the last argument of the function that you call.",
    "Pass eps on to it.",
)
def _(x, weight, eps):
    return weight * torch.nn.functional.rms_norm(x.float(), (x.shape[-1],)).to(x.dtype)


@RMS_NORM.add(
    "left-in-fp32",
    "The result stays in fp32, whatever came in.",
    "Which dtype does each factor of your last line have?",
    "fp32 times 16 bits is fp32. And is `x` still the x that came in, when you ask for its dtype?",
    "Keep dtype = x.dtype in the first line. The last line multiplies weight, as it came, by the normalized "
    "token "
    "in that dtype.",
)
def _(x, weight, eps):
    return weight.float() * (x.float() * torch.rsqrt(_mean_square(x) + eps))


@RMS_NORM.also("left-in-fp32")
def _(x, weight, eps):
    return weight * (x.float() * torch.rsqrt(_mean_square(x) + eps))


@RMS_NORM.add(
    "dtype-hard-coded",
    "It returns one dtype that stands in the code, whatever came in.",
    "Which dtype should come back when fp32 comes in, and which for fp16?",
    "Look for a dtype by name in your code.",
    ".to(x.dtype) in its place.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, eps).to(torch.bfloat16)


@RMS_NORM.also("dtype-hard-coded")
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, eps).to(torch.float16)


@RMS_NORM.add(
    "rounded-to-16-bits",
    "It rounds the normalized token to 16 bits, although fp32 came in.",
    "How many digits does fp16 keep?",
    "Look for .half() or .bfloat16() in your code: which dtype came in?",
    ".to(x.dtype) in its place.",
)
def _(x, weight, eps):
    wide = x.float()
    return weight * (wide * torch.rsqrt(_mean_square(x) + eps)).half()


@RMS_NORM.also("rounded-to-16-bits")
def _(x, weight, eps):
    wide = x.float()
    return weight * (wide * torch.rsqrt(_mean_square(x) + eps)).bfloat16()


@RMS_NORM.add(
    "statistic-detached",
    "The values are right, but the statistic is cut from the gradient.",
    "Does a change of x move the output through the root as well?",
    "Look for detach, no_grad, .data or .item() around the mean of squares.",
    "Let autograd see every step from x to the output, the mean of squares too.",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x).detach(), weight, eps)


@RMS_NORM.add(
    "weight-before-cast",
    "In 16 bits it multiplies by the weight in fp32 and rounds once, as torch.nn.RMSNorm does. Llama goes "
    "back to 16 bits first: about a quarter of the numbers differ by one step.",
    "Which comes first in Llama, the way back to 16 bits or the weight?",
    "Look at what .to(x.dtype) is applied to: the product with the weight, or the token alone?",
    "weight * normalized.to(x.dtype).",
    accepted=True,
)
def _(x, weight, eps):
    return (weight.float() * x.float() * torch.rsqrt(_mean_square(x) + eps)).to(x.dtype)


@RMS_NORM.also("weight-before-cast")
def _(x, weight, eps):
    return (weight * (x.float() * torch.rsqrt(_mean_square(x) + eps))).to(x.dtype)


def _r(x, eps):
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def _grad_x(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**3 * x * (wg * x).mean(-1, keepdim=True)


def _grad_weight(x, eps, grad_output):
    return (grad_output * x * _r(x, eps)).flatten(0, -2).sum(0)


@RMS_NORM_GRAD.add(
    "root-held-constant",
    "grad_x has only its direct term: r is held constant.",
    "Moving x changes y in two ways. Which one is missing?",
    "r depends on x too. What is ∂r/∂x?",
    "Subtract r³ · x · mean(weight · grad_output · x) from the direct term.",
)
def _(x, weight, eps, grad_output):
    return _r(x, eps) * weight * grad_output, _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "wrong-sign",
    "The second term of grad_x has the wrong sign.",
    "When x grows, does r grow or shrink?",
    "∂r/∂x is negative where x is positive. What does that do to the second term?",
    "The second term is subtracted.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg + r**3 * x * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "sum-for-mean",
    "The second term of grad_x is H times too large.",
    "What became of the 1/H of ∂r/∂x?",
    "The 1/H comes from the mean under the root. Where is it in your second term?",
    "mean(-1, keepdim=True) of weight · grad_output · x.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**3 * x * (wg * x).sum(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "wrong-power",
    "The power of r in the second term of grad_x is not the right one.",
    "What is the slope of (…)^(-1/2), written with r?",
    "Differentiating lowers the exponent by 1. Which exponent is left, and which power of r is that?",
    "r**3.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**2 * x * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.also("wrong-power")
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r * x * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "weight-missing-in-sum",
    "The weight is missing inside the sum of grad_x.",
    "The gradient reaches r through every feature of y. What does each of them contain?",
    "y_i = w_i · x_i · r. What is its slope with respect to r, and is all of it in your sum?",
    "Average weight · grad_output · x over the features.",
)
def _(x, weight, eps, grad_output):
    r = _r(x, eps)
    second = r**3 * x * (grad_output * x).mean(-1, keepdim=True)
    return r * weight * grad_output - second, _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "weight-forgotten",
    "grad_x does not contain the weight.",
    "What stands between x and y besides r?",
    "y_i = w_i · x_i · r. What is its slope with respect to x_i, if r stays as it is?",
    "Compute weight * grad_output once, and use it in both terms.",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, torch.ones_like(weight), eps, grad_output), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "weight-gradient-not-added-up",
    "grad_weight is not summed over the tokens.",
    "How many weights are there, and how many numbers did you return?",
    "All tokens share one weight. What becomes of the part that each of them gives?",
    "Sum over every axis but the last.",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), grad_output * x * _r(x, eps)


@RMS_NORM_GRAD.add(
    "weight-gradient-averaged",
    "grad_weight is averaged over the tokens, not summed.",
    "If a second token pulls at the weight as well, is the pull stronger?",
    "A sum over tokens in the loss is a sum over tokens in the gradient.",
    "sum over every axis but the last, not mean.",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), (grad_output * x * _r(x, eps)).flatten(0, -2).mean(0)


@RMS_NORM_GRAD.add(
    "weight-gradient-of-x",
    "grad_weight uses x, not the normalized x.",
    "What is weight multiplied by in y?",
    "y_i = w_i · x_i · r. What is its slope with respect to w_i?",
    "grad_output · x · r, summed over the tokens.",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), (grad_output * x).flatten(0, -2).sum(0)


@RMS_NORM_GRAD.add(
    "summed-over-one-axis",
    "grad_weight is summed over one axis only.",
    "Which axes of grad_output count tokens?",
    "A token has a place in a text, and a text has a place in the batch.",
    "Sum over both: (0, 1).",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), (grad_output * x * _r(x, eps)).sum(0)


@RMS_NORM_GRAD.also("summed-over-one-axis")
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), (grad_output * x * _r(x, eps)).sum(-2)


@RMS_NORM_GRAD.add(
    "r-missing",
    "The direct term of grad_x lacks the factor r.",
    "y_i = w_i · x_i · r. What is its slope with respect to x_i, if r stays as it is?",
    "Compare the direct term with the formula of y: which factor of y is not in it?",
    "r * weight * grad_output, and then the second term.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return wg - r**3 * x * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.also("r-missing")
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return wg - r**2 * x * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "weight-in-front",
    "In the second term the weight stands in front of the mean, not inside it.",
    "Whose weight belongs to feature i of the output, inside the sum over i?",
    "The sum runs over w_i · g_i · x_i. Which index does your weight have?",
    "Multiply weight * grad_output first, and use the product inside the mean.",
)
def _(x, weight, eps, grad_output):
    r = _r(x, eps)
    second = weight * r**3 * x * (grad_output * x).mean(-1, keepdim=True)
    return r * weight * grad_output - second, _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "own-feature-only",
    "The second term looks at one feature only: how x_j moves y_j.",
    "r is in every feature of y. Which of them does a change of x_j move?",
    "The chain rule has a sum over i. Where is it in your code?",
    "The second term needs a mean over the features: r³ · x · mean(weight · grad_output · x).",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**3 * x * (wg * x) / x.shape[-1], _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "over-tokens-too",
    "The mean of the second term runs over the tokens as well.",
    "May the gradient of one token depend on another token?",
    "Which axis holds the features of one token?",
    "mean(-1, keepdim=True): over the last axis only.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**3 * x * (wg * x).mean(), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "layer-norm-gradient",
    "It subtracts a mean of the gradient as well: that is the gradient of LayerNorm.",
    "Does RMSNorm subtract a mean on the way forward?",
    "A term with the mean of weight · grad_output comes from centering.",
    "Two terms are enough: the direct one and the one through r.",
)
def _(x, weight, eps, grad_output):
    wg = weight * grad_output
    grad_x = _grad_x(x, weight, eps, grad_output) - _r(x, eps) * wg.mean(-1, keepdim=True)
    return grad_x, _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "eps-outside-root",
    "`eps` is added after the root in r.",
    "Which r did the forward pass use?",
    "Compare your r with the formula at the top of the exercise: what is under the root?",
    "r = torch.rsqrt(mean_square + eps), both inside the brackets.",
)
def _(x, weight, eps, grad_output):
    r, wg = 1 / (x.square().mean(-1, keepdim=True).sqrt() + eps), weight * grad_output
    grad_x = r * wg - r**3 * x * (wg * x).mean(-1, keepdim=True)
    return grad_x, (grad_output * x * r).flatten(0, -2).sum(0)


@RMS_NORM_GRAD.add(
    "as-if-eps-were-0",
    "It takes away all that points along x: exact only where eps is 0.",
    "With eps, does the length of a token really make no difference?",
    "x · r has length √H only without eps. Which power of r stands in your second term?",
    "The second term is r³ · x · mean(weight · grad_output · x), with r from the forward pass.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    along = (wg * x).sum(-1, keepdim=True) / x.square().sum(-1, keepdim=True).clamp_min(1e-30)
    return r * (wg - x * along), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "grad-output-ignored",
    "`grad_output` is not used: it is the gradient of the plain sum of the outputs.",
    "What arrives from the layers above?",
    "Each output has a gradient of its own, and they are not all 1.",
    "With autograd: torch.autograd.grad(y, (x, weight), grad_output).",
)
def _(x, weight, eps, grad_output):
    ones = torch.ones_like(grad_output)
    return _grad_x(x, weight, eps, ones), _grad_weight(x, eps, ones)


@RMS_NORM_GRAD.add(
    "half-as-large",
    "The second term of grad_x is half of what it should be.",
    "What is the slope of x²?",
    "The root brings a ½. What does the square bring?",
    "The 2 of x² and the ½ of the root cancel: r³ · x · mean(weight · grad_output · x).",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - 0.5 * r**3 * x * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "x-missing",
    "The second term of grad_x lacks the factor x.",
    "∂r/∂x_j is larger where x_j is larger. Where is that in your second term?",
    "The square under the root leaves a factor behind when it is differentiated.",
    "r³ · x · mean(weight · grad_output · x): x stands in front of the mean and inside it.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**3 * (wg * x).mean(-1, keepdim=True), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.add(
    "keepdim-lost",
    "A mean lost its axis: the numbers of the tokens line up with the features.",
    "What is the shape of each of your means, and how does it stretch over x?",
    "Shapes are lined up from the right: [B, S] meets the last two axes of [B, S, H].",
    "Both means, the one in r and the one in the second term, need keepdim=True.",
)
def _(x, weight, eps, grad_output):
    r, wg = _r(x, eps), weight * grad_output
    return r * wg - r**3 * x * (wg * x).mean(-1), _grad_weight(x, eps, grad_output)


@RMS_NORM_GRAD.also("keepdim-lost")
def _(x, weight, eps, grad_output):
    r, wg = torch.rsqrt(x.square().mean(-1) + eps), weight * grad_output
    grad_x = r * wg - r**3 * x * (wg * x).mean(-1, keepdim=True)
    return grad_x, (grad_output * x * r).flatten(0, -2).sum(0)


@RMS_NORM_GRAD.add(
    "weight-gradient-without-grad-output",
    "grad_weight does not contain grad_output.",
    "What arrives at y, before it goes on to the weight?",
    "By the chain rule every gradient begins with the one that arrives.",
    "Multiply by grad_output inside the sum.",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), (x * _r(x, eps)).flatten(0, -2).sum(0)


@RMS_NORM_GRAD.add(
    "summed-over-features",
    "grad_weight is summed over the features: one number for each token comes back.",
    "How many weights are there, and how many numbers came back?",
    "Each feature has a weight of its own, which all tokens share. Which axes count tokens?",
    "Sum over (0, 1), and leave the last axis.",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, eps, grad_output), (grad_output * x * _r(x, eps)).sum(-1)


@RMS_NORM_GRAD.add(
    "exchanged",
    "The two gradients come back in the wrong order.",
    "Which of the two has the shape of x?",
    "Look at the shapes that you return, and at the order that the exercise asks for.",
    "return grad_x, grad_weight",
)
def _(x, weight, eps, grad_output):
    return _grad_weight(x, eps, grad_output), _grad_x(x, weight, eps, grad_output)


@RMS_NORM_GRAD.add(
    "eps-missing",
    "`eps` is not used in r.",
    "Which r did the forward pass use?",
    "The gradient of a tiny token depends on eps.",
    "r = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps).",
)
def _(x, weight, eps, grad_output):
    return _grad_x(x, weight, 0.0, grad_output), _grad_weight(x, 0.0, grad_output)


@ONE_PLUS_RMS_NORM.add(
    "weight-alone",
    "It multiplies by the weight alone, as Llama does.",
    "By which number should a feature be multiplied when its weight is 0?",
    "This family starts with weight = 0, and then the normalized token is to come out as it is.",
    "Multiply by (1 + weight).",
)
def _(x, weight, eps):
    return _scaled(x, _mean_square(x), weight, eps)


@ONE_PLUS_RMS_NORM.add(
    "one-added-to-output",
    "It adds 1 to the output, not to the weight.",
    "Which number is 1 added to?",
    "A product is taken before a sum. Which is to be done first here?",
    "Put brackets around (1 + weight).",
)
def _(x, weight, eps):
    return 1 + _scaled(x, _mean_square(x), weight, eps)


@ONE_PLUS_RMS_NORM.add(
    "weight-added",
    "The weight is added to the normalized token, not multiplied.",
    "What should come out for a feature of 0, whatever its weight is?",
    "A weight makes a feature matter more or less: it is part of a factor.",
    "(1 + weight) times the normalized token.",
)
def _(x, weight, eps):
    return weight + _scaled(x, _mean_square(x), torch.ones_like(weight), eps)


ONE_PLUS_RMS_NORM.take(
    RMS_NORM,
    lambda rms_norm: lambda x, weight, eps: rms_norm(x, 1 + weight, eps),
    without=("weight-forgotten", "one-plus-weight", "weight-added", "weight-divides", "weight-twice"),
)


# To the last bit: what is accepted elsewhere is a mistake here.
REPAIR_RMS_NORM.take(RMS_NORM, accept=False)


@CONSTANT_TOKEN.add(
    "exchanged",
    "These are the two answers, exchanged.",
    "Which of the two norms subtracts the mean?",
    "What is left of [5, 5, 5, 5] when its mean is subtracted?",
    "LayerNorm centres first. Nothing is left to scale.",
)
def _():
    return torch.zeros(4).double(), torch.ones(4).double()


@CONSTANT_TOKEN.add(
    "length-one",
    "RMSNorm does not make the length 1: it makes the root mean square 1.",
    "How long is a vector of four features with RMS 1?",
    "Divide 5 by a root: not of the sum of the squares, but of what?",
    "The mean of the squares is 25, so the RMS of [5, 5, 5, 5] is 5.",
)
def _():
    return torch.full((4,), 0.5).double(), torch.zeros(4).double()


@CONSTANT_TOKEN.add(
    "unchanged",
    "RMSNorm does not leave the token as it is.",
    "By which number does RMSNorm divide it?",
    "Square the four features and take the mean. What is its root?",
    "The mean of the squares is 25. Divide every 5 by the RMS, 5.",
)
def _():
    return torch.full((4,), 5.0).double(), torch.zeros(4).double()


@CONSTANT_TOKEN.add(
    "both-zero",
    "RMSNorm does not subtract the mean, so it does not give zeros.",
    "Which of the two norms subtracts the mean?",
    "RMSNorm divides by the RMS, and does nothing else when weight is 1.",
    "Divide every 5 by the RMS, 5.",
)
def _():
    return torch.zeros(4).double(), torch.zeros(4).double()


@CONSTANT_TOKEN.add(
    "both-one",
    "LayerNorm does subtract the mean.",
    "What is left of [5, 5, 5, 5] when its mean is subtracted?",
    "LayerNorm has a step before it divides. Do that step by hand.",
    "The mean is 5. After centering every feature is 0, and 0 stays 0.",
)
def _():
    return torch.ones(4).double(), torch.ones(4).double()


@CONSTANT_TOKEN.add(
    "zero-by-zero",
    "LayerNorm does not divide by 0: eps keeps the root away from it.",
    "What is left of the token after centering, and what is LayerNorm's denominator then?",
    "The variance is 0. What is added to it before the root is taken?",
    "Every feature is 0, and the denominator is √(0 + eps): 0 divided by √eps.",
)
def _():
    return torch.ones(4).double(), torch.full((4,), torch.nan).double()


@CONSTANT_TOKEN.add(
    "not-squared",
    "RMSNorm does not divide by the root of 5.",
    "Of which numbers is the mean under the root?",
    "R, M, S: the squares come first. What are the squares of [5, 5, 5, 5]?",
    "The mean of the squares is 25, and its root is 5.",
)
def _():
    return torch.full((4,), 5**0.5).double(), torch.zeros(4).double()


@CONSTANT_TOKEN.add(
    "layer-norm-unchanged",
    "LayerNorm does not leave the token as it is.",
    "What does LayerNorm do first?",
    "Take the mean of the token, and do with it what LayerNorm does first.",
    "The mean of [5, 5, 5, 5] is 5. After centering nothing but zeros is left.",
)
def _():
    return torch.ones(4).double(), torch.full((4,), 5.0).double()
