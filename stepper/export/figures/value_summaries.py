"""Summary of one value in one iteration: lines of text, marks of anomalies, a thumbnail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array
from stepper.export.figures.figure import Thumbnail
from stepper.export.options import ValueDetail
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.tensors.number_text import nested_text, number_text
from stepper.tensors.statistics import Statistics, statistics

MOST_ELEMENTS: Final = 12
"""Elements of a tensor that is written out."""

_THUMBNAIL: Final = (6, 24)

Grid = tuple[tuple[float, ...], ...]


class ValueMark(NamedTuple):
    """An anomaly of a value: `word` is NaN, Inf or shape; of how many elements, or what the shape was before."""

    word: str
    elements: int = 0
    before: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.elements} {self.word}" if self.elements else f"{self.word} was {shape_text(self.before)}"


class ValueSummary(Struct, frozen=True):
    """One value: type and shape, statistics where they were asked for, all numbers where they are few.

    `marks` are its anomalies. `grid` has the cells of a thumbnail.
    """

    type: str
    shape: tuple[int, ...]
    marks: tuple[ValueMark, ...]
    statistics: Statistics | None = None
    numbers: str = ""
    grid: Grid | None = None

    @property
    def described(self) -> str:
        """Such as `f32[1,16]`."""
        return f"{self.type}{shape_text(self.shape)}"


def summary(value: Any, before: Any, values: ValueDetail, *, measured: bool = False) -> ValueSummary:
    """Return the summary of a value; `before` is the value of the iteration before (None: there was none).

    `measured`: with statistics, whatever is shown.
    """
    array = np.asarray(value)
    found = statistics(array) if measured or values in (ValueDetail.STATS, ValueDetail.FULL) else None
    small = array.size <= MOST_ELEMENTS and (
        measured or values in (ValueDetail.STATS, ValueDetail.FULL, ValueDetail.THUMBNAILS)
    )
    return ValueSummary(
        type=element_types.name_of(array.dtype),
        shape=array.shape,
        marks=tuple(_marks(array, before, found)),
        statistics=found,
        numbers=nested_text(array) if small else "",
        grid=_grid(array) if values is ValueDetail.THUMBNAILS and array.size > 1 else None,
    )


def _marks(array: Array, before: Any, found: Statistics | None) -> Iterable[ValueMark]:
    if array.dtype != STRING_DTYPE and element_types.is_floating(array.dtype):
        if found is None and array.size and not bool(np.isfinite(array).all()):
            found = statistics(array)
        if found is not None and found.nan:
            yield ValueMark("NaN", found.nan)
        if found is not None and found.infinite:
            yield ValueMark("Inf", found.infinite)
    if before is not None and np.shape(before) != array.shape:
        yield ValueMark("shape", before=np.shape(before))


def value_lines(value: ValueSummary, values: ValueDetail) -> tuple[str, ...]:
    """Return the lines that stand in the value's box."""
    if values is ValueDetail.NONE:
        return ()
    if values is ValueDetail.SHAPE:
        return (value.described,)
    scalar = all(size == 1 for size in value.shape)
    if value.numbers and (scalar or values is ValueDetail.FULL):
        return (f"{value.described} {value.numbers}",) if scalar else (value.described, value.numbers)
    if values is ValueDetail.THUMBNAILS or value.statistics is None:
        return (value.described,)
    return (value.described, statistics_text(value.statistics))


def statistics_text(found: Statistics) -> str:
    """Return a text such as `-0.93 to 0.71, mean 0.02`, or `all 0`, on the finite elements."""
    if found.min is None or found.max is None or found.mean is None:
        return "no finite element" if found.size else "empty"
    if found.min == found.max:
        return f"all {number_text(found.min)}"
    return f"{number_text(found.min)} to {number_text(found.max)}, mean {number_text(found.mean)}"


def _grid(array: Array) -> Grid | None:
    """Return at most as many cells as a thumbnail has, each the mean of a part of the tensor."""
    if array.dtype == STRING_DTYPE:
        return None
    plain = storable(array).astype(np.float64)
    flat = (
        plain.reshape(1, -1)
        if plain.ndim == 1 or max(plain.shape) == plain.size
        else plain.reshape(-1, plain.shape[-1])
    )
    rows, columns = (min(most, size) for most, size in zip(_THUMBNAIL, flat.shape, strict=True))
    parts = [np.array_split(part.mean(axis=0), columns) for part in np.array_split(flat, rows)]
    return tuple(tuple(float(cell.mean()) for cell in row) for row in parts)


def thumbnails(grids: Iterable[Grid | None]) -> list[Thumbnail | None]:
    """Return the thumbnails of one value over the iterations, shades on one scale."""
    kept = list(grids)
    numbers = [cell for grid in kept if grid is not None for row in grid for cell in row if np.isfinite(cell)]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
    span = high - low or 1.0

    def shade(cell: float) -> float | None:
        return (cell - low) / span if np.isfinite(cell) else None

    return [None if grid is None else Thumbnail(tuple(tuple(map(shade, row)) for row in grid)) for grid in kept]
