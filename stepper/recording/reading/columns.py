"""The recorded values of one output over the moments of its graph, read from front to back.

A value is in a stack of values, or it is one number; where it is neither, there are its statistics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from stepper import element_types
from stepper.element_types import Array
from stepper.errors import SessionError
from stepper.recording.reading.recording import Recording
from stepper.recording.schema import NUMBERS_OF_SERIES, RUN_LENGTH, TENSORS_OF_SERIES, as_sql
from stepper.tensors.statistics import RECORDED, recorded_statistics
from stepper.tensors.summaries import Summary

_NUMBERS: Final = ", ".join(f"n{k}" for k in range(RUN_LENGTH))
_FIRST: Final = f"max(s.first, s.first + n.id * {RUN_LENGTH} - s.start)"
_END: Final = f"min(s.first + s.count, s.first + (n.id + 1) * {RUN_LENGTH} - s.start)"
"""Of the iterations whose numbers are in a row."""
_MOST_DIMENSIONS: Final = 64


class TensorType(NamedTuple):
    """An element type and a shape."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Column:
    """The values of one port. Moments must be asked for in the order of their ids."""

    def __init__(self, recording: Recording, port: int) -> None:
        self._recording = recording
        self._forms = lru_cache(maxsize=1024)(partial(form_of, recording))
        stacks = "SELECT first, count, repeated, blob, form, start FROM stacks WHERE port = ?"
        self._stacks = _Runs(recording, stacks, port)
        numbers = f"SELECT {_FIRST}, {_END} - {_FIRST}, form, {_NUMBERS}, {_FIRST} - s.first + s.start - n.id * "
        numbers += f"{RUN_LENGTH} FROM {NUMBERS_OF_SERIES} WHERE s.port = ?"
        self._numbers = _Runs(recording, numbers, port)
        tensors = f"SELECT s.first + t.id - s.start, 1, form, {', '.join(RECORDED)} FROM {TENSORS_OF_SERIES}"
        self._tensors = _Runs(recording, f"{tensors} WHERE s.port = ?", port)
        self._opened: tuple[Any, Array] | None = None

    def value(self, moment: int) -> Any:
        """Return the value at a moment, an ndarray or a numpy scalar; None where it was not recorded."""
        try:
            found = self._stacked(moment)
            return self._number(moment) if found is None else found
        except Exception:
            with self._recording.reading():  # entered only here: this is asked a million times
                raise

    def summary(self, moment: int) -> Summary | None:
        """Return the statistics of the value at a moment; None where it was not computed, or not recorded at all."""
        try:
            row = self._tensors.at(moment)
            if row is not None:
                form = self._forms(row[2])
                numbers = dict(zip(RECORDED, row[3:], strict=True))
                return Summary(form.dtype, form.shape, numbers)
            value = self._number(moment)
            return None if value is None else summary_of(value)
        except Exception:
            with self._recording.reading():
                raise

    def known(self, moment: int) -> Any:
        """Return the value, else its statistics, else None."""
        found = self.value(moment)
        return self.summary(moment) if found is None else found

    def _stacked(self, moment: int) -> Any:
        row = self._stacks.at(moment)
        if row is None:
            return None
        first, count, repeated, blob, form, start = row
        if self._opened is None or self._opened[0] != row:
            # Values of the same elements share a blob, whatever their shapes.
            whole = self._recording.tensor(blob)
            if not (type(start) is int and 0 <= start <= len(whole) - (1 if repeated else count)):
                raise SessionError("has values that reach beyond their blob")
            self._opened = (row, whole.reshape(len(whole), *self._forms(form).shape))
        return self._opened[1][start + (0 if repeated else moment - first)]

    def _number(self, moment: int) -> Any:
        row = self._numbers.at(moment)
        if row is None:
            return None
        form, number = self._forms(row[2]), row[3 + row[-1] + moment - row[0]]
        if math.prod(form.shape) != 1:
            raise SessionError("a number has the shape of a tensor")
        if (number is None or isinstance(number, float)) and not element_types.is_floating(form.dtype):
            if number is None:
                raise _cannot_be(form)
            return None  # an integer of 64 bits without a sign that SQLite could not take
        try:
            with np.errstate(over="raise"):
                return np.array(math.nan if number is None else number).astype(form.dtype).reshape(form.shape)[()]
        except FloatingPointError:
            raise _cannot_be(form) from None


def _cannot_be(form: TensorType) -> SessionError:
    return SessionError(f"has a number that no {element_types.of_dtype(form.dtype).name} can be")


def form_of(recording: Recording, identity: Any) -> TensorType:
    """Return the form of this id. SessionError where there is none, or one that cannot be."""
    rows = recording.query("SELECT dtype, shape FROM forms WHERE id = ?", (identity,))
    with recording.reading():
        if not rows:
            raise SessionError("refers to a form that is missing")
        element_type = element_types.by_name(str(rows[0][0]))
        shape = json.loads(rows[0][1])
        if element_type is None or not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
            raise SessionError("has a damaged table of forms")
        if not all(type(size) is int and 0 <= size < 2**62 for size in shape):
            raise SessionError("has a damaged table of forms")
        return TensorType(element_type.dtype, tuple(shape))


class _Runs:
    """Rows that each hold `count` moments from `first` on, in the order of time."""

    def __init__(self, recording: Recording, query: str, port: int) -> None:
        self._recording, self._query, self._port = recording, query, port
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._row: tuple[Any, ...] | None = None

    def at(self, moment: int) -> tuple[Any, ...] | None:
        """Return the row that holds the moment, if one does."""
        if self._rows is None:
            self._rows = self._recording.stream(self._query, (self._port,))
            self._row = self._next(0)
        while self._row is not None and self._row[0] + self._row[1] <= moment:
            self._row = self._next(self._row[0])
        return None if self._row is None or self._row[0] > moment else self._row

    def _next(self, least: int) -> tuple[Any, ...] | None:
        assert self._rows is not None, "it was opened"
        row = next(self._rows, None)
        if row is not None and not (type(row[0]) is int and type(row[1]) is int and row[0] >= least):
            raise SessionError("its values are not in the order of time")
        return row


def summary_of(value: Any) -> Summary:
    """Return the statistics of a tensor, the ones that recordings have."""
    array = np.asarray(value)
    numbers = {name: as_sql(number) for name, number in recorded_statistics(array).items()}
    return Summary(array.dtype, array.shape, numbers)
