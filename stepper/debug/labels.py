"""Names for whole numbers: a value that counts in a vocabulary is shown with the words that its user gives for it.

Nothing is guessed: the user says which value, and names the file with its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.query.address_resolution import Target
from stepper.wording import json_fault, reason_of

LARGEST_FILE: Final = 2**24
_MOST_LABELS: Final = 2**20
_MOST_WRITTEN: Final = 64

Slot = tuple[int, int]


class Labels:
    """Which values have labels, by (id of the program, slot)."""

    def __init__(self) -> None:
        self._known: dict[Slot, tuple[str, ...]] = {}

    def put(self, target: Target, labels: tuple[str, ...]) -> None:
        """From now on the numbers of this value are these; none of them: numbers again."""
        self._known.pop((id(target.program), target.slot), None)
        if labels:
            self._known[id(target.program), target.slot] = labels

    def of(self, target: Target) -> tuple[str, ...]:
        """Return those of a value; empty where it has none."""
        return self._known.get((id(target.program), target.slot), ())

    def clear(self) -> None:
        """No value has any."""
        self._known.clear()

    def view(self) -> Mapping[Slot, tuple[str, ...]]:
        """All, as they are now."""
        return dict(self._known)


def label_of(labels: tuple[str, ...], number: float) -> str:
    """Return the label of a number; the number itself where it has none."""
    whole = int(number) if number == number and abs(number) < 2**53 else -1
    return labels[whole] if whole == number and 0 <= whole < len(labels) else f"{number:g}"


def labelled(labels: tuple[str, ...], value: Array) -> str:
    """Return the labels of a value's elements, one after another; empty where they are not whole numbers."""
    if not labels or value.dtype.kind not in "iu":
        return ""
    shown = [f"'{label_of(labels, one)}'" for one in value.reshape(-1)[:_MOST_WRITTEN].tolist()]
    return " ".join([*shown, "..."] if value.size > _MOST_WRITTEN else shown)


def read_labels(path: Path, key: str = "") -> tuple[str, ...]:
    """Return a file of labels: a line each, or as JSON a list of texts, one text (a label a character), or text ->
    number.

    `key` picks a part of a JSON object. Raise UsageError for a file that is none.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"'{path}' has more than {LARGEST_FILE} bytes, too many for a list of labels")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(path, error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"'{path}' cannot be read: {reason}") from None
    if path.suffix != ".json":
        return tuple(text.splitlines())
    import json

    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not valid JSON: {json_fault(text, error)}") from None
    if key:
        content = content.get(key) if isinstance(content, dict) else None
    return _labels(content, path)


def _labels(content: Any, path: Path) -> tuple[str, ...]:
    if isinstance(content, str):
        return tuple(content)
    if isinstance(content, list) and all(isinstance(one, str) for one in content):
        return tuple(content)
    numbers = content.values() if isinstance(content, dict) else ()
    if numbers and all(type(one) is int and 0 <= one < _MOST_LABELS for one in numbers):
        found = np.full(max(numbers) + 1, "", object)
        for text, number in content.items():
            found[number] = text
        return tuple(text or str(number) for number, text in enumerate(found))
    raise UsageError(f"'{path}' has no list of labels there: expected texts, or an object of text and number")
