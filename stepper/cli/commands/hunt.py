"""`stepper hunt -o DIR`: random loops against OpenVINO, each disagreement made small, named and counted once."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from stepper.cli.printing import print_json, show_progress
from stepper.diagnosis.hunt.hunt_service import Profile
from stepper.diagnosis.hunt.hunting import (
    CaseOutcome,
    FaultCount,
    HuntProgress,
    HuntReport,
    hunt,
    known_faults,
    run_case,
)
from stepper.diagnosis.reduce.reduced_case import fault_text, value_text
from stepper.errors import FINDING, INTERRUPTED, UsageError
from stepper.openvino.runtime import ensure_installed
from stepper.records import as_data
from stepper.terminal import say
from stepper.wording import counted


def execute(options: Namespace) -> int:
    """Hunt, or show known faults; FINDING where anything differs, 0 where nothing does, INTERRUPTED after Ctrl+C."""
    if options.fault is None and options.output is None:
        raise UsageError("-o/--output is missing: the folder for the record and the cases; or --fault NAME")
    faults = () if options.fault is None else known_faults(options.fault)
    ensure_installed("stepper hunt")
    if faults:
        return _show_cases(options, [run_case(fault) for fault in faults])
    is_shown = not options.quiet and sys.stderr.isatty()
    count = options.count if options.count or options.time else 100
    try:
        report = hunt(
            Path(options.output),
            Profile(options.profile),
            seed=options.seed,
            count=count,
            seconds=options.time,
            progress=_show if is_shown else None,
        )
    finally:
        if is_shown:
            show_progress("")
    if options.json:
        print_json({"folder": options.output, "profile": options.profile, **as_data(report)})
    else:
        _report(options, report)
    if report.is_interrupted:
        return INTERRUPTED
    return FINDING if report.faults else 0


def _show_cases(options: Namespace, outcomes: list[CaseOutcome]) -> int:
    """Say of each case whether it shows its fault; FINDING where one does."""
    if options.json:
        cases = [
            {
                "fault": one.fault.id,
                "is_shown": one.is_shown,
                "found": "" if one.found is None else fault_text(one.found),
                "recognised": one.recognised,
                "model": str(one.path),
            }
            for one in outcomes
        ]
        print_json({"cases": cases})
    else:
        for one in outcomes:
            _case(one, whole=len(outcomes) == 1)
    return FINDING if any(one.is_shown for one in outcomes) else 0


def _case(outcome: CaseOutcome, *, whole: bool) -> None:
    fault = outcome.fault
    if outcome.found is None:
        say(f"{fault.id}: not there, both compute the same")
    elif outcome.is_shown:
        say(f"{fault.id}: {fault_text(outcome.found)}")
    else:
        say(f"{fault.id}: something else: {fault_text(outcome.found)}")
    if not whole:
        return
    say(f"  {fault.what}")
    say(f"  in {fault.where}; seen in {fault.versions}")
    say(f"  {outcome.path}:")
    for line in outcome.model:
        say(f"    {line}")
    for index, expected in enumerate(outcome.expected):
        given = value_text(outcome.given[index]) if index < len(outcome.given) else "nothing"
        say(f"  output {index}: expected {value_text(expected)}, given {given}")


def _show(progress: HuntProgress) -> None:
    faults = counted(progress.faults, "fault")
    differ = f"{progress.disagreements} differ"
    show_progress(f"{counted(progress.seeds, 'seed')}, {differ} ({faults}), {progress.seconds:.0f} s")


def _report(options: Namespace, report: HuntReport) -> None:
    differing = sum(len(fault.seeds) for fault in report.faults)
    rest = f"{report.not_built} not built, {report.undecided} undecided"
    say(f"{counted(report.seeds, 'seed')}: {report.agree} agree, {differing} differ, {rest}; {report.seconds:.1f} s")
    for fault in report.faults:
        _line(options, fault)
    if report.is_interrupted:
        say("interrupted; the same command continues from here")


def _line(options: Namespace, fault: FaultCount) -> None:
    kind = "ours" if fault.is_ours else "known" if fault.is_known else "new"
    say(f"  {fault.fault} ({kind}): {counted(len(fault.seeds), 'seed')}, first {fault.seeds[0]}")
    say(f"    {fault.message}")
    if fault.where:
        say(f"    in {fault.where}")
    if fault.case:
        script = Path(options.output) / fault.case / "reproduce.py"
        say(f"    {counted(fault.operations, 'operation')}: python {script}")
