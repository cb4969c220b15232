"""Edits of loops and Ifs: trip counts, slices, scan outputs, back edges, states, conditions, branches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.ir.model import BackEdge, Body, InputMapping, Layer, OutputMapping, Scope, Slicing, Source
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_MOST_VALUES = 24


def loop_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of the loops and Ifs of a graph. Their bodies have sites of their own."""
    for layer in site.graph.holders:
        if layer.type == "If":
            yield from _branches(site, layer)
        elif layer.is_loop:
            yield from _trip_count(site, layer)
            yield from _entries(site, layer, layer.bodies[0])


def body_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of the port map and the back edges of the body of a loop."""
    body = site.body
    if body is None or not site.path[-1].is_loop:
        return
    yield from _back_edges(site, body)
    yield from _carried(site, body)
    yield from _outputs(site, body)


def _trip_count(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield trip counts that are one more or less, or the length of an axis of what the loop reads."""
    sources = site.sources(layer)
    if layer.type != "Loop" or not sources or sources[0] is None:
        return
    now = site.value(sources[0])
    count = None if now is None else int(np.reshape(now, -1)[0])
    if site.graph.by_id[sources[0].layer].type != "Constant":
        for step in (1, -1):
            change = partial(_add_to_input, site.scope, layer.id, 0, step)
            yield site.edit(EditKind.TRIP_COUNT, layer, 1.5, change, before=str(count), after=f"{step:+d}")
    seen = {count}
    for index, source in enumerate(sources[2:], 2):
        form = site.form(source)
        for axis, size in enumerate(form.shape if form is not None else ()):
            if size in seen or source is None:
                continue
            seen.add(size)
            change = partial(_trip_from_shape, site.scope, layer.id, source, axis)
            after = f"the length {size} of axis {axis} of input {index}"
            yield site.edit(EditKind.TRIP_COUNT, layer, 2.0, change, before=str(count), after=after)


def _add_to_input(scope: Scope, layer: int, index: int, step: int, patch: ModelPatch) -> None:
    graph = patch.graph(scope)
    source = graph.sources[layer][index]
    assert source is not None
    port = graph.port(source)
    number = graph.constant(np.asarray(step, np.int64 if port.element_type is None else port.element_type.dtype))
    graph.read(layer, index, graph.add("Add", (source, number), {"auto_broadcast": "numpy"}, port))


def _trip_from_shape(scope: Scope, layer: int, source: Source, axis: int, patch: ModelPatch) -> None:
    graph = patch.graph(scope)
    number, zero = (graph.integers(one) for one in (axis, 0))
    port = graph.port(number)
    shape = graph.add("ShapeOf", (source,), {"output_type": "i64"}, port._replace(dims=(-1,)))
    graph.read(layer, 0, graph.add("Gather", (shape, number, zero), {"batch_dims": "0"}, port))


def _entries(site: GraphSite, layer: Layer, body: Body) -> Iterator[RepairEdit]:
    """Yield the edits of slices and scan outputs, and exchanges of what the body is given."""
    scope: Scope = (*site.scope, (layer.id, body.role))
    for index, entry in enumerate(body.inputs):
        if entry.slicing is not None:
            form = None if entry.input is None else site.form(site.sources(layer)[entry.input])
            rank = 0 if form is None else len(form.shape)
            name = body.graph.by_id[entry.parameter].name
            for slicing, what, price in _slicings(entry.slicing, rank):
                change = partial(_put_input, scope, index, entry._replace(slicing=slicing))
                yield site.edit(EditKind.LOOP_INPUT, layer, price, change, subject=name, after=what)
    for index, output in enumerate(body.outputs):
        if output.slicing is not None:
            form = None if output.output is None else site.output_form(layer, output.output)
            name = body.graph.by_id[output.result].name
            for slicing, what, price in _slicings(output.slicing, 0 if form is None else len(form.shape)):
                change = partial(_put_output, scope, index, output._replace(slicing=slicing))
                yield site.edit(EditKind.LOOP_OUTPUT, layer, price, change, subject=name, after=what)
    yield from _exchanged(site, layer, body, scope)
    yield from _begun_with_zeros(site, layer, body)


