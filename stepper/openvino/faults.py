"""Faults of OpenVINO's CPU plugin that would end the whole process, and how they are kept from it.

Each entry was seen with OpenVINO 2026.4.1; none can be caught, so they are kept away from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from stepper.ir.model import Layer

_CONSTANT_FROM: Final = {"Gather": 2, "SliceScatter": 2, "RDFT": 1, "IRDFT": 1}
"""Types, and the first of the inputs that must be Constants: axes and ranges that are read as if they were."""


def must_be_constant(layer: Layer, index: int) -> bool:
    """Return True if this input of the layer must be given as a Constant."""
    first = _CONSTANT_FROM.get(layer.type)
    return first is not None and index >= first


def needs_open_shapes(layer: Layer, inputs: Sequence[Any]) -> bool:
    """Return True if the layer must be compiled without knowing these shapes: kernels may divide by size 0."""
    return layer.type == "Gather" and any(0 in array.shape for array in inputs[:2])


def fatal(layer: Layer, inputs: Sequence[Any]) -> str:
    """Return why OpenVINO must not be asked to compute this layer on these inputs; empty where it may be."""
    if layer.type == "LRN" and len(inputs) > 1 and 0 in inputs[1].shape:
        return "OpenVINO reads beyond the axes of an LRN that has none"
    if layer.type == "AvgPool" and (layer.definition or 0) >= 16 and "dilations" not in layer.attributes:
        return "OpenVINO reads the dilations of an AvgPool that has none"
    return ""
