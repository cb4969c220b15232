"""Values in one line each, as in lists and grids, by the scales of larger pictures.

Over iterations a cell each: of several numbers its upper half stands for the first half of them, the lower one for the
second. Of one iteration the elements from left to right, half a cell each where they are many.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from stepper.element_types import Array
from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import Form, digits, heights, letters, shades
from tui.paint.rows import Cell, Row, Token, figure
from tui.pictures.drawing import EIGHTHS, bar_row_scale, first_bad, form_in, numbers_in, reduced, row_scale, way_in
from tui.pictures.palette import Palette
from tui.theme import GLYPHS

LineCell = Cell | None
"""An iteration of a value in a line; None where it is not known."""

_KEPT: Final = 512
"""Rows of a pane that are drawn once."""
_WIDEST: Final = 2
"""Cells of an element where there is room for more."""
_TOP: Final = 6
"""Of the eight heights of a bar so many are used, or rows would melt into one another."""


class LinePictures:
    """Rows of a pane; what was drawn once is kept."""

    def __init__(self) -> None:
        self._drawn: OrderedDict[object, tuple[ValueHistory, list[LineCell]]] = OrderedDict()
        self._boxes: OrderedDict[object, tuple[ValueHistory, list[Row]]] = OrderedDict()

    def forget(self) -> None:
        """Another theme."""
        self._drawn.clear()
        self._boxes.clear()

    def cells(
        self, history: ValueHistory, first: int, count: int, width: int, way: str | None, palette: Palette
    ) -> list[LineCell]:
        """Return a cell for each of so many iterations; None where it is not known."""
        key = id(history), first, count, width, way
        kept = self._drawn.get(key)
        if kept is not None:
            return kept[1]
        found = _cells(history, first, count, width, way, palette)
        self._drawn[key] = history, found
        while len(self._drawn) > _KEPT:
            self._drawn.popitem(last=False)
        return found

    def elements(
        self, history: ValueHistory, first: int, count: int, room: int, way: str | None, palette: Palette
    ) -> list[Row]:
        """Return the elements in each of so many iterations, from left to right in at most so many cells.

        Where there is no room for all, neighbours are one. Empty where they are not known, and of single numbers.
        """
        if form_in(history) is not Form.PICTURE:
            return [[] for _ in range(count)]
        key = "elements", id(history), first, count, room, way
        kept = self._boxes.get(key)
        if kept is not None:
            return kept[1]
        found = _elements(history, first, count, room, way, palette)
        self._boxes[key] = history, found
        while len(self._boxes) > _KEPT:
            self._boxes.popitem(last=False)
        return found


def _elements(history: ValueHistory, first: int, count: int, room: int, way: str | None, palette: Palette) -> list[Row]:
    numbers, places = numbers_in(history, first, count, way)
    found: list[Row] = [[] for _ in range(count)]
    if not len(places):
        return found
    scale, bad = row_scale([history], way, None), first_bad(history)
    few = reduced(numbers, room if palette.look.plain else 2 * room, way_in(history, way))
    levels = shades(few, scale).tolist()
    for place, column in zip(places, levels, strict=True):
        found[place] = _box(column, room, palette, is_signed=scale.signed, is_loud=bad == first + place)
    return found


def _box(levels: Sequence[float], room: int, palette: Palette, *, is_signed: bool, is_loud: bool) -> Row:
    """Return shades from left to right; half a cell each where they are more than cells."""
    each = 2 if len(levels) > room else 1
    width = min(max(room // len(levels), 1), _WIDEST)
    found: Row = []
    for place in range(0, len(levels), each):
        left, right = levels[place], levels[min(place + each, len(levels)) - 1]
        letter = "" if math.isfinite(left + right) else "N" if math.isnan(left) or math.isnan(right) else "I"
        if palette.look.plain:
            found.append(_figure(left, letter, width, palette, is_signed=is_signed, is_loud=is_loud))
        elif letter:
            found.append((f"{letter:^{width}}", palette.letter(is_first=is_loud)))
        else:
            found.append(("▌" if left != right else " " * width, palette.halves(left, right, is_signed=is_signed)))
    return found


def _figure(level: float, letter: str, width: int, palette: Palette, *, is_signed: bool, is_loud: bool) -> Cell:
    """Return a shade without colours: a figure, or a letter where there is NaN or Inf."""
    nearest = int(digits(np.array([level]))[0])
    text = letter or (figure(nearest, width) if nearest else "·")
    shade = palette.shade(level, is_signed=is_signed, is_first=is_loud)
    token: Token = ("bad" if letter else "") if palette.look.ascii else palette.on(shade, bold=bool(letter))
    return f"{text:>{(width + 2) // 2}}".ljust(width)[:width], token


def _cells(
    history: ValueHistory, first: int, count: int, width: int, way: str | None, palette: Palette
) -> list[LineCell]:
    numbers, places = numbers_in(history, first, count, way)
    found: list[LineCell] = [None] * count
    if not len(places) or not history.elements:
        return found
    bad = first_bad(history)
    loud = -1 if bad is None else bad - first
    form = form_in(history)
    if form is Form.PICTURE:
        drawn = _shaded(history, numbers, [place == loud for place in places], width, way, palette)
    elif form is Form.TRUTH:
        drawn = [_centred(GLYPHS["true" if one else "false"], width, "strong") for one in numbers[:, 0]]
    else:
        drawn = _single(history, numbers[:, 0], [place == loud for place in places], width, way)
    for place, cell in zip(places, drawn, strict=True):
        found[place] = cell
    return found


def _centred(text: str, width: int, token: str) -> Cell:
    return f"{text:^{width}}"[:width], token


def _shaded(
    history: ValueHistory, numbers: Array, is_loud: list[bool], width: int, way: str | None, palette: Palette
) -> list[Cell]:
    """Return half blocks; without colours a figure, and a letter where there is NaN or Inf."""
    scale = row_scale([history], way, None)
    few = reduced(numbers, 1 if palette.look.plain else 2, way_in(history, way))
    levels = shades(few, scale)
    worst = np.where(np.isfinite(few).all(axis=1), "", np.where(np.isnan(few).any(axis=1), "N", "I")).tolist()
    found: list[Cell] = []
    if palette.look.plain:
        return [
            _figure(level, letter, width, palette, is_signed=scale.signed, is_loud=loud)
            for letter, level, loud in zip(worst, levels[:, 0].tolist(), is_loud, strict=True)
        ]
    for (top, low), letter, loud in zip(levels.tolist(), worst, is_loud, strict=True):
        if letter:
            found.append((f"{letter:^{width}}", palette.letter(is_first=loud)))
        else:
            found.append(("▀" * width, palette.halves(top, low, is_signed=scale.signed)))
    return found


def _single(history: ValueHistory, numbers: Array, is_loud: list[bool], width: int, way: str | None) -> list[Cell]:
    """Return single numbers: whole ones as they are where all fit, else bars."""
    finite = np.isfinite(numbers)
    if history.is_whole and history.type[0] in "iu" and finite.all():
        texts = [str(int(one)) for one in history.numbers[0, :, 0].tolist()]
        if max(map(len, texts), default=0) <= width - (width > 1):
            return [_centred(str(int(one)), width, "") for one in numbers.tolist()]
    levels = heights(np.where(finite, numbers, 0.0), bar_row_scale([history], None, way)).tolist()
    found: list[Cell] = []
    for level, letter, loud in zip(levels, letters(numbers).tolist(), is_loud, strict=True):
        if letter:
            found.append(_centred(letter, width, "badbg" if loud else "bad"))
        else:
            found.append((EIGHTHS[1 + round(level * (_TOP - 1))] * width, "bar"))
    return found
