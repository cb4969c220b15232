"""Coordinate assignment, the third step of the layout: least squares in each rank, then trunks slid straight."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.export.layout.geometry import N, Tie, Vertex

GAP = 2
TRUNK_WEIGHT = 8.0
LONELY_WEIGHT = 0.05


def place_ranks(rows: list[list[Vertex[N]]], sweeps: int, room: int | None = None, gap: int = GAP) -> None:
    """Set `left` of every cell; the order within a rank stays, with `gap` free cells between neighbours.

    All are within `room` columns, if it is given and a rank has no more.
    """
    for row in rows:
        x = 0.0
        for cell in row:
            cell.x = x + cell.width / 2
            x += cell.width + gap
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        for row in rows[1:] if down else rows[-2::-1]:
            _settle(row, [cell.above if down else cell.below for cell in row], gap)
    for row in rows:
        _settle(row, [cell.above + cell.below for cell in row], gap)
    _snap(rows, room, gap)
    _close_gaps(rows, gap)
    for _ in range(2):
        for row in rows[1:]:
            _straighten(row, room, gap, down=True)
        for row in rows[-2::-1]:
            _straighten(row, room, gap, down=False)


def _settle(row: Sequence[Vertex[N]], near: Sequence[list[Tie[N]]], gap: int) -> None:
    """Set the best centres of one rank given its neighbours, by pool-adjacent-violators: exact for the given order."""
    offset = 0.0
    offsets: list[float] = []
    sums: list[float] = []  # of a block: weight * target, weight, number of cells
    weights: list[float] = []
    counts: list[int] = []
    for cell, others in zip(row, near, strict=True):
        offset += cell.width / 2
        offsets.append(offset)
        want, weight = _target(cell, others)
        total, count = (want - offset) * weight, 1
        while sums and sums[-1] * weight > total * weights[-1]:
            total += sums.pop()
            weight += weights.pop()
            count += counts.pop()
        sums.append(total)
        weights.append(weight)
        counts.append(count)
        offset += cell.width / 2 + gap
    index = 0
    for total, weight, count in zip(sums, weights, counts, strict=True):
        at = total / weight
        for cell in row[index : index + count]:
            cell.x = at + offsets[index]
            index += 1


def _target(cell: Vertex[N], others: list[Tie[N]]) -> tuple[float, float]:
    """Return the median of the neighbours, and how much it counts."""
    if not others:
        return cell.x, LONELY_WEIGHT
    xs = sorted([other.x + shift for other, _, _, shift in others])
    middle = len(xs) // 2
    want = xs[middle] if len(xs) % 2 else (xs[middle - 1] + xs[middle]) / 2
    if cell.trunk is not None and any(other.trunk is not None for other, *_ in others):
        return want, TRUNK_WEIGHT
    return want, 1.0 + len(xs)


def _snap(rows: list[list[Vertex[N]]], room: int | None, gap: int) -> None:
    """Round to whole columns from 0 on, keeping the gaps; what would be beyond the room is moved into it."""
    begin = min((cell.x - cell.width / 2 for row in rows for cell in row), default=0.0)
    end = max((cell.x + cell.width / 2 for row in rows for cell in row), default=0.0)
    if room is not None and end - begin > room:
        begin = (begin + end - room) / 2
    for row in rows:
        free = 0
        for cell in row:
            cell.left = max(round(cell.x - begin - cell.width / 2), free)
            free = cell.left + cell.width + gap
        if room is not None and free - gap > room:
            _move_within(row, room, gap)


def _move_within(row: Sequence[Vertex[N]], room: int, gap: int) -> None:
    end = max(room, sum(cell.width + gap for cell in row) - gap)
    for cell in reversed(row):
        cell.left = min(cell.left, end - cell.width)
        end = cell.left - gap


def _close_gaps(rows: list[list[Vertex[N]]], gap: int) -> None:
    """Move parts of the graph that nothing connects to each other to the left, each as far as the others allow."""
    part_of: dict[Vertex[N], int] = {}
    parts: list[list[Vertex[N]]] = []
    for row in rows:
        for start in row:
            if start not in part_of:
                part_of[start] = len(parts)
                parts.append([start])
                for cell in parts[-1]:  # grows while it is read
                    for other, *_ in (*cell.above, *cell.below):
                        if other not in part_of:
                            part_of[other] = part_of[cell]
                            parts[-1].append(other)
    if len(parts) < 2:
        return
    before = {cell: row[index - 1] if index else None for row in rows for index, cell in enumerate(row)}
    for part in sorted(parts, key=lambda part: min(cell.left for cell in part)):
        free = min(_room(cell, before[cell], gap) for cell in part if _stands_apart(cell, before[cell], part_of))
        for cell in part:
            cell.left -= free


def _stands_apart(cell: Vertex[N], neighbour: Vertex[N] | None, part_of: dict[Vertex[N], int]) -> bool:
    return neighbour is None or part_of[neighbour] != part_of[cell]


def _room(cell: Vertex[N], neighbour: Vertex[N] | None, gap: int) -> int:
    return cell.left if neighbour is None else cell.left - neighbour.left - neighbour.width - gap


def _column(tie: Tie[N]) -> int:
    """Return the column of a trunk whose wire to a neighbour is straight."""
    other = tie.cell
    if other.trunk is not None:
        return other.left
    return other.left + round(other.width / 2 + tie.shift - 0.5) if tie.shift else other.left + other.width // 2


def _straighten(row: Sequence[Vertex[N]], room: int | None, gap: int, *, down: bool) -> None:
    """Slide each trunk under (over) its neighbour on the wire, as far as those beside it allow."""
    for index, cell in enumerate(row):
        near = cell.above if down else cell.below
        if cell.trunk is None or len(near) != 1:
            continue
        want = _column(near[0])
        low = row[index - 1].left + row[index - 1].width + gap if index else 0
        if index + 1 < len(row):
            want = min(want, row[index + 1].left - gap - 1)
        elif room is not None:
            want = min(want, max(room - 1, cell.left))
        cell.left = max(want, low)
