"""Mistakes in the up-projection, in the product of two layers, and in the plain feed-forward network."""

import torch
import torch.nn.functional as F

from ..mistake import Catalogue

UP_PROJECT = Catalogue()
COLLAPSE = Catalogue()
FEED_FORWARD = Catalogue()
NARROW_RANK = Catalogue()
COLLAPSE_WITH_BIAS = Catalogue()
CENTRED = Catalogue()


def _all_axes_turned(x):
    """What x.T does: right for two axes, and for others PyTorch warns of it."""
    return x.permute(*reversed(range(x.dim())))


@UP_PROJECT.add(
    "transpose-forgotten",
    "`weight` is not transposed: each answer is taken from a column of it, not from a row.",
    "In `a @ b`, which axis of b meets the features, the last axis of a?",
    "`weight` is [D, H]. Which of its two axes has as many entries as a token has features?",
    "weight.T is [H, D], so that `x @ weight.T` lets features meet features.",
)
def _(x, weight):
    return x @ weight


@UP_PROJECT.add(
    "weight-first",
    "It multiplies `weight @ x`: that is right for one token alone.",
    "For x [B, S, H], which axis of x meets the H columns of weight?",
    "In `weight @ x` the last but one axis of x is met. On which side must x stand for its last one?",
    "Let x stand on the left: x @ weight.T.",
)
def _(x, weight):
    return weight @ x


@UP_PROJECT.add(
    "transposed-weight-first",
    "It multiplies `weight.T @ x`: the transpose is there, on the wrong side of x.",
    "In `a @ b`, the last axis of a meets the last but one of b. Which two axes meet in yours?",
    "Where do the features stand among the axes of x? On which side of `@` does that axis meet the other "
    "matrix?",
    "The features are the last axis of x, so x stands on the left: x @ weight.T.",
)
def _(x, weight):
    return weight.T @ x


@UP_PROJECT.add(
    "answers-down",
    "The answers of a token stand in a column: they are on the last axis but one.",
    "Which axis of your result counts the tokens, and which the detectors?",
    "For x [S, H] you return [D, S]. What is the transpose of a product?",
    "(A B)ᵀ = Bᵀ Aᵀ: in place of `weight @ x.T` write `x @ weight.T`.",
)
def _(x, weight):
    return weight @ (x.transpose(-1, -2) if x.dim() > 1 else x)


@UP_PROJECT.also("answers-down")
def _(x, weight):
    return weight @ x.transpose(-1, -2)


@UP_PROJECT.also("answers-down")
def _(x, weight):
    return weight @ _all_axes_turned(x)


@UP_PROJECT.add(
    "reshaped-not-transposed",
    "The shape was put right with a reshape: the answers of different tokens are mixed up.",
    "Does a reshape move numbers to other places, or only draw the borders anew?",
    "Compare the first row of your result with the answers to the first token, by hand.",
    "[D, S] becomes [S, D] by a transpose. Better still: x @ weight.T has the right order from the start.",
)
def _(x, weight):
    answers = weight @ (x.transpose(-1, -2) if x.dim() > 1 else x)
    return answers.reshape(*x.shape[:-1], -1)


@UP_PROJECT.also("reshaped-not-transposed")
def _(x, weight):
    return (weight @ x.reshape(-1, x.shape[-1]).T).reshape(*x.shape[:-1], -1)


@UP_PROJECT.add(
    "weight-reshaped",
    "`weight` was brought from [D, H] to [H, D] with a reshape: the rows are cut up and mixed.",
    "Does a reshape turn rows into columns?",
    "Print torch.arange(6).reshape(3, 2).reshape(2, 3) beside the transpose of the same [3, 2].",
    "weight.T in place of the reshape or view.",
)
def _(x, weight):
    return x @ weight.reshape(weight.shape[1], weight.shape[0])


@UP_PROJECT.add(
    "entry-by-entry",
    "`x * weight` multiplies place by place: row 0 meets token 0 only, row 1 token 1.",
    "How many questions are asked of each token, and how many does yours ask?",
    "`x * weight` lines up the tokens of x with the rows of weight. Every row has to meet every token.",
    "A matrix product lets every row meet every token, and adds up: x @ weight.T.",
    on="as many tokens as features as detectors",
)
def _(x, weight):
    return (x * weight).sum(-1)


@UP_PROJECT.also("entry-by-entry")
def _(x, weight):
    return x * weight


@UP_PROJECT.add(
    "not-summed",
    "The products are not added up: each answer is still as many numbers as a token has features.",
    "What are the products of [2, 1] and [1, 1], and which one number is the answer?",
    "Your result has one axis more than it should. Along which axis do the products of one row lie?",
    "Add up over the last axis: .sum(-1). A matrix product does both: x @ weight.T.",
)
def _(x, weight):
    return x[..., None, :] * weight


@UP_PROJECT.add(
    "summed-over-rows",
    "The products are added up over the rows of `weight`: all questions are mixed, feature by feature.",
    "Which products belong to one question: those of one row, or those of one feature?",
    "Your products are [..., D, H]. Which of the two axes should be gone, and which is?",
    "Add up over the features, the last axis: .sum(-1). Or x @ weight.T, which multiplies and adds up.",
)
def _(x, weight):
    return (x[..., None, :] * weight).sum(-2)


@UP_PROJECT.add(
    "answers-added",
    "The answers are added up: one number for a token, not one for each detector.",
    "How many answers does a token get from a weight of four rows?",
    "A matrix product adds up over the features already. What does your sum run over?",
    "Leave out the sum: x @ weight.T is [..., D].",
)
def _(x, weight):
    return (x @ weight.T).sum(-1)


@UP_PROJECT.add(
    "residual-added",
    "It adds x to the answers: that fits only where D is H.",
    "In the table before this exercise, what are the answers to [2, 1], and is the token itself in them?",
    "The residual stream adds what the FFN as a whole gives. How many features does a token have after "
    "this step?",
    "The product alone is the result, without + x.",
)
def _(x, weight):
    return x + x @ weight.T


@UP_PROJECT.add(
    "divided-by-root",
    "The answers are divided by the root of the number of features.",
    "What should the row [1, 1] answer to the token [2, 1]?",
    "By which number is every answer too small, for H = 2?",
    "x @ weight.T, with no division.",
)
def _(x, weight):
    return x @ weight.T / x.shape[-1] ** 0.5


@UP_PROJECT.add(
    "mean-for-sum",
    "The products of a dot product are averaged, not added up.",
    "What are the products of [2, 1] and [1, 1], and what is their sum?",
    "By which number is every answer of yours too small?",
    "Add the products over the features: sum, or a matrix product in its place.",
)
def _(x, weight):
    return (x[..., None, :] * weight).mean(-1)


