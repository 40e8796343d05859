"""Mistakes in SwiGLU and in the rule for its width."""

import math

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
    "What is the gate of z = 2 in the table of The idea: the second column, or the third?",
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
    "What is the gate of z = -1 in the table of The idea?",
    "SiLU dips below 0 where ReLU is flat. Look at the line that computes the gate.",
    "F.silu in place of F.relu.",
)(_with_gate(F.relu))

SWIGLU.add(
    "tanh-for-silu",
    "The gate is the tanh of z: it stays between -1 and 1.",
    "What is the gate of z = 4 in the table of The idea?",
    "A SiLU gate has no upper end. Look at the line that computes the gate.",
    "F.silu in place of torch.tanh.",
)(_with_gate(torch.tanh))

SWIGLU.add(
    "softmax-for-silu",
    "The gates are a softmax over the candidates: they compete, and add up to 1.",
    "If one z grows, may the other gates shrink?",
    "Each gate is made from its own z alone, by one curve.",
    "F.silu in place of softmax: it works entry by entry, and needs no axis.",
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
    "z * torch.sigmoid(z); written out, z / (1 + torch.exp(-z)).",
)(_with_gate(lambda z: z * torch.sigmoid(-z)))


@SWIGLU.also("sigmoid-of-minus-z")
def _(x, gate_weight, up_weight, down_weight):
    return _with_gate(lambda z: z / (1 + torch.exp(z)))(x, gate_weight, up_weight, down_weight)


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
    "In fp16 the power of e overflows: z = -12 gives 0, or z = 12 gives nan.",
    "What is e to the power of 12, and where does fp16 end?",
    "fp16 ends at 65504. Which step of your own SiLU goes beyond it?",
    "F.silu(z), or z * torch.sigmoid(z): torch.sigmoid does not overflow.",
)(_with_gate(lambda z: z / (1 + torch.exp(-z))))


@SWIGLU.also("exp-overflows")
def _(x, gate_weight, up_weight, down_weight):
    return _with_gate(lambda z: z * torch.exp(z) / (1 + torch.exp(z)))(x, gate_weight, up_weight, down_weight)


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
    "For H = 300 and a multiple_of of 70: is 12 the width, or how many times 70 is taken?",
    "In the formula multiple_of stands in front of the brackets too.",
    "Multiply by multiple_of at the end.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return -(-int(multiplier * int(8 * hidden_size / 3)) // multiple_of)


