"""Tolerances: by element type, by type of operation, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import field
from msgspec.structs import replace

from stepper.element_types import ELEMENT_TYPES, is_floating, name_of
from stepper.errors import UsageError
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.ir.model import Layer


class Tolerance(Record):
    """Two numbers agree where |a - b| <= absolute + relative * |b|, or where they are at most `ulp` steps apart.

    `saturates`: the largest number of a type counts as infinite, for many a kernel begins a maximum with the lowest.
    `rounds`: what rounding may leave of a sum of products is allowed, too (see rounding.py); not of one asked for.
    """

    relative: float = 0.0
    absolute: float = 0.0
    ulp: int = 0
    saturates: bool = False
    rounds: bool = False


EXACT = Tolerance()

SAME_KERNELS: Final[Mapping[str, Tolerance]] = {
    "f64": Tolerance(1e-10, 1e-12),
    "f32": Tolerance(1e-5, 1e-6),
    "f16": Tolerance(2e-3, 1e-3),
    "bf16": Tolerance(1e-2, 1e-2),
}
"""Where both sides compute with the same kernels: what another order of additions may leave."""

OTHER_KERNELS: Final[Mapping[str, Tolerance]] = {
    "f64": Tolerance(1e-6, 1e-8),
    "f32": Tolerance(1e-4, 1e-5),
    "f16": Tolerance(1e-2, 1e-2),
    "bf16": Tolerance(3e-2, 3e-2),
}
"""Where the other side has kernels of its own (OpenVINO, somebody else's values)."""

COARSE = Tolerance(0.13, 0.05)
"""Floats of 8 and fewer bits."""


class Tolerances(Record):
    """Select the tolerance of a value; `by_name` are tolerances by name.

    Names are element types, types of operations, and names of layers. A layer's name goes before the operation's type,
    and the operation's type before the element type.
    """

    exact: bool = True
    relative: float | None = None
    absolute: float | None = None
    ulp: int = 0
    by_name: Mapping[str, Tolerance] = field(default_factory=dict)

    def of(self, layer: Layer | None, value: Any) -> Tolerance:
        """Return the tolerance for a value that an output of a layer has (None: only the value is known)."""
        dtype = np.asarray(value).dtype
        type_name = name_of(dtype)
        names = () if layer is None else (layer.name, layer.type)
        for name in (*names, type_name):
            if name in self.by_name:
                return self.by_name[name]
        if not is_floating(dtype):
            return EXACT
        return replace(self._of_float(type_name), saturates=not self.exact)

    def closer(self) -> Tolerances:
        """Return a tenth of the tolerances that nobody asked for: good kernels keep it, not all do."""
        if self.exact or self.relative is not None or self.absolute is not None or self.ulp:
            return self
        tenth = {
            name: Tolerance(one.relative / 10, one.absolute / 10, saturates=True, rounds=True)
            for name, one in OTHER_KERNELS.items()
        }
        return replace(self, by_name={**tenth, **self.by_name})

    def _of_float(self, type_name: str) -> Tolerance:
        default = (SAME_KERNELS if self.exact else OTHER_KERNELS).get(type_name, COARSE)
        if self.relative is None and self.absolute is None and not self.ulp:
            return replace(default, rounds=True)
        asked = self.relative is not None or self.absolute is not None
        return Tolerance(
            (self.relative or 0.0) if asked or self.ulp else default.relative,
            (self.absolute or 0.0) if asked or self.ulp else default.absolute,
            self.ulp,
        )


def parse_tolerance(text: str) -> tuple[str, Tolerance]:
    """Parse `NAME=RTOL` or `NAME=RTOL,ATOL`; NAME is an element type, a type of operation, or a layer's name.
    UsageError."""
    name, equals, numbers = text.rpartition("=")
    parts = numbers.split(",")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if not equals or not name or not 1 <= len(values) <= 2 or not all(0 <= value < np.inf for value in values):
        example = "expected NAME=RTOL or NAME=RTOL,ATOL, such as f32=1e-4 or MatMul=1e-3,1e-5"
        raise UsageError(f"--tolerance '{text}': {example}; types are {', '.join(sorted(ELEMENT_TYPES))}")
    return name, Tolerance(values[0], values[1] if len(values) == 2 else 0.0)
