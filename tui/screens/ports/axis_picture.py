"""The picture of a piece: an axis in so many cells, which part of it was read or written, and which is now."""

from __future__ import annotations

from typing import Final

from stepper.debug.inspection.views import SliceView
from stepper.engine.loops import in_axis_order
from stepper.ir.model import Slicing
from stepper.records import Record
from tui.paint.rows import Row

DONE: Final = "▒"
NOW: Final = "█"
FREE: Final = "░"
OUTSIDE: Final = "╌"
"""The part that no iteration reads."""
_TONES: Final = {DONE: "bar", NOW: "accent", FREE: "faint", OUTSIDE: "ghost"}
_WIDEST: Final = 24


class AxisPicture(Record):
    """Parts of an axis of `extent` elements as half-open ranges: done before, now (None: not), used at all."""

    extent: int
    done: tuple[int, int]
    now: tuple[int, int] | None
    used: tuple[int, int]
    is_open: bool = False

    def row(self, width: int) -> Row:
        """Return the axis in at most so many cells; a cell that has any of the present part shows that."""
        cells = min(self.extent, width, _WIDEST)
        if cells <= 0:
            return []
        if cells == self.extent and cells * 2 <= min(width, 16):
            cells *= 2  # few elements: two cells each
        text = "".join(self._cell(cell, cells) for cell in range(cells))
        row: Row = []
        for letter in text:
            if row and row[-1][0][0] == letter:
                row[-1] = (row[-1][0] + letter, _TONES[letter])
            else:
                row.append((letter, _TONES[letter]))
        return [*row, (" …", "faint")] if self.is_open and width >= cells + 2 else row

    def _cell(self, cell: int, cells: int) -> str:
        begin = cell * self.extent // cells
        end = max((cell + 1) * self.extent // cells, begin + 1)
        if self.now is not None and _meets((begin, end), self.now):
            return NOW
        if _meets((begin, end), self.done):
            return DONE
        return FREE if _meets((begin, end), self.used) else OUTSIDE


def _meets(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def picture_of_slice(taken: SliceView) -> AxisPicture:
    """Return the parts of an axis that a sliced input gives now, gave before, and will give."""
    walk, now = taken.walk, taken.iteration
    return AxisPicture(taken.extent, walk.span(now), walk.range(now), walk.span(walk.count))


def picture_of_scan(slicing: Slicing, pieces: int, total: int | None, *, now: int) -> AxisPicture:
    """The places of an output: those written, and that of this iteration. Where the number of places is not known,
    those that there are."""
    count = total if total is not None else max(pieces, now + 1)
    order = in_axis_order(range(count), slicing)
    place, done = order.index(now), min(pieces, now)
    ends = sorted((order.index(0), order.index(done - 1))) if done else (0, -1)
    return AxisPicture(count, (ends[0], ends[1] + 1), (place, place + 1), (0, count), is_open=total is None)
