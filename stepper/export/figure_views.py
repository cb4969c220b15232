"""The views of a loop and of a model: graph, body with its back edges, port map, the unrolled trace of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.loops import OutputRole, Role, RoleError, Roles, output_role, roles_of
from stepper.engine.machine import Machine
from stepper.errors import ExecutionError, LimitReached, ModelError, UnsupportedOperation
from stepper.export.figures.builder import (
    DrawnBox,
    FigureBuilder,
    axis_text,
    constant_lines,
    declared_text,
    input_role,
    loop_label,
    origin_role,
    port_roles,
)
from stepper.export.figures.drawn_graph import (
    ValueSummary,
    reader_names,
    references_of,
    shortened,
    thumbnails,
    value_lines,
)
from stepper.export.figures.figure import (
    BACKWARD,
    SIDES,
    Arrangement,
    BodyEnds,
    BodyPath,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    InnerBody,
    IterationPlace,
    Lines,
    NodeKind,
    PortRole,
    Thumbnail,
    ValueState,
)
from stepper.export.figures.loop_facts import condition_effect, edges_without_effect, equations, loop_facts
from stepper.export.figures.loop_trace import IterationTrace, LoopPath, LoopTrace, Summaries, is_idle, loops_of
from stepper.export.fold_blocks import LARGE, drawn_once
from stepper.export.options import BlockStyle, ConstantStyle, ValueDetail
from stepper.export.parting import ValueOfGraph, in_iteration
from stepper.export.picture import FigureContent
from stepper.ir.model import Body, Graph, InputMapping, Layer, Model, OutputMapping, Source
from stepper.ops.operands import shape_text
from stepper.records import Record
from stepper.wording import counted, enumerated, excerpt


def can_end(body: Body) -> bool:
    """True if the body has a condition that is no Constant."""
    result = next((entry.result for entry in body.outputs if output_role(entry).is_condition), None)
    source = None if result is None else body.graph.sources[result][0]
    return source is not None and body.graph.by_id[source.layer].type != "Constant"


def model_figure(model: Model, content: FigureContent) -> Figure:
    """Return the model's own graph; bodies inside of their layers, to the depth asked for."""
    parts = FigureBuilder(content)
    parts.add_graph(model.graph, None, None, "", content.depth)
    name = excerpt(model.name) or "the model"
    loops = [loop for loop in loops_of(model) if loop.layer.is_loop]
    description = (
        f"The graph of {name}: {len(model.graph.layers)} layers, {counted(len(loops), 'loop')}. "
        "Each box is an operation, each line a tensor; Constants are folded into what reads them."
    )
    return _built(parts, model, f"Model {name}", description)


