"""The picture of a piece: an axis in so many cells, which part of it was read or written, and which is now."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from stepper.debug.inspection.views import SliceView
from tui.paint.rows import Row

DONE: Final = "▒"
NOW: Final = "█"
FREE: Final = "░"
OUTSIDE: Final = "╌"
"""What no iteration reads."""
_TONES: Final = {DONE: "bar", NOW: "accent", FREE: "faint", OUTSIDE: "ghost"}
_WIDEST: Final = 24


class Picture(Struct, frozen=True):
    """Parts of an axis of `extent` elements as half-open ranges: done before, now (None: not), used at all."""

    extent: int
    done: tuple[int, int]
    now: tuple[int, int] | None
    used: tuple[int, int]
    is_open: bool = False

    def row(self, width: int) -> Row:
        """The axis in at most so many cells; a cell that has any of the present part shows that."""
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


def picture_of_slice(taken: SliceView, iteration: int, backwards: bool) -> Picture:
    """What an input gives to this iteration, gave before, and will give."""
    size = taken.end - taken.begin
    before = iteration * size
    rest = (taken.count - iteration) * size
    if backwards:
        return Picture(
            taken.extent,
            (taken.end, taken.end + before),
            (taken.begin, taken.end),
            (taken.end - rest, taken.end + before),
        )
    return Picture(
        taken.extent,
        (taken.begin - before, taken.begin),
        (taken.begin, taken.end),
        (taken.begin - before, taken.begin + rest),
    )


def picture_of_scan(pieces: int, total: int | None, *, now: int, backwards: bool) -> Picture:
    """The places of an output: those written, and that of this iteration. Where the number of places is not known,
    those that there are."""
    places = total if total is not None else max(pieces, now + 1)
    done = min(pieces, now)
    begin = now if not backwards else places - 1 - now
    written = (0, done) if not backwards else (places - done, places)
    return Picture(places, written, (begin, begin + 1), (0, places), is_open=total is None)
