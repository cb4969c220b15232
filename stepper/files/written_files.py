"""Files that commands of a debugger wrote, by name and content, so that they replace no other file of the user."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from stepper.errors import OutputError
from stepper.files.kinds import FileKind
from stepper.files.output import OutputFile
from stepper.files.user_cache import roomy, user_cache

_KIND: Final = FileKind("a digest", ("",))
_FOLDER: Final = "written"
_ROOM_BYTES: Final = 2**16


@contextlib.contextmanager
def replacing_own(target: OutputFile) -> Iterator[IO[bytes]]:
    """Yield the file of a target, as `writing` does. It replaces only what this wrote and nobody has changed since.

    Raise OutputError for another file. Where the user's cache cannot be written, all files are others.
    """
    target.check()
    record = user_cache() / _FOLDER / _name(target.path)
    if target.path.is_file() and _read(record) != _digest(target.path):
        raise OutputError(f"{target}: that file is not one that this command wrote; choose another name")
    with target.writing() as file:
        yield file
    with contextlib.suppress(OSError, OutputError):
        if roomy(record.parent, _ROOM_BYTES) is not None:
            OutputFile(record, _KIND).write(_digest(target.path).encode())


def _read(record: Path) -> str:
    try:
        return record.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _name(path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


def _digest(path: Path) -> str:
    if not path.is_file():  # a device keeps nothing
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