def rolled_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the body of one loop, its back edges leading from the end of an iteration to the beginning of the next."""
    if content.cell:
        formula = equations(model, loop.layer) if loop.layer.is_loop else ()
        return replace(ports_figure(model, loop, content), equations=formula)
    parts = _body_of(loop, content)
    facts = loop_facts(model, loop.outer, loop.layer, content.limit_of(loop.outer, loop.layer))
    own = {node.id for node in parts.nodes if len(node.site.inside) == 1}
    backs = sum(edge.kind is EdgeKind.BACK and edge.source in own for edge in parts.edges)
    if loop.layer.is_loop:
        label = f"{loop_label(loop.layer)}, one iteration"
        parts.clusters[0] = replace(parts.clusters[0], label=label)
    parts.add_neighbours(loop.layer, loop.outer)
    told = f"{_bodies_told(loop, backs)}. {'; '.join(facts)}."
    return _built(parts, model, f"{loop.title}, rolled", told)


def _bodies_told(loop: LoopPath, backs: int) -> str:
    """Return how large the body of a loop, or the sides of an If, are, and what dashes mean."""
    sizes = [counted(len(body.graph.layers), "layer") for body in loop.layer.bodies]
    if not loop.layer.is_loop:
        return f"The sides of {loop.title}: {enumerated(sizes)}"
    told = f"The body of {loop.title}: {sizes[0]} and {counted(backs, 'back edge')}"
    if not backs:
        return told
    dashed = "which is dashed and leads" if backs == 1 else "which are dashed and lead"
    return f"{told}, {dashed} from a Result to the Parameter that gets its value in the next iteration"


def _built(parts: FigureBuilder, model: Model, title: str, description: str) -> Figure:
    """Return the figure with blocks that repeat drawn as was asked for."""
    nodes, edges, clusters = tuple(parts.nodes), tuple(parts.edges), tuple(parts.clusters)
    facts, blocks = parts.closed_facts(), parts.content.blocks
    figure = Figure(title, description, nodes, edges, clusters, facts=facts, notes=parts.notes)
    if blocks is None:
        blocks = BlockStyle.ONCE if len(nodes) > LARGE else BlockStyle.ALL
    return drawn_once(figure, parts, model) if blocks is BlockStyle.ONCE else figure


BODY = "body"


def ports_figure(model: Model, loop: LoopPath, content: FigureContent, idle: LoopTrace | None = None) -> Figure:
    """Return the port map of a loop: inputs, carried values, outputs; of an If those of both sides.

    Of an `idle` run, which has no iteration, with what goes in and comes out.
    """
    ports, layer, outer = PortBoxes(loop, idle), loop.layer, loop.outer
    if layer.is_loop:
        ports.add_body(loop.body, BODY, condition=condition_effect(model, outer, layer))
        facts = loop_facts(model, outer, layer, content.limit_of(outer, layer))
        title = f"body of {_operations(loop.body.graph)}"
        if idle is not None:
            return ports.figure(
                f"{loop.title}, no iteration",
                f"A run of {loop.title} without iterations. The value of a back edge goes straight through: the "
                "first value is the last one. Concatenated outputs have no pieces. "
                f"{idle.ended[:1].upper()}{idle.ended[1:]}.",
                {BODY: f"{title}, not run"},
                (
                    idle.ended,
                    *((idle.reason,) if idle.decided else ()),
                    *(control.text for control in idle.controls if not control.value),
                    *facts,
                ),
            )
        return ports.figure(
            f"{loop.title}, port map",
            f"The port map of {loop.title}: the body's Parameters with what goes into them, and its Results "
            "with the loop's outputs and, dashed, the Parameters of the next iteration.",
            {BODY: title},
            facts,
        )
    sides = {SIDES[body.role]: body for body in layer.bodies}
    for side, body in sides.items():
        ports.add_body(body, side, f"{side}.")
    decides = outer.sources[layer.id][0]
    condition = "not connected" if decides is None else str(outer.by_id[decides.layer])
    return ports.figure(
        f"{loop.title}, port maps",
        f"The port maps of {loop.title}: the Parameters of both sides with its inputs, and their Results with "
        "its outputs. An output is a Result of the side that ran.",
        {side: f"{side} side of {_operations(body.graph)}" for side, body in sides.items()},
        (f"condition: input 0, {excerpt(condition)}; then runs if it is true, else if it is false",),
    )


def _operations(graph: Graph) -> str:
    return counted(len(graph.operations), "operation")


def output_label(loop: LoopPath, output: int) -> str:
    """Return what the box of an output says: its number, and what reads it first."""
    readers = reader_names(loop.outer, loop.layer, output, 24)
    return f"output {output} → {readers[0]}" if readers else f"output {output}"


def input_node(loop: LoopPath, names: Mapping[int, str], index: int, *lines: str) -> FigureNode:
    """Return the box of what goes into an input of a loop; `names` are those of the graph around it."""
    source = loop.outer.sources[loop.layer.id][index]
    label, title = f"input {index}", ""
    if source is not None:
        label, title = excerpt(names[source.layer]), str(loop.outer.by_id[source.layer])
    return FigureNode(f"in{index}", NodeKind.INPUT, label, lines, title=title, role=origin_role(loop.outer, source))


class PortBoxes:
    """Nodes and edges of a port map, those outside of the bodies each once; of an `idle` run with values."""

    def __init__(self, loop: LoopPath, idle: LoopTrace | None) -> None:
        self.loop, self.layer, self.idle = loop, loop.layer, idle
        self.outer = references_of(loop.outer)
        self.nodes: dict[str, FigureNode] = {}
        self.edges: list[FigureEdge] = []
        self.carried: Mapping[int, int] = {}
        self.lost = edges_without_effect(loop.layer) if loop.layer.is_loop else ()
        self.told: dict[int, str] = {}  # what is said of Parameters
        try:
            roles = roles_of(loop.layer) if loop.layer.is_loop else None
        except RoleError as error:
            raise ModelError(f"{error.line}: {loop.title} has no port map that could be drawn: {error}") from None
        if roles is not None:
            self.carried = roles.merged_from
            self.told = {unfed.id: "not connected" for unfed in roles.unfed}
            self.told |= dict.fromkeys(roles.current_iteration, "current iteration")
            if idle is not None:
                self.told |= dict.fromkeys(self.carried, "first value = last value")

    def figure(self, title: str, description: str, frames: Mapping[str, str], facts: Lines) -> Figure:
        """Return the figure; `frames` are the titles of bodies by their ids."""
        kind = NodeKind.LOOP if self.layer.is_loop else NodeKind.SIDE
        return Figure(
            title,
            description,
            tuple(self.nodes.values()),
            tuple(self.edges),
            tuple(Cluster(id, kind, label) for id, label in frames.items()),
            arrangement=Arrangement.PORT_LISTS,
            facts=facts,
        )

    def _add(self, node: FigureNode) -> str:
        """Add a box, once; return its id."""
        self.nodes.setdefault(node.id, node)
        return node.id

    def _add_input(self, index: int) -> str:
        source = self.loop.outer.sources[self.layer.id][index]
        line = "not connected"
        if source is not None:
            declared = declared_text(self.loop.outer.by_id[source.layer].outputs[source.output])
            line = f"input {index}: {declared if self.idle is None else self.idle.came.get(index, declared)}"
        return self._add(input_node(self.loop, self.outer, index, line))

    def add_body(self, body: Body, frame: str, prefix: str = "", condition: str = "") -> None:
        """Add every input entry, the Parameters without a source, and the Results with their targets.

        `condition` says what the condition means for the loop.
        """
        self.body, self.frame, self.prefix, self.names = body, frame, prefix, references_of(body.graph)
        for entry in body.inputs:
            role, target = input_role(self.layer, entry), self._add_parameter(entry.parameter)
            if entry.input is not None:
                kind = EdgeKind.SLICE if role == Role.SLICED else EdgeKind.PORT
                text = f"{role}, initial value" if role == Role.MERGED else role
                self._lead(self._add_input(entry.input), target, kind, text, entry.slicing)
        for parameter in body.graph.parameters:
            self._add_parameter(parameter.id)
        roles = port_roles(self.layer, body) if self.layer.is_loop else {}
        for result in body.graph.results:
            self._add_result(result, roles.get(result.id, PortRole.NONE), condition)

    def _add_parameter(self, key: int, *, is_next: bool = False) -> str:
        layer = self.body.graph.by_id[key]
        lines = (declared_text(layer.outputs[0]), self.told.get(key, ""))
        node = FigureNode(
            f"next{key}" if is_next else f"{self.prefix}n{key}",
            NodeKind.PARAMETER,
            excerpt(self.names[key]),
            ("in the next iteration",) if is_next else tuple(filter(None, lines)),
            title=str(layer),
            cluster="" if is_next else self.frame,
            role=PortRole.CARRIED if key in self.carried else PortRole.NONE,
        )
        return self._add(node)

    def _add_result(self, result: Layer, role: PortRole, condition: str) -> None:
        """Add a Result with what it is led to."""
        name, label, lines = (
            f"{self.prefix}n{result.id}",
            excerpt(self.names[result.id]),
            (declared_text(result.inputs[0]),),
        )
        node = FigureNode(name, NodeKind.RESULT, label, lines, title=str(result), cluster=self.frame, role=role)
        id = self._add(node)
        for given in self.body.outputs:
            if given.result != result.id or output_role(given) is OutputRole.NOT_CONNECTED:
                continue
            text = str(output_role(given)) if self.layer.is_loop else f"if {self.frame} ran"
            if given.output is None:
                end = FigureNode(f"condition{result.id}", NodeKind.END, condition)
                self._lead(id, self._add(end), EdgeKind.ENDS, text, given.slicing)
            else:
                kind = EdgeKind.PIECE if given.slicing else EdgeKind.PORT
                left = None if self.idle is None else self.idle.left.get(given.output)
                lines = (left or declared_text(self.layer.outputs[given.output]),)
                label = output_label(self.loop, given.output)
                output = self._add(FigureNode(f"out{given.output}", NodeKind.OUTPUT, label, lines))
                self._lead(id, output, kind, text, given.slicing)
        for key, source in self.carried.items() if self.idle is None else ():  # else no iteration is the next
            if source == result.id:
                self._lead(id, self._add_parameter(key, is_next=True), EdgeKind.BACK, "back edge")
        for edge in self.lost:
            if edge.result == result.id:
                target = self._add_parameter(edge.parameter, is_next=True)
                self._lead(id, target, EdgeKind.NO_EFFECT, "back edge: no effect", *edge.told)

    def _lead(self, source: str, target: str, kind: EdgeKind, text: str, *details: object) -> None:
        told = tuple(str(one) for one in details if one is not None)
        self.edges.append(FigureEdge(source, target, kind, text, details=told))


_BEGINS = (EventKind.ENTERED, EventKind.ITERATION)
_MOST_EVENTS = 200_000
"""Events that are looked at; a run that is longer has shown nothing of what it had not entered by then."""
_MOST_VALUES = 2_000_000
"""Maximum number of values whose sizes are read; a run with more values shows no sizes."""

Sizes = Mapping[ValueOfGraph, tuple[int, ...]]
"""Sizes of a value in a run, by id() of the graph, id of the layer and output; -1: not always the same."""


def observed_run(machine: Machine) -> tuple[frozenset[tuple[int, int]], Sizes]:
    """Run a machine to its end, or to where it fails: what it showed before is true.

    Return the loops that did no iteration, by id() of the graph around them and their id, and the sizes of values of
    which the file leaves one open.
    """
    kinds: defaultdict[EventKind, set[tuple[int, int]]] = defaultdict(set)
    shapes: defaultdict[ValueOfGraph, set[tuple[int, ...]]] = defaultdict(set)
    slots: dict[int, list[tuple[ValueOfGraph, int]]] = {}
    looked = 0

    def look(frame: Frame) -> int:
        """Note the sizes of a frame's values if the file leaves a size open; return their number."""
        program = frame.program
        if id(program) not in slots:
            slots[id(program)] = [
                ((id(program.graph), layer, output), slot)
                for (layer, output), slot in program.slots.items()
                for port in program.graph.by_id[layer].outputs[output : output + 1]
                if min(port.dims, default=0) < 0
            ]
        for key, slot in slots[id(program)]:
            if frame.values[slot] is not None:
                shapes[key].add(np.shape(frame.values[slot]))
        return len(slots[id(program)])

    try:
        for count, event in enumerate(machine.run(Every.ITERATION)):
            frame, activation = event.frame, event.frame.activation
            if count > _MOST_EVENTS:
                break
            if event.kind is not EventKind.ENTERED and looked <= _MOST_VALUES:
                looked += look(frame)
            if event.kind in _BEGINS and activation is not None and activation.operation.layer.is_loop:
                kinds[event.kind].add((id(machine.stack[-2].program.graph), activation.operation.layer.id))
    except (ExecutionError, LimitReached, UnsupportedOperation):
        looked += sum(map(look, machine.stack))
    found = {} if looked > _MOST_VALUES else shapes
    sizes = {  # -1 for one that shapes of one rank do not share
        key: tuple(one[0] if len(set(one)) == 1 else -1 for one in zip(*seen, strict=True))
        for key, seen in found.items()
        if len(set(map(len, seen))) == 1
    }
    return frozenset(kinds[_BEGINS[0]] - kinds[_BEGINS[1]]), sizes


