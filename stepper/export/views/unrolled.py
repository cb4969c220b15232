"""The unrolled trace of a run: iterations in order, back edges as edges between neighbours, slices, pieces, the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from stepper.engine.loops import Role, Roles, output_role, roles_of
from stepper.export.figures.builder import (
    DrawnBox,
    FigureBuilder,
    axis_text,
    constant_lines,
    loop_label,
    port_roles,
)
from stepper.export.figures.content import FigureContent
from stepper.export.figures.drawn_graph import (
    DrawnGraph,
    ValueSummary,
    drawn_graph,
    reader_names,
    references_of,
    shortened,
    thumbnails,
    value_lines,
)
from stepper.export.figures.figure import (
    SIDES,
    Arrangement,
    BodyEnds,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    InnerBody,
    IterationPlace,
    NodeKind,
    Thumbnail,
    ValueState,
)
from stepper.export.figures.loop_facts import edges_without_effect
from stepper.export.figures.loop_trace import ControlInput, IterationTrace, LoopTrace, Summaries, is_idle
from stepper.export.options import ConstantStyle, ValueDetail
from stepper.export.parting import in_iteration
from stepper.export.views.static import input_node, ports_figure
from stepper.ir.model import Graph, InputMapping, Layer, OutputMapping, Slicing, Source
from stepper.ops.operands import shape_text
from stepper.records import Record
from stepper.wording import counted

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

    def box(
        self, trace: IterationTrace, inside: tuple[InnerBody, ...], box: DrawnBox | None, node: FigureNode
    ) -> FigureNode:
        """Return a box in an iteration; what stands for no layer, such as an end mark, is always the same."""
        if box is None:
            return node
        if is_idle(inside, trace.sides):
            return replace(node, lines=(), highlighted=False, idle=True, state=ValueState.NONE)
        if _is_often(inside):
            return node
        own = not inside
        values = trace.values if own else trace.sides[inside]
        layer, layers = box.graph.by_id[box.node.key], box.node.layers
        source = box.graph.sources[layer.id][0] if layer.type == "Result" else Source(layer.id, 0)
        value = None if source is None else values.get((source.layer, source.output))
        lines: list[str] = []
        if own:
            lines += (self._parameter_lines if layer.type == "Parameter" else self._result_lines)(trace, layer)
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
            marks=_marks(values, box.graph, layers) if layer.type != "Result" else (),
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

    def _parameter_lines(self, trace: IterationTrace, layer: Layer) -> tuple[str, ...]:
        cut, number = trace.slices.get(layer.id), trace.number
        if cut is not None:
            return (f"[{cut.begin}:{cut.end}] of {cut.extent}, axis {cut.axis}",)
        if layer.id in self.roles.current_iteration:
            return (f"current iteration: {number}",)
        if layer.id in self.roles.merged_from:
            return (f"from iteration {number - 1}" if number else "initial value",)
        return ("invariant",) if any(entry.parameter == layer.id for entry in self.roles.invariant) else ()

    def _result_lines(self, trace: IterationTrace, layer: Layer) -> tuple[str, ...]:
        lines: list[str] = []
        for entry in self.body.outputs:
            if entry.result == layer.id and _is_joined(entry):
                lines.append(f"S[{trace.number}] → output {entry.output}")
            if entry.result == layer.id and output_role(entry).is_condition and trace.condition is not None:
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


def _marks(values: Summaries, graph: Graph, layers: Sequence[int]) -> tuple[str, ...]:
    """Return the anomalies in a box; where it stands for several values, in how many each occurs."""
    keys = ((layer, output) for layer in layers for output in range(len(graph.by_id[layer].outputs) or 1))
    found = [values[key].marks for key in keys if key in values and values[key].marks]
    if not found or (len(layers) == 1 and len(found) == 1):
        return tuple(map(str, found[0])) if found else ()
    words = Counter(mark.word for marks in found for mark in marks)
    return tuple(f"{word} in {counted(count, 'value')}" for word, count in words.items())


def _is_often(inside: tuple[InnerBody, ...]) -> bool:
    """True if a loop is among these bodies: what is inside runs often in one iteration."""
    return any(body.runs_often for body in inside)


_STAGE: Final = "*"
"""The frame of an iteration in the template of all."""


def unrolled_figure(trace: LoopTrace, content: FigureContent, facts: tuple[str, ...] = ()) -> Figure:
    """Return the figure of one traced activation; iterations that were not kept become an ellipsis.

    `facts` are what the file says of its beginning and its end.
    """
    if not trace.count and not trace.failed:
        assert content.model is not None
        return ports_figure(content.model, trace.loop, content, trace)
    return _Unrolled(trace, replace(content, fold_accumulators=False), facts).figure()


class _Stage(Record):
    """An element of the stack: an iteration shown, or (`trace` None) a range [begin, end) that is left out."""

    id: str
    begin: int
    end: int
    trace: IterationTrace | None

    def named(self, word: str) -> str:
        """Return its range with a word before it, such as `slices 2 to 5`."""
        return f"{word} {self.begin}" if self.end == self.begin + 1 else f"{word}s {self.begin} to {self.end - 1}"

    @property
    def pieces(self) -> str:
        """The pieces that it adds to a concatenated output."""
        return f"S[{self.begin}]" if self.end == self.begin + 1 else f"S[{self.begin}] to S[{self.end - 1}]"

    def port(self, layer: int | None) -> str:
        """Return the id of a Parameter or a Result in it; of what is left out its own."""
        return self.id if self.trace is None or layer is None else f"{self.id}.n{layer}"


def iteration_figures(trace: LoopTrace, content: FigureContent) -> list[Figure]:
    """Return for each iteration kept the body with its back edges and values: figures that differ only in texts."""
    made = _Unrolled(trace, content, ())
    return [made.rolled(stage) for stage in made.stages if stage.trace is not None]


class _Unrolled:
    """Conversion of one trace to a figure."""

    def __init__(self, trace: LoopTrace, content: FigureContent, facts: tuple[str, ...]) -> None:
        self.trace, self.content, self.facts = trace, content, (trace.ended, *facts)
        self.layer, self.body = trace.loop.layer, trace.loop.body
        self.roles: Roles = roles_of(self.layer)
        self.drawn: DrawnGraph = drawn_graph(self.body.graph, self.body, content.folding(self.body.graph))
        self.parts = FigureBuilder(content)
        self.names = references_of(trace.loop.outer)
        self.stages = self._stages()
        self.template = self._template()
        self.texts = IterationLabels(trace, content)

    def figure(self) -> Figure:
        self._add_inputs()
        for stage in self.stages:
            self._add_stage(stage)
        self._add_carried()
        self._add_outputs()
        self._add_end()
        trace, parts = self.trace, self.parts
        shown = len(trace.iterations)
        around = f" (run {', '.join(f'@{number}' for number in trace.around)})" if trace.around else ""
        return Figure(
            title=f"{trace.loop.title}{around}, unrolled",
            description=(
                f"A run of {trace.loop.title}: {trace.count} iterations, {shown} of them shown, under each other in "
                f"order, all drawn alike. Lines between iterations are back edges. {_sentence(trace.ended)}"
            ),
            nodes=tuple(parts.nodes),
            edges=tuple(parts.edges),
            clusters=tuple(parts.clusters),
            arrangement=Arrangement.ITERATIONS,
            facts=(*self.facts, *self.template.closed_facts()),
        )

    def rolled(self, stage: _Stage) -> Figure:
        """Return one iteration as the rolled body, with its values."""
        assert stage.trace is not None
        parts, loop = self._rolled_parts, self.trace.loop
        outermost = replace(parts.clusters[0], label=f"{loop_label(self.layer)}, one iteration")
        frames = [self.texts.frame(stage.trace, frame.site.inside[1:], frame) for frame in parts.clusters[1:]]
        nodes = [
            self.texts.box(stage.trace, node.site.inside[1:], parts.drawn.get(node.id), node) for node in parts.nodes
        ]
        return Figure(
            title=f"{loop.title}, iteration by iteration",
            description=f"The body of {loop.title} with the values of each iteration. {_sentence(self.trace.ended)}",
            nodes=tuple(nodes),
            edges=tuple(parts.edges),
            clusters=(outermost, *frames),
            facts=(self.trace.ended,),
        )

    @cached_property
    def _rolled_parts(self) -> FigureBuilder:
        """The rolled body without values, the same for all iterations."""
        parts = FigureBuilder(self.content)
        parts.add_bodies(self.layer, self.trace.loop.outer, (), "", self.content.depth)
        return parts

    def _stages(self) -> list[_Stage]:
        shown = [_Stage(f"i{item.number}", item.number, item.number + 1, item) for item in self.trace.iterations]
        skipped = [_Stage(f"e{begin}", begin, end, None) for begin, end in self.trace.left_out]
        return sorted(shown + skipped, key=lambda stage: stage.begin)

    # --- outside ---------------------------------------------------------------------------------------------------

    def _add_inputs(self) -> None:
        """Add the outer inputs, and their edges into the first iteration; of a sliced one into every iteration."""
        for entry in self.roles.fed:
            assert entry.input is not None
            id = self._add_input(entry.input)
            for stage in self.stages if self.roles.role_of(entry) is Role.SLICED else self.stages[:1]:
                self.parts.edges.append(self._input_edge(id, entry, stage))
        for control in self._drawn_controls():
            id = self._add_input(control.input, control.text)
            self.parts.edges += [FigureEdge(id, stage.id, EdgeKind.PORT, control.name) for stage in self.stages[:1]]

    def _drawn_controls(self) -> list[ControlInput]:
        """Return trip count and initial condition; the facts say what they are where they are Constants."""
        outer, boxes = self.trace.loop.outer, self.content.constants is ConstantStyle.BOX
        sources = outer.sources[self.layer.id]
        found = ((control, sources[control.input]) for control in self.trace.controls)
        return [
            control
            for control, source in found
            if boxes or source is None or outer.by_id[source.layer].type != "Constant"
        ]

    def _add_input(self, index: int, *texts: str) -> str:
        """Add the box of an input, once; return its id."""
        id, form = f"in{index}", "" if self.content.values is ValueDetail.NONE else self.trace.input_form(index)
        lines = (f"input {index} of the loop", form) if form else (f"input {index} of the loop",)
        if all(node.id != id for node in self.parts.nodes):
            self.parts.nodes.append(input_node(self.trace.loop, self.names, index, *(texts or lines)))
        return id

    def _input_edge(self, id: str, entry: InputMapping, stage: _Stage) -> FigureEdge:
        role = self.roles.role_of(entry)
        kind, label = EdgeKind.PORT, "initial value" if role is Role.MERGED else str(role)
        if role is Role.SLICED:
            found = stage.trace.slices.get(entry.parameter) if stage.trace is not None else None
            label = stage.named("slice") if found is None else f"[{found.begin}:{found.end}] along axis {found.axis}"
            kind = EdgeKind.SLICE
        ends = BodyEnds(self.roles.merged_from.get(entry.parameter), entry.parameter)
        return FigureEdge(id, stage.port(entry.parameter), kind, label, body=ends)

    def _add_outputs(self) -> None:
        for entry in self.body.outputs:
            if entry.output is None or not self.stages or (self.trace.failed and entry.slicing is None):
                continue
            id = f"out{entry.output}"
            readers = reader_names(self.trace.loop.outer, self.layer, entry.output, 24)
            label = f"output {entry.output}{f' → {readers[0]}' if readers else ''}"
            if entry.slicing is None:
                node = FigureNode(id, NodeKind.OUTPUT, label, ("the value of the last iteration",))
                leads = [(self.stages[-1], EdgeKind.PORT, "last value")]
            else:
                node = FigureNode(
                    id, NodeKind.CONCATENATION, label, self._scan(entry.output, entry.slicing), joins=True
                )
                leads = [(stage, EdgeKind.PIECE, stage.pieces) for stage in self.stages]
            self.parts.nodes.append(node)
            self.parts.edges += [
                FigureEdge(stage.port(entry.result), id, kind, text, body=BodyEnds(entry.result))
                for stage, kind, text in leads
            ]

    def _scan(self, output: int, slicing: Slicing) -> tuple[str, ...]:
        """Return how the pieces of an output are joined, and the shape that they make."""
        scan = self.trace.scan(output)
        order = "nothing" if scan is None else scan.order + (" so far" if self.trace.failed else "")
        told = f"Concat, {axis_text(slicing)}: {order}"
        return (told,) if scan is None or scan.shape is None else (told, shape_text(scan.shape))

    def _add_end(self) -> None:
        """Add the reason for the end, and the value that was it."""
        trace = self.trace
        lines = tuple(filter(None, (trace.reason or shortened(trace.ended, 60), trace.decided)))
        self.parts.nodes.append(FigureNode("end", NodeKind.END, f"after {counted(trace.count, 'iteration')}", lines))
        condition = next((entry.result for entry in self.body.outputs if entry.purpose == "execution_condition"), None)
        for last in self.stages[-1:]:
            source = last.port(condition) if trace.by_condition else last.id
            self.parts.edges.append(
                FigureEdge(source, "end", EdgeKind.ENDS, "ended the loop", body=BodyEnds(condition))
            )

    # --- iterations ------------------------------------------------------------------------------------------------

    def _add_stage(self, stage: _Stage) -> None:
        if stage.trace is None:
            count = stage.end - stage.begin
            label = f"… {counted(count, 'iteration')} left out: {stage.named('iteration')}"
            self.parts.clusters.append(Cluster(stage.id, NodeKind.ELLIPSIS, label))
            return
        highlight = self.content.highlight
        here = highlight is not None and highlight.iteration == stage.begin and highlight.graph is self.body.graph
        self.parts.clusters.append(Cluster(stage.id, NodeKind.ITERATION, f"iteration {stage.begin}", highlighted=here))
        for node in self.template.nodes:
            place, id = IterationPlace(stage.id, node.id), _moved(node.id, stage.id)
            moved = replace(node, id=id, cluster=_moved(node.cluster, stage.id), place=place)
            box = self.template.drawn.get(node.id)
            self.parts.nodes.append(self.texts.box(stage.trace, node.site.inside, box, moved))
        for edge in self.template.edges:
            ends = _moved(edge.source, stage.id), _moved(edge.target, stage.id)
            self.parts.edges.append(replace(edge, source=ends[0], target=ends[1]))
        for inner in self.template.clusters:
            ids = _moved(inner.id, stage.id), _moved(inner.parent, stage.id)
            ports = tuple(replace(port, ends=tuple(_moved(end, stage.id) for end in port.ends)) for port in inner.ports)
            place = IterationPlace(stage.id, inner.id)
            moved_frame = replace(inner, id=ids[0], parent=ids[1], ports=ports, place=place)
            self.parts.clusters.append(self.texts.frame(stage.trace, inner.site.inside, moved_frame))

    def _template(self) -> FigureBuilder:
        """Return the body without values, which every iteration repeats."""
        parts = FigureBuilder(self.content)
        parts.add_graph(self.body.graph, None, self.layer, _STAGE)
        roles = {f"n{key}": role for key, role in port_roles(self.layer, self.body).items()}
        parts.nodes = [replace(node, role=roles.get(node.id, node.role)) for node in parts.nodes]
        return parts

    def _add_carried(self) -> None:
        """Add every back edge once between each two neighbours of the stack."""
        lost = {(one.result, one.parameter) for one in edges_without_effect(self.layer)}
        for before, after in pairwise(self.stages):
            for edge in self.drawn.back_edges:
                is_lost = (edge.result, edge.parameter) in lost
                kind, label = (
                    (EdgeKind.NO_EFFECT, f"{edge.name}: no effect") if is_lost else (EdgeKind.CARRIED, edge.name)
                )
                ends = before.port(edge.tail), after.port(edge.head)
                self.parts.edges.append(FigureEdge(*ends, kind, label, body=BodyEnds(edge.result, edge.parameter)))


def _moved(id: str, stage: str) -> str:
    """Return an id of the template in an iteration."""
    return stage if id == _STAGE else f"{stage}.{id}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
