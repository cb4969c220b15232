"""Shapes: the same elements in another shape or order of axes, the shape itself, and tensors made out of numbers.

Source: the operation sets' pages of Reshape, Squeeze, Unsqueeze, Transpose, ShapeOf, Range and Eye.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepper.element_types import I32, I64, LARGEST_RANK, Array, DType, ElementType, Shape, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, is_list, normalize_axis, shape_text, single_integer
from stepper.ops.registry import kernel


def _reshape_for(*, special_zero: bool = False) -> Callable[..., Array]:
    """Return reshape; quicker where the pattern has neither a 0 nor what it must not have."""

    def plainly(data: Array, pattern: Array) -> Array:
        shape = pattern.tolist()
        try:
            for dim in shape:
                if dim < 1 and dim != -1:
                    break
            else:
                return data.reshape(shape)
        except (TypeError, ValueError, OverflowError):
            pass
        return reshape(data, pattern, special_zero=special_zero)

    return plainly


def _reshape_to(pattern: Array, *, special_zero: bool = False) -> Callable[..., Array] | None:
    """Return reshape to a constant pattern, one without 0."""
    if not is_list(pattern) or any(dim < 1 and dim != -1 for dim in pattern.tolist()):
        return None
    shape = tuple(pattern.tolist())

    def reshaped(data: Array) -> Array:
        try:
            return data.reshape(shape)
        except (TypeError, ValueError, OverflowError):
            return reshape(data, pattern, special_zero=special_zero)

    return reshaped


@kernel("Reshape", 1, prepared=_reshape_for, settled=_reshape_to)
def reshape(data: Array, pattern: Array, *, special_zero: bool = False) -> Array:
    """Return `data` in the shape `pattern`, -1 being what remains and, with special_zero, 0 the input's dimension."""
    try:
        return data.reshape(_resolved(data.shape, integers(pattern), special_zero))
    except (ValueError, OverflowError):
        text = shape_text(integers(pattern))
        raise KernelError(f"a tensor of shape {shape_text(data.shape)} cannot take the shape {text}") from None


def _resolved(shape: Shape, pattern: list[int], special_zero: bool) -> list[int]:
    """Return the pattern without 0 and -1; what -1 stands for is counted without the dimensions that 0 copies."""
    copied = {axis for axis, dim in enumerate(pattern) if dim == 0 and special_zero}
    if pattern.count(-1) > 1 or min(pattern, default=0) < -1 or max(copied, default=-1) >= len(shape):
        raise ValueError(pattern)
    given = math.prod(dim for axis, dim in enumerate(pattern) if axis not in copied and dim != -1)
    whole = math.prod(dim for axis, dim in enumerate(shape) if axis not in copied)
    remaining = whole // given if given else 1
    return [shape[axis] if axis in copied else remaining if dim == -1 else dim for axis, dim in enumerate(pattern)]


def _squeeze_of(axes: Array, *, allow_axis_skip: bool = False) -> Callable[..., Array] | None:
    """Return squeeze of constant axes."""
    if not axes.size or not is_list(axes):
        return None
    named = tuple(axes.tolist())

    def squeezed(data: Array) -> Array:
        try:
            return data.squeeze(named)
        except (TypeError, ValueError, OverflowError):
            return squeeze(data, axes)

    return squeezed


@kernel("Squeeze", 1, settled=_squeeze_of)
def squeeze(data: Array, axes: Array | None = None) -> Array:
    """Return `data` without `axes` (default: all) of size 1; axes of other sizes stay."""
    if axes is None or axes.size == 0:
        return data.reshape([dim for dim in data.shape if dim != 1])
    try:
        return data.squeeze(tuple(axes.tolist()))
    except (TypeError, ValueError, OverflowError):
        named = {normalize_axis(axis, data.ndim) for axis in integers(axes)}
        return data.reshape([dim for axis, dim in enumerate(data.shape) if axis not in named or dim != 1])


@kernel("Squeeze", 15, direct=squeeze, settled=_squeeze_of)
def squeeze_skipping(data: Array, axes: Array | None = None, *, allow_axis_skip: bool = False) -> Array:
    """Return the result of Squeeze-1: `allow_axis_skip` concerns only the rank that is known before the run."""
    return squeeze(data, axes)


def _unsqueeze_at(axes: Array) -> Callable[..., Array] | None:
    """Return unsqueeze at constant axes, counted from one end; indexing by None takes a quarter of a reshape's time."""
    named = set(axes.ravel().tolist())
    first, last = min(named, default=0), max(named, default=0)
    if not named or first < 0 <= last or not -LARGEST_RANK <= first <= last < LARGEST_RANK:
        return None
    span = range(first, 0) if first < 0 else range(last + 1)
    index = (*([...] if first < 0 else []), *(None if axis in named else slice(None) for axis in span))

    def unsqueezed(data: Array) -> Array:
        try:
            return data[index]
        except IndexError:
            return unsqueeze(data, axes)

    return unsqueezed


@kernel("Unsqueeze", 1, settled=_unsqueeze_at)
def unsqueeze(data: Array, axes: Array) -> Array:
    """Return `data` with dimensions of 1 inserted, so that they are `axes` of the output."""
    shape = _with_ones(data.shape, axes)
    try:
        return data.reshape(shape)
    except ValueError:  # more dimensions than numpy has
        raise _not_inserted(axes, data.shape) from None


def _with_ones(shape: Shape, axes: Array) -> Shape:
    named = set(axes.ravel().tolist())
    rank = len(shape) + len(named)
    inserted = {normalize_axis(axis, rank) for axis in named}
    dims = iter(shape)
    try:
        return tuple([1 if axis in inserted else next(dims) for axis in range(rank)])
    except StopIteration:  # an axis is named twice, from both ends
        raise _not_inserted(axes, shape) from None


