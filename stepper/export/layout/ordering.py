"""Crossing minimisation, the second step of the layout: barycentre sweeps; the order with the fewest crossings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from stepper.export.layout.geometry import N, Vertex

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
