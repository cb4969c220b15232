"""`stepper MODEL`: the debugger on the whole terminal."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Final

from stepper.cli.debug_command import debugger_of
from stepper.debug.debugger import DEFAULT_MEMORY
from stepper.errors import UsageError

APPLICATION: Final = "tui.launch"
"""Named as text and imported when it is called for: the engine and its command line work without a screen."""


def execute(options: argparse.Namespace) -> int:
    """Open the application; 0 when the user leaves. UsageError where there is no terminal."""
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        raise UsageError("there is no terminal to draw on; stepper debug takes commands from a file or a pipe")
    debugger = debugger_of(options, options.memory or DEFAULT_MEMORY)
    lines = [f"source {options.script}"] if options.script else []
    lines += [f"run-to {options.at}"] if options.at else []
    code: int = import_module(APPLICATION).open_application(debugger, lines, ascii=options.ascii, light=options.light)
    return code


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty is not None and isatty())
