"""Elementwise operations: arithmetic with broadcasting, comparisons, logic, bits, and functions of one number.

Activation functions: element-wise ones, and the softmax over an axis.

Source: the operation sets' pages of each operation (category Activation; Clamp and Identity beside them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import F32, Array, Shape, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import normalize_axis, shape_text
from stepper.ops.precision import ONES, for_every_type, in_blocks, narrowed, of_reals, plain, widened
from stepper.ops.registry import kernel

AutoBroadcast = Literal["numpy", "pdpd", "none"]


def aligned(a: Array, b: Array, mode: str) -> tuple[Array, Array]:
    """Return `a` and `b` so numpy's own broadcasting does what `mode` asks; KernelError if it forbids their shapes."""
    if mode == "none" and a.shape != b.shape:
        raise KernelError(f"shapes {shape_text(a.shape)} and {shape_text(b.shape)} differ and auto_broadcast is none")
    if mode == "pdpd" and b.ndim < a.ndim:
        return a, b.reshape(b.shape + (1,) * (a.ndim - b.ndim))
    return a, b


def broadcasting(function: Callable[[Array, Array], Any], meaning: str) -> Callable[..., Array]:
    """Return a function of two tensors with the attribute `auto_broadcast`; `meaning` describes it in a line."""

    def applied(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
        result: Array = function(*aligned(a, b, auto_broadcast))
        return result

    applied.__name__, applied.__doc__ = function.__name__, meaning
    return applied


def binary(type: str, version: int, function: Callable[[Array, Array], Any], meaning: str) -> Callable[..., Array]:
    """Enter a function of two tensors as a kernel with the attribute `auto_broadcast`."""
    return kernel(type, version, direct=function)(broadcasting(function, meaning))


Function = Callable[[Array, Array], Array]


add = binary("Add", 1, np.add, "Return a + b.")
subtract = binary("Subtract", 1, np.subtract, "Return a - b.")
multiply = binary("Multiply", 1, np.multiply, "Return a * b.")


def _by_type(of_reals: Function, of_integers: Function) -> Function:
    """Return a function of two tensors that is one of reals, another of integers; f32 is asked for first."""
    f32 = F32.dtype

    def applied(a: Array, b: Array) -> Array:
        return of_reals(a, b) if a.dtype is f32 or a.dtype.kind not in "iu" else of_integers(a, b)

    return applied


_quotient = _by_type(np.divide, np.floor_divide)


@kernel("Divide", 1, direct=_quotient, floating=np.divide)
def divide(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy", m_pythondiv: bool = True) -> Array:
    """Return a / b; of integers the quotient rounded down (m_pythondiv) or towards zero."""
    a, b = aligned(a, b, auto_broadcast)
    if m_pythondiv or a.dtype.kind != "i":
        return _quotient(a, b)
    inexact_negative = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    quotient: Array = np.add(np.floor_divide(a, b), inexact_negative, dtype=a.dtype)
    return quotient


maximum = binary("Maximum", 1, np.maximum, "Return the greater of a and b; NaN where either is.")
minimum = binary("Minimum", 1, np.minimum, "Return the lesser of a and b; NaN where either is.")


def _power_of_integers(a: Array, b: Array) -> Array:
    """Return the power without its fraction; wrapped, but beyond i32 what a conversion from a real number gives."""
    if b.dtype.kind == "u":
        return np.power(a, b)
    whole = np.power(a, np.maximum(b, 0))  # numpy refuses negative exponents of integers
    reciprocal = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0)).astype(a.dtype)
    power = np.where(b < 0, reciprocal, whole)
    if a.dtype != np.int32:
        return power
    beyond = np.absolute(np.power(a.astype(np.float64), b)) >= 2.0**31
    return np.where(beyond, np.iinfo(np.int32).min, power)


_power = _by_type(np.power, _power_of_integers)


power = binary(
    "Power",
    1,
    _power,
    "Return a to the power of b; of integers without the fraction, so 0 for most negative exponents.",
)
mod = binary("Mod", 1, np.fmod, "Return the remainder of a / b with the sign of a.")


def _floor_remainder_of_reals(a: Array, b: Array) -> Array:
    remainder: Array = np.remainder(a, b)
    remainder += b - b  # NaN where b is infinite
    return remainder


_floor_remainder = _by_type(_floor_remainder_of_reals, np.remainder)


floor_mod = kernel("FloorMod", 1, direct=_floor_remainder)(
    broadcasting(
        _floor_remainder,
        "Return the remainder of a / b with the sign of b; NaN by an infinite b, as in the formula a - floor(a / b) b.",
    )
)


