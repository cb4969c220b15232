"""Position-sensitive pooling: each bin of a region of interest is taken from channels of its own.

Source: the pages PSROIPooling-1 and DeformablePSROIPooling-1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import check_positive, ensure_allocatable, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel
from stepper.ops.roi_sampling import (
    check_feature_maps,
    check_regions,
    interpolated,
    regions_of_batch,
    round_half_away,
)


@kernel("PSROIPooling", 1)
def psroi_pooling(
    data: Array,
    rois: Array,
    *,
    output_dim: int,
    group_size: int = 1,
    spatial_scale: float,
    mode: Literal["average", "bilinear"] = "average",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
) -> Array:
    """Return regions [batch, x1, y1, x2, y2]: the mean of each bin, or the mean of points read between the elements."""
    bins = (group_size, group_size) if mode == "average" else (spatial_bins_y, spatial_bins_x)
    output = _pooled(data, rois, output_dim, group_size, spatial_scale, bins)
    features, scale = widened(data), np.float32(spatial_scale)
    for number, batch, box in regions_of_batch(data, rois):
        if mode == "average":
            planes = features[batch].reshape(output_dim, group_size, group_size, *data.shape[2:])
            output[number] = _bin_means(planes, _whole_pixels(box) * scale)
        else:
            planes = features[batch].reshape(*bins, output_dim, *data.shape[2:])
            output[number] = _mean_of_readings(planes, box * scale, group_size)
    return narrowed(output, data.dtype)


@kernel("DeformablePSROIPooling", 1)
def deformable_psroi_pooling(
    data: Array,
    rois: Array,
    offsets: Array | None = None,
    *,
    output_dim: int,
    spatial_scale: float = 0.0,
    group_size: int = 1,
    mode: Literal["bilinear_deformable"] = "bilinear_deformable",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
    trans_std: float = 1.0,
    part_size: int = 1,
) -> Array:
    """PSROIPooling whose bins are each moved by an offset in parts of the region's size."""
    bins = (group_size, group_size)
    output = _pooled(data, rois, output_dim, group_size, spatial_scale, bins)
    check_positive(spatial_bins_x=spatial_bins_x, spatial_bins_y=spatial_bins_y, part_size=part_size)
    ensure_allocatable((*output.shape[1:], spatial_bins_y, spatial_bins_x), np.float32)
    moves = _moves(offsets, output.shape, part_size) * np.float32(trans_std)
    features, scale = widened(data), np.float32(spatial_scale)
    plane = np.arange(data.shape[1]).reshape(output_dim, group_size, group_size, 1, 1)
    for number, batch, box in regions_of_batch(data, rois):
        x1, y1, x2, y2 = _whole_pixels(box) * scale - np.float32(0.5)
        x = _positions(x1, x2, group_size, spatial_bins_x, moves[number, :, 0])
        y = np.swapaxes(_positions(y1, y2, group_size, spatial_bins_y, np.swapaxes(moves[number, :, 1], 1, 2)), 1, 2)
        y, x = y[..., :, None], x[..., None, :]
        inside = (y >= -0.5) & (y <= data.shape[2] - 0.5) & (x >= -0.5) & (x <= data.shape[3] - 0.5)
        readings = np.where(inside, interpolated(features[batch], plane, y, x), 0)
        output[number] = readings.sum(axis=(3, 4)) / np.maximum(inside.sum(axis=(3, 4)), 1)
    return narrowed(output, data.dtype)


def _pooled(data: Array, rois: Array, output_dim: int, group_size: int, scale: float, bins: tuple[int, int]) -> Array:
    """Return the output to fill (zeros), after a check of everything that decides on sizes."""
    check_feature_maps(data)
    check_regions(rois)
    check_positive(output_dim=output_dim, group_size=group_size, spatial_scale=scale)
    if min(bins) < 1 or data.shape[1] != output_dim * bins[0] * bins[1]:
        expected = f"{output_dim} * {bins[0]} * {bins[1]}"
        raise KernelError(f"feature maps {shape_text(data.shape)} do not have the {expected} channels asked for")
    shape = (len(rois), output_dim, group_size, group_size)
    ensure_allocatable(shape, np.float32)
    return np.zeros(shape, np.float32)


