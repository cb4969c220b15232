"""Observers of a run: told of every loop, branch and iteration; what they tap is what a run by iterations has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.engine.frames import Activation, EventKind, Frame, RunObserver, Taps
from tests.benchmarks.models import newton_model
from tests.debug.debugged import sample

ITERATIONS = 1000


class _Collector(RunObserver):
    """Keeps the body's first Result of every iteration, however it comes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: list[Any] = []
        self.told = self.done = 0

    def iteration_closed(self, frame: Frame) -> None:
        self.told += 1
        self.values.append(frame.values[frame.program.results[1]])

    def taps(self, frame: Frame) -> Taps:
        before = len(self.values)

        def done() -> None:
            self.done += 1
            assert len(self.values) <= before + self.most

        return Taps([(self.values.append, frame.program.results[1])], self.most, done)


def test_taps_and_closes_together_have_every_iteration_once(tmp_path: Path) -> None:
    model = stepper.read_model(newton_model(tmp_path, ITERATIONS))
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    expected = stepper.run(model, inputs)["roots"]
    for most in (1, 7, 10**9):
        machine = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, inputs))
        collector = _Collector(most)
        machine.observers = (collector,)
        for _event in machine.run(stepper.Every.END):
            pass
        assert np.array_equal(np.concatenate(collector.values), expected)
        assert collector.told < ITERATIONS or most == 1, "most iterations came by taps"
        assert collector.done, "the end of the taps was told"


class _Counter(RunObserver):
    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def entered(self, stack: Sequence[Frame]) -> None:
        self.seen["entered"] += 1

    def iteration_closed(self, frame: Frame) -> None:
        self.seen["closed"] += 1

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        self.seen["left"] += 1

    def branch_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        self.seen["left"] += 1


def test_entries_closes_and_exits_are_those_that_events_tell() -> None:
    for name in ("nested_loop", "date_normaliser"):
        machine = sample(name).machine
        events: Counter[EventKind] = Counter(event.kind for event in machine.run(stepper.Every.OPERATION))
        observed = sample(name).machine
        counter = _Counter()
        observed.observers = (counter,)
        for _event in observed.run(stepper.Every.ITERATION):
            pass
        assert counter.seen["entered"] == counter.seen["left"] == events[EventKind.ENTERED] > 1
        assert counter.seen["closed"] == events[EventKind.ITERATION]
        assert observed.twin().observers == ()
