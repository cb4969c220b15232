"""Nested graphs laid out: each cluster's inside first, then the cluster as one box among those around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from stepper.export.figures.figure import BACKWARD, EdgeKind, Figure, FigureEdge, FramePort, NodeKind
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, Polyline, size_of
from stepper.export.layout.frames import Content, Framed, framed, ports_of
from stepper.export.layout.geometry import LayoutEdge, Segment
from stepper.export.layout.layered import lay_out

Sizes = Mapping[str, tuple[int, int]]

_WAY: Final = 1
"""Columns and rows of the way through the first or last rank to what stands in none of them."""


def arrange_layered(figure: Figure) -> FigureLayout:
    """Return the whole figure in ranks."""
    return arrange_level(figure, "", {})


def arrange_level(figure: Figure, cluster: str, sizes: Sizes) -> FigureLayout:
    """Return the layout of the content of a cluster, inner clusters included.

    `sizes` are the least sizes of nodes and frames, by id.
    """
    return arranged_content(figure, cluster, sizes).drawing


def arranged_content(figure: Figure, cluster: str, sizes: Sizes) -> Content:
    """Return what stands in a cluster, laid out."""
    made = Content(FigureLayout())
    ports = ports_of(figure, cluster)
    for inside in figure.clusters_in[cluster]:
        content = arranged_content(figure, inside.id, sizes)
        made.inner[inside.id] = framed(figure, inside, content, sizes.get(inside.id, (0, 0))[0])
    marks = {
        node.id for node in figure.nodes_in[cluster] if node.kind is NodeKind.END and _is_on_a_rim(figure, cluster)
    }
    items = {
        node.id: _larger(size_of(node), sizes.get(node.id)) for node in figure.nodes_in[cluster] if node.id not in marks
    }
    items.update({id: (one.drawing.width, one.drawing.height) for id, one in made.inner.items()})
    within = _edges_within(figure, cluster, items)
    made.back = [edge for edge in within if edge.kind in BACKWARD and edge.source != edge.target]
    edges, kinds = _layout_edges([edge for edge in within if edge.kind not in BACKWARD], made.inner)
    first, last = _pins(figure, cluster, made.back)
    for edge in made.back:  # a column of its own for each
        for id in (edge.source, edge.target):
            wires = sum(id in (other.source, other.target) for other in made.back) + sum(id in p.ends for p in ports)
            items[id] = _larger(items[id], (3 * wires + 1, 0))
    ways = _ways(ports, items, {*first, *last}, {*made.inner, *marks})
    for way, (id, is_output) in ways.items():
        items[way] = (_WAY, _WAY)
        edges.append(LayoutEdge(id, way, _next_output(edges, id)) if is_output else LayoutEdge(way, id))
        (last if is_output else first).append(way)
    layout = lay_out(items, edges, first, last, pins={id: one.pins for id, one in made.inner.items()})
    drawing = made.drawing
    for (source, output), wire in layout.wires.items():
        kind = kinds.get((source, output), EdgeKind.PORT)
        begin = wire.segments[0]
        line = Polyline(kind, tuple(wire.segments), (), ups=((begin.x0, begin.y0),) if source in made.inner else ())
        drawing.lines.append(_entered(line, wire.heads, made.inner, ways))
    for id, box in layout.boxes.items():
        made.boxes[id] = box
        if id in made.inner:
            drawing.include(made.inner[id].drawing, box.x, box.y)
        elif id in ways:
            made.ways[ways[id]] = box
        else:
            drawing.boxes.append(BoxShape(figure.by_id[id], box.x, box.y, box.width, box.height))
    drawing.width, drawing.height = layout.width, layout.height
    return made


def _is_on_a_rim(figure: Figure, cluster: str) -> bool:
    return bool(cluster) and figure.clusters_by_id[cluster].kind is NodeKind.LOOP


def _entered(
    line: Polyline, heads: Iterable[tuple[int, int, str]], inner: Mapping[str, Framed], ways: Mapping[str, object]
) -> Polyline:
    """Return a wire with its heads; into a frame it goes on through the row of the ports' names to the rim."""
    segments, found, downs = list(line.segments), [], []
    for x, y, target in heads:
        if target in inner and inner[target].pins.entries:
            top = inner[target].drawing.frames[0].y
            segments.append(Segment(x, y, x, y + top))
            downs.append((x, y + top))
        elif target in ways:
            segments.append(Segment(x, y, x, y + 1))
        else:
            found.append((x, y))
    return line._replace(segments=tuple(segments), heads=tuple(found), downs=tuple(downs))


