"""Cases of the operations on bits, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

A = np.array([[0, 1, -1], [12345, -98765, 2**31 - 1]], np.int32)
B = np.array([6, -2, 255], np.int32)
BYTES = np.array([0, 1, 127, 128, 255], np.uint8)
TRUTH = np.array([True, False])
BINARY = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")

CASES = [
    *(Case(f"{t}_rows", t, 13, [A, B]) for t in BINARY),
    *(Case(f"{t}_bytes", t, 13, [BYTES, BYTES[::-1].copy()]) for t in BINARY),
    *(Case(f"{t}_booleans", t, 13, [TRUTH, np.array([True, True])]) for t in BINARY),
    *(Case(f"not_{x.dtype}", "BitwiseNot", 13, [x]) for x in (A, BYTES, TRUTH)),
    Case("left_shift", "BitwiseLeftShift", 15, [A, np.array([1, 4, 3], np.int32)]),
    Case("right_shift", "BitwiseRightShift", 15, [A, np.array([1, 4, 3], np.int32)]),
    Case("left_shift_bytes", "BitwiseLeftShift", 15, [BYTES, np.array([1, 2, 1, 1, 4], np.uint8)]),
]
