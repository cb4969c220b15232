"""The command line: `stepper SUBCOMMAND MODEL [options]`. Thin: parses, calls, prints.

Data goes to stdout, messages to stderr; the exit codes are those of stepper.errors.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TextIO

from stepper.cli.parser import parsed
from stepper.cli.presses import PRESSES, Ended, ended_in_order, interrupt_again, pressed_once
from stepper.collector import collector_off, leave_to_the_end
from stepper.errors import INTERRUPTED, LimitReached, StepperError, UsageError, memory_reason

_HEAR_OF_SIGNALS = ("tui", "dap")
"""Commands that handle Ctrl+C themselves."""
_BLAS_WAITS = ("OPENBLAS_THREAD_TIMEOUT", "20")
"""How long an idle thread of numpy's BLAS looks for work before it sleeps: 2^20 cycles, about 0.4 ms. Its own 2^26 cost
a short run as much processor time again as the run itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    with contextlib.ExitStack() as interrupts:
        code = _exit_code(arguments, interrupts)
        try:
            sys.stderr.flush()
        except OSError:  # the terminal is gone, and Python would end with a code of its own
            _abandon(sys.stderr)
    if arguments is None:
        leave_to_the_end()
    return code


def _exit_code(arguments: Sequence[str] | None, interrupts: contextlib.ExitStack) -> int:
    if "_ARGCOMPLETE" in os.environ and arguments is None:  # a shell asks how the line may go on
        import_module("stepper.cli.shell_completion").answer()
    _prepare_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _executed(words, interrupts, is_program=arguments is None)
        sys.stdout.flush()
    except StepperError as error:
        return _failed(words, _with_line(error), error.exit_code, error)
    except (KeyboardInterrupt, Ended, MemoryError, ImportError) as error:
        return _failed(words, *_end_of(error))
    except BrokenPipeError:
        _abandon(sys.stdout)  # the reader of our output went away
        return 0
    except OSError as error:
        _abandon(sys.stdout)
        _say(f"the output cannot be written: {error.strerror or error}")
        return UsageError.exit_code
    return code


def _executed(words: Sequence[str], interrupts: contextlib.ExitStack, *, is_program: bool) -> int:
    options = parsed(words)
    if is_program and os.name == "nt":
        _say("Windows is not tested and has no locks: let one program at a time write a session or a recording")
    if is_program and options.command != "capture":  # the application there has an environment of its own
        os.environ.setdefault(*_BLAS_WAITS)
    # Imported when it is called for: `stepper --help` need not wait for numpy. In a context of its own, because
    # limits are set there.
    with collector_off():
        execute = import_module(f"stepper.cli.commands.{options.command}").execute
    if options.command in _HEAR_OF_SIGNALS:
        interrupt_again()
    else:
        interrupts.enter_context(pressed_once(until_the_end=is_program))
        interrupts.enter_context(ended_in_order())
    context = contextvars.copy_context()
    if (largest := getattr(options, "largest_tensor", None)) is not None:
        context.run(import_module("stepper.ops.operands").LARGEST_TENSOR.set, largest)
    code: int = context.run(execute, options)
    return code


def _end_of(error: BaseException) -> tuple[str, int, str]:
    """Return the message, the exit code and the word for an end that is no StepperError."""
    match error:
        case Ended():
            return f"ended by {error}", error.code, "interrupted"
        case MemoryError():
            return memory_reason(error), LimitReached.exit_code, "memory"
        case ImportError() if not PRESSES.came:
            raise error
        case ImportError():  # numpy takes Ctrl+C for a fault of its own
            return "interrupted", INTERRUPTED, "interrupted"
        case _:
            return str(error) or "interrupted", INTERRUPTED, "interrupted"


def _failed(words: Sequence[str], message: str, code: int, error: StepperError | str) -> int:
    """Say what went wrong on stderr, and as an object on stdout where the answer was to be JSON; the exit code.

    `error` is the word for what is not a StepperError. The commands of a script have answered with theirs already.
    """
    _say(message)
    if _answers_in_json(words):
        from stepper.cli.printing import error_data, failure_data, print_json

        if not isinstance(error, StepperError):
            print_json({"error": failure_data(error, message, code)}, in_a_line="debug" in words[:1])
        elif not error.answered:
            print_json({"error": error_data(error)}, in_a_line="debug" in words[:1])
    return code


def _with_line(error: StepperError) -> str:
    """Return the message with file and line of the layer that it names."""
    place = f"{error.place.file}:{error.place.line}" if error.place is not None and error.place.line else ""
    return f"{error} ({place})" if place not in str(error) else str(error)


def _say(message: str) -> None:
    from stepper.terminal import say  # most runs have nothing to say

    for line in f"stepper: {message}".split("\n"):
        say(line, sys.stderr, {"stepper:": "error"} if line.startswith("stepper:") else {})


def _answers_in_json(words: Sequence[str]) -> bool:
    """True if JSON was to go to stdout; `--as json` writes it there unless a file is named."""
    if "--json" in words:
        return True
    pairs = list(pairwise(words))
    is_json = ("--as", "json") in pairs or "--as=json" in words
    return is_json and (("-o", "-") in pairs or not any(word.startswith("-o") for word in words))


def _prepare_streams() -> None:
    """Have both streams, also where the caller closed them, and let no character that they lack end the program."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open until the program ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _abandon(stream: TextIO) -> None:
    """Send what is left in the buffer of a stream nowhere, so that it is not flushed at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
