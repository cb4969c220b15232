"""Pooling: AvgPool, MaxPool, AdaptiveAvgPool, AdaptiveMaxPool.

Source: the operation sets' pages of the category Pooling. Windows are boxes, so one axis is pooled after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, normalize_axis, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel
from stepper.ops.windows import AutoPad, Rounding, WindowedAxis, padded, windowed_axes

Ints = tuple[int, ...]
IndexType = Literal["i64", "i32"]

_LONGEST_WINDOW: Final = 2**20
_MOST_TERMS: Final = 2**34
"""Beyond what an image needs; larger numbers come from a faulty attribute and would take minutes."""


@kernel("AvgPool", 1, 14, without=("dilations",))
@kernel("AvgPool", 16)
def avg_pool(
    data: Array,
    *,
    kernel: Ints,
    strides: Ints,
    pads_begin: Ints = (),
    pads_end: Ints = (),
    dilations: Ints = (),
    exclude_pad: bool = True,
    rounding_type: Rounding = "floor",
    auto_pad: AutoPad = "explicit",
) -> Array:
    """Return the mean under each window, of the data alone or (without `exclude_pad`) of the padding's zeros too.

    What a window has beyond the data counts only where there is padding: rounding_type=ceil alone adds no zeros.
    """
    axes = _pooled_axes(data, (kernel, strides, dilations, pads_begin, pads_end), auto_pad, rounding_type)
    lead = data.ndim - len(axes)
    of_data_alone = exclude_pad or not any(axis.begin or axis.end for axis in axes)
    result = padded(widened(data) if is_floating(data.dtype) else data.astype(np.float64), axes, 0)
    for number, axis in enumerate(axes):
        result = _over_windows(np.add, result, lead + number, axis)
        divisor = _data_under(axis, data.shape[lead + number]) if of_data_alone else np.full(axis.count, axis.kernel)
        spread = (slice(None), *[np.newaxis] * (len(axes) - 1 - number))
        result = result / divisor.astype(result.dtype)[spread]
    return narrowed(result if is_floating(data.dtype) else np.rint(result), data.dtype)


@kernel("MaxPool", 1)
def max_pool_1(
    data: Array,
    *,
    kernel: Ints,
    strides: Ints,
    pads_begin: Ints = (),
    pads_end: Ints = (),
    rounding_type: Rounding = "floor",
    auto_pad: AutoPad = "explicit",
) -> Array:
    """Return the greatest element under each window."""
    axes = _pooled_axes(data, (kernel, strides, (), pads_begin, pads_end), auto_pad, rounding_type)
    wide = widened(data)
    result = padded(wide, axes, _least(wide.dtype))
    for number, axis in enumerate(axes):
        result = _over_windows(np.maximum, result, data.ndim - len(axes) + number, axis)
    return narrowed(result, data.dtype)


@kernel("MaxPool", 8, 14)
def max_pool(
    data: Array,
    *,
    kernel: Ints,
    strides: Ints,
    dilations: Ints = (),
    pads_begin: Ints = (),
    pads_end: Ints = (),
    rounding_type: Rounding = "floor",
    auto_pad: AutoPad = "explicit",
    index_element_type: IndexType = "i64",
    axis: int = 0,
) -> tuple[Array, Array]:
    """Return the greatest element under each window and where it was first, counted in the tensor from `axis` on."""
    axes = _pooled_axes(data, (kernel, strides, dilations, pads_begin, pads_end), auto_pad, rounding_type)
    first = normalize_axis(axis, data.ndim)
    wide = widened(data)
    values = padded(wide, axes, _least(wide.dtype))
    indices = padded(np.arange(data.size).reshape(data.shape), axes, -1)
    for number, windowed in reversed(list(enumerate(axes))):
        values, indices = _greatest_under(values, indices, data.ndim - len(axes) + number, windowed)
    counted = np.maximum(indices, 0) % max(math.prod(data.shape[first:]), 1)
    return narrowed(values, data.dtype), counted.astype(index_element_type.replace("i", "int"))


def _pooled_axes(
    data: Array, lists: tuple[Sequence[int], ...], auto_pad: str, rounding: str
) -> tuple[WindowedAxis, ...]:
    if data.ndim < 3:
        raise KernelError(f"data of shape {shape_text(data.shape)} has no spatial axis to pool")
    kernel, strides, dilations, begin, end = lists
    if any(pad < 0 for pad in (*begin, *end)):
        raise KernelError(f"pads {list(begin)} and {list(end)}: none may be negative")
    axes = windowed_axes(data.shape[2:], kernel, strides, dilations, begin, end, auto_pad, rounding)
    shape = (*data.shape[:2], *(axis.count for axis in axes))
    ensure_allocatable(shape, data.dtype)
    terms = math.prod(shape) * max(kernel)
    if max(kernel) > _LONGEST_WINDOW or terms > _MOST_TERMS:
        raise KernelError(f"windows of {shape_text(kernel)} for a result of shape {shape_text(shape)} are too large")
    return axes


def _over_windows(reduction: np.ufunc, x: Array, at: int, axis: WindowedAxis) -> Array:
    """Return the reduction of what lies under the windows of one axis: element by element or window by window."""
    lead = (slice(None),) * at
    if axis.kernel <= axis.count:
        return functools.reduce(reduction, (x[(*lead, axis.under(element))] for element in range(axis.kernel)))
    windows = (
        slice(start, start + axis.extent, axis.dilation) for start in range(0, axis.count * axis.stride, axis.stride)
    )
    return np.stack([reduction.reduce(x[(*lead, window)], axis=at) for window in windows], axis=at)


def _data_under(axis: WindowedAxis, size: int) -> Array:
    """Return the number of elements under each window that are data and not padding."""
    start = np.arange(axis.count) * axis.stride - axis.begin
    first = np.maximum(-(start // axis.dilation), 0)
    end = np.minimum(-((start - size) // axis.dilation), axis.kernel)
    return np.asarray(np.maximum(end - first, 0))


def _greatest_under(values: Array, indices: Array, at: int, axis: WindowedAxis) -> tuple[Array, Array]:
    """Return the greatest element under each window of an axis and its index; padding (-1) only if all is."""
    lead = (slice(None),) * at
    best, best_index = values[(*lead, axis.under(0))].copy(), indices[(*lead, axis.under(0))].copy()
    any_nan = is_floating(values.dtype) and bool(np.isnan(values).any())
    any_padding = bool((indices < 0).any())
    for element in range(1, axis.kernel):
        value, index = values[(*lead, axis.under(element))], indices[(*lead, axis.under(element))]
        better = value > best
        if any_padding:
            better |= (best_index < 0) & (index >= 0)
        if any_nan:
            better |= np.isnan(value) & ~np.isnan(best)
        np.copyto(best, value, where=better)
        np.copyto(best_index, index, where=better)
    return best, best_index


def _least(dtype: np.dtype[Any]) -> Any:
    """Return the least value of the type."""
    return -np.inf if is_floating(dtype) else np.iinfo(dtype).min


@kernel("AdaptiveAvgPool", 8)
def adaptive_avg_pool(data: Array, output_shape: Array) -> Array:
    """Return the mean of each of `output_shape` bins of nearly equal size."""
    result = widened(data)
    for axis, size in _adaptive_axes(data, output_shape):
        index, inside = _bins(data.shape[axis], size)
        spread = (slice(None), slice(None), *[np.newaxis] * (data.ndim - 1 - axis))
        total = np.where(inside[spread], result.take(index, axis), 0).sum(axis=axis + 1)
        result = total / np.count_nonzero(inside, axis=1).astype(total.dtype)[(*spread[1:],)]
    return narrowed(result, data.dtype)


@kernel("AdaptiveMaxPool", 8)
def adaptive_max_pool(
    data: Array, output_shape: Array, *, index_element_type: IndexType = "i64"
) -> tuple[Array, Array]:
    """Return the greatest element of each bin and where it was first, counted in the spatial axes."""
    values = widened(data)
    indices = np.broadcast_to(np.arange(math.prod(data.shape[2:])).reshape(data.shape[2:]), data.shape)
    for axis, size in reversed(_adaptive_axes(data, output_shape)):
        index, inside = _bins(data.shape[axis], size)
        spread = (slice(None), slice(None), *[np.newaxis] * (data.ndim - 1 - axis))
        binned = np.where(inside[spread], values.take(index, axis), np.asarray(_least(values.dtype), values.dtype))
        at = np.expand_dims(binned.argmax(axis=axis + 1), axis + 1)
        values = np.take_along_axis(binned, at, axis + 1).squeeze(axis + 1)
        indices = np.take_along_axis(indices.take(index, axis), at, axis + 1).squeeze(axis + 1)
    return narrowed(values, data.dtype), indices.astype(index_element_type.replace("i", "int"))


def _adaptive_axes(data: Array, output_shape: Array) -> list[tuple[int, int]]:
    """Return each spatial axis with its new size."""
    sizes = integers(output_shape)
    if data.ndim != len(sizes) + 2 or not sizes or min(sizes) < 1 or 0 in data.shape[2:]:
        raise KernelError(f"data of shape {shape_text(data.shape)} cannot be pooled to {shape_text(sizes)}")
    ensure_allocatable((*data.shape[:2], *sizes), np.int64)
    return list(enumerate(sizes, 2))


def _bins(size: int, count: int) -> tuple[Array, Array]:
    """Return for each bin its elements [count, longest], and which of these it has."""
    bins = np.arange(count)[:, np.newaxis]
    start, end = bins * size // count, -(-(bins + 1) * size // count)
    elements = start + np.arange(int((end - start).max()))
    return np.minimum(elements, size - 1), elements < end
