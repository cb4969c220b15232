"""Convolutions against sums over plain loops: what the runtime refuses or does otherwise than the page says."""

from __future__ import annotations

import itertools
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from stepper.ops import convolution as convolutions
from stepper.ops import registry
from stepper.ops.convolution import (
    binary_convolution,
    convolution,
    convolution_backprop_data,
    deformable_convolution,
    group_convolution_backprop_data,
)
from tests.ops.recording import Case, cases
from tests.ops.test_recorded import check
from tests.tables import each_row

RANDOM = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, FILTERS = f(1, 2, 5, 6), f(3, 2, 3, 2)


def convolved(
    x: np.ndarray, filters: np.ndarray, counts: tuple[int, int], begin: tuple[int, int], value: float
) -> np.ndarray:
    """Stride and dilation 1: one product after the other, `value` outside."""
    result = np.zeros((len(x), len(filters), *counts))
    places = itertools.product(*map(range, (*result.shape, *filters.shape[1:])))
    for n, o, row, column, channel, down, right in places:
        y, z = row + down - begin[0], column + right - begin[1]
        inside = 0 <= y < x.shape[2] and 0 <= z < x.shape[3]
        result[n, o, row, column] += filters[o, channel, down, right] * (x[n, channel, y, z] if inside else value)
    return result


def transposed(
    x: np.ndarray, filters: np.ndarray, begin: tuple[int, int], size: tuple[int, int], stride: int
) -> np.ndarray:
    """Every product put where it belongs, if that is in the output."""
    result = np.zeros((len(x), filters.shape[1], *size))
    for n, channel, row, column in itertools.product(*map(range, x.shape)):
        for o, down, right in itertools.product(*map(range, filters.shape[1:])):
            y, z = row * stride + down - begin[0], column * stride + right - begin[1]
            if 0 <= y < size[0] and 0 <= z < size[1]:
                result[n, o, y, z] += x[n, channel, row, column] * filters[channel, o, down, right]
    return result


@each_row(("begin", "end"), [((1, 0), (0, 2)), ((-1, 0), (0, -1)), ((-1, 2), (3, -1))])
def test_pads_add_zeros_and_negative_ones_crop(begin: tuple[int, int], end: tuple[int, int]) -> None:
    counts = (5 + begin[0] + end[0] - 2, 6 + begin[1] + end[1] - 1)
    cropped = X[:, :, : 5 + min(end[0], 0), : 6 + min(end[1], 0)]
    expected = convolved(cropped, FILTERS, counts, begin, 0)
    result = convolution(X, FILTERS, pads_begin=begin, pads_end=end)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_integers_are_convolved_exactly() -> None:
    x, filters = np.full((1, 1, 2, 2), 2**40 + 1), np.full((1, 1, 2, 2), 3)
    assert convolution(x, filters).item() == 12 * (2**40 + 1)


def test_bfloat16_is_rounded_once() -> None:
    x, filters = X.astype(ml_dtypes.bfloat16), FILTERS.astype(ml_dtypes.bfloat16)
    exact = convolution(x.astype(np.float32), filters.astype(np.float32))
    np.testing.assert_array_equal(convolution(x, filters), exact.astype(ml_dtypes.bfloat16))


@each_row("columns", [1, 2, 3, 7])
@each_row("case", cases("convolution"), ids=lambda case: case.name)
def test_columns_laid_out_in_parts_give_what_the_runtime_computed(
    case: Case, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolutions, "_LAID_OUT_WHOLE", 0)
    monkeypatch.setattr(convolutions, "_columns_at_once", lambda *_: columns)
    kernel = registry.find(case.type, case.version)
    assert kernel is not None
    check("convolution", case, (kernel.bind(case.attributes)(*case.inputs),))


@each_row("outputs", [1, 64])
def test_a_convolution_with_a_long_kernel_lays_out_a_few_megabytes(outputs: int) -> None:
    signal, filters = f(1, 1, 30_000), f(outputs, 1, 500)
    tracemalloc.start()
    try:
        found = convolution(signal, filters)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    expected = np.correlate(signal[0, 0].astype(np.float64), filters[-1, 0].astype(np.float64))
    np.testing.assert_allclose(found[0, -1], expected, rtol=1e-3, atol=1e-3)
    assert peak - found.nbytes < 10 * 2**20 < expected.size * filters.shape[-1]


def test_an_empty_batch_gives_an_empty_result() -> None:
    assert convolution(X[:0], FILTERS).shape == (0, 3, 3, 5)
    assert convolution_backprop_data(X[:0], f(2, 3, 2, 2)).shape == (0, 3, 6, 7)


