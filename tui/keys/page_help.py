"""The keys of one page as lines: `help table`."""

from __future__ import annotations

from collections.abc import Iterator

from stepper.commands.session_commands import two_columns
from tui.keys.keymap import Keymap, footer_keys, names_of
from tui.keys.keys import Key


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
        lines += two_columns([(names_of(key, ascii=ascii), key.help) for key in keys], width)
    return lines
