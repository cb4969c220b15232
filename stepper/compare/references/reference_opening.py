"""From what a user writes after `--with` to a reference: OpenVINO, ONNX, a recorded run, an archive of values."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from stepper.argument_checks import instance
from stepper.compare.align import Alignment, GraphPair
from stepper.compare.references.onnx import EVALUATORS, OnnxPeer, OnnxReference
from stepper.compare.references.openvino import OpenVINOReference, PeerFrame, StoppedRun
from stepper.compare.references.protocol import (
    LoopOutcome,
    ReferenceFailed,
    ReferenceRun,
    SyncKind,
    SyncPoint,
    endless_text,
    most_alone,
)
from stepper.compare.references.recorded import ArchiveReference, RecordingReference
from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import PlaceStep
from stepper.debug.moments.moments import FrameFinder
from stepper.debug.scopes import GraphPath, ReferenceValues, ValuePlace
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.inputs import variables_alone
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner
from stepper.engine.rules import Rules
from stepper.engine.run import called_alike
from stepper.errors import LimitReached, StepperError, UsageError
from stepper.files.file_kinds import ensure_no_pipe, is_model_path
from stepper.files.recognition import ensure_model
from stepper.ir.model import Layer, Model
from stepper.openvino.opening import open_model
from stepper.openvino.partner import OPENVINO
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import Runtime
from stepper.wording import near_text, reason_of

_SQLITE = b"SQLite format 3\0"


def open_reference(
    text: str,
    compiled: CompiledModel,
    inputs: Sequence[Array],
    runtime: Runtime | None = None,
    source: str | Path = "",
    max_iterations: int | None = None,
    option: str = "--with",
    states: Mapping[str, Any] | None = None,
    *,
    keeps: bool = False,
) -> ReferenceRun:
    """Return the reference for a model. `runtime` is OpenVINO's device and precision, `source` the file as the user
    named it, before it was converted, `max_iterations` the limit of our run, `states` what variables begin with;
    `keeps` lets OpenVINO find again what an earlier run has compiled (see OpenVINOPeer).

    UsageError for what is none or is not installed, InputError or SessionError for a file that is damaged.
    """
    if text == OPENVINO:
        runtime = runtime or Runtime()
        stopped = _stopped(compiled, inputs, max_iterations, states)
        peer = OpenVINOPeer(compiled.model, runtime, variables_alone(compiled.model, states), keeps=keeps)
        return OpenVINOReference(peer, inputs, str(runtime), stopped, runtime.timeout)
    if text in EVALUATORS:
        onnx = OnnxPeer(source or compiled.model.path, text, (runtime or Runtime()).limits)
        return OnnxReference(onnx, compiled.model, inputs)
    path = Path(text)
    if path.suffix == ".npz":
        return ArchiveReference(path, compiled)
    try:
        ensure_no_pipe(path)
        with path.open("rb") as file:
            beginning = file.read(len(_SQLITE))
    except OSError as error:
        near = near_text(text, (OPENVINO, *EVALUATORS))
        reason = f"there is no such file; {near}" if near and not path.exists() else reason_of(path, error)
        raise UsageError(f"{option} {text}: cannot be read: {reason}") from None
    if beginning == _SQLITE:
        return RecordingReference(path, compiled, inputs)
    ensure_model(path)
    raise UsageError(
        f"{option} {text}: expected a model, a recorded run, an archive of values (.npz), openvino, onnx or onnxruntime"
    )


def model_title(ours: Path, theirs: Path) -> str:
    """Return what another model is called: its file's name, with its folder where ours has the same one."""
    return "/".join(theirs.absolute().parts[-2:]) if ours.name == theirs.name else theirs.name


def _stopped(
    compiled: CompiledModel, inputs: Sequence[Array], max_iterations: int | None, states: Mapping[str, Any] | None
) -> StoppedRun | None:
    """Return how the limit of iterations ends our run; None where there is none, or the run ends by itself."""
    if max_iterations is None:
        return None
    begin, machine = time.monotonic(), Machine(compiled, inputs, max_iterations=max_iterations, states=states)
    try:
        machine.advance(Every.END)
    except LimitReached:
        return StoppedRun(time.monotonic() - begin, max_iterations)
    except StepperError:
        pass  # the comparison finds that
    return None


# --- References for the debugger: any of those that runs are compared with, asked for single values at any time ------


_MOST_KEPT = 256
"""Iterations whose values are kept, so that going back a little costs nothing."""
_MEMORY = 2**26
"""Bytes of snapshots of the other run."""


def debug_reference(
    text: str,
    machine: Machine,
    inputs: Sequence[Array],
    runtime: Runtime | None = None,
    source: str = "",
    partner: Partner | None = None,
    option: str = "--reference",
) -> ReferenceValues:
    """Return the reference that a user names for a run: another model, openvino, onnx, a recording, an .npz; else
    UsageError.

    `runtime` is OpenVINO's device and precision, `source` our model's file as the user named it, `partner` what
    computes operations of another model that have no kernel, `option` what messages call it by.
    """
    compiled = machine.compiled
    if is_model_path(text):
        title = model_title(compiled.model.path, Path(text))
        return ModelValues(machine, called_alike(open_model(text), compiled.model), inputs, title, partner)
    if text == OPENVINO:
        return OperationValues(OpenVINOPeer(compiled.model, runtime), str(runtime or Runtime()))
    return open_reference(text, compiled, inputs, runtime, source, option=option)


