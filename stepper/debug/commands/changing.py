"""Commands that change a value, and go from one branch of the run to another."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from stepper.debug.commands.looking import evaluated
from stepper.debug.commands.registry import command
from stepper.debug.commands.session import Answer, Session, required
from stepper.debug.commands.stops import moved
from stepper.debug.timeline import Edit
from stepper.debug.what_if import is_still_read, taken_by
from stepper.engine.machine import Machine
from stepper.errors import UsageError

_ASSIGNED: Final = re.compile(r"(?P<address>(?:`[^`]*`|id=|[^`=<>!])+?)\s*=(?!=)\s*(?P<value>\S.*)")


@command("set", syntax="ADDR = EXPR", help="give a value, an element or a carried value another content, from here on")
def _set(session: Session, text: str) -> Answer:
    match = _ASSIGNED.fullmatch(required(text, "ADDR = EXPR"))
    if match is None:
        raise UsageError("ADDR = EXPR is expected, such as h[0,3] = 1.5")
    debugger = session.debugger
    answer = moved(session, debugger.set_value(match["address"], _content(session, match["value"])))
    edit = debugger.timeline.edits[debugger.machine.tick][-1]
    machine = debugger.machine
    notes = [] if is_still_read(machine, edit) else [_unread(machine, edit, match["address"])]
    return replace(answer, lines=(*answer.lines, *notes), data={**answer.data, "notes": [one.strip() for one in notes]})


def _unread(machine: Machine, edit: Edit, name: str) -> str:
    """That nothing reads a value any more, and what has been taken from it."""
    within = " in this iteration" if edit.program.path else ""
    note = f"  nothing that is still to come{within} reads '{name}'"
    taken = taken_by(machine, edit)
    if taken is not None:
        note += f": {taken.layer.type} '{taken.layer.name}' took its {taken.what} from it when it was entered"
    return note


def _content(session: Session, text: str) -> Any:
    """A literal such as [[1, 2], [3, 4]], or the value of an expression."""
    if not text.startswith("["):
        return evaluated(session, text)
    try:
        return np.array(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{text[:60]}' is no tensor: {error}") from None


@command("branch", syntax="NAME", help="go on in another branch where that stands, or in a new one from here")
def _branch(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.branch(required(text, "the name of a branch")))


@command("branches", help="the branches of the run; * is the one that goes on")
def _branches(session: Session, _text: str) -> Answer:
    found = list(session.debugger.branches)
    lines = [
        f"{'*' if branch.present else ' '} {branch.name}  tick {branch.tick}, {branch.place}"
        + (f", edited at tick {', '.join(map(str, branch.edited_at))}" if branch.edited_at else "")
        for branch in found
    ]
    data = [
        {"name": branch.name, "tick": branch.tick, "edited_at": list(branch.edited_at), "present": branch.present}
        for branch in found
    ]
    return Answer(tuple(lines), {"branches": data})
