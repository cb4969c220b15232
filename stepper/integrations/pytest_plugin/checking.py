"""The fixture `stepper_check`: the rules of files and, on inputs, those of runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stepper.debug.debugger import Debugger
from stepper.diagnosis.check.checking import check_run, ranked
from stepper.diagnosis.findings import GRAVITY, Finding, Severity
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.selection import Selection, settings
from stepper.diagnosis.texts import report_lines
from stepper.errors import UsageError
from stepper.integrations.pytest_plugin.failing import CheckFailed, FixtureOfRuns, GivenInputs, KeptRun, failing
from stepper.ir.reader import ModelSource


class ModelCheck(FixtureOfRuns):
    """Asks the rules, and fails where a finding is as grave as `fail_on`."""

    @failing
    def __call__(
        self,
        model: ModelSource,
        inputs: GivenInputs | None = None,
        *,
        fail_on: str = "error",
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
    ) -> tuple[Finding, ...]:
        """Return all findings, the gravest first; those of a run where there are inputs.

        `fail_on` is error, warning or note; `select` and `ignore` are names of rules, or the beginning of their ids,
        beside what the settings of the project say.
        """
        least, asked = _severity(fail_on), _asked(select, ignore)
        found, run = _file_findings(model), None
        if inputs is not None and not any(one.spot.part == "file" for one in found):
            run = KeptRun(model, inputs)
            found += check_run(Debugger(run.model, run.by_position)).findings
        chosen = ranked(one for one in found if one.rule in asked.names)
        grave = [one for one in chosen if GRAVITY[one.severity] <= GRAVITY[least]]
        if grave:
            lines = [line for one in grave for line in report_lines(one)]
            raise CheckFailed(lines) if run is None else self.failed(run, lines)
        return chosen


def _file_findings(model: ModelSource) -> list[Finding]:
    is_ir = isinstance(model, (str, Path)) and str(model).endswith(".xml")
    return list(lint(str(model))) if is_ir else []


def _asked(select: Iterable[str], ignore: Iterable[str]) -> Selection:
    selected, ignored = settings(Path.cwd())
    return Selection.of(tuple(select) or selected, (*ignored, *ignore))


def _severity(word: str) -> Severity:
    try:
        return Severity(word)
    except ValueError:
        raise UsageError(f"fail_on='{word}': expected error, warning or note") from None
