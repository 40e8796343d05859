"""Right answers of lesson 11 in many forms, and pairs of mistakes."""

import functools

import torch
import torch.nn.functional as F

from lecture_utils import llama


def _called(model, input_ids):
    return llama.Llama.forward(model, input_ids)


def _by_index(model, input_ids):
    h = model.model["embed_tokens"](input_ids)
    turns = model.rotary(torch.arange(h.size(1)), h.dtype)
    for i in range(model.config.num_hidden_layers):
        h = model.model["layers"][i](h, *turns)
    return model.lm_head(model.model["norm"](h))


def _positions_for_each_text(model, input_ids):
    h = F.embedding(input_ids, model.model.embed_tokens.weight)
    positions = torch.arange(input_ids.shape[1]).expand(input_ids.shape)
    cos, sin = model.rotary(positions, h.dtype)
    h = functools.reduce(lambda h, layer: layer(h, cos, sin), model.model.layers, h)
    return F.linear(model.model.norm(h), model.lm_head.weight)


def _one_hot(model, input_ids):
    table = model.model.embed_tokens.weight
    h = F.one_hot(input_ids, len(table)).to(table.dtype) @ table
    cos, sin = model.rotary(torch.arange(input_ids.shape[1], device=h.device), dtype=h.dtype)
    for layer in model.model.layers:
        h = layer(h, cos, sin)
    return model.model.norm(h) @ model.lm_head.weight.mT


def _text_by_text(model, input_ids):
    return torch.cat([_by_index(model, text[None]) for text in input_ids])


def _with_a_mask(model, input_ids):
    h = model.model.embed_tokens(input_ids)
    S = h.shape[1]
    cos, sin = model.rotary(torch.arange(S), h.dtype)
    mask = torch.triu(torch.full((S, S), torch.finfo(h.dtype).min, dtype=h.dtype), 1)
    for layer in model.model.layers:
        h = layer(h, cos, sin, mask)
    return model.lm_head(model.model.norm(h))


def _layers_opened(model, input_ids):
    h = model.model.embed_tokens(input_ids)
    cos, sin = model.rotary(torch.arange(input_ids.shape[1]), h.dtype)
    for layer in model.model.layers:
        h = h + layer.self_attn(layer.input_layernorm(h), cos, sin)
        h = h + layer.mlp(layer.post_attention_layernorm(h))
    return model.lm_head(model.model.norm(h))


def _rotary_in_the_loop(model, input_ids):
    h = model.model.embed_tokens(input_ids)
    for layer in model.model.layers:
        h = layer(h, *model.rotary(torch.arange(h.shape[1]), model.lm_head.weight.dtype))
    return model.lm_head(model.model.norm(h))


def _package(logits, temperature, top_k, top_p):
    return llama.next_token_probabilities(logits, temperature, top_k, top_p)


def _everything_on_scores(logits, temperature, top_k, top_p):
    """As Hugging Face's warpers do it: −inf after each step, one softmax at the end."""
    logits = logits.float()
    if temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    logits = logits / temperature
    if top_k is not None:
        logits = logits.masked_fill(logits < torch.topk(logits, top_k)[0][..., -1, None], float("-inf"))
    if top_p is not None:
        ranked, ids = torch.sort(logits, descending=False)
        remove = ranked.softmax(-1).cumsum(-1) <= 1 - top_p
        remove[..., -1:] = False
        logits = logits.masked_fill(remove.scatter(-1, ids, remove), float("-inf"))
    return logits.softmax(-1)


def _shifted_mask(logits, temperature, top_k, top_p):
    """The mask of cumsum > top_p, moved by one place so that the crossing id stays."""
    logits = logits.to(torch.float32)
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(torch.float32)
    p = F.softmax(logits / temperature, dim=-1)
    if top_k is not None:
        values, ids = p.topk(top_k)
        p = torch.zeros_like(p).scatter(-1, ids, values)
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None:
        values, ids = torch.sort(p, -1, True)
        remove = values.cumsum(-1) > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        values[remove] = 0.0
        p = torch.zeros_like(p).scatter(-1, ids, values / values.sum(-1, keepdim=True))
    return p


