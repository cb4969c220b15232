"""Terminals that tests open and read."""

from __future__ import annotations

import selectors


def is_readable(terminal: int, seconds: float) -> bool:
    """Return True if there is something to read within this time; the descriptor may have any number."""
    with selectors.DefaultSelector() as selector:
        selector.register(terminal, selectors.EVENT_READ)
        return bool(selector.select(seconds))
