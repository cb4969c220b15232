"""The rows of a table that a condition lets through, asked a little at a time."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from msgspec import field
from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from stepper.debug.loop_runs import Batch, IterationReader, Outer, address_in_run, outer_now
from stepper.debug.moments.moment import Moment, MomentKind
from stepper.debug.scopes import ValuePlace, path_to
from stepper.debug.stop import iteration_of
from stepper.debug.table.columns import (
    ColumnBin,
    ColumnDetail,
    GatheredValue,
    SheetColumn,
    SheetRequest,
    SheetSort,
    SheetTopic,
    SheetView,
    UnevenValue,
    bins_of,
    course_of,
    detail_of,
    with_gaps,
)
from stepper.debug.table.row_sets import column_condition, iteration_condition, written_out
from stepper.debug.timeline import Edit, Timeline, same_by_tick
from stepper.element_types import Array, Indices, is_of_numpy
from stepper.engine.frames import Frame
from stepper.engine.program import Value
from stepper.errors import Paused, StepperError, UsageError
from stepper.files.file_kinds import ARRAY, CSV
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.plain_values import cell
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address
from stepper.query.expression_syntax import ExpressionError
from stepper.records import Record

NON_FINITE = "nan or inf"
_WORDS: dict[str, Callable[[Array], Array]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    NON_FINITE: lambda numbers: ~np.isfinite(numbers),
}
"""Conditions about every column: as `break nan` and `break inf`, and both."""


Ask = Callable[[int, float], Array]
"""Return which of so many rows pass, as far as they could be asked until a deadline."""


class RowFilter:
    """A condition on the rows, as far as it was asked: `mask` says which hold."""

    def __init__(self, sheet: Sheet, text: str) -> None:
        self.text = text
        self.mask: Array = np.zeros(0, bool)
        self._ask = _ask_of(sheet, text)

    def go_on(self, sheet: Sheet, deadline: float) -> bool:
        """Ask further rows until a deadline; True if there are more. Raise Paused."""
        if len(self.mask) < sheet.total:
            self.mask = self._ask(sheet.total, deadline)
        return len(self.mask) < sheet.total


def _ask_of(sheet: Sheet, text: str) -> Ask:
    """Return how a condition is asked: of every column, of single elements, or of each iteration on a way."""
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return lambda _total, _deadline: sheet.rows_with(word)
    written = sheet.numbered(written_out(text))
    condition = column_condition(written, sheet.column_called)
    if condition is None:
        return _by_iteration(sheet, written)
    return lambda total, _deadline: condition.holds(sheet.column, sheet.known, total)


def _by_iteration(sheet: Sheet, text: str) -> Ask:
    timeline, topic, found, trouble = sheet.timeline, sheet.topic, list[bool](), list[ExpressionError]()
    holds = iteration_condition(timeline, text, topic.body, sheet.place_called)
    reader = IterationReader(topic.body, topic.outer, begin=topic.begin)

    def ask(total: int, deadline: float) -> Array:
        def visit(_frame: Frame) -> bool:
            try:
                found.append(holds())
            except ExpressionError as error:  # not an error of the run
                trouble.append(error)
            return bool(trouble) or len(found) >= total or perf_counter() >= deadline

        is_paused = len(found) < total and not reader.visit(timeline, visit)
        if trouble:
            raise trouble[0]
        if is_paused:
            raise Paused
        if reader.is_done:  # an iteration that fails is no whole one
            found.extend([False] * (total - len(found)))
        return np.array(found[:total], bool)

    return ask


MOST_CELLS = 2**24
"""Numbers of a table that are kept."""
BEYOND = 2.0
"""Seconds for which iterations that the run has not reached yet are computed."""
_BLOCK = 256
_MOST_BLOCK_CELLS = 2**22
_MOST_PARTS = 2**11
_AT_ONCE = 0.05
_SEARCH = 1.0


class Sheet:
    """A table of the run with its present edits.

    To be used where the run itself is used; the present always stays.
    """

    def __init__(self, timeline: Timeline, topic: SheetTopic) -> None:
        self.timeline, self.topic = timeline, topic
        self._uneven: set[int] = set()
        self.columns: tuple[SheetColumn, ...] = ()
        """Columns that are known; of an edited run the old columns, until an iteration is read."""
        self._begin()

    def _begin(self) -> None:
        topic = self.topic
        self._edits: dict[int, tuple[Edit, ...]] = dict(self.timeline.edits)
        self._values = [
            GatheredValue(value, number, is_uneven=number in self._uneven) for number, value in enumerate(topic.values)
        ]
        groups: dict[int, list[int]] = {}
        for number, value in enumerate(topic.values):
            groups.setdefault(id(value.target.program), []).append(number)
        self._groups = list(groups.values())
        self._courses = [self._course(numbers) for numbers in self._groups]
        self._beyond = 0.0
        self._keeps = True
        self._offsets: list[int] = []
        self._whole: OrderedDict[int, Array] = OrderedDict()
        self._blocks: OrderedDict[tuple[int, int], tuple[Array, Array]] = OrderedDict()
        self._order: tuple[tuple[Any, ...], Array] | None = None
        self._described: tuple[tuple[Any, ...], ColumnDetail] | None = None
        self._filter: RowFilter | None = None
        self._parts_of: tuple[Any, ...] = ()
        self._parts: dict[tuple[Any, ...], Any] = {}
        """Parts of columns that were shown, of the rows that there were then: the next view has the same objects."""

    def _course(
        self, numbers: Sequence[int], begin: int | None = None, end: float | None = None, outer: Outer | None = None
    ) -> IterationReader:
        topic = self.topic
        program = topic.values[numbers[0]].target.program
        last = math.inf if topic.end is None else topic.end
        return IterationReader(
            topic.body,
            topic.outer if outer is None else outer,
            [topic.values[number].target.slot for number in numbers],
            None if program is topic.body else program,
            begin=topic.begin if begin is None else begin,
            end=last if end is None else end,
        )

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Return how many iterations are known."""
        return min(course.next for course in self._courses) - self.topic.begin

    @property
    def outer(self) -> Outer:
        """Return the iterations around the run of the loop, as far as they are known."""
        return self._courses[0].outer

    @property
    def is_complete(self) -> bool:
        """True if all iterations are known."""
        return all(course.is_done for course in self._courses)

    def read_on(self, seconds: float) -> bool:
        """Read further iterations for about so many seconds, or to a pause; True if there is more to read.

        Iterations that the run has not come to yet are computed for BEYOND seconds altogether. UsageError for a value
        that is no number, and for a loop that does not run.
        """
        if not same_by_tick(self._edits, self.timeline.edits):
            self._begin()
        deadline = perf_counter() + seconds
        for place in range(len(self._groups)):
            while self._lacks(self._courses[place]) and perf_counter() < deadline and self._read(place, deadline):
                pass
        is_more = any(self._lacks(course) for course in self._courses)
        self._settle_columns()
        if self._filter is not None:
            try:
                is_more |= self._filter.go_on(self, deadline)
            except Paused:
                return True
        return is_more

    def ensure_filter(self, text: str) -> None:
        """Raise UsageError or ExpressionError for what is no condition, or cannot be asked of the first row."""
        RowFilter(self, text).go_on(self, perf_counter())

    def _lacks(self, course: IterationReader) -> bool:
        """True if there is more to read of a course."""
        return not course.is_done and (course.tick < self.timeline.furthest or self._beyond < BEYOND)

    def _read(self, place: int, deadline: float) -> bool:
        """Read on one course; False where it is paused, or has come as far as it may."""
        course, numbers, timeline = self._courses[place], self._groups[place], self.timeline
        trouble: list[Exception] = []

        def take(_begin: int, batch: Batch) -> bool:
            try:
                for number, values in zip(numbers, batch, strict=True):
                    self._values[number].take(values)
            except (UnevenValue, UsageError) as error:  # not in the midst of the machine's work
                trouble.append(error)
            if self._keeps and sum(value.cells for value in self._values) > MOST_CELLS:
                self._keeps = False
                for value in self._values:
                    value.release()
            return bool(trouble) or perf_counter() >= deadline

        is_known, started = course.tick < timeline.furthest, perf_counter()
        goes_on = course.read(timeline, take, timeline.furthest if is_known else None)
        if trouble and isinstance(trouble[0], UnevenValue):
            self._uneven |= {number for number in numbers if self._values[number].is_surprised}
            self._begin()
            return True
        if trouble:
            raise trouble[0]
        if not is_known:
            self._beyond += perf_counter() - started
        return goes_on and self._lacks(self._courses[place])

    def _settle_columns(self) -> None:
        """Number the columns of all values, as far as they are known."""
        columns: list[SheetColumn] = []
        self._offsets = []
        for value in self._values:
            self._offsets.append(len(columns))
            columns += value.columns
        if self.columns != (found := tuple(columns)):
            self.columns = found

    # --- numbers ---------------------------------------------------------------------------------------------------

    def _place(self, column: int) -> tuple[GatheredValue, int]:
        """Return the value of a column, and which of its columns it is."""
        one = self.columns[column]
        return self._values[one.value], column - self._offsets[one.value]

    def column(self, column: int) -> Array:
        """Return a whole column over the iterations that are known, in the type of its value, where that is numpy's.

        UsageError where it has more than MOST_CELLS numbers.
        """
        value, place = self._place(column)
        matrix = value.matrix()
        if matrix is not None:
            return matrix[: self.total, place]
        total = self.total
        if total > MOST_CELLS:
            raise UsageError(f"{total:,} iterations are too many to be sorted or filtered; name fewer, as x@0:1000000")
        whole = self._whole
        known = whole.get(column)
        if known is None or len(known) < total:
            known = whole[column] = self._read_column(value, place, total)
        whole.move_to_end(column)
        while len(whole) > 1 and sum(one.size for one in whole.values()) > MOST_CELLS:
            whole.popitem(last=False)
        return known[:total]

    def own_type(self, column: int) -> np.dtype[Any] | None:
        """Return the type of a column's value, if the type is numpy's; else None.

        The column is an element of the value.
        """
        value, place = self._place(column)
        is_element = value.columns[place].index is not None
        return value.dtype if is_element and value.dtype is not None and is_of_numpy(value.dtype) else None

    def _read_column(self, value: GatheredValue, place: int, total: int) -> Array:
        ((numbers, known),) = self._numbers([value.number], self.topic.begin, self.topic.begin + total)
        return with_gaps(numbers[:, place], known)

    def _numbers(self, values: Sequence[int], begin: int, end: int) -> list[tuple[Array, Array]]:
        """Read values of one graph again: of each the numbers, and in which iterations there are any. Raise Paused."""
        parts: list[list[tuple[Array, Array]]] = [[] for _ in values]

        def take(_begin: int, batch: Batch) -> bool:
            for part, number, found in zip(parts, values, batch, strict=True):
                part.append(self._values[number].numbers(found))
            return False

        self._read_all(self._course(values, begin, end), take)
        return [
            (np.concatenate([one for one, _ in part]), np.concatenate([known for _, known in part])) for part in parts
        ]

    def row(self, iteration: int, columns: Sequence[int]) -> dict[int, Any]:
        """Return the numbers of an iteration; None: there is none."""
        row = iteration - self.topic.begin
        self._fetch(columns, [row])
        return {column: self.cells(column, [row])[0] for column in columns}

    def row_elsewhere(self, timeline: Timeline, outer: Outer, iteration: int, columns: Sequence[int]) -> dict[int, Any]:
        """Return the numbers of an iteration of another run of the loop, or of another branch; None: there is none."""
        found: dict[int, Any] = dict.fromkeys(columns)
        wanted = {self.columns[column].value for column in columns if column < len(self.columns)}

        for group in self._groups:
            numbers = [number for number in group if number in wanted]
            taken: list[Batch] = []

            def take(_begin: int, batch: Batch, taken: list[Batch] = taken) -> bool:
                taken.append(batch)
                return False

            if numbers and self._course(numbers, iteration, iteration + 1, outer).read(timeline, take) and taken:
                for number, values in zip(numbers, taken[0], strict=True):
                    with suppress(UnevenValue):
                        row, known = self._values[number].numbers(values)
                        places = enumerate(row[0].tolist() if known[0] else (), self._offsets[number])
                        found |= {column: one for column, one in places if column in found}
        return found

    def number_in(self, column: int, value: Array) -> Any:
        """Return the number of a column in another value of its kind; None where that has another shape."""
        gathered, place = self._place(column)
        with suppress(UnevenValue):
            row, _ = gathered.numbers([value])
            return row[0].tolist()[place]
        return None

    def value_at(self, column: int, iteration: int, elsewhere: OtherRun | None = None) -> Value:
        """Return the whole value of a cell, or of the same row in another run; None: there is none.

        The number of the cell is one element of the value, or a statistic.
        """
        taken: list[Value] = []

        def take(_begin: int, batch: Batch) -> bool:
            taken.append(batch[0][0])
            return False

        timeline, outer = elsewhere or (self.timeline, None)
        self._read_all(self._course([self.columns[column].value], iteration, iteration + 1, outer), take, timeline)
        return taken[0] if taken else None

    def address_of(self, column: int, iteration: int) -> Address:
        """Return the address of a cell, as a prompt accepts it wherever the run stands."""
        one = self.columns[column]
        value = self.topic.values[one.value]
        is_loop = bool(self.topic.body.path)
        address = address_in_run(value.address, self.topic.body, self.outer, iteration if is_loop else None)
        return replace(address, index=one.index or ())

    def _read_all(
        self, course: IterationReader, take: Callable[[int, Batch], bool], timeline: Timeline | None = None
    ) -> None:
        if not course.read(timeline or self.timeline, take):
            raise Paused

    def known(self, column: int) -> Array | None:
        """Return in which iterations a column has a number; None: in all."""
        value, _ = self._place(column)
        known = value.known()
        return None if known is None else known[: self.total]

    def cells(self, column: int, rows: Sequence[int]) -> list[Any]:
        """Return the numbers of a column in some rows, counted from the first iteration of the table; None: none."""
        value, place = self._place(column)
        matrix, total = value.matrix(), self.total
        if matrix is not None:
            known = value.known()
            return [
                matrix[row, place].item() if 0 <= row < total and (known is None or known[row]) else None
                for row in rows
            ]
        found: list[Any] = []
        for row in rows:
            numbers, known = self._blocks[value.number, row // _BLOCK] if 0 <= row < total else (None, None)
            is_there = numbers is not None and known is not None and known[row % _BLOCK]
            found.append(numbers[row % _BLOCK, place].item() if numbers is not None and is_there else None)
        return found

    def _fetch(self, columns: Sequence[int], rows: Sequence[int]) -> None:
        """Have the blocks of these cells read, where the numbers are not kept: from the first to the last."""
        total, begin = self.total, self.topic.begin
        blocks = sorted({row // _BLOCK for row in rows if 0 <= row < total})
        numbers = dict.fromkeys(self.columns[column].value for column in columns)
        wanted = [number for number in numbers if not self._values[number].keeps]
        for block in blocks:
            missing = [number for number in wanted if (number, block) not in self._blocks]
            for group in self._groups:
                asked = [number for number in group if number in missing]
                if asked:
                    end = min((block + 1) * _BLOCK, total)
                    found = self._numbers(asked, begin + block * _BLOCK, begin + end)
                    self._blocks |= {(number, block): one for number, one in zip(asked, found, strict=True)}
        kept = {(number, block) for number in wanted for block in blocks}
        while sum(one.size for one, _ in self._blocks.values()) > _MOST_BLOCK_CELLS:
            oldest = next((key for key in self._blocks if key not in kept), None)
            if oldest is None:
                break
            del self._blocks[oldest]

    # --- rows ------------------------------------------------------------------------------------------------------

    def order(self, sort: SheetSort | None, filter: str = "") -> Array:
        """Return the rows that pass the filter, in the order of the screen, counted from the first iteration.

        ExpressionError for a filter that is none; Paused where the column that sorts could not be read.
        """
        total, mask, asked = self.total, None, self.total
        if filter:
            # Which of the rows pass; only as many rows as were asked so far
            if self._filter is None or self._filter.text != filter:
                self._filter = RowFilter(self, filter)
            self._filter.go_on(self, perf_counter() + _AT_ONCE)
            mask = self._filter.mask
            asked = len(mask)
        key = total, asked, sort, filter
        if self._order is not None and self._order[0] == key:
            return self._order[1]
        rows: Array = np.arange(total) if mask is None else np.flatnonzero(mask)
        if sort is not None and sort.column < len(self.columns):
            numbers = with_gaps(self.column(sort.column), self.known(sort.column))[rows]
            places = np.argsort(numbers, kind="stable")
            if sort.descending:  # equal ones stay in the order of the run
                places = len(numbers) - 1 - np.argsort(numbers[::-1], kind="stable")[::-1]
            rows = rows[places]
        self._order = key, rows
        return rows

    def place_of(self, iteration: int, sort: SheetSort | None = None, filter: str = "") -> int | None:
        """Return at which place an iteration stands; None where the filter leaves it out."""
        found = np.flatnonzero(self.order(sort, filter) == iteration - self.topic.begin)
        return int(found[0]) if found.size else None

    def search(
        self, condition: str, after: int, sort: SheetSort | None = None, filter: str = "", *, backward: bool = False
    ) -> int | None:
        """Return the next place after (or before) one at which a condition holds; None where there is none.

        Paused where not all rows could be asked.
        """
        rows = self.order(sort, filter)
        found = RowFilter(self, condition)
        while found.go_on(self, perf_counter() + _SEARCH):
            pass
        places = np.flatnonzero(found.mask[rows] if len(found.mask) >= self.total else np.zeros(0, bool))
        fitting = places[places < after][::-1] if backward else places[places > after]
        return int(fitting[0]) if fitting.size else None

    def _passing(self, column: int, test: Callable[[Array], Array]) -> Array:
        """Return in which rows a column passes a test; whole numbers pass none."""
        numbers, known = self.column(column), self.known(column)
        if numbers.dtype.kind != "f":
            return np.zeros(len(numbers), bool)
        return test(numbers) if known is None else test(numbers) & known

    def rows_with(self, test: Callable[[Array], Array]) -> Array:
        """Return in which rows any column passes a test."""
        found = np.zeros(self.total, bool)
        for column in range(len(self.columns)):
            found |= self._passing(column, test)
        return found

    def numbered(self, text: str) -> str:
        """Return a condition with `column_7` instead of each name of a bucket or statistic.

        Expressions lack such names.
        """
        named = [(one.name, number) for number, one in enumerate(self.columns) if one.index is None]
        for name, number in sorted(named, key=lambda pair: -len(pair[0])):
            if name in text:
                text = re.sub(rf"(?<![\w./`]){re.escape(name)}(?![\w.\[(])", f"column_{number}", text)
        return text

    def column_called(self, name: str, index: Indices) -> int | None:
        """Return the number of the column of an element, of a type that numpy computes with; None: there is none."""
        numbered = re.fullmatch(r"column_([0-9]{1,6})", name)
        if numbered is not None and not index and int(numbered[1]) < len(self.columns):
            return int(numbered[1])
        for value in self._values:
            if value.value.base != name or value.value.statistic or value.is_uneven:
                continue
            shape = value.whole_shape
            full = (*index, *(0 for size in shape[len(index) :] if size == 1))
            if len(full) != len(shape) or any(not -size <= at < size for at, size in zip(full, shape, strict=True)):
                continue
            wanted = tuple(at % size for at, size in zip(full, shape, strict=True))
            place = next((k for k, column in enumerate(value.columns) if column.index == wanted), None)
            if place is not None and value.dtype is not None and is_of_numpy(value.dtype):
                return self._offsets[value.number] + place
        return None

    def place_called(self, address: Address) -> Target | None:
        """Return the place of the value of a name of this table."""
        name = str(address)
        values = (one for one in self.topic.values if one.base == name)
        return next((one.target for one in values), None)

    def column_named(self, text: str) -> int | None:
        """Return the number of a column by its name or its value's, by how that begins, or by its element: `[0,3]`."""
        plain = text.replace(" ", "")
        names = [column.name for column in self.columns]
        if plain in names:
            return names.index(plain)
        of = next((place for place, column in enumerate(self.columns) if plain and column.of == plain), None)
        if of is not None:
            return of
        is_element = plain.startswith("[")
        fits = str.endswith if is_element else str.startswith
        return next((place for place, name in enumerate(names) if plain and fits(name, plain)), None)

    # --- what is asked for -----------------------------------------------------------------------------------------

    def view(self, request: SheetRequest) -> SheetView:
        """Return the known part of a request for the table. Paused if not all of it could be read."""
        self._settle_columns()
        problem, rows = "", np.arange(self.total)
        try:
            rows = self.order(request.sort, request.filter)
        except ExpressionError as error:
            problem = error.problem
        except UsageError as error:
            problem = str(error)
        top = max(0, min(request.top, len(rows) - 1))
        window = rows[top : top + request.rows].tolist()
        begin = self.topic.begin
        columns = [column for column in request.columns if column < len(self.columns)]
        detail = request.detail if request.detail is not None and request.detail < len(self.columns) else None
        self._fetch(columns, window)
        rows_are = self.total, len(rows), None if self._order is None else self._order[0]
        if rows_are != self._parts_of or len(self._parts) > _MOST_PARTS:
            self._parts_of, self._parts = rows_are, {}
        cheap = [column for column in columns if self._is_cheap(column)]
        return SheetView(
            request=request,
            topic=self.topic,
            outer=self.outer,
            forms=tuple(value.form for value in self._values),
            columns=self.columns,
            begin=begin,
            total=self.total,
            complete=self.is_complete,
            failure=next((course.failure for course in self._courses if course.failure), ""),
            passed=len(rows),
            filtered=self.total if self._filter is None or not request.filter else len(self._filter.mask),
            top=top,
            iterations=tuple(row + begin for row in window),
            numbers={
                column: self._part(("numbers", column, *window), partial(self.cells, column, window))
                for column in columns
            },
            facts={column: value.facts(place) for column in columns for value, place in [self._place(column)]},
            courses={column: self._part(("course", column), partial(self._course_of, column)) for column in cheap},
            detail=None if detail is None or not self._is_cheap(detail) else self._detail(detail, rows),
            bins={
                column: self._part(("bins", column, request.bins), partial(self._bins, column, rows, request.bins))
                for column in cheap
            },
            problem=problem,
        )

    def _part(self, key: tuple[Any, ...], made: Callable[[], Any]) -> Any:
        """Return a part of a column as it was shown before, made anew where the rows have changed since."""
        if key not in self._parts:
            self._parts[key] = made()
        return self._parts[key]

    def _course_of(self, column: int) -> Array:
        return course_of(with_gaps(self.column(column), self.known(column)))

    def _bins(self, column: int, rows: Array, bounds: Indices) -> tuple[ColumnBin | None, ...]:
        known = self.known(column)
        return bins_of(self.column(column)[rows], None if known is None else known[rows], bounds)

    def _is_cheap(self, column: int) -> bool:
        """True if a whole column is at hand."""
        return self._values[self.columns[column].value].keeps or column in self._whole

    def _detail(self, column: int, rows: Array) -> ColumnDetail:
        key = column, self.total, len(rows), None if self._order is None else self._order[0]
        if self._described is None or self._described[0] != key:
            self._described = key, detail_of(column, self.column(column), self.known(column), rows)
        return self._described[1]


class OtherRun(NamedTuple):
    """Another run of the loop: in another branch, or in other iterations of the loops around it."""

    timeline: Timeline
    outer: Outer


class HeldRow(Record):
    """The row of A: the iteration, its numbers by column (None: none), and why there are none.

    `is_elsewhere`: it is in another branch, or in another run of the loop, so it is no row of the table.
    """

    kind: MomentKind
    iteration: int | None = None
    numbers: dict[int, Any] = field(default_factory=dict)
    problem: str = ""
    is_elsewhere: bool = False


class SheetLook(Record, eq=False):
    """A view of a table, and A."""

    view: SheetView
    a: HeldRow | None


def look_at(debugger: Debugger, sheet: Sheet, request: SheetRequest, row: int | None = None) -> SheetLook:
    """Return a part of a table with the rows that are held; `row` is the iteration of the cursor."""
    view = sheet.view(request)  # after an edit it has other columns than were asked for
    a = None if debugger.pinned is None else _row_of(debugger, debugger.pinned, sheet, tuple(view.numbers), row)
    if a is not None and a.iteration is not None and not a.is_elsewhere:
        is_none = view.complete and a.iteration >= view.begin + view.total
        problem = f"the loop has no iteration {a.iteration:,}" if is_none else ""
        a = replace(a, numbers=sheet.row(a.iteration, list(view.numbers)), problem=problem)
    return SheetLook(view, a)


def iteration_now(sheet: Sheet) -> int | None:
    """Return the iteration in which the run stands; None where that is in no run of the table."""
    topic, stack = sheet.topic, sheet.timeline.machine.stack
    depth = len(topic.body.path)
    if depth >= len(stack) or stack[depth].program is not topic.body or outer_now(stack[: depth + 1]) != sheet.outer:
        return None
    return iteration_of(stack[depth])


def _row_of(debugger: Debugger, moment: Moment, sheet: Sheet, columns: Indices, at: int | None) -> HeldRow:
    if moment.kind is MomentKind.REFERENCE:
        return _row_of_reference(debugger, sheet, columns, at)
    found = _held_at(debugger, moment, sheet, at)
    if isinstance(found, HeldRow):
        return found
    iteration, elsewhere = found
    if elsewhere is None:
        return HeldRow(moment.kind, iteration)
    numbers = sheet.row_elsewhere(*elsewhere, iteration, columns)
    return HeldRow(moment.kind, iteration, numbers, is_elsewhere=True)


def _held_at(debugger: Debugger, moment: Moment, sheet: Sheet, at: int | None) -> tuple[int, OtherRun | None] | HeldRow:
    """Return the iteration of A for an iteration of the table, and the run if it is another; else why there is none."""
    kind, path, outer, iteration = moment.kind, sheet.topic.body.path, sheet.outer, at
    if kind is MomentKind.BEFORE:
        iteration = None if at is None or at < 1 else at - 1
    elif kind is MomentKind.ITERATION:
        place = moment.place[: len(path)]
        if not place or [step.layer for step in place] != [layer.id for layer in path]:
            return HeldRow(kind, problem="A is in a loop that does not run here")
        outer, iteration = tuple(step.iteration for step in place[:-1]), place[-1].iteration
    if iteration is None:
        return HeldRow(kind, problem="there is no such iteration")
    branch = moment.branch or debugger.branches.name
    if branch == debugger.branches.name and outer == sheet.outer:
        return iteration, None
    if branch not in debugger.branches:
        return HeldRow(kind, problem=f"there is no branch '{branch}' any more")
    timeline = debugger.timeline if branch == debugger.branches.name else debugger.branches.timeline(branch)
    return iteration, OtherRun(timeline, outer)


def held_value(debugger: Debugger, sheet: Sheet, column: int, at: int) -> Value:
    """Return the whole value of A for a cell; None: there is none. Paused where something else was asked for."""
    moment = debugger.pinned
    if moment is None:
        return None
    if moment.kind is MomentKind.REFERENCE:
        reference = debugger.reference
        with suppress(StepperError):
            return None if reference is None else reference.value_at(_place_of(sheet, column, at))
        return None
    found = _held_at(debugger, moment, sheet, at)
    return None if isinstance(found, HeldRow) else sheet.value_at(column, *found)


def _place_of(sheet: Sheet, column: int, at: int) -> ValuePlace:
    """Return where a reference has the value of a cell."""
    topic = sheet.topic
    target, inside = topic.values[sheet.columns[column].value].target, (*sheet.outer, at) if topic.body.path else ()
    path = path_to(target.program, chain(inside, repeat(None)), sheet.timeline.machine.compiled)
    return ValuePlace(path, target.layer, target.output)


def _row_of_reference(debugger: Debugger, sheet: Sheet, columns: Indices, at: int | None) -> HeldRow:
    """Return the numbers of the reference in an iteration."""
    kind, reference = MomentKind.REFERENCE, debugger.reference
    if reference is None or at is None:
        return HeldRow(kind, problem="there is no reference, or no iteration")
    numbers: dict[int, Any] = {}
    for column in (one for one in columns if one < len(sheet.columns)):
        try:
            value = reference.value_at(_place_of(sheet, column, at))
        except StepperError as error:
            return HeldRow(kind, at, problem=str(error))
        numbers[column] = None if value is None else sheet.number_in(column, value)
    return HeldRow(kind, at, numbers, is_elsewhere=True)


def csv_lines(sheet: Sheet, columns: Sequence[int], sort: SheetSort | None, filter: str = "") -> Iterator[str]:
    """Yield the lines of a table: the names of its columns after `@`, then each row with its iteration.

    A number is written with as many digits as tell it from its neighbours in its own type; one that is not there is
    empty.
    """
    rows = sheet.order(sort, filter)
    yield ",".join(["@", *(_quoted(sheet.columns[column].name) for column in columns)]) + "\n"
    numbers = [(sheet.column(column), sheet.known(column), sheet.own_type(column)) for column in columns]
    for row in rows.tolist():
        cells = [
            _written(values[row], dtype) if known is None or known[row] else "" for values, known, dtype in numbers
        ]
        yield ",".join([str(row + sheet.topic.begin), *cells]) + "\n"


def array_of(sheet: Sheet, columns: Sequence[int], sort: SheetSort | None = None, filter: str = "") -> Array:
    """Return the numbers [row, column] of a table in the type that all of its columns fit into; NaN where none is."""
    rows = sheet.order(sort, filter)
    if not columns:
        return np.zeros((len(rows), 0))
    found = []
    for column in columns:
        values, known, own = sheet.column(column), sheet.known(column), sheet.own_type(column)
        part = values[rows] if own is None else values[rows].astype(own)
        if known is not None and not known[rows].all():
            part = np.where(known[rows], part, np.nan)
        found.append(part)
    return np.stack(found, axis=1)


def save(
    sheet: Sheet,
    path: str,
    columns: Sequence[int],
    sort: SheetSort | None = None,
    filter: str = "",
    *,
    protected: ProtectedFiles,
) -> int:
    """Write a table into a file that ends in .csv or .npy; return how many rows it has. UsageError, OutputError."""
    suffix = Path(path).suffix
    if suffix not in (".csv", ".npy"):
        raise UsageError(f"'{path}' is neither a .csv nor a .npy file")
    target = OutputFile(Path(path), ARRAY if suffix == ".npy" else CSV, protected)
    target.check()
    if suffix == ".npy":
        numbers = array_of(sheet, columns, sort, filter)
        with target.writing() as file:
            np.save(file, numbers, allow_pickle=False)
        return len(numbers)
    count = -1
    with target.writing() as file:
        for line in csv_lines(sheet, columns, sort, filter):
            file.write(line.encode())
            count += 1
    return count


def _written(number: Any, own: np.dtype[Any] | None) -> str:
    if own is None:
        return str(number.item())
    if own.kind == "b":
        return "true" if number else "false"
    return str(own.type(number))


def _quoted(name: str) -> str:
    name = cell(name)
    return '"' + name.replace('"', '""') + '"' if any(letter in name for letter in ',"\n') else name
