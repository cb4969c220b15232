"""Who says what came of an input, as the job asks.

Each is imported where it is asked for: a process that looks for NaN begins in half the time of one that compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from stepper.element_types import Array
from stepper.files.kinds import is_model_path
from stepper.sweep.inputs import Prepared
from stepper.sweep.results import SweepRow


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
