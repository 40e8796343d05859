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
        expect.positive_ints(batch_size=batch_size, max_length=max_length)
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


class PagedKVCache:
    """The same in blocks: a text takes one when it has filled the last, so short texts take little.

    Memory is a pool of blocks of `block_size` tokens. A table says, for each token of each text, which slot
    of the pool it has: as an operating system does it with pages of memory. All layers share the table.

    Args:
        config: of the model that fills it.
        batch_size: B, texts side by side.
        num_blocks: blocks in the pool, for all texts together.
        block_size: tokens in a block.
        attention_mask: [B, S] of the first tokens, 0 for padding on the left, which takes no block.
        dtype, device: of keys and values.

    Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
    2023, section 4.
    """

    def __init__(
        self,
        config: LlamaConfig,
        batch_size: int,
        num_blocks: int,
        block_size: int = 16,
        attention_mask: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        device=None,
    ) -> None:
        expect.instance("config", config, LlamaConfig)
        expect.positive_ints(batch_size=batch_size, num_blocks=num_blocks, block_size=block_size)
        self.block_size = block_size
        self.padding = [0] * batch_size
        if attention_mask is not None:
            self.padding = (attention_mask == 0).sum(-1).tolist()
        # Block 0 is for padding: it is written and, behind the mask, never looked at.
        layers, heads, slots = (
            config.num_hidden_layers,
            config.num_key_value_heads,
            (num_blocks + 1) * block_size,
        )
        self.keys = torch.zeros(layers, heads, slots, config.head_dim, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.free = list(range(num_blocks, 0, -1))
        self.blocks: list[list[int]] = [[] for _ in range(batch_size)]
        self.slots = torch.zeros(batch_size, 0, dtype=torch.long, device=device)
        self.length = 0

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys and values of new tokens, [B, K, S, d]; returns all so far, [B, K, T, d].

        Raises:
            ValueError: the pool has no block left, or another batch size.
        """
        if len(k) != len(self.blocks):
            raise ValueError(f"the cache holds {len(self.blocks)} texts, and {len(k)} came")
        end = self.length + k.shape[-2]
        if self.slots.shape[1] < end:  # the first layer of this step
            self._take(end)
        new = self.slots[:, self.length : end]
        for kept, each in ((self.keys, k), (self.values, v)):
            kept[layer, :, new] = each.transpose(0, 1)  # [K, B, S, d]
        return tuple(kept[layer, :, self.slots].transpose(0, 1) for kept in (self.keys, self.values))

    def _take(self, end: int) -> None:
        """Slots for the tokens up to `end`, and blocks where they are needed."""
        needed = [-(-max(end - padding, 0) // self.block_size) for padding in self.padding]
        missing = sum(needed) - sum(map(len, self.blocks))
        if missing > len(self.free):
            raise ValueError(f"the cache has {len(self.free)} free blocks, and {missing} more were needed")
        rows = []
        for blocks, count, padding in zip(self.blocks, needed, self.padding, strict=True):
            blocks += [self.free.pop() for _ in range(count - len(blocks))]
            rows.append([self._slot(blocks, i - padding) for i in range(self.slots.shape[1], end)])
        self.slots = torch.cat((self.slots, torch.tensor(rows, device=self.slots.device)), dim=1)

    def _slot(self, blocks: list[int], i: int) -> int:
        """Where the token `i` of a text is; padding, before its first token, is in block 0."""
        return 0 if i < 0 else blocks[i // self.block_size] * self.block_size + i % self.block_size

    def advance(self, count: int) -> None:
        """The new tokens are in all layers: from now on they are old."""
        self.length += count

    def clear(self) -> None:
        """Forget all tokens: every block is free again."""
        for blocks in self.blocks:
            self.free += blocks
            blocks.clear()
        self.slots, self.length = self.slots[:, :0], 0


Cache = KVCache | PagedKVCache
