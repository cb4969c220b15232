"""Wrap a model as the body of a Loop over calls: `with_calls`.

    x [500, 80] ────────────── sliced ──┐
    h ──────────────────────── merged ──┤                  ┌─ concatenated ── y [500, 10];
    ReadValue 'state' ──────── merged ──┼─ Loop 'calls' ───┼─ last value ──── hn;
    500, true ─────────────── control ──┘                  └─ last value ──── Assign 'state'.

The body is the graph of the file: layers keep their ids, names and lines. A variable is read before the loop and
assigned after it. In the body its ReadValues are Parameters, and its Assign is the Result that is carried back to them.
An initial value that nobody gives is computed from the first call's inputs, as the first call would. Variables of
nested graphs stay: the machine keeps them from call to call. Source: ReadValue and Assign of the specification; the
next inference reads an assigned value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from stepper.element_types import BOOLEAN, I64, Ints
from stepper.errors import UsageError
from stepper.ir.lowering import Declared, GraphBuilder, Tensor, edges_of
from stepper.ir.model import (
    CALLS,
    CURRENT_ITERATION,
    EXECUTION_CONDITION,
    BackEdge,
    Body,
    CallParts,
    Calls,
    Graph,
    InputMapping,
    Layer,
    Model,
    OutputMapping,
    PartialShape,
    Port,
    PortSources,
    Slicing,
    Source,
    parameter_shape,
    parameter_type,
)
from stepper.ir.reader import ModelSource, opened
from stepper.operation_types import STATEFUL, VARIABLES
from stepper.records import Record

# The graph of a model as the body of the loop over calls: its variables carried, its inputs cut, its condition.


class DeclaredVariable(Record):
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
        if layer.type in VARIABLES and (name := layer.attributes.get("variable_id")):
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
    return not any(one.type in STATEFUL or one.bodies for one in nested) and not any(
        one.type in STATEFUL for one in needed
    )


def _used_within(graph: Graph) -> list[str]:
    """Return the names of the variables that nested graphs use."""
    found = []
    waiting = [body.graph for layer in graph.layers for body in layer.bodies]
    while waiting:
        inner = waiting.pop()
        for layer in inner.layers:
            found += [layer.attributes.get("variable_id", "")] if layer.type in VARIABLES else []
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
        self._sources: dict[int, PortSources] = {}
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

    def _of_call(self, name: str, values: Ints) -> Tensor:
        """Return the value for the current call out of `values`, an i64 of shape [1]."""
        builder = self._builder
        if self.number is None:
            self.number = builder.parameter(self._free("call"), I64, (1,)).source.layer
        inputs = [builder.literal(name, values), Tensor(Source(self.number, 0), I64, (1,)), builder.literal("zero", 0)]
        return builder.add("Gather", 8, f"{name}_of_call", inputs, [(I64, (1,))])[0]


# The first call as far as it comes before the loop over calls: what its variables begin with is computed of it.


class FirstCall:
    """Copies layers of the model's graph to the graph around the loop, fed with the first part of each input."""

    def __init__(self, graph: Graph, builder: GraphBuilder, inputs: Sequence[Tensor], calls: Calls) -> None:
        self._graph, self._builder = graph, builder
        self._parts = {one.input: one for one in calls.parts}
        self._inputs = inputs
        self._copies: dict[int, int] = {}

    def copied(self, layer: Layer) -> Tensor:
        """Return the first output of the copy of a layer, with all that it needs."""
        for one in (*needed_for(self._graph, layer), layer):
            if one.id not in self._copies:
                self._copies[one.id] = self._copy(one)
        port = layer.outputs[0]
        return Tensor(Source(self._copies[layer.id], 0), port.element_type, port.dims)

    def _copy(self, layer: Layer) -> int:
        if layer.type == "Parameter":
            return self._first_part(layer)
        builder = self._builder
        identity, builder.next_id = builder.next_id, builder.next_id + 1
        builder.layers.append(layer._replace(id=identity))
        sources = [one and self._now(one) for one in self._graph.sources[layer.id]]
        builder.sources[identity] = tuple(sources)
        return identity

    def _now(self, source: Source) -> Source:
        if source.layer not in self._copies:  # files need not have a layer behind what it needs
            self._copies[source.layer] = self._copy(self._graph.by_id[source.layer])
        return Source(self._copies[source.layer], source.output)

    def _first_part(self, parameter: Layer) -> int:
        """Return the layer of the part that the first call gets of an input."""
        index = self._graph.parameters.index(parameter)
        whole, parts, builder = self._inputs[index], self._parts.get(index), self._builder
        if parts is None:
            return whole.source.layer
        dims = list(whole.dims)
        dims[parts.axis] = parts.lengths[0]
        limits = [builder.literal(f"{n}", (n,)) for n in (0, parts.lengths[0], 1)]
        inputs = [whole, *limits, builder.axis(parts.axis)]
        name = f"{parameter.name}/first"
        first = builder.add("Slice", 8, name, inputs, [(whole.type, tuple(dims))])[0]
        return (builder.squeezed(f"{name}_squeezed", first, parts.axis) if parts.own_axis else first).source.layer


