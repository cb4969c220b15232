"""Select planes of a tensor: the elements in the rows and columns of a picture, as views.

A plane shows two axes, each whole or in part, and one index of every other axis. A tensor with just one shown axis
is one row. A long row is folded: row after row of FOLD elements, as one reads a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.element_types import ELEMENT_TYPES, F32, STRING_DTYPE, Array, Indices, Shape
from stepper.errors import UsageError
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.records import Record

FOLD = 64
_WHOLE = slice(None)
_NF4 = ELEMENT_TYPES["nf4"].dtype
_NF4_ZERO = 7
"""The code of 0."""

Slice = tuple[int | slice | EllipsisType, ...]


class Plane(Record):
    """The rows and columns of a tensor of `shape`.

    `rows` and `columns` are axes, None where there is none. `index` holds an index for every axis, which counts for
    those that are not shown; `parts` which elements of an axis count where it is shown.
    """

    shape: Shape
    rows: int | None
    columns: int | None
    index: Indices
    parts: tuple[slice, ...]

    # --- what there is -------------------------------------------------------------------------------------------

    def places(self, axis: int) -> range:
        """Return the indices of an axis that count where it is shown."""
        return range(*self.parts[axis].indices(self.shape[axis]))

    @property
    def is_folded(self) -> bool:
        """True if one long axis runs through the rows."""
        return self.rows is None and self.columns is not None and len(self.places(self.columns)) > FOLD

    @property
    def height(self) -> int:
        """The number of rows."""
        if self.is_folded:
            return -(-self._length // FOLD)
        return 1 if self.rows is None else len(self.places(self.rows))

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1 if self.columns is None else min(self._length, FOLD) if self.is_folded else self._length

    @property
    def size(self) -> int:
        """The number of elements shown."""
        return self._length * (1 if self.rows is None else self.height)

    @property
    def _length(self) -> int:
        return 1 if self.columns is None else len(self.places(self.columns))

    def is_there(self, row: int, column: int) -> bool:
        """Return True if there is an element: the last row of a folded axis may be short."""
        inside = 0 <= row < self.height and 0 <= column < self.width
        return inside and (not self.is_folded or row * FOLD + column < self._length)

    def element(self, row: int, column: int) -> Indices:
        """Return the index in the tensor of what stands there."""
        found = list(self.index)
        if self.columns is not None:
            found[self.columns] = self.places(self.columns)[row * FOLD + column if self.is_folded else column]
        if self.rows is not None:
            found[self.rows] = self.places(self.rows)[row]
        return tuple(found)

    def place(self, element: Sequence[int]) -> tuple[int, int] | None:
        """Return the row and column of an element; None where it is not shown."""
        fixed = (axis for axis in range(len(self.shape)) if axis not in (self.rows, self.columns))
        if any(element[axis] != self.index[axis] for axis in fixed):
            return None
        row = column = 0
        if self.columns is not None:
            if element[self.columns] not in self.places(self.columns):
                return None
            column = self.places(self.columns).index(element[self.columns])
        if self.rows is not None:
            if element[self.rows] not in self.places(self.rows):
                return None
            row = self.places(self.rows).index(element[self.rows])
        return divmod(column, FOLD) if self.is_folded else (row, column)

    def row_label(self, row: int) -> int:
        """Return the index of a row along its axis; for a folded axis, its first element's index."""
        axis = self.columns if self.is_folded else self.rows
        return 0 if axis is None else self.places(axis)[row * FOLD if self.is_folded else row]

    def column_label(self, column: int) -> int:
        """Return the index of a column along its axis; of a folded axis how far it is from the row's first."""
        return column if self.is_folded or self.columns is None else self.places(self.columns)[column]

    def block(self, array: Array, rows: range, columns: range) -> Array:
        """Return a part of the plane as an array of rank 2, a view if it can be; zeros if a folded axis has ended."""
        index: list[int | slice] = list(self.index)
        for axis in (self.rows, self.columns):
            if axis is not None:
                index[axis] = self.parts[axis]
        shown = array[tuple(index)]
        if self.is_folded:
            shown = _folded(shown[rows.start * FOLD : rows.stop * FOLD])
            return shown[:, columns.start : columns.stop]
        shown = np.asarray(shown).reshape(1, -1) if self.rows is None or self.columns is None else shown
        if self.rows is not None and self.columns is None:
            shown = shown.reshape(-1, 1)
        elif self.rows is not None and self.columns is not None and self.rows > self.columns:
            shown = shown.T
        return shown[rows.start : rows.stop, columns.start : columns.stop]

    # --- another one ---------------------------------------------------------------------------------------------

    def fitted(self, shape: Shape) -> Plane:
        """Return the same for a tensor of another shape: as far as that goes, what was chosen stays chosen."""
        if len(shape) != len(self.shape):
            return plane_of(shape)
        index = tuple(max(0, min(at, size - 1)) for at, size in zip(self.index, shape, strict=True))
        return replace(self, shape=shape, index=index)

    def at(self, axis: int, index: int) -> Plane:
        """With another index of an axis that is not shown, as near as there is one."""
        near = max(0, min(index, self.shape[axis] - 1))
        return replace(self, index=tuple(near if at == axis else was for at, was in enumerate(self.index)))

    def through(self, element: Sequence[int]) -> Plane:
        """Return the plane with the same axes in which an element is; parts that leave it out become whole."""
        parts = tuple(part if element[axis] in self.places(axis) else _WHOLE for axis, part in enumerate(self.parts))
        return replace(self, index=tuple(element), parts=parts)

    def with_rows(self, axis: int) -> Plane:
        """With this axis down; that which was there goes where it came from."""
        columns = self.rows if axis == self.columns else self.columns
        return replace(self, rows=axis, columns=columns)

    def with_columns(self, axis: int) -> Plane:
        """With this axis across; that which was there goes where it came from."""
        rows = self.columns if axis == self.rows else self.rows
        return replace(self, rows=rows, columns=axis)

    def sliced(self, wanted: Slice) -> Plane:
        """Return the plane of `[0,:,3:8]`: the last two axes with a colon are shown. UsageError for another rank."""
        items = _spelled_out(wanted, len(self.shape))
        index, parts, shown = list(self.index), [_WHOLE] * len(items), []
        for axis, item in enumerate(items):
            if isinstance(item, slice):
                parts[axis] = item
                shown.append(axis)
                if not len(range(*item.indices(self.shape[axis]))) and self.shape[axis]:
                    raise UsageError(f"there is nothing in that part of axis {axis}, which has {self.shape[axis]}")
            elif -self.shape[axis] <= item < self.shape[axis]:
                index[axis] = item % self.shape[axis]
            else:
                raise UsageError(f"axis {axis} has no index {item}; the shape is {shape_text(self.shape)}")
        rows, columns = ([None, None, *shown])[-2:]
        return Plane(self.shape, rows, columns, tuple(index), tuple(parts))


