"""Edits that insert: an operation on a value, a combination with another value in scope, a Select, a Gather."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from stepper.element_types import Shape
from stepper.ir.model import Layer, Source
from stepper.operation_types import FAMILY_OF
from stepper.repair.changes import InsertPoint, insert, insert_with, swapped
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_UNARY: Final[Mapping[str, float]] = {
    "Abs": 2.0, "Negative": 2.0, "Sqrt": 2.5, "SoftPlus": 3.0, "Tanh": 2.5, "Sigmoid": 2.5, "Exp": 2.5, "Log": 2.5,
    "Relu": 2.5, "Gelu": 3.5, "Sign": 4.0, "Floor": 3.5, "Erf": 5.0, "Sin": 5.0, "Cos": 5.0,
}  # fmt: skip
"""Operations of one input that are left out by mistake, with their prices."""
_COMBINED: Final[Mapping[str, float]] = {"Multiply": 0.0, "Add": 0.0, "Subtract": 0.5, "Divide": 0.5}
_MOST_PARTNERS = 16
_NAN = 2.5
_NO_NAN = -0.5
"""Added to the price of a root or a logarithm that gives NaN for a value, and of one that does not."""
_LEAST_PARTNERS = 4
_FARTHER = 0.02
"""Added to the price for each partner that is nearer, in a graph twice as large as a small one."""
_MOST_READERS = 4
_BROADCASTS = ("elementwise", "comparison", "matmul")


def insertion_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the insertions of a graph."""
    for source, form in values_of(site):
        for place, layer, dearer in places_of(site, source):
            yield from _unary(site, place, layer, form, dearer)
            yield from _moved(site, place, layer, form, dearer)
        yield from _combined(site, source, form)
        yield from _selected(site, source, form)
        yield from _gathered(site, source, form)
    for layer in site.operations:
        yield from _rank_changed(site, layer)
        if layer.type == "Reshape":
            yield from _reshaped(site, layer)
        elif layer.type == "Softmax":
            yield from _masked(site, layer)


def values_of(site: GraphSite) -> Iterator[tuple[Source, ValueForm]]:
    """Yield the values of a graph that are read and are no Constants, with their forms."""
    for layer in site.graph.layers:
        if layer.type in ("Constant", "Result"):
            continue
        for output in range(len(layer.outputs)):
            source = Source(layer.id, output)
            form = site.form(source)
            if form is not None and site.readers(source):
                yield source, form


def places_of(site: GraphSite, source: Source) -> Iterator[tuple[InsertPoint, Layer, float]]:
    """Yield where something may be inserted on a value: for all that read it, and for each where there are several."""
    readers = site.readers(source)
    yield InsertPoint(source), site.graph.by_id[source.layer], 0.0
    if 1 < len(readers) <= _MOST_READERS:
        for layer, index in readers:
            yield InsertPoint(source, layer.id, index), layer, 0.5


def inserted(
    site: GraphSite,
    place: InsertPoint,
    layer: Layer,
    price: float,
    what: str,
    change: partial[None],
    after: str = "",
) -> RepairEdit:
    """Return the edit of an insertion; its roots are who reads the value there."""
    roots = site.reader_ids(place.source) if place.is_behind else (layer.id,)
    subject = site.name(place.source)
    where = "" if place.is_behind else layer.name
    return site.edit(
        EditKind.INSERTED, layer, price, change, subject=subject, before=where, after=after or what, roots=roots
    )


