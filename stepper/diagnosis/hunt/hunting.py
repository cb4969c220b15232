"""Compare random models with OpenVINO (`hunt`); reduce, name and keep each difference once.

Each core has a thread with its own process. A seed is built and tried there; if the outputs differ, the thread reduces
the model. `hunt` keeps the smallest case of each known fault and the case of each unnamed seed. When the hunt
continues, it tries to name these cases again. Models depend on the seed and the profile alone.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import itertools
import queue
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepper.diagnosis.hunt.faults import (
    FAULTS,
    SETTINGS,
    RuntimeFault,
    causes_of,
    features_of,
    recognised,
    shown_facts,
)
from stepper.diagnosis.hunt.hunt_service import BUILDING, PROGRAM, BuildModel, BuiltModel, Profile
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.reduce.draft import DraftModel, ir_files
from stepper.diagnosis.reduce.reduced_case import MODEL, case_targets, fault_text, model_lines, read_case, write_case
from stepper.diagnosis.reduce.reducing import Reduction, reduce_model
from stepper.diagnosis.reduce.trials import (
    DisagreesWith,
    FaultKind,
    FoundFault,
    TrialFacts,
    TryModel,
    ended_fault,
    trial_worker,
)
from stepper.element_types import Array
from stepper.errors import OutputError, StepperError, UsageError
from stepper.files.locks import lock
from stepper.files.output import ProtectedFiles
from stepper.ir.reader import read
from stepper.processes.process_messages import ENDED, LOADING
from stepper.processes.starting import cores
from stepper.processes.worker import Limits, Worker
from stepper.records import Record

# The state of a hunt: a folder with a line for each seed, which survives whatever ends the program, and the cases.

_NAME = "hunt.jsonl"


class SeedOutcome(StrEnum):
    """Result of a seed."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_BUILT = "not built"
    UNDECIDED = "undecided"


class HuntSetting(Record):
    """Owner of the lines of a folder: the profile, and the version of OpenVINO."""

    profile: Profile
    openvino: str


class SeedRecord(Struct, frozen=True, omit_defaults=True):
    """A seed and what came of it: `fault` is the id of the disagreement, `operations` those of its smallest model.

    `pass_name` is the first pass of OpenVINO that changes what the smallest model computes, empty for none.
    """

    seed: int
    outcome: SeedOutcome
    fault: str = ""
    is_known: bool = False
    is_ours: bool = False
    operations: int = 0
    message: str = ""
    where: str = ""


class Journal:
    """The lines of a folder, whose lock is held. A last line that was cut off is left out."""

    def __init__(self, path: Path, profile: Profile) -> None:
        self.path, self.folder = path, path.parent
        setting = HuntSetting(profile, importlib.metadata.version("openvino"))
        self.records: dict[int, SeedRecord] = {}
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise _no_folder(self.folder, error) from None
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            self._read(whole, setting)
        try:
            self._file = self.path.open("r+b" if self.path.exists() else "w+b")
            self._file.truncate(len(whole))
            self._file.seek(len(whole))
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from None
        if not whole:
            self._write(setting)

    def _read(self, content: bytes, setting: HuntSetting) -> None:
        first, *lines = content.splitlines()
        try:
            found = msgspec.json.decode(first, type=HuntSetting)
            records = [msgspec.json.decode(line, type=SeedRecord) for line in lines]
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.path} is no record of a hunt ({error}); choose another folder") from None
        if found != setting:
            had = f"profile {found.profile}, OpenVINO {found.openvino}"
            raise UsageError(f"{self.folder} has a hunt of another kind ({had}); choose another folder")
        self.records = {record.seed: record for record in records}

    def add(self, record: SeedRecord) -> None:
        """Take note of a seed."""
        self.records[record.seed] = record
        self._write(record)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: Struct) -> None:
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from None


def _no_folder(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder} cannot be used: {error.strerror}")


# Seeds of a hunt, in a process: built, tried, made small, and named; and named again, as the catalogue grows.

