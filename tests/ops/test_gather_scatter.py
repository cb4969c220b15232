"""Gathering and scattering against plain loops, in narrow types and with indices outside."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from tests.ops.bound import i64, kernel
from tests.tables import each_row

RANDOM = np.random.default_rng(7)
ZERO = np.array(0, np.int64)


@each_row("version", [1, 7, 8])
@each_row(("axis", "batch_dims"), [(0, 0), (1, 0), (-1, 0), (1, 1), (2, 1), (2, 2), (-1, -1)])
def test_gather_reads_along_the_axis_and_zeros_outside(version: int, axis: int, batch_dims: int) -> None:
    data = RANDOM.integers(1, 99, (2, 3, 4))
    indices = RANDOM.integers(-6, 6, (2, 3, 5)[: 3 if batch_dims else 2])
    position, batch = axis % 3, batch_dims % indices.ndim
    expected = np.zeros((*data.shape[:position], *indices.shape[batch:], *data.shape[position + 1 :]), data.dtype)
    inner = indices.ndim - batch
    for place in np.ndindex(expected.shape):
        index = indices[(*place[:batch], *place[position : position + inner])]
        if -data.shape[position] <= index < data.shape[position]:
            expected[place] = data[(*place[:position], index, *place[position + inner :])]
    actual = kernel("Gather", version, batch_dims=str(batch_dims))(data, indices, np.array([axis]))
    np.testing.assert_array_equal(actual, expected)


def test_gather_out_of_an_empty_axis_gives_zeros() -> None:
    assert kernel("Gather", 8)(np.ones((0, 3)), i64(0, 1), ZERO).tolist() == [[0, 0, 0]] * 2
    assert kernel("Gather", 8)(np.ones((0, 3)), i64(), ZERO).shape == (0, 3)


def test_scatter_rounds_narrow_floats_once() -> None:
    data, updates = np.full(1, 256, ml_dtypes.bfloat16), np.full(4, 1, ml_dtypes.bfloat16)
    result = kernel("ScatterElementsUpdate", 12, reduction="sum")(data, i64(0, 0, 0, 0), updates, ZERO)
    assert result.dtype == data.dtype
    assert result.tolist() == [260]


@each_row(("reduction", "expected"), [("sum", [1, 1, 0]), ("prod", [0, 1, 0]), ("max", [1, 1, 0])])
def test_scatter_of_booleans_is_logical(reduction: str, expected: list[int]) -> None:
    data, updates = np.array([True, False, False]), np.array([False, True, True])
    attributes = {"reduction": reduction, "use_init_val": "true" if reduction != "prod" else "false"}
    result = kernel("ScatterElementsUpdate", 12, **attributes)(data, i64(0, 1, 1), updates, ZERO)
    assert result.tolist() == [bool(value) for value in expected]


def test_scatter_mean_of_integers_is_rounded_down_and_does_not_overflow() -> None:
    mean = kernel("ScatterElementsUpdate", 12, reduction="mean")
    assert mean(np.array([-1, 0], np.int32), i64(0, 1), np.array([-2, -1], np.int32), ZERO).tolist() == [-2, -1]
    assert mean(np.array([200], np.uint8), i64(0), np.array([202], np.uint8), ZERO).tolist() == [201]


def test_scatter_is_exact_in_64_bits() -> None:
    big = 2**62 + 1
    result = kernel("ScatterNDUpdate", 15, reduction="sum")(i64(big), i64(0).reshape(1, 1), i64(2))
    assert result.tolist() == [big + 2]


def test_scatter_update_takes_a_scalar_index() -> None:
    result = kernel("ScatterUpdate", 3)(np.zeros((2, 2)), np.array(1), np.ones(2), ZERO)
    assert result.tolist() == [[0, 0], [1, 1]]


SQUARE = np.ones((2, 2))


@each_row(
    ("type", "version", "attributes", "inputs"),
    [
        ("Gather", 8, {}, [SQUARE, i64(0), np.array(2)]),
        ("Gather", 8, {}, [SQUARE, i64(0), i64(0, 1)]),
        ("Gather", 8, {"batch_dims": "1"}, [SQUARE, np.zeros((3, 1), np.int64), np.array(1)]),
        ("Gather", 8, {"batch_dims": "9"}, [SQUARE, np.zeros((2, 1), np.int64), np.array(1)]),
        ("GatherElements", 6, {}, [SQUARE, i64(2, 0).reshape(1, 2)]),
        ("GatherElements", 6, {}, [SQUARE, i64(0)]),
        ("GatherND", 8, {}, [SQUARE, i64(0, 2)]),
        ("GatherND", 8, {}, [SQUARE, i64(0, 0, 0)]),
        ("GatherND", 8, {"batch_dims": "2"}, [SQUARE, np.zeros((2, 2), np.int64)]),
        ("ScatterUpdate", 3, {}, [SQUARE, i64(2), SQUARE[:1], ZERO]),
        ("ScatterUpdate", 3, {}, [SQUARE, i64(0), SQUARE, ZERO]),
        ("ScatterElementsUpdate", 12, {}, [SQUARE, i64(2, 0).reshape(1, 2), SQUARE[:1], ZERO]),
        ("ScatterElementsUpdate", 12, {}, [SQUARE, i64(0), SQUARE, ZERO]),
        ("ScatterNDUpdate", 15, {"reduction": "sum"}, [SQUARE, i64(5).reshape(1, 1), SQUARE[:1]]),
        ("ScatterNDUpdate", 15, {"reduction": "sub"}, [SQUARE > 0, i64(0).reshape(1, 1), SQUARE[:1] > 0]),
        ("ScatterNDUpdate", 4, {}, [SQUARE, i64(0).reshape(1, 1), SQUARE]),
        ("GatherTree", 1, {}, [np.ones((1, 1, 2)), np.full((1, 1, 2), 2), i64(1), ZERO]),
    ],
)
def test_indices_that_do_not_fit_are_refused(
    type: str, version: int, attributes: dict[str, str], inputs: list[Any]
) -> None:
    with pytest.raises(KernelError):
        kernel(type, version, **attributes)(*inputs)
