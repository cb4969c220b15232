"""What was found out about the stacks of one batch, so that the same elements are not looked at twice.

In most bodies several values have the same elements: what a Reshape makes of them, what a back edge carries into the
next iteration. To compare is much quicker than to compute statistics, or to store.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array, is_of_numpy
from stepper.recording.batch_statistics import Row, batch_statistics

_WORTH_IT: Final = 2**14
"""Bytes from which on a stack is compared with others."""
_GLIMPSE: Final = 8
"""Elements by which stacks that may be the same are found."""


class Column(Struct):
    """A stack, the statistics of each tensor in it, and the blob that has its elements, once there is one."""

    stack: Array
    rows: list[Row]
    blob: int | None = None


class Columns:
    """The columns of one batch."""

    def __init__(self) -> None:
        self._same: dict[Any, Column] = {}
        self._ahead: dict[Any, Column] = {}

    def column(self, stack: Array) -> Column:
        """The column of a stack: one that there was before, where all elements are the same, whatever their shape."""
        if stack.nbytes < _WORTH_IT or not is_of_numpy(stack.dtype):
            return Column(stack, batch_statistics(stack))
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
        column = self._same[first] = Column(flat, rows)
        if len(stack) > 1:
            self._ahead[(*first[:2], flat[1, :_GLIMPSE].tobytes())] = column
        return column


def _same_bytes(a: Array, b: Array) -> bool:
    """Whether two stacks of one type and shape in row-major order are the same to the last bit."""
    words = np.uint64 if a.nbytes % 8 == 0 else np.uint8
    return bool((a.reshape(-1).view(words) == b.reshape(-1).view(words)).all())
