"""Tensors in the tables of a recording: as bytes and back, exactly; each content once, checked against its hash.

The bytes are `.npy` where numpy's format knows the element type, else a line of JSON after a magic word
(`{"type": "bf16", "shape": [2, 3]}`) and then the elements in row-major order. Texts are their lengths in bytes (64
bits each, little-endian) and then their UTF-8.

Bytes are not the whole of a tensor: a sum may depend on the order in which its elements lie in memory. So a value of a
machine is stored with its `MemoryLayout`, and a run that is resumed from it computes the same bits.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import sqlite3
import zlib
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array, DType, Ints, Shape, is_of_numpy
from stepper.errors import SessionError

# Hashes of files, and of the contents of recordings and sessions. Needs no SQLite.

_LARGE = 2**24
_PACKED = msgspec.msgpack.Encoder().encode


def content_hash(content: bytes) -> bytes:
    """Return the BLAKE2b hash, 16 bytes, that tells contents apart and shows damage."""
    return hashlib.blake2b(content, digest_size=16).digest()


def quick_hash(content: bytes) -> bytes:
    """Return CRC-32, sum of 64-bit words and length of a content, 16 bytes: a quarter of the time of BLAKE2b.

    By it damage is found, but contents only where they are compared, too: others may have the same.
    """
    words = np.frombuffer(content, "<u8", len(content) // 8)
    total = int(np.add.reduce(words)) % 2**64
    return zlib.crc32(content).to_bytes(4, "little") + total.to_bytes(8, "little") + len(content).to_bytes(4, "little")


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


Reference = dict[str, Any]
"""JSON that names a tensor: `blob`; `scalar` where it is a numpy scalar, `strides` where not in row-major order.

In a state also `recorded`: the blob is one of the table `blobs`, not of `state_values`.
"""


def blobs_of(data: Any) -> set[int]:
    """Return the blobs of its own table that JSON names, wherever in it."""
    if isinstance(data, (list, tuple)):
        return set().union(*map(blobs_of, data))
    if not isinstance(data, dict):
        return set()
    own = {data["blob"]} if type(data.get("blob")) is int and "recorded" not in data else set()
    return own.union(*map(blobs_of, data.values()))


OF_RECORDING = "blobs"
OF_STATES = "state_values"

_REMEMBERED = 4096


class BlobWriter:
    """Stores tensors in one of the two tables of blobs."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        assert table in (OF_RECORDING, OF_STATES), "names of tables cannot be bound to a statement"
        self._connection = connection
        self._find = f"SELECT id, content FROM {table} WHERE hash = ?"
        self._add = f"INSERT INTO {table} (hash, content) VALUES (?, ?)"
        # The array itself is kept beside its id, or another could take its place in memory, and its identity with it.
        self._known: dict[int, tuple[Any, Reference]] = {}

    def store(self, array: Array) -> int:
        """Return the id of the blob with this tensor, which is added if there is none."""
        content = encoded(array)
        digest = quick_hash(content)
        row = self._connection.execute(self._find, (digest,)).fetchone()
        if row is not None and row[1] != content:  # another one that happens to have the same hash
            digest = content_hash(content)
            row = self._connection.execute(self._find, (digest,)).fetchone()
        if row is not None:
            return int(row[0])
        identity = self._connection.execute(self._add, (digest, content)).lastrowid
        assert identity is not None, "a row was added"
        return identity

    def refer(self, value: Any) -> Reference:
        """Return a reference to a machine's value, layout included; stores no value twice in a row."""
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        layout = layout_of(value)
        reference: Reference = {"blob": self.store(np.asarray(value))}
        if layout.scalar:
            reference["scalar"] = True
        if layout.strides is not None:
            reference["strides"] = list(layout.strides)
        self._known[id(value)] = (value, reference)
        return reference

    def share(self, values: Sequence[Any], references: Sequence[Reference]) -> None:
        """Note that these values are in the table `blobs` already."""
        for value, reference in zip(values, references, strict=True):
            self._known[id(value)] = (value, reference | {"recorded": True})

    def forget(self, keep: list[Any]) -> None:
        """Let go of all values but these, which may come again."""
        identities = {id(value) for value in keep[:_REMEMBERED]}
        self._known = {identity: known for identity, known in self._known.items() if identity in identities}


