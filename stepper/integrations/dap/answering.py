"""Requests of the protocol by name: what each carries, and the function that answers it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stepper.commands.session import command_called
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Stop
from stepper.debug.stop_scope import StopScope
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.findings import Finding
from stepper.engine.program import LoopPlan
from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.breakpoints import FILTERS, FINDINGS, USUAL, is_of_a_loop, value_break
from stepper.integrations.dap.messages import (
    BreakpointLines,
    CancelArguments,
    CompletionArguments,
    EvaluateArguments,
    ExceptionFilters,
    FigureArguments,
    FrameArguments,
    GotoArguments,
    GotoLine,
    InitializeArguments,
    LineBreakpoints,
    MemoryArguments,
    NamedBreakpoints,
    NoArguments,
    SetExpressionArguments,
    SetVariableArguments,
    ShownBreakpoint,
    ShownCompletion,
    ShownResult,
    ShownTarget,
    ShownVariable,
    SourceRequest,
    StackArguments,
    StepInArguments,
    ValueBreakpointQuestion,
    ValueBreakpoints,
    VariablesArguments,
)
from stepper.integrations.dap.session import THREAD, DapSession, DebuggedRun
from stepper.integrations.dap.stack import is_source, program_of, restart_tick, shown_frames
from stepper.query.address_resolution import address_of
from stepper.query.address_syntax import parse_address
from stepper.query.expressions import parse
from stepper.records import Record, as_data

A = TypeVar("A", bound=Struct)


class RequestKind(Record, eq=False):
    """A request: the type of its arguments, and what answers it with a body (None: an empty one).

    `moves`: the run moves when it is answered. `needs_run`: it asks or changes the run, which is for one thread.
    """

    arguments: Any
    answer: Callable[[DapSession, Any], Any]
    moves: bool = False
    needs_run: bool = True


REQUESTS: Final[dict[str, RequestKind]] = {}
"""All requests, by name."""


def request(
    *names: str, arguments: type[A] | Any, moves: bool = False, needs_run: bool = True
) -> Callable[[Callable[[DapSession, A], Any]], Callable[[DapSession, A], Any]]:
    """Register a function as what answers the requests of these names."""

    def register(answer: Callable[[DapSession, A], Any]) -> Callable[[DapSession, A], Any]:
        for name in names:
            REQUESTS[name] = RequestKind(arguments, answer, moves, needs_run)
        return answer

    return register


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


@request("stepper/stop", arguments=NoArguments)
def _stop(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    """Answer with where the session stands: the number of a figure, the id of a box in it, a column's `data-goto`."""
    found: dict[str, Any] = as_data(session.run.follower.stop())
    return found


@request("stepper/figure", arguments=FigureArguments)
def _figure(session: DapSession, arguments: FigureArguments) -> dict[str, Any]:
    """Answer with a figure: SVG, and the addresses of its boxes by their ids."""
    found: dict[str, Any] = as_data(session.run.follower.figure(arguments.figure))
    return found


@request("stepper/overview", arguments=NoArguments)
def _overview(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    """Answer with the overview of the run as HTML, without a script: columns have `data-goto`."""
    with session.working():
        return {"html": session.run.follower.overview()}
