"""Right answers to the exercises of lesson 7, in every form that people write, and pairs of mistakes."""

import math

import torch
import torch.nn.functional as F

from lecture_utils import llama


def _allowed(q_len, kv_len):
    return torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len)


def _mask_triu(q_len, kv_len, dtype):
    full = torch.full((q_len, kv_len), torch.finfo(dtype).min, dtype=dtype)
    return full.triu(kv_len - q_len + 1)


def _mask_where(q_len, kv_len, dtype):
    i, j = torch.arange(kv_len - q_len, kv_len)[:, None], torch.arange(kv_len)
    return torch.where(j <= i, 0.0, torch.finfo(dtype).min).to(dtype)


def _mask_last_rows(q_len, kv_len, dtype):
    square = torch.zeros(kv_len, kv_len, dtype=dtype)
    square[torch.ones(kv_len, kv_len).triu(1) == 1] = torch.finfo(dtype).min
    return square[-q_len:]


def _mask_product(q_len, kv_len, dtype):
    return (1 - _allowed(q_len, kv_len).to(dtype)) * torch.finfo(dtype).min


def _mask_loops(q_len, kv_len, dtype):
    mask = torch.zeros(q_len, kv_len, dtype=dtype)
    for i in range(q_len):
        for j in range(kv_len):
            if j > kv_len - q_len + i:
                mask[i, j] = torch.finfo(dtype).min
    return mask


def _mask_rows(q_len, kv_len, dtype):
    rows = []
    for last in range(kv_len - q_len + 1, kv_len + 1):
        hidden = torch.full((kv_len - last,), -torch.finfo(dtype).max, dtype=dtype)
        rows.append(torch.cat((torch.zeros(last, dtype=dtype), hidden)))
    return torch.stack(rows)


def _repeat_expand(x, n_rep):
    B, K, S, d = x.shape
    return x[:, :, None].expand(B, K, n_rep, S, d).reshape(B, K * n_rep, S, d)


def _repeat_if_needed(x, n_rep):
    return x if n_rep == 1 else torch.repeat_interleave(x, n_rep, 1)


