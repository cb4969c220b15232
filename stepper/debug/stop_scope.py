"""Values at a stop: names of an expression, watches and their formats, one value over the iterations of a loop."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import numpy as np
from msgspec import Struct, field

from stepper.argument_checks import text
from stepper.debug.causes.run_walk import EarlierFrames
from stepper.debug.inspection.views import Evaluated, PreviousValue, Series
from stepper.debug.loop_runs import (
    PAUSED,
    Batch,
    IterationReader,
    Take,
    ensure_run_here,
    enter_run_of,
    excursion,
    iterations_in_all,
    loop_around,
    outer_now,
)
from stepper.debug.provenance.operation_at import file_of, location_of
from stepper.debug.provenance.question import NoValueYet, seat_in
from stepper.debug.scopes import (
    Names,
    NotRunning,
    ReferencedValue,
    ReferenceNotes,
    frame_of,
    innermost_loop,
    iteration_now,
    loop_depth,
    loop_elsewhere,
    output_at_end,
    value_now,
)
from stepper.debug.timeline import Timeline
from stepper.element_types import Array, read_only
from stepper.engine.frames import LoopRun, loop_run, place
from stepper.engine.program import CompiledModel, Program
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer
from stepper.ops.operands import LARGEST_TENSOR
from stepper.query import expression_values
from stepper.query.address_resolution import Atlas, Target, resolve
from stepper.query.address_syntax import Address, IterationRange, address_given, numpy_index
from stepper.query.expression_values import FUNCTIONS, ValueFailure, described
from stepper.query.expressions import Expression, parse
from stepper.records import Record
from stepper.tensors.difference import largest_gap
from stepper.tensors.number_text import number_text
from stepper.tensors.statistics import recorded_statistics
from stepper.wording import excerpt

MOST_POINTS = 10_000
_MOST_OF_ITERATION = 4096
"""Elements that one iteration may contribute to a series."""

Read = Callable[[Any], Array]


def over_iterations(
    timeline: Timeline,
    address: str | Address,
    statistic: str | None = None,
    *,
    most: int | None = None,
    whole: bool = False,
) -> Series:
    """Return a value over the iterations of a loop: `h[0,3]`, or a statistic such as max of `h@10:20`.

    The address says which iterations (all, if it does not) and which part, and of a loop inside of another one which
    run (see loop_runs); a statistic is one of FUNCTIONS. Iterations that are still to come are computed. With more
    than `most`, every second, fourth, ... is kept; with `whole` all are, however many elements each has, up to
    LARGEST_TENSOR. May be interrupted by a pause. Raise UsageError where the loop does not run, and for a part or
    statistic that fails.
    """
    address = address_given(address)
    target = _place_of(timeline, address)
    depth = loop_around(target)
    most = sys.maxsize if whole else MOST_POINTS if most is None else most
    room = LARGEST_TENSOR.get() if whole else sys.maxsize
    read = _reader(address, statistic, limited=not whole)
    with excursion(timeline):
        enter_run_of(timeline, target)
        begin, end = _iterations_asked(timeline, target, depth)
        collected = _Collected(read, begin, most, room)
        machine = timeline.machine
        path = location_of(machine.stack[:depth], file_of(machine.compiled)).path
        stopped = _read_place(timeline, target, begin, end, collected.take)
    if collected.problem:
        raise UsageError(f"{address}: {collected.problem}")
    name = f"{statistic}({address})" if statistic else str(address)
    in_branch = len(target.program.path) > depth
    return Series(
        name,
        tuple(collected.iterations),
        tuple(collected.values),
        collected.step,
        stopped,
        collected.total,
        in_branch,
        tuple(one for one in path if one.iteration is not None),
    )


def previous_value(timeline: Timeline, address: str | Address, *, compared: bool = True) -> PreviousValue:
    """Return a value and its value in the iteration before.

    Unless `compared`, the result lacks the change. The value belongs to the present iteration, or to the iteration that
    the address names. Raise UsageError where there is no iteration before.
    """
    address = address_given(address)
    target = _place_of(timeline, address)
    read = _reader(address, None, limited=False)
    iteration = _iteration_meant(timeline, target)
    try:
        now = read(value_in(timeline, target))
    except UsageError:
        now = None
    before = read(value_before(timeline, target))
    return PreviousValue(iteration, now, before, largest_gap(now, before) if compared and now is not None else None)


def value_before(timeline: Timeline, target: Target) -> Any:
    """Return what a place held one iteration before the present one, or before the one that its address names.

    Raise UsageError where that was not computed.
    """
    asked = _iteration_named(timeline, target)
    iteration = _iteration_meant(timeline, target)
    if iteration < 1:
        raise UsageError(f"'{target.named.name}' has no iteration before this one")
    if asked is None:
        frame = timeline.machine.stack[loop_around(target)]
        if frame.program is target.program and (kept := frame.before(target.slot)) is not None:
            return kept
    return value_in_iteration(timeline, target, iteration - 1)


def value_in(timeline: Timeline, target: Target) -> Any:
    """Return what a place holds now, or in the one iteration of the innermost loop that its address names.

    UsageError.
    """
    asked = _iteration_named(timeline, target)
    if asked is None:
        stack = timeline.machine.stack
        if not stack and target.program is timeline.machine.compiled.main:
            return output_at_end(timeline.machine, target)
        if loop_depth(target.program) is None and frame_of(stack, target.program) is None:
            return _value_in_branch(timeline, target)
        return value_now(stack, target)
    return value_in_iteration(timeline, target, asked)


def _value_in_branch(timeline: Timeline, target: Target) -> Any:
    """Return what a place held when the run left the If that is around it, outside of all loops. UsageError."""
    atlas = Atlas(timeline.machine.compiled)
    with closing(EarlierFrames(timeline)) as frames:
        try:
            seat = seat_in(frames, atlas, target.program, (), target.named.name)
        except NoValueYet:
            return value_now(timeline.machine.stack, target)
        return frames.frame(seat).values[target.slot]


def part_of(address: Address, value: Any) -> Array:
    """Return the part of a value that an address names, read-only. UsageError where the value has no such part."""
    return _reader(address, None, limited=False)(value)


def value_in_iteration(timeline: Timeline, target: Target, iteration: int) -> Any:
    """Return what a place holds in one iteration of the loop, negative ones counted from the last.

    Raise UsageError where it is not computed.
    """
    found: list[Any] = []

    def take(_begin: int, batch: Batch) -> bool:
        found.extend(value for value in batch[0] if value is not None)
        return bool(found)

    with excursion(timeline):
        depth = enter_run_of(timeline, target)
        wanted = iteration if iteration >= 0 else iteration + iterations_in_all(timeline, depth)
        if wanted < 0:
            raise UsageError(f"'{target.named.name}' has no value there: the loop has no iteration so early")
        stopped = _read_place(timeline, target, wanted, wanted + 1, take)
    if not found:
        why = f" ({stopped})" if stopped else ""
        raise UsageError(f"'{target.named.name}' has no value in iteration {wanted}{why}")
    return found[0]


def _read_place(timeline: Timeline, target: Target, begin: int, end: float, take: Take) -> str:
    """Read a place in iterations of its loop's present run; return why the reading ended early."""
    machine, depth, inner = timeline.machine, loop_around(target), target.program
    body = machine.stack[depth].program
    outer = outer_now(machine.stack[: depth + 1])
    reader = IterationReader(body, outer, [target.slot], None if inner is body else inner, begin=begin, end=end)
    return reader.failure if reader.read(timeline, take) else PAUSED


