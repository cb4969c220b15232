"""`stepper check MODEL [inputs]`: what is wrong with a model on these inputs: its file, and one watched run."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from stepper.cli.commands.lint import asked_rules, exit_code, finding_data, report, write_logs
from stepper.cli.comparing import compared, usual_references
from stepper.cli.printing import Progress, print_json
from stepper.cli.specs import compared_again, debugger_of, ir_of, protected_files
from stepper.compare.comparison import RunComparison
from stepper.compare.references.onnx import EVALUATORS
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Overview, RunState
from stepper.diagnosis.check.checking import (
    DIFFERS,
    check_run,
    compared_finding,
    conversion_findings,
    ranked,
    unchanged_findings,
)
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.narrowing import Narrowing, check_precision, marked_files, write_marked
from stepper.diagnosis.rule import Finding, Severity
from stepper.engine.rules import Rules
from stepper.errors import ModelError, UsageError
from stepper.files.file_kinds import is_ir
from stepper.files.output import OutputFile
from stepper.openvino.partner import NUMPY, OPENVINO
from stepper.openvino.program import is_installed
from stepper.terminal import say

_SHORT = 2.0
"""Seconds that a run may have taken that is compared with OpenVINO without being asked for."""
_LEAST_SECONDS = 5.0
_TIMES_OURS = 10.0
"""How long OpenVINO may take then: times that run, and seconds that it may take in any case."""


def execute(options: Namespace) -> int:
    """Report what is wrong, most severe first.

    Return FINDING if a finding reaches the level of --fail-on.
    """
    _ensure_narrowing(options)
    asked = asked_rules(options, of_runs=True)
    found = list(lint(ir_of(options.model, options)))
    found += conversion_findings(Path(options.model))
    if (case := getattr(options, "case", None)) is not None and case.facts is not None:
        found += unchanged_findings(options.model, case.facts.unchanged)
    looked_for: tuple[str, ...] = ()
    if not any(one.spot.part == "file" for one in found):  # else it cannot be opened
        try:
            of_run, looked_for = _of_the_run(options)
            found += of_run
        except ModelError:
            if not any(one.severity is Severity.ERROR for one in found):
                raise  # else the rules say it better, and all of it
    chosen = ranked((one for one in _with_causes(found, options.model) if one.rule in asked), last=DIFFERS)
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


_CAUSES = ("carried-rank",)
"""Notes on a file that say why a run fails in the loop that they are about."""


def _with_causes(found: Sequence[Finding], model: str) -> Iterator[Finding]:
    """Yield findings, the note that explains why a run fails as an error before it.

    Of a converted model other notes on its file are left out: the user did not write that file.
    """
    failing = [one.spot.loop.id for one in found if one.rule == "run-fails" and one.spot.loop is not None]
    for one in found:
        if one.rule in _CAUSES and one.spot.loop is not None and one.spot.loop.id in failing:
            yield replace(one, severity=Severity.ERROR, tick=1)
        elif one.spot.part == "run" or one.severity is not Severity.NOTE or is_ir(Path(model)):
            yield one


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
    was_evaluated = False
    for reference in _references(options, checked.overview):
        if was_evaluated and reference in EVALUATORS:
            continue  # one is enough
        compared = _outcome(reference, options, checked.overview)
        if compared.was_run:
            looked_for.append(f"difference from {reference}")
        if compared.finding is not None:
            found.append(compared.finding)
            break
        was_evaluated |= compared.was_run
    return found, tuple(looked_for)


class ReferenceOutcome(NamedTuple):
    """The finding that a reference led to, and whether it has run."""

    was_run: bool
    finding: Finding | None


def _outcome(reference: str, options: Namespace, overview: Overview) -> ReferenceOutcome:
    was_run, was_asked = False, options.reference is not None
    asked = Namespace(**{**vars(options), "reference": reference, "engine": NUMPY})

    def compare(rules: Rules | None) -> RunComparison:
        nonlocal was_run
        asked.rules = rules or options.rules
        most = max(_LEAST_SECONDS, _TIMES_OURS * overview.seconds)
        asked.timeout = options.timeout or (None if was_asked else most)
        found = compared(asked, only_outputs=not was_asked)
        was_run = True
        return found

    found = compared_finding(compare, reference, was_asked=was_asked)
    if found is not None and not was_asked and found.rule != DIFFERS and reference in EVALUATORS:
        return ReferenceOutcome(was_run=False, finding=None)  # another one is asked
    if found is not None:
        again = compared_again(Namespace(**{**vars(options), "reference": reference}))
        found = replace(found, details=found.details | {"command": again})
    return ReferenceOutcome(was_run, found)


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


def _references(options: Namespace, overview: Overview) -> tuple[str, ...]:
    """Return what to compare with, in turn: what is asked for, else what is usual where the run was short."""
    if options.reference is not None:
        is_endless = overview.state is RunState.OUT_OF_TIME
        return () if options.reference == "none" or is_endless else (str(options.reference),)
    is_short = overview.state is RunState.FINISHED and overview.seconds < _SHORT
    if not is_short or options.engine != NUMPY:
        return ()
    return tuple(name for name in usual_references(options) if name != OPENVINO or is_installed())
