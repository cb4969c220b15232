"""The two rule books: what the specification says, and what OpenVINO's CPU plugin does where it departs from it.

Every place where they part asks this module's `Rules`; what a run then notes about the other book is a `Note`.
Source: semantics, section 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from stepper.argument_checks import text
from stepper.errors import ArgumentTypeError, UsageError


class Rules(StrEnum):
    """Rule book that a run follows."""

    SPEC = "spec"
    OPENVINO = "openvino"

    @property
    def other(self) -> Rules:
        """The rule book that this run does not follow."""
        return Rules.OPENVINO if self is Rules.SPEC else Rules.SPEC


def rules_called(name: str | Rules) -> Rules:
    """Return the rule book of that name. ArgumentTypeError for what is not a name, UsageError for another one."""
    try:
        return Rules(text("rules", name))
    except ArgumentTypeError:
        raise
    except ValueError:
        raise UsageError(f"there is no rule book '{name}'; choose {' or '.join(Rules)}") from None


class Note(NamedTuple):
    """Something about a run that its owner should know: mostly where the other rule book would give another result."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def note_lines(notes: Iterable[Note]) -> list[str]:
    """Return a line for each text, with the first of its places and how many more there are."""
    places: dict[str, list[str]] = {}
    for note in notes:
        places.setdefault(note.text, []).append(note.place)
    return [f"{first}{f' and {len(more):,} more' if more else ''}: {text}" for text, (first, *more) in places.items()]


class Notes(Struct):
    """The notes of one run, each place and text once, in the order in which they arose."""

    _seen: dict[Note, None] = field(default_factory=dict)

    def add(self, place: str, text: str) -> None:
        """Note it, unless that was done before."""
        self._seen.setdefault(Note(place, text))

    def __iter__(self) -> Iterator[Note]:
        return iter(list(self._seen))

    def __len__(self) -> int:
        return len(self._seen)
