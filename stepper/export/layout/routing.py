"""Edge routing, the fourth step of the layout; in the channel below each rank, a track for every wire that bends."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.export.layout.channels import Bend, tracks
from stepper.export.layout.geometry import Box, Head, LayeredLayout, N, Net, Segment, Vertex, Wire


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
