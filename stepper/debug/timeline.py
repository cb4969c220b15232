"""Go anywhere in a run, forward and backward: `Timeline` owns the machine and its history.

The history is snapshots at ever wider distances, within a budget of memory. The distance is as many moves as a replay
makes in a few milliseconds: fast loops are hardly slowed down, slow loops are not replayed for long. A snapshot shares
its tensors with the machine and with its neighbours; it costs only the memory that it alone still holds. When there are
too many snapshots, or they cost too much, every second one goes and the distance doubles. So going anywhere costs one
restore and a replay of at most one distance, and the memory stays bounded however long the run is.

Forward is the machine itself, with a snapshot where one is due. Backward is a search: replay a stretch that ends at the
present, remember the last moment that fits, and go there. If none fits, take a stretch before it, each eight times as
long as the one before, until one takes a while. A replay is checked: at every snapshot and every moment that was shown,
the state must have the fingerprint that it had.

A pause is heeded wherever the run is: a movement forward then stands where it has come, a movement backward where it
began, and a search backward remembers how far it has looked.

A value that the user changed belongs to its moment: the edits of a tick are part of the state at that tick, and every
replay that comes through makes them again.
"""

from __future__ import annotations

import bisect
import copy
import math
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol
from weakref import proxy

import numpy as np
from msgspec import Struct

from stepper.debug.scopes import ReferenceValues
from stepper.debug.stop import SearchedRange, fingerprint, is_same_state, iteration_of
from stepper.element_types import Array, Indices
from stepper.engine import transitions
from stepper.engine.frames import (
    Activation,
    Event,
    EventKind,
    Every,
    Frame,
    Frames,
    RunObserver,
    Snapshot,
    Watcher,
    place,
)
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import Operation, Program
from stepper.engine.rules import Note
from stepper.engine.run import LoopSummary
from stepper.errors import Paused, StepperError
from stepper.ir.model import Layer
from stepper.records import Record

# --- Names of branches that are given --------------------------------------------------------------------------------


ORIGINAL = "original"
"""The branch with which a run begins."""

# ---------------------------------------------------------------------------------------------------------------------


class Edit(Record):
    """A change that belongs to the frame, or the constants, of a program."""

    program: Program

    @property
    def depth(self) -> int:
        """Return the depth of the frame on the stack (1: the model's own graph)."""
        return len(self.program.path) + 1

    def frame(self, machine: Machine) -> Frame:
        """Return the frame that runs the program."""
        return machine.stack[self.depth - 1]

    def make(self, machine: Machine) -> None:
        """Change the machine, which stands at the moment of the edit."""
        raise NotImplementedError


class ValueEdit(Edit, frozen=True):
    """Another value in a slot of a frame; `before` is the value that it replaces."""

    slot: int
    value: Array
    before: Array

    def make(self, machine: Machine) -> None:
        """Put the value into the slot."""
        frame = self.frame(machine)
        frame.values[self.slot] = self.value
        _tell(machine, frame, self.slot)


class ConstantEdit(Edit, frozen=True):
    """Another value of a constant, from the moment on in every run of the program."""

    slot: int
    value: Array

    def make(self, machine: Machine) -> None:
        """Compute with the value from now on."""
        machine.set_constant(self.program, self.slot, self.value)


class TripCountEdit(Edit, frozen=True):
    """Another trip count of the loop that runs in the frame; None: no limit."""

    count: int | None

    def make(self, machine: Machine) -> None:
        """Give the loop the trip count."""
        frame = self.frame(machine)
        transitions.set_trip_count(frame, self.count)
        _tell(machine, frame, None)


class ConditionEdit(Edit, frozen=True):
    """Set the condition of the frame's loop, for the end of the present iteration or for now."""

    holds: bool

    def make(self, machine: Machine) -> None:
        """Give the loop the condition."""
        frame = self.frame(machine)
        transitions.set_condition(frame, holds=self.holds)
        _tell(machine, frame, None)


def _tell(machine: Machine, frame: Frame, slot: int | None) -> None:
    for observer in machine.observers:
        observer.changed(frame, slot)


def same_edit(a: Edit, b: Edit) -> bool:
    """True if two edits change the same in the same way, as an edit does that was kept and made again."""
    if type(a) is not type(b) or a.program is not b.program:
        return False
    if isinstance(a, ValueEdit | ConstantEdit) and isinstance(b, ValueEdit | ConstantEdit):
        one, other = np.asarray(a.value), np.asarray(b.value)
        alike = (a.slot, one.dtype, one.shape) == (b.slot, other.dtype, other.shape)
        return alike and (one is other or one.tobytes() == other.tobytes())
    return a == b


