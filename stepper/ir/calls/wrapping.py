"""A model as the body of a Loop over calls: `with_calls`.

    x [500, 80] ────────────── sliced ──┐
    h ──────────────────────── merged ──┤                  ┌─ concatenated ── y [500, 10]
    ReadValue 'state' ──────── merged ──┼─ Loop 'calls' ───┼─ last value ──── hn
    500, true ─────────────── control ──┘                  └─ last value ──── Assign 'state'

The body is the graph of the file: layers keep their ids, names and lines. A variable is read before the loop and
assigned after it; in the body its ReadValues are Parameters, and its Assign is the Result that is carried back to them.
What it begins with, where nobody says, is computed of the first call's inputs, as the first call would. Variables of
nested graphs stay: the machine keeps them from call to call. Source: ReadValue and Assign of the specification, by
which a value that is assigned is read in the next inference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from stepper.element_types import BOOLEAN
from stepper.errors import UsageError
from stepper.ir.calls.body import CallsBody, DeclaredVariable, carried_variables
from stepper.ir.calls.first_call import FirstCall
from stepper.ir.calls.plan import CALLS, CallParts, Calls
from stepper.ir.graph_builder import Declared, GraphBuilder, Tensor
from stepper.ir.model import (
    BackEdge,
    Body,
    Graph,
    InputMapping,
    Layer,
    Model,
    OutputMapping,
    Slicing,
    parameter_shape,
    parameter_type,
)
from stepper.ir.opening import ModelSource, opened
from stepper.ir.shapes import PartialShape
from stepper.ir.xml import CURRENT_ITERATION, EXECUTION_CONDITION


def with_calls(model: ModelSource, calls: Calls) -> Model:
    """Return the model that calls this one so often, as the body of a Loop.

    Its inputs and outputs have the names of the model's. An input with parts has all of them along the axis, one that
    is carried has the value of the first call. An output that is carried is that of the last call; every other is those
    of all, joined along the first axis (where their shapes allow it, else that of the last call, too). UsageError for a
    plan that does not fit the model, and for a model that is such a loop already.
    """
    model = opened(model)
    if model.calls is not None:
        raise UsageError("the model is a loop over calls already")
    calls.check(len(model.graph.parameters), len(model.graph.results))
    found = replace(model, graph=_Wrapping(model, calls).graph(), calls=calls)
    return found if model.reopen is None else replace(found, reopen=_WithCalls(model.reopen, calls))


class _WithCalls(Struct, frozen=True):
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
