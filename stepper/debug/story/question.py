"""The question that a story answers."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MOST_LINKS: Final = 40
"""Links of a story that are looked for at first."""


class StoryQuestion(Struct, frozen=True):
    """A question: why the value at an `address` is what it is, or (`ends`) why the loop of that name ended.

    Without a name it is the loop around the present, else the last one that ended. `fails`: why the operation that
    comes next fails. `tick` is where that is meant (None: at the present). `links` is how many are looked for;
    `wider` has for the keys of links how many operands more than usual are followed; `unfolds`: mere moves of
    elements and equal iterations are shown singly.
    """

    address: str = ""
    ends: bool = False
    fails: bool = False
    tick: int | None = None
    links: int = MOST_LINKS
    wider: tuple[tuple[str, int], ...] = ()
    unfolds: bool = False
