"""Recordings of every earlier schema are read for as long as the project exists: files that the code of then has made.

Each archive in `versions` has a model, a recording of its whole run with all values, one that was interrupted, and a
session. What they must give is the model's run.
"""

from __future__ import annotations

import sqlite3
import tarfile
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cli.cli_program import main
from stepper.debug.debugger import Debugger
from stepper.errors import SessionError
from stepper.recording import open_recording, resume
from stepper.recording.file import STEPS, VERSION
from stepper.session.session_files import restore_session, save_session
from stepper.tensors.statistics import recorded_statistics
from tests.recording.recorded import Case, case, finish, outputs_of, tables, values_of, walked

ARCHIVES = Path(__file__).parent / "versions"


@pytest.fixture(params=sorted(STEPS))
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder with the files of one version."""
    with tarfile.open(ARCHIVES / f"schema_{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def subject(folder: Path) -> Case:
    with open_recording(folder / "whole.sqlite") as recording:
        return case(stepper.read_model(folder / "model.xml"), dict(recording.inputs()))


def test_values_statistics_and_outputs_are_those_of_the_run_and_the_file_stays_as_it_is(kept: Path) -> None:
    path, given = kept / "whole.sqlite", subject(kept)
    before = path.read_bytes()
    path.chmod(0o444)
    with open_recording(path) as recording:
        expected: dict[tuple[str, int], list[bytes]] = {}
        names = {
            row[:3]: row[3]
            for row in recording.query(
                "SELECT l.path, p.layer, p.output, p.name FROM ports AS p JOIN levels AS l ON l.id = p.level"
            )
        }
        rows = []
        for tick, _iteration, loop, layer, output, value in walked(given):
            name = str(names[loop, layer, output])
            expected.setdefault((name, output), []).append(np.asarray(value).tobytes())
            rows.append((tick, name, output, *recorded_statistics(value).values()))
        for (name, output), values in expected.items():
            assert sorted(np.asarray(value).tobytes() for _, value in values_of(recording, name, output)) == sorted(
                values
            )
        statistics = "SELECT tick, name, output, min, max, mean, std, nan, inf, zero FROM statistics"
        assert sorted(recording.query(statistics), key=repr) == sorted(rows, key=repr)
        outputs = [f"{value.dtype}{value.shape}".encode() + value.tobytes() for value in recording.outputs().values()]
        assert outputs == given.outputs()
        assert finish(recording.restored().machine) == given.outputs()
    assert path.read_bytes() == before and sorted(kept.glob("whole*")) == [path]


def test_a_run_goes_on_in_the_file_which_is_then_of_this_version(kept: Path) -> None:
    path, given = kept / "interrupted.sqlite", subject(kept)
    recorder, _log = resume(path)
    with recorder:
        assert recorder.run()
        assert outputs_of(recorder.machine) == given.outputs()
    given.recorded(kept / "now.sqlite")
    assert dict(tables(path)) == dict(tables(kept / "now.sqlite"))
    schemas = []
    for one in (path, kept / "now.sqlite"):
        connection = sqlite3.connect(one)
        schemas.append(sorted(connection.execute("SELECT type, name, sql FROM sqlite_master")))
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
    assert schemas[0] == schemas[1]


def test_a_session_is_restored_and_saved_again(kept: Path) -> None:
    given = subject(kept)
    for _again in range(2):
        debugger = Debugger.of(given.machine(), given.inputs)
        assert not restore_session(debugger, kept / "work.session").empty
        assert debugger.machine.tick == 29 and "'pairs_of_neighbours' #1" in debugger.stop.place
        assert [one.description.text for one in debugger.breakpoints] == ["swaps_next"]
        save_session(debugger, kept / "work.session")


def test_commands_read_it(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(kept / "whole.sqlite")
    assert main(["print", path, "passes::order", "passes@0::swaps_next@2:"]) == 0
    assert main(["find", path, "swaps_next > 1 and passes_done == 0", "last"]) == 1
    assert main(["find", path, "nan"]) == 0
    printed = capsys.readouterr().out
    assert "@2  f32[5] [1., 2., 4., 5., 8.]" in printed and "@0 @3  i64[] 3" in printed
    assert "tick 59  model > Loop 'passes' #0 > Loop 'pairs_of_neighbours' #3" in printed


@pytest.mark.parametrize(("version", "advice"), [(VERSION + 1, "install a newer one"), (3, "record the run again")])
def test_another_version_is_refused_with_what_to_do(tmp_path: Path, version: int, advice: str) -> None:
    with tarfile.open(ARCHIVES / "schema_5.tar.xz") as archive:
        archive.extract("whole.sqlite", tmp_path, filter="data")
    path = tmp_path / "whole.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    for call in (open_recording, resume):
        with pytest.raises(SessionError, match=f"^{path}: has version {version} of the schema, .*: {advice}$"):
            call(path)  # type: ignore[operator]