# --- where ----------------------------------------------------------------------------------------------------------


def _place_of(timeline: Timeline, address: Address) -> Target:
    return resolve(address, timeline.machine.compiled, timeline.machine.program)


def _iteration_named(timeline: Timeline, target: Target) -> int | None:
    """Return the iteration of the innermost loop that an address names; None for none. UsageError for several.

    NotRunning for an address that names a run of that loop alone, which does not run here.
    """
    if all(one is None for one in target.iterations):
        return None
    asked = target.iterations[loop_around(target) - 1]
    if isinstance(asked, IterationRange):
        raise UsageError(f"'{target.named.name}' is asked for in several iterations")
    if asked is None:
        ensure_run_here(timeline.machine.stack, target)
    return asked


def _iteration_meant(timeline: Timeline, target: Target) -> int:
    """Return the iteration of the innermost loop that an address names, counted from the first; else the present one.

    Below 0: the loop has none so early. Raise UsageError where the loop does not run.
    """
    asked = _iteration_named(timeline, target)
    if asked is None:
        depth, path, stack = loop_around(target), target.program.path, timeline.machine.stack
        if depth >= len(stack) or stack[depth].program.path != path[:depth]:
            loop = path[depth - 1]
            raise UsageError(f"'{target.named.name}' is in {loop.type} '{loop.name}', which does not run here")
        return stack[depth].active.iteration
    if asked >= 0:
        return asked
    with excursion(timeline):
        return asked + iterations_in_all(timeline, enter_run_of(timeline, target))


