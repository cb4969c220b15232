"""Facts of the textbook's figure: what is carried, sliced and joined, and its value in each iteration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from stepper.debug.causes.verdicts import compared_text
from stepper.engine.loops import Roles, in_axis_order, is_backward, roles_of
from stepper.export.equations import RecurrentCell, equations, main_types, recurrent_cell
from stepper.export.figures.drawn_graph import ValueSummary, references_of, shortened_names
from stepper.export.figures.figure import SIDES, InnerBody
from stepper.export.figures.loop_facts import (
    EdgeWithoutEffect,
    differences_within,
    edges_without_effect,
    loop_course,
    rule_differences,
)
from stepper.export.figures.loop_trace import LoopTrace, SliceRange
from stepper.export.fonts import wrapped
from stepper.export.views.static import can_end
from stepper.ir.model import Graph, Growth, Model, Slicing, growth_of
from stepper.ops.operands import form_text, shape_text
from stepper.records import Record
from stepper.wording import counted, excerpt

_WIDTHS: Final = (44.0, 56.0, 70.0, 86.0)
"""Points of a line of a formula in a box: the narrowest in which it has few lines."""
_MOST_LINES: Final = 5
_MOST_TYPES: Final = 3
TITLE: Final = "body"


class CellText(NamedTuple):
    """A title or the lines of a formula, and lines below it. `has_types`: the figure need not tell types below."""

    title: str
    lines: tuple[str, ...]
    formula: tuple[str, ...] = ()
    has_types: bool = False

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """All lines, each with its style."""
        above = (("formula", line) for line in self.formula) if self.formula else (("number", self.title),)
        return (*above, *(("aside", line) for line in self.lines))


NUMBER_ALONE: Final = CellText("", ())
"""For boxes in which nothing but the number of the iteration has room."""


class BodyWork(NamedTuple):
    """Work of a body in an iteration: the number of its operations, types with counts, its cell, and its equations."""

    operations: int
    types: tuple[tuple[str, int], ...] = ()
    cell: RecurrentCell | None = None
    formula: tuple[str, ...] = ()

    @property
    def types_told(self) -> str:
        """All types with their counts: `6 MatMul, 2 Softmax`."""
        return ", ".join(map(_counted, self.types))


def formula_text(work: BodyWork, size: float, room: int) -> CellText | None:
    """Return the formula of a body in letters of a size; None where it has none, or one of more than `room` lines."""
    for width in _WIDTHS:
        lines = tuple(line for text in work.formula for line in wrapped(text, width, size))
        if work.cell is None and 0 < len(lines) < max(room, _MOST_LINES):
            return CellText("", (f"{work.operations:,} ops",), lines, has_types=True)
    return None


def cell_texts(work: BodyWork, room: int, *, is_wide: bool) -> Iterator[CellText]:
    """Yield what may stand in a box without a formula, the most first; it has `room` lines below the title."""
    count = f"{work.operations:,}"
    ops = (f"{count} ops",) if is_wide else (count, "ops")
    if work.cell is not None:
        units = f"{work.cell.units:,}"
        yield CellText(work.cell.type, (f"{units} units", *ops), has_types=True)
        yield CellText(work.cell.type.removesuffix("Cell"), (units, "units"), has_types=True)
    types = tuple(map(_counted, work.types[: min(_MOST_TYPES, room - 1)]))
    if is_wide and types and work.operations > 1 and not work.formula:
        yield CellText(TITLE, (*ops, *types), has_types=True)
    yield CellText(TITLE, ops)


def _counted(type: tuple[str, int]) -> str:
    name, count = type
    return name if count == 1 else f"{count} {name}"


_LONGEST: Final = 16


class LaneKind(StrEnum):
    """Role of a value that the figure follows over the iterations."""

    CARRIED = "carried"
    SLICED = "sliced"
    JOINED = "joined"
    LAST = "last"


class ValueLane(Record, dict=True):
    """A value over the iterations: entering (carried), cut for (sliced) or made by each of them (joined).

    `form` is type and shape of the whole.
    `grows`: it is carried and has a piece more after each iteration. `origin` is the name of what a slice is cut from,
    where the Parameter that gets it has another one. `places` are those of the slices or pieces on their axis, by
    iteration, unless they are the numbers of the iterations; `course` says how the axis is cut where it is not so.
    `told_by` is the output of which a carried value is the piece that the iteration before made.
    """

    kind: LaneKind
    name: str
    values: Mapping[int, ValueSummary]
    form: str = ""
    grows: bool = False
    origin: str = ""
    places: Mapping[int, str] = {}
    course: str = ""
    told_by: str = ""

    @cached_property
    def is_vector(self) -> bool:
        """True if a value has several elements."""
        return any(math.prod(value.shape) != 1 for value in self.values.values())

    @cached_property
    def finite(self) -> tuple[ValueSummary, ...]:
        """The values without NaN and Inf that have statistics."""
        found = self.values.values()
        return tuple(one for one in found if (told := one.statistics) and not told.nan and not told.infinite)

    @cached_property
    def is_whole(self) -> bool:
        """True if its values are single whole numbers."""
        return not self.is_vector and all(_is_whole(value) for value in self.finite)

    @cached_property
    def has_numbers(self) -> bool:
        """True if its values are neither booleans nor strings."""
        return all(value.type not in ("boolean", "string") for value in self.values.values())


class Textbook(Record):
    """Everything of a run that the figure shows; `conditions` are the verdicts of the iterations, where they count.

    `is_backward`: slices and pieces go from the end of their axis to its beginning, so that time runs to the left.
    `ended_in_short` is `ended` in fewer words, and in fewer still. `branch` is the If of the body, where there is just
    one, `sides` has which of its sides ran in each iteration. `without_effect` are back edges that carry nothing.
    `work` is what the body computes, `course` says what begins and ends the loop in any run, `notes` where the rule
    books differ.
    """

    title: str
    count: int
    carried: tuple[ValueLane, ...]
    sliced: tuple[ValueLane, ...]
    outputs: tuple[ValueLane, ...]
    invariant: tuple[str, ...]
    conditions: Mapping[int, bool]
    starts: bool | None
    ended: str
    ended_in_short: tuple[str, ...]
    is_backward: bool
    branch: str = ""
    sides: Mapping[int, str] = {}
    without_effect: tuple[EdgeWithoutEffect, ...] = ()
    work: BodyWork = BodyWork(0)
    course: str = ""
    notes: tuple[str, ...] = ()


def textbook(trace: LoopTrace, model: Model | None) -> Textbook:
    """Return the facts of a traced run; every iteration that may be drawn has to be in the trace."""
    graph = trace.loop.body.graph
    names, outside = _names_of(graph), _names_of(trace.loop.outer)
    roles = roles_of(trace.loop.layer)
    grown = _grown(trace, roles)
    collected = {one.parameter: one.only_collects for one in grown.values()}
    carried = [
        ValueLane(
            LaneKind.CARRIED,
            names[entry.parameter],
            _values(trace, entry.parameter),
            grows=entry.parameter in collected,
            told_by=_told_by(trace, roles.merged_from[entry.parameter]),
        )
        for entry in roles.merged
        if not collected.get(entry.parameter)
    ]
    slicings = [entry.slicing for entry in roles.sliced]
    slicings += [entry.slicing for entry in trace.loop.body.outputs if entry.output is not None]
    backward = [is_backward(slicing) for slicing in slicings if slicing is not None]
    branch, sides = _branch(trace, names)
    told = (trace.loop.outer, trace.loop.layer, trace.condition_limit)
    starts = next((bool(item.value) for item in trace.controls if item.name == "initial condition"), None)
    return Textbook(
        title=trace.loop.title,
        count=trace.count,
        carried=tuple(sorted(carried, key=lambda lane: lane.is_vector)),
        sliced=tuple(_sliced(trace, roles, names, outside)),
        outputs=_outputs(trace, grown, names),
        invariant=_invariant(trace, roles, names, outside),
        conditions=_conditions(trace),
        starts=starts,
        ended=trace.ended,
        ended_in_short=_ended_in_short(trace),
        is_backward=bool(backward) and all(backward),
        branch=branch,
        sides=sides,
        without_effect=edges_without_effect(trace.loop.layer),
        work=BodyWork(
            len(graph.operations),
            main_types(graph.operations),
            recurrent_cell(graph),
            () if model is None else equations(model, trace.loop.layer),
        ),
        course="" if model is None else "; ".join(loop_course(model, *told)),
        notes=(
            *rule_differences(trace.loop.outer, trace.loop.layer),
            *differences_within(trace.loop.body.graph),
        ),
    )


def _ended_in_short(trace: LoopTrace) -> tuple[str, ...]:
    """Return why a run ended in fewer words, and in fewer still."""
    if trace.failed:
        return (trace.ended,)
    shortest = f"ended after {counted(trace.count, 'iteration')}"
    told = "" if trace.verdict is None else compared_text(trace.verdict)
    return (f"{shortest}: {told}", shortest) if told else (shortest,)


def _told_by(trace: LoopTrace, result: int) -> str:
    """Return the output whose pieces are what a Result gives; empty where there is none."""
    body = trace.loop.body
    source = body.graph.sources[result][0]
    for one in body.outputs:
        if None not in (source, one.slicing, one.output) and body.graph.sources[one.result][0] == source:
            return f"output {one.output}"
    return ""


def _grown(trace: LoopTrace, roles: Roles) -> dict[int, Growth]:
    """Return what grows by a piece in each iteration, by Result."""
    graph = trace.loop.body.graph
    found = (growth_of(graph, result, parameter) for parameter, result in roles.merged_from.items())
    return {one.result: one for one in found if one is not None and one.piece is not None}


def _sliced(
    trace: LoopTrace, roles: Roles, names: Mapping[int, str], outside: Mapping[int, str]
) -> Iterator[ValueLane]:
    """Yield the sliced inputs."""
    for entry in roles.sliced:
        assert entry.slicing is not None and entry.input is not None
        source = trace.loop.outer.sources[trace.loop.layer.id][entry.input]
        name, origin = names[entry.parameter], "" if source is None else outside[source.layer]
        cuts = {one.number: one.slices[entry.parameter] for one in trace.iterations if entry.parameter in one.slices}
        form = next((f"axis {cut.axis}, {cut.extent}" for cut in cuts.values()), "")
        places = _places(cuts)
        yield ValueLane(
            LaneKind.SLICED,
            name,
            _values(trace, entry.parameter),
            (trace.input_form(entry.input) if places else "") or form,
            origin="" if origin == name else origin,
            places=places,
            course=_course(entry.slicing) if places else "",
        )


def _outputs(trace: LoopTrace, grown: Mapping[int, Growth], names: Mapping[int, str]) -> tuple[ValueLane, ...]:
    """Return the outputs, and what grows as its pieces."""
    body, lanes = trace.loop.body, []
    for entry in body.outputs:
        source = body.graph.sources[entry.result][0]
        if entry.output is None or source is None:
            continue
        growth = grown.get(entry.result) if entry.slicing is None else None
        made = source if growth is None or growth.piece is None else growth.piece
        order: Sequence[int] = ()
        if entry.slicing is not None and is_backward(entry.slicing):
            order = in_axis_order(range(trace.count), entry.slicing)
        lane = ValueLane(
            LaneKind.LAST if entry.slicing is None and growth is None else LaneKind.JOINED,
            f"output {entry.output}",
            _values(trace, made.layer, made.output),
            _form(trace, entry.output),
            places={one.number: str(order[one.number]) for one in trace.iterations if order},
        )
        lanes.append(lane)
    given_out = {one.result for one in body.outputs if one.output is not None}
    for growth in grown.values():  # what grows and does not leave the loop is a strip as well
        if growth.result not in given_out and growth.piece is not None:
            pieces = _values(trace, growth.piece.layer, growth.piece.output)
            lanes.append(ValueLane(LaneKind.JOINED, names[growth.parameter], pieces, "grows"))
    return tuple(sorted(lanes, key=lambda lane: lane.kind is LaneKind.LAST))


def _places(cuts: Mapping[int, SliceRange]) -> dict[int, str]:
    """Return the places of slices by iteration; none where slice k is the element k, as usual."""
    if all((cut.begin, cut.end) == (number, number + 1) for number, cut in cuts.items()):
        return {}
    return {k: str(cut.begin) if cut.end == cut.begin + 1 else f"{cut.begin}:{cut.end}" for k, cut in cuts.items()}


def _course(slicing: Slicing) -> str:
    """Return what the file says of a slicing, and which slice is the first where the last one is."""
    return f"{slicing}{': the last slice first' if is_backward(slicing) else ''}".replace("-", "\u2212")


def _invariant(trace: LoopTrace, roles: Roles, names: Mapping[int, str], outside: Mapping[int, str]) -> tuple[str, ...]:
    """Return the inputs that are the same in each iteration, without Constants: `q`, or `q ← query` by both names."""
    layer, outer = trace.loop.layer, trace.loop.outer
    found = []
    for entry in roles.invariant:
        source = None if entry.input is None else outer.sources[layer.id][entry.input]
        if source is not None and outer.by_id[source.layer].type != "Constant":
            name, origin = names[entry.parameter], outside[source.layer]
            found.append(name if name == origin else f"{name} ← {origin}")
    return tuple(dict.fromkeys(found))


def _branch(trace: LoopTrace, names: Mapping[int, str]) -> tuple[str, dict[int, str]]:
    """Return the name of the If of a body and the sides that ran by iteration; nothing unless there is just one If."""
    found = [layer for layer in trace.loop.body.graph.layers if layer.bodies and not layer.is_loop]
    if len(found) != 1:
        return "", {}
    (layer,) = found
    ran = {
        item.number: SIDES[body.role]
        for item in trace.iterations
        for body in layer.bodies
        if (InnerBody(layer.id, body.role),) in item.sides
    }
    return names[layer.id] if ran else "", ran


def _conditions(trace: LoopTrace) -> dict[int, bool]:
    """Return the verdicts of the condition, unless a Constant is the condition."""
    if not can_end(trace.loop.body) and not trace.by_condition:
        return {}
    return {item.number: item.condition for item in trace.iterations if item.condition is not None}


def _values(trace: LoopTrace, layer: int, output: int = 0) -> dict[int, ValueSummary]:
    key = layer, output
    return {item.number: item.values[key] for item in trace.iterations if key in item.values}


def _form(trace: LoopTrace, output: int) -> str:
    """Return type and shape of an output of the loop, as the run made it or as the file declares it."""
    scan = trace.scan(output)
    if scan is not None and scan.shape is not None:
        type = trace.loop.layer.outputs[output].element_type
        return f"{'' if type is None else type.name}{shape_text(scan.shape)}"
    for one in () if trace.view is None else trace.view.outputs:
        value = one.inner if one.outer is None or one.outer.array is None else one.outer
        if one.output == output and value.array is not None:
            return form_text(value.array)
    return ""


def _names_of(graph: Graph) -> dict[int, str]:
    """Return what lanes of the values of a graph are called, by layer."""
    names = {key: excerpt(name) for key, name in references_of(graph).items()}
    short = shortened_names(names.values(), _LONGEST)
    return {key: short[name] for key, name in names.items()}


def _is_whole(value: ValueSummary) -> bool:
    """True for a whole number."""
    found = None if value.statistics is None else value.statistics.min
    return isinstance(found, int) or (isinstance(found, float) and found.is_integer())
