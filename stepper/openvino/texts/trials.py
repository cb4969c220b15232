"""A model changed so that it means the same, or runs a loop less often: whether the runtime then agrees tells why not.

unshared(model, (), 7)                  # MatMul 7 of the main graph gets a copy of its constant
with_used_slices(model, ((3, "body"),)) # the sliced inputs of loop 3 come out of the model, so that they are kept
shortened(model, loop, 5, folder)       # the model up to the loop, which runs 5 iterations; its outputs alone
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from lxml import etree

from stepper.errors import ModelError
from stepper.ir import xml
from stepper.ir.model import Layer, Model
from stepper.ir.reader import read
from stepper.ir.xml import Element
from stepper.openvino.texts.edits import (
    Step,
    graph_at,
    holder,
    map_output,
    new_edge,
    new_layer,
    new_result,
    part,
)
from stepper.openvino.texts.model_text import NativeText
from stepper.openvino.texts.native_text import changed

TRIPS = "stepper_trips"
"""The Parameter of a shortened Loop whose size is the trip count; its values are not read."""


def unshared(model: Model, place: Sequence[Step], layer: int) -> NativeText:
    """Return the model with a copy of the constant that a layer's second input shares: it is negated twice."""
    root = xml.parse(model.path)
    graph = graph_at(root, place)
    assert graph is not None, "the layer was found there"
    ports = holder(graph, layer).findall("input/port")
    edge = next(
        edge
        for edge in graph.iterfind("edges/edge")
        if edge.get("to-layer") == str(layer) and edge.get("to-port") == ports[1].get("id")
    )
    source = int(edge.get("from-layer", "")), int(edge.get("from-port", "0"))
    for _ in range(2):
        negated = new_layer(graph, "Negative", "stepper_copy", inputs=1, outputs=1)
        _declare(holder(graph, negated), ports[1])
        new_edge(graph, *source, negated, 0)
        source = negated, 1
    edge.set("from-layer", str(source[0]))
    edge.set("from-port", str(source[1]))
    return changed(model, root)


def with_used_slices(model: Model, place: Sequence[Step]) -> NativeText:
    """Return the model with the last slice of each sliced input of a loop as a further Result."""
    root = xml.parse(model.path)
    around = graph_at(root, place[:-1])
    assert around is not None, "the loop was found there"
    entries = [e for e in holder(around, place[-1][0]).iterfind("port_map/input") if e.get("axis") is not None]
    for parameter in [int(entry.get("internal_layer_id", "")) for entry in entries]:
        source, port = parameter, 0
        for depth in reversed(range(len(place))):
            graph, inner = graph_at(root, place[:depth]), graph_at(root, place[: depth + 1])
            assert graph is not None and inner is not None
            identity, role = place[depth]
            port = map_output(holder(graph, identity), {role: new_result(inner, source, port)})
            source = identity
        new_result(root, source, port)
    return changed(model, root)


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
        for entry in layer.iterfind("port_map/input"):
            if entry.get("axis") is not None:
                entry.set("end", str(_end(entry, count)))
    else:
        _limit_trips(root, layer, count)
    for port in layer.findall("output/port"):
        new_result(root, loop.id, int(port.get("id", "0")))
    root.set("version", "11")
    path = folder / f"first_{count}.xml"
    path.write_bytes(etree.tostring(root))
    if model.weights is not None:
        _link(model.weights.path, path.with_suffix(".bin"))
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


def _end(entry: Element, count: int) -> int:
    """Return the `end` of a sliced input after so many slices."""
    start, stride = int(entry.get("start", "0")), int(entry.get("stride", "1"))
    end = start + count * stride
    if (start < 0) != (end < 0):
        raise ModelError(f"slices that begin at {start} cannot be limited to {count}")
    return end


def _limit_trips(root: Element, layer: Element, count: int) -> None:
    """Let a Loop's trip count be the size of a Parameter."""
    identity = layer.get("id", "")
    first = layer.findall("input/port")[0].get("id")
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
    for edge in root.iterfind("edges/edge"):
        if edge.get("to-layer") == identity and edge.get("to-port") == first:
            edge.set("from-layer", str(size))
            edge.set("from-port", "1")


def _declare(layer: Element, port: Element, *sides: str) -> None:
    """Declare the type and shape of another port for the ports of a layer."""
    for side in sides or ("input", "output"):
        for one in layer.findall(f"{side}/port"):
            one.set("precision", port.get("precision", "FP32"))
            for dim in list(one):
                one.remove(dim)
            for dim in port.findall("dim"):
                etree.SubElement(one, "dim").text = dim.text


def _link(weights: str | Path, target: Path) -> None:
    try:
        target.symlink_to(Path(weights).resolve())
    except OSError:  # a system without links, or one that does not allow them
        shutil.copyfile(weights, target)
