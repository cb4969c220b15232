"""`hunt`: random models against OpenVINO; what differs is made small, named, and kept once.

Each core has a thread with a process of its own. A seed is built and tried there; where the outputs differ, the thread
reduces the model, and the smallest case of each fault is kept. Models depend on the seed and the profile alone.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from stepper.diagnosis.hunt.faults import recognised
from stepper.diagnosis.hunt.journal import Journal, SeedOutcome, SeedRecord
from stepper.diagnosis.hunt.profiles import BUILDING, BuildModel, BuiltModel, Profile, hunt_worker
from stepper.diagnosis.hunt.recognition import shown_facts
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.reduce.case import case_targets, write_case
from stepper.diagnosis.reduce.conditions import DisagreesWith, FaultKind, FoundFault
from stepper.diagnosis.reduce.listing import fault_text
from stepper.diagnosis.reduce.reducing import Reduction, reduce_model
from stepper.diagnosis.reduce.trial_acts import RunSettings, TrialFacts, TryModel
from stepper.diagnosis.reduce.trying import ended_fault
from stepper.diagnosis.reduce.writing import ir_files
from stepper.errors import StepperError
from stepper.files.locks import lock
from stepper.files.output import ProtectedFiles
from stepper.processes.endings import ENDED
from stepper.processes.messages import LOADING
from stepper.processes.worker import Limits, Worker

MEMORY: Final = 2 * 2**30
"""Bytes that a random model may use."""
REDUCTION: Final = 60.0
"""Seconds that the reduction of a disagreement may take."""
_TRIAL: Final = 30.0
_ITERATIONS: Final = 1000
_CASES: Final = "cases"
_RULES: Final = "openvino"


class HuntProgress(Struct, frozen=True):
    """How far a hunt has come."""

    seeds: int
    disagreements: int
    faults: int
    seconds: float


class FaultCount(Struct, frozen=True):
    """A fault in the table: its id, how many seeds show it, the smallest case, and where it is as far as is known.

    `is_known`: it is in the catalogue. `is_ours`: our engine fails where OpenVINO computes. `case` is a folder beside
    the record of the hunt, and `operations` is what the smallest model there has.
    """

    fault: str
    is_known: bool
    is_ours: bool
    seeds: tuple[int, ...]
    operations: int
    message: str
    where: str
    case: str


class HuntReport(Struct, frozen=True):
    """Result of a hunt, with what the folder had before: how many seeds came to what, and the faults."""

    seeds: int
    agree: int
    not_built: int
    undecided: int
    faults: tuple[FaultCount, ...]
    is_interrupted: bool
    seconds: float


def hunt(
    folder: Path,
    profile: Profile = Profile.LOOPS,
    *,
    seed: int = 0,
    count: int | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    progress: Callable[[HuntProgress], object] | None = None,
) -> HuntReport:
    """Try the seeds from one on, as many as `count` or as time allows, and leave out those that the folder has.

    Ctrl+C ends it (`is_interrupted`); the next call goes on from there. Raises OutputError, and UsageError where the
    folder has a hunt of another profile or version.
    """
    journal = Journal(folder, profile)
    try:
        with lock(journal.path, advice="let it end, or choose another folder"):
            return _Hunt(journal, profile, progress).run(seed, count, seconds, workers or os.cpu_count() or 1)
    finally:
        journal.close()


def report_of(journal: Journal, *, is_interrupted: bool, seconds: float) -> HuntReport:
    """Return the table of what a folder has."""
    records = sorted(journal.records.values(), key=lambda record: record.seed)
    of_fault: dict[str, list[SeedRecord]] = {}
    for record in records:
        if record.outcome is SeedOutcome.DIFFERS:
            of_fault.setdefault(record.fault, []).append(record)
    counts = {outcome: sum(record.outcome is outcome for record in records) for outcome in SeedOutcome}
    faults = tuple(_counted(of_fault[fault]) for fault in sorted(of_fault))
    return HuntReport(
        len(records),
        counts[SeedOutcome.AGREES],
        counts[SeedOutcome.NOT_BUILT],
        counts[SeedOutcome.UNDECIDED],
        faults,
        is_interrupted,
        seconds,
    )


def _counted(records: list[SeedRecord]) -> FaultCount:
    least = _smallest(records)
    seeds = tuple(record.seed for record in records)
    case = f"{_CASES}/{least.fault}" if least.operations else ""
    return FaultCount(
        least.fault, least.is_known, least.is_ours, seeds, least.operations, least.message, least.where, case
    )


def _smallest(records: Iterable[SeedRecord]) -> SeedRecord:
    return min(records, key=lambda record: (not record.operations, record.operations, record.seed))


class _Hunt:
    def __init__(self, journal: Journal, profile: Profile, progress: Callable[[HuntProgress], object] | None) -> None:
        self._journal, self._profile, self._progress = journal, profile, progress
        self._results: queue.Queue[tuple[SeedRecord, Reduction | None] | BaseException | None] = queue.Queue()
        self._stopped, self._guard = threading.Event(), threading.Lock()
        self._began = time.monotonic()
        self._differing = 0
        self._faults: set[str] = set()
        self._least: dict[str, int] = {}
        for record in journal.records.values():
            self._count(record)

    def run(self, seed: int, count: int | None, seconds: float | None, workers: int) -> HuntReport:
        seeds = self._seeds(seed, count, None if seconds is None else self._began + seconds)
        threads = [threading.Thread(target=self._work, args=(seeds,), daemon=True) for _ in range(workers)]
        is_interrupted = False
        try:
            for thread in threads:
                thread.start()
            self._gather(len(threads))
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            self._stopped.set()
        return report_of(self._journal, is_interrupted=is_interrupted, seconds=time.monotonic() - self._began)

    def _seeds(self, seed: int, count: int | None, deadline: float | None) -> Iterator[int]:
        last = None if count is None else seed + count
        while (last is None or seed < last) and (deadline is None or time.monotonic() < deadline):
            if seed not in self._journal.records:
                yield seed
            seed += 1

    def _gather(self, working: int) -> None:
        """Write down what the threads find, until they are done."""
        while working:
            found = self._results.get()
            if found is None:
                working -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                self._keep(*found)

    def _keep(self, record: SeedRecord, reduction: Reduction | None) -> None:
        """Add a seed, and write its case where it is the smallest of its fault."""
        if reduction is not None and record.operations < self._least.get(record.fault, record.operations + 1):
            folder = self._journal.folder / _CASES / record.fault
            targets = case_targets(folder, ProtectedFiles(), "-o")
            write_case(reduction, targets, title=f"seed {record.seed} of {self._profile}", finds_pass=False)
        self._journal.add(record)
        self._count(record)
        if self._progress is not None:
            seconds = time.monotonic() - self._began
            self._progress(HuntProgress(len(self._journal.records), self._differing, len(self._faults), seconds))

    def _count(self, record: SeedRecord) -> None:
        """Take note of a disagreement, and of the size of its smallest case."""
        if record.outcome is not SeedOutcome.DIFFERS:
            return
        self._differing += 1
        self._faults.add(record.fault)
        if record.operations:
            self._least[record.fault] = min(record.operations, self._least.get(record.fault, record.operations))

    def _work(self, seeds: Iterator[int]) -> None:
        worker = hunt_worker(MEMORY)
        try:
            with tempfile.TemporaryDirectory(prefix="stepper-hunt-") as folder:
                hunter = _Hunter(worker, Path(folder), self._profile)
                while not self._stopped.is_set():
                    with self._guard:
                        seed = next(seeds, None)
                    if seed is None:
                        break
                    self._results.put(hunter.tried(seed))
        except BaseException as error:
            self._results.put(error)
        finally:
            worker.close()
            self._results.put(None)


class _Hunter:
    """Tries seeds in a process."""

    def __init__(self, worker: Worker, folder: Path, profile: Profile) -> None:
        self._worker, self._folder, self._profile = worker, folder, profile

    def tried(self, seed: int) -> tuple[SeedRecord, Reduction | None]:
        """Return what comes of a seed, and the smallest model where the outputs differ."""
        path = self._folder / f"seed{seed}.xml"
        try:
            return self._tried(seed, path)
        finally:
            for suffix in (".xml", ".bin"):
                path.with_suffix(suffix).unlink(missing_ok=True)

    def _tried(self, seed: int, path: Path) -> tuple[SeedRecord, Reduction | None]:
        limits, subject = Limits(_TRIAL), f"seed {seed}"
        try:
            act = BuildModel(self._profile, seed, str(path))
            built, inputs = self._worker.ask_for(BuiltModel, act, subject=subject, limits=limits)
        except (StepperError, RuntimeError):
            return SeedRecord(seed, SeedOutcome.NOT_BUILT), None
        if not built.description:
            return SeedRecord(seed, SeedOutcome.NOT_BUILT), None
        settings = RunSettings(_RULES, _ITERATIONS)
        try:
            trial = TryModel(str(path), settings, DisagreesWith())
            fault = self._worker.ask_for(TrialFacts, trial, inputs, subject=subject, limits=limits)[0].fault
        except ENDED as error:
            end = error.end  # type: ignore[attr-defined]  # each of ENDED has it
            is_ours = end is None or end.stage in (BUILDING, LOADING)  # nothing of the runtime's had begun
            fault = None if is_ours else ended_fault(end, DisagreesWith())
            if fault is None:
                return SeedRecord(seed, SeedOutcome.UNDECIDED, message=str(error)), None
        except (StepperError, RuntimeError) as error:
            return SeedRecord(seed, SeedOutcome.UNDECIDED, message=str(error)), None
        if fault is None or (fault.skips_a_loop and _is_undefined(path)):
            return SeedRecord(seed, SeedOutcome.AGREES), None
        reduction = None
        with contextlib.suppress(StepperError):
            reduction = reduce_model(
                path,
                dict(enumerate(inputs)),
                DisagreesWith(),
                seconds=REDUCTION,
                rules=_RULES,
                max_iterations=_ITERATIONS,
            )
        return self._named(seed, fault, reduction, path), reduction

    def _named(self, seed: int, fault: FoundFault, reduction: Reduction | None, path: Path) -> SeedRecord:
        """Return the record of a disagreement: its name, and where it is."""
        if reduction is None:  # what is not small shows too much to be recognised
            is_ours = fault.kind is FaultKind.ERROR
            return SeedRecord(
                seed, SeedOutcome.DIFFERS, _name(fault, ()), False, is_ours, 0, fault_text(fault), _place(fault, "")
            )
        fault, files = reduction.fault, ir_files(reduction.model)
        path = path.with_name(f"small{seed}.xml")
        path.write_bytes(files.xml)
        path.with_suffix(".bin").write_bytes(files.weights)
        shown = shown_facts(reduction.model, path, fault, reduction.settings)
        path.unlink()
        path.with_suffix(".bin").unlink()
        known = recognised(fault, shown)
        return SeedRecord(
            seed,
            SeedOutcome.DIFFERS,
            _name(fault, shown.types) if known is None else known.id,
            known is not None,
            fault.kind is FaultKind.ERROR,
            reduction.model.operation_count,
            fault_text(fault) if known is None else known.what,
            _place(fault, shown.changed_by) if known is None else known.where,
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
