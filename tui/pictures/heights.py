"""Which height each row of values over iterations has. Pure functions of sizes and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Want(NamedTuple):
    """A row as its height sees it: numbers a column, whether they are a picture, or have NaN or Inf.

    `taller` are the lines that were asked for beside.
    """

    size: int
    is_picture: bool = True
    is_bad: bool = False
    is_selected: bool = False
    taller: int = 0


def heights(wants: Sequence[Want], room: int, *, tall: bool = True, plain: bool = False) -> tuple[list[int], int]:
    """Return how many lines each row has, of so many in all, and how many are left.

    Each has one. Then, while all rows of one size can have it, in this order: two lines, four, half lines for all
    elements (at most 8, if `tall` 16), whole lines for 8 and for 16 elements. What is left goes to rows with NaN or
    Inf, then to the selected one. `plain`: a line an element, never a half.
    """
    found = [1] * len(wants)
    room -= len(found)

    def half(one: Want) -> int:
        lines = one.size if plain else -(-one.size // 2)
        return min(lines, 16 if tall and one.size > 16 else 8) if one.is_picture else min(2, one.size)

    goals = (
        lambda one: min(2, half(one)),
        lambda one: min(4, half(one)),
        half,
        lambda one: one.size if one.size <= 8 else 0,
        lambda one: one.size if one.size <= 16 else 0,
    )
    for goal in goals:
        for size in sorted({one.size for one in wants}):
            same = [k for k, one in enumerate(wants) if one.size == size and goal(one) > found[k]]
            need = sum(goal(wants[k]) - found[k] for k in same)
            if need <= room:
                room -= need
                for k in same:
                    found[k] = goal(wants[k])
            elif size > 16 and room >= len(same):
                for k in same:
                    found[k] += room // len(same)
                room -= room // len(same) * len(same)
    room = _give_rest(wants, found, room)
    return found, room


def _give_rest(wants: Sequence[Want], found: list[int], room: int) -> int:
    """Give the lines that are left, and those that were asked for; return what is left then.

    Half lines for all elements: rows with NaN or Inf first, then the selected one; then whole lines for the former.
    """
    order = sorted(range(len(wants)), key=lambda k: (not wants[k].is_bad, not wants[k].is_selected))
    for k in order:
        half = -(-wants[k].size // 2)
        if wants[k].is_picture and found[k] < half:
            more = min(half - found[k], room)
            found[k], room = found[k] + more, room - more
    for k in order:
        whole = wants[k].size if wants[k].is_bad and wants[k].size <= 8 else 0
        if found[k] < whole <= found[k] + room:
            found[k], room = whole, room - whole + found[k]
    for k, one in enumerate(wants):
        if one.taller:
            lines = _snapped(one, max(1, min(found[k] + one.taller, one.size, found[k] + room)))
            lines = lines if lines <= found[k] + room else found[k]
            room -= lines - found[k]
            found[k] = lines
    return room


def _snapped(one: Want, lines: int) -> int:
    """Return a height at which no line of a picture is empty: half a line an element at most, or a whole one."""
    half = -(-one.size // 2)
    if not one.is_picture or lines <= half:
        return lines
    return one.size if one.taller > 0 else half
