"""Edits that make the lengths of sequences count: at padding states stay, and the last valid step is taken."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from stepper.element_types import Array, Shape
from stepper.ir.model import CURRENT_ITERATION, Body, InputMapping, Layer, Port, Scope, Source
from stepper.repair.changes import add_input
from stepper.repair.edit import EditKind, GraphSite, RepairEdit
from stepper.repair.patch import GraphPatch, ModelPatch

_LARGEST = 2**20
"""Elements of a value that is compared with its reversal."""
_INDEXED = ("Gather", "Slice", "StridedSlice", "Squeeze", "Reshape", "Split", "VariadicSplit")


def length_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of a model whose integer inputs are lengths of sequences."""
    if site.scope:
        return
    for layer in site.graph.parameters:
        lengths = Source(layer.id, 0)
        form = site.form(lengths)
        if form is None or not form.is_integer or len(form.shape) != 1 or not form.shape[0]:
            continue
        dearer = 0.0 if not site.readers(lengths) else 1.5
        yield from _masked_states(site, lengths, form.shape[0], dearer)
        yield from _last_steps(site, lengths, form.shape[0], dearer)
        yield from _reversals(site, lengths, form.shape[0], dearer)


def _lengths_edit(
    site: GraphSite, layer: Layer, price: float, change: partial[None], what: str, lengths: Source
) -> RepairEdit:
    readers = site.reader_ids(Source(layer.id, 0)) or (layer.id,)
    return site.edit(
        EditKind.LENGTHS, layer, price, change, subject=site.name(lengths), after=what, roots=(layer.id, *readers)
    )


# --- states of loops --------------------------------------------------------------------------------------------------


def _masked_states(site: GraphSite, lengths: Source, batch: int, dearer: float) -> Iterator[RepairEdit]:
    for layer in site.graph.holders:
        if layer.type != "Loop" or not layer.bodies[0].back_edges:
            continue
        body, scope = layer.bodies[0], (*site.scope, (layer.id, layer.bodies[0].role))
        states = [edge for edge in body.back_edges if _batch_axis(body, edge.to_layer, batch) is not None]
        if not states:
            continue
        name = site.name(lengths)
        for masks_outputs in (False, True):
            change = partial(_mask, site, layer.id, scope, lengths, batch, masks_outputs)
            what = f"states stay as they are from iteration '{name}' on"
            what += ", and outputs are 0" if masks_outputs else ""
            yield _lengths_edit(site, layer, 1.75 + dearer + 0.25 * masks_outputs, change, what, lengths)


def _batch_axis(body: Body, parameter: int, batch: int) -> int | None:
    dims = body.graph.by_id[parameter].outputs[0].dims
    return next((axis for axis, size in enumerate(dims) if size == batch), None)


def _mask(
    site: GraphSite, loop: int, scope: Scope, lengths: Source, batch: int, masks_outputs: bool, patch: ModelPatch
) -> None:
    """Carry the old state of each sequence, and give zeros if asked, once the iteration has reached its length."""
    form = site.form(lengths)
    assert form is not None
    given = add_input(patch, scope, lengths, "lengths")
    graph, maps = patch.graph(scope), patch.port_map(scope)
    number = _iteration(patch, scope)
    wide = graph.add("Convert", (Source(given, 0),), {"destination_type": "i64"}, _port(graph, given))
    flag = Port(0, None, (batch,), (), 0)
    is_valid = graph.add("Less", (number, wide), {"auto_broadcast": "numpy"}, flag)
    body = next(one for one in site.graph.by_id[loop].bodies)
    for edge in maps.back_edges:
        axis = _batch_axis(body, edge.to_layer, batch)
        if axis is not None:
            new, old = graph.sources[edge.from_layer][0], Source(edge.to_layer, 0)
            rank = len(body.graph.by_id[edge.to_layer].outputs[0].dims)
            _select_rows(graph, edge.from_layer, is_valid, new, old, axis, rank)
    carried = {edge.from_layer for edge in maps.back_edges}
    for entry in maps.outputs if masks_outputs else ():
        if entry.slicing is None or entry.purpose is not None or entry.result in carried:
            continue
        source = graph.sources[entry.result][0]
        dims = () if source is None else graph.port(source).dims
        axis = next((at for at, size in enumerate(dims) if size == batch and at != entry.slicing.axis), None)
        if source is not None and axis is not None:
            zero = graph.constant(np.zeros((), np.float32))
            _select_rows(graph, entry.result, is_valid, source, zero, axis, len(dims))


def _select_rows(
    graph: GraphPatch, result: int, is_valid: Source, new: Source | None, old: Source, axis: int, rank: int
) -> None:
    """Let a Result be a new value in the rows that are valid and an old one in the others."""
    assert new is not None
    target = graph.integers([-1 if at == axis else 1 for at in range(rank)])
    flags = graph.add("Reshape", (is_valid, target), {"special_zero": "false"}, graph.port(is_valid))
    made = graph.add("Select", (flags, new, old), {"auto_broadcast": "numpy"}, graph.port(new))
    graph.read(result, 0, made)


