"""Use OpenVINO as the reference.

Each operation alone and each body alone run on our inputs; the runtime also runs the whole model. An operation that
runs on *our* inputs shows only errors made in that operation; nothing is carried in. If every operation agrees and the
body as a whole does not, the runtime's fusions inside of the body are at fault. If bodies agree too and the model's
outputs do not, `begin_again` and `run_changed` narrow it down (rerun.py).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper import element_types
from stepper.compare.references.protocol import (
    BodyIterations,
    LoopOutcome,
    ReferenceFailed,
    ReferenceFrame,
    ReferenceRun,
    SyncKind,
    SyncPoint,
    loop_key,
)
from stepper.debug.scopes import loop_steps
from stepper.element_types import STRING_DTYPE, Array, Shape
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import EndReason
from stepper.engine.program import Operation, OpKind, Program
from stepper.errors import ExecutionError, KernelError, LimitReached, StepperError, UsageError
from stepper.ir.model import Layer, LoopKey, Source
from stepper.openvino.peer import BegunFunction, JointOperations, OpenVINOPeer, OperationRefused, Outputs
from stepper.operation_types import STATEFUL
from stepper.processes.process_messages import ended_at_its_start
from stepper.records import Record
from stepper.tensors.tolerances import Tolerance, Tolerances

if TYPE_CHECKING:
    from stepper.openvino.runtime import NativeText


# ---------------------------------------------------------------------------------------------------------------------
# Operations of a run in another runtime, as many as may be at once: one call for a graph, not one for each operation
#
# Each is computed alone all the same, from our values of its inputs. Operations that the runtime cannot compute so are
# found by halving, and left to be computed one at a time.


_MOST_BYTES = 2**26
"""Largest size of the values that go to the runtime and come back at once."""

_MOST_OPERATIONS = 200
"""Most operations in a group: a divided group is compiled beside what is computed already."""

_AHEAD = 3
"""Groups that are begun behind the one that is waited for."""

_MOST_BYTES_AHEAD = 2**28
"""Largest size of the values of all groups begun beside the group that is waited for."""


_Outputs = Callable[[], dict[Source, Array]]


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
        self.shapes: dict[Source, Shape] = {}
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
        self._computed: dict[_JointGroup, Mapping[Source, Array]] = {}

    def value(self, index: int, source: Source) -> Array | None:
        """Return an output of the operation at an index; None for one that is to be computed by itself."""
        group = self._groups.group_of(self._frame, index)
        while group is not None:
            if group not in self._computed:
                self._begin(group)
                self._computed[group] = self._groups.outputs(group, self._frame, self._begun.pop(group))
            found = self._computed[group].get(source)
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

    def __init__(self, peer: OpenVINOPeer, before: Callable[[], object]) -> None:
        self._peer, self._before = peer, before
        self.tolerances: Tolerances | None = None
        """Within which ours may stand for a value."""
        self._groups: dict[int, dict[int, _JointGroup]] = {}
        self._stretches: dict[int, Mapping[int, Sequence[int]]] = {}

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
        if group is None or group.changing.intersection(
            [source for source in program.graph.sources[program.operations[index].layer.id] if source is not None]
        ):
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
        return _joined(joint, partial(_value, frame))

    def outputs(self, group: _JointGroup, frame: Frame, begun: _Outputs | None) -> Mapping[Source, Array]:
        """Return what a group's operations give; none where it is refused, which divides it."""
        self._before()
        program, joint = frame.program, group.joint
        if begun is None or joint is None:
            return {}
        if frame.activation is None:  # the model's own graph runs once
            group.joint = None
        try:
            return begun()
        except OperationRefused as error:
            self._split(group, joint, program, error.layer)
            return {}
        except (StepperError, KernelError):  # it crashed, or met a limit
            self._put(program, group.indices, alone=True)
            return {}

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
    """Return the tolerance of each output whose value we have.

    None if the runtime's own values are wanted.
    """
    if tolerances is None:
        return None
    outputs = ((layer, Source(layer.id, output)) for layer in layers for output in range(len(layer.outputs)))
    values = ((layer, source, ours(source)) for layer, source in outputs)
    return {source: tolerances.of(layer, value) for layer, source, value in values if value is not None}


