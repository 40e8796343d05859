"""Mistakes in SwiGLU and in the rule for its width."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from ..mistake import Catalogue

SWIGLU = Catalogue()
INTERMEDIATE_SIZE = Catalogue()
DOUBLED_TOKEN = Catalogue()
SIGMOID_TWIN = Catalogue()
MULTIPLIERS = Catalogue()
FUSED_SWIGLU = Catalogue()


def _with_gate(curve):
    """SwiGLU, right but for the curve that makes the gate."""

    def swiglu(x, gate_weight, up_weight, down_weight):
        return F.linear(curve(F.linear(x, gate_weight)) * F.linear(x, up_weight), down_weight)

    return swiglu


def _joined(join):
    """SwiGLU, right but for what is done with z and the candidates before the down-projection."""

    def swiglu(x, gate_weight, up_weight, down_weight):
        return F.linear(join(F.linear(x, gate_weight), F.linear(x, up_weight)), down_weight)

    return swiglu


def _right(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(F.linear(x, gate_weight)) * F.linear(x, up_weight), down_weight)


SWIGLU.add(
    "gate-and-up-exchanged",
    "SiLU is on the candidates: gate and up have changed places.",
    "Which of the two projections is the candidate, and which is turned into a gate?",
    "Follow gate_weight through your lines: does its product with x pass through SiLU?",
    "SiLU goes around the projection by gate_weight; the one by up_weight stays as it is.",
)(_joined(lambda z, up: z * F.silu(up)))

SWIGLU.add(
    "sigmoid-for-silu",
    "The gate is the sigmoid of z alone: it can neither amplify nor turn a candidate over.",
    "Under Who sets the gates? is a table. Is the gate of z = 2 in its column sigmoid, or in SiLU?",
    "SiLU is built from the sigmoid. Which factor is not there yet?",
    "SiLU(z) is z * torch.sigmoid(z), or F.silu(z).",
)(_with_gate(torch.sigmoid))

SWIGLU.add(
    "gelu-for-silu",
    "The gate is made by GELU, not by SiLU.",
    "Which curve gives the Swi of SwiGLU its name?",
    "GELU makes GEGLU, another member of the family. Look at the line that computes the gate.",
    "F.silu in place of F.gelu.",
)(_with_gate(F.gelu))


@SWIGLU.also("gelu-for-silu")
def _(x, gate_weight, up_weight, down_weight):
    return _with_gate(lambda z: F.gelu(z, approximate="tanh"))(x, gate_weight, up_weight, down_weight)


SWIGLU.add(
    "quick-gelu",
    "The gate is z · σ(1.702 z): a quick form of GELU, not SiLU.",
    "Which number does the sigmoid of SiLU get to see?",
    "Look for a factor inside your sigmoid.",
    "z * torch.sigmoid(z), with nothing in front of the second z.",
)(_with_gate(lambda z: z * torch.sigmoid(1.702 * z)))

SWIGLU.add(
    "relu-for-silu",
    "The gate is made by ReLU: a negative z gives exactly 0.",
    "What is the gate of z = -1 in the table under Who sets the gates?",
    "SiLU dips below 0 where ReLU is flat. Look at the line that computes the gate.",
    "F.silu in place of F.relu.",
    on="z below 0",
)(_with_gate(F.relu))

SWIGLU.add(
    "tanh-for-silu",
    "The gate is the tanh of z: it stays between -1 and 1.",
    "What is the gate of z = 2 in the table under Who sets the gates?",
    "A SiLU gate has no upper end. Look at the line that computes the gate.",
    "F.silu in place of torch.tanh.",
)(_with_gate(torch.tanh))

SWIGLU.add(
    "negative-gates-closed",
    "A gate below 0 is cut off at 0: it cannot turn a candidate over.",
    "What is the gate of z = -1 in the table under Who sets the gates?",
    "SiLU dips below 0, and that is meant so. Which step of yours stops it there?",
    "F.silu(z) as it is, without clamp and without F.relu.",
    on="z below 0",
)(_with_gate(lambda z: F.silu(z).clamp(min=0)))

SWIGLU.add(
    "gates-clamped",
    "The gates are held between 0 and 1, as if they were shares.",
    "What is the gate of z = 2 in the table under Who sets the gates?",
    "A SiLU gate may be below 0, and above 1. Which step of yours holds it back?",
    "F.silu(z) as it is, without clamp.",
)(_with_gate(lambda z: F.silu(z).clamp(0, 1)))

SWIGLU.add(
    "softmax-in-silu",
    "In the place of the sigmoid there is a softmax: the gates of a token compete.",
    "If one z grows, may the other gates shrink?",
    "The second factor of SiLU is made from its own z alone. Which curve is it?",
    "F.silu(z), or z * torch.sigmoid(z).",
    on="H = D",
)(_with_gate(lambda z: z * torch.softmax(z, -1)))

SWIGLU.add(
    "softmax-for-silu",
    "The gates are a softmax: they compete, and add up to 1.",
    "If one z grows, may the other gates shrink?",
    "Each gate is made from its own z alone, by one curve.",
    "F.silu in place of softmax: it works entry by entry, and needs no axis.",
    on="H = D",
)(_with_gate(lambda z: torch.softmax(z, -1)))


@SWIGLU.also("softmax-for-silu")
def _(x, gate_weight, up_weight, down_weight):
    return _with_gate(lambda z: torch.softmax(z, -2))(x, gate_weight, up_weight, down_weight)


SWIGLU.add(
    "no-activation",
    "There is no SiLU: z itself is the gate.",
    "What turns z into a gate?",
    "Without a curve this is two projections multiplied, a bilinear unit. Compare with step 2.",
    "F.silu around the projection by gate_weight.",
)(_joined(lambda z, up: z * up))

SWIGLU.add(
    "sigmoid-of-minus-z",
    "The sigmoid has the wrong sign inside: the gate is z · σ(-z).",
    "Should a large z open the gate or close it?",
    "σ(z) is 1 / (1 + e to the power of minus z). Check your sign at z = 2, where SiLU is 1.7616.",
    "F.silu(z), or z * torch.sigmoid(z).",
)(_with_gate(lambda z: z * torch.sigmoid(-z)))


@SWIGLU.also("sigmoid-of-minus-z")
def _(x, gate_weight, up_weight, down_weight):
    return _with_gate(lambda z: z / (1 + torch.exp(z)))(x, gate_weight, up_weight, down_weight)


SWIGLU.add(
    "sigmoid-of-the-candidates",
    "The sigmoid is taken of the candidates, and it multiplies z: there is no SiLU of z.",
    "Which of the two numbers does your sigmoid get to see, and which one should it?",
    "F.glu puts a sigmoid around the second half. What does SwiGLU put around the gate's half?",
    "F.silu(z) * up, without F.glu.",
)(_joined(lambda z, up: z * torch.sigmoid(up)))

SWIGLU.add(
    "sigmoid-on-top-of-silu",
    "SiLU and a sigmoid as well: the sigmoid counts twice.",
    "How many sigmoids are there in SiLU already?",
    "Look for silu and sigmoid around the same z.",
    "F.silu(z) is z * torch.sigmoid(z), complete: multiply it by the candidate and by nothing else.",
)(_with_gate(lambda z: F.silu(z) * torch.sigmoid(z)))


@SWIGLU.also("sigmoid-on-top-of-silu")
def _(x, gate_weight, up_weight, down_weight):
    return _with_gate(lambda z: F.silu(torch.sigmoid(z)))(x, gate_weight, up_weight, down_weight)


SWIGLU.add(
    "z-twice",
    "The gate contains z twice: it is z · SiLU(z).",
    "SiLU(z) has a factor z inside. Is there another one outside?",
    "At z = 2 the gate is 1.7616. What is yours?",
    "The gate is F.silu(z), and z appears nowhere else.",
)(_with_gate(lambda z: z * F.silu(z)))

SWIGLU.add(
    "silu-on-both",
    "SiLU is on both branches: the candidates are bent as well.",
    "How many curves are there in the formula of SwiGLU?",
    "Step 1 has no curve: a candidate is a plain projection.",
    "SiLU goes around the projection by gate_weight only.",
)(_joined(lambda z, up: F.silu(z) * F.silu(up)))

SWIGLU.add(
    "silu-after-product",
    "It multiplies first and applies SiLU to the product.",
    "What is finished first: the gate, or the product?",
    "Step 2 comes before step 3. Which of your brackets closes too late?",
    "F.silu(z) * up, not F.silu(z * up).",
)(_joined(lambda z, up: F.silu(z * up)))

SWIGLU.add(
    "branches-added",
    "Gate and candidate are added, not multiplied.",
    "What should be left of a candidate when its gate is 0?",
    "Look at the line that joins the two branches: step 3.",
    "gate * up, entry by entry.",
)(_joined(lambda z, up: F.silu(z) + up))

SWIGLU.add(
    "gate-branch-alone",
    "The candidates are missing: only SiLU of the first projection goes into the down-projection.",
    "A gate is a factor. What does it multiply?",
    "Look for up_weight in your lines: what becomes of it?",
    "Multiply F.silu(F.linear(x, gate_weight)) by F.linear(x, up_weight) before the down-projection.",
)(_joined(lambda z, up: F.silu(z)))

SWIGLU.add(
    "up-branch-alone",
    "The gate is missing: SiLU is put around the candidates, as in a plain feed-forward network.",
    "Who sets the gates, and from which matrix?",
    "Look for gate_weight in your lines: what becomes of it?",
    "The gate is F.silu(F.linear(x, gate_weight)), and it multiplies F.linear(x, up_weight).",
)(_joined(lambda z, up: F.silu(up)))


@SWIGLU.add(
    "no-gate",
    "There is no gate: the candidates go straight into the down-projection.",
    "Who sets the gates, and from which matrix?",
    "Look for gate_weight in your lines: what becomes of it?",
    "The gate is F.silu(F.linear(x, gate_weight)), and it multiplies the candidates.",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.linear(x, up_weight), down_weight)


SWIGLU.add(
    "gate-weight-twice",
    "Both branches use gate_weight: z times its own gate.",
    "From which matrix does each of the two branches come?",
    "Look for up_weight in your lines: is it used where the candidates are made?",
    "The candidates are F.linear(x, up_weight).",
)(_joined(lambda z, up: F.silu(z) * z))

SWIGLU.add(
    "up-weight-twice",
    "Both branches use up_weight: each candidate sets its own gate.",
    "From which matrix does each of the two branches come?",
    "Look for gate_weight in your lines: is it used where z is made?",
    "z is F.linear(x, gate_weight).",
)(_joined(lambda z, up: F.silu(up) * up))


@SWIGLU.add(
    "silu-before-projection",
    "SiLU is applied to the token, before the projection.",
    "Of which numbers does SiLU make gates: of the features of x, or of z?",
    "First the matrix, then the curve. Which of the two is inside in your line?",
    "F.silu(F.linear(x, gate_weight)).",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.linear(F.silu(x), gate_weight) * F.linear(x, up_weight), down_weight)


@SWIGLU.also("silu-before-projection")
def _(x, gate_weight, up_weight, down_weight):
    bent = F.silu(x)
    return F.linear(F.linear(bent, gate_weight) * F.linear(bent, up_weight), down_weight)


@SWIGLU.add(
    "silu-of-a-matrix",
    "SiLU is put around gate_weight itself, before it has met the token.",
    "Of which numbers does SiLU make gates: of a matrix, or of z?",
    "A matrix is the same for every token. What could open a gate for one token and close it for another?",
    "First the projection, then the curve: F.silu(F.linear(x, gate_weight)).",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.linear(x, F.silu(gate_weight)) * F.linear(x, up_weight), down_weight)


@SWIGLU.also("silu-of-a-matrix")
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.linear(x, F.silu(gate_weight) * up_weight), down_weight)


@SWIGLU.add(
    "matrices-multiplied",
    "The two matrices are multiplied, entry by entry, not the two projections of the token.",
    "What is multiplied in step 3: numbers of a matrix, or numbers of a token?",
    "How often does x meet a matrix in your function, before the down-projection?",
    "Two projections of x, one by each matrix; the gate times the candidate comes after that.",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(F.linear(x, gate_weight * up_weight)), down_weight)


@SWIGLU.also("matrices-multiplied")
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.linear(x, gate_weight * up_weight), down_weight)


@SWIGLU.add(
    "gates-of-one-token",
    "All tokens are given the gates of the first one.",
    "Who sets the gates of the second token?",
    "Look for an index or a slice in the line of the gate. Over which axis does it run?",
    "F.silu(F.linear(x, gate_weight)) has gates for every token already: no index is needed.",
)
def _(x, gate_weight, up_weight, down_weight):
    gate = F.silu(F.linear(x, gate_weight))
    gate = gate[..., :1, :] if gate.dim() > 1 else gate
    return F.linear(gate * F.linear(x, up_weight), down_weight)


@SWIGLU.also("gates-of-one-token")
def _(x, gate_weight, up_weight, down_weight):
    gate = F.silu(F.linear(x, gate_weight))[..., :1, :]
    return F.linear(gate * F.linear(x, up_weight), down_weight)


@SWIGLU.add(
    "silu-at-the-end",
    "SiLU comes last, after the down-projection.",
    "What is the gate in your function, at the moment when it meets the candidate?",
    "A gate is finished before it multiplies anything. Nothing follows step 4.",
    "SiLU goes around the projection by gate_weight, and the down-projection is the last step.",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.silu(F.linear(F.linear(x, gate_weight) * F.linear(x, up_weight), down_weight))


@SWIGLU.also("silu-at-the-end")
def _(x, gate_weight, up_weight, down_weight):
    return F.silu(_right(x, gate_weight, up_weight, down_weight))


@SWIGLU.add(
    "residual-added",
    "It adds x to the result: that is the sum outside, not the change Δ.",
    "Who adds Δ to the token: your function, or the layer around it?",
    "Steps 1 to 4 belong to the function. What is step 5?",
    "Return the down-projection alone, without x.",
)
def _(x, gate_weight, up_weight, down_weight):
    return x + _right(x, gate_weight, up_weight, down_weight)


@SWIGLU.add(
    "token-gated",
    "The gates multiply the token: the candidates are not there.",
    "What does a gate multiply: a feature of x, or a candidate?",
    "There are D gates and D candidates. Look for up_weight in your lines.",
    "Multiply by F.linear(x, up_weight), and project the products down.",
)
def _(x, gate_weight, up_weight, down_weight):
    return x * F.linear(F.silu(F.linear(x, gate_weight)), down_weight)


@SWIGLU.add(
    "projected-down-too-early",
    "Each branch is projected down before the two are multiplied.",
    "How many numbers of a token are multiplied in step 3: D, or H?",
    "The down-projection mixes finished products. How often do you use down_weight?",
    "F.linear(gate * up, down_weight): one product inside, one down-projection around it.",
)
def _(x, gate_weight, up_weight, down_weight):
    gate, up = F.silu(F.linear(x, gate_weight)), F.linear(x, up_weight)
    return F.linear(gate, down_weight) * F.linear(up, down_weight)


@SWIGLU.add(
    "down-projection-missing",
    "The down-projection is missing: D numbers come back for each token.",
    "How many features does the residual stream expect?",
    "Compare the last axis of your result with that of x. Which step is left?",
    "F.linear(…, down_weight) around the product.",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.silu(F.linear(x, gate_weight)) * F.linear(x, up_weight)


@SWIGLU.add(
    "weights-not-transposed",
    "`@` without a transpose: the weights meet x from the wrong side.",
    "Which axis of gate_weight is H, and which axis of it does `x @ gate_weight` add over?",
    "A weight is [out, in], as in lesson 3. `@` wants the axis that disappears to come first.",
    "x @ gate_weight.T is F.linear(x, gate_weight); the same for the other two.",
)
def _(x, gate_weight, up_weight, down_weight):
    return (F.silu(x @ gate_weight) * (x @ up_weight)) @ down_weight


@SWIGLU.add(
    "down-weight-not-transposed",
    "down_weight meets the product from the wrong side: a transpose is missing in the last step.",
    "Which axis of down_weight is D, and which axis of it does your last line add over?",
    "down_weight is [H, D], as a weight [out, in]. Do you treat it as the other two?",
    "product @ down_weight.T is F.linear(product, down_weight).",
)
def _(x, gate_weight, up_weight, down_weight):
    return (F.silu(F.linear(x, gate_weight)) * F.linear(x, up_weight)) @ down_weight


@SWIGLU.also("down-weight-not-transposed")
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(F.linear(x, gate_weight)) * F.linear(x, up_weight), down_weight.T)


@SWIGLU.add(
    "gate-and-up-not-transposed",
    "gate_weight and up_weight meet x from the wrong side: a transpose is missing in the first steps.",
    "Which axis of gate_weight is H, and which axis of it does your line add over?",
    "gate_weight and up_weight are [D, H], as a weight [out, in]. Do you treat them as down_weight?",
    "x @ gate_weight.T is F.linear(x, gate_weight).",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(x @ gate_weight) * (x @ up_weight), down_weight)


def _reshaped(*which, way=torch.Tensor.reshape):
    """SwiGLU with `@`; weights in these places are reshaped, not transposed."""

    def swiglu(x, *weights):
        turned = [way(w, *w.shape[::-1]) if i in which else w.T for i, w in enumerate(weights)]
        gate, up, down = turned
        return (F.silu(x @ gate) * (x @ up)) @ down

    return swiglu


SWIGLU.add(
    "weights-reshaped",
    "A matrix is reshaped where it should be transposed: the sizes fit, and the numbers stand elsewhere.",
    "Reshape [[1, 2, 3], [4, 5, 6]] to [3, 2], and transpose it: what is the first row of each?",
    "Look for reshape or view around a weight: they leave the numbers in their order.",
    "weight.T turns a matrix over; F.linear(x, weight) does that for you.",
)(_reshaped(2))

for _which in [(0, 1), (0, 1, 2)]:
    SWIGLU.also("weights-reshaped")(_reshaped(*_which))
for _which in [(2,), (0, 1), (0, 1, 2)]:  # a view of transposed views raises
    SWIGLU.also("weights-reshaped")(_reshaped(*_which, way=torch.Tensor.view))


@SWIGLU.add(
    "two-axes-only",
    "It works for x with two axes only.",
    "Which axes may stand in front of the features?",
    "torch.mm wants two axes, no more and no fewer; `@` and F.linear take as many as there are.",
    "F.linear(x, weight), or x @ weight.T.",
)
def _(x, gate_weight, up_weight, down_weight):
    return torch.mm(F.silu(torch.mm(x, gate_weight.T)) * torch.mm(x, up_weight.T), down_weight.T)


@SWIGLU.add(
    "three-axes-only",
    "It works for x with three axes only.",
    "Which axes may stand in front of the features?",
    "The letters of an einsum, an unpacked shape and torch.bmm count axes; `@` and F.linear do not.",
    'F.linear(x, weight), or `...` in place of the letters in front: "...h,dh->...d".',
)
def _(x, gate_weight, up_weight, down_weight):
    _, _, _ = x.shape
    return _right(x, gate_weight, up_weight, down_weight)


@SWIGLU.add(
    "batch-flattened",
    "The axes in front of the features are merged into one, and stay so.",
    "Shape in, shape out: is that so for x of three axes?",
    "Look for a reshape, a view or a flatten that has no way back.",
    "Leave the axes alone: F.linear takes any number of them. Or end with .reshape(x.shape).",
)
def _(x, gate_weight, up_weight, down_weight):
    return _right(x.reshape(-1, x.shape[-1]), gate_weight, up_weight, down_weight)


@SWIGLU.add(
    "axes-of-one-dropped",
    "An axis of size 1 disappears.",
    "Shape in, shape out: is that so for one text of one token?",
    "Look for squeeze.",
    "Leave the axes alone: the result has the shape of x.",
)
def _(x, gate_weight, up_weight, down_weight):
    return _right(x, gate_weight, up_weight, down_weight).squeeze()


@SWIGLU.add(
    "branch-detached",
    "The values are right, but one of the two branches is cut from the gradient.",
    "x moves the output in two ways: by the gate and by the candidate. Which of them does your gradient see?",
    "Look for detach, no_grad, .data or .item() in the lines of the two branches.",
    "Let autograd see every step: both projections, SiLU and the product.",
)
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(F.linear(x, gate_weight)).detach() * F.linear(x, up_weight), down_weight)


@SWIGLU.also("branch-detached")
def _(x, gate_weight, up_weight, down_weight):
    return F.linear(F.silu(F.linear(x, gate_weight)) * F.linear(x, up_weight).detach(), down_weight)


SWIGLU.add(
    "exp-overflows",
    "In fp16 z = -12 gives 0: a power of e went beyond 65504, where fp16 ends.",
    "How large is e to the power of 12?",
    "Look for exp in your lines. It is infinity there, and a number divided by infinity is 0.",
    "F.silu(z), or z * torch.sigmoid(z): neither of them overflows.",
)(_with_gate(lambda z: z / (1 + torch.exp(-z))))

SWIGLU.add(
    "exp-overflows-to-nan",
    "In fp16 z = 12 gives nan: a power of e went beyond 65504, where fp16 ends.",
    "How large is e to the power of 12?",
    "Look for exp in your lines. It is infinity there, and infinity divided by infinity is nan.",
    "F.silu(z), or z * torch.sigmoid(z): neither of them overflows.",
)(_with_gate(lambda z: z * torch.exp(z) / (1 + torch.exp(z))))


@SWIGLU.add(
    "left-in-fp32",
    "The result stays in fp32, whatever came in.",
    "Which dtype does the next layer expect?",
    "Look for float() in your lines. What was the dtype of x?",
    "Leave the dtype alone, or end with .to(x.dtype).",
)
def _(x, gate_weight, up_weight, down_weight):
    return _right(x.float(), gate_weight.float(), up_weight.float(), down_weight.float())


def _up(size, multiple_of):
    return multiple_of * ((size + multiple_of - 1) // multiple_of)


@INTERMEDIATE_SIZE.add(
    "not-rounded-up",
    "The last step is missing: the result is no multiple of multiple_of.",
    "Can your result be divided by multiple_of?",
    "Look for multiple_of in your lines. In the formula it stands twice.",
    "Divide by multiple_of, go up to the next integer, and multiply by multiple_of again.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return int(multiplier * int(8 * hidden_size / 3))


@INTERMEDIATE_SIZE.add(
    "rounded-down",
    "It rounds down to a multiple, not up.",
    "Does your width come out smaller or larger than 8H/3?",
    "`//` rounds down. The brackets ⌈ ⌉ in the formula mean the other direction.",
    "Add multiple_of - 1 before you divide by it with `//`.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return multiple_of * (int(multiplier * int(8 * hidden_size / 3)) // multiple_of)


@INTERMEDIATE_SIZE.add(
    "rounded-to-nearest",
    "It rounds to the nearest multiple, not always up.",
    "If the size is just above a multiple, which multiple should come out?",
    "`round` goes up or down, whichever is nearer. The brackets ⌈ ⌉ in the formula go one way only.",
    "Add multiple_of - 1, not half of it, before you divide with `//`; or use math.ceil.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return multiple_of * round(int(multiplier * int(8 * hidden_size / 3)) / multiple_of)


@INTERMEDIATE_SIZE.also("rounded-to-nearest")
def _(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * int(8 * hidden_size / 3))
    return multiple_of * ((size + multiple_of // 2) // multiple_of)


@INTERMEDIATE_SIZE.add(
    "one-multiple-too-many",
    "A size that is a multiple already goes up by one more.",
    "What should come out for a size that is a multiple already?",
    "What do you add before or after the division? Try a size of 800 and a multiple_of of 50.",
    "Add multiple_of - 1 before `//`, one less than a whole multiple.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return multiple_of * (int(multiplier * int(8 * hidden_size / 3)) // multiple_of + 1)


@INTERMEDIATE_SIZE.add(
    "remainder-added",
    "It adds the remainder: that is what is too much, not what is missing to the next multiple.",
    "How far is it from 800 up to the next multiple of 70, and what is 800 % 70?",
    "The remainder leads down to the multiple below. You want the one above.",
    "Add what is missing, -size % multiple_of; or round up with (size + multiple_of - 1) // multiple_of.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    size = int(multiplier * int(8 * hidden_size / 3))
    return size + size % multiple_of


@INTERMEDIATE_SIZE.add(
    "count-of-multiples",
    "It returns how many multiples there are, not the width.",
    "The size on this input is 800, and multiple_of is 50: is 16 the width, or how many times 50 is taken?",
    "In the formula multiple_of stands in front of the brackets too.",
    "Multiply by multiple_of at the end.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return -(-int(multiplier * int(8 * hidden_size / 3)) // multiple_of)


@INTERMEDIATE_SIZE.add(
    "divided-last-only",
    "It comes out as size + multiple_of - 1: no division rounds it down, or a multiplication undoes it.",
    "Is your result a multiple of multiple_of?",
    "`*`, `/` and `//` are worked out from left to right. What is divided in your line, and what is cut off?",
    "multiple_of * ((size + multiple_of - 1) // multiple_of), with a bracket around the whole division.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return int(multiplier * int(8 * hidden_size / 3)) + multiple_of - 1


@INTERMEDIATE_SIZE.also("divided-last-only")
def _(hidden_size, multiple_of, multiplier=1.0):
    return float(int(multiplier * int(8 * hidden_size / 3)) + multiple_of - 1)


@INTERMEDIATE_SIZE.add(
    "bit-mask",
    "It rounds with a bit mask: that is right for powers of 2 only.",
    "Is multiple_of a power of 2 on this input?",
    "A mask clears the last binary digits. Which numbers have nothing but zeros there?",
    "multiple_of * ((size + multiple_of - 1) // multiple_of) rounds to a multiple of any number.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return (int(multiplier * int(8 * hidden_size / 3)) + multiple_of - 1) & -multiple_of


@INTERMEDIATE_SIZE.add(
    "multiple-of-256",
    "It rounds to a multiple of 256, whatever the caller gives.",
    "What is multiple_of on this input, and where does your number come from?",
    "Look for 256 or 255 in your lines.",
    "The function has an argument multiple_of: round up to that.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * int(8 * hidden_size / 3)), 256)


@INTERMEDIATE_SIZE.add(
    "starts-from-4h",
    "It starts from 4H, the width of the plain network.",
    "How many matrices does SwiGLU have, and how many the plain network?",
    "With 4H the parameters are 12H², not 8H². Which share of 4H keeps the budget?",
    "Two thirds of 4H: 8H/3.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 4 * hidden_size), multiple_of)


@INTERMEDIATE_SIZE.also("starts-from-4h")
def _(hidden_size, multiple_of, multiplier=1.0):
    return 4 * hidden_size


@INTERMEDIATE_SIZE.add(
    "starts-from-3h",
    "It starts from 3H, not from 8H/3.",
    "SwiGLU has 3HD parameters. For which D are they 8H²?",
    "Solve 3HD = 8H² for D: what stands beside H?",
    "8 * hidden_size / 3: 8/3 is 2.67, and it is not rounded before H comes in.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 3 * hidden_size), multiple_of)


@INTERMEDIATE_SIZE.also("starts-from-3h")
def _(hidden_size, multiple_of, multiplier=1.0):
    return 3 * hidden_size


@INTERMEDIATE_SIZE.add(
    "starts-from-two-thirds-h",
    "It starts from two thirds of H, not of 4H.",
    "Two thirds of what?",
    "The feed-forward network makes a token wider. Is your result larger than H?",
    "8H/3: two thirds of 4H.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * int(2 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "eight-thirds-cut",
    "8/3 counts as 2: its decimals are cut off before H comes in.",
    "What are 8 // 3 and int(8 / 3)?",
    "A line is worked out from left to right, and what is cut off first is multiplied by H. What is cut in "
    "yours?",
    "8 * hidden_size // 3, or int(8 * hidden_size / 3): first times H.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * (8 // 3 * hidden_size)), multiple_of)


def _decimal(factor):
    """The rule with a decimal number in place of 8/3."""

    def intermediate_size(hidden_size, multiple_of, multiplier=1.0):
        return _up(int(multiplier * int(factor * hidden_size)), multiple_of)

    return intermediate_size


INTERMEDIATE_SIZE.add(
    "decimals-for-8/3",
    "8/3 is written as a decimal number with a few digits: times H, what is left off counts.",
    "How far is your size before rounding up from 8H/3?",
    "8/3 has no end as a decimal number. Does Python need you to write its digits?",
    "8 * hidden_size / 3.",
)(_decimal(2.67))
for _factor in [2.6, 2.66, 2.666, 2.6666, 2.7, 2.667, 2.6667]:
    INTERMEDIATE_SIZE.also("decimals-for-8/3")(_decimal(_factor))


@INTERMEDIATE_SIZE.add(
    "three-eighths",
    "It divides by 8/3 in place of multiplying: 3H/8.",
    "Is the result larger than H, or smaller?",
    "The network makes a token wider. Which of 3 and 8 belongs above?",
    "8 * hidden_size / 3.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * int(3 * hidden_size / 8)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-ignored",
    "The multiplier makes no difference.",
    "What changes in your result when the multiplier goes from 1 to 1.25?",
    "Look for multiplier in your lines. In the formula it stands between the two cuts.",
    "int(multiplier * int(8 * hidden_size / 3)), and then round up.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(8 * hidden_size / 3), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-is-1.3",
    "The multiplier is fixed at 1.3, whatever the caller gives.",
    "What is the multiplier on this input, and where does yours come from?",
    "Look for 1.3 in your lines.",
    "The function has an argument multiplier: multiply by that.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(1.3 * int(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-cut",
    "The multiplier loses its decimals before it multiplies: 1.3 counts as 1.",
    "What is int(1.3)?",
    "Look at what stands inside the brackets of your `int`. What does 1.3 become there?",
    "int(multiplier * size), not int(multiplier) * size.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier) * int(8 * hidden_size / 3), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-after-rounding",
    "It rounds up before it multiplies by the multiplier.",
    "Which comes last in your function: the multiplier, or the rounding up to a multiple?",
    "In the formula, is the multiplier inside the brackets ⌈ ⌉ or outside?",
    "First int(multiplier * …), and round up as the last step.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return int(multiplier * _up(int(8 * hidden_size / 3), multiple_of))


@INTERMEDIATE_SIZE.also("multiplier-after-rounding")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * _up(int(8 * hidden_size / 3), multiple_of)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-before-thirds",
    "It widens H by the multiplier, cuts, and takes 8/3 only then.",
    "What is cut first: the product with the multiplier, or 8H/3?",
    "Look at the inner brackets ⌊ ⌋ of the formula: what do they hold?",
    "First int(8 * hidden_size / 3), then times the multiplier, and cut again.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(8 * int(multiplier * hidden_size) / 3), multiple_of)


@INTERMEDIATE_SIZE.add(
    "first-cut-missing",
    "It cuts decimals off once only, after the multiplier: 8H/3 keeps its decimals.",
    "How many pairs of brackets ⌊ ⌋ does the formula have?",
    "What is multiplied by the multiplier: 8H/3 with its decimals, or without?",
    "int(8 * hidden_size / 3) comes first; then the multiplier, and a second int.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 8 * hidden_size / 3), multiple_of)


@INTERMEDIATE_SIZE.add(
    "second-cut-missing",
    "After the multiplier it does not cut decimals off: they push the size over a multiple.",
    "How many pairs of brackets ⌊ ⌋ does the formula have?",
    "What goes into your rounding up: a size with decimals, or without?",
    "int(multiplier * …) before the rounding up.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return multiple_of * math.ceil(multiplier * int(8 * hidden_size / 3) / multiple_of)


@INTERMEDIATE_SIZE.add(
    "no-cut",
    "It cuts no decimals off, and rounds once at the end.",
    "How many pairs of brackets ⌊ ⌋ does the formula have?",
    "How many pairs of brackets ⌊ ⌋ has the formula, and what is inside each of them?",
    "int(multiplier * int(8 * hidden_size / 3)) is what gets rounded up.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return multiple_of * math.ceil(multiplier * 8 * hidden_size / 3 / multiple_of)


@INTERMEDIATE_SIZE.add(
    "rounded-not-cut",
    "8H/3 is rounded, not cut: 266.67 becomes 267.",
    "What becomes of 266.67 when its decimals are cut off?",
    "The inner brackets ⌊ ⌋ of the formula go down, always. `round` and `ceil` do not.",
    "int(8 * hidden_size / 3), or 8 * hidden_size // 3.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * round(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.also("rounded-not-cut")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * math.ceil(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.also("rounded-not-cut")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(round(multiplier * round(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.also("rounded-not-cut")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(math.ceil(multiplier * math.ceil(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "second-cut-rounded",
    "After the multiplier the size is rounded, not cut.",
    "What becomes of 292.6 when its decimals are cut off?",
    "The outer brackets ⌊ ⌋ of the formula go down, always. `round` and `ceil` do not.",
    "int(multiplier * …), not round.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(round(multiplier * int(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "cut-too-early",
    "It divides by 3 and cuts before it has multiplied by 8.",
    "For H = 100: what is 800/3 without decimals, and what is yours?",
    "A cut before a multiplication is multiplied too. Which comes first in your line?",
    "8 * hidden_size // 3: multiply first, then divide.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 8 * (hidden_size // 3)), multiple_of)


@INTERMEDIATE_SIZE.also("cut-too-early")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 2 * (4 * hidden_size // 3)), multiple_of)


@INTERMEDIATE_SIZE.also("cut-too-early")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 4 * (2 * hidden_size // 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "float-returned",
    "The number is right on this input, and it is a float.",
    "Can a matrix have 11008.0 rows?",
    "`/` always makes a float, and `//` of a float stays one. Which line of yours is the last to make one?",
    "int(…) around the result, or int(…) around the size before `//`.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return float(_up(int(multiplier * int(8 * hidden_size / 3)), multiple_of))


@INTERMEDIATE_SIZE.also("float-returned")
def _(hidden_size, multiple_of, multiplier=1.0):
    return np.ceil(int(multiplier * int(8 * hidden_size / 3)) / multiple_of) * multiple_of


@INTERMEDIATE_SIZE.add(
    "tensor-returned",
    "The number is right on this input, and it is a tensor.",
    "A width is asked for that nn.Linear can take. Of which type is it?",
    "Which function of yours makes a tensor? Python's own math has one that rounds up as well.",
    "int(…) around the result; or math.ceil in the place of torch.ceil.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return torch.tensor(_up(int(multiplier * int(8 * hidden_size / 3)), multiple_of))


@INTERMEDIATE_SIZE.also("tensor-returned")
def _(hidden_size, multiple_of, multiplier=1.0):
    return torch.tensor(float(_up(int(multiplier * int(8 * hidden_size / 3)), multiple_of)))


@DOUBLED_TOKEN.add(
    "all-four",
    "SwiGLU does not grow fourfold: its sigmoid changes with z.",
    "Is σ(2) the same as σ(1)?",
    "The gate is z · σ(z), and both of its factors change when z doubles.",
    "Compare 2z · σ(2z) with z · σ(z), and do not forget the candidate.",
)
def _():
    return _numbers(4, 4, 4)


@DOUBLED_TOKEN.also("all-four")
def _():
    return _numbers(4, 4, 4 * _ratio(-1))


@DOUBLED_TOKEN.also("all-four")
def _():
    return _numbers(4, 4 * _ratio(1), 4)


@DOUBLED_TOKEN.add(
    "bilinear-once",
    "In the bilinear unit two numbers double, and you count one.",
    "z times candidate: how many of the two double?",
    "Both are projections of the token. Try z = 1 and a candidate of 3, before and after.",
    "2z times twice the candidate: which number stands in front?",
)
def _():
    return _numbers(2, 4 * _ratio(1), 4 * _ratio(-1))


@DOUBLED_TOKEN.add(
    "candidate-forgotten-in-swiglu",
    "For SwiGLU these are the factors of the gate alone: the candidate doubles as well.",
    "What else is computed from the token besides z?",
    "The product is gate times candidate.",
    "Your second and third number are too small by the same factor, that of the candidate.",
)
def _():
    return _numbers(4, 2 * _ratio(1), 2 * _ratio(-1))


@DOUBLED_TOKEN.add(
    "same-on-both-sides",
    "The same factor is given for z = 1 and for z = -1.",
    "Does the sigmoid grow when z goes from 1 to 2? And from -1 to -2?",
    "Follow the column sigmoid of the table, once down from z = 1, once up from z = -1.",
    "One factor is above 4, the other below.",
)
def _():
    return _numbers(4, 4 * _ratio(1), 4 * _ratio(1))


@DOUBLED_TOKEN.also("same-on-both-sides")
def _():
    return _numbers(4, 4 * _ratio(-1), 4 * _ratio(-1))


@DOUBLED_TOKEN.add(
    "fewer-decimals",
    "Two decimals are asked for, and fewer came.",
    "How many digits stand behind the point in your answers?",
    "The table has four decimals: enough for two of yours.",
    "Work them out once more and keep two digits behind the point.",
)
def _():
    return _numbers(4, 4.8, 1.8)


@DOUBLED_TOKEN.also("fewer-decimals")
def _():
    return _numbers(4, 4.82, 1.8)


@DOUBLED_TOKEN.also("fewer-decimals")
def _():
    return _numbers(4, 4.8, 1.77)


@DOUBLED_TOKEN.also("fewer-decimals")
def _():
    return _numbers(4, 5, 2)


@DOUBLED_TOKEN.add(
    "all-two",
    "The product has two factors that grow, not one.",
    "A product of two numbers: how many of the two double?",
    "The product is gate times candidate, and both are computed from the token.",
    "In the bilinear unit both factors double. With SiLU there is also σ(2z) in place of σ(z).",
)
def _():
    return _numbers(2, 2, 2)


@DOUBLED_TOKEN.add(
    "candidate-not-doubled",
    "These are the factors of the gate alone: the candidate doubles as well.",
    "What else is computed from the token besides z?",
    "The product is gate times candidate.",
    "Each of your three numbers is too small by the same factor, that of the candidate.",
)
def _():
    return _numbers(2, 2 * _ratio(1), 2 * _ratio(-1))


@DOUBLED_TOKEN.add(
    "sigmoid-alone",
    "For SwiGLU this is how the sigmoid alone grows.",
    "SiLU(z) is z times its sigmoid. What else changes?",
    "z doubles, and so does the candidate.",
    "Multiply the growth of the sigmoid by 2 for z, and by 2 for the candidate.",
)
def _():
    return _numbers(4, _ratio(1), _ratio(-1))


@DOUBLED_TOKEN.also("sigmoid-alone")
def _():
    return _numbers(2, _ratio(1), _ratio(-1))


@DOUBLED_TOKEN.add(
    "upside-down",
    "The two sigmoids are divided the wrong way round.",
    "Is σ(2) larger or smaller than σ(1)?",
    "A factor of growth is new over old.",
    "σ(2z) stands above, σ(z) below.",
)
def _():
    return _numbers(4, 4 / _ratio(1), 4 / _ratio(-1))


@DOUBLED_TOKEN.also("upside-down")
def _():
    return _numbers(4, 4 * _ratio(1), 4 / _ratio(-1))


@DOUBLED_TOKEN.add(
    "exchanged",
    "The two answers for SwiGLU are exchanged.",
    "At which z does the gate open further when z doubles?",
    "σ grows from z = 1 to z = 2. And from -1 to -2?",
    "The answer for z = 1 is above 4, the one for z = -1 below.",
)
def _():
    return _numbers(4, 4 * _ratio(-1), 4 * _ratio(1))


@DOUBLED_TOKEN.add(
    "negative-factor",
    "The factor for z = -1 has the wrong sign.",
    "Is SiLU(-2) on the same side of 0 as SiLU(-1)?",
    "A product that keeps its sign grows by a factor above 0.",
    "Divide one negative number by the other.",
)
def _():
    return _numbers(4, 4 * _ratio(1), -4 * _ratio(-1))


@DOUBLED_TOKEN.add(
    "new-value",
    "For SwiGLU these are products after the doubling, not factors.",
    "Growth compares new with old. What was the product before?",
    "For z = 1 and candidate 1 the product was SiLU(1) = 0.7311.",
    "Divide each by the product before the doubling, with its sign.",
)
def _():
    return _numbers(4, 4 * math.exp(2) / (1 + math.exp(2)), -4 / (1 + math.exp(2)))


@DOUBLED_TOKEN.also("new-value")
def _():
    return _numbers(4, 4 * math.exp(2) / (1 + math.exp(2)), 4 / (1 + math.exp(2)))


def _numbers(*numbers):
    return tuple(torch.tensor(float(n), dtype=torch.float64) for n in numbers)


def _ratio(z):
    """σ(2z) / σ(z)."""
    return (1 + math.exp(-z)) / (1 + math.exp(-2 * z))


def _to_two_decimals(answers):
    return lambda: tuple((100 * number).round() / 100 for number in answers())


for _mistake in list(DOUBLED_TOKEN):  # as they are written down
    for _answers in _mistake.functions:
        DOUBLED_TOKEN.also(_mistake.id)(_to_two_decimals(_answers))


@SIGMOID_TWIN.add(
    "at-zero",
    "At 0 the sigmoid is 0.5, and SiLU is 0.",
    "What is 0 times a sigmoid?",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
    "Look for a row of the table under Who sets the gates? where both columns agree.",
)
def _():
    return _numbers(0)[0]


@SIGMOID_TWIN.add(
    "at-minus-one",
    "At -1 the two have the same size, and opposite signs.",
    "Is a gate of -0.27 the same as one of 0.27?",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing, not even the sign?",
    "Look for a row of the table under Who sets the gates? where both columns agree, with the same sign.",
)
def _():
    return _numbers(-1)[0]


@SIGMOID_TWIN.add(
    "gate-not-z",
    "That is the value that both have, not the z at which they have it.",
    "On which axis of the picture is your number: across, or up?",
    "The table gives z in its first column.",
    "Find the row of the table with your number, and read its z.",
)
def _():
    return _numbers(1 / (1 + math.exp(-1)))[0]


@SIGMOID_TWIN.add(
    "everything-one",
    "That is the z of H = 3 with everything 1, where a test can tell the two apart.",
    "Which z makes SiLU and sigmoid equal?",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
    "Look for a row of the table under Who sets the gates? where both columns agree.",
)
def _():
    return _numbers(3)[0]


@SIGMOID_TWIN.add(
    "far-out",
    "Far out they part: the sigmoid goes to 1, and SiLU goes on.",
    "What is SiLU(4) in the table, and what is the sigmoid of 4?",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
    "Look for a row of the table under Who sets the gates? where both columns agree.",
)
def _():
    return _numbers(math.inf)[0]


@SIGMOID_TWIN.also("far-out")
def _():
    return _numbers(-math.inf)[0]


@SIGMOID_TWIN.also("far-out")
def _():
    return _numbers(4)[0]


@SIGMOID_TWIN.also("far-out")
def _():
    return _numbers(-8)[0]


@MULTIPLIERS.add(
    "published-only",
    "1.3 is one of them: others give the same width.",
    "Rounding up sends many sizes to the same multiple. Which multipliers lead to one of these sizes?",
    "Try every multiplier with two decimals near 1.3, above and below.",
    "[m / 100 for m in range(100, 201) if …] with your function in the condition.",
)
def _():
    return _numbers(1.3, 1.3, 1)


@MULTIPLIERS.add(
    "last-one-missing",
    "The largest of them is missing.",
    "Where does your search end, and is the end itself tried?",
    "range(a, b) ends before b.",
    "Search on, up to 2.00.",
)
def _():
    return _numbers(1.29, 1.3, 2)


@MULTIPLIERS.add(
    "first-one-missing",
    "The smallest of them is missing.",
    "Where does your search begin?",
    "Rounding up: even a size just above the multiple below comes out as 14336.",
    "Search from 1.00 on.",
)
def _():
    return _numbers(1.3, 1.31, 2)


@MULTIPLIERS.add(
    "ends-only",
    "The two ends are right, and between them one more was not counted.",
    "Which multipliers with two decimals lie between the two?",
    "The last of the three numbers counts all that the rule allows, the ends among them.",
    "len(…) of the list counts them.",
)
def _():
    return _numbers(1.29, 1.31, 2)


@MULTIPLIERS.also("ends-only")
def _():
    return _numbers(1.29, 1.31, 1)


@MULTIPLIERS.add(
    "count-too-high",
    "The two ends are right, and more are counted than there are.",
    "Which multipliers with two decimals lie from one end to the other?",
    "The largest minus the smallest is 2 hundredths. Write them down, one by one.",
    "len(…) of the list counts them.",
)
def _():
    return _numbers(1.29, 1.31, 4)


@MULTIPLIERS.also("count-too-high")
def _():
    return _numbers(1.29, 1.31, 5)


@MULTIPLIERS.add(
    "more-than-two-decimals",
    "These are ends worked out with a division, not multipliers with two decimals.",
    "How many digits stand behind the point of the multipliers that are asked for?",
    "Between your two ends, which numbers have two decimals?",
    "[m / 100 for m in range(100, 201) if …] holds nothing but multipliers with two decimals.",
)
def _():
    return _numbers(1.2890625, 1.3125, 3)


for _ends in [(1.2890625, 1.3125), (1.2891, 1.3125), (1.2891, 1.3126), (1.2892, 1.3126), (1.2892, 1.3127),
              (1.289, 1.312), (1.289, 1.313), (1.289, 1.3125), (1.2892, 1.3125)]:  # fmt: skip
    for _count in (2, 3):
        MULTIPLIERS.also("more-than-two-decimals")(lambda ends=_ends, count=_count: _numbers(*ends, count))


@MULTIPLIERS.add(
    "exchanged",
    "The smallest and the largest have changed places.",
    "Which of your first two numbers is the smaller one?",
    "The order is: smallest, largest, how many.",
    "Exchange the first two.",
)
def _():
    return _numbers(1.31, 1.29, 3)


@MULTIPLIERS.add(
    "divided-backwards",
    "That is 14336 divided by 8H/3: one multiplier, as if nothing had been rounded.",
    "Do only sizes of exactly 14336 come out as 14336?",
    "The rule rounds up: sizes below 14336 come out as 14336 too.",
    "Try every multiplier with two decimals from 1.00 to 2.00.",
)
def _():
    return _numbers(1.31, 1.31, 1)


@MULTIPLIERS.also("divided-backwards")
def _():
    return _numbers(1.3125, 1.3125, 1)


@MULTIPLIERS.add(
    "multiple-1024",
    "These belong to a multiple_of of 1024, the one of Llama 3 8B.",
    "Which multiple_of were you told?",
    "A finer multiple leaves fewer multipliers.",
    "Call the rule with 256 as its second argument.",
)
def _():
    return _numbers(1.22, 1.31, 10)


@MULTIPLIERS.add(
    "rounded-down",
    "These give 14336 with a rule that rounds down.",
    "In which direction does the rule round?",
    "Check one of yours by hand: multiplier times 10922, and then up to a multiple of 256.",
    "Use an intermediate_size that has passed its own check.",
)
def _():
    return _numbers(1.32, 1.33, 2)


@MULTIPLIERS.add(
    "rounded-to-nearest",
    "These give 14336 with a rule that rounds to the nearest multiple.",
    "In which direction does the rule round?",
    "Check 1.32 by hand: 1.32 times 10922, and then up to a multiple of 256.",
    "Use an intermediate_size that has passed its own check.",
)
def _():
    return _numbers(1.31, 1.32, 2)


@MULTIPLIERS.add(
    "hundredths",
    "These are the right ones in hundredths.",
    "Which multiplier does the rule get: 129, or 1.29?",
    "Your search counts in hundredths, and the answer is to hold multipliers.",
    "Divide the first two by 100.",
)
def _():
    return _numbers(129, 131, 3)


def _fused(join):
    """The repaired function, but for what is done with the two halves before the down-projection."""

    def repair_fused_swiglu(x, gate_up_weight, down_weight):
        gate, up = F.linear(x, gate_up_weight).chunk(2, dim=-1)
        return F.linear(join(gate, up), down_weight)

    return repair_fused_swiglu


@FUSED_SWIGLU.add(
    "gate-and-up-exchanged",
    "SiLU is on the candidates: the two halves have changed places.",
    "In which order did gate_weight and up_weight go into the fused matrix, and in which do they come out?",
    "The first D rows of the fused matrix belong to one branch, and so do the first D numbers of a token.",
    "The gate's half comes first, and SiLU belongs around the gate's half, by whatever name you call it.",
)
def _(x, gate_up_weight, down_weight):
    up, gate = F.linear(x, gate_up_weight).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, down_weight)


@FUSED_SWIGLU.add(
    "split-alternately",
    "It takes every second number for the gate: gate and up are not stored alternately.",
    "Which rows of the fused matrix belong to the gate?",
    "The matrix is made by torch.cat: first all rows of one, then all rows of the other.",
    "chunk(2, dim=-1), or slices [..., :D] and [..., D:].",
)
def _(x, gate_up_weight, down_weight):
    both = F.linear(x, gate_up_weight)
    return F.linear(F.silu(both[..., ::2]) * both[..., 1::2], down_weight)


@FUSED_SWIGLU.also("split-alternately")
def _(x, gate_up_weight, down_weight):
    both = F.linear(x, gate_up_weight)
    return F.linear(F.silu(both[..., 1::2]) * both[..., ::2], down_weight)


@FUSED_SWIGLU.add(
    "split-on-another-axis",
    "It splits along an axis with a fixed number, which is not the last one of every x.",
    "On which axis of the product do gate and up lie side by side?",
    "x may have one axis, two or more, and the features are always on the last. Count from the end.",
    "chunk(2, dim=-1).",
)
def _(x, gate_up_weight, down_weight):
    gate, up = F.linear(x, gate_up_weight).chunk(2, dim=1)
    return F.linear(F.silu(gate) * up, down_weight)


@FUSED_SWIGLU.also("split-on-another-axis")
def _(x, gate_up_weight, down_weight):
    up, gate = F.linear(x, gate_up_weight).chunk(2, dim=1)
    return F.linear(F.silu(gate) * up, down_weight)


@FUSED_SWIGLU.also("split-on-another-axis")
def _(x, gate_up_weight, down_weight):
    gate, up = F.linear(x, gate_up_weight).chunk(2)
    return F.linear(F.silu(gate) * up, down_weight)


FUSED_SWIGLU.add(
    "first-half-twice",
    "Gate and candidate are both made from the first half of the product: z times its own gate.",
    "Which half does each of your two names hold, and is each of them used?",
    "Read the last line: which name stands in it twice, and which one never?",
    "F.silu(gate) * up: two names, once each.",
)(_fused(lambda gate, up: F.silu(gate) * gate))

FUSED_SWIGLU.add(
    "second-half-twice",
    "Gate and candidate are both made from the second half of the product: a candidate sets its own gate.",
    "Which half does each of your two names hold, and is each of them used?",
    "Read the last line: which name stands in it twice, and which one never?",
    "F.silu(gate) * up: two names, once each.",
)(_fused(lambda gate, up: F.silu(up) * up))

FUSED_SWIGLU.add(
    "first-half-alone",
    "The second half of the product is not used: a gate is there, and nothing that it multiplies.",
    "A gate is a factor. What does it multiply?",
    "The line of chunk gives two tensors. Which of them does not come back in the last line?",
    "F.silu(gate) * up goes into the down-projection.",
)(_fused(lambda gate, up: F.silu(gate)))

FUSED_SWIGLU.add(
    "second-half-alone",
    "The first half of the product is not used: the candidates are there, and no gate from the other half.",
    "Who sets the gates?",
    "The line of chunk gives two tensors. Which of them does not come back in the last line?",
    "F.silu(gate) * up goes into the down-projection.",
)(_fused(lambda gate, up: F.silu(up)))

FUSED_SWIGLU.also("second-half-alone")(_fused(lambda gate, up: up))

FUSED_SWIGLU.add(
    "no-activation",
    "There is no SiLU: the two halves are multiplied as they are.",
    "What turns z into a gate?",
    "The given function has a curve in its last line. What became of it?",
    "F.silu around the gate's half.",
)(_fused(lambda gate, up: gate * up))

FUSED_SWIGLU.add(
    "silu-on-both",
    "SiLU is on both halves: the candidates are bent as well.",
    "How many curves are there in the formula of SwiGLU?",
    "A candidate is a plain projection. Is there a SiLU around the whole product, or around each half?",
    "SiLU goes around the gate's half only, after the split.",
)(_fused(lambda gate, up: F.silu(gate) * F.silu(up)))

FUSED_SWIGLU.add(
    "silu-after-product",
    "It multiplies the halves first and applies SiLU to what comes out.",
    "What is finished first: the gate, or the product with the candidate?",
    "Which of your brackets closes too late?",
    "F.silu(gate) * up, not F.silu(gate * up).",
)(_fused(lambda gate, up: F.silu(gate * up)))

FUSED_SWIGLU.add(
    "down-projection-missing",
    "The down-projection is missing: D numbers come back for each token.",
    "How many features does the residual stream expect?",
    "Compare the last axis of your result with that of x. Which step is left?",
    "F.linear(…, down_weight) around the product.",
)(lambda x, gate_up_weight, down_weight: _silu_times(*F.linear(x, gate_up_weight).chunk(2, dim=-1)))


def _silu_times(gate, up):
    return F.silu(gate) * up


FUSED_SWIGLU.take(
    SWIGLU,
    lambda swiglu: lambda x, gate_up_weight, down_weight: swiglu(x, *gate_up_weight.chunk(2), down_weight),
    # What has texts of its own above, and what speaks of matrices that are not there.
    without=(
        "gate-and-up-exchanged", "gate-weight-twice", "up-weight-twice", "gate-branch-alone",
        "up-branch-alone", "no-gate", "no-activation", "silu-on-both", "silu-after-product",
        "down-projection-missing", "silu-before-projection", "silu-at-the-end", "silu-of-a-matrix",
        "matrices-multiplied", "token-gated",
        "projected-down-too-early", "weights-not-transposed", "gate-and-up-not-transposed",
        "down-weight-not-transposed", "weights-reshaped", "two-axes-only", "three-axes-only", "quick-gelu",
        "left-in-fp32", "exp-overflows", "exp-overflows-to-nan", "gates-of-one-token",
    ),
)  # fmt: skip
