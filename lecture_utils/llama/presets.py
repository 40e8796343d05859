"""Configs of published models: the numbers of their `config.json`, without a download."""

from dataclasses import replace
from typing import Any

from .config import LlamaConfig


def _llama3_scaling(factor: float) -> dict[str, Any]:
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


_LLAMA_2 = LlamaConfig(max_position_embeddings=4096, rms_norm_eps=1e-5)
_LLAMA_3 = LlamaConfig(
    vocab_size=128256,
    intermediate_size=14336,
    num_key_value_heads=8,
    max_position_embeddings=8192,
    rms_norm_eps=1e-5,
    rope_theta=500000.0,
)
_70B = {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
_LLAMA_3_1 = {"max_position_embeddings": 131072, "rope_scaling": _llama3_scaling(8.0)}
_LLAMA_3_2 = {
    "max_position_embeddings": 131072,
    "rope_scaling": _llama3_scaling(32.0),
    "tie_word_embeddings": True,
}

PRESETS: dict[str, LlamaConfig] = {
    "SmolLM2-135M": LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_theta=100000.0,
        tie_word_embeddings=True,
    ),
    "TinyLlama-1.1B": LlamaConfig(
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=22,
        num_key_value_heads=4,
        rms_norm_eps=1e-5,
    ),
    "Llama-2-7B": _LLAMA_2,
    "Llama-2-13B": replace(
        _LLAMA_2,
        hidden_size=5120,
        intermediate_size=13824,
        num_hidden_layers=40,
        num_attention_heads=40,
        num_key_value_heads=40,
    ),
    "Llama-2-70B": replace(_LLAMA_2, **_70B),
    "Llama-3-8B": _LLAMA_3,
    "Llama-3-70B": replace(_LLAMA_3, **_70B),
    "Llama-3.1-8B": replace(_LLAMA_3, **_LLAMA_3_1),
    "Llama-3.1-70B": replace(_LLAMA_3, **_70B, **_LLAMA_3_1),
    "Llama-3.1-405B": replace(
        _LLAMA_3,
        hidden_size=16384,
        intermediate_size=53248,
        num_hidden_layers=126,
        num_attention_heads=128,
        **_LLAMA_3_1,
    ),
    "Llama-3.2-1B": replace(
        _LLAMA_3,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        head_dim=64,
        **_LLAMA_3_2,
    ),
    "Llama-3.2-3B": replace(
        _LLAMA_3,
        hidden_size=3072,
        intermediate_size=8192,
        num_hidden_layers=28,
        num_attention_heads=24,
        head_dim=128,
        **_LLAMA_3_2,
    ),
}
"""Configs of published models, by name."""
