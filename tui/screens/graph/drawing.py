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

from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import DrawnGraph, FoldingOptions, drawn_graph
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import Box, Lane, LayeredLayout, back_lanes, lay_out
from stepper.records import Record
from tui.paint.rows import cell_len, clip
from tui.screens.graph.labels import body_of, label_in, type_of
from tui.screens.graph.levels import LEVELS, LINES, VALUE_WIDTH, Detail, Manner
from tui.screens.graph.lines import WireColumns, order_of
from tui.theme import GLYPHS

LANE: Final = 4
"""Cells between two lanes of the gutter."""
MOST_KEPT: Final = 24
"""Drawings that are kept."""
_FAR: Final = 10**6
_LETTERS_IN_LINES: Final = 16
"""Letters of names from which on the columns of wires stand apart."""
_LEAST_LETTERS: Final = 7
_LEAST_VALUE: Final = 6
_LEAST_SIDE: Final = 8
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


class GutterLane(Record):
    """A back edge in the gutter: its cell there, its rows, whose name stands above it."""

    x: int
    above: int
    below: int
    name: str
    tail: int
    head: int


class BoxPlace(NamedTuple):
    """A box: `path` are the open boxes around it, each with the number of the side, from the outermost on."""

    path: tuple[tuple[int, int], ...]
    key: int


class Drawing(Struct, eq=False):
    """Everything that painting asks for, by row; rows count from the top of the margin.

    `signs` are the boxes that are words where a wire is cut; the wires of `carried` boxes are back edges. `sides` are
    the bodies inside of boxes that are open. `dots` are where wires begin and end of boxes that have none on their rim,
    `passing` by row the cells in which a wire goes down alone, whatever crosses it; `values` is the column of values,
    and how many cells they have (0: there is no room for them).
    """

    graph: DrawnGraph
    layout: LayeredLayout
    labels: dict[int, str]
    details: dict[int, str]
    manner: Manner
    margin: int
    width: int
    height: int
    gutter: int
    lanes: tuple[GutterLane, ...] = ()
    signs: AbstractSet[int] = frozenset()
    carried: AbstractSet[int] = frozenset()
    sides: Mapping[int, tuple[Side, ...]] = field(default_factory=dict)
    is_part: bool = False
    keys: dict[int, tuple[int, ...]] = field(default_factory=dict)
    targets: dict[Owner, frozenset[int]] = field(default_factory=dict)
    ways: dict[int, frozenset[int]] = field(default_factory=dict)
    across: dict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))
    along: dict[int, list[Crossed]] = field(default_factory=lambda: defaultdict(list))
    arrows: dict[int, list[Arrow]] = field(default_factory=lambda: defaultdict(list))
    boxes: dict[int, list[tuple[int, Box]]] = field(default_factory=lambda: defaultdict(list))
    dots: dict[int, tuple[int, int]] = field(default_factory=dict)
    passing: Mapping[int, AbstractSet[int]] = field(default_factory=dict)
    values: tuple[int, int] = (0, 0)

    def add(self, segment: tuple[int, int, int, int], owner: Owner) -> None:
        """Index a straight run of cells by its rows."""
        x0, y0, x1, y1 = segment
        if y0 == y1:
            self.across[y0 + self.margin].append(Run(x0, x1, owner))
            return
        for y in range(y0, y1 + 1):
            links = (UP if y > y0 else 0) | (DOWN if y < y1 else 0)
            self.along[y + self.margin].append(Crossed(x0, links, owner))

    def mark_of(self, key: int) -> str:
        """Return the mark of an operation that is folded with others when the cursor is elsewhere; else a blank."""
        return GLYPHS["part"] if key in self.manner.entered else " "

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

    def first_row(self, key: int) -> int:
        """Return the row of an open box in which its inside begins."""
        return 1 + any(side.title for side in self.sides[key])

    def place_at(self, x: int, y: int) -> BoxPlace | None:
        """Return the innermost box in a cell."""
        for key, box in self.boxes.get(y, ()):
            if box.x <= x < box.x + box.width:
                for number, side in enumerate(self.sides.get(key, ())):
                    row = y - self.margin - box.y - self.first_row(key)
                    inside = side.drawing.place_at(x - box.x - side.x, row)
                    if inside is not None:
                        return BoxPlace(((key, number), *inside.path), inside.key)
                return BoxPlace((), key)
        return None

    def readers(self, key: int) -> list[int]:
        """Return the boxes that read a box, from left to right."""
        found = {edge.target for edge in self.graph.edges if edge.source == key}
        return sorted(found, key=lambda other: self.layout.boxes[other].centre)

    def reading(self, owner: Owner) -> frozenset[int]:
        """Return the boxes into which a wire goes."""
        if not self.targets:
            found: dict[Owner, set[int]] = defaultdict(set)
            for edge in self.graph.edges:
                found[edge.source, edge.output].add(edge.target)
            self.targets.update((one, frozenset(targets)) for one, targets in found.items())
        return self.targets.get(owner, frozenset())

    def way_to(self, key: int) -> frozenset[int]:
        """Return all boxes on the ways from the inputs of the graph to a box, with that."""
        found = self.ways.get(key)
        if found is None:
            above: dict[int, list[int]] = defaultdict(list)
            for edge in self.graph.edges:
                above[edge.target].append(edge.source)
            seen = {key}
            for each in (todo := [key]):  # grows while it is read
                todo += [other for other in above[each] if other not in seen]
                seen.update(above[each])
            found = self.ways[key] = frozenset(seen)
        return found

    def sources(self, key: int) -> list[int]:
        """Return the boxes that a box reads, from left to right."""
        found = {edge.source for edge in self.graph.edges if edge.target == key}
        return sorted(found, key=lambda other: self.layout.boxes[other].centre)


