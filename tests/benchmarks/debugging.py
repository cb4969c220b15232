"""What being debugged costs a run, and how fast one gets about in it: `python -m tests.benchmarks.debugging [--json]`.

A run continued under the debugger, with a conditional breakpoint, and with every value of the body kept, as ratios to
the plain run; and for a scalar loop of a million iterations the times of going anywhere, as parts of the plain run.
"""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.ir.model import Model
from tests.benchmarks import models, timing

PLAIN = "stepper.run"
NEWTON = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}


def plain(model: Model, inputs: dict[str, Array]) -> list[Array]:
    """The run without a debugger."""
    return list(stepper.run(model, inputs).values())


def continued(model: Model, inputs: dict[str, Array], stop: str = "") -> list[Array]:
    """The run under the debugger, with a breakpoint that is asked in every iteration and never hits, if wanted."""
    debugger = Debugger(model, inputs)
    if stop:
        debugger.break_at(stop, condition=f"{stop}[0] > 1e9")
    debugger.continue_()
    return list(debugger.machine.outputs or ())


def kept(model: Model, inputs: dict[str, Array]) -> list[Array]:
    """The run with every value of every iteration kept in memory."""
    machine = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, inputs))
    values = [event.frame.values.copy() for event in machine.run(stepper.Every.ITERATION)]
    assert values, "each iteration was told"
    return list(machine.outputs or ())


def newton(folder: Path, iterations: int) -> tuple[Model, str]:
    """The scalar loop, and the name of the operation that gives its next guess."""
    model = stepper.read_model(models.newton_model(folder, iterations))
    body = stepper.compile_model(model).programs[-1]
    multiply = next(operation.layer.name for operation in body.operations if operation.layer.type == "Multiply")
    return model, multiply


def getting_about(folder: Path, iterations: int, visits: int) -> timing.Report:
    """Going to random moments of a long run: the worst and the mean, and what the history holds."""
    model, _ = newton(folder, iterations)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    debugger = Debugger(model, NEWTON, memory=64 * 2**20)
    begin = time.perf_counter()
    debugger.last()
    whole = time.perf_counter() - begin
    generator = random.Random(0)
    times = []
    for _ in range(visits):
        begin = time.perf_counter()
        debugger.goto_tick(generator.randrange(debugger.timeline.furthest))
        times.append(time.perf_counter() - begin)
    assert not debugger.timeline.warnings, "every replay was the same"
    seconds = {"the whole run": whole, "going anywhere, worst": max(times), "mean": sum(times) / len(times)}
    report = timing.report(f"{iterations:,} iterations, {visits} random positions", seconds, "the whole run")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return report | {"history_bytes": debugger.timeline.history.bytes, "megabytes_grown": round(grown, 1)}


def measure(folder: Path, iterations: int, steps: int, rounds: int) -> timing.Reports:
    """Both loops, side by side."""
    model, name = newton(folder, iterations)
    scalar = {
        PLAIN: lambda: plain(model, NEWTON),
        "continue, no breakpoint": lambda: continued(model, NEWTON),
        "continue, one conditional breakpoint": lambda: continued(model, NEWTON, name),
    }
    weights = models.LstmWeights(512, 256)
    lstm = stepper.read_model(models.lstm_model(folder, weights, steps))
    x = np.random.default_rng(1).standard_normal((1, steps, weights.inputs)).astype(np.float32)
    inputs = {"x": x} | {name: np.zeros((1, weights.hidden), np.float32) for name in ("h", "c")}
    body = {
        PLAIN: lambda: plain(lstm, inputs),
        "continue, no breakpoint": lambda: continued(lstm, inputs),
        "every value of every iteration kept": lambda: kept(lstm, inputs),
    }
    return [
        timing.report(f"Newton, {iterations:,} iterations", timing.side_by_side(scalar, rounds), PLAIN),
        timing.report(f"LSTM 512 -> 256, {steps} iterations", timing.side_by_side(body, rounds), PLAIN),
    ]


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    if quick:
        return [*measure(folder, 1_000, 50, 1), getting_about(folder, 50_000, 10)]
    return [*measure(folder, 10_000, 500, 7), getting_about(folder, 1_000_000, 100)]


if __name__ == "__main__":
    timing.main(__doc__, reports)
