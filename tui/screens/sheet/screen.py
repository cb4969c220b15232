"""The sheet on a screen, beside it, or below, the inspector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.app import ComposeResult

from stepper.debug.table.columns import SheetSort
from stepper.debug.table.row_sets import RowSet
from stepper.debug.table.sheets import NON_FINITE
from stepper.errors import UsageError
from tui.paint.painter import Horizontal, Vertical
from tui.paint.pane import Pane
from tui.screens.base import DebugScreen, ScreenHost
from tui.screens.sheet.inspector import Inspector
from tui.screens.sheet.model import SheetModel
from tui.screens.sheet.pane import SheetPane
from tui.screens.sheet.questions import OpenSheet
from tui.worker.requests import ShowOverview

if TYPE_CHECKING:
    from stepper.engine.program import Program
    from tui.screens.overview.loop_body import LoopBody

_BESIDE: Final = 110
"""Columns of the terminal from which on the inspector stands beside the sheet."""
_BELOW: Final = 9
"""Lines of the inspector below it."""
_FIRST: Final = OpenSheet(None)
_LEAST_BODY: Final = 11
"""Lines below the rows from which on their graph is drawn there."""


class SheetScreen(DebugScreen):
    """Values over the iterations of a loop."""

    DEFAULT_CSS = """
    SheetScreen #rows { width: 1fr; }
    SheetScreen.-below #rows { height: 1fr; }
    SheetScreen #body { height: 1fr; border-top: solid $foreground 14%; margin-top: 0; }
    SheetScreen.-ascii #body { border-top: ascii $foreground 14%; }
    SheetScreen.-below #parts { layout: vertical; }
    SheetScreen.-below #inspector { width: 1fr; border-left: none; border-top: solid $foreground 14%; }
    SheetScreen.-below.-ascii #inspector { border-top: ascii $foreground 14%; }
    """
    view_name = "sheet"

    def __init__(self, host: ScreenHost, first: OpenSheet = _FIRST) -> None:
        """Show the rows that are asked for; by default what the loop carries in which the run stands."""
        super().__init__(host)
        self.model = SheetModel(host.driver, self.repaint, self._say, first)
        self._sheet = SheetPane(host, self.model, id="sheet")
        self._body: LoopBody | None = None
        self._shown: tuple[Program | None, int | None] = None, None
        self._inspector = Inspector(host, self.model, id="inspector")

    def body(self) -> ComposeResult:
        """The sheet and the inspector."""
        with Horizontal(id="parts"):
            with Vertical(id="rows"):
                yield self._sheet
            yield self._inspector.add_class("rule")

    def first_pane(self) -> Pane:
        """The sheet has the focus."""
        return self._sheet

    def on_mount(self) -> None:
        """Have it read."""
        super().on_mount()
        self.host.driver.adjust(ShowOverview(True, self.host.runs is not False))
        self.model.open()

    def fit(self, width: int, height: int) -> None:
        """The inspector beside the sheet, on a narrow terminal below it."""
        is_below = width < _BESIDE
        self._inspector.styles.height = _BELOW if is_below else "1fr"
        self._inspector.styles.width = "1fr" if is_below else 68 if width >= 190 else 50 if width >= 150 else 42
        self.update_classes({"-below": is_below})
        self._share_room()

    def _share_room(self) -> None:
        """Draw the graph of the rows where they leave room."""
        frame, room = self.model.frame, self.query_one("#rows").size.height
        needed = self._sheet.line_count(self._sheet.size.width) + 1
        has_room = frame is not None and room - needed >= _LEAST_BODY
        if has_room and self._body is None:
            from tui.screens.overview.loop_body import LoopBody

            self._body = LoopBody(self.host, self._program, layer=lambda: self._shown[1], id="body")
            self.adopt(self._body, self.query_one("#rows"))
        if self._body is not None:
            self._body.display = has_room
            shown = self._program(), self.model.layer_here
            if has_room and shown != self._shown:
                self._shown = shown
                self._body.update(self.host.state)
        self._sheet.styles.height = needed if has_room else "1fr"

    def _program(self) -> Program | None:
        return None if self.model.frame is None else self.model.frame.program

    def repaint(self) -> None:
        """Something is known, or chosen."""
        if self.is_ready and self.is_attached:
            self._share_room()
            self._sheet.changed()
            self._inspector.changed()
            self.show_keys()

    def come_out(self) -> bool:
        """Come out of the loop, the If or the tensor."""
        return self.model.go_out()

    def kept(self) -> dict[str, str | int]:
        """Return which rows are shown, and how they are filtered and ordered."""
        found, level = self.model.found, self.model.levels[0]
        if found is None:
            return {}
        is_named = found.question.rows is RowSet.ELEMENTS
        kept: dict[str, str | int] = {"filter": level.filter, "values": found.question.address if is_named else ""}
        kept["rows"] = str(found.question.rows)
        if level.sort is not None:
            kept |= {"sort": level.sort.column, "descending": int(level.sort.descending)}
        return kept

    def put_kept(self, kept: Mapping[str, object]) -> None:
        """Show these values in this way."""
        model, sort, rows = self.model, kept.get("sort"), kept.get("rows")
        values, filter = (text if isinstance(text, str) else "" for text in (kept.get("values"), kept.get("filter")))
        is_set = isinstance(rows, str) and rows in (RowSet.ALL, RowSet.WATCHED)
        model.first = OpenSheet(None, RowSet(str(rows)) if is_set else RowSet.CARRIED, values)
        model.level.filter = filter
        if isinstance(sort, int) and sort >= 0:
            model.level.sort = SheetSort(sort, descending=bool(kept.get("descending")))

    def put_answer(self, text: str, tone: str) -> None:
        """After a fault no answer is to be expected."""
        super().put_answer(text, tone)
        if tone == "bad":
            self.model.is_expected = False

    @property
    def awaits_answer(self) -> bool:
        """True until the first rows are here, and while the cell of the cursor is looked up."""
        return self.model.is_expected

    def lines_before(self, text: str) -> tuple[str, ...]:
        """Make an edit in the iteration of the cursor, where its value is computed."""
        from stepper.commands.edits import edited_value  # loaded with the first line that is typed
        from stepper.commands.session import command_called

        word, _, rest = text.partition(" ")
        try:
            is_edit = command_called(word).name == "set"
        except UsageError:  # the answer to the line will tell
            return ()
        found, cell = edited_value(rest.strip()) if is_edit else None, self.model.inspected
        if found is None or cell is None or found.levels or found.iterations is not None:
            return ()
        address = replace(cell.address, operation=found.operation, port=found.port, index=())
        return (f"goto {address}",)

    def own_line(self, line: str) -> str:
        """Let `save FILE` write the rows."""
        words = line.split()
        return f"sheet-save {words[1]}" if len(words) == 2 and words[0] == "save" else super().own_line(line)

    def words_behind(self) -> Mapping[str, Sequence[str]]:
        """Return the rows, and what else can be sought in them."""
        view = self.model.view
        names = [] if view is None else [one.name for one in view.columns]
        sought = [*names, "nan", "inf", NON_FINITE]
        return {
            "sheet-search": sought,
            "filter": sought,
            "sheet-sort": [f"{way} {name}" for way in ("down", "up") for name in names],
            "rows": [str(one) for one in RowSet],
            "save": ["sheet.csv", "sheet.npy"],
        }

    def _say(self, text: str, tone: str) -> None:
        self.put_answer(text, tone)
