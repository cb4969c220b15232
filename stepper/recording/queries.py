"""Values of a recording by address: the moments of each, with the value, or its statistics.

A Parameter that a back edge feeds is in iteration i what the Result was in iteration i - 1, in iteration 0 what the
loop was entered with. Which Result feeds it only the model says; without the model its values are not known.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stepper.debug.causes.cause import Location, NonFiniteKind
from stepper.debug.finding import ensure_any_iteration, ensure_no_reference, ensure_together
from stepper.debug.inspection.views import Found, FoundMoment, Which
from stepper.debug.scopes import enclosing_loop
from stepper.engine.loops import roles_of
from stepper.engine.program import Program
from stepper.errors import SessionError, StepperError, UsageError
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, Model
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address, numpy_index, parse_address
from stepper.query.expression_values import ValueFailure, element
from stepper.query.expressions import Expression, parse
from stepper.recording import reading
from stepper.recording.file import NUMBERS_OF_SERIES, RUN_LENGTH, TENSORS_OF_SERIES
from stepper.recording.reading import (
    Catalogue,
    Column,
    RecordedMoment,
    Recording,
    Whole,
    form_of,
    place_text,
    summary_of,
)
from stepper.records import Record
from stepper.tensors.summaries import Summary
from stepper.wording import counted


class RecordedValue(Record, eq=False):
    """A value at one moment. `value` is None where only statistics were recorded.

    `numbers` are the iterations of the loops on the way, `tick` is when the innermost was closed; of the model's own
    inputs and outputs there are none. `source` says where the value was recorded, if that is elsewhere: of a Parameter
    what the back edge carried, `h_next@6`.
    """

    numbers: tuple[int | None, ...]
    tick: int | None
    value: Any
    summary: Summary | None
    source: str = ""

    @property
    def at(self) -> str:
        """The iterations as an address has them: `@7`, `@3 @0`."""
        return " ".join(f"@{number}" for number in self.numbers if number is not None)

    def statistics(self) -> Summary:
        """Return the statistics, of the value itself where it is there."""
        return summary_of(self.value) if self.summary is None else self.summary


class ValueSelection:
    """A value of a recording at the moments that an address names.

    Each walk reads them anew, one after the other.
    """

    def __init__(self, recording: Recording, catalogue: Catalogue, target: Target, address: Address) -> None:
        self._recording, self._catalogue = recording, catalogue
        self.target = target
        self.index = numpy_index(address.index)
        part = "" if not address.index else str(Address(index=address.index))
        self.name = f"{catalogue.address(target)}{part}"
        """The full address, without iterations."""

    @property
    def loops(self) -> tuple[str, ...]:
        """The names of the loops around it."""
        return tuple(layer.name for layer in self.target.program.path if layer.is_loop)

    @property
    def computed_by(self) -> str:
        """The partner that computed it, in words; empty for numpy."""
        return "" if self._whole is not None else self._catalogue.computed_by.get(self.target.slot, "")

    @property
    def is_single(self) -> bool:
        """True if the address means one moment alone, whatever the run was."""
        asked = zip(self.target.program.path, self.target.iterations, strict=True)
        return all(isinstance(iterations, int) for layer, iterations in asked if layer.is_loop)

    def count(self) -> int:
        """Return how many moments it may have a value at."""
        if self._whole is not None:
            return 1
        return reading.count(self._recording, self._level, self.target.program.path, self.target.iterations)

    def walk(self, *, statistics: bool = False) -> Iterator[RecordedValue]:
        """Yield the moments with what was recorded; those at which nothing computed the value are left out.

        With `statistics` these are read rather than values, where they are in the file. UsageError for a part that the
        value has not.
        """
        whole = self._whole
        if whole is not None:
            yield RecordedValue((), None, self._part(self._recording.whole(*whole)), None)
            return
        column = Column(self._recording, self.target.slot)
        path, asked = self.target.program.path, self.target.iterations
        wanted = statistics and not self.index
        carried: CarriedIn | None = None
        for moment in reading.moments(self._recording, self._level, path, asked):
            found = column.summary(moment.id) if wanted else None
            value = None if found is not None else column.value(moment.id)
            if value is None and found is None:
                found = column.summary(moment.id)
                if found is None:
                    continue
                carried = carried or CarriedIn(self._recording, self._catalogue, self.target)
                brought = carried.value(moment, found)
                if brought is not None:
                    yield RecordedValue(moment.numbers, moment.tick, self._part(brought.value), None, brought.source)
                    continue
            yield RecordedValue(moment.numbers, moment.tick, None if value is None else self._part(value), found)

    def _part(self, value: Any) -> Any:
        try:
            return np.asarray(element(value, self.index) if self.index else value)
        except ValueFailure as error:
            raise UsageError(f"{self.name}: {error}") from None

    @property
    def _whole(self) -> Whole | None:
        return self._catalogue.whole(self.target)

    @property
    def _level(self) -> int:
        return self._catalogue.level(self.target.program)


def select(recording: Recording, addresses: list[str]) -> list[ValueSelection]:
    """Return the values that the addresses mean. AddressError; ResolutionError for a name unknown or ambiguous."""
    catalogue = Catalogue(recording)
    return [
        ValueSelection(recording, catalogue, target, parse_address(text))
        for text in addresses
        for target in catalogue.targets(text)
    ]


def nothing_there(recording: Recording, selection: ValueSelection, address: str) -> str:
    """Return why there is no moment: a sentence."""
    path = selection.target.program.path
    if not path:
        return f"'{address}': the run did not come to its end, so it has no outputs"
    ran = reading.most_iterations(recording, selection._level)
    iterations = counted(ran, "iteration")
    chosen = recording.options().iterations
    some = "" if chosen.everything else f"; --record-iters {chosen.text} chose some of them"
    return f"'{address}': nothing was recorded there; {path[-1].type} '{path[-1].name}' ran {iterations} at most{some}"


class CarriedValue(NamedTuple):
    """A value with where it was recorded, in words."""

    value: Any
    source: str


class CarriedIn:
    """The values of one Parameter as those of the Result that a back edge carries. Moments are asked for in order."""

    def __init__(self, recording: Recording, catalogue: Catalogue, target: Target) -> None:
        self._recording = recording
        self._result = ""
        self._column: Column | None = None
        self._initial: CarriedValue | None = None
        if target.layer.type == "Parameter" and target.program.path and target.program.path[-1].is_loop:
            try:
                model = recording.model()
            except StepperError:  # it is not there any more, or another one
                return
            with recording.reading():
                self._find(model, catalogue, target)

    def _find(self, model: Model, catalogue: Catalogue, target: Target) -> None:
        ids = [layer.id for layer in target.program.path]
        found = [(path, graph) for path, graph in model.graphs() if [layer.id for layer in path] == ids]
        if not found:
            raise SessionError("has a loop that is not in its model")
        path, body = found[0]
        outer = next(graph for around, graph in model.graphs() if around == path[:-1] and path[-1] in graph.layers)
        roles = roles_of(path[-1])
        result = roles.merged_from.get(target.layer.id)
        if result is None:
            return
        source = body.sources[result][0]
        port = None if source is None else target.program.slots.get((source.layer, source.output))
        if source is not None and port is not None:
            self._column, self._result = Column(self._recording, port), body.by_id[result].name
        entry = next(entry for entry in roles.merged if entry.parameter == target.layer.id)
        if len(path) == 1 and entry.input is not None:
            self._initial = self._entered_with(model, catalogue, outer, path[-1], entry.input)

    def _entered_with(
        self, model: Model, catalogue: Catalogue, outer: Graph, loop: Layer, index: int
    ) -> CarriedValue | None:
        source = outer.sources[loop.id][index]
        layer = None if source is None else outer.by_id[source.layer]
        if layer is None:
            return None
        if layer.type == "Constant":
            return CarriedValue(constant_value(model, layer), f"Constant '{layer.name}'")
        if layer.type != "Parameter":
            return None
        position = outer.parameters.index(layer)
        return CarriedValue(self._recording.whole("inputs", position), f"input '{layer.name}'")

    def value(self, moment: RecordedMoment, known: Summary) -> CarriedValue | None:
        """Return the Parameter's value at a moment whose statistics are known; None where it was not recorded."""
        activation, iteration = moment.innermost
        if activation is None:
            return None
        if iteration == 0:
            found = self._initial
        else:
            before = self._moment(activation, iteration - 1)
            value = None if before is None or self._column is None else self._column.value(before)
            found = None if value is None else CarriedValue(value, f"{self._result}@{iteration - 1}")
        if found is None:
            return None
        value = np.asarray(found.value).astype(known.dtype)
        return CarriedValue(value, found.source) if _is_that(value, known) else None

    def _moment(self, activation: int, iteration: int) -> int | None:
        """Return the id of an iteration of a run of the body; None where it was not recorded."""
        query = "SELECT id, iteration, count FROM runs WHERE activation = ? AND iteration <= ? ORDER BY iteration DESC"
        for first, begin, count in self._recording.query(f"{query} LIMIT 1", (activation, iteration)):
            if iteration < begin + count:
                return int(first + iteration - begin)
        return None


