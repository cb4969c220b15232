"""Draw layered graphs (Sugiyama) on character cells: orthogonal edges, linear time.

This is an own implementation, because Graphviz may be absent, writes other bytes in each version, and has no terminal
cells. It has four steps: ranking, ordering (crossing minimisation), coordinates, routing. The edges from one output of
a node are one wire, which shares a trunk, so a wide fan-out costs one cell a rank.

The layout keeps these invariants: boxes lie apart; no wire runs through a box; a cell belongs to one wire, or to two
wires that cross at right angles; each edge ends in an arrow head in the cell above its target's box. x grows to the
right and y downwards.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import count, groupby, pairwise
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from stepper.records import Record

Size = tuple[int, int]
"""Width and height in cells."""
Cell = tuple[int, int]
"""Column and row."""
Tensor = tuple[int, int]
"""A node, and which output of it."""


class LayoutEdge(NamedTuple):
    """From output number `output` of a node to another node, there into the pin `entry` where it has pins."""

    source: int
    target: int
    output: int = 0
    entry: int = -1


class Pins(NamedTuple):
    """The columns of a box, from its left, at which wires enter from above (by entry) and leave (by output)."""

    entries: Mapping[int, int] = {}
    exits: Mapping[int, int] = {}


class Segment(NamedTuple):
    """A straight run of cells, both ends included, x0 <= x1 and y0 <= y1."""

    x0: int
    y0: int
    x1: int
    y1: int


class Box(Record):
    """A node's rectangle of cells."""

    x: int
    y: int
    width: int
    height: int

    @property
    def centre(self) -> int:
        """The column in the middle, where a lone wire leaves."""
        return self.x + self.width // 2


class Head(NamedTuple):
    """The cell of an arrow head, right above the target's box."""

    x: int
    y: int
    target: int


class Wire(Struct):
    """All the line work of one tensor: output number `output` of `source`. It begins on the box's lowest row."""

    source: int
    output: int
    segments: list[Segment] = []
    heads: list[Head] = []


Wires = dict[Tensor, Wire]


class LayeredLayout(Record):
    """Boxes by node, wires by (source, output), the size in cells; `ranks`: the nodes by rank, left to right."""

    boxes: dict[int, Box]
    wires: Wires
    ranks: tuple[tuple[int, ...], ...]
    width: int
    height: int


class Lane(Record):
    """Hold the path of a back edge.

    The path goes down from the tail, along row `below`, up `column`, and back along row `above`. `index` is the index
    of the back edge in the given list.
    """

    index: int
    tail: int
    head: int
    column: int
    above: int
    below: int
    segments: tuple[Segment, ...]


class Net(Struct, eq=False):
    """A wire between two ranks: from one place to all that it reaches in the next rank; `column` is where it leaves.

    `entries` are the pins of its `ends`, -1 for one that has none.
    """

    output: int
    top: Vertex
    ends: list[Vertex] = []
    entries: list[int] = []
    column: int = 0


class Tie(NamedTuple):
    """A neighbour of a vertex: `slot` is the number of the pin there, `own` of that here.

    `shift`: how far to the right of it (in columns, between middles) the vertex stands where the wire is straight.
    """

    cell: Vertex
    slot: int = 0
    own: int = 0
    shift: float = 0.0


class Vertex(Struct, eq=False):
    """A place in a rank: a node, or (`trunk`) what carries output `trunk` of `owner` past the rank.

    `above` and `below` are the neighbours once for each wire between; `x` is first the centre, then the left column.
    `position` is the place in the rank, where one with pins takes a place for each.
    """

    owner: int
    trunk: int | None
    width: int
    height: int
    ins: list[Net] = []
    outs: list[Net] = []
    above: list[Tie] = []
    below: list[Tie] = []
    pins: Pins = Pins()
    position: int = 0
    weight: float = 0.0
    x: float = 0.0
    left: int = 0

    @property
    def slots(self) -> int:
        """How many places of the rank it takes."""
        return max(len(self.pins.entries), len(self.pins.exits), 1)


Ranks = list[list[Vertex]]
"""The places of each rank, from left to right."""
Neighbours = dict[int, list[int]]
"""Nodes on one side of each node."""
Asides = dict[int, tuple[int, int]]
"""By wire the column and the piece of its detour."""
Spans = list[tuple[int, int]]

