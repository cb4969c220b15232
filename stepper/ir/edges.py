"""The `<edges>` of a graph, and what they say of each layer's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NoReturn

from stepper.ir import xml
from stepper.ir.model import Edge, Layer, Port, Source, new
from stepper.ir.xml import Element, FilePlace

_ENDS: Final = ("from-layer", "from-port", "to-layer", "to-port")


def read_edges(place: FilePlace, element: Element, plain: Mapping[str, Sequence[int]]) -> tuple[Edge, ...]:
    """Return every `<edge>` as it is written (maybe all plain), under the current names or those of the first draft."""
    if listed := plain.get(mark := element.text or ""):
        numbers = iter(listed)
        lined = enumerate(zip(numbers, numbers, numbers, numbers, strict=True), xml.line_before(element, mark) + 1)
        return tuple(
            [
                new(Edge, (producer, output, consumer, input, line))
                for line, (producer, output, consumer, input) in lined
            ]
        )
    edges = []
    for edge in element.iterchildren("edge"):
        get = edge.get
        ends: Any = get("from-layer"), get("from-port"), get("to-layer"), get("to-port")
        try:
            producer, output, consumer, input = map(int, ends)
        except (TypeError, ValueError):
            producer, output, consumer, input = (xml.integer(place, edge, name) for name in _ENDS)
        edges.append(new(Edge, (producer, output, consumer, input, xml.line_of(edge))))
    return tuple(edges)


def sources_of(
    place: FilePlace, layers: Mapping[int, Layer], edges: Sequence[Edge]
) -> Mapping[int, tuple[Source | None, ...]]:
    """Return for each layer (by id) where each of its inputs comes from; None for one that no edge reaches.

    Raises ModelError for an edge from or to something that does not exist, and for two edges into one port.
    """
    inputs: dict[int, list[Source | None]] = {key: [None] * len(layer.inputs) for key, layer in layers.items()}
    for edge in edges:
        from_layer, from_port, to_layer, to_port, _line = edge
        producer, consumer = layers.get(from_layer), layers.get(to_layer)
        if producer is None or consumer is None:
            _fail(place, edge, f"this graph has no layer {from_layer if producer is None else to_layer}")
        output, index = _index(producer.outputs, from_port), _index(consumer.inputs, to_port)
        if output is None:
            _fail(place, edge, f"{producer} has no output port {from_port}, only {_ids(producer.outputs)}")
        if index is None:
            _fail(place, edge, f"{consumer} has no input port {to_port}, only {_ids(consumer.inputs)}")
        found = inputs[to_layer]
        if found[index] is not None:
            _fail(place, edge, f"a second edge into input port {to_port} of {consumer}")
        found[index] = new(Source, (from_layer, output))
    return MappingProxyType({key: tuple(found) for key, found in inputs.items()})


def _fail(place: FilePlace, edge: Edge, message: str) -> NoReturn:
    where = f"edge {edge.from_layer}:{edge.from_port} -> {edge.to_layer}:{edge.to_port}"
    FilePlace(place.path, edge.line, where).fail(message)


def _index(ports: Sequence[Port], identity: int) -> int | None:
    for index, port in enumerate(ports):
        if port.id == identity:
            return index
    return None


def _ids(ports: Sequence[Port]) -> str:
    return ", ".join(str(port.id) for port in ports) or "none"
