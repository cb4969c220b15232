"""Cases of order among elements, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

X = np.array([[3.5, -1.0, 8.0, 2.0, 0.25], [-7.0, 6.0, 1.5, 9.0, 4.0]], np.float32)
TIES = np.array([[2, 5, 2, 5, 1, 5]], np.int32)
REPEATED = np.array([[2, 1, 2], [0, 1, 2], [2, 1, 2]], np.float32)
THREE, ONE = np.array(3, np.int64), np.array(1, np.int64)
SORTED = np.array([[1, 3, 3, 7], [2, 2, 5, 6]], np.float32)
VALUES = np.array([[3, 0, 9], [2, 5, 4]], np.float32)


def top(mode: str, sort: str = "value", **more: str) -> dict[str, str]:
    return {"axis": "-1", "mode": mode, "sort": sort, **more}


CASES = [
    Case("top_k_1", "TopK", 1, [X, THREE], top("max"), outputs=2, constant={1}),
    Case("top_k_3_index", "TopK", 3, [X, THREE], top("min", "index"), outputs=2, constant={1}),
    Case("top_k_3_i64", "TopK", 3, [X, ONE], top("max", index_element_type="i64"), outputs=2, constant={1}),
    Case("top_k_11_first_axis", "TopK", 11, [X, ONE], top("min") | {"axis": "0"}, outputs=2, constant={1}),
    Case("top_k_11_stable_max", "TopK", 11, [TIES, THREE], top("max", stable="true"), outputs=2, constant={1}),
    Case("top_k_11_stable_min", "TopK", 11, [TIES, THREE], top("min", stable="true"), outputs=2, constant={1}),
    Case("non_zero", "NonZero", 3, [REPEATED]),
    Case("non_zero_i32", "NonZero", 3, [X > 2], {"output_type": "i32"}),
    Case("unique", "Unique", 10, [REPEATED], outputs=4),
    Case("unique_unsorted", "Unique", 10, [REPEATED], {"sorted": "false", "index_element_type": "i32"}, outputs=4),
    Case("unique_rows", "Unique", 10, [REPEATED, np.array(0, np.int64)], outputs=4, constant={1}),
    Case("unique_columns", "Unique", 10, [REPEATED, ONE], {"sorted": "false"}, outputs=4, constant={1}),
    *(
        Case(f"search_sorted_{right}", "SearchSorted", 15, [SORTED, VALUES], {"right_mode": right})
        for right in ("false", "true")
    ),
    Case("search_one_sequence", "SearchSorted", 15, [SORTED[0], VALUES], {"output_type": "i32"}),
    *(
        Case(f"bucketize_{right}", "Bucketize", 3, [X, SORTED[0]], {"output_type": "i32", "with_right_bound": right})
        for right in ("false", "true")
    ),
    Case("bucketize_nan", "Bucketize", 3, [X * np.nan, SORTED[0]], {"output_type": "i64"}),
]
