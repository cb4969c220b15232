"""The work of a sweep: inputs in, rows out. A pure function, for whatever process or machine is to carry it out.

The model is compiled once a process. An input runs on a plain machine first, with a debugger only where that gives
cause; with which rows come out the same as with a debugger for each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from stepper.compare.alignment.layers import align, follow_order
from stepper.compare.files.constants import ConstantValues
from stepper.compare.references.model import ModelReference
from stepper.compare.references.opening import model_title, open_reference
from stepper.compare.references.openvino import OpenVINOReference
from stepper.compare.references.protocol import ReferenceFailed, ReferenceRun
from stepper.compare.run.comparison import RunComparison, compare_models, compare_with, machine_beside
from stepper.compare.run.walk import LockstepWalk
from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.breakpoints.syntax import break_description
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import RunState
from stepper.debug.stop import Reason
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.findings import Severity
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.events import Every
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog
from stepper.engine.variables import bind_states, variables_alone
from stepper.errors import ExecutionError, LimitReached, StepperError
from stepper.files.kinds import is_model_path
from stepper.ir import read
from stepper.ir.model import Model
from stepper.ir.opening import open_sequences
from stepper.openvino.partner import OPENVINO
from stepper.openvino.peer import OpenVINOPeer
from stepper.sweep import row_making
from stepper.sweep.inputs import SweepInput
from stepper.sweep.job import SweepJob
from stepper.sweep.rows import LoopCount, SweepRow
from stepper.sweep.screen import Screen, ScreenedRun
from stepper.tensors.tolerances import Tolerances

OVERDUE: Final = 76
"""The exit code of a process that an operation kept for longer than the limit of time allows."""
_LOOKS_EACH: Final = 0.1
_GRACE: Final = 10.0


class ChunkResult(Struct, frozen=True):
    """Rows of a chunk, in the order of its inputs, and the seconds that they took."""

    rows: tuple[SweepRow, ...]
    seconds: float


class Judge(Protocol):
    """Runs the model on an input and says what came of it."""

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the row. Raises the errors of a run."""


def sweep_chunk(job: SweepJob, chunk: Sequence[SweepInput]) -> ChunkResult:
    """Return a row for each input, in their order. ModelError where the model cannot be opened or compiled."""
    begun = time.perf_counter()
    prepared = _prepared(job.key, _Unkeyed(job))
    rows = tuple(_row(prepared, one) for one in chunk)
    return ChunkResult(rows, time.perf_counter() - begun)


class Prepared:
    """A job, the compiled model, and who judges its runs."""

    def __init__(self, job: SweepJob) -> None:
        model = read(job.model)
        self.job = job
        self.model: Model = open_sequences(model) if job.open_sequences else model
        self.compiled = compile_model(self.model, job.rules, job.engine.partner)
        self.judge: Judge
        if job.checks:
            self.judge = CheckJudge(self)
        elif job.reference:
            self.judge = ModelJudge(self) if is_model_path(job.reference) else ReferenceJudge(self)
        else:
            self.judge = BreakJudge(self)

    def machine(self, inputs: Sequence[Array], states: dict[str, Any], *, keeps: bool = True) -> Machine:
        """Return a machine at its beginning, bounded by the limits of the job."""
        limit = self.job.max_iterations
        return Machine(self.compiled, inputs, max_iterations=limit, states=states, keep_values=keeps)

    def run(self, machine: Machine) -> None:
        """Run a machine to its end, or to a pause that its observers ask for. LimitReached where time is up."""
        with _limited(machine, self.job.seconds) as limited:
            for _event in machine.run(Every.END):
                break
        if limited.is_overdue:
            raise _overdue(self.job)


