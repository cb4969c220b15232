"""The watches over all iterations, below their list; without any, how expressions are written."""

from __future__ import annotations

from typing import ClassVar

from tui.paint.rows import Row
from tui.screens.main.topic import topic_rows
from tui.screens.timeline.chart import TimelineChart


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
