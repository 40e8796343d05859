"""The exercises, one module a lesson: the solution, the inputs that it is tried on, hints, properties."""

from importlib import import_module

TITLES = {
    "map_of_llama": "0 · Map of Llama",
    "normalization_intuition": "1 · Normalization intuition",
    "rmsnorm_by_hand": "2 · RMSNorm by hand",
    "ffn_up_projection": "3 · FFN: the up-projection",
    "gating_and_down_projection": "4 · Gating and down-projection",
    "silu_curves": "5 · SiLU curves",
    "rope_2d_to_nd": "6 · RoPE, from 2-D to n-D",
    "attention_and_gqa": "7 · Attention and grouped-query attention",
    "kv_cache": "8 · KV cache",
    "decoder_block": "9 · Decoder block",
    "whole_llama": "11 · The whole Llama",
}

for _lesson in TITLES:  # in the order of the course: each enters its exercises
    import_module(f".{_lesson}", __name__)
