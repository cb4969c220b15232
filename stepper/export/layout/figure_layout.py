"""Lay out figures on a grid of cells: shapes, and nested graphs as boxes in outer graphs.

A frame has wires through ports on its rim, back edges round its sides, end marks, and a title. Its rows from above are:
names of ports; the rim; the wire to the mark of a trip count; the title; a channel in which wires from ports and back
edges turn; the content; another such channel; the wire to the mark of the condition; the rim; names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stepper.export.figures.figure import (
    BACKWARD,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    FramePort,
    NodeKind,
)
from stepper.export.fonts import LABEL_SIZE, SMALL_SIZE, advance
from stepper.export.layout.layered import (
    LANE_STEP,
    Box,
    Cell,
    ChannelPath,
    LayeredLayout,
    LayoutEdge,
    Pins,
    Segment,
    Size,
    Tensor,
    channel,
    lay_out,
)

CELL = 8
"""Width of a cell in pixels."""

PADDING = 4

Cells = tuple[Cell, ...]


class BoxShape(NamedTuple):
    """A node's rectangle, in cells."""

    node: FigureNode
    x: int
    y: int
    width: int
    height: int


class FrameShape(NamedTuple):
    """A cluster's rectangle, in cells; `title` is the cell, from its corner, where its title begins."""

    cluster: Cluster
    x: int
    y: int
    width: int
    height: int
    title: Cell = (0, 0)


class PortShape(NamedTuple):
    """A port of a frame: a square in the middle of column `x`, on the upper edge of row `y`."""

    x: int
    y: int


class EndMark(NamedTuple):
    """A mark at which a loop ends: a bar on the right (or left) rim of a frame, whose outer side `x` is, in row `y`.

    `says_below`: its words stand below the wire that leads to it, not at its end.
    """

    node: FigureNode
    x: int
    y: int
    at_left: bool = False
    says_below: bool = False


class Polyline(NamedTuple):
    """All segments of one tensor's wire (or of one edge), and the cells of its arrow heads, each above what it enters.

    `ups` are cells where it begins at the upper edge, not in the middle, and `downs` where it ends at the lower one: it
    goes through the rim of a frame there. `rights` are heads that point to the right, each in the cell before what it
    enters; `joins` are cells where it runs into another line. `crosses`: it has no effect.
    `idle`: it is in a side of an If that did not run.
    """

    kind: EdgeKind
    segments: tuple[Segment, ...]
    heads: Cells
    title: str = ""
    ups: Cells = ()
    downs: Cells = ()
    rights: Cells = ()
    joins: Cells = ()
    crosses: Cells = ()
    idle: bool = False


class Text(NamedTuple):
    """A text of its own; `x` and `y` are the cell of its middle (of its beginning where `anchor` is start)."""

    x: float
    y: float
    text: str
    style: str
    anchor: str = "middle"


class FigureLayout(Struct):
    """Shapes on a grid, sizes in cells."""

    width: int = 0
    height: int = 0
    frames: list[FrameShape] = []
    boxes: list[BoxShape] = []
    lines: list[Polyline] = []
    texts: list[Text] = []
    ports: list[PortShape] = []
    marks: list[EndMark] = []

    def include(self, other: FigureLayout, dx: int, dy: int) -> None:
        """Put another drawing into this one, moved."""
        self.lines += [moved(line, dx, dy) for line in other.lines]
        for name in ("frames", "boxes", "texts", "ports", "marks"):
            getattr(self, name).extend(one._replace(x=one.x + dx, y=one.y + dy) for one in getattr(other, name))

    def renamed(self, items: Mapping[str, Any]) -> FigureLayout:
        """Return the same drawing with other nodes in its boxes and other clusters in its frames, by the old ids."""
        frames = [one._replace(cluster=items.get(one.cluster.id, one.cluster)) for one in self.frames]
        idle = [frame for frame in frames if frame.cluster.idle]
        return replace(
            self,
            frames=frames,
            boxes=[one._replace(node=items[one.node.id]) for one in self.boxes],
            lines=[line._replace(idle=any(_is_in(line, frame) for frame in idle)) for line in self.lines],
            marks=[one._replace(node=items.get(one.node.id, one.node)) for one in self.marks],
        )


