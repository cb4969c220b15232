"""Arguments of the public functions, checked where they come in, in the words of Python.

A wrong type raises `ArgumentTypeError` (a TypeError), a wrong value `UsageError` (a ValueError); both are
StepperErrors.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, TypeVar

from stepper.errors import ArgumentTypeError, UsageError

T = TypeVar("T")
LARGEST_SEED = 2**64 - 1
"""The largest seed of random inputs."""


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """Return an int, also of numpy's. ArgumentTypeError for another type, UsageError below `least`."""
    if isinstance(value, bool):
        raise _wrong_type(name, "an int", value)
    try:
        number = operator.index(value)
    except TypeError:
        raise _wrong_type(name, "an int", value) from None
    if least is not None and number < least:
        raise UsageError(f"{name} is {number}; it must be {least} or more")
    return number


def text(name: str, value: Any, wanted: str = "a str") -> str:
    """Return a str. ArgumentTypeError for anything else, which says what is `wanted`."""
    if not isinstance(value, str):
        raise _wrong_type(name, wanted, value)
    return value


def function(name: str, value: Any) -> None:
    """Raise ArgumentTypeError for what cannot be called."""
    if not callable(value):
        raise _wrong_type(name, "a function", value)


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """Return a mapping. ArgumentTypeError for anything else."""
    if not isinstance(value, Mapping):
        raise _wrong_type(name, "a dict", value)
    return value


def instance(name: str, value: Any, kind: type[T]) -> T:
    """Return an instance of a class. ArgumentTypeError for anything else."""
    if not isinstance(value, kind):
        raise _wrong_type(name, f"a {kind.__name__}", value)
    return value


def _wrong_type(name: str, wanted: str, value: Any) -> ArgumentTypeError:
    return ArgumentTypeError(f"{name} is {wanted}, not {_described(value)}")


def _described(value: Any) -> str:
    if value is None:
        return "None"
    shown = repr(value)
    kind = type(value).__name__
    return f"the {kind} {shown}" if len(shown) <= 40 else f"a {kind}"
