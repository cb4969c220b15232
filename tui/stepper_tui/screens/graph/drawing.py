"""A graph drawn in cells: its forms, the words in its boxes, its layout, and its rows at one moment.

The form *lines* is the densest of three that still names every box, as version control draws its history: a box a row,
in the order of execution, its wires in columns left of the names. A wire begins at the dot of the box that makes it,
goes down its column, and turns off to the dot of each box that reads it. Of two lines that cross the horizontal one is
interrupted (`passing`), so that a corner always means a connection.

Back edges run in a gutter at the right that does not scroll sideways; each has a lane there. Without lanes the ports
have a sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from stepper.debug.inspection.views import BreakView, FrameView
from stepper.element_types import FLOATING, Array
from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import DrawnGraph, DrawnNode
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import Box, Lane, LayeredLayout, Segment, Wire, back_lanes, lay_out
from stepper.ir.model import Body, Layer
from stepper.records import Record
from stepper.tensors.tensor_pictures import bar_scale
from stepper_tui.paint.rows import (
    Row,
    bars_of,
    carried_name,
    cell_len,
    clip,
    clip_end,
    elements,
    operation_names,
    partner_mark,
    printable,
    short_count,
)
from stepper_tui.theme import GLYPHS, break_glyph

LANE = 4
"""Cells between two lanes of the gutter."""
VALUE_WIDTH = 12
"""Cells of a value in a box, beside the name."""
_FAR = 10**6
_LETTERS_IN_LINES = 16
"""Letters of names from which on the columns of wires stand apart."""
_LEAST_LETTERS = 7
_LEAST_VALUE = 6
UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8

Owner = tuple[int, int]
"""Whose a cell of a wire is: the box's key and the output; of a back edge -1 and its lane."""


# --- forms --------------------------------------------------------------------------------------------------------


class Detail(NamedTuple):
    """How boxes look: rows, most letters of a name, free cells between neighbours."""

    name: str
    height: int
    letters: int
    gap: int


FORMS = (Detail("lines", 1, 28, 1), Detail("names", 1, 28, 2), Detail("boxes", 3, 40, 2))
LINES, NAMES, BOXES = range(len(FORMS))


class Manner(Record):
    """Manner in which a graph is drawn: `form` is an index of FORMS, `room` the columns to do with, if that counts.

    `lanes`: back edges are drawn in a gutter at the right; else ports have signs. `parts`: lines go on beside
    themselves, in so many parts, as a text in columns does.
    """

    form: int
    room: int | None = None
    lanes: bool = True
    parts: int = 1


# --- words of boxes -----------------------------------------------------------------------------------------------


def body_of(program: Program) -> Body | None:
    """Return the body of a port map that a program is of; None for the model's own graph."""
    if not program.path:
        return None
    return next(body for body in program.path[-1].bodies if body.graph is program.graph)


def label_of(program: Program, node: DrawnNode, letters: int = _FAR, *, signed: bool = False) -> str:
    """Return the text of a box in so many letters; `signed`: ports say whether a back edge comes in or goes out."""
    body, mark = body_of(program), ""
    edges = () if body is None else body.back_edges
    if signed and node.kind in (NodeKind.PARAMETER, NodeKind.RESULT):
        mark = GLYPHS["back"] if any(node.key in (edge.from_layer, edge.to_layer) for edge in edges) else ""
    name, tail = _name(program, node, body), ""
    layer = program.graph.by_id[node.key]
    if node.kind in (NodeKind.GROUP, NodeKind.SHAPES):
        tail = f" {GLYPHS['fold']}{len(node.layers)}"
    elif layer.bodies:
        tail = f" {GLYPHS['unfold']}{len(layer.bodies)}"
    room = max(letters - len(tail) - (2 if mark else 0), 4)
    if cell_len(name) > room:  # first without what is around it, then without its middle
        name = clip(name if node.kind is NodeKind.GROUP else name.rpartition("/")[2] or name, room)
    if mark:
        return f"{mark} {name}" if node.kind is NodeKind.PARAMETER else f"{name} {mark}"
    return name + tail


