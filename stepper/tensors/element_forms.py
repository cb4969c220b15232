"""Show an element in other forms: its bits, and its value in smaller floating-point types."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from stepper import element_types
from stepper.element_types import ELEMENT_TYPES, F32, STRING, Array
from stepper.ops.convert import converted
from stepper.records import Record
from stepper.tensors.planes import readable

SMALLER = ("f32", "f16", "bf16", "f8e4m3", "f8e5m2")
"""The types in which a wider element is shown as well."""


class Bits(Record):
    """The bit pattern of an element: as hexadecimal digits, and as sign, exponent and fraction (of a float)."""

    hexadecimal: str
    parts: tuple[str, ...]


class ElementForm(Record):
    """An element in another type: the value that it has there, and how far that is off."""

    type: str
    value: float
    off: float


def bits_of(element: Any) -> Bits | None:
    """Return the bits of an element (an array of one element or a numpy scalar); None for a text."""
    array = np.asarray(element)
    element_type = element_types.of(array)
    if element_type is STRING:
        return None
    code = int(codes(array.reshape(1))[0])
    binary = f"{code:0{element_type.bits}b}" if element_type.name != "boolean" else str(code)
    hexadecimal = f"{code:0{-(-len(binary) // 4)}x}"
    if array.dtype not in element_types.FLOATING:
        return Bits(hexadecimal, (binary,))
    fraction = ml_dtypes.finfo(array.dtype).nmant  # type: ignore[no-untyped-call]
    sign = 0 if element_type.name == "f8e8m0" else 1
    exponent = element_type.bits - fraction - sign
    parts = binary[:sign], binary[sign : sign + exponent], binary[sign + exponent :]
    return Bits(hexadecimal, tuple(part for part in parts if part))


def codes(array: Array) -> Array:
    """Return the bit patterns of elements that are not texts, as unsigned integers."""
    bits = element_types.of(array).bits
    unsigned = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    found: Array = unsigned & np.array(2**bits - 1, unsigned.dtype)
    return found


def smaller_forms(element: Any) -> tuple[ElementForm, ...]:
    """Return a floating-point element in the smaller types; of others nothing."""
    array = np.asarray(element).reshape(1)
    if array.dtype not in element_types.FLOATING:
        return ()
    own = element_types.of(array)
    exact = float(readable(array)[0])
    wide = array if own.name == "f64" else converted(array, F32.dtype)
    found = []
    for name in SMALLER:
        if ELEMENT_TYPES[name].bits < own.bits:
            with np.errstate(all="ignore"):
                value = float(readable(converted(wide, ELEMENT_TYPES[name].dtype))[0])
            found.append(ElementForm(name, value, _distance(value, exact)))
    return tuple(found)


def _distance(value: float, exact: float) -> float:
    if math.isnan(value) or math.isnan(exact):
        return 0.0 if math.isnan(value) and math.isnan(exact) else math.nan
    return 0.0 if value == exact else abs(value - exact)
