"""A debugging session that is kept: in another process it is the same, and a file that does not fit is one message."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from stepper.commands import Interpreter
from stepper.debug.debugger import Debugger
from stepper.engine.frames import Frame, RunObserver
from stepper.errors import SessionError, StepperError, UsageError
from stepper.recording import open_recording, resume
from stepper.session.session_files import LARGEST_LAYOUT, restore_session, save_session
from tests.damage import Flips, flipped, flips
from tests.debug.debugged import sample
from tests.debug.sample_twins import collatz
from tests.recording.recorded import finish, sample_names, seal, statistics
from tests.recording.recorded import sample as recorded_sample
from tests.session import kept_sessions
from tests.session.kept_sessions import at_prompt, begun, said, told

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """By sample, what a session tells here after it was saved, and what it tells in another process."""
    folder = tmp_path_factory.mktemp("kept")
    here = {}
    for name in sample_names():
        interpreter = begun(name)
        save_session(interpreter.session.debugger, folder / f"{name}.session")
        here[name] = json.loads(json.dumps(told(interpreter)))
    paths = sorted(map(str, folder.iterdir()))
    command = [sys.executable, "-m", kept_sessions.__name__, *paths]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return here, {Path(path).stem: found for path, found in json.loads(out).items()}


@pytest.mark.parametrize("name", sample_names())
def test_in_another_process_a_session_is_the_same(kept: Any, name: str) -> None:
    here, there = kept
    assert there[name] == here[name]
    breaks, watches, marks, branches, _where = here[name][1]
    assert len(breaks) >= 4 and len(watches) == 2 and len(marks) == 2
    assert len([line for line in branches if "model" in line]) == 3
    assert any(line.strip().startswith("tick ") for line in branches)


def test_a_recording_carries_a_session_and_is_a_recording_still(tmp_path: Path) -> None:
    subject = recorded_sample("nested_loop")
    subject.recorded(path := tmp_path / "nested_loop.sqlite")
    interpreter = begun("nested_loop")
    save_session(interpreter.session.debugger, path)
    assert kept_sessions.restored(path) == told(interpreter)
    with open_recording(path) as recording:
        assert finish(recording.restored().machine) == subject.outputs() and statistics(recording, "swaps_next")
    recorder, _log = resume(path)
    recorder.close()


def test_an_edit_is_made_again_with_its_value(tmp_path: Path) -> None:
    start = int(np.load(ROOT / "sample_models/while_loop/inputs.npz")["start"].item())
    interpreter = at_prompt("while_loop")
    for line in ("break number", "continue 4", "set number = 7"):
        assert interpreter.execute(line)
    save_session(interpreter.session.debugger, tmp_path / "s")
    twin = sample("while_loop")
    restore_session(twin, tmp_path / "s")
    twin.last()
    steps, peak, _numbers = collatz(start, {3: 7})
    assert twin.branches.name == "edit-1" and twin.machine.outputs is not None
    assert {steps, peak} <= {int(output.item()) for output in twin.machine.outputs if output.size == 1}


def test_the_file_is_replaced_in_place_and_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "s"
    interpreter = at_prompt("nested_loop")
    interpreter.execute("until iter == 1")
    sizes = []
    for number in range(30):
        interpreter.execute(f"set order = {number}")
        save_session(interpreter.session.debugger, path)
        sizes.append(path.stat().st_size)
        interpreter.execute("branch original")
        interpreter.session.debugger.branches._others.clear()
    assert sizes[-1] == sizes[1]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM blobs").fetchone() == (2,)  # the input and the edit
    connection.close()


def test_a_layout_is_the_callers_own(tmp_path: Path) -> None:
    debugger, path = sample("for_loop"), tmp_path / "s"
    save_session(debugger, path, {"panes": [1, 2]})
    save_session(debugger, path)
    assert restore_session(sample("for_loop"), path).layout == {"panes": [1, 2]}
    for layout in ({"x": "y" * LARGEST_LAYOUT}, {"x": object()}, {"x": float("nan")}):
        with pytest.raises(UsageError, match="a layout"):
            save_session(debugger, path, layout)
    assert restore_session(sample("for_loop"), path).layout == {"panes": [1, 2]}


class _Pausing(RunObserver):
    """Asks for a pause after the first iteration."""

    def __init__(self, debugger: Debugger) -> None:
        self._waiting = [debugger]

    def iteration_closed(self, _frame: Frame) -> None:
        if self._waiting:
            self._waiting.pop().pause()


def test_a_session_whose_restoring_is_paused_leaves_what_was_there(tmp_path: Path) -> None:
    debugger, path = sample("while_loop"), tmp_path / "s"
    debugger.last()
    save_session(debugger, path)
    other = at_prompt("while_loop")
    for line in ("break number", "continue 2", "watch number"):
        other.execute(line)
    before = [said(other, line) for line in kept_sessions.LISTS]
    machine = other.session.debugger.machine
    observers, machine.observers = machine.observers, (*machine.observers, _Pausing(other.session.debugger))
    with pytest.raises(SessionError, match="paused at tick"):
        restore_session(other.session.debugger, path)
    machine.observers = observers
    assert [said(other, line) for line in kept_sessions.LISTS] == before


def test_loading_at_the_prompt_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    first = begun("nested_loop")
    file = tmp_path / "a file"
    assert said(first, f"session save {file}") == [f"session saved in {file}"]
    second = at_prompt("nested_loop")
    for line in ("break swaps", "continue", "set swaps = 3", "watch swaps", "mark other"):
        second.execute(line)
    stop = said(second, f"session load {file}")
    assert stop[0].startswith(f"tick {first.session.debugger.stop.tick} ")
    assert [said(second, line) for line in kept_sessions.LISTS] == [said(first, line) for line in kept_sessions.LISTS]
    assert said(second, "session") == ["save or load is missing"]
    assert said(second, "session load") == ["the name of a file is missing: session load FILE"]
    assert "no such file" in said(second, f"session load {tmp_path / 'nothing'}")[0]


# --- what does not fit ----------------------------------------------------------------------------------------------


def test_another_model_other_inputs_and_other_rules_are_refused(tmp_path: Path) -> None:
    save_session(debugger := sample("for_loop"), path := tmp_path / "s")
    inputs = dict(enumerate(debugger.inputs))
    for other, message in (
        (sample("while_loop"), r"model\.xml has other contents"),
        (
            Debugger(debugger.model, inputs | {1: np.ones(3, np.float32)}),
            r"the input 'rate' is not .*its values differ",
        ),
        (Debugger(debugger.model, inputs, "openvino"), "under --rules spec, this one is under openvino"),
    ):
        for call in (restore_session, save_session):
            with pytest.raises(SessionError, match=message):
                call(other, path)


Change = Callable[[sqlite3.Connection], object]


def with_row(kind: str, edit: Callable[[Any], object]) -> Change:
    def change(connection: sqlite3.Connection) -> None:
        row = json.loads(connection.execute("SELECT content FROM kept WHERE kind = ?", (kind,)).fetchone()[0])
        edited = edit(row)
        text = edited if isinstance(edited, str) else json.dumps(row)
        connection.execute("UPDATE kept SET content = ? WHERE kind = ? AND position = 0", (text, kind))

    return change


def put(*path: Any) -> Callable[[Any], None]:
    def edit(row: Any) -> None:
        *steps, last, value = path
        for step in steps:
            row = row[step]
        row[last] = value

    return edit


CHANGES: dict[str, Change] = {
    "no JSON": with_row("session", lambda _row: "{"),
    "deep JSON": with_row("session", lambda _row: "[" * 100_000),
    "another version": with_row("session", put("version", 99)),
    "an unknown reason": with_row("session", put("reason", "fun")),
    "an unknown branch": with_row("session", put("branch", "nowhere")),
    "causes that are numbers": with_row("session", put("causes", [1])),
    "a limit that is none": with_row("session", put("max_iterations", -1)),
    "a breakpoint at nothing": with_row("breakpoint", put("text", "nothing_at_all")),
    "a breakpoint of no kind": with_row("breakpoint", put("kind", "joke")),
    "a breakpoint seen from nowhere": with_row("breakpoint", put("where", 99)),
    "a breakpoint with another number": with_row("breakpoint", put("number", 2)),
    "counts that are none": with_row("breakpoint", put("counts", [[1, 2], 3])),
    "a count of texts": with_row("breakpoint", put("counts", [["a", 0, 0, None], [0, 0, 0, None]])),
    "a flag that is a text": with_row("breakpoint", put("enabled", "yes")),
    "a hit that is huge": with_row("breakpoint", put("hit", 2**70)),
    "a watch of no expression": with_row("watch", put("text", "1 +")),
    "a watch that is too long": with_row("watch", put("text", "x" * 5000)),
    "a mark below": with_row("mark", put("tick", -1)),
    "a branch beyond the end": with_row("branch", put("tick", 10**9)),
    "an edit of nothing": with_row("branch", put("edits", 0, "address", "nothing_at_all")),
    "an edit at another time": with_row("branch", put("edits", 0, "tick", 0)),
    "an edit of another type": with_row("branch", put("edits", 0, "value", {"blob": 1})),
    "an edit with a missing blob": with_row("branch", put("edits", 0, "value", {"blob": 10**9})),
    "an edit with strides": with_row("branch", put("edits", 0, "value", {"blob": 1, "strides": [2**60]})),
    "an original with edits": with_row("branch", put("name", "original")),
    "no branches": lambda connection: connection.execute("DELETE FROM kept WHERE kind = 'branch'"),
    "many rows": lambda connection: connection.executemany(
        "INSERT INTO kept VALUES ('watch', ?, '1', 0)", [(number,) for number in range(10, 20_100)]
    ),
    "a layout that is a list": lambda connection: connection.execute("INSERT INTO kept VALUES ('layout', 0, '[]', 0)"),
    "a layout that is huge": lambda connection: connection.execute(
        "INSERT INTO kept VALUES ('layout', 0, ?, 0)", (json.dumps({"x": "y" * 2**17}),)
    ),
    "a trigger": lambda connection: connection.execute(
        "CREATE TRIGGER t AFTER INSERT ON kept BEGIN DELETE FROM kept; END"
    ),
}


@pytest.fixture(scope="module")
def session_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("session") / "nested_loop.session"
    save_session(begun("nested_loop").session.debugger, path)
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_file_is_one_message_and_leaves_the_session_alone(
    session_file: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "changed"
    shutil.copy(session_file, path)
    connection = sqlite3.connect(path)
    CHANGES[name](connection)
    seal(connection)
    connection.commit()
    connection.close()
    interpreter = begun("nested_loop")
    before = [said(interpreter, line) for line in kept_sessions.LISTS]
    with pytest.raises(SessionError) as caught:
        restore_session(interpreter.session.debugger, path)
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value)) < 1500
    assert [said(interpreter, line) for line in kept_sessions.LISTS] == before


def test_flipped_bytes_do_no_harm(session_file: Path, tmp_path: Path) -> None:
    content = session_file.read_bytes()
    was_refused = set()
    used = [place for place, byte in enumerate(content) if byte]

    @given(flips(used, most=3))
    @settings(max_examples=60)
    def check(bits: Flips) -> None:
        path = tmp_path / "flipped"
        path.write_bytes(flipped(content, bits))
        try:
            restore_session(at_prompt("nested_loop").session.debugger, path)
            was_refused.add(False)
        except StepperError as error:
            assert "Traceback" not in str(error)
            was_refused.add(True)
        for leftover in tmp_path.glob("flipped-*"):
            leftover.unlink()

    check()
    assert True in was_refused


def test_without_a_session_nothing_is_put_back(tmp_path: Path) -> None:
    recorded_sample("for_loop").recorded(path := tmp_path / "run.sqlite")
    interpreter: Interpreter = begun("for_loop")
    before = [said(interpreter, line) for line in kept_sessions.LISTS]
    assert restore_session(interpreter.session.debugger, path).empty
    assert [said(interpreter, line) for line in kept_sessions.LISTS] == before
    assert said(interpreter, f"session load {path}") == [f"{path} keeps no session"]
