"""The watches over all iterations, below their list; without any, how expressions are written."""

from __future__ import annotations

from typing import ClassVar

from tui.panes.chart import TimelineChart
from tui.panes.topic import topic_rows
from tui.rows import Row


class WatchChart(TimelineChart):
    """The timeline of the watches alone."""

    title = "over the iterations"
    bands: ClassVar[tuple[str, ...]] = ("watch",)

    def heading(self, width: int) -> list[Row]:
        """None where there is nothing to draw."""
        return super().heading(width) if self.state.watches else []

    def rows(self, width: int) -> list[Row]:
        """The bands."""
        return super().rows(width) if self.state.watches else topic_rows("expressions", width)