ChannelWire = tuple[int, Sequence[int]]
"""A wire of a channel: the column at which it leaves above, and those at which it enters below."""


class Bend(NamedTuple):
    """The track on which a wire spreads to its ends, None for one that goes straight down.

    `dogleg`: (column, track) of the detour by which it gets there.
    """

    track: int | None
    dogleg: Cell | None = None


class _Piece(Struct):
    """A horizontal part of wire `wire`: its span, the pieces that must lie below it and how many must lie above."""

    wire: int
    low: int
    high: int
    below: list[int] = []
    waits: int = 0
    floor: int = 0
    track: int = -1


def tracks(wires: Sequence[ChannelWire]) -> tuple[list[Bend], int]:
    """Return the bend of each wire, and how many tracks the channel has.

    No two wires may leave at one column, nor two enter at one.
    """
    pieces = [
        _Piece(wire, min(column, *ends), max(column, *ends))
        for wire, (column, ends) in enumerate(wires)
        if any(end != column for end in ends)
    ]
    asides, bends = _assign(wires, pieces), [Bend(None)] * len(wires)
    for piece in reversed(pieces):  # of a wire with a detour the piece that leads to its ends counts
        column, upper = asides.get(piece.wire, (0, -1))
        bends[piece.wire] = Bend(piece.track, (column, pieces[upper].track) if upper >= 0 else None)
    return bends, max((piece.track for piece in pieces), default=-1) + 1


def _constrain(wires: Sequence[ChannelWire], pieces: list[_Piece]) -> None:
    leaving = {wires[piece.wire][0]: index for index, piece in enumerate(pieces)}
    for index, piece in enumerate(pieces):
        for end in wires[piece.wire][1]:
            other = leaving.get(end)
            if other is not None and other != index:
                pieces[other].below.append(index)
                piece.waits += 1


def _assign(wires: Sequence[ChannelWire], pieces: list[_Piece]) -> Asides:
    """Give every piece its track; the doglegs that it took, by wire: column and piece of the detour."""
    _constrain(wires, pieces)
    rows: list[Spans] = []
    ready = [(piece.low, piece.high, index) for index, piece in enumerate(pieces) if not piece.waits]
    heapify(ready)
    asides: Asides = {}
    circles = _circles(pieces)
    used = {column for leaving, ends in wires for column in (leaving, *ends)}
    placed = 0
    while placed < len(pieces):
        if not ready:
            _split(wires, pieces, next(circles), used, asides)
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


def _fit(rows: list[Spans], piece: _Piece) -> int:
    """Take the topmost track from the piece's floor on where it fits with a free cell to either side."""
    for track in count(piece.floor):
        rows += [[] for _ in range(track + 1 - len(rows))]
        if all(high + 1 < piece.low or piece.high + 1 < low for low, high in rows[track]):
            rows[track].append((piece.low, piece.high))
            return track
    raise AssertionError("a new track is free")


def _circles(pieces: list[_Piece]) -> Iterator[int]:
    """Yield waiting pieces that lie on cycles of the vertical constraints, one each time that no piece is ready."""
    above: Neighbours = {}
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


