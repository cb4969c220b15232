"""A model's file as OpenVINO is to read it: whole, a body of it alone, or with its loops' iterations counted.

All of it is text: what the file says goes over as it stands, in IR version 11 (which reads version 10 too, but with the
element types of inputs and outputs as they are declared), with the same .bin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from lxml import etree

from stepper.errors import UsageError
from stepper.ir import xml
from stepper.ir.model import Graph, Layer, LoopKey, Model
from stepper.ir.xml import Element
from stepper.openvino.texts.edits import (
    Step,
    Way,
    body_of,
    graph_at,
    holder,
    map_output,
    new_edge,
    new_layer,
    new_parameter,
    new_port,
    new_result,
    part,
    port_map,
)
from stepper.openvino.texts.model_text import NativeText, weights_of

_AS_WRITTEN: Final = re.compile(rb'(<\?xml version="1\.0"\?>\s*)?<net name="[^"<]*" version="11">')
"""How a file begins that may go over as it is: in UTF-8, as OpenVINO writes it."""


def whole(model: Model) -> NativeText:
    """Return the model as its file has it."""
    content = xml.content_of(model.path)
    if _AS_WRITTEN.match(content):
        with suppress(UnicodeDecodeError):
            return NativeText(content.decode(), weights_of(model))
    return changed(model, xml.parse(model.path))


def body(model: Model, graph: Graph) -> NativeText:
    """Return one of the model's bodies as a model: inputs and outputs are its Parameters and Results.

    UsageError for a graph that the file does not have (a recurrent sequence opened as a loop).
    """
    place = _place_of(model, graph)
    if model.calls is not None:  # the loop over calls is none of the file: its body is the file's whole graph
        place = place[1:]
        if not place and _is_other(graph):
            raise UsageError("the body has variables and parts of calls that the file has otherwise")
    element = graph_at(xml.parse(model.path), place)
    if element is None:
        raise UsageError("the body is none that the model's file has; OpenVINO cannot run it alone")
    if not place:
        return whole(model)
    net = etree.Element("net", name="body")
    net.extend(list(element))
    return changed(model, net)


def counted(model: Model) -> tuple[NativeText, list[LoopKey]]:
    """Return the model with a Result more for each loop: how many iterations it ran in all, an i32 of shape [1].

    They follow the model's own Results, in the order of the keys that are returned. (Without these OpenVINO drops what
    loops need, and crashes.) Two Parameters more, i32 [1], want 0 and 1, after the model's own. Loops opened from a
    sequence are not counted.
    """
    root = xml.parse(model.path)
    ways = [way for way in _ways(model) if graph_at(root, way) is not None]
    zero, one = (new_parameter(root, name) for name in ("stepper_zero", "stepper_one"))
    for way in ways:
        layer, port = _count(root, way, zero, one)
        new_result(root, layer, port)
    return changed(model, root), [_key(way) for way in ways]


def changed(model: Model, net: Element) -> NativeText:
    """Return the text of a model's changed graph, with the model's .bin."""
    return NativeText(_text(net), weights_of(model))


def _text(net: Element) -> str:
    net.set("version", "11")
    return etree.tostring(net, encoding="unicode")


# --- finding ---------------------------------------------------------------------------------------------------------


def _place_of(model: Model, graph: Graph) -> tuple[Step, ...]:
    stack: list[tuple[tuple[Step, ...], Graph]] = [((), model.graph)]
    while stack:
        place, outer = stack.pop()
        if outer is graph and place:
            return place
        stack += [((*place, (layer.id, body.role)), body.graph) for layer in outer.layers for body in layer.bodies]
    raise UsageError("the graph is not a body of the model")


def _is_other(graph: Graph) -> bool:
    """Return True if the body of a loop over calls takes or gives something else than the file's graph."""
    return any(layer.opened_from is not None for layer in graph.layers if not layer.is_loop)