@UP_PROJECT.add(
    "rows-normalized",
    "Every row is first made 1 long: you return the distances, without the lengths of the rows.",
    "If a row is twice as long, should its answer be twice as large?",
    "In the picture the answer was the distance of the foot times another number. Which?",
    "Multiply with the rows as they are: x @ weight.T.",
)
def _(x, weight):
    return x @ F.normalize(weight, dim=-1).T


@UP_PROJECT.also("rows-normalized")
def _(x, weight):
    return F.cosine_similarity(x[..., None, :], weight, dim=-1)


@UP_PROJECT.add(
    "token-normalized",
    "The token is normalized first: its length makes no difference.",
    "If a token is twice as long, should its answers be twice as large?",
    "The norm of lesson 2 is a step of its own, before the FFN. What is done to x here?",
    "Multiply with x as it comes in: x @ weight.T.",
)
def _(x, weight):
    return F.normalize(x, dim=-1) @ weight.T


@UP_PROJECT.also("token-normalized")
def _(x, weight):
    return F.rms_norm(x, (x.shape[-1],)) @ weight.T


@UP_PROJECT.add(
    "relu-too-early",
    "It cuts off the negative answers: that is a step of its own, and comes later.",
    "What should a detector answer when the token points away from it?",
    "One of the answers in the table before this exercise is -3.",
    "Leave out ReLU (or clamp): the product itself is the result.",
)
def _(x, weight):
    return F.relu(x @ weight.T)


@UP_PROJECT.add(
    "first-text-only",
    "Only the first entry of x is asked: `x[0]`.",
    "What about the second text of a batch?",
    "Look for an index in your code: x has any number of axes, or only one.",
    "`@` works on the last axis and leaves all others in place, so x goes in as a whole.",
)
def _(x, weight):
    return torch.stack([weight @ each for each in x[0]])


@UP_PROJECT.also("first-text-only")
def _(x, weight):
    return x[0] @ weight.T


@UP_PROJECT.add(
    "squeezed",
    "An axis of size 1 is gone: a batch of one text is no batch any more.",
    "Which shape should the result have for x [1, S, H]?",
    "Look for squeeze: it takes away axes of size 1 that the caller wants to keep.",
    "`x @ weight.T` has the right shape: leave out the squeeze.",
)
def _(x, weight):
    return (x @ weight.T).squeeze()


@UP_PROJECT.also("squeezed")
def _(x, weight):
    return (x @ weight.T).squeeze(0)


@UP_PROJECT.add(
    "axes-flattened",
    "The axes before the last one are gone: all tokens stand in one list.",
    "Which shape should the result have for x [B, S, H]?",
    "After reshape(-1, H) the result is [B · S, D]. What brings B and S back?",
    "`x @ weight.T` needs no reshape. With one: .reshape(*x.shape[:-1], -1) at the end.",
)
def _(x, weight):
    return x.reshape(-1, x.shape[-1]) @ weight.T


@UP_PROJECT.add(
    "axes-fixed",
    "It works for a certain number of axes only.",
    "x is [..., H]: what does yours do with one token [H], and with a batch [B, S, H]?",
    "Look for what depends on the number of axes: a loop, x.T, torch.mm or bmm, letters in einsum.",
    "`x @ weight.T` takes x with any axes before the last. In einsum these are written as `...`.",
    on="a batch of one text",
)
def _(x, weight):
    return torch.mm(x, weight.T)


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return _all_axes_turned(weight @ _all_axes_turned(x))


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return (weight @ x.t()).t()


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return (weight @ x.mT).mT


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return torch.stack([weight @ each for each in x])


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return torch.einsum("bsh,dh->bsd", x, weight)


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return torch.mv(weight, x)


@UP_PROJECT.also("axes-fixed")
def _(x, weight):
    return torch.stack([torch.stack([weight @ token for token in text]) for text in x])


@UP_PROJECT.add(
    "view-of-x",
    "It raises on an x whose numbers do not lie one after the other in memory, such as a transposed one.",
    "What does `view` ask of the tensor that it looks at?",
    "The error names another method, which copies where it has to.",
    ".reshape in place of .view; or `x @ weight.T`, which needs neither.",
)
def _(x, weight):
    return (x.view(-1, x.shape[-1]) @ weight.T).view(*x.shape[:-1], -1)


@UP_PROJECT.add(
    "left-in-fp32",
    "The result is in fp32, whatever came in.",
    "Which dtype does the next layer expect?",
    "Look for .float() or dtype= in your code: is there a way back?",
    "The product needs no cast: x @ weight.T.",
)
def _(x, weight):
    return x.float() @ weight.float().T


@COLLAPSE.add(
    "wrong-order",
    "The two are multiplied in the wrong order: the result is [D, D].",
    "Which of the two matrices meets the token first, and on which side of the product does that one stand?",
    "Write the two layers for one token, with the token on the right. Which weight stands beside it?",
    "W_down (W_up x): [H, D] times [D, H] is [H, H], so the down-projection stands on the left.",
    on="the weights of step 2",
)
def _(up_weight, down_weight):
    return up_weight @ down_weight


@COLLAPSE.add(
    "result-transposed",
    "This is the transpose of the one matrix.",
    "The result takes the place of a layer's weight. Is it used as `x @ result`, or as `x @ result.T`?",
    "Compare got and expected: rows and columns are exchanged. A weight [out, in] has in a column what one "
    "feature of the input does.",
    "There is one transpose too many or too few: transpose your result.",
)
def _(up_weight, down_weight):
    return up_weight.T @ down_weight.T


@COLLAPSE.add(
    "wrong-order-transposed",
    "The order is wrong, and the result transposed: you multiply `down_weight.T @ up_weight.T`.",
    "In x @ up_weight.T @ down_weight.T, which of the two transposes stands on the left?",
    "Yours is [D, D]. It has to be [H, H], and to be used as x @ result.T.",
    "result.T is up_weight.T @ down_weight.T. Transpose both sides, and the order turns around.",
    on="the weights of step 2",
)
def _(up_weight, down_weight):
    return down_weight.T @ up_weight.T


@COLLAPSE.add(
    "one-transposed",
    "One of the two weights is transposed, and the other is not: that fits only where D is H.",
    "Write the two shapes beside each other. Which axes meet?",
    "up_weight is [D, H] and down_weight [H, D]: in which order do they fit as they are?",
    "No transpose is needed: [H, D] times [D, H].",
)
def _(up_weight, down_weight):
    return down_weight @ up_weight.T


