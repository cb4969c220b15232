"""Views of a model without a run: graph, body with its back edges, port map, recurrent cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.engine.frames import EventKind, Every
from stepper.engine.loops import NoEffect, OutputRole, Role, RoleError, output_role, roles_of
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import ExecutionError, LimitReached, ModelError, UnsupportedOperation
from stepper.export.equations import equations
from stepper.export.figures.builder import (
    FigureBuilder,
    FramePorts,
    declared_text,
    input_role,
    kind_of,
    loop_label,
    origin_role,
    port_roles,
)
from stepper.export.figures.content import FigureContent
from stepper.export.figures.drawn_graph import reader_names, references_of, shortened
from stepper.export.figures.figure import (
    SIDES,
    Arrangement,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    NodeKind,
    PortRole,
)
from stepper.export.figures.loop_facts import (
    EdgeWithoutEffect,
    condition_effect,
    differences_within,
    edges_without_effect,
    loop_facts,
)
from stepper.export.figures.loop_trace import LoopPath, loops_of
from stepper.export.fold_blocks import LARGE, drawn_once
from stepper.export.options import BlockStyle
from stepper.ir.model import Body, Graph, InputMapping, Layer, Model, OutputMapping
from stepper.query.short_names import is_automatic
from stepper.wording import counted, enumerated, excerpt

_MOST_NAMES: Final = 4
"""Names that a box has at most."""
_MOST_TYPES: Final = 3
_LONGEST: Final = 20
WHOLE_LABEL: Final = 44
"""Letters of the label of a frame that has a page of 84 mm for itself."""


def cell_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the body of a loop, or the sides of an If, as one box each."""
    layer = loop.layer
    facts = loop_facts(model, loop.outer, layer, content.limit_of(loop.outer, layer))
    inner = tuple(note for body in layer.bodies for note in differences_within(body.graph))
    id = f"c{layer.id}"
    frame = _titled(Cluster(id, kind_of(layer), layer.type), layer)
    formula = equations(model, layer) if layer.is_loop and content.formula else ()
    made = Figure(f"{loop.title}, rolled", "", (), (), (frame,), equations=formula, facts=(*facts, *inner))
    if layer.is_loop:
        made = _with_cell(made, loop, id, FramePorts(content, layer, loop.outer))
    else:
        made = _with_sides(made, loop, id)
    count = sum(len(body.graph.layers) for body in layer.bodies)
    description = (
        f"The body of {loop.title} as one box of {counted(count, 'layer')}, between what goes in and what comes out. "
        f"{'; '.join((*formula, *facts))}."
    )
    return replace(made, description=description)


def _titled(frame: Cluster, layer: Layer) -> Cluster:
    """Return the frame with a label that is not cut on narrow pages: a long name stands below the type."""
    label = loop_label(layer)
    if len(label) > WHOLE_LABEL:
        return replace(frame, label=layer.type, lines=(shortened(excerpt(layer.name), WHOLE_LABEL),))
    longer = f"{label}, one iteration" if layer.is_loop else label
    return replace(frame, label=longer if len(longer) <= WHOLE_LABEL else label)


