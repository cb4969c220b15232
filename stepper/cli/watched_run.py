"""`stepper run MODEL --break SPEC`: a run that ends where a breakpoint stops it, and says where and why."""

from __future__ import annotations

import argparse

from stepper.cli.debug_command import debugger_of
from stepper.cli.printing import say
from stepper.cli.progress import Progress
from stepper.cli.values import print_json
from stepper.debug.break_texts import break_description
from stepper.debug.commands.stops import stop_data, stop_lines
from stepper.debug.debugger import DEFAULT_MEMORY, Debugger
from stepper.debug.moments import Reason
from stepper.engine.frames import place
from stepper.engine.run import LoopLog


def watched(options: argparse.Namespace) -> tuple[Debugger, LoopLog]:
    """A debugger with the breakpoints that the options ask for, and what will tell of its loops."""
    debugger, log = debugger_of(options, DEFAULT_MEMORY), LoopLog()
    for text in options.breaks:
        debugger.breakpoints.add(break_description(text))
    debugger.machine.on_loop_end = log.record
    return debugger, log


def is_stopped(debugger: Debugger, *, wanted_progress: bool) -> bool:
    """Run; whether a breakpoint stopped it before the end."""
    with Progress(debugger.machine, wanted=wanted_progress):
        try:
            return debugger.continue_().reason is Reason.BREAK
        except KeyboardInterrupt:
            where = place(debugger.machine.stack)
            raise KeyboardInterrupt(f"interrupted at {where}; no outputs were written") from None


def report(debugger: Debugger, options: argparse.Namespace) -> None:
    """Where and why it stopped."""
    if options.json:
        print_json({"schema": 1, "model": options.model, "rules": options.rules, "break": stop_data(debugger)})
        return
    for line in stop_lines(debugger):
        say(line)
