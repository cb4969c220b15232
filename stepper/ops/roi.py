"""Pooling of regions of interest: each region of a feature map brought to one size.

Source: the pages ROIAlign-3, -9, ROIAlignRotated-15 and ROIPooling-1 (opset2).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import check_positive, ensure_allocatable, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel
from stepper.ops.roi_sampling import (
    batch_index,
    bin_means,
    check_feature_maps,
    check_regions,
    interpolated,
    regions_of_batch,
    round_half_away,
    sample_positions,
    samples_in_map,
)

AlignedMode = Literal["asymmetric", "half_pixel_for_nn", "half_pixel"]
Mode = Literal["avg", "max"]


@kernel("ROIAlign", 3, without=("aligned_mode",))
@kernel("ROIAlign", 9)
def roi_align(
    data: Array,
    rois: Array,
    batch_indices: Array,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int = 0,
    spatial_scale: float = 0.0,
    mode: Mode = "avg",
    aligned_mode: AlignedMode = "asymmetric",
) -> Array:
    """Return regions [x1, y1, x2, y2] sampled between elements: of each bin the mean, or the greatest (at least 0).

    `aligned_mode` is the meaning of a coordinate: the corner of an element or its centre.
    """
    size = (pooled_h, pooled_w)
    return _roi_align(data, rois, batch_indices, size, sampling_ratio, spatial_scale, mode, aligned_mode)


@kernel("ROIAlignRotated", 15)
def roi_align_rotated(
    data: Array,
    rois: Array,
    batch_indices: Array,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int = 0,
    spatial_scale: float = 0.0,
    clockwise_mode: bool = False,
) -> Array:
    """Return regions [center_x, center_y, width, height, angle in radians] sampled along their axes, averaged."""
    size = (pooled_h, pooled_w)
    output = _pooled(data, rois, batch_indices, 5, size, sampling_ratio)
    features, scale = widened(data), np.float32(spatial_scale)
    for number, (roi, batch) in enumerate(zip(rois.astype(np.float32), batch_indices, strict=True)):
        center, extent = roi[:2] * scale - np.float32(0.5), roi[2:4] * scale
        along = sample_positions(-extent[0] / 2, extent[0], pooled_w, sampling_ratio)
        down = sample_positions(-extent[1] / 2, extent[1], pooled_h, sampling_ratio)[..., None, None]
        angle = roi[4] if clockwise_mode else -roi[4]
        x = center[0] + along * np.cos(angle) - down * np.sin(angle)
        y = center[1] + along * np.sin(angle) + down * np.cos(angle)
        output[number] = bin_means(samples_in_map(features[batch_index(batch, data)], y, x))
    return narrowed(output, data.dtype)


@kernel("ROIPooling", 2)
def roi_pooling(
    data: Array,
    rois: Array,
    *,
    pooled_h: int,
    pooled_w: int,
    spatial_scale: float,
    method: Literal["max", "bilinear"] = "max",
) -> Array:
    """Return regions [batch, x1, y1, x2, y2]: the greatest element of each bin, or the map read at a grid of points."""
    check_positive(pooled_h=pooled_h, pooled_w=pooled_w, spatial_scale=spatial_scale)
    check_feature_maps(data)
    check_regions(rois)
    shape = (len(rois), data.shape[1], pooled_h, pooled_w)
    ensure_allocatable(shape, np.float32)
    output, features = np.zeros(shape, np.float32), widened(data)
    for number, batch, box in regions_of_batch(data, rois):
        if method == "max":
            output[number] = _bin_maxima(features[batch], box * np.float32(spatial_scale), pooled_h, pooled_w)
        else:
            output[number] = _read_at_grid(features[batch], box, pooled_h, pooled_w)
    return narrowed(output, data.dtype)


def _roi_align(
    data: Array,
    rois: Array,
    batch_indices: Array,
    size: tuple[int, int],
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    aligned_mode: str,
) -> Array:
    output = _pooled(data, rois, batch_indices, 4, size, sampling_ratio)
    features, scale = widened(data), np.float32(spatial_scale)
    offset = {"asymmetric": 0.0, "half_pixel_for_nn": -0.5, "half_pixel": 0.5 * spatial_scale - 0.5}[aligned_mode]
    boxes = rois.astype(np.float32) * scale + np.float32(offset)
    for number, (box, batch) in enumerate(zip(boxes, batch_indices, strict=True)):
        extent = box[2:] - box[:2]
        if aligned_mode == "asymmetric":
            extent = np.maximum(extent, 1)
        x = sample_positions(box[0], extent[0], size[1], sampling_ratio)
        y = sample_positions(box[1], extent[1], size[0], sampling_ratio)[..., None, None]
        samples = samples_in_map(features[batch_index(batch, data)], y, x)
        output[number] = bin_means(samples) if mode == "avg" else samples.max(axis=(2, 4), initial=0)
    return narrowed(output, data.dtype)


def _pooled(
    data: Array, rois: Array, batches: Array, columns: int, size: tuple[int, int], sampling_ratio: int
) -> Array:
    """Return the output to fill, after a check of everything that decides on sizes."""
    check_feature_maps(data)
    if rois.ndim != 2 or rois.shape[1] != columns or batches.shape != rois.shape[:1]:
        shapes = f"{shape_text(rois.shape)} and batch indices {shape_text(batches.shape)}"
        raise KernelError(f"regions of interest {shapes} do not fit: expected [regions,{columns}] and [regions]")
    check_positive(pooled_h=size[0], pooled_w=size[1])
    if sampling_ratio < 0:
        raise KernelError(f"the attribute 'sampling_ratio' must not be negative, it is {sampling_ratio}")
    shape = (len(rois), data.shape[1], *size)
    ensure_allocatable((*shape, max(sampling_ratio, 1) ** 2), np.float32)
    return np.empty(shape, np.float32)


def _bin_maxima(features: Array, box: Array, pooled_h: int, pooled_w: int) -> Array:
    """Return the greatest element of each bin; 0 for an empty one."""
    x1, y1, x2, y2 = np.clip(np.nan_to_num(round_half_away(box)), -(2**30), 2**30).astype(np.int64)
    rows = _greatest(features, 1, int(y1), int(y2), pooled_h)
    maxima = _greatest(rows, 2, int(x1), int(x2), pooled_w)
    return np.where(np.isneginf(maxima), 0, maxima)


def _greatest(features: Array, axis: int, first: int, last: int, bins: int) -> Array:
    """Return the greatest elements along one axis of each bin between two elements, -inf where a bin holds none."""
    ensure_allocatable((bins, 16), np.int64)
    size = np.float32(max(last - first + 1, 1)) / np.float32(bins)
    starts = np.floor(np.arange(bins, dtype=np.float32) * size).astype(np.int64) + first
    ends = np.ceil(np.arange(1, bins + 1, dtype=np.float32) * size).astype(np.int64) + first
    starts, ends = np.clip([starts, ends], 0, features.shape[axis])
    lines = np.moveaxis(features, axis, 0)
    ranges, range_of_bin = np.unique(starts * (len(lines) + 1) + ends, return_inverse=True)  # far fewer than many bins
    bounds = zip(*np.divmod(ranges, len(lines) + 1), strict=True)
    maxima = np.stack([lines[start:end].max(axis=0, initial=-np.inf) for start, end in bounds], axis=axis)
    return maxima.take(range_of_bin, axis)


def _read_at_grid(features: Array, box: Array, pooled_h: int, pooled_w: int) -> Array:
    """Return the map read at pooled_h x pooled_w points from corner to corner of a box in 0..1; 0 outside the map."""
    channels, height, width = features.shape
    x, y = _grid(box[0], box[2], pooled_w, width), _grid(box[1], box[3], pooled_h, height)[:, None]
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    ensure_allocatable((4, channels, *inside.shape), np.float32)
    plane = np.arange(channels).reshape(-1, 1, 1)
    return np.where(inside, interpolated(features, plane, y, x), 0)


def _grid(start: Any, end: Any, points: int, size: int) -> Array:
    """Return positions from `start` to `end` of an axis from 0 to 1, ends exact; one alone is the middle."""
    if points == 1:
        return np.array([0.5 * (start + end) * (size - 1)], np.float32)
    step = (end - start) * np.float32(size - 1) / np.float32(points - 1)
    positions = np.arange(points, dtype=np.float32) * step + start * np.float32(size - 1)
    positions[-1] = end * np.float32(size - 1)
    return np.asarray(positions, np.float32)
