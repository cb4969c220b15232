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
from stepper.tensors.pictures import LOW
from stepper.tensors.surveys import bin_range

_COURSE: Final = 48
_HISTOGRAM: Final = 8
_POINTS: Final = 512
_UNIQUE: Final = 4096
_EXACT: Final = 2.0**52
"""Whole numbers below this have halves between them in f64."""
_FENCE: Final = 3.0
"""How many times the distance of the quartiles a number may be from them without being far from all others."""
_CROWDED: Final = 0.6
"""The part of the numbers that one of equal bins may have before others are tried."""
_LEAST_FENCED: Final = 4
_SPAN: Final = 1e-30
"""What is smaller than this part of the largest number is as good as zero to a logarithm."""


class ColumnHead(Brief, Struct, frozen=True, eq=False):
    """A column in short: `course` over the iterations in 48 parts or fewer, the strongest number of each.

    `counts` is how often the finite numbers are between `edges`, `shown` the same of the rows that pass the filter. The
    edges are equally far apart; where one bin would have most of the numbers, only those of the numbers that are
    together, or all in a symmetric logarithm (`log`). `whole`: each bin is one whole number, in the
    middle of its edges.
    """

    unshown: ClassVar = ("course", "edges", "counts", "shown")

    course: Array
    edges: Array
    counts: Array
    shown: Array
    log: bool
    whole: bool = False


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
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    some = numbers[rows].astype(np.float64)
    is_whole = _are_few_whole(finite)
    edges, is_log = (_around_each(finite), False) if is_whole else _edges(finite)
    if not edges.size:
        return ColumnHead(course, edges, np.zeros(0, np.int64), np.zeros(0, np.int64), log=False)
    counts, _ = np.histogram(finite, edges)
    shown, _ = np.histogram(some[np.isfinite(some)], edges)
    return ColumnHead(course, edges, counts, shown, log=is_log, whole=is_whole)


def _are_few_whole(finite: Array) -> bool:
    """Return True for whole numbers that a bin each has room for, and that are told from their neighbours in f64."""
    if not finite.size or float(np.abs(finite).max()) >= _EXACT or float(finite.max() - finite.min()) >= _HISTOGRAM:
        return False
    return bool((finite == np.floor(finite)).all())


def _around_each(whole: Array) -> Array:
    return np.arange(whole.min(), whole.max() + 2) - 0.5


def _edges(finite: Array) -> tuple[Array, bool]:
    """Return the edges of the bins of numbers: few outliers do not leave all others in one of them."""
    if not finite.size:
        return np.zeros(0), False
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(high - low):
        return np.zeros(0), False
    bins = min(_HISTOGRAM, len(np.unique(finite))) if finite.size <= _UNIQUE else _HISTOGRAM
    beside = 0 if high > low else max(0.5, abs(low) / 2)
    most = float(np.finfo(np.float64).max)
    around = max(low - beside, -most), min(high + beside, most)
    linear = np.histogram_bin_edges(finite, bins, bin_range(*around, bins))
    if bins < _LEAST_FENCED or _most(finite, linear) <= _CROWDED * finite.size:
        return linear, False
    edges, most, is_log = linear, _most(finite, linear), False
    for other, of_log in ((_fenced(finite, low, high, bins), False), (_logarithmic(finite, low, high, bins), True)):
        if len(other) and (count := _most(finite, other)) < most:
            edges, most, is_log = other, count, of_log
    return edges, is_log


def _most(finite: Array, edges: Array) -> int:
    """Return how many of the numbers one bin has at most."""
    return int(np.histogram(finite, edges)[0].max())


def _fenced(finite: Array, low: float, high: float, bins: int) -> Array:
    """Return equal bins of the numbers that are together, and one at an end for those far from them; none of one."""
    lower, upper = np.percentile(finite, (25, 75))
    reach = _FENCE * (upper - lower)
    together = finite[(finite >= lower - reach) & (finite <= upper + reach)]
    begin, end = float(together.min()), float(together.max())
    below, above = int(low < begin), int(end < high)
    if not begin < end:
        return np.zeros(0)
    edges = np.linspace(begin, end, bins - below - above + 1)
    return np.concatenate([[low] * below, edges, [high] * above])


def _logarithmic(finite: Array, low: float, high: float, bins: int) -> Array:
    """Return equal bins of a symmetric logarithm of the numbers."""
    magnitudes = np.abs(finite[finite != 0])
    ground = max(float(np.percentile(magnitudes, LOW)), max(abs(low), abs(high)) * _SPAN)
    begin, end = float(np.arcsinh(low / ground)), float(np.arcsinh(high / ground))
    inner: Array = np.sinh(np.linspace(begin, end, bins + 1)[1:-1]) * ground
    return np.concatenate([[low], inner, [high]])


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