def is_pure(operation: Operation) -> bool:
    """Return True if the outputs of an operation follow from its inputs, so that a runtime may compute it by itself."""
    return operation.kind is OpKind.KERNEL and operation.layer.type not in STATEFUL


def _joined(joint: JointOperations, value_of: Callable[[Source], Any]) -> _Outputs:
    """Begin operations on our values; return what waits for their outputs, for which ours may stand."""
    begun = joint.begin(*map(value_of, (*joint.sources, *joint.compared)))
    return lambda: {
        output: value_of(output) if value is None else value
        for output, value in zip(joint.outputs, begun(), strict=True)
    }


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


def _value(frame: Frame, source: Source) -> Any:
    """Return our value of an output; None where there is none."""
    slot = frame.program.slots.get(source)
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


# --- Many iterations of a loop in another runtime at once: each operation alone, and the body as a whole -------------
#
# Operations of the body are one call for all iterations, those of a branch of an If one for the iterations that took
# it.
#
# All is computed from our values, each iteration by itself. What cannot be computed so is left to be computed
# iteration by iteration.


_MOST_TRIES = 4
"""Compilations of a body's operations: for other shapes, or without those that were refused."""

Stacked = Mapping[int, Array]
"""Values of a body by slot, those of many iterations on a new first axis."""


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


class IteratedValues(Record):
    """The runtime's values of a body in the iterations `rows`, and its Results.

    `has_results` is False where these are not known: of a branch.
    """

    program: Program
    rows: Array
    outputs: Mapping[Source, Array]
    results: Mapping[int, Array]
    has_results: bool

    def stacked(self, layer: Layer, output: int) -> Array | None:
        """Return its values of all iterations; None where they are not known together."""
        if layer.type == "Result":
            return self.results.get(layer.id)
        return self.outputs.get(Source(layer.id, output))

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


class BlockValues(Record):
    """The runtime's values of a block, by body; `before` is waited for before the peer is asked for any other."""

    bodies: Sequence[IteratedValues]
    first: int
    peer: OpenVINOPeer
    before: Callable[[], object]

    def one(self, point: SyncPoint, layer: Layer, output: int) -> Array | None:
        """Return the value of an output in the graph and the iteration of a point."""
        iteration = loop_steps(point.path)[-1].iteration
        assert iteration is not None, "it is a loop's"
        body = next((one for one in self.bodies if one.program is point.frame.program), None)
        return None if body is None else body.one(layer, output, iteration - self.first)

    def at(self, point: SyncPoint) -> ReferenceFrame:
        """Return its side of a point in the block."""
        return PeerFrame(self.peer, point, None, block=self, before=self.before)


class IteratedBodies:
    """All bodies of a run as functions of blocks of their iterations; `before` is waited for before any of them."""

    def __init__(self, peer: OpenVINOPeer, before: Callable[[], object]) -> None:
        self._peer, self._before = peer, before
        self.tolerances: Tolerances | None = None
        """Within which ours may stand for a value."""
        self._bodies: dict[int, _Body] = {}

    def has(self, program: Program) -> bool:
        """Return True if iterations of the program have been computed in blocks."""
        return id(program) in self._bodies

    def computed(self, first: int, bodies: Sequence[BodyIterations]) -> BlockValues | None:
        """Return what the runtime makes of our values of a block; None where something cannot be computed together.

        These iterations, and those that follow, are then to be computed one by one.
        """
        is_stackable = all(
            value.size > 0 and value.dtype != STRING_DTYPE and element_types.of(value).bits >= 8
            for ours in bodies
            for value in ours.stacked.values()
        )
        with suppress(StepperError, KernelError, RuntimeError):  # refused for good, or it crashed, or met a limit
            if is_stackable:
                begun = [self._begin(ours) for ours in bodies]
                self._before()
                return BlockValues([values() for values in begun], first, self._peer, self._before)
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

    def _without_refused(self, body: _Body, ours: BodyIterations, begun: _Outputs) -> dict[Source, Array]:
        """Return the outputs that were begun; begin again without an operation that is refused."""
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
        slots = program.slots
        if body.joint is None:
            if body.tries >= _MOST_TRIES:
                raise OperationRefused("it was tried often enough", None)
            body.tries += 1
            layers = [one.layer for one in program.operations if is_pure(one) and one.layer.type not in body.refused]
            values = ValuesBySource(partial(_first_value, frame, stacked))
            many = {Source(*key) for key, slot in slots.items() if slot in stacked}
            tolerances = judge(self.tolerances, layers, lambda one: stacked.get(slots.get(one, -1)))
            body.joint = self._peer.together(program.graph, layers, values, many, tolerances)
        joint = body.joint
        if not joint.layers:
            if any(map(is_pure, program.operations)):
                raise OperationRefused("each is to be computed by itself", None)
            return dict
        if not any(slots[source] in stacked for source in joint.sources):
            raise OperationRefused("nothing of it changes", None)
        return _joined(joint, lambda source: _stacked_value(frame, slots[source], stacked))

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
        begun = body.whole.begin(*[_stacked_value(frame, slot, stacked) for slot in program.parameters])
        return lambda: {layer.id: value for layer, value in zip(program.graph.results, begun(), strict=False)}


