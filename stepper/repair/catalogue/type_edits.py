"""Edits of element types: another type of a Convert, one that is left out, rounding on the way to an integer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from stepper.ir.model import Layer, Source
from stepper.repair.catalogue.insertion_edits import inserted, values_of
from stepper.repair.changes import InsertPoint, insert, set_attributes
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_FLOATS = ("f32", "f16", "f64")
_ROUNDINGS: Final[dict[str, dict[str, str]]] = {"Floor": {}, "Round": {"mode": "half_to_even"}, "Ceiling": {}}


def type_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of element types of a graph."""
    for layer in site.operations:
        source = site.sources(layer)[0] if layer.type == "Convert" else None
        form = site.form(source)
        if source is not None and form is not None:
            yield from _converted(site, layer, source, form)
    for source, form in values_of(site):
        if form.is_float and form.shape:
            yield site.edit(
                EditKind.TYPE,
                site.graph.by_id[source.layer],
                4.5,
                partial(_through, site, source, "f16"),
                before="f32",
                after="f16",
                roots=site.reader_ids(source),
            )


def _converted(site: GraphSite, layer: Layer, source: Source, form: ValueForm) -> Iterator[RepairEdit]:
    now = layer.attributes.get("destination_type", "")
    if now not in _FLOATS:
        for name in ("i32", "u8", "i8", "boolean"):
            if name != now:
                change = partial(set_attributes, site.scope, layer.id, {"destination_type": name})
                subject = "destination_type"
                yield site.edit(EditKind.ATTRIBUTE, layer, 3.0, change, subject=subject, before=now, after=name)
        if form.is_float:
            for name, texts in _ROUNDINGS.items():
                place = InsertPoint(source, layer.id, 0)
                yield inserted(site, place, layer, 2.0, name, partial(insert, site.scope, place, name, texts))
    if form.dtype in (np.int8, np.uint8):
        other = "i8" if form.dtype == np.uint8 else "u8"
        convert = partial(_reread, site, source, layer.id, other)
        yield site.edit(EditKind.TYPE, layer, 2.0, convert, before=form.dtype.name, after=other)


def _reread(site: GraphSite, source: Source, layer: int, name: str, patch: ModelPatch) -> None:
    """Read the bytes of a value as another type of the same width: the values above 127 wrap around."""
    graph = patch.graph(site.scope)
    graph.read(layer, 0, graph.add("Convert", (source,), {"destination_type": name}, graph.port(source)))


def _through(site: GraphSite, source: Source, name: str, patch: ModelPatch) -> None:
    """Round a value to another type and back."""
    graph = patch.graph(site.scope)
    port = graph.port(source)
    narrow = graph.add("Convert", (source,), {"destination_type": name}, port)
    back = "f32" if port.element_type is None else port.element_type.name
    graph.redirect(source, graph.add("Convert", (narrow,), {"destination_type": back}, port), but=graph.added)
