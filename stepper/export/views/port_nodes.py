"""Nodes outside of the bodies in a port map: the inputs and outputs of a loop or If."""

from __future__ import annotations

from stepper.export.figures.builder import declared_text
from stepper.export.figures.figure import FigureEdge, FigureNode, NodeKind
from stepper.export.figures.labels import labels_of, shortened
from stepper.export.figures.loop_paths import LoopPath
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Source


class PortNodes:
    """A port map on its way to a figure."""

    def __init__(self, loop: LoopPath) -> None:
        self.loop, self.layer = loop, loop.layer
        self.outer = labels_of(loop.outer)
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
        self.nodes.append(FigureNode(id, NodeKind.INPUT, excerpt(self.outer[producer.id]), lines, title=str(producer)))

    def add_output(self, output: int) -> None:
        """Add the box of an output, once."""
        id = f"out{output}"
        if any(node.id == id for node in self.nodes):
            return
        wanted = Source(self.layer.id, output)
        sources = self.loop.outer.sources
        reader = next((layer for layer in self.loop.outer.layers if wanted in sources[layer.id]), None)
        label = f"output {output}" if reader is None else f"output {output} → {shortened(self.outer[reader.id], 24)}"
        self.nodes.append(FigureNode(id, NodeKind.OUTPUT, excerpt(label), (declared_text(self.layer.outputs[output]),)))
