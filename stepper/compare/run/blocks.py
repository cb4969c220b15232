"""Our run ahead of a comparison: a block of iterations of a loop without loops in it, with all of their values.

A reference that computes each iteration from our values may so compute many with one call. What agrees is then known
of all at once; where anything does not, the run is put back, and those iterations are compared one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.compare.references.protocol import BodyIterations
from stepper.debug.reference_values import GraphPath, step_of
from stepper.element_types import Array
from stepper.engine.frames import Activation, Event, EventKind, Every, Frame, Phase, RunObserver, Snapshot, Taps
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, OpKind, Program
from stepper.errors import KernelError, StepperError

_MOST_BYTES: Final = 2**25
"""Of our values of a block."""

_MOST_ITERATIONS: Final = 4096
_OF_AN_ARRAY: Final = 128
"""Bytes that an array takes beside its numbers."""


class IterationBlock(Struct, frozen=True):
    """Iterations of our run that were made: from `first` on, `count` of them.

    `bodies` are the values of the loop's own body, and of the branches of Ifs that were taken. `last` is the event with
    which the machine stands behind them.
    """

    frame: Frame
    first: int
    count: int
    bodies: Sequence[BodyIterations]
    last: Event


class BlockRun:
    """Runs blocks of iterations ahead, and back again."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._in_blocks: dict[int, bool] = {}
        """By program of a loop's body: whether its iterations are run in blocks."""
        self._alone_until = 0
        self._start: tuple[Snapshot, list[Frame]] | None = None

    def ahead(self) -> IterationBlock | None:
        """Run iterations of the innermost loop; None where that is not to be, and nothing was run."""
        machine = self._machine
        frame = machine.stack[-1]
        most = self._most(frame)
        if most < 1:
            return None
        self._start = machine.snapshot(), list(machine.stack)
        collector = _Collector(frame)
        with _observed(machine, collector):
            try:
                last = self._advance(frame, 1)
                room = _MOST_BYTES // max(1, collector.bytes)
                more = min(room, _MOST_ITERATIONS, most) - 1
                if last.kind is not EventKind.LEFT and more > 0:
                    last = self._advance(frame, more, collector)
            except StepperError:
                last = None
        block = None if last is None else collector.block(last)
        if block is None:
            if last is None and not collector.has_changed:
                self._alone_until = machine.tick + 1
            else:
                self.leave_alone(frame.program)
            self.back()
        return block

    def back(self) -> None:
        """Put the run back to where the block begins; frames stay the same objects."""
        assert self._start is not None, "it was ahead"
        snapshot, frames = self._start
        self._machine.restore(snapshot)
        for frame, copied in zip(frames, self._machine.stack, strict=True):
            for name in Frame.__slots__:
                setattr(frame, name, getattr(copied, name))
        self._machine.stack = list(frames)

    def skip(self, frame: Frame, count: int) -> None:
        """Run iterations again, of which nothing is to be seen."""
        self._advance(frame, count)

    def one(self, frame: Frame) -> Iterator[Event]:
        """Run one iteration; yield its events up to that of its end."""
        for event in self._events():
            yield event
            if event.kind is EventKind.ITERATION and event.frame is frame:
                return

    def leave_alone(self, program: Program) -> None:
        """Have iterations of a body looked at one by one from now on."""
        self._in_blocks[id(program)] = False

    def _advance(self, frame: Frame, count: int, collector: _Collector | None = None) -> Event:
        """Run so many iterations, or as many as there are, or until what is collected cannot be a block."""
        if frame.program.straight:
            until = self._machine.tick + count * (len(frame.program.code) + 2)
            while (event := self._machine.advance(Every.LOOP, until=until)).kind is EventKind.PAUSED:
                pass
            return event
        for event in self._events():
            if event.frame is frame:
                count -= event.kind is EventKind.ITERATION
                if event.kind is EventKind.LEFT or not count or (collector is not None and collector.has_changed):
                    return event
        raise AssertionError("a run goes on until its loop is left")

    def _events(self) -> Iterator[Event]:
        """Yield the events from now on, as they are made."""
        while True:
            event = self._machine.advance(Every.ITERATION)
            if event.kind is not EventKind.PAUSED:
                yield event

    def _most(self, frame: Frame) -> int:
        """Return how many iterations may be run, as far as their number is known; 0 for none."""
        activation, program = frame.activation, frame.program
        if activation is None or not isinstance(activation.plan, LoopPlan) or frame.phase is not Phase.BETWEEN:
            return 0
        if self._machine.tick < self._alone_until or not self._in_blocks.setdefault(
            id(program), _has_no_loops(program)
        ):
            return 0
        ends = (activation.slice_count, activation.limit, self._machine.max_iterations)
        return min(end for end in ends if end is not None) - activation.iteration - 1


