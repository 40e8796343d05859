"""The whole Llama: ids in, logits out."""

from pathlib import Path

import torch
from torch import Tensor, nn

from . import checkpoint, expect
from .attention import padding_mask
from .config import LlamaConfig
from .decoder import DecoderLayer
from .generate import generate
from .kv_cache import Cache
from .normalization import RMSNorm
from .rope import RotaryEmbedding


def initialize(module: nn.Module) -> None:
    """Small random weights, no bias: how a Llama starts before it is trained (standard deviation 0.02)."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


class Llama(nn.Module):
    """Embedding, L decoder layers, a last norm, and a head that scores every token id as the next one.

    Its parameters have Hugging Face's names, so that a checkpoint needs no renaming.

    Args:
        config: sizes of the model.
        attn_implementation: "sdpa", PyTorch's fused attention, or "eager".

    Source: Touvron et al., "LLaMA", 2023. Same job as `LlamaForCausalLM`.
    """

    def __init__(self, config: LlamaConfig, attn_implementation: str = "sdpa") -> None:
        super().__init__()
        expect.instance("config", config, LlamaConfig)
        self.config = config
        V, H, L = config.vocab_size, config.hidden_size, config.num_hidden_layers
        embed_tokens = nn.Embedding(V, H)
        layers = nn.ModuleList(DecoderLayer(config, i, attn_implementation) for i in range(L))
        norm = RMSNorm(H, config.rms_norm_eps)
        self.model = nn.ModuleDict({"embed_tokens": embed_tokens, "layers": layers, "norm": norm})
        self.rotary = RotaryEmbedding(config)
        self.lm_head = nn.Linear(H, V, bias=False)
        self.apply(initialize)
        if config.tie_word_embeddings:  # one tensor with two names, not a copy
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
        logits_to_keep: int = 0,
    ) -> Tensor:
        """Scores of every token id as the next one, after each token.

        Args:
            input_ids: [B, S].
            positions: [S] or [B, S]; by default they go on from the tokens in the cache.
            attention_mask: [B, T], 0 for padding, for the tokens in the cache and these.
            cache: keys and values of the tokens before these; these are added to it.
            logits_to_keep: only for so many of the last tokens; 0 for all.

        Returns:
            logits: [B, S, V], or [B, logits_to_keep, V].

        Raises:
            TypeError: the ids are no integers.
            ValueError: an id is not in the vocabulary, a mask of another length, no room in the cache.
        """
        expect.token_ids("input_ids", input_ids, self.config.vocab_size)
        expect.padding("attention_mask", attention_mask, input_ids, cache)
        past, S = cache.length if cache is not None else 0, input_ids.shape[1]
        if positions is None:
            positions = torch.arange(past, past + S, device=input_ids.device)
        hidden_states = self.model.embed_tokens(input_ids)
        cos, sin = self.rotary(positions, hidden_states.dtype)
        mask = None if attention_mask is None else padding_mask(attention_mask, S)
        for layer in self.model.layers:
            hidden_states = layer(hidden_states, cos, sin, mask, cache)
        if cache is not None:
            cache.advance(S)
        return self.lm_head(self.model.norm(hidden_states[:, -logits_to_keep:]))

    def generate(self, input_ids: Tensor, max_new_tokens: int, **options) -> Tensor:
        """Continue texts; see `generate.generate`, which takes the same options."""
        return generate(self, input_ids, max_new_tokens, **options)

    @classmethod
    def from_pretrained(
        cls, folder_or_hub_id: str | Path, dtype: torch.dtype | None = None, device="cpu", **options
    ) -> "Llama":
        """A model from a folder (config.json, one or more .safetensors), or from a hub id.

        Args:
            folder_or_hub_id: where it is.
            dtype: of the parameters; by default that of the file.
            device: where to put them.
            options: for the constructor.

        Raises:
            FileNotFoundError: there is no such folder or file, and the hub does not answer.
            ValueError: another model family, keys missing or left over (named), a file cut short.
        """
        config = LlamaConfig.from_pretrained(folder_or_hub_id)
        state = checkpoint.load(folder_or_hub_id, config)
        with torch.device("meta"):  # no memory for weights that are replaced at once
            model = cls(config, **options)
        checkpoint.expect_fitting(state, model)
        model.load_state_dict(state, strict=True, assign=True)
        if config.tie_word_embeddings:
            model.lm_head.weight = model.model.embed_tokens.weight
        return model.to(device=device, dtype=dtype).eval()

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors, which Hugging Face's `from_pretrained` reads."""
        checkpoint.save(self, folder)
