"""Arrays to OpenVINO's tensors and back, of every element type, bit for bit.

numpy lacks some of the types: there OpenVINO shows the bytes, half-byte types several values to a byte. openvino is
imported by the first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper import element_types
from stepper.element_types import STRING, STRING_DTYPE, Array, ElementType
from stepper.errors import KernelError
from stepper.ir import weights

if TYPE_CHECKING:
    import openvino


def to_tensor(array: Any) -> openvino.Tensor:
    """Return a tensor of its own with what the array holds."""
    import openvino

    element_type = element_types.of(array)
    if element_type is STRING:
        texts = np.array(np.asarray(array).tolist(), np.str_).reshape(array.shape)
        return openvino.Tensor(texts if texts.dtype.itemsize else texts.astype("U1"))
    tensor = openvino.Tensor(native_type(element_type), openvino.Shape(array.shape))
    fill(tensor, array)
    return tensor


def fill(tensor: openvino.Tensor, array: Any) -> None:
    """Write the array into a tensor of its shape, of any type but strings. KernelError where the types differ."""
    element_type, wanted = element_types.of(array), tensor.element_type.get_type_name()
    if element_type.name != wanted:
        raise KernelError(f"OpenVINO expects {wanted}, not {element_type}")
    if not array.size:
        return
    if element_type.bits < 8:
        tensor.data[...] = weights.pack(np.asarray(array), element_type).view(tensor.data.dtype)
    else:
        tensor.data.view(element_type.dtype)[...] = array


def feed(request: openvino.InferRequest, inputs: Sequence[Any]) -> list[openvino.Tensor]:
    """Give a request its inputs; what is returned must be kept until it gets others.

    They are written into the request's own tensors wherever that can be: an output may share the memory of an input,
    and with tensors that come and go OpenVINO writes into memory that is free again.
    """
    kept = []
    for index, array in enumerate(inputs):
        if array.dtype == STRING_DTYPE:
            kept.append(to_tensor(array))
            request.set_input_tensor(index, kept[-1])
        else:
            tensor = request.get_input_tensor(index)
            if shape_of(tensor) != array.shape:
                tensor.shape = list(array.shape)
            fill(tensor, array)
    return kept


def to_array(tensor: openvino.Tensor) -> Array:
    """Return a copy of what the tensor holds, in the dtype of its element type."""
    element_type = element_types.by_name(tensor.element_type.get_type_name())
    if element_type is None:
        raise KernelError(
            f"OpenVINO gives a tensor of {tensor.element_type.get_type_name()}, which is not a known type"
        )
    if element_type.bits >= 8 and element_type is not STRING:
        return np.array(tensor.data.view(element_type.dtype))
    shape = shape_of(tensor)
    if element_type is STRING:
        return np.array(tensor.str_data.tolist(), element_type.dtype).reshape(shape)
    if 0 in shape:
        return np.empty(shape, element_type.dtype)
    raw = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1)
    return weights.unpack(raw, element_type, int(np.prod(shape))).reshape(shape)


def shape_of(tensor: openvino.Tensor) -> tuple[int, ...]:
    """Return the sizes of a tensor: by position, iterating over OpenVINO's lists takes twenty times as long."""
    shape = tensor.shape
    return tuple(shape[axis] for axis in range(len(shape)))


def native_type(element_type: ElementType) -> openvino.Type:
    """OpenVINO's own object for an element type."""
    import openvino

    native: openvino.Type = getattr(openvino.Type, element_type.name)
    return native
