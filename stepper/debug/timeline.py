"""Going anywhere in a run, forward and backward: `Timeline` owns the machine and its history.

Forward is the machine itself, with a snapshot where one is due. Backward is a search: replay a stretch that ends at the
present, remember the last moment that fits, and go there; if none fits, take a stretch before it, each eight times as
long as the one before. A replay is checked: at every snapshot and every moment that was shown, the state must have the
fingerprint that it had.

A value that the user changed belongs to its moment: the edits of a tick are part of the state at that tick, and every
replay that comes through makes them again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, Protocol

from msgspec import Struct

from stepper.debug.history import History
from stepper.debug.moments import fingerprint
from stepper.debug.reference_values import ReferenceValues
from stepper.element_types import Array
from stepper.engine.events import Event, EventKind, Every, Watcher
from stepper.engine.frames import Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import StepperError

Fits = Callable[[Event], bool]


class Lookout(Watcher, Protocol):
    """A watcher that knows where to stop: forward, in a search backward, and while moments are only counted.

    It may see late that there was a reason to stop: `found_at` is the tick to go back to. `examine` makes it look at
    what the machine has not asked it about yet, when a movement ends between two questions; whether to stop.
    """

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to look for."""

    @property
    def found_at(self) -> int | None:
        """The tick of the stop that this movement found."""

    def forward(self) -> None:
        """A movement forward begins at the present."""

    def search(self, last: int) -> None:
        """A replay begins, of which the last stop up to tick `last` is wanted."""

    def recount(self) -> None:
        """A replay begins in which moments are only counted."""

    def examine(self) -> bool:
        """Look at what has been passed since the machine asked last; whether to stop."""

    def uncounted(self, tick: int) -> int:
        """The tick from which on moments before `tick` are still to be counted; `tick` if there are none."""

    def counted(self) -> None:
        """The movement has ended."""

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""


class Edit(Struct, frozen=True):
    """A value that the user put into a slot of the frame that runs this program."""

    program: Program
    slot: int
    value: Array

    @property
    def depth(self) -> int:
        """That of the frame on the stack (1: the model's own graph)."""
        return len(self.program.path) + 1


_FIRST_STRETCH: Final = 16
_WIDER: Final = 8
_MOST_FINGERPRINTS: Final = 100_000


