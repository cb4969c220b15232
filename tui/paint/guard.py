"""Guarded: a fault in what a pane or a screen does with an event is told, and neither it nor the session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from textual.events import Event

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    _Pump = MessagePump
else:
    _Pump = object


class FaultReporter(Protocol):
    """The application, as far as faults are concerned."""

    def report_fault(self, where: str, error: Exception) -> None:
        """Show once that a part of the program failed; the session goes on, and is saved."""


class Guarded(_Pump):
    """To be named before a class of widgets. Without it Textual ends the application at the first fault."""

    host: FaultReporter

    async def on_event(self, event: Event) -> None:
        """Handle an event; a fault in that is reported in one line."""
        try:
            await super().on_event(event)
        except Exception as error:
            self.host.report_fault(type(self).__name__, error)
