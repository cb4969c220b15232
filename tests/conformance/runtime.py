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
def cpu_flags() -> frozenset[str]:
    """The names of what the processor can do, as Linux has them; of another system none."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return frozenset(" ".join(line.partition(":")[2] for line in lines if line.startswith("flags")).split())


def has_vnni() -> bool:
    """True if the processor multiplies in 8 bits by an instruction for it, with which the plugin quantises."""
    return any("vnni" in flag for flag in cpu_flags())


def computes_in(precision: str) -> bool:
    """True if the CPU plugin computes in f16 or bf16 on this processor."""
    return {"f16": "FP16", "bf16": "BF16"}[precision] in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


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
