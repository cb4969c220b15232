"""How fast a loop runs, beside a plain loop and other interpreters: `python -m tests.benchmarks.loops [--json]`.

Two loops: Newton's square root, where an iteration is six operations on one number and the interpreter is all that is
measured (as IR, and as it comes out of OpenVINO's converter of ONNX); and an LSTM, where it is two matrix products.
Before anything is measured, all must give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stepper
from stepper.element_types import Array
from stepper.ir.model import Model
from stepper.openvino.conversion import converted
from tests.benchmarks import models, others, timing
from tests.benchmarks.others import Run

BY_HAND = "by hand in numpy"


@dataclass(frozen=True)
class Comparison:
    """One loop, and everything that can run it; the base and the measure of all is the loop written by hand."""

    title: str
    candidates: dict[str, Run]

    def check(self) -> None:
        """Raise AssertionError where a candidate gives other numbers than the loop by hand."""
        expected = self.candidates[BY_HAND]()
        for name, run in self.candidates.items():
            given = run()
            assert len(given) == len(expected), f"{self.title}: {name} gives {len(given)} outputs"
            for one, other in zip(given, expected, strict=True):
                same = one.size == other.size and np.allclose(one.reshape(other.shape), other, rtol=1e-4, atol=1e-5)
                assert same, f"{self.title}: {name} gives other numbers"

    def measure(self, rounds: int) -> timing.Report:
        """The ratios, the numbers checked first."""
        self.check()
        return timing.report(self.title, timing.side_by_side(self.candidates, rounds), BY_HAND)


def newton(folder: Path, iterations: int) -> Comparison:
    """The scalar loop."""
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    path = models.newton_model(folder, iterations)
    candidates: dict[str, Run] = {BY_HAND: lambda: list(models.newton_by_hand(*inputs.values(), iterations))}
    candidates |= stepper_runs(path, inputs)
    if others.HAS_OPENVINO:
        candidates[others.OPENVINO] = others.openvino_run(path, inputs)
    if others.HAS_ONNX:
        from tests.benchmarks import onnx_models

        given = {"number": inputs["number"], "start": inputs["guess"]}
        candidates |= others.onnx_runs(onnx_models.newton(iterations), given)
    return Comparison(f"Newton's square root, {iterations} iterations", candidates)


def converted_newton(folder: Path, iterations: int) -> Comparison:
    """The scalar loop as OpenVINO's converter writes it: with more operations, among them some of the trip count."""
    import onnx

    from tests.benchmarks import onnx_models

    inputs = {"number": np.array([2], np.float32), "start": np.array([1], np.float32)}
    model = onnx_models.newton(iterations)
    source = folder / "newton.onnx"
    onnx.save(model, source)
    path = converted(source)
    by_hand: dict[str, Run] = {BY_HAND: lambda: list(models.newton_by_hand(*inputs.values(), iterations))}
    candidates = by_hand | stepper_runs(path, inputs)
    candidates[others.OPENVINO] = others.openvino_run(path, inputs)
    candidates |= others.onnx_runs(model, inputs)
    return Comparison(f"Newton's square root as converted from ONNX, {iterations} iterations", candidates)


def lstm(folder: Path, iterations: int, inputs: int = 512, hidden: int = 256) -> Comparison:
    """The loop over an LSTM cell."""
    weights = models.LstmWeights(inputs, hidden)
    x = np.random.default_rng(1).standard_normal((1, iterations, inputs)).astype(np.float32)
    given = {"x": x, "h": np.zeros((1, hidden), np.float32), "c": np.zeros((1, hidden), np.float32)}
    path = models.lstm_model(folder, weights, iterations)
    candidates: dict[str, Run] = {BY_HAND: lambda: list(models.lstm_by_hand(weights, **given))}
    candidates |= stepper_runs(path, given)
    if others.HAS_OPENVINO:
        candidates[others.OPENVINO] = others.openvino_run(path, given)
    if others.HAS_ONNX:
        from tests.benchmarks import onnx_models

        model = onnx_models.lstm(weights, iterations)
        states = {"h0": given["h"][np.newaxis], "c0": given["c"][np.newaxis]}
        candidates |= others.onnx_runs(model, {"x": x, **states})
    return Comparison(f"LSTM {inputs} -> {hidden}, {iterations} iterations", candidates)


def stepper_runs(path: Path, inputs: dict[str, Array]) -> dict[str, Run]:
    """This package's ways to run a model that has been read: whole, and stopping at events."""
    model = stepper.read_model(path)
    return {
        "stepper.run": lambda: list(stepper.run(model, inputs).values()),
        "stepper, stopping at each iteration": lambda: stepped(model, inputs, stepper.Every.ITERATION),
        "stepper, stopping at each operation": lambda: stepped(model, inputs, stepper.Every.OPERATION),
    }


def stepped(model: Model, inputs: dict[str, Array], every: stepper.Every) -> list[Array]:
    """The outputs of a run that stops at every event of this kind."""
    machine = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, inputs))
    for _event in machine.run(every):
        pass
    assert machine.outputs is not None
    return list(machine.outputs)


def comparisons(folder: Path, newton_iterations: int = 10_000, lstm_iterations: int = 500) -> Iterator[Comparison]:
    """All loops; what is converted from ONNX where both are installed."""
    yield newton(folder, newton_iterations)
    if others.HAS_ONNX and others.HAS_OPENVINO:
        yield converted_newton(folder, newton_iterations)
    yield lstm(folder, lstm_iterations)


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    sizes = (1_000, 50) if quick else (10_000, 500)
    return [comparison.measure(rounds=2 if quick else 7) for comparison in comparisons(folder, *sizes)]


if __name__ == "__main__":
    timing.main(__doc__, reports)
