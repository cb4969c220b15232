"""Element-wise arithmetic, comparison and logic of two tensors.

Source: the operation sets' pages of each operation (category Arithmetic, Comparison, Logical). Integers wrap.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from stepper.ops.broadcasting import AutoBroadcast, aligned
from stepper.ops.registry import kernel


@kernel("Add", 1, direct=np.add)
def add(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """a + b."""
    return np.add(*aligned(a, b, auto_broadcast))


@kernel("Subtract", 1, direct=np.subtract)
def subtract(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """a - b."""
    return np.subtract(*aligned(a, b, auto_broadcast))


@kernel("Multiply", 1, direct=np.multiply)
def multiply(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """a * b."""
    return np.multiply(*aligned(a, b, auto_broadcast))


@kernel("Divide", 1)
def divide(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy", m_pythondiv: bool = True) -> Array:
    """a / b; of integers the quotient rounded down (m_pythondiv) or towards zero."""
    a, b = aligned(a, b, auto_broadcast)
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    floor = np.floor_divide(a, b)
    if m_pythondiv:
        return floor
    inexact_negative = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return np.asarray(floor + inexact_negative, a.dtype)
