"""Mistakes in the size of a cache, in decoding with one, and in counting its blocks."""

import math

import torch

from ...llama import KVCache
from ..mistake import Catalogue

KV_CACHE_BYTES = Catalogue()
DECODE = Catalogue()
FULL_CACHES = Catalogue()
BLOCKS_NEEDED = Catalogue()
REPAIR_DECODE = Catalogue()


# How many bytes.


@KV_CACHE_BYTES.add(
    "one-of-two",
    "It counts one tensor where a head keeps two: half of the bytes.",
    "What does a later token need of an earlier one, to find it and then to take something from it?",
    "In attention a token is found by its key. What is added up, weighted by what the softmax gives?",
    "A key and a value for each token: the product has a factor of 2.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "three-of-two",
    "It counts three tensors: the queries are kept too.",
    "Who asks, when a new token comes: the new token or the old ones?",
    "The query of an old token was used in its own step. Does any later step look at it?",
    "Keys and values are kept, queries are not: the factor is 2.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 3 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "two-twice",
    "The factor 2 is there twice: twice as many bytes as there are.",
    "What does each factor of 2 stand for in your product?",
    "Keys and values are one 2. The bytes of a number have an argument of their own, so they need none.",
    "2 · n_layers · batch · n_kv_heads · seq_len · head_dim · bytes_per_value, and no other number.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 4 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "bits",
    "It counts bits: there are eight in a byte.",
    "In which unit is the answer asked for?",
    "A number in bf16 has 16 bits. What is bytes_per_value for it?",
    "bytes_per_value counts bytes already: no 8 anywhere.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 16 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "eighth",
    "It divides by 8, as if bytes_per_value were bits.",
    "In which unit does bytes_per_value come?",
    "For bf16 the caller gives 2. Are these bits or bytes?",
    "Multiply by bytes_per_value, and divide by nothing.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value // 8


@KV_CACHE_BYTES.also("eighth")
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value / 8


@KV_CACHE_BYTES.add(
    "layers-forgotten",
    "It counts the cache of one layer.",
    "Does layer 2 look at the keys of layer 1?",
    "Every layer has matrices of its own for keys and values. How many layers are there?",
    "Each layer keeps its own: multiply by n_layers.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * batch * n_kv_heads * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "heads-forgotten",
    "It counts one head: `n_kv_heads` makes no difference.",
    "How many keys does one token have in one layer?",
    "head_dim is the length of the key of one head. How many heads have a key?",
    "Multiply by n_kv_heads: every key/value head has keys and values of its own.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "head-dim-forgotten",
    "It counts one number for each key: `head_dim` makes no difference.",
    "How many numbers is one key?",
    "Print k.shape in the lesson's attention. Which of its axes is not in your product?",
    "A key is a vector of head_dim numbers: multiply by head_dim.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * bytes_per_value


@KV_CACHE_BYTES.add(
    "heads-and-dim-added",
    "It adds `n_kv_heads` and `head_dim`; 8 heads with 128 numbers each are not 136 numbers.",
    "How many numbers are 8 heads of 128 numbers?",
    "Each of the heads has head_dim numbers. Is that a sum of the two arguments?",
    "Multiply: n_kv_heads * head_dim.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * (n_kv_heads + head_dim) * seq_len * bytes_per_value


@KV_CACHE_BYTES.add(
    "all-added",
    "It adds the sizes of the axes, where each of them multiplies.",
    "How many numbers are in a tensor [3, 4]?",
    "The cache is a box with an axis for each argument. How does its volume come from its sides?",
    "Put `*` where there is `+`.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * (n_layers + batch + n_kv_heads + seq_len + head_dim) * bytes_per_value


@KV_CACHE_BYTES.also("all-added")
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * (n_layers + batch + n_kv_heads + seq_len + head_dim + bytes_per_value)


@KV_CACHE_BYTES.add(
    "batch-forgotten",
    "It counts one text: `batch` makes no difference.",
    "Do two texts side by side have the same keys?",
    "A key comes from a token and all that was before it. What is before it in another text?",
    "Every text keeps its own: multiply by batch.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * n_kv_heads * seq_len * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "tokens-forgotten",
    "It counts one token: `seq_len` makes no difference.",
    "What happens to the cache with each new token?",
    "Keys and values of all tokens so far are kept. How many are there?",
    "Multiply by seq_len.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "tokens-squared",
    "It squares `seq_len`: that is the number of scores, and no score is kept.",
    "What is kept of a token: what it offers, or how well it fits each other one?",
    "There is a score for each pair of tokens, but a key for each token. Which of them is in the cache?",
    "seq_len is a factor once.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len**2 * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "one-token-less",
    "It counts one token less than there are.",
    "Which token of the text do you leave out, and why?",
    "seq_len says how many tokens are in the cache. Is there anything to subtract?",
    "seq_len as it is, without − 1.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * (seq_len - 1) * head_dim * bytes_per_value


@KV_CACHE_BYTES.add(
    "numbers-not-bytes",
    "It counts numbers, not bytes: `bytes_per_value` makes no difference.",
    "How much memory does one number take?",
    "Which argument have you not used?",
    "Multiply by bytes_per_value.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim


@KV_CACHE_BYTES.add(
    "always-two-bytes",
    "It takes two bytes for a number, whatever the caller gives.",
    "How large is your cache in fp32, compared with bf16?",
    "Which factors of your product are not arguments, and what does each stand for?",
    "bytes_per_value stands in the place of the second 2.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * 2


@KV_CACHE_BYTES.add(
    "in-gib",
    "It gives GiB: the number of bytes is divided by 2³⁰.",
    "In which unit is the answer asked for?",
    "Look for a division in your code. What would be there without it?",
    "Leave out the division; the caller can do that.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value / 2**30


@KV_CACHE_BYTES.also("in-gib")
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value // 2**30


@KV_CACHE_BYTES.add(
    "in-gb",
    "It gives GB: the number of bytes is divided by a thousand million.",
    "In which unit is the answer asked for?",
    "Look for a division in your code. What would be there without it?",
    "Leave out the division; the caller can do that.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value / 1e9


@KV_CACHE_BYTES.also("in-gb")
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value // 10**9


@KV_CACHE_BYTES.add(
    "in-mib",
    "It gives MiB: the number of bytes is divided by 2²⁰.",
    "In which unit is the answer asked for?",
    "Look for a division in your code. What would be there without it?",
    "Leave out the division; the caller can do that.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value / 2**20


@KV_CACHE_BYTES.also("in-mib")
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value // 2**20


@KV_CACHE_BYTES.add(
    "float",
    "The number is right, but it is a float; bytes are counted, one by one.",
    "Which of your lines makes a float of whole numbers?",
    "`/` gives a float, and so does a factor like 2.0. Is there one?",
    "Multiply whole numbers only, or turn the product into an int at the end.",
)
def _(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    return 2.0 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value


# How to decode.


def _best(logits):
    """The most likely id after the last one, [B, 1]."""
    return logits[:, -1].argmax(-1, keepdim=True)


def _room(model, ids, count):
    return KVCache(model.config, len(ids), count, device=ids.device)


def _at(position, ids):
    return torch.full((1,), position, device=ids.device)


def _with_positions(of_step):
    """Decodes with a cache; a new id of step 1, 2, … has the position that `of_step` gives."""

    def decode(model, input_ids, n_new):
        S = input_ids.shape[1]
        cache = _room(model, input_ids, S + n_new)
        ids, new = input_ids, _best(model(input_ids, cache=cache))
        for step in range(1, n_new):
            ids = torch.cat((ids, new), dim=1)
            new = _best(model(new, _at(of_step(S, step), ids), cache=cache))
        return torch.cat((ids, new), dim=1)

    return decode


DECODE.add(
    "always-at-0",
    "Every new id is told that it stands at position 0.",
    "Where does the third new id stand in the whole text?",
    "A call knows its position from the cache or from you. What do you give it, and what is behind it then?",
    "Leave positions out, and they go on from the cache; or give cache.length.",
    on="measures",
)(_with_positions(lambda S, step: 0))

DECODE.add(
    "always-at-1",
    "Every new id is told that it stands at position 1.",
    "Where does the third new id stand in the whole text?",
    "One id goes in, but it is not the text's first or second. What do you give for its position?",
    "Leave positions out, and they go on from the cache; or give cache.length.",
    on="measures",
)(_with_positions(lambda S, step: 1))

DECODE.add(
    "counted-from-the-prompt",
    "The positions of new ids begin again at 0 after the prompt.",
    "Where in the whole text does the first new id stand?",
    "The prompt has the positions 0 to S − 1. Which one is next?",
    "Add the length of the prompt to the number of the step; or leave positions out.",
    on="measures",
)(_with_positions(lambda S, step: step - 1))

DECODE.add(
    "counted-from-the-prompt-at-1",
    "The positions of new ids begin again at 1 after the prompt.",
    "Where in the whole text does the first new id stand?",
    "The prompt has the positions 0 to S − 1. Which one is next?",
    "Add S − 1 to the number of the step; or leave positions out.",
    on="measures",
)(_with_positions(lambda S, step: step))

DECODE.add(
    "one-late",
    "Every new id stands one position too late: there is a gap after the prompt.",
    "The prompt has the positions 0 to S − 1. Which one is next?",
    "Compare the position that you give with cache.length before the call.",
    "The first new id stands at position S, the length of the prompt; not at S + 1.",
    on="measures",
)(_with_positions(lambda S, step: S + step))

DECODE.add(
    "one-early",
    "Every new id stands one position too early: the first has that of the prompt's last id.",
    "The prompt has the positions 0 to S − 1. Which one is next?",
    "Compare the position that you give with cache.length before the call.",
    "The first new id stands at position S, the length of the prompt; not at S − 1.",
    on="measures",
)(_with_positions(lambda S, step: S + step - 2))

DECODE.add(
    "position-stuck",
    "All new ids stand at one position, the one behind the prompt.",
    "Where does the second new id stand?",
    "What changes in the position that you give, from one step to the next?",
    "The position grows by 1 with every step: cache.length, before the call.",
    on="measures",
)(_with_positions(lambda S, step: S))

DECODE.add(
    "stuck-on-the-last",
    "All new ids stand at one position, that of the prompt's last id.",
    "Where does the first new id stand, and where the second?",
    "What changes in the position that you give, from one step to the next?",
    "The position is S for the first new id, and grows by 1 with every step: cache.length, before the call.",
    on="measures",
)(_with_positions(lambda S, step: S - 1))


@DECODE.add(
    "counted-from-1",
    "Positions begin at 1. A Llama would not notice, since RoPE sees distances only; but it learned with 0.",
    "At which position does the first id of a text stand?",
    "What does torch.arange(S) begin with, and what does your call give for the prompt?",
    "The prompt has the positions 0 to S − 1. Left out, they are these.",
    on="measures",
)
def _(model, input_ids, n_new):
    S = input_ids.shape[1]
    cache = _room(model, input_ids, S + n_new)
    ids, new, positions = input_ids, input_ids, torch.arange(1, S + 1, device=input_ids.device)
    for _ in range(n_new):
        new = _best(model(new, positions, cache=cache))
        ids, positions = torch.cat((ids, new), dim=1), positions[-1:] + 1
    return ids


@DECODE.add(
    "advanced-twice",
    "It moves the cache on itself, and the model has done so already: there are gaps in it.",
    "Who says to the cache that the new tokens are in it?",
    "Print cache.length after the prompt. How many ids went in?",
    "Leave out cache.advance(…): the model calls it at the end of each pass.",
    on="a prompt of one id",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        logits = model(new, cache=cache)
        cache.advance(new.shape[1])
        new = _best(logits)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.also("advanced-twice")
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, 2 * (input_ids.shape[1] + n_new))
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        logits = model(new, cache=cache)
        cache.advance(new.shape[1])
        new = _best(logits)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.also("advanced-twice")
def _(model, input_ids, n_new):  # by one, whatever went in
    cache = _room(model, input_ids, 2 * (input_ids.shape[1] + n_new))
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        cache.advance(1)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "no-cache",
    "The ids of a Llama would be right, but no cache helps: every step feeds the whole text again.",
    "How many ids go into the model at step 100, and how many of them has it seen before?",
    "Count what goes in, call by call. With a cache each id goes in once.",
    "Make a KVCache before the loop, give it to every call, and feed only what is new.",
    on="counts",
)
def _(model, input_ids, n_new):
    for _ in range(n_new):
        input_ids = torch.cat((input_ids, _best(model(input_ids))), dim=1)
    return input_ids


@DECODE.also("no-cache")
def _(model, input_ids, n_new):  # a cache, made anew at each step for the whole text
    for _ in range(n_new):
        cache = _room(model, input_ids, input_ids.shape[1])
        input_ids = torch.cat((input_ids, _best(model(input_ids, cache=cache))), dim=1)
    return input_ids


def _whole_text_again(room, positions=lambda ids: None):
    def decode(model, input_ids, n_new):
        cache, ids = _room(model, input_ids, room(input_ids.shape[1], n_new)), input_ids
        for _ in range(n_new):
            ids = torch.cat((ids, _best(model(ids, positions(ids), cache=cache))), dim=1)
        return ids

    return decode


DECODE.add(
    "whole-text-again",
    "It has a cache, and feeds the whole text again at every step: the cache holds the text several times.",
    "What is in the cache already when the second step begins?",
    "Compare how many ids you feed with how many are new. And print cache.length after each call.",
    "After the prompt feed one id a step: the one that was chosen last, [B, 1].",
    on="a prompt of one id",
)(_whole_text_again(lambda S, n_new: (S + n_new) ** 2))
DECODE.also("whole-text-again")(_whole_text_again(lambda S, n_new: S + n_new))
DECODE.also("whole-text-again")(
    _whole_text_again(
        lambda S, n_new: (S + n_new) ** 2, lambda ids: torch.arange(ids.shape[1], device=ids.device)
    )
)


def _fed_before(first, again, room=lambda S, n_new: S + n_new):
    """The cache has seen `first` before the loop begins with `again`; those first scores are lost."""

    def decode(model, input_ids, n_new):
        cache = _room(model, input_ids, room(input_ids.shape[1], n_new))
        model(first(input_ids), cache=cache)
        ids, new = input_ids, again(input_ids)
        for _ in range(n_new):
            new = _best(model(new, cache=cache))
            ids = torch.cat((ids, new), dim=1)
        return ids

    return decode


DECODE.add(
    "prompt-twice",
    "The prompt goes in twice: once before the loop, and once more in its first step.",
    "Which ids are in the cache when your loop begins?",
    "Print cache.length when the loop begins and after its first step. How long is the prompt?",
    "Take the first choice from the logits of the call before the loop; or begin with the loop.",
    on="adds",
)(_fed_before(lambda ids: ids, lambda ids: ids, lambda S, n_new: 2 * S + n_new))
DECODE.also("prompt-twice")(_fed_before(lambda ids: ids, lambda ids: ids))

DECODE.add(
    "last-id-twice",
    "The last id of the prompt goes in twice: with the prompt, and again in the first step.",
    "Which ids are in the cache when your loop begins?",
    "The call with the prompt gave scores as well. What did you do with them?",
    "The first new id is chosen by the logits of the prompt's own call: its last ones.",
    on="adds",
)(_fed_before(lambda ids: ids, lambda ids: ids[:, -1:]))


@DECODE.add(
    "fails-for-one-id",
    "It leaves the prompt's last id for the loop: of a prompt of one id, nothing is left for the first call.",
    "What goes into your first call when the prompt is one id?",
    "input_ids[:, :-1] of one id has the shape [B, 0]. Which scores does a call with the whole prompt give?",
    "Feed the prompt whole, and choose the first new id by the last logits of that call.",
)
def _(model, input_ids, n_new):
    return _fed_before(lambda ids: ids[:, :-1], lambda ids: ids[:, -1:])(model, input_ids, n_new)


@DECODE.add(
    "no-room-for-the-prompt",
    "The cache has room for the new ids, and none for the prompt.",
    "Which ids have to be in the cache when the last one is chosen?",
    "The message names two numbers. Where do you say for how many tokens there is room?",
    "Room for S + n_new tokens: the prompt and what follows it.",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "last-id-only",
    "Of the prompt only the last id goes in: the model knows nothing of what is before it.",
    "What does the model know of the prompt when it chooses the first new id?",
    "The cache is empty at the beginning. How do the first ids of the prompt get into it?",
    "Feed input_ids as it is, [B, S], in the first call.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids = input_ids
    for _ in range(n_new):
        ids = torch.cat((ids, _best(model(ids[:, -1:], cache=cache))), dim=1)
    return ids


@DECODE.add(
    "prompt-without-last",
    "The last id of the prompt never goes in.",
    "Which id of the prompt has the model not seen when it makes its first choice?",
    "In training the last id is cut off, since nothing follows it. Is that so here?",
    "Feed all of input_ids, without [:, :-1].",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids[:, :-1]
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "cache-lost",
    "The new ids do not see the text before them: what the prompt left in the cache does not reach them.",
    "What can a new id look at, in the call in which it goes in?",
    "Follow the cache: where is it made, and which calls get it?",
    "One cache, made before the loop, goes into every call: cache=cache.",
    on="adds",
)
def _(model, input_ids, n_new):
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = _best(model(new))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.also("cache-lost")
def _(model, input_ids, n_new):
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        cache = _room(model, new, new.shape[1])
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.also("cache-lost")
def _(model, input_ids, n_new):
    ids, new = input_ids, _best(model(input_ids))
    for _ in range(n_new - 1):
        ids = torch.cat((ids, new), dim=1)
        new = _best(model(new, _at(ids.shape[1] - 1, ids)))
    return torch.cat((ids, new), dim=1)


@DECODE.also("cache-lost")
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, _best(model(input_ids, cache=cache))
    for _ in range(n_new - 1):
        cache.clear()
        ids = torch.cat((ids, new), dim=1)
        new = _best(model(new, cache=cache))
    return torch.cat((ids, new), dim=1)


@DECODE.add(
    "first-scores",
    "It chooses by the scores after the first id of a call, not after the last.",
    "For a prompt of S ids there are S rows of scores. After which id does the new one come?",
    "Which index is the last one of an axis, however long it is?",
    "logits[:, -1]: the last row of each text.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = model(new, cache=cache)[:, 0].argmax(-1, keepdim=True)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "first-text-for-all",
    "All texts get the ids that were chosen for the first one.",
    "How many ids are chosen at each step, if there are B texts?",
    "Which axis of the logits holds the texts, and what does your index do to it?",
    "logits[:, -1].argmax(-1, keepdim=True) has one id for each text: [B, 1].",
    on="three texts",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = model(new, cache=cache)[0, -1].argmax().expand(len(ids), 1)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "one-text-only",
    "It can decode one text, and fails for several.",
    "Which of your lines is meant for one text only?",
    "Follow the shapes for three texts: the room in the cache, the last scores, the choice. Where is the 3?",
    "The cache has room for len(input_ids) texts, and the choice is logits[:, -1].argmax(-1, keepdim=True), "
    "[B, 1].",
    on="three texts",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = model(new, cache=cache)[:, -1].argmax().view(1, 1)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.also("one-text-only")
def _(model, input_ids, n_new):
    cache = KVCache(model.config, 1, input_ids.shape[1] + n_new, device=input_ids.device)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "one-text-back",
    "Of several texts only the first comes back.",
    "How many texts went in, and how many come back?",
    "Follow the first axis of input_ids, line by line. Where does it shrink to 1?",
    "Keep the axis of the texts: no index 0 on it.",
    on="three texts",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids[:1], input_ids.shape[1] + n_new)
    ids = new = input_ids[:1]
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "new-ids-only",
    "Only the new ids come back, without the prompt.",
    "What is asked for: the continuation, or the text with its continuation?",
    "Compare the shape of what comes back with [B, S + n_new].",
    "Join input_ids and the new ids: torch.cat((input_ids, new_ids), dim=1).",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    pieces, new = [], input_ids
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        pieces.append(new)
    return torch.cat(pieces, dim=1)


@DECODE.add(
    "prompt-behind",
    "The new ids stand before the prompt.",
    "In which order does a reader meet the prompt and what follows it?",
    "Look at the order of the two in your torch.cat.",
    "torch.cat((ids, new), dim=1): the new one goes behind.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        ids = torch.cat((new, ids), dim=1)
    return ids


@DECODE.add(
    "one-too-few",
    "It gives one id less than asked for.",
    "How many choices does your function make for n_new = 1?",
    "The call with the prompt gives a choice already. Is it kept, and does the loop count with it?",
    "n_new choices in all: one from the prompt's call, n_new − 1 from the calls after it.",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new - 1):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "one-too-many",
    "It gives one id more than asked for.",
    "How many choices does your function make for n_new = 1?",
    "The call with the prompt gives a choice already. Does the loop count with it?",
    "n_new choices in all: one from the prompt's call, n_new − 1 from the calls after it.",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new + 1):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "first-choice-lost",
    "The first new id goes into the model, but not into the result.",
    "What becomes of the id that the prompt's own scores choose?",
    "Follow the first choice: it is fed to the model. Is it kept as well?",
    "Keep each choice when it is made, the first one too.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, _best(model(input_ids, cache=cache))
    for _ in range(n_new):
        new = _best(model(new, cache=cache))
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "prompt-id-again",
    "Every step feeds the last id of the prompt, not the one that was chosen.",
    "Which id is news to the model at step 2?",
    "Which name stands in the call inside your loop, and does the loop give it a new value?",
    "The choice of one step goes in at the next: give the call the name by which you keep the choice.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, _best(model(input_ids, cache=cache))
    for _ in range(n_new - 1):
        ids = torch.cat((ids, new), dim=1)
        new = _best(model(input_ids[:, -1:], cache=cache))
    return torch.cat((ids, new), dim=1)


@DECODE.add(
    "first-choice-again",
    "All new ids are the first choice: later scores are never looked at.",
    "Which scores choose the second new id?",
    "Does the call inside your loop give new logits, under the name by which you choose?",
    "logits = model(new, cache=cache) inside the loop, and the choice from these.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    logits = model(input_ids, cache=cache)
    ids = input_ids
    for _ in range(n_new):
        new = _best(logits)
        ids = torch.cat((ids, new), dim=1)
        model(new, cache=cache)
    return ids


@DECODE.add(
    "along-the-text",
    "It looks for the largest score along the text, not among the ids.",
    "Which axis of the logits [B, S, V] are the candidates on?",
    "What does argmax look through, and what is left of the shape then?",
    "logits[:, -1] is [B, V]: argmax over its last axis, with keepdim=True.",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = model(new, cache=cache).argmax(1)[:, -1:]
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.also("along-the-text")
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, input_ids.shape[1] + n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = model(new, cache=cache).argmax(1)[:, :1]
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "all-scores",
    "It chooses an id after every id of a call, not after the last one alone.",
    "For a prompt of S ids there are S rows of scores. How many of them say something new?",
    "The scores after an earlier id say what comes behind that id. Is that not known?",
    "logits[:, -1], and then the argmax: one new id for each text.",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, (input_ids.shape[1] + 1) * n_new)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        new = model(new, cache=cache).argmax(-1)
        ids = torch.cat((ids, new), dim=1)
    return ids


@DECODE.add(
    "new-ids-again",
    "Every step feeds all new ids so far, and the cache has all but the last of them already.",
    "Which ids are in the cache when the third step begins?",
    "Print cache.length after each call. By how much should it grow?",
    "After the prompt feed one id a step: the one that was chosen last, [B, 1].",
    on="adds",
)
def _(model, input_ids, n_new):
    cache = _room(model, input_ids, (input_ids.shape[1] + n_new) ** 2)
    ids, new = input_ids, input_ids
    for _ in range(n_new):
        ids = torch.cat((ids, _best(model(new, cache=cache))), dim=1)
        new = ids[:, input_ids.shape[1] :]
    return ids


def _prompt_at_0(of_step):
    def decode(model, input_ids, n_new):
        cache = _room(model, input_ids, input_ids.shape[1] + n_new)
        ids, new, position = input_ids, input_ids, 0
        for _ in range(n_new):
            positions = torch.full(new.shape[1:], position, device=ids.device)
            new = _best(model(new, positions, cache=cache))
            ids, position = torch.cat((ids, new), dim=1), of_step(cache.length)
        return ids

    return decode


DECODE.add(
    "prompt-at-0",
    "All ids of the prompt stand at position 0.",
    "Where does the second id of the prompt stand?",
    "How many positions does the first call get, and for how many ids?",
    "The prompt has the positions 0 to S − 1: torch.arange(S). Left out, they are these.",
    on="measures",
)(_prompt_at_0(lambda length: length))

DECODE.add(
    "all-at-0",
    "All ids stand at position 0, those of the prompt and the new ones.",
    "Where does the second id of a text stand?",
    "What do you give for the positions of each call, and what would a Llama take if you gave nothing?",
    "Leave positions out, and they go on from the cache; or count them yourself, 0, 1, 2 and so on.",
    on="measures",
)(_prompt_at_0(lambda length: 0))

REPAIR_DECODE.take(DECODE)


# A prediction.


def _gib(llama_2_7b, llama_3_8b):
    return torch.tensor(llama_2_7b).double(), torch.tensor(llama_3_8b).double()


@FULL_CACHES.add(
    "exchanged",
    "These are the two answers, exchanged.",
    "Which of the two has more key/value heads?",
    "Llama-3-8B has twice the tokens. By which factor do the heads differ, and in whose favour?",
    "32 heads and 4096 tokens against 8 heads and 8192 tokens.",
)
def _():
    return _gib(1.0, 2.0)


@FULL_CACHES.add(
    "query-heads",
    "For Llama-3-8B this counts the 32 query heads; keys and values have 8.",
    "Which heads have keys, and how many are there in each model?",
    "Look at num_key_value_heads in both configs.",
    "Llama-3-8B has 8 key/value heads: a quarter of what you have.",
)
def _():
    return _gib(2.0, 4.0)


@FULL_CACHES.add(
    "one-of-two",
    "This counts keys or values; both are kept.",
    "How many tensors does each layer keep?",
    "What does a later token need of an earlier one, besides its key?",
    "Keys and values: twice what you have.",
)
def _():
    return _gib(1.0, 0.5)


@FULL_CACHES.add(
    "four-bytes",
    "This takes four bytes for a number, as in fp32.",
    "How many bytes has a number in bf16?",
    "bf16 has 16 bits. How many bytes are that?",
    "Two bytes for each number: half of what you have.",
)
def _():
    return _gib(4.0, 2.0)


@FULL_CACHES.add(
    "one-byte",
    "This takes one byte for a number.",
    "How many bytes has a number in bf16?",
    "bf16 has 16 bits. How many bytes are that? And are keys and values both counted?",
    "Two bytes for each number, keys and values: four times what you have.",
)
def _():
    return _gib(0.5, 0.25)


@FULL_CACHES.add(
    "length-of-llama-2",
    "For Llama-3-8B this is a text of 4096 tokens; it was to be its full length.",
    "How many tokens does each of the two texts have?",
    "Both are at their full length. Is that the same for both?",
    "Llama-3-8B goes to 8192 tokens: twice what you have for it.",
)
def _():
    return _gib(2.0, 0.5)


@FULL_CACHES.add(
    "length-of-llama-3",
    "For Llama-2-7B this is a text of 8192 tokens; it goes to 4096.",
    "How many tokens does each of the two texts have?",
    "Both are at their full length. Is that the same for both?",
    "Llama-2-7B goes to 4096 tokens: half of what you have for it.",
)
def _():
    return _gib(4.0, 1.0)


@FULL_CACHES.add(
    "as-large",
    "The two are not the same size: twice the tokens, but not half the heads.",
    "By which factor do the key/value heads differ?",
    "Compare num_key_value_heads of the two configs.",
    "32 heads against 8 is a factor of 4, 4096 tokens against 8192 a factor of 2 the other way.",
)
def _():
    return _gib(2.0, 2.0)


@FULL_CACHES.add(
    "in-gb",
    "These are GB of 10⁹ bytes; GiB were asked for.",
    "How many bytes are one GiB?",
    "By what do you divide the bytes: by a power of ten or of two?",
    "One GiB is 2³⁰ bytes.",
)
def _():
    return _gib(2**31 / 1e9, 2**30 / 1e9)


@FULL_CACHES.add(
    "in-mib",
    "These are MiB; GiB were asked for.",
    "How many MiB are one GiB?",
    "By what do you divide the bytes?",
    "One GiB is 2³⁰ bytes, or 1024 MiB.",
)
def _():
    return _gib(2048.0, 1024.0)


@FULL_CACHES.add(
    "in-bytes",
    "These are bytes; GiB were asked for.",
    "How many bytes are one GiB?",
    "The numbers are right. Which unit is asked for?",
    "Divide by 2³⁰.",
)
def _():
    return _gib(2.0**31, 2.0**30)


@FULL_CACHES.add(
    "one-layer",
    "This is the cache of one layer.",
    "How many layers have keys and values?",
    "Every layer keeps its own. How many layers are there in each model?",
    "Both have 32 layers: 32 times what you have.",
)
def _():
    return _gib(2 / 32, 1 / 32)


# How many blocks.


@BLOCKS_NEEDED.add(
    "rounded-down",
    "It rounds down: the tokens of a block that is not full have no place.",
    "Where do the last tokens of a text go, if they do not fill a block?",
    "What does `//` do with what is left over?",
    "Round up: (length + block_size - 1) // block_size.",
)
def _(lengths, block_size):
    return sum(length // block_size for length in lengths)


@BLOCKS_NEEDED.add(
    "one-more-always",
    "It takes one block more also where the last one is exactly full.",
    "How many blocks does a text of 4 tokens take, if a block has room for 4?",
    "Work out length // block_size + 1 for a text that fills its blocks.",
    "Add block_size − 1 before the division, in place of 1 after it.",
)
def _(lengths, block_size):
    return sum(length // block_size + 1 for length in lengths)


@BLOCKS_NEEDED.add(
    "rounded",
    "It rounds to the nearest number of blocks: a block that is filled by less than half gets lost.",
    "Where do the last tokens of a text go, if they fill a small part of a block?",
    "round() goes down as often as up. Which of the two is allowed here?",
    "math.ceil(length / block_size), or (length + block_size - 1) // block_size.",
)
def _(lengths, block_size):
    return sum(round(length / block_size) for length in lengths)


@BLOCKS_NEEDED.add(
    "all-in-one-row",
    "It adds the lengths first, as if two texts could share a block.",
    "May the first token of one text stand in the last block of another?",
    "What comes first in your code: the sum over the texts, or the rounding?",
    "Round up for each text, and then add: a block belongs to one text.",
)
def _(lengths, block_size):
    return (sum(lengths) + block_size - 1) // block_size


@BLOCKS_NEEDED.add(
    "all-in-one-row-rounded-down",
    "It adds the lengths first, and then rounds down.",
    "May two texts share a block, and where does what is left over go?",
    "Do it for one text first: 5 tokens in blocks of 4. Then for two of them.",
    "For each text (length + block_size - 1) // block_size, and then the sum.",
)
def _(lengths, block_size):
    return sum(lengths) // block_size


@BLOCKS_NEEDED.add(
    "all-as-the-longest",
    "Every text takes as many blocks as the longest: that is the cache without pages.",
    "What is a paged cache meant to save?",
    "How many blocks does the shortest text take in your count, and how many does it fill?",
    "Count for each text from its own length, and add up.",
)
def _(lengths, block_size):
    return len(lengths) * ((max(lengths) + block_size - 1) // block_size)


@BLOCKS_NEEDED.add(
    "longest-only",
    "It counts the blocks of the longest text, and no others.",
    "Where do the other texts go?",
    "Two texts do not share blocks. Where does your count look at all of the lengths?",
    "Sum over the texts, in place of the maximum.",
)
def _(lengths, block_size):
    return (max(lengths) + block_size - 1) // block_size


@BLOCKS_NEEDED.add(
    "empty-takes-one",
    "A text of no tokens takes a block.",
    "When does a text take its first block: before its first token, or with it?",
    "Is there a max(1, …) in your code, or a rule of its own for short texts?",
    "(0 + block_size - 1) // block_size is 0: an empty text needs no rule of its own.",
)
def _(lengths, block_size):
    return sum(max(1, (length + block_size - 1) // block_size) for length in lengths)


@BLOCKS_NEEDED.add(
    "places",
    "It counts the places in the blocks, not the blocks.",
    "What is asked for: blocks, or tokens for which they have room?",
    "Look for a factor of block_size at the end.",
    "Leave out the multiplication by block_size.",
)
def _(lengths, block_size):
    return sum((length + block_size - 1) // block_size * block_size for length in lengths)


@BLOCKS_NEEDED.add(
    "first-only",
    "It counts the first text, and stops.",
    "How often does your loop come round?",
    "Where does `return` stand: inside the loop, or after it?",
    "Add up in the loop, and return after it.",
)
def _(lengths, block_size):
    return (lengths[0] + block_size - 1) // block_size


@BLOCKS_NEEDED.add(
    "last-only",
    "It counts the last text only: what was counted before is overwritten.",
    "What does your loop do with the count of the texts before?",
    "Is there a `=` where a `+=` should be?",
    "Begin with 0, and add the blocks of each text to it.",
)
def _(lengths, block_size):
    return (lengths[-1] + block_size - 1) // block_size


@BLOCKS_NEEDED.add(
    "one-each",
    "It gives one block to each text, however long the text is.",
    "How many blocks does a text of 9 tokens take, if a block has room for 4?",
    "Where does the length of a text come into your count?",
    "For each text (length + block_size - 1) // block_size.",
)
def _(lengths, block_size):
    return len(lengths)


@BLOCKS_NEEDED.add(
    "fractions",
    "It counts parts of blocks: a block is taken whole, or not at all.",
    "Can a text take a quarter of a block?",
    "`/` divides exactly. What has to happen to the result, for each text?",
    "Round up for each text: math.ceil(length / block_size).",
)
def _(lengths, block_size):
    return sum(length / block_size for length in lengths)


@BLOCKS_NEEDED.add(
    "blocks-of-16",
    "It takes blocks of 16 tokens, whatever the caller gives.",
    "Which argument have you not used?",
    "Look for a number like 16 in your code.",
    "block_size in its place.",
)
def _(lengths, block_size):
    return sum(math.ceil(length / 16) for length in lengths)


@BLOCKS_NEEDED.add(
    "a-list",
    "It gives a list, with the blocks of each text; their sum was asked for.",
    "How many things are to come back: one number, or one for each text?",
    "Your list has the right numbers. What is to be done with them?",
    "Put sum(…) around it.",
)
def _(lengths, block_size):
    return [(length + block_size - 1) // block_size for length in lengths]
