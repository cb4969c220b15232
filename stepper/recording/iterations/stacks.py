"""Stacks: the values of one port in consecutive iterations as one large tensor, and their statistics."""

from __future__ import annotations

import itertools
import operator
from operator import attrgetter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_of_numpy


class Stack(Struct, frozen=True):
    """The values `first` to `first + count` of a column, along a new leading dimension.

    `repeated`: they are all the same one, which the stack holds alone.
    """

    first: int
    count: int
    tensor: Array
    repeated: bool


def stacks(column: Sequence[Any]) -> Iterator[Stack]:
    """Yield the stacks of a column of arrays and numpy scalars: one as a rule; none where there is no value (None)."""
    value = column[0]
    if value is not None and column[-1] is value and all(other is value for other in column):
        yield Stack(0, len(column), np.asarray(value)[None], len(column) > 1)
        return
    whole = _alike(column)
    if whole is not None:
        yield Stack(0, len(column), whole, False)
        return
    begin = 0
    for kind, group in itertools.groupby(column, _kind):
        values = list(group)
        if kind is not None:
            yield Stack(begin, len(values), np.stack([np.asarray(value) for value in values]), False)
        begin += len(values)


def _kind(value: Any) -> Any:
    return None if value is None else (value.shape, value.dtype)


def _alike(column: Sequence[Any]) -> Array | None:
    """Return all values joined, None unless they are of one type and shape. Few numpy calls: asked for each slot."""
    value, count = column[0], len(column)
    if isinstance(value, np.ndarray):
        if not value.ndim or value.dtype.kind == "T":
            return None
        joined = np.empty((count * len(value), *value.shape[1:]), value.dtype)
        try:
            # Refuses another type, another rank, other sizes; but not other lengths that happen to have the same sum.
            np.concatenate(column, out=joined, casting="no")
            if set(map(len, column)) != {len(value)}:
                return None
        except (TypeError, ValueError):
            return None
        return joined.reshape(count, *value.shape)
    if isinstance(value, np.generic) and set(map(type, column)) == {type(value)} and not value.dtype.names:
        return np.array(column, value.dtype)
    return None


_SHAPE: Final = attrgetter("shape")
_WORTH_IT: Final = 2**10
"""Bytes from which on a stack is compared with others."""
_GLIMPSE: Final = 8
"""Elements by which stacks that may be the same are found."""


class WrittenStack(Struct):
    """A stack that is in the file, `flat[iteration, element]`.

    `start` is where its rows of statistics or its numbers begin, `blob` what has its elements, once there is one.
    """

    flat: Array
    start: int
    blob: int | None = None


class WrittenStacks:
    """The columns of one batch."""

    def __init__(self) -> None:
        self._known: dict[Any, WrittenStack] = {}
        self._objects: dict[int, tuple[Sequence[Any], WrittenStack]] = {}

    def find(self, stack: Array) -> tuple[WrittenStack, int] | None:
        """Return a column that has the same elements as a stack, in whatever shape, and 0; or that and 1.

        1: it has those of all iterations but the first, each one iteration earlier: what leaves an iteration is what
        enters the next one.
        """
        if not _is_comparable(stack):
            return None
        flat = _flat(stack)
        for shift in range(min(2, len(flat))):
            known = self._known.get(_glimpse(flat, shift))
            if known is not None and _same_bytes(known.flat[: len(flat) - shift], flat[shift:]):
                return known, shift
        return None

    def find_objects(self, values: Sequence[Any]) -> tuple[WrittenStack, int] | None:
        """Return the same as `find` where it is so for certain without a look at an element.

        The values are the same objects, or views of them in another shape.
        """
        first = values[0]
        if not isinstance(first, np.ndarray) or len(values) == 1:
            return None
        others, column = self._objects.get(id(values[1]), (values, None))
        if column is not None and all(map(operator.is_, values[1:], others)) and _kind(first) == _kind(others[0]):
            return column, 1
        others, column = self._objects.get(id(first.base), (values, None))
        if column is not None and all(map(_is_whole_view, values, others)) and len(set(map(_SHAPE, values))) == 1:
            return column, 0
        return None

    def add_objects(self, values: Sequence[Any], column: WrittenStack) -> None:
        """Note the objects whose elements a column has."""
        self._objects[id(values[0])] = values, column

    def add(self, stack: Array, start: int) -> WrittenStack:
        """Note a stack that is in the file now."""
        flat = _flat(stack)
        written = WrittenStack(flat, start)
        if _is_comparable(stack):
            self._known[_glimpse(flat, 0)] = written
        return written


def _is_whole_view(value: Any, other: Any) -> bool:
    """Return True if a value has all elements of another one that owns its memory, in the same order."""
    is_view = value.base is other and value.dtype == other.dtype and value.size == other.size
    return is_view and bool(value.flags.c_contiguous and other.flags.c_contiguous)


def _is_comparable(stack: Array) -> bool:
    return stack.nbytes >= _WORTH_IT and is_of_numpy(stack.dtype)


def _flat(stack: Array) -> Array:
    return np.ascontiguousarray(stack).reshape(len(stack), -1) if stack.size else stack


def _glimpse(flat: Array, row: int) -> Any:
    return flat.dtype, flat.shape, flat[row : row + 2, :_GLIMPSE].tobytes()


def are_same(one: Array, other: Array) -> bool:
    """Return True if two tensors have the same type and shape and bits."""
    if one.dtype != other.dtype or one.shape != other.shape or not is_of_numpy(one.dtype):
        return False
    return _same_bytes(np.ascontiguousarray(one), np.ascontiguousarray(other))


def is_constant(stack: Array) -> bool:
    """Return True if all numbers of a stack of single numbers have the same bits."""
    flat = np.ascontiguousarray(stack).reshape(-1)
    if not is_of_numpy(flat.dtype) or flat[:1].tobytes() != flat[-1:].tobytes():
        return False
    words = flat.view(f"u{flat.itemsize}")
    return bool((words == words[0]).all())


def _same_bytes(a: Array, b: Array) -> bool:
    """Return True if two stacks of one type and shape in row-major order are the same to the last bit."""
    words = np.uint64 if a.nbytes % 8 == 0 else np.uint8
    return bool((a.reshape(-1).view(words) == b.reshape(-1).view(words)).all())
