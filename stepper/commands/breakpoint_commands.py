"""Commands that say where the run is to stop, and what it is to write on the way."""

from __future__ import annotations

import re
from typing import Any

from stepper.commands.command_session import Answer, Session, command, command_called, number, required, watch_text
from stepper.debug.breakpoints.breakpoint import BEGUN, BreakDescription, BreakKind, Breakpoint, closed
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.debug.inspection.views import MOST_PLACES
from stepper.debug.stop_scope import Watch, ensure_format
from stepper.engine.program import Program
from stepper.errors import UsageError
from stepper.ir.model import Model, layer_data
from stepper.query.address_syntax import parse_address

SILENT = "silent"
END = "end"
_PARTS = re.compile(r"""(?:`[^`]*`|"[^"]*"|[^;])+""")
_MOST = 100
_UNFIT = frozenset({"commands", "source", "session", "history", "save", "trust"})
"""They read commands, write files, or agree in the user's place."""


def put_commands(session: Session, which: int, lines: list[str]) -> Answer:
    """Attach the commands to a breakpoint; none take away those that it had. UsageError for what cannot be one."""
    lines = [line for line in lines if line]
    if lines == [END]:
        lines = []
    if len(lines) > _MOST:
        raise UsageError(f"a breakpoint has at most {_MOST} commands")
    for line in lines:
        ensure_fit(line)
    breakpoint = session.debugger.breakpoints.attach(which, tuple(lines))
    session.history.append(f"commands {which} {'; '.join(lines) or END}")
    shown = "; ".join(lines) or "nothing"
    return Answer((f"breakpoint {which} does: {shown}",), {"number": breakpoint.number, "commands": lines})


def ensure_fit(line: str) -> None:
    """Raise UsageError for a line that cannot be a command of a breakpoint, and for an unknown command."""
    word = line.partition(" ")[0]
    if word not in ("", SILENT) and (name := command_called(word).name) in _UNFIT:
        raise UsageError(f"'{name}' cannot be a command of a breakpoint")


def collected(session: Session, line: str) -> Answer:
    """Return a line that was typed behind `commands N`."""
    assert session.collecting is not None
    which, lines = session.collecting
    if line != END:
        lines.append(required(line, "a command"))
        return Answer()
    session.collecting = None
    return put_commands(session, which, lines)


def command_lines(breakpoint: Breakpoint) -> list[str]:
    """Return the commands as a list of breakpoints shows them."""
    mark = "  (needs trust)" if breakpoint.description.need_trust else ""
    return [f"     {line}{mark}" for line in breakpoint.description.commands]


def ensure_complete(session: Session, file: str) -> None:
    """Raise UsageError where a file ends in the middle of the commands of a breakpoint."""
    if session.collecting is not None:
        which, session.collecting = session.collecting[0], None
        raise UsageError(f"{file}: the commands of breakpoint {which} have no end")


# --- the commands ---------------------------------------------------------------------------------------------------


_LOG = re.compile(r'(?P<target>.*?)\s*"(?P<line>.*)"(?:\s+if\s+(?P<condition>.+))?')
_BREAKS = "TARGET [if EXPR] [hit N [exactly]] [once] | when EXPR | nan|inf|cond|stuck|grow>X|changes ADDR|..."


@command("break", "b", syntax=_BREAKS, help="stop at an operation or iteration, or for something about values")
def _break(session: Session, text: str) -> Answer:
    return _set(session, session.debugger.breakpoints.add(break_description(required(text, "what to stop at"))))


@command("change", syntax=f"N {_BREAKS}", help="change breakpoint N; its hits start at 0")
def _change(session: Session, text: str) -> Answer:
    word, _, rest = text.partition(" ")
    which = number(required(word, "the number of a breakpoint"), "the number of a breakpoint")
    breakpoints = session.debugger.breakpoints
    kind = breakpoints[which].description.kind
    rest = required(rest.strip(), "what to stop at")
    found = _log_description(session, rest) if kind is BreakKind.LOG else break_description(rest)
    return _set(session, breakpoints.change(which, found))


