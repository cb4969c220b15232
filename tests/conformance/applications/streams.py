"""An application as users write them: `python streams.py WAY FOLDER`, 500 frames of which the 137th makes NaN.

WAY is `stateful` (a detector that keeps its state in variables, frame after frame), `queue` (AsyncInferQueue with a
callback), `pool` (threads with a request each) or `plain` (the compiled model is called). The array of the frame is
used again for each call. FOLDER gets what the application itself saw: its outputs, and the state before call 137.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as op

CALLS, BAD, STEPS, WIDTH = 500, 137, 4, 3


def body():
    """s' = s / 2 + x, y = e^s' / (1 + e^s'): of a large x it is Inf / Inf."""
    x = op.parameter([1, 1, WIDTH], np.float32, name="step")
    state = op.parameter([1, 1, WIDTH], np.float32, name="state")
    following = op.add(op.multiply(state, op.constant(np.float32(0.5))), x, name="following")
    raised = op.exp(following, name="raised")
    share = op.divide(raised, op.add(raised, op.constant(np.float32(1)), name="total"), name="share")
    return ov.Model([op.result(following), op.result(share)], [x, state], "body"), x, state


def detector(*, is_stateful):
    """Return the model: a TensorIterator over the steps of a frame, whose state is a variable, or an input."""
    frame = op.parameter([1, STEPS, WIDTH], np.float32, name="frame")
    begin = op.parameter([1, 1, WIDTH], np.float32, name="begin")
    zeros = op.constant(np.zeros((1, 1, WIDTH), np.float32))
    start = op.read_value(zeros, "memory") if is_stateful else begin
    inner, x, state = body()
    loop = op.tensor_iterator()
    loop.set_friendly_name("over steps")
    loop.set_body(inner)
    loop.set_sliced_input(x, frame.output(0), 0, 1, 1, -1, 1)
    loop.set_merged_input(state, start.output(0), inner.results[0].output(0))
    last = loop.get_iter_value(inner.results[0].output(0), -1)
    shares = loop.get_concatenated_slices(inner.results[1].output(0), 0, 1, 1, -1, 1)
    end = op.reshape(last, op.constant(np.array([1, 1, WIDTH])), False)  # `assign` takes a node, not an output
    sinks = [op.assign(end, "memory")] if is_stateful else []
    outputs = [op.result(shares, name="shares")] + ([] if is_stateful else [op.result(end, name="end")])
    model = ov.Model(outputs, sinks, [frame] if is_stateful else [frame, begin], "detector")
    model.inputs[0].tensor.set_names({"frame"})
    model.outputs[0].tensor.set_names({"shares"})
    return model


def frame_of(call):
    """Return the frame of a call, from 1; in the third step of one of them there is a large number."""
    frame = np.random.default_rng(call).standard_normal((1, STEPS, WIDTH)).astype(np.float32)
    if call == BAD:
        frame[0, 2, 1] = 200
    return frame


BEGIN = np.full((1, 1, WIDTH), 0.25, np.float32)


def with_variables(compiled, got):
    """Frame after frame; return the state before the bad one."""
    request, buffer, before = compiled.create_infer_request(), np.empty((1, STEPS, WIDTH), np.float32), None
    for call in range(1, CALLS + 1):
        if call == BAD:
            before = request.query_state()[0].state.data.copy()
        buffer[...] = frame_of(call)
        got[call] = request.infer({"frame": buffer})["shares"]
    return before


def with_queue(compiled, got):
    queue, buffer = ov.AsyncInferQueue(compiled, 3), np.empty((1, STEPS, WIDTH), np.float32)
    queue.set_callback(lambda request, call: got.__setitem__(call, request.get_output_tensor(0).data.copy()))
    for call in range(1, CALLS + 1):
        buffer[...] = frame_of(call)
        queue.start_async({0: buffer, 1: BEGIN}, call)
    queue.wait_all()


def with_pool(compiled, got):
    requests = [compiled.create_infer_request() for _ in range(2)]

    def work(at):
        own = np.empty((1, STEPS, WIDTH), np.float32)
        for call in range(1 + at, CALLS + 1, 2):
            own[...] = frame_of(call)
            requests[at].start_async([own, BEGIN], share_inputs=True)
            requests[at].wait()
            got[call] = requests[at].get_output_tensor(0).data.copy()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))


def with_calls(compiled, got):
    buffer = np.empty((1, STEPS, WIDTH), np.float32)
    for call in range(1, CALLS + 1):
        buffer[...] = frame_of(call)
        got[call] = compiled([buffer, BEGIN])[0]


WAYS = {"stateful": with_variables, "queue": with_queue, "pool": with_pool, "plain": with_calls}


def main(way, folder):
    core = ov.Core()
    model = detector(is_stateful=way == "stateful")
    if way == "plain":  # from a file, as most do
        ov.save_model(model, folder / "detector.xml", compress_to_fp16=False)
        model = core.read_model(folder / "detector.xml")
    got = {}
    before = WAYS[way](core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}), got)
    state = {} if before is None else {"before": before}
    np.savez(folder / "seen.npz", **state, **{str(call): got[call] for call in sorted(got)})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
