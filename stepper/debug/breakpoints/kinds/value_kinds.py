"""Break where a value differs from an iteration before, or from the reference.

The kinds are `changes`, `new`, `diff` and `grow`. `break diff>1e-4 [x]` with a reference run compares any value, the
values of one loop, or the value that is named. Without a reference it compares what loops carry, or the value that is
named.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from stepper.debug.breakpoints.breakpoint import Causes, Check
from stepper.debug.breakpoints.conditions import loop_body, value_place
from stepper.debug.breakpoints.data_breakpoints import (
    Checks,
    Compared,
    DataBreakpoint,
    Setting,
    checks_of_value,
    compared,
    kind,
)
from stepper.debug.causes.cause import Carried, Cause, ValueChange
from stepper.debug.causes.cause_texts import Words, carried_text, change_text, layer_text, where, words
from stepper.debug.provenance.operation_at import change_of, location_of
from stepper.debug.scopes import ReferencedValue, ReferenceValues
from stepper.element_types import have_same_bits
from stepper.engine.frames import Frames
from stepper.engine.program import Program
from stepper.errors import UsageError
from stepper.tensors.difference import distance, magnitude


class Changed(Cause, frozen=True, kw_only=True):
    """The value at an address is another than one iteration before; without `change` it came or went (`appeared`)."""

    kind: Literal["changes"] = "changes"
    address: str
    change: ValueChange | None
    appeared: bool = False


@kind("changes VALUE", "a value, or an element such as x[0,3], is another than one iteration before")
def changes(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return the check of the value that is named."""
    return checks_of_value(wanted, setting, _changed)


@kind("new VALUE", "a value is computed for the first time, or is another than one iteration before")
def new(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return the check of the value that is named, in the first iteration and outside of loops, too."""
    return checks_of_value(wanted, setting, _changed, from_first=True)


def _changed(pair: Compared) -> Cause | None:
    if pair.now is None or pair.before is None:
        return came_or_went(pair)
    if have_same_bits(pair.now, pair.before):
        return None
    return Changed(location=pair.locate(), address=pair.address, change=change_of(pair.before, pair.now))


def came_or_went(pair: Compared) -> Changed:
    """Return that a value is there for the first time, or no longer."""
    return Changed(location=pair.locate(), address=pair.address, change=None, appeared=pair.before is None)


@words.register
def _changed_words(cause: Changed, *, named: bool) -> Words:
    inside = where(cause.location, named=named)
    if cause.change is not None:
        return Words(f"{cause.address} changed", inside, change_text(cause.change))
    return Words(f"{cause.address} {'is there for the first time' if cause.appeared else 'is no longer there'}", inside)


class Moved(Cause, frozen=True, kw_only=True):
    """A carried value, or the one at an address, changed by `distance` in an iteration, more than `limit`."""

    kind: Literal["diff"] = "diff"
    carried: Carried | None
    address: str
    distance: float
    limit: float
    change: ValueChange


class Differs(Cause, frozen=True, kw_only=True):
    """A value differs from the reference by `distance`, more than `limit`; or the shape differs (None)."""

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

    def test(stack: Frames) -> Causes | None:
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


class Grown(Cause, frozen=True, kw_only=True):
    """A carried value, or the one at an address, has grown beyond `factor` times what it began with."""

    kind: Literal["grow"] = "grow"
    carried: Carried | None
    address: str
    factor: float
    magnitude: float
    first: float


@kind("grow>LIMIT [VALUE]", "a carried value, or the named value, exceeds its first value this many times", limit="1e3")
def grow(wanted: DataBreakpoint, setting: Setting) -> Checks:
    """Return the checks of what loops carry, or of the value that is named."""
    return compared(wanted, setting, _grown, needs_first=True)


def _grown(pair: Compared) -> Cause | None:
    if pair.now is None or pair.before is None:
        return came_or_went(pair)
    factor, now, first = pair.wanted.limit, magnitude(pair.now), pair.first()
    if not (first > 0 and now > factor * first >= magnitude(pair.before)):
        return None
    return Grown(
        location=pair.locate(), carried=pair.carried, address=pair.address, factor=factor, magnitude=now, first=first
    )


@words.register
def _grown_words(cause: Grown, *, named: bool) -> Words:
    subject = carried_text(cause.carried, cause.address, named=named)
    beyond = f"{subject} has grown beyond {cause.factor:g} times what it began with"
    return Words(beyond, where(cause.location, named=named), f"{cause.magnitude:g}, {cause.first:g} at first")
