"""Ways to make a draft smaller: each changes a copy in place, and raises LookupError where it does not apply.

    changed = draft.copy()
    cut(changed, address, value_of)             # an operation is now a Constant of a value that it had

Nothing here asks whether the fault is still there; `reducing` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel, LayerAddress
from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.ir.model import InputMapping, Port, Scope, Slicing, Source
from stepper.operation_types import CONTROL_INPUTS

ValueOf = Callable[[LayerAddress, int], Array | None]
"""Value of an output in a run; None where it is not known."""

_LARGEST = 2**24


def constant(graph: DraftGraph, name: str, value: Array, names: tuple[str, ...] = ()) -> Source:
    """Add a Constant; return its output."""
    identity = graph.new_id()
    port = Port(0, element_types.of(value), value.shape, names, 0)
    graph.layers[identity] = DraftLayer(identity, name, "Constant", "opset1", {}, [], [port], [], value)
    return Source(identity, 0)


def require(applies: bool) -> None:
    """Raise LookupError for a change that does not apply."""
    if not applies:
        raise LookupError


def cut(draft: DraftModel, address: LayerAddress, value_of: ValueOf) -> None:
    """Let all outputs of an operation, or a Parameter of a body, be Constants of these values."""
    layer, graph = draft.found(address)
    require(layer.type not in ("Constant", "Result", "Assign"))
    read = [index for index in range(len(layer.outputs)) if graph.is_read(Source(layer.id, index))]
    require(bool(read))
    for index in read:
        value = _plain(layer.value if layer.value is not None else value_of(address, index))
        require(value.nbytes <= _LARGEST)
        name = layer.name if len(layer.outputs) == 1 else f"{layer.name}.{index}"
        made = constant(graph, name, np.ascontiguousarray(value), layer.outputs[index].names)
        graph.redirect(Source(layer.id, index), made)
    if layer.type == "Parameter":
        unmap(draft, address)


def _plain(value: Array | None) -> Array:
    """Return a value that a Constant may have: no NaN and no infinity, so that no fault is put in by hand."""
    if value is None or not is_finite(value):
        raise LookupError
    return value


def is_finite(value: Array) -> bool:
    """Return True for a tensor without NaN and infinities."""
    return not is_floating(value.dtype) or bool(np.isfinite(np.asarray(value, np.float64)).all())


def unmap(draft: DraftModel, address: LayerAddress) -> None:
    """Drop a Parameter of a body, or of the model, that nobody reads, with its entry and its back edge."""
    layer, graph = draft.found(address)
    require(layer.type == "Parameter" and not graph.is_read(Source(layer.id, 0)))
    del graph.layers[layer.id]
    if address.scope:
        owner, body = draft.body_at(address.scope)
        body.inputs[:] = [one for one in body.inputs if one.parameter != layer.id]
        body.back_edges[:] = [one for one in body.back_edges if one.to_layer != layer.id]
        drop_unmapped_results(body)
        drop_unmapped_inputs(owner)


def drop_unmapped_results(body: DraftBody) -> None:
    """Drop the Results of a body that no entry and no back edge has."""
    kept = {one.result for one in body.outputs} | {one.from_layer for one in body.back_edges}
    for result in body.graph.of_type("Result"):
        if result.id not in kept:
            del body.graph.layers[result.id]


def drop_unmapped_inputs(owner: DraftLayer) -> None:
    """Drop the inputs of a loop or an If that no entry has; those of its own (trip count, condition) stay."""
    own = CONTROL_INPUTS.get(owner.type, 0)
    used = {one.input for body in owner.bodies for one in body.inputs}
    kept = [index for index in range(len(owner.sources)) if index < own or index in used]
    if len(kept) == len(owner.sources):
        return
    places = {old: new for new, old in enumerate(kept)}
    owner.sources[:] = [owner.sources[index] for index in kept]
    for body in owner.bodies:
        body.inputs[:] = [one if one.input is None else one._replace(input=places[one.input]) for one in body.inputs]


def drop_output(draft: DraftModel, address: LayerAddress, output: int) -> None:
    """Drop an output of a loop or an If that nobody reads, with its entries."""
    owner, graph = draft.found(address)
    require(bool(owner.bodies) and len(owner.outputs) > 1 and not graph.is_read(Source(owner.id, output)))
    del owner.outputs[output]
    for later in range(output + 1, len(owner.outputs) + 1):
        graph.redirect(Source(owner.id, later), Source(owner.id, later - 1))
    for body in owner.bodies:
        kept = [one for one in body.outputs if one.output != output or one.purpose is not None]
        body.outputs[:] = [
            one
            if one.output is None or one.output < output
            else one._replace(output=None if one.output == output else one.output - 1)
            for one in kept
        ]
        drop_unmapped_results(body)


def hoist(draft: DraftModel, address: LayerAddress, input: int) -> None:
    """Let a Result be an input of the operation that it has, instead of what that makes of it."""
    result, source = _result(draft, address)
    producer = draft.graph_at(address.scope).layers[source.layer]
    require(producer.is_operation and producer.sources[input] is not None)
    result.sources[0] = producer.sources[input]


def _result(draft: DraftModel, address: LayerAddress) -> tuple[DraftLayer, Source]:
    """Return a Result and what it reads."""
    result = draft.layer_at(address)
    source = result.sources[0] if result.type == "Result" else None
    if source is None:
        raise LookupError
    return result, source


def read_other_output(draft: DraftModel, address: LayerAddress, output: int) -> None:
    """Let a Result have another output of the same loop or If, and drop the one that it had."""
    result, source = _result(draft, address)
    producer = draft.graph_at(address.scope).layers[source.layer]
    require(output != source.output and bool(producer.bodies) and output < len(producer.outputs))
    result.sources[0] = Source(source.layer, output)
    drop_output(draft, LayerAddress(address.scope, source.layer), source.output)


def drop_results(draft: DraftModel, keys: Sequence[int]) -> None:
    """Drop outputs of the model; one stays."""
    require(len(draft.graph.of_type("Result")) > len(keys))
    for key in keys:
        del draft.graph.layers[key]


def drop_assigns(draft: DraftModel, address: LayerAddress) -> None:
    """Drop a writing of a variable."""
    layer, graph = draft.found(address)
    require(layer.type == "Assign")
    for output, _port in enumerate(layer.outputs):
        if layer.sources[0] is not None:
            graph.redirect(Source(layer.id, output), layer.sources[0])
    del graph.layers[layer.id]


def drop_back_edge(draft: DraftModel, scope: Scope, index: int) -> None:
    """Drop a back edge: its Parameter then has in each iteration what it begins with."""
    _owner, body = draft.body_at(scope)
    edge = body.back_edges.pop(index)
    require(any(one.parameter == edge.to_layer for one in body.inputs))
    drop_unmapped_results(body)


def drop_slicing(draft: DraftModel, scope: Scope, index: int, value_of: ValueOf) -> None:
    """Let a sliced input be what its first slice is, in each iteration."""
    owner, body = draft.body_at(scope)
    entry = body.inputs[index]
    require(entry.slicing is not None and entry.input is not None)
    value = _plain(value_of(LayerAddress(scope, entry.parameter), 0))
    owner.sources.append(constant(draft.graph_at(scope[:-1]), body.graph.layers[entry.parameter].name, value))
    body.inputs[index] = entry._replace(input=len(owner.sources) - 1, slicing=None)
    drop_unmapped_inputs(owner)


def output_of_last(draft: DraftModel, scope: Scope, index: int) -> None:
    """Let a joined output be the last piece alone."""
    outputs = draft.body_at(scope)[1].outputs
    require(outputs[index].slicing is not None)
    outputs[index] = outputs[index]._replace(slicing=None)


def bypass(draft: DraftModel, address: LayerAddress, input: int, value_of: ValueOf) -> None:
    """Let those that read an operation read one of its inputs, which has the same type and shape."""
    layer, graph = draft.found(address)
    source = layer.sources[input]
    if source is None or len(layer.outputs) != 1 or layer.type == "Assign":
        raise LookupError
    ours, theirs = value_of(address, 0), graph.layers[source.layer].value
    if theirs is None:
        theirs = value_of(LayerAddress(address.scope, source.layer), source.output)
    if ours is None or theirs is None or (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        raise LookupError
    graph.redirect(Source(layer.id, 0), source)


def inline(draft: DraftModel, address: LayerAddress, role: str, value_of: ValueOf, *, recorded: bool = False) -> None:
    """Put one iteration of a loop, or a branch of an If, in its place.

    `recorded`: states are Constants of the values that they had, instead of what they begin with.
    """
    graph, inner = draft.graph_at(address.scope), (*address.scope, (address.layer, role))
    owner, body = draft.body_at(inner)
    sources: dict[int, Source] = {}
    for parameter in body.graph.of_type("Parameter"):
        is_state = any(edge.to_layer == parameter.id for edge in body.back_edges)
        found = None if recorded and is_state else _outer_source(owner, body, parameter)
        if found is None:
            found = constant(graph, parameter.name, _plain(value_of(LayerAddress(inner, parameter.id), 0)))
        sources[parameter.id] = found
    _move_out(graph, owner, body, sources)
    require(not any(graph.is_read(Source(owner.id, index)) for index in range(len(owner.outputs))))
    del graph.layers[owner.id]


def _move_out(graph: DraftGraph, owner: DraftLayer, body: DraftBody, sources: dict[int, Source]) -> None:
    """Put the layers of a body into the graph around it; `sources` are what its Parameters become."""
    first = graph.new_id()

    def moved(source: Source | None) -> Source | None:
        if source is None:
            return None
        return sources.get(source.layer) or Source(source.layer + first, source.output)

    for layer in body.graph.layers.values():
        if layer.type not in ("Parameter", "Result"):
            layer.id += first
            layer.sources[:] = map(moved, layer.sources)
            graph.layers[layer.id] = layer
    for output in body.outputs:
        given = moved(body.graph.layers[output.result].sources[0])
        if output.output is not None and given is not None:
            graph.redirect(Source(owner.id, output.output), given)


def _outer_source(owner: DraftLayer, body: DraftBody, parameter: DraftLayer) -> Source | None:
    """Return what a Parameter has whole from outside; None where it has slices, or nothing."""
    entry = next((one for one in body.inputs if one.parameter == parameter.id), None)
    if entry is None or entry.input is None or entry.slicing is not None:
        return None
    return owner.sources[entry.input]


def begin_with(draft: DraftModel, states: Mapping[str, Array]) -> None:
    """Let variables begin with these values: each becomes a Constant that the ReadValues of the variable read."""
    for _scope, graph in draft.graphs():
        for layer in graph.of_type("ReadValue"):
            value = states.get(layer.attributes.get("variable_id", ""))
            if value is not None:
                layer.sources[:] = [constant(graph, f"{layer.name}/begins_with", value)]


def slicing_size(slicing: Slicing | None) -> int:
    """Return how far from the usual slices are: 0 for none, 1 for one after the other from the first."""
    if slicing is None:
        return 0
    is_whole = (slicing.start or 0) in (0, -1) and (slicing.end is None or slicing.end in (0, -1))
    return 1 + int(slicing.stride != 1) + int((slicing.part_size or 1) != 1) + 2 * int(not is_whole)


def plain_slicing(draft: DraftModel, scope: Scope, index: int, *, is_input: bool) -> None:
    """Let an input be cut, or an output joined, from the first slice to the last, one after the other."""
    body = draft.body_at(scope)[1]
    entries: list[Any] = body.inputs if is_input else body.outputs
    slicing = entries[index].slicing
    require(slicing_size(slicing) > 1)
    entries[index] = entries[index]._replace(slicing=replace(slicing, start=0, end=-1, stride=1, part_size=1))


def set_value(draft: DraftModel, address: LayerAddress, value: Array) -> None:
    """Give a Constant or an input of the model another value of the same shape."""
    layer = draft.layer_at(address)
    require(layer.value is not None and layer.value.shape == value.shape)
    layer.value = value


def rounder(value: Array) -> Iterator[Array]:
    """Yield simpler values of the same type and shape, the simplest first."""
    dtype = value.dtype
    if dtype == STRING_DTYPE or dtype.names or not value.size:
        return
    yield np.zeros_like(value)
    yield np.ones_like(value)
    if dtype == np.bool_:
        return
    if is_floating(dtype):
        wide = np.asarray(value, np.float64)
        if np.isfinite(wide).all():
            for step in (1.0, 0.5, 0.125):
                yield (np.round(wide / step) * step).astype(dtype)
            yield np.round(wide, 1).astype(dtype)
            yield np.sign(wide).astype(dtype)
            yield np.broadcast_to(wide.reshape(-1)[:1].reshape((1,) * value.ndim), value.shape).astype(dtype)


def shrink_everywhere(draft: DraftModel, old: int, new: int, *, at_end: bool = False) -> None:
    """Make every axis of one length shorter, with the small integers that say it; `at_end`: what is last stays."""
    changed, kept = False, range(old - new, old) if at_end else range(new)
    for _scope, graph in draft.graphs():
        for layer in graph.layers.values():
            if layer.value is not None and layer.value.dtype != STRING_DTYPE:
                value = layer.value
                for axis, size in enumerate(value.shape):
                    if size == old:
                        value = np.take(value, kept, axis)
                        changed = True
                if value.dtype in (np.int32, np.int64) and value.ndim < 2 and value.size < 9 and (value == old).any():
                    value = np.where(value == old, value.dtype.type(new), value)
                    changed = True
                put(layer, np.ascontiguousarray(value).reshape(value.shape))
            _shrink_declared(layer, old, new)
            for body in layer.bodies:
                body.inputs[:] = [_with_part(one, old, new) for one in body.inputs]
    require(changed)


def _with_part(entry: InputMapping, old: int, new: int) -> InputMapping:
    """Return an entry whose slices are as long as the axis has become, where they were as long as it was."""
    slicing = entry.slicing
    if slicing is None or abs(slicing.stride) != old:
        return entry
    part = new if slicing.part_size == old else slicing.part_size
    return entry._replace(slicing=replace(slicing, stride=new if slicing.stride > 0 else -new, part_size=part))


def _shrink_declared(layer: DraftLayer, old: int, new: int) -> None:
    layer.outputs[:] = [
        port._replace(dims=tuple(new if dim == old else dim for dim in port.dims)) for port in layer.outputs
    ]
    if layer.type == "Parameter" and layer.value is None and "shape" in layer.attributes:
        dims = [dim.strip() for dim in layer.attributes["shape"].split(",")]
        layer.attributes["shape"] = ",".join(str(new) if dim == str(old) else dim for dim in dims)
    for name in ("output_shape", "num_splits", "hidden_size", "target_shape", "variable_shape"):
        if name in layer.attributes:
            parts = [part.strip() for part in layer.attributes[name].split(",")]
            layer.attributes[name] = ",".join(str(new) if part == str(old) else part for part in parts)


def shrink_axis(draft: DraftModel, address: LayerAddress, axis: int, new: int, *, at_end: bool = False) -> None:
    """Make one axis of a Constant or of an input of the model shorter; `at_end`: what is last stays."""
    layer = draft.layer_at(address)
    if layer.value is None or layer.value.shape[axis] <= new:
        raise LookupError
    size = layer.value.shape[axis]
    kept = range(size - new, size) if at_end else range(new)
    put(layer, np.ascontiguousarray(np.take(layer.value, kept, axis)))


def put(layer: DraftLayer, value: Array) -> None:
    """Give a Constant or a Parameter of the model a value, and the shape of it where the file declares one."""
    if layer.type == "Parameter" and layer.value is not None:
        dims = [dim.strip() for dim in layer.attributes.get("shape", "").split(",")]
        if len(dims) == value.ndim and value.ndim:
            pairs = zip(dims, layer.value.shape, value.shape, strict=True)
            layer.attributes["shape"] = ",".join(
                str(after) if dim.isdigit() and before != after else dim for dim, before, after in pairs
            )
    layer.value = value
    if layer.outputs:
        port = layer.outputs[0]
        if len(port.dims) == value.ndim:
            dims_now = tuple(after if dim >= 0 else dim for dim, after in zip(port.dims, value.shape, strict=True))
            layer.outputs[0] = port._replace(dims=dims_now)


def merge_constants(draft: DraftModel) -> None:
    """Let equal Constants of a graph be one."""
    changed = False
    for _scope, graph in draft.graphs():
        seen: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        for layer in graph.of_type("Constant"):
            if layer.value is None or layer.value.dtype == STRING_DTYPE:
                continue
            key = (str(layer.value.dtype), layer.value.shape, layer.value.tobytes())
            first = seen.setdefault(key, layer.id)
            if first != layer.id:
                graph.redirect(Source(layer.id, 0), Source(first, 0))
                del graph.layers[layer.id]
                changed = True
    require(changed)
