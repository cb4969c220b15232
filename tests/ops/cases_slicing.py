"""Cases of the slices, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.bound import i64
from tests.ops.recording import Case

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
LAST, FIRST = 2**63 - 1, -(2**63)


def masks(begin: str = "", end: str = "", new: str = "", shrink: str = "", ellipsis: str = "") -> dict[str, str]:
    names = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    length = max(len(mask) for mask in (begin, end, new, shrink, ellipsis))
    return {
        name: ",".join(mask or "0" * length)
        for name, mask in zip(names, (begin, end, new, shrink, ellipsis), strict=True)
    }


ALL = {1, 2, 3, 4}
RANGE = [i64(0, 1, 1), i64(2, 3, 4), i64(1, 1, 2)]
CASES = [
    Case("slice_axes", "Slice", 8, [X, i64(1, -3), i64(9, -1), i64(1, 1), i64(1, -1)], constant=ALL),
    Case("slice_without_axes", "Slice", 8, [X, i64(1), i64(2), i64(1)], constant=ALL),
    Case("slice_backwards", "Slice", 8, [X, i64(LAST), i64(FIRST), i64(-2), i64(2)], constant=ALL),
    Case("slice_empty", "Slice", 8, [X, i64(2), i64(1), i64(1), i64(2)], constant=ALL),
    Case("strided", "StridedSlice", 1, [X, *RANGE], masks("000"), constant=ALL),
    Case("strided_open", "StridedSlice", 1, [X, *RANGE], masks("011", "010"), constant=ALL),
    Case(
        "strided_backwards", "StridedSlice", 1, [X, i64(0, 5), i64(9, 0), i64(1, -2)], masks("10", "10"), constant=ALL
    ),
    Case("strided_new_axis", "StridedSlice", 1, [X, *RANGE], masks(new="010", shrink="010"), constant=ALL),
    Case("strided_shrink", "StridedSlice", 1, [X, i64(-1, 1), i64(0, 0), i64(-1, 1)], masks(shrink="11"), constant=ALL),
    Case("strided_shrink_open", "StridedSlice", 1, [X, i64(1), i64(2), i64(1)], masks("1", shrink="1"), constant=ALL),
    Case("strided_ellipsis", "StridedSlice", 1, [X, i64(0, 1), i64(0, 3)], masks(ellipsis="10"), constant=ALL),
    Case(
        "strided_ellipsis_wins",
        "StridedSlice",
        1,
        [X, i64(0, 1), i64(1, 2)],
        masks(shrink="11", ellipsis="10"),
        constant=ALL,
    ),
    Case("strided_no_masks", "StridedSlice", 1, [X, i64(0, 1), i64(1, 3)], masks(), constant=ALL),
    Case("scatter_slice", "SliceScatter", 15, [X, -X[:, ::2], i64(0), i64(3), i64(2), i64(1)], constant={2, 3, 4, 5}),
    Case("scatter_slice_first_axis", "SliceScatter", 15, [X, -X[1:], i64(1), i64(9), i64(1)], constant={2, 3, 4}),
]
