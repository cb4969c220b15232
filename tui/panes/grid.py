"""Operations down, iterations across: one cell a value, its statistic as a shade. The cursor is the moment.

Only what is visible is asked for and built, so that 500 operations by a million iterations are no more than a screen.
"""

from __future__ import annotations

from typing import ClassVar, Final, cast

from rich.style import Style
from textual import events

from stepper.debug.frame_views import FrameView
from stepper.debug.iteration_tiles import Cell, Tile
from tui.names import marked_name
from tui.panes.base import Pane
from tui.panes.grid_axis import axis
from tui.panes.grid_part import CHANGED, LEVELS, ODD, UNKNOWN, GridPart
from tui.rows import Row, Token, padded
from tui.stage import Stage
from tui.state import Happening, State
from tui.theme import GLYPHS

_WIDTHS: Final = (1, 2, 4, 5, 7)
"""Cells of the terminal for one of the grid; from 4 on the last is air."""
_LETTERS: Final = "IN"
_WEAK: Final = f"0123456789{GLYPHS['free']}"
"""Glyphs that the moment's own covers."""


class Grid(Pane):
    """A row an operation, a column an iteration.

    The shade is the place of the number between the least and the largest of its row on the screen, so that a change is
    seen whatever the scale. A glyph wins over the shade: loud where something begins, quiet where it lasts.
    """

    DEFAULT_CSS = "Grid { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "grid"
    title = "grid"
    help_text: ClassVar[str] = (
        "Operations down, iterations across; the cursor is the moment, and the arrows move it.\n"
        "Shade: where the statistic lies between the least and the largest of its row on the screen.\n"
        "N NaN, I Inf: reversed where it is the first of the run, bold where it begins in a row, thin where it lasts.\n"
        "~ another shape than before, * edited, ● stopped here; · not computed yet.\n"
        "A click selects a cell, a double click or Enter goes there. + and - change the width of a cell."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.left = 0
        self.picked: Cell | None = None
        self._zoom = 0
        self._painted_for = 0
        self._asked: tuple[int, int] | None = None
        self._shown: tuple[tuple[int, int, int, int], GridPart] | None = None
        self._cells: dict[int, Row] = {}
        self._marked: set[Cell] = set()
        self._happened: dict[Cell, str] = {}

    # --- what is looked at ---------------------------------------------------------------------------------------

    @property
    def frame(self) -> FrameView | None:
        """The loop's frame around what is looked at; outside of loops that which is looked at."""
        state = self.state
        return state.frames[state.loop_depth] if state.loop_depth is not None else state.frame

    @property
    def moment(self) -> Cell | None:
        """Where the run stands; operation -1: before the first of the iteration."""
        frame = self.frame
        return None if frame is None else Cell(frame.iteration or 0, frame.moment)

    @property
    def cell(self) -> Cell | None:
        """The cell that is shown in detail: the selected one, else the moment."""
        state, moment = self.state, self.moment
        if moment is None or self.picked is not None:
            return self.picked
        own = state.frame is self.frame and state.cursor is not None
        return Cell(moment.iteration, (state.cursor or 0) if own else max(moment.operation, 0))

    def columns(self) -> tuple[int, int]:
        """The first iteration that is visible, and how many are."""
        room = max((self.size.width - self.label_width) // self.cell_width, 1)
        total = self._total()
        return self.left, room if total is None else max(min(room, total - self.left), 1)

    @property
    def cell_width(self) -> int:
        """Cells of the terminal for one iteration."""
        width = self.size.width
        usual = 3 if width >= 146 else 2 if width > 106 else 1
        return _WIDTHS[max(0, min(usual + self._zoom, len(_WIDTHS) - 1))]

    @property
    def label_width(self) -> int:
        """Cells for the names."""
        return 30 if self.size.width >= 186 else 21 if self.size.width > 96 else 17

    def _total(self) -> int | None:
        """How many iterations there can be; None where there is no limit."""
        loop, cells = self.state.loop, self.state.cells
        if loop is None:
            return 1
        known = [loop.trip.total, None if cells is None else cells.ended, loop.trip.maximum]
        found = next((total for total in known if total is not None), None)
        return None if found is None else max(found, (self.frame.iteration or 0) + 1 if self.frame else 1)

    # --- following the moment ------------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """The grid follows the moment."""
        before, old_frame = self.moment, self.frame
        self.state = state
        moved = before != self.moment or (old_frame and old_frame.program) is not (self.frame and self.frame.program)
        if moved:
            self.picked = None
            self._follow()
        elif self.picked is not None and state.cursor is not None:
            self.picked = Cell(self.picked.iteration, state.cursor)
        self._happened = self._happenings()
        self.changed()

    def _follow(self) -> None:
        moment, frame = self.moment, self.frame
        room = self.size.height - 2
        if moment is None or frame is None or room < 1:
            return
        if not self.top + 1 <= moment.operation < self.top + room - 1:
            self.top = max(0, min(moment.operation - room * 3 // 5, len(frame.layers) - room))
        total, wide = self._total(), max((self.size.width - self.label_width) // self.cell_width, 1)
        if not self.left <= moment.iteration < self.left + wide - 1 or moment.iteration == self.left > 0:
            self._show_from(moment.iteration - wide // 3, wide, total)

    def _show_from(self, left: int, wide: int, total: int | None) -> None:
        self.left = max(0, left if total is None else min(left, total - wide))

    def changed(self) -> None:
        """What is visible may be another part, which has to be asked for."""
        self._shown, self._cells = None, self._cells if self._painted_for == self.cell_width else {}
        self._painted_for = self.cell_width
        cells = self.state.cells
        marked = {*self._happened, self.moment, self.picked, *(cells.firsts.values() if cells is not None else ())}
        self._marked = {cell for cell in marked if cell is not None}
        super().changed()
        self._ask()

    def _ask(self) -> None:
        if not self.size.width or not self.is_mounted:
            return
        first, count = self.columns()
        window = max(first - 1, 0), first + count - 1
        if window != self._asked and self.frame is not None:
            self._asked = window
            cast("Stage", self.app).driver.adjust(lambda pictures: pictures.look_at_cells(window))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        cast("Stage", self.app).driver.adjust(lambda pictures: pictures.look_at_cells(None))

    def on_resize(self, _event: events.Resize) -> None:
        """Another part is visible."""
        self._follow()
        self.changed()

    def notify_style_update(self) -> None:
        """Another theme."""
        self._cells = {}
        super().notify_style_update()

    # --- rows ----------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """The title, and the iterations."""
        frame = self.frame
        if frame is None:
            return super().heading(width)
        room = self.size.height - 2
        last = min(self.top + room, len(frame.layers))
        rows = f" · rows {self.top} to {last - 1} of {len(frame.layers)}" if room < len(frame.layers) else ""
        self.note = f"{self.state.statistic}, shade by row{rows} "
        first, count = self.columns()
        now = frame.iteration or 0
        labels = axis(first, count, self.cell_width, now, width - self.label_width)
        return [*super().heading(width), [(" " * self.label_width, ""), *labels]]

    def count(self, width: int) -> int:
        """As many as there are operations."""
        return 1 if self.frame is None else len(self.frame.layers)

    def row(self, index: int, width: int) -> Row:
        """One operation over the visible iterations."""
        frame, moment = self.frame, self.moment
        if frame is None or moment is None:
            return [("  ", ""), ("F goes back into the run, g to its start", "dim")]
        row = self._label(frame, index, here=index == moment.operation)
        part = self._part()
        for code in part.codes[index - part.top]:
            row += self._cells.get(code) or self._painted(code)
        for cell in self._marked:
            column = cell.iteration - part.left
            if cell.operation == index and 0 <= column < part.columns:
                self._mark(row, 4 + column * (2 if self.cell_width > 3 else 1), cell, moment)
        return row

    def _mark(self, row: Row, at: int, cell: Cell, moment: Cell) -> None:
        """What is said of this one cell beside its number."""
        text, tone = row[at]
        glyph, happened = text.strip(), self._happened.get(cell, "")
        firsts = self.state.cells.firsts if self.state.cells is not None else {}
        if happened:
            glyph = (
                glyph + happened if glyph in _LETTERS and len(text) > 2 else glyph if glyph in _LETTERS else happened
            )
        if cell == moment:
            glyph, tone = glyph if glyph and glyph[0] not in _WEAK else GLYPHS["now"], "now"
        elif cell == self.picked:
            tone = "strong cursor"
        elif cell in firsts.values():
            tone = "badbg"
        row[at] = f"{glyph:^{len(text)}}"[: len(text)], tone

    def _label(self, frame: FrameView, index: int, *, here: bool) -> Row:
        name = marked_name(frame.program, index, self.label_width - 3)
        tone = "title-on" if here else "" if frame.is_done(index) else "dim"
        chosen = self.cell
        under = " cursor" if chosen is not None and chosen.operation == index and not here else ""
        breaks = [one for one in self.state.breaks if one.is_at(frame.program, index)]
        glyph = "break" if breaks else ""
        if breaks and (breaks[0].conditional or not breaks[0].enabled):
            glyph = "break-if" if breaks[0].enabled else "break-off"
        return [
            (GLYPHS["now"] if here else " ", "accent"),
            (GLYPHS[glyph] if glyph else " ", "bad"),
            (padded(name, self.label_width - 3), f"{tone}{under}".strip()),
            (" ", ""),
        ]

    def _part(self) -> GridPart:
        """The visible numbers, and one iteration before them."""
        left, columns = self.columns()
        room = max(self.size.height - 2, 1)
        key = left, columns, self.top, room
        if self._shown is None or self._shown[0] != key:
            cells, frame = self.state.cells, self.frame
            tall = min(room, len(frame.layers) - self.top) if frame is not None else 0
            fits = cells is not None and frame is not None and cells.program is frame.program
            found = cells.window(left - 1, columns + 1, self.top, tall) if cells is not None and fits else None
            part = Tile.empty(columns + 1, tall) if found is None else found
            self._shown = key, GridPart(part, left, self.top)
        return self._shown[1]

    # --- paint ---------------------------------------------------------------------------------------------------

    def _painted(self, code: int) -> Row:
        """A cell of this code, and the air behind it."""
        wide = self.cell_width
        width = wide - 1 if wide > 3 else wide
        glyph, tone = self._look_of(code)
        cell: Row = [(f"{glyph:^{width}}"[:width], tone)]
        self._cells[code] = cell if width == wide else [*cell, (" ", "")]
        return self._cells[code]

    def _look_of(self, code: int) -> tuple[str, Token]:
        """A glyph and how it is painted."""
        if code >= ODD:
            kind, begins = divmod(code - ODD, 2)
            return _LETTERS[kind - 1], self._front(loud=bool(begins))
        if code == UNKNOWN:
            return GLYPHS["free"], "faint"
        is_changed = code >= CHANGED - 1
        level = code - CHANGED if is_changed else code
        glyph = GLYPHS["shape"] if is_changed else ""
        if not glyph and self.look.plain and level >= 0:
            glyph = str(level * 9 // (LEVELS - 1))
        return glyph, self._shade(level)

    def _front(self, *, loud: bool) -> Style:
        """NaN and Inf: bold on a tint where it begins, thin where it lasts."""
        ground, error = self.colour("background"), self.colour("error")
        tint = ground.blend(error, 0.30 if loud else 0.06)
        ink = error if loud else ground.blend(error, 0.55)
        return Style(color=ink.rich_color, bgcolor=tint.rich_color, bold=loud)

    def _shade(self, level: int) -> Style:
        """A level from 0; -1: there is a value, but no number."""
        share = 0.04 if level < 0 else 0.10 + 0.62 * level / (LEVELS - 1)
        ground = self.colour("background").blend(self.colour("secondary"), share)
        return Style(color=self.colour("foreground").rich_color, bgcolor=ground.rich_color, bold=not self.look.plain)

    def shades(self) -> list[Style]:
        """From low to high, for the legend."""
        return [self._shade(level) for level in (0, 4, 7, LEVELS - 1)]

    @property
    def edited(self) -> str:
        """The glyph of an edited value; in ASCII the usual one is that of a breakpoint."""
        return "#" if self.look.ascii else GLYPHS["edit"]

    def _happenings(self) -> dict[Cell, str]:
        frame, run = self.frame, self.state.loop_run
        found: dict[Cell, str] = {}
        for event in self.state.events if frame is not None else ():
            if (
                event.run == run
                and event.place is not None
                and frame is not None
                and event.place[0] == id(frame.program)
            ):
                glyph = {Happening.STOP: GLYPHS["break"], Happening.EDIT: self.edited}.get(event.kind)
                if glyph is not None:
                    found[Cell(event.iteration, event.place[1])] = glyph
        return found

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def zoom_by(self, by: int) -> None:
        """Wider or narrower cells."""
        usual = 3 if self.size.width >= 146 else 2 if self.size.width > 106 else 1
        self._zoom = max(-usual, min(self._zoom + by, len(_WIDTHS) - 1 - usual))
        self._follow()
        self.changed()

    def pan(self, by: int) -> None:
        """See other iterations; half a screen at a time."""
        _, count = self.columns()
        wide = max((self.size.width - self.label_width) // self.cell_width, 1)
        self._show_from(self.left + by * max(count // 2, 1), wide, self._total())
        self.changed()

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """The wheel sees later iterations."""
        self.pan(1)
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """The wheel sees earlier iterations."""
        self.pan(-1)
        event.stop()

    def on_click(self, event: events.Click) -> None:
        """A click selects, a second one goes there."""
        index, frame = self.row_at(event.y), self.frame
        if index is None or frame is None:
            return
        first, count = self.columns()
        column = (event.x - self.gutter.left - self.label_width) // self.cell_width
        iteration = first + column if 0 <= column < count else frame.iteration or 0
        self.picked = Cell(iteration, index)
        if event.chain == 2:
            self.post_line("go-to-cell")
        elif self.state.frame is frame:
            self.post_line(f"select {index}")
        self.changed()
        self.told()

    def told(self) -> None:
        """Another cell is selected: who shows it is told."""
        for pane in self.screen.query(Pane):
            if pane is not self and pane.id == "detail":
                pane.changed()

    def unpick(self) -> bool:
        """Select nothing; whether something was selected."""
        had, self.picked = self.picked is not None, None
        self.changed()
        self.told()
        return had

    def go_line(self) -> str:
        """The line that goes to the selected cell; empty where that is the moment."""
        return "" if self.picked is None or self.picked == self.moment else self._line_to(self.picked)

    def seek_anomaly(self, *, backward: bool) -> str:
        """The line that goes to the next anomaly that is known; empty where there is none."""
        cells, moment = self.state.cells, self.moment
        if cells is None or moment is None:
            return ""
        found = cells.anomaly(moment, backward=backward)
        return "" if found is None else self._line_to(found)

    def _line_to(self, cell: Cell) -> str:
        frame = self.frame
        if frame is None:
            return ""
        address = frame.address(cell.operation, cast("Stage", self.app).driver.compiled)
        return f"goto {address}" if self.state.loop is None else f"goto {address}@{cell.iteration}"
