"""A draft as the files of an IR: the text of the .xml, and the bytes of the .bin."""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from stepper import element_types
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel
from stepper.element_types import STRING_DTYPE, Array, ElementType
from stepper.ir import weights
from stepper.ir.model import Slicing
from stepper.ir.xml import Element

_ALIGNMENT: Final = 64


class IRFiles(NamedTuple):
    """The contents of an .xml and of the .bin beside it."""

    xml: bytes
    weights: bytes


def ir_files(draft: DraftModel) -> IRFiles:
    """Return the files of a draft, in IR version 11; equal Constants share their bytes."""
    writer = _Writer()
    net = etree.Element("net", name=draft.name, version="11")
    writer.graph(net, draft.graph)
    etree.indent(net, space="\t")
    return IRFiles(etree.tostring(net, xml_declaration=True, encoding="utf-8"), bytes(writer.weights))


class _Writer:
    def __init__(self) -> None:
        self.weights = bytearray()
        self._places: dict[bytes, int] = {}

    def graph(self, parent: Element, graph: DraftGraph) -> None:
        layers, edges = etree.SubElement(parent, "layers"), etree.SubElement(parent, "edges")
        for layer in graph.layers.values():
            self._layer(layers, graph, layer)
            for port, source in enumerate(layer.sources):
                if source is not None:
                    from_port = len(graph.layers[source.layer].sources) + source.output
                    ends = {"from-layer": source.layer, "from-port": from_port, "to-layer": layer.id, "to-port": port}
                    etree.SubElement(edges, "edge", {name: str(value) for name, value in ends.items()})

    def _layer(self, parent: Element, graph: DraftGraph, layer: DraftLayer) -> None:
        kind = "Const" if layer.type == "Constant" else layer.type  # OpenVINO crashes at the name of the specification
        head = {"id": str(layer.id), "name": layer.name, "type": kind, "version": layer.version}
        element = etree.SubElement(parent, "layer", head)
        attributes = self._attributes(layer)
        if attributes:
            etree.SubElement(element, "data", attributes)
        inputs = [None if one is None else graph.layers[one.layer].outputs[one.output] for one in layer.sources]
        if inputs:
            side = etree.SubElement(element, "input")
            for index, port in enumerate(inputs):
                _port(side, index, None if port is None else port.element_type, () if port is None else port.dims, ())
        if layer.outputs:
            side = etree.SubElement(element, "output")
            for index, port in enumerate(layer.outputs, len(inputs)):
                _port(side, index, port.element_type, port.dims, port.names)
        for body in layer.bodies:
            self._body(element, body, len(inputs))

    def _attributes(self, layer: DraftLayer) -> dict[str, str]:
        if layer.type != "Constant" or layer.value is None:
            return layer.attributes
        element_type = layer.outputs[0].element_type or element_types.of(layer.value)
        content = _content(layer.value, element_type)
        shape = ",".join(map(str, layer.value.shape))
        place = {"offset": str(self._place(content)), "size": str(len(content))}
        return {"element_type": element_type.name, "shape": shape, **place}

    def _place(self, content: bytes) -> int:
        if content not in self._places:
            self.weights += bytes(-len(self.weights) % _ALIGNMENT)
            self._places[content] = len(self.weights)
            self.weights += content
        return self._places[content]

    def _body(self, element: Element, body: DraftBody, first: int) -> None:
        port_map = etree.SubElement(element, body.role.replace("body", "port_map"))
        for input in body.inputs:
            entry = {"external_port_id": str(-1 if input.input is None else input.input)}
            entry |= {"internal_layer_id": str(input.parameter), **_sliced(input.slicing), **_purpose(input.purpose)}
            etree.SubElement(port_map, "input", entry)
        for output in body.outputs:
            entry = {"external_port_id": str(-1 if output.output is None else first + output.output)}
            entry |= {"internal_layer_id": str(output.result), **_sliced(output.slicing), **_purpose(output.purpose)}
            etree.SubElement(port_map, "output", entry)
        if body.back_edges:
            edges = etree.SubElement(element, "back_edges")
            for edge in body.back_edges:
                ends = {"from-layer": str(edge.from_layer), "to-layer": str(edge.to_layer)}
                etree.SubElement(edges, "edge", ends)
        self.graph(etree.SubElement(element, body.role), body.graph)


def _port(
    side: Element, identity: int, element_type: ElementType | None, dims: tuple[int, ...], names: tuple[str, ...]
) -> None:
    port = etree.SubElement(side, "port", id=str(identity))
    if element_type is not None:
        port.set("precision", _precision(element_type))
    if names:
        port.set("names", ",".join(name.replace(",", "\\,") for name in names))
    for dim in dims:
        etree.SubElement(port, "dim").text = str(dim)


def _precision(element_type: ElementType) -> str:
    name = {"boolean": "bool", "u1": "bin"}.get(element_type.name, element_type.name)
    return (f"fp{name[1:]}" if name in ("f16", "f32", "f64") else name).upper()


def _sliced(slicing: Slicing | None) -> dict[str, str]:
    if slicing is None:
        return {}
    names = ("axis", "start", "end", "stride", "part_size")
    found = ((name, getattr(slicing, name)) for name in names)
    return {name: str(value) for name, value in found if value is not None}


def _purpose(purpose: str | None) -> dict[str, str]:
    return {} if purpose is None else {"purpose": purpose}


def _content(value: Array, element_type: ElementType) -> bytes:
    if element_type.dtype != STRING_DTYPE:
        return weights.content(value) if element_type.bits >= 8 else weights.pack(value, element_type).tobytes()
    texts = [str(text).encode() for text in value.reshape(-1).tolist()]
    offsets = [0, *itertools.accumulate(map(len, texts))]
    return np.array([len(texts), *offsets], "<i4").tobytes() + b"".join(texts)
