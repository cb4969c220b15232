"""The body as a graph: operations as boxes, one wire a tensor, back edges in a gutter at the right.

Only the rows that are visible are painted. It follows the moment: it scrolls when the operation leaves the inner area,
and then centres at once. Of a body of more than a thousand operations the neighbourhood of the selected one is drawn,
with that in the middle.
"""

from __future__ import annotations

from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from stepper.engine.program import Program
from tui.paint.names import operation_names
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, cell_len, clip, spread
from tui.screens.graph.cells import Painter, Rows
from tui.screens.graph.drawing import HEIGHTS, Drawing
from tui.screens.graph.drawings import BodyDrawings, is_large
from tui.screens.graph.neighbourhood import REACHES, usual_reach
from tui.state import State
from tui.theme import GLYPHS, in_ascii

_ZOOMS: Final = ("chips", "boxes", "boxes with types")


class BodyGraph(Pane):
    """The graph of the frame that is looked at."""

    DEFAULT_CSS = "BodyGraph { height: 1fr; min-height: 4; }"
    kind: ClassVar[str] = "graph"
    title = "body"
    help_text: ClassVar[str] = (
        "The body: each box an operation, each wire a tensor; Constants, shape arithmetic and outputs that only\n"
        "grow are folded. Dashed lines at the right are the back edges. Arrows go along wires, + and - change boxes.\n"
        "Of more than 1,000 operations those near the selected one are drawn, with … where a wire goes on and ↺ where\n"
        "a back edge does; - goes further away, + nearer. ov stands beside what OpenVINO computes."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.zoom = 1
        self._reach: int | None = None
        self.left = 0
        self._drawings = BodyDrawings(host, lambda: self.update(self.state))
        self._drawing: Drawing | None = None
        self._cursor: int | None = None
        self._indices: tuple[Program, dict[int, int]] | None = None
        self._painter: Painter | None = None
        self._painted_rows: Rows = {}
        self._has_hit = False

    # --- what there is to draw -----------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """Another moment, perhaps another body."""
        self.state, before = state, self._drawing
        self._drawing = drawing = self._found()
        self._painter = None
        if drawing is not None:
            layer = self._layer()
            self._cursor = None if layer is None else drawing.graph.box_of.get(layer)
            if drawing is not before:
                self._painted_rows = {}
            self._painter = Painter(
                state, drawing, self._painted_rows, self._cursor, self._index_of, self._operation_of
            )
            if layer is None:
                self._scroll_to_end(drawing)
            self._follow(anew=drawing is not before)
        self.changed()

    def _found(self) -> Drawing | None:
        """Return the body, or the neighbourhood of an operation; None where it is not ready yet."""
        program = self._program()
        if program is None:
            return None
        if not is_large(program):
            return self._drawings.whole(program, self.zoom)
        layer = self._layer()
        return self._drawings.near(program, program.layers[-1].id if layer is None else layer, self.reach)

    @property
    def reach(self) -> int:
        """How far a neighbourhood goes, an index of REACHES."""
        return usual_reach(self.size.height) if self._reach is None else self._reach

    def _program(self) -> Program | None:
        """Return the graph of the frame that is looked at; at the end of the run the model's own."""
        if self.state.frame is not None:
            return self.state.frame.program
        return None if self.state.view is None else self.host.driver.compiled.main

    def _layer(self) -> int | None:
        """Return the selected operation, by its layer's id."""
        frame, cursor = self.state.frame, self.state.cursor
        return None if frame is None or cursor is None else frame.layers[cursor].id

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
            self.top = y - height // 2 + (box.height // 2 if drawing.is_part else 2)
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
        spare, below = drawing.width - width, drawing.height - height
        if drawing.is_part:  # what is in the middle stays there as long as nothing gets out of sight by that
            self.top = max(min(below, 0), min(self.top, max(below, 0)))
            self.left = max(min(spare, 0), min(self.left, max(spare, 0)))
            return
        self.top = max(0, min(self.top, below))
        # A graph that is narrower than the pane stands in the middle of it.
        self.left = max(0, min(self.left, spare)) if spare > 0 else spare // 2

    def on_resize(self, _event: events.Resize) -> None:
        """Another room."""
        self.update(self.state)
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
        """Larger or smaller boxes; of a neighbourhood fewer or more of them."""
        program = self._program()
        if program is not None and is_large(program):
            self._reach = max(0, min(self.reach + by, len(REACHES) - 1))
        else:
            self.zoom = max(0, min(self.zoom + by, len(HEIGHTS) - 1))
        self.update(self.state)

    def follow_wire(self, direction: str) -> None:
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
            place = rank.index(key)
            near = list(rank[place + 1 :] if direction == "right" else rank[:place][::-1])
        chosen = next((other for other in near if self._operation_of(other) is not None), None)
        if chosen is not None:
            self.post_line(f"select {self._operation_of(chosen)}")

    def _operation_of(self, key: int) -> int | None:
        """Return the operation that is selected with a box: its last; with a sign the nearest behind it."""
        assert self._drawing is not None
        found = map(self._index_of, self._drawing.graph.node(key).layers)
        indices = [index for index in found if index is not None]
        if key in self._drawing.signs:
            return indices[0] if indices else None
        return max(indices, default=None)

    def on_click(self, event: events.Click) -> None:
        """A click on a box selects it, a second one opens it, wherever the first one has moved it."""
        if event.chain == 2 and self._has_hit:
            self.post_line("open")
            return
        key = self._box_at(event.x, event.y)
        index = None if key is None else self._operation_of(key)
        self._has_hit = index is not None
        if index is not None:
            self.post_line(f"select {index}")

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
        """Return how many boxes, of which kind; or around what, and how far."""
        drawing = self._drawing
        text = "" if drawing is None else f"{len(drawing.graph.nodes)} ops · {_ZOOMS[self.zoom]}"
        if drawing is not None and drawing.is_part:
            text = self._whereabouts(width - len(self.title) - 3)
        mark = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        return [spread([mark, (self.title, "title-on" if self.has_focus else "title")], [(text + " ", "note")], width)]

    def _whereabouts(self, room: int) -> str:
        """Return which part of the body is drawn; less of that where there is less room."""
        program, cursor = self._program(), self.state.cursor
        if program is None:
            return ""
        levels = REACHES[self.reach].levels
        far = f"{levels} level{'' if levels == 1 else 's'}"
        total = f"{len(program.layers):,} ops"
        name = operation_names(program)[-1 if cursor is None else cursor]
        for text in (
            f"{total} · around {name} · {far} · - + wider, nearer",
            f"{total} · around {name} · {far}",
            f"around {name} · {far}",
        ):
            if cell_len(text) <= room:
                return text
        return f"{clip(name, max(room - len(far) - 3, 4))} · {far}"

    def count(self, width: int) -> int:
        """Return as many as are seen."""
        return max(self.size.height - 1, 0)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the heading, and the visible rows of the drawing."""
        heading, painter = self.heading(width), self._painter
        if painter is None:
            waits = self._program() is not None
            return [*heading, [], [(" laying the graph out …" if waits else "", "dim")]]
        return [*heading, *(painter.row(y + self.top, self.left, width, y) for y in range(height - 1))]

    def segments_of(self, row: Row, width: int) -> list[Segment]:
        """Cells are what they are; only glyphs that need a twin get one, and what does not fit is left out."""
        show = in_ascii if self.look.ascii else str
        segments = [Segment(show(text), self.style_of(tone)) for text, tone in row]
        return list(Strip(segments).adjust_cell_length(width, self.style_of("")))
