"""The decoder layer: tokens exchange, then each thinks alone, and both only add to the stream."""

from torch import Tensor, nn

from . import expect
from .attention import Attention
from .config import LlamaConfig
from .feed_forward import SwiGLU
from .kv_cache import Cache
from .normalization import RMSNorm


class DecoderLayer(nn.Module):
    """One layer of a Llama: normalize, transform, add; twice.

        residual stream ──┬─────────────────────────────────┬─(+)─┬──────────────────────────────────┬─(+)──
                          └ input_layernorm ─ self_attn ────┘     └ post_attention_layernorm ─ mlp ──┘

    (`post_attention_layernorm` stands after attention, and *before* the feed-forward network.)

    Args:
        config: of the model.
        layer: number of the layer, its place in a cache.
        attn_implementation: "sdpa" or "eager".

    Source: Touvron et al., "LLaMA", 2023, section 2.2. Same job as `LlamaDecoderLayer`.
    """

    def __init__(self, config: LlamaConfig, layer: int = 0, attn_implementation: str = "sdpa") -> None:
        super().__init__()
        expect.instance("config", config, LlamaConfig)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, layer, attn_implementation)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = SwiGLU(config.hidden_size, config.intermediate_size, config.mlp_bias)

    def forward(
        self,
        hidden_states: Tensor,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """`hidden_states` [B, S, H] in, the same shape out; the rest as in `Attention`."""
        attended = self.self_attn(self.input_layernorm(hidden_states), cos, sin, mask, cache)
        hidden_states = hidden_states + attended
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))
