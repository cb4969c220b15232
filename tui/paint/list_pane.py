"""ListPane: a list with a chosen row, which keys and mouse move; what its keys do are lines for the prompt.

class Marks(ListPane[MarkView]):
    kind = "marks"
    def entries(self): return self.state.lists.marks
    def columns(self): return TableColumn("name", None, lambda mark, width: written(mark.name, width)),
    def name_of(self, mark): return mark.name          # stands for {row} in the keys of the pane
    def line_to_open(self, mark): return f"goto '{mark.name}"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual import events

from tui.paint.columns import TableColumn, cells_of, headings
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, overlaid, width_of, wrapped
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from tui.state import State

Item = TypeVar("Item")


class ListPane(Pane, Generic[Item]):
    """Rows of one kind of thing; the chosen one is lit. `follows`: the last row stays chosen while rows are added."""

    DEFAULT_CSS = "ListPane { height: 1fr; }"
    when_empty: ClassVar[str] = ""
    """A sentence in place of rows: how one gets some."""
    asked_when_empty: ClassVar[str] = ""
    """The line that Enter carries out where there are no rows; empty: none."""
    follows: ClassVar[bool] = False
    leads_to_moment: ClassVar[bool] = False
    """True: what is opened is a moment, which is then seen in place of the list."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.cursor = 0
        self.beside: Pane | None = None  # tells more of the chosen row

    # --- what a subclass says ------------------------------------------------------------------------------------

    def entries(self) -> Sequence[Item]:
        """Return the items."""
        raise NotImplementedError

    def columns(self) -> Sequence[TableColumn[Item]]:
        """Return the columns, without the first cell."""
        return ()

    def entry(self, item: Item, width: int) -> Row:
        """Return the row of an item, without the first cell."""
        return cells_of(self.columns(), item, width - 1)

    def name_of(self, item: Item) -> str:
        """Return the text for {row} in the keys of the pane."""
        return ""

    def line_to_open(self, item: Item) -> str:
        """Return the line that Enter or a double click carries out; empty for none."""
        return ""

    def footnotes(self, width: int) -> list[Row]:
        """Return rows below the list, which cannot be chosen."""
        return []

    # --- rows ----------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the title, and the names of the columns."""
        labels = headings(self.columns(), width - 1) if self.entries() else []
        return [*super().heading(width), *([[(" ", ""), *overlaid(labels, "dim")]] if labels else [])]

    def count(self, width: int) -> int:
        """Return the entries, and what stands below them."""
        return (len(self.entries()) or len(self._told(width))) + len(self.footnotes(width))

    def _told(self, width: int) -> list[Row]:
        return [[("  ", ""), (part, "dim")] for part in wrapped(self.when_empty, max(width - 4, 20)) or [""]]

    def row(self, index: int, width: int) -> Row:
        """Return one of them."""
        entries = self.entries()
        before = len(entries) or len(self._told(width))
        if index >= before:
            return self.footnotes(width)[index - before]
        if not entries:
            return self._told(width)[index]
        if index != self.cursor:
            return [(" ", ""), *self.entry(entries[index], width)]
        row: Row = [(GLYPHS["focus"], "accent"), *self.entry(entries[index], width)]
        row = [*row, (" " * max(width - width_of(row), 0), "")]
        return overlaid(row, "cursor")

    def update(self, state: State) -> None:
        """The chosen row stays, or the last one does."""
        at_end = self.cursor >= len(self.entries()) - 1
        self.state = state
        last = max(len(self.entries()) - 1, 0)
        self.cursor = last if self.follows and at_end else min(self.cursor, last)
        self._show_cursor()
        self.changed()

    # --- choosing ------------------------------------------------------------------------------------------------

    @property
    def chosen(self) -> Item | None:
        """The chosen entry; None of an empty list."""
        entries = self.entries()
        return entries[self.cursor] if self.cursor < len(entries) else None

    @property
    def chosen_name(self) -> str:
        """The text for {row}; empty where nothing can be chosen."""
        chosen = self.chosen
        return "" if chosen is None else self.name_of(chosen)

    def choose(self, index: int) -> None:
        """Choose a row, as near as there is one."""
        self.cursor = max(0, min(index, len(self.entries()) - 1))
        self._show_cursor()
        self.changed()
        if self.beside is not None:
            self.beside.changed()

    def move(self, to: str) -> None:
        """+N, -N, page, -page, first or last."""
        page = max(self._room() - 1, 1)
        ends = {"first": 0, "last": len(self.entries()), "page": self.cursor + page, "-page": self.cursor - page}
        self.choose(ends[to] if to in ends else self.cursor + int(to))

    def open_chosen(self) -> None:
        """Open the chosen row; of an empty list ask for the first."""
        chosen = self.chosen
        if chosen is None and self.asked_when_empty:
            self.post_line(self.asked_when_empty)
            return
        line = "" if chosen is None else self.line_to_open(chosen)
        if line:
            self.post_line(line)
            if self.leads_to_moment:
                self.post_line("view main")

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
        if index is None or index >= len(self.entries()):
            if event.chain >= 2 and not self.entries():
                self.open_chosen()
            return
        was = self.cursor
        self.choose(index)
        if event.chain >= 2:
            self.open_chosen()
        else:
            self.clicked(index, event.x, again=was == index)

    def clicked(self, index: int, x: int, *, again: bool) -> None:
        """A row was clicked at this column; `again`: it was chosen already."""


AnyList = ListPane[Any]
