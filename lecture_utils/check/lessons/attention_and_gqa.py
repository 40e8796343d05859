"""The exercises of lesson 7."""

import math

import torch

from ...llama.attention import causal_mask as causal
from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case, close
from ..mistakes import attention_and_gqa as mistakes
from ..properties import Property

_SIXTEEN = (torch.float16, torch.bfloat16)


def _exactly(*arguments, label: str = "") -> Case:
    """A mask, to the last bit: beside its lowest numbers any other error would look like rounding."""
    return Case(arguments, label, tolerance=0.0)


# causal_mask


def _mask_cases(draw: Draw) -> list[Case]:
    """Two tokens, then one query that sees all, then a few of more; each dtype; then any size."""
    q_len, before = draw.size(3, 6), draw.size(3, 5)
    kv_len, single = q_len + before, torch.float32
    return [
        _exactly(2, 2, single),
        _exactly(1, 1, single, label="one token"),
        _exactly(1, 4, single, label="one query, four tokens"),
        _exactly(2, 3, single, label="two queries, three tokens"),
        _exactly(2, 5, single, label="two queries, five tokens"),
        _exactly(4, 4, single),
        *(_exactly(2, 2, dtype, label="in 16 bits") for dtype in _SIXTEEN),
        _exactly(q_len, kv_len, single, label="any size"),
        *(_exactly(q_len, kv_len, dtype, label="any size") for dtype in _SIXTEEN),
        _exactly(kv_len, kv_len, single, label="any length"),
        _exactly(2, 302, torch.bfloat16, label="positions that bf16 cannot count"),
    ]


def _mask_properties(draw: Draw) -> list[Property]:
    q_len, kv_len, dtype = 3, 5, torch.float32

    def mask(f):
        return f(q_len, kv_len, dtype)

    def sees_itself(f):
        own = mask(f)[range(q_len), range(kv_len - q_len, kv_len)]
        return None if not own.any() else "A query may not look at its own token."

    def future_hidden(f):
        later = mask(f)[0, kv_len - q_len + 1 :]
        return "A query may look at the token after its own." if (later == 0).any() else None

    def past_open(f):
        return None if not mask(f)[-1].any() else "The last query may not look at all the tokens."

    def two_numbers(f):
        found = mask(f).unique()
        return None if len(found) <= 2 else f"There are {len(found)} different numbers in the mask."

    return [
        Property("future-seen", "Which columns come after the token of a row?", future_hidden),
        Property("itself-hidden", "Which column is the token of the first row itself?", sees_itself),
        Property("past-hidden", "The last query is the last token. What lies after it?", past_open),
        Property(
            "more-than-two-numbers", "What is added where a query may look, and where not?", two_numbers
        ),
    ]


@exercise(
    cases=_mask_cases, mistakes=mistakes.CAUSAL_MASK, properties=_mask_properties,
    hints=(
        "The queries are the last q_len of kv_len tokens. Which token is the first query, counted from 0?",
        "Write the mask for 2 queries of 4 tokens on paper. `tril` and `triu` take a number that moves the "
        "diagonal: by how many columns has it moved here?",
        "torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len) is True where a query may look. "
        "Zeros of the dtype, filled with torch.finfo(dtype).min where it is not.",
    ),
)  # fmt: skip
def causal_mask(q_len, kv_len, dtype):
    allowed = torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len)
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)


# repeat_kv


def _repeat_cases(draw: Draw) -> list[Case]:
    """Heads that hold their own number; then two tokens, two features, two texts; then any size."""
    B, K, S, d = draw.sizes(4, 2, 6)
    n_rep, n = draw.size(3, 5), draw.size(2, 4)
    two_heads = torch.tensor([10.0, 20.0]).reshape(1, 2, 1, 1)
    four = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return [
        Case((two_heads, 2)),
        Case((two_heads, 1), "nothing to repeat"),
        Case((two_heads[:, :1], 3), "one head"),
        Case((four[:2].reshape(1, 1, 2, 1), 2), "two tokens"),
        Case((four[:2].reshape(1, 1, 1, 2), 2), "two features"),
        Case((four[:2].reshape(2, 1, 1, 1), 2), "two texts"),
        Case((four.reshape(1, 2, 2, 1), 2), "two heads of two tokens"),
        Case((four.reshape(1, 1, 2, 2), 2), "two tokens of two features"),
        Case((four.reshape(2, 2, 1, 1), 2), "two texts of two heads"),
        Case((draw.normal(B, K, S, d), n_rep), "[B, K, S, d]", gradients=True),
        Case((draw.normal(n, n, n, n), n), "all sizes equal"),
        Case((draw.normal(B, S, K, d).transpose(1, 2), 2), "a transposed view"),
        Case((draw.normal(B, K, S, d).double(), 4), "float64"),
        *(Case((draw.normal(B, K, S, d, dtype=dtype), 2), "in 16 bits") for dtype in _SIXTEEN),
    ]


