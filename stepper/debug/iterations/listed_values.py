"""Values of operations over iterations, for rows of a screen: kept of those operations alone that somebody looks at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from stepper.engine.program import Value
from stepper.tensors.histories import ValueHistory
from stepper.tensors.known_values import KnownValues

MOST_OPERATIONS: Final = 256
"""Operations of which values are kept, the ones that were wanted last."""
MOST_BYTES: Final = 2**17
"""Bytes of numbers that are kept of an operation, where they are for more than some hundred iterations."""
_MOST_READ: Final = 512
"""Iterations that are remembered to have been read; those of the longest ago are read again where they are wanted."""
LARGEST_AT_A_STOP: Final = 2**16
"""Elements of a value that is read while one waits for the next picture."""
LARGEST: Final = 2**22
"""Elements of a value that is read at all."""


class ListedValues:
    """Values of the wanted operations of one activation; `slots` are the first outputs, by operation."""

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots
        self._known: OrderedDict[int, KnownValues] = OrderedDict()
        self._wanted: tuple[int, ...] = ()
        self._read: OrderedDict[int, None] = OrderedDict()

    def want(self, operations: Sequence[int]) -> None:
        """Keep the values of these from now on, too."""
        wanted = tuple(operations)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        if not self._known.keys() >= set(wanted):
            self._read.clear()
        for index in wanted:
            self._known.setdefault(index, KnownValues(MOST_BYTES))
            self._known.move_to_end(index)
        while len(self._known) > max(MOST_OPERATIONS, len(wanted)):
            self._known.popitem(last=False)

    def lacks(self, iteration: int) -> bool:
        """True if the wanted values were not read when the iteration was closed."""
        return bool(self._wanted) and iteration not in self._read

    def take(
        self,
        values: Sequence[Value],
        iteration: int,
        begin: int,
        end: int,
        most: int = LARGEST,
        enough: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Read the wanted operations from `begin` up to but not `end`, values of at most so many elements.

        `enough` ends it. True if any was not known.
        """
        is_new = False
        for index in self._wanted:
            slot = self._slots[index] if begin <= index < end else -1
            value = values[slot] if slot >= 0 else None
            if value is None or self._known[index].knows(iteration) or np.size(value) > most:
                continue
            if enough():
                break
            is_new |= self._known[index].see(iteration, value)
        return is_new

    def close(self, iteration: int) -> None:
        """Remember that all operations of the iteration have run, and were read."""
        if self._wanted:
            self._read[iteration] = None
            while len(self._read) > _MOST_READ:
                self._read.popitem(last=False)

    def view(self) -> Mapping[int, ValueHistory]:
        """Return what is known of the wanted operations, by their index."""
        found = ((index, self._known[index].view()) for index in self._wanted)
        return {index: history for index, history in found if history is not None}
