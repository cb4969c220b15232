"""What makes a breakpoint of its description: the checks that watch for it. What is wrong in it is refused here."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Expected
from stepper.debug.breakpoints.carried import loop_checks
from stepper.debug.breakpoints.checks import Check, bodies
from stepper.debug.breakpoints.conditions import condition_at, conditions_of
from stepper.debug.breakpoints.differences import difference_check, difference_checks
from stepper.debug.breakpoints.element_ranges import ensure_elements
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.breakpoints.kinds import DataBreak, data_break, near_word, unfinished
from stepper.debug.breakpoints.logpoints import LogLine
from stepper.debug.breakpoints.non_finite import non_finite_checks
from stepper.debug.breakpoints.targets import loop_body, operations_of, places, value_place
from stepper.debug.breakpoints.values import at_place, becomes_true, is_true, shape_checks, value_checks
from stepper.debug.causes.cause import CauseKind
from stepper.debug.causes.locations import file_of
from stepper.debug.reference_values import ReferenceValues
from stepper.debug.timeline import Timeline
from stepper.engine.program import Program
from stepper.errors import UsageError

Made = tuple[list[Check], list[IterationWindow], LogLine | None]


class Maker:
    """Makes breakpoints of a run; `exceptions` are the operations in which NaN and Inf are expected."""

    def __init__(self, timeline: Timeline, exceptions: Sequence[Expected]) -> None:
        self._timeline = timeline
        self._exceptions = exceptions
        self._file = file_of(timeline.machine.compiled)

    def ensure_operations(self, pattern: str, where: Program) -> None:
        """UsageError for a pattern that names no operation."""
        operations_of(pattern, self._timeline.machine.compiled, where)

    def ensure_elements(self, description: BreakDescription, where: Program) -> str:
        """UsageError for a data breakpoint about an element that its value does not have.

        Return a note about one that it may lack; else it is empty.
        """
        wanted = data_break(description.text) if description.kind is BreakKind.WHEN else None
        if wanted is not None and wanted.address is not None and wanted.address.index:
            machine = self._timeline.machine
            target = value_place(wanted.address, machine.compiled, where).target
            if target is not None:
                return ensure_elements(wanted.address, target, machine.stack)
        return ""

    def has_exceptions(self, description: BreakDescription) -> bool:
        """Whether a breakpoint asks nothing of the operations in which NaN and Inf are expected."""
        return description.kind is BreakKind.WHEN and description.text in (CauseKind.NAN, CauseKind.INF)

    def until(self, text: str, where: Program) -> tuple[list[Check], list[IterationWindow]]:
        """The checks and windows of a movement that ends where a condition holds."""
        conditions = conditions_of(text, self._timeline, where)
        windows = [window for condition in conditions for window in condition.windows]
        return [is_true(condition) for condition in conditions], windows

    def anomalies(self, where: Program) -> tuple[list[Check], list[IterationWindow]]:
        """The same of one that ends where NaN or Inf is made, or a carried shape changes."""
        made = [self._made_when(CauseKind.NAN, where), self._made_when(CauseKind.INF, where)]
        with contextlib.suppress(UsageError):  # a model without loops carries no shapes
            made.append(self._made_when(CauseKind.SHAPE, where))
        checks = [check for found, _windows in made for check in found]
        return checks, [window for _checks, found in made for window in found]

    def made(self, description: BreakDescription, where: Program) -> Made:
        """The checks of a breakpoint, the windows that they leave, and the line that it logs. Raises UsageError."""
        if description.kind is BreakKind.WHEN:
            return (*self._made_when(description.text, where), None)
        if description.kind is BreakKind.LOG:
            return self._made_log(description, where)
        checks, windows = self._made_at(description, where)
        return checks, windows, None

    def _made_at(self, description: BreakDescription, where: Program) -> tuple[list[Check], list[IterationWindow]]:
        checks: list[Check] = []
        windows: list[IterationWindow] = []
        problem: UsageError | None = None
        prompt = not description.condition and not description.hit
        try:
            found = places(description.text, self._timeline.machine.compiled, where)
        except UsageError as error:
            if hint := unfinished(description.text):
                raise UsageError(hint) from None
            if near := near_word(description.text):
                raise UsageError(f"{error}; among the words of break {near}") from None
            raise
        for place in found:
            try:
                condition = self._condition(description.condition, place.program, place.index)
            except UsageError as error:
                problem = error
                continue
            checks.append(at_place(place, condition, self._file, prompt=prompt))
            windows += [] if condition is None else condition.windows
        if not checks and problem is not None:
            raise problem
        return checks, windows

    def _condition(self, text: str, program: Program, index: int) -> Any:
        return condition_at(text, self._timeline, program, index) if text else None

    def _made_log(self, description: BreakDescription, where: Program) -> Made:
        found = places(description.text, self._timeline.machine.compiled, where)
        if len(found) > 1:
            raise UsageError(f"'{description.text}' names {len(found)} places; a logpoint is at one")
        place = found[0]
        condition = self._condition(description.condition, place.program, place.index)
        line = LogLine(description.line, self._timeline, place.program, place.index)
        windows = [*line.windows, *(() if condition is None else condition.windows)]
        return [at_place(place, condition, self._file, prompt=False)], windows, line

    def _made_when(self, text: str, where: Program) -> tuple[list[Check], list[IterationWindow]]:
        wanted = data_break(text)
        if wanted is None:
            made = [becomes_true(condition, self._timeline) for condition in conditions_of(text, self._timeline, where)]
            return [check for checks, _ in made for check in checks], [
                window for _, windows in made for window in windows
            ]
        compiled, reference = self._timeline.machine.compiled, self._timeline.reference
        if wanted.word is CauseKind.DIFF and reference is not None:
            return self._made_difference(wanted, reference, where), []
        if wanted.word in (CauseKind.NAN, CauseKind.INF):
            named = [operations_of(expected.pattern, compiled, expected.where) for expected in self._exceptions]
            return non_finite_checks(wanted.word, compiled, frozenset[tuple[int, int]]().union(*named)), []
        if wanted.address is None:
            return self._of_loops(wanted, bodies(compiled))
        body = loop_body(wanted.address, compiled, where)
        if body is not None and wanted.word is not CauseKind.CHANGES:
            return self._of_loops(wanted, [body])
        if wanted.word in (CauseKind.GROW, CauseKind.DIFF, CauseKind.CHANGES):
            return value_checks(wanted, self._timeline, where)
        raise UsageError(f"'{wanted.address}' is no loop; '{wanted.word}' is about loops")

    def _made_difference(self, wanted: DataBreak, reference: ReferenceValues, where: Program) -> list[Check]:
        """`diff>X` against a reference: of every operation, those of one loop, or of one value."""
        compiled = self._timeline.machine.compiled
        if wanted.address is None:
            return difference_checks(wanted, reference, compiled.programs, self._file)
        body = loop_body(wanted.address, compiled, where)
        if body is not None:
            return difference_checks(wanted, reference, [body], self._file)
        place = value_place(wanted.address, compiled, where)
        if place.target is None:
            raise UsageError(f"'{wanted.address}' names no value")
        return [difference_check(wanted, reference, place.program, place.index, place.target.slot, self._file)]

    def _of_loops(self, wanted: DataBreak, programs: Sequence[Program]) -> tuple[list[Check], list[IterationWindow]]:
        maker = shape_checks if wanted.word is CauseKind.SHAPE else None
        checks: list[Check] = []
        windows: list[IterationWindow] = []
        for program in programs:
            made = maker(program, self._timeline) if maker else loop_checks(wanted, program, self._timeline)
            checks += made[0]
            windows += made[1]
        if not checks:
            raise UsageError(f"there is no loop of which '{wanted.word}' says anything")
        return checks, windows
