"""Connections of layers: ports, edges, and the port maps and back edges of TensorIterator, Loop and If.

Ports and edges in plain form come from plain.py, all others from the tree; names may be those of the first draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NoReturn

from stepper import element_types
from stepper.ir import xml
from stepper.ir.model import (
    BackEdge,
    Body,
    BodyRole,
    Edge,
    Graph,
    IgnoredOutput,
    InputMapping,
    Layer,
    OutputMapping,
    Port,
    Slicing,
    Source,
    new,
)
from stepper.ir.plain import PlainPort, ports_at, split_names
from stepper.ir.xml import FIRST_DRAFT_ATTRIBUTES, FIRST_DRAFT_TAGS, Element, Faults, FilePlace, each, tolerated

UNKNOWN_OUTER_PORT: Final = "unknown-outer-port"
UNKNOWN_BODY_LAYER: Final = "unknown-body-layer"
_MALFORMED_PORT: Final = "malformed-port"


def read_body(
    place: FilePlace,
    layer: Element,
    ports: Iterable[Port],
    role: BodyRole,
    port_map_tag: str,
    graph: Graph,
    faults: Faults = None,
) -> Body:
    """Return one body of the outer layer with its map, every entry checked against the body's Parameters and Results.

    `ports` are the inputs of the layer. Where `faults` are kept, entries and back edges that have one are left out.
    """
    port_map = layer.find(port_map_tag)
    entries: list[Element] = [] if port_map is None else [entry for entry in port_map if isinstance(entry.tag, str)]
    first_draft = _is_first_draft(layer, role, entries)
    input_ids = [port.id for port in ports]
    of_inputs, of_outputs = ([entry for entry in entries if entry.tag == tag] for tag in ("input", "output"))
    inputs = each(faults, lambda entry: _input(place, entry, graph, input_ids, first_draft=first_draft), of_inputs)
    read = each(faults, lambda entry: _output(place, entry, graph), of_outputs)
    outputs, ignored = _numbered(read)
    body = layer.find(role)
    return Body(
        role=role,
        graph=graph,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        back_edges=_back_edges(place, layer, graph, faults) if role == "body" else (),
        first_draft=first_draft,
        line=xml.line_of(layer if body is None else body),
        ignored=tuple(ignored),
        unread_inputs=len(of_inputs) - len(inputs),
        unread_outputs=len(of_outputs) - len(read),
    )


def _is_first_draft(layer: Element, role: BodyRole, entries: Iterable[Element]) -> bool:
    if layer.find(f"{role}/{FIRST_DRAFT_TAGS['layers']}") is not None or layer.tag == FIRST_DRAFT_TAGS["layer"]:
        return True
    marks = {"condition", *FIRST_DRAFT_ATTRIBUTES.values()}
    return any(marks & set(entry.attrib) for entry in (*entries, *layer.findall("back_edges/edge")))


def _input(place: FilePlace, entry: Element, graph: Graph, port_ids: list[int], *, first_draft: bool) -> InputMapping:
    return InputMapping(
        input=_external_input(place, entry, graph, port_ids, first_draft=first_draft),
        parameter=_internal(place, entry, graph, "Parameter").id,
        slicing=_slicing(place, entry),
        purpose=entry.get("purpose"),
        condition=entry.get("condition", "").lower() in ("true", "1"),
        line=xml.line_of(entry),
    )


def _external_input(
    place: FilePlace, entry: Element, graph: Graph, port_ids: list[int], *, first_draft: bool
) -> int | None:
    """Return the index of the layer's input: what external_port_id is (semantics 5.4), in the first draft an id."""
    number = xml.integer(place, entry, "external_port_id")
    if number < 0:
        return None
    known = number in port_ids if first_draft else number < len(port_ids)
    if not known:
        fed = _internal(place, entry, graph, "Parameter").name
        place.at(entry).fail(
            f"external_port_id {number}, from which '{fed}' is fed, is not an input of this layer, which has "
            f"{len(port_ids)}",
            UNKNOWN_OUTER_PORT,
        )
    return port_ids.index(number) if first_draft else number


def _output(place: FilePlace, entry: Element, graph: Graph) -> OutputMapping:
    number = xml.integer(place, entry, "external_port_id")
    return OutputMapping(
        output=number if number >= 0 else None,
        result=_internal(place, entry, graph, "Result").id,
        slicing=_slicing(place, entry),
        purpose=entry.get("purpose"),
        line=xml.line_of(entry),
    )


