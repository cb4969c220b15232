"""The watches, with what they are and were."""

from __future__ import annotations

from tui.panes.watches import WatchList
from tui.screens.list_screen import ListScreen


class WatchesScreen(ListScreen):
    """The watches, with what they are and were."""

    view_name = "watches"
    pane_class = WatchList
