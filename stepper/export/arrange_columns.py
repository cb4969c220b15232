"""A port map laid out: outside on the left, the body in the middle, outputs and the next iteration on the right."""

from __future__ import annotations

import math
from typing import Final

from stepper.export.drawing import SMALL, BoxShape, Drawing, FrameShape, Line, Text, columns, largest, size_of
from stepper.export.figure import Edge, Figure, Node
from stepper.export.layout_model import Segment

GAP: Final = 2
TOP: Final = 5


def arrange_columns(figure: Figure) -> Drawing:
    """One row an edge; a box that has several edges is as high as they need."""
    return _Columns(figure).drawing


class _Columns:
    """A port map while it is laid out."""

    def __init__(self, figure: Figure) -> None:
        self.figure, self.drawing = figure, Drawing()
        (self.cluster,) = figure.clusters
        self.inside = figure.nodes_in[self.cluster.id]
        self.into = [edge for edge in figure.edges if edge.source not in {node.id for node in self.inside}]
        self.out = [edge for edge in figure.edges if edge not in self.into]
        left = [figure.by_id[id] for id in dict.fromkeys(edge.source for edge in self.into)]
        right = [figure.by_id[id] for id in dict.fromkeys(edge.target for edge in self.out)]
        self.widths = [_width(left), _width(self.inside), _width(right)]
        self.gaps = [_labels(self.into), _labels(self.out)]
        self.middle = self.widths[0] + self.gaps[0]
        self.right = self.middle + self.widths[1] + self.gaps[1]
        self.rows: dict[str, tuple[int, int]] = {}
        self._draw(left, right)

    def _draw(self, left: list[Node], right: list[Node]) -> None:
        y = TOP
        placed: set[str] = set()
        for node in self.inside:
            into = [edge for edge in self.into if edge.target == node.id]
            out = [edge for edge in self.out if edge.source == node.id]
            height = size_of(node)[1]
            rows = y
            for edge in [*into, *out]:
                other = edge.source if edge in into else edge.target
                if other not in placed:
                    placed.add(other)
                    column = 0 if edge in into else self.right
                    self._box(self.figure.by_id[other], column, rows, self.widths[0 if edge in into else 2])
                self._line(edge, rows, inwards=edge in into)
                rows += max(size_of(self.figure.by_id[other])[1], 2) + 1
            tall = max(height, rows - y - 1)
            self._box(node, self.middle, y, self.widths[1], tall)
            y += tall + 1
        self.drawing.width = self.right + (self.widths[2] if right else 0)
        self.drawing.height = y + 1
        frame = FrameShape(self.cluster, self.middle - GAP, 2, self.widths[1] + 2 * GAP, y - 1)
        self.drawing.frames.append(frame)
        for x, text in ((0, "outside"), (self.right, "outside and next iteration")):
            if (text != "outside" or left) and (x != self.right or right):
                self.drawing.texts.append(Text(x, 0, text, "title", "start"))

    def _box(self, node: Node, x: int, y: int, width: int, height: int | None = None) -> None:
        tall = height or size_of(node)[1]
        self.rows[node.id] = (y, tall)
        self.drawing.boxes.append(BoxShape(node, x, y, width, tall))

    def _line(self, edge: Edge, row: int, *, inwards: bool) -> None:
        """An edge in its row; where its other end stands in another row, it bends there first."""
        begin, end = (self.widths[0] - 1, self.middle - 1)
        if not inwards:
            begin, end = self.middle + self.widths[1] - 1, self.right - 1
        y = row + 1
        top, tall = self.rows[edge.source if inwards else edge.target]
        segments = [Segment(begin, y, end, y)]
        if inwards and not top <= y < top + tall:
            elbow = begin + 1
            segments = [
                Segment(begin, top + 1, elbow, top + 1),
                Segment(elbow, top + 1, elbow, y),
                Segment(elbow, y, end, y),
            ]
        if not inwards and not top <= y < top + tall:
            elbow = end - 2
            low, high = sorted((top + 1, y))
            segments = [
                Segment(begin, y, elbow, y),
                Segment(elbow, low, elbow, high),
                Segment(elbow, top + 1, end, top + 1),
            ]
            self.drawing.lines.append(Line(edge.kind, tuple(segments), (), edge.label, rights=((end, top + 1),)))
        else:
            self.drawing.lines.append(Line(edge.kind, tuple(segments), (), edge.label, rights=((end, y),)))
        self.drawing.texts.append(Text((begin + end) / 2, y - 0.85, edge.label, "small"))


def _width(nodes: list[Node] | tuple[Node, ...]) -> int:
    return largest([(0, 0), *(size_of(node) for node in nodes)])[0]


def _labels(edges: list[Edge]) -> int:
    """Room for the longest label of a column's edges."""
    return max((math.ceil(columns(edge.label) * SMALL) for edge in edges), default=4) + 8
