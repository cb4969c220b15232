"""A table as text and as files: CSV with a line an iteration, and .npy with the numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.debug.table.sheet import Sheet
from stepper.debug.table.views import SheetSort
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.files.kinds import ARRAY, CSV
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.plain_values import cell


def csv_lines(sheet: Sheet, columns: Sequence[int], sort: SheetSort | None = None, filter: str = "") -> Iterator[str]:
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