def _name(program: Program, node: DrawnNode, body: Body | None) -> str:
    slot = program.slots.get((node.key, 0), -1)
    index = program.computed_at.get(slot)
    if node.kind is NodeKind.RESULT and body is not None:
        return printable(_result_name(program, program.graph.by_id[node.key], body, node.label))
    if node.kind in (NodeKind.OPERATION, NodeKind.LOOP, NodeKind.BRANCH) and index is not None:
        return printable(operation_names(program)[index] + partner_mark(program, index))
    return printable(node.label)


def _result_name(program: Program, layer: Layer, body: Body, label: str) -> str:
    """A Result is called as the Parameter into which a back edge carries it."""
    target = next((edge.to_layer for edge in body.back_edges if edge.from_layer == layer.id), None)
    parameter = None if target is None else program.graph.by_id.get(target)
    if parameter is not None:
        return carried_name(parameter)
    entry = next((entry for entry in body.outputs if entry.result == layer.id), None)
    return "go on?" if entry is not None and entry.purpose == "execution_condition" else label


# --- what is drawn ------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A horizontal run of cells in one row."""

    begin: int
    end: int
    owner: Owner


class Crossed(NamedTuple):
    """A cell of a vertical run; `links` says where it continues."""

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


class Drawing(Struct, eq=False):
    """Everything that painting asks for, by row; rows count from the top of the margin.

    `dots` are where wires begin and end of boxes that have none on their rim, `passing` by row the cells in which a
    wire goes down alone, whatever crosses it; `values` is the column of values, and how many cells they have.
    """

    graph: DrawnGraph
    layout: LayeredLayout
    labels: dict[int, str]
    manner: Manner
    margin: int
    width: int
    height: int
    gutter: int = 0
    lanes: tuple[GutterLane, ...] = ()
    targets: dict[Owner, frozenset[int]] = field(default_factory=dict)
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

    def box_at(self, x: int, y: int) -> int | None:
        """Return the box in a cell."""
        return next((key for key, box in self.boxes.get(y, ()) if box.x <= x < box.x + box.width), None)

    def beside(self, key: int, direction: str) -> list[int]:
        """Return the boxes up, down, left or right of one, the nearest first; those at which the way ends come last."""
        if direction in ("left", "right"):
            rank = next(rank for rank in self.layout.ranks if key in rank)
            place = rank.index(key)
            return list(rank[place + 1 :] if direction == "right" else rank[:place][::-1])
        ends = [
            (edge.source, edge.target) if direction == "up" else (edge.target, edge.source) for edge in self.graph.edges
        ]
        centre = self.layout.boxes[key].centre

        def far(other: int) -> tuple[bool, int]:
            is_end = self.graph.node(other).kind is NodeKind.ACCUMULATOR
            return is_end, abs(self.layout.boxes[other].centre - centre)

        return sorted({other for other, near in ends if near == key}, key=far)

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
        above: dict[int, list[int]] = defaultdict(list)
        for edge in self.graph.edges:
            above[edge.target].append(edge.source)
        seen = {key}
        for each in (todo := [key]):  # grows while it is read
            todo += [other for other in above[each] if other not in seen]
            seen.update(above[each])
        return frozenset(seen)


def drawn(program: Program, graph: DrawnGraph, manner: Manner) -> Drawing:
    """Lay a graph out; takes about a tenth of a second for a thousand boxes."""
    if manner.form == LINES:
        return _in_lines(program, graph, manner)
    form, is_boxed = FORMS[manner.form], manner.form == BOXES
    beside = 7 + (VALUE_WIDTH + 1) * is_boxed
    letters = form.letters if manner.room is None else max(min(form.letters, manner.room - beside), 4)
    labels = {node.key: label_of(program, node, letters, signed=not manner.lanes) for node in graph.nodes}
    wide = {key: cell_len(label) + 4 + (VALUE_WIDTH + 1) * is_boxed for key, label in labels.items()}
    sizes = {key: (width + (width + 1) % 2 * is_boxed, form.height) for key, width in wide.items()}
    edges = [edge for edge in graph.back_edges if edge.tail != edge.head]
    ends = [(edge.tail, edge.head) for edge in edges] if manner.lanes else []
    gutter = LANE * len(ends) + 1 if ends else 0
    room = None if manner.room is None else max(manner.room - gutter, 1)
    pins = (graph.first, graph.last) if manner.lanes else ((), ())
    layout = lay_out(sizes, graph.edges, *pins, room=room, gap=form.gap)
    lanes = back_lanes(layout, ends)
    margin = len(lanes) + 1 if lanes else 0
    drawing = Drawing(graph, layout, labels, manner, margin, layout.width, layout.height + 2 * margin, gutter)
    _index(drawing)
    _put_lanes(drawing, lanes, [edge.name for edge in edges])
    return drawing


