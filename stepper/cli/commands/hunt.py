"""`stepper hunt -o DIR`: random loops against OpenVINO, each disagreement made small, named and counted once."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stepper.cli.printing import say, show_progress
from stepper.cli.values import print_json
from stepper.diagnosis.hunt.hunting import FaultCount, HuntProgress, HuntReport, hunt
from stepper.diagnosis.hunt.profiles import Profile
from stepper.errors import FINDING, INTERRUPTED
from stepper.openvino.runtime import ensure_installed
from stepper.records import as_data
from stepper.wording import counted


def execute(options: argparse.Namespace) -> int:
    """Hunt; FINDING where anything differs, 0 where nothing does, INTERRUPTED after Ctrl+C."""
    ensure_installed("stepper hunt")
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


def _show(progress: HuntProgress) -> None:
    faults = counted(progress.faults, "fault")
    differ = f"{progress.disagreements} differ"
    show_progress(f"{counted(progress.seeds, 'seed')}, {differ} ({faults}), {progress.seconds:.0f} s")


def _report(options: argparse.Namespace, report: HuntReport) -> None:
    differing = sum(len(fault.seeds) for fault in report.faults)
    rest = f"{report.not_built} not built, {report.undecided} undecided"
    say(f"{counted(report.seeds, 'seed')}: {report.agree} agree, {differing} differ, {rest}; {report.seconds:.1f} s")
    for fault in report.faults:
        _line(options, fault)
    if report.is_interrupted:
        say("interrupted; the same command goes on from here")


def _line(options: argparse.Namespace, fault: FaultCount) -> None:
    kind = "ours" if fault.is_ours else "known" if fault.is_known else "new"
    say(f"  {fault.fault} ({kind}): {counted(len(fault.seeds), 'seed')}, first {fault.seeds[0]}")
    say(f"    {fault.message}")
    if fault.where:
        say(f"    in {fault.where}")
    if fault.case:
        script = Path(options.output) / fault.case / "reproduce.py"
        say(f"    {counted(fault.operations, 'operation')}: python {script}")