def with_calls(model: ModelSource, calls: Calls) -> Model:
    """Return the model that calls this model repeatedly, as the body of a Loop.

    The model keeps the names of inputs and outputs. An input with parts holds all parts along the axis; a carried input
    holds the value of the first call. A carried output is the output of the last call. Every other output joins all
    calls along the first axis; if their shapes cannot be joined, it is the output of the last call, too. Raises
    UsageError for a plan that does not fit the model, and for a model that is already such a loop.
    """
    model = opened(model)
    if model.calls is not None:
        raise UsageError("the model is a loop over calls already")
    calls.check(len(model.graph.parameters), len(model.graph.results))
    found = replace(model, graph=_Wrapping(model, calls).graph(), calls=calls)
    return found if model.reopen is None else replace(found, reopen=_WithCalls(model.reopen, calls))


class _WithCalls(Record):
    """A loop over calls, to be had in another process (see `Model.reopen`)."""

    reopen: Callable[[], Model]
    calls: Calls

    def __call__(self) -> Model:
        model = self.reopen()
        known = _already.setdefault(model, {})
        if self.calls not in known:
            known[self.calls] = with_calls(model, self.calls)
        return known[self.calls]


_already: Final[WeakKeyDictionary[Model, dict[Calls, Model]]] = WeakKeyDictionary()