def _index(drawing: Drawing) -> None:
    layout = drawing.layout
    for owner, wire in layout.wires.items():
        for segment in wire.segments:
            drawing.add(segment, owner)
        for head in wire.heads:
            drawing.arrows[head.y + drawing.margin].append(Arrow(head.x, owner, head.target))
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
        above, below = lane.above + drawing.margin, lane.below + drawing.margin
        kept.append(GutterLane(LANE * place + 2, above, below, names[lane.index], lane.tail, lane.head))
    drawing.lanes = tuple(kept)


# --- lines --------------------------------------------------------------------------------------------------------


def _in_lines(program: Program, graph: DrawnGraph, manner: Manner) -> Drawing:
    """Lay a graph out with a box a row; columns of wires stand closer where names need the room."""
    places = {operation.layer.id: place for place, operation in enumerate(program.operations)}
    last = {node.key: max((places.get(layer, -1) for layer in node.layers), default=-1) for node in graph.nodes}
    columns = WireColumns(order_of(graph, last), graph)
    room = _FAR if manner.room is None else manner.room
    step = 2 if room - 2 * columns.count - 2 >= _LETTERS_IN_LINES else 1
    drawing = _with_columns(program, graph, manner, columns, step, room)
    return drawing if drawing.width <= room or step == 1 else _with_columns(program, graph, manner, columns, 1, room)


def _with_columns(
    program: Program, graph: DrawnGraph, manner: Manner, columns: WireColumns, step: int, room: int
) -> Drawing:
    labels = {}
    for node in graph.nodes:
        letters = min(FORMS[LINES].letters, room - step * columns.ends[node.key] - 2)
        labels[node.key] = label_of(program, node, max(letters, _LEAST_LETTERS), signed=True)
    layout = columns.layout({key: cell_len(label) + 2 for key, label in labels.items()}, step, room)
    drawing = Drawing(graph, layout, labels, manner, 0, layout.width, layout.height)
    beside = min(room - layout.width - 2, VALUE_WIDTH) if manner.room is not None else 0
    if beside >= _LEAST_VALUE:
        drawing.values = layout.width + 1, beside
        drawing.width += 2 + beside
    _index(drawing)
    drawing.passing = {row: {column * step for column in some} for row, some in columns.passing().items()}
    drawing.dots = {layout.boxes[key].y: (column * step, key) for key, column in columns.dots.items()}
    return drawing


def order_of(graph: DrawnGraph, places: Mapping[int, int]) -> list[int]:
    """Return the boxes from above: operations by their `places`, inputs before their first reader, ends at once.

    A box comes behind all that it reads.
    """
    sources: dict[int, set[int]] = defaultdict(set)
    readers: dict[int, set[int]] = defaultdict(set)
    for edge in graph.edges:
        sources[edge.target].add(edge.source)
        readers[edge.source].add(edge.target)
    ends = {node.key for node in graph.nodes if node.kind in (NodeKind.RESULT, NodeKind.ACCUMULATOR)}
    inner = [node.key for node in graph.nodes if sources[node.key] and node.key not in ends]
    found: dict[int, None] = {}

    def place_of(key: int) -> int:
        return places.get(key, -1)

    for key in sorted(inner, key=place_of):
        _put_behind(key, sources, found, place_of)
        for end in sorted(readers[key] & ends):
            if sources[end] <= found.keys():
                found.setdefault(end)
    for node in graph.nodes:
        _put_behind(node.key, sources, found, place_of)
    return list(found)


def _put_behind(
    key: int, sources: Mapping[int, set[int]], found: dict[int, None], place_of: Callable[[int], int]
) -> None:
    """Add a box behind what it reads; without recursion, for chains may be long."""
    todo = [key]
    while todo:
        missing = sorted((one for one in sources.get(todo[-1], ()) if one not in found), key=place_of)
        if missing:
            todo += missing[::-1]
        else:
            found.setdefault(todo.pop())


