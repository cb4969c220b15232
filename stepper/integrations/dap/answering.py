"""Requests of the protocol by name: what each carries, and the function that answers it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, TypeVar

from msgspec import defstruct
from msgspec.structs import asdict, replace

from stepper.commands.command_session import command_called
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Stop
from stepper.debug.stop_scope import StopScope
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.rule import Finding
from stepper.engine.program import LoopPlan
from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.dap_breakpoints import FILTERS, FINDINGS, USUAL, is_of_a_loop, value_break
from stepper.integrations.dap.dap_session import THREAD, DapSession, DebuggedRun
from stepper.integrations.dap.listing import is_source, program_of, restart_tick, shown_frames
from stepper.integrations.dap.messages import (
    CancelArguments,
    ExceptionOption,
    InitializeArguments,
    LineBreakpoint,
    NamedBreakpoint,
    ShownBreakpoint,
    ShownCompletion,
    ShownResult,
    ShownTarget,
    SourceArguments,
    SourceRequest,
    ValueBreakpoint,
)
from stepper.integrations.following import BodyFigure, FollowedStop
from stepper.query.address_resolution import address_of
from stepper.query.address_syntax import parse_address
from stepper.query.expressions import parse
from stepper.records import Record


class RequestKind(Record, eq=False):
    """A request: the type of its arguments, and what answers it with a body (None: an empty one).

    `moves`: the run moves when it is answered. `needs_run`: it asks or changes the run, which is for one thread.
    """

    arguments: Any
    answer: Callable[[DapSession, Any], Any]
    moves: bool = False
    needs_run: bool = True


Body = dict[str, Any]
"""Of an answer."""
REQUESTS: Final[dict[str, RequestKind]] = {}
"""All requests, by name."""
_Answer = TypeVar("_Answer", bound=Callable[..., Any])


def request(
    *names: str, arguments: Any = None, moves: bool = False, needs_run: bool = True
) -> Callable[[_Answer], _Answer]:
    """Register a function as what answers the requests of these names.

    Its arguments behind the session are those of the request, or it takes `arguments` as one.
    """

    def register(answer: _Answer) -> _Answer:
        kind = RequestKind(arguments, answer, moves, needs_run)
        if arguments is None:
            _session, *given = inspect.signature(answer, eval_str=True).parameters.values()
            fields = [
                (one.name, one.annotation) if one.default is one.empty else (one.name, one.annotation, one.default)
                for one in given
            ]
            struct = defstruct(answer.__name__, fields, rename="camel", frozen=True)
            kind = replace(kind, arguments=struct, answer=lambda session, found: answer(session, **asdict(found)))
        REQUESTS.update(dict.fromkeys(names, kind))
        return answer

    return register


_CAN = """
    ConfigurationDoneRequest StepBack RestartFrame RestartRequest GotoTargetsRequest StepInTargetsRequest
    FunctionBreakpoints ConditionalBreakpoints HitConditionalBreakpoints LogPoints DataBreakpoints
    BreakpointLocationsRequest ExceptionFilterOptions ExceptionInfoRequest EvaluateForHovers ClipboardContext
    CompletionsRequest SetVariable SetExpression ReadMemoryRequest LoadedSourcesRequest TerminateRequest
    CancelRequest
