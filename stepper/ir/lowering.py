"""Operations that repeat become loops: the registry of lowerings, and their use on a model.

A lowering is a function in a file `stepper/ir/lower_*.py`, entered for the types that it serves:

    @lowering("LSTMSequence", applies=is_sequence, on_request=True)
    def lower_sequence(builder, layer, inputs): ...

It adds a TensorIterator or Loop to the builder, whatever is needed around it, and returns a tensor for each output of
the layer. What follows (stepping, breakpoints, recordings, figures) knows loops alone. A lowering on request is for an
operation that has a kernel, too (`open_sequences`); every other is used when a model is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stepper.errors import KernelError
from stepper.ir.constants import constant_type
from stepper.ir.graph_builder import GraphBuilder, Tensor, edges_of
from stepper.ir.model import Graph, Layer, Model, Source, parameter_type
from stepper.ir.xml import FilePlace

Lower: TypeAlias = Callable[[GraphBuilder, Layer, Sequence[Tensor]], Sequence[Tensor]]
"""Adds the layers that stand for one, by its inputs, and returns its outputs. KernelError for one that cannot be."""

F = TypeVar("F", bound=Lower)


class Lowering(Struct, frozen=True):
    """Lowering of one operation type to a loop; `has_body`: the file has a <body> for it."""

    lower: Lower
    applies: Callable[[Layer], bool]
    on_request: bool
    has_body: bool


_LOWERINGS: Final[dict[str, Lowering]] = {}


def lowering(
    *types: str,
    applies: Callable[[Layer], bool] = lambda _layer: True,
    on_request: bool = False,
    has_body: bool = False,
) -> Callable[[F], F]:
    """Enter the decorated function as the lowering of these operation types, for the layers that it applies to."""

    def enter(function: F) -> F:
        for type in types:
            assert type not in _LOWERINGS, f"two lowerings for {type}"
            _LOWERINGS[type] = Lowering(function, applies, on_request, has_body)
        return function

    return enter


@cache
def _import_lowerings() -> None:
    for file in sorted(Path(__file__).parent.glob("lower_*.py")):
        import_module(f"stepper.ir.{file.stem}")


def find(type: str) -> Lowering | None:
    """Return the lowering of an operation type, None where there is none."""
    _import_lowerings()
    return _LOWERINGS.get(type)


def sequences_of(model: Model) -> tuple[Layer, ...]:
    """Return the layers of a model that are lowered on request."""
    return tuple(
        layer for _path, graph in model.graphs() for layer in graph.layers if _is_open_to(layer, graph, on_request=True)
    )


def has_opened(model: Model) -> bool:
    """Return True if a layer of the model was lowered on request."""
    types = {layer.opened_from for _path, graph in model.graphs() for layer in graph.layers if layer.opened_from}
    return any(found.on_request for found in map(find, types) if found is not None)


def unopened(model: Model) -> str:
    """Return that a model has sequences, and what opens them; empty for one without any."""
    found = sequences_of(model)
    if not found:
        return ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(layer.type for layer in found).items()))
    return f"--open-sequences opens {kinds} as {'a loop' if len(found) == 1 else 'loops'}"


def without_loops(model: Model) -> str:
    """Return that a model has no loop, and what would give it some; empty for one that has a loop."""
    if any(layer.is_loop for _path, graph in model.graphs() for layer in graph.layers):
        return ""
    return "; ".join(["the model has no loop", *filter(None, [unopened(model)])])


def lowered(model: Model, *, on_request: bool = False) -> Model:
    """Return the model with loops in the place of what a lowering serves; the model itself where there is nothing.

    `on_request` takes the lowerings on request, else those that are always used. ModelError where one refuses a layer.
    """
    done: dict[int, Graph] = {}
    for path, graph in reversed(list(model.graphs())):  # inner before outer
        where = "".join(f"{layer} > " for layer in path)
        done[id(graph)] = _Rewriting(graph, done, model.path, where, on_request=on_request).graph()
    graph = done[id(model.graph)]
    return model if graph is model.graph else replace(model, graph=graph)


def _is_open_to(layer: Layer, graph: Graph, *, on_request: bool) -> bool:
    found = find(layer.type)
    if found is None or found.on_request is not on_request or not found.applies(layer):
        return False
    return None not in graph.sources[layer.id]


_PENDING: Final = 2**70
"""More than any id is."""


class _Rewriting:
    """Replaces the layers of one graph that are lowered; `done` are the graphs nested in it as they are now.

    What a lowered layer gives is known by an id of its own (`_PENDING` more) until all of them are lowered.
    """

    def __init__(self, graph: Graph, done: Mapping[int, Graph], file: Path, where: str, *, on_request: bool) -> None:
        self._graph, self._file, self._where = graph, file, where
        self._layers = [_with_bodies(layer, done) for layer in graph.layers]
        self._chosen = {layer.id for layer in self._layers if _is_open_to(layer, graph, on_request=on_request)}
        self._next_id = 1 + max((layer.id for layer in self._layers), default=0)
        self._moved: dict[Source | None, Source] = {}

    def graph(self) -> Graph:
        """Return the graph with loops in the place of the chosen layers; the graph itself where nothing changes."""
        if not self._chosen and all(a is b for a, b in zip(self._layers, self._graph.layers, strict=True)):
            return self._graph
        layers: list[Layer] = []
        sources: dict[int, tuple[Source | None, ...]] = {}
        for layer in self._layers:
            if layer.id in self._chosen:
                builder = self._lowered(layer)
                layers += builder.layers
                sources |= builder.sources
            else:
                layers.append(layer)
                sources[layer.id] = tuple(map(self._marked, self._graph.sources[layer.id]))
        sources = {key: tuple(map(self._now, found)) for key, found in sources.items()}
        lines = {(edge.to_layer, edge.to_port): edge.line for edge in self._graph.edges}
        return Graph(tuple(layers), edges_of(layers, sources, lines), MappingProxyType(sources), self._graph.line)

    def _lowered(self, layer: Layer) -> GraphBuilder:
        found = find(layer.type)
        assert found is not None, "it was chosen"
        builder = GraphBuilder(layer.line, self._next_id, layer.name)
        try:
            outputs = found.lower(builder, layer, [self._input(source) for source in self._graph.sources[layer.id]])
        except KernelError as error:
            FilePlace(self._file, layer.line, f"{self._where}{layer}").fail(str(error))
        for index, (port, tensor) in enumerate(zip(layer.outputs, outputs, strict=True)):
            builder.declare(tensor, port)
            self._moved[Source(layer.id + _PENDING, index)] = tensor.source
        self._next_id = builder.next_id
        return builder

    def _input(self, source: Source | None) -> Tensor:
        assert source is not None, "only layers with all their inputs are chosen"
        producer = self._graph.by_id[source.layer]
        port = producer.outputs[source.output]
        element_type = port.element_type
        if producer.type == "Constant":
            element_type = constant_type(producer)
        elif producer.type == "Parameter":
            element_type = parameter_type(producer)
        return Tensor(self._marked(source) or source, element_type, port.dims)

    def _marked(self, source: Source | None) -> Source | None:
        if source is None or source.layer not in self._chosen:
            return source
        return Source(source.layer + _PENDING, source.output)

    def _now(self, source: Source | None) -> Source | None:
        while source in self._moved:
            source = self._moved[source]
        return source


def _with_bodies(layer: Layer, done: Mapping[int, Graph]) -> Layer:
    if all(done[id(body.graph)] is body.graph for body in layer.bodies):
        return layer
    return layer._replace(bodies=tuple(replace(body, graph=done[id(body.graph)]) for body in layer.bodies))
