"""Pool regions of interest: resize each region of a feature map to one size.

Source: the pages ROIAlign-3, -9, ROIAlignRotated-15 and ROIPooling-1 (opset2).

The module also suppresses non-maximum scored boxes, class by class.

Source: the pages NonMaxSuppression-1, -3, -4, -5, -9 and NMSRotated-13. The kernels follow OpenVINO where the pages
leave something open or OpenVINO decides otherwise. A box is selected only with a score strictly greater than
score_threshold. An overlap of exactly iou_threshold removes a box (except for rotated boxes). The outputs hold the
selected boxes and no padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from stepper.element_types import I64, Array, DType, ElementType, Shape
from stepper.errors import KernelError
from stepper.ops.operands import check_positive, ensure_allocatable, form_text, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.records import Record

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
    """Return the offsets [regions, out, 2 (x, y), h, w] of each bin, from its class and part."""
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


# Boxes as [x1, y1, x2, y2]: how much they overlap, and which of them survive the stronger ones.
#
# Source: the pages of the non-maximum suppressions and of the detection operations, which share these two steps.
# `pixel` is 1 where a coordinate names a whole pixel, so that a box from 3 to 3 is one wide, and 0 otherwise. Rotated
# boxes are [x_center, y_center, width, height, angle] (NMSRotated-13): the angle is in radians, y points down, so that
# a turn from x to y is clockwise.


def areas(boxes: Array, pixel: float = 0.0) -> Array:
    """Width times height of each box, the last axis being its four coordinates."""
    return (boxes[..., 2] - boxes[..., 0] + pixel) * (boxes[..., 3] - boxes[..., 1] + pixel)


def overlaps(box: Array, others: Array, pixel: float = 0.0, must_touch: bool = False) -> Array:
    """Return intersection over union of one box with each of the others; 0 where either has no area.

    With `must_touch` boxes that lie less than a pixel apart do not count as overlapping.
    """
    sides = np.minimum(box[2:], others[..., 2:]) - np.maximum(box[:2], others[..., :2])
    sides = np.where(sides >= 0, sides + pixel, 0) if must_touch else np.maximum(sides + pixel, 0)
    found = _over_union(sides[..., 0] * sides[..., 1], areas(box, pixel), areas(others, pixel))
    return found.astype(others.dtype)


def _over_union(intersection: Array, own: Array, theirs: Array) -> Array:
    """Return the part of what two areas cover together that they share; 0 where either is none."""
    return np.where((own > 0) & (theirs > 0), intersection / (own + theirs - intersection), 0)


def refined(boxes: Array, deltas: Array, pixel: float = 0.0, greatest_log: float = np.inf) -> Array:
    """Return boxes moved and resized by deltas [dx, dy, log of width, log of height] in parts of their own size.

    The result runs from edge to edge: where a coordinate names a pixel, the last one lies `pixel` before its end.
    """
    size = boxes[..., 2:] - boxes[..., :2] + pixel
    center = boxes[..., :2] + size / 2 + deltas[..., :2] * size
    half = np.exp(np.minimum(deltas[..., 2:], boxes.dtype.type(greatest_log))) * size / 2
    return np.concatenate([center - half, center + half], axis=-1)


def surviving(
    boxes: Array, threshold: float, limit: int, pixel: float = 0.0, eta: float = 1.0, must_touch: bool = False
) -> list[int]:
    """Return positions of at most `limit` boxes (best first) that overlap no better survivor.

    Boxes overlap if their overlap exceeds the threshold. With eta < 1, each survivor multiplies the threshold by eta
    while the threshold is above 0.5.
    """
    worst, threshold = np.zeros(len(boxes), boxes.dtype), boxes.dtype.type(threshold)
    kept: list[int] = []
    position = 0
    while position < len(boxes) and len(kept) < limit:
        kept.append(position)
        worst = np.maximum(worst, overlaps(boxes[position], boxes, pixel, must_touch))
        if eta < 1 and threshold > 0.5:
            threshold *= boxes.dtype.type(eta)
        free = np.flatnonzero(worst[position + 1 :] <= threshold)
        position = position + 1 + int(free[0]) if free.size else len(boxes)
    return kept


_TOUCHING = 1e-9
_SIGNS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])


def corners(boxes: Array, clockwise: bool) -> Array:
    """Return the four corners [..., 4, 2] of each box in order around it, in f64."""
    boxes = boxes.astype(np.float64)
    center, size, angle = boxes[..., None, :2], boxes[..., None, 2:4], boxes[..., 4, None]
    angle = angle if clockwise else -angle
    x, y = np.moveaxis(_SIGNS * size, -1, 0)
    turned = [x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)]
    around: Array = center + np.stack(turned, axis=-1)
    return around


def rotated_overlaps(box: Array, others: Array) -> Array:
    """Return intersection over union of one box with each of the others [n, 4, 2], both given by their corners."""
    found = _over_union(_intersection_areas(box, others), _enclosed(box), _enclosed(others))
    return found.astype(np.float32)


def _intersection_areas(box: Array, others: Array) -> Array:
    """Return the area of the convex polygon between the crossings of the edges and corners in the other box."""
    edge, edges = np.roll(box, -1, axis=-2) - box, np.roll(others, -1, axis=-2) - others
    between = others[:, None] - box[:, None]
    turn = _cross(edge[:, None], edges[:, None])
    along, across = _cross(between, edges[:, None]) / turn, _cross(between, edge[:, None]) / turn
    crossing = (np.abs(turn) > _TOUCHING) & (along >= 0) & (along <= 1) & (across >= 0) & (across <= 1)
    points = box[:, None] + np.where(crossing, along, 0)[..., None] * edge[:, None]
    count = len(others)
    vertices = [points.reshape(count, 16, 2), np.broadcast_to(box, others.shape), others]
    valid = [crossing.reshape(count, 16), _inside(box, others, edges), _inside(others, box[None], edge[None])]
    return _hull_areas(np.concatenate(vertices, axis=1), np.concatenate(valid, axis=1))


def _inside(points: Array, corner: Array, edge: Array) -> Array:
    """Return True if each point lies in the convex polygon of these corners and edges, its outline included."""
    sides = _cross(edge[:, None], points[..., :, None, :] - corner[:, None])
    return np.logical_or((sides >= -_TOUCHING).all(axis=-1), (sides <= _TOUCHING).all(axis=-1))


def _hull_areas(points: Array, valid: Array) -> Array:
    """Return area of the convex polygon with the valid points [n, k, 2] as vertices, whatever their order."""
    first = np.take_along_axis(points, valid.argmax(axis=1)[:, None, None], axis=1)
    points = np.where(valid[..., None], points, first)
    offsets = points - points.mean(axis=1, keepdims=True)
    order = np.argsort(np.arctan2(offsets[..., 1], offsets[..., 0]), axis=1)
    ring = np.take_along_axis(offsets, order[..., None], axis=1)
    return np.where(valid.any(axis=1), _enclosed(ring), 0)


def _enclosed(ring: Array) -> Array:
    """Return area within a polygon [..., k, 2] (the shoelace formula)."""
    area: Array = np.abs(_cross(ring, np.roll(ring, -1, axis=-2)).sum(axis=-1)) / 2
    return area


def _cross(a: Array, b: Array) -> Array:
    product: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


BoxEncoding = Literal["corner", "center"]
Selection = tuple[Array, Array, Array]


class _Rules(Record):
    """Limits of the selection: boxes of a class, least score, and the effect of an overlap on the others.

    `silences` tells of overlaps and the threshold which are too large; with sigma > 0 no overlap is, but the score
    falls by the factor exp(-overlap² / (2 sigma)).
    """

    limit: int
    iou_threshold: float
    score_threshold: float
    sigma: float
    silences: Callable[[Array, float], Array]


@kernel("NonMaxSuppression", 5, 9)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = 0.0,
    soft_nms_sigma: Any = 0.0,
    *,
    box_encoding: BoxEncoding = "corner",
    sort_result_descending: bool = True,
    output_type: ElementType = I64,
) -> tuple[Array, Array, Array]:
    """Return [batch, class, box] and [batch, class, score] of each selected box, and how many there are."""
    rules = _rules(max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma)
    _check(boxes, scores, 4)
    boxes = boxes.astype(np.float32, copy=False)
    first, second = boxes[..., :2], boxes[..., 2:]
    if box_encoding == "center":
        first, second = first - second / 2, first + second / 2
    ordered = np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)

    def overlap_with(batch: int, best: int) -> Array:
        return overlaps(ordered[batch, best], ordered[batch])

    return _select(scores, overlap_with, rules, sort_result_descending, output_type)


@kernel("NonMaxSuppression", 1, without=("output_type",))
@kernel("NonMaxSuppression", 3, 4)
@attributes_of(non_max_suppression)
def non_max_suppression_1(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = 0.0,
    **attributes: Any,
) -> Array:
    """Return [batch, class, box] of each selected box, in `output_type`."""
    limits = (max_output_boxes_per_class, iou_threshold, score_threshold)
    return non_max_suppression(boxes, scores, *limits, **attributes)[0]


@kernel("NMSRotated", 13)
def nms_rotated(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    *,
    sort_result_descending: bool = True,
    output_type: ElementType = I64,
    clockwise: bool = True,
) -> tuple[Array, Array, Array]:
    """NonMaxSuppression of boxes [x_center, y_center, width, height, angle in radians]."""
    _check(boxes, scores, 5)
    outlines = corners(boxes, clockwise)
    rules = _rules(max_output_boxes_per_class, iou_threshold, score_threshold, silences=np.greater)

    def overlap_with(batch: int, best: int) -> Array:
        return rotated_overlaps(outlines[batch, best], outlines[batch])

    return _select(scores, overlap_with, rules, sort_result_descending, output_type)


def _select(
    scores: Array,
    overlap_with: Callable[[int, int], Array],
    rules: _Rules,
    descending: bool,
    output_type: ElementType,
) -> Selection:
    """Return the selection of every batch and class, put together."""
    indices: list[tuple[int, int, int]] = []
    chosen: list[float] = []
    for batch, classes in enumerate(scores):
        for label, of_class in enumerate(classes):
            boxes, final = _selected(of_class, partial(overlap_with, batch), rules)
            indices += [(batch, label, box) for box in boxes]
            chosen += final
    table, best = np.array(indices, np.int64).reshape(-1, 3), np.array(chosen, np.float32)
    if descending:
        order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], -best))
        table, best = table[order], best[order]
    score_table = np.concatenate([table[:, :2].astype(np.float32), best[:, None]], axis=1)
    return table.astype(output_type.dtype), score_table, np.array([len(table)], output_type.dtype)


def _selected(scores: Array, overlap_with: Callable[[int], Array], rules: _Rules) -> tuple[list[int], list[float]]:
    """Return positions and scores of the boxes of one class that are selected, the best first."""
    above = rules.score_threshold
    remaining = np.where(scores > above, scores, -np.inf).astype(np.float32)
    positions: list[int] = []
    final: list[float] = []
    while len(positions) < min(rules.limit, scores.size):
        best = int(remaining.argmax())
        if not remaining[best] > above:
            break
        positions.append(best)
        final.append(float(remaining[best]))
        overlap = overlap_with(best)
        if rules.sigma > 0:
            lowered = remaining * np.exp(overlap * overlap * np.float32(-0.5 / rules.sigma))
            remaining = np.where(remaining > above, lowered, -np.inf)
        else:
            remaining[rules.silences(overlap, rules.iou_threshold)] = -np.inf
        remaining[best] = -np.inf
    return positions, final


def _rules(
    limit: Any, iou: Any, score: Any, sigma: Any = 0.0, silences: Callable[[Array, float], Array] = np.greater_equal
) -> _Rules:
    """Return the rules that the inputs give."""
    return _Rules(int(_single(limit)), _single(iou), _single(score), _single(sigma), silences)


def _single(value: Any) -> Any:
    """Return the number in a rank-0 or one-element tensor, thresholds of whatever float type as f32."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind == "T":
        raise KernelError(f"a limit or threshold must be one number, it is {form_text(array)}")
    number = array.reshape(-1)[0]
    return int(number) if number.dtype.kind in "iu" else np.float32(number)


