"""An application with a detector that is called frame after frame: `python sample_models/detector.py [outside|inside]`.

The state comes out of a call and is given to the next one (`outside`), or is in a variable (`inside`). Frames 30 and 31
of 40 are loud. Neither alone does harm: it is half of the state that call 30 leaves and the frame of call 31 of which
the exponential is infinite, and Inf / Inf is NaN.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import openvino as ov
from openvino import opset13 as op

CALLS, WIDTH = 40, 3
LOUD = {30: 80, 31: 60}


def detector(*, is_inside: bool) -> ov.Model:
    """s' = s / 2 + x, y = e^s' / (1 + e^s'): of a large s' it is Inf / Inf."""
    frame = op.parameter([1, WIDTH], np.float32, name="frame")
    state = op.parameter([1, WIDTH], np.float32, name="state")
    rate = op.parameter([], np.float32, name="rate")
    before = op.read_value(op.constant(np.zeros((1, WIDTH), np.float32)), "memory") if is_inside else state
    following = op.add(op.multiply(before, rate), frame, name="following")
    raised = op.exp(following, name="raised")
    share = op.divide(raised, op.add(raised, op.constant(np.float32(1)), name="total"), name="share")
    sinks = [op.assign(following, "memory")] if is_inside else []
    outputs = [op.result(share, name="shares")] + ([] if is_inside else [op.result(following, name="next")])
    model = ov.Model(outputs, sinks, [frame, rate] if is_inside else [frame, rate, state], "detector")
    for port, name in zip(model.inputs, ("frame", "rate", "state"), strict=False):
        port.tensor.set_names({name})
    for port, name in zip(model.outputs, ("shares", "next"), strict=False):
        port.tensor.set_names({name})
    return model


def frame_of(call: int) -> npt.NDArray[np.float32]:
    """Return the frame of a call, from 1."""
    frame = np.random.default_rng(call).standard_normal((1, WIDTH)).astype(np.float32)
    frame[0, 1] = LOUD.get(call, frame[0, 1])
    return frame


def run(way: str, keep: Callable[[int, npt.NDArray[np.float32]], object]) -> None:
    """Call it; `keep` gets each number with what came out."""
    compiled = ov.Core().compile_model(detector(is_inside=way == "inside"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    state, buffer = np.zeros((1, WIDTH), np.float32), np.empty((1, WIDTH), np.float32)
    for call in range(1, CALLS + 1):
        buffer[...] = frame_of(call)
        given = {"frame": buffer, "rate": np.float32(0.5)} | ({} if way == "inside" else {"state": state})
        result = request.infer(given)
        keep(call, result["shares"].copy())
        if way == "outside":
            state = result["next"].copy()


if __name__ == "__main__":
    wrong: list[int] = []
    run(*(sys.argv[1:] or ["outside"]), lambda call, shares: wrong.append(call) if np.isnan(shares).any() else None)
    print(f"{CALLS} calls, NaN in {', '.join(map(str, wrong))}")
