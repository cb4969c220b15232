"""`stepper debug MODEL`: commands from a file, a pipe or the terminal; answers as text, or one JSON object a line."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from stepper.cli import kept_session
from stepper.cli.debuggers import debugger_of, put_reference
from stepper.cli.printing import output_width, say, wrapped
from stepper.debug.commands import Answer, Interpreter, ScriptError, script_lines
from stepper.debug.commands.registry import commands
from stepper.debug.commands.stops import stop_data, stop_lines
from stepper.debug.debugger import DEFAULT_MEMORY, Debugger
from stepper.errors import StepperError, UsageError

PROMPT: Final = "(stepper) "
_MARK: Final = "\ufeff"
"""The byte order mark, with which some editors begin a file."""


def execute(options: argparse.Namespace) -> int:
    """Carry out commands until there are no more; 0, or the code of the error that ended a script."""
    with kept_session.locked(options):
        return _debug(options)


def _debug(options: argparse.Namespace) -> int:
    kept = kept_session.take_up(options)
    debugger = debugger_of(options, options.memory or DEFAULT_MEMORY, kept)
    if sys.stdin is None and options.script in (None, "-"):
        raise UsageError("there is no stdin to read commands from; name a file: --script FILE")
    put_reference(debugger, options)
    interpreter = Interpreter(debugger)
    if options.session is not None:
        interpreter.session.file = options.session
        say(kept_session.restore(options, debugger), file=sys.stderr)
    printer = _JsonPrinter(debugger) if options.json else _TextPrinter()
    debugger.breakpoints.sink = printer.log
    code = 0
    with _Interrupts(debugger) as interrupts:
        try:
            if options.script is not None:
                _run_script(options.script, interpreter, printer, interrupts)
            else:
                code = _converse(interpreter, printer, interrupts)
        except KeyboardInterrupt:
            if not interrupts.forced:
                kept_session.keep(options, debugger)
            raise
    kept_session.keep(options, debugger)
    return code


# --- where commands come from ---------------------------------------------------------------------------------------


def _run_script(name: str, interpreter: Interpreter, printer: _Printer, interrupts: _Interrupts) -> None:
    for number, line in _numbered(name):
        try:
            with interrupts.while_busy():
                answer = interpreter.execute(line)
        except StepperError as error:
            failure = ScriptError(f"{'stdin' if name == '-' else name}, line {number}", error)
            printer.failure(line, failure)
            raise failure from None
        printer.answer(line, answer)
        if interrupts.came:
            raise KeyboardInterrupt(f"interrupted at line {number}: {interpreter.session.debugger.stop.place}")
        if interpreter.session.ended:
            break


def _numbered(name: str) -> Iterator[tuple[int, str]]:
    if name != "-":
        yield from script_lines(name)
        return
    for number, line in enumerate(sys.stdin, 1):
        text = line.removeprefix(_MARK) if number == 1 else line
        if text.strip():
            yield number, text


def _converse(interpreter: Interpreter, printer: _Printer, interrupts: _Interrupts) -> int:
    """Carry out what is typed, or comes from a pipe: of that each error names its line. The code of the first error of
    a pipe; at a terminal 0."""
    code = number = 0
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if is_terminal:
        _prepare_editing()
        printer.answer("", Answer(tuple(stop_lines(interpreter.session.debugger, output_width()))))
    while not interpreter.session.ended:
        interpreter.session.width = output_width()
        try:
            number += 1
            line = input(PROMPT if is_terminal else "").removeprefix(_MARK if number == 1 else "")
        except EOFError:
            break
        except UnicodeDecodeError:
            code = code or UsageError.exit_code
            printer.failure("", UsageError("the line is no text in UTF-8"), None if is_terminal else number)
            continue
        try:
            with interrupts.while_busy():
                answer = interpreter.execute(line)
        except StepperError as error:
            code = code or error.exit_code
            printer.failure(line, error, None if is_terminal else number)
            continue
        printer.answer(line, answer)
    return 0 if is_terminal else code


def _prepare_editing() -> None:
    """Lines can be edited, called back and completed, where the system has what it takes."""
    with contextlib.suppress(ImportError):
        import readline

        names = sorted(command.name for command in commands())

        def completed(text: str, state: int) -> str | None:
            fitting = [name for name in names if name.startswith(text)]
            return fitting[state] if state < len(fitting) else None

        readline.set_completer(completed)
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")


class _Interrupts:
    """Ctrl+C pauses the command that runs; at the prompt, and a second time in one command, it ends the session."""

    def __init__(self, debugger: Debugger) -> None:
        self.came = self.forced = False
        self._debugger = debugger
        self._is_busy = False
        self._previous: Any = None

    def __enter__(self) -> _Interrupts:
        with contextlib.suppress(ValueError):  # only the main thread may do so
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_busy or self.came:
            self.forced = self._is_busy  # in the middle of something, so there is no moment to keep
            raise KeyboardInterrupt
        self.came = True
        self._debugger.pause()

    @contextlib.contextmanager
    def while_busy(self) -> Iterator[None]:
        """A command runs in this block."""
        self.came, self._is_busy = False, True
        try:
            yield
        finally:
            self._is_busy = False
            # One that came too late must not pause the next command.
            self._debugger.machine.request_pause(wanted=False)


# --- where answers go -----------------------------------------------------------------------------------------------


class _Printer:
    """Answers and errors on the streams."""

    def answer(self, line: str, answer: Answer) -> None:
        """What a command said."""
        raise NotImplementedError

    def failure(self, line: str, error: StepperError, number: int | None = None) -> None:
        """That a command failed; `number` is its line where commands come from a pipe."""
        raise NotImplementedError

    def log(self, line: str) -> None:
        """A line of a logpoint."""
        raise NotImplementedError


class _TextPrinter(_Printer):
    def answer(self, line: str, answer: Answer) -> None:
        for text in answer.lines:
            for line in wrapped(text):
                say(line)
        sys.stdout.flush()

    def failure(self, line: str, error: StepperError, number: int | None = None) -> None:
        if not isinstance(error, ScriptError):  # that one ends the program, which says so
            first, *rest = str(error).splitlines() or [""]
            first = first if number is None else f"line {number}: {first}"
            for text in (*wrapped(first, sys.stderr), *rest):  # in the rest a caret may stand under its place
                say(text, file=sys.stderr)
            sys.stderr.flush()

    def log(self, line: str) -> None:
        say(line)


class _JsonPrinter(_Printer):
    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger

    def answer(self, line: str, answer: Answer) -> None:
        content = {"lines": list(answer.lines), **answer.data}
        self._print({"command": line.strip(), "answer": content, "stop": stop_data(self._debugger)})

    def failure(self, line: str, error: StepperError, number: int | None = None) -> None:
        content: dict[str, Any] = {"message": str(error), "exit_code": error.exit_code}
        if number is not None:
            content["line"] = number
        self._print({"command": line.strip(), "error": content, "stop": stop_data(self._debugger)})

    def log(self, line: str) -> None:
        self._print({"log": line})

    def _print(self, report: dict[str, Any]) -> None:
        plain = not (sys.stdout.encoding or "").lower().startswith("utf")
        print(json.dumps({"schema": 1, **report}, ensure_ascii=plain, allow_nan=False), flush=True)
