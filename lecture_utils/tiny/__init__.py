"""A tiny Llama that writes without a network: 190 thousand weights, one token a character.

`make.py` trained it on the prose of Python's own language reference. It has learned spelling, a good
part of the words and the look of a sentence, and no meaning: enough to see what temperature, top k and
top p do to a text.
"""

import functools
import json
from pathlib import Path

import torch
from torch import Tensor

from lecture_utils.llama import Llama

FOLDER = Path(__file__).parent
"""A checkpoint as any other: `Llama.from_pretrained(FOLDER)` reads it."""

CHARACTERS: str = json.loads((FOLDER / "characters.json").read_text(encoding="utf-8"))
"""The vocabulary: the id of a character is its place in this string. Id 0, a new line, ends a paragraph."""


@functools.cache
def model() -> Llama:
    """The model in fp32, read once: to look at, not to train."""
    with torch.inference_mode(False):  # whoever asks first: another may want gradients
        return Llama.from_pretrained(FOLDER, dtype=torch.float32)


def encode(text: str) -> Tensor:
    """Ids [1, S] of a text.

    Raises:
        ValueError: a character that is not in the vocabulary.
    """
    unknown = sorted(set(text) - set(CHARACTERS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not among the characters that the tiny model knows")
    return torch.tensor([[CHARACTERS.index(character) for character in text]])


def decode(ids: Tensor) -> str:
    """The text of ids [S]."""
    return "".join(CHARACTERS[i] for i in ids.tolist())
