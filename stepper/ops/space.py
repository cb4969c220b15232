"""Elements moved between the batch, the channels and the spatial axes, in blocks or in patches.

Source: the operation sets' pages of DepthToSpace, SpaceToDepth, ShuffleChannels, BatchToSpace, SpaceToBatch,
ExtractImagePatches, Col2Im and ReorgYolo.
"""

from __future__ import annotations

import math
import operator
from typing import Literal

import numpy as np

from stepper.element_types import Array, Ints, Shape
from stepper.errors import KernelError
from stepper.ops.convolution import Windows, padded, under_windows
from stepper.ops.operands import ensure_allocatable, integers, normalize_axis, shape_text, surrounded
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

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
