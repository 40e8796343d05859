"""The exercises of lesson 2."""

import torch

from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import rmsnorm_by_hand as mistakes
from ..properties import Property, tokens_apart


def _norm_cases(draw: Draw) -> list[Case]:
    """The smallest numbers first; eps, weight, axes and dtypes each have an input of their own."""
    ones = torch.ones(2)
    B, S, H = draw.sizes(3)
    n = draw.size(2, 6)
    hidden = draw.normal(B, S, H)
    return [
        Case((torch.tensor([[3.0, 4.0]]), ones, 1e-6)),
        Case((torch.tensor([[3.0, 4.0]]), torch.tensor([2.0, 3.0]), 1e-6)),
        Case((torch.tensor([3.0, 4.0]), ones, 1e-6), "one token alone"),
        Case((torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), ones, 1e-6)),
        Case((torch.tensor([[1e-3, -1e-3]]), ones, 1e-6), "a tiny token"),
        Case((torch.tensor([[1e-3, 2e-3]]), ones, 1e-5), "a tiny token"),
        Case((torch.tensor([[1.0, 7.0], [3.0, -1.0]]), torch.tensor([6.0, 12.0]), 11.0)),
        Case((torch.zeros(1, 2), ones, 1e-6), "zeros"),
        Case((hidden, draw.weight(H), 1e-5), "[B, S, H]", gradients=True),
        Case((draw.normal(n, n, n), draw.weight(n), 0.3), "all sizes equal"),
        Case((draw.normal(H, S).T, draw.weight(H), 1e-6), "a transposed view"),
        Case((100 * draw.normal(2, H).double(), draw.weight(H).double(), 1e-6), "float64"),
        Case((torch.tensor([[300.0, -300.0]]).half(), ones.half(), 1e-6), "fp16"),
        Case((torch.tensor([[1e-4, -1e-4]]).half(), ones.half(), 1e-8), "fp16"),
        # Chosen so that rounding anything before the end shows: 2 and 5 come out a step away.
        Case(
            (torch.tensor([[2.0, 2.0, 5.0]]).bfloat16(), torch.ones(3).bfloat16(), 1e-6),
            "bf16",
            tolerance=1e-3,
        ),
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
        return (
            None
            if f(torch.zeros(1, 4), weight, 1e-6).isfinite().all()
            else "A token of zeros gives nan or inf."
        )

    return [
        tokens_apart((x, weight, 1e-6)),
        Property(
            "sees-scale", "What should a token be divided by, if its length is not to matter?", ignores_scale
        ),
        Property(
            "direction-changed", "Is every feature of a token divided by the same number?", keeps_direction
        ),
        Property("rms-not-1", "What do the squares of your output average to, and why?", has_rms_1),
        Property("zeros", "What keeps the denominator away from 0?", takes_zeros),
    ]


_HINTS = (
    "Which axis holds the features of one token, and what keeps that axis in place after a mean?",
    "Which of your steps need fp32, and after which one does the lesson go back? Where does the weight "
    "come in: before or after that?",
    "With wide = x.float(), the normalized token is wide times torch.rsqrt of (wide.square().mean(-1, "
    "keepdim=True) "
    "+ eps). Back to x.dtype with it, and then the weight.",
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
    two, ones, weight = torch.tensor([[[3.0, 4.0], [1.0, -2.0]]]), torch.ones(2), torch.tensor([2.0, 3.0])
    back = torch.tensor([[[1.0, 0.0], [1.0, 2.0]]])
    return [
        Case((two, ones, 1e-6, back)),
        Case((two, weight, 1e-6, back)),
        Case((two, weight, 11.0, back), "a large eps"),
        Case((torch.cat((two, 2 * two)), ones, 1.0, torch.cat((back, back))), "two texts"),
        Case((two, torch.tensor([0.0, 3.0]), 1e-6, back), "a weight of 0"),
        Case((draw.normal(B, S, H), draw.weight(H), 1e-5, draw.normal(B, S, H)), "[B, S, H]"),
        Case((draw.normal(n, n, n), draw.weight(n), 0.3, draw.normal(n, n, n)), "all sizes equal"),
        Case((1e-3 * draw.normal(B, S, H), draw.weight(H), 1e-6, draw.normal(B, S, H)), "tiny tokens"),
        Case((draw.normal(B, S, H).double(), draw.weight(H).double(), 1e-6, draw.normal(B, S, H).double())),
    ]


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
        Property(
            "not-at-right-angles",
            "x moves the output directly and through r. Is each of the two terms complete, with every "
            "factor and its sign?",
            at_right_angles,
        ),
        Property("not-added-up", "Over which axes is the weight shared?", tokens_add_up),
    ]


