"""Ways to make a draft smaller: each changes a copy in place, and returns False where it does not apply.

    changed = draft.copy()
    if cut(changed, address, value_of): ...     # an operation is now a Constant of a value that it had

Nothing here asks whether the fault is still there; `reducing` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel, LayerAddress, Scope
from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.ir.model import InputMapping, Port, Slicing, Source

ValueOf = Callable[[LayerAddress, int], Array | None]
"""Value of an output in a run; None where it is not known."""

_LARGEST: Final = 2**24


def constant(graph: DraftGraph, name: str, value: Array, names: tuple[str, ...] = ()) -> Source:
    """Add a Constant; return its output."""
    identity = graph.new_id()
    port = Port(0, element_types.of(value), value.shape, names, 0)
    graph.layers[identity] = DraftLayer(identity, name, "Constant", "opset1", {}, [], [port], [], value)
    return Source(identity, 0)


def cut(draft: DraftModel, address: LayerAddress, value_of: ValueOf) -> bool:
    """Let all outputs of an operation, or a Parameter of a body, be Constants of these values."""
    layer, graph = draft.layer_at(address), draft.graph_at(address.scope)
    if layer is None or graph is None or layer.type in ("Constant", "Result", "Assign"):
        return False
    replaced = False
    for index, port in enumerate(layer.outputs):
        readers = list(graph.readers(Source(layer.id, index)))
        value = layer.value if layer.value is not None else value_of(address, index)
        if not readers:
            continue
        if value is None or value.nbytes > _LARGEST or not _is_plain(value):
            return False
        name = layer.name if len(layer.outputs) == 1 else f"{layer.name}.{index}"
        graph.redirect(Source(layer.id, index), constant(graph, name, np.ascontiguousarray(value), port.names))
        replaced = True
    if replaced and layer.type == "Parameter":
        unmap(draft, address)
    return replaced


def _is_plain(value: Array) -> bool:
    """True if a Constant may have this value: no NaN and no infinity, so that no fault is put in by hand."""
    return not is_floating(value.dtype) or bool(np.isfinite(np.asarray(value, np.float64)).all())


def unmap(draft: DraftModel, address: LayerAddress) -> bool:
    """Drop a Parameter of a body, or of the model, that nobody reads, with its entry and its back edge."""
    graph, around = draft.graph_at(address.scope), draft.body_at(address.scope)
    if graph is None or address.layer not in graph.layers:
        return False
    layer = graph.layers[address.layer]
    if layer.type != "Parameter" or any(True for _ in graph.readers(Source(layer.id, 0))):
        return False
    if around is None:
        del graph.layers[layer.id]
        return True
    owner, body = around
    body.inputs[:] = [one for one in body.inputs if one.parameter != layer.id]
    body.back_edges[:] = [one for one in body.back_edges if one.to_layer != layer.id]
    del graph.layers[layer.id]
    drop_unmapped_results(body)
    drop_unmapped_inputs(owner)
    return True


def drop_unmapped_results(body: DraftBody) -> None:
    """Drop the Results of a body that no entry and no back edge has."""
    kept = {one.result for one in body.outputs} | {one.from_layer for one in body.back_edges}
    for result in body.graph.of_type("Result"):
        if result.id not in kept:
            del body.graph.layers[result.id]


def drop_unmapped_inputs(owner: DraftLayer) -> None:
    """Drop the inputs of a loop or an If that no entry has; those of its own (trip count, condition) stay."""
    own = {"Loop": 2, "If": 1}.get(owner.type, 0)
    used = {one.input for body in owner.bodies for one in body.inputs}
    kept = [index for index in range(len(owner.sources)) if index < own or index in used]
    if len(kept) == len(owner.sources):
        return
    places = {old: new for new, old in enumerate(kept)}
    owner.sources[:] = [owner.sources[index] for index in kept]
    for body in owner.bodies:
        body.inputs[:] = [one if one.input is None else one._replace(input=places[one.input]) for one in body.inputs]


def drop_output(draft: DraftModel, address: LayerAddress, output: int) -> bool:
    """Drop an output of a loop or an If that nobody reads, with its entries."""
    owner, graph = draft.layer_at(address), draft.graph_at(address.scope)
    if owner is None or graph is None or not owner.bodies or len(owner.outputs) < 2:
        return False
    if output >= len(owner.outputs) or any(True for _ in graph.readers(Source(owner.id, output))):
        return False
    del owner.outputs[output]
    for later in range(output + 1, len(owner.outputs) + 1):
        graph.redirect(Source(owner.id, later), Source(owner.id, later - 1))
    for body in owner.bodies:
        body.outputs[:] = [
            one._replace(output=one.output - 1) if one.output is not None and one.output > output else one
            for one in body.outputs
            if one.output != output or one.purpose is not None
        ]
        body.outputs[:] = [
            one._replace(output=None) if one.output == output and one.purpose is not None else one
            for one in body.outputs
        ]
        drop_unmapped_results(body)
    return True


def hoist(draft: DraftModel, address: LayerAddress, input: int) -> bool:
    """Let a Result be an input of the operation that it has, instead of what that makes of it."""
    graph, result = draft.graph_at(address.scope), draft.layer_at(address)
    if graph is None or result is None or result.type != "Result" or result.sources[0] is None:
        return False
    producer = graph.layers[result.sources[0].layer]
    if not producer.is_operation or input >= len(producer.sources) or producer.sources[input] is None:
        return False
    result.sources[0] = producer.sources[input]
    return True


def read_other_output(draft: DraftModel, address: LayerAddress, output: int) -> bool:
    """Let a Result have another output of the same loop or If, and drop the one that it had."""
    graph, result = draft.graph_at(address.scope), draft.layer_at(address)
    source = None if result is None or result.type != "Result" else result.sources[0]
    if graph is None or result is None or source is None or output == source.output:
        return False
    producer = graph.layers[source.layer]
    if not producer.bodies or output >= len(producer.outputs):
        return False
    result.sources[0] = Source(source.layer, output)
    return drop_output(draft, LayerAddress(address.scope, source.layer), source.output)


def drop_result(draft: DraftModel, key: int) -> bool:
    """Drop an output of the model; one stays."""
    results = draft.graph.of_type("Result")
    if len(results) < 2 or key not in draft.graph.layers:
        return False
    del draft.graph.layers[key]
    return True


def drop_assigns(draft: DraftModel, address: LayerAddress) -> bool:
    """Drop a writing of a variable."""
    graph, layer = draft.graph_at(address.scope), draft.layer_at(address)
    if graph is None or layer is None or layer.type != "Assign":
        return False
    for output, _port in enumerate(layer.outputs):
        if layer.sources[0] is not None:
            graph.redirect(Source(layer.id, output), layer.sources[0])
    del graph.layers[layer.id]
    return True


def drop_back_edge(draft: DraftModel, scope: Scope, index: int) -> bool:
    """Drop a back edge: its Parameter then has in each iteration what it begins with."""
    around = draft.body_at(scope)
    if around is None or index >= len(around[1].back_edges):
        return False
    body = around[1]
    if all(one.parameter != body.back_edges[index].to_layer for one in body.inputs):
        return False
    del body.back_edges[index]
    drop_unmapped_results(body)
    return True


def drop_slicing(draft: DraftModel, scope: Scope, index: int, value_of: ValueOf) -> bool:
    """Let a sliced input be what its first slice is, in each iteration."""
    around = draft.body_at(scope)
    if around is None or index >= len(around[1].inputs) or around[1].inputs[index].slicing is None:
        return False
    entry, outer = around[1].inputs[index], draft.graph_at(scope[:-1])
    value = value_of(LayerAddress(scope, entry.parameter), 0)
    if outer is None or value is None or entry.input is None or not _is_plain(value):
        return False
    owner = around[0]
    owner.sources.append(constant(outer, around[1].graph.layers[entry.parameter].name, value))
    around[1].inputs[index] = entry._replace(input=len(owner.sources) - 1, slicing=None)
    drop_unmapped_inputs(owner)
    return True


def output_of_last(draft: DraftModel, scope: Scope, index: int) -> bool:
    """Let a joined output be the last piece alone."""
    around = draft.body_at(scope)
    if around is None or index >= len(around[1].outputs) or around[1].outputs[index].slicing is None:
        return False
    around[1].outputs[index] = around[1].outputs[index]._replace(slicing=None)
    return True


def bypass(draft: DraftModel, address: LayerAddress, input: int, value_of: ValueOf) -> bool:
    """Let those that read an operation read one of its inputs, which has the same type and shape."""
    layer, graph = draft.layer_at(address), draft.graph_at(address.scope)
    if layer is None or graph is None or len(layer.outputs) != 1 or input >= len(layer.sources):
        return False
    source = layer.sources[input]
    if source is None or layer.type == "Assign":
        return False
    ours = value_of(address, 0)
    theirs = graph.layers[source.layer].value
    if theirs is None:
        theirs = value_of(LayerAddress(address.scope, source.layer), source.output)
    if ours is None or theirs is None or (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    graph.redirect(Source(layer.id, 0), source)
    return True


def inline(draft: DraftModel, address: LayerAddress, role: str, value_of: ValueOf, *, recorded: bool = False) -> bool:
    """Put one iteration of a loop, or a branch of an If, in its place.

    `recorded`: states are Constants of the values that they had, instead of what they begin with.
    """
    owner, graph = draft.layer_at(address), draft.graph_at(address.scope)
    if owner is None or graph is None:
        return False
    body = next((one for one in owner.bodies if one.role == role), None)
    if body is None:
        return False
    inner = (*address.scope, (owner.id, role))
    sources: dict[int, Source] = {}
    for parameter in body.graph.of_type("Parameter"):
        is_state = any(edge.to_layer == parameter.id for edge in body.back_edges)
        found = None if recorded and is_state else _outer_source(owner, body, parameter)
        if found is None:
            value = value_of(LayerAddress(inner, parameter.id), 0)
            if value is None or not _is_plain(value):
                return False
            found = constant(graph, parameter.name, value)
        sources[parameter.id] = found
    _move_out(graph, owner, body, sources)
    if any(True for index in range(len(owner.outputs)) for _ in graph.readers(Source(owner.id, index))):
        return False
    del graph.layers[owner.id]
    return True


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


def plain_slicing(draft: DraftModel, scope: Scope, index: int, *, is_input: bool) -> bool:
    """Let an input be cut, or an output joined, from the first slice to the last, one after the other."""
    around = draft.body_at(scope)
    entries: list[Any] = [] if around is None else list(around[1].inputs if is_input else around[1].outputs)
    slicing = entries[index].slicing if index < len(entries) else None
    if around is None or slicing is None or slicing_size(slicing) == 1:
        return False
    plain = replace(slicing, start=0, end=-1, stride=1, part_size=1)
    entries[index] = entries[index]._replace(slicing=plain)
    if is_input:
        around[1].inputs[:] = entries
    else:
        around[1].outputs[:] = entries
    return True


def set_value(draft: DraftModel, address: LayerAddress, value: Array) -> bool:
    """Give a Constant or an input of the model another value of the same shape."""
    layer = draft.layer_at(address)
    if layer is None or layer.value is None or layer.value.shape != value.shape:
        return False
    layer.value = value
    return True


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


def shrink_everywhere(draft: DraftModel, old: int, new: int, *, at_end: bool = False) -> bool:
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
    return changed


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


def shrink_axis(draft: DraftModel, address: LayerAddress, axis: int, new: int, *, at_end: bool = False) -> bool:
    """Make one axis of a Constant or of an input of the model shorter; `at_end`: what is last stays."""
    layer = draft.layer_at(address)
    if layer is None or layer.value is None or axis >= layer.value.ndim or layer.value.shape[axis] <= new:
        return False
    size = layer.value.shape[axis]
    kept = range(size - new, size) if at_end else range(new)
    put(layer, np.ascontiguousarray(np.take(layer.value, kept, axis)))
    return True


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


def merge_constants(draft: DraftModel) -> bool:
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
    return changed