def _begun_with_zeros(site: GraphSite, layer: Layer, body: Body) -> Iterator[RepairEdit]:
    """Yield states that begin with zeros."""
    carried = {edge.to_layer for edge in body.back_edges}
    for entry in body.inputs:
        source = None if entry.input is None or entry.parameter not in carried else site.sources(layer)[entry.input]
        value = site.value(source)
        if source is None or value is None or not value.any():
            continue
        index, before = entry.input or 0, site.name(source)
        zeros = partial(_read_zeros, site.scope, layer.id, index, value)
        what = f"the state at operand {index} begins with zeros instead of '{before}'"
        yield site.edit(EditKind.REWRITE, layer, 2.0, zeros, after=what)


def _read_zeros(scope: Scope, layer: int, index: int, like: Any, patch: ModelPatch) -> None:
    graph = patch.graph(scope)
    graph.read(layer, index, graph.constant(np.zeros_like(like)))


def _slicings(slicing: Slicing, rank: int) -> Iterator[tuple[Slicing, str, float]]:
    is_back = slicing.stride < 0
    turned = replace(slicing, start=0 if is_back else -1, end=-1 if is_back else 0, stride=-slicing.stride)
    yield turned, "in the other direction", 1.0
    for axis in range(rank):
        if axis != slicing.axis % max(1, rank):
            yield replace(slicing, axis=axis), f"along axis {axis}", 2.0
    for step in (1, -1):
        yield replace(slicing, start=slicing.start + step), f"from {slicing.start + step}", 2.0
        yield replace(slicing, end=slicing.end + step), f"to {slicing.end + step}", 2.5
    for stride in (slicing.stride * 2, slicing.stride // 2):
        if stride:
            yield replace(slicing, stride=stride), f"with stride {stride}", 3.0
    whole = replace(slicing, start=-1 if is_back else 0, end=0 if is_back else -1)
    if whole != slicing:
        yield whole, "over the whole axis", 1.0
    part = abs(slicing.stride)
    if slicing.part_size not in (None, part):
        yield replace(slicing, part_size=part), f"with slices of {part}", 1.5


def _put_input(scope: Scope, index: int, entry: InputMapping, patch: ModelPatch) -> None:
    patch.port_map(scope).inputs[index] = entry


def _put_output(scope: Scope, index: int, entry: OutputMapping, patch: ModelPatch) -> None:
    patch.port_map(scope).outputs[index] = entry


def _exchanged(site: GraphSite, layer: Layer, body: Body, scope: Scope) -> Iterator[RepairEdit]:
    for a, b in combinations(range(len(body.outputs)), 2):
        one, other = body.outputs[a], body.outputs[b]
        if one.purpose or other.purpose or (one.slicing is None) != (other.slicing is None):
            continue
        names = [body.graph.by_id[entry.result].name for entry in (one, other)]
        change = partial(_exchange_outputs, scope, a, b)
        yield site.edit(
            EditKind.LOOP_OUTPUT, layer, 2.0, change, subject=names[0], after=f"exchanged with '{names[1]}'"
        )


def _exchange_outputs(scope: Scope, a: int, b: int, patch: ModelPatch) -> None:
    outputs = patch.port_map(scope).outputs
    outputs[a], outputs[b] = (
        outputs[a]._replace(result=outputs[b].result),
        outputs[b]._replace(result=outputs[a].result),
    )


def _back_edges(site: GraphSite, body: Body) -> Iterator[RepairEdit]:
    """Yield back edges that carry another value of the body, and those that carry nothing."""
    for index, edge in enumerate(body.back_edges):
        target = Source(edge.to_layer, 0)
        now, form = site.graph.source(edge.from_layer), site.form(target)
        for other in _others(site, form, now, edge.from_layer):
            layer = site.graph.by_id[other.layer]
            change = partial(_carry_instead, site.scope, index, other)
            yield site.edit(
                EditKind.BACK_EDGE,
                owner_of(site),
                3.5 if layer.type == "Constant" else 1.5,
                change,
                subject=site.graph.by_id[edge.to_layer].name,
                before="" if now is None else site.name(now),
                after=site.name(other),
                roots=(edge.to_layer,),
            )


def _others(site: GraphSite, form: ValueForm | None, now: Source | None, layer: int) -> list[Source]:
    """Return values of a type and shape other than the present one, the nearest to a layer first."""
    near = [] if form is None else site.near(form, site.positions[layer], _MOST_VALUES + 1)
    return [one for one in near if one != now][:_MOST_VALUES]


def owner_of(site: GraphSite) -> Layer:
    """Return a layer of a body that stands for its port map: the first one."""
    return site.graph.layers[0]


def _carry_instead(scope: Scope, index: int, source: Source, patch: ModelPatch) -> None:
    maps, graph = patch.port_map(scope), patch.graph(scope)
    result = graph.result(source, f"carried_{source.layer}")
    maps.back_edges[index] = maps.back_edges[index]._replace(from_layer=result)


def _carried(site: GraphSite, body: Body) -> Iterator[RepairEdit]:
    """Yield back edges that are missing: a Parameter with the same value in each iteration is renewed."""
    targets = {edge.to_layer for edge in body.back_edges}
    for entry in body.inputs:
        if entry.slicing is not None or entry.parameter in targets or entry.input is None or entry.purpose:
            continue
        form = site.form(Source(entry.parameter, 0))
        for other in (site.by_form.get(form, ()) if form is not None else ())[:_MOST_VALUES]:
            layer = site.graph.by_id[other.layer]
            if layer.type in ("Constant", "Parameter"):
                continue
            is_dependent = site.follows(other.layer, entry.parameter)
            yield site.edit(
                EditKind.BACK_EDGE,
                owner_of(site),
                1.5 if is_dependent else 3.0,
                partial(_carry, site.scope, other, entry.parameter),
                subject=site.graph.by_id[entry.parameter].name,
                after=site.name(other),
                roots=(entry.parameter,),
            )


def _carry(scope: Scope, source: Source, parameter: int, patch: ModelPatch) -> None:
    result = patch.graph(scope).result(source, f"carried_{source.layer}")
    patch.port_map(scope).back_edges.append(BackEdge(result, parameter, 0))


def _outputs(site: GraphSite, body: Body) -> Iterator[RepairEdit]:
    """Yield outputs of the loop that are another value of the body."""
    for index, entry in enumerate(body.outputs):
        now = site.graph.source(entry.result)
        form = site.form(now)
        if form is None or now is None or entry.purpose is not None:
            continue
        for other in _others(site, form, now, now.layer):
            is_constant = site.graph.by_id[other.layer].type == "Constant"
            yield site.edit(
                EditKind.LOOP_OUTPUT,
                owner_of(site),
                4.0 if is_constant else 2.5,
                partial(_give_instead, site.scope, index, other),
                subject=site.graph.by_id[entry.result].name,
                before=site.name(now),
                after=f"'{site.name(other)}'",
                roots=(entry.result,),
            )


def _give_instead(scope: Scope, index: int, source: Source, patch: ModelPatch) -> None:
    maps = patch.port_map(scope)
    result = patch.graph(scope).result(source, f"given_{source.layer}")
    maps.outputs[index] = maps.outputs[index]._replace(result=result)


def _branches(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield an If whose branches are exchanged, and one that always takes the same."""
    change = partial(_exchange_branches, site.scope, layer.id)
    yield site.edit(EditKind.BRANCHES, layer, 1.0, change, after="exchanged")
    for holds in (True, False):
        always = partial(_always, site.scope, layer.id, holds)
        yield site.edit(EditKind.BRANCHES, layer, 3.0, always, after=f"always {'then' if holds else 'else'}")


def _exchange_branches(scope: Scope, layer: int, patch: ModelPatch) -> None:
    patch.needs_ir = True
    graph = patch.graph(scope)
    owner = graph.layers[layer]
    roles: dict[str, Any] = {"then_body": "else_body", "else_body": "then_body"}
    bodies = sorted(
        (replace(body, role=roles[body.role]) for body in owner.bodies), key=lambda one: one.role == "else_body"
    )
    graph.put(owner._replace(bodies=tuple(bodies)))


def _always(scope: Scope, layer: int, holds: bool, patch: ModelPatch) -> None:
    graph = patch.graph(scope)
    graph.read(layer, 0, graph.constant(np.asarray(holds)))
