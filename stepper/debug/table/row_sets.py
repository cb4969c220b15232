"""Choose the rows of the sheet: values of a graph, and conditions that filter its iterations.

A frame is a graph whose operations are rows: the body of a loop, a side of an If, or the model's own graph, with a
single iteration. `frame_inside` goes into a loop or the side of an If that ran, `frames_around` comes out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from time import monotonic
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import bodies
from stepper.debug.debugger import Debugger
from stepper.debug.finding import tick_of_address
from stepper.debug.loop_runs import Batch, IterationReader, Outer, outer_now
from stepper.debug.moments.spread import SpreadCells
from stepper.debug.overview.overview_facts import Row, RowKind, loop_rows
from stepper.debug.provenance.operation_at import program_of
from stepper.debug.scopes import Names, is_body, loop_depth, target_in
from stepper.debug.stop_scope import WalkScope
from stepper.debug.story.story_facts import Story, StoryQuestion
from stepper.debug.table.columns import MOST_VALUES, SheetTopic, SheetValue, topic_of
from stepper.debug.timeline import Timeline
from stepper.element_types import Array, Indices
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program
from stepper.errors import StepperError, UsageError
from stepper.ir.model import layer_site
from stepper.query.address_resolution import Atlas, Target, moment_address, resolve
from stepper.query.address_syntax import Address, parse_address, without_element
from stepper.query.expression_syntax import (
    Binary,
    Call,
    Comparison,
    ExpressionError,
    Indexed,
    Literal,
    Logical,
    Node,
    Operand,
    Unary,
    parse_tree,
)
from stepper.query.expressions import Compiler, ReadFrom, parse
from stepper.query.short_names import short_names_of
from stepper.records import Record
from stepper.tensors.statistics import FITTING

_AT_ONCE_S = 2.0
"""Seconds after which the rows that are known to have changed are shown."""


class RowSet(StrEnum):
    """The sets of values that can stand in the rows."""

    CARRIED = "carried"
    ALL = "all"
    WHY = "why"
    CHANGED = "changed"
    WATCHED = "watched"
    ELEMENTS = "elements"


class SheetFrame(Record, eq=False):
    """A graph whose operations are rows. `outer` are the iterations around the innermost loop's run (None: any)."""

    program: Program
    outer: Outer = ()

    def body(self, compiled: CompiledModel) -> Program:
        """Return the body of the innermost loop around the graph, or its own; outside of loops the model's graph."""
        depth = loop_depth(self.program)
        return compiled.main if depth is None else Atlas(compiled).ancestor(self.program, depth)


class SheetQuestion(Record, eq=False):
    """Ask for the rows of a sheet: a set of rows of a frame.

    `address` is the cell whose path or elements are meant, `story` what is asked about a path instead. `title` names
    the elements as the row names them that they are of.
    """

    frame: SheetFrame
    rows: RowSet
    address: str = ""
    story: StoryQuestion | None = None
    title: str = ""


class RowsFound(Record, eq=False):
    """Rows of a frame. `marks` says of what kind each is, None for an operation.

    For changes `changes` are all cells. For a path `story` is all of it, `outside` its links in other graphs, `row` and
    `iteration` where it begins.
    """

    question: SheetQuestion
    topic: SheetTopic
    marks: tuple[Row | None, ...]
    story: Story | None = None
    changes: SpreadCells | None = None
    outside: Indices = ()
    row: int = 0
    iteration: int | None = None


def first_frame(debugger: Debugger) -> SheetFrame:
    """Return the frame in which the run stands; outside of loops the first loop's body, else the model's graph."""
    machine = debugger.machine
    running = [depth for depth, frame in enumerate(machine.stack) if is_body(frame.program)]
    if running:
        stack = machine.stack[: running[-1] + 1]
        return SheetFrame(stack[-1].program, outer_now(stack))
    inside = bodies(machine.compiled)
    program = min(inside, key=lambda body: len(body.path)) if inside else machine.compiled.main
    return SheetFrame(program, (None,) * (len(program.path) - 1))


def frames_around(frame: SheetFrame, compiled: CompiledModel) -> tuple[SheetFrame, ...]:
    """Return the frames from the model's own graph inwards, the last is the frame itself."""
    programs = [Atlas(compiled).ancestor(frame.program, depth) for depth in range(len(frame.program.path) + 1)]
    return tuple(SheetFrame(program, frame.outer[: max(len(program.path) - 1, 0)]) for program in programs)


