"""Half precision and narrower: an operation rounds once, however many steps its formula has.

Source: the element types as declared (the specification); narrow floats are computed in f32, rounded at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepper.element_types import Array, is_floating


def widened(x: Array) -> Array:
    """Return `x` in f32 where it is a float narrower than that; f32, f64 and integers as they are."""
    if x.dtype.itemsize < 4 and is_floating(x.dtype):
        return x.astype(np.float32)
    return x


def narrowed(result: Any, dtype: np.dtype[Any]) -> Array:
    """Return `result` rounded to `dtype`, once; untouched where it has that type already."""
    array: Array = result if result.dtype == dtype else result.astype(dtype)
    return array
