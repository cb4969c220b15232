"""The font of figures, Liberation Sans, and the widths of its letters.

Arimo, Arial and Helvetica have the same widths, so that one layout holds wherever a figure is drawn.
"""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path

FAMILY = "'Liberation Sans', Arimo, Arial, Helvetica, sans-serif"
"""Families of fonts in the order of preference, as SVG and CSS write them."""

LABEL_SIZE = 13
SMALL_SIZE = 11
HEADING_SIZE = 15
SLIDE_SIZE = 20
"""Heights of text in pixels: labels of boxes, further lines, the title of the figure, the title of a slide."""

FOLDER = Path(__file__).parent
REGULAR = FOLDER / "LiberationSans-Regular.ttf"
BOLD = FOLDER / "LiberationSans-Bold.ttf"
_UNITS = 2048
"""Units of an em in `advances.json`: runs of letters as (first code point, count, width)."""


def advance(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text in the unit of `size`, the height of its em.

    Letters that the font does not have are taken as wide as an em where they are East Asian, else as wide as a digit.
    """
    widths = _widths(bold)
    total = 0
    for letter in text:
        width = widths.get(ord(letter))
        if width is None:
            width = 0 if unicodedata.combining(letter) else _UNITS if is_wide(letter) else widths[ord("0")]
        total += width
    return total * size / _UNITS


def wrapped(text: str, width: float, size: float, *, bold: bool = False, behind: str = "") -> list[str]:
    """Return a text in lines of at most that width, broken between words; none for "". A longer word is not broken.

    `behind` is a sign behind which alone it is broken ("": between all words).
    """
    lines, line = [], ""
    words = text.split()
    if behind:
        words = f"{' '.join(words)} ".replace(f"{behind} ", f"{behind}\n").strip().split("\n")
    for word in words:
        longer = f"{line} {word}".strip()
        if line and advance(longer, size, bold=bold) > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line] if line else lines


def missing(text: str) -> str:
    """Return the letters of a text that the font does not have, each once."""
    return "".join(dict.fromkeys(letter for letter in text if ord(letter) not in _widths(False)))


def is_wide(letter: str) -> bool:
    """True if a letter takes two cells of a grid."""
    return unicodedata.east_asian_width(letter) in "WF"


@cache
def _widths(bold: bool) -> dict[int, int]:
    runs = json.loads((FOLDER / "advances.json").read_text(encoding="ascii"))["bold" if bold else "regular"]
    return {first + index: width for first, count, width in runs for index in range(count)}