class WireColumns:
    """The columns of all wires between boxes in an order: `dots` is by box the column of its dot, `count` how many."""

    def __init__(self, order: Sequence[int], graph: DrawnGraph) -> None:
        self._order, self._row = order, {key: row for row, key in enumerate(order)}
        self._readers: dict[Owner, set[int]] = defaultdict(set)
        self._inputs: dict[int, list[Owner]] = defaultdict(list)
        outputs: dict[int, list[Owner]] = defaultdict(list)
        for edge in graph.edges:
            output = edge.source, edge.output
            if not self._readers[output]:
                outputs[edge.source].append(output)
            if self._row[edge.target] not in self._readers[output]:
                self._inputs[edge.target].append(output)
            self._readers[output].add(self._row[edge.target])
        self.dots: dict[int, int] = {}
        self.columns: dict[Owner, int] = {}
        self._free_from: list[int] = []
        for row, key in enumerate(order):
            self._put(row, key, sorted(outputs[key]))
        self.count = len(self._free_from)

    def _put(self, row: int, key: int, outputs: Sequence[Owner]) -> None:
        """Give a box its dot, in the column of a wire that ends there if there is one, and its wires their columns."""
        ending = sorted(self.columns[one] for one in self._inputs[key] if max(self._readers[one]) == row)
        for column in ending:
            self._free_from[column] = row + 1
        dot = self.dots[key] = ending[0] if ending else self._free(row)
        self._free_from[dot] = row + 2  # what ends here is not joined with a dot right below
        for place, output in enumerate(outputs):
            column = self.columns[output] = dot if not place else self._free(row)
            self._free_from[column] = max(self._readers[output]) + 1

    def _free(self, row: int) -> int:
        """Return the leftmost column that is free from a row on."""
        found = next((column for column, free in enumerate(self._free_from) if free <= row), None)
        if found is None:
            found = len(self._free_from)
            self._free_from.append(0)
        return found

    @cached_property
    def ends(self) -> dict[int, int]:
        """By box the first column of its row from which on there is no wire."""
        last = [self.dots[key] for key in self._order]
        for output, column in self.columns.items():
            for row in range(self._row[output[0]], max(self._readers[output]) + 1):
                last[row] = max(last[row], column)
        return {key: last[row] + 1 for row, key in enumerate(self._order)}

    def layout(self, widths: Mapping[int, int], step: int, room: int) -> LayeredLayout:
        """Return the layout with so many cells a column: dots are drawn by who draws the boxes.

        All boxes begin behind the last column; those that would not end in the room begin further left, behind the last
        wire of their row.
        """
        begin, least = self.count * step, {key: end * step for key, end in self.ends.items()}
        boxes = {
            key: Box(max(min(begin, room - widths[key]), least[key]), y, widths[key], 1)
            for y, key in enumerate(self._order)
        }
        wires: dict[Owner, Wire] = {}
        for output, column in self.columns.items():
            wire = wires[output] = Wire(*output)
            first, readers, x = self._row[output[0]], self._readers[output], column * step
            wire.segments.append(Segment(x, first, x, max(readers)))
            dots = ((row, self.dots[self._order[row]] * step) for row in (first, *sorted(readers)))
            wire.segments += [Segment(min(x, dot), y, max(x, dot), y) for y, dot in dots if dot != x]
        width = max((box.x + box.width for box in boxes.values()), default=0)
        return LayeredLayout(boxes, wires, tuple((key,) for key in self._order), width, len(self._order))

    def passing(self) -> dict[int, set[int]]:
        """Return by row the columns of wires that go on below it and are not read in it."""
        found: dict[int, set[int]] = defaultdict(set)
        for output, column in self.columns.items():
            readers = self._readers[output]
            for row in range(self._row[output[0]] + 1, max(readers)):
                if row not in readers:
                    found[row].add(column)
        return found


# --- painting -----------------------------------------------------------------------------------------------------

