"""The parts of the model, one a file, in the order of the lessons. Imports nothing but torch (and
safetensors and huggingface_hub at the moment when a checkpoint is read or written).

Every function and constructor answers bad input with a TypeError or ValueError: one sentence that
names the argument.
"""

from .activations import gelu, leaky_relu, relu, sigmoid, silu, silu_grad, swish, tanh
from .attention import (
    Attention,
    attention,
    causal_attention,
    causal_mask,
    fused_attention,
    padding_mask,
    repeat_kv,
)
from .checkpoint import convert_meta
from .config import LlamaConfig
from .count import flops_per_token, kv_cache_bytes
from .decoder import DecoderLayer
from .feed_forward import FeedForward, SwiGLU, intermediate_size
from .generate import generate, next_token_probabilities
from .kv_cache import KVCache, PagedKVCache
from .model import Llama
from .normalization import LayerNorm, RMSNorm
from .presets import PRESETS
from .rope import (
    RotaryEmbedding,
    apply_rope,
    apply_rope_complex,
    apply_rope_interleaved,
    cos_sin,
    half_to_interleaved,
    interleaved_to_half,
    rotate_2d,
    rotate_half,
    rotation_matrix,
)
from .rope_scaling import (
    dynamic_scaling,
    inv_freq,
    linear_scaling,
    llama3_scaling,
    rope_frequencies,
)

__all__ = [
    "PRESETS",
    "Attention",
    "DecoderLayer",
    "FeedForward",
    "KVCache",
    "LayerNorm",
    "Llama",
    "LlamaConfig",
    "PagedKVCache",
    "RMSNorm",
    "RotaryEmbedding",
    "SwiGLU",
    "apply_rope",
    "apply_rope_complex",
    "apply_rope_interleaved",
    "attention",
    "causal_attention",
    "causal_mask",
    "convert_meta",
    "cos_sin",
    "dynamic_scaling",
    "flops_per_token",
    "fused_attention",
    "gelu",
    "generate",
    "half_to_interleaved",
    "interleaved_to_half",
    "intermediate_size",
    "inv_freq",
    "kv_cache_bytes",
    "leaky_relu",
    "linear_scaling",
    "llama3_scaling",
    "next_token_probabilities",
    "padding_mask",
    "relu",
    "repeat_kv",
    "rope_frequencies",
    "rotate_2d",
    "rotate_half",
    "rotation_matrix",
    "sigmoid",
    "silu",
    "silu_grad",
    "swish",
    "tanh",
]
