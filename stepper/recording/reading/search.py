"""The recorded moments at which an expression holds: `find` without the run.

As in a run, the expression is asked once in each iteration (of a branch: each time it ran) of the innermost graph that
it names a value of, with values that belong together. What was not recorded cannot be asked for: such moments are
counted, and the first reason is kept. Of a value of which only statistics were recorded, max, min, mean, std, shape and
the like, and any(isnan(x)) are known all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from stepper.debug.finding.find import (
    ensure_any_iteration,
    ensure_no_reference,
    ensure_together,
)
from stepper.debug.results import Found, FoundMoment, Which
from stepper.debug.scopes import enclosing_loop
from stepper.engine.program import Program
from stepper.errors import SessionError, StepperError, UsageError
from stepper.query.address_resolution import Target
from stepper.query.address_syntax import Address
from stepper.query.expressions import Expression, parse
from stepper.recording.reading import moments
from stepper.recording.reading.catalogue import Catalogue, place_text
from stepper.recording.reading.columns import Column
from stepper.recording.reading.moments import RecordedMoment
from stepper.recording.reading.recording import Recording


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
                raise UsageError(f"of which loop is 'iter'? Name a value of its body, too; the loops are {names}")
            return loops[0]
        return self._catalogue.compiled.main if program is None else program

    def _column(self, target: Target) -> _Here | _Around:
        whole = self._catalogue.whole(target)
        if whole is not None:
            if self.program.path and whole[0] == "outputs":
                raise UsageError(f"'{target.named.name}' is an output of the model, which is there when the run ends")
            return _Here(_Whole(self._recording.whole(*whole)))
        column = Column(self._recording, target.slot)
        if target.program is self.program:
            return _Here(column)
        return _Around(self._recording, self._catalogue, target, self.program, column)

    # --- moments -------------------------------------------------------------------------------------------------

    def holding(self) -> Iterator[RecordedMoment]:
        """Yield the moments at which it holds."""
        for moment in self._moments():
            self._before = (self._moment, {address: self._known.get(address) for address in self._expression.previous})
            self._moment, self._known = moment, {}
            self.asked += 1
            if self._holds():
                yield moment
            self._remember()

    def _moments(self) -> Iterator[RecordedMoment]:
        if not self.program.path:
            return iter([RecordedMoment(0, 0, (), ())])
        path = self.program.path
        return moments.moments(self._recording, self._catalogue.level(self.program), path, (None,) * len(path))

    def _holds(self) -> bool:
        try:
            return self._expression.truth(self)
        except SessionError:  # the file is damaged
            raise
        except StepperError as error:
            self.failures += 1
            self.failure = self.failure or str(error)
            return False

    def _remember(self) -> None:
        """Have what prev() will need in the next iteration, though nothing asked for it in this one."""
        for address in self._expression.previous:
            if address not in self._known:
                self._known[address] = self._columns[address].known(self._moment)

    # --- the scope of the expression -----------------------------------------------------------------------------

    def value(self, address: Address, /) -> Any:
        """Return the value at this moment, or its statistics."""
        if address not in self._known:
            self._known[address] = self._columns[address].known(self._moment)
        return self._there(address, self._known[address])

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


class _Whole:
    """One of the model's inputs or outputs, the same at every moment."""

    def __init__(self, value: Any) -> None:
        self._value = np.asarray(value)[()]

    def known(self, _moment: int) -> Any:
        """Return the value."""
        return self._value


class _Here:
    """A value of the graph whose moments are asked."""

    def __init__(self, column: Column | _Whole) -> None:
        self._column = column

    def known(self, moment: RecordedMoment) -> Any:
        """Return the value, its statistics, or None."""
        return self._column.known(moment.id)


class _Around:
    """A value of a graph around that whose moments are asked: that of the iteration in which they are.

    Both graphs are walked in the order of time, this one behind the other.
    """

    def __init__(
        self, recording: Recording, catalogue: Catalogue, target: Target, inner: Program, column: Column
    ) -> None:
        path = target.program.path
        self._name = target.named.name
        self._depth = len(path)
        self._column = column
        self._moments = moments.moments(recording, catalogue.level(target.program), path, (None,) * len(path))
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
