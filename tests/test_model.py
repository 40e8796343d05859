"""Attention, cache and the whole Llama: by hand, against Hugging Face, in pieces, and when it writes."""

import random
from dataclasses import replace

import pytest
import torch
from transformers import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from lecture_utils import llama
from lecture_utils.llama import KVCache, Llama, LlamaConfig, PagedKVCache
from lecture_utils.parity import assert_matches, reference

SMALL = LlamaConfig(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
)


def hostile(model, seed=0, size=2.0):
    """Weights that are far from those of a fresh model; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = 1 + 0.3 * noise if noise.dim() == 1 else noise * size / noise.shape[-1] ** 0.5
    return model.eval()


def twins(config, seed=0, implementation="sdpa"):
    """Ours and Hugging Face's with the same hostile weights."""
    ours = hostile(Llama(config, implementation), seed)
    theirs = reference.LlamaForCausalLM(reference.llama_config(config, implementation)).eval()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return ours, theirs


# By hand


def test_the_mask_is_aligned_to_the_bottom_right():
    assert llama.causal_mask(3, 3, torch.bool).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert llama.causal_mask(2, 4, torch.bool).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert llama.causal_mask(1, 4, torch.bool).all()
    lowest = torch.finfo(torch.float16).min
    assert llama.causal_mask(2, 2, torch.float16).tolist() == [[0, lowest], [0, 0]]


def test_repeat_kv_puts_a_copy_beside_its_original_as_hugging_face_does():
    heads = torch.tensor([10.0, 20.0]).reshape(1, 2, 1, 1)
    assert llama.repeat_kv(heads, 2).flatten().tolist() == [10, 10, 20, 20]
    x = torch.randn(2, 3, 4, 5)
    assert torch.equal(llama.repeat_kv(x, 3), reference.repeat_kv(x, 3))


def test_attention_of_one_key_is_its_value_and_of_equal_keys_their_mean():
    q, k = torch.randn(1, 2, 3, 4), torch.zeros(1, 1, 2, 4)
    v = torch.tensor([[1.0, 2, 3, 4], [3, 4, 5, 6]]).reshape(1, 1, 2, 4)
    torch.testing.assert_close(llama.attention(q, k, v), torch.tensor([2.0, 3, 4, 5]).expand(1, 2, 3, 4))
    only_first = torch.tensor([True, False])
    torch.testing.assert_close(llama.attention(q, k, v, only_first), v[:, :, :1].expand(1, 2, 3, 4))


def test_scores_are_divided_by_the_root_of_d():
    q, k = torch.tensor([[[[2.0, 2.0, 2.0, 2.0]]]]), torch.eye(4)[None, None, :2]
    k[0, 0, 1] = 0
    out = llama.attention(q, k, torch.tensor([[[[1.0], [0.0]]]]).expand(1, 1, 2, 4))
    torch.testing.assert_close(out[..., 0], torch.sigmoid(torch.tensor([[[1.0]]])))  # 2 / √4 = 1 against 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_that_may_look_nowhere_is_not_nan(dtype):
    q, k, v = (torch.randn(1, 2, 3, 4).to(dtype) for _ in range(3))
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[0] = False
    assert llama.attention(q, k, v, mask).isfinite().all()
    config = replace(SMALL, num_hidden_layers=1)
    for implementation in ("eager", "sdpa"):
        part = llama.Attention(config, 0, implementation).to(dtype)
        cos, sin = llama.RotaryEmbedding(config)(torch.arange(3), dtype)
        assert part(torch.randn(1, 3, 32).to(dtype), cos, sin, mask[None, None]).isfinite().all()


# Wrong parts fail the proof


class Wrong(llama.Attention):
    """Attention with one mistake, as a function of q, k, v, and who may look."""

    def __init__(self, how):
        super().__init__(CONFIG, 0, "eager")
        self.how = how

    def forward(self, hidden_states, cos, sin, allowed):
        split = (p(hidden_states).unflatten(-1, (-1, 8)).transpose(1, 2) for p in (self.q_proj, self.k_proj))
        q, k = llama.apply_rope(*split, cos, sin)
        v = self.v_proj(hidden_states).unflatten(-1, (-1, 8)).transpose(1, 2)
        return self.o_proj(self.how(q, k, v, allowed.bool()))


