"""The graph of a model as the body of the loop over calls: its variables carried, its inputs cut, its condition."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from msgspec import Struct

from stepper.element_types import BOOLEAN, I64
from stepper.ir.calls.plan import CallParts, Calls
from stepper.ir.graph_builder import GraphBuilder, Tensor, edges_of
from stepper.ir.model import Graph, Layer, Port, Source, parameter_type

_OF_VARIABLES: Final = ("ReadValue", "Assign")


class DeclaredVariable(Struct, frozen=True):
    """A variable that one graph alone reads and assigns to: by these layers."""

    readers: tuple[Layer, ...]
    assign: Layer


def carried_variables(graph: Graph) -> list[DeclaredVariable]:
    """Return the variables of a model's graph that can be carried by back edges, in the order of the file.

    Those that nested graphs use, too, cannot, nor those that are only read, nor one whose initial value follows from
    another variable or from random numbers.
    """
    users: dict[str, list[Layer]] = {}
    for layer in graph.layers:
        if layer.type in _OF_VARIABLES and (name := layer.attributes.get("variable_id")):
            users.setdefault(name, []).append(layer)
    nested = set(_used_within(graph))
    found = []
    for name, layers in users.items():
        readers = tuple(layer for layer in layers if layer.type == "ReadValue")
        assigns = [layer for layer in layers if layer.type == "Assign"]
        if name in nested or not readers or len(assigns) != 1:
            continue
        sound = all(len(one.outputs) == 1 for one in readers) and None not in graph.sources[assigns[0].id]
        if sound and len(assigns[0].inputs) == 1 and _can_begin(graph, readers[0]):
            found.append(DeclaredVariable(readers, assigns[0]))
    return found


def needed_for(graph: Graph, layer: Layer) -> list[Layer]:
    """Return the layers from which the inputs of one are computed, in the order of the file."""
    found: set[int] = set()
    waiting = [layer.id]
    while waiting:
        for source in graph.sources[waiting.pop()]:
            if source is not None and source.layer not in found:
                found.add(source.layer)
                waiting.append(source.layer)
    return [one for one in graph.layers if one.id in found]


def _can_begin(graph: Graph, reader: Layer) -> bool:
    needed = needed_for(graph, reader)
    nested = [one for layer in needed for body in layer.bodies for one in body.graph.layers]
    own_state = (*_OF_VARIABLES, "RandomUniform", "Multinomial")
    return not any(one.type in own_state or one.bodies for one in nested) and not any(
        one.type in own_state for one in needed
    )


def _used_within(graph: Graph) -> list[str]:
    """Return the names of the variables that nested graphs use."""
    found = []
    waiting = [body.graph for layer in graph.layers for body in layer.bodies]
    while waiting:
        inner = waiting.pop()
        for layer in inner.layers:
            found += [layer.attributes.get("variable_id", "")] if layer.type in _OF_VARIABLES else []
            waiting += [body.graph for body in layer.bodies]
    return found


class CallsBody:
    """Makes the body. `entries` are the ids of the Parameters that the loop feeds, by those of the model's.

    `number` is the Parameter of the call's number (None: nobody wants it), `condition` the Result that is always true.
    """

    def __init__(self, graph: Graph, calls: Calls, variables: list[DeclaredVariable]) -> None:
        self._inner, self._calls = graph, calls
        self._builder = GraphBuilder(graph.line, 1 + max((layer.id for layer in graph.layers), default=0))
        self._changed: dict[int, Layer] = {}
        self._sources: dict[int, tuple[Source | None, ...]] = {}
        self._moved: dict[int, Source] = {}
        self.entries = {layer.id: layer.id for layer in graph.parameters}
        self.number: int | None = None
        for variable in variables:
            self._carry(variable)
        parts = {one.input: one for one in calls.parts}
        for index, parameter in enumerate(graph.parameters):
            if index in parts:
                self._cut(parameter, parts[index])
        goes_on = self._builder.literal(self._free("goes_on"), 1, BOOLEAN)
        self.condition = self._builder.result(self._free("goes_on_result"), goes_on)

    def graph(self) -> Graph:
        """Return it: the layers of the file in their order, then those that are added."""
        inner = self._inner
        layers = [*(self._changed.get(layer.id, layer) for layer in inner.layers), *self._builder.layers]
        sources = {**inner.sources, **self._builder.sources, **self._sources}
        if self._moved:
            sources = {
                key: tuple(one if one is None else self._moved.get(one.layer, one) for one in found)
                for key, found in sources.items()
            }
        lines = {(edge.to_layer, edge.to_port): edge.line for edge in inner.edges}
        return Graph(tuple(layers), edges_of(layers, sources, lines), MappingProxyType(sources), inner.line)

    def _free(self, name: str) -> str:
        while name in self._inner.same_names:
            name += "_"
        return name

    def _carry(self, variable: DeclaredVariable) -> None:
        """Make Parameters of the ReadValues, and a Result of the Assign, with what they are called."""
        for reader in variable.readers:
            port = reader.outputs[0]
            attributes = {"shape": ",".join("?" if dim < 0 else str(dim) for dim in port.dims)}
            if port.element_type is not None:
                attributes["element_type"] = port.element_type.name
            self._changed[reader.id] = reader._replace(
                type="Parameter",
                version="opset1",
                definition=1,
                attributes=MappingProxyType(attributes),
                inputs=(),
                opened_from=reader.type,
            )
            self._sources[reader.id] = ()
        assign = variable.assign
        source = self._inner.sources[assign.id][0]
        assert source is not None, "carried_variables has seen to it"
        self._changed[assign.id] = assign._replace(
            type="Result",
            version="opset1",
            definition=1,
            attributes=MappingProxyType({}),
            outputs=(),
            opened_from=assign.type,
        )
        self._moved[assign.id] = source

    def _cut(self, parameter: Layer, parts: CallParts) -> None:
        """Let operations cut the part of a call where a slice alone is not what a call gets."""
        port = parameter.outputs[0]
        if len(parts.lengths) == 1 and not parts.own_axis:
            return
        dims = list(port.dims)
        if parts.own_axis:
            dims.insert(parts.axis, 1)
        else:
            dims[parts.axis] = parts.extent(self._calls.count)
        builder = self._builder
        builder.line = parameter.line
        entry = builder.parameter(self._free(f"{parameter.name}/calls"), parameter_type(parameter), tuple(dims))
        self.entries[parameter.id] = entry.source.layer
        if parts.own_axis:
            inputs = [entry, builder.axis(parts.axis)]
            type, definition = "Squeeze", 1
        else:
            ends = parts.ends
            begins = [end - length for end, length in zip(ends, parts.lengths, strict=True)]
            places = [self._of_call(name, tuple(of)) for name, of in (("begins", begins), ("ends", ends))]
            step, axis = builder.literal("step", (1,)), builder.axis(parts.axis)
            inputs = [entry, *places, step, axis]
            type, definition = "Slice", 8
        self._changed[parameter.id] = parameter._replace(
            type=type,
            version=f"opset{definition}",
            definition=definition,
            attributes=MappingProxyType({}),
            inputs=tuple(Port(k, one.type, one.dims, (), parameter.line) for k, one in enumerate(inputs)),
            outputs=(port._replace(id=len(inputs)),),
            opened_from=parameter.type,
        )
        self._sources[parameter.id] = tuple(one.source for one in inputs)
        builder.line = self._inner.line

    def _of_call(self, name: str, values: tuple[int, ...]) -> Tensor:
        """Return that of the values which belongs to the call, an i64 of shape [1]."""
        builder = self._builder
        if self.number is None:
            self.number = builder.parameter(self._free("call"), I64, (1,)).source.layer
        inputs = [builder.literal(name, values), Tensor(Source(self.number, 0), I64, (1,)), builder.literal("zero", 0)]
        return builder.add("Gather", 8, f"{name}_of_call", inputs, [(I64, (1,))])[0]
