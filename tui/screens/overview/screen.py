"""The overview: what a whole run was, on one screen."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.screens.base import DebugScreen
from tui.screens.overview.pane import OverviewPane


class OverviewScreen(DebugScreen):
    """The loops of the run as cards."""

    view_name = "overview"

    def body(self) -> ComposeResult:
        """Yield the one pane."""
        yield OverviewPane(self.host, id="overview")

    def move_tab(self, by: int) -> bool:
        """Go to the next card."""
        return self.query_one("#overview", OverviewPane).move_card(by)
