"""Sessions of sample models, and what they answer; `python -m tests.session.kept_sessions FILE...` restores them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from stepper.commands import Interpreter
from stepper.commands.command_session import stop_data
from stepper.debug.stop import fingerprint
from stepper.errors import StepperError
from stepper.session.session_files import restore_session
from tests.debug.debugged import sample

LISTS = ("info breaks", "info watches", "info marks", "branches", "where")
MOVEMENTS = ("continue", "next", "rc", "branch original", "continue", "goto 'm", "last")


def begun(name: str) -> Interpreter:
    """A sample with several breakpoints, a logpoint, watches, a mark, and two branches with edits; somewhere inside."""
    interpreter = at_prompt(name)
    body = next(program for program in interpreter.session.debugger.machine.compiled.programs if program.path)
    levels = "".join(f"`{layer.name}`::" for layer in body.path)
    first, last = (f"{levels}`{body.operations[place].layer.name}`" for place in (0, -1))
    for line in (
        f"break {last} hit 2",
        f"break {first} if iter == 1",
        "break nan",
        "break when iter == 2",
        f'log {first} "{{iter}}"',
        "disable 3",
        "ignore 1 1",
        "mark m",
        "continue",
        f"watch `{body.operations[0].layer.name}`",
        "watch iter + 1",
        "mark here",
        f"set `{body.operations[0].layer.name}` = `{body.operations[0].layer.name}`",
        "next",
        "branch other",
        "step 2",
    ):
        said(interpreter, line)
    return interpreter


def at_prompt(name: str) -> Interpreter:
    debugger = sample(name)
    debugger.breakpoints.sink = lambda _line: None
    return Interpreter(debugger)


def said(interpreter: Interpreter, line: str) -> list[str]:
    try:
        return list(interpreter.execute(line).lines)
    except StepperError as error:
        return str(error).splitlines()


def told(interpreter: Interpreter) -> list[Any]:
    """The listings, the stop and the state, now and after some movements."""
    found: list[Any] = []
    for line in ("", *MOVEMENTS):
        found.append([line, said(interpreter, line)] if line else line)
        found.append([said(interpreter, each) for each in LISTS])
        debugger = interpreter.session.debugger
        found.append(stop_data(debugger))
        found.append(fingerprint(debugger.machine.snapshot()).hex())
    return found


def restored(path: Path) -> list[Any]:
    interpreter = at_prompt(path.stem)
    restore_session(interpreter.session.debugger, path)
    return told(interpreter)


if __name__ == "__main__":
    json.dump({path: restored(Path(path)) for path in sys.argv[1:]}, sys.stdout)
