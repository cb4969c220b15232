"""Requests that move the run, forward and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Stop
from stepper.engine.program import LoopPlan
from stepper.errors import UsageError
from stepper.integrations.dap.messages import (
    FrameArguments,
    GotoArguments,
    GotoLine,
    NoArguments,
    ShownTarget,
    StepInArguments,
)
from stepper.integrations.dap.requests.registry import request
from stepper.integrations.dap.session import DapSession
from stepper.integrations.dap.source import is_source
from stepper.integrations.dap.stack import restart_tick

_Verb = Callable[[Debugger], Stop]


def _moves(name: str, verb: _Verb, *, goes_on: bool = False) -> None:
    """Register a request that is a verb of the debugger."""

    @request(name, arguments=NoArguments, moves=True)
    def answer(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
        debugger = session.run.debugger
        session.move(lambda: verb(debugger), goes_on=goes_on)
        return {"allThreadsContinued": True}


_moves("continue", lambda debugger: debugger.continue_(), goes_on=True)
_moves("reverseContinue", lambda debugger: debugger.reverse_continue(), goes_on=True)
_moves("next", lambda debugger: debugger.next())
_moves("stepBack", lambda debugger: debugger.reverse_next())
_moves("stepOut", lambda debugger: debugger.finish())


@request("stepIn", arguments=StepInArguments, moves=True)
def _step_in(session: DapSession, arguments: StepInArguments) -> None:
    run = session.run
    if arguments.target_id is None:
        session.move(run.debugger.step)
        return
    place = run.listing.place(arguments.target_id)
    if place is None:
        raise UsageError(f"there is nothing to step into at {arguments.target_id}")
    address = run.listing.address(place)
    session.move(lambda: run.debugger.run_to(address))


@request("stepInTargets", arguments=FrameArguments)
def _step_in_targets(session: DapSession, arguments: FrameArguments) -> dict[str, Any]:
    """Answer with the loops, and the sides of each If, that come next in the innermost frame."""
    run = session.run
    stack = run.debugger.machine.stack
    if not stack or arguments.frame_id != len(stack):
        return {"targets": []}
    frame, found = stack[-1], []
    for operation in frame.program.operations[frame.pc :]:
        title = f"{operation.layer.type} '{operation.layer.name}'"
        for plan in operation.plans:
            head, first = run.listing.lines_of(plan.program)
            if isinstance(plan, LoopPlan):
                found.append((head, title))
            elif first is not None:
                side = run.listing.lines[head - 1].strip(" :")
                found.append((first, f"{side} of {title}, where it is taken"))
    offset = session.line_offset
    return {"targets": [ShownTarget(line, label, line - offset) for line, label in found]}


@request("restartFrame", arguments=FrameArguments, moves=True)
def _restart_frame(session: DapSession, arguments: FrameArguments) -> None:
    debugger = session.run.debugger
    tick = restart_tick(debugger, arguments.frame_id - 1)
    session.move(lambda: debugger.goto_tick(tick), "restart")


@request("gotoTargets", arguments=GotoLine)
def _goto_targets(session: DapSession, arguments: GotoLine) -> dict[str, Any]:
    """Answer with where a line is in time: in this iteration, and the next time that the run comes there."""
    run, offset = session.run, session.line_offset
    line = run.listing.nearest(arguments.line + offset) if is_source(arguments.source, run.source) else None
    place = None if line is None else run.listing.place(line)
    if line is None or place is None:
        return {"targets": []}
    name = place.layer.name
    labels = (f"{name}, in this iteration", f"{name}, the next time")
    targets = [ShownTarget(2 * line + way, label, line - offset) for way, label in enumerate(labels)]
    return {"targets": targets}


@request("goto", arguments=GotoArguments, moves=True)
def _goto(session: DapSession, arguments: GotoArguments) -> None:
    run = session.run
    line, way = divmod(arguments.target_id, 2)
    place = run.listing.place(line)
    if place is None:
        raise UsageError(f"there is no target {arguments.target_id}; ask for those of a line")
    address = run.listing.address(place)
    verb = run.debugger.run_to if way else run.debugger.goto
    session.move(lambda: verb(address), "goto")
