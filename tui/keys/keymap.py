"""Which key does what in which pane: look-ups in a table of keys, and the dispatcher that puts keys together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from textual import events

from stepper.records import Record
from tui.keys.keys import (
    FOLLOWING,
    FOOTERS,
    KEYS,
    LOOKS,
    OVERVIEW,
    OVERVIEW_SITUATIONS,
    PAIRS,
    RUNNING,
    SITUATIONS,
    STAYING,
    TYPING,
    Key,
    shown,
)
from tui.paint.rows import cell_len
from tui.theme import key_text

Keymap = tuple[Key, ...]
"""Keys as in keys.KEYS, perhaps with others in their place (key_files)."""
Shown = tuple[str, str]
"""A key, maybe with the one of the way back, and the word for it."""


def keys_of(pane: str, keymap: Sequence[Key] = KEYS) -> Iterator[Key]:
    """Yield the keys that hold in a pane, its own before those that hold everywhere."""
    yield from (key for key in keymap if pane in key.panes)
    yield from (key for key in keymap if not key.panes)


class Situation(Record):
    """Facts that the last line follows beside the focused pane.

    `run` is how it stands: start, stop, ended, running, or empty (on the overview how its own run stands: making,
    paused); `following` the pane to which Tab leads, `is_alone`: to none, and to no card either. `idle` are commands
    that do nothing for what is selected.
    """

    run: str = ""
    following: str = ""
    is_alone: bool = False
    idle: tuple[str, ...] = ()


NO_SITUATION: Final = Situation()
_TAB_AT: Final = 3
"""Where the last line says to which pane Tab leads: behind so many keys of the pane."""
_NARROW: Final = 90
"""Cells below which the last line is narrow."""


def footer(
    pane: str,
    keymap: Sequence[Key] = KEYS,
    room: int | None = None,
    situation: Situation = NO_SITUATION,
    *,
    ascii: bool = False,
) -> list[Shown]:
    """Return the contents of the last line: keys and words; of them what has so much room, with `gap_of` between.

    Those of STAYING are at its end, whatever the room: the ones before them go first, and help never does. `ascii`:
    arrows are named in words.
    """

    def spelled(found: Iterable[Shown | None]) -> list[Shown]:
        return [(key_text(one[0], ascii=ascii), one[1]) for one in found if one is not None]

    if pane in TYPING:
        return _fitting([], spelled(TYPING[pane]), room)
    commands = list(_commands(pane, situation.run))
    if situation.following and situation.run != "running" and "focus next" not in commands:
        commands.insert(_TAB_AT, "focus next")
    if "look next" in situation.idle and pane in LOOKS:  # the scale is the other thing that can be chosen there
        commands = ["look previous" if command == "look next" else command for command in commands]
    commands = [command for command in commands if command not in situation.idle]
    if situation.is_alone:
        commands = [command for command in commands if command != "focus next"]
    shown = (_named(command, pane, keymap, situation) for command in commands if command not in STAYING)
    last = (_named(command, pane, keymap, situation) for command in commands if command in STAYING)
    return _fitting(spelled(shown), spelled(last), room)


def footer_keys(pane: str, keymap: Sequence[Key] = KEYS) -> list[Key]:
    """Return the keys that the last line can name in a pane, in its order."""
    found = (key_for(command, pane, keymap) for command in FOOTERS.get(pane, ()))
    return [key for key in found if key is not None]


def _commands(pane: str, run: str) -> Sequence[str]:
    if run == "running":
        return RUNNING
    if pane in FOLLOWING and run in SITUATIONS:
        return SITUATIONS[run]
    if pane in OVERVIEW and run in OVERVIEW_SITUATIONS:
        return OVERVIEW_SITUATIONS[run]
    return FOOTERS.get(pane, FOOTERS[""])


def gap_of(room: int | None) -> int:
    """Return the blanks between two keys of the last line: fewer on a narrow screen, so that more of them are there."""
    return 2 if room is not None and room < _NARROW else 3


def _fitting(found: list[Shown], staying: list[Shown], room: int | None) -> list[Shown]:
    gap = gap_of(room)

    def width() -> int:
        return sum(cell_len(key) + 1 + cell_len(word) + gap for key, word in [*found, *staying]) - gap

    while room is not None and width() > room and (found or len(staying) > 1):
        (found or staying).pop(-1 if found else 0)
    return [*found, *staying]


def _named(command: str, pane: str, keymap: Sequence[Key], situation: Situation) -> Shown | None:
    """Return the key of a command, with the one of the way back, and the word for it."""
    key = key_for(command, pane, keymap)
    if key is None:
        return None
    if command == "focus next" and situation.following:
        return key.shown, situation.following
    back = PAIRS.get(key.shown)
    is_pair = back is not None and any(other.panes == key.panes and other.shown == back for other in keymap)
    return (f"{key.shown} {back}" if is_pair else key.shown), key.word


def key_for(command: str, pane: str = "", keymap: Sequence[Key] = KEYS) -> Key | None:
    """Return the key that is named for a command in a pane: a letter that holds everywhere, else the pane's own."""
    known = [key for key in keys_of(pane, keymap) if key.command.startswith(command) and key.plain == command]
    own = {name for key in keymap if pane and pane in key.panes for name in key.keys} if known else ()
    general = (key for key in known if not key.panes and len(key.shown) == 1 and key.keys[0] not in own)
    return next(general, next(iter(known), None))


