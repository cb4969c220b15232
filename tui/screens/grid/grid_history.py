"""The row of the grid's cell as numbers: each visible iteration with its number, the change and a bar."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tui.paint.names import marked_name
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, number
from tui.screens.grid.grid import Grid
from tui.theme import GLYPHS

_BEFORE_BARS: Final = 27
"""Cells of the columns of numbers."""


class GridHistory(Pane, can_focus=False):
    """What the operation of the cell that is shown gave over the iterations."""

    DEFAULT_CSS = "GridHistory { height: 1fr; }"

    def __init__(self, host: Host, grid: Grid, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._grid = grid

    def heading(self, width: int) -> list[Row]:
        """Which operation, and what its columns are."""
        cell, frame, cells = self._grid.cell, self._grid.frame, self.state.cells
        if cell is None or frame is None or cells is None:
            self.title = ""
            return []
        self.title = f"{marked_name(frame.program, cell.operation, max(width - 17, 10))} over iterations"
        return [*super().heading(width), [(f" {'iteration':>10}{cells.statistic:>8}{'change':>8}", "dim")]]

    def rows(self, width: int) -> list[Row]:
        """One line an iteration: those that the grid shows, around the cell where they are too many."""
        cell, frame, cells = self._grid.cell, self._grid.frame, self.state.cells
        if cell is None or frame is None or cells is None or cells.program is not frame.program:
            return []
        left, count = self._grid.columns()
        room = max(self.size.height - 2, 1)
        begin = max(left, min(cell.iteration - room // 2, left + count - room))
        tile = cells.window(begin - 1, min(room, left + count - begin) + 1, np.array([cell.operation]))
        values = np.where(tile.known[:, 0], tile.numbers[:, 0], math.nan)
        finite = values[1:][np.isfinite(values[1:])].tolist()
        low, high = min(finite, default=0.0), max(finite, default=0.0)
        rows: list[Row] = []
        for place, (before, value) in enumerate(zip(values[:-1].tolist(), values[1:].tolist(), strict=True)):
            iteration, known = begin + place, bool(tile.known[place + 1, 0])
            rows.append(self._row(iteration, before, value if known else None, (low, high), width))
        return rows

    def _row(self, iteration: int, before: float, value: float | None, scale: tuple[float, float], width: int) -> Row:
        moment, cell = self._grid.moment, self._grid.cell
        here = moment is not None and moment.iteration == iteration
        tone = "title-on" if here else "strong" if cell is not None and cell.iteration == iteration else "dim"
        row: Row = [(GLYPHS["now"] if here else " ", "accent"), (f"{iteration:>10,}", tone)]
        if value is None:
            return [*row, (f"{GLYPHS['free']:>8}", "faint")]
        row.append((f"{number(value):>8}", "" if math.isfinite(value) else "bad"))
        if not math.isfinite(value):
            return row
        with np.errstate(all="ignore"):
            change = float(np.subtract(value, before))
        text = (
            ""
            if not math.isfinite(change)
            else "same"
            if not change
            else f"{'+' if change > 0 else ''}{number(change)}"
        )
        low, high = scale
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        length = max(round(share * (width - _BEFORE_BARS - 2)), 1)
        return [*row, (f"{text:>8}  ", "dim"), ("━" * max(length, 0), "accent" if here else "bar")]
