"""`break grow>1e3 [x]`: what is carried, or the value named, grows beyond a multiple of its first."""

from __future__ import annotations

from typing import Literal

from stepper.debug.breakpoints.data_breakpoints import (
    Checks,
    Compared,
    DataBreakpoint,
    Setting,
    compared,
    kind,
)
from stepper.debug.breakpoints.kinds.changes import came_or_went
from stepper.debug.causes.cause import Carried, Cause
from stepper.debug.causes.texts import Words, carried_text, where, words
from stepper.tensors.difference import magnitude


class Grown(Cause, frozen=True, kw_only=True):
    """A carried value, or the one at an address, has grown beyond `factor` times what it began with."""

    kind: Literal["grow"] = "grow"
    carried: Carried | None
    address: str
    factor: float
    magnitude: float
    first: float


@kind("grow>LIMIT [VALUE]", "what is carried, or the value named, grows beyond that many times its first", limit="1e3")
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