def names_of(key: Key, *, ascii: bool = False) -> str:
    """Return all keys of one command, as they are written; not those of which a terminal makes another name."""
    return "  ".join(key_text(shown(name), ascii=ascii) for name in key.keys if name not in _OTHER_NAMES)


_OTHER_NAMES = {f"f{number}" for number in range(13, 25)}
"""Keys that terminals send for Shift and an F-key."""


class Dispatcher:
    """Puts keys together: a count, a key or several one after another, and where it wants one a letter."""

    def __init__(self, keymap: Sequence[Key] = KEYS) -> None:
        self.keymap = keymap
        self._count = ""
        self._begun: tuple[str, ...] = ()
        self._waits_for: Key | None = None

    @property
    def pending(self) -> str:
        """Keys that were typed and wait for more."""
        begun = shown(" ".join(self._begun)) if self._begun else ""
        return self._count + begun + ("" if self._waits_for is None else self._waits_for.shown)

    @property
    def takes_letter(self) -> bool:
        """True if a key was pressed that wants a letter behind it."""
        return self._waits_for is not None

    def forget(self) -> None:
        """Begin anew."""
        self._count, self._begun, self._waits_for = "", (), None

    def feed(self, event: events.Key, pane: str) -> str | None:
        """A key was pressed: the command with all but {op} filled in; empty where more is to come, None for no key."""
        if self._waits_for is not None:
            command = self._waits_for.command
            self.forget()
            letter = event.character or ""
            return command.replace("{letter}", letter) if letter.isalnum() else ""
        if self._is_count(event):
            self._count += event.character or ""
            return ""
        typed = " ".join((*self._begun, event.key))
        keys = list(keys_of(pane, self.keymap))
        key = next((key for key in keys if typed in key.keys), None)
        if key is None:
            return self._unfinished(typed, keys)
        if key.takes_letter:
            self._waits_for = key
            return ""
        count = self._count
        self.forget()
        return _filled(key.command, count)

    def _is_count(self, event: events.Key) -> bool:
        digit = event.character or ""
        is_digit = len(digit) == 1 and digit in "0123456789" and not self._begun
        return is_digit and bool(self._count or digit != "0") and len(self._count) < 9

    def _unfinished(self, typed: str, keys: Iterable[Key]) -> str | None:
        """More of it is to come, or it is not a key."""
        if any(name.startswith(f"{typed} ") for key in keys for name in key.keys):
            self._begun = tuple(typed.split(" "))
            return ""
        had = bool(self.pending)
        self.forget()
        return "" if had else None


def _filled(command: str, count: str) -> str:
    """With the count in it; without one, `next` rather than `next 1`."""
    filled = command.replace("{n}", count or "1")
    if filled.endswith(" 1") and "{n}" in command and "+" not in filled and "-1" not in filled:
        return filled[:-2]
    return filled
