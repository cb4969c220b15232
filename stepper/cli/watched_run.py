"""`stepper run MODEL --break SPEC`: a run, recorded or not, that ends where a breakpoint stops it, and says why."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepper.cli.commands.run import begun, go_on_with, interruptible, origin, reported_all_the_same
from stepper.cli.debuggers import debugger_of
from stepper.cli.options.specs import partner_of
from stepper.cli.printing import Progress
from stepper.cli.values import print_answer
from stepper.commands.stop_answers import stop_data, stop_lines
from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from stepper.engine.frames import place
from stepper.engine.run import LoopLog, Outputs, collect
from stepper.ir.reader import read
from stepper.terminal import say

if TYPE_CHECKING:
    from stepper.recording import Recorder

    Begun = tuple[Debugger, Recorder | None, LoopLog]


def run(options: Namespace) -> Outputs | None:
    """Return the outputs; None where a breakpoint stopped the run before its end, which is then reported."""
    descriptions = [break_description(text) for text in options.breaks]
    begin = _begun if options.resume is None else _resumed
    debugger, recorder, log = begin(options, descriptions)
    debugger.machine.observers = (log,)
    with Progress(debugger.machine, wanted=not options.quiet):
        stopped = _is_stopped(debugger) if recorder is None else _is_recording_stopped(debugger, recorder, options)
    if not stopped:
        return collect(debugger.machine, log)
    _report(debugger, recorder, options)
    return None


def _begun(options: Namespace, breaks: Sequence[BreakDescription]) -> Begun:
    debugger = debugger_of(options)
    for description in breaks:
        debugger.breakpoints.add(description)
    # The file is made last, so that what is refused leaves none.
    return debugger, begun(debugger.machine, debugger.inputs, options), LoopLog()


def _resumed(options: Namespace, breaks: Sequence[BreakDescription]) -> Begun:
    from stepper.recording.recorder import resume_debugged

    path, inputs = origin(options)
    debugger, recorder, log = resume_debugged(
        options.resume,
        breaks,
        path,
        inputs,
        max_iterations=options.max_iterations,
        partner=partner_of(options, read(path)),
    )
    options.model, options.rules = str(debugger.model.path), debugger.machine.rules.value
    return debugger, recorder, log


def _is_stopped(debugger: Debugger) -> bool:
    """Run; whether a breakpoint stopped it before the end."""
    try:
        return debugger.continue_().reason is Reason.BREAK
    except KeyboardInterrupt:
        where = place(debugger.machine.stack)
        raise KeyboardInterrupt(f"interrupted at {where}; no outputs were written") from None


def _is_recording_stopped(debugger: Debugger, recorder: Recorder, options: Namespace) -> bool:
    """Return the same of a run that is recorded; Ctrl+C ends it as it ends any recorded run."""
    from stepper.recording.recorder import continue_recorded, recorded

    told_later = reported_all_the_same(debugger.machine, options)
    is_paused_from_here = debugger.working()  # also before the run begins
    with recorded(debugger, recorder), is_paused_from_here, interruptible(debugger.machine), told_later:
        continue_recorded(debugger, recorder, for_good=True)
    stop = debugger.stop
    if stop.reason is Reason.PAUSED:
        raise KeyboardInterrupt(f"interrupted at {stop.place}; {go_on_with(recorder)}")
    return stop.reason is Reason.BREAK


def _report(debugger: Debugger, recorder: Recorder | None, options: Namespace) -> None:
    """Print where and why it stopped."""
    data = {"model": options.model, "rules": options.rules, "break": stop_data(debugger)}
    print_answer(options, data, stop_lines(debugger))
    if recorder is not None:
        say(f"recorded up to here; {go_on_with(recorder)}", file=sys.stderr)
