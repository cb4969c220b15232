"""Survey a tensor in steps: statistics and histogram, a picture, a search.

The picture shows the largest magnitudes. Each survey is a generator that yields after some milliseconds of work and
returns its result. So its caller may leave off for something more urgent and continue later, or drop the survey. No
temporary is larger than some megabytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from enum import StrEnum

import numpy as np

from stepper.element_types import FLOATING, Array, Indices
from stepper.records import Record
from stepper.tensors.difference import index_of
from stepper.tensors.planes import readable
from stepper.tensors.statistics import Statistics, Steps, statistics_in_steps

STEP = 2**18
"""Elements that are looked at between two yields."""

Block = Callable[[range, range], Array]
"""Some rows and columns of a plane, as an array of rank 2."""


class Survey(Record, eq=False):
    """`first_nan` and `first_infinity` are flat indices, None where there is none.

    `counts` are how many finite elements lie in each of the ranges between neighbours of `edges`; empty for texts and
    where nothing is finite.
    """

    statistics: Statistics
    first_nan: int | None
    first_infinity: int | None
    counts: Array
    edges: Array


def survey(array: Array, bins: int) -> Steps[Survey]:
    """Statistics, where the first NaN and the first Inf are, and at most so many bins of a histogram."""
    found = yield from statistics_in_steps(array)
    first_nan = first_infinity = None
    if found.nan:
        first_nan = yield from next_where(array, np.isnan, 0)
    if found.infinite:
        first_infinity = yield from next_where(array, np.isinf, 0)
    nothing = np.zeros(0)
    if found.min is None or found.max is None:
        return Survey(found, first_nan, first_infinity, nothing, nothing)
    low, high = float(found.min), float(found.max)
    if readable(array.reshape(-1)[:0]).dtype.kind in "iub" and high - low < bins:
        low, high, bins = low - 0.5, high + 0.5, int(high - low) + 1
    counts, edges = yield from _histogram(array, low, high, bins)
    return Survey(found, first_nan, first_infinity, counts, edges)


def bin_range(low: float, high: float, bins: int) -> tuple[float, float]:
    """Return the range of so many equal bins, wider than asked for where their edges would be the same floats."""
    largest = max(abs(low), abs(high))
    step = largest - math.nextafter(largest, 0.0)
    lack = max(4 * bins * step, 0.0 if high > low else 1.0) - (high - low)
    if lack <= 0:
        return low, high
    most = float(np.finfo(np.float64).max)
    if high + lack > most:
        return low - lack, high
    return (low, high + lack) if low - lack < -most else (low - lack / 2, high + lack / 2)


def _histogram(array: Array, low: float, high: float, bins: int) -> Steps[tuple[Array, Array]]:
    if not math.isfinite(high - low):
        low, high = max(low, -1e300), min(high, 1e300)
    counts = np.zeros(bins, np.int64)
    edges = np.histogram_bin_edges(np.zeros(0), bins, bin_range(low, high, bins))
    for _, chunk in _flat_parts(array):
        numbers = chunk.astype(np.float64)
        if array.dtype in FLOATING:
            numbers = numbers[np.isfinite(numbers)]
        counts += np.histogram(numbers, bins, (edges[0], edges[-1]))[0]
        yield
    return counts, edges


def next_where(array: Array, test: Callable[[Array], Array], start: int) -> Steps[int | None]:
    """Return the flat index of the first element from `start` on that passes a test of floats; None if none does."""
    if array.dtype not in FLOATING:
        return None
    for begin, chunk in _flat_parts(array, start):
        with np.errstate(all="ignore"):
            places = np.flatnonzero(test(chunk))
        if places.size:
            return begin + int(places[0])
        yield
    return None


def previous_where(array: Array, test: Callable[[Array], Array], stop: int) -> Steps[int | None]:
    """Return the flat index of the last element before `stop` that passes a test of floats; None if none does."""
    if array.dtype not in FLOATING:
        return None
    while stop > 0:
        begin = max(0, stop - STEP)
        _, chunk = next(_flat_parts(array, begin))
        places = np.flatnonzero(test(chunk[: stop - begin]))
        if places.size:
            return begin + int(places[-1])
        stop = begin
        yield
    return None


def _flat_parts(array: Array, start: int = 0) -> Generator[tuple[int, Array], None, None]:
    """Yield the elements in row-major order from `start` on, in parts, as plain numbers; and where each begins."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    for begin in range(start, array.size, STEP):
        yield begin, readable(np.asarray(flat[begin : begin + STEP]))


