"""The port map of a loop or If: what is outside, the bodies, the next iteration; entries with role and slicing."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.engine.loops import OutputRole, Role, RoleError, output_role, roles_of
from stepper.errors import ModelError
from stepper.export.figures.builder import declared_text, input_role, origin_role, port_roles
from stepper.export.figures.content import FigureContent
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
from stepper.export.figures.labels import reader_names, references_of
from stepper.export.figures.loop_facts import condition_effect, edges_without_effect, loop_facts
from stepper.export.figures.loop_paths import LoopPath
from stepper.ir.model import Body, Layer, Model, Slicing
from stepper.wording import counted, excerpt

BODY = "body"
_WHEN = {"then": "runs if input 0 is true", "else": "runs if input 0 is false"}


def ports_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the port map of a loop: inputs, carried values, outputs; of an If those of both sides."""
    if loop.layer.is_loop:
        return _loop_ports(model, loop, content)
    return _branch_ports(loop)


def _loop_ports(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    ports = _LoopPorts(loop)
    ports.add_inputs()
    ports.add_results(condition_effect(model, loop.outer, loop.layer))
    return Figure(
        title=f"{loop.title}, port map",
        description=(
            f"What the port map of {loop.title} says: on the left what is outside, in the middle the body's "
            "Parameters and Results, on the right the loop's outputs and, dashed, the Parameters of the next iteration."
        ),
        nodes=tuple(ports.nodes),
        edges=tuple(ports.edges),
        clusters=(Cluster(BODY, NodeKind.LOOP, "body"),),
        arrangement=Arrangement.PORT_MAP,
        facts=loop_facts(model, loop.outer, loop.layer, content.limit_of(loop.outer, loop.layer)),
    )


def _branch_ports(loop: LoopPath) -> Figure:
    ports = _Ports(loop)
    sides = [SIDES[body.role] for body in loop.layer.bodies]
    for side, body in zip(sides, loop.layer.bodies, strict=True):
        _add_side(ports, side, body)
    decides = loop.outer.sources[loop.layer.id][0]
    condition = "not connected" if decides is None else str(loop.outer.by_id[decides.layer])
    return Figure(
        title=f"{loop.title}, port maps",
        description=(
            f"What the port maps of {loop.title} say: on the left its inputs, in the middle the Parameters and "
            "Results of both sides, on the right its outputs. An output is a Result of the side that ran."
        ),
        nodes=tuple(ports.nodes),
        edges=tuple(ports.edges),
        clusters=tuple(Cluster(side, NodeKind.SIDE, f"{side}: {_WHEN[side]}") for side in sides),
        arrangement=Arrangement.PORT_MAP,
        facts=(f"condition: input 0, {excerpt(condition)}",),
    )


class _Ports:
    """Nodes and edges of a port map, those outside of the bodies each once."""

    def __init__(self, loop: LoopPath) -> None:
        self.loop, self.layer = loop, loop.layer
        self.outer = references_of(loop.outer)
        self.nodes: list[FigureNode] = []
        self.edges: list[FigureEdge] = []

    def add_input(self, index: int) -> None:
        """Add the box of an input, once."""
        id = f"in{index}"
        if any(node.id == id for node in self.nodes):
            return
        source = self.loop.outer.sources[self.layer.id][index]
        if source is None:
            self.nodes.append(FigureNode(id, NodeKind.INPUT, f"input {index}", ("not connected",)))
            return
        producer = self.loop.outer.by_id[source.layer]
        lines = (f"input {index}: {declared_text(producer.outputs[source.output])}",)
        label, role = excerpt(self.outer[producer.id]), origin_role(self.loop.outer, source)
        self.nodes.append(FigureNode(id, NodeKind.INPUT, label, lines, title=str(producer), role=role))

    def add_output(self, output: int) -> None:
        """Add the box of an output, once."""
        id = f"out{output}"
        if any(node.id == id for node in self.nodes):
            return
        readers = reader_names(self.loop.outer, self.layer, output, 24)
        label = f"output {output} → {readers[0]}" if readers else f"output {output}"
        lines = (declared_text(self.layer.outputs[output]),)
        self.nodes.append(FigureNode(id, NodeKind.OUTPUT, excerpt(label), lines))

    def add_port(self, id: str, layer: Layer, name: str, cluster: str, *lines: str) -> None:
        """Add the box of a Parameter or Result of a body."""
        kind, port = NodeKind.PARAMETER, layer.outputs[:1]
        if layer.type == "Result":
            kind, port = NodeKind.RESULT, layer.inputs[:1]
        texts = (declared_text(port[0]), *lines)
        self.nodes.append(FigureNode(id, kind, excerpt(name), texts, title=str(layer), cluster=cluster))

    def add_operations(self, id: str, body: Body, cluster: str) -> None:
        """Add a box that counts the operations of a body."""
        text = counted(len(body.graph.operations), "operation")
        self.nodes.append(FigureNode(id, NodeKind.GROUP, text, cluster=cluster))


def _add_side(ports: _Ports, side: str, body: Body) -> None:
    names = references_of(body.graph)
    inputs = {entry.parameter: entry.input for entry in body.inputs}
    for parameter in body.graph.parameters:
        index = inputs.get(parameter.id)
        ports.add_port(f"{side}.n{parameter.id}", parameter, names[parameter.id], side)
        if index is not None:
            ports.add_input(index)
            ports.edges.append(FigureEdge(f"in{index}", f"{side}.n{parameter.id}", EdgeKind.PORT, ""))
    ports.add_operations(f"{side}.operations", body, side)
    for result in body.graph.results:
        ports.add_port(f"{side}.n{result.id}", result, names[result.id], side)
        for entry in body.outputs:
            if entry.result == result.id and entry.output is not None:
                ports.add_output(entry.output)
                ends = f"{side}.n{result.id}", f"out{entry.output}"
                ports.edges.append(FigureEdge(*ends, EdgeKind.PORT, f"if {side} ran"))


def _details(slicing: Slicing | None) -> tuple[str, ...]:
    """Return how an entry of a port map cuts or joins."""
    return () if slicing is None else (str(slicing),)


class _LoopPorts(_Ports):
    """Nodes and edges of the port map of a loop."""

    def __init__(self, loop: LoopPath) -> None:
        super().__init__(loop)
        self.body, self.inner = loop.body, references_of(loop.body.graph)
        try:
            self.roles = roles_of(loop.layer)
        except RoleError as error:
            raise ModelError(f"{error.line}: {loop.title} has no port map that could be drawn: {error}") from None

    def add_inputs(self) -> None:
        """Add every input entry, then the Parameters without a source, and the operations in between."""
        entered: set[int] = set()
        for entry in self.body.inputs:
            role = input_role(self.layer, entry)
            if entry.parameter not in entered:
                self._add_parameter(self.body.graph.by_id[entry.parameter])
            entered.add(entry.parameter)
            if entry.input is None:
                continue
            self.add_input(entry.input)
            kind = EdgeKind.SLICE if role == Role.SLICED else EdgeKind.PORT
            text = f"{role}, initial value" if role == Role.MERGED else role
            ends = f"in{entry.input}", f"n{entry.parameter}"
            self.edges.append(FigureEdge(*ends, kind, text, details=_details(entry.slicing)))
        for parameter in self.body.graph.parameters:
            if parameter.id not in entered:
                self._add_parameter(parameter)
        self.add_operations("operations", self.body, BODY)

    def _add_parameter(self, layer: Layer) -> None:
        lines = ["current iteration"] if layer.id in self.roles.current_iteration else []
        if not lines and any(layer.id == unfed.id for unfed in self.roles.unfed):
            lines = ["not connected"]
        role = PortRole.CARRIED if layer.id in self.roles.merged_from else PortRole.NONE
        self.add_port(f"n{layer.id}", layer, self.inner[layer.id], BODY, *lines)
        self.nodes[-1] = replace(self.nodes[-1], role=role)

    def add_results(self, condition: str) -> None:
        """Add every Result with its targets: outputs of the loop, Parameters of the next iteration, the condition.

        `condition` says what that means for the loop.
        """
        roles = port_roles(self.layer, self.body)
        for result in self.body.graph.results:
            self.add_port(f"n{result.id}", result, self.inner[result.id], BODY)
            self.nodes[-1] = replace(self.nodes[-1], role=roles.get(result.id, PortRole.NONE))
            for entry in self.body.outputs:
                if entry.result != result.id:
                    continue
                text = str(output_role(entry))
                if output_role(entry) is OutputRole.NOT_CONNECTED:
                    continue
                if entry.output is None:
                    self.nodes.append(FigureNode(f"condition{result.id}", NodeKind.END, condition))
                    self.edges.append(FigureEdge(f"n{result.id}", f"condition{result.id}", EdgeKind.ENDS, text))
                    continue
                self.add_output(entry.output)
                kind = EdgeKind.PORT if entry.slicing is None else EdgeKind.PIECE
                ends = f"n{result.id}", f"out{entry.output}"
                self.edges.append(FigureEdge(*ends, kind, text, details=_details(entry.slicing)))
            for parameter, source in self.roles.merged_from.items():
                if source == result.id:
                    self._add_next(parameter, result, EdgeKind.BACK, "back edge")
            for edge in edges_without_effect(self.layer):
                if edge.result == result.id:
                    self._add_next(edge.parameter, result, EdgeKind.NO_EFFECT, "back edge: no effect", edge.told)

    def _add_next(
        self, parameter: int, result: Layer, kind: EdgeKind, label: str, details: tuple[str, ...] = ()
    ) -> None:
        layer, id = self.body.graph.by_id[parameter], f"next{parameter}"
        name = excerpt(self.inner[layer.id])
        if all(node.id != id for node in self.nodes):
            role = PortRole.CARRIED if parameter in self.roles.merged_from else PortRole.NONE
            node = FigureNode(id, NodeKind.PARAMETER, name, ("in the next iteration",), title=str(layer), role=role)
            self.nodes.append(node)
        self.edges.append(FigureEdge(f"n{result.id}", id, kind, label, details=details))
