"""Cases of the element-wise operations, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

A = np.array([[1.5, -2.0, 0.25], [4.0, 0.0, -8.0]], np.float32)
B = np.array([2.0, -0.5, 4.0], np.float32)
I = np.array([[7, -7, 7], [-7, 9, -9]], np.int32)  # noqa: E741 - an integer twin of A
J = np.array([2, 2, -2], np.int32)

CASES = [
    Case("add_rows", "Add", 1, [A, B]),
    Case("add_scalar", "Add", 1, [A, np.array(1.0, np.float32)]),
    Case("subtract_rows", "Subtract", 1, [A, B]),
    Case("multiply_rows", "Multiply", 1, [A, B]),
    Case("divide_rows", "Divide", 1, [A, B]),
    Case("divide_towards_zero", "Divide", 1, [I, J], {"m_pythondiv": "false"}),
]
