"""Axes, shapes, sizes and numbers of inputs and attributes: the questions that many kernels ask, and their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol

import numpy as np

from stepper import element_types
from stepper.element_types import LARGEST_RANK, Array, DType, Ints, Shape
from stepper.errors import KernelError, TensorTooLarge
from stepper.wording import size_text


def normalize_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from the front, a negative one from the end; KernelError if the rank has no such axis."""
    if not -rank <= axis < rank:
        raise KernelError(f"axis {axis} is out of range for a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axes: Any, rank: int) -> Ints:
    """Return each axis of a rank-0 or rank-1 tensor or sequence counted from the front, each once, ascending."""
    return tuple(sorted({normalize_axis(int(axis), rank) for axis in np.ravel(axes)}))


def integers(values: Any) -> list[int]:
    """Return the numbers of an integer tensor (a shape, axes, lengths) as Python ints, in order.

    Raises TensorTooLarge where so many Python ints are out of all proportion.
    """
    flat = np.ravel(values)
    if flat.size > _FEW:
        ensure_allocatable(flat.shape, _PYTHON_INT)
    return [int(value) for value in flat]


def is_list(values: Any) -> bool:
    """Return True if a tensor is a plain list of integers, as shapes, axes and bounds mostly come."""
    return bool(values.ndim == 1 and values.dtype.kind in "iu")


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as messages show it: [2,3], [] for rank 0."""
    return f"[{','.join(map(str, shape))}]"


class HasForm(Protocol):
    """An array, or what is known of one: element type and shape."""

    @property
    def dtype(self) -> DType:
        """Element type."""

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""


def form_text(value: HasForm) -> str:
    """Return element type and shape as messages show them: f32[2,3]."""
    return f"{element_types.name_of(value.dtype)}{shape_text(value.shape)}"


def broadcast_shape(first: Sequence[int], second: Sequence[int]) -> Shape:
    """Return the shape to which two shapes broadcast, of up to 64 dimensions; numpy's function takes 32. ValueError."""
    rank = max(len(first), len(second))
    a, b = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (first, second))
    if any(one != other and 1 not in (one, other) for one, other in zip(a, b, strict=True)):
        raise ValueError(f"the shapes {shape_text(first)} and {shape_text(second)} do not broadcast")
    return tuple(other if one == 1 else one for one, other in zip(a, b, strict=True))


def single_integer(value: Any, name: str) -> int:
    """Return the number in a rank-0 tensor (or one of one element), such as an axis; KernelError for any other size."""
    if value.size != 1:
        raise KernelError(f"{name} must be a single number, it has the shape {shape_text(value.shape)}")
    try:
        return int(value.item())
    except (TypeError, ValueError, OverflowError):
        raise KernelError(f"{name} must be a whole number, it is {value.item()!r}") from None


def check_positive(**attributes: float | tuple[float, ...]) -> None:
    """Raise KernelError for the first of the attributes that is not, or has not only, finite numbers above zero."""
    for name, value in attributes.items():
        for number in value if isinstance(value, tuple) else (value,):
            if not 0 < number < math.inf:
                raise KernelError(f"the attribute '{name}' must be positive, it is {number}")


def surrounded(data: Array, before: Sequence[int], after: Sequence[int], value: Any = None) -> Array:
    """Return `data` with `value` (zero) before and after each axis; a negative number takes elements away."""
    if not any(before) and not any(after):
        return data
    shape = tuple(dim + first + last for dim, first, last in zip(data.shape, before, after, strict=True))
    ensure_allocatable(shape, data.dtype)
    result = np.zeros(shape, data.dtype) if value is None else np.full(shape, value, data.dtype)
    inner, outer = [], []
    for dim, first, last in zip(data.shape, before, after, strict=True):
        start = max(0, -first)
        stop = max(start, dim + min(0, last))
        inner.append(slice(start, stop))
        outer.append(slice(start + first, stop + first))
    result[tuple(outer)] = data[tuple(inner)]
    return result


LARGEST_TENSOR: Final[ContextVar[int]] = ContextVar("LARGEST_TENSOR", default=200 * 2**20)
"""The largest tensor in bytes that an operation whose output's size is a number in its input may allocate.

A run holds some four such tensors at once, a comparison twice as many: 2 GB in all.
"""

_WIDEST = 128
"""No element takes more bytes than these, whatever its type."""
_FEW = 1000
_PYTHON_INT = np.dtype("V64")
"""Stands for a Python int in a list, and for what a kernel makes of it."""
_ENDLESS = 2**100
"""Where counting ends."""


def ensure_allocatable(shape: Sequence[int], dtype: DType | type = np.uint8) -> None:
    """Refuse a shape above the limit before it is allocated; to call where a size comes from a value or an attribute.

    A dimension of 0 does not excuse the others: kernels work along them as well, and numpy has its own limit there.
    Raises TensorTooLarge with the shape, its size and the limit, KernelError for more dimensions than numpy has.
    """
    limit = LARGEST_TENSOR.get()
    if len(shape) > LARGEST_RANK:
        raise KernelError(f"a tensor of {len(shape)} dimensions is asked for, expected at most {LARGEST_RANK}")
    if 0 < math.prod(shape) * _WIDEST <= limit:
        return
    size = min(math.prod(dim or 1 for dim in shape) * (np.dtype(dtype).itemsize or 16), _ENDLESS)
    if size > limit:
        raise TensorTooLarge(
            f"a tensor of shape {shape_text(shape)} takes {size_text(size)}, "
            f"the limit is {size_text(limit)} (--largest-tensor)"
        )
