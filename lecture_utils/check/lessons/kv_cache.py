"""The exercises of lesson 8, and the toy models on which a loop that decodes is tried."""

import torch
from torch import Tensor, nn

from ...llama import KVCache, Llama, LlamaConfig, expect
from ..draw import Draw
from ..exercise import Answer, exercise
from ..judge import Case
from ..mistakes import kv_cache as mistakes
from ..properties import Property


def _bytes_cases(draw: Draw) -> list[Case]:
    """One of everything; then each argument alone, then all of them, then models."""
    single = [(1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 4)]
    for sizes, size in (((3, 5, 6, 7, 9), 1), ((4, 8, 16, 3, 10), 2)):
        single += [(*(s if i == place else 1 for i in range(5)), size) for place, s in enumerate(sizes)]
    together = [(2, 1, 4, 1, 3, 2), (3, 2, 4, 5, 7, 4), (3, 2, 4, 5, 7, 1)]
    models = [(22, 4, 64, 1, 2048, 2), (16, 8, 64, 4, 1000, 4), (126, 8, 128, 32, 131072, 2)]
    odd = (61, 5, 81, 7, 8191, 2)  # fp32 would round
    drawn = [(*draw.sizes(5), 2 ** draw.size(0, 3)) for _ in range(2)]
    return [
        *(Case(c) for c in single + together),
        *(Case(m, "published models") for m in models),
        *(Case(d) for d in (*drawn, odd)),
    ]


def _bytes_properties(draw: Draw) -> list[Property]:
    names = ("n_layers", "n_kv_heads", "head_dim", "batch", "seq_len", "bytes_per_value")
    questions = (
        "Which layers have keys and values of their own?",
        "Does each key/value head keep its own keys?",
        "How many numbers is one key?",
        "Do two texts share their keys?",
        "How many tokens leave a key behind?",
        "How many bytes is one number?",
    )
    sizes = [*draw.sizes(5), 2]

    def grows(i):
        def holds(f):
            before, after = f(*sizes), f(*(2 * s if j == i else s for j, s in enumerate(sizes)))
            if after == 2 * before:
                return None
            return (
                f"With twice the {names[i]} the bytes go from {before:g} to {after:g}: not to twice as many."
            )

        return holds

    def one_of_each(f):
        got = f(1, 1, 1, 1, 1, 1)
        return (
            None
            if got == 2
            else f"One token in one head of one number is a key and a value; you say {got:g}."
        )

    return [
        *(
            Property(f"{n}-not-a-factor", q, grows(i))
            for i, (n, q) in enumerate(zip(names, questions, strict=True))
        ),
        Property("not-two-each", "What does a head keep of a token?", one_of_each),
    ]


_BYTES_HINTS = (
    "How many numbers does one token leave behind in one layer? How many tokens and layers are there?",
    "Begin with one token in one layer: each of its heads keeps a key and a value, and each of them is "
    "head_dim numbers. Then count the tokens, the texts, the layers.",
    "A key and a value make a factor of 2; every one of the six arguments is another factor.",
)


@exercise(
    cases=_bytes_cases, mistakes=mistakes.KV_CACHE_BYTES, hints=_BYTES_HINTS, properties=_bytes_properties
)
def kv_cache_bytes(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value):
    per_token = 2 * n_layers * n_kv_heads * head_dim  # numbers: a key and a value in each layer
    return batch * seq_len * per_token * bytes_per_value


# Models to decode with. The toys are called as a Llama is, and what they say next is a rule for the head,
# so that an id which was fed wrongly comes out as a number that can be explained.


