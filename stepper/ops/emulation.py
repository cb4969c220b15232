"""A device that computes in f16 or bf16, emulated: what an operation takes and gives is rounded, it computes in f32.

That is what such devices do: products are summed in f32, and each result is stored in 16 bits. What is beyond the
largest number of the type becomes Inf (a constant: that number), what is too small becomes 0; a float that is narrower
already stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from stepper import element_types
from stepper.element_types import DType, is_floating

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
    """Return the value with each of its floats rounded to a narrower type, in its own; anything else as it is."""
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
