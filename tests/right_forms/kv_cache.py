"""Right answers of lesson 8, in every form that people write, and pairs of mistakes."""

import functools
import math
import operator

import torch

from lecture_utils import llama
from lecture_utils.llama import KVCache, PagedKVCache

# How many bytes.


def _product(*sizes):
    return 2 * math.prod(sizes)


def _from_a_tensor(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    shape = n_layers, batch, n_kv_heads, seq_len, head_dim
    keys = torch.empty(shape, dtype=torch.int8, device="meta")
    return 2 * keys.numel() * keys.element_size() * bytes_per_value


def _layer_by_layer(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    total = 0
    for _ in range(n_layers):
        for _ in ("keys", "values"):
            total += batch * n_kv_heads * seq_len * head_dim * bytes_per_value
    return total


def _reduced(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    axes = [2, n_layers, batch, n_kv_heads, seq_len, head_dim, bytes_per_value]
    return int(functools.reduce(operator.mul, axes))


# How to decode.


def _last(logits):
    return logits[:, -1].argmax(-1, keepdim=True)


def _positions_of_one_text(model, input_ids, n_new):
    B, S = input_ids.shape
    cache = KVCache(model.config, B, S + n_new)
    logits = model(input_ids, torch.arange(S), cache=cache)
    ids = torch.cat((input_ids, _last(logits)), dim=1)
    for step in range(1, n_new):
        position = torch.tensor([S + step - 1])
        logits = model(ids[:, -1:], positions=position, cache=cache)
        ids = torch.cat((ids, _last(logits)), dim=-1)
    return ids


def _positions_of_every_text(model, input_ids, n_new):
    B, S = input_ids.shape
    cache, positions = KVCache(model.config, B, S + n_new), torch.arange(S).repeat(B, 1)
    ids = new = input_ids
    for _ in range(n_new):
        logits = model(new, positions, None, cache, 1)
        new = logits.squeeze(1).argmax(dim=1).unsqueeze(1)
        ids = torch.hstack((ids, new))
        positions = positions[:, -1:] + 1
    return ids


def _into_one_tensor(model, input_ids, n_new):
    B, S = input_ids.shape
    cache = KVCache(model.config, B, S + n_new)
    ids = torch.zeros(B, S + n_new, dtype=input_ids.dtype)
    ids[:, :S] = input_ids
    logits = model(input_ids, cache=cache)
    for t in range(S, S + n_new):  # the last pass is one too many, and does no harm
        ids[:, t] = logits[:, -1].argmax(-1)
        logits = model(ids[:, t : t + 1], cache=cache)
    return ids


def _prompt_one_by_one(model, input_ids, n_new):
    B, S = input_ids.shape
    cache = KVCache(model.config, B, S + n_new - 1)
    for t in range(S):
        logits = model(input_ids[:, t, None], cache=cache)
    ids = input_ids
    while ids.shape[1] < S + n_new:
        new = torch.topk(logits[:, 0].softmax(-1), 1).indices
        ids = torch.cat([ids, new], 1)
        if ids.shape[1] < S + n_new:
            logits = model(new, torch.tensor([[cache.length]]).expand(B, 1), cache=cache)
    return ids


def _prompt_in_two_parts(model, input_ids, n_new):
    cache = KVCache(model.config, len(input_ids), 256)
    if input_ids.shape[1] > 1:
        model(input_ids[:, :-1], cache=cache)
    ids = input_ids
    for _ in range(n_new):
        logits = model(ids[:, -1:], cache=cache)
        ids = torch.cat((ids, logits[:, -1:].argmax(-1)), dim=1)
    return ids


@torch.inference_mode()
def _without_gradients(model, input_ids, n_new):
    cache = KVCache(model.config, input_ids.shape[0], model.config.max_position_embeddings)
    new_ids = []
    logits = model(input_ids, cache=cache, logits_to_keep=1)[:, -1, :]
    for _ in range(n_new):
        new_ids.append(logits.max(-1).indices)
        logits = model(new_ids[-1][:, None], cache=cache, logits_to_keep=1)[:, -1, :]
    return torch.cat((input_ids, torch.stack(new_ids, dim=1)), dim=1)


def _in_pages(model, input_ids, n_new):
    B, S = input_ids.shape
    cache = PagedKVCache(model.config, B, B * -(-(S + n_new) // 4), block_size=4)
    ids = new = input_ids
    for _ in range(n_new):
        mask = torch.ones(B, ids.shape[1], dtype=torch.long)
        new = _last(model(new, attention_mask=mask, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


class _Growing:
    """A cache that grows by torch.cat, of the student's own."""

    def __init__(self):
        self.keys, self.values, self.length = {}, {}, 0

    def update(self, layer, k, v):
        if layer in self.keys:
            k, v = torch.cat((self.keys[layer], k), dim=2), torch.cat((self.values[layer], v), dim=2)
        self.keys[layer], self.values[layer] = k, v
        return k, v

    def advance(self, count):
        self.length += count


def _own_cache(model, input_ids, n_new, cache=None):
    """A step, and then the rest."""
    cache, past = (_Growing(), 0) if cache is None else (cache, cache.length)
    new = _last(model(input_ids[:, past:], cache=cache))
    ids = torch.cat((input_ids, new), dim=1)
    return ids if n_new == 1 else _own_cache(model, ids, n_new - 1, cache)


def _text_by_text(model, input_ids, n_new):
    texts = []
    for text in input_ids:
        cache, ids = KVCache(model.config, 1, len(text) + n_new), text.tolist()
        new = ids
        for _ in range(n_new):
            new = [int(model(torch.tensor([new]), cache=cache)[0, -1].argmax())]
            ids = ids + new
        texts.append(ids)
    return torch.tensor(texts)


# How many blocks.


def _blocks_one_by_one(lengths, block_size):
    blocks = 0
    for length in lengths:
        while length > 0:
            blocks, length = blocks + 1, length - block_size
    return blocks


def _blocks_with_rest(lengths, block_size):
    total = 0
    for length in lengths:
        full, rest = divmod(length, block_size)
        total += full + (1 if rest else 0)
    return total


FORMS = {
    "kv_cache_bytes": {
        "product": _product,
        "the package's": llama.kv_cache_bytes,
        "a tensor's size": _from_a_tensor,
        "layer by layer": _layer_by_layer,
        "reduced": _reduced,
    },
    "decode": {
        "the package's": llama.generate,
        "positions [S]": _positions_of_one_text,
        "positions [B, S]": _positions_of_every_text,
        "into one tensor": _into_one_tensor,
        "prompt one by one": _prompt_one_by_one,
        "prompt in two parts": _prompt_in_two_parts,
        "without gradients": _without_gradients,
        "in pages": _in_pages,
        "a growing cache": _own_cache,
        "text by text": _text_by_text,
    },
    "blocks_needed": {
        "math.ceil": lambda lengths, block_size: sum(math.ceil(n / block_size) for n in lengths),
        "minus floor of minus": lambda lengths, block_size: sum(-(-n // block_size) for n in lengths),
        "one by one": _blocks_one_by_one,
        "divmod": _blocks_with_rest,
        "tensor": lambda lengths, block_size: int((torch.tensor(lengths) / block_size).ceil().sum()),
        "ranges": lambda lengths, block_size: sum(len(range(0, n, block_size)) for n in lengths),
        "minus one": lambda lengths, block_size: sum((n - 1) // block_size + 1 for n in lengths),
    },
}
FORMS["repair_decode"] = FORMS["decode"]


def _bytes_pair(two=2, **without):
    def kv_cache_bytes(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
        sizes = {
            "n_layers": n_layers, "n_kv_heads": n_kv_heads, "head_dim": head_dim,
            "batch": batch, "seq_len": seq_len, "bytes_per_value": bytes_per_value,
        }  # fmt: skip
        return two * math.prod(without.get(name, size) for name, size in sizes.items())

    return kv_cache_bytes


def _decode_pair(position=None, first="prompt", again=False, back="all", score=-1, steps=0):
    """Decoding with some things wrong."""

    def decode(model, input_ids, n_new):
        B, S = input_ids.shape
        cache, ids = KVCache(model.config, B, (S + n_new + 1) ** 2), input_ids
        if first == "last twice":
            model(input_ids, cache=cache)
        new, positions = (input_ids if first == "prompt" else input_ids[:, -1:]), None
        for step in range(n_new + steps):
            chosen = model(new, positions, cache=cache)[:, score].argmax(-1, keepdim=True)
            ids = torch.cat((ids, chosen), dim=1)
            new = ids if again else chosen
            if position is not None and not again:
                positions = torch.tensor([position(S, step)])
        return ids[:, S:] if back == "new" else ids

    return decode


def _blocks_pair(up=None, join=False, least=0, times=False):
    def blocks_needed(lengths, block_size):
        lengths = [sum(lengths)] if join else lengths
        blocks = sum(max(least, up(length, block_size)) for length in lengths)
        return blocks * block_size if times else blocks

    return blocks_needed


_BYTES = {
    "one-of-two": {"two": 1},
    "three-of-two": {"two": 3},
    "layers-forgotten": {"n_layers": 1},
    "heads-forgotten": {"n_kv_heads": 1},
    "head-dim-forgotten": {"head_dim": 1},
    "batch-forgotten": {"batch": 1},
    "tokens-forgotten": {"seq_len": 1},
    "numbers-not-bytes": {"bytes_per_value": 1},
    "always-two-bytes": {"bytes_per_value": 2},
}
_DECODE = {
    "always-at-0": {"position": lambda S, step: 0},
    "one-late": {"position": lambda S, step: S + step + 1},
    "position-stuck": {"position": lambda S, step: S},
    "whole-text-again": {"again": True},
    "last-id-only": {"first": "last"},
    "last-id-twice": {"first": "last twice"},
    "first-scores": {"score": 0},
    "new-ids-only": {"back": "new"},
    "one-too-few": {"steps": -1},
    "one-too-many": {"steps": 1},
}


def _pairs(one, make, same_place=()):
    return {
        (a, b): make(**one[a], **one[b])
        for a in one
        for b in one
        if a < b and not one[a].keys() & one[b].keys() and {a, b} not in same_place
    }


def _up(length, block_size):
    return -(-length // block_size)


_BLOCKS = {
    ("all-in-one-row", "places"): _blocks_pair(_up, join=True, times=True),
    ("empty-takes-one", "places"): _blocks_pair(_up, least=1, times=True),
    ("one-more-always", "places"): _blocks_pair(lambda n, b: n // b + 1, times=True),
    ("rounded-down", "places"): _blocks_pair(lambda n, b: n // b, times=True),
    ("rounded-down", "empty-takes-one"): _blocks_pair(lambda n, b: n // b, least=1),
    ("rounded", "empty-takes-one"): _blocks_pair(lambda n, b: round(n / b), least=1),
    ("all-in-one-row", "rounded"): _blocks_pair(lambda n, b: round(n / b), join=True),
    ("all-in-one-row", "one-more-always"): _blocks_pair(lambda n, b: n // b + 1, join=True),
    ("blocks-of-16", "rounded-down"): _blocks_pair(lambda n, b: n // 16),
    ("blocks-of-16", "one-more-always"): _blocks_pair(lambda n, b: n // 16 + 1),
}

# With the whole text again the positions go on by themselves, and the last id is not fed alone.
_FED = ({"whole-text-again", "always-at-0"}, {"whole-text-again", "one-late"},
        {"whole-text-again", "position-stuck"})  # fmt: skip

# One tensor of two bytes is as much as two tensors of one.
PAIRS = {
    "kv_cache_bytes": _pairs(_BYTES, _bytes_pair, ({"always-two-bytes", "one-of-two"},)),
    "decode": _pairs(_DECODE, _decode_pair, _FED),
    "blocks_needed": _BLOCKS,
    "repair_decode": _pairs({k: _DECODE[k] for k in list(_DECODE)[:9]}, _decode_pair, _FED),
}