def _is_that(value: Any, known: Summary) -> bool:
    """Return True if a value has the statistics that were recorded."""
    found = summary_of(value)
    same = (found.dtype, found.shape) == (known.dtype, known.shape)
    return same and all(found.numbers[name] == known.numbers[name] for name in ("min", "max", "nan", "inf"))


# The recorded moments at which an expression holds: `find` without the run.
#
# As in a run, the expression is asked once in each iteration (of a branch: each time it ran) of the innermost graph
# that it names a value of, with values that belong together. What was not recorded cannot be asked for: such moments
# are counted, and the first reason is kept. Of a value of which only statistics were recorded, max, min, mean, std,
# shape and the like, and any(isnan(x)) are known all the same.


def find_recorded(recording: Recording, text: str, which: Which, limit: int) -> Found:
    """Return the moments at which the expression holds: the first, the last, or all of them up to the limit.

    Raises ExpressionError for its text, UsageError for one that can hold nowhere.
    """
    search = _RecordedSearch(recording, parse(text))
    wanted = limit if which is Which.ALL else 1
    found: deque[FoundMoment] = deque(maxlen=wanted)
    more = False
    for moment in search.holding():
        more = which is Which.ALL and len(found) == wanted
        if more:
            break
        found.append(FoundMoment(moment.tick, moment.iteration, place_text(search.program.path, moment.numbers)))
        if which is Which.FIRST:
            break
    return Found(tuple(found), search.asked, more, "", search.failures, search.failure)