PORTS = (NodeKind.PARAMETER, NodeKind.RESULT)
_LOOKS = ("badbox", "now", "bad", "on", "hit", "away", "port", "done", "box")
"""Tokens of a box, the most important first."""
_MOST_AT_ONCE = 4_096
"""Elements of a value that are looked through for a box."""
_WIRES = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
_DASHED = " ╵╶└╷╎┌├╴┘╌┴┐┤┬┼"
_HEAVY = " ╹╺┗╻┃┏┣╸┛━┻┓┫┳╋"
"""By links (up 1, right 2, down 4, left 8) the character of a cell."""
_FRAMES = {"port": "╒═╕│╘╛", "plain": "╭─╮│╰╯", "lit": "┏━┓┃┗┛"}

Cells = list[str]
Tones = list[str]


_MOST_LOOKED_AT = 2**16
"""Elements of a value in which NaN and Inf are looked for at each picture."""


class Scene(Record, eq=False):
    """State of a graph at one moment, as far as known; `frame` is None where it does not run, `ended` after it.

    `breaks_at` gives the breakpoints at an operation, by its index; `bad` are the `anomalies` of the frame.
    """

    program: Program
    frame: FrameView | None
    ended: bool
    breaks_at: Callable[[int], tuple[BreakView, ...]]
    bad: dict[int, str]


def anomalies(frame: FrameView | None) -> dict[int, str]:
    """Return by their index the operations that gave NaN or Inf in this iteration; looks through all small values."""
    found: dict[int, str] = {}
    for index in range(0 if frame is None else frame.last + 1):
        value = None if frame is None else frame.held(index)
        if value is not None and value.size <= _MOST_LOOKED_AT and value.dtype in FLOATING:
            bad = value[~np.isfinite(value)]
            found |= {index: "NaN" if np.isnan(bad).any() else "Inf"} if bad.size else {}
    return found


