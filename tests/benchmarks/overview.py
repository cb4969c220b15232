"""What the facts of a whole run cost: `python -m tests.benchmarks.overview [--json]`.

The recorded run as a ratio to the same run under the debugger without it, for a scalar loop of a million iterations and
for an LSTM; the times until the overview is there after the run, and until the births of NaN and Inf were looked for;
and the memory that it holds.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import Overview, RunState
from stepper.element_types import Array
from stepper.ir import Model
from tests.benchmarks import models, timing
from tests.benchmarks.debugging import NEWTON, newton

CONTINUED = "continue, no breakpoint"
RECORDED = "the recorded run"
SHOWN = "then, until the overview is there"
SEARCHED = "then, until births were looked for"


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
        begin = time.process_time()
        overview = debugger.run_overview(progress=lambda known, shown=shown: shown.append((time.process_time(), known)))  # type: ignore[misc]
        end = time.process_time()
        there = next(at for at, known in shown if known.state is RunState.FINISHED)
        found |= {SEARCHED: end - there, RECORDED: there - begin}
        begin = time.process_time()
        debugger._overview_run()._view()
        found[SHOWN] = time.process_time() - begin
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
        compared(f"LSTM 512 -> 256, {steps} iterations", lstm, inputs, rounds),
    ]


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    return measure(folder, 20_000, 100, 1) if quick else measure(folder, 1_000_000, 2_000, 3)


if __name__ == "__main__":
    timing.main(__doc__, reports)
