"""The iterations of one body, collected in memory and written many at a time."""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.debug.recording.batch_statistics import as_sql, batch_statistics
from stepper.debug.recording.blobs import BlobWriter
from stepper.debug.recording.levels import Level, Port
from stepper.debug.recording.schema import RUN_LENGTH
from stepper.debug.recording.stacking import Stack, stacks
from stepper.element_types import Array
from stepper.ops.axes import shape_text

_MOST_ROWS: Final = 1024
_MOST_BYTES: Final = 4 * 2**20
_ROWS_AT_ONCE: Final = 32


Row = tuple[int, int | None, int, list[Any]]
"""An iteration: its activation, its number there, its tick, and the values of all slots."""


class Batch:
    """Iterations of one level that wait to be written."""

    __slots__ = ("full", "level", "rows")

    def __init__(self, level: Level) -> None:
        self.level = level
        self.rows: list[Row] = []
        self.full = 1
        """How many rows may come before `is_full` is to be asked."""

    def is_full(self) -> bool:
        """Whether to write now. As values may grow, the question comes again after as many rows as there are."""
        count = len(self.rows)
        row = sum(value.nbytes for value in self._values(self.rows[-1][3]))
        if count >= _MOST_ROWS or count * row >= _MOST_BYTES:
            return True
        self.full = min(2 * count, _MOST_ROWS)
        return False

    def _values(self, row: list[Any]) -> Iterator[Any]:
        return (row[port.slot] for port in self.level.ports if row[port.slot] is not None)

    def clear(self) -> None:
        """Begin anew."""
        self.rows.clear()
        # What the last batch took tells what this one may: a body whose values are small is not asked at every row.
        self.full = max(1, self.full // 2)


class BatchWriter:
    """Writes batches into the tables iterations, numbers, tensors and stacks."""

    def __init__(self, connection: sqlite3.Connection, blobs: BlobWriter, iterations: int) -> None:
        self._connection, self._blobs = connection, blobs
        self.iterations = iterations
        self._forms: dict[tuple[np.dtype[Any], tuple[int, ...]], int] = {}

    def write(self, batch: Batch) -> None:
        """Write all rows of a batch and clear it."""
        if not batch.rows:
            return
        first = self.iterations + 1
        self.iterations += len(batch.rows)
        activations, iterations, ticks, values = zip(*batch.rows, strict=True)
        rows = zip(range(first, self.iterations + 1), activations, iterations, ticks, strict=True)
        insert_many(self._connection, "iterations", 4, rows)
        for port in batch.level.ports:
            slot = port.slot
            for stack in stacks([row[slot] for row in values]):
                self._write(port, first, stack)
        batch.clear()

    def _write(self, port: Port, first: int, stack: Stack) -> None:
        begin = first + stack.first
        form = self._form(stack.tensor)
        tensor = stack.tensor
        if _is_number(tensor):
            numbers = _numbers(tensor) * (stack.count if stack.repeated else 1)
            insert_many(self._connection, "numbers", 4 + RUN_LENGTH, _runs(port.id, form, begin, numbers))
        else:
            statistics = batch_statistics(tensor) * (stack.count if stack.repeated else 1)
            rows = ((port.id, form, begin + index, *row) for index, row in enumerate(statistics))
            insert_many(self._connection, "tensors", 10, rows)
        if port.stored:
            blob = self._blobs.store(tensor)
            row = (port.id, begin, stack.count, stack.repeated, blob)
            self._connection.execute("INSERT INTO stacks VALUES (?, ?, ?, ?, ?)", row)

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
        """What was written was taken back: ids of forms may be free again."""
        self._forms.clear()


def _is_number(stack: Array) -> bool:
    one = math.prod(stack.shape[1:]) == 1
    return one and (stack.dtype.kind in "biuf" or element_types.is_floating(stack.dtype)) and not stack.dtype.names


def _numbers(stack: Array) -> list[Any]:
    flat = stack.reshape(-1)
    if flat.dtype.isbuiltin != 1:
        flat = flat.astype(np.float32)
    found: list[Any] = flat.tolist()
    return [as_sql(number) for number in found] if flat.dtype == np.uint64 else found


def _runs(port: int, form: int, first: int, numbers: list[Any]) -> Iterator[tuple[Any, ...]]:
    whole = len(numbers) - len(numbers) % RUN_LENGTH
    for begin in range(0, whole, RUN_LENGTH):
        yield (port, form, first + begin, RUN_LENGTH, *numbers[begin : begin + RUN_LENGTH])
    if rest := numbers[whole:]:
        yield (port, form, first + whole, len(rest), *rest, *[None] * (RUN_LENGTH - len(rest)))


def insert_many(connection: sqlite3.Connection, table: str, width: int, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows, many with each statement: half of the time of an INSERT goes into carrying it out at all."""
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, _ROWS_AT_ONCE)):
        connection.execute(_insertion(table, width, len(batch)), list(itertools.chain.from_iterable(batch)))


@lru_cache(maxsize=256)
def _insertion(table: str, width: int, count: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * count)}"
