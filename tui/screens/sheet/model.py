"""The model of the sheet: frames, their rows and table in the worker, the cursor, filter and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.story.facts import Story, StoryQuestion
from stepper.debug.table.columns import SheetColumn, SheetRequest, SheetSort, SheetView
from stepper.debug.table.row_sets import RowSet, RowsFound, SheetFrame, SheetQuestion, frames_around
from stepper.debug.table.sheets import Sheet, SheetLook
from stepper.element_types import Indices
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.query.address_syntax import apart_from_iteration, without_element
from stepper.query.short_names import short_names_of
from tui.screens.sheet.questions import (
    AddressOf,
    CheckFilter,
    CopySheet,
    FoundCell,
    GoInside,
    InspectCell,
    InspectedCell,
    LookAt,
    NextBad,
    OpenedSheet,
    OpenSheet,
    PlaceOf,
    ReadOn,
    SaveSheet,
    SearchSheet,
)
from tui.worker.driver import Driver

_OFF = "off"
_MORE = 40
"""Links that are looked for beyond those of a path."""
_BESIDE = 6
"""Rows above and below those in sight that are asked for, too."""


class SheetLevel(Struct, eq=False):
    """Rows that were opened. The cursor is at a `place` in time, counted among those that pass, and on a `row`.

    It goes to the `wanted` place as soon as that is read.
    """

    opened: OpenedSheet | None = None
    look: SheetLook | None = None
    place: int = 0
    wanted: int | None = None
    row: int = 0
    top: int = 0
    sort: SheetSort | None = None
    filter: str = ""
    sought: str = ""
    problem: str = ""


def _value_of(address: str) -> str:
    """Return the address of a value over all iterations of its loop, of that of an element in one."""
    return apart_from_iteration(without_element(address))[0]


class SheetModel:
    """Content of the panes of the sheet. Whoever changes anything has them painted: `changed` is called."""

    def __init__(
        self,
        driver: Driver,
        changed: Callable[[], None],
        say: Callable[[str, str], None],
        first: OpenSheet,
    ) -> None:
        self._driver, self._changed, self._say, self.first = driver, changed, say, first
        self.levels = [SheetLevel()]
        self.inspected: InspectedCell | None = None
        self.room, self.window = 20, (0, 1)
        self.bounds: Indices = ()
        """Bounds of the narrow parts of time; `room`: rows in sight, `window`: places in time that are wide."""
        self._asked: tuple[object, ...] | None = None
        self._inspecting: tuple[object, ...] | None = None
        self._is_reading = False
        self.is_expected = True
        """True while an answer is on its way without which the next key would mean something else."""

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def level(self) -> SheetLevel:
        """The rows in front."""
        return self.levels[-1]

    @property
    def view(self) -> SheetView | None:
        """The part of the table that is known; None before the first answer."""
        return None if self.level.look is None else self.level.look.view

    @property
    def found(self) -> RowsFound | None:
        """The rows, and where they come from."""
        return None if self.level.opened is None else self.level.opened.found

    @property
    def story(self) -> Story | None:
        """The path of which the rows are."""
        return None if self.found is None else self.found.story

    @property
    def frame(self) -> SheetFrame | None:
        """The graph whose values stand in the rows."""
        return None if self.found is None else self.found.question.frame

    @property
    def path(self) -> Sequence[SheetFrame]:
        """The frames from the model's own graph inwards."""
        return () if self.frame is None else frames_around(self.frame, self._driver.compiled)

    @property
    def at(self) -> SheetColumn | None:
        """The row of the cursor."""
        view = self.view
        return None if view is None or self.level.row >= len(view.columns) else view.columns[self.level.row]

    @property
    def layer_here(self) -> int | None:
        """The operation of the row of the cursor, by its layer's id."""
        view, column = self.view, self.at
        return None if view is None or column is None else view.topic.values[column.value].target.layer.id

    @property
    def iteration(self) -> int | None:
        """The iteration of the cursor, if it is known."""
        view = self.view
        place = 0 if view is None else self.level.place - view.top
        return None if view is None or not 0 <= place < len(view.iterations) else view.iterations[place]

    @property
    def number(self) -> object:
        """The number in the cell of the cursor; None: there is none."""
        view, place = self.view, self.level.place
        numbers = None if view is None else view.numbers.get(self.level.row)
        return None if view is None or numbers is None or self.iteration is None else numbers[place - view.top]

    @property
    def is_none(self) -> bool:
        """True if the run of the loop had no iteration."""
        return self.view is not None and self.view.complete and not self.view.total

    # --- opening -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Have the first rows made."""
        self._open(self.first, self.level)

    def _open(
        self,
        request: OpenSheet,
        level: SheetLevel,
        then: Callable[[], None] = lambda: None,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        self.is_expected = True

        def opened(found: OpenedSheet | UsageError) -> None:
            if isinstance(found, UsageError):
                self.is_expected = False
                if otherwise is not None:
                    otherwise()
                    return
                if level.opened is None and level is self.levels[0]:
                    level.problem = str(found)
                else:
                    self._say(str(found), "bad")
                self._changed()
                return
            is_first, level.opened, level.problem = level.opened is None, found, ""
            if level not in self.levels:
                self.levels.append(level)
            level.row = found.found.row
            is_first |= found.found.story is not None
            if is_first and found.iteration is not None:
                level.wanted = max(found.iteration - found.sheet.topic.begin, 0)
            then()
            self.refresh(anew=True)
            self._read()

        asked = "" if request.story is None else f"why {request.story.address}"
        self._driver.ask(request, opened, line=asked or f"sheet {request.text}" * bool(request.text))

    def show_next_rows(self) -> None:
        """Show the next set of rows that there is."""
        sets = list(RowSet)
        if self.found is not None:
            at = sets.index(self.found.question.rows)
            self._show_first([*sets[at + 1 :], *sets[:at]])

    def _show_first(self, sets: Sequence[RowSet]) -> None:
        """Show the first of these sets that has any rows."""
        if sets:
            self.show_rows(sets[0], lambda: self._show_first(sets[1:]))

    def show_rows(self, rows: RowSet, otherwise: Callable[[], None] | None = None) -> None:
        """Show another set of rows of this frame; of what the cursor is on its path or elements."""
        frame, column = self.frame, self.at
        if frame is None:
            return
        if rows not in (RowSet.WHY, RowSet.ELEMENTS):
            self._replace(SheetQuestion(frame, rows), otherwise)
            return

        def asked(address: str) -> None:
            meant = address if rows is RowSet.WHY else _value_of(address)
            self._replace(SheetQuestion(frame, rows, meant), otherwise)

        if column is None:
            raise UsageError("there is no value here")
        self.address(asked)

    def _replace(self, question: SheetQuestion, otherwise: Callable[[], None] | None = None) -> None:
        level, before = self.level, self.at
        name = "" if before is None else self._name_here

        def keep() -> None:
            level.top = 0
            self._wanted_row = "" if question.rows is RowSet.WHY else name

        level.sort = None
        self._open(OpenSheet(question), level, keep, otherwise)

    def ask(self, question: StoryQuestion) -> None:
        """Show the path that answers a question why."""
        self.level.sort, self.level.filter = None, ""
        self._open(OpenSheet(None, story=question), self.level)

    def widen(self, by: int) -> None:
        """Follow more operands of the value of the cursor on its path, or fewer."""
        story, found = self.story, self.found
        if story is None or found is None or found.question.story is None:
            raise UsageError("no path stands in the rows (o)")
        asked, name = found.question.story, self._name_here
        link = next((one for one in story.links if story.rows[one.row].name == name and one.column >= 0), None)
        if link is None:
            raise UsageError("the value of the cursor is not on the path")
        wider = dict(asked.wider)
        wider[link.key] = wider.get(link.key, 0) + by
        links = asked.links + (_MORE if story.pending and by > 0 else 0)
        self.ask(replace(asked, wider=tuple(sorted(wider.items())), links=links))

    @property
    def _name_here(self) -> str:
        view, column = self.view, self.at
        return "" if view is None or column is None else view.topic.values[column.value].name

    _wanted_row: str = ""

    def go_into(self) -> bool:
        """Go into the loop or the If of the row, of a tensor show its elements; False for a single number."""
        frame, column, view, iteration = self.frame, self.at, self.view, self.iteration
        if frame is None or column is None or view is None or iteration is None:
            raise UsageError("there is no value here")
        layer = view.topic.values[column.value].target.layer
        if layer.bodies:
            self._driver.ask(GoInside(frame, layer.id, iteration), self._went_into)
        elif column.index is None:
            self.address(lambda address: self._push(SheetQuestion(frame, RowSet.ELEMENTS, _value_of(address))))
        return bool(layer.bodies) or column.index is None

    def _went_into(self, frame: SheetFrame) -> None:
        rows = self.found.question.rows if self.found is not None else RowSet.ALL
        self._push(SheetQuestion(frame, rows if rows in (RowSet.CARRIED, RowSet.ALL) else RowSet.ALL))

    def _push(self, question: SheetQuestion) -> None:
        level = SheetLevel(wanted=self.level.place if question.rows is RowSet.ELEMENTS else 0)
        self._open(OpenSheet(question), level)

    def go_out(self) -> bool:
        """Go out of what was gone into; False on the outermost graph."""
        if len(self.levels) > 1:
            self.levels.pop()
            self.refresh(anew=True)
            self._changed()
            return True
        found, around = self.found, self.path[:-1]
        if found is not None and found.question.rows is RowSet.ELEMENTS:
            self._come_to(found.question.frame, RowSet.ALL, found.topic.values[0].target.layer, self.level.place)
            return True
        if not around:
            return False
        inner = self.path[-1]
        place = max(inner.outer[-1] or 0, 0) if inner.outer and around[-1].program.path else 0
        self._come_to(around[-1], RowSet.ALL, inner.program.path[-1], place)
        return True

    def _come_to(self, frame: SheetFrame, rows: RowSet, layer: Layer, place: int) -> None:
        """Show the rows of a frame, the cursor on the row of a layer."""
        self.levels[0] = SheetLevel(wanted=place)
        self._wanted_row = short_names_of(frame.program.graph).get(layer.id, layer.name)
        self._open(OpenSheet(SheetQuestion(frame, rows)), self.levels[0])

    # --- reading -----------------------------------------------------------------------------------------------------

    def refresh(self, *, anew: bool = False) -> None:
        """Ask for the part that is seen, unless that was asked for; `anew`: the run stands elsewhere, or grew."""
        level = self.level
        if level.opened is None:
            return
        first, end = self.window
        request = SheetRequest(
            top=first,
            rows=end - first,
            columns=tuple(range(max(level.top - _BESIDE, 0), level.top + self.room + _BESIDE)),
            sort=level.sort,
            filter=level.filter,
            detail=level.row,
            bins=self.bounds,
        )
        key = (id(level), request)
        if anew or key != self._asked:
            self._asked = key
            sheet = level.opened.sheet
            self._driver.ask(LookAt(sheet, request, self.iteration), lambda look: self._seen(level, look))

    def _seen(self, level: SheetLevel, look: SheetLook) -> None:
        level.look, self.is_expected = look, False
        if level is not self.level:
            return
        if self._wanted_row:
            wanted, self._wanted_row = self._wanted_row, ""
            columns, values = look.view.columns, look.view.topic.values
            level.row = next((k for k, one in enumerate(columns) if values[one.value].name == wanted), level.row)
        last = look.view.passed - 1
        level.place = max(0, min(level.place if level.wanted is None else level.wanted, last))
        level.wanted = None if look.view.complete or level.place == level.wanted else level.wanted
        level.row = max(0, min(level.row, len(look.view.columns) - 1))
        self._changed()
        self._inspect()

    def _read(self) -> None:
        opened = self.level.opened
        if self._is_reading or opened is None:
            return
        self._is_reading = True
        self._driver.ask(ReadOn(opened.sheet), self._has_read, gives_way=True)

    def _has_read(self, more: bool) -> None:
        self._is_reading = False
        self.refresh(anew=True)
        if more:
            self._read()

    def run_moved(self, iteration: int | None) -> None:
        """The run stands elsewhere, or takes another course; the cursor goes where it stands."""
        level = self.level
        if level.opened is not None:
            if iteration is not None and not level.sort and not level.filter:
                level.wanted = max(iteration - level.opened.sheet.topic.begin, 0)
            self._inspecting = None
            self.refresh(anew=True)
            self._read()

    def _inspect(self) -> None:
        opened, column, iteration = self.level.opened, self.at, self.iteration
        if opened is None or column is None or iteration is None or self.number is None:
            self.inspected = None
            return
        key = id(opened), self.level.row, iteration
        if key == self._inspecting:
            return
        self._inspecting = key

        def seen(found: InspectedCell | None) -> None:
            if key != self._inspecting:
                return
            if found is None:  # something else went first
                self._inspecting = None
                self._inspect()
            else:
                self.inspected = found
                self._changed()

        self._driver.ask(InspectCell(opened.sheet, self.level.row, iteration), seen, gives_way=True)

    # --- the cursor --------------------------------------------------------------------------------------------------

    def move(self, down: int, across: int) -> None:
        """Move the cursor by so many rows, and places in time."""
        level, view = self.level, self.view
        if view is None:
            return
        level.row = max(0, min(level.row + down, len(view.columns) - 1))
        level.place, level.wanted = max(0, min(level.place + across, view.passed - 1)), None
        self._say("", "dim")
        self._changed()
        self.refresh()
        self._inspect()

    def go_to(self, place: int, row: int | None = None) -> None:
        """Put the cursor on a place in time, and a row."""
        level = self.level
        level.place, level.row = place, level.row if row is None else row
        self.move(0, 0)

    # --- order, filter, search ---------------------------------------------------------------------------------------

    def sort(self, *, descending: bool, row: int | None = None) -> None:
        """Order the iterations by the row of the cursor; if that is how it is, as they ran."""
        level = self.level
        wanted = SheetSort(level.row if row is None else row, descending)
        if wanted == level.sort:
            level.sort = None
            self._keep_iteration()
        else:
            level.sort, level.place = wanted, 0
            self.refresh(anew=True)

    def filter(self, text: str) -> None:
        """Show only the iterations in which a condition holds; all of them where it is empty, or `off`.

        One that cannot be read leaves the filter as it is.
        """
        level, opened = self.level, self.level.opened
        wanted = "" if text.strip().lower() == _OFF else text

        def put(_checked: None = None) -> None:
            level.filter = wanted
            self._keep_iteration()

        if wanted and opened is not None:
            self._driver.ask(CheckFilter(opened.sheet, wanted), put)
        else:
            put()

    def _keep_iteration(self) -> None:
        level, iteration = self.level, self.iteration
        self.refresh(anew=True)
        if iteration is not None and level.opened is not None:
            question = PlaceOf(level.opened.sheet, iteration, level.sort, level.filter)
            self._driver.ask(question, lambda place: self.go_to(place or 0))

    def search(self, text: str, *, backward: bool = False) -> None:
        """Go to the row of a name, or the next iteration where a condition holds; empty: what was sought last."""
        level, column = self.level, self.at
        level.sought = text or level.sought
        if not level.sought or level.opened is None:
            raise UsageError("nothing was sought yet: / seeks a row, or a condition such as > 5 or x[0] > 5")
        name = "" if column is None else column.name
        sheet = level.opened.sheet
        question = SearchSheet(sheet, level.sought, name, level.place, level.sort, level.filter, backward)
        self._driver.ask(question, self._found)

    def seek_bad(self, *, backward: bool) -> None:
        """Go to the next cell in which a NaN or Inf begins."""
        level = self.level
        level.sought = "NaN or Inf"
        question = NextBad(self._sheet(), level.place, level.row, level.sort, level.filter, backward)
        self._driver.ask(question, self._found)

    def _found(self, found: FoundCell) -> None:
        if found.column is not None or found.place is not None:
            self.go_to(self.level.place if found.place is None else found.place, found.column)
        else:
            self._say(f"nothing further: {self.level.sought}", "dim")

    # --- what leaves it ----------------------------------------------------------------------------------------------

    def copy(self, then: Callable[[str], None]) -> None:
        """Have the rows as CSV, an iteration a line."""
        level = self.level
        self._driver.ask(CopySheet(self._sheet(), self._all_rows(), level.sort, level.filter), then)

    def save(self, path: str, then: Callable[[int], None]) -> None:
        """Have the rows written into a file, an iteration a line."""
        level = self.level
        self._driver.ask(SaveSheet(self._sheet(), path, self._all_rows(), level.sort, level.filter), then)

    def _all_rows(self) -> Indices:
        return tuple(range(0 if self.view is None else len(self.view.columns)))

    def address(self, then: Callable[[str], None]) -> None:
        """Have the address of the cell of the cursor. UsageError where there is none."""
        iteration, sheet = self.iteration, self._sheet()
        if iteration is None:
            raise UsageError("there is no iteration here")
        self.is_expected = True

        def found(address: str) -> None:
            self.is_expected = False
            then(address)

        self._driver.ask(AddressOf(sheet, self.level.row, iteration), found)

    def _sheet(self) -> Sheet:
        if self.level.opened is None:
            raise UsageError("the sheet is not read yet")
        return self.level.opened.sheet
