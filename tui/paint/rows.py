"""Rows of text with tokens, and how numbers, names and histories are written into cells."""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from rich.cells import cell_len as _cell_len
from rich.style import Style

from stepper.tensors.number_text import fitted, short_exponent
from stepper.tensors.pictures import ScaleKind, bar_scale

Token = str | Style
"""One of tui.paint.styles (several, with blanks between them, are laid over one another)."""
Cell = tuple[str, Token]
Row = list[Cell]

BARS: Final = "▁▂▃▄▅▆"
"""Six of the eight heights: the row above stays free of the bars below it."""


_wide_len = lru_cache(maxsize=8_192)(_cell_len)
"""For texts alone: a LinkText would be kept with all that it leads to."""


def cell_len(text: str) -> int:
    """Return how many cells a text takes."""
    return len(text) if text.isascii() else _wide_len(str(text))


def printable(text: str) -> str:
    """Return a name from a file without what would move the cursor; nothing in it is markup."""
    return "".join("�" if unicodedata.category(letter)[0] == "C" else letter for letter in text)


def spark(
    numbers: Iterable[float | None], low: float | None = None, high: float | None = None, *, missing: str = " "
) -> str:
    """Return one bar a number; NaN and Inf are letters, never a height, and one outlier does not flatten the others."""
    return _spark(tuple(numbers), low, high, missing)


@lru_cache(maxsize=2_048)
def _spark(values: tuple[float | None, ...], low: float | None, high: float | None, missing: str) -> str:
    """Most histories in a list are the same after a key."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    scale = bar_scale(np.array(finite), ScaleKind.ROBUST)
    least = scale.low if low is None else low
    most = scale.high if high is None else high
    return "".join(missing if value is None else bar(value, least, most) for value in values)


def bar(value: float, low: float, high: float) -> str:
    """Return the bar of one number between two others."""
    if math.isnan(value):
        return "N"
    if math.isinf(value):
        return "I"
    # Halved, so that the distance of the largest numbers does not overflow.
    span = high / 2 - low / 2
    level = (value / 2 - low / 2) / span if span > 0 else 0.0
    return BARS[max(0, min(5, int(level * 5.999)))]


_BELOW_ZERO: Final = "₀₁₂₃₄₅₆₇₈₉"


def figure(level: int, width: int) -> str:
    """Return a shade from -9 to 9 as a figure with its sign; in one cell it stands low where it is below zero."""
    return str(level) if level >= 0 or width > 1 else _BELOW_ZERO[-level]


def few_digits(value: float, digits: int) -> str:
    """Return a number rounded to so many digits: with three as everywhere, with fewer where that is shorter."""
    usual = fitted(value)
    if digits >= 3 or not math.isfinite(value):
        return usual
    rounded = f"{value:.{digits}g}"
    return min(f"{float(rounded):g}", usual, short_exponent(rounded), key=len)


def clip(name: str, width: int) -> str:
    """A long name loses its middle: the number at its end tells it from its siblings."""
    if cell_len(name) <= width:
        return name
    if 4 < width < 8 and name[-1].isdigit():
        return f"{name[: width - 3]}…{name[-2:]}"
    if width < 8:
        return name[: max(width - 1, 0)] + ("…" if width > 0 else "")
    return f"{name[: width - 5]}…{name[-4:]}"


def clip_head(name: str, width: int) -> str:
    """A long name loses its head."""
    return name if cell_len(name) <= width else ("…" + name[-(width - 1) :] if width > 1 else "")


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return the text in exactly so many cells, whatever the width of its characters."""
    short = text if cell_len(text) <= width else clip(text, width)
    blanks = " " * max(0, width - cell_len(short))
    return blanks + short if right else short + blanks


def padded_row(row: Row, width: int) -> Row:
    """Return a row in exactly so many cells."""
    short = shortened(row, width)
    return [*short, (" " * max(0, width - width_of(short)), "")]


def wrapped(line: str, width: int) -> list[str]:
    """Return a line of text in parts of so many cells at most; its blanks stay, and what follows stands further in."""
    if cell_len(line) <= width:
        return [line]
    body = line.lstrip()
    begin = line[: len(line) - len(body)][: max(width // 2, 0)]
    return textwrap.wrap(body, max(width, 8), initial_indent=begin, subsequent_indent=f"{begin}  ") or [""]


def width_of(row: Row) -> int:
    """Return how many cells a row takes."""
    return sum([len(text) if text.isascii() else _wide_len(str(text)) for text, _ in row])


def spread(left: Row, right: Row, width: int) -> Row:
    """Return one part at the left edge, one at the right."""
    return [*left, (" " * max(1, width - width_of(left) - width_of(right)), ""), *right]


def overlaid(row: Row, token: str) -> Row:
    """Return the row with another token over all of its own."""
    return [(text, f"{own} {token}".strip() if isinstance(own, str) else own) for text, own in row]


def shortened(row: Row, width: int) -> Row:
    """Return a row that ends in an ellipsis where it is longer than so many cells."""
    if width_of(row) <= width:
        return row
    found: Row = []
    left = width
    for place, (text, token) in enumerate(row):
        if len(text) >= left:
            rest = [(text[max(left - 1, 0) :], token), *row[place + 1 :]]
            if not any(part.strip() or tone for part, tone in rest):
                return [*found, (text[:left], token)]
            cell: Cell = (f"{text[: max(left - 1, 0)]}…" if left > 0 else "", token)
            return [*found, cell]
        found.append((text, token))
        left -= len(text)
    return found


def shape_of(shape: Sequence[int]) -> str:
    """Return a shape in lists: 1×16; [] for rank 0."""
    return "×".join("?" if size < 0 else str(size) for size in shape) or "[]"


def short_count(value: int) -> str:
    """Return an iteration on an axis: 5, 20k, 3M."""
    if value and value % 10**6 == 0:
        return f"{value // 10**6}M"
    if value >= 10_000 and value % 1000 == 0:
        return f"{value // 1000}k"
    return str(value)


def elements(value: np.ndarray[Any, Any], room: int) -> str:
    """Return the elements of a tensor one after another, as in lists; the first ones where there is no room for all."""
    shown = ""
    for place, element in enumerate(value.reshape(-1)[: max(room, 0)].tolist()):
        word = fitted(element) if isinstance(element, bool | int | float) else printable(str(element))
        longer = f"{shown} {word}" if place else word
        if cell_len(longer) + (2 if place + 1 < value.size else 0) > room:
            return f"{shown} …" if shown else ""
        shown = longer
    return shown if value.size else "no elements"


def clip_end(text: str, width: int) -> str:
    """A sentence loses its end."""
    return text if cell_len(text) <= width else f"{text[: max(width - 1, 0)]}…"
