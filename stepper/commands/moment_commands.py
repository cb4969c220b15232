"""Commands about two moments: what A is, and how the values of now differ from it."""

from __future__ import annotations

from typing import Any

from stepper.commands.command_session import Answer, Session, command
from stepper.debug.moments.moment import Moment, MomentKind
from stepper.debug.moments.moment_texts import (
    moment_data,
    moment_text,
    outputs_data,
    spread_sentence,
    view_data,
    view_lines,
)

PINNED = "A"
"""Name of the baseline that the present is compared with, as a mark."""


@command(
    PINNED,
    syntax="[N|+N|ADDR|BRANCH|before|reference|off|next]",
    help="choose the baseline A: an iteration, a branch, a reference",
)
def _a(session: Session, text: str) -> Answer:
    if text:
        return pin(session, text)
    return _answered(session.debugger.pinned)


def pin(session: Session, text: str) -> Answer:
    """Pin a moment as the baseline; an empty text pins the present moment. UsageError."""
    return _answered(session.debugger.pin(text))


def _answered(moment: Moment | None) -> Answer:
    data: dict[str, Any] = {"moment": None if moment is None else moment_data(moment)}
    return Answer((f"A is {moment_text(moment)}" if moment is not None else "there is no baseline",), data)


@command(
    "diff",
    syntax="[N|ADDR|BRANCH|before|reference]",
    help="compare the present values with the baseline A, or another one",
)
def _diff(session: Session, text: str) -> Answer:
    found = session.debugger.difference(text)
    program = session.debugger.frame.program
    lines, data = view_lines(found, program), view_data(found, program)
    data["outputs"] = None
    if found.moment.kind is MomentKind.BRANCH:
        spread = session.debugger.spread(found.moment.branch)
        data["outputs"] = outputs_data(spread.outputs)
        if told := spread_sentence(spread):
            lines.append(f"at the end: {told}")
    return Answer(tuple(lines), data)
