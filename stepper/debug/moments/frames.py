"""Frames of any place of a run: the values that a graph had when its iteration was closed, of any branch."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from stepper.debug.moments.moment import GraphPlace
from stepper.debug.timeline import Timeline
from stepper.debug.visits import excursion
from stepper.engine.frames import Event, EventKind, Every, Frame, Phase, Snapshot
from stepper.engine.program import LoopPlan, Program
from stepper.errors import StepperError
from stepper.wording import counted

_MOST_KEPT: Final = 3
"""Frames of a branch that are kept; each holds the values of one iteration."""

Order = tuple[float, ...]
"""Where a run is, so that the earlier of two has the smaller one."""


class FoundFrame(Struct, frozen=True, eq=False):
    """A frame as it was at the end of its iteration, at `tick`; or, without one, why there is none."""

    frame: Frame | None
    tick: int = 0
    problem: str = ""


class FrameFinder:
    """Finds frames in one course of a run. What takes long is left off and gone on with; the present stays."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._kept: OrderedDict[GraphPlace, FoundFrame] = OrderedDict()
        self._stand: Snapshot | None = None
        self._course: tuple[object, ...] = ()

    def frame(self, place: GraphPlace, enough: Callable[[], bool] = lambda: False) -> FoundFrame | None:
        """Return the frame of a place; None where `enough` ended the search, which another call goes on with."""
        edits = self._timeline.edits
        course = tuple(one for tick in sorted(edits) for one in edits[tick])
        if len(course) != len(self._course) or any(a is not b for a, b in zip(course, self._course, strict=True)):
            self._kept.clear()
            self._stand, self._course = None, course
        found = self._kept.get(place)
        if found is None:
            found = self._searched(_Search(self._timeline, place), enough)
            if found is None:
                return None
            self._kept[place] = found
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return found

    def _searched(self, search: _Search, enough: Callable[[], bool]) -> FoundFrame | None:
        machine = self._timeline.machine
        with excursion(self._timeline):
            begin = self._timeline.history.latest(search.is_before) or self._timeline.history.before(0)
            if self._stand is not None and self._stand.tick > begin.tick and search.is_before(self._stand):
                begin = self._stand
            machine.restore(begin)
            found = search.go(enough)
            self._stand = machine.snapshot()
        return found


class _Search:
    """One way forward to a place."""

    def __init__(self, timeline: Timeline, place: GraphPlace) -> None:
        self._timeline, self._machine = timeline, timeline.machine
        self._place = place
        self._iterations = tuple(step.iteration for step in place if step.iteration is not None)
        self._program, self._order = _program_at(self._machine.compiled.main, place)
        self._found: FoundFrame | None = None

    def is_before(self, snapshot: Snapshot) -> bool:
        """True if a moment is before the end of the iteration."""
        return bool(snapshot.frames) and order_of(snapshot.frames) < self._order

    def go(self, enough: Callable[[], bool]) -> FoundFrame | None:
        """Go on to the end of the iteration; None where that was left off."""
        machine = self._machine
        try:
            event = self._timeline.forward(Every.ITERATION, lambda event: self._see(event) or enough())
        except StepperError as error:
            return self._found or self._failed(str(error))
        if self._found is None and event.kind is EventKind.FINISHED:  # nothing looks at this event on the way
            self._see(event)
            return self._found or FoundFrame(None, machine.tick, self._why_absent(event))
        return self._found

    def _see(self, event: Event) -> bool:
        """Take the frame, if this is the end of the iteration; True too where the run has gone past it."""
        stack, frame = self._machine.stack, event.frame
        if frame.program is self._program and self._is_end(event):
            self._found = FoundFrame(frame.copy(), event.tick)
            return True
        if stack and order_of(stack) > self._order:
            self._found = FoundFrame(None, event.tick, self._why_absent(event))
            return True
        return False

    def _is_end(self, event: Event) -> bool:
        if not self._place:
            return event.kind is EventKind.FINISHED
        stack = self._machine.stack
        if self._place[-1].iteration is not None:
            return event.kind is EventKind.ITERATION and iterations_of(stack) == self._iterations
        return event.kind is EventKind.LEFT and iterations_of(stack) == self._iterations

    def _failed(self, message: str) -> FoundFrame:
        """Return the frame in which the run failed, if it is the one; what it has computed is there."""
        stack = self._machine.stack
        for depth, frame in enumerate(stack):
            if frame.program is self._program and iterations_of(stack[: depth + 1]) == self._iterations:
                return FoundFrame(frame.copy(), self._machine.tick, message)
        return FoundFrame(None, self._machine.tick, message)

    def _why_absent(self, event: Event) -> str:
        program, activation = event.frame.program, event.frame.activation
        is_around = self._program.path[: len(program.path)] == program.path
        if event.kind is EventKind.LEFT and is_around and activation is not None:
            if isinstance(activation.plan, LoopPlan):
                return f"the loop runs {counted(activation.iteration + 1, 'iteration')} there"
            if program.path == self._program.path:
                return "the other side of the If runs there"
        return "the run does not come there"


def order_of(stack: Sequence[Frame]) -> Order:
    """Return where a run is, as numbers: an earlier moment has smaller ones."""
    found: list[float] = []
    for depth, frame in enumerate(stack):
        activation = frame.activation
        if activation is not None:
            found.append(activation.iteration if isinstance(activation.plan, LoopPlan) else 0)
        is_outer = depth < len(stack) - 1
        found.append(frame.pc if is_outer or frame.phase is Phase.RUNNING else math.inf)
    return tuple(found)


def iterations_of(stack: Sequence[Frame]) -> tuple[int, ...]:
    """Return the iterations of the loops of a stack, from the outermost inwards."""
    activations = [frame.activation for frame in stack if frame.activation is not None]
    return tuple(one.iteration for one in activations if isinstance(one.plan, LoopPlan))


def _program_at(main: Program, place: GraphPlace) -> tuple[Program, Order]:
    """Return the program of a place, and the order of the moment at which its iteration is closed."""
    program, found = main, list[float]()
    for step in place:
        index = program.indices[step.layer]
        plans = program.operations[index].plans
        program = plans[step.role == "else_body"].program if len(plans) > 1 else plans[0].program
        found += [index, 0 if step.iteration is None else step.iteration]
    return program, (*found, math.inf)
