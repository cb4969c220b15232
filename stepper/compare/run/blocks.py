"""Our run ahead of a comparison: a block of iterations of a straight body, with all of their values.

A reference that computes each iteration from our values may so compute many with one call. What agrees is then known
of all at once; where anything does not, the run is put back, and those iterations are compared one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.events import Event, EventKind, Every, RunObserver, Taps
from stepper.engine.frames import Frame, Phase, Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program
from stepper.errors import KernelError, StepperError

_MOST_BYTES: Final = 2**25
"""Of our values of a block."""

_MOST_ITERATIONS: Final = 4096
_OF_AN_ARRAY: Final = 128
"""Bytes that an array takes beside its numbers."""


class IterationBlock(Struct, frozen=True):
    """Iterations of our run that were made: from `first` on, `count` of them.

    `stacked` are the values that change from iteration to iteration, by slot, on a new first axis. `last` is the event
    with which the machine stands behind them.
    """

    frame: Frame
    first: int
    count: int
    stacked: Mapping[int, Array]
    last: Event

    def of(self, slot: int) -> Array | None:
        """Return the values of a slot on a new first axis; None where it has none."""
        if slot in self.stacked:
            return self.stacked[slot]
        value = self.frame.values[slot]
        return None if value is None else np.broadcast_to(np.asarray(value), (self.count, *value.shape))


class BlockRun:
    """Runs blocks of iterations ahead, and back again."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._without: set[int] = set()
        self._alone_until = 0
        self._start: tuple[Snapshot, list[Frame]] | None = None

    def ahead(self) -> IterationBlock | None:
        """Run iterations of the innermost loop; None where that is not to be, and nothing was run."""
        machine = self._machine
        frame = machine.stack[-1]
        most = self._most(frame)
        if most < 1:
            return None
        begin = machine.tick
        self._start = machine.snapshot(), list(machine.stack)
        collector = _Collector(frame)
        with _observed(machine, collector):
            try:
                last = self._advance(frame, 1)
                room = _MOST_BYTES // max(1, collector.bytes)
                more = min(room, _MOST_ITERATIONS, most) - 1
                if last.kind is EventKind.REACHED and more > 0:
                    last = self._advance(frame, more)
            except StepperError:
                last = None
        block = None if last is None else collector.block(last)
        if block is None:
            self.back()
            if last is None and not collector.has_changed:
                self._alone_until = begin + (collector.count + 1) * _cost(frame)
            else:
                self.leave_alone(frame.program)
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

    def one(self) -> Event:
        """Run one iteration; the event of its end."""
        while (event := self._machine.advance(Every.ITERATION)).kind is EventKind.PAUSED:
            pass
        return event

    def leave_alone(self, program: Program) -> None:
        """Have iterations of a body looked at one by one from now on."""
        self._without.add(id(program))

    def _advance(self, frame: Frame, count: int) -> Event:
        until = self._machine.tick + count * _cost(frame)
        while (event := self._machine.advance(Every.LOOP, until=until)).kind is EventKind.PAUSED:
            pass
        return event

    def _most(self, frame: Frame) -> int:
        """Return how many iterations may be run, as far as their number is known; 0 for none."""
        activation, program = frame.activation, frame.program
        if activation is None or not isinstance(activation.plan, LoopPlan) or frame.phase is not Phase.BETWEEN:
            return 0
        if not program.straight or id(program) in self._without or self._machine.tick < self._alone_until:
            return 0
        ends = [activation.slice_count if activation.limit is None else min(activation.limit, activation.slice_count)]
        return min(*ends, sys.maxsize) - activation.iteration - 1


class _Collector(RunObserver):
    """Takes the values of a frame's iterations."""

    def __init__(self, frame: Frame) -> None:
        plan: Any = frame.activation.plan if frame.activation is not None else None
        unchanging = {entry.parameter for entry in plan.invariant}.union(plan.unfed)
        program = frame.program
        slots = [slot for slot in program.parameters if slot not in unchanging]
        slots += [slot for operation in program.operations for slot in operation.outputs]
        self._frame, self._may_grow = frame, plan.may_grow
        self._values: dict[int, list[Any]] = {slot: [] for slot in slots}
        self.has_changed = False
        self._first = frame.activation.iteration + 1 if frame.activation is not None else 0

    @property
    def count(self) -> int:
        """The iterations of which all values were taken."""
        return min(map(len, self._values.values()), default=0)

    @property
    def bytes(self) -> int:
        """The bytes of the values of an iteration, by the first one."""
        return sum(values[0].nbytes + _OF_AN_ARRAY for values in self._values.values() if values)

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of an iteration."""
        if frame is self._frame:
            for slot, values in self._values.items():
                values.append(frame.values[slot])

    def taps(self, frame: Frame) -> Taps | None:
        """Return how the values of the next ones are taken."""
        if frame is not self._frame:
            return None
        taken = self._bounded if self._may_grow else lambda values: values.append
        return Taps([(taken(values), slot) for slot, values in self._values.items()], sys.maxsize, lambda: None)

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
        stacked = {}
        for slot, values in self._values.items():
            found = _stacked(values)
            if found is None:
                return None
            stacked[slot] = found
        if not stacked:
            return None
        return IterationBlock(self._frame, self._first, self.count, stacked, last)


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


def _cost(frame: Frame) -> int:
    """Return the ticks of an iteration."""
    return len(frame.program.code) + 2


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
    for value in block.stacked.values():
        if value.dtype.kind not in "iub":
            found &= np.isfinite(value).reshape(block.count, -1).all(axis=1)
    return found