class BlobReader:
    """Reads tensors from one of the two tables of blobs; each once, however often it is named."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        assert table in (OF_RECORDING, OF_STATES), "names of tables cannot be bound to a statement"
        self._connection = connection
        self._find = f"SELECT hash, content FROM {table} WHERE id = ?"
        self._known: dict[int, Array] = {}

    def tensor(self, identity: Any) -> Array:
        """Return the tensor of a blob. SessionError or ValueError where there is none, or a damaged one."""
        if type(identity) is not int:
            raise SessionError("has a damaged reference to a blob")
        if identity not in self._known:
            row = self._connection.execute(self._find, (identity,)).fetchone()
            if row is None:
                raise SessionError(f"the blob {identity} is missing")
            digest, content = row
            if not isinstance(content, bytes) or not (digest == quick_hash(content) or digest == content_hash(content)):
                raise SessionError(f"the blob {identity} is damaged")
            self._known[identity] = decoded(content)
        return self._known[identity]

    def value(self, reference: Any) -> Any:
        """Return the value that a reference names, in its layout."""
        named = msgspec.convert(reference, _Named)
        return laid_out(self.tensor(named.blob), MemoryLayout(named.scalar, named.strides))


class _Named(Struct, forbid_unknown_fields=True):
    """A reference that was read."""

    blob: int
    scalar: bool = False
    strides: tuple[Annotated[int, Meta(gt=-(2**40), lt=2**40)], ...] | None = None
    recorded: bool = False


_MAGIC = b"STEPPER VALUE 1\n"
_LONGEST_HEADER = 4096
_MOST_DIMENSIONS = 64
_WIDEST = 16
_SMALL_SPAN = 1024


def encoded(array: Array) -> bytes:
    """Return the bytes of a tensor, in row-major order whatever its layout."""
    if array.dtype.kind in "biuf" and is_of_numpy(array.dtype):
        buffer = io.BytesIO()
        header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(buffer, header)
        return b"".join((buffer.getvalue(), np.ascontiguousarray(array).data))
    header = {"type": element_types.of_dtype(array.dtype).name, "shape": list(array.shape)}
    content = _encoded_texts(array) if array.dtype == STRING_DTYPE else np.ascontiguousarray(array).tobytes()
    return _MAGIC + json.dumps(header).encode() + b"\n" + content


def decoded(content: bytes) -> Array:
    """Return the tensor in bytes that nobody vouches for. ValueError for anything but what `encoded` gives."""
    if content.startswith(_MAGIC):
        return _decoded_own(content[len(_MAGIC) :])
    buffer = io.BytesIO(content)
    if np.lib.format.read_magic(buffer) != (1, 0):
        raise ValueError("a .npy of another version than 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer, max_header_size=_LONGEST_HEADER)
    if fortran or dtype.kind not in "biuf":
        raise ValueError(f"a .npy of type {dtype}, or not in row-major order")
    return _from_bytes(memoryview(content)[buffer.tell() :], checked_shape(shape), dtype)


def _decoded_own(content: bytes) -> Array:
    end = content.index(b"\n", 0, _LONGEST_HEADER)
    header = json.loads(content[:end])
    element_type = element_types.by_name(header["type"])
    if element_type is None:
        raise ValueError("a value of an unknown element type")
    shape, rest = checked_shape(header["shape"]), memoryview(content)[end + 1 :]
    if element_type.dtype == STRING_DTYPE:
        return _decoded_texts(rest, shape)
    return _from_bytes(rest, shape, element_type.dtype)


def checked_shape(shape: Any) -> Shape:
    """Return a shape that was read. ValueError for what is none."""
    if not isinstance(shape, (list, tuple)) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError("a value whose shape is not a short list of sizes")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ValueError("a value whose shape is not a list of sizes")
    return tuple(shape)


def _from_bytes(content: memoryview, shape: Shape, dtype: DType) -> Array:
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("a value whose shape does not fit the number of its bytes")
    # Not a view of the bytes: a tensor's memory is aligned, and belongs to it.
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = np.frombuffer(content, np.uint8)
    return array


def _encoded_texts(array: Array) -> bytes:
    texts = [str(text).encode() for text in array.ravel().tolist()]
    return np.array([len(text) for text in texts], "<i8").tobytes() + b"".join(texts)


def _decoded_texts(content: memoryview, shape: Shape) -> Array:
    count = math.prod(shape)
    if count * 8 > len(content):
        raise ValueError("a value whose shape does not fit the number of its bytes")
    lengths = np.frombuffer(content[: count * 8], "<i8").tolist()
    if any(length < 0 for length in lengths) or count * 8 + sum(lengths) != len(content):
        raise ValueError("texts whose lengths do not fit the number of bytes")
    texts, begin = [], count * 8
    for length in lengths:
        texts.append(bytes(content[begin : begin + length]).decode())
        begin += length
    return np.array(texts, STRING_DTYPE).reshape(shape)


class MemoryLayout(NamedTuple):
    """How a machine's value lies in memory: a numpy scalar or an array, and the array's strides in elements.

    `strides` is None for an array in row-major order.
    """

    scalar: bool
    strides: Ints | None


def layout_of(value: Any) -> MemoryLayout:
    """Return the layout of a value. Strides that leave most of the memory unused are closed up, in the same order."""
    if isinstance(value, np.generic):
        return MemoryLayout(True, None)
    if value.size == 0 or value.dtype == STRING_DTYPE or is_row_major(value):
        return MemoryLayout(False, None)
    item = value.dtype.itemsize
    strides = tuple(stride // item for stride in value.strides)
    if any(stride % item for stride in value.strides) or not _is_near(value.shape, strides):
        found, step = [0] * len(value.shape), 1
        for axis in sorted(range(len(value.shape)), key=lambda axis: (abs(strides[axis]), -axis)):
            if strides[axis]:
                found[axis] = step if strides[axis] > 0 else -step
                step *= value.shape[axis]
        strides = tuple(found)
    return MemoryLayout(False, strides)


def is_row_major(array: Array) -> bool:
    """Return True if strides are those of a new array, also of dimensions of 1: a concatenation may stretch them."""
    step = array.dtype.itemsize
    for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if stride != step:
            return False
        step *= size
    return True


def laid_out(array: Array, layout: MemoryLayout) -> Any:
    """Return a tensor in row-major order as the value of this layout. ValueError for a layout that does not fit."""
    if layout.scalar:
        if array.ndim:
            raise ValueError("a scalar that has dimensions")
        return array[()]
    if layout.strides is None:
        return array
    if len(layout.strides) != array.ndim or not array.size or array.dtype == STRING_DTYPE:
        raise ValueError("strides that do not fit the shape")
    if not _is_near(array.shape, layout.strides):
        raise ValueError("strides that reach too far")
    return _strided(array, layout.strides)


def _strided(array: Array, strides: Ints) -> Array:
    item = array.dtype.itemsize
    before = sum(-stride * (size - 1) for size, stride in zip(array.shape, strides, strict=True) if stride < 0)
    memory = np.zeros(_span(array.shape, strides), array.dtype)
    steps = tuple(stride * item for stride in strides)
    view: Array = np.ndarray(array.shape, array.dtype, memory, before * item, steps)
    view[...] = array
    if len(memory) == array.size and min(strides) > 0:
        # Without gaps: a tensor that owns its memory, as most that are not views of others do.
        return np.array(view, order="K", copy=True)
    return view


def _span(shape: Shape, strides: Ints) -> int:
    return 1 + sum(abs(stride) * (size - 1) for size, stride in zip(shape, strides, strict=True))


def _is_near(shape: Shape, strides: Ints) -> bool:
    return _span(shape, strides) <= _WIDEST * math.prod(shape) + _SMALL_SPAN
