"""A column in numbers: its course over the iterations, how often which numbers are in it, statistics."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.records import Brief
from stepper.tensors.histories import strongest

_COURSE: Final = 48
_HISTOGRAM: Final = 8
_POINTS: Final = 512
_UNIQUE: Final = 4096


class ColumnHead(Brief, Struct, frozen=True, eq=False):
    """A column in short: `course` over the iterations in 48 parts or fewer, the strongest number of each.

    `counts` is how often the finite numbers are between `edges`, `shown` the same of the rows that pass the filter.
    """

    unshown: ClassVar = ("course", "edges", "counts", "shown")

    course: Array
    edges: Array
    counts: Array
    shown: Array


class ColumnDetail(Brief, Struct, frozen=True, eq=False):
    """Everything of one column: numbers of all iterations, statistics of the finite ones, and of those that are shown.

    `ranks` has for each row how many numbers are larger. `numbers` and `passes` are thinned out to `step`.
    """

    unshown: ClassVar = ("numbers", "passes")

    column: int
    low: float | None
    high: float | None
    mean: float | None
    median: float | None
    deviation: float | None
    distinct: int
    nan: int
    infinite: int
    shown_mean: float | None
    numbers: Array
    passes: Array
    step: int


def with_gaps(numbers: Array, known: Array) -> Array:
    """Return numbers with NaN where there is none."""
    if known.all():
        return numbers
    return np.where(known, numbers.astype(np.float64), np.nan)


def head_of(numbers: Array, known: Array | None, rows: Array) -> ColumnHead:
    """Return a column in short; `known` are the iterations that have a number, `rows` those that are shown."""
    numbers = with_gaps(numbers, np.ones(len(numbers), bool) if known is None else known)
    parts = min(len(numbers), _COURSE)
    edges = np.arange(parts + 1) * len(numbers) // max(parts, 1)
    course = np.array([strongest(numbers[begin:end]) for begin, end in pairwise(edges.tolist())], np.float64)
    edges, counts, shown = _histogram(numbers, rows)
    return ColumnHead(course, edges, counts, shown)


def _histogram(numbers: Array, rows: Array) -> tuple[Array, Array, Array]:
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    if not finite.size:
        return np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(high - low):
        return np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64)
    bins = min(_HISTOGRAM, len(np.unique(finite))) if finite.size <= _UNIQUE else _HISTOGRAM
    counts, edges = np.histogram(finite, bins, (low, high) if high > low else (low - 0.5, high + 0.5))
    some = numbers[rows].astype(np.float64)
    shown, _ = np.histogram(some[np.isfinite(some)], edges)
    return edges, counts, shown


def detail_of(column: int, numbers: Array, known: Array | None, rows: Array) -> ColumnDetail:
    """Return everything of a column."""
    everything = with_gaps(numbers, np.ones(len(numbers), bool) if known is None else known)
    there = everything if known is None else everything[known]
    wide = there.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    passes = np.zeros(len(numbers), bool)
    passes[rows] = True
    some = everything[rows].astype(np.float64)
    some = some[np.isfinite(some)]
    step = max(1, -(-len(numbers) // _POINTS))
    with np.errstate(all="ignore"):
        return ColumnDetail(
            column=column,
            low=float(finite.min()) if finite.size else None,
            high=float(finite.max()) if finite.size else None,
            mean=float(finite.mean()) if finite.size else None,
            median=float(np.median(finite)) if finite.size else None,
            deviation=float(finite.std()) if finite.size else None,
            distinct=len(np.unique(there)),
            nan=int(np.isnan(wide).sum()),
            infinite=int(np.isinf(wide).sum()),
            shown_mean=float(some.mean()) if some.size else None,
            numbers=everything[::step],
            passes=passes[::step],
            step=step,
        )
