"""Element-wise comparison and logic: what they return is boolean.

Source: the operation sets' pages of each operation (categories Comparison and Logical). NaN compares as in IEEE 754.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from stepper.ops.broadcasting import AutoBroadcast, aligned
from stepper.ops.registry import kernel


@kernel("Equal", 1, direct=np.equal)
def equal(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if a = b."""
    return np.equal(*aligned(a, b, auto_broadcast))


@kernel("NotEqual", 1, direct=np.not_equal)
def not_equal(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if a ≠ b."""
    return np.not_equal(*aligned(a, b, auto_broadcast))


@kernel("Less", 1, direct=np.less)
def less(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if a < b."""
    return np.less(*aligned(a, b, auto_broadcast))


@kernel("LessEqual", 1, direct=np.less_equal)
def less_equal(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if a ≤ b."""
    return np.less_equal(*aligned(a, b, auto_broadcast))


@kernel("Greater", 1, direct=np.greater)
def greater(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if a > b."""
    return np.greater(*aligned(a, b, auto_broadcast))


@kernel("GreaterEqual", 1, direct=np.greater_equal)
def greater_equal(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if a ≥ b."""
    return np.greater_equal(*aligned(a, b, auto_broadcast))


@kernel("LogicalAnd", 1, direct=np.logical_and)
def logical_and(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if both hold."""
    return np.logical_and(*aligned(a, b, auto_broadcast))


@kernel("LogicalOr", 1, direct=np.logical_or)
def logical_or(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if at least one holds."""
    return np.logical_or(*aligned(a, b, auto_broadcast))


@kernel("LogicalXor", 1, 2, direct=np.logical_xor)
@kernel("Xor", 1, direct=np.logical_xor)
def logical_xor(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return True if exactly one holds."""
    return np.logical_xor(*aligned(a, b, auto_broadcast))


@kernel("LogicalNot", 1, direct=np.logical_not)
def logical_not(x: Array) -> Array:
    """Return True if x does not hold."""
    return np.logical_not(x)


@kernel("IsNaN", 10, direct=np.isnan)
def is_nan(x: Array) -> Array:
    """Return True if x is not a number."""
    return np.isnan(x)


@kernel("IsFinite", 10, direct=np.isfinite)
def is_finite(x: Array) -> Array:
    """Return True if x is neither infinite nor NaN."""
    return np.isfinite(x)


@kernel("IsInf", 10, direct=np.isinf)
def is_inf(x: Array, *, detect_negative: bool = True, detect_positive: bool = True) -> Array:
    """Return True if x is one of the infinities asked for."""
    infinite = np.isinf(x)
    if not detect_negative:
        infinite &= x > 0
    if not detect_positive:
        infinite &= x < 0
    return infinite
