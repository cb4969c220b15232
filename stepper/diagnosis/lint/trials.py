"""Trials of single operations: what their kernels make of zeros of the declared shapes, or why they refuse them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

import numpy as np

from stepper.element_types import Array, ElementType
from stepper.errors import KernelError, TensorTooLarge
from stepper.ir.model import Layer
from stepper.ops import registry

DECIDING: Final[Mapping[str, tuple[int, ...]]] = {
    type: inputs
    for inputs, types in {
        (): (
            "Clamp Concat DepthToSpace GatherElements GatherND LogSoftmax MatMul ScatterNDUpdate Select "
            "Softmax SpaceToDepth"
        ),
        (1,): (
            "CumSum MVN NormalizeL2 OneHot ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax "
            "ReduceMean ReduceMin ReduceProd ReduceSum Reshape Reverse Split Squeeze Tile TopK Transpose "
            "Unsqueeze"
        ),
        (1, 2): "Broadcast Pad Roll VariadicSplit",
        (1, 2, 3): "BatchToSpace SpaceToBatch StridedSlice",
        (1, 2, 3, 4): "Slice",
        (2,): "Gather",
        (3,): "ScatterElementsUpdate ScatterUpdate",
    }.items()
    for type in types.split()
}
"""Operations that are tried, and their inputs whose values decide what shape comes out."""
_ENLARGING: Final = ("Broadcast", "OneHot", "Pad", "Tile")
_MOST_ELEMENTS: Final = 1 << 16


class _Operand(NamedTuple):
    """Type and shape of an input, and its bytes where it is a Constant."""

    type: np.dtype[np.generic]
    shape: tuple[int, ...]
    value: bytes | None

    def array(self) -> Array:
        if self.value is None:
            return np.broadcast_to(np.zeros((), self.type), self.shape)
        return np.frombuffer(self.value, self.type).reshape(self.shape)


class LayerOutcome(NamedTuple):
    """Shapes that an operation gives, or why there are none."""

    shapes: tuple[tuple[int, ...], ...] = ()
    refusal: str = ""


@lru_cache(maxsize=4096)
def _tried(
    type: str, definition: int, attributes: tuple[tuple[str, str], ...], operands: tuple[_Operand, ...], outputs: int
) -> LayerOutcome | None:
    """Return what an operation makes of zeros and of what is constant; None where that is left to a run."""
    kernel = registry.find(type, definition)
    if kernel is None or kernel.stateful:
        return None
    least, most = kernel.accepted_inputs()
    if len(operands) < least or (most is not None and len(operands) > most):
        return None
    try:
        with np.errstate(all="ignore"):
            made = kernel.bind(dict(attributes))(*(one.array() for one in operands))
    except TensorTooLarge:
        return None
    except KernelError as error:
        return LayerOutcome(refusal=str(error))
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return None  # what a kernel did not foresee: the run says what it says
    given = made if isinstance(made, tuple | list) else (made,)
    return LayerOutcome(tuple(np.shape(one) for one in given)[:outputs])


def outcome(
    layer: Layer,
    tensors: Sequence[tuple[ElementType | None, tuple[int, ...] | None]],
    constant: Callable[[int], Array | None],
) -> LayerOutcome | None:
    """Return what a layer makes of what the file declares of its inputs, and of those that are constant.

    None where that is open, or much.
    """
    if layer.type not in DECIDING or layer.definition is None or layer.opened_from is not None:
        return None
    operands = []
    for index, (kind, shape) in enumerate(tensors):
        if kind is None or shape is None or not 0 < prod(shape) <= _MOST_ELEMENTS or kind.dtype.kind == "T":
            return None
        value = constant(index) if index in DECIDING[layer.type] or (index and kind.dtype.kind in "iu") else None
        if value is None:
            if index in DECIDING[layer.type]:
                return None
            operands.append(_Operand(kind.dtype, shape, None))
        elif value.size == prod(shape):
            operands.append(_Operand(value.dtype, shape, value.tobytes()))
        else:
            return None
    for port in layer.outputs:
        if prod(max(one, 0) for one in port.dims) > _MOST_ELEMENTS:
            return None
        if layer.type in _ENLARGING and (not port.dims or min(port.dims) < 0):
            return None
    return _tried(layer.type, layer.definition, tuple(layer.attributes.items()), tuple(operands), len(layer.outputs))


@lru_cache(maxsize=4096)
def refusal(type: str, definition: int, attributes: tuple[tuple[str, str], ...], inputs: int, outputs: int) -> str:
    """Return why an operation with these attributes, and so many inputs and outputs, is none; empty if it is one."""
    kernel = registry.find(type, definition)
    if kernel is None:
        return ""
    least, most = kernel.accepted_inputs()
    if inputs < least or (most is not None and inputs > most):
        expected = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        return f"it has {inputs} inputs, expected {expected}"
    if outputs > 1 and not kernel.several_outputs:
        return f"it has {outputs} output ports, expected one"
    try:
        kernel.bind(dict(attributes))
    except KernelError as error:
        return str(error)
    return ""
