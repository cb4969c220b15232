"""Names in the sentences of the overview lead to what they name: two clicks go to a moment, one to a row."""

from __future__ import annotations

from collections.abc import Callable

from stepper.ir.model import LayerSite
from tui.paint.links import Destination, LinkText

LinkOf = Callable[[LayerSite], Destination | None]
"""Where the name of a layer leads."""


def nowhere(_site: LayerSite) -> Destination | None:
    """Return no destination."""
    return None


def moment_link(line: str) -> Destination:
    """Return a destination that carries out a movement, and leaves the overview."""
    return Destination(f"overview go {line}")


def row_link(card: int, row: int) -> Destination:
    """Return a destination that puts the cursor on a row of a card."""
    return Destination(f"overview row {card} {row}", at_once=True)


def name_linked(text: str, target: Destination | None) -> str:
    """Return a name that leads somewhere, if there is somewhere."""
    return text if target is None else LinkText(text, target)
