"""Exercise checkers: right, or not yet and the mistake by name.

from lecture_utils import check

check.rms_norm(rms_norm)      # a verdict: .passed, .attempted, .mistake, .message
check.rms_norm.hint()         # the next hint: a question, a pointer, nearly the answer
check.rms_norm.solution()     # one right answer
check.progress()              # where you stand in all lessons
"""

from . import lessons as _lessons  # noqa: F401 -- fills EXERCISES
from .exercise import EXERCISES
from .record import progress
from .verdict import Verdict

globals().update(EXERCISES)  # check.rms_norm, check.swiglu, …

__all__ = ["EXERCISES", "Verdict", "progress", *EXERCISES]


def __getattr__(name: str):
    import difflib

    close = difflib.get_close_matches(name, EXERCISES, n=1)
    hint = f" Do you mean check.{close[0]}?" if close else " check.progress() lists them."
    raise AttributeError(f"there is no exercise {name!r}.{hint}")
