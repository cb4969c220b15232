"""Values of many iterations of one run of a loop, read in batches on one way through it; from anywhere in the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final
from weakref import proxy

from stepper.debug.iterations.loop_runs import Outer, enter_run, outer_now
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.engine.frames import Event, EventKind, Every, Frame, Phase, RunObserver, Snapshot, Taps
from stepper.engine.machine import Machine
from stepper.engine.program import Program, Value
from stepper.errors import StepperError

_MOST_WAITING: Final = 1024
_BYTES_WAITING: Final = 2**22
_SECONDS: Final = 0.05
"""For how long iterations are read together, which are few at first: who takes them may have little time."""

Batch = Sequence[Sequence[Value]]
"""For each slot that is read its values in consecutive iterations; None where it has none."""
Take = Callable[[int, Batch], bool]
"""Function of a batch that begins at an iteration; True to go no further."""


_MOST_AT_ONCE: Final = 1_000_000
"""Ticks that are computed at once of a graph that has one iteration."""


class IterationReader:
    """Reads the iterations [begin, end) of a run of the loop with this body, a little at a time; the present stays.

    `slots` are of the body's frame, or (`inner`) of a branch in it, whose operations do not run in each iteration.
    `next` is the iteration with which it goes on. `ended` is the first iteration that there is not, where that was
    found out; `failure` is the message of an error of the run, which has ended it.
    """

    def __init__(
        self,
        body: Program,
        outer: Outer,
        slots: Sequence[int] = (),
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
        self._tap: _Tap | None = None

    @property
    def tick(self) -> int:
        """Return the tick at which it stands; -1 before it has begun."""
        return -1 if self._stand is None else self._stand.tick

    @property
    def is_done(self) -> bool:
        """True if all that was asked for was read."""
        return self.ended is not None or self.next >= self.end

    def read(self, timeline: Timeline, take: Take, until: int | None = None) -> bool:
        """Read values on: to the end, a pause, tick `until`, or where `take` has had enough; False where paused."""
        if not self.body.path:
            return self._once(timeline, take)
        way = self._through_body if self.inner is None else self._through_branch
        return self._go(timeline, lambda: way(timeline, take, until))

    def _once(self, timeline: Timeline, take: Take) -> bool:
        """Read values of the model's own graph, or of a side of an If in it, which have one iteration."""
        taken = list[Value]()

        def seen(frame: Frame) -> bool:
            taken[:] = [frame.values[slot] if frame.is_current(slot) else None for slot in self.slots]
            return True

        if not self._seen_once(timeline, seen):
            return False
        take(0, [[value] for value in taken or [None] * len(self.slots)])
        return True

    def _seen_once(self, timeline: Timeline, seen: Callable[[Frame], bool]) -> bool:
        """Look at the graph when all of its operations have run, or as many as do; False where paused."""
        program = self.inner or self.body
        with excursion(timeline):
            most = max(timeline.furthest, _MOST_AT_ONCE)
            timeline.goto(0)
            spot = Spot(program, len(program.operations) - 1)
            reason = walk(timeline, spot, lambda frame, _tick: seen(frame), until=most)
            if timeline.machine.tick >= most and not timeline.machine.finished:  # a loop in it may never end
                seen(timeline.machine.stack[0])
            if reason not in ("", PAUSED) and program is timeline.machine.stack[0].program:
                seen(timeline.machine.stack[0])
        if reason != PAUSED:
            self.failure, self.next, self.ended = reason, 1, 1
        return reason != PAUSED

    def visit(self, timeline: Timeline, visit: Callable[[Frame], bool]) -> bool:
        """Call `visit` when all operations of an iteration have run, until it returns True; else as `read` goes on."""

        def seen(iteration: int, frame: Frame) -> bool:
            self.next = iteration + 1
            return visit(frame) or self.next >= self.end

        if not self.body.path:
            return self.is_done or self._seen_once(timeline, visit)
        return self._go(timeline, lambda: self._stopped(timeline, self._walk(timeline, self.body, seen)))

    def _go(self, timeline: Timeline, way: Callable[[], bool]) -> bool:
        """Go on from where it stands, by a way that returns True where it was paused; False in that case."""
        machine = timeline.machine
        if self.is_done:
            return True
        with excursion(timeline):
            if self._stand is None:
                depth = enter_run(timeline, self.body, self.outer)
                self.outer = outer_now(machine.stack[: depth + 1])
                if before_iteration(timeline, depth, self.next):
                    return False
            else:
                machine.restore(self._stand)
            is_paused = not self._has_left(machine) and way()
            self._stand = None if self.is_done else machine.snapshot()
        return not is_paused

    def _stopped(self, timeline: Timeline, reason: str) -> bool:
        """Note whether the loop has ended; `reason` is why it was left off before. True if it was paused."""
        if not self._has_left(timeline.machine) and reason not in ("", PAUSED):
            self.failure, self.ended = reason, self.next
        return reason == PAUSED

    def _has_left(self, machine: Machine) -> bool:
        """True if the loop has been left; then it has no further iterations."""
        has_left = machine.finished or len(machine.stack) <= len(self.body.path)
        if has_left:
            self.ended = self.next
        return has_left

    def _walk(
        self, timeline: Timeline, program: Program, visit: Callable[[int, Frame], bool], until: int | None = None
    ) -> str:
        """Visit the body, or a branch in it, in each iteration from the next one on; return why it ended early."""
        machine, depth = timeline.machine, len(self.body.path)

        def seen(frame: Frame, _tick: int) -> bool:
            iteration = iteration_of(frame if program is self.body else machine.stack[depth])
            return iteration is not None and iteration >= self.next and visit(iteration, frame)

        spot = Spot(program, len(program.operations) - 1)
        return walk(timeline, spot, seen, least_depth=depth + 1, until=until)

    def _through_body(self, timeline: Timeline, take: Take, until: int | None) -> bool:
        """Read the body's own values; True if it was paused."""
        machine, depth = timeline.machine, len(self.body.path)
        tap = self._tap = self._tap or _Tap(machine, self.body, self.slots, self.end)
        tap.begin(lambda begin, batch: self._take(begin, batch, take))
        is_bounded, is_edited = self.end < math.inf, bool(timeline.edits)
        every = Every.ITERATION if is_edited or (is_bounded and not self.body.straight) else Every.LOOP
        machine.observers = () if is_edited else (tap,)  # which is told before an edit at the close of an iteration

        def fits(event: Event) -> bool:
            if is_edited and event.kind is EventKind.ITERATION:
                tap.iteration_closed(event.frame)
            return tap.is_enough or len(machine.stack) <= depth

        frame = machine.stack[depth]
        if is_bounded and self.body.straight:
            last = frame.active.entered + int(self.end) * (len(self.body.code) + 2)
            until = last if until is None else min(last, until)
        reason = ""
        try:
            if timeline.forward(every, fits, until).kind is EventKind.PAUSED:
                reason = PAUSED
            tap.settle()
        except StepperError as error:
            tap.unfinished(machine.stack[depth] if len(machine.stack) > depth else None)
            reason = str(error)
        finally:
            if tap.is_enough:
                machine.request_pause(wanted=False)
        return self._stopped(timeline, "" if reason == PAUSED and tap.is_enough else reason)

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
        machine, inner = timeline.machine, self.inner
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

        def visit(iteration: int, frame: Frame) -> bool:
            put(iteration, frame)
            return (len(waiting[0]) >= _MOST_WAITING or iteration + 1 >= self.end) and settle()

        reason = self._walk(timeline, inner, visit, until)
        if machine.finished or len(machine.stack) <= len(self.body.path):
            put(_iterations_run(timeline, self), None)
        settle()
        return self._stopped(timeline, reason)