class _Wrapping:
    """Builds the graph around the body."""

    def __init__(self, model: Model, calls: Calls) -> None:
        self._inner, self._calls = model.graph, calls
        self._parts: Mapping[int, CallParts] = {one.input: one for one in calls.parts}
        self._carried = {one.input: one.output for one in calls.carried}
        self._builder = GraphBuilder(model.graph.line)
        self._outer: list[Tensor] = []
        self._fed: list[Tensor] = []
        self._inputs: list[InputMapping] = []
        self._outputs: list[OutputMapping] = []
        self._back_edges: list[BackEdge] = []
        self._declared: list[Declared] = []
        self._given: dict[int, int] = {}

    def graph(self) -> Graph:
        """Return it."""
        graph, builder = self._inner, self._builder
        self._check_carried()
        variables = carried_variables(graph)
        body = CallsBody(graph, self._calls, variables)
        self._outer = [self._parameter(index, layer) for index, layer in enumerate(graph.parameters)]
        self._fed = [builder.literal("count_of_calls", self._calls.count), builder.literal("goes_on", 1, BOOLEAN)]
        for index, layer in enumerate(graph.parameters):
            if index not in self._carried:
                self._feed(self._outer[index], body.entries[layer.id], self._slicing(index), layer.line)
        for index, result in enumerate(graph.results):
            if index not in self._carried.values():
                self._join(result)
        # What is carried stands behind the rest and in the order of use: so a state that goes in and out is where a
        # variable is in another form of the model, and the two forms can be compared.
        first = FirstCall(graph, builder, self._outer, self._calls)
        carried: list[tuple[int, DeclaredVariable | int]] = [
            *((self._place_of_use(graph.parameters[index]), index) for index in self._carried),
            *((self._place_of_use(variable.readers[0]), variable) for variable in variables),
        ]
        for _place, one in sorted(carried, key=lambda found: found[0]):
            if isinstance(one, DeclaredVariable):
                self._carry_variable(one, first)
            else:
                self._carry(one, body)
        if body.number is not None:
            self._inputs.append(InputMapping(None, body.number, None, CURRENT_ITERATION, False, graph.line))
        self._outputs.append(OutputMapping(None, body.condition, None, EXECUTION_CONDITION, graph.line))
        self._end(body, variables)
        return builder.graph()

    def _place_of_use(self, layer: Layer) -> int:
        """Return the place in the file of the first layer that reads a layer."""
        readers = {reader.id for reader, _port in self._inner.readers.get(layer.id, ())}
        places = (place for place, one in enumerate(self._inner.layers) if one.id in readers)
        return next(places, len(self._inner.layers))

    def _check_carried(self) -> None:
        for index, output in self._carried.items():
            parameter, result = self._inner.parameters[index], self._inner.results[output]
            entering, leaving = parameter_type(parameter), result.inputs[0].element_type
            if entering is not None and leaving is not None and entering != leaving:
                raise UsageError(
                    f"'{result.name}' cannot be carried to '{parameter.name}': it is {leaving}, that takes {entering}"
                )
            dims, shape = result.inputs[0].dims, parameter_shape(parameter)
            if -1 not in dims and not shape.accepts(dims):
                has = PartialShape.of_dims(dims)
                raise UsageError(
                    f"'{result.name}' cannot be carried to '{parameter.name}': it is {has}, that takes {shape}"
                )

    def _parameter(self, index: int, layer: Layer) -> Tensor:
        port, parts = layer.outputs[0], self._parts.get(index)
        dims, attributes = port.dims, dict(layer.attributes)
        if parts is not None and parameter_shape(layer).dimensions is not None:
            whole = list(dims)
            if parts.axis >= len(whole) + parts.own_axis:
                raise UsageError(f"'{layer.name}' has no axis {parts.axis}, along which the calls have their parts")
            if parts.own_axis:
                whole.insert(parts.axis, 0)
            whole[parts.axis] = parts.extent(self._calls.count)
            dims = tuple(whole)
            attributes["shape"] = ",".join("?" if dim < 0 else str(dim) for dim in dims)
        self._builder.line = layer.line
        tensor = self._builder.add("Parameter", 1, layer.name, (), [(parameter_type(layer), dims)], attributes)[0]
        self._builder.declare(tensor, port._replace(dims=dims))
        self._builder.line = self._inner.line
        return tensor

    def _slicing(self, index: int) -> Slicing | None:
        parts = self._parts.get(index)
        if parts is None or len(parts.lengths) > 1:
            return None
        return Slicing(parts.axis, 0, -1, parts.lengths[0], parts.lengths[0])

    def _feed(self, tensor: Tensor, parameter: int, slicing: Slicing | None, line: int) -> None:
        self._inputs.append(InputMapping(len(self._fed), parameter, slicing, None, False, line))
        self._fed.append(tensor)

    def _carry(self, index: int, body: CallsBody) -> None:
        parameter, result = self._inner.parameters[index], self._inner.results[self._carried[index]]
        entry = body.entries[parameter.id]
        self._feed(self._outer[index], entry, None, parameter.line)
        self._back_edges.append(BackEdge(result.id, entry, result.line))
        self._last_value(result)

    def _carry_variable(self, variable: DeclaredVariable, first: FirstCall) -> None:
        reader = variable.readers[0]
        value = first.copied(reader)
        for one in variable.readers:
            self._feed(value, one.id, None, one.line)
            self._back_edges.append(BackEdge(variable.assign.id, one.id, variable.assign.line))
        self._last_value(variable.assign)

    def _join(self, result: Layer) -> None:
        """Lead an output of all calls out of the loop."""
        port = result.inputs[0]
        dims = port.dims
        length = max([1, *dims[:1]])
        slicing = Slicing(0, 0, -1, length, length)
        self._given[result.id] = len(self._declared)
        self._outputs.append(OutputMapping(len(self._declared), result.id, slicing, None, result.line))
        extent = -1 if dims[:1] == (-1,) else length * self._calls.count
        self._declared.append((port.element_type, (extent, *dims[1:])))

    def _last_value(self, result: Layer) -> None:
        """Lead what the last call gives to a Result, or an Assign, out of the loop, once."""
        if result.id not in self._given:
            port = result.inputs[0]
            self._given[result.id] = len(self._declared)
            self._outputs.append(OutputMapping(len(self._declared), result.id, None, None, result.line))
            self._declared.append((port.element_type, port.dims))

    def _end(self, body: CallsBody, variables: list[DeclaredVariable]) -> None:
        """Add the loop itself, and what is behind it."""
        graph, builder = self._inner, self._builder
        taken = {layer.name for layer in graph.layers} | {layer.name for layer in builder.layers}
        name = next(one for one in (CALLS, *(f"{CALLS}_{k}" for k in range(1, len(taken) + 2))) if one not in taken)
        nested = Body(
            "body",
            body.graph(),
            tuple(self._inputs),
            tuple(self._outputs),
            tuple(self._back_edges),
            first_draft=False,
            line=graph.line,
        )
        outputs = builder.add("Loop", 5, name, self._fed, self._declared, bodies=(nested,), opened_from=CALLS)
        for result in graph.results:
            index = self._given[result.id]
            source = graph.sources[result.id][0]
            assert source is not None, "the reader has seen to it"
            names = graph.by_id[source.layer].outputs[source.output].names
            builder.declare(outputs[index], result.inputs[0]._replace(dims=self._declared[index][1], names=names))
            builder.line = result.line
            builder.result(result.name, outputs[index])
        for assign in (variable.assign for variable in variables):
            tensor = outputs[self._given[assign.id]]
            builder.line = assign.line
            definition = assign.definition or 6
            declared = [(port.element_type, port.dims) for port in assign.outputs]
            builder.add("Assign", definition, assign.name, [tensor], declared, assign.attributes)