CONFIG = LlamaConfig(hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=8)


def merged(x):
    return x.transpose(1, 2).flatten(-2)


def weighted(q, k, v, allowed, scale=8**-0.5, fill=-torch.inf, dim=-1, repeat=None):
    k, v = (repeat(x) if repeat else x.repeat_interleave(3, dim=1) for x in (k, v))
    scores = (q @ k.transpose(-2, -1) * scale).float().masked_fill(~allowed, fill)
    return scores.softmax(dim).to(q.dtype) @ v


WRONG = {
    "right": lambda q, k, v, m: merged(weighted(q, k, v, m)),
    "no scale": lambda q, k, v, m: merged(weighted(q, k, v, m, scale=1)),
    "scale by the number of heads": lambda q, k, v, m: merged(weighted(q, k, v, m, scale=6**-0.5)),
    "heads tiled": lambda q, k, v, m: merged(weighted(q, k, v, m, repeat=lambda x: x.repeat(1, 3, 1, 1))),
    "heads merged without the transpose": lambda q, k, v, m: weighted(q, k, v, m).reshape(len(q), -1, 48),
    "no mask": lambda q, k, v, m: merged(weighted(q, k, v, torch.ones_like(m))),
    "sees the next": lambda q, k, v, m: merged(weighted(q, k, v, m | m.roll(-1, -2))),
    "fill of −10": lambda q, k, v, m: merged(weighted(q, k, v, m, fill=-10.0)),
    "softmax over queries": lambda q, k, v, m: merged(weighted(q, k, v, m, dim=-2).nan_to_num()),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_attention_fails_its_proof(name):
    cos, sin = (x.expand(2, -1, -1) for x in llama.cos_sin(torch.arange(5), llama.inv_freq(8)))
    allowed = llama.causal_mask(5, 5, torch.bool).expand(2, 1, 5, 5).long()
    theirs = reference.LlamaAttention(reference.llama_config(CONFIG), 0)
    inputs = torch.randn(2, 5, 48, generator=torch.Generator().manual_seed(3)), cos, sin, allowed
    options = {"kind": "matmul", "dtypes": [torch.float32], "magnitudes": (1.0,)}
    if name == "right":
        assert assert_matches(Wrong(WRONG[name]), theirs, *inputs, **options).passed
    else:
        with pytest.raises(AssertionError):
            assert_matches(Wrong(WRONG[name]), theirs, *inputs, **options)


class OneNorm(llama.DecoderLayer):
    def forward(self, x, cos, sin, allowed):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, allowed.bool())
        return x + self.mlp(self.input_layernorm(x)) + 0 * self.post_attention_layernorm(x)


class AfterNorm(llama.DecoderLayer):
    def forward(self, x, cos, sin, allowed):
        x = self.input_layernorm(x)
        x = x + self.self_attn(x, cos, sin, allowed.bool())
        x = self.post_attention_layernorm(x)
        return x + self.mlp(x)


class PostNorm(llama.DecoderLayer):
    def forward(self, x, cos, sin, allowed):
        x = self.input_layernorm(x + self.self_attn(x, cos, sin, allowed.bool()))
        return self.post_attention_layernorm(x + self.mlp(x))


@pytest.mark.parametrize("wrong", [OneNorm, AfterNorm, PostNorm])
def test_a_mistake_in_the_decoder_layer_fails_its_proof(wrong):
    cos, sin = (x.expand(2, -1, -1) for x in llama.cos_sin(torch.arange(5), llama.inv_freq(8)))
    allowed = llama.causal_mask(5, 5, torch.bool).expand(2, 1, 5, 5).long()
    theirs = reference.LlamaDecoderLayer(reference.llama_config(SMALL), 0)
    with pytest.raises(AssertionError):
        assert_matches(wrong(SMALL, 0, "eager"), theirs, torch.randn(2, 5, 32), cos, sin, allowed,
                       kind="matmul", dtypes=[torch.float32], magnitudes=(1.0,))  # fmt: skip


