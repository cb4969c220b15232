"""A device that computes in f16 or bf16, emulated: what an operation takes and gives is rounded, it computes in f32.

That is what such devices do: products are summed in f32, and each result is stored in 16 bits. What is beyond the
largest number of the type becomes Inf, what is too small becomes 0; a float that is narrower already stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.element_types import is_floating

EMULATED: Final[Mapping[str, np.dtype[Any]]] = {
    name: element_type.dtype for name in ("f16", "bf16") if (element_type := element_types.by_name(name)) is not None
}
"""The element types that are emulated, by name."""


def emulation(name: str) -> str:
    """Return the words that say that an operation is computed so."""
    return f"emulated {name}"


def emulated_dtype(computed_by: str) -> np.dtype[Any] | None:
    """Return the type that these words say is emulated; None for any others."""
    return next((dtype for name, dtype in EMULATED.items() if computed_by == emulation(name)), None)


def rounded(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the value with each of its floats rounded to a narrower type, in its own; anything else as it is."""
    if value is None or not is_floating(value.dtype) or value.dtype.itemsize <= dtype.itemsize:
        return value
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return value.astype(dtype).astype(value.dtype)


def emulated(
    function: Callable[..., Any], dtype: np.dtype[Any], *, several_outputs: bool
) -> Callable[..., tuple[Any, ...]]:
    """Return an operation's function with all that it takes and gives rounded; it gives a tuple."""

    def compute(*inputs: Any) -> tuple[Any, ...]:
        found = function(*(rounded(value, dtype) for value in inputs))
        return tuple(rounded(value, dtype) for value in (found if several_outputs else (found,)))

    return compute
