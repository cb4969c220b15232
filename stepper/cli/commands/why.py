"""Explain a value: `stepper why MODEL ADDRESS` lists the elements it depends on, or uses."""

from __future__ import annotations

import sys
from argparse import Namespace

from stepper.cli.interruptions import Interruptions
from stepper.cli.printing import Progress, print_answer
from stepper.cli.specs import debugger_of, put_reference
from stepper.debug.debugger import Debugger
from stepper.debug.provenance.question import forward_address
from stepper.debug.story.story_texts import provenance_data, uses_data, uses_lines, why_lines
from stepper.errors import StepperError
from stepper.terminal import say


def execute(options: Namespace) -> int:
    """Run the model, and answer. Ctrl+C ends the search early: what was found by then is the answer, and says so."""
    debugger = debugger_of(options)
    put_reference(debugger, options)
    with Progress(debugger.machine, wanted=not options.quiet), Interruptions(debugger, insistent=True) as signals:
        with signals.while_busy():
            _run(debugger)
        with signals.while_busy():
            is_forward = options.uses or forward_address(options.address)
            lines, data = (_uses if is_forward else _why)(debugger, options.address)
    print_answer(options, {"model": options.model} | data, lines)
    return 0


def _run(debugger: Debugger) -> None:
    """Run to the end. A run that fails, or meets a limit, is asked where it stands then."""
    try:
        debugger.last()
    except StepperError as error:
        say(f"stepper: {error}", file=sys.stderr)


def _why(debugger: Debugger, question: str) -> tuple[list[str], dict[str, object]]:
    found = debugger.why(question)
    return why_lines(found), provenance_data(found)


def _uses(debugger: Debugger, address: str) -> tuple[list[str], dict[str, object]]:
    found = debugger.uses(address)
    return uses_lines(found), uses_data(found)