def _unary(site: GraphSite, place: InsertPoint, layer: Layer, form: ValueForm, dearer: float) -> Iterator[RepairEdit]:
    if form.is_float:
        dearer_root = _NAN if site.has_negative(place.source) else _NO_NAN
        for name, price in _UNARY.items():
            price += dearer_root * (name in ("Sqrt", "Log"))
            yield inserted(site, place, layer, price + dearer, name, partial(insert, site.scope, place, name, {}))
        one = form.dtype.type(1)
        for what, name, at, price in (("1 - value", "Subtract", 1, 2.5), ("1 / value", "Divide", 1, 3.0)):
            change = partial(insert_with, site.scope, place, name, np.asarray(one), {}, at)
            yield inserted(site, place, layer, price + dearer, what, change)
        square = partial(insert_with, site.scope, place, "Multiply", place.source, {}, 0)
        yield inserted(site, place, layer, 3.0 + dearer, "square", square)
        if form.shape and form.shape[-1] > 1:
            for what, reduction, name, price in _BY_REDUCTION:
                made = partial(_by_reduction, site, place, len(form.shape) - 1, reduction, name)
                yield inserted(site, place, layer, price + dearer, f"{what} of the last axis", made)
            for name in ("Softmax", "LogSoftmax"):
                texts = {"axis": str(len(form.shape) - 1)}
                change_axis = partial(insert, site.scope, place, name, texts)
                yield inserted(site, place, layer, 3.5 + dearer, f"{name} of the last axis", change_axis)
    elif form.dtype == np.bool_:
        yield inserted(
            site, place, layer, 2.0 + dearer, "LogicalNot", partial(insert, site.scope, place, "LogicalNot", {})
        )
    elif form.is_integer:
        for step in (1, -1):
            number = np.asarray(np.asarray(step).astype(form.dtype))
            change = partial(insert_with, site.scope, place, "Add", number, {}, 0)
            yield inserted(site, place, layer, 2.5 + dearer, f"value {'+' if step > 0 else '-'} 1", change)


_BY_REDUCTION = (
    ("difference from the mean", "ReduceMean", "Subtract", 3.5),
    ("quotient by the length", "ReduceL2", "Divide", 3.5),
    ("quotient by the sum", "ReduceSum", "Divide", 3.5),
    ("difference from the largest", "ReduceMax", "Subtract", 4.0),
)
"""Combinations of a value with its reduction along the last axis, with prices."""


def _by_reduction(site: GraphSite, place: InsertPoint, axis: int, reduction: str, name: str, patch: ModelPatch) -> None:
    graph, value = patch.graph(site.scope), place.source
    axes = graph.integers([axis])
    reduced = graph.add(reduction, (value, axes), {"keep_dims": "true"}, graph.port(value))
    place.put(graph, graph.add(name, (value, reduced), {"auto_broadcast": "numpy"}, graph.port(value)))


