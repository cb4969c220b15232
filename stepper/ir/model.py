"""The model as the file has it: immutable, every part with the line of the XML that it came from; only look-ups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, wraps
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeVar

from stepper import element_types
from stepper.element_types import ElementType, Ints, Shape
from stepper.errors import UsageError
from stepper.ir.weights import Weights
from stepper.operation_types import NO_OPERATIONS
from stepper.records import Immutable, Record, as_data
from stepper.wording import counted, excerpt

# Plan of many calls: how many, which inputs each gets a part of, which outputs come back as inputs of the next.

CALLS = "calls"
"""Name of the loop, where the model has no layer of this name; and what the loop was before it was one."""

MOST_CALLS = 10**7


def iteration_word(opened_from: str | None) -> str:
    """Return what an iteration is called of a loop that stands for this: call, or iteration."""
    return "call" if opened_from == CALLS else "iteration"


class CallParts(Record):
    """Describe how calls get their parts of an input: one behind the other along an axis.

    `lengths` is the length of every part, or a length for each call. With `own_axis` the axis counts calls alone, and a
    call's part lacks it; each part then has length 1.
    """

    input: int
    axis: int
    lengths: Ints
    own_axis: bool = False

    def extent(self, count: int) -> int:
        """Return the length of the axis over so many calls."""
        return self.lengths[0] * count if len(self.lengths) == 1 else sum(self.lengths)

    def part(self, whole: Any, number: int) -> Any:
        """Return the part of a call, of an array with the parts of all."""
        begin = self.lengths[0] * number if len(self.lengths) == 1 else sum(self.lengths[:number])
        along = (slice(None),) * self.axis
        if self.own_axis:
            return whole[(*along, begin)]
        return whole[(*along, slice(begin, begin + self.lengths[0 if len(self.lengths) == 1 else number]))]

    @property
    def ends(self) -> Ints:
        """Where the part of each call ends, of parts that differ in length."""
        return tuple(accumulate(self.lengths))


class CarriedOutput(Record):
    """An output that is an input of the next call; by their positions."""

    output: int
    input: int


class Calls(Record):
    """Calls of a model, one after the other; an input that is in neither list is the same for all."""

    count: int
    parts: tuple[CallParts, ...] = ()
    carried: tuple[CarriedOutput, ...] = ()

    def check(self, inputs: int, outputs: int) -> None:
        """Raise UsageError for what cannot be of a model with so many inputs and outputs."""
        if not 1 <= self.count <= MOST_CALLS:
            raise UsageError(f"there are {counted(self.count, 'call')}; from 1 to {MOST_CALLS:,} can be")
        fed = [part.input for part in self.parts] + [one.input for one in self.carried]
        given = [one.output for one in self.carried]
        if not all(0 <= one < inputs for one in fed) or not all(0 <= one < outputs for one in given):
            raise UsageError("the calls name an input or an output that the model does not have")
        if len(set(fed)) != len(fed):
            raise UsageError("an input gets its value in two ways: parts, or what an output was, once")
        for part in self.parts:
            lengths = part.lengths
            if len(lengths) not in (1, self.count) or part.axis < 0 or not all(0 <= n < 2**62 for n in lengths):
                raise UsageError("the calls have parts that cannot be")
            if len(lengths) == 1 and (lengths[0] < 1 or (part.own_axis and lengths[0] != 1)):
                raise UsageError("the calls have parts that cannot be")


# Shapes as a file declares them: `1,2`, `?,3`, `-1`, `2..8`, `..5`, `1..`, and `...` for a shape of any rank.

_BOUNDS = re.compile(r"(\d*)\.\.(\d*)")
LARGEST_DIMENSION = 2**63 - 1


class Dimension(NamedTuple):
    """The sizes that one dimension may have: from `least` to `most` (None: unbounded)."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        if self.most is None:
            return f"{self.least}.." if self.least else "?"
        return f"{self.least or ''}..{self.most}"


