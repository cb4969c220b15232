"""Layout of the ports of operations and loops inside their boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from stepper.export.figures.figure import Arrangement, Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.fonts import SMALL_SIZE, wrapped
from stepper.export.layout.compound import arrange_level, title_width
from stepper.export.layout.figure_layout import (
    BoxShape,
    FigureLayout,
    FrameShape,
    Polyline,
    Text,
    columns,
    largest,
    segment,
    size_of,
)
from stepper.export.layout.iterations import arrange_iterations
from stepper.export.layout.layered import Segment

WIRE: Final = 5
"""Cells of a wire beside its words."""
_BETWEEN: Final = 5
_WIDEST: Final = 150
"""Pixels of a line of words beside a wire."""


class _Words(NamedTuple):
    """The words beside a wire: what is there, and its role."""

    edge: FigureEdge
    lines: tuple[str, ...]


def arrange_port_list(figure: Figure) -> FigureLayout:
    """Return what goes in above and what comes out below, one entry a wire; of an If lists for each side."""
    return _below_one_another(part for cluster in figure.clusters for part in _lists(figure, cluster))


def arrange_port_lists(figure: Figure) -> FigureLayout:
    """Return what goes in on the left and what comes out on the right; of an If the sides below one another."""
    return _below_one_another(_beside_one_another(_lists(figure, cluster)) for cluster in figure.clusters)


def _below_one_another(parts: Iterable[FigureLayout]) -> FigureLayout:
    drawing, y = FigureLayout(), 0
    for part in parts:
        drawing.include(part, 0, y)
        drawing.width = max(drawing.width, part.width)
        y += part.height + 1
    drawing.height = max(y - 1, 0)
    return drawing


def _beside_one_another(parts: Iterable[FigureLayout]) -> FigureLayout:
    drawing = FigureLayout()
    for part in parts:
        drawing.include(part, drawing.width + (_BETWEEN if drawing.width else 0), 0)
        drawing.width += part.width + (_BETWEEN if drawing.width else 0)
        drawing.height = max(drawing.height, part.height)
    return drawing


def _lists(figure: Figure, cluster: Cluster) -> Iterator[FigureLayout]:
    """Yield the lists of a body: what goes in and what comes out."""
    side = f"{cluster.label}: " if len(figure.clusters) > 1 else ""
    nodes = [node for node in figure.nodes_in[cluster.id] if node.kind is not NodeKind.GROUP]
    for inwards, title in ((True, "into the body"), (False, "out of the body")):
        found = [node for node in nodes if (node.kind is NodeKind.PARAMETER) is inwards]
        if found:
            drawing = FigureLayout()
            drawing.texts.append(Text(0, 0, f"{side}{title}", "title", "start"))
            drawing.height = _entries(figure, drawing, found, 2, inwards=inwards)
            drawing.width = max(drawing.width, columns(f"{side}{title}", bold=True))
            yield drawing


def _entries(figure: Figure, drawing: FigureLayout, nodes: list[FigureNode], y: int, *, inwards: bool) -> int:
    """Draw the boxes of one direction with their wires; the row below the last."""
    words = {node.id: list(_words(figure, node, inwards=inwards)) for node in nodes}
    wide = max(size_of(node)[0] for node in nodes)
    texts = [columns(line, SMALL_SIZE) for found in words.values() for one in found for line in one.lines]
    beside = max(texts, default=0) + 1
    left = beside + WIRE if inwards else 0
    for node in nodes:
        taken = sum(len(one.lines) + 1 for one in words[node.id]) - 1
        height = max(size_of(node)[1], taken)
        rows = y + max(height - taken, 0) // 2
        for edge, lines in words[node.id]:
            row = rows + len(lines) // 2
            begin = beside if inwards else wide - 1
            end = begin + WIRE - 1
            segments = (Segment(begin, row, end, row),)
            drawing.lines.append(Polyline(edge.kind, segments, (), edge.label, rights=((end, row),)))
            for at, line in enumerate(lines):
                place = row - (len(lines) - 1) / 2 + at
                if inwards:
                    drawing.texts.append(Text(beside - 1, place, line, "small", "end"))
                else:
                    drawing.texts.append(Text(end + 2, place, line, "small", "start"))
            rows += len(lines) + 1
        drawing.boxes.append(BoxShape(node, left, y, wide, height))
        y += height + 1
    drawing.width = max(drawing.width, left + wide + (0 if inwards else WIRE + 1 + beside))
    return y


def _words(figure: Figure, node: FigureNode, *, inwards: bool) -> list[_Words]:
    """Return the wires of a box, each with the words for what is at its other end."""
    found = []
    for edge in figure.edges:
        if (edge.target if inwards else edge.source) != node.id:
            continue
        other = figure.by_id[edge.source if inwards else edge.target]
        if edge.kind in (EdgeKind.BACK, EdgeKind.NO_EFFECT):
            found.append(_Words(edge, tuple(wrapped(" ".join(other.texts), _WIDEST, SMALL_SIZE))))
            continue
        told = ", ".join((*other.lines, *([edge.label] if edge.label else [])))
        found.append(_Words(edge, (other.label, *wrapped(told, _WIDEST, SMALL_SIZE), *edge.details)))
    return found


GAP: Final = 2
TOP: Final = 5
FRAME: Final = 3
STEP: Final = 2
_PORT_MAP_WIDEST: Final = 121
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
        if made.width <= _PORT_MAP_WIDEST:
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
        other = y if top <= y < top + tall else top + 1
        first, last = (other, y) if inwards else (y, other)
        segments: tuple[Segment, ...] = (Segment(begin, y, end, y),)
        if other != y:
            left, right = self.elbows
            elbow = begin + 1 + STEP * left[edge.source] if inwards else end - 2 - STEP * right[edge.target]
            segments = (
                Segment(begin, first, elbow, first),
                segment(elbow, first, elbow, last),
                Segment(elbow, last, end, last),
            )
        crosses = ((begin + 5, y),) if edge.kind is EdgeKind.NO_EFFECT else ()
        made = Polyline(edge.kind, segments, (), edge.label, rights=((end, last),), crosses=crosses)
        self.drawing.lines.append(made)
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


def arranged(figure: Figure) -> FigureLayout:
    """Return the figure laid out by our own layout."""
    arrange: dict[Arrangement, Callable[[Figure], FigureLayout]] = {
        Arrangement.LAYERED: lambda figure: arrange_level(figure, "", {}),
        Arrangement.ITERATIONS: arrange_iterations,
        Arrangement.PORT_MAP: arrange_port_map,
        Arrangement.PORT_LIST: arrange_port_list,
        Arrangement.PORT_LISTS: arrange_port_lists,
    }
    return arrange[figure.arrangement](figure)
