"""The overview: what a whole run was, on one screen."""

from __future__ import annotations

from textual.app import ComposeResult

from stepper.debug.overview.facts import Overview
from tui.screens.base import DebugScreen
from tui.screens.overview.pane import OverviewPane


class OverviewScreen(DebugScreen):
    """The loops of the run as cards."""

    view_name = "overview"

    def body(self) -> ComposeResult:
        """Yield the one pane."""
        yield OverviewPane(self.host, id="overview")

    @property
    def pane(self) -> OverviewPane:
        """The one pane."""
        return self.query_one("#overview", OverviewPane)

    def grew(self, overview: Overview) -> None:
        """More is known of the run."""
        if self.is_ready:
            self.pane.grew(overview)

    def move_tab(self, by: int) -> bool:
        """Go to the next card."""
        return self.pane.move_card(by)