def _sorted_and_back(logits, temperature, top_k, top_p):
    logits = logits.float()
    if temperature == 0:
        return (logits == logits.amax(-1, keepdim=True)).float()
    ranked, ids = logits.sort(-1, descending=True)
    p = (ranked / temperature).softmax(-1)
    if top_k is not None:
        p = p * (torch.arange(p.shape[-1]) < top_k)
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None:
        p = p * (p.cumsum(-1) - p < top_p)
    p = p / p.sum(-1, keepdim=True)
    return p.gather(-1, ids.argsort(-1))


def _row_by_row(logits, temperature, top_k, top_p):
    if logits.dim() > 1:
        return torch.stack([_row_by_row(row, temperature, top_k, top_p) for row in logits])
    order = sorted(range(len(logits)), key=lambda i: -logits[i].item())
    result = torch.zeros(len(logits))
    if temperature == 0:
        result[order[0]] = 1
        return result
    order = order[:top_k]
    largest = logits[order[0]].float()
    weights = {i: ((logits[i].float() - largest) / temperature).exp().item() for i in order}
    total, reached = sum(weights.values()), 0.0
    for i in order:
        if top_p is not None and reached >= top_p:
            break
        result[i] = weights[i]
        reached += weights[i] / total
    return result / result.sum()


def _small_temperature(logits, temperature, top_k, top_p):
    return _package(logits.double(), max(temperature, 1e-6), top_k, top_p)


def _double_inside(logits, temperature, top_k, top_p):
    return _everything_on_scores(logits.double(), temperature, top_k, top_p).float()


def _min_p_of_scores(logits, min_p):
    least = logits.amax(-1, keepdim=True) + torch.tensor(min_p).log()
    return logits.masked_fill(logits < least, -torch.inf).softmax(-1)


def _min_p_ratio(logits, min_p):
    ratio = (logits - logits.max(-1, keepdim=True).values).exp()
    ratio = torch.where(ratio >= min_p, ratio, 0.0)
    return ratio / ratio.sum(-1, keepdim=True)


def _min_p_sorted(logits, min_p):
    p, ids = logits.softmax(-1).sort(-1, descending=True)
    p = F.normalize(p * (p >= min_p * p[..., :1]), p=1, dim=-1)
    return p.gather(-1, ids.argsort(-1))


def _min_p_rows(logits, min_p):
    flat = logits.reshape(-1, logits.shape[-1])
    rows = []
    for row in flat:
        p = row.softmax(0)
        p[p < min_p * p.max()] = 0
        rows.append(p / p.sum())
    return torch.stack(rows).view_as(logits)


def _top_p_shifted(probabilities, top_p):
    ranked, ids = probabilities.sort(-1, descending=True)
    dropped = ranked.cumsum(-1) > top_p
    dropped = torch.cat((torch.zeros_like(dropped[..., :1]), dropped[..., :-1]), -1)
    kept = probabilities.masked_fill(dropped.scatter(-1, ids, dropped), 0)
    return kept / kept.sum(-1, keepdim=True)


def _top_p_before(probabilities, top_p):
    ranked, ids = probabilities.sort(-1, descending=True)
    before = F.pad(ranked.cumsum(-1)[..., :-1], (1, 0))
    kept = torch.zeros_like(probabilities).scatter(-1, ids, torch.where(before < top_p, ranked, 0.0))
    return kept / kept.sum(-1, keepdim=True)


def _top_p_counted(probabilities, top_p):
    """The number of ids kept is that of the sums below top_p, and one more."""
    ranked, ids = probabilities.sort(-1, descending=True)
    count = (ranked.cumsum(-1) < top_p).sum(-1, keepdim=True) + 1
    rank = ids.argsort(-1)
    return F.normalize(probabilities * (rank < count), p=1, dim=-1)


def _top_p_ascending(probabilities, top_p):
    ranked, ids = probabilities.sort(-1)
    dropped = ranked.cumsum(-1) <= 1 - top_p
    kept = probabilities.masked_fill(dropped.scatter(-1, ids, dropped), 0)
    return kept / kept.sum(-1, keepdim=True)


