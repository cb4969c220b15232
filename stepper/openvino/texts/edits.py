"""Changes to the text of a model before OpenVINO reads it: more layers, ports and port maps; the .bin stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lxml import etree

from stepper.ir.xml import Element

Step = tuple[int, str]
"""Into a body: the id of the loop or If, and the role of the body."""

Way = tuple[Step, ...]
"""Through loops and Ifs into the body of a loop, which is the last step."""


def graph_at(net: Element, place: Iterable[Step]) -> Element | None:
    """Return the body at the end of a way of layers and roles; None where the file has none."""
    found: Element | None = net
    for identity, role in place:
        layer = None if found is None else child_layer(found, identity)
        found = None if layer is None else layer.find(role)
    return found


def child_layer(graph: Element, identity: int) -> Element | None:
    """Return the layer of this id in a graph; None where it has none."""
    layers = graph.find("layers")
    return None if layers is None else next((layer for layer in layers if layer.get("id") == str(identity)), None)


def holder(graph: Element, identity: int) -> Element:
    """Return the loop or If of this id, which is there."""
    layer = child_layer(graph, identity)
    assert layer is not None
    return layer


def body_of(graph: Element, identity: int, role: str) -> Element:
    """Return the body in this role of the loop or If of this id, which is there."""
    body = holder(graph, identity).find(role)
    assert body is not None
    return body


def map_output(layer: Element, results: Mapping[str, int]) -> int:
    """Return a new output of a loop or an If, from the Result of each body; its port."""
    maps = {role: part(layer, port_map(role)) for role in results}
    taken = [int(entry.get("external_port_id", "-1")) for found in maps.values() for entry in found.findall("output")]
    # Outputs count in the order of these ids, which need not be those of ports.
    external = max([-1, *taken, *(int(port.get("id", "0")) for port in layer.iter("port"))]) + 1
    for role, result in results.items():
        entry = {"external_port_id": str(external), "internal_layer_id": str(result)}
        maps[role].append(etree.Element("output", entry))
    port = new_port(layer)
    etree.SubElement(etree.SubElement(part(layer, "output"), "port", id=str(port), precision="I32"), "dim").text = "1"
    return port


def port_map(role: str) -> str:
    """Return the element with the port map of a body."""
    return role.replace("body", "port_map")


def part(layer: Element, name: str) -> Element:
    """Return the child of this name; made where there is none, before the body."""
    found = layer.find(name)
    if found is None:
        found = etree.Element(name)
        order = ("data", "then_port_map", "else_port_map", "port_map", "back_edges", "input", "output", "body")
        after = [child for child in layer if child.tag in order[: order.index(name)]]
        layer.insert(0 if not after else layer.index(after[-1]) + 1, found)
    return found


def new_port(layer: Element) -> int:
    """Return the smallest number of a port that is larger than all of a layer's."""
    sides = [side for side in (layer.find("input"), layer.find("output")) if side is not None]
    return 1 + max((int(port.get("id", "0")) for side in sides for port in side.findall("port")), default=-1)


def new_parameter(graph: Element, name: str) -> int:
    """Add a Parameter of i32 [1]; its id."""
    return new_layer(graph, "Parameter", name, inputs=0, outputs=1, element_type="i32", shape="1")


def new_result(graph: Element, layer: int, port: int) -> int:
    """Add a Result of an output port; its id."""
    result = new_layer(graph, "Result", "stepper_result", inputs=1, outputs=0)
    new_edge(graph, layer, port, result, 0)
    return result


def new_layer(graph: Element, type: str, name: str, *, inputs: int, outputs: int, **attributes: str) -> int:
    """Return a layer of i32 [1]; its input ports are numbered from 0, its output follows."""
    layers = part(graph, "layers") if graph.find("layers") is None else graph.find("layers")
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


def new_edge(graph: Element, from_layer: int, from_port: int, to_layer: int, to_port: int) -> None:
    """Connect an output port to an input port."""
    edges = graph.find("edges")
    if edges is None:
        edges = etree.SubElement(graph, "edges")
    ends = {"from-layer": from_layer, "from-port": from_port, "to-layer": to_layer, "to-port": to_port}
    etree.SubElement(edges, "edge", {name: str(value) for name, value in ends.items()})