def _iterations_asked(timeline: Timeline, target: Target, depth: int) -> tuple[int, float]:
    """Return the iterations that an address names, as a half-open range; for those from the end all must be known."""
    asked = target.iterations[loop_around(target) - 1]
    if asked is None:
        return 0, np.inf
    if isinstance(asked, int):
        asked = IterationRange(asked, asked + 1 if asked != -1 else None)
    if min(asked.start or 0, asked.stop or 0) < 0:
        numbers = asked.numbers(iterations_in_all(timeline, depth))
        return numbers.start, numbers.stop
    return asked.start or 0, np.inf if asked.stop is None else asked.stop


# --- what -----------------------------------------------------------------------------------------------------------


def _reader(address: Address, statistic: str | None, *, limited: bool = True) -> Read:
    """Return what is kept of a value: the part that the address names, or one number."""
    if statistic is not None and statistic not in FUNCTIONS:
        raise UsageError(f"there is no statistic '{statistic}'; there are {', '.join(sorted(FUNCTIONS))}")
    index = numpy_index(address.index)
    function = None if statistic is None else expression_values.call(statistic)

    def read(value: Any) -> Array:
        try:
            part = expression_values.element(value, index) if index else value
            found = np.asarray(part if function is None else function(part))
        except ValueFailure as error:
            raise UsageError(f"{address}: {error}") from None
        if limited and found.size > _MOST_OF_ITERATION:
            raise UsageError(f"{address} has {found.size} elements in an iteration; ask for a part, or a statistic")
        return read_only(found.copy() if limited else found)

    return read


class _Collected(Struct):
    """The values of a series so far, from iteration `begin` on; every `step`-th is kept."""

    read: Read
    begin: int
    most: int
    room: int
    step: int = 1
    total: int = 0
    problem: str = ""
    iterations: list[int] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)

    def take(self, begin: int, batch: Batch) -> bool:
        """Take the values of iterations from `begin` on; True if one is a problem."""
        for iteration, value in enumerate(batch[0], begin):
            self.total += value is not None
            if value is None or (iteration - self.begin) % self.step:
                continue
            try:
                self.values.append(self.read(value))
            except UsageError as error:
                self.problem = str(error)
                return True
            self.room -= self.values[-1].nbytes
            if self.room < 0:
                self.problem = f"takes more than {LARGEST_TENSOR.get() / 2**20:,.0f} MB; ask for fewer iterations"
                return True
            self.iterations.append(iteration)
            if len(self.values) > self.most:
                self.step *= 2
                kept = [place for place, at in enumerate(self.iterations) if (at - self.begin) % self.step == 0]
                self.iterations = [self.iterations[place] for place in kept]
                self.values = [self.values[place] for place in kept]
        return False


_FORMAT = re.compile(r"(?P<letter>[xbs])|(?P<number>[ef])(?P<digits>[0-9]{0,2})")
_MOST = 64
_DIGITS = 6
MEANINGS = "x (hexadecimal), e3 or f3 (so many digits), b (true or false), s (statistics)"