def _with_cell(figure: Figure, loop: LoopPath, frame: str, ports: FramePorts) -> Figure:
    """Return the figure with the cell of a loop and its roles, back edges without effect, and a mark for each end."""
    body, roles = loop.body, roles_of(loop.layer)
    names = _names_of(body.graph)
    carried = [names[parameter] for parameter in roles.merged_from]
    lost = edges_without_effect(loop.layer)
    inputs = _told(
        {
            "sliced": [_with_origin(loop, entry, names) for entry in roles.sliced],
            "the same each time": [_with_origin(loop, entry, names) for entry in roles.invariant],
            "iteration number": [names[parameter] for parameter in roles.current_iteration],
            "not fed": [names[one.parameter] for one in lost if one.reason is NoEffect.NOT_FED],
        }
    )
    nodes, edges = [_cell(body.graph, "cell", frame)], list[FigureEdge]()

    def add(kind: NodeKind, id: str, *lines: str, label: str = "", role: PortRole = PortRole.NONE) -> None:
        """Add a box with the edge from it to the cell, or from the cell to it."""
        nodes.append(FigureNode(id, kind, label or id, lines, cluster=frame, role=role))
        edges.append(FigureEdge(*((id, "cell") if kind is NodeKind.PARAMETER else ("cell", id)), EdgeKind.DATA))

    if inputs:
        add(NodeKind.PARAMETER, "inputs", *inputs)
    if carried:
        add(NodeKind.PARAMETER, "carried", _listed(carried), role=PortRole.CARRIED)
    if carried or lost:
        add(NodeKind.RESULT, "next")
    if carried:
        edges.append(FigureEdge("next", "carried", EdgeKind.BACK, counted(len(carried), "carried value")))
    for head, is_there in (("carried", carried), ("inputs", inputs)):
        here = [one for one in lost if (one.reason is NoEffect.EARLIER) == (head == "carried")]
        if here and is_there:
            edges.append(_without_effect(head, here))
    outputs = _outputs(loop)
    if outputs:
        add(NodeKind.RESULT, "outputs", *outputs)
    if can_end(body):
        add(NodeKind.RESULT, "condition", label="goes on?", role=PortRole.CONDITION)
        nodes.append(FigureNode("end", NodeKind.END, "false: ends", cluster=frame))
        edges.append(FigureEdge("condition", "end", EdgeKind.ENDS))
    nodes += [FigureNode("count", NodeKind.END, way.words, cluster=frame) for way in ports.ways_to_end]
    found = tuple(ports.to_mark(way, "count") for way in ports.ways_to_end)
    clusters = tuple(replace(one, ports=found) for one in figure.clusters)
    return replace(figure, nodes=tuple(nodes), edges=tuple(edges), clusters=clusters)


def _without_effect(head: str, lost: Sequence[EdgeWithoutEffect]) -> FigureEdge:
    """Return the edge for back edges without effect; where there are several, their reasons are told below."""
    told = lost[0].told if len(lost) == 1 else (f"{len(lost)} back edges,", "as told below")
    label = f"{counted(len(lost), 'back edge')}: no effect"
    return FigureEdge("next", head, EdgeKind.NO_EFFECT, label, details=told)


def _with_origin(loop: LoopPath, entry: InputMapping, names: Mapping[int, str]) -> str:
    """Return the name of a Parameter; of one that a converter has numbered also that of what it gets."""
    name, source = names[entry.parameter], None
    if entry.input is not None and is_automatic(loop.body.graph.by_id[entry.parameter]):
        source = loop.outer.sources[loop.layer.id][entry.input]
    return name if source is None else f"{name} ← {_names_of(loop.outer)[source.layer]}"


def can_end(body: Body) -> bool:
    """True if the body has a condition that is no Constant."""
    result = next((entry.result for entry in body.outputs if output_role(entry).is_condition), None)
    source = None if result is None else body.graph.sources[result][0]
    return source is not None and body.graph.by_id[source.layer].type != "Constant"


def _with_sides(figure: Figure, loop: LoopPath, frame: str) -> Figure:
    """Return the figure with a cell for each side of an If."""
    sides = [(f"{frame}.{SIDES[body.role]}", body) for body in loop.layer.bodies]
    frames = [Cluster(id, NodeKind.SIDE, SIDES[body.role], frame, level=1) for id, body in sides]
    cells = [_side(loop, body, id) for id, body in sides]
    return replace(figure, clusters=(*figure.clusters, *frames), nodes=tuple(cells))


def _side(loop: LoopPath, body: Body, frame: str) -> FigureNode:
    names = _names_of(body.graph)
    told = _told(
        {
            "reads": [names[entry.parameter] for entry in body.inputs],
            "gives": [f"output {entry.output}" for entry in body.outputs if entry.output is not None],
        }
    )
    cell = _cell(body.graph, f"{frame}.cell", frame)
    return replace(cell, lines=(*cell.lines, *told))