class PartialShape(Record):
    """Hold a shape whose dimensions may be open, or whose rank is open (`dimensions` is None)."""

    dimensions: tuple[Dimension, ...] | None

    @staticmethod
    def parse(text: str) -> PartialShape:
        """Read the `shape` attribute of a Parameter; ValueError for a text that is none."""
        return _parse(text)

    @staticmethod
    def of_dims(dims: Sequence[int]) -> PartialShape:
        """From the <dim> numbers of a port, -1 for an open one."""
        return _of_dims(tuple(dims))

    def accepts(self, shape: Sequence[int]) -> bool:
        """Return True if a tensor of `shape` may stand here."""
        if self.dimensions is None:
            return True
        return len(shape) == len(self.dimensions) and all(
            dimension.least <= size and (dimension.most is None or size <= dimension.most)
            for dimension, size in zip(self.dimensions, shape, strict=True)
        )

    @property
    def static(self) -> Shape | None:
        """The shape where nothing of it is open, else None."""
        return None if self.dimensions is None else _static(self.dimensions)

    def __str__(self) -> str:
        return "[...]" if self.dimensions is None else f"[{','.join(map(str, self.dimensions))}]"


@lru_cache(maxsize=1024)
def _static(dimensions: tuple[Dimension, ...]) -> Shape | None:
    if any(dimension.least != dimension.most for dimension in dimensions):
        return None
    return tuple(dimension.least for dimension in dimensions)


@lru_cache(maxsize=1024)
def _of_dims(dims: Shape) -> PartialShape:
    return PartialShape(tuple(Dimension(0, None) if dim < 0 else Dimension(dim, dim) for dim in dims))


@lru_cache(maxsize=1024)
def _parse(text: str) -> PartialShape:
    text = text.strip().removeprefix("[").removesuffix("]").strip()
    if text == "...":
        return PartialShape(None)
    return PartialShape(tuple(_dimension(part.strip()) for part in text.split(",")) if text else ())


def _dimension(text: str) -> Dimension:
    if text in ("?", "-1"):
        return Dimension(0, None)
    if match := _BOUNDS.fullmatch(text):
        least, most = (int(part) if part else None for part in match.groups())
        if most is not None and most < (least or 0):
            raise ValueError(f"{text} is empty")
        return Dimension(_checked(least or 0), None if most is None else _checked(most))
    return Dimension(_checked(int(text)), _checked(int(text)))


def _checked(size: int) -> int:
    if not 0 <= size <= LARGEST_DIMENSION:
        raise ValueError(f"{size} is not a dimension")
    return size


_MOST_NAMED = 3
_MOST_ROWS = 50

new: Final = tuple.__new__
"""Makes one of these tuples in a third of the time that calling its class takes; a large model has a million."""

NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


class Port(NamedTuple):
    """Hold a port of a layer; `dims` are as declared (-1: unknown).

    OpenVINO does not trust the declared dimensions either.
    """

    id: int
    element_type: ElementType | None
    dims: Shape
    names: tuple[str, ...]
    line: int


class Edge(NamedTuple):
    """A connection inside one graph, by layer ids and port ids."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int


class Source(NamedTuple):
    """Source of an input's value: the layer and the index (not the id) of its output port."""

    layer: int
    output: int


PortSources = tuple[Source | None, ...]
"""The sources of a layer's inputs; None: nothing is connected."""


class Slicing(Record):
    """Cutting of an input or joining of an output along the `axis` of a port map entry, iteration by iteration.

    `part_size` is None where the file does not say.
    """

    axis: int
    start: int
    end: int
    stride: int
    part_size: int | None

    def __str__(self) -> str:
        """Return everything that the file says of it."""
        part = "" if self.part_size is None else f", part_size {self.part_size}"
        return f"axis {self.axis}, start {self.start}, end {self.end}, stride {self.stride}{part}"


class InputMapping(NamedTuple):
    """An `<input>` of a port map: from the outer layer's input to a body Parameter.

    `input` is the index of the outer layer's input, None where nothing outside is connected (external_port_id -1).
    """

    input: int | None
    parameter: int
    slicing: Slicing | None
    purpose: str | None
    condition: bool
    line: int


class OutputMapping(NamedTuple):
    """An `<output>` of a port map: from a body Result to the outer layer's output (None: to no output)."""

    output: int | None
    result: int
    slicing: Slicing | None
    purpose: str | None
    line: int


class IgnoredOutput(NamedTuple):
    """An `<output>` whose external_port_id an entry before it has, which counts: that one's Result, and the number."""

    result: int
    counts: int
    number: int
    line: int


class BackEdge(NamedTuple):
    """Carry `from_layer`'s value (a Result) to `to_layer` (a Parameter) after each iteration."""

    from_layer: int
    to_layer: int
    line: int


BodyRole = Literal["body", "then_body", "else_body"]

BODIES = {
    "TensorIterator": (("body", "port_map"),),
    "Loop": (("body", "port_map"),),
    "If": (("then_body", "then_port_map"), ("else_body", "else_port_map")),
}
"""The bodies of each type that has some, each with the element that holds its port map."""