def ensure_format(text: str) -> str:
    """Return the text of a format, empty for none. UsageError for one that is not known."""
    if text and _FORMAT.fullmatch(text) is None:
        raise UsageError(f"there is no format '{text[:20]}'; there are {MEANINGS}")
    return text


def formatted(value: Any, format: str) -> str:
    """Return a value in a format, in one line. UsageError where the format is for other values."""
    array, match = np.asarray(value), _FORMAT.fullmatch(format)
    assert match is not None, "it was looked at when it was set"
    if array.dtype.kind not in "biuf" and array.dtype.kind != "V":
        raise UsageError(f"/{format} is for numbers, this is {described(value)}")
    if match["letter"] == "s":
        numbers = [f"{name} {number_text(number, 6)}" for name, number in recorded_statistics(array).items()]
        return f"{described(array)}  {'  '.join(numbers)}"
    one = _one(match["letter"] or match["number"], match["digits"] or "", array)
    if not array.ndim:
        return one(array[()])
    shown = np.array2string(array.astype(object), separator=", ", threshold=_MOST, formatter={"all": one})
    return f"{described(array)} {' '.join(shown.split())}"


def _one(letter: str, digits: str, array: Any) -> Callable[[Any], str]:
    if letter == "x":
        if array.dtype.kind not in "iu":
            raise UsageError(f"/x is for integers, this is {described(array)}")
        return lambda one: f"{'-' if int(one) < 0 else ''}0x{abs(int(one)):x}"
    if letter == "b":
        return lambda one: "true" if one else "false"
    return lambda one: f"{float(one):.{digits or _DIGITS}{letter}}"


MOST_ELEMENTS = 64
"""Elements of a value that is kept; of a larger one there is its type and shape."""


class WatchReading(Record, eq=False, weakref=True):
    """Value of an expression at one stop.

    `value` is kept where it is small; `text` says what it was in any case. `iteration` is the iteration of the
    innermost loop, `run` the run of that loop; None outside. `error`: there was no value, and `text` says why;
    `elsewhere` is then the loop that has it, where that does not run here. `shown` is the value in the format that was
    asked for, empty without one.
    """

    tick: int
    place: str
    iteration: int | None
    value: Array | None
    text: str
    error: bool
    run: LoopRun | None = None
    shown: str = ""
    elsewhere: Layer | None = None


class StopScope:
    """Names of an expression at a stop, seen from a graph that runs (by default the innermost).

    Values of other iterations are fetched by an excursion.
    """

    def __init__(self, timeline: Timeline, names: Names, where: Program | None = None) -> None:
        self._timeline = timeline
        self._names = names
        self._where = where

    def reading(self, expression: Expression, format: str = "") -> WatchReading:
        """Return what the expression is now, in a format; an error is its text."""
        machine = self._timeline.machine
        stack = machine.stack
        where = place(stack) if stack else "model"
        depth, run = innermost_loop(stack), loop_run(stack)
        activation = None if depth is None else stack[depth].activation
        iteration = None if activation is None or activation.iteration < 0 else activation.iteration
        try:
            value = expression.evaluate(self)
            shown = formatted(value, format) if format else ""
        except StepperError as error:
            loop = loop_elsewhere(stack, error.program) if isinstance(error, NotRunning) else None
            text = str(error) if loop is None else f"a value of '{loop.name}', which does not run here"
            return WatchReading(machine.tick, where, iteration, None, text, error=True, run=run, elsewhere=loop)
        kept = _kept(value)
        text = _text(value, kept)
        return WatchReading(machine.tick, where, iteration, kept, text, error=False, run=run, shown=shown)

    def value(self, address: Address, /) -> Any:
        """Return the value now, or in the iteration that the address names."""
        target = self._target(address)
        if any(not isinstance(one, int | None) for one in target.iterations):
            raise UsageError(f"'{address}': one iteration of a loop can be in an expression")
        return value_in(self._timeline, target)

    def previous(self, address: Address, /) -> Any:
        """Return the value one iteration before."""
        return value_before(self._timeline, self._target(address))

    def reference(self, address: Address, /) -> Any:
        """Return the value in the reference run. UsageError where there is none."""
        reference = self._timeline.reference
        if reference is None:
            raise UsageError(f"there is no reference run for '{address}'")
        target = self._target(address)
        value = ReferencedValue(target.program, target.slot).value(self._timeline.machine.stack, reference)
        if value is None:
            failed = reference.notes if isinstance(reference, ReferenceNotes) else ()
            why = f": {failed[-1]}" if failed else ""
            raise UsageError(f"{reference.title} has no value for '{address}' here{why}")
        return value

    def iteration(self) -> int:
        """Return the iteration of the innermost loop."""
        return iteration_now(self._timeline.machine.stack)

    def iteration_of(self, loop: str, /) -> int:
        """Return the iteration of the loop of a name around."""
        return iteration_now(self._timeline.machine.stack, loop)

    def _target(self, address: Address) -> Target:
        machine = self._timeline.machine
        return self._names.target(address, self._where or machine.program)


