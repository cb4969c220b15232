"""Records of the last iterations: remembered while a run goes on, and fetched by a replay where it is not known.

A record belongs to one iteration of one run of a body, which is the same in every replay. So it does not matter when
it was made, and every question has the same answer wherever the run came from.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from stepper.debug.breakpoints.checks import iteration_in
from stepper.debug.timeline import Timeline
from stepper.debug.visits import before_iteration
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.program import Program

_MISSING: Final = object()


class IterationWindow:
    """Records of the last iterations of one body; `record` makes one from the stack when an iteration is closed.

    `back` is how many iterations before the present are asked for. The first iteration's record is kept, too, where
    `keeps_first` says so. Only the latest run of the body is remembered.
    """

    def __init__(
        self,
        timeline: Timeline,
        program: Program,
        record: Callable[[Sequence[Frame]], Any],
        back: int = 1,
        *,
        keeps_first: bool = False,
    ) -> None:
        self.program = program
        self._timeline = timeline
        self._record = record
        self._back = back
        self._keeps_first = keeps_first
        self._depth = len(program.path)
        self._frame: Frame | None = None
        self._run: tuple[int, ...] = ()
        self._records: dict[int, Any] = {}
        self._complete_from: int | None = None

    def past(self, stack: Sequence[Frame], back: int = 1) -> Any:
        """Return the record of `back` iterations before the present one; None where the loop has no iteration that
        early.
        """
        return self.at(stack, iteration_in(stack[self._depth]) - back)

    def at(self, stack: Sequence[Frame], iteration: int) -> Any:
        """Return the record of an iteration before the present one; None for a negative number."""
        if iteration < 0:
            return None
        if stack[self._depth] is not self._frame:
            self._turn_to(stack)
        found = self._records.get(iteration, _MISSING)
        if found is _MISSING:
            self._fetch(stack, iteration)
            found = self._records[iteration]
        return found

    def note(self, stack: Sequence[Frame]) -> None:
        """An iteration has been closed: remember it."""
        self.put(stack, self._record(stack))

    def put(self, stack: Sequence[Frame], record: Any) -> None:
        """Remember this of the present iteration."""
        if stack[self._depth] is not self._frame:
            self._turn_to(stack)
        iteration = iteration_in(stack[self._depth])
        if iteration and iteration - 1 not in self._records:
            self._complete_from = None
        self._records[iteration] = record
        old = iteration - self._back - 1
        if old > 0 or not self._keeps_first:
            self._records.pop(old, None)

    def records(self, stack: Sequence[Frame]) -> Collection[Any]:
        """Return the records of the last iterations, none of them left out; there may be others among them."""
        present = iteration_in(stack[self._depth])
        if stack[self._depth] is not self._frame:
            self._turn_to(stack)
        first = max(0, present - self._back)
        if self._complete_from is None or self._complete_from > first:
            for iteration in range(first, present):
                self.at(stack, iteration)
            self._complete_from = first
        return self._records.values()

    def forget(self) -> None:
        """Nothing that is known holds any longer: the run takes another course."""
        self._frame, self._run, self._records = None, (), {}

    def _thin_out(self, present: int) -> None:
        near = range(present - self._back, present + 1)
        first = {0} if self._keeps_first else set()
        self._records = {at: record for at, record in self._records.items() if at in near or at in first}

    def _turn_to(self, stack: Sequence[Frame]) -> None:
        """Another frame: the same run of the body after a replay, or another run of it."""
        run = tuple(-1 if frame.activation is None else frame.activation.iteration for frame in stack[: self._depth])
        if run != self._run or self._frame is None:
            self._run, self._records = run, {}
        self._frame, self._complete_from = stack[self._depth], None
        self._thin_out(iteration_in(self._frame))

    def _fetch(self, stack: Sequence[Frame], wanted: int) -> None:
        """Replay the iterations that may be asked for next, on another machine; the run itself stays where it is."""
        present = iteration_in(stack[self._depth])
        first = wanted if wanted == 0 and self._keeps_first else max(0, min(wanted, present - self._back))
        last = present - 1 if first or not self._keeps_first else wanted
        scout = copy.copy(self._timeline)
        scout.machine = self._timeline.machine.twin()
        # The stack may be that of a replay already: of the same run, at or before the present of the timeline.
        before_iteration(scout, self._depth, first)
        fetched: dict[int, Any] = {}

        def is_last(event: Event) -> bool:
            frames = scout.machine.stack
            if event.kind is not EventKind.ITERATION or len(frames) != self._depth + 1:
                return False
            iteration = iteration_in(frames[-1])
            if first <= iteration <= last:
                fetched[iteration] = self._record(frames)
            return iteration >= last

        scout.forward(Every.ITERATION, is_last)
        self._turn_to(stack)
        self._records.update(fetched)
