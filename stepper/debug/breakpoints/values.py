"""Data breakpoints about values: an expression becomes true, a value or an element changes, a shape or type changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepper import element_types
from stepper.debug.breakpoints.carried import distance, magnitude, same
from stepper.debug.breakpoints.checks import BEGUN, Causes, Check, Guard, closed, is_body, iteration_in
from stepper.debug.breakpoints.conditions import Condition, unevaluated
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.breakpoints.kinds import DataBreak
from stepper.debug.breakpoints.targets import Place, value_place
from stepper.debug.causes.cause import (
    Became,
    Cause,
    CauseKind,
    Changed,
    FormChanged,
    Grown,
    Location,
    Moved,
    PortForm,
    Reached,
)
from stepper.debug.causes.locations import carried_of, change_of, file_of, location_of
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame
from stepper.engine.loops import MergedInput
from stepper.engine.program import Program, Value
from stepper.errors import StepperError, UsageError
from stepper.ops.axes import shape_text
from stepper.query.addresses import numpy_index

Made = tuple[list[Check], list[IterationWindow]]

# --- an expression --------------------------------------------------------------------------------------------------


def becomes_true(condition: Condition, timeline: Timeline) -> Made:
    """A check that holds where the condition is true and was not in the iteration before (or there is none)."""
    program = condition.program
    window = IterationWindow(timeline, program, condition.holds) if is_body(program) else None

    def test(stack: Sequence[Frame]) -> Causes | None:
        try:
            holds = condition.holds(stack)
            before = window is not None and window.past(stack)
        except StepperError as error:
            return (unevaluated(condition, error, stack),)
        if window is not None:
            window.put(stack, holds)
        return (_became(condition, stack, was_false=True),) if holds and not before else None

    # What the window needs it puts there itself, so it is not to be told of closed iterations.
    return [Check(program, condition.index, test)], list(condition.windows)


def is_true(condition: Condition) -> Check:
    """A check that holds wherever the condition is true."""

    def test(stack: Sequence[Frame]) -> Causes | None:
        try:
            return (_became(condition, stack, was_false=False),) if condition.holds(stack) else None
        except StepperError as error:
            return (unevaluated(condition, error, stack),)

    return Check(condition.program, condition.index, test)


def _became(condition: Condition, stack: Sequence[Frame], *, was_false: bool) -> Became:
    location = location_of(stack[: len(condition.program.path) + 1], condition.file)
    text = condition.expression.text
    return Became(kind=CauseKind.EXPRESSION, location=location, expression=text, was_false=was_false)


# --- one value ------------------------------------------------------------------------------------------------------


def value_checks(wanted: DataBreak, timeline: Timeline, program: Program) -> Made:
    """What a data breakpoint asks of the value that it names, seen from a program. Raises UsageError."""
    assert wanted.address is not None
    place = value_place(wanted.address, timeline.machine.compiled, program)
    if not is_body(place.program):
        raise UsageError(f"'{wanted.address}' is not in the body of a loop, so it is computed once and never compared")
    assert place.target is not None
    depth, slot = len(place.program.path), place.target.slot
    index = numpy_index(wanted.address.index)

    def value(stack: Sequence[Frame]) -> Value | None:
        found = stack[depth].values[slot]
        try:
            return found[index] if index and found is not None else found
        except IndexError:
            return None  # it has no such element in this iteration

    keeps_first, target, file = wanted.word is CauseKind.GROW, place.target, file_of(timeline.machine.compiled)
    window = IterationWindow(timeline, place.program, value, keeps_first=keeps_first)

    def test(stack: Sequence[Frame]) -> Causes | None:
        if iteration_in(stack[depth]) < 1:
            return None
        now, before = value(stack), window.past(stack)
        if now is None and before is None:
            return None
        first = window.at(stack, 0) if keeps_first else None
        compared = _came_or_went if now is None or before is None else _compared
        location = location_of(stack[: depth + 1], file, target.layer)
        cause = compared(wanted, location, now, before, first)
        return None if cause is None else (cause,)

    return [Check(place.program, place.index, test)], [window]


def _came_or_went(
    wanted: DataBreak, location: Location, _now: Value | None, before: Value | None, _first: Value | None
) -> Cause:
    appeared = before is None
    kind = CauseKind.CHANGES
    return Changed(kind=kind, location=location, address=str(wanted.address), change=None, appeared=appeared)


def _compared(wanted: DataBreak, location: Location, now: Value, before: Value, first: Value | None) -> Cause | None:
    """What is to be said where a value differs as it was asked for from that of the iteration before."""
    address, limit = str(wanted.address), wanted.limit
    if wanted.word is CauseKind.CHANGES:
        if same(now, before):
            return None
        change = change_of(before, now)
        return Changed(kind=CauseKind.CHANGES, location=location, address=address, change=change)
    if wanted.word is CauseKind.DIFF:
        far = distance(now, before)
        if not far > limit:
            return None
        return Moved(
            kind=CauseKind.DIFF,
            location=location,
            carried=None,
            address=address,
            distance=far,
            limit=limit,
            change=change_of(before, now),
        )
    start = 0.0 if first is None else magnitude(first)
    if start > 0 and magnitude(now) > limit * start >= magnitude(before):
        return Grown(
            kind=CauseKind.GROW,
            location=location,
            carried=None,
            address=address,
            factor=limit,
            magnitude=magnitude(now),
            first=start,
        )
    return None


# --- shapes ---------------------------------------------------------------------------------------------------------

_Form = tuple[Any, Any]


def shape_checks(program: Program, timeline: Timeline) -> Made:
    """What is asked of a body: an output has another shape or type than in the iteration before.

    Of operations in a row only the first is reported, of which no computed input differs.
    """
    depth, file = len(program.path), file_of(timeline.machine.compiled)

    slots = [operation.outputs for operation in program.operations]

    def forms(stack: Sequence[Frame]) -> dict[int, _Form | None]:
        values = stack[depth].values
        return {slot: _form(values[slot]) for outputs in slots for slot in outputs}

    window = IterationWindow(timeline, program, forms)

    def may_hold(stack: Sequence[Frame], first: int, last: int) -> bool:
        before, values = window.past(stack), stack[depth].values
        if before is None:
            return False
        section = slots[max(first, 0) : last + 1]
        return any(before[slot] != _form(values[slot]) for outputs in section for slot in outputs)

    guard = Guard(may_hold)

    def differs(stack: Sequence[Frame], before: Mapping[int, _Form | None], slot: int) -> bool:
        value = stack[depth].values[slot]
        return value is not None and before[slot] is not None and _form(value) != before[slot]

    def check(index: int) -> Check:
        operation = program.operations[index]
        computed = [slot for slot in operation.inputs if slot in program.computed_at]

        def test(stack: Sequence[Frame]) -> Causes | None:
            before = window.past(stack)
            if before is None or any(differs(stack, before, slot) for slot in computed):
                return None
            forms = tuple(
                PortForm(output, _form_text(before[slot]), _form_text(_form(stack[depth].values[slot])))
                for output, slot in enumerate(operation.outputs)
                if differs(stack, before, slot)
            )
            if not forms:
                return None
            location = location_of(stack[: depth + 1], file, operation.layer)
            return (FormChanged(kind=CauseKind.SHAPE, location=location, outputs=forms),)

        return Check(program, index, test, guard=guard)

    return [check(index) for index, operation in enumerate(program.operations) if operation.outputs], [window]


def _form(value: Value | None) -> _Form | None:
    return None if value is None else (value.shape, value.dtype)


def _form_text(form: _Form | None) -> str:
    assert form is not None, "only what is there is compared"
    return f"{element_types.name_of(form[1])}{shape_text(form[0])}"


# --- a place --------------------------------------------------------------------------------------------------------


def at_place(place: Place, condition: Condition | None, file: str, *, prompt: bool) -> Check:
    """A check that holds at a place, in its iterations, where the condition is true; `file` is that of the model."""
    depth, holds = len(place.program.path), None if condition is None else condition.holds

    def test(stack: Sequence[Frame]) -> Causes | None:
        try:
            if holds is not None and not holds(stack):
                return None
        except StepperError as error:
            return (unevaluated(condition, error, stack),) if condition is not None and place.is_now(stack) else None
        if not place.is_now(stack):
            return None
        entry = _passed(place, stack[depth])
        reached = Reached(
            kind=CauseKind.REACHED,
            location=location_of(stack[: depth + 1], file, place.layer),
            what=place.what,
            condition="" if condition is None else condition.expression.text,
            edge=None if entry is None else carried_of(place.program, entry, file),
            passing=None if entry is None else iteration_in(stack[depth]) - (place.index == BEGUN),
        )
        return (reached,)

    return Check(place.program, place.index, test, prompt=prompt, may_hold=holds)


def _passed(place: Place, frame: Frame) -> MergedInput | None:
    """The back edge over which a value passes at this place; None where none does."""
    if place.target is None or not is_body(place.program) or place.index not in (BEGUN, closed(place.program)):
        return None
    activation = frame.activation
    assert activation is not None
    plan: Any = activation.plan
    outward = place.index != BEGUN
    entries = [one for one in plan.merged if place.target.slot == (one.result if outward else one.parameter)]
    if not entries or (outward and activation.ended is not None) or (not outward and activation.iteration == 0):
        return None
    found: MergedInput = entries[0]
    return found
