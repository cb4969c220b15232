"""Watches: expressions evaluated at each stop, with what they were at earlier ones. An error is shown, never raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from stepper.debug import slots
from stepper.debug.addresses import Address, Target
from stepper.debug.expression_values import described
from stepper.debug.expressions import Expression, parse
from stepper.debug.reference_breaks import Reading as ReferenceReading
from stepper.debug.scopes import Names, innermost_loop, iteration_now, value_now
from stepper.debug.series import value_before, value_in_iteration
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from stepper.engine.frames import place
from stepper.engine.program import CompiledModel
from stepper.errors import StepperError, UsageError

MOST_READINGS: Final = 10_000
MOST_ELEMENTS: Final = 64
"""Elements of a value that is kept; of a larger one there is its type and shape."""


class Reading(Struct, frozen=True, eq=False):
    """What an expression was at one stop. `value` is kept where it is small; `text` says what it was in any case.

    `iteration` is that of the innermost loop, None outside. `error`: there was no value, and `text` says why.
    """

    tick: int
    place: str
    iteration: int | None
    value: Array | None
    text: str
    error: bool


class Watch(Struct, eq=False):
    """An expression and its readings by tick, of which the latest `most` stops are kept."""

    number: int
    expression: Expression
    most: int
    _readings: dict[int, Reading] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The expression as it was written."""
        return self.expression.text

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All that are kept, in the order of the run."""
        return tuple(self._readings[tick] for tick in sorted(self._readings))

    @property
    def now(self) -> Reading | None:
        """The reading of the latest stop."""
        return next(reversed(self._readings.values()), None)

    def by_iteration(self) -> dict[tuple[str, int], Reading]:
        """The last reading of each iteration seen, by place of the loop (with the iteration) and iteration."""
        readings = [reading for reading in self.readings if reading.iteration is not None]
        return {(reading.place, reading.iteration): reading for reading in readings if reading.iteration is not None}

    def add(self, reading: Reading) -> None:
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

    def add(self, text: str, timeline: Timeline) -> Watch:
        """Watch an expression from now on. Raises ExpressionError, with the place, for a text that is none."""
        return self.put_back(self._next, text, timeline)

    def put_back(self, number: int, text: str, timeline: Timeline) -> Watch:
        """The same under a number that it had before. Raises UsageError for one that is taken."""
        if number < 1 or number in self._watches:
            raise UsageError(f"there cannot be a watch {number}")
        watch = Watch(number, parse(text), self._most)
        self._watches[number] = watch
        self._next = max(self._next, number + 1)
        watch.add(StopScope(timeline, self._names).reading(watch.expression))
        return watch

    def clear(self) -> None:
        """Have none, as in the beginning."""
        self._watches.clear()
        self._next = 1

    def delete(self, number: int) -> None:
        """Watch it no longer. Raises UsageError for a number that no watch has."""
        if self._watches.pop(number, None) is None:
            numbers = ", ".join(map(str, self._watches)) or "none"
            raise UsageError(f"there is no watch {number}; there are {numbers}")

    def see(self, timeline: Timeline) -> None:
        """Read all of them at the present stop."""
        scope = StopScope(timeline, self._names)
        for watch in self._watches.values():
            watch.add(scope.reading(watch.expression))

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""
        for watch in self:
            watch.forget_after(tick)


class StopScope:
    """What the names in an expression mean at a stop; values of other iterations are fetched by an excursion."""

    def __init__(self, timeline: Timeline, names: Names) -> None:
        self._timeline = timeline
        self._names = names

    def reading(self, expression: Expression) -> Reading:
        """What the expression is now; an error is its text."""
        machine = self._timeline.machine
        stack = machine.stack
        where = place(stack) if stack else "model"
        depth = innermost_loop(stack)
        activation = None if depth is None else stack[depth].activation
        iteration = None if activation is None or activation.iteration < 0 else activation.iteration
        try:
            value = expression.evaluate(self)
        except StepperError as error:
            return Reading(machine.tick, where, iteration, None, str(error), error=True)
        kept = _kept(value)
        return Reading(machine.tick, where, iteration, kept, _text(value, kept), error=False)

    def value(self, address: Address, /) -> Any:
        """The value now, or in the iteration that the address names."""
        target = self._target(address)
        asked = [iterations for iterations in target.iterations if iterations is not None]
        if not asked:
            return value_now(self._timeline.machine.stack, target)
        if len(asked) > 1 or not isinstance(asked[0], int) or asked[0] < 0:
            raise UsageError(f"'{address}': one iteration of the loop that runs here can be watched, counted from 0")
        return value_in_iteration(self._timeline, target, asked[0])

    def previous(self, address: Address, /) -> Any:
        """The value one iteration before."""
        return value_before(self._timeline, self._target(address))

    def reference(self, address: Address, /) -> Any:
        """The value in the reference run. UsageError where there is none."""
        reference = self._timeline.reference
        if reference is None:
            raise UsageError(f"there is no reference run for '{address}'")
        target = self._target(address)
        value = ReferenceReading(target.program, target.slot).at(self._timeline.machine.stack, reference)
        if value is None:
            raise UsageError(f"{reference.title} has no value for '{address}' here")
        return value

    def iteration(self) -> int:
        """The iteration of the innermost loop."""
        return iteration_now(self._timeline.machine.stack)

    def _target(self, address: Address) -> Target:
        machine = self._timeline.machine
        return self._names.target(address, machine.stack[-1].program if machine.stack else machine.compiled.main)


def _kept(value: Any) -> Array | None:
    """A small tensor or number as an array of its own."""
    if isinstance(value, np.ndarray | np.generic | bool | int | float) and np.size(value) <= MOST_ELEMENTS:
        return slots.read_only(np.array(value))
    return None


def _text(value: Any, kept: Array | None) -> str:
    if kept is None or kept.dtype.names is not None:
        return described(value)
    return np.array2string(kept, separator=", ", threshold=MOST_ELEMENTS)
