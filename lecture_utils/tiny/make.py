"""`python -m lecture_utils.tiny.make`: train the tiny Llama of this folder anew, in a few minutes on a CPU.

Its text is the prose of `pydoc_data.topics`, which comes with Python: the language reference, as `help()`
shows it (copyright Python Software Foundation). The weights that are shipped were made with Python 3.11 on
one core; another version has another text, and makes another model.
"""

import json
import math
import re
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from lecture_utils.llama import Llama, LlamaConfig

FOLDER = Path(__file__).parent
STEPS, WARM_UP, BATCH, LENGTH, PEAK = 2400, 100, 8, 256, 4e-3


def prose() -> str:
    """The paragraphs of the language reference that are sentences, one on a line."""
    from pydoc_data.topics import topics

    paragraphs = []
    for name in sorted(topics):
        for block in re.split(r"\n\s*\n", topics[name]):
            text = re.sub(r"[*\"`“”]", "", " ".join(block.split())).replace("’", "'")
            if re.fullmatch(r"[A-Z][A-Za-z0-9 .,:;()'_-]{40,}[.:]", text) and "  " not in text:
                paragraphs.append(text)
    return "\n".join(dict.fromkeys(paragraphs)) + "\n"


def train(text: str, characters: str) -> Llama:
    """A model that has read the text often enough to spell."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(characters),
        hidden_size=64,
        intermediate_size=176,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
    )
    model = Llama(config)
    ids = torch.tensor([characters.index(character) for character in text])
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        loss = next_token_loss(model, batch(ids))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step:5}  loss {loss.item():.3f}", flush=True)
    return model


def learning_rate(step: int) -> float:
    """A linear warm-up, then half a cosine down to almost 0."""
    done = (step - WARM_UP) / (STEPS - WARM_UP)
    return PEAK * min((step + 1) / WARM_UP, 0.5 * (1 + math.cos(math.pi * max(done, 0))) + 0.01)


def batch(ids: Tensor) -> Tensor:
    """[B, S + 1] ids: pieces of the text from places chosen by chance."""
    starts = torch.randint(len(ids) - LENGTH - 1, (BATCH,))
    return torch.stack([ids[start : start + LENGTH + 1] for start in starts])


def next_token_loss(model: Llama, ids: Tensor) -> Tensor:
    """The mean of −log of the probability that the model gave to the character that came."""
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def main() -> None:
    """Train and write config.json, model.safetensors (16 bits) and characters.json."""
    text = prose()
    characters = "".join(sorted(set(text)))  # a new line is the first
    print(f"{len(text):,} characters, {len(characters)} different ones")
    model = train(text, characters)
    model.bfloat16().save_pretrained(FOLDER)
    file = FOLDER / "characters.json"
    file.write_text(json.dumps(characters, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
