"""One value over the iterations of a loop (an element, a part, a statistic), and what it was one iteration before.

Each question is one excursion: to where the asked iterations begin, forward through them, and back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from stepper.debug.causes.run_walk import EarlierFrames
from stepper.debug.inspection.views import PreviousValue, Series
from stepper.debug.loop_runs import (
    Batch,
    IterationReader,
    Take,
    ensure_run_here,
    enter_run_of,
    iterations_in_all,
    loop_around,
    outer_now,
)
from stepper.debug.provenance.operation_at import file_of, location_of
from stepper.debug.provenance.question import NoValueYet, seat_in
from stepper.debug.scopes import frame_of, loop_depth, output_at_end, value_now
from stepper.debug.timeline import Timeline
from stepper.debug.visits import PAUSED, excursion
from stepper.element_types import Array, read_only
from stepper.errors import UsageError
from stepper.ops.operands import LARGEST_TENSOR
from stepper.query import expression_values
from stepper.query.address_resolution import Atlas, Target, resolve
from stepper.query.address_syntax import Address, IterationRange, address_given, numpy_index
from stepper.query.expression_values import FUNCTIONS, ValueFailure
from stepper.tensors.difference import largest_gap

MOST_POINTS: Final = 10_000
MOST_ELEMENTS: Final = 4096
"""Elements that one iteration may contribute to a series."""

Read = Callable[[Any], Array]


def over_iterations(
    timeline: Timeline,
    address: str | Address,
    statistic: str | None = None,
    *,
    most: int | None = None,
    whole: bool = False,
) -> Series:
    """Return a value over the iterations of a loop: `h[0,3]`, or a statistic such as max of `h@10:20`.

    The address says which iterations (all, if it does not) and which part, and of a loop inside of another one which
    run (see loop_runs); a statistic is one of FUNCTIONS. Iterations that are still to come are computed. With more
    than `most`, every second, fourth, ... is kept; with `whole` all are, however many elements each has, up to
    LARGEST_TENSOR. May be interrupted by a pause. Raise UsageError where the loop does not run, and for a part or
    statistic that fails.
    """
    address = address_given(address)
    target = _target(timeline, address)
    depth = loop_around(target)
    most = sys.maxsize if whole else MOST_POINTS if most is None else most
    room = LARGEST_TENSOR.get() if whole else sys.maxsize
    read = _reader(address, statistic, limited=not whole)
    with excursion(timeline):
        enter_run_of(timeline, target)
        begin, end = _asked(timeline, target, depth)
        collected = _Collected(read, begin, most, room)
        machine = timeline.machine
        path = location_of(machine.stack[:depth], file_of(machine.compiled)).path
        stopped = _read(timeline, target, begin, end, collected.take)
    if collected.problem:
        raise UsageError(f"{address}: {collected.problem}")
    name = f"{statistic}({address})" if statistic else str(address)
    in_branch = len(target.program.path) > depth
    return Series(
        name,
        tuple(collected.iterations),
        tuple(collected.values),
        collected.step,
        stopped,
        collected.total,
        in_branch,
        tuple(one for one in path if one.iteration is not None),
    )


def previous_value(timeline: Timeline, address: str | Address, *, compared: bool = True) -> PreviousValue:
    """Return a value and what it was in the iteration before; unless `compared`, without the change.

    It is that of the present iteration, or of the one that the address names. Raise UsageError where there is no
    iteration before.
    """
    address = address_given(address)
    target = _target(timeline, address)
    read = _reader(address, None, limited=False)
    iteration = _iteration_meant(timeline, target)
    try:
        now = read(value_in(timeline, target))
    except UsageError:
        now = None
    before = read(value_before(timeline, target))
    return PreviousValue(iteration, now, before, largest_gap(now, before) if compared and now is not None else None)


def value_before(timeline: Timeline, target: Target) -> Any:
    """Return what a place held one iteration before the present one, or before the one that its address names.

    Raise UsageError where that was not computed.
    """
    asked = _iteration_named(timeline, target)
    iteration = _iteration_meant(timeline, target)
    if iteration < 1:
        raise UsageError(f"'{target.named.name}' has no iteration before this one")
    if asked is None:
        frame = timeline.machine.stack[loop_around(target)]
        if frame.program is target.program and (kept := frame.before(target.slot)) is not None:
            return kept
    return value_in_iteration(timeline, target, iteration - 1)


def value_in(timeline: Timeline, target: Target) -> Any:
    """Return what a place holds now, or in the one iteration of the innermost loop that its address names.

    UsageError.
    """
    asked = _iteration_named(timeline, target)
    if asked is None:
        stack = timeline.machine.stack
        if not stack and target.program is timeline.machine.compiled.main:
            return output_at_end(timeline.machine, target)
        if loop_depth(target.program) is None and frame_of(stack, target.program) is None:
            return _value_in_branch(timeline, target)
        return value_now(stack, target)
    return value_in_iteration(timeline, target, asked)


def _value_in_branch(timeline: Timeline, target: Target) -> Any:
    """Return what a place held when the run left the If that is around it, outside of all loops. UsageError."""
    atlas = Atlas(timeline.machine.compiled)
    with closing(EarlierFrames(timeline)) as frames:
        try:
            seat = seat_in(frames, atlas, target.program, (), target.named.name)
        except NoValueYet:
            return value_now(timeline.machine.stack, target)
        return frames.frame(seat).values[target.slot]


def part_of(address: Address, value: Any) -> Array:
    """Return the part of a value that an address names, read-only. UsageError where the value has no such part."""
    return _reader(address, None, limited=False)(value)


def value_in_iteration(timeline: Timeline, target: Target, iteration: int) -> Any:
    """Return what a place holds in one iteration of the loop, negative ones counted from the last.

    Raise UsageError where it is not computed.
    """
    found: list[Any] = []

    def take(_begin: int, batch: Batch) -> bool:
        found.extend(value for value in batch[0] if value is not None)
        return bool(found)

    with excursion(timeline):
        depth = enter_run_of(timeline, target)
        wanted = iteration if iteration >= 0 else iteration + iterations_in_all(timeline, depth)
        if wanted < 0:
            raise UsageError(f"'{target.named.name}' has no value there: the loop has no iteration so early")
        stopped = _read(timeline, target, wanted, wanted + 1, take)
    if not found:
        why = f" ({stopped})" if stopped else ""
        raise UsageError(f"'{target.named.name}' has no value in iteration {wanted}{why}")
    return found[0]


def _read(timeline: Timeline, target: Target, begin: int, end: float, take: Take) -> str:
    """Read a place in iterations of the run of its loop that goes on here; return why that ended early."""
    machine, depth, inner = timeline.machine, loop_around(target), target.program
    body = machine.stack[depth].program
    outer = outer_now(machine.stack[: depth + 1])
    reader = IterationReader(body, outer, [target.slot], None if inner is body else inner, begin=begin, end=end)
    return reader.failure if reader.read(timeline, take) else PAUSED


# --- where ----------------------------------------------------------------------------------------------------------


def _target(timeline: Timeline, address: Address) -> Target:
    return resolve(address, timeline.machine.compiled, timeline.machine.program)


def _iteration_named(timeline: Timeline, target: Target) -> int | None:
    """Return the iteration of the innermost loop that an address names; None for none. UsageError for several.

    NotRunning for an address that names a run of that loop alone, which does not run here.
    """
    if all(one is None for one in target.iterations):
        return None
    asked = target.iterations[loop_around(target) - 1]
    if isinstance(asked, IterationRange):
        raise UsageError(f"'{target.named.name}' is asked for in several iterations")
    if asked is None:
        ensure_run_here(timeline.machine.stack, target)
    return asked


def _iteration_meant(timeline: Timeline, target: Target) -> int:
    """Return the iteration of the innermost loop that an address names, counted from the first; else the present one.

    Below 0: the loop has none so early. Raise UsageError where the loop does not run.
    """
    asked = _iteration_named(timeline, target)
    if asked is None:
        depth, path, stack = loop_around(target), target.program.path, timeline.machine.stack
        if depth >= len(stack) or stack[depth].program.path != path[:depth]:
            loop = path[depth - 1]
            raise UsageError(f"'{target.named.name}' is in {loop.type} '{loop.name}', which does not run here")
        return stack[depth].active.iteration
    if asked >= 0:
        return asked
    with excursion(timeline):
        return asked + iterations_in_all(timeline, enter_run_of(timeline, target))


def _asked(timeline: Timeline, target: Target, depth: int) -> tuple[int, float]:
    """Return the iterations that an address names, as a half-open range; for those from the end all must be known."""
    asked = target.iterations[loop_around(target) - 1]
    if asked is None:
        return 0, np.inf
    if isinstance(asked, int):
        asked = IterationRange(asked, asked + 1 if asked != -1 else None)
    if min(asked.start or 0, asked.stop or 0) < 0:
        numbers = asked.numbers(iterations_in_all(timeline, depth))
        return numbers.start, numbers.stop
    return asked.start or 0, np.inf if asked.stop is None else asked.stop


# --- what -----------------------------------------------------------------------------------------------------------


def _reader(address: Address, statistic: str | None, *, limited: bool = True) -> Read:
    """Return what is kept of a value: the part that the address names, or one number."""
    if statistic is not None and statistic not in FUNCTIONS:
        raise UsageError(f"there is no statistic '{statistic}'; there are {', '.join(sorted(FUNCTIONS))}")
    index = numpy_index(address.index)
    function = None if statistic is None else expression_values.call(statistic)

    def read(value: Any) -> Array:
        try:
            part = expression_values.element(value, index) if index else value
            found = np.asarray(part if function is None else function(part))
        except ValueFailure as error:
            raise UsageError(f"{address}: {error}") from None
        if limited and found.size > MOST_ELEMENTS:
            raise UsageError(f"{address} has {found.size} elements in an iteration; ask for a part, or a statistic")
        return read_only(found.copy() if limited else found)

    return read


class _Collected(Struct):
    """The values of a series so far, from iteration `begin` on; every `step`-th is kept."""

    read: Read
    begin: int
    most: int
    room: int
    step: int = 1
    total: int = 0
    problem: str = ""
    iterations: list[int] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)

    def take(self, begin: int, batch: Batch) -> bool:
        """Take the values of iterations from `begin` on; True if one is a problem."""
        for iteration, value in enumerate(batch[0], begin):
            self.total += value is not None
            if value is None or (iteration - self.begin) % self.step:
                continue
            try:
                self.values.append(self.read(value))
            except UsageError as error:
                self.problem = str(error)
                return True
            self.room -= self.values[-1].nbytes
            if self.room < 0:
                self.problem = f"takes more than {LARGEST_TENSOR.get() / 2**20:,.0f} MB; ask for fewer iterations"
                return True
            self.iterations.append(iteration)
            if len(self.values) > self.most:
                self.step *= 2
                kept = [place for place, at in enumerate(self.iterations) if (at - self.begin) % self.step == 0]
                self.iterations = [self.iterations[place] for place in kept]
                self.values = [self.values[place] for place in kept]
        return False
