"""Rank assignment, the first step of the layout, and the vertices of every rank, dummies of long edges included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from stepper.export.layout.geometry import LayoutEdge, N, Net, Vertex


def rank_nodes(nodes: Mapping[N, object], edges: Sequence[LayoutEdge[N]], first: set[N], last: set[N]) -> dict[N, int]:
    """Return ranks by longest path from the sources; what feeds only one consumer then sinks to just above it."""
    outs: dict[N, list[N]] = {node: [] for node in nodes}
    ins: dict[N, list[N]] = {node: [] for node in nodes}
    for source, target, _ in edges:
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
    sizes: Mapping[N, tuple[int, int]], edges: Sequence[LayoutEdge[N]], rank: Mapping[N, int]
) -> list[list[Vertex[N]]]:
    """Return the cells of each rank: nodes, and one trunk cell for each wire that passes it; linked by nets."""
    rows: list[list[Vertex[N]]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    cells: dict[N, Vertex[N]] = {}
    for node, (width, height) in sizes.items():
        cells[node] = cell = Vertex(node, None, width, height)
        rows[rank[node]].append(cell)
    nets: dict[tuple[N, int, int], Net[N]] = {}
    for source, target, output in edges:
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
        _join(net, cells[target])
    for cell in cells.values():
        cell.width = least_width(cell.width, len(cell.ins), len(cell.outs))
    return rows


def least_width(width: int, ins: int, outs: int) -> int:
    """Return the width of a box with so many wires: each gets a column of its own, and a free one beside it."""
    return max(width, 2 * max(ins, outs) + 1)


def _net(top: Vertex[N], output: int) -> Net[N]:
    net = Net(output, top)
    top.outs.append(net)
    return net


def _join(net: Net[N], end: Vertex[N]) -> None:
    net.ends.append(end)
    end.ins.append(net)
    end.above.append(net.top)
    net.top.below.append(end)
