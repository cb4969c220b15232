"""Choosing iterations while it is not known yet how many there will be."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from stepper.debug.recording.batches import Batch
from stepper.debug.recording.choice import Iterations

Row = tuple[Batch, int, int, int, list[Any]]
"""A batch and what to add to it: activation, iteration, tick, values."""


class Selection:
    """Holds back the latest iterations of each activation, for as long as the end of the loop may still choose them."""

    def __init__(self, iterations: Iterations) -> None:
        self._iterations = iterations
        self._tail = iterations.tail
        self._waiting: dict[int, deque[Row]] = {}

    def decided(self, row: Row, *, ended: bool) -> Iterator[Row]:
        """The chosen rows of those about which the new one (and that the loop has `ended` with it) decides."""
        _batch, activation, iteration, _tick, _values = row
        count = iteration + 1
        waiting = self._waiting.setdefault(activation, deque())
        waiting.append(row)
        while waiting and (ended or len(waiting) > self._tail):
            oldest = waiting.popleft()
            # Not among the last `tail`: no bound that counts from the end is reached, however long the loop goes on.
            if self._iterations.includes(oldest[2], count):
                yield oldest
        if ended:
            del self._waiting[activation]

    def is_likely(self, iteration: int | None) -> bool:
        """Whether an iteration is chosen whatever comes after it; that of no loop is."""
        return iteration is None or self._iterations.includes(iteration, iteration + 1 + self._tail)
