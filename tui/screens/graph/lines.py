"""A graph in lines: an operation a row, in the order of execution, its wires in columns left of the names.

A box that is open has as many rows as it needs; its dot is in the first.

The densest drawing that still names every operation, as version control draws its history: no rows for wires alone. A
wire begins at the dot of the operation that makes it, goes down its column, and turns off to the dot of each that reads
it. Of two lines that cross the horizontal one is interrupted (`passing`), so that a corner always means a connection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from stepper.export.figures.drawn_graph import DrawnGraph
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import Box, LayeredLayout, Segment, Wire

Output = tuple[int, int]
"""A wire: whose output, and which."""


def order_of(graph: DrawnGraph, places: Mapping[int, int]) -> list[int]:
    """Return the boxes from above: operations by their `places`, inputs before their first reader, ends at once.

    A box comes behind all that it reads.
    """
    sources: dict[int, set[int]] = defaultdict(set)
    readers: dict[int, set[int]] = defaultdict(set)
    for edge in graph.edges:
        sources[edge.target].add(edge.source)
        readers[edge.source].add(edge.target)
    ends = {node.key for node in graph.nodes if node.kind in (NodeKind.RESULT, NodeKind.ACCUMULATOR)}
    inner = [node.key for node in graph.nodes if sources[node.key] and node.key not in ends]
    found: dict[int, None] = {}

    def place_of(key: int) -> int:
        return places.get(key, -1)

    for key in sorted(inner, key=place_of):
        _put_behind(key, sources, found, place_of)
        for end in sorted(readers[key] & ends):
            if sources[end] <= found.keys():
                found.setdefault(end)
    for node in graph.nodes:
        _put_behind(node.key, sources, found, place_of)
    return list(found)


def _put_behind(
    key: int, sources: Mapping[int, set[int]], found: dict[int, None], place_of: Callable[[int], int]
) -> None:
    """Add a box behind what it reads; without recursion, for chains may be long."""
    todo = [key]
    while todo:
        missing = sorted((one for one in sources.get(todo[-1], ()) if one not in found), key=place_of)
        if missing:
            todo += missing[::-1]
        else:
            found.setdefault(todo.pop())


class WireColumns:
    """The columns of all wires between boxes in an order: `dots` is by box the column of its dot, `count` how many."""

    def __init__(self, order: Sequence[int], graph: DrawnGraph) -> None:
        self._order, self._row = order, {key: row for row, key in enumerate(order)}
        self._readers: dict[Output, set[int]] = defaultdict(set)
        self._inputs: dict[int, list[Output]] = defaultdict(list)
        outputs: dict[int, list[Output]] = defaultdict(list)
        for edge in graph.edges:
            output = edge.source, edge.output
            if not self._readers[output]:
                outputs[edge.source].append(output)
            if self._row[edge.target] not in self._readers[output]:
                self._inputs[edge.target].append(output)
            self._readers[output].add(self._row[edge.target])
        self.dots: dict[int, int] = {}
        self.columns: dict[Output, int] = {}
        self._free_from: list[int] = []
        for row, key in enumerate(order):
            self._put(row, key, sorted(outputs[key]))
        self.count = len(self._free_from)

    def _put(self, row: int, key: int, outputs: Sequence[Output]) -> None:
        """Give a box its dot, in the column of a wire that ends there if there is one, and its wires their columns."""
        ending = sorted(self.columns[one] for one in self._inputs[key] if max(self._readers[one]) == row)
        for column in ending:
            self._free_from[column] = row + 1
        dot = self.dots[key] = ending[0] if ending else self._free(row)
        self._free_from[dot] = row + 2  # what ends here is not joined with a dot right below
        for place, output in enumerate(outputs):
            column = self.columns[output] = dot if not place else self._free(row)
            self._free_from[column] = max(self._readers[output]) + 1

    def _free(self, row: int) -> int:
        """Return the leftmost column that is free from a row on."""
        found = next((column for column, free in enumerate(self._free_from) if free <= row), None)
        if found is None:
            found = len(self._free_from)
            self._free_from.append(0)
        return found

    @cached_property
    def ends(self) -> dict[int, int]:
        """By box the first column of its row from which on there is no wire."""
        last = [self.dots[key] for key in self._order]
        for output, column in self.columns.items():
            for row in range(self._row[output[0]], max(self._readers[output]) + 1):
                last[row] = max(last[row], column)
        return {key: last[row] + 1 for row, key in enumerate(self._order)}

    def layout(self, sizes: Mapping[int, tuple[int, int]], step: int, room: int) -> LayeredLayout:
        """Return the layout with so many cells a column: dots are drawn by who draws the boxes.

        All boxes begin behind the last column; those that would not end in the room begin further left, behind the last
        wire of their row.
        """
        begin, least = self.count * step, {key: end * step for key, end in self.ends.items()}
        *tops, height = accumulate((sizes[key][1] for key in self._order), initial=0)
        boxes = {
            key: Box(max(min(begin, room - sizes[key][0]), least[key]), y, *sizes[key])
            for y, key in zip(tops, self._order, strict=True)
        }
        wires: dict[Output, Wire] = {}
        for output, column in self.columns.items():
            wire = wires[output] = Wire(*output)
            first, readers, x = self._row[output[0]], self._readers[output], column * step
            wire.segments.append(Segment(x, tops[first], x, tops[max(readers)]))
            dots = ((tops[row], self.dots[self._order[row]] * step) for row in (first, *sorted(readers)))
            wire.segments += [Segment(min(x, dot), y, max(x, dot), y) for y, dot in dots if dot != x]
        width = max((box.x + box.width for box in boxes.values()), default=0)
        return LayeredLayout(boxes, wires, tuple((key,) for key in self._order), width, height)

    def passing(self, boxes: Mapping[int, Box]) -> dict[int, set[int]]:
        """Return by row the columns of wires that go on below it and are not read in it."""
        found: dict[int, set[int]] = defaultdict(set)
        tops = [boxes[key].y for key in self._order]
        for output, column in self.columns.items():
            readers = {tops[row] for row in self._readers[output]}
            for y in range(tops[self._row[output[0]]] + 1, max(readers)):
                if y not in readers:
                    found[y].add(column)
        return found
