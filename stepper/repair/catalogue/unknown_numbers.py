"""Edits with unknown numbers, which are solved for: a constant, a factor, an offset, a bound, a bias."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from functools import partial

import numpy as np

from stepper.element_types import Array
from stepper.ir.model import Layer, Scope, Source
from stepper.ops.registry import find
from stepper.repair.catalogue.constant_edits import constant_of, number_text
from stepper.repair.catalogue.insertion_edits import values_of
from stepper.repair.changes import InsertPoint, insert, insert_with
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, SolvedApply, Unknowns
from stepper.repair.patch import ModelPatch

_MOST_UNKNOWNS = 64
_CLIPS = ((0.5,), (0.2,), (1.0,), (2.0,), (5.0,))


def unknown_edits(site: GraphSite, most_numbers: int) -> Iterator[RepairEdit]:
    """Yield the edits of a graph with unknown numbers, no more than the reference can decide."""
    for layer in site.graph.layers:
        if layer.type == "Constant" and site.readers(Source(layer.id, 0)):
            yield from _of_constant(site, layer, most_numbers)
    for layer in site.operations:
        yield from _of_attributes(site, layer)
        if layer.type in ("GRUCell", "GRUSequence"):
            yield from _linear_before_reset(site, layer, most_numbers)
    for source, form in values_of(site):
        if form.is_float:
            yield from _of_value(site, source)


def with_unknowns(
    site: GraphSite,
    layer: Layer,
    price: float,
    what: str,
    put: SolvedApply,
    starts: tuple[tuple[float, ...], ...],
    *,
    subject: str = "",
    before: str = "",
    roots: tuple[int, ...] = (),
    rounds: bool = True,
    kind: EditKind = EditKind.SOLVED,
) -> RepairEdit:
    """Return an edit whose numbers are solved for."""
    unknowns = Unknowns(starts, put, rounds, kind is EditKind.SOLVED_ELEMENT)
    return site.edit(
        kind,
        layer,
        price,
        _unsolved,
        subject=subject,
        before=before,
        after=what,
        roots=roots,
        unknowns=unknowns,
    )


def _unsolved(_patch: ModelPatch) -> None:
    raise ValueError("the numbers of the edit are not solved for")


def _of_constant(site: GraphSite, layer: Layer, most_numbers: int) -> Iterator[RepairEdit]:
    source = Source(layer.id, 0)
    value = site.value(source)
    if value is None or value.dtype.kind != "f" or not 0 < value.size <= min(_MOST_UNKNOWNS, most_numbers):
        return
    now = tuple(np.asarray(value, np.float64).reshape(-1).tolist())
    if not np.isfinite(now).all():
        return
    roots = site.reader_ids(source)
    starts = (now, (0.5,), (now[0] * 0.1,), (now[0] * 10,)) if len(now) == 1 else (now,)
    price = 2.75 if len(now) == 1 else 3.0 + len(now) / 32 if any(now) else 2.25
    what = "value" if len(now) == 1 else f"{len(now)} values"
    put = partial(_set_constant, site.scope, layer.id, value)
    before = number_text(value) if len(now) <= 8 else ""
    kind = EditKind.SOLVED_VALUE if len(now) == 1 else EditKind.SOLVED
    rounds = len(now) == 1
    yield with_unknowns(site, layer, price, what, put, starts, before=before, roots=roots, rounds=rounds, kind=kind)


def _set_constant(scope: Scope, layer: int, like: Array, patch: ModelPatch, numbers: Array) -> None:
    patch.graph(scope).set_value(layer, np.asarray(numbers, like.dtype).reshape(like.shape))


def _of_attributes(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    kernel = None if layer.definition is None else find(layer.type, layer.definition)
    if kernel is None or layer.bodies:
        return
    for name, parameter in kernel.attributes.items():
        annotation = kernel.annotations.get(name)
        if annotation is not float and float not in typing.get_args(annotation):
            continue
        text = layer.attributes.get(name, "")
        try:
            now = float(text or parameter.default or 0.0)
        except (TypeError, ValueError):
            continue
        starts = _CLIPS if name == "clip" and not now else ((now,), (0.5,), (1.0,))
        put = partial(_set_attribute, site.scope, layer.id, name)
        before, kind = text or "0", EditKind.SOLVED_VALUE
        yield with_unknowns(site, layer, 2.0, "value", put, starts, subject=name, before=before, kind=kind)


def _set_attribute(scope: Scope, layer: int, name: str, patch: ModelPatch, numbers: Array) -> None:
    patch.graph(scope).set_attributes(layer, {name: repr(float(numbers[0]))})


def _of_value(site: GraphSite, source: Source) -> Iterator[RepairEdit]:
    """Yield a factor, an offset and bounds on a value."""
    maker, place = site.graph.by_id[source.layer], InsertPoint(source)
    roots = site.reader_ids(source)
    value = site.value(source)
    if value is None or not value.size or (maker.type == "Parameter" and not site.scope):
        return
    subject, scope = site.name(source), site.scope
    factor = partial(_operate, scope, place, "Multiply", value.dtype.type)
    yield with_unknowns(site, maker, 4.5, "factor", factor, ((1.0,),), subject=subject, roots=roots)
    offset = partial(_operate, scope, place, "Add", value.dtype.type)
    yield with_unknowns(site, maker, 5.0, "offset", offset, ((0.0,),), subject=subject, roots=roots)
    sizes = np.abs(np.asarray(value, np.float64))
    largest = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
    if largest > 0:
        starts = tuple((largest * share,) for share in (0.9, 0.6, 0.3))
        bound = partial(_clamp, scope, place)
        yield with_unknowns(site, maker, 4.5, "bounds", bound, starts, subject=subject, roots=roots)
        least = tuple((largest * share,) for share in (0.5, 0.1, -0.5))
        for what, name in (("least value", "Maximum"), ("largest value", "Minimum")):
            change = partial(_operate, scope, place, name, value.dtype.type)
            yield with_unknowns(site, maker, 5.0, what, change, least, subject=subject, roots=roots)


def _operate(
    scope: Scope,
    place: InsertPoint,
    name: str,
    dtype: typing.Callable[[float], Array],
    patch: ModelPatch,
    numbers: Array,
) -> None:
    insert_with(scope, place, name, np.asarray(dtype(float(numbers[0]))), {"auto_broadcast": "numpy"}, 0, patch)


def _clamp(scope: Scope, place: InsertPoint, patch: ModelPatch, numbers: Array) -> None:
    bound = abs(float(numbers[0]))
    insert(scope, place, "Clamp", {"min": repr(-bound), "max": repr(bound)}, patch)


def _linear_before_reset(site: GraphSite, layer: Layer, most_numbers: int) -> Iterator[RepairEdit]:
    """Yield linear_before_reset with its bias; the recurrent product's bias is solved for."""
    found = constant_of(site, site.sources(layer)[-1])
    value = None if found is None else site.value(found)
    if value is None or found is None or layer.is_set("linear_before_reset") or value.shape[-1] % 3:
        return
    hidden = value.shape[-1] // 3
    if value.size // 3 > min(_MOST_UNKNOWNS, most_numbers):
        return
    starts = ((0.0,) * (value.size // 3),)
    put = partial(_reset_after, site, layer.id, len(site.sources(layer)) - 1, value, hidden)
    what = f"{value.size // 3} values of the bias of the recurrent product"
    yield with_unknowns(
        site, layer, 2.0, what, put, starts, subject="linear_before_reset", before="false", rounds=False
    )


def _reset_after(
    site: GraphSite, layer: int, index: int, bias: Array, hidden: int, patch: ModelPatch, numbers: Array
) -> None:
    graph = patch.graph(site.scope)
    recurrent = numbers.reshape((*bias.shape[:-1], hidden)).astype(bias.dtype)
    parts = [bias[..., : 2 * hidden], bias[..., 2 * hidden :] - recurrent, recurrent]
    graph.read(layer, index, graph.constant(np.concatenate(parts, -1)))
    graph.set_attributes(layer, {"linear_before_reset": "true"})
