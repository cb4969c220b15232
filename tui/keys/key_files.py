"""Keys of the user's own: a preset or a TOML file. What is wrong in it is an error, what is in conflict is told.

preset = "vim"                      # default, vscode, vim, emacs
[keys]                              # everywhere
"Ctrl+N" = "next {n}"
"x" = ""                            # takes the key away
[keys.graph]                        # in one pane; its own keys go before those that hold everywhere
"Ctrl+X Ctrl+G" = "zoom in"         # several keys one after another
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace
from textual.keys import Keys as KnownKeys
from textual.keys import _character_to_key as name_of_character

from stepper.errors import UsageError
from stepper.files.configuration import config_folder
from stepper.files.toml import read_toml
from stepper.records import Record
from tui.actions.registry import actions
from tui.keys.key_presets import PRESETS, Bindings
from tui.keys.keymap import Keymap, keys_of
from tui.keys.keys import KEYS, NAMES, Key, shown

_HELD: Final = ("ctrl", "shift", "alt")
_SAME: Final = {"ctrl+i": "Tab", "ctrl+m": "Enter", "ctrl+h": "Backspace", "ctrl+left_square_bracket": "Esc"}
"""Keys for which terminals send another one."""
_SPELLED: Final = {name.lower(): key for key, name in NAMES.items() if not key.startswith("ctrl+")} | {
    "escape": "escape", "return": "enter", "page up": "pageup", "page down": "pagedown", "del": "delete",
}  # fmt: skip
_KNOWN: Final = frozenset(str(key.value) for key in KnownKeys) | frozenset(NAMES)
PANES: Final = tuple(sorted({pane for key in KEYS for pane in key.panes}))


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
    from stepper.commands.session import command_called  # few have keys of their own

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
    """Keys one after another of which the first does something alone."""
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
