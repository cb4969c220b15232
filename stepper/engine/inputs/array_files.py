"""Arrays in .npy and .npz files. A .npy is mapped, the array of an .npz is read; a ReadProgress sees each piece.

read_array(Path("h0.npy"))
read_member(Path("all.npz"), "h0", ReadProgress())        # another thread asks how far it is, and may stop it
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct

from stepper.errors import InputError, StepperError, UsageError
from stepper.files.kinds import ensure_no_pipe
from stepper.wording import near_text, reason_of, size_text

if TYPE_CHECKING:
    from stepper.element_types import Array

T = TypeVar("T")
MOST_READ: Final = 2**30
"""Bytes of an array that a ReadProgress reads into memory; a .npy of the input's own type is mapped, however large."""


class ReadingStopped(UsageError):
    """Reading was stopped: the array is not wanted any more."""


class ReadProgress(Struct):
    """Progress of reading an array: bytes of how many (0: not known), and if it is to stop. `check` is asked about its
    shape before any of it is read, and raises a StepperError where it will not do."""

    check: Callable[[tuple[int, ...]], None] = lambda _shape: None
    done: int = 0
    total: int = 0
    stopped: bool = False

    def begin(self, shape: tuple[int, ...], size: int) -> None:
        """The header is known: `size` bytes will be read. InputError for more than may be."""
        self.check(shape)
        if size > MOST_READ:
            sizes = f"{size_text(size)}, more than the {size_text(MOST_READ)} that are read"
            raise InputError(f"takes {sizes}; a .npy of the input's own type is mapped and may be larger")
        self.done, self.total = 0, size
        self.heed(0)

    def heed(self, more: int) -> None:
        """So many bytes more have been read. ReadingStopped where that is to end."""
        self.done += more
        if self.stopped:
            raise ReadingStopped("stopped")

    @property
    def part(self) -> float | None:
        """The part that has been read, from 0 to 1; None where it is not known."""
        return min(self.done / self.total, 1.0) if self.total else None


class _Heeded:
    """A file to read from that tells a ReadProgress of each piece."""

    def __init__(self, file: IO[bytes], reading: ReadProgress) -> None:
        self._file, self._reading = file, reading

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._file.read(size)
        self._reading.heed(len(data))
        return data


def read_array(path: Path, reading: ReadProgress | None = None) -> Array:
    """Return the array of a .npy. InputError for a file that is none."""
    # Mapped, not read: a header that promises more than the file has is refused at once.
    array = np.asarray(_loaded(path, ".npy", lambda: np.lib.format.open_memmap(path, mode="r")))
    if reading is not None:
        reading.begin(array.shape, 0)
    return array


def read_archive(path: Path, *, most: int | None = None) -> dict[str, Array]:
    """Return all arrays of an .npz. InputError for a file that is none, or whose arrays take more than `most` bytes."""

    def arrays(archive: zipfile.ZipFile) -> dict[str, Array]:
        size = 0 if most is None else sum(member.file_size for member in archive.infolist())
        if most is not None and size > most:
            raise InputError(f"{path}: takes {size_text(size)}, more than the {size_text(most)} that are read")
        return {key: _array(archive, name) for key, name in _names(archive).items()}

    return _loaded(path, ".npz", lambda: _members(path, arrays))


def archive_keys(path: Path) -> list[str]:
    """Return the keys of an .npz; nothing else is read. InputError for a file that is none."""
    return _loaded(path, ".npz", lambda: _members(path, lambda archive: list(_names(archive))))


def archive_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of an .npz by key; their numbers are not read. InputError for what is none."""

    def shapes(archive: zipfile.ZipFile) -> dict[str, tuple[int, ...]]:
        found = {}
        for key, name in _names(archive).items():
            with archive.open(name) as file:
                found[key] = header_of(file)[0]
        return found

    return _loaded(path, ".npz", lambda: _members(path, shapes))


def read_member(path: Path, key: str, reading: ReadProgress | None = None) -> Array:
    """Return one array of an .npz; the others are not read. UsageError for an unknown key, else InputError."""

    def chosen(archive: zipfile.ZipFile) -> Array | list[str]:
        names = _names(archive)
        if key not in names:
            return list(names)
        name = names[key]
        return _array(archive, name) if reading is None else np.asarray(_in_pieces(archive, name, reading))

    found = _loaded(path, ".npz", lambda: _members(path, chosen))
    if isinstance(found, list):
        near = near_text(key, found)
        raise UsageError(
            f"{path} has no array '{key}'{f'; {near}' if near else ''}; it has {', '.join(found) or 'none'}"
        )
    return found


def _in_pieces(archive: zipfile.ZipFile, name: str, reading: ReadProgress) -> Array:
    with archive.open(name) as file:
        shape, dtype = header_of(file)
        reading.begin(shape, math.prod(shape) * dtype.itemsize)
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(_Heeded(file, reading), allow_pickle=False))


def header_of(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of the array that begins there. ValueError for objects, and what is not a header."""
    # Later versions have headers of up to 4 GB; a tensor needs none of these.
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("a header of another version")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("objects are never read")
    return shape, dtype


def _members(path: Path, use: Callable[[zipfile.ZipFile], T]) -> T:
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile:
            raise ValueError("it is not an archive of arrays") from None
        with archive:
            return use(archive)


def _names(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the names of the members by the keys of the arrays, as numpy has them."""
    return {name.removesuffix(".npy"): name for name in archive.namelist()}


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _loaded(path: Path, kind: str, load: Callable[[], T]) -> T:
    """InputError for whatever numpy, zipfile and the parsers below them raise for a file that is damaged or forged."""
    try:
        ensure_no_pipe(path)
        return load()
    except StepperError:
        raise
    except Exception as error:
        reason = reason_of(path, error) if isinstance(error, OSError) else None
        lines = (reason or str(error) or type(error).__name__).splitlines()
        wanted = "" if isinstance(error, FileNotFoundError) else f" as {kind}"
        raise InputError(f"{path}: cannot be read{wanted}: {lines[0][:200]}") from None
