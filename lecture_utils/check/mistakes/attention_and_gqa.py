"""Mistakes in the masks of attention, in attention, and around its heads."""

import torch

from ..mistake import Catalogue

CAUSAL_MASK = Catalogue()
REPEAT_KV = Catalogue()
ATTENTION = Catalogue()
GQA_SAVING = Catalogue()
WINDOW_MASK = Catalogue()
REPAIR_MERGE_HEADS = Catalogue()


# causal_mask

_FILLS = (-torch.inf, -1e4, -1e9)  # in the place of the lowest number


def _allowed(q_len, kv_len):
    """Right: True where a query may look."""
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len)


def _additive(allowed, dtype):
    """Right: 0 where a query may look, elsewhere the lowest number."""
    return torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)


def _fixed(q_len, kv_len, dtype, number):
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(~_allowed(q_len, kv_len), number)


def _border(catalogue, id, name, *hints, on=""):
    """A decorator: the function says wrongly who may look.

    Also with another number to hide with, and in fp32 throughout: those come together often.
    """

    def hiding_with(allowed, number, in_fp32):
        def mask(*arguments):
            *sizes, dtype = arguments
            may, dtype = allowed(*sizes), torch.float32 if in_fp32 else dtype
            lowest = torch.finfo(dtype).min if number is None else number
            return torch.zeros(may.shape, dtype=dtype).masked_fill(~may, lowest)

        return mask

    def enter(allowed):
        first, *others = [
            hiding_with(allowed, number, in_fp32) for in_fp32 in (False, True) for number in (None, *_FILLS)
        ]
        catalogue.add(id, name, *hints, on=on)(first)
        for other in others:
            catalogue.also(id)(other)
        return allowed

    return enter


@_border(
    CAUSAL_MASK,
    "aligned-top-left",
    "It takes the queries for the first tokens: the first row sees one token, however many came before.",
    "One query arrives, after three tokens that are known. Which token is it?",
    "Compare the mask of 1 query and 4 tokens with the last row of the mask of 4 queries and 4 tokens.",
    "The diagonal moves to the right by the number of tokens before the first query: tril(kv_len - q_len).",
    on="one query, four tokens",
)
def _(q_len, kv_len):
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril()


@_border(
    CAUSAL_MASK,
    "offset-backwards",
    "It moves the diagonal to the left where it should move to the right.",
    "For 2 queries of 3 tokens, how many tokens may the first query see?",
    "tril(1) keeps one more diagonal than tril(0). Is your shift above 0 or below it?",
    "tril(kv_len - q_len): with more keys than queries that is above 0.",
    on="one query, four tokens",
)
def _(q_len, kv_len):
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril(q_len - kv_len)


@_border(
    CAUSAL_MASK,
    "itself-hidden",
    "A token may not look at itself: it sees only those before it, and the first one sees nothing.",
    "What is left for the first token to look at?",
    "On which side of your border does the diagonal lie? `triu` and `tril` both keep it.",
    "What is hidden begins one column after the token itself: triu(kv_len - q_len + 1).",
)
def _(q_len, kv_len):
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len - 1)


@_border(
    CAUSAL_MASK,
    "next-token-seen",
    "A token may look at the one after it: the answer that it is to predict.",
    "What does a token have to predict, and may it see that?",
    "Look at the first row of your mask for 2 queries and 2 tokens. How many zeros should it have?",
    "The last column that a row sees is its own token: tril(kv_len - q_len), no 1 more.",
)
def _(q_len, kv_len):
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len + 1)


@_border(
    CAUSAL_MASK,
    "future-not-past",
    "A token sees itself and what comes after it, and nothing of what came before.",
    "Which triangle lies before the diagonal: the lower one or the upper one?",
    "Read the last row of your mask: it is the last token, so it may look at all. Does it?",
    "Allowed is what tril keeps; triu keeps the other side.",
)
def _(q_len, kv_len):
    return torch.ones(q_len, kv_len, dtype=torch.bool).triu(kv_len - q_len)


@_border(
    CAUSAL_MASK,
    "exchanged",
    "It has 0 where a query may not look, and the lowest number where it may.",
    "What is added to the score of a key that may be seen?",
    "Look at your condition: is it True where a query may look, or where it may not? And which of them "
    "does masked_fill fill?",
    "Fill where it is not allowed: masked_fill(~allowed, …).",
)
def _(q_len, kv_len):
    return ~_allowed(q_len, kv_len)


@CAUSAL_MASK.add(
    "nothing-hidden",
    "Nothing is hidden: the mask is all zeros.",
    "Which entry of the mask of 2 queries and 2 tokens is not 0?",
    "A method without a `_` at its end gives a new tensor back. Do you keep it?",
    "mask = mask.masked_fill(~allowed, torch.finfo(dtype).min), or masked_fill_ with a `_`.",
)
def _(q_len, kv_len, dtype):
    return torch.zeros(q_len, kv_len, dtype=dtype)


@CAUSAL_MASK.add(
    "minus-infinity",
    "It hides with −∞: a row in which all is hidden becomes NaN in the softmax.",
    "What does a softmax give for a row of nothing but −∞?",
    "A padded text has such rows. Which number is low enough, and still a number?",
    "torch.finfo(dtype).min, the lowest finite number of that dtype.",
)
def _(q_len, kv_len, dtype):
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(~_allowed(q_len, kv_len), -torch.inf)


@CAUSAL_MASK.also("minus-infinity")
def _(q_len, kv_len, dtype):  # twice the lowest number
    lowest = _additive(_allowed(q_len, kv_len), dtype)
    return lowest + lowest


@CAUSAL_MASK.also("minus-infinity")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, torch.float32, -torch.inf)


@CAUSAL_MASK.add(
    "infinity-times-zero",
    "It multiplies zeros by −∞, and 0 · ∞ is not a number: all that should be 0 is NaN.",
    "What is 0 · (−∞)?",
    "Choose one of two numbers for each entry, and multiply nothing. Which functions choose?",
    "masked_fill or torch.where, with torch.finfo(dtype).min.",
)
def _(q_len, kv_len, dtype):
    return (~_allowed(q_len, kv_len)).to(dtype) * -torch.inf


@CAUSAL_MASK.add(
    "fill-1e4",
    "It hides with −10000, whatever the dtype: a score below that would win over it.",
    "Can a score be lower than −10000, and what happens to a hidden key then?",
    "Where does your number come from? The lowest one is another for each dtype.",
    "torch.finfo(dtype).min.",
)
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, dtype, -1e4)


@CAUSAL_MASK.also("fill-1e4")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, torch.float32, -1e4)


@CAUSAL_MASK.add(
    "fill-1e9",
    "It hides with −1000000000, whatever the dtype: fp16 has no such number.",
    "What is the lowest number that fp16 can hold?",
    "Where does your number come from? torch can tell the lowest one of each dtype.",
    "torch.finfo(dtype).min.",
)
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, dtype, -1e9)


@CAUSAL_MASK.also("fill-1e9")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, torch.float32, -1e9)


@CAUSAL_MASK.also("fill-1e9")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, torch.float32, -1e9).to(dtype)


@CAUSAL_MASK.add(
    "fill-of-fp32",
    "It hides with the lowest number of fp32, whatever the dtype: in 16 bits that is −∞, or an error.",
    "Is the lowest number of fp32 a number in fp16?",
    "Which dtype do you give to torch.finfo?",
    "torch.finfo(dtype).min, with the argument dtype.",
)
def _(q_len, kv_len, dtype):
    return _additive(_allowed(q_len, kv_len), torch.float32).to(dtype)