@kernel("SquaredDifference", 1)
def squared_difference(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return (a - b) squared."""
    a, b = aligned(a, b, auto_broadcast)
    return narrowed(np.square(widened(a) - widened(b)), a.dtype)


@kernel("Select", 1, direct=np.where)
def select(condition: Array, then: Array, otherwise: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
    """Return `then` where the condition holds, else `otherwise`."""
    then, condition = aligned(then, condition, auto_broadcast)
    return np.where(condition, *aligned(then, otherwise, auto_broadcast))


# Element-wise comparison and logic: what they return is boolean.
#
# Source: the operation sets' pages of each operation (categories Comparison and Logical). NaN compares as in IEEE 754.

equal = binary("Equal", 1, np.equal, "Return True if a = b.")
not_equal = binary("NotEqual", 1, np.not_equal, "Return True if a ≠ b.")
less = binary("Less", 1, np.less, "Return True if a < b.")
less_equal = binary("LessEqual", 1, np.less_equal, "Return True if a ≤ b.")
greater = binary("Greater", 1, np.greater, "Return True if a > b.")
greater_equal = binary("GreaterEqual", 1, np.greater_equal, "Return True if a ≥ b.")
logical_and = binary("LogicalAnd", 1, np.logical_and, "Return True if both hold.")
logical_or = binary("LogicalOr", 1, np.logical_or, "Return True if at least one holds.")
logical_xor = kernel("LogicalXor", 1, 2, direct=np.logical_xor)(
    binary("Xor", 1, np.logical_xor, "Return True if exactly one holds.")
)


logical_not = kernel("LogicalNot", 1, direct=np.logical_not)(plain(np.logical_not, "Return True if x does not hold."))
is_nan = kernel("IsNaN", 10, direct=np.isnan)(plain(np.isnan, "Return True if x is not a number."))
is_finite = kernel("IsFinite", 10, direct=np.isfinite)(
    plain(np.isfinite, "Return True if x is neither infinite nor NaN.")
)


@kernel("IsInf", 10, direct=np.isinf)
def is_inf(x: Array, *, detect_negative: bool = True, detect_positive: bool = True) -> Array:
    """Return True if x is one of the infinities asked for."""
    infinite = np.isinf(x)
    if not detect_negative:
        infinite &= x > 0
    if not detect_positive:
        infinite &= x < 0
    return infinite


# Element-wise logic and shifts of the bits of integers (and of booleans).
#
# Source: the operation sets' pages of the Bitwise operations. A shift by the type's width or more leaves only the sign.

bitwise_and = binary("BitwiseAnd", 13, np.bitwise_and, "Return the bits set in both.")
bitwise_or = binary("BitwiseOr", 13, np.bitwise_or, "Return the bits set in at least one.")
bitwise_xor = binary("BitwiseXor", 13, np.bitwise_xor, "Return the bits set in exactly one.")


bitwise_not = kernel("BitwiseNot", 13, direct=np.bitwise_not)(plain(np.bitwise_not, "Return every bit inverted."))
bitwise_left_shift = binary("BitwiseLeftShift", 15, np.left_shift, "Return the bits of a moved up by b places.")
bitwise_right_shift = binary(
    "BitwiseRightShift", 15, np.right_shift, "Return the bits of a moved down by b places, the sign drawn along."
)


# Element-wise functions of one tensor: signs, rounding, roots, exponentials, circular and hyperbolic functions.
#
# Source: the operation sets' pages of each operation (category Arithmetic). Integers give the nearest integer.

abs = kernel("Abs", 1, direct=np.absolute)(plain(np.absolute, "|x|."))
negative = kernel("Negative", 1, direct=np.negative)(plain(np.negative, "-x."))
sign = kernel("Sign", 1, direct=np.sign)(plain(np.sign, "-1, 0 or 1; NaN of NaN."))
floor = kernel("Floor", 1, direct=np.floor)(plain(np.floor, "Return the greatest integer that is not above x."))
ceiling = kernel("Ceiling", 1, direct=np.ceil)(plain(np.ceil, "Return the least integer that is not below x."))
_rint: Final = np.rint


def _nearest(x: Array) -> Array:
    y: Array = _rint(x)
    return y if y.dtype is x.dtype or is_floating(x.dtype) else x


@kernel("Round", 5, direct=_nearest, floating=np.rint)
def round(x: Array, *, mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even") -> Array:
    """Return the nearest integer; `mode` decides between two."""
    if mode == "half_to_even":
        return _nearest(x)
    if x.dtype.kind in "biu":
        return x
    whole = np.trunc(x)
    return np.where(np.absolute(x - whole) >= 0.5, whole + np.sign(x), whole)


def _real(type: str, version: int, function: np.ufunc, meaning: str) -> Callable[[Array], Array]:
    """Enter a function of real numbers as a kernel."""
    return kernel(type, version, floating=function)(for_every_type(function, meaning))


sqrt = _real("Sqrt", 1, np.sqrt, "√x.")
exp = _real("Exp", 1, np.exp, "e to the power of x.")
log = _real("Log", 1, np.log, "The natural logarithm.")
sin = _real("Sin", 1, np.sin, "The sine.")
cos = _real("Cos", 1, np.cos, "The cosine.")
tan = _real("Tan", 1, np.tan, "The tangent.")
asin = _real("Asin", 1, np.arcsin, "The angle whose sine is x; NaN outside of [-1, 1].")
acos = _real("Acos", 1, np.arccos, "The angle whose cosine is x; NaN outside of [-1, 1].")
atan = _real("Atan", 1, np.arctan, "The angle whose tangent is x.")
sinh = _real("Sinh", 1, np.sinh, "The hyperbolic sine.")
cosh = _real("Cosh", 1, np.cosh, "The hyperbolic cosine.")
tanh = _real("Tanh", 1, np.tanh, "The hyperbolic tangent.")
asinh = _real("Asinh", 4, np.arcsinh, "The number whose hyperbolic sine is x.")
acosh = _real("Acosh", 4, np.arccosh, "The number ≥ 0 whose hyperbolic cosine is x; NaN below 1.")
atanh = _real("Atanh", 4, np.arctanh, "The number whose hyperbolic tangent is x; NaN outside of [-1, 1].")


# The Gauss error function and its inverse, which numpy lacks.
#
# Source: the operation sets' pages Erf and Erfinv. In f32 a rational approximation fitted to a relative error of 3e-8;
# in f64 the two classical expansions of Abramowitz and Stegun: the series of positive terms (7.1.6) near zero, the
# continued fraction (7.1.14) farther out.

# erf(x) / x as a quotient of two polynomials of x², lowest power first, on [0, 4]; beyond it erf is 1 in f32
_NUMERATOR = (1.12837914, 0.193532204, 0.0530997509, 0.00388270991, 0.000284538407, 1.98671234e-06)
_DENOMINATOR = (1.0, 0.50484601, 0.115344419, 0.0152059935, 0.00118539245, 3.74179981e-05)

_NEAR = 2.0  # where the series hands over to the continued fraction
_SERIES = tuple(float(c) for c in 1 / np.cumprod(np.arange(1.0, 95.0, 2.0)))  # 1 / (2n + 1)!!
_FRACTION_DEPTH = 64
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


@kernel("Erf", 1)
@of_reals
@in_blocks
def erf(x: Array) -> Array:
    """Return the Gauss error function, odd and between -1 and 1."""
    if x.dtype == np.float64:
        return np.where(np.absolute(x) < _NEAR, _series(x), np.copysign(1 - _erfc_far(np.absolute(x)), x))
    inside = x.clip(-4, 4)
    squared = inside * inside
    inside = inside * _polynomial(squared, _NUMERATOR)
    inside /= _polynomial(squared, _DENOMINATOR)
    odd: Array = inside.clip(-1, 1)
    return odd


@kernel("Erfinv", 17)
@of_reals
@in_blocks
def erfinv(x: Array) -> Array:
    """Return the y with erf(y) = x, ±∞ of ±1, NaN outside: a closed approximation, then Halley's method in f64."""
    wanted = np.absolute(x, dtype=np.float64)
    y = _erfinv_guess(wanted)
    for _ in range(3):
        slope = _TWO_OVER_ROOT_PI * np.exp(-y * y)
        error = np.where(y < _NEAR, _series(y) - wanted, (1 - wanted) - _erfc_far(y)) / slope
        y = y - error / (1 + y * error)
    y = np.where(wanted == 1, np.inf, np.where(wanted > 1, np.nan, y))
    return np.copysign(y, x).astype(x.dtype)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Any:
    """Σ coefficients[k] x^k by Horner's rule, in the type of x."""
    total = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= x
    total += coefficients[0]
    return total


def _series(x: Array) -> Array:
    """Return erf for |x| < 2: 2/√π x exp(-x²) Σ (2x²)^n / (2n + 1)!!."""
    squared = np.minimum(x * x, _NEAR * _NEAR)
    total: Array = _TWO_OVER_ROOT_PI * x * np.exp(-squared) * _polynomial(2 * squared, _SERIES)
    return total


def _erfc_far(x: Array) -> Array:
    """Return 1 - erf for x ≥ 2: exp(-x²)/√π · 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …))))."""
    x = np.maximum(x, _NEAR)
    tail: Array = x
    for k in range(_FRACTION_DEPTH, 0, -1):
        tail = x + k / 2 / tail
    outside: Array = np.exp(-x * x) / math.sqrt(math.pi) / tail
    return outside


def _erfinv_guess(x: Array) -> Array:
    """Return erfinv of 0 ≤ x < 1 to some thousandths, from a closed form for erf that can be inverted (Winitzki)."""
    a = 0.147
    logarithm = np.log1p(-np.minimum(x * x, 1 - 1e-17))
    half = 2 / (math.pi * a) + logarithm / 2
    guess: Array = np.sqrt(np.sqrt(half * half - logarithm / a) - half)
    return guess


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