def _repeat_properties(draw: Draw) -> list[Property]:
    x = draw.normal(2, 3, 4, 5)

    def one_is_nothing(f):
        return None if torch.equal(f(x, 1), x) else "With n_rep 1 it should give x back, and does not."

    def heads_whole(f):
        out = f(x, 2)
        whole = [any(torch.equal(out[b, i], x[b, j]) for j in range(3)) for b in range(2) for i in range(6)]
        return None if all(whole) else "A head that comes back is none of the heads that went in."

    def in_order(f):
        return None if torch.equal(f(x, 2)[:, :2], x[:, :1].expand(2, 2, 4, 5)) else (
            "The first two heads that come back should both be head 0."
        )  # fmt: skip

    return [
        Property("one-changes", "What should n_rep 1 do to the heads?", one_is_nothing),
        Property("heads-torn", "Which axis is head by head, and do the other axes stay whole?", heads_whole),
        Property("order", "Which query heads read head 0: neighbours, or one here and one there?", in_order),
    ]


def repeat_kv(x, n_rep):
    return x.repeat_interleave(n_rep, dim=1)


exercise(
    cases=_repeat_cases, mistakes=mistakes.REPEAT_KV, properties=_repeat_properties,
    hints=(
        "Two heads [10, 20] become four. Which of them do query heads 0 and 1 read?",
        "torch has two methods that copy: one writes the whole list again, one writes each entry several "
        "times. Which of the two puts a copy beside its original, and along which axis?",
        "repeat_interleave, n_rep times, along axis 1.",
    ),
)(repeat_kv)  # fmt: skip


# attention

_LN_3 = math.log(3)  # weights ¾ and ¼


