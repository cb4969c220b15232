"""Edge routing, the fourth step of the layout; in the channel below each rank, a track for every wire that bends."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from msgspec import Struct, field

from stepper.export.layout.geometry import Box, Head, LayeredLayout, N, Net, Segment, Vertex, Wire

Pins = tuple[int, Sequence[int]]
"""A wire of a channel: the column at which it leaves above, and those at which it enters below."""


class Bend(NamedTuple):
    """The track on which a wire spreads to its ends, None for one that goes straight down.

    `dogleg`: (column, track) of the detour by which it gets there.
    """

    track: int | None
    dogleg: tuple[int, int] | None = None


class _Piece(Struct):
    """A horizontal part of wire `wire`: its span, the pieces that must lie below it and how many must lie above."""

    wire: int
    low: int
    high: int
    below: list[int] = field(default_factory=list)
    waits: int = 0
    floor: int = 0
    track: int = -1


def tracks(wires: Sequence[Pins]) -> tuple[list[Bend], int]:
    """Return the bend of each wire, and how many tracks the channel has.

    No two wires may leave at one column, nor two enter at one.
    """
    pieces: list[_Piece] = []
    piece_of: dict[int, int] = {}
    for wire, (column, ends) in enumerate(wires):
        if any(end != column for end in ends):
            piece_of[wire] = len(pieces)
            pieces.append(_Piece(wire, min(column, *ends), max(column, *ends)))
    _constrain(wires, pieces, piece_of)
    asides = _assign(wires, pieces)
    bends = []
    for wire in range(len(wires)):
        if wire not in piece_of:
            bends.append(Bend(None))
        elif wire in asides:
            column, upper = asides[wire]
            bends.append(Bend(pieces[piece_of[wire]].track, (column, pieces[upper].track)))
        else:
            bends.append(Bend(pieces[piece_of[wire]].track))
    return bends, max((piece.track for piece in pieces), default=-1) + 1


def _constrain(wires: Sequence[Pins], pieces: list[_Piece], piece_of: dict[int, int]) -> None:
    leaving = {wires[piece.wire][0]: index for index, piece in enumerate(pieces)}
    for index, piece in enumerate(pieces):
        for end in wires[piece.wire][1]:
            other = leaving.get(end)
            if other is not None and other != index:
                pieces[other].below.append(index)
                piece.waits += 1


def _assign(wires: Sequence[Pins], pieces: list[_Piece]) -> dict[int, tuple[int, int]]:
    """Give every piece its track; the doglegs that it took, by wire: column and piece of the detour."""
    rows: list[list[tuple[int, int]]] = []
    ready = [(piece.low, piece.high, index) for index, piece in enumerate(pieces) if not piece.waits]
    heapify(ready)
    asides: dict[int, tuple[int, int]] = {}
    circles = _circles(pieces)
    free: _FreeColumns | None = None
    placed, total = 0, len(pieces)
    while placed < total:
        if not ready:
            free = free or _FreeColumns(wires)
            index = next(circles)
            _split(wires, pieces, index, free, asides)
            total += 1
            heappush(ready, (pieces[-1].low, pieces[-1].high, len(pieces) - 1))
        _, _, index = heappop(ready)
        piece = pieces[index]
        piece.track = _fit(rows, piece)
        placed += 1
        for below in piece.below:
            other = pieces[below]
            other.floor = max(other.floor, piece.track + 1)
            other.waits -= 1
            if not other.waits:
                heappush(ready, (other.low, other.high, below))
    return asides


def _fit(rows: list[list[tuple[int, int]]], piece: _Piece) -> int:
    """Take the topmost track from the piece's floor on where it fits with a free cell to either side."""
    span = (piece.low, piece.high)
    for track in range(piece.floor, len(rows)):
        row = rows[track]
        at = bisect_left(row, span)
        if (at == 0 or row[at - 1][1] + 1 < span[0]) and (at == len(row) or span[1] + 1 < row[at][0]):
            insort(row, span)
            return track
    while len(rows) <= piece.floor:
        rows.append([])
    if rows[-1]:
        rows.append([])
    rows[-1].append(span)
    return len(rows) - 1


