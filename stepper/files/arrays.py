"""Archives of arrays (.npz): keys in order, the same bytes for the same values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Final

import numpy as np

from stepper.element_types import Array
from stepper.plain_values import storable

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def write_arrays(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """Write an .npz into a file that is open."""
    import zipfile  # few starts write any

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, storable(array), allow_pickle=False)
