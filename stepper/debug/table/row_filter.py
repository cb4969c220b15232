"""The rows of a table that a condition lets through, asked a little at a time."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

import numpy as np

from stepper.debug.table.columns import SheetTopic
from stepper.debug.table.conditions import IterationCondition, column_condition, written_out
from stepper.debug.table.reading import RowWalk
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address
from stepper.query.expression_syntax import ExpressionError

NON_FINITE: Final = "nan or inf"
_WORDS: Final[dict[str, Callable[[Array], Array]]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    NON_FINITE: lambda numbers: ~np.isfinite(numbers),
}
"""Conditions about every column: as `break nan` and `break inf`, and both."""


class RowSource(Protocol):
    """A table as its filter sees it."""

    timeline: Timeline
    topic: SheetTopic

    @property
    def total(self) -> int:
        """Return how many iterations are known."""

    def column(self, column: int) -> Array:
        """Return a whole column."""

    def known(self, column: int) -> Array | None:
        """Return in which iterations a column has a number; None: in all."""

    def rows_with(self, test: Callable[[Array], Array]) -> Array:
        """Return in which rows any column passes a test."""

    def numbered(self, text: str) -> str:
        """Return a condition with `column_7` in place of each name of a column that no expression can have."""

    def column_called(self, name: str, index: tuple[int, ...]) -> int | None:
        """Return the number of the column of an element."""

    def place_called(self, address: Address) -> Target | None:
        """Return the place of the value of a name of the table."""


class RowFilter:
    """A condition on the rows, as far as it was asked: `mask` says which hold."""

    def __init__(self, sheet: RowSource, text: str) -> None:
        self.text = text
        self.mask: Array = np.zeros(0, bool)
        self._word = _WORDS.get(text.strip().lower())
        written = sheet.numbered(written_out(text))
        self._by_column = None if self._word else column_condition(written, sheet.column_called)
        self._by_iteration: _AskedIterations | None = None
        if self._word is None and self._by_column is None:
            self._by_iteration = _AskedIterations(sheet, written)

    def go_on(self, sheet: RowSource, deadline: float) -> bool:
        """Ask further rows until a deadline; True if there are more."""
        total = sheet.total
        if len(self.mask) >= total:
            return False
        if self._word is not None:
            self.mask = sheet.rows_with(self._word)
        elif self._by_column is not None:
            self.mask = self._by_column.holds(sheet.column, total)
            for column in self._by_column.columns:
                known = sheet.known(column)
                if known is not None:
                    self.mask &= known
        else:
            assert self._by_iteration is not None
            self.mask = self._by_iteration.go_on(total, deadline)
        return len(self.mask) < total


class _AskedIterations:
    """A condition that is asked of each iteration on a way through the run."""

    def __init__(self, sheet: RowSource, text: str) -> None:
        timeline, topic = sheet.timeline, sheet.topic
        self._timeline, self._begin = timeline, topic.begin
        self._condition = IterationCondition(timeline, text, topic.body, sheet.place_called)
        self._walk = RowWalk(topic.body, topic.outer, topic.begin)
        self._found: list[bool] = []

    def go_on(self, total: int, deadline: float) -> Array:
        """Ask up to so many iterations, until a deadline; return which hold so far."""

        trouble: list[ExpressionError] = []

        def visit() -> bool:
            try:
                self._found.append(self._condition.holds())
            except ExpressionError as error:  # not an error of the run
                trouble.append(error)
            return bool(trouble) or len(self._found) >= total or perf_counter() >= deadline

        if len(self._found) < total:
            self._walk.go(self._timeline, visit)
        if trouble:
            raise trouble[0]
        return np.array(self._found[:total], bool)
