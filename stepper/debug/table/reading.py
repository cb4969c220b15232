"""Values of many iterations of one run of a loop, read in batches on one way through it; from anywhere in the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import proxy

from stepper.debug.iterations.loop_runs import Outer, enter_run
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, Spot, excursion, go_before, walk
from stepper.engine.events import Event, EventKind, Every, RunObserver, Taps
from stepper.engine.frames import Frame, Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program, Value
from stepper.errors import Paused, StepperError

_MOST_WAITING: Final = 1024
_BYTES_WAITING: Final = 2**22

Batch = Sequence[Sequence[Value]]
"""For each slot that is read its values in consecutive iterations; None where it has none."""
Take = Callable[[int, Batch], bool]
"""Function of a batch that begins at an iteration; True to go no further."""


class Course:
    """One way through the iterations [begin, end) of a run of the loop with this body, a little at a time.

    `slots` are of the body's frame, or (`inner`) of a branch in it, whose operations do not run in each iteration.
    `next` is the iteration with which it goes on. `ended` is the first iteration that there is not, where that was
    found out; `failure` is the message of an error of the run, which has ended it.
    """

    def __init__(
        self,
        body: Program,
        outer: Outer,
        slots: Sequence[int],
        inner: Program | None = None,
        *,
        begin: int = 0,
        end: float = math.inf,
    ) -> None:
        self.body, self.outer, self.slots, self.inner = body, outer, tuple(slots), inner
        self.next, self.end = begin, end
        self.ended: int | None = None
        self.failure = ""
        self._stand: Snapshot | None = None

    @property
    def tick(self) -> int:
        """Return the tick at which it stands; -1 before it has begun."""
        return -1 if self._stand is None else self._stand.tick

    @property
    def is_done(self) -> bool:
        """True if all that was asked for was read."""
        return self.ended is not None or self.next >= self.end

    def go(self, timeline: Timeline, take: Take, until: int | None = None) -> bool:
        """Read on, to the end, to a pause, to tick `until`, or where `take` has had enough; False where paused.

        The present stays.
        """
        if self.is_done:
            return True
        with excursion(timeline):
            if self._stand is None:
                depth = enter_run(timeline, self.body, self.outer)
                self.outer = tuple(iteration_of(frame) for frame in timeline.machine.stack[1:depth])
                try:
                    go_before(timeline, depth, self.next)
                except Paused:
                    return False
            else:
                timeline.machine.restore(self._stand)
            way = self._through_body if self.inner is None else self._through_branch
            is_paused = way(timeline, take, until)
            self._stand = None if self.is_done else timeline.machine.snapshot()
        return not is_paused

    def _through_body(self, timeline: Timeline, take: Take, until: int | None) -> bool:
        """Read the body's own values; True if it was paused."""
        machine, depth = timeline.machine, len(self.body.path)
        tap = _Tap(machine, self.body, self.slots, self.end, lambda begin, batch: self._take(begin, batch, take))
        is_bounded, is_edited = self.end < math.inf, bool(timeline.edits)
        every = Every.ITERATION if is_edited or (is_bounded and not self.body.straight) else Every.LOOP
        machine.observers = () if is_edited else (tap,)  # which is told before an edit at the close of an iteration

        def fits(event: Event) -> bool:
            if is_edited and event.kind is EventKind.ITERATION:
                tap.iteration_closed(event.frame)
            return tap.is_enough or len(machine.stack) <= depth

        limit = until
        frame = machine.stack[depth]
        assert frame.activation is not None
        if is_bounded and self.body.straight:
            last = frame.activation.entered + int(self.end) * (len(self.body.code) + 2)
            limit = last if until is None else min(last, until)
        try:
            event = timeline.forward(every, fits, limit)
            tap.settle()
        except StepperError as error:
            tap.unfinished(machine.stack[depth] if len(machine.stack) > depth else None)
            self.failure, self.ended = str(error), self.next
            return False
        finally:
            if tap.is_enough:
                machine.request_pause(wanted=False)
        if event.kind is EventKind.PAUSED:
            return not tap.is_enough
        if len(machine.stack) <= depth:
            self.ended = self.next
        return False

    def _take(self, begin: int, batch: Batch, take: Take) -> bool:
        """Hand over what is new of a batch, and asked for."""
        count = len(batch[0])
        first, last = max(self.next, begin), int(min(begin + count, self.end))
        if first >= last:
            return last >= self.end
        self.next = last
        return take(first, [values[first - begin : last - begin] for values in batch]) or last >= self.end

    def _through_branch(self, timeline: Timeline, take: Take, until: int | None) -> bool:
        """Read values of a branch, which is not in each iteration; True if it was paused."""
        machine, depth, inner = timeline.machine, len(self.body.path), self.inner
        assert inner is not None
        waiting: list[list[Value]] = [[] for _ in self.slots]

        def settle() -> bool:
            begin, batch = self.next, [values.copy() for values in waiting]
            for values in waiting:
                values.clear()
            return bool(batch[0]) and self._take(begin, batch, take)

        def put(iteration: int, frame: Frame | None) -> None:
            for values, slot in zip(waiting, self.slots, strict=True):
                values += [None] * (iteration - self.next - len(values))
                if frame is not None and len(values) == iteration - self.next:
                    values.append(frame.values[slot])

        def visit(frame: Frame, _tick: int) -> bool:
            around = machine.stack[depth] if len(machine.stack) > depth else None
            iteration = None if around is None else iteration_of(around)
            if iteration is None or iteration < self.next:
                return False
            put(iteration, frame)
            return (len(waiting[0]) >= _MOST_WAITING or iteration + 1 >= self.end) and settle()

        spot = Spot(inner, len(inner.operations) - 1)
        stopped = walk(timeline, spot, visit, least_depth=depth + 1, until=until)
        if machine.finished or len(machine.stack) <= depth:
            put(_iterations_run(timeline, self), None)
            settle()
            self.ended = self.next
        else:
            settle()
            if stopped and stopped != PAUSED:
                self.failure, self.ended = stopped, self.next
        return stopped == PAUSED


