"""Values beside what they were one iteration before: what a loop carries, and a value that is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from stepper.debug.breakpoints.checks import Causes, Check, closed, is_body, iteration_in, named, plan_of
from stepper.debug.breakpoints.data_breakpoints import Checks, DataBreakpoint, Setting, checks_of_loops
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.breakpoints.targets import loop_body, value_place
from stepper.debug.causes.cause import Carried, Cause, Location
from stepper.debug.causes.locations import carried_of, location_of
from stepper.engine.frames import Frame
from stepper.engine.loops import MergedInput
from stepper.engine.program import Program, Value
from stepper.errors import UsageError
from stepper.query.address_syntax import numpy_index
from stepper.tensors.difference import magnitude


class Compared(NamedTuple):
    """A value at a stop and one iteration before, None if it is not there.

    `first` returns the magnitude that it began with, `locate` where it is; `edge` by which back edge.
    """

    wanted: DataBreakpoint
    now: Value | None
    before: Value | None
    first: Callable[[], float]
    locate: Callable[[], Location]
    edge: Callable[[], Carried] | None = None

    @property
    def carried(self) -> Carried | None:
        """Return the back edge; None for a value that is named."""
        return None if self.edge is None else self.edge()

    @property
    def address(self) -> str:
        """Return the address of the value as it was written; empty for what a loop carries."""
        return str(self.wanted.address) if self.edge is None else ""


Compare = Callable[[Compared], Cause | None]


def compared(wanted: DataBreakpoint, setting: Setting, compare: Compare, *, needs_first: bool = False) -> Checks:
    """Return checks of the value that is named, or of all that loops carry. Raise UsageError for what is neither.

    `needs_first`: `compare` asks for the magnitude that a value began with.
    """
    if wanted.address is None or loop_body(wanted.address, setting.compiled, setting.where) is not None:
        return checks_of_loops(
            wanted, setting, lambda body: _checks_of_carried(wanted, setting, body, compare, needs_first=needs_first)
        )
    return checks_of_value(wanted, setting, compare, needs_first=needs_first)


def carried_entries(body: Program, setting: Setting) -> list[MergedInput]:
    """Return what a body carries from an iteration to the next and may change."""
    plan = plan_of(body, setting.compiled)
    return [entry for entry in plan.merged if entry.result != entry.parameter]


def _checks_of_carried(
    wanted: DataBreakpoint, setting: Setting, body: Program, compare: Compare, *, needs_first: bool
) -> Checks:
    carried = carried_entries(body, setting)
    if not carried:
        return Checks([])
    depth, file = len(body.path), setting.file

    def magnitudes(stack: Sequence[Frame]) -> dict[int, float]:
        return {entry.parameter: magnitude(stack[depth].values[entry.result]) for entry in carried}

    window = IterationWindow(setting.timeline, body, magnitudes, keeps_first=True)

    def began_with(stack: Sequence[Frame], entry: MergedInput) -> float:
        """Return the magnitude of the initial value, or of the first result where that is 0."""
        activation = stack[depth].activation
        assert activation is not None
        initial = magnitude(stack[depth - 1].values[activation.operation.inputs[entry.input]])
        if initial == 0 and activation.iteration > 0:
            initial = window.at(stack, 0)[entry.parameter]
        return initial

    def test(stack: Sequence[Frame]) -> Causes | None:
        frame = stack[depth]
        if iteration_in(frame) < 0:
            return None
        pairs = (
            Compared(
                wanted,
                frame.values[entry.result],
                frame.values[entry.parameter],
                partial(began_with, stack, entry),
                partial(location_of, stack[: depth + 1], file, body.parameter(entry.parameter)),
                partial(carried_of, body, entry, file),
            )
            for entry in carried
        )
        return tuple(cause for cause in map(compare, pairs) if cause is not None) or None

    return Checks([Check(body, closed(body), test)], [window] if needs_first else [])


def checks_of_value(
    wanted: DataBreakpoint, setting: Setting, compare: Compare, *, needs_first: bool = False, from_first: bool = False
) -> Checks:
    """Return a check of the value that is named. Raise UsageError for one that is compared with nothing.

    `from_first`: where there is no iteration before, it is compared with None; otherwise it is passed over there.
    """
    assert wanted.address is not None
    place = value_place(wanted.address, setting.compiled, setting.where)
    is_repeated = is_body(place.program)
    if not is_repeated and not from_first:
        raise UsageError(_why_not_compared(wanted, place.program))
    target = place.target
    assert target is not None
    depth, file, index = len(place.program.path), setting.file, numpy_index(wanted.address.index)

    def value(stack: Sequence[Frame]) -> Value | None:
        found = stack[depth].values[target.slot]
        try:
            return found[index] if index and found is not None else found
        except IndexError:
            return None  # it has no such element in this iteration

    window = IterationWindow(setting.timeline, place.program, value, keeps_first=needs_first) if is_repeated else None

    def began_with(stack: Sequence[Frame]) -> float:
        first = None if window is None else window.at(stack, 0)
        return 0.0 if first is None else magnitude(first)

    def test(stack: Sequence[Frame]) -> Causes | None:
        is_first = window is None or iteration_in(stack[depth]) < 1
        if is_first and not from_first:
            return None
        now, before = value(stack), None if window is None or is_first else window.past(stack)
        if now is None and before is None:
            return None
        locate = partial(location_of, stack[: depth + 1], file, target.layer)
        cause = compare(Compared(wanted, now, before, partial(began_with, stack), locate))
        return None if cause is None else (cause,)

    return Checks([Check(place.program, place.index, test)], [] if window is None else [window])


def _why_not_compared(wanted: DataBreakpoint, program: Program) -> str:
    """Return why a value outside of the bodies of loops has none before it; `program` is its graph."""
    if program.path:
        return f"'{wanted.address}' is in a side of {named(program.path[-1])}, where nothing is compared"
    return f"'{wanted.address}' is not in the body of a loop, so it is computed once and never compared"
