"""Choosing iterations while it is not known yet how many there will be."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from stepper.recording.batches import Batch, Row
from stepper.recording.choice import Iterations


class Selection:
    """Holds back the latest iterations of each activation, for as long as the end of the loop may still choose them."""

    def __init__(self, iterations: Iterations) -> None:
        self._iterations = iterations
        self._tail = iterations.tail
        self._waiting: dict[int, deque[tuple[Batch, Row]]] = {}

    def decided(self, batch: Batch, row: Row, *, ended: bool) -> Iterator[tuple[Batch, Row]]:
        """The chosen rows of those about which the new one (and that the loop has `ended` with it) decides."""
        activation, iteration, _tick, _values = row
        assert iteration is not None, "a loop's"
        count = iteration + 1
        waiting = self._waiting.setdefault(activation, deque())
        waiting.append((batch, row))
        while waiting and (ended or len(waiting) > self._tail):
            oldest = waiting.popleft()
            number = oldest[1][1]
            # Not among the last `tail`: no bound that counts from the end is reached, however long the loop goes on.
            if number is not None and self._iterations.includes(number, count):
                yield oldest
        if ended:
            del self._waiting[activation]

    def is_likely(self, iteration: int | None) -> bool:
        """Whether an iteration is chosen whatever comes after it; that of no loop is."""
        return iteration is None or self._iterations.includes(iteration, iteration + 1 + self._tail)
