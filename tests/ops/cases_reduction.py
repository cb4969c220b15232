"""Cases of the reductions and the cumulative sum, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

X = np.linspace(-2.0, 3.0, 24, dtype=np.float32).reshape(2, 3, 4)
I = np.arange(-5, 7, dtype=np.int32).reshape(3, 4)  # noqa: E741 - an integer twin of X
P = np.array([[True, False, True], [True, True, True], [False, False, False]])
TYPES = {"Sum": 1, "Mean": 1, "Max": 1, "Min": 1, "Prod": 1, "L1": 4, "L2": 4}
AXES = {"last": [-1], "two": [0, 2], "all": [0, 1, 2]}
BOOLEANS = ("true", "false")


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


CASES = [
    *(
        Case(f"{t}_{name}_{keep}", f"Reduce{t}", version, [X, whole(*axes)], {"keep_dims": keep}, constant={1})
        for t, version in TYPES.items()
        for name, axes in AXES.items()
        for keep in BOOLEANS
    ),
    *(
        Case(f"{t}_integers", f"Reduce{t}", version, [I, np.array(1, np.int32)], constant={1})
        for t, version in TYPES.items()
        if t != "L2"
    ),
    *(
        Case(f"{t}_f16", f"Reduce{t}", 1, [X.astype(np.float16), whole(1)], constant={1}, rtol=2e-3)
        for t in ("Sum", "Mean")
    ),
    *(
        Case(f"{t}_{keep}", f"ReduceLogical{t}", 1, [P, whole(1)], {"keep_dims": keep}, constant={1})
        for t in ("And", "Or")
        for keep in BOOLEANS
    ),
    Case("mean_of_nothing", "ReduceMean", 1, [X[:, :0], whole(1)], constant={1}),
    *(
        Case(f"cum_sum_{axis}_{exclusive}_{reverse}", "CumSum", 3, [X, np.array(axis)], attributes, constant={1})
        for axis in (1, -1)
        for exclusive in BOOLEANS
        for reverse in BOOLEANS
        for attributes in [{"exclusive": exclusive, "reverse": reverse}]
    ),
    Case("cum_sum_integers", "CumSum", 3, [I, np.array(0)], constant={1}),
]
