"""Commands that show something and move nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.commands.breakpoint_commands import breaks, watches
from stepper.commands.command_session import Answer, Session, command, number, one_of, required, without_arguments
from stepper.debug.branches import Branch
from stepper.debug.causes.cause_texts import run_text
from stepper.debug.inspection.text import (
    by_text,
    edge_lines,
    port_lines,
    scan_lines,
    stack_lines,
    stop_lines,
    titled_lines,
    trip_data,
    trip_lines,
    value_lines,
    view_data,
)
from stepper.debug.inspection.views import LoopView, Series, source_text
from stepper.debug.labels import labelled, read_labels
from stepper.debug.scopes import NotRunning, loop_depth
from stepper.debug.stop_scope import StopScope
from stepper.debug.table.columns import loop_seen_from
from stepper.engine.frames import Frame, Phase, place
from stepper.engine.program import legend
from stepper.errors import UsageError
from stepper.files.output import ProtectedFiles
from stepper.ir.model import Source, layer_data
from stepper.plain_values import json_number, tensor_json
from stepper.query.address_resolution import Atlas, Target, layer_address, resolve
from stepper.query.address_syntax import (
    ALL_ITERATIONS,
    QUOTED,
    Address,
    AddressError,
    IterationRange,
    names_iteration,
    parse_address,
)
from stepper.query.expressions import parse
from stepper.records import as_data
from stepper.tensors.number_text import number_text
from stepper.tensors.statistics import statistics


def _loop(session: Session) -> LoopView:
    debugger = session.debugger
    try:
        return debugger.loop(session.depth if session.level else None)
    except UsageError as error:
        machine = debugger.machine
        near = loop_seen_from(machine, session.depth)
        if near is None:
            raise
        around = Atlas(machine.compiled).ancestor(near, len(near.path) - 1)
        name = layer_address(near.path[-1], around, machine.compiled)
        raise UsageError(f"{error}; goto {name} goes into one") from None


def _ports(session: Session) -> Answer:
    loop = _loop(session)
    return Answer(tuple(port_lines(loop)), {"ports": view_data(loop.ports, session.debugger.model)})


def _edges(session: Session) -> Answer:
    edges = _loop(session).back_edges
    lines = [line for edge in edges for line in edge_lines(edge)]
    data = view_data(edges, session.debugger.model)
    return Answer(tuple(lines or ["no back edges"]), {"back_edges": data})


def _scans(session: Session) -> Answer:
    scans = _loop(session).scans
    lines = [line for scan in scans for line in scan_lines(scan)]
    return Answer(tuple(lines or ["no scan outputs"]), {"scans": view_data(tuple(scans), session.debugger.model)})


def _trip(session: Session) -> Answer:
    loop = _loop(session)
    return Answer(tuple(trip_lines(loop)), trip_data(loop, session.debugger.model))


def _memory(session: Session) -> Answer:
    timeline = session.debugger.timeline
    history = timeline.history
    lines = [f"{len(history)} snapshots, {history.bytes:,} of {history.budget:,} bytes, {history.distance} ticks apart"]
    lines += timeline.warnings
    return Answer(tuple(lines), {"snapshots": len(history), "bytes": history.bytes, "budget": history.budget})


def _marks(session: Session) -> Answer:
    lines = [f"{name}  tick {mark.tick}, branch {mark.branch}" for name, mark in session.marks.items()]
    return Answer(tuple(lines or ["no marks"]), {"marks": as_data(session.marks)})


def branches(session: Session) -> Answer:
    """Return the branches, each below the one that it left, with where it stands and what was changed in it."""
    found = list(session.debugger.branches)
    lines = [line for branch, depth in _tree(found, "", 0) for line in _branch_lines(branch, depth)]
    data = [
        {
            **as_data(branch),
            "parent": branch.parent or None,
            "parted": branch.parted if branch.parent else None,
            "edits": [{"tick": tick, "text": text} for tick, text in branch.edits],
        }
        for branch in found
    ]
    return Answer(tuple(lines), {"branches": data})


def _tree(found: Sequence[Branch], parent: str, depth: int) -> Iterator[tuple[Branch, int]]:
    for branch in found:
        if branch.parent == parent:
            yield branch, depth
            yield from _tree(found, branch.name, depth + 1)


def _branch_lines(branch: Branch, depth: int) -> list[str]:
    indent = "  " * depth
    left = f", left {branch.parent} at tick {branch.parted}" if branch.parent else ""
    lines = [f"{'*' if branch.present else ' '} {indent}{branch.name}  tick {branch.tick}, {branch.place}{left}"]
    return lines + [f"  {indent}  tick {tick}: {text}" for tick, text in branch.edits]


LISTS: Mapping[str, Callable[[Session], Answer]] = {
    "breaks": breaks,
    "watches": watches,
    "ports": _ports,
    "edges": _edges,
    "scans": _scans,
    "trip": _trip,
    "memory": _memory,
    "marks": _marks,
    "branches": branches,
    "display": watches,
}


# --- the commands ---------------------------------------------------------------------------------------------------


_WORDS = re.compile(rf'"(?P<quoted>[^"]+)"|(?:{QUOTED}|\[[^\]]*\]|\S)+')
"""In one word are: a name in backquotes, what is in brackets, and a text in quotes."""

# --- values ---------------------------------------------------------------------------------------------------------


def evaluated(session: Session, text: str) -> Any:
    """Return the value of an expression at this stop."""
    expression = parse(text)
    try:
        return expression.evaluate(StopScope(session.debugger.timeline, session.names, session.where))
    except NotRunning as error:
        one, depth = expression.addresses[0], loop_depth(error.program)
        if len(expression.addresses) > 1 or depth is None or names_iteration(one):
            raise
        first, every = replace(one, iterations=0), replace(one, iterations=ALL_ITERATIONS)
        loop = error.program.path[depth - 1]
        where = f"'{one}' has no value here: {loop.type} '{loop.name}' does not run"
        raise UsageError(f"{where}; {first} is of its iteration 0, {every} of all") from None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


@command("print", "p", syntax="EXPR", help="a value or an expression; h@2:5 over several iterations")
def _print(session: Session, text: str) -> Answer:
    text = session.names.as_expression(required(text, "an expression"), session.where)
    address = _series_address(text)
    if address is not None:
        series = session.debugger.over_iterations(session.named(address))
        by = _computed_by(session, text)
        run = run_text(series.outer)
        lines = [f"{run}:"] if run else []
        lines += [f"  ({legend(who)})" for who in by]
        lines += [
            line
            for number, value in zip(series.iterations, series.values, strict=True)
            for line in titled_lines(f"@{number}", value_lines(value, session.width - 2), session.width)
        ]
        data = [
            {"iteration": number, **tensor_json(value)}
            for number, value in zip(series.iterations, series.values, strict=True)
        ]
        lines += _left_out(address, series)
        counts = {"stride": series.step, "shown": len(series.values), "total": series.total}
        outer = [as_data(one) for one in series.outer]
        return Answer(
            tuple(lines), {"series": data, "outer": outer, "stopped": series.stopped, **counts, **_by_json(by)}
        )
    value, by = evaluated(session, text), _computed_by(session, text)
    data_of_value = tensor_json(value) if _is_tensor(value) else {"value": json_number(value)}
    lines = [*value_lines(value, session.width), *_label_lines(session, text, value)]
    lines += [f"  ({legend(who)})" for who in by]
    return Answer(tuple(lines), {**data_of_value, **_by_json(by)})


def _left_out(address: Address, series: Series) -> list[str]:
    """Return notes on the iterations that are not shown, and why."""
    lines = [f"later iterations are missing: {series.stopped}"] if series.stopped else []
    if series.step > 1:
        few = replace(address, iterations=IterationRange(series.iterations[0], series.iterations[0] + 1000))
        is_second = series.step % 10 == 2 and series.step % 100 != 12  # of powers of two no other is irregular
        ordinal = f"{series.step}{'nd' if is_second else 'th'}"
        lines.append(f"every {ordinal} of {series.total:,} iterations is shown; print {few} gives all of a range")
    return lines


def _label_lines(session: Session, text: str, value: Any) -> tuple[str, ...]:
    """Return the words for the numbers of a value that has labels, where the text names one."""
    if not session.debugger.labels.view() or not _is_tensor(value):
        return ()
    try:
        words = labelled(session.debugger.labels.of(_target_called(session, text)), np.asarray(value))
    except UsageError:
        return ()
    return (words,) if words else ()


def _computed_by(session: Session, text: str) -> list[str]:
    """Return the partners that compute what an expression reads, in words; each once."""
    debugger = session.debugger
    stack = debugger.machine.stack
    where = stack[session.depth].program if stack else debugger.machine.compiled.main
    found = []
    for address in parse(text).addresses:
        target = resolve(address, debugger.machine.compiled, where)
        index = target.program.computed_at.get(target.slot)
        found.append("" if index is None else target.program.operations[index].computed_by)
    return [who for who in dict.fromkeys(found) if who]


def _by_json(by: list[str]) -> dict[str, Any]:
    return {"computed_by": by} if by else {}


def _series_address(text: str) -> Address | None:
    """Return the address, where the text is one of several iterations."""
    try:
        address = parse_address(text)
    except AddressError:
        return None
    called, _, iterations = text.rpartition("@")
    if called.endswith(")"):
        told = f"; `watch {called}` shows it in all" if iterations == "*" else ""
        raise UsageError(f"iterations belong to a name, as in mean(h@7), not to '{called}'{told}")
    return address if isinstance(address.iterations, IterationRange) else None


@command("labels", syntax="NAME [FILE [KEY]]", help="show the numbers of a value as words: a file of lines, or JSON")
def _label(session: Session, text: str) -> Answer:
    words = [found["quoted"] or found[0] for found in _WORDS.finditer(text)]
    if not 1 <= len(words) <= 3:
        raise UsageError('expected a value, a file of labels ("with blanks" in quotes) and the key in a JSON object')
    target = _target_called(session, words[0])
    labels = read_labels(Path(words[1]), *words[2:]) if len(words) > 1 else ()
    if labels:
        session.debugger.protected += ProtectedFiles.of_file(words[1], "a file of labels")
    session.debugger.labels.put(target, labels)
    if not labels:
        return Answer((f"{words[0]} is shown as numbers",), {"value": words[0], "labels": 0})
    return Answer((f"{words[0]} has {len(labels)} labels",), {"value": words[0], "labels": len(labels)})


def _target_called(session: Session, name: str) -> Target:
    """Return the place that a name means, seen from where the run stands."""
    machine = session.debugger.machine
    return resolve(parse_address(name), machine.compiled, machine.program)


@command("stats", syntax="EXPR", help="a tensor in numbers: extremes, mean, NaN, Inf, zeros, ...")
def _stats(session: Session, text: str) -> Answer:
    value = evaluated(session, session.names.as_expression(required(text, "a value"), session.where))
    if not _is_tensor(value):
        raise UsageError(f"'{text}' is not a tensor")
    found = as_data(statistics(value))
    width = max(map(len, found))
    lines = [f"{name.replace('_', ' '):{width}}  {number_text(number, 9)}" for name, number in found.items()]
    return Answer(tuple(lines), {name: json_number(number) for name, number in found.items()})


@command(
    "find",
    syntax="EXPR [first|next|previous|last|all]",
    help="find where an expression holds; nan, inf: where one first appears",
)
def _find(session: Session, text: str) -> Answer:
    words = required(text, "an expression").rsplit(maxsplit=1)
    is_said = len(words) == 2 and words[1] in ("first", "next", "previous", "last", "all")
    expression, which = (words[0], words[1]) if is_said else (text, "first")
    found = session.debugger.find(expression, which)
    lines = [f"tick {moment.tick}  {moment.place}" for moment in found.moments]
    lines += ["there are more"] if found.more else []
    if found.stopped:
        nothing = "" if found.moments else "nothing found; "
        lines.append(f"{nothing}asked in {found.asked:,} places, not to the end of the run: {found.stopped}")
    lines += [f"no value in {found.failures} places, first: {found.failure.splitlines()[0]}"] if found.failures else []
    data = as_data(found)
    nothing = f"nowhere, in {found.asked} places" if found.asked else "nowhere"
    return Answer(tuple(lines or [nothing]), data)


# --- where ----------------------------------------------------------------------------------------------------------


@command(
    "where",
    "bt",
    syntax="[does ADDR go]",
    help="the frames from the model's own graph inwards; or all that a value reaches",
)
def _where(session: Session, text: str) -> Answer:
    from stepper.debug.provenance.question import forward_address

    if address := forward_address(f"where {text}"):
        return _uses_of_element(session, address)
    without_arguments(text)
    debugger = session.debugger
    levels = debugger.view(differences=False).levels
    lines = stack_lines(levels)
    if levels:
        lines[session.depth] = ">" + lines[session.depth][1:]
    lines = lines or ["the run has ended"]
    if debugger.branches.title:
        lines.append(f"  in the branch {debugger.branches.title}")
    return Answer(tuple(lines), {"levels": view_data(levels, session.debugger.model), "branch": debugger.branches.name})


@command("up", help="look at the frame around this one; the run stays where it is")
def _up(session: Session, _text: str) -> Answer:
    if session.depth == 0:
        raise UsageError("this is the model's own graph, there is nothing around it")
    session.level += 1
    return _here(session)


@command("down", help="look at the frame inside this one")
def _down(session: Session, _text: str) -> Answer:
    if session.level == 0:
        raise UsageError("this is the innermost frame")
    session.level -= 1
    return _here(session)


@command("frame", syntax="N", help="look at a frame by its number: 0 is the model's own graph")
def _frame(session: Session, text: str) -> Answer:
    wanted, innermost = number(required(text, "the number of a frame")), session.debugger.depth - 1
    assert session.debugger.frame is not None
    if not 0 <= wanted <= innermost:
        raise UsageError(f"there is no frame {wanted}; there are 0 to {innermost}")
    session.level = innermost - wanted
    return _here(session)


def _here(session: Session) -> Answer:
    where = place(session.debugger.machine.stack[: session.depth + 1])
    return Answer((where,), {"depth": session.depth, "place": where})


@command("list", "l", help="the operations of this graph; > is the one that comes next")
def _list(session: Session, _text: str) -> Answer:
    frame = session.debugger.machine.stack[session.depth]
    following = frame.pc if frame.phase is Phase.RUNNING else -1
    lines, data = [], []
    for index, operation in enumerate(frame.program.operations):
        layer = operation.layer
        by = by_text(operation.computed_by)
        lines.append(f"{'>' if index == following else ' '} {index:4}  {layer.type} '{layer.name}'{by}")
        said = {"index": index, "layer": layer_data(layer, session.debugger.model), "next": index == following}
        data.append({**said, "computed_by": operation.computed_by} if by else said)
    return Answer(tuple(lines or ["no operations"]), {"operations": data})


@command("explain", help="all that there is to say about this stop, in sentences that name the rules")
def _explain(session: Session, _text: str) -> Answer:
    view = session.debugger.view()
    return Answer(tuple(stop_lines(view)), view_data(view, session.debugger.model))


@command(
    "why",
    syntax="ADDR | end [LOOP]",
    help="where a value comes from, to the elements of inputs; also: shape of ADDR, condition; why a loop ended",
)
def _why(session: Session, text: str) -> Answer:
    word, _, loop = text.partition(" ")
    if word == "end":
        return _why_ended(session, loop.strip())
    from stepper.debug.provenance.question import NoValueYet, forward_address  # a session begins without any
    from stepper.debug.story.story_texts import provenance_data, why_lines

    if forward_address(text):
        return _uses_of_element(session, text)
    try:
        found = session.debugger.why(required(text, "a value"))
    except NoValueYet:
        lines = _structure(session, text)
        return Answer(tuple(lines), {"why": None, "sentences": lines})
    lines = why_lines(found)
    return Answer(tuple(lines), {"why": provenance_data(found), "sentences": lines})


def _why_ended(session: Session, loop: str) -> Answer:
    """Return the way back from the condition that ended a loop, a line for each value on it."""
    from stepper.debug.story.story_texts import story_lines

    lines = story_lines(session.debugger.story(loop, ends=True))
    return Answer(tuple(lines), {"why": None, "sentences": lines})


def _structure(session: Session, text: str) -> list[str]:
    """Return which operation, slice or back edge gives a value, whatever it is now."""
    debugger, stack = session.debugger, session.debugger.machine.stack
    target = _target_called(session, text)
    depth = len(target.program.path)
    if depth and (depth >= len(stack) or stack[depth].program is not target.program):
        raise UsageError(f"'{target.named.name}' is in {target.program.name}, which does not run here")
    lines: list[str] = []
    if depth and _is_loop(stack[depth]):
        loop = debugger.loop(depth, differences=False)
        entries = [entry for entry in loop.inputs if entry.inner.layer is target.named]
        lines += [f"{entry.role}, line {entry.line}: {entry.why}" for entry in entries]
        outputs = [entry for entry in loop.outputs if entry.inner.layer is target.layer]
        lines += [f"{entry.role}, line {entry.line}: {entry.why}" for entry in outputs]
        edges = [edge for edge in loop.back_edges if target.layer in (edge.result.layer, edge.parameter.layer)]
        lines += [f"back edge, line {edge.line}: {edge.why}" for edge in edges]
    if not lines:
        beside = "; no port of the loop has to do with it" if depth else ""
        lines = [f"{target.layer.type} '{target.layer.name}' computes it{beside}"]
        lines += [f"from {described}" for described in _sources(target)]
    return lines


def _sources(target: Target) -> list[str]:
    """Return the sources of an operation's inputs, in their order."""
    graph = target.program.graph
    sources = graph.sources[target.layer.id]
    return [source_text(graph.by_id[source.layer], source.output) for source in sources if source is not None]


