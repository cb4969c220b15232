"""Sliding windows: convolutions, deformable ones, and pooling.

Elements moved between the batch, the channels and the spatial axes, in blocks or in patches.

Source: the operation sets' pages of DepthToSpace, SpaceToDepth, ShuffleChannels, BatchToSpace, SpaceToBatch,
ExtractImagePatches, Col2Im and ReorgYolo.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from stepper.element_types import ELEMENT_TYPES, Array, DType, Ints, Shape, is_floating
from stepper.errors import KernelError
from stepper.ops.images import bilinear
from stepper.ops.matmul import WORTH_THREADS, matrix_product
from stepper.ops.operands import ensure_allocatable, integers, normalize_axis, shape_text, surrounded
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.records import Record

# Windows that slide over the spatial axes of [N, C, ...]: their counts, their padding, the elements under them.
#
# Source: the attributes strides, dilations, pads_begin, pads_end, auto_pad and rounding_type of convolution and
# pooling.

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]
Rounding = Literal["floor", "ceil", "ceil_torch"]


class WindowedAxis(Record):
    """Describe a spatial axis: `count` windows of `kernel` elements over padded data.

    `begin` and `end` are the pads.
    """

    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    count: int

    @property
    def extent(self) -> int:
        """The length of a window from its first to its last element."""
        return (self.kernel - 1) * self.dilation + 1

    def under(self, at: int) -> slice:
        """Return the elements of the padded data that lie under element `at` of each window."""
        start = at * self.dilation
        return slice(start, start + (self.count - 1) * self.stride + 1, self.stride)

    def padded_size(self, size: int) -> int:
        """Return the padded data's size: as far as the padding or the last window goes."""
        return max(self.begin + size + self.end, (self.count - 1) * self.stride + self.extent)


class Windows(Record, kw_only=True):
    """The attributes of windows that slide; an empty list of strides or dilations means ones, of pads zeros."""

    strides: Ints = ()
    pads_begin: Ints = ()
    pads_end: Ints = ()
    dilations: Ints = ()
    auto_pad: AutoPad = "explicit"

    def along(self, spatial: Sequence[int]) -> tuple[Sequence[int], ...]:
        """Return strides, dilations and pads of these axes. KernelError for other lengths, and what is out of range."""
        return (
            per_axis("strides", self.strides, spatial, default=1, least=1),
            per_axis("dilations", self.dilations, spatial, default=1, least=1),
            per_axis("pads_begin", self.pads_begin, spatial),
            per_axis("pads_end", self.pads_end, spatial),
        )

    def over(self, spatial: Sequence[int], kernel: Sequence[int], rounding: str = "floor") -> tuple[WindowedAxis, ...]:
        """Return the windows along each axis. KernelError as above, and for a window larger than the padded data."""
        lists = [spatial, per_axis("kernel", kernel, spatial, least=1), *self.along(spatial)]
        axis = functools.partial(_windowed_axis, auto_pad=self.auto_pad, rounding=rounding)
        return tuple(itertools.starmap(axis, zip(*lists, strict=True)))


def per_axis(
    name: str, values: Sequence[int], spatial: Sequence[int], default: int = 0, least: int = -(2**31)
) -> Sequence[int]:
    """Return a list attribute with one number for each spatial axis, the default where it is empty."""
    if not values:
        values = (default,) * len(spatial)
    if len(values) != len(spatial):
        raise KernelError(f"'{name}' has {len(values)} numbers for spatial dimensions {shape_text(spatial)}")
    if any(not least <= value < 2**31 for value in values):
        raise KernelError(f"'{name}' is {','.join(map(str, values))}, out of range")
    return values