def _circles(pieces: list[_Piece]) -> Iterator[int]:
    """Yield waiting pieces that lie on cycles of the vertical constraints, one each time that no piece is ready."""
    above: dict[int, list[int]] = {}
    for index, piece in enumerate(pieces):
        for other in piece.below:
            above.setdefault(other, []).append(index)
    for start in range(len(pieces)):
        while pieces[start].waits and pieces[start].track < 0:
            seen: set[int] = set()
            at = start
            while at not in seen:
                seen.add(at)
                at = next(other for other in above[at] if pieces[other].track < 0 and at in pieces[other].below)
            yield at


def _split(
    wires: Sequence[Pins],
    pieces: list[_Piece],
    index: int,
    free: _FreeColumns,
    asides: dict[int, tuple[int, int]],
) -> None:
    """Cut a piece in two: a new one from the column where the wire leaves to a free one, the old one from there."""
    piece = pieces[index]
    column, ends = wires[piece.wire]
    aside = free.take(column, (piece.low + piece.high) // 2)
    upper = _Piece(piece.wire, min(column, aside), max(column, aside), [*piece.below, index])
    piece.below = []
    piece.waits += 1
    piece.low, piece.high = min(aside, *ends), max(aside, *ends)
    asides[piece.wire] = (aside, len(pieces))
    pieces.append(upper)


class _FreeColumns:
    """The columns of a channel where no wire leaves or enters."""

    def __init__(self, wires: Sequence[Pins]) -> None:
        self.used = {column for column, _ in wires} | {end for _, ends in wires for end in ends}

    def take(self, leaving: int, near: int) -> int:
        """Return the free column nearest to `near`, with room to either side where there is such a one not far away."""
        found = self._nearest(near, room=1, reach=40)
        if found is None:
            found = self._nearest(near, room=0, reach=2 * len(self.used) + 2)
        assert found is not None, "of so many columns one is free"
        self.used.add(found)
        return found

    def _nearest(self, near: int, room: int, reach: int) -> int | None:
        for distance in range(reach):
            for column in (near + distance, near - distance):
                if column >= 0 and self.used.isdisjoint(range(column - room, column + room + 1)):
                    return column
        return None


def route_ranks(rows: list[list[Vertex[N]]]) -> LayeredLayout[N]:
    """Return the layout of placed cells."""
    for row in rows:
        for cell in row:
            _leave(cell)
    boxes: dict[N, Box] = {}
    wires: dict[tuple[N, int], Wire[N]] = {}
    y = 0
    for index, row in enumerate(rows):
        channel = y + max(cell.height for cell in row)
        for cell in row:
            _draw_cell(cell, y, channel, boxes, wires)
        if index + 1 < len(rows):
            y = _route_channel([net for cell in row for net in cell.outs], rows[index + 1], channel, wires)
        else:
            y = channel
    edges = [box.x + box.width for box in boxes.values()]
    edges += [segment.x1 + 1 for wire in wires.values() for segment in wire.segments]
    ranks = tuple(tuple(cell.owner for cell in row if cell.trunk is None) for row in rows)
    return LayeredLayout(boxes, wires, ranks, max(edges, default=0), y)


def _leave(cell: Vertex[N]) -> None:
    """Set the columns where wires leave a cell: a lone one in the middle, several in the order of their ends.

    One that leads to a pin goes straight down to it where its share of the box allows.
    """
    exits = cell.pins.exits
    nets = sorted(cell.outs, key=lambda net: sum(_wanted(net)) / len(net.ends))
    for index, net in enumerate(nets):
        net.column = cell.left + exits.get(net.output, _share(cell.width, index, len(nets)))
        if net.output in exits or cell.trunk is not None:
            continue
        low = cell.left + max(cell.width * index // len(nets), 1)
        high = cell.left + min(cell.width * (index + 1) // len(nets), cell.width - 1)
        straight = [column for column in _pinned(net) if low <= column < high]
        if straight:
            net.column = min(straight, key=lambda column: abs(column - net.column))


def _wanted(net: Net[N]) -> list[float]:
    return [
        end.left + end.pins.entries.get(entry, end.width / 2) for end, entry in zip(net.ends, net.entries, strict=True)
    ]


def _pinned(net: Net[N]) -> list[int]:
    ends = zip(net.ends, net.entries, strict=True)
    return [end.left + end.pins.entries[entry] for end, entry in ends if entry in end.pins.entries]


def _enter(cell: Vertex[N]) -> list[tuple[Net[N], int]]:
    """Return the columns where wires enter a cell; a lone one comes straight down wherever the box allows."""
    if cell.trunk is not None:
        return [(cell.ins[0], cell.left)]
    if cell.pins.entries:
        return [
            (net, cell.left + cell.pins.entries[entry])
            for net in dict.fromkeys(cell.ins)
            for end, entry in zip(net.ends, net.entries, strict=True)
            if end is cell
        ]
    nets = sorted(cell.ins, key=lambda net: net.column)
    if len(nets) == 1:
        return [(nets[0], min(max(nets[0].column, cell.left + 1), cell.left + cell.width - 2))]
    return [(net, cell.left + _share(cell.width, index, len(nets))) for index, net in enumerate(nets)]


def _share(width: int, index: int, count: int) -> int:
    return width * (2 * index + 1) // (2 * count)


def _draw_cell(cell: Vertex[N], y: int, channel: int, boxes: dict[N, Box], wires: dict[tuple[N, int], Wire[N]]) -> None:
    """Draw the box and the ends of its wires down to the channel; or the trunk past the rank."""
    begin = y - 1
    if cell.trunk is None:
        boxes[cell.owner] = Box(cell.left, y, cell.width, cell.height)
        begin = y + cell.height - 1
    for net in cell.outs:
        wire = wires.setdefault((cell.owner, net.output), Wire(cell.owner, net.output))
        wire.segments.append(Segment(net.column, begin, net.column, channel))


def _route_channel(
    nets: Sequence[Net[N]], row: Sequence[Vertex[N]], top: int, wires: dict[tuple[N, int], Wire[N]]
) -> int:
    """Draw the nets from row `top` on; the first row of the rank below."""
    ends: dict[Net[N], list[tuple[int, Vertex[N]]]] = {net: [] for net in nets}
    for cell in row:
        for net, column in _enter(cell):
            ends[net].append((column, cell))
    bends, depth = tracks([(net.column, [column for column, _ in ends[net]]) for net in nets])
    bottom = top + depth  # the row of the arrow heads
    for net, bend in zip(nets, bends, strict=True):
        wire = wires[net.top.owner, net.output]
        row_of_ends = draw_bend(wire, net.column, [column for column, _ in ends[net]], bend, top)
        for column, cell in ends[net]:
            if row_of_ends < bottom:
                wire.segments.append(Segment(column, row_of_ends, column, bottom))
            if cell.trunk is None:
                wire.heads.append(Head(column, bottom, cell.owner))
    return bottom + 1


def draw_bend(wire: Wire[N], column: int, ends: Sequence[int], bend: Bend, top: int) -> int:
    """Return the horizontal part of a net with the way down to it; the row from which its ends go down."""
    if bend.track is None:
        return top
    row = top + bend.track
    if row > top and bend.dogleg is None:
        wire.segments.append(Segment(column, top, column, row))
    if bend.dogleg is not None:
        aside, upper = bend.dogleg
        if upper:
            wire.segments.append(Segment(column, top, column, top + upper))
        wire.segments.append(Segment(min(column, aside), top + upper, max(column, aside), top + upper))
        wire.segments.append(Segment(aside, top + upper, aside, row))
        column = aside
    wire.segments.append(Segment(min(column, *ends), row, max(column, *ends), row))
    return row