class WalkScope(StopScope):
    """Names of an expression that is asked moment by moment on a way through a run; it keeps what prev() needs."""

    def __init__(self, timeline: Timeline, expression: Expression, target_of: Callable[[Address], Target]) -> None:
        super().__init__(timeline, Names(timeline.machine.compiled))
        self._expression, self._target_of = expression, target_of
        self._before: tuple[tuple[int, int] | None, dict[Address, Any]] = (None, {})

    def _iteration(self, after: int = 0) -> tuple[int, int] | None:
        """Return when the innermost loop was entered, and in which iteration it is, or will be after some more."""
        stack = self._timeline.machine.stack
        depth = innermost_loop(stack)
        activation = None if depth is None else stack[depth].activation
        return None if activation is None else (activation.entered, activation.iteration + after)

    def remember(self) -> None:
        """Keep what prev() will need in the next iteration of this loop."""
        values = {}
        for address in self._expression.previous:
            with suppress(StepperError):
                values[address] = self.value(address)
        self._before = self._iteration(1), values

    def value(self, address: Address, /) -> Any:
        """Return the value now."""
        return value_now(self._timeline.machine.stack, self._target_of(address))

    def previous(self, address: Address, /) -> Any:
        """Return the value one iteration before."""
        moment, values = self._before
        if moment is None or moment != self._iteration() or address not in values:
            raise UsageError(f"'{address}' has no value one iteration before")
        return values[address]


def _kept(value: Any) -> Array | None:
    """Return a small tensor or number as an array of its own."""
    if isinstance(value, np.ndarray | np.generic | bool | int | float) and np.size(value) <= MOST_ELEMENTS:
        return read_only(np.array(value))
    return None


def _text(value: Any, kept: Array | None) -> str:
    if kept is None or kept.dtype.names is not None:
        return described(value)
    return np.array2string(kept, separator=", ", threshold=MOST_ELEMENTS)


# --- for a program that asks -----------------------------------------------------------------------------------------


def evaluate(timeline: Timeline, expression: str) -> Evaluated:
    """Return the value of an expression now.

    Raise ExpressionError, and UsageError where something in it has no value.
    """
    value = parse(text("expression", expression)).evaluate(StopScope(timeline, Names(timeline.machine.compiled)))
    if not isinstance(value, np.ndarray | np.generic):
        found: Evaluated = value
        return found
    if value.ndim or value.dtype.names is not None:
        return read_only(value)
    number: Evaluated = value.item()
    return number


