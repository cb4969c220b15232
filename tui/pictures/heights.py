"""Which height each row of values over iterations has. Pure functions of sizes and lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

_MOST_BARS: Final = 6
_LEAST_LEFT: Final = 2
"""Lines that another row keeps when one is made taller."""
_TALLEST: Final = 6
"""Lines of one element at most."""


class Want(NamedTuple):
    """A row as its height sees it: numbers a column, whether they are a picture, with words for its elements, with NaN.

    `is_born`: the NaN or Inf is born in it. `taller` are the lines that were asked for beside.
    """

    size: int
    is_picture: bool = True
    is_labelled: bool = False
    is_bad: bool = False
    is_born: bool = False
    is_selected: bool = False
    taller: int = 0

    def half(self, *, tall: bool, plain: bool) -> int:
        """Return the lines for half blocks for all elements; of a large value as many as are readable."""
        if not self.is_picture:
            return min(2, self.size)
        return min(self.size if plain else -(-self.size // 2), 16 if tall and self.size > 16 else 8)


class Heights(NamedTuple):
    """Lines of each row, how many are left, and whether the air between groups is among them."""

    lines: list[int]
    left: int
    is_aired: bool


def heights(
    wants: Sequence[Want], room: int, air: int = 0, *, tall: bool = True, plain: bool = False, below: int = 0
) -> Heights:
    """Return how many lines each row has, of so many in all.

    Each has one. Then, while all rows of one size can have it, in this order: half a line for each labelled element,
    two lines, four, the air, a line for each labelled element, half lines for all elements (at most 8, if `tall` 16),
    whole lines for 8 and for 16 elements. What is left goes to rows with NaN or Inf, the birth first, then to the
    selected one. Where nothing is left, what is to be taller takes it from others. `plain`: a line an element, never a
    half. Fewer lines than `below`, of which nothing else can be made, go to the bars.
    """
    found = [1] * len(wants)
    room -= len(found)

    def half(one: Want) -> int:
        return one.half(tall=tall, plain=plain)

    def labelled(one: Want) -> int:
        return one.size if one.is_labelled and one.size <= 24 else 0

    first: list[Callable[[Want], int]] = [
        lambda one: -(-labelled(one) // (1 if plain else 2)),
        lambda one: min(2, half(one)),
        lambda one: min(4, half(one)),
    ]
    then: list[Callable[[Want], int]] = [
        labelled,
        half,
        lambda one: one.size if one.size <= 8 else 0,
        lambda one: one.size if one.size <= 16 else 0,
    ]
    for goal in first:
        room = _towards(goal, wants, found, room, shares=False)
    is_aired = bool(air) and air <= room
    room -= air if is_aired else 0
    for goal in then:
        room = _towards(goal, wants, found, room, shares=True)
    left = _give_rest(wants, found, room)
    return Heights(found, _give_bars(wants, found, left) if left < below else left, is_aired)


def fill_up(sizes: Sequence[int], lines: Sequence[int], room: int) -> list[int]:
    """Return the lines of pictures when so many more are given to them; `sizes` are their elements, 0 for no picture.

    First half a line an element for all, equally; then a whole line where all of one size, else the first of them, can
    have it; then for all whole ones the same number of lines an element, and more for those that are lower than others.
    """
    found = list(lines)
    while low := [k for k, size in enumerate(sizes) if found[k] < -(-size // 2)]:
        if room < len(low):
            break
        for k in low:
            found[k] += 1
        room -= len(low)
    for size in sorted({*sizes} - {0}):
        same = [k for k in range(len(sizes)) if sizes[k] == size and found[k] < size]
        lack = {k: size - found[k] for k in same}
        for k in same:
            if sum(lack.values()) <= room or lack[k] <= room:
                found[k], room = size, room - lack.pop(k)
    whole = [k for k, size in enumerate(sizes) if size and found[k] == size]
    each = min(_TALLEST, 1 + room // max(sum(sizes[k] for k in whole), 1))
    for k in whole:
        found[k], room = found[k] * each, room - sizes[k] * (each - 1)
    tallest = max((lines for lines, size in zip(found, sizes, strict=True) if size), default=0)
    while lower := [k for k in whole if found[k] + sizes[k] <= min(tallest, sizes[k] * _TALLEST) and sizes[k] <= room]:
        lowest = min(lower, key=lambda k: found[k])
        found[lowest], room = found[lowest] + sizes[lowest], room - sizes[lowest]
    return found


def _towards(goal: Callable[[Want], int], wants: Sequence[Want], found: list[int], room: int, *, shares: bool) -> int:
    """Give rows of one size what all of them can have; if it `shares`, large ones get equal parts of too little."""
    for size in sorted({one.size for one in wants}):
        same = [k for k, one in enumerate(wants) if one.size == size and goal(one) > found[k]]
        need = sum(goal(wants[k]) - found[k] for k in same)
        if need <= room:
            room -= need
            for k in same:
                found[k] = goal(wants[k])
        elif shares and size > 16 and room >= len(same):
            for k in same:
                found[k] += room // len(same)
            room -= room // len(same) * len(same)
    return room


def _give_rest(wants: Sequence[Want], found: list[int], room: int) -> int:
    """Give the lines that are left, and those that were asked for; return what is left then.

    Half lines for all elements: rows with NaN or Inf first, then the selected one; then whole lines for the former.
    """
    order = sorted(
        range(len(wants)), key=lambda k: (not wants[k].is_born, not wants[k].is_bad, not wants[k].is_selected)
    )
    for k in order:
        half = -(-wants[k].size // 2)
        if wants[k].is_picture and found[k] < half:
            more = min(half - found[k], room)
            found[k], room = found[k] + more, room - more
    for k in order:
        one = wants[k]
        whole = one.size if one.is_picture and (one.is_bad or one.is_selected) and one.size <= 8 else 0
        if found[k] < whole <= found[k] + room:
            found[k], room = whole, room - whole + found[k]
    for k, one in enumerate(wants):
        if one.taller:
            room += _taken(wants, found, k, min(one.taller, one.size - found[k]) - room)
            lines = _snapped(one, max(1, min(found[k] + one.taller, one.size, found[k] + room)))
            lines = lines if lines <= found[k] + room else found[k]
            room -= lines - found[k]
            found[k] = lines
    return room


def _taken(wants: Sequence[Want], found: list[int], taker: int, lack: int) -> int:
    """Take lines from other rows, the tallest first, for one that is to be taller; return how many."""
    taken = 0
    while taken < lack:
        others = [k for k, one in enumerate(wants) if k != taker and found[k] > _LEAST_LEFT and not one.taller]
        if not others:
            break
        tallest = max(others, key=lambda k: found[k])
        half, lines = -(-wants[tallest].size // 2), found[tallest] - 1
        lines = half if wants[tallest].is_picture and half < lines < wants[tallest].size else lines
        taken += found[tallest] - lines
        found[tallest] = lines
    return taken


def _give_bars(wants: Sequence[Want], found: list[int], room: int) -> int:
    """Give the bars what is left, equally and up to so many lines; return what is left then."""
    bars = [k for k, one in enumerate(wants) if not one.is_picture and one.size > 1]
    while room and (lower := [k for k in bars if found[k] < _MOST_BARS]):
        least = min(lower, key=lambda k: found[k])
        found[least], room = found[least] + 1, room - 1
    return room


def _snapped(one: Want, lines: int) -> int:
    """Return a height at which no line of a picture is empty: half a line an element at most, or a whole one."""
    half = -(-one.size // 2)
    if not one.is_picture or lines <= half:
        return lines
    return one.size if one.taller > 0 else half
