"""Edits of what operations read: operands exchanged, another value of the same type and shape, uses exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

from stepper.ir.model import Layer, Source
from stepper.operation_types import CONTROL_INPUTS, VARIABLES
from stepper.repair.changes import exchange, read, set_sources, swapped
from stepper.repair.edit import EditKind, GraphSite, RepairEdit

_COMMUTATIVE = (
    "Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "Xor",
    "SquaredDifference", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
)  # fmt: skip
_MOST_VALUES = 48
"""Values that an operand is replaced by, the nearest first."""
_FARTHER = 0.02
"""Added to the price for each value that is nearer."""
_LEAST_VALUES = 12
_MOST_EXCHANGED = 24
_MOST_OPERANDS = 12


def operand_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of the operands of a graph."""
    for layer in site.operations:
        yield from _exchanged(site, layer)
    for layer in (*site.operations, *site.graph.results):
        for index, source in enumerate(site.sources(layer)):
            if source is not None:
                yield from _replaced(site, layer, index, source)
    yield from _uses_exchanged(site)


def _exchanged(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    sources, first = site.sources(layer), CONTROL_INPUTS.get(layer.type, 0)
    if layer.type in _COMMUTATIVE or len(sources) > _MOST_OPERANDS:
        return
    for a, b in combinations(range(first, len(sources)), 2):
        one, other = site.form(sources[a]), site.form(sources[b])
        if sources[a] == sources[b] or (layer.bodies and one != other):
            continue
        if one is not None and other is not None and one.dtype != other.dtype:
            continue
        yield site.edit(
            EditKind.OPERANDS_EXCHANGED,
            layer,
            1.0 if len(sources) < 4 else 1.5,
            partial(set_sources, site.scope, layer.id, swapped(sources, a, b)),
            subject=f"{a} and {b}",
        )


def _replaced(site: GraphSite, layer: Layer, index: int, source: Source) -> Iterator[RepairEdit]:
    form = site.form(source)
    if form is None:
        return
    count, farther = site.most(_MOST_VALUES, _LEAST_VALUES), _FARTHER * site.size
    near = site.near(form, site.positions[layer.id], 3 * count)
    others = [one for one in near if one != source and not _is_circle(site, layer, one)]
    priced = sorted(((_price(site, source, one, layer), rank, one) for rank, one in enumerate(others)), key=_cheapness)
    for rank, (price, _rank, other) in enumerate(priced[:count]):
        yield site.edit(
            EditKind.OPERAND,
            layer,
            price + farther * rank,
            partial(read, site.scope, layer.id, index, other),
            subject=str(index),
            before=site.name(source),
            after=site.name(other),
        )


def _is_circle(site: GraphSite, layer: Layer, other: Source) -> bool:
    return layer.type != "Result" and (other.layer == layer.id or site.follows(other.layer, layer.id))


def _cheapness(one: tuple[float, int, Source]) -> tuple[float, int]:
    return one[:2]


def _price(site: GraphSite, source: Source, other: Source, layer: Layer) -> float:
    """Return the price: low for values beside each other, for states and inputs, high between constants."""
    now, then = site.graph.by_id[source.layer], site.graph.by_id[other.layer]
    if layer.type in VARIABLES:
        return 1.0
    if now.type == "Constant" or then.type == "Constant":
        return 2.5 if now.type == then.type else 4.0
    if source.layer == other.layer:
        return 1.0
    is_near = site.follows(source.layer, other.layer) or site.follows(other.layer, source.layer)
    return 1.5 if now.type == then.type else 2.0 if is_near else 2.5


def _uses_exchanged(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield exchanges of two values in all that reads them: sine and cosine, quotient and remainder."""
    for sources in site.by_form.values():
        used = [one for one in sources if site.readers(one)]
        for a, b in combinations(used[:_MOST_EXCHANGED], 2):
            one, other = site.graph.by_id[a.layer], site.graph.by_id[b.layer]
            if site.follows(a.layer, b.layer) or site.follows(b.layer, a.layer):
                continue
            layers = sorted({layer.id for source in (a, b) for layer, _index in site.readers(source)})
            is_alike = (one.type == "Constant") == (other.type == "Constant")
            yield site.edit(
                EditKind.USES_EXCHANGED,
                one,
                (2.0 if one.type != "Constant" else 3.0) if is_alike else 4.5,
                partial(exchange, site.scope, layers, a, b),
                before=site.name(a),
                after=site.name(b),
                roots=layers,
            )
