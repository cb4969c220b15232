"""The table that is looked at: its sheet in the worker, the cursor, what is hidden, sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from stepper.debug.table.columns import SheetColumn, SheetRequest, SheetSort, SheetView
from stepper.debug.table.sheets import Sheet, SheetLook
from stepper.errors import UsageError
from stepper.tensors.statistics import OVER_ITERATIONS
from tui.screens.table.questions import (
    AddressOf,
    CheckFilter,
    ChooseStatistic,
    CopySheet,
    FoundCell,
    LookAt,
    OpenBucket,
    OpenedSheet,
    OpenSheet,
    PlaceOf,
    ReadOn,
    SaveSheet,
    SearchSheet,
)
from tui.worker.driver import Driver

_BUCKETS = ("mean", "max", "rms")
_OFF = "off"
_BESIDE = 8
"""Columns beside those that are seen that are asked for, too."""


class OpenTable(Struct, eq=False):
    """One table of those opened inside of one another: with a cursor by place and column (-1: the iteration).

    `problem` is why there is none.
    """

    text: str
    sheet: Sheet | None = None
    look: SheetLook | None = None
    place: int = 0
    column: int = 0
    top: int = 0
    left: int = 0
    sort: SheetSort | None = None
    filter: str = ""
    sought: str = ""
    hidden: set[int] = field(default_factory=set)
    problem: str = ""
    shows_all: bool = False
    is_placed: bool = False


class TableTopic:
    """Content of the panes of the table. Whoever changes anything has them painted: `changed` is called."""

    def __init__(
        self,
        driver: Driver,
        text: str,
        changed: Callable[[], None],
        say: Callable[[str, str], None],
    ) -> None:
        self._begin: int | None = None
        self._driver, self._changed, self._say = driver, changed, say
        self.levels = [OpenTable(text)]
        self.room = 20
        self.wide = 8
        self._asked: tuple[object, ...] | None = None
        self._is_reading = False
        self.is_expected = True
        """True while an answer is on its way without which the next key would mean something else."""
        self._shown: tuple[SheetView | None, frozenset[int], bool, list[int]] = (None, frozenset(), False, [])

    @property
    def level(self) -> OpenTable:
        """The table in front."""
        return self.levels[-1]

    @property
    def view(self) -> SheetView | None:
        """The view of it that is known; None before the first answer."""
        return None if self.level.look is None else self.level.look.view

    def open(self) -> None:
        """Have the sheet made."""
        level = self.level
        self.is_expected = True
        self._driver.ask(OpenSheet(level.text), lambda found: self._opened_text(level, found))

    def _opened_text(self, level: OpenTable, found: OpenedSheet | UsageError) -> None:
        if isinstance(found, UsageError):
            level.problem = str(found)
            self.is_expected = False
            self._changed()
            return
        level.text, self._begin = found.text, found.row
        self._opened(level, found.sheet)

    def _opened(self, level: OpenTable, sheet: Sheet) -> None:
        level.sheet = sheet
        self.refresh()
        self._read()

    def refresh(self, *, moved: bool = False) -> None:
        """Ask for the part that is seen, unless that was asked for; `moved`: the run stands elsewhere."""
        level = self.level
        if level.sheet is None:
            return
        request = SheetRequest(
            top=max(level.top - self.room, 0),
            rows=3 * self.room,
            columns=self._wanted(),
            sort=level.sort,
            filter=level.filter,
            detail=None if level.column < 0 else level.column,
        )
        key = (id(level), request)
        if moved or key != self._asked:
            self._asked = key
            self._driver.ask(LookAt(level.sheet, request, self.iteration), lambda look: self._seen(level, look))

    def _wanted(self) -> tuple[int, ...]:
        level, shown = self.level, self.shown
        if self.view is None:
            return tuple(range(self.wide + _BESIDE))
        begin = max(level.left - _BESIDE, 0)
        return tuple(shown[begin : level.left + self.wide + _BESIDE])

    def _seen(self, level: OpenTable, look: SheetLook) -> None:
        first = level.look is None
        self.is_expected = self.is_expected and not first
        before = () if level.look is None else self.shown
        level.look = look
        if level is not self.level:
            return
        if first:
            self._begin_at(look)
        shown = self.shown
        if shown and level.column >= 0 and level.column not in shown:
            level.column = next((one for one in shown if one >= level.column), shown[-1])
        level.place = max(0, min(level.place, look.view.passed - 1))
        self.follow()
        if first or shown != before:
            self._asked = None
            self.refresh()
        self._changed()

    def _begin_at(self, look: SheetLook) -> None:
        """Put the cursor on the iteration that was asked for, else on that of the moment."""
        level = self.level
        row = look.now if self._begin is None or level is not self.levels[0] else self._begin
        if row is not None and not level.sort and not level.filter:
            level.place = max(row - look.view.begin, 0)
        level.column = self.shown[0] if self.shown else -1

    def _read(self) -> None:
        sheet = self.level.sheet
        if self._is_reading or sheet is None:
            return
        self._is_reading = True
        self._driver.ask(ReadOn(sheet), self._has_read, gives_way=True)

    def _has_read(self, more: bool) -> None:
        self._is_reading = False
        self._asked = None
        self.refresh()
        if more:
            self._read()

    def run_moved(self) -> None:
        """The run stands elsewhere, or takes another course."""
        if self.level.sheet is not None:
            self.refresh(moved=True)
            self._read()

    # --- columns ---------------------------------------------------------------------------------------------------

    @property
    def is_none(self) -> bool:
        """True if the run of the loop had no iteration, so that there is nothing in the table."""
        return self.view is not None and self.view.complete and not self.view.total

    @property
    def shown(self) -> list[int]:
        """Return the numbers of the columns that are not hidden."""
        view, level = self.view, self.level
        if view is None:
            return []
        seen, hidden, shows_all, shown = self._shown
        if seen is view and hidden == level.hidden and shows_all is level.shows_all:
            return shown
        constant = frozenset[int]() if level.shows_all or len(view.constant) == len(view.columns) else view.constant
        gone = constant if level.shows_all else constant | level.hidden
        shown = [number for number in range(len(view.columns)) if number not in gone]
        self._shown = view, frozenset(level.hidden), level.shows_all, shown
        return shown

    @property
    def hidden(self) -> tuple[int, int]:
        """Return how many columns are hidden because they are constant, and by hand."""
        view, level = self.view, self.level
        if view is None or level.shows_all:
            return 0, 0
        constant = 0 if len(view.constant) == len(view.columns) else len(view.constant)
        return constant, len(level.hidden - view.constant)

    @property
    def at(self) -> SheetColumn | None:
        """The column of the cursor; None: that of the iterations."""
        view, column = self.view, self.level.column
        return None if view is None or not 0 <= column < len(view.columns) else view.columns[column]

    @property
    def iteration(self) -> int | None:
        """The iteration of the cursor, if it is known."""
        view = self.view
        place = None if view is None else self.level.place - view.top
        return (
            None if view is None or place is None or not 0 <= place < len(view.iterations) else view.iterations[place]
        )

    # --- moving ----------------------------------------------------------------------------------------------------

    def move(self, down: int, across: int) -> None:
        """Move the cursor by so many rows and columns."""
        level, view, shown = self.level, self.view, self.shown
        if view is None:
            return
        level.place = max(0, min(level.place + down, view.passed - 1))
        if across and shown:
            at = shown.index(level.column) if level.column in shown else -1
            at = max(-1, min(at + across, len(shown) - 1))
            level.column = -1 if at < 0 else shown[at]
        self._moved()

    def go_to(self, place: int, column: int | None = None) -> None:
        """Put the cursor on a place, and a column."""
        self.level.place = place
        if column is not None:
            self.level.column = column
            self.level.hidden.discard(column)
            if self.view is not None and column in self.view.constant:
                self.level.shows_all = True
        self.move(0, 0)

    def _moved(self) -> None:
        self.follow()
        self.refresh()
        self._changed()

    def follow(self) -> None:
        """Have the cursor in sight."""
        level, shown = self.level, self.shown
        level.top = min(level.top, level.place)
        level.top = max(level.top, level.place - self.room + 1, 0)
        at = shown.index(level.column) if level.column in shown else 0
        level.left = min(level.left, at)
        level.left = max(level.left, at - self.wide + 1, 0)
        level.left = max(min(level.left, len(shown) - self.wide), 0)

    # --- sorting, filtering, hiding --------------------------------------------------------------------------------

    def sort(self, *, descending: bool, column: int | None = None) -> None:
        """Sort by the column of the cursor, the cursor in the first row; if that is how it is, not any more."""
        level = self.level
        self._say("", "dim")
        column = level.column if column is None else column
        wanted = SheetSort(column, descending) if column >= 0 else None
        if wanted is None or wanted == level.sort:
            level.sort = None
            self._keep_iteration()
        else:
            level.sort = wanted
            self.go_to(0)

    def filter(self, text: str) -> None:
        """Show only the rows in which a condition holds; all of them where it is empty, or `off`.

        One that cannot be read leaves the filter as it is.
        """
        level, sheet = self.level, self.level.sheet
        wanted = "" if text.strip().lower() == _OFF else text

        def put(_checked: None = None) -> None:
            self._say("", "dim")
            level.filter = wanted
            self._keep_iteration()

        if wanted and sheet is not None:
            self._driver.ask(CheckFilter(sheet, wanted), put)
        else:
            put()

    def _keep_iteration(self) -> None:
        level, iteration = self.level, self.iteration
        self.refresh()
        if iteration is not None and level.sheet is not None:
            question = PlaceOf(level.sheet, iteration, level.sort, level.filter)
            self._driver.ask(question, lambda place: self.go_to(place or 0))

    def hide(self) -> None:
        """Hide the column of the cursor."""
        level, shown = self.level, self.shown
        if level.column < 0 or len(shown) < 2:
            raise UsageError("the last column stays" if shown and level.column >= 0 else "choose a column to hide")
        at = shown.index(level.column)
        level.hidden.add(level.column)
        rest = self.shown
        level.column = rest[min(at, len(rest) - 1)]
        self._moved()

    def toggle_hidden(self) -> None:
        """Show the columns that are hidden, or hide them again."""
        self.level.shows_all = not self.level.shows_all
        self._asked = None
        self._moved()

    # --- what is opened, sought, written ---------------------------------------------------------------------------

    def open_bucket(self) -> bool:
        """Open the bucket of the cursor; False where there is none."""
        level, column = self.level, self.at
        if column is None or not column.is_bucket or level.sheet is None:
            return False
        inner = OpenTable(column.name, place=level.place, top=level.top)
        self.levels.append(inner)
        self._driver.ask(OpenBucket(level.sheet, level.column), lambda sheet: self._opened(inner, sheet))
        self._changed()
        return True

    def close_bucket(self) -> bool:
        """Close a bucket that was opened; False where there is none."""
        if len(self.levels) < 2:
            return False
        self.levels.pop()
        self._asked = None
        self.refresh(moved=True)
        self._changed()
        return True

    @property
    def has_looks(self) -> bool:
        """True if a column stands for several numbers, so that another statistic may."""
        view = self.view
        if view is None:
            return False
        return any(form.statistic for form in view.forms) or any(column.is_bucket for column in view.columns)

    def look_on(self, direction: int) -> str:
        """Let another statistic stand for buckets, or for each operation; return what it is, empty where none is."""
        level, view = self.level, self.view
        if level.sheet is None or view is None:
            return ""
        statistics = [form.statistic for form in view.forms]
        if any(statistics):
            at = OVER_ITERATIONS.index(statistics[0])
            chosen = OVER_ITERATIONS[(at + direction) % len(OVER_ITERATIONS)]
            level.text = level.text.replace(f"{statistics[0]}(", f"{chosen}(")
            level.look = None
            self.open()
            return chosen
        if not any(column.is_bucket for column in view.columns):
            return ""
        chosen = _BUCKETS[(_BUCKETS.index(level.sheet.statistic) + direction) % len(_BUCKETS)]
        self._driver.ask(ChooseStatistic(level.sheet, chosen), self._has_read)
        return chosen

    def search(self, text: str, *, backward: bool = False) -> None:
        """Go to the column of a name, or the next row where a condition holds; empty: what was sought last."""
        level, column = self.level, self.at
        level.sought = text or level.sought
        if not level.sought or level.sheet is None:
            raise UsageError("nothing was sought yet: / seeks a column, or a condition such as > 5 or x[0] > 5")
        name = "" if column is None else column.name
        question = SearchSheet(level.sheet, level.sought, name, level.place, level.sort, level.filter, backward)
        self._driver.ask(question, self._found)

    def _found(self, found: FoundCell) -> None:
        if found.column is not None or found.place is not None:
            self._say("", "dim")
            self.go_to(self.level.place if found.place is None else found.place, found.column)
        else:
            self._say(f"no further row has {self.level.sought}", "dim")

    def copy(self, then: Callable[[str], None]) -> None:
        """Have the table as CSV."""
        sheet, level = self._sheet(), self.level
        self._driver.ask(CopySheet(sheet, tuple(self.shown), level.sort, level.filter), then)

    def save(self, path: str, then: Callable[[int], None]) -> None:
        """Have the table written into a file."""
        sheet, level = self._sheet(), self.level
        self._driver.ask(SaveSheet(sheet, path, tuple(self.shown), level.sort, level.filter), then)

    def address(self, then: Callable[[str], None]) -> None:
        """Have the address of the cell of the cursor. UsageError where there is none."""
        iteration, sheet = self.iteration, self._sheet()
        if iteration is None:
            raise UsageError("there is no row here")
        self.is_expected = True

        def found(address: str) -> None:
            self.is_expected = False
            then(address)

        self._driver.ask(AddressOf(sheet, max(self.level.column, 0), iteration), found)

    def _sheet(self) -> Sheet:
        sheet = self.level.sheet
        if sheet is None:
            raise UsageError("the table is not read yet")
        return sheet
