"""Reductions where the runtime departs from the element types as declared, or refuses."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops import registry
from tests.tables import each_row

NO_AXES = np.zeros(0, np.int64)


def run(type: str, x: np.ndarray, axes: np.ndarray, **attributes: str) -> np.ndarray:
    kernel = next(kernel for (name, _), kernel in registry.all_kernels().items() if name == type)
    result: np.ndarray = kernel.bind(attributes)(x, axes)
    return result


@each_row(("type", "expected"), [("Sum", 2**60 + 1), ("Max", 2**60), ("Min", 1), ("Prod", 2**60), ("L1", 2**60 + 1)])
def test_64_bit_integers_are_exact(type: str, expected: int) -> None:
    assert run(f"Reduce{type}", np.array([2**60, 1]), np.array([0])).item() == expected


def test_a_sum_of_bytes_wraps_and_keeps_its_type() -> None:
    total = run("ReduceSum", np.full(300, 1, np.uint8), np.array(0))
    assert (total.item(), total.dtype) == (300 - 256, np.uint8)


def test_a_mean_of_integers_loses_its_fraction() -> None:
    means = run("ReduceMean", np.array([[-3, -4], [3, 4]], np.int32), np.array([1]))
    assert (means.tolist(), means.dtype) == ([-3, 3], np.int32)


def test_a_sum_in_half_precision_is_rounded_once() -> None:
    x = np.full((4096, 2), 0.1, np.float16)
    exact = sum(x[:, 0].astype(float).tolist())
    np.testing.assert_allclose(run("ReduceSum", x, np.array([0])).astype(float), exact, rtol=2**-10)


@each_row("type", ["Sum", "Mean", "Max", "Min", "Prod"])
def test_no_axes_reduce_nothing(type: str) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(f"Reduce{type}", x, NO_AXES), x)


@each_row(
    ("type", "expected"), [("Sum", 0), ("Prod", 1), ("L1", 0), ("L2", 0), ("LogicalAnd", True), ("LogicalOr", False)]
)
def test_nothing_reduces_to_the_neutral_element(type: str, expected: float) -> None:
    x = np.zeros((2, 0), np.bool_ if type.startswith("Logical") else np.float32)
    assert run(f"Reduce{type}", x, np.array([1])).tolist() == [expected] * 2


def test_the_extrema_of_nothing_are_the_ends_of_the_type() -> None:
    nothing = np.zeros((1, 0), np.int32)
    assert run("ReduceMax", nothing, np.array([1])).tolist() == [-(2**31)]
    assert run("ReduceMin", nothing, np.array([1])).tolist() == [2**31 - 1]


@each_row("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_the_extrema_of_no_real_numbers_are_infinite(dtype: type) -> None:
    nothing = np.zeros((1, 0), dtype)
    assert run("ReduceMax", nothing, np.array([1])).tolist() == [-np.inf]
    assert run("ReduceMin", nothing, np.array([1])).tolist() == [np.inf]


@each_row(("type", "extrema"), [("Max", [2, 3]), ("Min", [1, 2])])
def test_an_extremum_is_one_of_the_numbers_wherever_a_nan_is(type: str, extrema: list[float]) -> None:
    x = np.array([[np.nan, 1, 2], [3, 2, np.nan]], np.float32)
    assert run(f"Reduce{type}", x, np.array([1])).tolist() == extrema
    assert np.isnan(run(f"Reduce{type}", np.array([np.nan, np.nan]), np.array([0])))


def test_an_axis_out_of_range_is_refused() -> None:
    with pytest.raises(KernelError, match="axis 2 is out of range"):
        run("ReduceSum", np.ones((2, 3)), np.array([0, 2]))


def test_a_cumulative_sum_needs_one_axis() -> None:
    with pytest.raises(KernelError, match="one number"):
        run("CumSum", np.ones((2, 3)), np.array([0, 1]))
    assert run("CumSum", np.ones((2, 3)), np.array([1])).tolist() == [[1, 2, 3]] * 2
