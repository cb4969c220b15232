"""Crossings of back edges with other wires: cells at which a back edge has a gap, so that none is taken for a joint."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stepper.export.figures.figure import BACKWARD, EdgeKind
from stepper.export.layout.figure_layout import Polyline
from stepper.export.layout.geometry import Segment

_WITH_GAPS = (*BACKWARD, EdgeKind.CARRIED)

Gaps = Mapping[Segment, tuple[int, ...]]
"""The segments of a line, those that touch as one; the columns (of an upright one: the rows) of the gaps, in order."""


def gaps_of(lines: Sequence[Polyline]) -> list[Gaps]:
    """Return the gaps of each back edge, where it crosses another wire; of two back edges the level one has it.

    Nothing for other lines.
    """
    upright: dict[int, list[tuple[int, int, int]]] = {}  # by column: line, and its rows from and to
    level: dict[int, list[tuple[int, int, int]]] = {}
    for index, line in enumerate(lines):
        for column, y0, y1 in _whole((one.x0, one.y0, one.y1) for one in line.segments if one.x0 == one.x1):
            upright.setdefault(column, []).append((index, y0, y1))
        for row, x0, x1 in _whole((one.y0, one.x0, one.x1) for one in line.segments if one.y0 == one.y1):
            level.setdefault(row, []).append((index, x0, x1))
    columns, rows = sorted(upright), sorted(level)
    found: list[Gaps] = []
    for index, line in enumerate(lines):
        gaps: dict[Segment, tuple[int, ...]] = {}
        if line.kind in _WITH_GAPS:
            for row, x0, x1 in _whole((one.y0, one.x0, one.x1) for one in line.segments if one.y0 == one.y1):
                between = columns[bisect_right(columns, x0) : bisect_left(columns, x1)]
                crossed = (at for at in between if any(k != index and a < row < b for k, a, b in upright[at]))
                gaps[Segment(x0, row, x1, row)] = tuple(crossed)
            for column, y0, y1 in _whole((one.x0, one.y0, one.y1) for one in line.segments if one.x0 == one.x1):
                between = rows[bisect_right(rows, y0) : bisect_left(rows, y1)]
                gaps[Segment(column, y0, column, y1)] = tuple(
                    at
                    for at in between
                    if any(lines[k].kind not in _WITH_GAPS and a < column < b for k, a, b in level[at])
                )
        found.append(gaps)
    return found


def _whole(parts: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield strokes on a line, given by it and their ends; those that touch as one."""
    now: tuple[int, int, int] | None = None
    for line, begin, end in sorted(parts):
        if begin == end:
            continue
        if now is not None and now[0] == line and begin <= now[2]:
            now = line, now[1], max(now[2], end)
        else:
            if now is not None:
                yield now
            now = line, begin, end
    if now is not None:
        yield now


def parted(begin: float, end: float, gaps: Iterable[float], half: float) -> Iterator[tuple[float, float]]:
    """Yield what is left of a stretch without its gaps, given by their middles in order, and by half their width."""
    at = begin
    for middle in gaps:
        if middle - half > at:
            yield at, middle - half
        at = middle + half
    if end > at:
        yield at, end
