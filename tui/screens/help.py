"""The keys: those of the pane that had the focus first, then all; made from the same table that carries them out."""

from __future__ import annotations

from textual.app import ComposeResult

from stepper.debug.commands.registry import commands
from tui.actions import ACTIONS
from tui.keymap import Keymap, names_of
from tui.keys import KEYS, Key
from tui.panes.base import Pane
from tui.rows import Row
from tui.screens.base import DebugScreen


class KeyHelp(Pane):
    """A line a key, then the command words."""

    DEFAULT_CSS = "KeyHelp { height: 1fr; }"
    title = "keys"
    note = "q closes "
    kind = "card"

    def rows(self, width: int) -> list[Row]:
        """All lines; there are some hundred."""
        kind, text = self._asked()
        keymap: Keymap = getattr(self.app, "keymap", KEYS)
        own = [key for key in keymap if kind and kind in key.panes]
        rows: list[Row] = [[]]
        if text:
            rows += [[("  ", ""), (line, "")] for line in text.splitlines()]
            rows.append([])
        rows += [_key_row(key) for key in own]
        rows += [[], [("  everywhere", "strong"), ("   a count before a movement repeats it: 10n, 3]", "dim")]]
        rows += [_key_row(key) for key in keymap if not key.panes]
        rows += [[], [("  at the prompt", "strong")]]
        words = [(command.usage, command.help) for command in commands()]
        words += [(f"{action.name} {action.syntax}".strip(), action.help) for action in ACTIONS.values()]
        rows += [
            [("  ", ""), (f"{usage:<44} "[: max(45, len(usage) + 1)], "key"), (help, "dim")] for usage, help in words
        ]
        return rows

    def _asked(self) -> tuple[str, str]:
        asked = getattr(self.app, "asked_pane", None)
        return (asked.kind, asked.help_text) if isinstance(asked, Pane) else ("", "")


def _key_row(key: Key) -> Row:
    return [("  ", ""), (f"{names_of(key):<18}", "key"), (f"{key.help}  ", ""), (f"  {key.command}", "dim")]


class HelpScreen(DebugScreen):
    """All keys and words."""

    view_name = "help"

    def body(self) -> ComposeResult:
        """The one pane."""
        yield KeyHelp(id="help")
