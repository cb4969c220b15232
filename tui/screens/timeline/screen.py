"""The timeline on a screen of its own."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.screens.base import DebugScreen
from tui.screens.timeline.chart import TimelineChart


class TimelineScreen(DebugScreen):
    """All iterations of the loop."""

    view_name = "timeline"

    def body(self) -> ComposeResult:
        """The one pane."""
        yield TimelineChart(self.host, id="chart")
