"""Pictures of values: numbers, their scale, shades by that, and cells in the colours of a theme.

Zero is the ground, magnitude moves away from it; a NaN or Inf is its letter. Without colours shades are figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.style import Style
from textual.color import Color

from stepper.tensors.histories import KeptStatistic, ValueHistory, bucket_begins
from stepper.tensors.number_text import fitted, short_exponent
from stepper.tensors.tensor_pictures import (
    BarScale,
    Form,
    Scale,
    digits,
    form_of,
    scale_of,
    shades,
    share_text,
)
from stepper_tui.paint.rows import Cell, Row, few_digits, figure

if TYPE_CHECKING:
    from stepper_tui.theme import Look

_GRAIN = 64
_NUMBERED = 6
"""Cells of an iteration from which on whole lines have the number itself."""
_MOST_NUMBERED = 16
"""Elements up to which they have it."""


class Palette:
    """Colours of a theme for pictures; shades and styles are kept."""

    def __init__(self, colour: Callable[[str], Color], look: Look) -> None:
        self.look = look
        self.background = colour("background")
        self.primary = colour("primary")
        self._colour = colour
        self._ground = self.background.blend(colour("foreground"), 0.07)
        self._shades: dict[tuple[int, bool], Color] = {}
        self._styles: dict[object, Style] = {}

    def shade(self, level: float, *, is_signed: bool) -> Color:
        """Return the colour of a finite shade."""
        key = round(level * _GRAIN), is_signed
        found = self._shades.get(key)
        if found is None:
            found = self._shades[key] = self._shaded(key[0] / _GRAIN, is_signed=is_signed)
        return found

    def _shaded(self, level: float, *, is_signed: bool) -> Color:
        if is_signed:
            return self._ground.blend(self._colour("warm" if level >= 0 else "cool"), abs(level) * 0.9)
        middle, end = self._colour("secondary"), self._colour("foreground")
        return self._ground.blend(middle, level / 0.7) if level < 0.7 else middle.blend(end, (level - 0.7) / 0.3 * 0.8)

    def pair(self, top: Color, bottom: Color) -> Style:
        """Return the style of an upper half block."""
        key = top, bottom
        if key not in self._styles:
            self._styles[key] = Style(color=top.rich_color, bgcolor=bottom.rich_color)
        return self._styles[key]

    def on(self, level: float, *, is_signed: bool) -> Style:
        """Return the style of text on a shade."""
        key = round(level * _GRAIN), is_signed
        if key not in self._styles:
            ground = self.shade(level, is_signed=is_signed)
            ink = ground + ground.get_contrast_text(0.85)
            self._styles[key] = Style(color=ink.rich_color, bgcolor=ground.rich_color)
        return self._styles[key]

    def letter(self, *, is_first: bool) -> Style:
        """Return the style of an N or I, loud for the first one."""
        error = self._colour("error")
        ground = error if is_first else self.background.blend(error, 0.38)
        ink = self.background if is_first else error
        return Style(color=ink.rich_color, bgcolor=ground.rich_color, bold=is_first or None)

    def tile(
        self, levels: Sequence[float], wide: int, *, is_signed: bool, text: str = "", is_first: bool = False
    ) -> Cell:
        """Return the cell of one shade with a text on it, or of two above one another; of what is not finite a letter.

        `is_first`: it has the first NaN or Inf.
        """
        bad = [one for one in levels if not math.isfinite(one)]
        if bad:
            letter = "N" if any(math.isnan(one) for one in bad) else "I"
            return letter.center(wide), self.letter(is_first=is_first)
        if len(levels) > 1:
            return "▀" * wide, self.pair(*(self.shade(one, is_signed=is_signed) for one in levels[:2]))
        if self.look.plain and not text:
            level = int(digits(np.array(levels))[0])
            text = figure(level, wide).rjust((wide + 2) // 2) if level else ""
        return text.ljust(wide)[:wide], self.on(levels[0], is_signed=is_signed)


# --- values over iterations ---------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """Cells of a line, from column `start` on, for the half-open range of iterations [first, last)."""

    start: int
    width: int
    first: int
    last: int


def form_in(history: ValueHistory) -> Form:
    """Return what suits a value over the iterations, where there is room."""
    return form_of(history.type, history.elements, is_whole=history.is_whole)


def _statistic(history: ValueHistory) -> KeptStatistic:
    """Return by which number several elements, or iterations, are one: of booleans the mean is how many are true."""
    if history.is_whole:
        return KeptStatistic.LARGEST
    if history.elements > 1 or history.type == "boolean":
        return KeptStatistic.MEAN
    return KeptStatistic.LARGEST if history.type[:1] in ("i", "u") else KeptStatistic.RMS


def row_scale(history: ValueHistory) -> Scale:
    """Return the scale of a value over all iterations."""
    return scale_of(np.ravel(history.numbers[_statistic(history)]).astype(np.float64))


def picture(history: ValueHistory, slots: Sequence[Slot], height: int, scale: Scale, palette: Palette) -> list[Row]:
    """Return a value over the iterations as shades: a line an element where they fit, else a half line each."""
    size = history.elements
    whole = palette.look.plain or size <= height
    bad = min((one for one in (history.first_nan, history.first_infinite) if one is not None), default=-1)
    found = history.over_each([(slot.first, slot.last) for slot in slots], _statistic(history))
    known = np.array([one for one in found if one is not None]).reshape(-1, size).astype(np.float64)
    parts = np.array_split(known, min(size, height if whole else 2 * height), axis=1)
    with np.errstate(all="ignore"):
        few = np.stack([part.mean(axis=1) for part in parts], axis=1)  # what is not finite stays so
    columns = iter(zip(few.tolist(), shades(few, scale).tolist(), strict=True))
    lines: list[Row] = [[] for _ in range(height)]
    end = 0
    for slot, one in zip(slots, found, strict=True):
        numbers, levels = ([], []) if one is None else next(columns)
        has_number = whole and slot.width >= _NUMBERED and size <= _MOST_NUMBERED
        for y, line in enumerate(lines):
            line += [(" " * (slot.start - end), "")] if slot.start > end else []
            part = levels[y : y + 1] if whole else levels[2 * y : 2 * y + 2]
            text = fitting_number(numbers[y], slot.width - 1) if has_number and part else ""
            text = text.rjust(slot.width) if text else ""
            is_first = slot.first <= bad < slot.last
            tile = (
                palette.tile(part, slot.width, is_signed=scale.signed, text=text, is_first=is_first) if part else None
            )
            line.append(tile or (" " * slot.width, ""))
        end = slot.start + slot.width
    return lines


def fitting_number(value: float, room: int) -> str:
    """Return a number in at most so many cells, with at least one digit of it; empty where there is no such text."""
    if not math.isfinite(value):
        return ""
    texts = [f"{value:.{decimals}f}" for decimals in (3, 2, 1, 0)] if abs(value) < 10.0**room else []
    texts = [str(int(value))] * (value == int(value)) + [one for one in texts if value == 0 or float(one) != 0]
    texts += [short_exponent(f"{value:.{decimals}e}") for decimals in (2, 1, 0)]
    return next((text for text in texts if len(text) <= room), "")


# --- labels ------------------------------------------------------------------------------------------------------


def parts_of(history: ValueHistory, height: int, *, is_plain: bool) -> list[str]:
    """Return the elements in each line of a picture: one, or the first and the last of those whose mean is drawn."""
    count = history.elements
    shape = (count,) if history.changes_shape else history.shape
    ends = [*bucket_begins(math.prod(shape)).tolist(), math.prod(shape)]
    has_whole_lines = is_plain or count <= height
    lines = np.array_split(np.arange(count), min(count, height if has_whole_lines else 2 * height))
    if not has_whole_lines:
        lines = [np.concatenate(lines[at : at + 2]) for at in range(0, len(lines), 2)]
    texts = []
    for line in lines:
        first, last = ends[line[0]], ends[line[-1] + 1] - 1
        few = f"…{_index_text(last, shape)}{' mean' * has_whole_lines}" if first < last else ""
        texts.append(_index_text(first, shape) + few)
    return texts


def _index_text(at: int, shape: Sequence[int]) -> str:
    return f"[{','.join(str(one) for one in np.unravel_index(at, shape))}]"


def scale_words(scale: BarScale, room: int = 8) -> str:
    """Return what the two ends of bars do not tell: that they are logarithmic, or not those of all numbers."""
    log, part = "log" * scale.log, share_text(scale.share)
    return next(text for text in (f"{log} {part}".strip(), part, log, "") if len(text) <= room)


def bar_scale_ends(scale: BarScale, written: Callable[[float], str] = fitted) -> tuple[str, str]:
    """Return the two ends of bars as they are written; where they then do not differ, how far the high one is away."""
    low, high = written(scale.low), written(scale.high)
    if low == high and scale.low < scale.high:
        high = f"+{few_digits(scale.high - scale.low, 2)}"
    return low, high
