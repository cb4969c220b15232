"""The recorded values with NaN or infinite elements: found in the columns of statistics, without reading a value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from stepper.debug.causes.cause import Location, NonFiniteKind
from stepper.debug.results import Which
from stepper.engine.program import Program
from stepper.errors import SessionError
from stepper.recording.reading import moments
from stepper.recording.reading.catalogue import Catalogue, place_text
from stepper.recording.reading.columns import form_of, summary_of
from stepper.recording.reading.recording import Recording
from stepper.recording.schema import NUMBERS_OF_SERIES, RUN_LENGTH, TENSORS_OF_SERIES

_NUMBERS: Final = [f"n{k}" for k in range(RUN_LENGTH)]
_END: Final = 2**63
_SUSPICIOUS: Final = f"coalesce(abs({' + '.join(_NUMBERS)}) = 9e999, 1)"
"""Of a full row: whether any number is NaN (that is NULL, and so is their sum) or infinite, or the sum overflows."""


class NonFiniteValue(Struct, frozen=True):
    """A value with such elements: where, its full address, and how many of how many. `tick` is None of the model's own.

    `tick` is when the iteration was closed: there the value can be seen. `computed_by` is the partner that computed it.
    `kind` is NaN or Inf, `location` the operation and the iterations around it; a recording knows no lines, so
    they are 0 there.
    """

    tick: int | None
    iteration: int | None
    place: str
    address: str
    count: int
    size: int
    kind: NonFiniteKind
    location: Location
    computed_by: str = ""


class NonFiniteValues(Struct, frozen=True):
    """The findings asked for, in the order of computation, and how many there are in all."""

    found: tuple[NonFiniteValue, ...]
    total: int


_Key = tuple[int, ...]
"""Sorts moments by when a value was computed: for each graph on the way its activation, iteration and position."""


def find_non_finite(recording: Recording, word: NonFiniteKind, which: Which, limit: int) -> NonFiniteValues:
    """Return the first, the last, or all values (up to a limit) with NaN or infinite elements."""
    catalogue = Catalogue(recording)
    wanted = limit if which is Which.ALL else 1
    kept: dict[int, list[_NonFiniteRow]] = {}
    total = 0
    for hits in (_in_tensors(recording, word), _in_numbers(recording, word)):
        some = _Some(wanted, last=which is Which.LAST)
        for hit in hits:
            some.add(hit)
            total += 1
        for port, found in some.by_port.items():
            kept.setdefault(port, []).extend(found)
    keyed = list(_in_wholes(recording, catalogue, word))
    total += len(keyed)
    keyed += [_finding(recording, catalogue, hit, word) for hits_of in kept.values() for hit in hits_of]
    keyed.sort(key=lambda pair: pair[0])
    chosen = keyed[-1:] if which is Which.LAST else keyed[:wanted]
    return NonFiniteValues(tuple(finding for _key, finding in chosen), total)


class _NonFiniteRow(NamedTuple):
    """A row with such elements: how many, and the form of the value (None: one number)."""

    port: int
    moment: int
    elements: int
    form: int | None


class _Some:
    """Of each port the first hits, or the last one: the ones wanted of all ports are among them."""

    def __init__(self, wanted: int, *, last: bool) -> None:
        self._wanted, self._last = wanted, last
        self.by_port: dict[int, list[_NonFiniteRow]] = {}

    def add(self, hit: _NonFiniteRow) -> None:
        """Add a row; those of a port come in the order of time."""
        known = self.by_port.setdefault(hit.port, [])
        if self._last:
            known[:] = [hit]
        elif len(known) < self._wanted:
            known.append(hit)


def _in_tensors(recording: Recording, word: NonFiniteKind) -> Iterator[_NonFiniteRow]:
    column = "nan" if word is NonFiniteKind.NAN else "inf"
    moment = "s.first + t.id - s.start"
    for row in recording.stream(f"SELECT port, {moment}, {column}, form FROM {TENSORS_OF_SERIES} WHERE t.{column} > 0"):
        yield _NonFiniteRow(*_integers(recording, row))


def _in_numbers(recording: Recording, word: NonFiniteKind) -> Iterator[_NonFiniteRow]:
    rows = recording.stream(
        f"SELECT port, first, count, n.id * {RUN_LENGTH} - start, {', '.join(_NUMBERS)} FROM {NUMBERS_OF_SERIES} "
        f"WHERE {_SUSPICIOUS}"  # as a row is that is not full
    )
    for *row, numbers in ((*row[:4], row[4:]) for row in rows):
        port, first, count, begin = _integers(recording, row)
        for offset, number in enumerate(numbers, begin):
            infinite = isinstance(number, float) and math.isinf(number)
            if 0 <= offset < count and (number is None if word is NonFiniteKind.NAN else infinite):
                yield _NonFiniteRow(port, first + offset, 1, None)


def _integers(recording: Recording, row: Sequence[Any]) -> Sequence[int]:
    if any(type(number) is not int for number in row):
        raise SessionError(f"{recording.path}: its statistics are damaged")
    return row


def _finding(
    recording: Recording, catalogue: Catalogue, hit: _NonFiniteRow, kind: NonFiniteKind
) -> tuple[_Key, NonFiniteValue]:
    target = catalogue.port(hit.port)
    path = target.program.path
    moment = moments.moment(recording, hit.moment, path)
    size = 1 if hit.form is None else math.prod(form_of(recording, hit.form).shape)
    where = place_text(path, moment.numbers)
    by = catalogue.computed_by.get(hit.port, "")
    location = catalogue.location(target, moment.numbers)
    address = catalogue.address(target)
    finding = NonFiniteValue(moment.tick, moment.iteration, where, address, hit.elements, size, kind, location, by)
    place = 2 * catalogue.positions[hit.port] + 1
    return (*_way(catalogue, target.program, moment), place, hit.port), finding


def _way(catalogue: Catalogue, program: Program, moment: moments.RecordedMoment) -> Iterator[int]:
    """Yield the sort key of a moment, but for the place in its graph. An operation's body comes before its output."""
    for depth, (activation, number) in enumerate(zip(moment.activations, moment.numbers, strict=True), 1):
        yield activation
        yield -1 if number is None else number
        if depth < len(program.path):
            yield 2 * catalogue.way(program)[depth]


def _in_wholes(
    recording: Recording, catalogue: Catalogue, word: NonFiniteKind
) -> Iterator[tuple[_Key, NonFiniteValue]]:
    """Yield the model's inputs come before everything, its outputs after."""
    for target, (table, position) in catalogue.wholes():
        summary = summary_of(recording.whole(table, position))
        count = int(summary.numbers[word] or 0)
        if count:
            where, location = f"model, {table[:-1]}", catalogue.location(target, ())
            address, kind = catalogue.address(target), word
            finding = NonFiniteValue(None, None, where, address, count, summary.size, kind, location)
            yield (-1 if table == "inputs" else _END, position), finding
