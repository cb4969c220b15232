"""Parts of a layout: boxes, wires of segments, arrow heads, lanes of back edges; vertices and nets on the way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, field

N = TypeVar("N", bound=Hashable)


class LayoutEdge(NamedTuple, Generic[N]):
    """From output number `output` of a node to another node, there into the pin `entry` where it has pins."""

    source: N
    target: N
    output: int = 0
    entry: int = -1


class Pins(NamedTuple):
    """The columns of a box, from its left, at which wires enter from above (by entry) and leave (by output)."""

    entries: Mapping[int, int] = {}
    exits: Mapping[int, int] = {}


class Segment(NamedTuple):
    """A straight run of cells, both ends included, x0 <= x1 and y0 <= y1."""

    x0: int
    y0: int
    x1: int
    y1: int


class Box(Struct, frozen=True):
    """A node's rectangle of cells."""

    x: int
    y: int
    width: int
    height: int

    @property
    def centre(self) -> int:
        """The column in the middle, where a lone wire leaves."""
        return self.x + self.width // 2


class Head(NamedTuple, Generic[N]):
    """The cell of an arrow head, right above the target's box."""

    x: int
    y: int
    target: N


class Wire(Struct, Generic[N]):
    """All the line work of one tensor: output number `output` of `source`. It begins on the box's lowest row."""

    source: N
    output: int
    segments: list[Segment] = field(default_factory=list)
    heads: list[Head[N]] = field(default_factory=list)


class LayeredLayout(Struct, Generic[N], frozen=True):
    """Boxes by node, wires by (source, output), the size in cells; `ranks`: the nodes by rank, left to right."""

    boxes: dict[N, Box]
    wires: dict[tuple[N, int], Wire[N]]
    ranks: tuple[tuple[N, ...], ...]
    width: int
    height: int


class Lane(Struct, Generic[N], frozen=True):
    """The way of one back edge: down from the tail, along row `below`, up `column`, back along row `above`.

    `index` is that of the back edge in the list that was given.
    """

    index: int
    tail: N
    head: N
    column: int
    above: int
    below: int
    segments: tuple[Segment, ...]


class Lanes(Struct, Generic[N], frozen=True):
    """All back edges; `width` of layout and lanes together, `margin`: rows needed above and below the layout."""

    lanes: tuple[Lane[N], ...]
    width: int
    margin: int


class Net(Struct, Generic[N], eq=False):
    """A wire between two ranks: from one place to all that it reaches in the next rank; `column` is where it leaves.

    `entries` are the pins of its `ends`, -1 for one that has none.
    """

    output: int
    top: Vertex[N]
    ends: list[Vertex[N]] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    column: int = 0


class Tie(NamedTuple, Generic[N]):
    """A neighbour of a vertex: `slot` is the number of the pin there, `own` of that here.

    `shift`: how far to the right of it (in columns, between middles) the vertex stands where the wire is straight.
    """

    cell: Vertex[N]
    slot: int = 0
    own: int = 0
    shift: float = 0.0


class Vertex(Struct, Generic[N], eq=False):
    """A place in a rank: a node, or (`trunk`) what carries output `trunk` of `owner` past the rank.

    `above` and `below` are the neighbours once for each wire between; `x` is first the centre, then the left column.
    `position` is the place in the rank, where one with pins takes a place for each.
    """

    owner: N
    trunk: int | None
    width: int
    height: int
    ins: list[Net[N]] = field(default_factory=list)
    outs: list[Net[N]] = field(default_factory=list)
    above: list[Tie[N]] = field(default_factory=list)
    below: list[Tie[N]] = field(default_factory=list)
    pins: Pins = Pins()
    position: int = 0
    weight: float = 0.0
    x: float = 0.0
    left: int = 0

    @property
    def slots(self) -> int:
        """How many places of the rank it takes."""
        return max(len(self.pins.entries), len(self.pins.exits), 1)
