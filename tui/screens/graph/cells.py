"""The cells of the graph at one moment: what each box looks like, wires, arrows and lanes, joined into rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from stepper.debug.inspection.views import BreakView, FrameView
from stepper.debug.iterations.cell_store import HistoryView
from stepper.element_types import Array
from stepper.engine.program import Program
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import Box
from stepper.records import Record
from stepper.tensors.surveys import largest_of
from tui.paint.rows import Row, cell_len, clip_end, elements, short_count, spark
from tui.screens.graph.drawing import LEFT, RIGHT, BoxPlace, Drawing, GutterLane, Owner, Side
from tui.screens.graph.levels import LEVELS, VALUE_WIDTH
from tui.theme import GLYPHS, break_glyph

PORTS: Final = (NodeKind.PARAMETER, NodeKind.RESULT)
_LOOKS: Final = ("badbox", "now", "bad", "on", "away", "port", "done", "box")
"""Tokens of a box, the most important first."""

_MOST_AT_ONCE: Final = 4_096
"""Elements of a value that are looked through for a box."""

Cells = list[str]
Tones = list[str]


class Scene(Record, eq=False):
    """State of a graph at one moment, as far as it is known; `frame` is None where it does not run, `ended` after it.

    `history` is that of the frame; `breaks_at` gives the breakpoints at an operation, by its index.
    """

    program: Program
    frame: FrameView | None
    history: HistoryView | None
    ended: bool
    breaks_at: Callable[[int], tuple[BreakView, ...]]

    def anomaly(self, index: int) -> str:
        """Return NaN or Inf if that is what the operation gave in this iteration, else nothing."""
        frame, history = self.frame, self.history
        if frame is None or history is None or not frame.is_done(index):
            return ""
        row = (frame.iteration or 0) - history.first
        if not (0 <= row < len(history.known) and history.known[row, index]):
            return ""
        number = float(history.numbers[row, index])
        return "" if math.isfinite(number) else "NaN" if math.isnan(number) else "Inf"


class BoxLooks:
    """The token of each box at one moment, found when it is painted; `cursor` is the selected box.

    `lit` are the boxes on the way to the selected one, if that is shown; the others are dimmed.
    """

    def __init__(
        self, scene: Scene, drawing: Drawing, cursor: int | None, lit: AbstractSet[int] | None, indices: Indices
    ) -> None:
        self._scene, self._drawing, self._cursor, self._lit, self._indices = scene, drawing, cursor, lit, indices
        self._known: dict[int, str] = {}
        self._now: int | None = None
        frame = scene.frame
        if frame is not None and 0 <= frame.moment < len(frame.layers):
            self._now = drawing.graph.box_of.get(frame.layers[frame.moment].id)

    def __getitem__(self, key: int) -> str:
        """The token of a box."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(key)
        return found

    def _look(self, key: int) -> str:
        scene, node = self._scene, self._drawing.graph.node(key)
        frame = scene.frame
        if frame is None:
            return "on" if key == self._cursor else "port" if node.kind in PORTS else "done" if scene.ended else "box"
        indices = self._indices.of(key)
        # What has no operation of its own never runs: a Constant is there, dead code is not.
        is_done = all(map(frame.is_done, indices)) if indices else node.kind is NodeKind.CONSTANT
        is_bad = any(scene.anomaly(index) for index in indices)
        is_now = key == self._now
        is_away = self._lit is not None and key not in self._lit
        holds = (is_bad and is_now, is_now, is_bad, key == self._cursor, is_away, node.kind in PORTS, is_done, True)
        return _LOOKS[holds.index(True)]


