"""What a call costs where OpenVINO computes an operation: beside the numpy kernel, and beside the request alone.

    python -m tests.benchmarks.fallback [--json]

Each number is of one call; a compilation is paid once for each layer and signature and measured by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stepper.element_types import F32, Array
from stepper.ir.model import Layer, Port
from stepper.openvino.layers import LayerInOpenVINO
from stepper.openvino.partner import OpenVINOPartner
from stepper.openvino.runtime import Runtime
from stepper.ops import registry
from tests.benchmarks import others, timing

KERNEL, REQUEST, SYNCHRONOUS = "numpy kernel", "bare request, asynchronous", "bare request, synchronous"
FALLBACK, COMPILATION = "computed by OpenVINO", "compilation of the layer, once"
TRIED = "the same after its trial in the process of OpenVINO"
CALLS = 300


def layer(type: str, inputs: int) -> Layer:
    """A layer of f32 whose attributes have their defaults."""
    ports = tuple(Port(index, F32, (), (), 1) for index in range(inputs + 1))
    return Layer(1, type.lower(), type, "opset1", 1, {}, ports[:inputs], ports[inputs:], (), 1)


def cases() -> dict[str, tuple[str, list[Array]]]:
    """Operations of loop bodies: a small one, a larger one, and one that is worth a call."""
    random = np.random.default_rng(1)

    def floats(*shape: int) -> Array:
        return random.standard_normal(shape, np.float32)

    return {
        "Add of f32[1,256]": ("Add", [floats(1, 256), floats(1, 256)]),
        "Tanh of f32[64,1024]": ("Tanh", [floats(64, 1024)]),
        "MatMul of f32[32,512] and f32[512,2048]": ("MatMul", [floats(32, 512), floats(512, 2048)]),
    }


def candidates(type: str, inputs: Sequence[Array]) -> dict[str, Callable[[], Array]]:
    """What computes the operation, each as a function that does it once."""
    described = layer(type, len(inputs))
    kernel = registry.find(type, 1)
    assert kernel is not None
    function = kernel.bind({})
    fallback = LayerInOpenVINO(Runtime(), described, [None] * len(inputs), is_last_resort=False)
    request = bare_request(described, inputs)

    def asynchronously() -> Array:
        request.start_async()
        request.wait()
        return np.asarray(request.get_output_tensor(0).data)

    def synchronously() -> Array:
        request.infer()
        return np.asarray(request.get_output_tensor(0).data)

    return {
        KERNEL: lambda: function(*inputs),
        FALLBACK: lambda: fallback(*inputs)[0],
        REQUEST: asynchronously,
        SYNCHRONOUS: synchronously,
    }


def bare_request(described: Layer, inputs: Sequence[Array]) -> Any:
    """A request of OpenVINO's own with the inputs set once and for all."""
    import openvino as ov

    parameters = [ov.op.Parameter(ov.Type.f32, ov.Shape(array.shape)) for array in inputs]
    node = getattr(ov.opset1, described.type.lower() if described.type != "MatMul" else "matmul")
    more = (False, False) if described.type == "MatMul" else ()
    model = ov.Model([node(*parameters, *more)], parameters)
    configuration = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    request = ov.Core().compile_model(model, "CPU", configuration).create_infer_request()
    for index, array in enumerate(inputs):
        request.set_input_tensor(index, ov.Tensor(array))
    return request


def compiled_anew(type: str, inputs: Sequence[Array]) -> Array:
    """The first call of a layer, with its compilation."""
    return LayerInOpenVINO(Runtime(), layer(type, len(inputs)), [None] * len(inputs), is_last_resort=False)(*inputs)[0]


def compiled_after_trial(type: str, inputs: Sequence[Array]) -> Array:
    """The first call of a layer as a run makes it: tried in the other process, then compiled in this one."""
    function, _name = OpenVINOPartner().bind(layer(type, len(inputs)), [None] * len(inputs))
    found: Array = function(*inputs)[0]
    return found


def measure(title: str, type: str, inputs: Sequence[Array], calls: int = CALLS, rounds: int = 5) -> timing.Report:
    """One operation, everybody in turn; checked first."""
    functions = candidates(type, inputs)
    expected = functions[KERNEL]()
    for name, function in functions.items():
        np.testing.assert_allclose(function(), expected, rtol=1e-4, atol=1e-4, err_msg=name)

    def repeated(function: Callable[[], Array]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                function()

        return run

    found = timing.side_by_side(
        {name: repeated(function) for name, function in functions.items()}, rounds, time.perf_counter
    )
    seconds = {name: value / calls for name, value in found.items()}
    first = {COMPILATION: compiled_anew, TRIED: compiled_after_trial}
    seconds |= timing.side_by_side(
        {name: partial(function, type, inputs) for name, function in first.items()}, rounds, time.perf_counter
    )
    return timing.report(f"{title}, one call", seconds, KERNEL)


def reports(_folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured; nothing where OpenVINO is not installed."""
    if not others.HAS_OPENVINO:
        return []
    calls, rounds = (30, 1) if quick else (CALLS, 5)
    return [measure(title, *case, calls=calls, rounds=rounds) for title, case in cases().items()]


if __name__ == "__main__":
    timing.main(__doc__, reports)
