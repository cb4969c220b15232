"""`break stuck [loop]`: what a loop carries does not change from one iteration to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stepper.debug.breakpoints.breakpoint import Causes, Check, IterationWindow, closed, iteration_in
from stepper.debug.breakpoints.data_breakpoints import (
    Checks,
    DataBreakpoint,
    Setting,
    carried_entries,
    checks_of_loops,
    kind,
)
from stepper.debug.causes.cause import Carried, Cause, TensorBrief
from stepper.debug.causes.locations import brief_of, carried_of, location_of
from stepper.debug.causes.texts import Words, carried_text, where, words
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.tensors.difference import same


class Stuck(Cause, frozen=True, kw_only=True):
    """A carried value came out of an iteration as it went in."""

    kind: Literal["stuck"] = "stuck"
    carried: Carried
    value: TensorBrief


@kind("stuck [LOOP]", "what a loop carries does not change from one iteration to the next")
def stuck(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return a check of each loop that carries something."""
    return checks_of_loops(wanted, setting, lambda body: _checks(setting, body))


def _checks(setting: Setting, body: Program) -> Checks:
    carried, depth, file = carried_entries(body, setting), len(body.path), setting.file
    if not carried:
        return Checks([])

    def unchanged(stack: Sequence[Frame]) -> frozenset[int]:
        values = stack[depth].values
        return frozenset(entry.parameter for entry in carried if same(values[entry.result], values[entry.parameter]))

    window = IterationWindow(setting.timeline, body, unchanged)

    def test(stack: Sequence[Frame]) -> Causes | None:
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