@command("log", syntax='[TARGET] "TEXT {EXPR}" [if EXPR]', help="write a line each time, and do not stop")
def _log(session: Session, text: str) -> Answer:
    return _set(session, session.debugger.breakpoints.add(_log_description(session, text)))


def _log_description(session: Session, text: str) -> BreakDescription:
    match = _LOG.fullmatch(text)
    if match is None:
        raise UsageError('a line in double quotes is missing, such as log h_next "{iter}: {max(h_next)}"')
    target = match["target"] or _here(session)
    return BreakDescription(BreakKind.LOG, target, match["condition"] or "", line=match["line"])


def _here(session: Session) -> str:
    done = session.debugger.stop.done
    if done is None:
        raise UsageError("no operation has just run here; say at which one the line is to be written")
    return f"id={done.layer.id}"


def _set(session: Session, breakpoint: Breakpoint) -> Answer:
    lines = [f"breakpoint {breakpoint.number}: {breakpoint.description}"]
    lines += [f"  {breakpoint.note}"] if breakpoint.note else []
    return Answer(tuple(lines), _data(session, breakpoint))


def _data(session: Session, breakpoint: Breakpoint) -> dict[str, Any]:
    description, model = breakpoint.description, session.debugger.model
    places = breakpoint.checks if description.kind is not BreakKind.WHEN else ()
    return {
        "number": breakpoint.number,
        "kind": str(description.kind),
        "text": description.text,
        "condition": description.condition,
        "hits": breakpoint.hits,
        "enabled": description.enabled,
        "places": [_place_data(check.program, check.index, model) for check in places[:MOST_PLACES]],
        "place_count": len(places),
        "commands": list(description.commands),
        "need_trust": description.need_trust,
        "note": breakpoint.note,
    }


def _place_data(program: Program, index: int, model: Model) -> dict[str, Any]:
    """Return where a breakpoint sits: after an operation, or where an iteration of a body begins or is closed."""
    path = [layer_data(layer, model) for layer in program.path]
    if 0 <= index < closed(program):
        return {"when": "after", "layer": layer_data(program.operations[index].layer, model), "path": path}
    return {"when": "begins" if index == BEGUN else "closed", "layer": path[-1] if path else None, "path": path}


@command(
    "commands", syntax="[N] [COMMAND; COMMAND; ...]", help="run commands whenever breakpoint N stops: lines up to end"
)
def _commands(session: Session, text: str) -> Answer:
    word, _, rest = text.partition(" ")
    if word and not word.isdecimal():
        word, rest = "", text
    breakpoints = session.debugger.breakpoints
    latest = max((one.number for one in breakpoints), default=0)
    which = breakpoints[number(word) if word else latest].number
    if rest.strip():
        return put_commands(session, which, [part.strip() for part in _PARTS.findall(rest)])
    if not session.multiline:
        raise UsageError(f"write them in one line: commands {which} silent; print h; continue")
    session.collecting = (which, [])
    return Answer((f"type what to do when breakpoint {which} stops, a command a line, and then: end",))


@command("trust", syntax="[N]", help="let breakpoint N, or all, carry out the commands that came out of a file")
def _trust(session: Session, text: str) -> Answer:
    breakpoints = session.debugger.breakpoints
    breakpoints.trust(number(text, "the number of a breakpoint") if text else None)
    return breaks(session)


def breaks(session: Session) -> Answer:
    """Return the list of breakpoints."""
    found = list(session.debugger.breakpoints)
    lines = []
    for one in found:
        lines.append(f"{one.number}  {one.description}  ({one.hits} hit{'' if one.hits == 1 else 's'})")
        lines += command_lines(one)
    exceptions = session.debugger.breakpoints.exceptions
    lines += [f"NaN and Inf are expected in {', '.join(exceptions)}"] if exceptions else []
    data = {"breakpoints": [_data(session, one) for one in found], "exceptions": list(exceptions)}
    return Answer(tuple(lines or ["no breakpoints"]), data)


