"""Edits that keep the meaning and heal the numbers: a Select for a mask, a least divisor, a shift before Exp."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from stepper.element_types import Array
from stepper.ir.model import Layer, Source
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_EPS = 1e-12
_FINITE = (0, 1)


def rewrite_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the rewrites of operations that give or pass on numbers that are not finite."""
    for layer in site.operations:
        form = site.output_form(layer)
        if form is None or not form.is_float:
            continue
        if layer.type == "Multiply":
            yield from _masked(site, layer)
        elif layer.type == "Divide":
            yield _rewrite(site, layer, 2.0, partial(_safe_quotient, site, layer, form), "0 where the divisor is 0")
            yield _rewrite(site, layer, 2.25, partial(_bounded, site, layer, 1, form), f"divisor of at least {_EPS:g}")
        elif layer.type == "Log":
            tiny = partial(_bounded, site, layer, 0, form)
            yield _rewrite(site, layer, 2.0, tiny, f"of at least {_EPS:g}")
        elif layer.type == "Sqrt":
            yield _rewrite(site, layer, 2.0, partial(_from_zero, site, layer, form), "of at least 0")
        elif layer.type == "Exp":
            yield from _shifted(site, layer, form)


def _rewrite(site: GraphSite, layer: Layer, price: float, change: partial[None], what: str) -> RepairEdit:
    return site.edit(EditKind.REWRITE, layer, price, change, after=what)


def _masked(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield a Select that replaces a multiplication by a mask of zeros and ones."""
    for index, source in enumerate(site.sources(layer)):
        value = site.value(source)
        if value is None or value.size == 0 or not np.isin(value, _FINITE).all():
            continue
        other = site.sources(layer)[1 - index]
        name = "" if source is None else site.name(source)
        if other is not None and site.form(other) == site.output_form(layer):
            plain = partial(_select, site, layer, index, other)
            yield _rewrite(site, layer, 1.9, plain, f"Select where '{name}' is above 0 instead of a product")
        product = partial(_select, site, layer, index, Source(layer.id, 0))
        yield _rewrite(site, layer, 2.0, product, f"Select where '{name}' is above 0, of the product")


def _select(site: GraphSite, layer: Layer, index: int, value: Source, patch: ModelPatch) -> None:
    graph, sources = patch.graph(site.scope), site.sources(layer)
    mask, product = sources[index], Source(layer.id, 0)
    form = site.form(mask)
    assert form is not None
    zero = graph.constant(np.zeros((), form.dtype))
    is_on = graph.add("Greater", (mask, zero), {"auto_broadcast": "numpy"}, graph.port(product))
    made = graph.add("Select", (is_on, value, zero), {"auto_broadcast": "numpy"}, graph.port(product))
    graph.redirect(product, made, but=graph.added)


def _safe_quotient(site: GraphSite, layer: Layer, form: ValueForm, patch: ModelPatch) -> None:
    graph, quotient = patch.graph(site.scope), Source(layer.id, 0)
    zero = graph.constant(np.zeros((), form.dtype))
    texts = {"auto_broadcast": "numpy"}
    is_zero = graph.add("Equal", (site.sources(layer)[1], zero), texts, graph.port(quotient))
    made = graph.add("Select", (is_zero, zero, quotient), texts, graph.port(quotient))
    graph.redirect(quotient, made, but=graph.added)


def _bounded(site: GraphSite, layer: Layer, index: int, form: ValueForm, patch: ModelPatch) -> None:
    _at_least(site, layer, index, np.asarray(_EPS, form.dtype), patch)


def _from_zero(site: GraphSite, layer: Layer, form: ValueForm, patch: ModelPatch) -> None:
    _at_least(site, layer, 0, np.zeros((), form.dtype), patch)


def _at_least(site: GraphSite, layer: Layer, index: int, least: Array, patch: ModelPatch) -> None:
    graph, source = patch.graph(site.scope), site.sources(layer)[index]
    assert source is not None
    made = graph.add("Maximum", (source, graph.constant(least)), {"auto_broadcast": "numpy"}, graph.port(source))
    graph.read(layer.id, index, made)


def _shifted(site: GraphSite, layer: Layer, form: ValueForm) -> Iterator[RepairEdit]:
    """Yield an Exp whose largest exponent is 0, where a sum divides it: softmax without overflow."""
    if form.shape:
        for axis in {len(form.shape) - 1, 0}:
            change = partial(_shift, site, layer, axis)
            yield _rewrite(
                site, layer, 2.5, change, f"applied to the difference from the largest element of axis {axis}"
            )


def _shift(site: GraphSite, layer: Layer, axis: int, patch: ModelPatch) -> None:
    graph, source = patch.graph(site.scope), site.sources(layer)[0]
    assert source is not None
    axes = graph.integers([axis])
    largest = graph.add("ReduceMax", (source, axes), {"keep_dims": "true"}, graph.port(source))
    made = graph.add("Subtract", (source, largest), {"auto_broadcast": "numpy"}, graph.port(source))
    graph.read(layer.id, 0, made)
