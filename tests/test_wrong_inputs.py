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
