"""Guarded: a fault in what a pane or a screen does with an event is told, and neither it nor the session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import Event

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    _Pump = MessagePump
else:
    _Pump = object


class Guarded(_Pump):
    """To be named before a class of widgets. Without it Textual ends the application at the first fault."""

    async def on_event(self, event: Event) -> None:
        """Handle an event; a fault in that is reported in one line."""
        try:
            await super().on_event(event)
        except Exception as error:
            said = getattr(self.app, "report_fault", None)
            if said is None:
                raise
            said(type(self).__name__, error)
