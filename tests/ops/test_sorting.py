"""Order among elements against plain loops, and arguments that do not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from tests.ops.bound import kernel
from tests.tables import each_row


@each_row("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int64])
@each_row("mode", ["max", "min"])
@each_row("sort", ["none", "value", "index"])
@each_row("k", [0, 1, 7, 40])
def test_top_k_prefers_the_lower_index_among_equals(dtype: Any, mode: str, sort: str, k: int) -> None:
    row = np.random.default_rng(3).integers(0, 6, 40).astype(dtype)
    sign = -1.0 if mode == "max" else 1.0
    expected = sorted(range(40), key=lambda i: (sign * float(row[i]), i))[:k]
    if sort == "index":
        expected.sort()
    values, indices = kernel("TopK", 11, axis="-1", mode=mode, sort=sort)(row[None], np.array(k))
    assert indices.tolist() == [expected]
    assert values.dtype == row.dtype
    np.testing.assert_array_equal(values[0], row[expected])


def test_top_k_of_extreme_integers_is_exact() -> None:
    row = np.array([-(2**63), 2**63 - 1, 2**63 - 2], np.int64)
    values, _ = kernel("TopK", 3, mode="max")(row, np.array(3))
    assert values.tolist() == [2**63 - 1, 2**63 - 2, -(2**63)]


@each_row("k", [-1, 4, 2**62])
def test_top_k_refuses_a_k_outside_the_dimension(k: int) -> None:
    with pytest.raises(KernelError):
        kernel("TopK", 3)(np.ones(3), np.array(k))


def test_non_zero_of_a_scalar_has_no_coordinates_but_one_column() -> None:
    assert kernel("NonZero", 3)(np.float32(0)).shape == (0, 0)
    assert kernel("NonZero", 3)(np.float32(2)).tolist() == [[0]]


def test_non_zero_counts_nan_and_not_negative_zero() -> None:
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        assert kernel("NonZero", 3)(np.array([np.nan, -0.0, 0.5], dtype)).tolist() == [[0, 2]]


@each_row("sorted", ["true", "false"])
def test_unique_of_nothing_is_nothing(sorted: str) -> None:
    assert [out.size for out in kernel("Unique", 10, sorted=sorted)(np.ones((0, 3)))] == [0, 0, 0, 0]
    values, first, which, counts = kernel("Unique", 10, sorted=sorted)(np.ones((0, 3)), np.array(1))
    assert (values.shape, first.tolist(), which.tolist(), counts.tolist()) == ((0, 1), [0], [0, 0, 0], [3])


@each_row("right", ["true", "false"])
@each_row("length", [0, 1, 2, 7, 8])
def test_search_in_rows_agrees_with_a_search_in_each_row(right: str, length: int) -> None:
    random = np.random.default_rng(length)
    rows = np.sort(random.integers(0, 9, (2, 3, length)), -1).astype(np.float32)
    values = random.integers(-1, 11, (2, 3, 5)).astype(np.float32)
    places = kernel("SearchSorted", 15, right_mode=right)(rows, values)
    for row in np.ndindex(2, 3):
        expected = np.searchsorted(rows[row], values[row], "right" if right == "true" else "left")
        np.testing.assert_array_equal(places[row], expected)


def test_bucketize_of_integers_among_fractions_is_exact() -> None:
    bucketize = kernel("Bucketize", 3, output_type="i32")
    assert bucketize(np.array([4, 7]), np.array([4, 6.5], np.float32)).tolist() == [0, 2]


@each_row(
    ("type", "version", "inputs"),
    [("SearchSorted", 15, [np.ones((2, 3)), np.ones((3, 1))]), ("Bucketize", 3, [np.ones(2), np.ones((1, 2))])],
)
def test_sequences_that_do_not_fit_are_refused(type: str, version: int, inputs: list[Any]) -> None:
    with pytest.raises(KernelError):
        kernel(type, version, output_type="i32")(*inputs)
