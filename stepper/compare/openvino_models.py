"""A model's file as OpenVINO is to read it: whole, a body of it alone, or with its loops' iterations counted.

All of it is text: what the file says goes over as it stands, in IR version 11 (which reads version 10 too, but with the
element types of inputs and outputs as they are declared), with the same .bin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from lxml import etree

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.ir import xml
from stepper.ir.model import Graph, Layer, Model
from stepper.ir.xml import Element

Path = tuple[int, ...]
"""The ids of the loops that lead to a loop, its own last."""

Step = tuple[int, str]
"""Into a body: the id of the loop or If, and the role of the body."""


class NativeText(NamedTuple):
    """The text of an IR, and the bytes of its .bin."""

    text: str
    weights: Array | None


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


def counted(model: Model) -> tuple[NativeText, list[Path]]:
    """The model with a Result more for each loop: how many iterations it ran in all, an i32 of shape [1].

    They follow the model's own Results, in the order of the paths that are returned. Two Parameters more, i32 [1], want
    0 and 1, after the model's own. Loops inside of an If, and those opened from a sequence, are not counted.
    """
    root = xml.parse(model.path)
    paths = [path for path in _loop_paths(model) if _loop(root, path) is not None]
    zero, one = (_parameter(root, name) for name in ("stepper_zero", "stepper_one"))
    for path in paths:
        layer, port = _count(root, path, zero, one)
        _result(root, layer, port)
    return NativeText(_text(root), _weights(model)), paths


def _text(net: Element) -> str:
    net.set("version", "11")
    return etree.tostring(net, encoding="unicode")


def _weights(model: Model) -> Array | None:
    if model.weights is None or model.weights.size == 0:
        return None
    return np.memmap(model.weights.path, np.uint8, "c")  # copy on write: OpenVINO wants memory that could be written


# --- finding ---------------------------------------------------------------------------------------------------------


def _place_of(model: Model, graph: Graph) -> tuple[Step, ...]:
    stack: list[tuple[tuple[Step, ...], Graph]] = [((), model.graph)]
    while stack:
        place, outer = stack.pop()
        if outer is graph and place:
            return place
        stack += [((*place, (layer.id, body.role)), body.graph) for layer in outer.layers for body in layer.bodies]
    raise UsageError("the graph is no body of the model")


def _loop_paths(model: Model) -> Iterator[Path]:
    for path, graph in model.graphs():
        if all(step.is_loop and step.opened_from is None for step in path):
            for layer in graph.layers:
                if layer.is_loop and layer.opened_from is None and _is_needed(graph, layer):
                    yield tuple(step.id for step in (*path, layer))


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


def _loop(net: Element, path: Path) -> Element | None:
    """The loop at the end of a path through loops; None where the file has none."""
    graph = _graph(net, [(identity, "body") for identity in path[:-1]])
    return None if graph is None else _child_layer(graph, path[-1])


def _child_layer(graph: Element, identity: int) -> Element | None:
    layers = graph.find("layers")
    return None if layers is None else next((layer for layer in layers if layer.get("id") == str(identity)), None)


# --- counting --------------------------------------------------------------------------------------------------------


def _count(root: Element, path: Path, zero: int, one: int) -> tuple[int, int]:
    """Let the loop at the end of the path count; the layer and port, in the main graph, where the count comes out.

    Every loop on the way carries a sum: the innermost adds 1 in each iteration, the others what the next inner one
    counted.
    """
    loops = [_loop(root, path[: depth + 1]) for depth in range(len(path))]
    graphs: list[Element] = [root]
    zeros, ones = [zero], [one]
    for loop in loops[:-1]:
        assert loop is not None
        body = loop.find("body")
        assert body is not None
        zeros.append(_invariant(graphs[-1], loop, body, zeros[-1]))
        ones.append(_invariant(graphs[-1], loop, body, ones[-1]))
        graphs.append(body)
    added: tuple[int, int] | None = None
    for loop, graph, zero_here, one_here in reversed(list(zip(loops, graphs, zeros, ones, strict=True))):
        assert loop is not None
        body = loop.find("body")
        assert body is not None
        if added is None:
            added = (_invariant(graph, loop, body, one_here), 0)
        added = (int(loop.get("id", "")), _sum(graph, loop, body, zero_here, added))
    assert added is not None
    return added


def _invariant(graph: Element, loop: Element, body: Element, source: int) -> int:
    """Hand a Parameter's value of the graph around into the body; the id of the body's Parameter."""
    parameter = _parameter(body, "stepper_invariant")
    _map_input(graph, loop, source, parameter)
    return parameter


def _sum(graph: Element, loop: Element, body: Element, zero: int, added: tuple[int, int]) -> int:
    """Carry a sum through the loop, which begins with zero; the port of the loop where it comes out."""
    parameter = _parameter(body, "stepper_count")
    sum = _new_layer(body, "Add", "stepper_sum", inputs=2, outputs=1, auto_broadcast="numpy")
    _edge(body, parameter, 0, sum, 0)
    _edge(body, *added, sum, 1)
    result = _result(body, sum, 2)
    _map_input(graph, loop, zero, parameter)
    edges = _part(loop, "back_edges")
    etree.SubElement(edges, "edge", {"from-layer": str(result), "to-layer": str(parameter)})
    return _map_output(loop, result)


def _map_input(graph: Element, loop: Element, source: int, parameter: int) -> None:
    side = _part(loop, "input")
    index, port = len(side.findall("port")), _new_port(loop)
    etree.SubElement(etree.SubElement(side, "port", id=str(port), precision="I32"), "dim").text = "1"
    entry = {"external_port_id": str(index), "internal_layer_id": str(parameter)}
    entries = _part(loop, "port_map")
    entries.insert(0, etree.Element("input", entry))
    _edge(graph, source, 0, int(loop.get("id", "")), port)


def _map_output(loop: Element, result: int) -> int:
    entries = _part(loop, "port_map")
    taken = [int(entry.get("external_port_id", "-1")) for entry in entries.findall("output")]
    # Outputs count in the order of these ids, which need not be those of ports.
    external = max([-1, *taken, *(int(port.get("id", "0")) for port in loop.iter("port"))]) + 1
    entries.append(etree.Element("output", {"external_port_id": str(external), "internal_layer_id": str(result)}))
    port = _new_port(loop)
    etree.SubElement(etree.SubElement(_part(loop, "output"), "port", id=str(port), precision="I32"), "dim").text = "1"
    return port


def _part(layer: Element, name: str) -> Element:
    """The child of this name; made where there is none, before the body."""
    found = layer.find(name)
    if found is None:
        found = etree.Element(name)
        order = ("data", "port_map", "back_edges", "input", "output", "body")
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
