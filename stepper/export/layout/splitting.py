"""Layouts that are no wider than a room: ranks with too many boxes become several, one below another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from stepper.export.layout.geometry import LayoutEdge, N
from stepper.export.layout.ranking import least_width


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
