"""The user's folders, and TOML files that a user names; nothing of a user is read from a model's folder.

They are those of the XDG specification on every system. `platformdirs` would have others on macOS and Windows, where
the sessions and keys of today are then not found.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stepper.errors import UsageError
from stepper.wording import reason_of


def config_folder() -> Path:
    """Return the folder `stepper` in XDG_CONFIG_HOME, else in ~/.config."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "stepper"


def sessions_folder() -> Path:
    """Return the folder of per-model sessions, in XDG_STATE_HOME, else in ~/.local/state."""
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "stepper" / "sessions"


def init_file() -> Path:
    """Return the commands with which `stepper debug` begins."""
    return config_folder() / "init"


LARGEST = 1_000_000
"""Bytes; no file that a person writes is larger."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file. Raise UsageError, with the place, where it cannot be read or is none."""
    import tomllib  # most runs have no such file

    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path}: is larger than {LARGEST:,} bytes")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(path, error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
