"""Panes: what is painted into a part of a screen; lists of rows with a cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from msgspec import Struct
from textual import events
from textual.color import Color

from stepper_tui.paint.painter import PaintedWidget
from stepper_tui.paint.pictures import Palette
from stepper_tui.paint.rows import (
    Cell,
    Destination,
    Row,
    Token,
    cell_len,
    clip_end,
    link_in,
    overlaid,
    padded,
    spread,
    width_of,
)
from stepper_tui.state import State
from stepper_tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.engine.program import Program
    from stepper_tui.app import StepperApp


class Pane(PaintedWidget, can_focus=True):
    """A heading and rows. `note` stands at the right of the heading."""

    DEFAULT_CSS = "Pane { height: auto; padding: 0 1; background: $background; color: $foreground; }"
    host: StepperApp
    title: str = ""
    note: str = ""
    kind: ClassVar[str] = ""
    """How keys.py calls the pane."""
    shows_running: ClassVar[bool] = False
    """True if it follows a movement under way, thirty times a second."""
    follows_selection: ClassVar[bool] = True
    """True if it shows anything of the selected operation; one that does not is spared its changes."""
    help_text: ClassVar[str] = ""
    """Content of the pane, for `?`: one line of text a line."""

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host.look, id=id)
        self.host = host
        self.state = State()
        self.top = 0
        self._rows: tuple[int, list[Row]] | None = None
        self._colours: dict[object, Color] = {}
        self._tiles: dict[object, Cell] = {}
        self._palette: Palette | None = None

    @property
    def is_typing(self) -> bool:
        """True if a line is being typed in the pane, so that keys are letters."""
        return False

    # --- what a subclass says ------------------------------------------------------------------------------------

    def rows(self, width: int) -> list[Row]:
        """Return all rows below the heading, for a pane of few."""
        return []

    def count(self, width: int) -> int:
        """Return how many rows there are below the heading."""
        return len(self._all(width))

    def row(self, index: int, width: int) -> Row:
        """Return one of the rows below the heading."""
        return self._all(width)[index]

    def heading(self, width: int) -> list[Row]:
        """Return the rows above the others, which do not scroll."""
        if not self.title:
            return []
        mark: Cell = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        title: Cell = (self.title, "title-on" if self.has_focus else "title")
        note = clip_end(self.note, max(width - cell_len(self.title) - 2, 0))
        return [spread([mark, title], [(note, "note")] if note else [], width)]

    def update(self, state: State) -> None:
        """The moment, the selection or anything else has changed. A subclass may look at the old `self.state` first."""
        self.state = state
        self.changed()

    def renew(self, state: State) -> None:
        """Update it where what it shows has changed; a fault in it keeps no other pane from showing."""
        try:
            if not self.follows_selection and state.differs_in_selection_alone(self.state):
                self.state = state
                return
            self.update(state)
        except Exception as error:
            self.report_fault(error)

    @property
    def name_for_tab(self) -> str:
        """The word for the pane where Tab leads to it."""
        return self.title or self.kind

    @property
    def chosen_address(self) -> str:
        """The address for {op} in a line, where the pane has a cursor of its own on a value; else empty."""
        return ""

    @property
    def iteration_looked_at(self) -> tuple[Program, tuple[int, ...]] | None:
        """The body of the loop that the cursor is in, and the iterations from the outside inwards; None as above."""
        return None

    @property
    def chosen_array(self) -> Array | None:
        """The value at that address, where the pane knows it of a moment of its own; else None."""
        return None

    @property
    def chosen_element(self) -> tuple[int, ...] | None:
        """The element that stands out in that value, where the pane knows it; else None."""
        return None

    # --- what the base does --------------------------------------------------------------------------------------

    def _all(self, width: int) -> list[Row]:
        if self._rows is None or self._rows[0] != width:
            self._rows = width, self.rows(width)
        return self._rows[1]

    def changed(self) -> None:
        """Build the rows anew, and paint those that are others than before."""
        self._rows = None
        super().changed()

    def line_count(self, width: int) -> int:
        """Return how many rows there are, with those of the heading."""
        return len(self.heading(width)) + self.count(width)

    def notify_style_update(self) -> None:
        """Paint with another theme, or another focus."""
        super().notify_style_update()
        self._rows = None
        self._colours.clear()
        self._tiles.clear()
        self._palette = None

    def on_focus(self) -> None:
        """The heading shows it."""
        self.changed()

    def on_blur(self) -> None:
        """The heading shows it."""
        self.changed()

    def scroll_rows(self, by: int) -> None:
        """Show rows further down, or up."""
        width, height = self.size
        room = height - len(self.heading(width))
        self.top = max(0, min(self.top + by, self.count(width) - room))
        self.changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel, down."""
        self.wheel(event, 1)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel, up."""
        self.wheel(event, -1)
        event.stop()

    def wheel(self, _event: events.MouseEvent, way: int) -> None:
        """The wheel scrolls: down (1) or up (-1). A subclass may do something else; it has no other handler for it."""
        self.scroll_rows(3 * way)

    def destination_under(self, event: events.MouseEvent) -> Destination | None:
        """Return where the link under the mouse leads."""
        place = event.get_content_offset(self)
        if place is None:
            return None
        lines = self.visible_lines(*self.size)
        return link_in(lines[place.y], place.x) if place.y < len(lines) else None

    def on_click(self, event: events.Click) -> None:
        """A click on a button presses its key, one on a link that wants no second one carries it out."""
        target = self.destination_under(event)
        if target is not None and (target.key or target.at_once):
            event.stop()
            if target.key:
                self.app.simulate_key(target.key)
            else:
                self.post_line(target.line)

    def post_line(self, line: str) -> None:
        """Have a line carried out as if it were typed at the prompt."""
        self.host.perform(line)

    def row_at(self, y: int) -> int | None:
        """Return the index of the row in a line of the pane; None in the heading and below the last."""
        width = self.size.width
        index = y - len(self.heading(width)) + self.top
        return index if self.top <= index < self.count(width) else None

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the heading, and those of the rows that are to be seen, which may change what the heading says."""
        count, heading = self.count(width), self.heading(width)
        end = min(self.top + height - len(heading), count)
        lines = [*heading, *(self.row(index, width) for index in range(self.top, end))][:height]
        return lines + [[] for _ in range(height - len(lines))]

    # --- colours that are computed -------------------------------------------------------------------------------

    def colour(self, name: str) -> Color:
        """Return a colour of the theme."""
        found = self._colours.get(name)
        if found is None:
            found = self._colours[name] = Color.parse(self.app.theme_variables[name])
        return found

    @property
    def palette(self) -> Palette:
        """The colours of pictures of values."""
        if self._palette is None:
            self._palette = Palette(self.colour, self.look)
        return self._palette


