"""Element-wise logic and shifts of the bits of integers (and of booleans).

Source: the operation sets' pages of the Bitwise operations. A shift by the type's width or more leaves only the sign.
"""

from __future__ import annotations

import numpy as np

from stepper.ops.elementwise import binary
from stepper.ops.precision import plain
from stepper.ops.registry import kernel

bitwise_and = binary("BitwiseAnd", 13, np.bitwise_and, "Return the bits set in both.")
bitwise_or = binary("BitwiseOr", 13, np.bitwise_or, "Return the bits set in at least one.")
bitwise_xor = binary("BitwiseXor", 13, np.bitwise_xor, "Return the bits set in exactly one.")


bitwise_not = kernel("BitwiseNot", 13, direct=np.bitwise_not)(plain(np.bitwise_not, "Return every bit inverted."))
bitwise_left_shift = binary("BitwiseLeftShift", 15, np.left_shift, "Return the bits of a moved up by b places.")
bitwise_right_shift = binary(
    "BitwiseRightShift", 15, np.right_shift, "Return the bits of a moved down by b places, the sign drawn along."
)