@INTERMEDIATE_SIZE.add(
    "divided-last-only",
    "It adds to the size, and never divides by multiple_of.",
    "Is your result a multiple of multiple_of?",
    "Adding multiple_of - 1 is half of the trick. What has to follow it?",
    "After the sum: `// multiple_of`, and then times multiple_of.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return int(multiplier * int(8 * hidden_size / 3)) + multiple_of - 1


@INTERMEDIATE_SIZE.add(
    "multiple-of-256",
    "It rounds to a multiple of 256, whatever the caller gives.",
    "Llama 3 8B rounds to multiples of 1024. Where does your number come from?",
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
    "It starts from 3H: that is no width, but the 3H of the budget 3HD.",
    "3HD is how many parameters SwiGLU has. For which D are they 8H²?",
    "Solve 3HD = 8H² for D: what stands beside H?",
    "8H/3, not 3H.",
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
    "What is the multiplier of Llama 3 8B, and where does it come in?",
    "Look for multiplier in your lines. In the formula it stands between the two cuts.",
    "int(multiplier * int(8 * hidden_size / 3)), and then round up.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(8 * hidden_size / 3), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-is-1.3",
    "The multiplier is fixed at 1.3, whatever the caller gives.",
    "Llama 2 7B has another multiplier. Where does yours come from?",
    "Look for 1.3 in your lines.",
    "The function has an argument multiplier: multiply by that.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(1.3 * int(8 * hidden_size / 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-cut",
    "The multiplier loses its decimals before it multiplies: 1.3 counts as 1.",
    "What is int(1.3)?",
    "`int` belongs around the product, not around one of its factors.",
    "int(multiplier * size), not int(multiplier) * size.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier) * int(8 * hidden_size / 3), multiple_of)


@INTERMEDIATE_SIZE.add(
    "multiplier-after-rounding",
    "It rounds up before it multiplies by the multiplier.",
    "Is your result a multiple of multiple_of when the multiplier is 1.5?",
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
    "Two cuts come before the rounding up: one of 8H/3, one after the multiplier.",
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
    return _up(int(multiplier * (8 // 3 * hidden_size)), multiple_of)


@INTERMEDIATE_SIZE.also("cut-too-early")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 2 * (4 * hidden_size // 3)), multiple_of)


@INTERMEDIATE_SIZE.also("cut-too-early")
def _(hidden_size, multiple_of, multiplier=1.0):
    return _up(int(multiplier * 4 * (2 * hidden_size // 3)), multiple_of)


@INTERMEDIATE_SIZE.add(
    "float-returned",
    "The number is right, and it is a float.",
    "Can a matrix have 11008.0 rows?",
    "`/` always makes a float, and `//` of a float stays one. Which line of yours is the last to make one?",
    "int(…) around the result, or int(…) around the size before `//`.",
)
def _(hidden_size, multiple_of, multiplier=1.0):
    return float(_up(int(multiplier * int(8 * hidden_size / 3)), multiple_of))


@DOUBLED_TOKEN.add(
    "all-four",
    "SwiGLU does not grow fourfold: its sigmoid changes with z.",
    "Is σ(2) the same as σ(1)?",
    "The gate is z · σ(z), and both of its factors change when z doubles.",
    "Compare 2z · σ(2z) with z · σ(z), and do not forget the candidate.",
)
def _():
    return _numbers(4, 4, 4)


@DOUBLED_TOKEN.add(
    "all-two",
    "The product has two factors that grow, not one.",
    "Which of the two doubles: the candidate, or z?",
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


@DOUBLED_TOKEN.add(
    "upside-down",
    "The two sigmoids are divided the wrong way round.",
    "Is σ(2) larger or smaller than σ(1)?",
    "A factor of growth is new over old.",
    "σ(2z) stands above, σ(z) below.",
)
def _():
    return _numbers(4, 4 / _ratio(1), 4 / _ratio(-1))


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
    "Divide each by the product before the doubling.",
)
def _():
    return _numbers(4, 4 * math.exp(2) / (1 + math.exp(2)), -4 / (1 + math.exp(2)))


def _numbers(*numbers):
    return tuple(torch.tensor(float(n), dtype=torch.float64) for n in numbers)


def _ratio(z):
    """σ(2z) / σ(z)."""
    return (1 + math.exp(-z)) / (1 + math.exp(-2 * z))


@SIGMOID_TWIN.add(
    "at-zero",
    "At 0 the sigmoid is 0.5, and SiLU is 0.",
    "What is 0 times a sigmoid?",
    "Look for a row of the table in which both columns show the same number.",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
)
def _():
    return _numbers(0)[0]


@SIGMOID_TWIN.add(
    "at-minus-one",
    "At -1 the two have the same size, and opposite signs.",
    "Is a gate of -0.27 the same as one of 0.27?",
    "Compare the two columns of the table with their signs.",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing, not even the sign?",
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
    "Look for a row of the table in which both columns show the same number.",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
)
def _():
    return _numbers(3)[0]


@SIGMOID_TWIN.add(
    "far-out",
    "Far out they part: the sigmoid goes to 1, and SiLU goes on.",
    "What is SiLU(4) in the table, and what is the sigmoid of 4?",
    "Look for a row of the table in which both columns show the same number.",
    "SiLU(z) is z times the sigmoid. Which factor changes nothing?",
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


@FUSED_SWIGLU.add(
    "gate-and-up-exchanged",
    "SiLU is on the candidates: the two halves have changed places.",
    "In which order did gate_weight and up_weight go into the fused matrix, and in which do they come out?",
    "The first D rows of the fused matrix belong to one branch, and so do the first D numbers of a token.",
    "chunk returns the gate's half first.",
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


FUSED_SWIGLU.take(
    SWIGLU,
    lambda swiglu: lambda x, gate_up_weight, down_weight: swiglu(x, *gate_up_weight.chunk(2), down_weight),
    without=("gate-and-up-exchanged", "token-gated", "projected-down-too-early", "weights-not-transposed",
             "gate-and-up-not-transposed", "down-weight-not-transposed", "two-axes-only", "quick-gelu",
             "left-in-fp32", "exp-overflows", "three-axes-only"),
)  # fmt: skip
