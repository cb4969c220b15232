"""`break period [loop]`: all that a loop carries is as it was a few iterations before."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Literal

from stepper.debug.breakpoints.breakpoint import Causes, Check, IterationWindow, closed, iteration_in, plan_of
from stepper.debug.breakpoints.data_breakpoints import (
    Checks,
    DataBreakpoint,
    Setting,
    carried_entries,
    checks_of_loops,
    kind,
)
from stepper.debug.causes.cause import Cause
from stepper.debug.causes.locations import location_of
from stepper.debug.causes.texts import Words, layer_text, words
from stepper.engine.frames import Frame
from stepper.engine.program import Program, Value
from stepper.ir.model import LayerSite, layer_site

LONGEST_PERIOD: Final = 64
"""Iterations after which a state that comes again is found."""

_SHORT: Final = 64
"""Bytes of a value that are kept as they are; more as their hash."""

_State = tuple[tuple[bytes, tuple[int, ...], Any], ...]


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


@kind("period [LOOP]", "all that a loop carries is as it was a few iterations before")
def period(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each loop that carries something."""
    return checks_of_loops(wanted, setting, lambda body: _checks(setting, body))


def _checks(setting: Setting, body: Program) -> Checks:
    carried, depth, file = carried_entries(body, setting), len(body.path), setting.file
    if not carried:
        return Checks([])
    plan = plan_of(body, setting.compiled)
    results = sorted({entry.result for entry in carried})

    def state(stack: Sequence[Frame]) -> _State:
        values = stack[depth].values
        return _condensed([values[slot] for slot in results])

    window = IterationWindow(setting.timeline, body, state, LONGEST_PERIOD + 1)

    def period(stack: Sequence[Frame], now: _State, back: int) -> int | None:
        iteration = iteration_in(stack[depth])
        reach = range(1, min(LONGEST_PERIOD, iteration - back) + 1)
        return next((length for length in reach if window.past(stack, back + length) == now), None)

    def test(stack: Sequence[Frame]) -> Causes | None:
        frame = stack[depth]
        activation = frame.activation
        if activation is None or activation.iteration < 1 or activation.ended is not None:
            return None
        now = state(stack)
        if now not in window.records(stack):
            return None
        length = period(stack, now, 0)
        if length is None or period(stack, window.past(stack), 1) is not None:
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


def _condensed(values: list[Value]) -> _State:
    return tuple((_bytes(value), value.shape, value.dtype) for value in values)


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
