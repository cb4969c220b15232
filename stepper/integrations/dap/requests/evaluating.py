"""Requests with words of the user: expressions, commands in the console, their completion, and other values."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from stepper.commands.session import command_called
from stepper.debug.stop_scope import StopScope
from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.messages import (
    CompletionArguments,
    EvaluateArguments,
    SetExpressionArguments,
    SetVariableArguments,
    ShownCompletion,
    ShownResult,
    ShownVariable,
)
from stepper.integrations.dap.requests.registry import request
from stepper.integrations.dap.session import DapSession, DebuggedRun
from stepper.integrations.dap.stack import program_of
from stepper.query.address_resolution import address_of
from stepper.query.address_syntax import parse_address
from stepper.query.expressions import parse

_LONGEST: Final = 10_000
_MOST_COMPLETIONS: Final = 200
_PRINT: Final = "print "
_ABOUT: Final = re.compile(r"(?P<word>\S+)\s+(?P<address>\S+)(?P<rest>.*)", re.DOTALL)
"""A command about a value, such as `why h[0,3]` or `set h = 0`."""
_VALUES: Final = ("ADDR", "EXPR", "TARGET", "N|tick N|ADDR")
"""With these begins the syntax of such a command."""


@request("evaluate", arguments=EvaluateArguments)
def _evaluate(session: DapSession, arguments: EvaluateArguments) -> ShownResult:
    text = _line(arguments.expression)
    if arguments.context != "repl":
        return _value(session.run, text, arguments.frame_id)
    if not _is_command(text):
        try:
            return _value(session.run, text, arguments.frame_id)
        except StepperError:
            pass  # the interpreter says what there is
    return _carried_out(session, text, arguments.frame_id)


def _line(text: str) -> str:
    if len(text) > _LONGEST:
        raise UsageError(f"at most {_LONGEST:,} characters are read")
    return " ".join(text.splitlines())


def _is_command(text: str) -> bool:
    try:
        command_called(text.strip().partition(" ")[0])
    except UsageError:
        return not text.strip()
    return True


def _value(run: DebuggedRun, text: str, frame: int | None) -> ShownResult:
    where = program_of(run.debugger, frame)
    with run.debugger.working():
        value = parse(text).evaluate(StopScope(run.debugger.timeline, run.names, where))
    shown = run.variables.shown(text, value, _address(run, text, frame))
    return _as_value(shown)


def address_in(run: DebuggedRun, text: str, frame: int | None) -> str:
    """Return how the debugger calls what a text names in a frame; it is another where an inner loop has the name, too.

    UsageError for what it does not name.
    """
    where, compiled = program_of(run.debugger, frame), run.debugger.machine.compiled
    if where is run.debugger.machine.program:
        return text
    address = parse_address(text.strip())
    full = address_of(run.names.target(address, where), compiled)
    return str(replace(full, iterations=address.iterations, index=address.index))


def _as_value(shown: ShownVariable) -> ShownResult:
    return ShownResult(
        shown.value, shown.variables_reference, shown.type, shown.indexed_variables, shown.memory_reference
    )


def _address(run: DebuggedRun, text: str, frame: int | None) -> str:
    """Return the text if it is the name of a whole value, whose elements have names then, too."""
    try:
        address = parse_address(text.strip())
    except UsageError:
        return ""
    return "" if address.index or address.operation is None else address_in(run, text.strip(), frame)


def _carried_out(session: DapSession, text: str, frame: int | None) -> ShownResult:
    """Carry out a command, whose names are those of a frame; without one those of the innermost."""
    run = session.run
    before, frames = run.debugger.stop, len(run.debugger.machine.stack)
    program_of(run.debugger, frame)  # says where there is none
    run.interpreter.session.width = 120
    run.interpreter.session.level = 0 if frame is None or not frames else frames - frame
    text = _of_frame(run, text, frame)
    try:
        with session.working():
            answer = run.interpreter.execute(text)
    finally:
        if run.debugger.stop is not before:
            run.variables.forget()
            session.after = lambda: session.tell_stop("step")
    if run.interpreter.session.ended:
        session.end()
    return ShownResult("\n".join(answer.lines), 0)


def _of_frame(run: DebuggedRun, text: str, frame: int | None) -> str:
    """Return a command with the address that it begins with as the debugger calls it, where it begins with one."""
    match = _ABOUT.fullmatch(text)
    if match is None:
        return text
    try:
        if not command_called(match["word"]).syntax.startswith(_VALUES):
            return text
        return f"{match['word']} {address_in(run, match['address'], frame)}{match['rest']}"
    except StepperError:  # no address, as of a command of another kind; or it is for the command to refuse
        return text


# --- other values ---------------------------------------------------------------------------------------------------


@request("setVariable", arguments=SetVariableArguments)
def _set_variable(session: DapSession, arguments: SetVariableArguments) -> dict[str, Any]:
    address = session.run.variables.address(arguments.variables_reference, arguments.name)
    return _set(session, address, arguments.value)


@request("setExpression", arguments=SetExpressionArguments)
def _set_expression(session: DapSession, arguments: SetExpressionArguments) -> dict[str, Any]:
    return _set(session, address_in(session.run, _line(arguments.expression), arguments.frame_id), arguments.value)


def _set(session: DapSession, address: str, value: str) -> dict[str, Any]:
    """Put another value there, which begins a branch of the run."""
    run = session.run
    before = run.debugger.branches.title
    run.interpreter.execute(f"set {address} = {_line(value)}")
    run.variables.renew()
    if run.debugger.branches.title != before:
        session.say(f"{run.debugger.branches.title}: `undo` takes it back, `branch original` leaves it")
    if session.client.supports_invalidated_event:
        session.after = lambda: session.send("invalidated", {"areas": ["all"]})
    return as_dict(_value(run, address, None), value=True)


def as_dict(shown: ShownResult, *, value: bool) -> dict[str, Any]:
    """Return a value as the answer of a request that sets it: there the result is called so."""
    found = {"value" if value else "result": shown.result, "variablesReference": shown.variables_reference}
    return {**found, "type": shown.type}


# --- completion -----------------------------------------------------------------------------------------------------


@request("completions", arguments=CompletionArguments)
def _completions(session: DapSession, arguments: CompletionArguments) -> dict[str, Any]:
    """Answer with the commands that fit, and with the names that do."""
    run = session.run
    column = max(arguments.column - (1 if session.client.columns_start_at1 else 0), 0)
    line = _line(arguments.text)[:column]
    found = [
        ShownCompletion(one.word, one.line, 0, len(line), one.what, "keyword" if not one.form else "value")
        for one in run.completer.of_session(line, run.interpreter.session)
    ]
    if not _is_command(line) or " " not in line:
        values = run.completer.of_session(_PRINT + line, run.interpreter.session)
        found += [
            ShownCompletion(one.word, one.line.removeprefix(_PRINT), 0, len(line), one.form or one.what, "value")
            for one in values
        ]
    return {"targets": found[:_MOST_COMPLETIONS]}
