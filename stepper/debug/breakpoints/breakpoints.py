"""The breakpoints of a run: set, numbered, enabled, disabled, deleted; what is wrong is refused when it is set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Breakpoint, Counted, Expected
from stepper.debug.breakpoints.watcher import BreakpointWatcher
from stepper.debug.causes.cause import Trigger
from stepper.debug.timeline import Timeline
from stepper.engine.program import Program
from stepper.errors import UsageError

if TYPE_CHECKING:
    from stepper.debug.breakpoints.data_breakpoints import BreakpointFactory, Checks

Sink = Callable[["LogMessage"], None]
Counts = tuple[Counted, Counted]


class LogMessage(str):
    """A line of a logpoint, with the number of the logpoint and the tick at which it was written."""

    number: int
    tick: int

    def __new__(cls, text: str, number: int, tick: int) -> LogMessage:
        """Return the text with these."""
        made = super().__new__(cls, text)
        made.number, made.tick = number, tick
        return made


class Breakpoints:
    """The breakpoints of one run, by number from 1. `sink` gets the lines of logpoints."""

    def __init__(self, timeline: Timeline, watcher: BreakpointWatcher, sink: Sink = print) -> None:
        self.sink = sink
        self._timeline = timeline
        self._watcher = watcher
        self._by_number: dict[int, Breakpoint] = {}
        self._exceptions: list[Expected] = []
        self._number = 0

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(self._by_number.values())

    def __len__(self) -> int:
        return len(self._by_number)

    def __getitem__(self, number: int) -> Breakpoint:
        """Return the breakpoint with this number. Raise UsageError where there is none."""
        try:
            return self._by_number[number]
        except KeyError:
            known = f"there are {', '.join(map(str, self._by_number))}" if self._by_number else "there are none"
            raise UsageError(f"there is no breakpoint {number}; {known}") from None

    @property
    def last_number(self) -> int:
        """Return the number that was given last; none is given twice, also where its breakpoint is gone."""
        return self._number

    @last_number.setter
    def last_number(self, number: int) -> None:
        self._number = max(self._number, number)

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Return the patterns of operations in which NaN and Inf are expected."""
        return tuple(expected.pattern for expected in self._exceptions)

    @property
    def expected(self) -> tuple[Expected, ...]:
        """Return the same, with the graphs from which they are seen."""
        return tuple(self._exceptions)

    # --- setting -------------------------------------------------------------------------------------------------

    def add(self, description: BreakDescription) -> Breakpoint:
        """Set a breakpoint as it is described. Raise UsageError for what is wrong in it."""
        breakpoint = self._new(self._number + 1, description, self._where)
        breakpoint.note = self._factory.ensure_elements(description, self._where)
        self._number += 1
        self._by_number[breakpoint.number] = breakpoint
        self._watch()
        return breakpoint

    def put_back(self, number: int, description: BreakDescription, where: Program, counts: Counts) -> None:
        """Set one that was there before, under its number. Raise UsageError."""
        if number < 1 or number in self._by_number:
            raise UsageError(f"there cannot be a breakpoint {number}")
        breakpoint = self._new(number, description, where)
        breakpoint.counts = counts
        self._number = max(self._number, number)
        self._by_number[number] = breakpoint
        self._watch()

    def change(self, number: int, description: BreakDescription) -> Breakpoint:
        """Have one wait for something else, under its number and from the present on. Raise UsageError."""
        before = self[number]
        kept = before.description
        description = replace(description, enabled=kept.enabled, commands=kept.commands, need_trust=kept.need_trust)
        breakpoint = self._new(number, description, before.where)
        breakpoint.note = self._factory.ensure_elements(description, before.where)
        self._by_number[number] = breakpoint
        self._watch()
        return breakpoint

    def attach(self, number: int, commands: tuple[str, ...]) -> Breakpoint:
        """Have a prompt carry these out whenever the breakpoint stops; none take them away. Raise UsageError."""
        breakpoint = self[number]
        if breakpoint.description.kind is BreakKind.LOG:
            raise UsageError(f"breakpoint {number} writes lines and never stops, so it can have no commands")
        breakpoint.description = replace(breakpoint.description, commands=commands, need_trust=False)
        return breakpoint

    @property
    def distrusted(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints whose commands came out of a file and need the user's agreement."""
        return tuple(one for one in self if one.description.need_trust)

    def trust(self, number: int | None = None) -> None:
        """Agree to the commands of a breakpoint, or of all, that came out of a file. Raise UsageError."""
        for breakpoint in self.distrusted if number is None else [self[number]]:
            breakpoint.description = replace(breakpoint.description, need_trust=False)

    def clear(self) -> None:
        """Have none, and no exceptions, as in the beginning."""
        self._exceptions.clear()
        self._number = 0
        self.delete()

    def delete(self, number: int | None = None) -> None:
        """Take a breakpoint away, or all. Raise UsageError for an unknown number."""
        if number is None:
            self._by_number.clear()
        else:
            del self._by_number[self[number].number]
        self._watch()

    def enable(self, number: int | None = None, *, enabled: bool = True) -> None:
        """Let a breakpoint stop the run, or all; one that does not costs nothing."""
        for breakpoint in [self[number]] if number is not None else list(self):
            breakpoint.description = replace(breakpoint.description, enabled=enabled)
        self._watch()

    def disable(self, number: int | None = None) -> None:
        """Keep a breakpoint, or all, but do not stop there; it costs nothing then."""
        self.enable(number, enabled=False)

    def ignore(self, number: int, count: int) -> None:
        """Do not stop at the next `count` moments at which this breakpoint would, counted from the present."""
        if count < 0:
            raise UsageError(f"an ignore count is not negative, {count} is")
        breakpoint, tick = self[number], self._timeline.machine.tick
        breakpoint.description = replace(breakpoint.description, ignore=count, ignored_from=tick)
        breakpoint.ignore(count, tick)

    def expect(self, pattern: str, where: Program | None = None) -> None:
        """NaN and Inf are expected in the operations that the pattern names: do not stop there. Raise UsageError."""
        where = where or self._where
        self._factory.ensure_operations(pattern, where)
        self._exceptions.append(Expected(pattern, where))
        for breakpoint in self:
            if self._factory.has_exceptions(breakpoint.description):
                breakpoint.checks = tuple(self._factory.watched(breakpoint.description, breakpoint.where).checks)
        self._timeline.forget_search()
        self._watch()

    # --- while the run goes on -----------------------------------------------------------------------------------

    def stopped(self) -> None:
        """The run has stopped: those that were for once go."""
        found = self._watcher.found
        for breakpoint in () if found is None else found.owners:
            if breakpoint.description.once and breakpoint.number in self._by_number:
                self.delete(breakpoint.number)

    def until(self, text: str) -> AbstractContextManager[None]:
        """Watch, within this, one more: where the condition holds."""
        description = BreakDescription(BreakKind.WHEN, text, once=True)
        return self._with(description, Trigger.AIM, self._factory.until(text, self._where))

    def target(self, text: str) -> AbstractContextManager[None]:
        """Watch, within this, one more: at what the text names, of a loop its first iteration."""
        description = BreakDescription(BreakKind.AT, text, once=True)
        return self._with(description, Trigger.AIM, self._factory.aims(description, self._where))

    def anomalies(self) -> AbstractContextManager[None]:
        """Watch, within this, one more: where NaN or Inf is made, or a carried shape changes."""
        description = BreakDescription(BreakKind.WHEN, str(Trigger.ANOMALY), once=True)
        return self._with(description, Trigger.ANOMALY, self._factory.anomalies(self._where))

    @property
    def seeks_anomaly(self) -> bool:
        """True within `anomalies`."""
        return self._watcher.seeks_anomaly

    def watched_by(self, watcher: BreakpointWatcher) -> None:
        """Let another watcher ask about them from now on."""
        self._watcher = watcher
        self._watch()

    @contextmanager
    def _with(self, description: BreakDescription, trigger: Trigger, found: Checks) -> Iterator[None]:
        tick, where = self._timeline.machine.tick, self._where
        self._watch(Breakpoint(0, description, found.checks, found.windows, tick, where, trigger=trigger))
        try:
            yield
        finally:
            self._watch()

    def _watch(self, *others: Breakpoint) -> None:
        self._watcher.watch([*self, *others])

    # --- making --------------------------------------------------------------------------------------------------

    @property
    def _factory(self) -> BreakpointFactory:
        # all kinds of breakpoints; a run begins without any
        from stepper.debug.breakpoints.data_breakpoints import BreakpointFactory

        return BreakpointFactory(self._timeline, self._exceptions)

    @property
    def _where(self) -> Program:
        """From where names are seen: the innermost frame, at the end of the run the model's own graph."""
        machine = self._timeline.machine
        return machine.program

    def _new(self, number: int, description: BreakDescription, where: Program) -> Breakpoint:
        if min(description.hit, description.ignore) < 0:
            raise UsageError("a hit count and an ignore count are not negative")
        checks, windows, line = self._factory.watched(description, where)
        log = None if line is None else lambda stack, tick: self.sink(LogMessage(line.text(stack), number, tick))
        return Breakpoint(number, description, checks, windows, self._timeline.machine.tick, where, log)
