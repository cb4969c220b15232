"""A port map as a list, for narrow pages: each Parameter and Result with what leads to it in words beside its wire."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.fonts import SMALL_SIZE, wrapped
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, Polyline, Text, columns, size_of
from stepper.export.layout.geometry import Segment

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
