"""Requests with which a session begins and ends."""

from __future__ import annotations

from typing import Any, Final

from stepper.integrations.dap.breakpoints import FILTERS, FINDINGS, USUAL, is_of_a_loop
from stepper.integrations.dap.messages import CancelArguments, InitializeArguments, NoArguments
from stepper.integrations.dap.requests.registry import request
from stepper.integrations.dap.session import THREAD, DapSession

_CAN: Final = (
    "supportsConfigurationDoneRequest",
    "supportsStepBack",
    "supportsRestartFrame",
    "supportsRestartRequest",
    "supportsGotoTargetsRequest",
    "supportsStepInTargetsRequest",
    "supportsFunctionBreakpoints",
    "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints",
    "supportsLogPoints",
    "supportsDataBreakpoints",
    "supportsBreakpointLocationsRequest",
    "supportsExceptionFilterOptions",
    "supportsExceptionInfoRequest",
    "supportsEvaluateForHovers",
    "supportsClipboardContext",
    "supportsCompletionsRequest",
    "supportsSetVariable",
    "supportsSetExpression",
    "supportsReadMemoryRequest",
    "supportsLoadedSourcesRequest",
    "supportsDelayedStackTraceLoading",
    "supportsTerminateRequest",
    "supportsCancelRequest",
)


@request("initialize", arguments=InitializeArguments, needs_run=False)
def _initialize(session: DapSession, arguments: InitializeArguments) -> dict[str, Any]:
    session.client = arguments
    filters = [
        {"filter": name, "label": label, "default": name in USUAL, "supportsCondition": is_of_a_loop(name)}
        | ({"conditionDescription": "the name of a loop; without one any"} if is_of_a_loop(name) else {})
        for name, label in FILTERS.items()
    ]
    filters.append({"filter": FINDINGS, "label": "What stepper check finds in this run", "default": False})
    return {
        **dict.fromkeys(_CAN, True),
        "completionTriggerCharacters": [" ", "["],
        "exceptionBreakpointFilters": filters,
    }


@request("launch", arguments=dict[str, Any])
def _launch(session: DapSession, arguments: dict[str, Any]) -> None:
    session.launch(arguments, attach=False)


@request("attach", arguments=dict[str, Any])
def _attach(session: DapSession, arguments: dict[str, Any]) -> None:
    session.launch(arguments, attach=True)


@request("configurationDone", arguments=NoArguments)
def _configuration_done(session: DapSession, _arguments: NoArguments) -> None:
    run = session.run
    if session.is_configured:
        return
    session.is_configured = True
    if run.stops_on_entry and run.is_debugged:
        session.after = lambda: session.tell_stop("entry")
    elif run.is_debugged:
        session.move(run.debugger.continue_, goes_on=True)
    else:
        session.move(run.debugger.last)


@request("restart", arguments=NoArguments, moves=True)
def _restart(session: DapSession, _arguments: NoArguments) -> None:
    session.move(session.run.from_the_start, "restart")


@request("disconnect", "terminate", arguments=NoArguments, needs_run=False)
def _end(session: DapSession, _arguments: NoArguments) -> None:
    session.end()


@request("threads", arguments=NoArguments)
def _threads(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    return {"threads": [{"id": THREAD, "name": session.run.title if session.has_run else "no run yet"}]}


@request("pause", arguments=NoArguments, needs_run=False)
def _pause(_session: DapSession, _arguments: NoArguments) -> None:
    """Answer a pause of what is not under way: nothing. One of a movement is heard before (see adapter.py)."""


@request("cancel", arguments=CancelArguments, needs_run=False)
def _cancel(_session: DapSession, _arguments: CancelArguments) -> None:
    """Answer as with `pause`."""
