"""The user's cache folder: what lies there may be deleted at any time, and is then made anew."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any


def user_cache() -> Path:
    """Return the folder, which need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "stepper"


def roomy(folder: Path, most: int) -> Path | None:
    """Return a folder that exists, and in which files take so many bytes at most: the oldest are deleted.

    None where it cannot be made or read.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = sorted(_files(folder), key=lambda found: found[1].st_mtime, reverse=True)
    except OSError:
        return None
    size = 0
    for path, facts in files:
        size += facts.st_size
        if size > most:
            with contextlib.suppress(OSError):
                Path(path).unlink()
    return folder


def _files(folder: Path) -> list[tuple[str, Any]]:
    with os.scandir(folder) as entries:
        return [(entry.path, entry.stat()) for entry in entries if entry.is_file(follow_symlinks=False)]