"""
"""Supported features, by the names of the protocol."""


@request("initialize", arguments=InitializeArguments, needs_run=False)
def _initialize(session: DapSession, arguments: InitializeArguments) -> Body:
    session.client = arguments
    filters = [
        {"filter": name, "label": label, "default": name in USUAL, "supportsCondition": is_of_a_loop(name)}
        | ({"conditionDescription": "the name of a loop; without one any"} if is_of_a_loop(name) else {})
        for name, label in FILTERS.items()
    ]
    filters.append({"filter": FINDINGS, "label": "Findings of stepper check", "default": False})
    return {
        **{f"supports{what}": True for what in _CAN.split()},
        "completionTriggerCharacters": [" ", "["],
        "exceptionBreakpointFilters": filters,
    }


@request("launch", arguments=dict[str, Any])
def _launch(session: DapSession, arguments: dict[str, Any]) -> None:
    session.launch(arguments, attach=False)


@request("attach", arguments=dict[str, Any])
def _attach(session: DapSession, arguments: dict[str, Any]) -> None:
    session.launch(arguments, attach=True)


@request("configurationDone")
def _configuration_done(session: DapSession) -> None:
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


@request("restart", moves=True)
def _restart(session: DapSession) -> None:
    session.move(session.run.from_the_start, "restart")


@request("disconnect", "terminate", needs_run=False)
def _end(session: DapSession) -> None:
    session.end()


@request("threads")
def _threads(session: DapSession) -> Body:
    return {"threads": [{"id": THREAD, "name": session.run.title if session.has_run else "no run yet"}]}


@request("pause", needs_run=False)
def _pause(_session: DapSession) -> None:
    """Answer a pause of what is not under way: nothing. One of a movement is heard before (see adapter.py)."""


@request("cancel", arguments=CancelArguments, needs_run=False)
def _cancel(_session: DapSession, _arguments: CancelArguments) -> None:
    """Answer as with `pause`."""


_Verb = Callable[[Debugger], Stop]


def _moves(name: str, verb: _Verb, *, goes_on: bool = False) -> None:
    """Register a request that is a verb of the debugger."""

    @request(name, moves=True)
    def answer(session: DapSession) -> Body:
        debugger = session.run.debugger
        session.move(lambda: verb(debugger), goes_on=goes_on)
        return {"allThreadsContinued": True}


_moves("continue", lambda debugger: debugger.continue_(), goes_on=True)
_moves("reverseContinue", lambda debugger: debugger.reverse_continue(), goes_on=True)
_moves("next", lambda debugger: debugger.next())
_moves("stepBack", lambda debugger: debugger.reverse_next())
_moves("stepOut", lambda debugger: debugger.finish())


@request("stepIn", moves=True)
def _step_in(session: DapSession, target_id: int | None = None) -> None:
    run = session.run
    if target_id is None:
        session.move(run.debugger.step)
        return
    place = run.listing.place(target_id)
    if place is None:
        raise UsageError(f"there is nothing to step into at {target_id}")
    address = run.listing.address(place)
    session.move(lambda: run.debugger.run_to(address))


@request("stepInTargets")
def _step_in_targets(session: DapSession, frame_id: int) -> Body:
    """Answer with the loops, and the sides of each If, that come next in the innermost frame."""
    run = session.run
    stack = run.debugger.machine.stack
    if not stack or frame_id != len(stack):
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


@request("restartFrame", moves=True)
def _restart_frame(session: DapSession, frame_id: int) -> None:
    debugger = session.run.debugger
    tick = restart_tick(debugger, frame_id - 1)
    session.move(lambda: debugger.goto_tick(tick), "restart")


@request("gotoTargets")
def _goto_targets(session: DapSession, source: SourceArguments, line: int) -> Body:
    """Answer with where a line is in time: in this iteration, and the next time that the run comes there."""
    run, offset = session.run, session.line_offset
    at = run.listing.nearest(line + offset) if is_source(source, run.source) else None
    place = None if at is None else run.listing.place(at)
    if at is None or place is None:
        return {"targets": []}
    name = place.layer.name
    labels = (f"{name}, in this iteration", f"{name}, the next time")
    targets = [ShownTarget(2 * at + way, label, at - offset) for way, label in enumerate(labels)]
    return {"targets": targets}


@request("goto", moves=True)
def _goto(session: DapSession, target_id: int) -> None:
    run = session.run
    line, way = divmod(target_id, 2)
    place = run.listing.place(line)
    if place is None:
        raise UsageError(f"there is no target {target_id}; ask for the targets of a line")
    address = run.listing.address(place)
    verb = run.debugger.run_to if way else run.debugger.goto
    session.move(lambda: verb(address), "goto")


_LONGEST = 10_000
_MOST_COMPLETIONS = 200
_PRINT = "print "
_ABOUT = re.compile(r"(?P<word>\S+)\s+(?P<address>\S+)(?P<rest>.*)", re.DOTALL)
"""A command about a value, such as `why h[0,3]` or `set h = 0`."""
_VALUES = ("ADDR", "EXPR", "TARGET", "N|tick N|ADDR")
"""With these begins the syntax of such a command."""


@request("evaluate")
def _evaluate(session: DapSession, expression: str, frame_id: int | None = None, context: str = "") -> ShownResult:
    text = _line(expression)
    if context != "repl":
        return _value(session.run, text, frame_id)
    if not _is_command(text):
        try:
            return _value(session.run, text, frame_id)
        except StepperError:
            pass  # the interpreter says what there is
    return _carried_out(session, text, frame_id)


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
    return ShownResult(
        shown.value, shown.variables_reference, shown.type, shown.indexed_variables, shown.memory_reference
    )


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


@request("setVariable")
def _set_variable(session: DapSession, variables_reference: int, name: str, value: str) -> Body:
    address = session.run.variables.address(variables_reference, name)
    return _set(session, address, value)


@request("setExpression")
def _set_expression(session: DapSession, expression: str, value: str, frame_id: int | None = None) -> Body:
    return _set(session, address_in(session.run, _line(expression), frame_id), value)


def _set(session: DapSession, address: str, value: str) -> Body:
    """Put another value there, which begins a branch of the run."""
    run = session.run
    before = run.debugger.branches.title
    run.interpreter.execute(f"set {address} = {_line(value)}")
    run.variables.renew()
    if run.debugger.branches.title != before:
        session.say(f"{run.debugger.branches.title}: `undo` takes it back, `branch original` leaves it")
    if session.client.supports_invalidated_event:
        session.after = lambda: session.send("invalidated", {"areas": ["all"]})
    shown = _value(run, address, None)
    return {"value": shown.result, "variablesReference": shown.variables_reference, "type": shown.type}


# --- completion -----------------------------------------------------------------------------------------------------


@request("completions")
def _completions(session: DapSession, text: str, column: int) -> Body:
    """Answer with the commands that fit, and with the names that do."""
    run = session.run
    column = max(column - (1 if session.client.columns_start_at1 else 0), 0)
    line = _line(text)[:column]
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


def _shown(found: list[ShownBreakpoint]) -> Body:
    return {"breakpoints": found}


@request("setBreakpoints")
def _set_lines(session: DapSession, source: SourceArguments, breakpoints: Sequence[LineBreakpoint] = ()) -> Body:
    run = session.run
    if is_source(source, run.source):
        return _shown(run.breakpoints.set_lines(breakpoints, session.line_offset))
    if run.is_model(source):
        return _shown(run.breakpoints.set_model_lines(breakpoints, session.line_offset))
    where = run.source.path or f"the source '{run.source.name}'"
    message = f"the run is listed in {where}; set breakpoints there"
    return _shown([ShownBreakpoint(verified=False, message=message) for _ in breakpoints])


@request("breakpointLocations")
def _locations(session: DapSession, source: SourceArguments, line: int, end_line: int | None = None) -> Body:
    run, offset = session.run, session.line_offset
    if not is_source(source, run.source):
        return {"breakpoints": []}
    end = line if end_line is None else end_line
    lines = run.listing.between(line + offset, end + offset)
    return {"breakpoints": [{"line": line - offset} for line in lines]}


@request("setFunctionBreakpoints")
def _set_names(session: DapSession, breakpoints: list[NamedBreakpoint]) -> Body:
    return _shown(session.run.breakpoints.set_names(breakpoints))


@request("setExceptionBreakpoints")
def _set_exceptions(
    session: DapSession, filters: Sequence[str] = (), filter_options: Sequence[ExceptionOption] = ()
) -> Body:
    return _shown(session.run.breakpoints.set_exceptions(filters, filter_options, lambda: _findings(session.run)))


def _findings(run: DebuggedRun) -> Iterable[Finding]:
    """Return what `check` finds at places in another run of the model; it costs about one."""
    other = run.debugger.on_form(run.debugger.model)
    return [one for one in check_run(other, seconds=_SECONDS).findings if one.address]


@request("dataBreakpointInfo")
def _value_question(session: DapSession, name: str, variables_reference: int = 0, frame_id: int | None = None) -> Body:
    run = session.run
    try:
        if variables_reference:
            address = run.variables.address(variables_reference, name)
        else:
            where = program_of(run.debugger, frame_id)
            run.names.target(parse_address(name), where)
            address = address_in(run, name, frame_id)
        found = value_break(run.debugger, address)
    except StepperError as error:
        return {"dataId": None, "description": str(error).splitlines()[0]}
    return {"dataId": found, "description": found, "accessTypes": ["write"], "canPersist": True}


@request("setDataBreakpoints")
def _set_values(session: DapSession, breakpoints: list[ValueBreakpoint]) -> Body:
    return _shown(session.run.breakpoints.set_values(breakpoints))


@request("stackTrace")
def _stack_trace(session: DapSession, start_frame: int | None = None, levels: int | None = None) -> Body:
    run, offset = session.run, session.line_offset
    frames = shown_frames(run.debugger, run.listing, run.source)
    start = max(start_frame or 0, 0)
    end = start + levels if levels else len(frames)
    column = 1 if session.client.columns_start_at1 else 0
    shown = [replace(one, line=one.line - offset, column=column) for one in frames[start:end]]
    return {"stackFrames": shown, "totalFrames": len(frames)}


@request("scopes")
def _scopes(session: DapSession, frame_id: int) -> Body:
    return {"scopes": session.run.variables.scopes(frame_id - 1)}


@request("variables")
def _variables(
    session: DapSession,
    variables_reference: int,
    filter: Literal["indexed", "named"] | None = None,
    start: int | None = None,
    count: int | None = None,
) -> Body:
    variables = session.run.variables
    if filter is not None and (filter == "indexed") != variables.is_indexed(variables_reference):
        return {"variables": []}
    found = variables.page(variables_reference, start or 0, count or 0)
    return {"variables": found}


@request("readMemory")
def _read_memory(session: DapSession, memory_reference: str, count: int, offset: int = 0) -> Body:
    data, missing = session.run.variables.memory(memory_reference, offset, count)
    return {"address": hex(max(offset, 0)), "data": data, "unreadableBytes": missing}


@request("loadedSources")
def _loaded_sources(session: DapSession) -> Body:
    return {"sources": [session.run.source]}


@request("source", arguments=SourceRequest)
def _source(session: DapSession, _arguments: SourceRequest) -> Body:
    return {"content": session.run.text}


@request("exceptionInfo")
def _exception_info(session: DapSession) -> Body:
    run = session.run
    stop = run.debugger.stop
    text = run.story
    finding = run.finding_of(stop.cause)
    kind = "error" if run.failure else "none" if stop.cause is None else stop.cause.kind
    kind = kind if finding is None or run.failure else finding.rule
    details = {"message": text, "typeName": kind, "stackTrace": stop.place}
    return {"exceptionId": kind, "description": text, "breakMode": "always", "details": details}


@request("stepper/stop")
def _stop(session: DapSession) -> FollowedStop:
    """Answer with where the session stands: the number of a figure, the id of a box in it, a column's `data-goto`."""
    return session.run.follower.stop()


@request("stepper/values")
def _line_values(session: DapSession, frame_id: int, line: int, end_line: int) -> Body:
    """Answer with the values to show behind lines of the listing, as text."""
    run, offset = session.run, session.line_offset
    found = run.variables.line_values(run.listing, frame_id - 1, range(line + offset, end_line + offset + 1))
    return {"values": [{"line": at - offset, "text": text} for at, text in found]}


@request("stepper/figure")
def _figure(session: DapSession, figure: int) -> BodyFigure:
    """Answer with a figure: SVG, and the addresses of its boxes by their ids."""
    return session.run.follower.figure(figure)


@request("stepper/overview")
def _overview(session: DapSession) -> Body:
    """Answer with the overview of the run as HTML, without a script: columns have `data-goto`."""
    with session.working():
        return {"html": session.run.follower.overview()}
