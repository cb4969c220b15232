"""Edits that add weights which the file lacks, solved from the reference: rows of a table, classes, a gate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from stepper.element_types import Array, Shape
from stepper.ir.model import Layer, Source
from stepper.repair.catalogue.constant_edits import constant_of
from stepper.repair.catalogue.insertion_edits import values_of
from stepper.repair.catalogue.unknown_numbers import with_unknowns
from stepper.repair.edit import GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_MOST_UNKNOWNS = 48
_LARGEST_INDEX = 4096


def missing_weight_edits(site: GraphSite, most_numbers: int) -> Iterator[RepairEdit]:
    """Yield the edits of a graph that add weights, no more than the reference can decide."""
    most = min(_MOST_UNKNOWNS, most_numbers)
    for layer in site.operations:
        if layer.type == "Gather":
            yield from _longer_table(site, layer, most)
        elif layer.type == "OneHot":
            yield from _more_classes(site, layer, most)
        elif layer.type in ("MatMul", "MVN", "Divide", "Convolution"):
            yield from _vectors(site, layer, most)
    yield from _gates(site, most)


def _longer_table(site: GraphSite, layer: Layer, most: int) -> Iterator[RepairEdit]:
    """Yield a table with the rows to which a clamped index would go, and the index without its bound."""
    sources = site.sources(layer)
    table, clamp = site.value(constant_of(site, sources[0])), site.graph.layer_of(sources[1])
    if table is None or table.dtype.kind != "f" or clamp.type not in ("Minimum", "Clamp"):
        return
    for source in site.sources(clamp):
        largest = _largest(site, source)
        if source is None or site.graph.layer_of(source).type == "Constant" or largest is None:
            continue
        rows = largest + 1 - len(table)
        width = table[0].size if len(table) else 0
        if 0 < rows * width <= most:
            put = partial(_lengthen, site, layer.id, table, rows, source)
            what = f"{rows} further rows of its table"
            start = tuple(np.tile(table.astype(np.float64).mean(0).reshape(-1), rows).tolist())
            yield with_unknowns(
                site, layer, 4.0, what, put, (start,), subject=site.name(source), rounds=False, roots=(layer.id,)
            )


def _largest(site: GraphSite, source: Source | None) -> int | None:
    """Return the largest integer that a value has, first or last in the run."""
    if source is None:
        return None
    values = [site.value(source), site.run.value(site.scope, source, is_last=True)]
    known = [int(np.max(value)) for value in values if value is not None and value.size and value.dtype.kind in "iu"]
    return max(known) if known and max(known) < _LARGEST_INDEX else None


def _lengthen(
    site: GraphSite, layer: int, table: Array, rows: int, index: Source, patch: ModelPatch, numbers: Array
) -> None:
    graph = patch.graph(site.scope)
    further = numbers.reshape((rows, *table.shape[1:])).astype(table.dtype)
    graph.read(layer, 0, graph.constant(np.concatenate([table, further])))
    graph.read(layer, 1, index)


def _more_classes(site: GraphSite, layer: Layer, most: int) -> Iterator[RepairEdit]:
    """Yield a OneHot that is as deep as its largest index, with the columns of the weights that this takes."""
    depth = site.value(site.sources(layer)[1])
    if depth is None or len(site.readers(Source(layer.id, 0))) != 1:
        return
    reader, port = site.readers(Source(layer.id, 0))[0]
    weights = site.value(constant_of(site, site.sources(reader)[1 - port])) if reader.type == "MatMul" else None
    largest = _largest_input(site)
    if weights is None or weights.ndim != 2 or largest is None:
        return
    axis = 1 if reader.is_set("transpose_b" if port == 0 else "transpose_a") == (port == 0) else 0
    missing = largest + 1 - int(np.reshape(depth, -1)[0])
    count = missing * weights.shape[1 - axis]
    if 0 < count <= most and weights.shape[axis] == int(np.reshape(depth, -1)[0]):
        put = partial(_deepen, site, layer.id, reader.id, 1 - port, weights, axis, missing)
        what = f"depth {largest + 1} with {count} further weights"
        yield with_unknowns(site, layer, 4.0, what, put, ((0.0,) * count,), rounds=False, roots=(layer.id,))


def _largest_input(site: GraphSite) -> int | None:
    """Return the largest integer among the inputs of the model."""
    inputs = [value for value in site.run.example.inputs if value.dtype.kind in "iu" and value.size]
    largest = max((int(value.max()) for value in inputs), default=_LARGEST_INDEX)
    return largest if largest < _LARGEST_INDEX else None


def _deepen(
    site: GraphSite,
    layer: int,
    reader: int,
    port: int,
    weights: Array,
    axis: int,
    missing: int,
    patch: ModelPatch,
    numbers: Array,
) -> None:
    graph = patch.graph(site.scope)
    shape = (weights.shape[0], missing) if axis else (missing, weights.shape[1])
    further = numbers.reshape(shape).astype(weights.dtype)
    graph.read(layer, 1, graph.integers(weights.shape[axis] + missing))
    graph.read(reader, port, graph.constant(np.concatenate([weights, further], axis)))


def _vectors(site: GraphSite, layer: Layer, most: int) -> Iterator[RepairEdit]:
    """Yield a bias behind a product, and a gain behind a normalisation: a number for each place of an axis."""
    form, source = site.output_form(layer), Source(layer.id, 0)
    readers = site.reader_ids(source)
    if form is None or not form.is_float or not form.shape or not readers:
        return
    axis = 1 if layer.type == "Convolution" else len(form.shape) - 1
    size, is_product = form.shape[axis], layer.type in ("MatMul", "Convolution")
    if 1 < size <= most:
        name, number, what = ("Add", 0.0, "bias") if is_product else ("Multiply", 1.0, "gain")
        shape = [1] * len(form.shape)
        shape[axis] = size
        put = partial(_with_vector, site, source, name, tuple(shape), form)
        start = ((number,) * size,)
        words = f"{what} of {size} numbers inserted,"
        yield with_unknowns(site, layer, 4.0, words, put, start, subject=site.name(source), roots=readers, rounds=False)


def _with_vector(
    site: GraphSite, source: Source, name: str, shape: Shape, form: ValueForm, patch: ModelPatch, numbers: Array
) -> None:
    graph = patch.graph(site.scope)
    vector = graph.constant(numbers.reshape(shape).astype(form.dtype))
    made = graph.add(name, (source, vector), {"auto_broadcast": "numpy"}, graph.port(source))
    graph.redirect(source, made, but=graph.added)


def _gates(site: GraphSite, most: int) -> Iterator[RepairEdit]:
    """Yield a gate on a new part of a state: a product with the sigmoid of a linear function of an input."""
    body = site.body
    if body is None:
        return
    given = [(source, form) for source, form in values_of(site) if _is_input(site, source, form)]
    for layer in site.operations:
        if layer.type != "Add" or not _feeds_state(site, layer):
            continue
        for index, part in enumerate(site.sources(layer)):
            if part is None or site.graph.layer_of(part).type in ("Parameter", "Constant"):
                continue
            for source, form in given:
                count = form.shape[-1] + 1
                if count <= most:
                    put = partial(_gate, site, layer.id, index, source, form)
                    what = f"gate with {count} weights on '{site.name(source)}', for its operand {index},"
                    yield with_unknowns(site, layer, 5.0, what, put, ((0.0,) * count,), rounds=False, roots=(layer.id,))


def _is_input(site: GraphSite, source: Source, form: ValueForm) -> bool:
    """Return True for a row that the body takes from what it is given, in the shape of one example."""
    layer = site.graph.by_id[source.layer]
    return form.is_float and len(form.shape) == 1 and layer.type in ("Gather", "Squeeze", "Parameter")


def _feeds_state(site: GraphSite, layer: Layer) -> bool:
    assert site.body is not None
    carried = {edge.from_layer for edge in site.body.back_edges}
    return any(reader.id in carried for reader, _index in site.readers(Source(layer.id, 0)))


def _gate(
    site: GraphSite, layer: int, index: int, source: Source, form: ValueForm, patch: ModelPatch, numbers: Array
) -> None:
    graph, part = patch.graph(site.scope), site.sources(site.graph.by_id[layer])[index]
    assert part is not None
    weights = graph.constant(numbers[:-1].reshape(-1, 1).astype(form.dtype))
    bias = graph.constant(numbers[-1:].astype(form.dtype))
    port, texts = graph.port(bias), {"auto_broadcast": "numpy"}
    product = graph.add("MatMul", (source, weights), {"transpose_a": "false", "transpose_b": "false"}, port)
    gate = graph.add("Sigmoid", (graph.add("Add", (product, bias), texts, port),), {}, port)
    graph.read(layer, index, graph.add("Multiply", (gate, part), texts, graph.port(part)))