def _check(boxes: Array, scores: Array, size: int) -> None:
    fits = boxes.ndim == scores.ndim == 3 and boxes.shape[2] == size
    if not fits or boxes.shape[0] != scores.shape[0] or boxes.shape[1] != scores.shape[2]:
        shapes = f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{shapes} do not fit: expected [batches,boxes,{size}] and [batches,classes,boxes]")


# Non-maximum suppression of all classes of an image together, the best boxes of any class kept.
#
# Source: the pages MulticlassNonMaxSuppression-8, -9 and MatrixNonMaxSuppression-8 (in an IR MulticlassNms, MatrixNms).

SortResult = Literal["none", "score", "classid"]
OfClass = Callable[[Array, Array], tuple[Array, Array]]
"""Boxes and scores of one class in, positions and scores of those that it keeps out."""


class _Images(Record):
    """Boxes to select from: for each image boxes [classes, n, 4], scores [classes, n] and the boxes' numbers."""

    boxes: list[Array]
    scores: list[Array]
    numbers: list[Array]


class _Wanted(Record, kw_only=True):
    """The attributes that both operations have."""

    sort_result_type: SortResult = "none"
    sort_result_across_batch: bool = False
    output_type: ElementType = I64
    score_threshold: float = 0.0
    nms_top_k: int = -1
    keep_top_k: int = -1
    background_class: int = -1
    normalized: bool = True

    @property
    def pixel(self) -> float:
        """1 where a coordinate names a pixel."""
        return 0.0 if self.normalized else 1.0


