"""Looks of the boxes of a graph: two of one look compute the same from inputs of one form, whatever they are called.

Weights are compared by type and shape. Small integer constants, which say axes and shapes, are compared by value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from stepper.errors import StepperError
from stepper.export.blocks.finding import Read
from stepper.export.figures.drawn_graph import DrawnGraph
from stepper.export.layout.ranking import topological_order
from stepper.ir.constants import constant_shape, constant_type, constant_value
from stepper.ir.model import Body, Graph, Layer, Model, Port

_NAMES: Final = frozenset({"variable_id", "variable", "friendly_name"})
"""Attributes that are names."""
_MOST: Final = 16
"""Elements of an integer constant that is compared by value."""


def inputs_of(drawn: DrawnGraph) -> dict[int, list[Read]]:
    """Return what each box reads, by its key."""
    found: dict[int, list[Read]] = {node.key: [] for node in drawn.nodes}
    for edge in drawn.edges:
        found[edge.target].append((edge.source, edge.output))
    return found


class StructuralLooks:
    """Looks of the boxes of a model's graphs; bodies are compared whole."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._bodies: dict[int, Hashable] = {}
        self._known: dict[Hashable, int] = {}

    def of(self, graph: Graph, drawn: DrawnGraph) -> dict[int, Hashable]:
        """Return a look for each box, by its key."""
        return {
            node.key: (node.kind, tuple(sorted(self._number(self._layer(graph, key)) for key in node.layers)))
            for node in drawn.nodes
        }

    def _layer(self, graph: Graph, key: int) -> Hashable:
        layer = graph.by_id[key]
        attributes = frozenset((name, text) for name, text in layer.attributes.items() if name not in _NAMES)
        if layer.type == "Constant":
            return self._constant(layer)
        bodies = tuple((body.role, self._body(body.graph), _ports(body)) for body in layer.bodies)
        ports = tuple(map(_form, layer.inputs)), tuple(map(_form, layer.outputs))
        return layer.type, layer.definition, attributes, ports, bodies, tuple(self._operands(graph, layer))

    def _operands(self, graph: Graph, layer: Layer) -> Iterator[Hashable]:
        """Yield the constants that it reads, and of wires which of them are the same."""
        sources = graph.sources[layer.id]
        for source in sources:
            if source is None or graph.by_id[source.layer].type != "Constant":
                yield sources.index(source)
            else:
                yield self._constant(graph.by_id[source.layer])

    def _constant(self, layer: Layer) -> Hashable:
        type_, shape = constant_type(layer), constant_shape(layer)
        form = None if type_ is None else type_.name, shape
        if shape is None or type_ is None or int(np.prod(shape)) > _MOST:
            return form
        try:
            value = constant_value(self._model, layer)
        except StepperError:
            return form
        return (*form, tuple(value.reshape(-1).tolist())) if value.dtype.kind in "iub" else form

    def _body(self, graph: Graph) -> Hashable:
        """Return what a whole graph looks like: that of its ends, each with all that it follows from."""
        if id(graph) not in self._bodies:
            looks: dict[int, int] = {}
            sources = {key: [one.layer for one in read if one is not None] for key, read in graph.sources.items()}
            for key in topological_order(sources):
                read = tuple(
                    None if source is None else (looks[source.layer], source.output) for source in graph.sources[key]
                )
                looks[key] = self._number((self._layer(graph, key), read))
            self._bodies[id(graph)] = tuple(sorted(looks.values()))
        return self._bodies[id(graph)]

    def _number(self, look: Hashable) -> int:
        return self._known.setdefault(look, len(self._known))


def _form(port: Port) -> Hashable:
    return None if port.element_type is None else port.element_type.name, port.dims


def _ports(body: Body) -> Hashable:
    """Return the port map without ids of layers."""
    inputs = tuple((entry.input, entry.slicing, entry.purpose) for entry in body.inputs)
    return inputs, tuple((entry.output, entry.slicing, entry.purpose) for entry in body.outputs), len(body.back_edges)