def _whole_pixels(box: Array) -> Array:
    """Return the edges [x1, y1, x2, y2] of a box whose corners name pixels, the last ones included."""
    return round_half_away(box) + np.array([0, 0, 1, 1], np.float32)


def _bin_means(planes: Array, box: Array) -> Array:
    """Return the mean of each bin [h, w] of its own plane [out, h, w, height, width]; 0 for an empty bin."""
    _, group, _, height, width = planes.shape
    rows, columns = _edges(box[1], box[3], group, height), _edges(box[0], box[2], group, width)
    means = np.zeros(planes.shape[:3], np.float32)
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            if bottom > top and right > left:
                means[:, i, j] = planes[:, i, j, top:bottom, left:right].mean(axis=(1, 2))
    return means


def _edges(start: np.float32, end: np.float32, bins: int, size: int) -> list[tuple[int, int]]:
    """First element and end of each bin, whole elements that it touches, within the map."""
    positions = np.nan_to_num(start + np.arange(bins + 1, dtype=np.float32) * ((end - start) / np.float32(bins)))
    firsts, ends = np.clip(np.floor(positions[:-1]), 0, size), np.clip(np.ceil(positions[1:]), 0, size)
    return list(zip(firsts.astype(int).tolist(), ends.astype(int).tolist(), strict=True))


def _mean_of_readings(planes: Array, box: Array, group: int) -> Array:
    """Return the mean over the sub-bins [bins_y, bins_x, out, height, width] of their planes, at group x group points.

    The box is in parts of the map; each sub-bin has its own points, from one of its corners to the other.
    """
    bins_y, bins_x, output_dim, height, width = planes.shape
    total = np.zeros((output_dim, group, group), np.float32)
    plane = np.arange(output_dim).reshape(-1, 1, 1)
    for i in range(bins_y):
        y = _grid(box[1], box[3], i, bins_y, group, height)[:, None]
        for j in range(bins_x):
            x = _grid(box[0], box[2], j, bins_x, group, width)
            total += np.where((y < height) & (x < width), interpolated(planes[i, j], plane, y, x), 0)
    return total / np.float32(bins_y * bins_x)


def _grid(start: np.float32, end: np.float32, sub_bin: int, sub_bins: int, points: int, size: int) -> Array:
    """Return positions on an axis of points spread from edge to edge of one sub-bin, or its middle."""
    length = (end - start) / np.float32(sub_bins)
    first = start + np.float32(sub_bin) * length
    steps = np.linspace(0, 1, points, dtype=np.float32) if points > 1 else np.array([0.5], np.float32)
    return np.asarray((first + steps * length) * np.float32(size - 1), np.float32)


def _moves(offsets: Array | None, shape: tuple[int, ...], part_size: int) -> Array:
    """Return the offsets [regions, out, 2 (x, y), h, w] of each bin, which is that of its class and of its part."""
    regions, output_dim, group, _ = shape
    if offsets is None:
        return np.zeros((regions, output_dim, 2, group, group), np.float32)
    fits = offsets.ndim == 4 and offsets.shape[0] == regions and offsets.shape[2:] == (part_size, part_size)
    classes = offsets.shape[1] // 2 if fits else 0
    if classes == 0 or offsets.shape[1] % 2 or output_dim % classes:
        expected = f"[{regions},2*classes,{part_size},{part_size}]"
        raise KernelError(f"the offsets have the shape {shape_text(offsets.shape)}, expected {expected}")
    part = np.arange(group) * part_size // group
    of_class = widened(offsets).reshape(regions, classes, 2, part_size, part_size)[..., part[:, None], part]
    return np.repeat(of_class, output_dim // classes, axis=1)


def _positions(start: np.float32, end: np.float32, group: int, samples: int, moves: Array) -> Array:
    """Return positions [out, other axis, bins, samples] along one axis, each bin moved by part of the region's size."""
    size = np.maximum(end - start, np.float32(0.1))
    bin_size = size / np.float32(group)
    firsts = start + np.arange(group, dtype=np.float32) * bin_size + moves * size
    return np.asarray(firsts[..., None] + np.arange(samples, dtype=np.float32) * (bin_size / np.float32(samples)))