def _attention_cases(draw: Draw) -> list[Case]:
    """Numbers for the head, each for one thing that goes wrong; then any size, dtypes and gradients."""
    B, S, K = draw.sizes(3, 2, 4)
    N, d, T, n = K * draw.size(2, 3), draw.size(5, 7) | 1, 11, draw.size(2, 4)
    lowest = torch.finfo(torch.float32).min

    def one_head(q, k, v):  # features of 1: the scale is 1
        return tuple(torch.tensor(x).reshape(1, 1, -1, 1) for x in (q, k, v))

    def heads(*numbers):  # one token of one feature in each head
        return torch.tensor(numbers).reshape(1, -1, 1, 1)

    def drawn(dtype=torch.float32, N=N, K=K, S=S):
        shapes = ((B, N, S, d), (B, K, T, d), (B, K, T, d))
        return tuple(draw.normal(*shape, dtype=dtype) for shape in shapes)

    wide_q = torch.tensor([2.0, 0.0, 0.0, 0.0]).reshape(1, 1, 1, 4)
    wide_k = torch.tensor([[0.0, 0.0, 0.0, 0.0], [_LN_3, 0.0, 0.0, 0.0]]).reshape(1, 1, 2, 4)
    wide_v = torch.tensor([[0.0, 0.0, 0.0, 0.0], [4.0, 8.0, 12.0, 16.0]]).reshape(1, 1, 2, 4)
    last_hidden = torch.tensor([[0.0, 0.0, lowest]])
    damped = torch.tensor([[0.0, -_LN_3]])
    q_16, k_16, v_16 = (draw.normal(1, 2, length, 16) for length in (4, 3, 3))
    one_token = (
        torch.tensor(x).reshape(1, 1, 1, 4) for x in ([2.0, 0, 0, 0], [3.0, 0, 0, 0], [5.0, 6, 7, 8])
    )
    padded = causal(S, T).repeat(B, 1, 1, 1)
    padded[-1, ..., : T - S + 1] = lowest  # the first query of the last text is padding itself
    return [
        Case((*one_token, None), "one token"),
        Case((*one_head([0.0], [1.0, 2.0], [10.0, 20.0]), None), "equal scores"),
        Case((*one_head([1.0], [0.0, _LN_3], [0.0, 4.0]), None), "weights 1/4 and 3/4"),
        Case((wide_q, wide_k, wide_v, None), "four features"),
        Case((*one_head([1.0, 1.0], [0.0, _LN_3], [0.0, 4.0]), causal(2, 2)), "a causal mask"),
        Case((*one_head([1.0] * 3, [1.0] * 3, [3.0, 6.0, 9.0]), causal(3, 3)), "a causal mask"),
        Case((*one_head([1.0], [0.0, _LN_3, 0.0], [0.0, 4.0, 90.0]), last_hidden), "a token hidden"),
        Case((heads(0.0, 0.0, 0.0, 0.0), heads(0.0, 0.0), heads(10.0, 20.0), None), "two heads for four"),
        Case((heads(0.0, 0.0), heads(0.0), heads(10.0), None), "one head for two"),
        Case((*(x.transpose(0, 1) for x in (heads(0.0, 0.0), heads(0.0, 0.0), heads(10.0, 20.0))), None),
             "two texts"),
        Case((wide_q.repeat(1, 2, 1, 1), wide_k.repeat(1, 2, 1, 1), torch.cat((wide_v, -wide_v), 1), None),
             "two heads of four features"),
        Case((*one_head([2.0], [1.0, 1.0], [0.0, 4.0]), damped), "a mask that only dampens"),
        Case((wide_q, wide_k, wide_v, damped.flip(-1)), "a mask that only dampens"),
        Case((*one_head([100.0], [1.0, 1.0 - _LN_3 / 100], [4.0, 0.0]), None), "large scores"),
        Case((*one_head([100.0, 100.0], [-200.0, 0.0], [1.0, 5.0]), causal(2, 2)), "very low scores"),
        Case((*one_head([1.0], [2.0, 5.0], [1.0, 3.0]), torch.full((1, 2), lowest)), "all is hidden"),
        Case((q_16, k_16, v_16, None), "sixteen features"),
        Case((q_16, k_16, k_16, None), "values equal to the keys"),
        Case((*drawn(), causal(S, T)), "N query heads, K key heads", (0, 1, 2)),
        Case((*drawn(), None), "no mask"),
        # No gradients: in a row where all is hidden, those of the fused kernel are its own.
        Case((*drawn(), padded), "a mask for each text"),
        Case((*drawn(K=1), causal(S, T)), "one key head"),
        Case((*drawn(K=N), causal(S, T)), "as many key heads as query heads"),
        Case((*(draw.normal(n, n, n, n) for _ in range(3)), causal(n, n)), "all sizes equal"),
        Case((draw.normal(B, S, N, d).transpose(1, 2), draw.normal(B, K, d, T).mT,
              draw.normal(B, T, K, d).transpose(1, 2), causal(S, T)), "transposed views"),
        Case((*drawn(torch.float64), causal(S, T, torch.float64)), "float64"),
        # Wide: what is rounded in 16 bits, and when, is free.
        *(Case((*drawn(dtype), causal(S, T, dtype)), "in 16 bits", tolerance=0.05) for dtype in _SIXTEEN),
    ]  # fmt: skip


