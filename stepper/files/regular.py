"""Files that are read where a pipe or a device, which would be waited for, may stand in their place."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def ensure_no_pipe(path: str | Path) -> None:
    """Raise OSError for a pipe, a socket or a device. Nothing for a file, a folder and what is not there."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # who opens it says why
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
