"""How many iterations a loop makes: trip counts, conditions, counts of slices, and outputs of no iteration at all."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.engine.loops import (
    ConcatenatedOutput,
    common_count,
    condition,
    count_without_slices,
    empty_concatenation,
    trip_count,
    undefined_last_value,
)
from stepper.errors import KernelError
from stepper.ir.model import Slicing
from tests.tables import each_row


@each_row("dtype", ["int16", "int32", "int64", "uint16", "uint32", "uint64"])
@each_row("shape", [(), (1,)])
def test_a_trip_count_is_an_integer_of_one_element(dtype: str, shape: tuple[int, ...]) -> None:
    assert trip_count(np.full(shape, 7, dtype)) == 7
    assert trip_count(np.full(shape, 0, dtype)) == 0


def test_a_trip_count_may_be_a_numpy_scalar_and_larger_than_32_bits() -> None:
    assert trip_count(np.int64(2**40)) == 2**40


@each_row("count", [-1, -2, -(2**63)])
def test_a_negative_trip_count_means_unlimited(count: int) -> None:
    assert trip_count(np.array(count, np.int64)) is None


@each_row(("dtype", "name"), [("i1", "i8"), ("u1", "u8"), ("f4", "f32"), ("?", "boolean")])
def test_a_trip_count_of_another_type_is_refused(dtype: str, name: str) -> None:
    with pytest.raises(KernelError, match=f"the trip count is of type {name}, expected i64 or i32"):
        trip_count(np.array(1, dtype))


@each_row("shape", [(0,), (2,), (1, 1)])
def test_control_values_must_be_a_scalar_or_one_element(shape: tuple[int, ...]) -> None:
    with pytest.raises(KernelError, match=r"the trip count has shape .*, expected a scalar or one element"):
        trip_count(np.ones(shape, np.int64))
    with pytest.raises(KernelError, match=r"the condition has shape .*, expected a scalar or one element"):
        condition(np.ones(shape, np.bool_))


@each_row("truth", [False, True])
def test_a_condition_is_a_boolean_of_one_element(truth: bool) -> None:
    for value in (np.bool_(truth), np.array(truth), np.array([truth])):
        assert condition(value) is truth


@each_row(("dtype", "name"), [("u1", "u8"), ("i1", "i8"), ("i8", "i64"), ("f4", "f32")])
def test_a_condition_of_another_type_is_refused(dtype: str, name: str) -> None:
    with pytest.raises(KernelError, match=f"the body's condition is of type {name}, expected boolean"):
        condition(np.array(1, dtype), "body's condition")


def test_sliced_inputs_must_agree_in_their_number_of_slices() -> None:
    assert common_count([("a", 3), ("b", 3), ("c", 3)]) == 3
    with pytest.raises(KernelError, match="a gives 3, c gives 2"):
        common_count([("a", 3), ("b", 3), ("c", 2)])


def concatenated(*slicings: tuple[int, int, int]) -> list[ConcatenatedOutput]:
    return [
        ConcatenatedOutput(index, index, Slicing(0, start, end, stride, abs(stride)), 1)
        for index, (start, end, stride) in enumerate(slicings)
    ]


@each_row(
    ("outputs", "count"),
    [
        ([], 1),
        ([(0, -1, 1)], 1),
        ([(0, 5, 1)], 5),
        ([(5, 0, -1)], 5),
        ([(0, 6, 2)], 3),
        ([(6, 0, -3)], 2),
        ([(0, 5, 1), (0, -1, 1)], 5),
    ],
)
def test_without_slices_the_first_concatenated_output_says_how_often(
    outputs: list[tuple[int, int, int]], count: int
) -> None:
    assert count_without_slices(concatenated(*outputs)) == count


@each_row("outputs", [[(2, 5, 1)], [(0, 5, 1), (0, 3, 1)], [(0, 3, 1), (0, 5, 1)], [(0, 5, 2)]])
def test_without_slices_outputs_that_make_no_sense_are_refused(outputs: list[tuple[int, int, int]]) -> None:
    with pytest.raises(KernelError):
        count_without_slices(concatenated(*outputs))


@each_row(("declared", "expected"), [((), ()), ((2, 3), (2, 3)), ((-1, 3), (0, 3)), ((-1, -1), (0, 0)), ((0,), (0,))])
def test_an_undefined_last_value_is_zeros_with_unknown_dimensions_0(
    declared: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    value = undefined_last_value(declared, np.dtype(np.int32))
    assert value.shape == expected and value.dtype == np.int32 and not value.any()


@each_row(
    ("axis", "piece", "expected"),
    [
        (0, (1, 3), (0, 3)),
        (1, (2, 1), (2, 0)),
        (-1, (2, 1), (2, 0)),
        (0, (), (0,)),
        (0, (-1, -1), (0, 0)),
        (1, (-1, 2, 4), (0, 0, 4)),
    ],
)
def test_a_concatenation_of_nothing_has_size_0_along_its_axis(
    axis: int, piece: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    value = empty_concatenation(axis, piece, np.dtype(np.float16))
    assert value.shape == expected and value.dtype == np.float16
