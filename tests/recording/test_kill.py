"""Runs that are interrupted go on: killed, paused, stopped by a limit or by an error."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from stepper.engine.frames import Every
from stepper.errors import LimitReached, UsageError
from stepper.recording import Pace, open_recording, record, resume
from tests.debug.kill_trial import Trials
from tests.recording.recorded import outputs_of, sample, sample_names, tables


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("killed"), iterations=12_000)


@pytest.mark.parametrize("seed", range(6))
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
        assert recording.restored().machine.tick == recorder.machine.tick == 40
        assert recording.outputs() == {}
    recorder, _log = resume(path)
    with recorder:
        assert recorder.run()
    assert outputs_of(recorder.machine) == sample("while_loop").outputs()


def test_a_run_that_met_a_limit_goes_on_with_a_higher_one(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    subject = sample("while_loop")
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


def test_the_file_can_go_on_from_the_moment_when_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepper.recording.recorder.file.connect", dies)
    path, subject = tmp_path / "run.sqlite", sample("nested_loop")
    with pytest.raises(KeyboardInterrupt):
        subject.recorder(path)
    monkeypatch.undo()
    recorder, _log = resume(path)
    with recorder:
        assert recorder.run()
    assert outputs_of(recorder.machine) == subject.outputs()


def test_a_recording_may_begin_in_the_middle_of_a_run(tmp_path: Path) -> None:
    path, subject = tmp_path / "run.sqlite", sample("nested_loop")
    machine = subject.machine()
    machine.advance(Every.END, 80)
    with record(machine, subject.inputs, path) as recorder:
        machine.request_pause()
        assert not recorder.run()
    recorder, _log = resume(path)
    with recorder:
        assert recorder.machine.tick >= 80 and len(recorder.machine.stack) == 3
        assert recorder.run()
    assert outputs_of(recorder.machine) == subject.outputs()


def test_what_an_earlier_file_of_the_name_left_behind_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.with_name("run.sqlite-wal").write_bytes(b"old")
    with pytest.raises(UsageError, match=r"run\.sqlite-wal: is left over"):
        sample("for_loop").recorder(path)


def test_a_journal_that_a_killed_process_left_is_put_in_order(tmp_path: Path) -> None:
    path, killed = tmp_path / "run.sqlite", tmp_path / "killed.sqlite"
    subject = sample("nested_loop")
    subject.recorded(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.execute("UPDATE snapshots SET state = ''")
    connection.execute("INSERT INTO blobs (hash, content) VALUES (x'00', zeroblob(1000000))")
    for ending in ("", "-journal"):
        shutil.copy(f"{path}{ending}", f"{killed}{ending}")
    connection.close()
    assert killed.read_bytes() != path.read_bytes(), "the transaction has reached the file already"
    with open_recording(killed) as recording:
        assert outputs_of(recording.restored().machine) == subject.outputs()
