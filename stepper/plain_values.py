"""Values in forms that others know: numpy's own element types, and JSON."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array, is_of_numpy

MOST_IN_JSON: Final = 1000
"""Elements of a tensor whose values stand in a report."""


def storable(array: Any) -> Array:
    """The array in a type that .npz knows, no value lost: bf16 and 8-bit floats as f32, 4-bit integers as 8-bit."""
    plain: Array = np.asarray(array)
    if plain.dtype == STRING_DTYPE:
        plain = np.array(plain.tolist(), np.str_).reshape(plain.shape)
    elif plain.dtype.names:
        plain = plain[plain.dtype.names[0]]
    elif not is_of_numpy(plain.dtype):
        plain = plain.astype(np.float32 if element_types.is_floating(plain.dtype) else np.int8)
    return plain


def tensor_json(value: Any) -> dict[str, Any]:
    """Type, shape and the numbers in row-major order (null above a thousand); what JSON lacks stands as text."""
    plain = storable(value)
    values = [json_number(item) for item in plain.reshape(-1).tolist()] if plain.size <= MOST_IN_JSON else None
    return {"type": element_types.name_of(np.asarray(value).dtype), "shape": list(plain.shape), "values": values}


def json_number(item: Any) -> Any:
    """A number as JSON has it: NaN and the infinities as text."""
    if isinstance(item, float) and not math.isfinite(item):
        return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
    return item
