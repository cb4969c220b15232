"""Other sets of keys: by preset, which key does what instead. As in a file of keys: [keys] holds everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Bindings = Mapping[str, str]
"""Keys as one writes them, and the command of each; an empty one takes the key away."""

PRESETS: Final[Mapping[str, Bindings]] = {
    "default": {},
    "vscode": {
        "F10": "next {n}",
        "F11": "step {n}",
        "Shift+F11": "finish",
        "F5": "continue {n}",
        "Shift+F5": "quit",
        "F9": "toggle-break",
        "F8": "to-anomaly",
        "Shift+F8": "reverse-to-anomaly",
        "F12": "why {op}",
        "Shift+F12": "uses {op}",
        "Ctrl+F": "prompt search ",
        "F3": "search-next",
        "Shift+F3": "search-previous",
        "Ctrl+G": "prompt goto ",
        "F1": "palette",
    },
    "vim": {
        "j": "next {n}",
        "k": "reverse-next {n}",
        "l": "iter +{n}",
        "h": "iter -{n}",
        "g": "",
        "g g": "edge first",
        "n": "search-next",
        "N": "search-previous",
        "Ctrl+D": "scroll page",
        "Ctrl+F": "scroll page",
        "Ctrl+U": "scroll -page",
        "Ctrl+B": "scroll -page",
        "Ctrl+W w": "focus next",
        "Ctrl+W W": "focus previous",
        "Ctrl+W o": "zoom-pane",
        "Z Z": "quit",
    },
    "emacs": {
        "Ctrl+N": "next {n}",
        "Ctrl+P": "reverse-next {n}",
        "Ctrl+F": "iter +{n}",
        "Ctrl+B": "iter -{n}",
        "Ctrl+V": "scroll page",
        "Alt+v": "scroll -page",
        "Alt+<": "edge first",
        "Alt+>": "edge last",
        "Ctrl+S": "prompt search ",
        "Ctrl+R": "search-previous",
        "Ctrl+G": "pause",
        "Alt+x": "palette",
        "Ctrl+X Space": "toggle-break",
        "Ctrl+X o": "focus next",
        "Ctrl+X 1": "zoom-pane",
        "Ctrl+X Ctrl+S": "save-session",
        "Ctrl+X Ctrl+R": "rerun",
        "Ctrl+X Ctrl+E": "export",
        "Ctrl+X Ctrl+C": "quit",
    },
}
