"""The keys: those of the pane that had the focus first, then all; made from the same table that carries them out."""

from __future__ import annotations

import itertools
import re
import textwrap
from typing import Final

from textual.app import ComposeResult

from stepper.commands.session import commands
from stepper.commands.session_commands import topics
from tui.actions.registry import actions
from tui.keys.keymap import names_of
from tui.keys.keys import Key
from tui.paint.pane import Pane
from tui.paint.rows import Row, spread, width_of, wrapped
from tui.screens.base import DebugScreen, ScreenHost

_KEYS: Final = 17
"""Cells of the keys, of what they do, and of the command that they stand for."""
_HELP: Final = 66
_LEAST_HELP: Final = 50
_COMMAND: Final = 26
_USAGE: Final = 45
_SENTENCE: Final = 100
_TWICE: Final = 186
"""Cells from which on there are two columns."""
_PLACES: Final = re.compile(r"\{(\w+)\}")
"""Pattern of placeholders that are filled in, such as a count."""


class KeyHelp(Pane):
    """A line a key, then the command words."""

    DEFAULT_CSS = "KeyHelp { height: 1fr; }"
    title = "keys"
    note = "q, Esc close "
    kind = "card"

    def __init__(self, host: ScreenHost, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._asked = host.asked_pane

    def rows(self, width: int) -> list[Row]:
        """Return all lines; there are some hundred. With much room the command words stand beside the keys."""
        if width < _TWICE:
            return [*self._keys(width), [], *_words(width)]
        half = width // 2
        blank: Row = []
        beside = itertools.zip_longest(self._keys(half - 2), [blank, *_words(width - half)], fillvalue=blank)
        return [spread(keys, words, half + width_of(words)) for keys, words in beside]

    def _keys(self, width: int) -> list[Row]:
        kind, text = ("", "") if self._asked is None else (self._asked.kind, self._asked.help_text)
        keymap = self.host.keymap
        own = [key for key in keymap if kind and kind in key.panes]
        rows: list[Row] = [[]]
        if text:
            sentence = " ".join(text.split())
            rows += [[("  ", ""), (part, "")] for part in textwrap.wrap(sentence, min(width - 4, _SENTENCE))]
            rows.append([])
        rows += [row for key in own for row in self._key_rows(key, width)]
        rows += [[], [("  everywhere", "strong"), ("   a count before a movement repeats it: 10n, 3]", "dim")]]
        return [*rows, *(row for key in keymap if not key.panes for row in self._key_rows(key, width))]

    def _key_rows(self, key: Key, width: int) -> list[Row]:
        """Return the keys, what they do, and at the right edge of the texts the command, where there is room for it."""
        is_wide = width >= _KEYS + _LEAST_HELP + _COMMAND
        room = min(width - _KEYS - (4 if not is_wide else _COMMAND), _HELP)
        names, command = names_of(key, ascii=self.look.ascii), _PLACES.sub(lambda found: found[1].upper(), key.command)
        rows: list[Row] = []
        for place, part in enumerate(textwrap.wrap(key.help, max(room, 20))):
            row: Row = [("  ", ""), ((names if not place else "").ljust(_KEYS), "key"), (part.ljust(room), "")]
            rows.append([*row, (f"  {command}", "dim")] if is_wide and not place else row)
        return rows

    def heading(self, width: int) -> list[Row]:
        """Return how much there is."""
        count, room = self.count(width), self.size.height - 1
        place = f"rows {self.top + 1} to {min(self.top + room, count)} of {count}   " if count > room else ""
        self.note = f"{place}q, Esc close "
        return super().heading(width)


def _words(width: int) -> list[Row]:
    words = [(command.usage, command.help) for command in commands()]
    words += [(f"{action.name} {action.syntax}".strip(), action.help) for action in actions().values()]
    rows = [row for usage, help in words for row in _word_rows(usage, help, width)]
    for topic, found in topics().items():
        rows += [[], [(f"  {topic}", "strong")]]
        for written, means in (*found.rows, ("", found.note)):
            rows += _word_rows(written, means, width)
    return [[("  at the prompt", "strong")], *rows]


def _word_rows(usage: str, help: str, width: int) -> list[Row]:
    """Return a command word and what it does; below it where there is no room beside it."""
    beside = len(usage) < _USAGE and width >= _USAGE + _COMMAND
    left = _USAGE if beside else 6
    parts = textwrap.wrap(help, max(width - left - 3, 20))
    rows: list[Row] = [] if beside else [[("  ", ""), (part, "key")] for part in wrapped(usage, width - 3)]
    for place, part in enumerate(parts):
        rows.append([("  ", ""), ((usage if beside and not place else "").ljust(left), "key"), (part, "dim")])
    return rows


class HelpScreen(DebugScreen):
    """All keys and words."""

    view_name = "help"

    def body(self) -> ComposeResult:
        """The one pane."""
        yield KeyHelp(self.host, id="help")

    def close_card(self) -> bool:
        """Esc closes it as q does."""
        return super().close_card() or self.host.close_view()
