"""Nested graphs laid out: each cluster's inside first, then the cluster as one box among those around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, NodeKind
from stepper.export.fonts import SMALL_SIZE
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, FrameShape, Polyline, Text, columns, size_of
from stepper.export.layout.geometry import LayeredLayout, LayoutEdge, Segment
from stepper.export.layout.layered import back_lanes, lay_out

Sizes = Mapping[str, tuple[int, int]]

SIDE: Final = 2
TITLE: Final = 2
BOTTOM: Final = 1


def arrange_layered(figure: Figure) -> FigureLayout:
    """Return the whole figure in ranks."""
    return arrange_level(figure, "", {})


def arrange_level(figure: Figure, cluster: str, sizes: Sizes) -> FigureLayout:
    """Return the layout of the content of a cluster, inner clusters included.

    `sizes` are the least sizes of nodes and frames, by id.
    """
    inner = {
        inside.id: framed(inside, arrange_level(figure, inside.id, sizes), sizes.get(inside.id, (0, 0))[0])
        for inside in figure.clusters_in[cluster]
    }
    items = {node.id: _larger(size_of(node), sizes.get(node.id)) for node in figure.nodes_in[cluster]}
    items.update({id: (drawing.width, drawing.height) for id, drawing in inner.items()})
    within = _edges_within(figure, cluster, items)
    back = [edge for edge in within if edge.kind is EdgeKind.BACK and edge.source != edge.target]
    edges, kinds = _layout_edges([edge for edge in within if edge.kind is not EdgeKind.BACK])
    layout = lay_out(items, edges, *_pins(figure, cluster, back))
    drawing = FigureLayout()
    _draw_back_edges(drawing, layout, back)
    above = drawing.height
    for (source, output), wire in layout.wires.items():
        heads = tuple((head.x, head.y) for head in wire.heads)
        begin = wire.segments[0]
        stubs = ((begin.x0, begin.y0),) if source in inner else ()
        line = Polyline(kinds[source, output], tuple(wire.segments), heads, stubs=stubs)
        drawing.include(FigureLayout(lines=[line]), 0, above)
    for id, box in layout.boxes.items():
        if id in inner:
            drawing.include(_widened(inner[id], box.width), box.x, box.y + above)
        else:
            drawing.boxes.append(BoxShape(figure.by_id[id], box.x, box.y + above, box.width, box.height))
    drawing.width = max(drawing.width, layout.width)
    drawing.height = layout.height + above + max(above - 1, 0)
    return drawing


def _pins(figure: Figure, cluster: str, back: list[FigureEdge]) -> tuple[list[str], list[str]]:
    """Return the items of the first and last rank: ends of back edges; in a loop's body all Parameters and Results."""
    first, last = [edge.target for edge in back], [edge.source for edge in back]
    if cluster and figure.clusters_by_id[cluster].kind in (NodeKind.LOOP, NodeKind.ITERATION):
        first += [node.id for node in figure.nodes_in[cluster] if node.kind is NodeKind.PARAMETER]
        marks = {node.id for node in figure.nodes_in[cluster] if node.kind is NodeKind.END}
        ends = {edge.source for edge in figure.edges if edge.kind is EdgeKind.ENDS and edge.target in marks}
        last += [node.id for node in figure.nodes_in[cluster] if node.kind is NodeKind.RESULT and node.id not in ends]
        last += [node.id for node in figure.nodes_in[cluster] if node.id in marks]
    return first, last


def _larger(size: tuple[int, int], least: tuple[int, int] | None) -> tuple[int, int]:
    return size if least is None else (max(size[0], least[0]), max(size[1], least[1]))


def _edges_within(figure: Figure, cluster: str, items: Mapping[str, object]) -> list[FigureEdge]:
    """Return the edges between two items of a level; ends that lie deeper are led to the cluster that holds them."""
    home: dict[str, str | None] = {}

    def item(id: str) -> str | None:
        if id in items:
            return id
        if id not in home:
            parent = figure.parent(id)
            home[id] = None if parent in (cluster, "") else item(parent)
        return home[id]

    found: dict[FigureEdge, None] = {}
    for edge in figure.edges:
        source, target = item(edge.source), item(edge.target)
        if source is None or target is None or (source == target and source != edge.source):
            continue
        if source == edge.source and target == edge.target:
            found[edge] = None
        elif source != target:
            found[FigureEdge(source, target, edge.kind, output=edge.output)] = None
    return list(found)


def _layout_edges(edges: list[FigureEdge]) -> tuple[list[LayoutEdge[str]], dict[tuple[str, int], EdgeKind]]:
    """Return the edges for the layout, the tensors that leave an item numbered, and the kind of each tensor."""
    numbers: dict[str, dict[int, int]] = {}
    kinds: dict[tuple[str, int], EdgeKind] = {}
    found = []
    for edge in edges:
        tensors = numbers.setdefault(edge.source, {})
        number = tensors.setdefault(edge.output, len(tensors))
        found.append(LayoutEdge(edge.source, edge.target, number))
        kinds.setdefault((edge.source, number), edge.kind)
    return found, kinds


def _draw_back_edges(drawing: FigureLayout, layout: LayeredLayout[str], back: list[FigureEdge]) -> None:
    """Draw the back edges round the right side, each with its name."""
    lanes = back_lanes(layout, [(edge.source, edge.target) for edge in back])
    above = lanes.margin
    for lane in lanes.lanes:
        segments = tuple(Segment(x0, y0 + above, x1, y1 + above) for x0, y0, x1, y1 in lane.segments)
        head = (lane.segments[-1].x1, above - 1)
        name = back[lane.index].label
        drawing.lines.append(Polyline(EdgeKind.BACK, segments, (head,), name))
        drawing.texts.append(Text(head[0] + 2, lane.above + above, name, "back", "start"))
        drawing.width = max(drawing.width, head[0] + 3 + columns(name, SMALL_SIZE))
    drawing.width = max(drawing.width, lanes.width)
    drawing.height = above


def title_width(cluster: Cluster) -> int:
    """Return the least width of a frame with its title."""
    small = (columns(text, SMALL_SIZE) for text in cluster.lines)
    return max(columns(cluster.label, bold=True), *small, 0) + 2 * SIDE


def framed(cluster: Cluster, inside: FigureLayout, least: int = 0) -> FigureLayout:
    """Return a cluster's drawing in its frame, the title above."""
    width = max(inside.width + 2 * SIDE, title_width(cluster), least)
    top = TITLE + len(cluster.lines)
    drawing = FigureLayout(width, inside.height + top + BOTTOM)
    drawing.frames.append(FrameShape(cluster, 0, 0, width, drawing.height))
    drawing.include(inside, (width - inside.width) // 2, top)
    return drawing


def _widened(drawing: FigureLayout, width: int) -> FigureLayout:
    """Return a framed drawing in the width that the layout gave its box for the wires that it has."""
    if width <= drawing.width:
        return drawing
    wider = FigureLayout(width, drawing.height)
    wider.include(drawing, (width - drawing.width) // 2, 0)
    wider.frames[0] = wider.frames[0]._replace(x=0, width=width)
    return wider
