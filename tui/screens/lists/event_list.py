"""The log: what was done, where it led, what stopped the run, what went wrong; the newest at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tui.paint.list_pane import ListPane
from tui.paint.rows import Row, clip_end, clip_head, padded, printable
from tui.theme import GLYPHS
from tui.worker.event_log import Entry, Kind

_TICK: Final = 9
_WORD: Final = 9
_GLYPHS: Final = {
    Kind.MOVED: (GLYPHS["now"], "dim"),
    Kind.STOPPED: (GLYPHS["break"], "bad"),
    Kind.FAILED: ("✗", "bad"),
    Kind.EDITED: (GLYPHS["edit"], "edit"),
    Kind.SET: (GLYPHS["break-if"], "edit"),
    Kind.LOGGED: ("›", "accent"),
    Kind.REFUSED: ("✗", "dim"),
    Kind.SESSION: ("■", "dim"),
    Kind.FAULT: ("✗", "bad"),
}


class EventList(ListPane[Entry]):
    """One row an event. Enter goes back to its moment."""

    kind: ClassVar[str] = "events"
    title = "events"
    follows: ClassVar[bool] = True
    when_empty: ClassVar[str] = "nothing has happened yet"
    help_text: ClassVar[str] = (
        "All that has happened in this session, the newest at the bottom. Enter goes to the moment of an event;\n"
        "stops, errors, edits and the lines of logpoints keep the place at which they happened."
    )

    def entries(self) -> Sequence[Entry]:
        """All that are kept."""
        return self.state.lists.log

    def heading(self, width: int) -> list[Row]:
        """How many there are."""
        self.note = f"{len(self.entries())} "
        return super().heading(width)

    def labels(self, width: int) -> Row:
        """The columns."""
        place, text, command = self._widths(width)
        row: Row = [(padded("tick", _TICK - 2, right=True), ""), ("    ", ""), (padded("event", _WORD), "")]
        row += [(padded("place", place), ""), (padded("what", text), "")]
        return [*row, (padded("command", command), "")] if command else row

    def _widths(self, width: int) -> tuple[int, int, int]:
        """Of place, words, command."""
        room = width - 1 - _TICK - _WORD - 3
        command = 0 if width < 90 else min(room // 4, 40)
        place = (room - command) * 2 // 5
        return place, room - command - place, command

    def entry(self, item: Entry, width: int) -> Row:
        """Tick, word, place, what happened, and the command that did it."""
        place, text, command = self._widths(width)
        glyph, tone = _GLYPHS[item.kind]
        is_loud = tone == "bad" or item.kind is Kind.EDITED
        row: Row = [
            (padded(str(item.tick), _TICK - 2, right=True), "dim"),
            (f"  {glyph} ", tone),
            (padded(item.kind.value, _WORD), tone if is_loud else "dim"),
            (padded(clip_head(_place_text(item.place), place - 1), place), "dim"),
            (padded(clip_end(printable(item.text), text - 1), text), "dim" if item.kind is Kind.MOVED else ""),
        ]
        return [*row, (padded(clip_end(printable(item.command), command), command), "dim")] if command else row

    def line_to_open(self, item: Entry) -> str:
        """Back to its moment."""
        if item.branch != self.state.branch:
            return f"branch {item.branch}"
        return f"goto tick {item.tick}"


def _place_text(place: str) -> str:
    """Without the words that every place begins with."""
    return printable(place.removeprefix("model > ").replace(" > ", " › "))
