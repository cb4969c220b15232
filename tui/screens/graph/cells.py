"""The cells of the graph at one moment: what each box looks like, wires, arrows and lanes, joined into rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from stepper.debug.inspection.frame_views import FrameView
from stepper.debug.iterations.statistics import HistoryView
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.geometry import Box
from tui.paint.rows import Row, cell_len
from tui.screens.graph.drawing import LEFT, RIGHT, Drawing, GutterLane, Owner
from tui.state import State
from tui.theme import break_glyph

PORTS: Final = (NodeKind.PARAMETER, NodeKind.RESULT)
_LOOKS: Final = ("badbox", "now", "bad", "on", "port", "done", "box")
"""Tokens of a box, the most important first."""

Cells = list[str]
Tones = list[str]


class BoxLooks:
    """The token of each box at one moment, found when it is painted; `cursor` is the selected box."""

    def __init__(
        self, state: State, drawing: Drawing, cursor: int | None, index_of: Callable[[int], int | None]
    ) -> None:
        self._frame, self._history = state.frame, state.history
        self._drawing, self._cursor, self._index_of = drawing, cursor, index_of
        self._known: dict[int, str] = {}
        self._now: int | None = None
        frame = state.frame
        if frame is not None and 0 <= frame.moment < len(frame.layers):
            self._now = drawing.graph.box_of.get(frame.layers[frame.moment].id)

    def __getitem__(self, key: int) -> str:
        """The token of a box."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(key)
        return found

    def _look(self, key: int) -> str:
        frame, node = self._frame, self._drawing.graph.node(key)
        if frame is None:  # the run has ended
            return "port" if node.kind in PORTS else "done"
        indices = [index for index in map(self._index_of, node.layers) if index is not None]
        # What has no operation of its own never runs: a Constant is there, dead code is not.
        is_done = all(map(frame.is_done, indices)) if indices else node.kind is NodeKind.CONSTANT
        is_bad = self._history is not None and any(_is_bad(frame, self._history, index) for index in indices)
        is_now = key == self._now
        holds = (is_bad and is_now, is_now, is_bad, key == self._cursor, node.kind in PORTS, is_done, True)
        return _LOOKS[holds.index(True)]


def _is_bad(frame: FrameView, history: HistoryView, index: int) -> bool:
    """True if the operation gave NaN or Inf in this iteration."""
    row = (frame.iteration or 0) - history.first
    if not (0 <= row < len(history.known) and frame.is_done(index) and history.known[row, index]):
        return False
    return not math.isfinite(history.numbers[row, index])


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


LINES: Final = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
DASHED: Final = " ╵╶└╷╎┌├╴┘╌┴┐┤┬┼"
"""By links (up 1, right 2, down 4, left 8) the character of a cell."""


_MOST_ROWS: Final = 2_000

Rows = dict[tuple[int, int, int, int], tuple[object, Row]]
"""Painted rows of one drawing by where they are, each with what it looked like."""


