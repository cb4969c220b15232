"""The breakpoints, with what they wait for."""

from __future__ import annotations

from tui.panes.breakpoints import BreakpointList
from tui.screens.list_screen import ListScreen


class BreakpointsScreen(ListScreen):
    """The breakpoints, with what they wait for."""

    view_name = "breakpoints"
    pane_class = BreakpointList
