"""Watches: expressions evaluated at each stop, with what they were at earlier ones. An error is shown, never raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from stepper.debug.scopes import Names
from stepper.debug.timeline import Timeline
from stepper.engine.program import CompiledModel
from stepper.errors import UsageError
from stepper.wording import excerpt

if TYPE_CHECKING:
    from stepper.debug.stop_scope import WatchReading
    from stepper.query.expressions import Expression

MOST_READINGS: Final = 10_000


class Watch(Struct, eq=False):
    """An expression and its readings by tick, of which the latest `most` stops are kept.

    `format` is how its value is shown (see formats.py), empty for as it is.
    """

    number: int
    expression: Expression
    most: int
    format: str
    _readings: dict[int, WatchReading] = field(default_factory=dict)

    def __repr__(self) -> str:
        now = "" if self.now is None else f" = {excerpt(self.now.shown or self.now.text)}"
        return f"<Watch {self.number}: {excerpt(self.title)}{now}>"

    @property
    def text(self) -> str:
        """Return the expression as it was written."""
        return self.expression.text

    @property
    def title(self) -> str:
        """Return the expression with its format: `max(h)/e3`."""
        text = f"({self.text})" if " " in self.text else self.text
        return f"{text}/{self.format}" if self.format else self.text

    @property
    def readings(self) -> tuple[WatchReading, ...]:
        """Return all that are kept, in the order of the run."""
        return tuple(self._readings[tick] for tick in sorted(self._readings))

    @property
    def now(self) -> WatchReading | None:
        """Return the reading of the latest stop."""
        return next(reversed(self._readings.values()), None)

    def add(self, reading: WatchReading) -> None:
        """Take a reading in; one of the same moment is replaced, the oldest goes where there are too many."""
        self._readings.pop(reading.tick, None)
        self._readings[reading.tick] = reading
        if len(self._readings) > self.most:
            del self._readings[next(iter(self._readings))]

    def forget_after(self, tick: int) -> None:
        """From this tick on the run takes another course: what was read there no longer holds."""
        self._readings = {at: reading for at, reading in self._readings.items() if at < tick}


class Watches:
    """The watches of one debugger."""

    def __init__(self, compiled: CompiledModel, most: int = MOST_READINGS) -> None:
        self._most = most
        self._watches: dict[int, Watch] = {}
        self._next = 1
        self._names = Names(compiled)

    def __iter__(self) -> Iterator[Watch]:
        return iter(self._watches.values())

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, text: str, timeline: Timeline, format: str = "") -> Watch:
        """Watch an expression from now on. Raise ExpressionError, with the place, for a text that is none."""
        return self.put_back(self._next, text, timeline, format)

    def put_back(self, number: int, text: str, timeline: Timeline, format: str = "") -> Watch:
        """Return the same under a number that it had before. Raise UsageError for one that is taken."""
        if number < 1 or number in self._watches:
            raise UsageError(f"there cannot be a watch {number}")
        from stepper.debug.stop_scope import StopScope, ensure_format
        from stepper.query.expressions import parse

        watch = Watch(number, parse(text), self._most, ensure_format(format))
        self._watches[number] = watch
        self._next = max(self._next, number + 1)
        watch.add(StopScope(timeline, self._names).reading(watch.expression, watch.format))
        return watch

    def clear(self) -> None:
        """Have none, as in the beginning."""
        self._watches.clear()
        self._next = 1

    def delete(self, number: int) -> None:
        """Watch it no longer. Raise UsageError for a number that no watch has."""
        if self._watches.pop(number, None) is None:
            numbers = ", ".join(map(str, self._watches)) or "none"
            raise UsageError(f"there is no watch {number}; there are {numbers}")

    def see(self, timeline: Timeline) -> None:
        """Read all of them at the present stop."""
        if not self._watches:
            return
        from stepper.debug.stop_scope import StopScope

        scope = StopScope(timeline, self._names)
        for watch in self._watches.values():
            watch.add(scope.reading(watch.expression, watch.format))

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""
        for watch in self:
            watch.forget_after(tick)
