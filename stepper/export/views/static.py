"""Views of a model without a run: graph, body with its back edges, port map, recurrent cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.loops import OutputRole, Role, RoleError, output_role, roles_of
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.errors import ExecutionError, LimitReached, ModelError, UnsupportedOperation
from stepper.export.equations import equations
from stepper.export.figures.builder import (
    FigureBuilder,
    declared_text,
    input_role,
    loop_label,
    origin_role,
    port_roles,
)
from stepper.export.figures.content import FigureContent
from stepper.export.figures.drawn_graph import reader_names, references_of
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
    condition_effect,
    edges_without_effect,
    loop_facts,
)
from stepper.export.figures.loop_trace import LoopPath, LoopTrace, loops_of
from stepper.export.fold_blocks import LARGE, drawn_once
from stepper.export.options import BlockStyle
from stepper.ir.model import Body, Graph, Layer, Model, OutputMapping
from stepper.wording import counted, enumerated, excerpt


def can_end(body: Body) -> bool:
    """True if the body has a condition that is no Constant."""
    result = next((entry.result for entry in body.outputs if output_role(entry).is_condition), None)
    source = None if result is None else body.graph.sources[result][0]
    return source is not None and body.graph.by_id[source.layer].type != "Constant"


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
        formula = equations(model, loop.layer) if loop.layer.is_loop else ()
        return replace(ports_figure(model, loop, content), equations=formula)
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
                f"A run of {loop.title} without iterations. What a back edge would carry goes straight through: the "
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
            f"What the port map of {loop.title} says: the body's Parameters with what goes into them, and its Results "
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
        f"What the port maps of {loop.title} say: the Parameters of both sides with its inputs, and their Results with "
        "its outputs. An output is a Result of the side that ran.",
        {side: f"{side} side of {_operations(body.graph)}" for side, body in sides.items()},
        (f"condition: input 0, {excerpt(condition)}; then runs if it is true, else if it is false",),
    )


def _operations(graph: Graph) -> str:
    return counted(len(graph.operations), "operation")


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
        self.is_idle = idle is not None
        self.came, self.left = ({}, {}) if idle is None else (idle.came, idle.left)
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
            if idle is not None:
                self.told |= dict.fromkeys(self.carried, "first value = last value")

    def figure(self, title: str, description: str, frames: Mapping[str, str], facts: tuple[str, ...]) -> Figure:
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

    def add(self, node: FigureNode) -> str:
        """Add a box, once; return its id."""
        self.nodes.setdefault(node.id, node)
        return node.id

    def add_input(self, index: int) -> str:
        """Add the box of an input, once."""
        source = self.loop.outer.sources[self.layer.id][index]
        line = "not connected"
        if source is not None:
            declared = declared_text(self.loop.outer.by_id[source.layer].outputs[source.output])
            line = f"input {index}: {self.came.get(index, declared)}"
        return self.add(input_node(self.loop, self.outer, index, line))

    def add_output(self, output: int) -> str:
        """Add the box of an output, once."""
        readers = reader_names(self.loop.outer, self.layer, output, 24)
        label = f"output {output} → {readers[0]}" if readers else f"output {output}"
        lines = (self.left.get(output) or declared_text(self.layer.outputs[output]),)
        return self.add(FigureNode(f"out{output}", NodeKind.OUTPUT, excerpt(label), lines))

    def add_body(self, body: Body, frame: str, prefix: str = "", condition: str = "") -> None:
        """Add every input entry, the Parameters without a source, and the Results with their targets.

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
                if source == result.id and not self.is_idle:  # else no iteration is the next
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
    shapes: defaultdict[tuple[int, int, int], set[tuple[int, ...]]] = defaultdict(set)
    slots: dict[int, list[tuple[tuple[int, int, int], int]]] = {}
    looked = 0

    def look(frame: Frame) -> int:
        """Note the sizes of a frame's values of which the file leaves one open; return how many these are."""
        program = frame.program
        if id(program) not in slots:
            slots[id(program)] = list(_open_slots(program))
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
    sizes = {key: _always(seen) for key, seen in found.items() if len(set(map(len, seen))) == 1}
    return LoopObservation(frozenset(kinds[_BEGINS[0]] - kinds[_BEGINS[1]]), sizes)


def _open_slots(program: Program) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Yield the slots of values of which the file leaves a size open."""
    for (layer, output), slot in program.slots.items():
        ports = program.graph.by_id[layer].outputs[output : output + 1]
        if any(min(port.dims, default=0) < 0 for port in ports):
            yield (id(program.graph), layer, output), slot


def _always(shapes: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sizes that all shapes of one rank share; -1 for others."""
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
