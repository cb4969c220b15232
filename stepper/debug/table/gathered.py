"""Numbers of one value of a table, as they are read: all of them where they fit, and what is known of each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.debug.table.columns import STATISTICS, SheetColumn, SheetValue, columns_of, uneven_columns_of
from stepper.element_types import Array, read_only
from stepper.engine.program import Value
from stepper.errors import UsageError
from stepper.query.expression_values import ValueFailure, element
from stepper.tensors.histories import bucket_begins, bucket_statistics, plain_numbers
from stepper.tensors.statistics import number_of


class ColumnFacts(Struct, frozen=True):
    """Facts of a column over the iterations that were read.

    `low` and `high` are of the finite numbers (None: there is none). `is_constant`: the same number in each iteration.
    `is_whole`: no finite number has a fraction.
    """

    low: float | None
    high: float | None
    nan: int
    infinite: int
    missing: int
    is_constant: bool
    is_zero: bool
    is_whole: bool


class UnevenValue(Exception):
    """A value has another shape than before, so its elements are no columns."""


class GatheredValue:
    """Numbers read of one value; `is_uneven`: its shape changes, so that its columns are its size and statistics."""

    def __init__(self, value: SheetValue, number: int, statistic: str, *, is_uneven: bool = False) -> None:
        self.value, self.number, self.statistic, self.is_uneven = value, number, statistic, is_uneven
        self.columns: tuple[SheetColumn, ...] = uneven_columns_of(value, number) if is_uneven else ()
        self.dtype: np.dtype[Any] | None = None
        self.shape: tuple[int, ...] | None = None
        self.whole_shape: tuple[int, ...] = ()
        self.count = 0
        self.keeps = True
        self.is_surprised = False
        self._chunks: list[Array] = []
        self._known: list[Array] = []
        self._is_patchy = False
        self._begins = np.zeros(0, np.intp)
        self._low = self._high = self._first = np.zeros(0)
        self._nan = self._infinite = np.zeros(0, np.int64)
        self._changes = self._nonzero = self._fractions = np.zeros(0, bool)
        self._missing = 0

    @property
    def cells(self) -> int:
        """Return how many numbers are kept."""
        return sum(chunk.size for chunk in self._chunks)

    def release(self) -> None:
        """Keep no numbers any more, only what is known of the columns."""
        self.keeps = False
        self._chunks, self._known = [], []

    def take(self, values: Sequence[Value]) -> None:
        """Take in the values of the next iterations. Raise UnevenValue, UsageError for what are no numbers."""
        numbers, known = self.numbers(values)
        self.count += len(values)
        self._missing += int((~known).sum())
        self._is_patchy |= not known.all()
        if numbers.size:
            self._note(numbers[known])
        if self.keeps:
            self._chunks.append(numbers)
            self._known.append(known)

    def numbers(self, values: Sequence[Value]) -> tuple[Array, Array]:
        """Return numbers [iteration, column], and in which iterations there are any."""
        known = np.array([value is not None for value in values], bool)
        present = [value for value in values if value is not None]
        if present and self.shape is None:
            self._begin(present[0])
        width = max(len(self.columns), 1 if self.shape is not None else 0)
        if not present:
            return np.zeros((len(values), width)), known
        found = self._of(present)
        if len(present) == len(values):
            return found, known
        spread = np.zeros((len(values), found.shape[1]), found.dtype)
        spread[known] = found
        return spread, known

    def _begin(self, value: Value) -> None:
        part = self._part(value)
        dtype = np.asarray(part).dtype
        if dtype.names is None and dtype.kind in "SUOT":
            raise UsageError(f"'{self.value.name}' has texts; a table is of numbers")
        self.dtype, self.shape, self.whole_shape = dtype, tuple(part.shape), tuple(np.shape(value))
        if not self.is_uneven:
            self.columns = columns_of(self.value, self.number, self.whole_shape)
            first, last = self.value.span or (0, part.size)
            self._begins = bucket_begins(last - first)
        count = len(self.columns)
        self._low, self._high = np.full(count, np.inf), np.full(count, -np.inf)
        self._nan, self._infinite = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._changes, self._nonzero, self._fractions = (np.zeros(count, bool) for _ in range(3))
        # Iterations before the first that has a value: their rows are there, but empty.
        self._chunks = [np.zeros((len(chunk), count)) for chunk in self._chunks]

    def _part(self, value: Value) -> Any:
        if not self.value.index:
            return np.asarray(value)
        try:
            return np.asarray(element(value, self.value.index))
        except ValueFailure as error:
            raise UsageError(f"{self.value.name}: {error}") from None

    def _of(self, values: Sequence[Value]) -> Array:
        parts = [self._part(value) for value in values]
        if self.is_uneven:
            return np.array([self._summary(part) for part in parts], np.float64)
        if self.value.statistic:
            found = [number_of(part, self.value.statistic) for part in parts]
            return np.array([[np.nan if one is None else one] for one in found], np.float64)
        if any(part.shape != self.shape or part.dtype != self.dtype for part in parts):
            self.is_surprised = True
            raise UnevenValue
        stack = np.stack(parts).reshape(len(parts), -1)
        if not stack.shape[1]:
            return np.zeros((len(parts), len(self.columns)), np.int64)
        first, last = self.value.span or (0, stack.shape[1])
        numbers = plain_numbers(stack[:, first:last])
        if len(self._begins) == last - first:
            return np.ascontiguousarray(numbers)
        with np.errstate(all="ignore"):
            return np.asarray(bucket_statistics(numbers, self._begins)[STATISTICS[self.statistic]], np.float64)

    def _summary(self, part: Array) -> list[float]:
        row = [float(part.size)]
        for column in self.columns[1:]:
            number = number_of(part, column.statistic)
            row.append(np.nan if number is None else number)
        return row

    def _note(self, numbers: Array) -> None:
        if not len(numbers):
            return
        if numbers.dtype.kind == "f":
            nan, infinite = np.isnan(numbers), np.isinf(numbers)
            self._nan += nan.sum(axis=0)
            self._infinite += infinite.sum(axis=0)
            odd = nan | infinite
            self._low = np.minimum(self._low, np.where(odd, np.inf, numbers).min(axis=0))
            self._high = np.maximum(self._high, np.where(odd, -np.inf, numbers).max(axis=0))
            self._fractions |= ((numbers != np.trunc(numbers)) & ~odd).any(axis=0)
        else:
            self._low = np.minimum(self._low, numbers.min(axis=0))
            self._high = np.maximum(self._high, numbers.max(axis=0))
        if not len(self._first):
            self._first = numbers[0].copy()
        same = (numbers == self._first) | ((numbers != numbers) & (self._first != self._first))
        self._changes |= ~same.all(axis=0)
        self._nonzero |= (numbers != 0).any(axis=0)

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def type(self) -> str:
        """Return the name of the element type; empty before there is a value."""
        return "" if self.dtype is None else element_types.name_of(self.dtype)

    def facts(self, place: int) -> ColumnFacts:
        """Return what is known of a column."""
        if place >= len(self._low):
            return ColumnFacts(None, None, 0, 0, self._missing, is_constant=False, is_zero=False, is_whole=False)
        low, high = float(self._low[place]), float(self._high[place])
        is_finite = low <= high
        is_constant = not self._changes[place] and not self._missing and self.count > 1
        return ColumnFacts(
            low if is_finite else None,
            high if is_finite else None,
            int(self._nan[place]),
            int(self._infinite[place]),
            self._missing,
            is_constant=is_constant,
            is_zero=is_constant and not self._nonzero[place],
            is_whole=not self._fractions[place],
        )

    def constant(self) -> Array:
        """Return for each column whether it is the same in every iteration."""
        if self._missing or self.count < 2 or not len(self._changes):
            return np.zeros(len(self.columns), bool)
        return ~self._changes

    def matrix(self) -> Array | None:
        """Return all numbers [iteration, column]; None where they are not kept."""
        if not self.keeps:
            return None
        if len(self._chunks) > 1:
            self._chunks, self._known = [np.concatenate(self._chunks)], [np.concatenate(self._known)]
        return read_only(self._chunks[0]) if self._chunks else np.zeros((0, len(self.columns)))

    def known(self) -> Array | None:
        """Return in which iterations there is a value; None: in all."""
        if not self._is_patchy or not self.keeps:
            return None
        self.matrix()
        return self._known[0]
