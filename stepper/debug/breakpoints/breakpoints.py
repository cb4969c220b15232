"""Set, number, enable and delete breakpoints; ask them, by the watcher, while the run runs."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import proxy

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import (
    BEGUN,
    BreakDescription,
    BreakKind,
    Breakpoint,
    Check,
    Counted,
    Expected,
    Guard,
    IterationWindow,
    ValueTest,
    closed,
    iteration_in,
)
from stepper.debug.breakpoints.conditions import operations_of
from stepper.debug.causes.cause import Cause, Trigger
from stepper.debug.scopes import is_body
from stepper.debug.timeline import Timeline
from stepper.element_types import Indices
from stepper.engine.frames import Frame, Frames, Phase
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import StepperError, UsageError

if TYPE_CHECKING:
    from stepper.debug.breakpoints.data_breakpoints import BreakpointFactory, Checks

_NUMPY_FALSE = np.False_
"""The one object that comparisons of numpy's scalars give where they do not hold."""

Asked = tuple[int, Check, Breakpoint]
"""A check with its index (for sorting) and whose it is."""


class Stopped(Struct):
    """A moment at which the run is to stop: whose breakpoints, and what held."""

    tick: int
    owners: list[Breakpoint] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)


class Section:
    """The checks that are asked together: those of the operations `first` to `last`."""

    __slots__ = ("first", "guarded", "last", "plain", "windows")

    def __init__(self, first: int, last: int, asked: Iterable[Asked], windows: Sequence[IterationWindow]) -> None:
        self.first, self.last, self.windows = first, last, tuple(windows)
        self.plain: list[Asked] = []
        guarded: dict[int, tuple[Guard, list[Asked]]] = {}
        for one in asked:
            if first <= one[0] <= last:
                guard = one[1].guard
                if guard is None:
                    self.plain.append(one)
                else:
                    guarded.setdefault(id(guard), (guard, []))[1].append(one)
        self.guarded = list(guarded.values())

    def due(self, stack: Frames, last: int) -> list[Asked]:
        """Return the checks that may hold, up to operation `last`, in the order of their moments."""
        if not self.guarded:
            return self.plain
        found = list(self.plain)
        for guard, asked in self.guarded:
            section = stack, self.first, min(last, self.last)
            if guard.may_hold(*section):
                which = None if guard.which is None else guard.which(*section)
                found += asked if which is None else [one for one in asked if one[0] in which]
        return sorted(found, key=lambda one: one[0]) if len(found) > len(self.plain) else found


class Sections:
    """All sections of one program. `stops` are the operations after which to ask; the last section ends when closed."""

    def __init__(self, program: Program, asked: Sequence[Asked], windows: Sequence[IterationWindow]) -> None:
        asked = sorted(asked, key=lambda one: one[0])
        self.program = program
        self.stops = tuple(sorted(_stops(program, asked)))
        bounds = [BEGUN - 1, *self.stops]
        self._sections = [Section(before + 1, stop, asked, ()) for before, stop in pairwise(bounds)]
        self.last = Section(bounds[-1] + 1, closed(program), asked, windows)
        # The most frequent case by far has a short way: one breakpoint, which most of the time does not hold.
        is_one = len(self.last.plain) == 1 and not (self.last.guarded or windows)
        self.only = self.last.plain[0][1] if is_one else None
        self.never_begun = Section(closed(program), closed(program), [one for one in asked if one[1].at_entry], ())

    def at(self, index: int) -> Section:
        """Return the section in which a moment is."""
        place = bisect.bisect_left(self.stops, index)
        return self._sections[place] if place < len(self._sections) else self.last


def _stops(program: Program, asked: Sequence[Asked]) -> set[int]:
    """After which operations to ask: before each that opens a frame, and where nothing is asked when it is closed."""
    nested = [index for index, operation in enumerate(program.operations) if operation.plans]
    stops: set[int] = set()
    for index, check, _ in asked:
        if check.at_entry:
            stops.add(BEGUN)
        if index >= closed(program):
            continue
        following = next((at for at in nested if at >= index), None)
        if check.prompt or following == index:
            stops.add(index)
        elif following is not None:
            stops.add(following - 1)
        elif not is_body(program):
            stops.add(closed(program) - 1)
    return stops


