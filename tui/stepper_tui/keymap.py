"""Look-ups in the table of keys, the dispatcher that puts keys together, and files of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace
from textual import events
from textual.keys import Keys as KnownKeys
from textual.keys import _character_to_key as name_of_character

from stepper.errors import UsageError
from stepper.files.configuration import config_folder, read_toml
from stepper.records import Record
from stepper_tui.keys import (
    FOOTERS,
    KEYS,
    NAMES,
    PAIRS,
    PRESETS,
    RUNNING,
    STAYING,
    TYPING,
    Bindings,
    Key,
    Keymap,
    shown,
)
from stepper_tui.paint.rows import cell_len
from stepper_tui.registry import actions
from stepper_tui.theme import key_text

Shown = tuple[str, str]
"""A key, maybe with the one of the way back, and the word for it."""


def keys_of(pane: str, keymap: Sequence[Key] = KEYS) -> Iterator[Key]:
    """Yield the keys that hold in a pane, its own before those that hold everywhere."""
    yield from (key for key in keymap if pane in key.panes)
    yield from (key for key in keymap if not key.panes)


class Situation(Record):
    """Facts that the last line follows beside the focused pane: a movement is under way; where Tab leads."""

    is_running: bool = False
    following: str = ""


NO_SITUATION = Situation()
_TAB_AT = 3
"""Where the last line says to which pane Tab leads: behind so many keys of the pane."""
_NARROW = 90
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
    commands = list(RUNNING if situation.is_running else FOOTERS.get(pane, FOOTERS[""]))
    if situation.following and not situation.is_running and "focus next" not in commands:
        commands.insert(_TAB_AT, "focus next")
    shown = (_named(command, pane, keymap, situation) for command in commands if command not in STAYING)
    last = (_named(command, pane, keymap, situation) for command in commands if command in STAYING)
    return _fitting(spelled(shown), spelled(last), room)


def footer_keys(pane: str, keymap: Sequence[Key] = KEYS) -> list[Key]:
    """Return the keys that the last line can name in a pane, in its order."""
    found = (key_for(command, pane, keymap) for command in FOOTERS.get(pane, ()))
    return [key for key in found if key is not None]


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
    word = "pause" if situation.is_running and command == "pause" else key.word
    return (f"{key.shown} {back}" if is_pair else key.shown), word


def key_for(command: str, pane: str = "", keymap: Sequence[Key] = KEYS) -> Key | None:
    """Return the key that is named for a command in a pane: a letter that holds everywhere, else the pane's own."""
    known = [key for key in keys_of(pane, keymap) if key.command.startswith(command) and key.plain == command]
    own = {name for key in keymap if pane and pane in key.panes for name in key.keys} if known else ()
    general = (key for key in known if not key.panes and len(key.shown) == 1 and key.keys[0] not in own)
    return next(general, next(iter(known), None))


def written_keys(key: Key, *, ascii: bool = False) -> list[str]:
    """Return all keys of one command, as they are written, without keys that a terminal renames."""
    return [key_text(shown(name), ascii=ascii) for name in key.keys if name not in _OTHER_NAMES]


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


_HELD = ("ctrl", "shift", "alt")
_SAME = {"ctrl+i": "Tab", "ctrl+m": "Enter", "ctrl+h": "Backspace", "ctrl+left_square_bracket": "Esc"}
"""Keys for which terminals send another one."""
_SPELLED = {name.lower(): key for key, name in NAMES.items() if not key.startswith("ctrl+")} | {
    "escape": "escape", "return": "enter", "page up": "pageup", "page down": "pagedown", "del": "delete",
}  # fmt: skip
_KNOWN = frozenset(str(key.value) for key in KnownKeys) | frozenset(NAMES)
PANES = tuple(sorted({pane for key in KEYS for pane in key.panes}))


class ChosenKeys(Record):
    """Keys, and sentences on what is in conflict among them."""

    keymap: Keymap
    conflicts: tuple[str, ...] = ()


def default_file() -> Path:
    """Return where a user's own keys are: stepper/keys.toml in the configuration folder."""
    return config_folder() / "keys.toml"


def chosen_keys(said: str | None = None) -> ChosenKeys:
    """Return the keys of a preset, or of a file; by default of default_file() if there is one. UsageError."""
    if said is None:
        path = default_file()
        return read_keys(path) if path.is_file() else ChosenKeys(KEYS)
    if said in PRESETS:
        return ChosenKeys(_with(KEYS, PRESETS[said], (), f"preset {said}"))
    if not Path(said).is_file() and Path(said).suffix != ".toml":
        raise UsageError(f"there are no keys called '{said}'; presets are {', '.join(PRESETS)}, or name a .toml file")
    return read_keys(Path(said))