class _Toy(nn.Module):
    """Takes ids, positions and a cache as a Llama does; the next id is given by `rule`."""

    rule = ""
    config = LlamaConfig(100, 2, 2, num_hidden_layers=1, num_attention_heads=1)

    def __init__(self) -> None:
        super().__init__()
        self.lm_head = nn.Linear(2, self.config.vocab_size, bias=False)  # its dtype may be asked for
        self.fed = 0  # ids of each text, in all calls so far

    def forward(self, input_ids, positions=None, attention_mask=None, cache=None, logits_to_keep=0) -> Tensor:
        expect.token_ids("input_ids", input_ids, self.config.vocab_size)
        expect.padding("attention_mask", attention_mask, input_ids, cache)
        B, S = input_ids.shape
        past = 0 if cache is None else cache.length
        if positions is None:
            positions = torch.arange(past, past + S)
        expect.integers("positions", positions)
        if list(positions.shape) not in ([S], [1, S], [B, S]):
            shape = list(positions.shape)
            raise ValueError(f"positions must be [S] or [B, S]; for input_ids {[B, S]} its shape is {shape}")
        seen = input_ids
        if cache is not None and not input_ids.is_meta:
            # Its keys are the ids themselves: [B, 1, S, 2].
            new = input_ids[:, None, :, None].expand(B, 1, S, 2).to(self.lm_head.weight.dtype)
            keys, _ = cache.update(0, new, new)
            seen = keys[:, 0, :, 0].to(input_ids)
        if cache is not None:
            cache.advance(S)
        ids = self.next(seen, positions.to(input_ids.device).expand(B, S)) % self.config.vocab_size
        self.fed += S
        logits = (ids[..., None] == torch.arange(self.config.vocab_size, device=ids.device)).float()
        return logits[:, -logits_to_keep:]

    def next(self, seen: Tensor, positions: Tensor) -> Tensor:
        """The next id after each of the S ids of this call, [B, S].

        Args:
            seen: [B, T], ids in the cache and in this call.
            positions: [B, S], of the ids of this call.
        """
        raise NotImplementedError

    def __deepcopy__(self, memo) -> "_Toy":
        return type(self)()  # as new, and sooner than torch would copy it

    def __repr__(self) -> str:
        return f"a toy that {self.rule}"


class _Adds(_Toy):
    rule = "adds: its next id is the sum of all ids it has in sight, modulo 100"

    def next(self, seen, positions):
        return seen.cumsum(-1)[:, -positions.shape[1] :]


class _Measures(_Toy):
    rule = "measures: its next id is 10 + the position of the last id"

    def next(self, seen, positions):
        return 10 + positions


class _Counts(_Toy):
    rule = "counts: its next id is how many ids were put into it, in all calls"

    def next(self, seen, positions):
        return self.fed + torch.arange(1, positions.shape[1] + 1, device=seen.device).expand(positions.shape)


class _TinyLlama(Llama):
    """A Llama with weights so large that every id and every position matters."""

    def __repr__(self) -> str:
        return f"a Llama of {self.config.num_hidden_layers} layers with {self.config.vocab_size} ids"


def _llama(draw: Draw, config: LlamaConfig) -> Llama:
    model = _TinyLlama(config).eval().requires_grad_(False)
    for p in model.parameters():
        p.copy_(0.5 * draw.normal(*p.shape) if p.dim() > 1 else 1 + 0.3 * draw.normal(*p.shape))
    return model


