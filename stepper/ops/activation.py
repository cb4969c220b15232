"""Activation functions: element-wise ones, and the softmax over an axis.

Source: the operation sets' pages of each operation (category Activation; Clamp and Identity beside them).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from stepper.element_types import Array, Shape
from stepper.errors import KernelError
from stepper.ops.elementwise import erf
from stepper.ops.operands import normalize_axis, shape_text
from stepper.ops.precision import ONES, in_blocks, narrowed, of_reals
from stepper.ops.registry import kernel


@kernel("Identity", 16)
def identity(x: Array) -> Array:
    """Return x as it is."""
    return x


@kernel("Relu", 1)
def relu(x: Array) -> Array:
    """Return max(x, 0); NaN of NaN."""
    return np.maximum(x, 0)


@kernel("PRelu", 1)
@of_reals
def prelu(x: Array, slope: Array) -> Array:
    """Return x where it is positive, slope · x elsewhere; a slope per channel belongs to axis 1."""
    if slope.ndim == 1 and x.ndim > 1 and slope.size == x.shape[1]:
        slope = slope.reshape(slope.shape + (1,) * (x.ndim - 2))
    elif slope.ndim > x.ndim:
        slope = slope.reshape(_without_leading_ones(slope.shape, x.ndim))
    return np.where(x < 0, x * slope, x)


def _without_leading_ones(shape: Shape, rank: int) -> Shape:
    surplus = len(shape) - rank
    if set(shape[:surplus]) - {1}:
        raise KernelError(f"a slope of shape {shape_text(shape)} does not fit a tensor of rank {rank}")
    return shape[surplus:]


@kernel("Elu", 1)
@of_reals
def elu(x: Array, *, alpha: float = 0.0) -> Array:
    """Return x where it is positive, alpha (e^x - 1) elsewhere."""
    return np.where(x < 0, alpha * np.expm1(x), x)


@kernel("Selu", 1)
@of_reals
def selu(x: Array, alpha: Array, lambda_: Array) -> Array:
    """Return lambda x where x is positive, lambda alpha (e^x - 1) elsewhere."""
    y: Array = lambda_ * np.where(x > 0, x, alpha * np.expm1(x))
    return y


@kernel("Clamp", 1)
def clamp(x: Array, *, min: float = 0.0, max: float = 0.0) -> Array:
    """Return x, or the nearest bound; for integers the bounds move inwards to whole numbers."""
    if not min <= max:
        raise KernelError(f"the bounds of Clamp are {min} and {max}, the lower one must not exceed the upper one")
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        min, max = _whole(min, limits, math.ceil), _whole(max, limits, math.floor)
    of_type = x.dtype.type
    return narrowed(x.clip(of_type(min), of_type(max)), x.dtype)


def _whole(bound: float, limits: np.iinfo[np.integer], rounded: Callable[[float], int]) -> int:
    """Return a bound as a number of the integer type, the type's own where it lies beyond."""
    if bound <= limits.min:
        return limits.min
    return limits.max if bound >= limits.max else rounded(bound)


@kernel("Sigmoid", 1)
@of_reals
def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x)."""
    y: Array = np.exp(-x)
    y += ONES[y.dtype.char]
    return np.reciprocal(y)


@kernel("HSigmoid", 5)
@of_reals
def h_sigmoid(x: Array) -> Array:
    """Return min(max(x + 3, 0), 6) / 6."""
    y: Array = (x + 3).clip(0, 6)
    y /= 6
    return y


@kernel("HardSigmoid", 1)
@of_reals
def hard_sigmoid(x: Array, alpha: Array, beta: Array) -> Array:
    """Return min(max(alpha x + beta, 0), 1)."""
    y: Array = (alpha * x + beta).clip(0, 1)
    return y


@kernel("HSwish", 4)
@of_reals
def h_swish(x: Array) -> Array:
    """Return x · min(max(x + 3, 0), 6) / 6."""
    y: Array = (x + 3).clip(0, 6)
    y *= x
    y /= 6
    return y


_ONE = np.float32(1)


@kernel("Swish", 4)
@of_reals
def swish(x: Array, beta: Array = _ONE) -> Array:  # type: ignore[assignment]
    """Return x · sigmoid(beta x)."""
    y: Array = np.exp(-beta * x)
    y += 1
    return np.divide(x, y)


@kernel("Mish", 4)
@of_reals
@in_blocks
def mish(x: Array) -> Array:
    """Return x · tanh(ln(1 + e^x))."""
    power = np.exp(x.clip(None, 20))  # the tangent is 1 from there on; with n = (1 + e^x)² - 1 it is n / (n + 2)
    excess = power * (power + 2)
    y: Array = x * (excess / (excess + 2))
    return y


@kernel("SoftPlus", 4)
@of_reals
@in_blocks
def soft_plus(x: Array) -> Array:
    """Return ln(1 + e^x)."""
    y: Array = np.log1p(np.exp(-np.absolute(x)))
    y += np.maximum(x, 0)
    return y


@kernel("SoftSign", 9)
@of_reals
def soft_sign(x: Array) -> Array:
    """Return x / (1 + |x|)."""
    y: Array = x / (1 + np.absolute(x))
    return y


@kernel("Gelu", 2, without=("approximation_mode",))
@kernel("Gelu", 7)
@of_reals
@in_blocks
def gelu(x: Array, *, approximation_mode: Literal["erf", "tanh"] = "erf") -> Array:
    """Return x/2 (1 + erf(x / √2)), or x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    if approximation_mode == "erf":
        y = erf(x * math.sqrt(0.5))
    else:
        y = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    y += 1
    return np.multiply(y, 0.5 * x)


@kernel("Softmax", 1)
@of_reals
def softmax_of_opset1(x: Array, *, axis: int = 0) -> Array:
    """Return e^x / Σ e^x along an axis."""
    return _softmax(x, axis)


@kernel("Softmax", 8)
@of_reals
def softmax(x: Array, *, axis: int = 1) -> Array:
    """Return e^x / Σ e^x along an axis."""
    return _softmax(x, axis)


@kernel("LogSoftmax", 5)
@of_reals
def log_softmax(x: Array, *, axis: int = 1) -> Array:
    """Return x - ln Σ e^x along an axis."""
    shifted = _below_maximum(x, axis)
    return np.subtract(shifted, np.log(np.add.reduce(np.exp(shifted), axis, keepdims=True)))


def _softmax(x: Array, axis: int) -> Array:
    powers = np.exp(_below_maximum(x, axis))
    return np.divide(powers, np.add.reduce(powers, axis, keepdims=True))


def _below_maximum(x: Array, axis: int) -> Array:
    """Return x less its maximum along the axis, so that no power of it overflows."""
    axis = normalize_axis(axis, x.ndim)
    return np.subtract(x, np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf))
