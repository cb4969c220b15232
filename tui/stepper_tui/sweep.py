"""The table of a sweep, in a terminal."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Input, Static

from stepper.errors import UsageError
from stepper.sweep.sweep_results import COLUMNS, Cell, Listed, SweepListing, SweepOutcome
from stepper_tui.paint.rows import clip_end, printable
from stepper_tui.theme import THEMES, Look, in_ascii

_WIDTHS = {
    "input": 6, "outcome": 12, "what": 10, "operation": 16, "iteration": 11, "iterations": 12, "name": 30, "type": 12,
    "text": 80,
}  # fmt: skip
_LONGEST = 200
_MARKS = {
    SweepOutcome.NOTHING: (" ", "dim"),
    SweepOutcome.STOPPED: ("!", "bold"),
    SweepOutcome.FINDING: ("!", "bold"),
    SweepOutcome.DIFFERS: ("#", "bold"),
}
"""A sign beside each outcome, so that colour alone says nothing; `x` for the others."""
_HINT = "filter: wkv   outcome=stopped   iteration>7"
_KEYS = "Enter open   < > sort   | filter   Esc takes the filter away, q leaves"


class SweepTableState(Struct):
    """State of the table, which lasts while an input is open: the order, the filter, and the input and column of the
    cursor. `trouble` is why the last input could not be opened.
    """

    sort: str = ""
    descending: bool = False
    filter: str = ""
    number: int = 0
    column: int = 0
    trouble: str = ""


class SweepApp(App[int]):
    """The table; it returns the number of the input to be opened, or None."""

    TITLE = "stepper sweep"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    SweepApp { background: $background; }
    #head { height: 1; padding: 0 1; background: $surface; color: $foreground; text-style: bold; }
    #rows { height: 1fr; background: $background; scrollbar-size-horizontal: 1; }
    SweepApp.-ascii #rows { scrollbar-size: 0 0; }
    #more { height: 2; padding: 0 1; color: $foreground 80%; }
    #filter { height: 1; border: none; padding: 0 1; background: $surface; }
    #filter:focus { border: none; }
    #answer { height: 1; padding: 0 1; color: $warning; }
    #keys { height: 1; padding: 0 1; background: $surface; color: $foreground 80%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("greater_than_sign", "sort(True)", show=False),
        Binding("less_than_sign", "sort(False)", show=False),
        Binding("vertical_line,slash", "filter", show=False),
        Binding("escape", "unfilter", show=False),
        Binding("q,ctrl+q,ctrl+c", "leave", show=False, priority=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
    ]

    def __init__(
        self, title: str, listing: SweepListing, view: SweepTableState, look: Look | None = None, *, light: bool = False
    ) -> None:
        super().__init__()
        self.listing, self.view, self.look = listing, view, look or Look()
        self._heading = title
        self._shown: list[Listed] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[1 if light else 0].name

    def compose(self) -> ComposeResult:
        """A heading, the table, more of the chosen row, the filter and the keys."""
        yield Static(id="head", markup=False)
        yield DataTable(id="rows", cursor_type="cell", fixed_columns=1)
        yield Static(id="more", markup=False)
        yield Input(self.view.filter, placeholder=_HINT, compact=True, id="filter")
        yield Static(id="answer", markup=False)
        yield Static(_KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Fill the table."""
        self.set_class(self.look.ascii, "-ascii")
        self._table.focus()
        self._fill()
        self.query_one("#answer", Static).update(printable(self.view.trouble))
        self.view.trouble = ""

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#rows", DataTable)

    # --- what is shown -------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        view, table = self.view, self._table
        try:
            self._shown = self.listing.shown(view.sort, view.filter, descending=view.descending)
        except UsageError as error:
            self.query_one("#answer", Static).update(printable(str(error)))
            return
        self.query_one("#answer", Static).update("")
        table.clear(columns=True)
        for name in COLUMNS:
            sign = "" if name != view.sort else " v" if view.descending else " ^"
            table.add_column(f"{name}{sign}", key=name, width=_WIDTHS[name])
        table.add_rows([_cells(row) for row in self._shown])
        self._head()
        place = next((at for at, row in enumerate(self._shown) if row.stored.number == view.number), 0)
        if self._shown:
            table.move_cursor(row=place, column=min(view.column, len(COLUMNS) - 1), animate=False)
        self._tell()

    def _head(self) -> None:
        shown, all = len(self._shown), len(self.listing.rows)
        part = f"{shown:,} of {all:,} inputs" if shown != all else f"{all:,} inputs"
        order = f", by {self.view.sort}" if self.view.sort else ""
        self.query_one("#head", Static).update(printable(f"{self._heading}: {part}{order}"))

    def _tell(self) -> None:
        chosen = self._chosen
        more = "no input is left by the filter; Esc takes it away" if self.listing.rows else "no input is done yet"
        if chosen is not None:
            row = chosen.stored.row
            ran = "; ".join(f"{one.path.removeprefix('model > ')}: {one.iterations:,}" for one in row.loops)
            more = f"{row.name}  {row.text or ran}"
        shown = clip_end(printable(more), 2 * max(self.size.width - 4, 20))
        self.query_one("#more", Static).update(in_ascii(shown) if self.look.ascii else shown)

    @property
    def _chosen(self) -> Listed | None:
        at = self._table.cursor_row
        return self._shown[at] if 0 <= at < len(self._shown) else None

    # --- what is done --------------------------------------------------------------------------------------------

    @on(DataTable.CellHighlighted)
    def _moved(self, event: DataTable.CellHighlighted) -> None:
        chosen = self._chosen
        if chosen is not None:
            self.view.number, self.view.column = chosen.stored.number, event.coordinate.column
        self._tell()

    @on(DataTable.CellSelected)
    def _opened(self, event: DataTable.CellSelected) -> None:
        if 0 <= event.coordinate.row < len(self._shown):
            self.view.number = self._shown[event.coordinate.row].stored.number
            self.exit(self.view.number)

    @on(DataTable.HeaderSelected)
    def _header(self, event: DataTable.HeaderSelected) -> None:
        name = COLUMNS[event.column_index]
        self._sort(name, descending=not self.view.descending if self.view.sort == name else False)

    def action_sort(self, descending: bool) -> None:
        """Sort by the column of the cursor; once more: as the inputs come."""
        name = COLUMNS[self._table.cursor_column]
        is_again = self.view.sort == name and self.view.descending == descending
        self._sort("" if is_again else name, descending=descending)

    def _sort(self, name: str, *, descending: bool) -> None:
        self.view.sort, self.view.descending = name, descending
        self._fill()

    def action_filter(self) -> None:
        """Type the filter."""
        self.query_one("#filter", Input).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if event.value != self.view.filter:
            self.view.filter = event.value
            self._fill()

    @on(Input.Submitted)
    def _filtered(self) -> None:
        self._table.focus()

    def action_unfilter(self) -> None:
        """Leave the filter; from the table take it away."""
        field = self.query_one("#filter", Input)
        if not field.has_focus:
            field.value = ""
        self._table.focus()

    def action_leave(self) -> None:
        """Leave without an input."""
        self.exit(None)

    def action_first(self) -> None:
        """Go to the first row."""
        self._table.cursor_coordinate = Coordinate(0, self._table.cursor_column)

    def action_last(self) -> None:
        """Go to the last row."""
        self._table.cursor_coordinate = Coordinate(max(len(self._shown) - 1, 0), self._table.cursor_column)


def _cells(row: Listed) -> list[Text]:
    mark, style = _MARKS.get(row.stored.row.outcome, ("x", "bold"))
    return [_cell(name, cell, mark, style) for name, cell in zip(COLUMNS, row.cells, strict=True)]


def _cell(name: str, cell: Cell, mark: str, style: str) -> Text:
    if name == "outcome":
        return Text(f"{mark} {cell}", style)
    if isinstance(cell, int):
        return Text(f"{cell:,}", justify="right")
    return Text("" if cell is None else printable(cell[:_LONGEST]), no_wrap=True, overflow="ellipsis")
