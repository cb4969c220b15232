"""Rules of the values of Constants: what no weight is, bytes that two Constants share, divisors that are 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from stepper.diagnosis.findings import ERROR, WARNING
from stepper.diagnosis.lint.subjects import LayerSubject, ModelSubject
from stepper.diagnosis.rule import LAYER, MODEL, Hits, RuleHit, found_by, outside
from stepper.ir.model import Graph, Layer

_CELLS: Final = ("LSTMCell", "GRUCell", "RNNCell", "LSTMSequence", "GRUSequence", "RNNSequence")
_SUMMING: Final = ("MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", *_CELLS)
"""Operations that add up products with their weights."""
_TOO_LARGE: Final = 1e15
_TOO_SMALL: Final = 1e-15
"""No weights that were learnt have elements of both sizes, or of the first one in a sum of products."""

_LEAST_NORMAL: Final = float(np.finfo(np.float32).tiny)


def _reader(facts: LayerSubject) -> Layer | None:
    """Return an operation that sums products with the elements of a Constant."""
    readers = facts.graph.readers.get(facts.layer.id, ())
    return next((reader for reader, index in readers if index and reader.type in _SUMMING), None)


def _is_infinite(facts: LayerSubject) -> bool:
    return facts.magnitude == np.inf


def _is_extreme(facts: LayerSubject) -> bool:
    return _TOO_LARGE < facts.magnitude < np.inf or 0 < facts.magnitude < _LEAST_NORMAL


@found_by(
    "W101",
    "weights-have-inf",
    LAYER,
    ERROR,
    "Constant",
    says="{layer} has Inf in {count} of {size} elements, and {reader} sums products with them",
    means="Inf * 0 and Inf - Inf are NaN, and all else is Inf",
    do="look where the weights come from, and at the offset and type of the Constant",
    source="IEEE 754",
    suspects=_is_infinite,
)
def weights_have_inf(facts: LayerSubject) -> Hits:
    """Weights of products that are infinite; elsewhere Inf is mostly a mask."""
    reader, value = _reader(facts), facts.own_value
    if reader is not None and value is not None:
        count = int(np.isinf(value).sum())
        yield outside(facts.layer, count=count, size=value.size, reader=reader)


@found_by(
    "W102",
    "weights-out-of-proportion",
    LAYER,
    WARNING,
    "Constant",
    says="{layer} has elements as large as {largest:.3g}, and others of {smallest:.3g}",
    means="such numbers come of bytes that belong to something else: of another offset, type or order of bytes",
    do="look at offset, size and element_type of the Constant, and at how the .bin was written",
    suspects=_is_extreme,
)
def weights_out_of_proportion(facts: LayerSubject) -> Hits:
    """Weights that are far too large for a sum of products, or spread over all that their type can hold."""
    magnitude, value = facts.magnitude, facts.own_value
    if value is None or value.size < 2:
        return
    sizes = np.abs(value[value != 0].astype(np.float64))
    smallest = float(sizes.min())
    is_spread = smallest < _TOO_SMALL and np.unique(sizes[sizes > _TOO_LARGE]).size > 1
    if is_spread or magnitude < 1 or _reader(facts) is not None:
        yield outside(facts.layer, largest=magnitude, smallest=smallest)


@found_by(
    "W103",
    "constants-overlap",
    MODEL,
    WARNING,
    says="{layer} has the bytes {first} to {last}, and {other} the bytes {begin} to {end}: some are in both",
    means="one of the two gets bytes of the other: writers share the whole of a Constant, or nothing",
    do="look at offset and size of both",
)
def constants_overlap(model: ModelSubject) -> Iterator[tuple[LayerSubject, RuleHit]]:
    """Constants that share a part of their bytes; the one that lies where no other begins or ends is named first."""
    ranges = sorted(
        ((*found, place) for place in model.constants() if (found := _bytes(place[2]))), key=lambda one: one[:2]
    )
    if all(this[1] <= following[0] or this[:2] == following[:2] for this, following in pairwise(ranges)):
        return  # as nearly always
    edges = Counter(edge for begin, end in {one[:2] for one in ranges} for edge in (begin, end))
    before: tuple[int, int, tuple[tuple[Layer, ...], Graph, Layer]] | None = None
    for one in ranges:
        begin, end, place = one
        if before is not None and begin < before[1] and (begin, end) != before[:2]:
            other = before
            if edges[other[0]] + edges[other[1]] < edges[begin] + edges[end]:
                one, other = other, one
            facts = LayerSubject(model.model, *one[2])
            names = {"layer": facts.layer, "other": other[2][2]}
            yield facts, outside(facts.layer, **names, first=one[0], last=one[1] - 1, begin=other[0], end=other[1] - 1)
        if before is None or end > before[1]:
            before = (begin, end, place)


def _bytes(constant: Layer) -> tuple[int, int] | None:
    """Return where the bytes of a Constant begin and end; None for a single one, as what is empty is written."""
    offset, size = constant.attributes.get("offset", ""), constant.attributes.get("size", "")
    if not (offset.isdecimal() and size.isdecimal()) or max(len(offset), len(size)) > 19 or int(size) < 2:
        return None
    return int(offset), int(offset) + int(size)


@found_by(
    "W104",
    "divides-by-zero",
    LAYER,
    ERROR,
    "Divide",
    "Mod",
    "FloorMod",
    says="{layer} divides by {constant}, which is 0 in {count} of {size} elements",
    means="the quotient is Inf or NaN, or for whole numbers not defined",
    do="look whether the Constant is the one that was meant, and at its offset",
    source="specification of Divide, Mod and FloorMod",
)
def divides_by_zero(facts: LayerSubject) -> Hits:
    """Divisors of the file that are 0."""
    value = facts.constant(1)
    if value is not None and value.size and not value.all():
        yield outside(facts.layer, constant=facts.maker(1), count=int((value == 0).sum()), size=value.size)
