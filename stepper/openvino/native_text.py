"""Write a model's file for OpenVINO: whole, one body alone, or with counted loop iterations.

All of it is text: the file's content is copied unchanged, as IR version 11, with the same .bin. Version 11 also reads
version 10, but it takes the element types of inputs and outputs as declared.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lxml import etree

from stepper.errors import ModelError, UsageError
from stepper.ir import xml
from stepper.ir.model import Graph, Layer, LoopKey, Model
from stepper.ir.reader import read
from stepper.ir.xml import Element
from stepper.openvino.runtime import NativeText, weights_of

# Changes to the text of a model before OpenVINO reads it: more layers, ports and port maps; the .bin stays.

Step = tuple[int, str]
"""Into a body: the id of the loop or If, and the role of the body."""

Way = tuple[Step, ...]
"""Through loops and Ifs into the body of a loop, which is the last step."""


def graph_at(net: Element, place: Iterable[Step]) -> Element | None:
    """Return the body at the end of a way of layers and roles; None where the file has none."""
    path = "/".join(f"{layer_path(identity)}/{role}" for identity, role in place)
    return net.find(path) if path else net


def layer_path(identity: int) -> str:
    """Return where the layer of this id is in a graph."""
    return f"layers/layer[@id='{identity}']"


def holder(graph: Element, identity: int) -> Element:
    """Return the loop or If of this id, which is there."""
    layer = graph.find(layer_path(identity))
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
    _add_port(part(layer, "output"), port)
    return port


def _add_port(side: Element, number: int) -> None:
    """Add a port of i32 [1]."""
    etree.SubElement(etree.SubElement(side, "port", id=str(number), precision="I32"), "dim").text = "1"


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
    layers = part(graph, "layers")
    identity = 1 + max((int(layer.get("id", "0")) for layer in layers), default=-1)
    head: Mapping[str, str] = {"id": str(identity), "name": f"{name}_{identity}", "type": type, "version": "opset1"}
    layer = etree.SubElement(layers, "layer", dict(head))
    if attributes:
        etree.SubElement(layer, "data", attributes)
    for side, first, count in (("input", 0, inputs), ("output", inputs, outputs)):
        if count:
            ports = etree.SubElement(layer, side)
            for number in range(first, first + count):
                _add_port(ports, number)
    return identity


def new_edge(graph: Element, from_layer: int, from_port: int, to_layer: int, to_port: int) -> None:
    """Connect an output port to an input port."""
    edges = graph.find("edges")
    if edges is None:
        edges = etree.SubElement(graph, "edges")
    ends = {"from-layer": from_layer, "from-port": from_port, "to-layer": to_layer, "to-port": to_port}
    etree.SubElement(edges, "edge", {name: str(value) for name, value in ends.items()})


# The text of an IR and the bytes of its .bin: all that OpenVINO's process needs, which loads no parser.


_AS_WRITTEN = re.compile(rb'(<\?xml version="1\.0"\?>\s*)?<net name="[^"<]*" version="11">')
"""Beginning of a file that is passed on unchanged: UTF-8, as OpenVINO writes it."""


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
    place = next((scope for scope, _path, one in model.scopes() if scope and one is graph), None)
    if place is None:
        raise UsageError("the graph is not a body of the model")
    if model.calls is not None:  # the loop over calls is none of the file: its body is the file's whole graph
        place = place[1:]
        if not place and any(layer.opened_from is not None for layer in graph.layers if not layer.is_loop):
            raise UsageError("the body and the file differ in variables or slices of calls")
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


def _ways(model: Model) -> Iterator[Way]:
    """To each loop that is read, outer before inner."""
    stack: list[tuple[Way, Graph]] = [((), model.graph)]
    while stack:
        way, graph = stack.pop()
        inner: list[tuple[Way, Graph]] = []
        for layer in graph.layers:
            if (
                not layer.bodies
                or layer.opened_from is not None
                or not any(
                    source is not None and source.layer == layer.id
                    for found in graph.sources.values()
                    for source in found
                )
            ):
                continue
            if layer.is_loop:
                yield (*way, (layer.id, "body"))
            inner += [((*way, (layer.id, body.role)), body.graph) for body in layer.bodies]
        stack += reversed(inner)


def _key(way: Way) -> LoopKey:
    steps = ((identity,) if role == "body" else (identity, role) for identity, role in way)
    return tuple(part for step in steps for part in step)


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
            other = "else_body" if role == "then_body" else "then_body"
            elsewhere = layer.find(other)
            assert elsewhere is not None
            nothing = _invariant(graph, layer, other, elsewhere, zeros[depth])
            port = map_output(layer, {role: new_result(body, *added), other: new_result(elsewhere, nothing, 0)})
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


def _map_input(graph: Element, layer: Element, role: str, source: int, parameter: int) -> None:
    side = part(layer, "input")
    index, port = len(side.findall("port")), new_port(layer)
    _add_port(side, port)
    entry = {"external_port_id": str(index), "internal_layer_id": str(parameter)}
    part(layer, port_map(role)).insert(0, etree.Element("input", entry))
    new_edge(graph, source, 0, int(layer.get("id", "")), port)


# A model changed so that it means the same, or runs a loop less often: whether the runtime then agrees tells why not.
#
# unshared(model, (), 7)                  # MatMul 7 of the main graph gets a copy of its constant
# with_used_slices(model, ((3, "body"),)) # the sliced inputs of loop 3 come out of the model, so that they are kept
# shortened(model, loop, 5, folder)       # the model up to the loop, which runs 5 iterations; its outputs alone

TRIPS = "stepper_trips"
"""The Parameter of a shortened Loop whose size is the trip count; its values are not read."""


def unshared(model: Model, place: Sequence[Step], layer: int) -> NativeText:
    """Return the model with a copy of the constant that a layer's second input shares: it is negated twice."""
    root = xml.parse(model.path)
    graph = graph_at(root, place)
    assert graph is not None, "the layer was found there"
    ports = holder(graph, layer).findall("input/port")
    _copy(graph, next(graph.iterfind(_edge_to(layer, ports[1]))))
    return changed(model, root)


