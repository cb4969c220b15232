"""Many iterations of a body in another runtime with one call: each operation alone, and the body as a whole.

All is computed from our values of those iterations, each by itself. What cannot be computed so is left to be computed
iteration by iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.compare.references.protocol import ReferenceBlock, ReferenceFrame, SyncPoint
from stepper.compare.references.together import JointPeer, ValuesBySource, judge
from stepper.element_types import STRING_DTYPE, Array
from stepper.engine.frames import Frame
from stepper.engine.program import OpKind, Program
from stepper.errors import KernelError, StepperError, UsageError
from stepper.ir.model import Graph, Layer, Source
from stepper.openvino.together import RANDOM, BegunFunction, JointOperations, OperationRefused
from stepper.tensors.tolerances import Tolerance, Tolerances

_MOST_TRIES: Final = 4
"""Compilations of a body's operations: for other shapes, or without those that were refused."""

Stacked = Mapping[int, Array]
"""Values of a body by slot, those of many iterations on a new first axis."""


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


class BlockValues(Struct, frozen=True):
    """The runtime's values of a block of iterations, by index of the operation and output; and the body's Results.

    `at_point` gives the frame of a point, with which its values of the block go along.
    """

    program: Program
    outputs: Mapping[tuple[int, int], Array]
    results: Mapping[int, Array]
    has_results: bool
    at_point: Callable[[SyncPoint, BlockValues], ReferenceFrame]
    first: int

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
        return index is not None and self.program.operations[index].kind is OpKind.KERNEL and layer.type not in RANDOM

    def one(self, layer: Layer, output: int, iteration: int) -> Array | None:
        """Return its value of one iteration."""
        found = self.stacked(layer, output)
        return None if found is None else np.asarray(found[iteration - self.first])

    def at(self, point: SyncPoint) -> ReferenceFrame:
        """Return its side of an iteration of the block."""
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

    def computed(self, frame: Frame, first: int, stacked: Stacked) -> ReferenceBlock | None:
        """Return what the runtime makes of our values of a block; None where nothing can be computed together."""
        if not all(map(_is_stackable, stacked.values())):
            return None
        body = self._bodies.setdefault(id(frame.program), _Body(frame.program))
        signature = [(slot, value.dtype, value.shape[1:]) for slot, value in stacked.items()]
        if signature != body.signature:
            body.signature, body.joint, body.whole = signature, None, None
        while body.joint is None or body.joint.layers:
            try:
                operations = self._begin_operations(body, frame, stacked)
                whole = self._begin_body(body, frame, stacked)
                self._before()
                outputs = operations()
                results = whole()
            except OperationRefused as refused:
                body.joint = None
                if refused.layer is None or refused.layer.type in body.refused:
                    return None
                body.refused.add(refused.layer.type)
            except (StepperError, KernelError, RuntimeError):  # it crashed, or met a limit
                return None
            else:
                return BlockValues(frame.program, outputs, results, body.has_whole, self._at_point, first)
            if body.tries >= _MOST_TRIES:
                return None
        return None

    def _begin_operations(
        self, body: _Body, frame: Frame, stacked: Stacked
    ) -> Callable[[], dict[tuple[int, int], Array]]:
        program = body.program
        if body.joint is None:
            if body.tries >= _MOST_TRIES:
                raise OperationRefused("it was tried often enough", None)
            body.tries += 1
            layers = [
                operation.layer
                for operation in program.operations
                if operation.kind is OpKind.KERNEL
                and operation.layer.type not in RANDOM
                and operation.layer.type not in body.refused
            ]
            values, many = ValuesBySource(partial(_first_value, frame, stacked)), _StackedSources(program, stacked)
            tolerances = judge(self.tolerances, layers, lambda one: stacked.get(program.slots.get(one, -1)))
            body.joint = self._peer.together(program.graph, layers, values, many, tolerances)
        joint, slots = body.joint, program.slots
        if not joint.layers:
            return dict
        ours = [slots[output.layer, output.output] for output in joint.outputs]
        given = [_value(frame, slots[source.layer, source.output], stacked) for source in joint.sources]
        given += [stacked[slots[output.layer, output.output]] for output in joint.compared]
        if not any(slots[source.layer, source.output] in stacked for source in joint.sources):
            raise OperationRefused("nothing of it changes", None)
        begun = joint.begin(*given)

        def outputs() -> dict[tuple[int, int], Array]:
            return {
                (program.indices[output.layer], output.output): stacked[slot] if value is None else value
                for output, slot, value in zip(joint.outputs, ours, begun(), strict=True)
            }

        return outputs

    def _begin_body(self, body: _Body, frame: Frame, stacked: Stacked) -> Callable[[], dict[int, Array]]:
        program = body.program
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