def test_a_layer_that_adds_nothing_is_the_identity():
    layer = llama.DecoderLayer(SMALL)
    layer.self_attn.o_proj.weight.data.zero_()
    layer.mlp.down_proj.weight.data.zero_()
    x = torch.randn(2, 5, 32)
    assert torch.equal(layer(x, *llama.RotaryEmbedding(SMALL)(torch.arange(5))), x)


# In pieces


@pytest.mark.parametrize("seed", range(40))
def test_any_split_of_a_text_gives_the_logits_of_the_whole(seed):
    chance = random.Random(seed)
    heads = chance.choice([1, 2, 3, 6])
    config = replace(
        SMALL, hidden_size=48, num_attention_heads=heads, head_dim=8,
        num_key_value_heads=chance.choice([k for k in range(1, heads + 1) if heads % k == 0]),
    )  # fmt: skip
    model = hostile(Llama(config, chance.choice(["eager", "sdpa"])), seed)
    B, S = chance.randint(1, 4), chance.randint(2, 24)
    ids = torch.randint(50, (B, S), generator=torch.Generator().manual_seed(seed))
    mask = torch.ones(B, S, dtype=torch.long)
    for row in mask:
        row[: chance.randint(0, S // 2) * chance.randint(0, 1)] = 0
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    caches = KVCache(config, B, S), PagedKVCache(config, B, B * S, chance.randint(1, 5), mask)
    cache, parts, start = caches[seed % 2], [], 0
    with torch.no_grad():
        whole = model(ids, positions, mask)
        while start < S:
            end = min(S, start + chance.randint(1, 6))
            parts.append(model(ids[:, start:end], positions[:, start:end], mask[:, :end], cache))
            start = end
    difference = (torch.cat(parts, 1) - whole)[mask.bool()].abs().max()
    assert cache.length == S and difference <= 1e-5 * whole.abs().max()


@pytest.mark.parametrize("cache", [KVCache(SMALL, 1, 10), PagedKVCache(SMALL, 1, 5, 2)])
def test_a_cleared_cache_remembers_nothing(cache):
    model = hostile(Llama(SMALL))
    first, second = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5, 6, 7]])
    with torch.no_grad():
        model(first, cache=cache)
        cache.clear()
        assert torch.equal(model(second, cache=cache), model(second))


def test_a_paged_cache_takes_blocks_as_texts_grow_and_none_for_padding():
    mask = torch.tensor([[0, 0, 0, 0, 1], [1, 1, 1, 1, 1]])
    model, cache = hostile(Llama(SMALL)), PagedKVCache(SMALL, 2, 5, block_size=2, attention_mask=mask)
    ids = torch.arange(10).reshape(2, 5)
    with torch.no_grad():
        model(ids, attention_mask=mask, cache=cache)
        assert [len(blocks) for blocks in cache.blocks] == [1, 3] and len(cache.free) == 1
        model(ids[:, :1], attention_mask=torch.cat((mask, mask[:, 4:]), 1), cache=cache)
        assert [len(blocks) for blocks in cache.blocks] == [1, 3]  # both had room
        with pytest.raises(ValueError, match="has 1 free blocks, and 2 more were needed"):
            model(ids[:, :1], cache=cache)
    cache.clear()
    assert sorted(cache.free) == [1, 2, 3, 4, 5] and cache.length == 0


# Writing


