"""What makes a run quick, as counts: calls, bytes and files, the same on each machine, which times are not."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.ir.model import Model
from stepper.recording import Pace, RecordingOptions, record
from tests.benchmarks import models, reading

FEW, MANY = 2_500, 5_000


def newton(folder: Path, iterations: int) -> tuple[Model, dict[str, Array]]:
    number = np.array([2], np.float32)
    return stepper.read_model(models.newton_model(folder, iterations)), {"number": number, "guess": number / 2}


def converted_newton(folder: Path, iterations: int) -> tuple[Model, dict[str, Array]]:
    model = stepper.read_model(models.newton_model(folder, iterations, as_converted=True))
    return model, newton(folder, iterations)[1]


def lstm(folder: Path, iterations: int) -> tuple[Model, dict[str, Array]]:
    weights = models.LstmWeights(64, 32)
    state = np.zeros((1, weights.hidden), np.float32)
    x = np.ones((1, iterations, weights.inputs), np.float32)
    return stepper.read_model(models.lstm_model(folder, weights, iterations)), {"x": x, "h": state, "c": state}


LOOPS: Final = {"newton": newton, "converted newton": converted_newton, "lstm": lstm}


def calls_of_a_run(model: Model, inputs: dict[str, Array]) -> int:
    """Calls of functions in Python and of built-in ones, which numpy's own arithmetic is not."""
    return calls_of(lambda: stepper.run(model, inputs))


def calls_of(made: Callable[[], object]) -> int:
    """The same of anything."""
    counted: Counter[str] = Counter()

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        counted[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        made()
    finally:
        sys.setprofile(before)
    return counted["call"] + counted["c_call"]


def most_bytes_of_a_run(model: Model, inputs: dict[str, Array]) -> int:
    tracemalloc.start()
    try:
        stepper.run(model, inputs)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def each(count: Any, loop: str, folder: Path) -> float:
    """What a run of twice as many iterations counts more, for each of them."""
    found = []
    for iterations in (FEW, MANY):
        model, inputs = LOOPS[loop](folder, iterations)
        stepper.run(model, inputs)  # the first run compiles
        found.append(count(model, inputs))
    return (found[1] - found[0]) / (MANY - FEW)


@pytest.mark.parametrize(("loop", "most"), [("newton", 3.1), ("converted newton", 6.1), ("lstm", 24.1)])
def test_an_iteration_makes_few_calls_beside_those_of_numpy(loop: str, most: float, tmp_path: Path) -> None:
    assert 0 < each(calls_of_a_run, loop, tmp_path) <= most


@pytest.mark.parametrize(("loop", "most"), [("newton", 4), ("lstm", 12)])
def test_the_run_behind_an_overview_makes_few_calls_more_than_one_without(
    loop: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Snapshots stand as far apart as no time tells: on a busy machine there would be more of them.
    monkeypatch.setattr("stepper.debug.timeline.perf_counter", lambda: 0.0)

    def continued(model: Model, inputs: dict[str, Array]) -> int:
        return calls_of(Debugger(model, inputs).continue_)

    def recorded(model: Model, inputs: dict[str, Array]) -> int:
        debugger = Debugger(model, inputs)
        return calls_of(lambda: debugger.run_overview(births=False))

    assert each(recorded, loop, tmp_path) <= each(continued, loop, tmp_path) + most


@pytest.mark.parametrize(("loop", "most"), [("newton", 12), ("lstm", 25)])
def test_a_recorded_run_makes_few_calls_more_than_one_without(loop: str, most: int, tmp_path: Path) -> None:
    def recorded(model: Model, inputs: dict[str, Array]) -> int:
        path = tmp_path / "run.sqlite"
        path.unlink(missing_ok=True)
        bound = stepper.bind_inputs(model, inputs)
        machine = stepper.Machine(stepper.compile_model(model), bound, keep_values=False)
        with record(machine, bound, path, RecordingOptions.parse("stats"), Pace(1000)) as recorder:
            return calls_of(recorder.run)

    assert each(recorded, loop, tmp_path) <= each(calls_of_a_run, loop, tmp_path) + most


@pytest.mark.parametrize(("loop", "piece"), [("newton", 4), ("lstm", 4 * 32)])
def test_an_iteration_leaves_its_piece_of_the_scan_output_and_no_more(loop: str, piece: int, tmp_path: Path) -> None:
    # The buffer is outgrown and copied now and then, and is there twice meanwhile.
    assert piece <= each(most_bytes_of_a_run, loop, tmp_path) <= 5 * piece


_FILES: Final = """
import sys
opened = []
folder = sys.argv[1]
def noted(event, arguments):
    if event == "open" and str(arguments[0]).startswith(folder):
        opened.append(str(arguments[0])[len(folder) + 1:])
import numpy
import stepper
sys.addaudithook(noted)
model = stepper.read_model(folder + "/model.xml")
given = {"number": numpy.full(1, 2, "f4"), "guess": numpy.ones(1, "f4")}
for _ in range(3):
    stepper.run(model, given)
print(*sorted(opened))
"""


def test_three_runs_open_each_file_of_a_model_once(tmp_path: Path) -> None:
    path = models.newton_model(tmp_path, 10)
    path.rename(tmp_path / "model.xml")
    path.with_suffix(".bin").rename(tmp_path / "model.bin")
    command = [sys.executable, "-c", _FILES, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.split() == ["model.bin", "model.xml"]


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not tell how much a process read")
def test_opening_a_model_reads_its_xml_and_nothing_of_its_weights(tmp_path: Path) -> None:
    path = reading.write_model(tmp_path, additions=500, megabytes=64)
    model = stepper.read_model(path)  # what is imported on the way is read now
    del model

    def read_so_far() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read_so_far()
    own = read_so_far() - before
    before = read_so_far()
    model = stepper.read_model(path)
    assert len(model.graph.layers) == 1_002
    grown, size = read_so_far() - before - own, path.stat().st_size
    assert size <= grown <= 1.1 * size + 4096


def test_an_operation_outside_of_loops_makes_no_calls_beside_its_kernel(tmp_path: Path) -> None:
    found = []
    for additions in (100, 200):
        folder = tmp_path / str(additions)
        folder.mkdir()
        model = stepper.read_model(reading.write_model(folder, additions, megabytes=1))
        inputs = {"x": np.ones((1, model.graph.parameters[0].outputs[0].dims[1]), np.float32)}
        stepper.run(model, inputs)
        found.append(calls_of_a_run(model, inputs))
    assert (found[1] - found[0]) / 100 <= 1  # Add is numpy's own
