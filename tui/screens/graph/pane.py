"""The body as a graph: operations as boxes, one wire a tensor, back edges in a gutter at the right.

How large boxes are follows from the room that there is: all of the graph is seen if that is possible, else as much as
fits its width, with a map of the whole beside it. Only the rows that are visible are painted. It follows the moment: it
scrolls when the operation leaves the inner area, and then centres at once. Of a body of more than a thousand operations
the neighbourhood of the selected one is drawn, with that in the middle.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.timer import Timer

from stepper.engine.program import Program
from tui.paint.links import LinkedValue
from tui.paint.names import nothing_inside
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, cell_len, clip_end, spread
from tui.screens.graph.cells import Indices, Painter, Rows, Scene
from tui.screens.graph.choice import DrawingChoice
from tui.screens.graph.drawing import BoxPlace, Drawing, bodies_of
from tui.screens.graph.drawings import BodyDrawings, is_large
from tui.screens.graph.glyph_map import GlyphMap
from tui.screens.graph.inside import words_inside
from tui.screens.graph.levels import MAP
from tui.screens.graph.places import holds, moved, side_of
from tui.screens.graph.viewport import Viewport
from tui.state import State
from tui.theme import GLYPHS, in_ascii

if TYPE_CHECKING:
    from stepper.debug.inspection.views import FrameView

_CALM: Final = 0.5
"""Seconds without a change before the map of a large body is made, which keys would wait for."""
_ASIDE: Final = 6
_BELOW: Final = 3
"""Columns and rows by which the graph moves at once."""


class BodyGraph(Pane):
    """The graph of the frame that is looked at."""

    DEFAULT_CSS = "BodyGraph { height: 1fr; min-height: 4; }"
    kind: ClassVar[str] = "graph"
    title = "body"
    help_text: ClassVar[str] = (
        "The body: each box an operation, each wire a tensor; Constants, shape arithmetic and outputs that only\n"
        "grow are folded. Dashed lines at the right are the back edges, where there is room; else ↺ is at their ends.\n"
        "Boxes are as large as they fit; + and - change that, down to lines (an operation a row, its wires left of\n"
        "it with a dot at their ends) and a map of glyphs. Where even lines do not fit, what one operation alone\n"
        "reads is on its line (Add +2: two more); with the cursor there all have lines, marked with ·. Beside a\n"
        "graph that does not fit there is its map: a click goes there. Arrows go along wires, Shift with arrows and a\n"
        "drag scroll. What you select is shown with the way to it from the inputs, in thick lines; v shows only what\n"
        "it reads, what reads it, and its cycle of back edges. Space opens loops, Ifs and shape arithmetic in place.\n"
        "Of more than 1,000 operations those near the selected one are drawn, with … where a wire goes on and ↺ where\n"
        "a back edge does; - goes further away, + nearer. ov stands beside what OpenVINO computes."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._drawings = BodyDrawings(host, lambda: self.update(self.state))
        self.choice = DrawingChoice(host, self._drawings)
        self.view = Viewport()
        self._drawing: Drawing | None = None
        self._indices: Indices | None = None
        self._cursor: int | None = None
        self._inside: BoxPlace | None = None
        self._scene: Scene | None = None
        self._painter: Painter | None = None
        self._painted_rows: Rows = {}
        self._map: GlyphMap | None = None
        self._whole: tuple[Drawing, Indices] | None = None
        self._calm: Timer | None = None
        self._has_hit = False
        self._dragged: tuple[int, int] | None = None
        self._has_moved = False

    # --- what there is to draw -----------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """Another moment, perhaps another body."""
        self.state, before = state, self._drawing
        program, layer = self._program(), self._layer()
        room = Size(self.size.width, max(self.size.height - 1, 1))
        self.choice.put(room, self.app.size)
        self._drawing = drawing = self.choice.drawing(program, layer) if program is not None and room.width else None
        self.view.put(drawing, room, self.choice.map_width(program, drawing))
        self._painter = None
        if drawing is not None and program is not None:
            cursor, self._cursor = self._cursor, None if layer is None else drawing.graph.box_of.get(layer)
            if drawing is not before or self._indices is None:
                self._painted_rows = {}
                self._indices = Indices(program, drawing)
                self._map = None
            self._painter = self._painter_of(program, drawing, self._indices)
            if drawing is not before or self._cursor != cursor:  # a later picture of the same moment scrolls nothing
                self.view.follow(self._cursor, anew=drawing is not before)
            if drawing.is_part and is_large(program):
                self._look_for_whole(program)
        self.changed()

    def _painter_of(self, program: Program, drawing: Drawing, indices: Indices) -> Painter:
        state, place = self.state, self._inside
        if place is not None and (place.path[0][0] != self._cursor or not holds(drawing, place)):
            self._inside = None
        frame = self._frame
        self._scene = Scene(program, frame, state.history, frame is None, state.breaks_at)
        lit = self._lit(drawing)
        return Painter(
            self._scene, drawing, indices, self._painted_rows, self._cursor, lit, self._inner_scene, self._inside
        )

    def _inner_scene(self, program: Program, key: int) -> Scene:
        """Return what is known of a body inside of a box: its values, if it runs just now."""
        frame, frames = self._frame, self.state.frames[self.state.depth + 1 :]
        inside = next((one for one in frames if one.program is program), None)
        index = None if self._indices is None else self._indices.chosen(key)
        has_run = frame is None or (index is not None and frame.is_done(index))
        return Scene(program, inside, None, inside is None and has_run, lambda _index: ())

    def _look_for_whole(self, program: Program) -> None:
        """Have all of a large body laid out for its map, when nothing else is asked for."""
        wanted = self.choice.fitting(program, MAP)
        known = self._drawings.kept(program, wanted)
        if known is not None and (self._whole is None or self._whole[0] is not known):
            self._whole, self._map = (known, Indices(program, known)), None
        if self._calm is not None:
            self._calm.stop()
            self._calm = None
        if known is None and self.view.map_width:
            self._calm = self.set_timer(_CALM, lambda: self._drawings.whole(program, wanted))

    def _lit(self, drawing: Drawing) -> frozenset[int] | None:
        """Return the boxes of a drawing on the way to the selected one; None where none is selected."""
        layer = self._layer()
        key = None if layer is None else drawing.graph.box_of.get(layer)
        return None if self.state.selected is None or key is None else drawing.way_to(key)

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
        """Return the selected operation, by its layer's id."""
        frame, cursor = self._frame, self.state.cursor
        return None if frame is None or cursor is None else frame.layers[cursor].id

    @property
    def chosen_address(self) -> str:
        """The address of what is selected inside of an open box; empty where that is the operation of the frame."""
        if self._inside is None or self._drawing is None:
            return ""
        side = side_of(self._drawing, self._inside)
        layer = None if side is None else side.program.graph.by_id[self._inside.key]
        if side is None or layer is None or not layer.outputs:
            return ""
        return LinkedValue(side.program, layer).address(self.host.driver.compiled)

    # --- where one looks -----------------------------------------------------------------------------------------

    def on_resize(self, _event: events.Resize) -> None:
        """Another room."""
        self.update(self.state)
        self._centre()

    def _centre(self) -> None:
        self.view.follow(self._cursor, anew=True)
        self.changed()

    def _scroll(self, right: int, down: int) -> None:
        self.view.move(right, down)
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
        self._scroll(_ASIDE, 0)
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Sideways."""
        self._scroll(-_ASIDE, 0)
        event.stop()

    def wheel(self, event: events.MouseEvent, way: int) -> None:
        """The wheel scrolls, sideways with Shift; with Ctrl boxes become smaller or larger."""
        if event.ctrl:
            self.zoom_by(-way)
        else:
            self.pan_by(*((way, 0) if event.shift else (0, way)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag begins, of the graph or on its map."""
        if event.button == 1:
            self._dragged, self._has_moved = (event.x, event.y), False
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The graph goes where it is dragged; on the map, to what is pointed at."""
        if self._dragged is None or self._dragged == (event.x, event.y):
            return
        self._has_moved = True
        if self._is_on_map(event.x):
            self._show_on_map(event.x, event.y)
        else:
            self._scroll(self._dragged[0] - event.x, self._dragged[1] - event.y)
        self._dragged = event.x, event.y

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """The drag is over."""
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()

    def _is_on_map(self, x: int) -> bool:
        return self.view.map_width > 0 and x - self.gutter.left >= self.size.width - self.view.map_width

    def _show_on_map(self, x: int, y: int) -> None:
        """Scroll to a place of the map; of a large body select what is there: then it is in the middle."""
        if self._map is None or self._drawing is None:
            return
        if not self._drawing.is_part:
            self._scroll(0, self._map.drawn_row(y - 1) - self.view.room.height // 2 - self.view.top)
            return
        key = self._map.box_at(x - self.gutter.left - (self.size.width - self._map.width), y - 1, far=True)
        index = None if key is None or self._whole is None else self._whole[1].chosen(key)
        if index is not None and index != self.state.cursor:
            self.post_line(f"select {index}")

    def on_click(self, event: events.Click) -> None:
        """A click on a box selects it, a second one opens it, wherever the first one has moved it.

        One on the sign of a loop or If shows in place what is inside of it.
        """
        if self._has_moved:  # the end of a drag
            self._has_moved = False
        elif self._is_on_map(event.x):
            self._show_on_map(event.x, event.y)
        elif event.chain == 2 and self._has_hit:
            self.post_line(f"open {self.chosen_address}".rstrip())
        else:
            place = self._place_at(event.x - self.gutter.left, event.y - 1)
            if place is not None and self._is_on_sign(event.x - self.gutter.left, event.y):
                self._has_hit = False
                self._select(place)
                self.fold()
                return
            self._has_hit = place is not None and self._can_stop(place)
            if place is not None and self._has_hit:
                self._select(place)
            elif place is not None:
                self._tell(place.key, opens=event.chain == 2)

    def _is_on_sign(self, x: int, y: int) -> bool:
        """True if there is the sign, or the number behind it, of a box that can be opened in place."""
        text = "".join(text for text, _ in self.visible_lines(*self.size)[y])
        return GLYPHS["unfold"] in text[max(x - 1, 0) : x + 1]

    def _tell(self, key: int, *, opens: bool) -> None:
        """Print the value of a box without an operation, as of a Parameter, or open it; else say why there is none."""
        program = self._program()
        layer = None if program is None else program.graph.by_id.get(key)
        if program is not None and layer is not None and layer.outputs:
            address = LinkedValue(program, layer).address(self.host.driver.compiled)
            self.post_line(f"{'open' if opens else 'print'} {address}")

    def _place_at(self, x: int, y: int) -> BoxPlace | None:
        if self._drawing is None or y < 0:
            return None
        if self.choice.is_map:
            key = None if self._map is None else self._map.box_at(x, y)
            return None if key is None else BoxPlace((), key)
        cell = self.view.cell_at(x, y)
        return None if cell is None else self._drawing.place_at(*cell)

    # --- selecting -----------------------------------------------------------------------------------------------

    def _can_stop(self, place: BoxPlace) -> bool:
        """True if a box can be selected: all that are inside of open ones, else those with an operation."""
        return bool(place.path) or (self._indices is not None and self._indices.chosen(place.key) is not None)

    def _select(self, place: BoxPlace, index: int | None = None) -> None:
        """Select a box; with one inside of another that one's operation is selected in the other panes.

        `index` is the operation of the box, if not the one that gives its value.
        """
        assert self._indices is not None
        key = place.path[0][0] if place.path else place.key
        index = self._indices.chosen(key) if index is None else index
        self._inside, self._cursor = (place, key) if place.path else (None, key)
        if index is not None:
            self.post_line(f"select {index}")
        self.update(self.state)
        side = None if self._drawing is None else side_of(self._drawing, place)
        if side is not None:
            self.host.say(words_inside(self.state, side.program, place.key))

    def follow_wire(self, direction: str) -> None:
        """Select the next box along a wire, or beside this one."""
        if self._drawing is None or self._indices is None or self._cursor is None:
            return
        here = self._inside if self._inside is not None else BoxPlace((), self._cursor)
        there = moved(self._drawing, here, direction, self._can_stop)
        if there is None:
            return
        is_on_way = direction == "down" and not here.path and not there.path
        if is_on_way and self._drawing.graph.node(there.key).is_folded:
            self._select(there, self._indices.reader(there.key, here.key))
        else:
            self._select(there)

    def fold(self) -> str:
        """Open the selected loop or If in place, or close it; shape arithmetic is the list's."""
        program, layer = self._program(), self._layer()
        if self._inside is not None and self._drawing is not None:
            side = side_of(self._drawing, self._inside)
            program, layer = (None if side is None else side.program), self._inside.key
        if program is None or layer is None:
            return "nothing is selected"
        if not bodies_of(program, layer):
            return nothing_inside(program.graph.by_id[layer])
        self.choice.opened ^= {(id(program), layer)}
        self.update(self.state)
        return ""

    def zoom_by(self, by: int) -> None:
        """Larger or smaller boxes; of a neighbourhood fewer or more of them."""
        program = self._program()
        if program is not None and self._drawing is not None:
            self.choice.zoom_by(by, program, self._drawing)
            self.update(self.state)
            self._centre()

    def look_on(self, direction: int) -> None:
        """The whole graph, or only what the selected operation has to do with."""
        self.choice.is_only = not self.choice.is_only
        self.update(self.state)

    # --- painting ------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return how many boxes, of which kind; or around what, and how far."""
        program, drawing = self._program(), self._drawing
        note = ""
        if program is not None and drawing is not None:
            cursor = None if self._frame is None else self.state.cursor
            note = self.choice.note(program, drawing, cursor, width - len(self.title) - 3)
        mark = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        title = (self.title, "title-on" if self.has_focus else "title")
        told = clip_end(f"{note} ", max(width - cell_len(self.title) - 2, 0))
        return [spread([mark, title], [(told, "note")], width)]

    def count(self, width: int) -> int:
        """Return as many as are seen."""
        return max(self.size.height - 1, 0)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the heading, and the visible rows of the drawing."""
        heading, painter, drawing = self.heading(width), self._painter, self._drawing
        if painter is None or drawing is None:
            waits = self._program() is not None
            lines: list[Row] = [*heading, [], [(" laying the graph out …" if waits else "", "dim")]]
            return lines[:height] + [[]] * (height - len(lines))
        if self.choice.is_map:
            return [*heading, *self._map_rows(width, height - 1, alone=True)]
        wide, top = self.view.map_width, self.view.top
        if self.view.parts > 1:
            rows = self._rows_of_parts(painter, height - 1)
        else:
            rows = [painter.row(y + top, self.view.left, width - wide, y, height - 1) for y in range(height - 1)]
        if wide:
            beside = self._map_rows(wide - 2, height - 1, alone=False)
            rows = [spread(row, [(" ", ""), *part], width) for row, part in zip(rows, beside, strict=True)]
        return [*heading, *rows]

    def _rows_of_parts(self, painter: Painter, height: int) -> list[Row]:
        """Return parts of the graph side by side."""
        wide, starts = self.view.room.width, self.view.starts()
        rows: list[Row] = [[] for _ in range(height)]
        for place, (begin, end) in enumerate(pairwise([*starts, starts[-1] + height])):
            for y, row in enumerate(rows):
                blank: Row = [(" " * wide, "")]
                row += [(" ╎ ", "ghost")] if place else []
                row += painter.row(begin + y, self.view.left, wide, 2, 0) if begin + y < end else blank
        return rows

    def _map_rows(self, width: int, height: int, *, alone: bool) -> list[Row]:
        drawing, scene, indices = self._drawing, self._scene, self._indices
        assert drawing is not None and scene is not None and indices is not None
        if drawing.is_part:
            if self._whole is None:
                return [[] for _ in range(height)]
            drawing, indices = self._whole
        if self._map is None or (self._map.width, self._map.height, self._map.drawing) != (width, height, drawing):
            self._map = GlyphMap(drawing, indices, width, height)
        layer = self._layer()
        key = None if layer is None else drawing.graph.box_of.get(layer)
        if not alone:
            return self._map.rows(scene, key, seen=self._seen(self._map), lit=self._lit(drawing))
        names = [] if key is None else [key, *drawing.sources(key), *drawing.readers(key)]
        return self._map.rows(scene, key, names=names, lit=self._lit(drawing))

    def _seen(self, map: GlyphMap) -> Container[int]:
        """Return the rows of the map of which something is seen beside it."""
        drawing, whole, view = self._drawing, map.drawing, self.view
        if drawing is None or drawing is whole:
            return range(map.row_of(view.top), map.row_of(view.top + view.room.height - 1) + 1)
        boxes = [whole.layout.boxes[key] for key in drawing.layout.boxes if key in whole.layout.boxes]
        return {map.row_of(box.y + whole.margin) for box in boxes}

    def segments_of(self, row: Row, width: int) -> list[Segment]:
        """Cells are what they are; only glyphs that need a twin get one, and what does not fit is left out."""
        show = in_ascii if self.look.ascii else str
        segments = [Segment(show(text), self.style_of(tone)) for text, tone in row]
        return list(Strip(segments).adjust_cell_length(width, self.style_of("")))
