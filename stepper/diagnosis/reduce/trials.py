"""Trials of candidates: each is written to a folder, and run in a process with limits of time and memory.

Values of a run by the places of the file: the first and the last value of every output.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.diagnosis.reduce.draft import DraftModel, IRFiles, LayerAddress, ir_files
from stepper.element_types import STRING_DTYPE, Array
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Program
from stepper.errors import StepperError
from stepper.ir.model import Model
from stepper.processes.process_messages import ENDED, EndKind, ProcessEnd
from stepper.processes.programs import WorkerProgram
from stepper.processes.worker import Limits, Worker
from stepper.records import Record
from stepper.tensors.tolerances import Tolerances

# Which fault is to be kept: the condition that a user gives, and the fault that a trial finds.

OPENVINO = "openvino"
_LARGE = 100.0
"""Times the tolerance from which a disagreement is a large one, which is not to become a small one."""


class StopsAt(Struct, frozen=True, tag="break"):
    """The run stops at a breakpoint: `--break nan`."""

    spec: str


class EndsInError(Struct, frozen=True, tag="error"):
    """The run ends in an error; where ours does not, OpenVINO refuses the model, fails or crashes: `--error`."""


class DisagreesWith(Struct, frozen=True, tag="differs"):
    """The outputs differ from those of OpenVINO, or of another model, by its path: `--differs`.

    Beside OpenVINO: or one of the two refuses, fails or crashes where the other computes.
    """

    reference: str = OPENVINO


class AnyFault(Struct, frozen=True, tag="any"):
    """Whichever of these holds: an error, another result than OpenVINO's, a NaN."""


FaultCondition = StopsAt | EndsInError | DisagreesWith | AnyFault


class FaultKind(StrEnum):
    """Kind of a fault."""

    STOP = "stop"
    ERROR = "error"
    REFUSED = "refused"
    ENDED = "ended"
    VALUES = "values"
    SHAPES = "shapes"


class FoundFault(Record):
    """Hold a fault as a trial finds it.

    `program` has the fault: stepper, OpenVINO, or the path of a reference.

    `what` is the class of the error, the place in OpenVINO's sources that refuses, the signal, or the numbers that
    differ. `layer_type` is the type of the operation where the run stops. `message` is for people. `ratio` is how many
    times the tolerance is exceeded, most of all in the output of this index. `skips_a_loop`: a loop ran no iteration in
    our run. `is_seen`: an output of the run that stops at a NaN or Inf is not finite, so that other programs show it.
    """

    kind: FaultKind
    program: str
    what: str = ""
    layer_type: str = ""
    message: str = ""
    ratio: float = 0.0
    output: int = 0
    skips_a_loop: bool = False
    is_seen: bool = False

    def is_same(self, other: FoundFault) -> bool:
        """True if another is the same fault, and as clear as this one."""
        mine, theirs = ((one.kind, one.program, one.what, one.layer_type) for one in (self, other))
        if other.skips_a_loop and not self.skips_a_loop:  # what is undefined there is another matter
            return False
        if self.is_seen and not other.is_seen:
            return False
        return mine == theirs and other.ratio >= min(self.ratio / 10, _LARGE)


# Acts of the process in which candidates are tried, and the worker that runs it.

PROGRAM = WorkerProgram("the trial", "stepper.diagnosis.reduce.reduce_service")
STEPPING = "stepping through"
"""The stage in which our own engine runs."""


class RunSettings(Record):
    """How a candidate is run: rule book, the most iterations and moves, device and precision of OpenVINO.

    `engine` and `choices` (pattern and engine) say who computes our run, `extensions` are libraries with operations for
    OpenVINO. `relative` and `absolute` are tolerances of floats, instead of those of the element type.
    """

    rules: str = "spec"
    max_iterations: int | None = None
    most_moves: int = sys.maxsize
    device: str = "CPU"
    precision: str = "f32"
    engine: str = "numpy"
    choices: tuple[tuple[str, str], ...] = ()
    extensions: tuple[str, ...] = ()
    relative: float | None = None
    absolute: float | None = None

    def tolerances(self, *, exact: bool) -> Tolerances:
        """Return the tolerances; `exact`: both sides compute with the same kernels."""
        return Tolerances(exact, self.relative, self.absolute)


class TryModel(Struct, frozen=True, tag=True):
    """Run the model of a file on the arrays of the message; `twin` is the reference's file, reduced alike (or empty).

    `wants_outputs`: the arrays of the answer are the outputs that were expected, and then those that were given.
    """

    path: str
    settings: RunSettings
    condition: FaultCondition
    twin: str = ""
    wants_outputs: bool = False


class ObserveValues(Struct, frozen=True, tag=True):
    """Run the model and send the first value of each operation, and the last where it is another one."""

    path: str
    settings: RunSettings


