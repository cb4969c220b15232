"""Element-wise logic and shifts of the bits of integers (and of booleans).

Source: the operation sets' pages of the Bitwise operations. A shift by the type's width or more leaves only the sign.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from stepper.ops.broadcasting import AutoBroadcast, aligned
from stepper.ops.registry import kernel


@kernel("BitwiseAnd", 13, direct=np.bitwise_and)
def bitwise_and(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return the bits set in both."""
    return np.bitwise_and(*aligned(a, b, auto_broadcast))


@kernel("BitwiseOr", 13, direct=np.bitwise_or)
def bitwise_or(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return the bits set in at least one."""
    return np.bitwise_or(*aligned(a, b, auto_broadcast))


@kernel("BitwiseXor", 13, direct=np.bitwise_xor)
def bitwise_xor(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return the bits set in exactly one."""
    return np.bitwise_xor(*aligned(a, b, auto_broadcast))


@kernel("BitwiseNot", 13, direct=np.bitwise_not)
def bitwise_not(x: Array) -> Array:
    """Return every bit inverted."""
    return np.bitwise_not(x)


@kernel("BitwiseLeftShift", 15, direct=np.left_shift)
def bitwise_left_shift(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return the bits of a moved up by b places."""
    return np.left_shift(*aligned(a, b, auto_broadcast))


@kernel("BitwiseRightShift", 15, direct=np.right_shift)
def bitwise_right_shift(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return the bits of a moved down by b places, the sign drawn along."""
    return np.right_shift(*aligned(a, b, auto_broadcast))
