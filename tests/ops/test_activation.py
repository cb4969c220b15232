"""Activation functions where the runtime departs from IEEE 754, refuses, or has no case of its own."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops import registry
from tests.tables import each_row

FORMULAS = {
    ("Sigmoid", 1): lambda x: 1 / (1 + math.exp(-x)),
    ("Mish", 4): lambda x: x * math.tanh(math.log1p(math.exp(x))),
    ("SoftPlus", 4): lambda x: math.log1p(math.exp(x)),
    ("Swish", 4): lambda x: x / (1 + math.exp(-x)),
    ("HSwish", 4): lambda x: x * min(max(x + 3, 0), 6) / 6,
    ("Gelu", 7): lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
}
X = np.linspace(-30, 30, 61)


def run(type: str, version: int, *inputs: np.ndarray, **attributes: str) -> np.ndarray:
    kernel = registry.find(type, version)
    assert kernel is not None
    with np.errstate(all="ignore"):
        result: np.ndarray = kernel.bind(attributes)(*inputs)
    return result


@each_row(("type", "version"), FORMULAS)
@each_row(
    ("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-6), (np.float16, 1e-3), (ml_dtypes.bfloat16, 8e-3)]
)
def test_formula_holds_in_every_float(type: str, version: int, dtype: type, tolerance: float) -> None:
    x = X.astype(dtype)
    expected = [FORMULAS[type, version](float(value)) for value in x]
    result = run(type, version, x)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@each_row(("type", "version"), [("Relu", 1), ("Clamp", 1), ("HSigmoid", 5), *FORMULAS])
def test_nan_is_passed_on(type: str, version: int) -> None:
    assert np.isnan(run(type, version, np.array([np.nan], np.float32))).all()


def test_bounds_of_clamp_beyond_the_integer_type_do_nothing() -> None:
    x = np.array([-128, 0, 127], np.int8)
    assert run("Clamp", 1, x, min="-inf", max="1e30").tolist() == x.tolist()


def test_clamp_refuses_crossed_bounds() -> None:
    with pytest.raises(KernelError, match="must not exceed"):
        run("Clamp", 1, np.ones(2, np.float32), min="2", max="1")


def test_a_slope_of_higher_rank_loses_its_leading_ones_only() -> None:
    x = -np.ones((2, 3), np.float32)
    assert run("PRelu", 1, x, np.full((1, 1, 3), 0.5, np.float32)).tolist() == [[-0.5] * 3] * 2
    with pytest.raises(KernelError, match=r"\[2,1,3\] does not fit"):
        run("PRelu", 1, x, np.ones((2, 1, 3), np.float32))


def test_softmax_refuses_an_axis_that_is_not_there() -> None:
    with pytest.raises(KernelError, match="axis 3 is out of range"):
        run("Softmax", 8, np.ones((2, 3), np.float32), axis="3")


def test_identity_takes_strings() -> None:
    x = np.array(["a", "b"], np.dtypes.StringDType())
    assert run("Identity", 16, x) is x
