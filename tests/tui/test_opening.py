"""The first screen: the overview, whose run is made at once, bounded; where it leads, and what leads back to it."""

from __future__ import annotations

import asyncio
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview.facts import RunState
from stepper.debug.stop import Reason
from stepper.errors import UsageError
from stepper.session.autosave import Autosave
from tests.debug.debugged import SAMPLES
from tests.debug.debugged import opened as debugger_of
from tests.debug.loops_to_break import recurrence
from tests.debug.test_endless_loops import rests
from tests.models import Graph
from tests.tui.driven import Driven, Script, debugger_of_sample, drive
from tests.tui.session.test_sessions import failing_loop
from tui.app import StepperApp
from tui.launch import SessionOptions, open_application
from tui.screens.overview.pane import OverviewPane
from tui.worker import background_run


def pane_of(driven: Driven) -> OverviewPane:
    pane = driven.pane("overview")
    assert isinstance(pane, OverviewPane)
    return pane


async def until_run(driven: Driven) -> OverviewPane:
    """Wait until the run is made as far as it is made by itself; without any key."""
    await driven.ran()
    return pane_of(driven)


def never_ending(folder: Path) -> Debugger:
    return debugger_of(folder, recurrence("Multiply", 0.5, -1, 7.0))


def view(driven: Driven) -> str:
    return driven.app.front.view_name or "main"


def test_the_run_is_shown_without_a_key_and_the_moment_stays_at_the_start() -> None:
    async def script(driven: Driven) -> None:
        await until_run(driven)
        shown = driven.text("overview")
        assert "tok' = 12, so NotEqual(tok', 12) is false" in shown and "11 iterations of at most 20" in shown
        assert driven.state.stop is not None and driven.state.stop.reason is Reason.START
        await driven.press("home", "enter")
        assert view(driven) == "main" and driven.state.iteration == 0
        await driven.press("v")
        assert view(driven) == "sheet"
        await driven.press("0")
        assert view(driven) == "overview" and pane_of(driven).at.iteration == 0
        await driven.press("0", "right_square_bracket")
        assert view(driven) == "main" and driven.state.iteration == 1
        await driven.press("q")
        assert pane_of(driven).at.iteration == 1
        assert view(driven) == "overview" and len(driven.app.screen_stack) == 1
        await driven.press("q")
        assert driven.app.driver.is_closed

    drive("date_normaliser", script, runs=True)


def test_a_movement_leads_into_the_run_and_its_end_back_to_the_overview() -> None:
    async def script(driven: Driven) -> None:
        await until_run(driven)
        await driven.press("s")
        assert view(driven) == "main" and driven.state.stop is not None and driven.state.stop.tick == 1
        await driven.type("break nan")
        await driven.press("c")
        assert view(driven) == "sheet" and driven.state.stop.reason is Reason.BREAK
        await driven.press("q")
        assert view(driven) == "main"
        await driven.type("delete 1")
        await driven.press("c")
        assert view(driven) == "overview" and driven.state.stop.reason is Reason.END
        assert "12 iterations of 12" in driven.text("overview")
        await driven.press("home", "enter")
        assert view(driven) == "main" and driven.state.iteration == 0

    drive("rwkv_overflow", script, runs=True, size=(120, 40))


def test_c_on_the_overview_goes_to_the_next_stop() -> None:
    async def script(driven: Driven) -> None:
        await until_run(driven)
        await driven.type("break nan")
        await driven.press("c")
        assert view(driven) == "sheet" and driven.state.stop is not None and driven.state.iteration == 8

    drive("rwkv_overflow", script, runs=True)


def test_without_a_run_the_key_for_it_is_named() -> None:
    async def script(driven: Driven) -> None:
        await asyncio.sleep(0.2)
        await driven.settle()
        pane = pane_of(driven)
        assert pane.overview is not None and pane.overview.state is RunState.NOT_RUN
        shown = driven.text("overview")
        assert "not run, c runs it" in shown and "not run yet" in shown and "no piece" not in shown
        for key in ("right_square_bracket", "enter", "o"):
            await driven.press(key)
            assert "the model is not run yet: c runs it" in driven.text("answer"), key
            driven.app.say("")
        await driven.press("c")
        await until_run(driven)
        assert "11 iterations of at most 20" in driven.text("overview")

    drive("date_normaliser", script, runs=False)


def test_a_loop_without_end_is_left_after_a_while_and_can_be_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.3)

    async def script(driven: Driven) -> None:
        pane = await until_run(driven)
        assert pane.overview is not None and pane.overview.state is RunState.OUT_OF_TIME
        ran, shown = pane.overview.iterations, driven.text("overview")
        assert "can never end: " in shown and f"paused at {ran:,} after " in shown and "c goes on" in shown
        monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.0)
        await driven.press("c")  # what somebody asked for has no limit of time
        for _ in range(300):
            await driven.pilot.pause(0.01)
            if pane.overview.iterations > ran + 2000:
                break
        assert pane.overview.iterations > ran + 2000 and pane.overview.state is RunState.RUNNING
        shown = driven.text("overview")
        assert " running " in shown and "unchanged, bit for bit" in shown and "follows the run" in shown
        await driven.press("left")
        assert "follows the run" not in driven.text("overview")
        held = pane.at.iteration
        await driven.pilot.pause(0.2)
        assert pane.at.iteration == held
        await driven.press("end")
        assert "follows the run" in driven.text("overview")
        await driven.press("escape")
        await driven.settle()
        assert pane.overview.state is RunState.PAUSED and "c goes on" in driven.text("overview")
        assert driven.state.stop is not None and driven.state.stop.tick == 0
        await driven.press("home", "enter")
        assert view(driven) == "main" and driven.state.iteration == 0

    drive(never_ending(tmp_path), script, runs=True, size=(120, 40))