@COLLAPSE.also("one-transposed")
def _(up_weight, down_weight):
    return down_weight.T @ up_weight


@COLLAPSE.also("one-transposed")
def _(up_weight, down_weight):
    return up_weight.T @ down_weight


@COLLAPSE.also("one-transposed")
def _(up_weight, down_weight):
    return up_weight @ down_weight.T


@COLLAPSE.add(
    "reshaped-for-transposed",
    "The shapes were made to fit with a reshape: rows are cut up and mixed.",
    "Does a reshape turn rows into columns?",
    "Write down the two shapes, [D, H] and [H, D]: do they fit in one of the two orders as they are?",
    "down_weight @ up_weight needs no reshape and no transpose.",
)
def _(up_weight, down_weight):
    return up_weight.reshape(down_weight.shape) @ down_weight.reshape(up_weight.shape)


@COLLAPSE.add(
    "entry-by-entry",
    "The weights are multiplied entry by entry.",
    "By how many paths does feature 0 of the input reach feature 0 of the output?",
    "Each path leads through one of the D numbers in the middle, and all of them are added up.",
    "`@` multiplies and adds up; `*` only multiplies.",
)
def _(up_weight, down_weight):
    return up_weight.T * down_weight


@COLLAPSE.also("entry-by-entry")
def _(up_weight, down_weight):
    return up_weight * down_weight.T


@COLLAPSE.also("entry-by-entry")
def _(up_weight, down_weight):
    return up_weight * down_weight


@COLLAPSE.add(
    "added",
    "The weights are added.",
    "One layer after another: are their effects added, or does the second work on what the first gave?",
    "With one feature and one unit, x · 2 · 3 is x times which number?",
    "Two layers in a row are a product of matrices.",
)
def _(up_weight, down_weight):
    return down_weight + up_weight.T


@COLLAPSE.also("added")
def _(up_weight, down_weight):
    return up_weight + down_weight.T


@COLLAPSE.also("added")
def _(up_weight, down_weight):
    return up_weight + down_weight


@COLLAPSE.add(
    "averaged-over-units",
    "The sum over the D numbers in the middle is divided by D.",
    "If the middle had twice as many units, would each count for half?",
    "A matrix product adds up over the axis that the two share. What does yours do?",
    "A plain product: no mean, and no division.",
)
def _(up_weight, down_weight):
    return down_weight @ up_weight / up_weight.shape[0]


@COLLAPSE.add(
    "last-unit-only",
    "Only the last of the hidden units counts.",
    "By how many paths does feature 0 of the input reach feature 0 of the output, and how many are in yours?",
    "Look at the line inside your loop. What becomes of what the earlier units gave?",
    "Add up over the units: += in place of =. Or a matrix product, which adds up by itself.",
)
def _(up_weight, down_weight):
    return torch.outer(down_weight[:, -1], up_weight[-1])


@COLLAPSE.add(
    "identity-added",
    "The identity is added: that is the token itself, which passes beside the two layers.",
    "What do two layers with weights of zeros make of a token?",
    "The residual stream adds the token outside of the FFN. What is asked for here?",
    "The product alone, without torch.eye.",
)
def _(up_weight, down_weight):
    return down_weight @ up_weight + torch.eye(len(down_weight), dtype=up_weight.dtype)


@COLLAPSE.add(
    "one-weight-twice",
    "The same weight is used twice, and the other not at all.",
    "Which of the two arguments has no effect on your result?",
    "Read the names on both sides of your product.",
    "down_weight on the left, up_weight on the right.",
)
def _(up_weight, down_weight):
    return up_weight.T @ up_weight


@COLLAPSE.also("one-weight-twice")
def _(up_weight, down_weight):
    return down_weight @ down_weight.T


@COLLAPSE.add(
    "relu-between",
    "There is a ReLU between the two layers: then they do not collapse.",
    "What is to stand between the two layers in this exercise?",
    "Send a unit token through, and look at the sign of what the first layer gives.",
    "Leave out ReLU (or clamp): the two weights alone are multiplied.",
)
def _(up_weight, down_weight):
    return down_weight @ F.relu(up_weight)


@COLLAPSE.also("relu-between")
def _(up_weight, down_weight):
    return F.relu(down_weight @ up_weight)


@COLLAPSE.add(
    "two-features-only",
    "It sends two unit tokens through, whatever H is.",
    "How many unit tokens are there when a token has three features?",
    "Look for the 2 in torch.eye(2). Which number belongs there in general?",
    "One unit token for each feature: torch.eye(up_weight.shape[1], dtype=up_weight.dtype).",
)
def _(up_weight, down_weight):
    return (torch.eye(2) @ up_weight.T @ down_weight.T).T


@COLLAPSE.also("two-features-only")
def _(up_weight, down_weight):
    return (torch.eye(2).to(up_weight.dtype) @ up_weight.T @ down_weight.T).T


@COLLAPSE.also("two-features-only")
def _(up_weight, down_weight):
    units = torch.eye(up_weight.shape[1], dtype=up_weight.dtype)
    return torch.stack([down_weight @ up_weight @ units[0], down_weight @ up_weight @ units[1]], dim=1)


@COLLAPSE.add(
    "unit-tokens-in-fp32",
    "The unit tokens are always in fp32: weights of another dtype do not go with them.",
    "Which dtype does torch.eye give, and which do the weights have?",
    "The error comes from a product of two dtypes.",
    "torch.eye(H, dtype=up_weight.dtype); or multiply the weights with each other, and need no unit tokens.",
)
def _(up_weight, down_weight):
    return (torch.eye(up_weight.shape[1]) @ up_weight.T @ down_weight.T).T


@COLLAPSE.add(
    "weights-of-the-lesson",
    "The same matrix comes back for any weights: it is that of the two layers of step 2.",
    "Which weights does your function use, and where do they come from?",
    "`two_layers` knows only the weights of the cell above it.",
    "Compute with the two arguments, up_weight and down_weight, and with nothing else.",
)
def _(up_weight, down_weight):
    return torch.tensor([[1.0, 3.0], [0.0, -1.0]])


@COLLAPSE.add(
    "left-in-fp32",
    "The result is in fp32, whatever came in.",
    "The result takes the place of a weight. Which dtype should it have then?",
    "Look for .float() or dtype= in your code: is there a way back?",
    "The product needs no cast.",
)
def _(up_weight, down_weight):
    return down_weight.float() @ up_weight.float()