def _llama_case(draw: Draw, B: int, S: int, n_new: int) -> Case:
    """One in which no choice is a matter of rounding, and the new ids are not all the same."""
    sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(draw.size(50, 90), intermediate_size=24, num_hidden_layers=2, **sizes)
    while True:
        model, ids = _llama(draw, config), draw.integers(0, config.vocab_size - 1, B, S)
        ids[0, S // 2] = 0  # an id as any other, and no padding
        all_ids = _greedily(model, ids, n_new)
        logits = model(all_ids)[:, S - 1 : -1]
        best = logits.topk(2).values
        clear = (best[..., 0] - best[..., 1]).min() > 0.02 * logits.std()
        if clear and len(all_ids[0, S:].unique()) > min(2, n_new - 1):
            return Case((model, ids, n_new), "a Llama")


def _greedily(model, input_ids, n_new):
    """Without a cache: slow, and right."""
    for _ in range(n_new):
        input_ids = torch.cat((input_ids, model(input_ids)[:, -1:].argmax(-1)), dim=1)
    return input_ids


def _decode_cases(draw: Draw) -> list[Case]:
    """Each toy with a prompt of two ids and of one; then several texts, drawn ones, and Llamas."""
    adds, measures, counts = _Adds(), _Measures(), _Counts()
    one, two = torch.tensor([[3]]), torch.tensor([[3, 4]])
    B, S, n_new = draw.sizes(3, 3, 7)
    n = draw.size(3, 5)
    return [
        Case((adds, two, 1), "one new id"),
        Case((adds, two, 3), "adds"),
        Case((adds, one, 2), "a prompt of one id"),
        Case((measures, two, 3), "measures"),
        Case((measures, one, 2), "a prompt of one id"),
        Case((counts, two, 3), "counts"),
        Case((counts, one, 2), "a prompt of one id"),
        Case((adds, torch.tensor([[1, 2], [3, 4], [5, 6]]), 2), "three texts"),
        Case((measures, torch.tensor([[1, 2, 3], [4, 5, 6]]), 2), "two texts"),
        Case((adds, torch.tensor([[1], [2]]), 2), "two texts of one id"),
        Case((adds, draw.integers(1, 99, 1, S), n_new)),
        _llama_case(draw, 1, S, 5),
        _llama_case(draw, B, S, n_new),
        _llama_case(draw, n, n, n),
        Case((measures, draw.integers(1, 99, B, S), n_new), "measures"),
        Case((counts, draw.integers(1, 99, 1, S), n_new), "counts"),
        Case((adds, draw.integers(1, 99, B, S), n_new), "[B, S]"),
        Case((adds, two, 40), "40 new ids"),
    ]


class _Records(_Adds):
    """Writes down the positions of each call. It is not copied: what it was fed is to be read."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = []

    def __deepcopy__(self, memo) -> "_Records":
        return self

    def next(self, seen, positions):
        self.calls.append(positions[0].tolist())
        return super().next(seen, positions)


def _decode_properties(draw: Draw) -> list[Property]:
    ids = draw.integers(1, 30, 1, 3)
    S = ids.shape[1]

    def begins_with_the_prompt(f):
        if torch.equal(f(_Adds(), ids, 4)[:, :S], ids):
            return None
        return "What comes back does not begin with input_ids."

    def as_many_as_asked(f):
        count = f(_Adds(), ids, 4).shape[1] - S
        return None if count == 4 else f"n_new is 4, and {count} came after the {S} of the prompt."

    def each_goes_in_once(f):
        model = _Records()
        f(model, ids, 4)
        fed = [len(positions) for positions in model.calls]
        if sum(fed) in (S + 3, S + 4):  # the last new id need not go in
            return None
        return (
            f"For {S} ids of a prompt and 4 new ones the model got {' + '.join(map(str, fed)) or 0} ids; "
            f"with a cache {S} + 1 + 1 + 1 are enough."
        )

    def at_its_position(f):
        model = _Records()
        f(model, ids, 4)
        got = [p for positions in model.calls for p in positions]
        if got == list(range(len(got))):
            return None
        return f"The ids went in at the positions {', '.join(map(str, got))}."

    def texts_apart(f):
        other = torch.cat((ids, ids + 1))
        if torch.equal(f(_Adds(), other, 4)[:1], f(_Adds(), ids, 4)):
            return None
        return "A second text beside the first changes what follows the first."

    def longer_goes_on(f):
        if torch.equal(f(_Adds(), ids, 4)[:, : S + 2], f(_Adds(), ids, 2)):
            return None
        return "The first 2 new ids are others when 4 are asked for."

    return [
        Property("prompt-missing", "What is the caller to get: the new ids alone?", begins_with_the_prompt),
        Property("wrong-count", "How often does your loop choose an id, and keep it?", as_many_as_asked),
        Property(
            "fed-again",
            "Which ids does the cache hold already when your loop comes round?",
            each_goes_in_once,
        ),
        Property(
            "wrong-position", "At which position of the whole text does each id stand?", at_its_position
        ),
        Property("texts-mixed", "Which axis holds the texts, and does each keep its own?", texts_apart),
        Property(
            "depends-on-n-new", "May the first new id depend on how many are still to come?", longer_goes_on
        ),
    ]


_DECODE_HINTS = (
    "What does the model have to be told at the first step, and what is news to it at every step after?",
    "Three things happen in a step: something goes in, the last scores choose, the choice is kept. What "
    "goes in at the next step, if the cache has all the rest?",
    "Make a KVCache for B texts with room for S + n_new tokens. Feed input_ids once, then each choice: "
    "logits[:, -1].argmax(-1, keepdim=True), which is [B, 1]. Keep the choices, and join them to input_ids "
    "at the end.",
)


@exercise(
    cases=_decode_cases, mistakes=mistakes.DECODE, hints=_DECODE_HINTS, properties=_decode_properties
)  # fmt: skip
def decode(model, input_ids, n_new):
    batch_size, length = input_ids.shape
    cache = KVCache(model.config, batch_size, length + n_new, device=input_ids.device)
    pieces = [input_ids]
    for _ in range(n_new):
        logits = model(pieces[-1], cache=cache)  # the prompt once, then one id at a time
        pieces.append(logits[:, -1].argmax(-1, keepdim=True))  # [B, 1]
    return torch.cat(pieces, dim=1)


full_caches = Answer(
    "full_caches",
    lesson=__name__,
    right={"llama_2_7b": 2.0, "llama_3_8b": 1.0},
    mistakes=mistakes.FULL_CACHES,
    hints=(
        "Which of the numbers of the two configs count for the cache, and which do not?",
        "Both have 32 layers and d = 128. How many heads have keys in each, and how many tokens are there? "
        "One GiB is 2³⁰ bytes, and a number in bf16 has two.",
        "kv_cache_bytes(32, K, 128, 1, S, 2) / 2**30, with K = 32 and S = 4096, then K = 8 and S = 8192.",
    ),
    because="Llama-3-8B keeps keys and values of 8 heads, Llama-2-7B of 32: a quarter for each token. Twice "
    "the tokens make it one half.",
)


def _blocks_cases(draw: Draw) -> list[Case]:
    """One text around the edge of a block, then several."""
    block_size = draw.size(3, 9)
    lengths = draw.integers(0, 40, draw.size(3, 6)).tolist()
    return [
        Case(([5], 4), "one text"),
        Case(([4], 4), "one text"),
        Case(([9], 4), "one text"),
        Case(([1], 4), "one text"),
        Case(([0], 4), "an empty text"),
        Case(([1, 1, 1], 4), "several texts"),
        Case(([4, 8], 4), "several texts"),
        Case(([9, 5, 0, 2], 4), "several texts"),
        Case(([0, 0, 8], 4), "an empty text"),
        Case(([0, 8], 4), "an empty text"),
        Case(([11], 4), "one text"),
        Case(([23], 8), "one text"),
        Case(([9, 9, 11], 4), "several texts"),
        Case(([13, 5, 7], 4), "several texts"),
        Case(([17, 0, 32, 30, 1], 16), "several texts"),
        Case(([3, 7, 2], 1), "blocks of one token"),
        Case((lengths, block_size)),
        Case(([*lengths, block_size, 2 * block_size + 1], block_size)),
        Case(([1000, 30, 8192, 513], 2 ** draw.size(5, 7)), "long texts"),
    ]


def _blocks_properties(draw: Draw) -> list[Property]:
    def at_the_edge(f):
        got = f([8], 8), f([9], 8)
        if got == (1, 2):
            return None
        return f"With blocks of 8: a text of 8 tokens takes {got[0]} for you, one of 9 takes {got[1]}."

    def room_for_all(f):
        got = f([5, 6], 4)
        return None if got >= 3 else f"Texts of 5 and 6 tokens have no room in {got} blocks of 4."

    def texts_apart(f):
        both, first, second = f([5, 6], 4), f([5], 4), f([6], 4)
        if both == first + second:
            return None
        return f"Texts of 5 and 6 tokens take {first} and {second} blocks of 4 alone, and {both} together."

    return [
        Property("edge", "When does a text need one more block?", at_the_edge),
        Property("no-room", "Is there a place for every token?", room_for_all),
        Property("texts-share", "May two texts share a block?", texts_apart),
    ]


@exercise(
    cases=_blocks_cases, mistakes=mistakes.BLOCKS_NEEDED, properties=_blocks_properties,
    hints=(
        "How many blocks does one text of 5 tokens take, if a block has room for 4? And two such texts?",
        "Each text rounds up on its own. What could be added before `//`, so that it rounds up, and an exact "
        "number of blocks stays what it is?",
        "For one text: (length + block_size - 1) // block_size, or math.ceil(length / block_size). The "
        "answer is the sum of that over the texts.",
    ),
)  # fmt: skip
def blocks_needed(lengths, block_size):
    return sum((length + block_size - 1) // block_size for length in lengths)


def _last_id_twice(model, input_ids, n_new):
    batch_size, length = input_ids.shape
    cache = KVCache(model.config, batch_size, length + n_new, device=input_ids.device)
    model(input_ids, cache=cache)  # the prompt
    pieces, new = [input_ids], input_ids[:, -1:]
    for _ in range(n_new):
        logits = model(new, cache=cache)
        new = logits[:, -1].argmax(-1, keepdim=True)
        pieces.append(new)
    return torch.cat(pieces, dim=1)


@exercise(
    cases=_decode_cases,
    mistakes=mistakes.REPAIR_DECODE,
    hints=(
        "Follow a prompt of 3 ids. Which ids are in the cache after the first step of the loop?",
        "Print cache.length before the loop and after its first step: 3, 4. Which id stands at position 2, "
        "and which at position 3?",
        "The call with the prompt gives the logits that choose the first new id. Keep them, and let only new "
        "ids go in after that.",
    ),
    properties=_decode_properties,
    given=_last_id_twice,
)
def repair_decode(model, input_ids, n_new):
    batch_size, length = input_ids.shape
    cache = KVCache(model.config, batch_size, length + n_new, device=input_ids.device)
    logits = model(input_ids, cache=cache)  # the prompt
    pieces = [input_ids]
    for _ in range(n_new):
        new = logits[:, -1].argmax(-1, keepdim=True)
        pieces.append(new)
        logits = model(new, cache=cache)
    return torch.cat(pieces, dim=1)