def same_edits(a: Sequence[Edit], b: Sequence[Edit]) -> bool:
    """True if the edits of a moment are the same."""
    return len(a) == len(b) and all(same_edit(one, other) for one, other in zip(a, b, strict=True))


def same_by_tick(a: Mapping[int, Sequence[Edit]], b: Mapping[int, Sequence[Edit]]) -> bool:
    """True if two courses of a run have the same edits at the same ticks."""
    return a.keys() == b.keys() and all(same_edits(edits, b[tick]) for tick, edits in a.items())


# --- Which way a run goes, as something to compare: states keep it, and know whether what they saw still holds -------


class RunCourse:
    """Identify the path of a run by its edits; equal to another path of the very same edits.

    The branch does not matter.
    """

    __slots__ = ("_edits",)

    def __init__(self, edits: Mapping[int, tuple[Edit, ...]] | None = None) -> None:
        self._edits = tuple(sorted((edits or {}).items(), key=lambda made: made[0]))

    @property
    def _key(self) -> tuple[tuple[int, Indices], ...]:
        """Identities stand for edits, which are kept here: a value set anew to the same is another edit."""
        return tuple((tick, tuple(map(id, made))) for tick, made in self._edits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunCourse) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


MOST_ENDS = 100_000
"""Loop ends that are kept, the first ones of a run."""


class LastIteration(NamedTuple):
    """The last iteration of a loop, and the tick at which it was closed."""

    layer: Layer
    iteration: int
    tick: int


class RunSummary(Record, eq=False):
    """Hold the loops of a run that has ended, and notes on its rule book.

    The notes say where the rule book `other_rules` departs from the rule book of the run. `is_partial` is True if loops
    ended that were not counted: before the debugger listened, or in another branch. `last` is the last iteration of the
    loop of the main graph that ended last, of any loop if the main graph has none; None if no loop ran an iteration.
    """

    loops: tuple[LoopSummary, ...]
    is_partial: bool
    notes: tuple[Note, ...]
    other_rules: str
    last: LastIteration | None


class _LoopEnd(NamedTuple):
    operation: Operation
    path: str
    iterations: int
    ended: EndReason
    depth: int


class LoopEndLog(RunObserver):
    """Ends of loops by tick, as a machine reports them."""

    def __init__(self, machine: Machine) -> None:
        self._machine: Machine = proxy(machine)  # it holds this observer
        self._ends: dict[int, _LoopEnd] = {}
        self._paths: dict[int, str] = {}
        self._is_partial = machine.tick > 0
        machine.observers = (*machine.observers, self)

    def loop_left(self, stack: Frames, activation: Activation) -> None:
        """Count the end."""
        if len(self._ends) >= MOST_ENDS:
            self._is_partial |= self._machine.tick not in self._ends
            return
        operation = activation.operation
        path = self._paths.get(id(operation))
        if path is None:
            path = self._paths[id(operation)] = place(stack, operation, iterations=False)
        assert activation.ended is not None, "a loop leaves for a reason"
        end = _LoopEnd(operation, path, activation.iteration + 1, activation.ended, len(stack))
        self._ends[self._machine.tick] = end

    def forget_after(self, tick: int) -> None:
        """Drop the ends after a tick from which on the run takes another course."""
        self._ends = {at: end for at, end in self._ends.items() if at <= tick}
        self._is_partial |= self._machine.tick > tick

    def summary(self) -> RunSummary | None:
        """Return the summary; None before the end of the run."""
        machine = self._machine
        if not machine.finished:
            return None
        loops: dict[int, LoopSummary] = {}
        for _, end in sorted(self._ends.items()):
            layer = end.operation.layer
            empty = LoopSummary(end.path, layer.id, layer.type, layer.name, layer.line, word=layer.iteration_word)
            loop = loops.setdefault(id(end.operation), empty)
            loop.count(end.iterations, end.ended)
        notes = tuple(machine.notes)
        return RunSummary(tuple(loops.values()), self._is_partial, notes, str(machine.rules.other), self._last())

    def _last(self) -> LastIteration | None:
        ran = [(end.depth == 1, tick, end) for tick, end in self._ends.items() if end.iterations]
        if not ran:
            return None
        _, tick, end = max(ran, key=lambda one: one[:2])
        return LastIteration(end.operation.layer, end.iterations - 1, tick - 1)  # the move after it left the loop


