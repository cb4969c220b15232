"""Rows from stops, findings, verdicts and errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from stepper.compare.report.verdict import ComparisonVerdict
from stepper.compare.report.words import named
from stepper.debug.causes.locations import address_at
from stepper.debug.causes.texts import sentences
from stepper.debug.overview.facts import Overview
from stepper.debug.stop import Stop
from stepper.diagnosis.findings import Finding
from stepper.diagnosis.texts import headline
from stepper.engine.program import CompiledModel
from stepper.engine.run import LoopSummary
from stepper.errors import LimitReached, StepperError
from stepper.sweep.rows import LoopCount, SweepOutcome, SweepRow
from stepper.wording import excerpt

_LONGEST: Final = 400


def clean_row(name: str, loops: Sequence[LoopCount]) -> SweepRow:
    """Return the row of an input with which nothing is wrong."""
    return SweepRow(name, SweepOutcome.NOTHING, loops=tuple(loops))


def stop_row(name: str, stop: Stop, compiled: CompiledModel) -> SweepRow:
    """Return the row of an input with which a breakpoint stopped the run."""
    cause = stop.cause
    assert cause is not None, "a breakpoint stopped it"
    site, path = cause.location.operation, cause.location.path
    address = address_at(cause.location, compiled)
    return SweepRow(
        name,
        SweepOutcome.STOPPED,
        what=str(cause.kind),
        operation=path[-1].layer.name if site is None and path else "" if site is None else site.name,
        type=path[-1].layer.type if site is None and path else "" if site is None else site.type,
        path=tuple(str(one.layer) for one in path),
        iterations=tuple(one.iteration for one in path if one.iteration is not None),
        address="" if address is None else str(address),
        text=_text(sentences(cause)[0]),
    )


def finding_row(name: str, finding: Finding, loops: Sequence[LoopCount]) -> SweepRow:
    """Return the row of an input with which check finds something."""
    site = finding.spot.layer or finding.spot.loop
    return SweepRow(
        name,
        SweepOutcome.FINDING,
        what=finding.rule,
        operation="" if site is None else site.name,
        type="" if site is None else site.type,
        path=tuple(map(str, finding.spot.path)),
        iterations=finding.iterations,
        address=finding.address,
        text=_text(headline(finding)),
        loops=tuple(loops),
    )


def difference_row(name: str, verdict: ComparisonVerdict, loops: Sequence[LoopCount]) -> SweepRow:
    """Return the row of an input with which the reference computes something else."""
    layer = verdict.shows_at or verdict.layer or verdict.loop
    numbers = [step.iteration for step in verdict.path if step.iteration is not None]
    if verdict.iteration is not None:
        numbers = [*numbers[: max(sum(step.layer.is_loop for step in verdict.path) - 1, 0)], verdict.iteration]
    return SweepRow(
        name,
        SweepOutcome.DIFFERS,
        what="values",
        operation="" if layer is None else layer.name,
        type="" if layer is None else layer.type,
        path=tuple(named(step.layer) for step in verdict.path),
        iterations=tuple(numbers),
        text=_text(verdict.reason),
        loops=tuple(loops),
    )


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
    return SweepRow(name, outcome, error.kind, operation, type, path, numbers, text=_text(str(error)))


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


def counts_of_overview(overview: Overview) -> tuple[LoopCount, ...]:
    """Return the same of the facts of a run."""
    found = [
        LoopCount(one.path, one.runs, one.total, tuple(sorted(map(str, one.ended))))
        for one in overview.loops
        if one.runs
    ]
    return tuple(sorted(found, key=lambda one: one.path))


def _text(text: str) -> str:
    return excerpt(" ".join(text.split()), _LONGEST)
