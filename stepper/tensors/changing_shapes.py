"""A value that changes its shape over iterations, each laid into the smallest shape that holds all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stepper import element_types
from stepper.element_types import Array, Shape
from stepper.records import Brief
from stepper.tensors.histories import MOST_ELEMENTS, KeptStatistic, ValueHistory, plain_numbers


class ShapedHistory(Brief):
    """Numbers of such a value over some iterations, and where it has no elements.

    The rows of a column are the elements of the shape that holds all, in row-major order. Where these are more than
    MOST_ELEMENTS, a row is an index of the `axis` that changes most, by KeptStatistic of the elements that stand there.
    `there[column, row]` is False where the value of that iteration does not reach: its numbers are then 0.
    """

    unshown: ClassVar = ("there",)

    history: ValueHistory
    there: Array
    axis: int | None


def changing_shape(iterations: Sequence[int], values: Sequence[Any]) -> ShapedHistory | None:
    """Return a value that changes its shape; None where it does not, or its rank changes, and of what is no number."""
    arrays = [np.asarray(value) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) < 2 or len({len(shape) for shape in shapes}) > 1:
        return None
    if any(array.dtype.kind in "SUOT" for array in arrays):
        return None
    extents = list(zip(*shapes, strict=True))
    extent = tuple(max(sizes) for sizes in extents)
    is_whole = math.prod(extent) <= MOST_ELEMENTS
    axis = None if is_whole else max(range(len(extent)), key=lambda one: max(extents[one]) - min(extents[one]))
    columns = [_elements(array, extent) if axis is None else _slices(array, extent, axis) for array in arrays]
    begins = np.array(iterations, np.int64)
    history = ValueHistory(
        type=element_types.name_of(arrays[-1].dtype),
        shape=extent if axis is None else extent[axis : axis + 1],
        count=int(begins[-1]) + 1,
        is_whole=is_whole,
        spans=np.stack([begins, begins + 1], axis=1),
        numbers=np.stack([numbers for numbers, _ in columns], axis=1),
        shape_changes=len(shapes) - 1,
    )
    return ShapedHistory(history, np.stack([there for _, there in columns]), axis)


def _elements(array: Array, extent: Shape) -> tuple[Array, Array]:
    """Return the elements [1, element] in the shape that holds all, and which of these are there."""
    numbers, there = np.zeros(extent), np.zeros(extent, bool)
    part = tuple(slice(size) for size in array.shape)
    numbers[part], there[part] = plain_numbers(array), True
    return numbers.reshape(1, -1), there.reshape(-1)


def _slices(array: Array, extent: Shape, axis: int) -> tuple[Array, Array]:
    """Return the statistics [statistic, index] of what stands at each index of an axis, and which indices are there."""
    found, count = np.zeros((3, extent[axis])), array.shape[axis] if array.size else 0
    there = np.arange(extent[axis]) < count
    if count:
        wide = np.moveaxis(plain_numbers(array), axis, 0).reshape(count, -1).astype(np.float64)
        with np.errstate(all="ignore"):
            places = np.abs(wide).argmax(axis=1)  # of a NaN, if there is one
            found[KeptStatistic.LARGEST, :count] = wide[np.arange(count), places]
            found[KeptStatistic.MEAN, :count] = wide.mean(axis=1)
            found[KeptStatistic.RMS, :count] = np.sqrt(np.square(wide).mean(axis=1))
    return found, there