def _attention_properties(draw: Draw) -> list[Property]:
    q, k, v = draw.normal(2, 4, 3, 5), draw.normal(2, 2, 6, 5), draw.normal(2, 2, 6, 5)
    mask = causal(3, 6)

    def certain(f):
        again = close(f(q, k, v, None), f(q, k, v, None))
        return None if again else "The same input gave two different outputs."

    def averages(f):
        out = f(q, k, torch.full_like(v, 7.0), None)
        if close(out, torch.full_like(out, 7.0)):
            return None
        return f"Every value is 7, and {out.flatten()[0].item():.4g} comes back: the weights do not add up."

    def hides(f):
        changed_k, changed_v = k.clone(), v.clone()
        changed_k[:, :, -1] += 1
        changed_v[:, :, -1] += 1
        moved = not close(f(q, changed_k, changed_v, mask)[:, :, :-1], f(q, k, v, mask)[:, :, :-1])
        return "A token that the mask hides from a query changes its output." if moved else None

    def heads_apart(f):
        changed = v.clone()
        changed[:, 1] += 1
        moved = (f(q, k, changed, mask) - f(q, k, v, mask)).abs().amax((0, 2, 3)) > 1e-4
        if moved.tolist() == [False, False, True, True]:
            return None
        which = ", ".join(str(i) for i in range(4) if moved[i]) or "none"
        return f"Value head 1 of 2 was changed. Query heads 2, 3 of 0 … 3 should notice; it was: {which}."

    def any_order(f):
        order = torch.tensor([3, 0, 5, 1, 4, 2])
        if close(f(q, k[:, :, order], v[:, :, order], None), f(q, k, v, None)):
            return None
        return "Without a mask, the order of the tokens changes the output."

    def score(f):
        one = torch.zeros(1, 1, 2, 9)
        one[..., 0, 0] = 1.0
        query = torch.full((1, 1, 1, 9), 1.0)
        weight = f(query, one, one, None).flatten()[0]  # of the first of two tokens
        found = torch.logit(weight.double()).item()
        if abs(found - 1 / 3) < 1e-3:
            return None
        return (
            f"With d = 9, q·k = 1 and 0: the two scores should differ by 0.3333, and differ by {found:.4g}."
        )

    return [
        Property("random", "What is not decided by the arguments: a dropout that is left on?", certain),
        Property(
            "weights-do-not-sum-to-1", "Over which axis do the weights of a query add up to 1?", averages
        ),
        Property("hidden-token-seen", "When does the mask come in: before the softmax?", hides),
        Property("heads-mixed", "Which query heads share which key/value head?", heads_apart),
        Property("order-matters", "Which of your lines knows the place of a token?", any_order),
        Property("scores-off", "By what is q·k divided, and of which axis is it the size?", score),
    ]


@exercise(
    cases=_attention_cases, mistakes=mistakes.ATTENTION, properties=_attention_properties,
    hints=(
        "Which shapes do q, k and the scores have, and which axis of the scores is to sum to 1?",
        "Four steps: copy the key/value heads, score, mask, softmax; then the values are gathered. Print the "
        "shape after each: scores are [B, N, S, T]. In which dtype is the softmax, and in which the rest?",
        "k and v through repeat_kv with N // K. scores = q @ k.transpose(-2, -1) / d ** 0.5, plus the mask "
        "if there is one. weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype), and weights @ v.",
    ),
)  # fmt: skip
def attention(q, k, v, mask):
    n_rep = q.shape[1] // k.shape[1]
    k, v = repeat_kv(k, n_rep), repeat_kv(v, n_rep)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
    return weights @ v


# More exercises

gqa_saving = Answer(
    "gqa_saving",
    lesson=__name__,
    right={"kv_head": 3, "percent_saved": 75},
    mistakes=mistakes.GQA_SAVING,
    hints=(
        "How many query heads share one key/value head, and which of them share the first?",
        "Write the query heads 0, 1, 2, … in groups of that size. In which group, counted from 0, is 13? "
        "And of 32 heads that would be kept, how many are kept here?",
        "32 / 8 = 4 in a group: heads 12 to 15 are one group. Of 32 heads 8 are kept, and 24 are not.",
    ),
    because="Four neighbours share a key/value head: 13 // 4 = 3. The cache keeps 8 heads in the place of "
    "32: a quarter remains, 75% are saved.",
)


def _window_cases(draw: Draw) -> list[Case]:
    """A window of two tokens; of one; of all; one query; then 16 bits and any size."""
    q_len, before, window = draw.size(4, 6), draw.size(3, 5), draw.size(2, 3)
    kv_len, single = q_len + before, torch.float32
    return [
        _exactly(3, 3, 2, single),
        _exactly(2, 2, 1, single, label="a window of one"),
        _exactly(3, 3, 3, single, label="a window as long as the text"),
        _exactly(2, 2, 5, single, label="a window longer than the text"),
        _exactly(1, 4, 2, single, label="one query, four tokens"),
        _exactly(2, 5, 2, single, label="two queries, five tokens"),
        _exactly(4, 4, 2, single),
        *(_exactly(3, 3, 2, dtype, label="in 16 bits") for dtype in _SIXTEEN),
        _exactly(q_len, kv_len, window, single, label="any size"),
        *(_exactly(q_len, kv_len, window, dtype, label="any size") for dtype in _SIXTEEN),
        _exactly(kv_len, kv_len, q_len, single, label="any length"),
    ]


