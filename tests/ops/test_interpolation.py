"""Interpolation against plain formulas: what the runtime refuses, computes otherwise, or cannot be asked."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from stepper.ops.images import grid_sample, interpolate_1, interpolate_4, interpolate_11
from tests.tables import each_row

X = np.random.default_rng(0).standard_normal((1, 2, 6, 7)).astype(np.float32)
AXES = np.array([2, 3])


def antialiased(x: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """Mode linear with antialias, half_pixel: triangles as wide as the scale asks, over all of the input."""
    scales = [new / old for new, old in zip(sizes, x.shape, strict=True)]
    result = np.zeros(sizes)
    for place in itertools.product(*map(range, sizes)):
        total = weights = 0.0
        for element in itertools.product(*map(range, x.shape)):
            weight = 1.0
            for at, source, scale in zip(place, element, scales, strict=True):
                position = at if scale == 1 else (at + 0.5) / scale - 0.5
                weight *= max(0.0, 1 - abs(scale * (position - source)))
            weights += weight
            total += weight * x[element]
        result[place] = total / weights
    return result


@each_row("sizes", [(3, 3), (2, 7), (3, 9)])
def test_antialiasing_widens_the_triangle_where_an_axis_shrinks(sizes: tuple[int, int]) -> None:
    result = interpolate_4(X, np.array(sizes), np.ones(2, np.float32), AXES, mode="linear", antialias=True)
    np.testing.assert_allclose(result[0, 0], antialiased(X[0, 0], sizes), rtol=1e-4, atol=1e-5)


def test_antialiasing_leaves_an_axis_that_grows_as_it_is() -> None:
    plain, smooth = (
        interpolate_11(X, np.array([9, 14]), AXES, mode="linear", antialias=antialias) for antialias in (False, True)
    )
    np.testing.assert_array_equal(plain, smooth)


def test_area_is_the_mean_of_what_is_covered() -> None:
    result = interpolate_1(X, np.array([3, 7]), axes=(2, 3), mode="area")
    np.testing.assert_allclose(result, X.reshape(1, 2, 3, 2, 7).mean(axis=3), rtol=1e-5, atol=1e-6)
    line = interpolate_1(np.array([0.0, 3.0, 6.0], np.float32), np.array([2]), axes=(0,), mode="area")
    np.testing.assert_allclose(line, [1.0, 5.0], rtol=1e-6)


def test_one_number_of_padding_counts_for_each_resized_axis() -> None:
    padded = np.pad(X, ((0, 0), (0, 0), (1, 2), (1, 2)))
    expected = interpolate_1(padded, np.array([9, 5]), axes=(2, 3), mode="linear")
    result = interpolate_1(X, np.array([9, 5]), axes=(2, 3), mode="linear", pads_begin=(1,), pads_end=(2,))
    np.testing.assert_array_equal(result, expected)


def test_integers_are_rounded_and_held_in_their_range() -> None:
    x = np.array([[0, 0, 255, 255]], np.uint8)
    result = interpolate_11(x, np.array([8]), np.array([1]), mode="cubic")
    wide = interpolate_11(x.astype(np.float32), np.array([8]), np.array([1]), mode="cubic")
    assert wide.min() < 0
    np.testing.assert_array_equal(result, np.clip(np.rint(wide), 0, 255))


def test_the_nearest_element_is_taken_from_any_type() -> None:
    x = np.array([2**62 + 1, -5], np.int64)
    assert interpolate_11(x, np.array([4])).tolist() == [2**62 + 1, 2**62 + 1, -5, -5]
    assert interpolate_11(np.array([True, False]), np.array([4])).dtype == np.bool_


def test_half_precision_is_rounded_once() -> None:
    narrow = X.astype(np.float16)
    exact = interpolate_11(narrow.astype(np.float32), np.array([9, 3]), AXES, mode="cubic")
    result = interpolate_11(narrow, np.array([9, 3]), AXES, mode="cubic")
    np.testing.assert_array_equal(result, exact.astype(np.float16))


def test_an_axis_of_size_zero_can_be_asked_for() -> None:
    assert interpolate_11(X, np.array([0, 3]), AXES, mode="linear").shape == (1, 2, 0, 3)


@each_row(
    ("sizes", "axes", "more"),
    [
        ([3], [2, 3], {}),
        ([3, 3], [2, 2], {}),
        ([3, 3], [2, 4], {}),
        ([-1, 3], [2, 3], {}),
        ([3, 3], [2, 3], {"pads_begin": (-1,)}),
        ([3, 3], [2, 3], {"pads_begin": (0, 0, 0, 0, 1)}),
        ([math.nan, 1.0], [2, 3], {"shape_calculation_mode": "scales"}),
        ([-1.0, 1.0], [2, 3], {"shape_calculation_mode": "scales"}),
    ],
)
def test_what_cannot_be_resized_is_refused(sizes: list[float], axes: list[int], more: dict[str, Any]) -> None:
    with pytest.raises(KernelError):
        interpolate_11(X, np.array(sizes), np.array(axes), **more)


def test_sizes_out_of_proportion_are_refused() -> None:
    with pytest.raises(TensorTooLarge):
        interpolate_11(X, np.array([10**6, 10**6]), AXES)
    with pytest.raises(TensorTooLarge):
        interpolate_11(X, np.array([1e9, 1e9], np.float32), AXES, shape_calculation_mode="scales")


def test_places_that_are_no_numbers_or_far_outside_do_no_harm() -> None:
    grid = np.array([[[[np.nan, 0], [1e30, 0], [-np.inf, 0.5]]]], np.float32)
    for padding in ("zeros", "border", "reflection"):
        with np.errstate(invalid="ignore"):
            result = grid_sample(X, grid, mode="nearest", padding_mode=padding)
        assert result.shape == (1, 2, 1, 3)
    assert (grid_sample(X, grid[:, :, 1:], mode="bilinear") == 0).all()


@each_row(("data", "grid"), [((1, 2, 3), (1, 2, 2, 2)), ((2, 1, 3, 3), (1, 2, 2, 2)), ((1, 1, 0, 3), (1, 2, 2, 2))])
def test_a_grid_that_does_not_fit_is_refused(data: tuple[int, ...], grid: tuple[int, ...]) -> None:
    with pytest.raises(KernelError):
        grid_sample(np.zeros(data, np.float32), np.zeros(grid, np.float32))
