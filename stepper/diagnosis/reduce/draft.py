"""A model that is being made smaller: the graphs, port maps and values of an IR, to be copied and changed.

`DraftModel.of` takes a model with its inputs; the value of a Constant, and of a Parameter of the model, stands in its
layer. Changes are made to a copy; arrays are shared and never written to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from lxml import etree
from msgspec import Struct

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array, ElementType
from stepper.ir import weights
from stepper.ir.constants import constant_value
from stepper.ir.model import (
    BackEdge,
    Body,
    Graph,
    InputMapping,
    Layer,
    Model,
    OutputMapping,
    Port,
    Scope,
    Slicing,
    Source,
)
from stepper.ir.xml import Element
from stepper.operation_types import NO_OPERATIONS

_EFFECTS = ("Result", "Assign")


class LayerAddress(NamedTuple):
    """A layer: the graph that it is in, and its id there."""

    scope: Scope
    layer: int


class DraftBody(Struct):
    """A body with its port map."""

    role: str
    graph: DraftGraph
    inputs: list[InputMapping]
    outputs: list[OutputMapping]
    back_edges: list[BackEdge]

    def copy(self) -> DraftBody:
        """Return a copy to be changed."""
        return DraftBody(self.role, self.graph.copy(), list(self.inputs), list(self.outputs), list(self.back_edges))


class DraftLayer(Struct):
    """Hold a layer with the sources of its inputs; Constants and model inputs have a `value`."""

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, str]
    sources: list[Source | None]
    outputs: list[Port]
    bodies: list[DraftBody]
    value: Array | None = None

    def copy(self) -> DraftLayer:
        """Return a copy to be changed."""
        bodies = [body.copy() for body in self.bodies]
        head = (self.id, self.name, self.type, self.version)
        return DraftLayer(*head, dict(self.attributes), list(self.sources), list(self.outputs), bodies, self.value)

    @property
    def is_operation(self) -> bool:
        """True if it computes something."""
        return self.type not in NO_OPERATIONS


class DraftGraph(Struct):
    """Layers by their ids, in the order of the file."""

    layers: dict[int, DraftLayer]

    def copy(self) -> DraftGraph:
        """Return a copy to be changed."""
        return DraftGraph({key: layer.copy() for key, layer in self.layers.items()})

    def of_type(self, type: str) -> list[DraftLayer]:
        """Return the layers of a type, in the order of the file."""
        return [layer for layer in self.layers.values() if layer.type == type]

    def like(self, other: DraftLayer) -> int:
        """Return the id of the layer with the name and type of another one. LookupError for none and for several."""
        found = [key for key, one in self.layers.items() if (one.name, one.type) == (other.name, other.type)]
        if other.id in found or len(found) == 1:
            return other.id if other.id in found else found[0]
        raise LookupError(other.name)

    def new_id(self) -> int:
        """Return an id that no layer has."""
        return max(self.layers, default=-1) + 1

    def readers(self, source: Source) -> Iterator[tuple[DraftLayer, int]]:
        """Yield the layers that read an output, each with the index of its input."""
        for layer in self.layers.values():
            for index, one in enumerate(layer.sources):
                if one == source:
                    yield layer, index

    def is_read(self, source: Source) -> bool:
        """True if a layer reads an output."""
        return any(source in layer.sources for layer in self.layers.values())

    def redirect(self, source: Source, to: Source) -> None:
        """Let all that reads one output read another."""
        for layer, index in list(self.readers(source)):
            layer.sources[index] = to

    def ordered(self) -> list[DraftLayer]:
        """Return the layers, each behind those that it reads."""
        done: dict[int, DraftLayer] = {}
        for first in self.layers:
            stack = [(first, False)]
            opened: set[int] = set()
            while stack:
                key, left = stack.pop()
                if left:
                    done.setdefault(key, self.layers[key])
                elif key not in done and key not in opened:
                    opened.add(key)
                    stack.append((key, True))
                    sources = [one.layer for one in self.layers[key].sources if one is not None]
                    stack += [(one, False) for one in reversed(sources) if one in self.layers]
        return list(done.values())

    def needed(self, keys: Iterable[int]) -> set[int]:
        """Return the ids of these layers and of all that they depend on."""
        found, waiting = set[int](), list(keys)
        while waiting:
            key = waiting.pop()
            if key not in found:
                found.add(key)
                waiting += [one.layer for one in self.layers[key].sources if one is not None]
        return found

    def prune(self) -> None:
        """Drop what no Result and no variable needs; Parameters stay."""
        kept = self.needed(key for key, layer in self.layers.items() if layer.type in _EFFECTS)
        self.layers = {key: layer for key, layer in self.layers.items() if key in kept or layer.type == "Parameter"}
        for layer in self.layers.values():
            for body in layer.bodies:
                body.graph.prune()


class DraftModel(Struct):
    """A whole model with the values of its inputs."""

    name: str
    graph: DraftGraph

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Array]) -> DraftModel:
        """Return a draft of a model on these inputs, in the order of its Parameters."""
        graph = _graph(model, model.graph)
        for parameter, value in zip(graph.of_type("Parameter"), inputs, strict=True):
            parameter.value = value
        return cls(model.name or model.path.stem, graph)

    def copy(self) -> DraftModel:
        """Return a copy to be changed."""
        return DraftModel(self.name, self.graph.copy())

    def graph_at(self, scope: Scope) -> DraftGraph:
        """Return the graph of a scope. LookupError where there is none."""
        return self.body_at(scope)[1].graph if scope else self.graph

    def body_at(self, scope: Scope) -> tuple[DraftLayer, DraftBody]:
        """Return the loop or If of a scope with the body. LookupError where there is none."""
        key, role = scope[-1]
        owner = self.graph_at(scope[:-1]).layers[key]
        return owner, {body.role: body for body in owner.bodies}[role]

    def layer_at(self, address: LayerAddress) -> DraftLayer:
        """Return a layer. LookupError where there is none."""
        return self.found(address)[0]

    def found(self, address: LayerAddress) -> tuple[DraftLayer, DraftGraph]:
        """Return a layer and its graph. LookupError where there is none."""
        graph = self.graph_at(address.scope)
        return graph.layers[address.layer], graph

    def has(self, address: LayerAddress) -> bool:
        """True if there is such a layer."""
        try:
            return bool(self.layer_at(address))
        except LookupError:
            return False

    def graphs(self) -> Iterator[tuple[Scope, DraftGraph]]:
        """Yield every graph, outer before inner."""
        stack: list[tuple[Scope, DraftGraph]] = [((), self.graph)]
        while stack:
            scope, graph = stack.pop()
            yield scope, graph
            stack += [
                ((*scope, (layer.id, body.role)), body.graph)
                for layer in reversed(graph.layers.values())
                for body in reversed(layer.bodies)
            ]

    def operations(self) -> Iterator[tuple[LayerAddress, DraftLayer]]:
        """Yield the layers that compute, outer graphs first, each behind those that it reads."""
        for scope, graph in self.graphs():
            yield from ((LayerAddress(scope, one.id), one) for one in graph.ordered() if one.is_operation)

    @property
    def operation_count(self) -> int:
        """Number of layers that compute, in all graphs."""
        return sum(layer.is_operation for _scope, graph in self.graphs() for layer in graph.layers.values())

    @property
    def inputs(self) -> list[Array]:
        """The values of the Parameters, in order."""
        return [one.value for one in self.graph.of_type("Parameter") if one.value is not None]

    def counterpart(self, address: LayerAddress, other: DraftModel) -> LayerAddress:
        """Return the layer of the same name and type in another model. LookupError where there is none."""
        scope: Scope = ()
        for depth, (key, role) in enumerate(address.scope):
            owner = self.graph_at(address.scope[:depth]).layers[key]
            scope = (*scope, (other.graph_at(scope).like(owner), role))
        return LayerAddress(scope, other.graph_at(scope).like(self.layer_at(address)))


def _graph(model: Model, graph: Graph) -> DraftGraph:
    return DraftGraph({layer.id: _layer(model, graph, layer) for layer in graph.layers})


def _layer(model: Model, graph: Graph, layer: Layer) -> DraftLayer:
    return DraftLayer(
        layer.id,
        layer.name,
        layer.type,
        layer.version,
        dict(layer.attributes),
        list(graph.sources[layer.id]),
        list(layer.outputs),
        [_body_of(model, body) for body in layer.bodies],
        constant_value(model, layer) if layer.type == "Constant" else None,
    )


def _body_of(model: Model, body: Body) -> DraftBody:
    graph = _graph(model, body.graph)
    return DraftBody(body.role, graph, list(body.inputs), list(body.outputs), list(body.back_edges))


# A draft as the files of an IR: the text of the .xml, and the bytes of the .bin.

_ALIGNMENT = 64


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
