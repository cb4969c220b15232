"""Element-wise comparison and logic: what they return is boolean.

Source: the operation sets' pages of each operation (categories Comparison and Logical). NaN compares as in IEEE 754.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from stepper.ops.elementwise import binary
from stepper.ops.precision import plain
from stepper.ops.registry import kernel

equal = binary("Equal", 1, np.equal, "Return True if a = b.")
not_equal = binary("NotEqual", 1, np.not_equal, "Return True if a ≠ b.")
less = binary("Less", 1, np.less, "Return True if a < b.")
less_equal = binary("LessEqual", 1, np.less_equal, "Return True if a ≤ b.")
greater = binary("Greater", 1, np.greater, "Return True if a > b.")
greater_equal = binary("GreaterEqual", 1, np.greater_equal, "Return True if a ≥ b.")
logical_and = binary("LogicalAnd", 1, np.logical_and, "Return True if both hold.")
logical_or = binary("LogicalOr", 1, np.logical_or, "Return True if at least one holds.")
logical_xor = kernel("LogicalXor", 1, 2, direct=np.logical_xor)(
    binary("Xor", 1, np.logical_xor, "Return True if exactly one holds.")
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
