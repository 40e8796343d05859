"""The tiny model that comes with the course: its characters, and that it has learned to spell."""

import pytest
import torch
import torch.nn.functional as F

from lecture_utils import tiny

SENTENCE = "The value of the expression is the value of the object that is returned by the function."


def test_a_text_becomes_ids_and_the_ids_the_text():
    assert tiny.decode(tiny.encode(SENTENCE)[0]) == SENTENCE
    assert len(set(tiny.CHARACTERS)) == len(tiny.CHARACTERS) == tiny.model().config.vocab_size
    assert tiny.CHARACTERS[0] == "\n"


def test_an_unknown_character_is_told():
    with pytest.raises(ValueError, match="'é' is not among the characters"):
        tiny.encode("café")


def test_it_has_learned_to_spell():
    ids = tiny.encode(SENTENCE)
    with torch.no_grad():
        loss = F.cross_entropy(tiny.model()(ids)[0, :-1], ids[0, 1:])
        backwards = F.cross_entropy(tiny.model()(ids.flip(1))[0, :-1], ids.flip(1)[0, 1:])
    # Guessing gives ln 73 = 4.3. What is spelled backwards is no text for it.
    assert loss < 1.0 and backwards > 3.0, (loss, backwards)
