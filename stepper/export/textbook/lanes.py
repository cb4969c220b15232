"""Facts of the textbook's figure: what is carried, sliced and joined, and its value in each iteration."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from stepper.engine.loops import is_backward
from stepper.engine.roles import output_role, roles_of
from stepper.export.figures.builder import SIDES, body_prefix
from stepper.export.figures.folding import accumulators
from stepper.export.figures.labels import labels_of, shortened
from stepper.export.figures.loop_trace import IterationTrace, LoopTrace
from stepper.export.figures.value_summaries import ValueSummary
from stepper.ops.operands import form_text, shape_text
from stepper.wording import counted, excerpt

_LONGEST: Final = 16


class LaneKind(StrEnum):
    """Role of a value that the figure follows over the iterations."""

    CARRIED = "carried"
    SLICED = "sliced"
    JOINED = "joined"
    LAST = "last"


class ValueLane(Struct, frozen=True):
    """A value over the iterations: entering (carried), cut for (sliced) or made by each of them (joined).

    `form` is type and shape of the whole.
    """

    kind: LaneKind
    name: str
    values: Mapping[int, ValueSummary]
    form: str = ""

    @property
    def is_vector(self) -> bool:
        """True if a value has several elements."""
        return any(len(value.shape) and _size(value) != 1 for value in self.values.values())


class Textbook(Struct, frozen=True):
    """Everything of a run that the figure shows; `conditions` are the verdicts of the iterations, where they count.

    `is_backward`: slices and pieces go from the end of their axis to its beginning, so that time runs to the left.
    `branch` is the If of the body, where there is just one, `sides` has which of its sides ran in each iteration.
    """

    title: str
    count: int
    operations: int
    carried: tuple[ValueLane, ...]
    sliced: tuple[ValueLane, ...]
    outputs: tuple[ValueLane, ...]
    invariant: tuple[str, ...]
    conditions: Mapping[int, bool]
    starts: bool | None
    ended: str
    ended_in_short: str
    is_backward: bool
    branch: str = ""
    sides: Mapping[int, str] = {}


def textbook(trace: LoopTrace) -> Textbook:
    """Return the facts of a traced run; every iteration that may be drawn has to be in the trace."""
    layer, body, outer = trace.loop.layer, trace.loop.body, trace.loop.outer
    roles, names, outside = roles_of(layer), labels_of(body.graph), labels_of(outer)
    back = [(result, parameter) for parameter, result in roles.merged_from.items()]
    grown = {one.result: one for one in accumulators(body.graph, back)}
    grows = {one.parameter for one in grown.values()}
    carried = [
        ValueLane(LaneKind.CARRIED, _short(names[entry.parameter]), _values(trace, entry.parameter, 0))
        for entry in roles.merged
        if entry.parameter not in grows
    ]
    sliced, backward = [], []
    for entry in roles.sliced:
        assert entry.slicing is not None and entry.input is not None
        source = outer.sources[layer.id][entry.input]
        name = f"input {entry.input}" if source is None else _short(outside[source.layer])
        values = _values(trace, entry.parameter, 0)
        cut = next((one.slices[entry.parameter] for one in trace.iterations if entry.parameter in one.slices), None)
        form = "" if cut is None else f"axis {cut.axis}, {cut.extent}"
        sliced.append(ValueLane(LaneKind.SLICED, name, values, form))
        backward.append(is_backward(entry.slicing))
    outputs = []
    for output in body.outputs:
        if output.output is None:
            continue
        accumulator = grown.get(output.result)
        name = f"output {output.output}"
        source = body.graph.sources[output.result][0]
        if source is None:
            continue
        if accumulator is not None:
            others = [one for one in body.graph.sources[accumulator.concat] if one is not None]
            added = [one for one in others if one.layer != accumulator.parameter]
            if len(added) == 1:
                pieces = _values(trace, added[0].layer, added[0].output)
                outputs.append(ValueLane(LaneKind.JOINED, name, pieces, _form(trace, output.output)))
                continue
        values = _values(trace, source.layer, source.output)
        if output.slicing is None:
            outputs.append(ValueLane(LaneKind.LAST, name, values, _form(trace, output.output)))
        else:
            outputs.append(ValueLane(LaneKind.JOINED, name, values, _form(trace, output.output)))
            backward.append(is_backward(output.slicing))
    invariant = []
    for entry in roles.invariant:
        source = None if entry.input is None else outer.sources[layer.id][entry.input]
        if source is not None and outer.by_id[source.layer].type != "Constant":
            invariant.append(_short(outside[source.layer]))
    branch, sides = _branch(trace, names)
    starts = next((bool(item.value) for item in trace.controls if item.name == "initial condition"), None)
    return Textbook(
        title=trace.loop.title,
        count=trace.count,
        operations=trace.operations,
        carried=tuple(sorted(carried, key=lambda lane: lane.is_vector)),
        sliced=tuple(sliced),
        outputs=tuple(outputs),
        invariant=tuple(dict.fromkeys(invariant)),
        conditions=_conditions(trace),
        starts=starts,
        ended=trace.ended,
        ended_in_short=trace.ended if trace.failed else f"ended after {counted(trace.count, 'iteration')}",
        is_backward=bool(backward) and all(backward),
        branch=branch,
        sides=sides,
    )


def _branch(trace: LoopTrace, names: Mapping[int, str]) -> tuple[str, dict[int, str]]:
    """Return the name of the If of a body and the sides that ran by iteration; nothing unless there is just one If."""
    found = [layer for layer in trace.loop.body.graph.layers if layer.bodies and not layer.is_loop]
    if len(found) != 1:
        return "", {}
    (layer,) = found
    ran: dict[int, str] = {}
    for item in trace.iterations:
        for body in layer.bodies:
            if body_prefix("", layer, body) in item.sides:
                ran[item.number] = SIDES[body.role]
    return (_short(names[layer.id]) if ran else ""), ran


def _conditions(trace: LoopTrace) -> dict[int, bool]:
    """Return the verdicts of the condition, unless a Constant is the condition."""
    body = trace.loop.body
    result = next((one.result for one in body.outputs if output_role(one).is_condition), None)
    source = None if result is None else body.graph.sources[result][0]
    if source is None or (body.graph.by_id[source.layer].type == "Constant" and not trace.by_condition):
        return {}
    return {item.number: item.condition for item in trace.iterations if item.condition is not None}


def _values(trace: LoopTrace, layer: int, output: int) -> dict[int, ValueSummary]:
    found: dict[int, ValueSummary] = {}
    item: IterationTrace
    for item in trace.iterations:
        value = item.values.get((layer, output))
        if value is not None:
            found[item.number] = value
    return found


def _form(trace: LoopTrace, output: int) -> str:
    """Return type and shape of an output of the loop, as the run made it or as the file declares it."""
    view = trace.view
    if view is not None:
        for scan in view.scans:
            if scan.output == output and scan.shape is not None:
                port = trace.loop.layer.outputs[output]
                name = "" if port.element_type is None else port.element_type.name
                return f"{name}{shape_text(scan.shape)}"
        for one in view.outputs:
            value = one.inner if one.outer is None or one.outer.array is None else one.outer
            if one.output == output and value.array is not None:
                return form_text(value.array)
    return ""


def _short(name: str) -> str:
    return shortened(excerpt(name), _LONGEST)


def _size(value: ValueSummary) -> int:
    size = 1
    for extent in value.shape:
        size *= extent
    return size
