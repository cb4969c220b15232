"""Breakpoints from their descriptions: the checks that watch for them. What is wrong in one is refused here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from stepper.debug.breakpoints.breakpoint import (
    BEGUN,
    BreakDescription,
    BreakKind,
    Causes,
    Check,
    Expected,
    IterationWindow,
    closed,
    iteration_in,
)
from stepper.debug.breakpoints.conditions import (
    BreakpointPlace,
    Condition,
    LogLine,
    condition_at,
    conditions_of,
    destinations,
    ensure_elements,
    known_ahead,
    operations_of,
    places,
    value_place,
    whole_value,
)
from stepper.debug.breakpoints.data_breakpoints import Checks, Setting, data_breakpoint, kinds, near_word, unfinished
from stepper.debug.causes.cause import Became, NonFiniteKind, Reached, Unevaluated
from stepper.debug.causes.locations import carried_of, file_of, location_of
from stepper.debug.scopes import is_body
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame, Frames
from stepper.engine.loops import MergedInput
from stepper.engine.program import Program
from stepper.errors import StepperError, UsageError


class Watched(NamedTuple):
    """Parts of a breakpoint: its checks, their iteration windows, and the line that it logs."""

    checks: Sequence[Check]
    windows: Sequence[IterationWindow]
    line: LogLine | None = None


class BreakpointFactory:
    """Maker of breakpoints of a run; `exceptions` are the operations in which NaN and Inf are expected."""

    def __init__(self, timeline: Timeline, exceptions: Sequence[Expected]) -> None:
        self._timeline = timeline
        self._exceptions = exceptions
        self._compiled = timeline.machine.compiled
        self._file = file_of(self._compiled)

    def ensure_operations(self, pattern: str, where: Program) -> None:
        """Raise UsageError for a pattern that names no operation."""
        operations_of(pattern, self._compiled, where)

    def ensure_elements(self, description: BreakDescription, where: Program) -> str:
        """Return a note about an element that the value of a data breakpoint may lack; it may be empty.

        Raise UsageError for one that it does not have.
        """
        wanted = data_breakpoint(description.text) if description.kind is BreakKind.WHEN else None
        if wanted is not None and wanted.address is not None and wanted.address.index:
            target = value_place(wanted.address, self._compiled, where).target
            if target is not None:
                return ensure_elements(wanted.address, target, self._timeline.machine.stack)
        return ""

    def has_exceptions(self, description: BreakDescription) -> bool:
        """True if a breakpoint asks nothing of the operations in which NaN and Inf are expected."""
        return description.kind is BreakKind.WHEN and description.text in set(NonFiniteKind)

    def until(self, text: str, where: Program) -> Checks:
        """Return what is watched by a movement that ends where a condition holds."""
        conditions = conditions_of(text, self._timeline, where)
        return Checks.joined([Checks([is_true(condition)], condition.windows) for condition in conditions])

    def anomalies(self, where: Program) -> Checks:
        """Return the same of one that ends where NaN or Inf appears, or a shape changes.

        Of what a carried value grows by in each iteration, and of what follows from it, no shape is an anomaly.
        """
        found = [self._when(kind, where) for kind in NonFiniteKind]
        with contextlib.suppress(UsageError):  # a model without loops carries no shapes
            shapes = self._when("shape", where)
            is_odd = (check.index not in check.program.growing for check in shapes.checks)
            found.append(Checks(list(compress(shapes.checks, is_odd)), shapes.windows))
        return Checks.joined(found)

    def watched(self, description: BreakDescription, where: Program) -> Watched:
        """Return what a breakpoint watches. Raise UsageError."""
        if description.kind is BreakKind.WHEN:
            return Watched(*self._when(description.text, where))
        if description.kind is BreakKind.LOG:
            return self._log(description, where)
        return Watched(*self._at(description, lambda text: places(text, self._compiled, where)))

    def aims(self, description: BreakDescription, where: Program) -> Checks:
        """Return what is watched by a movement that ends at a place: of a loop that does not run now, inside of it."""
        running = [layer for frame in self._timeline.machine.stack for layer in frame.program.path]

        def found(text: str) -> tuple[BreakpointPlace, ...]:
            text = whole_value(text, self._compiled, where)
            inside = known_ahead(destinations(text, self._compiled, where))
            left: list[BreakpointPlace] = []
            with contextlib.suppress(UsageError):  # the type of that name may have no such output
                left = [place for place in places(text, self._compiled, where) if place.layer in running]
            return (*inside, *left)

        return self._at(description, found)

    def _at(self, description: BreakDescription, places_of: Callable[[str], tuple[BreakpointPlace, ...]]) -> Checks:
        try:
            found = places_of(description.text)
        except UsageError as error:
            if hint := unfinished(description.text):
                raise UsageError(hint) from None
            if near := near_word(description.text):
                raise UsageError(f"{error}; among the words of break {near}") from None
            raise
        parts: list[Checks] = []
        problem: UsageError | None = None
        prompt = not description.condition and not description.hit
        for place in found:
            try:
                condition = self._condition(description.condition, place)
            except UsageError as error:
                problem = error
                continue
            windows = () if condition is None else condition.windows
            parts.append(Checks([at_place(place, condition, self._file, prompt=prompt)], windows))
        if not parts and problem is not None:
            raise problem
        return Checks.joined(parts)

    def _condition(self, text: str, place: BreakpointPlace) -> Condition | None:
        return condition_at(text, self._timeline, place.program, place.index) if text else None

    def _log(self, description: BreakDescription, where: Program) -> Watched:
        found = places(description.text, self._compiled, where)
        if len(found) > 1:
            raise UsageError(f"'{description.text}' names {len(found)} places; a logpoint is at one")
        place = found[0]
        condition = self._condition(description.condition, place)
        line = LogLine(description.line, self._timeline, place.program, place.index)
        windows = [*line.windows, *(() if condition is None else condition.windows)]
        return Watched([at_place(place, condition, self._file, prompt=False)], windows, line)

    def _when(self, text: str, where: Program) -> Checks:
        wanted = data_breakpoint(text)
        if wanted is None:
            conditions = conditions_of(text, self._timeline, where)
            return Checks.joined([becomes_true(condition, self._timeline) for condition in conditions])
        expected = [operations_of(one.pattern, self._compiled, one.where) for one in self._exceptions]
        setting = Setting(self._timeline, where, frozenset[tuple[int, int]]().union(*expected))
        return kinds()[wanted.word].make_checks(wanted, setting)


# --- an expression --------------------------------------------------------------------------------------------------


def becomes_true(condition: Condition, timeline: Timeline) -> Checks:
    """Return a check that holds where the condition is true and was not in the iteration before, if there is one."""
    program = condition.program
    window = IterationWindow(timeline, program, condition.holds) if is_body(program) else None

    def test(stack: Frames) -> Causes | None:
        try:
            holds = condition.holds(stack)
            before = window is not None and window.past(stack)
        except StepperError as error:
            return (_unevaluated(condition, error, stack),)
        if window is not None:
            window.put(stack, holds)
        return (_became(condition, stack, was_false=True),) if holds and not before else None

    # What the window needs the test puts there itself, so it is not to be told of closed iterations.
    return Checks([Check(program, condition.index, test)], condition.windows)


def is_true(condition: Condition) -> Check:
    """Return a check that holds wherever the condition is true."""

    def test(stack: Frames) -> Causes | None:
        try:
            return (_became(condition, stack, was_false=False),) if condition.holds(stack) else None
        except StepperError as error:
            return (_unevaluated(condition, error, stack),)

    return Check(condition.program, condition.index, test, may_hold=condition.holds, of_values=condition.of_values)


def _became(condition: Condition, stack: Frames, *, was_false: bool) -> Became:
    location = location_of(stack[: len(condition.program.path) + 1], condition.file)
    return Became(location=location, expression=condition.expression.text, was_false=was_false)


def _unevaluated(condition: Condition, error: StepperError, stack: Frames) -> Unevaluated:
    location = location_of(stack[: len(condition.program.path) + 1], condition.file)
    text = condition.expression.text
    return Unevaluated(location=location, expression=text, message=str(error).splitlines()[0])


# --- a place --------------------------------------------------------------------------------------------------------


def at_place(place: BreakpointPlace, condition: Condition | None, file: str, *, prompt: bool) -> Check:
    """Return a check at a place, in its iterations, where the condition is true; `file` is that of the model."""
    depth = len(place.program.path)
    holds, of_values = (None, None) if condition is None else (condition.holds, condition.of_values)

    def test(stack: Frames) -> Causes | None:
        try:
            if holds is not None and not holds(stack):
                return None
        except StepperError as error:
            return (_unevaluated(condition, error, stack),) if condition is not None and place.is_now(stack) else None
        if not place.is_now(stack):
            return None
        entry = _passed(place, stack[depth])
        reached = Reached(
            location=location_of(stack[: depth + 1], file, place.layer),
            what=place.what,
            condition="" if condition is None else condition.expression.text,
            edge=None if entry is None else carried_of(place.program, entry, file),
            passing=None if entry is None else iteration_in(stack[depth]) - (place.index == BEGUN),
        )
        return (reached,)

    return Check(place.program, place.index, test, prompt=prompt, may_hold=holds, of_values=of_values)


def _passed(place: BreakpointPlace, frame: Frame) -> MergedInput | None:
    """Return the back edge over which a value passes at this place; None if none does."""
    if place.target is None or not is_body(place.program) or place.index not in (BEGUN, closed(place.program)):
        return None
    activation = frame.active
    plan: Any = activation.plan
    outward = place.index != BEGUN
    entries = [one for one in plan.merged if place.target.slot == (one.result if outward else one.parameter)]
    if not entries or (outward and activation.ended is not None) or (not outward and activation.iteration == 0):
        return None
    found: MergedInput = entries[0]
    return found