def _first_value(frame: Frame, stacked: Stacked, source: Source) -> Any:
    """Return our value of an output in the first iteration of a block; None where there is none."""
    slot = frame.program.slots[source]
    value = stacked[slot][0] if slot in stacked else frame.values[slot]
    return None if value is None else np.asarray(value)


def _stacked_value(frame: Frame, slot: int, stacked: Stacked) -> Any:
    return stacked[slot] if slot in stacked else np.asarray(frame.values[slot])


# ---------------------------------------------------------------------------------------------------------------------


Function = Callable[..., Sequence[Array]]

_LEAST_SECONDS = 10.0
_TIMES_OURS = 5.0


class PeerFrame:
    """Values that the peer makes of what our frame holds.

    `joint` are those that it computes together, `block` those that it has computed with other iterations already.
    `before` is called before it is asked for anything by itself.
    """

    def __init__(
        self,
        peer: OpenVINOPeer,
        point: SyncPoint,
        outcome: LoopOutcome | None,
        joint: JointValues | None = None,
        block: BlockValues | None = None,
        before: Callable[[], object] = lambda: None,
    ) -> None:
        self._peer, self._point, self._frame, self._before = peer, point, point.frame, before
        self._joint, self._block = joint, block
        self._is_iteration = point.kind is SyncKind.ITERATION
        self._begun_body: Outputs | None = None
        self._results: Mapping[int, Array] | None = None
        self.outcome = outcome
        self.branch: bool | None = None

    def begin(self, end: int) -> None:
        """Begin what is asked for next: operations before an index, and at the end of an iteration the body alone."""
        if self._joint is not None:
            self._joint.begin_before(end)
        parameters = self._parameters()
        if self._is_iteration and parameters is not None:
            with contextlib.suppress(StepperError, KernelError):  # it is met again when the body is asked for
                self._begun_body = self._peer.body(self._frame.program.graph).begin(*parameters)

    def value(self, layer: Layer, output: int) -> Array | None:
        """Return what the operation alone (a Result: the body alone) computes of our inputs; None where that is
        refused.

        Parameters are shared, and what holds a body is looked at inside.
        """
        if self._block is not None:
            known = self._block.one(self._point, layer, output)
            if known is not None:
                return self._like_ours(layer, known) if layer.type == "Result" else known
        if layer.type == "Result":
            return self._result(layer)
        program = self._frame.program
        index = program.computed_at.get(program.slots.get((layer.id, output), -1))
        if index is None:
            return None
        found = program.operations[index]
        if not is_pure(found):
            return None
        if self._joint is not None and (value := self._joint.value(index, Source(layer.id, output))) is not None:
            return value
        inputs = [np.asarray(self._frame.values[slot]) for slot in found.inputs if slot >= 0]
        self._before()
        try:
            return self._peer.operation(program.graph, layer)(*inputs)[output]
        except (StepperError, KernelError, IndexError):
            return None

    def earlier(self, _layer: Layer, _output: int) -> Array | None:
        """Return None: nothing is kept."""
        return None

    def _result(self, layer: Layer) -> Array | None:
        if not self._is_iteration:
            return None
        if self._results is None:
            self._results = self._of_body()
        found = self._results.get(layer.id)
        return None if found is None else self._like_ours(layer, found)

    def _like_ours(self, layer: Layer, found: Array) -> Array:
        """Return a Result; the runtime has no scalars but tensors of one element."""
        ours = self._frame.values[self._frame.program.slots[layer.id, 0]]
        return found.reshape(ours.shape) if ours is not None and found.size == ours.size == 1 else found

    def _of_body(self) -> Mapping[int, Array]:
        graph, parameters = self._frame.program.graph, self._parameters()
        if parameters is None:
            return {}
        self._before()
        try:
            results = self._begun_body() if self._begun_body is not None else self._peer.body(graph)(*parameters)
        except (StepperError, KernelError):
            return {}
        return {layer.id: value for layer, value in zip(graph.results, results, strict=False)}

    def _parameters(self) -> list[Array] | None:
        values = [self._frame.values[slot] for slot in self._frame.program.parameters]
        return None if any(value is None for value in values) else list(map(np.asarray, values))


