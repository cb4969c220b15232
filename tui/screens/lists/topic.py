"""How something is written, as rows: what `help` says of it, where one is about to need it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stepper.commands.session_commands import topics
from tui.paint.rows import Row, wrapped

_EXAMPLE: Final = 32


def topic_rows(topic: str, width: int) -> list[Row]:
    """Return a heading, then the examples and what they mean."""
    found = topics()[topic]
    note = [("", found.note)] if found.note else []
    return example_rows(f"how {topic} are written", (*found.rows, *note), width)


def example_rows(title: str, examples: Iterable[tuple[str, str]], width: int) -> list[Row]:
    """Return a heading, then what can be typed at the left, and what it means at the right."""
    rows: list[Row] = [[(f" {title}", "title")]]
    for written, means in examples:
        for place, part in enumerate(wrapped(means, max(width - _EXAMPLE - 4, 20))):
            rows.append([(f"  {'' if place else written:<{_EXAMPLE}}", "key"), (part, "dim")])
    return rows
