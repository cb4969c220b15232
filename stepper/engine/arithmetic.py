"""Define the arithmetic of both rule books: declared types, or the CPU plugin's types.

The plugin computes f16, bf16 and f64 in f32 and rounds at the model's boundary. It holds i64, u64 and u32 in i32
(runtime values wrap, constants saturate). It saturates u8 and i8, and divides, compares and rounds i32 in f32. Source:
the specifications of the operations, and the results of OpenVINO where it departs from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from stepper.element_types import ELEMENT_TYPES, Array, DType
from stepper.engine.rules import Rules
from stepper.ir.model import Layer

Function = Callable[..., Any]

_IN_PLACE_OF = {"f16": "f32", "bf16": "f32", "f64": "f32", "i64": "i32", "u64": "i32", "u32": "i32"}
_NARROWED = {ELEMENT_TYPES[wide].dtype: ELEMENT_TYPES[held].dtype for wide, held in _IN_PLACE_OF.items()}
_TYPE_ATTRIBUTES = ("destination_type", "output_type", "index_element_type")
_SATURATING = ("Add", "Subtract", "Multiply")
_INT32 = np.iinfo(np.int32)


def narrowed(value: Any) -> Any:
    """Return a runtime value as the plugin holds it: half and double precision as f32, wide integers wrapped to i32."""
    target = _NARROWED.get(value.dtype)
    if target is None:
        return value
    with np.errstate(over="ignore"):  # what is too large for f32 is infinite there
        return value.astype(target)


def narrowed_constant(value: Array, rules: Rules) -> Array:
    """Return a Constant as the rule book holds it; the plugin saturates wide integers there."""
    if rules is Rules.SPEC or value.dtype not in _NARROWED:
        return value
    if value.dtype.kind in "iu":
        value = np.clip(value, max(int(_INT32.min), int(np.iinfo(value.dtype).min)), int(_INT32.max))
    result: Array = narrowed(value)
    return result


def restored(value: Any, dtype: DType, rules: Rules) -> Array:
    """Return a model's output at its boundary: under the plugin's rules back in the type that the file declares."""
    array = np.asarray(value)
    if rules is Rules.OPENVINO and _NARROWED.get(dtype) == array.dtype:
        return array.astype(dtype)
    return array


def as_the_plugin(function_of: Callable[[Mapping[str, str]], Function], layer: Layer, *, stateful: bool) -> Function:
    """Return the kernel of a layer as the plugin computes it. `function_of` binds the kernel to attribute texts."""
    attributes = plugin_attributes(layer)
    if layer.type == "Divide":
        attributes["m_pythondiv"] = "false"
    function = function_of(attributes)
    if stateful:
        return lambda state, *inputs: _narrowed_stateful(function(state, *inputs))
    if layer.type in THROUGH_F32:
        return _through_f32(THROUGH_F32[layer.type] or function, narrowing(function))
    if layer.type in ("ReduceMax", "ReduceMin"):
        return lambda data, axes: _through_f32(
            lambda x: function(x, axes), lambda x: narrowed(_finite_of_nothing(function(x, axes), x))
        )(data)
    if layer.type == "Convert" and attributes.get("destination_type") == "boolean":
        return lambda value: (value != 0) & (value == value)  # NaN becomes false (measured)
    if layer.type in _SATURATING:
        return lambda *inputs: narrowed(_saturated(function, *inputs))
    return narrowing(function)


def _floor_mod(a: Any, b: Any) -> Any:
    return a - np.floor(a / b) * b


def _mod(a: Any, b: Any) -> Any:
    return a - np.trunc(a / b) * b


THROUGH_F32: Final[Mapping[str, Function | None]] = MappingProxyType({
    **dict.fromkeys(("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")),
    **dict.fromkeys(("Ceiling", "Floor", "PRelu", "Relu", "Round")),
    "Divide": np.divide,
    "FloorMod": _floor_mod,
    "Mod": _mod,
    "Power": np.power,
})  # fmt: skip
"""Operations that the plugin computes of whole numbers in f32, exact up to 2^24: by a formula, None: as those of f32.

