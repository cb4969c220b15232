"""Movement of elements: Concat, Split, Pad, Tile, Broadcast, slices and alike."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from msgspec.structs import astuple

from stepper.element_types import LARGEST_RANK, Array, Ints, Shape
from stepper.errors import KernelError
from stepper.ops.operands import (
    broadcast_shape,
    ensure_allocatable,
    integers,
    is_list,
    normalize_axes,
    normalize_axis,
    shape_text,
    single_integer,
    surrounded,
)
from stepper.ops.registry import attributes_of, kernel
from stepper.records import Record

_BOOKKEEPING = np.dtype("V128")


@kernel("Concat", 1)
def concat(*inputs: Array, axis: int = 0) -> Array:
    """Return the inputs one after the other along `axis`."""
    try:
        return np.concatenate(inputs, axis)
    except (TypeError, ValueError, OverflowError):
        shapes = ", ".join(shape_text(part.shape) for part in inputs)
        raise KernelError(f"tensors of the shapes {shapes} cannot be concatenated along axis {axis}") from None


def _split_at(axis: Array, *, num_splits: int) -> Callable[[Array], tuple[Array, ...]] | None:
    """Return split along a constant axis."""
    return _parts_at(axis, lambda data: split(data, axis, num_splits=num_splits))


def _variadic_split_at(axis: Array, split_lengths: Array) -> Callable[[Array], tuple[Array, ...]] | None:
    """Return variadic_split along a constant axis into constant lengths."""
    return _parts_at(axis, lambda data: variadic_split(data, axis, split_lengths))


def _parts_at(axis: Array, split: Callable[[Array], tuple[Array, ...]]) -> Callable[[Array], tuple[Array, ...]] | None:
    """Return `split`, quicker for a tensor as long along the axis as the one before."""
    if axis.size != 1 or not -LARGEST_RANK <= axis.item() < LARGEST_RANK:
        return None
    position = int(axis.item())
    before = (slice(None),) * position if position >= 0 else (...,)
    after = (slice(None),) * (-1 - position)
    known: tuple[int, list[tuple[Any, ...]]] = -1, []

    def parts(data: Array) -> tuple[Array, ...]:
        nonlocal known
        dim, indices = known
        try:
            if data.shape[position] == dim:
                return tuple([data[index] for index in indices])
        except IndexError:
            pass
        found = split(data)
        ends = list(itertools.accumulate(part.shape[position] for part in found))
        slices = map(slice, [0, *ends], ends)
        known = data.shape[position], [(*before, one, *after) for one in slices]
        return found

    return parts


@kernel("Split", 1, settled=_split_at)
def split(data: Array, axis: Array, *, num_splits: int) -> tuple[Array, ...]:
    """Return `num_splits` equal parts along `axis`, views."""
    position = normalize_axis(single_integer(axis, "the axis"), data.ndim)
    dim = data.shape[position]
    if num_splits < 1 or dim % num_splits:
        raise KernelError(f"dimension {dim} of axis {position} cannot be split into {num_splits} equal parts")
    ensure_allocatable((num_splits,), _BOOKKEEPING)
    length = dim // num_splits
    before = (slice(None),) * position
    return tuple([data[(*before, slice(i * length, i * length + length))] for i in range(num_splits)])


@kernel("VariadicSplit", 1, settled=_variadic_split_at)
def variadic_split(data: Array, axis: Array, split_lengths: Array) -> tuple[Array, ...]:
    """Return views of the given lengths along `axis`; one length may be -1 and takes the rest."""
    position = normalize_axis(single_integer(axis, "the axis"), data.ndim)
    dim, lengths = data.shape[position], integers(split_lengths)
    if -1 in lengths:
        lengths[lengths.index(-1)] = dim - sum(lengths) - 1
    if sum(lengths) != dim or min(lengths, default=0) < 0:
        text = shape_text(integers(split_lengths))
        raise KernelError(f"dimension {dim} of axis {position} cannot be split into the lengths {text}")
    before, parts, start = (slice(None),) * position, [], 0
    for length in lengths:
        parts.append(data[(*before, slice(start, start + length))])
        start += length
    return tuple(parts)


@kernel("Broadcast", 1)
def broadcast_to_target(
    data: Array,
    target_shape: Array,
    axes_mapping: Array | None = None,
    *,
    mode: Literal["explicit", "none", "numpy"] = "explicit",
) -> Array:
    """Return `data` repeated to `target_shape`, as numpy does, or as `axes_mapping` says, if there is one."""
    if mode == "numpy" or axes_mapping is None:
        return broadcast(data, target_shape)
    return broadcast(data, target_shape, axes_mapping, mode="explicit")


@kernel("Broadcast", 3)
def broadcast(
    data: Array,
    target_shape: Array,
    axes_mapping: Array | None = None,
    *,
    mode: Literal["numpy", "explicit", "bidirectional"] = "numpy",
) -> Array:
    """Return `data` repeated to `target_shape`, a view; bidirectional: to what both shapes broadcast to.

    explicit: axis i of `data` lies on axis axes_mapping[i] of the output.
    """
    shape = target_shape.tolist()
    try:
        if mode == "bidirectional":
            shape = broadcast_shape(data.shape, shape)
        elif mode == "explicit":
            data = data.reshape(_spread(data.shape, len(shape), axes_mapping))
        ensure_allocatable(shape, data.dtype)
        return np.broadcast_to(data, shape)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, KernelError):
            raise
        text = shape_text(integers(target_shape))
        raise KernelError(f"shape {shape_text(data.shape)} cannot be broadcast to {text} (mode {mode})") from None


def _spread(shape: Shape, rank: int, axes_mapping: Array | None) -> list[int]:
    """Return the shape of `rank` dimensions that has dimension i at axes_mapping[i], 1 elsewhere."""
    axes = [] if axes_mapping is None else integers(axes_mapping)
    if len(axes) != len(shape) or axes != sorted(set(axes)) or (axes and not 0 <= axes[0] <= axes[-1] < rank):
        raise KernelError(
            f"axes_mapping {shape_text(axes)} does not lay shape {shape_text(shape)} in order on {rank} dimensions"
        )
    spread = [1] * rank
    for axis, dim in zip(axes, shape, strict=True):
        spread[axis] = dim
    return spread


@kernel("Tile", 1)
def tile(data: Array, repeats: Array) -> Array:
    """Return `data` repeated repeats[i] times along axis i, both aligned to the right; negative ones count as 0."""
    times = [max(0, count) for count in repeats.ravel().tolist()]
    rank = max(len(times), data.ndim)
    times = [1] * (rank - len(times)) + times
    dims = (1,) * (rank - data.ndim) + data.shape
    shape = [count * dim for count, dim in zip(times, dims, strict=True)]
    ensure_allocatable(shape, data.dtype)
    if 0 in shape:
        return np.zeros(shape, data.dtype)
    try:
        block, repeated = data.size, data
        for dim, count in zip(dims, times, strict=True):
            if count != 1:
                repeated = repeated.reshape(-1, block).repeat(count, 0)
            block //= dim
        return repeated.reshape(shape)
    except (TypeError, ValueError, OverflowError):
        raise KernelError(f"shape {shape_text(data.shape)} cannot be tiled {shape_text(times)} times") from None


@kernel("Pad", 1, 12)
def pad(
    data: Array,
    pads_begin: Array,
    pads_end: Array,
    pad_value: Array | None = None,
    *,
    pad_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
) -> Array:
    """Return `data` with elements added before and after each axis; a negative number takes elements away."""
    before, after = integers(pads_begin), integers(pads_end)
    if not len(before) == len(after) == data.ndim:
        raise KernelError(f"{len(before)} and {len(after)} pads for a tensor of rank {data.ndim}")
    shape = [dim + first + last for dim, first, last in zip(data.shape, before, after, strict=True)]
    if min(shape, default=0) < 0:
        raise KernelError(f"pads {before} and {after} take away more than the shape {shape_text(data.shape)} has")
    ensure_allocatable(shape, data.dtype)
    if pad_mode == "constant":
        if pad_value is not None and pad_value.size != 1:
            raise KernelError(f"the pad value must be a single one, it has the shape {shape_text(pad_value.shape)}")
        return surrounded(data, before, after, pad_value)
    for axis, (dim, first, last) in enumerate(zip(data.shape, before, after, strict=True)):
        if first or last:
            if max(first, last) > _reach(pad_mode, dim):
                raise KernelError(f"{pad_mode} padding of axis {axis} is wider than its dimension {dim} allows")
            data = data.take(_SOURCES[pad_mode](np.arange(-first, dim + last), dim), axis)
    return data


def _reach(mode: str, dim: int) -> float:
    """Return the number of elements beyond an end of an axis for which the mode has a value."""
    if mode == "edge":
        return math.inf if dim else 0
    return dim - 1 if mode == "reflect" else dim


def _edge(index: Any, dim: int) -> Any:
    return index.clip(0, dim - 1)


def _reflect(index: Any, dim: int) -> Any:
    index = abs(index)
    return np.where(index < dim, index, 2 * (dim - 1) - index)


def _symmetric(index: Any, dim: int) -> Any:
    index = np.where(index < 0, -1 - index, index)
    return np.where(index < dim, index, 2 * dim - 1 - index)


_SOURCES = {"edge": _edge, "reflect": _reflect, "symmetric": _symmetric}
"""Return for each mode which element of an axis of `dim` elements stands at a position that may lie outside it."""


@kernel("Reverse", 1)
def reverse(data: Array, reversed_axes: Array | None = None, *, mode: Literal["index", "mask"] = "index") -> Array:
    """Return `data` with the order along the given axes (mask: where it is true) turned round, a view."""
    if reversed_axes is None:
        return data
    if mode == "mask":
        if reversed_axes.shape != (data.ndim,):
            raise KernelError(f"a mask of shape {shape_text(reversed_axes.shape)} for a tensor of rank {data.ndim}")
        axes = tuple(np.flatnonzero(reversed_axes).tolist())
    else:
        axes = normalize_axes(reversed_axes, data.ndim)
    return np.flip(data, axes)


@kernel("Roll", 7)
def roll(data: Array, shift: Array, axes: Array) -> Array:
    """Return `data` with elements `shift` positions further along the axes, round the end; shifts add up."""
    named = [normalize_axis(axis, data.ndim) for axis in integers(axes)]
    shifts = integers(shift)
    if len(shifts) == 1:
        shifts *= len(named)
    if len(shifts) != len(named):
        raise KernelError(f"{len(shifts)} shifts for {len(named)} axes")
    total = [0] * data.ndim
    for axis, by in zip(named, shifts, strict=True):
        total[axis] = (total[axis] + by) % max(1, data.shape[axis])
    return np.roll(data, total, range(data.ndim)) if data.ndim else data


@kernel("ReverseSequence", 1)
def reverse_sequence(data: Array, seq_lengths: Array, *, batch_axis: int = 0, seq_axis: int = 1) -> Array:
    """Return `data` with the first seq_lengths[b] elements along `seq_axis` of batch element b reversed."""
    batch, time = normalize_axis(batch_axis, data.ndim), normalize_axis(seq_axis, data.ndim)
    if batch == time or seq_lengths.shape != (data.shape[batch],):
        text = f"batch_axis {batch_axis} and seq_axis {seq_axis} of shape {shape_text(data.shape)}"
        raise KernelError(f"lengths of shape {shape_text(seq_lengths.shape)} do not fit {text}")
    lengths = seq_lengths.astype(np.int64)[:, None]
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= data.shape[time]:
        raise KernelError(f"a sequence length is outside 0 to {data.shape[time]}")
    position = np.arange(data.shape[time])
    source = np.where(position < lengths, lengths - 1 - position, position)
    sequences = np.moveaxis(data, (batch, time), (0, 1))[np.arange(len(lengths))[:, None], source]
    return np.moveaxis(sequences, (0, 1), (batch, time))


@kernel("OneHot", 1, without=("negative_indices_mode",))
@kernel("OneHot", 16)
def one_hot(
    indices: Array,
    depth: Array,
    on_value: Array,
    off_value: Array,
    *,
    axis: int = 0,
    negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative",
) -> Array:
    """Return a new `axis` of `depth` elements: on_value at the index, off_value elsewhere and for an index outside.

    Negative indices count from its end (normalize) or lie outside.
    """
    size = single_integer(depth, "the depth")
    position = normalize_axis(axis, indices.ndim + 1)
    if size < 0 or on_value.size != 1 or off_value.size != 1:
        raise KernelError(f"the depth {size} is negative, or on_value or off_value is not a single value")
    ensure_allocatable((*indices.shape, size), on_value.dtype)
    result: Array = np.empty((indices.size, size), on_value.dtype)
    result[...] = off_value
    index = indices.reshape(-1).astype(np.int64, copy=False)
    if negative_indices_mode == "normalize":
        index = np.where(index < 0, index + size, index)
    (rows,) = (index.view(np.uint64) < size).nonzero()  # negative ones are greater than any size
    result[rows, index[rows]] = on_value
    result = result.reshape((*indices.shape, size))
    return result if position == indices.ndim else np.moveaxis(result, -1, position)


# Slices of a tensor by ranges of indices along its axes, read and written.
#
# Source: the operation sets' pages of Slice, StridedSlice and SliceScatter. Bounds are clamped as Python's slices do.


def _slice_between(start: Array, stop: Array, step: Array, axes: Array | None = None) -> Callable[..., Array] | None:
    """Return slice_ between constant bounds, along axes that are all counted from the front, or all from the end."""
    if not all(map(is_list, (start, stop, step) if axes is None else (start, stop, step, axes))):
        return None
    bounds = [values.tolist() for values in (start, stop, step)]
    named = list(range(len(bounds[0]))) if axes is None else axes.tolist()
    first, last = min(named, default=0), max(named, default=0)
    alike = len({len(named), *map(len, bounds)}) == 1 and len(set(named)) == len(named)
    if not alike or first < 0 <= last or max(-first, last) >= LARGEST_RANK:
        return None
    ranges: list[Any] = [slice(None)] * max(-first, last + 1)
    for axis, *bound in zip(named, *bounds, strict=True):
        ranges[axis] = slice(*bound)
    index = (*ranges, ...) if first >= 0 else (..., *ranges)

    def part(data: Array) -> Array:
        try:
            view: Array = data[index]
            return view
        except (IndexError, TypeError, ValueError, OverflowError):
            return slice_(data, start, stop, step, axes)

    return part


@kernel("Slice", 8, settled=_slice_between)
def slice_(data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None) -> Array:
    """Return data[start:stop:step] along `axes` (without axes: along the first ones), a view."""
    ranges: list[Any] = [slice(None)] * data.ndim
    try:
        starts, stops, steps = start.tolist(), stop.tolist(), step.tolist()
        named = list(range(len(starts))) if axes is None else axes.tolist()
        for axis, first, end, by in zip(named, starts, stops, steps, strict=True):
            ranges[axis] = slice(first, end, by)
        if len(named) > 1 and len(normalize_axes(named, data.ndim)) < len(named):
            raise ValueError(named)
        part: Array = data[(*ranges, ...)]
        return part
    except (IndexError, TypeError, ValueError, OverflowError):
        texts = ", ".join(shape_text(integers(x)) for x in (start, stop, step, axes) if x is not None)
        raise KernelError(f"start, stop, step, axes {texts} do not fit the shape {shape_text(data.shape)}") from None


@kernel("SliceScatter", 15)
def slice_scatter(
    data: Array, updates: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
) -> Array:
    """Return a copy of `data` whose data[start:stop:step] along `axes` is `updates`."""
    result: Array = np.array(data)
    part = slice_(result, start, stop, step, axes)
    if part.shape != updates.shape:
        raise KernelError(f"updates of shape {shape_text(updates.shape)} for a slice of {shape_text(part.shape)}")
    part[...] = updates
    return result


class _Masks(Record, kw_only=True):
    """The attributes of StridedSlice."""

    begin_mask: Ints = ()
    end_mask: Ints = ()
    new_axis_mask: Ints = ()
    shrink_axis_mask: Ints = ()
    ellipsis_mask: Ints = ()

    def opened(self, length: int) -> list[Ints]:
        """Return each mask for so many positions: begin, end, new axis, shrink, ellipsis."""
        masks = astuple(self)
        if len({len(mask) for mask in masks if mask}) > 1:
            raise KernelError("the masks have different lengths")
        return [mask[:length] + (0,) * (length - len(mask)) for mask in masks]


def _ranges_for(**attributes: Ints) -> Callable[..., Array]:
    """Return strided_slice with these masks; quicker where they are plain ones, which they mostly are."""
    in_general: Callable[..., Array] = partial(strided_slice, **attributes)
    try:
        first, last, new, shrink, ellipsis = _Masks(**attributes).opened(LARGEST_RANK)
    except KernelError:
        return in_general
    if any(map(operator.and_, shrink, first)) or any(new) or any(ellipsis):
        return in_general
    opened = shrink, first, last

    def ranges(data: Array, begin: Array, end: Array, strides: Array | None = None) -> Array:
        try:
            begins, ends = begin.tolist(), end.tolist()
            by = [1] * len(begins) if strides is None else strides.tolist()
            if len(begins) == len(ends) == len(by) <= data.ndim and 0 not in by:
                index = [
                    start if single else slice(None if first else start, None if last else stop, step)
                    for start, stop, step, single, first, last in zip(begins, ends, by, *opened, strict=False)
                ]
                view: Array = data[(*index, ...)]
                return view
        except (IndexError, TypeError, OverflowError):
            pass
        return in_general(data, begin, end, strides)

    return ranges


def _strided_slice_between(
    begin: Array, end: Array, strides: Array | None = None, **masks: Ints
) -> Callable[..., Array] | None:
    """Return strided_slice between constant bounds."""
    try:
        index = _index(begin, end, strides, _Masks(**masks))
    except KernelError:
        return None

    def part(data: Array) -> Array:
        try:
            view: Array = data[index]
            return view
        except (IndexError, TypeError, OverflowError):
            return strided_slice(data, begin, end, strides, **masks)

    return part


@kernel("StridedSlice", 1, prepared=_ranges_for, settled=_strided_slice_between)
@attributes_of(_Masks)
def strided_slice(data: Array, begin: Array, end: Array, strides: Array | None = None, **masks: Any) -> Array:
    """Return data[begin:end:strides] from the first axis on, a view; the masks leave a bound open or replace the range.

    At one position an ellipsis wins over a new axis, that over a single index (shrink), that over the range.
    """
    index = _index(begin, end, strides, _Masks(**masks))
    try:
        view: Array = data[index]
        return view
    except (IndexError, TypeError, OverflowError) as error:
        raise KernelError(f"the slice does not fit the shape {shape_text(data.shape)}: {error}") from None


def _index(begin: Array, end: Array, strides: Array | None, masks: _Masks) -> tuple[Any, ...]:
    """Return the elements that a StridedSlice takes as numpy's index; of no tensor in particular."""
    begins, ends = begin.ravel().tolist(), end.ravel().tolist()
    by = [1] * len(begins) if strides is None else strides.ravel().tolist()
    if not len(begins) == len(ends) == len(by):
        raise KernelError("begin, end and strides have different lengths")
    open_begin, open_end, new, shrink, ellipsis = masks.opened(len(begins))
    if 0 in by or sum(map(bool, ellipsis)) > 1:
        raise KernelError("a stride is 0 or there is more than one ellipsis")
    index: list[Any] = []
    for i, (first, last, stride) in enumerate(zip(begins, ends, by, strict=True)):
        if ellipsis[i]:
            index.append(...)
        elif new[i]:
            index.append(None)
        elif shrink[i]:
            index.append(0 if open_begin[i] else first)
        else:
            index.append(slice(None if open_begin[i] else first, None if open_end[i] else last, stride))
    if ... not in index:
        index.append(...)
    return tuple(index)
