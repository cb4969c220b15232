"""Many small tensors as few large ones: the values of one slot in consecutive iterations, joined into stacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from stepper.element_types import Array


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