_MEMORY = 2 * 2**30
"""Bytes that a model may use."""
REDUCTION = 60.0
"""Seconds that the reduction of a disagreement may take."""
_TRIAL = 30.0


class TriedSeed(Record):
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
        if not built.is_built:
            return TriedSeed(SeedRecord(seed, SeedOutcome.NOT_BUILT))
        fault = self._fault(seed, path, inputs)
        if fault is None or (
            fault.skips_a_loop and any(finding.rule == "undefined-without-iterations" for finding in lint(path))
        ):
            return TriedSeed(SeedRecord(seed, SeedOutcome.AGREES))
        reduction, admits = None, _stays(path, inputs, fault)
        with contextlib.suppress(StepperError):
            reduction = reduce_model(
                path, dict(enumerate(inputs)), DisagreesWith(), SETTINGS, seconds=REDUCTION, admits=admits
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
    shown = shown_facts(small, path, fault)
    known = recognised(fault, shown)
    new = _new(seed, fault, shown.types, small.operation_count, _place(fault, shown.changed_by))
    if known is None:
        return new
    return replace(new, fault=known.id, is_known=True, is_ours=False, message=known.what, where=known.where)


def _new(seed: int, fault: FoundFault, types: Iterable[str], operations: int, place: str) -> SeedRecord:
    """Return the record of a disagreement that no known fault explains."""
    is_ours = fault.kind is FaultKind.ERROR
    shown = [str(fault.kind), Path(fault.what).stem if fault.kind is FaultKind.REFUSED else fault.what]
    shown += sorted(types)[:6] if fault.kind is not FaultKind.REFUSED else []
    return SeedRecord(
        seed,
        SeedOutcome.DIFFERS,
        re.sub(r"[^a-z0-9]+", "-", " ".join(shown).lower()).strip("-")[:80],
        False,
        is_ours,
        operations,
        fault_text(fault),
        place,
    )


def _place(fault: FoundFault, changed_by: str) -> str:
    """Return where a new fault is, as far as it says so."""
    if changed_by:
        return f"the pass {changed_by}"
    return fault.what if fault.kind is FaultKind.REFUSED else ""


def _delete(path: Path) -> None:
    for suffix in (".xml", ".bin"):
        path.with_suffix(suffix).unlink(missing_ok=True)


_CASES = "cases"
_UNNAMED = "unnamed"


class HuntProgress(Record):
    """How far a hunt has come."""

    seeds: int
    disagreements: int
    faults: int
    seconds: float


class FaultCount(Record):
    """A fault in the table: its id, how many seeds show it, the smallest case, and its place as far as known.

    `is_known`: it is in the catalogue. `is_ours`: our engine fails where OpenVINO computes. `case` is a folder beside
    the record of the hunt, and `operations` are the operations of its model.
    """

    fault: str
    is_known: bool
    is_ours: bool
    seeds: tuple[int, ...]
    operations: int
    message: str
    where: str
    case: str


class HuntReport(Record):
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
    progress: Callable[[HuntProgress], object] | None = None,
) -> HuntReport:
    """Try seeds in order, up to `count` or the time limit; skip seeds that the folder has.

    First, `hunt` names the unnamed seeds again with the current catalogue. If the small model no longer shows the
    fault, the seed is tried again. Ctrl+C ends the hunt (`is_interrupted`); the next call continues from there. Raises
    OutputError, and UsageError if the folder has a hunt of another profile or version.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_folder(folder, error) from None
    with lock(folder / _NAME, advice="let it end, or choose another folder"):
        journal = Journal(folder / _NAME, profile)
        try:
            return _Hunt(journal, profile, progress).run(seed, count, seconds)
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
    least = min(records, key=lambda record: (not record.operations, record.operations, record.seed))
    seeds = tuple(record.seed for record in records)
    case = _case(least) if least.operations else ""
    return FaultCount(
        least.fault, least.is_known, least.is_ours, seeds, least.operations, least.message, least.where, case
    )


def _case(record: SeedRecord) -> str:
    """Return the folder of the case of a seed: a known fault has one, others have one for each seed."""
    return f"{_CASES}/{record.fault}" if record.is_known else f"{_UNNAMED}/seed{record.seed}"


class _Hunt:
    def __init__(self, journal: Journal, profile: Profile, progress: Callable[[HuntProgress], object] | None) -> None:
        self._journal, self._profile, self._progress = journal, profile, progress
        self._results: queue.Queue[TriedSeed | BaseException | None] = queue.Queue()
        self._stopped, self._guard = threading.Event(), threading.Lock()
        self._began = time.monotonic()
        self._differing: dict[int, str] = {}
        for record in journal.records.values():
            self._count(record)

    def run(self, seed: int, count: int | None, seconds: float | None) -> HuntReport:
        deadline = None if seconds is None else self._began + seconds
        known = {fault.id for fault in FAULTS}
        differing = (record for record in self._journal.records.values() if record.outcome is SeedOutcome.DIFFERS)
        # The disagreements that the catalogue of today does not have by the name that they have are tried again.
        unnamed = sorted(
            (one for one in differing if not one.is_known or one.fault not in known), key=lambda one: one.seed
        )
        wanted = itertools.chain(unnamed, self._seeds(seed, count))
        seeds = itertools.takewhile(lambda _seed: deadline is None or time.monotonic() < deadline, wanted)
        threads = [threading.Thread(target=self._work, args=(seeds,), daemon=True) for _ in range(cores())]
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

    def _seeds(self, seed: int, count: int | None) -> Iterator[int]:
        last = None if count is None else seed + count
        while last is None or seed < last:
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
        worker = Worker(PROGRAM, memory=_MEMORY)
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


# The smallest known case of each fault of the runtime, which comes with the program: does it show here?
#
# A case is a folder of its own with the model and its inputs, as a reduction has left them.

CASES = Path(__file__).parent / "cases"
ALL = "all"
_SECONDS = 60.0


class CaseOutcome(Record):
    """The case of a fault as it was run: what shows (None: nothing), by which name, expected and given outputs.

    `model` has a line for each layer.
    """

    fault: RuntimeFault
    found: FoundFault | None
    recognised: str
    expected: tuple[Array, ...]
    given: tuple[Array, ...]
    model: tuple[str, ...]

    @property
    def is_shown(self) -> bool:
        """True if the fault is there in the OpenVINO that is installed."""
        return self.recognised == self.fault.id

    @property
    def path(self) -> Path:
        """The file of its model."""
        return CASES / self.fault.id / MODEL


def known_faults(name: str) -> tuple[RuntimeFault, ...]:
    """Return the fault of a name, or all for `all`. UsageError where the catalogue has no such fault."""
    found = tuple(fault for fault in FAULTS if name in (fault.id, ALL))
    if found:
        return found
    near = difflib.get_close_matches(name, [fault.id for fault in FAULTS], 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(fault.id for fault in FAULTS)}"
    raise UsageError(f"--fault {name}: no known fault of the runtime; {hint}")


def run_case(fault: RuntimeFault) -> CaseOutcome:
    """Run the case of a fault here and in OpenVINO, in a process of its own; compare what shows with the catalogue."""
    path, draft = CASES / fault.id / MODEL, read_case(CASES / fault.id)
    trial = TryModel(str(path), SETTINGS, DisagreesWith(), wants_outputs=True)
    worker = trial_worker(_MEMORY, with_openvino=True)
    facts, arrays = TrialFacts(None), list[Array]()
    try:
        facts, arrays = worker.ask_for(TrialFacts, trial, draft.inputs, subject=fault.id, limits=Limits(_SECONDS))
        found = facts.fault
    except ENDED as error:
        found = ended_fault(error.end, DisagreesWith())  # type: ignore[attr-defined]  # each of ENDED has it
        if found is None:
            raise
    finally:
        worker.close()
    known = None if found is None else recognised(found, shown_facts(draft, path, found))
    return CaseOutcome(
        fault,
        found,
        "" if known is None else known.id,
        tuple(arrays[: facts.expected]),
        tuple(arrays[facts.expected :]),
        tuple(model_lines(draft)),
    )
