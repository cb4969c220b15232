"""Going back: a snapshot of any moment, put back any number of times, and the run goes on from there as it did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.engine.frames import EventKind, Every
from tests.engine.subjects import SUBJECTS, Subject, line, outputs_of, told, written

ALL = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
GRANULARITIES = pytest.mark.parametrize("every", list(Every), ids=lambda every: every.name)


@ALL
@GRANULARITIES
def test_from_a_snapshot_of_any_event_the_run_goes_on_as_it_did(tmp_path: Path, subject: Subject, every: Every) -> None:
    machine = subject.machine(subject.compiled(tmp_path))
    snapshots = [machine.snapshot()]
    lines = []
    for event in machine.run(every):
        lines.append(line(machine, event))
        snapshots.append(machine.snapshot())
    outputs, states = outputs_of(machine), dict(machine.states)
    contents = [written(snapshot.frames) for snapshot in snapshots]
    for index in [*reversed(range(len(snapshots))), *range(len(snapshots))]:
        machine.restore(snapshots[index])
        assert written(machine.stack) == contents[index]
        assert told(machine, every) == lines[index:]
        assert outputs_of(machine) == outputs and machine.states == states
    assert [written(snapshot.frames) for snapshot in snapshots] == contents


@ALL
def test_a_snapshot_serves_another_machine_and_another_granularity(tmp_path: Path, subject: Subject) -> None:
    compiled = subject.compiled(tmp_path)
    machine = subject.machine(compiled)
    lines, snapshots = [], []
    for event in machine.run(Every.OPERATION):
        lines.append(line(machine, event))
        snapshots.append(machine.snapshot())
    for index, snapshot in enumerate(snapshots):
        for every in Every:
            other = subject.machine(compiled)
            other.restore(snapshot)
            expected = [found for found in lines[index + 1 :] if EventKind[found[0]].is_told(every)]
            assert told(other, every) == expected
            assert outputs_of(other) == outputs_of(machine)


def test_a_snapshot_from_before_the_end_takes_the_outputs_back(tmp_path: Path) -> None:
    subject = SUBJECTS["sums"]
    machine = subject.machine(subject.compiled(tmp_path))
    start = machine.snapshot()
    told(machine, Every.END)
    finish = machine.snapshot()
    machine.restore(start)
    assert machine.outputs is None and not machine.finished and machine.tick == 0
    machine.restore(finish)
    assert machine.outputs is not None and machine.finished and machine.tick == finish.tick


def test_another_future_does_not_change_the_first_one(tmp_path: Path) -> None:
    subject = SUBJECTS["sums"]
    machine = subject.machine(subject.compiled(tmp_path))
    told(machine, Every.END)
    outputs = outputs_of(machine)
    machine = subject.machine(machine.compiled)
    iterations = [event for event in machine.run(Every.ITERATION) if event.kind is EventKind.ITERATION][:1]
    assert iterations
    machine = subject.machine(machine.compiled)
    while machine.stack[-1].activation is None or machine.stack[-1].activation.iteration < 1:
        machine.advance(Every.ITERATION)
    fork = machine.snapshot()
    frame = machine.stack[-1]
    frame.values[frame.program.results[0]] = np.array([1000], np.float32)
    told(machine, Every.OPERATION)
    changed = outputs_of(machine)
    machine.restore(fork)
    told(machine, Every.OPERATION)
    assert outputs_of(machine) == outputs
    # ((((1000 - 3) * 2 - 4) * 2) - 5) * 2 where it was changed; the pieces of before are those that they were
    assert changed[0][1] == [7950.0]
    assert changed[1][1][-2:] == outputs[1][1][-2:] and changed[1][1][0] == 7950.0


def test_variables_go_back_too(tmp_path: Path) -> None:
    subject = SUBJECTS["counting"]
    machine = subject.machine(subject.compiled(tmp_path), states={"count": np.array([10], np.float32)})
    start = machine.snapshot()
    for _ in range(2):
        told(machine, Every.ITERATION)
        assert outputs_of(machine)[0][1] == [10, 11, 12] and machine.states["count"].tolist() == [13]
        machine.restore(start)
        assert machine.states["count"].tolist() == [10]
