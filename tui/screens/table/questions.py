"""Questions of the table to the worker. The sheet itself lives there: the application only hands it on."""

from __future__ import annotations

from stepper.debug.debugger import Debugger
from stepper.debug.table.columns import SheetRequest, SheetSort, row_named
from stepper.debug.table.conditions import written_out
from stepper.debug.table.sheets import Sheet, SheetLook, csv_lines, look_at, save
from stepper.errors import UsageError
from stepper.records import Record

AT_ONCE = 0.1
"""Seconds for which a new table is read before it is shown."""
SLICE = 0.2
"""Seconds for which it is read on without a picture."""


class OpenedSheet(Record, eq=False):
    """A table of what `text` says, and the iteration that was named as well (None: none)."""

    text: str
    sheet: Sheet
    row: int | None


class OpenSheet(Record):
    """A table of values, as a text names them; empty: what the loop here carries."""

    text: str

    def answer(self, debugger: Debugger) -> OpenedSheet | UsageError:
        """Return it, with what can be read at once; or why there is none."""
        try:
            text, row = row_named(debugger.timeline, self.text)
            sheet = Sheet(debugger.timeline, text)
        except UsageError as error:
            return error
        sheet.read_on(AT_ONCE)
        return OpenedSheet(text, sheet, row)


class OpenBucket(Record, eq=False):
    """The table of the elements of a bucket."""

    sheet: Sheet
    column: int

    def answer(self, _debugger: Debugger) -> Sheet:
        """Return it, with what can be read at once."""
        sheet = self.sheet.opened(self.column)
        sheet.read_on(AT_ONCE)
        return sheet


class ReadOn(Record, eq=False):
    """More of a table; the answer is True if there is more still."""

    sheet: Sheet

    def answer(self, _debugger: Debugger) -> bool:
        """Read for a while."""
        return self.sheet.read_on(SLICE)


class ChooseStatistic(Record, eq=False):
    """Another number for the buckets of a table."""

    sheet: Sheet
    statistic: str

    def answer(self, _debugger: Debugger) -> bool:
        """Return whether there is more to read."""
        self.sheet.choose(self.statistic)
        return self.sheet.read_on(AT_ONCE)


class LookAt(Record, eq=False):
    """The part of a table that is seen; `row` is the iteration of the cursor."""

    sheet: Sheet
    request: SheetRequest
    row: int | None

    def answer(self, debugger: Debugger) -> SheetLook:
        """Return it."""
        return look_at(debugger, self.sheet, self.request, self.row)


class CheckFilter(Record, eq=False):
    """Check of a text: is it a condition that the rows of a table can be asked."""

    sheet: Sheet
    filter: str

    def answer(self, _debugger: Debugger) -> None:
        """Ask it of the first row. UsageError for one that cannot be asked."""
        self.sheet.ensure_filter(self.filter)


class PlaceOf(Record, eq=False):
    """The place of an iteration in a table."""

    sheet: Sheet
    iteration: int
    sort: SheetSort | None
    filter: str

    def answer(self, _debugger: Debugger) -> int | None:
        """Return it; None where the filter leaves it out."""
        return self.sheet.place_of(self.iteration, self.sort, self.filter)


class FoundCell(Record):
    """A cell that was found: a place, a column, or neither."""

    place: int | None = None
    column: int | None = None


class SearchSheet(Record, eq=False):
    """The column of a name, or else the next row after a place where a condition holds."""

    sheet: Sheet
    text: str
    column: str
    after: int
    sort: SheetSort | None
    filter: str
    backward: bool

    def answer(self, _debugger: Debugger) -> FoundCell:
        """Return what was found. UsageError for a text that is no condition."""
        column = None if self.backward else self.sheet.column_named(self.text)
        if column is not None:
            return FoundCell(column=column)
        condition = written_out(self.text, self.column)
        sort, filter, backward = self.sort, self.filter, self.backward
        return FoundCell(self.sheet.search(condition, self.after, sort, filter, backward=backward))


class CopySheet(Record, eq=False):
    """A table as CSV."""

    sheet: Sheet
    columns: tuple[int, ...]
    sort: SheetSort | None
    filter: str

    def answer(self, _debugger: Debugger) -> str:
        """Return the text."""
        return "".join(csv_lines(self.sheet, self.columns, self.sort, self.filter))


class SaveSheet(Record, eq=False):
    """A table in a file."""

    sheet: Sheet
    path: str
    columns: tuple[int, ...]
    sort: SheetSort | None
    filter: str

    def answer(self, debugger: Debugger) -> int:
        """Return how many rows were written."""
        protected = debugger.protected
        return save(self.sheet, self.path, self.columns, self.sort, self.filter, protected=protected)


class AddressOf(Record, eq=False):
    """The address of a cell."""

    sheet: Sheet
    column: int
    iteration: int

    def answer(self, _debugger: Debugger) -> str:
        """Return it as it is written at the prompt."""
        return str(self.sheet.address_of(self.column, self.iteration))