class NameKernels(Struct, frozen=True, tag=True):
    """Compile the model of a file in OpenVINO, and name the kernels that it chose."""

    path: str
    settings: RunSettings


class ChosenKernel(Record):
    """A node of the compiled model: what it is there, its kernel, and the layers that it stands for."""

    type: str
    kernel: str
    layers: str


class KernelFacts(Record):
    """The kernels of a compiled model, in the order in which they run."""

    kernels: tuple[ChosenKernel, ...]


TrialAct = TryModel | ObserveValues | NameKernels


class TrialFacts(Record):
    """Result of a trial: the fault, None for none; how many of the arrays are expected outputs; moves of our run."""

    fault: FoundFault | None
    expected: int = 0
    moves: int = 0


class ObservedKey(Struct, frozen=True, array_like=True):
    """An array of the answer: an output of a layer, its value at the first or at the last time."""

    scope: tuple[tuple[int, str], ...]
    layer: int
    output: int
    is_last: bool


class ObservedFacts(Record):
    """The keys of the arrays, in their order."""

    keys: tuple[ObservedKey, ...]


WITH_OPENVINO = "STEPPER_TRIALS_WITH_OPENVINO"
"""A variable of the process: it loads OpenVINO at once."""


def trial_worker(memory: int, *, with_openvino: bool) -> Worker:
    """Return a process for trials that may use so many bytes."""
    return Worker(PROGRAM, {WITH_OPENVINO: "1"} if with_openvino else {}, memory)


MEMORY = 4 * 2**30
"""Bytes that a trial may use."""
_FIRST = 60.0
"""Seconds that the whole model may take."""


class Pair(NamedTuple):
    """A candidate: the model, and the healthy twin that is made smaller with it (None: there is none)."""

    model: DraftModel
    twin: DraftModel | None = None


class TrialOutcome(NamedTuple):
    """Result of a trial, with the outputs where they were asked for."""

    fault: FoundFault | None
    moves: int = 0
    expected: tuple[Array, ...] = ()
    given: tuple[Array, ...] = ()


class ObservedRun(Record):
    """The first and the last value of each output of a run."""

    first: Mapping[tuple[LayerAddress, int], Array]
    last: Mapping[tuple[LayerAddress, int], Array]

    def value(self, address: LayerAddress, output: int, *, at_last: bool = False) -> Array | None:
        """Return a value; None where it is not known."""
        found = self.last.get((address, output)) if at_last else None
        return self.first.get((address, output)) if found is None else found


class TrialRunner:
    """Runs candidates under a condition. What was tried once is not tried again."""

    def __init__(self, condition: FaultCondition, settings: RunSettings) -> None:
        self.condition, self.settings = condition, settings
        self.trials = 0
        self._limits = Limits(_FIRST)
        self._worker = trial_worker(MEMORY, with_openvino=_asks_openvino(condition))
        self._folder = tempfile.TemporaryDirectory(prefix="stepper-reduce-")
        self._numbers = itertools.count()
        self._known: dict[bytes, FoundFault | None] = {}

    def close(self) -> None:
        """End the process, and delete the folder."""
        self._worker.close()
        self._folder.cleanup()

    def limit(self, seconds: float) -> None:
        """Let each stage of a trial take so long from now on."""
        self._limits = Limits(seconds)

    def fault(self, pair: Pair) -> FoundFault | None:
        """Return the fault of a candidate; None for none, and where it cannot be judged."""
        files = [ir_files(draft) for draft in pair if draft is not None]
        key = _digest(files, pair.model.inputs)
        if key not in self._known:
            self._known[key] = self._ran(files, pair.model.inputs).fault
        return self._known[key]

    def tried(self, pair: Pair, *, wants_outputs: bool = False) -> TrialOutcome:
        """Run a candidate."""
        files = [ir_files(draft) for draft in pair if draft is not None]
        return self._ran(files, pair.model.inputs, wants_outputs=wants_outputs)

    def _ran(self, files: list[IRFiles], inputs: list[Array], *, wants_outputs: bool = False) -> TrialOutcome:
        self.trials += 1
        paths = [self._written(one) for one in files]
        act = TryModel(
            str(paths[0]), self.settings, self.condition, str(paths[1]) if len(paths) > 1 else "", wants_outputs
        )
        try:
            facts, arrays = self._worker.ask_for(TrialFacts, act, inputs, subject="a candidate", limits=self._limits)
        except ENDED as error:
            return TrialOutcome(ended_fault(error.end, self.condition))  # type: ignore[attr-defined]  # each of ENDED has it
        except (StepperError, RuntimeError):
            return TrialOutcome(None)
        finally:
            for path in paths:
                path.unlink()
                path.with_suffix(".bin").unlink()
        return TrialOutcome(facts.fault, facts.moves, tuple(arrays[: facts.expected]), tuple(arrays[facts.expected :]))

    def observed(self, draft: DraftModel) -> ObservedRun:
        """Return the values of a run of a model."""
        path = self._written(ir_files(draft))
        try:
            facts, arrays = self._worker.ask_for(
                ObservedFacts,
                ObserveValues(str(path), self.settings),
                draft.inputs,
                subject="the values of a candidate",
                limits=self._limits,
            )
        except (StepperError, RuntimeError):
            return ObservedRun({}, {})
        found: tuple[dict[tuple[LayerAddress, int], Array], dict[tuple[LayerAddress, int], Array]] = ({}, {})
        for key, array in zip(facts.keys, arrays, strict=True):
            found[key.is_last][LayerAddress(key.scope, key.layer), key.output] = array
        return ObservedRun(*found)

    def kernels(self, draft: DraftModel) -> tuple[ChosenKernel, ...]:
        """Return the kernels that OpenVINO chooses for a model; none where it does not say."""
        path = self._written(ir_files(draft))
        try:
            act = NameKernels(str(path), self.settings)
            return self._worker.ask_for(KernelFacts, act, (), subject="its kernels", limits=self._limits)[0].kernels
        except (StepperError, RuntimeError):
            return ()

    def _written(self, files: IRFiles) -> Path:
        # Each has a name of its own: what is mapped into memory there must not change.
        path = Path(self._folder.name) / f"candidate{next(self._numbers)}.xml"
        path.write_bytes(files.xml)
        path.with_suffix(".bin").write_bytes(files.weights)
        return path


