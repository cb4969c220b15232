"""The command line: `stepper SUBCOMMAND MODEL [options]`. Thin: parses, calls, prints.

Data goes to stdout, messages to stderr; the exit codes are those of stepper.errors.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from stepper.cli.parser import COMMANDS, parser
from stepper.errors import StepperError, UsageError

INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0].endswith(".xml"):
        print(f"stepper: which command? For example: stepper run {words[0]}", file=sys.stderr)
        return UsageError.exit_code
    options = parser().parse_args(words)
    try:
        # Imported when it is called for: `stepper --help` need not wait for numpy.
        code: int = import_module(f"stepper.cli.{COMMANDS[options.command]}").execute(options)
        sys.stdout.flush()
    except StepperError as error:
        print(f"stepper: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stepper: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; what is left in the buffer must not be flushed at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
