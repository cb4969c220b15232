"""The value of the operation that the cell of the grid is of."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from tui.paint.pane import Host
from tui.paint.rows import Row
from tui.screens.grid.grid import Grid
from tui.screens.main.value import ValueStrip


class GridValue(ValueStrip):
    """The value of the selected operation; outside of loops that of the cell, in the run that the grid shows."""

    looks_inside: ClassVar[bool] = True

    def __init__(self, host: Host, grid: Grid, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._grid = grid

    def heading(self, width: int) -> list[Row]:
        """Return the value's name and type."""
        self._follow()
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return as many rows as there is room for."""
        self._follow()
        return super().rows(width)

    def _follow(self) -> None:
        """From outside of all loops the cell is the grid's own."""
        cell = self._grid.cell
        if self.state.is_far and cell is not None and cell.operation != self.state.selected:
            self.state = replace(self.state, selected=cell.operation)
