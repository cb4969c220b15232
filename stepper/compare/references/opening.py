"""From what a user writes after `--with` to a reference: OpenVINO, ONNX, a recorded run, an archive of values."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from stepper.compare.align import Alignment, align
from stepper.compare.comparison import reference_machine
from stepper.compare.constant_differences import ConstantValues
from stepper.compare.references.onnx import EVALUATORS, OnnxPeer, OnnxReference
from stepper.compare.references.openvino import OpenVINOReference, PeerFrame, StoppedRun
from stepper.compare.references.protocol import PlacedRun, ReferenceFailed, ReferenceRun, SyncKind, SyncPoint
from stepper.compare.references.recorded import ArchiveReference, RecordingReference
from stepper.debug.reference_values import GraphPath, ReferenceValues, ValuePlace, path_of, step_of
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.inputs import variables_alone
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner
from stepper.engine.rules import Rules
from stepper.engine.run import called_alike
from stepper.errors import LimitReached, StepperError, UsageError
from stepper.files.kinds import ensure_no_pipe, is_model_path
from stepper.ir.model import Model
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


_MOST_KEPT: Final = 256
"""Iterations whose values are kept, so that going back a little costs nothing."""

Key = tuple[tuple[int, str, int | None], ...]


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
        return ModelValues(
            compiled, called_alike(open_model(text), compiled.model), inputs, title, partner, machine.initial_states
        )
    if text == OPENVINO:
        return OperationValues(OpenVINOPeer(compiled.model, runtime), str(runtime or Runtime()))
    reference = open_reference(text, compiled, inputs, runtime, source, option=option)
    return PlacedValues(reference, compiled) if isinstance(reference, PlacedRun) else ValuesOfRun(reference)


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


class ValuesOfRun:
    """Values of a reference that has run, and knows the model's own graph and iterations of its loops."""

    def __init__(self, reference: ReferenceRun) -> None:
        self.title = reference.title
        self._reference = reference

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place; None in a body that the reference does not tell of."""
        if place.frame is None:
            return None
        kind = SyncKind.ITERATION if place.path else SyncKind.FINISHED
        found = self._reference.at(SyncPoint(kind, place.path, place.frame))
        return None if found is None else found.value(place.layer, place.output)


class PlacedValues:
    """Values of a reference that finds them by their place alone, and has outputs of the model."""

    def __init__(self, reference: PlacedRun, compiled: CompiledModel) -> None:
        self.title, self.is_exact = reference.title, reference.is_exact
        self._reference = reference
        main = compiled.main
        self._results = {place: main.results.index(slot) for place, slot in main.slots.items() if slot in main.results}

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place; in the model's own graph also what an output takes."""
        found = self._reference.value(place.path, place.layer, place.output, 0)
        if found is None and not place.path:
            position = self._results.get((place.layer.id, place.output))
            found = None if position is None else self._outputs.get(position)
        return found

    @cached_property
    def _outputs(self) -> Mapping[int, Array]:
        """Read once: some references have them in a file."""
        return self._reference.outputs()


class ModelValues:
    """Values of the run of a second model, which goes on as far as it is asked for.

    The values of the latest iterations are kept; for one further back the run begins again.
    """

    is_exact = True

    def __init__(
        self,
        compiled: CompiledModel,
        theirs: Model,
        inputs: Sequence[Array],
        title: str,
        partner: Partner | None = None,
        states: Mapping[str, Any] | None = None,
    ) -> None:
        self.title = title
        model = compiled.model
        other = compile_model(theirs, compiled.rules, partner)
        self._alignment: Alignment = align(
            model, theirs, None, (ConstantValues(model, compiled), ConstantValues(theirs, other))
        )
        self._graphs = {id(pair.ours): pair for pair in self._alignment.pairs}
        rules = Rules(compiled.rules)
        self._machine = reference_machine(theirs, rules, self._alignment, inputs, None, partner, states)
        self._start = self._machine.snapshot()
        self._kept: OrderedDict[Key, Frame] = OrderedDict()
        self._counts: dict[Key, int] = {}
        self._absent: set[Key] = set()
        self._main: Frame = self._machine.stack[0]

    def value_at(self, place: ValuePlace) -> Array | None:
        """Return the value at this place, after the whole iteration has run on its side."""
        graph = place.path[-1].layer.bodies if place.path else None
        ours = None if graph is None else next(body.graph for body in graph if body.role == place.path[-1].role)
        pair = self._alignment.pairs[0] if ours is None else self._graphs.get(id(ours))
        key = self._key(place)
        if pair is None or key is None:
            return None
        partner, frame = pair.layers.get(place.layer.id), self._frame(key)
        if partner is None or frame is None:
            return None
        slot = frame.program.slots.get((partner, place.output))
        return None if slot is None else frame.values[slot]

    def _key(self, place: ValuePlace) -> Key | None:
        """Return the same place by the ids of the reference."""
        key: list[tuple[int, str, int | None]] = []
        pair = self._alignment.pairs[0]
        for step in place.path:
            partner = pair.partner(step.layer.id)
            body = next(body for body in step.layer.bodies if body.role == step.role)
            inner = self._graphs.get(id(body.graph))
            if partner is None or inner is None:
                return None
            key.append((partner.id, step.role, step.iteration))
            pair = inner
        return tuple(key)

    def _frame(self, key: Key) -> Frame | None:
        """Return the frame as it was when that iteration had run; None where the reference has no such iteration."""
        if not key:
            while not self._machine.finished:
                self._advance()
            return self._main
        if key in self._kept:
            return self._kept[key]
        if key in self._absent or self._is_beyond(key):
            return None
        found = self._run_to(key)
        if found is None and not self._is_beyond(key):
            self._machine.restore(self._start)
            self._main = self._machine.stack[0]
            found = self._run_to(key)
        if found is None:
            self._absent.add(key)
        return found

    def _is_beyond(self, key: Key) -> bool:
        """True if a loop on the way is known to have ended before that iteration."""
        for depth in range(len(key)):
            layer, role, iteration = key[depth]
            count = self._counts.get((*key[:depth], (layer, role, None)))
            if iteration is not None and count is not None and iteration >= count:
                return True
        return False

    def _run_to(self, key: Key) -> Frame | None:
        while not self._machine.finished:
            self._advance()
            if key in self._kept:
                return self._kept[key]
            if self._is_beyond(key):
                return None
        return None

    def _advance(self) -> None:
        try:
            event = self._machine.advance(Every.ITERATION)
        except StepperError as error:
            raise UsageError(f"{self.title} stops: {error}") from ReferenceFailed(str(error))
        self._note(event)

    def _note(self, event: Event) -> None:
        """Keep the values of an iteration, or of a branch, that has just run."""
        frame = event.frame
        if event.kind is EventKind.ITERATION:
            self._keep(_ids(path_of(self._machine.stack)), frame)
        elif event.kind is EventKind.LEFT:
            activation, step = frame.activation, step_of(frame)
            outer = _ids(path_of(self._machine.stack))
            if step.iteration is None:
                self._keep((*outer, (step.layer.id, step.role, None)), frame)
            elif activation is not None:
                self._counts[(*outer, (step.layer.id, step.role, None))] = activation.iteration + 1

    def _keep(self, key: Key, frame: Frame) -> None:
        self._kept[key] = frame.copy()
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


def _ids(path: GraphPath) -> Key:
    return tuple((step.layer.id, step.role, step.iteration) for step in path)
