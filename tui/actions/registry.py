"""Commands of the screen itself, by name: they stand beside those of the debugger at the prompt and in the palette.

    @action("theme", help="the other theme")
    def _theme(app: Application, text: str) -> None: ...

`text` is what stands behind the word. An error for the user is a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from stepper.records import Record

if TYPE_CHECKING:
    from tui.application import Application


class Action(Record):
    """An action of the screen; `syntax` is what stands behind its name."""

    name: str
    syntax: str
    help: str
    carry_out: Callable[[Application, str], None]


_GROUPS: Final = (
    "main",
    "compare",
    "inputs",
    "lists",
    "overview",
    "searching",
    "session",
    "sheet",
    "story",
    "tensor",
    "values",
)
"""The modules of actions, imported when the first action is called for: the screen is painted before."""

_ACTIONS: Final[dict[str, Action]] = {}


@cache
def actions() -> Mapping[str, Action]:
    """Return all of them, by name."""
    for group in _GROUPS:
        import_module(f"tui.actions.{group}")
    return _ACTIONS


def action(
    name: str, *, help: str, syntax: str = ""
) -> Callable[[Callable[[Application, str], None]], Callable[[Application, str], None]]:
    """Register a function as an action."""

    def register(function: Callable[[Application, str], None]) -> Callable[[Application, str], None]:
        _ACTIONS[name] = Action(name, syntax, help, function)
        return function

    return register
