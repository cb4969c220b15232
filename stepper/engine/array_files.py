"""Arrays in .npy and .npz files: a .npy is mapped, an array of an .npz is read when its numbers are asked for.

read_array(Path("h0.npy"))
read_archive(Path("all.npz"))["h0"].shape                 # its header alone is read
member_of(Path("all.npz"), "h0").read(ReadProgress())     # another thread asks how far it is, and may stop it
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
from msgspec import Struct

from stepper.element_types import DType, Shape
from stepper.errors import InputError, StepperError, UsageError
from stepper.files.file_kinds import ensure_no_pipe
from stepper.records import Record
from stepper.wording import excerpt, near_text, reason_of, size_text

if TYPE_CHECKING:
    from stepper.element_types import Array


T = TypeVar("T")
MOST_READ = 2**30
"""Bytes of an array that a ReadProgress reads into memory; a .npy of the input's own type is mapped, however large."""
_PIECE = 2**18
_SMALL = 2**14
"""Bytes of an archive that is read at once, because opening it for each of its arrays takes longer."""
_LONGEST_HEADER = 10_000
_MOST_AXES = 64
_HEADERS = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
"""By version of the format: how many bytes say how long a header is, and what reads it from there on."""
_MOST_MEMBERS = 10_000
_LARGEST_DIRECTORY = 4 * 2**20
_MOST_LISTED = 20


class ReadingStopped(UsageError):
    """Reading was stopped: the array is not wanted any more."""


class ReadProgress(Struct):
    """Progress of reading an array: bytes of how many (0: not known), and if it is to stop. `check` is asked about its
    shape before any of it is read, and raises a StepperError where it will not do."""

    check: Callable[[Shape], None] = lambda _shape: None
    done: int = 0
    total: int = 0
    stopped: bool = False

    def begin(self, shape: Shape, size: int) -> None:
        """The header is known: `size` bytes will be read. InputError for more than may be."""
        self.check(shape)
        if size > MOST_READ:
            raise InputError(_too_large(size))
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


def read_array(path: Path, reading: ReadProgress | None = None) -> Array:
    """Return the array of a .npy. InputError for a file that is none."""

    def mapped() -> Array:
        ensure_no_pipe(path)
        with path.open("rb") as file:
            header_of(file)
        return np.lib.format.open_memmap(path, mode="r")

    # Mapped, not read: a header that promises more than the file has is refused at once.
    array = np.asarray(_loaded(path, ".npy", mapped))
    if reading is not None:
        reading.begin(array.shape, 0)
    return array


class StoredArray:
    """An array of an .npz: its header is read when its form is asked for, its numbers when numpy asks for them.

    Both raise InputError for a member that is damaged.
    """

    def __init__(self, archive: _Archive, key: str, member: zipfile.ZipInfo) -> None:
        self._archive, self._key, self._member = archive, key, member

    @cached_property
    def _header(self) -> Header:
        return self._used(self._read_header)

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self._header.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._header.dtype

    @property
    def nbytes(self) -> int:
        """How many bytes the numbers take."""
        return self._header.bytes

    def read(self, reading: ReadProgress | None = None) -> Array:
        """Return the array, read-only. A `reading` sees each piece, and refuses more than may be read."""
        header = self._header
        if reading is not None:
            reading.begin(header.shape, header.bytes)
        return self._used(lambda file: _numbers(file, header, reading))

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> Array:
        if self.nbytes > MOST_READ:
            raise InputError(f"{self._archive.path}: '{excerpt(self._key)}' {_too_large(self.nbytes)}")
        array = self.read()
        return array if dtype is None else array.astype(dtype)

    def _read_header(self, file: IO[bytes]) -> Header:
        header, there = header_of(file), self._member.file_size
        if header.size + header.bytes != there:
            sizes = f"{size_text(header.size + header.bytes)}, it has {size_text(there)}"
            raise ValueError(f"its header promises {sizes}")
        return header

    def _used(self, use: Callable[[IO[bytes]], T]) -> T:
        def used() -> T:
            if self._member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("it is compressed in a way that numpy never writes")
            with self._archive.opened(self._member) as file:
                return use(file)

        return _loaded(self._archive.path, f".npz: '{excerpt(self._key)}'", used)


def read_archive(path: Path) -> dict[str, StoredArray]:
    """Return the arrays of an .npz by key; only the list of members is read. InputError for a file that is none."""

    def arrays() -> dict[str, StoredArray]:
        archive = _Archive(path)
        found: dict[str, StoredArray] = {}
        for member in archive.members():
            key = member.filename.removesuffix(".npy")  # as numpy has it
            if key in found:
                raise ValueError(f"it has two arrays '{excerpt(key)}'")
            found[key] = StoredArray(archive, key, member)
        return found

    return _loaded(path, ".npz", arrays)


