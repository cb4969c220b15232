"""A figure laid out on a grid of cells by our own layout: frames, boxes, lines and texts, for those who write SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stepper.export.figures.figure import Cluster, EdgeKind, FigureNode
from stepper.export.fonts import LABEL_SIZE, SMALL_SIZE, advance
from stepper.export.layout.layered import Segment

CELL: Final = 8
"""Width of a cell in pixels."""

PADDING: Final = 4


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
    title: tuple[int, int] = (0, 0)


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
    heads: tuple[tuple[int, int], ...]
    title: str = ""
    ups: tuple[tuple[int, int], ...] = ()
    downs: tuple[tuple[int, int], ...] = ()
    rights: tuple[tuple[int, int], ...] = ()
    joins: tuple[tuple[int, int], ...] = ()
    crosses: tuple[tuple[int, int], ...] = ()
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
    frames: list[FrameShape] = field(default_factory=list)
    boxes: list[BoxShape] = field(default_factory=list)
    lines: list[Polyline] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    ports: list[PortShape] = field(default_factory=list)
    marks: list[EndMark] = field(default_factory=list)

    def include(self, other: FigureLayout, dx: int, dy: int) -> None:
        """Put another drawing into this one, moved."""
        self.lines += [moved(line, dx, dy) for line in other.lines]
        for name in ("frames", "boxes", "texts", "ports", "marks"):
            getattr(self, name).extend(one._replace(x=one.x + dx, y=one.y + dy) for one in getattr(other, name))

    def renamed(self, items: Mapping[str, FigureNode | Cluster]) -> FigureLayout:
        """Return the same drawing with other nodes in its boxes and other clusters in its frames, by the old ids."""
        nodes = {id: item for id, item in items.items() if isinstance(item, FigureNode)}
        clusters = {id: item for id, item in items.items() if isinstance(item, Cluster)}
        frames = [frame._replace(cluster=clusters.get(frame.cluster.id, frame.cluster)) for frame in self.frames]
        idle = [frame for frame in frames if frame.cluster.idle]
        return replace(
            self,
            frames=frames,
            boxes=[box._replace(node=nodes[box.node.id]) for box in self.boxes],
            lines=[line._replace(idle=any(_is_in(line, frame) for frame in idle)) for line in self.lines],
            texts=list(self.texts),
            marks=[mark._replace(node=nodes.get(mark.node.id, mark.node)) for mark in self.marks],
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


def size_of(node: FigureNode) -> tuple[int, int]:
    """Return width and height of a node's box in cells."""
    label, *others = node.texts
    width = max([columns(label), *(columns(text, SMALL_SIZE, bold=True) for text in others)])
    height = len(node.texts) + 1
    if node.thumbnail is not None:
        width = max(width, min(24, 2 * max(map(len, node.thumbnail.rows), default=0)), 8)
        height += node.thumbnail.height
    return width + PADDING, height


def largest(sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the size that all of these fit in."""
    found: Sequence[tuple[int, int]] = list(sizes)
    return max(width for width, _ in found), max(height for _, height in found)
