"""Cases of comparison and logic, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

A = np.array([[1.5, -2.0, 0.25], [4.0, 0.0, np.inf]], np.float32)
B = np.array([1.5, -0.5, np.inf], np.float32)
I = np.array([[7, -7, 3]], np.int64)  # noqa: E741 - an integer twin of A
J = np.array([[7], [-8]], np.int64)
P = np.array([[True, False, True], [False, True, False]])
Q = np.array([True, True, False])
COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
LOGICAL = (("LogicalAnd", 1), ("LogicalOr", 1), ("LogicalXor", 1), ("LogicalXor", 2), ("Xor", 1))
SPECIAL = np.array([1.0, np.inf, -np.inf, np.nan, -0.0], np.float32)
DETECT = {"both": ("true", "true"), "positive": ("false", "true"), "negative": ("true", "false")}

CASES = [
    *(Case(f"{t}_floats", t, 1, [A, B]) for t in COMPARISONS),
    *(Case(f"{t}_integers", t, 1, [I, J]) for t in COMPARISONS),
    *(Case(f"{t}_scalars", t, 1, [np.array(2.0, np.float32), np.array(3.0, np.float32)]) for t in COMPARISONS),
    *(Case(f"{t}_{version}", t, version, [P, Q]) for t, version in LOGICAL),
    Case("not", "LogicalNot", 1, [P]),
    Case("is_nan", "IsNaN", 10, [SPECIAL]),
    Case("is_finite", "IsFinite", 10, [SPECIAL]),
    *(
        Case(f"is_inf_{name}", "IsInf", 10, [SPECIAL], {"detect_negative": negative, "detect_positive": positive})
        for name, (negative, positive) in DETECT.items()
    ),
]
