"""Hashes of files, and of the contents of recordings and sessions. Needs no SQLite."""

from __future__ import annotations

import hashlib
import zlib
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from stepper.errors import SessionError

_LARGE: Final = 2**24
_PACKED: Final = msgspec.msgpack.Encoder().encode


def content_hash(content: bytes) -> bytes:
    """Return the BLAKE2b hash, 16 bytes, by which contents are told apart and damage is found."""
    return hashlib.blake2b(content, digest_size=16).digest()


def quick_hash(content: bytes) -> bytes:
    """Return CRC-32, sum of 64-bit words and length of a content, 16 bytes: a quarter of the time of BLAKE2b.

    By it damage is found, but contents only where they are compared, too: others may have the same.
    """
    words = np.frombuffer(content, "<u8", len(content) // 8)
    total = int(np.add.reduce(words)) % 2**64
    return zlib.crc32(content).to_bytes(4, "little") + total.to_bytes(8, "little") + len(content).to_bytes(4, "little")


def is_hash_of(digest: object, content: bytes) -> bool:
    """True if this is one of both hashes of a content."""
    return digest == quick_hash(content) or digest == content_hash(content)


def with_checksum(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of a table with its checksum behind it. SQLite keeps a NaN as NULL, which is None here."""
    return *row, zlib.crc32(_PACKED(row))


def row_checksum(row: tuple[Any, ...]) -> int:
    """Return the CRC-32 of the columns of a row as MessagePack."""
    return zlib.crc32(_PACKED(row))


def file_hashes(model: Path) -> dict[str, str | None]:
    """Return the BLAKE2b hashes of the .xml and the .bin; None for one that is missing."""
    found: dict[str, str | None] = {}
    for kind in ("xml", "bin"):
        path = model.with_suffix(f".{kind}")
        found[kind] = _file_hash(path) if path.is_file() else None
    return found


def _file_hash(path: Path) -> str:
    try:
        known = path.stat()
        if known.st_size >= _LARGE:  # to read it again takes a while, and a session is saved again and again
            return _large_hash(path.absolute(), known.st_ino, known.st_size, known.st_mtime_ns)
        return _content_hash_of(path)
    except OSError as error:
        raise SessionError(f"{path}: cannot be read: {error.strerror}") from None


@lru_cache(maxsize=8)
def _large_hash(path: Path, _inode: int, _size: int, _changed: int) -> str:
    return _content_hash_of(path)


def _content_hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=32)).hexdigest()
