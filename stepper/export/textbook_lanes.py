"""Facts of the textbook's figure: what is carried, sliced and joined, and its value in each iteration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from stepper.debug.causes.loop_ends import compared_text
from stepper.engine.loops import in_axis_order, is_backward, roles_of
from stepper.export.figure_views import can_end
from stepper.export.figures.drawn_graph import ValueSummary, references_of, shortened_names
from stepper.export.figures.figure import SIDES, InnerBody, Lines
from stepper.export.figures.loop_facts import (
    RecurrentCell,
    differences_within,
    edges_without_effect,
    equations,
    loop_course,
    main_types,
    recurrent_cell,
    rule_differences,
)
from stepper.export.figures.loop_trace import LoopTrace, SliceRange
from stepper.export.fonts import wrapped
from stepper.ir.model import Graph, Model, growth_of
from stepper.ops.operands import form_text, shape_text
from stepper.records import Record
from stepper.wording import counted, excerpt

_WIDTHS = (44.0, 56.0, 70.0, 86.0)
"""Points of a line of a formula in a box: the narrowest in which it has few lines."""
_MOST_LINES = 5
_MOST_TYPES = 3
TITLE = "body"


class CellText(NamedTuple):
    """A title or the lines of a formula, and lines below it. `has_types`: the figure need not tell types below."""

    title: str
    lines: Lines
    formula: Lines = ()
    has_types: bool = False

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """All lines, each with its style."""
        above = (("formula", line) for line in self.formula) if self.formula else (("number", self.title),)
        return (*above, *(("aside", line) for line in self.lines))


NUMBER_ALONE = CellText("", ())
"""For boxes in which nothing but the number of the iteration has room."""


class BodyWork(NamedTuple):
    """Work of a body in an iteration: the number of its operations, types with counts, its cell, and its equations."""

    operations: int
    types: tuple[tuple[str, int], ...] = ()
    cell: RecurrentCell | None = None
    formula: Lines = ()

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


_LONGEST = 16


class LaneKind(StrEnum):
    """Role of a value that the figure follows over the iterations."""

    CARRIED = "carried"
    SLICED = "sliced"
    JOINED = "joined"
    LAST = "last"


class ValueLane(Record, dict=True):
    """Hold a value over the iterations: carried in, sliced for, or joined from each iteration.

    `form` is type and shape of the whole. `grows`: it is carried and gets one more piece after each iteration. `origin`
    is the name of the sliced tensor, if the Parameter has another name. `places` are the positions of the slices or
    pieces on their axis, by iteration, unless they equal the iteration numbers; `course` then describes how the axis is
    cut. `told_by` is the output whose pieces are the values of this carried value, one iteration later.
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
        found = (None if value.statistics is None else value.statistics.min for value in self.finite)
        return not self.is_vector and all(isinstance(one, int | float) and one == int(one) for one in found)

    @cached_property
    def has_numbers(self) -> bool:
        """True if its values are neither booleans nor strings."""
        return all(value.type not in ("boolean", "string") for value in self.values.values())


