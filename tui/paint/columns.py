"""Columns of lists and tables: each is declared once, with heading, width, and how an item is written into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from tui.paint.rows import Row, Token, padded

Item = TypeVar("Item")


class TableColumn(Struct, Generic[Item], frozen=True):
    """A column. `cells` writes an item into exactly so many cells.

    `width` is in cells, of the width of the whole table where it depends on that (0: the column is not shown); None
    takes what the others leave. `right`: the heading stands at the right.
    """

    heading: str
    width: int | Callable[[int], int] | None
    cells: Callable[[Item, int], Row]
    right: bool = False


def widths_of(columns: Sequence[TableColumn[Item]], width: int, least: int = 10) -> list[int]:
    """Return how wide each column of a table is; `least` is for one that takes what the others leave."""
    fixed = [one.width(width) if callable(one.width) else one.width for one in columns]
    rest = max(width - sum(cells for cells in fixed if cells is not None), least)
    return [rest if cells is None else cells for cells in fixed]


def headings(columns: Sequence[TableColumn[Item]], width: int) -> Row:
    """Return the line above a table; empty if no column has a heading."""
    if not any(one.heading for one in columns):
        return []
    shown = zip(columns, widths_of(columns, width), strict=True)
    return [(padded(one.heading, cells, right=one.right), "") for one, cells in shown if cells]


def cells_of(columns: Sequence[TableColumn[Item]], item: Item, width: int) -> Row:
    """Return the row of an item."""
    shown = zip(columns, widths_of(columns, width), strict=True)
    return [cell for one, cells in shown if cells for cell in one.cells(item, cells)]


def written(text: str, width: int, tone: Token = "", *, right: bool = False) -> Row:
    """Return a text in exactly so many cells."""
    return [(padded(text, width, right=right), tone)]