class _Unkeyed:
    """A job that is no part of the key of a cache."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unkeyed)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2)
def _prepared(_key: str, held: _Unkeyed) -> Prepared:
    return Prepared(held.job)


def _row(prepared: Prepared, one: SweepInput) -> SweepRow:
    name = one.name
    try:
        inputs, given = prepared.job.reader.read(one, prepared.model)
        states = bind_states(prepared.compiled, given)
    except StepperError as error:
        return row_making.error_row(name, error, reads=True)
    except MemoryError as error:
        return row_making.limit_row(name, "memory", f"out of memory while it was read: {error}")
    try:
        return prepared.judge.row(name, inputs, states)
    except StepperError as error:
        return row_making.error_row(name, error)
    except MemoryError as error:
        return row_making.limit_row(name, "memory", f"out of memory: {error}")


# --- judges ---------------------------------------------------------------------------------------------------------


class BreakJudge:
    """Looks for what breakpoints wait for."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._breaks = [break_description(text) for text in prepared.job.breaks]
        words = [word for one in self._breaks if (word := _non_finite(one)) is not None]
        screen = Screen(prepared.compiled, words) if words and len(words) == len(self._breaks) else None
        self._screen = screen if screen is not None and screen.is_possible else None

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return where the first breakpoint stops the run."""
        prepared, log = self._prepared, LoopLog()
        if self._screen is not None:
            machine = prepared.machine(inputs, states, keeps=self._screen.keeps_main)
            screened = ScreenedRun(self._screen, machine)
            machine.observers = (log, screened)
            try:
                prepared.run(machine)
            except StepperError:
                screened.is_suspect = True  # a breakpoint may stop the run before it fails
            if not (screened.is_suspect or screened.ended()):
                return row_making.clean_row(name, row_making.counts_of_run(log.summaries))
        machine, log = prepared.machine(inputs, states), LoopLog()
        debugger = Debugger.of(machine, inputs)
        for description in self._breaks:
            debugger.breakpoints.add(description)
        machine.observers = (log,)
        with _limited(machine, prepared.job.seconds):
            stop = debugger.continue_()
        if stop.reason is Reason.BREAK:
            return row_making.stop_row(name, stop, prepared.compiled)
        if stop.reason is Reason.PAUSED:
            raise _overdue(prepared.job)
        return row_making.clean_row(name, row_making.counts_of_run(log.summaries))


def _non_finite(description: BreakDescription) -> NonFiniteKind | None:
    """Return what a breakpoint waits for if that is the first NaN or Inf, and nothing else."""
    return next((kind for kind in NonFiniteKind if description == break_description(str(kind))), None)


class CheckJudge:
    """Asks the rules of `check`; the gravest finding that is at least a warning counts."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the gravest finding."""
        debugger = Debugger.of(self._prepared.machine(inputs, states), inputs)
        checked = check_run(debugger, seconds=self._prepared.job.seconds)
        loops = row_making.counts_of_overview(checked.overview)
        grave = [one for one in checked.findings if one.severity is not Severity.NOTE]
        if grave:
            return row_making.finding_row(name, grave[0], loops)
        if checked.overview.state is not RunState.FINISHED:
            raise _overdue(self._prepared.job)
        return row_making.clean_row(name, loops)


