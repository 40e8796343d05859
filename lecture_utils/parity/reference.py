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
from transformers.models.llama.modeling_llama import (
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
    rotate_half,
)

from ..llama.config import LlamaConfig

__all__ = [
    "ACT2FN",
    "LlamaForCausalLM",
    "LlamaMLP",
    "LlamaRMSNorm",
    "LlamaRope",
    "LlamaRotaryEmbedding",
    "apply_rotary_pos_emb",
    "inv_freq",
    "llama_config",
    "num_parameters",
    "rotate_half",
    "version",
]


def llama_config(config: LlamaConfig) -> HFLlamaConfig:
    """The same config as an object of Hugging Face, whatever its version."""
    values = {name: getattr(config, name) for name in config.__dataclass_fields__}
    theta, scaling = values.pop("rope_theta"), values.pop("rope_scaling")
    if "rope_parameters" in inspect.signature(HFLlamaConfig.__init__).parameters:  # from 5.0
        values["rope_parameters"] = {"rope_type": "default", "rope_theta": theta, **(scaling or {})}
    else:
        values |= {"rope_theta": theta, "rope_scaling": scaling}
    return HFLlamaConfig(**values)


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