def _ways(model: Model) -> Iterator[Way]:
    """To each loop that is read, outer before inner."""
    stack: list[tuple[Way, Graph]] = [((), model.graph)]
    while stack:
        way, graph = stack.pop()
        inner: list[tuple[Way, Graph]] = []
        for layer in graph.layers:
            if not layer.bodies or layer.opened_from is not None or not _is_needed(graph, layer):
                continue
            if layer.is_loop:
                yield (*way, (layer.id, "body"))
            inner += [((*way, (layer.id, body.role)), body.graph) for body in layer.bodies]
        stack += reversed(inner)


def _key(way: Way) -> LoopKey:
    steps = ((identity,) if role == "body" else (identity, role) for identity, role in way)
    return tuple(part for step in steps for part in step)


def _is_needed(graph: Graph, layer: Layer) -> bool:
    """Return True if anything reads it; OpenVINO drops what nothing reads, and would run it for its count alone."""
    return any(source is not None and source.layer == layer.id for found in graph.sources.values() for source in found)


# --- counting --------------------------------------------------------------------------------------------------------


def _count(root: Element, way: Way, zero: int, one: int) -> tuple[int, int]:
    """Let the loop at the end of the way count; the layer and port, in the main graph, where the count comes out.

    The innermost adds 1 in each iteration, every loop around it what the next inner one counted. An If on the way hands
    that on from the branch that leads there, and from the other one 0.
    """
    graphs: list[Element] = [root]
    zeros, ones = [zero], [one]
    for identity, role in way:
        layer, body = holder(graphs[-1], identity), body_of(graphs[-1], identity, role)
        zeros.append(_invariant(graphs[-1], layer, role, body, zeros[-1]))
        ones.append(_invariant(graphs[-1], layer, role, body, ones[-1]))
        graphs.append(body)
    added = (ones[-1], 0)
    for depth in reversed(range(len(way))):
        (identity, role), graph, body = way[depth], graphs[depth], graphs[depth + 1]
        layer = holder(graph, identity)
        if role == "body":
            port = _sum(graph, layer, body, zeros[depth], added)
        else:
            port = _handed_on(graph, layer, role, body, zeros[depth], added)
        added = (identity, port)
    return added


def _invariant(graph: Element, layer: Element, role: str, body: Element, source: int) -> int:
    """Hand a Parameter's value of the graph around into the body; the id of the body's Parameter."""
    parameter = new_parameter(body, "stepper_invariant")
    _map_input(graph, layer, role, source, parameter)
    return parameter


def _sum(graph: Element, loop: Element, body: Element, zero: int, added: tuple[int, int]) -> int:
    """Carry a sum through the loop, which begins with zero; the port of the loop where it comes out."""
    parameter = new_parameter(body, "stepper_count")
    sum = new_layer(body, "Add", "stepper_sum", inputs=2, outputs=1, auto_broadcast="numpy")
    new_edge(body, parameter, 0, sum, 0)
    new_edge(body, *added, sum, 1)
    result = new_result(body, sum, 2)
    _map_input(graph, loop, "body", zero, parameter)
    edges = part(loop, "back_edges")
    etree.SubElement(edges, "edge", {"from-layer": str(result), "to-layer": str(parameter)})
    return map_output(loop, {"body": result})


def _handed_on(graph: Element, branch: Element, role: str, body: Element, zero: int, added: tuple[int, int]) -> int:
    """Give out of an If what the one branch has, or 0 from the other; the port of the If where it comes out."""
    other = "else_body" if role == "then_body" else "then_body"
    elsewhere = branch.find(other)
    assert elsewhere is not None
    nothing = _invariant(graph, branch, other, elsewhere, zero)
    return map_output(branch, {role: new_result(body, *added), other: new_result(elsewhere, nothing, 0)})


def _map_input(graph: Element, layer: Element, role: str, source: int, parameter: int) -> None:
    side = part(layer, "input")
    index, port = len(side.findall("port")), new_port(layer)
    etree.SubElement(etree.SubElement(side, "port", id=str(port), precision="I32"), "dim").text = "1"
    entry = {"external_port_id": str(index), "internal_layer_id": str(parameter)}
    part(layer, port_map(role)).insert(0, etree.Element("input", entry))
    new_edge(graph, source, 0, int(layer.get("id", "")), port)
