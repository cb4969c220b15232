"""The worker: a long run is shown as it goes on and can be stopped; whatever goes wrong does not end the session."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec import Struct
from stepper_tui.paint.rows import Row
from stepper_tui.screens.sheet.inspector import Inspector
from stepper_tui.state import FaultFound

from stepper.debug.debugger import Debugger
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.wide_models import wide_loop


def test_escape_stops_a_long_run_and_nothing_is_lost() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        seen = set()
        for _ in range(1000):
            await asyncio.sleep(0.02)
            seen.add(driven.state.iteration)
            if len(seen) > 2 and driven.state.running is not None:
                break
        assert driven.state.running is not None and "running" in driven.text("top"), "shown while it runs"
        driven.app.perform("pause")

        async def until_paused() -> None:
            while driven.app.driver.is_moving:
                await asyncio.sleep(0.002)

        await asyncio.wait_for(until_paused(), 30)  # an unheard pause lasts longer
        await driven.settle()
        assert driven.state.running is None and driven.state.iteration is not None
        paused = driven.state.view.tick
        await driven.press("n")
        assert driven.state.view.tick == paused + 1

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",))


def test_what_the_first_key_needs_is_loaded_in_the_worker_for_which_its_run_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading: list[str] = []
    monkeypatch.setattr("stepper_tui.app._SETTLING", 0.02)
    monkeypatch.setattr("stepper_tui.app._settle", lambda: loading.append(threading.current_thread().name))

    async def script(driven: Driven) -> None:
        for _ in range(1_000):
            if loading:
                break
            await asyncio.sleep(0.005)
        assert loading == ["debugger"]

    drive(wide_loop(40, 2_000_000), script)


def test_the_event_loop_never_waits_for_the_run() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        for _ in range(50):
            await asyncio.sleep(0.005)
            assert driven.app.driver.is_busy, "the run goes on, and so does the event loop"
        driven.app.perform("pause")
        await driven.settle()

    drive(wide_loop(40, 2_000_000), script, lines=("run-to wide@0",))


def test_an_error_of_the_run_is_shown_in_place_and_one_can_go_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("c")
        assert driven.state.failure and "stopped: error" in driven.text("top")
        assert "more than 3 iterations" in driven.answer
        await driven.press("N")
        assert not driven.state.failure and driven.state.frames

    debugger = wide_loop(20, 50)
    debugger.machine.max_iterations = 3
    drive(debugger, script, lines=("run-to wide@0",))


def test_a_fault_in_a_pane_is_told_and_the_others_go_on() -> None:
    class Broken(Inspector, can_focus=False):
        def rows(self, width: int) -> list[Row]:
            raise ZeroDivisionError("by a pane")

    async def script(driven: Driven) -> None:
        driven.pane("inspector").__class__ = Broken
        await driven.press("n")
        assert "ZeroDivisionError" in driven.text("inspector")
        assert driven.app._faults
        assert "a fault in Broken" in driven.text("answer")
        iteration = driven.state.iteration
        await driven.type("iter +1")
        assert driven.state.iteration == iteration + 1

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 3"))


def test_a_fault_stays_on_the_line_until_the_user_does_something() -> None:
    async def script(driven: Driven) -> None:
        app = driven.app
        app.perform("goto tick 1")  # answered after the fault
        app.on_fault_found(FaultFound("somewhere", "ZeroDivisionError()"))
        await driven.settle()
        assert driven.state.view.tick == 1 and "a fault in somewhere" in driven.text("answer")
        app.on_fault_found(FaultFound("elsewhere", "ZeroDivisionError()"))
        assert "a fault in elsewhere" in driven.text("answer"), "the newest one"
        await driven.type("goto tick 2")
        assert "tick 2" in driven.text("answer")

    drive("for_loop", script)


def test_the_lines_of_a_logpoint_are_listed_beside_where_the_run_stops() -> None:
    async def script(driven: Driven) -> None:
        await driven.type('log balance_next "{iter}: {max(balance_next)}"')
        await driven.type("continue")
        lines = driven.answer.splitlines()
        assert [line.split() for line in lines[1:4]] == [["0:", "1050.0"], ["1:", "1102.5"], ["2:", "1157.625"]]
        assert "end of the run" in lines[-1]

    drive("for_loop", script)


class AskTick(Struct, frozen=True):
    """The tick at which the run stands."""

    def answer(self, debugger: Debugger) -> int:
        return debugger.machine.tick


class AskNothing(Struct, frozen=True):
    """A question with a fault."""

    def answer(self, debugger: Debugger) -> int:
        found: int = debugger.nothing  # type: ignore[attr-defined]
        return found


def test_a_fault_in_a_question_is_told_too() -> None:
    async def script(driven: Driven) -> None:
        answers: list[int] = []
        driven.app.driver.ask(AskTick(), answers.append)
        driven.app.driver.ask(AskNothing(), answers.append)
        await driven.settle()
        assert answers == [driven.state.view.tick]
        assert "a fault in AskNothing" in driven.text("answer")

    drive("date_normaliser", script)


def test_notes_of_an_edit_and_commands_of_a_breakpoint_are_told_and_a_difference_is_shown_whole() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("set trip-count of wide = 5")
        await driven.settle()
        assert "ends after 5 iterations" in driven.text("answer")
        driven.app.perform("break wide@2")
        driven.app.perform("commands 1 silent; print iter + 40")
        driven.app.perform("continue")
        await driven.settle()
        assert "42" in driven.text("answer")
        driven.app.perform("branch diff original")
        await driven.settle()
        assert "branch diff original: " in driven.text("answer") and " lines" in driven.text("answer")

    drive(wide_loop(4, 20), script, lines=("run-to wide@0",))


def test_breakpoints_and_watches_of_the_start_up_file_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "stepper").mkdir()
    (tmp_path / "stepper" / "init").write_text("break wide@2\ncommands 1\nprint iter\nend\nwatch iter\nlast\nbrake\n")

    async def script(driven: Driven) -> None:
        await driven.settle()
        assert len(driven.state.breaks) == 1
        assert driven.state.view.tick == 0, "a movement is left out"
        assert "line 7: there is no command 'brake'" in driven.text("answer")
        assert "1 iter" in await driven.do(":info watches")

    drive(wide_loop(4, 20), script, starts_up=True)
