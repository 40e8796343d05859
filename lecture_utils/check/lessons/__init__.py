"""The exercises, one module a lesson: the solution, the inputs that it is tried on, hints, properties."""

from . import (  # noqa: F401 -- in the order of the lessons: each enters its exercises
    rmsnorm_by_hand,
)

TITLES = {
    "rmsnorm_by_hand": "2 · RMSNorm by hand",
}
