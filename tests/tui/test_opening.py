"""Opening and leaving: the run is made without a key, keys go before it, edits are not lost without a question."""

from __future__ import annotations

import asyncio
from functools import partialmethod
from pathlib import Path

import pytest
from stepper_tui.app import StepperApp
from stepper_tui.launch import SessionOptions, open_application
from stepper_tui.worker import snapshot as background_run

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import RunState
from stepper.debug.stop import Reason
from stepper.errors import UsageError
from stepper.session.autosave import Autosave
from tests.debug.debugged import SAMPLES
from tests.debug.debugged import opened as debugger_of
from tests.debug.loops_to_break import recurrence
from tests.tui.driven import Driven, Script, debugger_of_sample, drive
from tests.tui.headline_models import failing_loop


def test_the_run_is_known_without_a_key_and_movements_stay_on_the_sheet() -> None:
    async def script(driven: Driven) -> None:
        stop = driven.state.stop
        assert stop is not None and stop.reason is Reason.START and driven.at == ("goes on?", 10)
        await driven.do(":break tok'@4", "c")
        assert len(driven.app.screen_stack) == 1 and driven.at[1] == driven.state.iteration == 4
        await driven.do("c")
        assert driven.state.stop is not None and driven.state.stop.reason is Reason.END and not driven.iterations
        await driven.do(":first")
        assert driven.state.view.tick == 0
        for _ in range(3):
            await driven.press("escape")
        assert not driven.app.driver.is_closed, "Esc comes out, and never leaves"
        await driven.press("q")
        assert driven.app.driver.is_closed

    drive("date_normaliser", script, size=(120, 40), runs=True)


def test_a_key_goes_before_the_run_which_then_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS", "ENDLESS_SECONDS"):
        monkeypatch.setattr(background_run, name, 60.0)

    async def script(driven: Driven) -> None:
        await asyncio.wait_for(driven.press("home", "s", "n"), 10)
        assert driven.state.stop is not None and driven.state.stop.tick > 0
        begun = driven.state.overview
        for _ in range(1000):
            await driven.pilot.pause(0.01)
            known = driven.state.overview
            assert known is not None and begun is not None and known.state is RunState.RUNNING
            if known.iterations > begun.iterations:
                break
        else:
            raise AssertionError("the run does not go on")
        assert "running" in driven.text("top")
        await driven.press("escape")
        assert driven.state.overview is not None and driven.state.overview.state is RunState.PAUSED
        assert "c continues" in driven.text("top")

    drive(debugger_of(tmp_path, recurrence("Add", 1.0)), script)


def test_a_run_that_fails_is_gone_to() -> None:
    async def script(driven: Driven) -> None:
        assert driven.state.overview is not None and driven.state.overview.state is RunState.FAILED
        assert "ended by an error" in driven.text("top")
        await driven.do("c")
        assert driven.state.failure and driven.iterations == [1] and "Reshape 'cut'" in driven.answer

    drive(failing_loop(), script, runs=True, size=(120, 40))


def test_a_movement_that_takes_long_says_where_it_is_and_that_nothing_can_end_it(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        for _ in range(1000):
            await driven.pilot.pause(0.01)
            if "can never end" in driven.text("answer"):
                break
        told = driven.text("answer")
        assert told.split()[:4] == ["loop", "is", "in", "iteration"] and "Esc pauses" in told, told
        assert driven.text("keys").startswith("Esc pause")
        await driven.press("escape")
        assert driven.state.stop is not None and driven.state.stop.reason is Reason.PAUSED
        assert "can never end" not in driven.text("answer")

    drive(debugger_of(tmp_path, recurrence("Multiply", 0.5, -1, 7.0)), script, size=(120, 40), runs=False)


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", [("q",), ("ctrl+q",), ("colon", "q", "enter")])
def test_an_edit_that_is_in_a_file_is_left_and_another_one_is_asked_about_once(
    tmp_path: Path, ways: tuple[str, ...]
) -> None:
    async def asked(driven: Driven) -> None:
        await driven.press(*ways)
        assert "the edit is not kept" in driven.text("answer") and not driven.app.driver.is_closed

    async def script(driven: Driven) -> None:
        await driven.do(":set key[0,3]@7 = 80")
        await asked(driven)
        await driven.do("down")
        await asked(driven)  # something was done since
        await driven.do(f":session save {tmp_path / 'kept.session'}")
        assert not driven.state.has_unkept_edits
        await driven.do(":set key[0,2]@7 = 1")
        await asked(driven)
        await driven.do(f":session load {tmp_path / 'kept.session'}")
        assert driven.state.has_edits and "a fault" not in driven.text("answer")
        await driven.press(*ways)
        assert driven.app.driver.is_closed

    drive("rwkv_overflow", script)


def session_of(script: Script, folder: Path, lines: tuple[str, ...] = ()) -> None:
    """One session from start to end, as the command line opens it."""

    async def run() -> StepperApp:
        app = StepperApp(debugger_of_sample("date_normaliser"), "x", lines=lines, autosave=Autosave(folder=folder))
        async with app.run_test(size=(120, 40)) as pilot:
            driven = Driven(app, pilot)
            await driven.ran()
            await script(driven)
            app.leave()
        return app

    assert asyncio.run(run()).session.save_at_end() == ""


def test_a_session_goes_on_where_it_was_and_a_line_of_the_command_line_goes_there(tmp_path: Path) -> None:
    async def first(driven: Driven) -> None:
        await driven.do(":goto 3", ":rows all")

    async def second(driven: Driven) -> None:
        assert driven.iterations == [3] and driven.at[1] == 3 and driven.rows == "all"
        await driven.do(":last")

    async def third(driven: Driven) -> None:
        assert driven.state.stop is not None and driven.state.stop.reason is Reason.END
        assert "ended at 10" in driven.text("headline")

    async def at(driven: Driven) -> None:
        assert driven.iterations == [3] and driven.at[1] == 3

    for script in (first, second, third):
        session_of(script, tmp_path / "kept")
    session_of(at, tmp_path / "other", lines=("run-to tok@3",))


def test_of_edits_that_come_back_is_told_before_one_leaves(tmp_path: Path) -> None:
    async def first(driven: Driven) -> None:
        await driven.do(":set tok@4 = 3")
        await driven.press("q")
        told = driven.text("answer").strip()
        assert told == "edits are kept in the session and come back; once more leaves"
        assert not driven.app.driver.is_closed
        await driven.press("q")
        assert driven.app.driver.is_closed

    async def second(driven: Driven) -> None:
        assert "A  branch original" in driven.text("top") and driven.state.is_edited
        assert "session restored" in driven.text("answer") and not driven.app._faults
        await driven.press("q")
        assert driven.app.driver.is_closed, "nothing was changed this time"

    for script in (first, second):
        session_of(script, tmp_path)


@pytest.mark.usefixtures("nothing_frozen")
def test_a_debugger_that_cannot_be_made_ends_the_application_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model = stepper.read_model(SAMPLES / "for_loop" / "model.xml")

    def refuse() -> Debugger:
        raise UsageError("it cannot be made")

    monkeypatch.setattr(StepperApp, "run", partialmethod(StepperApp.run, headless=True, size=(80, 24)))
    with pytest.raises(UsageError, match="it cannot be made"):
        open_application(refuse, model, {}, keeping=SessionOptions(keep=False))
