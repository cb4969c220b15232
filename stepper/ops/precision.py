"""Compute functions of real numbers for every element type: written once for f32 and f64.

Narrower floats are computed in f32 and rounded once, however many steps the formula has. Integers are computed in f64,
and the result is rounded to the nearest integer. Source: the element types as declared (the specification).

This module also emulates a device that computes in f16 or bf16: operations round their inputs and outputs, and compute
in f32. Such devices sum products in f32 and store each result in 16 bits. A number beyond the largest number of the
type becomes Inf (in a constant: the largest number); a number that is too small becomes 0. A float that is narrower
already stays unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec

import ml_dtypes
import numpy as np

from stepper import element_types
from stepper.element_types import Array, DType, is_floating

ONES = {dtype.char: np.ones((), dtype) for dtype in map(np.dtype, (np.float32, np.float64))}
"""Ones as arrays, which numpy takes in half the time of a Python number."""


def widened(x: Array) -> Array:
    """Return `x` in f32 where it is a float narrower than that; f32, f64 and integers as they are."""
    if x.dtype.itemsize < 4 and is_floating(x.dtype):
        return x.astype(np.float32)
    return x


def narrowed(result: Any, dtype: DType) -> Array:
    """Return `result` rounded to `dtype`, once; untouched where it has that type already."""
    array: Array = result if result.dtype == dtype else result.astype(dtype)
    return array


P = ParamSpec("P")

_AS_THEY_ARE = "fd"  # the dtype.char of f32 and f64
_BLOCK = 32768


def of_reals(function: Callable[P, Any]) -> Callable[P, Array]:
    """Return `function` of f32 or f64 tensors (of one type) made to serve every type of its first argument."""

    @functools.wraps(function)
    def wrapped(*inputs: Any, **attributes: Any) -> Array:
        dtype = inputs[0].dtype
        if dtype.char in _AS_THEY_ARE:
            result: Array = function(*inputs, **attributes)
            return result
        if is_floating(dtype):
            return narrowed(function(*(x.astype(np.float32) for x in inputs), **attributes), dtype)
        return through_reals(function, *inputs, **attributes)

    return wrapped


def for_every_type(function: np.ufunc, meaning: str) -> Callable[[Array], Array]:
    """Return `function` of one real number made to serve every type; `meaning` describes it in a line.

    numpy keeps the type of floats but has its own mind about integers, so one look at the result tells them apart.
    """

    def applied(x: Array) -> Array:
        y: Array = function(x)
        return y if y.dtype is x.dtype or is_floating(x.dtype) else through_reals(function, x)

    applied.__name__, applied.__doc__ = function.__name__, meaning
    return applied


def plain(function: np.ufunc, meaning: str) -> Callable[[Array], Array]:
    """Return `function` of one tensor, which numpy has for every type; `meaning` describes it in a line."""

    def applied(x: Array) -> Array:
        y: Array = function(x)
        return y

    applied.__name__, applied.__doc__ = function.__name__, meaning
    return applied


def in_blocks(function: Callable[P, Any]) -> Callable[P, Array]:
    """Return an element-wise function of one tensor and many steps made to go through a large tensor block by block.

    The steps' intermediate results then stay in the processor's cache, which is several times as fast.
    """

    @functools.wraps(function)
    def wrapped(*inputs: Any, **attributes: Any) -> Array:
        (x,) = inputs
        if x.size <= _BLOCK:
            whole: Array = function(x, **attributes)
            return whole
        flat = x.reshape(-1)
        results = np.empty_like(flat)
        for start in range(0, flat.size, _BLOCK):
            results[start : start + _BLOCK] = function(flat[start : start + _BLOCK], **attributes)
        return np.reshape(results, x.shape)

    return wrapped


def through_reals(function: Callable[..., Array], *inputs: Array, **attributes: Any) -> Array:
    """Return the integer nearest to `function` of integers, which is computed in f64."""
    real = function(*(x.astype(np.float64) for x in inputs), **attributes)
    return np.rint(real).astype(inputs[0].dtype)


_FINFO: Final[Callable[[DType], Any]] = ml_dtypes.finfo

EMULATED: Final[Mapping[str, DType]] = {
    name: element_type.dtype for name in ("f16", "bf16") if (element_type := element_types.by_name(name)) is not None
}
"""The element types that are emulated, by name."""


def emulation(name: str) -> str:
    """Return the words that say that an operation is computed so."""
    return f"emulated {name}"


def emulated_dtype(computed_by: str) -> DType | None:
    """Return the type that these words say is emulated; None for any others."""
    return next((dtype for name, dtype in EMULATED.items() if computed_by == emulation(name)), None)


def held(value: Any, dtype: DType) -> Any:
    """Return a constant with finite floats beyond the largest number of a type as that number.

    OpenVINO clamps constants so when it converts a model (ConvertPrecision).
    """
    if value is None or not is_floating(value.dtype) or value.dtype.itemsize <= dtype.itemsize:
        return value
    largest = float(_FINFO(dtype).max)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(value), np.clip(value, -largest, largest), value).astype(value.dtype)


def rounded(value: Any, dtype: DType) -> Any:
    """Return the value with floats rounded to a narrower type but in their own; else unchanged."""
    if value is None or not is_floating(value.dtype) or value.dtype.itemsize <= dtype.itemsize:
        return value
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return value.astype(dtype).astype(value.dtype)


def emulated(
    function: Callable[..., Any], dtype: DType, *, several_outputs: bool, constants: Sequence[Any] = ()
) -> Callable[..., tuple[Any, ...]]:
    """Return an operation's function with all that it takes and gives rounded; it gives a tuple.

    `constants` has the value of each input that is a constant, None for the others.
    """
    fixed = frozenset(index for index, value in enumerate(constants) if value is not None)

    def compute(*inputs: Any) -> tuple[Any, ...]:
        given = (held(value, dtype) if index in fixed else value for index, value in enumerate(inputs))
        found = function(*(rounded(value, dtype) for value in given))
        return tuple(rounded(value, dtype) for value in (found if several_outputs else (found,)))

    return compute
