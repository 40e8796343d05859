"""The exercises of lesson 2."""

import torch

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import rmsnorm_by_hand as mistakes
from ..properties import Property, tokens_apart

_LESSON = "rmsnorm_by_hand"


def _norm_cases(draw: Draw) -> list[Case]:
    """The smallest numbers first; eps, weight, axes and dtypes each have an input of their own."""
    ones = torch.ones(2)
    B, S, H = draw.sizes(3)
    n = draw.size(2, 6)
    hidden = draw.normal(B, S, H)
    return [
        Case((torch.tensor([[3.0, 4.0]]), ones, 1e-6)),
        Case((torch.tensor([3.0, 4.0]), ones, 1e-6), "one token alone"),
        Case((torch.tensor([[1.0, 2.0], [3.0, 4.0]]), ones, 1e-6)),
        Case((torch.tensor([[1e-3, -1e-3]]), ones, 1e-6), "a tiny token"),
        Case((torch.tensor([[1e-3, 2e-3]]), ones, 1e-5), "a tiny token"),
        Case((torch.tensor([[1.0, 7.0], [3.0, -1.0]]), torch.tensor([6.0, 12.0]), 11.0)),
        Case((torch.zeros(1, 2), ones, 1e-6), "zeros"),
        Case((hidden, draw.weight(H), 1e-5), "[B, S, H]", gradients=True),
        Case((draw.normal(n, n, n), draw.weight(n), 0.3), "as many texts as tokens as features"),
        Case((draw.normal(H, S).T, draw.weight(H), 1e-6), "a transposed view"),
        Case((100 * draw.normal(2, H).double(), draw.weight(H).double(), 1e-6), "float64"),
        Case((torch.tensor([[300.0, -300.0]]).half(), ones.half(), 1e-6), "fp16"),
        Case((torch.tensor([[1e-4, -1e-4]]).half(), ones.half(), 1e-8), "fp16"),
        # Chosen so that rounding anything before the end shows: 2 and 5 come out a step away.
        Case((torch.tensor([[2.0, 2.0, 5.0]]).bfloat16(), torch.ones(3).bfloat16(), 1e-6), "bf16", tolerance=1e-3),
        Case((draw.normal(2, S, H).bfloat16(), draw.weight(H).bfloat16(), 1e-5), "bf16"),
    ]


def _norm_properties(draw: Draw) -> list[Property]:
    x, weight = draw.normal(2, 3, 4), torch.ones(4)

    def ignores_scale(f):
        if torch.allclose(f(x, weight, 1e-9), f(8 * x, weight, 1e-9), rtol=1e-3):
            return None
        return "Eight times the token does not give the same output: it should, but for eps."

    def has_rms_1(f):
        rms = f(x, weight, 1e-9).square().mean(-1).sqrt().flatten()[0].item()
        return None if abs(rms - 1) < 1e-3 else f"With weight 1 the output has RMS {rms:.4g}, not 1."

    def keeps_direction(f):
        cosine = torch.cosine_similarity(f(x, weight, 1e-9), x, dim=-1).min().item()
        return None if cosine > 0.999 else "With weight 1 the output points another way than the token."

    def takes_zeros(f):
        return None if f(torch.zeros(1, 4), weight, 1e-6).isfinite().all() else "A token of zeros gives nan or inf."

    return [
        tokens_apart((x, weight, 1e-6)),
        Property("sees-scale", "What should a token be divided by, if its length is not to matter?", ignores_scale),
        Property("direction-changed", "Is every feature of a token divided by the same number?", keeps_direction),
        Property("rms-not-1", "What do the squares of your output average to, and why?", has_rms_1),
        Property("zeros", "What keeps the denominator away from 0?", takes_zeros),
    ]


_HINTS = (
    "Which axis holds the features of one token, and what keeps that axis in place after a mean?",
    "Three steps: the mean of squares over the last axis, in fp32; times the inverse root, with eps inside; "
    "back to the dtype of x, then the weight.",
    "wide = x.float(); wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) is the normalized token, "
    "still in fp32 and without its weight.",
)


@exercise(cases=_norm_cases, mistakes=mistakes.RMS_NORM, hints=_HINTS, properties=_norm_properties)
def rms_norm(x, weight, eps):
    wide = x.float()
    mean_square = wide.square().mean(-1, keepdim=True)
    normalized = wide * torch.rsqrt(mean_square + eps)
    return weight * normalized.to(x.dtype)


