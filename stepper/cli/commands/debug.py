"""`stepper debug MODEL`: commands from a file, a pipe or the terminal; answers as text, or one JSON object a line."""

from __future__ import annotations

import contextlib
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator
from types import FrameType
from typing import Any

from stepper.cli import session_file
from stepper.cli.interruptions import Interruptions
from stepper.cli.presses import Ended
from stepper.cli.printing import error_data, output_width, print_json, state_arrays, states_target, wrapped, write_npz
from stepper.cli.session_file import CommandLineSession
from stepper.cli.specs import debugger_of, protected_files, put_reference
from stepper.commands import Answer, Interpreter, ScriptError, script_lines
from stepper.commands.breakpoint_commands import ensure_complete
from stepper.commands.command_session import Session, stop_data, stop_lines
from stepper.commands.session_commands import start_up
from stepper.debug.breakpoints.breakpoints import LogMessage
from stepper.debug.debugger import Debugger
from stepper.engine.inputs import states_of
from stepper.errors import StepperError, UsageError
from stepper.files.output import OutputFile
from stepper.ir.lowering import unopened
from stepper.session.autosave import EVERY
from stepper.terminal import say

PROMPT = "(stepper) "
MORE = "        > "
"""The prompt while the commands of a breakpoint are typed."""
_MARK = "\ufeff"
"""The byte order mark, with which some editors begin a file."""


def execute(options: Namespace) -> int:
    """Carry out commands until there are no more; 0, or the code of the error that ended a script."""
    with session_file.locked(options):
        return _debug(options)


def _debug(options: Namespace) -> int:
    kept = session_file.adopt(options)
    debugger = debugger_of(options, kept=kept)
    if sys.stdin is None and options.script in (None, "-"):
        raise UsageError("there is no stdin to read commands from; name a file: --script FILE")
    states = states_target(options, protected_files(options))
    put_reference(debugger, options)
    interpreter = Interpreter(debugger)
    is_terminal = options.script is None and sys.stdin.isatty() and sys.stdout.isatty()
    session = CommandLineSession(options, debugger, by_model=is_terminal)
    printer = _JsonPrinter(debugger) if options.json else _TextPrinter()
    debugger.breakpoints.sink = printer.log
    has_session = session_file.exists(options)
    if options.session is not None:
        interpreter.session.file = options.session
        say(session.restore(), file=sys.stderr)
    begins = not (options.no_init or has_session)  # a session has what the start-up file sets up
    if begins and not is_terminal:
        _run_init(interpreter)
    code = 0
    with Interruptions(debugger, insistent=not is_terminal) as interruptions:
        try:
            if options.script is not None:
                _run_script(options.script, interpreter, printer, interruptions)
            elif is_terminal:
                _converse(interpreter, printer, interruptions, session, restores=options.session is None, begins=begins)
            else:
                code = _listen(interpreter, printer, interruptions, session)
        except Ended as ended:
            return _ended(ended, session, interruptions)
        except KeyboardInterrupt:
            if not interruptions.forced:
                session.keep()
            raise
        session.keep()
    _save_states(debugger, states)
    if is_terminal and session.failure:
        say(f"stepper: {session.failure}", file=sys.stderr)
    return code


def _save_states(debugger: Debugger, target: OutputFile | None) -> None:
    """Write the variables as they are, where that was asked for. Raises OutputError."""
    if target is not None:
        write_npz(target, state_arrays(states_of(debugger.machine.compiled, debugger.machine.states)))


def _ended(ended: Ended, session: CommandLineSession, interruptions: Interruptions) -> int:
    """End in order, once the session is kept. The terminal may be gone, and nothing can be printed."""
    kept = "the session is as it was saved last" if interruptions.forced else session.keep()
    with contextlib.suppress(OSError):
        say(f"stepper: ended by {ended}; {kept}", file=sys.stderr)
        sys.stderr.flush()
        sys.stdout.flush()
    return ended.code


# --- where commands come from ---------------------------------------------------------------------------------------


def _run_script(name: str, interpreter: Interpreter, printer: _Printer, interruptions: Interruptions) -> None:
    for number, line in _numbered(name):
        try:
            with interruptions.while_busy():
                answer = interpreter.execute(line)
        except StepperError as error:
            failure = ScriptError(f"{'stdin' if name == '-' else name}, line {number}", error)
            printer.failure(line, failure)
            raise failure from None
        printer.answer(line, answer)
        if interruptions.came:
            raise KeyboardInterrupt(f"interrupted at line {number}: {interpreter.session.debugger.stop.place}")
        if interpreter.session.ended:
            break
    ensure_complete(interpreter.session, "stdin" if name == "-" else name)


def _run_init(interpreter: Interpreter) -> None:
    """Run the user's start-up file, if there is one, and report its errors."""
    for problem in start_up(interpreter):
        say(problem, file=sys.stderr)


def _numbered(name: str) -> Iterator[tuple[int, str]]:
    if name != "-":
        yield from script_lines(name)
        return
    for number, line in enumerate(sys.stdin, 1):
        text = line.removeprefix(_MARK) if number == 1 else line
        if text.strip():
            yield number, text


