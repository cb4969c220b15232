"""The one place that prints lines of text, in colours where they go to a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TextIO

from stepper.wording import excerpt

_LONGEST_LINE = 4000
_TONES: Final[Mapping[str, str]] = MappingProxyType({
    "error": "1;31", "warning": "33", "note": "36", "good": "32", "name": "1", "key": "1;36", "dim": "2",
})  # fmt: skip
"""SGR codes; all of the sixteen colours that each terminal has, on a dark and on a light ground."""


def say(text: str, file: TextIO | None = None, marks: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print one line, everything unprintable in it blanked; at once, for who reads it from a pipe may wait for it.

    `marks` are parts of it with their tones, for a terminal.
    """
    stream = file or sys.stdout
    print(painted(excerpt(text, _LONGEST_LINE), marks, stream), file=stream, flush=True)


def painted(text: str, marks: Mapping[str, str], file: TextIO) -> str:
    """Return a text whose first occurrence of each part has its tone; unchanged without colours."""
    if not marks or not has_colours(file):
        return text
    for part, tone in marks.items():
        if part and part in text:
            text = text.replace(part, f"\x1b[{_TONES[tone]}m{part}\x1b[0m", 1)
    return text


def has_colours(file: TextIO) -> bool:
    """Return True for a terminal, unless NO_COLOR or its kind says that it should have none."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
