"""DeformableConvolution: a convolution whose windows' elements are moved, each by its own offset.

Source: the pages DeformableConvolution-1 and -8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.products import matrix_product
from stepper.ops.registry import kernel
from stepper.ops.resampling import bilinear
from stepper.ops.windows import AutoPad, WindowedAxis, windowed_axes

Ints = tuple[int, ...]


@kernel("DeformableConvolution", 1, without=("mask", "bilinear_interpolation_pad"))
@kernel("DeformableConvolution", 8)
def deformable_convolution(
    data: Array,
    offsets: Array,
    filters: Array,
    mask: Array | None = None,
    *,
    strides: Ints = (),
    pads_begin: Ints = (),
    pads_end: Ints = (),
    dilations: Ints = (),
    auto_pad: AutoPad = "explicit",
    group: int = 1,
    deformable_group: int = 1,
    bilinear_interpolation_pad: bool = False,
) -> Array:
    """Return filters [O, I/group, ...] over data interpolated at the windows' elements plus offsets, times the mask."""
    if data.ndim != 4 or filters.ndim != 4 or offsets.ndim != 4:
        shapes = ", ".join(shape_text(x.shape) for x in (data, offsets, filters))
        raise KernelError(f"data, offsets and filters of shapes {shapes}: all have rank 4")
    axes = windowed_axes(data.shape[2:], filters.shape[2:], strides, dilations, pads_begin, pads_end, auto_pad)
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
