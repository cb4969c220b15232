"""The body as a graph: operations as boxes, one wire a tensor, back edges in a gutter at the right.

How large boxes are follows from the room that there is: all of the graph is seen if that is possible, else as much as
fits its width, with a map of the whole beside it. Only the rows that are visible are painted. It follows the moment: it
scrolls when the operation leaves the inner area, and then centres at once. Of a body of more than a thousand operations
the neighbourhood of the selected one is drawn, with that in the middle.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import pairwise
from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.timer import Timer

from stepper.engine.program import Program
from stepper.export.figures.figure import NodeKind
from tui.paint.links import LinkedValue
from tui.paint.names import operation_names
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, cell_len, clip, spread
from tui.screens.graph.cells import Indices, Painter, Rows, Scene
from tui.screens.graph.drawing import Drawing, Place, Side, bodies_of
from tui.screens.graph.drawings import BodyDrawings, is_large
from tui.screens.graph.fitting import BETWEEN, Fitting, fits, map_width, part_starts, part_width
from tui.screens.graph.glyph_map import GlyphMap
from tui.screens.graph.levels import LEVELS, MAP, SHORT, Manner
from tui.screens.graph.neighbourhood import REACHES, usual_reach
from tui.state import State
from tui.theme import GLYPHS, in_ascii

_CALM: Final = 0.5
"""Seconds without a change before the map of a large body is made, which keys would wait for."""
_ASIDE: Final = 6
"""Columns by which the graph moves sideways at once."""


class BodyGraph(Pane):
    """The graph of the frame that is looked at."""

    DEFAULT_CSS = "BodyGraph { height: 1fr; min-height: 4; }"
    kind: ClassVar[str] = "graph"
    title = "body"
    help_text: ClassVar[str] = (
        "The body: each box an operation, each wire a tensor; Constants, shape arithmetic and outputs that only\n"
        "grow are folded. Dashed lines at the right are the back edges, where there is room; else ↺ is at their ends.\n"
        "Boxes are as large as they fit; + and - change that, down to a map of glyphs. Beside a graph that does not\n"
        "fit there is its map: a click goes there. Arrows go along wires, Shift with arrows and a drag scroll.\n"
        "What you select is shown with the way to it from the inputs, in thick lines; v shows only what it reads,\n"
        "what reads it, and its cycle of back edges. Space opens a loop, an If or shape arithmetic in place.\n"
        "Of more than 1,000 operations those near the selected one are drawn, with … where a wire goes on and ↺ where\n"
        "a back edge does; - goes further away, + nearer. ov stands beside what OpenVINO computes."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.level: int | None = None
        self._reach: int | None = None
        self.is_only = False
        self.left = 0
        self._opened: frozenset[tuple[int, int]] = frozenset()
        self._drawings = BodyDrawings(host, lambda: self.update(self.state))
        self._drawing: Drawing | None = None
        self._indices: Indices | None = None
        self._cursor: int | None = None
        self._scene: Scene | None = None
        self._painter: Painter | None = None
        self._painted_rows: Rows = {}
        self._map: GlyphMap | None = None
        self._around: tuple[Drawing, Indices] | None = None
        self._calm: Timer | None = None
        self._tallest: tuple[Size, int] = Size(0, 0), 0
        self._inside: Place | None = None
        self._has_hit = False
        self._dragged: tuple[int, int] | None = None

    # --- what there is to draw -----------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """Another moment, perhaps another body."""
        self.state, before = state, self._drawing
        self._drawing = drawing = self._found()
        program = self._program()
        self._painter = None
        if drawing is not None and program is not None:
            layer = self._layer()
            self._cursor = None if layer is None else drawing.graph.box_of.get(layer)
            if drawing is not before or self._indices is None:
                self._painted_rows = {}
                self._indices = Indices(program, drawing)
                self._map = None
            self._scene = self._scene_of(program)
            if self._inside is not None and not self._holds(drawing, self._inside):
                self._inside = None
            self._painter = Painter(
                self._scene,
                drawing,
                self._indices,
                self._painted_rows,
                self._cursor,
                self._lit(),
                self._inner_scene,
                self._inside,
            )
            if layer is None:
                self._scroll_to_end(drawing)
            self._follow(anew=drawing is not before)
            if drawing.is_part and is_large(program):
                self._look_for_whole(program)
        self.changed()

    def _look_for_whole(self, program: Program) -> None:
        """Have all of a large body laid out for its map, when nothing else is asked for."""
        known = self._drawings.kept(program, self._fitting(program, MAP))
        if known is not None and (self._around is None or self._around[0] is not known):
            self._around, self._map = (known, Indices(program, known)), None
        if self._calm is not None:
            self._calm.stop()
            self._calm = None
        if known is None and self._map_width:
            self._calm = self.set_timer(_CALM, lambda: self._drawings.whole(program, self._fitting(program, MAP)))

    def _holds(self, drawing: Drawing, place: Place) -> bool:
        """True if a box inside of another is still drawn, and that one is the selected one."""
        if place.path[0][0] != self._cursor:
            return False
        for key, number in place.path:
            sides = drawing.sides.get(key, ())
            if number >= len(sides):
                return False
            drawing = sides[number].drawing
        return place.key in drawing.layout.boxes

    def _side_of(self, place: Place) -> Side | None:
        """Return the body in which a box is; None for one that is inside of none."""
        side, drawing = None, self._drawing
        for key, number in place.path:
            assert drawing is not None
            side = drawing.sides[key][number]
            drawing = side.drawing
        return side

    @property
    def chosen_address(self) -> str:
        """The address of what is selected inside of an open box; empty where that is the operation of the frame."""
        side = None if self._inside is None else self._side_of(self._inside)
        if self._inside is None or side is None:
            return ""
        node = side.drawing.graph.node(self._inside.key)
        layer = side.program.graph.by_id[node.key]
        if not layer.outputs:
            return ""
        return LinkedValue(side.program, layer).address(self.host.driver.compiled)

    def _scene_of(self, program: Program) -> Scene:
        state = self.state
        return Scene(program, state.frame, state.history, state.frame is None, state.breaks_at)

    def _inner_scene(self, program: Program, key: int) -> Scene:
        """Return what is known of a body inside of a box: its values, if it runs just now."""
        state = self.state
        inside = next((one for one in state.frames[state.depth + 1 :] if one.program is program), None)
        looks = self._painter_outside(key)
        return Scene(program, inside, None, inside is None and looks, lambda _index: ())

    def _painter_outside(self, key: int) -> bool:
        """True if the loop or If has run in this iteration."""
        frame = self.state.frame
        index = None if self._indices is None else self._indices.chosen(key)
        return frame is None or (index is not None and frame.is_done(index))

    def _found(self) -> Drawing | None:
        """Return the body, or a part of it around an operation; None where it is not ready yet."""
        program = self._program()
        if program is None or not self.size.width:
            return None
        layer = self._layer()
        if self.is_only and layer is not None:
            return self._drawings.only(program, layer, Manner(self.level or SHORT + 1, self._width))
        if is_large(program) and self.level != MAP:
            near = program.layers[-1].id if layer is None else layer
            return self._drawings.near(program, near, self.reach, self._width - map_width(self._width))
        drawing = self._drawings.whole(program, self._fitting(program))
        if drawing is None or self.level is not None or drawing.width + drawing.gutter <= self._width:
            return drawing
        near = program.layers[-1].id if layer is None else layer
        return self._drawings.near(program, near, self.reach, self._width)

    def _fitting(self, program: Program, level: int | None = None) -> Fitting:
        unfolded = self.host.folding.open_layers(program)
        chosen = self.level if level is None else level
        return Fitting(self._width, self._usual_height, chosen, unfolded, self._opened)

    @property
    def _usual_height(self) -> int:
        """Rows that there are unless a stop or an answer takes some: boxes do not change their size for that."""
        at, most = self._tallest
        most = max(most, self.size.height) if at == self.app.size else self.size.height
        self._tallest = self.app.size, most
        return max(most - 1, 1)

    def _lit(self) -> frozenset[int] | None:
        """Return the boxes on the way to the selected one; None where none is selected."""
        return None if self._drawing is None else self._lit_in(self._drawing)

    def _lit_in(self, drawing: Drawing) -> frozenset[int] | None:
        layer = self._layer()
        key = None if layer is None else drawing.graph.box_of.get(layer)
        return None if self.state.selected is None or key is None else drawing.way_to(key)

    @property
    def _width(self) -> int:
        return self.size.width

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

    # --- where one looks -----------------------------------------------------------------------------------------

    @property
    def _is_map(self) -> bool:
        """True if the graph is drawn as a map alone."""
        return self.level == MAP and not self.is_only

    @property
    def _map_width(self) -> int:
        """Columns of the map beside a graph of which a part is seen; 0 where all is."""
        drawing = self._drawing
        program = self._program()
        if drawing is None or program is None or self._is_map:
            return 0
        if drawing.is_part and (self.is_only or not is_large(program)):
            return 0
        if not drawing.is_part and fits(drawing, self.size.width, self.size.height - 1):
            return 0
        wide = map_width(self.size.width)
        return wide if self._parts == 1 and drawing.width + drawing.gutter + wide <= self.size.width else 0

    @property
    def _parts(self) -> int:
        """How many parts of the graph stand side by side, each going on where the one before it ends."""
        return 1 if self._drawing is None else self._drawing.manner.parts

    def _room(self) -> tuple[int, int]:
        """Return the columns for boxes, and the rows of all parts."""
        gutter = 0 if self._drawing is None else self._drawing.gutter
        wide = part_width(self.size.width - self._map_width, self._parts)
        return max(wide - gutter, 1), max(self.size.height - 1, 1) * self._parts

    def _follow(self, *, anew: bool = False) -> None:
        """Keep the cursor in the inner area; `anew`: bring it into the middle."""
        drawing = self._drawing
        if drawing is None or not self.size.width:
            return
        if self._cursor is None:
            self._clamp()
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
        # A graph that is smaller than the pane stands in the middle of it.
        if self._parts > 1:
            below = 0 if fits(drawing, self.size.width, self.size.height - 1) else drawing.height - height // 2
            self.top = max(0, min(self.top, below))
        else:
            self.top = max(0, min(self.top, below)) if below > 0 else below // 2
        self.left = max(0, min(self.left, spare)) if spare > 0 else spare // 2

    def on_resize(self, _event: events.Resize) -> None:
        """Another room."""
        self.update(self.state)
        self._follow(anew=True)
        self.changed()

    def _move(self, right: int, down: int) -> None:
        self.left += right
        self.top += down
        self._clamp()
        self.changed()

    def scroll_rows(self, by: int) -> None:
        """The wheel."""
        self._move(0, by)

    def pan_by(self, right: int, down: int) -> None:
        """See what is beside, above or below, without moving anything else."""
        self._move(right * _ASIDE, down * 3)

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Sideways."""
        self._move(_ASIDE, 0)
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Sideways."""
        self._move(-_ASIDE, 0)
        event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls, sideways with Shift; with Ctrl boxes become smaller."""
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls, sideways with Shift; with Ctrl boxes become larger."""
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, way: int) -> None:
        if event.ctrl:
            self.zoom_by(-way)
        elif event.shift:
            self._move(way * _ASIDE, 0)
        else:
            self._move(0, 3 * way)
        event.stop()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag begins, of the graph or on its map."""
        if event.button == 1:
            self._dragged = event.x, event.y
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The graph goes where it is dragged; on the map, to what is pointed at."""
        if self._dragged is None:
            return
        if self._is_on_map(event.x):
            self._show_on_map(event.x, event.y)
        else:
            self._move(self._dragged[0] - event.x, self._dragged[1] - event.y)
        self._dragged = event.x, event.y

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """The drag is over."""
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()

    def _is_on_map(self, x: int) -> bool:
        wide = self._map_width
        return bool(wide) and x - self.gutter.left >= self.size.width - wide

    def _show_on_map(self, x: int, y: int) -> None:
        if self._map is None:
            return
        if self._drawing is not None and self._drawing.is_part:
            self._select_on_map(x, y)
        else:
            self.top = self._map.drawn_row(y - 1) - self._room()[1] // 2
            self._move(0, 0)

    def _select_on_map(self, x: int, y: int) -> None:
        """Select the operation at a place of the map of a large body: then it is in the middle."""
        assert self._map is not None
        key = self._map.box_at(x - self.gutter.left - (self.size.width - self._map.width), y - 1, far=True)
        index = None if key is None or self._around is None else self._around[1].chosen(key)
        if index is not None and index != self.state.cursor:
            self.post_line(f"select {index}")

    def on_click(self, event: events.Click) -> None:
        """A click on a box selects it, a second one opens it, wherever the first one has moved it."""
        if self._is_on_map(event.x):
            self._show_on_map(event.x, event.y)
            return
        if event.chain == 2 and self._has_hit:
            self.post_line(f"open {self.chosen_address}".rstrip())
            return
        place = self._place_at(event.x, event.y)
        if place is None:
            self._has_hit = False
            return
        key = place.path[0][0] if place.path else place.key
        index = None if self._indices is None else self._indices.chosen(key)
        self._has_hit = index is not None
        if index is not None:
            self._inside = place if place.path else None
            self._cursor = key
            self.post_line(f"select {index}")
            self.update(self.state)

    def _place_at(self, x: int, y: int) -> Place | None:
        drawing = self._drawing
        if drawing is None or y < 1:
            return None
        if self._is_map:
            key = None if self._map is None else self._map.box_at(x - self.gutter.left, y - 1)
            return None if key is None else Place((), key)
        place, x = divmod(x - self.gutter.left, self._room()[0] + drawing.gutter + BETWEEN)
        starts = part_starts(drawing, self.top, self.size.height - 1)
        if place >= len(starts):
            return None
        column, row = x + self.left, y - 1 + starts[place]
        if place + 1 < len(starts) and row >= starts[place + 1]:
            return None
        return drawing.place_at(column, row)

    # --- keys ----------------------------------------------------------------------------------------------------

    def zoom_by(self, by: int) -> None:
        """Larger or smaller boxes; of a neighbourhood fewer or more of them. At the one that fits it follows the size
        again.
        """
        program, drawing = self._program(), self._drawing
        if program is None or drawing is None:
            return
        if drawing.is_part and not self.is_only:
            if self.reach + by < 0:
                self.level = MAP
            else:
                self._reach = max(0, min(self.reach + by, len(REACHES) - 1))
        elif is_large(program) and self._is_map:
            self.level = None if by > 0 else MAP
        else:
            at = drawing.manner.level if self.level is None else self.level
            wanted = max(MAP, min(at + by, len(LEVELS) - 1))
            fitting = None if self.is_only else self._usual(program)
            self.level = None if fitting is not None and fitting.manner.level == wanted else wanted
        self.update(self.state)
        self._follow(anew=True)
        self.changed()

    def _usual(self, program: Program) -> Drawing | None:
        """Return the drawing that fits, if it is there."""
        level, self.level = self.level, None
        try:
            return self._drawings.whole(program, self._fitting(program))
        finally:
            self.level = level

    def look_on(self, direction: int) -> None:
        """The whole graph, or only what the selected operation has to do with."""
        self.is_only = not self.is_only
        self.update(self.state)

    def fold(self) -> None:
        """Open the selected loop or If in place, or close it; shape arithmetic is the list's."""
        program, layer = self._program(), self._layer()
        side = None if self._inside is None else self._side_of(self._inside)
        if self._inside is not None and side is not None:
            program, layer = side.program, self._inside.key
        if program is not None and layer is not None and bodies_of(program, layer):
            self._opened ^= {(id(program), layer)}
        self.update(self.state)

    def follow_wire(self, direction: str) -> None:
        """Select the next box along a wire, or beside this one."""
        drawing, key = self._drawing, self._cursor
        if drawing is None or key is None or self._indices is None or self._move_inside(direction):
            return
        near = beside(drawing, key, direction)
        chosen = next((index for other in near if (index := self._indices.chosen(other)) is not None), None)
        if chosen is not None:
            self.post_line(f"select {chosen}")

    def _move_inside(self, direction: str) -> bool:
        """Go into an open box from its upper edge, along the wires in it, and out of it; False if that is not so."""
        drawing, key, place = self._drawing, self._cursor, self._inside
        assert drawing is not None and key is not None
        if place is None:
            if direction != "down" or key not in drawing.sides:
                return False
            self._select_inside(Place(((key, 0),), drawing.sides[key][0].drawing.layout.ranks[0][0]))
            return True
        side = self._side_of(place)
        assert side is not None
        if direction == "down" and place.key in side.drawing.sides:
            inner = side.drawing.sides[place.key][0].drawing
            self._select_inside(Place((*place.path, (place.key, 0)), inner.layout.ranks[0][0]))
            return True
        near = beside(side.drawing, place.key, direction)
        if near:
            self._select_inside(Place(place.path, near[0]))
            return True
        if direction in ("left", "right"):
            return self._to_other_side(place, 1 if direction == "right" else -1)
        outer = Place(place.path[:-1], place.path[-1][0])
        self._inside = outer if outer.path else None
        if direction == "down":
            self.follow_wire("down") if outer.path else self._leave_down()
        self.update(self.state)
        return True

    def _leave_down(self) -> None:
        drawing, key, indices = self._drawing, self._cursor, self._indices
        assert drawing is not None and key is not None and indices is not None
        near = (indices.chosen(other) for other in beside(drawing, key, "down"))
        chosen = next((index for index in near if index is not None), None)
        if chosen is not None:
            self.post_line(f"select {chosen}")

    def _to_other_side(self, place: Place, by: int) -> bool:
        """Go from one side of an If to the other."""
        *around, (key, number) = place.path
        outer = self._side_of(Place(tuple(around), key))
        drawing = self._drawing if outer is None else outer.drawing
        assert drawing is not None
        if 0 <= number + by < len(drawing.sides[key]):
            inner = drawing.sides[key][number + by].drawing
            self._select_inside(Place((*around, (key, number + by)), inner.layout.ranks[0][0]))
        return True

    def _select_inside(self, place: Place) -> None:
        self._inside = place
        self.update(self.state)

    # --- painting ------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return how many boxes, of which kind; or around what, and how far."""
        mark = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        title = (self.title, "title-on" if self.has_focus else "title")
        return [spread([mark, title], [(f"{self._note(width - len(self.title) - 3)} ", "note")], width)]

    def _note(self, room: int) -> str:
        drawing, program, cursor = self._drawing, self._program(), self.state.cursor
        if drawing is None:
            return ""
        if self.is_only and drawing.is_part:
            words = ": its inputs, readers, cycle"
            name = "" if program is None or cursor is None else operation_names(program)[cursor]
            return f"{clip(name, max(room - len(words), 4))}{words}"
        if drawing.is_part:
            return self._whereabouts(room)
        count = f"{len(drawing.graph.nodes)} ops"
        level = LEVELS[MAP if self._is_map else drawing.manner.level].name
        part = "" if self._is_map or fits(drawing, self.size.width, self.size.height - 1) else " · a part"
        return f"{count} · {level}{part}"

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
        heading, painter, drawing = self.heading(width), self._painter, self._drawing
        if painter is None or drawing is None:
            waits = self._program() is not None
            lines: list[Row] = [*heading, [], [(" laying the graph out …" if waits else "", "dim")]]
            return lines[:height] + [[]] * (height - len(lines))
        if self._is_map:
            return [*heading, *self._map_rows(width, height - 1, alone=True)]
        wide = self._map_width
        if self._parts > 1:
            return [*heading, *self._rows_of_parts(painter, drawing, height - 1)]
        rows = [painter.row(y + self.top, self.left, width - wide, y, height - 1) for y in range(height - 1)]
        if wide:
            beside = self._map_rows(wide - 2, height - 1, alone=False)
            rows = [spread(row, [(" ", ""), *part], width) for row, part in zip(rows, beside, strict=True)]
        return [*heading, *rows]

    def _rows_of_parts(self, painter: Painter, drawing: Drawing, height: int) -> list[Row]:
        """Return parts of the graph side by side."""
        room = self._room()[0]
        starts = part_starts(drawing, self.top, height)
        rows: list[Row] = [[] for _ in range(height)]
        for place, (begin, end) in enumerate(pairwise([*starts, starts[-1] + height])):
            for y, row in enumerate(rows):
                blank: Row = [(" " * room, "")]
                row += [(" ╎ ", "ghost")] if place else []
                row += painter.row(begin + y, self.left, room, 2, 0) if begin + y < end else blank
        return rows

    def _map_rows(self, width: int, height: int, *, alone: bool) -> list[Row]:
        drawing, scene, indices = self._drawing, self._scene, self._indices
        assert drawing is not None and scene is not None and indices is not None
        if drawing.is_part:
            if self._around is None:
                return [[] for _ in range(height)]
            drawing, indices = self._around
        if self._map is None or (self._map.width, self._map.height, self._map.drawing) != (width, height, drawing):
            self._map = GlyphMap(drawing, indices, width, height)
        layer = self._layer()
        key = None if layer is None else drawing.graph.box_of.get(layer)
        if not alone:
            return self._map.rows(scene, key, seen=self._seen(self._map), lit=self._lit_in(drawing))
        names = [] if key is None else [key, *drawing.sources(key), *drawing.readers(key)]
        return self._map.rows(scene, key, names=names, lit=self._lit_in(drawing))

    def _seen(self, map: GlyphMap) -> Container[int]:
        """Return the rows of the map of which something is seen beside it."""
        drawing, whole = self._drawing, map.drawing
        if drawing is None or drawing is whole:
            return range(map.row_of(self.top), map.row_of(self.top + self._room()[1] - 1) + 1)
        boxes = [whole.layout.boxes[key] for key in drawing.layout.boxes if key in whole.layout.boxes]
        return {map.row_of(box.y + whole.margin) for box in boxes}

    def segments_of(self, row: Row, width: int) -> list[Segment]:
        """Cells are what they are; only glyphs that need a twin get one, and what does not fit is left out."""
        show = in_ascii if self.look.ascii else str
        segments = [Segment(show(text), self.style_of(tone)) for text, tone in row]
        return list(Strip(segments).adjust_cell_length(width, self.style_of("")))


def beside(drawing: Drawing, key: int, direction: str) -> list[int]:
    """Return the boxes up, down, left or right of a box, the nearest first; those in which the way ends come last."""
    if direction in ("left", "right"):
        rank = next(rank for rank in drawing.layout.ranks if key in rank)
        place = rank.index(key)
        return list(rank[place + 1 :] if direction == "right" else rank[:place][::-1])
    near = drawing.sources(key) if direction == "up" else drawing.readers(key)
    centre = drawing.layout.boxes[key].centre

    def far(other: int) -> tuple[bool, int]:
        ends = drawing.graph.node(other).kind is NodeKind.ACCUMULATOR
        return ends, abs(drawing.layout.boxes[other].centre - centre)

    return sorted(near, key=far)