def _slicing(place: FilePlace, entry: Element) -> Slicing | None:
    """Return the slicing of an entry, None for one without an axis (semantics 1.1); the rest has defaults."""
    axis, start, end, stride, part_size = (
        xml.optional_integer(place, entry, name) for name in ("axis", "start", "end", "stride", "part_size")
    )
    if axis is None:
        return None
    return Slicing(
        axis, 0 if start is None else start, -1 if end is None else end, 1 if stride is None else stride, part_size
    )


def _internal(place: FilePlace, entry: Element, graph: Graph, type: str) -> Layer:
    """Return the body's Parameter or Result that the entry maps to."""
    identity = xml.integer(place, entry, "internal_layer_id")
    layer = graph.by_id.get(identity)
    if layer is None:
        place.at(entry).fail(
            f"the body has no layer {identity}, to which this <{entry.tag!s}> of the port map leads", UNKNOWN_BODY_LAYER
        )
    if layer.type != type:
        place.at(entry).fail(
            f"this <{entry.tag!s}> of the port map leads to {layer}, expected a {type}", UNKNOWN_BODY_LAYER
        )
    return layer


def _numbered(outputs: list[OutputMapping]) -> tuple[list[OutputMapping], list[IgnoredOutput]]:
    """external_port_id in an output orders, it does not name: the k-th lowest is output k (semantics 2.6).

    Of two entries with one number the first counts, the others come as a list of their own; the order of the file is
    kept.
    """
    first: dict[int, OutputMapping] = {}
    for entry in outputs:
        if entry.output is not None:
            first.setdefault(entry.output, entry)
    index = {number: k for k, number in enumerate(sorted(first))}
    numbered = [
        entry if entry.output is None else entry._replace(output=index[entry.output])
        for entry in outputs
        if entry.output is None or first[entry.output] is entry
    ]
    return numbered, [
        IgnoredOutput(entry.result, first[entry.output].result, entry.output, entry.line)
        for entry in outputs
        if entry.output is not None and first[entry.output] is not entry
    ]


def _back_edges(place: FilePlace, layer: Element, graph: Graph, faults: Faults) -> tuple[BackEdge, ...]:
    def back_edge(edge: Element) -> BackEdge:
        result = xml.integer(place, edge, "from-layer")
        parameter = xml.integer(place, edge, "to-layer")
        source = graph.by_id.get(result)
        if source is None or source.type != "Result":
            what = f"{source}" if source else f"the body has no layer {result}"
            if target := graph.by_id.get(parameter):
                what += f" (it leads to {target})"
            place.at(edge).fail(
                f"a back edge begins at a Result of the body, from-layer is {result}: {what}",
                "back-edge-from-no-result",
            )
        return BackEdge(result, parameter, xml.line_of(edge))

    return tuple(each(faults, back_edge, layer.findall("back_edges/edge")))


_DIM_FAULTS: Final = {
    TypeError: "empty",
    ValueError: "no integer",
    OverflowError: "out of range, expected -1 or more",
}


def read_ports(
    place: FilePlace,
    side: Element,
    plain: Mapping[str, tuple[PlainPort, ...]],
    faults: Faults = None,
    *,
    is_output: bool,
) -> tuple[Port, ...]:
    """Return the ports of an `<input>` or `<output>`, which may be among the plain ones. ModelError for faults."""
    if listed := plain.get(mark := side.text or ""):
        return ports_at(listed, xml.line_before(side, mark))
    ports = [element for element in side if element.tag == "port"]
    return tuple(each(faults, lambda element: _port(place, element, is_output=is_output), ports))


def _port(place: FilePlace, element: Element, *, is_output: bool) -> Port:
    written, names = element.get("precision"), element.get("names") if is_output else None
    element_type = None if written is None else element_types.by_precision(written)
    if element_type is None:
        _check_precision(place, element, written, is_output=is_output)
    identity = xml.integer(place, element, "id")
    if not 0 <= identity < 10**9:
        place.at(element).fail(
            f"the id of a port is '{identity}', expected a small non-negative integer", _MALFORMED_PORT
        )
    port_names = split_names(names) if names else ()
    return Port(identity, element_type, _dims(place, element, identity), port_names, xml.line_of(element))


def _check_precision(place: FilePlace, element: Element, written: str | None, *, is_output: bool) -> None:
    """Raise ModelError unless a missing or unknown element type is allowed here."""
    if written is None and is_output:
        place.at(element).fail("an output port has no attribute 'precision', which is mandatory", _MALFORMED_PORT)
    if written is not None and written.lower() not in element_types.UNKNOWN_NAMES:
        place.at(element).fail(
            f"the precision '{written}' is not an element type (FP32, I64, BOOL, ...)", _MALFORMED_PORT
        )


