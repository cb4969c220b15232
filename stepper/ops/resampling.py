"""Resizing one axis: which input elements make an output element, with which weights; pixels at places in between.

Source: Interpolate's pages (modes, coordinate transformations, the rounding of the nearest element), and those of
GridSample and DeformableConvolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from stepper.element_types import Array

Mode = Literal["nearest", "linear", "linear_onnx", "cubic", "area", "bilinear_pillow", "bicubic_pillow"]
Coordinates = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Nearest = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]

Taps = tuple[Array, Array]
"""Return for each output element the input elements [outputs, taps] and their weights, of the same shape."""


class Resizing(Struct, frozen=True):
    """One axis of `size` elements made one of `new_size`, and how."""

    size: int
    new_size: int
    scale: float
    mode: str
    coordinates: str
    nearest: str
    antialias: bool
    cube_coeff: float

    def taps(self) -> Taps:
        """Return the input elements and weights of each output element."""
        return _TAPS[self.mode](self)

    def positions(self) -> Array:
        """Return the place of each output element on the input axis."""
        x = np.arange(self.new_size, dtype=np.float32)
        if self.scale == 1 or self.new_size == self.size:
            return x
        return np.asarray(_TRANSFORMATIONS[self.coordinates](self, x), np.float32)


def _pytorch_half_pixel(axis: Resizing, x: Array) -> Array:
    return (x + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5) if axis.new_size > 1 else np.zeros_like(x)


def _align_corners(axis: Resizing, x: Array) -> Array:
    if axis.new_size == 1:
        return np.zeros_like(x)
    return x * np.float32(axis.size - 1) / np.float32(axis.new_size - 1)


_TRANSFORMATIONS: Final[dict[str, Callable[[Resizing, Array], Array]]] = {
    "half_pixel": lambda axis, x: (x + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5),
    "pytorch_half_pixel": _pytorch_half_pixel,
    "asymmetric": lambda axis, x: x / np.float32(axis.scale),
    "tf_half_pixel_for_nn": lambda axis, x: (x + np.float32(0.5)) / np.float32(axis.scale),
    "align_corners": _align_corners,
}

_ROUNDINGS: Final[dict[str, Callable[[Array, float], Array]]] = {
    "round_prefer_floor": lambda x, scale: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x, scale: np.floor(x + np.float32(0.5)),
    "floor": lambda x, scale: np.floor(x),
    "ceil": lambda x, scale: np.ceil(x),
    "simple": lambda x, scale: np.ceil(x) if scale < 1 else np.trunc(x),
}


def _nearest(axis: Resizing) -> Taps:
    index = _ROUNDINGS[axis.nearest](axis.positions(), axis.scale)
    index = np.clip(index, 0, axis.size - 1).astype(np.int64)[:, np.newaxis]
    return index, np.ones(index.shape, np.float32)


def _linear_onnx(axis: Resizing) -> Taps:
    position = np.clip(axis.positions(), 0, axis.size - 1)
    lower = np.floor(position).astype(np.int64)
    fraction = position - lower.astype(np.float32)
    upper = np.minimum(lower + 1, axis.size - 1)
    return np.stack([lower, upper], axis=1), np.stack([1 - fraction, fraction], axis=1)


def _linear(axis: Resizing) -> Taps:
    """Return a triangle around the position, as wide as the step between output elements if `antialias`."""
    sharpness = np.float32(axis.scale if axis.antialias else 1)
    reach = min(2 if axis.scale > 1 else math.ceil(2 / float(sharpness)), axis.size)
    position = axis.positions()
    middle = np.floor(position + np.float32(0.5)).astype(np.int64)
    index = middle[:, np.newaxis] + np.arange(-reach, reach + 1)
    distance = position[:, np.newaxis] - index.astype(np.float32)
    weight = np.maximum(0, 1 - np.abs(sharpness * distance))
    return _normalised(index, weight, axis.size)


def _cubic(axis: Resizing) -> Taps:
    position = axis.positions()
    lower = np.floor(position)
    index = lower.astype(np.int64)[:, np.newaxis] + np.arange(-1, 3)
    return np.clip(index, 0, axis.size - 1), cubic_weights(position - lower, axis.cube_coeff)


def cubic_weights(fraction: Array, a: float) -> Array:
    """Weights [..., 4] of the elements at -1, 0, 1 and 2 for a position `fraction` after element 0."""
    distance = np.abs(fraction[..., np.newaxis] - np.arange(-1, 3, dtype=np.float32))
    return cubic(distance, a)


def cubic(distance: Array, a: float) -> Array:
    """Return the cubic convolution kernel of parameter `a` at distances of at least 0."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0)).astype(distance.dtype)


