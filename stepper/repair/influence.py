"""Find the layers through which a value can change outputs.

An edit must reach every output that differs.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepper.ir.model import EXECUTION_CONDITION, Graph, Layer, Model, Scope, Source
from stepper.operation_types import CONTROL_INPUTS

LayerKey = tuple[Scope, int]


def reached_outputs(model: Model) -> dict[LayerKey, frozenset[int]]:
    """Return the outputs of the model, by position, that each layer at any depth can change."""
    graphs = {scope: graph for scope, _path, graph in model.scopes()}
    found: dict[LayerKey, set[int]] = {}
    for position, result in enumerate(model.graph.results):
        for key in _behind(graphs, ((), result.id)):
            found.setdefault(key, set()).add(position)
    return {key: frozenset(positions) for key, positions in found.items()}


def _behind(graphs: dict[Scope, Graph], start: LayerKey) -> set[LayerKey]:
    """Return all layers on which one depends, in the graphs around it and in the bodies before it."""
    seen = {start}
    waiting: list[tuple[LayerKey, int | None]] = [(start, None)]
    done = set[tuple[LayerKey, int | None]]()
    while waiting:
        item = waiting.pop()
        if item in done:
            continue
        done.add(item)
        (scope, key), output = item
        seen.add((scope, key))
        waiting += _before(graphs, scope, key, output)
    return seen


def _before(
    graphs: dict[Scope, Graph], scope: Scope, key: int, output: int | None
) -> Iterator[tuple[LayerKey, int | None]]:
    graph = graphs[scope]
    layer = graph.by_id[key]
    if layer.bodies:
        yield from _into_bodies(scope, layer, output)
        controls = CONTROL_INPUTS.get(layer.type, 0)
        for source in graph.sources[key][:controls]:
            yield from _of_source(scope, source)
        return
    for source in graph.sources[key]:
        yield from _of_source(scope, source)
    if layer.type == "Parameter":
        yield from _of_parameter(graphs, scope, key)
    if layer.type == "ReadValue":
        name = layer.attributes.get("variable_id")
        for other, around in graphs.items():
            assigns = (one for one in around.layers if one.type == "Assign")
            yield from (((other, one.id), None) for one in assigns if one.attributes.get("variable_id") == name)


def _of_parameter(graphs: dict[Scope, Graph], scope: Scope, key: int) -> Iterator[tuple[LayerKey, int | None]]:
    if not scope:
        return
    outer, (owner, role) = scope[:-1], scope[-1]
    body = next(one for one in graphs[outer].by_id[owner].bodies if one.role == role)
    for entry in body.inputs:
        if entry.parameter == key and entry.input is not None:
            yield from _of_source(outer, graphs[outer].source(owner, entry.input))
    yield from (((scope, edge.from_layer), None) for edge in body.back_edges if edge.to_layer == key)


def _into_bodies(scope: Scope, layer: Layer, output: int | None) -> Iterator[tuple[LayerKey, int | None]]:
    for body in layer.bodies:
        for entry in body.outputs:
            if output is None or entry.output == output or entry.purpose == EXECUTION_CONDITION:
                yield ((*scope, (layer.id, body.role)), entry.result), None


def _of_source(scope: Scope, source: Source | None) -> Iterator[tuple[LayerKey, int | None]]:
    if source is not None:
        yield (scope, source.layer), source.output
