"""The other interpreters of the same loops, where they are installed: OpenVINO, onnxruntime, and that of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper.element_types import Array

HAS_OPENVINO = find_spec("openvino") is not None
HAS_ONNX = find_spec("onnx") is not None

HAS_ONNXRUNTIME = HAS_ONNX and find_spec("onnxruntime") is not None

OPENVINO: Final = "OpenVINO, CPU, 1 thread, f32"
ONNXRUNTIME: Final = "onnxruntime, CPU, 1 thread"
EVALUATOR: Final = "ONNX ReferenceEvaluator"

Run = Callable[[], list[Array]]


def openvino_run(path: Path, inputs: Mapping[str, Array]) -> Run:
    """One inference of a compiled model on OpenVINO's CPU plugin: one thread, f32, compilation not counted."""
    import openvino as ov

    options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = ov.Core().compile_model(str(path), "CPU", options).create_infer_request()
    given = dict(enumerate(inputs.values()))
    return lambda: [np.array(value) for value in request.infer(given).values()]


def openvino_reader(path: Path) -> Callable[[], object]:
    """Reading a model with a new Core."""
    import openvino as ov

    return lambda: ov.Core().read_model(str(path))


def onnx_runs(model: Any, inputs: Mapping[str, Array]) -> dict[str, Run]:
    """By name, one run of each interpreter of ONNX models that is installed; it is made ready only once."""
    runs: dict[str, Run] = {}
    given = dict(inputs)
    if HAS_ONNXRUNTIME:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        runs[ONNXRUNTIME] = lambda: [np.asarray(value) for value in session.run(None, given)]
    if HAS_ONNX:
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(model)
        runs[EVALUATOR] = lambda: [np.asarray(value) for value in evaluator.run(None, given)]
    return runs