class ModelJudge:
    """Compares with another model: the outputs first, and where these differ the runs in lock step."""

    def __init__(self, prepared: Prepared) -> None:
        job, rules, partner = prepared.job, Rules(prepared.job.rules), prepared.job.engine.partner
        self._prepared = prepared
        theirs = read(job.reference)
        self._theirs = open_sequences(theirs) if job.open_sequences else theirs
        compiled = compile_model(self._theirs, rules, partner)
        constants = ConstantValues(prepared.model, prepared.compiled), ConstantValues(self._theirs, compiled)
        self._alignment = align(prepared.model, self._theirs, {}, constants)
        self._ordered = compile_model(follow_order(self._theirs, self._alignment), rules, partner)
        self._title = model_title(Path(job.source or job.model), Path(job.reference))
        self._tolerances = job.tolerances or Tolerances()

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the first place where the two part."""
        prepared, limit = self._prepared, self._prepared.job.max_iterations
        other = machine_beside(self._ordered, self._alignment, inputs, limit, states)
        reference = ModelReference(other, self._alignment, self._title)
        with suppress(ExecutionError):  # that only the reference fails is a difference
            prepared.run(other)
        loops, agrees = _outputs_beside(prepared, inputs, states, reference, self._tolerances)
        if agrees:
            return row_making.clean_row(name, loops)
        found = compare_models(
            prepared.model,
            self._theirs,
            inputs,
            title=self._title,
            rules=prepared.job.rules,
            tolerances=self._tolerances,
            max_iterations=limit,
            states=states,
            partner=prepared.job.engine.partner,
        )
        return _compared_row(name, found, loops)


class ReferenceJudge:
    """Compares with what is no model of ours: OpenVINO, ONNX, values, a recording."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._peer: OpenVINOPeer | None = None

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the first place where the two part."""
        prepared, reference = self._prepared, self._reference(inputs, states)
        tolerances = prepared.job.tolerances or Tolerances(exact=reference.is_exact)
        loops, agrees = _outputs_beside(prepared, inputs, states, reference, tolerances)
        if agrees:
            return row_making.clean_row(name, loops)
        found = compare_with(prepared.machine(inputs, states), reference, tolerances)
        return _compared_row(name, found, loops)

    def _reference(self, inputs: Sequence[Array], states: dict[str, Any]) -> ReferenceRun:
        job, compiled = self._prepared.job, self._prepared.compiled
        runtime = job.engine.runtime
        if job.reference != OPENVINO:
            source, limit = job.source or job.model, job.max_iterations
            return open_reference(job.reference, compiled, inputs, runtime, source, limit, states=states)
        if states:
            peer = OpenVINOPeer(compiled.model, runtime, variables_alone(compiled.model, states))
        else:
            peer = self._peer = self._peer or OpenVINOPeer(compiled.model, runtime)  # which keeps what it compiles
        return OpenVINOReference(peer, inputs, str(runtime), seconds=job.seconds)


def _outputs_beside(
    prepared: Prepared,
    inputs: Sequence[Array],
    states: dict[str, Any],
    reference: ReferenceRun,
    tolerances: Tolerances,
) -> tuple[tuple[LoopCount, ...], bool]:
    """Run our side; return its loops, and if all outputs agree with those of the reference."""
    machine, log = prepared.machine(inputs, states), LoopLog()
    machine.observers = (log,)
    walk = LockstepWalk(machine, reference, tolerances)
    prepared.run(machine)
    loops = row_making.counts_of_run(log.summaries)
    try:
        theirs = reference.outputs()
    except ReferenceFailed:
        return loops, False
    outputs = walk.outputs_beside(theirs)
    differs = any(not one.theirs_known or (one.measure is not None and one.measure.differs) for one in outputs)
    return loops, not differs


def _compared_row(name: str, found: RunComparison, loops: tuple[LoopCount, ...]) -> SweepRow:
    if found.verdict is None:
        return row_making.clean_row(name, loops)
    return row_making.difference_row(name, found.verdict, loops)


# --- limits of time -------------------------------------------------------------------------------------------------


class _Watched(Struct):
    """A machine that runs, until when it may, and if it was stopped for that."""

    machine: Machine
    deadline: float
    is_overdue: bool = False


_watched: dict[int, _Watched] = {}
"""The machines that run now, by thread."""
_watching = threading.Lock()
_may_exit = False
_thread: list[threading.Thread] = []


@contextmanager
def _limited(machine: Machine, seconds: float) -> Iterator[_Watched]:
    """Pause a machine that is still at work after so many seconds; one thread looks after all of a process."""
    watched = _Watched(machine, time.monotonic() + seconds)
    key = threading.get_ident()
    if not _thread:
        _begin_watching()
    _watched[key] = watched
    try:
        yield watched
    finally:
        del _watched[key]


def _begin_watching() -> None:
    with _watching:
        if not _thread:
            thread = threading.Thread(target=_watch, name="limits of a sweep", daemon=True)
            _thread.append(thread)
            thread.start()


def _watch() -> None:
    while True:
        time.sleep(_LOOKS_EACH)
        now = time.monotonic()
        for watched in list(_watched.values()):
            if now > watched.deadline:
                watched.is_overdue = True
                watched.machine.request_pause()
            if _may_exit and now > watched.deadline + _GRACE:
                os._exit(OVERDUE)  # an operation does not come to its end: the one who started this notes that


def _overdue(job: SweepJob) -> LimitReached:
    return LimitReached(f"the run did not end within {job.seconds:g} s, the limit for each input")


# --- a process of its own -------------------------------------------------------------------------------------------


def begin_process() -> None:
    """Prepare a process that does nothing but sweep: it ends with its parent, which alone hears of Ctrl+C."""
    global _may_exit
    _may_exit = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="end of the parent", daemon=True).start()


def ready() -> None:
    """Do nothing: a process that returns from this could begin."""


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