def plane_of(shape: Shape) -> Plane:
    """Return the plane that one sees first: the last two axes that have more than one element."""
    rank = len(shape)
    wide = [axis for axis, size in enumerate(shape) if size != 1] or list(range(rank))[-1:]
    rows, columns = ([None, None, *wide])[-2:]
    return Plane(shape, rows, columns, (0,) * rank, (_WHOLE,) * rank)


def readable(part: Array) -> Array:
    """Return the elements in a type whose items are plain numbers, booleans or texts. For parts, not the whole.

    16-bit and 8-bit floats as f32, packed integers as 8-bit ones, nf4 as the numbers that its codes stand for.
    """
    if part.dtype == _NF4:
        from stepper.ops.convert import convert  # the first picture needs no kernels

        return convert(part, destination_type=F32)
    if part.dtype == STRING_DTYPE:
        return part
    return part.astype(np.float32) if part.dtype == np.float16 else storable(part)


def is_numeric(dtype: np.dtype[np.generic]) -> bool:
    """Return True if the elements are numbers or booleans, not texts."""
    return element_types.of_dtype(dtype) is not element_types.STRING


def _folded(vector: Array) -> Array:
    spare = -vector.size % FOLD
    if spare:
        zeros = (
            np.full(spare, _NF4_ZERO, np.uint8).view(_NF4) if vector.dtype == _NF4 else np.zeros(spare, vector.dtype)
        )
        vector = np.concatenate([vector, zeros])
    return vector.reshape(-1, FOLD)


def _spelled_out(wanted: Slice, rank: int) -> list[int | slice]:
    """Return an item for every axis."""
    items = list(wanted)
    if items.count(...) > 1 or len(items) - items.count(...) > rank:
        raise UsageError(f"{len(items)} indices are too many for a tensor of rank {rank}")
    middle = items.index(...) if ... in items else len(items)
    missing = rank - (len(items) - items.count(...))
    return [*items[:middle], *[_WHOLE] * missing, *items[middle + 1 :]]  # type: ignore[list-item]
