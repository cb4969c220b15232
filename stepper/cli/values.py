"""Tensors as text and as JSON."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.cli.archives import storable
from stepper.element_types import Array
from stepper.ops.axes import shape_text

_SHOWN: Final = 8
_IN_JSON: Final = 1000


def described(value: Array) -> str:
    """`f32[2,3]`."""
    return f"{element_types.name_of(value.dtype)}{shape_text(value.shape)}"


def excerpt(value: Array) -> str:
    """The first few numbers, and how many there are in all."""
    flat = storable(value).reshape(-1)
    shown = " ".join(_number_text(item) for item in flat[:_SHOWN].tolist())
    return shown + (f" ... ({flat.size:,} in all)" if flat.size > _SHOWN else "")


def _number_text(item: Any) -> str:
    if isinstance(item, bool):
        return str(item).lower()
    return f"{item:.6g}" if isinstance(item, float) else repr(item) if isinstance(item, str) else str(item)


def as_json(name: str, value: Array) -> dict[str, Any]:
    """Name, type, shape and the numbers in row-major order (null above a thousand); what JSON lacks stands as text."""
    plain = storable(value)
    values = [_json_number(item) for item in plain.reshape(-1).tolist()] if plain.size <= _IN_JSON else None
    return {
        "name": name,
        "type": element_types.name_of(np.asarray(value).dtype),
        "shape": list(plain.shape),
        "values": values,
    }


def _json_number(item: Any) -> Any:
    if isinstance(item, float) and not math.isfinite(item):
        return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
    return item
