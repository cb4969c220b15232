"""The user's folders: for configuration and sessions; nothing of a user is read from a model's folder.

They are those of the XDG specification on every system. `platformdirs` would have others on macOS and Windows, where
the sessions and keys of today are then not found.
"""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """Return the folder `stepper` in that of XDG_CONFIG_HOME, else in ~/.config."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "stepper"


def sessions_folder() -> Path:
    """Return the folder of sessions that are kept by model, in that of XDG_STATE_HOME, else in ~/.local/state."""
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "stepper" / "sessions"


def init_file() -> Path:
    """Return the commands with which `stepper debug` begins."""
    return config_folder() / "init"
