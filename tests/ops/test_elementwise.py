"""Element-wise operations where the runtime departs from the element types as declared, or refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops import registry
from tests.tables import each_row

BIG = 2**53 + 1
SIGNS = np.array(list(itertools.product([7, -7, 8, -8], [2, -2, 3, -3])), np.int64).T


def run(type: str, *inputs: np.ndarray, **attributes: str) -> np.ndarray:
    kernel = next(kernel for (name, _), kernel in registry.all_kernels().items() if name == type)
    with np.errstate(all="ignore"):
        result: np.ndarray = kernel.bind(attributes)(*inputs)
    return result


@each_row(
    ("type", "expected"),
    [
        ("Add", BIG + 2),
        ("Multiply", 2 * BIG),
        ("Maximum", BIG),
        ("Power", BIG**2 % 2**64),
        ("FloorMod", 1),
        ("Divide", BIG // 2),
    ],
)
def test_64_bit_integers_are_exact(type: str, expected: int) -> None:
    wrapped = expected - 2**64 if expected >= 2**63 else expected
    assert run(type, np.array([BIG]), np.array([2])).tolist() == [wrapped]


def test_a_quotient_of_integers_is_rounded_down_or_towards_zero() -> None:
    a, b = SIGNS
    assert run("Divide", a, b).tolist() == [x // y for x, y in SIGNS.T.tolist()]
    assert run("Divide", a, b, m_pythondiv="false").tolist() == [int(x / y) for x, y in SIGNS.T.tolist()]


def test_a_remainder_has_the_sign_of_dividend_or_divisor() -> None:
    a, b = SIGNS
    assert run("Mod", a, b).tolist() == [x - y * int(x / y) for x, y in SIGNS.T.tolist()]
    assert run("FloorMod", a, b).tolist() == [x % y for x, y in SIGNS.T.tolist()]


@each_row(("type", "dtype"), [("Subtract", np.uint8), ("Multiply", np.int8), ("Add", np.int32)])
def test_integers_wrap_around(type: str, dtype: type) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    python = {"Subtract": low - high, "Multiply": high * high, "Add": high + high}[type]
    a = np.array([low if type == "Subtract" else high], dtype)
    assert run(type, a, np.array([high], dtype)).tolist() == [(python - low) % (high - low + 1) + low]


def test_the_square_of_a_half_precision_difference_is_rounded_once() -> None:
    a, b = np.array([100.0], np.float16), np.array([0.3333], np.float16)
    exact = (float(a[0]) - float(b[0])) ** 2
    assert run("SquaredDifference", a, b) == np.float16(np.float32(exact))


@each_row("type", ["Equal", "Less", "LessEqual", "Greater", "GreaterEqual"])
def test_no_comparison_with_nan_holds(type: str) -> None:
    nan = np.array([np.nan, 1, np.nan], np.float32)
    assert not run(type, nan, np.array([1, np.nan, np.nan], np.float32)).any()


@each_row("type", ["Subtract", "Divide", "Greater", "Mod"])
def test_pdpd_aligns_to_the_left(type: str) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.array([2.0, 3.0])
    np.testing.assert_array_equal(run(type, a, b, auto_broadcast="pdpd"), run(type, a, b[:, None]))


def test_select_aligns_to_then_under_pdpd() -> None:
    then, condition, otherwise = np.ones((2, 3)), np.array([True, False]), np.array([5.0, 6.0])
    result = run("Select", condition, then, otherwise, auto_broadcast="pdpd")
    assert result.tolist() == [[1, 1, 1], [6, 6, 6]]


def test_auto_broadcast_none_refuses_different_shapes() -> None:
    with pytest.raises(KernelError, match=r"\[2,3\] and \[3\] differ"):
        run("Maximum", np.ones((2, 3)), np.ones(3), auto_broadcast="none")


def test_maximum_passes_nan_on_from_either_side() -> None:
    a, b = np.array([np.nan, 1.0]), np.array([1.0, np.nan])
    assert np.isnan(run("Maximum", a, b)).all() and np.isnan(run("Minimum", a, b)).all()


def test_a_shift_by_the_width_leaves_only_the_sign() -> None:
    x, width = np.array([5, -5], np.int32), np.array([32, 32], np.int32)
    assert run("BitwiseRightShift", x, width).tolist() == [0, -1]
    assert run("BitwiseLeftShift", x, width).tolist() == [0, 0]


def test_integers_give_the_nearest_integer_of_a_real_function() -> None:
    x = np.array([0, 1, 2, 10], np.int32)
    assert run("Exp", x).tolist() == [1, 3, 7, 22026]
    assert run("Sqrt", x).tolist() == [0, 1, 1, 3]
    assert run("Tanh", x).dtype == np.int32


def test_rounding_away_from_zero_begins_at_the_half() -> None:
    below = np.nextafter(np.float32(0.5), np.float32(0))
    x = np.array([below, 0.5, -0.5, 2.5, -3.5], np.float32)
    assert run("Round", x, mode="half_away_from_zero").tolist() == [0, 1, -1, 3, -4]


def test_a_power_beyond_i32_is_the_lowest_number_and_narrower_types_wrap() -> None:
    a, b = np.array([2, 1000, -2, -3, 46341], np.int32), np.array([31, 4, 31, 2, 2], np.int32)
    assert run("Power", a, b).tolist() == [-(2**31), -(2**31), -(2**31), 9, -(2**31)]
    assert run("Power", np.array([3], np.int8), np.array([5], np.int8)).tolist() == [-13]


def test_no_floor_remainder_is_left_by_an_infinite_divisor_but_by_a_huge_quotient() -> None:
    a, b = np.array([5, -5, 1e9], np.float32), np.array([np.inf, np.inf, 0.7], np.float32)
    with np.errstate(invalid="ignore"):
        remainder = run("FloorMod", a, b)
    assert np.isnan(remainder[:2]).all()
    assert remainder[2] == pytest.approx(1e9 % float(np.float32(0.7)))
