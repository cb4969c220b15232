"""Broadcasting of the inputs of an element-wise operation: the attribute `auto_broadcast`.

Source: the broadcast rules of the operation sets; `pdpd` in an IR always has axis 0, that is it aligns to the left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.axes import shape_text

AutoBroadcast = Literal["numpy", "pdpd", "none"]


def aligned(a: Array, b: Array, mode: str) -> tuple[Array, Array]:
    """Return `a` and `b` so numpy's own broadcasting does what `mode` asks; KernelError if it forbids their shapes."""
    if mode == "none" and a.shape != b.shape:
        raise KernelError(f"shapes {shape_text(a.shape)} and {shape_text(b.shape)} differ and auto_broadcast is none")
    if mode == "pdpd" and b.ndim < a.ndim:
        return a, b.reshape(b.shape + (1,) * (a.ndim - b.ndim))
    return a, b


def broadcasting(function: Callable[[Array, Array], Any], meaning: str) -> Callable[..., Array]:
    """Return a function of two tensors with the attribute `auto_broadcast`; `meaning` describes it in a line."""

    def applied(a: Array, b: Array, *, auto_broadcast: AutoBroadcast = "numpy") -> Array:
        result: Array = function(*aligned(a, b, auto_broadcast))
        return result

    applied.__name__, applied.__doc__ = function.__name__, meaning
    return applied