def value_of(timeline: Timeline, address: str | Address) -> Array | Series:
    """Return the value that an address names, now or in the iterations that it says."""
    address = address_given(address)
    if not isinstance(address.iterations, IterationRange):
        target = resolve(address, timeline.machine.compiled, timeline.machine.program)
        return part_of(address, value_in(timeline, target))
    series = over_iterations(timeline, address, most=sys.maxsize, whole=True)
    if series.stopped:
        known = f"the last that has one is {series.iterations[-1]}" if series.iterations else "none has one"
        raise UsageError(f"'{address}' has no value in all of its iterations ({known}): {series.stopped}")
    if not series.values:
        raise UsageError(f"'{address}' has no value: the loop has no such iteration")
    first, last = series.iterations[0], series.iterations[-1]
    is_even = len({(value.shape, value.dtype) for value in series.values}) == 1
    if not is_even or len(series.values) != last - first + 1 or series.in_branch:
        return series
    return read_only(np.stack(series.values))


MOST_READINGS = 10_000


class Watch(Struct, eq=False):
    """An expression and its readings by tick; readings of the latest `most` stops are kept.

    `format` is how its value is shown (see formats.py), empty for the usual form.
    """

    number: int
    expression: Expression
    most: int
    format: str
    _readings: dict[int, WatchReading] = field(default_factory=dict)

    def __repr__(self) -> str:
        now = "" if self.now is None else f" = {excerpt(self.now.shown or self.now.text)}"
        return f"<Watch {self.number}: {excerpt(self.title)}{now}>"

    @property
    def text(self) -> str:
        """Return the expression as it was written."""
        return self.expression.text

    @property
    def title(self) -> str:
        """Return the expression with its format: `max(h)/e3`."""
        text = f"({self.text})" if " " in self.text else self.text
        return f"{text}/{self.format}" if self.format else self.text

    @property
    def readings(self) -> tuple[WatchReading, ...]:
        """Return all that are kept, in the order of the run."""
        return tuple(self._readings[tick] for tick in sorted(self._readings))

    @property
    def now(self) -> WatchReading | None:
        """Return the reading of the latest stop."""
        return next(reversed(self._readings.values()), None)

    def add(self, reading: WatchReading) -> None:
        """Take a reading in; one of the same moment is replaced, the oldest goes where there are too many."""
        self._readings.pop(reading.tick, None)
        self._readings[reading.tick] = reading
        if len(self._readings) > self.most:
            del self._readings[next(iter(self._readings))]

    def forget_after(self, tick: int) -> None:
        """From this tick on the run takes another course: what was read there no longer holds."""
        self._readings = {at: reading for at, reading in self._readings.items() if at < tick}


class Watches:
    """The watches of one debugger."""

    def __init__(self, compiled: CompiledModel, most: int = MOST_READINGS) -> None:
        self._most = most
        self._watches: dict[int, Watch] = {}
        self._next = 1
        self._names = Names(compiled)

    def __iter__(self) -> Iterator[Watch]:
        return iter(self._watches.values())

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, text: str, timeline: Timeline, format: str = "") -> Watch:
        """Watch an expression from now on. Raise ExpressionError, with the place, for a text that is none."""
        return self.put_back(self._next, text, timeline, format)

    def put_back(self, number: int, text: str, timeline: Timeline, format: str = "") -> Watch:
        """Return the same under a number that it had before. Raise UsageError for one that is taken."""
        if number < 1 or number in self._watches:
            raise UsageError(f"there cannot be a watch {number}")
        watch = Watch(number, parse(text), self._most, ensure_format(format))
        self._watches[number] = watch
        self._next = max(self._next, number + 1)
        watch.add(StopScope(timeline, self._names).reading(watch.expression, watch.format))
        return watch

    def clear(self) -> None:
        """Have none, as in the beginning."""
        self._watches.clear()
        self._next = 1

    def delete(self, number: int) -> None:
        """Watch it no longer. Raise UsageError for a number that no watch has."""
        if self._watches.pop(number, None) is None:
            numbers = ", ".join(map(str, self._watches)) or "none"
            raise UsageError(f"there is no watch {number}; there are {numbers}")

    def see(self, timeline: Timeline) -> None:
        """Read all of them at the present stop."""
        scope = StopScope(timeline, self._names)
        for watch in self._watches.values():
            watch.add(scope.reading(watch.expression, watch.format))

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""
        for watch in self:
            watch.forget_after(tick)