def _masked(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield a mask of what comes later before a Softmax of scores by queries and keys."""
    source = site.sources(layer)[0]
    form = site.form(source)
    if source is None or form is None or len(form.shape) < 2 or not 1 < form.shape[-2] <= form.shape[-1]:
        return
    place, (queries, keys) = InsertPoint(source, layer.id, 0), form.shape[-2:]
    for offset in dict.fromkeys((keys - queries, 0)):
        mask = np.where(np.tri(queries, keys, offset, np.bool_), 0, -np.inf).astype(form.dtype)
        change = partial(insert_with, site.scope, place, "Add", mask, {"auto_broadcast": "numpy"}, 0)
        yield inserted(site, place, layer, 3.0, "", change, "mask of later keys")


def _moved(site: GraphSite, place: InsertPoint, layer: Layer, form: ValueForm, dearer: float) -> Iterator[RepairEdit]:
    """Yield insertions that move elements: Transpose, Reverse, Roll by one."""
    rank = len(form.shape)
    if not 1 <= rank <= 5 or form.dtype == np.bool_:
        return
    for a, b in combinations(range(rank), 2):
        if form.shape[a] == form.shape[b] > 1:
            change = partial(_transpose, site, place, swapped(range(rank), a, b))
            yield inserted(site, place, layer, 2.5 + dearer, f"Transpose of axes {a} and {b}", change)
    for axis, size in enumerate(form.shape):
        if size > 1:
            change = partial(_reverse, site, place, axis)
            yield inserted(site, place, layer, 4.0 + dearer, f"reversal of axis {axis}", change)
            for step in (1, -1) if size > 2 else ():
                roll = partial(_roll, site, place, axis, step)
                yield inserted(site, place, layer, 4.5 + dearer, f"shift of axis {axis} by {step}", roll)


def _transpose(site: GraphSite, place: InsertPoint, order: list[int], patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    made = graph.add("Transpose", (place.source, graph.integers(order)), {}, graph.port(place.source))
    place.put(graph, made)


def _reverse(site: GraphSite, place: InsertPoint, axis: int, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    axes = graph.integers([axis])
    place.put(graph, graph.add("Reverse", (place.source, axes), {"mode": "index"}, graph.port(place.source)))


def _roll(site: GraphSite, place: InsertPoint, axis: int, step: int, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    numbers = [graph.integers([one]) for one in (step, axis)]
    place.put(graph, graph.add("Roll", (place.source, *numbers), {}, graph.port(place.source)))


def _combined(site: GraphSite, source: Source, form: ValueForm) -> Iterator[RepairEdit]:
    """Yield combinations of a value with another one in scope; those that nothing reads come first."""
    if not form.is_float:
        return
    maker = site.graph.by_id[source.layer]
    for other, price in _partners(site, source, form):
        for name, dearer in _COMBINED.items():
            change = partial(insert_with, site.scope, InsertPoint(source), name, other, {}, 0)
            yield site.edit(
                EditKind.COMBINED,
                maker,
                price + dearer,
                change,
                subject=site.name(source),
                before=name,
                after=site.name(other),
                roots=site.reader_ids(source),
            )


def _partners(site: GraphSite, source: Source, form: ValueForm) -> list[tuple[Source, float]]:
    """Return values that a value may be combined with, so that its shape stays, the nearest first; with prices."""
    position, found = site.positions[source.layer], list[tuple[float, int, Source]]()
    count = site.most(_MOST_PARTNERS, _LEAST_PARTNERS)
    for other_form in site.by_form:
        if other_form.dtype != form.dtype or not _fits_into(other_form.shape, form.shape):
            continue
        for other in site.near(other_form, position, 8 * count):
            if other == source or site.follows(other.layer, source.layer):
                continue
            layer = site.graph.by_id[other.layer]
            is_unread = not site.readers(other)
            price = 2.0 if is_unread else 5.5 if layer.type == "Constant" else 4.0
            found.append((price, abs(site.positions[other.layer] - position), other))
    found.sort()
    farther = _FARTHER * (site.size - 1)
    return [(other, price + farther * rank) for rank, (price, _farness, other) in enumerate(found[:count])]


def _fits_into(shape: Shape, other: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, other) == other
    except ValueError:
        return False


def _selected(site: GraphSite, source: Source, form: ValueForm) -> Iterator[RepairEdit]:
    """Yield a Select between a new value and an old one, by a condition in scope."""
    body = site.body
    if body is None or form.dtype == np.bool_ or not form.shape:
        return
    results = {layer.id for layer, _index in site.readers(source) if layer.type == "Result"}
    states = [edge.to_layer for edge in body.back_edges if edge.from_layer in results]
    for state in states:
        for other_form, conditions in site.by_form.items():
            if other_form.dtype != np.bool_:
                continue
            for condition in conditions:
                if site.follows(condition.layer, source.layer) or site.graph.by_id[condition.layer].type == "Constant":
                    continue
                shape = _select_shape(other_form.shape, form.shape)
                if shape is None:
                    continue
                price = 2.0 if not site.readers(condition) else 3.0
                for is_new in (True, False):
                    change = partial(_select, site, source, Source(state, 0), condition, shape, is_new)
                    yield site.edit(
                        EditKind.STATE,
                        site.graph.by_id[source.layer],
                        price,
                        change,
                        subject=site.name(source),
                        before=site.graph.by_id[state].name,
                        after=f"{'' if is_new else 'not '}{site.name(condition)}",
                        roots=site.reader_ids(source),
                    )


def _select_shape(condition: Shape, value: Shape) -> Shape | None:
    """Return the shape in which a condition selects parts of a value: its first axes, or all."""
    if _fits_into(condition, value):
        return condition
    if condition and condition == value[: len(condition)]:
        return (*condition, *((1,) * (len(value) - len(condition))))
    return None


def _select(
    site: GraphSite, new: Source, old: Source, condition: Source, shape: Shape, is_new: bool, patch: ModelPatch
) -> None:
    graph = patch.graph(site.scope)
    chooser = condition
    if shape != (site.form(condition) or ValueForm(np.dtype(bool), ())).shape:
        target = graph.integers(shape)
        chooser = graph.add("Reshape", (condition, target), {"special_zero": "false"}, graph.port(condition))
    sources = (chooser, new, old) if is_new else (chooser, old, new)
    made = graph.add("Select", sources, {"auto_broadcast": "numpy"}, graph.port(new))
    graph.redirect(new, made, but=graph.added)


def _gathered(site: GraphSite, source: Source, form: ValueForm) -> Iterator[RepairEdit]:
    """Yield a Gather of the rows of a value by indices in scope, as the reordering of beams is."""
    if not form.shape or not site.scope:
        return
    for other_form, indices in site.by_form.items():
        if not other_form.is_integer or other_form.shape != form.shape[:1] or form.shape[0] < 2:
            continue
        for index in indices:
            if index == source or site.follows(index.layer, source.layer):
                continue
            change = partial(_gather, site, source, index)
            what = f"Gather of its rows by '{site.name(index)}'"
            maker = site.graph.by_id[source.layer]
            yield inserted(site, InsertPoint(source), maker, 3.0, what, change)


def _gather(site: GraphSite, source: Source, index: Source, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    axis = graph.integers(0)
    made = graph.add("Gather", (source, index, axis), {"batch_dims": "0"}, graph.port(source))
    InsertPoint(source).put(graph, made)


def _rank_changed(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield an axis of 1 that is added to or taken from an operand which is broadcast against another rank."""
    sources = site.sources(layer)
    if FAMILY_OF.get(layer.type) not in _BROADCASTS or len(sources) < 2:
        return
    for index, source in enumerate(sources):
        form = site.form(source)
        if form is None or source is None:
            continue
        place = InsertPoint(source, layer.id, index)
        for axis in range(len(form.shape) + 1):
            if form.shape:
                change = partial(_with_axis, site, place, axis, "Unsqueeze")
                yield inserted(site, place, layer, 2.5, "", change, f"Unsqueeze of axis {axis}")
        for axis, size in enumerate(form.shape):
            if size == 1:
                change = partial(_with_axis, site, place, axis, "Squeeze")
                yield inserted(site, place, layer, 2.5, "", change, f"Squeeze of axis {axis}")


def _with_axis(site: GraphSite, place: InsertPoint, axis: int, name: str, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    axes = graph.integers([axis])
    place.put(graph, graph.add(name, (place.source, axes), {}, graph.port(place.source)))


def _reshaped(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield a Reshape to the same axes in another order and a Transpose, as heads are split."""
    target, form = site.output_form(layer), site.form(site.sources(layer)[0])
    if target is None or form is None or not 2 <= len(target.shape) <= 5:
        return
    rank = len(target.shape)
    for a, b in combinations(range(rank), 2):
        if target.shape[a] > 1 and target.shape[b] > 1:
            change = partial(_reshape, site, layer, target.shape, swapped(range(rank), a, b))
            yield site.edit(
                EditKind.OPERATION,
                layer,
                2.0,
                change,
                before="Reshape",
                after=f"Reshape and Transpose of axes {a} and {b}",
                roots=site.reader_ids(Source(layer.id, 0)),
            )
    inner = range(len(form.shape))
    for a, b in combinations(inner, 2):
        if form.shape[a] > 1 and form.shape[b] > 1 and form.shape[a] != form.shape[b]:
            source = site.sources(layer)[0]
            assert source is not None
            place = InsertPoint(source, layer.id, 0)
            change_input = partial(_transpose, site, place, swapped(inner, a, b))
            yield inserted(site, place, layer, 2.5, "", change_input, f"Transpose of axes {a} and {b}")


def _reshape(site: GraphSite, layer: Layer, shape: Shape, order: list[int], patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    graph.read(layer.id, 1, graph.integers([shape[axis] for axis in order]))
    axes = graph.integers(order)
    made = graph.add("Transpose", (Source(layer.id, 0), axes), {}, graph.port(Source(layer.id, 0)))
    graph.redirect(Source(layer.id, 0), made, but=(made.layer,))
