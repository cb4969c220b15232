"""The start-up file: commands of the user's own with which a debugger begins, from the configuration folder alone."""

from __future__ import annotations

from typing import Final

from stepper.commands.interpreter import Interpreter
from stepper.commands.registry import command_called
from stepper.commands.scripts import script_lines
from stepper.commands.stop_commands import ensure_complete
from stepper.errors import StepperError
from stepper.files.configuration import init_file

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
    return command.group == "stopping" or command.name in _SETTING_UP