def _repeat_index(x, n_rep):
    return x[:, [i // n_rep for i in range(x.shape[1] * n_rep)]]


def _repeat_cat(x, n_rep):
    return torch.cat([head for head in x.split(1, dim=1) for _ in range(n_rep)], dim=1)


def _repeat_tokens_and_view(x, n_rep):
    B, K, S, d = x.shape
    return x.repeat(1, 1, n_rep, 1).view(B, K * n_rep, S, d)


def _repeat_stack(x, n_rep):
    return torch.stack([x] * n_rep, dim=2).flatten(1, 2)


def _repeat_einsum(x, n_rep):
    return torch.einsum("bksd,r->bkrsd", x, torch.ones(n_rep, dtype=x.dtype, device=x.device)).flatten(1, 2)


def _fused(q, k, v, mask):
    k, v = (_repeat_expand(x, q.shape[1] // x.shape[1]) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _in_groups(q, k, v, mask):
    B, N, S, d = q.shape
    K, T = k.shape[1:3]
    scores = torch.einsum("bkgsd,bktd->bkgst", q.reshape(B, K, N // K, S, d), k) / math.sqrt(d)
    scores = scores.reshape(B, N, S, T)
    if mask is not None:
        scores = scores + mask
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype).reshape(B, K, N // K, S, T)
    return torch.einsum("bkgst,bktd->bkgsd", weights, v).reshape(B, N, S, d)


def _scaled_queries(q, k, v, mask):
    n_rep = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(n_rep, 1), v.repeat_interleave(n_rep, 1)
    scores = torch.matmul(q / q.size(-1) ** 0.5, k.transpose(2, 3))
    scores = scores + (0 if mask is None else mask)
    return torch.matmul(torch.softmax(scores.float(), -1).type_as(q), v)


def _all_in_fp32(q, k, v, mask):
    k, v = (_repeat_expand(x, q.shape[1] // x.shape[1]).float() for x in (k, v))
    scores = q.float() @ k.mT / q.shape[-1] ** 0.5
    scores = scores if mask is None else scores + mask.float()
    return (scores.softmax(-1) @ v).to(q.dtype)


def _softmax_of_torch_in_16_bits(q, k, v, mask):  # inside, it works in fp32 all the same
    k, v = (_repeat_expand(x, q.shape[1] // x.shape[1]) for x in (k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def _softmax_by_hand(q, k, v, mask):
    k, v = (_repeat_expand(x, q.shape[1] // x.shape[1]) for x in (k, v))
    scores = torch.einsum("bnsd,bntd->bnst", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores += mask
    scores = scores.float()
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("bnst,bntd->bnsd", weights.to(v.dtype), v)


def _head_by_head(q, k, v, mask):
    B, N, S, d = q.shape
    n_rep, T = N // k.shape[1], k.shape[2]
    mask = torch.zeros(S, T, dtype=q.dtype, device=q.device) if mask is None else mask
    mask, texts = mask.expand(B, N, S, T), []
    for b in range(B):
        heads = []
        for h in range(N):
            scores = q[b, h] @ k[b, h // n_rep].T / math.sqrt(d) + mask[b, h]
            heads.append(scores.softmax(-1, torch.float32).to(q.dtype) @ v[b, h // n_rep])
        texts.append(torch.stack(heads))
    return torch.stack(texts)


def _window_two_masks(q_len, kv_len, window, dtype):
    """The two parts hide different tokens, so their sum hides both."""
    lowest = torch.finfo(dtype).min
    too_far = torch.full((q_len, kv_len), lowest, dtype=dtype).tril(kv_len - q_len - window)
    return _mask_triu(q_len, kv_len, dtype) + too_far


def _window_where(q_len, kv_len, window, dtype):
    distance = torch.arange(kv_len - q_len, kv_len)[:, None] - torch.arange(kv_len)
    return torch.where((distance >= 0) & (distance < window), 0.0, torch.finfo(dtype).min).to(dtype)


def _window_loops(q_len, kv_len, window, dtype):
    mask = torch.full((q_len, kv_len), torch.finfo(dtype).min, dtype=dtype)
    for row, i in enumerate(range(kv_len - q_len, kv_len)):
        mask[row, max(0, i - window + 1) : i + 1] = 0
    return mask


def _window_minimum(q_len, kv_len, window, dtype):
    far = _allowed(q_len, kv_len) & ~torch.ones(q_len, kv_len).tril(kv_len - q_len - window).bool()
    return torch.minimum(
        _mask_where(q_len, kv_len, dtype), torch.where(far, 0.0, torch.finfo(dtype).min).to(dtype)
    )


def _window_last_rows(q_len, kv_len, window, dtype):
    square = torch.ones(kv_len, kv_len, dtype=torch.bool)
    allowed = (square.tril() & ~square.tril(-window))[-q_len:]
    return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill_(~allowed, torch.finfo(dtype).min)


def _merge_contiguous(out):
    B, N, S, d = out.shape
    return out.transpose(1, 2).contiguous().view(B, S, N * d)


def _merge_einsum(out):
    return torch.einsum("bnsd->bsnd", out).reshape(out.shape[0], out.shape[2], -1)


FORMS = {
    "causal_mask": {
        "the package": llama.causal_mask,
        "triu": _mask_triu,
        "where": _mask_where,
        "last rows of the square": _mask_last_rows,
        "product": _mask_product,
        "loops": _mask_loops,
        "row by row": _mask_rows,
        "compiled": torch.compile(_mask_where, backend="eager"),
    },
    "repeat_kv": {
        "the package": llama.repeat_kv,
        "expand": _repeat_expand,
        "if needed": _repeat_if_needed,
        "index": _repeat_index,
        "cat": _repeat_cat,
        "tokens, then view": _repeat_tokens_and_view,
        "stack": _repeat_stack,
        "einsum": _repeat_einsum,
    },
    "attention": {
        "the package": llama.attention,
        "fused": _fused,
        "in groups": _in_groups,
        "scaled queries": _scaled_queries,
        "all in fp32": _all_in_fp32,
        "softmax of torch in 16 bits": _softmax_of_torch_in_16_bits,
        "softmax by hand": _softmax_by_hand,
        "head by head": _head_by_head,
        "compiled": torch.compile(_scaled_queries, backend="eager"),
    },
    "window_mask": {
        "two masks": _window_two_masks,
        "where": _window_where,
        "loops": _window_loops,
        "minimum": _window_minimum,
        "last rows of the square": _window_last_rows,
    },
    "repair_merge_heads": {
        "contiguous": _merge_contiguous,
        "permute and flatten": lambda out: out.permute(0, 2, 1, 3).flatten(2),
        "movedim": lambda out: out.movedim(1, 2).flatten(-2),
        "einsum": _merge_einsum,
        "cat of heads": lambda out: torch.cat(out.unbind(1), dim=-1),
        "stack of heads": lambda out: torch.stack(list(out.unbind(1)), dim=2).flatten(-2),
    },
}


# Pairs of mistakes.


def _mask_pair(shift=0, offset=True, lowest=None, dtype_used=True, exchanged=False, square=False):
    """causal_mask with some things wrong."""

    def causal_mask(q_len, kv_len, dtype):
        dtype = dtype if dtype_used else torch.float32
        rows = kv_len if square else q_len
        moved = (kv_len - rows if offset else 0) + shift
        allowed = torch.ones(rows, kv_len, dtype=torch.bool).tril(moved) ^ exchanged
        fill = torch.finfo(dtype).min if lowest is None else lowest
        return torch.zeros(rows, kv_len, dtype=dtype).masked_fill(~allowed, fill)

    return causal_mask


def _attention_pair(scale="d", dim=-1, masked="added", tiled=False, fp32=False, handed="v", ravel=False):
    """Attention with some things wrong."""

    def attention(q, k, v, mask):
        n_rep = q.shape[1] // k.shape[1]
        repeat = (lambda x: x.repeat(1, n_rep, 1, 1)) if tiled else (lambda x: _repeat_expand(x, n_rep))
        k, v = repeat(k), repeat(v)
        d = {"d": q.shape[-1] ** 0.5, "none": 1.0, "squared": q.shape[-1], "heads": q.shape[1] ** 0.5}[scale]
        keys = k.reshape(*k.shape[:2], k.shape[3], k.shape[2]) if ravel else k.mT
        scores = q @ keys / d
        if mask is not None and masked == "added":
            scores = scores + mask
        if mask is not None and masked == "multiplied":
            scores = scores * mask
        if mask is not None and masked == "fill-1e4":
            scores = scores + mask.clamp(min=-1e4)
        weights = scores.softmax(dim, dtype=torch.float32)
        values = k if handed == "k" else v
        return weights @ values.float() if fp32 else weights.to(q.dtype) @ values

    return attention


def _window_pair(extra=0, offset=True, lowest=None, both=False, dtype_used=True):
    """window_mask with some things wrong."""

    def window_mask(q_len, kv_len, window, dtype):
        dtype = dtype if dtype_used else torch.float32
        first = kv_len - q_len if offset else 0
        distance = torch.arange(first, first + q_len)[:, None] - torch.arange(kv_len)
        near = distance.abs() if both else distance
        allowed = (near >= 0) & (near < window + extra)
        fill = torch.finfo(dtype).min if lowest is None else lowest
        return torch.zeros(q_len, kv_len, dtype=dtype).masked_fill(~allowed, fill)

    return window_mask


def _pairs(make, one, same_place=()):
    return {
        (a, b): make(**one[a], **one[b])
        for a in one
        for b in one
        if a < b and {a, b} not in same_place and not one[a].keys() & one[b].keys()
    }


PAIRS = {
    "causal_mask": _pairs(
        _mask_pair,
        {
            "aligned-top-left": {"offset": False},
            "itself-hidden": {"shift": -1},
            "next-token-seen": {"shift": 1},
            "fill-1e4": {"lowest": -1e4},
            "dtype-ignored": {"dtype_used": False},
            "exchanged": {"exchanged": True},
        },
        ({"exchanged", "itself-hidden"},),  # together they are another one: future-not-past
    ),
    "attention": _pairs(
        _attention_pair,
        {
            "scale-missing": {"scale": "none"},
            "scaled-by-d": {"scale": "squared"},
            "scaled-by-heads": {"scale": "heads"},
            "softmax-over-queries": {"dim": -2},
            "softmax-over-heads": {"dim": 1},
            "mask-ignored": {"masked": "no"},
            "mask-multiplied": {"masked": "multiplied"},
            "fill-1e4": {"masked": "fill-1e4"},
            "heads-tiled": {"tiled": True},
            "left-in-fp32": {"fp32": True},
            "keys-handed-over": {"handed": "k"},
            "keys-reshaped": {"ravel": True},
        },
    ),
    "window_mask": _pairs(
        _window_pair,
        {
            "one-too-many": {"extra": 1},
            "one-too-few": {"extra": -1},
            "aligned-top-left": {"offset": False},
            "fill-1e4": {"lowest": -1e4},
            "both-sides": {"both": True},
            "dtype-ignored": {"dtype_used": False},
        },
    ),
}