def _area(axis: Resizing) -> Taps:
    """Return the mean of what an output element covers of the input, parts of elements by their share."""
    step = axis.size / axis.new_size
    start = np.arange(axis.new_size)[:, np.newaxis] * step
    index = np.floor(start).astype(np.int64) + np.arange(math.ceil(step) + 1)
    covered = np.minimum(index + 1, start + step) - np.maximum(index, start)
    return _normalised(index, np.maximum(covered, 0).astype(np.float32), axis.size)


def _pillow(axis: Resizing, radius: int, filter: Callable[[Array], Array]) -> Taps:
    """Return `filter` around the middle of each output element, stretched where the axis shrinks."""
    step = axis.size / axis.new_size
    stretch = max(step, 1.0)
    middle = (np.arange(axis.new_size) + 0.5) * step
    first = np.maximum(np.trunc(middle - radius * stretch + 0.5), 0).astype(np.int64)
    last = np.minimum(np.trunc(middle + radius * stretch + 0.5), axis.size).astype(np.int64)
    index = first[:, np.newaxis] + np.arange(int(np.max(last - first, initial=1)))
    weight = filter(np.abs(index - middle[:, np.newaxis] + 0.5) / stretch)
    return _normalised(index, np.where(index < last[:, np.newaxis], weight, 0).astype(np.float32), axis.size)


def _normalised(index: Array, weight: Array, size: int) -> Taps:
    """Weights of elements inside the axis, of sum 1 (or all 0)."""
    weight = np.where((index >= 0) & (index < size), weight, 0)
    total = weight.sum(axis=1, keepdims=True)
    return np.clip(index, 0, size - 1), weight / np.where(total == 0, 1, total)


_TAPS: Final[dict[str, Callable[[Resizing], Taps]]] = {
    "nearest": _nearest,
    "linear": _linear,
    "linear_onnx": _linear_onnx,
    "cubic": _cubic,
    "area": _area,
    "bilinear_pillow": lambda axis: _pillow(axis, 1, lambda distance: np.maximum(1 - distance, 0)),
    "bicubic_pillow": lambda axis: _pillow(axis, 2, lambda distance: cubic(distance, axis.cube_coeff)),
}


def pixels(images: Array, y: Array, x: Array) -> Array:
    """Return the pixels [N, C, places] of images [N, C, H, W] at integer places [N, places]; zero outside."""
    batch, channels, height, width = images.shape
    if images.size == 0:
        return np.zeros((batch, channels, y.shape[1]), images.dtype)
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    index = np.where(inside, y * width + x, 0)
    found = np.take_along_axis(images.reshape(batch, channels, height * width), index[:, np.newaxis], axis=2)
    return np.where(inside[:, np.newaxis], found, images.dtype.type(0))


def bilinear(images: Array, y: Array, x: Array) -> Array:
    """Bilinear interpolation [N, C, places] at real places [N, places] of images with zeros around them."""
    y, x = (np.clip(place, -2.0, size + 1.0) for place, size in zip((y, x), images.shape[2:], strict=True))
    top, left = np.floor(y), np.floor(x)
    below, right = y - top, x - left
    rows, columns = top.astype(np.int64), left.astype(np.int64)
    interpolated: Array = sum(
        (weight_y * weight_x)[:, np.newaxis] * pixels(images, rows + dy, columns + dx)
        for dy, weight_y in ((0, 1 - below), (1, below))
        for dx, weight_x in ((0, 1 - right), (1, right))
    )
    return interpolated