def _split(wires: Sequence[ChannelWire], pieces: list[_Piece], index: int, used: set[int], asides: Asides) -> None:
    """Cut a piece in two: a new one from the column where the wire leaves to a free one, the old one from there."""
    piece = pieces[index]
    column, ends = wires[piece.wire]
    aside = _free_column(used, (piece.low + piece.high) // 2)
    upper = _Piece(piece.wire, min(column, aside), max(column, aside), [*piece.below, index])
    piece.below = []
    piece.waits += 1
    piece.low, piece.high = min(aside, *ends), max(aside, *ends)
    asides[piece.wire] = (aside, len(pieces))
    pieces.append(upper)


def _free_column(used: set[int], near: int) -> int:
    """Take the free column nearest to `near`, with room to either side where there is such a one not far away."""
    for room, reach in ((1, 40), (0, 2 * len(used) + 2)):
        for distance in range(reach):
            for column in (near + distance, near - distance):
                if column >= 0 and used.isdisjoint(range(column - room, column + room + 1)):
                    used.add(column)
                    return column
    raise AssertionError("of so many columns one is free")


def route_ranks(rows: Ranks) -> LayeredLayout:
    """Return the layout of placed cells."""
    for row in rows:
        for cell in row:
            _leave(cell)
    boxes: dict[int, Box] = {}
    wires: Wires = {}
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


def _leave(cell: Vertex) -> None:
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
        ends = zip(net.ends, net.entries, strict=True)
        pinned = (end.left + end.pins.entries[entry] for end, entry in ends if entry in end.pins.entries)
        straight = [column for column in pinned if low <= column < high]
        if straight:
            net.column = min(straight, key=lambda column: abs(column - net.column))


def _wanted(net: Net) -> list[float]:
    return [
        end.left + end.pins.entries.get(entry, end.width / 2) for end, entry in zip(net.ends, net.entries, strict=True)
    ]


def _enter(cell: Vertex) -> list[tuple[Net, int]]:
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


def _draw_cell(cell: Vertex, y: int, channel: int, boxes: dict[int, Box], wires: Wires) -> None:
    """Draw the box and the ends of its wires down to the channel; or the trunk past the rank."""
    begin = y - 1
    if cell.trunk is None:
        boxes[cell.owner] = Box(cell.left, y, cell.width, cell.height)
        begin = y + cell.height - 1
    for net in cell.outs:
        wire = wires.setdefault((cell.owner, net.output), Wire(cell.owner, net.output))
        wire.segments.append(Segment(net.column, begin, net.column, channel))


def _route_channel(nets: Sequence[Net], row: Sequence[Vertex], top: int, wires: Wires) -> int:
    """Draw the nets from row `top` on; the first row of the rank below."""
    ends: dict[Net, list[tuple[int, Vertex]]] = {net: [] for net in nets}
    for cell in row:
        for net, column in _enter(cell):
            ends[net].append((column, cell))
    paths, depth = channel([(net.column, [column for column, _ in ends[net]]) for net in nets], top)
    bottom = top + depth  # the row of the arrow heads
    for net, path in zip(nets, paths, strict=True):
        wire = wires[net.top.owner, net.output]
        wire.segments += path.segments
        for column, cell in ends[net]:
            if path.row < bottom:
                wire.segments.append(Segment(column, path.row, column, bottom))
            if cell.trunk is None:
                wire.heads.append(Head(column, bottom, cell.owner))
    return bottom + 1


class ChannelPath(NamedTuple):
    """The horizontal part of a wire with the way to it from row `begin` on.

    It comes down in `column` to the `row` from which its ends go on.
    """

    segments: list[Segment]
    begin: int
    row: int
    column: int


def channel(wires: Sequence[ChannelWire], top: int, *, is_whole: bool = False) -> tuple[list[ChannelPath], int]:
    """Return the paths of wires in a channel that begins at row `top`, and how many rows it has.

    `is_whole`: also parts of no length.
    """
    bends, depth = tracks(wires)
    paths = []
    for (column, ends), bend in zip(wires, bends, strict=True):
        row, found = top, list[Segment]()
        if bend.track is not None:
            row += bend.track
            if bend.dogleg is not None:
                aside, upper = bend.dogleg
                if upper or is_whole:
                    found.append(Segment(column, top, column, top + upper))
                found.append(Segment(min(column, aside), top + upper, max(column, aside), top + upper))
                found.append(Segment(aside, top + upper, aside, row))
                column = aside
            elif row > top or is_whole:
                found.append(Segment(column, top, column, row))
            found.append(Segment(min(column, *ends), row, max(column, *ends), row))
        paths.append(ChannelPath(found, top, row, column))
    return paths, depth


GAP = 2
TRUNK_WEIGHT = 8.0
LONELY_WEIGHT = 0.05


def place_ranks(rows: Ranks, room: int | None, gap: int) -> None:
    """Set `left` of every cell; the order within a rank stays, with `gap` free cells between neighbours.

    All are within `room` columns, if it is given and a rank has no more.
    """
    for row in rows:
        x = 0.0
        for cell in row:
            cell.x = x + cell.width / 2
            x += cell.width + gap
    for sweep in range(SWEEPS):
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


def _settle(row: Sequence[Vertex], near: Sequence[list[Tie]], gap: int) -> None:
    """Set the best centres of one rank given its neighbours, by pool-adjacent-violators: exact for the given order."""
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, float, int]] = []  # weight * target, weight, number of cells
    for cell, others in zip(row, near, strict=True):
        offset += cell.width / 2
        offsets.append(offset)
        want, weight = _target(cell, others)
        total, count = (want - offset) * weight, 1
        while blocks and blocks[-1][0] * weight > total * blocks[-1][1]:
            more, heavy, cells = blocks.pop()
            total, weight, count = total + more, weight + heavy, count + cells
        blocks.append((total, weight, count))
        offset += cell.width / 2 + gap
    index = 0
    for total, weight, count in blocks:
        at = total / weight
        for cell in row[index : index + count]:
            cell.x = at + offsets[index]
            index += 1


