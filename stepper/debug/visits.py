"""Looking elsewhere in time and coming back: the ways that questions about other iterations take through a run.

A question leaves the present, walks, and the present is put back as it was, whatever happened on the way. What it meets
in the future is computed; snapshots that fall due on the way stay in the history, so that going there later is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from stepper.debug.scopes import is_body
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Event, EventKind, Every, Frame, Phase, Snapshot
from stepper.engine.program import Program
from stepper.errors import Paused, StepperError
from stepper.records import Record

PAUSED: Final = str(Paused())
"""Why a walk ended early, where it was asked to pause."""

Visit = Callable[[Frame, int], bool]
"""Action at a moment, given the frame and the moment's tick; True to go no further."""
Enough = Callable[[], bool]
"""Asked on the way: True to leave off."""


def never() -> bool:
    """Return False: what is asked for is wanted whole."""
    return False


@contextmanager
def excursion(timeline: Timeline) -> Iterator[None]:
    """Leave the present and come back to it; nobody watches meanwhile, and what was met counts as still to come."""
    machine = timeline.machine
    present, watcher, observers, furthest = machine.snapshot(), machine.watcher, machine.observers, timeline.furthest
    machine.watcher, machine.observers = None, ()
    try:
        yield
    finally:
        machine.watcher, machine.observers = watcher, observers
        machine.restore(present)
        timeline.furthest = furthest


class Spot(Record, eq=False):
    """A place of a program that a run comes by: after operation `index`; -1: when the inputs are there."""

    program: Program
    index: int

    @property
    def is_straight_body(self) -> bool:
        """True if this is in the body of a loop in which nothing is nested."""
        return self.program.straight and is_body(self.program)

    def tick_of(self, event: Event, frame: Frame) -> int | None:
        """Return the tick at which the run was here, if the event tells so; `frame` is the innermost one now.

        In a straight body each iteration is told once, when it is closed, with all its values still there.
        """
        if self.is_straight_body:
            if event.kind is EventKind.ITERATION and event.frame.program is self.program:
                return event.tick - len(self.program.code) + self.index
            return None
        arrived = (EventKind.OPERATION, EventKind.LEFT)
        if self.index < 0:  # a loop that was entered has no inputs yet, nor an iteration
            arrived = (EventKind.BEGUN if is_body(self.program) else EventKind.ENTERED,) * 2
        here = frame.program is self.program and frame.pc == self.index + 1 and event.kind in arrived
        return event.tick if here else None

    def missed(self, frame: Frame, tick: int) -> int | None:
        """Return the tick at which the run was here in an iteration that it did not finish."""
        is_cut_short = self.is_straight_body and frame.program is self.program and frame.phase is Phase.RUNNING
        return tick - frame.pc + self.index + 1 if is_cut_short and frame.pc > self.index else None


def walk(timeline: Timeline, spot: Spot, visit: Visit, *, least_depth: int = 0, until: int | None = None) -> str:
    """Go on, visiting each moment at which the run comes by the spot, to the end of the run or where a visit says so.

    Ends too where the stack gets smaller than `least_depth`, and at tick `until`. Returns why it ended before its time:
    a pause, or the error of the run; else an empty text.
    """
    return _VisitingRun(timeline, spot, visit, least_depth).go(until)


class _VisitingRun:
    """One way through a run, past every moment of a spot."""

    def __init__(self, timeline: Timeline, spot: Spot, visit: Visit, least_depth: int) -> None:
        self.timeline, self.machine = timeline, timeline.machine
        self.spot, self.visit, self.least_depth = spot, visit, least_depth
        self.ended = self.machine.finished or len(self.machine.stack) < least_depth

    def go(self, until: int | None) -> str:
        """To the end; why that came too early."""
        if not self.ended and self.machine.tick == 0 and self.spot.index < 0 and self._is_inside():
            self.ended = self.visit(self.machine.stack[-1], 0)
        stopped = ""
        try:
            stopped = self._forward(until)
        except StepperError as error:
            stopped = str(error)
        if not (self.ended or self.machine.finished):
            missed = self.spot.missed(self.machine.stack[-1], self.machine.tick)
            if missed is not None:
                self.visit(self.machine.stack[-1], missed)
        return stopped

    def _forward(self, until: int | None) -> str:
        finest = Every.ITERATION if self.spot.is_straight_body else Every.OPERATION
        while not (self.ended or self.machine.finished):
            inside = self._is_inside()
            every = finest if inside else Every.LOOP
            event = self.timeline.forward(every, partial(self._seen, inside=inside), until)
            if event.kind is EventKind.PAUSED:
                return PAUSED
            if event.kind is EventKind.REACHED:
                break
        return ""

    def _is_inside(self) -> bool:
        return self.machine.stack[-1].program is self.spot.program

    def _seen(self, event: Event, *, inside: bool) -> bool:
        """Visit the moment, if this is one; whether to look up from here."""
        stack = self.machine.stack
        if len(stack) < self.least_depth:
            self.ended = True
        else:
            tick = self.spot.tick_of(event, stack[-1])
            self.ended = tick is not None and self.visit(event.frame if self.spot.is_straight_body else stack[-1], tick)
        return self.ended or self._is_inside() is not inside


def before_iteration(timeline: Timeline, depth: int, iteration: int) -> str:
    """Go to a moment shortly before the iteration begins, of the loop whose frame is at this depth (0 the outermost).

    Where the loop ends or fails before, that is the moment. Returns why it went no further: a pause, else empty.
    """
    machine = timeline.machine
    frame = machine.stack[depth]
    entered = frame.active.entered
    is_straight = depth == len(machine.stack) - 1 and frame.program.straight
    tick = _end_of(frame, iteration - 1, machine.tick) if is_straight else 0

    def fits(snapshot: Snapshot) -> bool:
        frames = snapshot.frames
        return len(frames) > depth and is_run(frames[depth], entered) and _has_still(frames[depth], iteration)

    try:
        if is_straight and tick <= machine.tick:
            timeline.goto(tick)
            return ""
        nearest = timeline.history.latest(fits)
        if nearest is not None and (nearest.tick > machine.tick or not _has_still(frame, iteration)):
            timeline.goto(nearest.tick)
        elif not _has_still(frame, iteration):
            timeline.goto(entered)
        return _on_to(timeline, tick, depth) if is_straight else ""
    except Paused:
        return PAUSED


def is_run(frame: Frame, entered: int) -> bool:
    """True if this is the frame of the run of a loop that was entered at a tick."""
    return frame.activation is not None and frame.activation.entered == entered


def _has_still(frame: Frame, iteration: int) -> bool:
    """True if the iteration has not begun."""
    now = iteration_of(frame)
    return now is None or now < iteration


def _on_to(timeline: Timeline, tick: int, depth: int) -> str:
    """Forward to a tick, or to where the loop is left."""
    machine = timeline.machine
    with suppress(StepperError):  # who walks on from here meets it again, and reports it
        event = timeline.forward(Every.LOOP, lambda _event: len(machine.stack) <= depth, until=tick)
        return PAUSED if event.kind is EventKind.PAUSED else ""
    return ""


def _end_of(frame: Frame, iteration: int, tick: int) -> int:
    """Return the tick at which an iteration of a straight frame, which is at `tick` now, will be (or was) closed."""
    closed = tick + len(frame.program.code) - frame.pc + 1 if frame.phase is Phase.RUNNING else tick
    return closed + (iteration - frame.active.iteration) * (len(frame.program.code) + 2)
