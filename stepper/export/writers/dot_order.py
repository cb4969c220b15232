"""What makes Graphviz draw all iterations alike: the places of our own layout, and its rows as invisible edges.

`neato -n2` puts everything where the places say; `dot` heeds only rows, sizes and weights: it keeps the rows of every
iteration, and nothing that leads in or out pulls one out of shape, but it may mirror the order within them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from stepper.export.figures.figure import Arrangement, Figure, Kind
from stepper.export.layout.drawing import BoxShape, Drawing, columns
from stepper.export.layout.stack import arrange_stack

HEAVY: Final = 1000
CELL: Final = 7.5
"""Points for a cell of our layout, which is as wide as a letter."""

ROW: Final = 14.0
INCH: Final = 72


class Ordering:
    """Places and rows of a figure with iterations; empty for any other."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.drawing = arrange_stack(figure) if figure.arrangement is Arrangement.STACK else Drawing()
        boxes = sorted(self.drawing.boxes, key=lambda box: (box.y, box.x))
        self.rows = _rows(boxes)
        self.boxes = {box.node.id: box for box in boxes}
        self.frames = {frame.cluster.id: frame for frame in self.drawing.frames}

    def place(self, id: str) -> Iterator[str]:
        """The size and the place of a box, in inches and points, as attributes."""
        box = self.boxes.get(id)
        if box is not None:
            x, y = (box.x + box.width / 2) * CELL, self._y(box.y + box.height / 2)
            yield f"width={box.width * CELL / INCH:.2f}, height={(box.height * ROW - 4) / INCH:.2f}"
            yield f'pos="{x:g},{y:g}"'

    def frame(self, id: str) -> Iterator[str]:
        """The place of a cluster and of its label, as attributes."""
        frame = self.frames.get(id)
        if frame is not None:
            left, right = frame.x * CELL, (frame.x + frame.width) * CELL
            top, bottom = self._y(frame.y), self._y(frame.y + frame.height)
            wide = columns(frame.cluster.label) * CELL
            yield f'bb="{left:g},{bottom:g},{right:g},{top:g}"; lp="{left + wide / 2 + 6:g},{top - ROW:g}";'

    def _y(self, row: float) -> float:
        return (self.drawing.height - row) * ROW

    def within(self, iteration: str) -> Iterator[str]:
        """Lines for the cluster of an iteration."""
        rows = self.rows.get(iteration, [])
        for row in rows:
            yield f"{{ rank=same; {' '.join(f'{_quoted(node)};' for node in row)} }}"
            yield from (_invisible(left, right) for left, right in pairwise(row))
        yield from (_invisible(above[0], below[0]) for above, below in pairwise(rows))

    def between(self) -> Iterator[str]:
        """Lines for the whole graph: iterations under each other, inputs above, outputs below."""
        if not self.rows:
            return
        for before, after in pairwise(self.figure.clusters_in[""]):
            last = self.rows[before.id][-1][0] if before.id in self.rows else before.id
            first = self.rows[after.id][0][0] if after.id in self.rows else after.id
            yield _invisible(last, first)
        outside = self.figure.nodes_in[""]
        for inputs in (True, False):
            nodes = [node.id for node in outside if (node.kind is Kind.INPUT) is inputs]
            if nodes:
                yield f"{{ rank=same; {' '.join(f'{_quoted(node)};' for node in nodes)} }}"


def _rows(boxes: list[BoxShape]) -> dict[str, list[list[str]]]:
    """The nodes of each iteration by rows, from left to right."""
    found: dict[str, dict[int, list[str]]] = {}
    for box in boxes:
        iteration, dot, _ = box.node.id.partition(".")
        if dot:
            found.setdefault(iteration, {}).setdefault(box.y, []).append(box.node.id)
    return {id: list(rows.values()) for id, rows in found.items()}


def _invisible(source: str, target: str) -> str:
    return f"{_quoted(source)} -> {_quoted(target)} [style=invis, weight={HEAVY}];"


def _quoted(text: str) -> str:
    return f'"{text}"'
