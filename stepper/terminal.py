"""The one place that prints lines of text."""

from __future__ import annotations

import sys
from typing import TextIO

from stepper.wording import excerpt

_LONGEST_LINE = 4000


def say(text: str, file: TextIO | None = None) -> None:
    """Print one line, everything unprintable in it blanked; at once, for who reads it from a pipe may wait for it."""
    print(excerpt(text, _LONGEST_LINE), file=file or sys.stdout, flush=True)
