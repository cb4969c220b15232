"""What is in the file: SQLite that anyone can query, statistics as numpy has them, values, and what was chosen."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import stepper
from stepper.engine.frames import EventKind, Every, place
from stepper.errors import SessionError, UsageError
from stepper.recording import Pace, Recorder, RecordingOptions, file, open_recording
from stepper.recording.blobs import OF_RECORDING, BlobReader, BlobWriter, encoded, quick_hash
from stepper.recording.origin import update
from tests.engine.subjects import SUBJECTS
from tests.models import Graph, carried, joined, last, sliced
from tests.recording.recorded import Case, case, check_values, sample, sample_names, statistics, values_of, walked
from tests.tables import each_row

RUNS = [*sample_names(), *(f"subject {name}" for name in SUBJECTS)]


def run_named(name: str, folder: Path) -> Case:
    if not name.startswith("subject "):
        return sample(name)
    subject = SUBJECTS[name.removeprefix("subject ")]
    return case(subject.graph().read(folder), dict(enumerate(subject.inputs)))


@each_row("name", RUNS, quick=6)
def test_statistics_are_those_of_numpy(tmp_path: Path, name: str) -> None:
    subject = run_named(name, tmp_path)
    path = tmp_path / "run.sqlite"
    subject.recorded(path)
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT tick, loop, layer, output, iteration, dtype, shape, min, max, mean, std, nan, inf, zero FROM statistics"
    ).fetchall()
    found = {row[:4]: row[4:] for row in rows}
    assert len(found) == len(rows)
    for tick, iteration, loop, layer, output, value in walked(subject):
        row = found.pop((tick, loop, layer, output))
        assert row[0] == iteration and json.loads(row[2]) == list(value.shape)
        finite = value[np.isfinite(value)].astype(np.float64)
        expected = [finite.min(), finite.max(), finite.mean(), finite.std()] if finite.size else [np.nan] * 4
        given = [np.nan if number is None else number for number in row[3:7]]
        np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-12)
        assert row[7:] == (np.isnan(value).sum(), np.isinf(value).sum(), (value == 0).sum())
    assert not found


@each_row("name", RUNS, quick=6)
def test_all_values_come_back(tmp_path: Path, name: str) -> None:
    check_values(run_named(name, tmp_path), tmp_path / "run.sqlite")


def odd_values(width: int = 3) -> Graph:
    """Each iteration a slice: numbers that are none, huge and tiny ones; negated, the first of them alone, as bf16."""
    net = Graph()
    x, body = net.parameter("x", dims=(-1, width)), net.body()
    item, total = body.parameter("item", dims=(1, width)), body.parameter("total", dims=(1, width))
    added = body.apply("Add", total, item, name="added")
    body_outputs = [body.apply("Negative", item, name="negative")]
    body_outputs.append(body.apply("Convert", item, type="bf16", destination_type="bf16", name="half"))
    one = body.apply("Gather", item, body.constant([0], np.int64), body.constant(1, np.int64), dims=(1, 1), name="one")
    results = [body.result(value) for value in (*body_outputs, one)]
    result = body.result(added)
    inputs = [sliced(x, item), carried(net.constant([[0.0] * width]), total, result)]
    values = net.tensor_iterator("odd", body, inputs, [last(result), *(joined(value) for value in results)])
    for index, value in enumerate(values):
        net.result(value, f"out{index}")
    return net


def test_numbers_that_are_none_are_counted(tmp_path: Path) -> None:
    x = np.array(
        [[np.nan, 1, 2], [np.inf, np.nan, -np.inf], [0, -0.0, 1], [1e38, -1e38, 3e38], [1e-45, 2e-45, 0], [7, 7, 7]],
        np.float32,
    )
    subject = case(odd_values().read(tmp_path), {"x": x})
    subject.recorded(path := tmp_path / "run.sqlite")
    with open_recording(path) as recording:
        rows = statistics(recording, "negative")
        assert [(row["nan"], row["inf"], row["zero"]) for row in rows] == [
            (1, 0, 0), (1, 2, 0), (0, 0, 2), (0, 0, 0), (0, 0, 1), (0, 0, 0),
        ]  # fmt: skip
        assert [row["min"] for row in rows] == [-2, None, -1, -float(x[3, 2]), -float(x[4, 1]), -7]
        assert rows[5]["std"] == 0 and rows[0]["mean"] == -1.5
        np.testing.assert_allclose(rows[3]["std"], x[3].astype(np.float64).std(), rtol=1e-12)
        single = statistics(recording, "one")
        assert [(row["min"], row["nan"], row["inf"]) for row in single[:3]] == [(None, 1, 0), (None, 0, 1), (0, 0, 0)]
        assert statistics(recording, "half")[5]["dtype"] == "bf16"
        np.testing.assert_array_equal([value for _, value in values_of(recording, "item")], x[:, None])


def test_it_is_one_plain_file_with_the_documented_tables(tmp_path: Path) -> None:
    sample("for_loop").recorded(path := tmp_path / "run.sqlite")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.sqlite"]
    connection = sqlite3.connect(path)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE sql IS NOT NULL")}
    assert names == {*file.TABLES, *file.VIEWS}
    assert file.__doc__ is not None and all(name in file.__doc__ for name in names)
    meta = {name: json.loads(value) for name, value in connection.execute("SELECT * FROM meta")}
    assert meta["schema"] == file.VERSION and meta["rules"] == "spec" and meta["product"] == stepper.__version__
    contents = connection.execute("SELECT content FROM blobs").fetchall()
    assert contents and all(np.load(io.BytesIO(content), allow_pickle=False).size for (content,) in contents)


def test_events_are_those_that_the_machine_tells(tmp_path: Path) -> None:
    subject = sample("nested_loop")
    subject.recorded(path := tmp_path / "run.sqlite")
    machine = subject.machine()
    expected = []
    for event in machine.run(Every.ITERATION):
        if event.kind in (EventKind.ENTERED, EventKind.LEFT, EventKind.ITERATION):
            depth = len(machine.stack) - (event.kind is not EventKind.LEFT)
            expected.append((event.tick, event.kind.name, depth))
    with open_recording(path) as recording:
        rows = recording.query("SELECT tick, kind, depth, path FROM events ORDER BY tick")
    assert [row[:3] for row in rows] == expected
    assert rows[0][3] == place([machine.stack[0]] if machine.stack else [], None) + " > Loop 'passes'"


def test_contents_are_stored_once(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(2000,)), net.body()
    state = body.parameter("state", dims=(2000,))
    same = body.result(body.apply("Abs", state, name="same"))
    net.result(net.loop("l", body, 500, True, [carried(x, state, same)], [last(same)])[0])
    subject = case(net.read(tmp_path), {"x": np.ones(2000, np.float32)})
    subject.recorded(path := tmp_path / "run.sqlite", "none", Pace(1000, 5))
    assert path.stat().st_size < 100 * 8000


def test_contents_of_the_same_quick_hash_are_told_apart_and_damage_is_found() -> None:
    connection = sqlite3.connect(":memory:")
    file.create(connection)
    values = [np.arange(4, dtype=np.float32), np.ones(4, np.float32), np.arange(4, dtype=np.float32)]
    with patch("stepper.recording.blobs.quick_hash", return_value=bytes(16)):
        first, second, again = map(BlobWriter(connection, OF_RECORDING).store, values)
    assert first == again != second
    digests = dict(connection.execute("SELECT id, hash FROM blobs"))
    assert digests[second] == hashlib.blake2b(encoded(values[1]), digest_size=16).digest()
    assert np.array_equal(BlobReader(connection, OF_RECORDING).tensor(second), values[1])
    with pytest.raises(SessionError, match=f"the blob {first} is damaged"):
        BlobReader(connection, OF_RECORDING).tensor(first)
    for at in range(len(encoded(values[0]))):
        content = bytearray(encoded(values[0]))
        content[at] ^= 16
        assert quick_hash(bytes(content)) != quick_hash(encoded(values[0]))


@each_row(
    ("text", "expected"),
    [("0:3", [0, 1, 2]), ("-1", [9]), ("0:2,-1", [0, 1, 9]), ("-3:", [7, 8, 9]), (":-8", [0, 1]), ("4", [4]),
     ("-4:-2", [6, 7]), ("8:20", [8, 9]), ("", list(range(10)))],
)  # fmt: skip
def test_iterations_are_chosen_as_slices_are(tmp_path: Path, text: str, expected: list[int]) -> None:
    sample("for_loop").recorded(path := tmp_path / "run.sqlite", iterations=text)
    with open_recording(path) as recording:
        assert [row[0] for row in recording.query("SELECT iteration FROM iterations ORDER BY tick")] == expected


def test_operations_are_chosen_by_name(tmp_path: Path) -> None:
    subject = SUBJECTS["sums"]
    given = case(subject.graph().read(tmp_path), dict(enumerate(subject.inputs)))
    given.recorded(path := tmp_path / "run.sqlite", operations="^add")
    with open_recording(path) as recording:
        assert recording.query("SELECT DISTINCT name FROM statistics") == [("added",)]


@each_row(("amount", "stored"), [("all", 4), ("carried", 1), ("stats", 0), ("none", 0)])
def test_how_much_is_chosen(tmp_path: Path, amount: str, stored: int) -> None:
    subject = SUBJECTS["sums"]
    given = case(subject.graph().read(tmp_path), dict(enumerate(subject.inputs)))
    given.recorded(path := tmp_path / "run.sqlite", amount)
    with open_recording(path) as recording:
        assert recording.query("SELECT count(DISTINCT port) FROM stacks") == [(stored,)]
        statistics = recording.query("SELECT count(*) FROM statistics")[0][0]
        assert statistics == (0 if amount == "none" else 5 * 4)


@each_row("text", ["x", "1:2:3", "1,,2", "--1", "1" * 30, ",".join(["1"] * 200)])
def test_a_wrong_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="range of iterations"):
        RecordingOptions.parse("all", None, text)


def test_a_wrong_pattern_is_refused() -> None:
    with pytest.raises(UsageError, match="regular expression"):
        RecordingOptions.parse("all", "(")
    with pytest.raises(UsageError, match="no amount 'some'"):
        RecordingOptions.parse("some")


def test_what_is_kept_comes_back_in_order(tmp_path: Path) -> None:
    sample("for_loop").recorded(path := tmp_path / "run.sqlite")
    for rows in ([{"at": 1}, {"at": 2}], [{"at": 3}, {"at": 0}]):
        update(path, lambda _blobs, rows=rows: {"breakpoint": rows})
        with open_recording(path) as recording:
            assert recording.kept("breakpoint") == rows and recording.kept("watch") == []


def test_a_recording_can_be_looked_at_while_it_is_written(tmp_path: Path) -> None:
    with sample("for_loop").recorder(path := tmp_path / "run.sqlite", pace=Pace(1000, 3)) as recorder:
        assert recorder.run()
        with open_recording(path) as recording:
            assert len(statistics(recording, "balance_now")) >= 0
            assert recording.query("SELECT count(*) FROM iterations") == [(10,)]


def test_the_log_beside_the_file_stays_small_on_a_small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = case(odd_values(30_000).read(tmp_path), {"x": np.random.default_rng(1).random((40, 30_000), np.float32)})
    logs: list[int] = []
    snapshot = Recorder.snapshot

    def observed(recorder: Recorder) -> None:
        snapshot(recorder)
        logs.append(recorder.path.with_name(f"{recorder.path.name}-wal").stat().st_size)

    monkeypatch.setattr(Recorder, "snapshot", observed)
    largest = []
    for free in (20 * 2**20, 2**40):
        monkeypatch.setattr("shutil.disk_usage", lambda _path, free=free: SimpleNamespace(free=free))
        logs.clear()
        subject.recorded(path := tmp_path / f"{free}.sqlite", pace=Pace(1000, 4))
        largest.append(max(logs))
    size = path.stat().st_size
    assert size > 12 * 2**20 and largest[0] < size / 3 < largest[1]
