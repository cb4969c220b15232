"""The .bin file: mapped into memory and never read whole; each constant checked against it before it is used."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper.element_types import STRING_DTYPE, Array, ElementType
from stepper.errors import ModelError
from stepper.files.kinds import ensure_no_pipe
from stepper.ir import packing

_LET_GO: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""What tells the system that pages of a map are not needed; None where it cannot be told."""


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

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (self.path.absolute(), self.size)

    def __deepcopy__(self, _memo: dict[int, Any]) -> Weights:
        return self

    def raw(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; fewer where it ends before."""
        return bytes(self._bytes[offset : offset + size])

    def let_go(self, part: Array) -> None:
        """Take whole pages of the file out of memory of which this is a view: who reads them again has them from there.

        What is no view of the file stays.
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
            return packing.strings(raw, count).reshape(shape)
        if count == 0:
            return np.empty(shape, element_type.dtype)
        if element_type.bits < 8:
            raw = np.frombuffer(self._bytes, np.uint8, packing.packed_size(element_type, count), offset)
            return packing.unpack(raw, element_type, count).reshape(shape)
        if element_type.name == "boolean":
            return np.asarray(np.frombuffer(self._bytes, np.uint8, count, offset) != 0).reshape(shape)
        array: Array = np.frombuffer(self._bytes, element_type.dtype, count, offset).reshape(shape)
        # The file aligns nothing (semantics 5.7); an unaligned view would slow down every use.
        return array if array.flags.aligned else array.copy()


def _mapped(path: Path, size: int) -> Weights:
    """Return the weights that were pickled. ModelError where the file is another one by now."""
    weights = Weights(path)
    if weights.size != size:
        raise ModelError(f"{path}: has {weights.size} bytes, and had {size} when the model was pickled")
    return weights
