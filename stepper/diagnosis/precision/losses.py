"""How far the outputs of a run are from those of the plain one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_floating


class Loss(Struct, frozen=True):
    """Loss of one output: `error` is the norm of the difference over that of the plain output.

    It is Inf where a float that was finite is not, and where integers, booleans or strings are others. `is_reshaped`
    says that the shape is another one.
    """

    output: str
    error: float
    is_reshaped: bool = False


def losses(names: Sequence[str], plain: Sequence[Array], narrow: Sequence[Array]) -> tuple[Loss, ...]:
    """Return what became of each output."""
    return tuple(_loss(*one) for one in zip(names, plain, narrow, strict=True))


def _loss(name: str, plain: Array, narrow: Array) -> Loss:
    if plain.shape != narrow.shape:
        return Loss(name, math.inf, is_reshaped=True)
    return Loss(name, relative_error(plain, narrow))


def relative_error(plain: Array, narrow: Array) -> float:
    """Return the norm of the difference of two arrays of one shape over that of the first; 0 where both are empty."""
    if not is_floating(plain.dtype):
        return 0.0 if np.array_equal(plain, narrow) else math.inf
    exact, rounded = plain.astype(np.float64), narrow.astype(np.float64)
    finite = np.isfinite(exact)
    if not np.isfinite(rounded[finite]).all() or not np.array_equal(exact[~finite], rounded[~finite], equal_nan=True):
        return math.inf
    size, distance = (float(np.linalg.norm(one)) for one in (exact[finite], rounded[finite] - exact[finite]))
    return 0.0 if distance == 0 else distance / size if size else math.inf