class CellStatistic(StrEnum):
    """Number that stands for the elements of a cell."""

    MEAN = "mean"
    LARGEST = "largest"
    RMS = "rms"


def in_cells(block: Block, rows: Array, columns: Array, statistic: CellStatistic) -> Steps[Array]:
    """Return a plane in few cells, each one number for its elements; NaN before Inf before all else.

    `rows` and `columns` are ascending edges: cell (i, j) stands for rows[i]..rows[i+1] and columns[j]..columns[j+1],
    none of them empty. The largest is the element of largest magnitude, of two the positive one. Result: f64
    [len(rows)-1, len(columns)-1].
    """
    high = np.full((len(rows) - 1, len(columns) - 1), -np.inf)
    low, sums = np.full(high.shape, np.inf), np.zeros(high.shape)
    for cells in _bands(columns):
        begin, stop = int(columns[cells.start]), int(columns[cells.stop])
        tall = max(1, STEP // max(stop - begin, 1))
        for cell, (first, last) in enumerate(zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True)):
            for top in range(first, last, tall):
                for left in range(begin, stop, STEP):
                    part = readable(block(range(top, min(top + tall, last)), range(left, min(left + STEP, stop))))
                    starts = np.maximum(columns[cells.start : cells.stop] - left, 0) if stop - begin <= STEP else [0]
                    with np.errstate(all="ignore"):
                        place = (cell, slice(cells.start, cells.stop))
                        high[place] = np.maximum(high[place], np.maximum.reduceat(part.max(axis=0), starts))
                        low[place] = np.minimum(low[place], np.minimum.reduceat(part.min(axis=0), starts))
                        if statistic is not CellStatistic.LARGEST:
                            wide = part.astype(np.float64)
                            each = wide if statistic is CellStatistic.MEAN else np.square(wide)
                            sums[place] += np.add.reduceat(each.sum(axis=0), starts)
                    yield
    largest = np.where(-low > high, low, high)
    if statistic is CellStatistic.LARGEST:
        return largest
    means = sums / (np.diff(rows)[:, None] * np.diff(columns)[None, :])
    found = means if statistic is CellStatistic.MEAN else np.sqrt(means)
    return np.where(np.isfinite(largest), found, largest)


def _bands(columns: Array) -> list[range]:
    """Cells side by side that are looked at together: of no more than STEP columns, unless one alone has more."""
    bands: list[range] = []
    begin = 0
    for cell in range(1, len(columns) - 1):
        if columns[cell + 1] - columns[begin] > STEP:
            bands.append(range(begin, cell))
            begin = cell
    return [*bands, range(begin, len(columns) - 1)]


def standing_out(array: Array) -> Indices:
    """Return the index of the first NaN, else of the first Inf, else of the largest magnitude; of many elements among
    the first. Of what has no numbers the first element."""
    flat = readable(array.reshape(-1)[:STEP])
    if not array.ndim or not flat.size or flat.dtype.kind not in "biuf":
        return (0,) * array.ndim if array.size else ()
    wide = np.abs(flat.astype(np.float64))
    odd = np.isnan(wide)
    place = int(odd.argmax()) if odd.any() else int(wide.argmax())
    return index_of(place, array.shape)


def edges(begin: int, stop: int, cells: int) -> Array:
    """Return the edges of so many cells of almost the same size, fewer where there are fewer elements than cells."""
    cells = min(cells, stop - begin)
    return begin + (np.arange(cells + 1) * (stop - begin)) // max(cells, 1)