_MOST_OUTPUTS = 4
"""Maximum number of outputs of an operation whose values stand in its box."""


class IterationLabels:
    """The texts of one trace, for the boxes and frames of the body of its loop."""

    def __init__(self, trace: LoopTrace, content: FigureContent) -> None:
        self.trace, self.content = trace, content
        self.body, self.roles = trace.loop.body, roles_of(trace.loop.layer)
        self.joined = {entry.result for entry in self.body.outputs if _is_joined(entry)}
        self.conditions = {entry.result for entry in self.body.outputs if output_role(entry).is_condition}
        self.pictures = self._pictures()

    def frame(self, trace: IterationTrace, cluster: Cluster) -> Cluster:
        """Return a frame in an iteration: of a side of an If whether it ran, of a loop how often."""
        inside = cluster.site.inside[1:]
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

    def box(self, trace: IterationTrace, box: DrawnBox | None, node: FigureNode) -> FigureNode:
        """Return a box in an iteration; what stands for no layer, such as an end mark, is always the same."""
        if box is None:
            return node
        inside = node.site.inside[1:]
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

    def _value_lines(self, values: Sequence[ValueSummary | None]) -> Lines:
        """Return the lines of all outputs of an operation in their order; of shapes each once."""
        found = [value_lines(value, self.content.values) for value in values if value is not None]
        if self.content.values is ValueDetail.SHAPE:
            found = list(dict.fromkeys(found))
        more = len(found) - _MOST_OUTPUTS
        lines = tuple(line for one in found[:_MOST_OUTPUTS] for line in one)
        return (*lines, f"and {counted(more, 'more output')}") if lines and more > 0 else lines

    def _parameter_lines(self, trace: IterationTrace, layer: Layer) -> Lines:
        cut, number = trace.slices.get(layer.id), trace.number
        if cut is not None:
            return (f"[{cut.begin}:{cut.end}] of {cut.extent}, axis {cut.axis}",)
        if layer.id in self.roles.current_iteration:
            return (f"current iteration: {number}",)
        if layer.id in self.roles.merged_from:
            return (f"from iteration {number - 1}" if number else "initial value",)
        return ("invariant",) if any(entry.parameter == layer.id for entry in self.roles.invariant) else ()

    def _result_lines(self, trace: IterationTrace, layer: Layer) -> Lines:
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