class Painter:
    """Paints a drawing at one moment; `cursor` is the selected box, `hits` the boxes that a search has found.

    `lit` are the boxes on the way to the selected one, if that is shown; the others are dimmed. `places` are the
    indices of operations by the ids of their layers, `values` what boxes were found to hold before.
    """

    def __init__(
        self,
        scene: Scene,
        drawing: Drawing,
        places: Mapping[int, int],
        values: dict[int, str],
        cursor: int | None = None,
        lit: AbstractSet[int] | None = None,
        hits: AbstractSet[int] = frozenset(),
    ) -> None:
        self._scene, self._drawing, self._at, self._values = scene, drawing, places, values
        self._cursor, self._lit, self._hits = cursor, lit, hits
        self._looks: dict[int, str] = {}
        layers, box_of = scene.program.layers, drawing.graph.box_of
        self._bad = {box_of[layers[index].id]: word for index, word in reversed(scene.bad.items())}
        frame = scene.frame
        is_within = frame is not None and 0 <= frame.moment < len(frame.layers)
        self._now = drawing.graph.box_of.get(frame.layers[frame.moment].id) if frame is not None and is_within else None

    def operations(self, key: int) -> tuple[int, ...]:
        """Return the operations of a box, by their indices."""
        return tuple(self._at[layer] for layer in self._drawing.graph.node(key).layers if layer in self._at)

    def look(self, key: int) -> str:
        """Return the token of a box."""
        found = self._looks.get(key)
        if found is None:
            found = self._looks[key] = self._look(key)
        return found

    def _look(self, key: int) -> str:
        frame, kind = self._scene.frame, self._drawing.graph.node(key).kind
        is_away = self._lit is not None and key not in self._lit
        is_now = is_bad = False
        is_done = self._scene.ended
        if frame is not None:
            operations = self.operations(key)
            # What has no operation of its own never runs: a Constant is there, dead code is not.
            is_done = frame.is_done(max(operations)) if operations else kind is NodeKind.CONSTANT
            is_now, is_bad = key == self._now, key in self._bad
        holds = (is_bad and is_now, is_now, is_bad, key == self._cursor, key in self._hits, is_away)
        return _LOOKS[(*holds, kind in PORTS, is_done, True).index(True)]

    def row(self, y: int, left: int, full: int, below_top: int = 2, edge: int = 0) -> Row:
        """Row `y` of the drawing from column `left` on, in so many cells: row `below_top` of the pane.

        The one on top names the lanes. `edge` is -1 in the first row of the pane and 1 in the last.
        """
        cells, tones = self.cells(y, left, full, below_top, edge)
        row: Row = []
        start = 0
        for place in range(1, full + 1):
            if place == full or tones[place] != tones[start]:
                row.append(("".join(cells[start:place]), tones[start]))
                start = place
        return row

    def cells(self, y: int, left: int, full: int, below_top: int = 2, edge: int = 0) -> tuple[Cells, Tones]:
        """Return the characters of a row and their tokens."""
        drawing = self._drawing
        width = full - drawing.gutter
        cells, tones = [" "] * full, [""] * full
        self._wires(y, left, width, cells, tones)
        shown = [
            (
                arrow.x,
                [("▼", "accent" if arrow.target == self._cursor and arrow.owner[0] >= 0 else self._tone(arrow.owner))],
            )
            for arrow in drawing.arrows.get(y, ())
        ]
        if y in drawing.dots:
            x, key = drawing.dots[y]
            look = self.look(key)
            shown.append((x, [(GLYPHS["dot"], {"now": "accent", "badbox": "bad", "on": "accent"}.get(look, look))]))
        for key, box in drawing.boxes.get(y, ()):
            shown.append((box.x, self._box(key, box, y - drawing.margin - box.y, edge)))
            if drawing.values[1]:
                shown.append((drawing.values[0], [(letter, "dim") for letter in self._value(key)]))
        for begin, letters in shown:
            for at, pair in enumerate(letters, begin - left):
                if 0 <= at < width:
                    cells[at], tones[at] = pair
        self._lanes(y, width, cells, tones, below_top)
        return cells, tones

    # --- wires ---------------------------------------------------------------------------------------------------

    def _wires(self, y: int, left: int, width: int, cells: Cells, tones: Tones) -> None:
        drawing = self._drawing
        links: dict[int, int] = {}
        owners: dict[int, Owner] = {}
        passing = drawing.passing.get(y, ())
        parts = [(cell.x, cell.links, cell.owner) for cell in drawing.along.get(y, ())]
        parts += [
            (x, RIGHT * (x < run.end) | LEFT * (x > run.begin), run.owner)
            for run in drawing.across.get(y, ())
            for x in range(max(run.begin, left), min(run.end, left + width - 1) + 1)
            if x not in passing
        ]
        for x, link, owner in parts:
            if left <= x < left + width:
                links[x] = links.get(x, 0) | link
                # Of two wires in a cell, that which matters more says how it looks.
                if x not in owners or self._weight(owner) > self._weight(owners[x]):
                    owners[x] = owner
        for x, owner in owners.items():
            lines = _DASHED if owner[0] < 0 else _HEAVY if self._is_lit(owner) else _WIRES
            cells[x - left], tones[x - left] = lines[links[x]], self._tone(owner)

    def _is_lit(self, owner: Owner) -> bool:
        """True if the wire is on the way to the selected box, and that is shown."""
        lit = self._lit
        return lit is not None and owner[0] in lit and not lit.isdisjoint(self._drawing.reading(owner))

    def _weight(self, owner: Owner) -> int:
        if owner[0] < 0 or self._is_lit(owner):
            return 4 * (owner[0] >= 0)
        return 3 if owner[0] == self._cursor else 2 if self._is_fresh(owner[0]) else 1

    def _is_fresh(self, key: int) -> bool:
        return self.look(key) not in ("box", "on", "away")

    def _tone(self, owner: Owner) -> str:
        key, place = owner
        if key < 0:
            lane = self._drawing.lanes[place]
            return "accent" if self._cursor in (lane.tail, lane.head) else "back"
        if self.look(key) in ("bad", "badbox"):
            return "bad"
        if key == self._cursor:
            return "out"
        is_strong = self._is_fresh(key) if self._lit is None else self._is_lit(owner)
        return "fresh" if is_strong else "wire"

    def _lanes(self, y: int, width: int, cells: Cells, tones: Tones, below_top: int) -> None:
        """Draw the back edges that climb there; their names stay at the top."""
        for place, lane in reversed([*enumerate(self._drawing.lanes)]):
            x, tone = width + lane.x, self._tone((-1, place))
            if y in (lane.above, lane.below):
                cells[width:x], tones[width:x] = ["╌"] * lane.x, [tone] * lane.x
                cells[x], tones[x] = ("╮" if y == lane.above else "╯"), tone
            elif lane.above < y < lane.below:
                cells[x], tones[x] = "▲" if below_top == 1 else "╎", tone
                if not below_top:  # a lane is four cells wide, and a blank stands between two names
                    name = lane.name[:3]
                    begin = min(x - len(name) // 2, len(cells) - len(name))
                    cells[begin : begin + len(name)], tones[begin : begin + len(name)] = name, ["port"] * len(name)

    # --- boxes ---------------------------------------------------------------------------------------------------

    def _box(self, key: int, box: Box, row: int, edge: int) -> list[tuple[str, str]]:
        drawing, tone = self._drawing, self.look(key)
        inner, label = box.width - 2, drawing.labels[key]
        is_port = drawing.graph.node(key).kind in PORTS
        is_lit = self._lit is not None and key in self._lit
        corners = _FRAMES["port" if is_port else "lit" if is_lit else "plain"]
        if box.height == 1:
            pair = "()" if is_port else "{}" if is_lit else "  " if drawing.dots else "[]"
            text = f"{pair[0]}{_centred(label, inner)}{pair[1]}"
        elif row in (0, box.height - 1):
            # Of a box that is cut by the edge of the pane, what is left says its name.
            cut = (row == 0 and edge == 1) or (row > 0 and edge == -1)
            first, last = (corners[0], corners[2]) if row == 0 else (corners[4], corners[5])
            name = f" {label} " if cell_len(label) + 2 <= inner else label
            text = first + (_centred(name, inner, corners[1]) if cut else corners[1] * inner) + last
        else:
            value = self._value(key)
            line = f" {label}{value:>{max(inner - cell_len(label) - 2, 0)}} " if value else _centred(label, inner)
            text = f"{corners[3]}{line}{corners[3]}"
        cells = [(letter, tone) for letter in text]
        if row == 0:
            self._put_marks(key, box, cells, tone)
        return cells

    def _value(self, key: int) -> str:
        """Return the value that a box holds, where values are shown."""
        frame, drawing = self._scene.frame, self._drawing
        room = drawing.values[1] or VALUE_WIDTH * (drawing.manner.form == BOXES)
        if not room or frame is None:
            return ""
        if key not in self._values:
            index = self._at.get(key)
            array = None
            if drawing.graph.node(key).kind is NodeKind.PARAMETER:
                array = frame.kept(key)
            elif index is not None and self._scene.program.operations[index].outputs and frame.is_done(index):
                array = frame.held(index)
            self._values[key] = value_text(array, room)
        return self._values[key]

    def _put_marks(self, key: int, box: Box, cells: list[tuple[str, str]], tone: str) -> None:
        """Breakpoints and anomalies sit on the upper edge."""
        for index in self.operations(key):
            for one in self._scene.breaks_at(index):
                cells[box.height > 1] = break_glyph(one), tone if tone in ("now", "badbox") else "bad"
        if tone in ("bad", "badbox"):
            word = self._bad[key][: 3 if box.height > 1 else 1]
            # In one line before the bracket, unless the name goes on to it.
            end = box.width - 1 + (box.height == 1 and cells[box.width - 2][0] != " ")
            for place, letter in enumerate(word, end - len(word)):
                cells[place] = letter, tone


def _centred(text: str, room: int, line: str = " ") -> str:
    """Return in the middle of so many cells."""
    blanks = max(room - cell_len(text), 0)
    return line * (blanks // 2) + text + line * (blanks - blanks // 2)


def value_text(array: Array | None, room: int) -> str:
    """Return a value in so many cells: few numbers as such, more of them as bars, the largest of several each."""
    if array is None or not array.size:
        return ""
    if array.dtype.kind not in "fiub" or array.size <= 2:
        return clip_end(elements(array, room), room)
    if array.size > _MOST_AT_ONCE:
        return f"{short_count(array.size)} elements"
    values = array.reshape(-1).astype(np.float64)
    if len(values) > room:
        begins = np.arange(room) * len(values) // room
        high, low = (ufunc.reduceat(values, begins) for ufunc in (np.maximum, np.minimum))
        values = np.where(high >= -low, high, low)  # a NaN is both
    return bars_of(values, bar_scale(values, may_be_log=False))
