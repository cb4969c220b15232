"""Operations down, iterations across: one cell a value, its statistic as a shade. The cursor is the moment.

Only what is visible is asked for and built, so that 500 operations by a million iterations are no more than a screen.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from rich.style import Style
from textual import events

from stepper.debug.inspection.views import FrameView
from stepper.debug.iterations.cell_store import Cell
from stepper.debug.iterations.loop_runs import address_in_run
from stepper.tensors.statistics import FITTING, OVER_ITERATIONS
from tui.paint.columns import cells_of, headings, widths_of
from tui.paint.folding import Listing, OperationEntry
from tui.paint.names import nothing_inside, statistic_text
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, overlaid, spread, without_begin
from tui.pictures.drawing import EIGHTHS
from tui.pictures.one_line import LinePictures
from tui.screens.far_runs import carried_in_far_run, is_left_at_once
from tui.screens.grid.cells import LETTERS, CellPaint, GridPart, event_marks
from tui.screens.grid.columns import NUMBERED, WIDTHS, GridRow, axis, columns, picture_width, suffices, usual
from tui.screens.moments.marks import spread_cells
from tui.screens.timeline.bar import none_ran, outside_text
from tui.screens.timeline.far_title import far_title
from tui.state import State
from tui.theme import GLYPHS
from tui.worker.requests import ShowCells, ShowRun, ShowValues

if TYPE_CHECKING:
    from stepper.engine.program import Program

DIFFERENCE: Final = "difference"
"""How the differences from a reference or a branch are called among the statistics."""
_PICKED: Final = 0.35
"""Share of the accent in a picture that is marked."""
_HALVES: Final = "▀▌"
_WEAK: Final = f"0123456789{GLYPHS['free']}{EIGHTHS}·-{GLYPHS['true']}{GLYPHS['false']}"
"""Glyphs that the moment's own covers."""


