"""The `<edges>` of a graph, and what they say of each layer's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from stepper.ir import xml
from stepper.ir.model import Edge, Layer, Port, Source
from stepper.ir.xml import Element, Place


def read_edges(place: Place, element: Element) -> tuple[Edge, ...]:
    """Every `<edge>` as it is written, under the current names or those of the first draft."""
    edges = []
    for edge in element:
        if edge.tag != "edge":
            continue
        attributes = edge.attrib
        try:
            ends = [int(attributes[name]) for name in ("from-layer", "from-port", "to-layer", "to-port")]
        except (KeyError, ValueError):
            ends = [xml.integer(place, edge, name) for name in ("from-layer", "from-port", "to-layer", "to-port")]
        edges.append(Edge(ends[0], ends[1], ends[2], ends[3], xml.line_of(edge)))
    return tuple(edges)


def sources_of(
    place: Place, layers: Mapping[int, Layer], edges: Sequence[Edge]
) -> Mapping[int, tuple[Source | None, ...]]:
    """For each layer (by id) where each of its inputs comes from; None for one that no edge reaches.

    Raises ModelError for an edge from or to something that does not exist, and for two edges into one port.
    """
    inputs: dict[int, list[Source | None]] = {key: [None] * len(layer.inputs) for key, layer in layers.items()}
    for edge in edges:
        producer, consumer = layers.get(edge.from_layer), layers.get(edge.to_layer)
        at = Place(place.path, edge.line, f"edge {edge.from_layer}:{edge.from_port} -> {edge.to_layer}:{edge.to_port}")
        if producer is None or consumer is None:
            missing = edge.from_layer if producer is None else edge.to_layer
            at.fail(f"this graph has no layer {missing}")
        output = _index(producer.outputs, edge.from_port)
        if output is None:
            at.fail(f"{producer} has no output port {edge.from_port}, only {_ids(producer.outputs)}")
        index = _index(consumer.inputs, edge.to_port)
        if index is None:
            at.fail(f"{consumer} has no input port {edge.to_port}, only {_ids(consumer.inputs)}")
        if inputs[edge.to_layer][index] is not None:
            at.fail(f"a second edge into input port {edge.to_port} of {consumer}")
        inputs[edge.to_layer][index] = Source(edge.from_layer, output)
    return MappingProxyType({key: tuple(found) for key, found in inputs.items()})


def _index(ports: Sequence[Port], identity: int) -> int | None:
    for index, port in enumerate(ports):
        if port.id == identity:
            return index
    return None


def _ids(ports: Sequence[Port]) -> str:
    return ", ".join(str(port.id) for port in ports) or "none"
