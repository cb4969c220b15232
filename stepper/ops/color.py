"""Conversion of camera images, whose colour has half the resolution of their brightness, to RGB and BGR.

Source: the pages NV12toRGB-8, NV12toBGR-8, I420toRGB-8 and I420toBGR-8; in u8 the result is rounded to the nearest.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import shape_text
from stepper.ops.precision import narrowed
from stepper.ops.registry import kernel


@kernel("NV12toRGB", 8)
def nv12_to_rgb(y: Array, uv: Array | None = None) -> Array:
    """Return [..., R, G, B] of brightness and interleaved colour, in a tensor [n, height · 3 / 2, width, 1] or two."""
    return _rgb(*_nv12_planes(y, uv))


@kernel("NV12toBGR", 8)
def nv12_to_bgr(y: Array, uv: Array | None = None) -> Array:
    """NV12toRGB with the channels in the opposite order."""
    return _rgb(*_nv12_planes(y, uv))[..., ::-1]


@kernel("I420toRGB", 8)
def i420_to_rgb(y: Array, u: Array | None = None, v: Array | None = None) -> Array:
    """Return [..., R, G, B] of brightness and two colour planes, in a tensor [n, height · 3 / 2, width, 1] or three."""
    return _rgb(*_i420_planes(y, u, v))


@kernel("I420toBGR", 8)
def i420_to_bgr(y: Array, u: Array | None = None, v: Array | None = None) -> Array:
    """I420toRGB with the channels in the opposite order."""
    return _rgb(*_i420_planes(y, u, v))[..., ::-1]


def _nv12_planes(y: Array, uv: Array | None) -> tuple[Array, Array, Array]:
    if uv is None:
        y, color = _split(y)
        uv = color.reshape(len(y), y.shape[1] // 2, y.shape[2] // 2, 2)
    _check(y, uv, 2)
    return y, uv[..., :1], uv[..., 1:]


def _i420_planes(y: Array, u: Array | None, v: Array | None) -> tuple[Array, Array, Array]:
    if u is None or v is None:
        if u is not None:
            raise KernelError("I420 takes one input with all planes, or three")
        y, color = _split(y)
        u, v = np.moveaxis(color.reshape(len(y), 2, y.shape[1] // 2, y.shape[2] // 2, 1), 1, 0)
    _check(y, u, 1)
    _check(y, v, 1)
    return y, u, v


def _split(image: Array) -> tuple[Array, Array]:
    """Brightness and colour of an image in one tensor, of which the colour takes the lower third."""
    if image.ndim != 4 or image.shape[1] % 3 or image.shape[2] % 2 or image.shape[3] != 1:
        shape = shape_text(image.shape)
        raise KernelError(f"an image of shape {shape} is not [n,height*3/2,width,1] with even height and width")
    height = image.shape[1] // 3 * 2
    return image[:, :height], image[:, height:]


def _check(y: Array, color: Array, channels: int) -> None:
    fits = y.ndim == 4 and y.shape[3] == 1 and y.shape[1] % 2 == y.shape[2] % 2 == 0
    if not fits or color.shape != (len(y), y.shape[1] // 2, y.shape[2] // 2, channels):
        raise KernelError(f"planes of shapes {shape_text(y.shape)} and {shape_text(color.shape)} do not fit each other")


def _rgb(y: Array, u: Array, v: Array) -> Array:
    """Return the three channels of brightness and colour: BT.601 with the limited range 16..235."""
    light = (y.astype(np.float32) - 16) * np.float32(1.164)
    blue, red = (np.repeat(np.repeat(plane.astype(np.float32) - 128, 2, axis=1), 2, axis=2) for plane in (u, v))
    channels = (
        light + np.float32(1.596) * red,
        light - np.float32(0.391) * blue - np.float32(0.813) * red,
        light + np.float32(2.018) * blue,
    )
    image = np.clip(np.concatenate(channels, axis=-1), 0, 255)
    return narrowed(image if is_floating(y.dtype) else np.rint(image), y.dtype)