def _value_watch(ask: Callable[[Frame], bool], test: ValueTest) -> Callable[[Frame], bool]:
    """Return a watch that asks only where the values of the body say so."""
    read, judged = test

    def watch(frame: Frame) -> bool:
        try:
            value = read(frame)
            if value is _NUMPY_FALSE or value is False or not judged(value):
                return False
        except Exception:  # whoever is asked says what is wrong
            pass
        return ask(frame)

    return watch


class BreakpointWatcher:
    """The watcher (see engine.events.Watcher) for the breakpoints of one run."""

    def __init__(self, machine: Machine) -> None:
        self.machine: Machine = proxy(machine)  # it holds this watcher
        self.found: Stopped | None = None
        self.stops: Mapping[int, Indices] = {}
        self.watches_iterations = False
        self._programs: dict[int, Sections] = {}
        self._known: tuple[Breakpoint, ...] = ()
        self._owners: tuple[Breakpoint, ...] = ()
        self._examined = 0
        self._last = sys.maxsize
        self._backward = self._counts_only = False
        self._fell_short: tuple[int, int] | None = None
        self._logged = 0

    @property
    def wanted(self) -> object:
        """Return the descriptions of the breakpoints that are asked; equal ones stop at the same moments of a run."""
        return tuple((owner.number, owner.description) for owner in self._owners)

    @property
    def seeks_anomaly(self) -> bool:
        """True while the next anomaly is the aim of a movement."""
        return any(owner.trigger is Trigger.ANOMALY for owner in self._owners)

    @property
    def found_at(self) -> int | None:
        """Return the tick of the stop that this movement found."""
        return None if self.found is None else self.found.tick

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to ask about."""
        return not self._owners

    def watch(self, owners: Iterable[Breakpoint]) -> None:
        """Ask about those of these breakpoints that are enabled from now on."""
        self._known = tuple(owners)
        self._owners = tuple(owner for owner in self._known if owner.description.enabled)
        self.found = self._fell_short = None
        by_program: dict[int, tuple[Program, list[Asked], list[IterationWindow]]] = {}
        for owner in self._owners:
            for check in owner.checks:
                entry = by_program.setdefault(id(check.program), (check.program, [], []))
                entry[1].append((check.index, check, owner))
            for window in owner.windows:
                by_program.setdefault(id(window.program), (window.program, [], []))[2].append(window)
        self._programs = {key: Sections(*entry) for key, entry in by_program.items()}
        self.stops = {key: sections.stops for key, sections in self._programs.items() if sections.stops}
        self.watches_iterations = any(is_body(sections.program) for sections in self._programs.values())

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""
        for owner in self._known:
            owner.forget_after(tick)

    # --- a movement ----------------------------------------------------------------------------------------------

    def forward(self) -> None:
        """Run on from the present: stop at the first moment from here on, count, and write logs."""
        self._begin(sys.maxsize, backward=False, counts_only=False)
        short, self._fell_short = self._fell_short, None
        self._logged = 0 if short is None or short[0] != self.machine.tick else short[1]

    def fell_short(self) -> None:
        """Note that the run did not come back to the stop that was found.

        Lines that are logged already are not logged again when the run continues.
        """
        assert self.found is not None
        self._fell_short, self.found = (self.machine.tick, self.found.tick), None

    def search(self, last: int) -> None:
        """A stretch of the past is replayed from the present up to tick `last`: note the last stop in it."""
        self._begin(last, backward=True, counts_only=False)

    def recount(self) -> None:
        """A stretch is replayed that breakpoints have not counted yet."""
        self._begin(sys.maxsize, backward=False, counts_only=True)

    def _begin(self, last: int, *, backward: bool, counts_only: bool) -> None:
        self.found = None
        self._examined, self._last = self.machine.tick, last
        self._backward, self._counts_only = backward, counts_only

    def uncounted(self, tick: int) -> int:
        """From which tick on moments before `tick` were not counted that have to be."""
        return min((owner.counted_to for owner in self._owners if owner.needs_counting), default=tick)

    def counted(self) -> None:
        """All moments up to the present were looked at."""
        present = self.machine.tick if self.found is None else min(self.found.tick, self.machine.tick)
        for owner in self._owners:
            owner.counted(present)

    # --- what the machine asks -----------------------------------------------------------------------------------

    def after_operation(self, frame: Frame, index: int) -> bool:
        """Return an operation has run after which there is something to ask; whether to stop."""
        sections = self._programs.get(id(frame.program))
        if sections is None:
            return False
        if index == BEGUN and is_body(frame.program) and iteration_in(frame) < 0:
            return frame.phase is Phase.LEAVING and self._examine(sections.never_begun, *self._closed_now(frame))
        return self._examine(sections.at(index), index, self.machine.tick - index)

    def _closed_now(self, frame: Frame) -> tuple[int, int]:
        index = closed(frame.program)
        return index, self.machine.tick - index

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool] | None:
        """Return what to call after each iteration of this frame."""
        sections = self._programs.get(id(frame.program))
        if sections is None:
            return None
        only, stack, ask = sections.only, self.machine.stack, self.after_iteration
        end = sections.last
        if only is None and len(end.guarded) == 1 and not (end.plain or end.windows):
            first, last, any_may_hold = end.first, end.last, end.guarded[0][0].may_hold
            return lambda frame: any_may_hold(stack, first, last) and ask(frame)
        if only is None or only.may_hold is None:
            return ask
        may_hold = only.may_hold
        if only.of_values is not None:
            return _value_watch(ask, only.of_values)

        def watch(frame: Frame) -> bool:
            try:
                if not may_hold(stack):
                    return False
            except StepperError:
                pass  # told by whoever is asked
            return ask(frame)

        return watch

    def after_iteration(self, frame: Frame) -> bool:
        """Return an iteration has been closed; whether to stop."""
        sections = self._programs.get(id(frame.program))
        return sections is not None and self._examine(sections.last, *self._closed_now(frame))

    def examine(self) -> bool:
        """Ask about what was passed since the machine asked last; whether to stop. For whoever interrupts a run."""
        if not self.machine.stack:
            return False
        frame = self.machine.stack[-1]
        sections = self._programs.get(id(frame.program))
        if sections is None:
            return False
        running = frame.phase is Phase.RUNNING
        if not running and is_body(frame.program) and iteration_in(frame) < 0:
            return False
        index = frame.pc - 1 if running else closed(frame.program)
        with np.errstate(all="ignore"):
            return self._examine(sections.at(index), index, self.machine.tick - index)

    def _examine(self, section: Section, index: int, base: int) -> bool:
        """Ask the checks of a section whose moments were between the last examination and operation `index`."""
        stack, examined = self.machine.stack, self._examined
        for place, check, owner in section.due(stack, index):
            tick = base + place
            if place > index or tick > self._last:
                break
            if tick <= examined:
                continue
            if self.found is not None and not self._backward and tick > self.found.tick:
                break
            causes = check.test(stack)
            if causes is not None and owner.passed(tick, forward=not self._backward):
                self._stop(tick, owner, causes, stack)
        self._examined = max(examined, self.machine.tick)
        if index == section.last:
            for window in section.windows:
                window.note(stack)
        return self.found is not None and not self._backward

    def _stop(self, tick: int, owner: Breakpoint, causes: Sequence[Cause], stack: Frames) -> None:
        if self._counts_only:
            return
        if owner.log is not None:
            if not self._backward and tick > self._logged:
                owner.log(stack, tick)
            return
        if self.found is None or self.found.tick != tick:
            self.found = Stopped(tick)
        if owner not in self.found.owners:
            self.found.owners.append(owner)
        self.found.causes += owner.signed(causes)


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
        """Return the expected operations, with the graphs from which their patterns are seen."""
        return tuple(self._exceptions)

    # --- setting -------------------------------------------------------------------------------------------------

    def add(self, description: BreakDescription) -> Breakpoint:
        """Set the breakpoint of a description. Raise UsageError for what is wrong in it."""
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
        operations_of(pattern, self._timeline.machine.compiled, where)
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
