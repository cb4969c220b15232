"""Normalisations: by mean and variance, by the length of a vector, by the neighbours, by given statistics.

Source: the operation sets' pages of each operation (category Normalization). Narrow floats are computed in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stepper.element_types import Array, Ints
from stepper.errors import KernelError
from stepper.ops.operands import normalize_axes, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel


def _ensure_per_channel(x: Array, *parameters: Array) -> None:
    """Refuse parameters that are not one number for each channel (axis 1)."""
    if x.ndim < 2:
        raise KernelError(f"a tensor of shape {shape_text(x.shape)} has no axis of channels")
    for parameter in parameters:
        if parameter.size != x.shape[1]:
            shapes = f"{shape_text(parameter.shape)} does not fit the channels of {shape_text(x.shape)}"
            raise KernelError(f"a parameter of shape {shapes}")


def _by_channel(parameter: Array, rank: int) -> Array:
    """Return a number for each channel, shaped to be broadcast over a tensor [N, C, ...]."""
    return widened(parameter).reshape((-1,) + (1,) * (rank - 2))


def _centred(x: Array, axes: Ints) -> Array:
    """Return `x` less its mean over the axes."""
    centred: Array = x - np.mean(x, axes, keepdims=True)
    return centred


def _variance(centred: Array, axes: Ints) -> Array:
    """Return the variance over the axes of what has been centred."""
    variance: Array = np.mean(np.square(centred), axes, keepdims=True)
    return variance


@kernel("MVN", 2)
def mvn_of_opset2(
    x: Array, *, across_channels: bool = False, normalize_variance: bool = False, eps: float = 0.0
) -> Array:
    """Return (x - mean) / √(variance + eps) over all axes from 1 or 2 on; undivided without normalize_variance."""
    axes = tuple(range(1 if across_channels else 2, x.ndim))
    return _mvn(x, axes, normalize_variance, eps, inside=True)


@kernel("MVN", 6)
def mvn(
    x: Array,
    axes: Array,
    *,
    normalize_variance: bool = False,
    eps: float = 0.0,
    eps_mode: Literal["inside_sqrt", "outside_sqrt"] = "inside_sqrt",
) -> Array:
    """Return (x - mean) / √(variance + eps), or / (√variance + eps); undivided without normalize_variance."""
    return _mvn(x, normalize_axes(axes, x.ndim), normalize_variance, eps, inside=eps_mode == "inside_sqrt")


def _mvn(x: Array, axes: Ints, normalize_variance: bool, eps: float, *, inside: bool) -> Array:
    if not x.size:
        return x
    centred = _centred(widened(x), axes)
    if normalize_variance:
        variance = _variance(centred, axes)
        centred = centred / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)
    return narrowed(centred, x.dtype)


@kernel("GroupNormalization", 12)
def group_normalization(x: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 0.0) -> Array:
    """Return (x - mean) / √(variance + epsilon) within each group of channels, times scale, plus bias."""
    _ensure_per_channel(x, scale, bias)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise KernelError(f"{x.shape[1]} channels cannot be divided into {num_groups} groups")
    if not x.size:
        return x
    groups = widened(x).reshape(x.shape[0], num_groups, -1)
    centred = _centred(groups, (2,))
    normal = (centred / np.sqrt(_variance(centred, (2,)) + epsilon)).reshape(x.shape)
    return narrowed(normal * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim), x.dtype)


@kernel("BatchNormInference", 1)
def batch_norm_inference_of_opset1(
    gamma: Array, beta: Array, x: Array, mean: Array, variance: Array, *, epsilon: float = 0.0
) -> Array:
    """Return gamma (x - mean) / √(variance + epsilon) + beta, each given for every channel."""
    return batch_norm_inference(x, gamma, beta, mean, variance, epsilon=epsilon)


@kernel("BatchNormInference", 5)
def batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, *, epsilon: float = 0.0
) -> Array:
    """Return gamma (x - mean) / √(variance + epsilon) + beta, each given for every channel."""
    _ensure_per_channel(x, gamma, beta, mean, variance)
    scale = widened(gamma) / np.sqrt(widened(variance) + epsilon)
    centred = widened(x) - _by_channel(mean, x.ndim)
    return narrowed(centred * _by_channel(scale, x.ndim) + _by_channel(beta, x.ndim), x.dtype)


@kernel("NormalizeL2", 1)
def normalize_l2(x: Array, axes: Array, *, eps: float = 0.0, eps_mode: Literal["add", "max"] = "add") -> Array:
    """Return x / √(Σ x² + eps) or / √max(Σ x², eps) over the axes; without axes 1 for whatever is not 0."""
    if not axes.size:
        return np.not_equal(x, 0).astype(x.dtype)
    wide = widened(x)
    squares = np.add.reduce(np.square(wide), normalize_axes(axes, x.ndim), keepdims=True)
    return narrowed(wide / np.sqrt(squares + eps if eps_mode == "add" else np.maximum(squares, eps)), x.dtype)


@kernel("GRN", 1)
def grn(x: Array, *, bias: float = 1.0) -> Array:
    """Return x / √(Σ x² + bias), the sum over the channels."""
    _ensure_per_channel(x)
    wide = widened(x)
    return narrowed(wide / np.sqrt(np.add.reduce(np.square(wide), 1, keepdims=True) + bias), x.dtype)


@kernel("LRN", 1)
def lrn(x: Array, axes: Array, *, alpha: float = 0.0, beta: float = 0.0, bias: float = 0.0, size: int = 0) -> Array:
    """Return x / (bias + alpha / size^n Σ x²)^beta, the sum over a window of `size` elements along each of n axes."""
    if size < 1:
        raise KernelError(f"the size of LRN is {size}, a window has at least one element")
    along = normalize_axes(axes, x.ndim)
    if not x.size:
        return x
    wide = widened(x)
    squares = _window_sums(np.square(wide), along, size // 2)
    return narrowed(wide / np.power(bias + alpha / float(size) ** len(along) * squares, beta), x.dtype)


def _window_sums(x: Array, axes: Sequence[int], reach: int) -> Array:
    """Return the sum of the elements at most `reach` away along each of the axes in turn."""
    for axis in axes:
        near = min(reach, x.shape[axis])
        pads = [(near, near) if other == axis else (0, 0) for other in range(x.ndim)]
        x = np.add.reduce(sliding_window_view(np.pad(x, pads), 2 * near + 1, axis), -1)
    return x
