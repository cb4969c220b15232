"""The log: what was done, where it led, what stopped the run, what went wrong; the newest at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from tui.paint.columns import TableColumn, written
from tui.paint.list_pane import ListPane
from tui.paint.pane import Pane
from tui.paint.rows import Row, clip_end, clip_head, printable
from tui.screens.list_screen import ListScreen
from tui.screens.lists.detail import ChosenDetail
from tui.theme import GLYPHS
from tui.worker.event_log import LogEntry, LogKind

_TICK: Final = 7
_GLYPH: Final = 4
_WORD: Final = 9
_GLYPHS: Final = {
    LogKind.MOVED: (GLYPHS["now"], "dim"),
    LogKind.STOPPED: (GLYPHS["break"], "bad"),
    LogKind.FAILED: ("✗", "bad"),
    LogKind.EDITED: (GLYPHS["edit"], "edit"),
    LogKind.SET: (GLYPHS["break-if"], "edit"),
    LogKind.LOGGED: ("›", "accent"),
    LogKind.REFUSED: ("✗", "dim"),
    LogKind.SESSION: ("■", "dim"),
    LogKind.FAULT: ("✗", "bad"),
}


class EventList(ListPane[LogEntry]):
    """One row an event. Enter goes back to its moment."""

    kind: ClassVar[str] = "events"
    title = "events"
    follows: ClassVar[bool] = True
    leads_to_moment: ClassVar[bool] = True
    when_empty: ClassVar[str] = "nothing has happened yet"
    help_text: ClassVar[str] = (
        "All that has happened in this session, the newest at the bottom. Enter goes to the moment of an event;\n"
        "stops, errors, edits and the lines of logpoints keep the place at which they happened."
    )

    def entries(self) -> Sequence[LogEntry]:
        """Return all that are kept."""
        return self.state.lists.log

    def heading(self, width: int) -> list[Row]:
        """Return how many there are."""
        self.note = f"{len(self.entries())} "
        return super().heading(width)

    def columns(self) -> Sequence[TableColumn[LogEntry]]:
        """Tick, kind, place, what happened, and the command that did it."""
        return (
            TableColumn("tick", _TICK, lambda one, width: written(str(one.tick), width, "dim", right=True), right=True),
            TableColumn("", _GLYPH, lambda one, _width: [(f"  {_GLYPHS[one.kind][0]} ", _GLYPHS[one.kind][1])]),
            TableColumn("event", _WORD, _word),
            TableColumn("place", _place_width, _place),
            TableColumn("what", None, _what if _command_width(self.size.width) else _what_or_command),
            TableColumn("command", _command_width, _command),
            TableColumn("", 1, lambda _one, _width: []),
        )

    def line_to_open(self, item: LogEntry) -> str:
        """Back to its moment."""
        if item.branch != self.state.branch:
            return f"branch {item.branch}"
        return f"goto tick {item.tick}"


def _command_width(width: int) -> int:
    return 0 if width < 89 else min((width - _TICK - _GLYPH - _WORD - 1) // 4, 40)


def _place_width(width: int) -> int:
    return (width - _TICK - _GLYPH - _WORD - 1 - _command_width(width)) * 2 // 5


def _word(item: LogEntry, width: int) -> Row:
    tone = _GLYPHS[item.kind][1]
    is_loud = tone == "bad" or item.kind is LogKind.EDITED
    return written(item.kind.value, width, tone if is_loud else "dim")


def _what(item: LogEntry, width: int) -> Row:
    text = item.text if item.breakpoint is None else f"breakpoint {item.breakpoint}: {item.text}"
    return written(clip_end(printable(text), width - 1), width, "dim" if item.kind is LogKind.MOVED else "")


def _what_or_command(item: LogEntry, width: int) -> Row:
    return _what(item, width) if item.text or item.breakpoint is not None else _command(item, width - 1)


def _place(item: LogEntry, width: int) -> Row:
    return written(clip_head(_place_text(item.place), width - 1), width, "dim")


def _command(item: LogEntry, width: int) -> Row:
    return written(clip_end(printable(item.command), width), width, "dim")


def _place_text(place: str) -> str:
    """Without the words that every place begins with."""
    return printable(place.removeprefix("model > ").replace(" > ", " › "))


class EventDetail(ChosenDetail):
    """All that is known of the chosen event."""

    help_text: ClassVar[str] = "The chosen event in full: where it happened, what it was, and what was typed."
    word_width: ClassVar[int] = 7

    def titled(self, chosen: LogEntry) -> tuple[str, str]:
        """Return its number, and what it was when."""
        return f"event {chosen.number}", f"{chosen.kind.value} at tick {chosen.tick:,}, branch {chosen.branch} "

    def texts(self, chosen: LogEntry) -> tuple[tuple[str, str], ...]:
        """Return what it was, what stopped the run, where, and what was typed."""
        stopped = "" if chosen.breakpoint is None else f"breakpoint {chosen.breakpoint}"
        place = _place_text(chosen.place)
        return ("what", chosen.text), ("by", stopped), ("place", place), ("typed", chosen.command)


class EventsScreen(ListScreen):
    """The log of the session, and the chosen event in full."""

    view_name = "events"
    pane_class = EventList

    def more_about(self, listed: Any) -> Pane:
        """Return the chosen event in full."""
        return EventDetail(self.host, listed)
