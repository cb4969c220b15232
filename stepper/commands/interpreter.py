"""Carries out commands: one line each, `verb [object] [if condition]`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from stepper.commands.breakpoint_commands import SILENT, collected, ensure_fit
from stepper.commands.command_session import Answer, Command, Session, command_called, moved, without_arguments
from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop
from stepper.errors import Paused, StepperError
from stepper.session.autosave import distrusted_text

_COMMENT = re.compile(r"""(?:`[^`]*`|"[^"]*"|(?!(?:^|\s)\#)[\s\S])*""")
_UNLOGGED = frozenset({"source", "history", "commands"})
"""`source` is logged as the commands that it carries out, `commands` when all of them are known."""
_MOST_STOPS = 10_000
"""Stops at which commands of breakpoints may let the run go on before the user is asked."""


class Interpreter:
    """The prompt of a debugger without a screen. Names may be cut to where they are unambiguous.

    An empty line repeats the last movement. Every command that was carried out is in `session.history`, with which the
    same can be done once more.
    """

    def __init__(self, debugger: Debugger, *, multiline: bool = True) -> None:
        self.session = Session(debugger, multiline=multiline)
        self.session.execute = self.execute
        self._last_movement = ""

    def execute(self, line: str) -> Answer:
        """Carry out one line, and the commands of the breakpoint at which that stops.

        Raises StepperError with one message; the session continues.
        """
        debugger = self.session.debugger
        attached = {one.number: one.description for one in debugger.breakpoints if one.description.commands}
        before = debugger.stop
        if not attached:
            return self._execute(line)
        with debugger.working():
            answer = self._execute(line)
            return self._followed(answer, before, attached)

    def _followed(self, answer: Answer, before: Stop, attached: Mapping[int, BreakDescription]) -> Answer:
        """Return the answer of a command with those of the commands of the breakpoints at which it stops."""
        debugger, data = self.session.debugger, dict(answer.data)
        lines, carried_out, latest = [], [], list(answer.lines)
        for _ in range(_MOST_STOPS):
            which = _stopped_at(debugger.stop, before, attached)
            if not which:
                break
            commands = attached[which].commands
            if attached[which].need_trust:
                latest.append(distrusted_text(which, commands))
                data["notes"] = [*data.get("notes", ()), latest[-1]]
                break
            before = debugger.stop
            lines += [] if commands[0] == SILENT else latest
            latest = []
            for line in commands:
                failure = None
                try:
                    ensure_fit(without_comment(line))
                    found = Answer() if line == SILENT else self._execute(line, logged=False)
                except StepperError as error:
                    found, failure = Answer((f"breakpoint {which}, command '{line}': {error}",)), str(error)
                content = {"lines": list(found.lines), **found.data}
                carried_out.append(
                    {"breakpoint": which, "command": line, "name": found.command, "answer": content, "error": failure}
                )
                if debugger.stop is not before:
                    latest = list(found.lines)
                    break
                lines += found.lines
                if failure is not None or self.session.ended:
                    break
        else:
            latest.append(f"the commands of breakpoints have continued {_MOST_STOPS:,} times; the run stops here")
        data |= {"breakpoint_commands": carried_out} if carried_out else {}
        return replace(answer, lines=(*lines, *latest), data=data)

    @property
    def is_collecting(self) -> bool:
        """True while lines are the commands of a breakpoint."""
        return self.session.collecting is not None

    def _execute(self, line: str, *, logged: bool = True) -> Answer:
        text = without_comment(line)
        if self.is_collecting:
            return replace(collected(self.session, text), command="commands") if text else Answer()
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
            if debugger.stop is not before and logged:
                self._log(command, full)
            raise
        if logged:
            self._log(command, full)
        return replace(answer, command=command.name)

    def _log(self, command: Command, full: str) -> None:
        if command.name not in _UNLOGGED:
            self.session.history.append(full)


def _stopped_at(stop: Stop, before: Stop, attached: Mapping[int, BreakDescription]) -> int:
    """Return the breakpoint with commands at which the run has just stopped; 0 for none."""
    if stop is before or stop.reason is not Reason.BREAK:
        return 0
    return min((cause.number for cause in stop.causes if cause.number in attached), default=0)


def without_comment(line: str) -> str:
    """Return the line up to a `#` that begins a word outside of quotes."""
    match = _COMMENT.match(line.strip())
    return "" if match is None else match[0].strip()