def _is_in(line: Polyline, frame: FrameShape) -> bool:
    right, bottom = frame.x + frame.width, frame.y + frame.height
    return all(
        frame.x <= part.x0 and part.x1 < right and frame.y <= part.y0 and part.y1 < bottom for part in line.segments
    )


def moved(line: Polyline, dx: int, dy: int) -> Polyline:
    """Return a line somewhere else."""
    segments = tuple(Segment(x0 + dx, y0 + dy, x1 + dx, y1 + dy) for x0, y0, x1, y1 in line.segments)
    cells: dict[str, Any] = {
        name: tuple((x + dx, y + dy) for x, y in getattr(line, name))
        for name in ("heads", "ups", "downs", "rights", "joins", "crosses")
    }
    return line._replace(segments=segments, **cells)


def segment(x0: int, y0: int, x1: int, y1: int) -> Segment:
    """Return a segment between two cells of one row or column, in either order."""
    return Segment(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def columns(text: str, size: int = LABEL_SIZE, *, bold: bool = False) -> int:
    """Return the width of a text in cells, rounded up; `size` is its height in pixels."""
    return math.ceil(advance(text, size, bold=bold) / CELL)


def size_of(node: FigureNode) -> Size:
    """Return width and height of a node's box in cells."""
    label, *others = node.texts
    width = max([columns(label), *(columns(text, SMALL_SIZE, bold=True) for text in others)])
    height = len(node.texts) + 1
    if node.thumbnail is not None:
        width = max(width, min(24, 2 * max(map(len, node.thumbnail.rows), default=0)), 8)
        height += node.thumbnail.height
    return width + PADDING, height


def largest(sizes: Iterable[Size]) -> Size:
    """Return the size that all of these fit in."""
    found: Sequence[Size] = list(sizes)
    return max(width for width, _ in found), max(height for _, height in found)


SIDE = 2
_TITLE = 2
_SIDE_THAT_RAN = "from the side that ran"
_APART = 4
"""Columns between two ports whose places are free."""


class Content(Struct):
    """The content of a cluster: `boxes` are places of all nodes and frames, `inner` the frames, `back` its back edges.

    `ways` are the places where wires from above (or to below) reach what stands in the middle.
    """

    drawing: FigureLayout
    boxes: dict[str, Box] = {}
    inner: dict[str, Framed] = {}
    back: list[FigureEdge] = []
    ways: dict[tuple[str, bool], Box] = {}


def ports_of(figure: Figure, cluster: str) -> tuple[FramePort, ...]:
    """Return the ports of a cluster; of a side of an If what the ports of its If lead to in there."""
    found = figure.clusters_by_id.get(cluster)
    if found is None or found.kind is not NodeKind.SIDE:
        return () if found is None else tuple(_drawn(found.ports, figure))
    ends = [
        (end, port.is_output)
        for port in _drawn(figure.clusters_by_id[found.parent].ports, figure)
        for end in port.ends
        if figure.parent(end) == cluster
    ]
    return tuple(FramePort(index, (), (end,), is_output) for index, (end, is_output) in enumerate(dict.fromkeys(ends)))


def _drawn(ports: Sequence[FramePort], figure: Figure) -> Iterator[FramePort]:
    """Yield the ports of what is drawn, which may be a part of the whole."""
    for port in ports:
        ends = tuple(end for end in port.ends if end in figure.by_id)
        if ends or not port.ends:
            yield replace(port, ends=ends)


def room_for(items: Iterable[tuple[str, FigureNode | Cluster]]) -> dict[str, Size]:
    """Return sizes in which all boxes, and the titles of all frames, of one id have room."""
    found: dict[str, Size] = {}
    for id, item in items:
        size = size_of(item) if isinstance(item, FigureNode) else (title_width(item), 0)
        found[id] = largest((size, found.get(id, size)))
    return found


def title_width(cluster: Cluster) -> int:
    """Return the least width of a frame with its title."""
    small = (columns(text, SMALL_SIZE) for text in cluster.lines)
    return max(columns(cluster.label, bold=True), *small, 0) + 2 * SIDE


class _End(NamedTuple):
    """Where a wire through the rim ends: a column, and the row of its arrow head or of the box that it leaves."""

    column: int
    row: int
    has_head: bool = False
    is_frame: bool = False


class _Wire(Struct):
    """A wire between the rim (or a lane at a side) and boxes: `column` is where it leaves the rim, or that lane."""

    column: int
    ends: list[_End]
    port: FramePort | None = None


class _Lane(Struct):
    """A back edge: whether it runs round the left side, and the column of its lane there."""

    edge: FigureEdge
    at_left: bool
    column: int = 0


class Framed:
    """A cluster in its frame: `pins` are the columns of its ports, `ways` those of what its wires end at inside.

    Columns are first those of the content, then those of the frame, which is at least so wide.
    """

    def __init__(self, figure: Figure, cluster: Cluster, content: Content, least: int) -> None:
        self.figure, self.cluster, self.content = figure, cluster, content
        ports = ports_of(figure, cluster.id)
        self.inputs = [port for port in ports if not port.is_output]
        self.outputs = [port for port in ports if port.is_output]
        self.marks = {node.id: node for node in figure.nodes_in[cluster.id] if node.kind is NodeKind.END}
        ending = (edge for edge in figure.edges if edge.kind is EdgeKind.ENDS and edge.target in self.marks)
        self.ended = next((edge for edge in ending if edge.source in content.boxes), None)
        self.lanes = self._lanes()
        self.mark_at_left = self._is_mark_at_left()
        self.above = self._wires(self.inputs)
        self.below = self._wires(self.outputs)
        self.counted = next((port for port in self.inputs if not self.marks.keys().isdisjoint(port.ends)), None)
        self.title = 0
        self.band = int(self.counted is not None)
        self.dx, self.width = self._settled(least)
        self.drawing = FigureLayout()
        self._draw()
        self.ways = {end: wire.column for wire in (*self.above, *self.below) if wire.port for end in wire.port.ends}
        self.pins = Pins(self._columns(self.above), self._columns(self.below))

    def _columns(self, wires: Sequence[_Wire]) -> dict[int, int]:
        return {wire.port.index: wire.column for wire in wires if wire.port is not None}

    # --- columns ---------------------------------------------------------------------------------------------------

    def _lanes(self) -> list[_Lane]:
        """Return the back edges, each round the side where it crosses less, the nearest heads in the inner lanes."""
        boxes, width = self.content.boxes, self.content.drawing.width
        middles = [
            [self._middle(end) for port in ports for end in port.ends if end not in self.marks]
            for ports in (self.inputs, self.outputs)
        ]
        found = []
        for edge in self.content.back:
            ends = [boxes[edge.target].centre, boxes[edge.source].centre]
            apart = [other - x for x, others in zip(ends, middles, strict=True) for other in others]
            at_left = sum(far < 0 for far in apart) < sum(far > 0 for far in apart) and sum(ends) < width
            found.append(_Lane(edge, at_left))
        for at_left in (True, False):
            side = [lane for lane in found if lane.at_left is at_left]
            side.sort(key=lambda lane: boxes[lane.edge.target].centre * (1 if at_left else -1))
            for number, lane in enumerate(side):
                far = LANE_STEP * number
                lane.column = -2 - far if at_left else width + 1 + far
        return found

    def _middle(self, end: str) -> int:
        if end in self.content.boxes:
            return self.content.boxes[end].centre
        side = self.figure.parent(end)
        return self.content.boxes[side].x + self.content.inner[side].ways[end]

    def _is_mark_at_left(self) -> bool:
        """True if the wire from the condition to its mark crosses less on the left."""
        if self.ended is None:
            return False
        here = self._middle(self.ended.source)
        others = [self._middle(end) for port in self.outputs for end in port.ends]
        left = sum(other < here for other in others) + sum(lane.at_left for lane in self.lanes)
        right = sum(other > here for other in others) + sum(not lane.at_left for lane in self.lanes)
        return left < right

    def _share(self, id: str, wire: object, *, is_output: bool) -> int:
        """Return the column at a box for a lane, a port or the edge to a mark: in the order of where they lead."""
        box = self.content.boxes[id]
        lanes = sorted(
            (lane for lane in self.lanes if (lane.edge.source if is_output else lane.edge.target) == id),
            key=lambda lane: lane.column,
        )
        marks = [self.ended] if is_output and self.ended is not None and self.ended.source == id else []
        ports = [port for port in (self.outputs if is_output else self.inputs) if id in port.ends]
        order: list[object] = [lane for lane in lanes if lane.at_left]
        order += [*marks, *ports] if self.mark_at_left else [*ports, *marks]
        order += [lane for lane in lanes if not lane.at_left]
        return box.x + box.width * (2 * order.index(wire) + 1) // (2 * len(order))

    def _ends(self, port: FramePort) -> list[_End]:
        """Return where the wire of a port ends inside."""
        found = []
        for end in port.ends:
            if end in self.marks:
                continue
            way = self.content.ways.get((end, port.is_output))
            if way is not None:
                found.append(_End(way.centre, way.y))
            elif end in self.content.boxes:
                row = self._row(end, is_output=port.is_output)
                found.append(_End(self._share(end, port, is_output=port.is_output), row, has_head=not port.is_output))
            else:
                row = self._row(self.figure.parent(end), is_output=port.is_output)
                found.append(_End(self._middle(end), row, is_frame=True))
        return found

    def _wires(self, ports: Sequence[FramePort]) -> list[_Wire]:
        """Return the wires of ports: straight where they have one end, else in between; controls at a side."""
        ends = {port: self._ends(port) for port in ports}
        columns_of = {port: found[0].column for port, found in ends.items() if len(found) == 1}
        for port, found in ends.items():
            if len(found) > 1:
                columns_of[port] = _free(sum(end.column for end in found) // len(found), columns_of.values())
        for port, found in ends.items():
            if not found:
                columns_of[port] = self._aside(port, columns_of.values())
        return sorted((_Wire(columns_of[port], ends[port], port) for port in ports), key=lambda wire: wire.column)

    def _aside(self, port: FramePort, taken: Iterable[int]) -> int:
        """Return the column of a port without a wire inside: of an If on the left of all, of a loop on the right."""
        room = columns(port.words[0], SMALL_SIZE) + 3 if port.words else _APART
        if self.cluster.kind is NodeKind.BRANCH:
            return min(taken, default=room + 1) - _APART - 1
        return max(taken, default=0) + room

    def _settled(self, least: int) -> tuple[int, int]:
        """Return how far columns move to the right, and the width of the frame; all columns are then its own."""
        wires = (*self.above, *self.below)
        used = [lane.column for lane in self.lanes] + [wire.column for wire in wires]
        asides = [wire.port for wire in self.above if wire.port is not None and not wire.ends]
        named = max((columns(port.words[0], SMALL_SIZE) + 1 for port in asides if port.words), default=0)
        begin, end = (
            min([0, *(column - 1 for column in used), *(wire.column - named for wire in self.above if not wire.ends)]),
            max([self.content.drawing.width, *(c + 2 for c in used)]),
        )
        if self.ended is not None:
            words = columns(self.marks[self.ended.target].label, SMALL_SIZE) + 2
            below = [wire.column for wire in self.below] + [self._share(self.ended.source, self.ended, is_output=True)]
            begin = min(begin, min(below) - words) if self.mark_at_left else begin
            end = end if self.mark_at_left else max(end, max(below) + 1 + words)
        left = SIDE - begin
        width = end + left + SIDE
        title = title_width(self.cluster) - SIDE
        verticals = sorted(wire.column + left for wire in self.above if wire.ends)
        words = 0
        if self.counted is not None:  # the words of its mark stand below the wire to it
            mark = next(end for end in self.counted.ends if end in self.marks)
            words = columns(self.marks[mark].label, SMALL_SIZE) + 3
            width = max(width, max(verticals, default=0) + 1 + words)
            if title + SIDE + words > max(width, least):  # the title has no room beside them: it stands below
                self.band, words = self.band + 1, 0
        room, self.title = _title_place(verticals, width - words, title)
        if room < 0:  # there is no place: more on the left
            left -= room
            width -= room
        width = max(width, title + SIDE + words, least)
        for lane in self.lanes:
            lane.column += left
        for wire in wires:
            wire.column += left
            wire.ends = [end._replace(column=end.column + left) for end in wire.ends]
        return left, width

    # --- rows ------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        cluster, drawing = self.cluster, self.drawing
        apart = cluster.kind is NodeKind.BLOCK  # squares on its rim, and no wire that begins or ends within
        named = [any(apart or port.words for port in ports) for ports in (self.inputs, self.outputs)]
        rim, band = int(named[0]), self.band
        begin = rim + band + _TITLE + len(cluster.lines)
        lanes, tails = (
            [_Wire(lane.column, [self._turn(lane, is_output=is_output)]) for lane in self.lanes]
            for is_output in (False, True)
        )
        above, depth = _channel([*(wire for wire in self.above if wire.ends), *lanes], begin)
        top = begin + depth + 1
        marked = [] if self.ended is None else [_Wire(column := self._marked(), [_End(column, 0)])]
        below, deep = _channel([*self.below, *tails, *marked], 0)
        bottom = top + self.content.drawing.height
        last = bottom + deep + len(marked)
        end = last + 1
        drawing.width, drawing.height = self.width, end + int(named[1])
        drawing.frames.append(FrameShape(cluster, 0, rim, self.width, end - rim, (self.title, band)))
        drawing.include(self.content.drawing, self.dx, top)
        for wire, path in zip((wire for wire in self.above if wire.ends), above, strict=False):
            self._draw_entry(wire, path, rim, top)
        for wire, path in zip(self.below, below, strict=False):
            if wire.ends:
                self._draw_exit(wire, _flipped(path, bottom + deep - 1), end, top)
        for lane, head, tail in zip(
            self.lanes, above[len(above) - len(lanes) :], below[len(self.below) :], strict=False
        ):
            self._draw_lane(lane, head, _flipped(tail, bottom + deep - 1), top)
        self._say_what_joins(end)
        self._draw_marks(rim, last - 1, top)
        self._name_ports(rim, end)

    def _turn(self, lane: _Lane, *, is_output: bool) -> _End:
        id = lane.edge.source if is_output else lane.edge.target
        return _End(self._share(id, lane, is_output=is_output) + self.dx, self._row(id, is_output=is_output))

    def _row(self, id: str, *, is_output: bool) -> int:
        """Return the row in which wires end above a box, or leave it below."""
        box = self.content.boxes[id]
        return box.y + box.height - 1 if is_output else box.y - 1

    def _marked(self) -> int:
        assert self.ended is not None
        return self._share(self.ended.source, self.ended, is_output=True) + self.dx

    def _draw_entry(self, wire: _Wire, path: ChannelPath, rim: int, top: int) -> None:
        parts = [segment(wire.column, rim, wire.column, path.begin), *path.segments]
        parts += [segment(end.column, path.row, end.column, top + end.row) for end in wire.ends]
        heads = tuple((end.column, top + end.row) for end in wire.ends if end.has_head)
        downs = tuple((end.column, top + end.row) for end in wire.ends if end.is_frame)
        line = Polyline(EdgeKind.PORT, tuple(parts), heads, ups=((wire.column, rim),), downs=downs)
        self.drawing.lines.append(line)

    def _draw_exit(self, wire: _Wire, path: ChannelPath, end: int, top: int) -> None:
        begins = [(one.column, top + one.row + one.is_frame) for one in wire.ends]
        parts = [segment(column, row, column, path.row) for column, row in begins]
        parts += [segment(wire.column, path.begin, wire.column, end - 1), *path.segments]
        ups = tuple(cell for cell, one in zip(begins, wire.ends, strict=True) if one.is_frame)
        line = Polyline(EdgeKind.PORT, tuple(parts), (), ups=ups, downs=((wire.column, end - 1),))
        self.drawing.lines.append(line)

    def _say_what_joins(self, end: int) -> None:
        """Say at the outputs of an If which of its sides they are from, where there is room beside them."""
        if self.cluster.kind is not NodeKind.BRANCH or not any(len(wire.ends) > 1 for wire in self.below):
            return
        first, last = self.below[0].column, self.below[-1].column
        wide = columns(_SIDE_THAT_RAN, SMALL_SIZE)
        if wide <= max(self.width - last - 3, first - 2):
            x, anchor = (last + 1.6, "start") if wide <= self.width - last - 3 else (first - 0.6, "end")
            self.drawing.texts.append(Text(x, end - 1, _SIDE_THAT_RAN, "small", anchor))

    def _draw_lane(self, lane: _Lane, head: ChannelPath, tail: ChannelPath, top: int) -> None:
        above, below = self._turn(lane, is_output=False), self._turn(lane, is_output=True)
        into, out = (
            [part for part in path.segments if part.x0 != lane.column or part.x1 != lane.column]
            for path in (head, tail)
        )
        rows = [part.y0 for part in (*into, *out) if lane.column in (part.x0, part.x1)]
        parts = [
            segment(below.column, top + below.row, below.column, tail.row),
            *out,
            segment(lane.column, min(rows), lane.column, max(rows)),
            *into,
            segment(above.column, head.row, above.column, top + above.row),
        ]
        name = lane.edge.label
        heads = ((above.column, top + above.row),)
        crosses = ((lane.column, (min(rows) + max(rows)) // 2),) if lane.edge.kind is EdgeKind.NO_EFFECT else ()
        self.drawing.lines.append(Polyline(lane.edge.kind, tuple(parts), heads, name, crosses=crosses))

    def _draw_marks(self, rim: int, row: int, top: int) -> None:
        """Draw the marks of the trip count and of the condition, with the dotted wires to them."""
        for wire in self.above:
            for end in wire.port.ends if wire.port is not None else ():
                if end in self.marks:
                    parts = (
                        Segment(wire.column, rim, wire.column, rim),
                        Segment(wire.column, rim, self.width - 2, rim),
                    )
                    self.drawing.lines.append(Polyline(EdgeKind.ENDS, parts, (), ups=((wire.column, rim),)))
                    self.drawing.marks.append(EndMark(self.marks[end], self.width, rim, says_below=True))
        if self.ended is not None:
            node, column = self.marks[self.ended.target], self._marked()
            words = columns(node.label, SMALL_SIZE) + 1
            reach = words + 1 if self.mark_at_left else self.width - words - 2
            parts = (
                segment(column, top + self._row(self.ended.source, is_output=True), column, row),
                segment(column, row, reach, row),
            )
            self.drawing.lines.append(Polyline(EdgeKind.ENDS, parts, ()))
            self.drawing.marks.append(EndMark(node, 0 if self.mark_at_left else self.width, row, self.mark_at_left))

    def _name_ports(self, rim: int, end: int) -> None:
        """Draw the ports, the words of each beside its wire outside of the frame, as many as there is room for."""
        if self.cluster.kind is NodeKind.SIDE:
            return
        for wires, row, edge in ((self.above, rim - 1, rim), (self.below, end, end)):
            free, following = 0, [*(wire.column for wire in wires), self.width + 2][1:]
            for wire, after in zip(wires, following, strict=True):
                self.drawing.ports.append(PortShape(wire.column, edge))
                free = self._name_port(wire, row, free, after)

    def _name_port(self, wire: _Wire, row: int, free: int, after: int) -> int:
        """Draw the words of one port between columns that are free; return from where on they are behind it."""
        column = wire.column
        for words in wire.port.words if wire.port is not None else ():
            room = columns(words, SMALL_SIZE)
            if column - 1 - room >= free + bool(free):
                self.drawing.texts.append(Text(column - 0.6, row, words, "small", "end"))
                return column + 1
            if column + 2 + room <= after - 2:
                self.drawing.texts.append(Text(column + 1.6, row, words, "small", "start"))
                return column + 3 + room
        return column + 1


def _channel(wires: Sequence[_Wire], begin: int) -> tuple[list[ChannelPath], int]:
    return channel([(wire.column, [end.column for end in wire.ends]) for wire in wires], begin)


def _flipped(path: ChannelPath, last: int) -> ChannelPath:
    """Return a path upside down: its row 0 becomes the row `last`."""
    segments = [Segment(x0, last - y1, x1, last - y0) for x0, y0, x1, y1 in path.segments]
    return ChannelPath(segments, last - path.begin, last - path.row, path.column)


def _free(wanted: int, taken: Iterable[int]) -> int:
    """Return the column nearest to the wanted one that is apart from all that are taken."""
    used = list(taken)
    for far in range(1000):
        for column in (wanted - far, wanted + far):
            if column >= 1 and all(abs(column - other) >= _APART for other in used):
                return column
    return wanted


def _title_place(verticals: Sequence[int], width: int, title: int) -> tuple[int, int]:
    """Return the room that is left beside a title where wires come down, and its column; less than 0: none."""
    gaps = [(before + (2 if before else 0), after) for before, after in pairwise([0, *verticals, width])]
    begin, end = gaps[0]
    missing = title - (end - begin)
    if missing <= 0 or not verticals:
        return 0, 0
    for begin, end in gaps[1:]:
        if end - begin >= title:
            return 0, begin - 1
    return -missing, 0


Sizes = Mapping[str, Size]

_WAY = 1
"""Columns and rows of the way through the first or last rank to what stands in none of them."""


def arranged_content(figure: Figure, cluster: str, sizes: Sizes) -> Content:
    """Return the layout of the content of a cluster, inner clusters included.

    `sizes` are the least sizes of nodes and frames, by id.
    """
    made = Content(FigureLayout())
    ports = ports_of(figure, cluster)
    for inside in figure.clusters_in[cluster]:
        content = arranged_content(figure, inside.id, sizes)
        made.inner[inside.id] = Framed(figure, inside, content, sizes.get(inside.id, (0, 0))[0])
    within = figure.clusters_by_id[cluster].kind if cluster else None
    nodes = figure.nodes_in[cluster]
    marks = {node.id for node in nodes if node.kind is NodeKind.END and within is NodeKind.LOOP}
    items = {node.id: largest((size_of(node), sizes.get(node.id, (0, 0)))) for node in nodes if node.id not in marks}
    items.update({id: (one.drawing.width, one.drawing.height) for id, one in made.inner.items()})
    led = _edges_within(figure, items)
    made.back = [edge for edge in led if edge.kind in BACKWARD and edge.source != edge.target]
    first, last = [edge.target for edge in made.back], [edge.source for edge in made.back]
    if within in (NodeKind.LOOP, NodeKind.ITERATION, NodeKind.SIDE):
        first += [node.id for node in nodes if node.kind is NodeKind.PARAMETER]
        last += [node.id for node in nodes if node.kind is NodeKind.RESULT]
    for edge in made.back:  # a column of its own for each
        for id in (edge.source, edge.target):
            wires = sum(id in (other.source, other.target) for other in made.back) + sum(id in p.ends for p in ports)
            items[id] = largest((items[id], (3 * wires + 1, 0)))
    ends = dict.fromkeys((end, port.is_output) for port in ports for end in port.ends if end in items)
    apart = {*first, *last, *made.inner}
    ways = {f"{'out' if is_output else 'in'} {end}": (end, is_output) for end, is_output in ends if end not in apart}
    items.update(dict.fromkeys(ways, (_WAY, _WAY)))
    ids = list(items)
    number = {id: at for at, id in enumerate(ids)}
    edges, kinds = _layout_edges([edge for edge in led if edge.kind not in BACKWARD], made.inner, number)
    for way, (id, is_output) in ways.items():
        outputs = [edge.output + 1 for edge in edges if edge.source == number[id]] if is_output else []
        tail, head = (id, way) if is_output else (way, id)
        edges.append(LayoutEdge(number[tail], number[head], max(outputs, default=0)))
        (last if is_output else first).append(way)
    above, below = ([number[id] for id in pinned] for pinned in (first, last))
    pins = {number[id]: one.pins for id, one in made.inner.items()}
    layout = lay_out(dict(enumerate(items.values())), edges, above, below, pins=pins)
    drawing = made.drawing
    drawing.lines += _lines(layout, kinds, ids, made.inner, ways)
    for at, box in layout.boxes.items():
        id = ids[at]
        made.boxes[id] = box
        if id in made.inner:
            drawing.include(made.inner[id].drawing, box.x, box.y)
        elif id in ways:
            made.ways[ways[id]] = box
        else:
            drawing.boxes.append(BoxShape(figure.by_id[id], box.x, box.y, box.width, box.height))
    drawing.width, drawing.height = layout.width, layout.height
    return made


def _lines(
    layout: LayeredLayout,
    kinds: Mapping[Tensor, EdgeKind],
    ids: Sequence[str],
    inner: Mapping[str, Framed],
    ways: Mapping[str, object],
) -> Iterator[Polyline]:
    """Yield the wires of a level with their heads."""
    for key, wire in layout.wires.items():
        begin, heads, downs = wire.segments[0], [], []
        for x, y, target in wire.heads:  # into a frame it goes on through the row of the ports' names to the rim
            frame = inner.get(ids[target])
            if frame is not None and frame.pins.entries:
                downs.append((x, y + frame.drawing.frames[0].y))
                wire.segments.append(Segment(x, y, *downs[-1]))
            elif ids[target] in ways:
                wire.segments.append(Segment(x, y, x, y + 1))
            else:
                heads.append((x, y))
        ups = ((begin.x0, begin.y0),) if ids[wire.source] in inner else ()
        kind = kinds.get(key, EdgeKind.PORT)
        yield Polyline(kind, tuple(wire.segments), tuple(heads), ups=ups, downs=tuple(downs))


def _edges_within(figure: Figure, items: Mapping[str, object]) -> list[FigureEdge]:
    """Return the edges between two items of a level; ends that lie deeper are led to the cluster that holds them."""
    found: dict[FigureEdge, None] = {}
    for edge in figure.edges:
        source, target = figure.holder(edge.source, items), figure.holder(edge.target, items)
        if not source or not target or (source == target and source != edge.source):
            continue
        if source == edge.source and target == edge.target:
            found[edge] = None
        elif source != target:
            kind = EdgeKind.PORT if edge.kind is EdgeKind.ENDS else edge.kind
            led = FigureEdge(source, target, kind, output=edge.output, enters=edge.enters, leaves=edge.leaves)
            found[led] = None
    return list(found)


def _layout_edges(
    edges: list[FigureEdge], inner: Mapping[str, Framed], number: Mapping[str, int]
) -> tuple[list[LayoutEdge], dict[Tensor, EdgeKind]]:
    """Return the edges for the layout, the tensors that leave an item numbered, and the kind of each tensor.

    Those that leave a frame through a port have its number.
    """
    numbers: dict[str, dict[int, int]] = {}
    kinds: dict[Tensor, EdgeKind] = {}
    found = []
    for edge in edges:
        tensors = numbers.setdefault(edge.source, {})
        if edge.source in inner and edge.leaves >= 0:
            output = edge.leaves
        else:
            output = tensors.setdefault(edge.output, len(tensors))
        pins = inner[edge.target].pins.entries if edge.target in inner else {}
        entry = edge.enters if edge.enters in pins else min(pins, default=-1)
        found.append(LayoutEdge(number[edge.source], number[edge.target], output, entry))
        kinds.setdefault((number[edge.source], output), edge.kind)
    return found, kinds
