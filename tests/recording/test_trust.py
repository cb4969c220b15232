"""A file is never trusted: whatever is in it, there is an answer or one message; never a crash, never a hang."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from stepper.compare.comparison import compare_with
from stepper.compare.references.recorded import RecordingReference
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.inspection.views import Which
from stepper.engine.frames import Every
from stepper.errors import SessionError, StepperError
from stepper.recording import Pace, file, open_recording, resume
from stepper.recording.queries import find_non_finite, find_recorded, select
from stepper.recording.recorded_states import checksum
from tests.damage import Flips, flipped, flips
from tests.engine.subjects import SUBJECTS
from tests.recording.recorded import case, finish, outputs_of, sample, seal, statistics, values_of

NUMBERS = itertools.count()
Change = Callable[[sqlite3.Connection], object]


@pytest.fixture
def interrupted(tmp_path: Path, recorded_once: Path) -> Path:
    """A recording that ends in the middle of a nested loop."""
    return Path(shutil.copy(recorded_once, tmp_path))


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "run.sqlite"
    with sample("nested_loop").recorder(path, pace=Pace(1000, 1)) as recorder:
        while recorder.machine.tick < 80:
            recorder.after(recorder.machine.advance(Every.LOOP, 80))
        recorder.snapshot()
    return path


def changed(path: Path, change: Change) -> Path:
    """A copy of a recording with something done to it."""
    copy = path.with_name(f"changed_{next(NUMBERS)}.sqlite")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as connection:
        change(connection)
        connection.commit()
    return copy


def use(path: Path) -> None:
    """Everything that reads a recording, and the run to its end."""
    with open_recording(path) as recording:
        finish(recording.restored().machine)
        recording.inputs()
        recording.outputs()
        statistics(recording, "swaps")
        for name in recording.query("SELECT DISTINCT name FROM ports")[:3]:
            list(values_of(recording, str(name[0])))
    recorder, _log = resume(path)
    with recorder:
        recorder.run()


def with_state(edit: Callable[[Any], object]) -> Change:
    """Edit the state of the last snapshot, and seal it again."""

    def change(connection: sqlite3.Connection) -> None:
        tick, text = connection.execute("SELECT tick, state FROM snapshots ORDER BY tick DESC LIMIT 1").fetchone()
        state = json.loads(text)
        edited = edit(state)
        text = edited if isinstance(edited, str) else json.dumps(state)
        connection.execute(
            "UPDATE snapshots SET state = ?, checksum = ? WHERE tick = ?", (text, checksum(tick, text), tick)
        )

    return change


def set_in(*path: Any) -> Callable[[Any], None]:
    """Put the last of the path where the others lead."""

    def edit(state: Any) -> None:
        *steps, last, value = path
        for step in steps:
            state = state[step]
        state[last] = value

    return edit


def set_all_values(reference: Any) -> Callable[[Any], None]:
    """Put a reference in the place of all values of the first frame."""

    def edit(state: Any) -> None:
        frame = state["frames"][0]
        frame["values"] = dict.fromkeys(frame["values"], reference)

    return edit


STATES = {
    "no JSON": lambda _state: "{",
    "deep JSON": lambda _state: "[" * 100_000,
    "another JSON": lambda _state: "[1]",
    "a huge number": lambda _state: "1" + "0" * 5000,
    "nothing left": set_in("frames", []),
    "frames that are none": set_in("frames", 7),
    "a negative tick": set_in("tick", -1),
    "a tick out of range": set_in("tick", 2**70),
    "a tick that is a text": set_in("tick", "1"),
    "a counter beyond the end": set_in("frames", 1, "pc", 999),
    "a counter at no loop": set_in("frames", 1, "pc", 0),
    "a counter that is true": set_in("frames", 0, "pc", True),
    "another phase": set_in("frames", 2, "phase", "BETWEEN" * 2),
    "a phase that does not fit": set_in("frames", 0, "phase", "LEAVING"),
    "another layer": set_in("frames", 1, "activation", "layer", 12345),
    "no activation": set_in("frames", 1, "activation", None),
    "an activation at the bottom": set_in("frames", 0, "activation", {}),
    "an iteration out of range": set_in("frames", 1, "activation", "iteration", 10**6),
    "an iteration below": set_in("frames", 2, "activation", "iteration", -2),
    "a reason that is none": set_in("frames", 1, "activation", "ended", "no reason"),
    "a cast of nothing": set_in("frames", 1, "activation", "casts", [[99, "f32"]]),
    "a cast to nothing": set_in("frames", 2, "activation", "casts", [[0, "f99"]]),
    "more pieces": set_in("frames", 1, "activation", "scans", [5, 5]),
    "pieces of nobody": set_in("frames", 1, "activation", "number", 77),
    "no values": set_in("frames", 1, "values", {}),
    "a slot out of range": set_in("frames", 0, "values", "99999", {"blob": 1}),
    "a slot that is none": set_in("frames", 0, "values", "x", {"blob": 1}),
    "a blob that is none": set_all_values({"blob": "1"}),
    "a missing blob": set_all_values({"blob": 10**9}),
    "strides": set_all_values({"blob": 1, "strides": [2**60]}),
    "outputs of another number": set_in("outputs", []),
    "variables that are none": set_in("states", [1]),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_cannot_be_is_refused(interrupted: Path, name: str) -> None:
    path = changed(interrupted, with_state(STATES[name]))
    with pytest.raises(SessionError) as caught, open_recording(path) as recording:
        recording.restored()
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value)) < 1000


SCHEMAS = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON blobs BEGIN DELETE FROM blobs; END",
    "an index on a table": "CREATE INDEX i ON stacks (abs(first))",
    "a view in place of a table": "DROP TABLE snapshots; CREATE VIEW snapshots AS SELECT 1 AS tick",
    "another column": "ALTER TABLE blobs ADD COLUMN more",
    "a missing table": "DROP TABLE activations",
    "another view": "DROP VIEW statistics; CREATE VIEW statistics AS SELECT 1",
    "another version": "PRAGMA user_version = 99",
    "another application": "PRAGMA application_id = 1",
}


@pytest.mark.parametrize("script", SCHEMAS.values(), ids=SCHEMAS)
def test_another_schema_is_refused(interrupted: Path, script: str) -> None:
    path = changed(interrupted, lambda connection: connection.executescript(script))
    for call in (open_recording, resume):
        with pytest.raises(SessionError):
            call(path)  # type: ignore[operator]


def test_a_view_of_the_owners_does_no_harm(interrupted: Path) -> None:
    endless = "CREATE VIEW mine AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r"
    use(changed(interrupted, lambda connection: connection.execute(endless)))


def test_a_query_cannot_write_and_cannot_take_forever(interrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepper.recording.file.time_bound.__wrapped__.__defaults__", (0.2,))
    with open_recording(interrupted) as recording:
        with pytest.raises(SessionError, match=r"readonly|read-only|query_only"):
            recording.query("DELETE FROM blobs")
        endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
        with pytest.raises(SessionError, match="interrupted"):
            recording.query(endless)


COLUMNS = [
    (table, column)
    for table, columns in file.TABLES.items()
    for column in (part.split()[0] for part in columns.partition(", PRIMARY KEY")[0].split(", "))
    if table != "numbers" or column in ("id", "n0", "n1", "n63")  # all the others of them are as these
]
WRONG: list[Any] = [b"\xff\xfe", "'\0", -1, 2**62, 1.5, float("inf"), "[]", "null"]


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_wrong_type_in_any_column_is_an_answer_or_a_message(interrupted: Path, table: str, column: str) -> None:
    for value in WRONG:

        def change(connection: sqlite3.Connection, value: Any = value) -> None:
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
            seal(connection)

        try:
            path = changed(interrupted, change)
        except sqlite3.Error:
            continue  # SQLite itself keeps a number's column for numbers
        try:
            use(path)
        except StepperError as error:
            assert error.exit_code == 3, error


@pytest.mark.usefixtures("read_once")
def test_flipped_bytes_are_an_answer_or_a_message(interrupted: Path) -> None:
    content = interrupted.read_bytes()
    expected = outputs_of(sample("nested_loop").recorded(interrupted.with_name("whole.sqlite")))
    path = interrupted.with_name("flipped.sqlite")
    was_refused = set()

    @given(flips(range(len(content))))
    def check(bits: Flips) -> None:
        path.write_bytes(flipped(content, bits))
        try:
            with open_recording(path) as recording:
                assert finish(recording.restored().machine) == expected
            use(path)
            was_refused.add(False)
        except SessionError:
            was_refused.add(True)
        for leftover in path.parent.glob("flipped.sqlite-*"):
            leftover.unlink()

    check()
    assert was_refused == {True, False}


CHECKED = [name for name, text in file.TABLES.items() if file.CHECKSUM in text]


@pytest.mark.parametrize("table", CHECKED)
def test_a_changed_row_of_any_table_is_told_with_its_place(tmp_path: Path, table: str) -> None:
    column, kind = list(file.columns(file.TABLES[table]).items())[2]
    new = f"{column} || 'x'" if "TEXT" in kind else f"coalesce({column}, 0) + 1"

    sample("nested_loop").recorded(whole := tmp_path / "run.sqlite")
    last = f"UPDATE {table} SET {column} = {new} WHERE rowid = (SELECT max(rowid) FROM {table})"
    path = changed(whole, lambda connection: connection.execute(last))
    place = rf"^{path}: is damaged: a row changed after it was written \(table {table}, [a-z]+ "
    for query in (f"SELECT * FROM {table}", "SELECT * FROM statistics LIMIT 1", "SELECT count(*) FROM events"):
        with pytest.raises(SessionError, match=place), open_recording(path) as recording:
            recording.query(query)


def test_a_flipped_bit_in_a_number_is_told_with_its_value_and_iteration(tmp_path: Path) -> None:
    sample("nested_loop").recorded(path := tmp_path / "run.sqlite", "stats")
    series = "number_series AS s JOIN numbers AS n ON n.id = s.start / 64 JOIN ports AS p ON p.id = s.port"
    with open_recording(path) as recording:
        ((row, number),) = recording.query(f"SELECT n.id, n0 FROM {series} WHERE p.name = 'swaps_next' LIMIT 1")
    place = rf"\(table numbers, id {row}: 'swaps_next' from iteration 0 on\)$"
    for bit in range(62):
        flipped = f"UPDATE numbers SET n0 = {number ^ (1 << bit)} WHERE id = {row}"
        damaged = changed(path, lambda connection, flipped=flipped: connection.execute(flipped))  # type: ignore[misc]
        with pytest.raises(SessionError, match=place), open_recording(damaged) as recording:
            list(values_of(recording, "swaps_next"))
    with pytest.raises(SessionError, match=place), open_recording(damaged) as recording:
        find_non_finite(recording, NonFiniteKind.NAN, Which.ALL, 10)


def test_statistics_of_a_port_that_is_an_input_are_damage(interrupted: Path) -> None:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE tensor_series SET port = 0")
        connection.execute("UPDATE tensors SET nan = 1")
        seal(connection)

    path = changed(interrupted, change)
    with (
        pytest.raises(SessionError, match=f"^{path}: has values of a port that is missing$"),
        open_recording(path) as recording,
    ):
        find_non_finite(recording, NonFiniteKind.NAN, Which.ALL, 10)


def test_a_nan_of_integers_is_damage(tmp_path: Path) -> None:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE numbers SET n0 = NULL")
        seal(connection)

    sample("nested_loop").recorded(whole := tmp_path / "run.sqlite", "stats")
    path = changed(whole, change)
    with (
        pytest.raises(SessionError, match=f"^{path}: has a number that no i64 can be$"),
        open_recording(path) as recording,
    ):
        list(values_of(recording, "swaps_next"))


def test_a_damaged_value_is_no_moment_at_which_an_expression_is_not_known(interrupted: Path) -> None:
    path = changed(interrupted, lambda connection: connection.execute("UPDATE stacks SET first = first - 1"))
    with pytest.raises(SessionError, match="table stacks"), open_recording(path) as recording:
        find_recorded(recording, "swaps_next > 1", Which.ALL, 10)


LEVELS = {"lists": "[[1]]", "no list": "1", "no JSON": "{"}


@pytest.mark.parametrize("layers", LEVELS.values(), ids=LEVELS)
def test_levels_that_cannot_be_are_no_reference(interrupted: Path, layers: str) -> None:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE levels SET layers = ?", (layers,))
        seal(connection)

    path, given = changed(interrupted, change), sample("nested_loop")
    with pytest.raises(SessionError, match=f"^{path}: "):
        RecordingReference(path, given.compiled, given.inputs)


def test_a_loop_that_has_the_role_of_a_branch_is_damage(interrupted: Path) -> None:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE levels SET role = 'then_body', type = 'If' WHERE id = 1")
        connection.execute("UPDATE levels SET role = 'then_body' WHERE id = 2")
        seal(connection)

    path = changed(interrupted, change)
    with pytest.raises(SessionError, match=rf"^{path}: is damaged \(its levels\)$"), open_recording(path) as recording:
        select(recording, ["*"])


def test_a_form_that_is_missing_hides_no_values_from_a_comparison(interrupted: Path) -> None:
    path = changed(interrupted, lambda connection: connection.execute("UPDATE forms SET id = id + 100"))
    given = sample("nested_loop")
    with pytest.raises(SessionError, match=f"^{path}: refers to a form that is missing$"):
        compare_with(given.machine(), RecordingReference(path, given.compiled, given.inputs))


def test_a_text_that_is_no_utf_8_is_damage(interrupted: Path) -> None:
    path = changed(interrupted, lambda connection: connection.execute("UPDATE ports SET name = CAST(x'41ff' AS TEXT)"))
    with (
        pytest.raises(SessionError, match=f"^{path}: is damaged: a text is not UTF-8$"),
        open_recording(path) as recording,
    ):
        list(values_of(recording, "swaps_next"))


def test_pieces_that_name_another_tensor_of_the_file_are_damaged(interrupted: Path) -> None:
    other = "SELECT min(id) FROM blobs WHERE id <> scan_pieces.blob"
    path = changed(interrupted, lambda connection: connection.execute(f"UPDATE scan_pieces SET blob = ({other})"))
    damaged = pytest.raises(SessionError, match="pieces of a concatenated output are damaged")
    with damaged, open_recording(path) as recording:
        recording.restored()


def test_a_truncated_file_is_a_message(interrupted: Path) -> None:
    content = interrupted.read_bytes()
    path = interrupted.with_name("short.sqlite")
    for length in [0, 1, 15, 16, 50, 100, 1000, 4096, 8192, len(content) // 2, len(content) - 4096, len(content) - 1]:
        path.write_bytes(content[:length])
        try:
            use(path)
            assert length > 8192  # what is missing is not needed to go on
        except SessionError:
            pass
        for leftover in path.parent.glob("short.sqlite-*"):
            leftover.unlink()


@pytest.mark.parametrize("kind", ["nothing", "a folder", "a text", "another database"])
def test_what_is_no_recording_is_a_message(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "other"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a text":
        path.write_text("hello")
    elif kind == "another database":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (a)")
        connection.close()
    with pytest.raises(SessionError, match=r"no such file|is not a file|not a recording"):
        open_recording(path)


def test_a_huge_tensor_is_not_made(interrupted: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 1000), }\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    digest = hashlib.blake2b(content, digest_size=16).digest()
    path = changed(
        interrupted,
        lambda connection: connection.execute(
            "UPDATE OR IGNORE state_values SET content = ?, hash = ?", (content, digest)
        ),
    )
    with pytest.raises(SessionError), open_recording(path) as recording:
        recording.restored()


def test_a_changed_model_is_refused_with_what_differs(tmp_path: Path) -> None:
    subject = SUBJECTS["sums"]
    folder = tmp_path / "model"
    folder.mkdir()
    given = case(subject.graph().read(folder), dict(enumerate(subject.inputs)))
    given.recorded(path := tmp_path / "run.sqlite")
    model = given.compiled.model.path
    weights = model.with_suffix(".bin")
    content, text = weights.read_bytes(), model.read_text()
    weights.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(SessionError, match=r"recorded: \w+\.bin has other contents$"):
        resume(path)
    weights.unlink()
    with pytest.raises(SessionError, match=r"\.bin is missing"):
        resume(path)
    weights.write_bytes(content)
    model.write_text(text.replace('name="after"', 'name="later"'))
    with pytest.raises(SessionError, match=r"recorded: \w+\.xml has other contents$"):
        resume(path)
    model.rename(tmp_path / "moved.xml")
    with pytest.raises(SessionError, match=r"is not there; say where it is with --model"):
        resume(path)


def test_a_changed_input_is_refused_with_what_differs(tmp_path: Path) -> None:
    subject = sample("for_loop")
    subject.recorded(path := tmp_path / "run.sqlite")
    principal, rate = (parameter.name for parameter in subject.compiled.model.graph.parameters)
    same = {principal: subject.inputs[0]}
    recorder, _log = resume(path, inputs=same)
    recorder.close()
    with pytest.raises(SessionError, match=f"input '{rate}' is not the one that was recorded: its values differ"):
        resume(path, inputs=same | {rate: np.ones(3, np.float32)})


def test_a_file_that_another_run_has_taken_over_is_left_alone(tmp_path: Path) -> None:
    first = sample("for_loop").recorder(tmp_path / "run.sqlite")
    second, _log = resume(tmp_path / "run.sqlite")
    with first, pytest.raises(SessionError, match="another run has taken over"):
        first.run()
    with second:
        assert second.run()
