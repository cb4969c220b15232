"""Distances by their definitions, tolerances by type, operation and name."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.tensors.difference import measure
from stepper.tensors.tolerances import EXACT, Tolerance, Tolerances, parse_tolerance
from tests.tables import each_row

MATMUL = Layer(1, "proj", "MatMul", "opset1", 1, {}, (), (), (), 1)


def steps_up(value: float, count: int, dtype: type) -> np.ndarray:
    number = np.array([value], dtype)
    for _ in range(count):
        number = np.nextafter(number, dtype(np.inf))
    return number


def test_absolute_relative_and_cosine_are_those_of_the_definition() -> None:
    a, b = np.float32([1.0, 2.0, 3.0]), np.float32([1.0, 2.5, 2.0])
    found = measure(a, b, Tolerance(0.1, 0.0))
    assert found is not None
    assert found.absolute == 1.0 and found.relative == pytest.approx(0.5)
    assert found.cosine == pytest.approx(float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))
    assert (found.outside, found.size, found.index, found.ours, found.theirs) == (2, 3, (2,), 3.0, 2.0)
    assert found.ratio == pytest.approx(1.0 / 0.2)


@each_row("dtype", [np.float16, np.float32, np.float64])
@each_row("start", [1.0, -1.0, 0.0])
@each_row("count", [1, 7])
def test_ulp_counts_the_numbers_of_the_type_between(dtype: type, start: float, count: int) -> None:
    found = measure(steps_up(start, count, dtype), np.array([start], dtype), EXACT)
    assert found is not None and found.ulp == count and found.differs
    assert not measure(steps_up(start, count, dtype), np.array([start], dtype), Tolerance(ulp=count)).differs  # type: ignore[union-attr]


@each_row(
    ("ours", "theirs", "differs"),
    [
        ([np.nan, 1], [np.nan, 1], False),
        ([np.inf, 1], [np.inf, 1], False),
        ([np.inf, 1], [-np.inf, 1], True),
        ([np.nan, 1], [0, 1], True),
        ([3.4028235e38], [np.inf], True),
        ([-0.0], [0.0], False),
    ],
)
def test_special_values_agree_with_themselves_alone(ours: list[float], theirs: list[float], differs: bool) -> None:
    found = measure(np.float32(ours), np.float32(theirs), Tolerance(1e-3, 1e-3))
    assert (found is not None and found.differs) is differs


def test_the_largest_number_counts_as_infinite_where_another_runtime_begins_with_it() -> None:
    lowest = np.float32([np.finfo(np.float32).min])
    assert measure(lowest, np.float32([-np.inf]), Tolerance(saturates=True)) is None


def test_integers_of_64_bits_are_compared_exactly() -> None:
    found = measure(np.int64([2**62 + 1]), np.int64([2**62]), EXACT)
    assert found is not None and found.differs


def test_another_shape_is_a_problem_of_its_own() -> None:
    found = measure(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), EXACT)
    assert found is not None and found.differs and "[2,3] against [3,2]" in found.problem


def test_the_name_goes_before_the_operation_and_that_before_the_type() -> None:
    chosen = {"f32": Tolerance(1), "MatMul": Tolerance(2), "proj": Tolerance(3)}
    f32 = np.zeros(1, np.float32)
    assert Tolerances(by_name=chosen).of(MATMUL, f32).relative == 3
    assert Tolerances(by_name=chosen).of(MATMUL._replace(name="other"), f32).relative == 2
    assert Tolerances(by_name=chosen).of(None, f32).relative == 1


@each_row("dtype", [np.int32, np.bool_])
def test_whole_numbers_and_booleans_have_no_tolerance_of_their_own(dtype: type) -> None:
    assert Tolerances(relative=0.5).of(None, np.zeros(1, dtype)) == EXACT


def test_narrow_floats_have_wider_tolerances() -> None:
    of = Tolerances().of
    types = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
    relative = [of(None, np.zeros(1, dtype)).relative for dtype in types]
    assert relative == sorted(relative) and relative[0] > 0


def test_a_tolerance_is_read_from_text() -> None:
    assert parse_tolerance("f32=1e-4") == ("f32", Tolerance(1e-4))
    assert parse_tolerance("a=b=1,2") == ("a=b", Tolerance(1, 2))


@each_row("text", ["f32", "=1", "f32=", "f32=x", "f32=1,2,3", "f32=-1", "f32=nan", "f32=inf"])
def test_what_is_no_tolerance_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="f32=1e-4"):
        parse_tolerance(text)
