"""The exercises, one module a lesson: the solution, the inputs that it is tried on, hints, properties."""

from importlib import import_module

TITLES = {
    "normalization_intuition": "1 · Normalization intuition",
    "rmsnorm_by_hand": "2 · RMSNorm by hand",
    "ffn_up_projection": "3 · FFN: the up-projection",
    "gating_and_down_projection": "4 · Gating and down-projection",
    "silu_curves": "5 · SiLU curves",
    "rope_2d_to_nd": "6 · RoPE, from 2-D to n-D",
}

for _lesson in TITLES:  # in the order of the course: each enters its exercises
    import_module(f".{_lesson}", __name__)
