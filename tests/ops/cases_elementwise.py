"""Cases of the element-wise operations, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

A = np.array([[1.5, -2.0, 0.25], [4.0, 0.0, -8.0]], np.float32)
B = np.array([2.0, -0.5, 4.0], np.float32)
I = np.array([[7, -7, 7], [-7, 9, -9]], np.int32)  # noqa: E741 - an integer twin of A
J = np.array([2, 2, -2], np.int32)
COLUMN = np.array([3.0, -2.0], np.float32)
SCALAR = np.array(1.5, np.float32)
NONE = np.zeros((0, 3), np.float32)
TYPES = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Mod", "FloorMod", "SquaredDifference")
SHAPES = {"rows": (A, B), "scalar": (A, SCALAR), "scalars": (SCALAR, SCALAR), "none": (NONE, B)}
HALF = {"f16": (A.astype(np.float16), B.astype(np.float16))}
LEFT = ("Add", "Multiply", "Maximum", "Minimum")

CASES = [
    *(Case(f"{t}_{name}", t, 1, pair) for t in TYPES for name, pair in (SHAPES | HALF).items()),
    *(Case(f"{t}_integers", t, 1, [I, J]) for t in TYPES if t != "Divide"),
    *(Case(f"{t}_aligned_left", t, 1, [A, COLUMN], {"auto_broadcast": "pdpd"}) for t in LEFT),
    Case("divide_towards_zero", "Divide", 1, [I, J], {"m_pythondiv": "false"}),
    Case("power_rows", "Power", 1, [np.abs(A), B]),
    Case("power_of_negative", "Power", 1, [A, np.array([2.0, 3.0, 0.5], np.float32)]),
    Case("power_integers", "Power", 1, [I, np.array([2, 3, 0], np.int32)]),
    Case(
        "power_negative_exponent",
        "Power",
        1,
        [np.array([2, 1, -1, -1], np.int32), np.array([-1, -3, -3, -2], np.int32)],
    ),
    Case("add_wraps", "Add", 1, [np.array([2**31 - 1], np.int32), np.array([1], np.int32)]),
    Case("select_rows", "Select", 1, [np.array([True, False, True]), A, B]),
    Case("select_outer", "Select", 1, [np.array([[[True, False, True]], [[False, True, False]]]), A, B]),
    Case("select_scalar", "Select", 1, [np.array(True), I, J]),
    Case("select_none", "Select", 1, [A > 0, A, -A], {"auto_broadcast": "none"}),
]
