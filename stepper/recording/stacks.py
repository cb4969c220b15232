"""Stacks: the values of one port in consecutive iterations as one large tensor, and their statistics."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_of_numpy
from stepper.tensors.statistics import statistics


class Stack(Struct, frozen=True):
    """The values `first` to `first + count` of a column, along a new leading dimension.

    `repeated`: they are all the same one, which the stack holds alone.
    """

    first: int
    count: int
    tensor: Array
    repeated: bool


def stacks(column: Sequence[Any]) -> Iterator[Stack]:
    """The stacks of a column of arrays and numpy scalars; one as a rule. Where there is no value (None), none is."""
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
    """All values joined, if they are of one type and shape. A few numpy calls, for this is done for each slot."""
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


Row = tuple[Any, ...]
"""min, max, mean, std, nan, inf, zero; what they mean is in stepper.tensors.statistics."""

_LARGEST_INTEGER: Final = 2**63 - 1


def batch_statistics(stack: Array) -> list[Row]:
    """One row for each tensor of the stack, which has a leading dimension of iterations."""
    plain = stack.view(np.uint8) if stack.dtype == np.bool_ else stack
    if plain.dtype.kind not in "iuf" or not is_of_numpy(plain.dtype) or plain.size == 0:
        return [single_statistics(value) for value in stack]
    rows = _of_finite(plain.reshape(len(plain), -1))
    return [single_statistics(value) if row is None else row for value, row in zip(stack, rows, strict=True)]


def single_statistics(value: Array) -> Row:
    """The row of one tensor of any element type."""
    found = statistics(value)
    infinite = found.positive_infinity + found.negative_infinity
    return (
        as_sql(found.min), as_sql(found.max), found.mean, found.std, found.nan, infinite, found.zeros,
    )  # fmt: skip


def _of_finite(flat: Array) -> list[Row | None]:
    """The rows of the tensors that are finite and stay within f64 when squared; None for the others."""
    size = flat.shape[1]
    with np.errstate(all="ignore"):
        low, high = flat.min(axis=1), flat.max(axis=1)  # NaN spreads to both, an infinity is the one or the other
        wide = flat.astype(np.float64)
        mean = wide.sum(axis=1) / size
        wide -= mean[:, None]
        deviation = np.sqrt(np.vecdot(wide, wide) / size)
        simple = np.isfinite(deviation) & (low <= high) & ((deviation > 1e-140) | (low == high))
    is_zero = flat == 0
    zeros = is_zero.sum(axis=1) if is_zero.any() else np.zeros(len(flat), np.int64)
    columns = [column.tolist() for column in (low, high, mean, deviation, zeros)]
    rows: list[Row | None] = [(*row[:4], 0, 0, row[4]) for row in zip(*columns, strict=True)]
    if flat.dtype == np.uint64:
        rows = [row and (as_sql(row[0]), as_sql(row[1]), *row[2:]) for row in rows]
    if not simple.all():
        for index in np.flatnonzero(~simple).tolist():
            rows[index] = None
    return rows


def as_sql(number: int | float | None) -> int | float | None:
    """The number as SQLite takes it: an integer of 64 bits without a sign as a float where it must be."""
    return float(number) if type(number) is int and number > _LARGEST_INTEGER else number


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
        """The column of a stack: one that there was before, where all elements are the same, whatever their shape."""
        if stack.nbytes < _WORTH_IT or not is_of_numpy(stack.dtype):
            return WrittenStack(stack, batch_statistics(stack))
        flat = np.ascontiguousarray(stack).reshape(len(stack), -1)
        first = (stack.dtype, flat.shape, flat[0, :_GLIMPSE].tobytes())
        found = self._same.get(first)
        if found is not None and _same_bytes(found.stack, flat):
            return found
        before = self._ahead.get(first)
        if before is not None and _same_bytes(before.stack[1:], flat[:-1]):
            # What leaves an iteration is what enters the next one.
            rows = [*before.rows[1:], *batch_statistics(stack[-1:])]
        else:
            rows = batch_statistics(stack)
        column = self._same[first] = WrittenStack(flat, rows)
        if len(stack) > 1:
            self._ahead[(*first[:2], flat[1, :_GLIMPSE].tobytes())] = column
        return column


def _same_bytes(a: Array, b: Array) -> bool:
    """Whether two stacks of one type and shape in row-major order are the same to the last bit."""
    words = np.uint64 if a.nbytes % 8 == 0 else np.uint8
    return bool((a.reshape(-1).view(words) == b.reshape(-1).view(words)).all())