def _listen(
    interpreter: Interpreter, printer: _Printer, interruptions: Interruptions, session: CommandLineSession
) -> int:
    """Run the lines of a pipe, naming the line in each error; return the first error code."""
    code = number = 0
    while not interpreter.session.ended:
        interruptions.check()
        try:
            number += 1
            line = input().removeprefix(_MARK if number == 1 else "")
        except EOFError:
            break
        except UnicodeDecodeError:
            code = code or UsageError.exit_code
            printer.failure("", UsageError("the line is not text in UTF-8"), number)
            continue
        failed = _carry_out(line, interpreter, printer, interruptions, number)
        code = code or failed
        session.keep_up()
    return code


def _converse(
    interpreter: Interpreter,
    printer: _Printer,
    interruptions: Interruptions,
    session: CommandLineSession,
    *,
    restores: bool,
    begins: bool,
) -> None:
    """Talk at a terminal. Ctrl+C never ends that: at the prompt it clears the line.

    `begins`: where no session is put back, the start-up file comes first.
    """
    _prepare_editing(interpreter.session)
    restored = ""
    if restores:
        try:
            with interruptions.while_busy():
                restored = session.restore()
        except Ended:
            interruptions.forced = True  # what is kept is to stay
            raise
        if restored:
            say(restored, file=sys.stderr)
    if begins and not restored:
        with interruptions.while_busy():
            _run_init(interpreter)
    session.keep_up()
    hint = unopened(interpreter.session.debugger.model)
    lines = stop_lines(interpreter.session.debugger, output_width())
    printer.answer("", Answer((*lines, *([f"  {hint}"] if hint else []))))
    with _Later(interruptions, session) as later:
        while not interpreter.session.ended:
            try:
                interpreter.session.width = output_width()
                line = input(MORE if interpreter.is_collecting else PROMPT)
                _carry_out(line, interpreter, printer, interruptions)
                session.keep_up()
                later.set_up()
            except KeyboardInterrupt:
                interpreter.session.collecting = None
                say("")
            except EOFError:
                return
            except UnicodeDecodeError:
                printer.failure("", UsageError("the line is not text"))


def _carry_out(
    line: str, interpreter: Interpreter, printer: _Printer, interruptions: Interruptions, number: int | None = None
) -> int:
    """Carry out a line, of a pipe the one with this number; the code of its error, 0 without any."""
    try:
        with interruptions.while_busy():
            answer = interpreter.execute(line)
    except StepperError as error:
        printer.failure(line, error, number)
        return error.exit_code
    printer.answer(line, answer)
    return 0


class _Later:
    """Saves a place while the user thinks, a little after it was reached."""

    def __init__(self, interruptions: Interruptions, session: CommandLineSession) -> None:
        self._interruptions, self._session = interruptions, session
        self._previous: Any = None

    def __enter__(self) -> _Later:
        if hasattr(signal, "setitimer"):
            with contextlib.suppress(ValueError):  # only the main thread may do so
                self._previous = signal.signal(signal.SIGALRM, self._save)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._previous is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous)

    def set_up(self) -> None:
        """Set the timer after a command."""
        if self._previous is not None and self._session.is_due:
            signal.setitimer(signal.ITIMER_REAL, EVERY)

    def _save(self, _number: int, _frame: FrameType | None) -> None:
        if not self._interruptions.is_busy:
            self._session.keep_up(due=True)


def _prepare_editing(session: Session) -> None:
    """Let lines be edited, called back and completed, where the system has readline."""
    with contextlib.suppress(ImportError):
        import readline

        from stepper.commands.command_completion import Completer  # a pipe asks for none

        completer = Completer(session.debugger.machine.compiled)
        found: list[str] = []

        def completed(_text: str, state: int) -> str | None:
            if not state:
                line = readline.get_line_buffer()[: readline.get_endidx()]
                begin = readline.get_begidx()
                found[:] = [one.line[begin:] for one in completer.of_session(line, session)]
            return found[state] if state < len(found) else None

        readline.set_completer(completed)
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")


# --- where answers go -----------------------------------------------------------------------------------------------


class _TextPrinter:
    """Answers as text on stdout, errors on stderr."""

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

    def log(self, line: LogMessage) -> None:
        say(line)


class _JsonPrinter:
    """Answers, errors and lines of logpoints as a line of JSON each."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger

    def answer(self, line: str, answer: Answer) -> None:
        content = {"lines": list(answer.lines), **answer.data}
        self._print({"command": line.strip(), "name": answer.command, "answer": content, "stop": self._stop()})

    def failure(self, line: str, error: StepperError, number: int | None = None) -> None:
        failed = {"command": line.strip(), "input_line": number, "error": error_data(error), "stop": self._stop()}
        self._print(failed)
        error.answered = True

    def log(self, line: LogMessage) -> None:
        self._print({"log": {"text": str(line), "breakpoint": line.number, "tick": line.tick}})

    def _stop(self) -> dict[str, Any]:
        return stop_data(self._debugger)

    def _print(self, report: dict[str, Any]) -> None:
        print_json(report, in_a_line=True)


_Printer = _TextPrinter | _JsonPrinter
