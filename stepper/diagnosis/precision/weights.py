"""Constants that are weights, and what 8 bits make of them.

Asymmetric, with a scale and a zero point for each output channel: 256 levels between its least and its largest weight,
0 among them. That is what NNCF's `compress_weights` does by default (mode INT8_ASYM), for which it takes MatMul and
Gather; here convolutions and recurrent cells count as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program
from stepper.ir.model import Layer

_LEVELS: Final = 255
_LEAST: Final = 16
"""Elements from which on a constant counts as weights."""

_CHANNELS: Final[Mapping[tuple[str, int], tuple[int, ...]]] = MappingProxyType({
    ("Gather", 0): (0,),
    ("Convolution", 1): (0,),
    ("ConvolutionBackpropData", 1): (1,),
    ("GroupConvolution", 1): (0, 1),
    ("GroupConvolutionBackpropData", 1): (0, 2),
    ("GroupedMatMul", 1): (0, 1),
    **{(cell, port): (0,) for cell, first in (("LSTMCell", 3), ("GRUCell", 2), ("RNNCell", 2), ("AUGRUCell", 2))
       for port in (first, first + 1)},
    **{(kind, port): (0, 1) for kind, first in (("LSTMSequence", 4), ("GRUSequence", 3), ("RNNSequence", 3),
                                                ("AUGRUSequence", 3)) for port in (first, first + 1)},
})  # fmt: skip
"""Axes of the output channels, by the type of the operation and the index of its input."""


class Weight(NamedTuple):
    """A constant that is weights: its program and slot, its layer, and the operation that multiplies with it."""

    program: Program
    slot: int
    layer: Layer
    read_by: Operation
    channels: tuple[int, ...]

    @property
    def value(self) -> Array:
        """The weights as they are in the file."""
        return np.asarray(self.program.template[self.slot])


def weights_of(compiled: CompiledModel) -> list[Weight]:
    """Return the constants that are weights, also those that come into a loop from outside."""
    found: dict[tuple[int, int], Weight] = {}
    for weight in _read(compiled.main, {}):
        found.setdefault((id(weight.program), weight.slot), weight)
    return list(found.values())


_Held = tuple[Program, int, Layer]


def _read(program: Program, given: Mapping[int, _Held]) -> Iterator[Weight]:
    """Yield the weights that a program's operations read; `given` are constants in slots of its Parameters."""
    held = dict(given)
    for layer in program.graph.layers:
        slot = program.slots.get((layer.id, 0))
        if layer.type == "Constant" and slot is not None and program.template[slot] is not None:
            held[slot] = program, slot, layer
    for operation in (*program.folded, *program.operations):
        kind = operation.layer.type
        if kind == "Convert" and operation.inputs[0] in held:
            held[operation.outputs[0]] = held[operation.inputs[0]]
        for port, slot in enumerate(operation.inputs):
            if slot in held and (channels := _channels(operation.layer, port)) is not None:
                weight = Weight(*held[slot], operation, channels)
                if _counts(weight.value):
                    yield weight
        for plan in operation.plans:
            fed = [(one.input, one.parameter) for one in plan.invariant] if isinstance(plan, LoopPlan) else plan.inputs
            inner = {slot: held[operation.inputs[port]] for port, slot in fed if operation.inputs[port] in held}
            yield from _read(plan.program, inner)


def _counts(value: Array) -> bool:
    return is_floating(value.dtype) and value.ndim > 1 and value.size >= _LEAST


def _channels(layer: Layer, port: int) -> tuple[int, ...] | None:
    """Return the axes of the output channels of an operation's input; None for one that takes no weights."""
    if layer.type == "MatMul":
        transposed = layer.is_set("transpose_a" if port == 0 else "transpose_b")
        return (-2,) if transposed == (port == 1) else (-1,)
    return _CHANNELS.get((layer.type, port))


def in_eight_bits(weight: Weight) -> Array:
    """Return the weights, each the nearest of its channel's 256 levels; what is not finite stays."""
    value = weight.value
    exact: Any = value.astype(np.float64)
    channels = {axis % value.ndim for axis in weight.channels}
    axes = tuple(axis for axis in range(value.ndim) if axis not in channels)
    with np.errstate(all="ignore"):
        least = np.minimum(exact.min(axes, keepdims=True), 0)
        largest = np.maximum(exact.max(axes, keepdims=True), 0)
        scale = (largest - least) / _LEVELS
        scale = np.where(scale > 0, scale, 1)
        zero = np.rint(-least / scale)
        level = np.clip(np.rint(exact / scale) + zero, 0, _LEVELS)
        rounded = ((level - zero) * scale).astype(value.dtype)
    return np.where(np.isfinite(exact) & np.isfinite(rounded.astype(np.float64)), rounded, value)
