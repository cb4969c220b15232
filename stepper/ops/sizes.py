"""Numbers that arrive in tensors."""

from __future__ import annotations

from typing import Any

from stepper.errors import KernelError
from stepper.ops.axes import shape_text


def single_integer(value: Any, name: str) -> int:
    """Return the number in a rank-0 tensor (or one of one element), such as an axis; KernelError for any other size."""
    if value.size != 1:
        raise KernelError(f"{name} must be a single number, it has the shape {shape_text(value.shape)}")
    return int(value.item())