FORMS = {
    "llama_logits": {
        "the package": _called,
        "by index": _by_index,
        "positions for each text": _positions_for_each_text,
        "one-hot": _one_hot,
        "text by text": _text_by_text,
        "with a causal mask": _with_a_mask,
        "layers opened": _layers_opened,
        "cos and sin in the loop": _rotary_in_the_loop,
    },
    "next_token_probabilities": {
        "the package": _package,
        "everything on scores": _everything_on_scores,
        "a mask moved by one": _shifted_mask,
        "sorted and back": _sorted_and_back,
        "row by row": _row_by_row,
        "a tiny temperature for 0": _small_temperature,
        "float64 inside": _double_inside,
    },
    "min_p_probabilities": {
        "on scores": _min_p_of_scores,
        "ratio to the likeliest": _min_p_ratio,
        "sorted": _min_p_sorted,
        "row by row": _min_p_rows,
    },
    "repair_top_p": {
        "a mask moved by one": _top_p_shifted,
        "the sum before": _top_p_before,
        "counted": _top_p_counted,
        "from the least likely": _top_p_ascending,
        "the package": lambda probabilities, top_p: llama.next_token_probabilities(
            probabilities.log(), top_p=top_p
        ),
    },
}


def _logits(
    start=0, scale=False, first_norm=False, loop_norm=False, last_norm=True, again=False,
    layers=slice(None), tied=False, exchanged=False, softmax=False,
):  # fmt: skip
    """The forward pass with some things wrong."""

    def llama_logits(model, input_ids):
        h = model.model.embed_tokens(input_ids)
        h = h * h.shape[-1] ** 0.5 if scale else h
        h = model.model.norm(h) if first_norm else h
        positions = torch.arange(h.shape[1]) if start == 0 else torch.zeros(h.shape[1], dtype=torch.long)
        cos, sin = model.rotary(positions, h.dtype)
        cos, sin = (sin, cos) if exchanged else (cos, sin)
        for layer in list(model.model.layers)[layers]:
            h = h + layer(h, cos, sin) if again else layer(h, cos, sin)
            h = model.model.norm(h) if loop_norm else h
        h = model.model.norm(h) if last_norm else h
        out = F.linear(h, model.model.embed_tokens.weight) if tied else model.lm_head(h)
        return out.softmax(-1) if softmax else out

    return llama_logits


_LOGITS = {
    "final-norm-forgotten": {"last_norm": False},
    "norm-before-the-layers": {"first_norm": True},
    "all-at-position-0": {"start": None},
    "turned-backwards": {"exchanged": True},
    "embedding-scaled": {"scale": True},
    "residual-twice": {"again": True},
    "first-layer-only": {"layers": slice(1)},
    "layers-reversed": {"layers": slice(None, None, -1)},
    "embedding-for-head": {"tied": True},
    "softmax-added": {"softmax": True},
}
_NEXT = {
    "temperature-multiplied": {"multiplied": True},
    "temperature-ignored": {"ignored": True},
    "zero-ignored": {"zero": True},
    "top-k-one-more": {"more": 1},
    "top-k-zero-scores": {"fill": 0.0},
    "crossing-dropped": {"crossing": True},
    "top-p-not-renormalized": {"shared": False},
    "mask-in-sorted-order": {"back": False},
    "least-likely-kept": {"descending": False},
}


def _next(
    multiplied=False, ignored=False, zero=False, more=0, fill=-torch.inf, crossing=False, shared=True,
    back=True, descending=True,
):  # fmt: skip
    """next_token_probabilities with some things wrong."""

    def next_token_probabilities(logits, temperature, top_k, top_p):
        logits = logits.float()
        if temperature == 0 and not zero:
            return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()
        if temperature and not ignored:
            logits = logits * temperature if multiplied else logits / temperature
        if top_k is not None:
            least = logits.topk(min(top_k + more, logits.shape[-1])).values[..., -1:]
            logits = logits.masked_fill(logits < least, fill)
        p = logits.softmax(-1)
        if top_p is not None:
            ranked, ids = p.sort(-1, descending=descending)
            sums = ranked.cumsum(-1)
            dropped = sums > top_p if crossing else sums - ranked >= top_p
            p = p.masked_fill(dropped.scatter(-1, ids, dropped) if back else dropped, 0)
            p = p / p.sum(-1, keepdim=True) if shared else p
        return p

    return next_token_probabilities


def _pairs(one, make, apart=()):
    return {(a, b): make(**one[a], **one[b]) for a in one for b in one if a < b and {a, b} not in apart}


PAIRS = {
    "llama_logits": _pairs(
        _LOGITS,
        _logits,
        (
            {"all-at-position-0", "turned-backwards"},
            {"first-layer-only", "layers-reversed"},
            {"embedding-scaled", "norm-before-the-layers"},  # the norm undoes the scale
        ),
    ),
    "next_token_probabilities": _pairs(_NEXT, _next, ({"temperature-multiplied", "temperature-ignored"},)),
}
