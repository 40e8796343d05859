"""Attention: the part of a layer in which tokens exchange what they know.

Every token asks (query), and is found by what it offers (key); what it then hands over is its value.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import expect
from .config import LlamaConfig
from .kv_cache import Cache
from .rope import apply_rope


def causal_mask(q_len: int, kv_len: int, dtype: torch.dtype = torch.float32, device=None) -> Tensor:
    """Who may look at whom, when the queries are the *last* `q_len` of `kv_len` tokens.

    Args:
        q_len: queries; at most `kv_len`.
        kv_len: keys.
        dtype: a floating-point dtype, or torch.bool.
        device: where to make it.

    Returns:
        [q_len, kv_len], lower triangle aligned to the bottom right. Boolean: True where a query may
        look. Otherwise to be added to the scores: 0 there, elsewhere the lowest finite number (not −inf:
        a row of nothing but −inf would become NaN in the softmax).
    """
    expect.positive_int("q_len", q_len)
    expect.positive_int("kv_len", kv_len)
    expect.keys_for_all(q_len, kv_len)
    allowed = torch.ones(q_len, kv_len, dtype=torch.bool, device=device).tril(kv_len - q_len)
    return allowed if dtype == torch.bool else additive(allowed, dtype)


def additive(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask (True: may look) as one to add to the scores."""
    expect.floating_dtype("dtype", dtype)
    lowest = torch.finfo(dtype).min
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(~allowed, lowest)


def padding_mask(attention_mask: Tensor, q_len: int) -> Tensor | None:
    """Who may look at whom in texts of unequal length: nobody looks at padding.

    Args:
        attention_mask: [B, T], 0 for padding; the queries are the last `q_len` tokens.

    Returns:
        [B, 1, q_len, T], True where a query may look; None if nothing is padded.
    """
    expect.axes("attention_mask", attention_mask, "B", "T")
    expect.positive_int("q_len", q_len)
    real = attention_mask.bool()
    if real.all():
        return None
    return causal_mask(q_len, real.shape[1], torch.bool, real.device) & real[:, None, None, :]


def repeat_kv(x: Tensor, n_rep: int) -> Tensor:
    """[B, K, S, d] → [B, K · n_rep, S, d]: each key/value head, `n_rep` times in a row.

    Query heads 0 … n_rep − 1 share the first of them, so a copy stands beside its original.
    """
    expect.floating("x", x)
    expect.positive_int("n_rep", n_rep)
    return x if n_rep == 1 else x.repeat_interleave(n_rep, dim=1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Each query gathers the values of the keys that fit it.

    $$\mathrm{softmax}\!\left(\frac{q k^\top}{\sqrt d} + \mathrm{mask}\right) v$$

    Args:
        q: [B, N, S, d]. k, v: [B, K, T, d], where N is a multiple of K.
        mask: additive or boolean (True: may look), broadcast to [B, N, S, T]; None: all may look.

    Returns:
        [B, N, S, d]. The softmax is taken in fp32. A query that may look nowhere gets the mean of v.

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2; grouped heads: Ainslie et al.,
    "GQA", 2023.
    """
    expect.heads(q, k, v)
    k, v = (repeat_kv(x, q.shape[1] // k.shape[1]) for x in (k, v))
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + (additive(mask, q.dtype) if mask.dtype == torch.bool else mask)
    weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
    return weights @ v


def causal_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """`attention`, but causal without a mask: the queries are the last S of T tokens."""
    expect.heads(q, k, v)
    if mask is None:
        mask = causal_mask(q.shape[-2], k.shape[-2], q.dtype, q.device)
    return attention(q, k, v, mask)


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """`causal_attention` by PyTorch's fused kernel, which never writes the scores down.

    Args:
        q, k, v: as in `attention`; the queries are the last S of T tokens.
        mask: as in `attention`. None: every token sees itself and all before it.
    """
    expect.heads(q, k, v)
    S, T = q.shape[-2], k.shape[-2]
    expect.keys_for_all(S, T)
    # One query sees all keys, and a square mask is the kernel's own: neither needs a tensor.
    if mask is None and 1 < S < T:
        mask = causal_mask(S, T, torch.bool, q.device)
    if mask is not None:  # with one, the kernel would add up the heads' gradients in 16 bits
        k, v = (repeat_kv(x, q.shape[1] // x.shape[1]) for x in (k, v))
    causal, grouped = mask is None and S > 1, q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=grouped)


class Attention(nn.Module):
    """Llama's self-attention: N query heads, K key/value heads, positions by RoPE.

    K = N is multi-head attention, K = 1 multi-query, between them grouped-query: one class.

    Args:
        config: `hidden_size`, `num_attention_heads`, `num_key_value_heads`, `head_dim` and
            `attention_bias` are used.
        layer: number of the layer, its place in a cache.
        attn_implementation: "sdpa", PyTorch's fused kernel, or "eager", the formula as it is written.

    Same job as `LlamaAttention`.
    """

    def __init__(self, config: LlamaConfig, layer: int = 0, attn_implementation: str = "sdpa") -> None:
        super().__init__()
        expect.instance("config", config, LlamaConfig)
        expect.one_of("attn_implementation", attn_implementation, ("sdpa", "eager"))
        self.layer, self.head_dim = layer, config.head_dim
        self.attend = causal_attention if attn_implementation == "eager" else fused_attention
        H, d, bias = config.hidden_size, config.head_dim, config.attention_bias
        self.q_proj = nn.Linear(H, config.num_attention_heads * d, bias=bias)
        self.k_proj = nn.Linear(H, config.num_key_value_heads * d, bias=bias)
        self.v_proj = nn.Linear(H, config.num_key_value_heads * d, bias=bias)
        self.o_proj = nn.Linear(config.num_attention_heads * d, H, bias=bias)

    def forward(
        self,
        hidden_states: Tensor,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """`hidden_states` [B, S, H] in, the same shape out.

        Args:
            cos, sin: [S, d] or [B, S, d], from `RotaryEmbedding`.
            mask: as in `attention`. None: every token sees itself and all before it.
            cache: keys and values of the tokens before these; these are added to it.
        """
        expect.tokens("hidden_states", hidden_states, self.q_proj.in_features)
        B, S, _ = hidden_states.shape
        q, k, v = (
            projection(hidden_states).view(B, S, -1, self.head_dim).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )  # [B, heads, S, d]
        q, k = apply_rope(q, k, cos, sin)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        out = self.attend(q, k, v, mask)
        return self.o_proj(out.transpose(1, 2).flatten(-2))  # [B, S, N · d] → [B, S, H]
