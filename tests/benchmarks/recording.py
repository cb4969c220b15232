"""What recording costs, beside a plain run: `python -m tests.benchmarks.recording [--json]`.

The two loops of tests.benchmarks.loops, recorded into a new file each time, which is closed at the end. Statistics of
all values are part of everything but "snapshots alone".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stepper
from stepper.element_types import Array
from stepper.recording import Amount, RecordingOptions, record
from tests.benchmarks import models, timing
from tests.benchmarks.others import Run

PLAIN = "stepper.run"
NAMES = {
    Amount.NONE: "snapshots alone",
    Amount.STATS: "statistics",
    Amount.CARRIED: "carried values and statistics",
    Amount.ALL: "all values and statistics",
}


@dataclass(frozen=True)
class Recorded:
    """One model, which is run plainly and recorded in every way."""

    title: str
    path: Path
    inputs: dict[str, Array]

    def candidates(self) -> dict[str, Run]:
        model = stepper.read_model(self.path)
        numbers = itertools.count()

        def recorded(amount: Amount) -> list[Array]:
            file = self.path.with_name(f"{self.path.stem}_{next(numbers)}.sqlite")
            inputs = stepper.bind_inputs(model, self.inputs)
            machine = stepper.Machine(stepper.compile_model(model), inputs, keep_values=False)
            with record(machine, inputs, file, RecordingOptions(amount)) as recorder:
                recorder.run()
            file.unlink()
            assert machine.outputs is not None
            return list(machine.outputs)

        runs: dict[str, Run] = {PLAIN: lambda: list(stepper.run(model, self.inputs).values())}
        return runs | {name: lambda amount=amount: recorded(amount) for amount, name in NAMES.items()}  # type: ignore[misc]

    def measure(self, rounds: int) -> timing.Report:
        """The ratios, the outputs compared first."""
        candidates = self.candidates()
        expected = candidates[PLAIN]()
        for name, run in candidates.items():
            for one, other in zip(run(), expected, strict=True):
                assert np.array_equal(one, other, equal_nan=True), f"{self.title}: {name} gives other numbers"
        return timing.report(self.title, timing.side_by_side(candidates, rounds), PLAIN)


def recordings(folder: Path, newton_iterations: int = 50_000, lstm_iterations: int = 2_000) -> Iterator[Recorded]:
    """Both loops."""
    number = np.array([2], np.float32)
    path = models.newton_model(folder, newton_iterations)
    yield Recorded(
        f"Newton's square root, {newton_iterations} iterations", path, {"number": number, "guess": number / 2}
    )
    weights = models.LstmWeights(512, 256)
    x = np.random.default_rng(1).standard_normal((1, lstm_iterations, 512)).astype(np.float32)
    state = np.zeros((1, 256), np.float32)
    path = models.lstm_model(folder, weights, lstm_iterations)
    yield Recorded(f"LSTM 512 -> 256, {lstm_iterations} iterations", path, {"x": x, "h": state, "c": state})


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    sizes = {"newton_iterations": 2_000, "lstm_iterations": 100} if quick else {}
    return [one.measure(rounds=1 if quick else 7) for one in recordings(folder, **sizes)]


if __name__ == "__main__":
    timing.main(__doc__, reports)