def _iterations_run(timeline: Timeline, reader: IterationReader) -> int:
    """Return how many iterations the run had that was read, which has ended just now."""
    machine, depth = timeline.machine, len(reader.body.path)
    found = reader.next
    present = machine.tick
    timeline.goto(present - 1)  # one move before a loop is left it stands after its last iteration
    if len(machine.stack) > depth and machine.stack[depth].program is reader.body:
        found = (iteration_of(machine.stack[depth]) or 0) + 1
    timeline.return_to(present)
    return found


class _Tap(RunObserver):
    """Takes values of a body's frame as each iteration is closed."""

    def __init__(self, machine: Machine, body: Program, slots: Sequence[int], end: float) -> None:
        self._machine: Machine = proxy(machine)
        self._body, self._slots, self._end = body, slots, end
        self._begin = 0
        self._waiting: list[list[Value]] = [[] for _ in slots]
        self._pairs = [(values.append, slot) for values, slot in zip(self._waiting, slots, strict=True)]
        self._most = self._fullest = 1

    def begin(self, take: Take) -> None:
        """Take values from now on, for another one."""
        self._take, self._begun, self.is_enough = take, perf_counter(), False

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of the iteration."""
        if frame.program is not self._body or not frame.loop:
            return
        activation = frame.active
        if not self._waiting[0]:
            self._begin = activation.iteration
            size = sum(_bytes(frame.values[slot]) for slot in self._slots)
            self._fullest = max(1, min(_MOST_WAITING, _BYTES_WAITING // (size + 1)))
        for append, slot in self._pairs:
            append(frame.values[slot])
        if len(self._waiting[0]) >= self._most or activation.iteration + 1 >= self._end:
            self.settle()

    def taps(self, frame: Frame) -> Taps | None:
        """Return what is taken from the iterations of a straight body."""
        if frame.program is not self._body:
            return None
        if not self._waiting[0]:
            self._begin = frame.active.iteration + 1
        return Taps(self._pairs, max(self._most - len(self._waiting[0]), 1), self._done)

    def _done(self) -> None:
        if len(self._waiting[0]) >= self._most:
            self.settle()

    def unfinished(self, frame: Frame | None) -> None:
        """Take what an iteration that failed has computed."""
        if frame is not None and frame.program is self._body and frame.phase is Phase.RUNNING:
            if not self._waiting[0]:
                self._begin = frame.active.iteration
            for values, slot in zip(self._waiting, self._slots, strict=True):
                values.append(frame.values[slot] if frame.is_current(slot) else None)
        self.settle()

    def settle(self) -> None:
        """Hand over what was taken."""
        if self._waiting[0]:
            batch = [values.copy() for values in self._waiting]
            for values in self._waiting:
                values.clear()
            took, self._begun = perf_counter() - self._begun, perf_counter()
            self._most = max(1, min(self._most // 2 if took > _SECONDS else 2 * self._most, self._fullest))
            self.is_enough |= self._take(self._begin, batch)
            if self.is_enough:
                self._machine.request_pause()


def _bytes(value: Any) -> int:
    return 0 if value is None else int(value.nbytes)
