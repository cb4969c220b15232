"""Operations of a run in another runtime, as many as may be at once: one call for a graph, not one for each operation.

Each is computed alone all the same, from our values of its inputs. Operations that the runtime cannot compute so are
found by halving, and left to be computed one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, OpKind, Program
from stepper.errors import KernelError, StepperError
from stepper.ir.model import Graph, Layer, Source
from stepper.openvino.peer import JointOperations, OperationRefused
from stepper.operation_types import STATEFUL
from stepper.tensors.tolerances import Tolerance, Tolerances

_MOST_BYTES: Final = 2**26
"""Of values that go to the runtime and come back at once."""

_MOST_OPERATIONS: Final = 200
"""Of a group: what is divided is compiled beside what is computed already."""

_AHEAD: Final = 3
"""Groups that are begun behind the one that is waited for."""

_MOST_BYTES_AHEAD: Final = 2**28
"""Of the values of all that are begun, beside those of the one that is waited for."""


_Outputs = Callable[[], Sequence[Array | None]]


class JointPeer(Protocol):
    """A runtime that computes several operations with one call."""

    def together(
        self,
        graph: Graph,
        layers: Sequence[Layer],
        values: Mapping[Source, Any],
        stacked: None = None,
        judge: Mapping[Source, Tolerance] | None = None,
    ) -> JointOperations:
        """Return operations of a graph as one function, each alone on its inputs; those that can be computed so.

        Outputs may be left out that agree with ours within the tolerances of `judge`.
        """


class _JointGroup:
    """Operations of a program that are computed with one call, by their indices."""

    def __init__(self, indices: Sequence[int]) -> None:
        self.indices = list(indices)
        self.following: _JointGroup | None = None
        """The operations that come next, whose inputs are known when those of this one are."""
        self.size = 0
        """Bytes of its values, where it is one of several."""
        self.joint: JointOperations | None = None
        self.is_divided = False
        self.shapes: dict[Source, tuple[int, ...]] = {}
        self.changing: set[Source] = set()

    def note(self, source: Source, value: Any) -> None:
        """Note the shape of an input, and whether it was another one before."""
        if self.shapes.setdefault(source, value.shape) != value.shape:
            self.changing.add(source)


class JointValues:
    """Values that the runtime makes of a frame's, group by group as they are asked for; kept for that frame."""

    def __init__(self, groups: JointGroups, frame: Frame) -> None:
        self._groups, self._frame = groups, frame
        self._begun: dict[_JointGroup, _Outputs | None] = {}
        self._computed: dict[_JointGroup, Mapping[tuple[int, int], Array]] = {}

    def value(self, index: int, output: int) -> Array | None:
        """Return an output of the operation at an index; None for one that is to be computed by itself."""
        group = self._groups.group_of(self._frame, index)
        while group is not None:
            if group not in self._computed:
                self._begin(group)
                self._computed[group] = self._groups.outputs(group, self._frame, self._begun.pop(group))
            found = self._computed[group].get((index, output))
            if found is not None:
                return found
            again = self._groups.group_of(self._frame, index)
            group = again if again is not group else None
        return None

    def begin_before(self, end: int) -> None:
        """Begin the operations between the index `end` and the loop or If before it, which have run."""
        for index in self._groups.stretch_before(self._frame.program, end):
            if (group := self._groups.group_of(self._frame, index)) is not None:
                self._begin(group)
                return

    def _begin(self, group: _JointGroup) -> None:
        """Begin a group, and some of those that follow, as long as their values are not too large together."""
        begun: _JointGroup | None = group
        room = _MOST_BYTES_AHEAD - sum(one.size for one in self._begun)
        for _ in range(1 + _AHEAD):
            if begun is None or (begun is not group and begun.size > room):
                return
            if begun not in self._begun and begun not in self._computed:
                self._begun[begun] = self._groups.begin(begun, self._frame)
                room -= begun.size
            begun = begun.following


