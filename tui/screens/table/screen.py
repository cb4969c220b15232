"""The table on a screen of its own, beside it the column of the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.app import ComposeResult

from stepper.debug.table.columns import SheetSort
from stepper.debug.table.sheets import NON_FINITE
from tui.paint.painter import Horizontal, Vertical
from tui.paint.pane import Pane
from tui.screens.base import DebugScreen, ScreenHost
from tui.screens.table.column import LEAST_UNDER, LEAST_WIDE, ColumnPane
from tui.screens.table.pane import TableLine, TablePane
from tui.screens.table.topic import TableTopic
from tui.screens.timeline.bar import TimelineBar

_BESIDE: Final = 146
"""Columns of the terminal from which on there is room for the column of the cursor, however many the table has."""
_COLUMN: Final = 52
_LEAST_ROWS: Final = 24
"""Columns that it takes beside a table of few, and rows of the terminal from which on it does."""

_TALL: Final = 42
"""Rows from which on there is room for the timeline."""
_TIMELINE: Final = 7
_AROUND: Final = 15
_MOST_UNDER: Final = 36
"""Rows of the terminal around those of a table, and the most for the column below it."""


class TableScreen(DebugScreen):
    """Values over the iterations of a loop as a table."""

    DEFAULT_CSS = """
    TableScreen #rows { width: 1fr; }
    TableScreen #column { display: none; margin-top: 0; }
    TableScreen.-beside #column { display: block; }
    TableScreen.-under #parts { layout: vertical; }
    TableScreen.-under #rows { height: 1fr; }
    TableScreen.-under #column {
        display: block; width: 1fr; border-left: none; border-top: solid $foreground 14%; padding-left: 1;
    }
    TableScreen.-under.-ascii #column { border-top: ascii $foreground 14%; }
    TableScreen #timeline { display: none; }
    TableScreen.-tall #timeline { display: block; }
    TableScreen.-ascii #timeline { border-top: ascii $foreground 14%; }
    """
    view_name = "table"

    def __init__(self, host: ScreenHost, text: str = "") -> None:
        """Show these values, from the iteration of one or the moment on; without any what the loop here carries."""
        super().__init__(host)
        self.text = text
        self.topic = TableTopic(host.driver, text, self.repaint, self._say)
        self._table = TablePane(host, self.topic, id="table")
        self._line = TableLine(host, self.topic, id="line")
        self._column = ColumnPane(host, self.topic, id="column")

    def body(self) -> ComposeResult:
        """The table over its line, and the column beside it."""
        with Horizontal(id="parts"):
            with Vertical(id="rows"):
                yield self._table
                yield self._line
            yield self._column.add_class("rule")

    def below(self) -> ComposeResult:
        """The timeline, where it has room."""
        yield TimelineBar(self.host, id="timeline")

    def first_pane(self) -> Pane:
        """The table has the focus."""
        return self._table

    def on_mount(self) -> None:
        """Have it read."""
        super().on_mount()
        self.topic.open()

    def fit(self, width: int, height: int) -> None:
        """The column of the cursor where it has room: below a table of few rows, else beside it."""
        is_small = height >= _LEAST_ROWS and len(self.topic.shown) > 0 and self._table.whole_width + _COLUMN <= width
        view = self.topic.view
        around = _AROUND + (_TIMELINE if height >= _TALL else 0) + self.answer_rows
        free = 0 if view is None or not view.complete else height - around - view.total
        is_under = width >= LEAST_WIDE and free >= LEAST_UNDER and not self.topic.is_none
        is_beside = not is_under and (width >= _BESIDE or is_small)
        self._column.styles.height = min(free, _MOST_UNDER) if is_under else "1fr"
        self.update_classes({"-beside": is_beside, "-under": is_under, "-tall": height >= _TALL})

    def repaint(self) -> None:
        """Something is known, or chosen."""
        if self.is_ready and self.is_attached:
            self.fit(*self.app.size)
            for pane in (self._table, self._line, self._column):
                pane.changed()
            self.show_keys()

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """The column of the cursor gives way to an answer, that the rows stay."""
        is_put = super().put_card(title, lines)
        self.repaint()
        return is_put

    def close_card(self) -> bool:
        """Close an answer, or a bucket that was opened."""
        return super().close_card() or self.topic.close_bucket()

    def kept(self) -> dict[str, str | int]:
        """Return the values, how they are sorted and filtered, and what is hidden by hand."""
        level = self.topic.levels[0]
        found: dict[str, str | int] = {"values": level.text, "filter": level.filter}
        found["hidden"] = ",".join(map(str, sorted(level.hidden)))
        if level.sort is not None:
            found |= {"sort": level.sort.column, "descending": int(level.sort.descending)}
        return found

    def put_kept(self, kept: Mapping[str, object]) -> None:
        """Show these values in this way."""
        level, sort = self.topic.levels[0], kept.get("sort")
        texts = {name: kept.get(name) for name in ("values", "filter", "hidden")}
        values, filter, hidden = (text if isinstance(text, str) else "" for text in texts.values())
        level.text, level.filter = values, filter
        level.hidden = {int(one) for one in hidden.split(",") if one.isdecimal()}
        if isinstance(sort, int) and sort >= 0:
            level.sort = SheetSort(sort, descending=bool(kept.get("descending")))

    def put_answer(self, text: str, tone: str) -> None:
        """After a fault no answer is to be expected."""
        super().put_answer(text, tone)
        if tone == "bad":
            self.topic.is_expected = False

    @property
    def awaits_answer(self) -> bool:
        """True until the first rows are here, and while the cell of the cursor is looked up."""
        return self.topic.is_expected

    def own_line(self, line: str) -> str:
        """Let `save FILE` write the table."""
        words = line.split()
        return f"table-save {words[1]}" if len(words) == 2 and words[0] == "save" else super().own_line(line)

    def words_behind(self) -> Mapping[str, Sequence[str]]:
        """Return the columns, and what else can be sought in them."""
        view = self.topic.view
        names = [] if view is None else [one.name for one in view.columns]
        sought = [*names, "nan", "inf", NON_FINITE]
        return {
            "table-search": sought,
            "filter": sought,
            "table-sort": [f"{way} {name}" for way in ("down", "up") for name in names],
            "save": ["table.csv", "table.npy"],
        }

    def _say(self, text: str, tone: str) -> None:
        self.put_answer(text, tone)
