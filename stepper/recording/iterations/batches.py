"""The iterations of one body, collected in memory and written many at a time."""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.element_types import Array, is_of_numpy
from stepper.engine.frames import Frame
from stepper.ops.operands import shape_text
from stepper.recording.blobs import BlobWriter
from stepper.recording.iterations.levels import GraphLevel, RecordedPort
from stepper.recording.iterations.number_rows import NumberRows, keeps_shapes, number_rows
from stepper.recording.iterations.stacks import Stack, WrittenStacks, stacks
from stepper.recording.schema import RUN_LENGTH, as_sql
from stepper.tensors.statistics import RECORDED

_MOST_ROWS: Final = 1024
_MOST_ROWS_OF_NUMBERS: Final = 4096
_MOST_CHANGES: Final = 16
"""Of the form of a batch: each writes what there is, which is not worth it where it happens again and again."""
_MOST_BYTES: Final = 4 * 2**20
_ROWS_AT_ONCE: Final = 32


Row = tuple[int, int | None, int, tuple[Any, ...]]
"""An iteration: its activation, its number there, its tick, and the values of the level's ports."""

Run = tuple[int, int, int | None, int]
"""Iterations that follow one another in one activation: the index of the first, their activation, its number, its tick.
"""


class Batch:
    """Iterations of one level that wait to be written: the values of the level's ports, their ticks, and their runs.

    `begin` says of which run it is that `values` and `ticks` are appended to.
    """

    __slots__ = ("_changes", "_keeps_shapes", "form", "full", "level", "runs", "take", "ticks", "values")

    def __init__(self, level: GraphLevel) -> None:
        self.level = level
        self.ticks: list[int] = []
        self.values: list[Any] = []
        self.runs: list[Run] = []
        self.take = _taking([port.slot for port in level.ports])
        """Out of the values of all slots those of the level's ports."""
        self.form: NumberRows | None = None
        """Where there is one, the tuples that `take` gives are appended to `values` joined to bytes, without ticks."""
        self._changes = 0
        self._keeps_shapes = keeps_shapes(level.program)
        self.full = 1
        """How many rows may come before `is_full` is to be asked."""

    def form_of(self, frame: Frame) -> NumberRows | None:
        """Return the form in which the values of a frame that has just closed an iteration are kept."""
        return number_rows(frame, self.take, self.form) if self._keeps_shapes else None

    def turn_to(self, form: NumberRows | None) -> None:
        """Keep what comes next in this form. There must be nothing yet in another one."""
        assert not self.values
        self.form = form
        self._changes += 1
        self._keeps_shapes &= self._changes < _MOST_CHANGES

    def stacks(self) -> Iterator[Iterable[Stack]]:
        """Return for each port the values, joined."""
        if self.form is None:
            return map(stacks, zip(*self.values, strict=True))
        return ((Stack(0, len(column), column, False),) for column in self.form.columns(self.values))

    def begin(self, activation: int, iteration: int | None, tick: int) -> None:
        """Have what comes next be this iteration, and those after it."""
        following = self._next()
        if iteration is None or following is None or following[:2] != (activation, iteration):
            self.runs.append((len(self.values), activation, iteration, tick))

    def add(self, row: Row) -> None:
        """Add one iteration, which may follow any other."""
        activation, iteration, tick, values = row
        self.begin(activation, iteration, tick)
        self.ticks.append(tick)
        self.values.append(values)

    @property
    def step(self) -> int:
        """The ticks from one iteration to the next, in a body without nested graphs: begin, operations, close."""
        return len(self.level.program.code) + 2

    def _next(self) -> tuple[int, int | None, int] | None:
        """Return the activation and iteration that continue the last run; its tick, if all are `step` apart."""
        if not self.runs:
            return None
        first, activation, iteration, tick = self.runs[-1]
        count = len(self.values) - first
        return activation, None if iteration is None else iteration + count, tick + count * self.step

    def is_full(self) -> bool:
        """Return True if to write now. As values may grow, the question comes again after as many rows as there are."""
        count, row = len(self.values), self.values[-1]
        most = _MOST_ROWS if self.form is None else _MOST_ROWS_OF_NUMBERS
        size = len(row) if self.form is not None else sum(value.nbytes for value in row if value is not None)
        if count >= most or count * size >= _MOST_BYTES:
            return True
        self.full = min(2 * count, most)
        return False

    def clear(self) -> None:
        """Begin anew, in the middle of the last run."""
        following = self._next()
        self.ticks.clear()
        self.values.clear()
        self.runs = [] if following is None else [(0, *following)]
        # What the last batch took tells what this one may: a body whose values are small is not asked at every row.
        self.full = max(1, self.full // 2)


def _taking(slots: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    if len(slots) == 1:
        (slot,) = slots
        return lambda values: (values[slot],)
    return itemgetter(*slots)


class BatchWriter:
    """Writes batches into the tables runs, numbers, tensors and stacks."""

    def __init__(self, connection: sqlite3.Connection, blobs: BlobWriter, iterations: int) -> None:
        self._connection, self._blobs = connection, blobs
        self.iterations = iterations
        self._forms: dict[tuple[np.dtype[Any], tuple[int, ...]], int] = {}

    def write(self, batch: Batch) -> None:
        """Write all rows of a batch and clear it."""
        if not batch.values:
            return
        first = self.iterations + 1
        self.iterations += len(batch.values)
        insert_many(self._connection, "runs", 6, _even_runs(first, batch))
        columns = WrittenStacks()
        for port, found in zip(batch.level.ports, batch.stacks(), strict=True):
            for stack in found:
                self._write(port, first, stack, columns)
        batch.clear()

    def _write(self, port: RecordedPort, first: int, stack: Stack, columns: WrittenStacks) -> None:
        begin = first + stack.first
        form = self._form(stack.tensor)
        tensor, blob = stack.tensor, None
        if _is_number(tensor):
            numbers = _numbers(tensor)
            if stack.repeated:
                numbers = numbers.repeat(stack.count)
            insert_many(self._connection, "numbers", 4 + RUN_LENGTH, _runs(port.id, form, begin, numbers))
        else:
            column = columns.column(tensor)
            statistics = column.rows * (stack.count if stack.repeated else 1)
            if tensor.dtype == np.uint64:
                statistics = [tuple(map(as_sql, row)) for row in statistics]
            rows = ((port.id, form, begin + index, *row) for index, row in enumerate(statistics))
            insert_many(self._connection, "tensors", 3 + len(RECORDED), rows)
            if port.stored:
                blob = column.blob = self._blobs.store(tensor) if column.blob is None else column.blob
        if port.stored:
            blob = self._blobs.store(tensor) if blob is None else blob
            row = (port.id, form, begin, stack.count, stack.repeated, blob)
            self._connection.execute("INSERT INTO stacks VALUES (?, ?, ?, ?, ?, ?)", row)

    def _form(self, stack: Array) -> int:
        key = (stack.dtype, stack.shape[1:])
        form = self._forms.get(key)
        if form is None:
            row = (element_types.name_of(stack.dtype), shape_text(stack.shape[1:]))
            found = self._connection.execute("SELECT id FROM forms WHERE dtype = ? AND shape = ?", row).fetchone()
            if found is None:
                found = (self._connection.execute("INSERT INTO forms (dtype, shape) VALUES (?, ?)", row).lastrowid,)
            form = self._forms[key] = int(found[0])
        return form

    def forget(self) -> None:
        """Forget the ids of forms: the transaction that wrote them was rolled back."""
        self._forms.clear()


def _even_runs(first: int, batch: Batch) -> Iterator[tuple[Any, ...]]:
    """Yield the runs of a batch as rows of the table, parted where the ticks between two iterations are others."""
    ticks = batch.ticks
    ends = [*(run[0] for run in batch.runs[1:]), len(batch.values)]
    for (begin, activation, iteration, tick), end in zip(batch.runs, ends, strict=True):
        if batch.form is not None:
            if begin < end:
                yield first + begin, end - begin, activation, iteration, tick, batch.step
            continue
        number = 0 if iteration is None else iteration - begin
        while begin < end:
            step = ticks[begin + 1] - ticks[begin] if begin + 1 < end else 0
            count = _even(ticks, begin, end, step)
            yield first + begin, count, activation, None if iteration is None else number + begin, ticks[begin], step
            begin += count


def _even(ticks: list[int], begin: int, end: int, step: int) -> int:
    """Return how many ticks, from the first on, are `step` apart."""
    if step and ticks[end - 1] - ticks[begin] == step * (end - 1 - begin):
        whole = range(ticks[begin], ticks[end - 1] + 1, step)
        if ticks[begin:end] == list(whole):
            return end - begin
    count = 1
    while begin + count < end and ticks[begin + count] - ticks[begin + count - 1] == step:
        count += 1
    return count


def _is_number(stack: Array) -> bool:
    one = math.prod(stack.shape[1:]) == 1
    return one and (stack.dtype.kind in "biuf" or element_types.is_floating(stack.dtype)) and not stack.dtype.names


def _numbers(stack: Array) -> Array:
    """Return the numbers in a type that sqlite3 takes at once (a bool it does not)."""
    flat = stack.reshape(-1)
    if not is_of_numpy(flat.dtype):
        return flat.astype(np.float32)
    return flat.view(np.uint8) if flat.dtype == np.bool_ else flat


def _runs(port: int, form: int, first: int, numbers: Array) -> Iterator[list[Any]]:
    found = numbers.tolist()
    if numbers.dtype == np.uint64:
        found = list(map(as_sql, found))
    for begin in range(0, len(found), RUN_LENGTH):
        row = found[begin : begin + RUN_LENGTH]
        yield [port, form, first + begin, len(row), *row, *[None] * (RUN_LENGTH - len(row))]


def insert_many(connection: sqlite3.Connection, table: str, width: int, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows, many with each statement: half of the time of an INSERT goes into carrying it out at all."""
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, _ROWS_AT_ONCE)):
        connection.execute(_insertion(table, width, len(batch)), list(itertools.chain.from_iterable(batch)))


@lru_cache(maxsize=256)
def _insertion(table: str, width: int, count: int = 1) -> str:
    row = f"({', '.join('?' * width)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * count)}"
