"""A stretch of iterations in the cells of a line: a slot each while they fit, else bins of many."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tui.paint.rows import Row, short_count

STEPS: Final = tuple(digit * 10**power for power in range(16) for digit in (1, 2, 5))
_WIDEST: Final = 12
"""Cells of a column of one iteration at most."""


class TimeSpan(Struct, frozen=True):
    """The iterations [begin, end) in `bins` columns of `slot` cells each."""

    begin: int
    end: int
    bins: int
    slot: int

    @staticmethod
    def fitting(begin: int, end: int, room: int) -> TimeSpan:
        """As wide as fits."""
        count, room = max(end - begin, 1), max(room, 1)
        return TimeSpan(begin, begin + count, min(count, room), max(1, min(_WIDEST, room // count)))

    def at(self, iteration: int) -> int:
        """The first cell of an iteration."""
        place = (iteration - self.begin) * self.bins // (self.end - self.begin)
        return max(0, min(place, self.bins - 1)) * self.slot

    def covered(self, cell: int) -> tuple[int, int]:
        """The iterations of the column at a cell, as a half-open range."""
        column, count = cell // self.slot, self.end - self.begin
        begin = -(-column * count // self.bins)
        return self.begin + begin, self.begin + max(-(-(column + 1) * count // self.bins), begin + 1)

    def axis(self, now: int | None) -> Row:
        """The number line; that of the moment whole and reversed, and nothing touches it."""
        count = self.end - self.begin
        longest = len(short_count(self.end)) + 1
        every = next((step for step in STEPS if step * self.bins / count * self.slot >= max(longest, 5)), STEPS[-1])
        is_seen = now is not None and self.begin <= now < self.end
        text, at = (str(now), self.at(now)) if now is not None and is_seen else ("", -1)
        cells = [" "] * (self.bins * self.slot + 7)
        for iteration in range(-(-self.begin // every) * every, self.end + 1, every):
            label = short_count(iteration)
            start = (iteration - self.begin) * self.bins // count * self.slot
            is_free = start + len(label) < at or start > at + len(text) or not text
            if is_free and start + len(label) <= len(cells):
                cells[start : start + len(label)] = label
        line = "".join(cells)
        if not text:
            return [(line, "dim")]
        return [(line[:at], "dim"), (text, "now"), (line[at + len(text) :], "dim")]
