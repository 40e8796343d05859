"""Keys and values that were computed once need not be computed again: the cache of a model that writes."""

import torch
from torch import Tensor

from . import expect
from .config import LlamaConfig


class KVCache:
    """Keys (already turned by RoPE) and values of every layer, in memory that is taken at once.

    Args:
        config: of the model that fills it.
        batch_size: B, texts side by side.
        max_length: tokens for which there is room.
        dtype, device: of keys and values.

    2 · L · B · K · max_length · d numbers. `length` is how many tokens are in it.
    """

    def __init__(
        self,
        config: LlamaConfig,
        batch_size: int,
        max_length: int,
        dtype: torch.dtype = torch.float32,
        device=None,
    ) -> None:
        expect.instance("config", config, LlamaConfig)
        expect.positive_int("batch_size", batch_size)
        expect.positive_int("max_length", max_length)
        layers, heads = config.num_hidden_layers, config.num_key_value_heads
        shape = layers, batch_size, heads, max_length, config.head_dim
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self.length, self.max_length = 0, max_length

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys and values of new tokens, [B, K, S, d]; returns all so far, [B, K, T, d].

        Raises:
            ValueError: there is no room for them, or another batch size.
        """
        end = self.length + k.shape[-2]
        if end > self.max_length:
            raise ValueError(f"the cache has room for {self.max_length} tokens, and {end} were to be in it")
        if len(k) != self.keys.shape[1]:
            raise ValueError(f"the cache holds {self.keys.shape[1]} texts, and {len(k)} came")
        for kept, new in ((self.keys, k), (self.values, v)):
            kept[layer, :, :, self.length : end] = new
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def advance(self, count: int) -> None:
        """The new tokens are in all layers: from now on they are old."""
        self.length += count

    def clear(self) -> None:
        """Forget all tokens; the memory stays."""
        self.length = 0
