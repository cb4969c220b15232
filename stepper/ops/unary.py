"""Element-wise functions of one tensor: signs, rounding, roots, exponentials, circular and hyperbolic functions.

Source: the operation sets' pages of each operation (category Arithmetic). Integers give the nearest integer.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from stepper.element_types import Array
from stepper.ops.real_functions import through_reals
from stepper.ops.registry import kernel


@kernel("Abs", 1, direct=np.absolute)
def abs(x: Array) -> Array:
    """|x|."""
    return np.absolute(x)


@kernel("Negative", 1, direct=np.negative)
def negative(x: Array) -> Array:
    """-x."""
    return np.negative(x)


@kernel("Sign", 1, direct=np.sign)
def sign(x: Array) -> Array:
    """-1, 0 or 1; NaN of NaN."""
    return np.sign(x)


@kernel("Floor", 1, direct=np.floor)
def floor(x: Array) -> Array:
    """The greatest integer that is not above x."""
    return np.floor(x)


@kernel("Ceiling", 1, direct=np.ceil)
def ceiling(x: Array) -> Array:
    """The least integer that is not below x."""
    return np.ceil(x)


@kernel("Round", 5)
def round(x: Array, *, mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even") -> Array:
    """The nearest integer; `mode` decides between two."""
    if x.dtype.kind in "biu":
        return x
    if mode == "half_to_even":
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.absolute(x - whole) >= 0.5, whole + np.sign(x), whole)


@kernel("Sqrt", 1)
def sqrt(x: Array) -> Array:
    """√x."""
    return through_reals(np.sqrt, x) if x.dtype.kind in "iu" else np.sqrt(x)


@kernel("Exp", 1)
def exp(x: Array) -> Array:
    """e to the power of x."""
    return through_reals(np.exp, x) if x.dtype.kind in "iu" else np.exp(x)


@kernel("Log", 1)
def log(x: Array) -> Array:
    """The natural logarithm."""
    return through_reals(np.log, x) if x.dtype.kind in "iu" else np.log(x)


@kernel("Sin", 1)
def sin(x: Array) -> Array:
    """The sine."""
    return through_reals(np.sin, x) if x.dtype.kind in "iu" else np.sin(x)


@kernel("Cos", 1)
def cos(x: Array) -> Array:
    """The cosine."""
    return through_reals(np.cos, x) if x.dtype.kind in "iu" else np.cos(x)


@kernel("Tan", 1)
def tan(x: Array) -> Array:
    """The tangent."""
    return through_reals(np.tan, x) if x.dtype.kind in "iu" else np.tan(x)


@kernel("Asin", 1)
def asin(x: Array) -> Array:
    """The angle whose sine is x; NaN outside of [-1, 1]."""
    return through_reals(np.arcsin, x) if x.dtype.kind in "iu" else np.arcsin(x)


@kernel("Acos", 1)
def acos(x: Array) -> Array:
    """The angle whose cosine is x; NaN outside of [-1, 1]."""
    return through_reals(np.arccos, x) if x.dtype.kind in "iu" else np.arccos(x)


@kernel("Atan", 1)
def atan(x: Array) -> Array:
    """The angle whose tangent is x."""
    return through_reals(np.arctan, x) if x.dtype.kind in "iu" else np.arctan(x)


@kernel("Sinh", 1)
def sinh(x: Array) -> Array:
    """The hyperbolic sine."""
    return through_reals(np.sinh, x) if x.dtype.kind in "iu" else np.sinh(x)


@kernel("Cosh", 1)
def cosh(x: Array) -> Array:
    """The hyperbolic cosine."""
    return through_reals(np.cosh, x) if x.dtype.kind in "iu" else np.cosh(x)


@kernel("Tanh", 1)
def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    return through_reals(np.tanh, x) if x.dtype.kind in "iu" else np.tanh(x)


@kernel("Asinh", 4)
def asinh(x: Array) -> Array:
    """The number whose hyperbolic sine is x."""
    return through_reals(np.arcsinh, x) if x.dtype.kind in "iu" else np.arcsinh(x)


@kernel("Acosh", 4)
def acosh(x: Array) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x; NaN below 1."""
    return through_reals(np.arccosh, x) if x.dtype.kind in "iu" else np.arccosh(x)


@kernel("Atanh", 4)
def atanh(x: Array) -> Array:
    """The number whose hyperbolic tangent is x; NaN outside of [-1, 1]."""
    return through_reals(np.arctanh, x) if x.dtype.kind in "iu" else np.arctanh(x)
