"""Drawn figures by what they were made from, kept between builds."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from stepper.errors import OutputError
from stepper.files.kinds import FileKind
from stepper.files.output import OutputFile

_GIT: Final = ".gitignore"
_IGNORED: Final = FileKind("what git passes over", ())
_KEPT: Final = 30 * 24 * 3600
"""Seconds for which a figure that no build asks for is kept."""


class FigureCache:
    """A folder of figures. Several processes may fill it: a file is there whole, or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the file of a name, which `make` writes in one go where there is none.

        Raise OutputError where the folder cannot be written, and what `make` raises.
        """
        kept = self.folder / name
        with contextlib.suppress(OSError):
            os.utime(kept)
            return kept
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._forget()
        except OSError as error:
            raise OutputError(f"{self.folder}: figures cannot be kept there: {error.strerror}") from None
        ignored = self.folder / _GIT
        if not ignored.exists():
            OutputFile(ignored, _IGNORED).write(b"*\n")
        make(kept)
        return kept

    def _forget(self) -> None:
        """Remove what was not asked for since long; what other processes are about to write is younger."""
        before = time.time() - _KEPT
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before and path.name != _GIT:
                    path.unlink()