def with_used_slices(model: Model, place: Sequence[Step]) -> NativeText:
    """Return the model with the last slice of each sliced input of a loop as a further Result."""
    root, loop, _body = _loop_at(model, place)
    for entry in loop.findall("port_map/input[@axis]"):
        _give_out(root, place, int(entry.get("internal_layer_id", "")), 0)
    return changed(model, root)


def with_read_outputs(model: Model, place: Sequence[Step]) -> NativeText:
    """Return the model with each output of a loop as a further Result."""
    root, loop, _body = _loop_at(model, place)
    for port in loop.findall("output/port"):
        _give_out(root, place[:-1], place[-1][0], int(port.get("id", "")))
    return changed(model, root)


def with_first_counter(model: Model, place: Sequence[Step]) -> NativeText:
    """Return the model with the Parameters of current_iteration as the first ones of a loop's body."""
    root, loop, body = _loop_at(model, place)
    layers = part(body, "layers")
    for entry in loop.findall("port_map/input[@purpose='current_iteration']"):
        layers.insert(0, holder(body, int(entry.get("internal_layer_id", ""))))
    return changed(model, root)


def with_read_states(model: Model, place: Sequence[Step]) -> NativeText:
    """Return the model with a loop's states as further Results.

    The body passes no state on unchanged.
    """
    root, loop, body = _loop_at(model, place)
    for edge in loop.findall("back_edges/edge"):
        result, state = edge.get("from-layer"), int(edge.get("to-layer", ""))
        given = body.find(f"edges/edge[@to-layer='{result}']")
        assert given is not None, "the file was read"
        if holder(body, int(given.get("from-layer", ""))).get("type") == "Parameter":
            _copy(body, given)
        port = part(holder(body, state), "output")[0]
        kept = new_layer(body, "Convert", "stepper_kept", inputs=1, outputs=1, destination_type="u8")
        _declare(holder(body, kept), port)
        part(holder(body, kept), "output")[0].set("precision", "U8")
        new_edge(body, state, int(port.get("id", "0")), kept, 0)
        _give_out(root, place, kept, 1)
    return changed(model, root)


def _loop_at(model: Model, place: Sequence[Step]) -> tuple[Element, Element, Element]:
    """Return the tree of the file, a loop in it, and the loop's body."""
    root = xml.parse(model.path)
    around = graph_at(root, place[:-1])
    assert around is not None, "the loop was found there"
    return root, holder(around, place[-1][0]), body_of(around, *place[-1])


def _give_out(root: Element, place: Sequence[Step], source: int, port: int) -> None:
    """Have a value of a body come out of the loops and Ifs around it, as a Result of the model."""
    for depth in reversed(range(len(place))):
        graph, inner = graph_at(root, place[:depth]), graph_at(root, place[: depth + 1])
        assert graph is not None and inner is not None
        identity, role = place[depth]
        port = map_output(holder(graph, identity), {role: new_result(inner, source, port)})
        source = identity
    new_result(root, source, port)