class Side(Record, eq=False):
    """A body inside of an opened box: where its first column is, counted from the box's, its words, its drawing."""

    x: int
    title: str
    program: Program
    drawing: Drawing


def draw(program: Program, manner: Manner) -> Drawing:
    """Lay a program's graph out; takes about a tenth of a second for a thousand operations."""
    return drawn(program, graph_of(program, manner), manner)


def graph_of(program: Program, manner: Manner) -> DrawnGraph:
    """Return the boxes and edges of a program's graph, folded as they are drawn in a manner."""
    folding = FoldingOptions(unfolded=manner.unfolded | manner.entered, expressions=manner.expressions)
    return drawn_graph(program.graph, body_of(program), folding)


def drawn(
    program: Program,
    graph: DrawnGraph,
    manner: Manner,
    signs: Mapping[int, str] = NO_SIGNS,
    carried: AbstractSet[int] = frozenset(),
) -> Drawing:
    """Lay out a program's graph, or a part of it, with the words of its signs."""
    if manner.level == LINES and not signs:
        return _in_lines(program, graph, manner)
    level = LEVELS[manner.level]
    beside = 7 + (VALUE_WIDTH + 1 if level.has_value else 0)
    letters = level.letters if manner.room is None else max(min(level.letters, manner.room - beside), 4)
    signed = not manner.lanes and not signs
    labels = {node.key: signs.get(node.key) or label_in(program, node, letters, signed=signed) for node in graph.nodes}
    details = {}
    if level.has_type:
        details = {node.key: clip(type_of(program, node), letters) for node in graph.nodes if node.key not in signs}
    sizes = {key: (_width(label, details.get(key, ""), level), level.height) for key, label in labels.items()}
    sizes.update({key: (cell_len(text) + 2, 1) for key, text in signs.items()})
    sides = _opened(program, graph, manner, {})
    sizes.update({key: _size_around(inner, labels[key]) for key, inner in sides.items()})
    ends = [(edge.tail, edge.head) for edge in graph.back_edges if edge.tail != edge.head] if manner.lanes else []
    names = [edge.name for edge in graph.back_edges if edge.tail != edge.head]
    gutter = LANE * len(ends) + 1 if ends else 0
    room = None if manner.room is None else max(manner.room - gutter, 1)
    pins = (graph.first, graph.last) if manner.lanes else ((), ())
    layout = lay_out(sizes, graph.edges, *pins, room=room, gap=level.gap)
    lanes = back_lanes(layout, ends)
    margin = len(lanes) + 1 if lanes else 0
    drawing = Drawing(graph, layout, labels, details, manner, margin, layout.width, layout.height + 2 * margin, gutter)
    drawing.signs, drawing.carried, drawing.sides = signs.keys(), carried, sides
    _index(drawing)
    _put_lanes(drawing, lanes, names)
    return drawing


def _in_lines(program: Program, graph: DrawnGraph, manner: Manner) -> Drawing:
    """Lay out a program's graph with an operation a row; columns of wires stand closer where names need the room."""
    places = {operation.layer.id: place for place, operation in enumerate(program.operations)}
    last = {node.key: max((places.get(layer, -1) for layer in node.layers), default=-1) for node in graph.nodes}
    columns = WireColumns(order_of(graph, last), graph)
    room = _FAR if manner.room is None else manner.room
    if room - 2 * columns.count - 2 >= _LETTERS_IN_LINES:
        wide = _with_columns(program, graph, manner, columns, 2)
        if wide.width <= room:
            return wide
    return _with_columns(program, graph, manner, columns, 1)


