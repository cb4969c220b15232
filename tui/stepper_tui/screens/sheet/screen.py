"""The sheet on a screen, beside it, or below, the inspector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.app import ComposeResult

from stepper.debug.overview.overview_facts import RunState
from stepper.debug.table.columns import SheetSort
from stepper.debug.table.row_sets import RowSet
from stepper.debug.table.sheets import NON_FINITE
from stepper.errors import UsageError
from stepper_tui.paint.painter import Horizontal, Vertical
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import expression_name, layer_name, printable
from stepper_tui.screens.base import DebugScreen, TopBar
from stepper_tui.screens.sheet.headline import Headline
from stepper_tui.screens.sheet.inspector import Inspector
from stepper_tui.screens.sheet.model import SheetModel
from stepper_tui.screens.sheet.pane import SheetPane
from stepper_tui.screens.sheet.questions import OpenSheet
from stepper_tui.state import GoOnWithOverview, ShowOverview

if TYPE_CHECKING:
    from stepper.debug.overview.overview_facts import Overview
    from stepper.engine.program import Program
    from stepper_tui.app import StepperApp
    from stepper_tui.screens.graph.pane import BodyOfRows
    from stepper_tui.state import State
    from stepper_tui.worker.driver import Driver

_BESIDE = 110
"""Columns of the terminal from which on the inspector stands beside the sheet."""
_BELOW = 9
"""Lines of the inspector below it."""
_BY_ITERATION = ("iter", "finish", "reverse-finish", "first", "last")
"""Movements that leave the cursor in its row."""
_FROM_THE_CURSOR = frozenset(
    (
        *("next", "reverse-next", "step", "reverse-step", "finish", "reverse-finish", "iter", "to-anomaly"),
        *("reverse-to-anomaly", "explain", "mark", "stats", "watch", "where", "info", "A", "diff"),
    )
)
"""Commands that go on from the moment of the cursor, or speak of it."""
_IF_MOVED = ("continue", "reverse-continue", "until")
"""The same where the cursor was moved; else they go on from where the run stands."""
_LEFT = (RunState.NOT_RUN, RunState.PAUSED, RunState.OUT_OF_TIME, RunState.OUT_OF_MEMORY)
"""The run behind the sheet was left there: it continues with `continue`."""
_LEAST_BODY = 11
"""Lines below the rows from which on their graph is drawn there."""
_SHORT_RUN = 0.1
"""Seconds that the screen waits for the end of a run before it draws the graph."""


class SheetScreen(DebugScreen):
    """Values over the iterations of a loop."""

    DEFAULT_CSS = """
    SheetScreen #parts { height: 1fr; border-top: solid $foreground 14%; }
    SheetScreen.-ascii #parts { border-top: ascii $foreground 14%; }
    SheetScreen.-short #parts { border-top: none; }
    SheetScreen #rows { width: 1fr; }
    SheetScreen.-below #rows { height: 1fr; }
    SheetScreen #body { height: 1fr; border-top: solid $foreground 14%; margin-top: 0; }
    SheetScreen.-ascii #body { border-top: ascii $foreground 14%; }
    SheetScreen.-below #parts { layout: vertical; }
    SheetScreen.-below #inspector { width: 1fr; border-left: none; border-top: solid $foreground 14%; }
    SheetScreen.-below.-ascii #inspector { border-top: ascii $foreground 14%; }
    """
    view_name = "sheet"
    _kept: OpenSheet | None = None

    def __init__(self, host: StepperApp) -> None:
        """Show what the loop carries in which the run stands."""
        super().__init__(host)
        self.model = SheetModel(host, self.repaint, lambda: self._inspector.changed(), self.put_answer)
        self._headline = Headline(host, self.model, id="headline")
        self._sheet = SheetPane(host, self.model, id="sheet")
        self._body: BodyOfRows | None = None
        self._shown: tuple[Program | None, int | None] = None, None
        self._inspector = Inspector(host, self.model, id="inspector")
        self._opened: tuple[Driver, OpenSheet] | None = None
        self._known: tuple[int, bool] = 0, False
        self._is_due, self._is_running, self._has_begun = False, False, host.runs is False

    def body(self) -> ComposeResult:
        """The sheet and the inspector."""
        yield self._headline
        with Horizontal(id="parts"):
            with Vertical(id="rows"):
                yield self._sheet
            yield self._inspector.add_class("rule")

    def first_pane(self) -> Pane:
        """The sheet has the focus."""
        return self._sheet

    def show(self, state: State) -> None:
        """The first picture of a run has its rows read; after an edit they are those that it has changed."""
        driver = self.host.driver
        if state.view is not None and driver.is_open and (self._opened is None or self._opened[0] is not driver):
            first = OpenSheet(None) if self._opened is None or self._opened[0] is not None else self._opened[1]
            self._opened, self._known = (driver, first), (0, state.is_edited)
            driver.adjust(ShowOverview(True, self.host.runs is not False))
            self.model.open(self._kept or first)
            self._kept = None
        super().show(state)
        self._show_changes(state)
        self._births(state.overview)
        self.model.findings_known(state.lists.findings)

    def _show_changes(self, state: State) -> None:
        """After an edit the rows are those that it has changed, beside a reference from the first that differs on."""
        spread = None if state.a is None else state.a.spread
        first = spread.first if spread is not None and spread.is_reference else None
        differs = state.is_edited or first is not None
        if self._opened is None or differs == self._known[1]:
            return
        self._known = self._known[0], differs
        if state.is_edited and state.a is not None:
            self.model.show_rows(RowSet.CHANGED, lambda: None)
        elif first is not None:
            self.model.go_to_difference(first[0])

    def grew(self, overview: Overview) -> None:
        """More is known of the whole run."""
        if self.is_ready:
            self._births(overview)
            self.query_one("#top", TopBar).update(self.host.state)
            self._headline.update(self.host.state)
            self._sheet.show_overview(self.host.state)
            if not self._has_begun and (overview.state is not RunState.RUNNING or overview.seconds > _SHORT_RUN):
                self._has_begun = True
                self.repaint()

    def _births(self, overview: Overview | None) -> None:
        count = 0 if overview is None else len(overview.births)
        if overview is not None and self._is_running and overview.state is not RunState.RUNNING:
            self.model.look_again()
        self._is_running = overview is not None and overview.state is RunState.RUNNING
        has_rows = self._opened is not None and self.model.found is not None
        if overview is not None and count != self._known[0] and has_rows:
            self._known = count, self._known[1]
            self.model.births_known(overview.births)

    def run_moved(self, command: str) -> None:
        """Put the cursor where the run stands."""
        self.model.run_moved(self.host.state, by_iteration=command in _BY_ITERATION)

    def path(self) -> list[str]:
        """Return the loops around what is shown, with the iterations that are chosen of the outer ones."""
        model, view = self.model, self.model.view
        if view is None:
            return []
        names = list[str]()
        for frame in model.path[1:]:
            depth = len(frame.program.path) - 2
            around = view.outer[depth] if 0 <= depth < len(view.outer) else None
            if names and around is not None:
                names[-1] += f" @{around}"
            names.append(printable(layer_name(frame.program.path[-1])))
        if self._sheet.found_rows is RowSet.ELEMENTS:
            names.append(expression_name(view.topic.values[0].title))  # it may have no columns yet
        return names

    def fit(self, width: int, height: int) -> None:
        """The inspector beside the sheet, on a narrow terminal below it."""
        is_below = width < _BESIDE
        self._inspector.styles.height = _BELOW if is_below else "1fr"
        self._inspector.styles.width = "1fr" if is_below else 68 if width >= 190 else 54 if width >= 150 else 44
        self.update_classes({"-below": is_below})
        self._share_room()

    def _share_room(self) -> None:
        """Draw the graph of the rows where they leave room."""
        frame, room = self.model.frame, self.query_one("#rows").size.height
        needed = self._sheet.lines_wanted + 1
        has_room = frame is not None and room - needed >= _LEAST_BODY
        if has_room and self._body is None and not self._has_begun:
            return  # the run behind the sheet comes first
        if has_room and self._body is None:
            from stepper_tui.screens.graph.pane import BodyOfRows

            self._body = BodyOfRows(self.host, self._program, lambda: self._shown[1], id="body")
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
        """Something is known, or chosen: paint it once, however much of it there is at a time."""
        if not self._is_due and self.is_attached:
            self._is_due = self.call_later(self._repaint)

    def _repaint(self) -> None:
        self._is_due = False
        if self.is_ready and self.is_attached:
            self._births(self.host.state.overview)  # which may have been known before there were rows
            self._headline.changed()
            self._share_room()
            self._sheet.changed()
            self._inspector.changed()
            self.query_one("#top", TopBar).changed()
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
        self._kept = OpenSheet(None, RowSet(str(rows)) if is_set else RowSet.CARRIED, values)
        if self._opened is not None:
            model.open(self._kept)
            self._kept = None
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
        """Return the line that moves the run to the cursor, for a command that starts from there, or edits there."""
        from stepper.commands.command_session import command_called
        from stepper.commands.edit_commands import edited_value  # loaded with the first line that is typed

        word, _, rest = text.partition(" ")
        try:
            command = command_called(word)
            address = self.model.address()
        except UsageError:  # the answer to the line will tell
            return ()
        if command.name == "set":
            found = edited_value(rest.strip())
            if found is None or found.levels or found.iterations is not None:
                return ()
            return (f"goto {replace(address, operation=found.operation, port=found.port, index=())}",)
        overview = self.host.state.overview
        if command.name == "continue" and overview is not None and overview.state in _LEFT:
            self.host.driver.adjust(GoOnWithOverview())
        goes = command.name in _FROM_THE_CURSOR or (self.model.is_moved and command.name in _IF_MOVED)
        return self.model.lead() if goes else ()

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
            "search": sought,
            "filter": sought,
            "sheet-sort": [f"{way} {name}" for way in ("down", "up") for name in names],
            "rows": [str(one) for one in RowSet],
            "save": ["sheet.csv", "sheet.npy"],
        }
