"""How the cells of a table are written, and which shade they have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from rich.style import Style

from stepper.debug.labels import label_of
from stepper.debug.table.columns import SheetView
from stepper.element_types import Array
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import Scale, ScaleKind, bar_scale, heights, scale_of, shades
from tui.paint.pane import Pane
from tui.paint.rows import BARS, Cell, clip, printable
from tui.theme import GLYPHS

Labels = Mapping[tuple[int, int], tuple[str, ...]]
_MOST_SHADE: Final = 0.38
_STEPS: Final = 16
"""Shades of a sign: as many as can be told apart, so that styles are few."""


def cell_text(value: Any, room: int, *, whole: bool = False) -> str:
    """Return a number in at most so many cells (6 or more): three decimals, so that points stand under points.

    `whole`: those that it stands with have no fraction, so that it has no decimals either.
    """
    if value is None:
        return ""
    if not whole and isinstance(value, float) and math.isfinite(value) and (value == 0 or 1e-3 <= abs(value) < 1e5):
        text = f"{value:.3f}"
        return text if len(text) <= room else fitted(value, room)
    return fitted(value, max(room, 6))


def truth_text(value: Any) -> str:
    """Return a boolean as T or F."""
    return "" if value is None else GLYPHS["true" if value else "false"]


class Shades:
    """The shades of the columns of a view: zero is the ground, the robust largest of a column is full."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self._styles: dict[tuple[int, bool, str], Style] = {}
        self._view: SheetView | None = None
        self._labels: Labels = {}

    def take(self, view: SheetView, labels: Labels) -> None:
        """Another view; `labels` are the words for whole numbers, by the id of a program and a slot."""
        self._view, self._labels = view, labels

    def forget(self) -> None:
        """Another theme."""
        self._styles.clear()

    def cell(self, column: int, value: Any, width: int, *, bold: bool = False) -> Cell:
        """Return a cell, its number at the right with one blank behind it."""
        text = f"{self.text(column, value, width - 2):>{width - 1}} "
        if value is None:
            return f"{'·':>{width - 1}} ", "dim"
        if isinstance(value, float) and not math.isfinite(value):
            return text, "bad"
        return text, "" if self.is_truth(column) else self._style(self._level(column, value), bold=bold)

    def text(self, column: int, value: Any, room: int) -> str:
        """Return a number of a column in so many cells, or the word for it."""
        if self.is_truth(column):
            return truth_text(value)
        words = self._words(column) if isinstance(value, int) else ()
        return (
            clip(printable(label_of(words, value)), room)
            if words
            else cell_text(value, room, whole=self.is_whole(column))
        )

    def is_truth(self, column: int) -> bool:
        """Return True if a column is a boolean in each iteration."""
        return self._view is not None and self._view.is_truth(column)

    def is_whole(self, column: int) -> bool:
        """Return True if no number of a column has a fraction."""
        facts = None if self._view is None else self._view.facts.get(column)
        return facts is not None and facts.is_whole

    def _words(self, column: int) -> tuple[str, ...]:
        """Return the words for the numbers of a column of single elements; empty where it has none."""
        assert self._view is not None
        one = self._view.columns[column]
        if not self._labels or one.statistic or one.is_bucket:
            return ()
        target = self._view.topic.values[one.value].target
        return self._labels.get((id(target.program), target.slot), ())

    def _level(self, column: int, value: Any) -> int:
        assert self._view is not None
        course = self._view.courses.get(column)
        if course is not None:
            return _step(float(value), _scale_of_course(course.tobytes()))
        facts = self._view.facts[column]
        return _step(float(value), _scale_between(facts.low or 0.0, facts.high or 0.0))

    def _style(self, level: int, *, bold: bool) -> Style:
        key = level, bold, ""
        known = self._styles.get(key)
        if known is None:
            pane = self._pane
            shade = pane.colour("warm" if level > 0 else "cool")
            ground = pane.colour("background").blend(shade, (abs(level) / _STEPS) ** 0.8 * _MOST_SHADE)
            known = self._styles[key] = Style(
                bgcolor=ground.rich_color, color=pane.colour("foreground").rich_color, bold=bold
            )
        return known


# Most of what a key leaves as it was is painted again.


@lru_cache(maxsize=1 << 14)
def _step(value: float, scale: Scale) -> int:
    return round(float(shades(np.array(value), scale)) * _STEPS)


@lru_cache(maxsize=1 << 10)
def _scale_of_course(course: bytes) -> Scale:
    return scale_of(np.frombuffer(course))


@lru_cache(maxsize=1 << 10)
def _scale_between(low: float, high: float) -> Scale:
    return scale_of(np.array([low, high]))


def bars_of(numbers: Sequence[float], course: Array) -> str:
    """Return a bar for each number of a column, by the scale of the whole column; N and I are letters."""
    levels = heights(np.array(numbers), bar_scale(course, ScaleKind.ROBUST))
    return "".join(
        "N" if level != level else "I" if math.isinf(level) else BARS[max(0, min(5, int(level * 5.999)))]
        for level in levels.tolist()
    )
