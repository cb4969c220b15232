"""`break diff>1e-4 [x]`: a value is farther from the reference than that or, without one, changes by more.

With a reference run it is any value, those of one loop, or the one that is named; without one, what loops carry, or the
value that is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from stepper.debug.breakpoints.breakpoint import Causes, Check
from stepper.debug.breakpoints.conditions import loop_body, value_place
from stepper.debug.breakpoints.data_breakpoints import (
    Checks,
    Compared,
    DataBreakpoint,
    Setting,
    compared,
    kind,
)
from stepper.debug.breakpoints.kinds.changes import came_or_went
from stepper.debug.causes.cause import Carried, Cause, ValueChange
from stepper.debug.causes.locations import change_of, location_of
from stepper.debug.causes.texts import Words, carried_text, change_text, layer_text, where, words
from stepper.debug.reference_values import ReferencedValue, ReferenceValues
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.errors import UsageError
from stepper.tensors.difference import distance


class Moved(Cause, frozen=True, kw_only=True):
    """A carried value, or the one at an address, changed by `distance` in an iteration, more than `limit`."""

    kind: Literal["diff"] = "diff"
    carried: Carried | None
    address: str
    distance: float
    limit: float
    change: ValueChange


class Differs(Cause, frozen=True, kw_only=True):
    """A value is `distance` from that of a reference, more than `limit`; or of another shape (`distance` is None)."""

    kind: Literal["reference"] = "reference"
    reference: str
    distance: float | None
    limit: float
    change: ValueChange


@kind(
    "diff>LIMIT [VALUE]",
    "a value is farther from the reference than that, or, without one, changes by more",
    limit="1e-4",
)
def diff(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return the checks of what is compared: with the reference if there is one."""
    if setting.reference is None:
        return compared(wanted, setting, _moved)
    compiled = setting.compiled
    body = None if wanted.address is None else loop_body(wanted.address, compiled, setting.where)
    if wanted.address is None or body is not None:
        return Checks(
            [
                _check(wanted, setting, setting.reference, program, index, slot)
                for program in (compiled.programs if body is None else [body])
                for index, operation in enumerate(program.operations)
                for slot in operation.outputs
            ]
        )
    place = value_place(wanted.address, compiled, setting.where)
    if place.target is None:
        raise UsageError(f"'{wanted.address}' names no value")
    return Checks([_check(wanted, setting, setting.reference, place.program, place.index, place.target.slot)])


def _moved(pair: Compared) -> Cause | None:
    if pair.now is None or pair.before is None:
        return came_or_went(pair)
    limit, far = pair.wanted.limit, distance(pair.now, pair.before)
    if not far > limit:
        return None
    return Moved(
        location=pair.locate(),
        carried=pair.carried,
        address=pair.address,
        distance=far,
        limit=limit,
        change=change_of(pair.before, pair.now),
    )


def _check(
    wanted: DataBreakpoint, setting: Setting, reference: ReferenceValues, program: Program, index: int, slot: int
) -> Check:
    """Return the check of one value after the operation at this index."""
    theirs_at, depth, file = ReferencedValue(program, slot), len(program.path), setting.file

    def test(stack: Sequence[Frame]) -> Causes | None:
        ours, theirs = stack[depth].values[slot], theirs_at.value(stack, reference)
        if ours is None or theirs is None:
            return None
        far = None if ours.shape != theirs.shape else distance(np.asarray(ours), np.asarray(theirs))
        if far is not None and not far > wanted.limit:
            return None
        differs = Differs(
            location=location_of(stack[: depth + 1], file, theirs_at.layer),
            reference=reference.title,
            distance=far,
            limit=wanted.limit,
            change=change_of(np.asarray(theirs), np.asarray(ours)),
        )
        return (differs,)

    return Check(program, index, test)


@words.register
def _moved_words(cause: Moved, *, named: bool) -> Words:
    subject = carried_text(cause.carried, cause.address, named=named)
    changed = f"{subject} changed by {cause.distance:g}, more than {cause.limit:g},"
    return Words(changed, where(cause.location, named=named), change_text(cause.change))


@words.register
def _differs_words(cause: Differs, *, named: bool) -> Words:
    operation, inside = layer_text(cause.location.operation, named=named), where(cause.location, named=named)
    if cause.distance is None:
        shapes = f"{list(cause.change.now.shape)} against {list(cause.change.before.shape)}"
        return Words(f"{operation} has another shape than in {cause.reference}", inside, shapes)
    far = f"{operation} is {cause.distance:g} from {cause.reference}, more than {cause.limit:g},"
    return Words(far, inside, change_text(cause.change))
