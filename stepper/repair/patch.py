"""A model with edits: a graph is copied when it changes, everything else is shared with the model.

patch = ModelPatch(model)
patch.graph(scope).read(layer, 0, source)      # one edit, or several
patch.model()                                  # the edited Model; bodies without an edit are the same objects
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.element_types import Array, ElementType, Shape
from stepper.ir.model import (
    BackEdge,
    Body,
    Graph,
    InputMapping,
    Layer,
    Model,
    OutputMapping,
    Port,
    PortSources,
    Scope,
    Source,
)
from stepper.ir.weights import Weights
from stepper.operation_types import DEFINITIONS
from stepper.ops.registry import find

_NO_FILE = Path("no.bin")


class AddedWeights(Weights):
    """The weights of a model with arrays behind them; the offset of an array is the size of the file and its number."""

    def __init__(self, base: Weights | None) -> None:
        self.base, self.added = base, list[Array]()
        self.path = _NO_FILE if base is None else base.path
        self.size = 0 if base is None else base.size + len(getattr(base, "added", ()))
        self._bytes = b""

    def add(self, value: Array) -> int:
        """Add an array; return its offset."""
        self.added.append(value)
        return self.size + len(self.added) - 1

    def constant(self, element_type: ElementType, shape: Iterable[int], offset: int, size: int) -> Array:
        """Return an added array, or a tensor of the file."""
        if offset >= self.size and offset - self.size < len(self.added):
            return self.added[offset - self.size]
        if self.base is None:
            return np.empty(tuple(shape), element_type.dtype)
        return self.base.constant(element_type, tuple(shape), offset, size)

    def raw(self, offset: int, size: int) -> bytes:
        """Return bytes of the file."""
        return b"" if self.base is None else self.base.raw(offset, size)


class GraphPatch:
    """Edit one graph; layers are immutable and replaced, and `changed` are the edited layers."""

    def __init__(self, graph: Graph, weights: AddedWeights) -> None:
        self.base, self.weights = graph, weights
        self.layers: dict[int, Layer] = dict(graph.by_id)
        self.sources: dict[int, PortSources] = dict(graph.sources)
        self.changed: set[int] = set()
        self.added: list[int] = []
        self._next = max(graph.by_id, default=-1) + 1

    def read(self, layer: int, index: int, source: Source | None) -> None:
        """Let an input of a layer read another value; an index behind the last input adds one."""
        sources = list(self.sources[layer])
        sources += [None] * (index + 1 - len(sources))
        sources[index] = source
        self.set_sources(layer, sources)

    def set_sources(self, layer: int, sources: Iterable[Source | None]) -> None:
        """Replace all sources of a layer."""
        self.sources[layer] = tuple(sources)
        self.changed.add(layer)

    def redirect(self, old: Source, new: Source, *, but: Iterable[int] = ()) -> None:
        """Let all layers that read one value read another, except for some layers."""
        spared = {*but}
        readers = {layer.id for layer, _index in self.base.readers.get(old.layer, ())} | {*self.added}
        for layer in readers - spared:
            if layer in self.sources and old in self.sources[layer]:
                self.set_sources(layer, (new if one == old else one for one in self.sources[layer]))

    def set_attributes(self, layer: int, attributes: Mapping[str, str]) -> None:
        """Set attributes of a layer; the others stay."""
        old = self.layers[layer]
        self.put(old._replace(attributes=MappingProxyType({**old.attributes, **attributes})))

    def set_type(self, layer: int, type: str, attributes: Mapping[str, str] | None = None) -> None:
        """Let a layer be another operation, with its attributes unless there are others."""
        old = self.layers[layer]
        opset = newest_kernel(type)
        texts = old.attributes if attributes is None else MappingProxyType(dict(attributes))
        self.put(old._replace(type=type, version=f"opset{opset}", definition=opset, attributes=texts))

    def put(self, layer: Layer) -> None:
        """Replace a layer by one with the same id."""
        self.layers[layer.id] = layer
        self.changed.add(layer.id)

    def add(
        self,
        type: str,
        sources: Iterable[Source | None],
        attributes: Mapping[str, str] | None = None,
        like: Port | None = None,
        name: str = "",
        outputs: int = 1,
    ) -> Source:
        """Add an operation; return its first output. `like` is a port with the type and shape of the outputs."""
        opset = newest_kernel(type)
        port = Port(0, None, (), (), 0) if like is None else like._replace(names=())
        return self._append(type, tuple(sources), attributes or {}, (port,) * outputs, name, opset)

    def constant(self, value: Any, name: str = "") -> Source:
        """Add a Constant; return its output."""
        array = np.asarray(value)
        port = Port(0, element_types.of(array), array.shape, (), 0)
        return self._append("Constant", (), _constant_texts(array, self.weights), (port,), name, 1)

    def integers(self, numbers: int | Sequence[int]) -> Source:
        """Add a Constant of i64; return its output."""
        return self.constant(np.asarray(numbers, np.int64))

    def parameter(self, like: Port, name: str) -> int:
        """Add a Parameter of a body; return its id."""
        shape = ",".join(map(str, like.dims))
        texts = {"shape": shape} | ({} if like.element_type is None else {"element_type": like.element_type.name})
        return self._append("Parameter", (), texts, (like._replace(names=()),), name, 1).layer

    def result(self, source: Source, name: str) -> int:
        """Add a Result of a body; return its id."""
        return self._append("Result", (source,), {}, (), name, 1).layer

    def set_value(self, layer: int, value: Array) -> None:
        """Give a Constant another value, of any shape."""
        old = self.layers[layer]
        port = old.outputs[0]._replace(element_type=element_types.of(value), dims=value.shape)
        texts = _constant_texts(value, self.weights)
        self.put(old._replace(attributes=MappingProxyType(texts), outputs=(port,)))

    def port(self, source: Source) -> Port:
        """Return the port that declares a value."""
        return self.layers[source.layer].outputs[source.output]

    def graph(self) -> Graph:
        """Return the edited graph."""
        layers = tuple(self.layers.values())
        return Graph(layers, (), MappingProxyType(self.sources), self.base.line)

    def _append(
        self,
        type: str,
        sources: PortSources,
        attributes: Mapping[str, str],
        outputs: tuple[Port, ...],
        name: str,
        opset: int,
    ) -> Source:
        identity, self._next = self._next, self._next + 1
        inputs = tuple(
            self.port(one)._replace(id=index, names=()) if one is not None else Port(index, None, (), (), 0)
            for index, one in enumerate(sources)
        )
        ports = tuple(port._replace(id=len(inputs) + index) for index, port in enumerate(outputs))
        texts = MappingProxyType(dict(attributes))
        title = name or f"{type.lower()}_{identity}"
        self.layers[identity] = Layer(identity, title, type, f"opset{opset}", opset, texts, inputs, ports, (), 0)
        self.sources[identity] = sources
        self.changed.add(identity)
        self.added.append(identity)
        return Source(identity, 0)


class PortMapPatch:
    """The port map and back edges of a body that is being edited."""

    def __init__(self, body: Body) -> None:
        self.inputs: list[InputMapping] = list(body.inputs)
        self.outputs: list[OutputMapping] = list(body.outputs)
        self.back_edges: list[BackEdge] = list(body.back_edges)

    def put_into(self, body: Body, graph: Graph) -> Body:
        """Return a body with this port map and another graph."""
        ends = {"inputs": tuple(self.inputs), "outputs": tuple(self.outputs), "back_edges": tuple(self.back_edges)}
        return replace(body, graph=graph, **ends)


class ModelPatch:
    """A model that is being edited; LookupError for a scope or a layer that it does not have."""

    def __init__(self, model: Model) -> None:
        self.base = model
        self.weights = AddedWeights(model.weights)
        self._graphs: dict[Scope, GraphPatch] = {}
        self._maps: dict[Scope, PortMapPatch] = {}
        self.needs_ir = False
        """True if an edit cannot be made in an openvino.Model."""

    def graph(self, scope: Scope) -> GraphPatch:
        """Return the graph of a scope, to be edited."""
        if scope not in self._graphs:
            if not scope:
                self._graphs[scope] = GraphPatch(self.base.graph, self.weights)
            else:
                self._graphs[scope] = GraphPatch(self._body(scope).graph, self.weights)
        return self._graphs[scope]

    def port_map(self, scope: Scope) -> PortMapPatch:
        """Return the port map of the body of a scope, to be edited."""
        if scope not in self._maps:
            self._maps[scope] = PortMapPatch(self._body(scope))
            self.graph(scope)
            self.needs_ir = True
        return self._maps[scope]

    def _body(self, scope: Scope) -> Body:
        key, role = scope[-1]
        owner = self.graph(scope[:-1]).layers[key]
        return next(body for body in owner.bodies if body.role == role)

    def edited(self) -> list[Scope]:
        """Return the scopes whose graphs were requested, inner before outer."""
        return sorted(self._graphs, key=len, reverse=True)

    def has_other_ends(self, scope: Scope) -> bool:
        """True if a body has other Parameters, Results or an edited port map."""
        graph = self._graphs[scope]
        return scope in self._maps or any(graph.layers[key].type in ("Parameter", "Result") for key in graph.changed)

    def model(self) -> Model:
        """Return the edited model; the changes to bodies become changes of the layers that own them."""
        for scope in self.edited():
            if scope and (self._graphs[scope].changed or scope in self._maps):
                self.put_body(scope)
        top = self.graph(()).graph()
        return replace(self.base, graph=top, weights=self.weights, reopen=None)

    def put_body(self, scope: Scope) -> Graph:
        """Give the layer that owns a body its edited graph; return the graph."""
        outer, (key, role) = self.graph(scope[:-1]), scope[-1]
        owner, maps = outer.layers[key], self._maps.get(scope)
        graph = self._graphs[scope].graph()
        bodies = (
            body if body.role != role else replace(body, graph=graph) if maps is None else maps.put_into(body, graph)
            for body in owner.bodies
        )
        outer.put(owner._replace(bodies=tuple(bodies)))
        return graph


def newest_kernel(type: str) -> int:
    """Return the newest opset for whose definition of an operation there is a kernel; else the newest definition."""
    versions = DEFINITIONS.get(type, (1,))
    return next((one for one in reversed(versions) if find(type, one) is not None), versions[-1])


def _constant_texts(value: Array, weights: AddedWeights) -> dict[str, str]:
    offset = weights.add(value)
    shape: Shape = value.shape
    return {
        "element_type": element_types.of(value).name,
        "shape": ",".join(map(str, shape)),
        "offset": str(offset),
        "size": str(max(1, value.nbytes)),
    }