@kernel("MulticlassNms", 8, 9)
@attributes_of(_Wanted)
def multiclass_nms(
    boxes: Array,
    scores: Array,
    roisnum: Any = None,
    *,
    iou_threshold: float = 0.0,
    nms_eta: float = 1.0,
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Return [class, score, box] and number of each box kept, and how many each image has."""
    wanted = _Wanted(**attributes)

    def of_class(boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = best_first(scores, scores >= np.float32(wanted.score_threshold), wanted.nms_top_k)
        kept = order[surviving(boxes[order], iou_threshold, len(order), wanted.pixel, nms_eta)]
        return kept, scores[kept]

    images = _shared_boxes(boxes, scores) if roisnum is None else _boxes_of_classes(boxes, scores, roisnum)
    return _search(images, of_class, wanted, wanted.sort_result_type, boxes.dtype)


@kernel("MatrixNms", 8)
@attributes_of(_Wanted)
def matrix_nms(
    boxes: Array,
    scores: Array,
    *,
    decay_function: Literal["linear", "gaussian"] = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Return [class, score, box] and number of each box kept, scores lowered by the overlap with better boxes."""
    wanted = _Wanted(**attributes)
    sigma = gaussian_sigma if decay_function == "gaussian" else None

    def of_class(boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = best_first(scores, scores > np.float32(wanted.score_threshold), wanted.nms_top_k)
        decayed = scores[order] * _decay(boxes[order], wanted.pixel, sigma)
        enough = decayed > np.float32(post_threshold)
        return order[enough], decayed[enough]

    # The runtime sorts by class only across the batch, within each image by score.
    sort_by = wanted.sort_result_type if wanted.sort_result_across_batch else "score"
    return _search(_shared_boxes(boxes, scores), of_class, wanted, sort_by, boxes.dtype)


def best_first(scores: Array, candidate: Array, limit: int = -1) -> Array:
    """Return positions of the candidates by descending score, at most `limit` of them (-1: all)."""
    positions = np.flatnonzero(candidate)
    order = positions[np.argsort(-scores[positions], kind="stable")]
    return order[:limit] if limit >= 0 else order


def _decay(boxes: Array, pixel: float, sigma: float | None) -> Array:
    """Return the factor of each box's score (boxes best first): the least over the better boxes."""
    if not len(boxes):
        return np.ones(0, boxes.dtype)
    better = np.stack([overlaps(box, boxes, pixel, must_touch=True) for box in boxes])
    better = np.triu(better, 1)
    worst = better.max(axis=0)[:, None]
    factor = (1 - better) / (1 - worst) if sigma is None else np.exp((worst**2 - better**2) * np.float32(sigma))
    factor[np.tri(len(boxes), dtype=np.bool_)] = 1
    least: Array = factor.min(axis=0)
    return least


def _shared_boxes(boxes: Array, scores: Array) -> _Images:
    _check(boxes, scores, 4)
    batches, classes, count = scores.shape
    wide = np.broadcast_to(widened(boxes)[:, None], (batches, classes, count, 4))
    numbers = np.arange(batches * count).reshape(batches, 1, count)
    return _Images(list(wide), list(widened(scores)), list(np.broadcast_to(numbers, scores.shape)))


def _boxes_of_classes(boxes: Array, scores: Array, roisnum: Any) -> _Images:
    counts = integers(roisnum)
    if boxes.ndim != 3 or boxes.shape != (*scores.shape, 4):
        shapes = f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{shapes} do not fit: expected [classes,boxes,4] and [classes,boxes]")
    if min(counts, default=0) < 0 or sum(counts) > scores.shape[1]:
        raise KernelError(f"roisnum {shape_text(counts)} does not fit the {scores.shape[1]} boxes of each class")
    ends = np.cumsum(counts)[:-1]
    numbers = np.arange(scores.size).reshape(scores.shape[::-1]).T
    parts = [np.split(part[:, : sum(counts)], ends, axis=1) for part in (widened(boxes), widened(scores), numbers)]
    return _Images(*parts)


def _search(images: _Images, of_class: OfClass, wanted: _Wanted, sort_by: str, dtype: DType) -> Selection:
    """Return the boxes that each class of each image keeps, cut to keep_top_k, in the order asked for."""
    rows, numbers = [np.zeros((0, 7), np.float64)], [np.zeros(0, np.int64)]
    for image, (boxes, scores, own_numbers) in enumerate(zip(images.boxes, images.scores, images.numbers, strict=True)):
        found, found_numbers = [np.zeros((0, 7), np.float64)], [np.zeros(0, np.int64)]
        for label in set(range(len(scores))) - {wanted.background_class}:
            kept, final = of_class(boxes[label], scores[label])
            prefix = np.broadcast_to([float(image), float(label)], (len(kept), 2))
            found.append(np.concatenate([prefix, final[:, None], boxes[label, kept]], axis=1))
            found_numbers.append(own_numbers[label, kept])
        of_image, of_numbers = np.concatenate(found), np.concatenate(found_numbers)
        order = best_first(of_image[:, 2], np.ones(len(of_image)), wanted.keep_top_k)
        rows.append(of_image[order])
        numbers.append(of_numbers[order])
    table, number = np.concatenate(rows), np.concatenate(numbers)
    counts = np.bincount(table[:, 0].astype(np.int64), minlength=len(images.boxes))
    order = _order(table[:, 0], table[:, 1], table[:, 2], sort_by, wanted.sort_result_across_batch)
    index_dtype = wanted.output_type.dtype
    return narrowed(table[order, 1:], dtype), number[order, None].astype(index_dtype), counts.astype(index_dtype)


def _order(image: Array, label: Array, score: Array, sort_by: str, across_batch: bool) -> Array:
    """Return positions in the order of the result, starting from descending scores image by image."""
    keys = {"score": [-score], "classid": [-score, label], "none": []}[sort_by]
    if not keys:
        return np.arange(len(image))
    if across_batch:
        return np.lexsort([image, *keys] if sort_by == "score" else [-score, image, label])
    return np.lexsort([*keys, image])