class JointGroups:
    """The groups of all programs of a run; `before` is waited for before anything of them is."""

    def __init__(self, peer: JointPeer, before: Callable[[], object]) -> None:
        self._peer, self._before = peer, before
        self.tolerances: Tolerances | None = None
        """Within which ours may stand for a value."""
        self._groups: dict[int, dict[int, _JointGroup]] = {}
        self._stretches: dict[int, Mapping[int, Sequence[int]]] = {}

    def of(self, frame: Frame) -> JointValues:
        """Return the values that the runtime makes of a frame's."""
        return JointValues(self, frame)

    def group_of(self, frame: Frame, index: int) -> _JointGroup | None:
        """Return the group of an operation; None where it is computed by itself."""
        program = frame.program
        self._look_at(program)
        found = self._groups[id(program)].get(index)
        if found is not None and not found.is_divided:
            self._divide(found, frame)
            found = self._groups[id(program)].get(index)
        return found

    def stretch_before(self, program: Program, end: int) -> Sequence[int]:
        """Return the indices of operations between an index and the loop or If before it."""
        self._look_at(program)
        return self._stretches[id(program)].get(end, ())

    def _look_at(self, program: Program) -> None:
        if id(program) in self._groups:
            return
        self._groups[id(program)] = {}
        self._stretches[id(program)] = dict(_stretches(program))
        for indices in self._stretches[id(program)].values():
            self._put(program, indices)

    def leave_alone(self, program: Program, index: int) -> bool:
        """Have an operation computed by itself from now on; False where it is, or where that would tell less.

        It would where sizes have changed: what a kernel keeps from a smaller size shows only in one that had it.
        """
        group = self._groups.get(id(program), {}).get(index)
        if group is None or group.changing.intersection(_sources_of(program, index)):
            return False
        del self._groups[id(program)][index]
        return True

    def begin(self, group: _JointGroup, frame: Frame) -> _Outputs | None:
        """Begin to compute a group's operations; return what waits for that, None where there is nothing to compute."""
        program = frame.program
        values = ValuesBySource(partial(_value, frame))
        if group.joint is None:
            layers = [program.operations[index].layer for index in group.indices]
            group.joint = self._peer.together(
                program.graph, layers, values, judge=judge(self.tolerances, layers, partial(_value, frame))
            )
        joint = group.joint
        given = [values[source] for source in joint.sources]
        if not joint.layers or any(value is None for value in given):
            return None
        for source, value in zip(joint.sources, given, strict=True):
            group.note(source, value)
        return joint.begin(*given, *[_value(frame, output) for output in joint.compared])

    def outputs(self, group: _JointGroup, frame: Frame, begun: _Outputs | None) -> Mapping[tuple[int, int], Array]:
        """Return what a group's operations give, by index and output; none where it is refused, which divides it."""
        self._before()
        program, joint = frame.program, group.joint
        if begun is None or joint is None:
            return {}
        if frame.activation is None:  # the model's own graph runs once
            group.joint = None
        try:
            found = begun()
        except OperationRefused as error:
            self._split(group, joint, program, error.layer)
            return {}
        except (StepperError, KernelError):  # it crashed, or met a limit
            self._put(program, group.indices, alone=True)
            return {}
        return {
            (program.indices[output.layer], output.output): _value(frame, output) if value is None else value
            for output, value in zip(joint.outputs, found, strict=True)
        }

    def _put(self, program: Program, indices: Sequence[int], *, alone: bool = False) -> _JointGroup:
        groups = self._groups[id(program)]
        group = _JointGroup(indices)
        for index in indices:
            if alone:
                groups.pop(index, None)
            else:
                groups[index] = group
        return group

    def _split(self, group: _JointGroup, joint: JointOperations, program: Program, refused: Layer | None) -> None:
        """Leave the operations of the type that the runtime refuses alone, and keep the others together.

        Where it does not say which one it refuses, halves are put in the place of the group.
        """
        joined = {layer.id for layer in joint.layers}
        operations = program.operations
        indices = [index for index in group.indices if operations[index].layer.id in joined]
        self._put(program, group.indices, alone=True)
        if refused is not None:
            self._put(program, [index for index in indices if operations[index].layer.type != refused.type])
        elif len(indices) > 1:
            half = len(indices) // 2
            self._put(program, indices[:half])
            self._put(program, indices[half:])

    def _divide(self, group: _JointGroup, frame: Frame) -> None:
        """Put several groups in the place of one with many operations, or values too large to go at once."""
        group.is_divided = True
        size, part = 0, list[int]()
        parts: list[tuple[list[int], int]] = []
        for index in group.indices:
            operation = frame.program.operations[index]
            slots = {slot for slot in (*operation.inputs, *operation.outputs) if frame.program.template[slot] is None}
            size += sum(value.nbytes for slot in slots if (value := frame.values[slot]) is not None)
            part.append(index)
            if size > _MOST_BYTES or len(part) >= _MOST_OPERATIONS:
                parts.append((part, size))
                size, part = 0, []
        before: _JointGroup | None = None
        if part and parts:
            parts.append((part, size))
        for indices, size_of_part in parts:
            found = self._put(frame.program, indices)
            found.is_divided, found.size = True, size_of_part
            if before is not None:
                before.following = found
            before = found


def judge(
    tolerances: Tolerances | None, layers: Sequence[Layer], ours: Callable[[Source], Any]
) -> Mapping[Source, Tolerance] | None:
    """Return the tolerance of each output of which we have a value; None where the runtime's own values are wanted."""
    if tolerances is None:
        return None
    outputs = ((layer, Source(layer.id, output)) for layer in layers for output in range(len(layer.outputs)))
    values = ((layer, source, ours(source)) for layer, source in outputs)
    return {source: tolerances.of(layer, value.dtype) for layer, source, value in values if value is not None}


def is_pure(operation: Operation) -> bool:
    """Return True if the outputs of an operation follow from its inputs, so that a runtime may compute it by itself."""
    return operation.kind is OpKind.KERNEL and operation.layer.type not in STATEFUL


def _stretches(program: Program) -> Iterator[tuple[int, list[int]]]:
    """Yield the indices of operations between the loops and Ifs of a program, which have run at the same point.

    Before them goes the index of the loop or If that follows, or how many operations there are.
    """
    found: list[int] = []
    for index, operation in enumerate(program.operations):
        if operation.plans:
            yield index, found
            found = []
        elif is_pure(operation):
            found.append(index)
    yield len(program.operations), found


def _sources_of(program: Program, index: int) -> list[Source]:
    return [source for source in program.graph.sources[program.operations[index].layer.id] if source is not None]


def _value(frame: Frame, source: Source) -> Any:
    """Return our value of an output; None where there is none."""
    slot = frame.program.slots.get((source.layer, source.output))
    value = None if slot is None else frame.values[slot]
    return None if value is None else np.asarray(value)


class ValuesBySource(dict[Source, Any]):
    """Our values, each from when it is first asked for; `value_of` finds one."""

    def __init__(self, value_of: Callable[[Source], Any]) -> None:
        super().__init__()
        self._value_of = value_of

    def __missing__(self, source: Source) -> Any:
        found = self[source] = self._value_of(source)
        return found