def _windowed_axis(
    size: int, kernel: int, stride: int, dilation: int, begin: int, end: int, *, auto_pad: str, rounding: str
) -> WindowedAxis:
    extent = (kernel - 1) * dilation + 1
    if auto_pad in ("same_upper", "same_lower"):
        count = -(-size // stride)
        total = max((count - 1) * stride + extent - size, 0)
        begin, end = total // 2, total - total // 2
        if auto_pad == "same_lower":
            begin, end = end, begin
    else:
        if auto_pad == "valid":
            begin = end = 0
        room = begin + size + end - extent
        count = (room // stride if rounding == "floor" else -(-room // stride)) + 1 if room >= 0 else 0
        if rounding == "ceil_torch" and (count - 1) * stride >= size + begin:
            count -= 1
    if count < 1:
        raise KernelError(f"a window of {extent} elements does not fit {size} padded by {begin} and {end}")
    return WindowedAxis(kernel, stride, dilation, begin, end, count)


def last_axes(indices: Iterable[int | slice]) -> tuple[Any, ...]:
    """Return the index that applies `indices` to the last axes of an array."""
    return (..., *indices)


def padded(x: Array, axes: Sequence[WindowedAxis], value: Any) -> Array:
    """Return `x` with `value` around its spatial axes, as far as the windows reach; negative pads crop."""
    lead, sizes = (0,) * (x.ndim - len(axes)), x.shape[-len(axes) :]
    before = (*lead, *(axis.begin for axis in axes))
    after = [axis.padded_size(size) - axis.begin - size for axis, size in zip(axes, sizes, strict=True)]
    return surrounded(x, before, (*lead, *after), value)


def under_windows(padded_data: Array, axes: Sequence[WindowedAxis]) -> Array:
    """Return a view [..., *kernel, *counts] of padded data [..., *spatial]."""
    rank, lead = len(axes), padded_data.ndim - len(axes)
    spatial = tuple(range(lead, lead + rank))
    windows = np.lib.stride_tricks.sliding_window_view(padded_data, [axis.extent for axis in axes], spatial)
    view: Array = windows[
        last_axes([*(axis.under(0) for axis in axes), *(slice(None, None, axis.dilation) for axis in axes)])
    ]
    order = (*range(lead), *range(lead + rank, lead + 2 * rank), *spatial)
    return view.transpose(order)


_CACHED = 2**20
"""Bytes that the columns of one product may take: a processor's second cache holds them."""
_LAID_OUT_WHOLE = 8 * _CACHED
"""Bytes of columns up to which parting them saves nothing."""
_FEWEST_COLUMNS = 64
"""Columns from which a product is efficient."""
_MANY_OUTPUTS = 64
"""Outputs from which the sums take far longer than laying out columns, so that threads are worth it."""
_LARGEST_COLUMNS = 64 * _CACHED
"""Bytes that the columns of a product on several threads may take."""
_U1 = ELEMENT_TYPES["u1"].dtype


@kernel("GroupConvolution", 1)
@attributes_of(Windows)
def group_convolution(data: Array, filters: Array, **attributes: Any) -> Array:
    """Return filters [G, O/G, I/G, ...] slid over data [N, I, ...], each group over its own channels."""
    _check_ranks(data, filters, data.ndim + 1)
    if data.shape[1] != filters.shape[0] * filters.shape[2]:
        raise KernelError(f"filters of shape {shape_text(filters.shape)} do not fit data {shape_text(data.shape)}")
    axes = Windows(**attributes).over(data.shape[2:], filters.shape[3:])
    return narrowed(correlation(padded(widened(data), axes, 0), widened(filters), axes), data.dtype)


@kernel("Convolution", 1)
@attributes_of(group_convolution)
def convolution(data: Array, filters: Array, **attributes: Any) -> Array:
    """Return filters [O, I, ...] slid over data [N, I, ...]."""
    _check_ranks(data, filters, data.ndim)
    return group_convolution(data, filters.reshape(1, *filters.shape), **attributes)


def correlation(data: Array, filters: Array, axes: Sequence[WindowedAxis]) -> Array:
    """Return the sum over channels and window elements of grouped filters times padded data [N, I, ...].

    The elements under the windows are laid out as columns of a matrix, of many windows as much at once as fits a cache.
    """
    groups, outputs, inputs = filters.shape[:3]
    counts = [axis.count for axis in axes]
    shape = (len(data), groups * outputs, *counts)
    ensure_allocatable(shape, data.dtype)
    terms = inputs * math.prod(axis.kernel for axis in axes)
    weights = filters.reshape(groups, outputs, terms)

    def product(part: Array) -> Array:
        places = part.shape[-len(axes) :]
        columns = part.reshape(len(data), groups, terms, math.prod(places))
        return matrix_product(weights, columns).reshape(len(data), groups, outputs, *places)

    under = under_windows(data, axes)
    lies_in_columns = all(axis.kernel == axis.stride == 1 for axis in axes)
    size = len(data) * groups * terms * data.itemsize
    most = _columns_at_once(size, outputs, outputs * terms, math.prod(counts))
    if lies_in_columns or math.prod(counts) <= most or math.prod(counts) * size <= _LAID_OUT_WHOLE:
        return product(under).reshape(shape)
    result = np.empty((len(data), groups, outputs, *counts), data.dtype)
    for block in _blocks(counts, most):
        result[block] = product(under[block])
    return result.reshape(shape)


def _columns_at_once(size: int, outputs: int, multiplications: int, count: int) -> int:
    """Return how many of `count` columns to lay out at once, of this size in bytes and so many multiplications each."""
    most = max(_CACHED // max(size, 1), _FEWEST_COLUMNS)
    if outputs >= _MANY_OUTPUTS and count * multiplications >= WORTH_THREADS:
        most = max(most, _LARGEST_COLUMNS // max(size, 1))
    return most


def _blocks(counts: Sequence[int], most: int) -> Iterator[tuple[Any, ...]]:
    """Yield the indices of blocks of at most so many places of the last axes, as long on the later axes as can be."""
    steps: list[int] = []
    for count in reversed(counts):
        steps.insert(0, min(count, max(most // math.prod(steps), 1)))
    for starts in itertools.product(*(range(0, count, step) for count, step in zip(counts, steps, strict=True))):
        yield last_axes(slice(start, start + step) for start, step in zip(starts, steps, strict=True))


@kernel("GroupConvolutionBackpropData", 1)
@attributes_of(Windows)
def group_convolution_backprop_data(
    data: Array,
    filters: Array,
    output_shape: Array | None = None,
    *,
    output_padding: Ints = (),
    **attributes: Any,
) -> Array:
    """Return the transpose of a grouped convolution of filters [G, I/G, O/G, ...]."""
    _check_ranks(data, filters, data.ndim + 1)
    spatial = data.shape[2:]
    if data.shape[1] != filters.shape[0] * filters.shape[1] or 0 in spatial or 0 in filters.shape[3:]:
        raise KernelError(f"filters of shape {shape_text(filters.shape)} do not fit data {shape_text(data.shape)}")
    windows = Windows(**attributes)
    lists = (filters.shape[3:], *windows.along(spatial))
    axes = tuple(WindowedAxis(*numbers) for numbers in zip(*lists, spatial, strict=True))
    padding = per_axis("output_padding", output_padding, spatial)
    begins, sizes = _transposed_output(axes, padding, windows.auto_pad, output_shape)
    return narrowed(_transposed(widened(data), widened(filters), axes, begins, sizes), data.dtype)


@kernel("ConvolutionBackpropData", 1)
@attributes_of(group_convolution_backprop_data)
def convolution_backprop_data(
    data: Array, filters: Array, output_shape: Array | None = None, **attributes: Any
) -> Array:
    """Return the transpose of a convolution: filters [I, O, ...] added to the output at each element of [N, I, ...]."""
    _check_ranks(data, filters, data.ndim)
    return group_convolution_backprop_data(data, filters.reshape(1, *filters.shape), output_shape, **attributes)


def _transposed_output(
    axes: Sequence[WindowedAxis], output_padding: Sequence[int], auto_pad: str, output_shape: Array | None
) -> tuple[list[int], list[int]]:
    """Return each axis's begin and size of the output within the full result, which has no pads."""
    full = [(axis.count - 1) * axis.stride + axis.extent for axis in axes]
    if output_shape is None:
        explicit = auto_pad == "explicit"
        begins = [axis.begin if explicit else 0 for axis in axes]
        ends = [axis.end if explicit else 0 for axis in axes]
        lists = zip(full, begins, ends, output_padding, strict=True)
        return begins, [size - begin - end + extra for size, begin, end, extra in lists]
    sizes = integers(output_shape)
    if len(sizes) != len(axes):
        raise KernelError(f"'output_shape' has {len(sizes)} numbers for {len(axes)} spatial dimensions")
    totals = [max(a - b + extra, 0) for a, b, extra in zip(full, sizes, output_padding, strict=True)]
    return [total - total // 2 if auto_pad == "same_upper" else total // 2 for total in totals], sizes


def _transposed(
    data: Array, filters: Array, axes: Sequence[WindowedAxis], begins: Sequence[int], sizes: Sequence[int]
) -> Array:
    """Return the sums of each element of data times the filters, cut out of the full result."""
    if any(size < 1 for size in sizes):
        raise KernelError(f"the output would have the spatial dimensions {shape_text(sizes)}")
    groups, inputs, outputs = filters.shape[:3]
    counts = data.shape[2:]
    ahead = [max(-begin, 0) for begin in begins]
    cut = [slice(begin + skip, begin + skip + size) for begin, skip, size in zip(begins, ahead, sizes, strict=True)]
    lists = zip(axes, ahead, cut, strict=True)
    full = [max(skip + (axis.count - 1) * axis.stride + axis.extent, part.stop) for axis, skip, part in lists]
    ensure_allocatable((len(data), groups * outputs, *full), data.dtype)
    result = np.zeros((len(data), groups, outputs, *full), data.dtype)
    columns = data.reshape(len(data), groups, inputs, math.prod(counts))
    inside = result[last_axes(slice(skip, None) for skip in ahead)]
    for position in itertools.product(*(range(axis.kernel) for axis in axes)):
        slices = tuple(axis.under(at) for axis, at in zip(axes, position, strict=True))
        products = matrix_product(filters[last_axes(position)].swapaxes(1, 2), columns)
        inside[last_axes(slices)] += products.reshape(len(data), groups, outputs, *counts)
    output: Array = result[last_axes(cut)]
    return output.reshape(len(data), groups * outputs, *sizes)


@kernel("BinaryConvolution", 1)
@attributes_of(Windows)
def binary_convolution(
    data: Array,
    filters: Array,
    *,
    mode: Literal["xnor-popcount"] = "xnor-popcount",
    pad_value: float = 0.0,
    **attributes: Any,
) -> Array:
    """Return a convolution of data and filters of 0 and 1, which stand for -1 and 1."""
    _check_ranks(data, filters, data.ndim)
    if data.shape[1] != filters.shape[1]:
        raise KernelError(f"filters of shape {shape_text(filters.shape)} do not fit data {shape_text(data.shape)}")
    axes = Windows(**attributes).over(data.shape[2:], filters.shape[2:])
    signs = np.where(data > 0, np.float32(1), np.float32(-1))
    weights = _lowest_bit_first(filters).astype(np.float32)[np.newaxis] * 2 - 1
    return narrowed(correlation(padded(signs, axes, pad_value), weights, axes), data.dtype)


def _lowest_bit_first(filters: Array) -> Array:
    """Return the u1 filters in the order that this operation means.

    A tensor of u1 is read from its file with each byte's highest bit first, as everywhere; only the runtime's binary
    convolution takes the lowest bit of each byte for the first element.
    """
    if filters.dtype != _U1:
        return filters
    bits = filters.reshape(-1)
    whole = np.concatenate([bits, np.zeros(-bits.size % 8, bits.dtype)])
    return whole.reshape(-1, 8)[:, ::-1].reshape(-1)[: bits.size].reshape(filters.shape)


def _check_ranks(data: Array, filters: Array, filters_rank: int) -> None:
    if data.ndim < 3 or filters.ndim != filters_rank:
        shapes = f"{shape_text(data.shape)} and {shape_text(filters.shape)}"
        raise KernelError(f"data and filters of shapes {shapes} do not have the ranks of a convolution")


# DeformableConvolution: a convolution whose windows' elements are moved, each by its own offset.
#
# Source: the pages DeformableConvolution-1 and -8.


@kernel("DeformableConvolution", 1, without=("mask", "bilinear_interpolation_pad"))
@kernel("DeformableConvolution", 8)
@attributes_of(Windows)
def deformable_convolution(
    data: Array,
    offsets: Array,
    filters: Array,
    mask: Array | None = None,
    *,
    group: int = 1,
    deformable_group: int = 1,
    bilinear_interpolation_pad: bool = False,
    **attributes: Any,
) -> Array:
    """Return filters [O, I/group, ...] over data interpolated at the windows' elements plus offsets, times the mask."""
    if data.ndim != 4 or filters.ndim != 4 or offsets.ndim != 4:
        shapes = ", ".join(shape_text(x.shape) for x in (data, offsets, filters))
        raise KernelError(f"data, offsets and filters of shapes {shapes}: all have rank 4")
    axes = Windows(**attributes).over(data.shape[2:], filters.shape[2:])
    _check_groups(data, offsets, filters, mask, axes, group, deformable_group)
    batch, channels = data.shape[:2]
    images = widened(data).reshape(batch * deformable_group, channels // deformable_group, *data.shape[2:])
    y, x = _places(widened(offsets), axes, deformable_group)
    sampled = _sampled(images, y, x, bilinear_interpolation_pad)
    if mask is not None:
        sampled *= widened(mask).reshape(batch * deformable_group, 1, -1)
    outputs, inputs, *kernel_shape = filters.shape
    terms, counts = inputs * math.prod(kernel_shape), math.prod(axis.count for axis in axes)
    weights = widened(filters).reshape(group, outputs // group, terms)
    result = matrix_product(weights, sampled.reshape(batch, group, terms, counts))
    return narrowed(result.reshape(batch, outputs, *(axis.count for axis in axes)), data.dtype)


def _check_groups(
    data: Array,
    offsets: Array,
    filters: Array,
    mask: Array | None,
    axes: Sequence[WindowedAxis],
    group: int,
    deformable_group: int,
) -> None:
    if group < 1 or deformable_group < 1 or data.shape[1] % deformable_group or filters.shape[0] % group:
        raise KernelError(f"{group} group(s) and {deformable_group} deformable group(s) do not divide the channels")
    counts = tuple(axis.count for axis in axes)
    elements = deformable_group * math.prod(axis.kernel for axis in axes)
    fits = offsets.shape == (data.shape[0], 2 * elements, *counts) and data.shape[1] == group * filters.shape[1]
    if not fits or (mask is not None and mask.shape != (data.shape[0], elements, *counts)):
        shapes = ", ".join(shape_text(x.shape) for x in (data, offsets, filters, mask) if x is not None)
        raise KernelError(f"data, offsets, filters (and mask) of shapes {shapes} do not fit each other")
    ensure_allocatable((data.shape[0] * data.shape[1] * elements // deformable_group, *counts), np.float32)


def _places(offsets: Array, axes: Sequence[WindowedAxis], deformable_group: int) -> tuple[Array, Array]:
    """Return y and x [N * deformable_group, kernel elements * windows] of what each window reads."""
    vertical, horizontal = axes
    shape = (-1, vertical.kernel, horizontal.kernel, 2, vertical.count, horizontal.count)
    moved = offsets.reshape(offsets.shape[0] * deformable_group, *shape[1:])
    y = _regular(vertical, offsets.dtype)[:, np.newaxis, :, np.newaxis] + moved[:, :, :, 0]
    x = _regular(horizontal, offsets.dtype)[np.newaxis, :, np.newaxis, :] + moved[:, :, :, 1]
    places = math.prod(y.shape[1:])
    return y.reshape(len(y), places), x.reshape(len(x), places)


def _regular(axis: WindowedAxis, dtype: np.dtype[np.floating]) -> Array:
    """Return the places of the elements [kernel, windows] along one axis before they are moved."""
    starts = np.arange(axis.count) * axis.stride - axis.begin
    return (np.arange(axis.kernel)[:, np.newaxis] * axis.dilation + starts).astype(dtype)


def _sampled(images: Array, y: Array, x: Array, zeros_around: bool) -> Array:
    """Return the images at real places: between zeros outside, or zero outside and the last row and column beyond."""
    if zeros_around:
        return bilinear(images, y, x)
    height, width = images.shape[2:]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    within = bilinear(images, np.minimum(y, height - 1), np.minimum(x, width - 1))
    return np.where(inside[:, np.newaxis], within, 0).astype(images.dtype)


# Pooling: AvgPool, MaxPool, AdaptiveAvgPool, AdaptiveMaxPool.
#
# Source: the operation sets' pages of the category Pooling. Windows are boxes, so one axis is pooled after the other.

IndexType = Literal["i64", "i32"]

_LONGEST_WINDOW = 2**20
_MOST_TERMS = 2**34
"""Beyond what an image needs; larger numbers come from a faulty attribute and would take minutes."""


class _Pooling(Windows, kw_only=True):
    """The attributes of pooling."""

    kernel: Ints
    strides: Ints
    rounding_type: Rounding = "floor"

    def axes(self, data: Array) -> tuple[WindowedAxis, ...]:
        """Return the windows along the spatial axes."""
        if data.ndim < 3:
            raise KernelError(f"data of shape {shape_text(data.shape)} has no spatial axis to pool")
        if any(pad < 0 for pad in (*self.pads_begin, *self.pads_end)):
            raise KernelError(f"pads {list(self.pads_begin)} and {list(self.pads_end)}: none may be negative")
        axes = self.over(data.shape[2:], self.kernel, self.rounding_type)
        shape, longest = (*data.shape[:2], *(axis.count for axis in axes)), max(self.kernel)
        ensure_allocatable(shape, data.dtype)
        if longest > _LONGEST_WINDOW or math.prod(shape) * longest > _MOST_TERMS:
            raise KernelError(
                f"windows of {shape_text(self.kernel)} for a result of shape {shape_text(shape)} are too large"
            )
        return axes


@kernel("AvgPool", 1, 14, without=("dilations",))
@kernel("AvgPool", 16)
@attributes_of(_Pooling)
def avg_pool(
    data: Array,
    *,
    exclude_pad: bool = True,
    **attributes: Any,
) -> Array:
    """Return the mean under each window, of the data alone or (without `exclude_pad`) of the padding's zeros too.

    What a window has beyond the data counts only where there is padding: rounding_type=ceil alone adds no zeros.
    """
    axes = _Pooling(**attributes).axes(data)
    lead = data.ndim - len(axes)
    of_data_alone = exclude_pad or not any(axis.begin or axis.end for axis in axes)
    result = padded(widened(data) if is_floating(data.dtype) else data.astype(np.float64), axes, 0)
    for number, axis in enumerate(axes):
        result = _over_windows(np.add, result, lead + number, axis)
        divisor = _data_under(axis, data.shape[lead + number]) if of_data_alone else np.full(axis.count, axis.kernel)
        spread = (slice(None), *[np.newaxis] * (len(axes) - 1 - number))
        result = result / divisor.astype(result.dtype)[spread]
    return narrowed(result if is_floating(data.dtype) else np.rint(result), data.dtype)


@kernel("MaxPool", 1, without=("dilations",))
@attributes_of(_Pooling)
def max_pool_1(data: Array, **attributes: Any) -> Array:
    """Return the greatest element under each window."""
    axes = _Pooling(**attributes).axes(data)
    wide = widened(data)
    result = padded(wide, axes, _least(wide.dtype))
    for number, axis in enumerate(axes):
        result = _over_windows(np.maximum, result, data.ndim - len(axes) + number, axis)
    return narrowed(result, data.dtype)


@kernel("MaxPool", 8, 14)
@attributes_of(_Pooling)
def max_pool(
    data: Array,
    *,
    index_element_type: IndexType = "i64",
    axis: int = 0,
    **attributes: Any,
) -> tuple[Array, Array]:
    """Return the greatest element under each window and where it was first, counted in the tensor from `axis` on."""
    axes = _Pooling(**attributes).axes(data)
    first = normalize_axis(axis, data.ndim)
    wide = widened(data)
    values = padded(wide, axes, _least(wide.dtype))
    indices = padded(np.arange(data.size).reshape(data.shape), axes, -1)
    for number, windowed in reversed(list(enumerate(axes))):
        values, indices = _greatest_under(values, indices, data.ndim - len(axes) + number, windowed)
    counted = np.maximum(indices, 0) % max(math.prod(data.shape[first:]), 1)
    return narrowed(values, data.dtype), counted.astype(index_element_type.replace("i", "int"))


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


def _least(dtype: DType) -> Any:
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


Blocks = Literal["blocks_first", "depth_first"]


@kernel("DepthToSpace", 1)
def depth_to_space(data: Array, *, block_size: int, mode: Blocks = "blocks_first") -> Array:
    """Channels laid out as blocks along each spatial axis; mode: whether the block or the depth is their outer part."""
    spatial = data.ndim - 2
    if spatial < 1 or block_size < 1 or data.shape[1] % block_size**spatial:
        raise KernelError(f"channels of shape {shape_text(data.shape)} do not hold blocks of {block_size}")
    ensure_allocatable((block_size,) * spatial)
    depth = data.shape[1] // block_size**spatial
    block = (block_size,) * spatial
    channels = (*block, depth) if mode == "blocks_first" else (depth, *block)
    first_block, depth_axis = (1, 1 + spatial) if mode == "blocks_first" else (2, 1)
    pairs = [axis for i in range(spatial) for axis in (2 + spatial + i, first_block + i)]
    parts = data.reshape((data.shape[0], *channels, *data.shape[2:])).transpose((0, depth_axis, *pairs))
    return parts.reshape((data.shape[0], depth, *(dim * block_size for dim in data.shape[2:])))


@kernel("SpaceToDepth", 1)
def space_to_depth(data: Array, *, block_size: int, mode: Blocks = "blocks_first") -> Array:
    """Blocks of block_size along each spatial axis laid out as channels, the reverse of DepthToSpace."""
    spatial = data.ndim - 2
    if spatial < 1 or block_size < 1 or any(dim % block_size for dim in data.shape[2:]):
        raise KernelError(
            f"the spatial axes of shape {shape_text(data.shape)} do not divide into blocks of {block_size}"
        )
    ensure_allocatable((block_size,) * spatial)
    blocks = [dim // block_size for dim in data.shape[2:]]
    pairs = [size for count in blocks for size in (count, block_size)]
    outer, inner = range(2, 2 + 2 * spatial, 2), range(3, 3 + 2 * spatial, 2)
    channels = (*inner, 1) if mode == "blocks_first" else (1, *inner)
    parts = data.reshape((*data.shape[:2], *pairs)).transpose((0, *channels, *outer))
    return parts.reshape((data.shape[0], data.shape[1] * block_size**spatial, *blocks))


@kernel("ShuffleChannels", 1, 3)
def shuffle_channels(data: Array, *, axis: int = 1, group: int = 1) -> Array:
    """Return the channels, seen as `group` rows, read by columns."""
    position = normalize_axis(axis, data.ndim)
    channels = data.shape[position]
    if group < 1 or channels % group:
        raise KernelError(f"{channels} channels do not divide into {group} groups")
    ensure_allocatable((group,))
    rows = data.reshape((*data.shape[:position], group, channels // group, *data.shape[position + 1 :]))
    return rows.swapaxes(position, position + 1).reshape(data.shape)


@kernel("BatchToSpace", 2)
def batch_to_space(data: Array, block_shape: Array, crops_begin: Array, crops_end: Array) -> Array:
    """Return the batch laid out as blocks along the other axes, which are then cropped at both ends."""
    block, begin, end = _block_arguments(data, block_shape, crops_begin, crops_end)
    count = math.prod(block)
    if data.shape[0] % count:
        raise KernelError(f"a batch of {data.shape[0]} does not divide into blocks {shape_text(block)}")
    rank, rest = data.ndim, data.shape[0] // count
    pairs = [axis for i in range(1, rank) for axis in (rank - 1 + i, i - 1)]
    parts = data.reshape((*block[1:], rest, *data.shape[1:])).transpose((rank - 1, *pairs))
    whole = parts.reshape((rest, *(dim * size for dim, size in zip(data.shape[1:], block[1:], strict=True))))
    stops = [dim - last for dim, last in zip(whole.shape, end, strict=True)]
    if any(first > stop for first, stop in zip(begin, stops, strict=True)):
        raise KernelError(f"the crops take away more than the shape {shape_text(whole.shape)} has")
    return whole[tuple(slice(first, stop) for first, stop in zip(begin, stops, strict=True))]


@kernel("SpaceToBatch", 2)
def space_to_batch(data: Array, block_shape: Array, pads_begin: Array, pads_end: Array) -> Array:
    """Return the other axes padded with zeros, then their blocks laid out along the batch, as BatchToSpace reversed."""
    block, begin, end = _block_arguments(data, block_shape, pads_begin, pads_end)
    shape = [dim + first + last for dim, first, last in zip(data.shape, begin, end, strict=True)]
    if any(dim % size for dim, size in zip(shape, block, strict=True)):
        raise KernelError(f"the padded shape {shape_text(shape)} does not divide into blocks {shape_text(block)}")
    whole = surrounded(data, begin, end)
    blocks = [dim // size for dim, size in zip(shape, block, strict=True)]
    pairs = [size for count, inner in zip(blocks[1:], block[1:], strict=True) for size in (count, inner)]
    rank = data.ndim
    parts = whole.reshape((shape[0], *pairs)).transpose((*range(2, 2 * rank, 2), 0, *range(1, 2 * rank - 1, 2)))
    return parts.reshape((shape[0] * math.prod(block), *blocks[1:]))


def _block_arguments(data: Array, block: Array, begin: Array, end: Array) -> tuple[list[int], list[int], list[int]]:
    """Block shape and what is added or cut at both ends of each axis; the batch has block 1 and keeps its size."""
    sizes, first, last = integers(block), integers(begin), integers(end)
    if not 0 < data.ndim == len(sizes) == len(first) == len(last):
        raise KernelError(f"block shape, begin and end do not have a number for each axis of {shape_text(data.shape)}")
    if sizes[0] != 1 or min(sizes) < 1 or first[0] or last[0] or min(first + last) < 0:
        texts = ", ".join(shape_text(numbers) for numbers in (sizes, first, last))
        raise KernelError(f"block shape, begin and end {texts}: the batch must stay, and nothing be negative")
    return sizes, first, last


@kernel("ExtractImagePatches", 3)
def extract_image_patches(
    data: Array,
    *,
    sizes: Shape,
    strides: Ints,
    rates: Ints,
    auto_pad: Literal["valid", "same_upper", "same_lower"],
) -> Array:
    """Windows of `sizes` over height and width, each flattened (row, column, channel) into the channels."""
    if data.ndim != 4 or not len(sizes) == len(strides) == len(rates) == 2 or min(sizes + strides + rates) < 1:
        raise KernelError(f"sizes {sizes}, strides {strides} and rates {rates} do not fit {shape_text(data.shape)}")
    windows = Windows(strides=strides, dilations=rates, auto_pad=auto_pad)
    reach = [(size - 1) * rate + 1 for size, rate in zip(sizes, rates, strict=True)]
    batch, channels, *spatial = data.shape
    if 0 in spatial or (auto_pad == "valid" and any(map(operator.lt, spatial, reach))):
        shape = (batch, channels * sizes[0] * sizes[1], 0, 0)
        ensure_allocatable(shape, data.dtype)
        return np.zeros(shape, data.dtype)
    axes = windows.over(spatial, sizes)
    taken = under_windows(padded(data, axes, 0), axes)
    ensure_allocatable(taken.shape, data.dtype)
    return taken.transpose((0, 2, 3, 1, 4, 5)).reshape((batch, channels * sizes[0] * sizes[1], *taken.shape[4:]))


@kernel("Col2Im", 15)
def col2im(
    data: Array,
    output_size: Array,
    kernel_size: Array,
    *,
    strides: Ints = (1, 1),
    dilations: Ints = (1, 1),
    pads_begin: Ints = (0, 0),
    pads_end: Ints = (0, 0),
) -> Array:
    """Return the image whose windows are the columns [N, C * kernel, L] of `data`; overlaps add up."""
    size, window = integers(output_size), integers(kernel_size)
    columns = data if data.ndim == 3 else data[None]
    if len(size) != 2 or min(*size, *pads_begin, *pads_end) < 0:
        raise KernelError(f"{size}, {pads_begin} and {pads_end} are not the size and the pads of an image")
    windows = Windows(strides=strides, dilations=dilations, pads_begin=pads_begin, pads_end=pads_end)
    vertical, horizontal = windows.over(size, window)
    spans = [vertical.count, horizontal.count]
    area = window[0] * window[1]
    if columns.ndim != 3 or columns.shape[1] % area or columns.shape[2] != spans[0] * spans[1]:
        raise KernelError(f"columns of shape {shape_text(data.shape)} are not {spans} windows of {shape_text(window)}")
    batch, channels = columns.shape[0], columns.shape[1] // area
    shape = (batch, channels, vertical.padded_size(size[0]), horizontal.padded_size(size[1]))
    ensure_allocatable(shape, data.dtype)
    parts = widened(columns).reshape((batch, channels, *window, *spans))
    image = np.zeros(shape, parts.dtype)
    for row, column in np.ndindex(*window) if columns.size else ():
        image[:, :, vertical.under(row), horizontal.under(column)] += parts[:, :, row, column]
    top, left = vertical.begin, horizontal.begin
    inside = image[:, :, top : top + size[0], left : left + size[1]]
    return narrowed(inside if data.ndim == 3 else inside[0], data.dtype)


@kernel("ReorgYolo", 2)
def reorg_yolo(data: Array, *, stride: Ints) -> Array:
    """Return [N, C, H, W] as [N, C * s * s, H / s, W / s] in the order of darknet's reorganisation layer."""
    step = stride[0] if stride else 0
    if data.ndim != 4 or step < 1 or data.shape[1] % step**2 or data.shape[2] % step or data.shape[3] % step:
        raise KernelError(f"shape {shape_text(data.shape)} cannot be reorganised by stride {step}")
    batch, channels, height, width = data.shape
    # The layer takes the elements as if they were C / (s * s) channels of an image s times as large.
    parts = data.reshape((batch, channels // step**2, height, step, width, step)).transpose((0, 3, 5, 1, 2, 4))
    return parts.reshape((batch, channels * step**2, height // step, width // step))