def member_of(path: Path, key: str) -> StoredArray:
    """Return one array of an .npz. UsageError for an unknown key, else InputError."""
    found = read_archive(path)
    if key not in found:
        near = near_text(key, found)
        names = [excerpt(name) for name in found]
        listed = ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
        raise UsageError(f"{path} has no array '{key}'{f'; {near}' if near else ''}; it has {listed or 'none'}")
    return found[key]


class Header(Record):
    """The header of an array: its form, and how many bytes the header itself takes."""

    shape: Shape
    by_columns: bool
    dtype: DType
    size: int

    @property
    def bytes(self) -> int:
        """How many bytes the numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize


def header_of(file: IO[bytes]) -> Header:
    """Return the header of the array that begins there. ValueError for objects, and what is not a header."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:  # later versions are for names of fields, which no tensor has
        raise ValueError("a header of another version")
    width, parsed = _HEADERS[version]
    prefix = file.read(width)
    length = int.from_bytes(prefix, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header takes {size_text(length)}, at most {size_text(_LONGEST_HEADER)} are read")
    with warnings.catch_warnings():  # numpy and the parser of Python warn of texts that are then refused
        warnings.simplefilter("ignore")
        shape, by_columns, dtype = parsed(BytesIO(prefix + file.read(length)))
    if dtype.hasobject:
        raise ValueError("objects are never read")
    size = math.prod(length or 1 for length in shape) * (dtype.itemsize or 1)
    if dtype.subdtype or len(shape) > _MOST_AXES or size >= 2**63 or min(shape, default=0) < 0:
        raise ValueError("its header has the shape of no tensor")
    return Header(shape, by_columns, dtype, 8 + width + length)


def _numbers(file: IO[bytes], header: Header, reading: ReadProgress | None) -> Array:
    file.read(header.size)
    content = np.empty(header.bytes, np.uint8)
    done = 0
    while piece := file.read(min(_PIECE, header.bytes - done)):
        content[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
        if reading is not None:
            reading.heed(len(piece))
    if done < header.bytes:
        raise ValueError("it ends too early")
    array: Array = np.ndarray(header.shape, header.dtype, content.data, order="F" if header.by_columns else "C")
    content.flags.writeable = array.flags.writeable = False  # nobody else has it: a run need not copy it
    return array


class _Archive:
    """An .npz. Its handle is open only while it is read: there may be a hundred thousand of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _OpenedAgain(path)
        ensure_no_pipe(path)
        try:
            is_small = self._file.seek(0, 2) <= _SMALL
            self._file.seek(0)
            self._members = zipfile.ZipFile(BytesIO(self._file.read()) if is_small else self._file)
        except zipfile.BadZipFile:
            raise ValueError("it is not an archive of arrays") from None
        finally:
            self._file.close()

    def members(self) -> list[zipfile.ZipInfo]:
        """Return its members. ValueError for too many."""
        found = self._members.infolist()
        if len(found) > _MOST_MEMBERS:
            raise ValueError(f"it has {len(found):,} arrays, at most {_MOST_MEMBERS:,} are read")
        return found

    @contextmanager
    def opened(self, member: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
        """Have a member open for reading."""
        try:
            with self._members.open(member) as file:
                yield file
        finally:
            self._file.close()


class _OpenedAgain:
    """A file that is opened when it is asked for something, and again after it was closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: IO[bytes] | None = None

    def _opened(self) -> IO[bytes]:
        if self._open is None:
            self._open = self._path.open("rb")
        return self._open

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._opened().seek(offset, whence)

    def tell(self) -> int:
        return self._opened().tell()

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_DIRECTORY:  # it alone is read at once
            raise ValueError(f"the list of its arrays takes {size_text(size)}, too much for {_MOST_MEMBERS:,} arrays")
        return self._opened().read(size)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _loaded(path: Path, kind: str, load: Callable[[], T]) -> T:
    """InputError for whatever numpy, zipfile and the parsers below them raise for a damaged or forged file."""
    try:
        return load()
    except StepperError:
        raise
    except Exception as error:
        reason = reason_of(path, error) if isinstance(error, OSError) else None
        lines = (reason or str(error) or type(error).__name__).splitlines()
        wanted = "" if isinstance(error, FileNotFoundError) else f" as {kind}"
        raise InputError(f"{path}: cannot be read{wanted}: {excerpt(lines[0], 200)}") from None


def _too_large(size: int) -> str:
    sizes = f"{size_text(size)}, more than the {size_text(MOST_READ)} that are read"
    return f"takes {sizes}; a .npy of the input's own type is mapped and may be larger"
