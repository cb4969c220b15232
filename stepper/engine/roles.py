"""Roles of the inputs of a loop's port map (sliced, merged, invariant, the iteration number), and what controls a loop.

Its trip count, initial condition and the body's condition decide when it begins and ends. All is read off the file
alone, so that it can be shown for a model that cannot run.

Which of several claims to one Parameter counts follows semantics 3.11 and 4.3; the first draft's marks semantics 5.16.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from stepper.errors import ModelError
from stepper.ir.constants import constant_type, constant_value
from stepper.ir.model import (
    BackEdge,
    Body,
    Graph,
    InputMapping,
    Layer,
    LayerSite,
    Model,
    OutputMapping,
    layer_site,
    parameter_shape,
    parameter_type,
)
from stepper.ir.xml import CURRENT_ITERATION, EXECUTION_CONDITION


class RoleError(ValueError):
    """A port map entry that cannot play its role; `line` is its line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Role(StrEnum):
    """Role of an input in a loop's port map; NOT_USED where another entry for the same Parameter counts.

    BRANCH is an input of an If.
    """

    SLICED = "sliced"
    MERGED = "merged"
    INVARIANT = "invariant"
    CURRENT_ITERATION = "current iteration"
    NOT_CONNECTED = "not connected"
    NOT_USED = "not used"
    BRANCH = "input"


class OutputRole(StrEnum):
    """Role of an output in the port map of a loop or an If; the condition may go out of the loop as well."""

    LAST_VALUE = "last value"
    CONCATENATED = "concatenated"
    CONDITION = "execution condition"
    CONDITION_LAST_VALUE = "execution condition, last value"
    CONDITION_CONCATENATED = "execution condition, concatenated"
    NOT_CONNECTED = "not connected"
    BRANCH = "output"

    @property
    def is_condition(self) -> bool:
        """True if it says whether there is another iteration."""
        return self in (self.CONDITION, self.CONDITION_LAST_VALUE, self.CONDITION_CONCATENATED)

    @property
    def is_concatenated(self) -> bool:
        """True if the values of all iterations are joined."""
        return self in (self.CONCATENATED, self.CONDITION_CONCATENATED)


class Roles(Struct, frozen=True):
    """The inputs of a loop's port map by role; `merged_from` is Parameter id -> Result id of the back edge that counts.

    `current_iteration` are ids of Parameters; `unfed` are Parameters that nothing feeds.
    """

    sliced: tuple[InputMapping, ...]
    merged: tuple[InputMapping, ...]
    invariant: tuple[InputMapping, ...]
    merged_from: dict[int, int]
    current_iteration: tuple[int, ...]
    unfed: tuple[Layer, ...]

    @property
    def fed(self) -> tuple[InputMapping, ...]:
        """Every entry that brings an outer value in."""
        return (*self.sliced, *self.merged, *self.invariant)

    def role_of(self, entry: InputMapping) -> Role:
        """Return the role of one entry of the port map."""
        if entry.parameter in self.current_iteration:
            return Role.CURRENT_ITERATION
        groups = ((Role.SLICED, self.sliced), (Role.MERGED, self.merged), (Role.INVARIANT, self.invariant))
        for role, group in groups:
            if entry in group:
                return role
        return Role.NOT_CONNECTED if entry.input is None else Role.NOT_USED


class NoEffect(StrEnum):
    """Reason for which a back edge has no effect."""

    EARLIER = "another back edge to the same Parameter comes first"
    SLICED = "the Parameter is sliced, so each iteration gets its slice"
    NUMBER = "the Parameter is the iteration number"
    NOT_FED = "no input is led to the Parameter"


def without_effect(body: Body, roles: Roles, edge: BackEdge) -> NoEffect | None:
    """Return why a back edge of a loop's body has no effect; None where it has one."""
    first = next(other for other in body.back_edges if other.to_layer == edge.to_layer)
    if first is not edge:
        return NoEffect.EARLIER
    if any(entry.parameter == edge.to_layer for entry in roles.sliced):
        return NoEffect.SLICED
    if edge.to_layer in roles.current_iteration:
        return NoEffect.NUMBER
    return None if edge.to_layer in roles.merged_from else NoEffect.NOT_FED


def output_role(entry: OutputMapping) -> OutputRole:
    """Return the role of an output of a port map."""
    is_joined = entry.slicing is not None
    if entry.purpose == EXECUTION_CONDITION:
        if entry.output is None:
            return OutputRole.CONDITION
        return OutputRole.CONDITION_CONCATENATED if is_joined else OutputRole.CONDITION_LAST_VALUE
    if entry.output is None:
        return OutputRole.NOT_CONNECTED
    return OutputRole.CONCATENATED if is_joined else OutputRole.LAST_VALUE


def roles_of(layer: Layer) -> Roles:
    """Return the roles of all inputs of a TensorIterator or Loop. RoleError for an unfitting iteration number."""
    body = layer.bodies[0]
    iterations = _iteration_parameters(body) if layer.type == "Loop" else ()
    entries: dict[int, InputMapping] = {}
    for entry in body.inputs:
        if entry.input is not None and entry.parameter not in iterations:
            entries.setdefault(entry.parameter, entry)
    merged_from: dict[int, int] = {}
    for edge in body.back_edges:
        target = entries.get(edge.to_layer)
        if target is not None and target.slicing is None:
            merged_from.setdefault(edge.to_layer, edge.from_layer)
    rest = [entry for entry in entries.values() if entry.slicing is None]
    return Roles(
        sliced=tuple(entry for entry in entries.values() if entry.slicing is not None),
        merged=tuple(entry for entry in rest if entry.parameter in merged_from),
        invariant=tuple(entry for entry in rest if entry.parameter not in merged_from),
        merged_from=merged_from,
        current_iteration=iterations,
        unfed=tuple(p for p in body.graph.parameters if p.id not in entries and p.id not in iterations),
    )


