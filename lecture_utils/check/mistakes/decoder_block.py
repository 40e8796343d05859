"""Mistakes in putting a decoder layer together. Names in short: a for attention, m for the network."""

import torch

from ..mistake import Catalogue

DECODER_LAYER = Catalogue()
POST_NORM_LAYER = Catalogue()
REPAIR_DECODER_LAYER = Catalogue()
ZEROED_LAYER = Catalogue()


@DECODER_LAYER.add(
    "residual-after-norm",
    "Both sums start from the normalized tokens: what the stream held before is lost.",
    "If attention and mlp both return 0, what should come back, and what do you return?",
    "Look at what stands on the left of each `+`. Has it been through a norm?",
    "Save the tokens first: the sum is x + attention(…), with x as it came; only attention sees norm_1(x).",
)
def _(x, attention, mlp, norm_1, norm_2):
    n = norm_1(x)
    n = norm_2(n + attention(n))
    return n + mlp(n)


@DECODER_LAYER.add(
    "first-residual-after-norm",
    "The first sum starts from norm_1(x), not from x.",
    "If attention returns 0, what should the stream hold after the first half?",
    "Look at the left of the first `+`: is that x as it came, or x after a norm?",
    "h = x + attention(norm_1(x)): do not overwrite x with its norm.",
)
def _(x, attention, mlp, norm_1, norm_2):
    x = norm_1(x)
    h = x + attention(x)
    return h + mlp(norm_2(h))