@CAUSAL_MASK.also("fill-of-fp32")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, dtype, torch.finfo(torch.float32).min)


@CAUSAL_MASK.add(
    "largest-number",
    "It adds the largest number where it should hide: hidden keys get all the weight.",
    "Does a large number make a softmax weight large or small?",
    "torch.finfo has a largest and a lowest number. Which one hides?",
    "torch.finfo(dtype).min, or minus the largest.",
)
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, dtype, torch.finfo(dtype).max)


@CAUSAL_MASK.add(
    "smallest-step",
    "It adds a number next to 0 where it should hide: nothing is hidden.",
    "Which number is lowest: one next to 0, or one far below it?",
    "`tiny` and `eps` of torch.finfo are small and positive. Which entry is the lowest of all?",
    "torch.finfo(dtype).min.",
)
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, dtype, torch.finfo(dtype).tiny)


@CAUSAL_MASK.also("smallest-step")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, dtype, torch.finfo(dtype).eps)


@CAUSAL_MASK.add(
    "ones-and-zeros",
    "It has 1 where a query may look and 0 where not: a mask to multiply by, not to add.",
    "What does adding 0 to a score do to its key?",
    "The mask is added before the softmax. Which number leaves a score as it is, and which one makes its "
    "weight 0?",
    "0 where a query may look, torch.finfo(dtype).min elsewhere.",
)
def _(q_len, kv_len, dtype):
    return _allowed(q_len, kv_len).to(dtype)


@CAUSAL_MASK.also("ones-and-zeros")
def _(q_len, kv_len, dtype):
    return _allowed(q_len, kv_len).float()


@CAUSAL_MASK.add(
    "ones-where-hidden",
    "It has 1 where a query may not look: added to a score, that makes the key fit better.",
    "What does adding 1 to a score do to the weight of its key?",
    "Your triangle is the right one. By which number is it to be multiplied, or with which one filled?",
    "torch.finfo(dtype).min in the place of the ones.",
)
def _(q_len, kv_len, dtype):
    return (~_allowed(q_len, kv_len)).to(dtype)


@CAUSAL_MASK.also("ones-where-hidden")
def _(q_len, kv_len, dtype):
    return (~_allowed(q_len, kv_len)).float()


@CAUSAL_MASK.add(
    "minus-one",
    "It has −1 where a query may not look: that dampens a key, and does not hide it.",
    "By which factor does −1 in the scores make a weight smaller?",
    "exp(−1) is 0.37. How low must a score be so that no weight is left, whatever the others are?",
    "torch.finfo(dtype).min in the place of −1.",
)
def _(q_len, kv_len, dtype):
    return -(~_allowed(q_len, kv_len)).to(dtype)


@CAUSAL_MASK.add(
    "boolean",
    "It says yes or no, and no number to add comes back.",
    "What should be added to a score where a query may look?",
    "You have where it may look. The exercise asks for numbers of the given dtype: which two?",
    "torch.zeros(…, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min).",
)
def _(q_len, kv_len, dtype):
    return _allowed(q_len, kv_len)


@CAUSAL_MASK.also("boolean")
def _(q_len, kv_len, dtype):
    return ~_allowed(q_len, kv_len)


@CAUSAL_MASK.add(
    "dtype-ignored",
    "The mask is fp32, whatever `dtype` says: added to scores in 16 bits, it turns them into fp32.",
    "Which dtype does your mask have when the caller asks for torch.float16?",
    "Follow `dtype` through your lines. Which tensor is made without it?",
    "torch.zeros(q_len, kv_len, dtype=dtype) to begin with.",
)
def _(q_len, kv_len, dtype):
    return _additive(_allowed(q_len, kv_len), torch.float32)


@CAUSAL_MASK.also("dtype-ignored")
def _(q_len, kv_len, dtype):
    return _fixed(q_len, kv_len, torch.float32, torch.finfo(dtype).min if dtype.itemsize < 8 else -torch.inf)


@_border(
    CAUSAL_MASK,
    "transposed",
    "Rows and columns are exchanged: each row is a key.",
    "Which of the two lengths is the number of rows?",
    "A row is a query: what it may see is read from left to right. Draw 1 query and 4 keys.",
    "The shape is [q_len, kv_len], and the lower triangle is allowed.",
    on="one query, four tokens",
)
def _(q_len, kv_len):
    return _allowed(q_len, kv_len).T


@CAUSAL_MASK.also("transposed")
def _(q_len, kv_len, dtype):
    return _additive(torch.ones(kv_len, q_len, dtype=torch.bool).tril(kv_len - q_len), dtype)


@CAUSAL_MASK.also("transposed")
def _(q_len, kv_len, dtype):
    return _additive(torch.ones(kv_len, q_len, dtype=torch.bool).tril(), dtype)


@_border(
    CAUSAL_MASK,
    "a-row-for-every-key",
    "It has a row for every key, not for every query.",
    "How many queries are there, and how many rows came back?",
    "Of a square mask you need some rows: those of the queries. Are these the first or the last?",
    "The last q_len rows of the square: mask[-q_len:], or make [q_len, kv_len] to begin with.",
)
def _(q_len, kv_len):
    return _allowed(kv_len, kv_len)


@_border(
    CAUSAL_MASK,
    "a-column-for-every-query",
    "It has a column for every query, and none for the other keys.",
    "How many keys does the last query look at?",
    "With a cache there are more keys than queries. What should stand in the columns of the earlier ones?",
    "The shape is [q_len, kv_len], and tril(kv_len - q_len) leaves all the earlier ones open.",
)
def _(q_len, kv_len):
    return _allowed(q_len, q_len)


# repeat_kv


@REPEAT_KV.add(
    "tiled",
    "The copies stand behind all the heads: [10, 20] becomes [10, 20, 10, 20].",
    "Query heads 0 and 1 share a key head. Which one do they get from you?",
    "torch has `repeat` and `repeat_interleave`. Try both on torch.tensor([10, 20]).",
    "repeat_interleave writes a copy beside its original; or expand on a new axis after the heads, not "
    "before them.",
)
def _(x, n_rep):
    return x.repeat(1, n_rep, 1, 1)


@REPEAT_KV.also("tiled")
def _(x, n_rep):
    return torch.cat([x] * n_rep, dim=1)


@REPEAT_KV.add(
    "along-tokens",
    "It repeats tokens, not heads.",
    "Which axis of [B, K, S, d] counts the heads?",
    "Print the shape that comes back: which of its four numbers grew?",
    "The heads are axis 1.",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep, dim=2)


@REPEAT_KV.also("along-tokens")
def _(x, n_rep):
    return x.repeat(1, 1, n_rep, 1)


@REPEAT_KV.add(
    "along-features",
    "It repeats features, not heads.",
    "Which axis of [B, K, S, d] counts the heads?",
    "Print the shape that comes back: which of its four numbers grew?",
    "The heads are axis 1.",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep, dim=-1)


@REPEAT_KV.also("along-features")
def _(x, n_rep):
    return x.repeat(1, 1, 1, n_rep)


