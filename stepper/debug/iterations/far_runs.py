"""A run of a loop that is looked at from elsewhere: before the loop, at the end of the run, from another iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from time import perf_counter
from typing import ClassVar, Final

from msgspec.structs import replace

from stepper.debug.breakpoints.conditions import loop_body
from stepper.debug.iterations.loop_runs import (
    Outer,
    address_in_run,
    enter_run,
    go_to_latest,
    iterations_in_all,
    loop_around,
    outer_now,
)
from stepper.debug.loop_limits import never_ends
from stepper.debug.scopes import loop_depth
from stepper.debug.stop import iteration_of
from stepper.debug.table.columns import made_by_iteration
from stepper.debug.timeline import Timeline
from stepper.debug.visits import excursion
from stepper.element_types import Indices
from stepper.engine.frames import EventKind, Every, Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Program
from stepper.errors import Paused, StepperError
from stepper.ir.model import Layer
from stepper.query.address_resolution import Atlas, Target, from_main, layer_address, moment_address, resolve
from stepper.query.address_syntax import Address, Iterations
from stepper.records import Brief, Record

MOST_SECONDS: Final = 2.0
"""Seconds for which iterations that the run has not come to are computed."""
_STRETCH: Final = 100_000


class LoopOfRun(Record, eq=False):
    """A run of the loop with this body, by the iterations around it (None: any; fewer: the rest any).

    The model's own graph is such a body, too, of the one run that there is.
    """

    body: Program
    outer: Outer = ()


class FarRun(Brief):
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

    Of the model's own graph the one run that there is.

    Iterations that the run has not come to are computed for MOST_SECONDS; none of a loop that can never end.
    """
    machine, depth = timeline.machine, len(loop.body.path)
    outer: Outer = ()
    count: int | None = None
    with excursion(timeline):
        if depth:
            enter_run(timeline, loop.body, loop.outer)
            outer = outer_now(machine.stack[: depth + 1])
            around = next((at for at in reversed(range(1, depth)) if loop.body.path[at - 1].is_loop), None)
            count = None if around is None else iterations_in_all(timeline, around)
        _to_its_end(timeline, depth)
        if len(machine.stack) <= depth:
            timeline.goto(machine.tick - 1)
        return FarRun(loop.body, outer, depth, count, machine.snapshot())


def _to_its_end(timeline: Timeline, depth: int) -> None:
    """Go on to where the graph at this depth is left, or as far as it may be computed."""
    machine, deadline = timeline.machine, perf_counter() + MOST_SECONDS
    furthest = timeline.furthest
    if depth:
        go_to_latest(timeline, depth)
    while len(machine.stack) > depth:
        activation = machine.stack[depth].activation
        is_endless = activation is not None and never_ends(activation)
        if machine.tick >= furthest and (is_endless or perf_counter() > deadline):
            return
        until = furthest if machine.tick < furthest else machine.tick + (_STRETCH if depth else 1)
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


class Reading(Enum):
    """Kind of thing that a command takes an address for.

    VALUE: one in an iteration; COURSE: one over the iterations of a run; EDITED: one to be changed, where a Constant is
    the same in all iterations; PLACE: where to go, of a loop its iteration; GENERAL: one at any moment, unless the
    address says in which iteration.
    """

    VALUE = auto()
    COURSE = auto()
    EDITED = auto()
    PLACE = auto()
    GENERAL = auto()


class LookedAt(Record, eq=False):
    """Iterations that one looks at: of the loop with this body and of those around it, from the outside inwards.

    `at_end`: what the loop carries is shown as the iteration hands it on, else as it entered it.
    """

    compiled: CompiledModel
    body: Program
    iterations: Indices
    at_end: bool = False

    def meant(self, asked: Address, reading: Reading = Reading.VALUE) -> Address:
        """Return the address with the iterations looked at; as it is where it names nothing in these loops.

        Iterations that it names stay, and what is inside of these: `inner@0::h` is in the run of the inner loop in the
        iteration of the outer one that is looked at.
        """
        try:
            if reading is Reading.PLACE and (inside := loop_body(asked, self.compiled, self.body)) is not None:
                return self._loop(asked, inside)
            found = resolve(asked, self.compiled, self.body)
        except StepperError:  # the answer to the line will tell, or it is the name of a type or a pattern
            return asked
        return self._value(asked, found, reading)

    def iteration(self, number: int) -> Address | None:
        """Return the address of an iteration of this run of the loop (negative: from the last); None in no loop."""
        depth = loop_depth(self.body)
        if depth is None:
            return None
        path = self.body.path[:depth]
        return self._address_of_loop(path, self._known(path[:-1]), number)

    def _value(self, asked: Address, found: Target, reading: Reading) -> Address:
        loops = [place for place, one in enumerate(found.program.path) if one.is_loop]
        if not loops:
            return asked
        own, known = loops[-1], self._known(found.program.path)
        is_bare = all(one is None for one in found.iterations)
        if is_bare and _stays_bare(found, reading, is_outside=known[own] is None):
            return asked
        iterations = list(_filled(found.iterations, known))
        if reading is Reading.COURSE:
            iterations[own] = found.iterations[own]
        if tuple(iterations) == found.iterations:
            return asked
        if self.at_end and is_bare and reading is not Reading.COURSE and found.program is self.body:
            found = made_by_iteration(found, self.compiled)
        full = moment_address(found, self.compiled)
        if reading is Reading.PLACE and found.named.type == "Result":  # where the iteration is closed
            full = from_main(layer_address(found.named, found.program, self.compiled))
        body = Atlas(self.compiled).ancestor(found.program, loop_around(found))
        return replace(address_in_run(full, body, iterations[:own], iterations[own]), index=asked.index)

    def _loop(self, asked: Address, inside: Program) -> Address:
        """Return the same of the address of a loop, or of an iteration of it."""
        named = resolve(replace(asked, iterations=None), self.compiled, self.body).iterations
        outer = _filled(named, self._known(inside.path[:-1]))
        return asked if outer == named else self._address_of_loop(inside.path, outer, asked.iterations)

    def _address_of_loop(
        self, path: Sequence[Layer], outer: Sequence[Iterations | None], own: Iterations | None
    ) -> Address:
        loop, atlas = path[-1], Atlas(self.compiled)
        full = from_main(layer_address(loop, atlas.holding(loop), self.compiled))
        return address_in_run(full, atlas.bodies(loop)[0], outer, own)

    def _known(self, path: Sequence[Layer]) -> tuple[int | None, ...]:
        """Return the iterations looked at of the layers of a path."""
        loops = (layer for layer in self.body.path if layer.is_loop)
        known = {id(layer): one for layer, one in zip(loops, self.iterations, strict=False)}
        return tuple(known.get(id(layer)) for layer in path)


def _stays_bare(found: Target, reading: Reading, *, is_outside: bool) -> bool:
    """True if an address without iterations stays so; `is_outside`: its loop is not one of those looked at."""
    if reading is Reading.GENERAL:
        return True
    is_constant = found.slot not in found.program.computed_at and found.layer.type != "Parameter"
    if is_constant and reading in (Reading.EDITED, Reading.PLACE):
        return True
    return is_outside and reading in (Reading.VALUE, Reading.EDITED)  # which iteration is for the user to say


def _filled(named: Sequence[Iterations | None], known: Sequence[int | None]) -> tuple[Iterations | None, ...]:
    """Return iterations that an address names, outside of the first of them those that are known."""
    first = next((place for place, one in enumerate(named) if one is not None), len(named))
    return (*known[:first], *named[first:])
