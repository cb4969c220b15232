"""`hunt`: random models against OpenVINO; what differs is made small, named, and kept once.

Each core has a thread with a process of its own. A seed is built and tried there; where the outputs differ, the thread
reduces the model. The smallest case of each known fault is kept, and that of each seed without a name, which is named
again when the hunt goes on. Models depend on the seed and the profile alone.
"""

from __future__ import annotations

import itertools
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from stepper.diagnosis.hunt.faults import FAULTS
from stepper.diagnosis.hunt.journal import Journal, SeedOutcome, SeedRecord
from stepper.diagnosis.hunt.profiles import Profile, hunt_worker
from stepper.diagnosis.hunt.seeds import MEMORY, SeedHunter, TriedSeed
from stepper.diagnosis.reduce.case import case_targets, write_case
from stepper.files.locks import lock
from stepper.files.output import ProtectedFiles
from stepper.processes.starting import cores

_CASES: Final = "cases"
_UNNAMED: Final = "unnamed"


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

    Seeds whose disagreement has no name yet are named again before, by today's catalogue; where the small model shows
    nothing any more, the seed is tried again. Ctrl+C ends it (`is_interrupted`); the next call goes on from there.
    Raises OutputError, and UsageError where the folder has a hunt of another profile or version.
    """
    journal = Journal(folder, profile)
    try:
        with lock(journal.path, advice="let it end, or choose another folder"):
            return _Hunt(journal, profile, progress).run(seed, count, seconds, workers or cores())
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
    case = _case(least) if least.operations else ""
    return FaultCount(
        least.fault, least.is_known, least.is_ours, seeds, least.operations, least.message, least.where, case
    )


def _case(record: SeedRecord) -> str:
    """Return the folder of the case of a seed: a known fault has one, others have one for each seed."""
    return f"{_CASES}/{record.fault}" if record.is_known else f"{_UNNAMED}/seed{record.seed}"


def _smallest(records: Iterable[SeedRecord]) -> SeedRecord:
    return min(records, key=lambda record: (not record.operations, record.operations, record.seed))


def _unnamed(journal: Journal) -> list[SeedRecord]:
    """Return the disagreements that the catalogue of today does not have by the name that they have."""
    known = {fault.id for fault in FAULTS}
    differing = (record for record in journal.records.values() if record.outcome is SeedOutcome.DIFFERS)
    return sorted((one for one in differing if not one.is_known or one.fault not in known), key=lambda one: one.seed)


class _Hunt:
    def __init__(self, journal: Journal, profile: Profile, progress: Callable[[HuntProgress], object] | None) -> None:
        self._journal, self._profile, self._progress = journal, profile, progress
        self._results: queue.Queue[TriedSeed | BaseException | None] = queue.Queue()
        self._stopped, self._guard = threading.Event(), threading.Lock()
        self._began = time.monotonic()
        self._differing: dict[int, str] = {}
        for record in journal.records.values():
            self._count(record)

    def run(self, seed: int, count: int | None, seconds: float | None, workers: int) -> HuntReport:
        deadline = None if seconds is None else self._began + seconds
        seeds = itertools.chain(_unnamed(self._journal), self._seeds(seed, count, deadline))
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
                self._keep(found)

    def _keep(self, tried: TriedSeed) -> None:
        """Add a seed; its case is kept where it has no name yet, or is the smallest of its fault."""
        record, own = tried.record, self._journal.folder / _UNNAMED / f"seed{tried.record.seed}"
        case = self._journal.folder / _case(record)
        is_kept = record.outcome is SeedOutcome.DIFFERS and (not record.is_known or self._is_smallest(record))
        if tried.reduction is not None and is_kept:
            title = f"seed {record.seed} of {self._profile}"
            write_case(tried.reduction, case_targets(case, ProtectedFiles(), "-o"), title=title, finds_pass=False)
        elif is_kept and case != own and own.exists():
            shutil.rmtree(case, ignore_errors=True)
            case.parent.mkdir(exist_ok=True)
            own.rename(case)
        if self._journal.records.get(record.seed) != record:
            self._journal.add(record)
            self._count(record)
        if case != own or not is_kept:
            shutil.rmtree(own, ignore_errors=True)
        if self._progress is not None:
            seconds = time.monotonic() - self._began
            faults = len({*self._differing.values()})
            self._progress(HuntProgress(len(self._journal.records), len(self._differing), faults, seconds))

    def _count(self, record: SeedRecord) -> None:
        self._differing.pop(record.seed, None)
        if record.outcome is SeedOutcome.DIFFERS:
            self._differing[record.seed] = record.fault

    def _is_smallest(self, record: SeedRecord) -> bool:
        """True if no other seed has a case of this fault that is as small."""
        others = (one for one in self._journal.records.values() if one.fault == record.fault and one.is_known)
        least = min((one.operations for one in others if one.operations and one.seed != record.seed), default=None)
        return bool(record.operations) and (least is None or record.operations < least)

    def _work(self, seeds: Iterator[SeedRecord | int]) -> None:
        worker = hunt_worker(MEMORY)
        try:
            with tempfile.TemporaryDirectory(prefix="stepper-hunt-") as folder:
                hunter = SeedHunter(worker, Path(folder), self._profile)
                while not self._stopped.is_set():
                    with self._guard:
                        seed = next(seeds, None)
                    if seed is None:
                        break
                    self._results.put(self._tried(hunter, seed))
        except BaseException as error:
            self._results.put(error)
        finally:
            worker.close()
            self._results.put(None)

    def _tried(self, hunter: SeedHunter, seed: SeedRecord | int) -> TriedSeed:
        if isinstance(seed, int):
            return hunter.tried(seed)
        return hunter.named_again(seed, self._journal.folder / _UNNAMED / f"seed{seed.seed}")
