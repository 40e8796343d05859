"""Bad input to every public function and class: one sentence that names the argument."""

import re

import pytest
import torch

from lecture_utils import llama
from lecture_utils.llama import LlamaConfig
from lecture_utils.predict import Prediction

x = torch.randn(2, 3, 8)
ints = torch.arange(3)
q = torch.randn(2, 4, 3, 8)
k = torch.randn(2, 2, 3, 8)
cos, sin = llama.cos_sin(ints, llama.inv_freq(8))
frequencies = llama.inv_freq(8)
MODEL = LlamaConfig(
    vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8,
)  # fmt: skip


def rope_config(**scaling):
    return LlamaConfig(hidden_size=64, num_attention_heads=4, rope_scaling=scaling)


CASES = {
    # class or function: [(call, name of the argument, words of the sentence), …]
    "LayerNorm": [
        (lambda: llama.LayerNorm(0), "hidden_size", "positive integer"),
        (lambda: llama.LayerNorm(8, eps=0), "eps", "above 0"),
        (lambda: llama.LayerNorm(8)(x[..., :7]), "hidden_states", "8 features"),
        (lambda: llama.LayerNorm(8)(ints), "hidden_states", "floating-point"),
    ],
    "RMSNorm": [
        (lambda: llama.RMSNorm(8.0), "hidden_size", "positive integer"),
        (lambda: llama.RMSNorm(8, eps=-1e-6), "eps", "above 0"),
        (lambda: llama.RMSNorm(8, eps=float("inf")), "eps", "finite"),
        (lambda: llama.RMSNorm(8)(x[..., :1]), "hidden_states", "8 features"),
        (lambda: llama.RMSNorm(8)(torch.tensor(1.0)), "hidden_states", "8 features"),
        (lambda: llama.RMSNorm(8)([1.0] * 8), "hidden_states", "must be a tensor, not list"),
    ],
    "FeedForward": [
        (lambda: llama.FeedForward(8, 0), "intermediate_size", "positive integer"),
        (lambda: llama.FeedForward(True, 4), "hidden_size", "positive integer"),
        (lambda: llama.FeedForward(7, 4)(x), "hidden_states", "7 features"),
    ],
    "SwiGLU": [
        (lambda: llama.SwiGLU(-8, 4), "hidden_size", "positive integer"),
        (lambda: llama.SwiGLU(8, 4.5), "intermediate_size", "positive integer"),
        (lambda: llama.SwiGLU(7, 4)(x), "hidden_states", "7 features"),
        (lambda: llama.SwiGLU(8, 4)(x.long()), "hidden_states", "floating-point"),
    ],
    "intermediate_size": [
        (lambda: llama.intermediate_size(0, 256), "hidden_size", "positive integer"),
        (lambda: llama.intermediate_size(4096, 0), "multiple_of", "positive integer"),
        (lambda: llama.intermediate_size(4096, 256, 0), "multiplier", "above 0"),
        (lambda: llama.intermediate_size(1, 256, 0.1), "multiplier", "positive integer"),
    ],
    "inv_freq": [
        (lambda: llama.inv_freq(7), "head_dim", "even"),
        (lambda: llama.inv_freq(8, base=0), "base", "above 0"),
    ],
    "linear_scaling": [
        (lambda: llama.linear_scaling(ints, 2.0), "inv_freq", "floating-point"),
        (lambda: llama.linear_scaling(frequencies, 0), "factor", "above 0"),
    ],
    "dynamic_scaling": [
        (lambda: llama.dynamic_scaling(2, 1e4, 2.0, 10, 5), "head_dim", "above 2"),
        (lambda: llama.dynamic_scaling(8, 1e4, 2.0, 10, 0), "max_position_embeddings", "positive integer"),
        (lambda: llama.dynamic_scaling(8, 1e4, 2.0, 0, 5), "seq_len", "positive integer"),
        (lambda: llama.dynamic_scaling(8, 1e4, 2.0, ints, 5), "seq_len", "one integer"),
        (lambda: llama.dynamic_scaling(8, 1e4, -1, 10, 5), "factor", "above 0"),
    ],
    "llama3_scaling": [
        (lambda: llama.llama3_scaling(frequencies, 0, 1.0, 4.0, 8192), "factor", "above 0"),
        (lambda: llama.llama3_scaling(frequencies, 8.0, 4.0, 1.0, 8192), "high_freq_factor", "above"),
        (lambda: llama.llama3_scaling(frequencies, 8.0, 1.0, 4.0, 0), "original_max_position_embeddings",
         "positive integer"),
        (lambda: llama.llama3_scaling(ints, 8.0, 1.0, 4.0, 8192), "inv_freq", "floating-point"),
    ],
    "rope_frequencies": [
        (lambda: llama.rope_frequencies(rope_config(rope_type="yarn"), ints), "rope_type", "'yarn'"),
        (lambda: llama.rope_frequencies(rope_config(factor=2.0), ints), "rope_type", "None"),
        (lambda: llama.rope_frequencies(rope_config(rope_type="linear"), ints), "rope_scaling", "'factor'"),
        (lambda: llama.rope_frequencies(rope_config(rope_type="llama3", factor=8.0), ints),
         "rope_scaling", "'low_freq_factor'"),
        (lambda: llama.rope_frequencies(LlamaConfig(), x), "positions", "integers"),
    ],
    "cos_sin": [
        (lambda: llama.cos_sin(x, frequencies), "positions", "integers"),
        (lambda: llama.cos_sin(ints, ints), "inv_freq", "floating-point"),
        (lambda: llama.cos_sin(ints.to("meta"), frequencies), "positions", "meta"),
    ],
    "RotaryEmbedding": [
        (lambda: llama.RotaryEmbedding(LlamaConfig())(x), "positions", "integers"),
        (lambda: llama.RotaryEmbedding({"head_dim": 8}), "config", "LlamaConfig"),
        (lambda: llama.RotaryEmbedding(LlamaConfig())(ints, torch.int64), "dtype", "floating-point dtype"),
    ],
    "rotate_half": [
        (lambda: llama.rotate_half(x[..., :7]), "x", "even"),
        (lambda: llama.rotate_half(ints), "x", "floating-point"),
    ],
    "apply_rope": [
        (lambda: llama.apply_rope(q, k, cos[:2], sin[:2]), "cos", "[S, d]"),
        (lambda: llama.apply_rope(q, k[:, :, :2], cos, sin), "k", "[S, d]"),
        (lambda: llama.apply_rope(q.bfloat16(), k, cos, sin), "q", "cast cos and sin"),
        (lambda: llama.apply_rope(q[..., :7], k, cos, sin), "q", "even"),
        (lambda: llama.apply_rope(q, k, cos, ints), "sin", "floating-point"),
        (lambda: llama.apply_rope(q, k, cos[None, None], sin[None, None]), "cos", "[S, d] or [B, S, d]"),
        (lambda: llama.apply_rope(q, k, cos.expand(5, 3, 8), sin), "cos", "[S, d] or [B, S, d]"),
    ],
    "apply_rope_interleaved": [
        (lambda: llama.apply_rope_interleaved(x, ints, llama.inv_freq(6)), "x", "6 features"),
        (lambda: llama.apply_rope_interleaved(x, x, frequencies), "positions", "integers"),
    ],
    "apply_rope_complex": [
        (lambda: llama.apply_rope_complex(x, ints, llama.inv_freq(6)), "x", "6 features"),
        (lambda: llama.apply_rope_complex(x, x, frequencies), "positions", "integers"),
    ],
    "rotate_2d": [(lambda: llama.rotate_2d(x, 0.5), "x", "2 features")],
    "rotation_matrix": [(lambda: llama.rotation_matrix(1, ints), "inv_freq", "floating-point")],
    "interleaved_to_half": [
        (lambda: llama.interleaved_to_half(torch.randn(12, 5), 4), "weight", "d even"),
        (lambda: llama.interleaved_to_half(torch.randn(12, 5), 0), "n_heads", "positive integer"),
    ],
    "half_to_interleaved": [
        (lambda: llama.half_to_interleaved(torch.randn(12, 5), 4), "weight", "d even"),
        (lambda: llama.half_to_interleaved(ints, 1), "weight", "floating-point"),
    ],
    "LlamaConfig": [
        (lambda: LlamaConfig(num_attention_heads=31), "hidden_size", "not divisible"),
        (lambda: LlamaConfig(num_key_value_heads=5), "num_key_value_heads", "not a multiple"),
        (lambda: LlamaConfig(head_dim=7), "head_dim", "even"),
        (lambda: LlamaConfig(vocab_size=0), "vocab_size", "positive integer"),
        (lambda: LlamaConfig(rms_norm_eps=0), "rms_norm_eps", "above 0"),
        (lambda: LlamaConfig(rope_theta="1e4"), "rope_theta", "above 0"),
        (lambda: LlamaConfig(rope_scaling="linear"), "rope_scaling", "must be a dict, not str"),
        (lambda: LlamaConfig(tie_word_embeddings="no"), "tie_word_embeddings", "must be a bool"),
        (lambda: LlamaConfig.from_dict([]), "values", "must be a dict"),
    ],
    "causal_mask": [
        (lambda: llama.causal_mask(3, 2), "q_len", "a query is also a key"),
        (lambda: llama.causal_mask(0, 2), "q_len", "positive integer"),
        (lambda: llama.causal_mask(1, 2, torch.int64), "dtype", "floating-point"),
    ],
    "repeat_kv": [
        (lambda: llama.repeat_kv(k, 0), "n_rep", "positive integer"),
        (lambda: llama.repeat_kv([1.0], 2), "x", "must be a tensor, not list"),
    ],
    "attention": [
        (lambda: llama.attention(q[:, :3], k, k), "q", "N a multiple of K"),
        (lambda: llama.attention(q, k, k[..., :4]), "v", "[B, K, T, d]"),
        (lambda: llama.attention(q.long(), k, k), "q", "floating-point"),
    ],
    "causal_attention": [
        (lambda: llama.causal_attention(q[:, :3], k, k), "q", "N a multiple of K"),
        (lambda: llama.causal_attention(q, k[..., :1, :], k[..., :1, :]), "q_len", "a query is also a key"),
    ],
    "fused_attention": [
        (lambda: llama.fused_attention(q[:, :3], k, k), "q", "N a multiple of K"),
        (lambda: llama.fused_attention(q, k[..., :1, :], k[..., :1, :]), "q_len", "a query is also a key"),
    ],
    "padding_mask": [
        (lambda: llama.padding_mask(torch.ones(3), 1), "attention_mask", "must be [B, T]"),
        (lambda: llama.padding_mask(torch.zeros(1, 3), 0), "q_len", "positive integer"),
    ],
    "Attention": [
        (lambda: llama.Attention(MODEL, 0, "flash"), "attn_implementation", "'sdpa' or 'eager'"),
        (lambda: llama.Attention({}), "config", "must be a LlamaConfig"),
        (lambda: llama.Attention(MODEL)(x[0], cos, sin), "hidden_states", "must be [B, S, 8]"),
        (lambda: llama.Attention(MODEL)(x[..., :7], cos, sin), "hidden_states", "8 features"),
    ],
    "flops_per_token": [
        (lambda: llama.flops_per_token({}, 1), "config", "must be a LlamaConfig"),
        (lambda: llama.flops_per_token(MODEL, 0), "context", "positive integer"),
    ],
    "kv_cache_bytes": [
        (lambda: llama.kv_cache_bytes(1, 0, 2, 1, 1, 2), "n_kv_heads", "positive integer"),
        (lambda: llama.kv_cache_bytes(1, 1, 2, 1, 1, 0.5), "bytes_per_value", "positive integer"),
    ],
    "DecoderLayer": [
        (lambda: llama.DecoderLayer({}), "config", "must be a LlamaConfig"),
        (lambda: llama.DecoderLayer(MODEL)(x[0], cos, sin), "hidden_states", "must be [B, S, 8]"),
    ],
    "KVCache": [
        (lambda: llama.KVCache(MODEL, 0, 4), "batch_size", "positive integer"),
        (lambda: llama.KVCache(MODEL, 1, 2).update(0, k[:1], k[:1]), "cache", "room for 2 tokens, and 3"),
        (lambda: llama.KVCache(MODEL, 1, 4).update(0, k, k), "cache", "holds 1 texts, and 2 came"),
    ],
    "PagedKVCache": [
        (lambda: llama.PagedKVCache(MODEL, 1, 0), "num_blocks", "positive integer"),
        (lambda: llama.PagedKVCache(MODEL, 2, 1, 2).update(0, k, k), "cache", "4 more were needed"),
        (lambda: llama.PagedKVCache(MODEL, 1, 4).update(0, k, k), "cache", "holds 1 texts, and 2 came"),
    ],
    "Llama": [
        (lambda: llama.Llama({}), "config", "must be a LlamaConfig"),
        (lambda: llama.Llama(MODEL)(torch.tensor([[9]])), "input_ids", "holds 9, and the vocabulary has"),
        (lambda: llama.Llama(MODEL)(torch.tensor([[-1]])), "input_ids", "holds -1"),
        (lambda: llama.Llama(MODEL)(ints), "input_ids", "must be [B, S]"),
        (lambda: llama.Llama(MODEL)(x[0]), "input_ids", "must be a tensor of integers"),
        (lambda: llama.Llama(MODEL)(ints[None], attention_mask=torch.ones(1, 2)), "attention_mask", "[1, 3]"),
    ],
    "generate": [
        (lambda: llama.Llama(MODEL).generate(ints[None], 0), "max_new_tokens", "positive integer"),
        (lambda: llama.Llama(MODEL).generate(ints[None], 1, temperature=-1), "temperature", "above it"),
        (lambda: llama.Llama(MODEL).generate(ints[None], 1, attention_mask=torch.tensor([[1, 1, 0]])),
         "attention_mask", "pad on the left"),
    ],
    "next_token_probabilities": [
        (lambda: llama.next_token_probabilities(ints), "logits", "floating-point"),
        (lambda: llama.next_token_probabilities(x, top_k=0), "top_k", "positive integer"),
        (lambda: llama.next_token_probabilities(x, top_p=0), "top_p", "at most 1"),
    ],
    "convert_meta": [
        (lambda: llama.convert_meta({"layers.0.attention.wz.weight": x}, MODEL), "wz", "no name of Meta's"),
    ],
    "Prediction": [
        (lambda: Prediction("?", ["yes"]), "options", "two"),
        (lambda: Prediction("?", "yes"), "options", "two"),
        (lambda: Prediction("?", ["yes", "no"]).reveal("perhaps"), "answer", "one of the options"),
    ],
}  # fmt: skip
for name in ("sigmoid", "tanh", "relu", "leaky_relu", "gelu", "swish", "silu", "silu_grad"):
    function = getattr(llama, name)
    CASES[name] = [
        (lambda f=function: f(ints), "x", "floating-point"),
        (lambda f=function: f(1.0), "x", "must be a tensor, not float"),
    ]


def test_every_public_name_is_covered():
    assert set(llama.__all__) - {"PRESETS"} <= CASES.keys()


@pytest.mark.parametrize(("call", "argument", "words"), [case for cases in CASES.values() for case in cases])
def test_bad_input_gets_one_sentence_that_names_the_argument(call, argument, words):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    sentence = str(error.value)
    assert re.search(rf"\b{argument}\b", sentence) and words in sentence
    assert "\n" not in sentence and len(sentence) < 200
