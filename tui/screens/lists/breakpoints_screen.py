"""The breakpoints, with what they wait for, and more about the chosen one."""

from __future__ import annotations

from typing import Any

from tui.paint.pane import Pane
from tui.screens.list_screen import ListScreen
from tui.screens.lists.break_detail import BreakDetail
from tui.screens.lists.breakpoints import BreakpointList


class BreakpointsScreen(ListScreen):
    """The breakpoints, with what they wait for."""

    DEFAULT_CSS = "BreakpointsScreen.-ascii BreakDetail { border-top: ascii $foreground 14%; }"
    view_name = "breakpoints"
    pane_class = BreakpointList

    def more_about(self, listed: Any) -> Pane:
        """Where the chosen one sits, and where it has stopped."""
        return BreakDetail(self.host, listed)
