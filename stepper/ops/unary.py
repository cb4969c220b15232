"""Element-wise functions of one tensor: signs, rounding, roots, exponentials, circular and hyperbolic functions.

Source: the operation sets' pages of each operation (category Arithmetic). Integers give the nearest integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.ops.precision import for_every_type, plain
from stepper.ops.registry import kernel

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
