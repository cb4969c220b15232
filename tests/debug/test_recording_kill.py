"""Runs that are interrupted go on: killed, paused, stopped by a limit or by an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepper.debug.recording import Pace, open_recording, resume
from stepper.engine import Every
from stepper.errors import LimitReached
from tests.debug.kill_trial import Trials
from tests.debug.recorded import outputs_of, sample, sample_names, tables


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("killed"), iterations=20_000)


@pytest.mark.parametrize("seed", range(12))
def test_a_killed_run_opens_and_goes_on_to_the_same(trials: Trials, seed: int) -> None:
    trials.run(seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_of_nested_loops_goes_on_to_the_same(tmp_path: Path, seed: int) -> None:
    Trials(tmp_path, iterations=2000, inner=5).run(seed)


@pytest.mark.parametrize("name", sample_names())
def test_a_run_that_goes_on_records_what_an_undisturbed_one_does(tmp_path: Path, name: str) -> None:
    subject = sample(name)
    whole = tmp_path / "whole.sqlite"
    expected = outputs_of(subject.recorded(whole))
    path = tmp_path / "run.sqlite"
    with subject.recorder(path, pace=Pace(1000, 2)) as recorder:
        machine = recorder.machine
        for _event in range(9):
            if not machine.finished:
                recorder.after(machine.advance(Every.ITERATION))
    while True:
        recorder, _log = resume(path, pace=Pace(1000, 2))
        with recorder:
            machine = recorder.machine
            for _event in range(9):
                if not machine.finished:
                    recorder.after(machine.advance(Every.ITERATION))
            if machine.finished:
                recorder.finish()
                break
            recorder.snapshot()
    assert outputs_of(machine) == expected
    assert list(tables(path)) == list(tables(whole))


def test_a_paused_run_goes_on_from_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with sample("while_loop").recorder(path) as recorder:
        recorder.machine.advance(Every.END, 40)
        recorder.machine.request_pause()
        assert not recorder.run()
    with open_recording(path) as recording:
        assert recording.machine().tick == recorder.machine.tick == 40
        assert recording.outputs() == {}
    recorder, _log = resume(path)
    with recorder:
        assert recorder.run()
    assert outputs_of(recorder.machine) == sample("while_loop").outputs()


def test_a_run_that_met_a_limit_goes_on_with_a_higher_one(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    subject = sample("while_loop")
    from stepper.debug.recording import record

    with record(subject.machine(max_iterations=5), subject.inputs, path) as recorder, pytest.raises(LimitReached):
        recorder.run()
    recorder, _log = resume(path, max_iterations=10_000)
    with recorder:
        assert recorder.run()
    assert outputs_of(recorder.machine) == subject.outputs()


def test_a_finished_run_gives_its_outputs_again(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    expected = outputs_of(sample("for_loop").recorded(path))
    for _ in range(2):
        recorder, log = resume(path)
        with recorder:
            assert recorder.run()
        assert outputs_of(recorder.machine) == expected
        assert [summary.iterations for summary in log.summaries] == [10]
