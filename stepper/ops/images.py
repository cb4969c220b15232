"""Images: interpolation, sampling on a grid, and conversion of colors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from msgspec.structs import replace

from stepper.element_types import Array, DType, Ints, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, normalize_axis, shape_text, surrounded
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.records import Record

# Resizing one axis: which input elements make an output element, with which weights; pixels at places in between.
#
# Source: Interpolate's pages (modes, coordinate transformations, the rounding of the nearest element), and those of
# GridSample and DeformableConvolution.

Mode = Literal["nearest", "linear", "linear_onnx", "cubic", "area", "bilinear_pillow", "bicubic_pillow"]
Coordinates = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
Nearest = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]

Taps = tuple[Array, Array]
"""Return for each output element the input elements [outputs, taps] and their weights, of the same shape."""


class Resizing(Record):
    """Describe how an axis of `size` elements is resized to `new_size`."""

    mode: str
    coordinates: str
    nearest: str
    antialias: bool
    cube_coeff: float
    size: int = 0
    new_size: int = 0
    scale: float = 1.0

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


@kernel("Interpolate", 1)
def interpolate_1(
    data: Array,
    target_spatial_shape: Array,
    *,
    axes: Ints = (),
    mode: Literal["nearest", "linear", "cubic", "area"],
    align_corners: bool = True,
    antialias: bool = False,
    pads_begin: Ints = (),
    pads_end: Ints = (),
) -> Array:
    """Return the axes of the attribute resized to the target shape; one number of padding counts for each of them."""
    named = _axes(axes, data.ndim)
    begin, end = (_pads_of_axes(pads, named, data.ndim) for pads in (pads_begin, pads_end))
    padded = _padded(data, begin, end)
    sizes = _sizes(target_spatial_shape, named)
    coordinates = "align_corners" if align_corners else "asymmetric"
    how = Resizing(
        "linear_onnx" if mode == "linear" and not antialias else mode, coordinates, "simple", antialias, -0.75
    )
    return _resized(padded, _resizings(padded, named, sizes, None, how))


@kernel("Interpolate", 11)
def interpolate_11(
    image: Array,
    scales_or_sizes: Array,
    axes: Array | None = None,
    *,
    mode: Mode = "nearest",
    shape_calculation_mode: Literal["sizes", "scales"] = "sizes",
    coordinate_transformation_mode: Coordinates = "half_pixel",
    nearest_mode: Nearest = "round_prefer_floor",
    antialias: bool = False,
    pads_begin: Ints = (),
    pads_end: Ints = (),
    cube_coeff: float = -0.75,
) -> Array:
    """Return the axes (all, if not given) resized to sizes or by scales."""
    named = _axes(range(image.ndim) if axes is None else integers(axes), image.ndim)
    padded = _padded(image, *(_padded_list(pads, image.ndim) for pads in (pads_begin, pads_end)))
    scales = None
    if shape_calculation_mode == "scales":
        scales = np.ravel(scales_or_sizes).astype(np.float32)
        _check_count(len(scales), named)
        sizes = [_scaled(padded.shape[axis], float(scale)) for axis, scale in zip(named, scales, strict=True)]
    else:
        sizes = _sizes(scales_or_sizes, named)
    how = Resizing(mode, coordinate_transformation_mode, nearest_mode, antialias, cube_coeff)
    return _resized(padded, _resizings(padded, named, sizes, scales, how))


@kernel("Interpolate", 4)
@attributes_of(interpolate_11)
def interpolate_4(
    image: Array,
    output_shape: Array,
    scales: Array,
    axes: Array | None = None,
    *,
    shape_calculation_mode: Literal["sizes", "scales"] = "sizes",
    **attributes: Any,
) -> Array:
    """Return the axes (all, if not given) resized to the output shape or by the scales."""
    how = scales if shape_calculation_mode == "scales" else output_shape
    return interpolate_11(image, how, axes, shape_calculation_mode=shape_calculation_mode, **attributes)


def _resizings(
    data: Array, axes: Sequence[int], sizes: Sequence[int], scales: Array | None, how: Resizing
) -> dict[int, Resizing]:
    """Return the resizing of each axis that is named."""
    shape = list(data.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    if any(size < 0 for size in sizes) or (0 in data.shape and 0 not in shape):
        raise KernelError(f"a tensor of shape {shape_text(data.shape)} cannot be resized to {shape_text(shape)}")
    ensure_allocatable(shape, data.dtype if data.dtype.itemsize >= 4 else np.float32)
    if scales is None:
        scales = np.array(sizes, np.float32) / np.array([max(data.shape[axis], 1) for axis in axes], np.float32)
    how = replace(how, antialias=how.antialias and bool((scales < 1).any()))
    return {
        axis: replace(how, size=data.shape[axis], new_size=size, scale=float(scale))
        for axis, size, scale in zip(axes, sizes, scales, strict=True)
    }


def _resized(data: Array, resizings: Mapping[int, Resizing]) -> Array:
    """Return one axis after the other, those that shrink most first."""
    shape = [resizings[axis].new_size if axis in resizings else size for axis, size in enumerate(data.shape)]
    if 0 in shape:
        return np.zeros(shape, data.dtype)
    nearest = all(resizing.mode == "nearest" for resizing in resizings.values())
    result = data if nearest else (widened(data) if is_floating(data.dtype) else data.astype(np.float32))
    for axis, resizing in sorted(resizings.items(), key=lambda item: item[1].new_size / item[1].size):
        index, weight = resizing.taps()
        if nearest:
            result = result.take(index[:, 0], axis)
            continue
        spread = (slice(None), *[np.newaxis] * (data.ndim - 1 - axis))
        terms = (result.take(index[:, tap], axis) * weight[:, tap][spread] for tap in range(index.shape[1]))
        total = next(terms)
        for term in terms:
            total += term
        result = total
    return result if nearest else _of_type(result, data.dtype)


def _of_type(result: Array, dtype: DType) -> Array:
    """Return a computed result in the data's type: integers rounded and held within their range."""
    if is_floating(dtype):
        return narrowed(result, dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(result.astype(np.float64)), limits.min, limits.max).astype(dtype)