Fits = Callable[[Event], bool]


_MOST_SNAPSHOTS = 512
_SHORTEST = 16
_REPLAY_SECONDS = 0.004
_PER_SNAPSHOT = 2000
_SCALAR = 32


class History:
    """Snapshots of one run by tick. The first one, of the start, always stays."""

    def __init__(self, start: Snapshot, budget: int) -> None:
        self.budget = budget
        self.distance = self._narrowest = _SHORTEST
        self._snapshots: list[Snapshot] = []
        self._ticks: list[int] = []
        self._holders: Counter[int] = Counter()
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self.add(start)

    @property
    def bytes(self) -> int:
        """Return what the snapshots hold, in bytes; tensors that several hold count once, constants not at all."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._snapshots)

    def due(self, tick: int) -> int:
        """Return the tick at which the next snapshot is to be taken, for a machine that is at `tick`."""
        return (tick // self.distance + 1) * self.distance

    def took(self, moves: int, seconds: float, keeping: float = 0.0) -> None:
        """Record that a stretch of the run took that long, and set the distance of snapshots.

        The distance is set for a replay of the right length, if memory allows. `keeping` is the time that its snapshot
        took. A snapshot of a body of thousands of operations takes longer than a few moves, and no run shall spend more
        time on its snapshots than on itself.
        """
        right = max(_REPLAY_SECONDS, 2 * keeping)
        if seconds < right / 2 and moves >= self.distance:
            self.distance *= 2
        elif seconds > right * 4 and self.distance > self._narrowest:
            self.distance //= 2

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, unless there is one of its tick already; then thin out if that is too much."""
        index = bisect.bisect_left(self._ticks, snapshot.tick)
        if index < len(self._ticks) and self._ticks[index] == snapshot.tick:
            return
        self._snapshots.insert(index, snapshot)
        self._ticks.insert(index, snapshot.tick)
        self._count(snapshot, 1)
        self._fit()

    def limit(self, budget: int) -> None:
        """From now on hold at most that many bytes."""
        self.budget = budget
        self._fit()

    def _fit(self) -> None:
        while (self._bytes > self.budget or len(self) > _MOST_SNAPSHOTS) and len(self) > 2:
            self._thin_out()

    def at(self, tick: int) -> Snapshot | None:
        """Return the snapshot of exactly this tick, if there is one."""
        snapshot = self.before(tick)
        return snapshot if snapshot.tick == tick else None

    def before(self, tick: int) -> Snapshot:
        """Return the latest snapshot whose tick is not above `tick`."""
        return self._snapshots[bisect.bisect_right(self._ticks, tick) - 1]

    def latest(self, fits: Callable[[Snapshot], bool]) -> Snapshot | None:
        """Return the latest snapshot that fits."""
        return next((one for one in reversed(self._snapshots) if fits(one)), None)

    def forget_after(self, tick: int) -> None:
        """Drop the snapshots of later ticks: the run is about to take another course."""
        keep = bisect.bisect_right(self._ticks, tick)
        for snapshot in self._snapshots[keep:]:
            self._count(snapshot, -1)
        del self._snapshots[keep:], self._ticks[keep:]

    def copy(self) -> History:
        """Return the same past, to go on differently from here; snapshots are shared."""
        twin = History(self._snapshots[0], self.budget)
        twin.distance, twin._narrowest = self.distance, self._narrowest
        for snapshot in self._snapshots[1:]:
            twin.add(snapshot)
        return twin

    def _thin_out(self) -> None:
        """Keep the first, and of the others those that fit a distance twice as wide."""
        self.distance = self._narrowest = self.distance * 2
        kept = [self._snapshots[0]]
        for snapshot in self._snapshots[1:]:
            # One of each stretch of the new distance; the last one stays, or the run would lose its newest past.
            if snapshot.tick // self.distance != kept[-1].tick // self.distance:
                kept.append(snapshot)
            else:
                self._count(snapshot, -1)
        self._snapshots = kept
        self._ticks = [snapshot.tick for snapshot in kept]

    def _count(self, snapshot: Snapshot, sign: int) -> None:
        self._bytes += sign * _PER_SNAPSHOT
        for identity, size in _held(snapshot):
            before = self._holders[identity]
            self._holders[identity] = before + sign
            if before + sign == 0:
                self._bytes -= size
                del self._holders[identity]
            elif before == 0:
                self._bytes += size


