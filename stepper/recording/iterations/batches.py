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
from stepper.recording.hashes import with_checksum
from stepper.recording.iterations.levels import GraphLevel, RecordedPort
from stepper.recording.iterations.row_forms import VALUES, NumberRows, ValueRows, keeps_shapes, number_rows
from stepper.recording.iterations.stacks import Stack, WrittenStack, WrittenStacks, are_same, is_constant, stacks
from stepper.recording.schema import RUN_LENGTH, as_sql
from stepper.tensors.statistics import RECORDED, recorded_columns

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

    __slots__ = (
        "_changes",
        "_columns",
        "_keeps_shapes",
        "form",
        "full",
        "level",
        "runs",
        "take",
        "taps",
        "ticks",
        "values",
    )

    def __init__(self, level: GraphLevel) -> None:
        self.level = level
        self.ticks: list[int] = []
        self.values: list[Any] = []
        self.runs: list[Run] = []
        self.take = _taking([port.slot for port in level.ports])
        """Out of the values of all slots those of the level's ports."""
        self.form: NumberRows | ValueRows | None = None
        """Where there is one, the values are handed to `taps` and not appended; without ticks."""
        self._columns: list[Any] = []
        self.taps: list[tuple[Callable[[Any], object], int]] = []
        """(function, slot) pairs."""
        self._changes = 0
        self._keeps_shapes = keeps_shapes(level.program)
        self.full = 1
        """How many rows may come before `is_full` is to be asked."""

    def form_of(self, frame: Frame) -> NumberRows | ValueRows | None:
        """Return the form in which the values of a frame that has just closed an iteration are kept."""
        if not self.level.program.straight:
            return None
        usual = self.form if isinstance(self.form, NumberRows) else None
        found = number_rows(frame, self.take, usual) if self._keeps_shapes else None
        return VALUES if found is None else found

    def turn_to(self, form: NumberRows | ValueRows | None) -> None:
        """Keep what comes next in this form. There must be nothing yet in another one."""
        assert not self.count
        self.form = form
        ports = self.level.ports if form is not None else ()
        if isinstance(form, NumberRows):
            numbers = [bytearray() for _ in ports]
            self._columns, adding = numbers, [column.extend for column in numbers]
        else:
            lists: list[list[Any]] = [[] for _ in ports]
            self._columns, adding = lists, [column.append for column in lists]
        self.taps = [(add, port.slot) for add, port in zip(adding, ports, strict=True)]
        self._changes += 1
        self._keeps_shapes &= self._changes < _MOST_CHANGES

    def columns(self) -> Iterable[Sequence[Any] | Stack]:
        """Return for each port the values of all iterations, of numbers joined."""
        if self.form is None:
            return zip(*self.values, strict=True)
        if isinstance(self.form, ValueRows):
            return self.form.values(self._columns)
        return [Stack(0, len(column), column, False) for column in self.form.tensors(self._columns)]

    @property
    def count(self) -> int:
        """The number of iterations."""
        return len(self.values) if self.form is None else self.form.count(self._columns)

    def begin(self, activation: int, iteration: int | None, tick: int) -> None:
        """Have what comes next be this iteration, and those after it."""
        following = self._next()
        if iteration is None or following is None or following[:2] != (activation, iteration):
            self.runs.append((self.count, activation, iteration, tick))

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
        count = self.count - first
        return activation, None if iteration is None else iteration + count, tick + count * self.step

    @property
    def room(self) -> int:
        """How many rows there may be before `is_full` is to be asked; at least one."""
        most = _MOST_ROWS_OF_NUMBERS if isinstance(self.form, NumberRows) else self.full
        return max(most - self.count, 1)

    def is_full(self) -> bool:
        """Return True if to write now. As values may grow, the question comes again after as many rows as there are."""
        count, most, size = self.count, _MOST_ROWS, 0
        if isinstance(self.form, NumberRows):
            most = _MOST_ROWS_OF_NUMBERS
        else:
            newest = self.values[-1] if self.form is None else [column[-1] for column in self._columns]
            size = sum(value.nbytes for value in newest if value is not None)
        if count >= most or count * size >= _MOST_BYTES:
            return True
        self.full = min(2 * count, most)
        return False

    def clear(self) -> None:
        """Begin anew, in the middle of the last run."""
        following = self._next()
        self.ticks.clear()
        self.values.clear()
        for column in self._columns:
            column.clear()
        self.runs = [] if following is None else [(0, *following)]
        # What the last batch took tells what this one may: a body whose values are small is not asked at every row.
        self.full = max(1, self.full // 2)


def _taking(slots: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    if len(slots) == 1:
        (slot,) = slots
        return lambda values: (values[slot],)
    return itemgetter(*slots)


class BatchWriter:
    """Writes batches into the tables runs, numbers and tensors with their series, and stacks."""

    def __init__(self, connection: sqlite3.Connection, blobs: BlobWriter, iterations: int) -> None:
        self._connection, self._blobs = connection, blobs
        self.iterations = iterations
        self._forms: dict[tuple[np.dtype[Any], tuple[int, ...]], int] = {}
        self._rows: dict[str, int] = {}
        self._same: dict[int, tuple[Array, int, int]] = {}
        """By port the value that was the same in all iterations of a batch, how many, and where its rows begin."""

    def write(self, batch: Batch) -> None:
        """Write all rows of a batch and clear it."""
        count = batch.count
        if not count:
            return
        first = self.iterations + 1
        self.iterations += count
        insert_many(self._connection, "runs", 7, map(with_checksum, _even_runs(first, batch)))
        columns = WrittenStacks()
        found = zip(batch.level.ports, batch.columns(), strict=True)
        for port, values in sorted(found, key=lambda one: one[0].position < 0):  # Parameters last: they are carried
            if isinstance(values, Stack):
                self._write(port, first, values, columns)
                continue
            known = columns.find_objects(values)
            if known is not None and (known[0].blob is not None or not port.stored):
                self._write(port, first, Stack(0, count, np.asarray(values[0])[None], False), columns, known)
                continue
            for stack in stacks(values):
                column = self._write(port, first, stack, columns)
                if column is not None and stack.count == count:
                    columns.add_objects(values, column)
        batch.clear()

    def _write(
        self,
        port: RecordedPort,
        first: int,
        stack: Stack,
        columns: WrittenStacks,
        known: tuple[WrittenStack, int] | None = None,
    ) -> WrittenStack | None:
        """Return the column that now has the values.

        Where it is `known` already, `stack` need not have more than the first value.
        """
        begin, form = first + stack.first, self._form(stack.tensor)
        series = "number_series" if _is_number(stack.tensor) else "tensor_series"

        def refer(begin: int, count: int, start: int) -> None:
            self._connection.execute(
                f"INSERT INTO {series} VALUES (?, ?, ?, ?, ?, ?)", with_checksum((port.id, form, begin, count, start))
            )

        def keep(begin: int, count: int, blob: int) -> None:
            row = (port.id, form, begin, count, int(stack.repeated), blob, 0)
            self._connection.execute("INSERT INTO stacks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", with_checksum(row))

        tensor = stack.tensor
        if stack.repeated:
            refer(begin, stack.count, self._same_rows(port, tensor, stack.count))
            if port.stored:
                keep(begin, stack.count, self._blobs.store(tensor))
            return None
        column, shift = known or columns.find(tensor) or (None, 0)
        if column is None:
            is_constant_number = _is_number(tensor) and len(tensor) > 1 and is_constant(tensor)
            start = self._same_rows(port, tensor[:1], len(tensor)) if is_constant_number else self._add_rows(tensor)
            column = columns.add(tensor, start)
        elif shift:
            refer(begin, 1, self._add_rows(tensor[:1]))
        refer(begin + shift, stack.count - shift, column.start)
        if port.stored and shift and column.blob is not None:
            keep(begin, 1, self._blobs.store(tensor[:1]))
            keep(begin + 1, stack.count - 1, column.blob)
        elif port.stored and shift:
            keep(begin, stack.count, self._blobs.store(tensor))
        elif port.stored:
            column.blob = self._blobs.store(tensor) if column.blob is None else column.blob
            keep(begin, stack.count, column.blob)
        return None if shift else column

    def _same_rows(self, port: RecordedPort, tensor: Array, count: int) -> int:
        """Return where `count` rows of one and the same value begin: those of the last batch, if it had as many."""
        known = self._same.get(port.id)
        if known is not None and count <= known[1] and are_same(known[0], tensor):
            return known[2]
        start = self._add_rows(tensor, count)
        self._same[port.id] = tensor, count, start
        return start

    def _add_rows(self, tensor: Array, times: int = 1) -> int:
        """Add what is kept of each value of a stack, of all `times` over. Return where it begins."""
        if _is_number(tensor):
            row = self._row_after("numbers")
            found = _runs(row, _numbers(tensor).repeat(times))
            self._rows["numbers"] = row + insert_many(self._connection, "numbers", 2 + RUN_LENGTH, found)
            return row * RUN_LENGTH
        row = self._row_after("tensors")
        count = len(tensor) * times
        kept = recorded_columns(tensor)
        if tensor.dtype == np.uint64:
            kept = [list(map(as_sql, column)) for column in kept]
        rows = map(with_checksum, zip(range(row, row + count), *(column * times for column in kept), strict=True))
        insert_many(self._connection, "tensors", 2 + len(RECORDED), rows)
        self._rows["tensors"] = row + count
        return row

    def _row_after(self, table: str) -> int:
        """Return the id of the next row."""
        if table not in self._rows:
            (self._rows[table],) = self._connection.execute(f"SELECT coalesce(max(id) + 1, 0) FROM {table}").fetchone()
        return self._rows[table]

    def _form(self, stack: Array) -> int:
        key = (stack.dtype, stack.shape[1:])
        form = self._forms.get(key)
        if form is None:
            row = (element_types.name_of(stack.dtype), shape_text(stack.shape[1:]))
            found = self._connection.execute("SELECT id FROM forms WHERE dtype = ? AND shape = ?", row).fetchone()
            if found is None:
                found = self._connection.execute("SELECT coalesce(max(id), 0) + 1 FROM forms").fetchone()
                self._connection.execute("INSERT INTO forms VALUES (?, ?, ?, ?)", with_checksum((*found, *row)))
            form = self._forms[key] = int(found[0])
        return form


def _even_runs(first: int, batch: Batch) -> Iterator[tuple[Any, ...]]:
    """Yield the runs of a batch as rows of the table, parted where the ticks between two iterations are others."""
    ticks = batch.ticks
    ends = [*(run[0] for run in batch.runs[1:]), batch.count]
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


def _runs(row: int, numbers: Array) -> Iterator[tuple[Any, ...]]:
    found = numbers.tolist()
    if numbers.dtype == np.uint64:
        found = list(map(as_sql, found))
    elif numbers.dtype.kind == "f" and np.isnan(numbers).any():
        found = [None if number != number else number for number in found]  # as SQLite keeps it
    for index, begin in enumerate(range(0, len(found), RUN_LENGTH), row):
        part = found[begin : begin + RUN_LENGTH]
        yield with_checksum((index, *part, *[None] * (RUN_LENGTH - len(part))))


def insert_many(connection: sqlite3.Connection, table: str, width: int, rows: Iterable[Sequence[Any]]) -> int:
    """Insert rows, many with each statement: half of the time of an INSERT goes into carrying it out at all.

    Return how many.
    """
    iterator, count = iter(rows), 0
    while batch := list(itertools.islice(iterator, _ROWS_AT_ONCE)):
        connection.execute(_insertion(table, width, len(batch)), list(itertools.chain.from_iterable(batch)))
        count += len(batch)
    return count


@lru_cache(maxsize=256)
def _insertion(table: str, width: int, count: int = 1) -> str:
    row = f"({', '.join('?' * width)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * count)}"
