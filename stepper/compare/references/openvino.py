"""OpenVINO as the reference: each operation alone and each body alone, on our inputs; and the runtime's own run.

What an operation makes of *our* inputs is an error made here or none; nothing is carried in. Where every operation
agrees and the body as a whole does not, the runtime's fusions inside of the body are at fault; where these agree too
and the model's outputs do not, `begin_again` and `run_changed` narrow it down (explanations.py, bisection.py).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from msgspec import Struct

from stepper.compare.references.blocks import BlockPeer, BlockValues, IteratedBodies
from stepper.compare.references.protocol import (
    BodyIterations,
    LoopOutcome,
    ReferenceBlock,
    ReferenceFailed,
    ReferenceRun,
    SyncKind,
    SyncPoint,
    loop_key,
)
from stepper.compare.references.together import JointGroups, JointValues, is_pure
from stepper.debug.reference_values import loop_steps
from stepper.element_types import Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import EndReason
from stepper.engine.program import LoopPlan
from stepper.errors import ExecutionError, KernelError, LimitReached, StepperError
from stepper.ir.model import Graph, Layer, LoopKey, Source
from stepper.openvino.peer import BegunFunction, Outputs
from stepper.processes.messages import ended_at_its_start

if TYPE_CHECKING:
    from stepper.openvino.model_text import NativeText
    from stepper.tensors.tolerances import Tolerances

Function = Callable[..., Sequence[Array]]

_LEAST_SECONDS: Final = 10.0
_TIMES_OURS: Final = 5.0


class RuntimePeer(BlockPeer, Protocol):
    """A model in another runtime. Every function may raise a StepperError or KernelError for what it refuses."""

    @property
    def notes(self) -> Sequence[str]:
        """Where it crashed, or met a limit of time or memory: a sentence each."""

    def give_up(self) -> None:
        """End what it is computing, which nobody waits for any more."""

    def begin(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Outputs:
        """Begin a run of the whole model, of so many seconds at most; return what waits for its outputs."""

    def run_anew(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Sequence[Array] | None:
        """Return the outputs of the model as it is compiled now; None where those that were begun are these."""

    def begin_counting(
        self, inputs: Sequence[Array], *, seconds: float | None = None
    ) -> Callable[[], Mapping[LoopKey, int]]:
        """Begin to count how many iterations each loop runs in all; return what waits for that."""

    def begin_again(
        self, inputs: Sequence[Array], text: NativeText | None = None, properties: Mapping[str, str] | None = None
    ) -> Outputs:
        """Begin a run of the whole model compiled otherwise; return what waits for its outputs."""

    def operation(self, graph: Graph, layer: Layer) -> Function:
        """Return one operation, as a function of all its inputs."""

    def body(self, graph: Graph) -> BegunFunction:
        """Return one body, as a function of its Parameters' values in file order; gives its Results."""


class PeerFrame:
    """Values that the peer makes of what our frame holds.

    `joint` are those that it computes together, `block` those that it has computed with other iterations already.
    `before` is called before it is asked for anything by itself.
    """

    def __init__(
        self,
        peer: RuntimePeer,
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
        if self._joint is not None and (value := self._joint.value(index, output)) is not None:
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


class StoppedRun(Struct, frozen=True):
    """Our run where a limit ended it: after how many seconds, and the limit of iterations."""

    seconds: float
    iterations: int

    def __str__(self) -> str:
        return f"ours was stopped after {self.iterations} iterations of a loop"


class _OwnRun:
    """The peer's run of the whole model, which goes on beside ours, and the count of its iterations.

    Whoever waits for something else of the peer waits for it first, so that the peer's notes have one order in all
    runs. What is begun by then comes before the count, which is needed last.
    """

    def __init__(self, peer: RuntimePeer, inputs: Sequence[Array], seconds: float | None) -> None:
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
        """End it where it still goes on."""
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
        peer: RuntimePeer,
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
        at_point = partial(_in_block, peer, own_run.outputs)  # no way back to this: it goes when it is dropped
        self._bodies = IteratedBodies(peer, at_point, own_run.outputs)

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
        outcome, joint = self._outcome(point), self._groups.of(point.frame)
        found = PeerFrame(self._peer, point, outcome, joint, before=self._own_run.outputs)
        activation = point.frame.activation
        if point.kind is SyncKind.ENTERED:
            found.begin(point.frame.pc)
        elif point.kind is not SyncKind.LEFT or activation is None or not isinstance(activation.plan, LoopPlan):
            found.begin(len(point.frame.program.operations))
        return found

    def block(self, first: int, bodies: Sequence[BodyIterations]) -> ReferenceBlock | None:
        """Return what the runtime makes of a block of iterations."""
        return self._bodies.computed(first, bodies)

    def alone(self, frame: Frame, layer: Layer, output: int) -> Array | None:
        """Return what an operation gives that is compiled for itself, from now on; None where it was.

        Of a body whose iterations were computed in blocks it is what this one gives; what follows stays in the blocks.
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
        activation = point.frame.activation
        if activation is None or not isinstance(activation.plan, LoopPlan):
            return None
        count = self._own_run.iterations.get(loop_key(point.path[:-1], point.path[-1].layer))
        if count is None:
            return None
        is_reached = count > 0 or len(point.path) == 1  # else the runtime may not have come by
        return LoopOutcome(count, ended_after(activation, count) if is_reached else "")

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
        """Return the outputs of the model as it is compiled now; None where the first were these."""
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


def _in_block(peer: RuntimePeer, before: Callable[[], object], point: SyncPoint, block: BlockValues) -> PeerFrame:
    return PeerFrame(peer, point, None, block=block, before=before)


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
