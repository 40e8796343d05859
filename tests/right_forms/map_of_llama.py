"""Right answers to the exercises of lesson 0, in every form that people write, and pairs of mistakes."""

import torch
import torch.nn.functional as F

from lecture_utils.check.mistakes.map_of_llama import count
from lecture_utils.llama import LlamaConfig


def _one_hot(input_ids, weight):
    return F.one_hot(input_ids, weight.shape[0]).to(weight.dtype) @ weight


def _compared(input_ids, weight):
    chosen = input_ids[..., None] == torch.arange(len(weight), device=weight.device)
    return torch.einsum("bsv,vh->bsh", chosen.to(weight.dtype), weight)


def _index_select(input_ids, weight):
    return torch.index_select(weight, 0, input_ids.flatten()).view(*input_ids.shape, weight.shape[-1])


def _token_by_token(input_ids, weight):
    return torch.stack([torch.stack([weight[i] for i in text]) for text in input_ids.tolist()])


def _gathered(input_ids, weight):
    index = input_ids.reshape(-1, 1).expand(-1, weight.shape[1])
    return weight.gather(0, index).reshape(*input_ids.shape, -1)


def _by_config(vocab_size, hidden_size, intermediate_size, n_layers, n_heads, n_kv_heads, head_dim, tied):
    inner, shared = n_heads * head_dim, n_kv_heads * head_dim
    shapes = [(vocab_size, hidden_size)] * (1 if tied else 2) + [(hidden_size,)]
    for _ in range(n_layers):
        shapes += [(inner, hidden_size), (shared, hidden_size), (shared, hidden_size), (hidden_size, inner)]
        shapes += [(intermediate_size, hidden_size)] * 2 + [(hidden_size, intermediate_size)]
        shapes += [(hidden_size,), (hidden_size,)]
    total = 0
    for shape in shapes:
        size = 1
        for side in shape:
            size *= side
        total += size
    return total


def _package(vocab_size, hidden_size, intermediate_size, n_layers, n_heads, n_kv_heads, head_dim, tied):
    # The config wants an even head_dim, H a multiple of N, and a layer: all three are undone below.
    config = LlamaConfig(
        vocab_size=vocab_size, hidden_size=hidden_size * n_heads, intermediate_size=intermediate_size,
        num_hidden_layers=1, num_attention_heads=n_heads, num_key_value_heads=n_kv_heads,
        head_dim=2 * head_dim, tie_word_embeddings=tied,
    )  # fmt: skip
    counts = {name: value // n_heads for name, value in config.parameter_counts().items()}
    layer = counts["attention"] // 2 + counts["feed_forward"] + 2 * hidden_size
    return counts["embedding"] + counts["lm_head"] + n_layers * layer + hidden_size


def _one_line(V, H, D, L, N, K, d, tied):
    return H * ((2 - bool(tied)) * V + L * (2 * d * (N + K) + 3 * D + 2) + 1)


def _with_if(V, H, D, L, N, K, d, tied):
    total = V * H + H
    for _ in range(L):
        total += 2 * (H * N * d) + 2 * (H * K * d)
        total += D * H + D * H + H * D
        total += H + H
    if not tied:
        total += V * H
    return total


def _tensor(V, H, D, L, N, K, d, tied):
    per_layer = torch.tensor([2 * N * d * H, 2 * K * d * H, 3 * H * D, 2 * H], dtype=torch.int64).sum()
    return int(L * per_layer + H + V * H * (1 if tied else 2))


def _narrowed(input_ids):
    return [input_ids.narrow(1, 0, input_ids.shape[1] - 1), input_ids.narrow(1, 1, input_ids.shape[1] - 1)]


def _with_ellipsis(input_ids):
    return input_ids[..., :-1].contiguous(), input_ids[..., 1:].contiguous()


def _windows(input_ids):
    return input_ids.unfold(1, 2, 1).unbind(-1)


def _rolled_and_cut(input_ids):
    return input_ids[:, :-1], input_ids.roll(-1, dims=1)[:, :-1]


def _with_loops(input_ids):
    rows = [(text[:-1], text[1:]) for text in input_ids.tolist()]
    return torch.tensor([a for a, _ in rows]), torch.tensor([b for _, b in rows])


def _last_row(input_ids, logits):
    return torch.cat([input_ids, logits[:, -1].argmax(-1, keepdim=True)], dim=-1)


def _probabilities(input_ids, logits):
    return torch.hstack((input_ids, logits[:, -1].softmax(-1).argmax(-1)[:, None]))


def _maximum(input_ids, logits):
    return torch.cat((input_ids, logits[:, -1, :].max(dim=-1).indices.unsqueeze(1)), 1)


def _topk(input_ids, logits):
    return torch.cat((input_ids, logits.topk(1).indices[:, -1]), -1)


def _one_text_at_a_time(input_ids, logits):
    last = [scores[-1].argmax().item() for scores in logits]
    return torch.tensor([[*ids, new] for ids, new in zip(input_ids.tolist(), last, strict=True)])


FORMS = {
    "embed": {
        "functional": F.embedding,
        "as arguments": lambda input_ids, weight: F.embedding(input_ids, weight),
        "one-hot": _one_hot,
        "compared": _compared,
        "index_select": _index_select,
        "token by token": _token_by_token,
        "gathered": _gathered,
    },
    "parameter_count": {
        "shapes": _by_config,
        "the package": _package,
        "one line": _one_line,
        "with an if": _with_if,
        "tensor": _tensor,
    },
    "shifted_targets": {
        "narrowed": _narrowed,
        "ellipsis": _with_ellipsis,
        "windows": _windows,
        "rolled and cut": _rolled_and_cut,
        "loops": _with_loops,
    },
    "repair_append_next": {
        "last row": _last_row,
        "probabilities": _probabilities,
        "maximum": _maximum,
        "topk": _topk,
        "one text at a time": _one_text_at_a_time,
    },
}


def _count_pair(tied=True, kv=True, own_dim=True, layers=True, **options):
    def parameter_count(V, H, D, L, N, K, d, is_tied):
        d = d if own_dim else H // N
        return count(V, H, D, L if layers else 1, N, K if kv else N, d, is_tied if tied else False, **options)

    return parameter_count


_COUNT = {
    "tied-ignored": {"tied": False},
    "kv-heads-ignored": {"kv": False},
    "head-dim-ignored": {"own_dim": False},
    "one-layer-only": {"layers": False},
    "o-proj-forgotten": {"o": 0},
    "two-ffn-matrices": {"matrices": 2},
    "last-norm-forgotten": {"last": 0},
}

PAIRS = {
    "parameter_count": {
        (a, b): _count_pair(**_COUNT[a], **_COUNT[b]) for a in _COUNT for b in _COUNT if a < b
    },
}
