"""A model's file as OpenVINO is to read it: whole, a body of it alone, or with its loops' iterations counted.

All of it is text: what the file says goes over as it stands, in IR version 11 (which reads version 10 too, but with the
element types of inputs and outputs as they are declared), with the same .bin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from stepper.errors import UsageError
from stepper.ir import xml
from stepper.ir.model import Graph, Layer, LoopKey, Model
from stepper.ir.xml import Element

Step = tuple[int, str]
"""Into a body: the id of the loop or If, and the role of the body."""

Way = tuple[Step, ...]
"""Through loops and Ifs into the body of a loop, which is the last step."""


class NativeText(NamedTuple):
    """The text of an IR, and the bytes of its .bin."""

    text: str
    weights: np.memmap[Any, Any] | None

    @property
    def weights_path(self) -> str:
        """The path of the .bin; empty without one."""
        return "" if self.weights is None else str(self.weights.filename)


def whole(model: Model) -> NativeText:
    """The model as its file has it."""
    return NativeText(_text(xml.parse(model.path)), _weights(model))


def body(model: Model, graph: Graph) -> NativeText:
    """One of the model's bodies as a model: its Parameters are the inputs, its Results the outputs, in file order.

    UsageError for a graph that the file does not have (a recurrent sequence opened as a loop).
    """
    element = _graph(xml.parse(model.path), _place_of(model, graph))
    if element is None:
        raise UsageError("the body is none that the model's file has; OpenVINO cannot run it alone")
    net = etree.Element("net", name="body")
    net.extend(list(element))
    return NativeText(_text(net), _weights(model))


def counted(model: Model) -> tuple[NativeText, list[LoopKey]]:
    """The model with a Result more for each loop: how many iterations it ran in all, an i32 of shape [1].

    They follow the model's own Results, in the order of the keys that are returned. Two Parameters more, i32 [1], want
    0 and 1, after the model's own. Loops opened from a sequence are not counted.
    """
    root = xml.parse(model.path)
    ways = [way for way in _ways(model) if _graph(root, way) is not None]
    zero, one = (_parameter(root, name) for name in ("stepper_zero", "stepper_one"))
    for way in ways:
        layer, port = _count(root, way, zero, one)
        _result(root, layer, port)
    return NativeText(_text(root), _weights(model)), [_key(way) for way in ways]


def _text(net: Element) -> str:
    net.set("version", "11")
    return etree.tostring(net, encoding="unicode")


def _weights(model: Model) -> np.memmap[Any, Any] | None:
    if model.weights is None or model.weights.size == 0:
        return None
    return mapped(model.weights.path)


def mapped(path: str | Path) -> np.memmap[Any, Any]:
    """The bytes of a .bin; copied on write, for OpenVINO wants memory that could be written."""
    return np.memmap(path, np.uint8, "c")


# --- finding ---------------------------------------------------------------------------------------------------------


def _place_of(model: Model, graph: Graph) -> tuple[Step, ...]:
    stack: list[tuple[tuple[Step, ...], Graph]] = [((), model.graph)]
    while stack:
        place, outer = stack.pop()
        if outer is graph and place:
            return place
        stack += [((*place, (layer.id, body.role)), body.graph) for layer in outer.layers for body in layer.bodies]
    raise UsageError("the graph is no body of the model")


def _ways(model: Model) -> Iterator[Way]:
    """To each loop that somebody reads, outer before inner."""
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
    """Whether anything reads it; OpenVINO drops what nothing reads, and would run it for its count alone."""
    return any(source is not None and source.layer == layer.id for found in graph.sources.values() for source in found)


def _graph(net: Element, place: Iterable[Step]) -> Element | None:
    """The body at the end of a way of layers and roles; None where the file has none."""
    found: Element | None = net
    for identity, role in place:
        layer = None if found is None else _child_layer(found, identity)
        found = None if layer is None else layer.find(role)
    return found


def _child_layer(graph: Element, identity: int) -> Element | None:
    layers = graph.find("layers")
    return None if layers is None else next((layer for layer in layers if layer.get("id") == str(identity)), None)


# --- counting --------------------------------------------------------------------------------------------------------


def _count(root: Element, way: Way, zero: int, one: int) -> tuple[int, int]:
    """Let the loop at the end of the way count; the layer and port, in the main graph, where the count comes out.

    The innermost adds 1 in each iteration, every loop around it what the next inner one counted. An If on the way hands
    that on from the branch that leads there, and from the other one 0.
    """
    graphs: list[Element] = [root]
    zeros, ones = [zero], [one]
    for identity, role in way:
        layer, body = _holder(graphs[-1], identity), _body(graphs[-1], identity, role)
        zeros.append(_invariant(graphs[-1], layer, role, body, zeros[-1]))
        ones.append(_invariant(graphs[-1], layer, role, body, ones[-1]))
        graphs.append(body)
    added = (ones[-1], 0)
    for depth in reversed(range(len(way))):
        (identity, role), graph, body = way[depth], graphs[depth], graphs[depth + 1]
        layer = _holder(graph, identity)
        if role == "body":
            port = _sum(graph, layer, body, zeros[depth], added)
        else:
            port = _handed_on(graph, layer, role, body, zeros[depth], added)
        added = (identity, port)
    return added


def _holder(graph: Element, identity: int) -> Element:
    """The loop or If of this id, which is there."""
    layer = _child_layer(graph, identity)
    assert layer is not None
    return layer


def _body(graph: Element, identity: int, role: str) -> Element:
    body = _holder(graph, identity).find(role)
    assert body is not None
    return body


def _invariant(graph: Element, layer: Element, role: str, body: Element, source: int) -> int:
    """Hand a Parameter's value of the graph around into the body; the id of the body's Parameter."""
    parameter = _parameter(body, "stepper_invariant")
    _map_input(graph, layer, role, source, parameter)
    return parameter


def _sum(graph: Element, loop: Element, body: Element, zero: int, added: tuple[int, int]) -> int:
    """Carry a sum through the loop, which begins with zero; the port of the loop where it comes out."""
    parameter = _parameter(body, "stepper_count")
    sum = _new_layer(body, "Add", "stepper_sum", inputs=2, outputs=1, auto_broadcast="numpy")
    _edge(body, parameter, 0, sum, 0)
    _edge(body, *added, sum, 1)
    result = _result(body, sum, 2)
    _map_input(graph, loop, "body", zero, parameter)
    edges = _part(loop, "back_edges")
    etree.SubElement(edges, "edge", {"from-layer": str(result), "to-layer": str(parameter)})
    return _map_output(loop, {"body": result})


def _handed_on(graph: Element, branch: Element, role: str, body: Element, zero: int, added: tuple[int, int]) -> int:
    """Give out of an If what the one branch has, or 0 from the other; the port of the If where it comes out."""
    other = "else_body" if role == "then_body" else "then_body"
    elsewhere = branch.find(other)
    assert elsewhere is not None
    nothing = _invariant(graph, branch, other, elsewhere, zero)
    return _map_output(branch, {role: _result(body, *added), other: _result(elsewhere, nothing, 0)})


def _map_input(graph: Element, layer: Element, role: str, source: int, parameter: int) -> None:
    side = _part(layer, "input")
    index, port = len(side.findall("port")), _new_port(layer)
    etree.SubElement(etree.SubElement(side, "port", id=str(port), precision="I32"), "dim").text = "1"
    entry = {"external_port_id": str(index), "internal_layer_id": str(parameter)}
    _part(layer, _port_map(role)).insert(0, etree.Element("input", entry))
    _edge(graph, source, 0, int(layer.get("id", "")), port)


def _map_output(layer: Element, results: Mapping[str, int]) -> int:
    """A new output of a loop or an If, from the Result of each body; its port."""
    maps = {role: _part(layer, _port_map(role)) for role in results}
    taken = [int(entry.get("external_port_id", "-1")) for found in maps.values() for entry in found.findall("output")]
    # Outputs count in the order of these ids, which need not be those of ports.
    external = max([-1, *taken, *(int(port.get("id", "0")) for port in layer.iter("port"))]) + 1
    for role, result in results.items():
        entry = {"external_port_id": str(external), "internal_layer_id": str(result)}
        maps[role].append(etree.Element("output", entry))
    port = _new_port(layer)
    etree.SubElement(etree.SubElement(_part(layer, "output"), "port", id=str(port), precision="I32"), "dim").text = "1"
    return port


def _port_map(role: str) -> str:
    """The element with the port map of a body."""
    return role.replace("body", "port_map")


def _part(layer: Element, name: str) -> Element:
    """The child of this name; made where there is none, before the body."""
    found = layer.find(name)
    if found is None:
        found = etree.Element(name)
        order = ("data", "then_port_map", "else_port_map", "port_map", "back_edges", "input", "output", "body")
        after = [child for child in layer if child.tag in order[: order.index(name)]]
        layer.insert(0 if not after else layer.index(after[-1]) + 1, found)
    return found


def _new_port(layer: Element) -> int:
    sides = [side for side in (layer.find("input"), layer.find("output")) if side is not None]
    return 1 + max((int(port.get("id", "0")) for side in sides for port in side.findall("port")), default=-1)


def _parameter(graph: Element, name: str) -> int:
    return _new_layer(graph, "Parameter", name, inputs=0, outputs=1, element_type="i32", shape="1")


def _result(graph: Element, layer: int, port: int) -> int:
    result = _new_layer(graph, "Result", "stepper_result", inputs=1, outputs=0)
    _edge(graph, layer, port, result, 0)
    return result


def _new_layer(graph: Element, type: str, name: str, *, inputs: int, outputs: int, **attributes: str) -> int:
    """A layer of i32 [1]; its input ports are numbered from 0, its output follows."""
    layers = _part(graph, "layers") if graph.find("layers") is None else graph.find("layers")
    assert layers is not None
    identity = 1 + max((int(layer.get("id", "0")) for layer in layers), default=-1)
    head: Mapping[str, str] = {"id": str(identity), "name": f"{name}_{identity}", "type": type, "version": "opset1"}
    layer = etree.SubElement(layers, "layer", dict(head))
    if attributes:
        etree.SubElement(layer, "data", attributes)
    for side, first, count in (("input", 0, inputs), ("output", inputs, outputs)):
        if count:
            ports = etree.SubElement(layer, side)
            for number in range(first, first + count):
                port = etree.SubElement(ports, "port", id=str(number), precision="I32")
                etree.SubElement(port, "dim").text = "1"
    return identity


def _edge(graph: Element, from_layer: int, from_port: int, to_layer: int, to_port: int) -> None:
    edges = graph.find("edges")
    if edges is None:
        edges = etree.SubElement(graph, "edges")
    ends = {"from-layer": from_layer, "from-port": from_port, "to-layer": to_layer, "to-port": to_port}
    etree.SubElement(edges, "edge", {name: str(value) for name, value in ends.items()})
