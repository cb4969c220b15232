"""Element-wise comparison and logic: what they return is boolean.

Source: the operation sets' pages of each operation (categories Comparison and Logical). NaN compares as in IEEE 754.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from stepper.ops.elementwise import broadcasting
from stepper.ops.precision import plain
from stepper.ops.registry import kernel

equal = kernel("Equal", 1, direct=np.equal)(broadcasting(np.equal, "Return True if a = b."))
not_equal = kernel("NotEqual", 1, direct=np.not_equal)(broadcasting(np.not_equal, "Return True if a ≠ b."))
less = kernel("Less", 1, direct=np.less)(broadcasting(np.less, "Return True if a < b."))
less_equal = kernel("LessEqual", 1, direct=np.less_equal)(broadcasting(np.less_equal, "Return True if a ≤ b."))
greater = kernel("Greater", 1, direct=np.greater)(broadcasting(np.greater, "Return True if a > b."))
greater_equal = kernel("GreaterEqual", 1, direct=np.greater_equal)(
    broadcasting(np.greater_equal, "Return True if a ≥ b.")
)
logical_and = kernel("LogicalAnd", 1, direct=np.logical_and)(broadcasting(np.logical_and, "Return True if both hold."))
logical_or = kernel("LogicalOr", 1, direct=np.logical_or)(
    broadcasting(np.logical_or, "Return True if at least one holds.")
)
logical_xor = kernel("LogicalXor", 1, 2, direct=np.logical_xor)(
    kernel("Xor", 1, direct=np.logical_xor)(broadcasting(np.logical_xor, "Return True if exactly one holds."))
)


logical_not = kernel("LogicalNot", 1, direct=np.logical_not)(plain(np.logical_not, "Return True if x does not hold."))
is_nan = kernel("IsNaN", 10, direct=np.isnan)(plain(np.isnan, "Return True if x is not a number."))
is_finite = kernel("IsFinite", 10, direct=np.isfinite)(
    plain(np.isfinite, "Return True if x is neither infinite nor NaN.")
)


@kernel("IsInf", 10, direct=np.isinf)
def is_inf(x: Array, *, detect_negative: bool = True, detect_positive: bool = True) -> Array:
    """Return True if x is one of the infinities asked for."""
    infinite = np.isinf(x)
    if not detect_negative:
        infinite &= x > 0
    if not detect_positive:
        infinite &= x < 0
    return infinite