@REPEAT_KV.add(
    "along-texts",
    "It repeats texts, not heads.",
    "Which axis of [B, K, S, d] counts the heads?",
    "Print the shape that comes back: which of its four numbers grew?",
    "The heads are axis 1; axis 0 counts the texts.",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep, dim=0)


@REPEAT_KV.also("along-texts")
def _(x, n_rep):
    return x.repeat(n_rep, 1, 1, 1)


@REPEAT_KV.add(
    "not-repeated",
    "It gives back as many heads as came in.",
    "How many heads should come back for 2 heads and n_rep 2?",
    "The shape should grow from K to K · n_rep heads. Which of your lines makes new heads?",
    "repeat_interleave along axis 1.",
)
def _(x, n_rep):
    return x.clone()


@REPEAT_KV.add(
    "flattened",
    "All the numbers came back in one long row.",
    "Along which axis do you repeat?",
    "Without an axis, `repeat_interleave` flattens its input. What does its help say of `dim`?",
    "Give it the axis of the heads, dim=1.",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep)


@REPEAT_KV.add(
    "tokens-torn",
    "A head that comes back holds some tokens of its original, several times, and lacks the others.",
    "Where should the new axis stand: beside the heads, or beside the tokens?",
    "After your `expand` there are five axes. Which two of them does `reshape` put together?",
    "The new axis comes right after the heads: x[:, :, None], expanded to [B, K, n_rep, S, d], then "
    "reshaped.",
    on="two heads of two tokens",
)
def _(x, n_rep):
    B, K, S, d = x.shape
    return x[:, :, :, None].expand(B, K, S, n_rep, d).reshape(B, K * n_rep, S, d)


@REPEAT_KV.add(
    "features-torn",
    "A head that comes back holds some features of its original, several times, in the wrong places.",
    "Where should the new axis stand: beside the heads, or beside the features?",
    "After your `expand` there are five axes. Which of them does `reshape` put together?",
    "The new axis comes right after the heads: x[:, :, None], expanded to [B, K, n_rep, S, d], then "
    "reshaped.",
    on="two tokens of two features",
)
def _(x, n_rep):
    B, K, S, d = x.shape
    return x[..., None].expand(B, K, S, d, n_rep).reshape(B, K * n_rep, S, d)


@REPEAT_KV.add(
    "texts-mixed",
    "Heads of one text come back in another one.",
    "Which axis did you repeat before you reshaped?",
    "Follow two texts of two heads. In which order do their heads lie before the last line?",
    "Repeat along the heads, axis 1, and leave axis 0 alone.",
    on="two texts of two heads",
)
def _(x, n_rep):
    B, K, S, d = x.shape
    return x.repeat(n_rep, 1, 1, 1).reshape(B, K * n_rep, S, d)


@REPEAT_KV.add(
    "first-head-only",
    "All the heads that come back are copies of the first one.",
    "Where did the second head go?",
    "`[:, :1]` and `[:, 0]` keep one head. Which of your lines drops the others?",
    "Each of the K heads, n_rep times: repeat_interleave along axis 1.",
)
def _(x, n_rep):
    return x[:, :1].repeat(1, x.shape[1] * n_rep, 1, 1)


@REPEAT_KV.add(
    "always-two",
    "It makes two copies, whatever `n_rep` says.",
    "How many query heads share a key head in Llama-3-8B? And where does your number come from?",
    "Look for a 2 in your code.",
    "The argument n_rep says how many.",
)
def _(x, n_rep):
    return x.repeat_interleave(2, dim=1)


@REPEAT_KV.add(
    "one-too-many",
    "Each head comes back n_rep + 1 times: the original, and n_rep copies.",
    "With n_rep 1, how many heads should come back?",
    "n_rep counts all the heads that share one, the original among them.",
    "repeat_interleave(n_rep, …), with nothing added.",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep + 1, dim=1)


