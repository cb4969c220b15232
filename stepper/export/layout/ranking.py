"""Rank assignment, the first step of the layout, and the vertices of every rank, dummies of long edges included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from stepper.export.layout.geometry import LayoutEdge, N, Net, Pins, Tie, Vertex


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
