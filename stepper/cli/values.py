"""Tensors as text and as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from stepper import element_types
from stepper.element_types import Array
from stepper.ops.axes import shape_text
from stepper.plain_values import storable, tensor_json

_SHOWN: Final = 8


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


def print_json(report: dict[str, Any]) -> None:
    """A report on stdout, in characters that its encoding has."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    json.dump(report, sys.stdout, indent=2, ensure_ascii=plain, allow_nan=False)
    print()


def as_json(name: str, value: Array) -> dict[str, Any]:
    """Name, type, shape and the numbers in row-major order (null above a thousand); what JSON lacks stands as text."""
    return {"name": name, **tensor_json(value)}
