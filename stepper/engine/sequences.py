"""Recurrent sequences opened as loops: `open_sequences`.

Every LSTMSequence, GRUSequence and RNNSequence, at any depth, becomes the TensorIterator over its cell that it is, so
that a run can stop in it. The results are the same; the sequence's own kernel is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from stepper.engine.graph_builder import GraphBuilder, Tensor, edges_of
from stepper.engine.roles import parameter_type
from stepper.engine.sequence_loops import SequenceOpener, input_ranks, is_sequence
from stepper.ir import opening
from stepper.ir.constants import constant_type
from stepper.ir.model import Graph, Layer, Model, Source
from stepper.ir.opening import ModelSource


def open_sequences(model: ModelSource) -> Model:
    """The model (or that of a path) with its recurrent sequences as loops; the model itself where it has none.

    A loop has id, name and line of the sequence that it was; of the two of a bidirectional one NAME/forward has the id.
    A sequence that is not well-formed stays, for `compile_model` to say what is wrong with it.
    """
    model = opening.opened(model)
    opened: dict[int, Graph] = {}
    for _path, graph in reversed(list(model.graphs())):  # inner before outer
        opened[id(graph)] = _opened(graph, opened)
    graph = opened[id(model.graph)]
    if graph is model.graph:
        return model
    return replace(model, graph=graph, reopen=None if model.reopen is None else _Opened(model.reopen))


class _Opened(Struct, frozen=True):
    """A model with its sequences opened, to be had in another process (see `Model.reopen`)."""

    reopen: Callable[[], Model]

    def __call__(self) -> Model:
        model = self.reopen()
        if model not in _already:
            _already[model] = open_sequences(model)
        return _already[model]


_already: Final[WeakKeyDictionary[Model, Model]] = WeakKeyDictionary()


def _opened(graph: Graph, opened: Mapping[int, Graph]) -> Graph:
    """The graph with its own sequences opened and with the opened graphs nested in it."""
    layers = [_with_opened_bodies(layer, opened) for layer in graph.layers]
    sequences = [layer for layer in layers if is_sequence(layer) and None not in graph.sources[layer.id]]
    if not sequences:
        unchanged = all(layer is before for layer, before in zip(layers, graph.layers, strict=True))
        return graph if unchanged else replace(graph, layers=tuple(layers))
    return _Rewriting(graph, layers, sequences).graph()


def _with_opened_bodies(layer: Layer, opened: Mapping[int, Graph]) -> Layer:
    if all(opened[id(body.graph)] is body.graph for body in layer.bodies):
        return layer
    bodies = tuple(replace(body, graph=opened[id(body.graph)]) for body in layer.bodies)
    return layer._replace(bodies=bodies)


class _Rewriting:
    """Replaces the sequences of one graph. The ids of the layers that will give their outputs are settled first."""

    def __init__(self, graph: Graph, layers: list[Layer], sequences: list[Layer]) -> None:
        self._graph, self._layers = graph, layers
        self._next_id = 1 + max(layer.id for layer in layers)
        self._moved: dict[Source, Source] = {}
        self._sequences = {layer.id for layer in sequences}
        for layer in sequences:
            for index in range(len(layer.outputs)):
                self._moved[Source(layer.id, index)] = Source(self._next_id, 0)
                self._next_id += 1

    def graph(self) -> Graph:
        """The graph with a loop in the place of each sequence."""
        layers: list[Layer] = []
        sources: dict[int, tuple[Source | None, ...]] = {}
        for layer in self._layers:
            if layer.id in self._sequences:
                builder = self._open(layer)
                layers += builder.layers
                sources |= builder.sources
            else:
                layers.append(layer)
                sources[layer.id] = tuple(self._now(source) for source in self._graph.sources[layer.id])
        lines = {(edge.to_layer, edge.to_port): edge.line for edge in self._graph.edges}
        edges = edges_of(layers, sources, lines)
        return Graph(tuple(layers), edges, MappingProxyType(sources), self._graph.line)

    def _open(self, layer: Layer) -> GraphBuilder:
        builder = GraphBuilder(layer.line, self._next_id, layer.name)
        outputs = [self._moved[Source(layer.id, index)].layer for index in range(len(layer.outputs))]
        SequenceOpener(builder, layer, list(self._inputs(layer)), outputs).open()
        self._next_id = builder.next_id
        return builder

    def _inputs(self, layer: Layer) -> Iterator[Tensor]:
        for source, rank in zip(self._graph.sources[layer.id], input_ranks(layer), strict=True):
            assert source is not None, "only sequences with all their inputs are opened"
            producer = self._graph.by_id[source.layer]
            port = producer.outputs[source.output]
            element_type = port.element_type
            if producer.type == "Constant":
                element_type = constant_type(producer)
            elif producer.type == "Parameter":
                element_type = parameter_type(producer)
            dims = port.dims if len(port.dims) == rank else (-1,) * rank
            yield Tensor(self._moved.get(source, source), element_type, dims)

    def _now(self, source: Source | None) -> Source | None:
        return None if source is None else self._moved.get(source, source)
