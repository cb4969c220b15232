"""A session lasts: it comes back as it was left, survives errors of the run and faults of a pane, and is run anew."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stepper_tui.screens.sheet.pane import SheetPane

import stepper
from stepper.debug.debugger import Debugger
from stepper.files.configuration import sessions_folder
from stepper.session.autosave import Autosave
from stepper.session.session_files import restore_session
from tests.debug.debugged import SAMPLES
from tests.tui.driven import DECODER, Driven, debugger_of_sample
from tests.tui.headline_models import failing_loop
from tests.tui.sessions import session


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def told(driven: Driven) -> dict[str, Any]:
    """What must come back."""
    state = driven.state
    return {
        "tick": state.view.tick,
        "edited": state.is_edited,
        "breaks": [(one.number, one.sentence, one.enabled, one.hits) for one in state.breaks],
        "marks": [(mark.name, mark.tick) for mark in state.lists.marks],
        "theme": driven.app.theme,
        "rows": driven.rows,
        "typed": driven.app.typed,
    }


async def set_up(driven: Driven) -> None:
    """Breakpoints with conditions, one of them off; watches, marks; other colours and rows; and a place."""
    lines = (
        f"run-to {DECODER}@0",
        f"break {DECODER}@* if max(h.9) > 0.99",
        "break nan",
        "disable 2",
        "watch max(h.9)",
    )
    for line in lines:
        await driven.type(line)
    await driven.press("c", "m", "k", "c", "3", "n")
    await driven.type("theme stepper-light")
    await driven.type("rows watched")


def test_leaving_and_coming_back_everything_is_as_it_was() -> None:
    seen: list[dict[str, Any]] = []

    async def first(driven: Driven) -> None:
        await set_up(driven)
        seen.append(told(driven))

    async def second(driven: Driven) -> None:
        assert "session restored" in driven.text("answer")
        seen.append(told(driven))
        await driven.press("apostrophe", "k", "C")
        assert not driven.app._faults

    assert session(first) == ""
    assert session(second) == ""
    assert seen[0] == seen[1]
    assert (
        seen[0]["tick"] > 100
        and seen[0]["rows"] == "watched"
        and [one[2] for one in seen[0]["breaks"]] == [True, False]
    )


def test_a_session_is_saved_while_one_works() -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@2")
        await driven.type("break nan")
        (path,) = sessions_folder().glob("*.session")
        saved = debugger_of_sample("date_normaliser")
        restore_session(saved, path)
        assert saved.machine.tick == driven.state.view.tick and len(saved.breakpoints) == 1

    session(script)


def test_nothing_is_written_but_in_the_sessions_folder() -> None:
    before = set(SAMPLES.rglob("*"))

    async def script(driven: Driven) -> None:
        await driven.press("n", "ctrl+s")
        assert str(sessions_folder()) in driven.text("answer")

    session(script)
    assert set(SAMPLES.rglob("*")) == before
    assert [path.suffix for path in sessions_folder().iterdir()] == [".session"]
    assert sessions_folder().stat().st_mode & 0o077 == 0


def test_on_other_inputs_breakpoints_watches_and_layout_come_back_but_no_place() -> None:
    model = stepper.read_model(SAMPLES / "date_normaliser" / "model.xml")
    inputs = dict(np.load(SAMPLES / "date_normaliser" / "inputs.npz"))
    name = next(iter(inputs))
    other = Debugger(model, {**inputs, name: np.roll(inputs[name], 1, axis=-1)})

    async def again(driven: Driven) -> None:
        assert "last session on this model" in driven.text("answer")
        assert driven.state.view.tick == 0 and driven.app.theme == "stepper-light"
        assert [(one.number, one.enabled, one.hits) for one in driven.state.breaks] == [(1, True, 0), (2, False, 0)]
        assert "max(h.9)" in await driven.do(":info watches")

    session(set_up)
    session(again, debugger=other)
    assert len(list(sessions_folder().iterdir())) == 2


def test_a_file_that_the_user_names_is_the_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.session"

    async def again(driven: Driven) -> None:
        assert driven.state.breaks and driven.state.view.tick > 100

    session(set_up, Autosave(file=path))
    session(again, Autosave(file=path))
    assert not sessions_folder().exists()


def test_a_file_that_is_no_session_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.session"
    path.write_bytes(b"something else")

    async def script(driven: Driven) -> None:
        assert "not restored" in driven.text("answer")
        await driven.type("goto tick 1")
        assert driven.state.view.tick == 1

    assert "could not be restored, and stays" in session(script, Autosave(file=path))
    assert path.read_bytes() == b"something else"


def test_a_session_of_an_older_version_opens_on_the_sheet() -> None:
    """What was kept of screens that there are no more is passed over; place, breakpoints and watches are there."""
    session(set_up)
    debugger = debugger_of_sample("date_normaliser")
    (path,) = sessions_folder().iterdir()
    restore_session(debugger, path)
    Autosave().save(debugger, {"view": "main", "pane": "time", "tab": "loop", "statistic": "max", "lines": ["next"]})

    async def script(driven: Driven) -> None:
        assert driven.app.front.view_name == "sheet" and driven.state.view.tick > 100 and driven.state.breaks
        assert driven.app.typed == ["next"] and not driven.app._faults

    session(script)


def test_what_is_kept_by_model_and_broken_is_replaced() -> None:
    session(set_up)
    (path,) = sessions_folder().iterdir()
    path.write_bytes(path.read_bytes()[:1000])

    async def script(driven: Driven) -> None:
        assert "not restored" in driven.text("answer") and driven.state.view.tick == 0
        await driven.type("goto tick 5")

    async def again(driven: Driven) -> None:
        assert driven.state.view.tick == 5

    assert session(script) == ""
    assert session(again) == ""


def test_a_layout_that_cannot_be_is_passed_over() -> None:
    session(set_up)
    debugger = debugger_of_sample("date_normaliser")
    layout = {
        "theme": 5,
        "view": "../x",
        "shown": {"rows": 7, "sort": "x"},
        "lines": [1, "ok\x1b[2J"],
    }
    Autosave().save(debugger, layout)

    async def script(driven: Driven) -> None:
        assert driven.rows == "carried" and driven.app.typed == [] and not driven.app._faults

    session(script)


# --- errors of the run ----------------------------------------------------------------------------------------------


def test_an_operation_that_fails_in_a_loop_is_shown_with_stack_and_shapes_and_one_goes_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.do("c")
        assert driven.state.failure and "stopped: error" in driven.text("top")
        for part in ("Loop 'walk' #1", "Reshape 'cut'", "[4]"):
            assert part in driven.answer, driven.answer
        assert driven.at == ("cut", 1) or driven.iterations == [1]
        tick = driven.state.view.tick
        await driven.press("N")
        assert driven.state.view.tick == tick - 1 and not driven.state.failure
        await driven.press("n", "n")
        assert driven.state.failure and driven.state.view.tick == tick
        assert "why" in await driven.do(":why failure") and driven.rows == "why"

    session(script, debugger=failing_loop())


def test_an_expression_that_fails_is_shown_and_the_run_goes_on() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("watch max(no_such)")
        await driven.type("print 1 / nothing")
        assert "nothing" in driven.text("answer")
        await driven.type("goto tick 1")
        assert driven.state.view.tick == 1

    session(script)


# --- faults of the program ------------------------------------------------------------------------------------------


def test_a_pane_that_raises_is_reported_the_session_goes_on_and_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto tick 1")

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError("by a test")

        monkeypatch.setattr(SheetPane, "row", broken)
        monkeypatch.setattr(SheetPane, "on_click", broken)
        driven.pane("sheet").changed()
        await driven.settle()
        assert "ZeroDivisionError" in driven.text("sheet") and "a fault in SheetPane" in driven.text("answer")
        await driven.pilot.click("#sheet", offset=(3, 3))
        await driven.type("goto tick 3")
        assert driven.state.view.tick == 3
        assert driven.app._faults
        assert list(sessions_folder().glob("*.session"))

    session(script)


def test_an_action_that_raises_is_reported() -> None:
    async def script(driven: Driven) -> None:
        driven.app.open_view = lambda name: 1 / 0  # type: ignore[method-assign,assignment,return-value]
        await driven.type("view help")
        assert "a fault in view" in driven.text("answer")
        await driven.type("goto tick 1")
        assert driven.state.view.tick == 1

    session(script)


# --- anew -----------------------------------------------------------------------------------------------------------


def test_a_rerun_reads_the_files_anew_and_keeps_place_and_breakpoints(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(SAMPLES / "date_normaliser", folder)

    def opened() -> Debugger:
        return Debugger(stepper.read_model(folder / "model.xml"), dict(np.load(folder / "inputs.npz")))

    async def script(driven: Driven) -> None:
        await set_up(driven)
        before, old = told(driven), driven.app.driver
        await driven.press("ctrl+r")
        await driven.settle()
        assert driven.app.driver is not old and "read again" in driven.text("answer")
        after = told(driven)
        assert {**before, "rows": ""} == {**after, "rows": ""}
        (folder / "model.xml").write_text("<net/>")
        await driven.press("ctrl+r")
        await driven.settle()
        assert "model.xml" in driven.text("answer")
        await driven.type(f"goto tick {after['tick'] + 1}")
        assert driven.state.view.tick == after["tick"] + 1 and not driven.app._faults

    session(script, debugger=opened(), reopen=opened)


def test_a_second_application_on_the_same_model_is_told_and_leaves_what_the_first_keeps() -> None:
    code = (
        "import sys; from stepper.files.locks import lock; lock(sys.argv[1]); print('x', flush=True); sys.stdin.read()"
    )
    session(set_up)
    (path,) = sessions_folder().iterdir()
    before = path.read_bytes()
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"x\n"

        async def script(driven: Driven) -> None:
            sentence = f"not kept (session save FILE keeps it): it is open in process {process.pid} on "
            assert sentence in driven.text("answer")
            assert driven.state.breaks
            await driven.press("n")

        said = session(script)
        process.communicate(timeout=30)
    assert said.startswith("the session is not saved: this session is not kept (session save FILE keeps it): ")
    assert path.read_bytes() == before
