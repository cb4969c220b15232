"""Sampling of regions of interest: reading a feature map between its elements, and the list of regions.

Source: the pages of the ROI operations (bilinear interpolation between the four nearest elements).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, shape_text


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
    check_feature_maps(data)
    check_regions(rois)
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
