"""`stepper hunt -o DIR`: random loops against OpenVINO, each disagreement made small, named and counted once."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from stepper.cli.printing import print_answer, progress_line, show_progress
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
from stepper.wording import counted


def execute(options: Namespace) -> int:
    """Hunt, or show known faults; FINDING where anything differs, 0 where nothing does, INTERRUPTED after Ctrl+C."""
    if options.fault is None and options.output is None:
        raise UsageError("-o/--output is missing: the folder for the record and the cases; or --fault NAME")
    faults = () if options.fault is None else known_faults(options.fault)
    ensure_installed("stepper hunt")
    if faults:
        return _show_cases(options, [run_case(fault) for fault in faults])
    count = options.count if options.count or options.time else 100
    with progress_line(_show, options) as show:
        report = hunt(
            Path(options.output),
            Profile(options.profile),
            seed=options.seed,
            count=count,
            seconds=options.time,
            progress=show,
        )
    data = {"folder": options.output, "profile": options.profile, **as_data(report)}
    print_answer(options, data, _report_lines(options, report))
    if report.is_interrupted:
        return INTERRUPTED
    return FINDING if report.faults else 0


def _show_cases(options: Namespace, outcomes: list[CaseOutcome]) -> int:
    """Say of each case whether it shows its fault; FINDING where one does."""
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
    lines = (line for one in outcomes for line in _case_lines(one, whole=len(outcomes) == 1))
    print_answer(options, {"cases": cases}, lines)
    return FINDING if any(one.is_shown for one in outcomes) else 0


def _case_lines(outcome: CaseOutcome, *, whole: bool) -> Iterator[str]:
    fault = outcome.fault
    if outcome.found is None:
        yield f"{fault.id}: not there, both compute the same"
    elif outcome.is_shown:
        yield f"{fault.id}: {fault_text(outcome.found)}"
    else:
        yield f"{fault.id}: something else: {fault_text(outcome.found)}"
    if not whole:
        return
    yield f"  {fault.what}"
    yield f"  in {fault.where}; seen in {fault.versions}"
    yield f"  {outcome.path}:"
    for line in outcome.model:
        yield f"    {line}"
    for index, expected in enumerate(outcome.expected):
        given = value_text(outcome.given[index]) if index < len(outcome.given) else "nothing"
        yield f"  output {index}: expected {value_text(expected)}, given {given}"


def _show(progress: HuntProgress) -> None:
    faults = counted(progress.faults, "fault")
    differ = f"{progress.disagreements} differ"
    show_progress(f"{counted(progress.seeds, 'seed')}, {differ} ({faults}), {progress.seconds:.0f} s")


def _report_lines(options: Namespace, report: HuntReport) -> Iterator[str]:
    differing = sum(len(fault.seeds) for fault in report.faults)
    rest = f"{report.not_built} not built, {report.undecided} undecided"
    yield f"{counted(report.seeds, 'seed')}: {report.agree} agree, {differing} differ, {rest}; {report.seconds:.1f} s"
    for fault in report.faults:
        yield from _fault_lines(options, fault)
    if report.is_interrupted:
        yield "interrupted; the same command continues from here"


def _fault_lines(options: Namespace, fault: FaultCount) -> Iterator[str]:
    kind = "ours" if fault.is_ours else "known" if fault.is_known else "new"
    yield f"  {fault.fault} ({kind}): {counted(len(fault.seeds), 'seed')}, first {fault.seeds[0]}"
    yield f"    {fault.message}"
    if fault.where:
        yield f"    in {fault.where}"
    if fault.case:
        script = Path(options.output) / fault.case / "reproduce.py"
        yield f"    {counted(fault.operations, 'operation')}: python {script}"
