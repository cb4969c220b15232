"""Convolutions: plain, grouped, binary, and the transposed ones (ConvolutionBackpropData).

Source: the operation sets' pages of the category Convolution. A plain convolution is a grouped one of a single group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import ELEMENT_TYPES, Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.products import WORTH_THREADS, matrix_product
from stepper.ops.registry import attributes_of, kernel
from stepper.ops.windows import AutoPad, WindowedAxis, last_axes, padded, per_axis, under_windows, windowed_axes

Ints = tuple[int, ...]

_CACHED: Final = 2**20
"""Bytes that the columns of one product may take: a processor's second cache holds them."""
_LAID_OUT_WHOLE: Final = 8 * _CACHED
"""Bytes of columns up to which parting them saves nothing."""
_FEWEST_COLUMNS: Final = 64
"""Columns from which a product is efficient."""
_MANY_OUTPUTS: Final = 64
"""Outputs from which the sums take far longer than laying out columns, so that threads are worth it."""
_LARGEST_COLUMNS: Final = 64 * _CACHED
"""Bytes that the columns of a product on several threads may take."""
_U1: Final = ELEMENT_TYPES["u1"].dtype


@kernel("GroupConvolution", 1)
def group_convolution(
    data: Array,
    filters: Array,
    *,
    strides: Ints = (),
    pads_begin: Ints = (),
    pads_end: Ints = (),
    dilations: Ints = (),
    auto_pad: AutoPad = "explicit",
) -> Array:
    """Return filters [G, O/G, I/G, ...] slid over data [N, I, ...], each group over its own channels."""
    _check_ranks(data, filters, data.ndim + 1)
    if data.shape[1] != filters.shape[0] * filters.shape[2]:
        raise KernelError(f"filters of shape {shape_text(filters.shape)} do not fit data {shape_text(data.shape)}")
    axes = windowed_axes(data.shape[2:], filters.shape[3:], strides, dilations, pads_begin, pads_end, auto_pad)
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
def group_convolution_backprop_data(
    data: Array,
    filters: Array,
    output_shape: Array | None = None,
    *,
    strides: Ints = (),
    pads_begin: Ints = (),
    pads_end: Ints = (),
    dilations: Ints = (),
    auto_pad: AutoPad = "explicit",
    output_padding: Ints = (),
) -> Array:
    """Return the transpose of a grouped convolution of filters [G, I/G, O/G, ...]."""
    _check_ranks(data, filters, data.ndim + 1)
    spatial = data.shape[2:]
    if data.shape[1] != filters.shape[0] * filters.shape[1] or 0 in spatial or 0 in filters.shape[3:]:
        raise KernelError(f"filters of shape {shape_text(filters.shape)} do not fit data {shape_text(data.shape)}")
    lists = (
        filters.shape[3:],
        per_axis("strides", strides, spatial, default=1, least=1),
        per_axis("dilations", dilations, spatial, default=1, least=1),
        per_axis("pads_begin", pads_begin, spatial),
        per_axis("pads_end", pads_end, spatial),
    )
    axes = tuple(WindowedAxis(*numbers) for numbers in zip(*lists, spatial, strict=True))
    padding = per_axis("output_padding", output_padding, spatial)
    begins, sizes = _transposed_output(axes, padding, auto_pad, output_shape)
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
    """Return for each axis the begin of the output in the full result (that of no pads), and its size."""
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
    """Return each element of data times the filters, added up in the full result, of which the output is cut out."""
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
def binary_convolution(
    data: Array,
    filters: Array,
    *,
    strides: Ints = (),
    pads_begin: Ints = (),
    pads_end: Ints = (),
    dilations: Ints = (),
    auto_pad: AutoPad = "explicit",
    mode: Literal["xnor-popcount"] = "xnor-popcount",
    pad_value: float = 0.0,
) -> Array:
    """Return a convolution of data and filters of 0 and 1, which stand for -1 and 1."""
    _check_ranks(data, filters, data.ndim)
    if data.shape[1] != filters.shape[1]:
        raise KernelError(f"filters of shape {shape_text(filters.shape)} do not fit data {shape_text(data.shape)}")
    axes = windowed_axes(data.shape[2:], filters.shape[2:], strides, dilations, pads_begin, pads_end, auto_pad)
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
