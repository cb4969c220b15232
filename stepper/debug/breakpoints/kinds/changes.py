"""`break changes x[0,3]`: a value or an element is another than one iteration before; `break new x`: or is there."""

from __future__ import annotations

from typing import Literal

from stepper.debug.breakpoints.data_breakpoints import Checks, Compared, DataBreakpoint, Setting, checks_of_value, kind
from stepper.debug.causes.cause import Cause, ValueChange
from stepper.debug.causes.locations import change_of
from stepper.debug.causes.texts import Words, change_text, where, words
from stepper.tensors.difference import same


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
    if same(pair.now, pair.before):
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