class _CollectedValues:
    """The values of a body's iterations, as they are collected."""

    def __init__(self, frame: Frame, steps: GraphPath, order: tuple[int, ...], parameters: Sequence[int]) -> None:
        """`parameters` are those that change, `rows` the iterations of a branch; those of a loop's own body are all."""
        slots = [*parameters, *(slot for operation in frame.program.operations for slot in operation.outputs)]
        self.frame, self.steps, self.order = frame, steps, order
        self.rows: list[int] = []
        self.values: dict[int, list[Any]] = {slot: [] for slot in slots}

    @property
    def bytes(self) -> int:
        """The bytes of the values of an iteration, by the first one."""
        return sum(values[0].nbytes + _OF_AN_ARRAY for values in self.values.values() if values)

    def take(self, frame: Frame, row: int) -> bool:
        """Take the values of an iteration; False where one has another shape than before."""
        self.frame = frame
        self.rows.append(row)
        for slot, values in self.values.items():
            values.append(frame.values[slot])
        return all(values[-1].shape == values[0].shape for values in self.values.values())

    def iterations(self, rows: Array) -> BodyIterations | None:
        """Return them; None where values have changed their types or shapes."""
        stacked = {}
        for slot, values in self.values.items():
            found = _stacked(values)
            if found is None:
                return None
            stacked[slot] = found
        return BodyIterations(self.frame, self.steps, self.order, rows, stacked)


class _Collector(RunObserver):
    """Takes the values of a frame's iterations, and of the branches of Ifs in them."""

    def __init__(self, frame: Frame) -> None:
        plan: Any = frame.activation.plan if frame.activation is not None else None
        unchanging = {entry.parameter for entry in plan.invariant}.union(plan.unfed)
        changing = [slot for slot in frame.program.parameters if slot not in unchanging]
        self._own = _CollectedValues(frame, (), (), changing)
        self._frame, self._may_grow = frame, plan.may_grow
        self._branches: dict[int, _CollectedValues] = {}
        self._open: list[Frame] = []
        self.has_changed = False
        self._first = frame.activation.iteration + 1 if frame.activation is not None else 0

    @property
    def count(self) -> int:
        """The iterations of which all values were taken."""
        return min(map(len, self._own.values.values()), default=0)

    @property
    def bytes(self) -> int:
        """The bytes of the values of an iteration, by the first one."""
        return self._own.bytes + sum(branch.bytes for branch in self._branches.values())

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of an iteration."""
        if frame is self._frame and not self._own.take(frame, self.count):
            self.has_changed = True

    def entered(self, stack: Sequence[Frame]) -> None:
        """Note which values of a branch are of its iteration alone."""
        outer, frame = stack[-2:]
        around = self._branches[id(outer.program)] if self._open else self._own
        self._open.append(frame)
        if id(frame.program) not in self._branches:
            activation: Any = frame.activation
            inputs = activation.operation.inputs
            changing = [slot for index, slot in activation.plan.inputs if inputs[index] in around.values]
            order = (*around.order, outer.pc, len(self._branches))
            steps = tuple(map(step_of, self._open))
            self._branches[id(frame.program)] = _CollectedValues(frame, steps, order, changing)

    def branch_left(self, _stack: Sequence[Frame], _activation: Activation) -> None:
        """Take the values of a branch."""
        frame = self._open.pop()
        if not self._branches[id(frame.program)].take(frame, self.count):
            self.has_changed = True

    def taps(self, frame: Frame) -> Taps | None:
        """Return how the values of the next ones are taken."""
        if frame is not self._frame:
            return None
        taken = self._bounded if self._may_grow else lambda values: values.append
        return Taps([(taken(values), slot) for slot, values in self._own.values.items()], sys.maxsize, lambda: None)

    def _bounded(self, values: list[Any]) -> Callable[[Any], None]:
        """Return how values are taken that must not grow: as many as there are of them would not fit into memory."""
        shape = values[0].shape

        def take(value: Any) -> None:
            if value.shape != shape:
                self.has_changed = True
                raise KernelError("its shape changes")
            values.append(value)

        return take

    def block(self, last: Event) -> IterationBlock | None:
        """Return the iterations; None where values have changed their types or shapes, or there are none."""
        count = self.count
        own = self._own.iterations(np.arange(count))
        if own is None or not own.stacked:
            return None
        branches = [one for one in self._branches.values() if one.values]
        found = [own, *(one.iterations(np.array(one.rows)) for one in branches)]
        bodies = [body for body in found if body is not None]
        return IterationBlock(self._frame, self._first, count, bodies, last) if len(bodies) == len(found) else None


def _stacked(values: Sequence[Any]) -> Array | None:
    """Return values on a new first axis; None where they are not all of one type and shape."""
    if not values or any(value is None for value in values):
        return None
    shape, dtype = values[0].shape, values[0].dtype
    if any(value.shape != shape or value.dtype != dtype for value in values):
        return None
    if shape:
        return np.concatenate(values).reshape(len(values), *shape)
    return np.array(values, dtype)


def _has_no_loops(program: Program) -> bool:
    """Return True for a body whose operations, and those of the branches of its Ifs, are functions of their inputs."""
    return program.straight or all(
        operation.kind is OpKind.KERNEL
        or (operation.kind is OpKind.BRANCH and all(_has_no_loops(plan.program) for plan in operation.plans))
        for operation in program.operations
    )


@contextmanager
def _observed(machine: Machine, observer: RunObserver) -> Iterator[None]:
    before = machine.observers
    machine.observers = (*before, observer)
    try:
        yield
    finally:
        machine.observers = before


def finite_iterations(block: IterationBlock) -> Array:
    """Return for each iteration if all of its floating values are finite."""
    found = np.ones(block.count, np.bool_)
    for body in block.bodies:
        for value in body.stacked.values():
            if value.dtype.kind not in "iub":
                found[body.rows] &= np.isfinite(value).reshape(len(body.rows), -1).all(axis=1)
    return found