def _target(cell: Vertex, others: list[Tie]) -> tuple[float, float]:
    """Return the median of the neighbours, and how much it counts."""
    if not others:
        return cell.x, LONELY_WEIGHT
    xs = sorted([other.x + shift for other, _, _, shift in others])
    middle = len(xs) // 2
    want = xs[middle] if len(xs) % 2 else (xs[middle - 1] + xs[middle]) / 2
    if cell.trunk is not None and any(other.trunk is not None for other, *_ in others):
        return want, TRUNK_WEIGHT
    return want, 1.0 + len(xs)


def _snap(rows: Ranks, room: int | None, gap: int) -> None:
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


def _move_within(row: Sequence[Vertex], room: int, gap: int) -> None:
    end = max(room, sum(cell.width + gap for cell in row) - gap)
    for cell in reversed(row):
        cell.left = min(cell.left, end - cell.width)
        end = cell.left - gap


def _close_gaps(rows: Ranks, gap: int) -> None:
    """Move parts of the graph that nothing connects to each other to the left, each as far as the others allow."""
    part_of: dict[Vertex, int] = {}
    parts: Ranks = []
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
    before = {cell: other for row in rows for other, cell in pairwise(row)}
    for part in sorted(parts, key=lambda part: min(cell.left for cell in part)):
        free = min(
            cell.left - (other.left + other.width + gap if other else 0)
            for cell, other in ((cell, before.get(cell)) for cell in part)
            if other is None or part_of[other] != part_of[cell]
        )
        for cell in part:
            cell.left -= free


def _column(tie: Tie) -> int:
    """Return the column of a trunk whose wire to a neighbour is straight."""
    other = tie.cell
    if other.trunk is not None:
        return other.left
    return other.left + round(other.width / 2 + tie.shift - 0.5) if tie.shift else other.left + other.width // 2


def _straighten(row: Sequence[Vertex], room: int | None, gap: int, *, down: bool) -> None:
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


PATIENCE = 2


def order_ranks(rows: Ranks) -> None:
    """Sort every rank in place."""
    for row in rows:
        _number(row)
    best, fewest, stale = [list(row) for row in rows], _crossings(rows), 0
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows[1:] if down else rows[-2::-1]:
            for cell in row:
                near = cell.above if down else cell.below
                cell.weight = (
                    sum([other.position + slot for other, slot, _, _ in near]) / len(near) if near else cell.position
                )
            row.sort(key=lambda cell: cell.weight)
            _number(row)
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest, stale = [list(row) for row in rows], crossings, 0
        else:
            stale += 1
            if stale > PATIENCE:
                break
    for row, kept in zip(rows, best, strict=True):
        row[:] = kept
        _number(row)


def _number(row: Iterable[Vertex]) -> None:
    position = 0
    for cell in row:
        cell.position = position
        position += cell.slots


def _crossings(rows: Ranks) -> int:
    """Return the number of crossings between adjacent ranks."""
    total = 0
    for upper in rows[:-1]:
        seen: list[int] = []
        for cell in upper:
            for pin in range(cell.slots):
                ends = sorted([end.position + slot for end, slot, own, _ in cell.below if own == pin])
                total += sum([len(seen) - bisect_right(seen, end) for end in ends])
                for end in ends:
                    insort(seen, end)
    return total


