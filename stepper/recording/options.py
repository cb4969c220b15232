"""Options of a recording: how much of each value, of which operations, in which iterations."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from stepper.errors import UsageError
from stepper.name_patterns import Pattern, PatternError, regex

T = TypeVar("T")
_MOST_RANGES: Final = 100
_RANGE: Final = re.compile(r"(-?[0-9]{1,15})?(?:(:)(-?[0-9]{1,15})?)?")


class Amount(StrEnum):
    """How much is recorded of the values of bodies; the statistics with everything but NONE."""

    ALL = "all"
    CARRIED = "carried"
    STATS = "stats"
    NONE = "none"


class Iterations(Struct, frozen=True):
    """A choice of iterations: ranges as Python's slices, a negative bound counted from the end of the loop's run."""

    text: str = ""
    ranges: tuple[tuple[int | None, int | None], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Iterations:
        """Read ranges such as `0:10,-1`; an empty text is all. UsageError for anything else."""
        ranges: list[tuple[int | None, int | None]] = []
        for part in text.replace(" ", "").split(",") if text.strip() else []:
            match = _RANGE.fullmatch(part)
            if match is None or not part or len(ranges) == _MOST_RANGES:
                raise UsageError(f"'{part}' is not a range of iterations; write for example 0:10,-1")
            first = None if match[1] is None else int(match[1])
            last = None if match[3] is None else int(match[3])
            if match[2] is None:
                assert first is not None, "a part without a colon is one number"
                last = None if first == -1 else first + 1
            if first is not None and last is not None and (first < 0) == (last < 0) and last <= first:
                raise UsageError(f"'{part}' has no iterations: it ends before it begins")
            ranges.append((first, last))
        return cls(text, tuple(ranges))

    @property
    def everything(self) -> bool:
        """True if all iterations are chosen."""
        return not self.ranges

    @property
    def tail(self) -> int:
        """For how many of the latest iterations it stays open whether they are chosen, until the loop has ended."""
        return max((-bound for pair in self.ranges for bound in pair if bound is not None and bound < 0), default=0)

    def includes(self, iteration: int, count: int) -> bool:
        """Return True if an iteration of a loop that ran `count` of them is chosen."""
        return not self.ranges or any(_within(iteration, count, *pair) for pair in self.ranges)


def _within(iteration: int, count: int, first: int | None, last: int | None) -> bool:
    begin = 0 if first is None else first + count if first < 0 else first
    end = count if last is None else last + count if last < 0 else last
    return begin <= iteration < end


class RecordingOptions(Struct, frozen=True):
    """Values to record. `operations` is searched for in the names of layers (None: all).

    Iterations counted from the end are known only when the loop has ended: of those, a run that goes on
    from a snapshot records what comes after it.
    """

    amount: Amount = Amount.CARRIED
    operations: Pattern | None = None
    iterations: Iterations = field(default_factory=Iterations)

    @classmethod
    def parse(
        cls, amount: str = Amount.CARRIED, operations: str | None = None, iterations: str = ""
    ) -> RecordingOptions:
        """Read the words of the command line. UsageError."""
        if amount not in list(Amount):
            raise UsageError(f"there is no amount '{amount}' to record; choose {', '.join(Amount)}")
        try:
            pattern = None if operations is None else regex(operations)
        except PatternError as error:
            raise UsageError(f"'{operations}' is not a regular expression: {error}") from None
        return cls(Amount(amount), pattern, Iterations.parse(iterations))

    def names(self, layer: str) -> bool:
        """Return True if the layer of this name is chosen."""
        return self.operations is None or self.operations.found_in(layer)

    def to_json(self) -> str:
        """Return the text for the file."""
        pattern = None if self.operations is None else self.operations.text
        return json.dumps({"amount": self.amount, "operations": pattern, "iterations": self.iterations.text})

    @classmethod
    def from_json(cls, data: Any) -> RecordingOptions:
        """Read a file's JSON; ValueError, TypeError, KeyError or UsageError for other data."""
        return cls.parse(str(data["amount"]), data["operations"], str(data["iterations"]))


class PendingIterations(Generic[T]):
    """Items of the latest iterations of each activation, as long as the end of the loop may still choose them."""

    def __init__(self, iterations: Iterations) -> None:
        self._iterations, self._tail = iterations, iterations.tail
        self._waiting: dict[int, deque[tuple[int, T]]] = {}

    def decided(self, activation: int, iteration: int, item: T, *, ended: bool) -> Iterator[T]:
        """Yield the chosen items about which this new one decides, and that the loop has `ended` with it."""
        waiting = self._waiting.setdefault(activation, deque())
        waiting.append((iteration, item))
        while waiting and (ended or len(waiting) > self._tail):
            number, oldest = waiting.popleft()
            # Not among the last `tail`: no bound that counts from the end is reached, however long the loop goes on.
            if self._iterations.includes(number, iteration + 1):
                yield oldest
        if ended:
            del self._waiting[activation]

    def is_certain(self, iteration: int | None) -> bool:
        """True if an iteration is chosen whatever comes after it; that of no loop is."""
        return iteration is None or self._iterations.includes(iteration, iteration + 1 + self._tail)
