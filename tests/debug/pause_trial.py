"""A million iterations, gone back through with pauses at random times: `python -m tests.debug.pause_trial`.

`reverse_continue` from the end to a breakpoint far back is paused ten times, each time at a random moment, and told
again: it must end where it ends undisturbed. Printed is how long a pause took to be heeded, at most.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from tests.benchmarks.models import newton_model
from tests.debug.debugged import state_of


def trial(debugger: Debugger, source: random.Random, longest: float) -> tuple[int, float]:
    """Go back with pauses; how many there were, and the longest that one took."""
    pauses, slowest = 0, 0.0
    while True:
        asked: list[float] = []

        def pause(asked: list[float] = asked) -> None:
            asked.append(time.perf_counter())
            debugger.pause()

        timer = threading.Timer(source.uniform(0, longest), pause)
        timer.start()
        present = debugger.machine.tick
        stop = debugger.reverse_continue()
        ended = time.perf_counter()
        timer.cancel()
        if stop.reason is not Reason.PAUSED:
            return pauses, slowest
        assert stop.tick == present, "the present stays"
        pauses, slowest = pauses + 1, max(slowest, ended - asked[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    source, number = random.Random(0), np.array([2], np.float32)
    with tempfile.TemporaryDirectory() as folder:
        model = stepper.read_model(newton_model(Path(folder), options.iterations))
    debugger = Debugger(model, {"number": number, "guess": number})
    debugger.break_at(f"newton@{options.iterations // 10}")
    debugger.last()
    began = time.perf_counter()
    undisturbed, state = debugger.reverse_continue(), state_of(debugger.timeline)
    seconds = time.perf_counter() - began
    print(f"undisturbed: {seconds:.1f} s to iteration {undisturbed.iteration}")
    for number_of in range(options.trials):
        debugger.last()
        pauses, slowest = trial(debugger, source, seconds / 2)
        assert debugger.stop == undisturbed and state_of(debugger.timeline) == state and not debugger.timeline.warnings
        print(f"trial {number_of}: {pauses} pauses, heeded within {slowest * 1000:.0f} ms: the same place")


if __name__ == "__main__":
    main()
