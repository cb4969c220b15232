"""A graph as it is drawn in cells: laid out once for each body and size of boxes, indexed by row for painting.

Back edges run in a gutter at the right that does not scroll sideways; each has a lane there. A part of a graph has
signs where its wires are cut: words without a frame.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field

from stepper import element_types
from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import DrawnGraph, DrawnNode, drawn_graph
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.geometry import Box, Lanes, LayeredLayout
from stepper.export.layout.layered import back_lanes, lay_out
from stepper.ir.model import Body, Layer
from tui.paint.names import carried_name, operation_names, partner_mark
from tui.paint.rows import cell_len, printable, shape_of

HEIGHTS: Final = (1, 3, 4)
"""Rows of a box by zoom: a name, a frame round it, the type below it."""
LANE: Final = 4
"""Cells between two lanes of the gutter."""
MOST_KEPT: Final = 24
"""Drawings that are kept."""
_FAR: Final = 10**6
NO_SIGNS: Final[Mapping[int, str]] = MappingProxyType({})
UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8

Owner = tuple[int, int]
"""Whose a cell of a wire is: the box's key and the output; of a back edge -1 and its lane."""


class Run(NamedTuple):
    """A horizontal run of cells in one row."""

    begin: int
    end: int
    owner: Owner


class Crossed(NamedTuple):
    """A cell of a vertical run; `links` says where it goes on."""

    x: int
    links: int
    owner: Owner


class Arrow(NamedTuple):
    """An arrow head above a box."""

    x: int
    owner: Owner
    target: int


class GutterLane(Struct, frozen=True):
    """A back edge in the gutter: its cell there, its rows, whose name stands above it."""

    x: int
    above: int
    below: int
    name: str
    tail: int
    head: int