@REPEAT_KV.add(
    "n-rep-in-all",
    "`n_rep` heads come back in all, not K · n_rep.",
    "Does n_rep count all the heads, or the copies of one?",
    "n_rep is the number of query heads that share one key head. How many query heads are there in all?",
    "Each of the K heads n_rep times: K · n_rep heads.",
)
def _(x, n_rep):
    return x.repeat_interleave(max(1, n_rep // x.shape[1]), dim=1)


# attention


def _grouped(q, k, v):
    """Right: keys and values for every query head."""
    n_rep = q.shape[1] // k.shape[1]
    return k.repeat_interleave(n_rep, dim=1), v.repeat_interleave(n_rep, dim=1)


def _scores(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def _hidden(scores, mask):
    """Right: the mask added."""
    return scores if mask is None else scores + mask


def _weights(scores, q, dim=-1):
    return scores.softmax(dim, dtype=torch.float32).to(q.dtype)


def _with_scale(scale):
    """Attention with `scale(q, k)` in the place of 1/√d."""

    def attention(q, k, v, mask):
        k, v = _grouped(q, k, v)
        return _weights(_hidden(q @ k.mT * scale(q, k), mask), q) @ v

    return attention


def _with_dim(dim):
    """Attention with the softmax over another axis."""

    def attention(q, k, v, mask):
        k, v = _grouped(q, k, v)
        return _weights(_hidden(_scores(q, k), mask), q, dim) @ v

    return attention


ATTENTION.add(
    "scale-missing",
    "The scores are not divided by √d: with more features they grow, and the softmax sees only the largest.",
    "How large is a sum of d products, if each is about 1 or −1?",
    "Compare your scores with those of the formula. Which number is missing below q·k?",
    "Divide the scores by q.shape[-1] ** 0.5 before the mask and the softmax.",
)(_with_scale(lambda q, k: 1.0))

ATTENTION.add(
    "scaled-by-d",
    "The scores are divided by d, not by its root: they are too small, and the weights too even.",
    "Each product is about 1 or −1. How large is a sum of d of them: about d, or about √d?",
    "Is there a root in your line? And is the scale there once, or in q and in k as well?",
    "Divide by d ** 0.5, once.",
)(_with_scale(lambda q, k: 1 / q.shape[-1]))

ATTENTION.add(
    "multiplied-by-root-d",
    "The scores are multiplied by √d, not divided.",
    "Is the scale to make large scores smaller or larger?",
    "Look at the sign of your power, and at the sign between the scores and the root.",
    "Divide by d ** 0.5, or multiply by d ** -0.5.",
)(_with_scale(lambda q, k: q.shape[-1] ** 0.5))

ATTENTION.add(
    "scaled-by-heads",
    "The scores are divided by √N, the root of the number of heads.",
    "Over how many products does q·k sum?",
    "Which entry of q.shape do you take: the heads, the tokens or the features of one head?",
    "d is the last one, q.shape[-1].",
    on="two heads of four features",
)(_with_scale(lambda q, k: q.shape[1] ** -0.5))

ATTENTION.also("scaled-by-heads")(
    lambda q, k, v, mask: _with_scale(lambda q, _: k.shape[1] ** -0.5)(q, k, v, mask)
)

ATTENTION.add(
    "scaled-by-length",
    "The scores are divided by the root of the number of tokens.",
    "Over how many products does q·k sum?",
    "Which entry of q.shape or k.shape do you take: the heads, the tokens or the features of one head?",
    "d is the last one, q.shape[-1].",
)(_with_scale(lambda q, k: q.shape[-2] ** -0.5))
ATTENTION.also("scaled-by-length")(_with_scale(lambda q, k: k.shape[-2] ** -0.5))

ATTENTION.add(
    "scaled-by-hidden-size",
    "The scores are divided by √(N · d), the root of the hidden size.",
    "Over how many products does the q·k of one head sum?",
    "Each head works with its own part of a token. How wide is that part?",
    "d is the last axis of q, q.shape[-1]; the other heads do not count.",
)(_with_scale(lambda q, k: (q.shape[1] * q.shape[-1]) ** -0.5))

ATTENTION.add(
    "softmax-over-queries",
    "The softmax runs over the queries: the weights of one query do not add up to 1.",
    "Whose weights are to add up to 1: those of one query, or those of one key?",
    "Scores are [B, N, S, T]. Which axis counts the keys that a query chooses from?",
    "The softmax is over the last axis, the T keys.",
)(_with_dim(-2))

ATTENTION.add(
    "softmax-over-heads",
    "The softmax runs over the heads.",
    "May one head have less weight because another has more?",
    "Scores are [B, N, S, T]. Which axis do you give to the softmax? Without one, it chooses for itself.",
    "The softmax is over the last axis, the T keys.",
    on="two heads for four",
)(_with_dim(1))

ATTENTION.add(
    "softmax-over-texts",
    "The softmax runs over the texts of the batch.",
    "May one text change because another is in the batch?",
    "Scores are [B, N, S, T]. Which axis do you give to the softmax?",
    "The softmax is over the last axis, the T keys.",
    on="two texts",
)(_with_dim(0))


@ATTENTION.add(
    "softmax-over-all",
    "The softmax runs over queries and keys together: all the weights of a head add up to 1.",
    "To how much do the weights of one query add up?",
    "Look at the axes of your softmax, or of the sum that you divide by. How many are there?",
    "The softmax is over the last axis only.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _hidden(_scores(q, k), mask)
    return _weights(scores.flatten(-2), q).unflatten(-1, scores.shape[-2:]) @ v


@ATTENTION.add(
    "softmax-missing",
    "The values are weighted by the scores themselves: there is no softmax.",
    "Can a score be negative, and can a weight?",
    "What has to happen to the scores, so that those of one query are above 0 and add up to 1?",
    "scores.softmax(-1, …) before the values come in.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _hidden(_scores(q, k), mask) @ v


@ATTENTION.add(
    "softmax-twice",
    "The softmax is taken twice: the weights come out almost even.",
    "How far apart can two scores be when they have gone through one softmax?",
    "Count the softmaxes between the scores and the values.",
    "One is enough.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_weights(_hidden(_scores(q, k), mask), q), q) @ v


@ATTENTION.add(
    "divided-by-sum",
    "The scores are divided by their sum, without exp.",
    "What do you get for scores 1 and −1?",
    "A softmax has two steps. What does it do to each score before it divides by a sum?",
    "exp first, then the sum: scores.softmax(-1, …) does both.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _hidden(_scores(q, k), mask)
    return (scores / scores.sum(-1, keepdim=True)) @ v


@ATTENTION.add(
    "softmax-overflows",
    "exp is taken of the scores as they are: beyond 88 it is infinite, and where all is hidden it is 0 / 0.",
    "What is exp(100) in fp32?",
    "A softmax does not change if all the scores of a query move by the same amount. By which amount is it "
    "safe?",
    "Subtract scores.amax(-1, keepdim=True) first, or use softmax, which does that.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    weights = _hidden(_scores(q, k), mask).float().exp()
    return (weights / weights.sum(-1, keepdim=True)).to(q.dtype) @ v


@ATTENTION.also("softmax-overflows")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    weights = _hidden(_scores(q, k), mask).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


@ATTENTION.add(
    "scaled-after-softmax",
    "The weights are divided by √d, after the softmax: they no longer add up to 1.",
    "What do the weights of one query have to add up to?",
    "√d is there to keep the scores small. At which step is it still possible to do that?",
    "Divide the scores, and leave the weights as the softmax made them.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(q @ k.mT, mask), q) / q.shape[-1] ** 0.5 @ v


@ATTENTION.add(
    "mask-ignored",
    "The mask is not used: every token sees all the others, those after it too.",
    "What keeps the first token from reading the second?",
    "Which of the four arguments does your function not use?",
    "scores = scores + mask, if mask is not None, before the softmax.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_scores(q, k), q) @ v


@ATTENTION.add(
    "none-added",
    "A mask that is None is added all the same.",
    "What should happen to the scores if mask is None?",
    "The message names None. Which argument may be None, and which line should be left out then?",
    "if mask is not None: scores = scores + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_scores(q, k) + mask, q) @ v


@ATTENTION.add(
    "mask-after-softmax",
    "The mask is added after the softmax: hidden keys get a hugely negative weight.",
    "What does adding the lowest number do to a score, and what does it do to a weight?",
    "The softmax turns very low scores into weights of 0. When must they be made low?",
    "Add the mask to the scores, then take the softmax.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _hidden(_weights(_scores(q, k), q), mask) @ v


@ATTENTION.add(
    "zeroed-after-softmax",
    "Weights are set to 0 after the softmax: those that remain do not add up to 1.",
    "To how much do the weights of the first query add up, when the rest of them is set to 0?",
    "The hidden keys still took part in the softmax. At which step can they be kept out of its sum?",
    "Add the mask to the scores, then take the softmax.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    weights = _weights(_scores(q, k), q)
    return (weights if mask is None else weights.masked_fill(mask < 0, 0.0)) @ v


@ATTENTION.add(
    "mask-multiplied",
    "The scores are multiplied by the mask.",
    "The mask is 0 where a query may look. What is left of a score that is multiplied by it?",
    "0 changes nothing, and the lowest number hides: in which operation is that so?",
    "scores + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    return _weights(scores if mask is None else scores * mask, q) @ v


@ATTENTION.add(
    "mask-subtracted",
    "The mask is subtracted: hidden keys get all the weight.",
    "Is a hidden key's score to become very low or very high?",
    "The mask is negative already. With which sign does it make a score lower?",
    "scores + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(q, k), None if mask is None else -mask), q) @ v


@ATTENTION.add(
    "mask-scaled-too",
    "The mask is divided by √d together with the scores: a mask that only dampens comes in too weak.",
    "Which is done first: the division by √d, or the addition of the mask?",
    "Look at your brackets. What does the formula put over the √d?",
    "scores / √d first, and then + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(q @ k.mT, mask) / q.shape[-1] ** 0.5, q) @ v


@ATTENTION.add(
    "mask-as-switch",
    "The mask is read as yes or no: a number in it that only dampens a score hides the key.",
    "What should a mask of −1.1 do to a score: lower it by 1.1, or hide the key?",
    "The mask is made to be added, whatever its numbers are. What do you do with them?",
    "scores + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    lowest = torch.finfo(scores.dtype).min
    return _weights(scores if mask is None else scores.masked_fill(mask < 0, lowest), q) @ v


@ATTENTION.add(
    "mask-taken-for-boolean",
    "The additive mask is read as a boolean one: where it is 0, keys that may be seen are hidden.",
    "Which number stands in an additive mask where a query may look?",
    "Print the mask, and beside it the condition that you fill by. Is it True where a query may look, or "
    "where it may not?",
    "Nothing is to be filled: scores + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
    return _weights(scores, q) @ v


@ATTENTION.also("mask-taken-for-boolean")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), -torch.inf)
    return _weights(scores, q) @ v


@ATTENTION.add(
    "dampening-ignored",
    "Only very low numbers of the mask are used: one that only dampens a score is passed over.",
    "What should a mask of −1.1 do to a score?",
    "The mask is made to be added, whatever its numbers are. What do you do with them?",
    "scores + mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    lowest = torch.finfo(scores.dtype).min
    return _weights(scores if mask is None else scores.masked_fill(mask < -1e4, lowest), q) @ v


@ATTENTION.add(
    "minus-infinity",
    "It hides with −∞ of its own: where all is hidden, the softmax gives NaN.",
    "What does a softmax give for a row of nothing but −∞?",
    "The mask brings a number of its own for what is hidden, and it is finite. Where does yours come from?",
    "scores + mask.",
    on="all is hidden",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    return _weights(scores if mask is None else scores.masked_fill(mask < 0, -torch.inf), q) @ v


@ATTENTION.also("minus-infinity")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    return _weights(scores if mask is None else scores.masked_fill(mask < -1e4, -torch.inf), q) @ v


@ATTENTION.add(
    "fill-1e4",
    "It hides with −10000: a score below that loses to a hidden key.",
    "Can a score be lower than −10000, and who gets the weight then?",
    "The mask brings a number of its own for what is hidden. Where does yours come from?",
    "scores + mask.",
    on="very low scores",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _scores(q, k)
    return _weights(scores if mask is None else scores.masked_fill(mask < 0, -1e4), q) @ v


@ATTENTION.also("fill-1e4")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(q, k), None if mask is None else mask.clamp(min=-1e4)), q) @ v


@ATTENTION.add(
    "causal-by-itself",
    "It hides the future even when `mask` is None: a mask that nobody asked for.",
    "Who decides what may be seen: this function, or its caller?",
    "With one query and no mask, which keys may be seen, and which do you let it see?",
    "If mask is None, the scores go into the softmax as they are.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _hidden(_scores(q, k), mask)
    if mask is None:
        scores = scores + _additive(
            torch.ones(scores.shape[-2:], dtype=torch.bool).tril().to(q.device), q.dtype
        )
    return _weights(scores, q) @ v


@ATTENTION.also("causal-by-itself")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _hidden(_scores(q, k), mask)
    if mask is None:
        scores = scores + _additive(_allowed(*scores.shape[-2:]).to(q.device), q.dtype)
    return _weights(scores, q) @ v


@ATTENTION.add(
    "own-mask-for-yours",
    "It makes a causal mask of its own and does not use the one that is given.",
    "What happens to the padding that `mask` hides?",
    "The caller knows what may be seen: padding, a window, a cache. Which of your lines reads `mask`?",
    "scores + mask if there is one, and no other mask.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    S, T = q.shape[-2], k.shape[-2]
    return _weights(_scores(q, k) + _additive(_allowed(S, T).to(q.device), q.dtype), q) @ v


@ATTENTION.also("own-mask-for-yours")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    allowed = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril().to(q.device)
    return _weights(_scores(q, k) + _additive(allowed, q.dtype), q) @ v


@ATTENTION.add(
    "mask-of-first-text",
    "The mask of the first text is used for all of them.",
    "One text is padded and another is not. Which mask does each of them get from you?",
    "A mask may be [S, T] or [B, 1, S, T]. What does an index into its first axis take away?",
    "scores + mask stretches both forms, with no index.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(q, k), mask[0] if mask is not None and mask.dim() == 4 else mask), q) @ v


@ATTENTION.add(
    "heads-tiled",
    "The copies of the key/value heads stand behind all the heads: query head 1 reads head 1, not head 0.",
    "Four query heads, two key heads: which ones share key head 0?",
    "Neighbours share. Is that what `repeat` gives, or what `repeat_interleave` gives?",
    "repeat_interleave along axis 1, or your repeat_kv.",
)
def _(q, k, v, mask):
    n_rep = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, n_rep, 1, 1), v.repeat(1, n_rep, 1, 1)
    return _weights(_hidden(_scores(q, k), mask), q) @ v


@ATTENTION.add(
    "values-tiled",
    "Keys are repeated beside their original and values are not: a head looks by one and reads another.",
    "Do keys and values of one head stay together?",
    "Compare the two lines that repeat k and v.",
    "Both through the same repeat_kv.",
)
def _(q, k, v, mask):
    n_rep = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(n_rep, dim=1), v.repeat(1, n_rep, 1, 1)
    return _weights(_hidden(_scores(q, k), mask), q) @ v


@ATTENTION.add(
    "heads-not-repeated",
    "The key/value heads are not repeated: it runs with one head or with N of them, and not between.",
    "How many key heads are there, and how many query heads want one?",
    "q has N heads and k has K. What does the matrix product need of these two numbers?",
    "k and v through repeat_kv with N // K, before the scores.",
)
def _(q, k, v, mask):
    return _weights(_hidden(_scores(q, k), mask), q) @ v


@ATTENTION.add(
    "another-number-of-copies",
    "The key/value heads are copied, but not N/K times: there are not as many of them as query heads.",
    "How many query heads are there, and how many heads have your keys after the copies?",
    "Print q.shape[1] and k.shape[1] before the copies: which number of copies makes the second as large as "
    "the first?",
    "n_rep = q.shape[1] // k.shape[1].",
)
def _(q, k, v, mask):
    k, v = (x.repeat_interleave(k.shape[1], dim=1) for x in (k, v))
    return _weights(_hidden(_scores(q, k), mask), q) @ v


@ATTENTION.also("another-number-of-copies")
def _(q, k, v, mask):
    k, v = (x.repeat_interleave(q.shape[1], dim=1) for x in (k, v))
    return _weights(_hidden(_scores(q, k), mask), q) @ v


@ATTENTION.add(
    "first-head-for-all",
    "All query heads read the first key/value head.",
    "Who reads the second key head?",
    "`[:, :1]` keeps one head, and it stretches over all. Which query heads should it serve?",
    "k and v through repeat_kv with N // K.",
)
def _(q, k, v, mask):
    return _weights(_hidden(_scores(q, k[:, :1]), mask), q) @ v[:, :1]


@ATTENTION.add(
    "heads-averaged",
    "The key/value heads are averaged into one, which all query heads read.",
    "If all query heads read the same keys, what are K of them for?",
    "A mean over axis 1 leaves one head. Which one should each query head read?",
    "k and v through repeat_kv with N // K.",
)
def _(q, k, v, mask):
    k, v = k.mean(1, keepdim=True), v.mean(1, keepdim=True)
    return _weights(_hidden(_scores(q, k), mask), q) @ v


@ATTENTION.add(
    "keys-not-transposed",
    "q and k are multiplied as they are, so features meet tokens: it runs only where T = d.",
    "Which axes of q [B, N, S, d] and k [B, N, T, d] is the product to sum over?",
    "A matrix product sums the last axis of the first over the last but one of the second. Which axes of k "
    "have to change places?",
    "q @ k.transpose(-2, -1).",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(q @ k / q.shape[-1] ** 0.5, mask), q) @ v


@ATTENTION.add(
    "keys-reshaped",
    "The keys are reshaped to [B, N, d, T], not transposed: the numbers of different tokens are mixed.",
    "Which numbers of k make up its first column after your line?",
    "`reshape` and `view` keep the order of the numbers. Which method exchanges two axes?",
    "k.transpose(-2, -1).",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    columns = k.reshape(*k.shape[:2], k.shape[3], k.shape[2])
    return _weights(_hidden(q @ columns / q.shape[-1] ** 0.5, mask), q) @ v


@ATTENTION.add(
    "keys-and-values-exchanged",
    "Keys and values are exchanged: it looks by the values, and hands over the keys.",
    "Which of the two is q compared with?",
    "Say the two products aloud: a query meets a …, and a weight meets a …",
    "q with k, then the weights with v.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(q, v), mask), q) @ k


@ATTENTION.add(
    "keys-handed-over",
    "It hands over the keys: the values are not used.",
    "What does a token hand over, once it has been found?",
    "Which of the four arguments does your function not use?",
    "weights @ v.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(q, k), mask), q) @ k


@ATTENTION.add(
    "keys-compared-with-keys",
    "Keys are compared with keys: the queries are not used.",
    "Who asks?",
    "Which of the four arguments does your function not use?",
    "q @ k.transpose(-2, -1), not k with itself.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(k[:, :, -q.shape[-2] :], k), mask), q) @ v


@ATTENTION.add(
    "weights-returned",
    "The weights come back, and not what they gather.",
    "Which shape has an output: [B, N, S, T] or [B, N, S, d]?",
    "Four steps: score, mask, softmax, gather. Which of them is missing at the end?",
    "weights @ v.",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _weights(_hidden(_scores(q, k), mask), q)


@ATTENTION.add(
    "left-in-fp32",
    "It does not come back from fp32: in 16 bits the product with v fails, or its output is fp32.",
    "Which dtype do the weights have when they meet v?",
    "The softmax is taken in fp32. Follow the dtype from there: which one should the output have?",
    "Only the softmax is in fp32. After it: .to(q.dtype).",
    on="in 16 bits",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _hidden(_scores(q, k), mask).softmax(-1, dtype=torch.float32) @ v


@ATTENTION.also("left-in-fp32")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return _hidden(_scores(q, k), mask).softmax(-1, dtype=torch.float32) @ v.float()


@ATTENTION.also("left-in-fp32")
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    scores = _hidden(_scores(q, k).float(), mask)
    return (scores.softmax(-1) @ v.to(scores.dtype)).float()


@ATTENTION.add(
    "tokens-before-heads",
    "Heads and tokens have changed places in the output: [B, S, N, d].",
    "Which shape does the exercise ask for?",
    "Merging the heads comes later, in another function. Which of your lines already moves them?",
    "Return weights times v as it is, [B, N, S, d].",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return (_weights(_hidden(_scores(q, k), mask), q) @ v).transpose(1, 2)


@ATTENTION.add(
    "heads-merged",
    "The heads are merged: [B, S, N · d] came back.",
    "Which shape does the exercise ask for?",
    "Merging the heads comes later, in another function. Which of your lines already does it?",
    "Return weights times v as it is, [B, N, S, d].",
)
def _(q, k, v, mask):
    k, v = _grouped(q, k, v)
    return (_weights(_hidden(_scores(q, k), mask), q) @ v).transpose(1, 2).flatten(-2)


# gqa_saving


@GQA_SAVING.add(
    "tiled",
    "Head 5 would be it if the key/value heads were read in turn: 13 % 8.",
    "Do neighbouring query heads share a key/value head, or do they read in turn?",
    "repeat_kv puts the copies beside their original. Write down its heads for query heads 0, 1, 2, …",
    "Four neighbours share one, so divide: 13 // 4.",
)
def _():
    return torch.tensor(5.0).double(), torch.tensor(75.0).double()


@GQA_SAVING.also("tiled")
def _():
    return torch.tensor(5.0).double(), torch.tensor(25.0).double()


@GQA_SAVING.add(
    "counted-from-1",
    "Head 4 is counted from 1, and the exercise counts from 0.",
    "Which key/value head does query head 0 read?",
    "Heads 0 to 3 share the first one. Which number has that, counted from 0?",
    "Heads 12 to 15 are the fourth group: number 3 when the first is 0.",
)
def _():
    return torch.tensor(4.0).double(), torch.tensor(75.0).double()


@GQA_SAVING.also("counted-from-1")
def _():
    return torch.tensor(4.0).double(), torch.tensor(25.0).double()


@GQA_SAVING.add(
    "groups-of-eight",
    "Head 1 would be it if eight query heads shared one: 13 // 8.",
    "How many query heads share one key/value head?",
    "8 is the number of key/value heads. How many query heads come to each of them?",
    "32 / 8 = 4 query heads share one: 13 // 4.",
)
def _():
    return torch.tensor(1.0).double(), torch.tensor(75.0).double()


@GQA_SAVING.also("groups-of-eight")
def _():
    return torch.tensor(1.0).double(), torch.tensor(25.0).double()


@GQA_SAVING.add(
    "between-two-heads",
    "3.25 lies between two heads: a head has a whole number.",
    "Which heads share a key/value head with query head 12?",
    "Write down the key/value head of query heads 12, 13, 14, 15 and 16. Where does it change?",
    "A division without remainder: 13 // 4.",
)
def _():
    return torch.tensor(3.25).double(), torch.tensor(75.0).double()


@GQA_SAVING.also("between-two-heads")
def _():
    return torch.tensor(3.25).double(), torch.tensor(25.0).double()


@GQA_SAVING.add(
    "own-head",
    "There is no key/value head 13: there are 8 of them.",
    "How many key/value heads are there to choose from?",
    "32 query heads share 8 key/value heads. Which of the query heads share the first?",
    "Four neighbours share one: 13 // 4.",
)
def _():
    return torch.tensor(13.0).double(), torch.tensor(75.0).double()


@GQA_SAVING.also("own-head")
def _():
    return torch.tensor(13.0).double(), torch.tensor(25.0).double()


@GQA_SAVING.add(
    "what-remains",
    "25 per cent is what remains, not what is saved.",
    "Is the cache smaller by that much, or is it that large?",
    "Of 32 heads, how many are not kept?",
    "8 of 32 are kept: a quarter remains. The rest is saved.",
)
def _():
    return torch.tensor(3.0).double(), torch.tensor(25.0).double()


@GQA_SAVING.add(
    "fraction",
    "That is the share as a fraction, and the question asks for per cent.",
    "How many of a hundred is that?",
    "The name of the answer says its unit.",
    "Multiply by 100.",
)
def _():
    return torch.tensor(3.0).double(), torch.tensor(0.75).double()


@GQA_SAVING.add(
    "factor",
    "The cache is smaller by a factor of 4, and the question asks for per cent of the full one.",
    "If a quarter remains, how many per cent are gone?",
    "Take a cache of 100 with K = N. How large is it here, and how much is saved?",
    "100 becomes 25.",
)
def _():
    return torch.tensor(3.0).double(), torch.tensor(4.0).double()


@GQA_SAVING.also("factor")
def _():
    return torch.tensor(3.0).double(), torch.tensor(400.0).double()


@GQA_SAVING.also("factor")
def _():
    return torch.tensor(3.0).double(), torch.tensor(300.0).double()


@GQA_SAVING.add(
    "hearsay",
    "The saving follows from N and K, and here it is not what is often said.",
    "How many heads are kept, of how many?",
    "With K = N, 32 key/value heads are kept for each token. How many are kept with K = 8?",
    "8 of 32 are kept: a quarter remains, and the rest is saved.",
)
def _():
    return torch.tensor(3.0).double(), torch.tensor(50.0).double()


@GQA_SAVING.also("hearsay")
def _():
    return torch.tensor(3.0).double(), torch.tensor(60.0).double()


@GQA_SAVING.also("hearsay")
def _():
    return torch.tensor(3.0).double(), torch.tensor(70.0).double()


@GQA_SAVING.add(
    "one-of-eight",
    "That would be it if one head of eight were kept.",
    "8 heads are kept: of how many?",
    "Compare with the cache that has a key/value head for each query head. How many heads has that?",
    "8 of 32 are kept: a quarter remains, and the rest is saved.",
)
def _():
    return torch.tensor(3.0).double(), torch.tensor(87.5).double()


@GQA_SAVING.also("one-of-eight")
def _():
    return torch.tensor(3.0).double(), torch.tensor(12.5).double()


# window_mask


def _places(q_len, kv_len):
    """The place of each query [q_len, 1] and of each key [1, kv_len] in the text."""
    return torch.arange(kv_len - q_len, kv_len)[:, None], torch.arange(kv_len)[None]


def _window(q_len, kv_len, window):
    """Right: True where a query may look."""
    i, j = _places(q_len, kv_len)
    return (j <= i) & (j > i - window)


@_border(
    WINDOW_MASK,
    "window-ignored",
    "The window is not used: a token sees all before it.",
    "With a window of 2, which tokens does token 2 see, counted from 0?",
    "Your mask has one edge. Where is the other?",
    "Of what causal_mask allows, keep what .triu(kv_len - q_len - window + 1) keeps.",
)
def _(q_len, kv_len, window):
    return _allowed(q_len, kv_len)


@_border(
    WINDOW_MASK,
    "one-too-many",
    "A token sees itself and `window` before it: one too many.",
    "With a window of 1, how many tokens does a token see?",
    "The token itself is one of the window. How many come before it?",
    "j > i - window, or .triu(kv_len - q_len - window + 1).",
)
def _(q_len, kv_len, window):
    return _window(q_len, kv_len, window + 1)


@_border(
    WINDOW_MASK,
    "one-too-few",
    "A token sees one token less than the window has: with a window of 1, none.",
    "With a window of 1, how many tokens does a token see?",
    "Count the zeros in the last row of your mask.",
    "j > i - window, or .triu(kv_len - q_len - window + 1).",
)
def _(q_len, kv_len, window):
    return _window(q_len, kv_len, window - 1)


@_border(
    WINDOW_MASK,
    "itself-hidden",
    "A token sees the `window` tokens before it, and not itself.",
    "Is the token itself in its window?",
    "Look at the first row: what is left for the first token to look at?",
    "i - window < j <= i.",
)
def _(q_len, kv_len, window):
    i, j = _places(q_len, kv_len)
    return (j < i) & (j >= i - window)


@_border(
    WINDOW_MASK,
    "both-sides",
    "The window reaches to both sides: a token sees those after it too.",
    "What does a token have to predict, and may it see that?",
    "A distance without a sign has two sides. Which of your conditions looks at the order?",
    "Both: j <= i, and j > i - window.",
)
def _(q_len, kv_len, window):
    i, j = _places(q_len, kv_len)
    return (i - j).abs() < window


@_border(
    WINDOW_MASK,
    "future-seen",
    "The future is not hidden: only what lies too far back is.",
    "May a token see the one after it?",
    "Your mask has one edge, the far one. Where is the other?",
    "Both: j <= i, and j > i - window.",
)
def _(q_len, kv_len, window):
    i, j = _places(q_len, kv_len)
    return (j > i - window).expand(q_len, kv_len)


@_border(
    WINDOW_MASK,
    "window-inverted",
    "It hides the window and shows what lies before it.",
    "Should a token see what is near, or what is far?",
    "Look at the last row: which of its columns are the last `window` tokens?",
    "Keep what .triu keeps, not what .tril keeps: j > i - window.",
)
def _(q_len, kv_len, window):
    i, j = _places(q_len, kv_len)
    return j <= i - window


@_border(
    WINDOW_MASK,
    "aligned-top-left",
    "It takes the queries for the first tokens of the text.",
    "One query arrives, after three tokens that are known. Which token is it?",
    "Compare the mask of 1 query and 4 tokens with the last row of the mask of 4 queries and 4 tokens.",
    "Query r is token kv_len - q_len + r: both edges move by that much.",
    on="one query, four tokens",
)
def _(q_len, kv_len, window):
    i, j = torch.arange(q_len)[:, None], torch.arange(kv_len)
    return (j <= i) & (j > i - window)


@_border(
    WINDOW_MASK,
    "far-edge-top-left",
    "The near edge is in place, and the far one counts the queries from the first token of the text.",
    "With 1 query and 4 tokens, where does the window begin?",
    "Both edges are diagonals, and both move when there are tokens before the queries. Do both of yours?",
    "The far edge is .triu(kv_len - q_len - window + 1).",
    on="one query, four tokens",
)
def _(q_len, kv_len, window):
    far = torch.ones(q_len, kv_len, dtype=torch.bool).triu(1 - window)
    return _allowed(q_len, kv_len) & far


@_border(
    WINDOW_MASK,
    "blocks",
    "The text is cut into blocks: the first token of a block sees none before it.",
    "How many tokens does token 2 see, with a window of 2?",
    "A sliding window moves with each token. Does yours move by one, or by a whole window?",
    "j > i - window, with no division.",
)
def _(q_len, kv_len, window):
    i, j = _places(q_len, kv_len)
    return (j <= i) & (j // window == i // window)


@_border(
    WINDOW_MASK,
    "first-tokens",
    "It shows the first `window` tokens of the text, not the last ones of each query.",
    "Which tokens are near the last one: the first, or those just before it?",
    "The window moves with the query. Which of your lines compares a key with its query?",
    "j > i - window.",
)
def _(q_len, kv_len, window):
    return _allowed(q_len, kv_len) & (torch.arange(kv_len) < window)


@_border(
    WINDOW_MASK,
    "last-of-the-text",
    "All queries see the same last `window` tokens of the text.",
    "Which tokens are in the window of the first query?",
    "The window moves with the query. Which of your lines compares a key with its query?",
    "j > i - window.",
)
def _(q_len, kv_len, window):
    return _allowed(q_len, kv_len) & (torch.arange(kv_len) >= kv_len - window)


@_border(
    WINDOW_MASK,
    "exchanged",
    "It has 0 where a query may not look, and the lowest number where it may.",
    "What is added to the score of a key that may be seen?",
    "Look at your condition: is it True where a query may look, or where it may not?",
    "Fill where it is not allowed: masked_fill(~allowed, …).",
)
def _(q_len, kv_len, window):
    return ~_window(q_len, kv_len, window)


@WINDOW_MASK.add(
    "minus-infinity",
    "It hides with −∞: a row in which all is hidden becomes NaN in the softmax.",
    "What does a softmax give for a row of nothing but −∞?",
    "Which number does causal_mask hide with?",
    "torch.finfo(dtype).min.",
)
def _(q_len, kv_len, window, dtype):
    hidden = ~_window(q_len, kv_len, window)
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(hidden, -torch.inf)


@WINDOW_MASK.also("minus-infinity")
def _(q_len, kv_len, window, dtype):
    hidden = ~_window(q_len, kv_len, window)
    return torch.zeros(q_len, kv_len).masked_fill(hidden, -torch.inf)


@WINDOW_MASK.also("minus-infinity")
def _(q_len, kv_len, window, dtype):
    lowest = _additive(_window(q_len, kv_len, window), dtype)
    return lowest + lowest


@WINDOW_MASK.add(
    "fill-1e4",
    "It hides with −10000, whatever the dtype: a score below that would win over it.",
    "Can a score be lower than −10000, and what happens to a hidden key then?",
    "Which number does causal_mask hide with?",
    "torch.finfo(dtype).min.",
)
def _(q_len, kv_len, window, dtype):
    hidden = ~_window(q_len, kv_len, window)
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(hidden, -1e4)


@WINDOW_MASK.also("fill-1e4")
def _(q_len, kv_len, window, dtype):
    hidden = ~_window(q_len, kv_len, window)
    return torch.zeros(q_len, kv_len).masked_fill(hidden, -1e4)


@WINDOW_MASK.add(
    "ones-and-zeros",
    "It has 1 where a query may look and 0 where not: a mask to multiply by, not to add.",
    "What does adding 0 to a score do to its key?",
    "The mask is added before the softmax. Which number leaves a score as it is?",
    "0 where a query may look, torch.finfo(dtype).min elsewhere.",
)
def _(q_len, kv_len, window, dtype):
    return _window(q_len, kv_len, window).to(dtype)


@WINDOW_MASK.add(
    "boolean",
    "It says yes or no, and no number to add comes back.",
    "What should be added to a score where a query may look?",
    "You have where it may look. The exercise asks for numbers of the given dtype: which two?",
    "torch.zeros(…, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min).",
)
def _(q_len, kv_len, window, dtype):
    return _window(q_len, kv_len, window)


@WINDOW_MASK.also("boolean")
def _(q_len, kv_len, window, dtype):
    return ~_window(q_len, kv_len, window)


@WINDOW_MASK.add(
    "dtype-ignored",
    "The mask is fp32, whatever `dtype` says.",
    "Which dtype does your mask have when the caller asks for torch.float16?",
    "Follow `dtype` through your lines. Which tensor is made without it?",
    "torch.zeros(q_len, kv_len, dtype=dtype) to begin with.",
)
def _(q_len, kv_len, window, dtype):
    return _additive(_window(q_len, kv_len, window), torch.float32)


# repair_merge_heads


def without_transpose(out):
    B, N, S, d = out.shape
    return out.reshape(B, S, N * d)


REPAIR_MERGE_HEADS.add(
    "transpose-missing",
    "The numbers are read head by head, so different tokens share a row.",
    "Which numbers of the input belong to token 0?",
    "reshape keeps the order of the numbers: it reads head 0 to its end first. Which axis should be read "
    "first, after the texts?",
    "The tokens come before the heads: transpose(1, 2), then merge.",
)(without_transpose)


@REPAIR_MERGE_HEADS.also("transpose-missing")
def _(out):
    return out.flatten(1).unflatten(1, (out.shape[2], -1))


@REPAIR_MERGE_HEADS.add(
    "view-after-transpose",
    "`view` fails after a transpose: the numbers do not lie in that order in memory.",
    "What does the message say that `view` cannot do?",
    "A transpose moves no numbers. One method views them as they lie, another copies them where it has to.",
    "reshape in the place of view.",
)
def _(out):
    B, N, S, d = out.shape
    return out.transpose(1, 2).view(B, S, N * d)


@REPAIR_MERGE_HEADS.add(
    "features-first",
    "The heads take turns: feature 0 of each head, then feature 1 of each.",
    "Which numbers lie side by side in a merged token: those of one head, or one of each?",
    "Print the shape before you merge: the last axis stays together. Which one should that be?",
    "[B, S, N, d] before it is merged: transpose(1, 2) and no other exchange.",
)
def _(out):
    return out.permute(0, 2, 3, 1).flatten(-2)


@REPAIR_MERGE_HEADS.add(
    "tokens-and-features-exchanged",
    "Tokens and features have changed places, and heads stay in front.",
    "Which two axes have to change places, so that a token's heads lie side by side?",
    "out is [B, N, S, d]. Which axes do the numbers in your transpose stand for?",
    "transpose(1, 2) exchanges heads and tokens.",
)
def _(out):
    B, N, S, d = out.shape
    return out.transpose(-1, -2).reshape(B, S, N * d)


@REPAIR_MERGE_HEADS.add(
    "texts-and-tokens-mixed",
    "Different texts share a row.",
    "May a number of one text come into another one?",
    "out is [B, N, S, d]. Does your exchange leave axis 0 where it is?",
    "transpose(1, 2) exchanges heads and tokens, and leaves the texts alone.",
)
def _(out):
    B, N, S, d = out.shape
    return out.transpose(0, 2).reshape(B, S, N * d)


@REPAIR_MERGE_HEADS.also("texts-and-tokens-mixed")
def _(out):
    B, N, S, d = out.shape
    return out.permute(2, 0, 1, 3).reshape(B, S, N * d)


@REPAIR_MERGE_HEADS.add(
    "not-merged",
    "Heads and tokens have changed places, and the heads are not merged yet.",
    "How many axes should come back?",
    "[B, S, N, d] is half of the way. Which two axes become one?",
    "After the transpose: reshape(B, S, N * d), or flatten(-2).",
)
def _(out):
    return out.transpose(1, 2)


@REPAIR_MERGE_HEADS.add(
    "heads-averaged",
    "The heads are averaged: what one of them found is mixed with the others.",
    "How many numbers does a token have, after N heads of d numbers?",
    "The heads are to lie side by side. Does a mean or a sum keep them apart?",
    "transpose(1, 2), then reshape(B, S, N * d).",
)
def _(out):
    return out.mean(1)


@REPAIR_MERGE_HEADS.add(
    "heads-summed",
    "The heads are added up: what one of them found is mixed with the others.",
    "How many numbers does a token have, after N heads of d numbers?",
    "The heads are to lie side by side. Does a mean or a sum keep them apart?",
    "transpose(1, 2), then reshape(B, S, N * d).",
)
def _(out):
    return out.sum(1)


@REPAIR_MERGE_HEADS.add(
    "tokens-merged",
    "Tokens and features became one axis, and the heads are left.",
    "Which axis should be gone at the end: that of the tokens, or that of the heads?",
    "flatten(-2) merges the last two axes. Which are they in your line?",
    "[B, S, N, d] first, then flatten(-2).",
)
def _(out):
    return out.flatten(-2)


@REPAIR_MERGE_HEADS.add(
    "heads-and-tokens-merged",
    "Heads and tokens became one axis, and the features are left.",
    "How many tokens are there, and how many rows came back?",
    "Which two axes should become one: heads and tokens, or heads and features?",
    "[B, S, N, d] first, then flatten(-2).",
)
def _(out):
    return out.flatten(1, 2)


@REPAIR_MERGE_HEADS.also("heads-and-tokens-merged")
def _(out):
    return out.transpose(1, 2).flatten(1, 2)


@REPAIR_MERGE_HEADS.add(
    "first-head-only",
    "Only one head comes back.",
    "How many numbers does a token have, after N heads of d numbers?",
    "`[:, 0]` keeps one head. Where do the others go?",
    "transpose(1, 2), then reshape(B, S, N * d).",
)
def _(out):
    return out[:, 0]
