"""Carries out commands: one line each, `verb [object] [if condition]`."""

from __future__ import annotations

import re
from typing import Final

from stepper.debug.commands.registry import Command, command_called
from stepper.debug.commands.session import Answer, Session, without_arguments
from stepper.debug.commands.stops import moved
from stepper.debug.debugger import Debugger
from stepper.errors import Paused, StepperError

_COMMENT: Final = re.compile(r"""(?:`[^`]*`|"[^"]*"|(?!(?:^|\s)\#)[\s\S])*""")
_UNLOGGED: Final = frozenset({"source", "history"})
"""`source` is logged as the commands that it carries out."""


class Interpreter:
    """The prompt of a debugger without a screen. Names may be cut to where they are unambiguous.

    An empty line repeats the last movement. Every command that was carried out is in `session.history`, with which the
    same can be done once more.
    """

    def __init__(self, debugger: Debugger) -> None:
        self.session = Session(debugger)
        self.session.execute = self.execute
        self._last_movement = ""

    def execute(self, line: str) -> Answer:
        """Carry out one line. Raises StepperError with one message; the session goes on."""
        text = without_comment(line)
        if not text:
            if line.strip() or not self._last_movement:
                return Answer()
            text = self._last_movement
        word, _, rest = text.partition(" ")
        command = command_called(word)
        rest = rest.strip()
        if not command.syntax:
            without_arguments(rest)
        full = f"{command.name} {rest}".rstrip()
        if command.moves:
            self._last_movement = full
        debugger = self.session.debugger
        before = debugger.stop
        try:
            with debugger.working():
                answer = command.action(self.session, rest)
        except Paused as paused:
            answer = moved(self.session, debugger.paused(paused))
        except StepperError:
            # A movement that met an error of the run has moved all the same.
            if debugger.stop is not before:
                self._log(command, full)
            raise
        self._log(command, full)
        return answer

    def _log(self, command: Command, full: str) -> None:
        if command.name not in _UNLOGGED:
            self.session.history.append(full)


def without_comment(line: str) -> str:
    """The line up to a `#` that begins a word outside of quotes."""
    match = _COMMENT.match(line.strip())
    return "" if match is None else match[0].strip()
