"""One row of numbers as columns above and below zero, in the cells of its colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from stepper.tensors.number_text import fitted
from tui.paint.rows import Row

LEAST: Final = 5
"""Lines that columns need."""
_MOST: Final = 16
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_SHARE: Final = 0.999
"""So that the largest column just fills its lines."""


def profile(values: Sequence[float], wide: int, label: int, height: int) -> list[Row]:
    """Return the columns with the extremes at their ends; nothing where no number is finite, or all are zero."""
    finite = [value for value in values if math.isfinite(value)]
    high, low = max([0.0, *finite]), min([0.0, *finite])
    if height < LEAST or high == low:
        return []
    tall = min(height, _MOST) - 1
    # Halved, so that the distance of the largest numbers does not overflow.
    above = round(tall * ((high / 2) / (high / 2 - low / 2)))
    above = min(max(above, 1 if high > 0 else 0), tall - (1 if low < 0 else 0))
    below = tall - above
    rows: list[Row] = []
    for line in range(above, 0, -1):
        cells = [_up(value / high * _SHARE if high > 0 else 0.0, above, line) for value in values]
        rows.append(_row(cells, wide, label, fitted(high) if line == above else "", "warm" if low < 0 else "bar"))
    middle = "".join((_odd(value) or "─").ljust(wide, "─") for value in values)
    rows.append([(" " * label, ""), (middle, "dim"), (" 0", "dim")])
    for line in range(1, below + 1):
        cells = [_down(value / low * _SHARE if low < 0 else 0.0, below, line) for value in values]
        rows.append(_row(cells, wide, label, fitted(low) if line == below else "", "cool"))
    return rows


def _row(cells: Sequence[str], wide: int, label: int, extreme: str, tone: str) -> Row:
    gap = " " if wide > 3 else ""
    text = "".join(cell * (wide - len(gap)) + gap for cell in cells)
    return [(" " * label, ""), (text, tone), (f" {extreme}", "dim")]


def _up(share: float, lines: int, line: int) -> str:
    """Return the part of a column that stands in a line above zero, counted from 1."""
    if not math.isfinite(share):
        return " "
    return _EIGHTHS[max(0, min(math.ceil((share * lines - (line - 1)) * 8), 8))]


def _down(share: float, lines: int, line: int) -> str:
    """Return the same below zero, where there are halves alone."""
    filled = share * lines - (line - 1) if math.isfinite(share) else 0.0
    return "█" if filled >= 0.75 else "▀" if filled > 0 else " "


def _odd(value: float) -> str:
    return "" if math.isfinite(value) else "N" if math.isnan(value) else "I"
