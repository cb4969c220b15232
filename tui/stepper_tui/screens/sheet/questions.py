"""Questions of the sheet to the worker. The table itself lives there: the application only hands it on."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.debug.causes.cause import LinkKind, NonFinite, Trigger
from stepper.debug.debugger import Debugger
from stepper.debug.finding import tick_of_address
from stepper.debug.provenance.operation_at import address_at
from stepper.debug.stop import Stop
from stepper.debug.story.building import story as story_of
from stepper.debug.story.story_facts import Story, StoryQuestion
from stepper.debug.table.columns import SheetRequest, SheetSort, row_named, topic_of
from stepper.debug.table.row_sets import (
    RowSet,
    RowsFound,
    SheetFrame,
    SheetQuestion,
    first_frame,
    frame_inside,
    rows_of,
    written_out,
)
from stepper.debug.table.sheets import Sheet, SheetLook, csv_lines, held_value, iteration_now, look_at, save
from stepper.element_types import Array
from stepper.engine.program import CompiledModel, Program
from stepper.errors import Paused, StepperError, UsageError
from stepper.query.address_syntax import Address
from stepper.records import Record
from stepper.tensors.difference import difference

AT_ONCE = 0.1
"""Seconds for which a new table is read before it is shown."""
_LINKS = 12
"""Links of the path of a cell for which the inspector shows the operands."""
SLICE = 0.2
"""Seconds for which it is read on without a picture."""


class OpenedSheet(Record, eq=False):
    """Rows of a frame and their table; `iteration` is the iteration of the run, if it stands in the frame."""

    found: RowsFound
    sheet: Sheet
    iteration: int | None


class OpenSheet(Record, eq=False):
    """Request rows of a frame; by default the frame where the run stands.

    A `text` names values, as in `x, P[0]@10:20`. `story` asks for a path. `cursor` is the body and the iteration of the
    cursor, which stays there if it can.
    """

    question: SheetQuestion | None
    rows: RowSet = RowSet.CARRIED
    text: str = ""
    story: StoryQuestion | None = None
    cursor: tuple[Program, int] | None = None

    def answer(self, debugger: Debugger) -> OpenedSheet | UsageError:
        """Return it, with what can be read at once; or why there is none."""
        try:
            question, row = self.question, None
            if self.text:
                text, row = row_named(debugger.timeline, self.text)
                topic = topic_of(debugger.timeline, text)
                question = SheetQuestion(SheetFrame(topic.body, topic.outer), RowSet.ELEMENTS, text)
            if self.story is not None:
                question = SheetQuestion(first_frame(debugger), RowSet.WHY, story=self.story)
            found = rows_of(debugger, question or SheetQuestion(first_frame(debugger), self.rows))
            sheet = Sheet(debugger.timeline, found.topic)
        except UsageError as error:
            if error.candidates:  # of which one is to be picked
                raise
            return error
        sheet.read_on(AT_ONCE)
        row = found.iteration if row is None else row
        if row is None and self.cursor is not None and self.cursor[0] is found.topic.body:
            row = self.cursor[1]
        return OpenedSheet(found, sheet, iteration_now(sheet) if row is None else row)


class GoInside(Record, eq=False):
    """The body of a loop, or the side of an If that ran, in an iteration of a frame."""

    frame: SheetFrame
    layer: int
    iteration: int

    def answer(self, debugger: Debugger) -> SheetFrame:
        """Return it. UsageError where nothing ran."""
        return frame_inside(debugger, self.frame, self.layer, self.iteration)


class InspectedCell(Record, eq=False):
    """A cell of the sheet: its value, and the first link of its path (None: it has none, as a Parameter).

    `a` is the value of A.
    """

    address: Address
    value: Array | None
    story: Story | None
    a: Array | None = None


class InspectCell(Record, eq=False):
    """A cell of the sheet, looked at closely."""

    sheet: Sheet
    column: int
    iteration: int

    def answer(self, debugger: Debugger) -> InspectedCell | None:
        """Return it, None where something else was asked for meanwhile; the present stays."""
        if self.column >= len(self.sheet.columns):  # the run was edited, and is not read yet
            return None
        address, story, value, a = self.sheet.address_of(self.column, self.iteration), None, None, None
        try:
            value = self.sheet.value_at(self.column, self.iteration)
            a = held_value(debugger, self.sheet, self.column, self.iteration)
            pinned = debugger.pinned
            if (
                not address.index
                and a is not None
                and pinned is not None
                and debugger.moments.spread(pinned) is not None
            ):
                address = replace(address, index=difference(a, value).at)
            tick = tick_of_address(debugger.timeline, str(replace(address, index=())))
            question = StoryQuestion(str(address), tick=tick, links=_LINKS, depends=False, courses=False)
            story = story_of(debugger.timeline, question)
        except Paused:
            return None
        except StepperError:
            pass
        return InspectedCell(address, value, story, a)


class ReadOn(Record, eq=False):
    """More of a table; the answer is True if there is more still."""

    sheet: Sheet

    def answer(self, _debugger: Debugger) -> bool:
        """Read for a while."""
        return self.sheet.read_on(SLICE)


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


def question_of(stop: Stop, compiled: CompiledModel) -> StoryQuestion | None:
    """Return what a stop at a NaN or Inf asks by itself: why, where its cause is in another iteration."""
    cause = stop.cause
    if not isinstance(cause, NonFinite) or cause.trigger is Trigger.AIM:
        return None
    if not any(link.kind is LinkKind.BACK_EDGE for link in cause.chain.links):
        return None
    address = address_at(cause.location, compiled)
    return None if address is None else StoryQuestion(str(replace(address, index=cause.element)))