class StoppedRun(Record):
    """Our run where a limit ended it: after how many seconds, and the limit of iterations."""

    seconds: float
    iterations: int

    def __str__(self) -> str:
        return f"ours was stopped after {self.iterations} iterations of a loop"


class _OwnRun:
    """Runs the reference's whole model beside our run, and counts its iterations.

    Whoever waits for another result of the reference waits for this run first, so its notes have one order in all runs.
    Results that are begun by then come before the count, which is needed last.
    """

    def __init__(self, peer: OpenVINOPeer, inputs: Sequence[Array], seconds: float | None) -> None:
        self._peer = peer
        self._begun: Outputs | None = peer.begin(inputs, seconds=seconds)
        self._begin_counting = partial(peer.begin_counting, inputs, seconds=seconds)
        self._outputs: Sequence[Array] | None = None
        self.refusal = ""
        """Why there are no outputs; known when these were waited for."""

    def outputs(self) -> Sequence[Array] | None:
        """Return the outputs, when they are there; None where it is refused. Raise what says that there is no peer."""
        if self._begun is not None:
            self._counting  # noqa: B018  # it is begun
            try:
                self._outputs = self._begun()
            except (ExecutionError, LimitReached) as error:
                if ended_at_its_start(error):
                    raise
                self.refusal = str(error)
            self._begun = None
        return self._outputs

    @cached_property
    def _counting(self) -> Callable[[], Mapping[LoopKey, int]]:
        return self._begin_counting()

    @cached_property
    def iterations(self) -> Mapping[LoopKey, int]:
        """How many iterations each loop ran in all; none where that is not known."""
        return {} if self.outputs() is None else self._counting()

    def abandon(self) -> None:
        """End the run if it is still under way."""
        if self._begun is not None:
            self._peer.give_up()