class Drawing(Struct, eq=False):
    """Everything that painting asks for, by row; rows count from the top of the margin.

    `signs` are the boxes that are words where a wire is cut; the wires of `carried` boxes are back edges.
    """

    graph: DrawnGraph
    layout: LayeredLayout[int]
    labels: dict[int, str]
    details: dict[int, str]
    margin: int
    width: int
    height: int
    gutter: int
    lanes: tuple[GutterLane, ...] = ()
    signs: AbstractSet[int] = frozenset()
    carried: AbstractSet[int] = frozenset()
    is_part: bool = False
    keys: dict[int, tuple[int, ...]] = field(default_factory=dict)
    across: dict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))
    along: dict[int, list[Crossed]] = field(default_factory=lambda: defaultdict(list))
    arrows: dict[int, list[Arrow]] = field(default_factory=lambda: defaultdict(list))
    boxes: dict[int, list[tuple[int, Box]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, segment: tuple[int, int, int, int], owner: Owner) -> None:
        """Index a straight run of cells by its rows."""
        x0, y0, x1, y1 = segment
        if y0 == y1:
            self.across[y0 + self.margin].append(Run(x0, x1, owner))
            return
        for y in range(y0, y1 + 1):
            links = (UP if y > y0 else 0) | (DOWN if y < y1 else 0)
            self.along[y + self.margin].append(Crossed(x0, links, owner))

    def keys_at(self, y: int) -> tuple[int, ...]:
        """Whose boxes and wires are in a row, and to whom arrows point."""
        found = self.keys.get(y)
        if found is None:
            parts = (self.across.get(y, ()), self.along.get(y, ()), self.arrows.get(y, ()))
            owners = {part.owner[0]: None for some in parts for part in some}
            boxes = {key: None for key, _ in self.boxes.get(y, ())}
            targets = {arrow.target: None for arrow in self.arrows.get(y, ())}
            found = self.keys[y] = tuple(key for key in {**owners, **boxes, **targets} if key >= 0)
        return found

    def readers(self, key: int) -> list[int]:
        """Return the boxes that read a box, from left to right."""
        found = {edge.target for edge in self.graph.edges if edge.source == key}
        return sorted(found, key=lambda other: self.layout.boxes[other].centre)

    def sources(self, key: int) -> list[int]:
        """Return the boxes that a box reads, from left to right."""
        found = {edge.source for edge in self.graph.edges if edge.target == key}
        return sorted(found, key=lambda other: self.layout.boxes[other].centre)


def body_of(program: Program) -> Body | None:
    """Return the body of a port map that a program is of; None for the model's own graph."""
    if not program.path:
        return None
    return next(body for body in program.path[-1].bodies if body.graph is program.graph)


def draw(program: Program, zoom: int) -> Drawing:
    """Lay a program's graph out; takes about a tenth of a second for a thousand operations."""
    return drawn(program, drawn_graph(program.graph, body_of(program)), zoom)


def drawn(
    program: Program,
    graph: DrawnGraph,
    zoom: int,
    signs: Mapping[int, str] = NO_SIGNS,
    carried: AbstractSet[int] = frozenset(),
) -> Drawing:
    """Lay out a program's graph, or a part of it, with the words of its signs."""
    labels = {node.key: signs.get(node.key) or label_of(program, node) for node in graph.nodes}
    details = {}
    if HEIGHTS[zoom] == 4:
        details = {node.key: _detail(program, node) for node in graph.nodes if node.key not in signs}
    sizes = {key: (_width(label, details.get(key, "")), HEIGHTS[zoom]) for key, label in labels.items()}
    sizes.update({key: (cell_len(text) + 2, 1) for key, text in signs.items()})
    layout = lay_out(sizes, graph.edges, graph.first, graph.last)
    ends = [(edge.tail, edge.head) for edge in graph.back_edges if edge.tail != edge.head]
    names = [edge.name for edge in graph.back_edges if edge.tail != edge.head]
    lanes = back_lanes(layout, ends)
    gutter = LANE * len(lanes.lanes) + 1 if lanes.lanes else 0
    drawing = Drawing(
        graph, layout, labels, details, lanes.margin, layout.width, layout.height + 2 * lanes.margin, gutter
    )
    drawing.signs, drawing.carried = signs.keys(), carried
    _index(drawing)
    _put_lanes(drawing, lanes, names)
    return drawing


def _index(drawing: Drawing) -> None:
    layout = drawing.layout
    for (source, output), wire in layout.wires.items():
        for segment in wire.segments:
            drawing.add(segment, (source, output))
        for head in wire.heads:
            drawing.arrows[head.y + drawing.margin].append(Arrow(head.x, (source, output), head.target))
    for key, box in layout.boxes.items():
        for y in range(box.y, box.y + box.height):
            drawing.boxes[y + drawing.margin].append((key, box))


def _put_lanes(drawing: Drawing, lanes: Lanes[int], names: Sequence[str]) -> None:
    kept = []
    for place, lane in enumerate(lanes.lanes):
        owner = (-1, place)
        for segment in lane.segments:
            if segment.x0 == segment.x1 == lane.column:
                continue  # that one is in the gutter
            x0, y0, x1, y1 = segment
            drawing.add((x0, y0, _FAR if x1 == lane.column else x1, y1), owner)
        drawing.arrows[drawing.margin - 1].append(Arrow(drawing.layout.boxes[lane.head].centre, owner, lane.head))
        x = LANE * place + 2
        above, below = lane.above + drawing.margin, lane.below + drawing.margin
        kept.append(GutterLane(x, above, below, names[lane.index], lane.tail, lane.head))
    drawing.lanes = tuple(kept)


def label_of(program: Program, node: DrawnNode) -> str:
    """Return the text of a box."""
    return printable(_label(program, node))


def _label(program: Program, node: DrawnNode) -> str:
    layer = program.graph.by_id[node.key]
    if node.kind is NodeKind.PARAMETER:
        return node.label
    if node.kind is NodeKind.RESULT:
        return _result_label(program, layer, node.label)
    label = node.label
    if node.kind is NodeKind.ACCUMULATOR:
        return label
    if node.kind in (NodeKind.OPERATION, NodeKind.LOOP, NodeKind.BRANCH) and (node.key, 0) in program.slots:
        index = program.computed_at.get(program.slots[node.key, 0])
        label = label if index is None else operation_names(program)[index] + partner_mark(program, index)
    return f"{label} ▾{len(layer.bodies)}" if layer.bodies else label


def _result_label(program: Program, layer: Layer, label: str) -> str:
    """A Result is called as the Parameter into which a back edge carries it."""
    body = body_of(program)
    edges = () if body is None else body.back_edges
    target = next((edge.to_layer for edge in edges if edge.from_layer == layer.id), None)
    parameter = program.graph.by_id.get(target) if target is not None else None
    if parameter is not None:
        return carried_name(parameter)
    entry = next((entry for entry in body.outputs if entry.result == layer.id), None) if body is not None else None
    return "go on?" if entry is not None and entry.purpose == "execution_condition" else label


def _detail(program: Program, node: DrawnNode) -> str:
    layer = program.graph.by_id[node.key]
    if not layer.outputs:
        return ""
    port = layer.outputs[0]
    name = port.element_type.name if port.element_type is not None else ""
    shape = shape_of(port.dims)
    return f"{name}[{shape}]" if port.dims or name not in element_types.ELEMENT_TYPES else f"{name}[]"


def _width(label: str, detail: str) -> int:
    wide = max(cell_len(label), cell_len(detail)) + 4
    return wide + (wide + 1) % 2


class Drawings:
    """The drawings that were made, the last ones kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Program, Drawing]] = OrderedDict()

    def get(self, program: Program, *how: int) -> Drawing | None:
        """Return a drawing that was made before of this program in this manner."""
        found = self._kept.get((id(program), *how))
        return None if found is None else found[1]

    def put(self, drawing: Drawing, program: Program, *how: int) -> None:
        """Keep a drawing."""
        self._kept[(id(program), *how)] = program, drawing
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