def read_keys(path: Path) -> ChosenKeys:
    """Return the keys of a file. UsageError, with the place, for what is wrong in it."""
    content = read_toml(path)
    preset = content.pop("preset", "default")
    if preset not in PRESETS:
        raise UsageError(f"{path}: there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    tables = content.pop("keys", {})
    if content or not isinstance(tables, dict):
        raise UsageError(f"{path}: preset and [keys] are expected, not {', '.join(map(repr, content)) or 'keys = ...'}")
    keymap = _with(KEYS, PRESETS[preset], (), f"preset {preset}")
    general = {key: command for key, command in tables.items() if not isinstance(command, dict)}
    conflicts = _spelled_twice(general, f"{path}, [keys]")
    keymap = _with(keymap, general, (), f"{path}, [keys]")
    for pane, bindings in tables.items():
        if isinstance(bindings, dict):
            if pane not in PANES:
                raise UsageError(f"{path}: there is no pane '{pane}' with keys; there are {', '.join(PANES)}")
            conflicts += _spelled_twice(bindings, f"{path}, [keys.{pane}]")
            keymap = _with(keymap, bindings, (pane,), f"{path}, [keys.{pane}]")
    return ChosenKeys(keymap, (*conflicts, *_hidden(keymap, general), *_unreachable(keymap), *_without_key(keymap)))


# --- putting keys in place of others --------------------------------------------------------------------------------


def _with(keymap: Keymap, bindings: Bindings, panes: tuple[str, ...], where: str) -> Keymap:
    """Return the keymap with these keys, each first among those of its command."""
    found = list(keymap)
    for spelled, command in bindings.items():
        names = key_names(spelled, where)
        if not isinstance(command, str):
            raise UsageError(f"{where}: '{spelled}': a command in quotes is expected")
        found = [_less(key, names, panes) for key in found]
        if command.strip():
            found = _more(found, names, command, panes, f"{where}: '{spelled}'")
    return tuple(key for key in found if key.keys)


def _less(key: Key, names: tuple[str, ...], panes: tuple[str, ...]) -> Key:
    """Without these names where it holds in the same panes. One of several panes keeps them for the others."""
    if key.panes != panes and not (panes and set(panes) & set(key.panes)):
        return key
    others = tuple(pane for pane in key.panes if pane not in panes)
    if panes and others and set(names) & set(key.keys):
        return replace(key, panes=others)
    return replace(key, keys=tuple(name for name in key.keys if name not in names))


def _more(keys: list[Key], names: tuple[str, ...], command: str, panes: tuple[str, ...], where: str) -> list[Key]:
    known = next((key for key in keys if key.command.strip() == command.strip() and key.panes == panes), None)
    if known is not None:
        more = replace(known, keys=(*names, *(name for name in known.keys if name not in names)))
        return [more if key is known else key for key in keys]
    like = next((key for key in (*keys, *KEYS) if key.command.strip() == command.strip()), None)
    if like is not None:
        return [*keys, replace(like, keys=names, panes=panes)]
    return [*keys, Key(names, command, command.split()[0], _help_of(command, where), panes)]


def _help_of(command: str, where: str) -> str:
    """Return the help of a command. UsageError for one that there is not."""
    from stepper.commands.command_session import command_called  # few have keys of their own

    word = command.split()[0]
    if word in actions():
        return actions()[word].help
    try:
        return command_called(word).help
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def key_names(spelled: str, where: str) -> tuple[str, ...]:
    """Return a key, or several one after another, as Textual calls them, with their other names. UsageError."""
    parts = [_key_name(part, spelled, where) for part in spelled.split()]
    if not parts:
        raise UsageError(f"{where}: a key is missing before '='")
    name = " ".join(parts)
    match = name.removeprefix("shift+f")
    if match != name and match.isdecimal() and int(match) <= 12:
        return name, f"f{int(match) + 12}"
    return (name,)


def _key_name(part: str, spelled: str, where: str) -> str:
    *held, last = part.split("+") if not part.endswith("+") else [*part[:-1].rstrip("+").split("+"), "+"]
    held = [word.lower() for word in held if word]
    name = _SPELLED.get(last.lower(), last if len(last) == 1 else last.lower())
    if len(name) == 1:
        name = name_of_character(name.lower() if "ctrl" in held else name)
    whole = "+".join((*held, name))
    if whole in _SAME:
        raise UsageError(f"{where}: '{spelled}': a terminal sends the same for it as for {_SAME[whole]}")
    if any(word not in _HELD for word in held) or not (len(last) == 1 or name in _KNOWN or whole in _KNOWN):
        raise UsageError(f"{where}: there is no key '{spelled}'; write n, N, Ctrl+N, F5, Space, PgDn, [ or such")
    if not held and name.isdecimal() and len(spelled.split()) == 1:
        raise UsageError(f"{where}: '{spelled}': digits are counts, as in 10n")
    return whole


# --- conflicts ------------------------------------------------------------------------------------------------------


def _spelled_twice(bindings: Bindings, where: str) -> list[str]:
    seen: dict[str, str] = {}
    found = []
    for spelled, command in bindings.items():
        name = key_names(spelled, where)[0]
        if name in seen and bindings[seen[name]] != command:
            found.append(f"'{seen[name]}' and '{spelled}' are the same key; it does '{command}'")
        seen[name] = spelled
    return found


def _hidden(keymap: Keymap, bindings: Bindings) -> list[str]:
    """Keys of the user that hold everywhere, and yet do something else in a pane that has them for itself."""
    found = []
    for spelled, command in bindings.items():
        name = key_names(spelled, "")[0]
        panes = [f"{pane} ('{key.plain}')" for key in keymap if name in key.keys for pane in key.panes]
        if panes and command:
            found.append(f"'{spelled}' does '{command}' but in {', '.join(panes)}")
    return found


def _unreachable(keymap: Keymap) -> list[str]:
    """Keys one after another, if the first does something alone."""
    found = set()
    for pane in ("", *PANES):
        keys = list(keys_of(pane, keymap))
        single = {name for key in keys for name in key.keys}
        for name in single:
            parts = name.split(" ")
            begun = [" ".join(parts[:count]) for count in range(1, len(parts))]
            found |= {f"'{shown(name)}' is never reached: '{shown(begin)}' does something alone"
                      for begin in begun if begin in single}  # fmt: skip
    return sorted(found)


def _without_key(keymap: Keymap) -> list[str]:
    """Commands that had a key."""
    left = {key.plain for key in keymap}
    return [f"'{key.plain}' has no key any more" for key in KEYS if key.plain not in left]
