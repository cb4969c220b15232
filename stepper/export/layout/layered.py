"""Layered graph drawing (Sugiyama's framework) on a grid of character cells: orthogonal edges, linear time.

Our own, since Graphviz is a program that may be absent, writes other bytes in each version, and knows no cells of a
terminal. Four steps: ranking, ordering (crossing minimisation), coordinates, routing. The edges from one
output of a node are one wire, which shares a trunk, so a wide fan-out costs one cell a rank.

Invariants: boxes lie apart, no wire runs through a box, a cell belongs to one wire or to two that cross at right
angles, each edge ends in an arrow head in the cell above its target's box. x grows to the right and y downwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from graphlib import TopologicalSorter
from itertools import pairwise
from types import MappingProxyType

from stepper.export.layout.geometry import Lane, Lanes, LayeredLayout, LayoutEdge, N, Net, Pins, Segment, Tie, Vertex
from stepper.export.layout.routing import route_ranks

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


PATIENCE = 2


def order_ranks(rows: list[list[Vertex[N]]], sweeps: int) -> None:
    """Sort every rank in place."""
    for row in rows:
        _number(row)
    best, fewest, stale = [list(row) for row in rows], _crossings(rows), 0
    for sweep in range(sweeps):
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


def _number(row: Iterable[Vertex[N]]) -> None:
    position = 0
    for cell in row:
        cell.position = position
        position += cell.slots


def _ends(cell: Vertex[N]) -> Iterator[list[int]]:
    """Yield the places that wires of a vertex lead to, sorted; those of each pin by themselves, in their order."""
    if not cell.pins.exits:
        yield sorted([end.position + slot for end, slot, _, _ in cell.below])
        return
    for pin in range(cell.slots):
        yield sorted([end.position + slot for end, slot, own, _ in cell.below if own == pin])


def _crossings(rows: list[list[Vertex[N]]]) -> int:
    """Return the number of crossings between adjacent ranks, by a Fenwick tree: O(edges log nodes)."""
    total = 0
    for upper, lower in pairwise(rows):
        size = sum([cell.slots for cell in lower])
        tree, seen = [0] * (size + 1), 0
        for cell in upper:
            for ends in _ends(cell):
                for end in ends:
                    at, smaller = end + 1, 0
                    while at:
                        smaller += tree[at]
                        at &= at - 1
                    total += seen - smaller
                for end in ends:
                    at = end + 1
                    while at <= size:
                        tree[at] += 1
                        at += at & -at
                seen += len(ends)
    return total


def rank_nodes(nodes: Mapping[N, object], edges: Sequence[LayoutEdge[N]], first: set[N], last: set[N]) -> dict[N, int]:
    """Return ranks by longest path from the sources; what feeds only one consumer then sinks to just above it."""
    outs: dict[N, list[N]] = {node: [] for node in nodes}
    ins: dict[N, list[N]] = {node: [] for node in nodes}
    for source, target, _, _ in edges:
        if source not in outs or target not in outs:
            raise ValueError(f"an edge from {source!r} to {target!r}, but one of them has no size")
        outs[source].append(target)
        ins[target].append(source)
    _check_pins(outs, ins, first, last)
    rank = dict.fromkeys(nodes, 0)
    order = topological_order(ins)
    for node in order:
        for target in outs[node]:
            rank[target] = max(rank[target], rank[node] + 1)
    _sink(order, outs, ins, rank, first)
    rank.update(dict.fromkeys(last, max(rank.values(), default=0)))
    return rank


def _check_pins(outs: dict[N, list[N]], ins: dict[N, list[N]], first: set[N], last: set[N]) -> None:
    for node in first:
        if ins[node]:
            raise ValueError(f"{node!r} is to be in the first rank but has an edge from {ins[node][0]!r}")
    for node in last:
        if outs[node]:
            raise ValueError(f"{node!r} is to be in the last rank but has an edge to {outs[node][0]!r}")


def topological_order(sources: Mapping[N, Sequence[N]]) -> list[N]:
    """Return the nodes, each after its sources; ties in the order of the mapping. Raise ValueError for a cycle."""
    sorter = TopologicalSorter(dict.fromkeys(sources, ()))
    for node, before in sources.items():
        sorter.add(node, *before)
    return list(sorter.static_order())


def _sink(order: Sequence[N], outs: dict[N, list[N]], ins: dict[N, list[N]], rank: dict[N, int], first: set[N]) -> None:
    """Let float down what no wire would get longer by: nodes none of whose ancestors has another consumer."""
    floats: set[N] = set()
    for node in order:
        if node not in first and all(source in floats and len(outs[source]) == 1 for source in ins[node]):
            floats.add(node)
    for node in reversed(order):
        if node in floats and outs[node]:
            rank[node] = min(rank[target] for target in outs[node]) - 1


def ranks_of_cells(
    sizes: Mapping[N, tuple[int, int]],
    edges: Sequence[LayoutEdge[N]],
    rank: Mapping[N, int],
    pins: Mapping[N, Pins],
) -> list[list[Vertex[N]]]:
    """Return the cells of each rank: nodes, and one trunk cell for each wire that passes it; linked by nets."""
    rows: list[list[Vertex[N]]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    cells: dict[N, Vertex[N]] = {}
    for node, (width, height) in sizes.items():
        cells[node] = cell = Vertex(node, None, width, height, pins=pins.get(node, Pins()))
        rows[rank[node]].append(cell)
    nets: dict[tuple[N, int, int], Net[N]] = {}
    for source, target, output, entry in edges:
        net = nets.get((source, output, rank[source]))
        if net is None:
            nets[source, output, rank[source]] = net = _net(cells[source], output)
        for passed in range(rank[source] + 1, rank[target]):
            after = nets.get((source, output, passed))
            if after is None:
                trunk = Vertex(source, output, 1, 0)
                rows[passed].append(trunk)
                _join(net, trunk)
                nets[source, output, passed] = after = _net(trunk, output)
            net = after
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


def _net(top: Vertex[N], output: int) -> Net[N]:
    net = Net(output, top)
    top.outs.append(net)
    return net


def _join(net: Net[N], end: Vertex[N], entry: int = -1) -> None:
    net.ends.append(end)
    net.entries.append(entry)
    end.ins.append(net)


def _tie(net: Net[N]) -> None:
    """Make the ends of a wire neighbours of the vertex where it begins."""
    begin, begin_shift = _pin(net.top, net.top.pins.exits, net.output)
    for end, entry in zip(net.ends, net.entries, strict=True):
        slot, shift = _pin(end, end.pins.entries, entry)
        end.above.append(Tie(net.top, begin, slot, begin_shift - shift))
        net.top.below.append(Tie(end, slot, begin, shift - begin_shift))


def _pin(cell: Vertex[N], columns: Mapping[int, int], key: int) -> tuple[int, float]:
    """Return the slot of a pin of a vertex, and how far it is to the right of the middle; zeros where it has none."""
    if key not in columns:
        return 0, 0.0
    column = columns[key]
    return sum(other < column for other in columns.values()), column + 0.5 - cell.width / 2


def split_ranks(
    sizes: Mapping[N, tuple[int, int]],
    edges: Sequence[LayoutEdge[N]],
    rank: Mapping[N, int],
    room: int,
    gap: int,
    whole: AbstractSet[N] = frozenset(),
) -> dict[N, int]:
    """Return ranks in which no more stands side by side than fits, wires that pass a rank included.

    The ranks of `whole` stay as they are. A box that is too wide, or is so beside the wires that pass, stands alone.
    """
    widths = {node: width for node, (width, _) in sizes.items()}
    groups: list[list[N]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for node in sizes:
        groups[rank[node]].append(node)
    waits: dict[tuple[N, int], int] = {}  # by wire, how many of its ends are still to come
    enters: dict[N, list[tuple[N, int]]] = {node: [] for node in sizes}
    leaves: dict[N, set[tuple[N, int]]] = {node: set() for node in sizes}
    for source, target, output, _ in edges:
        waits[source, output] = waits.get((source, output), 0) + 1
        enters[target].append((source, output))
        leaves[source].add((source, output))
    for node in sizes:
        widths[node] = least_width(widths[node], len(set(enters[node])), len(leaves[node]))
    passing: set[tuple[N, int]] = set()
    found: dict[N, int] = {}
    level = 0
    for group in groups:
        left = list(group)
        while left:
            row = left if not whole.isdisjoint(left) else _fitting(left, widths, enters, waits, passing, room, gap)
            for node in row:
                found[node] = level
                for wire in enters[node]:
                    waits[wire] -= 1
                    if not waits[wire]:
                        passing.discard(wire)
                passing |= leaves[node]
            left = [node for node in left if node not in found]
            level += 1
    return found


def _fitting(
    left: Sequence[N],
    widths: Mapping[N, int],
    enters: Mapping[N, Sequence[tuple[N, int]]],
    waits: Mapping[tuple[N, int], int],
    passing: AbstractSet[tuple[N, int]],
    room: int,
    gap: int,
) -> list[N]:
    """Return those of a rank that are taken next: the first ones, of which as few wires as possible pass by."""
    row: list[N] = []
    ends: dict[tuple[N, int], int] = {}
    used = len(passing) * (1 + gap)
    for node in sorted(left, key=lambda node: -sum(waits[wire] == 1 for wire in enters[node])):
        more = widths[node] + gap
        ended = 0
        for wire in set(enters[node]):
            if waits[wire] - ends.get(wire, 0) == enters[node].count(wire):
                ended += 1 + gap
        if row and used + more - ended > room + gap:
            continue
        used += more - ended
        for wire in enters[node]:
            ends[wire] = ends.get(wire, 0) + 1
        row.append(node)
    return row


SWEEPS = 8
LANE_STEP = 3


def lay_out(
    sizes: Mapping[N, tuple[int, int]],
    edges: Iterable[LayoutEdge[N]],
    first: Iterable[N] = (),
    last: Iterable[N] = (),
    room: int | None = None,
    gap: int = GAP,
    pins: Mapping[N, Pins] = MappingProxyType({}),
) -> LayeredLayout[N]:
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
    order_ranks(rows, SWEEPS)
    place_ranks(rows, SWEEPS, room, gap)
    return route_ranks(rows)


def back_lanes(layout: LayeredLayout[N], back_edges: Sequence[tuple[N, N]]) -> Lanes[N]:
    """Route back edges (tail, head) round the right side of a layout: heads in the first rank, tails in the last.

    One lane each, the rightmost tail's innermost. Rows above the layout are negative: the consumer adds `above` to
    every y. The arrow head is the last cell of the last segment, right above the head's box.
    """
    by_tail = sorted(range(len(back_edges)), key=lambda i: (-layout.boxes[back_edges[i][0]].centre, i))
    into: dict[N, list[int]] = {}
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
    count = len(lanes)
    return Lanes(tuple(lanes), layout.width + (2 + LANE_STEP * (count - 1) if count else 0), count + 1 if count else 0)
