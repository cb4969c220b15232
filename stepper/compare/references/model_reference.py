"""A second model as the reference: its machine follows ours, move by move, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from stepper.compare.align import Alignment, GraphPair
from stepper.compare.references.protocol import LoopOutcome, ReferenceFailed, ReferenceRun, SyncKind, SyncPoint
from stepper.element_types import Array
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.errors import StepperError
from stepper.ir.model import Layer

_MORE_ITERATIONS: Final = 1000
"""How many iterations the reference may run on, beyond as many as ours did, before it is given up."""


class ModelFrame(Struct):
    """Values of one frame of the reference, by our layers."""

    pair: GraphPair
    frame: Frame
    before: list[Any] | None
    outcome: LoopOutcome | None = None
    branch: bool | None = None

    def value(self, layer: Layer, output: int) -> Array | None:
        """Return its value where it was computed in this iteration."""
        slot = self._slot(layer, output)
        if slot is None or not self.frame.is_current(slot):
            return None
        found: Array | None = self.frame.values[slot]
        return found

    def earlier(self, layer: Layer, output: int) -> Array | None:
        """Return its value when the iteration before had run."""
        slot = self._slot(layer, output)
        return None if slot is None or self.before is None else self.before[slot]

    def _slot(self, layer: Layer, output: int) -> int | None:
        partner = self.pair.layers.get(layer.id)
        return None if partner is None else self.frame.program.slots.get((partner, output))


class _Level(Struct):
    """A frame of the reference that stands for one of ours; `last` and `before`: values after the latest iterations."""

    frame: Frame
    last: list[Any] | None = None
    before: list[Any] | None = None


class ModelReference(ReferenceRun):
    """The run of a second model beside ours. `machine` has begun nothing yet; `alignment` maps our layers to its."""

    is_exact = True
    knows_all_iterations = True

    def __init__(self, machine: Machine, alignment: Alignment, title: str) -> None:
        self.title = title
        self.machine = machine
        self.alignment = alignment
        self._levels = [_Level(machine.stack[0])]
        self._pending: Event | None = None
        self._given_up = False

    def at(self, point: SyncPoint) -> ModelFrame | None:
        """Move on to the same point and return its values; None where it never comes."""
        depth = len(point.path)
        pair = self.alignment.pair(point.frame.program.graph)
        if self._given_up or pair is None or len(self._levels) - 1 != depth:
            return None
        if point.kind is SyncKind.ENTERED:
            return self._enter(point, pair)
        if point.kind is SyncKind.ITERATION:
            return self._iterate(depth, pair)
        if point.kind is SyncKind.LEFT:
            return self._leave(depth, pair)
        self._to_the_end_of(depth, EventKind.FINISHED)
        return ModelFrame(pair, self._levels[0].frame, None)

    def outputs(self) -> Mapping[int, Array]:
        """Return outputs by the positions of ours, where the run has come to its end."""
        arrays, pair = self.machine.outputs, self.alignment.pairs[0]
        if arrays is None:
            return {}
        theirs = {layer.id: arrays[index] for index, layer in enumerate(self.machine.compiled.main.graph.results)}
        partners = [pair.layers.get(layer.id) for layer in pair.ours.results]
        return {position: theirs[partner] for position, partner in enumerate(partners) if partner in theirs}

    # --- following -----------------------------------------------------------------------------------------------

    def _enter(self, point: SyncPoint, pair: GraphPair) -> ModelFrame | None:
        assert point.operation is not None
        depth, level = len(point.path), self._levels[-1]
        partner = pair.partner(point.operation.layer.id)
        while partner is not None:
            event = self._next()
            if event.kind is not EventKind.ENTERED:
                self._pending = event  # the graph around it has come to its end without it
                break
            inner = self.machine.stack[-1]
            if inner.active.operation.layer.id == partner.id:
                self._levels.append(_Level(inner))
                chosen = None if inner.loop else inner.active.condition
                return ModelFrame(pair, level.frame, level.last, branch=chosen)
            self._skip(depth + 1)
        return ModelFrame(pair, level.frame, level.last)

    def _iterate(self, depth: int, pair: GraphPair) -> ModelFrame | None:
        level = self._levels[-1]
        event = self._next_of(depth)
        if event.kind is not EventKind.ITERATION:
            self._pending = event
            return None
        level.before, level.last = level.last, list(level.frame.values)
        return ModelFrame(pair, level.frame, level.before)

    def _leave(self, depth: int, pair: GraphPair) -> ModelFrame | None:
        level = self._levels[-1]
        activation = level.frame.active
        complete = self._to_the_end_of(depth, EventKind.LEFT)
        outcome = None
        if level.frame.loop:
            outcome = LoopOutcome(activation.iteration + 1, str(activation.ended or ""), complete)
        self._levels.pop()
        if not complete:
            self._given_up = True
        return ModelFrame(pair, level.frame, level.last, outcome)

    def _to_the_end_of(self, depth: int, kind: EventKind) -> bool:
        """Run to the end of the frame at this depth; False where that takes too many iterations."""
        activation = self._levels[-1].frame.activation
        patience = _MORE_ITERATIONS + (0 if activation is None else activation.iteration + 1)
        while True:
            event = self._next_of(depth)
            if event.kind is kind:
                return True
            if event.kind is not EventKind.ITERATION:
                raise AssertionError(f"{event.kind} where {kind} was to come")
            patience -= 1
            if patience < 0:
                return False

    def _next_of(self, depth: int) -> Event:
        """Return the next event of the frame at this depth; nested graphs that nobody asked about are run through."""
        while True:
            event = self._next()
            if event.kind is not EventKind.ENTERED:
                return event
            self._skip(depth + 1)

    def _skip(self, depth: int) -> None:
        """Run to the end of the nested frame at this depth."""
        while len(self.machine.stack) > depth:
            self._advance(Every.LOOP)

    def _next(self) -> Event:
        event, self._pending = self._pending, None
        return event or self._advance(Every.ITERATION)

    def _advance(self, every: Every) -> Event:
        try:
            return self.machine.advance(every)
        except StepperError as error:
            self._given_up = True
            raise ReferenceFailed(str(error)) from error
