"""Axes and shapes: the small questions that many kernels ask, answered once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from stepper import element_types
from stepper.errors import KernelError


def normalize_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from the front, a negative one from the end; KernelError if the rank has no such axis."""
    if not -rank <= axis < rank:
        raise KernelError(f"axis {axis} is out of range for a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """Return each axis of a rank-0 or rank-1 tensor or sequence counted from the front, each once, ascending."""
    return tuple(sorted({normalize_axis(int(axis), rank) for axis in np.ravel(axes)}))


def integers(values: Any) -> list[int]:
    """Return the numbers of an integer tensor (a shape, axes, lengths) as Python ints, in order."""
    return [int(value) for value in np.ravel(values)]


def is_list(values: Any) -> bool:
    """Return True if a tensor is a plain list of integers, as shapes, axes and bounds mostly come."""
    return bool(values.ndim == 1 and values.dtype.kind in "iu")


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as messages show it: [2,3], [] for rank 0."""
    return f"[{','.join(map(str, shape))}]"


class HasForm(Protocol):
    """An array, or what is known of one: element type and shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""


def form_text(value: HasForm) -> str:
    """Return element type and shape as messages show them: f32[2,3]."""
    return f"{element_types.name_of(value.dtype)}{shape_text(value.shape)}"
