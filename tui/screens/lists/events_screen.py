"""The log of the session."""

from __future__ import annotations

from tui.screens.list_screen import ListScreen
from tui.screens.lists.event_list import EventList


class EventsScreen(ListScreen):
    """The log of the session."""

    view_name = "events"
    pane_class = EventList