class _RecordedSearch:
    """Asks the expression at each moment; its own scope."""

    def __init__(self, recording: Recording, expression: Expression) -> None:
        self._recording, self._expression = recording, expression
        self._catalogue = Catalogue(recording)
        ensure_no_reference(expression)
        self._targets = {address: self._catalogue.target(address) for address in expression.addresses}
        ensure_any_iteration(list(self._targets.values()))
        self.program = self._innermost()
        for target in self._targets.values():
            ensure_together(target, self.program)
        self._columns = {address: self._column(target) for address, target in self._targets.items()}
        self._moment = RecordedMoment(0, 0, (), ())
        self._before: tuple[RecordedMoment, dict[Address, Any]] = (self._moment, {})
        self._known: dict[Address, Any] = {}
        self.asked = self.failures = 0
        self.failure = ""

    def _innermost(self) -> Program:
        programs = [target.program for target in self._targets.values()]
        loops = [program for program in self._catalogue.compiled.programs if program.path and program.path[-1].is_loop]
        program = max(programs, key=lambda program: len(program.path), default=None)
        if program is None and self._expression.loops:
            raise UsageError(f"in which body is {self._expression.text}? Name a value of it, too")
        if self._expression.reads_iteration and not any(layer.is_loop for layer in (program.path if program else ())):
            if len(loops) != 1:
                names = ", ".join(f"'{program.path[-1].name}'" for program in loops) or "none"
                raise UsageError(
                    f"'iter' belongs to several loops: also name a value of the body; the loops are {names}"
                )
            return loops[0]
        return self._catalogue.compiled.main if program is None else program

    def _column(self, target: Target) -> Callable[[RecordedMoment], Any]:
        """Return what gives the value at a moment, its statistics, or None."""
        whole = self._catalogue.whole(target)
        if whole is not None:
            if self.program.path and whole[0] == "outputs":
                raise UsageError(f"'{target.named.name}' is an output of the model, which is there when the run ends")
            value = self._recording.whole(*whole)[()]
            return lambda _moment: value
        column = Column(self._recording, target.slot)
        if target.program is self.program:
            return lambda moment: column.known(moment.id)
        return _Around(self._recording, self._catalogue, target, self.program, column).known

    # --- moments -------------------------------------------------------------------------------------------------

    def holding(self) -> Iterator[RecordedMoment]:
        """Yield the moments at which it holds."""
        for moment in self._moments():
            self._before = (self._moment, {address: self._known.get(address) for address in self._expression.previous})
            self._moment, self._known = moment, {}
            self.asked += 1
            if self._holds():
                yield moment
            for address in self._expression.previous:  # what prev() will need, though nothing asked for it in this one
                self._now(address)

    def _moments(self) -> Iterator[RecordedMoment]:
        if not self.program.path:
            return iter([RecordedMoment(0, 0, (), ())])
        path = self.program.path
        return reading.moments(self._recording, self._catalogue.level(self.program), path, (None,) * len(path))

    def _holds(self) -> bool:
        try:
            return self._expression.truth(self)
        except SessionError:  # the file is damaged
            raise
        except StepperError as error:
            self.failures += 1
            self.failure = self.failure or str(error)
            return False

    # --- the scope of the expression -----------------------------------------------------------------------------

    def value(self, address: Address, /) -> Any:
        """Return the value at this moment, or its statistics."""
        return self._there(address, self._now(address))

    def _now(self, address: Address) -> Any:
        if address not in self._known:
            self._known[address] = self._columns[address](self._moment)
        return self._known[address]

    def previous(self, address: Address, /) -> Any:
        """Return the value one iteration before."""
        before, known = self._before
        (run, number), (run_before, last) = self._moment.innermost, before.innermost
        if run is None or run != run_before or last + 1 != number:
            why = "" if number else ": this is the first one"
            raise UsageError(f"'{address}' has no value one iteration before{why}")
        return self._there(address, known.get(address))

    def _there(self, address: Address, value: Any) -> Any:
        if value is None:
            raise UsageError(f"'{address}' was not recorded here (or not computed)")
        return value

    def reference(self, address: Address, /) -> Any:
        """Raise UsageError: a recording has no reference."""
        raise UsageError(f"there is no reference run for '{address}'")

    def iteration(self) -> int:
        """Return the iteration of the innermost loop."""
        iteration = self._moment.iteration
        if iteration is None:
            raise UsageError("there is no iteration here, outside of every loop")
        return iteration

    def iteration_of(self, loop: str, /) -> int:
        """Return the iteration of the loop of a name around."""
        number = self._moment.numbers[enclosing_loop(self.program.path, loop) - 1]
        if number is None:
            raise UsageError(f"'{loop}' has no iteration here")
        return number


