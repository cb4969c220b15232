"""Which slice of its input an iteration gets, for every small start, end and stride, under both rule books."""

from __future__ import annotations

from itertools import product

import pytest

from stepper.engine.loops import boundary, slice_walk
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import Slicing
from tests.engine.twins import chunks, chunks_of_whole_axis
from tests.tables import each_row

EXTENTS, BOUNDARIES, STRIDES = range(7), range(-8, 8), (-3, -2, -1, 1, 2, 3)


def walked(slicing: Slicing, shape: tuple[int, ...], rules: Rules, *, is_loop: bool = False) -> list[list[int]] | None:
    """The element numbers of each slice, None where it was refused."""
    try:
        walk = slice_walk(slicing, shape, rules, is_loop=is_loop)
    except KernelError:
        return None
    return [list(range(*walk.range(iteration))) for iteration in range(walk.count)]


@each_row("stride", STRIDES)
@each_row("is_loop", [False, True])
def test_by_the_specification_every_iteration_gets_its_chunk_counted_from_start(stride: int, is_loop: bool) -> None:
    for extent, start, end in product(EXTENTS, BOUNDARIES, BOUNDARIES):
        expected = chunks(extent, start, end, stride)
        slicing = Slicing(0, start, end, stride, None)
        assert walked(slicing, (extent,), Rules.SPEC, is_loop=is_loop) == expected, (extent, start, end)


@each_row("stride", STRIDES)
def test_in_openvino_start_and_end_of_a_tensor_iterator_only_count(stride: int) -> None:
    for extent, start, end in product(EXTENTS, BOUNDARIES, BOUNDARIES):
        by_specification = chunks(extent, start, end, stride)
        expected = chunks_of_whole_axis(extent, stride, len(by_specification)) if by_specification else None
        assert walked(Slicing(0, start, end, stride, None), (extent,), Rules.OPENVINO) == expected, (extent, start, end)


@each_row("stride", STRIDES)
def test_in_openvino_a_loop_cuts_the_whole_axis_whatever_start_and_end_say(stride: int) -> None:
    for extent, start, end in product(EXTENTS, (-3, -1, 0, 2), (-3, -1, 0, 2)):
        expected = chunks_of_whole_axis(extent, stride, extent)
        slicing = Slicing(0, start, end, stride, None)
        assert walked(slicing, (extent,), Rules.OPENVINO, is_loop=True) == expected, (extent, start, end)


@each_row(
    ("extent", "start", "end", "stride", "expected"),
    [
        (4, 0, -1, 1, [[0], [1], [2], [3]]),
        (4, -1, 0, -1, [[3], [2], [1], [0]]),
        (6, 1, 5, 2, [[1, 2], [3, 4]]),
        (6, 5, 1, -2, [[3, 4], [1, 2]]),
        (5, 0, -2, 1, [[0], [1], [2], [3]]),
        (5, -2, 0, -1, [[3], [2], [1], [0]]),
        (6, -7, -1, 3, [[0, 1, 2], [3, 4, 5]]),
        (0, 0, -1, 1, []),
    ],
)
def test_slices_worked_out_by_hand(extent: int, start: int, end: int, stride: int, expected: list[list[int]]) -> None:
    assert walked(Slicing(0, start, end, stride, abs(stride)), (extent,), Rules.SPEC) == expected


@each_row(("axis", "positive"), [(-1, 2), (-2, 1), (-3, 0), (0, 0), (1, 1), (2, 2)])
def test_a_negative_axis_is_counted_from_the_end_by_the_specification_alone(axis: int, positive: int) -> None:
    slicing, shape = Slicing(axis, 0, -1, 1, None), (2, 3, 5)
    walk = slice_walk(slicing, shape, Rules.SPEC, is_loop=False)
    assert (walk.axis, walk.count) == (positive, shape[positive])
    if axis < 0:
        with pytest.raises(KernelError, match=f"axis {axis} is negative, which OpenVINO refuses"):
            slice_walk(slicing, shape, Rules.OPENVINO, is_loop=False)
    else:
        assert slice_walk(slicing, shape, Rules.OPENVINO, is_loop=False) == walk


@each_row("axis", [2, -3, 99])
def test_an_axis_that_the_tensor_does_not_have_is_refused(axis: int) -> None:
    with pytest.raises(KernelError, match=rf"axis {axis} is out of range for a tensor of rank 2"):
        slice_walk(Slicing(axis, 0, -1, 1, None), (2, 3), Rules.SPEC, is_loop=True)


def test_a_scalar_cannot_be_sliced() -> None:
    with pytest.raises(KernelError, match="axis 0 is out of range for a tensor of rank 0"):
        slice_walk(Slicing(0, 0, -1, 1, None), (), Rules.OPENVINO, is_loop=False)


@each_row("rules", list(Rules))
def test_a_stride_of_0_is_refused(rules: Rules) -> None:
    with pytest.raises(KernelError, match="stride is 0"):
        slice_walk(Slicing(0, 0, -1, 0, None), (3,), rules, is_loop=False)


@each_row(("part_size", "stride"), list(product((None, 0, 1, 2, 3), STRIDES)))
def test_part_size_must_equal_the_absolute_stride_by_the_specification_alone(
    part_size: int | None, stride: int
) -> None:
    ends = (0, -1) if stride > 0 else (-1, 0)
    slicing = Slicing(0, *ends, stride, part_size)
    agreed = part_size is None or part_size == abs(stride)
    assert (walked(slicing, (6,), Rules.SPEC) is not None) == agreed
    assert walked(slicing, (6,), Rules.OPENVINO) == chunks(6, *ends, stride)


def test_a_disagreeing_part_size_is_named_with_the_stride() -> None:
    with pytest.raises(KernelError, match="part_size is 2, but the stride is -1: they must agree"):
        slice_walk(Slicing(0, -1, 0, -1, 2), (4,), Rules.SPEC, is_loop=False)


def test_a_backward_stride_with_default_ends_is_refused_with_a_hint() -> None:
    with pytest.raises(
        KernelError, match=r"not a backward range of 4 elements; to go backward .* start is -1 and end is 0"
    ):
        slice_walk(Slicing(0, 0, -1, -1, None), (4,), Rules.SPEC, is_loop=False)


def test_a_length_that_the_stride_does_not_divide_is_named() -> None:
    with pytest.raises(KernelError, match="the length 5 is not divisible by the stride 2"):
        slice_walk(Slicing(0, 0, -1, 2, 2), (5,), Rules.SPEC, is_loop=False)


@each_row(("value", "expected"), [(0, 0), (3, 3), (5, 5), (-1, 5), (-2, 4), (-6, 0)])
def test_boundaries_are_counted_from_either_side(value: int, expected: int) -> None:
    assert boundary(value, 5) == expected
