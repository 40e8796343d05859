"""Writing: the model's scores become probabilities, one id is chosen, and the model goes on from it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from . import expect
from .kv_cache import KVCache


def next_token_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """How likely each id is to be the next one.

    Args:
        logits: [..., V].
        temperature: below 1 sharpens, above 1 flattens; 0 is the most likely id for certain.
        top_k: only the k most likely ids, and those as likely as the last of them.
        top_p: only the most likely ids that are needed to reach this probability together (after
            temperature and `top_k`); at least one.

    Returns:
        [..., V] in fp32, each row sums to 1.

    Source: Fan et al., "Hierarchical Neural Story Generation", 2018 (top k); Holtzman et al., "The
    Curious Case of Neural Text Degeneration", 2020 (top p).
    """
    expect.floating("logits", logits)
    expect.sampling(temperature, top_k, top_p)
    logits = logits.float()
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1)
    logits = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        least = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    probabilities = logits.softmax(-1)
    if top_p is not None and top_p < 1:
        ranked, ids = probabilities.sort(-1, descending=True)
        enough = ranked.cumsum(-1) - ranked >= top_p  # the more likely ones reach it without this one
        probabilities = probabilities.masked_fill(enough.scatter(-1, ids, enough), 0)
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities


@contextmanager
def _quick_products(rows: int, weight: Tensor) -> Iterator[None]:
    """PyTorch's own product for one row of bf16 on a CPU: oneDNN prepares it for longer than it computes."""
    before = torch.backends.mkldnn.enabled
    if rows == 1 and weight.dtype == torch.bfloat16 and weight.device.type == "cpu":
        torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


@torch.inference_mode()
def generate(
    model,
    input_ids: Tensor,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    attention_mask: Tensor | None = None,
    stop_ids: Collection[int] = (),
    pad_id: int = 0,
    stream: Callable[[Tensor], None] | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue texts, one token at a time, with a cache.

    Args:
        model: a `Llama`.
        input_ids: [B, S], shorter texts padded on the *left*.
        max_new_tokens: how many ids are added at most.
        temperature, top_k, top_p: as in `next_token_probabilities`; by default the most likely id.
        attention_mask: [B, S], 0 for padding.
        stop_ids: a text ends with the first of these; it is kept, and `pad_id` follows it.
        stream: is called with the new ids [B] after every step.
        generator: for the choice by chance; PyTorch's own by default.

    Returns:
        [B, S + new], with at most `max_new_tokens` new ids.

    Raises:
        ValueError: padding on the right, or numbers out of their range.
    """
    expect.positive_int("max_new_tokens", max_new_tokens)
    expect.sampling(temperature, top_k, top_p)
    expect.token_ids("input_ids", input_ids, model.config.vocab_size)
    B, S = input_ids.shape
    positions = None
    if attention_mask is not None:
        if attention_mask.shape != input_ids.shape or not attention_mask[:, -1].all():
            raise ValueError("attention_mask must be [B, S], as input_ids, and end with 1: pad on the left")
        positions = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)  # the first real token is at 0
    weight = model.lm_head.weight
    cache = KVCache(model.config, B, S + max_new_tokens, weight.dtype, weight.device)
    running = torch.ones(B, dtype=torch.bool, device=input_ids.device)
    stops = torch.tensor(sorted(stop_ids), dtype=input_ids.dtype, device=input_ids.device)
    new, pieces = input_ids, [input_ids]
    for _ in range(max_new_tokens):
        with _quick_products(new.numel(), weight):
            logits = model(new, positions, attention_mask, cache, logits_to_keep=1)[:, -1]
        if temperature == 0:
            chosen = logits.argmax(-1)
        else:
            probabilities = next_token_probabilities(logits, temperature, top_k, top_p)
            chosen = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
        if len(stops):
            chosen = torch.where(running, chosen, pad_id)
        new = chosen[:, None]
        pieces.append(new)
        if stream is not None:
            stream(chosen)
        if len(stops):
            running = running & ~torch.isin(chosen, stops)
            if not running.any():
                break
        if positions is not None:
            positions = positions[:, -1:] + 1
            attention_mask = torch.cat((attention_mask, attention_mask.new_ones(B, 1)), dim=1)
    return torch.cat(pieces, dim=1)
