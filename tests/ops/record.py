"""Record what OpenVINO computes for the cases of one or all families: `python -m tests.ops.record [FAMILY]...`."""

from __future__ import annotations

import sys

import numpy as np
import openvino as ov

from stepper import element_types
from stepper.element_types import Array
from tests.ops.recording import RECORDED, Case, cases, families, one_operation_model


def infer(core: ov.Core, case: Case) -> list[Array]:
    """The runtime's outputs; asynchronous, because a synchronous call on one thread hides what a node throws."""
    xml, weights = one_operation_model(case)
    model = core.read_model(xml, weights)
    request = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    parameters = [value for index, value in enumerate(case.inputs) if index not in case.constant]
    tensors = {}
    for index, value in enumerate(parameters):
        tensor = ov.Tensor(getattr(ov.Type, element_types.of(value).name), ov.Shape(value.shape))
        np.copyto(tensor.data.view(value.dtype).reshape(value.shape), value)
        tensors[index] = tensor
    request.start_async(tensors)
    request.wait()
    return [_stored(request.get_output_tensor(index)) for index in range(case.outputs)]


def _stored(tensor: ov.Tensor) -> Array:
    """A copy that .npz can hold: bfloat16 and 8-bit floats as float32, which loses nothing."""
    dtype = element_types.ELEMENT_TYPES[tensor.element_type.get_type_name()].dtype
    data = tensor.data.view(dtype) if dtype.itemsize == tensor.data.dtype.itemsize else tensor.data
    return np.array(data.astype(np.float32) if dtype.kind == "V" or not dtype.isbuiltin else data)


def main() -> None:
    """Record the families named on the command line, or all."""
    core = ov.Core()
    RECORDED.mkdir(exist_ok=True)
    for family in sys.argv[1:] or families():
        arrays = {}
        for case in cases(family):
            try:
                outputs = infer(core, case)
            except RuntimeError as error:
                sys.exit(f"{family}: OpenVINO refuses {case.name}: {error}")
            arrays |= {f"{case.name}/{index}": output for index, output in enumerate(outputs)}
        np.savez_compressed(RECORDED / f"{family}.npz", **arrays)
        print(f"{family}: {len(cases(family))} cases")


if __name__ == "__main__":
    main()
