"""The body as a graph: operations as boxes, one wire a tensor, back edges in a gutter at the right.

Only the rows that are visible are painted. It follows the moment: it scrolls when the operation leaves the inner area,
and then centres at once.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from stepper.engine.program import Program
from stepper.export.layout import Box
from tui.drawing import DOWN, HEIGHTS, LEFT, RIGHT, UP, Drawing, Drawings, GutterLane, Owner, draw
from tui.panes.base import Pane
from tui.panes.graph_boxes import PORTS, BoxLooks, Cells, Tones, centred, joined
from tui.rows import Row, spread
from tui.state import State
from tui.theme import GLYPHS, in_ascii

LINES: Final = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
DASHED: Final = " ╵╶└╷╎┌├╴┘╌┴┐┤┬┼"
"""By links (up 1, right 2, down 4, left 8) the character of a cell."""
MOST_AT_ONCE: Final = 200
"""Boxes that are laid out while one waits; more of them are laid out by the worker."""
_ZOOMS: Final = ("chips", "boxes", "boxes with types")


class BodyGraph(Pane):
    """The graph of the frame that is looked at."""

    DEFAULT_CSS = "BodyGraph { height: 1fr; min-height: 4; }"
    kind: ClassVar[str] = "graph"
    title = "body"
    help_text: ClassVar[str] = (
        "The body: each box an operation, each wire a tensor; Constants, shape arithmetic and outputs that only\n"
        "grow are folded. Dashed lines at the right are the back edges. Arrows go along wires, + and - change boxes."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.zoom = 1
        self.left = 0
        self._drawings = Drawings()
        self._drawing: Drawing | None = None
        self._asked: tuple[int, int] | None = None
        self._cursor: int | None = None
        self._indices: tuple[Program, dict[int, int]] | None = None
        self._looks: BoxLooks | None = None

    # --- what there is to draw -----------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """Another moment, perhaps another body."""
        self.state, before = state, self._drawing
        self._take_drawing()
        drawing, frame = self._drawing, state.frame
        if drawing is not None:
            self._cursor = None
            if frame is not None and state.cursor is not None:
                self._cursor = drawing.graph.box_of.get(frame.layers[state.cursor].id)
            elif frame is None:
                self._scroll_to_end(drawing)
            self._looks = BoxLooks(state, drawing, self._cursor, self._index_of)
            self._follow(anew=drawing is not before)
        self.changed()

    def _take_drawing(self) -> None:
        program = self._program()
        if program is None:
            self._drawing = None
            return
        known = self._drawings.get(program, self.zoom)
        if known is None and len(program.graph.layers) <= MOST_AT_ONCE:
            known = draw(program, self.zoom)
            self._drawings.put(program, self.zoom, known)
        elif known is None and self._asked != (id(program), self.zoom):
            self._ask(program, self.zoom)
        self._drawing = known

    def _program(self) -> Program | None:
        """The graph of the frame that is looked at; at the end of the run the model's own."""
        if self.state.frame is not None:
            return self.state.frame.program
        driver = getattr(self.app, "driver", None)
        return None if driver is None or self.state.view is None else driver.compiled.main

    def _ask(self, program: Program, zoom: int) -> None:
        """Have the worker lay it out."""
        driver = getattr(self.app, "driver", None)
        if driver is None:
            return
        self._asked = id(program), zoom

        def keep(drawing: Drawing) -> None:
            self._drawings.put(program, zoom, drawing)
            self.update(self.state)

        driver.ask(lambda _debugger: draw(program, zoom), keep)

    def _index_of(self, layer: int) -> int | None:
        program = self._program()
        if program is None:
            return None
        if self._indices is None or self._indices[0] is not program:
            self._indices = program, {operation.layer.id: index for index, operation in enumerate(program.operations)}
        return self._indices[1].get(layer)

    # --- where one looks -----------------------------------------------------------------------------------------

    def _room(self) -> tuple[int, int]:
        gutter = 0 if self._drawing is None else self._drawing.gutter
        return max(self.size.width - gutter, 1), max(self.size.height - 1, 1)

    def _follow(self, *, anew: bool = False) -> None:
        """Keep the cursor in the inner area; `anew`: bring it into the middle."""
        drawing = self._drawing
        if drawing is None or self._cursor is None or not self.size.width:
            return
        box = drawing.layout.boxes[self._cursor]
        width, height = self._room()
        y = box.y + drawing.margin
        if anew or not self.top + 2 <= y <= self.top + height - box.height - 2:
            self.top = y - height // 2 + 2
        if anew or not self.left <= box.x <= self.left + width - box.width:
            self.left = box.centre - width // 2
        self._clamp()

    def _scroll_to_end(self, drawing: Drawing) -> None:
        """Where the run has ended."""
        self.top = drawing.height
        self._clamp()

    def _clamp(self) -> None:
        drawing = self._drawing
        if drawing is None:
            return
        width, height = self._room()
        self.top = max(0, min(self.top, drawing.height - height))
        spare = drawing.width - width
        # A graph that is narrower than the pane stands in the middle of it.
        self.left = max(0, min(self.left, spare)) if spare > 0 else spare // 2

    def on_resize(self, _event: events.Resize) -> None:
        """Another room."""
        self._follow(anew=True)
        self._clamp()
        self.changed()

    def scroll_rows(self, by: int) -> None:
        """The wheel."""
        self.top += by
        self._clamp()
        self.changed()

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Sideways."""
        self.left += 6
        self._clamp()
        self.changed()
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Sideways."""
        self.left -= 6
        self._clamp()
        self.changed()
        event.stop()

    def zoom_by(self, by: int) -> None:
        """Larger or smaller boxes."""
        self.zoom = max(0, min(self.zoom + by, len(HEIGHTS) - 1))
        self.update(self.state)

    def follow(self, direction: str) -> None:
        """Select the next box along a wire, or beside this one."""
        drawing, key = self._drawing, self._cursor
        if drawing is None or key is None:
            return
        if direction in ("up", "down"):
            near = drawing.sources(key) if direction == "up" else drawing.readers(key)
            centre = drawing.layout.boxes[key].centre
            near.sort(key=lambda other: abs(drawing.layout.boxes[other].centre - centre))
        else:
            rank = next(rank for rank in drawing.layout.ranks if key in rank)
            place = rank.index(key) + (1 if direction == "right" else -1)
            near = [rank[place]] if 0 <= place < len(rank) else []
        chosen = next((other for other in near if self._operation_of(other) is not None), None)
        if chosen is not None:
            self.post_line(f"select {self._operation_of(chosen)}")

    def _operation_of(self, key: int) -> int | None:
        """The operation that is selected with a box: its last."""
        assert self._drawing is not None
        indices = [self._index_of(layer) for layer in self._drawing.graph.node(key).layers]
        return max((index for index in indices if index is not None), default=None)

    def on_click(self, event: events.Click) -> None:
        """A click on a box selects it, a second one opens it."""
        key = self._box_at(event.x, event.y)
        index = None if key is None else self._operation_of(key)
        if index is not None:
            self.post_line(f"select {index}")
            if event.chain == 2:
                self.post_line("open")

    def _box_at(self, x: int, y: int) -> int | None:
        drawing = self._drawing
        if drawing is None or y < 1:
            return None
        column, row = x - self.gutter.left + self.left, y - 1 + self.top
        for key, box in drawing.boxes.get(row, ()):
            if box.x <= column < box.x + box.width:
                return key
        return None

    # --- painting ------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """How many boxes, of which kind."""
        drawing = self._drawing
        text = "" if drawing is None else f"{len(drawing.graph.nodes)} ops · {_ZOOMS[self.zoom]}"
        mark = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        return [spread([mark, ("body", "title-on" if self.has_focus else "title")], [(text + " ", "note")], width)]

    def count(self, width: int) -> int:
        """As many as are seen."""
        return max(self.size.height - 1, 0)

    def _visible(self, y: int, width: int) -> Row:
        if y == 0:
            return self.heading(width)[0]
        drawing = self._drawing
        if drawing is None:
            waits = self.state.frame is not None
            return [(" laying the graph out …" if waits else "", "dim")] if y == 2 else []
        cells, tones = self._cells(drawing, y - 1 + self.top, width)
        return joined(cells, tones)

    def strip_of(self, row: Row, width: int) -> Strip:
        """Cells are what they are; only glyphs that need a twin get one."""
        show = in_ascii if self.look.ascii else str
        return Strip([Segment(show(text), self.style_of(tone)) for text, tone in row]).adjust_cell_length(
            width, self.style_of("")
        )

    def _cells(self, drawing: Drawing, y: int, full: int) -> tuple[Cells, Tones]:
        width = full - drawing.gutter
        left = self.left
        cells, tones = [" "] * full, [""] * full
        self._wires(drawing, y, left, width, cells, tones)
        for arrow in drawing.arrows.get(y, ()):
            if left <= arrow.x < left + width:
                cells[arrow.x - left] = "▼"
                into = arrow.target == self._cursor and arrow.owner[0] >= 0
                tones[arrow.x - left] = "accent" if into else self._wire_tone(drawing, arrow.owner)
        for key, box in drawing.boxes.get(y, ()):
            if box.x < left + width and box.x + box.width > left:
                for place, (letter, tone) in enumerate(self._box_cells(drawing, key, box, y - drawing.margin - box.y)):
                    at = box.x + place - left
                    if 0 <= at < width:
                        cells[at], tones[at] = letter, tone
        self._lanes(drawing, y, width, cells, tones)
        return cells, tones

    def _wires(self, drawing: Drawing, y: int, left: int, width: int, cells: Cells, tones: Tones) -> None:
        links = bytearray(width)
        owners: list[Owner | None] = [None] * width
        for run in drawing.across.get(y, ()):
            for x in range(max(run.begin, left), min(run.end, left + width - 1) + 1):
                links[x - left] |= (RIGHT if x < run.end else 0) | (LEFT if x > run.begin else 0)
                self._own(drawing, owners, x - left, run.owner)
        for cell in drawing.along.get(y, ()):
            if left <= cell.x < left + width:
                links[cell.x - left] |= cell.links
                self._own(drawing, owners, cell.x - left, cell.owner)
        for place, link in enumerate(links):
            owner = owners[place]
            if link and owner is not None:
                cells[place] = (DASHED if owner[0] < 0 else LINES)[link & (UP | DOWN | LEFT | RIGHT)]
                tones[place] = self._wire_tone(drawing, owner)

    def _own(self, drawing: Drawing, owners: list[Owner | None], place: int, owner: Owner) -> None:
        """Of two wires in a cell, that which matters more says how it looks."""
        held = owners[place]
        if held is None or self._weight(owner) > self._weight(held):
            owners[place] = owner

    def _weight(self, owner: Owner) -> int:
        if owner[0] < 0:
            return 0
        return 3 if owner[0] == self._cursor else 2 if self._is_fresh(owner[0]) else 1

    def _look(self, key: int) -> str:
        return "box" if self._looks is None else self._looks[key]

    def _is_fresh(self, key: int) -> bool:
        return self._look(key) not in ("box", "on")

    def _wire_tone(self, drawing: Drawing, owner: Owner) -> str:
        key, place = owner
        if key < 0:
            return "accent" if self._cursor in (drawing.lanes[place].tail, drawing.lanes[place].head) else "back"
        if self._look(key) in ("bad", "badbox"):
            return "bad"
        return "out" if key == self._cursor else "fresh" if self._is_fresh(key) else "wire"

    def _box_cells(self, drawing: Drawing, key: int, box: Box, row: int) -> list[tuple[str, str]]:
        tone = self._look(key)
        inner, label = box.width - 2, drawing.labels[key]
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
            self._put_marks(drawing, key, box, cells, tone)
        return cells

    def _put_marks(self, drawing: Drawing, key: int, box: Box, cells: list[tuple[str, str]], tone: str) -> None:
        """Breakpoints and anomalies sit on the upper edge."""
        plain = tone not in ("now", "badbox")
        for layer in drawing.graph.node(key).layers:
            index = self._index_of(layer)
            for one in () if index is None else self.state.breaks_at(index):
                glyph = "break-off" if not one.enabled else "break-if" if one.conditional else "break"
                cells[1 if box.height > 1 else 0] = GLYPHS[glyph], "bad" if plain else tone
        if tone in ("bad", "badbox") and box.height > 1:
            word = self._anomaly(drawing, key)
            for place, letter in enumerate(word):
                cells[box.width - 1 - len(word) + place] = letter, tone

    def _anomaly(self, drawing: Drawing, key: int) -> str:
        frame, history, index = self.state.frame, self.state.history, self._operation_of(key)
        if frame is None or history is None or index is None:
            return ""
        latest = history.of(index, frame.iteration or 0, 1)[-1]
        return "" if latest is None else "NaN" if math.isnan(latest) else "Inf"

    def _lanes(self, drawing: Drawing, y: int, width: int, cells: Cells, tones: Tones) -> None:
        for lane in reversed(drawing.lanes):
            x = width + lane.x
            tone = "accent" if self._cursor in (lane.tail, lane.head) else "back"
            if y in (lane.above, lane.below):
                for place in range(width, x):
                    cells[place], tones[place] = "╌", tone
                cells[x], tones[x] = ("╮" if y == lane.above else "╯"), tone
            elif lane.above < y < lane.below:
                cells[x], tones[x] = "╎", tone
                if y == self.top + 1:
                    cells[x] = "▲"
        if y == self.top:
            self._lane_names(drawing, y, width, cells, tones)

    def _lane_names(self, drawing: Drawing, y: int, width: int, cells: Cells, tones: Tones) -> None:
        """Whose back edge climbs there: names that stay at the top."""
        for lane in drawing.lanes:
            if lane.above < y < lane.below:
                name = _short(lane)
                begin = min(width + lane.x - len(name) // 2, len(cells) - len(name))
                for place, letter in enumerate(name):
                    cells[begin + place], tones[begin + place] = letter, "port"


def _short(lane: GutterLane) -> str:
    """A lane is four cells wide, and a blank stands between two names."""
    return lane.name if len(lane.name) <= 3 else lane.name[:3]
