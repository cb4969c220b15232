"""How something is written, as rows: what `help` says of it, where one is about to need it."""

from __future__ import annotations

from typing import Final

from stepper.commands.topics import topics
from tui.paint.rows import Row, wrapped

_EXAMPLE: Final = 32


def topic_rows(topic: str, width: int) -> list[Row]:
    """Return a heading, then the examples and what they mean."""
    rows: list[Row] = [[(f" how {topic} are written", "title")]]
    found = topics()[topic]
    for written, means in (*found.rows, *([("", found.note)] if found.note else [])):
        for place, part in enumerate(wrapped(means, max(width - _EXAMPLE - 4, 20))):
            rows.append([(f"  {'' if place else written:<{_EXAMPLE}}", "key"), (part, "dim")])
    return rows
