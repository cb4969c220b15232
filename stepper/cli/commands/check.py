"""`stepper check MODEL [inputs]`: what is wrong with a model on these inputs: its file, and one watched run."""

from __future__ import annotations

import argparse

from stepper.cli.debuggers import debugger_of
from stepper.cli.findings import asked_rules, exit_code, finding_data, report, write_sarif
from stepper.cli.options.protected import protected_files
from stepper.cli.printing import Progress
from stepper.cli.values import print_json
from stepper.diagnosis.check.checking import check_run, ranked
from stepper.diagnosis.findings import Finding, Severity
from stepper.diagnosis.lint.linting import lint
from stepper.files.kinds import is_model_path


def execute(options: argparse.Namespace) -> int:
    """Report what is wrong, the gravest first. Return FINDING where something is as grave as --fail-on says."""
    asked = asked_rules(options, of_runs=True)
    found = list(lint(options.model)) if options.model.endswith(".xml") and is_model_path(options.model) else []
    if not any(one.spot.part == "file" for one in found):  # else it cannot be opened
        found += _of_the_run(options)
    chosen = ranked(one for one in found if one.rule in asked)
    write_sarif(options.sarif, chosen, asked, protected_files(options))
    if options.json:
        print_json({"model": options.model, "findings": [finding_data(one) for one in chosen]})
    else:
        report(chosen)
    return exit_code(chosen, Severity(options.fail_on))


def _of_the_run(options: argparse.Namespace) -> tuple[Finding, ...]:
    debugger = debugger_of(options)
    with Progress(debugger.machine, wanted=not options.quiet):
        return check_run(debugger, seconds=options.seconds).findings
