"""Pooling against plain loops over windows: exact rules, NaN, infinities, faulty attributes."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from stepper.ops.convolution import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool, max_pool_1
from tests.tables import each_row

X = np.random.default_rng(0).standard_normal((2, 2, 5, 6)).astype(np.float32)


def under(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    begin: tuple[int, int],
    dilations: tuple[int, int],
    at: tuple[int, int],
) -> list[tuple[int, int]]:
    """The places of the data under one window."""
    places = [
        tuple(
            start * step + element * apart - before
            for start, step, element, apart, before in zip(at, strides, elements, dilations, begin, strict=True)
        )
        for elements in itertools.product(*map(range, kernel))
    ]
    return [(y, x) for y, x in places if 0 <= y < 5 and 0 <= x < 6]


@each_row("dilations", [(1, 1), (2, 1), (2, 3)])
@each_row("kernel", [(2, 2), (3, 2), (1, 3)])
@each_row("rounding", ["floor", "ceil", "ceil_torch"])
def test_windows_cover_what_the_attributes_say(
    kernel: tuple[int, int], dilations: tuple[int, int], rounding: str
) -> None:
    strides, begin, end = (2, 1), (0, 1), (1, 0)
    attributes = {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations}
    with np.errstate(invalid="ignore"):
        mean = avg_pool(X, **attributes, rounding_type=rounding)
    greatest, indices = max_pool(X, **attributes, rounding_type=rounding, axis=2)
    for n, c, *at in itertools.product(*map(range, mean.shape)):
        places = under(kernel, strides, begin, dilations, (at[0], at[1]))
        values = [float(X[n, c, y, x]) for y, x in places]
        place = (n, c, *at)
        if not values:
            assert np.isnan(mean[place])
            assert greatest[place] == -np.inf
            continue
        assert mean[place] == pytest.approx(sum(values) / len(values), rel=1e-5, abs=1e-6)
        assert greatest[place] == np.float32(max(values))
        y, x = places[values.index(max(values))]
        assert indices[place] == y * 6 + x


def test_nan_is_kept_and_the_first_of_them_is_the_index() -> None:
    x = np.array([[[1.0, np.nan, np.nan, 2.0]]], np.float32)
    values, indices = max_pool(x, kernel=(3,), strides=(1,))
    assert np.isnan(values).all()
    assert indices.tolist() == [[[1, 1]]]
    assert np.isnan(max_pool_1(x, kernel=(3,), strides=(1,))).all()


def test_minus_infinity_in_the_data_is_found_before_the_padding() -> None:
    values, indices = max_pool(np.full((1, 2, 2), -np.inf), kernel=(2,), strides=(2,), pads_begin=(1,), pads_end=(1,))
    assert (values == -np.inf).all()
    assert indices.tolist() == [[[0, 1], [2, 3]]]


@each_row("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_mean_of_half_precision_is_rounded_once(dtype: type) -> None:
    x = X.astype(dtype)
    exact = avg_pool(x.astype(np.float32), kernel=(5, 6), strides=(1, 1))
    np.testing.assert_array_equal(avg_pool(x, kernel=(5, 6), strides=(1, 1)), exact.astype(dtype))
    assert max_pool(x, kernel=(2, 2), strides=(1, 1))[0].dtype == dtype


def test_indices_are_of_the_type_that_is_asked_for() -> None:
    assert max_pool(X, kernel=(2, 2), strides=(2, 2))[1].dtype == np.int64
    assert max_pool(X, kernel=(2, 2), strides=(2, 2), index_element_type="i32")[1].dtype == np.int32
    assert adaptive_max_pool(X, np.array([2, 2]))[1].dtype == np.int64


@each_row("sizes", [(1, 1), (3, 4), (5, 6), (7, 9)])
def test_adaptive_bins_cover_the_data(sizes: tuple[int, int]) -> None:
    mean = adaptive_avg_pool(X, np.array(sizes))
    greatest, indices = adaptive_max_pool(X, np.array(sizes))
    flat = X.reshape(2, 2, -1)
    for row, column in itertools.product(*map(range, sizes)):
        rows = slice(row * 5 // sizes[0], -(-(row + 1) * 5 // sizes[0]))
        columns = slice(column * 6 // sizes[1], -(-(column + 1) * 6 // sizes[1]))
        part = X[:, :, rows, columns]
        np.testing.assert_allclose(mean[:, :, row, column], part.mean(axis=(2, 3)), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(greatest[:, :, row, column], part.max(axis=(2, 3)))
    found = np.take_along_axis(flat, indices.reshape(2, 2, -1), axis=2)
    np.testing.assert_array_equal(found.reshape(greatest.shape), greatest)


@each_row(
    "attributes",
    [
        {"kernel": (0, 2), "strides": (1, 1)},
        {"kernel": (2,), "strides": (1, 1)},
        {"kernel": (6, 2), "strides": (1, 1)},
        {"kernel": (2, 2), "strides": (0, 1)},
        {"kernel": (2, 2), "strides": (1, 1), "pads_begin": (-1, 0)},
        {"kernel": (2, 2), "strides": (1, 1), "pads_end": (10**9, 10**9)},
        {"kernel": (3 * 10**7, 1), "strides": (1, 1), "pads_begin": (3 * 10**7, 0)},
    ],
)
def test_windows_that_cannot_be_are_refused(attributes: dict[str, tuple[int, ...]]) -> None:
    for pool in (avg_pool, max_pool, max_pool_1):
        with pytest.raises(KernelError):
            pool(X[:1, :1], **attributes)


@each_row("sizes", [[0, 2], [2], [-1, 2]])
def test_adaptive_sizes_that_cannot_be_are_refused(sizes: list[int]) -> None:
    with pytest.raises(KernelError):
        adaptive_avg_pool(X, np.array(sizes))


def test_an_adaptive_result_out_of_proportion_is_refused() -> None:
    with pytest.raises(TensorTooLarge):
        adaptive_max_pool(X, np.array([10**6, 10**6]))


@each_row("rounding", ["ceil", "ceil_torch"])
@each_row(
    ("begin", "end", "expected"),
    [
        ((0,), (0,), [1, 1, 1]),  # no padding: what the last window lacks is not counted
        ((1,), (0,), [2 / 3, 1, 2 / 3]),  # with padding each window counts whole
    ],
)
def test_a_window_that_ends_beyond_the_data_counts_as_whole_only_beside_padding(
    begin: tuple[int, ...], end: tuple[int, ...], expected: list[float], rounding: str
) -> None:
    """As OpenVINO's reference and its CPU plugin have it (2026.4), and ONNX's AveragePool without pads."""
    size = 8 if begin == (0,) else 7
    x = np.ones((1, 1, size), np.float32)
    pads = {"pads_begin": begin, "pads_end": end, "rounding_type": rounding}
    result = avg_pool(x, kernel=(3,), strides=(3,), exclude_pad=False, **pads)
    np.testing.assert_allclose(result.ravel(), expected)
    spread = avg_pool(np.ones((1, 1, 8), np.float32), kernel=(4,), strides=(3,), dilations=(2,), exclude_pad=False,
                      pads_begin=(0,), pads_end=(0,), rounding_type=rounding)  # fmt: skip
    assert spread.ravel().tolist() == [1, 1]
