"""`check`: what is wrong with a model on given inputs: the rules of its file, and those of one run of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import thread_time
from typing import Final

import numpy as np
from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import Birth, Overview, RunState
from stepper.diagnosis.check.deadline import Deadline
from stepper.diagnosis.check.hits import finding_of
from stepper.diagnosis.check.probe import probe_run
from stepper.diagnosis.check.subject import RunSubject, beginning
from stepper.diagnosis.findings import GRAVITY, Finding
from stepper.diagnosis.registry import rule_finders
from stepper.diagnosis.rule import SubjectKind
from stepper.diagnosis.texts import consequence, headline, remedy
from stepper.html_tables import html_table
from stepper.ir.model import Model

SECONDS: Final = 60.0
"""Seconds that the run of a check may take, unless another number is asked for."""
_ENDLESS: Final = 2.0
"""Seconds where nothing can end a loop."""
_MORE_RUNS: Final = 1.5
"""What a check may cost beside its run, as a share of that; and seconds that it may cost in any case."""
_LEAST_SECONDS: Final = 0.25
_FOR_BIRTHS: Final = 0.6
_AFTER_A_PROBE: Final = 0.05
"""Of that the share for where NaN and Inf are born; where a probe found none as far as it came, what it takes to look
at those that the values that are carried show later."""
_MEMORY: Final = 2**29


class CheckedRun(Struct, frozen=True):
    """Findings of a run, and its facts."""

    findings: tuple[Finding, ...]
    overview: Overview

    def _repr_html_(self) -> str:
        """Return a table of the findings, for notebooks."""
        rows = [(str(one.severity), headline(one), consequence(one), remedy(one)) for one in self.findings]
        return html_table(rows, "" if rows else "nothing is wrong")


def check_run(
    debugger: Debugger, *, seconds: float = SECONDS, progress: Callable[[Overview], object] | None = None
) -> CheckedRun:
    """Run the model, bounded in time and memory, and return what the rules of runs find; the gravest first.

    Where the run fails that is one of the findings. The debugger is moved to the end of what has run.
    """
    endless = min(_ENDLESS, seconds)
    begun = thread_time()
    overview = debugger.run_overview(
        seconds=seconds, endless_seconds=endless, memory=_MEMORY, progress=progress, births=False
    )
    cost = thread_time() - begun
    share = min(seconds, max(_MORE_RUNS * cost, _LEAST_SECONDS))
    deadline = Deadline(share)
    probe, births = None, list[Birth]()
    if overview.state is RunState.FINISHED:
        probe = probe_run(beginning(debugger), overview.loops, deadline, births=births)
    is_clean = probe is not None and probe.is_whole and not births
    if not is_clean and not overview.looked_through:
        is_cut_off = probe is not None and not probe.is_whole and not births
        most = _AFTER_A_PROBE if is_cut_off else _FOR_BIRTHS
        overview = debugger.look_through(seconds=share * most)
    if overview.state is RunState.FINISHED:
        debugger.continue_()  # so that values of the end can be asked about
    subject = RunSubject(debugger.model, overview, debugger, deadline=deadline, cost=cost, probe=probe)
    return CheckedRun(_found(subject), overview)


def findings_of_facts(model: Model, overview: Overview) -> tuple[Finding, ...]:
    """Return what the rules of runs find in the facts of a run alone, without another one; the gravest first."""
    return _found(RunSubject(model, overview))


def _found(subject: RunSubject) -> tuple[Finding, ...]:
    file = str(subject.model.path)
    with np.errstate(all="ignore"):
        return ranked(
            finding_of(one.rule, file, hit) for one in rule_finders(SubjectKind.RUN) for hit in one.find(subject)
        )


def ranked(findings: Iterable[Finding], *, first: str = "") -> tuple[Finding, ...]:
    """Return findings by gravity, then by when they show; those of the file, which always show, come last.

    `first` is a rule whose findings come before all others of their gravity.
    """

    def key(one: Finding) -> tuple[int, bool, bool, int, int, str]:
        return GRAVITY[one.severity], one.rule != first, not one.tick, one.tick, one.spot.line, one.rule

    return tuple(sorted(findings, key=key))
