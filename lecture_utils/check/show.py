"""Inputs and results on a few short lines."""

import math

import torch
from torch import Tensor

from .judge import error


def show(value) -> str:
    """A value on a few short lines: small tensors in full, larger ones by shape and dtype."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and abs(value) >= 10**15:
        return f"about 10^{int(value.bit_length() * 0.30103)}"
    if not isinstance(value, Tensor):
        return getattr(value, "__name__", None) or repr(value).splitlines()[0]
    dtype = "" if value.dtype in (torch.float32, torch.int64, torch.bool) else f" {dtype_name(value.dtype)}"
    if value.numel() > 16:
        return f"tensor {list(value.shape)}{dtype or ' ' + dtype_name(value.dtype)}"
    return f"{_numbers(value.detach())}{dtype}"


def _numbers(value: Tensor) -> str:
    if value.dim() == 0:
        return str(value.item()) if value.dtype == torch.bool else _number(value.item())
    inside = [_numbers(row) for row in value]
    return f"[{', '.join(inside)}]"


def _number(number) -> str:
    if isinstance(number, float) and not math.isfinite(number):
        return str(number)
    text = f"{number:.4g}"
    return "0" if text == "-0" else text


def dtype_name(dtype: torch.dtype) -> str:
    """ "bfloat16" for torch.bfloat16."""
    return str(dtype).removeprefix("torch.")


def at_worst(got, expected, ours: bool) -> str:
    """`got` or `expected` in full if it is small, else where the two are furthest apart."""
    if not isinstance(expected, Tensor):
        return show(got if ours else expected)
    if expected.numel() <= 16:
        return _distinct(got, expected, ours)
    apart = error(got, expected)
    at = [int(i) for i in torch.unravel_index(apart.argmax(), apart.shape)]
    return f"{_distinct(got[tuple(at)], expected[tuple(at)], ours)} at {at}"


def _distinct(got: Tensor, expected: Tensor, ours: bool) -> str:
    """With more digits, if four do not show the difference."""
    if show(got) != show(expected) or got.numel() > 4:
        return show(got if ours else expected)
    return str([float(f"{v:.9g}") for v in (got if ours else expected).detach().flatten().tolist()])