@command("uses", syntax="ADDR", help="where a value goes: who reads it; with an element, all that it reaches")
def _uses(session: Session, text: str) -> Answer:
    debugger = session.debugger
    if parse_address(required(text, "a value")).index:
        return _uses_of_element(session, text)
    stack = debugger.machine.stack
    target = _target_called(session, required(text, "a value"))
    graph, depth = target.program.graph, len(target.program.path)
    value = Source(target.layer.id, target.output)
    readers = [layer for layer in graph.layers if value in graph.sources[layer.id]]
    lines = [f"read by {reader.type} '{reader.name}'" for reader in readers if reader.type != "Result"]
    results = {reader.id for reader in readers if reader.type == "Result"}
    if results and 0 < depth < len(stack) and stack[depth].program is target.program and _is_loop(stack[depth]):
        loop = debugger.loop(depth, differences=False)
        outputs = [entry for entry in loop.outputs if entry.inner.layer is target.layer]
        lines += [f"{entry.role}, line {entry.line}: {entry.why}" for entry in outputs]
        edges = [edge for edge in loop.back_edges if edge.result.layer is target.layer]
        lines += [f"back edge, line {edge.line}: {edge.why}" for edge in edges]
    elif results:
        lines.append("handed out by " + ", ".join(f"Result '{graph.by_id[result].name}'" for result in sorted(results)))
    return Answer(tuple(lines or ["nothing reads it"]), {"sentences": lines})


def _uses_of_element(session: Session, address: str) -> Answer:
    """Return all that an element reaches, in the run so far."""
    from stepper.debug.story.story_texts import uses_data, uses_lines  # few ask

    found = session.debugger.uses(address)
    lines = uses_lines(found)
    return Answer(tuple(lines), {"sentences": lines, "uses": uses_data(found)})


def _is_loop(frame: Frame) -> bool:
    return frame.activation is not None and frame.activation.operation.layer.is_loop


@command("info", syntax="|".join(LISTS), help="lists, and what there is to say about this loop")
def _info(session: Session, text: str) -> Answer:
    if not text:
        return Answer(tuple(f"info {name}" for name in LISTS), {"about": list(LISTS)})
    is_breaks = text == "breakpoints" or "br".startswith(text)  # as everywhere, though there are branches, too
    return LISTS["breaks" if is_breaks else one_of(text, tuple(LISTS), "info")](session)
