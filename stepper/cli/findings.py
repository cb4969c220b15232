"""Findings on the command line: which rules are asked, how they are printed, written and counted."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepper import __version__
from stepper.cli.printing import wrapped
from stepper.debug.causes.cause import NonFinite, cause_data
from stepper.diagnosis.findings import GRAVITY, Detail, Finding, Severity
from stepper.diagnosis.logs import junit, sarif
from stepper.diagnosis.rule import Rule, rules
from stepper.diagnosis.selection import Selection, settings
from stepper.diagnosis.texts import consequence, remedy, report_lines, sentence
from stepper.errors import FINDING, OutputError
from stepper.files.kinds import FORMATS, JUNIT, is_ir
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.plain_values import json_text
from stepper.records import as_data
from stepper.terminal import say
from stepper.wording import counted


def asked_rules(options: argparse.Namespace, *, of_runs: bool) -> Mapping[str, Rule]:
    """Return the rules that options and the settings of the project choose, those of runs only where one is made."""
    select, ignore = settings(Path.cwd())
    chosen = Selection.of(options.select or select, (*ignore, *(options.ignore or ())))
    known = rules().items()
    return {name: rule for name, rule in known if name in chosen.names and (of_runs or not rule.scope.is_of_runs)}


def exit_code(found: Sequence[Finding], least: Severity) -> int:
    """Return FINDING where one is as grave as that, else 0."""
    return FINDING if any(GRAVITY[one.severity] <= GRAVITY[least] for one in found) else 0


def write_logs(
    options: argparse.Namespace,
    found: Mapping[str, Sequence[Finding]],
    asked: Mapping[str, Rule],
    least: Severity,
    protected: ProtectedFiles,
) -> None:
    """Write the findings of models, by file, as --sarif and --junit name files; in JUnit they fail from `least` on.

    Raises OutputError.
    """
    if options.sarif is not None:
        every = [one for findings in found.values() for one in findings]
        log = json_text(sarif(every, asked, __version__), 2)
        OutputFile(Path(options.sarif), FORMATS["json"].kind, protected, "--sarif").write(f"{log}\n".encode())
        protected += ProtectedFiles.of_file(options.sarif, "the file of --sarif")
    if options.junit is not None:
        target = OutputFile(Path(options.junit), JUNIT, protected, "--junit")
        if is_ir(target.path):  # of the same suffix, and maybe of another model
            raise OutputError(f"{target}: that is a model; choose another file")
        target.write(junit(found, asked, least))


def report(found: Sequence[Finding], models: int = 1) -> None:
    """Print findings, each with what comes of it, what to do, and what shows it in the debugger; then how many."""
    for one in found:
        for line in report_lines(one):
            is_pasted = line.startswith("    see: ")
            for part in [line] if is_pasted else wrapped(line):
                say(part)
    say(_total(found, models))


def _total(found: Sequence[Finding], models: int) -> str:
    where = "" if models == 1 else f" in {counted(models, 'model')}"
    if not found:
        return f"nothing is wrong{where}"
    counts = [(severity, sum(one.severity is severity for one in found)) for severity in GRAVITY]
    return ", ".join(counted(count, str(severity)) for severity, count in counts if count) + where


def _detail(value: Detail) -> Any:
    return cause_data(value) if isinstance(value, NonFinite) else as_data(value)


def finding_data(one: Finding) -> dict[str, Any]:
    """Return a finding as JSON has it."""
    rule = rules()[one.rule]
    return {
        "rule": rule.name,
        "id": rule.id,
        "severity": str(one.severity),
        "file": one.spot.file,
        "line": one.spot.line,
        "part": one.spot.part,
        "loop": as_data(one.spot.loop),
        "path": as_data(one.spot.path),
        "layer": as_data(one.spot.layer),
        "iterations": list(one.iterations),
        "address": one.address,
        "details": {name: _detail(value) for name, value in one.details.items()},
        "text": sentence(one),
        "means": consequence(one),
        "remedy": remedy(one),
    }
