"""Guards at the doors of the model: bad input gets one clear sentence that names the argument.

The notebooks show the same classes and functions without these calls, and without docstrings.
"""

import math

import torch
from torch import Tensor


def positive_int(name: str, value: int, even: bool = False) -> None:
    """Raises ValueError unless `value` is an integer above 0 (and even, where asked)."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1 or (even and value % 2):
        kind = "a positive even integer" if even else "a positive integer"
        raise ValueError(f"{name} must be {kind}, not {value!r}")


def positive_ints(**values: int) -> None:
    """`positive_int` for each of several arguments, by name."""
    for name, value in values.items():
        positive_int(name, value)


def above_zero(name: str, value: float) -> None:
    """Raises ValueError unless `value` is a finite number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, not {value!r}")


def instance(name: str, value: object, kind: type) -> None:
    """Raises TypeError unless `value` is a `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")


def one_of(name: str, value: str, names: tuple[str, ...]) -> None:
    """Raises ValueError unless `value` is one of the names."""
    if value not in names:
        raise ValueError(f"{name} must be {' or '.join(map(repr, names))}, not {value!r}")


def floating(name: str, value: Tensor) -> None:
    """Raises TypeError unless `value` is a floating-point tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, not {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, not {value.dtype}")


def floating_dtype(name: str, value: torch.dtype) -> None:
    """Raises TypeError unless `value` is a floating-point dtype."""
    if not isinstance(value, torch.dtype) or not value.is_floating_point:
        raise TypeError(f"{name} must be a floating-point dtype, not {value!r}")


def features(name: str, value: Tensor, size: int) -> None:
    """Raises unless `value` is a floating-point tensor whose last axis has `size` features."""
    floating(name, value)
    if value.dim() == 0 or value.size(-1) != size:
        raise ValueError(
            f"the last axis of {name} must have {size} features; its shape is {list(value.shape)}"
        )


def tokens(name: str, value: Tensor, size: int) -> None:
    """Raises unless `value` is a floating-point tensor [B, S, size]."""
    features(name, value, size)
    if value.dim() != 3:
        raise ValueError(f"{name} must be [B, S, {size}]; its shape is {list(value.shape)}")


def even_features(name: str, value: Tensor) -> None:
    """Raises unless `value` is a floating-point tensor whose last axis is even (RoPE turns pairs)."""
    floating(name, value)
    if value.dim() == 0 or value.size(-1) == 0 or value.size(-1) % 2:
        raise ValueError(
            f"the last axis of {name} must be even and not empty; its shape is {list(value.shape)}"
        )


def same_device(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Raises ValueError unless the two tensors are on one device."""
    if value.device != other.device:
        raise ValueError(f"{name} is on {value.device} and {other_name} on {other.device}: move one of them")


def integers(name: str, value: Tensor) -> None:
    """Raises TypeError unless `value` is a tensor of integers."""
    if not isinstance(value, Tensor) or value.is_floating_point() or value.dtype == torch.bool:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"{name} must be a tensor of integers, not {kind}")


def turns(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Raises unless cos and sin are angles for every token and feature of q and k, [B, heads, S, d].

    Without this check a wrong axis would broadcast, and a wrong dtype would turn the output into fp32.
    """
    # The usual case first: a model that writes asks this for every token in every layer.
    tensors = type(q) is type(k) is type(cos) is type(sin) is Tensor and q.is_floating_point()
    alike = tensors and q.dtype == k.dtype == cos.dtype == sin.dtype and q.dim() == k.dim() == 4
    if alike and q.shape[2:] == k.shape[2:] == cos.shape == sin.shape and not cos.size(1) % 2 and len(cos):
        return
    for name, x in (("q", q), ("k", k)):
        even_features(name, x)
        for angle_name, angle in (("cos", cos), ("sin", sin)):
            floating(angle_name, angle)
            fits = angle.shape[-2:] == x.shape[-2:] and angle.dim() in (2, 3)
            if x.dim() != 4 or not fits or (angle.dim() == 3 and len(angle) not in (1, len(x))):
                raise ValueError(
                    f"{name} must be [B, heads, S, d] and {angle_name} [S, d] or [B, S, d]; "
                    f"their shapes are {list(x.shape)} and {list(angle.shape)}"
                )
            if angle.dtype != x.dtype:
                raise ValueError(
                    f"{angle_name} is {angle.dtype} and {name} {x.dtype}: cast cos and sin to it"
                )


def head_rows(name: str, weight: Tensor, n_heads: int) -> None:
    """Raises unless the first axis of `weight` is n_heads · d rows with d even."""
    floating(name, weight)
    positive_int("n_heads", n_heads)
    if weight.dim() == 0 or weight.shape[0] == 0 or weight.shape[0] % (2 * n_heads):
        raise ValueError(
            f"{name} must have n_heads · d rows with d even; "
            f"its shape is {list(weight.shape)} for n_heads {n_heads}"
        )


def heads(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raises unless q is [B, N, S, d], k and v [B, K, T, d], and N a multiple of K."""
    for name, value in (("q", q), ("k", k), ("v", v)):
        floating(name, value)
    fits = q.dim() == k.dim() == 4 and k.shape == v.shape and q.size(0) == k.size(0)
    if not fits or q.size(-1) != k.size(-1) or q.size(1) % k.size(1):
        raise ValueError(
            f"q must be [B, N, S, d], k and v [B, K, T, d], N a multiple of K; "
            f"their shapes are {list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        )


def keys_for_all(q_len: int, kv_len: int) -> None:
    """Raises ValueError if there are fewer keys than queries."""
    if q_len > kv_len:
        raise ValueError(f"q_len {q_len} is more than kv_len {kv_len}: a query is also a key")


def axes(name: str, value: Tensor, *letters: str) -> None:
    """Raises unless `value` is a tensor with so many axes."""
    instance(name, value, Tensor)
    if value.dim() != len(letters):
        raise ValueError(f"{name} must be [{', '.join(letters)}]; its shape is {list(value.shape)}")


def token_ids(name: str, value: Tensor, vocab_size: int) -> None:
    """Raises unless `value` is [B, S], not empty, of integers from 0 to `vocab_size` − 1."""
    integers(name, value)
    if value.dim() != 2 or not value.numel():
        raise ValueError(f"{name} must be [B, S] and not empty; its shape is {list(value.shape)}")
    if value.is_meta:  # shapes without numbers
        return
    least, most = (number.item() for number in value.aminmax())
    if least < 0 or most >= vocab_size:
        wrong = least if least < 0 else most
        raise ValueError(f"{name} holds {wrong}, and the vocabulary has the ids 0 to {vocab_size - 1}")


def padding(name: str, value: Tensor | None, input_ids: Tensor, cache) -> None:
    """Raises ValueError unless `value` is None or [B, T], for the tokens in the cache and `input_ids`."""
    T = input_ids.shape[1] + (cache.length if cache is not None else 0)
    if value is not None and value.shape != (len(input_ids), T):
        raise ValueError(
            f"{name} must be [B, T] = [{len(input_ids)}, {T}], for the tokens in the cache and the new "
            f"ones; its shape is {list(value.shape)}"
        )


def sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raises ValueError unless the three are in their range."""
    if not isinstance(temperature, int | float) or not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be 0 or a finite number above it, not {temperature!r}")
    if top_k is not None:
        positive_int("top_k", top_k)
    if top_p is not None and not (isinstance(top_p, int | float) and 0 < top_p <= 1):
        raise ValueError(f"top_p must be above 0 and at most 1, not {top_p!r}")
