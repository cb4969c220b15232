"""The overview: what a whole run was, on one screen."""

from __future__ import annotations

from textual.app import ComposeResult

from stepper.debug.overview.facts import Overview, RunState
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
            self.show_keys()

    def situation(self) -> str:
        """Return how the run stands that is shown, where the debugger does not move."""
        known = self.pane.overview
        if self.host.state.running is not None:
            return "running"
        if known is None:
            return ""
        if known.state is RunState.RUNNING:
            return "making"
        return "" if known.state in (RunState.FINISHED, RunState.FAILED) else "paused"

    def move_tab(self, by: int) -> bool:
        """Go to the next card."""
        return self.pane.move_card(by)
