"""The state of a run goes into a file and comes back out of it exactly, at every moment, in another process too."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.stop import fingerprint
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from stepper.recording import Pace, open_recording, record, recorded_states
from tests.engine.subjects import SUBJECTS
from tests.models import Graph, carried, joined, last, sliced
from tests.recording.recorded import SAMPLES, Case, case, finish, outputs_of, sample, sample_names
from tests.tables import few

REFUSED = {"growing", "iterator in an iterator"}
"""Subjects that OpenVINO does not run."""

RUNS = [(name, rules) for name in SUBJECTS for rules in ("spec", "openvino") if rules == "spec" or name not in REFUSED]
EVERY_ITERATION = Pace(seconds=1000, iterations=1)


@pytest.fixture(autouse=True)
def _all_snapshots_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_states, "_MOST_SNAPSHOTS", 10**9)


def check_every_moment(subject: Case, path: Path, every: Every, **options: object) -> None:
    """Take a snapshot at every event; then come back to each, and go on from it."""
    machine = Machine(subject.compiled, subject.inputs, **options)  # type: ignore[arg-type]
    seen = {}
    with record(machine, subject.inputs, path) as recorder:
        seen[0] = fingerprint(machine.snapshot())
        while not machine.finished:
            event = machine.advance(every)
            recorder.after(event)
            recorder.snapshot()
            seen[machine.tick] = fingerprint(machine.snapshot())
        recorder.finish()
    expected = outputs_of(machine)
    with open_recording(path) as recording:
        for tick, known in seen.items():
            other = recording.restored(tick=tick).machine
            assert other.tick == tick and fingerprint(other.snapshot()) == known
            assert finish(other) == expected
            assert other.states.keys() == machine.states.keys()


@pytest.mark.parametrize(("name", "rules"), few(4, RUNS, columns=2))
def test_every_move_of_every_subject_comes_back(tmp_path: Path, name: str, rules: str) -> None:
    subject = SUBJECTS[name]
    model = subject.graph().read(tmp_path)
    given = case(model, dict(enumerate(subject.inputs)), rules)
    check_every_moment(given, tmp_path / "run.sqlite", Every.OPERATION)
    check_every_moment(given, tmp_path / "lean.sqlite", Every.OPERATION, keep_values=False)


@pytest.mark.parametrize("name", few(4, sample_names()))
def test_every_iteration_of_every_sample_comes_back(tmp_path: Path, name: str) -> None:
    check_every_moment(sample(name), tmp_path / "run.sqlite", Every.ITERATION)


RESUMING = """
import hashlib, sys
from pathlib import Path
from stepper.recording import open_recording
from tests.recording.recorded import finish
for name in sys.argv[1:]:
    with open_recording(name) as recording:
        for (tick,) in recording.query("SELECT tick FROM snapshots ORDER BY tick"):
            outputs = finish(recording.restored(tick=tick).machine)
            print(Path(name).stem, tick, hashlib.sha256(b"".join(outputs)).hexdigest())
"""


def test_another_process_goes_on_from_every_iteration_of_every_sample(tmp_path: Path) -> None:
    files, expected = [], {}
    for name in sample_names():
        path = tmp_path / f"{name}.sqlite"
        machine = sample(name).recorded(path, "none", EVERY_ITERATION)
        expected[name] = hashlib.sha256(b"".join(outputs_of(machine))).hexdigest()
        files.append(str(path))
    command = [sys.executable, "-c", RESUMING, *files]
    result = subprocess.run(command, cwd=SAMPLES.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert {name for name, _tick, _digest in lines} == set(expected)
    assert len(lines) > 10 * len(expected)
    assert all(digest == expected[name] for name, _tick, digest in lines)


def test_random_operations_go_on_where_they_were(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    total = body.parameter("total", dims=(3,))
    low, high = body.constant(0.0), body.constant(1.0)
    shape = body.constant([3], np.int64)
    drawn = body.apply(
        "RandomUniform", shape, low, high, type="f32", dims=(3,), version="opset8", output_type="f32", global_seed=5,
        op_seed=7,
    )  # fmt: skip
    result = body.result(body.apply("Add", total, drawn))
    start = net.constant([0.0, 0.0, 0.0])
    final, scan = net.loop("l", body, 6, True, [carried(start, total, result)], [last(result), joined(result)])
    net.result(final, "final")
    net.result(scan, "scan")
    check_every_moment(case(net.read(tmp_path), {}), tmp_path / "run.sqlite", Every.OPERATION)


def test_variables_that_were_given_go_on(tmp_path: Path) -> None:
    given = case(SUBJECTS["counting"].graph().read(tmp_path), {})
    states = {"count": np.array([10], np.float32)}
    check_every_moment(given, tmp_path / "run.sqlite", Every.OPERATION, states=states)


def test_the_order_of_elements_in_memory_is_kept_for_sums_depend_on_it(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(7, 64, 33))
    turned = net.apply("Transpose", x, net.constant([2, 0, 1], np.int64), dims=(33, 7, 64))
    body = net.body()
    item, total = body.parameter("item", dims=(1, 7, 64)), body.parameter("total", dims=())
    axes = body.constant([0, 1, 2], np.int64)
    summed = body.apply("ReduceSum", item, axes, dims=(), keep_dims="false")
    result = body.result(body.apply("Add", total, summed, dims=()))
    inputs = [sliced(turned, item, 0), carried(net.constant(0.0), total, result)]
    net.result(net.loop("l", body, 33, True, inputs, [last(result)])[0], "final")
    x_value = np.random.default_rng(0).standard_normal((7, 64, 33)).astype(np.float32)
    check_every_moment(case(net.read(tmp_path), {"x": x_value}), tmp_path / "run.sqlite", Every.ITERATION)


def test_a_state_is_put_back_into_a_fresh_machine_without_running_anything(tmp_path: Path) -> None:
    subject = sample("nested_loop")
    path = tmp_path / "run.sqlite"
    subject.recorded(path, "none", EVERY_ITERATION)
    with open_recording(path) as recording:
        ticks = [tick for (tick,) in recording.query("SELECT tick FROM snapshots ORDER BY tick")]
        machine = recording.restored(tick=ticks[len(ticks) // 2]).machine
        assert machine.tick == ticks[len(ticks) // 2] and len(machine.stack) > 1
        assert recording.restored().machine.finished
