"""Random sizes and tensors from a seed, without touching the global random state."""

import torch
from torch import Tensor


class Draw:
    """A source of random sizes and numbers, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def sizes(self, count: int, low: int = 2, high: int = 9) -> list[int]:
        """`count` sizes from low to high, no two equal: an axis that is mistaken for another shows."""
        order = torch.randperm(high - low + 1, generator=self._generator)
        return (order[:count] + low).tolist()

    def size(self, low: int, high: int) -> int:
        """One size from low to high."""
        return int(torch.randint(low, high + 1, (), generator=self._generator))

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Numbers from a standard normal."""
        return torch.randn(shape, generator=self._generator).to(dtype)

    def weight(self, *shape: int) -> Tensor:
        """Numbers around 1.5 and −1.5, none near 0 or 1: a weight that is forgotten or doubled shows."""
        sign = torch.where(torch.rand(shape, generator=self._generator) < 0.5, -1.0, 1.0)
        return sign * (1.5 + 0.3 * torch.rand(shape, generator=self._generator))

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Numbers from low to high."""
        return low + (high - low) * torch.rand(shape, generator=self._generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from low to high, int64."""
        return torch.randint(low, high + 1, shape, generator=self._generator)
