"""Many iterations of a loop in another runtime at once: each operation alone, and the body as a whole.

Operations of the body are one call for all iterations, those of a branch of an If one for the iterations that took it.

All is computed from our values, each iteration by itself. What cannot be computed so is left to be computed
iteration by iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.compare.references.protocol import BodyIterations, ReferenceBlock, ReferenceFrame, SyncPoint
from stepper.compare.references.together import JointPeer, ValuesBySource, is_pure, judge
from stepper.debug.reference_values import loop_steps
from stepper.element_types import STRING_DTYPE, Array
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.errors import KernelError, StepperError, UsageError
from stepper.ir.model import Graph, Layer, Source
from stepper.openvino.peer import BegunFunction, JointOperations, OperationRefused
from stepper.tensors.tolerances import Tolerance, Tolerances

_MOST_TRIES: Final = 4
"""Compilations of a body's operations: for other shapes, or without those that were refused."""

Stacked = Mapping[int, Array]
"""Values of a body by slot, those of many iterations on a new first axis."""

_Outputs = Callable[[], dict[tuple[int, int], Array]]


class BlockPeer(JointPeer, Protocol):
    """A runtime that computes many iterations with one call."""

    def together(
        self,
        graph: Graph,
        layers: Sequence[Layer],
        values: Mapping[Source, Any],
        stacked: Container[Source] | None = None,
        judge: Mapping[Source, Tolerance] | None = None,
    ) -> JointOperations:
        """Return operations as one function, of the stacked values of these sources."""

    def iterated_body(self, graph: Graph, stacked: Sequence[bool]) -> BegunFunction:
        """Return a body as a function of its Parameters' values, those stacked that are said to be."""


class _Body:
    """A program, and what is compiled of it for the signature of its values."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.refused: set[str] = set()
        self.tries = 0
        self.signature: Any = None
        self.joint: JointOperations | None = None
        self.whole: BegunFunction | None = None
        self.has_whole = True


class IteratedValues(Struct, frozen=True):
    """The runtime's values of a body in the iterations `rows`, by index of the operation and output; and its Results.

    `has_results` is False where these are not known: of a branch.
    """

    program: Program
    rows: Array
    outputs: Mapping[tuple[int, int], Array]
    results: Mapping[int, Array]
    has_results: bool

    def stacked(self, layer: Layer, output: int) -> Array | None:
        """Return its values of all iterations; None where they are not known together."""
        if layer.type == "Result":
            return self.results.get(layer.id)
        return self.outputs.get((self.program.indices.get(layer.id, -1), output))

    def knows(self, layer: Layer) -> bool:
        """Return False for what it has no value of in any iteration."""
        if layer.type == "Result":
            return self.has_results
        index = self.program.indices.get(layer.id)
        return index is not None and is_pure(self.program.operations[index])

    def one(self, layer: Layer, output: int, row: int) -> Array | None:
        """Return its value of one iteration."""
        found = self.stacked(layer, output)
        return None if found is None else np.asarray(found[np.searchsorted(self.rows, row)])


class BlockValues(Struct, frozen=True):
    """The runtime's values of a block, by body. `at_point` gives the frame of a point, with which they go along."""

    bodies: Sequence[IteratedValues]
    at_point: Callable[[SyncPoint, BlockValues], ReferenceFrame]
    first: int

    def one(self, point: SyncPoint, layer: Layer, output: int) -> Array | None:
        """Return the value of an output in the graph and the iteration of a point."""
        iteration = loop_steps(point.path)[-1].iteration
        assert iteration is not None, "it is a loop's"
        body = next((one for one in self.bodies if one.program is point.frame.program), None)
        return None if body is None else body.one(layer, output, iteration - self.first)

    def at(self, point: SyncPoint) -> ReferenceFrame:
        """Return its side of a point in the block."""
        return self.at_point(point, self)


