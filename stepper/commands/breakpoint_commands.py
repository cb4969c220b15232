"""Commands of a breakpoint: `commands N`, lines, `end`; or all in one line, `commands N silent; print h; continue`."""

from __future__ import annotations

import re
from typing import Final

from stepper.commands.registry import command_called
from stepper.commands.session import Answer, Session, required
from stepper.debug.breakpoints.breakpoint import Breakpoint
from stepper.errors import UsageError

SILENT: Final = "silent"
END: Final = "end"
_PARTS: Final = re.compile(r"""(?:`[^`]*`|"[^"]*"|[^;])+""")
_MOST: Final = 100
_UNFIT: Final = frozenset({"commands", "source", "session", "history", "save", "trust"})
"""They read commands, write files, or agree in the user's place."""


def parts_of(text: str) -> list[str]:
    """Return the commands in one line, with semicolons between them."""
    return [part.strip() for part in _PARTS.findall(text)]


def put_commands(session: Session, which: int, lines: list[str]) -> Answer:
    """Attach the commands to a breakpoint; none take away those that it had. UsageError for what cannot be one."""
    lines = [line for line in lines if line]
    if lines == [END]:
        lines = []
    if len(lines) > _MOST:
        raise UsageError(f"a breakpoint has at most {_MOST} commands")
    for line in lines:
        ensure_fit(line)
    breakpoint = session.debugger.breakpoints.attach(which, tuple(lines))
    session.history.append(f"commands {which} {'; '.join(lines) or END}")
    shown = "; ".join(lines) or "nothing"
    return Answer((f"breakpoint {which} does: {shown}",), {"number": breakpoint.number, "commands": lines})


def ensure_fit(line: str) -> None:
    """Raise UsageError for a line that cannot be a command of a breakpoint, and for an unknown command."""
    word = line.partition(" ")[0]
    if word not in ("", SILENT) and (name := command_called(word).name) in _UNFIT:
        raise UsageError(f"'{name}' cannot be a command of a breakpoint")


def collected(session: Session, line: str) -> Answer:
    """Return a line that was typed behind `commands N`."""
    assert session.collecting is not None
    which, lines = session.collecting
    if line != END:
        lines.append(required(line, "a command"))
        return Answer()
    session.collecting = None
    return put_commands(session, which, lines)


def command_lines(breakpoint: Breakpoint) -> list[str]:
    """Return the commands as a list of breakpoints shows them."""
    mark = "  (needs trust)" if breakpoint.description.need_trust else ""
    return [f"     {line}{mark}" for line in breakpoint.description.commands]


def ensure_complete(session: Session, file: str) -> None:
    """Raise UsageError where a file ends in the middle of the commands of a breakpoint."""
    if session.collecting is not None:
        which, session.collecting = session.collecting[0], None
        raise UsageError(f"{file}: the commands of breakpoint {which} have no end")
