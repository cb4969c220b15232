"""The log of the session."""

from __future__ import annotations

from tui.panes.event_list import EventList
from tui.screens.list_screen import ListScreen


class EventsScreen(ListScreen):
    """The log of the session."""

    view_name = "events"
    pane_class = EventList