class IteratedBodies:
    """All bodies of a run as functions of blocks of their iterations; `before` is waited for before any of them."""

    def __init__(
        self,
        peer: BlockPeer,
        at_point: Callable[[SyncPoint, BlockValues], ReferenceFrame],
        before: Callable[[], object],
    ) -> None:
        self._peer, self._at_point, self._before = peer, at_point, before
        self.tolerances: Tolerances | None = None
        """Within which ours may stand for a value."""
        self._bodies: dict[int, _Body] = {}

    def has(self, program: Program) -> bool:
        """Return True if iterations of the program have been computed in blocks."""
        return id(program) in self._bodies

    def computed(self, first: int, bodies: Sequence[BodyIterations]) -> ReferenceBlock | None:
        """Return what the runtime makes of our values of a block; None where something cannot be computed together.

        These iterations, and those that follow, are then to be computed one by one.
        """
        is_stackable = all(_is_stackable(value) for ours in bodies for value in ours.stacked.values())
        with suppress(StepperError, KernelError, RuntimeError):  # refused for good, or it crashed, or met a limit
            if is_stackable:
                begun = [self._begin(ours) for ours in bodies]
                self._before()
                return BlockValues([values() for values in begun], self._at_point, first)
        for ours in bodies:
            self._bodies.pop(id(ours.frame.program), None)
        return None

    def _begin(self, ours: BodyIterations) -> Callable[[], IteratedValues]:
        """Begin to compute a body, and return what waits for its values. OperationRefused where it can do nothing."""
        program = ours.frame.program
        body = self._bodies.setdefault(id(program), _Body(program))
        signature = [(slot, value.dtype, value.shape[1:]) for slot, value in ours.stacked.items()]
        if signature != body.signature:
            body.signature, body.joint, body.whole = signature, None, None
        operations = self._begin_operations(body, ours)
        is_branch = bool(ours.steps)
        whole: Callable[[], dict[int, Array]] = dict if is_branch else self._begin_body(body, ours)

        def values() -> IteratedValues:
            outputs = self._without_refused(body, ours, operations)
            return IteratedValues(program, ours.rows, outputs, whole(), body.has_whole and not is_branch)

        return values

    def _without_refused(self, body: _Body, ours: BodyIterations, begun: _Outputs) -> dict[tuple[int, int], Array]:
        """Return what was begun; where an operation is refused, that of the others."""
        while True:
            try:
                return begun()
            except OperationRefused as refused:
                body.joint = None
                if refused.layer is None or refused.layer.type in body.refused:
                    raise
                body.refused.add(refused.layer.type)
                begun = self._begin_operations(body, ours)

    def _begin_operations(self, body: _Body, ours: BodyIterations) -> _Outputs:
        program, frame, stacked = body.program, ours.frame, ours.stacked
        if body.joint is None:
            if body.tries >= _MOST_TRIES:
                raise OperationRefused("it was tried often enough", None)
            body.tries += 1
            layers = [one.layer for one in program.operations if is_pure(one) and one.layer.type not in body.refused]
            values, many = ValuesBySource(partial(_first_value, frame, stacked)), _StackedSources(program, stacked)
            tolerances = judge(self.tolerances, layers, lambda one: stacked.get(program.slots.get(one, -1)))
            body.joint = self._peer.together(program.graph, layers, values, many, tolerances)
        joint, slots = body.joint, program.slots
        if not joint.layers:
            if any(map(is_pure, program.operations)):
                raise OperationRefused("each is to be computed by itself", None)
            return dict
        taken = [slots[output.layer, output.output] for output in joint.outputs]
        given = [_value(frame, slots[source.layer, source.output], stacked) for source in joint.sources]
        given += [stacked[slots[output.layer, output.output]] for output in joint.compared]
        if not any(slots[source.layer, source.output] in stacked for source in joint.sources):
            raise OperationRefused("nothing of it changes", None)
        begun = joint.begin(*given)

        def outputs() -> dict[tuple[int, int], Array]:
            return {
                (program.indices[output.layer], output.output): stacked[slot] if value is None else value
                for output, slot, value in zip(joint.outputs, taken, begun(), strict=True)
            }

        return outputs

    def _begin_body(self, body: _Body, ours: BodyIterations) -> Callable[[], dict[int, Array]]:
        program, frame, stacked = body.program, ours.frame, ours.stacked
        many = [slot in stacked for slot in program.parameters]
        if not body.has_whole or not any(many):
            return dict
        if body.whole is None:
            try:
                body.whole = self._peer.iterated_body(program.graph, many)
            except UsageError:  # the file has no such body
                body.has_whole = False
                return dict
        begun = body.whole.begin(*[_value(frame, slot, stacked) for slot in program.parameters])
        return lambda: {layer.id: value for layer, value in zip(program.graph.results, begun(), strict=False)}


def _is_stackable(value: Any) -> bool:
    return value.size > 0 and value.dtype != STRING_DTYPE and element_types.of(value).bits >= 8


class _StackedSources(Container[Source]):
    """The sources whose values change within a block."""

    def __init__(self, program: Program, stacked: Stacked) -> None:
        self._program, self._stacked = program, stacked

    def __contains__(self, source: Any) -> bool:
        return self._program.slots[source.layer, source.output] in self._stacked


def _first_value(frame: Frame, stacked: Stacked, source: Source) -> Any:
    """Return our value of an output in the first iteration of a block; None where there is none."""
    slot = frame.program.slots[source.layer, source.output]
    value = stacked[slot][0] if slot in stacked else frame.values[slot]
    return None if value is None else np.asarray(value)


def _value(frame: Frame, slot: int, stacked: Stacked) -> Any:
    return stacked[slot] if slot in stacked else np.asarray(frame.values[slot])