def _dims(place: FilePlace, element: Element, identity: int) -> tuple[int, ...]:
    texts = [dim.text for dim in element if dim.tag == "dim"]
    try:
        dims = tuple([int(text) for text in texts])  # type: ignore[arg-type]  # TypeError for an empty element
        if min(dims, default=0) < -1 or max(dims, default=0) >= 2**63:
            raise OverflowError
    except (TypeError, ValueError, OverflowError) as error:
        place.at(element).fail(f"a <dim> of port {identity} is {_DIM_FAULTS[type(error)]}", _MALFORMED_PORT)
    return dims


_ENDS: Final = ("from-layer", "from-port", "to-layer", "to-port")


def read_edges(
    place: FilePlace, element: Element, plain: dict[str, Sequence[int]], faults: Faults = None
) -> tuple[Edge, ...]:
    """Return every `<edge>` as it is written, under the current names or those of the first draft.

    Those that are all plain are taken out: to free so many numbers takes long when they have left the cache.
    """
    if listed := plain.pop(mark := element.text or "", None):
        numbers = iter(listed)
        del listed
        lined = enumerate(zip(numbers, numbers, numbers, numbers, strict=True), xml.line_before(element, mark) + 1)
        return tuple(
            [
                new(Edge, (producer, output, consumer, input, line))
                for line, (producer, output, consumer, input) in lined
            ]
        )

    def written(edge: Element) -> Edge:
        get = edge.get
        ends: Any = get("from-layer"), get("from-port"), get("to-layer"), get("to-port")
        try:
            producer, output, consumer, input = map(int, ends)
        except (TypeError, ValueError):
            producer, output, consumer, input = (xml.integer(place, edge, name) for name in _ENDS)
        edge_: Edge = new(Edge, (producer, output, consumer, input, xml.line_of(edge)))
        return edge_

    return tuple(each(faults, written, element.iterchildren("edge")))


def sources_of(
    place: FilePlace, layers: Mapping[int, Layer], edges: Sequence[Edge], faults: Faults = None
) -> Mapping[int, tuple[Source | None, ...]]:
    """Return for each layer (by id) where each of its inputs comes from; None for one that no edge reaches.

    Raises ModelError for an edge from or to something that does not exist, and for two edges into one port.
    """
    inputs: dict[int, list[Source | None]] = {key: [None] * len(layer.inputs) for key, layer in layers.items()}
    rest, is_done = iter(edges), False
    while not is_done:  # again after each fault that is kept
        with tolerated(faults):
            _connect(place, layers, inputs, rest)
            is_done = True
    return MappingProxyType({key: tuple(found) for key, found in inputs.items()})


def _connect(
    place: FilePlace, layers: Mapping[int, Layer], inputs: dict[int, list[Source | None]], edges: Iterator[Edge]
) -> None:
    for edge in edges:
        from_layer, from_port, to_layer, to_port, _line = edge
        producer, consumer = layers.get(from_layer), layers.get(to_layer)
        if producer is None or consumer is None:
            missing = f"this graph has no layer {from_layer if producer is None else to_layer}"
            other = consumer if producer is None else producer
            _fail(place, edge, missing if other is None else f"{missing}; the other end of the edge is {other}")
        output, index = _index(producer.outputs, from_port), _index(consumer.inputs, to_port)
        if output is None:
            ports = _ids(producer.outputs)
            _fail(place, edge, f"{producer} has no output port {from_port}, only {ports}; the edge leads to {consumer}")
        if index is None:
            ports = _ids(consumer.inputs)
            _fail(place, edge, f"{consumer} has no input port {to_port}, only {ports}; the edge comes from {producer}")
        found = inputs[to_layer]
        if found[index] is not None:
            _fail(place, edge, f"a second edge into input port {to_port} of {consumer}")
        found[index] = new(Source, (from_layer, output))


def _fail(place: FilePlace, edge: Edge, message: str) -> NoReturn:
    where = f"edge {edge.from_layer}:{edge.from_port} -> {edge.to_layer}:{edge.to_port}"
    FilePlace(place.path, edge.line, where).fail(message, "malformed-edge")


def _index(ports: Sequence[Port], identity: int) -> int | None:
    for index, port in enumerate(ports):
        if port.id == identity:
            return index
    return None


def _ids(ports: Sequence[Port]) -> str:
    return ", ".join(str(port.id) for port in ports) or "none"
