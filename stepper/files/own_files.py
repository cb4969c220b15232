"""Files that this user's stepper wrote, as notes in the user's cache say; what lies in the cache may be deleted.

A folder of a stranger may hold a file with any name. If the cache cannot be written, no file is our own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from stepper.errors import OutputError
from stepper.files.file_kinds import FileKind
from stepper.files.output import OutputFile


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


_KIND = FileKind("a note", ("",))
_FOLDER = "own"
_ROOM_BYTES = 2**20


def note_own(*paths: Path) -> None:
    """Note that these files, which belong together, were written here."""
    with contextlib.suppress(OSError, OutputError):
        if (folder := roomy(user_cache() / _FOLDER, _ROOM_BYTES)) is not None:
            OutputFile(folder / _name(paths[0]), _KIND).write(_stamp(paths).encode())


def is_own(*paths: Path) -> bool:
    """Return True if these files were written here, and have not changed since."""
    try:
        return (user_cache() / _FOLDER / _name(paths[0])).read_text(encoding="ascii") == _stamp(paths)
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def replacing_own(target: OutputFile) -> Iterator[IO[bytes]]:
    """Yield the file of a target, as `writing` does. Raise OutputError where it would replace a file not our own."""
    target.check()
    if target.path.is_file() and not is_own(target.path):
        raise OutputError(f"{target}: that file is not one that this command wrote; choose another name")
    with target.writing() as file:
        yield file
    note_own(target.path)


def _name(path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


def _stamp(paths: tuple[Path, ...]) -> str:
    found = [path.stat() for path in paths]
    return " ".join(f"{one.st_size} {one.st_mtime_ns}" for one in found)
