"""The semantics of TensorIterator-1 and Loop-5: pure functions over the port map, for both operations alike.

How many slices an input gives and which one an iteration gets, what a trip count and a condition must be, what an
output becomes when the loop ends. Executor, diagrams and explanations all ask here.
Source: the two specifications; where they are silent or the runtime departs, semantics sections 1 to 4 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, name_of
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, normalize_axis, shape_text

if TYPE_CHECKING:
    from stepper.ir.model import Slicing


class EndReason(StrEnum):
    """Reason for which a loop ran no further iteration."""

    TRIP_COUNT = "trip count reached"
    CONDITION = "condition became false"
    INITIAL_CONDITION = "condition was false at the start"
    SLICES = "every slice was used"
    NO_ITERATIONS = "trip count is 0"


class SlicedInput(NamedTuple):
    """Each iteration gets its slice of the outer input along the axis."""

    input: int
    parameter: int
    slicing: Slicing
    line: int


class MergedInput(NamedTuple):
    """The first iteration gets the outer input, every later one what the back edge's Result was before."""

    input: int
    parameter: int
    result: int
    line: int


class InvariantInput(NamedTuple):
    """Every iteration gets the same outer input."""

    input: int
    parameter: int
    line: int


class LastValueOutput(NamedTuple):
    """The outer output is the Result of the last iteration; `merged` is the Parameter that it feeds, if any."""

    output: int
    result: int
    merged: int | None
    line: int


class ConcatenatedOutput(NamedTuple):
    """The outer output is the Results of all iterations, joined along the axis."""

    output: int
    result: int
    slicing: Slicing
    line: int


class SliceWalk(Struct, frozen=True):
    """Places of the slices of one input: slice i begins at `first + i * step` and is `size` long, for i < `count`."""

    axis: int
    first: int
    step: int
    size: int
    count: int

    def range(self, iteration: int) -> tuple[int, int]:
        """Return the elements [begin, end) along the axis that the iteration gets."""
        begin = self.first + iteration * self.step
        return begin, begin + self.size

    def span(self, iterations: int) -> tuple[int, int]:
        """Return the elements [begin, end) that the first so many iterations get together."""
        if not iterations:
            return self.first, self.first
        (begin, end), (last_begin, last_end) = self.range(0), self.range(iterations - 1)
        return min(begin, last_begin), max(end, last_end)


Pieces = TypeVar("Pieces", range, list[Array], Array)


def is_backward(slicing: Slicing) -> bool:
    """Return True if the iterations go from the end of the axis to its beginning (a negative stride)."""
    return slicing.stride < 0


def whole_axis(slicing: Slicing) -> tuple[int, int]:
    """Return the `start` and `end` with which a slicing of this direction covers the whole axis."""
    return (-1, 0) if is_backward(slicing) else (0, -1)


def in_axis_order(pieces: Pieces, slicing: Slicing) -> Pieces:
    """Return the pieces of a concatenated output, one for each iteration, in their order along its axis.

    `pieces` may be the iterations themselves: of `range(n)`, element k is the iteration whose piece lies at place k
    (semantics 2.4).
    """
    return pieces[::-1] if is_backward(slicing) else pieces


def boundary(value: int, extent: int) -> int:
    """Return the boundary that a `start` or `end` names: 0 to the extent, -1 for the last one (semantics 1.3)."""
    return value if value >= 0 else extent + 1 + value


