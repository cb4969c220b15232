"""Going to where an address says: after an operation, in the iterations that it names or else in the present ones."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.debug.breakpoints.checks import closed
from stepper.debug.breakpoints.targets import Place, places
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Stop, iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, Spot, before_iteration, excursion, walk
from stepper.engine.frames import Frame
from stepper.errors import Paused, UsageError
from stepper.query.addresses import IterationRange

Wanted = dict[int, int | IterationRange]
"""The iterations to be in, by the depth of the loop's frame."""


def go_to(debugger: Debugger, text: str) -> Stop:
    """The moment after the operation that the address names. Raises UsageError where the run never comes there."""
    machine = debugger.machine
    where = machine.stack[-1].program if machine.stack else machine.compiled.main
    found = places(text, machine.compiled, where)
    if len(found) > 1:
        raise UsageError(f"'{text}' names {len(found)} places; say which one")
    (place,) = found
    tick = _tick_of(debugger.timeline, place, _wanted(machine.stack, place))
    if tick is None:
        raise UsageError(f"the run never comes to '{text}'" + ("" if place.iterations else " in this iteration"))
    return debugger.goto_tick(tick)


def _wanted(stack: Sequence[Frame], place: Place) -> Wanted:
    """The iterations that the address names; of the loops around it that run now, otherwise the present one."""
    wanted: Wanted = {}
    for depth, frame in enumerate(stack):
        if depth > len(place.program.path) or frame.program.path != place.program.path[:depth]:
            break
        iteration = iteration_of(frame)
        if iteration is not None:
            wanted[depth] = iteration
    return {**wanted, **dict(place.iterations)}


def _tick_of(timeline: Timeline, place: Place, wanted: Wanted) -> int | None:
    """The first tick at which the run is at the place in the iterations; the present stays."""
    machine = timeline.machine
    index = min(place.index, closed(place.program) - 1)
    found: int | None = None
    with excursion(timeline):

        def visit(frame: Frame, tick: int) -> bool:
            nonlocal found
            stack = machine.stack
            frames = [*stack[: len(place.program.path)], frame]
            if all(_is_in(iteration_of(frames[depth]), asked) for depth, asked in wanted.items()):
                # An iteration is closed one move after its last operation.
                found = tick + place.index - index
            return found is not None

        stopped = _begin(timeline, place, wanted) or walk(timeline, Spot(place.program, index), visit)
    if stopped == PAUSED and found is None:
        raise Paused
    return found


def _begin(timeline: Timeline, place: Place, wanted: Wanted) -> str:
    """Go to a moment before the place: of the outermost loop that is wanted and runs here, before its iteration.

    PAUSED where it did not come there, else empty.
    """
    stack = timeline.machine.stack
    outermost = min(wanted, default=None)
    path = place.program.path
    if outermost is None or outermost >= len(stack) or stack[outermost].program.path != path[:outermost]:
        timeline.goto(0)
        return ""
    asked = wanted[outermost]
    return before_iteration(timeline, outermost, asked if isinstance(asked, int) else asked.start or 0)


def _is_in(iteration: int | None, asked: int | IterationRange) -> bool:
    if iteration is None:
        return False
    if isinstance(asked, int):
        return iteration == asked
    return (asked.start or 0) <= iteration and (asked.stop is None or iteration < asked.stop)
