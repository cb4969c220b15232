"""The user's own files: in the configuration folder, and nowhere else; a model's folder is not trusted."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """Return the folder `stepper` in that of XDG_CONFIG_HOME, else in ~/.config."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "stepper"


def init_file() -> Path:
    """Return the commands with which `stepper debug` begins."""
    return config_folder() / "init"
