"""Data breakpoints about values: an expression becomes true, a value or an element changes, a shape or type changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepper import element_types
from stepper.debug.addresses import Address, numpy_index
from stepper.debug.break_targets import Place, value_place
from stepper.debug.carried_breaks import change, distance, magnitude, same
from stepper.debug.checks import BEGUN, Check, Guard, Sentences, closed, is_body, iteration_in, named, where
from stepper.debug.conditions import Condition, failure
from stepper.debug.data_break_words import DataBreak, Word
from stepper.debug.recall import Trail
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame
from stepper.engine.program import Program, Value
from stepper.errors import StepperError, UsageError
from stepper.ops.axes import shape_text

Made = tuple[list[Check], list[Trail]]

# --- an expression --------------------------------------------------------------------------------------------------


def becomes_true(condition: Condition, timeline: Timeline) -> Made:
    """A check that holds where the condition is true and was not in the iteration before (or there is none)."""
    program, depth, text = condition.program, len(condition.program.path), condition.expression.text
    trail = Trail(timeline, program, condition.holds) if is_body(program) else None

    def test(stack: Sequence[Frame]) -> Sentences | None:
        try:
            holds = condition.holds(stack)
            before = trail is not None and trail.past(stack)
        except StepperError as error:
            return (failure(condition, error),)
        if trail is not None:
            trail.put(stack, holds)
        return (f"'{text}' became true {where(stack[depth])}",) if holds and not before else None

    # What the trail needs it puts there itself, so it is not to be told of closed iterations.
    return [Check(program, condition.index, test)], list(condition.trails)


def is_true(condition: Condition) -> Check:
    """A check that holds wherever the condition is true."""
    depth, text = len(condition.program.path), condition.expression.text

    def test(stack: Sequence[Frame]) -> Sentences | None:
        try:
            return (f"'{text}' is true {where(stack[depth])}",) if condition.holds(stack) else None
        except StepperError as error:
            return (failure(condition, error),)

    return Check(condition.program, condition.index, test)


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

    keeps_first = wanted.word is Word.GROW
    trail = Trail(timeline, place.program, value, keeps_first=keeps_first)

    def test(stack: Sequence[Frame]) -> Sentences | None:
        frame = stack[depth]
        iteration = iteration_in(frame)
        if iteration < 1:
            return None
        now, before = value(stack), trail.past(stack)
        if now is None or before is None:
            return _came_or_went(wanted.address, frame, now, before)
        first = trail.at(stack, 0) if keeps_first else None
        sentence = _compared(wanted, frame, now, before, first)
        return None if sentence is None else (sentence,)

    return [Check(place.program, place.index, test)], [trail]


def _came_or_went(address: Address | None, frame: Frame, now: Value | None, before: Value | None) -> Sentences | None:
    if now is None and before is None:
        return None
    return (f"{address} {'is there for the first time' if before is None else 'is no longer there'} {where(frame)}",)


def _compared(wanted: DataBreak, frame: Frame, now: Value, before: Value, first: Value | None) -> str | None:
    """The sentence where a value differs as it was asked for from that of the iteration before."""
    address, limit = wanted.address, wanted.limit
    if wanted.word is Word.CHANGES:
        if same(now, before):
            return None
        return f"{address} changed {where(frame)} {change(before, now)}"
    if wanted.word is Word.DIFF:
        far = distance(now, before)
        return (
            f"{address} changed by {far:g} {where(frame)}, more than {limit:g}: {change(before, now)}"
            if far > limit
            else None
        )
    start = 0.0 if first is None else magnitude(first)
    if start > 0 and magnitude(now) > limit * start >= magnitude(before):
        beyond = f"{address} has grown beyond {limit:g} times its first value {where(frame)}"
        return f"{beyond}: {magnitude(now):g}, {start:g} at first"
    return None


# --- shapes ---------------------------------------------------------------------------------------------------------

_Form = tuple[Any, Any]


def shape_checks(program: Program, timeline: Timeline) -> Made:
    """What is asked of a body: an output has another shape or type than in the iteration before.

    Of operations in a row only the first is reported, of which no computed input differs.
    """
    depth = len(program.path)

    slots = [operation.outputs for operation in program.operations]

    def forms(stack: Sequence[Frame]) -> dict[int, _Form | None]:
        values = stack[depth].values
        return {slot: _form(values[slot]) for outputs in slots for slot in outputs}

    trail = Trail(timeline, program, forms)

    def may_hold(stack: Sequence[Frame], first: int, last: int) -> bool:
        before, values = trail.past(stack), stack[depth].values
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

        def test(stack: Sequence[Frame]) -> Sentences | None:
            before = trail.past(stack)
            if before is None or any(differs(stack, before, slot) for slot in computed):
                return None
            changed = [slot for slot in operation.outputs if differs(stack, before, slot)]
            frame = stack[depth]
            what = "; ".join(
                f"{_form_text(before[slot])} became {_form_text(_form(frame.values[slot]))}" for slot in changed
            )
            return (
                (f"the shape or type of {named(operation.layer)} changed {where(frame)}: {what}",) if changed else None
            )

        return Check(program, index, test, guard=guard)

    return [check(index) for index, operation in enumerate(program.operations) if operation.outputs], [trail]


def _form(value: Value | None) -> _Form | None:
    return None if value is None else (value.shape, value.dtype)


def _form_text(form: _Form | None) -> str:
    assert form is not None, "only what is there is compared"
    return f"{element_types.name_of(form[1])}{shape_text(form[0])}"


# --- a place --------------------------------------------------------------------------------------------------------


def at_place(place: Place, condition: Condition | None, *, prompt: bool) -> Check:
    """A check that holds at a place, in its iterations, where the condition is true."""
    depth, holds = len(place.program.path), None if condition is None else condition.holds

    def test(stack: Sequence[Frame]) -> Sentences | None:
        try:
            if holds is not None and not holds(stack):
                return None
        except StepperError as error:
            return (failure(condition, error),) if condition is not None and place.is_now(stack) else None
        if not place.is_now(stack):
            return None
        reason = "" if condition is None else f", and '{condition.expression.text}' is true"
        return (*_edge_sentence(place, stack[depth]), f"{place.what} {where(stack[depth])}{reason}")

    return Check(place.program, place.index, test, prompt=prompt, may_hold=holds)


def _edge_sentence(place: Place, frame: Frame) -> Sentences:
    """What passes over a back edge at this place, as a sentence."""
    if place.target is None or not is_body(place.program) or place.index not in (BEGUN, closed(place.program)):
        return ()
    activation = frame.activation
    assert activation is not None
    plan: Any = activation.plan
    outward = place.index != BEGUN
    entries = [one for one in plan.merged if place.target.slot == (one.result if outward else one.parameter)]
    if not entries or (outward and activation.ended is not None) or (not outward and activation.iteration == 0):
        return ()
    passing = activation.iteration if outward else activation.iteration - 1
    return (f"the back edge on line {entries[0].line} carries it from iteration {passing} to {passing + 1}",)