class OpenVINOReference(ReferenceRun):
    """The peer beside our run. `inputs` are those of our machine; the peer's own run begins at once.

    Where the runtime refuses the model as a whole, its operations and bodies are compared all the same. `stopped` is
    our run, where it is known that a limit of iterations ends it: the runtime, which has no such limit, then gets a few
    times as long as ours took, or `seconds`.
    """

    shares_inputs = True

    def __init__(
        self,
        peer: OpenVINOPeer,
        inputs: Sequence[Array],
        title: str,
        stopped: StoppedRun | None = None,
        seconds: float | None = None,
    ) -> None:
        self.title = title
        self._peer, self._inputs, self._stopped = peer, inputs, stopped
        self._is_told = False
        if stopped is not None and seconds is None:
            seconds = max(_LEAST_SECONDS, _TIMES_OURS * stopped.seconds)
        self._seconds = seconds
        self._own_run = own_run = _OwnRun(peer, inputs, seconds)
        weakref.finalize(self, own_run.abandon)
        self._groups = JointGroups(peer, own_run.outputs)
        self._bodies = IteratedBodies(peer, own_run.outputs)

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what the peer could not compute, each once; on its own run, that ours was stopped, too."""
        self._own_run.outputs()
        ends, refusal = "" if self._stopped is None else f"; {self._stopped}", self._own_run.refusal
        notes = [note for note in self._peer.notes if note != refusal or not self._is_told]
        return [f"{note}{ends}" if note == refusal else note for note in notes]

    def agree_within(self, tolerances: Tolerances) -> None:
        """Have the runtime's process compare what it computes together."""
        self._groups.tolerances = self._bodies.tolerances = tolerances

    def at(self, point: SyncPoint) -> PeerFrame:
        """Return a frame whose values are computed when they are asked for."""
        outcome, joint = self._outcome(point), JointValues(self._groups, point.frame)
        found = PeerFrame(self._peer, point, outcome, joint, before=self._own_run.outputs)
        if point.kind is SyncKind.ENTERED:
            found.begin(point.frame.pc)
        elif point.kind is not SyncKind.LEFT or not point.frame.loop:
            found.begin(len(point.frame.program.operations))
        return found

    def block(self, first: int, bodies: Sequence[BodyIterations]) -> BlockValues | None:
        """Return what the runtime makes of a block of iterations."""
        return self._bodies.computed(first, bodies)

    def alone(self, frame: Frame, layer: Layer, output: int) -> Array | None:
        """Compile an operation for itself from now on, and return its value.

        None if the operation was compiled so before. If the iterations of a body were computed in blocks, return the
        value of this iteration; later iterations stay in the blocks.
        """
        read = frame.program.graph.read_outputs
        if any(Source(layer.id, index) not in read for index in range(len(layer.outputs))):
            return None  # alone it would have to compute what the model has it leave out, with another kernel
        if self._bodies.has(frame.program):
            return self._by_itself(SyncPoint(SyncKind.ITERATION, (), frame), layer, output)
        if not self._groups.leave_alone(frame.program, frame.program.indices.get(layer.id, -1)):
            return None
        return self._by_itself(SyncPoint(SyncKind.ENTERED, (), frame), layer, output)

    def _by_itself(self, point: SyncPoint, layer: Layer, output: int) -> Array | None:
        return PeerFrame(self._peer, point, None, before=self._own_run.outputs).value(layer, output)

    def _outcome(self, point: SyncPoint) -> LoopOutcome | None:
        """Return the outcome of a loop that runs once at most: of one inside another only the sum is known."""
        if point.kind is not SyncKind.LEFT or loop_steps(point.path[:-1]):
            return None
        if not point.frame.loop:
            return None
        count = self._own_run.iterations.get(loop_key(point.path[:-1], point.path[-1].layer))
        if count is None:
            return None
        is_reached = count > 0 or len(point.path) == 1  # else the runtime may not have come by
        return LoopOutcome(count, ended_after(point.frame.active, count) if is_reached else "")

    def totals(self) -> Mapping[LoopKey, int]:
        """Return totals of nested loops: of a loop in a loop no single run is known, and one in an If need not run."""
        return {key: n for key, n in self._own_run.iterations.items() if len(key) > 1}

    def outputs(self) -> Mapping[int, Any]:
        """Return the outputs of the runtime's own run."""
        outputs = self._own_run.outputs()
        if outputs is None:
            self._is_told = True
            raise ReferenceFailed(self._own_run.refusal)
        return dict(enumerate(outputs))

    def outputs_anew(self) -> Mapping[int, Any] | None:
        """Return the outputs of the model in its present compilation.

        None if the first outputs came from the same compilation.
        """
        try:
            outputs = self._peer.run_anew(self._inputs, seconds=self._seconds)
        except (ExecutionError, LimitReached) as error:
            raise ReferenceFailed(str(error)) from None
        return None if outputs is None else dict(enumerate(outputs))

    def begin_again(self, text: NativeText | None = None, properties: Mapping[str, str] | None = None) -> Outputs:
        """Begin a run of the model on the same inputs, compiled otherwise. ExecutionError if that fails."""
        return self._peer.begin_again(self._inputs, text, properties)

    def run_changed(self, text: NativeText, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the outputs of another model. ExecutionError where that fails."""
        return self._peer.begin_again(inputs, text)()


def ended_after(activation: Activation, count: int) -> str:
    """Return what must have ended a loop after so many iterations, by our run; the runtime does not tell."""
    if activation.iteration + 1 == count:
        return str(activation.ended or "")
    limited = activation.limit is not None and count >= activation.limit
    if activation.operation.layer.type == "TensorIterator":
        return str(EndReason.SLICES) if limited else ""
    if limited:
        return str(EndReason.TRIP_COUNT)
    return str(EndReason.CONDITION if count else EndReason.INITIAL_CONDITION)
