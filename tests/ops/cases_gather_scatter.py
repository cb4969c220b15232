"""Cases of gathering and scattering, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.bound import i64
from tests.ops.recording import Case

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 0.5
M = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
V = np.array([3, -4, 5, 6, 2], np.int32)


AXIS = {2}
SCALAR = [np.array(axis, np.int64) for axis in (0, 1, 2)]
INDEX = np.array([[0, 3, -1], [1, 1, 9]], np.int64)
ROWS = np.array([[0], [2], [-1], [0]], np.int64)
PAIRS = np.array([[[0, 2], [1, -1]], [[1, 0], [0, 0]]], np.int64)
ELEMENTS = np.array([[0, 1, 2], [3, 1, -1]], np.int64)
PARENTS = np.array([[[0, 0, 0]], [[0, 2, 1]], [[2, 0, 1]]], np.int32)
STEPS = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 9, 8]]], np.int32)
REDUCTIONS = ("none", "sum", "prod", "min", "max", "mean")

CASES = [
    Case("gather_1", "Gather", 1, [X, i64(2, 0), SCALAR[1]], constant=AXIS),
    Case("gather_7", "Gather", 7, [X, i64(2, 0, 1, 1).reshape(2, 2), SCALAR[2]], {"batch_dims": "1"}, constant=AXIS),
    Case("gather_8_outside", "Gather", 8, [X, INDEX, SCALAR[1]], constant=AXIS),
    Case("gather_8_batch", "Gather", 8, [X, INDEX, SCALAR[2]], {"batch_dims": "-1"}, constant=AXIS),
    Case("gather_8_scalar", "Gather", 8, [V, np.array(-1, np.int32), SCALAR[0]], constant=AXIS),
    Case("gather_elements", "GatherElements", 6, [M, ELEMENTS], {"axis": "0"}),
    Case("gather_nd_5", "GatherND", 5, [X[:, :2], PAIRS[:, :, :1]], {"batch_dims": "2"}),
    Case("gather_nd_8", "GatherND", 8, [X[:, :2], PAIRS[:, :, :1]], {"batch_dims": "2"}),
    Case("gather_nd_8_pairs", "GatherND", 8, [X, PAIRS]),
    Case("gather_nd_8_one", "GatherND", 8, [M, i64(3, 1)]),
    Case("scatter_update", "ScatterUpdate", 3, [M, i64(2, 0), -M[:, :2], SCALAR[1]], constant={3}),
    Case("scatter_update_twice", "ScatterUpdate", 3, [V, i64(1, 4, 1), V[:3], SCALAR[0]], constant={3}),
    Case("scatter_elements_3", "ScatterElementsUpdate", 3, [M, ELEMENTS, M[:2] * 9, SCALAR[0]], constant={3}),
    *(
        Case(
            f"scatter_elements_{reduction}_{initial}",
            "ScatterElementsUpdate",
            12,
            [V, i64(1, -1, 1, 3), np.array([2, 7, 5, 1], np.int32), SCALAR[0]],
            {"reduction": reduction, "use_init_val": initial},
            constant={3},
        )
        for reduction in REDUCTIONS
        for initial in ("true", "false")
    ),
    Case("scatter_nd_4", "ScatterNDUpdate", 4, [X, PAIRS, np.ones((2, 2, 4), np.float32)]),
    *(
        Case(f"scatter_nd_{reduction}", "ScatterNDUpdate", 15, [M, ROWS, M * 2 + 1], {"reduction": reduction})
        for reduction in ("none", "sum", "sub", "prod", "min", "max")
    ),
    Case("gather_tree", "GatherTree", 1, [STEPS, PARENTS, np.array([3], np.int32), np.array(9, np.int32)]),
    Case("gather_tree_short", "GatherTree", 1, [STEPS, PARENTS, np.array([2], np.int32), np.array(4, np.int32)]),
]