def _window_properties(draw: Draw) -> list[Property]:
    def row(f, number=-1):
        return f(3, 7, 3, torch.float32)[number]  # of the last token, 6: it sees 4, 5 and 6

    def future_hidden(f):
        return "A query may look at the token after its own." if (row(f, 0)[5:] == 0).any() else None

    def lowest(f):
        found, right = row(f)[0].item(), torch.finfo(torch.float32).min
        return None if found == right else f"The mask hides with {found:.4g}, and should with {right:.4g}."

    def count(f):
        seen = int((row(f) == 0).sum())
        if seen == 3:
            return None
        return f"With a window of 3, the last of seven tokens sees {seen} token{'s' * (seen != 1)}, not 3."

    def sees_itself(f):
        return None if row(f)[-1] == 0 else "A query may not look at its own token."

    return [
        Property("future-seen", "Which columns come after the token of a row?", future_hidden),
        Property("itself-hidden", "Does the window hold the token itself?", sees_itself),
        Property("window-size", "From where to where does the window of the last token reach?", count),
        Property("another-fill", "Which number is the lowest that the dtype can hold?", lowest),
    ]


@exercise(
    cases=_window_cases, mistakes=mistakes.WINDOW_MASK, properties=_window_properties,
    hints=(
        "With a window of 2, token 5 sees itself and one more. Which one, and which is the next one back?",
        "Two edges bound what a query sees, and both are diagonals. One you have from causal_mask. By how "
        "many columns does the other lie to its left?",
        "`allowed` as in causal_mask, and of that only what .triu(kv_len - q_len - window + 1) keeps.",
    ),
)  # fmt: skip
def window_mask(q_len, kv_len, window, dtype):
    offset = kv_len - q_len
    allowed = torch.ones(q_len, kv_len, dtype=torch.bool).tril(offset).triu(offset - window + 1)
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)


def _merge_cases(draw: Draw) -> list[Case]:
    """Two heads of two tokens, feature by feature; one head, one token; then any size."""
    B, N, S, d = draw.sizes(4, 2, 6)
    n = draw.size(2, 5)
    return [
        Case((torch.arange(8.0).reshape(1, 2, 2, 2),)),
        Case((torch.arange(4.0).reshape(1, 2, 2, 1),), "features of one number"),
        Case((torch.arange(4.0).reshape(1, 2, 1, 2),), "one token"),
        Case((torch.arange(4.0).reshape(1, 1, 2, 2),), "one head"),
        Case((torch.arange(8.0).reshape(2, 2, 2, 1),), "two texts"),
        Case((torch.arange(6.0).reshape(1, 3, 1, 2),), "three heads, one token"),
        Case((draw.normal(B, N, S, d),), "[B, N, S, d]", gradients=True),
        Case((draw.normal(n, n, n, n),), "all sizes equal"),
        Case((draw.normal(B, S, N, d).transpose(1, 2),), "a transposed view"),
        Case((draw.normal(B, N, S, d).double(),), "float64"),
        *(Case((draw.normal(B, N, S, d, dtype=dtype),), "in 16 bits") for dtype in _SIXTEEN),
    ]


def _merge_properties(draw: Draw) -> list[Property]:
    out = draw.normal(2, 3, 4, 5)

    def tokens_apart(f):
        changed = out.clone()
        changed[:, :, -1] += 1
        moved = (f(changed) - f(out)).abs().amax((0, 2)) > 1e-4
        if moved.tolist() == [False] * 3 + [True]:
            return None
        which = ", ".join(str(i) for i in range(4) if moved[i]) or "none"
        return f"Token 3 was changed in all heads. Only token 3 should notice; it was: {which}."

    def heads_side_by_side(f):
        if close(f(out)[..., :5], out[:, 0]):
            return None
        return "The first d numbers of a token should be those of head 0."

    return [
        Property("tokens-mixed", "Which axis counts the tokens before you reshape?", tokens_apart),
        Property("heads-mixed", "Which two axes lie side by side when they are merged?", heads_side_by_side),
    ]


@exercise(
    cases=_merge_cases, mistakes=mistakes.REPAIR_MERGE_HEADS, properties=_merge_properties,
    hints=(
        "Which numbers of the input belong to token 0, and which ones came back in its row?",
        "reshape keeps the order in memory: it reads head 0 to its end first. Which two axes have to change "
        "places, so that a token's heads lie side by side?",
        "transpose(1, 2) first: [B, S, N, d]. Then the last two axes are merged.",
    ),
    given=mistakes.without_transpose,
)  # fmt: skip
def repair_merge_heads(out):
    B, N, S, d = out.shape
    return out.transpose(1, 2).reshape(B, S, N * d)
