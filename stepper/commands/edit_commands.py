"""Commands that change a value, and go from one branch of the run to another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.commands.command_session import Answer, Session, command, moved, required
from stepper.commands.inspection import branches, evaluated
from stepper.debug.branches import WORDS, is_still_read, taken_by
from stepper.debug.causes.cause import Reason
from stepper.debug.scopes import enclosing_loop
from stepper.debug.timeline import ConstantEdit, ValueEdit
from stepper.engine.frames import Phase
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.errors import StepperError, UsageError
from stepper.plain_values import record_data
from stepper.query.address_syntax import Address, AddressError, names_iteration, parse_address, without_iterations
from stepper.query.expression_syntax import ExpressionError, with_addresses

_ASSIGNED = re.compile(r"(?P<address>(?:`[^`]*`|id=|[^`=<>!])+?)\s*=(?!=)\s*(?P<value>\S.*)")


_OF_LOOP = re.compile(r"(?P<what>trip-count|condition)(?:\s+(?:of\s+)?(?P<loop>\S.*?))?\s*=(?!=)\s*(?P<value>\S.*)")
_SET = "ADDR = EXPR | trip-count [of LOOP] = N | condition [of LOOP] = true|false"


def edited_value(text: str) -> Address | None:
    """Return the value that the text typed behind `set` changes.

    None if the text edits a loop, or is no edit.
    """
    match = None if _OF_LOOP.fullmatch(text) else _ASSIGNED.fullmatch(text)
    try:
        return None if match is None else parse_address(match["address"].strip())
    except AddressError:
        return None


def edit_with_meant(text: str, edited: Callable[[Address], Address], read: Callable[[Address], Address]) -> str:
    """Return the text typed behind `set`, with each address replaced by its meaning.

    An edit of a loop stays unchanged. Raise AddressError for a text that is no address.
    """
    match = None if _OF_LOOP.fullmatch(text) else _ASSIGNED.fullmatch(text)
    if match is None:
        return text
    address, value = edited(parse_address(match["address"].strip())), match["value"]
    with suppress(ExpressionError):  # numbers as JSON has them
        value = with_addresses(value, read)
    return f"{address} = {value}"


@command(
    "set",
    syntax=_SET,
    help="change a value (x@7: there), constant, trip count or condition, in a branch, from then on",
)
def _set(session: Session, text: str) -> Answer:
    of_loop = _OF_LOOP.fullmatch(required(text, "ADDR = EXPR"))
    if of_loop is not None:
        return _set_loop(session, of_loop["what"], (of_loop["loop"] or "").strip("`"), of_loop["value"])
    match = _ASSIGNED.fullmatch(text)
    if match is None:
        raise UsageError("ADDR = EXPR is expected, such as h[0,3] = 1.5")
    debugger, machine = session.debugger, session.debugger.machine
    address = parse_address(match["address"].strip())
    if names_iteration(address):
        stop = debugger.goto(str(replace(address, index=())))
        if stop.reason is Reason.PAUSED:
            return moved(session, stop)
        address = without_iterations(address)
    answer = moved(session, debugger.set_value(address, _content(session, match["value"])))
    edit = debugger.timeline.edits[machine.tick][-1]
    assert isinstance(edit, ValueEdit | ConstantEdit)
    return _noted(answer, [] if is_still_read(machine, edit) else [_unread(machine, edit, match["address"])])


def _set_loop(session: Session, what: str, loop: str, text: str) -> Answer:
    debugger = session.debugger
    if what == "condition" and not loop and _is_value(session, what):
        raise UsageError("here is a value 'condition', too: write `condition` for that, or set condition of LOOP = ...")
    value = np.asarray(_content(session, text))
    if value.size != 1 or value.dtype.kind not in ("b" if what == "condition" else "iu"):
        expected = "true or false" if what == "condition" else "a whole number"
        raise UsageError(f"the {what} of a loop is {expected}, not {text[:60]}")
    before = debugger.machine.stack[-1].phase if debugger.machine.stack else None
    if what == "condition":
        answer = moved(session, debugger.set_condition(bool(value.item()), loop))
    else:
        answer = moved(session, debugger.set_trip_count(int(value.item()), loop))
    trip = debugger.loop(enclosing_loop(debugger.machine.stack[-1].program.path, loop), differences=False).trip
    note = f"  {trip.sentence}"
    if before is Phase.LEAVING and trip.ended is EndReason.CONDITION:
        note += "; set condition = true continues it"
    return _noted(answer, [note])


def _is_value(session: Session, name: str) -> bool:
    try:
        evaluated(session, name)
    except StepperError:
        return False
    return True


def _noted(answer: Answer, notes: list[str]) -> Answer:
    return replace(answer, lines=(*answer.lines, *notes), data={**answer.data, "notes": [one.strip() for one in notes]})


def _unread(machine: Machine, edit: ValueEdit | ConstantEdit, name: str) -> str:
    """Return the note that nothing reads a value any more, and what a loop has taken from it."""
    within = " in this iteration" if edit.program.path else ""
    note = f"  nothing that is still to come{within} reads '{name}'"
    taken = taken_by(machine, edit)
    if taken is not None:
        note += f": {taken.layer.type} '{taken.layer.name}' took its {taken.what} from it when it was entered"
    return note


def _content(session: Session, text: str) -> Any:
    """Return a literal such as [[1, 2], [3, 4]], or the value of an expression."""
    if not text.startswith("["):
        return evaluated(session, text)
    try:
        return np.array(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{text[:60]}' is not a tensor: {error}") from None


_BRANCH = "NAME | rename A B | delete NAME [all] | diff [A] B"


@command("branch", syntax=_BRANCH, help="continue in another or a new branch; rename, delete, compare branches")
def _branch(session: Session, text: str) -> Answer:
    words = required(text, "the name of a branch").split()
    if words[0] not in WORDS:
        return moved(session, session.debugger.branch(text))
    return {"rename": _rename, "delete": _delete_branch, "diff": _diff}[words[0]](session, words[1:])


def _rename(session: Session, words: list[str]) -> Answer:
    if len(words) != 2:
        raise UsageError("two names are expected: branch rename A B")
    session.debugger.rename_branch(*words)
    return branches(session)


def _delete_branch(session: Session, words: list[str]) -> Answer:
    if len(words) not in (1, 2) or words[1:] not in ([], ["all"]):
        raise UsageError("a name is expected: branch delete NAME, or branch delete NAME all with those that left it")
    gone = session.debugger.delete_branch(words[0], descendants=len(words) == 2)
    answer = branches(session)
    return Answer((f"deleted: {', '.join(gone)}", *answer.lines), {**answer.data, "deleted": list(gone)})


def _diff(session: Session, words: list[str]) -> Answer:
    debugger = session.debugger
    if len(words) == 1:
        words = [debugger.branches.name, *words]
    if len(words) != 2:
        raise UsageError("two names are expected: branch diff A B, or one to compare with the present branch")
    from stepper.debug.branch_differences import difference_lines  # few ask for it

    with debugger.working():
        found = debugger.branches.difference(*words, paused=lambda: debugger.machine.pause_requested)
    return Answer(tuple(difference_lines(found)), record_data(found))


@command("undo", help="take back the last edit of this branch, and go to where it was made")
def _undo(session: Session, _text: str) -> Answer:
    debugger = session.debugger
    undone = debugger.branches.last_edit
    answer = moved(session, debugger.undo())
    note = f"  taken back: {undone}"
    if not debugger.branches.edits(debugger.branches.name):
        note += f"; nothing is changed in '{debugger.branches.name}' any more"
    return _noted(answer, [note])


@command("branches", help="the branches of the run as a tree, with what was changed in each; * is where you are")
def _branches(session: Session, _text: str) -> Answer:
    return branches(session)
