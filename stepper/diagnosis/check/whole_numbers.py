"""Observations of whole numbers in the bodies of loops: results beyond their type, divisions by 0, wrong elements.

An operation is computed once more in f64, by its own kernel where it has no short form; an element that is clearly
beyond the type there has left it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_floating
from stepper.engine.arithmetic import outside_int32
from stepper.engine.program import Operation

_LARGE: Final = 1_000_000
_MOST_TRIED: Final = 16
_EXACT: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType({
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
})  # fmt: skip
_OF_ONE: Final = ("CumSum", "ReduceL1", "ReduceProd", "ReduceSum")
"""Operations of which the first input alone holds the numbers; the others are axes."""
_OF_ALL: Final = ("Abs", "MatMul", "Negative", "Power")
_DIVISIONS: Final = ("Divide", "FloorMod", "Mod")


class Wrap(Struct):
    """The first iteration in which a number leaves its type, with the exact number and what becomes of it."""

    iteration: int
    exact: int | float
    becomes: int


class IndexWrap(Struct):
    """How often an index is from the end and how often from the start, and the first one from the end."""

    from_end: int = 0
    from_start: int = 0
    iteration: int = 0
    index: int = 0


class Outside(Struct):
    """The first iteration in which an index points outside, the index, the axis, and how long that is."""

    iteration: int
    index: int
    axis: int
    size: int


class Wide(Struct):
    """The first iteration in which a result is beyond i32, and the number that is furthest from 0."""

    iteration: int
    number: int


class WholeNumbers(Struct):
    """Observations of a body by the id of the layer; of divisions by 0 the first iteration."""

    wraps: dict[int, Wrap] = {}
    by_zero: dict[int, int] = {}
    indices: dict[int, IndexWrap] = {}
    outside: dict[int, Outside] = {}
    wide: dict[int, Wide] = {}


Look = Callable[[list[Any], int], None]


def look_at(operation: Operation, constants: frozenset[int], found: WholeNumbers) -> Look | None:
    """Return what looks at an operation after each iteration; None for one that can lose nothing so."""
    layer = operation.layer
    declared = layer.outputs[0].element_type if layer.outputs else None
    if declared is None or operation.plans or operation.function is None:
        return None
    dtype, inputs = declared.dtype, len(operation.inputs)
    if layer.type == "Gather" and inputs == 3 and operation.inputs[1] not in constants:
        return _index(operation, found)
    if dtype.kind not in "iu":
        return None
    if layer.type in _EXACT and inputs == 2:
        return _sum_or_product(operation, dtype, found.wraps)
    if layer.type == "Convert" and inputs == 1:
        return _conversion(operation, dtype, found.wraps)
    if layer.type in _DIVISIONS and inputs == 2:
        return _division(operation, found.by_zero)
    if layer.type in _OF_ONE or layer.type in _OF_ALL:
        return _computed(operation, dtype, found.wraps)
    return None


def look_at_width(operation: Operation, found: WholeNumbers) -> Look | None:
    """Return what looks for results beyond i32 after each iteration; None for an operation that computes none.

    Movements are not looked at, and the ends of the type are no results: they stand for no limit.
    """
    layer, key = operation.layer, operation.layer.id
    computes = bool(operation.plans) or layer.type in (*_EXACT, *_OF_ONE, *_OF_ALL, *_DIVISIONS, "Convert")
    slots = [
        slot
        for slot, port in zip(operation.outputs, layer.outputs, strict=False)
        if slot >= 0 and port.element_type is not None and port.element_type.name in ("i64", "u64", "u32")
    ]
    if not computes or not slots:
        return None

    def look(values: list[Any], iteration: int) -> None:
        if key in found.wide:
            return
        for slot in slots:
            value = np.asarray(values[slot])
            if value.size > _LARGE or not outside_int32(value):
                continue
            ends = np.iinfo(value.dtype)
            number = max((int(value.min()), int(value.max())), key=abs)
            if ends.min < number < ends.max:
                found.wide[key] = Wide(iteration, number)

    return look


def _sum_or_product(operation: Operation, dtype: np.dtype[Any], wraps: dict[int, Wrap]) -> Look:
    a, b = operation.inputs
    out, exact, key = operation.outputs[0], _EXACT[operation.layer.type], operation.layer.id
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    low, high = _surely(least), _surely(most)

    def look(values: list[Any], iteration: int) -> None:
        if key in wraps:
            return
        x, y = np.asarray(values[a]), np.asarray(values[b])
        if max(x.size, y.size) > _LARGE or not x.size or not y.size:
            return
        about = exact(x.astype(np.float64), y.astype(np.float64))
        beyond = (about >= high) | (about <= low)
        if not beyond.any():
            return
        left, right = np.broadcast_to(x, about.shape), np.broadcast_to(y, about.shape)
        result = np.broadcast_to(np.asarray(values[out]), about.shape)
        for place in map(tuple, np.argwhere(beyond)[:_MOST_TRIED].tolist()):
            number = int(exact(int(left[place]), int(right[place])))
            if not least <= number <= most:
                wraps[key] = Wrap(iteration, number, int(result[place]))
                return

    return look


def _surely(bound: int) -> float:
    """Return a bound in f64, nearer to 0 by what f64 may round; the exact number decides then."""
    return float(bound) * (1 - 1e-12)


def _computed(operation: Operation, dtype: np.dtype[Any], wraps: dict[int, Wrap]) -> Look:
    function, slots, out = operation.function, operation.inputs, operation.outputs[0]
    key, first_alone = operation.layer.id, operation.layer.type in _OF_ONE
    low, high = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    assert function is not None

    def look(values: list[Any], iteration: int) -> None:
        if key in wraps:
            return
        given = [np.asarray(values[slot]) for slot in slots]
        if any(one.size > _LARGE or not one.size for one in given):
            return
        with np.errstate(all="ignore"):
            wide = [one if index and first_alone else one.astype(np.float64) for index, one in enumerate(given)]
            about = np.asarray(function(*wide))
        result = np.asarray(values[out])
        if about.shape == result.shape and about.dtype == np.float64:
            _note_beyond(wraps, key, iteration, (about, result), (about > high) | (about < low))

    return look


def _note_beyond(wraps: dict[int, Wrap], key: int, iteration: int, of: tuple[Array, Array], beyond: Array) -> None:
    """Note the first element of a result that is another number than the one that it should be."""
    should, result = of
    for place in map(tuple, np.argwhere(beyond)[:_MOST_TRIED].tolist()):
        exact, becomes = should[place].item(), int(result[place])
        if isinstance(exact, float) and np.isfinite(exact):
            exact = int(exact)
        if exact != becomes:
            wraps[key] = Wrap(iteration, exact, becomes)
            return


def _conversion(operation: Operation, dtype: np.dtype[Any], wraps: dict[int, Wrap]) -> Look:
    slot, out, key = operation.inputs[0], operation.outputs[0], operation.layer.id
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

    def look(values: list[Any], iteration: int) -> None:
        if key in wraps:
            return
        x = np.asarray(values[slot])
        if not x.size or x.size > _LARGE:
            return
        if is_floating(x.dtype):
            number = np.trunc(x.astype(np.float64))
            beyond = ~((number >= least) & (number < most + 1.0))
        elif x.dtype.kind in "iu":
            number = x
            if int(x.min()) >= least and int(x.max()) <= most:
                return
            beyond = np.array([not least <= int(one) <= most for one in x.reshape(-1)], bool).reshape(x.shape)
        else:
            return
        if beyond.any():
            _note_beyond(wraps, key, iteration, (number, np.asarray(values[out])), beyond)

    return look


def _division(operation: Operation, by_zero: dict[int, int]) -> Look:
    slot, key = operation.inputs[1], operation.layer.id

    def look(values: list[Any], iteration: int) -> None:
        if key not in by_zero:
            divisor = np.asarray(values[slot])
            if divisor.size and not divisor.all():
                by_zero[key] = iteration

    return look


def _index(operation: Operation, whole_numbers: WholeNumbers) -> Look:
    data, slot, axes = operation.inputs
    key = operation.layer.id
    found, outside = whole_numbers.indices.setdefault(key, IndexWrap()), whole_numbers.outside

    def look(values: list[Any], iteration: int) -> None:
        index, axis = np.asarray(values[slot]), np.asarray(values[axes])
        if not index.size or index.size > _LARGE or index.dtype.kind not in "iu" or axis.size != 1:
            return
        least, most, along = int(index.min()), int(index.max()), int(axis.reshape(-1)[0])
        size = np.shape(values[data])[along]
        if key not in outside and (most >= size or least < -size):
            outside[key] = Outside(iteration, most if most >= size else least, along, size)
        found.from_start += most >= 0
        if least < 0:
            found.from_end += 1
            if found.from_end == 1:
                found.iteration, found.index = iteration, least

    return look
