"""The table of a sweep as a list: its columns, sorted by one of them, and filtered.

SweepListing(rows).shown(sort="iteration", filter="outcome=stopped iteration>7 wkv")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from stepper.errors import UsageError
from stepper.sweep.table_file import StoredRow
from stepper.wording import near_text

Cell = str | int | None

_COLUMNS: Final[dict[str, Callable[[StoredRow], Cell]]] = {
    "input": lambda stored: stored.number,
    "outcome": lambda stored: str(stored.row.outcome),
    "what": lambda stored: stored.row.what,
    "operation": lambda stored: stored.row.operation,
    "iteration": lambda stored: stored.row.iteration,
    "iterations": lambda stored: sum(loop.iterations for loop in stored.row.loops) if stored.row.loops else None,
    "name": lambda stored: stored.row.name,
    "type": lambda stored: stored.row.type,
    "text": lambda stored: stored.row.text,
}
COLUMNS: Final = tuple(_COLUMNS)
"""The columns: `iteration` is the one in which something shows, `iterations` those of all loops of a whole run."""

_TERM: Final = re.compile(r"([a-z]+)(=|!=|<=|>=|<|>)(.*)")


class Listed(Struct, frozen=True):
    """A row of the list: the row itself, and its cells in the order of COLUMNS."""

    stored: StoredRow
    cells: tuple[Cell, ...]


class SweepListing:
    """All rows of a sweep, of which some are shown, in an order."""

    def __init__(self, rows: Sequence[StoredRow]) -> None:
        self.rows = [Listed(stored, tuple(read(stored) for read in _COLUMNS.values())) for stored in rows]

    def shown(self, sort: str = "", filter: str = "", *, descending: bool = False) -> list[Listed]:
        """Return the rows that a filter leaves, sorted by a column; those without a value come last.

        A filter is words, each of which is in some cell, or of a column: `outcome=stopped`, `iteration>7`. UsageError
        for a column that there is not, and for an order of what is no number.
        """
        tests = [_test(term) for term in filter.split()]
        found = [row for row in self.rows if all(test(row.cells) for test in tests)]
        if not sort:
            return found
        column = _column(sort)
        empty = [row for row in found if row.cells[column] in (None, "")]
        filled = [row for row in found if row.cells[column] not in (None, "")]
        return sorted(filled, key=lambda row: _ordered(row.cells[column]), reverse=descending) + empty


def _ordered(cell: Cell) -> tuple[int, str]:
    return (cell, "") if isinstance(cell, int) else (0, str(cell))


def _column(name: str) -> int:
    if name not in COLUMNS:
        near = near_text(name, COLUMNS)
        raise UsageError(f"there is no column '{name}'; {near or 'there are ' + ', '.join(COLUMNS)}")
    return COLUMNS.index(name)


def _test(term: str) -> Callable[[tuple[Cell, ...]], bool]:
    match = _TERM.fullmatch(term)
    if match is None:
        word = term.lower()
        return lambda cells: any(word in str(cell).lower() for cell in cells if cell is not None)
    column, sign, value = _column(match[1]), match[2], match[3]
    if sign in ("=", "!="):
        wanted = value.lower()
        return lambda cells: (("" if cells[column] is None else str(cells[column])).lower() == wanted) == (sign == "=")
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise UsageError(f"{term}: a number is expected behind {sign}")
    number, compare = int(value), _ORDERS[sign]

    def holds(cells: tuple[Cell, ...]) -> bool:
        cell = cells[column]
        return isinstance(cell, int) and compare(cell, number)

    return holds


_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
