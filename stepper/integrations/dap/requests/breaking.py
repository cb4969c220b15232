"""Requests about breakpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.findings import Finding
from stepper.errors import StepperError
from stepper.integrations.dap.breakpoints import value_break
from stepper.integrations.dap.messages import (
    BreakpointLines,
    ExceptionFilters,
    LineBreakpoints,
    NamedBreakpoints,
    ShownBreakpoint,
    ValueBreakpointQuestion,
    ValueBreakpoints,
)
from stepper.integrations.dap.requests.evaluating import address_in
from stepper.integrations.dap.requests.registry import request
from stepper.integrations.dap.session import DapSession, DebuggedRun
from stepper.integrations.dap.source import is_source
from stepper.integrations.dap.stack import program_of
from stepper.query.address_syntax import parse_address

_SECONDS = 20.0
"""Seconds that a check may take while a client waits."""


def _shown(found: list[ShownBreakpoint]) -> dict[str, Any]:
    return {"breakpoints": found}


@request("setBreakpoints", arguments=LineBreakpoints)
def _set_lines(session: DapSession, arguments: LineBreakpoints) -> dict[str, Any]:
    run = session.run
    if not is_source(arguments.source, run.source):
        where = run.source.path or f"the source '{run.source.name}'"
        message = f"the run is listed in {where}; set breakpoints there"
        return _shown([ShownBreakpoint(verified=False, message=message) for _ in arguments.breakpoints])
    return _shown(run.breakpoints.set_lines(arguments.breakpoints, session.line_offset))


@request("breakpointLocations", arguments=BreakpointLines)
def _locations(session: DapSession, arguments: BreakpointLines) -> dict[str, Any]:
    run, offset = session.run, session.line_offset
    if not is_source(arguments.source, run.source):
        return {"breakpoints": []}
    end = arguments.line if arguments.end_line is None else arguments.end_line
    lines = run.listing.between(arguments.line + offset, end + offset)
    return {"breakpoints": [{"line": line - offset} for line in lines]}


@request("setFunctionBreakpoints", arguments=NamedBreakpoints)
def _set_names(session: DapSession, arguments: NamedBreakpoints) -> dict[str, Any]:
    return _shown(session.run.breakpoints.set_names(arguments.breakpoints))


@request("setExceptionBreakpoints", arguments=ExceptionFilters)
def _set_exceptions(session: DapSession, arguments: ExceptionFilters) -> dict[str, Any]:
    return _shown(session.run.breakpoints.set_exceptions(arguments, lambda: _findings(session.run)))


def _findings(run: DebuggedRun) -> Iterable[Finding]:
    """Return what `check` finds at places in another run of the model; it costs about one."""
    other = run.debugger.on_form(run.debugger.model)
    return [one for one in check_run(other, seconds=_SECONDS).findings if one.address]


@request("dataBreakpointInfo", arguments=ValueBreakpointQuestion)
def _value_question(session: DapSession, arguments: ValueBreakpointQuestion) -> dict[str, Any]:
    run = session.run
    try:
        if arguments.variables_reference:
            address = run.variables.address(arguments.variables_reference, arguments.name)
        else:
            where = program_of(run.debugger, arguments.frame_id)
            run.names.target(parse_address(arguments.name), where)
            address = address_in(run, arguments.name, arguments.frame_id)
        found = value_break(run.debugger, address)
    except StepperError as error:
        return {"dataId": None, "description": str(error).splitlines()[0]}
    return {"dataId": found, "description": found, "accessTypes": ["write"], "canPersist": True}


@request("setDataBreakpoints", arguments=ValueBreakpoints)
def _set_values(session: DapSession, arguments: ValueBreakpoints) -> dict[str, Any]:
    return _shown(session.run.breakpoints.set_values(arguments.breakpoints))