class _Around:
    """Read a value of an outer graph, in the iteration that the asked moments are in.

    The walk over the outer graph follows the walk over the moments; both are in the order of time.
    """

    def __init__(
        self, recording: Recording, catalogue: Catalogue, target: Target, inner: Program, column: Column
    ) -> None:
        path = target.program.path
        self._name = target.named.name
        self._depth = len(path)
        self._column = column
        self._moments = reading.moments(recording, catalogue.level(target.program), path, (None,) * len(path))
        self._outer = next(self._moments, None)
        self._is_later = catalogue.positions[target.slot] >= catalogue.way(inner)[len(path)]

    def known(self, moment: RecordedMoment) -> Any:
        """Return the value, its statistics, or None."""
        if self._is_later:
            raise UsageError(f"'{self._name}' has no value here: it is computed after what is inside")
        depth = self._depth
        wanted = _key(moment.activations[depth - 1], moment.numbers[depth - 1])
        while self._outer is not None and _key(self._outer.activations[-1], self._outer.numbers[-1]) < wanted:
            self._outer = next(self._moments, None)
        if self._outer is None or _key(self._outer.activations[-1], self._outer.numbers[-1]) != wanted:
            return None
        return self._column.known(self._outer.id)


def _key(activation: int, number: int | None) -> tuple[int, int]:
    return activation, -1 if number is None else number