Scope = tuple[tuple[int, str], ...]
"""Into a body: the ids of the loops and Ifs around it, each with the role of the body."""
LoopKey = tuple[int | str, ...]
"""Loop of a model: ids of the layers that lead to it, its own last; body roles after Ifs."""


CURRENT_ITERATION = "current_iteration"
EXECUTION_CONDITION = "execution_condition"
"""Purposes of the entries of a port map."""


class Body(Record):
    """A nested graph of a TensorIterator, Loop or If with its port map.

    `ignored` are outputs with an external_port_id that an entry before them has: they count for nothing. Of a file that
    is read in spite of its faults, `unread_inputs` and `unread_outputs` are how many entries were left out.
    """

    role: BodyRole
    graph: Graph
    inputs: tuple[InputMapping, ...]
    outputs: tuple[OutputMapping, ...]
    back_edges: tuple[BackEdge, ...]
    first_draft: bool
    line: int
    ignored: tuple[IgnoredOutput, ...] = ()
    unread_inputs: int = 0
    unread_outputs: int = 0

    @property
    def condition(self) -> int | None:
        """The id of the first Result that says whether there is another iteration."""
        return next((one.result for one in self.outputs if one.purpose == EXECUTION_CONDITION), None)


class Layer(NamedTuple):
    """Hold one operation of a graph; `type` is spelt as in the specification.

    `definition` is the opset of its definition, or None for an operation of an extension. A loop has one body, an If
    two, everything else none. `opened_from` is the type of this layer in the file if a loop replaces it here, else
    None.
    """

    id: int
    name: str
    type: str
    version: str
    definition: int | None
    attributes: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    bodies: tuple[Body, ...]
    line: int
    opened_from: str | None = None

    @property
    def is_loop(self) -> bool:
        """True if this is a TensorIterator or a Loop."""
        return self.type in ("TensorIterator", "Loop")

    def is_called(self, name: str) -> bool:
        """Return True if this is its name, or the name of an output."""
        return name == self.name or any(name in port.names for port in self.outputs)

    @property
    def is_over_calls(self) -> bool:
        """Return True if this is the Loop around a model; its iterations are calls."""
        return self.opened_from == CALLS

    @property
    def iteration_word(self) -> str:
        """Return what an iteration of this loop is called: call, or iteration."""
        return iteration_word(self.opened_from)

    def is_set(self, name: str, *, otherwise: bool = False) -> bool:
        """Return True if an attribute is true; `otherwise` is the value of a missing attribute."""
        return self.attributes.get(name, str(otherwise)).strip().lower() in ("true", "1")

    def __reduce__(self) -> tuple[Any, ...]:
        return _layer, (dict(self.attributes), self._replace(attributes={})[:])

    def __deepcopy__(self, _memo: dict[int, Any]) -> Layer:
        return self

    def __repr__(self) -> str:
        return f"<{self}, line {self.line}>"

    def __str__(self) -> str:
        return f"layer {self.id} '{excerpt(self.name)}' ({excerpt(self.type)})"


def _layer(attributes: dict[str, str], parts: tuple[Any, ...]) -> Layer:
    """Return a layer that was pickled: a mapping that cannot be written to is none that pickle knows."""
    return Layer(*parts)._replace(attributes=MappingProxyType(attributes))


NO_LAYER = Layer(-1, "", "", "", None, NO_ATTRIBUTES, (), (), (), 0)
"""Stands for a layer that there is not; it is of no type and reads nothing."""


