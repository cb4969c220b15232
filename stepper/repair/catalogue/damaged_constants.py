"""Edits of constants that are damaged: numbers that are not finite, far out, lost in a narrow type, or of one scale."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from stepper.element_types import Array
from stepper.ir.model import Layer, Scope, Source
from stepper.repair.catalogue.unknown_numbers import with_unknowns
from stepper.repair.changes import set_value
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, SolvedApply
from stepper.repair.patch import ModelPatch

_LARGEST = 2**16
_MOST_UNKNOWNS = 64
_MOST_SEARCHED = 512
"""Largest constant, in elements, that is searched for a damaged number."""
_FAR = 20.0
"""How many times larger than the middle one a number is that stands far out."""
_FACTORS = ((1.0,), (0.1,), (0.01,), (10.0,))


def damaged_constant_edits(site: GraphSite, most_numbers: int) -> Iterator[RepairEdit]:
    """Yield the edits of damaged constants, with no more unknown numbers than the reference can decide."""
    most = min(_MOST_UNKNOWNS, most_numbers)
    for layer in site.graph.layers:
        source = Source(layer.id, 0)
        if layer.type != "Constant" or not site.readers(source):
            continue
        value = site.value(source)
        if value is None or value.dtype.kind != "f" or not 1 < value.size <= _LARGEST:
            continue
        for price, what, mask, start in _damages(value):
            if 0 < mask.sum() <= most:
                yield _solved(site, layer, price, f"{int(mask.sum())} {what}", value, mask, start)
        if np.isfinite(value).all() and value.any():
            put = partial(_scale, site.scope, layer.id, value)
            yield _unknown(site, layer, 3.5, "factor", put, _FACTORS)
            if 1 < value.size <= _MOST_SEARCHED and value.size > most:
                element = partial(_replace_one, site.scope, layer.id, value)
                now = tuple(np.asarray(value, np.float64).reshape(-1).tolist())
                price, kind = 6.0 + value.size / 128, EditKind.SOLVED_ELEMENT
                yield _unknown(site, layer, price, "one number", element, (now,), kind)
        yield from _normalised(site, layer, value)


def _damages(value: Array) -> Iterator[tuple[float, str, Array, Array]]:
    """Yield the price, the words, the place of damaged numbers, and where the search for them begins."""
    wide = np.asarray(value, np.float64)
    is_finite = np.isfinite(wide)
    if not is_finite.all():
        middle = float(wide[is_finite].mean()) if is_finite.any() else 0.0
        yield 2.0, "numbers that are not finite", ~is_finite, np.full(wide.shape, middle)
        return
    is_zero = wide == 0
    if 0 < is_zero.mean() < 1:
        yield 4.5, "numbers that are 0", is_zero, wide
    sizes = np.abs(wide)
    is_far = sizes > _FAR * max(float(np.median(sizes)), 1e-30)
    if is_far.any():
        middle = np.round(np.median(wide[is_far]))
        yield 3.0, "numbers that are far larger than the others", is_far, np.where(is_far, wide - middle, wide)
    elif sizes.min(initial=np.inf) > _FAR:
        yield 3.5, "numbers", np.ones(wide.shape, np.bool_), np.zeros(wide.shape)


def _solved(
    site: GraphSite, layer: Layer, price: float, what: str, value: Array, mask: Array, start: Array
) -> RepairEdit:
    put = partial(_replace, site.scope, layer.id, value, mask)
    return _unknown(site, layer, price, what, put, (tuple(start[mask].tolist()),))


def _unknown(
    site: GraphSite,
    layer: Layer,
    price: float,
    what: str,
    put: SolvedApply,
    starts: tuple[tuple[float, ...], ...],
    kind: EditKind = EditKind.SOLVED,
) -> RepairEdit:
    roots = site.reader_ids(Source(layer.id, 0))
    rounds = len(starts[0]) == 1 and kind is EditKind.SOLVED
    return with_unknowns(site, layer, price, what, put, starts, roots=roots, rounds=rounds, kind=kind)


def _replace(scope: Scope, layer: int, value: Array, mask: Array, patch: ModelPatch, numbers: Array) -> None:
    made = np.array(value)
    made[mask] = numbers.astype(value.dtype)
    patch.graph(scope).set_value(layer, made)


def _replace_one(scope: Scope, layer: int, value: Array, patch: ModelPatch, numbers: Array) -> None:
    made = np.array(value)
    made.reshape(-1)[int(numbers[0])] = value.dtype.type(numbers[1])
    patch.graph(scope).set_value(layer, made)


def _scale(scope: Scope, layer: int, value: Array, patch: ModelPatch, numbers: Array) -> None:
    with np.errstate(all="ignore"):
        patch.graph(scope).set_value(layer, (value * numbers[0]).astype(value.dtype))


def _normalised(site: GraphSite, layer: Layer, value: Array) -> Iterator[RepairEdit]:
    """Yield shares that sum up to 1 along an axis, where those of some rows do not."""
    for axis in range(value.ndim if value.ndim > 1 else 0):
        sums = value.sum(axis, keepdims=True)
        is_one = np.isclose(sums, 1, atol=1e-3)
        if 0 < is_one.mean() < 1 and sums.all():
            made = np.where(is_one, value, value / sums).astype(value.dtype)
            change = partial(set_value, site.scope, layer.id, made)
            roots = site.reader_ids(Source(layer.id, 0))
            what = f"sums of 1 along axis {axis}"
            yield site.edit(EditKind.CONSTANT, layer, 3.0, change, subject=what, roots=roots)