def _with_columns(program: Program, graph: DrawnGraph, manner: Manner, columns: WireColumns, step: int) -> Drawing:
    """Lay out a program's graph with an operation a row, with so many cells a column of wires."""
    room = _FAR if manner.room is None else manner.room
    labels = {}
    for node in graph.nodes:
        letters = min(LEVELS[LINES].letters, room - step * columns.ends[node.key] - 2)
        labels[node.key] = label_in(program, node, max(letters, _LEAST_LETTERS), signed=True)
    sizes = {key: (cell_len(label) + 2, 1) for key, label in labels.items()}
    sides = _opened(program, graph, manner, {key: room - step * end for key, end in columns.ends.items()})
    sizes.update({key: _size_around(inner, labels[key]) for key, inner in sides.items()})
    layout = columns.layout(sizes, step, room)
    drawing = Drawing(graph, layout, labels, {}, manner, 0, layout.width, layout.height, 0, sides=sides)
    beside = min(room - layout.width - 2, VALUE_WIDTH) if manner.room is not None else 0
    if beside >= _LEAST_VALUE:
        drawing.values = layout.width + 1, beside
        drawing.width += 2 + beside
    _index(drawing)
    drawing.passing = {row: {column * step for column in some} for row, some in columns.passing(layout.boxes).items()}
    drawing.dots = {layout.boxes[key].y: (column * step, key) for key, column in columns.dots.items()}
    return drawing


def _opened(
    program: Program, graph: DrawnGraph, manner: Manner, rooms: Mapping[int, int]
) -> dict[int, tuple[Side, ...]]:
    """Return the bodies that are drawn inside of their boxes; in lines there are so many columns for a box."""
    found = {}
    for node in graph.nodes:
        if (id(program), node.key) in manner.opened:
            plans = bodies_of(program, node.key)
            titles = ("then", "else") if node.kind is NodeKind.BRANCH else ("",)
            room = None if manner.room is None else max(manner.room - 4, _LEAST_SIDE)
            if room is not None and node.key in rooms:
                room = max((rooms[node.key] - 3 * len(plans) - 1) // max(len(plans), 1), _LEAST_SIDE)
            inner = Manner(max(manner.level, LINES), room, lanes=False, opened=manner.opened)
            x, sides = 2, []
            for title, plan in zip(titles, plans, strict=False):
                sides.append(Side(x, title, plan, draw(plan, inner)))
                x += max(sides[-1].drawing.width, len(title)) + 3
            if sides:
                found[node.key] = tuple(sides)
    return found


def bodies_of(program: Program, layer: int) -> tuple[Program, ...]:
    """Return the programs of the bodies of a loop or an If, by its layer's id; none for any other layer."""
    operation = next((one for one in program.operations if one.layer.id == layer), None)
    return () if operation is None else tuple(plan.program for plan in operation.plans)


def _size_around(sides: Sequence[Side], label: str) -> tuple[int, int]:
    last = sides[-1]
    width = max(last.x + max(last.drawing.width, len(last.title)) + 2, cell_len(label) + 6)
    has_titles = any(side.title for side in sides)
    return width, max(side.drawing.height for side in sides) + 2 + has_titles


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


def _put_lanes(drawing: Drawing, lanes: Sequence[Lane], names: Sequence[str]) -> None:
    kept = []
    for place, lane in enumerate(lanes):
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


def _width(label: str, detail: str, level: Detail) -> int:
    if level.height == 1:
        return cell_len(label) + 2 + 2 * (level.gap > 1)
    named = cell_len(label) + (VALUE_WIDTH + 1 if level.has_value else 0)
    wide = max(named, cell_len(detail)) + 4
    return wide + (wide + 1) % 2


class Drawings:
    """The drawings that were made, the last ones kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Program, Drawing]] = OrderedDict()

    def get(self, program: Program, *how: Hashable) -> Drawing | None:
        """Return a drawing that was made before of this program in this manner."""
        found = self._kept.get((id(program), *how))
        if found is None:
            return None
        self._kept.move_to_end((id(program), *how))
        return found[1]

    def put(self, drawing: Drawing, program: Program, *how: Hashable) -> None:
        """Keep a drawing."""
        self._kept[(id(program), *how)] = program, drawing
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