class Graph(Immutable, Record, dict=True):
    """Layers and edges; the model's own graph, or a body."""

    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    sources: Mapping[int, PortSources]
    line: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _graph, (self.layers, self.edges, dict(self.sources), self.line)

    def __repr__(self) -> str:
        return f"<Graph of {counted(len(self.layers), 'layer')}, line {self.line}>"

    @cached_property
    def derived(self) -> dict[Callable[[Graph], Any], Any]:
        """The results of the functions that are `kept_with_graph`."""
        return {}

    @cached_property
    def by_id(self) -> Mapping[int, Layer]:
        """Layers by id; ids of a body live in their own name space."""
        return MappingProxyType({layer.id: layer for layer in self.layers})

    @cached_property
    def same_names(self) -> Mapping[str, int]:
        """How many layers have each name."""
        return MappingProxyType(Counter(layer.name for layer in self.layers))

    @cached_property
    def holders(self) -> tuple[Layer, ...]:
        """The layers that have bodies, in file order."""
        return tuple(layer for layer in self.layers if layer.bodies)

    @cached_property
    def operations(self) -> tuple[Layer, ...]:
        """The layers that compute something, in file order: all but Parameters, Results and Constants.

        A run may do fewer: what is constant is computed before it, and what nobody reads not at all.
        """
        return tuple(layer for layer in self.layers if layer.type not in NO_OPERATIONS)

    @cached_property
    def parameters(self) -> tuple[Layer, ...]:
        """The Parameters in file order, which is the order of the model's inputs."""
        return tuple(layer for layer in self.layers if layer.type == "Parameter")

    @cached_property
    def results(self) -> tuple[Layer, ...]:
        """The Results in file order, which is the order of the model's outputs."""
        return tuple(layer for layer in self.layers if layer.type == "Result")

    @cached_property
    def readers(self) -> Mapping[int, tuple[tuple[Layer, int], ...]]:
        """Map each layer id to the layers that read it, each with the index of the input."""
        found: dict[int, list[tuple[Layer, int]]] = {layer.id: [] for layer in self.layers}
        for layer in self.layers:
            for index, source in enumerate(self.sources[layer.id]):
                if source is not None:
                    found.setdefault(source.layer, []).append((layer, index))
        return MappingProxyType({layer: tuple(uses) for layer, uses in found.items()})

    def source(self, key: int, index: int | None = 0) -> Source | None:
        """Return what an input of a layer reads; None for an input that is not there or that no edge reaches."""
        sources = self.sources.get(key, ())
        return sources[index] if index is not None and index < len(sources) else None

    def layer_of(self, source: Source | None) -> Layer:
        """Return the layer that gives a value; `NO_LAYER` where there is none."""
        return NO_LAYER if source is None else self.by_id.get(source.layer, NO_LAYER)

    def maker(self, layer: Layer, index: int = 0) -> Layer:
        """Return the layer that gives an input of a layer; `NO_LAYER` where there is none."""
        return self.layer_of(self.source(layer.id, index))

    @cached_property
    def read_outputs(self) -> frozenset[Source]:
        """The outputs that some layer reads."""
        return frozenset(source for sources in self.sources.values() for source in sources if source is not None)


_Derived = TypeVar("_Derived")


def kept_with_graph(derive: Callable[[Graph], _Derived]) -> Callable[[Graph], _Derived]:
    """Return the function so that it computes once what it gives for a graph, which never changes."""

    @wraps(derive)
    def found(graph: Graph) -> _Derived:
        known = graph.derived
        if derive not in known:
            known[derive] = derive(graph)
        result: _Derived = known[derive]
        return result

    return found


def _graph(layers: tuple[Layer, ...], edges: tuple[Edge, ...], sources: dict[int, PortSources], line: int) -> Graph:
    return Graph(layers, edges, MappingProxyType(sources), line)


