"""The commands by name: each says how it is written, what it does in one line, and which function carries it out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Final

from msgspec import Struct

from stepper.commands.session import Answer, Session
from stepper.errors import UsageError
from stepper.wording import near_text

Action = Callable[[Session, str], Answer]
"""Carries out a command, given the text behind its name."""


_MOST_LISTED: Final = 10


class Command(Struct, frozen=True):
    """A command; `syntax` is what stands behind its name. `moves`: an empty line repeats it."""

    name: str
    abbreviations: tuple[str, ...]
    syntax: str
    help: str
    moves: bool
    action: Action

    @property
    def usage(self) -> str:
        """Return how it is written."""
        return f"{self.name} {self.syntax}".rstrip()

    @property
    def title(self) -> str:
        """Return its name and its abbreviations."""
        return ", ".join((self.name, *self.abbreviations))

    @property
    def group(self) -> str:
        """Return the name of its module, one of GROUPS."""
        return self.action.__module__.rpartition(".")[-1]


GROUPS: Final = ("movement", "breakpoints", "inspection", "edits", "moments", "session_commands")
"""The modules of the commands, imported when the first of them is called for: a screen is painted before."""

_COMMANDS: Final[dict[str, Command]] = {}


def command(
    name: str, *abbreviations: str, help: str, syntax: str = "", moves: bool = False
) -> Callable[[Action], Action]:
    """Register a function as a command. One without a syntax gets no arguments."""

    def register(action: Action) -> Action:
        _COMMANDS[name] = Command(name, abbreviations, syntax, help, moves, action)
        return action

    return register


@cache
def _all() -> dict[str, Command]:
    for group in GROUPS:
        import_module(f"{__package__}.{group}")
    return {one.name: one for one in sorted(_COMMANDS.values(), key=lambda one: GROUPS.index(one.group))}


def commands() -> tuple[Command, ...]:
    """Return all commands, group by group, in the order in which they were registered."""
    return tuple(_all().values())


def command_called(word: str) -> Command:
    """Return the command of this name or abbreviation, or the only one that begins so. Raises UsageError."""
    known_commands = _all()
    for known in known_commands.values():
        if word == known.name or word in known.abbreviations:
            return known
    return known_commands[one_of(word, known_commands, "command")]


def one_of(word: str, names: dict[str, Command] | tuple[str, ...], what: str) -> str:
    """Return the name that this is, or the only one that begins so. Raises UsageError with the candidates."""
    if word in names:
        return word
    fitting = [name for name in names if name.startswith(word)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"'{word}' is ambiguous: {', '.join(sorted(fitting))}")
    near = near_text(word, names)
    few = f"there are {', '.join(names)}" if len(names) <= _MOST_LISTED else "help lists them"
    raise UsageError(f"there is no {what} '{word}'; {near or few}")
