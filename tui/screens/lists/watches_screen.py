"""The watches, with what they are and were, and each over all iterations."""

from __future__ import annotations

from typing import Any

from tui.paint.pane import Pane
from tui.screens.list_screen import ListScreen
from tui.screens.lists.watch_chart import WatchChart
from tui.screens.lists.watches import WatchList


class WatchesScreen(ListScreen):
    """The watches, with what they are and were."""

    view_name = "watches"
    pane_class = WatchList

    def more_about(self, listed: Any) -> Pane:
        """Each over all iterations."""
        return WatchChart(self.host, id="chart")
