"""The port maps of an If: what goes into each side, and which of their Results an output is."""

from __future__ import annotations

from stepper.export.figures.builder import SIDES, declared_text
from stepper.export.figures.figure import Arrangement, Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.figures.labels import labels_of
from stepper.export.figures.loop_paths import LoopPath
from stepper.export.views.port_nodes import PortNodes
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Body, Layer

_WHEN = {"then": "runs if input 0 is true", "else": "runs if input 0 is false"}


def branch_ports_figure(loop: LoopPath) -> Figure:
    """Return both sides under each other, between the inputs and the outputs of the If."""
    made = _Sides(loop)
    for body in loop.layer.bodies:
        made.add_side(body)
    decides = loop.outer.sources[loop.layer.id][0]
    condition = "not connected" if decides is None else str(loop.outer.by_id[decides.layer])
    return Figure(
        title=f"{loop.title}, port maps",
        description=(
            f"What the port maps of {loop.title} say: on the left its inputs, in the middle the Parameters and "
            "Results of both sides, on the right its outputs. An output is a Result of the side that ran."
        ),
        nodes=tuple(made.nodes),
        edges=tuple(made.edges),
        clusters=tuple(made.clusters),
        arrangement=Arrangement.COLUMNS,
        facts=(f"condition: input 0, {excerpt(condition)}",),
    )


class _Sides(PortNodes):
    def __init__(self, loop: LoopPath) -> None:
        super().__init__(loop)
        self.clusters: list[Cluster] = []

    def add_side(self, body: Body) -> None:
        side = SIDES[body.role]
        self.clusters.append(Cluster(side, NodeKind.SIDE, f"{side}: {_WHEN[side]}"))
        names = labels_of(body.graph)
        inputs = {entry.parameter: entry.input for entry in body.inputs}
        for parameter in body.graph.parameters:
            index = inputs.get(parameter.id)
            self._add(NodeKind.PARAMETER, parameter, side, names[parameter.id])
            if index is not None:
                self.add_input(index)
                self.edges.append(FigureEdge(f"in{index}", f"{side}.n{parameter.id}", EdgeKind.PORT, ""))
        count = sum(layer.type not in ("Parameter", "Result", "Constant") for layer in body.graph.layers)
        label = f"{count} operation{'' if count == 1 else 's'}"
        self.nodes.append(FigureNode(f"{side}.operations", NodeKind.GROUP, label, cluster=side))
        for result in body.graph.results:
            self._add(NodeKind.RESULT, result, side, names[result.id])
            for entry in body.outputs:
                if entry.result == result.id and entry.output is not None:
                    self.add_output(entry.output)
                    label = f"if {side} ran"
                    self.edges.append(FigureEdge(f"{side}.n{result.id}", f"out{entry.output}", EdgeKind.PORT, label))

    def _add(self, kind: NodeKind, layer: Layer, side: str, name: str) -> None:
        port = layer.outputs[0] if kind is NodeKind.PARAMETER else layer.inputs[0]
        lines = (declared_text(port),)
        self.nodes.append(FigureNode(f"{side}.n{layer.id}", kind, excerpt(name), lines, title=str(layer), cluster=side))
