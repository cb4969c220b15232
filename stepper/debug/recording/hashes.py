"""What tells contents apart: of a file, and of what a recording or a session holds. Needs no SQLite."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from stepper.errors import SessionError

_CHUNK: Final = 2**20


def content_hash(content: bytes) -> bytes:
    """What tells contents apart, and whether one was damaged."""
    return hashlib.blake2b(content, digest_size=16).digest()


def file_hashes(model: Path) -> dict[str, str | None]:
    """BLAKE2b of the .xml and the .bin; None for one that is not there."""
    found: dict[str, str | None] = {}
    for kind in ("xml", "bin"):
        path = model.with_suffix(f".{kind}")
        found[kind] = _file_hash(path) if path.is_file() else None
    return found


def _file_hash(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=32)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise SessionError(f"{path}: cannot be read: {error.strerror}") from None
    return digest.hexdigest()