def _iteration(patch: ModelPatch, scope: Scope) -> Source:
    """Return the number of the iteration in the body of a Loop as i64; a Parameter for it is added if there is none."""
    graph, maps = patch.graph(scope), patch.port_map(scope)
    known = next((entry.parameter for entry in maps.inputs if entry.purpose == CURRENT_ITERATION), None)
    if known is None:
        known = graph.parameter(Port(0, None, (), (), 0), "iteration")
        maps.inputs.append(InputMapping(None, known, None, CURRENT_ITERATION, False, 0))
    return graph.add("Convert", (Source(known, 0),), {"destination_type": "i64"}, _port(graph, known))


def _port(graph: GraphPatch, layer: int) -> Port:
    return graph.layers[layer].outputs[0]


# --- the last step, and reversals -----------------------------------------------------------------------------------


def _last_steps(site: GraphSite, lengths: Source, batch: int, dearer: float) -> Iterator[RepairEdit]:
    """Yield an output that is the step before the end of each sequence, where it is one step for all sequences."""
    for layer in site.operations:
        sources = site.sources(layer)
        if layer.type not in _INDEXED or not sources or sources[0] is None:
            continue
        given, form = site.form(sources[0]), site.output_form(layer)
        if given is None or form is None or not given.is_float or len(given.shape) < 2:
            continue
        for time in range(min(2, len(given.shape))):
            shape = (*given.shape[:time], *given.shape[time + 1 :])
            rows = 1 - time
            if (
                given.shape[rows] != batch
                or given.shape[time] < 2
                or form.shape not in (shape, _kept(given.shape, time))
            ):
                continue
            change = partial(_take_last, site, layer, lengths, given.shape, time, form.shape)
            what = f"takes step '{site.name(lengths)}' - 1 of each sequence"
            yield _lengths_edit(site, layer, 1.75 + dearer, change, what, lengths)


def _kept(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _take_last(
    site: GraphSite, layer: Layer, lengths: Source, shape: Shape, time: int, target: Shape, patch: ModelPatch
) -> None:
    graph, source = patch.graph(site.scope), site.sources(layer)[0]
    assert source is not None
    port = graph.port(lengths)
    wide = graph.add("Convert", (lengths,), {"destination_type": "i64"}, port)
    last = graph.add("Subtract", (wide, graph.integers(1)), {"auto_broadcast": "numpy"}, port)
    aligned = [1] * len(shape)
    aligned[1 - time] = -1
    reshaped = graph.add("Reshape", (last, graph.integers(aligned)), {"special_zero": "false"}, port)
    spread = graph.add("Broadcast", (reshaped, graph.integers(_kept(shape, time))), {"mode": "numpy"}, port)
    picked = graph.add("GatherElements", (source, spread), {"axis": str(time)}, graph.port(source))
    made = graph.add(
        "Reshape", (picked, graph.integers(target)), {"special_zero": "false"}, graph.port(Source(layer.id, 0))
    )
    graph.redirect(Source(layer.id, 0), made, but=graph.added)


def _reversals(site: GraphSite, lengths: Source, batch: int, dearer: float) -> Iterator[RepairEdit]:
    """Yield a reversal of each sequence within its length, where whole axes are reversed."""
    for layer in site.operations:
        made = site.value(Source(layer.id, 0)) if len(layer.outputs) == 1 else None
        if made is None or made.ndim < 2 or not 1 < made.size <= _LARGEST:
            continue
        for source in dict.fromkeys(site.sources(layer)):
            value = site.value(source)
            axis = None if value is None else _reversed_axis(value, made)
            rows = None if axis is None else next((at for at in (0, 1) if at != axis and made.shape[at] == batch), None)
            if axis is None or rows is None or source is None:
                continue
            change = partial(_reverse, site, layer, source, lengths, rows, axis)
            what = f"reverses the first '{site.name(lengths)}' steps of each sequence"
            yield _lengths_edit(site, layer, 1.75 + dearer, change, what, lengths)


def _reversed_axis(value: Array, made: Array) -> int | None:
    """Return the axis along which one value is the reversal of another; None if it is not."""
    if value.shape != made.shape or value.dtype != made.dtype or (value == made).all():
        return None
    return next((axis for axis in range(value.ndim) if (np.flip(value, axis) == made).all()), None)


def _reverse(
    site: GraphSite, layer: Layer, source: Source, lengths: Source, rows: int, axis: int, patch: ModelPatch
) -> None:
    graph = patch.graph(site.scope)
    texts = {"batch_axis": str(rows), "seq_axis": str(axis)}
    made = graph.add("ReverseSequence", (source, lengths), texts, graph.port(Source(layer.id, 0)))
    graph.redirect(Source(layer.id, 0), made, but=graph.added)