def _iteration_parameters(body: Body) -> tuple[int, ...]:
    """Return the Parameters that get the iteration number: those marked, or (Loop-5, item 5) the one not mapped."""
    marked = [entry for entry in body.inputs if entry.purpose == CURRENT_ITERATION]
    for entry in marked:
        parameter = body.graph.by_id[entry.parameter]
        if not _fits_iteration_number(parameter):
            message = f"the current iteration goes into {parameter}, which must be i64 or i32, a scalar or of shape [1]"
            raise RoleError(message, entry.line)
    if marked:
        return tuple(entry.parameter for entry in marked)
    mapped = {entry.parameter for entry in body.inputs if entry.input is not None}
    free = [parameter for parameter in body.graph.parameters if parameter.id not in mapped]
    return (free[0].id,) if len(free) == 1 and _fits_iteration_number(free[0]) else ()


def _fits_iteration_number(parameter: Layer) -> bool:
    element_type = parameter_type(parameter)
    is_integer = element_type is None or element_type.name in ("i32", "i64")
    shape = parameter_shape(parameter)
    return is_integer and (shape.accepts(()) or shape.accepts((1,)))


def control_inputs(layer: Layer, body: Body, outer: Graph) -> tuple[int | None, int | None]:
    """Return the indices of a Loop's inputs that carry trip count and execution condition; None for one that is absent.

    Both are mandatory today; in the first draft ports 0 and 1 may be missing, and the condition is the marked entry.
    """
    if not body.first_draft:
        return 0, 1
    connected = [source is not None for source in outer.sources[layer.id]]
    by_port = {port.id: index for index, port in enumerate(layer.inputs) if connected[index]}
    mapped = {entry.input: entry for entry in body.inputs if entry.input is not None}
    condition = next((index for index, entry in mapped.items() if entry.condition), None)
    if condition is None and 1 in by_port and by_port[1] not in mapped and _is(layer, by_port[1], outer, "boolean"):
        condition = by_port[1]
    trip_count = by_port.get(0)
    if trip_count == condition:
        return None, condition
    if trip_count is not None and trip_count in mapped and not _is(layer, trip_count, outer, "i64", "i32"):
        return None, condition
    return trip_count, condition


def _is(layer: Layer, index: int, outer: Graph, *names: str) -> bool:
    """Return True if the input is a single element of one of these types, as far as the file says."""
    source = outer.sources[layer.id][index]
    assert source is not None, "only connected inputs are asked about"
    producer = outer.by_id[source.layer]
    port = producer.outputs[source.output]
    element_type = constant_type(producer) if producer.type == "Constant" else port.element_type
    if producer.type == "Parameter":
        element_type = parameter_type(producer)
    return element_type is not None and element_type.name in names and all(dim == 1 for dim in port.dims)


class ControlOrigin(Struct, frozen=True):
    """The layer that computes a value, and the value if it is a Constant whose content is known.

    `output` is the index of the layer's output, None if it has only one. `value` is that of a single element; `shape`
    stands for it if there are more.
    """

    layer: LayerSite
    output: int | None
    value: bool | int | float | None = None
    shape: tuple[int, ...] | None = None


class Control(Struct, frozen=True):
    """Control of a loop's begin and end, or of the side of an If.

    `trip_count` None: no limit. `condition` is the initial one of a Loop (None: the first iteration runs) or that of an
    If; `goes_on` is that of a Loop's body, after each iteration. `slices_of` are the inputs whose slices a
    TensorIterator counts.
    """

    trip_count: ControlOrigin | None = None
    condition: ControlOrigin | None = None
    goes_on: ControlOrigin | None = None
    slices_of: tuple[int, ...] = ()


def control(model: Model, graph: Graph, layer: Layer) -> Control:
    """Return what controls a layer of `graph` that has bodies, as far as the file says."""
    if layer.type == "If":
        return Control(condition=_origin(model, graph, layer, 0))
    body = layer.bodies[0]
    if layer.type == "TensorIterator":
        sliced = dict.fromkeys(entry.input for entry in body.inputs if entry.slicing is not None)
        return Control(slices_of=tuple(index for index in sliced if index is not None))
    trip_count, condition = control_inputs(layer, body, graph)
    return Control(
        trip_count=_origin(model, graph, layer, trip_count),
        condition=_origin(model, graph, layer, condition),
        goes_on=_goes_on(model, body),
    )


def _goes_on(model: Model, body: Body) -> ControlOrigin | None:
    result = next((entry.result for entry in body.outputs if entry.purpose == EXECUTION_CONDITION), None)
    layer = None if result is None else body.graph.by_id.get(result)
    return None if layer is None else _origin(model, body.graph, layer, 0)


def _origin(model: Model, graph: Graph, layer: Layer, index: int | None) -> ControlOrigin | None:
    source = None if index is None or index >= len(layer.inputs) else graph.sources[layer.id][index]
    if source is None:
        return None
    producer = graph.by_id[source.layer]
    value, shape = _content(model, producer)
    output = source.output if len(producer.outputs) > 1 else None
    return ControlOrigin(layer_site(producer, str(model.path)), output, value, shape)


def _content(model: Model, layer: Layer) -> tuple[bool | int | float | None, tuple[int, ...] | None]:
    if layer.type != "Constant":
        return None, None
    try:
        value: Any = constant_value(model, layer)
    except ModelError:
        return None, None
    return (value.item(), None) if value.size == 1 else (None, value.shape)
