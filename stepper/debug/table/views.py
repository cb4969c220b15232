"""The part of a table that was asked for, as frozen data."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from stepper.debug.iterations.loop_runs import Outer
from stepper.debug.table.column_numbers import ColumnDetail, ColumnHead
from stepper.debug.table.columns import SheetColumn, SheetTopic
from stepper.debug.table.gathered import ColumnFacts
from stepper.records import Brief


class SheetSort(Struct, frozen=True):
    """The column by which the rows are sorted; NaN counts as the largest."""

    column: int
    descending: bool


class SheetRequest(Struct, frozen=True):
    """The part of a table that is wanted: `rows` from the `top`-th that passes the filter on, and these columns.

    `pinned` are iterations that are wanted wherever they are; of the column `detail` everything is.
    """

    top: int = 0
    rows: int = 0
    columns: tuple[int, ...] = ()
    sort: SheetSort | None = None
    filter: str = ""
    pinned: tuple[int, ...] = ()
    detail: int | None = None


class SheetForm(Struct, frozen=True):
    """A value of a table: its name, and its type and shape, empty and None before one was read.

    `is_entered`: it is what an iteration begins with. `is_uneven`: its shape changes. `statistic` stands for it.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None
    is_entered: bool
    is_uneven: bool
    statistic: str


class SheetView(Brief, Struct, frozen=True, eq=False):
    """A part of a table, as it was asked for.

    `outer` are the iterations around the run. `total` iterations are known, from `begin` on; `complete`: that is all;
    `failure` is the error that ended the run. `passed` of them pass the filter, of which `filtered` were asked so far.
    `iterations` are the rows from `top` on; `numbers` has each wanted column of them, `pinned` of an iteration.
    A number that is not there is None. `hidden` are the columns that are the same in each iteration, `zero` of these
    the number that are zero. `problem` says why the filter is none.
    """

    unshown: ClassVar = ("request", "topic", "columns", "iterations", "numbers", "pinned", "heads")

    request: SheetRequest
    topic: SheetTopic
    outer: Outer
    forms: tuple[SheetForm, ...]
    columns: tuple[SheetColumn, ...]
    begin: int
    total: int
    complete: bool
    failure: str
    passed: int
    filtered: int
    constant: frozenset[int]
    zero: int
    top: int
    iterations: tuple[int, ...]
    numbers: dict[int, list[Any]]
    pinned: dict[int, dict[int, Any]]
    facts: dict[int, ColumnFacts]
    heads: dict[int, ColumnHead]
    detail: ColumnDetail | None
    problem: str = ""

    def is_truth(self, column: int) -> bool:
        """Return True if a column is a single boolean in each iteration."""
        one = self.columns[column]
        return one.index is not None and not one.statistic and self.forms[one.value].type == "boolean"