def test_of_a_condition_that_is_always_true_it_is_asked_why_the_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.05)

    async def script(driven: Driven) -> None:
        await until_run(driven)
        await driven.press("home", "up", "up", "up", "o")
        assert view(driven) == "sheet" and "it can never end" in driven.text("sheet")

    drive(never_ending(tmp_path), script, runs=True, size=(120, 40))


def test_where_a_slice_comes_from_is_asked_on_its_row() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        assert "the same as later_return', joined on axis 1 from the last place back to the first" in driven.text(
            "overview"
        )
        await driven.press("down", "down", "down", "home", "right", "o")
        assert view(driven) == "sheet" and "rewards[0,6,0]" in driven.text("sheet")

    drive("reverse", script, runs=True, size=(120, 40))


def test_a_key_goes_before_the_run_which_then_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS", "ENDLESS_SECONDS"):
        monkeypatch.setattr(background_run, name, 60.0)

    async def script(driven: Driven) -> None:
        await driven.pilot.pause(0.2)
        await asyncio.wait_for(driven.press("s", "n"), 5)
        assert view(driven) == "main" and driven.state.stop is not None and driven.state.stop.tick == 2
        assert driven.app.driver.is_at_rest is False
        await driven.press("0")
        begun = pane_of(driven).overview
        for _ in range(300):
            await driven.pilot.pause(0.01)
            known = pane_of(driven).overview
            assert known is not None and begun is not None and known.state is RunState.RUNNING
            if known.iterations > begun.iterations:
                return
        raise AssertionError("the run does not go on")

    drive(debugger_of(tmp_path, recurrence("Add", 1.0)), script, runs=True)


