"""What stands outside of the bodies in a port map: the inputs and outputs of a loop or If, with what they lead to."""

from __future__ import annotations

from stepper.export.figures.figure import Edge, Kind, Node
from stepper.export.figures.labels import labels_of, shortened
from stepper.export.figures.parts import declared_text
from stepper.export.figures.places import LoopPlace
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Source


class PortNodes:
    """A port map on its way to a figure."""

    def __init__(self, place: LoopPlace) -> None:
        self.place, self.layer = place, place.layer
        self.outer = labels_of(place.outer)
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []

    def add_input(self, index: int) -> None:
        """The box of an input, once."""
        id = f"in{index}"
        if any(node.id == id for node in self.nodes):
            return
        source = self.place.outer.sources[self.layer.id][index]
        if source is None:
            self.nodes.append(Node(id, Kind.INPUT, f"input {index}", ("not connected",)))
            return
        producer = self.place.outer.by_id[source.layer]
        lines = (f"input {index}: {declared_text(producer.outputs[source.output])}",)
        self.nodes.append(Node(id, Kind.INPUT, excerpt(self.outer[producer.id]), lines, title=str(producer)))

    def add_output(self, output: int) -> None:
        """The box of an output, once."""
        id = f"out{output}"
        if any(node.id == id for node in self.nodes):
            return
        wanted = Source(self.layer.id, output)
        sources = self.place.outer.sources
        reader = next((layer for layer in self.place.outer.layers if wanted in sources[layer.id]), None)
        label = f"output {output}" if reader is None else f"output {output} → {shortened(self.outer[reader.id], 24)}"
        self.nodes.append(Node(id, Kind.OUTPUT, excerpt(label), (declared_text(self.layer.outputs[output]),)))
