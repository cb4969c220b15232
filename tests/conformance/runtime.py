"""The OpenVINO runtime on the CPU, as the tests ask it: single precision, and no error lost."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

CONFIGURATION = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}


@functools.cache
def core() -> ov.Core:
    """The one runtime of the process."""
    return ov.Core()


def tensor_of(array: np.ndarray, element_type: Any) -> ov.Tensor:
    """The array as a tensor of the type that the model declares; bfloat16 comes as float32."""
    tensor = ov.Tensor(element_type, ov.Shape(array.shape))
    if array.size:
        tensor.data[...] = array.astype(tensor.data.dtype)
    return tensor


def array_of(tensor: ov.Tensor) -> np.ndarray:
    """A copy of what the tensor holds, bfloat16 as float32."""
    data = np.array(tensor.data)
    return data.astype(np.float32) if data.dtype.name == "bfloat16" else data


def infer(model: ov.Model | Path | str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The model's outputs; asynchronous, because a synchronous call may swallow errors inside of nodes."""
    source = model if isinstance(model, ov.Model) else core().read_model(str(model))
    request = core().compile_model(source, "CPU", CONFIGURATION).create_infer_request()
    ports = source.inputs
    for place, (port, array) in enumerate(zip(ports, inputs, strict=True)):
        request.set_input_tensor(place, tensor_of(array, port.get_element_type()))
    request.start_async()
    request.wait()
    return [array_of(request.get_output_tensor(place)) for place in range(len(source.outputs))]
