"""Writing arrays as .npz: keys in order, the same bytes for the same values; and files that are never half-written."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.plain_values import storable

_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(target: str, arrays: Mapping[str, Array]) -> None:
    """Write an .npz to a file, which appears whole or not at all, or to stdout for `-`."""
    if target == "-":
        _write(sys.stdout.buffer, arrays)
        return
    with whole_file(Path(target)) as file:
        _write(file, arrays)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which appears under its name when the block ends, or not at all. UsageError where it cannot."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)
