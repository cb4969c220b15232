"""Commands of the screen itself, by name: they stand beside those of the debugger at the prompt and in the palette."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from stepper.errors import UsageError
from stepper.records import Record

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp


class Action(Record):
    """An action of the screen; `syntax` stands behind its name."""

    name: str
    syntax: str
    help: str
    carry_out: Callable[[StepperApp, str], None]


_GROUPS = ("main", "sheet", "values")
"""The modules of actions, imported when the first action is called for: the screen is painted before."""

_ACTIONS: Final[dict[str, Action]] = {}


@cache
def actions() -> Mapping[str, Action]:
    """Return all of them, by name."""
    for group in _GROUPS:
        import_module(f"stepper_tui.actions.{group}")
    return _ACTIONS


WAYS: Final = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
"""Rows and columns of each direction."""


def integer(text: str) -> int:
    """Return the number that a text is. UsageError where it is none."""
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"a number is expected, not '{text}'") from None


def action(
    name: str, *, help: str, syntax: str = ""
) -> Callable[[Callable[[StepperApp, str], None]], Callable[[StepperApp, str], None]]:
    """Register a function as an action."""

    def register(function: Callable[[StepperApp, str], None]) -> Callable[[StepperApp, str], None]:
        _ACTIONS[name] = Action(name, syntax, help, function)
        return function

    return register
