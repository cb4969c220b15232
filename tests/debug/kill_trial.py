"""Runs are killed at random moments, and go on: `python -m tests.debug.kill_trial --count 100`.

Every file must open and resume, the outputs be the same bits as those of a run that nobody disturbed, and the recording
say the same of every iteration. Each trial may be killed several times before it comes to its end.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import stepper
from stepper.recording import Pace, open_recording, resume
from tests.benchmarks.models import newton_model
from tests.recording.recorded import Case, case, outputs_of, tables

ROOT = Path(__file__).parents[2]
PACE = Pace(seconds=0.02)
_LIFE = 2e-5
"""Seconds that a child lives at most for each iteration: about as long as all of them take."""


def subject(path: Path) -> Case:
    number = np.array([2], np.float32)
    return case(stepper.read_model(path), {"number": number, "guess": number / 2})


def child(model: Path, file: Path) -> None:
    """Begin a recording, or go on with one, until somebody kills us."""
    if file.exists():
        recorder, _log = resume(file, model, pace=PACE)
    else:
        recorder = subject(model).recorder(file, "carried", PACE)
    with recorder:
        recorder.run()


class Trials:
    """One model, the undisturbed run, and as many disturbed ones as wanted."""

    def __init__(self, folder: Path, iterations: int, inner: int = 0) -> None:
        self.folder = folder
        self.longest_life = iterations * (1 + inner) * _LIFE
        self.model = newton_model(folder, iterations, inner)
        self.undisturbed = folder / "undisturbed.sqlite"
        self.outputs = outputs_of(subject(self.model).recorded(self.undisturbed, "carried"))
        self.tables = list(tables(self.undisturbed))

    def run(self, seed: int) -> int:
        """One trial; how often it was killed while it was running."""
        source = random.Random(seed)
        file = self.folder / f"killed_{seed}.sqlite"
        kills = sum(self._kill(file, source.uniform(0, self.longest_life)) for _ in range(source.randint(1, 3)))
        with open_recording(file) as recording:
            assert recording.query("SELECT count(*) FROM snapshots")[0][0] >= 1
        recorder, _log = resume(file, self.model)
        with recorder:
            assert recorder.run()
        assert outputs_of(recorder.machine) == self.outputs, f"trial {seed}: other outputs"
        assert list(tables(file)) == self.tables, f"trial {seed}: another recording"
        file.unlink()
        return kills

    def _kill(self, file: Path, life: float) -> bool:
        command = [sys.executable, "-m", "tests.debug.kill_trial", "--child", str(self.model), str(file)]
        process = subprocess.Popen(command, cwd=ROOT)
        while not file.exists() and process.poll() is None:
            time.sleep(0.002)
        time.sleep(life)
        was_running = process.poll() is None
        process.kill()
        process.wait()
        return was_running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=60_000)
    parser.add_argument("--child", nargs=2, metavar=("MODEL", "FILE"))
    options = parser.parse_args()
    if options.child:
        child(*map(Path, options.child))
        return
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder), options.iterations)
        kills = sum(trials.run(seed) for seed in range(options.count))
    print(f"{options.count} runs, killed {kills} times: all resumed, all the same")


if __name__ == "__main__":
    main()
