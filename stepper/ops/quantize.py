"""Quantisation and back within one operation: what a low-precision type would make of the values.

Source: the operation sets' pages FakeQuantize and FakeConvert.
"""

from __future__ import annotations

from typing import Literal

import ml_dtypes
import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.elementwise import AutoBroadcast, aligned
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

# the type and its greatest number
_F8 = {"f8e4m3": (ml_dtypes.float8_e4m3fn, 448), "f8e5m2": (ml_dtypes.float8_e5m2, 57344)}


@kernel("FakeQuantize", 1)
def fake_quantize(
    x: Array,
    input_low: Array,
    input_high: Array,
    output_low: Array,
    output_high: Array,
    *,
    levels: int,
    auto_broadcast: AutoBroadcast = "numpy",
) -> Array:
    """Return the input range in `levels` equal steps laid onto the output range; what lies outside goes to its ends."""
    if levels < 2:
        raise KernelError(f"FakeQuantize has {levels} levels, at least 2 are needed")
    wide = widened(x)
    ranges = (widened(aligned(x, each, auto_broadcast)[1]) for each in (input_low, input_high, output_low, output_high))
    low, high, out_low, out_high = ranges
    step = np.rint((wide - low) / (high - low) * (levels - 1)) / (levels - 1)
    inside = step * (out_high - out_low) + out_low
    above = np.where(wide > np.maximum(low, high), out_high, inside)
    return narrowed(np.where(wide <= np.minimum(low, high), out_low, above), x.dtype)


@kernel("FakeConvert", 13)
def fake_convert(
    x: Array,
    scale: Array,
    shift: Array | None = None,
    *,
    destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
) -> Array:
    """Return (f8(x scale - shift) + shift) / scale, where f8 rounds to 8-bit floats and saturates."""
    wide_scale = widened(scale)
    moved = widened(x) * wide_scale
    offset = widened(shift) if shift is not None else wide_scale.dtype.type(0)
    return narrowed((_through_f8(moved - offset, destination_type) + offset) / wide_scale, x.dtype)


def _through_f8(x: Array, name: str) -> Array:
    target, greatest = _F8[name]
    return np.clip(x, -greatest, greatest).astype(target).astype(x.dtype)
