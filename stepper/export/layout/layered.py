"""Layered graph drawing (Sugiyama's framework) on a grid of character cells: orthogonal edges, linear time.

Our own, since Graphviz is a program that may be absent, writes other bytes in each version, and knows no cells of a
terminal. Four steps, a file each: ranking, ordering (crossing minimisation), coordinates, routing. The edges from one
output of a node are one wire, which shares a trunk, so a wide fan-out costs one cell a rank.

Invariants: boxes lie apart, no wire runs through a box, a cell belongs to one wire or to two that cross at right
angles, each edge ends in an arrow head in the cell above its target's box. x grows to the right and y downwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from stepper.export.layout.coordinates import GAP, place_ranks
from stepper.export.layout.geometry import Lane, Lanes, LayeredLayout, LayoutEdge, N, Pins, Segment
from stepper.export.layout.ordering import order_ranks
from stepper.export.layout.ranking import rank_nodes, ranks_of_cells
from stepper.export.layout.routing import route_ranks
from stepper.export.layout.splitting import split_ranks

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