class Model(Immutable, Record, eq=False, weakref=True, dict=True):
    """Hold a whole model; it equals itself alone.

    `weights` is None without a .bin: the model then opens for its structure only. `reopen` gives the model in another
    process and serves as its pickled form: a few hundred bytes, and read once per process. `reopen` is None for a graph
    that no file has; such a graph is pickled itself. `calls`: the graph is the file's graph as the body of a Loop over
    these calls.
    """

    path: Path
    name: str
    version: int
    graph: Graph
    weights: Weights | None
    reopen: Callable[[], Model] | None = None
    calls: Calls | None = None

    @cached_property
    def compiled(self) -> dict[Any, Any]:
        """Hold the compiled forms of the model, by rules and backend, as long as the model lives."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reopen is not None:
            return self.reopen, ()
        return Model, (self.path, self.name, self.version, self.graph, self.weights, None, self.calls)

    def __repr__(self) -> str:
        loops = [layer for _path, graph in self.graphs() for layer in graph.layers if layer.is_loop]
        names = ", ".join(f"{layer.type} '{excerpt(layer.name)}'" for layer in loops[:_MOST_NAMED])
        more = ", ..." if len(loops) > _MOST_NAMED else ""
        listed = f" ({names}{more})" if loops else ""
        counts = f"{counted(len(self.graph.layers), 'layer')}, {counted(len(loops), 'loop')}{listed}"
        return f"<Model '{excerpt(self.name or self.path.stem)}' of {excerpt(str(self.path))}: {counts}>"

    def _repr_html_(self) -> str:
        """Return a table of inputs, outputs and loops, for notebooks."""
        from stepper.html_tables import html_table  # the first picture goes without

        rows = [("input", layer, str(parameter_shape(layer))) for layer in self.graph.parameters]
        rows += [("output", layer, str(PartialShape.of_dims(layer.inputs[0].dims))) for layer in self.graph.results]
        loops = [layer for _path, graph in self.graphs() for layer in graph.layers if layer.is_loop]
        rows += [
            (layer.type, layer, f"body of {counted(len(layer.bodies[0].graph.layers), 'layer')}") for layer in loops
        ]
        cells = [(what, layer.name, _type_text(layer), text) for what, layer, text in rows[:_MOST_ROWS]]
        return html_table(([excerpt(cell) for cell in row] for row in cells), repr(self)[1:-1])

    def graphs(self) -> Iterator[tuple[tuple[Layer, ...], Graph]]:
        """Yield every graph of the model, outer before inner, each with the layers that lead to it."""
        return ((path, graph) for _scope, path, graph in self.scopes())

    def scopes(self) -> Iterator[tuple[Scope, tuple[Layer, ...], Graph]]:
        """Yield every graph of the model, outer before inner, with its scope and the layers that lead to it."""
        stack: list[tuple[Scope, tuple[Layer, ...], Graph]] = [((), (), self.graph)]
        while stack:
            scope, path, graph = stack.pop()
            yield scope, path, graph
            stack += [
                ((*scope, (layer.id, body.role)), (*path, layer), body.graph)
                for layer in reversed(graph.holders)
                for body in reversed(layer.bodies)
            ]


def path_text(path: Iterable[Layer]) -> str:
    """Return the place of a graph in the model: `model`, and the layers that lead to it."""
    return " > ".join(["model", *(f"{layer.type} '{layer.name}'" for layer in path)])


def parameter_shape(parameter: Layer) -> PartialShape:
    """Return the declared shape of a Parameter: from its <data>, else from its output port."""
    text = parameter.attributes.get("shape")
    if text is None:
        return PartialShape.of_dims(parameter.outputs[0].dims)
    return PartialShape.parse(text)


def parameter_type(parameter: Layer) -> ElementType | None:
    """Return the declared element type of a Parameter; None where it is open."""
    written = parameter.attributes.get("element_type")
    return parameter.outputs[0].element_type if written is None else element_types.by_name(written)


def _type_text(layer: Layer) -> str:
    ports = layer.outputs if layer.type == "Parameter" else layer.inputs if layer.type == "Result" else ()
    return "" if not ports or ports[0].element_type is None else str(ports[0].element_type)


class LayerSite(Record):
    """A layer as plain data: its id, name and type, the XML file that it stands in, and the line there."""

    id: int
    name: str
    type: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.type} '{self.name}'"


def layer_site(layer: Layer, file: str) -> LayerSite:
    """Return the site of a layer of the model that stands in this file."""
    return LayerSite(layer.id, layer.name, layer.type, file, layer.line)


def layer_data(layer: Layer, model: Model) -> dict[str, Any]:
    """Return a layer as JSON has it in every answer: {"id", "name", "type", "file", "line"}."""
    found: dict[str, Any] = as_data(layer_site(layer, str(model.path)))
    return found


# Carried values that grow: a Concat joins pieces to them in each iteration.


class Growth(NamedTuple):
    """A Parameter to which a Concat joins `pieces` on their way to the Result that is carried back to it.

    `only_collects`: nothing else reads the Parameter or the Concat, so that the value takes part in nothing. Ids are
    those of layers.
    """

    parameter: int
    concat: int
    result: int
    pieces: tuple[Source, ...]
    only_collects: bool

    @property
    def piece(self) -> Source | None:
        """The one piece that an iteration adds; None where there are several."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    @property
    def layers(self) -> Ints:
        """The three layers, Parameter first."""
        return (self.parameter, self.concat, self.result)


def growth_of(graph: Graph, result: int, parameter: int) -> Growth | None:
    """Return how the value of a back edge grows, from its Result to its Parameter; None where it does not so."""
    concat = graph.layer_of(graph.source(result))
    if concat.type != "Concat":
        return None
    inputs = graph.sources[concat.id]
    pieces = tuple(one for one in inputs if one is not None and one.layer != parameter)
    if not pieces or len(pieces) != len(inputs) - 1:
        return None
    only_collects = all(
        [reader.id for reader, _port in graph.readers.get(layer, ())] == [next_one]
        for layer, next_one in ((parameter, concat.id), (concat.id, result))
    )
    return Growth(parameter, concat.id, result, pieces, only_collects)
