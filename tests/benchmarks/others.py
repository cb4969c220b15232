"""The other interpreters of the same loops, where they are installed: OpenVINO, and ONNX's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from stepper.element_types import Array

HAS_OPENVINO = find_spec("openvino") is not None
HAS_ONNX = find_spec("onnx") is not None

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


def onnx_run(model: Any, inputs: Mapping[str, Array]) -> Run:
    """One run of ONNX's interpreter in Python, which is made only once."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda: [np.asarray(value) for value in evaluator.run(None, dict(inputs))]