def _copy(graph: Element, edge: Element) -> None:
    """Have an edge give a copy of its value: it is negated twice."""
    source = int(edge.get("from-layer", "")), int(edge.get("from-port", "0"))
    outputs = part(holder(graph, source[0]), "output")
    port = next(one for one in outputs if one.get("id") == str(source[1]))
    for _ in range(2):
        kind = "LogicalNot" if port.get("precision") == "BOOL" else "Negative"
        negated = new_layer(graph, kind, "stepper_copy", inputs=1, outputs=1)
        _declare(holder(graph, negated), port)
        new_edge(graph, *source, negated, 0)
        source = negated, 1
    edge.set("from-layer", str(source[0]))
    edge.set("from-port", str(source[1]))


def shortened(model: Model, loop: Layer, count: int, folder: Path) -> Model:
    """Return a model of its own, written to the folder: up to a loop of the main graph of `count` iterations at most.

    Its outputs are those of the loop. A Loop takes the count from the size of one input more, `stepper_trips`, a u8
    tensor [count] (the runtime must know it when it compiles, as it may know the model's own). ModelError where the
    slices of a TensorIterator cannot be limited so.
    """
    root = xml.parse(model.path)
    layer = holder(root, loop.id)
    _keep_what_leads_to(root, layer)
    if loop.type == "TensorIterator":
        for entry in layer.iterfind("port_map/input[@axis]"):
            # The `end` of a sliced input after so many slices.
            start, stride = int(entry.get("start", "0")), int(entry.get("stride", "1"))
            end = start + count * stride
            if (start < 0) != (end < 0):
                raise ModelError(f"slices that begin at {start} cannot be limited to {count}")
            entry.set("end", str(end))
    else:
        _limit_trips(root, layer, count)
    for port in layer.findall("output/port"):
        new_result(root, loop.id, int(port.get("id", "0")))
    root.set("version", "11")
    path = folder / f"first_{count}.xml"
    path.write_bytes(etree.tostring(root))
    if model.weights is not None:
        target = path.with_suffix(".bin")
        try:
            target.symlink_to(Path(model.weights.path).resolve())
        except OSError:  # a system without links, or one that does not allow them
            shutil.copyfile(model.weights.path, target)
    return read(path)


def _keep_what_leads_to(root: Element, layer: Element) -> None:
    """Drop all layers but a loop, those that it depends on, and the Parameters."""
    sources: dict[str, list[str]] = {}
    for edge in root.iterfind("edges/edge"):
        sources.setdefault(edge.get("to-layer", ""), []).append(edge.get("from-layer", ""))
    kept, waiting = {layer.get("id", "")}, [layer.get("id", "")]
    while waiting:
        found = [source for source in sources.get(waiting.pop(), ()) if source not in kept]
        kept.update(found)
        waiting += found
    layers, edges = part(root, "layers"), part(root, "edges")
    kept.update(one.get("id", "") for one in layers if one.get("type") == "Parameter")
    for one in list(layers):
        if one.get("id") not in kept:
            layers.remove(one)
    for edge in list(edges):
        if edge.get("to-layer") not in kept or edge.get("from-layer") not in kept:
            edges.remove(edge)


def _limit_trips(root: Element, layer: Element, count: int) -> None:
    """Let a Loop's trip count be the size of a Parameter."""
    first = layer.findall("input/port")[0]
    given = new_layer(root, "Parameter", TRIPS, inputs=0, outputs=1, element_type="u8", shape=str(count))
    (port,) = holder(root, given).findall("output/port")
    port.set("precision", "U8")
    part(port, "dim").text = str(count)
    size = new_layer(root, "ShapeOf", "stepper_trip_count", inputs=1, outputs=1, output_type="i64")
    shape = holder(root, size)
    shape.set("version", "opset3")
    _declare(shape, port, "input")
    for one in shape.findall("output/port"):
        one.set("precision", "I64")
    new_edge(root, given, 0, size, 0)
    for edge in root.iterfind(_edge_to(layer.get("id"), first)):
        edge.set("from-layer", str(size))
        edge.set("from-port", "1")


def _edge_to(layer: object, port: Element) -> str:
    return f"edges/edge[@to-layer='{layer}'][@to-port='{port.get('id')}']"


def _declare(layer: Element, port: Element, *sides: str) -> None:
    """Declare the type and shape of another port for the ports of a layer."""
    for side in sides or ("input", "output"):
        for one in layer.findall(f"{side}/port"):
            one.set("precision", port.get("precision", "FP32"))
            for dim in list(one):
                one.remove(dim)
            for dim in port.findall("dim"):
                etree.SubElement(one, "dim").text = dim.text
