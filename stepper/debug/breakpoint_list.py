"""The breakpoints of a run: set, numbered, enabled, disabled, deleted; what is wrong is refused when it is set."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from stepper.debug.break_targets import loop_body, operations_of, places, value_place
from stepper.debug.breakpoints import BreakDescription, BreakKind, Breakpoint, Counted
from stepper.debug.carried_breaks import loop_checks
from stepper.debug.checks import Check, bodies
from stepper.debug.conditions import condition_at, conditions_of
from stepper.debug.data_break_words import DataBreak, Word, data_break
from stepper.debug.logpoints import LogLine
from stepper.debug.non_finite import non_finite_checks
from stepper.debug.recall import Trail
from stepper.debug.reference_breaks import difference_check, difference_checks
from stepper.debug.reference_values import ReferenceValues
from stepper.debug.timeline import Timeline
from stepper.debug.value_breaks import at_place, becomes_true, is_true, shape_checks, value_checks
from stepper.debug.watching import Lookout
from stepper.engine.program import Program
from stepper.errors import UsageError

Sink = Callable[[str], None]
Made = tuple[list[Check], list[Trail], LogLine | None]
Counts = tuple[Counted, Counted]


class Expected(NamedTuple):
    """A pattern of operations in which NaN and Inf are expected, and the graph from which it is seen."""

    pattern: str
    where: Program


class Breakpoints:
    """The breakpoints of one run, by number from 1. `sink` gets the lines of logpoints."""

    def __init__(self, timeline: Timeline, lookout: Lookout, sink: Sink = print) -> None:
        self.sink = sink
        self._timeline = timeline
        self._lookout = lookout
        self._by_number: dict[int, Breakpoint] = {}
        self._exceptions: list[Expected] = []
        self._number = 0

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(self._by_number.values())

    def __len__(self) -> int:
        return len(self._by_number)

    def __getitem__(self, number: int) -> Breakpoint:
        """The breakpoint with this number. Raises UsageError where there is none."""
        try:
            return self._by_number[number]
        except KeyError:
            known = f"there are {', '.join(map(str, self._by_number))}" if self._by_number else "there are none"
            raise UsageError(f"there is no breakpoint {number}; {known}") from None

    @property
    def exceptions(self) -> tuple[str, ...]:
        """The patterns of operations in which NaN and Inf are expected."""
        return tuple(expected.pattern for expected in self._exceptions)

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The same, with the graphs from which they are seen."""
        return tuple(self._exceptions)

    # --- setting -------------------------------------------------------------------------------------------------

    def add(self, description: BreakDescription) -> Breakpoint:
        """Set a breakpoint as it is described. Raises UsageError for what is wrong in it."""
        breakpoint = self._new(self._number + 1, description, self._where)
        self._number += 1
        self._by_number[breakpoint.number] = breakpoint
        self._watch()
        return breakpoint

    def put_back(self, number: int, description: BreakDescription, where: Program, counts: Counts) -> None:
        """Set one that was there before, under its number. Raises UsageError."""
        if number < 1 or number in self._by_number:
            raise UsageError(f"there cannot be a breakpoint {number}")
        breakpoint = self._new(number, description, where)
        breakpoint.counts = counts
        self._number = max(self._number, number)
        self._by_number[number] = breakpoint
        self._watch()

    def change(self, number: int, description: BreakDescription) -> Breakpoint:
        """Have one wait for something else, under its number and from the present on. Raises UsageError."""
        before = self[number]
        description = replace(description, enabled=before.description.enabled)
        self._by_number[number] = breakpoint = self._new(number, description, before.where)
        self._watch()
        return breakpoint

    def clear(self) -> None:
        """Have none, and no exceptions, as in the beginning."""
        self._exceptions.clear()
        self._number = 0
        self.delete()

    def delete(self, number: int | None = None) -> None:
        """Take a breakpoint away, or all. Raises UsageError for an unknown number."""
        if number is None:
            self._by_number.clear()
        else:
            del self._by_number[self[number].number]
        self._watch()

    def enable(self, number: int | None = None, *, enabled: bool = True) -> None:
        """Let a breakpoint stop the run again, or all."""
        for breakpoint in [self[number]] if number is not None else list(self):
            breakpoint.description = replace(breakpoint.description, enabled=enabled)
        self._watch()

    def disable(self, number: int | None = None) -> None:
        """Keep a breakpoint, or all, but do not stop there; it costs nothing then."""
        self.enable(number, enabled=False)

    def ignore(self, number: int, count: int) -> None:
        """Do not stop at the next `count` moments at which this breakpoint would, counted from the present."""
        if count < 0:
            raise UsageError(f"an ignore count is not negative, {count} is")
        breakpoint, tick = self[number], self._timeline.machine.tick
        breakpoint.description = replace(breakpoint.description, ignore=count, ignored_from=tick)
        breakpoint.ignore(count, tick)

    def expect(self, pattern: str, where: Program | None = None) -> None:
        """NaN and Inf are expected in the operations that the pattern names: do not stop there. Raises UsageError."""
        where = where or self._where
        operations_of(pattern, self._timeline.machine.compiled, where)
        self._exceptions.append(Expected(pattern, where))
        for breakpoint in self:
            if breakpoint.description.text in (Word.NAN, Word.INF) and breakpoint.description.kind is BreakKind.WHEN:
                breakpoint.checks = tuple(self._made(breakpoint.description, breakpoint.where)[0])
        self._watch()

    # --- while the run goes on -----------------------------------------------------------------------------------

    def stopped(self) -> None:
        """The run has stopped: those that were for once go."""
        found = self._lookout.found
        for breakpoint in () if found is None else found.owners:
            if breakpoint.description.once and breakpoint.number in self._by_number:
                self.delete(breakpoint.number)

    def until(self, text: str) -> Breakpoint:
        """A breakpoint for one movement: where the condition holds. It is watched until `watch_all` is called."""
        conditions = conditions_of(text, self._timeline, self._where)
        description = BreakDescription(BreakKind.WHEN, text, once=True)
        trails = [trail for condition in conditions for trail in condition.trails]
        return self._temporary(description, [is_true(condition) for condition in conditions], trails)

    def target(self, text: str) -> Breakpoint:
        """A breakpoint for one movement: at what the text names."""
        description = BreakDescription(BreakKind.AT, text, once=True)
        return self._temporary(description, *self._made(description, self._where)[:2])

    def anomalies(self) -> None:
        """Breakpoints for one movement: where NaN or Inf is made, or a carried shape changes."""
        made = [self._made_when(Word.NAN, self._where), self._made_when(Word.INF, self._where)]
        with contextlib.suppress(UsageError):  # a model without loops carries no shapes
            made.append(self._made_when(Word.SHAPE, self._where))
        checks = [check for found, _trails in made for check in found]
        trails = [trail for _checks, found in made for trail in found]
        self._temporary(BreakDescription(BreakKind.WHEN, Word.NAN, once=True), checks, trails)

    def watch_all(self) -> None:
        """Watch those of the list alone."""
        self._watch()

    def watched_by(self, lookout: Lookout) -> None:
        """Let another lookout ask about them from now on."""
        self._lookout = lookout
        self._watch()

    def _temporary(self, description: BreakDescription, checks: Sequence[Check], trails: Sequence[Trail]) -> Breakpoint:
        breakpoint = Breakpoint(0, description, checks, trails, self._timeline.machine.tick, self._where)
        self._watch(breakpoint)
        return breakpoint

    def _watch(self, *others: Breakpoint) -> None:
        self._lookout.watch([*self, *others])

    # --- making --------------------------------------------------------------------------------------------------

    @property
    def _where(self) -> Program:
        """From where names are seen: the innermost frame, at the end of the run the model's own graph."""
        machine = self._timeline.machine
        return machine.stack[-1].program if machine.stack else machine.compiled.main

    def _new(self, number: int, description: BreakDescription, where: Program) -> Breakpoint:
        if min(description.hit, description.ignore) < 0:
            raise UsageError("a hit count and an ignore count are not negative")
        checks, trails, line = self._made(description, where)
        log = None if line is None else lambda stack: self.sink(line.text(stack))
        return Breakpoint(number, description, checks, trails, self._timeline.machine.tick, where, log)

    def _made(self, description: BreakDescription, where: Program) -> Made:
        if description.kind is BreakKind.WHEN:
            return (*self._made_when(description.text, where), None)
        if description.kind is BreakKind.LOG:
            return self._made_log(description, where)
        checks, trails = self._made_at(description, where)
        return checks, trails, None

    def _made_at(self, description: BreakDescription, where: Program) -> tuple[list[Check], list[Trail]]:
        checks: list[Check] = []
        trails: list[Trail] = []
        problem: UsageError | None = None
        prompt = not description.condition and not description.hit
        for place in places(description.text, self._timeline.machine.compiled, where):
            try:
                condition = self._condition(description.condition, place.program, place.index)
            except UsageError as error:
                problem = error
                continue
            checks.append(at_place(place, condition, prompt=prompt))
            trails += [] if condition is None else condition.trails
        if not checks and problem is not None:
            raise problem
        return checks, trails

    def _condition(self, text: str, program: Program, index: int) -> Any:
        return condition_at(text, self._timeline, program, index) if text else None

    def _made_log(self, description: BreakDescription, where: Program) -> Made:
        found = places(description.text, self._timeline.machine.compiled, where)
        if len(found) > 1:
            raise UsageError(f"'{description.text}' names {len(found)} places; a logpoint is at one")
        place = found[0]
        condition = self._condition(description.condition, place.program, place.index)
        line = LogLine(description.line, self._timeline, place.program, place.index)
        trails = [*line.trails, *(() if condition is None else condition.trails)]
        return [at_place(place, condition, prompt=False)], trails, line

    def _made_when(self, text: str, where: Program) -> tuple[list[Check], list[Trail]]:
        wanted = data_break(text)
        if wanted is None:
            made = [becomes_true(condition, self._timeline) for condition in conditions_of(text, self._timeline, where)]
            return [check for checks, _ in made for check in checks], [trail for _, trails in made for trail in trails]
        compiled, reference = self._timeline.machine.compiled, self._timeline.reference
        if wanted.word is Word.DIFF and reference is not None:
            return self._made_difference(wanted, reference, where), []
        if wanted.word in (Word.NAN, Word.INF):
            named = [operations_of(expected.pattern, compiled, expected.where) for expected in self._exceptions]
            return non_finite_checks(wanted.word, compiled, frozenset[tuple[int, int]]().union(*named)), []
        if wanted.address is None:
            return self._of_loops(wanted, bodies(compiled))
        body = loop_body(wanted.address, compiled, where)
        if body is not None and wanted.word is not Word.CHANGES:
            return self._of_loops(wanted, [body])
        if wanted.word in (Word.GROW, Word.DIFF, Word.CHANGES):
            return value_checks(wanted, self._timeline, where)
        raise UsageError(f"'{wanted.address}' is no loop; '{wanted.word}' is about loops")

    def _made_difference(self, wanted: DataBreak, reference: ReferenceValues, where: Program) -> list[Check]:
        """`diff>X` against a reference: of every operation, those of one loop, or of one value."""
        compiled = self._timeline.machine.compiled
        if wanted.address is None:
            return difference_checks(wanted, reference, compiled.programs)
        body = loop_body(wanted.address, compiled, where)
        if body is not None:
            return difference_checks(wanted, reference, [body])
        place = value_place(wanted.address, compiled, where)
        if place.target is None:
            raise UsageError(f"'{wanted.address}' names no value")
        return [difference_check(wanted, reference, place.program, place.index, place.target.slot)]

    def _of_loops(self, wanted: DataBreak, programs: Sequence[Program]) -> tuple[list[Check], list[Trail]]:
        maker = shape_checks if wanted.word is Word.SHAPE else None
        checks: list[Check] = []
        trails: list[Trail] = []
        for program in programs:
            made = maker(program, self._timeline) if maker else loop_checks(wanted, program, self._timeline)
            checks += made[0]
            trails += made[1]
        if not checks:
            raise UsageError(f"there is no loop of which '{wanted.word}' says anything")
        return checks, trails
