"""What a Llama costs, from its config alone: arithmetic for each token, bytes of its cache.

(Its parameters: `LlamaConfig.parameter_counts`.)
"""

from . import expect
from .config import LlamaConfig


def flops_per_token(config: LlamaConfig, context: int) -> dict[str, int]:
    """Floating-point operations of one token on its way from id to logits, by part.

    A multiplication and an addition for each weight of a matrix: 2 · weights. Attention also looks at every
    token so far: N · d multiplications and additions for its score, and as many for its value. The
    embedding is a lookup and costs none; norms, RoPE and softmax are left out (under 1% of the rest).

    Args:
        config: of the model.
        context: tokens that are looked at, this one among them.

    Returns:
        attention (its matrices), scores (looking at the context), feed_forward, lm_head.

    Source: Kaplan et al., "Scaling Laws for Neural Language Models", 2020, table 1.
    """
    expect.instance("config", config, LlamaConfig)
    expect.positive_int("context", context)
    layers, heads, d = config.num_hidden_layers, config.num_attention_heads, config.head_dim
    matrices = config.hidden_size * (2 * heads + 2 * config.num_key_value_heads) * d  # q, o; k, v
    return {
        "attention": 2 * layers * matrices,
        "scores": 2 * layers * 2 * heads * d * context,
        "feed_forward": 2 * layers * 3 * config.hidden_size * config.intermediate_size,
        "lm_head": 2 * config.vocab_size * config.hidden_size,
    }


def kv_cache_bytes(
    n_layers: int, n_kv_heads: int, head_dim: int, batch: int, seq_len: int, bytes_per_value: int
) -> int:
    """Bytes of the keys and values of all layers: 2 · L · B · K · S · d · bytes per number.

    Args:
        n_layers: L. n_kv_heads: K (not the query heads). head_dim: d.
        batch: B, texts side by side. seq_len: S, tokens of each.
        bytes_per_value: 4 in fp32, 2 in bf16 and fp16.
    """
    expect.positive_ints(
        n_layers=n_layers,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        batch=batch,
        seq_len=seq_len,
        bytes_per_value=bytes_per_value,
    )
    return 2 * n_layers * batch * n_kv_heads * seq_len * head_dim * bytes_per_value
