"""A port map laid out: outside on the left, the body in the middle, outputs and the next iteration on the right."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec.structs import replace

from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode
from stepper.export.fonts import SMALL_SIZE, wrapped
from stepper.export.layout.figure_layout import (
    BoxShape,
    FigureLayout,
    FrameShape,
    Polyline,
    Text,
    columns,
    largest,
    size_of,
)
from stepper.export.layout.frames import title_width
from stepper.export.layout.geometry import Segment

GAP: Final = 2
TOP: Final = 5
FRAME: Final = 3
STEP: Final = 2
_WIDEST: Final = 121
"""Cells of a map of 1,000 pixels, margins included."""
_FORMS: Final = ((None, 8), (130, 8), (130, 5), (90, 5), (60, 5))
"""Pixels of a line of how a port cuts or joins (None: all in one), and free cells beside it."""


def arrange_port_map(figure: Figure) -> FigureLayout:
    """Return one row an edge; a box that has several edges is as high as they need.

    Where it would be wider than a page, how ports cut and join is told in several lines.
    """
    for line, free in _FORMS:
        edges = tuple(_in_lines(edge, line) for edge in figure.edges)
        made = _PortMapLayout(replace(figure, edges=edges), free).drawing
        if made.width <= _WIDEST:
            break
    return made


def _in_lines(edge: FigureEdge, line: int | None) -> FigureEdge:
    if line is None:
        return edge
    return replace(
        edge, details=tuple(part for text in edge.details for part in wrapped(text, line, SMALL_SIZE, behind=","))
    )


class _PortMapLayout:
    """Layout of a port map under construction."""

    def __init__(self, figure: Figure, free: int) -> None:
        self.figure, self.drawing = figure, FigureLayout()
        self.inside = tuple(node for cluster in figure.clusters for node in figure.nodes_in[cluster.id])
        self.into = [edge for edge in figure.edges if edge.source not in {node.id for node in self.inside}]
        self.out = [edge for edge in figure.edges if edge not in self.into]
        left = [figure.by_id[id] for id in dict.fromkeys(edge.source for edge in self.into)]
        right = [figure.by_id[id] for id in dict.fromkeys(edge.target for edge in self.out)]
        titles = max((title_width(cluster) - 2 * GAP for cluster in figure.clusters), default=0)
        self.widths = [_width(left), max(_width(self.inside), titles), _width(right)]
        self.elbows = [_elbows([edge.source for edge in self.into]), _elbows([edge.target for edge in self.out])]
        self.gaps = [
            _labels(edges) + free + STEP * len(elbows)
            for edges, elbows in zip((self.into, self.out), self.elbows, strict=True)
        ]
        self.middle = self.widths[0] + self.gaps[0]
        self.right = self.middle + self.widths[1] + self.gaps[1]
        self.rows: dict[str, tuple[int, int]] = {}
        self._draw(left, right)

    def _draw(self, left: list[FigureNode], right: list[FigureNode]) -> None:
        y = TOP
        for cluster in self.figure.clusters:
            begin = y - FRAME
            y = self._rows(cluster, y)
            frame = FrameShape(cluster, self.middle - GAP, begin, self.widths[1] + 2 * GAP, y - begin)
            self.drawing.frames.append(frame)
            self.drawing.height = y + 1
            y += 1 + FRAME
        self.drawing.width = self.right + (self.widths[2] if right else 0)
        following = any(edge.kind in (EdgeKind.BACK, EdgeKind.NO_EFFECT) for edge in self.out)
        for x, text in ((0, "outside"), (self.right, "outside and next iteration" if following else "outside")):
            if left if x == 0 else right:
                self.drawing.texts.append(Text(x, 0, text, "title", "start"))
                self.drawing.width = max(self.drawing.width, x + columns(text, bold=True))

    def _rows(self, cluster: Cluster, y: int) -> int:
        """Return the boxes of one body with all that leads in and out; the row below the last."""
        for node in self.figure.nodes_in[cluster.id]:
            into = [edge for edge in self.into if edge.target == node.id]
            out = [edge for edge in self.out if edge.source == node.id]
            height = size_of(node)[1]
            rows = y
            for edge in [*into, *out]:
                other = edge.source if edge in into else edge.target
                if other not in self.rows:
                    column = 0 if edge in into else self.right
                    self._box(self.figure.by_id[other], column, rows, self.widths[0 if edge in into else 2])
                self._line(edge, rows, inwards=edge in into)
                rows += max(size_of(self.figure.by_id[other])[1], 2 + max(len(edge.details) - 1, 0)) + 1
            tall = max(height, rows - y - 1)
            self._box(node, self.middle, y, self.widths[1], tall)
            y += tall + 1
        return y

    def _box(self, node: FigureNode, x: int, y: int, width: int, height: int | None = None) -> None:
        tall = height or size_of(node)[1]
        self.rows[node.id] = (y, tall)
        self.drawing.boxes.append(BoxShape(node, x, y, width, tall))

    def _line(self, edge: FigureEdge, row: int, *, inwards: bool) -> None:
        """Draw an edge in its row; where its other end is in another row, it bends there first."""
        begin, end = (self.widths[0] - 1, self.middle - 1)
        if not inwards:
            begin, end = self.middle + self.widths[1] - 1, self.right - 1
        y = row + 1
        top, tall = self.rows[edge.source if inwards else edge.target]
        segments = [Segment(begin, y, end, y)]
        if inwards and not top <= y < top + tall:
            elbow = begin + 1 + STEP * self.elbows[0][edge.source]
            segments = [
                Segment(begin, top + 1, elbow, top + 1),
                Segment(elbow, top + 1, elbow, y),
                Segment(elbow, y, end, y),
            ]
        if not inwards and not top <= y < top + tall:
            elbow = end - 2 - STEP * self.elbows[1][edge.target]
            low, high = sorted((top + 1, y))
            segments = [
                Segment(begin, y, elbow, y),
                Segment(elbow, low, elbow, high),
                Segment(elbow, top + 1, end, top + 1),
            ]
            self.drawing.lines.append(Polyline(edge.kind, tuple(segments), (), edge.label, rights=((end, top + 1),)))
        else:
            self.drawing.lines.append(Polyline(edge.kind, tuple(segments), (), edge.label, rights=((end, y),)))
        if edge.kind is EdgeKind.NO_EFFECT:
            self.drawing.lines[-1] = self.drawing.lines[-1]._replace(crosses=((begin + 5, y),))
        middle = (begin + end + (-GAP if inwards else GAP)) / 2  # of what is outside of the frame
        self.drawing.texts.append(Text(middle, y - 0.85, edge.label, "small"))
        for at, line in enumerate(edge.details):
            self.drawing.texts.append(Text(middle, y + 0.6 + at, line, "small"))


def _width(nodes: list[FigureNode] | tuple[FigureNode, ...]) -> int:
    return largest([(0, 0), *(size_of(node) for node in nodes)])[0]


def _labels(edges: list[FigureEdge]) -> int:
    """Return the room for the longest label of a column's edges: the role above the line, the details below."""
    texts = [text for edge in edges for text in (edge.label, *edge.details)]
    return max((columns(text, SMALL_SIZE) for text in texts), default=4)


def _elbows(ends: list[str]) -> dict[str, int]:
    """Return the column of the bend for each end with several edges."""
    return {id: index for index, id in enumerate(id for id, count in Counter(ends).items() if count > 1)}