def _digest(files: list[IRFiles], inputs: list[Array]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in (part for one in files for part in one):
        digest.update(part)
    for value in inputs:
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(repr(value.tolist()).encode() if value.dtype == STRING_DTYPE else value.tobytes())
    return digest.digest()


def ended_fault(end: ProcessEnd | None, condition: FaultCondition) -> FoundFault | None:
    """Return the fault where OpenVINO ended its process; the end of our own engine's is none."""
    if end is None or end.stage == STEPPING or end.kind is EndKind.MEMORY or not _asks_openvino(condition):
        return None
    what = f"{end.kind} {end.code} {end.stage}"
    said = str(ProcessEnd(end.kind, "OpenVINO", end.stage, "the model", end.code, end.limit))
    return FoundFault(FaultKind.ENDED, "OpenVINO", what, message=said)


def _asks_openvino(condition: FaultCondition) -> bool:
    is_of_a_model = isinstance(condition, DisagreesWith) and condition.reference != OPENVINO
    return not is_of_a_model and not isinstance(condition, StopsAt)


_LARGEST = 2**26
"""Bytes of a value that is worth being a Constant."""


class ValueLog:
    """Keeps the first and the last value of each output."""

    def __init__(self, model: Model) -> None:
        self.scopes = {id(graph): scope for scope, _path, graph in model.scopes()}
        self.first: dict[ObservedKey, Array] = {}
        self.last: dict[ObservedKey, Array] = {}

    def take(self, frame: Frame) -> None:
        """Take note of what a frame holds: its Parameters, and what its operations gave in this iteration."""
        program = frame.program
        for (layer, output), slot in program.slots.items():
            if frame.is_current(slot) and program.graph.by_id[layer].type not in ("Constant", "Result"):
                self._note(program, layer, output, frame.values[slot])

    def _note(self, program: Program, layer: int, output: int, value: Any) -> None:
        if value is None or np.asarray(value).nbytes > _LARGEST:
            return
        key = ObservedKey(self.scopes[id(program.graph)], layer, output, is_last=False)
        self.last[key] = np.asarray(value)
        self.first.setdefault(key, self.last[key])


def log_values(
    compiled: CompiledModel,
    inputs: Sequence[Array],
    settings: RunSettings,
    states: Mapping[str, Any] | None = None,
    deadline: float = math.inf,
) -> tuple[ValueLog, Machine | None]:
    """Run a model and return the values of all operations; as far as the run comes by a monotonic time, or fails.

    The machine is None if it could not begin.
    """
    log, frames, machine = ValueLog(compiled.model), list[Frame](), None
    with suppress(StepperError):
        machine = Machine(compiled, inputs, max_iterations=settings.max_iterations, states=states)
        frames = machine.stack
        while machine.stack and machine.tick < settings.most_moves and time.monotonic() < deadline:
            event = machine.advance(Every.ITERATION, until=settings.most_moves)
            if event.kind in (EventKind.ITERATION, EventKind.FINISHED) or not event.frame.loop:
                log.take(event.frame)
    for frame in frames:
        log.take(frame)
    return log, machine
