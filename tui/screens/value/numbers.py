"""The numbers of a plane as a grid with labels; only the cells that are seen are written.

A plane of one row that is longer than the line goes on in the lines below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepper import element_types
from stepper.element_types import STRING, Array
from stepper.tensors.planes import readable
from tui.paint.rows import Row, padded
from tui.screens.value.formats import Format, bits_format, difference_format, format_of, patterns
from tui.screens.value.inspected import Inspected


class NumberGrid:
    """A window on the numbers. It follows the cursor; the wheel moves it away."""

    def __init__(self, inspected: Inspected, *, bits: bool = True) -> None:
        self._seen = inspected
        self._can_show_bits = bits
        self.top = self.left = 0
        self.format = Format(6, str)
        self._cursor: tuple[int, int] | None = None
        self._label = 4
        self._shown = (1, 1)
        self._wraps = 1

    def lines(self, width: int, height: int) -> list[Row]:
        """Return a line of labels, then as many rows of numbers as there is room for."""
        seen = self._seen
        array, plane = seen.array, seen.plane
        if array is None or height < 2:
            return []
        self._label = max(3, len(str(plane.row_label(plane.height - 1)))) + 2
        tall = min(height - 1, plane.height)
        self.top = self._in_sight(self.top, tall, plane.height, 0)
        self.format = self._format(array, tall)
        across = max(1, (width - self._label) // (self.format.width + 1))
        self._wraps = min(height // 2, -(-plane.width // across)) if plane.height == 1 else 1
        if self._wraps > 1:
            return self._wrapped(array, across)
        self.left = self._in_sight(self.left, across, plane.width, 1)
        self._cursor, self._shown = seen.place, (tall, across)
        rows = range(self.top, min(self.top + tall, plane.height))
        columns = range(self.left, min(self.left + across, plane.width))
        items = self._items(array, rows, columns)
        if items is None:
            return [[(f" fetching {self._seen.other_name} ...", "dim")]]
        return [self._labels(columns), *self._rows(items, rows, columns)]

    def _wrapped(self, array: Array, across: int) -> list[Row]:
        """Return one row in several lines, each below its labels."""
        width, place = self._seen.plane.width, self._seen.place
        first, at = self.left // across, place[1] // across
        if self._cursor != place:
            first = min(max(first, at - self._wraps + 1), at)
        first = max(0, min(first, -(-width // across) - self._wraps))
        self.left, self._cursor, self._shown = first * across, place, (1, across)
        found: list[Row] = []
        for line in range(first, first + self._wraps):
            columns = range(line * across, min((line + 1) * across, width))
            items = self._items(array, range(1), columns)
            if items is None:
                return [[(f" fetching {self._seen.other_name} ...", "dim")]]
            found += [self._labels(columns), *self._rows(items, range(1), columns)]
        return found

    def _in_sight(self, first: int, room: int, count: int, axis: int) -> int:
        """Return where the window begins, so that a cursor that has moved is in it."""
        place = self._seen.place
        at = place[axis]
        if self._cursor is None or self._cursor[axis] != at:
            is_near = first - 2 < at < first + room + 1
            first = min(max(first, at - room + 1), at) if is_near else at - room // 2
        return max(0, min(first, count - room))

    def scroll(self, down: int, across: int) -> None:
        """Look elsewhere; the cursor stays."""
        self.top += down
        self.left += across + (down * self._shown[1] if self._wraps > 1 else 0)

    def page(self) -> int:
        """Return how many rows are seen."""
        return self._shown[0]

    def place_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Row and column of the element that is drawn in a cell."""
        if y < 1 or x < self._label:
            return None
        column = (x - self._label) // (self.format.width + 1)
        if self._wraps > 1:
            is_there = column < self._shown[1] and y // 2 < self._wraps
            return (0, self.left + y // 2 * self._shown[1] + column) if is_there else None
        return self.top + y - 1, self.left + column

    # --- what stands in the cells --------------------------------------------------------------------------------

    @property
    def _is_bits(self) -> bool:
        return self._can_show_bits and self._seen.view == "bits"

    def _format(self, array: Array, tall: int) -> Format:
        """Return one format for all of the tensor where its extremes are known, else for the rows that are seen."""
        seen, plane = self._seen, self._seen.plane
        if self._is_bits and element_types.of(array) is not STRING:
            return self._wide_enough(bits_format(array))
        rows, columns = range(self.top, self.top + tall), range(self.left, min(self.left + 64, plane.width))
        if seen.against and not self._is_bits:
            part = seen.block(rows, columns)
            return self._wide_enough(Format(6, str) if part is None else difference_format(part, seen.digits))
        survey = seen.survey()
        low, high = (None, None) if survey is None else (survey.statistics.min, survey.statistics.max)
        return self._wide_enough(format_of(readable(plane.block(array, rows, columns)), seen.digits, low, high))

    def _wide_enough(self, form: Format) -> Format:
        """For the labels above the numbers, too."""
        label = len(str(self._seen.plane.column_label(self._seen.plane.width - 1)))
        return form if label <= form.width else Format(label, form.write, form.note, form.to_the_left)

    def _items(self, array: Array, rows: range, columns: range) -> Array | None:
        seen = self._seen
        if self._is_bits:
            return patterns(np.ascontiguousarray(seen.plane.block(array, rows, columns)))
        if seen.against and seen.is_numeric():
            return seen.block(rows, columns)
        return readable(seen.plane.block(array, rows, columns))

    def _changed(self, rows: range, columns: range) -> list[list[bool]] | None:
        """Return which cells are others than before the last movement."""
        seen = self._seen
        array, earlier = seen.array, seen.earlier
        if array is None or earlier is None or earlier.shape != array.shape or earlier.dtype != array.dtype:
            return None
        now, then = (np.ascontiguousarray(seen.plane.block(one, rows, columns)) for one in (array, earlier))
        found: list[list[bool]] = (patterns(now) != patterns(then)).tolist()
        return found

    def _labels(self, columns: range) -> Row:
        plane, column = self._seen.plane, self._seen.place[1]
        row: Row = [(" " * self._label, "")]
        for at in columns:
            text = padded(str(plane.column_label(at)), self.format.width, right=not self.format.to_the_left)
            row.append((f"{text} ", "title-on" if at == column else "dim"))
        return row

    def _rows(self, items: Array, rows: range, columns: range) -> list[Row]:
        plane = self._seen.plane
        row_at, column_at = self._seen.place
        changed = self._changed(rows, columns)
        cell = self.format.cell
        found: list[Row] = []
        for down, values in enumerate(items.tolist()):
            at = rows[down]
            label = f"{plane.row_label(at):>{self._label - 1}} " if plane.height > 1 else " " * self._label
            row: Row = [(label, "title-on" if at == row_at else "dim")]
            bold = changed[down] if changed is not None else None
            for across, item in enumerate(values):
                if not plane.is_there(at, columns[across]):
                    break
                if at == row_at and columns[across] == column_at:
                    tone = "now"
                else:
                    tone = self._tone(item, is_new=bold is not None and bold[across])
                row += [(cell(item), tone), (" ", "")]
            found.append(row)
        return found

    def _tone(self, item: Any, *, is_new: bool) -> str:
        if isinstance(item, float) and not math.isfinite(item):
            return "bad"
        return "strong" if is_new else "dim" if not item or self._seen.shown.is_old else ""