_GRAD_HINTS = (
    "Moving x changes y directly, and through r. How many terms does grad_x have then, and over which axes "
    "is the gradient of the shared weight added up?",
    "What is the slope of r with respect to x_j? Which features of y contain r, and what does that mean for "
    "the second term? And how many tokens share one weight?",
    "∂r/∂x_j = −r³ x_j / H. With wg = weight * grad_output: the direct term is r * wg, and r**3 * x * (the "
    "mean of wg * x over the features) is subtracted from it. grad_weight is the sum over all tokens of "
    "grad_output * x * r.",
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
    lesson=__name__,
    right={"rms_norm": [1.0, 1.0, 1.0, 1.0], "layer_norm": [0.0, 0.0, 0.0, 0.0]},
    mistakes=mistakes.CONSTANT_TOKEN,
    hints=(
        "What is the root mean square of [5, 5, 5, 5]? And what is left of the token without its mean?",
        "Write down the first step of each norm, and do both by hand. The lesson has them in one table.",
        "RMSNorm divides by the RMS, 5. LayerNorm first subtracts the mean, 5.",
    ),
    because="The RMS of the token is 5, so RMSNorm makes every feature 1. LayerNorm subtracts the mean, 5: "
    "nothing is left. A constant token survives one and not the other.",
)


def _one_plus_cases(draw: Draw) -> list[Case]:
    """Weights of 0, where this family starts, before the others."""
    token = torch.tensor([[3.0, 4.0]])
    return [
        Case((token, torch.zeros(2), 1e-6), "weight 0"),
        Case((token, torch.tensor([1.0, 3.0]), 1e-6)),
        *_norm_cases(draw),
    ]


@exercise(
    cases=_one_plus_cases,
    mistakes=mistakes.ONE_PLUS_RMS_NORM,
    hints=(
        "By which number is a feature multiplied when its weight is 0?",
        "Only the factor at the end differs from your rms_norm. Read again what the exercise multiplies by.",
        "The last line multiplies by (1 + weight).",
    ),
)
def one_plus_rms_norm(x, weight, eps):
    wide = x.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (1 + weight) * normalized.to(x.dtype)


def _left_in_fp32(x, weight, eps):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight.float() * wide


def _repair_cases(draw: Draw) -> list[Case]:
    """To the last bit: the tolerance is below one step of bf16."""
    token, weight = torch.tensor([[1.0, 5.0]]).bfloat16(), torch.tensor([7.0, 7.0]).bfloat16()
    return [
        Case((torch.tensor([[2.0, 2.0, 5.0]]).bfloat16(), torch.ones(3).bfloat16(), 1e-6), tolerance=1e-3),
        Case((token, weight, 1e-6), tolerance=1e-3),
        *_norm_cases(draw),
    ]


@exercise(
    cases=_repair_cases,
    mistakes=mistakes.REPAIR_RMS_NORM,
    hints=(
        "Which dtype does each factor of the last line have, and which one does their product have?",
        "Where does Llama go back to 16 bits: before the weight comes in, or after it?",
        "wide goes back to x.dtype, and the weight stays as it came.",
    ),
    properties=_norm_properties,
    given=_left_in_fp32,
)
def repair_rms_norm(x, weight, eps):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)
