"""Limit on the size of tensors: a number in a file must not exhaust the memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from stepper.errors import TensorTooLarge
from stepper.ops.axes import shape_text
from stepper.sizes import size_text

LARGEST_TENSOR: Final[ContextVar[int]] = ContextVar("LARGEST_TENSOR", default=400 * 2**20)
"""The largest tensor in bytes that an operation whose output's size is a number in its input may allocate."""

_WIDEST: Final = 128
"""No element takes more bytes than these, whatever its type."""
_ENDLESS: Final = 2**100
"""Where counting ends."""


def ensure_allocatable(shape: Sequence[int], dtype: np.dtype[Any] | type = np.uint8) -> None:
    """Refuse a shape above the limit before it is allocated; to call where a size comes from a value or an attribute.

    A dimension of 0 does not excuse the others: kernels work along them as well, and numpy has its own limit there.
    Raises TensorTooLarge with the shape, its size and the limit.
    """
    limit = LARGEST_TENSOR.get()
    if 0 < math.prod(shape) * _WIDEST <= limit:
        return
    size = min(math.prod(dim or 1 for dim in shape) * (np.dtype(dtype).itemsize or 16), _ENDLESS)
    if size > limit:
        raise TensorTooLarge(
            f"a tensor of shape {shape_text(shape)} takes {size_text(size)}, the limit is {size_text(limit)}"
        )
