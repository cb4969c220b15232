"""Convolutions: plain, grouped, binary, and the transposed ones (ConvolutionBackpropData).

Source: the operation sets' pages of the category Convolution. A plain convolution is a grouped one of a single group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import ELEMENT_TYPES, Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.products import matrix_product
from stepper.ops.registry import attributes_of, kernel
from stepper.ops.windows import AutoPad, WindowedAxis, last_axes, padded, per_axis, under_windows, windowed_axes

Ints = tuple[int, ...]

_LARGEST_COLUMNS: Final = 64 * 2**20
"""Bytes that the elements under all windows may take when laid out for one matrix product."""
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
    """Return the sum over channels and window elements of grouped filters times padded data [N, I, ...]."""
    groups, outputs, inputs = filters.shape[:3]
    shape = (len(data), groups * outputs, *(axis.count for axis in axes))
    ensure_allocatable(shape, data.dtype)
    terms, counts = inputs * math.prod(axis.kernel for axis in axes), math.prod(shape[2:])
    if len(data) * groups * terms * counts * data.itemsize > _LARGEST_COLUMNS:
        return _correlation_by_element(data, filters, axes).reshape(shape)
    under = under_windows(data, axes).reshape(len(data), groups, terms, counts)
    result: Array = matrix_product(filters.reshape(groups, outputs, terms), under)
    return result.reshape(shape)


def _correlation_by_element(data: Array, filters: Array, axes: Sequence[WindowedAxis]) -> Array:
    """Return the same, one element of the window after the other: less memory, more products."""
    groups, outputs, inputs = filters.shape[:3]
    counts = math.prod(axis.count for axis in axes)
    result = np.zeros((len(data), groups, outputs, counts), data.dtype)
    for position in itertools.product(*(range(axis.kernel) for axis in axes)):
        slices = tuple(axis.under(at) for axis, at in zip(axes, position, strict=True))
        under = data[last_axes(slices)].reshape(len(data), groups, inputs, counts)
        result += matrix_product(filters[last_axes(position)], under)
    return result


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
