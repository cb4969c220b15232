"""Files of commands: their lines, and the error that names file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from stepper.commands.breakpoint_commands import ensure_complete
from stepper.commands.interpreter import Interpreter
from stepper.commands.registry import command_called
from stepper.errors import StepperError, UsageError
from stepper.files.configuration import init_file
from stepper.wording import reason_of


class ScriptError(StepperError):
    """A command of a file failed; the message names file and line, the exit code is that of the error."""

    def __init__(self, where: str, error: StepperError) -> None:
        super().__init__(f"{where}: {error}")
        self.exit_code, self.kind, self.place = error.exit_code, error.kind, error.place
        self.has_lines = error.has_lines


def script_lines(name: str) -> list[tuple[int, str]]:
    """Return the lines of a file of commands with their numbers, empty ones left out. Raises UsageError."""
    try:
        content = Path(name).read_text(encoding="utf-8-sig")  # editors of Windows write a byte order mark
    except (OSError, ValueError) as error:
        reason = reason_of(Path(name), error) if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(f"{name}: cannot be read: {reason}") from None
    return [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]


_SETTING_UP: Final = frozenset({"labels"})


def start_up(interpreter: Interpreter, *, setting_up: bool = False) -> list[str]:
    """Carry out the file, if there is one; sentences on what is wrong in it, with file and line, and the rest goes on.

    `setting_up`: only breakpoints, watches and labels; other commands are left out.
    """
    path, problems = init_file(), []
    try:
        lines = script_lines(str(path)) if path.is_file() else []
    except StepperError as error:
        return [str(error)]
    for number, line in lines:
        try:
            if not setting_up or interpreter.is_collecting or _sets_up(line):
                interpreter.execute(line)
        except StepperError as error:
            problems.append(f"{path}, line {number}: {error}")
    try:
        ensure_complete(interpreter.session, str(path))
    except StepperError as error:
        problems.append(str(error))
    interpreter.session.history.clear()
    interpreter.session.ended = False
    return problems


def _sets_up(line: str) -> bool:
    if line.lstrip().startswith("#"):
        return False
    command = command_called(line.split()[0])
    return command.group == "breakpoints" or command.name in _SETTING_UP