def _grad_cases(draw: Draw) -> list[Case]:
    B, S, H = draw.sizes(3)
    n = draw.size(2, 6)
    ones = torch.ones(2)
    two = torch.tensor([[[3.0, 4.0], [1.0, -2.0]]])
    return [
        Case((two[:, :1], ones, 1e-6, torch.tensor([[[1.0, 0.0]]]))),
        Case((two, torch.tensor([2.0, 3.0]), 1e-6, torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))),
        Case((two, torch.tensor([2.0, 3.0]), 11.0, torch.ones(1, 2, 2)), "a large eps"),
        Case((draw.normal(B, S, H), draw.weight(H), 1e-5, draw.normal(B, S, H)), "[B, S, H]"),
        Case((draw.normal(n, n, n), draw.weight(n), 0.3, draw.normal(n, n, n)), "all sizes equal"),
        Case((1e-3 * draw.normal(B, S, H), draw.weight(H), 1e-6, draw.normal(B, S, H)), "tiny tokens"),
        Case((draw.normal(B, S, H).double(), draw.weight(H).double(), 1e-6, draw.normal(B, S, H).double()), "float64"),
    ]  # fmt: skip


def _grad_properties(draw: Draw) -> list[Property]:
    x, weight, back = draw.normal(2, 3, 4), draw.weight(4), draw.normal(2, 3, 4)

    def at_right_angles(f):
        cosine = torch.cosine_similarity(f(x, weight, 1e-9, back)[0], x, dim=-1).abs().max().item()
        if cosine < 1e-3:
            return None
        return "grad_x is not at right angles to the token: it should be, since its length does not matter."

    def tokens_add_up(f):
        apart = f(x[:1], weight, 0.1, back[:1])[1] + f(x[1:], weight, 0.1, back[1:])[1]
        if torch.allclose(apart, f(x, weight, 0.1, back)[1], rtol=1e-3, atol=1e-4):
            return None
        return "grad_weight of two texts is not the sum of those of each."

    return [
        Property("not-at-right-angles", "Through which two ways does x move the output?", at_right_angles),
        Property("not-added-up", "Over which axes is the weight shared?", tokens_add_up),
    ]


_GRAD_HINTS = (
    "Moving x changes y directly, and through r. How many terms has grad_x then, and over which axes is the "
    "gradient of the shared weight added up?",
    "∂r/∂x_j = −r³ x_j / H. Every feature of y contains r, so the second term has a mean over the features; "
    "grad_weight is a sum over all tokens.",
    "With wg = weight * grad_output: the direct term is r * wg, and r**3 * x * (the mean of wg * x over the "
    "features) is subtracted from it. grad_weight is the sum over tokens of grad_output * x * r.",
)


@exercise(
    cases=_grad_cases, mistakes=mistakes.RMS_NORM_GRAD, hints=_GRAD_HINTS, properties=_grad_properties,
    outputs=("grad_x", "grad_weight"),
)  # fmt: skip
def rms_norm_grad(x, weight, eps, grad_output):
    r = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    wg = weight * grad_output
    grad_x = r * wg - r**3 * x * (wg * x).mean(-1, keepdim=True)
    return grad_x, (grad_output * x * r).sum((0, 1))


constant_token = Answer(
    "constant_token",
    lesson=_LESSON,
    right={"rms_norm": [1.0, 1.0, 1.0, 1.0], "layer_norm": [0.0, 0.0, 0.0, 0.0]},
    mistakes=mistakes.CONSTANT_TOKEN,
    hints=(
        "What is the root mean square of [5, 5, 5, 5]? And what is left of it without its mean?",
        "RMSNorm divides by the RMS; LayerNorm first subtracts the mean.",
        "The RMS is 5, and the mean is 5.",
    ),
    because="The RMS of the token is 5, so RMSNorm makes every feature 1. LayerNorm subtracts the mean, 5: "
    "nothing is left. A constant token survives one and not the other.",
)


@exercise(
    cases=_norm_cases, mistakes=mistakes.ONE_PLUS_RMS_NORM,
    hints=(
        "By which number is a feature multiplied when its weight is 0?",
        "Everything as in your rms_norm; only the factor at the end is another.",
        "The last line multiplies by (1 + weight).",
    ),
)  # fmt: skip
def one_plus_rms_norm(x, weight, eps):
    wide = x.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (1 + weight) * normalized.to(x.dtype)


@exercise(
    cases=_norm_cases, mistakes=mistakes.RMS_NORM, hints=_HINTS, properties=_norm_properties,
    given=mistakes.RMS_NORM["left-in-fp32"].functions[0],
)  # fmt: skip
def repair_rms_norm(x, weight, eps):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)