class Painter:
    """Paints a drawing at one moment; `cursor` is the selected box, `index_of` and `operation_of` find operations.

    `rows` are those of the same drawing at earlier moments.
    """

    def __init__(
        self,
        state: State,
        drawing: Drawing,
        rows: Rows,
        cursor: int | None,
        index_of: Callable[[int], int | None],
        operation_of: Callable[[int], int | None],
    ) -> None:
        self._state, self._drawing, self._rows, self._cursor = state, drawing, rows, cursor
        self._index_of, self._operation_of = index_of, operation_of
        self._on_lane = any(cursor in (lane.tail, lane.head) for lane in drawing.lanes)
        self._looks = BoxLooks(state, drawing, cursor, index_of)

    def row(self, y: int, left: int, full: int, below_top: int) -> Row:
        """Row `y` of the drawing from column `left` on, in so many cells; the one on top names the lanes.

        One on which everything looks as it did when it was painted last is still there.
        """
        drawing, looks = self._drawing, self._looks
        where = y, left, full, min(below_top, 2)
        keys = drawing.keys_at(y)
        seen = [(looks[key], self._anomaly(key) if "bad" in looks[key] else "") for key in keys]
        look = self._cursor if self._cursor in keys or self._on_lane else None, self._state.breaks, seen
        known = self._rows.get(where)
        if known is None or known[0] != look:
            if len(self._rows) > _MOST_ROWS:
                self._rows.clear()
            known = self._rows[where] = look, joined(*self._cells(*where))
        return known[1]

    def _cells(self, y: int, left: int, full: int, below_top: int) -> tuple[Cells, Tones]:
        drawing = self._drawing
        width = full - drawing.gutter
        cells, tones = [" "] * full, [""] * full
        self._wires(y, left, width, cells, tones)
        for arrow in drawing.arrows.get(y, ()):
            if left <= arrow.x < left + width:
                cells[arrow.x - left] = "▼"
                into = arrow.target == self._cursor and arrow.owner[0] >= 0
                tones[arrow.x - left] = "accent" if into else self._wire_tone(arrow.owner)
        for key, box in drawing.boxes.get(y, ()):
            if box.x < left + width and box.x + box.width > left:
                for place, (letter, tone) in enumerate(self._box_cells(key, box, y - drawing.margin - box.y)):
                    at = box.x + place - left
                    if 0 <= at < width:
                        cells[at], tones[at] = letter, tone
        self._lanes(y, width, cells, tones, below_top=below_top == 1)
        if not below_top:
            self._lane_names(y, width, cells, tones)
        return cells, tones

    def _wires(self, y: int, left: int, width: int, cells: Cells, tones: Tones) -> None:
        drawing = self._drawing
        links = bytearray(width)
        owners: list[Owner | None] = [None] * width
        for run in drawing.across.get(y, ()):
            for x in range(max(run.begin, left), min(run.end, left + width - 1) + 1):
                links[x - left] |= (RIGHT if x < run.end else 0) | (LEFT if x > run.begin else 0)
                self._own(owners, x - left, run.owner)
        for cell in drawing.along.get(y, ()):
            if left <= cell.x < left + width:
                links[cell.x - left] |= cell.links
                self._own(owners, cell.x - left, cell.owner)
        for place, link in enumerate(links):
            owner = owners[place]
            if link and owner is not None:
                cells[place] = (DASHED if self._is_back(owner) else LINES)[link]
                tones[place] = self._wire_tone(owner)

    def _own(self, owners: list[Owner | None], place: int, owner: Owner) -> None:
        """Of two wires in a cell, that which matters more says how it looks."""
        held = owners[place]
        if held is None or self._weight(owner) > self._weight(held):
            owners[place] = owner

    def _is_back(self, owner: Owner) -> bool:
        """True if the wire is a back edge."""
        return owner[0] < 0 or owner[0] in self._drawing.carried

    def _weight(self, owner: Owner) -> int:
        if self._is_back(owner):
            return 0
        return 3 if owner[0] == self._cursor else 2 if self._is_fresh(owner[0]) else 1

    def _look(self, key: int) -> str:
        return self._looks[key]

    def _is_fresh(self, key: int) -> bool:
        return self._look(key) not in ("box", "on")

    def _wire_tone(self, owner: Owner) -> str:
        key, place = owner
        if key < 0:
            lane = self._drawing.lanes[place]
            return "accent" if self._cursor in (lane.tail, lane.head) else "back"
        if key in self._drawing.carried:
            return "back"
        if self._look(key) in ("bad", "badbox"):
            return "bad"
        return "out" if key == self._cursor else "fresh" if self._is_fresh(key) else "wire"

    def _box_cells(self, key: int, box: Box, row: int) -> list[tuple[str, str]]:
        drawing, tone = self._drawing, self._look(key)
        inner, label = box.width - 2, drawing.labels[key]
        if key in drawing.signs:
            return self._sign_cells(key, f" {centred(label, inner)} ")
        port = drawing.graph.node(key).kind in PORTS
        line, corners = ("═", "╒╕╘╛") if port else ("─", "╭╮╰╯")
        if box.height == 1:
            text = f"({centred(label, inner)})" if port else f"[{centred(label, inner)}]"
        elif row == 0:
            text = corners[0] + line * inner + corners[1]
        elif row == box.height - 1:
            text = corners[2] + line * inner + corners[3]
        else:
            text = f"│{centred(label if row == 1 else drawing.details.get(key, ''), inner)}│"
        cells = [(letter, tone) for letter in text]
        if row == 0:
            self._put_marks(key, box, cells, tone)
        return cells

    def _sign_cells(self, key: int, text: str) -> list[tuple[str, str]]:
        """Return words without a frame, where a wire is cut."""
        look = self._look(key)
        tone = "bad" if look == "bad" else "back" if key in self._drawing.carried else "dim"
        return [(letter, tone) for letter in text]

    def _put_marks(self, key: int, box: Box, cells: list[tuple[str, str]], tone: str) -> None:
        """Breakpoints and anomalies sit on the upper edge."""
        plain = tone not in ("now", "badbox")
        for layer in self._drawing.graph.node(key).layers:
            index = self._index_of(layer)
            for one in () if index is None else self._state.breaks_at(index):
                cells[1 if box.height > 1 else 0] = break_glyph(one), "bad" if plain else tone
        if tone in ("bad", "badbox") and box.height > 1:
            word = self._anomaly(key)
            for place, letter in enumerate(word):
                cells[box.width - 1 - len(word) + place] = letter, tone

    def _anomaly(self, key: int) -> str:
        frame, history, index = self._state.frame, self._state.history, self._operation_of(key)
        if frame is None or history is None or index is None:
            return ""
        latest = history.of(index, frame.iteration or 0, 1)[-1]
        return "" if latest is None else "NaN" if math.isnan(latest) else "Inf"

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


def _short(lane: GutterLane) -> str:
    """A lane is four cells wide, and a blank stands between two names."""
    return lane.name if len(lane.name) <= 3 else lane.name[:3]
