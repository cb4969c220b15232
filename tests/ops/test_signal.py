"""Fourier transforms against their defining sums, there and back, and faulty sizes."""

from __future__ import annotations

import cmath

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops.signal import dft, idft, irdft, istft, rdft, stft
from tests.ops.bound import i64
from tests.tables import each_row

PAIRS = np.random.default_rng(3).standard_normal((2, 5, 2)).astype(np.float32)


def transformed(values: list[complex], sign: int) -> list[complex]:
    count = len(values)
    turns = [cmath.exp(sign * 2j * cmath.pi * k / count) for k in range(count)]
    return [sum(value * turns[k * n % count] for n, value in enumerate(values)) for k in range(count)]


@each_row("size", [3, 5, 8])
def test_a_transform_is_its_defining_sum(size: int) -> None:
    for row, forward, back in zip(PAIRS, dft(PAIRS, i64(-1), i64(size)), idft(PAIRS, i64(1), i64(size)), strict=True):
        padded = ([complex(*pair) for pair in row.tolist()] + [0j] * size)[:size]
        assert forward[:, 0] + 1j * forward[:, 1] == pytest.approx(transformed(padded, -1), abs=1e-5)
        inverse = [value / size for value in transformed(padded, 1)]
        assert back[:, 0] + 1j * back[:, 1] == pytest.approx(inverse, abs=1e-5)


@each_row("size", [4, 7])
def test_half_a_spectrum_tells_a_real_signal(size: int) -> None:
    signal = np.random.default_rng(4).standard_normal((3, size)).astype(np.float32)
    half = rdft(signal, i64(0, 1))
    assert half.shape == (3, size // 2 + 1, 2)
    np.testing.assert_allclose(irdft(half, i64(0, 1), i64(-1, size)), signal, atol=1e-5)


def test_a_short_spectrum_is_filled_up_with_zeros() -> None:
    spectrum = np.array([[6, 0], [1, 2]], np.float32)
    filled = np.concatenate([spectrum, np.zeros((2, 2), np.float32)])
    np.testing.assert_allclose(irdft(spectrum, i64(0), i64(7)), irdft(filled, i64(0), i64(7)), atol=1e-6)


@each_row("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_the_element_type_stays(dtype: type) -> None:
    result = dft(PAIRS.astype(dtype), i64(0))
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), dft(PAIRS, i64(0)), atol=0.03)


@each_row("normalized", [False, True])
@each_row("transposed", [False, True])
def test_frames_put_together_are_the_signal_again(transposed: bool, normalized: bool) -> None:
    signal = np.random.default_rng(5).standard_normal((2, 20)).astype(np.float32)
    window = np.array([0.5, 1, 1, 0.5], np.float32)
    spectrum = stft(signal, window, np.int64(6), np.int64(2), transpose_frames=transposed)
    if not transposed:
        spectrum = np.swapaxes(spectrum, -2, -3)
    if normalized:
        spectrum = spectrum / np.sqrt(np.float32(6))
    with np.errstate(all="ignore"):
        back = istft(spectrum, window, np.int64(6), np.int64(2), normalized=normalized)
        centered = istft(spectrum, window, np.int64(6), np.int64(2), center=True, normalized=normalized)
    np.testing.assert_allclose(back[:, 1:-1], signal[:, 1:-1], atol=1e-5)
    np.testing.assert_allclose(centered, signal[:, 3:-3], atol=1e-5)


@each_row(
    ("axes", "sizes"),
    [([2], None), ([0, 0], None), ([], None), ([0], [1, 2]), ([0], [0]), ([0], [10**12]), ([0], [-5])],
)
def test_axes_and_sizes_that_do_not_fit_are_refused(axes: list[int], sizes: list[int] | None) -> None:
    for kernel in (dft, idft, irdft):
        with pytest.raises(KernelError):
            kernel(PAIRS, i64(*axes), None if sizes is None else i64(*sizes))


@each_row(("size", "step"), [(0, 1), (2, 1), (99, 1), (10**13, 1), (8, 0)])
def test_frames_that_do_not_fit_are_refused(size: int, step: int) -> None:
    window = np.ones(4, np.float32)
    with pytest.raises(KernelError):
        stft(np.zeros(20, np.float32), window, np.int64(size), np.int64(step))
    with pytest.raises(KernelError):
        istft(np.zeros((7, 3, 2), np.float32), window, np.int64(size), np.int64(step))


def test_a_signal_out_of_proportion_is_refused() -> None:
    spectrum, window = np.zeros((3, 3, 2), np.float32), np.ones(4, np.float32)
    with pytest.raises(KernelError, match="MB"):
        istft(spectrum, window, np.int64(4), np.int64(10**12))
    with np.errstate(all="ignore"), pytest.raises(KernelError, match="MB"):
        istft(spectrum, window, np.int64(4), np.int64(2), np.int64(10**12))


def test_a_spectrum_without_an_axis_of_frames_is_refused() -> None:
    with pytest.raises(
        KernelError, match=r"the data has the shape \[4,2\], for frames of 4 expected \[\.\.\.,3,frames,2\]"
    ):
        istft(np.zeros((4, 2), np.float32), np.ones(4, np.float32), np.int64(4), np.int64(2))
