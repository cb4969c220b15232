"""Rows of runs that come to their end or fail; those of what is asked for are made by who judges it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from stepper.engine.run import LoopSummary
from stepper.errors import LimitReached, StepperError
from stepper.sweep.rows import LoopCount, SweepOutcome, SweepRow
from stepper.wording import excerpt

_LONGEST: Final = 400


def clean_row(name: str, loops: Sequence[LoopCount]) -> SweepRow:
    """Return the row of an input with which nothing is wrong."""
    return SweepRow(name, SweepOutcome.NOTHING, loops=tuple(loops))


def error_row(name: str, error: StepperError, *, reads: bool = False) -> SweepRow:
    """Return the row of an input that cannot be read (`reads`), or with which the run fails."""
    if reads:
        outcome = SweepOutcome.UNREADABLE
    else:
        outcome = SweepOutcome.LIMIT if isinstance(error, LimitReached) else SweepOutcome.ERROR
    operation = type = ""
    path: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    if error.place is not None:
        path = tuple(f"{one.layer.type} '{one.layer.name}'" for one in error.place.path)
        numbers = tuple(one.iteration for one in error.place.path if one.iteration is not None)
        if error.place.layer is not None:
            operation, type = error.place.layer.name, error.place.layer.type
    return SweepRow(name, outcome, error.kind, operation, type, path, numbers, text=row_text(str(error)))


def limit_row(name: str, what: str, text: str) -> SweepRow:
    """Return the row of an input whose run a limit of ours ended."""
    return SweepRow(name, SweepOutcome.LIMIT, what, text=text)


def killed_row(name: str, text: str) -> SweepRow:
    """Return the row of an input with which the process that ran it ended."""
    return SweepRow(name, SweepOutcome.KILLED, "process", text=text)


def counts_of_run(summaries: Iterable[LoopSummary]) -> tuple[LoopCount, ...]:
    """Return the loops of a run, by their paths."""
    found = [
        LoopCount(one.path, one.executions, one.iterations, tuple(sorted(map(str, one.ended)))) for one in summaries
    ]
    return tuple(sorted(found, key=lambda one: one.path))


def row_text(text: str) -> str:
    """Return a text as a row has it: of one line, and not too long."""
    return excerpt(" ".join(text.split()), _LONGEST)
