"""All causes together, those of every kind of data breakpoint too: as a type, and read from JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from msgspec import convert

from stepper.debug.breakpoints.data_breakpoints import kinds
from stepper.debug.causes.cause import Cause

kinds()  # a cause is defined where its kind is


def _classes(base: type[Cause]) -> Iterator[type[Cause]]:
    for found in base.__subclasses__():
        yield found
        yield from _classes(found)


if TYPE_CHECKING:
    AnyCause = Cause
else:
    AnyCause = reduce(or_, sorted(_classes(Cause), key=lambda one: one.__name__))


def causes_of(data: Any) -> tuple[Cause, ...]:
    """Return the causes that were written with `cause_data`. Raise msgspec.ValidationError for what is none."""
    found: tuple[Cause, ...] = convert(data, tuple[AnyCause, ...], strict=False)  # "NaN" where a number is wanted
    return found
