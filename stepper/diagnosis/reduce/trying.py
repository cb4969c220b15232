"""Trials of candidates: each is written to a folder, and run in a process with limits of time and memory."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from stepper.diagnosis.reduce.conditions import OPENVINO, DisagreesWith, FaultCondition, FaultKind, FoundFault, StopsAt
from stepper.diagnosis.reduce.draft import DraftModel, LayerAddress
from stepper.diagnosis.reduce.trial_acts import (
    STEPPING,
    ChosenKernel,
    KernelFacts,
    NameKernels,
    ObservedFacts,
    ObserveValues,
    RunSettings,
    TrialFacts,
    TryModel,
    trial_worker,
)
from stepper.diagnosis.reduce.writing import IRFiles, ir_files
from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import StepperError
from stepper.processes.messages import ENDED, EndKind, ProcessEnd
from stepper.processes.worker import Limits

MEMORY: Final = 4 * 2**30
"""Bytes that a trial may use."""
_FIRST: Final = 60.0
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


class ObservedRun(Struct, frozen=True):
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
