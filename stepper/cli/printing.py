"""Text for a terminal: names from a model's file cannot move the cursor."""

from __future__ import annotations

import sys
import textwrap
from shutil import get_terminal_size
from typing import TextIO

from stepper.ir.excerpts import excerpt

_LONGEST_LINE = 4000


def say(text: str, file: TextIO | None = None) -> None:
    """Print one line, everything unprintable in it blanked."""
    print(excerpt(text, _LONGEST_LINE), file=file or sys.stdout)


def output_width(file: TextIO | None = None) -> int:
    """How many columns stdout (or another stream) has: those of the terminal, or 80."""
    return get_terminal_size().columns if (file or sys.stdout).isatty() else 80


def wrapped(text: str, file: TextIO | None = None) -> list[str]:
    """A line as the terminal has room for it, cut between words; as it is where there is no terminal."""
    width = output_width(file)
    if not (file or sys.stdout).isatty() or len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    lines = textwrap.wrap(text, max(width, 2 * len(indent)), subsequent_indent=indent, break_on_hyphens=False)
    return lines or [text]