class BarPane(Pane, can_focus=False):
    """A single line across the screen."""

    DEFAULT_CSS = "BarPane { height: 1; background: $surface; }"


Item = TypeVar("Item")


class TableColumn(Struct, Generic[Item], frozen=True):
    """A column. `cells` writes an item into exactly so many cells.

    `width` is in cells, of the width of the whole table where it depends on that (0: the column is not shown); None
    takes what the others leave. `right`: the heading stands at the right.
    """

    heading: str
    width: int | Callable[[int], int] | None
    cells: Callable[[Item, int], Row]
    right: bool = False


def widths_of(columns: Sequence[TableColumn[Item]], width: int, least: int = 10) -> list[int]:
    """Return how wide each column of a table is; `least` is for one that takes what the others leave."""
    fixed = [one.width(width) if callable(one.width) else one.width for one in columns]
    rest = max(width - sum(cells for cells in fixed if cells is not None), least)
    return [rest if cells is None else cells for cells in fixed]


def headings(columns: Sequence[TableColumn[Item]], width: int) -> Row:
    """Return the line above a table; empty if no column has a heading."""
    if not any(one.heading for one in columns):
        return []
    shown = zip(columns, widths_of(columns, width), strict=True)
    return [(padded(one.heading, cells, right=one.right), "") for one, cells in shown if cells]