def test_a_run_that_fails_says_why_and_enter_leads_to_the_place(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        pane = await until_run(driven)
        assert pane.overview is not None and pane.overview.state is RunState.FAILED
        await driven.filled()
        shown = driven.text("overview")
        assert "ended by an error: Reshape cut failed in iteration 1 of walk" in shown
        assert "a tensor of shape [4] cannot take the shape [2]" in shown
        await driven.press("enter")
        assert view(driven) == "main" and driven.state.failure and driven.state.iteration == 1
        assert "Reshape 'cut'" in driven.text("stop")
        await driven.press("0", "home", "x", "enter")
        assert driven.state.failure

    drive(failing_loop(tmp_path), script, runs=True, size=(120, 40))


def test_a_loop_that_did_not_begin_and_a_model_without_loops(tmp_path: Path) -> None:
    model = stepper.read_model(SAMPLES / "while_loop" / "model.xml")

    async def zero(driven: Driven) -> None:
        await until_run(driven)
        assert "did not begin" in driven.text("overview")
        await driven.type("view sheet")
        await driven.filled()
        assert "0 iterations" in driven.text("sheet") and "did not begin" in driven.text("sheet")
        assert "0 of 0" not in driven.text("sheet") and not driven.app._faults
        await driven.press("q")
        await driven.type("view value")
        shown = driven.text("tensor")
        assert "not computed yet" in shown and "t runs on to where it is computed" in shown
        assert not driven.app.front.query_one("#parts").display
        await driven.press("t")
        assert "not computed" not in driven.text("tensor") and driven.app.front.query_one("#parts").display

    drive(Debugger(model, {"start": np.array(1, np.int64)}), zero, runs=True, size=(120, 40))
    net = Graph()
    net.result(net.apply("Abs", net.parameter("x", dims=(3,))), "out")

    async def none(driven: Driven) -> None:
        await until_run(driven)
        assert "no loop" in driven.text("overview") and "1 operation" in driven.text("overview")
        await driven.press("s")
        assert view(driven) == "main"

    drive(debugger_of(tmp_path, net, np.array([1, 0, 2], np.float32)), none, runs=True, size=(120, 40))


def session_of(script: Script, folder: Path, lines: tuple[str, ...] = ()) -> None:
    """One session from start to end, as the command line opens it."""

    async def run() -> StepperApp:
        app = StepperApp(
            debugger_of_sample("date_normaliser"), "x", lines=lines, autosave=Autosave(folder=folder), runs=True
        )
        async with app.run_test(size=(120, 40)) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            await driven.settle()
            await script(driven)
            app.leave()
        return app

    assert asyncio.run(run()).session.save_at_end() == ""


def test_a_session_goes_on_where_it_was_and_at_its_end_with_the_overview(tmp_path: Path) -> None:
    async def first(driven: Driven) -> None:
        await driven.press("s", "s", "v")
        assert view(driven) == "sheet"

    async def second(driven: Driven) -> None:
        assert view(driven) == "sheet" and driven.state.stop is not None and driven.state.stop.tick == 2
        await driven.press("c")
        assert view(driven) == "overview"
        await driven.type("view sheet")

    async def third(driven: Driven) -> None:
        assert view(driven) == "overview" and driven.state.stop is not None
        assert driven.state.stop.reason is Reason.END
        await until_run(driven)
        assert "11 iterations of at most 20" in driven.text("overview")

    async def at(driven: Driven) -> None:
        assert view(driven) == "main" and driven.state.iteration == 3

    for script in (first, second, third):
        session_of(script, tmp_path / "kept")
    session_of(at, tmp_path / "other", lines=("run-to tok@3",))


def test_a_movement_that_takes_long_says_where_it_is_and_that_nothing_can_end_it(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        for _ in range(400):
            await driven.pilot.pause(0.01)
            if "can never end" in driven.text("answer"):
                break
        told = driven.text("answer")
        assert told.split()[:4] == ["loop", "is", "in", "iteration"] and "Esc pauses" in told, told
        assert "running" in driven.text("loop") and "no loop here" not in driven.text("loop")
        await driven.press("escape")
        assert driven.state.stop is not None and driven.state.stop.reason is Reason.PAUSED
        assert "can never end" not in driven.text("answer")

    drive(never_ending(tmp_path), script, size=(120, 40))


def test_a_state_that_comes_again_is_told_on_the_card_and_while_the_debugger_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.3)

    async def script(driven: Driven) -> None:
        pane = await until_run(driven)
        assert pane.overview is not None and pane.overview.state is RunState.OUT_OF_TIME, "as of any endless loop"
        shown = driven.text("overview")
        told = "state repeats every 2 iterations from iteration 0 on"  # 2, 1, 2, 1 ..., as powers of 2 mod 3 are
        assert f"can never end: {told}, and going depends on nothing else" in shown
        assert all(len(line) <= driven.app.size.width for line in shown.splitlines())
        await driven.press("e")
        await driven.filled()
        assert f"why going@{pane.overview.iterations - 1} is true" in driven.text("sheet")
        await driven.press("q", "home", "enter")
        driven.app.perform("continue")
        for _ in range(600):
            await driven.pilot.pause(0.01)
            if "can never end" in driven.text("answer"):
                break
        told = "it can never end: what decides that repeats every 2 iterations from 0 on; Esc pauses"
        assert told in driven.text("answer")
        await driven.press("escape")

    drive(debugger_of(tmp_path, rests(2, 3)), script, runs=True, size=(120, 40))


def test_leaving_with_an_edit_that_is_not_kept_is_asked_once() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("s", "s")
        await driven.type("goto numerator_next@1")
        await driven.type("set numerator_next = 0")
        assert driven.state.has_edits and "a fault" not in driven.text("answer")
        await driven.press("q")
        assert view(driven) == "overview"
        await driven.press("q")
        assert "the edit is not kept" in driven.text("answer") and not driven.app.driver.is_closed
        await driven.press("down", "q")
        assert not driven.app.driver.is_closed, "something was done since"
        await driven.press("ctrl+q")
        assert driven.app.driver.is_closed

    drive("rwkv_overflow", script, runs=True)


@pytest.mark.parametrize("ways", [("ctrl+q",), ("colon", "q", "enter")])
def test_an_edit_that_is_in_a_file_is_left_and_another_one_is_not(tmp_path: Path, ways: tuple[str, ...]) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("set key[0,3]@7 = 80")
        await driven.press(*ways)
        assert "the edit is not kept" in driven.text("answer") and not driven.app.driver.is_closed
        await driven.type(f"session save {tmp_path / 'kept.session'}")
        assert not driven.state.has_unkept_edits
        await driven.type("set key[0,2] = 1")
        await driven.press(*ways)
        assert "the edit is not kept" in driven.text("answer") and not driven.app.driver.is_closed
        await driven.type(f"session load {tmp_path / 'kept.session'}")
        assert driven.state.has_edits and "a fault" not in driven.text("answer")
        await driven.press(*ways)
        assert driven.app.driver.is_closed

    drive("rwkv_overflow", script)


def test_of_edits_that_come_back_is_told_before_one_leaves(tmp_path: Path) -> None:
    async def first(driven: Driven) -> None:
        await driven.type("set tok@4 = 3")
        await driven.press("q")
        assert view(driven) == "overview"
        await driven.press("q")
        told = driven.text("answer").strip()
        assert told.startswith("edits are kept in the session") and told.endswith("; once more leaves")
        assert len(told) < 70 and not driven.app.driver.is_closed
        await driven.press("q")
        assert driven.app.driver.is_closed

    async def second(driven: Driven) -> None:
        assert view(driven) == "overview" and driven.state.branch == "edit-1" and driven.state.is_edited
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