def frame_inside(debugger: Debugger, frame: SheetFrame, layer: int, iteration: int) -> SheetFrame:
    """Return the body of a loop, or the side of an If that ran in an iteration. UsageError where there is nothing."""
    operation = next((one for one in frame.program.operations if one.layer.id == layer), None)
    if operation is None or not operation.plans:
        raise UsageError("there is nothing inside")
    outer = (*frame.outer, iteration) if frame.program.path else ()
    if len(operation.plans) == 1:
        return SheetFrame(operation.plans[0].program, outer)
    side = _side(debugger, frame, operation, iteration)
    if side is None:
        raise UsageError(f"If '{operation.layer.name}' did not run in iteration {iteration}")
    return SheetFrame(operation.plans[0 if side else 1].program, outer)


def _side(debugger: Debugger, frame: SheetFrame, operation: Operation, iteration: int) -> bool | None:
    """Return whether an If took its first side in an iteration; None where it did not run."""
    compiled, taken = debugger.machine.compiled, list[Batch]()
    body = frame.body(compiled)
    inner = None if frame.program is body else frame.program
    reader = IterationReader(body, frame.outer, operation.inputs[:1], inner, begin=iteration, end=iteration + 1)

    def take(_begin: int, batch: Batch) -> bool:
        taken.append(batch)
        return False

    reader.read(debugger.timeline, take)
    value = taken[0][0][0] if taken else None
    return None if value is None else bool(np.asarray(value).reshape(-1)[0])


# --- the sets -------------------------------------------------------------------------------------------------------