class Timeline:
    """A machine with a past.

    What a stop looks like is remembered, and compared when a replay comes back there. To hash a state takes longer than
    most movements: it is done before anything else happens, or when `prove` is called, as by a screen that has nothing
    else to do; a stop need not wait for it.
    """

    def __init__(self, machine: Machine, budget: int) -> None:
        self.machine = machine
        self.history = History(machine.snapshot(), budget)
        self.furthest = 0
        self._warnings: list[str] = []
        self.edits: dict[int, tuple[Edit, ...]] = {}
        self.lookout: Lookout | None = None
        self.reference: ReferenceValues | None = None
        self._fingerprints: dict[int, bytes] = {}
        self._unproved: Snapshot | None = None

    # --- forward -------------------------------------------------------------------------------------------------

    def forward(self, every: Every, fits: Fits, until: int | None = None) -> Event:
        """Run on to the first event that fits, to the end, to a pause, to where the lookout stops, or to `until`."""
        lookout = self._active()
        if lookout is None:
            return self._run(every, fits, until)
        self._count_passed(lookout)
        lookout.forward()
        try:
            event = self._run(every, lambda event: lookout.examine() or fits(event), until)
            lookout.examine()
        except StepperError:
            if not lookout.examine():
                raise
        finally:
            lookout.counted()
        found = lookout.found_at
        if found is None:
            return event
        if found != self.machine.tick:
            self.goto(found)
        return Event(EventKind.STOPPED, found, self.machine.stack[-1])

    def _active(self) -> Lookout | None:
        """The lookout, if it is the machine's watcher and has something to look for."""
        lookout = self.lookout
        return None if lookout is None or lookout.is_idle or self.machine.watcher is not lookout else lookout

    def _count_passed(self, lookout: Lookout) -> None:
        """Replay what was jumped over, where a breakpoint has to count it."""
        present = self.machine.tick
        begin = lookout.uncounted(present)
        if begin >= present:
            return
        self.goto(begin)
        lookout.recount()
        self._run(Every.END, lambda _event: False, present)
        lookout.examine()
        lookout.counted()

    def _run(self, every: Every, fits: Fits, until: int | None = None) -> Event:
        self.prove()  # a state that is held longer may double the memory of a run
        machine, history = self.machine, self.history
        while True:
            begin, started = machine.tick, perf_counter()
            due = history.due(begin)
            event = self._advance(every, due if until is None else min(due, until))
            self.furthest = max(self.furthest, event.tick)
            if event.kind is EventKind.REACHED:
                if event.tick == due:
                    arrived = perf_counter()
                    self._keep()
                    history.took(due - begin, arrived - started, perf_counter() - arrived)
                if until is not None and event.tick >= until:
                    return event
            elif event.kind <= EventKind.STOPPED or fits(event):
                return event

    def _advance(self, every: Every, until: int) -> Event:
        """Let the machine run, but never past a moment that was edited without making the edit."""
        machine = self.machine
        while True:
            edited = min((tick for tick in self.edits if tick > machine.tick), default=until)
            event = machine.advance(every, min(until, edited))
            if machine.tick in self.edits:
                if (lookout := self._active()) is not None:
                    lookout.examine()  # what was before the edit is judged by the values before it
                self._make_edits()
            if event.kind is not EventKind.REACHED or event.tick >= until:
                return event

    def _keep(self) -> None:
        """Take the snapshot that is due, or compare with the one that was taken here before."""
        machine = self.machine
        old = self.history.at(machine.tick)
        if old is None:
            self.history.add(machine.snapshot())
        elif fingerprint(old) != fingerprint(machine.snapshot()):
            self._warn(machine.tick)

    # --- anywhere ------------------------------------------------------------------------------------------------

    def goto(self, tick: int) -> None:
        """Stand after exactly `tick` moves; at the end of the run if it has fewer."""
        machine = self.machine
        tick = max(tick, 0)
        snapshot = self.history.before(tick)
        if tick < machine.tick or snapshot.tick > machine.tick:
            machine.restore(snapshot)
        watcher, machine.watcher = machine.watcher, None
        try:
            while machine.tick < tick and not machine.finished:
                event = self._run(Every.END, lambda _event: False, tick)
                if event.kind is EventKind.PAUSED:
                    break
        finally:
            machine.watcher = watcher
        if machine.tick in self._fingerprints:
            self._look_again()

    def stand(self, present: Snapshot) -> None:
        """Stand at a later moment of the run that was reached before, elsewhere."""
        self.machine.restore(present)
        self.history.add(present)
        self.furthest = max(self.furthest, present.tick)

    def show(self) -> None:
        """Remember what the present looks like, so that coming back here can be checked."""
        tick = self.machine.tick
        if tick not in self._fingerprints and len(self._fingerprints) < _MOST_FINGERPRINTS:
            self._look_again()

    @property
    def warnings(self) -> list[str]:
        """What a replay found different."""
        self.prove()
        return self._warnings

    def prove(self) -> None:
        """Compare the state of the last stop with what was seen there before, if that is still to be done."""
        state, self._unproved = self._unproved, None
        if state is not None:
            found = fingerprint(state)
            if self._fingerprints.setdefault(state.tick, found) != found:
                self._warn(state.tick)

    def _look_again(self) -> None:
        self.prove()
        self._unproved = self.machine.snapshot()

    def _warn(self, tick: int) -> None:
        self._warnings.append(f"replay differs at tick {tick}: the values are not those that were seen there before")

    # --- backward ------------------------------------------------------------------------------------------------

    def backward(self, every: Every, fits: Fits) -> bool:
        """Go to the last earlier moment that fits; whether there was one. Without one, the present stays."""
        return self._search(lambda begin, last: self._last_within(begin, last, every, fits))

    def backward_to_stop(self) -> bool:
        """Go to the last earlier moment at which the lookout stops; whether there is one. If not, the present stays."""
        lookout = self._active()
        if lookout is None:
            return False
        self._count_passed(lookout)
        return self._search(lambda begin, last: self._last_stop_within(begin, last, lookout))

    def _search(self, within: Callable[[int, int], int | None]) -> bool:
        present = self.machine.tick
        last, stretch = present - 1, _FIRST_STRETCH
        while last > 0:
            begin = max(last - stretch, 0)
            found = within(begin, last)
            if found is not None:
                self.goto(found)
                return True
            last, stretch = begin, stretch * _WIDER
        self.goto(present)
        return False

    def _last_within(self, begin: int, last: int, every: Every, fits: Fits) -> int | None:
        """The tick of the last event that fits, of those after tick `begin` up to and with tick `last`."""
        machine = self.machine
        self.goto(begin)
        watcher, machine.watcher = machine.watcher, None  # it has no say in where this ends
        found = None
        try:
            while machine.tick <= last and not machine.finished:
                event = self._advance(every, last + 1)
                if event.kind is EventKind.PAUSED:
                    break
                if event.kind not in (EventKind.REACHED, EventKind.FINISHED) and event.tick <= last and fits(event):
                    found = event.tick
        finally:
            machine.watcher = watcher
        return found

    def _last_stop_within(self, begin: int, last: int, lookout: Lookout) -> int | None:
        """The tick of the last stop of those after tick `begin` up to and with tick `last`."""
        self.goto(begin)
        lookout.search(last)
        if self.machine.tick < last:
            self._run(Every.END, lambda _event: False, last)
        lookout.examine()
        return lookout.found_at

    # --- another course ------------------------------------------------------------------------------------------

    def edit(self, edit: Edit) -> None:
        """Change a value now. What was known of the future is forgotten, for it will be another one."""
        self.prove()
        tick = self.machine.tick
        self.edits[tick] = (*self.edits.get(tick, ()), edit)
        self.edits = {at: made for at, made in self.edits.items() if at <= tick}
        self._fingerprints = {at: known for at, known in self._fingerprints.items() if at < tick}
        self.history.forget_after(tick - 1)
        self._make_edits()
        self.history.add(self.machine.snapshot())
        self.furthest = tick
        if self.lookout is not None:
            self.lookout.forget_after(tick)

    def _make_edits(self) -> None:
        for edit in self.edits[self.machine.tick]:
            self.machine.stack[edit.depth - 1].values[edit.slot] = edit.value

    def branch(self) -> Timeline:
        """The same run with the same past, to go another course from the present; this one stays as it is."""
        self.prove()
        twin = copy.copy(self)
        twin.machine = self.machine.twin()
        twin.machine.watcher = twin.lookout = None
        twin.history = self.history.copy()
        twin._warnings, twin.edits, twin._fingerprints = [], dict(self.edits), dict(self._fingerprints)
        return twin

    def become(self, other: Timeline) -> int | None:
        """Go on as another timeline of the same run; the machine, and whoever looks on, stay the same objects.

        Returns the tick from which on the two differ; None where they do not.
        """
        self.prove()
        other.prove()
        edited = {*self.edits, *other.edits}
        parting = min((tick for tick in edited if self.edits.get(tick) is not other.edits.get(tick)), default=None)
        self.machine.restore(other.machine.snapshot())
        self.history, self.furthest, self._warnings = other.history, other.furthest, other._warnings
        self.edits, self._fingerprints = other.edits, other._fingerprints
        if parting is not None and self.lookout is not None:
            self.lookout.forget_after(parting)
        return parting


class ReferenceOfTimeline:
    """The attribute `reference` of a debugger, which its timeline keeps: another run to compare with, or None.

    With it `ref(x)` in expressions is its value, and `break diff>X` means the distance from it.
    """

    def __get__(self, debugger: Any, _owner: type) -> ReferenceValues | None:
        reference: ReferenceValues | None = debugger.timeline.reference
        return reference

    def __set__(self, debugger: Any, reference: ReferenceValues | None) -> None:
        debugger.timeline.reference = reference
