"""Texts of the boxes and frames of a body in one iteration: slices, values, marks, the side of an If that ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from stepper.engine.roles import output_role, roles_of
from stepper.export.figures.builder import DrawnBox, constant_lines
from stepper.export.figures.content import FigureContent
from stepper.export.figures.figure import SIDES, Cluster, FigureNode, InnerBody, NodeKind, Thumbnail, ValueState
from stepper.export.figures.inner_activations import is_idle
from stepper.export.figures.loop_trace import IterationTrace, LoopTrace, Summaries
from stepper.export.figures.value_summaries import ValueMark, ValueSummary, thumbnails, value_lines
from stepper.export.options import ValueDetail
from stepper.export.parting import in_iteration
from stepper.ir.model import Layer, OutputMapping, Source
from stepper.wording import counted

Marks = Mapping[int, Sequence[tuple[int, tuple[ValueMark, ...]]]]
"""The anomalies of values, by layer id, each with its place among all values."""


_MOST_OUTPUTS: Final = 4
"""Outputs of an operation of which the values stand in its box."""


class IterationLabels:
    """The texts of one trace. `inside` are the bodies that lead to a box or a frame from the body of the loop."""

    def __init__(self, trace: LoopTrace, content: FigureContent) -> None:
        self.trace, self.content = trace, content
        self.body, self.roles = trace.loop.body, roles_of(trace.loop.layer)
        self.joined = {entry.result for entry in self.body.outputs if _is_joined(entry)}
        self.conditions = {entry.result for entry in self.body.outputs if output_role(entry).is_condition}
        self.pictures = self._pictures()
        self._marks: dict[int, tuple[Summaries, Marks]] = {}

    def frame(self, trace: IterationTrace, inside: tuple[InnerBody, ...], cluster: Cluster) -> Cluster:
        """Return a frame in an iteration: of a side of an If whether it ran, of a loop how often."""
        shown = () if cluster.shows is None else (*inside, cluster.shows)
        if cluster.kind is not NodeKind.SIDE or cluster.shows is None:
            count = trace.loops.get(shown)
            label = cluster.label if count is None else f"{cluster.label}, {counted(count, 'iteration')}"
            return replace(cluster, label=label, idle=is_idle(inside, trace.sides))
        if _is_often(inside):
            return cluster
        ran = shown in trace.sides
        label = f"{SIDES[cluster.shows.role]} {'ran' if ran else 'did not run'}"
        return replace(cluster, label=label, idle=not ran)

    def box(self, trace: IterationTrace, inside: tuple[InnerBody, ...], box: DrawnBox, node: FigureNode) -> FigureNode:
        """Return a box in an iteration."""
        if is_idle(inside, trace.sides):
            return replace(node, lines=(), highlighted=False, idle=True, state=ValueState.NONE)
        if _is_often(inside):
            return node
        own = not inside
        values = trace.values if own else trace.sides[inside]
        layer, layers = box.graph.by_id[box.node.key], box.node.layers
        source = box.graph.sources[layer.id][0] if layer.type == "Result" else Source(layer.id, 0)
        value = None if source is None else values.get((source.layer, source.output))
        lines = [*(self._port_lines(trace, layer) if own else ())]
        lines += _inner_lines(trace, inside, layer) if len(layers) == 1 else ()
        if not (own and layer.id in self.conditions):  # what that was is said already
            lines += constant_lines(self.content, box.graph, box.node)
        picture = None
        if value is not None and source is not None and len(layers) == 1:
            lines += self._value_lines([values.get((source.layer, at)) for at in range(len(layer.outputs))] or [value])
            picture = self.pictures.get((trace.number, source.layer, source.output)) if own else None
        made = replace(
            node,
            lines=tuple(lines),
            marks=_marks(self._marked(values), layers) if layer.type != "Result" else (),
            thumbnail=picture,
            highlighted=self.content.highlights(box.graph, layers, trace.number),
            joins=own and layer.id in self.joined,
        )
        found, numbers = self.content.differences, (*self.trace.around, trace.number)
        return made if found is None else in_iteration(made, box.graph, box.node, found, numbers)

    def _value_lines(self, values: Sequence[ValueSummary | None]) -> tuple[str, ...]:
        """Return the lines of all outputs of an operation in their order; of shapes each once."""
        found = [value_lines(value, self.content.values) for value in values if value is not None]
        if self.content.values is ValueDetail.SHAPE:
            found = list(dict.fromkeys(found))
        more = len(found) - _MOST_OUTPUTS
        lines = tuple(line for one in found[:_MOST_OUTPUTS] for line in one)
        return (*lines, f"and {counted(more, 'more output')}") if lines and more > 0 else lines

    def _marked(self, values: Summaries) -> Marks:
        """Return the marks of the values that have some, found once for all boxes of an iteration."""
        if id(values) not in self._marks:
            found: dict[int, list[tuple[int, tuple[ValueMark, ...]]]] = {}
            for at, ((layer, _), value) in enumerate(values.items()):
                if value.marks:
                    found.setdefault(layer, []).append((at, value.marks))
            self._marks[id(values)] = values, found  # kept with the values, so that none gets their identity
        return self._marks[id(values)][1]

    def _port_lines(self, trace: IterationTrace, layer: Layer) -> tuple[str, ...]:
        if layer.type == "Parameter":
            return self._parameter_lines(trace, layer)
        return self._result_lines(trace, layer) if layer.type == "Result" else ()

    def _parameter_lines(self, trace: IterationTrace, layer: Layer) -> tuple[str, ...]:
        cut = trace.slices.get(layer.id)
        if cut is not None:
            return (f"[{cut.begin}:{cut.end}] of {cut.extent}, axis {cut.axis}",)
        if layer.id in self.roles.current_iteration:
            return (f"current iteration: {trace.number}",)
        if layer.id in self.roles.merged_from:
            return ("initial value",) if trace.number == 0 else (f"from iteration {trace.number - 1}",)
        return ("invariant",) if any(entry.parameter == layer.id for entry in self.roles.invariant) else ()

    def _result_lines(self, trace: IterationTrace, layer: Layer) -> tuple[str, ...]:
        lines = []
        for entry in self.body.outputs:
            if entry.result != layer.id:
                continue
            if _is_joined(entry):
                lines.append(f"S[{trace.number}] → output {entry.output}")
            if output_role(entry).is_condition and trace.condition is not None:
                lines.append(f"condition: {str(trace.condition).lower()}")
        return tuple(lines)

    def _pictures(self) -> dict[tuple[int, int, int], Thumbnail | None]:
        if self.content.values is not ValueDetail.THUMBNAILS:
            return {}
        found: dict[tuple[int, int, int], Thumbnail | None] = {}
        iterations = self.trace.iterations
        for layer, output in dict.fromkeys(key for item in iterations for key in item.values):
            values: list[ValueSummary | None] = [item.values.get((layer, output)) for item in iterations]
            made = thumbnails(None if value is None else value.grid for value in values)
            found.update({(item.number, layer, output): made[k] for k, item in enumerate(iterations)})
        return found


def _is_joined(entry: OutputMapping) -> bool:
    return entry.output is not None and entry.slicing is not None


def _inner_lines(trace: IterationTrace, inside: tuple[InnerBody, ...], layer: Layer) -> Iterable[str]:
    """Yield the side of a folded If that ran, or the iterations of a folded loop."""
    for body in layer.bodies:
        shown = (*inside, InnerBody(layer.id, body.role))
        if shown in trace.sides:
            yield f"{SIDES[body.role]} ran"
        if shown in trace.loops:
            yield counted(trace.loops[shown], "iteration")


def _marks(marked: Marks, layers: tuple[int, ...]) -> tuple[str, ...]:
    """Return the anomalies in a box; where it stands for several values, in how many each occurs."""
    found = [marks for _, marks in sorted(one for layer in layers for one in marked.get(layer, ()))]
    if not found or (len(layers) == 1 and len(found) == 1):
        return tuple(map(str, found[0])) if found else ()
    words = Counter(mark.word for marks in found for mark in marks)
    return tuple(f"{word} in {counted(count, 'value')}" for word, count in words.items())


def _is_often(inside: tuple[InnerBody, ...]) -> bool:
    """True if a loop is among these bodies: what is inside runs often in one iteration."""
    return any(body.runs_often for body in inside)
