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
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.inputs.variables import bind_states
from stepper.errors import LimitReached, StepperError, memory_reason
from stepper.files.kinds import is_model_path
from stepper.sweep import limits, row_making
from stepper.sweep.inputs import SweepInput
from stepper.sweep.job import SweepJob
from stepper.sweep.prepared import Prepared
from stepper.sweep.rows import SweepRow


class Judge(Protocol):
    """Runs the model on an input and says what came of it."""

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the row. Raises the errors of a run."""


def judge_of(prepared: Prepared) -> Judge:
    """Return the judge of a job. ModelError where it compares with a model that cannot be opened or compiled."""
    job = prepared.job
    if job.checks:
        from stepper.sweep.judges.checks import CheckJudge

        return CheckJudge(prepared)
    if job.reference:
        from stepper.sweep.judges.comparisons import ModelJudge, ReferenceJudge

        return ModelJudge(prepared) if is_model_path(job.reference) else ReferenceJudge(prepared)
    from stepper.sweep.judges.breaks import BreakJudge

    return BreakJudge(prepared)


class ChunkResult(Struct, frozen=True):
    """Rows of a chunk, in the order of its inputs, and the seconds that they took."""

    rows: tuple[SweepRow, ...]
    seconds: float


def sweep_chunk(job: SweepJob, chunk: Sequence[SweepInput]) -> ChunkResult:
    """Return a row for each input, in their order. ModelError where the model cannot be opened or compiled."""
    begun = time.perf_counter()
    prepared, judge = _prepared(job.key, _Unkeyed(job))
    rows = tuple(_row(prepared, judge, one) for one in chunk)
    return ChunkResult(rows, time.perf_counter() - begun)


class _Unkeyed:
    """A job that is no part of the key of a cache."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unkeyed)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2)
def _prepared(_key: str, held: _Unkeyed) -> tuple[Prepared, Judge]:
    prepared = Prepared(held.job)
    return prepared, judge_of(prepared)


def _row(prepared: Prepared, judge: Judge, one: SweepInput) -> SweepRow:
    name = one.name
    try:
        inputs, given = prepared.job.reader.read(one, prepared.model, prepared.job.seconds)
        states = bind_states(prepared.compiled, given)
    except StepperError as error:
        return row_making.error_row(name, error, reads=not isinstance(error, LimitReached))
    except MemoryError as error:
        return row_making.limit_row(name, "memory", f"while it was read: {memory_reason(error)}")
    try:
        return judge.row(name, inputs, states)
    except StepperError as error:
        return row_making.error_row(name, error)
    except MemoryError as error:
        return row_making.limit_row(name, "memory", memory_reason(error))


# --- a process of its own -------------------------------------------------------------------------------------------


def begin_process() -> None:
    """Prepare a process that does nothing but sweep: it ends with its parent, which alone hears of Ctrl+C."""
    limits.let_end()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="end of the parent", daemon=True).start()


def ready() -> None:
    """Do nothing: a process that returns from this could begin."""


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
