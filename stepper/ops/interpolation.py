"""Resizing of images and sampling at given places: Interpolate, GridSample.

Source: the operation sets' pages of the category Image processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, normalize_axis, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.ops.resampling import Coordinates, Mode, Nearest, Resizing, cubic_weights, pixels

Ints = tuple[int, ...]


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
    how = {
        "mode": "linear_onnx" if mode == "linear" and not antialias else mode,
        "coordinates": "align_corners" if align_corners else "asymmetric",
        "nearest": "simple",
    }
    return _resized(padded, _resizings(padded, named, sizes, None, how, antialias, -0.75))


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
    how = {"mode": mode, "coordinates": coordinate_transformation_mode, "nearest": nearest_mode}
    return _resized(padded, _resizings(padded, named, sizes, scales, how, antialias, cube_coeff))


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
    data: Array,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Array | None,
    how: Mapping[str, str],
    antialias: bool,
    cube_coeff: float,
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
    antialias = antialias and bool((scales < 1).any())
    return {
        axis: Resizing(data.shape[axis], size, float(scale), **how, antialias=antialias, cube_coeff=cube_coeff)
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


def _of_type(result: Array, dtype: np.dtype[Any]) -> Array:
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
    if not any(begin) and not any(end):
        return data
    if min(*begin, *end) < 0:
        raise KernelError(f"pads {begin} and {end}: none may be negative")
    shape = [before + size + after for before, size, after in zip(begin, data.shape, end, strict=True)]
    ensure_allocatable(shape, data.dtype)
    result = np.zeros(shape, data.dtype)
    result[tuple(slice(at, at + size) for at, size in zip(begin, data.shape, strict=True))] = data
    return result


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
