"""The grid on a screen of its own, with what there is to say about one cell, and the legend.

Where the grid leaves room, beside it or below, stand the numbers of the cell's row and the value of its operation.
"""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult

from tui.paint.painter import Horizontal, Vertical
from tui.screens.base import DebugScreen, ScreenHost
from tui.screens.grid.detail import GridDetail, GridHistory
from tui.screens.grid.grid import Grid
from tui.screens.grid.picture import GridPicture
from tui.screens.grid.value import GridValue
from tui.state import State

_BESIDE: Final = 50
"""Columns of what stands beside the grid."""
_BELOW: Final = 11
"""Rows that it needs below."""
_AROUND: Final = 8
"""Rows of the screen that are neither the grid's nor its detail's."""
_TALL_ENOUGH: Final = 30
"""Rows of a screen from which on the selected row is drawn once more, large."""


class GridScreen(DebugScreen):
    """The list of operations, unrolled in time."""

    DEFAULT_CSS = """
    GridScreen #parts { height: 1fr; }
    GridScreen Grid { width: 1fr; }
    GridScreen #more { width: 50; margin-top: 1; display: none; }
    GridScreen #more ValueStrip { height: 1fr; }
    GridScreen.-beside #more { display: block; }
    GridScreen.-below #parts { layout: vertical; }
    GridScreen.-below #more { display: block; layout: horizontal; width: 1fr; border-left: none; }
    GridScreen.-below #more ValueStrip { border-top: none; border-left: solid $foreground 14%; }
    GridScreen.-below #more ValueStrip { width: 1fr; height: 100%; }
    GridScreen.-below #more GridHistory { width: 50; height: 100%; }
    GridScreen.-ascii #more ValueStrip, GridScreen.-ascii GridPicture { border-top: ascii $foreground 14%; }
    GridScreen.-ascii.-below #more ValueStrip { border-top: none; border-left: ascii $foreground 14%; }
    """
    view_name = "grid"

    def __init__(self, host: ScreenHost) -> None:
        super().__init__(host)
        self._grid = Grid(self.host, id="grid")
        self._picture = GridPicture(self.host, self._grid, id="picture")
        self._detail = GridDetail(self.host, self._grid, id="detail")
        self._more = Vertical(id="more", classes="rule")

    def body(self) -> ComposeResult:
        """The grid and what goes with it over its detail."""
        with Horizontal(id="parts"):
            yield self._grid
            with self._more:
                yield GridHistory(self.host, self._grid, id="history")
                yield GridValue(self.host, self._grid, id="value")
        yield self._picture
        yield self._detail

    def fit(self, width: int, height: int) -> None:
        """The legend goes first where there is little room."""
        self._detail.has_legend = height >= 30
        self._detail.changed()
        self._place_more()

    def show(self, state: State) -> None:
        """Another frame may leave more room, or less."""
        super().show(state)
        if self.is_ready:
            self._place_more()

    def _place_more(self) -> None:
        """Beside the grid where all iterations fit there, too; else below it where there are few rows."""
        width, height = self.app.size
        room = height - _AROUND - (5 if self._detail.has_legend else 3) - self._grid.count(width) - 2
        is_inside = self._grid.listing() is not None
        least = 0 if height < _TALL_ENOUGH or not is_inside else min(max((height - 16) // 5, 4), 8)
        wanted = self._picture.lines_wanted()
        least = min(least, wanted)
        lines = max(least, min(room - 1, wanted)) if least else 0
        beside = is_inside and width >= 100 and self._grid.leaves(width - _BESIDE - 3, width - 2)
        below = is_inside and not beside and width >= 100 and room - least - 1 >= _BELOW
        if below:
            lines = max(least, min(room - 1 - _BELOW, wanted))
        self._picture.styles.height = lines + 1
        self._picture.display = lines > 0
        self._more.styles.height = room - lines - 1 if below else "1fr"
        self.update_classes({"-beside": beside, "-below": below})

    def close_card(self) -> bool:
        """Close an answer, or let go of a selected cell."""
        if super().close_card():
            return True
        if not self._grid.unpick():
            return False
        self.host.select(None)
        return True