def _up(x, up_weight, up_bias):
    """The first half of the network, before ReLU."""
    return x @ up_weight.T + up_bias


def _with(activation):
    """The network with another activation."""

    def feed_forward(x, up_weight, up_bias, down_weight, down_bias):
        return activation(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias

    return feed_forward


FEED_FORWARD.add(
    "relu-missing",
    "ReLU has no effect: it is missing, or its result is not kept.",
    "What happens to a negative answer between the two layers?",
    "`F.relu(hidden)` gives a new tensor, and leaves hidden as it is. What do you do with the new one?",
    "hidden = F.relu(hidden), after the first layer with its bias and before the second.",
)(_with(lambda hidden: hidden))


@FEED_FORWARD.add(
    "relu-at-end",
    "ReLU is at the end, not between the two layers: no output is ever negative.",
    "Could your network lower a feature of the residual stream?",
    "The formula has the max(…, 0) inside. Which of your two results does it belong to?",
    "F.relu around the first layer with its bias; the second layer ends without one.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias) @ down_weight.T + down_bias)


@FEED_FORWARD.add(
    "relu-twice",
    "There are two ReLUs: the one at the end keeps every output from being negative.",
    "Could your network lower a feature of the residual stream?",
    "How many times does the formula have max(…, 0)?",
    "Keep the one between the two layers, and return the second layer as it is.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias)


@FEED_FORWARD.add(
    "relu-on-input",
    "ReLU is applied to x, before the first layer.",
    "Which numbers does the formula cut off: the features, or the answers of the detectors?",
    "What stands inside max(…, 0)?",
    "First x @ up_weight.T + up_bias, and ReLU around that.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return _up(F.relu(x), up_weight, up_bias) @ down_weight.T + down_bias


@FEED_FORWARD.also("relu-on-input")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(F.relu(x), up_weight, up_bias)) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "relu-before-bias",
    "ReLU comes before the first bias: the bias cannot move the place where a unit is cut off.",
    "Suppose that the row of a unit gives 2, and its bias is -3. Is the unit on or off?",
    "Look at what stands inside your ReLU: is up_bias there?",
    "F.relu(x @ up_weight.T + up_bias), with the bias inside the brackets.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return (F.relu(x @ up_weight.T) + up_bias) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "relu-before-and-after-bias",
    "There are two ReLUs in the first layer: the one before the bias has cut off too much already.",
    "Suppose that the row of a unit gives -1, and its bias is 3. What should the unit answer?",
    "How many times does the formula have max(…, 0), and what stands inside?",
    "F.relu(x @ up_weight.T + up_bias), and no ReLU around the product alone.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(F.relu(x @ up_weight.T) + up_bias) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "softmax-at-end",
    "The result goes through a softmax: the features of a token share out 1 among them.",
    "Could your network lower a feature of the residual stream?",
    "A softmax belongs to choices and to attention. What ends the formula of this lesson?",
    "Return hidden @ down_weight.T + down_bias as it is.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return (F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias).softmax(-1)


def _step(hidden):
    return (hidden > 0).to(hidden.dtype)


FEED_FORWARD.add(
    "on-or-off",
    "Only whether a unit is on goes on to the second layer, as 1 or 0, not how strongly it answers.",
    "What should max(3, 0) be?",
    "`hidden > 0` says which units are on. What has become of their answers?",
    "hidden * (hidden > 0), or F.relu(hidden).",
)(_with(_step))

FEED_FORWARD.add(
    "negative-kept",
    "It keeps what is negative, and cuts off what is positive.",
    "Is a detector to answer when the token points its way, or when it points away?",
    "Try your activation alone on tensor([-5., 5.]). Which of the two numbers is left?",
    "max(hidden, 0): F.relu(hidden), or hidden.clamp(min=0).",
)(_with(lambda hidden: hidden.clamp(max=0)))
FEED_FORWARD.also("negative-kept")(_with(lambda hidden: F.relu(-hidden)))

FEED_FORWARD.add(
    "absolute-value",
    "Negative answers come out positive: it takes the absolute value.",
    "What is max(-1, 0)?",
    "ReLU makes a negative answer 0. What does yours make of it?",
    "F.relu(hidden) in place of abs.",
)(_with(torch.abs))

FEED_FORWARD.add(
    "clamped-to-one",
    "It cuts off above as well: no unit answers more than 1.",
    "What should max(3, 0) be?",
    "ReLU has a lower limit. Which upper limit does it have?",
    "F.relu(hidden), or clamp with min=0 only.",
)(_with(lambda hidden: hidden.clamp(0, 1)))

FEED_FORWARD.add(
    "relu6",
    "It cuts off above as well: no unit answers more than 6.",
    "What should max(10, 0) be?",
    "ReLU has a lower limit. Which upper limit does it have?",
    "F.relu in place of F.relu6.",
)(_with(F.relu6))

FEED_FORWARD.add(
    "sigmoid-for-relu",
    "The activation is a sigmoid: every unit answers between 0 and 1.",
    "What should max(-5, 0) and max(5, 0) be, and what are they in yours?",
    "Try your activation alone on tensor([-5., 5.]).",
    "F.relu in place of torch.sigmoid.",
)(_with(torch.sigmoid))

FEED_FORWARD.add(
    "tanh-for-relu",
    "The activation is tanh: every unit answers between -1 and 1.",
    "What should max(-5, 0) and max(5, 0) be, and what are they in yours?",
    "Try your activation alone on tensor([-5., 5.]).",
    "F.relu in place of torch.tanh.",
)(_with(torch.tanh))

FEED_FORWARD.add(
    "softmax-for-relu",
    "The activation is a softmax: the units of a token share out 1 among them.",
    "If one unit answers louder, should the others fall silent?",
    "ReLU looks at each number alone. Does yours?",
    "F.relu in place of softmax.",
)(_with(lambda hidden: hidden.softmax(-1)))

FEED_FORWARD.add(
    "gelu-for-relu",
    "The activation is GELU, as in BERT and GPT: near ReLU, but round at 0.",
    "What should max(-1, 0) be exactly, and what is it in yours?",
    "Try your activation alone on tensor([-1., 1.]).",
    "F.relu in place of F.gelu.",
)(_with(F.gelu))
FEED_FORWARD.also("gelu-for-relu")(_with(lambda hidden: F.gelu(hidden, approximate="tanh")))

FEED_FORWARD.add(
    "silu-for-relu",
    "The activation is SiLU, as in Llama: that one comes in the next lesson.",
    "What should max(-1, 0) be exactly, and what is it in yours?",
    "The network of this lesson is that of 2017. Which function does its formula have?",
    "F.relu in place of F.silu.",
)(_with(F.silu))

FEED_FORWARD.add(
    "leaky-relu",
    "A negative answer is made smaller, not cut off.",
    "What should max(-100, 0) be, and what is it in yours?",
    "Leaky ReLU and ELU let something through below 0.",
    "F.relu in place of F.leaky_relu or F.elu.",
)(_with(F.leaky_relu))
FEED_FORWARD.also("leaky-relu")(_with(lambda hidden: F.leaky_relu(hidden, 0.1)))
FEED_FORWARD.also("leaky-relu")(_with(lambda hidden: F.leaky_relu(hidden, 0.2)))
FEED_FORWARD.also("leaky-relu")(_with(F.elu))

FEED_FORWARD.add(
    "softplus-for-relu",
    "The activation is softplus, a rounded ReLU: at 0 it is about 0.69, not 0.",
    "What should max(0, 0) be, and what is it in yours?",
    "Try your activation alone on tensor([-1., 0., 1.]).",
    "F.relu in place of F.softplus.",
)(_with(F.softplus))

FEED_FORWARD.add(
    "squared-relu",
    "What ReLU leaves is squared.",
    "What should max(3, 0) be, and what is it in yours?",
    "Count how often your hidden numbers are multiplied with themselves.",
    "F.relu(hidden), and nothing more before the second layer.",
)(_with(lambda hidden: F.relu(hidden).square()))

FEED_FORWARD.add(
    "largest-of-an-axis",
    "`max` looks for the largest number along an axis here; it does not compare each number with 0.",
    "What does the 0 mean in torch.max(hidden, 0)?",
    "In PyTorch the second argument of max can be an axis. What is the shape after yours?",
    "F.relu(hidden), or hidden.clamp(min=0), or torch.maximum with a tensor of zeros.",
)(_with(lambda hidden: hidden.max(0).values))
FEED_FORWARD.also("largest-of-an-axis")(_with(lambda hidden: hidden.max(0, keepdim=True).values))


@FEED_FORWARD.add(
    "up-bias-missing",
    "`up_bias` is not added: every detector is cut off along a line through 0.",
    "Which of the arguments has no effect in your code?",
    "What moves the place where a unit is cut off away from 0?",
    "x @ up_weight.T + up_bias, and then ReLU.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight.T) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "down-bias-missing",
    "`down_bias` is not added.",
    "Which of the arguments has no effect in your code?",
    "By how much is each feature off? What should come out when every unit is off?",
    "Add down_bias after the second matrix.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight.T


@FEED_FORWARD.add(
    "biases-missing",
    "Neither of the two biases is added.",
    "Which of the five arguments appear in your code?",
    "The formula has a b right after each of the two products.",
    "Add up_bias before ReLU, and down_bias at the end.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight.T) @ down_weight.T


@FEED_FORWARD.add(
    "biases-exchanged",
    "The two biases are exchanged: they fit only where D is H.",
    "How many numbers does up_bias have, and how many does a token have after the up-projection?",
    "A bias of D numbers can only be added where there are D features.",
    "up_bias [D] after the first product, down_bias [H] after the second.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight.T + down_bias) @ down_weight.T + up_bias


@FEED_FORWARD.add(
    "up-bias-at-end",
    "Both biases are added at the end: the first one misses ReLU and the second matrix.",
    "Which bias can decide whether a unit is on?",
    "Each bias is added right after its own weight. Where is up_bias in yours?",
    "F.relu(x @ up_weight.T + up_bias) first; down_bias alone at the end.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight.T) @ down_weight.T + up_bias + down_bias


@FEED_FORWARD.add(
    "down-bias-is-up-bias",
    "The second bias is `up_bias` again: that fits only where D is H.",
    "Which of the arguments does not appear in your code?",
    "Read the name of the bias in your last line. How many numbers does it have, and how many does a token "
    "have?",
    "The last line ends with + down_bias.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + up_bias


@FEED_FORWARD.add(
    "up-bias-twice",
    "`up_bias` is added twice: in the first layer, and once more at the end.",
    "How often does each of the two biases stand in the formula?",
    "Read your last line: which bias has done its work already?",
    "Only down_bias is added at the end.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + up_bias + down_bias


@FEED_FORWARD.add(
    "down-bias-before-weight",
    "`down_bias` is added before the second matrix, and goes through it.",
    "How many features are there at the place where you add down_bias?",
    "Each bias is added right after its own weight.",
    "hidden @ down_weight.T + down_bias: the product first.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return (F.relu(_up(x, up_weight, up_bias)) + down_bias) @ down_weight.T


@FEED_FORWARD.also("down-bias-before-weight")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias) + down_bias) @ down_weight.T


@FEED_FORWARD.add(
    "up-bias-before-weight",
    "`up_bias` is added to x, before the first matrix.",
    "How many features are there at the place where you add up_bias?",
    "Each bias is added right after its own weight.",
    "x @ up_weight.T + up_bias: the product first.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu((x + up_bias) @ up_weight.T) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "up-bias-subtracted",
    "`up_bias` is subtracted, as if it were a threshold.",
    "With which sign do the biases stand in the formula?",
    "In the formula, a larger up_bias makes a unit answer more. What does it do in yours?",
    "x @ up_weight.T + up_bias. A unit that is to be on from 2 upwards has the bias -2.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight.T - up_bias) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "down-bias-subtracted",
    "`down_bias` is subtracted.",
    "With which sign do the biases stand in the formula?",
    "What should come out when every unit is off?",
    "+ down_bias.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight.T - down_bias


@FEED_FORWARD.add(
    "collapsed",
    "The two weights are collapsed into one: that is right only without ReLU and biases between them.",
    "Which step of this network can no matrix take over?",
    "`collapse` was for two layers with nothing between them. What is between them now?",
    "Up, bias, ReLU, down, bias, one after the other.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return x @ (down_weight @ up_weight).T + down_bias


@FEED_FORWARD.also("collapsed")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ (down_weight @ up_weight).T) + down_bias


@FEED_FORWARD.add(
    "up-transpose-forgotten",
    "`up_weight` is not transposed.",
    "`up_weight` is [D, H]. Which of its axes has to meet the features of x?",
    "In `a @ b` the last axis of a meets the last but one of b.",
    "x @ up_weight.T.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight + up_bias) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "down-transpose-forgotten",
    "`down_weight` is not transposed.",
    "`down_weight` is [H, D]. Which of its axes has to meet the D hidden numbers?",
    "In `a @ b` the last axis of a meets the last but one of b.",
    "hidden @ down_weight.T.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight + down_bias


@FEED_FORWARD.add(
    "transposes-forgotten",
    "Neither weight is transposed: it expects weights stored as [in, out].",
    "nn.Linear stores [out, in]. Which layout does yours expect?",
    "In `a @ b` the last axis of a meets the last but one of b. Which axis of each weight has that size?",
    "A .T after each of the two weights.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ up_weight + up_bias) @ down_weight + down_bias


@FEED_FORWARD.add(
    "weights-exchanged",
    "The two weights are exchanged: x meets down_weight first.",
    "Which of the two weights is multiplied with x itself?",
    "Shapes do not always warn you: down_weight is [H, D], so `x @ down_weight` fits as well.",
    "First x @ up_weight.T, and down_weight.T for what ReLU gives.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ down_weight + up_bias) @ up_weight + down_bias


@FEED_FORWARD.also("weights-exchanged")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ down_weight.T + up_bias) @ up_weight.T + down_bias


@FEED_FORWARD.add(
    "down-is-up-again",
    "Both layers use up_weight.",
    "Which of the arguments does not appear in your code?",
    "Look at the matrix in your second line.",
    "The second product is with down_weight.T.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ up_weight + down_bias


@FEED_FORWARD.also("down-is-up-again")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ up_weight.T + down_bias


@FEED_FORWARD.also("down-is-up-again")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ up_weight.T + up_bias


@FEED_FORWARD.add(
    "hidden-unused",
    "The second layer works on x: what the first layer gave is not used.",
    "What goes into the second layer: the token, or what ReLU leaves?",
    "You compute the hidden numbers. Where do they come in after that?",
    "hidden @ down_weight.T + down_bias, in place of x @ ….",
    on="no biases",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return x @ down_weight.T + down_bias


@FEED_FORWARD.also("hidden-unused")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return x @ down_weight + down_bias


@FEED_FORWARD.add(
    "weight-first",
    "The weight stands left of x: `up_weight @ x` is right for one token alone.",
    "For x [B, S, H], which axis of x meets the H columns of up_weight?",
    "Your up_project had the same question. On which side does x stand there?",
    "x @ up_weight.T, and hidden @ down_weight.T.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return down_weight @ F.relu(up_weight @ x + up_bias) + down_bias


@FEED_FORWARD.add(
    "residual-added",
    "It adds x to the result.",
    "In x = x + ffn(norm(x)), what is `ffn` alone?",
    "The residual stream adds the update to the token, outside of the FFN.",
    "Return the second layer and its bias, without + x.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return x + F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "normalized-inside",
    "It normalizes x first: the length of a token makes no difference.",
    "In x = x + ffn(norm(x)), what is `ffn` alone?",
    "The norm is a part of its own, and hands its result to the FFN.",
    "Begin with x as it comes in.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    x = F.rms_norm(x, (x.shape[-1],))
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias


@FEED_FORWARD.also("normalized-inside")
def _(x, up_weight, up_bias, down_weight, down_bias):
    x = F.layer_norm(x, (x.shape[-1],))
    return F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "up-only",
    "Only the first half comes back: D numbers for a token, not H.",
    "How many features should a token have when it comes out?",
    "Which two arguments does your code not use yet?",
    "Multiply what ReLU gives by down_weight.T, and add down_bias.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias))


@FEED_FORWARD.also("up-only")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return _up(x, up_weight, up_bias)


@FEED_FORWARD.add(
    "squeezed",
    "An axis of size 1 is gone: a text of one token is no text any more.",
    "Which shape should the result have for x [1, H]?",
    "Look for squeeze: it takes away axes of size 1 that the caller wants to keep.",
    "The two products have the right shape: leave out the squeeze.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return (F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias).squeeze()


@FEED_FORWARD.also("squeezed")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return (F.relu(_up(x, up_weight, up_bias)) @ down_weight.T + down_bias).squeeze(0)


@FEED_FORWARD.add(
    "bias-in-weight",
    "A bias is added to the weight, not to the product: it is multiplied by the features.",
    "What does your first layer give for a token of zeros, and what should it give?",
    "Set the brackets one by one: what is added to what before the product is taken?",
    "First the product, then the bias: x @ up_weight.T + up_bias, without brackets around the sum.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ (up_weight.T + up_bias)) @ (down_weight.T + down_bias)


@FEED_FORWARD.also("bias-in-weight")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(x @ (up_weight.T + up_bias)) @ down_weight.T + down_bias


@FEED_FORWARD.also("bias-in-weight")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return F.relu(_up(x, up_weight, up_bias)) @ (down_weight.T + down_bias)


@FEED_FORWARD.add(
    "axes-flattened",
    "The axes before the last one are gone: all tokens stand in one list.",
    "Which shape should the result have for x [B, S, H]?",
    "After reshape(-1, H) the result is [B · S, H]. What brings B and S back?",
    "x @ up_weight.T needs no reshape. With one: .reshape(x.shape) at the end.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    hidden = F.relu(_up(x.reshape(-1, x.shape[-1]), up_weight, up_bias))
    return hidden @ down_weight.T + down_bias


@FEED_FORWARD.add(
    "axes-fixed",
    "It works for a certain number of axes only.",
    "x is [..., H]: what does yours do with one token [H], and with a batch [B, S, H]?",
    "Look for what depends on the number of axes: a loop, x.T, torch.mm or bmm, letters in einsum.",
    "`x @ up_weight.T` takes x with any axes before the last. In einsum these are written as `...`.",
    on="a batch of one text",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    hidden = F.relu(torch.einsum("bsh,dh->bsd", x, up_weight) + up_bias)
    return torch.einsum("bsd,hd->bsh", hidden, down_weight) + down_bias


@FEED_FORWARD.also("axes-fixed")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return torch.mm(F.relu(torch.mm(x, up_weight.T) + up_bias), down_weight.T) + down_bias


@FEED_FORWARD.also("axes-fixed")
def _(x, up_weight, up_bias, down_weight, down_bias):
    return torch.stack([down_weight @ F.relu(up_weight @ each + up_bias) + down_bias for each in x])


@FEED_FORWARD.add(
    "left-in-fp32",
    "The result is in fp32, whatever came in.",
    "Which dtype does the residual stream have, to which this is added?",
    "Look for .float() or dtype= in your code: is there a way back?",
    "No cast is needed here; or .to(x.dtype) at the end.",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    hidden = F.relu(_up(x.float(), up_weight.float(), up_bias.float()))
    return hidden @ down_weight.float().T + down_bias.float()


def _answer(number):
    return lambda: torch.tensor(number).double()


NARROW_RANK.add(
    "size-of-the-matrix",
    "8 is the size of the matrix. Its rank can be smaller.",
    "From how many columns can all eight be mixed?",
    "How many numbers carry a token from the first layer to the second?",
    "Every output is mixed from the numbers in the middle. Count those.",
)(_answer(8))

NARROW_RANK.add(
    "what-is-lost",
    "5 is how many directions are lost.",
    "How many of the eight are left?",
    "The rank counts the directions that get through.",
    "8 less those that are lost.",
)(_answer(5))

NARROW_RANK.add(
    "added-up",
    "The two layers do not add their ranks up: the second works on what the first lets through.",
    "Which rank can the first layer have at most?",
    "Can the second layer bring back a direction that the first one lost?",
    "The rank of a product is at most the smaller of the two ranks.",
)(_answer(6))
NARROW_RANK.also("added-up")(_answer(11))

NARROW_RANK.add(
    "weights-counted",
    "That is a number of weights, not of directions.",
    "The rank is the smallest number of columns from which all columns can be mixed. Can it exceed 8 here?",
    "Follow a token: 8 numbers, then how many?",
    "Every output is mixed from the numbers in the middle. Count those.",
)(_answer(48))
NARROW_RANK.also("weights-counted")(_answer(64))
NARROW_RANK.also("weights-counted")(_answer(24))

NARROW_RANK.add(
    "one-matrix-rank-one",
    "One matrix does not mean rank 1.",
    "The two layers become one matrix. From how many columns can all its columns be mixed?",
    "How many numbers carry a token from the first layer to the second?",
    "With random weights none of the numbers in the middle is wasted. Count them.",
)(_answer(1))

NARROW_RANK.add(
    "too-small",
    "More gets through than that.",
    "Follow a token: 8 numbers, then how many, then 8 again?",
    "With random weights none of the numbers in the middle is wasted.",
    "Every output is mixed from the numbers in the middle. Count those.",
)(_answer(2))

NARROW_RANK.add(
    "too-large",
    "Less gets through than that.",
    "Follow a token: 8 numbers, then how many, then 8 again?",
    "The second layer can only mix what the first one hands it.",
    "Every output is mixed from the numbers in the middle. Count those.",
)(_answer(4))
NARROW_RANK.also("too-large")(_answer(7))


def _one_bias(up_bias, down_weight, down_bias):
    return down_weight @ up_bias + down_bias


@COLLAPSE_WITH_BIAS.add(
    "up-bias-lost",
    "The first bias is lost: the one bias is down_bias alone.",
    "What comes out of the two layers for a token of zeros?",
    "The first layer makes up_bias of a token of zeros. What does the second layer make of that?",
    "down_weight @ up_bias, plus down_bias.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_bias.clone()


@COLLAPSE_WITH_BIAS.add(
    "down-bias-lost",
    "The second bias is lost.",
    "What comes out of the two layers for a token of zeros?",
    "Follow a token of zeros to the very end of the second layer.",
    "Add down_bias to down_weight @ up_bias.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight @ up_bias


@COLLAPSE_WITH_BIAS.add(
    "biases-added",
    "The two biases are added as they are: the first one does not go through the second layer.",
    "How many numbers does each of the two biases have?",
    "What does the second layer do with everything that the first one hands it, its bias included?",
    "down_weight @ up_bias, plus down_bias.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, up_bias + down_bias


@COLLAPSE_WITH_BIAS.add(
    "bias-through-transpose",
    "The first bias goes through down_weight the wrong way round.",
    "Which axis of down_weight [H, D] has to meet the D numbers of up_bias?",
    "Where H = D, both sides of `@` fit. Which axis of a matrix meets a vector on its right, and which one "
    "on its left?",
    "down_weight @ up_bias, or up_bias @ down_weight.T.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight.T @ up_bias + down_bias


@COLLAPSE_WITH_BIAS.add(
    "bias-through-both",
    "The first bias goes through the one matrix, so through both layers.",
    "Which of the two layers comes after up_bias?",
    "up_bias is added after the first matrix, so it no longer meets that one.",
    "down_weight @ up_bias, plus down_bias.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight @ up_weight @ up_bias + down_bias


@COLLAPSE_WITH_BIAS.add(
    "both-biases-through-down",
    "down_bias goes through the second matrix as well.",
    "Which matrix comes after down_bias?",
    "Look at your brackets: what does down_weight multiply?",
    "down_weight @ up_bias, and then + down_bias.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight @ (up_bias + down_bias)


@COLLAPSE_WITH_BIAS.add(
    "layers-exchanged",
    "The two layers are exchanged: yours goes down first, and then up.",
    "Which of the two layers does a token meet first?",
    "Each layer has a weight and a bias. Which pair works on x, and which on what comes out of that?",
    "Multiply out down_weight (up_weight x + up_bias) + down_bias.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return up_weight @ down_weight, up_weight @ down_bias + up_bias


@COLLAPSE_WITH_BIAS.add(
    "exchanged",
    "The matrix and the bias come back in the wrong order.",
    "Which of the two is asked for first?",
    "Look at the shapes of what you return. Which of them is that of a matrix?",
    "First the matrix [H, H], then the bias [H]: return matrix, bias",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return _one_bias(up_bias, down_weight, down_bias), down_weight @ up_weight


@COLLAPSE_WITH_BIAS.add(
    "relu-on-bias",
    "The first bias is cut off below 0, although ReLU is taken out.",
    "What stands between the two layers in this exercise?",
    "Look for relu or clamp around up_bias.",
    "down_weight @ up_bias, with up_bias as it is.",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight @ F.relu(up_bias) + down_bias


@COLLAPSE_WITH_BIAS.add(
    "bias-entry-by-entry",
    "`down_weight * up_bias` multiplies, and does not add up: the bias is a whole matrix.",
    "How many numbers should the one bias have?",
    "Each feature of the output gets something from all D numbers of up_bias. What brings them together?",
    "down_weight @ up_bias multiplies and adds up, and is [H].",
)
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight * up_bias + down_bias


@COLLAPSE_WITH_BIAS.also("bias-entry-by-entry")
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight * up_bias + down_bias[:, None]


@COLLAPSE_WITH_BIAS.also("bias-entry-by-entry")
def _(up_weight, up_bias, down_weight, down_bias):
    return down_weight @ up_weight, down_weight * up_bias


def _by_unit_tokens(to_matrix, always_fp32):
    """What comes out for the unit tokens, biases included, made into a matrix; and the bias."""

    def collapse_with_bias(up_weight, up_bias, down_weight, down_bias):
        def two_layers(x):
            return _up(x, up_weight, up_bias) @ down_weight.T + down_bias

        H, dtype = up_weight.shape[1], torch.float32 if always_fp32 else up_weight.dtype
        bias = two_layers(torch.zeros(H, dtype=dtype))
        return to_matrix(two_layers(torch.eye(H, dtype=dtype)), bias), bias

    return collapse_with_bias


COLLAPSE_WITH_BIAS.add(
    "biases-in-matrix",
    "The biases are in your matrix: each unit token carries them along.",
    "What does a token of zeros give, and how often is that in your matrix?",
    "Each row of `two_layers(torch.eye(H))` is what one feature does, plus what a token of zeros gives.",
    "Subtract what the token of zeros gives, and do so before you transpose.",
)(_by_unit_tokens(lambda rows, bias: rows.T, always_fp32=False))
for fp32 in (False, True):
    COLLAPSE_WITH_BIAS.also("biases-in-matrix")(_by_unit_tokens(lambda rows, bias: rows.T - bias, fp32))
    COLLAPSE_WITH_BIAS.also("biases-in-matrix")(_by_unit_tokens(lambda rows, bias: rows, fp32))
COLLAPSE_WITH_BIAS.also("biases-in-matrix")(_by_unit_tokens(lambda rows, bias: rows.T, always_fp32=True))


COLLAPSE_WITH_BIAS.take(
    COLLAPSE,
    lambda collapse: (
        lambda up_weight, up_bias, down_weight, down_bias: (
            collapse(up_weight, down_weight),
            _one_bias(up_bias, down_weight, down_bias),
        )
    ),
    without=("weights-of-the-lesson", "two-features-only"),
)


def _centred_by(centre):
    """The network on a centred x."""

    def feed_forward(x, up_weight, up_bias, down_weight, down_bias):
        return F.relu(_up(centre(x), up_weight, up_bias)) @ down_weight.T + down_bias

    return feed_forward


def _standardized(unbiased, eps, inside):
    """The network on a standardized x, with eps inside of the root or beside it."""

    def standardize(x):
        centred = x - x.mean(-1, keepdim=True)
        variance = x.var(-1, unbiased=unbiased, keepdim=True)
        return centred / ((variance + eps).sqrt() if inside else variance.sqrt() + eps)

    return _centred_by(standardize)


def centred_over_tokens(x, up_weight, up_bias, down_weight, down_bias):
    """The function that is given to be repaired."""
    centred = x - x.mean(0, keepdim=True)
    hidden = F.relu(centred @ up_weight.T + up_bias)
    return hidden @ down_weight.T + down_bias


CENTRED.add(
    "centred-over-tokens",
    "The mean still runs over tokens: changing one token moves the others.",
    "Along which axis do you go when you walk through the features of one token?",
    "x.mean(axis) takes that axis away. For x [S, H], one number for each token is which shape?",
    "The features are the last axis: x.mean(-1, keepdim=True).",
)(_centred_by(lambda x: x - x.mean(-2, keepdim=True)))
CENTRED.also("centred-over-tokens")(_centred_by(lambda x: x - x.mean(0)))

CENTRED.add(
    "axis-counted-from-left",
    "The mean runs over axis 1: these are the features of [S, H], but the tokens of [B, S, H].",
    "Which axis holds the features when there is a batch axis too?",
    "Counted from the left, the features are axis 1 or 2 or 0. How are they counted from the right?",
    "The features are the last axis, -1.",
)(_centred_by(lambda x: x - x.mean(1, keepdim=True)))

CENTRED.add(
    "centred-over-everything",
    "One mean of all numbers is subtracted: changing one token moves the others.",
    "How many means should there be for two tokens?",
    "`mean()` without an axis runs over tokens and features.",
    "One mean for each token: x.mean(-1, keepdim=True).",
)(_centred_by(lambda x: x - x.mean()))
CENTRED.also("centred-over-everything")(_centred_by(lambda x: x - x.mean((-2, -1), keepdim=True)))

CENTRED.add(
    "keepdim-lost",
    "The mean lost its axis: the means of the tokens line up with the features.",
    "What is the shape of your mean, and how does it stretch over x?",
    "Shapes are lined up from the right: [S] meets the H of [S, H].",
    "The mean has to keep the axis that it runs over: keepdim=True.",
)(_centred_by(lambda x: x - x.mean(-1)))

CENTRED.add(
    "not-centred",
    "It does not centre any more.",
    "If you add 5 to every feature of a token, should the output change?",
    "The repair is to centre each token by its own features, not to leave the mean out.",
    "Keep the line, and change the axis of its mean.",
)(_centred_by(lambda x: x))

CENTRED.add(
    "standardized",
    "It also divides by the spread of the token: more than centring.",
    "If every feature of a token doubles, should its centred features stay the same?",
    "Centring is subtraction only. What else does yours do?",
    "x - x.mean(-1, keepdim=True), with no norm and no division.",
)(_centred_by(lambda x: F.layer_norm(x, (x.shape[-1],))))
for unbiased in (True, False):
    for eps in (0, 1e-6, 1e-5):
        CENTRED.also("standardized")(_standardized(unbiased, eps, inside=True))
        CENTRED.also("standardized")(_standardized(unbiased, eps, inside=False))

CENTRED.add(
    "mean-added",
    "The mean is added, not subtracted.",
    "What should the mean of a centred token be?",
    "Look at the sign before the mean.",
    "x - x.mean(-1, keepdim=True).",
)(_centred_by(lambda x: x + x.mean(-1, keepdim=True)))


@CENTRED.add(
    "centred-after-up",
    "The hidden numbers are centred, not x.",
    "What is to be centred: the token, or the answers of the detectors?",
    "Look at the line with the mean: does it stand before or after the first matrix?",
    "Centre x first, by x.mean(-1, keepdim=True).",
)
def _(x, up_weight, up_bias, down_weight, down_bias):
    hidden = _up(x, up_weight, up_bias)
    return F.relu(hidden - hidden.mean(-1, keepdim=True)) @ down_weight.T + down_bias


CENTRED.take(
    FEED_FORWARD,
    lambda feed_forward: lambda x, *rest: feed_forward(x - x.mean(-1, keepdim=True), *rest),
    without=(
        "normalized-inside",
        "axes-fixed",
        "squeezed",
        "axes-flattened",
        "weight-first",
        "left-in-fp32",
        "residual-added",
    ),
)