def _held(snapshot: Snapshot) -> Iterator[tuple[int, int]]:
    """Identity and size of every buffer that a snapshot keeps alive, the model's constants left out."""
    for frame in snapshot.frames:
        yield from _held_by_frame(frame)


def _held_by_frame(frame: Frame) -> Iterator[tuple[int, int]]:
    for value, constant in zip(frame.values, frame.program.template, strict=True):
        if value is not None and value is not constant:
            yield _buffer(value)
    if frame.activation is not None:
        for scan in frame.activation.scans:
            yield scan.identity, scan.nbytes


def _buffer(value: Any) -> tuple[int, int]:
    """Return the memory behind an array: the memory of its base, which many views may share."""
    if not isinstance(value, np.ndarray):
        return id(value), _SCALAR
    while isinstance(value.base, np.ndarray):
        value = value.base
    return id(value), value.nbytes + _SCALAR


# --- going anywhere --------------------------------------------------------------------------------------------------


class StopWatcher(Watcher, Protocol):
    """A watcher that knows where to stop: forward, in a search backward, and while moments are only counted.

    It may see late that there was a reason to stop: `found_at` is the tick to go back to. `examine` makes it look at
    what the machine has not asked it about yet, when a movement ends between two questions; whether to stop.
    """

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to look for."""

    @property
    def found_at(self) -> int | None:
        """Return the tick of the stop that this movement found."""

    def forward(self) -> None:
        """A movement forward begins at the present."""

    def search(self, last: int) -> None:
        """Begin a replay; the last stop up to tick `last` is wanted."""

    def recount(self) -> None:
        """A replay begins in which moments are only counted."""

    def examine(self) -> bool:
        """Look at what has been passed since the machine asked last; whether to stop."""

    def uncounted(self, tick: int) -> int:
        """Return the tick from which on moments before `tick` are still to be counted; `tick` if there are none."""

    def counted(self) -> None:
        """The movement has ended."""

    def fell_short(self) -> None:
        """A pause came on the way back to the stop that was found: the run stands before that, and comes by again."""

    @property
    def wanted(self) -> object:
        """Return what there is to look for; equal where the same moments would stop the run."""

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""


class PausedSearch(Paused):
    """A search backward was paused; `searched` is how far it had looked, None where it had hardly begun."""

    def __init__(self, searched: SearchedRange | None) -> None:
        super().__init__()
        self.searched = searched


class Search(Record):
    """A search backward: the command for it, and what else there is to know of what it looks for.

    Equal ones look for the same. `counts` moments of any kind, not stops.
    """

    verb: str
    wanted: object = None
    counts: bool = True


class _Left(Struct):
    """Mark where a paused search continues.

    All is known for the ticks after `last` up to `present`. They have `found` of the moments that are counted.
    `searched` says so to the user.
    """

    search: Search | None
    present: int
    last: int
    found: int = 0
    searched: SearchedRange | None = None


_FIRST_STRETCH = 16
_WIDER = 8
_LONG = 0.05
"""Seconds after which the next stretch is no longer than the one before, so that little is lost where it is paused."""
_MOST_FINGERPRINTS = 100_000


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
        self.watcher: StopWatcher | None = None
        self.loop_ends: LoopEndLog | None = None
        self.reference: ReferenceValues | None = None
        self.loop_entries: dict[tuple[int, tuple[int | None, ...]], int] = {}
        """Ticks at which runs of loops were entered, as far as known, by id of the body and iterations around it."""
        self._fingerprints: dict[int, bytes] = {}
        self._unproved: Snapshot | None = None
        self._left: _Left | None = None
        self.end: Snapshot | None = None
        """The end of the run, where that is known; this course of it is then not run again only to get there."""
        self._start = machine.snapshot()

    # --- forward -------------------------------------------------------------------------------------------------

    def forward(self, every: Every, fits: Fits, until: int | None = None) -> Event:
        """Run on to the first event that fits, to the end, to a pause, to where the watcher stops, or to `until`."""
        watcher = self._active()
        if watcher is None:
            return self._run(every, fits, until)
        begun = self.machine.tick
        try:
            self._count_passed(watcher)
        except Paused:
            return self._paused()
        watcher.forward()
        try:
            event = self._run(every, lambda event: watcher.examine() or fits(event), until)
            watcher.examine()
        except StepperError:
            if not watcher.examine():
                raise
        finally:
            watcher.counted()
        found = watcher.found_at
        if found is None:
            return event
        if found != self.machine.tick:
            try:
                self.back(found, begun)
            except Paused:
                watcher.fell_short()
                return self._paused()
        return Event(EventKind.STOPPED, found, self.machine.stack[-1])

    def stretches(self, end: float = math.inf) -> Iterator[Event]:
        """Run on to a tick, or to the end, in the stretches between two snapshots; yield how each of them ended."""
        while self.machine.tick < end and not self.machine.finished:
            due = self.history.due(self.machine.tick)
            yield self.forward(Every.END, lambda _event: False, due if due < end else int(end))

    def _paused(self) -> Event:
        return Event(EventKind.PAUSED, self.machine.tick, self.machine.stack[-1])

    def _active(self) -> StopWatcher | None:
        """Return the watcher, if it watches the machine and has something to look for."""
        watcher = self.watcher
        return None if watcher is None or watcher.is_idle or self.machine.watcher is not watcher else watcher

    def _count_passed(self, watcher: StopWatcher) -> None:
        """Replay what was jumped over, where a breakpoint has to count it."""
        present = self.machine.tick
        begin = watcher.uncounted(present)
        if begin >= present:
            return
        with self._returning():
            self.goto(begin)
            watcher.recount()
            event = self._run(Every.END, lambda _event: False, present)
            watcher.examine()
            watcher.counted()
            if event.kind is EventKind.PAUSED:
                raise Paused

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
                if (watcher := self._active()) is not None:
                    watcher.examine()  # what was before the edit is judged by the values before it
                self._make_edits()
            if event.kind is not EventKind.REACHED or event.tick >= until:
                return event

    def events(self, every: Every) -> Iterator[Event]:
        """Run on to the end, event by event, with the edits on the way; nothing of it is kept as history."""
        while not self.machine.finished:
            yield self._advance(every, sys.maxsize)

    def _keep(self) -> None:
        """Take the snapshot that is due, or compare with the one that was taken here before."""
        machine = self.machine
        old = self.history.at(machine.tick)
        if old is None:
            self.history.add(machine.snapshot())
        elif not is_same_state(old, machine.snapshot()):
            self._warn(machine.tick)

    # --- anywhere ------------------------------------------------------------------------------------------------

    def goto(self, tick: int) -> None:
        """Stand after exactly `tick` moves; at the end of the run if it has fewer.

        Raise Paused; the run then stands on the way there if that is forward, otherwise where it stood.
        """
        if tick >= self.machine.tick:
            self._replay(tick)
            return
        with self._returning():
            self._replay(tick)

    def back(self, tick: int, least: int) -> None:
        """Back to a tick that a movement forward from `least` went past; raises Paused between the two."""
        try:
            self._replay(tick)
        except Paused:
            if self.machine.tick < least:
                self._replay(least, pauses=False)
            raise

    def return_to(self, tick: int) -> None:
        """Stand at a tick as `goto` does, whether or not a pause is asked for: it is where a movement began."""
        self._replay(tick, pauses=False)

    def _replay(self, tick: int, *, pauses: bool = True) -> None:
        machine = self.machine
        tick = max(tick, 0)
        snapshot = self.history.before(tick)
        if tick < machine.tick or snapshot.tick > machine.tick:
            machine.restore(snapshot)
        watcher, machine.watcher = machine.watcher, None
        try:
            while machine.tick < tick and not machine.finished:
                event = self._run(Every.END, lambda _event: False, tick)
                if event.kind is EventKind.PAUSED and pauses and machine.tick < tick:
                    raise Paused
        finally:
            machine.watcher = watcher
        self._recognise()

    @contextmanager
    def _returning(self) -> Iterator[None]:
        """Put the present back where the block does not come to its end."""
        present = self.machine.snapshot()
        try:
            yield
        except BaseException:
            self.machine.restore(present)
            raise

    def _recognise(self) -> None:
        """If the present was shown before, compare it with what that looked like."""
        if self.machine.tick in self._fingerprints:
            self._look_again()

    def to_known_end(self, *, watched: bool) -> bool:
        """Stand at the end of the run if that is known, and nothing is `watched` for on the way; True if so."""
        if self.end is None or (watched and self._active() is not None):
            return False
        if any(one is not self.loop_ends for one in self.machine.observers):
            return False  # somebody else wants to see the way there
        self.prove()
        self.machine.restore(self.end)
        self.furthest = max(self.furthest, self.end.tick)
        self._recognise()
        return True

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
        """Return what a replay found different."""
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

    def backward(self, every: Every, fits: Fits, search: Search | None = None, count: int = 1) -> bool:
        """Go to the last earlier moment that fits, or the `count`-th last; True if there is one.

        Without one the present stays, and also where a pause is heeded: that raises PausedSearch. The same `search`
        then continues where it was left.
        """
        return self._search(search, lambda last, missing: self._last_within(last, every, fits, missing), count)

    def steps_backward(self, search: Search, count: int, step: Callable[[], bool]) -> bool:
        """Call `step` so many times, as one search; False as soon as that is. Where it is paused, as `backward`."""
        present, left = self.machine.snapshot(), self._taken_up(search)
        try:
            if left.found:
                self._replay(left.last)
            while left.found < count:
                if not step():
                    return False
                left.last, left.found = self.machine.tick, left.found + 1
                left.searched = SearchedRange(left.last, *self._place_beside(present), search.verb, left.found)
        except Paused:
            self.machine.restore(present)
            self._left = left
            raise PausedSearch(left.searched) from None
        return True

    def backward_to_stop(self, verb: str) -> bool:
        """Go to the last earlier moment at which the watcher stops; True if there is one. Otherwise as `backward`."""
        watcher = self._active()
        if watcher is None:
            return False
        try:
            self._count_passed(watcher)
        except Paused:
            raise PausedSearch(None) from None
        search = Search(verb, (watcher.wanted, self.reference), counts=False)
        return self._search(search, lambda last, _missing: self._last_stop_within(last, watcher))

    def _search(
        self, search: Search | None, within: Callable[[int, int], Sequence[Snapshot | int]], count: int = 1
    ) -> bool:
        """`within` gives the moments that fit from the present to a tick, in order, at least the last ones wanted."""
        present, left = self.machine.snapshot(), self._taken_up(search)
        stretch = _FIRST_STRETCH
        try:
            while left.last > 0:
                started, begin = perf_counter(), max(left.last - stretch, 0)
                snapshot = self.history.before(begin).tick
                is_wide = (
                    begin - snapshot < stretch > _FIRST_STRETCH
                )  # to begin there costs less than to replay to here
                self._replay(snapshot if is_wide else begin)
                begin, here = self.machine.tick, self._place_beside(present)
                found = within(left.last, count - left.found)
                if left.found + len(found) >= count:
                    wanted = found[left.found - count]
                    if isinstance(wanted, int):
                        left.last, left.found = wanted, count - 1  # found again at once, if this way is paused
                        self._replay(wanted)
                    else:
                        self.machine.restore(wanted)
                        self._recognise()
                    return True
                left.last, left.found = begin, left.found + len(found)
                if search is not None:
                    left.searched = SearchedRange(begin, *here, search.verb, left.found if search.counts else None)
                if not is_wide or perf_counter() - started < _LONG:
                    stretch *= _WIDER
        except Paused:
            self.machine.restore(present)
            if search is not None:
                self._left = left
            raise PausedSearch(left.searched) from None
        except BaseException:
            self.machine.restore(present)
            raise
        self.machine.restore(present)
        return False

    def _taken_up(self, search: Search | None) -> _Left:
        """Return what is left of a search: all of it, unless it was paused here before."""
        present, left = self.machine.tick, self._left
        if search is not None:
            self._left = None
            if left is not None and left.search == search and left.present == present:
                return left
        return _Left(search, present, present - 1)

    def _place_beside(self, present: Snapshot) -> tuple[str, int | None]:
        """Return where the run is, and the iteration where that is in the loop in which it was at a later moment."""
        stack = self.machine.stack
        entered = [
            frames[-1].activation.entered for frames in (stack, present.frames) if frames and frames[-1].activation
        ]
        is_same = len(stack) == len(present.frames) and len(entered) == 2 and entered[0] == entered[1]
        return place(stack), iteration_of(stack[-1]) if is_same else None

    def _last_within(self, last: int, every: Every, fits: Fits, count: int) -> Sequence[Snapshot | int]:
        """Return the last moments that fit, of those after the present up to and with tick `last`: at most `count`."""
        machine = self.machine
        watcher, machine.watcher = machine.watcher, None  # it has no say in where this ends
        found: deque[Snapshot | int] = deque(maxlen=count)
        try:
            while machine.tick <= last and not machine.finished:
                event = self._advance(every, last + 1)
                if event.kind is EventKind.PAUSED:
                    raise Paused
                if event.kind not in (EventKind.REACHED, EventKind.FINISHED) and event.tick <= last and fits(event):
                    # With its state one need not come here again; many would hold too much.
                    found.append(machine.snapshot() if count == 1 else event.tick)
        finally:
            machine.watcher = watcher
        return found

    def _last_stop_within(self, last: int, watcher: StopWatcher) -> Sequence[int]:
        """Return the tick of the last stop of those after the present up to and with tick `last`; empty if there is
        none.
        """
        watcher.search(last)
        if self.machine.tick < last:
            event = self._run(Every.END, lambda _event: False, last)
            if event.kind is EventKind.PAUSED:
                raise Paused
        watcher.examine()
        return () if watcher.found_at is None else (watcher.found_at,)

    # --- another course ------------------------------------------------------------------------------------------

    def forget_search(self) -> None:
        """A search that was paused begins anew: what it looks for is not what it was."""
        self._left = None

    def edit(self, edit: Edit) -> None:
        """Change a value now. What was known of the future is forgotten, for it will be another one."""
        self.prove()
        self.forget_search()
        tick = self.machine.tick
        self.edits[tick] = (*self.edits.get(tick, ()), edit)
        self.edits = {at: made for at, made in self.edits.items() if at <= tick}
        self._forget_from(tick)
        self._make_edits()
        self._begin_again()

    def take_back(self) -> None:
        """Take the last edit back, and stand at its moment, without it."""
        self.prove()
        self.forget_search()
        tick = max(self.edits)
        kept = self.edits.pop(tick)[:-1]
        if kept:
            self.edits[tick] = kept
        self._forget_from(tick)
        if not len(self.history):
            self.history.add(self._start)
        self.machine.restore(self.history.before(tick))
        self.return_to(tick)
        if kept and self.machine.tick == self._start.tick:
            self._make_edits()
        self._begin_again()

    def _forget_from(self, tick: int) -> None:
        """Forget the states from a tick on."""
        self._fingerprints = {at: known for at, known in self._fingerprints.items() if at < tick}
        self.history.forget_after(tick - 1)
        self.end = None

    def _begin_again(self) -> None:
        """Keep the present, from which on the run takes another course."""
        self.history.add(self.machine.snapshot())
        self.furthest = self.machine.tick
        self._forget_after(self.furthest)

    def _make_edits(self) -> None:
        for edit in self.edits[self.machine.tick]:
            edit.make(self.machine)

    def scout(self) -> Timeline:
        """Return the same run on a machine of its own, to look around in; the past that is known is shared."""
        scout = copy.copy(self)
        scout.machine = self.machine.twin()
        return scout

    def branch(self) -> Timeline:
        """Return a twin of this timeline with its past, to run differently from the present.

        This timeline stays unchanged.
        """
        self.prove()
        twin = self.scout()
        twin.watcher = twin.loop_ends = None
        twin.history = self.history.copy()
        twin.loop_entries = dict(self.loop_entries)
        twin._warnings, twin.edits, twin._fingerprints = [], dict(self.edits), dict(self._fingerprints)
        return twin

    def become(self, other: Timeline) -> int | None:
        """Go on as another timeline of the same run; the machine, and whoever looks on, stay the same objects.

        Returns the tick from which on the two differ; None where they do not.
        """
        self.prove()
        other.prove()
        self.forget_search()
        edited = {*self.edits, *other.edits}
        parting = min((tick for tick in edited if self.edits.get(tick) is not other.edits.get(tick)), default=None)
        self.machine.restore(other.machine.snapshot())
        self.history, self.furthest, self._warnings = other.history, other.furthest, other._warnings
        self.edits, self._fingerprints, self.end = other.edits, other._fingerprints, other.end
        if parting is not None:
            self._forget_after(parting)
        return parting

    def _forget_after(self, tick: int) -> None:
        self.loop_entries = {run: entered for run, entered in self.loop_entries.items() if entered <= tick}
        for one in (self.watcher, self.loop_ends):
            if one is not None:
                one.forget_after(tick)
