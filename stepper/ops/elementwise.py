"""Element-wise arithmetic of two tensors, and the choice between two by a third.

Source: the operation sets' pages of each operation (category Arithmetic, and Select). Integers wrap. By the
broadcast rules `pdpd` in an IR always has axis 0, that is it aligns to the left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from stepper.element_types import F32, Array
from stepper.errors import KernelError
from stepper.ops.operands import shape_text
from stepper.ops.precision import narrowed, widened
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
