"""Requests that look at a stop: the stack, scopes, variables, memory, the source and the cause."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stepper.integrations.dap.messages import (
    FrameArguments,
    MemoryArguments,
    NoArguments,
    SourceRequest,
    StackArguments,
    VariablesArguments,
)
from stepper.integrations.dap.requests.registry import request
from stepper.integrations.dap.session import DapSession
from stepper.integrations.dap.stack import shown_frames


@request("stackTrace", arguments=StackArguments)
def _stack_trace(session: DapSession, arguments: StackArguments) -> dict[str, Any]:
    run, offset = session.run, session.line_offset
    frames = shown_frames(run.debugger, run.listing, run.source)
    start = max(arguments.start_frame or 0, 0)
    end = start + arguments.levels if arguments.levels else len(frames)
    column = 1 if session.client.columns_start_at1 else 0
    shown = [replace(one, line=one.line - offset, column=column) for one in frames[start:end]]
    return {"stackFrames": shown, "totalFrames": len(frames)}


@request("scopes", arguments=FrameArguments)
def _scopes(session: DapSession, arguments: FrameArguments) -> dict[str, Any]:
    return {"scopes": session.run.variables.scopes(arguments.frame_id - 1)}


@request("variables", arguments=VariablesArguments)
def _variables(session: DapSession, arguments: VariablesArguments) -> dict[str, Any]:
    variables = session.run.variables
    if arguments.filter is not None and (arguments.filter == "indexed") != variables.is_indexed(
        arguments.variables_reference
    ):
        return {"variables": []}
    found = variables.page(arguments.variables_reference, arguments.start or 0, arguments.count or 0)
    return {"variables": found}


@request("readMemory", arguments=MemoryArguments)
def _read_memory(session: DapSession, arguments: MemoryArguments) -> dict[str, Any]:
    data, missing = session.run.variables.memory(arguments.memory_reference, arguments.offset, arguments.count)
    return {"address": hex(max(arguments.offset, 0)), "data": data, "unreadableBytes": missing}


@request("loadedSources", arguments=NoArguments)
def _loaded_sources(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    return {"sources": [session.run.source]}


@request("source", arguments=SourceRequest)
def _source(session: DapSession, _arguments: SourceRequest) -> dict[str, Any]:
    return {"content": session.run.text}


@request("exceptionInfo", arguments=NoArguments)
def _exception_info(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    run = session.run
    stop = run.debugger.stop
    text = run.story
    finding = run.finding_of(stop.cause)
    kind = "error" if run.failure else "none" if stop.cause is None else stop.cause.kind
    kind = kind if finding is None or run.failure else finding.rule
    details = {"message": text, "typeName": kind, "stackTrace": f"{text}\n{stop.place}"}
    return {"exceptionId": kind, "description": text, "breakMode": "always", "details": details}
