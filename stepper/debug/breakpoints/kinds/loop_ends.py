"""`break cond`, `limit`, `last` and `end`: how a loop ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from stepper.debug.breakpoints.breakpoint import Causes, Check, closed
from stepper.debug.breakpoints.data_breakpoints import Checks, DataBreakpoint, Setting, checks_of_loops, kind
from stepper.debug.causes.cause import Cause
from stepper.debug.causes.locations import location_of
from stepper.debug.causes.texts import Words, layer_text, where, words
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import EndReason
from stepper.engine.program import Program
from stepper.ir.model import LayerSite, layer_site

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


@kind("cond [LOOP]", "the condition of a loop turns false")
def cond(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each loop."""
    return _checks("cond", lambda loop: not loop.condition and loop.iteration >= 0, wanted, setting)


@kind("limit [LOOP]", "a loop ends because its trip count, or the slices of its inputs, are used up")
def limit(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each loop."""
    return _checks("limit", lambda loop: loop.ended in _LIMITS and loop.iteration >= 0, wanted, setting)


@kind("last [LOOP]", "the last iteration of a loop is closed, whatever ends it")
def last(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each loop."""
    return _checks("last", lambda loop: loop.ended is not None and loop.iteration >= 0, wanted, setting)


@kind("end [LOOP]", "a loop ends, also one that ran no iteration")
def end(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each loop."""
    return _checks("end", lambda loop: loop.ended is not None, wanted, setting)


_LIMITS: Final = (EndReason.TRIP_COUNT, EndReason.SLICES)
_Kind = Literal["cond", "limit", "last", "end"]


def _checks(kind: _Kind, holds: Holds, wanted: DataBreakpoint, setting: Setting) -> Checks:
    def check(body: Program) -> Check:
        depth, file = len(body.path), setting.file

        def test(stack: Sequence[Frame]) -> Causes | None:
            activation = stack[depth].activation
            if activation is None or not holds(activation):
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

        return Check(body, closed(body), test, at_entry=kind == "end")

    return checks_of_loops(wanted, setting, lambda body: Checks([check(body)]))


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