@DECODER_LAYER.add(
    "second-residual-after-norm",
    "The second sum starts from norm_2(h), not from h.",
    "If mlp returns 0, what should come out of the second half?",
    "Look at the left of the last `+`: is that the stream, or the stream after a norm?",
    "Add mlp's output to h itself; norm_2(h) is only for mlp to read.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_2(x + attention(norm_1(x)))
    return h + mlp(h)


@DECODER_LAYER.add(
    "first-residual-missing",
    "Attention's output replaces the tokens: x is not added to it.",
    "After attention, where has the token itself gone?",
    "Compare what your first half returns when attention returns 0 with what it was given.",
    "h = x + attention(norm_1(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = attention(norm_1(x))
    return h + mlp(norm_2(h))


@DECODER_LAYER.add(
    "second-residual-missing",
    "mlp's output replaces the stream: h is not added to it.",
    "After the feed-forward network, where is what attention had written?",
    "What would your function return if mlp returned 0?",
    "The last line adds h to the output of mlp.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return mlp(norm_2(h))


@DECODER_LAYER.add(
    "no-residual",
    "Nothing is ever added: attention and mlp each replace what was there.",
    "What is the stream to be when both sub-layers have nothing to say?",
    "Count the `+` in your function, and those in the two formulas of the lesson.",
    "Two sums: h = x + attention(norm_1(x)), and then h plus mlp of norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    return mlp(norm_2(attention(norm_1(x))))


@DECODER_LAYER.add(
    "norms-exchanged",
    "The two norms are exchanged: norm_2 comes before attention, norm_1 before mlp.",
    "Each norm has weights of its own. Which of the two was trained for attention?",
    "Follow norm_1 and norm_2 through your lines: which sub-layer reads the output of which?",
    "attention reads norm_1(x), mlp reads norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_2(x))
    return h + mlp(norm_1(h))


@DECODER_LAYER.add(
    "norm-1-for-both",
    "norm_1 stands before both sub-layers, and norm_2 is not used.",
    "How many norms does a layer have, and does each have weights of its own?",
    "Which of your five arguments does not occur in your function?",
    "mlp reads norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + mlp(norm_1(h))


@DECODER_LAYER.add(
    "norm-2-for-both",
    "norm_2 stands before both sub-layers, and norm_1 is not used.",
    "How many norms does a layer have, and does each have weights of its own?",
    "Which of your five arguments does not occur in your function?",
    "attention reads norm_1(x).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_2(x))
    return h + mlp(norm_2(h))


@DECODER_LAYER.add(
    "post-norm",
    "It adds first and normalizes the sum: that is the layer of 2017, post-norm.",
    "On its way from x to the output, does the stream itself pass through a norm?",
    "In Llama nothing stands on the stream but two sums. Where do your norms stand?",
    "A norm stands inside, before its sub-layer: h = x + attention(norm_1(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + mlp(h))


@DECODER_LAYER.add(
    "outputs-normalized",
    "Each norm stands behind its sub-layer: what is written is normalized, not what is read.",
    "Which comes first on the way through the branch: the norm or the sub-layer?",
    "Read your brackets from the inside out: which of the two sees x first?",
    "attention(norm_1(x)), not norm_1(attention(x)); the same for mlp.",
    on="mlp returns 0",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + norm_1(attention(x))
    return h + norm_2(mlp(h))


@DECODER_LAYER.add(
    "norm-2-after-attention",
    "norm_2 is applied to attention's output, and mlp reads the stream without a norm.",
    "`post_attention_layernorm` stands after attention. Before what does it stand?",
    "Both norms are of one kind: each prepares what a sub-layer reads. Which sub-layer has none in yours?",
    "norm_2 reads h, the sum, and mlp reads norm_2(h).",
    on="mlp returns 0",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + norm_2(attention(norm_1(x)))
    return h + mlp(h)


@DECODER_LAYER.add(
    "norm-2-at-the-end",
    "norm_2 is applied to the last sum: the output leaves normalized, and mlp reads h without a norm.",
    "May the stream itself be normalized on its way to the next layer?",
    "The next layer begins with a norm of its own. What is norm_2 for, then?",
    "norm_2 belongs to mlp: it reads norm_2(h), and its output is added to h.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return norm_2(h + mlp(h))


@DECODER_LAYER.add(
    "mlp-reads-raw",
    "mlp reads the stream as it is: norm_2 is not used.",
    "In a deep model the stream grows. What keeps the numbers that mlp reads of one size?",
    "Which of your five arguments does not occur in your function?",
    "mlp reads norm_2(h), and not h.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + mlp(h)


@DECODER_LAYER.add(
    "attention-reads-raw",
    "Attention reads the stream as it is: norm_1 is not used.",
    "In a deep model the stream grows. What keeps the numbers that attention reads of one size?",
    "Which of your five arguments does not occur in your function?",
    "attention reads norm_1(x), and not x.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(x)
    return h + mlp(norm_2(h))


@DECODER_LAYER.add(
    "no-norms",
    "Neither norm is used: both sub-layers read the stream as it is.",
    "A stream can be of any size. What makes what a sub-layer reads of one size?",
    "Which of your five arguments do not occur in your function?",
    "attention reads norm_1(x), mlp reads norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(x)
    return h + mlp(h)


@DECODER_LAYER.add(
    "mlp-reads-x",
    "mlp reads the tokens from before attention: both sub-layers work side by side, not one after the other.",
    "When mlp begins, what has attention found out already, and can mlp see it?",
    "Which name stands inside norm_2( )? Has attention's output been added to it?",
    "norm_2 reads h, the sum of x and attention's output.",
)
def _(x, attention, mlp, norm_1, norm_2):
    return x + attention(norm_1(x)) + mlp(norm_2(x))


@DECODER_LAYER.add(
    "both-read-one-norm",
    "Attention and mlp read the same norm_1(x): side by side, and norm_2 is not used.",
    "When mlp begins, what has attention found out already, and can mlp see it?",
    "mlp comes after attention, and has a norm of its own. What does that norm read?",
    "First h = x + attention(norm_1(x)); then mlp reads norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    n = norm_1(x)
    return x + attention(n) + mlp(n)


@DECODER_LAYER.add(
    "mlp-reads-normed-x",
    "mlp reads norm_2(norm_1(x)): attention's output never reaches it.",
    "When mlp begins, what has attention found out already, and can mlp see it?",
    "Which name stands inside norm_2( )? What was the last thing that was stored in it?",
    "norm_2 reads h, the sum of x and attention's output.",
)
def _(x, attention, mlp, norm_1, norm_2):
    n = norm_1(x)
    return x + attention(n) + mlp(norm_2(n))


@DECODER_LAYER.add(
    "mlp-reads-attention",
    "mlp reads attention's output alone, without the token that it was added to.",
    "Attention brings something *about* a token. Can mlp see the token itself?",
    "Which name stands inside norm_2( ): the output of attention, or the sum?",
    "norm_2 reads h, the sum of x and attention's output.",
)
def _(x, attention, mlp, norm_1, norm_2):
    a = attention(norm_1(x))
    return x + a + mlp(norm_2(a))


@DECODER_LAYER.add(
    "second-residual-from-x",
    "The last sum starts from x again: what attention wrote is lost.",
    "If mlp returns 0, is there anything of attention in your output?",
    "There are two sums. What does the second add to: the tokens as they came, or as attention left them?",
    "The last line adds mlp's output to h, not to x.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return x + mlp(norm_2(h))


@DECODER_LAYER.add(
    "second-residual-from-attention",
    "The last sum starts from attention's output: the token itself is lost.",
    "If both sub-layers return 0, what should come back?",
    "Which name stands on the left of the last `+`, and is x in it?",
    "The last line adds mlp's output to h = x + attention's output.",
)
def _(x, attention, mlp, norm_1, norm_2):
    a = attention(norm_1(x))
    return a + mlp(norm_2(x + a))


@DECODER_LAYER.add(
    "x-added-twice",
    "x is in the output twice: it is added once more at the end.",
    "h holds x already. How often is x in your output?",
    "If both sub-layers return 0, you return 2 · x. Which `+` is one too many?",
    "The last line adds two things: h and mlp's output.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return x + h + mlp(norm_2(h))


@DECODER_LAYER.add(
    "mlp-first",
    "The sub-layers are exchanged: mlp comes first, attention second.",
    "Who should speak first: the one who gathers from other tokens, or the one who thinks about it alone?",
    "Follow x through your lines: which sub-layer does it meet first?",
    "First h = x + attention(norm_1(x)), then mlp on norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + mlp(norm_1(x))
    return h + attention(norm_2(h))


@DECODER_LAYER.also("mlp-first")
def _(x, attention, mlp, norm_1, norm_2):
    h = x + mlp(norm_2(x))
    return h + attention(norm_1(h))


@DECODER_LAYER.add(
    "attention-twice",
    "Attention does both halves, and mlp is not used.",
    "Which of your five arguments has nothing to do?",
    "Two halves of the same form: compare them word by word. What should differ?",
    "The second half calls mlp on norm_2(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + attention(norm_2(h))


@DECODER_LAYER.add(
    "mlp-twice",
    "mlp does both halves, and attention is not used.",
    "Which of your five arguments has nothing to do?",
    "Two halves of the same form: compare them word by word. What should differ?",
    "The first half calls attention on norm_1(x).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + mlp(norm_1(x))
    return h + mlp(norm_2(h))


@DECODER_LAYER.add(
    "mlp-missing",
    "Only the first half is there: it returns after attention.",
    "Normalize, transform, add: how often does a layer do that?",
    "Which two of your five arguments have nothing to do?",
    "After h comes the second half: mlp on norm_2(h), added to h.",
)
def _(x, attention, mlp, norm_1, norm_2):
    return x + attention(norm_1(x))


@DECODER_LAYER.add(
    "attention-missing",
    "Only the second half is there: attention is left out.",
    "Normalize, transform, add: how often does a layer do that?",
    "Which two of your five arguments have nothing to do?",
    "Before mlp comes the first half: h = x + attention(norm_1(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    return x + mlp(norm_2(x))


REPAIR_DECODER_LAYER.take(DECODER_LAYER)


# Post-norm: what is right there and wrong here, and the other way round.


@POST_NORM_LAYER.add(
    "pre-norm",
    "That is Llama's order, pre-norm: each norm stands before its sub-layer, and not on the sum.",
    "LN(x + F(x)): which operation is the last one, the sum or the norm?",
    "Read LN(x + F(x)) from the inside out, and compare with your decoder_layer.",
    "h = norm_1(x + attention(x)), and the same form once more.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + mlp(norm_2(h))


@POST_NORM_LAYER.add(
    "norm-then-add",
    "It normalizes what a sub-layer wrote and then adds it: the sum itself is never normalized.",
    "LN(x + F(x)): which operation is the last one, the sum or the norm?",
    "How large is the output of each of your halves when x is very large? How large should it be?",
    "The sum goes inside: norm_1(x + attention(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + norm_1(attention(x))
    return h + norm_2(mlp(h))


@POST_NORM_LAYER.add(
    "stream-normalized-first",
    "It normalizes x alone and then adds the sub-layer's output.",
    "LN(x + F(x)): how much stands inside the brackets of the norm?",
    "Look where the bracket that opens after each norm closes.",
    "Close the bracket after the sum: norm_1(x + attention(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x) + attention(x)
    return norm_2(h) + mlp(h)


@POST_NORM_LAYER.add(
    "residual-after-norm",
    "Each half normalizes first, and both the sub-layer and the sum use the result.",
    "LN(x + F(x)): does F read x, or LN(x)?",
    "In which order do norm, sub-layer and sum stand in LN(x + F(x)), and in your lines?",
    "Sub-layer, then sum, then norm: norm_1(x + attention(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    n = norm_1(x)
    n = norm_2(n + attention(n))
    return n + mlp(n)


@POST_NORM_LAYER.add(
    "norms-twice",
    "Each norm is used twice: before its sub-layer and after the sum.",
    "How many norms does one half have in LN(x + F(x))?",
    "What does F read in LN(x + F(x)): x, or a norm of x?",
    "norm_1(x + attention(x)): attention reads x as it is.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(norm_1(x)))
    return norm_2(h + mlp(norm_2(h)))


@POST_NORM_LAYER.add(
    "norms-exchanged",
    "The two norms are exchanged.",
    "Each norm has weights of its own. Which of them stands on the first sum?",
    "Follow norm_1 and norm_2 through your lines: which half does each of them close?",
    "norm_1 on the sum with attention, norm_2 on the sum with mlp.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_2(x + attention(x))
    return norm_1(h + mlp(h))


@POST_NORM_LAYER.add(
    "norm-1-for-both",
    "norm_1 normalizes both sums, and norm_2 is not used.",
    "How many norms does a layer have, and does each have weights of its own?",
    "Which of your five arguments does not occur in your function?",
    "The second sum goes through norm_2.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_1(h + mlp(h))


@POST_NORM_LAYER.add(
    "norm-2-for-both",
    "norm_2 normalizes both sums, and norm_1 is not used.",
    "How many norms does a layer have, and does each have weights of its own?",
    "Which of your five arguments does not occur in your function?",
    "The first sum goes through norm_1.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_2(x + attention(x))
    return norm_2(h + mlp(h))


@POST_NORM_LAYER.add(
    "first-norm-missing",
    "The first sum is not normalized: norm_1 is not used.",
    "LN(x + F(x)) comes twice. After how many of your two sums does a norm stand?",
    "Which of your five arguments does not occur in your function?",
    "h = norm_1(x + attention(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(x)
    return norm_2(h + mlp(h))


@POST_NORM_LAYER.add(
    "second-norm-missing",
    "The second sum is not normalized: norm_2 is not used.",
    "LN(x + F(x)) comes twice. After how many of your two sums does a norm stand?",
    "Which of your five arguments does not occur in your function?",
    "The last line ends with norm_2 around its sum.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return h + mlp(h)


@POST_NORM_LAYER.add(
    "no-norms",
    "Neither norm is used.",
    "LN(x + F(x)) comes twice. After how many of your two sums does a norm stand?",
    "Which of your five arguments do not occur in your function?",
    "norm_1 goes around the first sum, norm_2 around the second.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(x)
    return h + mlp(h)


@POST_NORM_LAYER.add(
    "first-residual-missing",
    "The first sum is missing: norm_1 reads attention's output alone.",
    "What should be left of x if attention returns 0?",
    "Count the `+` in your function. LN(x + F(x)) has one, and comes twice.",
    "norm_1(x + attention(x)).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(attention(x))
    return norm_2(h + mlp(h))


@POST_NORM_LAYER.add(
    "second-residual-missing",
    "The second sum is missing: norm_2 reads mlp's output alone.",
    "What should be left of h if mlp returns 0?",
    "Count the `+` in your function. LN(x + F(x)) has one, and comes twice.",
    "norm_2 reads the sum of h and mlp(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(mlp(h))


@POST_NORM_LAYER.add(
    "no-residual",
    "Nothing is ever added: each half normalizes what its sub-layer wrote.",
    "What should be left of x if both sub-layers return 0?",
    "Count the `+` in your function. LN(x + F(x)) has one, and comes twice.",
    "norm_1(x + attention(x)), and the same form once more.",
)
def _(x, attention, mlp, norm_1, norm_2):
    return norm_2(mlp(norm_1(attention(x))))


@POST_NORM_LAYER.add(
    "second-residual-from-x",
    "The second sum starts from x, not from h: what the first half did is only seen by mlp.",
    "To what does the second half add: to what came in, or to what the first half made of it?",
    "Compare your two halves: the second should be the first with other names. Which name was not changed?",
    "The second sum is h + mlp(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(x + mlp(h))


@POST_NORM_LAYER.add(
    "mlp-reads-x",
    "mlp reads the tokens from before attention.",
    "When mlp begins, what has attention found out already, and can mlp see it?",
    "Compare your two halves: the second should be the first with other names. Which name was not changed?",
    "The second sum is h + mlp(h).",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + mlp(x))


@POST_NORM_LAYER.add(
    "mlp-first",
    "The sub-layers are exchanged: mlp comes first, attention second.",
    "Which sub-layer does the exercise name first?",
    "Follow x through your lines: which sub-layer does it meet first?",
    "First the sum with attention, then the sum with mlp.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = norm_1(x + mlp(x))
    return norm_2(h + attention(h))


@POST_NORM_LAYER.add(
    "norm-at-the-end-only",
    "Both norms stand at the end, one around the other.",
    "In the second half mlp is F. What does it read: a normalized sum, or a raw one?",
    "Between attention and mlp stands a norm. Where is it in your lines?",
    "h = norm_1(x + attention(x)) before mlp reads anything.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(x)
    return norm_2(norm_1(h + mlp(h)))


@POST_NORM_LAYER.add(
    "mlp-reads-sum",
    "mlp reads the sum before norm_1.",
    "In the second half mlp is F. What does it read: a normalized sum, or a raw one?",
    "Which value had h when mlp was called?",
    "Normalize first, h = norm_1(x + attention(x)); then both h and mlp(h) go into the second sum.",
)
def _(x, attention, mlp, norm_1, norm_2):
    h = x + attention(x)
    return norm_2(norm_1(h) + mlp(h))


# The prediction: [2, 4, 4, 8], whose RMS is 5.

_X = torch.tensor([2.0, 4.0, 4.0, 8.0]).double()


@ZEROED_LAYER.add(
    "exchanged",
    "These are the two answers, exchanged.",
    "On which of the two streams does a norm stand?",
    "Put 0 in the place of both sub-layers in the formulas, one after the other.",
    "Pre-norm becomes x + 0, post-norm becomes norm(x + 0).",
)
def _():
    return _X / 5, _X


@ZEROED_LAYER.add(
    "both-unchanged",
    "Post-norm does not leave the token as it is.",
    "In norm(x + 0), what is left to be done?",
    "Put 0 in the place of both sub-layers in the post-norm formula. What is still there?",
    "The norm stays: it divides the token by its RMS.",
)
def _():
    return _X, _X


@ZEROED_LAYER.add(
    "both-normalized",
    "Pre-norm does not normalize the stream: only what a sub-layer reads.",
    "Who reads the normalized token in the pre-norm layer, and what does it return here?",
    "Put 0 in the place of both sub-layers in the pre-norm formula. What is still there?",
    "x + 0: the normalized token was read by a sub-layer that returned 0.",
)
def _():
    return _X / 5, _X / 5


@ZEROED_LAYER.add(
    "pre-norm-zero",
    "Pre-norm does not return 0: the token is added to what the sub-layers return.",
    "What is x + 0?",
    "A sub-layer that returns 0 writes nothing. What was in the stream before it?",
    "The token travels on as it came.",
)
def _():
    return 0 * _X, _X / 5


@ZEROED_LAYER.add(
    "both-zero",
    "Neither returns 0: in both the token is added to what the sub-layers return.",
    "What is x + 0?",
    "A sub-layer that returns 0 writes nothing. What was in the stream before it?",
    "Pre-norm keeps the token; post-norm normalizes the sum, which is the token.",
)
def _():
    return 0 * _X, 0 * _X


@ZEROED_LAYER.add(
    "post-norm-zero",
    "Post-norm does not return 0: it normalizes the sum of the token and 0.",
    "What is x + 0, and what does a norm make of it?",
    "The norm stands around the sum, not around the sub-layer alone. What is in the sum?",
    "The norm divides the token by its RMS.",
)
def _():
    return _X, 0 * _X


@ZEROED_LAYER.add(
    "divided-twice",
    "It divides by 5 twice: but after the first norm the RMS is 1.",
    "What is the RMS of the token when it comes to the second norm?",
    "Do the first norm by hand, and then take the RMS of what came out.",
    "A second RMSNorm with weight 1 changes nothing.",
)
def _():
    return _X, _X / 25


@ZEROED_LAYER.add(
    "length-one",
    "RMSNorm does not make the length 1: it makes the root *mean* square 1.",
    "How many features does the token have, and what is the mean of their squares?",
    "4 + 16 + 16 + 64 = 100. What is to be done before the root is taken?",
    "100 / 4 = 25, and its root is 5.",
)
def _():
    return _X, _X / 10


@ZEROED_LAYER.add(
    "mean-subtracted",
    "That is LayerNorm: RMSNorm subtracts no mean.",
    "Which of the two norms of lesson 1 does a Llama use?",
    "Divide the token by one number, and do nothing before it. Which number?",
    "The root of the mean of squares, 5.",
)
def _():
    centred = _X - _X.mean()
    return _X, centred / centred.square().mean().sqrt()


@ZEROED_LAYER.add(
    "added-to-itself",
    "Nothing doubles: a sub-layer that returns 0 adds 0.",
    "What do the sub-layers return here?",
    "Write the two sums of the pre-norm layer with 0 in the place of both sub-layers.",
    "x + 0 + 0 is x.",
)
def _():
    return 2 * _X, _X / 5