def _not_inserted(axes: Array, shape: Shape) -> KernelError:
    text = shape_text(integers(axes))
    return KernelError(f"axes {text} cannot be inserted into the shape {shape_text(shape)}")


def _transpose_by(order: Array) -> Callable[..., Array] | None:
    """Return transpose by a constant order."""
    if not is_list(order) or min(order.tolist(), default=0) < 0:
        return None
    axes = tuple(order.tolist()) or None

    def transposed(data: Array) -> Array:
        try:
            return data.transpose(axes)
        except (TypeError, ValueError, OverflowError):
            return transpose(data, order)

    return transposed


@kernel("Transpose", 1, settled=_transpose_by)
def transpose(data: Array, order: Array) -> Array:
    """Return `data` with output axis i taken from input axis order[i]; an empty order reverses the axes."""
    axes = order.tolist()
    try:
        for axis in axes:
            if axis < 0:
                break
        else:
            return data.transpose(axes or None)
    except (TypeError, ValueError, OverflowError):
        pass
    text = shape_text(integers(order))
    raise KernelError(f"order {text} is not a permutation of the axes of shape {shape_text(data.shape)}")


@kernel("ShapeOf", 1)
def shape_of(data: Array) -> Array:
    """Return the shape of `data` as i64."""
    return np.array(data.shape, np.int64)


def _shape_of_type(*, output_type: ElementType) -> Callable[..., Array]:
    """Return shape_of_typed of one type."""
    array, dtype = np.array, output_type.dtype

    def shape(data: Array) -> Array:
        return array(data.shape, dtype)

    return shape


@kernel("ShapeOf", 3, prepared=_shape_of_type)
def shape_of_typed(data: Array, *, output_type: ElementType) -> Array:
    """Return the shape of `data` as i32 or i64."""
    return np.array(data.shape, output_type.dtype)


@kernel("Range", 1)
def range_of_input_type(start: Array, stop: Array, step: Array) -> Array:
    """Return start, start + step, ... as far as before `stop`, in the inputs' element type."""
    return _range(start, stop, step, start.dtype)


def _range_settled(*, output_type: ElementType) -> Callable[..., Array]:
    """Return range_of_output_type; quicker where all numbers are integers of that type."""
    dtype = output_type.dtype
    of_integers = dtype in (I32.dtype, I64.dtype)

    def numbers(start: Array, stop: Array, step: Array) -> Array:
        if of_integers and start.dtype is dtype and stop.dtype is dtype and step.dtype is dtype:
            try:
                first, by = start.item(), step.item()
                count = -((first - stop.item()) // by)
                if count > 0:
                    ensure_allocatable((count,), dtype)
                    return np.arange(first, first + count * by, by, dtype=dtype)
            except (ValueError, ZeroDivisionError) as error:
                if isinstance(error, KernelError):
                    raise
        return _range(start, stop, step, dtype)

    return numbers


@kernel("Range", 4, prepared=_range_settled)
def range_of_output_type(start: Array, stop: Array, step: Array, *, output_type: ElementType) -> Array:
    """Return start, start + step, ... as far as before `stop`, the inputs first converted to `output_type`."""
    return _range(start, stop, step, output_type.dtype)


def _range(start: Array, stop: Array, step: Array, dtype: DType) -> Array:
    """Return the numbers, each rounded to `dtype` once; none where `step` is 0 or leads away from `stop`."""
    first, end, by = (_number(value, dtype) for value in (start, stop, step))
    exact = isinstance(first, int) and isinstance(end, int) and isinstance(by, int)
    steps: Any = 0 if by == 0 else -((first - end) // by) if exact else (end - first) / by
    if not (math.isfinite(first) and math.isfinite(end) and math.isfinite(by) and math.isfinite(steps)):
        raise KernelError(f"a range from {first} to {end} by {by} has no number of elements")
    count = max(0, math.ceil(steps))
    ensure_allocatable((count,), dtype)
    numbers = np.arange(count, dtype=np.int64 if exact else np.float64)
    try:
        return np.asarray(numbers * by + first, dtype)
    except OverflowError:
        raise KernelError(f"a range from {first} to {end} by {by} leaves the 64-bit integers") from None


def _number(value: Array, dtype: DType) -> Any:
    """Return a rank-0 input as a Python number of the kind of `dtype`: rounded to a float, truncated to an integer."""
    if value.size != 1:
        raise KernelError(
            f"the ends and the step of a range are single numbers, not of shape {shape_text(value.shape)}"
        )
    number = value.item()
    if is_floating(dtype):
        return float(np.asarray(number, value.dtype).astype(dtype).item())
    return int(number) if math.isfinite(number) else number


@kernel("Eye", 9)
def eye(
    num_rows: Array,
    num_columns: Array,
    diagonal_index: Array,
    batch_shape: Array | None = None,
    *,
    output_type: ElementType,
) -> Array:
    """Ones on the diagonal that lies `diagonal_index` to the right of the main one, zeros elsewhere, for each batch."""
    rows, columns = single_integer(num_rows, "num_rows"), single_integer(num_columns, "num_columns")
    batch: Sequence[int] = () if batch_shape is None else integers(batch_shape)
    shape = (*batch, rows, columns)
    if min(shape) < 0:
        raise KernelError(f"a tensor cannot have the shape {shape_text(shape)}")
    ensure_allocatable(shape, output_type.dtype)
    diagonal = max(-rows, min(columns, single_integer(diagonal_index, "diagonal_index")))
    matrix = np.eye(rows, columns, diagonal, dtype=output_type.dtype)
    return np.broadcast_to(matrix, shape) if batch else matrix
