"""Cases of element-wise functions of one tensor, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

X = np.array([[-2.5, -1.5, -0.5, -0.0], [0.5, 0.75, 1.5, 2.5]], np.float32)
INSIDE = np.array([-1.0, -0.9, -0.25, 0.0, 0.1, 0.75, 1.0], np.float32)
ABOVE = np.array([1.0, 1.5, 3.0, 100.0], np.float32)
POSITIVE = np.array([0.0, 1e-3, 0.5, 1.0, 7.0, 1e5], np.float32)
INTEGERS = np.array([-7, -1, 0, 3, 12], np.int32)
EVERYWHERE = [
    "Abs",
    "Negative",
    "Sign",
    "Floor",
    "Ceiling",
    "Exp",
    "Sin",
    "Cos",
    "Tan",
    "Atan",
    "Sinh",
    "Cosh",
    "Tanh",
    "Erf",
]
DOMAINS = {"Asin": (1, INSIDE), "Acos": (1, INSIDE), "Asinh": (4, X), "Acosh": (4, ABOVE), "Atanh": (4, INSIDE[1:-1])}
ROOTS = {"Sqrt": POSITIVE, "Log": POSITIVE}
MODES = ("half_to_even", "half_away_from_zero")

CASES = [
    *(Case(f"{t}", t, 1, [X]) for t in EVERYWHERE),
    *(Case(f"{t}_f16", t, 1, [X.astype(np.float16)], rtol=2e-3) for t in EVERYWHERE),
    *(Case(f"{t}_scalar", t, 1, [X[0, 1].reshape(())]) for t in EVERYWHERE),
    *(Case(f"{t}_none", t, 1, [X[:0]]) for t in EVERYWHERE),
    *(Case(t, t, 1, [x]) for t, x in ROOTS.items()),
    *(Case(t, t, version, [x]) for t, (version, x) in DOMAINS.items()),
    *(Case(f"{t}_integers", t, 1, [INTEGERS]) for t in ("Abs", "Negative", "Sign", "Floor", "Ceiling")),
    *(Case(f"round_{mode}", "Round", 5, [X], {"mode": mode}) for mode in MODES),
    Case("round_default", "Round", 5, [X]),
    Case("sqrt_integers", "Sqrt", 1, [np.array([0, 1, 2, 99, 100], np.int32)]),
    Case("erfinv", "Erfinv", 17, [INSIDE[1:-1]]),
]
