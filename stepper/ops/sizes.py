"""Numbers that arrive in tensors, and shapes made out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepper.errors import KernelError
from stepper.ops.axes import shape_text
from stepper.ops.limits import ensure_allocatable


def single_integer(value: Any, name: str) -> int:
    """The number in a rank-0 tensor (or one of a single element), such as an axis; KernelError for any other size."""
    if value.size != 1:
        raise KernelError(f"{name} must be a single number, it has the shape {shape_text(value.shape)}")
    return int(value.item())


def ensure_every_axis_allocatable(shape: Sequence[int], dtype: np.dtype[Any] | type = np.uint8) -> None:
    """As ensure_allocatable, but a dimension of 0 does not excuse the others, along which a kernel works as well."""
    ensure_allocatable([dim or 1 for dim in shape], dtype)
