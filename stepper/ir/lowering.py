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

from msgspec.structs import replace

from stepper.element_types import I64, ElementType, Ints, Shape
from stepper.errors import KernelError
from stepper.ir.constants import constant_type, literal_constant
from stepper.ir.model import Body, Edge, Graph, Layer, Model, Port, PortSources, Source, parameter_type
from stepper.ir.xml import FilePlace
from stepper.records import Record

# Layers for a graph that no file has: ids, ports and connections count themselves.


class Tensor(Record):
    """The value of an output of a layer: where it comes from, and type and shape as far as they are known."""

    source: Source
    type: ElementType | None
    dims: Shape

    def of_rank(self, rank: int) -> Tensor:
        """Return the tensor with so many dims, all unknown where the file declares another number."""
        return self if len(self.dims) == rank else replace(self, dims=(-1,) * rank)


Declared = tuple[ElementType | None, Shape]
"""Type and dims of an output port."""


class GraphBuilder:
    """Collects layers, all of one line of the file; ids begin at `next_id`, names with `scope` and a slash."""

    def __init__(self, line: int, next_id: int = 0, scope: str = "") -> None:
        self.line, self.next_id, self.scope = line, next_id, scope
        self.layers: list[Layer] = []
        self.sources: dict[int, PortSources] = {}
        self._literals: dict[tuple[Ints | int, ElementType], Tensor] = {}

    def add(
        self,
        type: str,
        definition: int,
        name: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Declared],
        attributes: Mapping[str, str] | None = None,
        *,
        identity: int | None = None,
        bodies: tuple[Body, ...] = (),
        opened_from: str | None = None,
    ) -> tuple[Tensor, ...]:
        """Add a layer and return its outputs."""
        identity = self._new_id() if identity is None else identity
        first = len(inputs)
        ports = [Port(first + k, declared, dims, (), self.line) for k, (declared, dims) in enumerate(outputs)]
        layer = Layer(
            id=identity,
            name=self._full_name(name),
            type=type,
            version=f"opset{definition}",
            definition=definition,
            attributes=MappingProxyType(dict(attributes or {})),
            inputs=tuple(Port(k, tensor.type, tensor.dims, (), self.line) for k, tensor in enumerate(inputs)),
            outputs=tuple(ports),
            bodies=bodies,
            line=self.line,
            opened_from=opened_from,
        )
        self.layers.append(layer)
        self.sources[identity] = tuple(tensor.source for tensor in inputs)
        return tuple(Tensor(Source(identity, k), *declared) for k, declared in enumerate(outputs))

    def declare(self, tensor: Tensor, port: Port) -> None:
        """Give a tensor of this graph the names, the type and the dims that the file declares at a port."""
        for at, layer in enumerate(self.layers):
            if layer.id == tensor.source.layer:
                ports, index = layer.outputs, tensor.source.output
                declared = ports[index]._replace(element_type=port.element_type, dims=port.dims, names=port.names)
                self.layers[at] = layer._replace(outputs=(*ports[:index], declared, *ports[index + 1 :]))

    def literal(self, name: str, values: Ints | int, element_type: ElementType = I64) -> Tensor:
        """Return a Constant of these numbers; one that is there already serves again, under its first name."""
        if (found := self._literals.get((values, element_type))) is not None:
            return found
        layer = literal_constant(self._new_id(), self._full_name(name), values, element_type, self.line)
        self.layers.append(layer)
        self.sources[layer.id] = ()
        tensor = Tensor(Source(layer.id, 0), element_type, layer.outputs[0].dims)
        self._literals[values, element_type] = tensor
        return tensor

    def parameter(self, name: str, element_type: ElementType | None, dims: Shape) -> Tensor:
        """Return a Parameter of a body."""
        attributes = {"shape": ",".join("?" if dim < 0 else str(dim) for dim in dims)}
        if element_type is not None:
            attributes["element_type"] = element_type.name
        return self.add("Parameter", 1, name, (), [(element_type, dims)], attributes)[0]

    def result(self, name: str, tensor: Tensor) -> int:
        """Add a Result and return its id."""
        self.add("Result", 1, name, [tensor], ())
        return self.layers[-1].id

    def axis(self, axis: int) -> Tensor:
        """Return a Constant that names an axis."""
        return self.literal(f"axis_{axis}", (axis,))

    def squeezed(self, name: str, tensor: Tensor, axis: int) -> Tensor:
        """Return the tensor without the axis, which is 1 long."""
        dims = tensor.dims[:axis] + tensor.dims[axis + 1 :]
        return self.add("Squeeze", 1, name, [tensor, self.axis(axis)], [(tensor.type, dims)])[0]

    def unsqueezed(self, name: str, tensor: Tensor, axis: int) -> Tensor:
        """Return the tensor with an axis more, 1 long."""
        dims = (*tensor.dims[:axis], 1, *tensor.dims[axis:])
        return self.add("Unsqueeze", 1, name, [tensor, self.axis(axis)], [(tensor.type, dims)])[0]

    def selected(self, name: str, mask: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
        """`then` where the mask holds, else `otherwise`."""
        return self.add("Select", 1, name, [mask, then, otherwise], [(then.type, then.dims)])[0]

    def converted(self, name: str, tensor: Tensor, element_type: ElementType | None) -> Tensor:
        """Return the tensor in this type; itself where it has it already, or where nothing is asked for."""
        if element_type is None or tensor.type == element_type:
            return tensor
        attributes = {"destination_type": element_type.name}
        return self.add("Convert", 1, name, [tensor], [(element_type, tensor.dims)], attributes)[0]

    def graph(self) -> Graph:
        """Return the collected layers as a graph of its own."""
        layers, sources = tuple(self.layers), MappingProxyType(self.sources)
        return Graph(layers, edges_of(layers, sources, {}), sources, self.line)

    def _full_name(self, name: str) -> str:
        return "/".join(part for part in (self.scope, name) if part)

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1


def edges_of(
    layers: Sequence[Layer], sources: Mapping[int, PortSources], lines: Mapping[tuple[int, int], int]
) -> tuple[Edge, ...]:
    """Return the edges that say what `sources` says; `lines` are those of the file, by layer and port entered."""
    by_id = {layer.id: layer for layer in layers}
    return tuple(
        Edge(
            source.layer,
            by_id[source.layer].outputs[source.output].id,
            layer.id,
            port.id,
            lines.get((layer.id, port.id), layer.line),
        )
        for layer in layers
        for port, source in zip(layer.inputs, sources[layer.id], strict=True)
        if source is not None
    )


Lower: TypeAlias = Callable[[GraphBuilder, Layer, Sequence[Tensor]], Sequence[Tensor]]
"""Adds the layers that stand for one, by its inputs, and returns its outputs. KernelError for one that cannot be."""

F = TypeVar("F", bound=Lower)


class Lowering(Record):
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


_PENDING = 2**70
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
        sources: dict[int, PortSources] = {}
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
