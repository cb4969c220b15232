"""The graph of a body: how it is cut to fit, its pane, its screen, and the pane below the sheet."""

from __future__ import annotations

import math
import string
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.strip import Strip

from stepper.debug.debugger import Debugger
from stepper.engine.program import Program
from stepper.errors import UsageError
from stepper.export.figures.drawn_graph import DrawnGraph, DrawnNode, FoldingOptions, drawn_graph, shape_groups
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import LayoutEdge, rank_nodes, topological_order
from stepper.records import Record
from stepper_tui.paint.painter import Horizontal
from stepper_tui.paint.pane import ListPane, Pane, TableColumn, written
from stepper_tui.paint.rows import LinkedValue, Row, cell_len, clip_end, operation_names, printable, spread
from stepper_tui.screens.base import DebugScreen
from stepper_tui.screens.graph.drawing import (
    BOXES,
    FORMS,
    LANE,
    LINES,
    NAMES,
    Drawing,
    Manner,
    Painter,
    Scene,
    anomalies,
    body_of,
    drawn,
    label_of,
)
from stepper_tui.state import State
from stepper_tui.theme import GLYPHS, in_ascii

if TYPE_CHECKING:
    from stepper.debug.inspection.views import FrameView
    from stepper.ir.model import Layer
    from stepper_tui.app import StepperApp


MOST_BESIDE = 32
"""Boxes and groups of a group that has no groups by stretches."""
BETWEEN = 3
"""Cells between two parts of a graph that stand side by side."""
_MOST_PARTS = 4
_LEAST_PART = 24
_MOST_LANES = 4
"""The part of the width that the lanes of back edges may take, as a divisor."""
_FOR_CURSOR = 16
"""Rows at most that are left for the group of the cursor."""
_MOST_PREFIXES = 16
_GROUPED = (NodeKind.OPERATION, NodeKind.LOOP, NodeKind.BRANCH)
_SHAPES = "shapes"


