"""Hugging Face's classes: the only module that imports transformers, and knows how its versions differ.

Read from here, the classes and functions have the names that they have there.
"""

import inspect

import torch
from torch import Tensor, nn
from transformers import LlamaConfig as HFLlamaConfig
from transformers import LlamaForCausalLM
from transformers import __version__ as version
from transformers.activations import ACT2FN
from transformers.integrations import sdpa_attention
from transformers.models.llama.modeling_llama import LlamaAttention as HFLlamaAttention
from transformers.models.llama.modeling_llama import LlamaDecoderLayer as HFLlamaDecoderLayer
from transformers.models.llama.modeling_llama import (
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
    repeat_kv,
    rotate_half,
)

from ..llama.config import LlamaConfig

__all__ = [
    "ACT2FN",
    "LlamaAttention",
    "LlamaDecoderLayer",
    "LlamaForCausalLM",
    "LlamaLogits",
    "LlamaMLP",
    "LlamaRMSNorm",
    "LlamaRope",
    "LlamaRotaryEmbedding",
    "apply_rotary_pos_emb",
    "inv_freq",
    "llama_config",
    "num_parameters",
    "repeat_kv",
    "rotate_half",
    "version",
]


# Older versions give sdpa the heads of keys and values repeated; newer ones, without a mask, share them.
SDPA_REPEATS_HEADS = not hasattr(sdpa_attention, "use_gqa_in_sdpa")


def llama_config(config: LlamaConfig, attn_implementation: str = "eager") -> HFLlamaConfig:
    """The same config as an object of Hugging Face, whatever its version."""
    values = {name: getattr(config, name) for name in config.__dataclass_fields__}
    theta, scaling = values.pop("rope_theta"), values.pop("rope_scaling")
    if "rope_parameters" in inspect.signature(HFLlamaConfig.__init__).parameters:  # from 5.0
        values["rope_parameters"] = {"rope_type": "default", "rope_theta": theta, **(scaling or {})}
    else:
        values |= {"rope_theta": theta, "rope_scaling": scaling}
    return HFLlamaConfig(**values, attn_implementation=attn_implementation)


def _mask(allowed: Tensor, x: Tensor, config: HFLlamaConfig) -> Tensor:
    """A mask as each implementation takes it: eager adds it, sdpa is told who may look."""
    if config._attn_implementation == "eager":
        return (1 - allowed).to(x.dtype) * torch.finfo(x.dtype).min
    return allowed.bool()


class LlamaAttention(HFLlamaAttention):
    """Hugging Face's attention: hidden_states [B, S, H], cos and sin, allowed [B, 1, S, T] as 0 and 1."""

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor, allowed: Tensor) -> Tensor:
        """The new hidden states, without the weights."""
        mask = _mask(allowed, hidden_states, self.config)
        return super().forward(hidden_states, position_embeddings=(cos, sin), attention_mask=mask)[0]


class LlamaDecoderLayer(HFLlamaDecoderLayer):
    """Hugging Face's decoder layer with the arguments of `LlamaAttention`."""

    def __init__(self, config: HFLlamaConfig, layer_idx: int = 0) -> None:
        super().__init__(config, layer_idx)
        self.config = config

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor, allowed: Tensor) -> Tensor:
        """The new hidden states."""
        mask = _mask(allowed, hidden_states, self.config)
        out = super().forward(hidden_states, attention_mask=mask, position_embeddings=(cos, sin))
        return out[0] if isinstance(out, tuple) else out  # a tuple until 4.54


class LlamaLogits(LlamaForCausalLM):
    """Hugging Face's whole model: ids and attention mask, both [B, S], in, logits out."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits [B, S, V]; where the mask is 0 they are set to 0, since nobody reads them."""
        logits = super().forward(input_ids, attention_mask=attention_mask, use_cache=False).logits
        return logits * attention_mask[..., None]


class LlamaRope(nn.Module):
    """Hugging Face's two steps as one: q [B, N, S, d], k [B, K, S, d], positions [B, S] → q, k."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.rotary_emb = LlamaRotaryEmbedding(llama_config(config))

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, turned by their positions."""
        cos, sin = self.rotary_emb(q, positions)
        return apply_rotary_pos_emb(q, k, cos, sin)


def inv_freq(config: LlamaConfig, seq_len: int) -> Tensor:
    """The frequencies that Hugging Face uses for a text of `seq_len` tokens, [d/2]."""
    rotary = LlamaRotaryEmbedding(llama_config(config))
    rotary(torch.zeros(1), torch.arange(seq_len)[None])  # the dynamic rule acts in the forward pass
    return rotary.inv_freq


def num_parameters(config: LlamaConfig) -> int:
    """Number of parameters of the whole model, built on the meta device: no memory, no weights."""
    with torch.device("meta"):
        return LlamaForCausalLM(llama_config(config)).num_parameters()
