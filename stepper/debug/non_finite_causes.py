"""How a NaN or an Inf comes about in an operation, in a sentence; and where what was dirty in its inputs was born."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.debug.frame_views import FrameView
from stepper.element_types import FLOATING, Array
from stepper.ir.model import Layer

MOST_ELEMENTS: Final = 1_000_000
"""Larger tensors are not looked through."""

Inputs = Sequence[Array]
Cause = Callable[[Inputs], str]


class Birth(Struct, frozen=True):
    """Where something came from: operation `index` of the frame, whose inputs have none of it, or a Parameter.

    `element` is the first that has it, `steps` how many operations lie between, itself included.
    """

    layer: Layer
    index: int | None
    element: tuple[int, ...]
    steps: int


def cause_of_nan(layer: Layer, inputs: Inputs) -> str:
    """Why an operation gives NaN for inputs without one; empty where no rule fits what is in them."""
    found = _NAN.get(layer.type)
    return "" if found is None or not _can_look(inputs) else found(inputs)


def cause_of_inf(layer: Layer, inputs: Inputs) -> str:
    """Why an operation gives an infinite value for finite inputs; empty where it cannot be told."""
    if not inputs or not _can_look(inputs):
        return ""
    found = _INF.get(layer.type)
    said = "" if found is None else found(inputs)
    if said or inputs[0].dtype not in FLOATING:
        return said
    name = element_types.name_of(inputs[0].dtype)
    return f"the result is larger than {name} holds"


def birth_of(frame: FrameView, index: int, *, nan: bool) -> Birth | None:
    """Where the NaN (or Inf) in the inputs of an operation came from, back through this iteration; None for none."""
    test = np.isnan if nan else np.isinf
    steps = 0
    while True:
        dirty = next((value for value in frame.operation(index).inputs if _has(value.array, test)), None)
        if dirty is None or dirty.layer is None or dirty.array is None:
            return None
        steps += 1
        place = np.argwhere(test(dirty.array))[0]
        element = tuple(int(at) for at in place)
        source = frame.program.computed_at.get(frame.program.slots.get((dirty.layer.id, dirty.output), -1))
        if source is None:
            return Birth(dirty.layer, None, element, steps)
        if not any(_has(value.array, test) for value in frame.operation(source).inputs):
            return Birth(dirty.layer, source, element, steps)
        index = source


def _has(array: Array | None, test: Callable[[Array], Array]) -> bool:
    if array is None or array.dtype not in FLOATING or array.size > MOST_ELEMENTS:
        return False
    return bool(test(array).any())


def _can_look(inputs: Inputs) -> bool:
    return all(array.size <= MOST_ELEMENTS for array in inputs)


def _inf(array: Array) -> bool:
    return array.dtype in FLOATING and bool(np.isinf(array).any())


# --- the rules ------------------------------------------------------------------------------------------------------


def _softmax(inputs: Inputs) -> str:
    if not _inf(inputs[0]):
        return ""
    return "the largest element is subtracted: Inf - Inf is NaN, and one NaN in a row's sum makes all of the row NaN"


def _sum(inputs: Inputs) -> str:
    return "Inf - Inf is NaN" if any(map(_inf, inputs)) else ""


def _product(inputs: Inputs) -> str:
    zero = any(bool((array == 0).any()) for array in inputs)
    return "0 times Inf is NaN" if zero and any(map(_inf, inputs)) else ""


def _quotient(inputs: Inputs) -> str:
    if bool((inputs[1] == 0).any()):
        return "0 / 0 is NaN"
    return "Inf / Inf is NaN" if all(map(_inf, inputs[:2])) else ""


def _products(inputs: Inputs) -> str:
    return "a sum of products in it has Inf - Inf, or 0 times Inf" if any(map(_inf, inputs[:2])) else ""


def _negative(what: str) -> Cause:
    return lambda inputs: f"{what} of a negative number is NaN" if bool((inputs[0] < 0).any()) else ""


def _outside(what: str) -> Cause:
    return lambda inputs: f"{what} is defined from -1 to 1" if bool((np.abs(inputs[0]) > 1).any()) else ""


def _power(inputs: Inputs) -> str:
    return "a negative base with an exponent that is no whole number gives NaN" if bool((inputs[0] < 0).any()) else ""


def _division_by_zero(inputs: Inputs) -> str:
    return "a number / 0 is infinite" if bool((inputs[1] == 0).any()) else ""


def _log_of_zero(inputs: Inputs) -> str:
    return "the logarithm of 0 is -Inf" if bool((inputs[0] == 0).any()) else ""


_NAN: Final[Mapping[str, Cause]] = {
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Add": _sum,
    "Subtract": _sum,
    "ReduceSum": _sum,
    "ReduceMean": _sum,
    "Multiply": _product,
    "Divide": _quotient,
    "MatMul": _products,
    "Convolution": _products,
    "Log": _negative("the logarithm"),
    "Sqrt": _negative("the square root"),
    "Acos": _outside("the arc cosine"),
    "Asin": _outside("the arc sine"),
    "Power": _power,
}
_INF: Final[Mapping[str, Cause]] = {"Divide": _division_by_zero, "Log": _log_of_zero}
