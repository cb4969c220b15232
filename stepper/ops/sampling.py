"""Reading images at places of one's own choosing, in between and outside their pixels.

Source: the descriptions of GridSample and DeformableConvolution.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array


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