Measured: equal in each of 60,000 numbers, alone and in the body of a Loop, i32 and i64, of ranks 0 to 2.
"""


def _through_f32(in_f32: Function, otherwise: Function) -> Function:
    """Return `in_f32` for whole numbers, its result truncated to i32 and then saturated to 8 bits or wrapped to 16.

    What i32 does not hold becomes its lowest number, as for x / 0.
    """

    def compute(*inputs: Any) -> Any:
        dtype = inputs[0].dtype
        if dtype.kind not in "iu":
            return otherwise(*inputs)
        with np.errstate(all="ignore"):
            found = in_f32(*(one.astype(np.float32) for one in inputs))
            if found.dtype != np.float32:
                return found
            held = (found >= _INT32.min) & (found < -float(_INT32.min))
            whole = np.where(held, found, np.float32(_INT32.min)).astype(np.int32)
        return _clipped(whole, dtype) if dtype.itemsize == 1 else whole.astype(dtype)

    return compute


def plugin_attributes(layer: Layer) -> dict[str, str]:
    """Return the attributes of a layer with the plugin's types instead of the types in the file."""
    attributes = dict(layer.attributes)
    for name in _TYPE_ATTRIBUTES:
        if name in attributes:
            attributes[name] = _IN_PLACE_OF.get(attributes[name], attributes[name])
    return attributes


def narrowing(function: Function) -> Function:
    """Return the function with what it gives held as the plugin holds it."""
    return lambda *inputs: _narrowed_all(function(*inputs))


def _narrowed_all(result: Any) -> Any:
    return tuple(map(narrowed, result)) if isinstance(result, (tuple, list)) else narrowed(result)


def _narrowed_stateful(result: tuple[Any, Any]) -> tuple[Any, Any]:
    outputs, state = result
    return _narrowed_all(outputs), state


def _finite_of_nothing(result: Any, data: Any) -> Any:
    """Return an extremum, finite where there are no elements: the plugin has the extreme finite f32."""
    limits = np.finfo(np.float32)
    return np.clip(result, limits.min, limits.max) if data.size == 0 and result.dtype.kind == "f" else result


def _saturated(function: Function, a: Any, b: Any) -> Any:
    if a.dtype not in (np.dtype(np.uint8), np.dtype(np.int8)):
        return function(a, b)
    return _clipped(function(a.astype(np.int32), b.astype(np.int32)), a.dtype)


def _clipped(value: Any, dtype: DType) -> Any:
    limits = np.iinfo(dtype)
    return np.clip(value, limits.min, limits.max).astype(dtype)


_MOVING_TYPES = (
    "Parameter Result Constant Reshape Squeeze Unsqueeze Transpose Concat Split VariadicSplit Slice StridedSlice "
    "Gather GatherElements GatherND Broadcast Tile Convert Select ShapeOf Identity ReadValue Assign If Loop "
    "TensorIterator Relu Maximum Minimum Abs Negative Pad ScatterUpdate ScatterNDUpdate ScatterElementsUpdate "
    "Reverse ReduceMax ReduceMin MaxPool TopK Sign Floor Ceiling Round DepthToSpace SpaceToDepth "
    "BatchToSpace SpaceToBatch ReverseSequence ShuffleChannels Roll"
)
_MOVING = frozenset(_MOVING_TYPES.split())
"""Operations that give the same whatever the width of the type in which they are computed."""


def difference(layer: Layer) -> str | None:
    """Return how the plugin's arithmetic differs for this layer, as far as its declared types tell; else None."""
    types = {port.element_type for port in layer.outputs if port.element_type is not None}
    names = {element_type.name for element_type in types}
    if layer.type == "Divide" and any(element_type.dtype.kind in "iu" for element_type in types):
        if layer.is_set("m_pythondiv", otherwise=True):
            return "a negative quotient of integers is rounded down; OpenVINO rounds it towards zero"
        return None
    if layer.type in _SATURATING and names & {"u8", "i8"}:
        return "what 8 bits do not hold wraps; in OpenVINO it saturates"
    half = names & {"f16", "bf16", "f64"}
    if half and layer.type not in _MOVING:
        return f"computed in {min(half)}; OpenVINO computes in f32 and rounds at the model's boundary"
    return None


def outside_int32(value: Any) -> bool:
    """Return True if an i64, u64 or u32 tensor has a value that i32, in which the plugin computes, does not hold."""
    wide = value.dtype.kind in "iu" and value.dtype in _NARROWED and value.size > 0
    return bool(wide and (value.max() > _INT32.max or value.min() < _INT32.min))
