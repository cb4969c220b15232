"""Element-wise logic and shifts of the bits of integers (and of booleans).

Source: the operation sets' pages of the Bitwise operations. A shift by the type's width or more leaves only the sign.
"""

from __future__ import annotations

import numpy as np

from stepper.ops.elementwise import broadcasting
from stepper.ops.precision import plain
from stepper.ops.registry import kernel

bitwise_and = kernel("BitwiseAnd", 13, direct=np.bitwise_and)(
    broadcasting(np.bitwise_and, "Return the bits set in both.")
)
bitwise_or = kernel("BitwiseOr", 13, direct=np.bitwise_or)(
    broadcasting(np.bitwise_or, "Return the bits set in at least one.")
)
bitwise_xor = kernel("BitwiseXor", 13, direct=np.bitwise_xor)(
    broadcasting(np.bitwise_xor, "Return the bits set in exactly one.")
)


bitwise_not = kernel("BitwiseNot", 13, direct=np.bitwise_not)(plain(np.bitwise_not, "Return every bit inverted."))
bitwise_left_shift = kernel("BitwiseLeftShift", 15, direct=np.left_shift)(
    broadcasting(np.left_shift, "Return the bits of a moved up by b places.")
)
bitwise_right_shift = kernel("BitwiseRightShift", 15, direct=np.right_shift)(
    broadcasting(np.right_shift, "Return the bits of a moved down by b places, the sign drawn along.")
)
