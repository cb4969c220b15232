"""Faults of a text that was to be JSON, in plain words."""

from __future__ import annotations

from json import JSONDecodeError
from typing import Final

_SHOWN: Final = 20


def json_fault(text: str, error: Exception) -> str:
    """Return a sentence with the place, for an error that `json.loads` raised for this text."""
    if not isinstance(error, JSONDecodeError):
        return "it is nested too deeply" if isinstance(error, RecursionError) else "a number in it is too long"
    at = error.pos
    if not text[at:].strip():
        return "it ends too early; a bracket or a quote is not closed" if text.strip() else "it is empty"
    line = text.count("\n", 0, at) + 1
    place = f"character {at + 1}" if "\n" not in text else f"line {line}, character {at - text.rfind(chr(10), 0, at)}"
    shown = "".join(letter if letter.isprintable() else " " for letter in text[at : at + _SHOWN])
    return f"'{shown}' at {place} is not expected there"