def rank_nodes(
    nodes: Mapping[int, object], edges: Sequence[LayoutEdge], first: set[int], last: set[int]
) -> dict[int, int]:
    """Return ranks by longest path from the sources; what feeds only one consumer then sinks to just above it."""
    outs: Neighbours = {node: [] for node in nodes}
    ins: Neighbours = {node: [] for node in nodes}
    for source, target, _, _ in edges:
        if source not in outs or target not in outs:
            raise ValueError(f"an edge from {source!r} to {target!r}, but one of them has no size")
        outs[source].append(target)
        ins[target].append(source)
    for word, pinned, wires, way in (("first", first, ins, "from"), ("last", last, outs, "to")):
        for node in pinned:
            if wires[node]:
                raise ValueError(f"{node!r} is to be in the {word} rank but has an edge {way} {wires[node][0]!r}")
    rank = dict.fromkeys(nodes, 0)
    order = topological_order(ins)
    for node in order:
        for target in outs[node]:
            rank[target] = max(rank[target], rank[node] + 1)
    _sink(order, outs, ins, rank, first)
    rank.update(dict.fromkeys(last, max(rank.values(), default=0)))
    return rank


def topological_order(sources: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the nodes, each after its sources; ties in the order of the mapping. Raise ValueError for a cycle."""
    sorter = TopologicalSorter(dict.fromkeys(sources, ()))
    for node, before in sources.items():
        sorter.add(node, *before)
    return list(sorter.static_order())


def _sink(order: Sequence[int], outs: Neighbours, ins: Neighbours, rank: dict[int, int], first: set[int]) -> None:
    """Let float down what no wire would get longer by: nodes none of whose ancestors has another consumer."""
    floats: set[int] = set()
    for node in order:
        if node not in first and all(source in floats and len(outs[source]) == 1 for source in ins[node]):
            floats.add(node)
    for node in reversed(order):
        if node in floats and outs[node]:
            rank[node] = min(rank[target] for target in outs[node]) - 1


def ranks_of_cells(
    sizes: Mapping[int, Size],
    edges: Sequence[LayoutEdge],
    rank: Mapping[int, int],
    pins: Mapping[int, Pins],
) -> Ranks:
    """Return the cells of each rank: nodes, and one trunk cell for each wire that passes it; linked by nets."""
    rows: Ranks = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    cells: dict[int, Vertex] = {}
    for node, (width, height) in sizes.items():
        cells[node] = cell = Vertex(node, None, width, height, pins=pins.get(node, Pins()))
        rows[rank[node]].append(cell)
    nets: dict[tuple[int, int, int], Net] = {}
    for source, target, output, entry in edges:
        net: Net | None = None
        for at in range(rank[source], rank[target]):
            if (source, output, at) not in nets:
                top = cells[source]
                if net is not None:
                    top = Vertex(source, output, 1, 0)
                    rows[at].append(top)
                    _join(net, top)
                nets[source, output, at] = Net(output, top)
                top.outs.append(nets[source, output, at])
            net = nets[source, output, at]
        assert net is not None, "an edge leads to a lower rank"
        _join(net, cells[target], entry)
    for cell in cells.values():
        if cell.owner not in pins:
            cell.width = least_width(cell.width, len(cell.ins), len(cell.outs))
    for net in nets.values():
        _tie(net)
    return rows


def least_width(width: int, ins: int, outs: int) -> int:
    """Return the width of a box with so many wires: each gets a column of its own, and a free one beside it."""
    return max(width, 2 * max(ins, outs) + 1)


def _join(net: Net, end: Vertex, entry: int = -1) -> None:
    net.ends.append(end)
    net.entries.append(entry)
    end.ins.append(net)


def _tie(net: Net) -> None:
    """Make the ends of a wire neighbours of the vertex where it begins."""
    begin, begin_shift = _pin(net.top, net.top.pins.exits, net.output)
    for end, entry in zip(net.ends, net.entries, strict=True):
        slot, shift = _pin(end, end.pins.entries, entry)
        end.above.append(Tie(net.top, begin, slot, begin_shift - shift))
        net.top.below.append(Tie(end, slot, begin, shift - begin_shift))


def _pin(cell: Vertex, columns: Mapping[int, int], key: int) -> tuple[int, float]:
    """Return the slot of a pin of a vertex, and how far it is to the right of the middle; zeros where it has none."""
    if key not in columns:
        return 0, 0.0
    column = columns[key]
    return sum(other < column for other in columns.values()), column + 0.5 - cell.width / 2


def split_ranks(
    sizes: Mapping[int, Size],
    edges: Sequence[LayoutEdge],
    rank: Mapping[int, int],
    room: int,
    gap: int,
    whole: AbstractSet[int],
) -> dict[int, int]:
    """Return ranks in which no more stands side by side than fits, wires that pass a rank included.

    The ranks of `whole` stay as they are. A box that is too wide, or is so beside the wires that pass, stands alone.
    """
    enters: dict[int, set[Tensor]] = {node: set() for node in sizes}
    leaves: dict[int, set[Tensor]] = {node: set() for node in sizes}
    for source, target, output, _ in edges:
        enters[target].add((source, output))
        leaves[source].add((source, output))
    waits = Counter(wire for wires in enters.values() for wire in wires)  # how many of its ends are still to come
    passing: set[Tensor] = set()

    def fitting(left: Sequence[int]) -> list[int]:
        """Return the next nodes of a rank: the first ones that let the fewest wires pass by."""
        row: list[int] = []
        ends: Counter[Tensor] = Counter()
        used = len(passing) * (1 + gap)
        for node in sorted(left, key=lambda node: -sum(waits[wire] == 1 for wire in enters[node])):
            ended = sum(waits[wire] - ends[wire] == 1 for wire in enters[node])
            more = least_width(sizes[node][0], len(enters[node]), len(leaves[node])) + gap - ended * (1 + gap)
            if not row or used + more <= room + gap:
                used += more
                ends.update(enters[node])
                row.append(node)
        return row

    found: dict[int, int] = {}
    level = 0
    for _, nodes in groupby(sorted(sizes, key=lambda node: rank[node]), key=lambda node: rank[node]):
        left = list(nodes)
        while left:
            row = fitting(left) if whole.isdisjoint(left) else left
            found.update(dict.fromkeys(row, level))
            for node in row:
                waits.subtract(enters[node])
                passing |= leaves[node]
            passing = {wire for wire in passing if waits[wire]}
            left = [node for node in left if node not in found]
            level += 1
    return found


SWEEPS = 8
LANE_STEP = 3


def lay_out(
    sizes: Mapping[int, Size],
    edges: Iterable[LayoutEdge],
    first: Iterable[int] = (),
    last: Iterable[int] = (),
    room: int | None = None,
    gap: int = GAP,
    pins: Mapping[int, Pins] = MappingProxyType({}),
) -> LayeredLayout:
    """Lay the graph out; `sizes` are width and height in cells by node, in an order that breaks ties.

    `first` and `last` are held on the top and the bottom rank. `room`: columns to do with, as far as that is possible;
    then wide ranks become several. `gap`: free cells between neighbours, at least 1. A box grows wider than asked where
    its wires need it; one with `pins` does not, for these say where wires enter and leave it.
    Raises ValueError for edges in a cycle, for ends without a size, for edges into `first` and out of `last`.
    """
    unique = list(dict.fromkeys(edges))
    above, below = set(first), set(last)
    ranks = rank_nodes(sizes, unique, above, below)
    if room is not None:
        ranks = split_ranks(sizes, unique, ranks, room, gap, above | below)
    rows = ranks_of_cells(sizes, unique, ranks, pins)
    order_ranks(rows)
    place_ranks(rows, room, gap)
    return route_ranks(rows)


def back_lanes(layout: LayeredLayout, back_edges: Sequence[tuple[int, int]]) -> list[Lane]:
    """Route back edges (tail, head) round the right side of a layout: heads in the first rank, tails in the last.

    One lane each, the rightmost tail's innermost; above and below the layout they take a row more than there are lanes.
    Rows above the layout are negative: the consumer moves them down. The arrow head is the last cell of the last
    segment, right above the head's box.
    """
    by_tail = sorted(range(len(back_edges)), key=lambda i: -layout.boxes[back_edges[i][0]].centre)
    into: Neighbours = {}
    for index in by_tail:
        into.setdefault(back_edges[index][1], []).append(index)
    lanes = []
    for number, index in enumerate(by_tail):
        tail, head = back_edges[index]
        begin, end = layout.boxes[tail], layout.boxes[head]
        several = into[head]
        enters = end.x + end.width * (2 * several.index(index) + 1) // (2 * len(several))
        column = layout.width + 1 + LANE_STEP * number
        below, above = layout.height + number, -2 - number
        segments = (
            Segment(begin.centre, begin.y + begin.height - 1, begin.centre, below),
            Segment(begin.centre, below, column, below),
            Segment(column, above, column, below),
            Segment(enters, above, column, above),
            Segment(enters, above, enters, end.y - 1),
        )
        lanes.append(Lane(index, tail, head, column, above, below, segments))
    return lanes
