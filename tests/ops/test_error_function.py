"""The error function against the standard library's, its inverse against the function itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stepper.ops.elementwise import erf, erfinv
from tests.tables import each_row

SOME = np.concatenate([np.linspace(-6.5, 6.5, 1301), np.geomspace(1e-30, 1.0, 50), -np.geomspace(1e-30, 1.0, 50)])


@each_row(("dtype", "tolerance"), [(np.float32, 5e-7), (np.float64, 1e-15)])
def test_erf_is_that_of_the_standard_library(dtype: type, tolerance: float) -> None:
    x = SOME.astype(dtype)
    expected = [math.erf(value) for value in x.tolist()]
    np.testing.assert_allclose(erf(x), expected, rtol=tolerance)


def test_erf_of_half_precision_is_rounded_once() -> None:
    x = SOME.astype(np.float16)
    np.testing.assert_array_equal(erf(x), np.array([math.erf(value) for value in x.tolist()]).astype(np.float16))


def test_a_large_tensor_gives_what_its_parts_give() -> None:
    x = np.linspace(-5, 5, 20_000, dtype=np.float32).reshape(2, 100, 100).transpose(2, 0, 1)
    np.testing.assert_array_equal(erf(x)[7, 1], erf(x[7, 1]))


def test_erf_reaches_one_and_passes_nan_on() -> None:
    x = np.array([np.inf, -np.inf, np.nan, -0.0, 5.0], np.float32)
    np.testing.assert_array_equal(erf(x), np.array([1, -1, np.nan, -0.0, 1], np.float32))


@each_row("value", [1e-300, 1e-9, 0.1, 0.5, 0.9, 0.99, 0.999999, 1 - 1e-12, -0.3])
def test_erf_of_erfinv_is_the_number_itself(value: float) -> None:
    y = erfinv(np.array(value)).item()
    if abs(value) < 0.99:
        assert math.erf(y) == pytest.approx(value, rel=1e-15)
    else:
        assert math.erfc(abs(y)) == pytest.approx(1 - abs(value), rel=1e-13)


def test_erfinv_ends_in_infinity_and_is_nothing_beyond() -> None:
    with np.errstate(all="ignore"):
        y = erfinv(np.array([1.0, -1.0, 1.5, np.nan, 0.0], np.float32))
    np.testing.assert_array_equal(y, np.array([np.inf, -np.inf, np.nan, np.nan, 0], np.float32))
