"""Pooling of regions of interest: each region of a feature map brought to one size.

Source: the pages ROIAlign-3, -9, ROIAlignRotated-15 and ROIPooling-1 (opset2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from stepper.element_types import Array, Shape
from stepper.errors import KernelError
from stepper.ops.operands import check_positive, ensure_allocatable, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

# Sampling of regions of interest: reading a feature map between its elements, and the list of regions.
#
# Source: the pages of the ROI operations (bilinear interpolation between the four nearest elements).


def interpolated(planes: Array, plane: Array, y: Array, x: Array) -> Array:
    """Return the values at the points (plane, y, x), which broadcast, between their four nearest elements.

    Positions outside the feature map are those of its border; which of them count at all is the caller's matter.
    """
    top, bottom, down = _neighbours(y, planes.shape[1])
    left, right, along = _neighbours(x, planes.shape[2])
    above = planes[plane, top, left] * (1 - along) + planes[plane, top, right] * along
    below = planes[plane, bottom, left] * (1 - along) + planes[plane, bottom, right] * along
    value: Array = above * (1 - down) + below * down
    return value


def _neighbours(position: Array, size: int) -> tuple[Array, Array, Array]:
    """Return the elements before and after each position, and how far it lies between them."""
    position = np.clip(np.nan_to_num(position, nan=0.0), 0, size - 1)
    low = position.astype(np.int64)
    return low, np.minimum(low + 1, size - 1), (position - low).astype(np.float32)


def sample_positions(start: Any, extent: Any, bins: int, sampling_ratio: int) -> Array:
    """Return positions [bins, samples] along one axis, the samples spread evenly over each bin."""
    bin_size = extent / np.float32(bins)
    count = sampling_ratio or np.ceil(bin_size)
    if not np.isfinite(count):
        raise KernelError(f"a region of interest has an extent of {extent}, which cannot be sampled")
    ensure_allocatable((bins, max(int(count), 0)), np.float32)
    samples = (np.arange(max(int(count), 0), dtype=np.float32) + np.float32(0.5)) / np.float32(count)
    return np.asarray(start + (np.arange(bins, dtype=np.float32)[:, None] + samples) * bin_size, np.float32)


def samples_in_map(features: Array, y: Array, x: Array) -> Array:
    """Return the map read at the points [channels, h, samples, w, samples]; 0 where they lie outside it."""
    channels, height, width = features.shape
    counted = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    ensure_allocatable((4, channels, *counted.shape), np.float32)
    plane = np.arange(channels).reshape(-1, 1, 1, 1, 1)
    return np.where(counted, interpolated(features, plane, y, x), 0)


def bin_means(samples: Array) -> Array:
    """Return the mean of each bin [channels, h, samples, w, samples]; 0 for one without samples."""
    mean: Array = samples.sum(axis=(2, 4)) / max(samples.shape[2] * samples.shape[4], 1)
    return mean


def round_half_away(x: Array) -> Array:
    """Return the nearest whole number, halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x)


def regions_of_batch(data: Array, rois: Array) -> Iterator[tuple[int, int, Array]]:
    """Yield (number, batch, [x1, y1, x2, y2]) of each region [batch, x1, y1, x2, y2], up to a batch of -1."""
    for number, roi in enumerate(rois):
        if roi[0] == -1:
            return
        yield number, batch_index(roi[0], data), roi[1:].astype(np.float32)


def batch_index(value: Array, data: Array) -> int:
    """Return a batch index of a region as an int; KernelError where the data has no such batch."""
    if not 0 <= value < len(data):
        raise KernelError(f"a region of interest lies in batch {value:g}, the data has {len(data)}")
    return int(value)


def check_regions(rois: Array) -> None:
    """Raise KernelError where the regions of interest are not rows [batch, x1, y1, x2, y2]."""
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise KernelError(f"regions of interest must have the shape [regions,5], not {shape_text(rois.shape)}")


def check_feature_maps(data: Array) -> None:
    """Raise KernelError if the data is not [batches, channels, height, width] with at least one element in a plane."""
    if data.ndim != 4 or 0 in data.shape[2:]:
        shape = shape_text(data.shape)
        raise KernelError(f"feature maps must have the shape [batches,channels,height,width], not {shape}")


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
    output = _pooled(data, rois, batch_indices, 4, (pooled_h, pooled_w), sampling_ratio)
    features, scale = widened(data), np.float32(spatial_scale)
    offset = {"asymmetric": 0.0, "half_pixel_for_nn": -0.5, "half_pixel": 0.5 * spatial_scale - 0.5}[aligned_mode]
    boxes = rois.astype(np.float32) * scale + np.float32(offset)
    for number, (box, batch) in enumerate(zip(boxes, batch_indices, strict=True)):
        extent = box[2:] - box[:2]
        if aligned_mode == "asymmetric":
            extent = np.maximum(extent, 1)
        x = sample_positions(box[0], extent[0], pooled_w, sampling_ratio)
        y = sample_positions(box[1], extent[1], pooled_h, sampling_ratio)[..., None, None]
        samples = samples_in_map(features[batch_index(batch, data)], y, x)
        output[number] = bin_means(samples) if mode == "avg" else samples.max(axis=(2, 4), initial=0)
    return narrowed(output, data.dtype)


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
    output = _pooled(data, rois, batch_indices, 5, (pooled_h, pooled_w), sampling_ratio)
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
            # The greatest element of each bin; 0 for an empty one.
            x1, y1, x2, y2 = np.clip(
                np.nan_to_num(round_half_away(box * np.float32(spatial_scale))), -(2**30), 2**30
            ).astype(np.int64)
            rows = _greatest(features[batch], 1, int(y1), int(y2), pooled_h)
            maxima = _greatest(rows, 2, int(x1), int(x2), pooled_w)
            output[number] = np.where(np.isneginf(maxima), 0, maxima)
        else:
            output[number] = _read_at_grid(features[batch], box, pooled_h, pooled_w)
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


# Position-sensitive pooling: each bin of a region of interest is taken from channels of its own.
#
# Source: the pages PSROIPooling-1 and DeformablePSROIPooling-1.


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
    output = _pooled_by_position(data, rois, output_dim, group_size, spatial_scale, bins)
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
    output = _pooled_by_position(data, rois, output_dim, group_size, spatial_scale, bins)
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


def _pooled_by_position(
    data: Array, rois: Array, output_dim: int, group_size: int, scale: float, bins: tuple[int, int]
) -> Array:
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
        y = _sub_bin_grid(box[1], box[3], i, bins_y, group, height)[:, None]
        for j in range(bins_x):
            x = _sub_bin_grid(box[0], box[2], j, bins_x, group, width)
            total += np.where((y < height) & (x < width), interpolated(planes[i, j], plane, y, x), 0)
    return total / np.float32(bins_y * bins_x)


def _sub_bin_grid(start: np.float32, end: np.float32, sub_bin: int, sub_bins: int, points: int, size: int) -> Array:
    """Return positions on an axis of points spread from edge to edge of one sub-bin, or its middle."""
    length = (end - start) / np.float32(sub_bins)
    first = start + np.float32(sub_bin) * length
    steps = np.linspace(0, 1, points, dtype=np.float32) if points > 1 else np.array([0.5], np.float32)
    return np.asarray((first + steps * length) * np.float32(size - 1), np.float32)


def _moves(offsets: Array | None, shape: Shape, part_size: int) -> Array:
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
