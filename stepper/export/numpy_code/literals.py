"""Tensors and attributes as Python literals: exact, in their element type, and short."""

from __future__ import annotations

import ast
from typing import Any, Final

import numpy as np

from stepper.element_types import ElementType, is_floating, is_of_numpy, of_dtype

LARGEST: Final = 24
"""Elements of a tensor that stands in the text; larger ones go into the file of constants."""

_BOOLEAN: Final = np.dtype(np.bool_)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a dtype as code: `np.float32`, `ml_dtypes.bfloat16`."""
    if dtype == _BOOLEAN:
        return "np.bool_"
    if dtype.kind == "T":
        return "np.dtypes.StringDType()"
    if dtype.names:
        return f'np.dtype([("{of_dtype(dtype).name}", np.uint8)])'
    return f"np.{dtype.name}" if is_of_numpy(dtype) else f"ml_dtypes.{dtype.name}"


def is_writable(value: Any) -> bool:
    """True if the tensor is small enough, and of a type that has literals, to stand in the text."""
    return bool(value.size <= LARGEST and value.ndim <= 4 and value.dtype.names is None) or is_uniform(value)


def is_uniform(value: Any) -> bool:
    """True if all elements are the same 0 or 1, and so many that saying so is shorter."""
    if value.dtype.kind not in "biuf" or value.size < (1 if value.ndim > 1 else 2) or value.ndim == 0:
        return False
    first = np.ravel(value)[0]
    return bool(first in (0, 1) and not np.signbit(np.float64(first)) and (value == first).all())


def plain(value: Any) -> str:
    """Return one element as Python writes it, without its type: `2.0`, `True`, `-np.inf`."""
    element = value.reshape(())[()]
    if is_floating(value.dtype):
        return _float_text(element, float(element))
    return str(bool(element)) if value.dtype == _BOOLEAN else str(int(element))


def _float_text(element: Any, number: float) -> str:
    if np.isnan(number):
        return "np.nan"
    if np.isinf(number):
        return "np.inf" if number > 0 else "-np.inf"
    shortest = str(element)  # the shortest that reads back as the same number of its type
    return shortest if ast_is_number(shortest) and element.dtype.type(float(shortest)) == element else repr(number)


def ast_is_number(text: str) -> bool:
    """True if the text is a number as Python writes it."""
    try:
        return isinstance(ast.literal_eval(text), float)
    except (ValueError, SyntaxError):
        return False


def typed(value: Any) -> str:
    """Return a tensor as an expression of its type and shape: `np.float32(2.0)`, `np.zeros((2, 3), np.int64)`."""
    kind = dtype_text(value.dtype)
    if value.ndim == 0 and value.dtype.kind == "b":
        return "np.True_" if value else "np.False_"
    if value.ndim == 0 and value.dtype.kind != "T":
        return f"{kind}({plain(value)})"
    if is_uniform(value):
        filled = "ones" if np.ravel(value)[0] else "zeros"
        return f"np.{filled}({shape_text(value.shape)}, {kind})"
    if value.size == 0:
        return f"np.zeros({shape_text(value.shape)}, {kind})"
    return f"np.array({_nested(value)}, {kind})"


def _nested(value: Any) -> str:
    if value.ndim == 0:
        return plain(value) if value.dtype.kind != "T" else ascii(value.item())
    return f"[{', '.join(_nested(part) for part in _parts(value))}]"


def _parts(value: Any) -> list[Any]:
    return [np.asarray(part, value.dtype) for part in value]


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as an argument: a number where there is one dimension."""
    return str(shape[0]) if len(shape) == 1 else str(tuple(shape))


def text(value: str) -> str:
    """Return a text as a literal of ASCII, whatever it holds."""
    is_simple = value.isascii() and value.isprintable() and not set(value) & {'"', "\\"}
    return f'"{value}"' if is_simple else ascii(value)


def attribute(value: Any) -> str:
    """Return the value of an attribute as code; a text stays a text."""
    if isinstance(value, ElementType):
        return f'ELEMENT_TYPES["{value.name}"]'
    if isinstance(value, tuple):
        parts = [attribute(part) for part in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return text(value) if isinstance(value, str) else ascii(value)


def is_computed_by_numpy(dtype: np.dtype[Any] | None) -> bool:
    """True if numpy itself computes with the type as with any other: f32, f64 and its integers."""
    return dtype is not None and is_of_numpy(dtype) and dtype.kind in "iuf" and dtype != np.float16


def is_real(dtype: np.dtype[Any] | None) -> bool:
    """True if it is f32 or f64, in which a formula may be written as it stands."""
    return dtype is not None and is_floating(dtype) and dtype in (np.dtype(np.float32), np.dtype(np.float64))