def _pins(figure: Figure, cluster: str, back: list[FigureEdge]) -> tuple[list[str], list[str]]:
    """Return the items of the first and last rank: ends of back edges; in a body all Parameters and Results."""
    first, last = [edge.target for edge in back], [edge.source for edge in back]
    kind = figure.clusters_by_id[cluster].kind if cluster else None
    if kind in (NodeKind.LOOP, NodeKind.ITERATION, NodeKind.SIDE):
        first += [node.id for node in figure.nodes_in[cluster] if node.kind is NodeKind.PARAMETER]
        last += [node.id for node in figure.nodes_in[cluster] if node.kind is NodeKind.RESULT]
    return first, last


def _ways(
    ports: Sequence[FramePort], items: Mapping[str, object], at_rims: set[str], elsewhere: set[str]
) -> dict[str, tuple[str, bool]]:
    """Return the ways that ports need to boxes in the middle, such as accumulators: box and direction by their id."""
    ends = [(end, port.is_output) for port in ports for end in port.ends if end in items]
    return {
        f"{'out' if is_output else 'in'} {end}": (end, is_output)
        for end, is_output in dict.fromkeys(ends)
        if end not in at_rims and end not in elsewhere
    }


def _next_output(edges: Sequence[LayoutEdge[str]], source: str) -> int:
    return max((edge.output + 1 for edge in edges if edge.source == source), default=0)


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
            is_before = target in figure.clusters_by_id and figure.clusters_by_id[target].is_passed
            kind = EdgeKind.PORT if edge.kind is EdgeKind.ENDS and not is_before else edge.kind
            led = FigureEdge(source, target, kind, output=edge.output, enters=edge.enters, leaves=edge.leaves)
            found[led] = None
    return list(found)


def _pin_of_its_own(frame: Framed) -> int:
    """Return a new pin of a frame, for a wire to it as a whole; where it has no pins, none is needed."""
    entries = dict(frame.pins.entries)
    if not entries:
        return -1
    taken = entries.values()
    free = (x for x in range(frame.drawing.width - 2, 0, -1) if all(abs(x - other) > 1 for other in taken))
    entry = min(entries) - 1 if min(entries) < 0 else -1
    entries[entry] = next(free, frame.drawing.width - 1)
    frame.pins = frame.pins._replace(entries=entries)
    return entry


def _layout_edges(
    edges: list[FigureEdge], inner: Mapping[str, Framed]
) -> tuple[list[LayoutEdge[str]], dict[tuple[str, int], EdgeKind]]:
    """Return the edges for the layout, the tensors that leave an item numbered, and the kind of each tensor.

    Those that leave a frame through a port have its number.
    """
    numbers: dict[str, dict[int, int]] = {}
    kinds: dict[tuple[str, int], EdgeKind] = {}
    found = []
    for edge in edges:
        tensors = numbers.setdefault(edge.source, {})
        if edge.source in inner and edge.leaves >= 0:
            number = edge.leaves
        else:
            number = tensors.setdefault(edge.output, len(tensors))
        entry = edge.enters if edge.target in inner else -1
        if edge.target in inner and entry not in inner[edge.target].pins.entries:
            entry = _pin_of_its_own(inner[edge.target])
        found.append(LayoutEdge(edge.source, edge.target, number, entry))
        kinds.setdefault((edge.source, number), edge.kind)
    return found, kinds