def slice_walk(slicing: Slicing, shape: tuple[int, ...], rules: Rules, *, is_loop: bool) -> SliceWalk:
    """Return the slices that an input of this shape gives (semantics 1.2 to 1.5, 3.9).

    `is_loop`: of a Loop, of which OpenVINO looks at neither start nor end; else of a TensorIterator.
    Raises KernelError where start, end and stride do not describe slices of this tensor.
    """
    axis = _axis(slicing, len(shape), rules)
    size = check_stride(slicing, rules)
    extent, forward = shape[axis], not is_backward(slicing)
    whole = SliceWalk(axis, 0 if forward else (extent // size - 1) * size, size if forward else -size, size, 0)
    if is_loop and rules is Rules.OPENVINO:
        return SliceWalk(axis, whole.first, whole.step, size, extent // size)
    count = _slice_count(slicing, extent, size, rules)
    if rules is Rules.OPENVINO:
        return SliceWalk(axis, whole.first, whole.step, size, count)
    start = boundary(slicing.start, extent)
    return SliceWalk(axis, start if forward else start - size, whole.step, size, count)


def _axis(slicing: Slicing, rank: int, rules: Rules) -> int:
    if slicing.axis < 0 and rules is Rules.OPENVINO:
        raise KernelError(
            f"axis {slicing.axis} is negative, which OpenVINO refuses (the specification counts from the end)"
        )
    return normalize_axis(slicing.axis, rank)


def check_stride(slicing: Slicing, rules: Rules) -> int:
    """Return the length of a chunk: the absolute stride. KernelError for 0, and for a part_size that says otherwise."""
    size = abs(slicing.stride)
    if size == 0:
        raise KernelError("stride is 0, so the loop would never advance")
    if slicing.part_size is not None and slicing.part_size != size and rules is Rules.SPEC:
        raise KernelError(f"part_size is {slicing.part_size}, but the stride is {slicing.stride}: they must agree")
    return size


def _slice_count(slicing: Slicing, extent: int, size: int, rules: Rules) -> int:
    start, end = boundary(slicing.start, extent), boundary(slicing.end, extent)
    low, high = (end, start) if is_backward(slicing) else (start, end)
    if extent == 0 and low == high == 0 and rules is Rules.SPEC:
        return 0
    if not 0 <= low < high <= extent:
        direction = "backward" if is_backward(slicing) else "forward"
        hint = "; to go backward over everything, start is -1 and end is 0" if is_backward(slicing) else ""
        raise KernelError(
            f"start {slicing.start} and end {slicing.end} are not a {direction} range of {extent} elements{hint}"
        )
    if (high - low) % size:
        raise KernelError(f"the length {high - low} is not divisible by the stride {slicing.stride}")
    return (high - low) // size


def count_without_slices(outputs: Sequence[ConcatenatedOutput]) -> int:
    """Return the iterations of a TensorIterator without sliced inputs: 1, or as its outputs say (semantics 1.8).

    The first tells how many parts there are, which fixes the length of each output; then all must agree on the count.
    """
    if not outputs:
        return 1
    first = min(outputs, key=lambda output: output.output).slicing
    parts = abs(first.end - first.start) // (first.part_size or check_stride(first, Rules.OPENVINO))
    counts = []
    for output in outputs:
        size = check_stride(output.slicing, Rules.OPENVINO)
        counts.append(_slice_count(output.slicing, parts * (output.slicing.part_size or size), size, Rules.OPENVINO))
    if len(set(counts)) > 1:
        raise KernelError(
            f"nothing is sliced, and its concatenated outputs ask for different iteration counts: {counts}"
        )
    return counts[0]


def common_count(counts: list[tuple[str, int]]) -> int:
    """Return the iteration count on which all sliced inputs of a TensorIterator agree (semantics 1.7)."""
    (first, count), *others = counts
    for name, other in others:
        if other != count:
            raise KernelError(
                f"sliced inputs differ in their number of slices: {first} gives {count}, {name} gives {other}"
            )
    return count


_TRIP_COUNT_TYPES = {np.dtype(name) for name in ("int16", "int32", "int64", "uint16", "uint32", "uint64")}


def trip_count(value: Any) -> int | None:
    """Return the maximum of iterations that a trip count says; None (unlimited) if negative (semantics 3.1, 3.2)."""
    if value.dtype not in _TRIP_COUNT_TYPES:
        raise KernelError(f"the trip count is of type {name_of(value.dtype)}, expected i64 or i32")
    count = int(_single(value, "trip count"))
    return None if count < 0 else count


def condition(value: Any, what: str = "condition") -> bool:
    """Return the truth of an execution condition (semantics 3.3)."""
    if value.dtype != np.bool_:
        raise KernelError(f"the {what} is of type {name_of(value.dtype)}, expected boolean")
    return bool(_single(value, what))


def is_single(value: Any) -> bool:
    """Return True if a value is a scalar or one element, as trip counts and conditions must be."""
    return bool(value.size == 1 and value.ndim <= 1)


def _single(value: Any, what: str) -> Any:
    if not is_single(value):
        raise KernelError(f"the {what} has shape {shape_text(value.shape)}, expected a scalar or one element")
    return value.reshape(())[()]


def undefined_last_value(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a last-value output that nothing gave after no iteration: zeros, unknown dimensions 0 (semantics 3.5)."""
    dims = [max(size, 0) for size in shape]
    ensure_allocatable(dims, dtype)
    return np.zeros(dims, dtype)


def empty_concatenation(axis: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a concatenated output after no iteration: size 0 along its axis (semantics 3.5).

    `shape` is what one piece would have, unknown dimensions negative; of a scalar piece the result has rank 1.
    """
    dims = [max(size, 0) for size in shape] or [0]
    dims[axis if -len(dims) <= axis < len(dims) else 0] = 0
    return np.zeros(dims, dtype)


def truth(value: Any) -> bool | None:
    """Return what a value says as a condition; None where it cannot be one, on which the run will stop."""
    try:
        return condition(value)
    except KernelError:
        return None
