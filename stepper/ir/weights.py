"""The .bin file: mapped into memory and never read whole; each constant checked against it before it is used."""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper.element_types import STRING_DTYPE, Array, ElementType, of
from stepper.errors import ErrorPlace, ModelError
from stepper.files.file_kinds import ensure_no_pipe
from stepper.files.recognition import pointer_text

# Packing of element types narrower than a byte, and of strings, in a .bin (measured).

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def packed_size(element_type: ElementType, count: int) -> int:
    """Return the bytes that `count` elements take; u3 comes in groups of 8 elements, u6 in groups of 4."""
    if element_type.name == "u3":
        return 3 * -(-count // 8)
    if element_type.name == "u6":
        return 3 * -(-count // 4)
    return -(-count * element_type.bits // 8)


def unpack(raw: Bytes, element_type: ElementType, count: int) -> Array:
    """Return the first `count` elements in `raw`, a rank-1 array of the type's dtype."""
    codes = _codes(raw, element_type)[:count]
    dtype = element_type.dtype
    if element_type.name == "i4":
        return ((codes ^ 8).astype(np.int8) - 8).astype(dtype)
    if dtype.names or element_type.name == "f4e2m1":
        return codes.view(dtype)
    return codes.astype(dtype)


def content(values: Array) -> bytes:
    """Return the bytes of a tensor in a .bin, of every type but strings."""
    element_type = of(values)
    return pack(values, element_type).tobytes() if element_type.bits < 8 else np.ascontiguousarray(values).tobytes()


def pack(values: Array, element_type: ElementType) -> Bytes:
    """Return the bytes of a tensor of a type narrower than a byte: what `unpack` reads."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if element_type.dtype.names or element_type.name == "f4e2m1":
        codes = flat.view(np.uint8)
    else:
        codes = flat.astype(np.int8).view(np.uint8) & np.uint8(2**element_type.bits - 1)
    match element_type.name:
        case "u1":
            return np.packbits(codes)
        case "u2":
            return _joined(codes, [0, 2, 4, 6])
        case "u3":
            groups = _padded(codes, 8).reshape(-1, 8)
            low, high = groups & np.uint8(3), groups >> np.uint8(2)
            parts = [_joined(low[:, :4], [6, 4, 2, 0]), _joined(low[:, 4:], [6, 4, 2, 0]), np.packbits(high, axis=1)]
            return np.stack([part.reshape(-1) for part in parts], axis=1).reshape(-1)
        case "u6":
            groups = _padded(codes, 4).reshape(-1, 4)
            low, high = groups & np.uint8(15), groups >> np.uint8(4)
            parts = [_joined(low[:, :2], [4, 0]), _joined(low[:, 2:], [4, 0]), _joined(high, [6, 4, 2, 0])]
            return np.stack(parts, axis=1).reshape(-1)
        case _:
            return _joined(codes, [0, 4])


def _padded(codes: Bytes, multiple: int) -> Bytes:
    return np.concatenate([codes, np.zeros(-len(codes) % multiple, np.uint8)])


def _joined(codes: Bytes, shifts: list[int]) -> Bytes:
    """Codes of one byte each, several to a byte."""
    rows = _padded(codes.reshape(-1), len(shifts)).reshape(-1, len(shifts))
    joined: Bytes = np.bitwise_or.reduce(rows << np.array(shifts, np.uint8), axis=1)
    return joined


def _codes(raw: Bytes, element_type: ElementType) -> Bytes:
    """Return the bit patterns, one a byte."""
    match element_type.name:
        case "u1":
            return np.unpackbits(raw)
        case "u2":
            return _split(raw, [0, 2, 4, 6], 3)
        case "u3":
            first, second, high = _groups(raw)
            low = np.hstack([_split2(first), _split2(second)]).reshape(-1)
            return low | np.unpackbits(np.ascontiguousarray(high)) << np.uint8(2)
        case "u6":
            first, second, high = _groups(raw)
            low = np.hstack([_split4(first), _split4(second)]).reshape(-1)
            return low | _split2(high).reshape(-1) << np.uint8(4)
        case _:
            return _split(raw, [0, 4], 15)


def _groups(raw: Bytes) -> tuple[Bytes, Bytes, Bytes]:
    groups = raw.reshape(-1, 3)
    return groups[:, 0], groups[:, 1], groups[:, 2]


def _split(raw: Bytes, shifts: list[int], mask: int) -> Bytes:
    codes: Bytes = (raw[:, None] >> np.array(shifts, np.uint8)) & np.uint8(mask)
    return codes.reshape(-1)


def _split2(raw: Bytes) -> Bytes:
    return _split(raw, [6, 4, 2, 0], 3).reshape(-1, 4)


def _split4(raw: Bytes) -> Bytes:
    return _split(raw, [4, 0], 15).reshape(-1, 2)


def strings(raw: Bytes, count: int) -> Array:
    """Return the texts of a string constant: int32 count n, n+1 int32 offsets, then UTF-8. ValueError if broken."""
    header = np.frombuffer(raw, "<i4", 1)[0] if len(raw) >= 4 else -1
    if header != count or len(raw) < 4 * (count + 2):
        raise ValueError(f"a string constant of {count} texts has a header that says {header}")
    offsets = np.frombuffer(raw, "<i4", count + 1, 4).tolist()
    body = raw[4 * (count + 2) :]
    if offsets[0] != 0 or sorted(offsets) != offsets or offsets[-1] > len(body):
        raise ValueError("the offsets of a string constant do not ascend within its bytes")
    texts = [bytes(body[begin:end]).decode("utf-8", "replace") for begin, end in itertools.pairwise(offsets)]
    return np.array(texts, STRING_DTYPE)


_LET_GO: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""Advice to the system that pages of a map are not needed; None if it does not exist."""


_LONGEST_POINTER = 1024


class Weights:
    """The bytes of a .bin file, mapped lazily."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            ensure_no_pipe(path)
            self.size = path.stat().st_size
            with path.open("rb") as file:
                empty = self.size == 0
                self._bytes = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ModelError(f"{path}: cannot be mapped into memory: {error}") from None
        if self.size < _LONGEST_POINTER and (said := pointer_text(path, self.raw(0, _LONGEST_POINTER))):
            pointer = ModelError(said)
            pointer.place, pointer.rule = ErrorPlace(str(path)), "weights-truncated"
            raise pointer

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (self.path.absolute(), self.size)

    def __deepcopy__(self, _memo: dict[int, Any]) -> Weights:
        return self

    def raw(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; fewer where it ends before."""
        return bytes(self._bytes[offset : offset + size])

    def let_go(self, part: Array) -> None:
        """Drop the file's pages that this view covers; later reads load them from the file again.

        Arrays that are no view of the file stay.
        """
        if _LET_GO is None or not isinstance(self._bytes, mmap.mmap) or not part.flags.c_contiguous:
            return
        offset = part.ctypes.data - np.frombuffer(self._bytes, np.uint8).ctypes.data
        begin = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (offset + part.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if 0 <= offset <= self.size - part.nbytes and begin < end:
            self._bytes.madvise(_LET_GO, begin, end - begin)

    def constant(self, element_type: ElementType, shape: Sequence[int], offset: int, size: int) -> Array:
        """Return the tensor at these bytes: a read-only view of the file, or a copy of sub-byte types and strings.

        ValueError where the bytes do not hold such a tensor. The range is checked by the reader (`checked_range`).
        """
        count = math.prod(shape)
        if element_type.dtype == STRING_DTYPE:
            raw = np.frombuffer(self._bytes, np.uint8, size, offset) if size else np.empty(0, np.uint8)
            return strings(raw, count).reshape(shape)
        if count == 0:
            return np.empty(shape, element_type.dtype)
        if element_type.bits < 8:
            raw = np.frombuffer(self._bytes, np.uint8, packed_size(element_type, count), offset)
            return unpack(raw, element_type, count).reshape(shape)
        if element_type.name == "boolean":
            return np.asarray(np.frombuffer(self._bytes, np.uint8, count, offset) != 0).reshape(shape)
        array: Array = np.frombuffer(self._bytes, element_type.dtype, count, offset).reshape(shape)
        # The file aligns nothing (measured); an unaligned view would slow down every use.
        return array if array.flags.aligned else array.copy()


def _mapped(path: Path, size: int) -> Weights:
    """Return the weights that were pickled. ModelError where the file is another one by now."""
    weights = Weights(path)
    if weights.size != size:
        raise ModelError(f"{path}: has {weights.size} bytes, and had {size} when the model was pickled")
    return weights