def rows_of(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    """Return the rows of a set. UsageError where it has none, with the reason."""
    return _SETS[question.rows](debugger, question)


def _carried(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    compiled, program = debugger.machine.compiled, question.frame.program
    if not is_body(program):
        return _all(debugger, question)
    plan = next(
        plan for one in compiled.programs for op in one.operations for plan in op.plans if plan.program is program
    )
    assert isinstance(plan, LoopPlan)
    found, seen = list[tuple[Target, str, Row]](), set[int]()
    listed, names = loop_rows(program.path[-1], plan, ""), short_names_of(program.graph)
    for row, place in sorted(zip(listed.rows, listed.taken, strict=True), key=lambda pair: _order(pair[0])):
        slot = plan.condition_result if place is None else listed.slots[place]
        if slot is None or (slot not in program.computed_at and row.kind is RowKind.CONDITION):
            continue  # a Constant that is true each time
        if slot in seen and row.kind in (RowKind.LAST_VALUE, RowKind.CONCATENATED):
            continue  # the back edge shows it
        seen.add(slot)
        own = names.get(row.inner.id, row.inner.name)
        carried = f"new in {own}'" if row.appends else f"{own}'"
        name = {RowKind.BACK_EDGE: carried, RowKind.SLICE: own, RowKind.CONDITION: "goes on?"}.get(row.kind, "")
        found.append((target_in(program, slot), name, row))
    for row, target in (*_born_in(debugger, program), *_bodies_in(program)):
        if target.slot not in seen:
            seen.add(target.slot)
            found.append((target, "", row))
    found.sort(key=lambda one: _order(one[2]))
    places, marks = [(target, name, ()) for target, name, _ in found], [row for *_, row in found]
    return _found(debugger, question, places, "", marks) if places else _all(debugger, question)


_ORDER = (
    RowKind.CONDITION,
    RowKind.BACK_EDGE,
    RowKind.BIRTH,
    RowKind.CONCATENATED,
    RowKind.LAST_VALUE,
    RowKind.BRANCH_OUTPUT,
    RowKind.SLICE,
)


def _order(row: Row) -> int:
    """Return where a row stands: a carried value to which pieces are joined is with the outputs."""
    return _ORDER.index(RowKind.CONCATENATED if row.appends else row.kind)


def _born_in(debugger: Debugger, program: Program) -> Iterator[tuple[Row, Target]]:
    """Yield the operations of a body where a NaN or Inf first appears, as far as that is known."""
    for birth in debugger.overview().births:
        location, site = birth.cause.location, birth.cause.location.operation
        if site is not None and program_of(location, debugger.machine.compiled) is program:
            slot = program.slots[site.id, location.output or 0]
            yield Row(RowKind.BIRTH, site, producer=site), target_in(program, slot)


def _bodies_in(program: Program) -> Iterator[tuple[Row, Target]]:
    """Yield the loops and Ifs of a body."""
    for one in program.operations:
        if one.plans and one.outputs:
            site = layer_site(one.layer, "")
            yield Row(RowKind.BRANCH_OUTPUT, site, producer=site), target_in(program, one.outputs[0])


def _all(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    count = len(question.frame.program.operations)
    return _of_operations(debugger, question, range(count), "no operation is computed here")


def _of_operations(debugger: Debugger, question: SheetQuestion, indices: Iterable[int], none: str) -> RowsFound:
    program = question.frame.program
    listed = [program.operations[index] for index in indices]
    slots = [program.shown_slot(one.outputs[0]) for one in listed if one.outputs]
    return _found(debugger, question, [(target_in(program, slot), "", ()) for slot in slots[:MOST_VALUES]], none)


def _found(
    debugger: Debugger,
    question: SheetQuestion,
    places: Sequence[tuple[Target, str, Indices]],
    none: str,
    marks: Sequence[Row | None] = (),
    story: Story | None = None,
    statistic: str = FITTING,
) -> RowsFound:
    """Return rows of places in the frame's graph, each with its name (empty: its operation's) and element."""
    if not places:
        raise UsageError(none)
    compiled, frame = debugger.machine.compiled, question.frame
    names, values = short_names_of(frame.program.graph), []
    for target, given, index in places:
        name = given or names.get(target.layer.id, target.layer.name)
        address = moment_address(target, compiled)
        base = str(Address((), address.operation, address.port))
        values.append(SheetValue(name, address, target, index, "" if index else statistic, base, name))
    body = frame.body(compiled)
    outer = (*frame.outer, *[None] * (len(body.path) - 1 - len(frame.outer)))
    topic = SheetTopic(body, outer[: max(len(body.path) - 1, 0)], tuple(values))
    return RowsFound(question, topic, tuple(marks) or (None,) * len(values), story)


def same_outer(one: Outer, asked: Outer) -> bool:
    """Return True if two runs of a loop are in the same iterations around it, as far as these are known."""
    return all(None in (a, b) or a == b for a, b in zip(one, asked, strict=False))


def _why(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    """Return the operations of a path that are in one graph: the graph of the frame, else the graph of the value."""
    asked, compiled = question.story, debugger.machine.compiled
    if asked is None:
        if not question.address:
            raise UsageError("put the cursor on a value: its path stands here")
        tick = tick_of_address(debugger.timeline, without_element(question.address))
        asked = StoryQuestion(question.address, tick=tick)
    story = debugger.story(
        asked.address,
        ends=asked.ends,
        fails=asked.fails,
        tick=asked.tick,
        links=asked.links,
        wider=asked.wider,
        unfolds=asked.unfolds,
    )
    links = story.links
    graphs = [program_of(link.location, compiled) for link in links]
    frame, root = question.frame, links[story.asked].location if links else None
    if root is not None and (question.story is not None or frame.program not in graphs):
        outer = tuple(one.iteration for one in root.path)[:-1]
        frame = SheetFrame(graphs[story.asked], outer)
    question = replace(question, frame=frame, story=asked)
    places, rows = list[tuple[Target, str, Indices]](), list[int]()
    for place, row in enumerate(story.rows):
        number = next((k for k, link in enumerate(links) if link.row == place), None)
        slot = frame.program.slots.get((row.layer.id, row.output or 0))
        if number is not None and graphs[number] is frame.program and slot is not None and not row.is_shape:
            places.append((target_in(frame.program, slot), row.name, row.element or ()))
            rows.append(place)
    if not places:
        return replace(_carried(debugger, question), story=story)
    outside = [k for k, link in enumerate(links) if link.row not in rows]
    here = [k for k in (*story.births, story.asked) if k not in outside]
    first = links[here[0]] if here else None  # where a NaN or Inf appears first, else what was asked about
    found = _found(debugger, question, places, "", story=story)
    at = 0 if first is None else rows.index(first.row)
    return replace(found, outside=tuple(outside), row=at, iteration=first.location.iteration if first else None)


def _changed(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    """Return the operations whose values differ from those of the baseline, where that is another run."""
    pinned, program = debugger.pinned, question.frame.program
    found = None if pinned is None else debugger.moments.spread(pinned)
    if found is None:
        raise UsageError("there is no other run to compare with: edit a value (*), or compare with a reference")
    until = monotonic() + _AT_ONCE_S  # an edited run may never end
    found.go(lambda: debugger.machine.pause_requested or (monotonic() > until and found.view().first is not None))
    runs = [one for one in found.view().runs if one.program is program and same_outer(one.outer, question.frame.outer)]
    touched = sorted({index for one in runs for index in np.flatnonzero(one.touched).tolist()})
    rows = _of_operations(debugger, question, touched, "every operation of this graph gives what it gave before")
    shown = next((one for one in runs if one.first), runs[-1])
    iteration, operation = shown.first or (0, touched[0])
    return replace(rows, changes=shown, row=touched.index(operation), iteration=iteration)


def _watched(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    body, found = question.frame.body(debugger.machine.compiled), list[SheetValue]()
    for watch in debugger.watches:
        with suppress(StepperError):
            topic = topic_of(debugger.timeline, watch.text)
            found += topic.values if topic.body is body else ()
    if not found:
        raise UsageError("no value of this loop is watched: w watches the value of the cursor")
    outer = (*question.frame.outer, *[None] * len(body.path))[: max(len(body.path) - 1, 0)]
    return RowsFound(question, SheetTopic(body, outer, tuple(found)), (None,) * len(found))


def _elements(debugger: Debugger, question: SheetQuestion) -> RowsFound:
    machine, frame = debugger.machine, question.frame
    if loop_depth(frame.program) is not None:
        topic = topic_of(debugger.timeline, question.address)
        if title := question.title:
            topic = replace(topic, values=tuple(replace(one, name=title, title=title) for one in topic.values))
        return RowsFound(question, topic, (None,) * len(topic.values))
    target = resolve(replace(parse_address(question.address), index=()), machine.compiled, frame.program)
    return _found(debugger, question, [(target, question.title, ())], "", statistic="")


_SETS: dict[RowSet, Callable[[Debugger, SheetQuestion], RowsFound]] = {
    RowSet.CARRIED: _carried,
    RowSet.ALL: _all,
    RowSet.WHY: _why,
    RowSet.CHANGED: _changed,
    RowSet.WATCHED: _watched,
    RowSet.ELEMENTS: _elements,
}


_BEFORE = re.compile(r"(?P<column>[^\s()<>=!+*/%,@-]+\[[^\]]*\])@-1(?![0-9])")
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_BARE = re.compile(r"(?P<abs>abs)?\s*(?P<rest>(?:[=!<>]=|[<>]).*)")
"""A comparison of nothing, or of a magnitude of nothing."""
_EACH = frozenset({"abs", "isnan", "isinf", "isfinite"})
"""Functions of each element."""

ColumnOf = Callable[[str, Indices], int | None]
"""The number of the column of an element, by the name of its value; None where there is none."""


def about_column(text: str, column: str) -> str:
    """Return a condition with the column that it leaves out: `> 2` and `abs > 2` are about `column`."""
    text = text.strip()
    bare = _BARE.fullmatch(text)
    if not column or bare is None or bare["abs"] == column:
        return text
    return f"abs({column}) {bare['rest']}" if bare["abs"] else f"{column} {text}"


def written_out(text: str, column: str = "") -> str:
    """Return a condition in full: `> 2` is about `column`, and `x[1]@-1` is written prev(x[1])."""
    text = about_column(text, column)
    if text.startswith(_OPERATORS):
        raise UsageError(f"'{text}' compares nothing: write a column before it, such as x[0] {text}")
    return _BEFORE.sub(lambda found: f"prev({found['column']})", text)


class _ElementNames:
    """The elements that a condition names, each under a name of its own."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self.columns: dict[Address, int] = {}

    def operand(self, node: Node) -> Node | None:
        """Return an operand instead of an element; None where it is none."""
        index: Indices = ()
        base = node
        if isinstance(node, Indexed):
            base = node.base
            items = [_whole(item) for item in node.items]
            if any(item is None for item in items):
                return None
            index = tuple(item for item in items if item is not None)
        if not isinstance(base, Operand) or base.address.iterations is not None or base.address.levels:
            return None
        column = self._column_of(str(base.address), index)
        if column is None:
            return None
        address = parse_address(f"column_{column}")
        self.columns[address] = column
        return Operand(node.position, address)


def _whole(item: Any) -> int | None:
    """Return an index that is a whole number."""
    if isinstance(item, Unary) and item.operator == "-":
        number = _whole(item.operand)
        return None if number is None else -number
    is_number = isinstance(item, Literal) and type(item.value) is int
    return int(item.value) if is_number else None


class _OtherThanElements(Exception):
    """A part of a condition is about more than single elements."""


def by_element(node: Any, names: _ElementNames) -> Any:
    """Return a tree with elements instead of what it reads. Raise _OtherThanElements."""
    if isinstance(node, tuple):
        return tuple(by_element(one, names) for one in node)
    found = names.operand(node) if isinstance(node, Node) else node
    if found is not None or isinstance(node, Literal):
        return found or node
    is_of_each = isinstance(node, Call) and (node.function in _EACH or node.function == "prev")
    is_single = isinstance(node, Comparison) and len(node.rest) == 1
    if not (is_of_each or is_single or isinstance(node, Unary | Binary | Logical)):
        raise _OtherThanElements
    return type(node)(*(by_element(getattr(node, name), names) for name in node.__struct_fields__))


class ColumnCondition:
    """A condition on single elements, asked of whole columns."""

    def __init__(self, text: str, node: Node, columns: dict[Address, int]) -> None:
        compiler = Compiler(text)
        self._code = compiler.part(node).code
        self._reads, self._columns = tuple(compiler.reads), columns

    def holds(self, column: Callable[[int], Array], known: Callable[[int], Array | None], count: int) -> Array:
        """Return in which of so many iterations it holds: none in which a value that it reads is not there.

        `column` gives those of a column in its own type, `known` in which there is one (None: in all).
        """
        with np.errstate(all="ignore"):
            found = np.asarray(self._code(_Columns(self._columns, column)))
        if found.dtype != bool:
            found = found != 0
        held = np.array(np.broadcast_to(found, count), bool)
        for address, moment in self._reads:
            there = known(self._columns[address])
            if moment is ReadFrom.PREVIOUS:
                held[:1] = False
                held[1:] &= True if there is None else there[: count - 1]
            elif there is not None:
                held &= there[:count]
        return held


class _Columns:
    """The scope of a condition on columns."""

    def __init__(self, columns: dict[Address, int], column: Callable[[int], Array]) -> None:
        self._columns, self._column = columns, column

    def value(self, address: Address, /) -> Array:
        """Return the column."""
        return self._column(self._columns[address])

    def previous(self, address: Address, /) -> Array:
        """Return it one iteration later; before the first there is nothing, which compares as NaN."""
        now = self.value(address)
        before = np.full(len(now), np.nan) if now.dtype.kind != "f" else np.full_like(now, np.nan)
        before[1:] = now[:-1]
        return before

    def reference(self, _address: Address, /) -> Array:
        """Refused."""
        raise UsageError("ref() is not in the conditions of a table")

    def iteration(self) -> int:
        """Not asked for: such a condition is asked of each iteration."""
        raise NotImplementedError

    def iteration_of(self, _loop: str, /) -> int:
        """Not asked for."""
        raise NotImplementedError


def column_condition(text: str, column_of: ColumnOf) -> ColumnCondition | None:
    """Return a condition that can be asked of columns; None for any other. Raise ExpressionError."""
    names = _ElementNames(column_of)
    try:
        tree = by_element(parse_tree(text), names)
    except _OtherThanElements:
        return None
    return ColumnCondition(text, tree, names.columns) if names.columns else None


def iteration_condition(
    timeline: Timeline, text: str, body: Program, place_of: Callable[[Address], Target | None]
) -> Callable[[], bool]:
    """Return whether a condition holds in the iteration that has just been closed; values that are not there do not.

    `place_of` says what a name means. Raise UsageError, ExpressionError.
    """
    expression, names = parse(text), Names(timeline.machine.compiled)

    def target_of(address: Address) -> Target:
        target = place_of(address) or names.target(address, body)
        if any(asked is not None for asked in target.iterations):
            raise UsageError(f"'{address}': every iteration is asked, so a name says none; prev(x) is the one before")
        path = target.program.path
        if body.path[: len(path)] != path:
            raise UsageError(f"'{target.named.name}' is in {target.program.name}, which has no value in each iteration")
        return target

    targets = {address: target_of(address) for address in expression.addresses}
    if expression.references:
        raise UsageError("ref() is not in the conditions of a table")
    scope = WalkScope(timeline, expression, targets.__getitem__)

    def holds() -> bool:
        try:
            found = expression.truth(scope)
        except ExpressionError:
            raise
        except StepperError:
            found = False
        scope.remember()
        return found

    return holds
