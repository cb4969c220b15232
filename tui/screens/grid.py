"""The grid on a screen of its own, with what there is to say about one cell, and the legend."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.panes.grid import Grid
from tui.panes.grid_detail import GridDetail
from tui.screens.base import DebugScreen


class GridScreen(DebugScreen):
    """The list of operations, unrolled in time."""

    view_name = "grid"

    def body(self) -> ComposeResult:
        """The grid over its detail."""
        grid = Grid(id="grid")
        yield grid
        yield GridDetail(grid, id="detail")

    def fit(self, width: int, height: int) -> None:
        """The legend goes first where there is little room."""
        detail = self.query_one(GridDetail)
        detail.has_legend = height >= 30
        detail.changed()

    def close_card(self) -> bool:
        """Let go of a selected cell."""
        if not self.query_one(Grid).unpick():
            return False
        self.stepper.select(None)
        return True
