"""Proof: a part of ours held against Hugging Face's, values and gradients, on every device there is.

`assert_matches` compares; `reference` (imported by name, since it imports transformers) holds the
classes of Hugging Face; `formula` the same parts in float64, to say which of two is off.
`python -m lecture_utils.parity` prints the table of every part.
"""

from .compare import assert_matches
from .table import ParityTable

__all__ = ["ParityTable", "assert_matches"]