def set_reference(debugger: Debugger, reference: str | Path) -> str:
    """Let a debugger compare its run with another one, and return the title of the reference.

    `reference` is a value of `stepper compare --with`: another model, a recorded run, an .npz, openvino, onnx or
    onnxruntime. UsageError if it is none of them or is not installed, InputError for a damaged file.
    """
    instance("debugger", debugger, Debugger)
    found = debugger.reference = debug_reference(str(reference), debugger.machine, debugger.inputs)
    debugger.pin("reference")
    return found.title


class OperationValues:
    """Values of another runtime, which computes each operation once more on our inputs: an error made here, or none.

    What a body gets from outside is shared. Loops, Ifs and random streams have no value; an operation that has not run
    yet has none either.
    """

    def __init__(self, peer: OpenVINOPeer, title: str) -> None:
        self.title = title
        self._peer = peer

    @property
    def notes(self) -> Sequence[str]:
        """Return where the runtime crashed, or met a limit."""
        return self._peer.notes

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place."""
        frame = place.frame
        slot = None if frame is None else frame.program.slots.get((place.layer.id, place.output))
        if frame is None or slot is None or not frame.is_current(slot):
            return None
        if place.layer.type == "Parameter":
            shared: Array | None = frame.values[slot]
            return shared
        point = SyncPoint(SyncKind.ENTERED, place.path, frame)
        return PeerFrame(self._peer, point, None).value(place.layer, place.output)


class ModelValues:
    """Values of the run of a second model, which runs only as far as values are asked for.

    The values of the latest iterations are kept; for an earlier iteration the run begins again.
    """

    is_exact = True

    def __init__(
        self,
        ours: Machine,
        theirs: Model,
        inputs: Sequence[Array],
        title: str,
        partner: Partner | None = None,
    ) -> None:
        self.title = title
        compiled = ours.compiled
        self._alignment = Alignment(compiled.model, theirs, compiled, Rules(compiled.rules), partner)
        machine = self._alignment.machine(inputs, ours.max_iterations, ours.initial_states)
        self._frames = FrameFinder(Timeline(machine, _MEMORY), _MOST_KEPT)

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place, after the whole iteration has run on its side."""
        pair: GraphPair | None = self._alignment.pairs[0]
        there: list[PlaceStep] = []
        for step in place.path:
            partner = None if pair is None else pair.partner(step.layer.id)
            if partner is None:
                return None
            there.append(PlaceStep(partner.id, step.role, step.iteration))
            body = next(body for body in step.layer.bodies if body.role == step.role)
            pair = self._alignment.pair(body.graph)
        layer = None if pair is None else pair.layers.get(place.layer.id)
        if layer is None:
            return None
        try:
            found = self._frames.frame(tuple(there))
        except KeyError:  # a loop that no output of the other model needs
            return None
        assert found is not None, "nothing ends the search"
        if found.failed:
            raise UsageError(f"{self.title} stops: {found.problem}") from ReferenceFailed(found.problem)
        slot = None if found.frame is None else found.frame.program.slots.get((layer, place.output))
        return None if found.frame is None or slot is None else found.frame.values[slot]


_MORE_ITERATIONS = 1000
"""How many iterations the reference may run on, beyond as many as ours did, before it is given up."""


_TICKS = 2**16
"""Moves of the other run between two looks at how far a loop without a counterpart has come."""


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
        pair = self._pair(point.path, point.frame)
        if pair is None:
            return None
        if point.kind is SyncKind.ENTERED:
            return self._enter(point, pair)
        if point.kind is SyncKind.ITERATION:
            return self._iterate(depth, pair)
        if point.kind is SyncKind.LEFT:
            return self._leave(depth, pair)
        self._to_the_end_of(depth, EventKind.FINISHED)
        return ModelFrame(pair, self._levels[0].frame, None)

    def has_loop(self, path: GraphPath, frame: Frame) -> bool:
        """Return True if a loop of the other model runs beside ours."""
        return self._pair(path, frame) is not None

    def _pair(self, path: GraphPath, frame: Frame) -> GraphPair | None:
        """Return the graph of a frame with the one that runs beside it; None where there is none."""
        beside = not self._given_up and len(self._levels) - 1 == len(path)
        return self.alignment.pair(frame.program.graph) if beside else None

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
            self._advance(Every.LOOP, self.machine.tick + _TICKS)
            for frame in self.machine.stack[depth:]:
                if frame.loop and frame.active.iteration >= most_alone(self.machine):
                    layer, count = frame.active.operation.layer, frame.active.iteration + 1
                    self._given_up = True
                    raise ReferenceFailed(endless_text(layer, count))

    def _next(self) -> Event:
        event, self._pending = self._pending, None
        return event or self._advance(Every.ITERATION)

    def _advance(self, every: Every, until: int = sys.maxsize) -> Event:
        try:
            return self.machine.advance(every, until)
        except StepperError as error:
            self._given_up = True
            raise ReferenceFailed(str(error)) from error
