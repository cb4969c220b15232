"""A run of a loop that is looked at from elsewhere: before the loop, at the end of the run, from another iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import ClassVar, Final

from msgspec import Struct

from stepper.debug.iterations.loop_runs import Outer, enter_run, go_to_latest, iterations_in_all, outer_now
from stepper.debug.loop_limits import never_ends
from stepper.debug.stop import iteration_of
from stepper.debug.timeline import Timeline
from stepper.debug.visits import excursion
from stepper.engine.events import EventKind, Every
from stepper.engine.frames import Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program
from stepper.errors import Paused, StepperError
from stepper.records import Brief

MOST_SECONDS: Final = 2.0
"""Seconds for which iterations that the run has not come to are computed."""
_STRETCH: Final = 100_000


class LoopOfRun(Struct, frozen=True, eq=False):
    """A run of the loop with this body, by the iterations around it (None: any; fewer: the rest any).

    The model's own graph is such a body, too, of the one run that there is.
    """

    body: Program
    outer: Outer = ()


class FarRun(Brief, Struct, frozen=True, eq=False):
    """A run of a loop as it stands at its last iteration that is known, in the frame at `depth`.

    At depth 0 it is that of the model's own graph, which has no iterations.
    `outer` are the iterations around it; `around` is how many the loop around it has, None where there is none.
    """

    unshown: ClassVar = ("body", "_stand")

    body: Program
    outer: Outer
    depth: int
    around: int | None
    _stand: Snapshot

    @contextmanager
    def entered(self, timeline: Timeline) -> Iterator[None]:
        """Stand there for a block; then the present is put back."""
        with excursion(timeline):
            timeline.machine.restore(self._stand)
            timeline.furthest = max(timeline.furthest, self._stand.tick)
            yield


def far_run(timeline: Timeline, loop: LoopOfRun) -> FarRun:
    """Return a run of a loop as it stands at its end, or as far as it is known. Paused; UsageError if there is none.

    Iterations that the run has not come to are computed for MOST_SECONDS; none of a loop that can never end.
    """
    machine = timeline.machine
    with excursion(timeline):
        depth = enter_run(timeline, loop.body, loop.outer)
        outer = outer_now(machine.stack[: depth + 1])
        around = next((at for at in reversed(range(1, depth)) if loop.body.path[at - 1].is_loop), None)
        count = None if around is None else iterations_in_all(timeline, around)
        _to_its_end(timeline, depth)
        if len(machine.stack) <= depth:
            timeline.goto(machine.tick - 1)
        return FarRun(loop.body, outer, depth, count, machine.snapshot())


def graph_run(timeline: Timeline) -> FarRun:
    """Return the run of the model's own graph as it stands at its end, or as far as it is known. Paused.

    Operations that the run has not come to are computed for MOST_SECONDS.
    """
    machine, deadline = timeline.machine, perf_counter() + MOST_SECONDS
    with excursion(timeline):
        while machine.tick < timeline.furthest or perf_counter() <= deadline:
            until = timeline.furthest if machine.tick < timeline.furthest else machine.tick + 1
            try:
                event = timeline.forward(Every.END, lambda _event: False, until)
            except StepperError:  # it stands before the operation that fails
                break
            if event.kind is EventKind.PAUSED:
                raise Paused
            if machine.finished:
                break
        if machine.finished:
            timeline.goto(machine.tick - 1)
        return FarRun(machine.compiled.main, (), 0, None, machine.snapshot())


def _to_its_end(timeline: Timeline, depth: int) -> None:
    """Go on to where the loop at this depth is left, or as far as it may be computed."""
    machine, deadline = timeline.machine, perf_counter() + MOST_SECONDS
    furthest = timeline.furthest
    go_to_latest(timeline, depth)
    while len(machine.stack) > depth:
        activation = machine.stack[depth].activation
        more = activation is not None and not never_ends(activation) and perf_counter() <= deadline
        if machine.tick >= furthest and not more:
            return
        until = furthest if machine.tick < furthest else machine.tick + _STRETCH
        try:
            event = timeline.forward(Every.LOOP, lambda _event: len(machine.stack) <= depth, until)
        except StepperError:  # it stands before the operation that fails
            return
        if event.kind is EventKind.PAUSED:
            raise Paused


def is_here(machine: Machine, loop: LoopOfRun, depth: int | None) -> bool:
    """True if the loop at a depth of where the run stands is this one, in that run of it."""
    if depth is None or machine.stack[depth].program is not loop.body:
        return False
    now = outer_now(machine.stack[: depth + 1])
    return all(asked is None or asked == at for asked, at in zip(loop.outer, now, strict=False))


def loop_of_body(body: Program, around: Sequence[tuple[Program, int | None]], named: Outer = ()) -> LoopOfRun:
    """Return the run of the loop with this body that is `named`, else that around a moment, if there is one; else any.

    `around` are the graphs of the frames at the moment, the model's own first, with the iterations that they are in.
    """
    if any(one is not None for one in named):
        return LoopOfRun(body, named)
    depth = len(body.path)
    is_around = depth < len(around) and around[depth][0] is body
    return LoopOfRun(body, tuple(iteration for _, iteration in around[1:depth]) if is_around else ())


def loop_seen_from(machine: Machine, selected: int | None, depth: int) -> LoopOfRun | None:
    """Return the loop that is looked at from a frame in none: the selected one, else the last before the moment.

    Else the first one of the frame's graph; None where it has none.
    """
    frame = machine.stack[depth] if depth < len(machine.stack) else None
    program = machine.compiled.main if frame is None else frame.program
    loops = {
        index: operation.plans[0].program
        for index, operation in enumerate(program.operations)
        if operation.plans and isinstance(operation.plans[0], LoopPlan)
    }
    if selected in loops:
        return LoopOfRun(loops[selected])
    now = len(program.operations) if frame is None else frame.pc
    passed = [index for index in loops if index < now]
    found = max(passed) if passed else min(loops, default=None)
    outer = () if frame is None else tuple(iteration_of(one) for one in machine.stack[1 : depth + 1])
    return None if found is None else LoopOfRun(loops[found], outer)
