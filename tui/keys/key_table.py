"""The table of keys as text and as data, made from the keys themselves: `stepper help keys`."""

from __future__ import annotations

import sys

from stepper.plain_values import answer_json, json_text
from stepper.terminal import say
from tui.keys.key_files import PANES, chosen_keys
from tui.keys.keymap import Keymap, names_of
from tui.keys.keys import Key, shown

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
    return f"  {names_of(key):<{_KEYS_WIDTH}}  {key.help:<{_HELP_WIDTH}}  {key.command}".rstrip()


def _data(key: Key) -> dict[str, object]:
    return {
        "keys": [shown(name) for name in key.keys],
        "command": key.command,
        "help": key.help,
        "panes": list(key.panes),
    }