class Indices:
    """The operations of each box of a drawing, by their indices; of a sign the nearest behind it first."""

    def __init__(self, program: Program, drawing: Drawing) -> None:
        self._program = program
        self._at = {operation.layer.id: index for index, operation in enumerate(program.operations)}
        self._drawing = drawing
        self._known: dict[int, tuple[int, ...]] = {}

    def of(self, key: int) -> tuple[int, ...]:
        """Return the operations of a box."""
        found = self._known.get(key)
        if found is None:
            layers = self._drawing.graph.node(key).layers
            found = self._known[key] = tuple(self._at[layer] for layer in layers if layer in self._at)
        return found

    def chosen(self, key: int) -> int | None:
        """Return the operation that is selected with a box: its last; with a sign the nearest behind it."""
        found = self.of(key)
        if key in self._drawing.signs:
            return found[0] if found else None
        return max(found, default=None)

    def reader(self, key: int, source: int) -> int | None:
        """Return the operation of a box that is the first to read another; None where none does."""
        read = set(self._drawing.graph.node(source).layers)
        for index in sorted(self.of(key)):
            sources = self._program.graph.sources[self._program.operations[index].layer.id]
            if not read.isdisjoint(one.layer for one in sources if one is not None):
                return index
        return None


def centred(text: str, room: int) -> str:
    """Return in the middle of so many cells."""
    blanks = max(room - cell_len(text), 0)
    return " " * (blanks // 2) + text + " " * (blanks - blanks // 2)


def joined(cells: Cells, tones: Tones) -> Row:
    """Return neighbours of one tone as one piece."""
    row: Row = []
    start = 0
    for place in range(1, len(cells) + 1):
        if place == len(cells) or tones[place] != tones[start]:
            row.append(("".join(cells[start:place]), tones[start]))
            start = place
    return row


WIRES: Final = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
DASHED: Final = " ╵╶└╷╎┌├╴┘╌┴┐┤┬┼"
HEAVY: Final = " ╹╺┗╻┃┏┣╸┛━┻┓┫┳╋"
"""By links (up 1, right 2, down 4, left 8) the character of a cell."""
_FRAMES: Final = {"port": "╒═╕│╘╛", "plain": "╭─╮│╰╯", "lit": "┏━┓┃┗┛"}

_MOST_ROWS: Final = 2_000

Rows = dict[tuple[int, int, int, int], tuple[object, Row]]
"""Painted rows of one drawing by where they are, each with what it looked like."""


class Painter:
    """Paints a drawing at one moment; `cursor` is the selected box, `lit` the boxes on the way to it, if that is shown.

    `rows` are those of the same drawing at earlier moments; `inner` gives the scene of a body inside of a box; `inside`
    is the selected box in one.
    """

    def __init__(
        self,
        scene: Scene,
        drawing: Drawing,
        indices: Indices,
        rows: Rows,
        cursor: int | None = None,
        lit: AbstractSet[int] | None = None,
        inner: Callable[[Program, int], Scene] | None = None,
        inside: BoxPlace | None = None,
    ) -> None:
        self._scene, self._drawing, self._indices, self._rows = scene, drawing, indices, rows
        self._cursor, self._lit = cursor, lit
        self._on_lane = any(cursor in (lane.tail, lane.head) for lane in drawing.lanes)
        self._looks = BoxLooks(scene, drawing, cursor, lit, indices)
        self._seen: dict[int, object] = {}
        self._inner: dict[int, tuple[Painter, ...]] = {}
        if inner is not None:
            for key, sides in drawing.sides.items():
                self._inner[key] = tuple(
                    self._painter_of(side, inner(side.program, key), inner, _further_in(inside, (key, number)))
                    for number, side in enumerate(sides)
                )

    @staticmethod
    def _painter_of(
        side: Side, scene: Scene, inner: Callable[[Program, int], Scene], inside: BoxPlace | None
    ) -> Painter:
        cursor = None if inside is None else inside.path[0][0] if inside.path else inside.key
        lit = None if cursor is None else side.drawing.way_to(cursor)
        indices = Indices(side.program, side.drawing)
        return Painter(scene, side.drawing, indices, {}, cursor, lit, inner, inside)

    def row(self, y: int, left: int, full: int, below_top: int, height: int) -> Row:
        """Row `y` of the drawing from column `left` on, in so many cells: row `below_top` of `height` of the pane.

        The one on top names the lanes. One on which everything looks as it did when it was painted last is still there.
        """
        edge = -1 if below_top == 0 else 1 if below_top == height - 1 else 0
        where = y, left, full, min(below_top, 2) + 3 * edge
        look = self._look_of_row(y)
        known = self._rows.get(where)
        if known is None or known[0] != look:
            if len(self._rows) > _MOST_ROWS:
                self._rows.clear()
            known = self._rows[where] = look, joined(*self.cells(y, left, full, min(below_top, 2), edge))
        return known[1]

    def _look_of_row(self, y: int) -> object:
        """Return all that decides how a row looks; two that are equal look the same."""
        drawing = self._drawing
        keys = drawing.keys_at(y)
        seen = [self._seen.get(key) or self._look_of(key) for key in keys]
        insides = [
            painter._look_of_row(y - drawing.margin - box.y - drawing.first_row(key))
            for key, box in (drawing.boxes.get(y, ()) if self._inner else ())
            for painter in self._inner.get(key, ())
        ]
        return self._cursor if self._cursor in keys or self._on_lane else None, seen, insides

    def _look_of(self, key: int) -> object:
        """Return the same of a box and its wires, which are in many rows."""
        look = self._looks[key]
        anomaly = self._anomaly(key) if "bad" in look else ""
        lit = None if self._lit is None else key in self._lit
        breaks = [one for index in self._indices.of(key) for one in self._scene.breaks_at(index)]
        found = self._seen[key] = look, anomaly, self._value(key), lit, breaks
        return found

    def cells(self, y: int, left: int, full: int, below_top: int = 2, edge: int = 0) -> tuple[Cells, Tones]:
        """Return the characters of a row and their tokens."""
        drawing = self._drawing
        width = full - drawing.gutter
        cells, tones = [" "] * full, [""] * full
        self._wires(y, left, width, cells, tones)
        for arrow in drawing.arrows.get(y, ()):
            if left <= arrow.x < left + width:
                cells[arrow.x - left] = "▼"
                into = arrow.target == self._cursor and arrow.owner[0] >= 0
                tones[arrow.x - left] = "accent" if into else self._wire_tone(arrow.owner)
        self._dot(y, left, width, cells, tones)
        for key, box in drawing.boxes.get(y, ()):
            shown = [(box.x, self._box_cells(key, box, y - drawing.margin - box.y, edge))]
            if drawing.values[1] and y == box.y + drawing.margin:
                shown.append((drawing.values[0], [(letter, "dim") for letter in self._value(key)]))
            for begin, letters in shown:
                for at, pair in enumerate(letters, begin - left):
                    if 0 <= at < width:
                        cells[at], tones[at] = pair
        self._lanes(y, width, cells, tones, below_top=below_top == 1)
        if not below_top:
            self._lane_names(y, width, cells, tones)
        return cells, tones

    def _wires(self, y: int, left: int, width: int, cells: Cells, tones: Tones) -> None:
        drawing = self._drawing
        links = bytearray(width)
        owners: list[Owner | None] = [None] * width
        passing = drawing.passing.get(y, ())
        for run in drawing.across.get(y, ()):
            for x in range(max(run.begin, left), min(run.end, left + width - 1) + 1):
                if x in passing:
                    continue
                links[x - left] |= (RIGHT if x < run.end else 0) | (LEFT if x > run.begin else 0)
                self._own(owners, x - left, run.owner)
        for cell in drawing.along.get(y, ()):
            if left <= cell.x < left + width:
                links[cell.x - left] |= cell.links
                self._own(owners, cell.x - left, cell.owner)
        for place, link in enumerate(links):
            owner = owners[place]
            if link and owner is not None:
                lines = DASHED if self._is_back(owner) else HEAVY if self._is_lit(owner) else WIRES
                cells[place] = lines[link]
                tones[place] = self._wire_tone(owner)

    def _own(self, owners: list[Owner | None], place: int, owner: Owner) -> None:
        """Of two wires in a cell, that which matters more says how it looks."""
        held = owners[place]
        if held is None or self._weight(owner) > self._weight(held):
            owners[place] = owner

    def _is_back(self, owner: Owner) -> bool:
        """True if the wire is a back edge."""
        return owner[0] < 0 or owner[0] in self._drawing.carried

    def _is_lit(self, owner: Owner) -> bool:
        """True if the wire is on the way to the selected box, and that is shown."""
        lit = self._lit
        return lit is not None and owner[0] in lit and not lit.isdisjoint(self._drawing.reading(owner))

    def _weight(self, owner: Owner) -> int:
        if self._is_back(owner):
            return 0
        if self._is_lit(owner):
            return 4
        return 3 if owner[0] == self._cursor else 2 if self._is_fresh(owner[0]) else 1

    def _look(self, key: int) -> str:
        return self._looks[key]

    def _is_fresh(self, key: int) -> bool:
        return self._look(key) not in ("box", "on", "away")

    def _wire_tone(self, owner: Owner) -> str:
        key, place = owner
        if key < 0:
            lane = self._drawing.lanes[place]
            return "accent" if self._cursor in (lane.tail, lane.head) else "back"
        if key in self._drawing.carried:
            return "back"
        if self._look(key) in ("bad", "badbox"):
            return "bad"
        if key == self._cursor:
            return "out"
        if self._lit is not None:
            return "fresh" if self._is_lit(owner) else "wire"
        return "fresh" if self._is_fresh(key) else "wire"

    def _dot(self, y: int, left: int, width: int, cells: Cells, tones: Tones) -> None:
        """Put the dot of an operation, where its wires begin and end."""
        if y not in self._drawing.dots:
            return
        x, key = self._drawing.dots[y]
        if left <= x < left + width:
            look = self._look(key)
            tone = {"now": "accent", "badbox": "bad", "on": "accent"}.get(look, look)
            cells[x - left], tones[x - left] = GLYPHS["dot"], tone

    def _box_cells(self, key: int, box: Box, row: int, edge: int) -> list[tuple[str, str]]:
        drawing, tone = self._drawing, self._look(key)
        inner, label = box.width - 2, drawing.labels[key]
        if key in drawing.signs:
            return self._sign_cells(key, f" {centred(label, inner)} ")
        port = drawing.graph.node(key).kind in PORTS
        is_lit = self._lit is not None and key in self._lit
        corners = _FRAMES["port" if port else "lit" if is_lit else "plain"]
        if key in drawing.sides:
            return self._opened_cells(key, box, row, tone, corners)
        if box.height == 1:
            pair = "()" if port else "{}" if is_lit else f"{drawing.mark_of(key)} " if drawing.dots else "[]"
            text = f"{pair[0]}{centred(label, inner)}{pair[1]}"
        elif row == 0 or row == box.height - 1:
            # Of a box that is cut by the edge of the pane, what is left says its name.
            cut = (row == 0 and edge == 1) or (row > 0 and edge == -1)
            first, last = (corners[0], corners[2]) if row == 0 else (corners[4], corners[5])
            text = first + (_in_line(label, inner, corners[1]) if cut else corners[1] * inner) + last
        else:
            text = f"{corners[3]}{self._line(key, row, inner)}{corners[3]}"
        cells = [(letter, tone) for letter in text]
        if row == 0:
            self._put_marks(key, box, cells, tone)
        return cells

    def _line(self, key: int, row: int, room: int) -> str:
        """Return what stands in a row of a box: the name and the value, then the type."""
        if row > 1:
            return centred(self._drawing.details.get(key, ""), room)
        label, value = self._drawing.labels[key], self._value(key)
        if not value:
            return centred(label, room)
        return f" {label}{value:>{max(room - cell_len(label) - 2, 0)}} "

    def _value(self, key: int) -> str:
        """Return the value that a box holds, where values are shown."""
        frame, node = self._scene.frame, self._drawing.graph.node(key)
        room = self._drawing.values[1] or VALUE_WIDTH * LEVELS[self._drawing.manner.level].has_value
        if not room or frame is None or key in self._drawing.signs:
            return ""
        if node.kind is NodeKind.PARAMETER:
            return value_text(frame.kept(key), room)
        index = self._indices.chosen(key)
        if index is None or not self._scene.program.operations[index].outputs or not frame.is_done(index):
            return ""
        return value_text(frame.held(index), room)

    # --- bodies inside of boxes ----------------------------------------------------------------------------------

    def _opened_cells(self, key: int, box: Box, row: int, tone: str, corners: str) -> list[tuple[str, str]]:
        inner, sides = box.width - 2, self._drawing.sides[key]
        if row == 0:
            text = corners[0] + _in_line(self._drawing.labels[key], inner, corners[1]) + corners[2]
            return [(letter, tone) for letter in text]
        if row == box.height - 1:
            return [(letter, tone) for letter in corners[4] + corners[1] * inner + corners[5]]
        cells = [(corners[3], tone), *[(" ", "")] * inner, (corners[3], tone)]
        first = self._drawing.first_row(key)
        for side, painter in zip(sides, self._inner.get(key, ()), strict=False):
            if row < first:
                letters, tones = list(side.title), ["dim"] * len(side.title)
            else:
                letters, tones = painter.cells(row - first, 0, side.drawing.width)
            for place, pair in enumerate(zip(letters, tones, strict=True)):
                cells[side.x + place] = pair
            if side.x > 2:
                cells[side.x - 2] = "╎", "wire"
        return cells

    def _sign_cells(self, key: int, text: str) -> list[tuple[str, str]]:
        """Return words without a frame, where a wire is cut."""
        look = self._look(key)
        tone = "bad" if look == "bad" else "back" if key in self._drawing.carried else "dim"
        return [(letter, tone) for letter in text]

    def _put_marks(self, key: int, box: Box, cells: list[tuple[str, str]], tone: str) -> None:
        """Breakpoints and anomalies sit on the upper edge."""
        plain = tone not in ("now", "badbox")
        for index in self._indices.of(key):
            for one in self._scene.breaks_at(index):
                cells[1 if box.height > 1 else 0] = break_glyph(one), "bad" if plain else tone
        if tone in ("bad", "badbox"):
            word = self._anomaly(key) if box.height > 1 else self._anomaly(key)[:1]
            end = box.width - 1
            if box.height == 1:  # before the bracket, unless the name goes on to it
                end += cells[box.width - 2][0] != " "
            for place, letter in enumerate(word, end - len(word)):
                cells[place] = letter, tone

    def _anomaly(self, key: int) -> str:
        return next((word for word in map(self._scene.anomaly, self._indices.of(key)) if word), "")

    def _lanes(self, y: int, width: int, cells: Cells, tones: Tones, *, below_top: bool) -> None:
        for lane in reversed(self._drawing.lanes):
            x = width + lane.x
            tone = "accent" if self._cursor in (lane.tail, lane.head) else "back"
            if y in (lane.above, lane.below):
                for place in range(width, x):
                    cells[place], tones[place] = "╌", tone
                cells[x], tones[x] = ("╮" if y == lane.above else "╯"), tone
            elif lane.above < y < lane.below:
                cells[x], tones[x] = "▲" if below_top else "╎", tone

    def _lane_names(self, y: int, width: int, cells: Cells, tones: Tones) -> None:
        """Whose back edge climbs there: names that stay at the top."""
        for lane in self._drawing.lanes:
            if lane.above < y < lane.below:
                name = _short(lane)
                begin = min(width + lane.x - len(name) // 2, len(cells) - len(name))
                for place, letter in enumerate(name):
                    cells[begin + place], tones[begin + place] = letter, "port"


def _further_in(inside: BoxPlace | None, step: tuple[int, int]) -> BoxPlace | None:
    """Return the same place as seen from inside of an open box; None if it is elsewhere."""
    if inside is None or not inside.path or inside.path[0] != step:
        return None
    return BoxPlace(inside.path[1:], inside.key)


def _in_line(text: str, room: int, line: str) -> str:
    """Return a text in the middle of a line."""
    if cell_len(text) + 2 > room:
        return centred(text, room)
    shown = f" {text} "
    before = (room - cell_len(shown)) // 2
    return line * before + shown + line * (room - before - cell_len(shown))


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
        values = np.array([largest_of(part) for part in np.array_split(values, room)])
    return spark(values.tolist())


def _short(lane: GutterLane) -> str:
    """A lane is four cells wide, and a blank stands between two names."""
    return lane.name if len(lane.name) <= 3 else lane.name[:3]
