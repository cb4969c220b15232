"""An application to be debugged: frames of audio go through a model, 500 calls, in one of which something is wrong.

    stepper capture --when nan -- python sample_models/application.py

It is written as applications are: a queue of infer requests with a callback, and one array that is filled for each
call. The model is that of rwkv_overflow; nothing in it is wrong for the other 499 calls.
"""

from pathlib import Path

import numpy as np
import openvino

FOLDER = Path(__file__).parent / "rwkv_overflow"
CALLS, LOUD = 500, 137


def main() -> None:
    """Run all calls, and print how many had a result that is no number."""
    core = openvino.Core()
    compiled = core.compile_model(FOLDER / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    queue, results = openvino.AsyncInferQueue(compiled, 2), dict[int, np.ndarray]()
    queue.set_callback(lambda request, call: results.update({call: request.get_output_tensor(0).data.copy()}))
    loud, frame = np.load(FOLDER / "inputs.npz")["embedded"], np.empty((12, 8), np.float32)
    for call in range(1, CALLS + 1):
        frame[...] = loud if call == LOUD else 0.2 * loud
        queue.start_async({"embedded": frame}, call)
    queue.wait_all()
    print(sum(bool(np.isnan(value).any()) for value in results.values()), "of", len(results), "results have NaN")


if __name__ == "__main__":
    main()