def _cell(graph: Graph, id: str, frame: str) -> FigureNode:
    """Return the box of all operations of a graph, with the types that are there most often."""
    types = Counter(layer.type for layer in graph.operations)
    often = types.most_common(_MOST_TYPES)
    told = [f"{excerpt(type)}×{number}" if number > 1 else excerpt(type) for type, number in often]
    count, shown = types.total(), sum(number for _, number in often)
    told += [f"{count - shown} more"] if count > shown else []
    lines = (", ".join(told),) if count > 1 else ()
    return FigureNode(id, NodeKind.GROUP, counted(count, "operation"), lines, cluster=frame)


def _outputs(loop: LoopPath) -> tuple[str, ...]:
    """Return the outputs of a loop by role, each with the first that reads it."""
    found: dict[str, list[str]] = {}
    for entry in loop.body.outputs:
        if entry.output is None:
            continue
        readers = reader_names(loop.outer, loop.layer, entry.output, _LONGEST - 2)
        named = f"→{readers[0]}" if readers else ""
        role = "pieces" if output_role(entry).is_concatenated else "last value"
        found.setdefault(role, []).append(f"{entry.output}{named}")
    return _told(found)


def _told(groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the groups that have members in a line; none where all are empty."""
    text = "; ".join(f"{word}: {_listed(members)}" for word, members in groups.items() if members)
    return (text,) if text else ()


def _names_of(graph: Graph) -> Mapping[int, str]:
    """Return the names of layers as they have room here."""
    return {key: shortened(excerpt(name), _LONGEST) for key, name in references_of(graph).items()}


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join([*names[:_MOST_NAMES], *([f"{rest} more"] if rest > 0 else [])])


def model_figure(model: Model, content: FigureContent) -> Figure:
    """Return the model's own graph; bodies inside of their layers, to the depth asked for."""
    parts = FigureBuilder(content)
    parts.add_graph(model.graph, None, None, "")
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
        return cell_figure(model, loop, content)
    parts = FigureBuilder(content)
    parts.add_bodies(loop.layer, loop.outer, (), "", content.depth)
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
_WHEN = {"then": "runs if input 0 is true", "else": "runs if input 0 is false"}


def ports_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the port map of a loop: inputs, carried values, outputs; of an If those of both sides."""
    ports, layer, outer = PortBoxes(loop), loop.layer, loop.outer
    if layer.is_loop:
        ports.add_body(loop.body, BODY, condition=condition_effect(model, outer, layer))
        return ports.figure(
            f"{loop.title}, port map",
            f"What the port map of {loop.title} says: on the left what is outside, in the middle the body's "
            "Parameters and Results, on the right the loop's outputs and, dashed, the Parameters of the next "
            "iteration.",
            {BODY: "body"},
            loop_facts(model, outer, layer, content.limit_of(outer, layer)),
        )
    sides = {SIDES[body.role]: body for body in layer.bodies}
    for side, body in sides.items():
        ports.add_body(body, side, f"{side}.")
    decides = outer.sources[layer.id][0]
    condition = "not connected" if decides is None else str(outer.by_id[decides.layer])
    return ports.figure(
        f"{loop.title}, port maps",
        f"What the port maps of {loop.title} say: on the left its inputs, in the middle the Parameters and "
        "Results of both sides, on the right its outputs. An output is a Result of the side that ran.",
        {side: f"{side}: {_WHEN[side]}" for side in sides},
        (f"condition: input 0, {excerpt(condition)}",),
    )


def input_node(loop: LoopPath, names: Mapping[int, str], index: int, *lines: str) -> FigureNode:
    """Return the box of what goes into an input of a loop; `names` are those of the graph around it."""
    source = loop.outer.sources[loop.layer.id][index]
    label, title = f"input {index}", ""
    if source is not None:
        label, title = excerpt(names[source.layer]), str(loop.outer.by_id[source.layer])
    return FigureNode(f"in{index}", NodeKind.INPUT, label, lines, title=title, role=origin_role(loop.outer, source))


class PortBoxes:
    """Nodes and edges of a port map, or of a loop that did not start; those outside of the bodies each once."""

    def __init__(self, loop: LoopPath) -> None:
        self.loop, self.layer = loop, loop.layer
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

    def figure(self, title: str, description: str, frames: Mapping[str, str], facts: tuple[str, ...]) -> Figure:
        """Return the figure; `frames` are the titles of bodies by their ids."""
        kind = NodeKind.LOOP if self.layer.is_loop else NodeKind.SIDE
        return Figure(
            title,
            description,
            tuple(self.nodes.values()),
            tuple(self.edges),
            tuple(Cluster(id, kind, label) for id, label in frames.items()),
            arrangement=Arrangement.PORT_MAP,
            facts=facts,
        )

    def add(self, node: FigureNode) -> str:
        """Add a box, once; return its id."""
        self.nodes.setdefault(node.id, node)
        return node.id

    def add_input(self, index: int) -> str:
        """Add the box of an input, once."""
        source = self.loop.outer.sources[self.layer.id][index]
        line = "not connected"
        if source is not None:
            line = f"input {index}: {declared_text(self.loop.outer.by_id[source.layer].outputs[source.output])}"
        return self.add(input_node(self.loop, self.outer, index, line))

    def add_output(self, output: int) -> str:
        """Add the box of an output, once."""
        readers = reader_names(self.loop.outer, self.layer, output, 24)
        label = f"output {output} → {readers[0]}" if readers else f"output {output}"
        lines = (declared_text(self.layer.outputs[output]),)
        return self.add(FigureNode(f"out{output}", NodeKind.OUTPUT, excerpt(label), lines))

    def add_body(self, body: Body, frame: str, prefix: str = "", condition: str = "") -> None:
        """Add every input entry, the Parameters without a source, the operations, and the Results with their targets.

        `condition` says what the condition means for the loop.
        """
        names = references_of(body.graph)
        for entry in body.inputs:
            role, parameter = input_role(self.layer, entry), body.graph.by_id[entry.parameter]
            target = self._add_parameter(parameter, names, frame, prefix)
            if entry.input is not None:
                kind = EdgeKind.SLICE if role == Role.SLICED else EdgeKind.PORT
                text = f"{role}, initial value" if role == Role.MERGED else role
                details = () if entry.slicing is None else (str(entry.slicing),)
                self.edges.append(FigureEdge(self.add_input(entry.input), target, kind, text, details=details))
        for parameter in body.graph.parameters:
            self._add_parameter(parameter, names, frame, prefix)
        count = counted(len(body.graph.operations), "operation")
        self.add(FigureNode(f"{prefix}operations", NodeKind.GROUP, count, cluster=frame))
        self._add_results(body, names, frame, prefix, condition)

    def _add_results(self, body: Body, names: Mapping[int, str], frame: str, prefix: str, condition: str) -> None:
        by_id, roles = body.graph.by_id, port_roles(self.layer, body)
        for result in body.graph.results:
            lines, label = (declared_text(result.inputs[0]),), excerpt(names[result.id])
            node = FigureNode(f"{prefix}n{result.id}", NodeKind.RESULT, label, lines, title=str(result), cluster=frame)
            id = self.add(replace(node, role=roles.get(result.id, PortRole.NONE)))
            for given in body.outputs:
                if given.result == result.id and output_role(given) is not OutputRole.NOT_CONNECTED:
                    text = str(output_role(given)) if self.layer.is_loop else f"if {frame} ran"
                    self._add_target(id, given, text, condition)
            for key, source in self.carried.items():
                if source == result.id:
                    self._add_next(by_id[key], names, id, EdgeKind.BACK, "back edge")
            for edge in self.lost:
                if edge.result == result.id:
                    label = "back edge: no effect"
                    self._add_next(by_id[edge.parameter], names, id, EdgeKind.NO_EFFECT, label, edge.told)

    def _add_parameter(self, layer: Layer, names: Mapping[int, str], frame: str, prefix: str) -> str:
        lines = (declared_text(layer.outputs[0]), self.told.get(layer.id, ""))
        return self.add(self._parameter(f"{prefix}n{layer.id}", layer, names, *filter(None, lines), frame=frame))

    def _parameter(self, id: str, layer: Layer, names: Mapping[int, str], *lines: str, frame: str = "") -> FigureNode:
        role, label = PortRole.CARRIED if layer.id in self.carried else PortRole.NONE, excerpt(names[layer.id])
        return FigureNode(id, NodeKind.PARAMETER, label, lines, title=str(layer), cluster=frame, role=role)

    def _add_target(self, id: str, entry: OutputMapping, text: str, condition: str) -> None:
        details = () if entry.slicing is None else (str(entry.slicing),)
        if entry.output is None:
            target, kind = self.add(FigureNode(f"condition{entry.result}", NodeKind.END, condition)), EdgeKind.ENDS
        else:
            target, kind = self.add_output(entry.output), EdgeKind.PIECE if entry.slicing else EdgeKind.PORT
        self.edges.append(FigureEdge(id, target, kind, text, details=details))

    def _add_next(
        self,
        layer: Layer,
        names: Mapping[int, str],
        id: str,
        kind: EdgeKind,
        label: str,
        details: tuple[str, ...] = (),
    ) -> None:
        target = self.add(self._parameter(f"next{layer.id}", layer, names, "in the next iteration"))
        self.edges.append(FigureEdge(id, target, kind, label, details=details))


_BEGINS: Final = (EventKind.ENTERED, EventKind.ITERATION)
_MOST_EVENTS: Final = 200_000
"""Events that are looked at; a run that is longer has shown nothing of what it had not entered by then."""
_MOST_VALUES: Final = 2_000_000
"""Values of which the sizes are looked at; a run that has more of them shows none."""

Sizes = Mapping[tuple[int, int, int], tuple[int, ...]]
"""Sizes of a value in a run, by id() of the graph, id of the layer and output; -1: not always the same."""


class LoopObservation(NamedTuple):
    """Facts of a run. `never_begun` are loops that did no iteration, by id() of the graph around them and their id.

    `sizes` are those of values of which the file leaves one open.
    """

    never_begun: frozenset[tuple[int, int]]
    sizes: Sizes


def observed_run(machine: Machine) -> LoopObservation:
    """Run a machine to its end, or to where it fails: what it showed before is true."""
    kinds: defaultdict[EventKind, set[tuple[int, int]]] = defaultdict(set)
    seen = _SeenSizes()
    try:
        for count, event in enumerate(machine.run(Every.ITERATION)):
            frame, activation = event.frame, event.frame.activation
            if count > _MOST_EVENTS:
                break
            if event.kind is not EventKind.ENTERED:
                seen.look(frame.program, frame.values)
            if event.kind in _BEGINS and activation is not None and activation.operation.layer.is_loop:
                kinds[event.kind].add((id(machine.stack[-2].program.graph), activation.operation.layer.id))
    except (ExecutionError, LimitReached, UnsupportedOperation):
        for frame in machine.stack:
            seen.look(frame.program, frame.values)
    return LoopObservation(frozenset(kinds[_BEGINS[0]] - kinds[_BEGINS[1]]), seen.sizes)


class _SeenSizes:
    """Sizes of the values seen so far."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, int], tuple[int, ...] | None] = {}
        self._open: dict[int, list[tuple[tuple[int, int, int], int]]] = {}
        self._count = 0

    @property
    def sizes(self) -> Sizes:
        """The sizes of all values of one rank; none where there were too many values."""
        if self._count > _MOST_VALUES:
            return {}
        return {key: sizes for key, sizes in self._found.items() if sizes is not None}

    def look(self, program: Program, values: Sequence[Any]) -> None:
        """Look at the values of a frame."""
        if self._count > _MOST_VALUES:
            return
        for key, slot in self._slots_of(program):
            value = values[slot]
            if value is None:
                continue
            self._count += 1
            shape = np.shape(value)
            known = self._found.setdefault(key, shape)
            if known is not None and known != shape:
                pairs = zip(known, shape, strict=True) if len(known) == len(shape) else None
                self._found[key] = None if pairs is None else tuple(a if a == b else -1 for a, b in pairs)

    def _slots_of(self, program: Program) -> list[tuple[tuple[int, int, int], int]]:
        """Return the slots of values of which the file leaves a size open."""
        if id(program) not in self._open:
            graph = program.graph
            self._open[id(program)] = [
                ((id(graph), layer, output), slot)
                for (layer, output), slot in program.slots.items()
                if any(min(port.dims, default=0) < 0 for port in graph.by_id[layer].outputs[output : output + 1])
            ]
        return self._open[id(program)]
