"""`check`: what is wrong with a model on given inputs: the rules of its file, and those of one run of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Final

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import Overview, RunState
from stepper.diagnosis.check.hits import finding_of
from stepper.diagnosis.check.subject import RunSubject
from stepper.diagnosis.findings import GRAVITY, Finding
from stepper.diagnosis.registry import finders
from stepper.diagnosis.rule import SubjectKind
from stepper.ir.model import Model

SECONDS: Final = 60.0
"""Seconds that the run of a check may take, unless another number is asked for."""
_ENDLESS: Final = 2.0
"""Seconds where nothing can end a loop."""
_MORE_RUNS: Final = 1.7
"""What a check may cost beside its run, as a share of that; and seconds that it may cost in any case."""
_LEAST_SECONDS: Final = 1.0
_FOR_BIRTHS: Final = 0.6
_MEMORY: Final = 2**29


class CheckedRun(Struct, frozen=True):
    """Findings of a run, and its facts."""

    findings: tuple[Finding, ...]
    overview: Overview


def check_run(
    debugger: Debugger, *, seconds: float = SECONDS, progress: Callable[[Overview], object] | None = None
) -> CheckedRun:
    """Run the model, bounded in time and memory, and return what the rules of runs find; the gravest first.

    Where the run fails that is one of the findings. The debugger is moved to the end of what has run.
    """
    endless = min(_ENDLESS, seconds)
    overview = debugger.run_overview(seconds=seconds, endless_seconds=endless, memory=_MEMORY, progress=progress)
    begun, share = perf_counter(), max(_MORE_RUNS * overview.seconds, _LEAST_SECONDS)
    if overview.state in (RunState.FINISHED, RunState.FAILED) and not overview.looked_through:
        overview = debugger.look_through(seconds=min(seconds, share * _FOR_BIRTHS))
    if overview.state is RunState.FINISHED:
        debugger.continue_()  # so that values of the end can be asked about
    return CheckedRun(_found(RunSubject(debugger.model, overview, debugger, deadline=begun + share)), overview)


def findings_of_facts(model: Model, overview: Overview) -> tuple[Finding, ...]:
    """Return what the rules of runs find in the facts of a run alone, without another one; the gravest first."""
    return _found(RunSubject(model, overview))


def _found(subject: RunSubject) -> tuple[Finding, ...]:
    file = str(subject.model.path)
    return ranked(finding_of(rule, file, hit) for rule, finder in finders(SubjectKind.RUN) for hit in finder(subject))


def ranked(findings: Iterable[Finding], *, first: str = "") -> tuple[Finding, ...]:
    """Return findings by gravity, then by when they show; those of the file, which always show, come last.

    `first` is a rule whose findings come before all others of their gravity.
    """

    def key(one: Finding) -> tuple[int, bool, bool, int, int, str]:
        return GRAVITY[one.severity], one.rule != first, not one.tick, one.tick, one.spot.line, one.rule

    return tuple(sorted(findings, key=key))
