"""What the facts of a whole run cost: `python -m tests.benchmarks.overview [--json]`.

The recorded run as a ratio to the same run under the debugger without it, for a scalar loop of a million iterations and
for an LSTM; of that, the time from the end of the loop until all facts of the run are there; the time until the births
of NaN and Inf were looked for; and the memory that it holds.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Overview, RunState
from stepper.element_types import Array
from stepper.engine.frames import LoopEndObserver
from stepper.ir.model import Model
from tests.benchmarks import models, timing
from tests.benchmarks.debugging import NEWTON, newton

CONTINUED = "continue, no breakpoint"
RECORDED = "the recorded run"
SHOWN = "of that, from the end of the loop to the overview"
SEARCHED = "then, until origins are found"


def compared(title: str, model: Model, inputs: dict[str, Array], rounds: int) -> timing.Report:
    """Both runs in turn, the best of each."""
    best = dict.fromkeys((CONTINUED, RECORDED, SHOWN, SEARCHED), float("inf"))
    for _ in range(rounds):
        debugger = Debugger(model, inputs)
        begin = time.process_time()
        debugger.continue_()
        found = {CONTINUED: time.process_time() - begin}
        debugger, shown = Debugger(model, inputs), list[tuple[float, Overview]]()
        debugger.overview()
        ended = list[float]()
        loop_end = LoopEndObserver(lambda _stack, _activation, ended=ended: ended.append(time.process_time()))  # type: ignore[misc]
        machine = debugger.machine
        machine.observers = (loop_end, *machine.observers)  # before the recorder, which then settles what it holds
        begin = time.process_time()
        overview = debugger.run_overview(progress=lambda known, shown=shown: shown.append((time.process_time(), known)))  # type: ignore[misc]
        end = time.process_time()
        there = next(at for at, known in shown if known.state is RunState.FINISHED)
        found |= {RECORDED: there - begin, SHOWN: there - ended[0], SEARCHED: end - there}
        best = {name: min(best[name], found[name]) for name in best}
    report = timing.report(title, best, CONTINUED)
    return report | {"bytes": overview.bytes - debugger.timeline.history.bytes}


def measure(folder: Path, iterations: int, steps: int, rounds: int) -> timing.Reports:
    """Both loops."""
    model, _ = newton(folder, iterations)
    weights = models.LstmWeights(512, 256)
    lstm = stepper.read_model(models.lstm_model(folder, weights, steps))
    x = np.random.default_rng(1).standard_normal((1, steps, weights.inputs)).astype(np.float32)
    inputs = {"x": x} | {name: np.zeros((1, weights.hidden), np.float32) for name in ("h", "c")}
    return [
        compared(f"Newton, {iterations:,} iterations", model, NEWTON, rounds),
        compared(f"LSTM 512 -> 256, {steps} iterations", lstm, inputs, 3 * rounds),
    ]


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    return measure(folder, 20_000, 100, 1) if quick else measure(folder, 1_000_000, 2_000, 3)


if __name__ == "__main__":
    timing.main(__doc__, reports)
