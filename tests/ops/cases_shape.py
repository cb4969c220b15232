"""Cases of the operations on shapes, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.bound import i64
from tests.ops.recording import Case

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ONES = np.arange(3, dtype=np.float32).reshape(1, 3, 1)
EMPTY = np.zeros((2, 0, 3), np.float32)
KEEP = {"special_zero": "true"}


def scalar(value: float, dtype: type = np.int64) -> np.ndarray:
    return np.array(value, dtype)


CASES = [
    Case("reshape", "Reshape", 1, [X, i64(4, -1)], constant={1}),
    Case("reshape_zero_copies", "Reshape", 1, [X, i64(0, -1, 2)], KEEP, constant={1}),
    Case("reshape_empty_rest", "Reshape", 1, [EMPTY, i64(0, 0, -1)], KEEP, constant={1}),
    Case("reshape_empty_unknown", "Reshape", 1, [EMPTY, i64(0, -1)], constant={1}),
    Case("reshape_to_rank_0", "Reshape", 1, [X[0, 0, :1], i64()], constant={1}),
    Case("squeeze_one", "Squeeze", 1, [ONES, i64(-1)], constant={1}),
    Case("squeeze_all", "Squeeze", 1, [ONES]),
    Case("squeeze_empty_axes", "Squeeze", 1, [ONES, i64()], constant={1}),
    Case("squeeze_other_dimension_stays", "Squeeze", 1, [ONES, i64(1, 0, 0)], constant={1}),
    Case("squeeze_15", "Squeeze", 15, [ONES, i64(0, 1)], {"allow_axis_skip": "true"}, constant={1}),
    Case("unsqueeze", "Unsqueeze", 1, [X, i64(-1, 0)], constant={1}),
    Case("transpose", "Transpose", 1, [X, i64(2, 0, 1)], constant={1}),
    Case("transpose_reversed", "Transpose", 1, [X, i64()], constant={1}),
    Case("shape_of", "ShapeOf", 1, [X]),
    Case("shape_of_i32", "ShapeOf", 3, [X], {"output_type": "i32"}),
    Case("shape_of_scalar", "ShapeOf", 3, [scalar(1, np.float32)], {"output_type": "i64"}),
    Case("range", "Range", 1, [scalar(7), scalar(-2), scalar(-3)]),
    Case("range_f32", "Range", 4, [scalar(v, np.float32) for v in (1, 2, 0.3)], {"output_type": "f32"}),
    Case("range_mixed", "Range", 4, [scalar(1), scalar(4, np.float32), scalar(2)], {"output_type": "f32"}),
    Case("range_u8", "Range", 4, [scalar(3), scalar(9), scalar(2)], {"output_type": "u8"}),
    Case("range_no_step", "Range", 1, [scalar(v, np.float32) for v in (0, 3, 0)]),
    Case("eye", "Eye", 9, [scalar(3), scalar(4), scalar(-1)], {"output_type": "f32"}, constant={0, 1, 2}),
    Case(
        "eye_batch",
        "Eye",
        9,
        [scalar(2), scalar(3), scalar(1), i64(2, 1)],
        {"output_type": "i32"},
        constant={0, 1, 2, 3},
    ),
]