class BodyGroups:
    """The graph of a program and its groups, each known by its path; takes long for thousands of operations."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graph = drawn_graph(
            program.graph, body_of(program), FoldingOptions(unfolded=frozenset(program.graph.by_id))
        )
        self.around: dict[int, list[str]] = defaultdict(list)
        self._names: dict[str, str] = {}
        self._inner: dict[str, list[str]] = defaultdict(list)
        self._sizes: dict[str, int] = {}
        self.places = {operation.layer.id: place for place, operation in enumerate(program.operations)}
        nodes = [node for node in self.graph.nodes if node.kind in _GROUPED]
        nodes.sort(key=self._place)
        self._prefixes = {node.key: _prefixes(program.graph.by_id[node.key].name) for node in nodes}
        for number, layers in enumerate(shape_groups(program.graph)):
            inside = [key for key in dict.fromkeys(map(self.graph.box_of.__getitem__, layers)) if key in self._prefixes]
            self._prefixes |= dict.fromkeys(inside, (*self._prefixes[inside[-1]], f"{_SHAPES}\x00{number}"))
        self._sources: dict[int, list[int]] = {node.key: [] for node in self.graph.nodes}
        for edge in self.graph.edges:
            self._sources[edge.target].append(edge.source)
        self._order = topological_order(self._sources)
        self._divide("", [node.key for node in nodes], 0)
        self._apart = len(self.graph.nodes) - len(nodes) + self._sizes[""]
        self._most = self._apart + sum(
            size - 1 for path, size in self._sizes.items() if self._names.get(path, _SHAPES) != _SHAPES
        )

    def _divide(self, group: str, boxes: Sequence[int], depth: int) -> None:
        """Make the groups inside of a group by the next part of the names, or of so many that they need stretches."""
        found: dict[str | int, list[int]] = defaultdict(list)
        for key in boxes:
            prefixes = self._prefixes[key]
            found[prefixes[depth] if depth < len(prefixes) else key].append(key)
        if len(found) == 1 and len(boxes) > 1:
            self._divide(group, boxes, depth + 1)
            return
        entries, size = list(found.items()), 1
        if len(entries) > MOST_BESIDE:
            levels = math.ceil(math.log(len(entries), MOST_BESIDE))
            size = -(-len(entries) // math.ceil(len(entries) ** (1 / levels)))
        self._sizes[group] = -(-len(entries) // size)
        for at in range(0, len(entries), size):
            inside = [key for _, some in entries[at : at + size] for key in some]
            if len(inside) > 1:
                prefix = str(entries[at][0]) if size == 1 else ""
                path = f"{group}/{prefix}" if prefix else f"{group}/{at}:{at + size}"
                self._names[path] = _named(self._prefixes[inside[0]][: depth + 1]) if prefix else ""
                self._inner[group].append(path)
                for key in inside:
                    self.around[key].append(path)
                self._divide(path, inside, depth + (size == 1))

    def usual(self, rows: int) -> set[str]:
        """Return the groups that are open where nobody chose: the smallest ones, all of one size or none.

        If not all are open, some rows are left for the group of the cursor.
        """
        room = rows if self._most <= rows else rows - min(rows // 3, _FOR_CURSOR)
        count, found, inner = self._apart, set[str](), self._inner[""]
        closed: list[tuple[int, str]] = []
        while True:
            closed += [(self._sizes[path], path) for path in inner if self._names[path] != _SHAPES]
            least = min(closed, default=(0, ""))[0]
            alike = [path for size, path in closed if size == least]
            count += sum(self._sizes[path] - 1 for path in alike)
            if not alike or count > room:
                return found
            found.update(alike)
            closed = [one for one in closed if one[1] not in found]
            inner = [one for path in alike for one in self._inner[path]]

    def closed(self, key: int, opened: AbstractSet[str]) -> str | None:
        """Return the group that a box is folded into; None where it stands alone."""
        return next((path for path in self.around.get(key, ()) if path not in opened), None)

    def folded(self, opened: AbstractSet[str]) -> DrawnGraph:
        """Return the graph with a box for each group that is closed."""
        apart: set[str] = set()
        while True:
            pieces = self._pieces(opened, apart)
            of_piece: dict[Hashable, list[DrawnNode]] = defaultdict(list)
            for node in self.graph.nodes:
                of_piece[pieces[node.key]].append(node)
            for nodes in of_piece.values():
                nodes.sort(key=self._place)
            key_of = {piece: nodes[-1].key for piece, nodes in of_piece.items()}
            several = {key_of[piece] for piece, nodes in of_piece.items() if len(nodes) > 1}
            edges = self._edges({key: key_of[piece] for key, piece in pieces.items()}, several)
            waiting = {pieces[key] for key in _in_circles(edges) if key in several}
            if not waiting:
                break
            apart |= {path for path in waiting if isinstance(path, str)}
        boxes = [self._box(piece, nodes) for piece, nodes in of_piece.items()]
        box_of = {layer: box.key for box in boxes for layer in (*box.layers, *box.constants)}
        return replace(self.graph, nodes=tuple(boxes), edges=edges, box_of={**self.graph.box_of, **box_of})

    def _place(self, node: DrawnNode) -> int:
        return self.places.get(node.key, -1)

    def _pieces(self, opened: AbstractSet[str], apart: AbstractSet[str]) -> dict[int, Hashable]:
        """Return for each box the group that it is folded into, or itself; a group that is kept `apart` in pieces.

        A piece takes no box that reads what came after the piece has begun, so that it never waits for itself.
        """
        found: dict[int, Hashable] = {}
        begun: dict[Hashable, int] = {}
        newest: dict[str, Hashable] = {}
        for key in self._order:
            path = self.closed(key, opened)
            piece: Hashable = key if path is None else path
            if path is not None and path in apart:
                latest = max((begun[found[one]] for one in self._sources[key]), default=-1)
                piece = newest.get(path, "")
                if begun.get(piece, -2) < latest or not piece:
                    piece = newest[path] = path, key
            found[key] = piece
            begun.setdefault(piece, len(begun))
        return found

    def _box(self, piece: Hashable, nodes: Sequence[DrawnNode]) -> DrawnNode:
        """Return the box of a piece, which is known by the operation that runs last in it."""
        if len(nodes) == 1:
            return nodes[0]
        first, last = (label_of(self.program, node) for node in (nodes[0], nodes[-1]))
        shared = [
            parts[0] for parts in zip(*(self._prefixes[one.key] for one in nodes), strict=False) if len({*parts}) == 1
        ]
        name = _named(shared) if isinstance(piece, tuple) else self._names[str(piece)]
        name = name or f"{first} … {last.removeprefix(first.rstrip(string.digits))}"
        layers = dict.fromkeys((nodes[-1].key, *(layer for node in nodes for layer in node.layers)))
        constants = tuple(constant for node in nodes for constant in node.constants)
        return DrawnNode(nodes[-1].key, NodeKind.GROUP, name, name, tuple(layers), constants)

    def _edges(self, box_of: dict[int, int], several: AbstractSet[int]) -> tuple[LayoutEdge, ...]:
        """Return the edges between boxes; the tensors that leave a group are numbered."""
        numbers: dict[int, dict[tuple[int, int], int]] = defaultdict(dict)
        found: dict[LayoutEdge, None] = {}
        for edge in self.graph.edges:
            source, target, output = box_of[edge.source], box_of[edge.target], edge.output
            if source in several:
                output = numbers[source].setdefault((edge.source, output), len(numbers[source]))
            if source != target:
                found[LayoutEdge(source, target, output)] = None
        return tuple(found)


def _in_circles(edges: Sequence[LayoutEdge]) -> set[int]:
    """Return the boxes on circles of edges, and between two of them."""
    while edges:
        left = {edge.source for edge in edges} & {edge.target for edge in edges}
        inner = [edge for edge in edges if edge.source in left and edge.target in left]
        if len(inner) == len(edges):
            return left
        edges = inner
    return set()


def _named(prefixes: Sequence[str]) -> str:
    """Return the last part of a prefix, with the one before it where one of them is a number."""
    last = prefixes[-2:] if any(part.isdecimal() for part in prefixes[-2:]) else prefixes[-1:]
    return ".".join(last).partition("\0")[0]


def _prefixes(name: str) -> tuple[str, ...]:
    """Return the parts before the last one of a name; one that is a path of modules has its parts, too."""
    parts = [part for part in name.split("/", _MOST_PREFIXES)[:-1] if part]
    return tuple(piece for part in parts for piece in ([part] if "::" in part else part.split(".")) if piece)


# --- what fits ----------------------------------------------------------------------------------------------------


class Fitting(Record):
    """Request for a drawing: into how many columns and rows, in which form (None: that which fits), what is open."""

    width: int
    height: int
    opened: frozenset[str]
    form: int | None = None


def part_width(width: int, parts: int) -> int:
    """Return the columns of each of several parts side by side."""
    return max((width - BETWEEN * (parts - 1)) // parts, 1)


def _parts(width: int) -> int:
    return max(1, min((width + BETWEEN) // (_LEAST_PART + BETWEEN), _MOST_PARTS))


def rows_of_parts(width: int, height: int) -> int:
    """Return how many boxes are seen at once in lines."""
    return height * _parts(width)


def fits(drawing: Drawing, width: int, height: int) -> bool:
    """True if all of a drawing is seen at once."""
    parts = drawing.manner.parts
    return drawing.width + drawing.gutter <= part_width(width, parts) and drawing.height <= parts * height


def fitted(groups: BodyGroups, how: Fitting) -> Drawing:
    """Return the graph of a program as it fits: in the largest form that is seen whole, else in lines."""
    graph, form = groups.folded(how.opened), how.form
    for manner in _manners(graph, how) if form is None else ():
        drawing = drawn(groups.program, graph, manner)
        if fits(drawing, how.width, how.height):
            return drawing
    for at in range(form or LINES, LINES, -1):
        for lanes in _lanes(graph, how.width):
            drawing = drawn(groups.program, graph, Manner(at, how.width, lanes))
            if drawing.width + drawing.gutter <= how.width:
                return drawing
    parts = _parts(how.width) if form is None else 1
    return drawn(groups.program, graph, Manner(LINES, part_width(how.width, parts), False, parts))


def _manners(graph: DrawnGraph, how: Fitting) -> Iterator[Manner]:
    ranks = rank_nodes(graph.by_key, graph.edges, set(), set())
    for form in (BOXES, NAMES):
        if (max(ranks.values(), default=0) + 1) * (FORMS[form].height + 1) - 1 <= how.height:
            yield from (Manner(form, how.width, lanes) for lanes in _lanes(graph, how.width))
    for parts in range(max(-(-len(graph.nodes) // how.height), 1), _MOST_PARTS + 1):
        yield Manner(LINES, part_width(how.width, parts), False, parts)


def _lanes(graph: DrawnGraph, width: int) -> Iterator[bool]:
    """Yield whether back edges have lanes: first with them, where they leave enough room."""
    count = sum(edge.tail != edge.head for edge in graph.back_edges)
    if count and (LANE * count + 1) * _MOST_LANES <= width:
        yield True
    yield not count


_ASIDE = 6
_BELOW = 3
"""Columns and rows by which the graph moves at once."""
_MOST_KEPT = 24
"""Drawings that are kept."""
_AT_ONCE = 300
"""Layers up to which the groups of a graph are found while one waits; the worker finds those of larger graphs."""


class FindGroups(Record):
    """Find the groups of a program's graph."""

    program: Program

    def answer(self, _debugger: Debugger) -> BodyGroups:
        """Return the groups."""
        return BodyGroups(self.program)