@pytest.mark.parametrize("seed", range(20))
def test_two_hundred_greedy_tokens_are_those_of_hugging_face(seed):
    chance = random.Random(seed)
    scaling = [None, {"rope_type": "linear", "factor": 2.0}]
    scaling.append({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 64})  # fmt: skip
    config = replace(
        SMALL, num_key_value_heads=chance.choice([1, 2, 4]), head_dim=chance.choice([8, 12]),
        tie_word_embeddings=chance.random() < 0.5, attention_bias=chance.random() < 0.5,
        mlp_bias=chance.random() < 0.5, rope_scaling=scaling[seed % 3],
    )  # fmt: skip
    ours, theirs = twins(config, seed)
    ids = torch.randint(1, 50, (2, 6), generator=torch.Generator().manual_seed(seed))
    mask = torch.ones_like(ids)
    mask[0, : seed % 4] = 0
    expected = theirs.generate(
        ids, attention_mask=mask, max_new_tokens=200, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    got = ours.generate(ids, 200, attention_mask=mask)
    assert got.shape == (2, 206) and torch.equal(got, expected)


def test_a_text_ends_with_a_stop_id_and_padding_follows():
    model = hostile(Llama(SMALL), 1)
    ids = torch.tensor([[1, 2], [3, 4]])
    free = model.generate(ids, 12)[:, 2:]
    stop = free[0, 3].item()
    seen = []
    stopped = model.generate(ids, 12, stop_ids=[stop], pad_id=7, stream=lambda new: seen.append(new.tolist()))
    for row, text in zip(stopped[:, 2:].tolist(), free.tolist(), strict=True):
        ends = text.index(stop) + 1 if stop in text else len(row)
        assert row == text[:ends][: len(row)] + [7] * (len(row) - ends)
    assert torch.tensor(seen).T.tolist() == stopped[:, 2:].tolist()


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, None), (0.5, None, None), (2.0, 5, None), (1.0, 1, None), (1.3, None, 0.7), (0.8, 20, 0.9),
     (1.0, None, 0.001), (1.0, 100, 1.0)],
)  # fmt: skip
def test_probabilities_are_those_of_hugging_face(temperature, top_k, top_p):
    logits = 3 * torch.randn(4, 50, generator=torch.Generator().manual_seed(2))
    expected = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k is not None:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p is not None:
        expected = TopPLogitsWarper(top_p)(None, expected)
    got = llama.next_token_probabilities(logits, temperature, top_k, top_p)
    torch.testing.assert_close(got, expected.softmax(-1))


def test_chance_follows_the_generator_and_the_probabilities():
    model, ids = hostile(Llama(SMALL), 2), torch.tensor([[1, 2, 3]]).expand(2000, 3)
    first, again = (
        model.generate(ids, 1, temperature=1.5, top_k=6, generator=torch.Generator().manual_seed(5))
        for _ in range(2)
    )
    assert torch.equal(first, again)
    probabilities = llama.next_token_probabilities(model(ids[:1])[0, -1].detach(), 1.5, 6)
    shares = torch.bincount(first[:, -1], minlength=50) / len(ids)
    torch.testing.assert_close(shares, probabilities, atol=0.05, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_writing_leaves_the_settings_of_pytorch_as_they_were(dtype):
    model, seen = hostile(Llama(SMALL)).to(dtype), []
    enabled = torch.backends.mkldnn.enabled
    forward = model.forward

    def watched(*args, **options):
        seen.append(torch.backends.mkldnn.enabled)
        if len(seen) == 5:
            raise InterruptedError
        return forward(*args, **options)

    model.forward = watched
    model.generate(torch.tensor([[1, 2, 3]]), 3)
    one_row = enabled and dtype != torch.bfloat16
    assert seen == [enabled, one_row, one_row]
    assert torch.backends.mkldnn.enabled == enabled
    with pytest.raises(InterruptedError):  # in the midst of the second token
        model.generate(torch.tensor([[1, 2, 3]]), 3)
    assert seen[-1] == one_row and torch.backends.mkldnn.enabled == enabled


def test_a_tied_head_is_the_embedding_itself():
    model = Llama(replace(SMALL, tie_word_embeddings=True))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert sum(p.numel() for p in model.parameters()) == model.config.num_parameters
