"""Stacks: the values of one port in consecutive iterations as one large tensor, and their statistics."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_of_numpy
from stepper.tensors.statistics import Row, recorded_rows


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


_WORTH_IT: Final = 2**14
"""Bytes from which on a stack is compared with others."""
_GLIMPSE: Final = 8
"""Elements by which stacks that may be the same are found."""


class WrittenStack(Struct):
    """A stack, the statistics of each tensor in it, and the blob that has its elements, once there is one."""

    stack: Array
    rows: list[Row]
    blob: int | None = None


class WrittenStacks:
    """The columns of one batch."""

    def __init__(self) -> None:
        self._same: dict[Any, WrittenStack] = {}
        self._ahead: dict[Any, WrittenStack] = {}

    def column(self, stack: Array) -> WrittenStack:
        """Return what is known of a stack, as of an earlier one with the same elements in whatever shape."""
        if stack.nbytes < _WORTH_IT or not is_of_numpy(stack.dtype):
            return WrittenStack(stack, recorded_rows(stack))
        flat = np.ascontiguousarray(stack).reshape(len(stack), -1)
        first = (stack.dtype, flat.shape, flat[0, :_GLIMPSE].tobytes())
        found = self._same.get(first)
        if found is not None and _same_bytes(found.stack, flat):
            return found
        before = self._ahead.get(first)
        if before is not None and _same_bytes(before.stack[1:], flat[:-1]):
            # What leaves an iteration is what enters the next one.
            rows = [*before.rows[1:], *recorded_rows(stack[-1:])]
        else:
            rows = recorded_rows(stack)
        column = self._same[first] = WrittenStack(flat, rows)
        if len(stack) > 1:
            self._ahead[(*first[:2], flat[1, :_GLIMPSE].tobytes())] = column
        return column


def _same_bytes(a: Array, b: Array) -> bool:
    """Return True if two stacks of one type and shape in row-major order are the same to the last bit."""
    words = np.uint64 if a.nbytes % 8 == 0 else np.uint8
    return bool((a.reshape(-1).view(words) == b.reshape(-1).view(words)).all())