# The recorded values with NaN or infinite elements: found in the columns of statistics, without reading a value.

_NUMBERS = [f"n{k}" for k in range(RUN_LENGTH)]
_END = 2**63
_SUSPICIOUS = f"coalesce(abs({' + '.join(_NUMBERS)}) = 9e999, 1)"
"""SQL for a full row: whether any number is NaN (NULL) or infinite, or the sum overflows.

A NaN is NULL, and so is the sum.
"""


class NonFiniteValue(Record):
    """A value with such elements: where, its full address, and how many of how many. `tick` is None of the model's own.

    `tick` is when the iteration was closed: there the value can be seen. `computed_by` is the backend that computed it.
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


class NonFiniteValues(Record):
    """The findings asked for, in the order of computation, and how many there are in all."""

    found: tuple[NonFiniteValue, ...]
    total: int


_Key = tuple[int, ...]
"""Sorts moments by when a value was computed: for each graph on the way its activation, iteration and position."""


def find_non_finite(recording: Recording, word: NonFiniteKind, which: Which, limit: int) -> NonFiniteValues:
    """Return the first, the last, or all values (up to a limit) with NaN or infinite elements."""
    catalogue = Catalogue(recording)
    wanted = limit if which is Which.ALL else 1
    keyed = list(_in_wholes(recording, catalogue, word))
    total = len(keyed)
    for hits in (_in_tensors(recording, word), _in_numbers(recording, word)):
        kept: dict[int, deque[_NonFiniteRow]] = {}  # of each port: those wanted of all ports are among them
        for hit in hits:
            total += 1
            known = kept.setdefault(hit.port, deque(maxlen=wanted))
            if which is Which.LAST or len(known) < wanted:
                known.append(hit)
        keyed += [_finding(recording, catalogue, hit, word) for found in kept.values() for hit in found]
    keyed.sort(key=lambda pair: pair[0])
    chosen = keyed[-1:] if which is Which.LAST else keyed[:wanted]
    return NonFiniteValues(tuple(finding for _key, finding in chosen), total)


class _NonFiniteRow(NamedTuple):
    """A row with such elements: how many, and the form of the value (None: one number)."""

    port: int
    moment: int
    elements: int
    form: int | None


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
    moment = reading.moment(recording, hit.moment, path)
    size = 1 if hit.form is None else math.prod(form_of(recording, hit.form).shape)
    where = place_text(path, moment.numbers)
    by = catalogue.computed_by.get(hit.port, "")
    location = catalogue.location(target, moment.numbers)
    address = catalogue.address(target)
    finding = NonFiniteValue(moment.tick, moment.iteration, where, address, hit.elements, size, kind, location, by)
    place = 2 * catalogue.positions[hit.port] + 1
    return (*_way(catalogue, target.program, moment), place, hit.port), finding


def _way(catalogue: Catalogue, program: Program, moment: reading.RecordedMoment) -> Iterator[int]:
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