class Textbook:
    """Hold everything that the figure of a traced run shows.

    The trace must have every iteration that may be drawn. `is_backward`: slices and pieces go from the end of their
    axis to its beginning, so that time runs to the left. `ended_in_short` is `ended` in fewer words, and in fewer
    still. `invariant` are the inputs that stay constant over the iterations, without Constants: `q`, or `q ← query` if
    the names differ. `conditions` are the verdicts of the iterations, if they matter. `branch` is the If of the body,
    if there is just one; `sides` lists the side that ran in each iteration. `without_effect` are back edges that carry
    nothing. `work` describes the body's computation. `course` says what begins and ends the loop in any run; `notes`
    list differences of the rule books.
    """

    def __init__(self, trace: LoopTrace, model: Model | None) -> None:
        loop = trace.loop
        graph, outer, layer = loop.body.graph, loop.outer, loop.layer
        self._trace, self._roles, self._graph = trace, roles_of(layer), graph
        self._names, self._outside = _names_of(graph), _names_of(outer)
        grown = (growth_of(graph, result, parameter) for parameter, result in self._roles.merged_from.items())
        self._grown = {one.result: one for one in grown if one is not None and one.piece is not None}
        self.title, self.count, self.ended = loop.title, trace.count, trace.ended
        self.carried = tuple(sorted(self._carried(), key=lambda lane: lane.is_vector))
        self.sliced = tuple(self._sliced())
        self.outputs = tuple(sorted(self._outputs(), key=lambda lane: lane.kind is LaneKind.LAST))
        self.invariant = tuple(dict.fromkeys(self._invariant()))
        counts = can_end(loop.body) or trace.by_condition  # else a Constant is the condition
        found = trace.iterations if counts else ()
        self.conditions = {one.number: one.condition for one in found if one.condition is not None}
        starts = (bool(item.value) for item in trace.controls if item.name == "initial condition")
        self.starts = next(starts, None)
        slicings = [entry.slicing for entry in self._roles.sliced]
        slicings += [entry.slicing for entry in loop.body.outputs if entry.output is not None]
        backward = [is_backward(slicing) for slicing in slicings if slicing is not None]
        self.is_backward = bool(backward) and all(backward)
        self.branch, self.sides = self._branch()
        self.without_effect = edges_without_effect(layer)
        formula = () if model is None else equations(model, layer)
        self.work = BodyWork(len(graph.operations), main_types(graph.operations), recurrent_cell(graph), formula)
        course = [] if model is None else loop_course(model, outer, layer, trace.condition_limit)
        self.course = "; ".join(course)
        self.notes = (*rule_differences(outer, layer), *differences_within(graph))

    @property
    def ended_in_short(self) -> Lines:
        """Why a run ended in fewer words, and in fewer still."""
        if self._trace.failed:
            return (self.ended,)
        shortest = f"ended after {counted(self.count, 'iteration')}"
        told = "" if self._trace.verdict is None else compared_text(self._trace.verdict)
        return (f"{shortest}: {told}", shortest) if told else (shortest,)

    def _carried(self) -> Iterator[ValueLane]:
        collected = {one.parameter: one.only_collects for one in self._grown.values()}
        for entry in self._roles.merged:
            key = entry.parameter
            if not collected.get(key):
                told_by = self._told_by(self._roles.merged_from[key])
                values = self._values(key)
                yield ValueLane(LaneKind.CARRIED, self._names[key], values, grows=key in collected, told_by=told_by)

    def _told_by(self, result: int) -> str:
        """Return the output whose pieces are what a Result gives; empty where there is none."""
        sources = self._graph.sources
        for one in self._trace.loop.body.outputs:
            if None not in (sources[result][0], one.slicing, one.output) and sources[one.result] == sources[result]:
                return f"output {one.output}"
        return ""

    def _sliced(self) -> Iterator[ValueLane]:
        trace = self._trace
        for entry in self._roles.sliced:
            assert entry.slicing is not None and entry.input is not None
            key, name, origin = entry.parameter, self._names[entry.parameter], self._origin(entry.input)
            cuts = {one.number: one.slices[key] for one in trace.iterations if key in one.slices}
            form = next((f"axis {cut.axis}, {cut.extent}" for cut in cuts.values()), "")
            places = _places(cuts)
            # what the file says of a slicing, and which slice is the first where the last one is
            course = f"{entry.slicing}{': the last slice first' if is_backward(entry.slicing) else ''}"
            yield ValueLane(
                LaneKind.SLICED,
                name,
                self._values(key),
                (trace.input_form(entry.input) if places else "") or form,
                origin="" if origin == name else origin,
                places=places,
                course=course.replace("-", "\u2212") if places else "",
            )

    def _origin(self, input: int) -> str:
        """Return the name of what goes into the loop; empty where nothing is connected."""
        source = self._trace.loop.outer.sources[self._trace.loop.layer.id][input]
        return "" if source is None else self._outside[source.layer]

    def _outputs(self) -> Iterator[ValueLane]:
        """Yield the outputs, and what grows as its pieces."""
        trace, body = self._trace, self._trace.loop.body
        for entry in body.outputs:
            source = self._graph.sources[entry.result][0]
            if entry.output is None or source is None:
                continue
            growth = self._grown.get(entry.result) if entry.slicing is None else None
            made = source if growth is None or growth.piece is None else growth.piece
            order: Sequence[int] = ()
            if entry.slicing is not None and is_backward(entry.slicing):
                order = in_axis_order(range(trace.count), entry.slicing)
            yield ValueLane(
                LaneKind.LAST if entry.slicing is None and growth is None else LaneKind.JOINED,
                f"output {entry.output}",
                self._values(made.layer, made.output),
                _form(trace, entry.output),
                places={one.number: str(order[one.number]) for one in trace.iterations if order},
            )
        given_out = {one.result for one in body.outputs if one.output is not None}
        for growth in self._grown.values():  # what grows and does not leave the loop is a strip as well
            if growth.result not in given_out and growth.piece is not None:
                pieces = self._values(growth.piece.layer, growth.piece.output)
                yield ValueLane(LaneKind.JOINED, self._names[growth.parameter], pieces, "grows")

    def _invariant(self) -> Iterator[str]:
        outer = self._trace.loop.outer
        for entry in self._roles.invariant:
            source = None if entry.input is None else outer.sources[self._trace.loop.layer.id][entry.input]
            if source is not None and outer.by_id[source.layer].type != "Constant":
                name, origin = self._names[entry.parameter], self._outside[source.layer]
                yield name if name == origin else f"{name} ← {origin}"

    def _branch(self) -> tuple[str, dict[int, str]]:
        found = [layer for layer in self._graph.layers if layer.bodies and not layer.is_loop]
        layer = found[0] if len(found) == 1 else None
        ran = {
            item.number: SIDES[body.role]
            for item in self._trace.iterations
            for body in (() if layer is None else layer.bodies)
            if layer is not None and (InnerBody(layer.id, body.role),) in item.sides
        }
        return self._names[layer.id] if layer is not None and ran else "", ran

    def _values(self, layer: int, output: int = 0) -> dict[int, ValueSummary]:
        key = layer, output
        return {item.number: item.values[key] for item in self._trace.iterations if key in item.values}


def _places(cuts: Mapping[int, SliceRange]) -> dict[int, str]:
    """Return the places of slices by iteration; none where slice k is the element k, as usual."""
    if all((cut.begin, cut.end) == (number, number + 1) for number, cut in cuts.items()):
        return {}
    return {k: str(cut.begin) if cut.end == cut.begin + 1 else f"{cut.begin}:{cut.end}" for k, cut in cuts.items()}


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
