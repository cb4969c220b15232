"""Seeds of a hunt, in a process: built, tried, made small, and named; and named again, as the catalogue grows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from stepper.diagnosis.hunt.faults import causes_of, recognised
from stepper.diagnosis.hunt.features import features_of
from stepper.diagnosis.hunt.journal import SeedOutcome, SeedRecord
from stepper.diagnosis.hunt.profiles import BUILDING, BuildModel, BuiltModel, Profile
from stepper.diagnosis.hunt.recognition import shown_facts
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.reduce.case import MODEL, read_case
from stepper.diagnosis.reduce.conditions import DisagreesWith, FaultKind, FoundFault
from stepper.diagnosis.reduce.draft import DraftModel
from stepper.diagnosis.reduce.listing import fault_text
from stepper.diagnosis.reduce.reducing import Reduction, reduce_model
from stepper.diagnosis.reduce.trial_acts import RunSettings, TrialFacts, TryModel
from stepper.diagnosis.reduce.trying import ended_fault
from stepper.diagnosis.reduce.writing import ir_files
from stepper.element_types import Array
from stepper.errors import StepperError
from stepper.ir.reader import read
from stepper.processes.messages import ENDED, LOADING
from stepper.processes.worker import Limits, Worker

MEMORY: Final = 2 * 2**30
"""Bytes that a random model may use."""
REDUCTION: Final = 60.0
"""Seconds that the reduction of a disagreement may take."""
SETTINGS: Final = RunSettings("openvino", 1000)
"""How a hunt runs its models."""
_TRIAL: Final = 30.0


class TriedSeed(Struct, frozen=True):
    """Result of a seed, with the smallest model where the outputs differ and it was made small now."""

    record: SeedRecord
    reduction: Reduction | None = None


class _Undecided(Exception):
    """Nothing can be said of a seed."""


class SeedHunter:
    """Tries seeds in a process, which keeps what it needs in a folder."""

    def __init__(self, worker: Worker, folder: Path, profile: Profile) -> None:
        self._worker, self._folder, self._profile = worker, folder, profile

    def tried(self, seed: int) -> TriedSeed:
        """Build a seed and try it; make it small and name it where the outputs differ."""
        path = self._folder / f"seed{seed}.xml"
        try:
            return self._tried(seed, path)
        except _Undecided as error:
            return TriedSeed(SeedRecord(seed, SeedOutcome.UNDECIDED, message=str(error)))
        finally:
            _delete(path)

    def named_again(self, record: SeedRecord, case: Path) -> TriedSeed:
        """Return what a seed is called today by its smallest model, whose case is in this folder.

        Where that is not there, or shows nothing any more, the seed is tried again.
        """
        try:
            draft = read_case(case)
            fault = self._fault(record.seed, case / MODEL, draft.inputs)
        except (StepperError, OSError, _Undecided):
            fault = None
        if fault is None:
            return self.tried(record.seed)
        return TriedSeed(_named(record.seed, fault, draft, case / MODEL))

    def _tried(self, seed: int, path: Path) -> TriedSeed:
        try:
            act = BuildModel(self._profile, seed, str(path))
            built, inputs = self._worker.ask_for(BuiltModel, act, subject=f"seed {seed}", limits=Limits(_TRIAL))
        except (StepperError, RuntimeError):
            return TriedSeed(SeedRecord(seed, SeedOutcome.NOT_BUILT))
        if not built.description:
            return TriedSeed(SeedRecord(seed, SeedOutcome.NOT_BUILT))
        fault = self._fault(seed, path, inputs)
        if fault is None or (fault.skips_a_loop and _is_undefined(path)):
            return TriedSeed(SeedRecord(seed, SeedOutcome.AGREES))
        reduction, admits = None, _stays(path, inputs, fault)
        with contextlib.suppress(StepperError):
            reduction = reduce_model(
                path,
                dict(enumerate(inputs)),
                DisagreesWith(),
                seconds=REDUCTION,
                rules=SETTINGS.rules,
                max_iterations=SETTINGS.max_iterations,
                admits=admits,
            )
        if reduction is None:  # what is not small shows too much to be recognised
            return TriedSeed(_new(seed, fault, (), 0, _place(fault, "")))
        files, small = ir_files(reduction.model), self._folder / f"small{seed}.xml"
        try:
            small.write_bytes(files.xml)
            small.with_suffix(".bin").write_bytes(files.weights)
            return TriedSeed(_named(seed, reduction.fault, reduction.model, small), reduction)
        finally:
            _delete(small)

    def _fault(self, seed: int, path: Path, inputs: Sequence[Array]) -> FoundFault | None:
        """Return the disagreement about the model of a file; None for none."""
        try:
            act = TryModel(str(path), SETTINGS, DisagreesWith())
            facts, _ = self._worker.ask_for(TrialFacts, act, inputs, subject=f"seed {seed}", limits=Limits(_TRIAL))
        except ENDED as error:
            end = error.end  # type: ignore[attr-defined]  # each of ENDED has it
            is_ours = end is None or end.stage in (BUILDING, LOADING)  # nothing of the runtime's had begun
            fault = None if is_ours else ended_fault(end, DisagreesWith())
            if fault is None:
                raise _Undecided(str(error)) from None
            return fault
        except (StepperError, RuntimeError) as error:
            raise _Undecided(str(error)) from None
        return facts.fault


def _stays(path: Path, inputs: Sequence[Array], fault: FoundFault) -> Callable[[DraftModel], bool]:
    """Return the test of a candidate: it may have no cause of a disagreement like this one that the whole lacks.

    An error of ours is to keep one of its causes: others are what the reduction has made.
    """
    causes = causes_of(fault)
    had = causes & features_of(DraftModel.of(read(path), inputs))
    wanted = had if fault.kind is FaultKind.ERROR else frozenset()

    def stays(candidate: DraftModel) -> bool:
        features = features_of(candidate)
        return not (causes & features) - had and (not wanted or bool(features & wanted))

    return stays


def _named(seed: int, fault: FoundFault, small: DraftModel, path: Path) -> SeedRecord:
    """Return the record of a disagreement: its name, and where it is. The small model stands in this file."""
    shown = shown_facts(small, path, fault, SETTINGS)
    known = recognised(fault, shown)
    new = _new(seed, fault, shown.types, small.operation_count, _place(fault, shown.changed_by))
    if known is None:
        return new
    return replace(new, fault=known.id, is_known=True, is_ours=False, message=known.what, where=known.where)


def _new(seed: int, fault: FoundFault, types: Iterable[str], operations: int, place: str) -> SeedRecord:
    """Return the record of a disagreement that no known fault explains."""
    is_ours = fault.kind is FaultKind.ERROR
    return SeedRecord(
        seed, SeedOutcome.DIFFERS, _name(fault, types), False, is_ours, operations, fault_text(fault), place
    )


def _place(fault: FoundFault, changed_by: str) -> str:
    """Return where a new fault is, as far as it says so."""
    if changed_by:
        return f"the pass {changed_by}"
    return fault.what if fault.kind is FaultKind.REFUSED else ""


def _is_undefined(path: Path) -> bool:
    return any(finding.rule == "undefined-without-iterations" for finding in lint(path))


def _name(fault: FoundFault, types: Iterable[str]) -> str:
    """Return a name for a new fault, made of what it shows."""
    shown = [str(fault.kind), Path(fault.what).stem if fault.kind is FaultKind.REFUSED else fault.what]
    shown += sorted(types)[:6] if fault.kind is not FaultKind.REFUSED else []
    return re.sub(r"[^a-z0-9]+", "-", " ".join(shown).lower()).strip("-")[:80]


def _delete(path: Path) -> None:
    for suffix in (".xml", ".bin"):
        path.with_suffix(suffix).unlink(missing_ok=True)
