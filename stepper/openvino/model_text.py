"""The text of an IR and the bytes of its .bin: all that OpenVINO's process needs, which loads no parser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stepper.ir.model import Model


class NativeText(NamedTuple):
    """The text of an IR, and the bytes of its .bin."""

    text: str
    weights: np.memmap[Any, Any] | None

    @property
    def weights_path(self) -> str:
        """The path of the .bin; empty without one."""
        return "" if self.weights is None else str(self.weights.filename)


def weights_of(model: Model) -> np.memmap[Any, Any] | None:
    """Return the bytes of a model's .bin; None where it has none."""
    if model.weights is None or model.weights.size == 0:
        return None
    return mapped(model.weights.path)


def mapped(path: str | Path) -> np.memmap[Any, Any]:
    """Return the bytes of a .bin; copied on write, for OpenVINO wants memory that could be written."""
    return np.memmap(path, np.uint8, "c")
