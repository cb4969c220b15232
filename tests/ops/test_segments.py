"""Rows reduced by segment: narrow types, empty segments, and arguments that do not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from tests.ops.bound import i64, kernel
from tests.tables import each_row

HUGE = np.array(2**62, np.int64)
TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)


@each_row("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int64])
def test_an_empty_segment_holds_the_lowest_number_of_its_type(dtype: Any) -> None:
    result = kernel("SegmentMax", 16, fill_mode="LOWEST")(np.array([1, 3], dtype), i64(1, 1))
    assert result.dtype == dtype
    assert result.tolist() == [(np.iinfo(dtype) if np.dtype(dtype).kind == "i" else ml_dtypes.finfo(dtype)).min, 3]


def test_segment_max_without_rows() -> None:
    assert kernel("SegmentMax", 16)(TABLE[:0], i64()).shape == (0, 2)
    assert kernel("SegmentMax", 16)(TABLE[:0], i64(), np.array(2)).tolist() == [[0, 0], [0, 0]]


def test_embedding_sums_round_narrow_floats_once() -> None:
    table = np.array([[256], [1]], ml_dtypes.bfloat16)
    result = kernel("EmbeddingBagPackedSum", 3)(table, i64(0, 1, 1, 1, 1).reshape(1, 5))
    assert result.tolist() == [[260]]


def test_a_sparse_tensor_without_elements_becomes_one_of_defaults() -> None:
    empty = np.zeros((0, 2), np.int64)
    indices, values, rows = kernel("SparseFillEmptyRows", 16)(TABLE[:0, 0], i64(2, 2), empty, np.float32(7))
    assert (indices.tolist(), values.tolist(), rows.tolist()) == ([[0, 0], [1, 0]], [7, 7], [True, True])


@each_row(
    ("type", "version", "attributes", "inputs"),
    [
        ("SegmentMax", 16, {}, [TABLE, i64(0, 2, 1)]),
        ("SegmentMax", 16, {}, [TABLE, i64(-1, 0, 1)]),
        ("SegmentMax", 16, {}, [TABLE, i64(0, 1)]),
        ("SegmentMax", 16, {}, [TABLE[:, :0], i64(0, 1, 2), HUGE]),
        ("SparseFillEmptyRows", 16, {}, [TABLE[0], i64(2**62, 1), i64(0, 0, 1, 1).reshape(2, 2), np.float32(0)]),
        ("SparseFillEmptyRows", 16, {}, [TABLE[0], i64(1, 1), i64(0, 0, 1, 1).reshape(2, 2), np.float32(0)]),
        ("EmbeddingBagOffsetsSum", 3, {}, [TABLE, i64(3), i64(0)]),
        ("EmbeddingBagOffsetsSum", 3, {}, [TABLE, i64(0), i64(2)]),
        ("EmbeddingBagOffsetsSum", 3, {}, [TABLE, i64(0, 1), i64(1, 0)]),
        ("EmbeddingBagOffsetsSum", 3, {}, [TABLE, i64(), i64(0), np.array(9)]),
        ("EmbeddingBagOffsets", 15, {"reduction": "mean"}, [TABLE, i64(0), i64(0), np.array(0), TABLE[0, :1]]),
        ("EmbeddingBagPacked", 15, {}, [TABLE, i64(0)]),
        ("EmbeddingSegmentsSum", 3, {}, [TABLE, i64(0), i64(0), HUGE]),
        ("EmbeddingSegmentsSum", 3, {}, [TABLE, i64(0), i64(4), np.array(4)]),
    ],
)
def test_segments_that_do_not_fit_are_refused(
    type: str, version: int, attributes: dict[str, str], inputs: list[Any]
) -> None:
    with pytest.raises(KernelError):
        kernel(type, version, **attributes)(*inputs)