class Grid(Pane):
    """A row an operation, a column an iteration.

    A cell is a picture of the value by the scale of its row; with a statistic of whole values the shade is the place of
    the number between the least and the largest of its row on the screen. So a change is seen whatever the scale. A
    glyph wins over the shade: loud where something begins, quiet where it lasts.
    """

    DEFAULT_CSS = "Grid { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "grid"
    looks_inside: ClassVar[bool] = True
    title = "grid"
    help_text: ClassVar[str] = (
        "Operations down, iterations across; the cursor is the moment, and the arrows move it.\n"
        "A cell is the value itself: in narrow ones the upper half is the first half of the elements, the lower half\n"
        "the second; wide ones have the elements from left to right. Below stands that of the selected row, large.\n"
        "With a statistic of whole values (V) the shade is where that lies between the least and the largest of its\n"
        "row on the screen.\n"
        "N NaN, I Inf: reversed where it is the first of the run, bold where it begins in a row, thin where it lasts.\n"
        "~ another shape than before, * edited, ● stopped here; · not computed yet. ov: what OpenVINO computes.\n"
        "▸ name ×9 is shape arithmetic, folded: Space opens it; its cells show only what is remarkable.\n"
        "Beside a reference a column has each row's largest difference, ≠ above tolerance, ! where the run first is;\n"
        "V goes on to the differences themselves, after the statistics. Where A is an iteration or a branch,\n"
        "the column has the largest difference of the present iteration from A; V has those of all, relative.\n"
        "A click selects a cell, a double click or Enter goes there. + and - change its width; wide ones have numbers."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.left = 0
        self.picked: Cell | None = None
        self._zoom = 0
        self._wide: tuple[tuple[int, int, State], int] | None = None
        self._asked: tuple[int, int] | None = None
        self._shown: tuple[tuple[int, int, int, int], GridPart] | None = None
        self.paint = CellPaint(self)
        self._by_difference = False
        self._marked: set[Cell] = set()
        self._happened: dict[Cell, str] = {}
        self._pictures = LinePictures()
        self._wanted: tuple[Listing, tuple[int, ...]] | None = None

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
        return self._present or (None if frame is None else Cell(frame.iteration or 0, frame.moment))

    @property
    def _present(self) -> Cell | None:
        """Where the run stands, as far as that is in what is shown."""
        frame = self.frame
        now = self.state.now if self.state.is_far else None if frame is None else frame.moment
        return None if now is None or frame is None else Cell(frame.iteration or 0, now)

    @property
    def cell(self) -> Cell | None:
        """The cell that is shown in detail: the selected one, else the moment."""
        state, moment = self.state, self.moment
        if moment is None or self.picked is not None:
            return self.picked
        own = state.frame is self.frame and state.cursor is not None and not state.is_far
        return Cell(moment.iteration, (state.cursor or 0) if own else max(moment.operation, 0))

    def columns(self) -> tuple[int, int]:
        """Return the first iteration that is visible, and how many are."""
        room = max((self.size.width - self.label_width) // self.cell_width, 1)
        total = self._total()
        return self.left, room if total is None else max(min(room, total - self.left), 1)

    @property
    def _usual(self) -> int:
        """Which of the widths it is without zoom."""
        return usual(self.size.width, self.size.width - self.label_width, self._total())

    @property
    def cell_width(self) -> int:
        """Cells of the terminal for one iteration; each row asks."""
        key = self.size.width, self._zoom, self.state
        if self._wide is None or self._wide[0] != key:
            self._wide = key, WIDTHS[max(0, min(self._usual + self._zoom, len(WIDTHS) - 1))]
        return self._wide[1]

    def leaves(self, width: int, whole: int) -> bool:
        """True if so much of the `whole` width does for all iterations."""
        return suffices(width - self.label_width, whole - self.label_width, self._total())

    @property
    def label_width(self) -> int:
        """Cells of the columns before the first iteration."""
        return sum(widths_of(columns(self.state), self.size.width))

    @property
    def shows_differences(self) -> bool:
        """True if the cells are how far values are from a reference's or a branch's, instead of their statistic."""
        return self._by_difference and self._has_differences

    @property
    def _has_differences(self) -> bool:
        """True if all iterations are held against others."""
        return self.state.comparison is not None or spread_cells(self.state) is not None

    def listing(self) -> Listing | None:
        """Return the rows of the frame; None where there are no iterations."""
        frame, loop = self.frame, self.state.loop
        is_none = frame is None or (loop is not None and none_ran(loop))
        return None if frame is None or is_none else self.host.folding.listing(frame.program)

    def _total(self) -> int | None:
        """Return how many iterations there can be; None where there is no limit."""
        loop, cells = self.state.loop, self.state.cells
        if loop is None:
            return 1
        known = [loop.trip.total, None if cells is None else cells.ended, loop.trip.limit]
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
        elif self.picked is not None and state.cursor is not None and not state.is_far:
            self.picked = Cell(self.picked.iteration, state.cursor)
        self._happened = event_marks(state, self.frame, self.look.edited)
        self.changed()

    def _follow(self) -> None:
        moment, frame = self.moment, self.frame
        room = self.size.height - 2
        if moment is None or frame is None or room < 1:
            return
        listing = self.listing()
        row = 0 if listing is None else listing.row_of.get(moment.operation, 0)
        if listing is not None and not self.top + 1 <= row < self.top + room - 1:
            self.top = max(0, min(row - room * 3 // 5, len(listing.entries) - room))
        total, wide = self._total(), max((self.size.width - self.label_width) // self.cell_width, 1)
        if not self.left <= moment.iteration < self.left + wide - 1 or moment.iteration == self.left > 0:
            self._show_from(moment.iteration - wide // 3, wide, total)

    def _show_from(self, left: int, wide: int, total: int | None) -> None:
        self.left = max(0, left if total is None else min(left, total - wide))

    def changed(self) -> None:
        """Build the rows anew, and ask for the part that is visible now."""
        self._shown = None
        moment = self._present
        marked = {*self._happened, moment, self.picked, *self._firsts()}
        self._marked = {cell for cell in marked if cell is not None}
        super().changed()
        self._ask()
        self._told()

    def _firsts(self) -> tuple[Cell, ...]:
        """Return the first cells of their kind in the run."""
        state, frame = self.state, self.frame
        if not self.shows_differences:
            return tuple(state.cells.firsts.values()) if state.cells is not None else ()
        first = state.first_difference
        if first is None or frame is None or first.layer not in frame.layers:
            return ()
        return (Cell(first.iteration or 0, frame.layers.index(first.layer)),)

    def _ask(self) -> None:
        if not self.size.width or not self.is_mounted:
            return
        first, count = self.columns()
        window = max(first - 1, 0), first + count - 1
        if window != self._asked:
            self._asked = window
            self.host.driver.adjust(ShowCells(window))
        listing, shown = self.listing(), self.cell
        if listing is None:
            return
        near = listing.operations_near(self.top, self.size.height)
        wanted = near if shown is None or shown.operation in near else (*near, shown.operation)
        if self._wanted is None or self._wanted[0].program is not listing.program or self._wanted[1] != wanted:
            self._wanted = listing, wanted
            self.host.driver.adjust(ShowValues("grid", listing.program, wanted))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        self.host.driver.adjust(ShowCells(None))
        self.host.driver.adjust(ShowValues("grid", None))
        self.host.driver.adjust(ShowRun(None))

    def on_resize(self, _event: events.Resize) -> None:
        """Another part is visible."""
        self._follow()
        self.changed()

    def notify_style_update(self) -> None:
        """Another theme."""
        self.paint.forget()
        self._pictures.forget()
        super().notify_style_update()

    # --- rows ----------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the title, and the iterations."""
        frame = self.frame
        if frame is None:
            return super().heading(width)
        room, total = self.size.height - 2, self.count(width)
        last = min(self.top + room, total)
        rows = f" · rows {self.top} to {last - 1} of {total}" if room < total else ""
        shown = f"{self.state.statistic}, shade by row"
        if self.state.statistic == FITTING:
            shown = "values, scale by row"
        if self.shows_differences:
            kind = "difference" if self.state.comparison is not None else "relative difference"
            shown = f"{kind}, shade by power of ten"
        self.note = f"{shown}{rows} "
        first, count = self.columns()
        now = -1 if self.state.is_far else frame.iteration or 0
        labels = axis(first, count, self.cell_width, now, width - self.label_width)
        titles = headings(columns(self.state), self.size.width) or [(" " * self.label_width, "")]
        head = super().heading(width)
        if self.state.is_far:
            which = far_title(self.state, width // 2)
            head = [spread([*head[0][:2], *which], [(self.note, "note")], width)]
        return [*head, [*overlaid(titles, "dim"), *labels]]

    def count(self, width: int) -> int:
        """Return as many as there are operations, and folded groups of them."""
        listing = self.listing()
        return 1 if listing is None else len(listing.entries)

    def row(self, index: int, width: int) -> Row:
        """Return one operation, or a folded group of them, over the visible iterations."""
        frame, moment, listing = self.frame, self.moment, self.listing()
        if frame is None or moment is None or listing is None:
            return [("  ", ""), (outside_text(self.state), "dim")]
        entry, chosen = listing.entries[index], self.cell
        shown = GridRow(self.state, self.look, frame, entry, None if chosen is None else chosen.operation)
        row = cells_of(columns(self.state), shown, self.size.width)
        part, wide = self._part(), self.cell_width
        codes, numbers = part.codes[index - self.top], part.numbers[index - self.top]
        pictures = self._pictures_of(entry, part)
        written = partial(statistic_text, program=frame.program, index=entry.indices[0])
        boxes = [
            self.paint.cell(code, wide, value, pictures[place] if pictures else [], written)
            for place, (code, value) in enumerate(zip(codes, numbers, strict=True))
        ]
        for cell in self._marked:
            column = cell.iteration - part.left
            if cell.operation in entry.indices and 0 <= column < part.columns:
                boxes[column] = self._marked_box(boxes[column], cell)
        return [*row, *chain.from_iterable(boxes)]

    def _pictures_of(self, entry: OperationEntry, part: GridPart) -> list[Row]:
        """Return the values of a row in the visible iterations as pictures; none where it is shown as one number."""
        cells = self.state.cells
        frame = self.frame
        if cells is None or frame is None or cells.program is not frame.program:
            return []
        if cells.statistic != FITTING or self.shows_differences or entry.is_folded:
            return []
        values, wide = cells.values.get(entry.indices[0]), self.cell_width
        if values is None:
            return []
        room = picture_width(wide)
        found: list[Row] = []
        if wide > 3:
            found = self._pictures.elements(values, part.left, part.columns, room, None, self.palette)
        if not any(found) and wide < NUMBERED:
            line = self._pictures.cells(values, part.left, part.columns, room, None, self.palette)
            found = [[] if one is None else [one] for one in line]
        return found

    def _marked_box(self, box: Row, cell: Cell) -> Row:
        """Return a cell with its mark: where there is room beside the picture or the number, else in its place."""
        air: Row = box[-1:] if self.cell_width > 3 else []
        parts = box[:-1] if air else box
        text = "".join(part for part, _ in parts)
        tone = parts[0][1]
        is_picture = len(parts) > 1 or (isinstance(tone, Style) and text.strip()[:1] in ("", *_HALVES))
        glyph, happened = "" if is_picture else text.strip(), self._happened.get(cell, "")
        if happened:
            glyph = glyph + happened if glyph in LETTERS and len(text) > 2 else glyph if glyph in LETTERS else happened
        is_moment = cell == self._present
        if is_moment:
            glyph, tone = glyph if glyph and glyph[0] not in _WEAK else GLYPHS["now"], "now"
        elif cell == self.picked:
            tone = "strong cursor"
        elif cell in self._firsts():
            tone = "badbg"
        elif happened and is_picture:
            tone = "edit"
        if text.strip()[-1:].isdigit() and len(text) >= NUMBERED - 1:  # the number stays, the mark stands before it
            lead = happened or ("" if is_picture else text[0].strip()) or (GLYPHS["now"] if is_moment else " ")
            if not is_picture:
                return [(f"{lead}{text[-6:]:>{len(text) - len(lead)}}", tone), *air]
            return [(f"{lead:1.1}", tone), *self._tinted(parts[:-1]), (parts[-1][0], tone), *air]
        if is_picture and len(text) > 2:  # the picture stays, but for a cell
            return [(f"{glyph or ' ':1.1}", tone), *self._tinted(parts), *air]
        return [(f"{glyph:^{len(text)}}"[: len(text)], tone), *air]

    def _tinted(self, picture: Row) -> Row:
        """Return a picture without its first cell, as that of a cell that is marked."""
        tokens = ((text, self.palette.tinted(own, _PICKED) if isinstance(own, Style) else own) for text, own in picture)
        return without_begin([*tokens])

    def _part(self) -> GridPart:
        """Return the visible cells."""
        left, columns = self.columns()
        room = max(self.size.height - 2, 1)
        key = left, columns, self.top, room
        if self._shown is None or self._shown[0] != key:
            listing, state, frame = self.listing(), self.state, self.frame
            program = None if frame is None else frame.program
            entries: tuple[OperationEntry, ...] = () if listing is None else listing.entries[self.top : self.top + room]
            apart = spread_cells(state) if self.shows_differences else None
            if self.shows_differences and state.comparison is not None:
                compared = state.comparison.grid
                fits = compared is not None and compared.program is program
                part = GridPart.of_differences(compared if fits else None, entries, left, columns)
            elif apart is not None:
                part = GridPart.of_spread(apart, entries, left, columns)
            else:
                cells = state.cells if state.cells is not None and state.cells.program is program else None
                part = GridPart.of_numbers(cells, entries, left, columns)
            self._shown = key, part
        return self._shown[1]

    # --- another view ---------------------------------------------------------------------------------------------

    def look_on(self, direction: int) -> None:
        """The next statistic; beside a reference or a branch the differences are one of them."""
        names = list(OVER_ITERATIONS)
        if self._has_differences:
            names.append(DIFFERENCE)
        now = DIFFERENCE if self.shows_differences else self.state.statistic
        self.post_line(f"statistic {names[(names.index(now) + direction) % len(names)]}")

    def show_statistic(self, name: str) -> bool:
        """True if it is one that this pane alone can show; its own cells are others from now on."""
        self._by_difference = name == DIFFERENCE
        self.changed()
        return self.shows_differences

    def pick_cell(self, down: int, across: int) -> bool:
        """Choose the cell so far from the chosen one, where the run stands elsewhere; False where it does not."""
        listing, cell, moment = self.listing(), self.cell, self.moment
        if not self.state.is_far or listing is None or cell is None or moment is None:
            return False
        row = max(0, min(listing.row_of.get(cell.operation, 0) + down, len(listing.entries) - 1))
        iteration = max(0, min(cell.iteration + across, moment.iteration))
        self.picked = Cell(iteration, listing.entries[row].indices[0])
        room = max(self.size.height - 2, 1)
        self.top = max(min(self.top, row), row - room + 1)
        wide = max((self.size.width - self.label_width) // self.cell_width, 1)
        if not self.left <= iteration < self.left + wide:
            self._show_from(iteration - wide // 2, wide, self._total())
        self.changed()
        return True

    @property
    def carried_addresses(self) -> str:
        """The addresses of what the loop carries that is looked at from elsewhere."""
        return carried_in_far_run(self.state, self.host.driver.compiled)

    @property
    def iteration_looked_at(self) -> tuple[Program, tuple[int, ...]] | None:
        """The body of the loop, and the iterations of the cell that is selected, or looked at from afar."""
        frame, cell, far = self.frame, self.cell, self.state.far
        if frame is None or cell is None or not frame.depth or (self.picked is None and not self.state.is_far):
            return None
        outer = far.outer if far is not None else [one.iteration for one in self.state.frames[1 : frame.depth]]
        return frame.program, (*(one for one in outer if one is not None), cell.iteration)

    def fold(self) -> str:
        """Unfold the group of the cell that is shown, or fold it; of a loop, look at its run in this iteration."""
        frame, cell = self.frame, self.cell
        if frame is None or cell is None:
            return "nothing is selected"
        if frame.layers[cell.operation].is_loop:
            self.post_line("loop-run in")
            return ""
        if not self.host.folding.toggle(frame.program, cell.operation):
            return nothing_inside(frame.layers[cell.operation])
        self.top = max(0, min(self.top, self.count(self.size.width) - (self.size.height - 2)))
        self.changed()
        return ""

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def zoom_by(self, by: int) -> None:
        """Wider or narrower cells."""
        self._zoom = max(-self._usual, min(self._zoom + by, len(WIDTHS) - 1 - self._usual))
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
        row, frame, listing = self.row_at(event.y), self.frame, self.listing()
        if row is None or frame is None or listing is None:
            return
        entry, at = listing.entries[row], event.x - self.gutter.left
        if entry.is_folded and event.chain == 2 and at < self.label_width:
            self.fold()
            return
        self.click_cell(at, entry.indices[0], is_second=event.chain == 2)

    def click_cell(self, at: int, operation: int, *, is_second: bool) -> None:
        """Select an operation in the iteration that stands in a column of the terminal; a second click goes there."""
        frame = self.frame
        if frame is None:
            return
        first, count = self.columns()
        column = (at - self.label_width) // self.cell_width
        iteration = first + column if 0 <= column < count else frame.iteration or 0
        self.picked = Cell(iteration, operation)
        if is_second:
            self.post_line("go-to-cell")
        elif self.state.frame is frame:
            self.post_line(f"select {operation}")
        self.changed()

    def _told(self) -> None:
        """Have those who show the selected cell, or stand below its columns, show it anew."""
        if not self.is_mounted:
            return
        for pane in self.screen.query(Pane):
            if pane is not self and pane.id in ("detail", "history", "picture", "value"):
                pane.changed()

    def unpick(self) -> bool:
        """Select nothing, or look at the run of the moment again; True if something was selected."""
        if self.picked is None and self.state.far is not None and self.state.far.is_chosen:
            if is_left_at_once(self.host.state, self.host.driver.compiled):
                return False
            self.post_line("loop-run out")
            return True
        had, self.picked = self.picked is not None, None
        self.changed()
        return had

    def go_line(self) -> str:
        """Return the line that goes to the selected cell; empty where that is the moment."""
        far = self.state.far
        if self.state.is_far:
            is_chosen = self.picked is not None or (far is not None and far.is_chosen)
            is_end = self.state.ending is not None and not is_chosen  # Enter leads to the last iteration
            return "" if self.cell is None or is_end else self._line_to(self.cell)
        return "" if self.picked is None or self.picked == self.moment else self._line_to(self.picked)

    @property
    def chosen_address(self) -> str:
        """The value of the cell that is looked at from afar, or selected in another iteration than the present one.

        A loop is named without its output, so that one can go into it.
        """
        looked_at, cell = self.iteration_looked_at, self.cell
        frame, moment = self.frame, self.moment
        if looked_at is None or frame is None or cell is None:
            return ""
        if not self.state.is_far and moment is not None and cell.iteration == moment.iteration:
            return ""
        body, (*outer, iteration) = looked_at
        full = frame.moment_address(cell.operation, self.host.driver.compiled)
        layer = frame.layers[cell.operation]
        around = iter((*outer, iteration))
        iterations = tuple(next(around, None) if one.is_loop else None for one in body.path)
        if layer.is_loop:
            return str(replace(address_in_run(full, body, iterations, None), port=None))
        return str(address_in_run(full, body, iterations[:-1], iteration))

    def seek_anomaly(self, *, backward: bool) -> str:
        """Return the line that goes to the next anomaly that is known, or difference; empty where there is none."""
        moment, comparison = self.moment, self.state.comparison
        cells = comparison.grid if self.shows_differences and comparison is not None else None
        if moment is None:
            return ""
        apart = spread_cells(self.state) if self.shows_differences else None
        found = None
        if cells is not None:
            found = cells.next_above(moment, backward=backward)
        elif apart is not None:
            begins = apart.next_different(*moment, backward=backward)
            found = None if begins is None else Cell(*begins)
        elif self.state.cells is not None:
            found = self.state.cells.anomaly(moment, backward=backward)
        return "" if found is None else self._line_to(found)

    def _line_to(self, cell: Cell) -> str:
        frame, far = self.frame, self.state.far
        if frame is None:
            return ""
        full = frame.moment_address(cell.operation, self.host.driver.compiled)
        if far is not None and self.state.is_far:
            iteration = cell.iteration if frame.program.path else None
            return f"goto {address_in_run(full, frame.program, far.outer, iteration)}"
        return f"goto {full}" if self.state.loop is None else f"goto {full}@{cell.iteration}"