def _iterations_run(timeline: Timeline, course: Course) -> int:
    """Return how many iterations the run of the course had, which has ended just now."""
    machine, depth = timeline.machine, len(course.body.path)
    found = course.next
    present = machine.tick
    timeline.goto(present - 1)  # one move before a loop is left it stands after its last iteration
    if len(machine.stack) > depth and machine.stack[depth].program is course.body:
        found = (iteration_of(machine.stack[depth]) or 0) + 1
    timeline.return_to(present)
    return found


class RowWalk:
    """One way through the iterations of a run of a loop, one by one, to where each has been closed."""

    def __init__(self, body: Program, outer: Outer, begin: int) -> None:
        self._body, self._outer, self._next = body, outer, begin
        self._stand: Snapshot | None = None

    def go(self, timeline: Timeline, visit: Callable[[], bool]) -> None:
        """Go on, and call `visit` after each iteration, until it returns True, the loop ends or a pause is asked for.

        The present stays.
        """
        machine, depth = timeline.machine, len(self._body.path)

        def seen(_frame: Frame, _tick: int) -> bool:
            iteration = iteration_of(machine.stack[depth])
            if iteration is None or iteration < self._next:
                return False
            self._next = iteration + 1
            return visit()

        with excursion(timeline):
            if self._stand is None:
                enter_run(timeline, self._body, self._outer)
                try:
                    go_before(timeline, depth, self._next)
                except Paused:
                    return
            else:
                machine.restore(self._stand)
            walk(timeline, Spot(self._body, len(self._body.operations) - 1), seen, least_depth=depth + 1)
            self._stand = machine.snapshot()


class _Tap(RunObserver):
    """Takes values of a body's frame as each iteration is closed."""

    def __init__(self, machine: Machine, body: Program, slots: Sequence[int], end: float, take: Take) -> None:
        self._machine: Machine = proxy(machine)
        self._body, self._slots, self._end, self._take = body, slots, end, take
        self._begin = 0
        self._waiting: list[list[Value]] = [[] for _ in slots]
        self._pairs = [(values.append, slot) for values, slot in zip(self._waiting, slots, strict=True)]
        self._most = 1
        self.is_enough = False

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of the iteration."""
        activation = frame.activation
        if frame.program is not self._body or activation is None or not isinstance(activation.plan, LoopPlan):
            return
        if not self._waiting[0]:
            self._begin = activation.iteration
            size = sum(_bytes(frame.values[slot]) for slot in self._slots)
            self._most = max(1, min(_MOST_WAITING, _BYTES_WAITING // (size + 1)))
        for append, slot in self._pairs:
            append(frame.values[slot])
        if len(self._waiting[0]) >= self._most or activation.iteration + 1 >= self._end:
            self.settle()

    def taps(self, frame: Frame) -> Taps | None:
        """Return what is taken from the iterations of a straight body."""
        if frame.program is not self._body or frame.activation is None:
            return None
        if not self._waiting[0]:
            self._begin = frame.activation.iteration + 1
        return Taps(self._pairs, max(self._most - len(self._waiting[0]), 1), self._done)

    def _done(self) -> None:
        if len(self._waiting[0]) >= self._most:
            self.settle()

    def unfinished(self, frame: Frame | None) -> None:
        """Take what an iteration that failed has computed."""
        activation = None if frame is None else frame.activation
        if frame is not None and activation is not None and frame.program is self._body and activation.iteration >= 0:
            if not self._waiting[0]:
                self._begin = activation.iteration
            for values, slot in zip(self._waiting, self._slots, strict=True):
                values.append(frame.values[slot] if frame.is_current(slot) else None)
        self.settle()

    def settle(self) -> None:
        """Hand over what was taken."""
        if self._waiting[0]:
            batch = [values.copy() for values in self._waiting]
            for values in self._waiting:
                values.clear()
            self.is_enough |= self._take(self._begin, batch)
            if self.is_enough:
                self._machine.request_pause()


def _bytes(value: Any) -> int:
    return 0 if value is None else int(value.nbytes)