def _inner_lines(trace: IterationTrace, inside: BodyPath, layer: Layer) -> Iterable[str]:
    """Yield the side of a folded If that ran, or the iterations of a folded loop."""
    for body in layer.bodies:
        shown = (*inside, InnerBody(layer.id, body.role))
        if shown in trace.sides:
            yield f"{SIDES[body.role]} ran"
        if shown in trace.loops:
            yield counted(trace.loops[shown], "iteration")


def _marks(values: Summaries, graph: Graph, layers: Sequence[int]) -> Lines:
    """Return the anomalies in a box; where it stands for several values, in how many each occurs."""
    keys = ((layer, output) for layer in layers for output in range(len(graph.by_id[layer].outputs) or 1))
    found = [values[key].marks for key in keys if key in values and values[key].marks]
    if not found or (len(layers) == 1 and len(found) == 1):
        return tuple(map(str, found[0])) if found else ()
    words = Counter(mark.word for marks in found for mark in marks)
    return tuple(f"{word} in {counted(count, 'value')}" for word, count in words.items())


def _is_often(inside: BodyPath) -> bool:
    """True if a loop is among these bodies: what is inside runs often in one iteration."""
    return any(body.runs_often for body in inside)


def unrolled_figure(trace: LoopTrace, content: FigureContent, facts: Lines = (), part: Figure | None = None) -> Figure:
    """Return the figure of one traced activation; iterations that were not kept become an ellipsis.

    `facts` are what the file says of its beginning and its end. Iterations have the boxes of `part` alone, which is a
    part of the rolled body; inputs and outputs of the loop stay where they lead to these, or come from them.
    """
    if not trace.count and not trace.failed:
        assert content.model is not None
        return ports_figure(content.model, trace.loop, content, trace)
    return _Unrolled(trace, replace(content, fold_accumulators=False), part).figure(facts)


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


