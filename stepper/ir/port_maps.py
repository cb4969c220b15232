"""Port maps and back edges of TensorIterator, Loop and If, under the current names and those of the first draft."""

from __future__ import annotations

from collections.abc import Iterable

from stepper.ir import xml
from stepper.ir.dialects import FIRST_DRAFT_ATTRIBUTES, FIRST_DRAFT_TAGS
from stepper.ir.model import BackEdge, Body, BodyRole, Graph, InputMapping, Layer, OutputMapping, Port, Slicing
from stepper.ir.xml import Element, FilePlace


def read_body(
    place: FilePlace, layer: Element, ports: Iterable[Port], role: BodyRole, port_map_tag: str, graph: Graph
) -> Body:
    """Return one body of the outer layer with its map, every entry checked against the body's Parameters and Results.

    `ports` are the inputs of the layer.
    """
    port_map = layer.find(port_map_tag)
    entries: list[Element] = [] if port_map is None else [entry for entry in port_map if isinstance(entry.tag, str)]
    first_draft = _is_first_draft(layer, role, entries)
    input_ids = [port.id for port in ports]
    inputs = [
        _input(place, entry, graph, input_ids, first_draft=first_draft) for entry in entries if entry.tag == "input"
    ]
    outputs = [_output(place, entry, graph) for entry in entries if entry.tag == "output"]
    outputs = _numbered(outputs)
    body = layer.find(role)
    assert body is not None
    return Body(
        role=role,
        graph=graph,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        back_edges=tuple(_back_edges(place, layer, graph)) if role == "body" else (),
        first_draft=first_draft,
        line=xml.line_of(body),
    )


def _is_first_draft(layer: Element, role: BodyRole, entries: Iterable[Element]) -> bool:
    if layer.find(f"{role}/{FIRST_DRAFT_TAGS['layers']}") is not None or layer.tag == FIRST_DRAFT_TAGS["layer"]:
        return True
    marks = {"condition", *FIRST_DRAFT_ATTRIBUTES.values()}
    return any(marks & set(entry.attrib) for entry in (*entries, *layer.findall("back_edges/edge")))


def _input(place: FilePlace, entry: Element, graph: Graph, port_ids: list[int], *, first_draft: bool) -> InputMapping:
    return InputMapping(
        input=_external_input(place, entry, port_ids, first_draft=first_draft),
        parameter=_internal(place, entry, graph, "Parameter").id,
        slicing=_slicing(place, entry),
        purpose=entry.get("purpose"),
        condition=entry.get("condition", "").lower() in ("true", "1"),
        line=xml.line_of(entry),
    )


def _external_input(place: FilePlace, entry: Element, port_ids: list[int], *, first_draft: bool) -> int | None:
    """Return the index of the layer's input: what external_port_id is (semantics 5.4), in the first draft an id."""
    number = xml.integer(place, entry, "external_port_id")
    if number < 0:
        return None
    known = number in port_ids if first_draft else number < len(port_ids)
    if not known:
        place.at(entry).fail(f"external_port_id {number} is not an input of this layer, which has {len(port_ids)}")
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
        place.at(entry).fail(f"the body has no layer {identity}, to which this <{entry.tag!s}> of the port map leads")
    if layer.type != type:
        place.at(entry).fail(f"this <{entry.tag!s}> of the port map leads to {layer}, expected a {type}")
    return layer


def _numbered(outputs: list[OutputMapping]) -> list[OutputMapping]:
    """external_port_id in an output orders, it does not name: the k-th lowest is output k (semantics 2.6).

    Of two entries with one number the first counts; the order of the file is kept.
    """
    first: dict[int, OutputMapping] = {}
    for entry in outputs:
        if entry.output is not None:
            first.setdefault(entry.output, entry)
    index = {number: k for k, number in enumerate(sorted(first))}
    return [
        entry if entry.output is None else entry._replace(output=index[entry.output])
        for entry in outputs
        if entry.output is None or first[entry.output] is entry
    ]


def _back_edges(place: FilePlace, layer: Element, graph: Graph) -> list[BackEdge]:
    found = []
    for edge in layer.findall("back_edges/edge"):
        result = xml.integer(place, edge, "from-layer")
        parameter = xml.integer(place, edge, "to-layer")
        source = graph.by_id.get(result)
        if source is None or source.type != "Result":
            what = f"{source}" if source else f"the body has no layer {result}"
            place.at(edge).fail(f"a back edge begins at a Result of the body, from-layer is {result}: {what}")
        found.append(BackEdge(result, parameter, xml.line_of(edge)))
    return found
