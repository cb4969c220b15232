"""Carried values beside the reference: a bar an iteration on a log scale."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from stepper.compare.stops import LargestDifference
from stepper.tensors.number_text import fitted
from tui.paint.names import carried_name
from tui.paint.pane import Pane
from tui.paint.rows import BARS, Row, clip, padded
from tui.theme import GLYPHS

_LOWEST: Final = -8.0
_HIGHEST: Final = 0.0


class CarriedDifferences(Pane, can_focus=False):
    """Two lines a back edge: the bars, and below them which are above the tolerance."""

    DEFAULT_CSS = "CarriedDifferences { height: 1fr; }"
    kind: ClassVar[str] = "carried"
    title = "what is carried, by iteration"

    def heading(self, width: int) -> list[Row]:
        """Return the title, with what the numbers are where there is room."""
        self.note = "largest difference " if width >= 52 else ""
        return [] if self.state.comparison is None else super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return all back edges, then what the signs mean."""
        loop, comparison = self.state.loop, self.state.comparison
        if comparison is None:
            return []
        if loop is None or comparison.problem:
            why = "the moment is in no loop" if loop is None else "there is nothing to compare with"
            return [[("  ", ""), (why, "dim")]]
        present = self.state.iteration or 0
        cells = max((width - 12 - 9) // 3, 1)
        first = max(present - cells + 1, 0)
        shown = range(first, max(present + 1, first + 1))
        rows: list[Row] = [self._axis(shown, present)]
        layers = [edge.parameter.layer for edge in loop.back_edges if edge.counts]
        is_tiny = self.screen.has_class("-tiny")
        for layer in layers:
            if layer is None:
                continue
            found = comparison.carried.get(layer.id, {})
            lines = self._edge(carried_name(layer), [found.get(iteration) for iteration in shown], present - first)
            has_marks = any(text.strip() for text, _tone in lines[1])
            rows += lines if has_marks or not is_tiny else lines[:1]
        if is_tiny:
            return rows
        rows += [[], [("   ━ made in this op   ╌ carried in", "dim")], [("   │ tolerance", "dim")]]
        return [*rows, [(f"   = same bits  · within  {GLYPHS['diff']} above", "dim")]]

    def _axis(self, shown: range, present: int) -> Row:
        row: Row = [(" " * 12, "")]
        for iteration in shown:
            tone = "title-on" if iteration == present else "dim"
            text = str(iteration) if len(str(iteration)) < 3 or iteration == present else ""
            row.append((padded(text[-3:], 3), tone))
        return [*row, ("     last", "dim")]

    def _edge(self, name: str, found: list[LargestDifference | None], present: int) -> list[Row]:
        bars: Row = [("  " + padded(clip(name, 9), 10), "")]
        marks: Row = [(" " * 12, "")]
        for place, one in enumerate(found):
            tone = "accent" if place == present else "bar" if one is not None and one.is_above else "dim"
            bars.append((f"{_bar(one)} ", tone))
            marks.append(_mark(one))
        last = next((one for one in reversed(found) if one is not None), None)
        text = "" if last is None else "same" if not last.distance else fitted(last.distance, 8)
        return [[*bars, (text.rjust(9), "")], marks]


def _bar(one: LargestDifference | None) -> str:
    if one is None:
        return "  "
    if not one.distance:
        return "= "
    exponent = math.log10(one.distance) if math.isfinite(one.distance) else _HIGHEST
    level = (exponent - _LOWEST) / (_HIGHEST - _LOWEST)
    return BARS[max(0, min(int(level * 6), 5))] * 2


def _mark(one: LargestDifference | None) -> tuple[str, str]:
    if one is None or not one.distance:
        return "   ", ""
    return (f"{GLYPHS['diff']}  ", "bad") if one.is_above else ("·  ", "faint")