def _body_of(loop: LoopPath, content: FigureContent) -> FigureBuilder:
    """Return the frame of a loop with its body, which every iteration repeats."""
    builder = FigureBuilder(content)
    builder.add_bodies(loop.layer, loop.outer, (), "", content.depth)
    return builder


def iteration_figures(trace: LoopTrace, content: FigureContent) -> list[Figure]:
    """Return for each iteration kept the body with its back edges and values: figures that differ only in texts."""
    loop, texts = trace.loop, IterationLabels(trace, content)
    body = _body_of(loop, content)
    outermost, *inner = body.clusters
    outermost = replace(outermost, label=f"{loop_label(loop.layer)}, one iteration")
    return [
        Figure(
            title=f"{loop.title}, iteration by iteration",
            description=f"The body of {loop.title} with the values of each iteration. {_sentence(trace.ended)}",
            nodes=tuple(texts.box(one, body.drawn.get(node.id), node) for node in body.nodes),
            edges=tuple(body.edges),
            clusters=(outermost, *(texts.frame(one, frame) for frame in inner)),
            facts=(trace.ended,),
        )
        for one in trace.iterations
    ]


class _Unrolled:
    """Conversion of one trace to a figure. `boxes`, `wires` and `frames` are those of an iteration in the rolled body.

    `shared` are the ids that boxes and frames have in all iterations, by those in the rolled body.
    """

    def __init__(self, trace: LoopTrace, content: FigureContent, part: Figure | None) -> None:
        self.trace, self.content, self.part = trace, content, part
        self.layer, self.body = trace.loop.layer, trace.loop.body
        self.roles: Roles = roles_of(self.layer)
        self.names = references_of(trace.loop.outer)
        shown = [_Stage(f"i{item.number}", item.number, item.number + 1, item) for item in trace.iterations]
        skipped = [_Stage(f"e{begin}", begin, end, None) for begin, end in trace.left_out]
        self.stages = sorted(shown + skipped, key=lambda stage: stage.begin)
        self.texts, self.builder = IterationLabels(trace, content), _body_of(trace.loop, content)
        rolled, inside = part or self.builder, (InnerBody(self.layer.id, "body"),)
        own = {node.id for node in rolled.nodes if node.site.inside == inside}
        self.boxes = [
            node
            for node in rolled.nodes
            if node.site.inside[:1] == inside and (node.kind is not NodeKind.END or node.id not in own)
        ]
        self.frames = [frame for frame in rolled.clusters if frame.site.inside[:1] == inside]
        self.shared = {node.id: node.site.within for node in self.boxes}
        self.ends = {*self.shared.values()}
        self.shared |= {frame.id: frame.site.within for frame in self.frames}
        self.wires = [
            edge
            for edge in rolled.edges
            if {edge.source, edge.target} <= self.shared.keys()
            and (edge.kind not in BACKWARD or edge.source not in own)
        ]
        self.nodes: list[FigureNode] = []
        self.edges: list[FigureEdge] = []
        self.clusters: list[Cluster] = []

    def figure(self, facts: Lines) -> Figure:
        self._add_inputs()
        for stage in self.stages:
            self._add_stage(stage)
        self._add_carried()
        self._add_outputs()
        self._add_end()
        trace = self.trace
        shown = len(trace.iterations)
        around = f" (run {', '.join(f'@{number}' for number in trace.around)})" if trace.around else ""
        bright = {self.shared[node.id] for node in self.boxes if node.highlighted}
        if self.part is not None and not any(node.highlighted for node in self.nodes):
            self.nodes = [
                replace(one, highlighted=one.place is not None and one.place.within in bright) for one in self.nodes
            ]
        return Figure(
            title=f"{trace.loop.title}{around}, unrolled",
            description=(
                f"A run of {trace.loop.title}: {trace.count} iterations, {shown} of them shown, under each other in "
                f"order, all drawn alike. Lines between iterations are back edges. {_sentence(trace.ended)}"
            ),
            nodes=tuple(self.nodes),
            edges=tuple(self.edges),
            clusters=tuple(self.clusters),
            arrangement=Arrangement.ITERATIONS,
            facts=(trace.ended, *facts, *self.builder.closed_facts()),
        )

    def _has(self, *layers: int | None) -> bool:
        """True if Parameters and Results of the body are drawn (None: an edge has none there)."""
        return all(layer is None or f"n{layer}" in self.ends for layer in layers)

    # --- outside ---------------------------------------------------------------------------------------------------

    def _add_inputs(self) -> None:
        """Add the outer inputs, and their edges into the first iteration; of a sliced one into every iteration."""
        for entry in self.roles.fed:
            assert entry.input is not None
            if self._has(entry.parameter):
                id = self._add_input(entry.input)
                for stage in self.stages if self.roles.role_of(entry) is Role.SLICED else self.stages[:1]:
                    self.edges.append(self._input_edge(id, entry, stage))
        outer = self.trace.loop.outer
        for control in self.trace.controls if self.part is None else ():
            source = outer.sources[self.layer.id][control.input]
            is_constant = source is not None and outer.by_id[source.layer].type == "Constant"
            if not is_constant or self.content.constants is ConstantStyle.BOX:  # else the facts say what they are
                id = self._add_input(control.input, control.text)
                self.edges += [FigureEdge(id, one.id, EdgeKind.PORT, control.name) for one in self.stages[:1]]

    def _add_input(self, index: int, *texts: str) -> str:
        """Add the box of an input, once; return its id."""
        id, form = f"in{index}", "" if self.content.values is ValueDetail.NONE else self.trace.input_form(index)
        lines = texts or filter(None, (f"input {index} of the loop", form))
        if all(node.id != id for node in self.nodes):
            self.nodes.append(input_node(self.trace.loop, self.names, index, *lines))
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
            if entry.output is None or not self.stages or not self._has(entry.result):
                continue
            if self.trace.failed and entry.slicing is None:
                continue
            id = f"out{entry.output}"
            kind, lines = NodeKind.OUTPUT, self._scan(entry)
            leads = [(self.stages[-1], EdgeKind.PORT, "last value")]
            if entry.slicing is not None:
                kind = NodeKind.CONCATENATION
                leads = [(stage, EdgeKind.PIECE, stage.pieces) for stage in self.stages]
            label = output_label(self.trace.loop, entry.output)
            self.nodes.append(FigureNode(id, kind, label, lines, joins=entry.slicing is not None))
            self.edges += [
                FigureEdge(stage.port(entry.result), id, lead, text, body=BodyEnds(entry.result))
                for stage, lead, text in leads
            ]

    def _scan(self, entry: OutputMapping) -> Lines:
        """Return how the pieces of an output are joined, and the shape that they make."""
        if entry.output is None or entry.slicing is None:
            return ("the value of the last iteration",)
        scan = self.trace.scan(entry.output)
        order = "nothing" if scan is None else scan.order + (" so far" if self.trace.failed else "")
        told = f"Concat, {axis_text(entry.slicing)}: {order}"
        return (told,) if scan is None or scan.shape is None else (told, shape_text(scan.shape))

    def _add_end(self) -> None:
        """Add the reason for the end, and the value that was it."""
        trace = self.trace
        lines = tuple(filter(None, (trace.reason or shortened(trace.ended, 60), trace.decided)))
        self.nodes.append(FigureNode("end", NodeKind.END, f"after {counted(trace.count, 'iteration')}", lines))
        condition = next((entry.result for entry in self.body.outputs if entry.purpose == "execution_condition"), None)
        for last in self.stages[-1:]:
            source = last.port(condition) if trace.by_condition and self._has(condition) else last.id
            self.edges.append(FigureEdge(source, "end", EdgeKind.ENDS, "ended the loop", body=BodyEnds(condition)))

    # --- iterations ------------------------------------------------------------------------------------------------

    def _add_stage(self, stage: _Stage) -> None:
        if stage.trace is None:
            count = stage.end - stage.begin
            label = f"… {counted(count, 'iteration')} left out: {stage.named('iteration')}"
            self.clusters.append(Cluster(stage.id, NodeKind.ELLIPSIS, label))
            return
        highlight = self.content.highlight
        here = highlight is not None and highlight.iteration == stage.begin and highlight.graph is self.body.graph
        self.clusters.append(Cluster(stage.id, NodeKind.ITERATION, f"iteration {stage.begin}", highlighted=here))
        ids = {id: f"{stage.id}.{shared}" for id, shared in self.shared.items()}
        places = {id: IterationPlace(stage.id, shared) for id, shared in self.shared.items()}
        for node in self.boxes:
            cluster = ids.get(node.cluster, stage.id)
            moved = replace(node, id=ids[node.id], cluster=cluster, place=places[node.id])
            self.nodes.append(self.texts.box(stage.trace, self.builder.drawn.get(node.id), moved))
        self.edges += [replace(edge, source=ids[edge.source], target=ids[edge.target]) for edge in self.wires]
        for inner in self.frames:
            parent = ids.get(inner.parent, stage.id)
            ports = tuple(replace(port, ends=tuple(ids[end] for end in port.ends)) for port in inner.ports)
            frame = replace(inner, id=ids[inner.id], parent=parent, ports=ports, place=places[inner.id])
            self.clusters.append(self.texts.frame(stage.trace, frame))

    def _add_carried(self) -> None:
        """Add every back edge once between each two neighbours of the stack."""
        lost = {(one.result, one.parameter) for one in edges_without_effect(self.layer)}
        for before, after in pairwise(self.stages):
            for edge in self.builder.levels[0].drawn.back_edges:
                if self._has(edge.tail, edge.head):
                    kind, label = EdgeKind.CARRIED, edge.name
                    if (edge.result, edge.parameter) in lost:
                        kind, label = EdgeKind.NO_EFFECT, f"{edge.name}: no effect"
                    ends = before.port(edge.tail), after.port(edge.head)
                    self.edges.append(FigureEdge(*ends, kind, label, body=BodyEnds(edge.result, edge.parameter)))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
