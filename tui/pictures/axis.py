"""Time from left to right: which iterations stand in which cells. Pure functions of counts and widths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

ENTERED: Final = 2
"""Cells for what entered the loop, left of iteration 0."""
_STEPS: Final = tuple(digit * 10**power for power in range(9) for digit in (1, 2, 5))


class Slot(NamedTuple):
    """Cells of an axis, from column `start` on, for the half-open range of iterations [first, last)."""

    start: int
    width: int
    first: int
    last: int

    @property
    def is_bin(self) -> bool:
        """True if it stands for several iterations."""
        return self.last - self.first > 1


class Axis(NamedTuple):
    """The slots of one run of a loop, and the column of what entered it; None where that is not shown."""

    slots: tuple[Slot, ...]
    entered: int | None = 0

    @property
    def reach(self) -> int:
        """Return the column behind the last slot."""
        return self.slots[-1].start + self.slots[-1].width if self.slots else (self.entered or 0) + ENTERED + 1

    def index_of(self, iteration: int) -> int:
        """Return the index of the slot of an iteration, the nearest one where there is none; -1 without slots."""
        for index, slot in enumerate(self.slots):
            if iteration < slot.last:
                return index
        return len(self.slots) - 1

    def slot_at(self, column: int) -> Slot | None:
        """Return the slot in a column."""
        return next((slot for slot in self.slots if slot.start <= column < slot.start + slot.width), None)


def plain(count: int, room: int, widest: int, *, grows: bool = False) -> Axis:
    """Return one slot an iteration while they fit in so many cells; else the ends each, and the middle in bins.

    Of a count that `grows` bins stand for a power of two of iterations, so that columns seldom move.
    """
    begin = ENTERED + 1
    room = max(room - begin, 5)
    if count <= room:
        width = max(1, min(widest, room // max(count, 1)))
        return Axis(tuple(Slot(begin + k * width, width, k, k + 1) for k in range(count)))
    edge = (room - 2) // 3
    middle = room - 2 - 2 * edge
    inner = count - 2 * edge
    if grows:
        step = 1 << max(0, -(-inner // middle) - 1).bit_length()
        cuts = [*range(edge, edge + inner, step), edge + inner]
    else:
        cuts = [edge + inner * k // middle for k in range(middle + 1)]
    spans = [(k, k + 1) for k in range(edge)]
    slots = [Slot(begin + k, 1, *span) for k, span in enumerate(spans)]
    slots += [Slot(begin + edge + 1 + k, 1, *span) for k, span in enumerate(pairwise(cuts))]
    last = begin + edge + middle + 2
    slots += [Slot(last + k, 1, count - edge + k, count - edge + k + 1) for k in range(edge)]
    return Axis(tuple(slots))


def window(last: int, total: int | None, room: int, widest: int, *, has_entered: bool = True) -> Axis:
    """Return one slot an iteration: of all of them where they fit into so many cells, else of those up to `last`.

    `total` is how many there may be, None where that is not known: then slots are one cell, so that none moves before
    all are taken. What entered stands left of iteration 0.
    """
    start = ENTERED + 1 if has_entered else 0
    count = room - start if total is None or total > room - start else total
    if count < 1 or last >= count:
        first = max(last - room + 1, 0)
        return Axis(tuple(Slot(k, 1, first + k, first + k + 1) for k in range(max(room, 0))), None)
    width = max(1, min(widest, (room - start) // count))
    slots = tuple(Slot(start + k * width, width, k, k + 1) for k in range(count))
    return Axis(slots, 0 if has_entered else None)


def mirrored(axis: Axis) -> Axis:
    """Return the same cells for the iterations in the other direction: the first one at the right."""
    slots = zip(axis.slots, reversed(axis.slots), strict=True)
    return Axis(tuple(Slot(at.start, at.width, one.first, one.last) for at, one in slots), None)


def nested(counts: Sequence[int], room: int, widest: int) -> tuple[Axis, tuple[Axis, ...]] | None:
    """Return the axis of a loop, one slot an inner run of so many iterations, and the axes of those runs.

    None where they do not fit with one cell an iteration.
    """
    free = room - ENTERED - 1 - len(counts) * (ENTERED + 1)
    total = sum(counts)
    if not counts or free < max(total, len(counts)):
        return None
    width = max(1, min(widest, free // max(total, 1)))
    outer, inner, at = [], [], ENTERED + 1
    for k, count in enumerate(counts):
        begin = at + ENTERED
        inner.append(Axis(tuple(Slot(begin + j * width, width, j, j + 1) for j in range(count)), at))
        used = ENTERED + max(count * width, 1)
        outer.append(Slot(at, used, k, k + 1))
        at += used + 1
    return Axis(tuple(outer)), tuple(inner)


class RulerMark(NamedTuple):
    """A number of the ruler: its column, its text, and whether it is the cursor's."""

    column: int
    text: str
    is_cursor: bool = False


def ruler(axis: Axis, cursor: int | None) -> list[RulerMark]:
    """Return the numbers over the slots that do not touch one another: the cursor's, the ends, then round ones."""
    found: list[RulerMark] = []
    taken: set[int] = set()

    def put(index: int, *, is_cursor: bool = False, iteration: int | None = None) -> None:
        slot = axis.slots[index]
        text = str(slot.first if iteration is None else iteration)
        start = slot.start + max(0, (slot.width - len(text)) // 2)
        if slot.width < 3 and index == len(axis.slots) - 1 and index:
            start = max(axis.slots[0].start, slot.start + slot.width - len(text))
        if not taken & set(range(start - 1, start + len(text) + 1)):
            taken.update(range(start, start + len(text)))
            found.append(RulerMark(start, text, is_cursor))

    if axis.slots:
        if cursor is not None:
            put(axis.index_of(cursor), is_cursor=True, iteration=cursor)
        for index in _marked(axis):
            put(index)
    bins = [slot for slot in axis.slots if slot.is_bin]
    if bins:
        found += _told_bins(bins, taken)
    return found


def _told_bins(bins: Sequence[Slot], taken: set[int]) -> list[RulerMark]:
    """Return over bins how many iterations each stands for, and by which, as near to their middle as there is room."""
    begin, end = bins[0].start, bins[-1].start
    each = f"{bins[0].last - bins[0].first:,} a column "
    for text in (f" the largest of {each}", f" {each}"):
        free = [at for at in range(begin, end - len(text)) if not taken & set(range(at, at + len(text)))]
        if free and end - begin > len(text) + 4:
            return [RulerMark(min(free, key=lambda at: abs(2 * at + len(text) - begin - end)), text)]
    return []


def _marked(axis: Axis) -> Iterator[int]:
    slots = axis.slots
    longest = len(str(slots[-1].first)) + 1
    step = next((one for one in _STEPS if one * slots[0].width >= longest), _STEPS[-1])
    yield 0
    yield len(slots) - 1
    yield from (index for index, slot in enumerate(slots) if slot.first % step == 0 and not slot.is_bin)
