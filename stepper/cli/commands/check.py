"""`stepper check MODEL [inputs]`: what is wrong with a model on these inputs: its file, and one watched run."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Final

from stepper.cli.commands.lint import asked_rules, exit_code, finding_data, report, write_logs
from stepper.cli.comparing import compared
from stepper.cli.debuggers import debugger_of
from stepper.cli.options.specs import protected_files
from stepper.cli.printing import Progress
from stepper.cli.values import print_json
from stepper.compare.comparison import RunComparison
from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import Overview, RunState
from stepper.diagnosis.check.checking import DIFFERS, check_run, compared_finding, ranked
from stepper.diagnosis.findings import Finding, Severity
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.precision.checking import check_precision, marked_files, write_marked
from stepper.diagnosis.precision.narrowing import Narrowing
from stepper.engine.rules import Rules
from stepper.errors import ModelError, UsageError
from stepper.files.kinds import is_model_path
from stepper.files.output import OutputFile
from stepper.openvino.partner import NUMPY, OPENVINO
from stepper.openvino.program import is_installed
from stepper.terminal import say

_SHORT: Final = 2.0
"""Seconds that a run may have taken that is compared with OpenVINO without being asked for."""
_LEAST_SECONDS: Final = 5.0
_TIMES_OURS: Final = 10.0
"""How long OpenVINO may take then: times that run, and seconds that it may take in any case."""


def execute(options: Namespace) -> int:
    """Report what is wrong, the gravest first. Return FINDING where something is as grave as --fail-on says."""
    _ensure_narrowing(options)
    asked = asked_rules(options, of_runs=True)
    found = list(lint(options.model)) if options.model.endswith(".xml") and is_model_path(options.model) else []
    looked_for: tuple[str, ...] = ()
    if not any(one.spot.part == "file" for one in found):  # else it cannot be opened
        try:
            of_run, looked_for = _of_the_run(options)
            found += of_run
        except ModelError:
            if not any(one.severity is Severity.ERROR for one in found):
                raise  # else the rules say it better, and all of it
    first = "" if options.reference is None else DIFFERS  # it knows best what is asked for
    chosen = ranked((one for one in found if one.rule in asked), first=first)
    least = Severity(options.fail_on)
    write_logs(options, {options.model: chosen}, asked, least, protected_files(options))
    if options.json:
        findings = [finding_data(one) for one in chosen]
        print_json({"model": options.model, "findings": findings, "checked": looked_for})
    else:
        report(chosen)
        if looked_for:
            say(f"checked: {', '.join(looked_for)}")
    return exit_code(chosen, least)


def _ensure_narrowing(options: Namespace) -> None:
    """Raise UsageError for options of --as without it."""
    for name, given in (("--loss", options.loss), ("--keep-in-f32", options.keep_in_f32)):
        if given is not None and options.narrowing is None:
            raise UsageError(f"{name} is for --as: --as f16 {name} {given}")
    if options.keep_in_f32 is not None and options.narrowing == Narrowing.I8_WEIGHTS:
        raise UsageError("--keep-in-f32 marks operations for f16 and bf16; weights are left out by name, in NNCF")


def _of_the_run(options: Namespace) -> tuple[list[Finding], tuple[str, ...]]:
    """Return what is found in a run, and in words what was looked for."""
    target = options.keep_in_f32
    files = None if target is None else marked_files(target, protected_files(options), "--keep-in-f32")
    debugger = debugger_of(options)
    with Progress(debugger.machine, wanted=not options.quiet):
        checked = check_run(debugger, seconds=options.seconds)
    found = [*checked.findings, *_in_fewer_bits(debugger, options, files)]
    looked_for = [*checked.checked, *([] if options.narrowing is None else [str(options.narrowing)])]
    reference = _reference(options, checked.overview)
    if reference is None:
        return found, tuple(looked_for)

    def compare(rules: Rules | None) -> RunComparison:
        asked = Namespace(**{**vars(options), "reference": reference, "engine": NUMPY})
        asked.rules = rules or options.rules
        most = max(_LEAST_SECONDS, _TIMES_OURS * checked.overview.seconds)
        asked.timeout = options.timeout or (most if options.reference is None else None)
        found = compared(asked, only_outputs=options.reference is None)
        if rules is None:
            looked_for.append(f"difference from {reference}")
        return found

    differs = compared_finding(compare, reference, was_asked=options.reference is not None)
    return [*found, *([] if differs is None else [differs])], tuple(looked_for)


def _in_fewer_bits(
    debugger: Debugger, options: Namespace, files: tuple[OutputFile, OutputFile] | None
) -> tuple[Finding, ...]:
    if options.narrowing is None:
        return ()
    checked = check_precision(debugger, Narrowing(options.narrowing), allowed=options.loss, seconds=options.seconds)
    if files is not None and checked.mends:
        write_marked(debugger.model, checked.keep_in_f32, files)
    elif files is not None:
        why = "no set of operations in f32 makes the model hold, so there is nothing to mark"
        say(f"stepper: {options.keep_in_f32} is not written: {why}", file=sys.stderr)
    return checked.findings


def _reference(options: Namespace, overview: Overview) -> str | None:
    """Return what to compare with: what is asked for, else OpenVINO where it is there and the run was short."""
    if options.reference is not None:
        return None if options.reference == "none" else str(options.reference)
    is_short = overview.state is RunState.FINISHED and overview.seconds < _SHORT
    return OPENVINO if is_short and options.engine == NUMPY and is_installed() else None
