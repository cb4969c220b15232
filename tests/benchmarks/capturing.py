"""What a capture costs an application: `python -m tests.benchmarks.capturing [--json]`.

Calls of OpenVINO of five milliseconds, with and without a capture that finds nothing, and the copies of inputs and of
variables alone; in turn, one thread, the best of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import stepper
from tests.benchmarks import timing

ALONE = "alone"
CAPTURED = "captured"
COPIES = "the copies of inputs and variables"
WIDTH, ROWS, LAYERS = 512, 64, 30


def compiled_model() -> Any:
    """Products of matrices, which take five milliseconds, and a variable."""
    import openvino as ov
    from openvino import opset13 as op

    x = op.parameter([ROWS, WIDTH], np.float32, name="x")
    state = op.read_value(op.constant(np.zeros((ROWS, WIDTH), np.float32)), "state")
    value = op.add(x, state)
    weights = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32) / 32
    for _ in range(LAYERS):
        value = op.tanh(op.matmul(value, op.constant(weights), False, False))
    model = ov.Model([op.result(value)], [op.assign(value, "state")], [x], "products")
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    return ov.Core().compile_model(model, "CPU", options)


def measure(folder: Path, rounds: int, calls: int) -> timing.Reports:
    """The two in turn, and the copies that a capture makes by themselves."""
    request, x = compiled_model().create_infer_request(), np.ones((ROWS, WIDTH), np.float32)

    def called() -> None:
        for _ in range(calls):
            request.infer([x])

    def captured() -> None:
        with stepper.capture("nan", folder):
            called()

    def copied() -> None:
        for _ in range(calls):
            for tensor in (request.input_tensors[0], request.query_state()[0].state):
                np.array(tensor.data)

    found = timing.side_by_side({ALONE: called, CAPTURED: captured, COPIES: copied}, rounds)
    return [timing.report(f"{calls} calls of OpenVINO", found, ALONE)]


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    return measure(folder, 1, 3) if quick else measure(folder, 9, 60)


if __name__ == "__main__":
    timing.main(__doc__, reports)