@command("watch", syntax="EXPR", help="show a value or an expression at every stop")
def _watch(session: Session, text: str) -> Answer:
    text = session.names.as_expression(required(text, "an expression"), session.where)
    return _watched(session.debugger.watch(text))


_FORMATTED = re.compile(r"(?P<expression>.*\S)\s*/(?P<format>[xbs]|[ef][0-9]{0,2})")
_OTHER_FORMAT = re.compile(r".*\S/(?P<format>[a-z][0-9]{0,2})")
"""A quotient that is meant as a format."""
_FORMAT_FIRST = re.compile(r"/(?P<format>[a-z0-9]+)\s+(?P<expression>\S.*)")
_DISPLAY = "EXPR[/FORMAT] | /FORMAT EXPR"


@command("display", syntax=_DISPLAY, help="watch EXPR in a format: x, e3, f2, b (booleans), s (statistics)")
def _display(session: Session, text: str) -> Answer:
    if not text:
        return watches(session)
    match = _FORMAT_FIRST.fullmatch(text) or _FORMATTED.fullmatch(text)
    if match is None:
        other = _OTHER_FORMAT.fullmatch(text)
        if other is not None and not _is_value(session, other["format"]):
            ensure_format(other["format"])
        return _watched(session.debugger.watch(text))
    expression, format = match["expression"], match["format"]
    if text[0] != "/" and _is_value(session, format):
        both = f"/{format} {expression} is a format, ({text}) a quotient"
        raise UsageError(f"'{text}': there is a value '{format}', too; display {both}")
    return _watched(session.debugger.watch(expression, format))


def _is_value(session: Session, name: str) -> bool:
    """Return True if something has the name of a format."""
    machine = session.debugger.machine
    try:
        session.names.target(parse_address(name), machine.program)
    except UsageError:
        return False
    return True


def _watched(watch: Watch) -> Answer:
    now = "" if watch.now is None else watch.now.shown or watch.now.text
    data = {"number": watch.number, "text": now, "expression": watch.text, "format": watch.format}
    return Answer((f"watch {watch.number}  {watch_text(watch)}",), data)


@command("unwatch", "undisplay", syntax="N", help="show it no longer")
def _unwatch(session: Session, text: str) -> Answer:
    session.debugger.watches.delete(number(text, "the number of a watch"))
    return Answer()


def watches(session: Session) -> Answer:
    """Return the list of watches with what they were at the last stops."""
    found = list(session.debugger.watches)
    lines = [f"{watch.number}  {watch_text(watch)}" for watch in found]
    data = [
        {"number": watch.number, "text": watch.text, "format": watch.format, "readings": len(watch.readings)}
        for watch in found
    ]
    return Answer(tuple(lines or ["no watches"]), {"watches": data})


@command("ignore", syntax="N K", help="do not stop at the next K hits of breakpoint N")
def _ignore(session: Session, text: str) -> Answer:
    words = text.split()
    if len(words) != 2:
        raise UsageError("the number of a breakpoint and a count are expected")
    session.debugger.breakpoints.ignore(number(words[0], "the number of a breakpoint"), number(words[1], "a count"))
    return Answer((f"breakpoint {words[0]} ignores the next {words[1]}",))


@command("except", syntax="PATTERN", help="NaN and Inf are expected in these operations")
def _except(session: Session, text: str) -> Answer:
    session.debugger.breakpoints.expect(required(text, "a pattern"))
    return Answer((f"NaN and Inf are expected in {text}",))


def _on_breakpoints(name: str, help: str) -> None:
    """Register a command that does something with one breakpoint, or with all."""

    @command(name, syntax="[N]", help=help)
    def change(session: Session, text: str) -> Answer:
        number_of = number(text, "the number of a breakpoint") if text else None
        getattr(session.debugger.breakpoints, name)(number_of)
        return breaks(session)


_on_breakpoints("delete", "take a breakpoint away, or all")
_on_breakpoints("enable", "let a breakpoint stop the run again, or all")
_on_breakpoints("disable", "keep a breakpoint, or all, but do not stop there")
