"""The value of the selected row over the visible iterations, each below its column of the grid, large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual import events

from stepper.engine.program import Program
from stepper.tensors.surveys import CellStatistic
from tui.paint.names import marked_name
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, shape_of
from tui.pictures.axis import Axis, Slot
from tui.pictures.value_rows import Looks, RowColumns, ValueRow, value_rows
from tui.screens.grid.grid import Grid

_WAYS: Final[Mapping[str, str]] = {"rms": CellStatistic.RMS.value, "peak": CellStatistic.LARGEST.value}
"""How several elements become one where a statistic was chosen."""
_BARS: Final = 3
"""Lines for bars of a single number."""
_WHOLE: Final = 8
"""Elements of which each has a line."""


class GridPicture(Pane, can_focus=False):
    """The elements down, the iterations across, each below its column of the grid."""

    looks_inside: ClassVar[bool] = True
    DEFAULT_CSS = "GridPicture { height: 8; border-top: solid $foreground 14%; }"

    def __init__(self, host: Host, grid: Grid, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._grid = grid
        self._looks = Looks()
        self._most: tuple[Program | None, int] = None, 0

    def lines_wanted(self) -> int:
        """Return the lines in which each element of the largest value that was seen has its own, or a half."""
        frame, cells = self._grid.frame, self.state.cells
        program = None if frame is None else frame.program
        known, most = self._most
        most = most if known is program else _BARS
        if cells is not None and cells.program is program:
            most = max(most, *(one.elements for one in cells.values.values()), 0)
        self._most = program, most
        return most if most <= _WHOLE else -(-most // 2)

    def rows(self, width: int) -> list[Row]:
        """Return the picture, with the name and the scale before it."""
        grid, height = self._grid, self.size.height
        cell, frame, cells = grid.cell, grid.frame, self.state.cells
        if cell is None or frame is None or cells is None or cells.program is not frame.program or height < 1:
            return []
        values, layer = cells.values.get(cell.operation), frame.layers[cell.operation]
        label, wide = grid.label_width, grid.cell_width
        left, count = grid.columns()
        shown = wide - 1 if wide > 3 else wide
        axis = Axis(tuple(Slot(k * wide, shown, left + k, left + k + 1) for k in range(count)), None)
        key = id(frame.program), cell.operation
        self._looks.choose(key, _WAYS.get(cells.statistic))
        row = ValueRow(
            key,
            ("  ", ""),
            (marked_name(frame.program, cell.operation, label - 3), ""),
            "" if values is None else shape_of(values.shape),
            values,
            self.state.labels_of(frame.program, layer),
        )
        moment = grid.moment
        marked = [] if moment is None or self.state.is_far else [moment.iteration]
        columns = RowColumns(label, width - label, 0)
        lines = min(height, max(values.elements, 2)) if values is not None else 1
        a = self.state.iterations_of_a
        return value_rows(row, axis, lines, columns, self._looks, self.palette, marked=marked, a=a, is_ruled=True).rows

    def on_click(self, event: events.Click) -> None:
        """A click selects the iteration, a second one goes there."""
        place, cell = event.get_content_offset(self), self._grid.cell
        if place is not None and cell is not None:
            self._grid.click_cell(place.x, cell.operation, is_second=event.chain == 2)
