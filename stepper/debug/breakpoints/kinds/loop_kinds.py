"""Breakpoints on how a loop ends, and on what comes again or changes its form in it.

`cond`, `limit`, `last` and `end` are about its end; `stuck`, `period` and `shape` about its iterations. If operations
in a row have another shape, only the first is reported: no computed input of the first differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from stepper import element_types
from stepper.debug.breakpoints.breakpoint import Causes, Check, Guard, IterationWindow, closed, iteration_in, plan_of
from stepper.debug.breakpoints.data_breakpoints import (
    Checks,
    Setting,
    carried_entries,
    loop_kind,
)
from stepper.debug.causes.cause import Carried, Cause, TensorBrief
from stepper.debug.causes.cause_texts import Words, carried_text, layer_text, where, words
from stepper.debug.provenance.operation_at import brief_of, carried_of, location_of
from stepper.element_types import Indices, have_same_bits
from stepper.engine.frames import Activation, Frames
from stepper.engine.loops import EndReason
from stepper.engine.program import Program, Value
from stepper.ir.model import LayerSite, layer_site
from stepper.ops.operands import shape_text
from stepper.records import Record

Holds = Callable[[Activation], bool]
"""True at the end of an iteration, the last one or not; an activation without iterations has the number -1."""


class LoopEnds(Cause, frozen=True, kw_only=True):
    """A loop is about to end; `executed` iterations ran. `turned`: its condition became false in the last of them.

    `ended` is why it ends, `limit` the most iterations that it could run (None: unlimited).
    """

    kind: Literal["cond", "limit", "last", "end"]
    loop: LayerSite
    ended: EndReason
    limit: int | None
    executed: int
    turned: bool


@loop_kind("cond [LOOP]", "the condition of a loop turns false")
def cond(setting: Setting, body: Program) -> Checks:
    """Return a check of a loop."""
    return _at_end("cond", lambda loop: not loop.condition and loop.iteration >= 0, setting, body)


@loop_kind("limit [LOOP]", "a loop ends because its trip count, or the slices of its inputs, are used up")
def limit(setting: Setting, body: Program) -> Checks:
    """Return a check of a loop."""
    return _at_end("limit", lambda loop: loop.ended in _LIMITS and loop.iteration >= 0, setting, body)


@loop_kind("last [LOOP]", "the last iteration of a loop is closed, whatever ends it")
def last(setting: Setting, body: Program) -> Checks:
    """Return a check of a loop."""
    return _at_end("last", lambda loop: loop.ended is not None and loop.iteration >= 0, setting, body)


@loop_kind("end [LOOP]", "a loop ends, also one that ran no iteration")
def end(setting: Setting, body: Program) -> Checks:
    """Return a check of a loop."""
    return _at_end("end", lambda loop: loop.ended is not None, setting, body)


_LIMITS = (EndReason.TRIP_COUNT, EndReason.SLICES)
_Kind = Literal["cond", "limit", "last", "end"]


def _at_end(kind: _Kind, holds: Holds, setting: Setting, body: Program) -> Checks:
    depth, file = len(body.path), setting.file

    def test(stack: Frames) -> Causes | None:
        activation = stack[depth].active
        if not holds(activation):
            return None
        layer = activation.operation.layer
        assert activation.ended is not None
        ends = LoopEnds(
            kind=kind,
            location=location_of(stack[: depth + 1], file, layer),
            loop=layer_site(layer, file),
            ended=activation.ended,
            limit=activation.limit,
            executed=activation.iteration + 1,
            turned=not activation.condition and activation.iteration >= 0,
        )
        return (ends,)

    return Checks([Check(body, closed(body), test, at_entry=kind == "end")])


@words.register
def _loop_ends_words(cause: LoopEnds, *, named: bool) -> Words:
    count = cause.executed
    ran = "without an iteration" if not count else f"after iteration {count - 1}, {count} in all"
    reason = f"{cause.ended} ({cause.limit})" if cause.ended in _LIMITS else str(cause.ended)
    if not cause.turned:
        return Words(f"{layer_text(cause.loop, named=named)} is about to end {ran}", beside=reason)
    also = "" if cause.ended is EndReason.CONDITION else f"{reason}, and "
    ends = f"{also}the loop is about to end, {count} in all"
    return Words("the condition became false", where(cause.location, named=named), ends)


class Stuck(Cause, frozen=True, kw_only=True):
    """A carried value came out of an iteration as it went in."""

    kind: Literal["stuck"] = "stuck"
    carried: Carried
    value: TensorBrief


@loop_kind("stuck [LOOP]", "the carried values of a loop do not change from one iteration to the next")
def stuck(setting: Setting, body: Program) -> Checks:
    """Return a check of a loop that carries something."""
    carried, depth, file = carried_entries(body, setting), len(body.path), setting.file
    if not carried:
        return Checks([])

    def unchanged(stack: Frames) -> frozenset[int]:
        values = stack[depth].values
        kept = (one for one in carried if have_same_bits(values[one.result], values[one.parameter]))
        return frozenset(one.parameter for one in kept)

    window = IterationWindow(setting.timeline, body, unchanged)

    def test(stack: Frames) -> Causes | None:
        now = unchanged(stack)
        if not now or iteration_in(stack[depth]) < 0:
            return None
        new = now - (window.past(stack) or frozenset())
        found = [
            Stuck(
                location=location_of(stack[: depth + 1], file, body.parameter(entry.parameter)),
                carried=carried_of(body, entry, file),
                value=brief_of(stack[depth].values[entry.result]),
            )
            for entry in carried
            if entry.parameter in new
        ]
        return tuple(found) or None

    return Checks([Check(body, closed(body), test)], [window])


@words.register
def _stuck_words(cause: Stuck, *, named: bool) -> Words:
    subject = carried_text(cause.carried, "", named=named)
    return Words(f"{subject} is stuck", where(cause.location, named=named), f"it stays {cause.value.text}")


LONGEST_PERIOD = 64
"""Iterations after which a state that comes again is found."""

_SHORT = 64
"""Bytes of a value that are kept as they are; more as their hash."""

_State = tuple[tuple[bytes, Indices, Any], ...]


class Repeats(Cause, frozen=True, kw_only=True):
    """All that a loop carries is as it was `period` iterations before. `varies`: its other inputs are not the same in
    each iteration; `limit` is its trip count (None: unlimited).
    """

    kind: Literal["period"] = "period"
    loop: LayerSite
    iteration: int
    period: int
    varies: bool
    limit: int | None


@loop_kind("period [LOOP]", "all that a loop carries is as it was a few iterations before")
def period(setting: Setting, body: Program) -> Checks:
    """Return a check of a loop that carries something."""
    carried, depth, file = carried_entries(body, setting), len(body.path), setting.file
    if not carried:
        return Checks([])
    plan = plan_of(body, setting.compiled)
    results = sorted({entry.result for entry in carried})

    def state(stack: Frames) -> _State:
        values = stack[depth].values
        return tuple((_bytes(value := values[slot]), value.shape, value.dtype) for slot in results)

    window = IterationWindow(setting.timeline, body, state, LONGEST_PERIOD + 1)

    def length_of(stack: Frames, now: _State, back: int) -> int | None:
        iteration = iteration_in(stack[depth])
        reach = range(1, min(LONGEST_PERIOD, iteration - back) + 1)
        return next((length for length in reach if window.past(stack, back + length) == now), None)

    def test(stack: Frames) -> Causes | None:
        activation = stack[depth].active
        if activation.iteration < 1 or activation.ended is not None:
            return None
        now = state(stack)
        if now not in window.records(stack):
            return None
        length = length_of(stack, now, 0)
        if length is None or length_of(stack, window.past(stack), 1) is not None:
            return None
        layer = activation.operation.layer
        repeats = Repeats(
            location=location_of(stack[: depth + 1], file, layer),
            loop=layer_site(layer, file),
            iteration=activation.iteration,
            period=length,
            varies=bool(plan.sliced or plan.current_iteration) or body.has_memory,
            limit=activation.limit,
        )
        return (repeats,)

    return Checks([Check(body, closed(body), test)], [window])


def _bytes(value: Value) -> bytes:
    content = repr(value.tolist()).encode() if value.dtype.kind in "TO" else value.tobytes()
    return content if len(content) <= _SHORT else hashlib.blake2b(content, digest_size=16).digest()


@words.register
def _repeats_words(cause: Repeats, *, named: bool) -> Words:
    repeats = f"the carried values of {layer_text(cause.loop, named=named)} repeat with period {cause.period}"
    again = f"after iteration {cause.iteration} they are what they were after {cause.iteration - cause.period}"
    if cause.varies:
        outlook = "its other inputs are not the same in each iteration, so it may leave this course"
    elif cause.limit is None:
        outlook = "nothing else goes into its iterations, so the loop can never end"
    else:
        outlook = f"nothing else goes into its iterations, so only the trip count ({cause.limit}) ends the loop"
    return Words(repeats, beside=again, others=(outlook,))


_Form = tuple[Any, Any]


class PortForm(Record):
    """Type and shape of an output in the iteration before, and now."""

    output: int
    before: str
    now: str


class FormChanged(Cause, frozen=True, kw_only=True):
    """The shape or type of outputs of an operation changed from one iteration to the next."""

    kind: Literal["shape"] = "shape"
    outputs: tuple[PortForm, ...]


@loop_kind("shape [LOOP]", "a value of a body has another shape or type than one iteration before")
def shape(setting: Setting, program: Program) -> Checks:
    """Return a check of each operation of a body."""
    depth, file = len(program.path), setting.file

    slots = [operation.outputs for operation in program.operations]

    def forms(stack: Frames) -> dict[int, _Form | None]:
        values = stack[depth].values
        return {slot: _form(values[slot]) for outputs in slots for slot in outputs}

    window = IterationWindow(setting.timeline, program, forms)

    def may_hold(stack: Frames, first: int, last: int) -> bool:
        before, values = window.past(stack), stack[depth].values
        if before is None:
            return False
        section = slots[max(first, 0) : last + 1]
        return any(before[slot] != _form(values[slot]) for outputs in section for slot in outputs)

    guard = Guard(may_hold)

    def differs(stack: Frames, before: Mapping[int, _Form | None], slot: int) -> bool:
        value = stack[depth].values[slot]
        return value is not None and before[slot] is not None and _form(value) != before[slot]

    def check(index: int) -> Check:
        operation = program.operations[index]
        computed = [slot for slot in operation.inputs if slot in program.computed_at]

        def test(stack: Frames) -> Causes | None:
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
            return (FormChanged(location=location, outputs=forms),)

        return Check(program, index, test, guard=guard)

    checks = [check(index) for index, operation in enumerate(program.operations) if operation.outputs]
    return Checks(checks, [window])


def _form(value: Value | None) -> _Form | None:
    return None if value is None else (value.shape, value.dtype)


def _form_text(form: _Form | None) -> str:
    assert form is not None, "only what is there is compared"
    return f"{element_types.name_of(form[1])}{shape_text(form[0])}"


@words.register
def _form_words(cause: FormChanged, *, named: bool) -> Words:
    changed = f"the shape or type of {layer_text(cause.location.operation, named=named)} changed"
    forms = "; ".join(f"{one.before} became {one.now}" for one in cause.outputs)
    return Words(changed, where(cause.location, named=named), forms)
