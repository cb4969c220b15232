"""All causes together, those of every kind of data breakpoint too: as a type, and read from JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from msgspec.structs import fields

from stepper.debug.breakpoints.data_breakpoints import kinds
from stepper.debug.causes.cause import NON_FINITE, Cause

kinds()  # a cause is defined where its kind is


def _classes(base: type[Cause]) -> Iterator[type[Cause]]:
    for found in base.__subclasses__():
        yield found
        yield from _classes(found)


if TYPE_CHECKING:
    AnyCause = Cause
else:
    AnyCause = reduce(or_, sorted(_classes(Cause), key=lambda one: one.__name__))

_FLOATS: Final = frozenset(
    field.name for cause in _classes(Cause) for field in fields(cause) if field.type in (float, float | None)
)
"""Fields that are floating-point numbers."""


def causes_of(data: Any) -> tuple[Cause, ...]:
    """Return the causes that were written with `cause_data`. Raise msgspec.ValidationError for what is none."""
    found: tuple[Cause, ...] = convert(_numbers(data), tuple[AnyCause, ...])
    return found


def _numbers(value: Any) -> Any:
    """Return the same as it was written, where a number is wanted."""
    if isinstance(value, dict):
        return {key: _number(item) if key in _FLOATS else _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value


def _number(item: Any) -> Any:
    return float(item) if isinstance(item, str) and item in NON_FINITE else _numbers(item)