class BodyGraph(Pane):
    """The graph of the frame that is looked at; `chosen` gets the layer of the box that one goes to."""

    DEFAULT_CSS = "BodyGraph { height: 1fr; min-height: 4; }"
    kind: ClassVar[str] = "graph"
    title = "body"
    help_text: ClassVar[str] = (
        "The body: each box an operation, each wire a tensor; Constants, shape arithmetic and outputs that only\n"
        "grow are folded. Dashed lines at the right are the back edges, where there is room; else ↺ is at their ends.\n"
        "Boxes are as large as they fit, down to lines: an operation a row, its wires left of it with a dot at their\n"
        "ends. In a larger graph, operations with one prefix are a box (decoder ▸31): + or Enter unfolds, - folds.\n"
        "Arrows go along wires, Shift with arrows and a drag scroll. Thick lines show the path from the inputs to\n"
        "the selection. / searches names and types, . takes the next. ov stands beside what\n"
        "OpenVINO computes."
    )

    def __init__(self, host: StepperApp, *, chosen: Callable[[int], None] | None = None, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.form: int | None = None
        self.sought = ""
        self.hits: tuple[int, ...] = ()
        self.top = self.left = 0
        self._on_chosen = chosen
        self._told: int | None = None
        self._groups: dict[int, BodyGroups | None] = {}
        self._folds: dict[int, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        self._visited: str | None = None
        """The closed group that one has gone to, which does not open by that."""
        self._shown: frozenset[str] = frozenset()
        self._kept: OrderedDict[Hashable, Drawing] = OrderedDict()
        self._tallest: tuple[Size, Size] = Size(0, 0), Size(0, 0)
        self._drawing: Drawing | None = None
        self._cursor: int | None = None
        self._painter: Painter | None = None
        self._values: dict[int, str] = {}
        self._bad: dict[int, str] = {}
        self._valued: FrameView | None = None
        self._has_hit = False
        self._dragged: tuple[int, int] | None = None
        self._has_moved = False

    # --- what there is to draw -----------------------------------------------------------------------------------

    def set_layer(self, layer: int | None) -> None:
        """Put the cursor on a layer of the graph, by its id; None: on the operation that is selected."""
        self._told, self._visited = layer, None
        self.update(self.state)

    def update(self, state: State) -> None:
        """Another moment, perhaps another body."""
        if state.cursor != self.state.cursor and self._box_of(state) != self._cursor:
            self._visited = None
        self.state, before = state, self._drawing
        program, layer = self._program(), self._layer()
        groups = None if program is None or not self.size.width else self._groups_of(program)
        self._drawing = drawing = None if groups is None else self._drawn(groups, layer)
        self._painter = None
        if groups is not None and drawing is not None:
            cursor, self._cursor = self._cursor, None if layer is None else drawing.graph.box_of.get(layer)
            frame, is_selected = self._frame, state.selected is not None or self._told is not None
            if frame is not self._valued:
                self._bad = anomalies(frame)
            if drawing is not before or frame is not self._valued:
                self._valued, self._values = frame, {}
            scene = Scene(groups.program, frame, frame is None, state.breaks_at, self._bad)
            lit = drawing.way_to(self._cursor) if is_selected and self._cursor is not None else None
            hits = {drawing.graph.box_of[one] for one in self.hits if one in drawing.graph.box_of}
            self._painter = Painter(scene, drawing, groups.places, self._values, self._cursor, lit, hits)
            if drawing is not before or self._cursor != cursor:  # a later picture of the same moment scrolls nothing
                self._follow(anew=drawing is not before)
        self.changed()

    def _drawn(self, groups: BodyGroups, layer: int | None) -> Drawing:
        """Return the graph as it fits."""
        program = groups.program
        at, most = self._tallest
        room = Size(self.size.width, max(self.size.height - 1, 1))
        # Boxes do not change their size when a stop or an answer takes some rows.
        if at != self.app.size or most.width != room.width or most.height < room.height:
            self._tallest = at, most = self.app.size, room
        opened, closed = self._folds[id(program)]
        around = groups.around.get(groups.graph.box_of.get(-1 if layer is None else layer, -1), ())
        shown = groups.usual(rows_of_parts(*most)) | opened | {*around}
        self._shown = frozenset(shown - closed - {self._visited})
        how = Fitting(most.width, most.height, self._shown, self.form)
        found = self._kept.get((id(program), how))
        if found is None:
            found = fitted(groups, how)
        self._kept[id(program), how] = found
        self._kept.move_to_end((id(program), how))
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def _groups_of(self, program: Program) -> BodyGroups | None:
        """Return the groups of a graph; None until the worker has found them."""
        key = id(program)
        if key not in self._groups and len(program.graph.layers) <= _AT_ONCE:
            self._groups[key] = BodyGroups(program)
        elif key not in self._groups:
            self._groups[key] = None

            def keep(groups: BodyGroups) -> None:
                self._groups[key] = groups
                self.update(self.state)

            self.host.driver.ask(FindGroups(program), keep)
        return self._groups[key]

    @property
    def _frame(self) -> FrameView | None:
        """The frame that is looked at."""
        return self.state.frame

    def _program(self) -> Program | None:
        """Return the graph of the frame that is looked at; at the end of the run the model's own."""
        if self._frame is not None:
            return self._frame.program
        return None if self.state.view is None else self.host.driver.compiled.main

    def _layer(self) -> int | None:
        """Return the layer that the cursor is on, by its id."""
        frame, cursor = self._frame, self.state.cursor
        return self._told if self._told is not None or frame is None or cursor is None else frame.layers[cursor].id

    def _box_of(self, state: State) -> int | None:
        frame, cursor, drawing = state.frame, state.cursor, self._drawing
        return (
            None
            if frame is None or cursor is None or drawing is None
            else drawing.graph.box_of.get(frame.layers[cursor].id)
        )

    @property
    def chosen_address(self) -> str:
        """The address of the layer that the pane was told; empty where it is on the operation that is selected."""
        program = self._program()
        layer = None if program is None or self._told is None else program.graph.by_id.get(self._told)
        return "" if program is None or layer is None or not layer.outputs else self._address(program, layer)

    def _address(self, program: Program, layer: Layer) -> str:
        return LinkedValue(program, layer).address(self.host.driver.compiled)

    # --- where one looks -----------------------------------------------------------------------------------------

    @property
    def room(self) -> Size:
        """The columns for boxes, and the rows of all parts."""
        drawing, height = self._drawing, max(self.size.height - 1, 1)
        if drawing is None:
            return Size(self.size.width, height)
        parts = drawing.manner.parts
        return Size(max(part_width(self.size.width, parts) - drawing.gutter, 1), height * parts)

    def on_resize(self, _event: events.Resize) -> None:
        """Another room."""
        self.update(self.state)
        self._follow(anew=True)
        self.changed()

    def _follow(self, *, anew: bool) -> None:
        """Keep the box of the cursor in the inner area; `anew`: bring it into the middle."""
        drawing, room = self._drawing, self.room
        if drawing is None:
            return
        if self._cursor is None:
            self.top = drawing.height
        else:
            box = drawing.layout.boxes[self._cursor]
            y = box.y + drawing.margin
            if anew or not self.top + 2 <= y <= self.top + room.height - box.height - 2:
                self.top = y - room.height // 2 + 2
            if anew or not self.left <= box.x <= self.left + room.width - box.width:
                self.left = box.centre - room.width // 2
        self._clamp(drawing)

    def _clamp(self, drawing: Drawing) -> None:
        """A graph that is smaller than its room stands in the middle of it."""
        spare, below = drawing.width - self.room.width, drawing.height - self.room.height
        lowest = 0 if drawing.manner.parts > 1 else below // 2
        self.top = max(0, min(self.top, below)) if below > 0 else lowest
        self.left = max(0, min(self.left, spare)) if spare > 0 else spare // 2

    def _scroll(self, right: int, down: int) -> None:
        self.left += right
        self.top += down
        if self._drawing is not None:
            self._clamp(self._drawing)
        self.changed()

    def scroll_rows(self, by: int) -> None:
        """Scroll down or up."""
        self._scroll(0, by)

    def pan_by(self, right: int, down: int) -> None:
        """See what is beside, above or below, without moving anything else."""
        self._scroll(right * _ASIDE, down * _BELOW)

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Sideways."""
        self.pan_by(1, 0)
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Sideways."""
        self.pan_by(-1, 0)
        event.stop()

    def wheel(self, event: events.MouseEvent, way: int) -> None:
        """The wheel scrolls, sideways with Shift; with Ctrl boxes become smaller or larger."""
        if event.ctrl:
            self.zoom_by(-way)
        else:
            self.pan_by(*((way, 0) if event.shift else (0, way)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag begins."""
        if event.button == 1:
            self._dragged, self._has_moved = (event.x, event.y), False
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The graph goes where it is dragged."""
        if self._dragged is not None and self._dragged != (event.x, event.y):
            self._has_moved = True
            self._scroll(self._dragged[0] - event.x, self._dragged[1] - event.y)
            self._dragged = event.x, event.y

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """The drag is over."""
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """A click on a box selects it, a second one unfolds or opens it, wherever the first one has moved it."""
        if self._has_moved:  # the end of a drag
            self._has_moved = False
        elif event.chain == 2 and self._has_hit:
            if not self._unfold():
                self.post_line(f"open {self.chosen_address}".rstrip())
        else:
            key = self.box_at(event.x - self.gutter.left, event.y - 1)
            self._has_hit = key is not None and self._can_stop(key)
            if key is not None and self._has_hit:
                self._select(key)
            elif key is not None:
                self._tell(key, opens=event.chain == 2)

    def _tell(self, key: int, *, opens: bool) -> None:
        """Print the value of a box without an operation, as of a Parameter, or open it."""
        program = self._program()
        layer = None if program is None else program.graph.by_id.get(key)
        if program is not None and layer is not None and layer.outputs:
            self.post_line(f"{'open' if opens else 'print'} {self._address(program, layer)}")

    def box_at(self, x: int, y: int) -> int | None:
        """Return the box that is seen in a cell below the heading."""
        drawing = self._drawing
        if drawing is None or y < 0:
            return None
        part, x = divmod(x, self.room.width + BETWEEN) if drawing.manner.parts > 1 else (0, x)
        return drawing.box_at(x + self.left, y + self.top + part * (self.size.height - 1))

    # --- selecting -----------------------------------------------------------------------------------------------

    def _can_stop(self, key: int) -> bool:
        """True if a box can be selected: one with an operation."""
        return self._painter is not None and bool(self._painter.operations(key) or self._on_chosen)

    def _select(self, key: int) -> None:
        """Select a box: a group stays closed."""
        program, drawing, painter = self._program(), self._drawing, self._painter
        if program is None or drawing is None or painter is None:
            return
        groups = self._groups_of(program)
        is_group = groups is not None and drawing.graph.node(key).kind is NodeKind.GROUP
        self._visited = groups.closed(key, self._shown) if is_group and groups is not None else None
        self._cursor = key
        if self._on_chosen is not None:
            self._told = key
            self._on_chosen(key)
            self.update(self.state)
        else:
            self.post_line(f"select {max(painter.operations(key))}")

    def follow_wire(self, direction: str) -> None:
        """Select the next box along a wire, or beside this one."""
        if self._drawing is not None and self._cursor is not None:
            there = next(filter(self._can_stop, self._drawing.beside(self._cursor, direction)), None)
            if there is not None:
                self._select(there)

    def find(self, text: str, by: int = 1) -> int | None:
        """Return the next layer whose name or type has the text, by its id, and mark all of them."""
        program, layer = self._program(), self._layer()
        if program is None:
            return None
        wanted, names = text.casefold(), operation_names(program)
        found = [
            (index, one.id)
            for index, one in enumerate(program.layers)
            if any(wanted in word.casefold() for word in (names[index], one.name, one.type))
        ]
        self.hits, self.sought = tuple(key for _, key in found), text if found else ""
        here = next((index for index, one in enumerate(program.layers) if one.id == layer), -1)
        beyond = [key for index, key in found[::by] if (index - here) * by > 0]
        self.update(self.state)
        return next(iter(beyond or self.hits[::by]), None)

    # --- folding -------------------------------------------------------------------------------------------------

    def _unfold(self) -> bool:
        """Open the group of the cursor; False where that is on none."""
        program = self._program()
        groups = None if program is None else self._groups_of(program)
        path = None if groups is None or self._cursor is None else groups.closed(self._inside(groups), self._shown)
        if program is None or path is None:
            return False
        opened, closed = self._folds[id(program)]
        opened.add(path)
        closed.discard(path)
        self._visited = None
        self.update(self.state)
        return True

    def _inside(self, groups: BodyGroups) -> int:
        """Return the box of the cursor, where nothing is folded."""
        layer = self._layer()
        return groups.graph.box_of.get(-1 if layer is None else layer, -1)

    def _fold(self) -> bool:
        """Close the innermost group that the cursor is in; False where it is in none that is open."""
        program = self._program()
        groups = None if program is None else self._groups_of(program)
        if program is None or groups is None:
            return False
        path = next((one for one in reversed(groups.around.get(self._inside(groups), ())) if one in self._shown), None)
        if path is None:
            return False
        opened, closed = self._folds[id(program)]
        opened.discard(path)
        closed.add(path)
        self.update(self.state)
        return True

    def fold(self) -> str:
        """Open the group of the cursor, or close the one that it is in; return why there is none."""
        return "" if self._unfold() or self._fold() else "it is in no group: + and - change the size of the boxes"

    def zoom_by(self, by: int) -> None:
        """Unfold a group, or fold one; where there is none larger or smaller boxes."""
        if self._drawing is None or (self._unfold() if by > 0 else self._fold()):
            return
        self.form = max(0, min(self._drawing.manner.form + by, len(FORMS) - 1))
        self.update(self.state)

    @property
    def is_on_group(self) -> bool:
        """True if the cursor is on a group that can be unfolded."""
        drawing = self._drawing
        return drawing is not None and self._cursor is not None and drawing.graph.node(self._cursor).is_folded

    # --- painting ------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return how many boxes there are, in which form; what was searched."""
        drawing, note = self._drawing, ""
        if drawing is not None:
            count = sum(len(one.layers) if one.is_folded else 1 for one in drawing.graph.nodes)
            boxes = len(drawing.graph.nodes)
            parts = [f"{count:,} nodes{f' in {boxes}' if boxes < count else ''}", FORMS[drawing.manner.form].name]
            parts += [] if fits(drawing, self.size.width, self.size.height - 1) else ["a part"]
            note = " · ".join([*parts, *([f"{len(self.hits)} with '{self.sought}'"] if self.sought else [])])
        mark = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        title = (self.title, "title-on" if self.has_focus else "title")
        return [
            spread([mark, title], [(clip_end(f"{note} ", max(width - cell_len(self.title) - 2, 0)), "note")], width)
        ]

    def count(self, width: int) -> int:
        """Return as many as are seen."""
        return max(self.size.height - 1, 0)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the heading, and the visible rows of the drawing."""
        lines, painter, drawing = self.heading(width), self._painter, self._drawing
        tall = height - 1
        if painter is None or drawing is None:
            waits = self._program() is not None
            lines += [[], [(" laying the graph out …" if waits else "", "dim")]]
            return lines[:height] + [[]] * (height - len(lines))
        if drawing.manner.parts == 1:
            edges = [-1, *[0] * (tall - 2), 1]
            return lines + [painter.row(y + self.top, self.left, width, y, edges[y]) for y in range(tall)]
        rows: list[Row] = [[] for _ in range(tall)]
        wide = self.room.width
        for part in range(drawing.manner.parts):
            for y, row in enumerate(rows, self.top + part * tall):
                row += [(" ╎ ", "ghost")] if part else []
                row += painter.row(y, self.left, wide)
        return lines + rows

    def segments_of(self, row: Row, width: int) -> list[Segment]:
        """Cells are what they are; only glyphs that need a twin get one, and what does not fit is left out."""
        show = in_ascii if self.look.ascii else str
        segments = [Segment(show(text), self.style_of(tone)) for text, tone in row]
        return list(Strip(segments).adjust_cell_length(width, self.style_of("")))


Hit = tuple[str, str, int]
"""A name, a type, and the index of the operation."""


class Hits(ListPane[Hit], can_focus=False):
    """The operations of the body whose name or type has the text that was searched."""

    DEFAULT_CSS = """
    Hits { width: 40; border-left: solid $foreground 14%; }
    DebugScreen.-ascii Hits { border-left: ascii $foreground 14%; }
    """
    kind: ClassVar[str] = "hits"

    def __init__(self, host: StepperApp, graph: BodyGraph, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._graph = graph

    def entries(self) -> list[Hit]:
        """Return them in the order of execution."""
        frame, found = self.state.frame, set(self._graph.hits)
        if frame is None:
            return []
        names = operation_names(frame.program)
        return [(names[at], one.type, at) for at, one in enumerate(frame.layers) if one.id in found]

    def columns(self) -> tuple[TableColumn[Hit], ...]:
        """Return the name and the type."""
        name = TableColumn[Hit]("operation", None, lambda hit, width: written(hit[0], width))
        return name, TableColumn[Hit]("type", 14, lambda hit, width: written(hit[1], width, "dim"))

    def line_to_open(self, item: Hit) -> str:
        """Return the line that selects it."""
        return f"select {item[2]}"

    def update(self, state: State) -> None:
        """The selected operation is the chosen row, if it is one that was found."""
        self.state, self.title = state, f"'{self._graph.sought}'"
        self.display = bool(self._graph.hits)
        self.cursor = next((row for row, hit in enumerate(self.entries()) if hit[2] == state.cursor), self.cursor)
        super().update(state)


class GraphScreen(DebugScreen):
    """The graph of the frame that is looked at, full screen."""

    view_name = "graph"

    def body(self) -> ComposeResult:
        """The graph, and at the right what was found."""
        self._graph = BodyGraph(self.host, id="graph")
        with Horizontal(id="parts"):
            yield self._graph
            yield Hits(self.host, self._graph, id="hits")

    def first_pane(self) -> BodyGraph:
        """The graph has the focus."""
        return self._graph

    def own_line(self, line: str) -> str:
        """Search in the graph that is shown; `open` unfolds the group of the cursor, else goes back to the sheet."""
        word, _, text = line.partition(" ")
        if line == "open":
            return "zoom in" if self._graph.is_on_group else "back"
        if word == "search" or (word in ("search-next", "search-previous") and self._graph.sought):
            text, frame = text or self._graph.sought, self.host.state.frame
            found = self._graph.find(text, -1 if word == "search-previous" else 1)
            if frame is None or found is None:
                raise UsageError(f"nothing in this graph has '{text}' in its name or type")
            return f"select {next(at for at, one in enumerate(frame.layers) if one.id == found)}"
        return super().own_line(line)


class BodyOfRows(BodyGraph, can_focus=False):
    """The graph of a body, at no moment; two clicks on an operation go to where it runs first."""

    DEFAULT_CSS = """
    BodyOfRows { height: 1fr; }
    """

    def __init__(
        self,
        host: StepperApp,
        chosen: Callable[[], Program | None],
        layer: Callable[[], int | None],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(host, id=id)
        self._chosen, self._chosen_layer = chosen, layer
        self._updated_for: tuple[Program | None, Size] = None, Size(0, 0)

    @property
    def _frame(self) -> FrameView | None:
        return None

    def _program(self) -> Program | None:
        return self._chosen()

    def _layer(self) -> int | None:
        return self._chosen_layer()

    def update(self, state: State) -> None:
        """Another body."""
        program = self._chosen()
        self._updated_for = program, self.size
        loop = None if program is None or not program.path else program.path[-1]
        self.title = "the model's graph" if loop is None else f"body of {printable(loop.name)}"
        super().update(state)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return its lines; the first size may come without an event, before the pane takes any."""
        if (self._chosen(), self.size) != self._updated_for:
            self.call_after_refresh(lambda: self.renew(self.state))
        return super().visible_lines(width, height)

    def on_click(self, event: events.Click) -> None:
        """Two clicks on a box go to its operation; there is nothing to select."""
        event.prevent_default()
        program, key = self._program(), self.box_at(event.x - self.gutter.left, event.y - 1)
        if event.chain != 2 or program is None or key is None:
            return
        layer = program.graph.by_id[key]
        if layer.outputs:
            self.post_line(f"goto {LinkedValue(program, layer).address(self.host.driver.compiled)}")
