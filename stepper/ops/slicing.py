"""Slices of a tensor by ranges of indices along its axes, read and written.

Source: the operation sets' pages of Slice, StridedSlice and SliceScatter. Bounds are clamped as Python's slices do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from stepper.element_types import LARGEST_RANK, Array
from stepper.errors import KernelError
from stepper.ops.operands import integers, is_list, normalize_axes, shape_text
from stepper.ops.registry import kernel

Mask = tuple[int, ...]


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
            return _part(data, start, stop, step, axes)

    return part


@kernel("Slice", 8, settled=_slice_between)
def slice_(data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None) -> Array:
    """Return data[start:stop:step] along `axes` (without axes: along the first ones), a view."""
    return _part(data, start, stop, step, axes)


@kernel("SliceScatter", 15)
def slice_scatter(
    data: Array, updates: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
) -> Array:
    """Return a copy of `data` whose data[start:stop:step] along `axes` is `updates`."""
    result: Array = np.array(data)
    part = _part(result, start, stop, step, axes)
    if part.shape != updates.shape:
        raise KernelError(f"updates of shape {shape_text(updates.shape)} for a slice of {shape_text(part.shape)}")
    part[...] = updates
    return result


def _part(data: Array, start: Array, stop: Array, step: Array, axes: Array | None) -> Array:
    """Return the view data[start:stop:step] along the axes."""
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


def _ranges_for(
    *,
    begin_mask: Mask = (),
    end_mask: Mask = (),
    new_axis_mask: Mask = (),
    shrink_axis_mask: Mask = (),
    ellipsis_mask: Mask = (),
) -> Callable[..., Array]:
    """Return strided_slice with these masks; quicker where they are plain ones, which they mostly are."""
    masks: dict[str, Any] = {"begin_mask": begin_mask, "end_mask": end_mask, "shrink_axis_mask": shrink_axis_mask}
    masks |= {"new_axis_mask": new_axis_mask, "ellipsis_mask": ellipsis_mask}
    in_general: Callable[..., Array] = partial(strided_slice, **masks)
    both = any(single and first for single, first in zip(shrink_axis_mask, begin_mask, strict=False))
    if both or any(new_axis_mask) or any(ellipsis_mask) or len({len(mask) for mask in masks.values() if mask}) > 1:
        return in_general
    opened = [_padded(mask, LARGEST_RANK) for mask in (shrink_axis_mask, begin_mask, end_mask)]

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
    begin: Array, end: Array, strides: Array | None = None, **masks: Mask
) -> Callable[..., Array] | None:
    """Return strided_slice between constant bounds."""
    try:
        index = _index(begin, end, strides, **masks)
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
def strided_slice(
    data: Array,
    begin: Array,
    end: Array,
    strides: Array | None = None,
    *,
    begin_mask: Mask = (),
    end_mask: Mask = (),
    new_axis_mask: Mask = (),
    shrink_axis_mask: Mask = (),
    ellipsis_mask: Mask = (),
) -> Array:
    """Return data[begin:end:strides] from the first axis on, a view; the masks leave a bound open or replace the range.

    At one position an ellipsis wins over a new axis, that over a single index (shrink), that over the range.
    """
    masks = (begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask)
    index = _index(begin, end, strides, *masks)
    try:
        view: Array = data[index]
        return view
    except (IndexError, TypeError, OverflowError) as error:
        raise KernelError(f"the slice does not fit the shape {shape_text(data.shape)}: {error}") from None


def _index(
    begin: Array,
    end: Array,
    strides: Array | None,
    begin_mask: Mask = (),
    end_mask: Mask = (),
    new_axis_mask: Mask = (),
    shrink_axis_mask: Mask = (),
    ellipsis_mask: Mask = (),
) -> tuple[Any, ...]:
    """Return the elements that a StridedSlice takes as numpy's index; of no tensor in particular."""
    begins, ends = begin.ravel().tolist(), end.ravel().tolist()
    by = [1] * len(begins) if strides is None else strides.ravel().tolist()
    masks = (begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask)
    if not len(begins) == len(ends) == len(by) or len({len(mask) for mask in masks if mask}) > 1:
        raise KernelError("begin, end and strides have different lengths, or the masks have")
    if 0 in by or sum(map(bool, ellipsis_mask[: len(begins)])) > 1:
        raise KernelError("a stride is 0 or there is more than one ellipsis")
    open_begin, open_end, new, shrink, ellipsis = (_padded(mask, len(begins)) for mask in masks)
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


def _padded(mask: tuple[int, ...], length: int) -> tuple[int, ...]:
    return mask[:length] + (0,) * (length - len(mask))