def _axes(axes: Sequence[int], rank: int) -> list[int]:
    named = [normalize_axis(axis, rank) for axis in axes]
    if len(set(named)) < len(named):
        raise KernelError(f"the axes {named} name one twice")
    return named


def _sizes(sizes: Array, axes: Sequence[int]) -> list[int]:
    found = integers(sizes)
    _check_count(len(found), axes)
    return found


def _check_count(count: int, axes: Sequence[int]) -> None:
    if count != len(axes):
        raise KernelError(f"{count} sizes or scales for {len(axes)} axes")


def _scaled(size: int, scale: float) -> int:
    """Return floor(scale * size); a hair is added, as scales are rounded to f32."""
    if not math.isfinite(scale) or scale < 0:
        raise KernelError(f"{scale} is not a scale")
    return math.floor(np.float32(scale) * np.float32(size) + 1e-6)


def _pads_of_axes(pads: Ints, axes: Sequence[int], rank: int) -> list[int]:
    """Return a number for all resized axes, or one for each axis of the tensor."""
    if len(pads) == 1:
        return [pads[0] if axis in axes else 0 for axis in range(rank)]
    return _padded_list(pads, rank)


def _padded_list(pads: Ints, rank: int) -> list[int]:
    """Return a number for each axis, zeros after the last that is given."""
    if len(pads) > rank:
        raise KernelError(f"{len(pads)} pads for a tensor of rank {rank}")
    return [*pads, *[0] * (rank - len(pads))]


def _padded(data: Array, begin: Sequence[int], end: Sequence[int]) -> Array:
    """Return `data` with zeros around it."""
    if min(*begin, *end, 0) < 0:
        raise KernelError(f"pads {begin} and {end}: none may be negative")
    return surrounded(data, begin, end)


@kernel("GridSample", 9)
def grid_sample(
    data: Array,
    grid: Array,
    *,
    align_corners: bool = False,
    mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
) -> Array:
    """Return `data` [N, C, H, W] at the places (x, y) of the grid [N, H', W', 2], where -1 and 1 are the edges."""
    if data.ndim != 4 or grid.ndim != 4 or grid.shape[3] != 2 or grid.shape[0] != data.shape[0]:
        raise KernelError(f"a grid of shape {shape_text(grid.shape)} does not fit data {shape_text(data.shape)}")
    if 0 in data.shape[2:]:
        raise KernelError(f"data of shape {shape_text(data.shape)} has nothing to sample")
    places = widened(grid).reshape(grid.shape[0], -1, 2)
    ys, y_weights = _neighbours(places[..., 1], data.shape[2], align_corners, mode, padding_mode)
    xs, x_weights = _neighbours(places[..., 0], data.shape[3], align_corners, mode, padding_mode)
    shape = (*data.shape[:2], *grid.shape[1:3])
    if mode == "nearest":
        return pixels(data, ys[..., 0], xs[..., 0]).reshape(shape)
    wide = widened(data) if is_floating(data.dtype) else data.astype(np.float32)
    total = np.zeros((*data.shape[:2], places.shape[1]), wide.dtype)
    for row, column in itertools.product(range(ys.shape[-1]), range(xs.shape[-1])):
        weight = y_weights[..., row] * x_weights[..., column]
        total += weight[:, np.newaxis] * pixels(wide, ys[..., row], xs[..., column])
    return _of_type(total.reshape(shape), data.dtype)


def _neighbours(places: Array, size: int, align_corners: bool, mode: str, padding_mode: str) -> tuple[Array, Array]:
    """Along one axis: the elements [..., taps] around each place, and their weights."""
    one = places.dtype.type(1)
    position = (places + one) / 2 * (size - 1) if align_corners else ((places + one) * size - one) / 2
    position = np.clip(position, -(2.0**31), 2.0**31)
    if mode == "nearest":
        lower, offsets, weights = np.rint(position), np.zeros(1, np.int64), np.ones((*position.shape, 1), np.float32)
    else:
        lower = np.floor(position)
        fraction = position - lower
        offsets = np.arange(2) if mode == "bilinear" else np.arange(-1, 3)
        linear = mode == "bilinear"
        weights = np.stack([1 - fraction, fraction], axis=-1) if linear else cubic_weights(fraction, -0.75)
    index = lower.astype(np.int64)[..., np.newaxis] + offsets
    if padding_mode == "border":
        index = np.clip(index, 0, size - 1)
    elif padding_mode == "reflection":
        index = _reflected(index, size, align_corners)
    return index, weights


def _reflected(index: Array, size: int, around_elements: bool) -> Array:
    """Return indices reflected at the first and last element, or at their outer edges."""
    if not around_elements:
        index = index % (2 * size)
        return np.where(index >= size, 2 * size - 1 - index, index)
    if size == 1:
        return np.zeros_like(index)
    index = index % (2 * (size - 1))
    return np.where(index >= size, 2 * (size - 1) - index, index)


# Conversion of camera images, whose colour has half the resolution of their brightness, to RGB and BGR.
#
# Source: the pages NV12toRGB-8, NV12toBGR-8, I420toRGB-8 and I420toBGR-8; in u8 the result is rounded to the nearest.


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
    """Return brightness and colour of an image in one tensor; the colour takes the lower third."""
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
