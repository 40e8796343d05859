"""Lesson 06: one clock hand, then all; the score against the distance; positions that merge in bf16."""

import math

import torch

from lecture_utils.llama import inv_freq
from lecture_utils.plots import style

from .explorer import Explorer, slider, stops


class Hand(Explorer):
    """One pair of features as a clock hand: position, base and pair decide where it points."""

    size = (7.5, 3.9)
    panels = {"ncols": 2, "width_ratios": (1, 1.35)}  # noqa: RUF012

    def __init__(self, head_dim: int = 64) -> None:
        self.head_dim = head_dim
        super().__init__(
            position=slider("position", 0, 200, 5, unit="tokens"),
            pair=slider("pair", 0, head_dim // 2 - 1, 8),
            base=stops("base", (100, 1000, 10_000, 100_000, 500_000), 10_000),
        )

    def draw(self, face, wave):
        ring = torch.linspace(0, 2 * math.pi, 200)
        face.plot(ring.cos(), ring.sin(), color="#BBBBBB", linestyle="--", linewidth=1.2)
        face.plot([0, 1], [0, 0], color=style.INPUT)
        (self.hand,) = face.plot([], [], color=style.OUTPUT, marker="o", markevery=[-1])
        face.set(aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), title="The hand")
        self.positions = torch.linspace(0, 200, 800)
        (self.curve,) = wave.plot(self.positions, torch.zeros(800), color=style.POSITION)
        (self.dot,) = wave.plot([0], [0], "o", color=style.OUTPUT, markersize=9)
        wave.set(xlim=(0, 200), ylim=(-1.15, 1.15), xlabel="position (tokens)", ylabel="cos(position · θ)")
        return [self.hand, self.curve, self.dot]

    def update(self, position, pair, base):
        theta = inv_freq(self.head_dim, base)[pair].item()
        angle = position * theta
        self.hand.set_data([0, math.cos(angle)], [0, math.sin(angle)])
        self.curve.set_ydata((self.positions * theta).cos())
        self.dot.set_data([position], [math.cos(angle)])
        return (
            f"At position {position} the hand of pair {pair} has turned {angle:.4g} radians, "
            f"{angle / (2 * math.pi):.3g} turns. It comes round every {2 * math.pi / theta:,.0f} tokens."
        )