def cells_of(columns: Sequence[TableColumn[Item]], item: Item, width: int) -> Row:
    """Return the row of an item."""
    shown = zip(columns, widths_of(columns, width), strict=True)
    return [cell for one, cells in shown if cells for cell in one.cells(item, cells)]


def written(text: str, width: int, tone: Token = "", *, right: bool = False) -> Row:
    """Return a text in exactly so many cells."""
    return [(padded(text, width, right=right), tone)]


class ListPane(Pane, Generic[Item]):
    """Rows of one kind of thing; the chosen one is lit."""

    DEFAULT_CSS = "ListPane { height: 1fr; }"
    cursor = 0

    # --- what a subclass says ------------------------------------------------------------------------------------

    def entries(self) -> Sequence[Item]:
        """Return the items."""
        raise NotImplementedError

    def columns(self) -> Sequence[TableColumn[Item]]:
        """Return the columns, without the first cell."""
        return ()

    def line_to_open(self, item: Item) -> str:
        """Return the line that Enter or a double click carries out; empty for none."""
        return ""

    # --- rows ----------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the title, and the names of the columns."""
        labels = headings(self.columns(), width - 1) if self.entries() else []
        return [*super().heading(width), *([[(" ", ""), *overlaid(labels, "dim")]] if labels else [])]

    def count(self, width: int) -> int:
        """Return how many entries there are."""
        return len(self.entries())

    def row(self, index: int, width: int) -> Row:
        """Return one of them."""
        cells = cells_of(self.columns(), self.entries()[index], width - 1)
        if index != self.cursor:
            return [(" ", ""), *cells]
        row: Row = [(GLYPHS["focus"], "accent"), *cells]
        row = [*row, (" " * max(width - width_of(row), 0), "")]
        return overlaid(row, "cursor")

    def update(self, state: State) -> None:
        """The chosen row stays, or the last one does."""
        self.state = state
        self.cursor = min(self.cursor, max(len(self.entries()) - 1, 0))
        self._show_cursor()
        self.changed()

    # --- choosing ------------------------------------------------------------------------------------------------

    @property
    def chosen(self) -> Item | None:
        """The chosen entry; None of an empty list."""
        entries = self.entries()
        return entries[self.cursor] if self.cursor < len(entries) else None

    def choose(self, index: int) -> None:
        """Choose a row, as near as there is one."""
        self.cursor = max(0, min(index, len(self.entries()) - 1))
        self._show_cursor()
        self.changed()

    def move(self, to: str) -> None:
        """+N, -N, page, -page, first or last."""
        page = max(self._room() - 1, 1)
        ends = {"first": 0, "last": len(self.entries()), "page": self.cursor + page, "-page": self.cursor - page}
        self.choose(ends[to] if to in ends else self.cursor + int(to))

    def open_chosen(self) -> None:
        """Open the chosen row."""
        chosen = self.chosen
        if chosen is not None and (line := self.line_to_open(chosen)):
            self.post_line(line)

    def _room(self) -> int:
        return max(self.size.height - len(self.heading(self.size.width)), 1)

    def _show_cursor(self) -> None:
        room = self._room()
        if self.size.height:
            top = min(self.top, self.cursor, max(self.count(self.size.width) - room, 0))
            self.top = max(top, self.cursor - room + 1, 0)

    def on_resize(self, event: events.Resize) -> None:
        """The chosen row stays in sight."""
        self._show_cursor()
        super().on_resize(event)

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click chooses, a second one opens."""
        place = event.get_content_offset(self)
        index = None if place is None else self.row_at(place.y)
        if index is None:
            return
        self.choose(index)
        if event.chain >= 2:
            self.open_chosen()
        else:
            self.clicked(index)

    def clicked(self, index: int) -> None:
        """A row was clicked."""