@each_row(
    ("auto_pad", "begin"), [("explicit", (1, 1)), ("valid", (1, 1)), ("same_lower", (1, 1)), ("same_upper", (2, 1))]
)
def test_an_output_shape_determines_the_pads(auto_pad: str, begin: tuple[int, int]) -> None:
    x, filters = f(1, 2, 5, 5), f(2, 3, 3, 3)
    result = convolution_backprop_data(
        x, filters, np.array([8, 9]), strides=(2, 2), pads_begin=(2, 2), auto_pad=auto_pad
    )
    np.testing.assert_allclose(result, transposed(x, filters, begin, (8, 9), 2), rtol=1e-4, atol=1e-5)


@each_row(("begin", "end"), [((1, 0), (0, 2)), ((-1, 0), (0, -2))])
def test_a_transposed_convolution_is_cut_by_its_pads(begin: tuple[int, int], end: tuple[int, int]) -> None:
    x, filters = f(2, 2, 3, 3), f(2, 2, 3, 2)
    size = (7 - begin[0] - end[0], 6 - begin[1] - end[1])
    result = convolution_backprop_data(x, filters, strides=(2, 2), pads_begin=begin, pads_end=end)
    np.testing.assert_allclose(result, transposed(x, filters, begin, size, 2), rtol=1e-4, atol=1e-5)


def test_a_grouped_transposed_convolution_keeps_the_groups_apart() -> None:
    x, filters = f(1, 4, 3, 3), f(2, 2, 3, 2, 2)
    parts = [convolution_backprop_data(x[:, 2 * g : 2 * g + 2], filters[g]) for g in range(2)]
    np.testing.assert_allclose(group_convolution_backprop_data(x, filters), np.concatenate(parts, 1), rtol=1e-5)


@each_row("pad_value", [0.0, 1.0, -1.0])
def test_a_binary_convolution_counts_agreement_less_disagreement(pad_value: float) -> None:
    x, bits = RANDOM.integers(0, 2, (1, 3, 4, 4)), RANDOM.integers(0, 2, (2, 3, 3, 3))
    expected = convolved(2 * x - 1, 2 * bits - 1, (4, 4), (1, 1), pad_value)
    result = binary_convolution(x.astype(np.float32), bits, pads_begin=(1, 1), pads_end=(1, 1), pad_value=pad_value)
    np.testing.assert_array_equal(result, expected)


def test_a_binary_convolution_takes_the_lowest_bit_of_each_byte_of_u1_filters_first() -> None:
    x, bits = RANDOM.integers(0, 2, (1, 3, 4, 4)).astype(np.float32), RANDOM.integers(0, 2, (2, 3, 2, 2))
    stored = np.unpackbits(np.packbits(bits.reshape(-1), bitorder="little")).reshape(bits.shape)
    result = binary_convolution(x, stored.astype(ml_dtypes.uint1))
    np.testing.assert_array_equal(result, binary_convolution(x, bits))


def test_a_deformable_convolution_without_offsets_is_a_plain_one() -> None:
    offsets = np.zeros((1, 2 * 6, 5, 7), np.float32)
    pads = {"pads_begin": (1, 1), "pads_end": (1, 1)}
    expected = convolution(X, FILTERS, **pads)
    result = deformable_convolution(X, offsets, FILTERS, bilinear_interpolation_pad=True, **pads)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@each_row(
    "attributes",
    [
        {"strides": (0, 1)},
        {"dilations": (9, 9)},
        {"dilations": (2**31, 1)},
        {"pads_begin": (1, 2, 3)},
        {"pads_begin": (-4, 0)},
        {"strides": (1, 2**63)},
    ],
)
def test_windows_that_cannot_be_are_refused(attributes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(KernelError):
        convolution(X, FILTERS, **attributes)


def test_pads_out_of_proportion_are_refused_before_they_are_allocated() -> None:
    with pytest.raises(TensorTooLarge):
        convolution(X, FILTERS, pads_begin=(10**8, 10**8))
    with pytest.raises(TensorTooLarge):
        convolution_backprop_data(X, f(2, 3, 2, 2), np.array([10**6, 10**6]))


@each_row("filters", [f(3, 3, 3, 2), f(3, 2, 3), f(2, 3, 2, 3, 2)])
def test_filters_that_do_not_fit_are_refused(filters: np.ndarray) -> None:
    with pytest.raises(KernelError):
        convolution(X, filters)
