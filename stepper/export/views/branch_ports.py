"""The port maps of an If: what goes into each side, and which of their Results an output is."""

from __future__ import annotations

from stepper.export.figures.figure import Arrangement, Cluster, Edge, EdgeKind, Figure, Kind, Node
from stepper.export.figures.labels import labels_of
from stepper.export.figures.parts import SIDES, declared_text
from stepper.export.figures.places import LoopPlace
from stepper.export.views.port_nodes import PortNodes
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Body, Layer

_WHEN = {"then": "runs if input 0 is true", "else": "runs if input 0 is false"}


def branch_ports_figure(place: LoopPlace) -> Figure:
    """Both sides under each other, between the inputs and the outputs of the If."""
    made = _Sides(place)
    for body in place.layer.bodies:
        made.add_side(body)
    decides = place.outer.sources[place.layer.id][0]
    condition = "not connected" if decides is None else str(place.outer.by_id[decides.layer])
    return Figure(
        title=f"{place.title}, port maps",
        description=(
            f"What the port maps of {place.title} say: on the left its inputs, in the middle the Parameters and "
            "Results of both sides, on the right its outputs. An output is a Result of the side that ran."
        ),
        nodes=tuple(made.nodes),
        edges=tuple(made.edges),
        clusters=tuple(made.clusters),
        arrangement=Arrangement.COLUMNS,
        facts=(f"condition: input 0, {excerpt(condition)}",),
    )


class _Sides(PortNodes):
    def __init__(self, place: LoopPlace) -> None:
        super().__init__(place)
        self.clusters: list[Cluster] = []

    def add_side(self, body: Body) -> None:
        side = SIDES[body.role]
        self.clusters.append(Cluster(side, Kind.SIDE, f"{side}: {_WHEN[side]}"))
        names = labels_of(body.graph)
        inputs = {entry.parameter: entry.input for entry in body.inputs}
        for parameter in body.graph.parameters:
            index = inputs.get(parameter.id)
            self._add(Kind.PARAMETER, parameter, side, names[parameter.id])
            if index is not None:
                self.add_input(index)
                self.edges.append(Edge(f"in{index}", f"{side}.n{parameter.id}", EdgeKind.PORT, ""))
        count = sum(layer.type not in ("Parameter", "Result", "Constant") for layer in body.graph.layers)
        label = f"{count} operation{'' if count == 1 else 's'}"
        self.nodes.append(Node(f"{side}.operations", Kind.GROUP, label, cluster=side))
        for result in body.graph.results:
            self._add(Kind.RESULT, result, side, names[result.id])
            for entry in body.outputs:
                if entry.result == result.id and entry.output is not None:
                    self.add_output(entry.output)
                    label = f"if {side} ran"
                    self.edges.append(Edge(f"{side}.n{result.id}", f"out{entry.output}", EdgeKind.PORT, label))

    def _add(self, kind: Kind, layer: Layer, side: str, name: str) -> None:
        port = layer.outputs[0] if kind is Kind.PARAMETER else layer.inputs[0]
        lines = (declared_text(port),)
        self.nodes.append(Node(f"{side}.n{layer.id}", kind, excerpt(name), lines, title=str(layer), cluster=side))
