"""The element types of the IR, and the numpy dtype in which a tensor of each is held.

A value's dtype *is* its element type: types that numpy lacks come from ml_dtypes, and the three that neither has (u3,
u6, nf4) are one-field structured dtypes over uint8, which hold the codes. Such an array can be moved about (reshape,
gather, concatenate) but not computed with, which is just what the operations may do before a Convert unpacks it.
Names and aliases: the reader's own lists (element_type of <data>, precision of <port>).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from stepper.records import Record

DType = np.dtype[Any]
Array = np.ndarray[Any, DType]
"""A tensor. Kernels may also meet and return numpy scalars (`np.generic`), which are its rank-0 form."""
Shape = tuple[int, ...]
"""The sizes of a tensor along its axes."""
Indices = tuple[int, ...]
"""The place of an element, by axis; or iterations of loops, from the outermost inwards."""
Ints = tuple[int, ...]
"""Other whole numbers: of an attribute, or of slots."""


class ElementType(Record):
    """Describe an element type: its IR name, its numpy dtype, and its width in the .bin file."""

    name: str
    dtype: DType
    bits: int

    def __str__(self) -> str:
        return self.name


STRING_DTYPE = np.dtypes.StringDType()
LARGEST_RANK = 64
"""Largest rank that numpy holds."""

ELEMENT_TYPES: Final[dict[str, ElementType]] = {
    name: ElementType(name, np.dtype(dtype), bits)
    for name, dtype, bits in (
        ("boolean", np.bool_, 8),
        ("bf16", ml_dtypes.bfloat16, 16),
        ("f16", np.float16, 16),
        ("f32", np.float32, 32),
        ("f64", np.float64, 64),
        ("i4", ml_dtypes.int4, 4),
        ("i8", np.int8, 8),
        ("i16", np.int16, 16),
        ("i32", np.int32, 32),
        ("i64", np.int64, 64),
        ("u1", ml_dtypes.uint1, 1),
        ("u2", ml_dtypes.uint2, 2),
        ("u3", [("u3", np.uint8)], 3),
        ("u4", ml_dtypes.uint4, 4),
        ("u6", [("u6", np.uint8)], 6),
        ("u8", np.uint8, 8),
        ("u16", np.uint16, 16),
        ("u32", np.uint32, 32),
        ("u64", np.uint64, 64),
        ("nf4", [("nf4", np.uint8)], 4),
        ("f8e4m3", ml_dtypes.float8_e4m3fn, 8),
        ("f8e5m2", ml_dtypes.float8_e5m2, 8),
        ("f8e8m0", ml_dtypes.float8_e8m0fnu, 8),
        ("f4e2m1", ml_dtypes.float4_e2m1fn, 4),
        ("string", STRING_DTYPE, 0),
    )
}

BOOLEAN = ELEMENT_TYPES["boolean"]
F32 = ELEMENT_TYPES["f32"]
I32 = ELEMENT_TYPES["i32"]
I64 = ELEMENT_TYPES["i64"]
STRING = ELEMENT_TYPES["string"]

UNKNOWN_NAMES = frozenset({"dynamic", "undefined", "unspecified", ""})
"""Words of a file where the type is not known before the run."""

_PRECISIONS = {f"fp{bits}": f"f{bits}" for bits in (16, 32, 64)} | {"bool": "boolean", "bin": "u1"}
_BY_DTYPE = {element_type.dtype: element_type for element_type in ELEMENT_TYPES.values()}

FLOATING = frozenset(one.dtype for one in ELEMENT_TYPES.values() if one.name.startswith(("f", "bf")))
"""dtypes that hold floating-point numbers (numpy's `kind` does not tell for those of ml_dtypes)."""


by_name: Final = ELEMENT_TYPES.get
"""Return the type that `element_type="..."` of <data> names; None for one that is not known."""


@lru_cache(maxsize=256)
def by_precision(name: str) -> ElementType | None:
    """Return the type that `precision="..."` of a <port> names: FP32, I64, BOOL, BIN, and all names of <data>."""
    lower = name.lower()
    return ELEMENT_TYPES.get(_PRECISIONS.get(lower, lower))


_LAST_NUMBER = np.dtype(np.longdouble).num
_HALF = np.dtype(np.float16).num


def of(value: Any) -> ElementType:
    """Return the element type of an array or numpy scalar; KeyError for a dtype that no element type has."""
    return of_dtype(value.dtype)


def of_dtype(dtype: DType) -> ElementType:
    """Return the element type whose tensors have this dtype; KeyError for a dtype that no element type has."""
    if dtype.kind in "TUS":
        return STRING
    return _BY_DTYPE[dtype.newbyteorder("=") if dtype.byteorder == ">" else dtype]


def name_of(dtype: DType) -> str:
    """Return the element type's name for messages; numpy's own name for a dtype that no element type has."""
    try:
        return of_dtype(dtype).name
    except KeyError:
        return str(dtype)


def is_of_numpy(dtype: DType) -> bool:
    """True for the types of numbers and booleans that numpy itself computes with, and not for those of ml_dtypes.

    Unlike `dtype.isbuiltin` it also holds for a dtype that was pickled, which is equal to numpy's but another object.
    """
    return dtype.num <= _LAST_NUMBER or dtype.num == _HALF


def is_floating(dtype: DType) -> bool:
    """Return True if values of this dtype are floating-point numbers, ml_dtypes' included."""
    return dtype in FLOATING


def is_number(dtype: DType) -> bool:
    """Return True if values of this dtype are numbers or booleans: those of numpy, and all floating-point numbers."""
    return dtype.kind in "biuf" or dtype in FLOATING


def have_same_bits(one: Any, other: Any) -> bool:
    """Return True if two tensors have the same type, shape and numbers, to the last bit, or the same texts."""
    if one is other:
        return True
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind in "TO":
        return np.array_equal(one, other)
    one, other = np.ascontiguousarray(one).reshape(-1), np.ascontiguousarray(other).reshape(-1)
    words = np.uint8 if one.nbytes % 8 else np.uint64
    return one[:1].tobytes() == other[:1].tobytes() and np.array_equal(one.view(words), other.view(words))


class FloatLimits(Record):
    """The largest number of a type of floats, the least normal and the least one above 0."""

    largest: float
    least_normal: float
    least: float


@lru_cache(maxsize=64)
def limits(dtype: DType) -> FloatLimits:
    """Return the limits of a type of floats."""
    found = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return FloatLimits(float(found.max), float(found.smallest_normal), float(found.smallest_subnormal))


def read_only(value: Any) -> Array:
    """Return a view that cannot be written to; of a numpy scalar an array of rank 0."""
    view = np.asarray(value).view()
    view.flags.writeable = False
    return view
