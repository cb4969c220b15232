"""Element-wise functions of one tensor: signs, rounding, roots, exponentials, circular and hyperbolic functions.

Source: the operation sets' pages of each operation (category Arithmetic). Integers give the nearest integer.
"""

from __future__ import annotations

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


sqrt = kernel("Sqrt", 1, floating=np.sqrt)(for_every_type(np.sqrt, "√x."))
exp = kernel("Exp", 1, floating=np.exp)(for_every_type(np.exp, "e to the power of x."))
log = kernel("Log", 1, floating=np.log)(for_every_type(np.log, "The natural logarithm."))
sin = kernel("Sin", 1, floating=np.sin)(for_every_type(np.sin, "The sine."))
cos = kernel("Cos", 1, floating=np.cos)(for_every_type(np.cos, "The cosine."))
tan = kernel("Tan", 1, floating=np.tan)(for_every_type(np.tan, "The tangent."))
asin = kernel("Asin", 1, floating=np.arcsin)(
    for_every_type(np.arcsin, "The angle whose sine is x; NaN outside of [-1, 1].")
)
acos = kernel("Acos", 1, floating=np.arccos)(
    for_every_type(np.arccos, "The angle whose cosine is x; NaN outside of [-1, 1].")
)
atan = kernel("Atan", 1, floating=np.arctan)(for_every_type(np.arctan, "The angle whose tangent is x."))
sinh = kernel("Sinh", 1, floating=np.sinh)(for_every_type(np.sinh, "The hyperbolic sine."))
cosh = kernel("Cosh", 1, floating=np.cosh)(for_every_type(np.cosh, "The hyperbolic cosine."))
tanh = kernel("Tanh", 1, floating=np.tanh)(for_every_type(np.tanh, "The hyperbolic tangent."))
asinh = kernel("Asinh", 4, floating=np.arcsinh)(for_every_type(np.arcsinh, "The number whose hyperbolic sine is x."))
acosh = kernel("Acosh", 4, floating=np.arccosh)(
    for_every_type(np.arccosh, "The number ≥ 0 whose hyperbolic cosine is x; NaN below 1.")
)
atanh = kernel("Atanh", 4, floating=np.arctanh)(
    for_every_type(np.arctanh, "The number whose hyperbolic tangent is x; NaN outside of [-1, 1].")
)
