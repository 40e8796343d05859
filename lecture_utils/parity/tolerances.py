"""How far two implementations of one formula may be apart: one table, a reason a row.

An error is `|ours − theirs| / (|theirs| + RMS of theirs)`: relative for large entries, and relative
to the typical entry for those near zero, where two large numbers may have cancelled. So
`torch.testing.assert_close(ours, theirs, rtol=t, atol=t · RMS)` passes exactly when it is at most t.
"""

from dataclasses import dataclass

import torch

BF16_STEP = torch.finfo(torch.bfloat16).eps  # 2**-7: from 1 to the next larger number
FP16_STEP = torch.finfo(torch.float16).eps  # 2**-10


@dataclass(frozen=True)
class Tolerance:
    """Largest error allowed for values and for gradients, and why."""

    values: float
    gradients: float
    reason: str


_EXACT = Tolerance(0.0, 0.0, "same operations in the same order: the same bits")

TOLERANCES: dict[tuple[str, torch.dtype], Tolerance] = {
    ("exact", torch.float32): _EXACT,
    ("exact", torch.bfloat16): _EXACT,
    ("exact", torch.float16): _EXACT,
    ("elementwise", torch.float32): Tolerance(
        1e-6, 1e-5, "a few roundings of 2**-24; gradients of weights are sums over tokens"
    ),
    # One step for a value. PyTorch's kernel of LayerNorm adds up the gradients of weight and bias in
    # 16 bits, token after token, and is two steps from float64 over 15 tokens.
    ("elementwise", torch.bfloat16): Tolerance(
        BF16_STEP, 4 * BF16_STEP, "values rounded once; gradients of weights added up in 16 bits"
    ),
    ("elementwise", torch.float16): Tolerance(
        FP16_STEP, 4 * FP16_STEP, "values rounded once; gradients of weights added up in 16 bits"
    ),
    ("saturating", torch.float32): Tolerance(1e-6, 1e-5, "as elementwise"),
    ("saturating", torch.bfloat16): Tolerance(
        BF16_STEP, 8 * BF16_STEP, "PyTorch takes the slope, y·(1 − y), from the y that it has rounded"
    ),
    ("saturating", torch.float16): Tolerance(
        FP16_STEP, 8 * FP16_STEP, "PyTorch takes the slope, y·(1 − y), from the y that it has rounded"
    ),
    ("matmul", torch.float32): Tolerance(
        1e-5, 1e-5, "sums of H or D products, in an order that the kernel chooses"
    ),
    ("matmul", torch.bfloat16): Tolerance(
        4 * BF16_STEP, 4 * BF16_STEP, "each matrix product rounds its result to bf16"
    ),
    ("matmul", torch.float16): Tolerance(
        4 * FP16_STEP, 4 * FP16_STEP, "each matrix product rounds its result to fp16"
    ),
}
