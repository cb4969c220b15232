"""Text for a terminal: names from a model's file cannot move the cursor."""

from __future__ import annotations

import sys
from typing import TextIO

from stepper.ir.excerpts import excerpt

_LONGEST_LINE = 4000


def say(text: str, file: TextIO | None = None) -> None:
    """Print one line, everything unprintable in it blanked."""
    print(excerpt(text, _LONGEST_LINE), file=file or sys.stdout)
