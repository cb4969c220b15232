"""Where NaN or Inf in the output of one operation comes from: from an input, or born in the operation."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from msgspec import Struct

from stepper.debug.views import OperationView
from stepper.element_types import FLOATING, Array
from stepper.ir.model import Layer
from stepper.records import Brief

_TESTS: Final = {"NaN": np.isnan, "Inf": np.isinf}
MOST_TESTED: Final = 2**20
"""Elements of an input that are looked through; a larger one counts for clean."""


class Oddity(Brief, Struct, frozen=True, eq=False):
    """NaN (before Inf) in an operation's first output: how many elements of how many, and the first.

    `came_from` is the layer of an input that has it already; None: it was born here. Then `other` is an input with the
    other kind, if there is one, `other_kind` that kind with its sign, and `other_first` its first element.
    """

    unshown: ClassVar = ("came_from", "other")

    kind: str
    count: int
    size: int
    first: tuple[int, ...]
    came_from: Layer | None
    other: Layer | None
    other_kind: str
    other_first: tuple[int, ...]


def oddity_of(operation: OperationView) -> Oddity | None:
    """What is odd in an operation's first output as it is now; None where every element is finite."""
    array = operation.outputs[0].array if operation.outputs else None
    if array is None or array.dtype not in FLOATING:
        return None
    for kind in _TESTS:
        places = np.flatnonzero(_TESTS[kind](array))
        if places.size:
            came = _with(operation, kind)
            other = None if came is not None else _with(operation, "Inf" if kind == "NaN" else "NaN")
            return Oddity(
                kind,
                int(places.size),
                array.size,
                _index(array, int(places[0])),
                None if came is None else came[0],
                None if other is None else other[0],
                "" if other is None else _signed(other[1], other[2]),
                () if other is None else _index(other[1], other[2]),
            )
    return None


def _with(operation: OperationView, kind: str) -> tuple[Layer, Array, int] | None:
    """The first input that has it, and its first place there."""
    for value in operation.inputs:
        array = value.array
        if array is None or value.layer is None or array.dtype not in FLOATING or array.size > MOST_TESTED:
            continue
        places = np.flatnonzero(_TESTS[kind](array))
        if places.size:
            return value.layer, array, int(places[0])
    return None


def _signed(array: Array, place: int) -> str:
    value = float(array.reshape(-1)[place])
    return "NaN" if np.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _index(array: Array, place: int) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(place, array.shape))
