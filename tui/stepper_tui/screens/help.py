"""The page of help: keys that hold here, and signs; and the table of all keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from stepper.plain_values import answer_json, json_text
from stepper.terminal import say
from stepper.wording import two_columns
from stepper_tui.keymap import PANES, chosen_keys, footer_keys, written_keys
from stepper_tui.keys import PAIRS, Key, Keymap, shown
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import Cell, Row, padded, padded_row, wrapped
from stepper_tui.screens.base import DebugScreen
from stepper_tui.theme import in_ascii

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

_KEYS_WIDTH = 18
_HELP_WIDTH = 62


def print_keys(keys: str | None, *, as_json: bool) -> int:
    """Print the keys of a preset or file (None: the user's own); what is in conflict goes to stderr. UsageError."""
    chosen = chosen_keys(keys)
    if as_json:
        print(json_text(answer_json({"keys": [_data(key) for key in chosen.keymap]})))
    else:
        for line in lines(chosen.keymap):
            say(line)
    for conflict in chosen.conflicts:
        say(f"stepper: keys: {conflict}", sys.stderr)
    return 0


def lines(keymap: Keymap) -> list[str]:
    """Keys, what they do, and the command that does it; those of a pane alone below its name."""
    found = ["everywhere"]
    found += [_line(key) for key in keymap if not key.panes]
    for pane in PANES:
        own = [key for key in keymap if pane in key.panes]
        found += ["", f"in {pane}", *(_line(key) for key in own)] if own else []
    return found


def _line(key: Key) -> str:
    return f"  {'  '.join(written_keys(key)):<{_KEYS_WIDTH}}  {key.help:<{_HELP_WIDTH}}  {key.command}".rstrip()


def _data(key: Key) -> dict[str, object]:
    return {
        "keys": [shown(name) for name in key.keys],
        "command": key.command,
        "help": key.help,
        "panes": list(key.panes),
    }


def page_keys(panes: tuple[str, ...], keymap: Keymap) -> list[tuple[str, list[Key]]]:
    """Return by pane the keys that its last line names, then all others that it has alone."""
    return [(pane, list(dict.fromkeys(_keys(pane, keymap)))) for pane in panes]


def _keys(pane: str, keymap: Keymap) -> Iterator[Key]:
    yield from footer_keys(pane, keymap)
    yield from (key for key in keymap if pane in key.panes)


def page_lines(panes: tuple[str, ...], keymap: Keymap, width: int, *, ascii: bool) -> list[str]:
    """Return the same as text: a line a key, and where there are several panes the name of each above its own."""
    lines = []
    for pane, keys in page_keys(panes, keymap):
        lines += [f"in {pane}"] if len(panes) > 1 else []
        lines += two_columns([("  ".join(written_keys(key, ascii=ascii)), key.help) for key in keys], width)
    return lines


_KEYS = 14
"""Cells of the keys, before what they do."""
_TWICE = 110
"""Cells from which on there are two columns."""


class KeyHelp(Pane):
    """The text of the pane, then a line for each key that is worth knowing, and a word for each other one."""

    DEFAULT_CSS = "KeyHelp { height: 1fr; }"
    title = "help"
    kind = "card"

    def __init__(self, host: StepperApp, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._asked = host.asked_pane

    def rows(self, width: int) -> list[Row]:
        """Return all lines, in two columns where there is room."""
        text = "" if self._asked is None else self._asked.help_text
        told: list[Row] = [[("  ", ""), (part, "")] for line in text.splitlines() for part in wrapped(line, width - 4)]
        half = (width - 2) // 2 if width >= _TWICE else width - 2
        groups = self._keys()
        own, general = (
            [row for pair in keys if not pair[0].rare for row in self._key_rows(pair, half)] for keys in groups
        )
        also = "   ".join(f"{self._names(pair)} {pair[0].word}" for keys in groups for pair in keys if pair[0].rare)
        rare: list[Row] = [[("  ", ""), (part, "dim")] for part in wrapped(f"also   {also}", width - 4)]
        head: Row = [("  everywhere", "strong"), ("   a count before repeats: 10n", "dim")]
        if width < _TWICE:
            return [*told, [], *own, [], head, *general, [], *rare]
        lines = zip_longest([[], *own], [head, *general], fillvalue=list[Cell]())
        return [*told, *([*padded_row(left, half), *right] for left, right in lines), [], *rare]

    def _keys(self) -> tuple[list[tuple[Key, Key | None]], ...]:
        """Return the keys of the pane, and those that hold everywhere, each with its way back."""
        keymap, kind = self.host.keymap, "" if self._asked is None else self._asked.kind
        own = [key for key in keymap if kind and kind in key.panes]
        taken = {name for key in own for name in key.keys}
        return paired(own), paired([key for key in keymap if not key.panes and not taken.issuperset(key.keys)])

    def _names(self, pair: tuple[Key, Key | None]) -> str:
        """Return the keys of a command, and of the way back."""
        names = [written_keys(one, ascii=self.look.ascii) for one in pair if one is not None]
        return "  ".join(names[0] if len(names) == 1 else [name for each in names for name in each[:1]])

    def _key_rows(self, pair: tuple[Key, Key | None], width: int) -> Iterator[Row]:
        key = pair[0]
        for place, part in enumerate(wrapped(key.help, width - _KEYS - 3)):
            told = in_ascii(part) if self.look.ascii else part
            yield [("  ", ""), (padded("" if place else self._names(pair), _KEYS), "key"), (told, "")]

    def heading(self, width: int) -> list[Row]:
        """Return which lines are seen."""
        count, room = self.count(width), self.size.height - 1
        place = f"lines {self.top + 1} to {min(self.top + room, count)} of {count}   " if count > room else ""
        self.note = f"{place}: help WORD explains a command   Esc closes "
        return super().heading(width)


def paired(keys: Sequence[Key]) -> list[tuple[Key, Key | None]]:
    """Return keys with those of the way back."""
    by_name = {key.shown: key for key in keys}
    backs = {PAIRS[key.shown] for key in keys if PAIRS.get(key.shown) in by_name}
    return [(key, by_name.get(PAIRS.get(key.shown, ""))) for key in keys if key.shown not in backs]


class HelpScreen(DebugScreen):
    """The keys and signs of the pane that had the focus."""

    view_name = "help"

    def body(self) -> ComposeResult:
        """The one pane."""
        yield KeyHelp(self.host, id="help")
