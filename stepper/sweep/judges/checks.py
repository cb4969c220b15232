"""The rules of check over inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Overview, RunState
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.rule import Finding, Severity
from stepper.diagnosis.texts import headline
from stepper.element_types import Array
from stepper.sweep import sweep_results
from stepper.sweep.sweep_inputs import Prepared, overdue
from stepper.sweep.sweep_results import LoopCount, SweepOutcome, SweepRow, row_text


class CheckJudge:
    """Asks the rules of `check`; the gravest finding that is at least a warning counts."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the gravest finding."""
        debugger = Debugger.of(self._prepared.machine(inputs, states), inputs)
        checked = check_run(debugger, seconds=self._prepared.job.seconds)
        loops = _counts_of_overview(checked.overview)
        grave = [one for one in checked.findings if one.severity is not Severity.NOTE]
        if grave:
            return _finding_row(name, grave[0], loops)
        if checked.overview.state is not RunState.FINISHED:
            raise overdue(self._prepared.job.seconds)
        return sweep_results.clean_row(name, loops)


def _finding_row(name: str, finding: Finding, loops: Sequence[LoopCount]) -> SweepRow:
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
        text=row_text(headline(finding)),
        loops=tuple(loops),
    )


def _counts_of_overview(overview: Overview) -> tuple[LoopCount, ...]:
    """Return the same of the facts of a run."""
    found = [
        LoopCount(one.path, one.runs, one.total, tuple(sorted(map(str, one.ended))))
        for one in overview.loops
        if one.runs
    ]
    return tuple(sorted(found, key=lambda one: one.path))
